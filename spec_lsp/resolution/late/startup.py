"""What a model runner refuses while it loads weights beside capturing, captures prefill graphs, or hands out hidden states.

Follows model_executor/model_runner_components/startup_weight_load.py and spec_aux_hidden_state.py, load_model_utils.py, and
model_executor/runner/prefill_cuda_graph_runner.py (0.5.23).

Left out: shards that no file name tells, storage that moves while weights are loaded, sizes that the memory found at start decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from spec_lsp.facts.registers import register
from spec_lsp.resolution import cuda_graph
from spec_lsp.resolution.attention import backends_of
from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.model.config import model_dtype, served_quantization
from spec_lsp.resolution.ranks import attention_cp_size, attention_dp_size

model_runner = Handler(
    "model_executor/model_runner_components/startup_weight_load.py:create", when=lambda c: bool(c.device == "cuda")
)


def _keeps_from_overlapping(c: Config) -> Iterator[tuple[str, str]]:
    """The settings that startup-weight overlap does not support: each a field, and why, the most common first."""
    classes = register("overlapping_classes", c.release) or ()
    if c.model.architecture not in classes:
        yield "model_path", f"{c.model.architecture} is not one of {', '.join(sorted(classes))}"
    elif served_quantization(c).method is not None:
        yield (
            c.first_given("quantization", "model_path"),
            "quantized weights are changed after they are loaded",
        )
    elif model_dtype(c) not in ("float16", "bfloat16"):
        yield "dtype", "only float16 and bfloat16 weights are staged"
    if c.tp_size not in (1, 2):
        yield "tp_size", "it knows one and two TP ranks"
    if c.speculative_algorithm is not None:
        yield "speculative_algorithm", "a draft is loaded too"
    if all(cuda_graph.backend_of(c, phase) == cuda_graph.DISABLED for phase in (cuda_graph.DECODE, cuda_graph.PREFILL)):
        yield "disable_cuda_graph", "without graphs there is nothing to overlap with"
    for field, off, why in (
        ("pp_size", 1, "pipeline stages load apart"),
        ("dcp_size", 1, "it knows no context parallelism"),
        ("ep_size", 1, "it knows no expert parallelism"),
        ("cpu_offload_gb", 0, "offloaded weights stay on the host"),
        ("enable_memory_saver", False, "the memory saver moves weights"),
        ("enable_lora", None, "adapters change the layers"),
        ("enable_torch_compile", False, "compiled code fixes the weights"),
        ("weight_loader_disable_mmap", False, "files are mapped to be read ahead"),
        ("custom_weight_loader", None, "it reads the files itself"),
    ):
        if getattr(c, field) not in (off, None, False, []):
            yield field, why
    if attention_dp_size(c) != 1 or c.dp_size != 1:
        yield "dp_size", "it knows no data parallelism"
    if attention_cp_size(c) != 1:
        yield "attn_cp_size", "it knows no context parallelism"
    if c.load_format not in ("auto", "safetensors"):
        yield "load_format", "only safetensors files are read ahead"


@model_runner.refuses(
    "SPC471", "startup-overlap-of-other-weights", raises="ValueError", late=True, since="0.5.18",
    bad=(
        "--startup-weight-load-mode overlap --tp-size 4",
        "model=qwen3-30b-a3b -- --startup-weight-load-mode overlap",
        "--startup-weight-load-mode overlap --quantization fp8",
        "--startup-weight-load-mode overlap --disable-cuda-graph",
    ),
    good=("--startup-weight-load-mode overlap", "model=qwen3-8b -- --startup-weight-load-mode overlap --tp-size 2"),
)  # fmt: skip
def startup_overlap_of_other_weights(c: Config) -> Refusal | None:
    """Weights can be loaded beside graph capture for a few plain launches only.

    `--startup-weight-load-mode overlap` serves Llama, Qwen2 and Qwen3 in float16 or bfloat16 on one or two GPUs, from safetensors files,
    with CUDA graphs, and without quantization, drafts, adapters, pipelines, data parallelism or offloading.
    """
    if c.startup_weight_load_mode != "overlap":
        return None
    found = next(_keeps_from_overlapping(c), None)
    if found is None:
        return None
    field, why = found
    return Refusal(
        at="startup_weight_load_mode",
        related_fields=(field,),
        message=f"{c.shown('startup_weight_load_mode')} is refused with {c.shown(field)} before the weights are loaded: {why}.",
        fixes=(dropping("startup_weight_load_mode"), *(() if field == "model_path" else (dropping(field),))),
    )


@model_runner.refuses(
    "SPC472", "captured-layer-beyond-model", raises="ValueError", late=True, since="0.5.23",
    sglang="model_executor/model_runner_components/spec_aux_hidden_state.py:_check_capture_layer_ids_in_range",
    bad="--enable-return-aux-hidden-states --speculative-algorithm EAGLE3 --return-aux-hidden-state-layer-ids 1 16 40",
    good="--enable-return-aux-hidden-states --speculative-algorithm EAGLE3 --return-aux-hidden-state-layer-ids 1 16 31",
)  # fmt: skip
def captured_layer_beyond_model(c: Config) -> Refusal | None:
    """The model has fewer layers than one that is to be captured.

    `--return-aux-hidden-state-layer-ids` counts layers from 0; the last is one less than `num_hidden_layers` in config.json.
    """
    layers = c.return_aux_hidden_state_layer_ids
    if not c.enable_return_aux_hidden_states or not layers:
        return None
    count = c.model.num_hidden_layers * int(c.model.text_hf("num_loops", 1))
    beyond = [layer for layer in layers if layer >= count]
    if not beyond:
        return None
    field = "return_aux_hidden_state_layer_ids"
    within = [layer for layer in layers if layer < count]
    return Refusal(
        at=field,
        related_fields=("model_path",),
        message=f"{c.shown(field)} names layer {beyond[0]} of a model whose last is {count - 1}, so SGLang stops once the weights are "
        "loaded.",
        fixes=(*((setting(return_aux_hidden_state_layer_ids=within),) if within else ()), dropping(field)),
    )


CHUNKED_PREFIXES = (
    "flashinfer",
    "fa3",
    "fa4",
    "flashmla",
    "cutedsl_mla",
    "cutlass_mla",
    "trtllm_mla",
    "tokenspeed_mla",
)
"""CHUNKED_PREFIX_CACHE_SUPPORTED_ATTENTION_BACKENDS: backends that prefill a cached prefix of an MLA model by chunks."""


@model_runner.refuses(
    "SPC473", "full-prefill-graph-of-chunked-prefix", raises="AssertionError", late=True, since="0.5.18",
    sglang="model_executor/runner/prefill_cuda_graph_runner.py:__init__",
    bad="model=deepseek-v3 -- --tp-size 8 --cuda-graph-backend-prefill full --attention-backend flashinfer",
    good=(
        "model=deepseek-v3 -- --tp-size 8 --cuda-graph-backend-prefill full --attention-backend fa3",
        "model=deepseek-v3 -- --tp-size 8 --cuda-graph-backend-prefill full --attention-backend flashinfer "
        "--disable-chunked-prefix-cache",
    ),
)  # fmt: skip
def full_prefill_graph_of_chunked_prefix(c: Config) -> Refusal | None:
    """A full prefill graph captures the chunks of a cached prefix on FlashAttention only.

    MLA models (DeepSeek, Kimi) prefill a cached prefix in chunks. `--cuda-graph-backend-prefill full` captures them
    with the step, for which only fa3 and fa4 have fixed metadata.
    """
    if cuda_graph.backend_of(c, cuda_graph.PREFILL) != cuda_graph.FULL or c.disable_chunked_prefix_cache:
        return None
    if not c.model.uses_mla or c.model.is_mambaish or c.dllm_algorithm is not None or c.enable_lora:
        return None
    name = backends_of(c)[0]
    if name not in CHUNKED_PREFIXES or name in ("fa3", "fa4"):
        return None
    if c.since("0.5.20") and name in ("cutlass_mla", "tokenspeed_mla"):
        return None
    return Refusal(
        at=c.first_given("cuda_graph_backend_prefill", "cuda_graph_config"),
        related_fields=("attention_backend",),
        message=f"A full prefill graph is refused with {c.shown('attention_backend')} when graphs are captured: only FlashAttention "
        "captures the chunks of a cached prefix.",
        fixes=(
            dropping("cuda_graph_backend_prefill"),
            setting(disable_chunked_prefix_cache=True),
            *((setting(attention_backend="fa3"),) if c.gpu.sm90 else ()),
        ),
    )


@model_runner.refuses(
    "SPC474", "mixed-chunks-in-unpadded-graph", raises="AssertionError", late=True, since="0.5.19", until="0.5.22",
    sglang="model_executor/runner/prefill_cuda_graph_runner.py:__init__",
    bad="sglang=0.5.19 -- --enable-mixed-chunk --cuda-graph-backend-prefill tc_piecewise",
    good="sglang=0.5.19 -- --enable-mixed-chunk --cuda-graph-backend-prefill breakable",
)  # fmt: skip
def mixed_chunks_in_unpadded_graph(c: Config) -> Refusal | None:
    """In these releases mixed chunks are captured in breakable prefill graphs only.

    `--enable-mixed-chunk` puts decode tokens into a prefill step, which has to be padded to a captured size.
    """
    if not c.enable_mixed_chunk or c.enable_lora or c.speculative_algorithm is not None:
        return None
    backend = cuda_graph.backend_of(c, cuda_graph.PREFILL)
    if backend not in (cuda_graph.FULL, cuda_graph.PIECEWISE) or c.model.is_mambaish or c.model.is_encoder_decoder:
        return None
    if cuda_graph.is_multimodal(c) or not c.cuda_graph_config[cuda_graph.PREFILL].get("bs"):
        return None
    return Refusal(
        at="enable_mixed_chunk",
        related_fields=("cuda_graph_backend_prefill",),
        message=f"{c.shown('enable_mixed_chunk')} is refused with a {backend} prefill graph when graphs are captured: only breakable ones "
        "are padded for mixed chunks.",
        fixes=(
            Change(set={"cuda_graph_backend_prefill": "breakable"}),
            dropping("enable_mixed_chunk"),
            dropping("cuda_graph_backend_prefill"),
        ),
    )
