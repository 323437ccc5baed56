"""Backends for multi-head latent attention (MLA): their pages, KV cache types and hardware."""

from __future__ import annotations

from spec_lsp.resolution.attention.common import IN_COMPATIBILITY, any_backend_is, field_naming, main_or_decode_is
from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, dropping, setting

pages = Handler("overrides.py:_mla_backend_page_constraints", earlier=IN_COMPATIBILITY)


@pages.adjusts("page_size")
def flashmla_pages(c: Config) -> None:
    """FlashMLA works on KV pages of 64 tokens."""
    if main_or_decode_is(c, "flashmla"):
        c.set(page_size=64)


@pages.adjusts("page_size", until="0.5.20")
def cutlass_mla_pages(c: Config) -> None:
    """CUTLASS MLA works on KV pages of 128 tokens."""
    if main_or_decode_is(c, "cutlass_mla"):
        c.set(page_size=128)


@pages.adjusts("page_size")
def trtllm_mla_pages(c: Config) -> None:
    """trtllm_mla works on KV pages of 32 or 64 tokens."""
    if main_or_decode_is(c, "trtllm_mla") and c.page_size not in (32, 64):
        c.set(page_size=64)


@pages.adjusts("page_size", since="0.5.12", until="0.5.23")
def tokenspeed_mla_pages(c: Config) -> None:
    """tokenspeed_mla works on KV pages of 32 or 64 tokens."""
    if main_or_decode_is(c, "tokenspeed_mla") and c.page_size not in (32, 64):
        c.set(page_size=64)


@pages.adjusts("page_size", since="0.5.13")
def cutedsl_mla_pages(c: Config) -> None:
    """cutedsl_mla works on KV pages of 32 or 64 tokens."""
    if any_backend_is(c, "cutedsl_mla") and c.page_size not in (32, 64):
        c.set(page_size=64)


@pages.adjusts("page_size")
def trtllm_mha_pages(c: Config) -> None:
    """TensorRT-LLM's attention works on KV pages of 16, 32 or 64 tokens (128 too since 0.5.17)."""
    drafts = c.since("0.5.17") and c.speculative_draft_attention_backend == "trtllm_mha"
    if not drafts and not any_backend_is(c, "trtllm_mha"):
        return
    if c.page_size not in ((16, 32, 64, 128) if c.since("0.5.17") else (16, 32, 64)):
        c.set(page_size=64)


@pages.adjusts("page_size", since="0.5.17")
def hpc_ops_pages(c: Config) -> None:
    """HPC-Ops works on KV pages of 64 tokens."""
    if any_backend_is(c, "hpc_ops"):
        c.set(page_size=64)


checks = Handler("overrides.py:_mla_kv_cache_dtype_checks", earlier=IN_COMPATIBILITY)
OTHER_LATENT_BACKENDS = {"sm90": ("fa3", "flashmla"), "other": ("triton", "flashinfer")}


def _other_latent_backends(c: Config) -> tuple[str, ...]:
    return OTHER_LATENT_BACKENDS["sm90" if c.gpu.sm90 else "other"]


@checks.refuses(
    "SPC205",
    "trtllm-mla-off-blackwell",
    raises="ValueError",
    hardware_only=True,
    bad="model=deepseek-v3 -- --tp-size 8 --attention-backend trtllm_mla",
    good="model=deepseek-v3 gpu=b200 -- --tp-size 8 --attention-backend trtllm_mla",
)
def trtllm_mla_off_blackwell(c: Config) -> Refusal | None:
    """trtllm_mla runs on Blackwell only.

    Its kernels are built for SM100 and SM120. On Hopper the fast backends for MLA are fa3 and FlashMLA,
    elsewhere triton.
    """
    if not main_or_decode_is(c, "trtllm_mla") or c.gpu.sm100 or (c.gpu.sm120 and c.since("0.5.4")):
        return None
    at = field_naming(c, "trtllm_mla")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused on {c.gpu.title}: its kernels exist for Blackwell (SM100, SM120) only.",
        fixes=(dropping(at), *(setting(**{at: name}) for name in _other_latent_backends(c))),
    )


@checks.refuses(
    "SPC206",
    "trtllm-mla-kv-cache-dtype",
    raises="ValueError",
    bad="model=deepseek-v3 gpu=b200 -- --tp-size 8 --attention-backend trtllm_mla --kv-cache-dtype fp8_e5m2",
    good="model=deepseek-v3 gpu=b200 -- --tp-size 8 --attention-backend trtllm_mla --kv-cache-dtype fp8_e4m3",
)
def trtllm_mla_kv_cache_dtype(c: Config) -> Refusal | None:
    """trtllm_mla supports few KV cache types.

    Its kernels read a cache in bfloat16 or fp8_e4m3 (in some releases fp4_e2m1 too). `bf16` is accepted, `bfloat16` is
    not, although SGLang lists both.
    """
    if not main_or_decode_is(c, "trtllm_mla"):
        return None
    allowed = _trtllm_mla_dtypes(c)
    if c.kv_cache_dtype in allowed:
        return None
    return Refusal(
        at="kv_cache_dtype",
        related_fields=(field_naming(c, "trtllm_mla"),),
        message=f"{c.shown('kv_cache_dtype')} is refused with trtllm_mla: its kernels read a KV cache of "
        f"{', '.join(allowed)}.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), dropping("kv_cache_dtype")),
    )


def _trtllm_mla_dtypes(c: Config) -> tuple[str, ...]:
    if c.since("0.5.21"):
        return ("fp8_e4m3", "bf16", "auto")
    if c.since("0.5.7"):
        return ("fp8_e4m3", "fp4_e2m1", "bf16", "auto")
    return ("fp8_e4m3", "fp4_e2m1", "auto") if c.since("0.5.4") else ("fp8_e4m3", "auto")


@checks.refuses(
    "SPC207",
    "tokenspeed-mla-off-blackwell",
    raises="ValueError",
    since="0.5.12",
    until="0.5.23",
    hardware_only=True,
    bad="sglang=0.5.19 model=deepseek-v3 -- --tp-size 8 --attention-backend tokenspeed_mla",
    good="sglang=0.5.19 model=deepseek-v3 gpu=b200 -- --tp-size 8 --attention-backend tokenspeed_mla --kv-cache-dtype "
    "fp8_e4m3",
)
def tokenspeed_mla_off_blackwell(c: Config) -> Refusal | None:
    """tokenspeed_mla runs on Blackwell only.

    Its kernels are built for SM100 and SM120; use fa3 or FlashMLA on Hopper, triton elsewhere.
    """
    if not main_or_decode_is(c, "tokenspeed_mla") or c.gpu.sm100 or c.gpu.sm120:
        return None
    at = field_naming(c, "tokenspeed_mla")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused on {c.gpu.title}: its kernels exist for Blackwell (SM100, SM120) only.",
        fixes=(dropping(at), *(setting(**{at: name}) for name in _other_latent_backends(c))),
    )


@checks.refuses(
    "SPC208",
    "tokenspeed-mla-kv-cache-dtype",
    raises="ValueError",
    since="0.5.12",
    until="0.5.23",
    bad="sglang=0.5.19 model=deepseek-v3 gpu=b200 -- --tp-size 8 --attention-backend tokenspeed_mla",
    good="sglang=0.5.19 model=deepseek-v3 gpu=b200 -- --tp-size 8 --attention-backend tokenspeed_mla --kv-cache-dtype "
    "fp8_e4m3",
)
def tokenspeed_mla_kv_cache_dtype(c: Config) -> Refusal | None:
    """tokenspeed_mla reads an fp8_e4m3 KV cache only.

    Name the type: `--kv-cache-dtype fp8_e4m3`. The default (`auto`) keeps the model's own type and is refused.
    """
    if not main_or_decode_is(c, "tokenspeed_mla") or c.kv_cache_dtype == "fp8_e4m3":
        return None
    at = field_naming(c, "tokenspeed_mla")
    return Refusal(
        at=c.first_given("kv_cache_dtype", at),
        related_fields=(at,) if c.given("kv_cache_dtype") else ("kv_cache_dtype",),
        message=f"{c.shown(at)} is refused with KV cache type {c.kv_cache_dtype}: its kernels read fp8_e4m3 only.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), setting(**{at: "trtllm_mla"})),
    )


cutedsl = Handler(
    "overrides.py:_cutedsl_prefill_backend_fill",
    since="0.5.13",
    when=lambda c: any_backend_is(c, "cutedsl_mla"),
    earlier=IN_COMPATIBILITY,
)


@cutedsl.refuses(
    "SPC209",
    "cutedsl-mla-for-prefill",
    raises="AssertionError",
    bad="model=deepseek-v3 gpu=b200 -- --tp-size 8 --prefill-attention-backend cutedsl_mla",
    good="model=deepseek-v3 gpu=b200 -- --tp-size 8 --decode-attention-backend cutedsl_mla --attention-backend "
    "trtllm_mla",
)
def cutedsl_mla_for_prefill(c: Config) -> Refusal | None:
    """cutedsl_mla only decodes.

    It has no prefill kernels. Name it for decoding; SGLang then prefills with trtllm_mla unless told otherwise.
    """
    if c.prefill_attention_backend != "cutedsl_mla":
        return None
    return Refusal(
        at="prefill_attention_backend",
        message=f"{c.shown('prefill_attention_backend')} is refused: it has kernels for decoding only.",
        fixes=(
            setting(prefill_attention_backend="trtllm_mla"),
            Change(set={"decode_attention_backend": "cutedsl_mla"}, drop=("prefill_attention_backend",)),
            dropping("prefill_attention_backend"),
        ),
    )


@cutedsl.refuses(
    "SPC210",
    "cutedsl-mla-off-sm100",
    raises="ValueError",
    hardware_only=True,
    bad="model=deepseek-v3 -- --tp-size 8 --decode-attention-backend cutedsl_mla",
    good="model=deepseek-v3 gpu=b200 -- --tp-size 8 --decode-attention-backend cutedsl_mla",
)
def cutedsl_mla_off_sm100(c: Config) -> Refusal | None:
    """cutedsl_mla runs on SM100 only.

    Data-centre Blackwell (B200, GB200, B300, GB300) has it; on Hopper use fa3 or FlashMLA, elsewhere triton.
    """
    if c.gpu.sm100:
        return None
    at = field_naming(c, "cutedsl_mla")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused on {c.gpu.title}: its kernels exist for SM100 (B200, GB200, B300, GB300) "
        f"only.",
        fixes=(dropping(at), *(setting(**{at: name}) for name in _other_latent_backends(c))),
    )


@cutedsl.refuses(
    "SPC211",
    "cutedsl-mla-kv-cache-dtype",
    raises="ValueError",
    bad="model=deepseek-v3 gpu=b200 -- --tp-size 8 --decode-attention-backend cutedsl_mla --kv-cache-dtype fp8_e5m2",
    good="model=deepseek-v3 gpu=b200 -- --tp-size 8 --decode-attention-backend cutedsl_mla --kv-cache-dtype fp8_e4m3",
)
def cutedsl_mla_kv_cache_dtype(c: Config) -> Refusal | None:
    """cutedsl_mla reads a KV cache in fp8_e4m3 or bfloat16.

    Other types of `--kv-cache-dtype` have no kernel there.
    """
    if c.kv_cache_dtype in ("fp8_e4m3", "bf16", "bfloat16", "auto"):
        return None
    return Refusal(
        at="kv_cache_dtype",
        related_fields=(field_naming(c, "cutedsl_mla"),),
        message=f"{c.shown('kv_cache_dtype')} is refused with cutedsl_mla: its kernels read fp8_e4m3 or bfloat16.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), dropping("kv_cache_dtype")),
    )


@cutedsl.adjusts("prefill_attention_backend")
def prefill_beside_cutedsl(c: Config) -> None:
    """cutedsl_mla only decodes, so trtllm_mla does the prefill."""
    if c.prefill_attention_backend is None:
        c.set(prefill_attention_backend="trtllm_mla")
