"""MoE runners that do not know the experts they are to run, refused when the MoE layers are built.

Follows create_moe_runner and the constructors of the MoE methods in layers/quantization/, layers/moe/fused_moe_triton/layer.py
(_validate_deepep_v2_quant_method), layers/moe/mega_moe.py (check_mega_moe_shapes) and MoeRunner (layers/moe/moe_runner/runner.py).

Left out: AMD's runners, whose choice hangs on what AITER was built with; layers that a checkpoint mixes.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.resolution import cuda_graph
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.late.methods import leaves_experts_out, method
from spec_lsp.resolution.late.refused import Barred, first_barred, value_refused
from spec_lsp.resolution.late.weights import expert_width, moe_tp_size
from spec_lsp.resolution.model.config import model_dtype
from spec_lsp.resolution.model.deepseek_v4 import has_fp4_experts

expert_runners = Handler(
    "layers/quantization/awq/schemes/awq_moe.py:create_moe_runner",
    when=lambda c: bool(c.gpu.is_cuda) and (c.moe_runner_backend != "auto" or c.moe_a2a_backend != "none"),
)

ON_MARLIN = (32, 64, 128)
"""The group sizes that Marlin's MoE kernels take (marlin_utils.py, check_moe_marlin_supports_layer)."""


def on_marlin(c: Config) -> bool:
    """Whether four-bit experts have a shape that Marlin's MoE kernels accept; others run on kernels that need no runner."""
    config = c.model.quantization_config or {}
    group, width = config.get("group_size", config.get("q_group_size")), expert_width(c)
    if group not in ON_MARLIN or width is None:
        return False
    return c.model.hidden_size % 128 == 0 and width // moe_tp_size(c) % max(64, group) == 0


@expert_runners.refuses(
    "SPC680", "runner-for-four-bit-experts", raises="AssertionError", late=True, since="0.5.6.post2",
    earlier=(Earlier("0.5.11", "layers/quantization/awq.py:create_moe_runner"),),
    bad="model=qwen3-30b-a3b -- --tp-size 2 --moe-runner-backend triton --json-model-override-args "
    """'{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true}}'""",
    good="model=qwen3-30b-a3b -- --tp-size 2 --json-model-override-args "
    """'{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true}}'""",
)  # fmt: skip
def runner_for_four_bit_experts(c: Config) -> Refusal | None:
    """AWQ's experts (before 0.5.13 GPTQ's too) run on Marlin's kernels, and cannot be combined with a runner that was named.

    `--moe-runner-backend` has to be removed for such a checkpoint, even where it says `marlin`.
    """
    if not c.given("moe_runner_backend") or c.moe_runner_backend == "auto" or not c.model.num_experts:
        return None
    name = method(c)
    marlin = name == "awq_marlin" and on_marlin(c)
    if not (marlin or (name == "gptq_marlin" and c.before("0.5.13"))) or leaves_experts_out(c):
        return None
    return value_refused(
        c,
        "moe_runner_backend",
        f"is refused for experts of {'four bits' if marlin else 'GPTQ'} ({name}), and SGLang stops when it builds the MoE layers. "
        "Remove it.",
        "model_path",
    )


OF_THEIR_OWN: Mapping[str, tuple[str, ...]] = {"humming": ("humming",)}
"""Methods whose experts run on a runner of theirs only."""


@expert_runners.refuses(
    "SPC681", "runner-of-another-method", raises="ValueError", late=True, since="0.5.16",
    sglang="layers/quantization/humming.py:create_moe_runner",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --quantization humming --moe-runner-backend triton",
    good="model=qwen3-30b-a3b -- --tp-size 2 --quantization humming",
)  # fmt: skip
def runner_of_another_method(c: Config) -> Refusal | None:
    """Experts of this quantization method run on a runner of its own.

    Humming's kernels unpack its weights; `--moe-runner-backend` can be left out.
    """
    name = method(c) or ""
    own = OF_THEIR_OWN.get(name)
    if own is None or not c.model.num_experts or c.moe_runner_backend in ("auto", *own):
        return None
    return value_refused(
        c,
        "moe_runner_backend",
        f"cannot run experts quantized by {name}, and SGLang stops when it builds the MoE layers. Remove it.",
        "quantization",
    )


DEQUANT = "SGLANG_DSV4_FP4_DEQUANT"
FP4_EXPERTS = """--json-model-override-args '{"fp4_experts": true}'"""


@expert_runners.refuses(
    "SPC682", "runner-with-dequantized-experts", raises="AssertionError", late=True, since="0.5.15",
    sglang="layers/quantization/fp8.py:get_quant_method",
bad=f"gpu=h200 model=v4 {DEQUANT}=1 -- --tp-size 8 --moe-runner-backend marlin {FP4_EXPERTS}",
    good=f"gpu=h200 model=v4 -- --tp-size 8 --moe-runner-backend marlin {FP4_EXPERTS}",
)  # fmt: skip
def runner_with_dequantized_experts(c: Config) -> Refusal | None:
    """FP4 experts that are turned into FP8 cannot be combined with a runner that was named.

    `SGLANG_DSV4_FP4_DEQUANT=1` makes DeepSeek V4's FP4 experts FP8 while they load; SGLang then picks the runner.
    """
    if not c.env.is_set(DEQUANT) or not c.env.flag(DEQUANT) or not c.model.is_deepseek_v4:
        return None
    if c.moe_runner_backend == "auto" or not c.given("moe_runner_backend") or not has_fp4_experts(c):
        return None
    return value_refused(
        c,
        "moe_runner_backend",
        f"is refused with `{DEQUANT}`, and SGLang stops when it builds the MoE layers. Remove one of them.",
        DEQUANT,
        fixes=(dropping("moe_runner_backend"), dropping_env(DEQUANT)),
    )


@expert_runners.refuses(
    "SPC683", "adapters-on-mega-moe-runner", raises="NotImplementedError", late=True, since="0.5.20",
    sglang="layers/moe/moe_runner/runner.py:__init__",
)  # fmt: skip
def adapters_on_mega_moe_runner(c: Config) -> Refusal | None:
    """FlashInfer's MegaMoE computes dispatch and experts in one function, with no place for adapters.

    Use another runner for a launch with `--enable-lora`.
    """
    if c.moe_runner_backend != "flashinfer_megamoe" or not c.enable_lora or not c.model.num_experts:
        return None
    return value_refused(
        c,
        "moe_runner_backend",
        f"has no place for adapters ({c.shown('enable_lora')}), and SGLang stops when it builds the MoE layers.",
        "enable_lora",
        fixes=(dropping("moe_runner_backend", "moe_a2a_backend"), dropping("enable_lora")),
    )


def _unfit_for_deepep_v2(c: Config) -> str | None:
    """Why DeepEP v2 cannot feed these experts; None if it can or that is unknown."""
    name, config = method(c), c.model.quantization_config or {}
    if name is None:
        return "they are not quantized" if c.before("0.5.21") else None
    if name == "mxfp8":
        return "they are MXFP8" if c.before("0.5.21") else None
    if name != "fp8":
        return f"they are quantized by {name}"
    if has_fp4_experts(c):
        return "they are FP4"
    if list(config.get("weight_block_size") or ()) != [128, 128]:
        return "their FP8 has no scale for each 128 by 128 block"
    if config.get("activation_scheme", "dynamic") != "dynamic":
        return "their activations have fixed scales"
    return None


@expert_runners.refuses(
    "SPC684", "experts-unfit-for-deepep-v2", raises="ValueError", late=True, since="0.5.19",
    sglang="layers/moe/fused_moe_triton/layer.py:_validate_deepep_v2_quant_method",
    bad=(
        "model=qwen3-30b-a3b -- --tp-size 2 --quantization w8a8_fp8 --moe-a2a-backend deepep_v2 --chunked-prefill-size 256 "
        "--max-prefill-tokens 256 --cuda-graph-max-bs-decode 64",
    ),
    good="model=qwen3-235b-fp8 -- --tp-size 4 --moe-a2a-backend deepep_v2 --chunked-prefill-size 256 --max-prefill-tokens 256 "
    "--cuda-graph-max-bs-decode 64",
)  # fmt: skip
def experts_unfit_for_deepep_v2(c: Config) -> Refusal | None:
    """DeepEP v2 feeds blockwise FP8 experts through DeepGEMM, from 0.5.21 also MXFP8 and unquantized ones.

    Use `--moe-a2a-backend deepep`, or another checkpoint.
    """
    if c.moe_a2a_backend != "deepep_v2" or not c.model.num_experts or leaves_experts_out(c):
        return None
    why = _unfit_for_deepep_v2(c)
    if why is None:
        return None
    return value_refused(
        c,
        "moe_a2a_backend",
        f"cannot feed this model's experts, because {why}, and SGLang stops when it builds the MoE layers.",
        "model_path",
        fixes=(setting(moe_a2a_backend="deepep"), dropping("moe_a2a_backend")),
    )


@expert_runners.refuses(
    "SPC685", "experts-unfit-for-mega-moe", raises="ValueError", late=True, since="0.5.21",
    sglang="layers/moe/mega_moe.py:check_mega_moe_shapes",
    bad="gpu=b200 model=v4 -- --tp-size 4 --ep-size 4 --moe-a2a-backend megamoe --json-model-override-args "
    """'{"fp4_experts": true, "moe_intermediate_size": 2000}'""",
    good="gpu=b200 model=v4 -- --tp-size 4 --ep-size 4 --moe-a2a-backend megamoe --chunked-prefill-size 4096 "
    f"--max-prefill-tokens 4096 {FP4_EXPERTS}",
)  # fmt: skip
def experts_unfit_for_mega_moe(c: Config) -> Refusal | None:
    """DeepGEMM's MegaMoE supports experts of certain widths only.

    The model's width has to be a multiple of 256 (of 512, but for NVFP4), that of an expert of 128 at least. Use another
    `--moe-a2a-backend` for others.
    """
    if c.moe_a2a_backend != "megamoe":
        return None
    width = expert_width(c)
    if width is None or (c.model.hidden_size % 256 == 0 and width % 128 == 0):
        return None
    return value_refused(
        c,
        "moe_a2a_backend",
        f"cannot run this model's experts ({c.model.hidden_size} by {width}), whose widths are no multiples of 256 and 128, and SGLang "
        "stops with the weights loaded.",
        "model_path",
        fixes=(dropping("moe_a2a_backend"), setting(moe_a2a_backend="none")),
    )


@expert_runners.refuses(
    "SPC1015", "marlin-for-fp4-experts-off-its-hardware", raises="RuntimeError", late=True, hardware_only=True, since="0.5.15",
    sglang="layers/quantization/mxfp4.py:process_weights_after_loading",
    bad="gpu=a100 model=gpt-oss-120b -- --tp-size 2 --moe-runner-backend marlin",
    good="gpu=h100 model=gpt-oss-120b -- --tp-size 2 --moe-runner-backend marlin",
)  # fmt: skip
def marlin_for_fp4_experts_off_its_hardware(c: Config) -> Refusal | None:
    """Marlin's kernels for FP4 experts need Hopper or newer; for DeepSeek V4's, Hopper or SM120.

    Leave `--moe-runner-backend` out.
    """
    if c.moe_runner_backend != "marlin" or c.moe_a2a_backend == "megamoe" or leaves_experts_out(c):
        return None
    if c.model.is_deepseek_v4 and has_fp4_experts(c):
        fits = c.gpu.sm90 or c.gpu.sm120
    elif method(c) == "mxfp4" and c.model.num_experts:
        fits = c.gpu.major >= 9
    else:
        return None
    if fits:
        return None
    return value_refused(
        c,
        "moe_runner_backend",
        f"has no kernels for FP4 experts on {c.gpu.title}, and SGLang stops with the weights loaded. Remove it.",
        "model_path",
    )


amd_experts = Handler(
    "layers/quantization/unquant.py:create_moe_runner", since="0.5.14",
    when=lambda c: bool(c.gpu.is_hip) and bool(c.model.num_experts),
)  # fmt: skip
AITER = "SGLANG_USE_AITER"
FED_BY = ("none", "deepep", "mooncake", "nixl", "mori")
"""All-to-all backends whose tokens AITER's runner takes (MoeA2ABackend.supports_aiter)."""


def _odd_for_aiter(c: Config) -> bool:
    width = expert_width(c)
    return width is not None and width // moe_tp_size(c) % 128 != 0


def _stored_by_quark(c: Config, *types: str) -> bool:
    """Whether Quark stored the weights and activations of all layers in these types."""
    config = (c.model.quantization_config or {}).get("global_quant_config") or {}
    parts = [config.get(name) for name in ("weight", "input_tensors")]
    return method(c) == "quark" and [part.get("dtype") for part in parts if isinstance(part, Mapping)] == [*types]


def _without_aiter(c: Config) -> bool:
    """Whether AITER's runner is not chosen for weights of four bits and activations of eight."""
    off = c.env.is_set(AITER) and not c.env.flag(AITER)
    return c.moe_runner_backend != "aiter" and (off or c.moe_a2a_backend not in FED_BY)


SCALED = ("GptOssForCausalLM", "MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration")
"""Classes whose SwiGLU has factors and bounds (gemm1_alpha)."""

ON_AMD = (
    Barred(
        "moe_runner_backend",
        lambda c: (
            c.moe_runner_backend == "aiter"
            and method(c) is None
            and c.env.flag(AITER)
            and c.moe_a2a_backend in FED_BY
            and (_odd_for_aiter(c) or bool(c.gpu.gfx95 and c.model.architecture in SCALED))
        ),
        "its kernels need shares of experts that are multiples of 128 wide, and on MI350X and MI355X a plain SwiGLU",
        "",
        lambda _: (setting(moe_runner_backend="triton"), dropping("moe_runner_backend")),
    ),
    Barred(
        "moe_runner_backend",
        lambda c: _stored_by_quark(c, "fp4", "fp4") and c.moe_runner_backend not in ("auto", "aiter"),
        "experts that Quark stored in MXFP4 run on AITER",
        "0.5.21",
    ),
    Barred(
        "moe_a2a_backend",
        lambda c: (
            _stored_by_quark(c, "fp4", "fp4") and c.moe_runner_backend == "auto" and c.moe_a2a_backend not in FED_BY
        ),
        "AITER's runner, which experts in MXFP4 need, takes no tokens from it",
        "0.5.21",
    ),
    Barred(
        "moe_runner_backend",
        lambda c: _stored_by_quark(c, "fp4", "fp8_e4m3") and _without_aiter(c),
        "experts that Quark stored in MXFP4 with FP8 activations run on AITER",
        "0.5.15",
        lambda _: (setting(moe_runner_backend="aiter"), dropping_env(AITER), dropping("moe_a2a_backend")),
    ),
)


@amd_experts.refuses(
    "SPC1048", "experts-unfit-for-aiter", raises="ValueError", late=True,
    bad=(
        f"gpu=mi300x model=qwen3-30b-a3b {AITER}=1 -- --tp-size 4 --moe-runner-backend aiter",
        "gpu=mi355x model=qwen3-30b-a3b -- --moe-runner-backend triton --json-model-override-args "
        """'{"quantization_config": {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}, """
        """"input_tensors": {"dtype": "fp4"}}}}'""",
    ),
    good=f"gpu=mi300x model=qwen3-30b-a3b {AITER}=1 -- --tp-size 2 --moe-runner-backend aiter",
)  # fmt: skip
def experts_unfit_for_aiter(c: Config) -> Refusal | None:
    """AITER's MoE kernels do not fit these experts, or are the only ones that do.

    Experts that are not quantized need shares of a multiple of 128 under `--moe-runner-backend aiter`; experts that Quark stored in MXFP4
    have no other runner.
    """
    return first_barred(c, ON_AMD, "when the MoE layers are built", "tp_size", "model_path")


expert_stores = Handler(
    "layers/moe/paged_experts/method.py:check_paged_experts_compat", since="0.5.18",
    when=lambda c: bool(c.gpu.is_cuda) and (bool(c.enable_paged_experts) or (c.dwdp_size or 1) > 1),
)  # fmt: skip


def _on_one_gpu(field: str) -> Barred:
    def several(c: Config) -> bool:
        return (getattr(c, field) or 1) > 1

    def alone(_: Config) -> tuple[Change, ...]:
        return (setting(**{field: 1}), dropping("enable_paged_experts"))

    return Barred(field, several, "experts are paged on a single GPU", "", alone)


PAGED = (
    *map(_on_one_gpu, ("tp_size", "ep_size", "pp_size", "dp_size")),
    Barred("enable_eplb", lambda c: bool(c.enable_eplb), "paged experts are not balanced"),
    Barred(
        "speculative_algorithm", lambda c: c.speculative_algorithm is not None, "paged experts do not verify drafts"
    ),
    Barred(
        "cuda_graph_backend_prefill",
        lambda c: cuda_graph.backend_of(c, "prefill") == "full",
        "a prefill pages experts between its kernels",
    ),
    Barred(
        "cuda_graph_backend_decode",
        lambda c: cuda_graph.backend_of(c, "decode") == "breakable",
        "a decode step runs whole",
    ),
    Barred("load_format", lambda c: c.load_format == "dummy", "there have to be weights to page"),
    Barred(
        "paged_experts_num_resident",
        lambda c: c.paged_experts_num_resident is None,
        "it says how many experts stay on the GPU",
        "",
        lambda _: (dropping("enable_paged_experts"),),
    ),
    Barred(
        "paged_experts_num_resident",
        lambda c: c.paged_experts_num_resident < c.model.text_hf("num_experts_per_tok"),
        "a token needs more experts at once",
        "",
        lambda c: (setting(paged_experts_num_resident=c.model.text_hf("num_experts_per_tok")),),
    ),
    Barred(
        "moe_runner_backend",
        lambda c: (
            method(c) is None
            and c.moe_runner_backend in ("triton_kernel", "deep_gemm", "flashinfer_cutlass", "flashinfer_trtllm")
        ),
        "experts are paged for triton and marlin",
    ),
    Barred(
        "enable_fused_moe_sum_all_reduce",
        lambda c: bool(c.enable_fused_moe_sum_all_reduce),
        "paged experts add up their outputs themselves",
    ),
)


@expert_stores.refuses(
    "SPC1016", "paged-experts-conflict", raises="RuntimeError", late=True, since="0.5.23",
    bad=(
        "model=qwen3-30b-a3b -- --tp-size 2 --enable-paged-experts --paged-experts-num-resident 32",
        "model=qwen3-30b-a3b -- --enable-paged-experts --paged-experts-num-resident 4",
    ),
    good="model=qwen3-30b-a3b -- --enable-paged-experts --paged-experts-num-resident 32",
)  # fmt: skip
def paged_experts_conflict(c: Config) -> Refusal | None:
    """Experts are paged in on a single GPU, without drafts and without balancing.

    `--enable-paged-experts` keeps `--paged-experts-num-resident` experts on the GPU, at least as many as a token needs, and the others in
    host memory.
    """
    if not c.enable_paged_experts or not c.model.num_experts:
        return None
    return first_barred(
        c, PAGED, f"with {c.shown('enable_paged_experts')} when the MoE layers are built", "enable_paged_experts"
    )


def _needs_fp8(c: Config) -> bool:
    return c.moe_a2a_backend == "deepep_v2" and method(c) == "fp8"


EXCHANGED = (
    Barred(
        "dtype",
        lambda c: c.moe_a2a_backend == "deepep_v2" and model_dtype(c) != "bfloat16",
        "DeepEP v2 exchanges tokens in bfloat16",
        "0.5.19",
        lambda _: (setting(dtype="bfloat16"), dropping("dtype")),
    ),
    Barred(
        "deepep_dispatcher_output_dtype",
        lambda c: (
            c.moe_a2a_backend == "deepep_v2"
            and c.deepep_dispatcher_output_dtype not in ("auto", "fp8" if _needs_fp8(c) else "bf16")
            and method(c) in (None, "fp8")
        ),
        "DeepEP v2 hands these experts another type",
        "0.5.21",
    ),
    Barred(
        "deepep_dispatcher_output_dtype",
        lambda c: (
            c.moe_a2a_backend == "deepep"
            and method(c) == "humming"
            and c.deepep_dispatcher_output_dtype not in ("auto", "bf16", "fp8")
        ),
        "Humming's experts take bfloat16 or FP8",
        "0.5.19",
    ),
)


@expert_runners.refuses(
    "SPC1017", "type-of-exchanged-tokens", raises="ValueError", late=True, since="0.5.19",
    sglang="layers/moe/utils.py:get_deepep_v2_dispatcher_output_dtype",
    earlier=(Earlier("0.5.21", "layers/moe/token_dispatcher/deepep_v2.py:__init__"),),
    bad="model=qwen3-235b-fp8 -- --tp-size 4 --moe-a2a-backend deepep_v2 --chunked-prefill-size 256 --max-prefill-tokens 256 "
    "--cuda-graph-max-bs-decode 64 --dtype float16",
    good="model=qwen3-235b-fp8 -- --tp-size 4 --moe-a2a-backend deepep_v2 --chunked-prefill-size 256 --max-prefill-tokens 256 "
    "--cuda-graph-max-bs-decode 64",
)  # fmt: skip
def type_of_exchanged_tokens(c: Config) -> Refusal | None:
    """The exchange hands these experts tokens of another type.

    DeepEP v2 exchanges bfloat16 models only, in FP8 for FP8 experts and in bfloat16 for others; leave
    `--deepep-dispatcher-output-dtype` out. Humming's experts take bfloat16 or FP8.
    """
    if not c.model.num_experts:
        return None
    return first_barred(c, EXCHANGED, "when the MoE layers are built", "moe_a2a_backend")


# --- routing -------------------------------------------------------------------------------------------------------------

RENORMALIZED = ("Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM")
BIASED = ("DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM")
"""Classes that hand their way of routing to TensorRT-LLM's kernels: by a softmax of the chosen, or by groups with a bias."""


def _routes_itself(c: Config) -> bool:
    """Whether the runner chooses the experts from the router's logits (TopK.bind_runner_backend)."""
    name, runner = method(c), c.moe_runner_backend
    if runner == "triton_kernel":
        return name in (None, "mxfp4")
    if runner == "flashinfer_mxfp4":
        return name == "mxfp4"
    return bool(
        runner == "flashinfer_trtllm"
        and name is None
        and c.model.architecture == "Qwen3MoeForCausalLM"
        and _renormalizes(c)
    )


def _renormalizes(c: Config) -> bool:
    return c.model.text_hf("norm_topk_prob") is True


def _moves_experts(c: Config) -> str | None:
    """The field that lets experts change places; None if they stay where the checkpoint has them."""
    fields = ("enable_eplb", "init_expert_location", "ep_num_redundant_experts")
    moved = (bool(c.enable_eplb), c.init_expert_location != "trivial", (c.ep_num_redundant_experts or 0) > 0)
    return next((field for field, is_so in zip(fields, moved, strict=True) if is_so), None)


@expert_runners.refuses(
    "SPC1046", "experts-moved-under-own-routing", raises="NotImplementedError", late=True, since="0.5.23",
    sglang="layers/moe/topk.py:forward_cuda",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --ep-size 2 --enable-eplb --moe-runner-backend triton_kernel",
    good="model=qwen3-30b-a3b -- --tp-size 2 --ep-size 2 --enable-eplb --moe-runner-backend triton",
)  # fmt: skip
def experts_moved_under_own_routing(c: Config) -> Refusal | None:
    """This runner chooses the experts itself, and does not know that they have moved.

    `--enable-eplb`, `--init-expert-location` and redundant experts put experts in other places than the checkpoint; `triton_kernel`,
    `flashinfer_mxfp4` and `flashinfer_trtllm` route by the router's logits. Take `triton`, or leave experts where they are.
    """
    field = (
        _moves_experts(c)
        if c.model.num_experts and c.ep_dispatch_algorithm is not None and c.moe_a2a_backend == "none"
        else None
    )
    if field is None or not _routes_itself(c):
        return None
    return value_refused(
        c,
        "moe_runner_backend",
        f"routes by the places that experts have in the checkpoint, which {c.shown(field)} changes, so SGLang stops in its first forward "
        "pass.",
        field,
        "model_path",
        fixes=(setting(moe_runner_backend="triton"), dropping(field)),
    )


@expert_runners.refuses(
    "SPC1047", "routing-of-per-tensor-fp8-runner", raises="NotImplementedError", late=True, since="0.5.23",
    sglang="layers/moe/topk.py:_can_bypass_trtllm_routing",
    bad="gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --moe-runner-backend flashinfer_trtllm --json-model-override-args "
    """'{"architectures": ["Qwen2MoeForCausalLM"], "norm_topk_prob": false, "quantization_config": {"quant_method": "modelopt", """
    """"quant_algo": "FP8"}}'""",
    good="gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --moe-runner-backend flashinfer_trtllm --json-model-override-args "
    """'{"architectures": ["Qwen2MoeForCausalLM"], "norm_topk_prob": true, "quantization_config": {"quant_method": "modelopt", """
    """"quant_algo": "FP8"}}'""",
)  # fmt: skip
def routing_of_per_tensor_fp8_runner(c: Config) -> Refusal | None:
    """TensorRT-LLM's kernels for ModelOpt's FP8 experts do not route as this model does.

    They choose the experts themselves, by weights that are normalized again (`norm_topk_prob`) and, for DeepSeek's classes, with a bias
    (`topk_method` "noaux_tc"). Take triton.
    """
    if c.moe_runner_backend != "flashinfer_trtllm" or method(c) != "modelopt_fp8":
        return None
    name = c.model.architecture
    plain = name in BIASED and c.model.text_hf("topk_method") not in (None, "noaux_tc")
    if not plain and not (name in (*RENORMALIZED, *BIASED) and c.model.text_hf("norm_topk_prob") is False):
        return None
    return value_refused(
        c,
        "moe_runner_backend",
        f"does not route as {name} with this config.json does, and SGLang stops in its first forward pass. Take triton.",
        "model_path",
        fixes=(setting(moe_runner_backend="triton"), dropping("moe_runner_backend")),
    )


@expert_stores.refuses(
    "SPC1019", "distributed-weights-of-dense-model", raises="RuntimeError", late=True, since="0.5.18",
    sglang="layers/moe/dwdp/dwdp_manager.py:setup",
    bad="--tp-size 2 --dwdp-size 2",
    good="model=qwen3-30b-a3b -- --tp-size 2 --dwdp-size 2",
)  # fmt: skip
def distributed_weights_of_dense_model(c: Config) -> Refusal | None:
    """Distributed weights are those of experts.

    `--dwdp-size` fetches experts from other ranks while others compute; a dense model has none.
    """
    if (c.dwdp_size or 1) <= 1 or c.model.num_experts:
        return None
    return value_refused(
        c,
        "dwdp_size",
        f"is refused for {c.model.architecture} with the weights loaded: the model has no experts. Remove it.",
        "model_path",
    )
