"""Releases 0.5.1 to 0.5.5, of which only attention backends, page sizes and drafting are modelled.

Fields that other handlers of these releases would set are made unknown, so that nothing wrong is reported about them. The order is that of
ServerArgs.__post_init__ (0.5.1 and 0.5.2: one long method).
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Handler

MODELLED = frozenset({
    "model_path", "revision", "trust_remote_code", "attention_backend", "prefill_attention_backend", "decode_attention_backend",
    "page_size", "kv_cache_dtype", "tp_size", "dp_size", "enable_dp_attention", "context_length", "enable_beta_spec",
    "json_model_override_args", "disable_overlap_schedule", "enable_mixed_chunk",
})  # fmt: skip
"""Fields that stay as typed in these releases until a modelled handler sets them; in addition to those of speculative decoding."""

BACKEND_BY_MODEL = ("GptOssForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "Olmo2ForCausalLM")
"""Architectures for which the model-specific adjustments choose the attention backend (and so, maybe, the page size)."""

unmodelled = Handler("server_args.py:__post_init__", until="0.5.6")
WHY = "SGLang's handlers of this release are not followed"


@unmodelled.adjusts("device")
def device_of_hardware(c: Config) -> None:
    """SGLang runs on the accelerator it finds."""
    if c.device is None:
        c.set(device="cuda" if c.gpu.is_cuda or c.gpu.is_hip else c.gpu.platform)


@unmodelled.adjusts()
def leave_the_rest_open(c: Config) -> None:
    """What this release does with other settings is not modelled."""
    c.forget([n for n in c.fields() if n not in MODELLED and n != "device" and not n.startswith("speculative")], WHY)


@unmodelled.adjusts("attention_backend", "page_size", "kv_cache_dtype", "disable_overlap_schedule")
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
