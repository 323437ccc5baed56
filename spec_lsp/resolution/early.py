"""Releases 0.5.1 to 0.5.5.

From 0.5.3 on their functions are those of 0.5.6 for the most part, and are followed with it; what others decide is made unknown, so that
nothing wrong is said of it: the adjustments of single models, and what 0.5.3 has otherwise. In 0.5.1 and 0.5.2 ServerArgs.__post_init__
is one long method, of which only attention backends, page sizes and drafting are followed.
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Handler

WHY = "SGLang's handlers of this release are not followed"
FOLLOWED = frozenset({
    "model_path", "revision", "trust_remote_code", "attention_backend", "prefill_attention_backend", "decode_attention_backend",
    "page_size", "kv_cache_dtype", "tp_size", "dp_size", "enable_dp_attention", "context_length", "enable_beta_spec",
    "json_model_override_args", "disable_overlap_schedule", "enable_mixed_chunk",
})  # fmt: skip
"""The fields that 0.5.1 and 0.5.2 leave as typed until a handler that is followed decides them; those of drafting come on top."""

unfollowed = Handler("server_args.py:__post_init__", until="0.5.3")


@unfollowed.adjusts("device")
def device_of_hardware(c: Config) -> None:
    """SGLang runs on the accelerator it finds."""
    if c.device is None:
        c.set(device="cuda" if c.gpu.is_cuda or c.gpu.is_hip else c.gpu.platform)


@unfollowed.adjusts()
def leave_the_rest_open(c: Config) -> None:
    """What this release does with other settings is not followed."""
    c.forget([n for n in c.fields() if n not in FOLLOWED and n != "device" and not n.startswith("speculative")], WHY)


# --- _handle_model_specific_adjustments ---------------------------------------------------------------------------------

model_specific_adjustments = Handler("server_args.py:_handle_model_specific_adjustments", until="0.5.6")

ADJUSTED = frozenset({
    "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GptOssForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM",
    "Gemma3ForConditionalGeneration", "Gemma3nForCausalLM", "Gemma3nForConditionalGeneration", "Olmo2ForCausalLM",
    "KimiLinearForCausalLM", "Qwen3NextForCausalLM",
})  # fmt: skip
"""The architectures that it names, beside those of Llama 4 and of sparse attention."""
BACKEND_BY_MODEL = ("GptOssForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "Olmo2ForCausalLM")
"""Those for which it chooses the attention backend (and so, maybe, the page size)."""
DECIDED = (
    "disable_hybrid_swa_memory", "disable_radix_cache", "dtype", "enable_flashinfer_allreduce_fusion", "moe_runner_backend",
    "nsa_decode_backend", "nsa_prefill_backend", "quantization",
)  # fmt: skip
"""What it sets, beside what `leave_model_adjustments_open` tells apart."""


@model_specific_adjustments.adjusts(*DECIDED, "enable_dp_attention", "dp_size")
def leave_other_fields_open(c: Config) -> None:
    """The model-specific adjustments of this release are not followed."""
    sparse = c.model.is_deepseek_dsa
    if sparse or "Llama4" in c.model.architecture or c.model.architecture in ADJUSTED or c.model.is_mambaish:
        c.forget((*DECIDED, *(("enable_dp_attention", "dp_size") if sparse else ())), WHY)


@model_specific_adjustments.adjusts("attention_backend", "page_size", "kv_cache_dtype", "disable_overlap_schedule")
def leave_model_adjustments_open(c: Config) -> None:
    """The model-specific adjustments of this release may choose the attention backend."""
    named = (c.attention_backend, c.prefill_attention_backend, c.decode_attention_backend)
    architecture = c.model.architecture
    chosen = (
        architecture in BACKEND_BY_MODEL or "Llama4" in architecture or c.model.is_mambaish or c.model.is_deepseek_dsa
    )
    if named == (None, None, None) and chosen:
        c.forget(("attention_backend", "page_size"), WHY)
    if c.model.is_deepseek_dsa or c.model.is_mambaish:
        c.forget(("page_size", "kv_cache_dtype", "disable_overlap_schedule"), WHY)


# --- what 0.5.3 has otherwise -------------------------------------------------------------------------------------------

graph_sizes = Handler("server_args.py:_handle_gpu_memory_settings", until="0.5.4")


@graph_sizes.adjusts("cuda_graph_max_bs", "cuda_graph_bs", "mem_fraction_static")
def leave_graph_sizes_open(c: Config) -> None:
    """The sizes of CUDA graphs of this release, and the memory that they take, are not followed."""
    sizes = ("cuda_graph_max_bs", "cuda_graph_bs", "mem_fraction_static")
    c.forget([name for name in sizes if not c.given(name)], WHY)


hicache = Handler("server_args.py:_handle_hicache", until="0.5.4")


@hicache.adjusts("hicache_io_backend", "hicache_mem_layout")
def leave_hierarchical_cache_open(c: Config) -> None:
    """The hierarchical cache of this release is not followed."""
    if c.enable_hierarchical_cache:
        c.forget(("hicache_io_backend", "hicache_mem_layout"), WHY)
