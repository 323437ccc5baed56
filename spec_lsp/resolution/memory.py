"""The GPU memory budget: prefill chunks, the sizes of CUDA graphs, and the share of memory for weights and KV cache.

Follows arg_groups/memory_hook.py and, in overrides.py, post_capture_kv_sizing_planned and max_prefill_buffer_tokens.

Left out: providers that plug-ins register for the size of the prefill buffer (prefill_buffer_ceiling.py); the memory
of CPU, NPU and XPU hosts, which no launch tells.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from spec_lsp.facts.known import NotKnown
from spec_lsp.records import NamedTuple
from spec_lsp.resolution.cuda_graph import (
    BREAKABLE,
    DECODE,
    DISABLED,
    PREFILL,
    backend_of,
    changed,
    cpu_sizes,
    decode_sizes,
    is_locked,
    is_multimodal,
    prefill_sizes,
)
from spec_lsp.resolution.engine import Config, Earlier, Handler, Refusal, dropping, setting
from spec_lsp.resolution.kv_cache import separate_windows
from spec_lsp.resolution.ranks import attention_dp, attention_dp_size

GIB = 1024

# --- handle_offload_compatibility -------------------------------------------------------------------------------------

handle_offload_compatibility = Handler("memory_hook.py:handle_offload_compatibility", since="0.5.20")


@handle_offload_compatibility.refuses(
    "SPC400", "embedding-offload-with-layer-offload", raises="ValueError",
    bad="--ple-offload-embedding --cpu-offload-gb 8", good="--ple-offload-embedding",
)  # fmt: skip
def embedding_offload_with_layer_offload(c: Config) -> Refusal | None:
    """Two ways of offloading weights to the host are asked for at once.

    `--ple-offload-embedding` keeps the per-layer embedding table pinned in host memory. `--cpu-offload-gb` and
    `--offload-group-size` stage whole layers to the device when they run, and would bring that table back with them.
    Choose one: the embedding table alone for models that have one, layers for everything else.
    """
    if not c.ple_offload_embedding or not (c.cpu_offload_gb > 0 or c.offload_group_size > 0):
        return None
    other = "cpu_offload_gb" if c.cpu_offload_gb > 0 else "offload_group_size"
    return Refusal(
        at=other if c.given(other) else "ple_offload_embedding",
        related_fields=("ple_offload_embedding", "cpu_offload_gb", "offload_group_size"),
        message=f"{c.shown(other)} would move the embedding table that {c.shown('ple_offload_embedding')} keeps on the "
        "host back to the GPU, and SGLang refuses the pair. Keep one of the two.",
        fixes=(dropping("cpu_offload_gb", "offload_group_size"), setting(ple_offload_embedding=False)),
    )


@handle_offload_compatibility.refuses(
    "SPC401", "file-backend-without-embedding-offload", raises="ValueError",
    bad="--ple-offload-backend file --no-ple-offload-embedding",
    good="--ple-offload-backend file --ple-offload-embedding",
)  # fmt: skip
def file_backend_without_embedding_offload(c: Config) -> Refusal | None:
    """The file that should hold the offloaded embedding table, without offloading it.

    `--ple-offload-backend file` reads the embedding table from a file instead of host memory, so there must be an
    offloaded table. Turn `--ple-offload-embedding` on, or leave the backend out.
    """
    if c.ple_offload_backend != "file" or c.ple_offload_embedding is not False:
        return None
    return Refusal(
        at="ple_offload_backend",
        related_fields=("ple_offload_embedding",),
        message=f"{c.shown('ple_offload_backend')} has no table to read while the embedding is not offloaded, so "
        "SGLang stops. Offload the embedding, or remove the backend.",
        fixes=(setting(ple_offload_embedding=True), dropping("ple_offload_backend")),
    )


# --- tiers of GPU memory ----------------------------------------------------------------------------------------------


class Tier(NamedTuple):
    """SGLang's defaults for GPUs with less than `below` MiB: the prefill chunk, the decode graphs below TP 4 and from it."""

    below: float
    chunk: int
    graph: int
    graph_wide: int


_TIERS = (
    Tier(20 * GIB, 2048, 8, 8),
    Tier(35 * GIB, 4096, 48, 160),
    Tier(60 * GIB, 4096, 32, 160),
    Tier(90 * GIB, 8192, 256, 512),
    Tier(160 * GIB, 8192, 256, 512),
    Tier(math.inf, 16384, 512, 512),
)
_SMALL_TIER_BEFORE_0_5_20 = Tier(35 * GIB, 2048, 24, 80)


def tier(c: Config) -> Tier:
    """The tier of this GPU. Raises NotKnown if the devices of a family are in different tiers."""
    least, most = c.gpu.memory_bounds
    low, high = _tier_of(least, c.before("0.5.20")), _tier_of(most, c.before("0.5.20"))
    if low[1:] != high[1:]:
        raise NotKnown("GPU memory", f"devices of {c.gpu.title} differ in memory")
    return high


@cache
def _tier_of(memory: int, before_0_5_20: bool) -> Tier:
    found = next(t for t in _TIERS if memory < t.below)
    return _SMALL_TIER_BEFORE_0_5_20 if found is _TIERS[1] and before_0_5_20 else found


# --- handle_gpu_memory_settings ---------------------------------------------------------------------------------------

apply_glm5_chunked_prefill_default = Handler(
    "cuda_graph_hook.py:apply_glm5_chunked_prefill_default", since="0.5.20", until="0.5.22"
)


@apply_glm5_chunked_prefill_default.adjusts("chunked_prefill_size")
def bound_glm5_chunk(c: Config) -> None:
    """With a prefill graph chosen, GLM-5 prefills in chunks of 4,096 tokens, which the graph covers."""
    if not c.gpu.is_cuda or c.chunked_prefill_size is not None:
        return
    if is_locked(c, PREFILL) and backend_of(c, PREFILL) == BREAKABLE:
        if "Glm5NextForConditionalGeneration" in c.model.architectures:
            c.set(chunked_prefill_size=4096)


handle_gpu_memory_settings = Handler(
    "memory_hook.py:handle_gpu_memory_settings",
    earlier=(Earlier("0.5.19", "server_args.py:_handle_gpu_memory_settings"),),
)


@handle_gpu_memory_settings.adjusts("chunked_prefill_size")
def choose_prefill_chunk(c: Config) -> None:
    """The more memory the GPU has, the more tokens one prefill chunk takes."""
    if c.chunked_prefill_size is None:
        c.set(chunked_prefill_size=tier(c).chunk)


def _default_decode_size(c: Config) -> int:
    found = tier(c)
    return found.graph if c.tp_size < 4 else found.graph_wide


@handle_gpu_memory_settings.refuses(
    "SPC402", "nonpositive-cpu-graph-size", raises="AssertionError", since="0.5.10",
    bad="gpu=cpu -- --device cpu --torch-compile-max-bs -1", good="gpu=cpu -- --device cpu --torch-compile-max-bs 16",
)  # fmt: skip
def nonpositive_cpu_graph_size(c: Config) -> Refusal | None:
    """CPU graphs are compiled for batch sizes, which must be positive.

    On CPU, SGLang compiles the decode step for each batch size up to the largest decode graph size that was given,
    else up to `--torch-compile-max-bs`.
    """
    if c.device != "cpu":
        return None
    sizes, largest = _typed_decode_sizes(c)
    limit = max(sizes) if sizes else c.torch_compile_max_bs or largest
    if limit is None or limit > 0:
        return None
    at = c.first_given(*_DECODE_SIZE_FLAGS, "torch_compile_max_bs")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} leaves no positive batch size to compile for, so SGLang stops. Remove it, or give a "
        "positive number.",
        fixes=(dropping(at), dropping(*_DECODE_SIZE_FLAGS, "torch_compile_max_bs")),
    )


_DECODE_SIZE_FLAGS = (
    "cuda_graph_bs_decode", "cuda_graph_max_bs_decode", "cuda_graph_bs", "cuda_graph_max_bs", "cuda_graph_config",
)  # fmt: skip


def _typed_decode_sizes(c: Config) -> tuple[list[int] | None, int | None]:
    """The decode graph sizes and the largest of them, before SGLang has chosen any."""
    if c.before("0.5.14"):
        return c.cuda_graph_bs, c.cuda_graph_max_bs
    decode = c.cuda_graph_config[DECODE]
    return decode["bs"], decode["max_bs"]


@handle_gpu_memory_settings.refuses(
    "SPC403", "empty-graph-sizes", raises="ValueError", since="0.5.14",
    bad="""--cuda-graph-config '{"decode": {"bs": []}}'""", good="""--cuda-graph-config '{"decode": {"bs": [1, 8]}}'""",
)  # fmt: skip
def empty_graph_sizes(c: Config) -> Refusal | None:
    """The list of decode graph sizes is empty.

    SGLang crashes looking for the largest of them. Leave `bs` out of `--cuda-graph-config` to let SGLang choose the
    sizes, or set `backend` to `disabled` to capture none.
    """
    if _typed_decode_sizes(c)[0] != []:
        return None
    return Refusal(
        at="cuda_graph_config",
        message=f"{c.shown('cuda_graph_config')} names no decode graph size at all, and SGLang crashes. Leave `bs` out.",
        fixes=(dropping("cuda_graph_config"), setting(cuda_graph_config={DECODE: {"backend": DISABLED}})),
    )


# since 0.5.14: cuda_graph_config


@handle_gpu_memory_settings.adjusts("cuda_graph_config", "torch_compile_max_bs", since="0.5.14")
def choose_decode_graph_sizes(c: Config) -> None:
    """The more memory the GPU has, the larger the decode batches that are captured as CUDA graphs."""
    phase = c.cuda_graph_config[DECODE]
    largest, sizes = phase["max_bs"], phase["bs"]
    if largest is None:
        largest = _default_decode_size(c)
        if c.since("0.5.22") and c.max_running_requests is not None:
            largest = min(largest, c.max_running_requests)
    largest = _expand_for_qwen3_vl(c, largest)
    if c.device == "cpu":
        limit = max(sizes) if sizes is not None else c.torch_compile_max_bs or largest
        c.set(torch_compile_max_bs=limit)
        largest, sizes = limit, sizes or cpu_sizes(limit, not c.disable_cuda_graph_padding)
    elif sizes is None:
        sizes = decode_sizes(largest, c.speculative_algorithm is not None, not c.disable_cuda_graph_padding)
    else:
        largest = max(sizes)
    c.set(cuda_graph_config=changed(c, DECODE, max_bs=largest, bs=sizes))


def _expand_for_qwen3_vl(c: Config, largest: int) -> int:
    """Qwen3-VL on large Hopper GPUs keeps every decode batch within the graphs, up to 512 requests."""
    requests = c.max_running_requests
    if c.before("0.5.20") or requests is None or not largest < requests <= 512:
        return largest
    if is_locked(c, DECODE, "max_bs") or is_locked(c, DECODE, "bs"):
        return largest
    if not c.gpu.sm90 or c.gpu.memory < 60 * GIB:
        return largest
    is_qwen3_vl = c.model.model_type in ("qwen3_vl", "qwen3_vl_moe") and is_multimodal(c)
    return int(requests) if is_qwen3_vl else largest


@handle_gpu_memory_settings.adjusts("cuda_graph_config", since="0.5.14")
def choose_prefill_graph_sizes(c: Config) -> None:
    """Prefill is captured for every number of tokens up to a chunk; for MLA up to 8,192."""
    prefill = c.cuda_graph_config[PREFILL]
    largest = prefill["max_bs"]
    if largest is None:
        largest = _default_prefill_size(c)
    if c.before("0.5.17") and c.context_length is not None:
        largest = min(largest, c.context_length)
    sizes = prefill["bs"]
    c.set(cuda_graph_config=changed(c, PREFILL, max_bs=largest, bs=prefill_sizes(largest) if sizes is None else sizes))


def _default_prefill_size(c: Config) -> int:
    largest: int = c.chunked_prefill_size
    if c.model.uses_mla:
        largest = min(8192, largest) if c.since("0.5.23") else 2048
    if c.since("0.5.19") and c.pp_size > 1 and backend_of(c, PREFILL) == BREAKABLE and not is_locked(c, PREFILL, "bs"):
        largest = min(largest, 8192)
    if c.max_total_tokens is not None:
        largest = min(largest, c.max_total_tokens)
    return min(largest, 4096) if "llama-2" in str(c.model_path).lower() else largest


# before 0.5.14: fields of their own


@handle_gpu_memory_settings.adjusts("cuda_graph_max_bs", "cuda_graph_bs", "torch_compile_max_bs", until="0.5.14")
def choose_decode_graph_sizes_before_0_5_14(c: Config) -> None:
    """The more memory the GPU has, the larger the decode batches that are captured as CUDA graphs."""
    largest, sizes, padded = c.cuda_graph_max_bs, c.cuda_graph_bs, not c.disable_cuda_graph_padding
    if largest is None:
        largest = _default_decode_size(c)
    if c.device == "cpu" and c.since("0.5.10"):
        largest = max(sizes) if sizes is not None else c.torch_compile_max_bs or largest
        c.set(torch_compile_max_bs=largest)
        sizes = sizes or cpu_sizes(largest, padded)
    elif sizes is None:
        sizes = decode_sizes(largest, c.speculative_algorithm is not None, padded, c.since("0.5.10"))
    else:
        largest = max(sizes)
    c.set(cuda_graph_max_bs=largest, cuda_graph_bs=sizes)


@handle_gpu_memory_settings.adjusts("piecewise_cuda_graph_max_tokens", "piecewise_cuda_graph_tokens", until="0.5.14")
def choose_prefill_graph_sizes_before_0_5_14(c: Config) -> None:
    """Prefill is captured for every number of tokens up to a chunk; for MLA up to 2,048."""
    largest: int | None = c.piecewise_cuda_graph_max_tokens
    if largest is None:
        largest = 2048 if c.since("0.5.8") and c.model.uses_mla else c.chunked_prefill_size
        if c.since("0.5.10") and c.max_total_tokens is not None:
            largest = min(largest, c.max_total_tokens)
        if c.since("0.5.10") and "llama-2" in str(c.model_path).lower():
            largest = min(largest, 4096)
    if c.since("0.5.13") and c.context_length is not None:
        largest = min(largest, c.context_length)
    sizes = c.piecewise_cuda_graph_tokens
    if sizes is None:
        sizes = prefill_sizes(largest, "0.5.7" if c.before("0.5.8") else "0.5.8" if c.before("0.5.9") else "")
    c.set(piecewise_cuda_graph_max_tokens=largest, piecewise_cuda_graph_tokens=sizes)


# --- mem_fraction_static ----------------------------------------------------------------------------------------------


@handle_gpu_memory_settings.adjusts("mem_fraction_static")
def choose_memory_fraction(c: Config) -> None:
    """What activations and CUDA graphs are not estimated to need goes to weights and KV cache."""
    if c.mem_fraction_static is not None:
        return
    memory = c.gpu.memory
    post_capture = plans_post_capture_sizing(c)
    if post_capture:
        reserved = (1536 if c.since("0.5.18") else 512) + _parallel_mib(c)
    else:
        reserved = 512 + _activation_tokens(c) * 1.5 + _parallel_mib(c) + _graph_mib(c)
        if memory > 60 * GIB:
            reserved = max(reserved, 10 * GIB)
        reserved += _beyond_the_floor_mib(c)
    fraction = round((memory - reserved) / memory, 3)
    if _serves_images(c):
        fraction = _leave_room_for_images(c, fraction, post_capture, memory)
    c.set(mem_fraction_static=fraction)


def _parallel_mib(c: Config) -> float:
    return float(c.tp_size * c.pp_size / 8 * GIB)


def _activation_tokens(c: Config) -> int:
    if c.disaggregation_mode == "decode" and c.since("0.5.15"):
        requests = c.max_running_requests or _decode_size(c) or 1
        return max(int(requests * (c.speculative_num_draft_tokens or 1)), 2048)
    chunk = c.chunked_prefill_size
    return max(int(chunk if chunk > 0 else c.max_prefill_tokens), 2048)


def _decode_size(c: Config) -> int:
    return int(c.cuda_graph_config[DECODE]["max_bs"] if c.since("0.5.14") else c.cuda_graph_max_bs)


def _graph_mib(c: Config) -> float:
    """What CUDA graphs of both phases take (reserve_for_graph_mb)."""
    decode_size, by_role = _decode_size(c), c.since("0.5.15")
    decodes = not (by_role and c.disaggregation_mode == "prefill")
    reserved = 0.0
    if decodes and not (by_role and backend_of(c, DECODE) == DISABLED):
        reserved += decode_size * 2
    if decodes and attention_dp(c):
        reserved += decode_size * attention_dp_size(c) * (4.5 if decode_size > 300 else 3)
    if not (by_role and c.disaggregation_mode == "decode"):
        reserved += _prefill_graph_mib(c)
    return reserved


def _prefill_graph_mib(c: Config) -> float:
    if c.before("0.5.14"):
        return _prefill_graph_mib_before_0_5_14(c)
    backend = backend_of(c, PREFILL)
    if backend == DISABLED:
        return 0
    reserved = 1.5 * GIB if c.model.uses_mla else len(c.cuda_graph_config[PREFILL]["bs"]) * 8
    if c.since("0.5.17") and backend == BREAKABLE and c.moe_a2a_backend == "deepep":
        reserved += GIB
    return reserved


def _prefill_graph_mib_before_0_5_14(c: Config) -> float:
    if c.since("0.5.10"):
        if c.disable_piecewise_cuda_graph:
            return 0
        return 1.5 * GIB if c.model.uses_mla else len(c.piecewise_cuda_graph_tokens) * 8
    if c.since("0.5.8") and c.enable_piecewise_cuda_graph:
        return len(c.piecewise_cuda_graph_tokens) * 8
    return 0


def _beyond_the_floor_mib(c: Config) -> float:
    """What is reserved on top of the 10 GiB that large GPUs always keep free."""
    reserved = 0.0
    if c.since("0.5.15") and c.disaggregation_mode != "prefill" and c.moe_a2a_backend == "deepep":
        if backend_of(c, DECODE) != DISABLED:
            reserved += 2 * GIB
    if c.before("0.5.14"):
        reserved += _draft_mib(c)
    if c.before("0.5.8") and c.since("0.5.5") and c.enable_piecewise_cuda_graph:
        reserved += c.piecewise_cuda_graph_max_tokens // (8 if c.since("0.5.7") else 4)
    if c.since("0.5.20") and c.gpu.platform == "xpu":
        reserved += 2 * GIB
    return reserved


def _draft_mib(c: Config) -> float:
    match c.speculative_algorithm:
        case None | "NGRAM":
            return 0
        case "STANDALONE":
            return 6 * GIB
        case _:
            return (4 if c.since("0.5.10") else 2) * GIB


def _serves_images(c: Config) -> bool:
    if not is_multimodal(c) or (c.since("0.5.9") and c.language_only):
        return False
    return not (c.since("0.5.17") and c.disaggregation_mode == "decode")


def _leave_room_for_images(c: Config, fraction: float, post_capture: bool, memory: int) -> float:
    """Keep memory for the image encoder, more of it the larger the encoder is (adjust_mem_fraction_for_vlm)."""
    if post_capture and c.since("0.5.20"):
        return fraction - 8 * GIB / memory
    vision: Any = c.model.hf("vision_config")
    if vision is None:
        return fraction
    layers, width = vision.get("num_hidden_layers"), vision.get("hidden_size")
    if layers is None or width is None:
        raise NotKnown("the image encoder's size", "config.json leaves it to transformers")
    factor = 1.0 - 0.1 * (layers * width**2 / (24 * 1024**2) - 1.0)
    return fraction * float(0.95 * max(0.8, min(1.05, factor)))


# --- sizing the KV pool after the graphs ------------------------------------------------------------------------------


def plans_post_capture_sizing(c: Config) -> bool:
    """Whether the KV pool is sized once graphs are captured, with nothing reserved (post_capture_kv_sizing_planned)."""
    if c.before("0.5.16") or (c.since("0.5.22") and c.enable_kv_cache_sharding) or not _post_capture_wanted(c):
        return False
    if c.device not in (None, "cuda") or c.dcp_size != 1 or c.model.uses_mla:
        return False
    if c.prefill_only_disable_kv_cache or c.enable_memory_saver or c.env.is_set("SGLANG_MOONCAKE_CUSTOM_MEM_POOL"):
        return False
    if c.before("0.5.21"):
        if c.kv_cache_dtype == "fp4_e2m1":
            return False
    elif c.disaggregation_transfer_backend == "mooncake" and _mooncake_over_efa(c):
        return False
    if c.since("0.5.21") and c.enable_unified_memory and not (c.since("0.5.22") and _unified_pool_resizes(c)):
        return False
    if c.model.is_deepseek_v4 or c.model.is_minimax_sparse:
        return False
    return _graphs_cover_every_pass(c)


def _post_capture_wanted(c: Config) -> bool:
    muse_spark = c.since("0.5.23") and c.model.architecture == "MuseSparkForConditionalGeneration"
    return c.env.flag("SGLANG_ENABLE_POST_CAPTURE_KV_SIZING", muse_spark)


def _mooncake_over_efa(c: Config) -> bool:
    return (c.env.text("MOONCAKE_PROTOCOL") or "rdma").lower() == "efa"


def _unified_pool_resizes(c: Config) -> bool:
    """Of unified pools only that of sliding-window models, without a draft in it, can be resized."""
    if not separate_windows(c) or c.model.is_mambaish:
        return False
    algorithm = (c.speculative_algorithm or "").upper()
    return algorithm in ("", "NGRAM")


def _graphs_cover_every_pass(c: Config) -> bool:
    if c.before("0.5.17") and c.enable_dp_attention:
        return False
    if c.disaggregation_mode != "prefill" and backend_of(c, DECODE) == DISABLED:
        return False
    if c.disaggregation_mode == "decode":
        return True
    if backend_of(c, PREFILL) == DISABLED:
        return False
    if c.before("0.5.17"):
        return True
    sizes = c.cuda_graph_config[PREFILL]["bs"] or (0,)
    return bool(c.chunked_prefill_size > 0 and max_prefill_buffer_tokens(c) <= max(sizes))


def max_prefill_buffer_tokens(c: Config) -> int:
    """The most tokens one prefill pass takes (max_prefill_buffer_tokens)."""
    chunk = max(c.chunked_prefill_size or 0, 0)
    if c.enable_dynamic_chunking and c.pp_size > 1 and chunk:
        return max(chunk, c.max_prefill_tokens or 0, math.ceil(chunk * 1.25))
    return chunk
