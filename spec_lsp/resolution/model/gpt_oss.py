"""GPT-OSS. Follows arg_groups/model_overrides/gpt_oss.py and its branch of handle_model_specific_adjustments.

Left out: NVIDIA's driver version, which decides between two MoE runners on Blackwell for weights that are not MXFP4.
"""

from __future__ import annotations

from spec_lsp.resolution.attention import backend_field, backends_of, has_amx
from spec_lsp.resolution.engine import Config, Earlier, Handler, Refusal, dropping, setting
from spec_lsp.resolution.model.common import all_backends_unset
from spec_lsp.resolution.model.config import quant_method

BACKENDS = {
    "triton": "", "trtllm_mha": "", "fa3": "", "fa4": "", "ascend": "0.5.8", "intel_amx": "0.5.13", "intel_xpu": "0.5.11",
    "aiter": "0.5.10",
}  # fmt: skip
"""The attention backends with sliding windows and sinks, with the release that added each (empty: 0.5.6 or before)."""

BRANCH = (Earlier("0.5.19", "server_args.py:_handle_model_specific_adjustments"),)
OVERRIDES = (Earlier("0.5.15", "server_args.py:_handle_model_specific_adjustments"),)


def allowed_backends(c: Config) -> tuple[str, ...]:
    """The attention backends that may serve GPT-OSS in this release."""
    return tuple(name for name, since in BACKENDS.items() if not since or c.since(since))


def has_triton_kernels(c: Config) -> bool:
    """Whether the `triton_kernels` package is installed; it does not come with SGLang."""
    return False


def _is_gpt_oss(c: Config) -> bool:
    return c.model.architecture == "GptOssForCausalLM"


_overrides = Handler("gpt_oss.py:_gpt_oss_overrides", when=_is_gpt_oss, earlier=OVERRIDES)


@_overrides.adjusts("attention_backend")
def choose_gpt_oss_backend(c: Config) -> None:
    """GPT-OSS needs a backend with sliding windows and attention sinks: trtllm_mha, fa3, aiter or triton by hardware."""
    if not all_backends_unset(c):
        return
    if c.gpu.sm100:
        backend = "trtllm_mha"
    elif c.gpu.sm90:
        backend = "fa3"
    elif c.gpu.platform == "cpu" and has_amx(c) and c.since("0.5.13"):
        backend = "intel_amx"
    elif c.gpu.platform == "xpu" and c.since("0.5.11"):
        backend = "intel_xpu"
    else:
        backend = "aiter" if c.gpu.is_hip and c.since("0.5.10") else "triton"
    c.set(attention_backend=backend)


@_overrides.refuses(
    "SPC832", "gpt-oss-float16-on-xpu", raises="NotImplementedError", since="0.5.11", hardware_only=True,
    bad="gpu=xpu model=gpt-oss-120b -- --dtype float16", good="gpu=h100 model=gpt-oss-120b -- --dtype float16",
)  # fmt: skip
def gpt_oss_float16_on_xpu(c: Config) -> Refusal | None:
    """On Intel GPUs GPT-OSS computes in bfloat16 only.

    Leave `--dtype` out there.
    """
    if c.gpu.platform != "xpu" or c.dtype in ("auto", "bfloat16"):
        return None
    return Refusal(
        at="dtype",
        message=f"{c.shown('dtype')} is refused for GPT-OSS on {c.gpu.title}: it computes in bfloat16 there.",
        fixes=(dropping("dtype"), setting(dtype="bfloat16")),
    )


@_overrides.adjusts("dtype")
def compute_in_bfloat16(c: Config) -> None:
    """The MXFP4 kernels of GPT-OSS compute in bfloat16."""
    if quant_method(c) == "mxfp4":
        c.set(dtype="bfloat16")


@_overrides.adjusts("moe_runner_backend")
def choose_gpt_oss_moe_runner(c: Config) -> None:
    """Blackwell runs GPT-OSS's MXFP4 experts on FlashInfer's kernels."""
    if c.moe_runner_backend != "auto":
        return
    mxfp4 = quant_method(c) == "mxfp4"
    aiter = c.gpu.is_hip and c.since("0.5.9") and c.env.flag("SGLANG_USE_AITER")
    if c.before("0.5.9") and c.enable_piecewise_cuda_graph:
        return
    if mxfp4 and (c.gpu.sm100 or c.gpu.sm120):
        c.set(moe_runner_backend="flashinfer_mxfp4" if c.gpu.sm100 else _sm120_runner(c))
    elif aiter:
        c.set(moe_runner_backend="auto" if mxfp4 else "triton")
    elif has_triton_kernels(c) and c.ep_size == 1 and (c.quantization is None or c.before("0.5.9")):
        c.set(moe_runner_backend="triton_kernel")


def _sm120_runner(c: Config) -> str:
    if c.since("0.5.17") or c.before("0.5.10"):
        return "flashinfer_mxfp4"
    return "marlin" if c.since("0.5.14") else "triton_kernel"


_branch = Handler("model_hook.py:handle_model_specific_adjustments", when=_is_gpt_oss, earlier=BRANCH)


@_branch.refuses(
    "SPC833", "gpt-oss-on-sinkless-backend", raises="AssertionError",
    bad=("model=gpt-oss-120b -- --attention-backend flashinfer", "model=gpt-oss-120b -- --decode-attention-backend flashinfer"),
    good="model=gpt-oss-120b -- --attention-backend triton",
)  # fmt: skip
def gpt_oss_on_sinkless_backend(c: Config) -> Refusal | None:
    """GPT-OSS needs an attention backend with sliding windows and attention sinks.

    Half of its layers see a window of 128 tokens, and all of them have learned sinks. `triton`, `fa3` (Hopper), `trtllm_mha` and
    `fa4` (Blackwell), `aiter` (AMD), `ascend`, `intel_amx` and `intel_xpu` have both; `flashinfer` does not. When only one of
    `--prefill-attention-backend` and `--decode-attention-backend` is given, the other phase falls to the general default, which may
    be flashinfer: name both, or neither.
    """
    prefill, decode = backends_of(c)
    allowed = allowed_backends(c)
    wrong = "prefill" if prefill not in allowed else "decode" if decode not in allowed else None
    if wrong is None:
        return None
    backend = prefill if wrong == "prefill" else decode
    field = backend_field(c, wrong)
    given = tuple(
        n for n in ("attention_backend", "prefill_attention_backend", "decode_attention_backend") if c.given(n)
    )
    at = field if c.given(field) else given[0] if given else "model_path"
    what = c.shown(field) if c.given(field) else f"The {wrong} backend {backend or 'that SGLang would choose later'}"
    return Refusal(
        at=at,
        related_fields=(*(n for n in given if n != at), "model_path"),
        message=f"{what} is refused for GPT-OSS: it needs sliding windows and attention sinks, which only "
        f"{', '.join(allowed)} have.",
        fixes=(
            dropping(*given),
            setting(**{field: "fa3"}),
            setting(**{field: "triton"}),
            setting(attention_backend="triton"),
        ),
    )


@_branch.adjusts("disable_hybrid_swa_memory", until="0.5.10")
def one_pool_for_gpt_oss(c: Config) -> None:
    """In this release GPT-OSS's sliding-window layers share the KV pool of the others."""
    if c.before("0.5.8"):
        shared = True
    else:
        shared = "trtllm_mha" in backends_of(c) or (c.before("0.5.9") and c.speculative_algorithm is not None)
    if shared:
        c.set(disable_hybrid_swa_memory=True)


@_branch.adjusts("enable_flashinfer_allreduce_fusion", until="0.5.7")
def fuse_gpt_oss_allreduce(c: Config) -> None:
    """On Blackwell GPT-OSS's all-reduce is fused with the layer norm that follows."""
    if (c.gpu.sm100 or c.gpu.sm120) and not c.enable_dp_attention and c.nnodes == 1:
        c.set(enable_flashinfer_allreduce_fusion=True)


@_branch.refuses(
    "SPC834", "triton-kernel-experts-in-parallel", raises="AssertionError",
    bad="model=gpt-oss-120b -- --moe-runner-backend triton_kernel --tp-size 2 --ep-size 2",
    good="model=gpt-oss-120b -- --moe-runner-backend triton_kernel --tp-size 2",
)  # fmt: skip
def triton_kernel_experts_in_parallel(c: Config) -> Refusal | None:
    """The triton_kernel MoE runner does not support expert parallelism.

    With `--ep-size` above 1 use another `--moe-runner-backend`.
    """
    if c.moe_runner_backend != "triton_kernel" or c.ep_size == 1:
        return None
    return Refusal(
        at=c.first_given("moe_runner_backend", "ep_size"),
        related_fields=("ep_size",),
        message=f"{c.shown('moe_runner_backend')} is refused with {c.shown('ep_size')}: it runs all experts on every GPU.",
        fixes=(setting(ep_size=1), dropping("moe_runner_backend")),
    )


overrides = (_overrides,)
branch = (_branch,)
