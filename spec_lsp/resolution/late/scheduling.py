"""What a scheduler and its graph runners refuse when they start.

Follows managers/scheduler.py, managers/prefill_delayer.py and model_executor/runner/ (0.5.23).

Left out: sizes that the memory found at start decides.
"""

from __future__ import annotations

from spec_lsp.resolution import cuda_graph
from spec_lsp.resolution.attention import backends_of
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, dropping_env, setting, setting_env
from spec_lsp.resolution.late.refused import Barred, first_barred, value_refused

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


THINKING = "SGLANG_MAX_THINK_TOKENS"


@scheduler.refuses(
    "SPC1004", "strict-thinking-without-token-filter", raises="ValueError", late=True, since="0.5.12",
    sglang="constrained/base_grammar_backend.py:create_grammar_backend",
    bad=(
        "--enable-strict-thinking --reasoning-parser qwen3 --grammar-backend none",
        f"{THINKING}=1024 -- --enable-strict-thinking --reasoning-parser qwen3 --grammar-backend outlines",
    ),
    good="--enable-strict-thinking --reasoning-parser qwen3 --grammar-backend xgrammar",
)  # fmt: skip
def strict_thinking_without_token_filter(c: Config) -> Refusal | None:
    """Strict thinking filters tokens, which only XGrammar does.

    `--enable-strict-thinking` keeps a model from leaving its reasoning too late. Remove `--grammar-backend`: XGrammar is the default.
    """
    if not c.enable_strict_thinking or c.skip_tokenizer_init:
        return None
    bounded = c.env.is_set(THINKING) and c.env.number(THINKING, -1) >= 0 and c.reasoning_parser is not None
    if c.grammar_backend != "none" and not (bounded and c.grammar_backend in ("outlines", "llguidance")):
        return None
    return value_refused(
        c,
        "grammar_backend",
        f"cannot filter tokens, which {c.shown('enable_strict_thinking')} needs, so the scheduler stops when it starts. Remove it.",
        "enable_strict_thinking",
        fixes=(dropping("grammar_backend"), setting(grammar_backend="xgrammar"), dropping("enable_strict_thinking")),
    )


@scheduler.refuses(
    "SPC1007", "whole-prompts-of-ngram-embeddings", raises="AssertionError", late=True, since="0.5.12",
    sglang="model_executor/model_runner_components/ngram_embedding_manager.py:from_model",
    bad="""--chunked-prefill-size -1 --json-model-override-args '{"use_ngram_embedding": true}'""",
    good="""--json-model-override-args '{"use_ngram_embedding": true}'""",
)  # fmt: skip
def whole_prompts_of_ngram_embeddings(c: Config) -> Refusal | None:
    """A model that embeds n-grams prefills in chunks.

    Its buffers are as long as a chunk, so `--chunked-prefill-size` cannot be -1 (LongCat-Flash-Lite).
    """
    if not c.model.hf("use_ngram_embedding", False) or (c.chunked_prefill_size or 0) > 0:
        return None
    return value_refused(
        c,
        "chunked_prefill_size",
        f"is refused for {c.model.architecture} with the weights loaded: its buffers of n-grams are as long as a chunk. Remove it.",
        "model_path",
    )


cpu_graphs = Handler(
    "model_executor/cpu_graph_runner.py:__init__", when=lambda c: c.device == "cpu" and bool(c.enable_torch_compile)
)
UNCOMPILED = (
    Barred("enable_lora", lambda c: bool(c.enable_lora or c.lora_paths), "adapters change the layers"),
    Barred("enable_two_batch_overlap", lambda c: bool(c.enable_two_batch_overlap), "it has one batch at a time"),
    Barred("speculative_algorithm", lambda c: c.speculative_algorithm is not None, "it does not verify drafts"),
    Barred("pp_size", lambda c: c.pp_size > 1, "it knows no pipeline stages"),
    Barred(
        "enable_dp_attention",
        lambda c: bool(c.enable_dp_attention) and (c.dp_size or 1) > 1,
        "it knows no data parallelism",
        "",
        lambda _: (dropping("enable_dp_attention", "dp_size"), dropping("enable_torch_compile")),
    ),
)


@cpu_graphs.refuses(
    "SPC1008", "compiled-graph-on-cpu", raises="AssertionError", late=True,
    bad=(
        "gpu=cpu -- --device cpu --enable-torch-compile --pp-size 2",
        "gpu=cpu -- --device cpu --enable-torch-compile --enable-lora --max-lora-rank 8 --lora-target-modules all",
    ),
    good="gpu=cpu -- --device cpu --enable-torch-compile",
)  # fmt: skip
def compiled_graph_on_cpu(c: Config) -> Refusal | None:
    """On a CPU a compiled graph knows the plain launch only.

    `--enable-torch-compile` captures the decode step, without adapters, drafts, pipeline stages or data parallelism.
    """
    return first_barred(
        c, UNCOMPILED, f"with {c.shown('enable_torch_compile')} when the graph is captured", "enable_torch_compile"
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
