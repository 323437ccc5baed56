"""How SGLang treats which architectures: the lists of sglang/srt/configs/model_config.py (0.5.23) as sets.

A name that an older release lacks does no harm: that release cannot serve such a model at all.
"""

from __future__ import annotations

MLA = frozenset({
    "DeepseekV2ForCausalLM", "DeepseekV32ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV3ForCausalLMNextN",
    "Glm4MoeLiteForCausalLM", "Glm4MoeLiteForCausalLMNextN", "GlmMoeDsaForCausalLM",
    "GlmMoeDsaForCausalLMNextN", "Glm5NextForConditionalGeneration", "Glm5NextForConditionalGenerationNextN",
    "LongcatFlashForCausalLM", "LongcatFlashForCausalLMNextN", "HYV4ForCausalLM", "HYV4ForCausalLMNextN",
    "DotsVLMForCausalLM", "Dots3NoteForCausalLM", "Dots3NoteForCausalLMNextN", "MistralLarge3ForCausalLM",
    "MistralLarge3ForCausalLMEagle", "KimiK25ForConditionalGeneration", "Eagle3DeepseekV2ForCausalLM",
    "GigaChat35ForCausalLM", "GigaChat35ForCausalLMNextN", "MiniCPM3ForCausalLM",
    "KimiVLForConditionalGeneration", "KimiLinearForCausalLM", "KimiK3LinearForCausalLM",
    "KimiK3ForConditionalGeneration", "BailingMoeV2_5ForCausalLM", "BailingMoeV3ForCausalLM",
    "BailingMoeV3VLForConditionalGeneration", "SarvamMLAForCausalLM",
})  # fmt: skip
"""Latent attention regardless of the rest of the config."""

MLA_IF_KV_LORA = frozenset({"PixtralForConditionalGeneration", "BailingMoeForCausalLMNextN"})
"""Latent attention when the text config has `kv_lora_rank`."""

MLA_HEAD_DIM_256 = MLA - frozenset({
    "MiniCPM3ForCausalLM", "KimiLinearForCausalLM", "KimiK3LinearForCausalLM", "KimiK3ForConditionalGeneration",
    "BailingMoeV2_5ForCausalLM", "BailingMoeV3ForCausalLM", "BailingMoeV3VLForConditionalGeneration",
    "SarvamMLAForCausalLM",
})  # fmt: skip
"""Architectures for which ModelConfig sets head_dim to 256."""

DEEPSEEK_V4 = frozenset({"DeepseekV4ForCausalLM", "DeepseekV4ForCausalLMNextN", "DeepseekV4ForCausalLMDSpark"})

PURE_SSM = frozenset({"Mamba2ForCausalLM", "FalconMambaForCausalLM", "MambaForCausalLM"})

DSA = frozenset({
    "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "DeepseekV3ForCausalLMNextN", "MistralLarge3ForCausalLM",
    "PixtralForConditionalGeneration", "GlmMoeDsaForCausalLM", "GlmMoeDsaForCausalLMNextN",
    "Glm5NextForConditionalGenerationNextN", "Glm5NextForConditionalGeneration", "LongcatFlashForCausalLM",
    "LongcatFlashForCausalLMNextN", "Dots3NoteForCausalLM", "Dots3NoteForCausalLMNextN", "HYV4ForCausalLM",
    "HYV4ForCausalLMNextN",
})  # fmt: skip
"""DeepSeek sparse attention, when the config has `index_topk`."""

SWA_SINKS = frozenset({
    "GptOssForCausalLM", "GraniteSWAForCausalLM", "GraniteMoeSWAForCausalLM", "IQuestQ1ForCausalLM",
    "IQuestQ1MTP",
})  # fmt: skip
"""Sliding windows with learned attention sinks."""

MIMO_V2 = frozenset({"MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM"})

HYBRID_SWA = SWA_SINKS | MIMO_V2 | DEEPSEEK_V4 | frozenset({
    "BeamForCausalLM", "Llama4ForConditionalGeneration", "MiMoV2MTP", "Step3p5ForCausalLM", "Step3p5MTP",
    "Step3p7ForConditionalGeneration", "Gemma4ForCausalLM", "Gemma4ForConditionalGeneration",
    "EmbeddingGemma2Model", "Gemma4UnifiedForConditionalGeneration", "DiffusionGemmaForBlockDiffusion",
    "LagunaForCausalLM", "MellumForCausalLM", "MuseGlimmerForCausalLM", "MuseGlimmerForConditionalGeneration",
    "InklingForConditionalGeneration", "InklingForConditionalGenerationMTP", "UnlimitedOCRForCausalLM",
})  # fmt: skip
"""Full and sliding-window layers with separate KV pools."""

EMBEDDING = frozenset({
    "LlamaEmbeddingModel", "MistralModel", "LlamaForSequenceClassification",
    "LlamaForSequenceClassificationWithNormal_Weights", "InternLM2ForRewardModel", "Qwen2ForRewardModel",
    "Qwen3ForRewardModel", "Qwen2ForSequenceClassification", "Qwen3ForSequenceClassification", "Qwen3Model",
    "CLIPModel", "BertModel", "Contriever", "BertForSequenceClassification", "XLMRobertaModel",
    "XLMRobertaForSequenceClassification", "Gemma2ForSequenceClassification", "EmbeddingGemma2Model",
    "Lfm2BidirectionalModel",
})  # fmt: skip
"""Never generate text."""

MULTIMODAL = frozenset({
    "CLIPModel", "Cohere2VisionForConditionalGeneration", "Cosmos3EdgeForConditionalGeneration",
    "DeepseekVL2ForCausalLM", "Ernie4_5_VLMoeForConditionalGeneration",
    "MiniMaxM3SparseForConditionalGeneration", "Gemma3ForConditionalGeneration",
    "Gemma3nForConditionalGeneration", "Gemma4ForConditionalGeneration", "EmbeddingGemma2Model",
    "Gemma4UnifiedForConditionalGeneration", "DiffusionGemmaForBlockDiffusion", "Glm4vForConditionalGeneration",
    "Glm4vMoeForConditionalGeneration", "Glm5NextForConditionalGeneration", "GlmOcrForConditionalGeneration",
    "GlmAsrForConditionalGeneration", "GlmImageForConditionalGeneration", "Grok1VForCausalLM",
    "Grok1AForCausalLM", "LlavaLlamaForCausalLM", "Llama4ForConditionalGeneration", "LlavaMistralForCausalLM",
    "LlavaQwenForCausalLM", "LlavaForConditionalGeneration", "LlavaVidForCausalLM",
    "Lfm2VlForConditionalGeneration", "LightOnOCRForConditionalGeneration", "MiMoV2ForCausalLM",
    "MiMoV2ASRForCausalLM", "MiniCPMO", "MiniCPMV", "Mistral3ForConditionalGeneration", "MultiModalityCausalLM",
    "MllamaForConditionalGeneration", "MossVLForConditionalGeneration", "NemotronH_Nano_VL_V2",
    "NemotronH_Nano_Omni_Reasoning_V3", "NemotronH_Omni_Reasoning_V3", "MuseGlimmerForConditionalGeneration",
    "MuseSparkForConditionalGeneration", "PixtralForConditionalGeneration",
    "Qwen2AudioForConditionalGeneration", "Qwen2VLForConditionalGeneration",
    "Qwen2_5_VLForConditionalGeneration", "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration", "Qwen3_5ForConditionalGeneration",
    "Qwen3_5MoeForConditionalGeneration", "Qwen4ExpForConditionalGeneration",
    "InternS2PreviewForConditionalGeneration", "InternS2MobiusForConditionalGeneration",
    "Qwen3ASRForConditionalGeneration", "Qwen3OmniMoeForConditionalGeneration",
    "KimiVLForConditionalGeneration", "LocateAnythingForConditionalGeneration", "InternVLChatModel",
    "InternS1ForConditionalGeneration", "InternS1ProForConditionalGeneration", "Phi4MMForCausalLM",
    "VoxtralForConditionalGeneration", "WhisperForConditionalGeneration", "Step3VLForConditionalGeneration",
    "POINTSV15ChatModel", "DotsVLMForCausalLM", "Dots3NoteForCausalLM", "DotsOCRForCausalLM",
    "Sarashina2VisionForCausalLM", "NVILAForConditionalGeneration", "NVILALiteForConditionalGeneration",
    "DeepseekOCRForCausalLM", "UnlimitedOCRForCausalLM", "JetVLMForConditionalGeneration",
    "PaddleOCRVLForConditionalGeneration", "MiDashengLMModel", "StepVLForConditionalGeneration",
    "Step3p7ForConditionalGeneration", "KimiK25ForConditionalGeneration",
    "BailingMMNativeForConditionalGeneration", "BailingMM2NativeForConditionalGeneration",
    "BailingMoeV3VLForConditionalGeneration",
})  # fmt: skip

MULTIMODAL_OFF_BY_DEFAULT = frozenset({
    "Gemma3ForConditionalGeneration", "Llama4ForConditionalGeneration", "Step3VLForConditionalGeneration",
    "InklingForConditionalGeneration",
})  # fmt: skip
"""Served as text models unless --enable-multimodal is given."""

NO_MULTIMODAL_CHUNKED_PREFILL = frozenset({
    "Grok1VForCausalLM", "Grok1AForCausalLM", "LlavaLlamaForCausalLM", "MllamaForConditionalGeneration",
    "MossVLForConditionalGeneration", "CLIPModel",
})  # fmt: skip


ENCODER_DECODER = frozenset({
    "WhisperForConditionalGeneration", "MllamaForConditionalGeneration", "MossVLForConditionalGeneration",
})  # fmt: skip

NO_PIECEWISE_CUDA_GRAPH = DEEPSEEK_V4 | frozenset({
    "Qwen3NextForCausalLM", "Glm5NextForConditionalGeneration", "BailingMoeV2_5ForCausalLM", "LLaDAModelLM",
})  # fmt: skip

MULTIMODAL_PIECEWISE_CUDA_GRAPH = frozenset({
    "KimiK25ForConditionalGeneration", "MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration",
})  # fmt: skip

MULTIMODAL_BREAKABLE_CUDA_GRAPH = frozenset({
    "MiniMaxM3SparseForConditionalGeneration", "Cohere2VisionForConditionalGeneration",
    "Glm5NextForConditionalGeneration", "InternS2MobiusForConditionalGeneration",
    "PaddleOCRVLForConditionalGeneration", "Qwen3_5ForConditionalGeneration",
    "Qwen3_5MoeForConditionalGeneration", "Qwen4ExpForConditionalGeneration",
    "MuseGlimmerForConditionalGeneration", "MuseSparkForConditionalGeneration",
    "KimiK3ForConditionalGeneration", "KimiK25ForConditionalGeneration", "MiniMaxM3SparseForCausalLM",
})  # fmt: skip

DRAFT_OF = {
    "DeepseekV3ForCausalLM": "DeepseekV3ForCausalLMNextN",
    "DeepseekV32ForCausalLM": "DeepseekV3ForCausalLMNextN",
    "GlmMoeDsaForCausalLM": "GlmMoeDsaForCausalLMNextN",
    "Glm4MoeForCausalLM": "Glm4MoeForCausalLMNextN",
    "Glm4MoeLiteForCausalLM": "Glm4MoeLiteForCausalLMNextN",
    "Glm5NextForConditionalGeneration": "Glm5NextForConditionalGenerationNextN",
    "GlmOcrForConditionalGeneration": "GlmOcrForConditionalGenerationNextN",
    "LongcatFlashForCausalLM": "LongcatFlashForCausalLMNextN",
    "MiMoForCausalLM": "MiMoMTP",
    "MiMoV2ForCausalLM": "MiMoV2MTP",
    "MiMoV2FlashForCausalLM": "MiMoV2MTP",
    "Step3p5ForCausalLM": "Step3p5MTP",
    "Step3p7ForConditionalGeneration": "Step3p5MTP",
    "InklingForConditionalGeneration": "InklingForConditionalGenerationMTP",
    "GigaChat35ForCausalLM": "GigaChat35ForCausalLMNextN",
    "BailingMoeV2ForCausalLM": "BailingMoeForCausalLMNextN",
    "BailingMoeForCausalLM": "BailingMoeForCausalLMNextN",
    "BailingMoeV2_5ForCausalLM": "BailingMoeForCausalLMNextN",
    "BailingMoeV3ForCausalLM": "BailingMoeForCausalLMNextN",
    "Ernie4_5_MoeForCausalLM": "Ernie4_5_MoeForCausalLMMTP",
    "Qwen3NextForCausalLM": "Qwen3NextForCausalLMMTP",
    "Qwen3MoeForCausalLM": "Qwen3MoeForCausalLMMTP",
    "Qwen4ExpForConditionalGeneration": "Qwen4ExpForCausalLMMTP",
    "Qwen3_5ForConditionalGeneration": "Qwen3_5ForCausalLMMTP",
    "Qwen3_5MoeForConditionalGeneration": "Qwen3_5ForCausalLMMTP",
    "Qwen3_5ForCausalLM": "Qwen3_5ForCausalLMMTP",
    "Qwen3_5MoeForCausalLM": "Qwen3_5ForCausalLMMTP",
    "InternS2PreviewForConditionalGeneration": "Qwen3_5ForCausalLMMTP",
    "InternS2MobiusForConditionalGeneration": "Qwen3_5ForCausalLMMTP",
    "ExaoneMoEForCausalLM": "ExaoneMoEForCausalLMMTP",
    "ExaoneMoeForCausalLM": "ExaoneMoEForCausalLMMTP",
    "NemotronH_Omni_Reasoning_V3": "NemotronHForCausalLMMTP",
    "NemotronHForCausalLM": "NemotronHForCausalLMMTP",
    "NemotronHPuzzleForCausalLM": "NemotronHForCausalLMMTP",
    "HYV3ForCausalLM": "HYV3ForCausalLMNextN",
    "HYV4ForCausalLM": "HYV4ForCausalLMNextN",
    "DeepseekV4ForCausalLM": "DeepseekV4ForCausalLMNextN",
}
"""The class by which a target's own checkpoint is loaded if it is the draft (ModelConfig._config_draft_model)."""

# Model types (config.json's `model_type`) whose configuration class marks a hybrid of attention and linear attention
# (sglang/srt/configs/hybrid_arch.py).

GDN_TYPES = frozenset({
    "qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "intern_s2_preview",
    "interns2_mobius", "interns2_mobius_text", "qwen4_exp", "qwen4_exp_text", "jet_nemotron", "jet_vlm",
})  # fmt: skip
MAMBA2_TYPES = frozenset({
    "falcon_h1", "nemotron_h", "nemotron_h_puzzle", "lfm2", "lfm2_moe", "lfm2_vl", "lfm2-vl", "zaya", "mamba2",
    "mamba", "falcon_mamba", "NemotronH_Nano_VL_V2", "NemotronH_Nano_Omni_Reasoning_V3", "nemotron_h_omni",
})  # fmt: skip
