"""What experts in FP8 and FP4 refuse when their layers are built, or in the first forward pass; and widths of caches in small floats.

Follows Fp8MoEMethod (layers/quantization/fp8.py) with its runners, MegaMoE in models/qwen2_moe.py and qwen3_moe.py, and the buffers of
the MXFP8 and NVFP4 caches (0.5.23).

Left out: AMD; checkpoints that mix FP8 and NVFP4; what depends on the DeepGEMM that is installed.
"""

from __future__ import annotations

from spec_lsp.resolution.attention import backends_of
from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.late.methods import leaves_experts_out, method
from spec_lsp.resolution.late.refused import Barred, first_barred, value_refused
from spec_lsp.resolution.model.deepseek_v4 import has_fp4_experts

small_floats = Handler("layers/quantization/fp8.py:create_moe_runner", when=lambda c: bool(c.gpu.is_cuda))


def _fp8_experts(c: Config) -> bool:
    """Whether the experts run by Fp8MoEMethod with weights in FP8."""
    if not c.model.num_experts or method(c) != "fp8" or leaves_experts_out(c) or c.model.is_deepseek_v4:
        return False
    return not has_fp4_experts(c)


def _runs_on_triton(c: Config) -> bool:
    """`flashinfer_cutlass` and `flashinfer_cutedsl` are for NVFP4; later releases run FP8 experts on Triton then."""
    return c.moe_runner_backend in ("flashinfer_cutlass", "flashinfer_cutedsl")


@small_floats.refuses(
    "SPC1035", "fp8-experts-on-other-runner", raises="AttributeError", late=True,
    sglang="layers/quantization/fp8.py:create_moe_runner",
    bad=(
        "sglang=0.5.19 model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend flashinfer_cutlass",
        "model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend triton_kernel",
    ),
    good=("model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend triton", "model=qwen3-235b-fp8 -- --tp-size 4"),
)  # fmt: skip
def fp8_experts_on_other_runner(c: Config) -> Refusal | None:
    """This runner has no FP8 experts.

    `triton_kernel`, `flashinfer_mxfp4` and `marlin` are for other weights, `aiter` is for AMD; up to 0.5.19 `flashinfer_cutlass` and
    `flashinfer_cutedsl` have none either.
    SGLang starts, and stops in the first forward pass. Leave `--moe-runner-backend` out, or take `triton` or `cutlass`.
    """
    runner = c.moe_runner_backend
    other = runner in ("aiter", "triton_kernel", "flashinfer_mxfp4", "marlin") or (
        _runs_on_triton(c) and c.before("0.5.20")
    )
    if not other or c.moe_a2a_backend != "none" or not _fp8_experts(c):
        return None
    return value_refused(
        c,
        "moe_runner_backend",
        "has no FP8 experts, and SGLang stops in the first forward pass. Remove it.",
        "model_path",
        fixes=(dropping("moe_runner_backend"), setting(moe_runner_backend="triton")),
    )


PUBLISHED_IN_FP4 = ("deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Pro")
"""Models whose config.json does not say that their experts are FP4: SGLang looks into the weights."""


def _v4_in_fp4(c: Config) -> bool:
    if not c.model.is_deepseek_v4 or method(c) != "fp8":
        return False
    if c.model_path in PUBLISHED_IN_FP4 and not c.env.is_set("SGLANG_DSV4_FP4_EXPERTS"):
        return True
    return has_fp4_experts(c)


@small_floats.refuses(
    "SPC1036", "fp4-experts-on-fp8-kernels", raises="RuntimeError", late=True, since="0.5.12",
    sglang="layers/quantization/fp8.py:create_moe_runner",
    bad="gpu=b200 -- --model-path deepseek-ai/DeepSeek-V4-Flash --tp-size 4 --moe-runner-backend flashinfer_trtllm",
    good="gpu=b200 -- --model-path deepseek-ai/DeepSeek-V4-Flash --tp-size 4 --moe-runner-backend flashinfer_mxfp4",
)  # fmt: skip
def fp4_experts_on_fp8_kernels(c: Config) -> Refusal | None:
    """DeepSeek V4's experts are FP4, and this runner takes them for FP8.

    `flashinfer_trtllm` runs the experts of an FP8 checkpoint on kernels for FP8 weights, and FP4 weights have another shape.
    TensorRT-LLM's kernels for them are `--moe-runner-backend flashinfer_mxfp4`.
    """
    if c.moe_runner_backend not in ("flashinfer_trtllm", "flashinfer_trtllm_routed"):
        return None
    if c.moe_a2a_backend != "none" or not _v4_in_fp4(c):
        return None
    return value_refused(
        c,
        "moe_runner_backend",
        f"runs FP8 experts, and those of {c.model.architecture} are FP4: SGLang stops in the first forward pass. Remove it.",
        "model_path",
        fixes=(setting(moe_runner_backend="flashinfer_mxfp4"), dropping("moe_runner_backend")),
    )


@small_floats.refuses(
    "SPC1037", "fp8-experts-before-ada", raises="ValueError", late=True, hardware_only=True,
    sglang="layers/quantization/fp8.py:create_moe_runner",
    bad="gpu=a100 model=qwen3-235b-fp8 -- --tp-size 4",
    good=("gpu=h100 model=qwen3-235b-fp8 -- --tp-size 4", "gpu=a100 -- --quantization fp8"),
)  # fmt: skip
def fp8_experts_before_ada(c: Config) -> Refusal | None:
    """FP8 experts run on Triton's kernels, which need SM89 or newer.

    Dense FP8 layers run on an A100 by Marlin's weight-only kernels; experts have no such kernels, and Triton cannot compile FP8 there
    ("type fp8e4nv not supported in this architecture"). Serve a checkpoint in BF16, AWQ or GPTQ.
    """
    capability = c.gpu.capability
    if capability is None or capability >= (8, 9) or c.moe_a2a_backend != "none":
        return None
    on_triton = c.moe_runner_backend in ("auto", "triton") or (_runs_on_triton(c) and c.since("0.5.21"))
    if not on_triton or not _fp8_experts(c):
        return None
    typed = c.given("quantization") and not c.model.quantization_config
    return Refusal(
        at=c.first_given("quantization", "model_path"),
        related_fields=("model_path",) if c.given("quantization") else (),
        message=f"FP8 experts run on Triton's kernels, which need SM89 or newer, and {c.gpu.title} is SM{capability[0]}{capability[1]}: "
        "SGLang stops in the first forward pass.",
        fixes=(dropping("quantization"),) if typed else (),
    )


@small_floats.refuses(
    "SPC1030", "mega-moe-without-its-weights", raises="RuntimeError", late=True, since="0.5.21",
    sglang="models/qwen2_moe.py:_forward_mega_moe",
    bad="gpu=b200 model=qwen3-30b-a3b -- --tp-size 4 --moe-a2a-backend megamoe --chunked-prefill-size 1024 --max-prefill-tokens 1024",
    good="gpu=b200 model=qwen3-30b-a3b -- --tp-size 4 --moe-a2a-backend deepep --chunked-prefill-size 1024 --max-prefill-tokens 1024",
)  # fmt: skip
def mega_moe_without_its_weights(c: Config) -> Refusal | None:
    """MegaMoE runs experts in MXFP4 or NVFP4, on Hopper in block FP8.

    Qwen's MoE blocks stop in the first forward pass with others. Use another `--moe-a2a-backend`.
    """
    if c.moe_a2a_backend != "megamoe" or c.model.architecture not in ("Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM"):
        return None
    served = method(c)
    if served not in (None, "fp8") or (served == "fp8" and (not c.gpu.sm100 or has_fp4_experts(c))):
        return None
    return value_refused(
        c,
        "moe_a2a_backend",
        f"runs experts in MXFP4 or NVFP4 only on {c.gpu.title}, and this model's are {'FP8' if served else 'not quantized'}: SGLang stops "
        "in the first forward pass. Use another one.",
        "model_path",
        fixes=(setting(moe_a2a_backend="deepep"), dropping("moe_a2a_backend")),
    )


def _fp8_cache(_: Config) -> tuple[Change, ...]:
    return (setting(kv_cache_dtype="fp8_e4m3"), dropping("kv_cache_dtype"))


def _odd(width: int | None, block: int) -> bool:
    return width is not None and width % block != 0


WIDTHS = (
    Barred(
        "kv_cache_dtype",
        lambda c: c.kv_cache_dtype == "mxfp8" and not c.model.uses_mla and _odd(c.model.head_dim, 32),
        "the heads have to be a multiple of 32 wide",
        "0.5.18",
        _fp8_cache,
    ),
    Barred(
        "kv_cache_dtype",
        lambda c: (
            c.kv_cache_dtype == "nvfp4"
            and bool(c.gpu.sm100)
            and "trtllm_mha" in backends_of(c)
            and not c.model.uses_mla
            and _odd(c.model.head_dim, 64)
        ),
        "the heads have to be a multiple of 64 wide",
        "0.5.21",
        _fp8_cache,
    ),
)


@small_floats.refuses(
    "SPC1031", "head-width-of-small-float-cache", raises="ValueError", late=True, since="0.5.18",
    sglang="layers/quantization/fp4_kv_cache_quant_method.py:create_buffers",
    bad="""gpu=b200 -- --kv-cache-dtype mxfp8 --json-model-override-args '{"head_dim": 80}'""",
    good="""gpu=b200 -- --kv-cache-dtype mxfp8 --json-model-override-args '{"architectures": ["InklingForConditionalGeneration"]}'""",
)  # fmt: skip
def head_width_of_small_float_cache(c: Config) -> Refusal | None:
    """A cache in MXFP8 or NVFP4 has one scale for a block of values, and these heads are no whole number of blocks.

    Store the cache in `fp8_e4m3`.
    """
    return first_barred(c, WIDTHS, "for this model when the cache is allocated", "model_path")
