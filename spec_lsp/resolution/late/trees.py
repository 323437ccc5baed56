"""Which prefix cache a server builds, and what that one does not know.

Follows mem_cache/registry.py (create_tree_cache), mem_cache/kv_cache_builder.py and managers/cache_controller.py; before 0.5.13
managers/scheduler.py (init_cache_with_memory_pool) chose.

Left out: models whose layers all have a sliding window (they get a cache of their own); names that a plugin registers.
"""

from __future__ import annotations

from spec_lsp.facts.classes import class_facts
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, setting
from spec_lsp.resolution.kv_cache import separate_windows
from spec_lsp.resolution.linear_attention import keeps_extra_buffer

prefix_caches = Handler("mem_cache/registry.py:create_tree_cache", when=lambda c: c.device in ("cuda", "npu"))

SWITCHES = {
    "flexkv": "enable_flexkv",
    "lmcache": "enable_lmcache",
    "hicache": "enable_hierarchical_cache",
    "hiradix": "enable_hierarchical_cache",
    "hierarchical": "enable_hierarchical_cache",
    "radix": "",
    "radix_cache": "",
    "unified": "",
    "unified_radix": "",
    "chunk": "disable_radix_cache",
    "none": "disable_radix_cache",
}
"""What people call SGLang's own caches, and the switch that chooses each ("": it is the default). None of these is a registered name."""


@prefix_caches.refuses(
    "SPC461", "prefix-cache-by-its-switch", raises="ValueError", late=True, since="0.5.13",
    bad=("--radix-cache-backend lmcache", "--radix-cache-backend flexkv"),
    good=("--enable-hierarchical-cache", "SGLANG_PLUGINS=mine -- --radix-cache-backend flexkv"),
)  # fmt: skip
def prefix_cache_by_its_switch(c: Config) -> Refusal | None:
    """SGLang's own prefix caches have switches; `--radix-cache-backend` takes names that a plugin registers.

    LMCache, FlexKV and the hierarchical cache come with `--enable-lmcache`, `--enable-flexkv` and `--enable-hierarchical-cache`; the
    plain radix cache needs no flag. A name that no plugin registered stops the scheduler.
    """
    name = c.radix_cache_backend
    if name not in SWITCHES or c.env.is_set("SGLANG_PLUGINS"):
        return None
    switch = SWITCHES[name]
    way = f"`{c.flag(switch)}` chooses that cache" if switch else "that cache is the default"
    return Refusal(
        at="radix_cache_backend",
        message=f"{c.shown('radix_cache_backend')} is refused when the scheduler starts: the flag takes names that a plugin registers, "
        f"and {way}.",
        fixes=(
            *(_instead(switch, c) if switch else ()),
            dropping("radix_cache_backend"),
        ),
    )


def _instead(switch: str, c: Config) -> tuple[Change, ...]:
    return (Change(set={switch: True}, drop=("radix_cache_backend",)),) if not c.given(switch) else ()


@prefix_caches.notes(
    "SPC462", "unregistered-prefix-cache", severity="warning", since="0.5.13",
    bad="--radix-cache-backend my_cache",
    good="SGLANG_PLUGINS=mine -- --radix-cache-backend my_cache",
)  # fmt: skip
def unregistered_prefix_cache(c: Config) -> Refusal | None:
    """No prefix cache of SGLang's own has this name.

    A plugin (an entry point of the group `sglang.srt.plugins`) has to register it. Without one the scheduler stops when it starts.
    """
    name = c.radix_cache_backend
    if not name or name in SWITCHES or c.env.is_set("SGLANG_PLUGINS"):
        return None
    return Refusal(
        at="radix_cache_backend",
        message=f"{c.shown('radix_cache_backend')} is no cache of SGLang's own: unless an installed plugin registers that name, the "
        "scheduler stops when it starts.",
    )


def _wants_unified_cache(c: Config) -> str | None:
    """The field that only the unified radix cache supports, of those this release checks."""
    if c.since("0.5.17") and c.enable_session_radix_cache:
        return "enable_session_radix_cache"
    if c.since("0.5.21") and c.radix_eviction_policy == "tlru":
        return "radix_eviction_policy"
    if c.since("0.5.22") and c.enable_streaming_session:
        return "enable_streaming_session"
    if c.since("0.5.19") and c.enable_hierarchical_cache and c.hicache_host_memory_mode == "buffer_only":
        return "hicache_host_memory_mode"
    return "model_path" if c.since("0.5.22") and c.model.is_mambaish else None


@prefix_caches.refuses(
    "SPC463", "feature-without-flexkv", raises="ValueError", late=True, since="0.5.17",
    bad=(
        "--enable-flexkv --enable-session-radix-cache",
        "--enable-flexkv --radix-eviction-policy tlru --radix-eviction-policy-config "
        """'{"threshold": 4096, "next_prompt_estimate": 1024}'""",
        "model=qwen3-next-80b -- --tp-size 4 --enable-flexkv",
    ),
    good=("--enable-flexkv", "--enable-session-radix-cache"),
)  # fmt: skip
def feature_without_flexkv(c: Config) -> Refusal | None:
    """FlexKV brings a prefix cache of its own, which lacks what only SGLang's unified one has.

    Session-aware caching, streaming sessions, the T-LRU eviction, buffer-only host memory and the recurrent states of Mamba and
    linear-attention models belong to the unified radix cache.
    """
    if not c.enable_flexkv or c.disable_radix_cache or c.radix_cache_backend or c.enable_lmcache:
        return None
    if c.before("0.5.19") and (c.enable_hierarchical_cache or c.model.is_mambaish or c.model.is_hybrid_swa()):
        return None
    lacking = _wants_unified_cache(c)
    if lacking is None:
        return None
    what = f"{c.model.architecture}, a model with recurrent states," if lacking == "model_path" else c.shown(lacking)
    return Refusal(
        at="enable_flexkv",
        related_fields=(lacking,),
        message=f"{c.shown('enable_flexkv')} is refused with {what} when the scheduler starts: only SGLang's own unified radix cache "
        "has that.",
        fixes=(dropping("enable_flexkv"), *(() if lacking == "model_path" else (dropping(lacking),))),
    )


@prefix_caches.refuses(
    "SPC464", "pages-of-recurrent-states", raises="AssertionError", late=True, until="0.5.11",
    sglang="mem_cache/mamba_radix_cache.py:__init__",
    bad=(
        "sglang=0.5.9 model=qwen3-next-80b -- --tp-size 4 --page-size 64",
        "sglang=0.5.6 model=nemotron-h-8b -- --page-size 16",
        "sglang=0.5.10 gpu=npu model=qwen3-next-80b -- --tp-size 8",
    ),
    good=(
        "sglang=0.5.9 model=qwen3-next-80b -- --tp-size 4 --page-size 64 --disable-radix-cache",
        "sglang=0.5.9 model=qwen3-next-80b -- --tp-size 4 --page-size 64 --mamba-scheduler-strategy extra_buffer",
        "sglang=0.5.10 gpu=npu model=qwen3-next-80b -- --tp-size 8 --disable-radix-cache",
    ),
)  # fmt: skip
def pages_of_recurrent_states(c: Config) -> Refusal | None:
    """In these releases the prefix cache of Mamba and linear-attention models has pages of one token.

    Unless each state is kept twice (`--mamba-scheduler-strategy extra_buffer`, from 0.5.7 on), a prefix can be cut at any token, so pages
    of several tokens do not work; Ascend's attention has pages of 128 if nobody says otherwise. From 0.5.11 on SGLang sets the page size to
    1 by itself.
    """
    if c.page_size in (None, 1) or c.disable_radix_cache or not (c.model.is_gdn or c.model.is_mamba2):
        return None
    if class_facts(c.model.architecture, c.release) is None:
        return None
    if c.enable_hierarchical_cache or c.env.flag("SGLANG_EXPERIMENTAL_CPP_RADIX_TREE"):
        return None
    if c.since("0.5.7") and keeps_extra_buffer(c):
        return None
    return Refusal(
        at=c.first_given("page_size", "model_path"),
        related_fields=("model_path",),
        message=f"{c.shown('page_size')} is refused for {c.model.architecture} when its prefix cache is built: in this release that "
        "cache keeps recurrent states for single tokens only.",
        fixes=(
            setting(page_size=1),
            setting(disable_radix_cache=True),
            *((setting(mamba_scheduler_strategy="extra_buffer"),) if c.since("0.5.7") else ()),
        ),
    )


@prefix_caches.refuses(
    "SPC466", "host-layout-of-recurrent-states", raises="AssertionError", late=True, since="0.5.16",
    sglang="mem_cache/pool_host/mamba.py:__init__",
    earlier=(Earlier("0.5.18", "mem_cache/memory_pool_host.py:__init__"),),
    bad="model=qwen3-next-80b -- --tp-size 4 --enable-hierarchical-cache --hicache-mem-layout layer_first",
    good="model=qwen3-next-80b -- --tp-size 4 --enable-hierarchical-cache",
)  # fmt: skip
def host_layout_of_recurrent_states(c: Config) -> Refusal | None:
    """The host copies of recurrent states come in pages only.

    A hierarchical cache of Mamba and linear-attention models (Qwen3-Next, Nemotron-H, Kimi-Linear) is laid out as `page_first`, which is
    SGLang's choice, or `page_first_direct`.
    """
    layout = c.hicache_mem_layout
    if not c.enable_hierarchical_cache or layout in ("page_first", "page_first_direct") or c.disable_radix_cache:
        return None
    if not c.model.is_mambaish or c.enable_unified_memory or (layout == "page_first_kv_split" and c.since("0.5.20")):
        return None
    return Refusal(
        at="hicache_mem_layout",
        related_fields=("enable_hierarchical_cache", "model_path"),
        message=f"{c.shown('hicache_mem_layout')} is refused for {c.model.architecture} when its host cache is built: recurrent states are "
        "copied by pages. Use `page_first`.",
        fixes=(setting(hicache_mem_layout="page_first"), dropping("hicache_mem_layout")),
    )


GENERIC_LAYOUTS = ("layer_first", "page_first", "page_first_direct")


def _shared_storage_conflict(c: Config) -> tuple[str, str] | None:
    """What the storage of a context-sharing server does not support: a field, and why."""
    if c.hicache_host_memory_mode == "buffer_only":
        return "hicache_host_memory_mode", "host memory has to keep the rows that were written"
    if c.hicache_storage_backend not in ("file", "mooncake"):
        return "hicache_storage_backend", "only file and Mooncake storage know that each rank holds part of the tokens"
    if c.model.is_deepseek_dsa:
        return "model_path", "the keys of its sparse index are not stored with latent pages"
    if c.hicache_mem_layout not in GENERIC_LAYOUTS:
        return "hicache_mem_layout", "only the common layouts of latent pages are cut by ranks"
    return None


@prefix_caches.refuses(
    "SPC465", "storage-of-shared-context", raises="NotImplementedError", late=True, since="0.5.23",
    sglang="managers/cache_controller.py:attach_storage_backend",
    bad="model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --enable-hierarchical-cache --hicache-storage-backend nixl",
    good="model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --enable-hierarchical-cache --hicache-storage-backend file",
)  # fmt: skip
def storage_of_shared_context(c: Config) -> Refusal | None:
    """With decode context parallelism the hierarchical cache has few storages.

    `--dcp-size` spreads the tokens of a request over ranks. Storage behind the hierarchical cache then is `file` or `mooncake`, with one of
    the common memory layouts, and host memory that keeps its rows.
    """
    if (c.dcp_size or 1) <= 1 or not c.enable_hierarchical_cache or c.hicache_storage_backend is None:
        return None
    conflict = _shared_storage_conflict(c)
    if conflict is None:
        return None
    at, why = conflict
    return Refusal(
        at=at,
        related_fields=("dcp_size", "hicache_storage_backend"),
        message=f"{c.shown(at)} is refused with {c.shown('dcp_size')} when the storage is attached: {why}.",
        fixes=(
            *((setting(hicache_storage_backend="file"),) if at == "hicache_storage_backend" else ()),
            *((dropping(at),) if at in ("hicache_host_memory_mode", "hicache_mem_layout") else ()),
            dropping("hicache_storage_backend"),
        ),
    )


WINDOWED_AND_COMPRESSED = frozenset((
    "MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM", "MiMoV2MTP", "Gemma4ForCausalLM", "Gemma4ForConditionalGeneration",
    "InklingForConditionalGeneration", "InklingForConditionalGenerationMTP", "Gemma4UnifiedForConditionalGeneration",
))  # fmt: skip
"""configs/model_config.py, is_hybrid_swa_compress: sliding windows whose heads have another size."""


def _why_no_decode_cache(c: Config) -> tuple[tuple[str, ...], str] | None:
    """The fields beside the switch, and why this model's cache cannot be reused on a decode server, by release."""
    windowed = separate_windows(c)
    if c.before("0.5.21") and (c.model.is_gdn or c.model.is_mamba2):
        return ("model_path",), "recurrent states are not handed over with a prefix"
    if not windowed or c.model.model_type == "deepseek_v41":
        return None
    if c.before("0.5.19"):
        return ("model_path",), "a sliding window is not handed over with a prefix"
    if c.before("0.5.21") and not c.env.flag("SGLANG_ENABLE_UNIFIED_RADIX_TREE"):
        return ("model_path",), "for sliding windows it asks for `SGLANG_ENABLE_UNIFIED_RADIX_TREE=1`"
    if c.enable_hierarchical_cache:
        return ("enable_hierarchical_cache",), "a sliding window is kept on the GPU only"
    if c.model.is_deepseek_v4 and (c.before("0.5.23") or c.gpu.is_cuda):
        return ("model_path",), "its compressed cache is not handed over with a prefix"
    if c.model.architecture in WINDOWED_AND_COMPRESSED:
        return ("model_path",), "its windows have heads of another size"
    return None


@prefix_caches.refuses(
    "SPC958", "decode-radix-cache-of-sliding-window-model", raises="ValueError", late=True, since="0.5.11",
    sglang="mem_cache/kv_cache_builder.py:validate_decode_radix_cache",
    earlier=(
        Earlier("0.5.13", "managers/scheduler.py:init_cache_with_memory_pool"),
        Earlier("0.5.23", "mem_cache/kv_cache_builder.py:build_kv_cache"),
    ),
    bad=(
        "model=gpt-oss-120b -- --tp-size 2 --disaggregation-mode decode --disaggregation-decode-enable-radix-cache "
        "--enable-hierarchical-cache",
        "sglang=0.5.18 model=gpt-oss-120b -- --tp-size 2 --disaggregation-mode decode --disaggregation-decode-enable-radix-cache",
        "sglang=0.5.19 model=qwen3-next-80b -- --tp-size 4 --disaggregation-mode decode --disaggregation-decode-enable-radix-cache",
    ),
    good=(
        "model=gpt-oss-120b -- --tp-size 2 --disaggregation-mode decode --disaggregation-decode-enable-radix-cache",
        "model=qwen3-next-80b -- --tp-size 4 --disaggregation-mode decode --disaggregation-decode-enable-radix-cache",
    ),
)  # fmt: skip
def decode_radix_cache_of_sliding_window_model(c: Config) -> Refusal | None:
    """A decode server cannot reuse the prefixes of this model.

    With `--disaggregation-decode-enable-radix-cache` a prefix that the decode server has is not sent again. In the first releases models
    with sliding windows (gpt-oss, Gemma) or recurrent states (Qwen3-Next, Nemotron-H) had no such reuse; today windows are kept on the
    GPU only, so a hierarchical cache cannot stand beside them.
    """
    field = "disaggregation_decode_enable_radix_cache"
    if not c.disaggregation_decode_enable_radix_cache or c.disaggregation_mode != "decode":
        return None
    found = _why_no_decode_cache(c)
    if found is None:
        return None
    related, why = found
    return Refusal(
        at=field,
        related_fields=related,
        message=f"{c.shown(field)} is refused for {c.model.architecture} when its cache is built: {why}.",
        fixes=(
            dropping(field),
            *((dropping("enable_hierarchical_cache"),) if related[0] == "enable_hierarchical_cache" else ()),
        ),
    )
