"""Which model classes can hand hidden states to a draft.

From the classes of sglang/srt/models, 0.5.6 to 0.5.23: those that define (or inherit) set_eagle3_layers_to_capture,
set_dflash_layers_to_capture and set_dspark_layers_to_capture, with the first release in which they do. A class that is not in
`SERVED` may come from a plugin or a newer release: nothing is known of it.
"""

from __future__ import annotations


def _by_release(names: dict[str, str]) -> dict[str, str]:
    return {name: release for release, text in names.items() for name in text.split()}


EAGLE3 = _by_release({
    "": """
        ApertusForCausalLM DeepseekV2ForCausalLM DeepseekV32ForCausalLM DeepseekV3ForCausalLM
        ExaoneMoEForCausalLM ExaoneMoeForCausalLM Gemma4UnifiedForConditionalGeneration Glm4MoeForCausalLM
        Glm4MoeLiteForCausalLM Glm5NextForConditionalGeneration GlmMoeDsaForCausalLM GptOssForCausalLM
        IQuestCoderForCausalLM InternLM3ForCausalLM InternS2MobiusForConditionalGeneration
        InternS2PreviewForConditionalGeneration Llama4ForCausalLM Llama4ForConditionalGeneration
        LlamaForCausalLM LongcatFlashForCausalLM MellumForCausalLM MiniMaxM2ForCausalLM
        MiniMaxM3SparseForCausalLM Ministral3ForCausalLM MistralForCausalLM MistralLarge3ForCausalLM
        Phi3ForCausalLM Qwen2ForCausalLM Qwen2MoeForCausalLM Qwen2_5_VLForConditionalGeneration Qwen3ForCausalLM
        Qwen3MoeForCausalLM Qwen4ExpForConditionalGeneration SarvamMoEForCausalLM TeleFLMForCausalLM
    """,
    "0.5.9": """
        BailingMoEForCausalLM BailingMoeForCausalLM BailingMoeV2ForCausalLM Qwen3NextForCausalLM
    """,
    "0.5.10": """
        KimiK25ForConditionalGeneration
    """,
    "0.5.11": """
        InternS1ProForConditionalGeneration Qwen3VLForConditionalGeneration Qwen3VLMoeForConditionalGeneration
        Qwen3_5ForConditionalGeneration Qwen3_5MoeForConditionalGeneration
    """,
    "0.5.12": """
        Gemma3ForCausalLM Gemma3ForConditionalGeneration Gemma4ForCausalLM Gemma4ForConditionalGeneration
    """,
    "0.5.18": """
        MiniMaxM3SparseForConditionalGeneration
    """,
    "0.5.22": """
        Qwen3_5ForCausalLM Qwen3_5MoeForCausalLM
    """,
})  # fmt: skip
"""Targets of an EAGLE3 draft; an empty release means: since the class exists."""

DFLASH = _by_release({
    "": """
        BeamForCausalLM Glm5NextForConditionalGeneration InternS2MobiusForConditionalGeneration
        InternS2PreviewForConditionalGeneration MellumForCausalLM MuseGlimmerForCausalLM
        MuseGlimmerForConditionalGeneration MuseSparkForConditionalGeneration NanbeigeForCausalLM
        NemotronH_Omni_Reasoning_V3 Qwen3_5ForCausalLM Qwen3_5MoeForCausalLM Qwen4ExpForConditionalGeneration
    """,
    "0.5.11": """
        DeepseekV2ForCausalLM DeepseekV32ForCausalLM DeepseekV3ForCausalLM Glm4MoeLiteForCausalLM
        GlmMoeDsaForCausalLM GptOssForCausalLM IQuestCoderForCausalLM InternLM3ForCausalLM
        InternS1ProForConditionalGeneration KimiK25ForConditionalGeneration Llama4ForCausalLM LlamaForCausalLM
        Ministral3ForCausalLM MistralForCausalLM MistralLarge3ForCausalLM Phi3ForCausalLM Qwen3ForCausalLM
        Qwen3MoeForCausalLM Qwen3NextForCausalLM Qwen3VLForConditionalGeneration
        Qwen3VLMoeForConditionalGeneration Qwen3_5ForConditionalGeneration Qwen3_5MoeForConditionalGeneration
        TeleFLMForCausalLM
    """,
    "0.5.14": """
        Gemma4ForCausalLM Gemma4ForConditionalGeneration Gemma4UnifiedForConditionalGeneration
    """,
    "0.5.15": """
        LagunaForCausalLM
    """,
    "0.5.17": """
        InklingForConditionalGeneration
    """,
    "0.5.19": """
        Lfm2ForCausalLM Lfm2MoeForCausalLM NemotronHForCausalLM NemotronHPuzzleForCausalLM
    """,
    "0.5.20": """
        MiMoV2FlashForCausalLM MiMoV2ForCausalLM NemotronH_Nano_Omni_Reasoning_V3 NemotronH_Nano_VL_V2
    """,
    "0.5.21": """
        KimiK3ForConditionalGeneration KimiK3LinearForCausalLM Lfm2VlForConditionalGeneration
    """,
    "0.5.23": """
        MiniMaxM3SparseForConditionalGeneration
    """,
})  # fmt: skip
"""Targets of a DFLASH draft (and, where `DSPARK` lacks them, of a DSPARK draft)."""

DSPARK = _by_release({
    "": """
        BailingMoeV3ForCausalLM KimiK3ForConditionalGeneration KimiK3LinearForCausalLM
    """,
    "0.5.16": """
        DeepseekV4ForCausalLM
    """,
    "0.5.17": """
        KimiLinearForCausalLM
    """,
    "0.5.23": """
        MiniMaxM3SparseForConditionalGeneration
    """,
})  # fmt: skip
"""Targets with a hook of their own for DSPARK drafts."""

_SERVED = """
    AfmoeForCausalLM ApertusForCausalLM ArceeForCausalLM BaichuanForCausalLM
    BailingMM2NativeForConditionalGeneration BailingMMNativeForConditionalGeneration BailingMoEForCausalLM
    BailingMoeForCausalLM BailingMoeV2ForCausalLM BailingMoeV2_5ForCausalLM BailingMoeV3ForCausalLM
    BailingMoeV3VLForConditionalGeneration BeamForCausalLM ChatGLMModel Cohere2ForCausalLM Cohere2MoeForCausalLM
    Cohere2VisionForConditionalGeneration CohereForCausalLM DFlashLagunaForCausalLM DbrxForCausalLM
    DeciLMForCausalLM DeepseekForCausalLM DeepseekOCRForCausalLM DeepseekV2ForCausalLM DeepseekV32ForCausalLM
    DeepseekV3ForCausalLM DeepseekV4ForCausalLM DeepseekVL2ForCausalLM DiffusionGemmaForBlockDiffusion
    Dots3NoteForCausalLM DotsOCRForCausalLM DotsVLMForCausalLM Ernie4_5_ForCausalLM Ernie4_5_MoeForCausalLM
    Ernie4_5_VLMoeForConditionalGeneration Exaone4ForCausalLM ExaoneForCausalLM ExaoneMoEForCausalLM
    ExaoneMoeForCausalLM FalconH1ForCausalLM FalconMambaForCausalLM GPT2LMHeadModel GPTBigCodeForCausalLM
    GPTJForCausalLM Gemma2ForCausalLM Gemma3ForCausalLM Gemma3ForConditionalGeneration Gemma3nForCausalLM
    Gemma3nForConditionalGeneration Gemma4ForCausalLM Gemma4ForConditionalGeneration
    Gemma4UnifiedForConditionalGeneration GemmaForCausalLM GigaChat35ForCausalLM Glm4ForCausalLM
    Glm4MoeForCausalLM Glm4MoeLiteForCausalLM Glm4vForConditionalGeneration Glm4vMoeForConditionalGeneration
    Glm5NextForConditionalGeneration GlmAsrForConditionalGeneration GlmImageForConditionalGeneration
    GlmMoeDsaForCausalLM GlmOcrForConditionalGeneration GptOssForCausalLM GraniteForCausalLM GraniteMoeForCausalLM
    GraniteMoeHybridForCausalLM GraniteMoeSWAForCausalLM GraniteMoeSharedForCausalLM GraniteSWAForCausalLM
    Grok1ForCausalLM Grok1ModelForCausalLM HYV3ForCausalLM HYV4ForCausalLM HrmTextForCausalLM
    HunYuanDenseV1ForCausalLM HunYuanMoEV1ForCausalLM IQuestCoderForCausalLM IQuestLoopCoderForCausalLM
    IQuestQ1ForCausalLM InklingForConditionalGeneration InternLM2ForCausalLM InternLM3ForCausalLM
    InternS1ForConditionalGeneration InternS1ProForConditionalGeneration InternS2MobiusForConditionalGeneration
    InternS2PreviewForConditionalGeneration InternVLChatModel JetNemotronForCausalLM
    JetVLMForConditionalGeneration K2HorizonForCausalLM KimiK25ForConditionalGeneration
    KimiK3ForConditionalGeneration KimiK3LinearForCausalLM KimiLinearForCausalLM KimiVLForConditionalGeneration
    LLaDA2MoeModelLM LagunaForCausalLM Lfm2ForCausalLM Lfm2MoeForCausalLM Lfm2VlForConditionalGeneration
    LightOnOCRForConditionalGeneration Llama4ForCausalLM Llama4ForConditionalGeneration LlamaForCausalLM
    LlavaForConditionalGeneration LlavaLlamaForCausalLM LlavaMistralForCausalLM LlavaQwenForCausalLM
    LlavaVidForCausalLM LocateAnythingForConditionalGeneration LongcatFlashForCausalLM Mamba2ForCausalLM
    MambaForCausalLM MellumForCausalLM MiDashengLMModel MiMoForCausalLM MiMoV2FlashForCausalLM MiMoV2ForCausalLM
    MiniCPM3ForCausalLM MiniCPMForCausalLM MiniCPMO MiniCPMSALAForCausalLM MiniCPMV
    MiniCPMV4_6ForConditionalGeneration MiniCPMV4_7ForConditionalGeneration MiniMaxM2ForCausalLM
    MiniMaxM3SparseForCausalLM MiniMaxM3SparseForConditionalGeneration Ministral3ForCausalLM
    Mistral3ForConditionalGeneration MistralForCausalLM MistralLarge3ForCausalLM MistralModel MixtralForCausalLM
    MllamaForConditionalGeneration MossVLForConditionalGeneration MultiModalityCausalLM MuseGlimmerForCausalLM
    MuseGlimmerForConditionalGeneration MuseSparkForConditionalGeneration NVILAForConditionalGeneration
    NVILALiteForConditionalGeneration NanbeigeForCausalLM NemotronHForCausalLM NemotronHPuzzleForCausalLM
    NemotronH_Nano_Omni_Reasoning_V3 NemotronH_Nano_VL_V2 NemotronH_Omni_Reasoning_V3 OPTForCausalLM
    Olmo2ForCausalLM OlmoForCausalLM OlmoeForCausalLM OrionForCausalLM POINTSV15ChatModel
    PaddleOCRVLForConditionalGeneration PersimmonForCausalLM Phi3ForCausalLM Phi3SmallForCausalLM
    Phi4MMForCausalLM PhiForCausalLM PhiMoEForCausalLM PixtralForConditionalGeneration QWenLMHeadModel
    Qwen2AudioForConditionalGeneration Qwen2ForCausalLM Qwen2MoeForCausalLM Qwen2VLForConditionalGeneration
    Qwen2_5_VLForConditionalGeneration Qwen3ForCausalLM Qwen3Model Qwen3MoeForCausalLM Qwen3NextForCausalLM
    Qwen3OmniMoeForConditionalGeneration Qwen3VLForConditionalGeneration Qwen3VLMoeForConditionalGeneration
    Qwen3_5ForCausalLM Qwen3_5ForConditionalGeneration Qwen3_5MoeForCausalLM Qwen3_5MoeForConditionalGeneration
    Qwen4ExpForConditionalGeneration SDARForCausalLM SDARMoeForCausalLM Sarashina2VisionForCausalLM
    SarvamMLAForCausalLM SarvamMoEForCausalLM SolarForCausalLM Spark2_5ForCausalLM StableLmForCausalLM
    Starcoder2ForCausalLM Step3VLForConditionalGeneration Step3p5ForCausalLM Step3p7ForConditionalGeneration
    StepVLForConditionalGeneration TeleFLMForCausalLM UnlimitedOCRForCausalLM VoxtralForConditionalGeneration
    XllmForCausalLM XverseForCausalLM XverseMoeForCausalLM YiVLForCausalLM ZayaForCausalLM
"""
SERVED = frozenset(_SERVED.split())
"""The classes that SGLang serves."""
