"""MoE runners that do not compute the activation of a model's experts.

Follows what the runners of layers/moe/moe_runner/ and layers/moe/flashinfer_megamoe.py assert of a layer, most of it in the first
forward pass, and the experts of models/ (0.5.23).

Left out: activations that one layer of a model has and another has not; runners that adapters bring along (adapters.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.records import NamedTuple
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.late.methods import method
from spec_lsp.resolution.late.refused import value_refused

activations = Handler(
    "layers/moe/moe_runner/deep_gemm.py:__init__", when=lambda c: bool(c.gpu.is_cuda) and bool(c.model.num_experts)
)

GELU, TANH, SQUARED, SITU, BOUNDED = "GELU", "GELU by tanh", "a squared ReLU without a gate", "SiTU", "a bounded SwiGLU"

BY_CLASS: Mapping[str, str] = {
    "DiffusionGemmaForBlockDiffusion": TANH,
    "Gemma4ForCausalLM": GELU,
    "Gemma4ForConditionalGeneration": GELU,
    "GptOssForCausalLM": BOUNDED,
    "Grok1ForCausalLM": GELU,
    "Grok1ModelForCausalLM": GELU,
    "MiniMaxM3SparseForCausalLM": BOUNDED,
    "MiniMaxM3SparseForConditionalGeneration": BOUNDED,
    "NemotronHForCausalLM": SQUARED,
    "NemotronHPuzzleForCausalLM": SQUARED,
}

READING_BOUNDS = ("Deepseek", "Glm5Next", "GlmMoeDsa", "Step3p5")
"""How the classes are called that take the bounds of their SwiGLU from config.json."""


def activation(c: Config) -> str | None:
    """What this model's experts compute where it is more than SiLU with a gate; None where it is that, or unknown."""
    known = BY_CLASS.get(c.model.architecture)
    if known is not None:
        return known
    if c.model.architecture.startswith("Kimi"):
        return SITU if c.model.text_hf("hidden_act") == "situ" else None
    if not c.model.architecture.startswith(READING_BOUNDS):
        return None
    bounds = c.model.text_hf("swiglu_limit") or c.model.text_hf("swiglu_limits")
    return BOUNDED if (any(bounds) if isinstance(bounds, list) else bounds) else None


class Lack(NamedTuple):
    """Activations that a runner does not compute, in experts that are quantized by one of `methods`, since a release."""

    activations: tuple[str, ...]
    methods: tuple[str | None, ...]
    since: str = ""


FOUR_BITS = ("awq_marlin", "gptq_marlin", "moe_wna16")
"""Methods that choose the kernels of their experts by themselves: Marlin's, or Triton's, which both have no GELU."""

LACKING: Mapping[str, tuple[Lack, ...]] = {
    "deep_gemm": (Lack((GELU, TANH, SQUARED), (None, "fp8")),),
    "flashinfer_cutlass": (Lack((TANH, SITU), (None, "modelopt_fp4", "modelopt_fp8"), "0.5.15"),),
    "flashinfer_megamoe": (
        Lack((GELU, SQUARED), ("mxfp8", "modelopt_fp4", "nvfp4_online", "fp8"), "0.5.23"),
        Lack((SITU,), ("mxfp8", "fp8"), "0.5.23"),
    ),
    "flashinfer_trtllm": (Lack((TANH,), (None,), "0.5.15"), Lack((SITU,), ("modelopt_fp8",), "0.5.11")),
    "flashinfer_trtllm_routed": (Lack((TANH,), (None,), "0.5.15"),),
    "hpc_ops": (Lack((GELU, TANH, SQUARED, SITU, BOUNDED), ("fp8",)),),
    "humming": (Lack((TANH, SQUARED, SITU), ("humming",)),),
    "marlin": (Lack((GELU, TANH), FOUR_BITS),),
    "triton_kernel": (Lack((SQUARED,), (None, "fp8"), "0.5.19"),),
}


GEMMA_IN_AWQ = (
    """model=qwen3-30b-a3b -- --json-model-override-args '{"architectures": ["Gemma4ForCausalLM"], "moe_intermediate_size": 768, """
    """"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true}}'"""
)


@activations.refuses(
    "SPC1018", "runner-without-activation", raises="AssertionError", late=True,
    bad=(
        "model=qwen3-30b-a3b -- --moe-runner-backend deep_gemm "
        """--json-model-override-args '{"architectures": ["Grok1ForCausalLM"]}'""",
        """model=gpt-oss-120b -- --tp-size 2 --quantization fp8 --moe-runner-backend hpc_ops """
        """--json-model-override-args '{"quantization_config": null}'""",
        """model=qwen3-30b-a3b -- --quantization humming """
        """--json-model-override-args '{"architectures": ["NemotronHForCausalLM"]}'""",
        GEMMA_IN_AWQ,
    ),
    good=(
        "model=qwen3-30b-a3b -- --moe-runner-backend triton "
        """--json-model-override-args '{"architectures": ["Grok1ForCausalLM"]}'""",
        GEMMA_IN_AWQ.replace("Gemma4ForCausalLM", "Qwen3MoeForCausalLM"),
    ),
)  # fmt: skip
def runner_without_activation(c: Config) -> Refusal | None:
    """This runner does not compute the activation of this model's experts.

    All compute SiLU with a gate. Gemma 4 and Grok have GELU, Nemotron-H a squared ReLU, Kimi K3 SiTU, gpt-oss and MiniMax-M3 a SwiGLU
    with bounds: DeepGEMM, HPC-Ops, Humming and some of FlashInfer's runners lack one or another. Leave the runner to SGLang. Experts in AWQ
    or GPTQ run on kernels of their own, which have no GELU: serve another checkpoint of such a model.
    """
    name = method(c)
    four_bits = name in FOUR_BITS
    runner = "humming" if name == "humming" else "marlin" if four_bits else str(c.moe_runner_backend)
    lacks = next((lack for lack in LACKING.get(runner, ()) if name in lack.methods and _lacks(c, lack)), None)
    if lacks is None:
        return None
    if four_bits:
        return value_refused(
            c,
            "model_path",
            f"has experts in four bits, whose kernels do not compute their activation ({activation(c)}), and SGLang stops when it builds "
            "the MoE layers or in their first forward pass. Serve it unquantized or in FP8.",
            fixes=(),
        )
    field = "quantization" if name == "humming" and c.given("quantization") else "moe_runner_backend"
    return value_refused(
        c,
        field,
        f"does not compute the activation of {c.model.architecture}'s experts ({activation(c)}), and SGLang stops when it builds the MoE "
        "layers or in their first forward pass. Remove it.",
        "model_path",
        fixes=(dropping(field), setting(moe_runner_backend="triton")),
    )


def _lacks(c: Config, lack: Lack) -> bool:
    return (not lack.since or c.since(lack.since)) and activation(c) in lack.activations
