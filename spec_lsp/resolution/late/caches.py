"""What KV caches, their copies in host memory and the prefix cache refuse when a scheduler builds them.

Follows mem_cache/kv_cache_configurator.py, mem_cache/pool_host/ (before 0.5.16 memory_pool_host.py), mem_cache/registry.py,
mem_cache/kv_cache_builder.py and managers/schedule_policy.py.

Left out: names of prefix caches that a plugin registers; sizes that the memory found at start decides.
"""

from __future__ import annotations

from spec_lsp.resolution.attention import backends_of
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, setting, setting_env
from spec_lsp.resolution.kv_cache import is_fp4, separate_windows
from spec_lsp.resolution.late.refused import Barred, first_barred, without_one_of
from spec_lsp.resolution.late.speculative import packs_draft
from spec_lsp.resolution.ranks import attention_cp_size, attention_tp_size

caches = Handler("mem_cache/kv_cache_configurator.py:_init_pools", when=lambda c: bool(c.device == "cuda"))


@caches.refuses(
    "SPC954", "unified-memory-of-plain-model", raises="ValueError", late=True, since="0.5.16",
    bad="--enable-unified-memory", good="model=gpt-oss-120b -- --tp-size 2",
)  # fmt: skip
def unified_memory_of_plain_model(c: Config) -> Refusal | None:
    """The unified memory pool is for hybrid models only.

    `--enable-unified-memory` lets two kinds of cache share one pool: full attention beside Mamba states or a sliding window. A model
    with one kind of cache has nothing to share, and SGLang refuses rather than ignore the flag.
    """
    if not c.enable_unified_memory:
        return None
    if not c.model.is_deepseek_v4 and (c.model.is_mambaish or separate_windows(c)):
        return None
    return Refusal(
        at="enable_unified_memory",
        related_fields=("model_path",),
        message=f"{c.shown('enable_unified_memory')} is refused for {c.model.architecture} when its cache is built: the model has one "
        "kind of cache, so there is nothing to share. Remove it.",
    )


@caches.refuses(
    "SPC955", "hicache-layout-of-another-attention", raises="ValueError", late=True,
    sglang="mem_cache/pool_host/mla.py:init_kv_buffer",
    earlier=(Earlier("0.5.16", "mem_cache/memory_pool_host.py:init_kv_buffer"),),
    bad=(
        "model=deepseek-v3 -- --tp-size 8 --enable-hierarchical-cache --hicache-mem-layout page_head",
        "--enable-hierarchical-cache --hicache-mem-layout page_first_kv_split",
    ),
    good=(
        "model=deepseek-v3 -- --tp-size 8 --enable-hierarchical-cache --hicache-mem-layout page_first",
        "--enable-hierarchical-cache --hicache-mem-layout page_first_direct",
    ),
)  # fmt: skip
def hicache_layout_of_another_attention(c: Config) -> Refusal | None:
    """The host cache of this model does not support this memory layout.

    `page_head` orders a page by attention heads, of which MLA (DeepSeek, Kimi) has one. `page_first_kv_split` keeps the
    two parts of an MLA cache apart, and is for Ascend. `page_first` and `page_first_direct` fit every model.
    """
    layout = c.hicache_mem_layout
    if not c.enable_hierarchical_cache or layout not in ("page_head", "page_first_kv_split"):
        return None
    unified = bool(c.since("0.5.23") and c.enable_unified_memory)
    if c.model.is_deepseek_v4 or unified:
        kind = "its pages are laid out otherwise" if c.since("0.5.19") else ""
    elif c.model.uses_mla != (layout == "page_head"):
        kind = ""
    elif c.model.is_mambaish or separate_windows(c):  # whose ordinary layers have a host cache of heads
        kind = "only an MLA cache has the two parts it splits" if c.since("0.5.20") and not c.model.uses_mla else ""
    else:
        kind = "MLA has one head" if c.model.uses_mla else "only an MLA cache has the two parts it splits"
    if not kind:
        return None
    return Refusal(
        at="hicache_mem_layout",
        related_fields=("enable_hierarchical_cache", "model_path"),
        message=f"{c.shown('hicache_mem_layout')} is refused for {c.model.architecture} when its host cache is built: {kind}. Use "
        "`page_first` or `page_first_direct`.",
        fixes=(setting(hicache_mem_layout="page_first"), setting(hicache_mem_layout="page_first_direct")),
    )


@caches.refuses(
    "SPC956", "shortest-prefill-first-without-prefix-cache", raises="ValueError", late=True, since="0.5.21",
    sglang="managers/schedule_policy.py:_validate_and_adjust_policy",
    bad="--schedule-policy shortest-prefill-first --disable-radix-cache",
    good="--schedule-policy shortest-prefill-first",
)  # fmt: skip
def shortest_prefill_first_without_prefix_cache(c: Config) -> Refusal | None:
    """The policy `shortest-prefill-first` needs the prefix cache.

    It orders requests by what is left to prefill after the cached prefix. Other cache-aware policies fall back to `fcfs` without the
    cache; this one is refused.
    """
    if c.schedule_policy != "shortest-prefill-first" or not c.disable_radix_cache:
        return None
    return Refusal(
        at="schedule_policy",
        related_fields=("disable_radix_cache",),
        message=f"{c.shown('schedule_policy')} needs the prefix cache, which {c.shown('disable_radix_cache')} switches off, so the "
        "scheduler stops when it starts.",
        fixes=(
            setting(schedule_policy="fcfs"),
            *((dropping("disable_radix_cache"),) if c.given("disable_radix_cache") else ()),
        ),
    )


@caches.refuses(
    "SPC467", "no-cache-of-other-attention", raises="RuntimeError", late=True, since="0.5.12",
    sglang="mem_cache/kv_cache_configurator.py:_validate_prefill_only_disable_kv_cache_pool_family",
    earlier=(Earlier("0.5.16", "model_runner_kv_cache_mixin.py:_validate_prefill_only_disable_kv_cache_pool_family"),),
    bad="model=deepseek-v3 -- --tp-size 8 --is-embedding --prefill-only-disable-kv-cache --chunked-prefill-size -1 --disable-radix-cache "
    "--attention-backend fa3",
    good="--is-embedding --prefill-only-disable-kv-cache --chunked-prefill-size -1 --disable-radix-cache --attention-backend fa3",
)  # fmt: skip
def no_cache_of_other_attention(c: Config) -> Refusal | None:
    """Only models with ordinary attention can be served without a KV cache.

    `--prefill-only-disable-kv-cache` is for embedding models like Qwen3-Embedding. Latent attention, sliding windows with a cache of their
    own, and recurrent states need their caches even for a prefill.
    """
    if not c.prefill_only_disable_kv_cache:
        return None
    if not c.model.uses_mla and not c.model.is_mambaish and not separate_windows(c):
        return None
    return Refusal(
        at="prefill_only_disable_kv_cache",
        related_fields=("model_path",),
        message=f"{c.shown('prefill_only_disable_kv_cache')} is refused for {c.model.architecture} when its cache is built: its attention "
        "needs a cache even for a prefill.",
    )


@caches.refuses(
    "SPC957", "host-pool-backup-of-hybrid-model", raises="ValueError", late=True, since="0.5.18",
    sglang="mem_cache/registry.py:create_unified_radix_cache",
    earlier=(Earlier("0.5.21", "mem_cache/registry.py:_create_unified_radix_cache"),),
    bad=(
        "model=qwen3-next-80b -- --tp-size 4 --disaggregation-mode decode --disaggregation-decode-retraction-backup host_pool",
        "model=deepseek-v3 -- --tp-size 8 --disaggregation-mode decode --disaggregation-decode-retraction-backup host_pool",
    ),
    good="--disaggregation-mode decode --disaggregation-decode-retraction-backup host_pool",
)  # fmt: skip
def host_pool_backup_of_hybrid_model(c: Config) -> Refusal | None:
    """Retracted requests of this model cannot be backed up in the host pool.

    `--disaggregation-decode-retraction-backup host_pool` copies the KV pages of ordinary attention to host memory. Recurrent states (Mamba,
    linear attention) are not pages, and the pages of MLA (DeepSeek, Kimi) and of models whose layers all have a sliding window have no such
    copy.
    """
    field = "disaggregation_decode_retraction_backup"
    if c.disaggregation_decode_retraction_backup != "host_pool" or c.disaggregation_mode != "decode":
        return None
    windows = separate_windows(c) and {*(c.model.text_hf("layer_types") or ())} == {"sliding_attention"}
    if not c.model.is_mambaish and not c.model.uses_mla and not windows:
        return None
    what = (
        "its recurrent states" if c.model.is_mambaish else "a cache of windows alone" if windows else "the pages of MLA"
    )
    return Refusal(
        at=field,
        related_fields=("model_path",),
        message=f"{c.shown(field)} is refused for {c.model.architecture} when its cache is built: {what} cannot be backed up there.",
    )


@caches.refuses(
    "SPC959", "host-cache-of-asymmetric-heads", raises="ValueError", late=True, since="0.5.14",
    sglang="mem_cache/pool_host/mha.py:init_kv_buffer",
    earlier=(Earlier("0.5.16", "mem_cache/memory_pool_host.py:init_kv_buffer"),),
    bad="model=llama-3.1-8b -- --enable-hierarchical-cache --hicache-mem-layout layer_first "
    """--json-model-override-args '{"head_dim": 192, "v_head_dim": 128}'""",
    good="model=llama-3.1-8b -- --enable-hierarchical-cache --hicache-mem-layout page_first "
    """--json-model-override-args '{"head_dim": 192, "v_head_dim": 128}'""",
)  # fmt: skip
def host_cache_of_asymmetric_heads(c: Config) -> Refusal | None:
    """The host cache of a model whose keys and values differ in width comes in two layouts only.

    MiMo-V2's keys are wider than its values. Only `page_first` and `page_first_direct` keep the two apart.
    """
    if not c.enable_hierarchical_cache or c.hicache_mem_layout in ("page_first", "page_first_direct"):
        return None
    if c.model.uses_mla or c.model.is_mambaish or c.model.is_deepseek_v4 or c.model.head_dim == c.model.v_head_dim:
        return None
    return Refusal(
        at=c.first_given("hicache_mem_layout", "enable_hierarchical_cache"),
        related_fields=("model_path",),
        message=f"{c.shown('hicache_mem_layout')} is refused for {c.model.architecture} when its host cache is built: its keys "
        f"({c.model.head_dim} wide) and values ({c.model.v_head_dim}) differ. Use `page_first` or `page_first_direct`.",
        fixes=(
            setting(hicache_mem_layout="page_first"),
            setting(hicache_mem_layout="page_first_direct"),
            Change(drop=("enable_hierarchical_cache", "hicache_mem_layout")),
        ),
    )


@caches.refuses(
    "SPC996", "hicache-of-sliding-window-model", raises="ValueError", late=True, since="0.5.12", until="0.5.13",
    sglang="mem_cache/hiradix_cache.py:__init__",
    bad="sglang=0.5.12 model=gpt-oss-120b -- --tp-size 2 --enable-hierarchical-cache",
    good="sglang=0.5.12 model=gpt-oss-120b SGLANG_ENABLE_UNIFIED_RADIX_TREE=1 -- --tp-size 2 --enable-hierarchical-cache",
)  # fmt: skip
def hicache_of_sliding_window_model(c: Config) -> Refusal | None:
    """In this release the hierarchical cache of gpt-oss and DeepSeek V4 needs an environment variable.

    The plain hierarchical cache supports models with one kind of cache. `SGLANG_ENABLE_UNIFIED_RADIX_TREE=1` chooses the one that supports
    sliding windows; from 0.5.13 on SGLang chooses it by itself.
    """
    variable = "SGLANG_ENABLE_UNIFIED_RADIX_TREE"
    if not c.enable_hierarchical_cache or c.disable_radix_cache or c.env.flag(variable):
        return None
    if c.model.architecture != "GptOssForCausalLM" and not c.model.is_deepseek_v4:
        return None
    if c.disable_hybrid_swa_memory or c.env.flag("SGLANG_EXPERIMENTAL_CPP_RADIX_TREE"):
        return None
    return Refusal(
        at="enable_hierarchical_cache",
        related_fields=("model_path",),
        message=f"{c.shown('enable_hierarchical_cache')} is refused for {c.model.architecture} when its cache is built, unless "
        f"`{variable}=1` chooses the cache that supports sliding windows.",
        fixes=(setting_env(**{variable: "1"}), dropping("enable_hierarchical_cache")),
    )


def _one_head_a_rank(c: Config) -> bool:
    return bool(c.enable_hisparse and c.model.is_minimax_sparse and c.model.get_num_kv_heads(c.tp_size) != 1)


INKLING = """--json-model-override-args '{"architectures": ["InklingForConditionalGeneration"]}'"""
SPLIT = (
    "--tp-size 8 --attn-cp-size 8 --enable-prefill-cp --cp-strategy interleave --disaggregation-mode prefill "
    "--enable-dsa-cache-layer-split"
)


def _splits_layers(c: Config) -> bool:
    return bool(c.enable_dsa_cache_layer_split and c.model.is_deepseek_dsa and attention_cp_size(c) > 1)


def _packs_nvfp4(c: Config) -> bool:
    """uses_minimax_m3_nvfp4_native_stack of configs/model_config.py."""
    return bool(c.model.is_minimax_sparse and c.quantization == "minimax_m3_nvfp4" and c.gpu.blackwell)


HOSTS = (
    Barred(
        "hicache_mem_layout",
        lambda c: c.kv_cache_dtype == "mxfp8" and c.hicache_mem_layout != "page_first",
        "an MXFP8 cache is kept in whole pages",
        "0.5.21",
        lambda _: (setting(hicache_mem_layout="page_first"), dropping("enable_hierarchical_cache")),
    ),
    Barred(
        "hicache_io_backend",
        lambda c: c.kv_cache_dtype == "mxfp8" and c.hicache_io_backend != "kernel",
        "an MXFP8 cache is moved by kernels",
        "0.5.21",
        lambda _: (setting(hicache_io_backend="kernel"), dropping("enable_hierarchical_cache")),
    ),
    Barred(
        "hicache_storage_backend",
        lambda c: c.kv_cache_dtype == "mxfp8" and c.hicache_storage_backend is not None,
        "storage keeps no MXFP8 cache",
        "0.5.21",
    ),
    Barred(
        "speculative_algorithm",
        lambda c: c.kv_cache_dtype == "mxfp8" and packs_draft(c),
        "an MXFP8 cache is not copied with the layers that predict",
        "0.5.21",
    ),
    Barred(
        "hicache_mem_layout",
        lambda c: _splits_layers(c) and c.hicache_mem_layout != "layer_first",
        "layers that are split among context ranks are copied one by one",
        "0.5.16",
        lambda _: (setting(hicache_mem_layout="layer_first"), dropping("enable_hierarchical_cache")),
    ),
    Barred(
        "hicache_mem_layout",
        lambda c: c.model.is_minimax_sparse and c.hicache_mem_layout == "page_head",
        "MiniMax-M3's index is not ordered by heads",
        "0.5.15",
        lambda _: (setting(hicache_mem_layout="page_first"), dropping("hicache_mem_layout")),
    ),
    Barred(
        "hicache_io_backend",
        lambda c: _packs_nvfp4(c) and c.hicache_io_backend == "kernel_ascend",
        "MiniMax-M3's cache of NVFP4 is moved by kernels or directly",
        "0.5.23",
        lambda _: (setting(hicache_io_backend="kernel"), dropping("hicache_io_backend")),
    ),
    Barred(
        "speculative_algorithm",
        lambda c: _packs_nvfp4(c) and c.draft is not None and (c.draft.uses_mla or c.draft.is_hybrid_swa()),
        "beside MiniMax-M3's cache of NVFP4 a draft has full attention of ordinary heads",
        "0.5.23",
    ),
    Barred(
        "hicache_host_memory_mode",
        lambda c: c.hicache_host_memory_mode == "buffer_only" and c.model.is_mambaish and c.before("0.5.22"),
        "recurrent states do not pass through a mere buffer in this release",
        "0.5.19",
    ),
    Barred(
        "pp_size",
        lambda c: c.model.is_minimax_sparse and c.pp_size > 1,
        "MiniMax-M3's sparse cache is not copied from pipeline stages",
        "0.5.15",
        lambda _: (dropping("enable_hierarchical_cache"), setting(pp_size=1)),
    ),
)


@caches.refuses(
    "SPC1013", "host-copy-of-this-cache", raises="NotImplementedError", late=True, since="0.5.15",
    sglang="mem_cache/pool_host/mha_mxfp8.py:__init__",
    earlier=(Earlier("0.5.20", "mem_cache/hybrid_cache/hybrid_pool_assembler.py:build_minimax_sparse_hicache_stack"),),
    bad=(
        f"gpu=b200 -- --kv-cache-dtype mxfp8 --enable-hierarchical-cache --hicache-mem-layout layer_first {INKLING}",
        f"model=deepseek-v3.2 -- {SPLIT} --enable-hierarchical-cache --hicache-mem-layout page_first",
    ),
    good=(
        f"gpu=b200 -- --kv-cache-dtype mxfp8 --enable-hierarchical-cache --hicache-mem-layout page_first {INKLING}",
        f"model=deepseek-v3.2 -- {SPLIT} --enable-hierarchical-cache --hicache-mem-layout layer_first",
    ),
)  # fmt: skip
def host_copy_of_this_cache(c: Config) -> Refusal | None:
    """This cache cannot be copied to host memory in this launch.

    An MXFP8 cache is copied in whole pages by kernels (`--hicache-mem-layout page_first`, `--hicache-io-backend kernel`), and
    stored nowhere; layers that `--enable-dsa-cache-layer-split` splits are copied one by one (`layer_first`); MiniMax-M3's
    sparse cache is copied without pipeline stages only.
    """
    if not c.enable_hierarchical_cache:
        return None
    return first_barred(c, HOSTS, "when the host cache is built", "enable_hierarchical_cache", "model_path")


def _cuts_groups(c: Config) -> bool:
    """Whether pages do not hold whole groups of tokens that the index compresses to one key."""
    ratio = c.model.text_hf("indexer_compress_ratio")
    return bool(ratio) and (c.page_size <= 1 or c.page_size % ratio != 0)


def _row_off_alignment(c: Config) -> bool:
    """Whether a rank's keys of one token, in one layer of a unified pool, do not fill units of 16 bytes."""
    if c.model.uses_mla or not (c.model.is_mambaish or separate_windows(c)):
        return False
    size = 1 if str(c.kv_cache_dtype).startswith("fp8") else 2
    return bool(c.model.get_num_kv_heads(attention_tp_size(c)) * c.model.head_dim * size % 16)


KINDS = (
    Barred(
        "kv_cache_dtype",
        lambda c: bool(c.enable_kv_cache_sharding) and is_fp4(c),
        "shards of an FP4 cache (`--enable-kv-cache-sharding`) would part from its scales",
        "0.5.22",
        lambda _: (setting(kv_cache_dtype="fp8_e4m3"), dropping("enable_kv_cache_sharding")),
    ),
    Barred(
        "enable_unified_memory",
        lambda c: bool(c.enable_unified_memory) and _row_off_alignment(c),
        "the keys of a token do not fill its units of 16 bytes on a rank",
        "0.5.22",
    ),
    Barred(
        "enable_unified_memory",
        lambda c: (
            bool(c.enable_unified_memory)
            and "Llama4ForConditionalGeneration" in c.model.architectures
            and bool({"fa3", "fa4"} & {*backends_of(c)})
        ),
        "fa3 and fa4 find no local attention in a shared pool",
        "0.5.19",
    ),
    Barred(
        "qsa_indexer_dtype",
        lambda c: (
            (c.qsa_indexer_dtype or "auto") != "auto"
            and c.model.text_hf("indexer_compress_ratio") is None
            and c.model.is_mambaish
        ),
        "this model has no compressed index",
        "0.5.22",
    ),
    Barred(
        "enable_int8_mamba_checkpoint",
        lambda c: bool(c.enable_int8_mamba_checkpoint) and c.model.architecture.startswith("Qwen4Exp"),
        "Qwen4-Exp has more states than those of its Mamba layers",
        "0.5.20",
    ),
    Barred(
        "enable_hisparse",
        _one_head_a_rank,
        "every rank needs one KV head of MiniMax-M3",
        "0.5.20",
        lambda c: (setting(tp_size=c.model.total_num_kv_heads), dropping("enable_hisparse")),
    ),
    Barred(
        "page_size",
        lambda c: c.model.architecture.startswith("Qwen4Exp") and _cuts_groups(c),
        "a page of Qwen4-Exp holds whole groups of its compressed index",
        "0.5.20",
        lambda _: (setting(mamba_radix_cache_strategy="extra_buffer"), setting(disable_radix_cache=True)),
    ),
)


@caches.refuses(
    "SPC1014", "option-of-another-cache", raises="ValueError", late=True, since="0.5.19",
    sglang="layers/attention/flashattention_backend.py:_maybe_init_local_attn_builder",
    bad="model=llama-4 -- --tp-size 8 --enable-unified-memory --attention-backend fa3",
    good="model=gpt-oss-120b -- --tp-size 2 --enable-unified-memory",
)  # fmt: skip
def option_of_another_cache(c: Config) -> Refusal | None:
    """This model's cache has no place for the option.

    Llama 4's local attention finds nothing in a shared pool on fa3, an index of FP8 is Qwen4-Exp's, and the sparse cache of MiniMax-M3
    has one head on a rank.
    """
    return first_barred(c, KINDS, f"for {c.model.architecture} when the cache is built", "model_path")


def _other_float(c: Config) -> bool:
    """Whether the draft's cache was typed to be of another kind than the target's."""
    draft, target = c.speculative_draft_kv_cache_dtype, c.kv_cache_dtype
    if {draft, target} & {None, "auto"} or (c.since("0.5.23") and c.speculative_draft_attention_backend == "fa4"):
        return False
    short = {"bfloat16": "bf16"}
    return bool(short.get(draft, draft) != short.get(target, target))


INSIDE = "the draft's cache lies in the target's, which has no place for"
APART = (
    Barred(
        "speculative_draft_model_path",
        lambda c: c.draft is not None and c.draft.uses_mla,
        f"{INSIDE} latent attention",
        way_out=without_one_of("speculative_algorithm", "enable_unified_memory"),
    ),
    Barred(
        "dcp_size",
        lambda c: c.dcp_size > 1,
        f"{INSIDE} whole tokens where ranks share a context",
        way_out=without_one_of("dcp_size", "enable_unified_memory"),
    ),
    Barred(
        "enable_hierarchical_cache",
        lambda c: bool(c.enable_hierarchical_cache),
        f"{INSIDE} DFLASH where recurrent states are copied to the host",
        way_out=without_one_of("enable_hierarchical_cache", "enable_unified_memory"),
    ),
    Barred("speculative_draft_kv_cache_dtype", _other_float, f"{INSIDE} another data type"),
)


@caches.refuses(
    "SPC1087", "draft-apart-from-unified-memory", raises="ValueError", late=True, since="0.5.22",
    sglang="mem_cache/kv_cache_configurator.py:_fused_draft_for_mamba_factory",
    bad="model=qwen3-next-80b -- --tp-size 4 --enable-unified-memory --attention-backend triton --kv-cache-dtype fp8_e4m3 "
    "--speculative-draft-kv-cache-dtype bfloat16 --speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 4",
    good="model=qwen3-next-80b -- --tp-size 4 --enable-unified-memory --attention-backend triton --kv-cache-dtype fp8_e4m3 "
    "--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)  # fmt: skip
def draft_apart_from_unified_memory(c: Config) -> Refusal | None:
    """With unified memory the draft's cache lies in the target's entries.

    The one pool of `--enable-unified-memory` is sized for both. A draft with latent attention or a cache of another data type, ranks that
    share a context, and a host cache beside DFLASH on a model with recurrent states would put the draft's cache apart.
    """
    inside = c.speculative_algorithm in ("EAGLE", "EAGLE3") or (
        c.speculative_algorithm == "DFLASH" and c.model.is_mambaish
    )
    if not c.enable_unified_memory or not inside or not (c.model.is_mambaish or separate_windows(c)):
        return None
    where = f"with {c.shown('enable_unified_memory')} when the cache is built"
    return first_barred(c, APART, where, "speculative_algorithm", "enable_unified_memory")
