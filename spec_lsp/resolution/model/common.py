"""Questions that the model families share."""

from __future__ import annotations

from spec_lsp.resolution import cuda_graph
from spec_lsp.resolution.engine import Config


def all_backends_unset(c: Config) -> bool:
    """`is_attention_backend_not_set`: none of the three attention backends is named."""
    return c.attention_backend is None and c.prefill_attention_backend is None and c.decode_attention_backend is None


def is_blackwell(c: Config) -> bool:
    """SM100 or SM120."""
    return c.gpu.sm100 or c.gpu.sm120


def no_prefill_cuda_graph(c: Config) -> None:
    """Do not capture prefill in a CUDA graph."""
    if c.since("0.5.14"):
        cuda_graph.disable(c, cuda_graph.PREFILL)
    else:
        c.set(disable_piecewise_cuda_graph=True)


def cp_field(c: Config) -> str:
    """The switch for context parallelism of prefill in models of DeepSeek's kind."""
    if c.since("0.5.14"):
        return "enable_prefill_cp"
    return "enable_dsa_prefill_context_parallel" if c.since("0.5.13") else "enable_nsa_prefill_context_parallel"


def cp_mode_field(c: Config) -> str:
    """The field that says how a prompt is divided."""
    if c.since("0.5.14"):
        return "cp_strategy"
    return "dsa_prefill_cp_mode" if c.since("0.5.13") else "nsa_prefill_cp_mode"
