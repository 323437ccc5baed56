"""What storage behind the hierarchical cache refuses, by the layout of the host cache, the model and the options.

Follows mem_cache/storage/, hybrid_cache/hybrid_cache_controller.py (parse_storage_backend_extra_config; before 0.5.20
managers/cache_controller.py) and disaggregation/decode_kvcache_offload_manager.py.

Left out: servers, devices and files that storage finds or not; keys of a single store with values that nobody uses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, setting
from spec_lsp.resolution.kv_cache import beside_full_attention
from spec_lsp.resolution.late.refused import Barred, first_barred, value_refused, without_one_of
from spec_lsp.resolution.late.speculative import packs_draft
from spec_lsp.resolution.ranks import attention_cp_size, attention_tp_size


def _offloads(c: Config) -> bool:
    """Whether a decode server stores what it has decoded, without a hierarchical cache."""
    return bool(c.disaggregation_decode_enable_offload_kvcache and c.disaggregation_mode == "decode")


cache_storage = Handler(
    "mem_cache/storage/backend_factory.py:_create_dynamic_backend",
    when=lambda c: bool(c.enable_hierarchical_cache or _offloads(c)) and c.hicache_storage_backend is not None,
)

HF3FS = "SGLANG_HICACHE_HF3FS_CONFIG_PATH"
PAGES_FIRST = ("page_first", "page_first_direct")
LAYOUTS: Mapping[str, tuple[str, ...]] = {
    "simm": PAGES_FIRST,
    "npu_memcache": (*PAGES_FIRST, "page_head", "page_first_kv_split"),
    "umbp": (*PAGES_FIRST, "page_head"),
}
"""The layouts of the host cache that a store takes, where it does not take all."""
PAIRS = (("page_first", "kernel"), ("page_first_direct", "direct"))


def _page_first(_: Config) -> tuple[Change, ...]:
    return (
        setting(hicache_mem_layout="page_first", hicache_io_backend="kernel"),
        setting(hicache_mem_layout="page_first"),
        setting(hicache_mem_layout="page_first_direct"),
        dropping("hicache_storage_backend"),
    )


def _latent(c: Config) -> bool:
    return bool(c.model.uses_mla) and not c.model.is_deepseek_v4


STORES = (
    Barred(
        "hicache_mem_layout",
        lambda c: c.hicache_mem_layout not in LAYOUTS.get(c.hicache_storage_backend, (c.hicache_mem_layout,)),
        "the store that `--hicache-storage-backend` names keeps whole pages",
        "0.5.12",
        _page_first,
    ),
    Barred(
        "hicache_mem_layout",
        lambda c: (
            c.hicache_storage_backend == "tensorcast" and (c.hicache_mem_layout, c.hicache_io_backend) not in PAIRS
        ),
        "TensorCast pairs `page_first` with `--hicache-io-backend kernel`, and `page_first_direct` with `direct`",
        "0.5.21",
        _page_first,
    ),
    Barred(
        "hicache_storage_backend",
        lambda c: c.hicache_storage_backend == "aibrix" and _latent(c),
        "AIBrix stores no caches of latent attention",
    ),
    Barred(
        "hicache_storage_backend",
        lambda c: c.hicache_storage_backend == "hf3fs" and _latent(c) and not c.env.is_set(HF3FS),
        f"for latent attention 3FS needs the file that `{HF3FS}` names",
    ),
    Barred(
        "hicache_storage_backend",
        lambda c: (
            c.hicache_storage_backend == "tensorcast"
            and (c.model.is_mambaish or c.model.is_hybrid_swa() or c.model.is_deepseek_dsa or c.model.is_deepseek_v4)
        ),
        "TensorCast stores caches of one kind only",
        "0.5.21",
    ),
    Barred(
        "hicache_host_memory_mode",
        lambda c: c.hicache_storage_backend == "tensorcast" and c.hicache_host_memory_mode != "cache",
        "TensorCast reads what host memory keeps",
        "0.5.21",
    ),
    Barred(
        "attn_cp_size",
        lambda c: c.hicache_storage_backend == "tensorcast" and attention_cp_size(c) > 1,
        "TensorCast stores no pages of context ranks",
        "0.5.21",
        without_one_of("attn_cp_size", "hicache_storage_backend"),
    ),
    Barred(
        "speculative_algorithm",
        lambda c: c.hicache_storage_backend == "tensorcast" and packs_draft(c),
        "TensorCast stores no layers that predict",
        "0.5.21",
        without_one_of("hicache_storage_backend", "speculative_algorithm"),
    ),
)


@cache_storage.refuses(
    "SPC1011", "storage-of-other-cache", raises="AssertionError", late=True,
    sglang="mem_cache/storage/aibrix_kvcache/aibrix_kvcache_storage.py:__init__",
    bad=(
        "model=deepseek-v3 -- --tp-size 8 --enable-hierarchical-cache --hicache-storage-backend aibrix",
        "--enable-hierarchical-cache --hicache-storage-backend simm --hicache-mem-layout layer_first",
    ),
    good=(
        "--enable-hierarchical-cache --hicache-storage-backend aibrix",
        "--enable-hierarchical-cache --hicache-storage-backend simm --hicache-mem-layout page_first",
    ),
)  # fmt: skip
def storage_of_other_cache(c: Config) -> Refusal | None:
    """This store cannot keep this host cache.

    SiMM, UMBP, TensorCast and Ascend's MemCache keep whole pages (`--hicache-mem-layout page_first`), AIBrix knows no latent attention.
    """
    if not c.enable_hierarchical_cache:
        return None
    return first_barred(c, STORES, "when the host cache is built", "hicache_storage_backend", "model_path")


def _options(c: Config) -> Mapping[str, object] | str:
    """What the store's options are, or what is wrong with them; empty where they stand in a file."""
    text = c.hicache_storage_backend_extra_config
    if not isinstance(text, str) or not text:
        return {}
    if text.startswith("@"):
        ending = text.rpartition(".")[2].lower() if "." in text.rpartition("/")[2] else ""
        known = ending in ("json", "toml", "yaml", "yml")
        return {} if known else "a file of options ends in .json, .toml or .yaml"
    try:
        value = json.loads(text)
    except ValueError:
        return "it is no JSON"
    return value if isinstance(value, dict) else "it is no JSON object"


WHOLE: tuple[tuple[str, type | tuple[type, ...], str, str], ...] = (
    ("prefetch_threshold", int, "a whole number", ""),
    ("prefetch_timeout_base", (int, float), "a number", ""),
    ("prefetch_timeout_per_ki_token", (int, float), "a number", ""),
    ("hicache_storage_pass_prefix_keys", bool, "true or false", "0.5.9"),
)
DYNAMIC = ("backend_name", "module_path", "class_name")


def _split_otherwise(options: Mapping[str, object], c: Config) -> str | None:
    """What is wrong with the number of parts that servers of other sizes share."""
    parts, ranks = options.get("tp_lcm_size"), attention_tp_size(c)
    if c.before("0.5.10") or not isinstance(parts, int) or not parts or parts % ranks == 0:
        return None
    return f"`tp_lcm_size` {parts} is no multiple of the {ranks} ranks that attention is split among"


def _wrong_option(c: Config) -> str | None:
    options = _options(c)
    if _offloads(c) and str(c.hicache_storage_backend_extra_config or "").startswith("@"):
        return "a decode server that offloads reads JSON, not a file" if c.since("0.5.11") else None
    if isinstance(options, str):
        return options if not options.startswith("a file") or c.since("0.5.12") else None
    for name, kind, what, since in WHOLE:
        wrong = name in options and not isinstance(options[name], kind) and (not since or c.since(since))
        if wrong and c.enable_hierarchical_cache:
            return f"`{name}` is {what}"
    split = _split_otherwise(options, c)
    if split is not None:
        return split
    in_file = str(c.hicache_storage_backend_extra_config or "").startswith("@")
    if in_file:
        return None
    if c.hicache_storage_backend == "dynamic":
        lacking = next((name for name in DYNAMIC if name not in options), None)
        return f"a store of your own needs `{lacking}` there" if lacking else None
    if c.hicache_storage_backend == "tensorcast" and "tensorcast" not in options:
        return "TensorCast needs an object `tensorcast` there"
    return None


@cache_storage.refuses(
    "SPC1012", "storage-options-unusable", raises="ValueError", late=True,
    sglang="hybrid_cache/hybrid_cache_controller.py:parse_storage_backend_extra_config",
    earlier=(Earlier("0.5.20", "managers/cache_controller.py:_generate_storage_config"),),
    bad=(
        "--enable-hierarchical-cache --hicache-storage-backend dynamic",
        "--enable-hierarchical-cache --hicache-storage-backend dynamic --hicache-storage-backend-extra-config "
        """'{"backend_name": "mine"}'""",
        "--enable-hierarchical-cache --hicache-storage-backend file --hicache-storage-backend-extra-config prefetch_threshold=256",
        "--enable-hierarchical-cache --hicache-storage-backend file --hicache-storage-backend-extra-config "
        """'{"prefetch_threshold": "256"}'""",
        "--tp-size 4 --enable-hierarchical-cache --hicache-storage-backend mooncake --hicache-storage-backend-extra-config "
        """'{"tp_lcm_size": 6}'""",
        "--disaggregation-mode decode --disaggregation-decode-enable-offload-kvcache --hicache-storage-backend file "
        "--hicache-storage-backend-extra-config @storage.json",
    ),
    good=(
        "--enable-hierarchical-cache --hicache-storage-backend dynamic --hicache-storage-backend-extra-config "
        """'{"backend_name": "mine", "module_path": "my.store", "class_name": "Store"}'""",
        "--enable-hierarchical-cache --hicache-storage-backend file --hicache-storage-backend-extra-config "
        """'{"prefetch_threshold": 256}'""",
        "--tp-size 4 --enable-hierarchical-cache --hicache-storage-backend mooncake --hicache-storage-backend-extra-config "
        """'{"tp_lcm_size": 8}'""",
    ),
)  # fmt: skip
def storage_options_unusable(c: Config) -> Refusal | None:
    """The options of the cache's storage cannot be used.

    `--hicache-storage-backend-extra-config` is a JSON object, or `@` and a file (but for a decode server that offloads); its numbers have
    no quotes. With `dynamic`, the store of your own is named there: `backend_name`, `module_path` and `class_name`. `tp_lcm_size`, for
    servers of several sizes that share a store, is a multiple of each one's attention ranks.
    """
    why = _wrong_option(c)
    if why is None:
        return None
    return value_refused(
        c,
        "hicache_storage_backend_extra_config"
        if c.given("hicache_storage_backend_extra_config")
        else "hicache_storage_backend",
        f"cannot be used when the scheduler attaches storage: {why}.",
        "hicache_storage_backend",
    )


OFFLOAD = "disaggregation_decode_enable_offload_kvcache"


@cache_storage.refuses(
    "SPC1085", "decode-offload-of-other-cache", raises="ValueError", late=True,
    sglang="disaggregation/decode_kvcache_offload_manager.py:__init__",
    bad=(
        "model=qwen3-next-80b -- --tp-size 4 --disaggregation-mode decode --disaggregation-decode-enable-offload-kvcache "
        "--hicache-storage-backend file",
        "model=gpt-oss-120b -- --tp-size 2 --disaggregation-mode decode --disaggregation-decode-enable-offload-kvcache "
        "--hicache-storage-backend file",
    ),
    good="--disaggregation-mode decode --disaggregation-decode-enable-offload-kvcache --hicache-storage-backend file",
)  # fmt: skip
def decode_offload_of_other_cache(c: Config) -> Refusal | None:
    """A decode server offloads caches of full attention only.

    `--disaggregation-decode-enable-offload-kvcache` stores the pages of what was generated. Recurrent states (Qwen3-Next, Nemotron-H),
    sliding windows with a cache of their own (gpt-oss, Gemma 4, DeepSeek V4) and MiniMax-M3's sparse cache are not offloaded.
    """
    if not _offloads(c) or c.enable_unified_memory:
        return None
    what = beside_full_attention(c)
    if what is None or (what == "sliding windows" and c.before("0.5.9")):
        return None
    return Refusal(
        at=OFFLOAD,
        related_fields=("model_path",),
        message=f"{c.shown(OFFLOAD)} is refused for {c.model.architecture} when the server starts to decode: its {what} cannot be "
        "offloaded.",
        fixes=(dropping(OFFLOAD),),
    )
