"""The hierarchical KV cache in host memory and storage, the external cache linker, and HiSparse.

Follows arg_groups/hicache_hook.py and hisparse_hook.py. `validate_hisparse` runs within the general validation pass
(check_server_args).

Left out: checks of hicache_host_memory_mode that argparse has made already, and of a host pool without a size, which
SGLang's own default rules out; the unified-KV gate of DeepSeek V4 HiSparse on ROCm where the environment does not
name it.
"""

from __future__ import annotations

from typing import Any

from spec_lsp.resolution.attention import backends_of, has_flashinfer
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, setting, setting_env

LINKER = "enable_unified_cache_external_linker"

# --- handle_hicache_ratio_default -------------------------------------------------------------------------------------

handle_hicache_ratio_default = Handler(
    "hicache_hook.py:handle_hicache_ratio_default",
    since="0.5.18",
    earlier=(Earlier("0.5.19", "server_args.py:_handle_hicache_ratio_default"),),
)


@handle_hicache_ratio_default.refuses(
    "SPC300", "host-memory-fraction-out-of-range", raises="ValueError", since="0.5.21",
    bad="--hicache-host-memory-fraction 1.5", good="--hicache-host-memory-fraction 0.5",
)  # fmt: skip
def host_memory_fraction_out_of_range(c: Config) -> Refusal | None:
    """The fraction of host memory for the KV cache must be above 0 and at most 1.

    When neither `--hicache-ratio` nor `--hicache-size` says how large the host cache is, SGLang uses this fraction of
    the free host memory. The number is checked even where the hierarchical cache is off.
    """
    fraction = c.hicache_host_memory_fraction
    if fraction is None or 0 < fraction <= 1:
        return None
    return Refusal(
        at="hicache_host_memory_fraction",
        message=f"{c.shown('hicache_host_memory_fraction')} is not a fraction of the host's memory, so SGLang stops. Give a "
        "number above 0 and up to 1, or remove it.",
        fixes=(dropping("hicache_host_memory_fraction"), setting(hicache_host_memory_fraction=0.8)),
    )


@handle_hicache_ratio_default.adjusts("hicache_ratio", "hicache_host_memory_fraction")
def choose_host_cache_size(c: Config) -> None:
    """The host cache is twice the size of the GPU's, unless you say how large it is."""
    sized = c.hicache_ratio is not None or (c.hicache_size > 0 if c.since("0.5.21") else False)
    if c.hicache_ratio is None and c.disaggregation_mode != "decode":
        staging = c.since("0.5.19") and c.hicache_host_memory_mode == "buffer_only"
        c.set(hicache_ratio=1.2 if staging else 2.0)
    if c.since("0.5.21") and sized:
        c.set(hicache_host_memory_fraction=None)


# --- handle_hicache: the external linker ------------------------------------------------------------------------------

handle_hicache = Handler(
    "hicache_hook.py:handle_hicache", earlier=(Earlier("0.5.19", "server_args.py:_handle_hicache"),)
)

_LINKER_KEYS = frozenset({"linker", "linker_module_path", "linker_extra_config"})


@handle_hicache.refuses(
    "SPC301", "linker-config-is-no-object", raises="ValueError", since="0.5.23",
    bad="--unified-cache-external-linker-config '[1]'",
    good="--unified-cache-external-linker-config '{\"a\": 1}'",
)  # fmt: skip
def linker_config_is_no_object(c: Config) -> Refusal | None:
    """The configuration of the cache linker must be a JSON object.

    `--unified-cache-external-linker-config` holds named settings for the linker's backend: `{"name": value, …}`.
    """
    config = c.unified_cache_external_linker_config
    if config is None or isinstance(config, dict):
        return None
    return Refusal(
        at="unified_cache_external_linker_config",
        message=f"{c.shown('unified_cache_external_linker_config')} is not a JSON object, so SGLang stops. Write it as "
        'named settings: {"name": value}.',
    )


@handle_hicache.refuses(
    "SPC302", "incomplete-dynamic-linker-config", raises="ValueError", since="0.5.23",
    sglang="linker_config.py:from_dict",
    bad="--enable-unified-cache-external-linker --unified-cache-external-linker-backend dynamic",
    good="--enable-unified-cache-external-linker --unified-cache-external-linker-backend dynamic "
    """--unified-cache-external-linker-config '{"linker": "Mine", "linker_module_path": "my.module"}'""",
)  # fmt: skip
def incomplete_dynamic_linker_config(c: Config) -> Refusal | None:
    """The dynamic cache linker is not told which class to load.

    The `dynamic` backend imports a linker of your own: `--unified-cache-external-linker-config` must name its class
    (`linker`) and the module it is in (`linker_module_path`), may hold an object `linker_extra_config`, and nothing
    else.
    """
    config: Any = c.unified_cache_external_linker_config
    if c.unified_cache_external_linker_backend != "dynamic":
        return None
    if config is None and not c.enable_unified_cache_external_linker:
        return None
    flaw = _flaw_of_linker_config(config)
    if flaw is None:
        return None
    return Refusal(
        at="unified_cache_external_linker_config" if config is not None else "unified_cache_external_linker_backend",
        related_fields=("unified_cache_external_linker_backend", LINKER),
        message=f"The dynamic cache linker cannot be loaded: its configuration {flaw}, so SGLang stops. Name its class "
        "and module in --unified-cache-external-linker-config.",
        fixes=(
            setting(unified_cache_external_linker_backend="mooncake"),
            dropping("unified_cache_external_linker_config"),
        ),
    )


def _flaw_of_linker_config(config: Any) -> str | None:
    if not isinstance(config, dict):
        return "is missing"
    if not _LINKER_KEYS.issuperset(config):
        return f"has unknown settings ({', '.join(sorted(set(config) - _LINKER_KEYS))})"
    for name in ("linker", "linker_module_path"):
        value = config.get(name)
        if not isinstance(value, str) or not value.strip():
            return f"lacks `{name}`"
    return (
        None
        if isinstance(config.get("linker_extra_config", {}), dict)
        else "has a `linker_extra_config` that is not an object"
    )


@handle_hicache.refuses(
    "SPC303", "linker-dedup-without-mooncake-linker", raises="ValueError", since="0.5.21",
    bad="--enable-linker-mla-dedup",
    good="model=deepseek-v3.2 -- --tp-size 8 --enable-linker-mla-dedup --enable-unified-cache-external-linker",
)  # fmt: skip
def linker_dedup_without_mooncake_linker(c: Config) -> Refusal | None:
    """Only the Mooncake cache linker can store an MLA KV cache once for all ranks.

    With MLA every rank holds the same KV cache; `--enable-linker-mla-dedup` lets one of them write it.
    It needs `--enable-unified-cache-external-linker` with the `mooncake` backend.
    """
    if not c.enable_linker_mla_dedup:
        return None
    if c.enable_unified_cache_external_linker and c.unified_cache_external_linker_backend == "mooncake":
        return None
    return Refusal(
        at="enable_linker_mla_dedup",
        related_fields=(LINKER, "unified_cache_external_linker_backend"),
        message=f"{c.shown('enable_linker_mla_dedup')} works with the Mooncake cache linker only, so SGLang stops. "
        "Remove it, or turn that linker on.",
        fixes=(
            dropping("enable_linker_mla_dedup"),
            setting(enable_unified_cache_external_linker=True, unified_cache_external_linker_backend="mooncake"),
        ),
    )


@handle_hicache.refuses(
    "SPC304", "linker-without-standard-radix-cache", raises="ValueError", since="0.5.23",
    bad="--enable-unified-cache-external-linker --disable-radix-cache",
    good="model=deepseek-v3.2 -- --tp-size 8 --enable-unified-cache-external-linker",
)  # fmt: skip
def linker_without_standard_radix_cache(c: Config) -> Refusal | None:
    """The external cache linker extends SGLang's own radix cache.

    It moves the pages that the radix cache knows to an external store, so the radix cache must be on and must be the
    built-in one.
    """
    if not c.enable_unified_cache_external_linker:
        return None
    at = "disable_radix_cache" if c.disable_radix_cache else "radix_cache_backend"
    if not c.disable_radix_cache and c.radix_cache_backend is None:
        return None
    return Refusal(
        at=at if c.given(at) else LINKER,
        related_fields=(LINKER, at),
        message=f"{c.shown(LINKER)} needs SGLang's own radix cache, which {c.shown(at)} takes away, so SGLang stops. "
        "Remove one of the two.",
        fixes=(dropping(at), dropping(LINKER)),
    )


@handle_hicache.refuses(
    "SPC305", "linker-with-hierarchical-cache", raises="ValueError", since="0.5.20",
    bad="--enable-unified-cache-external-linker --enable-hierarchical-cache",
    good="model=deepseek-v3.2 -- --tp-size 8 --enable-unified-cache-external-linker",
)  # fmt: skip
def linker_with_hierarchical_cache(c: Config) -> Refusal | None:
    """The external cache linker and the hierarchical cache do the same work.

    Both move KV pages out of GPU memory: the hierarchical cache to host memory (and from there to storage), the
    linker straight to an external store. Choose one.
    """
    if not (c.enable_unified_cache_external_linker and c.enable_hierarchical_cache):
        return None
    return Refusal(
        at=c.first_given("enable_hierarchical_cache", LINKER),
        related_fields=(LINKER, "enable_hierarchical_cache"),
        message=f"{c.shown(LINKER)} and {c.shown('enable_hierarchical_cache')} both move KV pages off the GPU, and "
        "SGLang accepts only one of them.",
        fixes=(dropping("enable_hierarchical_cache"), dropping(LINKER)),
    )


@handle_hicache.refuses(
    "SPC306", "linker-with-storage-backend", raises="ValueError", since="0.5.20",
    bad="--enable-unified-cache-external-linker --hicache-storage-backend file",
    good="model=deepseek-v3.2 -- --tp-size 8 --enable-unified-cache-external-linker",
)  # fmt: skip
def linker_with_storage_backend(c: Config) -> Refusal | None:
    """The external cache linker has its own store.

    `--hicache-storage-backend` belongs to the hierarchical cache. The linker's store is chosen with
    `--unified-cache-external-linker-backend`.
    """
    if not c.enable_unified_cache_external_linker or c.hicache_storage_backend is None:
        return None
    return Refusal(
        at="hicache_storage_backend",
        related_fields=(LINKER,),
        message=f"{c.shown(LINKER)} does not use {c.shown('hicache_storage_backend')}, and SGLang stops rather than "
        "ignore it. Choose the store with --unified-cache-external-linker-backend.",
        fixes=(dropping("hicache_storage_backend"), dropping(LINKER)),
    )


# --- handle_hicache: host memory --------------------------------------------------------------------------------------


def uses_host_pool(c: Config) -> bool:
    """Whether KV pages are copied to host memory here, so that the hierarchical cache's settings matter."""
    if c.since("0.5.20") and c.enable_unified_cache_external_linker:
        return False
    if c.enable_hierarchical_cache or c.disaggregation_decode_enable_offload_kvcache:
        return True
    backup = c.disaggregation_decode_retraction_backup
    return c.since("0.5.18") and bool(c.disaggregation_mode == "decode" and backup in (None, "host_pool"))


_HOST_MODE = "hicache_hook.py:validate_hicache_host_memory_mode"


def _only_stages(c: Config) -> bool:
    return uses_host_pool(c) and c.hicache_host_memory_mode == "buffer_only"


@handle_hicache.refuses(
    "SPC310", "staging-buffer-without-storage", raises="ValueError", since="0.5.19", sglang=_HOST_MODE,
    bad="--enable-hierarchical-cache --hicache-host-memory-mode buffer_only",
    good="--enable-hierarchical-cache --hicache-host-memory-mode buffer_only --hicache-storage-backend file",
)  # fmt: skip
def staging_buffer_without_storage(c: Config) -> Refusal | None:
    """Host memory that only stages KV pages needs a storage to stage them for.

    With `--hicache-host-memory-mode buffer_only` nothing stays in host memory: pages pass through it on their way to
    and from `--hicache-storage-backend`. Without a storage backend there would be no cache at all; `cache` keeps
    pages in host memory.
    """
    if not _only_stages(c) or c.hicache_storage_backend is not None:
        return None
    return Refusal(
        at="hicache_host_memory_mode",
        related_fields=("hicache_storage_backend", "enable_hierarchical_cache"),
        message=f"{c.shown('hicache_host_memory_mode')} keeps nothing in host memory and no storage backend is named, "
        "so SGLang stops. Name one, or let host memory be the cache.",
        fixes=(setting(hicache_host_memory_mode="cache"), setting(hicache_storage_backend="file")),
    )


@handle_hicache.refuses(
    "SPC311", "staging-buffer-with-write-back", raises="ValueError", since="0.5.19", until="0.5.22", sglang=_HOST_MODE,
    bad="--enable-hierarchical-cache --hicache-host-memory-mode buffer_only --hicache-storage-backend file "
    "--hicache-write-policy write_back",
    good="--enable-hierarchical-cache --hicache-host-memory-mode buffer_only --hicache-storage-backend file",
)  # fmt: skip
def staging_buffer_with_write_back(c: Config) -> Refusal | None:
    """Host memory that only stages KV pages cannot hold them until they are evicted.

    `write_back` copies a page when it leaves the GPU; with `buffer_only` there is no host tier to copy it to. Newer
    releases use `write_through` then.
    """
    if not _only_stages(c) or c.hicache_storage_backend is None or c.hicache_write_policy != "write_back":
        return None
    return Refusal(
        at="hicache_write_policy",
        related_fields=("hicache_host_memory_mode",),
        message=f"{c.shown('hicache_write_policy')} has no host tier to write to under "
        f"{c.shown('hicache_host_memory_mode')}, so SGLang stops. Write through instead.",
        fixes=(setting(hicache_write_policy="write_through"), setting(hicache_host_memory_mode="cache")),
    )


@handle_hicache.adjusts("hicache_write_policy", since="0.5.22")
def write_through_a_staging_buffer(c: Config) -> None:
    """Host memory that only stages pages has no tier to write back to, so they are written through."""
    if c.hicache_write_policy == "write_back" and _only_stages(c) and c.hicache_storage_backend is not None:
        c.set(hicache_write_policy="write_through")


@handle_hicache.refuses(
    "SPC312", "staging-buffer-on-decode-server", raises="ValueError", since="0.5.19", sglang=_HOST_MODE,
    bad="--disaggregation-mode decode --hicache-host-memory-mode buffer_only --hicache-storage-backend file",
    good="--disaggregation-mode prefill --enable-hierarchical-cache --hicache-host-memory-mode buffer_only "
    "--hicache-storage-backend file",
)  # fmt: skip
def staging_buffer_on_decode_server(c: Config) -> Refusal | None:
    """A decode server cannot use host memory as a mere staging buffer.

    What a decode server fetches and offloads does not go through the staging pipeline of `buffer_only`. Prefill
    servers and servers that do both can use it.
    """
    if not _only_stages(c) or c.hicache_storage_backend is None or c.disaggregation_mode != "decode":
        return None
    return Refusal(
        at="hicache_host_memory_mode",
        related_fields=("disaggregation_mode",),
        message=f"{c.shown('hicache_host_memory_mode')} is not made for decode servers, so SGLang stops. Let host "
        "memory be the cache.",
        fixes=(setting(hicache_host_memory_mode="cache"), dropping("hicache_host_memory_mode")),
    )


def _receives_into_host(c: Config) -> bool:
    threshold = c.disaggregation_decode_host_receive_threshold
    if c.before("0.5.21") or threshold is None:
        return False
    return bool(threshold < 1 if c.since("0.5.22") else threshold > 0)


@handle_hicache.adjusts("hicache_mem_layout", since="0.5.21")
def lay_out_for_transfer(c: Config) -> None:
    """A decode server that receives KV pages into host memory keeps them layer by layer, as they are transferred."""
    if uses_host_pool(c) and _receives_into_host(c):
        c.set(hicache_mem_layout="layer_first")


# --- handle_hicache: layout and copies --------------------------------------------------------------------------------


def _copies_directly(c: Config) -> bool:
    return bool(c.hicache_mem_layout == "page_first_direct" and c.hicache_io_backend == "kernel")


@handle_hicache.adjusts("hicache_io_backend", since="0.5.10")
def copy_direct_layout_directly(c: Config) -> None:
    """The copy kernel does not support the page_first_direct layout."""
    if uses_host_pool(c) and _copies_directly(c):
        c.set(hicache_io_backend="direct")


@handle_hicache.adjusts("hicache_mem_layout", since="0.5.10")
def lay_out_for_direct_copies(c: Config) -> None:
    """Direct copies need the page_first_direct layout."""
    if uses_host_pool(c) and c.hicache_mem_layout == "page_first" and c.hicache_io_backend == "direct":
        c.set(hicache_mem_layout="page_first_direct")


@handle_hicache.adjusts("hicache_mem_layout", since="0.5.14", until="0.5.16")
def lay_out_for_rocm_kernel(c: Config) -> None:
    """On AMD the copy kernel does not support the page_first layout."""
    if uses_host_pool(c) and c.hicache_mem_layout == "page_first" and c.hicache_io_backend == "kernel" and c.gpu.is_hip:
        c.set(hicache_mem_layout="layer_first")


def _lay_out_for_storage(c: Config) -> None:
    backends = ("mooncake", "npu_memcache") if c.since("0.5.20") else ("mooncake",)
    if c.hicache_storage_backend not in backends or c.hicache_mem_layout != "layer_first":
        return
    if c.since("0.5.23") and c.hicache_storage_backend == "mooncake" and c.dcp_size > 1:
        return
    layouts = {"direct": "page_first_direct", "kernel": "page_first"}
    c.set(hicache_mem_layout=layouts.get(c.hicache_io_backend, "layer_first"))


@handle_hicache.adjusts("hicache_mem_layout", since="0.5.10")
def lay_out_for_storage(c: Config) -> None:
    """This storage keeps whole pages, so the host keeps them page by page too."""
    if uses_host_pool(c):
        _lay_out_for_storage(c)


@handle_hicache.adjusts("hicache_mem_layout", "hicache_io_backend", since="0.5.23")
def copy_unified_pool_by_kernel(c: Config) -> None:
    """Rows of the unified memory pool are strided, which direct copies cannot follow."""
    if c.enable_unified_memory and uses_host_pool(c) and c.hicache_mem_layout == "page_first_direct":
        c.set(hicache_mem_layout="page_first", hicache_io_backend="kernel")


@handle_hicache.refuses(
    "SPC313", "storage-layout-against-host-receive", raises="ValueError", since="0.5.21",
    bad="--disaggregation-mode decode --disaggregation-decode-host-receive-threshold 0.5 --hicache-storage-backend "
    "mooncake --disaggregation-decode-enable-offload-kvcache",
    good="--disaggregation-mode decode --hicache-storage-backend mooncake --disaggregation-decode-enable-offload-kvcache",
)  # fmt: skip
def storage_layout_against_host_receive(c: Config) -> Refusal | None:
    """The storage backend needs whole pages in host memory, the KV transfer needs layers.

    A decode server that receives KV pages into host memory (`--disaggregation-decode-host-receive-threshold`) must
    keep them layer by layer, while this storage backend makes SGLang keep them page by page. Choose another storage,
    or receive into GPU memory.
    """
    if not uses_host_pool(c) or not _receives_into_host(c) or c.hicache_mem_layout == "layer_first":
        return None
    return Refusal(
        at="hicache_storage_backend",
        related_fields=("disaggregation_decode_host_receive_threshold", "hicache_mem_layout"),
        message=f"{c.shown('hicache_storage_backend')} needs the {c.hicache_mem_layout} layout in host memory, but "
        f"{c.shown('disaggregation_decode_host_receive_threshold')} needs layer_first, so SGLang stops. Remove one of "
        "the two.",
        fixes=(dropping("disaggregation_decode_host_receive_threshold"), dropping("hicache_storage_backend")),
    )


# --- handle_hicache: decode context parallelism -----------------------------------------------------------------------

_DCP = "hicache_hook.py:resolve_hicache_dcp_compatibility"
_DCP_EARLIER = (Earlier("0.5.19", "server_args.py:_resolve_hicache_dcp_compatibility"),)


def _shares_decode_context(c: Config) -> bool:
    return uses_host_pool(c) and bool(c.enable_hierarchical_cache) and c.dcp_size > 1


@handle_hicache.refuses(
    "SPC320", "host-cache-storage-with-dcp", raises="NotImplementedError", since="0.5.17", sglang=_DCP,
    earlier=_DCP_EARLIER,
    bad="model=deepseek-v3 gpu=b200 -- --tp-size 8 --dcp-size 2 --enable-hierarchical-cache --hicache-storage-backend "
    "file --hicache-host-memory-mode buffer_only",
    good="model=deepseek-v3 gpu=b200 -- --tp-size 8 --dcp-size 2 --enable-hierarchical-cache",
)  # fmt: skip
def host_cache_storage_with_dcp(c: Config) -> Refusal | None:
    """Under decode context parallelism KV pages cannot be staged to storage this way.

    Each rank holds another part of the KV cache then. Releases before 0.5.23 cannot store such parts at all; later
    ones can, but not with host memory as a mere staging buffer (`buffer_only`).
    """
    if not _shares_decode_context(c) or c.hicache_storage_backend is None:
        return None
    if c.since("0.5.23") and c.hicache_host_memory_mode != "buffer_only":
        return None
    newer = c.since("0.5.23")
    at = "hicache_host_memory_mode" if newer else "hicache_storage_backend"
    return Refusal(
        at=at,
        related_fields=("hicache_storage_backend", "dcp_size"),
        message=f"{c.shown(at)} cannot be used under {c.shown('dcp_size')}, where each rank holds a part of the KV "
        "cache, and SGLang stops.",
        fixes=(setting(hicache_host_memory_mode="cache") if newer else dropping(at), setting(dcp_size=1)),
    )


@handle_hicache.refuses(
    "SPC321", "drafting-over-shared-host-cache", raises="NotImplementedError", since="0.5.17", sglang=_DCP,
    earlier=_DCP_EARLIER,
    bad="model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --enable-hierarchical-cache --speculative-algorithm EAGLE",
    good="model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --enable-hierarchical-cache",
)  # fmt: skip
def drafting_over_shared_host_cache(c: Config) -> Refusal | None:
    """Under decode context parallelism the host cache cannot follow this draft model.

    The draft's own KV cache would have to be split over the ranks in host memory too, which only DSPARK does (no
    algorithm before 0.5.18).
    """
    allowed = (None, "DSPARK") if c.since("0.5.18") else (None,)
    if not _shares_decode_context(c) or c.speculative_algorithm in allowed:
        return None
    return Refusal(
        at="speculative_algorithm",
        related_fields=("enable_hierarchical_cache", "dcp_size"),
        message=f"{c.shown('speculative_algorithm')} does not work with {c.shown('enable_hierarchical_cache')} under "
        f"{c.shown('dcp_size')}, and SGLang stops. Remove the hierarchical cache, or the draft.",
        fixes=(dropping("enable_hierarchical_cache"), setting(dcp_size=1), dropping("speculative_algorithm")),
    )


@handle_hicache.refuses(
    "SPC322", "other-host-cache-with-dcp", raises="NotImplementedError", since="0.5.17", sglang=_DCP,
    earlier=_DCP_EARLIER,
    bad="model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --enable-hierarchical-cache --enable-lmcache",
    good="model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --enable-hierarchical-cache",
)  # fmt: skip
def other_host_cache_with_dcp(c: Config) -> Refusal | None:
    """LMCache and HiSparse do not support decode context parallelism.

    Each rank holds a part of the KV cache then, and their host pools cannot tell which.
    """
    if not _shares_decode_context(c) or not (c.enable_lmcache or c.enable_hisparse):
        return None
    at = "enable_lmcache" if c.enable_lmcache else "enable_hisparse"
    return Refusal(
        at=at,
        related_fields=("enable_hierarchical_cache", "dcp_size"),
        message=f"{c.shown(at)} cannot address a KV cache that {c.shown('dcp_size')} splits over the ranks, so SGLang "
        "stops.",
        fixes=(dropping(at), setting(dcp_size=1)),
    )


@handle_hicache.refuses(
    "SPC323", "shared-host-cache-without-mla", raises="NotImplementedError", since="0.5.17", sglang=_DCP,
    earlier=_DCP_EARLIER,
    bad="--tp-size 4 --dcp-size 2 --enable-hierarchical-cache",
    good="model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --enable-hierarchical-cache",
)  # fmt: skip
def shared_host_cache_without_mla(c: Config) -> Refusal | None:
    """Under decode context parallelism only an MLA KV cache can go to host memory.

    The host pool of models with MLA (DeepSeek, Kimi, …) translates addresses between the ranks; the one
    for ordinary attention heads does not.
    """
    if not _shares_decode_context(c) or c.model.uses_mla:
        return None
    return Refusal(
        at="enable_hierarchical_cache",
        related_fields=("dcp_size",),
        message=f"{c.shown('enable_hierarchical_cache')} works under {c.shown('dcp_size')} only with latent "
        "attention, which this model does not have, so SGLang stops. Remove one of the two.",
        fixes=(dropping("enable_hierarchical_cache"), setting(dcp_size=1)),
    )


# --- handle_hicache: before 0.5.14 ------------------------------------------------------------------------------------


def _decode_beside_host_cache(c: Config) -> str:
    """The decode backend that works with the copy kernel where fa3 does not."""
    if c.model.uses_mla:
        return "flashinfer" if c.gpu.sm100 else "triton"
    if c.since("0.5.11") and c.model.has_attention_sinks:
        return "triton"
    return "flashinfer" if has_flashinfer(c) else "triton"


@handle_hicache.adjusts("decode_attention_backend", "hicache_io_backend", since="0.5.10", until="0.5.14")
def decode_beside_copy_kernel(c: Config) -> None:
    """fa3 cannot decode while the copy kernel runs, so another backend decodes, or pages are copied directly."""
    if not uses_host_pool(c) or c.hicache_io_backend != "kernel" or backends_of(c)[1] != "fa3":
        return
    if c.decode_attention_backend is not None:
        c.set(hicache_io_backend="direct")
    else:
        c.set(decode_attention_backend=_decode_beside_host_cache(c))


@handle_hicache.adjusts("hicache_mem_layout", since="0.5.10", until="0.5.14")
def lay_out_for_direct_copies_again(c: Config) -> None:
    """Direct copies need the page_first_direct layout."""
    if uses_host_pool(c) and c.hicache_mem_layout == "page_first" and c.hicache_io_backend == "direct":
        c.set(hicache_mem_layout="page_first_direct")


@handle_hicache.adjusts("hicache_io_backend", since="0.5.8", until="0.5.10")
def copy_direct_layout_directly_before_0_5_10(c: Config) -> None:
    """The copy kernel does not support the page_first_direct layout."""
    if _copies_directly(c):
        c.set(hicache_io_backend="direct")


@handle_hicache.adjusts("decode_attention_backend", "hicache_io_backend", since="0.5.8", until="0.5.10")
def decode_beside_copy_kernel_before_0_5_10(c: Config) -> None:
    """fa3 cannot decode while the copy kernel runs, so another backend decodes, or pages are copied directly."""
    if not uses_host_pool(c) or c.hicache_io_backend != "kernel":
        return
    decode = c.decode_attention_backend if c.decode_attention_backend is not None else c.attention_backend
    if decode != "fa3":
        return
    if c.decode_attention_backend is None:
        c.set(decode_attention_backend=_decode_beside_host_cache(c))
    else:
        c.set(hicache_io_backend="direct")


@handle_hicache.adjusts("hicache_mem_layout", until="0.5.10")
def lay_out_for_storage_before_0_5_10(c: Config) -> None:
    """This storage keeps whole pages, so the host keeps them page by page too."""
    _lay_out_for_storage(c)


@handle_hicache.adjusts("hicache_io_backend", until="0.5.8")
def copy_direct_layout_directly_before_0_5_8(c: Config) -> None:
    """The copy kernel does not support the page_first_direct layout."""
    direct = ("direct",) if c.before("0.5.6.post1") else ("direct", "kernel_ascend")
    if c.hicache_mem_layout == "page_first_direct" and c.hicache_io_backend not in direct:
        c.set(hicache_io_backend="direct")


@handle_hicache.adjusts("decode_attention_backend", "hicache_io_backend", until="0.5.8")
def decode_beside_copy_kernel_before_0_5_8(c: Config) -> None:
    """fa3 cannot decode while the copy kernel runs, so another backend decodes, or pages are copied directly."""
    offloads = c.since("0.5.6.post2") and c.disaggregation_decode_enable_offload_kvcache
    if not (c.enable_hierarchical_cache or offloads) or c.hicache_io_backend != "kernel":
        return
    if c.decode_attention_backend is None:
        c.set(decode_attention_backend=_decode_beside_host_cache(c))
    elif c.decode_attention_backend == "fa3":
        c.set(hicache_io_backend="direct")


# --- HiSparse (within check_server_args) ------------------------------------------------------------------------------

_IN_GENERAL_CHECKS = Earlier("0.5.12", "server_args.py:check_server_args")

validate_hisparse = Handler(
    "hisparse_hook.py:validate_hisparse",
    when=lambda c: bool(c.enable_hisparse),
    since="0.5.10",
    earlier=(_IN_GENERAL_CHECKS,),
)


@validate_hisparse.refuses(
    "SPC340", "hisparse-on-dense-attention", raises="AssertionError",
    bad="--enable-hisparse --disable-radix-cache",
    good="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache",
)  # fmt: skip
def hisparse_on_dense_attention(c: Config) -> Refusal | None:
    """HiSparse needs a model with sparse attention.

    It keeps in GPU memory only the KV pages that the model's own sparse attention picks: DeepSeek V3.2 and V4, GLM-5
    and similar models, MiniMax M3 (from 0.5.21). Other models read every page.
    """
    model = c.model
    v4 = c.since("0.5.12") and model.is_deepseek_v4
    if model.is_deepseek_dsa or v4 or (c.since("0.5.21") and model.is_minimax_sparse):
        return None
    return Refusal(
        at="enable_hisparse",
        message=f"{c.shown('enable_hisparse')} is for models with sparse attention, and {model.architecture} has "
        "none: SGLang stops. Remove the flag.",
    )


@validate_hisparse.refuses(
    "SPC341", "hisparse-with-radix-cache", raises="AssertionError",
    bad="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse",
    good="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache",
)  # fmt: skip
def hisparse_with_radix_cache(c: Config) -> Refusal | None:
    """HiSparse does not share prefixes between requests.

    The radix cache would have to index pages that HiSparse moves to host memory. Give `--disable-radix-cache` with
    it.
    """
    if c.disable_radix_cache:
        return None
    return Refusal(
        at="enable_hisparse",
        related_fields=("disable_radix_cache",),
        message=f"{c.shown('enable_hisparse')} does not work with the radix cache, and SGLang stops. Disable the "
        "radix cache with it.",
        fixes=(setting(disable_radix_cache=True), dropping("enable_hisparse")),
    )


@validate_hisparse.refuses(
    "SPC342", "hisparse-with-mixed-chunks", raises="ValueError", since="0.5.22",
    sglang="hisparse_hook.py:validate_hisparse_feature_combos",
    bad="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache --enable-mixed-chunk",
    good="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache",
)  # fmt: skip
def hisparse_with_mixed_chunks(c: Config) -> Refusal | None:
    """HiSparse cannot decode in one batch with a prefill chunk.

    `--enable-mixed-chunk` runs running requests together with the prefill of others; HiSparse needs decode batches of
    their own.
    """
    if not c.enable_mixed_chunk:
        return None
    return Refusal(
        at="enable_mixed_chunk",
        related_fields=("enable_hisparse",),
        message=f"{c.shown('enable_mixed_chunk')} does not work with {c.shown('enable_hisparse')}, and SGLang stops. "
        "Remove one.",
        fixes=(dropping("enable_mixed_chunk"), dropping("enable_hisparse")),
    )


@validate_hisparse.refuses("SPC343", "hisparse-with-draft-tree", raises="ValueError", since="0.5.22")
def hisparse_with_draft_tree(c: Config) -> Refusal | None:
    """HiSparse can verify a chain of draft tokens, not a tree, and not one that changes its length.

    Use `--speculative-eagle-topk 1` and leave `--speculative-adaptive` out.
    """
    algorithm = c.speculative_algorithm
    if algorithm is None or algorithm.upper() == "NONE":
        return None
    at = "speculative_eagle_topk" if (c.speculative_eagle_topk or 1) != 1 else "speculative_adaptive"
    if at == "speculative_adaptive" and not c.speculative_adaptive:
        return None
    fix = setting(speculative_eagle_topk=1) if at == "speculative_eagle_topk" else dropping(at)
    return Refusal(
        at=at,
        related_fields=("enable_hisparse",),
        message=f"{c.shown(at)} does not work with {c.shown('enable_hisparse')}, and SGLang stops. Draft one chain of "
        "fixed length.",
        fixes=(fix, dropping("enable_hisparse")),
    )


@validate_hisparse.refuses("SPC344", "hisparse-on-unified-kv", raises="ValueError", since="0.5.14")
def hisparse_on_unified_kv(c: Config) -> Refusal | None:
    """On AMD, HiSparse needs DeepSeek V4's separate KV pools.

    `SGLANG_HACK_FLASHMLA_BACKEND=unified_kv_triton` puts them into one, which HiSparse cannot attach to.
    """
    if not (c.gpu.is_hip and c.model.is_deepseek_v4):
        return None
    if c.env.text("SGLANG_HACK_FLASHMLA_BACKEND") != "unified_kv_triton":
        return None
    return Refusal(
        at="enable_hisparse",
        related_fields=("SGLANG_HACK_FLASHMLA_BACKEND",),
        message=f"{c.shown('enable_hisparse')} does not work on the unified KV path that SGLANG_HACK_FLASHMLA_BACKEND "
        "chooses, and SGLang stops.",
        fixes=(setting_env(SGLANG_HACK_FLASHMLA_BACKEND="triton"), dropping("enable_hisparse")),
    )


def _has_own_hisparse_kernels(c: Config) -> bool:
    if c.model.is_deepseek_v4 and (c.before("0.5.14") or c.gpu.is_hip):
        return True
    return bool(c.since("0.5.21") and c.model.is_minimax_sparse)


def _hisparse_dtypes(c: Config) -> tuple[str, ...]:
    return ("bfloat16", "auto", "fp8_e4m3") if c.since("0.5.12") else ("bfloat16",)


@validate_hisparse.refuses(
    "SPC345", "hisparse-kv-cache-dtype", raises="ValueError", since="0.5.11",
    sglang="hisparse_hook.py:validate_hisparse_kv_cache_dtype",
    earlier=(_IN_GENERAL_CHECKS, Earlier("0.5.14", "hisparse_hook.py:validate_hisparse")),
)  # fmt: skip
def hisparse_kv_cache_dtype(c: Config) -> Refusal | None:
    """HiSparse keeps the KV cache in bfloat16 or fp8_e4m3.

    Its copies between host and GPU support no other type. Leave `--kv-cache-dtype` out, or give one of the two.
    """
    if c.kv_cache_dtype in _hisparse_dtypes(c) or _has_own_hisparse_kernels(c):
        return None
    return Refusal(
        at="kv_cache_dtype",
        related_fields=("enable_hisparse",),
        message=f"{c.shown('enable_hisparse')} cannot keep {c.shown('kv_cache_dtype')}, and SGLang stops. Use "
        "fp8_e4m3 or bfloat16.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), setting(kv_cache_dtype="bfloat16"), dropping("enable_hisparse")),
    )


def hisparse_backends(c: Config) -> tuple[str, ...]:
    """The sparse attention kernels that HiSparse can feed; it chooses the first."""
    if c.gpu.is_hip and c.since("0.5.14"):
        return ("tilelang", "triton", "aiter") if c.since("0.5.20") else ("tilelang", "aiter")
    if c.before("0.5.12"):
        return ("flashmla_sparse",)
    newer = ("flashinfer_sparse_mla",) if c.since("0.5.18") else ()
    match c.kv_cache_dtype:
        case "bfloat16":
            return ("flashmla_sparse",)
        case "fp8_e4m3":
            return ("flashmla_kv", *newer)
        case _:
            return ("flashmla_sparse", "flashmla_kv", *newer)


@validate_hisparse.refuses(
    "SPC346", "hisparse-attention-kernel", raises="ValueError", sglang="hisparse_hook.py:validate_hisparse_dsa_backend",
    earlier=(_IN_GENERAL_CHECKS, Earlier("0.5.14", "hisparse_hook.py:validate_hisparse")),
    bad="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache --dsa-prefill-backend fa3",
    good="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache",
)  # fmt: skip
def hisparse_attention_kernel(c: Config) -> Refusal | None:
    """HiSparse does not work with this sparse attention kernel.

    Which kernels it can feed depends on the type of the KV cache and on the device. Leave the backend out and SGLang
    picks one that fits.
    """
    if _has_own_hisparse_kernels(c):
        return None
    prefix = "nsa" if c.before("0.5.13") else "dsa"
    allowed = hisparse_backends(c)
    for at in (f"{prefix}_prefill_backend", f"{prefix}_decode_backend"):
        backend = getattr(c, at)
        if backend is not None and backend not in allowed:
            return Refusal(
                at=at,
                related_fields=("enable_hisparse", "kv_cache_dtype"),
                message=f"{c.shown('enable_hisparse')} cannot feed {c.shown(at)} here, and SGLang stops. It can feed "
                f"{' and '.join(allowed)}.",
                fixes=(dropping(at), *_naming(at, allowed), dropping("enable_hisparse")),
            )
    return None


def _naming(field: str, values: tuple[str, ...]) -> tuple[Change, ...]:
    return tuple(setting(**{field: value}) for value in values)
