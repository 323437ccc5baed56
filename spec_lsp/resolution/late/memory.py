"""Weights that cannot fit, and settings of memory that no GPU can give.

Follows model_executor/model_runner.py and mem_cache/kv_cache_configurator.py (_profile_available_bytes), which give the KV cache what
`--mem-fraction-static` leaves of the memory after the weights.

Only what is certain is an error: the weights alone (facts/memory.py counts them from below) exceed the memory of the GPU, or the part
of it that `--mem-fraction-static` allows. Left out: graphs, activations and the KV cache, which depend on the memory found at start.
"""

from __future__ import annotations

from spec_lsp.facts import memory as sizes
from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.model import ModelFacts
from spec_lsp.records import NamedTuple
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, setting
from spec_lsp.resolution.late.layout import heads_fit
from spec_lsp.resolution.model.config import model_dtype, served_quantization
from spec_lsp.resolution.ranks import attention_tp_size

gpu_memory = Handler(
    "mem_cache/kv_cache_configurator.py:_profile_available_bytes",
    when=lambda c: bool(c.device == "cuda"),
    earlier=(
        Earlier("0.5.7", "model_runner.py:init_memory_pool"),
        Earlier("0.5.10", "model_runner_kv_cache_mixin.py:init_memory_pool"),
        Earlier("0.5.11", "model_runner_kv_cache_mixin.py:__post_init__"),
        Earlier("0.5.16", "pool_configurator.py:__post_init__"),
    ),
)

ELSEWHERE = (
    "cpu_offload_gb", "offload_group_size", "offload_mode", "dwdp_size", "torchao_config", "kt_method", "kt_amx_method", "kt_weight_path",
    "kt_amx_weight_path", "ple_offload_embedding", "expert_pack_path",
)  # fmt: skip
"""Settings that keep weights in other memory, or in another type."""


class Estimate(NamedTuple):
    """The memory of a launch on a GPU: bytes of weights, bytes of KV cache for each token, and the tokens that fit (None: unknown).

    `fraction` is the part of the `total` bytes that weights and cache may take.
    """

    weights: int
    per_token: int | None
    total: int | None
    fraction: float | None
    billions: float
    per_parameter: float

    @property
    def tokens(self) -> int | None:
        if self.per_token is None or self.total is None or self.fraction is None:
            return None
        return max(0, int((self.total * self.fraction - self.weights) / self.per_token))


def least_weights(c: Config, tp: int, method: str | None) -> int:
    """The least bytes of weights on the fullest GPU. Raises NotKnown if weights are kept elsewhere or not counted."""
    if c.gives_any(ELSEWHERE):
        raise NotKnown("the weights", "some of them are kept elsewhere")
    dtype, model = model_dtype(c), c.model
    size = sizes.bytes_of(method, dtype, model.quantization_config)
    return sizes.weights(model, tp, int(c.pp_size), size, dtype, sizes.quantizes_experts_only(method))


def estimate(c: Config) -> Estimate | None:
    """What is known about the launch's memory on a GPU; None if the weights are unknown. Embeddings count twice unless they are known to be
    tied."""
    try:
        served = served_quantization(c)
        weights = least_weights(c, int(c.tp_size), served.method)
        counted = sizes.parameters(c.model)
        per_parameter = sizes.bytes_of(served.method, model_dtype(c), c.model.quantization_config)
    except NotKnown:
        return None
    copies = 1 if _ties_embeddings(c.model) else 2
    weights += int((copies - 1) * counted.embeddings * sizes.DTYPE_BYTES.get(model_dtype(c), 2.0) / int(c.tp_size))
    billions = (counted.linear + copies * counted.embeddings) / 1e9
    return Estimate(weights, _per_token(c), _total(c), _fraction(c), billions, per_parameter)


def _ties_embeddings(model: ModelFacts) -> bool:
    try:
        return model.text_hf("tie_word_embeddings") is True
    except NotKnown:
        return False


def _per_token(c: Config) -> int | None:
    try:
        layout = sizes.Layout(int(c.pp_size), max(1, attention_tp_size(c)))
        return sizes.kv_per_token(c.model, layout, str(c.kv_cache_dtype))
    except NotKnown:
        return None


def _total(c: Config) -> int | None:
    try:
        return c.gpu.memory * 1024**2
    except NotKnown:
        return None


def _fraction(c: Config) -> float | None:
    try:
        return None if c.mem_fraction_static is None else float(c.mem_fraction_static)
    except NotKnown:
        return None


@gpu_memory.refuses(
    "SPC989", "weights-above-gpu-memory", raises="OutOfMemoryError", late=True, hardware_only=True,
    bad=(
        "gpu=rtx4090 model=llama-3.3-70b -- --tp-size 2",
        "gpu=h200 model=kimi-k2 -- --tp-size 4",
        "gpu=h200 model=deepseek-v3 -- --tp-size 8 --mem-fraction-static 0.5",
    ),
    good=("gpu=h100 model=llama-3.3-70b -- --tp-size 2", "gpu=h200 model=deepseek-v3 -- --tp-size 8"),
)  # fmt: skip
def weights_above_gpu_memory(c: Config) -> Refusal | None:
    """The weights alone are more than a GPU of this kind holds.

    Counted are attention, MLP, experts and embeddings, as many bytes each as the quantization they are served with, spread over TP and
    PP ranks: less than what SGLang loads. The KV cache, CUDA graphs and activations come on top. With `--mem-fraction-static` the
    weights have to fit into that part of the memory. Use more GPUs, or a checkpoint with smaller weights.
    """
    served = served_quantization(c)
    if served.problem:
        return None
    needed = least_weights(c, int(c.tp_size), served.method)
    fraction = c.mem_fraction_static if c.given("mem_fraction_static") else 1.0
    if not 0 < fraction <= 1 or needed <= c.gpu.most_memory * 1024**2 * fraction:
        return None
    room = c.gpu.most_memory * 1024**2 * fraction
    counted = sizes.parameters(c.model)
    over = f"TP {c.tp_size}" + (f" × PP {c.pp_size}" if c.pp_size > 1 else "")
    share = f"{fraction:g} × " if fraction < 1 else ""
    per = sizes.bytes_of(served.method, model_dtype(c), c.model.quantization_config)
    return Refusal(
        at=c.first_given("tp_size", "model_path"),
        related_fields=("model_path", *(("mem_fraction_static",) if fraction < 1 else ())),
        message=f"The weights alone take {_gib(needed)} on each GPU ({(counted.linear + counted.embeddings) / 1e9:.1f} billion parameters, "
        f"{per:g} {'byte' if per == 1 else 'bytes'} each in linear layers, over {over}), and {c.gpu.title} has "
        f"{share}{_gib(c.gpu.most_memory * 1024**2)}, so SGLang "
        "runs out of memory while it loads them. Use more GPUs, or smaller weights.",
        fixes=_ways_out(c, room, served.method, fraction),
    )


def _ways_out(c: Config, room: float, method: str | None, fraction: float) -> tuple[Change, ...]:
    found = []
    if fraction < 1 and least_weights(c, int(c.tp_size), method) < room / fraction * 0.8:
        found.append(dropping("mem_fraction_static"))
    if method is None and c.typed("quantization") is None and least_weights(c, int(c.tp_size), "fp8") < room * 0.8:
        found.append(setting(quantization="fp8"))
    more = (int(c.tp_size) * n for n in (2, 4, 8, 16))
    fits = [n for n in more if heads_fit(c, n) and least_weights(c, n, method) < room * 0.8]
    return (*found, *(setting(tp_size=n) for n in fits[:1] if n <= 8))


def _gib(size: float) -> str:
    return f"{size / sizes.GIB:.1f} GiB"


@gpu_memory.refuses(
    "SPC990", "memory-fraction-no-gpu-has", raises="OutOfMemoryError", late=True,
    bad=("--mem-fraction-static 1.5", "--mem-fraction-static 0", "--mem-fraction-static 85"),
    good=("--mem-fraction-static 0.9", "--mem-fraction-static 1.5 --max-total-tokens 4096"),
)  # fmt: skip
def memory_fraction_no_gpu_has(c: Config) -> Refusal | None:
    """`--mem-fraction-static` is a fraction of the GPU's memory, so it must be between 0 and 1.

    Weights and KV cache together take that part. Argument resolution accepts any number; more than 1 asks for memory that is not there,
    0 or less leaves none. For 85 % write 0.85.
    """
    fraction = c.typed("mem_fraction_static")
    if not isinstance(fraction, (float, int)) or 0 < fraction <= 1 or c.mem_fraction_static != fraction:
        return None
    if fraction > 1 and c.max_total_tokens is not None:
        return None
    percent = fraction / 100 if 1 < fraction < 100 and fraction == int(fraction) else None
    return Refusal(
        at="mem_fraction_static",
        message=f"{c.shown('mem_fraction_static')} "
        + ("asks for more memory than the GPU has" if fraction > 1 else "leaves no memory for weights and KV cache")
        + ", so SGLang stops when it allocates the cache. Give a fraction such as 0.85.",
        fixes=(*((setting(mem_fraction_static=percent),) if percent else ()), dropping("mem_fraction_static")),
    )


@gpu_memory.refuses(
    "SPC991", "negative-context-length", raises="RuntimeError", late=True,
    sglang="mem_cache/memory_pool.py:ReqToTokenPool",
    bad="--context-length -5", good="--context-length 4096",
)  # fmt: skip
def negative_context_length(c: Config) -> Refusal | None:
    """The context length cannot be negative.

    Argument resolution accepts any number for `--context-length`; the table of requests, which is as wide as the context, cannot be
    allocated.
    """
    length = c.context_length
    margin = (
        4 if c.speculative_algorithm is None else 1024
    )  # the table is a few tokens wider; drafts make it wider still
    if length is None or length >= -margin:
        return None
    return Refusal(
        at="context_length",
        message=f"{c.shown('context_length')} is not a length of a context, so SGLang stops when it allocates the table of requests.",
    )
