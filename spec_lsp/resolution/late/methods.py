"""What quantization methods refuse: the GPU, the activations' data type, and the MoE runner their experts should run on.

Follows model_loader/loader.py (_get_quantization_config) and the MoE methods of layers/quantization/ with MoeRunner
(layers/moe/moe_runner/runner.py). What each method asks for is data of each release (facts/methods.py).

Left out: packages that are not installed (FlashInfer's helpers, DeepGEMM), schemes that a checkpoint mixes layer by layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spec_lsp.facts.methods import needed, requirements
from spec_lsp.facts.registers import register
from spec_lsp.resolution.engine import (
    NO_FIX,
    Config,
    Earlier,
    Handler,
    Refusal,
    dropping,
    dropping_env,
    one_of,
    setting,
)
from spec_lsp.resolution.late.refused import value_refused
from spec_lsp.resolution.model.config import model_dtype, served_quantization

quantization_methods = Handler("model_loader/loader.py:_get_quantization_config", when=lambda c: bool(c.gpu.is_cuda))


def method(c: Config) -> str | None:
    """The quantization that the weights are served with; None without quantization, or if resolution itself refuses it."""
    served = served_quantization(c)
    return None if served.problem else served.method


def _asked(c: Config) -> str:
    """Where the quantization is visible to the reader: the flag, else the model."""
    return c.first_given("quantization", "model_path")


def _what(c: Config, name: str) -> str:
    return c.shown("quantization") if c.given("quantization") else f"This checkpoint's quantization ({name})"


def _checkpoint_needs_it(c: Config) -> bool:
    return served_quantization(c).checkpoint is not None


@quantization_methods.refuses(
    "SPC944", "quantization-method-above-gpu", raises="ValueError", late=True, hardware_only=True,
    bad=("gpu=a100 -- --quantization w8a8_fp8", "gpu=t4 -- --quantization fp8 --dtype half", "gpu=h100 -- --quantization nvfp4_online"),
    good=("gpu=h100 -- --quantization w8a8_fp8", "gpu=a100 -- --quantization fp8"),
)  # fmt: skip
def quantization_method_above_gpu(c: Config) -> Refusal | None:
    """This GPU is older than the quantization method needs.

    Each method names the oldest GPU its kernels run on: ModelOpt's FP8 and `w8a8_fp8` need SM89 (so no A100), `w4afp8` SM90,
    `nvfp4_online` SM100; plain `fp8` runs from Ampere on, by Marlin's weight-only kernels. SGLang compares just before it builds the
    model. Serve another checkpoint, or use a newer GPU.
    """
    name = method(c)
    if name is None or c.gpu.capability is None:
        return None
    wanted = requirements(name, c.release)
    if wanted.capability is None or wanted.runs_on(c.gpu.capability):
        return None
    fixes = (dropping("quantization"),) if c.given("quantization") else ()
    if (
        c.given("quantization")
        and not _checkpoint_needs_it(c)
        and requirements("fp8", c.release).runs_on(c.gpu.capability)
    ):
        fixes = (setting(quantization="fp8"), *fixes)
    major, minor = c.gpu.capability
    return Refusal(
        at=_asked(c),
        related_fields=("model_path",) if c.given("quantization") else (),
        message=f"{_what(c, name)} needs {needed(wanted.capability)} or newer, and {c.gpu.title} is SM{major}{minor}, so SGLang stops "
        "before it loads the weights.",
        fixes=fixes,
    )


@quantization_methods.refuses(
    "SPC945", "data-type-of-quantization-method", raises="ValueError", late=True,
    bad=(
        "sglang=0.5.12 -- --quantization awq --json-model-override-args "
        """'{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true}}'""",
        "--quantization fp8 --dtype float32",
    ),
    good="--quantization fp8 --dtype half",
)  # fmt: skip
def data_type_of_quantization_method(c: Config) -> Refusal | None:
    """The quantization method does not compute in this data type.

    Plain AWQ and GPTQ kernels compute in float16 only, most others in float16 and bfloat16. `--dtype auto` means what config.json
    states. SGLang compares just before it builds the model. Set `--dtype half`, or leave `--quantization` out: AWQ and GPTQ
    checkpoints then run on Marlin's kernels, which support both.
    """
    name = method(c)
    accepted = requirements(name, c.release).dtypes if name else ()
    if name is None or not accepted:
        return None
    computed = "float16" if c.gpu.major < 8 else model_dtype(c)
    if computed in accepted:
        return None
    types = one_of(accepted)
    to = {"float16": "half"}.get(accepted[0], accepted[0])
    at = c.first_given("dtype", _asked(c))
    return Refusal(
        at=at,
        related_fields=("model_path", "quantization"),
        message=f"{_what(c, name)} computes in {types}, and this model runs in {computed}"
        + (f" ({c.flag_as_typed('dtype')})" if c.given("dtype") else ", which config.json states")
        + ", so SGLang stops before it loads the weights.",
        fixes=(
            *((dropping("quantization"),) if c.given("quantization") and _checkpoint_needs_it(c) else ()),
            setting(dtype=to),
        ),
    )


# --- experts ----------------------------------------------------------------------------------------------------------


def leaves_experts_out(c: Config) -> bool:
    """Whether config.json excludes (some) experts from quantization."""
    config = c.model.quantization_config
    if not isinstance(config, Mapping):
        return False
    names: list[Any] = []
    for key in ("ignored_layers", "modules_to_not_convert", "ignore", "exclude_modules"):
        names += config.get(key) or ()
    return any("expert" in str(n) and "shared" not in str(n) for n in names)


def _quantized_experts(c: Config, *names: str) -> bool:
    return bool(c.model.num_experts) and method(c) in names and not leaves_experts_out(c)


def _runner(c: Config, message: str, *others: str) -> Refusal:
    return Refusal(
        at="moe_runner_backend",
        related_fields=("model_path",),
        message=message,
        fixes=(
            *((dropping("moe_runner_backend"),) if c.given("moe_runner_backend") else ()),
            *(setting(moe_runner_backend=name) for name in others),
        ),
    )


NVFP4_EXAMPLE = (
    """--json-model-override-args '{"quantization_config": """
    """{"quant_method": "modelopt_fp4", "quant_algo": "NVFP4", "group_size": 16}}'"""
)


@quantization_methods.refuses(
    "SPC946", "nvfp4-experts-before-blackwell", raises="ValueError", late=True, since="0.5.13",
    sglang="layers/quantization/modelopt_quant.py:__init__",
    bad=f"gpu=h100 model=qwen3-30b-a3b -- --tp-size 2 --moe-runner-backend triton {NVFP4_EXAMPLE}",
    good=f"gpu=h100 model=qwen3-30b-a3b -- --tp-size 2 --moe-runner-backend marlin {NVFP4_EXAMPLE}",
)  # fmt: skip
def nvfp4_experts_before_blackwell(c: Config) -> Refusal | None:
    """Before Blackwell, NVFP4 experts run on Marlin's kernels only.

    Hopper, Ada and Ampere have no FP4 matrix units; Marlin decodes the weights on the fly. Leave `--moe-runner-backend` out, or set
    `marlin`.
    """
    if c.gpu.blackwell or c.moe_runner_backend in ("auto", "marlin") or str(c.moe_runner_backend).startswith("lora"):
        return None
    if not _quantized_experts(c, "modelopt_fp4"):
        return None
    return _runner(
        c,
        f"{c.shown('moe_runner_backend')} has no kernels for this model's NVFP4 experts on {c.gpu.title}, and SGLang stops when it "
        "builds them. Before Blackwell only `marlin` has them.",
        "marlin",
    )


@quantization_methods.refuses(
    "SPC947", "cutlass-for-nvfp4-experts", raises="NotImplementedError", late=True, since="0.5.16",
    sglang="layers/quantization/modelopt_quant.py:create_moe_runner",
    bad=f"gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --moe-runner-backend cutlass {NVFP4_EXAMPLE}",
    good=f"gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --moe-runner-backend flashinfer_cutlass {NVFP4_EXAMPLE}",
)  # fmt: skip
def cutlass_for_nvfp4_experts(c: Config) -> Refusal | None:
    """SGLang's own CUTLASS runner does not support NVFP4 experts; FlashInfer's does.

    `--moe-runner-backend cutlass` and `flashinfer_cutlass` are two runners. Only the second has kernels for NVFP4.
    """
    if c.moe_runner_backend != "cutlass" or not c.gpu.blackwell or not _quantized_experts(c, "modelopt_fp4"):
        return None
    return _runner(
        c,
        f"{c.shown('moe_runner_backend')} is refused for NVFP4 experts when they are built. FlashInfer's runner is `flashinfer_cutlass`.",
        "flashinfer_cutlass",
    )


@quantization_methods.refuses(
    "SPC948", "cutlass-for-fp8-experts", raises="AssertionError", late=True,
    sglang="layers/quantization/fp8.py:__init__",
    bad=(
        "gpu=a100 model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend cutlass",
        "model=qwen3-30b-a3b -- --quantization fp8 --moe-runner-backend cutlass",
    ),
    good="gpu=h100 model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend cutlass",
)  # fmt: skip
def cutlass_for_fp8_experts(c: Config) -> Refusal | None:
    """SGLang's CUTLASS runner supports FP8 experts with blockwise scales only, on Hopper and Blackwell.

    A checkpoint with `weight_block_size` has such scales; weights that `--quantization fp8` quantizes while loading have one scale for
    each tensor. Use `triton`, or leave the runner to SGLang.
    """
    if c.moe_runner_backend != "cutlass" or not _quantized_experts(c, "fp8"):
        return None
    config = c.model.quantization_config or {}
    fits = c.gpu.sm90 or c.gpu.sm100 or (c.gpu.sm120 and c.since("0.5.10"))
    if fits and config.get("weight_block_size"):
        return None
    why = "supports experts with blockwise scales only" if fits else f"has no kernels for FP8 experts on {c.gpu.title}"
    return _runner(
        c, f"{c.shown('moe_runner_backend')} {why}, and SGLang stops when it builds the MoE layers.", "triton"
    )


@quantization_methods.refuses(
    "SPC949", "runner-without-mxfp4-experts", raises="NotImplementedError", late=True, since="0.5.11",
    sglang="layers/quantization/mxfp4.py:create_moe_runner",
    bad=(
        "gpu=h100 model=gpt-oss-120b -- --tp-size 2 --moe-runner-backend cutlass",
        "sglang=0.5.19 gpu=a100 model=gpt-oss-120b -- --tp-size 2 --moe-runner-backend flashinfer_mxfp4",
    ),
    good=(
        "gpu=h100 model=gpt-oss-120b -- --tp-size 2 --moe-runner-backend triton_kernel",
        "gpu=b200 model=gpt-oss-120b -- --tp-size 2 --moe-runner-backend flashinfer_mxfp4",
    ),
)  # fmt: skip
def runner_without_mxfp4_experts(c: Config) -> Refusal | None:
    """This MoE runner has no kernels for MXFP4 experts (gpt-oss).

    Triton's runners, Marlin's, DeepGEMM's and FlashInfer's MXFP4 runner do; `flashinfer_mxfp4` needs Hopper or Blackwell. Leave
    `--moe-runner-backend` out: SGLang picks the best there is.
    """
    runner = c.moe_runner_backend
    if not _quantized_experts(c, "mxfp4") or str(runner).startswith("lora"):
        return None
    if runner == "flashinfer_mxfp4":
        fits = c.gpu.sm90 or c.gpu.sm100 or c.gpu.sm120
    else:
        known = register("mxfp4_runners", c.release)
        fits = known is None or runner in known
    if fits:
        return None
    when = "when it builds the MoE layers" if c.since("0.5.20") else "at the first pass through the experts"
    return _runner(
        c,
        f"{c.shown('moe_runner_backend')} has no kernels for MXFP4 experts on {c.gpu.title}, and SGLang stops {when}. Remove it.",
        "triton_kernel",
    )


WITHOUT_A_RUNNER = ("deepep", "mooncake", "nixl")
"""Exchanges that leave the experts to the runner."""


def _handed_on(c: Config) -> tuple[str, ...]:
    """The runners without a core that the method of these experts takes as they are; it computes by itself under the others."""
    runners = ("flashinfer_trtllm", "flashinfer_trtllm_routed")
    return {None: (*runners, "flashinfer_cutlass"), "fp8": (*runners, "hpc_ops")}.get(method(c), ())


@quantization_methods.refuses(
    "SPC953", "runner-without-exchange", raises="NotImplementedError", late=True, since="0.5.8",
    sglang="layers/moe/moe_runner/runner.py:__init__",
    bad="gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend deepep --moe-runner-backend flashinfer_trtllm",
    good="gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend deepep --moe-runner-backend deep_gemm",
)  # fmt: skip
def runner_without_exchange(c: Config) -> Refusal | None:
    """This MoE runner does not work with this all-to-all backend.

    A runner that fuses the exchange into its kernel needs a kernel for the exchange in use. FlashInfer's runners have
    one for no exchange and for FlashInfer's own, not for DeepEP's and similar ones. With DeepEP, `deep_gemm` runs the experts.
    """
    runner, exchange = str(c.moe_runner_backend), str(c.moe_a2a_backend)
    if runner not in (register("fused_runners", c.release) or ()) or runner not in _handed_on(c) or c.enable_lora:
        return None
    if exchange not in WITHOUT_A_RUNNER or exchange in (register(f"exchanges_of_{runner}", c.release) or ()):
        return None
    computed_apart = method(c) is None and c.before("0.5.15")
    if not c.model.num_experts or computed_apart or leaves_experts_out(c):
        return None
    return Refusal(
        at="moe_runner_backend",
        related_fields=("moe_a2a_backend", "model_path"),
        message=f"{c.shown('moe_runner_backend')} does not work with {c.shown('moe_a2a_backend')}, and SGLang stops when it builds "
        "the MoE layers. Use `deep_gemm`.",
        fixes=(
            setting(moe_runner_backend="deep_gemm"),
            dropping("moe_runner_backend"),
            setting(moe_a2a_backend="none"),
        ),
    )


@quantization_methods.refuses(
    "SPC1151", "ascend-exchange-on-gpu", raises="AttributeError", late=True,
    sglang="hardware_backend/npu/moe/fuseep.py:forward_fuseep",
    earlier=(Earlier("0.5.13", "layers/moe/ep_moe/layer.py:__init__"),),
    bad="SGLANG_NPU_FUSED_MOE_MODE=1 model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend ascend_fuseep",
    good=(
        "model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend deepep",
        "SGLANG_NPU_FUSED_MOE_MODE=1 gpu=npu model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend ascend_fuseep",
    ),
)  # fmt: skip
def ascend_exchange_on_gpu(c: Config) -> Refusal | None:
    """Ascend's fused exchange runs on Ascend NPUs only.

    It calls a kernel of the NPU's own build of DeepEP, which no build for GPUs has: the first pass through the experts stops, at the
    latest when graphs are captured. On GPUs use `deepep`.
    """
    if c.moe_a2a_backend != "ascend_fuseep" or not c.model.num_experts or leaves_experts_out(c):
        return None
    return value_refused(
        c,
        "moe_a2a_backend",
        f"runs on Ascend NPUs only, and SGLang stops at the first pass through the experts on {c.gpu.title}. Use `deepep`.",
        "model_path",
        fixes=(setting(moe_a2a_backend="deepep"), dropping("moe_a2a_backend")),
    )


JIT = "SGLANG_ENABLE_JIT_DEEPGEMM"


@quantization_methods.refuses(
    "SPC964", "low-latency-exchange-without-deepgemm", raises="AssertionError", late=True,
    sglang="layers/moe/ep_moe/layer.py:__init__",
    bad=(
        f"{JIT}=0 model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep",
        "gpu=a100 model=deepseek-v3 -- --tp-size 16 --nnodes 2 --moe-a2a-backend deepep",
    ),
    good=(
        "model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep",
        f"{JIT}=0 model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep --deepep-mode normal",
    ),
)  # fmt: skip
def low_latency_exchange_without_deepgemm(c: Config) -> Refusal | None:
    """This exchange feeds experts through DeepGEMM, which is not available here.

    DeepEP's low-latency mode does so with FP8 experts, and `--deepep-mode auto`, the default, needs that mode for decoding; DeepEP and PPLX
    do so with unquantized experts under `--moe-runner-backend deep_gemm`. DeepGEMM needs Hopper or data-centre Blackwell, and
    `SGLANG_ENABLE_JIT_DEEPGEMM=0` switches it off.
    """
    off = c.env.is_set(JIT) and not c.env.flag(JIT)
    if c.moe_a2a_backend not in ("deepep", "pplx") or not (off or c.gpu.major == 8) or c.gpu.major not in (8, 9, 10):
        return None
    if not c.model.num_experts or str(c.moe_runner_backend) == "humming":
        return None
    quantized = method(c) == "fp8" and c.moe_a2a_backend == "deepep" and c.deepep_mode in ("auto", "low_latency")
    plain = (
        method(c) is None and c.moe_runner_backend == "deep_gemm" and c.since("0.5.17") and model_dtype(c) == "bfloat16"
    )
    if not quantized and not plain:
        return None
    mode = " in its low-latency mode" if quantized else ""
    return Refusal(
        at=c.first_given("moe_a2a_backend", "deepep_mode"),
        related_fields=(JIT if off else "deepep_mode",),
        message=f"{c.shown('moe_a2a_backend')}{mode} needs DeepGEMM for {'FP8' if quantized else 'BF16'} experts, which "
        + (f"`{JIT}` switches off" if off else f"does not run on {c.gpu.title}")
        + ", so SGLang stops when it builds the MoE layers.",
        fixes=(*((dropping_env(JIT),) if off else ()), setting(moe_a2a_backend="none"), setting(deepep_mode="normal")),
    )


def fuses_shared_experts(c: Config) -> bool:
    """Whether DeepSeek-V3's shared expert is one of the routed ones (shared_experts_fusion_disable_reason of its class)."""
    if c.model.architecture != "DeepseekV3ForCausalLM" or c.disable_shared_experts_fusion or c.ep_size > 1:
        return False
    apart = c.moe_a2a_backend != "none" or c.enable_two_batch_overlap or c.enable_single_batch_overlap
    return not apart and c.model.text_hf("n_routed_experts") == 256 and c.model.text_hf("n_shared_experts") == 1


FROM_FILES = ("awq", "awq_marlin", "gptq", "gptq_marlin")


@quantization_methods.refuses(
    "SPC969", "method-of-quantized-checkpoint", raises="ValueError", late=True,
    sglang="model_loader/weight_utils.py:get_quant_config",
    bad="model=none -- --model-path Qwen/Qwen3-8B --quantization awq --dtype half",
    good="model=none -- --model-path Qwen/Qwen3-8B --quantization fp8",
)  # fmt: skip
def method_of_quantized_checkpoint(c: Config) -> Refusal | None:
    """This method serves checkpoints that are already quantized; it does not quantize while loading.

    AWQ and GPTQ find their scales with a calibration run, long before serving. SGLang looks for their settings beside the weights and
    finds none. `fp8` quantizes any checkpoint while it loads.
    """
    name = method(c)
    if name not in FROM_FILES or c.model.complete or c.model.quantization_config is not None:
        return None  # a folder may contain settings in a file beside config.json
    return Refusal(
        at="quantization",
        related_fields=("model_path",),
        message=f"{c.shown('quantization')} needs a checkpoint that was quantized with it, and this one is not, so SGLang stops before "
        "it loads the weights. Serve the quantized checkpoint, or use `fp8`.",
        fixes=(dropping("quantization"), setting(quantization="fp8")),
    )


@quantization_methods.refuses(
    "SPC697", "fp8-method-of-fp4-checkpoint", raises="ValueError", late=True,
    sglang="layers/quantization/modelopt_quant.py:from_config",
    bad=(
        "sglang=0.5.9 gpu=b200 model=qwen3-8b -- --quantization modelopt_fp8 --json-model-override-args "
        """'{"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}'""",
        "gpu=b200 model=qwen3-8b -- --quantization modelopt_mixed --json-model-override-args "
        """'{"quantization_config": {"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}}'""",
    ),
    good="sglang=0.5.9 gpu=b200 model=qwen3-8b -- --quantization modelopt_fp4 --json-model-override-args "
    """'{"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}'""",
)  # fmt: skip
def fp8_method_of_fp4_checkpoint(c: Config) -> Refusal | None:
    """This method of ModelOpt's cannot serve a checkpoint that ModelOpt stored otherwise.

    `quant_algo` in the checkpoint's settings says how it is stored: `modelopt_fp8` serves FP8, `modelopt_mixed` MIXED_PRECISION. For NVFP4
    use `modelopt_fp4`, or remove `--quantization`: SGLang goes by the checkpoint.
    """
    own = {"modelopt_fp8": "FP8", "modelopt_mixed": "MIXED_PRECISION"}.get(method(c) or "")
    algorithm = (c.model.quantization_config or {}).get("quant_algo")
    if own is None or not isinstance(algorithm, str) or own in algorithm.upper():
        return None
    return value_refused(
        c,
        "quantization",
        f"is refused for this checkpoint, which is stored in {algorithm}, and SGLang stops before it loads the weights.",
        "model_path",
        fixes=(
            *((setting(quantization="modelopt_fp4"),) if "FP4" in algorithm.upper() else ()),
            dropping("quantization"),
        ),
    )


def compressed_scheme(c: Config) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """The weights' and activations' part of the only group of compressed-tensors; None if there are several."""
    groups = (c.model.quantization_config or {}).get("config_groups")
    if not isinstance(groups, Mapping) or len(groups) != 1:
        return None
    group = next(iter(groups.values()))
    return group.get("weights") or {}, group.get("input_activations") or {}


@quantization_methods.refuses(
    "SPC970", "compressed-tensors-scheme-above-gpu", raises="RuntimeError", late=True, hardware_only=True,
    sglang="layers/quantization/compressed_tensors/compressed_tensors.py:_check_scheme_supported",
    bad="gpu=t4 -- --dtype half --json-model-override-args "
    """'{"quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"group_0": """
    """{"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel"}, """
    """"input_activations": {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": true}}}}}'""",
    good="gpu=a100 -- --json-model-override-args "
    """'{"quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"group_0": """
    """{"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel"}, """
    """"input_activations": {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": true}}}}}'""",
)  # fmt: skip
def compressed_tensors_scheme_above_gpu(c: Config) -> Refusal | None:
    """This GPU is older than the checkpoint's compressed-tensors scheme needs.

    Integer schemes (W8A8, W4A16) and FP8, which falls back to weight-only kernels, need Ampere. Before 0.5.13 NVFP4 needs Blackwell.
    """
    if method(c) != "compressed-tensors" or c.gpu.capability is None:
        return None
    scheme = compressed_scheme(c)
    if scheme is None:
        return None
    weights, activations = scheme
    nvfp4 = weights.get("num_bits") == 4 and weights.get("type") == "float" and activations.get("num_bits") == 4
    wanted = 100 if nvfp4 and c.before("0.5.13") else 80
    major, minor = c.gpu.capability
    if major * 10 + minor >= wanted:
        return None
    return Refusal(
        at="model_path",
        message=f"This checkpoint's compressed-tensors scheme needs {needed(wanted)} or newer, and {c.gpu.title} is SM{major}{minor}, so "
        "SGLang stops when it builds the layers.",
        fixes=NO_FIX,
    )


@quantization_methods.refuses(
    "SPC994", "hpc-ops-without-fp8-experts", raises="ValueError", late=True, since="0.5.17",
    sglang="layers/moe/fused_moe_triton/layer.py:_validate_hpc_ops_quant_method",
    bad=(
        "model=qwen3-30b-a3b -- --tp-size 2 --moe-runner-backend hpc_ops",
        "gpu=b200 model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend hpc_ops",
        "model=qwen3-30b-a3b -- --tp-size 2 --quantization fp8 --moe-runner-backend hpc_ops",
    ),
    good="model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend hpc_ops",
)  # fmt: skip
def hpc_ops_without_fp8_experts(c: Config) -> Refusal | None:
    """The HPC-Ops runner is for FP8 experts on Hopper.

    Its kernels are built for SM90 and support FP8 weights only, with a scale for each block or with fixed scales of the activations, and
    with shared experts apart. Leave the runner to SGLang elsewhere.
    """
    if c.moe_runner_backend != "hpc_ops" or not c.model.num_experts:
        return None
    config = c.model.quantization_config or {}
    fits = c.gpu.sm90 and method(c) == "fp8"
    if fits and fuses_shared_experts(c):
        said = _runner(
            c,
            f"{c.shown('moe_runner_backend')} has no place for fused shared experts, and SGLang stops when it builds the MoE layers.",
        )
        return said._replace(fixes=(*said.candidates, setting(disable_shared_experts_fusion=True)))
    if fits and (config.get("weight_block_size") or config.get("activation_scheme") == "static"):
        return None
    why = f"does not run on {c.gpu.title}" if not c.gpu.sm90 else "runs FP8 experts only"
    if fits:
        why = "needs FP8 experts with a scale for each block, or fixed scales of their activations"
    return _runner(
        c, f"{c.shown('moe_runner_backend')} {why}, and SGLang stops when it builds the MoE layers. Remove it."
    )


@quantization_methods.refuses(
    "SPC997", "awq-of-other-bits", raises="ValueError", late=True,
    sglang="layers/quantization/awq/awq.py:__init__",
    earlier=(Earlier("0.5.11", "layers/quantization/awq.py:__init__"),),
    bad="--dtype half --json-model-override-args "
    """'{"quantization_config": {"quant_method": "awq", "bits": 8, "group_size": 128, "zero_point": true}}'""",
    good="--dtype half --json-model-override-args "
    """'{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true}}'""",
)  # fmt: skip
def awq_of_other_bits(c: Config) -> Refusal | None:
    """AWQ weights have four bits.

    Plain AWQ kernels support nothing else, and Marlin's do not accept an AWQ checkpoint of eight. SGLang finds out when it reads the
    checkpoint's settings.
    """
    config = c.model.quantization_config or {}
    bits = config.get("bits", config.get("w_bit"))
    if method(c) != "awq" or bits in (None, 4):
        return None
    return Refusal(
        at=_asked(c),
        related_fields=("model_path",),
        message=f"{_what(c, 'awq')} has weights of {bits} bits, and AWQ's kernels support 4 only, so SGLang stops before it loads them.",
        fixes=NO_FIX,
    )


def _unserved(c: Config, weights: Mapping[str, Any], activations: Mapping[str, Any]) -> str | None:
    """Why SGLang serves no experts of this compressed-tensors scheme on NVIDIA GPUs; None if it does."""
    if weights.get("type") != "int" or not weights.get("symmetric", True):
        return None
    bits, packed = weights.get("num_bits"), (c.model.quantization_config or {}).get("format") == "pack-quantized"
    in_eight = (
        activations.get("num_bits") == 8 and activations.get("strategy") == "token" and activations.get("dynamic")
    )
    strategy = weights.get("strategy")
    if in_eight and bits == 8 and strategy in ("tensor", "channel"):
        return "experts in INT8 with INT8 activations run on Ascend NPUs only"
    if in_eight and bits == 4 and strategy in ("group", "channel") and not packed:
        return "experts in INT4 with INT8 activations run on Ascend NPUs only"
    return None


def _unserved_by_triton(c: Config, weights: Mapping[str, Any], activations: Mapping[str, Any]) -> bool:
    """Whether integer weights without activations have a form that Triton's kernels lack, where Triton was named."""
    if c.moe_runner_backend != "triton" or c.before("0.5.19") or activations or weights.get("type") != "int":
        return False
    known = (
        weights.get("num_bits") == 4 and weights.get("strategy") == "group" and weights.get("group_size") in (32, 128)
    )
    return not known or not weights.get("symmetric", True) or bool(weights.get("actorder"))


@quantization_methods.refuses(
    "SPC1044", "experts-of-compressed-tensors-scheme", raises="NotImplementedError", late=True, since="0.5.9",
    sglang="layers/quantization/compressed_tensors/compressed_tensors.py:get_moe_scheme",
    bad=(
        "model=qwen3-30b-a3b -- --json-model-override-args "
        """'{"quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"group_0": """
        """{"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": true}, """
        """"input_activations": {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": true}}}}}'""",
        "model=qwen3-30b-a3b -- --moe-runner-backend triton --json-model-override-args "
        """'{"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": """
        """{"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 64, "symmetric": true}, """
        """"input_activations": null}}}}'""",
    ),
    good="model=qwen3-30b-a3b -- --json-model-override-args "
    """'{"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": """
    """{"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 64, "symmetric": true}, """
    """"input_activations": null}}}}'""",
)  # fmt: skip
def experts_of_compressed_tensors_scheme(c: Config) -> Refusal | None:
    """Experts of this compressed-tensors scheme have no kernels here.

    INT8 activations are for Ascend NPUs. Under `--moe-runner-backend triton` weights of four bits have to be symmetric, in groups of 32
    or 128; Marlin, which SGLang takes by itself, knows more.
    """
    scheme = compressed_scheme(c) if _quantized_experts(c, "compressed-tensors") else None
    if scheme is None:
        return None
    if _unserved_by_triton(c, *scheme):
        return _runner(
            c,
            f"{c.shown('moe_runner_backend')} has no kernels for experts of this checkpoint's scheme, and SGLang stops when it builds the "
            "MoE layers. Remove it.",
        )
    why = _unserved(c, *scheme)
    if why is None:
        return None
    return value_refused(c, "model_path", f"is refused when its MoE layers are built: {why}.", fixes=NO_FIX)


ONLINE_RUNNERS = ("auto", "flashinfer_trtllm", "flashinfer_trtllm_routed", "flashinfer_cutedsl", "flashinfer_megamoe")


@quantization_methods.refuses(
    "SPC1045", "draft-experts-in-online-nvfp4", raises="ValueError", late=True, since="0.5.17",
    sglang="layers/quantization/nvfp4_online.py:__init__",
    bad="gpu=b200 model=deepseek-v3 -- --tp-size 8 --speculative-algorithm EAGLE --speculative-draft-model-quantization nvfp4_online "
    "--speculative-moe-runner-backend triton",
    good="gpu=b200 model=deepseek-v3 -- --tp-size 8 --speculative-algorithm EAGLE --speculative-draft-model-quantization nvfp4_online "
    "--speculative-moe-runner-backend flashinfer_trtllm",
)  # fmt: skip
def draft_experts_in_online_nvfp4(c: Config) -> Refusal | None:
    """A draft's experts that are quantized to NVFP4 while loading run on few runners.

    They are FlashInfer's `flashinfer_trtllm`, `flashinfer_trtllm_routed` and `flashinfer_cutedsl`.
    """
    runner = c.speculative_moe_runner_backend
    if c.speculative_algorithm is None or runner in (None, *ONLINE_RUNNERS) or not c.model.num_experts:
        return None
    if c.speculative_draft_model_quantization != "nvfp4_online" or c.speculative_draft_model_path not in (
        None,
        c.model_path,
    ):
        return None
    return value_refused(
        c,
        "speculative_moe_runner_backend",
        "cannot compute the draft's experts, which are quantized to NVFP4 while loading, and SGLang stops when it builds the draft.",
        "speculative_draft_model_quantization",
        fixes=(
            dropping("speculative_moe_runner_backend"),
            setting(speculative_moe_runner_backend="flashinfer_trtllm"),
            dropping("speculative_draft_model_quantization"),
        ),
    )


quantization_platforms = Handler("layers/quantization/quark/schemes/quark_w4a4_mxfp4.py:__init__", since="0.5.9")


def _served_only_elsewhere(c: Config, name: str) -> str | None:
    """The only hardware with kernels for a method; None if this hardware has them."""
    if name == "quark_mxfp4" and c.since("0.5.15") and not c.gpu.gfx95 and c.model.quantization_config is None:
        return "AMD GPUs with FP4 (MI350X, MI355X)"
    if name == "quark_int4fp8_moe" and not c.gpu.is_hip and c.model.num_experts:
        return "AMD GPUs"
    if name in ("mxfp_w4a8", "mxfp4_w4a4") and c.since("0.5.15") and c.gpu.platform != "npu":
        return "Ascend NPUs"
    on_cpu = register("cpu_methods", c.release)
    if c.gpu.platform == "cpu" and on_cpu is not None and name not in on_cpu and requirements(name, c.release).dtypes:
        return "GPUs"
    return None


@quantization_platforms.refuses(
    "SPC1005", "quantization-method-of-other-hardware", raises="NotImplementedError", late=True, hardware_only=True,
    bad=(
        "gpu=mi300x -- --quantization quark_mxfp4",
        "model=qwen3-30b-a3b -- --quantization quark_int4fp8_moe",
        "--quantization mxfp_w4a8",
        "gpu=cpu -- --device cpu --quantization gptq_marlin",
    ),
    good=("gpu=mi355x -- --quantization quark_mxfp4", "gpu=cpu -- --device cpu --quantization fp8"),
)  # fmt: skip
def quantization_method_of_other_hardware(c: Config) -> Refusal | None:
    """The method quantizes while loading, with kernels that only other hardware has.

    `quark_mxfp4` needs AMD's MI350X or MI355X, `quark_int4fp8_moe` an AMD GPU, `mxfp_w4a8` and `mxfp4_w4a4` an Ascend NPU. SGLang stops
    when it builds the layers. On a CPU it knows a few methods only, FP8, INT8, AWQ and GPTQ among them.
    """
    name = c.quantization
    where = _served_only_elsewhere(c, name) if isinstance(name, str) else None
    if where is None:
        return None
    return value_refused(
        c,
        "quantization",
        f"has kernels for {where} only, and SGLang stops on {c.gpu.title} when it builds the layers.",
        "model_path",
        fixes=(setting(quantization="fp8"), dropping("quantization")),
    )
