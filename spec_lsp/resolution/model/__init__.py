"""What SGLang does for one model rather than another.

Follows arg_groups/model_hook.py, arg_groups/model_overrides/ and the hooks of single models; before 0.5.15 all of it was
ServerArgs._handle_model_specific_adjustments. Each family has a module here; this one gives them SGLang's order: first what the
registry of overrides declares (all of it decided on the configuration as it was before), then the hooks and branches of single
models, then the radix cache of hybrid models and the fused all-reduce.

Left out: checkpoints whose LM head is a decision readout (decision_config.json lies beside config.json).
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Handler, Refusal
from spec_lsp.resolution.model import (
    capability,
    config,
    deepseek,
    deepseek_v4,
    families,
    fusion,
    gpt_oss,
    hybrid,
    hybrid_before,
    kimi,
    minimax,
    nemotron,
    qwen,
)

build_model_config = config.build_model_config

CP_DECODE_ATTENTION_TP = frozenset({
    "DeepseekV4ForCausalLM", "DeepseekV4ForCausalLMNextN", "DeepseekV4ForCausalLMDSpark", "GlmMoeDsaForCausalLM",
    "GlmMoeDsaForCausalLMNextN",
})  # fmt: skip

_start = Handler("model_hook.py:handle_model_specific_adjustments")


@_start.adjusts("enforce_disable_flashinfer_allreduce_fusion", since="0.5.12")
def do_not_fuse_when_deterministic(c: Config) -> None:
    """Fused all-reduce adds in an order that depends on the batch, which deterministic inference rules out."""
    if c.enable_deterministic_inference:
        c.set(enforce_disable_flashinfer_allreduce_fusion=True)


@_start.adjusts("uses_mamba_radix_cache")
def no_recurrent_states_yet(c: Config) -> None:
    """The radix cache holds KV pages only, unless the model is a hybrid."""
    c.set(uses_mamba_radix_cache=False)


@_start.refuses(
    "SPC873", "dcp-on-npu", raises="ValueError", since="0.5.22", hardware_only=True,
    bad="gpu=npu -- --dcp-size 2 --tp-size 2", good="gpu=h100 model=deepseek-v3 -- --dcp-size 2 --tp-size 8",
)  # fmt: skip
def dcp_on_npu(c: Config) -> Refusal | None:
    """On Ascend NPUs decode context parallelism serves sparse-attention models only.

    Keep `--dcp-size` at 1 for other models there.
    """
    if c.gpu.platform != "npu" or c.dcp_size <= 1 or c.model.is_deepseek_dsa:
        return None
    return Refusal(
        at="dcp_size",
        related_fields=("model_path",),
        message=f"{c.shown('dcp_size')} is refused for {c.model.architecture} on {c.gpu.title}: only sparse-attention models have it.",
    )


_checks = Handler("model_hook.py:handle_model_specific_adjustments", since="0.5.16")


@_checks.refuses(
    "SPC874", "layer-split-cache-of-dense-attention", raises="ValueError",
    bad="--enable-dsa-cache-layer-split", good="model=deepseek-v3.2 -- --tp-size 8",
)  # fmt: skip
def layer_split_cache_of_dense_attention(c: Config) -> Refusal | None:
    """Only a sparse-attention model's cache can be split by layers.

    `--enable-dsa-cache-layer-split` is for DeepSeek V3.2, GLM-5 and their kin.
    """
    if not c.enable_dsa_cache_layer_split or c.model.is_deepseek_dsa:
        return None
    return Refusal(
        at="enable_dsa_cache_layer_split",
        related_fields=("model_path",),
        message=f"`--enable-dsa-cache-layer-split` is refused for {c.model.architecture}: it has no sparse attention.",
    )


@_checks.refuses(
    "SPC875", "cp-decode-attention-tp-of-other-model", raises="ValueError", since="0.5.17",
    bad="--enable-cp-decode-attn-tp", good="model=deepseek-v3 -- --tp-size 8",
)  # fmt: skip
def cp_decode_attention_tp_of_other_model(c: Config) -> Refusal | None:
    """Sharing attention weights out in decode under context parallelism is for DeepSeek V4 and GLM-5.

    `--enable-cp-decode-attn-tp` needs a model whose attention weights are whole on every context-parallel rank.
    """
    if not c.enable_cp_decode_attn_tp or c.model.architecture in CP_DECODE_ATTENTION_TP:
        return None
    return Refusal(
        at="enable_cp_decode_attn_tp",
        related_fields=("model_path",),
        message=f"`--enable-cp-decode-attn-tp` is refused for {c.model.architecture}: it works for DeepSeek V4 and GLM-5 only.",
    )


_tail = Handler("overrides.py:_sparse_head_overlap_disable", since="0.5.7")


@_tail.adjusts("disable_overlap_schedule")
def no_overlap_with_sparse_head(c: Config) -> None:
    """A sparse embedding head is read between batches, which the overlap schedule leaves no time for."""
    if c.env.is_set("SGLANG_EMBEDDINGS_SPARSE_HEAD"):
        c.set(disable_overlap_schedule=True)


handle_model_specific_adjustments = (
    _start,
    *families.first,
    _checks,
    *families.overrides,
    *deepseek.overrides,
    *deepseek_v4.overrides,
    *gpt_oss.overrides,
    *kimi.overrides,
    *minimax.overrides,
    *nemotron.overrides,
    *qwen.overrides,
    *kimi.after_overrides,
    *deepseek_v4.defaults,
    *deepseek.branch,
    *deepseek_v4.validation,
    *gpt_oss.branch,
    *nemotron.branch,
    *families.branch,
    *hybrid_before.start,
    *hybrid.handle_mamba_radix_cache,
    *hybrid_before.end,
    _tail,
    *fusion.passes,
)

handle_model_capability_adjustments = (*capability.passes, *deepseek_v4.capability)


fill_fallbacks = Handler("arg_utils.py:with_fallback", since="0.5.20")


@fill_fallbacks.adjusts("swa_full_tokens_ratio", "mamba_full_memory_ratio")
def share_memory_as_usual(c: Config) -> None:
    """Unless the model or you say otherwise, windows get 0.8 of the tokens of full layers, and recurrent states 0.9 of the KV cache."""
    if c.swa_full_tokens_ratio is None:
        c.set(swa_full_tokens_ratio=0.8)
    if c.mamba_full_memory_ratio is None:
        c.set(mamba_full_memory_ratio=0.9)


@fill_fallbacks.adjusts("enable_tf32_matmul", "mm_enable_dp_encoder", since="0.5.23", spelling=True)
def switch_off_what_nobody_asked_for(c: Config) -> None:
    """It is off: neither the launch nor the model asks for it."""
    if c.enable_tf32_matmul is None:
        c.set(enable_tf32_matmul=False)
    if c.mm_enable_dp_encoder is None:
        c.set(mm_enable_dp_encoder=False)
