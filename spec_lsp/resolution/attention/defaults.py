"""The defaults of the attention backend, the page size and the sampling backend."""

from __future__ import annotations

from spec_lsp.resolution.attention.common import IN_COMPATIBILITY, has_flashinfer, one_chain_or_no_draft
from spec_lsp.resolution.engine import Config, Handler

FA3_BY_DEFAULT_BEFORE_0_5_8 = frozenset({
    "Qwen2ForCausalLM", "Llama4ForConditionalGeneration", "LlamaForCausalLM", "Olmo2ForCausalLM", "Gemma2ForCausalLM",
    "Gemma3ForConditionalGeneration", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "Glm4MoeForCausalLM",
    "Glm4vMoeForConditionalGeneration", "Step3VLForConditionalGeneration",
})  # fmt: skip


default = Handler("overrides.py:_attention_backend_default", since="0.5.4", earlier=IN_COMPATIBILITY)


@default.adjusts("attention_backend")
def equal_split_backends(c: Config) -> None:
    """Prefill and decode both name this backend."""
    if c.prefill_attention_backend is not None and c.prefill_attention_backend == c.decode_attention_backend:
        c.set(attention_backend=c.prefill_attention_backend)


@default.adjusts("attention_backend")
def choose_attention_backend(c: Config) -> None:
    """The fastest backend for this model, hardware and kind of drafting, as SGLang ranks them."""
    if c.attention_backend is None:
        c.set(attention_backend=default_backend(c))


def default_backend(c: Config) -> str:
    """get_default_attn_backend."""
    if c.since("0.5.10") and "WhisperForConditionalGeneration" in c.model.architectures:
        return "flashinfer"
    return _default_latent_backend(c) if c.model.uses_mla else _default_plain_backend(c)


def _default_plain_backend(c: Config) -> str:
    chain = one_chain_or_no_draft(c)
    if c.gpu.sm90 and chain and (c.since("0.5.8") or c.model.architecture in FA3_BY_DEFAULT_BEFORE_0_5_8):
        return "fa3"
    if chain and _trtllm_mha_is_default(c):
        return "fa4" if c.since("0.5.17") and c.model.has_asymmetric_kv else "trtllm_mha"
    if c.gpu.is_hip:
        return "aiter"
    if has_flashinfer(c) and not (c.since("0.5.11") and c.model.has_attention_sinks):
        return "flashinfer"
    return "triton"


def _trtllm_mha_is_default(c: Config) -> bool:
    if c.before("0.5.7"):
        return c.since("0.5.6.post2") and (c.gpu.sm100 or c.gpu.sm120)
    if not c.gpu.sm100:
        return False
    algorithm = c.speculative_algorithm
    if algorithm is None or c.speculative_eagle_topk is not None:
        return True
    return c.since("0.5.23") and str(algorithm).upper() == "DFLASH"


def _default_latent_backend(c: Config) -> str:
    if c.gpu.sm90:
        return "fa3"
    if c.gpu.sm100:
        return "flashinfer"
    if c.gpu.is_hip and c.model.get_num_kv_heads(c.tp_size) in (16, 128):
        return "aiter"
    return "triton"


page_size_default = Handler("overrides.py:_page_size_default")


@page_size_default.adjusts("page_size")
def choose_page_size(c: Config) -> None:
    """The KV cache is handed out token by token unless a backend needs pages."""
    if c.page_size is not None:
        return
    layout = c.env.text("SGLANG_AITER_KV_CACHE_LAYOUT", "nhd") or "nhd"
    vectorized = c.since("0.5.13") and layout.lower() == "vectorized_5d" and c.gpu.is_hip
    c.set(page_size=64 if vectorized else 1)


sampling_backend_default = Handler("overrides.py:_sampling_backend_default")


@sampling_backend_default.adjusts("sampling_backend")
def choose_sampling_backend(c: Config) -> None:
    """FlashInfer samples where it is available (NVIDIA), PyTorch elsewhere."""
    if c.sampling_backend is None:
        c.set(sampling_backend="flashinfer" if has_flashinfer(c) else "pytorch")
