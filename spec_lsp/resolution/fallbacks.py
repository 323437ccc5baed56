"""Fields that stay unset through resolution and read as a declared value afterwards.

Follows the `fallback=` of arg_groups/fields/*.py (arg_utils.py, with_fallback): handlers can still tell that nobody
set the field.
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Handler

apply_fallbacks = Handler("arg_utils.py:with_fallback", since="0.5.20")


@apply_fallbacks.adjusts("swa_full_tokens_ratio")
def default_sliding_window_share(c: Config) -> None:
    """Unless you say otherwise, the pool of sliding-window layers holds 0.8 tokens for each one of the full pool."""
    if c.swa_full_tokens_ratio is None:
        c.set(swa_full_tokens_ratio=0.8)


@apply_fallbacks.adjusts("mamba_full_memory_ratio")
def default_mamba_share(c: Config) -> None:
    """Unless you say otherwise, recurrent states get 0.9 times the memory of the full KV cache."""
    if c.mamba_full_memory_ratio is None:
        c.set(mamba_full_memory_ratio=0.9)


@apply_fallbacks.adjusts("enable_tf32_matmul", since="0.5.23")
def no_tf32(c: Config) -> None:
    """TF32 is off unless the model or you ask for it."""
    if c.enable_tf32_matmul is None:
        c.set(enable_tf32_matmul=False)


@apply_fallbacks.adjusts("mm_enable_dp_encoder", since="0.5.23")
def no_data_parallel_encoder(c: Config) -> None:
    """The image encoder is split over the ranks unless the model or you ask for copies."""
    if c.mm_enable_dp_encoder is None:
        c.set(mm_enable_dp_encoder=False)
