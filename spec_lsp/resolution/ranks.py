"""How a launch's ranks are divided: attention's data, context and tensor parallelism."""

from __future__ import annotations

from spec_lsp.resolution.engine import Change, Config, dropping


def has_attn_dp_size(c: Config) -> bool:
    """Whether attention-DP groups have a field of their own in this release; before, `dp_size` counted them."""
    return c.since("0.5.22")


def attention_dp(c: Config) -> bool:
    """Whether attention runs data parallel (runtime_context.attn_dp_enabled_of)."""
    if has_attn_dp_size(c):
        return bool(c.attn_dp_size > 1 or c.ep_join_mode == "scale")
    return bool(c.enable_dp_attention)


def attention_dp_size(c: Config) -> int:
    """How many attention-DP groups there are; 1 without DP attention."""
    if has_attn_dp_size(c):
        return int(c.attn_dp_size)
    return int(c.dp_size) if c.enable_dp_attention else 1


def attention_dp_field(c: Config) -> str:
    """The field that sets the number of attention-DP groups in this release."""
    return "attn_dp_size" if has_attn_dp_size(c) else "dp_size"


def attention_dp_switch(c: Config) -> str:
    """The field that turns attention data parallelism on in this release."""
    return "attn_dp_size" if has_attn_dp_size(c) else "enable_dp_attention"


def no_attention_dp(c: Config) -> Change:
    """The change that turns attention data parallelism off: the number of its groups would mean replicas by itself."""
    return dropping("attn_dp_size") if has_attn_dp_size(c) else dropping("enable_dp_attention", "dp_size")


def data_parallel_ranks(c: Config) -> int:
    """Replicas times attention-DP groups (runtime_context.num_dp_ranks_of)."""
    return int(c.dp_size * c.attn_dp_size) if has_attn_dp_size(c) else int(c.dp_size)


def attention_cp_size(c: Config) -> int:
    """Attention context-parallel width; 1 in releases without it."""
    return int(c.attn_cp_size or 1)


def attention_tp_size(c: Config) -> int:
    """The tensor-parallel width of attention: what remains of the TP group (runtime_context.derive_attn_tp_size)."""
    return int(c.tp_size) // attention_dp_size(c) // attention_cp_size(c)


def loads_from_instance(c: Config) -> bool:
    """Whether the model comes from another instance, so that its config.json cannot be read."""
    return str(c.model_path).startswith("instance://")
