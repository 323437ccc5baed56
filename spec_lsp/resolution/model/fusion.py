"""FlashInfer's fused all-reduce. Follows the passes of arg_groups/overrides.py at the end of the model-specific adjustments."""

from __future__ import annotations

from spec_lsp.resolution import ranks
from spec_lsp.resolution.engine import Config, Handler
from spec_lsp.resolution.model.common import is_blackwell
from spec_lsp.resolution.model.config import model_dtype

FUSED = {
    "DeepseekV3ForCausalLM": "", "DeepseekV32ForCausalLM": "", "DeepseekV4ForCausalLM": "0.5.18", "GptOssForCausalLM": "",
    "GlmMoeDsaForCausalLM": "0.5.11", "Glm4MoeForCausalLM": "", "Glm4MoeLiteForCausalLM": "0.5.8",
    "MistralLarge3ForCausalLM": "0.5.13", "Qwen3MoeForCausalLM": "", "Qwen3VLMoeForConditionalGeneration": "0.5.14",
    "Qwen3NextForCausalLM": "0.5.11", "Qwen4ExpForConditionalGeneration": "0.5.20",
    "KimiK25ForConditionalGeneration": "0.5.9", "Qwen3_5MoeForConditionalGeneration": "0.5.10",
    "InternS2PreviewForConditionalGeneration": "0.5.12", "Qwen3_5ForConditionalGeneration": "0.5.10",
    "NemotronHForCausalLM": "0.5.14", "NemotronHPuzzleForCausalLM": "0.5.14", "NemotronH_Omni_Reasoning_V3": "0.5.20",
}  # fmt: skip
"""The architectures with fused layers, with the release that added them (empty: 0.5.7 or before)."""

CUTEDSL_TP_SIZES = (2, 4, 8, 16)
"""The TP sizes of the CuTe DSL kernels."""

_auto = Handler("overrides.py:_flashinfer_allreduce_fusion_auto_enable", since="0.5.7")


@_auto.adjusts("enable_flashinfer_allreduce_fusion", until="0.5.14")
def switch_fusion_on(c: Config) -> None:
    """On Hopper and SM100 this model's all-reduce is fused with the layer norm that follows."""
    since = FUSED.get(c.model.architecture)
    if since is None or (since and c.before(since)) or c.enable_flashinfer_allreduce_fusion:
        return
    if not (c.gpu.sm90 or c.gpu.sm100 or (c.gpu.sm120 and c.before("0.5.8"))) or c.enable_dp_attention or c.nnodes != 1:
        return
    if (c.tp_size <= 1 and c.since("0.5.10")) or c.moe_a2a_backend != "none":
        return
    if c.since("0.5.10") and c.before("0.5.11") and c.attn_cp_size > 1:
        return
    if c.gpu.name != "h20" or c.since("0.5.13"):
        c.set(enable_flashinfer_allreduce_fusion=True)


@_auto.adjusts("flashinfer_allreduce_fusion_backend", since="0.5.14")
def fuse_allreduce(c: Config) -> None:
    """On Hopper and SM100 this model's all-reduce is fused with the layer norm that follows."""
    if c.since("0.5.19") and c.before("0.5.21") and _qwen_owns_fusion(c):
        c.set(flashinfer_allreduce_fusion_backend=None)
        return
    mimo = c.since("0.5.23") and c.model.architecture in ("MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM")
    if mimo and not _mimo_fuses(c):
        return
    since = "" if mimo else FUSED.get(c.model.architecture)
    if since is None or (since and c.before(since)) or c.flashinfer_allreduce_fusion_backend is not None:
        return
    if not (c.gpu.sm90 or c.gpu.sm100) or c.tp_size <= 1 or ranks.attention_dp(c) or c.moe_a2a_backend != "none":
        return
    if (c.nnodes == 1 or c.gpu.sm100) and not _prefers_custom_allreduce(c):
        c.set(flashinfer_allreduce_fusion_backend="cutedsl" if mimo else "auto")


def _qwen_owns_fusion(c: Config) -> bool:
    names = ("Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration")
    return c.model.architecture in names and c.env.flag("SGLANG_FLASHINFER_MNNVL_CUTEDSL_AR_FUSION")


def _mimo_fuses(c: Config) -> bool:
    return bool(
        c.gpu.sm100
        and model_dtype(c) == "bfloat16"
        and c.tp_size in CUTEDSL_TP_SIZES
        and c.attn_cp_size == 1
        and not c.encoder_only
        and not c.enable_pdmux
    )


def _prefers_custom_allreduce(c: Config) -> bool:
    """DeepSeek V4.1 over four GPUs of one Blackwell node has an all-reduce of its own."""
    return bool(
        c.since("0.5.21")
        and c.model.model_type == "deepseek_v41"
        and c.model.hf("hidden_size") == 5120
        and is_blackwell(c)
        and c.tp_size == 4
        and c.nnodes == 1
        and not c.disable_custom_all_reduce
    )


_enforce = Handler("overrides.py:_enforce_disable_allreduce_fusion", since="0.5.10")


@_enforce.adjusts("enable_flashinfer_allreduce_fusion", until="0.5.14")
def switch_fusion_off(c: Config) -> None:
    """`--enforce-disable-flashinfer-allreduce-fusion` has the last word."""
    if c.enforce_disable_flashinfer_allreduce_fusion:
        c.set(enable_flashinfer_allreduce_fusion=False)


@_enforce.adjusts("flashinfer_allreduce_fusion_backend", since="0.5.14")
def do_not_fuse(c: Config) -> None:
    """`--enforce-disable-flashinfer-allreduce-fusion` has the last word (deterministic inference sets it)."""
    if c.enforce_disable_flashinfer_allreduce_fusion:
        c.set(flashinfer_allreduce_fusion_backend=None)


passes = (_auto, _enforce)
