"""What a scheduler and its graph runners refuse when they start.

Follows managers/scheduler.py, managers/prefill_delayer.py and model_executor/runner/ (0.5.23).

Left out: sizes that the memory found at start decides.
"""

from __future__ import annotations

from spec_lsp.resolution import cuda_graph
from spec_lsp.resolution.attention import backends_of
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, dropping_env, setting, setting_env

scheduler = Handler("managers/scheduler.py:check_truncation_align_fits_chunk", when=lambda c: bool(c.device == "cuda"))

TILE = "SGLANG_FLASHINFER_PREFILL_SPLIT_TILE_SIZE"


@scheduler.refuses(
    "SPC960", "chunk-smaller-than-deterministic-tile", raises="ValueError", late=True, since="0.5.22",
    bad=(
        "--enable-deterministic-inference --attention-backend flashinfer --chunked-prefill-size 2048",
        "model=qwen3-30b-a3b -- --tp-size 4 --attn-dp-size 4 --chunked-prefill-size 8192 --enable-deterministic-inference "
        "--attention-backend flashinfer",
    ),
    good=(
        "--enable-deterministic-inference --attention-backend flashinfer --chunked-prefill-size 4096",
        f"{TILE}=2048 -- --enable-deterministic-inference --attention-backend flashinfer --chunked-prefill-size 2048",
    ),
)  # fmt: skip
def chunk_smaller_than_deterministic_tile(c: Config) -> Refusal | None:
    """A prefill chunk is smaller than the tile that deterministic flashinfer prefills by.

    With `--enable-deterministic-inference` flashinfer splits prompts at multiples of 4096 tokens, so that a prompt is computed the same
    in any batch. A chunk that holds no whole tile could never be scheduled. Attention data parallelism divides
    `--chunked-prefill-size` by its ranks. Use larger chunks, or a smaller tile.
    """
    if not c.enable_deterministic_inference or backends_of(c)[0] != "flashinfer" or c.disaggregation_mode == "decode":
        return None
    chunk, tile = c.chunked_prefill_size, c.env.number(TILE, 4096)
    if chunk is None or chunk <= 0 or chunk >= tile:
        return None
    ranks = (c.typed("chunked_prefill_size") or chunk) // chunk
    per = f", {chunk} on each attention-DP rank," if ranks > 1 else ""
    return Refusal(
        at=c.first_given("chunked_prefill_size", "enable_deterministic_inference"),
        related_fields=("enable_deterministic_inference", "attention_backend", TILE),
        message=f"{c.flag_as_typed('chunked_prefill_size') if c.given('chunked_prefill_size') else c.shown('chunked_prefill_size')}{per} "
        f"holds no whole tile of {tile} tokens, by which deterministic flashinfer prefills, so the scheduler stops when it starts.",
        fixes=(
            setting(chunked_prefill_size=tile * ranks),
            setting_env(**{TILE: str(chunk)}),
            setting(attention_backend="triton"),
        ),
    )


@scheduler.refuses(
    "SPC961", "prefill-delayer-without-overlap", raises="AssertionError", late=True, since="0.5.8",
    sglang="managers/prefill_delayer.py:__init__",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --enable-prefill-delayer --disable-overlap-schedule",
    good="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --enable-prefill-delayer",
)  # fmt: skip
def prefill_delayer_without_overlap(c: Config) -> Refusal | None:
    """The prefill delayer works with the overlap scheduler only.

    It holds prefills back until all attention-DP ranks have one, which it counts in the overlapped schedule. Pipeline parallelism and
    some speculative algorithms switch the overlap off too.
    """
    if not c.enable_prefill_delayer or not c.disable_overlap_schedule or c.disaggregation_mode == "decode":
        return None
    typed = c.given("disable_overlap_schedule")
    return Refusal(
        at=c.first_given("enable_prefill_delayer", "disable_overlap_schedule"),
        related_fields=("disable_overlap_schedule",),
        message=f"{c.shown('enable_prefill_delayer')} needs the overlap scheduler, and "
        f"{c.shown('disable_overlap_schedule')} takes it away, so the scheduler stops when it starts."
        if typed
        else f"{c.shown('enable_prefill_delayer')} needs the overlap scheduler, which SGLang switches off here, so the scheduler stops "
        "when it starts.",
        fixes=(*((dropping("disable_overlap_schedule"),) if typed else ()), dropping("enable_prefill_delayer")),
    )


SAVER = "SGLANG_MEMORY_SAVER_CUDA_GRAPH"


@scheduler.refuses(
    "SPC962", "memory-saver-with-breakable-graph", raises="NotImplementedError", late=True, since="0.5.14",
    sglang="model_executor/runner_backend/breakable_cuda_graph_backend.py:__init__",
    bad=f"{SAVER}=1 -- --enable-memory-saver",
    good=f"{SAVER}=1 -- --enable-memory-saver --disable-prefill-cuda-graph",
)  # fmt: skip
def memory_saver_with_breakable_graph(c: Config) -> Refusal | None:
    """The memory saver does not work with a breakable CUDA graph.

    `SGLANG_MEMORY_SAVER_CUDA_GRAPH` lets the saver manage the memory of CUDA graphs too. The prefill graph is of the breakable
    kind by default, which does not work under it. Switch prefill graphs off, or leave the variable out.
    """
    if not c.enable_memory_saver or not c.env.flag(SAVER):
        return None
    phases = [p for p in ("prefill", "decode") if cuda_graph.backend_of(c, p) == "breakable"]
    if not phases:
        return None
    return Refusal(
        at="enable_memory_saver",
        related_fields=(SAVER, f"cuda_graph_backend_{phases[0]}"),
        message=f"{c.shown('enable_memory_saver')} with `{SAVER}` cannot save the memory of the {phases[0]} graph, a breakable one, "
        "so SGLang stops when it captures graphs.",
        fixes=(
            *((setting(disable_prefill_cuda_graph=True),) if phases == ["prefill"] else ()),
            dropping_env(SAVER),
        ),
    )


@scheduler.refuses(
    "SPC963", "prefill-graph-context-without-backend", raises="ValueError", late=True, since="0.5.21",
    sglang="model_executor/runner/prefill_cuda_graph_runner.py:__init__",
    bad="--cuda-graph-prefill-max-context 4096 --attention-backend flashinfer",
    good="--cuda-graph-prefill-max-context 4096 --attention-backend triton",
)  # fmt: skip
def prefill_graph_context_without_backend(c: Config) -> Refusal | None:
    """This attention backend cannot capture a prefill graph of a fixed context length.

    `--cuda-graph-prefill-max-context` bounds the context that a captured prefill step can see. Only triton builds its metadata for such
    a bound (DeepSeek V4 on AMD has its own).
    """
    field = "cuda_graph_prefill_max_context"
    if (c.cuda_graph_prefill_max_context or 0) <= 0 or c.gpu.is_hip or c.model.is_deepseek_v4 or c.model.is_mambaish:
        return None
    if cuda_graph.backend_of(c, "prefill") != "breakable" or not c.gpu.is_cuda:
        return None
    if (c.attn_cp_size or 1) > 1 or set(backends_of(c)) & {"triton", "dsv4"}:
        return None
    return Refusal(
        at=field,
        related_fields=("attention_backend",),
        message=f"{c.shown(field)} is refused with {c.shown('attention_backend')} when graphs are captured: only triton can bound the "
        "context of a prefill graph. Remove it.",
        fixes=(dropping(field), setting(attention_backend="triton")),
    )


@scheduler.notes(
    "SPC992", "grammar-without-tokenizer", since="0.5.8",
    sglang="constrained/grammar_manager.py:__init__",
    bad="--skip-tokenizer-init --grammar-backend xgrammar",
    good="--grammar-backend xgrammar",
)  # fmt: skip
def grammar_without_tokenizer(c: Config) -> Refusal | None:
    """Without a tokenizer there is no grammar backend.

    Grammars are compiled against the tokens' text, so `--skip-tokenizer-init` switches the backend off; a request with a JSON schema or a
    regular expression is answered with an error. SGLang does not say so at start.
    """
    if not c.skip_tokenizer_init or not c.given("grammar_backend") or c.grammar_backend in (None, "none"):
        return None
    return Refusal(
        at="grammar_backend",
        related_fields=("skip_tokenizer_init",),
        message=f"{c.shown('grammar_backend')} has no effect: {c.shown('skip_tokenizer_init')} switches grammars off silently.",
        fixes=(dropping("grammar_backend"), dropping("skip_tokenizer_init")),
    )


WORKSPACE = "SGLANG_FLASHINFER_WORKSPACE_SIZE"


@scheduler.notes(
    "SPC993", "overwritten-flashinfer-workspace",
    sglang="layers/attention/flashinfer_backend.py:__init__",
    bad=f"{WORKSPACE}=402653184 -- --enable-deterministic-inference --attention-backend flashinfer",
    good=f"{WORKSPACE}=402653184 -- --attention-backend flashinfer",
)  # fmt: skip
def overwritten_flashinfer_workspace(c: Config) -> Refusal | None:
    """Deterministic inference sets the workspace of flashinfer to 2 GiB, whatever the environment says.

    Its fixed tiles need that much. The variable counts without `--enable-deterministic-inference`.
    """
    if not c.enable_deterministic_inference or not c.env.is_set(WORKSPACE) or "flashinfer" not in backends_of(c):
        return None
    if c.env.text(WORKSPACE) == str(2048 * 1024 * 1024):
        return None
    return Refusal(
        at=WORKSPACE,
        related_fields=("enable_deterministic_inference",),
        message=f"`{WORKSPACE}` has no effect: deterministic inference sets flashinfer's workspace to 2 GiB silently.",
        fixes=(dropping_env(WORKSPACE),),
    )
