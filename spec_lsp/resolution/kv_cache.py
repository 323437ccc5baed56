"""The KV cache: its types, servers without one, and what radix, host and LMCache settings exclude.

Follows arg_groups/kv_cache_hook.py. The unified memory pool has a module of its own (unified_memory), as has sharding
(kv_sharding).

Left out: the check that a prefill backend is chosen when handle_prefill_only_disable_kv_cache runs, which it always
is.
"""

from __future__ import annotations

from typing import Any

from spec_lsp.resolution.attention import backend_field, backends_of
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, one_of, setting
from spec_lsp.resolution.ranks import attention_cp_size, attention_dp, attention_dp_field


def _earlier(name: str) -> tuple[Earlier, ...]:
    return (Earlier("0.5.19", f"server_args.py:_{name}"),)


def is_fp4(c: Config) -> bool:
    """Whether the KV cache is kept in 4 bits."""
    return c.kv_cache_dtype in (("nvfp4", "fp4_mx_block16") if c.since("0.5.16") else ("fp4_e2m1",))


# --- NVFP4 prefill ----------------------------------------------------------------------------------------------------

handle_nvfp4_prefill_kv_dequant_dtype = Handler(
    "kv_cache_hook.py:handle_nvfp4_prefill_kv_dequant_dtype", since="0.5.21"
)

_NVFP4_BACKEND = {"fp8_e4m3": "flashinfer", "nvfp4": "trtllm_mha"}
_NVFP4_DTYPE = {backend: dtype for dtype, backend in _NVFP4_BACKEND.items()}


def separate_windows(c: Config) -> bool:
    """Whether sliding-window layers have a KV pool of their own."""
    return c.model.is_hybrid_swa(bool(c.disable_hybrid_swa_memory))


def beside_full_attention(c: Config) -> str | None:
    """What this model's cache holds that is no page of full or latent attention, nor DeepSeek's sparse index."""
    if c.model.is_mambaish:
        return "recurrent states"
    if c.model.is_deepseek_v4 or separate_windows(c):
        return "sliding windows"
    return "sparse index" if c.model.is_minimax_sparse else None


def _nvfp4_prefill_dtype(c: Config) -> str | None:
    """The type that prefill computes NVFP4 pages in; None if the chosen backend supports neither."""
    if c.prefill_kv_cache_dequant_dtype != "auto":
        return str(c.prefill_kv_cache_dequant_dtype)
    backend = c.prefill_attention_backend or c.attention_backend
    if backend is not None:
        return _NVFP4_DTYPE.get(backend)
    return "nvfp4" if c.gpu.sm100 else "fp8_e4m3"


@handle_nvfp4_prefill_kv_dequant_dtype.refuses(
    "SPC350", "dequant-dtype-without-nvfp4", raises="ValueError",
    bad="--prefill-kv-cache-dequant-dtype fp8_e4m3",
    good="gpu=b200 -- --kv-cache-dtype nvfp4 --prefill-kv-cache-dequant-dtype fp8_e4m3",
)  # fmt: skip
def dequant_dtype_without_nvfp4(c: Config) -> Refusal | None:
    """Only an NVFP4 KV cache is converted for prefill.

    `--prefill-kv-cache-dequant-dtype` says what prefill computes NVFP4 pages in. With any other `--kv-cache-dtype`
    there is nothing to convert.
    """
    if c.prefill_kv_cache_dequant_dtype == "auto" or c.kv_cache_dtype == "nvfp4":
        return None
    return Refusal(
        at="prefill_kv_cache_dequant_dtype",
        related_fields=("kv_cache_dtype",),
        message=f"{c.shown('prefill_kv_cache_dequant_dtype')} applies to an NVFP4 KV cache only, and SGLang stops. "
        "Remove it, or keep the KV cache in nvfp4.",
        fixes=(dropping("prefill_kv_cache_dequant_dtype"), setting(kv_cache_dtype="nvfp4")),
    )


@handle_nvfp4_prefill_kv_dequant_dtype.refuses(
    "SPC351", "nvfp4-prefill-backend", raises="ValueError",
    bad="gpu=b200 -- --kv-cache-dtype nvfp4 --attention-backend triton", good="gpu=b200 -- --kv-cache-dtype nvfp4",
)  # fmt: skip
def nvfp4_prefill_backend(c: Config) -> Refusal | None:
    """This attention backend cannot prefill over an NVFP4 KV cache.

    `trtllm_mha` reads NVFP4 pages as they are (SM100), `flashinfer` reads them from an FP8 workspace. Leave the
    backend out and SGLang chooses the one that fits the device.
    """
    if c.kv_cache_dtype != "nvfp4":
        return None
    chosen = _nvfp4_prefill_dtype(c)
    typed = c.prefill_attention_backend
    if chosen is not None and typed in (None, _NVFP4_BACKEND[chosen]):
        return None
    at = backend_field(c, "prefill")
    return Refusal(
        at=at,
        related_fields=("kv_cache_dtype", "prefill_kv_cache_dequant_dtype"),
        message=f"{c.shown(at)} cannot prefill over an NVFP4 KV cache this way, and SGLang stops. Leave the backend "
        "out.",
        fixes=(dropping("attention_backend", "prefill_attention_backend"), setting(kv_cache_dtype="fp8_e4m3")),
    )


@handle_nvfp4_prefill_kv_dequant_dtype.refuses(
    "SPC352", "native-nvfp4-prefill-off-sm100", raises="ValueError", hardware_only=True,
    bad="gpu=rtxpro6000 -- --kv-cache-dtype nvfp4 --prefill-kv-cache-dequant-dtype nvfp4",
    good="gpu=b200 -- --kv-cache-dtype nvfp4 --prefill-kv-cache-dequant-dtype nvfp4",
)  # fmt: skip
def native_nvfp4_prefill_off_sm100(c: Config) -> Refusal | None:
    """Prefill can read NVFP4 pages as they are only on SM100 (B200, GB200, B300, GB300).

    Elsewhere it needs `--prefill-kv-cache-dequant-dtype fp8_e4m3`, with FlashInfer.
    """
    if c.kv_cache_dtype != "nvfp4" or _nvfp4_prefill_dtype(c) != "nvfp4" or c.gpu.sm100:
        return None
    at = "prefill_kv_cache_dequant_dtype"
    field = at if c.given(at) else backend_field(c, "prefill")
    return Refusal(
        at=field,
        related_fields=("kv_cache_dtype",),
        message=f"{c.shown(field)} makes prefill read NVFP4 pages as they are, which only SM100 can, and SGLang stops "
        f"on {c.gpu.title}. Let prefill convert them to fp8_e4m3.",
        fixes=(
            Change(set={at: "fp8_e4m3"}, drop=("attention_backend", "prefill_attention_backend")),
            setting(kv_cache_dtype="fp8_e4m3"),
        ),
    )


@handle_nvfp4_prefill_kv_dequant_dtype.refuses(
    "SPC353", "nvfp4-decode-backend", raises="ValueError",
    bad="gpu=b200 -- --kv-cache-dtype nvfp4 --decode-attention-backend triton",
    good="gpu=b200 -- --kv-cache-dtype nvfp4 --decode-attention-backend trtllm_mha",
)  # fmt: skip
def nvfp4_decode_backend(c: Config) -> Refusal | None:
    """Only `trtllm_mha` decodes over an NVFP4 KV cache.

    Leave `--decode-attention-backend` out: SGLang chooses it.
    """
    if c.kv_cache_dtype != "nvfp4" or c.decode_attention_backend in (None, "trtllm_mha"):
        return None
    return Refusal(
        at="decode_attention_backend",
        related_fields=("kv_cache_dtype",),
        message=f"{c.shown('decode_attention_backend')} cannot decode over an NVFP4 KV cache, and SGLang stops. Leave "
        "it out.",
        fixes=(dropping("decode_attention_backend"), setting(kv_cache_dtype="fp8_e4m3")),
    )


@handle_nvfp4_prefill_kv_dequant_dtype.adjusts(
    "prefill_attention_backend", "decode_attention_backend", "prefill_kv_cache_dequant_dtype"
)
def choose_nvfp4_backends(c: Config) -> None:
    """An NVFP4 KV cache is decoded with trtllm_mha, and prefilled with it or with FlashInfer over FP8."""
    if c.kv_cache_dtype != "nvfp4":
        return
    chosen = _nvfp4_prefill_dtype(c)
    if chosen is None:
        return
    c.set(prefill_attention_backend=_NVFP4_BACKEND[chosen], decode_attention_backend="trtllm_mha")
    if c.prefill_kv_cache_dequant_dtype == "auto":
        c.set(prefill_kv_cache_dequant_dtype=chosen)


# --- MXFP8 ------------------------------------------------------------------------------------------------------------

handle_mxfp8_kv_cache_compatibility = Handler(
    "kv_cache_hook.py:handle_mxfp8_kv_cache_compatibility",
    since="0.5.16",
    earlier=_earlier("handle_mxfp8_kv_cache_compatibility"),
)


@handle_mxfp8_kv_cache_compatibility.refuses(
    "SPC354", "mxfp8-kv-cache-off-blackwell", raises="ValueError", hardware_only=True,
    bad="--kv-cache-dtype mxfp8", good="--kv-cache-dtype fp8_e4m3",
)  # fmt: skip
def mxfp8_kv_cache_off_blackwell(c: Config) -> Refusal | None:
    """An MXFP8 KV cache needs a Blackwell GPU.

    Its scales, one for each block of values, are read by instructions that came with SM100. On older GPUs use
    `fp8_e4m3`.
    """
    if c.kv_cache_dtype != "mxfp8" or c.gpu.blackwell:
        return None
    return Refusal(
        at="kv_cache_dtype",
        message=f"{c.shown('kv_cache_dtype')} needs a Blackwell GPU, and SGLang stops on {c.gpu.title}. Use fp8_e4m3.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), dropping("kv_cache_dtype")),
    )


# --- FP4 --------------------------------------------------------------------------------------------------------------

handle_kv4_compatibility = Handler(
    "kv_cache_hook.py:handle_kv4_compatibility", when=is_fp4, since="0.5.7", earlier=_earlier("handle_kv4_compatibility")
)  # fmt: skip


@handle_kv4_compatibility.refuses(
    "SPC355", "nvfp4-kv-cache-off-blackwell", raises="RuntimeError", since="0.5.16", hardware_only=True,
    bad="sglang=0.5.20 -- --kv-cache-dtype nvfp4", good="gpu=b200 -- --kv-cache-dtype nvfp4",
)  # fmt: skip
def nvfp4_kv_cache_off_blackwell(c: Config) -> Refusal | None:
    """An NVFP4 KV cache needs a Blackwell GPU (SM100 or SM120).

    On older NVIDIA GPUs `fp4_mx_block16` keeps the KV cache in 4 bits too; `fp8_e4m3` keeps it in 8.
    """
    if c.kv_cache_dtype != "nvfp4" or not c.gpu.is_cuda or c.gpu.sm100 or c.gpu.sm120:
        return None
    return Refusal(
        at="kv_cache_dtype",
        message=f"{c.shown('kv_cache_dtype')} needs a Blackwell GPU, and SGLang stops on {c.gpu.title}. Use "
        "fp4_mx_block16 or fp8_e4m3.",
        fixes=(
            setting(kv_cache_dtype="fp8_e4m3"),
            setting(kv_cache_dtype="fp4_mx_block16"),
            dropping("kv_cache_dtype"),
        ),
    )


@handle_kv4_compatibility.refuses(
    "SPC356", "fp4-kv-cache-off-cuda", raises="RuntimeError", hardware_only=True,
    bad="gpu=mi300x -- --kv-cache-dtype fp4_mx_block16", good="gpu=mi300x -- --kv-cache-dtype fp8_e4m3",
)  # fmt: skip
def fp4_kv_cache_off_cuda(c: Config) -> Refusal | None:
    """A KV cache in 4 bits is for NVIDIA GPUs.

    SGLang has not tried it elsewhere and refuses. Use `fp8_e4m3`, or leave the type to SGLang.
    """
    if c.gpu.is_cuda:
        return None
    return Refusal(
        at="kv_cache_dtype",
        message=f"{c.shown('kv_cache_dtype')} is for NVIDIA GPUs, and SGLang stops on {c.gpu.title}. Use fp8_e4m3.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), dropping("kv_cache_dtype")),
    )


@handle_kv4_compatibility.refuses(
    "SPC357", "fp4-kv-cache-in-unified-memory", raises="ValueError", since="0.5.21",
    bad="gpu=b200 -- --kv-cache-dtype fp4_mx_block16 --enable-unified-memory",
    good="gpu=b200 -- --enable-unified-memory",
)  # fmt: skip
def fp4_kv_cache_in_unified_memory(c: Config) -> Refusal | None:
    """The unified memory pool has no room for the scales of a 4-bit KV cache.

    Keep the KV cache in another type, or leave `--enable-unified-memory` out.
    """
    if not c.gpu.is_cuda or not c.enable_unified_memory:
        return None
    return Refusal(
        at="enable_unified_memory",
        related_fields=("kv_cache_dtype",),
        message=f"{c.shown('enable_unified_memory')} cannot hold {c.shown('kv_cache_dtype')}, and SGLang stops. Remove "
        "one.",
        fixes=(dropping("enable_unified_memory"), dropping("kv_cache_dtype")),
    )


def _reads_native_nvfp4(c: Config) -> bool:
    """Whether SM100's trtllm_mha reads NVFP4 pages as they are, in prefill or decode."""
    return c.since("0.5.21") and c.kv_cache_dtype == "nvfp4" and c.gpu.sm100 and "trtllm_mha" in backends_of(c)


def _algorithm(c: Config) -> str | None:
    return None if c.speculative_algorithm is None else str(c.speculative_algorithm).upper()


@handle_kv4_compatibility.refuses(
    "SPC358", "drafting-over-native-nvfp4", raises="ValueError", since="0.5.21",
    bad="gpu=b200 -- --kv-cache-dtype nvfp4 --speculative-algorithm DFLASH "
    "--speculative-draft-model-path {models}/eagle3-draft",
    good="gpu=b200 -- --kv-cache-dtype nvfp4 --speculative-algorithm NGRAM --speculative-ngram-max-bfs-breadth 1",
)  # fmt: skip
def drafting_over_native_nvfp4(c: Config) -> Refusal | None:
    """This way of drafting cannot write an NVFP4 KV cache as SM100 reads it.

    EAGLE, EAGLE3 and NEXTN can, and NGRAM as a single chain (`--speculative-ngram-max-bfs-breadth 1`); the others
    commit tokens through writers that do not make the scales trtllm_mha expects.
    """
    if not _reads_native_nvfp4(c):
        return None
    algorithm = _algorithm(c)
    if algorithm in (None, "EAGLE", "EAGLE3", "NEXTN"):
        return None
    if algorithm == "NGRAM":
        if c.speculative_ngram_max_bfs_breadth == 1:
            return None
        return Refusal(
            at="speculative_ngram_max_bfs_breadth",
            related_fields=("kv_cache_dtype", "speculative_algorithm"),
            message=f"{c.shown('speculative_ngram_max_bfs_breadth')} makes a tree, which trtllm_mha cannot verify "
            "over an NVFP4 KV cache, and SGLang stops. Draft a single chain.",
            fixes=(setting(speculative_ngram_max_bfs_breadth=1), setting(kv_cache_dtype="fp8_e4m3")),
        )
    return Refusal(
        at="speculative_algorithm",
        related_fields=("kv_cache_dtype",),
        message=f"{c.shown('speculative_algorithm')} cannot write an NVFP4 KV cache as SM100 reads it, and SGLang "
        "stops. Keep the KV cache in another type, or draft with EAGLE.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), dropping("speculative_algorithm")),
    )


@handle_kv4_compatibility.adjusts("speculative_draft_attention_backend", since="0.5.21")
def draft_with_trtllm_mha(c: Config) -> None:
    """The draft's NVFP4 KV cache is laid out as trtllm_mha reads it."""
    if _reads_native_nvfp4(c) and _algorithm(c) not in (None, "NGRAM"):
        if c.speculative_draft_attention_backend is None:
            c.set(speculative_draft_attention_backend="trtllm_mha")


@handle_kv4_compatibility.refuses(
    "SPC359", "nvfp4-draft-backend", raises="ValueError", since="0.5.21",
    bad="gpu=b200 -- --kv-cache-dtype nvfp4 --speculative-algorithm EAGLE3 --speculative-draft-attention-backend "
    "triton --speculative-draft-model-path {models}/eagle3-draft",
    good="gpu=b200 -- --kv-cache-dtype nvfp4 --speculative-algorithm EAGLE3 --speculative-num-steps 3 "
    "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --speculative-draft-model-path {models}/eagle3-draft",
)  # fmt: skip
def nvfp4_draft_backend(c: Config) -> Refusal | None:
    """The draft model must read its NVFP4 KV cache with `trtllm_mha`.

    Its pages are laid out as the target's. Leave `--speculative-draft-attention-backend` out: SGLang chooses it.
    """
    if not _reads_native_nvfp4(c) or _algorithm(c) in (None, "NGRAM"):
        return None
    if c.speculative_draft_attention_backend == "trtllm_mha":
        return None
    return Refusal(
        at="speculative_draft_attention_backend",
        related_fields=("kv_cache_dtype",),
        message=f"{c.shown('speculative_draft_attention_backend')} cannot read the draft's NVFP4 KV cache, and SGLang "
        "stops. Remove it.",
        fixes=(dropping("speculative_draft_attention_backend"), setting(kv_cache_dtype="fp8_e4m3")),
    )


@handle_kv4_compatibility.adjusts("speculative_attention_mode", since="0.5.21")
def verify_with_decode_backend(c: Config) -> None:
    """Draft tokens over an NVFP4 KV cache are verified with the decode backend, which reads it as it is."""
    if c.speculative_algorithm is None or not _reads_native_nvfp4(c) or backends_of(c) != ("flashinfer", "trtllm_mha"):
        return
    if c.speculative_attention_mode == "prefill":
        c.set(speculative_attention_mode="decode")


@handle_kv4_compatibility.refuses(
    "SPC360", "native-nvfp4-in-disaggregation", raises="ValueError", since="0.5.21",
    bad="gpu=b200 -- --kv-cache-dtype nvfp4 --disaggregation-mode prefill",
    good="gpu=b200 -- --kv-cache-dtype nvfp4",
)  # fmt: skip
def native_nvfp4_in_disaggregation(c: Config) -> Refusal | None:
    """An NVFP4 KV cache as SM100 reads it cannot be sent between prefill and decode servers.

    The transfer does not support the layout of its scales. Keep the KV cache in `fp8_e4m3`.
    """
    if c.disaggregation_mode == "null" or not _reads_native_nvfp4(c):
        return None
    return Refusal(
        at="disaggregation_mode",
        related_fields=("kv_cache_dtype",),
        message=f"{c.shown('kv_cache_dtype')} cannot be sent between servers, so SGLang stops under "
        f"{c.shown('disaggregation_mode')}. Use fp8_e4m3.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), dropping("kv_cache_dtype")),
    )


@handle_kv4_compatibility.refuses(
    "SPC361", "native-nvfp4-in-host-cache", raises="ValueError", since="0.5.21",
    bad="gpu=b200 -- --kv-cache-dtype nvfp4 --enable-hierarchical-cache",
    good="gpu=b200 -- --kv-cache-dtype nvfp4",
)  # fmt: skip
def native_nvfp4_in_host_cache(c: Config) -> Refusal | None:
    """An NVFP4 KV cache as SM100 reads it cannot go to host memory.

    Neither the hierarchical cache nor LMCache keeps the layout of its scales. Use `fp8_e4m3`, or leave the host cache
    out.
    """
    if not (c.enable_hierarchical_cache or c.enable_lmcache) or not _reads_native_nvfp4(c):
        return None
    at = "enable_hierarchical_cache" if c.enable_hierarchical_cache else "enable_lmcache"
    return Refusal(
        at=at,
        related_fields=("kv_cache_dtype",),
        message=f"{c.shown(at)} cannot keep {c.shown('kv_cache_dtype')}, and SGLang stops. Remove one of the two.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), dropping(at)),
    )


def _fp4_backends(c: Config, prefill_fa4: bool) -> tuple[str, ...]:
    """The backends that read a 4-bit KV cache: for decode with fa4 prefill, else for both phases."""
    if not c.model.uses_mla:
        return ("triton", "torch_native", "flex_attention", *(() if prefill_fa4 else ("trtllm_mha",)))
    cutlass = ("cutlass_mla",) if c.before("0.5.20") else ()
    flashmla = ("flashmla",) if c.before("0.5.16") and not prefill_fa4 else ()
    return (*cutlass, "flashinfer", "trtllm_mla", *flashmla)


@handle_kv4_compatibility.refuses(
    "SPC362", "fp4-kv-cache-backend", raises="AssertionError",
    bad="gpu=b200 -- --kv-cache-dtype fp4_mx_block16 --attention-backend flashinfer",
    good="gpu=b200 -- --kv-cache-dtype fp4_mx_block16 --attention-backend triton",
)  # fmt: skip
def fp4_kv_cache_backend(c: Config) -> Refusal | None:
    """This attention backend cannot read a KV cache in 4 bits.

    Which can depends on the model: `triton`, `torch_native`, `flex_attention` and `trtllm_mha` for ordinary heads,
    `flashinfer` and `trtllm_mla` for MLA. With different backends for prefill and decode SGLang does not
    check (except `fa4` for prefill).
    """
    if not c.gpu.is_cuda:
        return None
    prefill, decode = backends_of(c)
    if prefill == "fa4":
        at, backend, allowed = backend_field(c, "decode"), decode, _fp4_backends(c, True)
    elif prefill == decode:
        at, backend, allowed = "attention_backend", c.attention_backend, _fp4_backends(c, False)
    else:
        return None
    if backend in allowed:
        return None
    return Refusal(
        at=at if c.given(at) else "kv_cache_dtype",
        related_fields=("kv_cache_dtype",),
        message=f"{c.shown(at)} cannot read {c.shown('kv_cache_dtype')}, and SGLang stops. Use {one_of(allowed)}.",
        fixes=(
            *(setting(**{at: name}) for name in allowed),
            setting(kv_cache_dtype="fp8_e4m3"),
            dropping("kv_cache_dtype"),
        ),
    )


# --- servers without a KV cache ---------------------------------------------------------------------------------------

NO_KV = "prefill_only_disable_kv_cache"

validate_prefill_only_disable_kv_cache_args = Handler(
    "kv_cache_hook.py:validate_prefill_only_disable_kv_cache_args",
    when=lambda c: bool(c.prefill_only_disable_kv_cache),
    since="0.5.12",
    earlier=_earlier("validate_prefill_only_disable_kv_cache_args"),
)

_NO_KV_GOOD = "--is-embedding --prefill-only-disable-kv-cache --chunked-prefill-size -1 --disable-radix-cache"


@validate_prefill_only_disable_kv_cache_args.refuses(
    "SPC363", "no-kv-cache-for-generation", raises="ValueError", bad="--prefill-only-disable-kv-cache",
    good=_NO_KV_GOOD,
)  # fmt: skip
def no_kv_cache_for_generation(c: Config) -> Refusal | None:
    """Only an embedding server can do without a KV cache.

    `--prefill-only-disable-kv-cache` gives no memory to the KV cache, since an embedding needs one pass and no token
    is generated. It needs `--is-embedding`.
    """
    if c.is_embedding:
        return None
    return Refusal(
        at=NO_KV,
        related_fields=("is_embedding",),
        message=f"{c.shown(NO_KV)} is for embedding servers, and SGLang stops without --is-embedding. Remove it to "
        "generate.",
        fixes=(dropping(NO_KV), setting(is_embedding=True)),
    )


@validate_prefill_only_disable_kv_cache_args.refuses(
    "SPC364", "no-kv-cache-in-scaled-type", raises="ValueError",
    bad=_NO_KV_GOOD + " --kv-cache-dtype fp4_mx_block16", good=_NO_KV_GOOD,
)  # fmt: skip
def no_kv_cache_in_scaled_type(c: Config) -> Refusal | None:
    """A KV cache that is not there cannot be kept in 4 bits or in MXFP8.

    These types have pools of their own, for their scales. Leave `--kv-cache-dtype` out.
    """
    if not is_fp4(c) and c.kv_cache_dtype != "mxfp8":
        return None
    return Refusal(
        at="kv_cache_dtype",
        related_fields=(NO_KV,),
        message=f"{c.shown('kv_cache_dtype')} cannot be combined with {c.shown(NO_KV)}, and SGLang stops. Leave the type out.",
        fixes=(dropping("kv_cache_dtype"), dropping(NO_KV)),
    )


@validate_prefill_only_disable_kv_cache_args.refuses(
    "SPC365", "chunked-prefill-without-kv-cache", raises="ValueError",
    bad="--is-embedding --prefill-only-disable-kv-cache --disable-radix-cache", good=_NO_KV_GOOD,
)  # fmt: skip
def chunked_prefill_without_kv_cache(c: Config) -> Refusal | None:
    """Without a KV cache a prompt must be prefilled in one pass.

    The second chunk of a prompt would read the first from the KV cache. Give `--chunked-prefill-size -1`.
    """
    if c.chunked_prefill_size == -1:
        return None
    return Refusal(
        at=c.first_given("chunked_prefill_size", NO_KV),
        related_fields=(NO_KV, "chunked_prefill_size"),
        message=f"{c.shown(NO_KV)} needs prefill in one pass, and SGLang stops unless `--chunked-prefill-size -1` is "
        "given.",
        fixes=(setting(chunked_prefill_size=-1), dropping(NO_KV)),
    )


@validate_prefill_only_disable_kv_cache_args.refuses(
    "SPC366", "radix-cache-without-kv-cache", raises="ValueError",
    bad="--is-embedding --prefill-only-disable-kv-cache --chunked-prefill-size -1", good=_NO_KV_GOOD,
)  # fmt: skip
def radix_cache_without_kv_cache(c: Config) -> Refusal | None:
    """Without a KV cache there are no prefixes to share.

    The radix cache would index slots that hold nothing. Give `--disable-radix-cache`.
    """
    if c.disable_radix_cache:
        return None
    return Refusal(
        at=NO_KV,
        related_fields=("disable_radix_cache",),
        message=f"{c.shown(NO_KV)} leaves the radix cache nothing to index, and SGLang stops unless it is disabled.",
        fixes=(setting(disable_radix_cache=True), dropping(NO_KV)),
    )


@validate_prefill_only_disable_kv_cache_args.refuses(
    "SPC367", "context-parallelism-without-kv-cache", raises="ValueError",
    bad=_NO_KV_GOOD + " --tp-size 2 --attn-cp-size 2",
    good=_NO_KV_GOOD,
)  # fmt: skip
def context_parallelism_without_kv_cache(c: Config) -> Refusal | None:
    """Context-parallel prefill goes through the KV cache.

    Its ranks write keys and values to the KV cache and gather them from it, so it cannot be left out. Remove
    `--enable-prefill-cp` and `--attn-cp-size`.
    """
    enable = "enable_prefill_cp" if c.since("0.5.14") else "enable_prefill_context_parallel"
    if attention_cp_size(c) <= 1 and not getattr(c, enable):
        return None
    at = "attn_cp_size" if attention_cp_size(c) > 1 else enable
    return Refusal(
        at=at,
        related_fields=(NO_KV,),
        message=f"{c.shown(at)} needs the KV cache that {c.shown(NO_KV)} takes away, and SGLang stops. Remove one of "
        "the two.",
        fixes=(dropping("attn_cp_size", enable), dropping(NO_KV)),
    )


@validate_prefill_only_disable_kv_cache_args.refuses(
    "SPC368", "hisparse-without-kv-cache", raises="ValueError", bad=_NO_KV_GOOD + " --enable-hisparse",
    good=_NO_KV_GOOD,
)  # fmt: skip
def hisparse_without_kv_cache(c: Config) -> Refusal | None:
    """HiSparse manages a KV cache of its own kind.

    It cannot be on where there is none. Remove `--enable-hisparse`.
    """
    if not c.enable_hisparse:
        return None
    return Refusal(
        at="enable_hisparse",
        related_fields=(NO_KV,),
        message=f"{c.shown('enable_hisparse')} manages the KV cache that {c.shown(NO_KV)} takes away, and SGLang "
        "stops. Remove one of the two.",
        fixes=(dropping("enable_hisparse"), dropping(NO_KV)),
    )


handle_prefill_only_disable_kv_cache = Handler(
    "kv_cache_hook.py:handle_prefill_only_disable_kv_cache",
    since="0.5.12",
    earlier=_earlier("handle_prefill_only_disable_kv_cache"),
)


@handle_prefill_only_disable_kv_cache.refuses(
    "SPC369", "no-kv-cache-off-flashattention", raises="ValueError",
    bad=_NO_KV_GOOD + " --attention-backend triton", good=_NO_KV_GOOD + " --attention-backend fa3",
)  # fmt: skip
def no_kv_cache_off_flashattention(c: Config) -> Refusal | None:
    """Only FlashAttention prefills without a KV cache.

    `fa3` and `fa4` can attend to keys and values that are never stored. Other backends read them back from the KV
    cache.
    """
    if not c.prefill_only_disable_kv_cache:
        return None
    prefill, _ = backends_of(c)
    if prefill in ("fa3", "fa4"):
        return None
    at = backend_field(c, "prefill")
    return Refusal(
        at=at if c.given(at) else NO_KV,
        related_fields=(NO_KV,),
        message=f"{c.shown(at)} reads keys and values back from the KV cache that {c.shown(NO_KV)} takes away, and "
        "SGLang stops. Prefill with fa3 or fa4.",
        fixes=(setting(**{at: "fa3"}), setting(**{at: "fa4"}), dropping(NO_KV)),
    )


# --- radix, host and LMCache ------------------------------------------------------------------------------------------

handle_cache_compatibility = Handler(
    "kv_cache_hook.py:handle_cache_compatibility", earlier=_earlier("handle_cache_compatibility")
)  # fmt: skip

_BACKUP = "disaggregation_decode_retraction_backup"
_OFFLOAD = "disaggregation_decode_enable_offload_kvcache"


@handle_cache_compatibility.refuses(
    "SPC370", "session-radix-cache-without-priority", raises="ValueError", since="0.5.15", until="0.5.17",
    bad="--enable-session-radix-cache", good="--enable-session-radix-cache --radix-eviction-policy priority",
)  # fmt: skip
def session_radix_cache_without_priority(c: Config) -> Refusal | None:
    """The session radix cache of this release needs eviction by priority.

    Give `--radix-eviction-policy priority` with it. Other releases ask for nothing.
    """
    if not c.enable_session_radix_cache or c.radix_eviction_policy == "priority":
        return None
    return Refusal(
        at="enable_session_radix_cache",
        related_fields=("radix_eviction_policy",),
        message=f"{c.shown('enable_session_radix_cache')} needs eviction by priority, and SGLang stops under "
        f"{c.shown('radix_eviction_policy')}.",
        fixes=(setting(radix_eviction_policy="priority"), dropping("enable_session_radix_cache")),
    )


@handle_cache_compatibility.refuses(
    "SPC371", "host-pool-backup-off-decode-server", raises="ValueError", since="0.5.18",
    bad="--disaggregation-decode-retraction-backup host_pool",
    good="--disaggregation-mode decode --disaggregation-decode-retraction-backup host_pool",
)  # fmt: skip
def host_pool_backup_off_decode_server(c: Config) -> Refusal | None:
    """Only a decode server keeps retracted requests in host memory.

    A decode server cannot prefill a request again that it had to retract, so it may back its KV cache up
    (`--disaggregation-decode-retraction-backup host_pool`). Other servers prefill again.
    """
    if c.disaggregation_decode_retraction_backup != "host_pool" or c.disaggregation_mode == "decode":
        return None
    return Refusal(
        at=_BACKUP,
        related_fields=("disaggregation_mode",),
        message=f"{c.shown(_BACKUP)} is for decode servers, and SGLang stops without `--disaggregation-mode decode`.",
        fixes=(dropping(_BACKUP), setting(disaggregation_mode="decode")),
    )


@handle_cache_compatibility.refuses(
    "SPC372", "host-pool-backup-with-dcp", raises="ValueError", since="0.5.18",
    bad="model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --disaggregation-mode decode "
    "--disaggregation-decode-retraction-backup host_pool",
    good="model=deepseek-v3 -- --tp-size 8 --disaggregation-mode decode --disaggregation-decode-retraction-backup "
    "host_pool",
)  # fmt: skip
def host_pool_backup_with_dcp(c: Config) -> Refusal | None:
    """Retracted requests cannot go to host memory under decode context parallelism.

    Each rank holds a part of their KV cache then, and the backup cannot tell which. Use `cpu_tensor`, or no decode
    context parallelism.
    """
    if c.disaggregation_decode_retraction_backup != "host_pool" or c.dcp_size <= 1:
        return None
    return Refusal(
        at=_BACKUP,
        related_fields=("dcp_size",),
        message=f"{c.shown(_BACKUP)} does not support {c.shown('dcp_size')}, and SGLang stops. Back up to cpu_tensor.",
        fixes=(Change(set={_BACKUP: "cpu_tensor"}), dropping(_BACKUP), setting(dcp_size=1)),
    )


@handle_cache_compatibility.refuses(
    "SPC373", "host-pool-backup-with-preemption", raises="ValueError", since="0.5.18",
    bad="--disaggregation-mode decode --disaggregation-decode-retraction-backup host_pool --enable-priority-scheduling",
    good="--disaggregation-mode decode --disaggregation-decode-retraction-backup host_pool "
    "--enable-priority-scheduling --disable-priority-preemption",
)  # fmt: skip
def host_pool_backup_with_preemption(c: Config) -> Refusal | None:
    """Requests that are preempted cannot be backed up to host memory.

    With `--enable-priority-scheduling` a more urgent request may take the place of a running one. Together with the
    `host_pool` backup that must be switched off: `--disable-priority-preemption`.
    """
    if c.disaggregation_decode_retraction_backup != "host_pool":
        return None
    if not c.enable_priority_scheduling or c.disable_priority_preemption:
        return None
    return Refusal(
        at=_BACKUP,
        related_fields=("enable_priority_scheduling", "disable_priority_preemption"),
        message=f"{c.shown(_BACKUP)} cannot be combined with the preemption of {c.shown('enable_priority_scheduling')}, and "
        "SGLang stops. Disable preemption.",
        fixes=(setting(disable_priority_preemption=True), dropping(_BACKUP), dropping("enable_priority_scheduling")),
    )


@handle_cache_compatibility.refuses(
    "SPC374", "tlru-threshold", raises="ValueError", since="0.5.21",
    bad="--radix-eviction-policy tlru",
    good="--radix-eviction-policy tlru --radix-eviction-policy-config "
    """'{"threshold": 2048, "next_prompt_estimate": 256}'""",
)  # fmt: skip
def tlru_threshold(c: Config) -> Refusal | None:
    """Eviction by tail latency (`tlru`) needs a threshold above the estimate of the next prompt.

    `tlru` spares tokens whose loss would not push a request over `threshold` tokens of prefill, expecting
    `next_prompt_estimate` new ones. Both come from `--radix-eviction-policy-config`, are 0 when left out, and must
    not be negative; with a threshold that is not larger it would be plain LRU, which SGLang refuses to call tlru.
    """
    if c.radix_eviction_policy != "tlru":
        return None
    config: Any = c.radix_eviction_policy_config or {}
    threshold, estimate = config.get("threshold", 0), config.get("next_prompt_estimate", 0)
    if threshold >= 0 and estimate >= 0 and threshold > estimate:
        return None
    return Refusal(
        at=c.first_given("radix_eviction_policy_config", "radix_eviction_policy"),
        related_fields=("radix_eviction_policy", "radix_eviction_policy_config"),
        message=f"{c.shown('radix_eviction_policy')} with threshold {threshold} and next_prompt_estimate {estimate} "
        "would evict as lru does, and SGLang stops. Give a threshold above the estimate.",
        fixes=(
            setting(radix_eviction_policy_config={"threshold": max(estimate, 0) + 1024, "next_prompt_estimate": max(estimate, 0)}),
            setting(radix_eviction_policy="lru"),
        ),
    )  # fmt: skip


@handle_cache_compatibility.refuses(
    "SPC375", "host-cache-without-radix-cache", raises="ValueError",
    bad="--enable-hierarchical-cache --disable-radix-cache", good="--enable-hierarchical-cache",
)  # fmt: skip
def host_cache_without_radix_cache(c: Config) -> Refusal | None:
    """The hierarchical cache extends the radix cache.

    It keeps in host memory (and storage) what the radix cache evicts from the GPU, so the radix cache must be on.
    """
    if not (c.enable_hierarchical_cache and c.disable_radix_cache):
        return None
    at = c.first_given("disable_radix_cache", "enable_hierarchical_cache")
    return Refusal(
        at=at,
        related_fields=("enable_hierarchical_cache", "disable_radix_cache"),
        message=f"{c.shown('enable_hierarchical_cache')} keeps what the radix cache evicts, but "
        f"{c.shown('disable_radix_cache')} turns that off, and SGLang stops. Remove one of the two.",
        fixes=(dropping("disable_radix_cache"), dropping("enable_hierarchical_cache")),
    )


@handle_cache_compatibility.refuses(
    "SPC376", "decode-offload-off-decode-server", raises="ValueError",
    bad="--disaggregation-decode-enable-offload-kvcache",
    good="--disaggregation-mode decode --disaggregation-decode-enable-offload-kvcache --hicache-storage-backend file",
)  # fmt: skip
def decode_offload_off_decode_server(c: Config) -> Refusal | None:
    """Only a decode server offloads what it has decoded.

    `--disaggregation-decode-enable-offload-kvcache` stores the KV cache of generated tokens, for the next turn of a
    conversation. Servers that prefill use the hierarchical cache (`--enable-hierarchical-cache`).
    """
    if not c.disaggregation_decode_enable_offload_kvcache or c.disaggregation_mode == "decode":
        return None
    return Refusal(
        at=_OFFLOAD,
        related_fields=("disaggregation_mode",),
        message=f"{c.shown(_OFFLOAD)} is for decode servers, and SGLang stops without `--disaggregation-mode decode`.",
        fixes=(dropping(_OFFLOAD), setting(disaggregation_mode="decode")),
    )


@handle_cache_compatibility.refuses(
    "SPC377", "decode-offload-without-storage", raises="ValueError", since="0.5.10",
    bad="--disaggregation-mode decode --disaggregation-decode-enable-offload-kvcache",
    good="--disaggregation-mode decode --disaggregation-decode-enable-offload-kvcache --hicache-storage-backend file",
)  # fmt: skip
def decode_offload_without_storage(c: Config) -> Refusal | None:
    """Offloading what was decoded needs a storage.

    Name it with `--hicache-storage-backend`.
    """
    if not c.disaggregation_decode_enable_offload_kvcache or c.disaggregation_mode != "decode":
        return None
    if c.hicache_storage_backend is not None:
        return None
    return Refusal(
        at=_OFFLOAD,
        related_fields=("hicache_storage_backend",),
        message=f"{c.shown(_OFFLOAD)} has nowhere to put the KV cache, and SGLang stops. Name a storage backend.",
        fixes=(setting(hicache_storage_backend="file"), dropping(_OFFLOAD)),
    )


@handle_cache_compatibility.refuses(
    "SPC378", "decode-offload-with-host-pool-backup", raises="ValueError", since="0.5.18",
    bad="--disaggregation-mode decode --disaggregation-decode-enable-offload-kvcache --hicache-storage-backend file "
    "--disaggregation-decode-retraction-backup host_pool",
    good="--disaggregation-mode decode --disaggregation-decode-enable-offload-kvcache --hicache-storage-backend file "
    "--disaggregation-decode-retraction-backup cpu_tensor",
)  # fmt: skip
def decode_offload_with_host_pool_backup(c: Config) -> Refusal | None:
    """Two host pools of a decode server exclude each other.

    One is for offloading what was decoded, the other for requests that were retracted. Back up to `cpu_tensor`, or do
    not offload.
    """
    if not c.disaggregation_decode_enable_offload_kvcache or c.disaggregation_decode_retraction_backup != "host_pool":
        return None
    if c.disaggregation_mode != "decode" or c.hicache_storage_backend is None:
        return None
    return Refusal(
        at=_BACKUP,
        related_fields=(_OFFLOAD,),
        message=f"{c.shown(_BACKUP)} and {c.shown(_OFFLOAD)} each build a host pool, and SGLang accepts only one of "
        "them.",
        fixes=(dropping(_BACKUP), dropping(_OFFLOAD)),
    )


@handle_cache_compatibility.refuses(
    "SPC379", "decode-offload-with-spec-v2", raises="ValueError", since="0.5.5", until="0.5.10",
    bad="SGLANG_ENABLE_SPEC_V2=1 -- --disaggregation-mode decode --disaggregation-decode-enable-offload-kvcache",
    good="--disaggregation-mode decode --disaggregation-decode-enable-offload-kvcache",
)  # fmt: skip
def decode_offload_with_spec_v2(c: Config) -> Refusal | None:
    """Offloading what was decoded does not work with SGLANG_ENABLE_SPEC_V2.

    The second version of speculative decoding, in this release, frees KV pages before they could be offloaded.
    """
    if not c.disaggregation_decode_enable_offload_kvcache or c.disaggregation_mode != "decode":
        return None
    if not c.env.flag("SGLANG_ENABLE_SPEC_V2"):
        return None
    return Refusal(
        at=_OFFLOAD,
        related_fields=("SGLANG_ENABLE_SPEC_V2",),
        message=f"{c.shown(_OFFLOAD)} does not work with SGLANG_ENABLE_SPEC_V2, and SGLang stops. Remove one of the two.",
        fixes=(Change(drop_env=("SGLANG_ENABLE_SPEC_V2",)), dropping(_OFFLOAD)),
    )


@handle_cache_compatibility.refuses(
    "SPC380", "sliding-window-share-out-of-range", raises="ValueError", since="0.5.7",
    bad="--swa-full-tokens-ratio 1.5", good="--swa-full-tokens-ratio 0.5",
)  # fmt: skip
def sliding_window_share_out_of_range(c: Config) -> Refusal | None:
    """The ratio for sliding-window layers must be above 0 and at most 1.

    Models that mix full and sliding-window layers keep two KV pools. `--swa-full-tokens-ratio` says how many tokens
    the sliding-window pool holds for each one of the full pool. It is checked for every model.
    """
    ratio = c.swa_full_tokens_ratio
    if ratio is None or 0 < ratio <= 1:
        return None
    return Refusal(
        at="swa_full_tokens_ratio",
        message=f"{c.shown('swa_full_tokens_ratio')} is out of range, and SGLang stops. Give a number above 0 and up to "
        "1, or remove it.",
        fixes=(dropping("swa_full_tokens_ratio"), setting(swa_full_tokens_ratio=1.0)),
    )


@handle_cache_compatibility.refuses(
    "SPC381", "negative-prefix-tails", raises="ValueError", since="0.5.21",
    bad="--swa-prefix-tails -1", good="--swa-prefix-tails 1",
)  # fmt: skip
def negative_prefix_tails(c: Config) -> Refusal | None:
    """The number of prefix tails to keep for sliding windows cannot be negative.

    A model with sliding windows may keep the last windows of cached prefixes, so that a request can continue from
    there. `--swa-prefix-tails` says how many; 0 keeps none.
    """
    tails = c.swa_prefix_tails
    if tails is None or tails >= 0:
        return None
    return Refusal(
        at="swa_prefix_tails",
        message=f"{c.shown('swa_prefix_tails')} is negative, and SGLang stops. Give 0 or more.",
        fixes=(dropping("swa_prefix_tails"), setting(swa_prefix_tails=0)),
    )


# LMCache: the conflicts of one flag, in SGLang's order


def _lmcache_conflict(c: Config) -> tuple[str, str, str] | None:
    """The first setting that LMCache excludes, with the exception SGLang raises and why."""
    if c.enable_hierarchical_cache:
        return "enable_hierarchical_cache", "ValueError", "both keep KV pages off the GPU"
    if c.enable_unified_cache_external_linker:
        return "enable_unified_cache_external_linker", "ValueError", "both keep KV pages off the GPU"
    if c.disable_radix_cache:
        return "disable_radix_cache", "ValueError", "it stores what the radix cache indexes"
    if c.speculative_algorithm is not None and str(c.speculative_algorithm).upper() != "NONE":
        return "speculative_algorithm", "NotImplementedError", "it does not store a draft's KV cache"
    if attention_dp(c):
        return attention_dp_field(c), "NotImplementedError", "its ranks do not know each other's requests"
    if c.dcp_size > 1:
        return "dcp_size", "NotImplementedError", "it does not know how the ranks split the KV cache"
    if c.enable_streaming_session:
        return "enable_streaming_session", "NotImplementedError", "it does not know sessions"
    if c.hicache_host_memory_mode == "buffer_only":
        return "hicache_host_memory_mode", "ValueError", "that setting is the hierarchical cache's"
    if c.disaggregation_mode != "null":
        return "disaggregation_mode", "NotImplementedError", "it works where one server prefills and decodes"
    return None


def _lmcache_refusal(c: Config, raises: str) -> Refusal | None:
    conflict = _lmcache_conflict(c) if c.enable_lmcache else None
    if conflict is None or conflict[1] != raises:
        return None
    at, _, why = conflict
    drop = dropping(at) if at != "dcp_size" else setting(dcp_size=1)
    return Refusal(
        at=at,
        related_fields=("enable_lmcache",),
        message=f"{c.shown('enable_lmcache')} cannot be combined with {c.shown(at)}: {why}. SGLang stops. Remove one of the "
        "two.",
        fixes=(drop, dropping("enable_lmcache")),
    )


@handle_cache_compatibility.refuses(
    "SPC382", "lmcache-beside-another-cache", raises="ValueError", since="0.5.21",
    bad="--enable-lmcache --enable-hierarchical-cache", good="--enable-lmcache",
)  # fmt: skip
def lmcache_beside_another_cache(c: Config) -> Refusal | None:
    """LMCache needs the radix cache and excludes the other caches off the GPU.

    The hierarchical cache, the external cache linker and LMCache each store what the radix cache knows; only one can.
    And `--hicache-host-memory-mode buffer_only` is a setting of the hierarchical cache.
    """
    return _lmcache_refusal(c, "ValueError")


@handle_cache_compatibility.refuses(
    "SPC383", "lmcache-with-unsupported-feature", raises="NotImplementedError", since="0.5.21",
    bad="--enable-lmcache --disaggregation-mode prefill", good="--enable-lmcache",
)  # fmt: skip
def lmcache_with_unsupported_feature(c: Config) -> Refusal | None:
    """LMCache does not work with this feature yet.

    It excludes speculative decoding, DP attention, decode context parallelism, streaming sessions, and servers that
    only prefill or only decode. The hierarchical cache (`--enable-hierarchical-cache`) knows most of them.
    """
    return _lmcache_refusal(c, "NotImplementedError")
