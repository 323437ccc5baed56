"""How tokens are sent to the experts: the all-to-all backend, and the sizes of its buffers.

Follows arg_groups/moe_hook.py; before 0.5.19 the methods of ServerArgs with the same names.

Left out: entries that plugins register in SGLang's tables; the graph sizes in CuTe DSL's token budget before 0.5.22.
"""

from __future__ import annotations

from math import ceil

from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution import cuda_graph, mega_moe, parallel, ranks
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
from spec_lsp.resolution.moe import has_fp4_experts, has_nvfp4_experts, megamoe_w4a16

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
    """Whether the shared expert's tokens are dispatched like those of a routed one."""
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


FUSED_MODE = "SGLANG_NPU_FUSED_MOE_MODE"


@handle_a2a_moe.refuses(
    "SPC1150", "ascend-exchange-without-its-mode", raises="ValueError", since="0.5.10", until="0.5.18",
    sglang="server_args.py:_handle_a2a_moe",
    bad=(
        "sglang=0.5.10 gpu=npu model=qwen3-30b-a3b -- --tp-size 8 --moe-a2a-backend ascend_fuseep",
        f"sglang=0.5.15 gpu=npu model=qwen3-30b-a3b {FUSED_MODE}=3 -- --tp-size 8 --moe-a2a-backend ascend_fuseep",
        f"sglang=0.5.15 gpu=npu model=qwen3-30b-a3b {FUSED_MODE}=2 -- --tp-size 8 --moe-a2a-backend ascend_fuseep",
        f"sglang=0.5.16 gpu=npu model=qwen3-30b-a3b {FUSED_MODE}=3 -- --tp-size 8 --moe-a2a-backend ascend_fuseep",
    ),
    good=(
        f"sglang=0.5.10 gpu=npu model=qwen3-30b-a3b {FUSED_MODE}=1 -- --tp-size 8 --moe-a2a-backend ascend_fuseep",
        "sglang=0.5.15 gpu=npu model=qwen3-30b-a3b -- --tp-size 8 --moe-a2a-backend ascend_fuseep",
        f"sglang=0.5.16 gpu=npu model=qwen3-30b-a3b {FUSED_MODE}=3 -- --tp-size 8 --moe-a2a-backend ascend_fuseep --fuseep-mode 1",
    ),
)  # fmt: skip
def ascend_exchange_without_its_mode(c: Config) -> Refusal | None:
    """Ascend's fused exchange has two modes, which a variable chooses in these releases.

    `SGLANG_NPU_FUSED_MOE_MODE` is 1, or 2 for ModelSlim checkpoints. 0.5.10 has no default; from 0.5.11 on it is 1. From 0.5.16 on
    `--fuseep-mode` chooses, and the variable is only read where the flag is not given.
    """
    if c.since("0.5.16"):
        if c.given("fuseep_mode") or not c.env.is_set(FUSED_MODE):
            return None
    elif c.moe_a2a_backend != "ascend_fuseep":
        return None
    if c.before("0.5.11") and not c.env.is_set(FUSED_MODE):
        return Refusal(
            at="moe_a2a_backend",
            message=f"{c.shown('moe_a2a_backend')} needs `{FUSED_MODE}` in SGLang {c.release}, which is not set. Set it to 1.",
            fixes=(setting_env(**{FUSED_MODE: "1"}), setting(moe_a2a_backend="deepep")),
        )
    mode = c.env.text(FUSED_MODE) if c.before("0.5.11") else int(c.env.number(FUSED_MODE, 1))
    first = (setting_env(**{FUSED_MODE: "1"}),) if c.env.is_set(FUSED_MODE) else ()
    if str(mode) not in ("1", "2"):
        return Refusal(
            at=FUSED_MODE,
            related_fields=("moe_a2a_backend",),
            message=f"`{FUSED_MODE}` is {mode}, and Ascend's fused exchange has only the modes 1 and 2. Set it to 1.",
            fixes=first,
        )
    if str(mode) == "2" and c.before("0.5.16") and c.quantization != "modelslim":
        return Refusal(
            at=FUSED_MODE,
            related_fields=("moe_a2a_backend", "quantization"),
            message=f"`{FUSED_MODE}` is 2, which needs a ModelSlim checkpoint served with `--quantization modelslim`. Set it to 1.",
            fixes=first,
        )
    return None


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
            related_fields=("moe_a2a_backend",),
            message=f"{c.shown('flashinfer_a2a_dispatch_type')} needs `--moe-a2a-backend flashinfer`, and the backend "
            f"is `{c.moe_a2a_backend}`. Remove it.",
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
    """FlashInfer's fused MoE kernel supports few models and quantizations.

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
        related_fields=("quantization", "model_path"),
        message=f"{c.shown('moe_a2a_backend')} cannot be used: {why}. Use another all-to-all backend.",
        fixes=(setting(moe_a2a_backend="deepep"), dropping("moe_a2a_backend")),
    )


def _megamoe_quantization(c: Config) -> bool:
    if c.quantization in ("mxfp8", "modelopt_fp4"):
        return True
    if c.quantization == "nvfp4_online" and c.since("0.5.23") and megamoe_w4a16(c):
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
        why, other = "the kernel supports bf16, mxfp8 and nvfp4", ""
    elif c.env.flag("SGLANG_FLASHINFER_MEGAMOE_IN_KERNEL_FC2_REDUCE"):
        why, other = "the reduction inside the kernel needs bf16", "SGLANG_FLASHINFER_MEGAMOE_IN_KERNEL_FC2_REDUCE"
    else:
        return None
    return Refusal(
        at=variable,
        related_fields=("moe_a2a_backend", other) if other else ("moe_a2a_backend",),
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
    if not megamoe_w4a16(c) or model_dtype(c) == "bfloat16":
        return None
    return Refusal(
        at="dtype",
        related_fields=("moe_a2a_backend", "SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16"),
        message=f"{c.shown('dtype')} does not fit {c.shown('moe_a2a_backend')} with FP4 weights and 16-bit "
        "activations, which needs bfloat16. Set `--dtype bfloat16`.",
        fixes=(setting(dtype="bfloat16"),),
    )


def _spans_attention_dp(c: Config) -> bool:
    """Whether each TP rank is an attention-DP group of its own."""
    return ranks.attention_dp(c) and ranks.attention_dp_size(c) == c.tp_size


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
        related_fields=("tp_size", ranks.attention_dp_field(c)),
        message=f"{c.shown('moe_a2a_backend')} needs attention data parallelism with one group for each of the "
        f"{c.tp_size} TP ranks, not {ranks.attention_dp_size(c)}. Add the groups or use another "
        "backend.",
        fixes=(_spanning_attention_dp(c), dropping("moe_a2a_backend")),
    )


def _muse_spark_sequence_parallel(c: Config) -> bool:
    if c.before("0.5.23") or not c.enable_layernorm_sp or ranks.attention_dp(c) or c.attn_dp_size != 1:
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
            related_fields=("moe_a2a_backend",),
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
    hardware_only=True,
    bad="gpu=h100 model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --quantization mxfp8 "
    "--moe-a2a-backend flashinfer_megamoe",
    good="model=qwen3-30b-a3b -- --tp-size 2",
)
def flashinfer_megamoe_off_blackwell(c: Config) -> Refusal | None:
    """FlashInfer's fused MoE exchange needs a data-center Blackwell GPU.

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
            related_fields=(other,),
            message=f"{c.shown('deepep_mode')} does not work with {c.shown(other)}, which accepts tokens from "
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
    if not ranks.loads_from_instance(c):
        since = DEEPEP_V2_ARCHITECTURES.get(c.model.architecture)
        if since is not None and (not since or c.since(since)):
            return None
    return Refusal(
        at="moe_a2a_backend",
        related_fields=("model_path",),
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
    """DeepEP v2 does not work with this setting.

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
        related_fields=("moe_a2a_backend",),
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
    """`ascend_tp` means no all-to-all backend."""
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
        related_fields=("moe_runner_backend", "SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16"),
        message=f"{label} sends tokens as NVFP4, but the CuteDSL runner keeps activations in 16 bit here. Send them "
        "as bf16.",
        fixes=(dropping_env(at) if at.isupper() else setting(flashinfer_a2a_dispatch_type="bf16"),),
    )


@handle_a2a_moe.adjusts("moe_runner_backend", since="0.5.20")
def take_routing_from_exchange(c: Config) -> None:
    """FlashInfer's exchange delivers the routing with the tokens, so the runner that accepts it is used."""
    if (
        c.moe_a2a_backend == "flashinfer"
        and c.flashinfer_a2a_dispatch_type is not None
        and c.moe_runner_backend == "flashinfer_trtllm"
    ):
        c.set(moe_runner_backend="flashinfer_trtllm_routed")


def _dispatch_type(c: Config) -> str:
    """The format in which tokens are sent, as SGLang chooses it for `auto`."""
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
        related_fields=(field,),
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
    """The MoE runner does not work with this all-to-all backend.

    FlashInfer's exchange feeds FlashInfer's runners and DeepGEMM, PPLX only DeepGEMM. With FlashInfer `auto` is not
    accepted: name the runner.
    """
    if c.moe_a2a_backend == "flashinfer":
        allowed = _flashinfer_exchange_runners(c)
    elif c.moe_a2a_backend == "pplx" and ranks.attention_dp_size(c) >= 2:
        allowed = ("deep_gemm", "auto")
    else:
        return None
    if c.moe_runner_backend in allowed:
        return None
    return Refusal(
        at="moe_runner_backend",
        related_fields=("moe_a2a_backend",),
        message=f"{c.shown('moe_runner_backend')} does not work with {c.shown('moe_a2a_backend')}: use "
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
        or ranks.loads_from_instance(c)
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
        related_fields=("moe_a2a_backend", "SGLANG_MORI_NUM_MAX_DISPATCH_TOKENS_PER_RANK"),
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
    if c.moe_a2a_backend == "pplx" and ranks.attention_dp_size(c) < 2:
        return Refusal(
            at="moe_a2a_backend",
            related_fields=("tp_size", ranks.attention_dp_field(c)),
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
    if c.moe_a2a_backend != "pplx" or ranks.attention_dp_size(c) < 2:
        return None
    if c.chunked_prefill_size <= 0 or c.disaggregation_mode == "decode":
        return None
    needed = max(c.chunked_prefill_size, c.cuda_graph_max_bs_decode or 0)
    capacity = c.env.number("SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK", 128)
    if needed <= capacity:
        return None
    return Refusal(
        at="chunked_prefill_size",
        related_fields=("moe_a2a_backend", "SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK"),
        message=f"A rank sends up to {needed} tokens at once, more than the {capacity} that "
        f"{c.shown('moe_a2a_backend')} has room for. Raise `SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK` or "
        "lower the chunk.",
        fixes=(
            setting_env(SGLANG_PPLX_NUM_MAX_DISPATCH_TOKENS_PER_RANK=str(needed)),
            setting(chunked_prefill_size=int(capacity) * ranks.attention_dp_size(c)),
        ),
    )


# --- token budgets, once speculative decoding is resolved -------------------------------------------------------------


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
        requests = min(requests, max(1, c.max_running_requests // ranks.attention_dp_size(c)))
    return requests * decode_tokens_per_request(c)


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
        related_fields=("speculative_algorithm", "moe_a2a_backend"),
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
        related_fields=("chunked_prefill_size", "SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK"),
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
        related_fields=("cuda_graph_max_bs_decode", "max_running_requests", variable),
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
            related_fields=("moe_a2a_backend",),
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

    The workspace follows the chunk size (at least 4096 tokens) unless
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
        related_fields=("chunked_prefill_size", "cuda_graph_max_bs_decode", "moe_a2a_backend"),
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
        related_fields=("moe_a2a_backend", "moe_runner_backend", variable),
        message=f"{c.shown('max_prefill_tokens')} exceeds the {capacity} tokens that FlashInfer's exchange has room "
        f"for. Raise `{variable}` or lower the limit.",
        fixes=(
            setting_env(SGLANG_FLASHINFER_NUM_MAX_DISPATCH_TOKENS_PER_RANK=str(-(-c.max_prefill_tokens // c.ep_size))),
            setting(max_prefill_tokens=int(capacity)),
        ),
    )


handle_moe_runner_backend_alias = mega_moe.handle_mega_moe
"""The steps of MegaMoE's handler in 0.5.18."""
