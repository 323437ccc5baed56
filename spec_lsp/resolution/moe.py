"""Mixture of experts: which kernels compute them (the runner) and how tokens get to them (the all-to-all backend).

Follows arg_groups/moe_hook.py and the MoE passes of overrides.py; before 0.5.19 the methods of ServerArgs with the same
names.

Left out: what plugins register in SGLang's tables; the graph sizes in CuTe DSL's token budget before 0.5.22.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution import cuda_graph, mega_moe, parallel
from spec_lsp.resolution.engine import (
    Change,
    Config,
    Earlier,
    Handler,
    Refusal,
    dropping,
    dropping_env,
    setting,
    setting_env,
)
from spec_lsp.resolution.model.config import model_dtype

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


def prefill_tokens_at_most(c: Config) -> int:
    """The most tokens one prefill step computes (overrides.max_prefill_buffer_tokens); 0 without chunking."""
    chunk = c.chunked_prefill_size if c.chunked_prefill_size and c.chunked_prefill_size > 0 else 0
    if chunk and c.enable_dynamic_chunking and c.pp_size > 1:
        return max(chunk, c.max_prefill_tokens or 0, ceil(chunk * 1.25))
    return int(chunk)


def decode_tokens_per_request(c: Config) -> int:
    """How many tokens a request computes in one decode or verify step."""
    if not c.speculative_algorithm:
        return 1
    if c.speculative_adaptive:
        raise NotKnown("draft tokens", "adaptive speculation changes them")
    return int(c.speculative_num_draft_tokens or 1)


def decode_tokens_at_most(c: Config) -> int:
    """The most tokens a captured decode or verify step computes on a rank; 0 when none is captured."""
    if c.disaggregation_mode == "prefill" or cuda_graph.backend_of(c, "decode") == "disabled":
        return 0
    requests = int(c.cuda_graph_config["decode"]["max_bs"] or 0)
    if c.max_running_requests is not None:
        requests = min(requests, max(1, c.max_running_requests // parallel.attention_dp_size(c)))
    return requests * decode_tokens_per_request(c)


# --- handle_moe_kernel_config -----------------------------------------------------------------------------------------

handle_moe_kernel_config = Handler("moe_hook.py:handle_moe_kernel_config")

MXFP8_RUNNERS = ("cutlass", "deep_gemm", "flashinfer_megamoe", "flashinfer_trtllm", "flashinfer_trtllm_routed")
NVFP4_ONLINE_RUNNERS = ("flashinfer_trtllm", "flashinfer_trtllm_routed", "flashinfer_cutedsl")


@handle_moe_kernel_config.refuses(
    "SPC600", "nvfp4-online-off-blackwell", raises="ValueError", since="0.5.14", gate=True,
    sglang="overrides.py:_moe_runner_backend_quant_constraints",
    earlier=(Earlier("0.5.15", "server_args.py:_handle_moe_kernel_config"),),
    bad="gpu=h100 model=qwen3-30b-a3b -- --quantization nvfp4_online",
    good="gpu=b200 model=qwen3-30b-a3b -- --quantization nvfp4_online",
)  # fmt: skip
def nvfp4_online_off_blackwell(c: Config) -> Refusal | None:
    """Quantizing to NVFP4 while loading needs a B200 or its kin.

    The FP4 tensor cores this uses are those of SM100 and SM103 (B200, B300, GB200, GB300).
    """
    if c.quantization == "nvfp4_online" and not c.gpu.sm100:
        return Refusal(
            at="quantization",
            message=f"{c.shown('quantization')} does not run on {c.gpu.title}: only SM100 and SM103 GPUs have the FP4 "
            "kernels it uses. Leave it out or use `fp8`.",
            fixes=(dropping("quantization"), setting(quantization="fp8")),
        )
    return None


def _nvfp4_online_runners(c: Config) -> tuple[str, ...]:
    if c.since("0.5.23") and _megamoe_w4a16(c):
        return (*NVFP4_ONLINE_RUNNERS, "flashinfer_megamoe")
    return NVFP4_ONLINE_RUNNERS if c.since("0.5.18") else NVFP4_ONLINE_RUNNERS[:2]


def _megamoe_w4a16(c: Config) -> bool:
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

    `flashinfer_trtllm`, `flashinfer_trtllm_routed` and (from 0.5.18) `flashinfer_cutedsl` compute them; `auto` takes
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
        with_=("quantization",),
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
            moe_runner_backend="flashinfer_megamoe" if c.since("0.5.23") and _megamoe_w4a16(c) else "flashinfer_trtllm"
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
    "flashinfer_cutlass": {"modelopt_fp4": "", "modelopt_fp8": "", None: "", "modelopt_mixed": "0.5.10"},
    "flashinfer_cutedsl": {"modelopt_fp4": "", "modelopt_mixed": "0.5.16", "nvfp4_online": "0.5.18"},
    "flashinfer_trtllm": {
        "modelopt_fp4": "", "modelopt_fp8": "", "fp8": "", "compressed-tensors": "0.5.7", None: "0.5.7",
        "mxfp8": "0.5.10", "modelopt_mixed": "0.5.10", "nvfp4_online": "0.5.14",
    },
    "flashinfer_trtllm_routed": {
        "fp8": "", "mxfp8": "", None: "", "modelopt_fp4": "0.5.11", "nvfp4_online": "0.5.14",
        "modelopt_mixed": "0.5.16", "minimax_m3_nvfp4": "0.5.23",
    },
}  # fmt: skip
"""The quantizations of the experts that a MoE runner computes, each from the release named."""


def _quantizations_of(c: Config, runner: str) -> tuple[str | None, ...] | None:
    """What a runner computes in this release; None where the release checks nothing."""
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
        with_=("quantization", "model_path"),
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
            with_=("tp_size", "moe_runner_backend"),
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
    """FlashInfer's CuteDSL MoE runner takes tokens from few all-to-all backends.

    It has layouts for none, DeepEP's low-latency exchange and (from 0.5.13) FlashInfer's own.
    """
    allowed = ("none", "deepep", "flashinfer") if c.since("0.5.13") else ("none", "deepep")
    if c.moe_runner_backend == "flashinfer_cutedsl" and c.moe_a2a_backend not in allowed:
        return Refusal(
            at="moe_a2a_backend",
            with_=("moe_runner_backend",),
            message=f"{c.shown('moe_a2a_backend')} does not hand tokens to {c.shown('moe_runner_backend')}: it takes "
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
            with_=("moe_runner_backend", "quantization"),
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
            with_=("quantization",),
            message=f"`SGLANG_CUTLASS_MOE` needs FP8 experts, and the model is served with {c.shown('quantization')}. "
            "Unset it.",
            fixes=(dropping_env("SGLANG_CUTLASS_MOE"),),
        )
    return None


@handle_moe_kernel_config.adjusts("moe_runner_backend", until="0.5.18")
def read_cutlass_moe_variable(c: Config) -> None:
    """SGLANG_CUTLASS_MOE is the old spelling of `--moe-runner-backend cutlass`."""
    if c.env.flag("SGLANG_CUTLASS_MOE"):
        c.set(moe_runner_backend="cutlass")


@handle_moe_kernel_config.refuses(
    "SPC607", "fp8-cutlass-moe-with-expert-parallelism", raises="AssertionError",
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
            with_=("moe_runner_backend", "quantization"),
            message=f"{c.shown('moe_runner_backend')} needs all FP8 experts on every GPU, but {c.shown('ep_size')} "
            "spreads them. Drop one of the two.",
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


# --- handle_a2a_moe ---------------------------------------------------------------------------------------------------

handle_a2a_moe = Handler("moe_hook.py:handle_a2a_moe")

SPANS_TP_GROUP = {
    "deepep": "", "mooncake": "", "ascend_fuseep": "", "flashinfer": "0.5.9", "mori": "0.5.9", "nixl": "0.5.10",
    "megamoe": "0.5.12", "pplx": "0.5.17", "deepep_v2": "0.5.19", "flashinfer_megamoe": "0.5.20",
}  # fmt: skip
"""All-to-all backends that make every TP rank an expert-parallel rank, each from the release named."""

MEGAMOE_ARCHITECTURES = (
    "BeamForCausalLM",
    "DeepseekV2ForCausalLM",
    "DeepseekV3ForCausalLM",
    "DeepseekV32ForCausalLM",
    "DeepseekV4ForCausalLM",
    "Glm4MoeForCausalLM",
    "GlmMoeDsaForCausalLM",
    "NemotronHForCausalLM",
    "NemotronHPuzzleForCausalLM",
    "Qwen2MoeForCausalLM",
    "Qwen3MoeForCausalLM",
    "KimiK3ForConditionalGeneration",
    "KimiK3LinearForCausalLM",
)
DEEPEP_V2_ARCHITECTURES = {
    "DeepseekV3ForCausalLM": "",
    "DeepseekV4ForCausalLM": "",
    "Qwen3MoeForCausalLM": "",
    "Glm5NextForConditionalGeneration": "0.5.21",
    "GlmMoeDsaForCausalLM": "0.5.22",
    "MiMoV2ForCausalLM": "0.5.22",
    "MiMoV2FlashForCausalLM": "0.5.22",
}


def waterfill(c: Config) -> bool:
    """Whether the shared expert is dispatched like a routed one."""
    return bool(c.enable_waterfill if c.since("0.5.16") else c.enable_deepep_waterfill)


@handle_a2a_moe.adjusts("moe_a2a_backend", since="0.5.12")
def choose_exchange_for_waterfill(c: Config) -> None:
    """Waterfill dispatches the shared expert over DeepEP (or MegaMoE)."""
    fits = ("deepep", "megamoe") if c.since("0.5.16") else ("deepep",)
    backend = "deepep" if waterfill(c) and c.moe_a2a_backend not in fits else c.moe_a2a_backend
    if c.before("0.5.18") and c.env.flag("SGLANG_OPT_USE_DEEPGEMM_MEGA_MOE"):
        backend = "megamoe"
    c.set(moe_a2a_backend=backend)


@handle_a2a_moe.adjusts("ep_size")
def span_tp_group_with_experts(c: Config) -> None:
    """This all-to-all backend makes every TP rank an expert-parallel rank."""
    since = SPANS_TP_GROUP.get(c.moe_a2a_backend)
    if since is not None and (not since or c.since(since)):
        c.set(ep_size=c.tp_size)


@handle_a2a_moe.adjusts("disable_shared_experts_fusion")
def fuse_shared_experts_as_exchange_needs(c: Config) -> None:
    """Waterfill needs the shared expert fused with the routed ones, other exchanges need it apart."""
    backend = c.moe_a2a_backend
    if waterfill(c) and backend in ("deepep", "megamoe"):
        if c.disable_shared_experts_fusion:
            c.set(disable_shared_experts_fusion=False)
    elif (backend == "flashinfer" and c.since("0.5.9")) or backend in ("flashinfer_megamoe", "deepep_v2"):
        c.set(disable_shared_experts_fusion=True)


@handle_a2a_moe.adjusts("enforce_shared_experts_fusion", since="0.5.12")
def enforce_fusion_for_waterfill(c: Config) -> None:
    """Waterfill dispatches the shared expert like a routed one, so it has to be fused with them."""
    if waterfill(c) and (c.since("0.5.16") or c.moe_a2a_backend == "deepep"):
        c.set(enforce_shared_experts_fusion=True)


@handle_a2a_moe.refuses(
    "SPC610", "flashinfer-dispatch-type-without-its-exchange", raises="ValueError", since="0.5.20",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --flashinfer-a2a-dispatch-type bf16",
    good="model=qwen3-30b-a3b -- --tp-size 2 --flashinfer-a2a-dispatch-type auto",
)  # fmt: skip
def flashinfer_dispatch_type_without_its_exchange(c: Config) -> Refusal | None:
    """The dispatch type belongs to FlashInfer's all-to-all backend.

    `--flashinfer-a2a-dispatch-type` says in which format tokens travel between ranks over `--moe-a2a-backend
    flashinfer`.
    """
    if c.moe_a2a_backend != "flashinfer" and c.flashinfer_a2a_dispatch_type not in (None, "auto"):
        return Refusal(
            at="flashinfer_a2a_dispatch_type",
            with_=("moe_a2a_backend",),
            message=f"{c.shown('flashinfer_a2a_dispatch_type')} needs `--moe-a2a-backend flashinfer`, and the backend "
            f"is `{c.moe_a2a_backend}`. Leave it out.",
            fixes=(dropping("flashinfer_a2a_dispatch_type"), setting(moe_a2a_backend="flashinfer")),
        )
    return None


@handle_a2a_moe.refuses(
    "SPC611", "flashinfer-megamoe-on-unfit-model", raises="ValueError", since="0.5.20",
    sglang="moe_hook.py:validate_flashinfer_megamoe_model",
    bad="gpu=b200 model=mixtral-8x7b -- --tp-size 2 --moe-a2a-backend flashinfer_megamoe",
    good="model=mixtral-8x7b -- --tp-size 2",
)  # fmt: skip
def flashinfer_megamoe_on_unfit_model(c: Config) -> Refusal | None:
    """FlashInfer's fused MoE kernel computes few models and quantizations.

    Its kernel dispatches, computes and combines in one. It was validated on DeepSeek, GLM-4/5, Qwen2/3-MoE, Nemotron-H
    and Kimi-K3, with MXFP8, NVFP4 or FP4 experts; ordinary FP8 checkpoints are not among them.
    """
    if c.moe_a2a_backend != "flashinfer_megamoe":
        return None
    supported = MEGAMOE_ARCHITECTURES if c.since("0.5.23") else tuple(
        a for a in MEGAMOE_ARCHITECTURES if not a.startswith(("Beam", "KimiK3"))
    )  # fmt: skip
    if not any(a in supported for a in c.model.architectures):
        why = f"it was not validated for {c.model.architecture}"
    elif not _megamoe_quantization(c):
        why = f"it has no kernel for {c.shown('quantization') if c.quantization else 'experts that are not quantized'}"
    else:
        return None
    return Refusal(
        at="moe_a2a_backend",
        with_=("quantization", "model_path"),
        message=f"{c.shown('moe_a2a_backend')} cannot be used: {why}. Use another all-to-all backend.",
        fixes=(setting(moe_a2a_backend="deepep"), dropping("moe_a2a_backend")),
    )


def _megamoe_quantization(c: Config) -> bool:
    if c.quantization in ("mxfp8", "modelopt_fp4"):
        return True
    if c.quantization == "nvfp4_online" and c.since("0.5.23") and _megamoe_w4a16(c):
        return True
    return has_fp4_experts(c) or has_nvfp4_experts(c)


@handle_a2a_moe.refuses(
    "SPC612",
    "flashinfer-megamoe-combine-type",
    raises="ValueError",
    since="0.5.20",
    sglang="moe_hook.py:validate_flashinfer_megamoe_envs",
    bad="gpu=b200 model=qwen3-30b-a3b SGLANG_FLASHINFER_MEGAMOE_COMBINE_DTYPE=fp32 -- --tp-size 2 --dp-size 2 "
    "--enable-dp-attention --quantization mxfp8 --moe-a2a-backend flashinfer_megamoe",
    good="model=qwen3-30b-a3b SGLANG_FLASHINFER_MEGAMOE_COMBINE_DTYPE=fp32 -- --tp-size 2",
)
def flashinfer_megamoe_combine_type(c: Config) -> Refusal | None:
    """The fused MoE kernel cannot combine in this format.

    SGLANG_FLASHINFER_MEGAMOE_COMBINE_DTYPE is bf16, mxfp8 or nvfp4; the last two exclude the reduction inside the
    kernel, and weights in FP4 with activations in 16 bit want bf16.
    """
    if c.moe_a2a_backend != "flashinfer_megamoe":
        return None
    variable = "SGLANG_FLASHINFER_MEGAMOE_COMBINE_DTYPE"
    combine = (c.env.text(variable) or "bf16").strip().lower()
    if combine == "bf16":
        return None
    if c.since("0.5.23") and c.env.flag("SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16"):
        why, other = "FP4 weights with 16-bit activations are combined in bf16", "SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16"
    elif combine not in ("mxfp8", "nvfp4"):
        why, other = "the kernel knows bf16, mxfp8 and nvfp4", ""
    elif c.env.flag("SGLANG_FLASHINFER_MEGAMOE_IN_KERNEL_FC2_REDUCE"):
        why, other = "the reduction inside the kernel needs bf16", "SGLANG_FLASHINFER_MEGAMOE_IN_KERNEL_FC2_REDUCE"
    else:
        return None
    return Refusal(
        at=variable,
        with_=("moe_a2a_backend", other) if other else ("moe_a2a_backend",),
        message=f"`{variable}={combine}` does not fit {c.shown('moe_a2a_backend')}: {why}. Unset it.",
        fixes=(dropping_env(variable),),
    )


@handle_a2a_moe.refuses(
    "SPC613",
    "flashinfer-megamoe-without-bfloat16",
    raises="ValueError",
    since="0.5.23",
    bad="gpu=b200 model=qwen3-30b-a3b SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16=1 -- --tp-size 2 --dp-size 2 "
    "--enable-dp-attention --quantization nvfp4_online --dtype float16 --moe-a2a-backend flashinfer_megamoe",
    good="model=qwen3-30b-a3b -- --tp-size 2 --dtype bfloat16",
)
def flashinfer_megamoe_without_bfloat16(c: Config) -> Refusal | None:
    """The fused MoE kernel with FP4 weights and 16-bit activations computes in bfloat16.

    SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16 keeps activations in the model's type, which has to be bfloat16 then.
    """
    if not _megamoe_w4a16(c) or model_dtype(c) == "bfloat16":
        return None
    return Refusal(
        at="dtype",
        with_=("moe_a2a_backend", "SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16"),
        message=f"{c.shown('dtype')} does not fit {c.shown('moe_a2a_backend')} with FP4 weights and 16-bit "
        "activations, which needs bfloat16. Set `--dtype bfloat16`.",
        fixes=(setting(dtype="bfloat16"),),
    )


def _spans_attention_dp(c: Config) -> bool:
    """Whether each TP rank is an attention-DP group of its own."""
    return parallel.attention_dp(c) and parallel.attention_dp_size(c) == c.tp_size


def _spanning_attention_dp(c: Config) -> Change:
    return parallel.attention_dp_fix(c, c.tp_size)


@handle_a2a_moe.refuses(
    "SPC614",
    "exchange-without-attention-dp-on-all-ranks",
    raises="AssertionError",
    since="0.5.13",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend flashinfer --moe-runner-backend flashinfer_cutlass",
    good="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend flashinfer "
    "--moe-runner-backend flashinfer_cutlass",
)
def exchange_without_attention_dp_on_all_ranks(c: Config) -> Refusal | None:
    """FlashInfer's all-to-all exchange needs attention data parallelism over all ranks.

    Every rank sends its own tokens to the experts, so every rank has to be an attention-DP group: as many groups as
    `--tp-size`.
    """
    if c.moe_a2a_backend not in ("flashinfer", "flashinfer_megamoe") or _spans_attention_dp(c):
        return None
    if c.moe_a2a_backend == "flashinfer" and _muse_spark_sequence_parallel(c):
        return None
    return Refusal(
        at="moe_a2a_backend",
        with_=("tp_size", parallel.attention_dp_field(c)),
        message=f"{c.shown('moe_a2a_backend')} needs attention data parallelism with one group for each of the "
        f"{c.tp_size} TP ranks, and there are {parallel.attention_dp_size(c)}. Add the groups or use another "
        "backend.",
        fixes=(_spanning_attention_dp(c), dropping("moe_a2a_backend")),
    )


def _muse_spark_sequence_parallel(c: Config) -> bool:
    if c.before("0.5.23") or not c.enable_layernorm_sp or parallel.attention_dp(c) or c.attn_dp_size != 1:
        return False
    return c.model.architecture == parallel.MUSE_SPARK and (c.tp_size, c.ep_size) in ((4, 4), (8, 8))


@handle_a2a_moe.adjusts("moe_runner_backend", since="0.5.20")
def compute_megamoe_with_its_own_runner(c: Config) -> None:
    """FlashInfer's fused exchange computes the experts itself."""
    if c.moe_a2a_backend == "flashinfer_megamoe" and c.moe_runner_backend == "auto":
        c.set(moe_runner_backend="flashinfer_megamoe")


@handle_a2a_moe.refuses(
    "SPC615", "flashinfer-megamoe-with-another-runner", raises="AssertionError", since="0.5.20",
    bad="gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --quantization mxfp8 "
    "--moe-a2a-backend flashinfer_megamoe --moe-runner-backend cutlass --ep-size 1",
    good="model=qwen3-30b-a3b -- --tp-size 2",
)  # fmt: skip
def flashinfer_megamoe_with_another_runner(c: Config) -> Refusal | None:
    """FlashInfer's fused MoE exchange computes the experts itself.

    `--moe-a2a-backend flashinfer_megamoe` dispatches, computes and combines in one kernel, so the runner is
    `flashinfer_megamoe` too.
    """
    if c.moe_a2a_backend == "flashinfer_megamoe" and c.moe_runner_backend != "flashinfer_megamoe":
        return Refusal(
            at="moe_runner_backend",
            with_=("moe_a2a_backend",),
            message=f"{c.shown('moe_runner_backend')} cannot be combined with {c.shown('moe_a2a_backend')}, which "
            "computes the experts itself. Leave the runner out.",
            fixes=(
                dropping("moe_runner_backend"),
                setting(moe_runner_backend="flashinfer_megamoe"),
                dropping("moe_a2a_backend"),
            ),
        )
    return None


@handle_a2a_moe.refuses(
    "SPC616",
    "flashinfer-megamoe-off-blackwell",
    raises="ValueError",
    since="0.5.20",
    gate=True,
    bad="gpu=h100 model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --quantization mxfp8 "
    "--moe-a2a-backend flashinfer_megamoe",
    good="model=qwen3-30b-a3b -- --tp-size 2",
)
def flashinfer_megamoe_off_blackwell(c: Config) -> Refusal | None:
    """FlashInfer's fused MoE exchange needs a B200 or its kin.

    The kernel is written for SM100 and SM103. On Hopper use DeepEP.
    """
    if c.moe_a2a_backend == "flashinfer_megamoe" and not c.gpu.sm100:
        return Refusal(
            at="moe_a2a_backend",
            message=f"{c.shown('moe_a2a_backend')} does not run on {c.gpu.title}: its kernel is for SM100 and SM103 "
            "GPUs. Use `deepep`.",
            fixes=(setting(moe_a2a_backend="deepep"), dropping("moe_a2a_backend")),
        )
    return None


@handle_a2a_moe.adjusts("deepep_mode", since="0.5.17")
def use_low_latency_for_cutedsl(c: Config) -> None:
    """The CuteDSL runner has a layout for DeepEP's low-latency dispatch only."""
    if c.moe_a2a_backend == "deepep" and c.moe_runner_backend == "flashinfer_cutedsl" and c.deepep_mode == "auto":
        c.set(deepep_mode="low_latency")


@handle_a2a_moe.refuses(
    "SPC620",
    "normal-dispatch-on-low-latency-backend",
    raises="ValueError",
    since="0.5.17",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend pplx --deepep-mode "
    "normal",
    good="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend deepep "
    "--deepep-mode normal",
)
def normal_dispatch_on_low_latency_backend(c: Config) -> Refusal | None:
    """Only low-latency dispatch reaches the experts here.

    PPLX has no other dispatch, and FlashInfer's CuteDSL runner over DeepEP has a layout for no other. Leave
    `--deepep-mode` to SGLang.
    """
    cutedsl = c.moe_a2a_backend == "deepep" and c.moe_runner_backend == "flashinfer_cutedsl"
    if c.deepep_mode == "normal" and (cutedsl or c.moe_a2a_backend == "pplx"):
        other = "moe_runner_backend" if cutedsl else "moe_a2a_backend"
        return Refusal(
            at="deepep_mode",
            with_=(other,),
            message=f"{c.shown('deepep_mode')} does not work with {c.shown(other)}, which takes tokens from "
            "low-latency dispatch only. Leave the mode out or set `low_latency`.",
            fixes=(dropping("deepep_mode"), setting(deepep_mode="low_latency")),
        )
    return None


@handle_a2a_moe.adjusts("disable_cuda_graph", until="0.5.14")
def skip_graphs_with_normal_dispatch(c: Config) -> None:
    """DeepEP's normal dispatch reads sizes on the CPU, so CUDA graphs are switched off."""
    if c.moe_a2a_backend == "deepep" and c.deepep_mode == "normal":
        c.set(disable_cuda_graph=True)


@handle_a2a_moe.adjusts("cuda_graph_config", since="0.5.14")
def capture_nothing_with_normal_dispatch(c: Config) -> None:
    """DeepEP's normal dispatch reads sizes on the CPU, so no CUDA graph is captured."""
    if c.moe_a2a_backend == "deepep" and c.deepep_mode == "normal":
        cuda_graph.disable(c, "decode")
        cuda_graph.disable(c, "prefill")


@handle_a2a_moe.refuses(
    "SPC621", "deepep-v2-on-unfit-model", raises="ValueError", since="0.5.19",
    sglang="moe_hook.py:validate_deepep_v2_model_architecture",
    bad="model=deepseek-v3.2 -- --tp-size 8 --moe-a2a-backend deepep_v2",
    good="model=deepseek-v3.2 -- --tp-size 8 --moe-a2a-backend deepep",
)  # fmt: skip
def deepep_v2_on_unfit_model(c: Config) -> Refusal | None:
    """DeepEP v2 is validated for few models.

    Its combine step changes how expert outputs are added up, so SGLang lets it run only where that was checked:
    DeepSeek-V3 and V4, Qwen3-MoE, GLM-5 and MiMo-V2. Use `deepep` otherwise.
    """
    if c.moe_a2a_backend != "deepep_v2":
        return None
    if not parallel.loads_from_instance(c):
        since = DEEPEP_V2_ARCHITECTURES.get(c.model.architecture)
        if since is not None and (not since or c.since(since)):
            return None
    return Refusal(
        at="moe_a2a_backend",
        with_=("model_path",),
        message=f"{c.shown('moe_a2a_backend')} is not validated for this model. Use `deepep`.",
        fixes=(setting(moe_a2a_backend="deepep"), dropping("moe_a2a_backend")),
    )


@handle_a2a_moe.adjusts("moe_runner_backend", since="0.5.19")
def compute_deepep_v2_with_deep_gemm(c: Config) -> None:
    """DeepEP v2 hands its tokens to DeepGEMM."""
    if c.moe_a2a_backend == "deepep_v2" and c.moe_runner_backend == "auto":
        c.set(moe_runner_backend="deep_gemm")


def _deepep_v2_conflict(c: Config) -> tuple[str, str] | None:
    if c.before("0.5.21") and c.enable_deterministic_inference:
        return "enable_deterministic_inference", "it does not sort tokens deterministically"
    if c.moe_runner_backend != "deep_gemm":
        return "moe_runner_backend", "it hands tokens to `deep_gemm` only"
    for overlap in ("enable_two_batch_overlap", "enable_single_batch_overlap"):
        if getattr(c, overlap):
            return overlap, "it cannot be overlapped with another batch"
    if c.enforce_shared_experts_fusion:
        return "enforce_shared_experts_fusion", "fused shared experts are not validated with it"
    if c.since("0.5.22") and c.deepep_v2_mode == "direct" and c.nnodes > 1:
        return "nnodes", "its direct mode does not leave one node; use `--deepep-v2-mode hybrid`"
    return None


@handle_a2a_moe.refuses(
    "SPC622",
    "deepep-v2-conflict",
    raises="ValueError",
    since="0.5.19",
    bad="model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep_v2 --moe-runner-backend triton",
    good="model=deepseek-v3 SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK=16384 -- --tp-size 8 --moe-a2a-backend "
    "deepep_v2",
)
def deepep_v2_conflict(c: Config) -> Refusal | None:
    """DeepEP v2 does not work with this.

    It runs with the DeepGEMM runner alone, without two-batch or single-batch overlap and without fused shared experts;
    its direct mode stays within one node.
    """
    if c.moe_a2a_backend != "deepep_v2":
        return None
    conflict = _deepep_v2_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    return Refusal(
        at=field,
        with_=("moe_a2a_backend",),
        message=f"{c.shown(field)} cannot be combined with {c.shown('moe_a2a_backend')}: {why}.",
        fixes=(setting(deepep_v2_mode="hybrid"), dropping(field), setting(moe_a2a_backend="deepep")),
    )


@handle_a2a_moe.adjusts("cuda_graph_config", since="0.5.19")
def prefill_deepep_v2_without_graphs(c: Config) -> None:
    """DeepEP v2 reads token counts on the CPU while prefilling, so no prefill graph is captured."""
    if c.moe_a2a_backend == "deepep_v2":
        cuda_graph.disable(c, "prefill")


@handle_a2a_moe.adjusts("moe_a2a_backend", since="0.5.16")
def drop_ascend_tp_exchange(c: Config) -> None:
    """`ascend_tp` is the same as no all-to-all backend."""
    if c.moe_a2a_backend == "ascend_tp":
        c.set(moe_a2a_backend="none")


def sends_nvfp4(c: Config) -> bool:
    """Whether SGLANG_MOE_NVFP4_DISPATCH is on once all-to-all backends are resolved."""
    return c.env.flag("SGLANG_MOE_NVFP4_DISPATCH")


def _cutedsl_w4a16(c: Config) -> bool:
    return c.moe_runner_backend == "flashinfer_cutedsl" and c.env.flag("SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16")


@handle_a2a_moe.refuses(
    "SPC623",
    "nvfp4-dispatch-of-16-bit-activations",
    raises="ValueError",
    since="0.5.19",
    bad="gpu=b200 model=qwen3-30b-a3b SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16=1 SGLANG_MOE_NVFP4_DISPATCH=1 -- "
    "--tp-size 2 --dp-size 2 --enable-dp-attention --quantization modelopt_fp4 --moe-a2a-backend flashinfer "
    "--moe-runner-backend flashinfer_cutedsl",
    good="model=qwen3-30b-a3b -- --tp-size 2",
)
def nvfp4_dispatch_of_16_bit_activations(c: Config) -> Refusal | None:
    """Activations that stay in 16 bit cannot be sent as NVFP4.

    SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16 keeps activations in bfloat16, so tokens travel in bfloat16 as well.
    """
    if c.moe_a2a_backend != "flashinfer" or not _cutedsl_w4a16(c):
        return None
    if sends_nvfp4(c):
        at = "SGLANG_MOE_NVFP4_DISPATCH"
    elif c.flashinfer_a2a_dispatch_type in ("auto", "nvfp4"):
        at = "flashinfer_a2a_dispatch_type"
    else:
        return None
    label = f"`{at}`" if at.isupper() else c.shown(at)
    return Refusal(
        at=at,
        with_=("moe_runner_backend", "SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16"),
        message=f"{label} sends tokens as NVFP4, but the CuteDSL runner keeps activations in 16 bit here. Send them "
        "as bf16.",
        fixes=(dropping_env(at) if at.isupper() else setting(flashinfer_a2a_dispatch_type="bf16"),),
    )


@handle_a2a_moe.adjusts("moe_runner_backend", since="0.5.20")
def take_routing_from_exchange(c: Config) -> None:
    """FlashInfer's exchange delivers the routing with the tokens, so the runner that takes it is used."""
    if (
        c.moe_a2a_backend == "flashinfer"
        and c.flashinfer_a2a_dispatch_type is not None
        and c.moe_runner_backend == "flashinfer_trtllm"
    ):
        c.set(moe_runner_backend="flashinfer_trtllm_routed")


def _dispatch_type(c: Config) -> str:
    """The format tokens travel in, as SGLang chooses it for `auto`."""
    asked = c.flashinfer_a2a_dispatch_type or "auto"
    if asked != "auto":
        return str(asked)
    if c.quantization == "mxfp8":
        return "mxfp8"
    return "nvfp4" if c.quantization == "modelopt_fp4" or has_nvfp4_experts(c) else "bf16"


def _dispatch_type_conflict(c: Config) -> tuple[str, str] | None:
    if c.env.is_set("SGLANG_MOE_NVFP4_DISPATCH"):
        return "SGLANG_MOE_NVFP4_DISPATCH", "the variable and the flag say the same thing; use one"
    kind = _dispatch_type(c)
    if kind == "mxfp8" and c.quantization != "mxfp8":
        return "quantization", "MXFP8 tokens need `--quantization mxfp8`"
    if kind == "mxfp8" and c.moe_runner_backend != "flashinfer_trtllm_routed":
        return "moe_runner_backend", "MXFP8 tokens need `--moe-runner-backend flashinfer_trtllm_routed`"
    if kind == "nvfp4" and not (c.quantization == "modelopt_fp4" or has_nvfp4_experts(c)):
        return "quantization", "NVFP4 tokens need experts in NVFP4"
    return None


@handle_a2a_moe.refuses(
    "SPC624",
    "flashinfer-dispatch-type-on-unfit-experts",
    raises="ValueError",
    since="0.5.20",
    sglang="moe_hook.py:handle_flashinfer_a2a_dispatch_type",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend flashinfer "
    "--moe-runner-backend flashinfer_cutlass --flashinfer-a2a-dispatch-type nvfp4",
    good="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend flashinfer "
    "--moe-runner-backend flashinfer_cutlass --flashinfer-a2a-dispatch-type bf16",
)
def flashinfer_dispatch_type_on_unfit_experts(c: Config) -> Refusal | None:
    """Tokens cannot travel in this format to these experts.

    NVFP4 tokens need NVFP4 experts, MXFP8 tokens MXFP8 experts and the routed TensorRT-LLM runner; bf16 always works.
    The old variable SGLANG_MOE_NVFP4_DISPATCH and the flag exclude each other.
    """
    if c.moe_a2a_backend != "flashinfer" or c.flashinfer_a2a_dispatch_type is None:
        return None
    conflict = _dispatch_type_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    variable = field.isupper()
    return Refusal(
        at="flashinfer_a2a_dispatch_type",
        with_=(field,),
        message=f"{c.shown('flashinfer_a2a_dispatch_type')} does not fit "
        f"{f'`{field}`' if variable else c.shown(field)}: {why}.",
        fixes=(
            dropping_env(field) if variable else setting(flashinfer_a2a_dispatch_type="bf16"),
            dropping("flashinfer_a2a_dispatch_type"),
        ),
    )


@handle_a2a_moe.adjusts("flashinfer_a2a_dispatch_type", since="0.5.20")
def choose_dispatch_type(c: Config) -> None:
    """Tokens travel in the format that the experts compute in."""
    if c.moe_a2a_backend == "flashinfer" and c.flashinfer_a2a_dispatch_type is not None:
        c.set(flashinfer_a2a_dispatch_type=_dispatch_type(c))


def _flashinfer_exchange_runners(c: Config) -> tuple[str, ...]:
    if c.before("0.5.13"):
        return ("flashinfer_cutlass",)
    if c.before("0.5.15"):
        return ("flashinfer_cutlass", "flashinfer_cutedsl")
    runners = ("flashinfer_cutlass", "flashinfer_cutedsl", "flashinfer_trtllm_routed")
    return (*runners, "flashinfer_trtllm", "deep_gemm") if c.since("0.5.19") else runners


@handle_a2a_moe.refuses(
    "SPC625",
    "moe-runner-on-unfit-exchange",
    raises="AssertionError",
    since="0.5.9",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend flashinfer "
    "--moe-runner-backend triton",
    good="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend flashinfer "
    "--moe-runner-backend deep_gemm",
)
def moe_runner_on_unfit_exchange(c: Config) -> Refusal | None:
    """The MoE runner does not take tokens from this all-to-all backend.

    FlashInfer's exchange feeds FlashInfer's runners and DeepGEMM, PPLX only DeepGEMM. With FlashInfer `auto` is no
    answer: SGLang wants the runner named.
    """
    if c.moe_a2a_backend == "flashinfer":
        allowed = _flashinfer_exchange_runners(c)
    elif c.moe_a2a_backend == "pplx" and parallel.attention_dp_size(c) >= 2:
        allowed = ("deep_gemm", "auto")
    else:
        return None
    if c.moe_runner_backend in allowed:
        return None
    return Refusal(
        at="moe_runner_backend",
        with_=("moe_a2a_backend",),
        message=f"{c.shown('moe_runner_backend')} takes no tokens from {c.shown('moe_a2a_backend')}: use "
        f"{', '.join(f'`{r}`' for r in allowed)}.",
        fixes=(*(setting(moe_runner_backend=r) for r in allowed if r != "auto"), dropping("moe_a2a_backend")),
    )


@handle_a2a_moe.adjusts("deepep_mode", since="0.5.9")
def dispatch_mori_normally(c: Config) -> None:
    """MoRI dispatches in one way only, which is called normal."""
    if c.moe_a2a_backend != "mori":
        return
    only_way = c.deepep_mode == "auto" or c.before("0.5.10")
    if only_way or (c.since("0.5.22") and c.deepep_mode == "low_latency" and _uses_mori_v2(c)):
        c.set(deepep_mode="normal")


def _uses_mori_v2(c: Config) -> bool:
    """Whether MoRI's second version runs (moe_hook._resolve_mori_ep_v2)."""
    if not c.env.flag("SGLANG_MORI_EP_V2", True):
        return False
    if c.env.is_set("SGLANG_MORI_EP_V2"):
        return True
    if (
        c.tp_size > 8
        or not c.env.flag("SGLANG_USE_AITER")
        or c.env.flag("MORI_ENABLE_SDMA")
        or parallel.loads_from_instance(c)
    ):
        return False
    if not c.model.is_deepseek_v4:
        return False
    return model_dtype(c) == "bfloat16"


@handle_a2a_moe.refuses(
    "SPC626", "prefill-chunk-above-mori-capacity", raises="AssertionError", since="0.5.9",
    bad="gpu=mi300x model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend mori --chunked-prefill-size 8192",
    good="gpu=mi300x model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend mori --chunked-prefill-size 4096",
)  # fmt: skip
def prefill_chunk_above_mori_capacity(c: Config) -> Refusal | None:
    """A prefill chunk does not fit MoRI's buffer.

    MoRI reserves room for SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK tokens (4096 unless set); a chunk may not be
    larger. Chunks are 8192 or more by default on large GPUs, so one of the two has to be set.
    """
    if c.moe_a2a_backend != "mori":
        return None
    if c.since("0.5.10") and (c.chunked_prefill_size <= 0 or c.disaggregation_mode == "decode"):
        return None
    capacity = c.env.number("SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 4096)
    if c.chunked_prefill_size <= capacity:
        return None
    return Refusal(
        at="chunked_prefill_size",
        with_=("moe_a2a_backend", "SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK"),
        message=f"{c.shown('chunked_prefill_size')} exceeds the {capacity} tokens that {c.shown('moe_a2a_backend')} "
        "has room for. Lower the chunk or raise `SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK`.",
        fixes=(
            setting_env(SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK=str(c.chunked_prefill_size)),
            setting(chunked_prefill_size=int(capacity)),
        ),
    )


@handle_a2a_moe.adjusts("deepep_mode", since="0.5.17")
def dispatch_pplx_with_low_latency(c: Config) -> None:
    """PPLX has low-latency dispatch only."""
    if c.moe_a2a_backend == "pplx" and c.deepep_mode == "auto":
        c.set(deepep_mode="low_latency")


@handle_a2a_moe.refuses(
    "SPC627",
    "pplx-without-attention-dp",
    raises="AssertionError",
    since="0.5.17",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend pplx",
    good="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend pplx "
    "--chunked-prefill-size 256",
)
def pplx_without_attention_dp(c: Config) -> Refusal | None:
    """The PPLX exchange needs at least two attention-DP groups.

    Its kernels exchange tokens between data-parallel groups; with one group there is no partner.
    """
    if c.moe_a2a_backend == "pplx" and parallel.attention_dp_size(c) < 2:
        return Refusal(
            at="moe_a2a_backend",
            with_=("tp_size", parallel.attention_dp_field(c)),
            message=f"{c.shown('moe_a2a_backend')} exchanges tokens between attention-DP groups, and there is only "
            "one. Add attention data parallelism or use another backend.",
            fixes=(_spanning_attention_dp(c), dropping("moe_a2a_backend")),
        )
    return None


@handle_a2a_moe.adjusts("moe_runner_backend", since="0.5.17")
def compute_pplx_with_deep_gemm(c: Config) -> None:
    """PPLX hands its tokens to DeepGEMM."""
    if c.moe_a2a_backend == "pplx" and c.moe_runner_backend == "auto":
        c.set(moe_runner_backend="deep_gemm")


@handle_a2a_moe.refuses(
    "SPC628",
    "prefill-chunk-above-pplx-capacity",
    raises="AssertionError",
    since="0.5.17",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend pplx",
    good="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend pplx "
    "--chunked-prefill-size 256",
)
def prefill_chunk_above_pplx_capacity(c: Config) -> Refusal | None:
    """A prefill chunk does not fit PPLX's buffer.

    PPLX reserves room for SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK tokens (128 unless set) on each rank; a rank's
    share of a chunk and the largest decode batch have to fit.
    """
    if c.moe_a2a_backend != "pplx" or parallel.attention_dp_size(c) < 2:
        return None
    if c.chunked_prefill_size <= 0 or c.disaggregation_mode == "decode":
        return None
    needed = max(c.chunked_prefill_size, c.cuda_graph_max_bs_decode or 0)
    capacity = c.env.number("SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 128)
    if needed <= capacity:
        return None
    return Refusal(
        at="chunked_prefill_size",
        with_=("moe_a2a_backend", "SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK"),
        message=f"A rank sends up to {needed} tokens at once, more than the {capacity} that "
        f"{c.shown('moe_a2a_backend')} has room for. Raise `SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK` or "
        "lower the chunk.",
        fixes=(
            setting_env(SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK=str(needed)),
            setting(chunked_prefill_size=int(capacity) * parallel.attention_dp_size(c)),
        ),
    )


# --- token budgets, once speculative decoding is resolved -------------------------------------------------------------

validate_deepep_v2_speculative_draft = Handler("moe_hook.py:validate_deepep_v2_speculative_draft", since="0.5.19")


@validate_deepep_v2_speculative_draft.refuses(
    "SPC630", "deepep-v2-draft", raises="ValueError",
    bad="--speculative-algorithm NGRAM --speculative-moe-a2a-backend deepep_v2", good="--speculative-algorithm NGRAM",
)  # fmt: skip
def deepep_v2_draft(c: Config) -> Refusal | None:
    """DeepEP v2 is not validated for a draft model.

    A draft takes over the target's all-to-all backend unless `--speculative-moe-a2a-backend` says otherwise.
    """
    backend, at = c.speculative_moe_a2a_backend, "speculative_moe_a2a_backend"
    if backend is None and c.speculative_algorithm and c.speculative_algorithm.upper() != "NGRAM":
        backend, at = c.moe_a2a_backend, "moe_a2a_backend"
    if backend != "deepep_v2":
        return None
    return Refusal(
        at=at,
        with_=("speculative_algorithm", "moe_a2a_backend"),
        message=f"{c.shown(at)} would serve the draft model, for which DeepEP v2 is not validated. Set "
        "`--speculative-moe-a2a-backend` to another backend.",
        fixes=(setting(speculative_moe_a2a_backend="deepep"), dropping("speculative_moe_a2a_backend")),
    )


validate_deepep_v2_dispatch_token_budget = Handler(
    "moe_hook.py:validate_deepep_v2_dispatch_token_budget",
    since="0.5.19",
    when=lambda c: bool(c.moe_a2a_backend == "deepep_v2"),
)


def _deepep_v2_prefill_tokens(c: Config) -> int:
    ceiling = prefill_tokens_at_most(c) or c.max_prefill_tokens or 0
    if c.before("0.5.22"):
        return int(ceiling)
    return int(-(-ceiling // max(1, c.tp_size // c.attn_dp_size)))


@validate_deepep_v2_dispatch_token_budget.refuses(
    "SPC631",
    "prefill-chunk-above-deepep-v2-capacity",
    raises="ValueError",
    bad="model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep_v2",
    good="model=deepseek-v3 SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK=16384 -- --tp-size 8 --moe-a2a-backend "
    "deepep_v2",
)
def prefill_chunk_above_deepep_v2_capacity(c: Config) -> Refusal | None:
    """A prefill chunk does not fit DeepEP v2's buffer.

    DeepEP v2 reserves room for SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK tokens (128 unless set) on each rank,
    which suits decode only. A server that prefills needs it raised to a rank's share of the chunk.
    """
    if c.disaggregation_mode == "decode":
        return None
    capacity = c.env.number("SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 128)
    needed = _deepep_v2_prefill_tokens(c)
    if needed <= capacity:
        return None
    return Refusal(
        at="moe_a2a_backend",
        with_=("chunked_prefill_size", "SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK"),
        message=f"A rank sends up to {needed} tokens of a prefill chunk at once, more than the {capacity} that "
        f"{c.shown('moe_a2a_backend')} has room for. Raise `SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK`.",
        fixes=(
            setting_env(SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK=str(needed)),
            setting(moe_a2a_backend="deepep"),
        ),
    )


@validate_deepep_v2_dispatch_token_budget.refuses(
    "SPC635",
    "decode-graph-above-deepep-v2-capacity",
    raises="ValueError",
    bad="model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep_v2 --chunked-prefill-size 128 --cuda-graph-max-bs-decode "
    "256",
    good="model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep_v2 --chunked-prefill-size 128 "
    "--cuda-graph-max-bs-decode 128",
)
def decode_graph_above_deepep_v2_capacity(c: Config) -> Refusal | None:
    """The largest decode graph does not fit DeepEP v2's buffer.

    A rank decodes as many requests at once as its largest CUDA graph holds, times the tokens that speculation verifies
    for each.
    """
    variable = "SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK"
    capacity, needed = c.env.number(variable, 128), decode_tokens_at_most(c)
    if needed <= capacity:
        return None
    return Refusal(
        at="moe_a2a_backend",
        with_=("cuda_graph_max_bs_decode", "max_running_requests", variable),
        message=f"A rank decodes up to {needed} tokens in one CUDA graph, more than the {capacity} that "
        f"{c.shown('moe_a2a_backend')} has room for. Raise `{variable}` or lower `--cuda-graph-max-bs-decode`.",
        fixes=(setting_env(**{variable: str(needed)}), setting(cuda_graph_max_bs_decode=int(capacity))),
    )


validate_flashinfer_a2a_token_budget = Handler(
    "moe_hook.py:validate_flashinfer_a2a_token_budget",
    since="0.5.22",
    when=lambda c: bool(c.moe_a2a_backend == "flashinfer"),
)


@validate_flashinfer_a2a_token_budget.refuses(
    "SPC632",
    "flashinfer-exchange-without-chunked-prefill",
    raises="ValueError",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend flashinfer "
    "--moe-runner-backend deep_gemm --chunked-prefill-size -1",
    good="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend flashinfer "
    "--moe-runner-backend deep_gemm",
)
def flashinfer_exchange_without_chunked_prefill(c: Config) -> Refusal | None:
    """FlashInfer's all-to-all exchange needs chunked prefill.

    Its workspace has a fixed size, so a prefill step may not grow with the prompt. `--chunked-prefill-size` has to be
    above zero.
    """
    if c.disaggregation_mode != "decode" and c.chunked_prefill_size <= 0:
        return Refusal(
            at="chunked_prefill_size",
            with_=("moe_a2a_backend",),
            message=f"{c.shown('chunked_prefill_size')} switches chunked prefill off, but "
            f"{c.shown('moe_a2a_backend')} has a workspace of fixed size. Set a chunk size above zero.",
            fixes=(dropping("chunked_prefill_size"), setting(chunked_prefill_size=8192)),
        )
    return None


@validate_flashinfer_a2a_token_budget.refuses(
    "SPC633",
    "prefill-chunk-above-flashinfer-capacity",
    raises="ValueError",
    bad="model=qwen3-30b-a3b SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK=64 -- --tp-size 2 --dp-size 2 "
    "--enable-dp-attention --moe-a2a-backend flashinfer --moe-runner-backend deep_gemm",
    good="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend flashinfer "
    "--moe-runner-backend deep_gemm",
)
def prefill_chunk_above_flashinfer_capacity(c: Config) -> Refusal | None:
    """A step does not fit the workspace of FlashInfer's exchange.

    The workspace follows the chunk size (4096 tokens at least) unless
    SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK sets it. The largest prefill chunk, prefill graph and decode
    graph have to fit.
    """
    variable = "SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK"
    chunk, needed = prefill_tokens_at_most(c), 0
    if c.disaggregation_mode != "decode":
        needed = chunk
        if cuda_graph.backend_of(c, "prefill") != "disabled":
            needed = max(needed, c.cuda_graph_config["prefill"]["max_bs"] or 0)
    capacity = c.env.number(variable, max(chunk, 4096))
    needed = max(needed, decode_tokens_at_most(c))
    if needed <= capacity:
        return None
    return Refusal(
        at=variable if c.env.is_set(variable) else "moe_a2a_backend",
        with_=("chunked_prefill_size", "cuda_graph_max_bs_decode", "moe_a2a_backend"),
        message=f"A rank computes up to {needed} tokens at once, more than the {capacity} that FlashInfer's exchange "
        f"has room for. Raise `{variable}` or unset it.",
        fixes=(*((dropping_env(variable),) if c.env.is_set(variable) else ()), setting_env(**{variable: str(needed)})),
    )


validate_cutedsl_a2a_token_budget = Handler(
    "moe_hook.py:validate_cutedsl_a2a_token_budget", since="0.5.13", until="0.5.22",
    earlier=(Earlier("0.5.19", "server_args.py:_validate_cutedsl_a2a_token_budget"),),
)  # fmt: skip


@validate_cutedsl_a2a_token_budget.refuses(
    "SPC634",
    "prefill-above-cutedsl-capacity",
    raises="ValueError",
    bad="sglang=0.5.21 gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --quantization "
    "modelopt_fp4 --moe-a2a-backend flashinfer --moe-runner-backend flashinfer_cutedsl",
    good="sglang=0.5.21 model=qwen3-30b-a3b -- --tp-size 2",
)
def prefill_above_cutedsl_capacity(c: Config) -> Refusal | None:
    """A prefill step does not fit the workspace of FlashInfer's exchange.

    With the CuteDSL runner the workspace holds SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK tokens (1024 unless
    set) times the expert-parallel size, and `--max-prefill-tokens` has to fit.
    """
    if c.moe_a2a_backend != "flashinfer" or c.moe_runner_backend != "flashinfer_cutedsl":
        return None
    if c.max_prefill_tokens <= 0 or c.disaggregation_mode == "decode":
        return None
    variable = "SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK"
    capacity = (c.env.number(variable, 1024) or 1024) * c.ep_size
    if c.max_prefill_tokens <= capacity:
        return None
    return Refusal(
        at="max_prefill_tokens",
        with_=("moe_a2a_backend", "moe_runner_backend", variable),
        message=f"{c.shown('max_prefill_tokens')} exceeds the {capacity} tokens that FlashInfer's exchange has room "
        f"for. Raise `{variable}` or lower the limit.",
        fixes=(
            setting_env(SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK=str(-(-c.max_prefill_tokens // c.ep_size))),
            setting(max_prefill_tokens=int(capacity)),
        ),
    )


handle_moe_runner_backend_alias = mega_moe.handle_mega_moe
"""What 0.5.18 had of MegaMoE's handler."""
