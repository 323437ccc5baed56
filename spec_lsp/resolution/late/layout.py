"""What models refuse when their layers are split over GPUs or pipeline stages.

Follows the attention classes of models/ and layers/linear.py (QKVParallelLinear), and model_executor/model_runner.py.

Modelled: attention and KV heads that the ranks do not divide, for the text models listed; classes without pipeline
parallelism. Left out: vision towers (many can run data parallel), models that pad heads, CPU (which pads them), the
transformers backend, the heads of linear attention.
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.parallel import attention_tp_size

model_parallelism = Handler("layers/linear.py:__init__", when=lambda c: bool(c.device == "cuda"))

SPLIT_OVER_TP = frozenset({
    "LlamaForCausalLM", "Phi3ForCausalLM", "InternLM3ForCausalLM", "MistralForCausalLM", "Ministral3ForCausalLM",
    "Qwen2ForCausalLM", "GemmaForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM", "MixtralForCausalLM",
    "CohereForCausalLM", "Cohere2ForCausalLM", "Glm4ForCausalLM", "GraniteForCausalLM", "GraniteMoeForCausalLM",
    "InternLM2ForCausalLM", "BaichuanForCausalLM", "OlmoForCausalLM", "OlmoeForCausalLM", "StableLmForCausalLM",
    "Starcoder2ForCausalLM", "ExaoneForCausalLM", "SolarForCausalLM", "XverseForCausalLM", "MiMoForCausalLM",
    "DbrxForCausalLM", "QWenLMHeadModel",
})  # fmt: skip
"""Models whose attention heads are split over all TP ranks."""

SPLIT_OVER_ATTENTION_TP = frozenset({
    "Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "Qwen2MoeForCausalLM", "Qwen3NextForCausalLM", "Glm4MoeForCausalLM",
    "GptOssForCausalLM", "MiniMaxM2ForCausalLM", "Llama4ForCausalLM", "BailingMoeForCausalLM", "BailingMoeV2ForCausalLM",
    "MiMoV2FlashForCausalLM",
})  # fmt: skip
"""Models whose attention heads are split over the ranks that attention data and context parallelism leave."""

LATENT_ATTENTION = frozenset({
    "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM",
    "LongcatFlashForCausalLM", "Glm4MoeLiteForCausalLM",
})  # fmt: skip
"""Models with latent attention: their query heads are split, their one latent head is not."""


def _head_ranks(c: Config) -> int | None:
    """Over how many ranks the attention heads are split; None for models that are not listed."""
    architecture = c.model.architecture
    if architecture in SPLIT_OVER_TP:
        return int(c.tp_size)
    if architecture in SPLIT_OVER_ATTENTION_TP or architecture in LATENT_ATTENTION:
        return attention_tp_size(c)
    return None


def _divides(ranks: int, heads: int, kv_heads: int | None) -> bool:
    if heads % ranks:
        return False
    if kv_heads is None:
        return True
    return kv_heads % ranks == 0 if kv_heads >= ranks else ranks % kv_heads == 0


@model_parallelism.refuses(
    "SPC950", "attention-heads-not-divisible-by-ranks", raises="AssertionError", late=True,
    bad=("model=qwen2.5-7b -- --tp-size 8", "--tp-size 3"), good=("model=qwen2.5-7b -- --tp-size 4", "--tp-size 8"),
)  # fmt: skip
def attention_heads_not_divisible_by_ranks(c: Config) -> Refusal | None:
    """The GPUs cannot share the attention heads evenly.

    Every rank computes whole heads, and as many as the others: the number of ranks has to divide the query heads, and
    to divide the KV heads or be a multiple of them. SGLang finds out when it builds the model and stops on a bare
    assertion. Choose a TP size that fits; GPUs that are left over can run a second replica.
    """
    ranks = _head_ranks(c)
    if ranks is None or ranks <= 1 or c.model_impl not in ("auto", "sglang"):
        return None
    heads = c.model.num_attention_heads
    if heads is None:
        return None
    latent = c.model.architecture in LATENT_ATTENTION
    kv_heads = None if latent else c.model.total_num_kv_heads
    if _divides(ranks, heads, kv_heads):
        return None
    fitting = next(n for n in range(ranks, 0, -1) if _divides(n, heads, kv_heads))
    shared = f"{heads} attention heads" + (
        f" and {kv_heads} KV heads" if kv_heads is not None and heads % ranks == 0 else ""
    )
    per = "" if ranks == c.tp_size else f", which leaves {ranks} ranks for attention,"
    return Refusal(
        at="tp_size",
        with_=("model_path",),
        message=f"{c.shown('tp_size')}{per} cannot share this model's {shared} evenly, so SGLang stops when it builds "
        f"the model. {fitting} {'ranks divide' if fitting > 1 else 'rank divides'} them.",
        fixes=(setting(tp_size=c.tp_size // ranks * fitting),),
    )


WITHOUT_PIPELINE = frozenset({
    "AfmoeForCausalLM", "BaichuanForCausalLM", "BertForSequenceClassification", "BertModel", "CLIPModel",
    "ChatGLMModel", "Cohere2ForCausalLM", "Cohere2MoeForCausalLM", "Cohere2VisionForConditionalGeneration",
    "CohereForCausalLM", "Contriever", "DbrxForCausalLM", "DeepseekForCausalLM", "DeepseekOCRForCausalLM",
    "DeepseekVL2ForCausalLM", "DiffusionGemmaForBlockDiffusion", "DotsOCRForCausalLM", "EmbeddingGemma2Model",
    "EmbeddingGemmaModel", "Ernie4_5_ForCausalLM", "Ernie4_5_MoeForCausalLM",
    "Ernie4_5_VLMoeForConditionalGeneration", "ExaoneForCausalLM", "FalconH1ForCausalLM",
    "FalconMambaForCausalLM", "GPT2LMHeadModel", "GPTBigCodeForCausalLM", "GPTJForCausalLM",
    "Gemma2ForCausalLM", "Gemma2ForSequenceClassification", "Gemma3ForCausalLM",
    "Gemma3ForConditionalGeneration", "Gemma3nForCausalLM", "Gemma3nForConditionalGeneration",
    "Gemma4UnifiedForConditionalGeneration", "GemmaForCausalLM", "GlmAsrForConditionalGeneration",
    "GlmImageForConditionalGeneration", "GraniteForCausalLM", "GraniteMoeForCausalLM",
    "GraniteMoeSWAForCausalLM", "GraniteMoeSharedForCausalLM", "GraniteSWAForCausalLM", "Grok1ForCausalLM",
    "Grok1ModelForCausalLM", "HYV3ForCausalLM", "HYV4ForCausalLM", "HrmTextForCausalLM",
    "HunYuanDenseV1ForCausalLM", "HunYuanMoEV1ForCausalLM", "IQuestLoopCoderForCausalLM", "IQuestQ1ForCausalLM",
    "InklingForConditionalGeneration", "InternLM2ForCausalLM", "InternLM2ForRewardModel",
    "InternS1ForConditionalGeneration", "InternVLChatModel", "JetNemotronForCausalLM",
    "JetVLMForConditionalGeneration", "KimiVLForConditionalGeneration", "Lfm2BidirectionalModel",
    "Lfm2ForCausalLM", "Lfm2MoeForCausalLM", "Lfm2VlForConditionalGeneration",
    "LightOnOCRForConditionalGeneration", "Llama4ForConditionalGeneration", "LlamaEmbeddingModel",
    "LlamaForClassification", "LlamaForSequenceClassification",
    "LlamaForSequenceClassificationWithNormal_Weights", "LlavaLlamaForCausalLM", "LlavaMistralForCausalLM",
    "LlavaQwenForCausalLM", "LlavaVidForCausalLM", "LocateAnythingForConditionalGeneration",
    "LongcatFlashForCausalLM", "Mamba2ForCausalLM", "MambaForCausalLM", "MiDashengLMModel", "MiMoForCausalLM",
    "MindSporeForCausalLM", "MiniCPM3ForCausalLM", "MiniCPMForCausalLM", "MiniCPMO", "MiniCPMSALAForCausalLM",
    "MistralModel", "MllamaForConditionalGeneration", "MultiModalityCausalLM", "MuseGlimmerForCausalLM",
    "MuseGlimmerForConditionalGeneration", "MuseSparkForConditionalGeneration", "NVILAForConditionalGeneration",
    "NVILALiteForConditionalGeneration", "NanbeigeForSequenceClassification",
    "NemotronH_Nano_Omni_Reasoning_V3", "NemotronH_Nano_VL_V2", "NemotronH_Omni_Reasoning_V3",
    "Olmo2ForCausalLM", "OlmoForCausalLM", "OlmoeForCausalLM", "OrionForCausalLM", "POINTSV15ChatModel",
    "PaddleOCRVLForConditionalGeneration", "PersimmonForCausalLM", "Phi3SmallForCausalLM", "Phi4MMForCausalLM",
    "PhiForCausalLM", "PhiMoEForCausalLM", "PixtralForConditionalGeneration", "PixtralVisionModel",
    "QWenLMHeadModel", "QuantMixtralForCausalLM", "Qwen2AudioForConditionalGeneration", "Qwen2ForRewardModel",
    "Qwen2ForSequenceClassification", "Qwen2VLForConditionalGeneration", "Qwen3ASRForConditionalGeneration",
    "Qwen3ForRewardModel", "Qwen3ForSequenceClassification", "Qwen3Model", "Qwen3NextForCausalLM",
    "Sarashina2VisionForCausalLM", "StableLmForCausalLM", "Starcoder2ForCausalLM",
    "Step3VLForConditionalGeneration", "Step3p7ForConditionalGeneration", "StepVLForConditionalGeneration",
    "UnlimitedOCRForCausalLM", "VoxtralForConditionalGeneration", "WhisperForConditionalGeneration",
    "XLMRobertaForSequenceClassification", "XLMRobertaModel", "XverseForCausalLM", "XverseMoeForCausalLM",
    "YiVLForCausalLM",
})  # fmt: skip
"""Classes whose forward pass does not hand hidden states to a next stage, in every release modelled."""

PIPELINED_SINCE = {
    "Gemma4ForCausalLM": "0.5.13",
    "Gemma4ForConditionalGeneration": "0.5.13",
    "Glm4vForConditionalGeneration": "0.5.7",
    "Glm4vMoeForConditionalGeneration": "0.5.7",
    "KimiK25ForConditionalGeneration": "0.5.10",
    "MiniMaxM2ForCausalLM": "0.5.10",
    "Qwen3VLForConditionalGeneration": "0.5.7",
    "Qwen3VLMoeForConditionalGeneration": "0.5.7",
    "Qwen4ExpForConditionalGeneration": "0.5.21",
    "SolarForCausalLM": "0.5.22",
}
"""Classes that learned it, and when."""


def _runs_in_pipeline(c: Config) -> bool:
    architecture = c.model.architecture
    if architecture in WITHOUT_PIPELINE:
        return False
    since = PIPELINED_SINCE.get(architecture)
    return since is None or c.since(since)


@model_parallelism.refuses(
    "SPC951",
    "pipeline-through-model-without-stages",
    raises="AssertionError",
    late=True,
    sglang="model_executor/model_runner.py:__init__",
    bad=("model=qwen3-next-80b -- --tp-size 4 --pp-size 2", "model=gemma-2-9b -- --pp-size 2"),
    good=("model=deepseek-v3 -- --tp-size 8 --pp-size 2", "--pp-size 2"),
)
def pipeline_through_model_without_stages(c: Config) -> Refusal | None:
    """This model cannot be split into pipeline stages.

    A stage takes hidden states from the one before and passes its own on; the code of this model has no place for that.
    SGLang finds out when the weights are loaded and stops. Use tensor (or for many experts expert) parallelism over the
    same GPUs.
    """
    if c.pp_size <= 1 or c.model_impl not in ("auto", "sglang") or _runs_in_pipeline(c):
        return None
    return Refusal(
        at="pp_size",
        with_=("model_path",),
        message=f"{c.shown('pp_size')} does not work with {c.model.architecture}, whose code has no pipeline stages: "
        "SGLang loads the weights and stops. Use tensor parallelism over the same GPUs.",
        fixes=(setting(pp_size=1, tp_size=c.tp_size * c.pp_size), dropping("pp_size")),
    )
