"""Which forward passes are captured as CUDA graphs, and at which sizes.

Follows arg_groups/cuda_graph_hook.py and model_executor/cuda_graph_config.py. Since 0.5.14 all of it is one field,
`cuda_graph_config`: for each of the phases "decode" and "prefill" a dictionary with `backend` ("full", "breakable",
"tc_piecewise" until 0.5.21, "disabled"), `max_bs` and `bs` (requests for decode, tokens for prefill). What the user
chose is locked: SGLang's own defaults leave it alone.

Left out: a JSON `--cuda-graph-config` whose values have the wrong type (SGLang fails on it somewhere later), and the
check that a page size is chosen before finalize_cuda_graph_prefill_max_context, which it always is.
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any

from spec_lsp.facts import architectures as arch
from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution.attention import backends_of
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.ranks import attention_cp_size, attention_dp, loads_from_instance

Phase = dict[str, Any]
GraphConfig = dict[str, Phase]

DECODE, PREFILL = "decode", "prefill"
FULL, BREAKABLE, PIECEWISE, DISABLED = "full", "breakable", "tc_piecewise", "disabled"


# --- reading and changing the configuration ---------------------------------------------------------------------------


def backend_of(c: Config, phase: str) -> str:
    """The graph backend of a phase, "disabled" if there is none."""
    return str(c.cuda_graph_config[phase]["backend"])


def is_locked(c: Config, phase: str, key: str = "backend") -> bool:
    """Whether the user chose this setting of a phase."""
    return (phase, key) in c._cuda_graph_config_locked


def changed(c: Config, phase: str, **changes: Any) -> GraphConfig:
    """The configuration with changes to one phase."""
    config: GraphConfig = c.cuda_graph_config
    return {**config, phase: {**config[phase], **changes}}


def disable(c: Config, phase: str) -> None:
    """Disable capturing in a phase."""
    c.set(cuda_graph_config=changed(c, phase, backend=DISABLED))


def is_multimodal(c: Config) -> bool:
    """ModelConfig.is_multimodal with this launch's flags."""
    return bool(c.model.is_multimodal(c.enable_multimodal, bool(c.language_model_only)))


def captures_multimodal(c: Config, breakable: bool) -> bool:
    """Whether the prefill of this multimodal model may be captured with the breakable (else: the piecewise) backend."""
    if not c.model.multimodal_enabled(c.enable_multimodal):
        return False
    return any(_captured(c, name, breakable) for name in c.model.architectures)


def _captured(c: Config, architecture: str, breakable: bool) -> bool:
    if not breakable and architecture == "Cohere2VisionForConditionalGeneration":
        return c.since("0.5.14") and c.before("0.5.19")
    known = arch.MULTIMODAL_BREAKABLE_CUDA_GRAPH if breakable else arch.MULTIMODAL_PIECEWISE_CUDA_GRAPH
    first = (_BREAKABLE_SINCE if breakable else {}).get(architecture, "0.5.16")
    return architecture in known and c.since(first)


_BREAKABLE_SINCE = {
    "InternS2MobiusForConditionalGeneration": "0.5.18",
    "MuseGlimmerForConditionalGeneration": "0.5.18",
    "KimiK3ForConditionalGeneration": "0.5.18",
    "KimiK25ForConditionalGeneration": "0.5.18",
    "Cohere2VisionForConditionalGeneration": "0.5.19",
    "PaddleOCRVLForConditionalGeneration": "0.5.19",
    "Glm5NextForConditionalGeneration": "0.5.20",
    "Qwen4ExpForConditionalGeneration": "0.5.22",
    "MiniMaxM3SparseForCausalLM": "0.5.22",
    "MiniMaxM3SparseForConditionalGeneration": "0.5.22",
    "MuseSparkForConditionalGeneration": "0.5.23",
}
"""The first release that captures these multimodal models with breakable graphs, where that is later than 0.5.16."""


# --- capture sizes ----------------------------------------------------------------------------------------------------


MAX_CAPTURED = 1_000_000
"""A largest size beyond which sizes are not listed: no GPU has room for such graphs."""


def _listed(max_bs: int) -> int:
    """The largest size, if its list can be made. Raises NotKnown otherwise."""
    if max_bs > MAX_CAPTURED:
        raise NotKnown("cuda_graph_config", f"more than {MAX_CAPTURED:,} captured sizes")
    return max_bs


@cache
def decode_sizes(max_bs: int, speculative: bool, padded: bool, ends_at_max: bool = True) -> list[int]:
    """The batch sizes captured for decode up to `max_bs`. Shared: do not change it."""
    if not padded:
        steps: list[range] = [range(1, _listed(max_bs) + 1)]
    elif speculative:
        steps = [
            range(1, 9),
            range(10, 33, 2),
            range(40, 65, 4),
            range(72, 257, 8),
            range(272, _listed(max_bs) + 1, 16),
        ]
    else:
        steps = [
            range(1, 3),
            range(4, 13, 4),
            range(16, 257, 8),
            range(272, 512, 16),
            range(512, _listed(max_bs) + 1, 32),
        ]
    sizes = [size for size in chain(*steps) if size <= max_bs]
    return [*sizes, max_bs] if ends_at_max and max_bs not in sizes else sizes


@cache
def prefill_sizes(max_bs: int, release: str = "") -> list[int]:
    """The token counts captured for prefill up to `max_bs`. Shared: do not change it.

    `release` is "0.5.7" for the grid of 0.5.7 and before, "0.5.8" for that of 0.5.8.
    """
    _listed(max_bs)
    small = (range(4, 33, 4), range(48, 257, 16), range(288, 513, 32))
    match release:
        case "0.5.7":
            large = [range(640, 4097, 128), range(4352, max_bs + 1, 256)]
        case "0.5.8":
            large = [range(640, 1025, 64), range(1280, 4097, 256), range(4608, max_bs + 1, 512)]
        case _:
            large = [range(576, 1025, 64), range(1280, 4097, 256), range(4608, max_bs + 1, 512)]
    return [size for size in chain(*small, *large) if size <= max_bs]


@cache
def cpu_sizes(max_bs: int, padded: bool) -> list[int]:
    """The batch sizes compiled for CPU graphs up to `max_bs`. Shared: do not change it."""
    _listed(max_bs)
    if not padded:
        return list(range(1, max_bs + 1))
    grid = chain(range(1, 17), range(18, 31, 2), range(32, 81, 4), range(84, max_bs + 1, 8), (max_bs,))
    return sorted({size for size in grid if size <= max_bs})


# --- defaults of single architectures ---------------------------------------------------------------------------------

apply_inkling_prefill_cuda_graph_default = Handler(
    "cuda_graph_hook.py:apply_inkling_prefill_cuda_graph_default", since="0.5.16"
)


@apply_inkling_prefill_cuda_graph_default.adjusts("cuda_graph_backend_prefill")
def capture_inkling_prefill_whole(c: Config) -> None:
    """Inkling's prefill is captured whole."""
    if c.cuda_graph_backend_prefill is not None or c.disable_prefill_cuda_graph or loads_from_instance(c):
        return
    if c.model.architecture in ("InklingForConditionalGeneration", "InklingForConditionalGenerationMTP"):
        c.set(cuda_graph_backend_prefill=FULL)


apply_muse_glimmer_prefill_cuda_graph_max_bs_default = Handler(
    "cuda_graph_hook.py:apply_muse_glimmer_prefill_cuda_graph_max_bs_default", since="0.5.18"
)


@apply_muse_glimmer_prefill_cuda_graph_max_bs_default.adjusts("cuda_graph_max_bs_prefill")
def bound_muse_glimmer_prefill(c: Config) -> None:
    """Muse Glimmer captures prefill up to 512 tokens."""
    if c.cuda_graph_max_bs_prefill is not None or loads_from_instance(c):
        return
    if c.model.architecture in ("MuseGlimmerForCausalLM", "MuseGlimmerForConditionalGeneration"):
        c.set(cuda_graph_max_bs_prefill=512)


# --- handle_cuda_graph_config -----------------------------------------------------------------------------------------

handle_cuda_graph_config = Handler("cuda_graph_hook.py:handle_cuda_graph_config", since="0.5.14")

_FLAGS = (
    ("cuda_graph_backend_decode", DECODE, "backend"),
    ("cuda_graph_backend_prefill", PREFILL, "backend"),
    ("cuda_graph_max_bs_decode", DECODE, "max_bs"),
    ("cuda_graph_max_bs_prefill", PREFILL, "max_bs"),
    ("cuda_graph_max_seq_len_prefill", PREFILL, "max_seq_len"),
    ("cuda_graph_bs_decode", DECODE, "bs"),
    ("cuda_graph_bs_prefill", PREFILL, "bs"),
    ("cuda_graph_tc_compiler", DECODE, "tc_compiler"),
    ("cuda_graph_tc_compiler", PREFILL, "tc_compiler"),
    ("cuda_graph_prefill_max_context", PREFILL, "max_context_size"),
)
"""The flags that set one key of a phase, in SGLang's order: the later wins."""


@handle_cuda_graph_config.adjusts("cuda_graph_config", "_cuda_graph_config_locked", spelling=True)
def gather_cuda_graph_flags(c: Config) -> None:
    """The CUDA graph flags are read into one configuration: JSON over single flags over the switches that disable."""
    typed = c.cuda_graph_config
    chosen: dict[tuple[str, str], Any] = {}
    if c.disable_cuda_graph:
        chosen[DECODE, "backend"] = chosen[PREFILL, "backend"] = DISABLED
    if c.disable_prefill_cuda_graph:
        chosen[PREFILL, "backend"] = DISABLED
    if c.disable_decode_cuda_graph:
        chosen[DECODE, "backend"] = DISABLED
    for field, phase, key in _FLAGS:
        value = getattr(c, field)
        if value is not None:
            chosen[phase, key] = value
    for phase, settings in (typed or {}).items():
        if isinstance(settings, dict):
            chosen.update({(phase, key): value for key, value in settings.items()})
    config: GraphConfig = {
        DECODE: {"backend": FULL, "max_bs": None, "bs": None},
        PREFILL: {"backend": _default_prefill_backend(c), "max_bs": None, "bs": None},
    }
    for (phase, key), value in chosen.items():
        config[phase][key] = value
    c.set(cuda_graph_config=config, _cuda_graph_config_locked=frozenset(chosen))


def _default_prefill_backend(c: Config) -> str:
    if c.since("0.5.15") and c.gpu.is_cuda:
        return BREAKABLE
    return DISABLED if c.since("0.5.22") else PIECEWISE


@handle_cuda_graph_config.adjusts("enable_symm_mem", since="0.5.17", until="0.5.19")
def drop_kimi_symmetric_memory(c: Config) -> None:
    """Kimi Linear and Kimi K3 do not capture graphs with symmetric memory."""
    if not c.enable_symm_mem or loads_from_instance(c):
        return
    if c.model.architecture not in ("KimiLinearForCausalLM", "KimiK3ForConditionalGeneration"):
        return
    if backend_of(c, DECODE) != DISABLED or backend_of(c, PREFILL) != DISABLED:
        c.set(enable_symm_mem=False)


@handle_cuda_graph_config.adjusts("cuda_graph_config")
def keep_prefill_graph_where_it_works(c: Config) -> None:
    """The prefill graph is off by default where it cannot be captured, or does not pay."""
    if is_locked(c, PREFILL):
        return
    apply_compatibility(c)


def apply_compatibility(c: Config) -> None:
    """Disable the prefill graph of a configuration that it is incompatible with."""
    backend = backend_of(c, PREFILL)
    if backend == BREAKABLE and c.since("0.5.19") and c.pp_size > 1:
        disable(c, PREFILL)
        return
    if backend == BREAKABLE and _prefers_piecewise(c):
        backend = PIECEWISE
        c.set(cuda_graph_config=changed(c, PREFILL, backend=PIECEWISE))
    if (backend == BREAKABLE and not _breakable_works(c)) or (backend == PIECEWISE and not _piecewise_works(c)):
        disable(c, PREFILL)


def _prefers_piecewise(c: Config) -> bool:
    """Multimodal models whose prefill was captured with torch.compile for a few releases."""
    if c.before("0.5.16") or c.since("0.5.22") or not captures_multimodal(c, breakable=False):
        return False
    if c.before("0.5.18"):
        return True
    return not captures_multimodal(c, breakable=True) and backends_of(c)[0] != "trtllm_mla"


def _breakable_works(c: Config) -> bool:
    model = c.model
    if c.before("0.5.18") and model.uses_mla and not (c.since("0.5.17") and model.is_deepseek_dsa):
        return False
    if c.before("0.5.15"):
        return True
    if c.since("0.5.20") and model.uses_kda_attention and not (c.since("0.5.22") and _is_glm5_next(c)):
        return False
    if c.since("0.5.17") and c.before("0.5.18") and model.architecture in _NEMOTRON_H:
        return False
    if model.is_deepseek_v4 and not (c.since("0.5.23") and captures_context_parallel_prefill(c)):
        return False
    if attention_cp_size(c) > 1 and not captures_context_parallel_prefill(c):
        return False
    if c.since("0.5.16") and c.dcp_size > 1:
        return False
    if c.since("0.5.17"):
        if c.enable_two_batch_overlap or c.moe_a2a_backend not in ("none", "deepep", "megamoe", "flashinfer"):
            return False
    elif c.lora_paths or c.enable_lora or c.moe_a2a_backend != "none" or attention_dp(c):
        return False
    return not is_multimodal(c) or captures_multimodal(c, breakable=True)


_NEMOTRON_H = ("NemotronHForCausalLM", "NemotronHPuzzleForCausalLM", "NemotronHForCausalLMMTP")


def _is_glm5_next(c: Config) -> bool:
    return "Glm5NextForConditionalGeneration" in c.model.architectures


def _piecewise_works(c: Config) -> bool:
    """Whether torch.compile's piecewise graphs can capture this configuration's prefill."""
    if not c.gpu.is_cuda or is_piecewise_disabled_model(c):
        return False
    return not (
        attention_dp(c)
        or c.enable_torch_compile
        or c.pp_size > 1
        or c.moe_a2a_backend != "none"
        or c.lora_paths
        or c.enable_lora
        or c.load_format == "gguf"
        or c.quantization == "gguf"
        or str(c.model_path).endswith(".gguf")
        or c.dllm_algorithm is not None
        or c.cpu_offload_gb > 0
        or c.enable_hierarchical_cache
        or c.enable_deterministic_inference
        or c.disaggregation_mode != "null"
        or c.enable_symm_mem
        or c.enable_eplb
        or c.expert_distribution_recorder_mode is not None
        or attention_cp_size(c) > 1
        or (c.since("0.5.11") and c.debug_cuda_graph)
        or (c.since("0.5.13") and c.enable_dsa_prefill_context_parallel)
        or (c.since("0.5.16") and c.dcp_size > 1)
    )


def is_piecewise_disabled_model(c: Config) -> bool:
    """ModelConfig.is_piecewise_cuda_graph_disabled_model, and multimodal models that are not captured in this way."""
    listed = arch.NO_PIECEWISE_CUDA_GRAPH
    if c.before("0.5.13"):
        listed = listed | {"DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM"}
    if c.before("0.5.12"):
        listed = listed - arch.DEEPSEEK_V4
    if any(name in listed for name in c.model.architectures):
        return True
    return is_multimodal(c) and not captures_multimodal(c, breakable=False)


def captures_context_parallel_prefill(c: Config) -> bool:
    """Whether breakable graphs can capture this prefill with context parallelism (supports_prefill_cp_bcg)."""
    if c.before("0.5.17") or not c.enable_prefill_cp or attention_cp_size(c) != c.tp_size:
        return False
    if c.since("0.5.19") and c.pp_size != 1:
        return False
    prefill, _ = backends_of(c)
    if c.cp_strategy == "zigzag":
        return prefill == "trtllm_mha"
    if c.cp_strategy != "interleave" or c.before("0.5.22"):
        return False
    if c.before("0.5.23"):
        return prefill == "dsv4"
    return prefill == "dsa" and c.dp_size == 1 and c.ep_size == 1 and attention_cp_size(c) > 1 and _is_glm5_next(c)


@handle_cuda_graph_config.adjusts("cuda_graph_config", since="0.5.17")
def align_prefill_sizes_for_deepep(c: Config) -> None:
    """DeepEP can hang on captured prefill sizes that 8 does not divide."""
    align_for_deepep(c)


def align_for_deepep(c: Config) -> None:
    """Round the prefill sizes up to multiples of 8 when DeepEP exchanges tokens inside breakable graphs."""
    if c.moe_a2a_backend != "deepep" or backend_of(c, PREFILL) != BREAKABLE:
        return
    prefill: Phase = c.cuda_graph_config[PREFILL]
    sizes = prefill["bs"]
    if sizes is None:
        sizes = prefill_sizes(prefill["max_bs"] or 2048)
    aligned = sorted({(size + 7) // 8 * 8 for size in sizes})
    if aligned != sorted(sizes):
        c.set(cuda_graph_config=changed(c, PREFILL, bs=aligned, max_bs=aligned[-1]))


@handle_cuda_graph_config.adjusts("cuda_graph_config", since="0.5.16")
def capture_only_what_a_role_runs(c: Config) -> None:
    """A prefill server captures no decode graphs, a decode server no prefill graphs."""
    capture_role_only(c)


def capture_role_only(c: Config) -> None:
    """Disable the graph of the phase that the other disaggregation role runs, unless it was chosen."""
    if c.disaggregation_mode == "null":
        return
    idle = DECODE if c.disaggregation_mode == "prefill" else PREFILL
    if not is_locked(c, idle):
        disable(c, idle)


@handle_cuda_graph_config.refuses(
    "SPC440", "unknown-cuda-graph-backend", raises="ValueError", sglang="cuda_graph_hook.py:validate_cuda_graph_config",
    bad="""--cuda-graph-config '{"decode": {"backend": "segmented"}}'""",
    good="""--cuda-graph-config '{"decode": {"backend": "full"}}'""",
)  # fmt: skip
def unknown_cuda_graph_backend(c: Config) -> Refusal | None:
    """`--cuda-graph-config` names a backend that the phase does not have.

    CUDA graphs record a forward pass once and replay it, which saves the time to launch its kernels one by one. How
    they are recorded is the *backend*:

    - `full` records the whole pass,
    - `breakable` records it in segments, with what cannot be recorded run in between,
    - `disabled` records nothing.

    Releases before 0.5.22 had `tc_piecewise` too, which went through torch.compile; 0.5.14 had no `full` for prefill.
    The flags `--cuda-graph-backend-decode` and `--cuda-graph-backend-prefill` say the same thing and are checked as
    they are read.
    """
    allowed = _allowed_backends(c)
    for phase in (DECODE, PREFILL):
        backend = backend_of(c, phase)
        if backend not in allowed[phase]:
            names = ", ".join(allowed[phase])
            return Refusal(
                at="cuda_graph_config",
                message=f"The {phase} phase has no CUDA graph backend `{backend}` in this release, so SGLang stops. "
                f"It has {names}.",
                fixes=(
                    setting(cuda_graph_config=_with_backend(c, phase, allowed[phase][0])),
                    dropping("cuda_graph_config"),
                ),
            )
    return None


def _allowed_backends(c: Config) -> dict[str, tuple[str, ...]]:
    both = (BREAKABLE, DISABLED) if c.since("0.5.22") else (BREAKABLE, PIECEWISE, DISABLED)
    return {DECODE: (FULL, *both), PREFILL: (FULL, *both) if c.since("0.5.15") else both}


def _with_backend(c: Config, phase: str, backend: str) -> GraphConfig:
    typed = c.typed("cuda_graph_config") or {}
    return {**typed, phase: {**typed.get(phase, {}), "backend": backend}}


# --- later changes ----------------------------------------------------------------------------------------------------

disable_prefill_cuda_graph_for_deepseek_trtllm_mla = Handler(
    "cuda_graph_hook.py:disable_prefill_cuda_graph_for_deepseek_trtllm_mla", since="0.5.15"
)


@disable_prefill_cuda_graph_for_deepseek_trtllm_mla.adjusts("cuda_graph_config")
def spare_trtllm_mla_the_prefill_graph(c: Config) -> None:
    """Under a prefill graph trtllm_mla falls back to FlashAttention, which is slower for DeepSeek V3."""
    if is_locked(c, PREFILL) or backend_of(c, PREFILL) == DISABLED:
        return
    if "DeepseekV3ForCausalLM" in c.model.architectures and backends_of(c)[0] == "trtllm_mla":
        disable(c, PREFILL)


apply_glm5_prefill_cuda_graph_policy = Handler(
    "cuda_graph_hook.py:apply_glm5_prefill_cuda_graph_policy", since="0.5.20", until="0.5.22"
)


@apply_glm5_prefill_cuda_graph_policy.adjusts("cuda_graph_config")
def bound_glm5_prefill(c: Config) -> None:
    """GLM-5 captures prefill up to 4,096 tokens."""
    if backend_of(c, PREFILL) != BREAKABLE or not _is_glm5_next(c):
        return
    if not is_locked(c, PREFILL, "max_bs") and not is_locked(c, PREFILL, "bs"):
        c.set(cuda_graph_config=changed(c, PREFILL, max_bs=4096, bs=prefill_sizes(4096)))
        align_for_deepep(c)


apply_prefill_cp_cuda_graph_default = Handler(
    "cuda_graph_hook.py:apply_prefill_cp_cuda_graph_default", when=lambda c: bool(c.enable_prefill_cp), since="0.5.23"
)


@apply_prefill_cp_cuda_graph_default.adjusts("cuda_graph_config")
def capture_context_parallel_prefill(c: Config) -> None:
    """Where breakable graphs can capture a context-parallel prefill, they do."""
    if is_locked(c, PREFILL) or not captures_context_parallel_prefill(c):
        return
    c.set(cuda_graph_config=changed(c, PREFILL, backend=BREAKABLE))
    apply_compatibility(c)
    capture_role_only(c)
    align_for_deepep(c)


finalize_cuda_graph_prefill_max_context = Handler(
    "cuda_graph_hook.py:finalize_cuda_graph_prefill_max_context", since="0.5.21"
)


def _max_context(c: Config) -> int | None:
    """The requested context length; only a flag sets it."""
    if not c.given("cuda_graph_prefill_max_context") and not c.given("cuda_graph_config"):
        return None
    value: int | None = c.cuda_graph_config[PREFILL].get("max_context_size")
    return value


def _aligned_max_context(c: Config, requested: int) -> int:
    page = int(c.page_size)
    return (requested + page - 1) // page * page


@finalize_cuda_graph_prefill_max_context.refuses(
    "SPC441", "nonpositive-prefill-graph-context", raises="ValueError",
    sglang="cuda_graph_hook.py:_resolve_max_context_size",
    bad="--cuda-graph-prefill-max-context 0", good="--cuda-graph-prefill-max-context 4096",
)  # fmt: skip
def nonpositive_prefill_graph_context(c: Config) -> Refusal | None:
    """The context length that prefill graphs are built for must be positive.

    Prefill graphs whose metadata depends on the context are captured for one fixed context length; longer requests
    run without a graph. Leave the flag out to keep such graphs from being sized by context at all.
    """
    requested = _max_context(c)
    if requested is None or requested > 0:
        return None
    return Refusal(
        at="cuda_graph_prefill_max_context",
        message=f"{c.shown('cuda_graph_prefill_max_context')} is not a context length, so SGLang stops. Remove it, or "
        "give a positive number.",
    )


@finalize_cuda_graph_prefill_max_context.refuses(
    "SPC442", "prefill-graph-context-beyond-model", raises="ValueError",
    sglang="cuda_graph_hook.py:_resolve_max_context_size",
    bad="--cuda-graph-prefill-max-context 200000", good="--cuda-graph-prefill-max-context 65536",
)  # fmt: skip
def prefill_graph_context_beyond_model(c: Config) -> Refusal | None:
    """The context length that prefill graphs are built for exceeds the model's.

    SGLang rounds the number up to whole KV pages and compares it with the context length the server will offer
    (`--context-length`, else what the model's config allows). A graph for more would never be replayed.
    """
    requested = _max_context(c)
    if requested is None or requested <= 0:
        return None
    aligned, limit = _aligned_max_context(c, requested), c.model.context_len(c.context_length)
    if limit <= 0 or aligned <= limit:
        return None
    return Refusal(
        at="cuda_graph_prefill_max_context", related_fields=("context_length", "page_size"),
        message=f"{c.shown('cuda_graph_prefill_max_context')} is more than the {limit} tokens of context the model "
        "serves, so SGLang stops. Ask for at most that much.",
        fixes=(
            setting(cuda_graph_prefill_max_context=limit // c.page_size * c.page_size),
            dropping("cuda_graph_prefill_max_context"),
        ),
    )  # fmt: skip


@finalize_cuda_graph_prefill_max_context.adjusts("cuda_graph_config")
def align_prefill_graph_context(c: Config) -> None:
    """The context length of prefill graphs is rounded up to whole KV pages."""
    requested = _max_context(c)
    if requested is not None:
        c.set(cuda_graph_config=changed(c, PREFILL, max_context_size=_aligned_max_context(c, requested)))


# --- before 0.5.14 ----------------------------------------------------------------------------------------------------

handle_piecewise_cuda_graph = Handler("server_args.py:_handle_piecewise_cuda_graph", since="0.5.10", until="0.5.14")


@handle_piecewise_cuda_graph.adjusts("disable_piecewise_cuda_graph")
def keep_piecewise_graph_where_it_works(c: Config) -> None:
    """The piecewise prefill graph is off where torch.compile cannot capture it, unless it is enforced."""
    if c.enforce_piecewise_cuda_graph:
        c.set(disable_piecewise_cuda_graph=False)
    elif not _piecewise_works(c) or (c.before("0.5.11") and c.speculative_algorithm is not None):
        c.set(disable_piecewise_cuda_graph=True)


handle_compilation_cfg = Handler("server_args.py:_handle_compilation_cfg", since="0.5.6.post2", until="0.5.14")


@handle_compilation_cfg.adjusts("piecewise_cuda_graph_compiler")
def compile_eagerly_on_npu(c: Config) -> None:
    """Ascend compiles piecewise graphs eagerly."""
    if c.gpu.platform == "npu" and c.piecewise_cuda_graph_compiler != "eager":
        c.set(piecewise_cuda_graph_compiler="eager")
