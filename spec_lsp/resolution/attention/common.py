"""What attention modules share: where older releases decided, and questions about the backends."""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Earlier

IN_COMPATIBILITY = (
    Earlier("0.5.3", "server_args.py:__post_init__"),
    Earlier("0.5.15", "server_args.py:_handle_attention_backend_compatibility"),
)
IN_POST_INIT = IN_COMPATIBILITY[:1]


def has_flashinfer(c: Config) -> bool:
    """FlashInfer comes with SGLang on NVIDIA, and only there, unless SGLANG_IS_FLASHINFER_AVAILABLE says otherwise."""
    return c.gpu.is_cuda and c.env.flag("SGLANG_IS_FLASHINFER_AVAILABLE", True)


def has_amx(c: Config) -> bool:
    """Whether the CPU has AMX tiles; assumed to be absent, as a launch does not show it."""
    return False


def backends_of(c: Config) -> tuple[str | None, str | None]:
    """The current (prefill, decode) backends: a split field, else the common one."""
    return c.prefill_attention_backend or c.attention_backend, c.decode_attention_backend or c.attention_backend


def backend_field(c: Config, phase: str) -> str:
    """The field that decides a phase's backend ("prefill" or "decode")."""
    split = f"{phase}_attention_backend"
    return split if getattr(c, split) else "attention_backend"


def main_or_decode_is(c: Config, backend: str) -> bool:
    """Whether the common or the decode backend is this one."""
    return backend in (c.attention_backend, c.decode_attention_backend)


def any_backend_is(c: Config, backend: str) -> bool:
    """Whether the common, the decode or the prefill backend is this one."""
    return backend in (c.attention_backend, c.decode_attention_backend, c.prefill_attention_backend)


def field_naming(c: Config, backend: str) -> str:
    """The field to point at for a backend: one that names it, preferably a typed one."""
    names = ("attention_backend", "decode_attention_backend", "prefill_attention_backend")
    naming = [name for name in names if getattr(c, name) == backend]
    return next((name for name in naming if c.given(name)), naming[0] if naming else names[0])


def one_chain_or_no_draft(c: Config) -> bool:
    """is_no_spec_infer_or_topk_one: topk unset, or 1 with pages of one token."""
    return c.speculative_eagle_topk is None or (c.speculative_eagle_topk == 1 and c.page_size in (1, None))
