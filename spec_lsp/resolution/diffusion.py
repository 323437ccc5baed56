"""Diffusion language models. Follows arg_groups/dllm_hook.py, dllm/config.py and the diffusion passes of overrides.py.

Left out: what the file of `--dllm-algorithm-config` sets (the page size becomes unknown when one is named).
"""

from __future__ import annotations

from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution import cuda_graph
from spec_lsp.resolution.attention import backends_of
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, setting

handle_dllm_inference = Handler("dllm_hook.py:handle_dllm_inference", when=lambda c: c.dllm_algorithm is not None)

GEMMA = "DiffusionGemmaForBlockDiffusion"
ALGORITHMS = {
    "LowConfidence": "",
    "JointThreshold": "0.5.9",
    "Gemma4Renoise": "0.5.21",
    "JointThresholdInDel": "0.5.22",
}
BLOCK_SIZES = {"LLaDA2MoeModelLM": 32, "SDARForCausalLM": 4, "SDARMoeForCausalLM": 4}
"""How many tokens each model denoises at once."""


def _renoises(c: Config) -> bool:
    return bool(c.since("0.5.21") and c.dllm_algorithm == "Gemma4Renoise")


@handle_dllm_inference.refuses(
    "SPC790",
    "unknown-diffusion-algorithm",
    raises="RuntimeError",
    since="0.5.21",
    sglang="dllm/algorithm/__init__.py:get_algorithm_cls",
    bad="--dllm-algorithm HighConfidence",
    good="--tp-size 1",
)
def unknown_diffusion_algorithm(c: Config) -> Refusal | None:
    """SGLang has no diffusion algorithm of this name.

    The algorithms are LowConfidence, JointThreshold, JointThresholdInDel and Gemma4Renoise (the last for DiffusionGemma
    alone).
    """
    known = [name for name, since in ALGORITHMS.items() if not since or c.since(since)]
    if c.dllm_algorithm in known:
        return None
    return Refusal(
        at="dllm_algorithm",
        message=f"{c.shown('dllm_algorithm')} names no diffusion algorithm: SGLang has {', '.join(known)}.",
        fixes=(*(setting(dllm_algorithm=name) for name in known), dropping("dllm_algorithm")),
        choices=tuple(known),
    )


@handle_dllm_inference.adjusts(
    "attention_backend", "prefill_attention_backend", "decode_attention_backend", since="0.5.7"
)
def choose_diffusion_attention(c: Config) -> None:
    """Diffusion models attend in both directions, which few attention backends do."""
    if _renoises(c):
        _attend_as_gemma(c)
    elif c.gpu.is_hip and c.since("0.5.8"):
        if c.attention_backend not in ("triton", "aiter"):
            c.set(attention_backend="triton")
    elif c.gpu.platform == "npu" and c.since("0.5.10"):
        c.set(attention_backend="ascend")
    elif c.before("0.5.14"):
        if not c.disable_cuda_graph:
            c.set(attention_backend="flashinfer")
    elif cuda_graph.backend_of(c, "decode") != "disabled":
        c.set(attention_backend="flashinfer")


def _attend_as_gemma(c: Config) -> None:
    fits = ("triton", "fa4")
    split = (c.prefill_attention_backend, c.decode_attention_backend)
    if c.since("0.5.22") and c.attention_backend in fits and all(b in (None, *fits) for b in split):
        return
    c.set(attention_backend="triton", prefill_attention_backend="triton", decode_attention_backend="triton")


@handle_dllm_inference.adjusts("cuda_graph_bs", since="0.5.7", until="0.5.8")
def capture_single_requests(c: Config) -> None:
    """Diffusion models serve one request at a time in this release."""
    if not c.disable_cuda_graph:
        c.set(cuda_graph_bs=[1])


@handle_dllm_inference.adjusts("disable_cuda_graph", until="0.5.14")
def diffuse_without_graphs(c: Config) -> None:
    """Diffusion models run without CUDA graphs here."""
    if c.before("0.5.7") or (c.since("0.5.8") and c.gpu.is_hip):
        c.set(disable_cuda_graph=True)


def _gemma_conflict(c: Config) -> tuple[str, str] | None:
    if c.device != "cuda":
        return "device", "it runs on CUDA and ROCm GPUs only"
    if c.pp_size > 1:
        return "pp_size", "its layers cannot be split over stages"
    if c.dcp_size > 1 or c.attn_cp_size > 1:
        return ("dcp_size" if c.dcp_size > 1 else "attn_cp_size"), "its sequences cannot be split over GPUs"
    if c.quantization is not None:
        return "quantization", "it is served unquantized only"
    if cuda_graph.backend_of(c, "prefill") == "full" and c.since("0.5.22") and backends_of(c)[0] != "fa4":
        return "cuda_graph_backend_prefill", "whole prefill graphs need the `fa4` attention backend"
    return None


@handle_dllm_inference.refuses(
    "SPC791", "diffusion-gemma-conflict", raises="ValueError", since="0.5.21",
    sglang="dllm/algorithm/gemma4_renoise.py:configure_server_args",
    bad="--dllm-algorithm Gemma4Renoise --pp-size 2", good="--tp-size 1",
)  # fmt: skip
def diffusion_gemma_conflict(c: Config) -> Refusal | None:
    """DiffusionGemma does not work with this setting.

    Its algorithm (Gemma4Renoise) works on one pipeline stage, without context parallelism or quantization, on CUDA or
    ROCm.
    """
    conflict = _gemma_conflict(c) if _renoises(c) else None
    if conflict is None:
        return None
    field, why = conflict
    return Refusal(
        at=field,
        related_fields=("dllm_algorithm",),
        message=f"{c.shown(field)} cannot be combined with {c.shown('dllm_algorithm')}: {why}.",
    )


@handle_dllm_inference.adjusts("disable_radix_cache", "chunked_prefill_size", since="0.5.21")
def prefill_gemma_whole(c: Config) -> None:
    """DiffusionGemma prefills whole prompts and keeps no radix cache."""
    if _renoises(c):
        c.set(disable_radix_cache=True, chunked_prefill_size=-1)


@handle_dllm_inference.adjusts("cuda_graph_config", since="0.5.14")
def capture_diffusion(c: Config) -> None:
    """Diffusion models capture no CUDA graphs on AMD GPUs, and DiffusionGemma none for prefill."""
    if _renoises(c) and not (c.since("0.5.22") and cuda_graph.backend_of(c, "prefill") == "full"):
        cuda_graph.disable(c, "prefill")
    if c.gpu.is_hip:
        cuda_graph.disable(c, "decode")
        cuda_graph.disable(c, "prefill")


@handle_dllm_inference.adjusts("disable_overlap_schedule")
def diffuse_without_overlap(c: Config) -> None:
    """A block has to be finished before the next can be scheduled, so the overlap schedule is switched off."""
    c.set(disable_overlap_schedule=True)


def _checks_model(c: Config) -> bool:
    """Whether argument resolution looks at the model: before 0.5.10 the scheduler does, with a radix cache only until 0.5.15."""
    return c.since("0.5.15") or (c.since("0.5.10") and not c.disable_radix_cache)


@handle_dllm_inference.refuses(
    "SPC792",
    "diffusion-algorithm-on-other-model",
    raises="RuntimeError",
    since="0.5.10",
    sglang="dllm/config.py:from_server_args",
    bad="--dllm-algorithm LowConfidence",
    good="--tp-size 1",
)
def diffusion_algorithm_on_other_model(c: Config) -> Refusal | None:
    """The model is not a diffusion language model.

    `--dllm-algorithm` is for models that denoise blocks of tokens: LLaDA2, SDAR and DiffusionGemma. Others write one
    token after another and need no algorithm.
    """
    if not _checks_model(c):
        return None
    architecture = c.model.architecture
    if architecture in BLOCK_SIZES or (architecture == GEMMA and c.since("0.5.21")):
        return None
    return Refusal(
        at="dllm_algorithm",
        related_fields=("model_path",),
        message=f"{c.shown('dllm_algorithm')} is for diffusion language models (LLaDA2, SDAR), and {architecture} is "
        "none. Remove it.",
    )


@handle_dllm_inference.refuses(
    "SPC793",
    "diffusion-algorithm-of-other-model",
    raises="ValueError",
    since="0.5.21",
    sglang="dllm/config.py:from_server_args",
    bad="""--dllm-algorithm Gemma4Renoise --json-model-override-args '{"architectures": ["SDARForCausalLM"]}'""",
    good="--tp-size 1",
)
def diffusion_algorithm_of_other_model(c: Config) -> Refusal | None:
    """The diffusion algorithm does not work with this model.

    Gemma4Renoise denoises DiffusionGemma and nothing else, and DiffusionGemma works with no other algorithm.
    """
    gemma = c.model.architecture == GEMMA
    if (
        c.dllm_algorithm not in ALGORITHMS
        or gemma == _renoises(c)
        or not (gemma or c.model.architecture in BLOCK_SIZES)
    ):
        return None
    return Refusal(
        at="dllm_algorithm",
        related_fields=("model_path",),
        message=f"{c.shown('dllm_algorithm')} does not denoise {c.model.architecture}. Use "
        f"`{'Gemma4Renoise' if gemma else 'LowConfidence'}`.",
        fixes=(setting(dllm_algorithm="Gemma4Renoise" if gemma else "LowConfidence"),),
    )


@handle_dllm_inference.adjusts("page_size", since="0.5.10")
def align_pages_to_blocks(c: Config) -> None:
    """KV pages hold whole blocks of the diffusion model."""
    if not _checks_model(c):
        return
    if c.dllm_algorithm_config is not None:
        raise NotKnown("the block size", f"{c.dllm_algorithm_config} may set it")
    architecture = c.model.architecture
    block = int(c.model.hf("canvas_length", 256)) if architecture == GEMMA else BLOCK_SIZES.get(architecture)
    if block is None:
        raise NotKnown("the block size", f"{architecture} is not a diffusion model")
    misaligned = not c.disable_radix_cache and c.page_size % block != 0
    if misaligned or (c.since("0.5.15") and c.page_size > block):
        c.set(page_size=block)


@handle_dllm_inference.adjusts("disable_radix_cache", until="0.5.10")
def diffuse_without_radix_cache(c: Config) -> None:
    """Diffusion models keep no radix cache in this release."""
    c.set(disable_radix_cache=True)


@handle_dllm_inference.adjusts("enable_hierarchical_cache", "enable_lmcache", "enable_flexkv", since="0.5.10")
def diffuse_without_tiered_cache(c: Config) -> None:
    """The caches of diffusion models stay on the GPU."""
    if not c.disable_radix_cache:
        c.set(enable_hierarchical_cache=False, enable_lmcache=False)
        if c.since("0.5.16"):
            c.set(enable_flexkv=False)


@handle_dllm_inference.adjusts("pp_size", since="0.5.15")
def diffuse_on_one_stage(c: Config) -> None:
    """Diffusion models run on one pipeline stage."""
    if c.pp_size > 1:
        c.set(pp_size=1)


@handle_dllm_inference.adjusts("enable_lora", "disaggregation_mode", "enable_mixed_chunk", since="0.5.9")
def diffuse_alone(c: Config) -> None:
    """Diffusion models serve without adapters, on one server for prefill and decode, with separate chunks."""
    if c.enable_lora:
        c.set(enable_lora=False)
    c.set(disaggregation_mode="null", enable_mixed_chunk=False)
