"""Mixture of experts: which kernels compute them (the runner).

Follows arg_groups/moe_hook.py and the MoE passes of overrides.py; before 0.5.19 the methods of ServerArgs with the same
names.

Left out: what plugins register in SGLang's tables.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution.engine import (
    Config,
    Earlier,
    Handler,
    Refusal,
    dropping,
    dropping_env,
    setting,
)

# --- what the model and the platform say ------------------------------------------------------------------------------


def has_nvfp4_experts(c: Config) -> bool:
    """Whether the checkpoint is FP8 with NVFP4 experts (ModelConfig.nvfp4_moe_meta)."""
    if c.before("0.5.15"):
        return False
    config = c.model.hf("quantization_config")
    if not isinstance(config, Mapping):
        return False
    algorithm, experts = str(config.get("quant_algo", "")).upper(), str(config.get("moe_quant_algo", "")).upper()
    return algorithm == "MIXED_PRECISION" and experts == "NVFP4" and config.get("group_size") is not None


def has_fp4_experts(c: Config) -> bool:
    """Whether the routed experts are MXFP4 (ModelConfig.is_fp4_experts); for DeepSeek-V4 the weight files decide."""
    config = c.model.hf("quantization_config")
    config = config if isinstance(config, Mapping) else {}
    routed = config.get("routed_experts_quant_method")
    if routed == "mxfp4":
        return True
    if c.model.architecture.startswith("MiMoV2") and str(config.get("store_dtype") or "").lower() == "mxfp4":
        return True
    if c.model.is_deepseek_v4 and routed is None:
        raise NotKnown("the experts' quantization", "the weight files decide")
    return False


# --- handle_moe_kernel_config -----------------------------------------------------------------------------------------

handle_moe_kernel_config = Handler("moe_hook.py:handle_moe_kernel_config")

MXFP8_RUNNERS = ("cutlass", "deep_gemm", "flashinfer_megamoe", "flashinfer_trtllm", "flashinfer_trtllm_routed")
NVFP4_ONLINE_RUNNERS = ("flashinfer_trtllm", "flashinfer_trtllm_routed", "flashinfer_cutedsl")


@handle_moe_kernel_config.refuses(
    "SPC600", "nvfp4-online-off-blackwell", raises="ValueError", since="0.5.14", hardware_only=True,
    sglang="overrides.py:_moe_runner_backend_quant_constraints",
    earlier=(Earlier("0.5.15", "server_args.py:_handle_moe_kernel_config"),),
    bad="gpu=h100 model=qwen3-30b-a3b -- --quantization nvfp4_online",
    good="gpu=b200 model=qwen3-30b-a3b -- --quantization nvfp4_online",
)  # fmt: skip
def nvfp4_online_off_blackwell(c: Config) -> Refusal | None:
    """Quantizing to NVFP4 while loading needs a data-center Blackwell GPU.

    The FP4 tensor cores this uses are those of SM100 and SM103 (B200, B300, GB200, GB300).
    """
    if c.quantization == "nvfp4_online" and not c.gpu.sm100:
        return Refusal(
            at="quantization",
            message=f"{c.shown('quantization')} does not run on {c.gpu.title}: only SM100 and SM103 GPUs have the FP4 "
            "kernels it uses. Remove it or use `fp8`.",
            fixes=(dropping("quantization"), setting(quantization="fp8")),
        )
    return None


def _nvfp4_online_runners(c: Config) -> tuple[str, ...]:
    if c.since("0.5.23") and megamoe_w4a16(c):
        return (*NVFP4_ONLINE_RUNNERS, "flashinfer_megamoe")
    return NVFP4_ONLINE_RUNNERS if c.since("0.5.18") else NVFP4_ONLINE_RUNNERS[:2]


def megamoe_w4a16(c: Config) -> bool:
    return c.moe_a2a_backend == "flashinfer_megamoe" and c.env.flag("SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16")


@handle_moe_kernel_config.refuses(
    "SPC601", "nvfp4-online-on-unfit-moe-runner", raises="ValueError", since="0.5.14",
    sglang="overrides.py:_moe_runner_backend_quant_constraints",
    earlier=(Earlier("0.5.15", "server_args.py:_handle_moe_kernel_config"),),
    bad="gpu=b200 model=qwen3-30b-a3b -- --quantization nvfp4_online --moe-runner-backend triton",
    good="gpu=b200 model=qwen3-30b-a3b -- --quantization nvfp4_online --moe-runner-backend flashinfer_trtllm",
)  # fmt: skip
def nvfp4_online_on_unfit_moe_runner(c: Config) -> Refusal | None:
    """Experts quantized to NVFP4 while loading run only on FlashInfer's kernels.

    `flashinfer_trtllm`, `flashinfer_trtllm_routed` and (from 0.5.18) `flashinfer_cutedsl` compute them; `auto` chooses
    the first.
    """
    if (
        c.quantization != "nvfp4_online"
        or c.moe_runner_backend in ("auto", *_nvfp4_online_runners(c))
        or not c.gpu.sm100
    ):
        return None
    return Refusal(
        at="moe_runner_backend",
        related_fields=("quantization",),
        message=f"{c.shown('moe_runner_backend')} cannot compute experts quantized by {c.shown('quantization')}. Use "
        "`flashinfer_trtllm` or leave the runner to SGLang.",
        fixes=(
            dropping("moe_runner_backend"),
            setting(moe_runner_backend="flashinfer_trtllm"),
            dropping("quantization"),
        ),
    )


@handle_moe_kernel_config.adjusts("moe_runner_backend")
def choose_moe_runner_for_quantization(c: Config) -> None:
    """Some quantizations have kernels on few MoE runners, so the runner is chosen by the quantization."""
    runner = c.moe_runner_backend
    if c.quantization == "nvfp4_online" and runner == "auto":
        c.set(
            moe_runner_backend="flashinfer_megamoe" if c.since("0.5.23") and megamoe_w4a16(c) else "flashinfer_trtllm"
        )
    elif c.quantization == "mxfp8" and c.since("0.5.9") and not (c.since("0.5.17") and c.gpu.platform == "npu"):
        allowed, default = _mxfp8_runners(c)
        if runner not in allowed:
            c.set(moe_runner_backend=default)
    elif c.quantization == "modelopt_fp4" and runner == "auto" and c.since("0.5.13") and c.gpu.sm120:
        c.set(moe_runner_backend="flashinfer_cutlass")


def _mxfp8_runners(c: Config) -> tuple[tuple[str, ...], str]:
    """The MoE runners for MXFP8 in this release and on this device, and the default one."""
    if c.before("0.5.10"):
        return ("cutlass",), "cutlass"
    if c.before("0.5.16"):
        return ("cutlass", "flashinfer_trtllm", "flashinfer_trtllm_routed"), "flashinfer_trtllm"
    runners = MXFP8_RUNNERS if c.since("0.5.20") else tuple(r for r in MXFP8_RUNNERS if r != "flashinfer_megamoe")
    if c.gpu.gfx95 or (c.since("0.5.21") and c.gpu.is_hip and c.moe_runner_backend == "triton"):
        runners = (*runners, "triton")
    if c.gpu.gfx95 and c.since("0.5.21") and c.env.flag("SGLANG_USE_AITER"):
        runners = (*runners, "aiter")
    if c.moe_a2a_backend == "flashinfer_megamoe":
        return runners, "flashinfer_megamoe"
    return runners, "triton" if c.gpu.gfx95 else "flashinfer_trtllm"


RUNNER_QUANTIZATIONS: dict[str, dict[str | None, str]] = {
    "flashinfer_cutlass": {"modelopt_fp4": "", "modelopt_fp8": "0.5.6", None: "0.5.6", "modelopt_mixed": "0.5.10"},
    "flashinfer_cutedsl": {"modelopt_fp4": "", "modelopt_mixed": "0.5.16", "nvfp4_online": "0.5.18"},
    "flashinfer_trtllm": {
        "modelopt_fp4": "", "modelopt_fp8": "0.5.4", "fp8": "", "compressed-tensors": "0.5.7", None: "0.5.7",
        "mxfp8": "0.5.10", "modelopt_mixed": "0.5.10", "nvfp4_online": "0.5.14",
    },
    "flashinfer_trtllm_routed": {
        "fp8": "", "mxfp8": "", None: "", "modelopt_fp4": "0.5.11", "nvfp4_online": "0.5.14",
        "modelopt_mixed": "0.5.16", "minimax_m3_nvfp4": "0.5.23",
    },
}  # fmt: skip
"""The quantizations of the experts that a MoE runner computes, each from the release named."""


def _quantizations_of(c: Config, runner: str) -> tuple[str | None, ...] | None:
    """What a runner supports in this release; None if the release checks nothing."""
    if runner == "experimental_sgl_trtllm" and c.since("0.5.13"):
        runner = "flashinfer_trtllm"
    if (runner == "flashinfer_cutedsl" and c.before("0.5.11")) or (runner.endswith("_routed") and c.before("0.5.10")):
        return None
    table = RUNNER_QUANTIZATIONS.get(runner)
    return None if table is None else tuple(q for q, since in table.items() if not since or c.since(since))


@handle_moe_kernel_config.refuses(
    "SPC602", "moe-runner-without-kernel-for-quantization", raises="AssertionError",
    bad=("model=qwen3-30b-a3b -- --moe-runner-backend flashinfer_cutedsl",
         "model=qwen3-235b-fp8 -- --tp-size 4 --quantization fp8 --moe-runner-backend flashinfer_cutlass"),
    good=("gpu=b200 model=qwen3-30b-a3b -- --moe-runner-backend flashinfer_cutlass",
          "gpu=b200 model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend flashinfer_trtllm"),
)  # fmt: skip
def moe_runner_without_kernel_for_quantization(c: Config) -> Refusal | None:
    """The MoE runner has no kernel for the way the experts are quantized.

    Each runner computes certain quantizations only: FlashInfer's CuteDSL runner NVFP4, its CUTLASS runner ModelOpt
    checkpoints and bfloat16, its TensorRT-LLM runners also block FP8. `auto` always finds one that fits.
    """
    runner = c.moe_runner_backend
    allowed = _quantizations_of(c, runner)
    if allowed is None or c.quantization in allowed:
        return None
    if runner == "flashinfer_cutedsl" and has_nvfp4_experts(c):
        return None
    names = ", ".join(f"`{q}`" if q else "no quantization" for q in allowed)
    shown = c.shown("quantization") if c.quantization else "a model that is not quantized"
    return Refusal(
        at="moe_runner_backend",
        related_fields=("quantization", "model_path"),
        message=f"{c.shown('moe_runner_backend')} has no kernel for {shown}: it computes {names}. Leave the runner to "
        "SGLang.",
        fixes=(dropping("moe_runner_backend"), setting(moe_runner_backend="triton")),
    )


@handle_moe_kernel_config.refuses(
    "SPC603", "moe-runner-with-partial-expert-parallelism", raises="AssertionError",
    bad="model=qwen3-30b-a3b -- --tp-size 4 --ep-size 2 --moe-runner-backend flashinfer_cutlass",
    good="model=qwen3-30b-a3b -- --tp-size 4 --ep-size 4 --moe-runner-backend flashinfer_cutlass",
)  # fmt: skip
def moe_runner_with_partial_expert_parallelism(c: Config) -> Refusal | None:
    """This MoE runner splits either experts or their matrices over the GPUs, not both.

    `flashinfer_cutlass` and `flashinfer_cutedsl` want `--ep-size` 1 or equal to `--tp-size`.
    """
    checked = ("flashinfer_cutlass", "flashinfer_cutedsl") if c.since("0.5.11") else ("flashinfer_cutlass",)
    if c.moe_runner_backend in checked and c.ep_size not in (1, c.tp_size):
        return Refusal(
            at="ep_size",
            related_fields=("tp_size", "moe_runner_backend"),
            message=f"{c.shown('ep_size')} is neither 1 nor the TP size ({c.tp_size}), which "
            f"{c.shown('moe_runner_backend')} needs. Set it to one of the two or leave the runner to SGLang.",
            fixes=(setting(ep_size=c.tp_size), dropping("ep_size"), dropping("moe_runner_backend")),
        )
    return None


@handle_moe_kernel_config.refuses(
    "SPC604",
    "cutedsl-runner-on-unfit-exchange",
    raises="AssertionError",
    since="0.5.11",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --quantization modelopt_fp4 --moe-runner-backend flashinfer_cutedsl "
    "--moe-a2a-backend mooncake",
    good="gpu=b200 model=qwen3-30b-a3b -- --quantization modelopt_fp4 --moe-runner-backend flashinfer_cutedsl",
)
def cutedsl_runner_on_unfit_exchange(c: Config) -> Refusal | None:
    """FlashInfer's CuteDSL MoE runner works with few all-to-all backends.

    It has layouts for none, DeepEP's low-latency exchange and (from 0.5.13) FlashInfer's own.
    """
    allowed = ("none", "deepep", "flashinfer") if c.since("0.5.13") else ("none", "deepep")
    if c.moe_runner_backend == "flashinfer_cutedsl" and c.moe_a2a_backend not in allowed:
        return Refusal(
            at="moe_a2a_backend",
            related_fields=("moe_runner_backend",),
            message=f"{c.shown('moe_a2a_backend')} does not work with {c.shown('moe_runner_backend')}, which accepts "
            f"{', '.join(f'`{a}`' for a in allowed)}.",
            fixes=(dropping("moe_a2a_backend"), setting(moe_a2a_backend="deepep"), dropping("moe_runner_backend")),
        )
    return None


@handle_moe_kernel_config.refuses(
    "SPC605",
    "per-token-nvfp4-over-deepep",
    raises="ValueError",
    since="0.5.18",
    bad="gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --quantization nvfp4_online --moe-runner-backend "
    "flashinfer_cutedsl --moe-a2a-backend deepep",
    good="gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --quantization nvfp4_online --moe-runner-backend "
    "flashinfer_cutedsl",
)
def per_token_nvfp4_over_deepep(c: Config) -> Refusal | None:
    """Activations quantized to NVFP4 for each token do not travel over DeepEP.

    With `nvfp4_online` (or SGLANG_FLASHINFER_NVFP4_PER_TOKEN_ACTIVATION) the CuteDSL runner quantizes per token, which
    DeepEP's layout does not carry. Use no all-to-all backend or FlashInfer's.
    """
    if c.moe_runner_backend != "flashinfer_cutedsl" or c.moe_a2a_backend != "deepep":
        return None
    if c.quantization == "nvfp4_online" or c.env.flag("SGLANG_FLASHINFER_NVFP4_PER_TOKEN_ACTIVATION"):
        return Refusal(
            at="moe_a2a_backend",
            related_fields=("moe_runner_backend", "quantization"),
            message=f"{c.shown('moe_a2a_backend')} cannot carry activations quantized to NVFP4 per token for "
            f"{c.shown('moe_runner_backend')}. Use `none` or `flashinfer`.",
            fixes=(dropping("moe_a2a_backend"), setting(moe_a2a_backend="flashinfer")),
        )
    return None


SEPARATE_SHARED_EXPERTS = (
    "flashinfer_cutedsl", "flashinfer_trtllm", "experimental_sgl_trtllm", "flashinfer_trtllm_routed",
    "lora_triton", "lora_cutedsl", "lora_marlin",
)  # fmt: skip


@handle_moe_kernel_config.adjusts("disable_shared_experts_fusion")
def keep_shared_experts_separate(c: Config) -> None:
    """This MoE runner computes the shared experts apart from the routed ones."""
    runner = c.moe_runner_backend
    if runner not in SEPARATE_SHARED_EXPERTS or (runner.startswith("lora") and c.before("0.5.23")):
        return
    if runner == "flashinfer_trtllm" or _quantizations_of(c, runner) is not None or runner.startswith("lora"):
        c.set(disable_shared_experts_fusion=True)


@handle_moe_kernel_config.refuses(
    "SPC606",
    "cutlass-moe-variable-without-fp8",
    raises="AssertionError",
    since="0.5.4",
    until="0.5.18",
    sglang="overrides.py:_cutlass_moe_env_override",
    earlier=(Earlier("0.5.15", "server_args.py:_handle_moe_kernel_config"),),
    bad="sglang=0.5.15 model=qwen3-30b-a3b SGLANG_CUTLASS_MOE=1 -- --tp-size 1",
    good="sglang=0.5.15 model=qwen3-30b-a3b -- --tp-size 1",
)
def cutlass_moe_variable_without_fp8(c: Config) -> Refusal | None:
    """SGLANG_CUTLASS_MOE is for FP8 experts.

    The variable is the old spelling of `--moe-runner-backend cutlass`, whose kernels compute FP8 (and MXFP8) experts.
    """
    allowed = ("fp8", "mxfp8") if c.since("0.5.9") else ("fp8",)
    if c.env.flag("SGLANG_CUTLASS_MOE") and c.quantization not in allowed:
        return Refusal(
            at="SGLANG_CUTLASS_MOE",
            related_fields=("quantization",),
            message="`SGLANG_CUTLASS_MOE` needs FP8 experts, and this model is not served in FP8. Unset it.",
            fixes=(dropping_env("SGLANG_CUTLASS_MOE"),),
        )
    return None


@handle_moe_kernel_config.adjusts("moe_runner_backend", since="0.5.4", until="0.5.18")
def read_cutlass_moe_variable(c: Config) -> None:
    """SGLANG_CUTLASS_MOE is the old spelling of `--moe-runner-backend cutlass`."""
    if c.env.flag("SGLANG_CUTLASS_MOE"):
        c.set(moe_runner_backend="cutlass")


@handle_moe_kernel_config.refuses(
    "SPC607", "fp8-cutlass-moe-with-expert-parallelism", raises="AssertionError", since="0.5.4",
    bad="model=qwen3-235b-fp8 -- --tp-size 4 --ep-size 4 --quantization fp8 --moe-runner-backend cutlass",
    good="model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend cutlass",
)  # fmt: skip
def fp8_cutlass_moe_with_expert_parallelism(c: Config) -> Refusal | None:
    """The CUTLASS kernels for FP8 experts do not run with expert parallelism.

    They expect all experts on every GPU. Use tensor parallelism for the experts, or `deep_gemm` or `triton`.
    """
    quantizations = ("fp8", "mxfp8") if c.since("0.5.9") else ("fp8",)
    if c.moe_runner_backend == "cutlass" and c.quantization in quantizations and c.ep_size != 1:
        return Refusal(
            at="ep_size",
            related_fields=("moe_runner_backend", "quantization"),
            message=f"{c.shown('moe_runner_backend')} needs all FP8 experts on every GPU, but {c.shown('ep_size')} "
            "spreads them. Remove one of the two.",
            fixes=(dropping("ep_size"), dropping("moe_runner_backend"), setting(moe_runner_backend="deep_gemm")),
        )
    return None


@handle_moe_kernel_config.adjusts("disable_piecewise_cuda_graph", since="0.5.10", until="0.5.13")
def skip_piecewise_graphs_with_fused_routing(c: Config) -> None:
    """This MoE runner routes tokens inside its kernel, which piecewise CUDA graphs cannot compile around."""
    if c.enforce_piecewise_cuda_graph or c.moe_runner_backend not in ("flashinfer_trtllm", "flashinfer_mxfp4"):
        return
    if c.model.architecture != "GptOssForCausalLM":
        c.set(disable_piecewise_cuda_graph=True)
