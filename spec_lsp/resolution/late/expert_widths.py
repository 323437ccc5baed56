"""Widths of experts that the kernels of FP4 and MegaMoE lack, refused when the weights are prepared.

Follows prepare_*_weights_for_flashinfer_megamoe (layers/moe/flashinfer_megamoe.py), the NVFP4 experts of compressed-tensors on Marlin,
DeepSeek V4's MXFP4 experts on FlashInfer's CUTLASS, and Humming (layers/quantization/humming.py, humming_utils.py; 0.5.23).

Left out: experts that compute in a width of their own (latent experts).
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.late.methods import compressed_scheme, leaves_experts_out, method
from spec_lsp.resolution.late.refused import Barred, first_barred
from spec_lsp.resolution.late.weights import expert_width, moe_tp_size
from spec_lsp.resolution.model.deepseek_v4 import has_fp4_experts
from spec_lsp.resolution.moe import megamoe_w4a16

expert_widths = Handler(
    "layers/moe/flashinfer_megamoe.py:prepare_nvfp4_moe_weights_for_flashinfer_megamoe",
    when=lambda c: bool(c.gpu.is_cuda) and bool(c.model.num_experts),
)

LATENT = ("moe_latent_size", "routed_expert_hidden_size", "moe_hidden_size")


def _odd_model(c: Config, block: int) -> bool:
    """Whether the model's width is no multiple of `block`, if its experts take that width."""
    return all(c.model.text_hf(key) is None for key in LATENT) and c.model.hidden_size % block != 0


def _odd_experts(c: Config, block: int) -> bool:
    """Whether a rank's share of an expert is no multiple of `block`."""
    width = expert_width(c)
    return width is not None and width // moe_tp_size(c) % block != 0


# --- FlashInfer's MegaMoE -----------------------------------------------------------------------------------------------

PER_TOKEN = "SGLANG_FLASHINFER_NVFP4_PER_TOKEN_ACTIVATION"
NVFP4 = ("modelopt_fp4", "nvfp4_online")


def _another_exchange(_: Config) -> tuple[Change, ...]:
    return (dropping("moe_a2a_backend", "moe_runner_backend"), setting(moe_a2a_backend="none"))


MEGA = (
    Barred(
        "moe_a2a_backend",
        lambda c: method(c) in ("mxfp8", *NVFP4) and _odd_model(c, 32 if megamoe_w4a16(c) else 128),
        "the model's width is no multiple of its kernels' blocks",
        "",
        _another_exchange,
    ),
    Barred(
        "moe_a2a_backend",
        lambda c: method(c) in ("mxfp8", *NVFP4) and _odd_experts(c, 64 if megamoe_w4a16(c) else 128),
        "the experts' width is no multiple of its kernels' blocks",
        "",
        _another_exchange,
    ),
    Barred(
        "moe_a2a_backend",
        lambda c: method(c) == "modelopt_fp4" and c.env.flag(PER_TOKEN) and not megamoe_w4a16(c),
        f"`{PER_TOKEN}` asks for a scale for each token, which its kernels do not have",
        "",
        lambda _: (dropping_env(PER_TOKEN),),
    ),
)


@expert_widths.refuses(
    "SPC1040", "experts-unfit-for-flashinfer-megamoe", raises="ValueError", late=True, since="0.5.20",
    bad="gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --attn-dp-size 2 --quantization mxfp8 --moe-a2a-backend flashinfer_megamoe "
    """--json-model-override-args '{"moe_intermediate_size": 704}'""",
    good="gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --attn-dp-size 2 --quantization mxfp8 --moe-a2a-backend flashinfer_megamoe",
)  # fmt: skip
def experts_unfit_for_flashinfer_megamoe(c: Config) -> Refusal | None:
    """FlashInfer's MegaMoE computes experts of whole blocks of 128 only.

    The width of the model and that of an expert have to be multiples of 128; with `SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16=1` of 32 and
    64. Use another `--moe-a2a-backend`.
    """
    if c.moe_a2a_backend != "flashinfer_megamoe" or leaves_experts_out(c):
        return None
    return first_barred(c, MEGA, "with the weights loaded", "model_path")


# --- experts of four bits -----------------------------------------------------------------------------------------------


def _on_nvfp4_marlin(c: Config) -> bool:
    """Whether the experts are NVFP4 of compressed-tensors that Marlin computes: weight-only ones, and all before Blackwell."""
    scheme = compressed_scheme(c) if method(c) == "compressed-tensors" else None
    if scheme is None or (scheme[0].get("num_bits"), scheme[0].get("type")) != (4, "float"):
        return False
    return scheme[0].get("group_size") == 16 and (not scheme[1] or c.gpu.major < 10)


def _on_mxfp4_cutlass(c: Config) -> bool:
    """Whether the experts are DeepSeek V4's MXFP4 ones that FlashInfer's CUTLASS computes."""
    fits = c.gpu.sm90 or (c.gpu.sm120 and c.since("0.5.18"))
    return bool(c.moe_runner_backend == "flashinfer_mxfp4" and fits and method(c) == "fp8" and has_fp4_experts(c))


def _group(c: Config) -> int | None:
    """The group size of a W4AFP8 checkpoint whose experts Humming computes."""
    config = c.model.quantization_config or {}
    stored = config.get("quant_method") == "w4afp8" and method(c) == "humming"
    return int(config.get("group_size", 128)) if stored else None


def _fed_by_deepep_in_fp8(c: Config) -> bool:
    """Whether Humming's experts get their tokens from DeepEP in FP8."""
    if method(c) != "humming" or c.moe_a2a_backend != "deepep":
        return False
    typed = c.deepep_dispatcher_output_dtype
    return typed == "fp8" or (typed == "auto" and not c.env.flag("SGLANG_DEEPEP_BF16_DISPATCH"))


def _larger_shares(c: Config) -> tuple[Change, ...]:
    return (setting(ep_size=c.tp_size), *(setting(tp_size=n) for n in (c.tp_size // 2, c.tp_size // 4) if n))


def _in_bfloat16(_: Config) -> tuple[Change, ...]:
    return (setting(deepep_dispatcher_output_dtype="bf16"),)


FOUR_BITS = (
    Barred(
        "tp_size",
        lambda c: _on_nvfp4_marlin(c) and _odd_experts(c, 64),
        "Marlin's kernels need shares of NVFP4 experts that are multiples of 64 wide",
        "0.5.22",
        _larger_shares,
    ),
    Barred(
        "model_path",
        lambda c: _on_nvfp4_marlin(c) and _odd_model(c, 128),
        "Marlin's kernels need a model whose width is a multiple of 128",
        "0.5.22",
        lambda _: (),
    ),
    Barred(
        "tp_size",
        lambda c: _on_mxfp4_cutlass(c) and _odd_experts(c, 128),
        "FlashInfer's kernels need shares of MXFP4 experts that are multiples of 128 wide",
        "",
        lambda c: (*_larger_shares(c), dropping("moe_runner_backend")),
    ),
    Barred(
        "tp_size",
        lambda c: (group := _group(c)) is not None and _odd_experts(c, group),
        "a rank's share of an expert would cut through one of its quantization groups",
        "0.5.19",
        _larger_shares,
    ),
    Barred(
        "deepep_dispatcher_output_dtype",
        lambda c: _fed_by_deepep_in_fp8(c) and (_odd_model(c, 128) or _odd_experts(c, 128)),
        "tokens in FP8 have a scale for each 128 values, which these widths are no multiple of",
        "0.5.19",
        _in_bfloat16,
    ),
)
NVFP4_EXPERTS = (
    """--json-model-override-args '{"moe_intermediate_size": 704, "quantization_config": {"quant_method": "compressed-tensors", """
    """"format": "nvfp4-pack-quantized", "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, """
    """"type": "float", "strategy": "tensor_group", "group_size": 16}, "input_activations": null}}}}'"""
)


@expert_widths.refuses(
    "SPC1041", "width-of-four-bit-experts", raises="ValueError", late=True, since="0.5.12",
    sglang="layers/quantization/mxfp4_flashinfer_cutlass_moe.py:create_weights",
    bad=(
        "gpu=h200 model=v4 -- --tp-size 32 --nnodes 4 --moe-runner-backend flashinfer_mxfp4 "
        """--json-model-override-args '{"fp4_experts": true}'""",
        f"model=qwen3-30b-a3b -- --tp-size 2 {NVFP4_EXPERTS}",
        "model=qwen3-30b-a3b -- --tp-size 2 --quantization humming --moe-a2a-backend deepep "
        """--json-model-override-args '{"moe_intermediate_size": 704}'""",
    ),
    good=(
        "gpu=h200 model=v4 -- --tp-size 16 --nnodes 2 --moe-runner-backend flashinfer_mxfp4 "
        """--json-model-override-args '{"fp4_experts": true}'""",
        f"model=qwen3-30b-a3b -- {NVFP4_EXPERTS}",
    ),
)  # fmt: skip
def width_of_four_bit_experts(c: Config) -> Refusal | None:
    """A rank's share of an expert has a width that the kernels of its weights lack.

    Experts of four bits are computed in blocks of 64 or 128, and tensor parallelism cuts every expert into `tp / ep` slices. SGLang stops
    with the weights loaded. Spread whole experts with `--ep-size`, or use fewer ranks.
    """
    if leaves_experts_out(c):
        return None
    return first_barred(
        c, FOUR_BITS, "for this model's experts when their weights are prepared", "ep_size", "model_path"
    )
