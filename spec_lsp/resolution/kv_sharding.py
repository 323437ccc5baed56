"""A KV cache whose pages are striped over the ranks of a prefill server (`--enable-kv-cache-sharding`).

Follows arg_groups/kv_shard_hook.py.

Left out: chunks that SGLang cannot round to pages because it does not know the device's memory, or because rounding
would leave none of it.
"""

from __future__ import annotations

from spec_lsp.records import NamedTuple
from spec_lsp.resolution.attention import backend_field, backends_of
from spec_lsp.resolution.cuda_graph import DECODE, DISABLED, PREFILL, backend_of, disable
from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.ranks import attention_dp, attention_dp_field

SHARDING = "enable_kv_cache_sharding"


class Conflict(NamedTuple):
    """What sharding excludes: the field to look at, why, and the fix."""

    at: str
    why: str
    fix: Change


handle_kv_cache_sharding = Handler(
    "kv_shard_hook.py:handle_kv_cache_sharding", when=lambda c: bool(c.enable_kv_cache_sharding), since="0.5.22"
)

_PREFILL = "--disaggregation-mode prefill --enable-kv-cache-sharding --page-size 64 --attention-backend fa3"
_GOOD = _PREFILL + " --tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag"


@handle_kv_cache_sharding.refuses(
    "SPC324", "sharded-kv-cache-off-prefill-server", raises="ValueError",
    bad="--enable-kv-cache-sharding --page-size 64",
    good=_GOOD,
)  # fmt: skip
def sharded_kv_cache_off_prefill_server(c: Config) -> Refusal | None:
    """Only a prefill server stripes its KV cache over its ranks.

    Each rank keeps a stripe of every page, which is enough to send pages away but not to decode from them. Give
    `--disaggregation-mode prefill`, or leave sharding out.
    """
    if c.disaggregation_mode == "prefill":
        return None
    return Refusal(
        at=SHARDING,
        related_fields=("disaggregation_mode",),
        message=f"{c.shown(SHARDING)} is for prefill servers, and SGLang stops without `--disaggregation-mode prefill`.",
        fixes=(dropping(SHARDING), setting(disaggregation_mode="prefill")),
    )


def _refusal(c: Config, conflict: Conflict | None) -> Refusal | None:
    if conflict is None or c.disaggregation_mode != "prefill":
        return None
    shown = c.shown(conflict.at) if c.known(conflict.at) else conflict.at
    with_it = f"cannot be combined with {shown}" if conflict.at != SHARDING else "cannot be used here"
    return Refusal(
        at=conflict.at if c.given(conflict.at) or c.env.is_set(conflict.at) else SHARDING,
        related_fields=(SHARDING, conflict.at),
        message=f"{c.shown(SHARDING)} {with_it}: {conflict.why}. SGLang stops. "
        + ("Change one of the two." if conflict.at != SHARDING else "Remove it."),
        fixes=(conflict.fix, dropping(SHARDING)),
    )


def _excluded(c: Config) -> Conflict | None:
    """The first feature that cannot work with striped pages, in SGLang's order."""
    if c.speculative_algorithm is not None and not _drafts_one_chain_of_glm(c):
        return Conflict("speculative_algorithm", "a draft needs whole pages", dropping("speculative_algorithm"))
    if c.dllm_algorithm is not None:
        return Conflict("dllm_algorithm", "diffusion models need whole pages", dropping("dllm_algorithm"))
    if c.radix_cache_backend is not None:
        return Conflict(
            "radix_cache_backend", "only the built-in radix cache knows stripes", dropping("radix_cache_backend")
        )
    core = "SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND"
    if not c.disable_radix_cache and c.env.text(core, _default_tree_core(c)) != "python":
        return Conflict(core, "only the Python core of the radix tree knows stripes", Change(set_env={core: "python"}))
    for field, why in _EXCLUDED[:5]:
        if getattr(c, field):
            return Conflict(field, why, dropping(field))
    if c.dcp_size > 1:
        return Conflict("dcp_size", "both split the KV cache over the ranks", setting(dcp_size=1))
    return _host_cache(c) or _scheduling(c)


_EXCLUDED = (
    ("enable_unified_cache_external_linker", "what the linker loads back is not striped"),
    ("enable_streaming_session", "sessions do not know which rank holds which stripe"),
    ("enable_session_radix_cache", "sessions do not know which rank holds which stripe"),
    ("enable_flexkv", "what FlexKV loads back is not striped"),
    ("enable_unified_memory", "the unified pool has addresses of its own"),
    ("enable_lmcache", "LMCache stores whole pages"),
    ("enable_hisparse", "HiSparse needs whole pages on each rank"),
)


def _default_tree_core(c: Config) -> str:
    """For sharding 0.5.23 takes the Python core unless another is named; 0.5.22 keeps its general default."""
    return "python" if c.since("0.5.23") else "rust"


def _drafts_one_chain_of_glm(c: Config) -> bool:
    if c.before("0.5.23") or c.speculative_algorithm != "EAGLE" or c.model.architecture != "GlmMoeDsaForCausalLM":
        return False
    layers = c.model.text_hf("num_nextn_predict_layers")
    return bool(layers == 1 and c.speculative_eagle_topk == 1 and not c.enable_multi_layer_eagle)


def _host_cache(c: Config) -> Conflict | None:
    at = "enable_hierarchical_cache"
    if not c.enable_hierarchical_cache:
        return None
    if c.before("0.5.23"):
        return Conflict(at, "the host cache keeps whole pages", dropping(at))
    if c.hicache_storage_backend is not None:
        return Conflict("hicache_storage_backend", "storage keeps whole pages", dropping("hicache_storage_backend"))
    if not c.model.is_deepseek_dsa:
        return None
    if c.hicache_host_memory_mode != "cache":
        mode = "hicache_host_memory_mode"
        return Conflict(mode, "stripes must stay in host memory", setting(hicache_host_memory_mode="cache"))
    if c.hicache_io_backend != "kernel":
        return Conflict("hicache_io_backend", "stripes are copied by kernel", setting(hicache_io_backend="kernel"))
    if c.hicache_mem_layout not in ("layer_first", "page_first"):
        layout = setting(hicache_mem_layout="page_first")
        return Conflict("hicache_mem_layout", "stripes lie layer by layer or page by page", layout)
    return None


def _scheduling(c: Config) -> Conflict | None:
    for field, why in _EXCLUDED[5:]:
        if getattr(c, field):
            return Conflict(field, why, dropping(field))
    if c.enable_dynamic_chunking and c.pp_size > 1:
        at = "enable_dynamic_chunking"
        return Conflict(at, "chunks may outgrow the space for gathered stripes", dropping(at))
    if c.enable_two_batch_overlap:
        at = "enable_two_batch_overlap"
        return Conflict(at, "the halves of a batch would share one plan for gathering", dropping(at))
    return None


@handle_kv_cache_sharding.refuses(
    "SPC325", "sharded-kv-cache-with-excluded-feature", raises="ValueError",
    bad=_PREFILL + " --enable-prefill-cp --attn-cp-size 2 --tp-size 2 --enable-flexkv",
    good=_GOOD,
)  # fmt: skip
def sharded_kv_cache_with_excluded_feature(c: Config) -> Refusal | None:
    """This feature needs whole pages of the KV cache.

    With sharding each rank holds a stripe of every page. Whatever reads, stores or moves pages must know that, and
    most features do not: drafting (but for GLM's own layer, from 0.5.23), other caches, decode context parallelism,
    overlapping two batches.
    """
    return _refusal(c, _excluded(c))


@handle_kv_cache_sharding.refuses(
    "SPC326", "sharded-kv-cache-model", raises="ValueError",
    good=_GOOD,
)  # fmt: skip
def sharded_kv_cache_model(c: Config) -> Refusal | None:
    """This model's attention cannot gather a striped KV cache.

    Cross-attention and attention to local chunks use page tables of their own, which sharding does not know.
    """
    model = c.model
    if not model.is_encoder_decoder and model.text_hf("attention_chunk_size") is None:
        return None
    return _refusal(c, Conflict(SHARDING, f"{model.architecture} has page tables of its own", dropping(SHARDING)))


_BACKEND = "kv_shard_hook.py:validate_kv_shard_attention_backend"


def _sparse_conflict(c: Config) -> Conflict | None:
    if c.device != "cuda" or not c.enable_prefill_cp or c.attn_cp_size <= 1 or c.cp_strategy != "interleave":
        return Conflict(
            SHARDING, "sparse attention gathers stripes under interleaved prefill CP only", dropping(SHARDING)
        )
    if c.pp_size != 1:
        return Conflict("pp_size", "sparse attention gathers stripes without pipeline stages", setting(pp_size=1))
    for at, value in (
        ("dsa_prefill_backend", "trtllm"),
        ("dsa_decode_backend", "trtllm"),
        ("kv_cache_dtype", "fp8_e4m3"),
    ):
        if getattr(c, at) != value:
            return Conflict(at, f"sparse attention gathers stripes with {value} only", setting(**{at: value}))
    if c.page_size != 64:
        return Conflict("page_size", "sparse attention gathers stripes of 64-token pages", setting(page_size=64))
    if c.disaggregation_transfer_backend != "mooncake":
        at = "disaggregation_transfer_backend"
        return Conflict(at, "only Mooncake sends stripes of sparse attention", setting(**{at: "mooncake"}))
    if c.enable_dsa_cache_layer_split:
        at = "enable_dsa_cache_layer_split"
        return Conflict(at, "layers and stripes cannot both be split", dropping(at))
    if (c.model.hf("index_kpool", 1) or 1) != 1 or c.model.hf("index_kpool_compress", False):
        return Conflict(SHARDING, f"the index of {c.model.architecture} is pooled", dropping(SHARDING))
    return None


def _backend_conflict(c: Config) -> Conflict | None:
    prefill, _ = backends_of(c)
    if c.since("0.5.23"):
        if prefill == "dsa":
            return _sparse_conflict(c)
        if c.model.is_deepseek_dsa:
            return Conflict(
                backend_field(c, "prefill"), "sparse attention needs the dsa backend", dropping("attention_backend")
            )
    if prefill == "fa3":
        return None
    at = backend_field(c, "prefill")
    if prefill != "trtllm_mla" or not c.model.uses_mla:
        return Conflict(at, "it cannot gather stripes", setting(**{at: "fa3"}))
    if c.attn_cp_size > 1:
        return Conflict("attn_cp_size", "trtllm_mla gathers stripes under plain TP only", setting(attn_cp_size=1))
    if c.disable_chunked_prefix_cache:
        at = "disable_chunked_prefix_cache"
        return Conflict(at, "trtllm_mla gathers stripes chunk by chunk", dropping(at))
    return None


@handle_kv_cache_sharding.refuses(
    "SPC327", "sharded-kv-cache-backend", raises="ValueError", sglang=_BACKEND,
    bad="--disaggregation-mode prefill --enable-kv-cache-sharding --page-size 64 --attention-backend triton",
    good=_GOOD,
)  # fmt: skip
def sharded_kv_cache_backend(c: Config) -> Refusal | None:
    """This attention backend cannot gather a striped KV cache.

    `fa3` can, `trtllm_mla` can for MLA under plain tensor parallelism, and from 0.5.23 the sparse
    attention of DeepSeek V3.2 and GLM-5 can under narrow conditions (interleaved prefill CP, TRT-LLM kernels, FP8,
    pages of 64, Mooncake).
    """
    return _refusal(c, _backend_conflict(c))


def _transfer(c: Config) -> Conflict | None:
    if c.disaggregation_transfer_backend not in ("mooncake", "nixl"):
        at = "disaggregation_transfer_backend"
        return Conflict(at, "only Mooncake and NIXL send stripes", setting(**{at: "mooncake"}))
    if c.env.flag("SGLANG_DISAGG_STAGING_BUFFER"):
        name = "SGLANG_DISAGG_STAGING_BUFFER"
        return Conflict(name, "the staging buffer sends contiguous slices", dropping_env(name))
    return None


@handle_kv_cache_sharding.refuses(
    "SPC328", "sharded-kv-cache-transfer", raises="ValueError",
    bad=_PREFILL + " --disaggregation-transfer-backend mori",
    good=_GOOD,
)  # fmt: skip
def sharded_kv_cache_transfer(c: Config) -> Refusal | None:
    """Stripes of a KV cache are sent by Mooncake or NIXL.

    Other transfers, and the staging buffer (`SGLANG_DISAGG_STAGING_BUFFER`), send contiguous pages.
    """
    return _refusal(c, _transfer(c))


def _ranks(c: Config) -> Conflict | None:
    if not c.model.uses_mla:
        if c.enable_prefill_cp and c.attn_cp_size > 1:
            return None
        why = "ordinary heads are striped over context-parallel ranks, and there are none"
        return Conflict(SHARDING, why, dropping(SHARDING))
    if c.before("0.5.23") and c.model.is_deepseek_dsa:
        return Conflict(SHARDING, "the index of sparse attention is not striped in this release", dropping(SHARDING))
    if c.attn_cp_size > 1:
        return None
    if attention_dp(c):
        at = attention_dp_field(c)
        return Conflict(at, "MLA is striped over plain TP ranks", setting(**{at: 1}))
    if c.tp_size <= 1:
        return Conflict(SHARDING, "one rank has nothing to share", dropping(SHARDING))
    return None


@handle_kv_cache_sharding.refuses(
    "SPC329", "sharded-kv-cache-without-ranks", raises="ValueError", bad=_PREFILL,
    good=_GOOD,
)  # fmt: skip
def sharded_kv_cache_without_ranks(c: Config) -> Refusal | None:
    """There are no ranks to stripe the KV cache over.

    MLA is striped over TP ranks (or prefill CP ranks), ordinary heads over prefill CP ranks: give
    `--enable-prefill-cp` with `--attn-cp-size` above 1.
    """
    return _refusal(c, _ranks(c))


def _page_size(c: Config) -> int:
    return 1 if c.page_size is None else int(c.page_size)


@handle_kv_cache_sharding.refuses(
    "SPC330", "sharded-kv-cache-pages", raises="ValueError",
    bad=_GOOD.replace("--page-size 64", "--page-size 1"),
    good=_GOOD,
)  # fmt: skip
def sharded_kv_cache_pages(c: Config) -> Refusal | None:
    """A striped KV cache needs pages of several tokens and prefill in chunks.

    A page is what is striped, gathered and sent; `--page-size 64` is a good choice. The space for gathered pages is
    that of a chunk, so `--chunked-prefill-size` must be positive.
    """
    if _page_size(c) <= 1:
        return _refusal(c, Conflict("page_size", "a page of one token cannot be striped", setting(page_size=64)))
    if c.chunked_prefill_size is None or c.chunked_prefill_size <= 0:
        at = "chunked_prefill_size"
        return _refusal(c, Conflict(at, "stripes are gathered chunk by chunk", dropping(at)))
    return None


@handle_kv_cache_sharding.adjusts("chunked_prefill_size", "mem_fraction_static")
def round_chunks_to_pages(c: Config) -> None:
    """Chunks of a striped KV cache end where pages end."""
    chunk, page = c.chunked_prefill_size, _page_size(c)
    if chunk is None or chunk <= 0 or page <= 1 or chunk % page == 0:
        return
    rounded = -(-chunk // page) * page
    more = 1.5 * (max(rounded, 2048) - max(chunk, 2048))
    if not c.given("mem_fraction_static") and more > 0:
        c.set(mem_fraction_static=float(c.mem_fraction_static) - more / c.gpu.memory)
    c.set(chunked_prefill_size=rounded)


@handle_kv_cache_sharding.adjusts("cuda_graph_config")
def prefill_stripes_eagerly(c: Config) -> None:
    """Stripes are gathered outside CUDA graphs."""
    if c.disaggregation_mode != "prefill":
        return
    if backend_of(c, PREFILL) != DISABLED:
        disable(c, PREFILL)
    if c.since("0.5.23") and c.speculative_algorithm is not None and backend_of(c, DECODE) != DISABLED:
        disable(c, DECODE)
