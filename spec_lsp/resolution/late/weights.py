"""What quantized layers refuse when their weights are split over GPUs.

Follows layers/quantization/fp8.py (validate_block_quant_shapes and Fp8MoEMethod.create_weights).

Modelled: FP8 checkpoints with blockwise scales (`weight_block_size`): the experts' width, and the width of dense MLPs.
Left out: checkpoints that leave MLP or expert layers unquantized; AITER's padding of experts; attention projections,
whose heads are as wide as a block in the models that come so; what depends on the files (which layers are packed, group
sizes of GPTQ and AWQ).
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.model.config import served_quantization

quantization = Handler(
    "layers/quantization/fp8.py:create_weights", when=lambda c: served_quantization(c).method == "fp8"
)

DENSE_MLP = frozenset({"Qwen3ForCausalLM", "Qwen2ForCausalLM", "LlamaForCausalLM"})
"""Dense models whose MLP is split over all TP ranks."""


def _block(c: Config) -> int | None:
    """The side of the checkpoint's quantization blocks; None where scales are not blockwise or some layers may be left out."""
    config = c.model.quantization_config
    if not isinstance(config, Mapping):
        return None
    sides = config.get("weight_block_size")
    if not isinstance(sides, (list, tuple)) or not sides:
        return None
    left_out = [*(config.get("ignored_layers") or ()), *(config.get("modules_to_not_convert") or ())]
    if any("experts" in str(name) or "up_proj" in str(name) or "down_proj" in str(name) for name in left_out):
        return None
    return int(max(sides))


def moe_tp_size(c: Config) -> int:
    """Over how many ranks the matrices of one expert are split."""
    return max(1, int(c.tp_size) // max(1, int(c.ep_size)) // max(1, int(c.moe_dp_size or 1)))


def _fitting_ep(c: Config, width: int, block: int) -> int | None:
    """The smallest expert-parallel size at which an expert's share of a rank is whole blocks."""
    experts = c.model.num_experts or 0
    for ep in range(c.ep_size + 1, c.tp_size + 1):
        share = c.tp_size // ep
        if c.tp_size % ep == 0 and experts % ep == 0 and width % share == 0 and width // share % block == 0:
            return ep
    return None


def _fitting_tp(c: Config, width: int, block: int) -> int:
    return next((n for n in range(c.tp_size - 1, 0, -1) if width % n == 0 and width // n % block == 0), 1)


@quantization.refuses(
    "SPC965",
    "expert-width-not-divisible-by-quantization-block",
    raises="ValueError",
    late=True,
    bad=("model=qwen3-235b-fp8 -- --tp-size 8", "model=deepseek-v3 -- --tp-size 32 --nnodes 4"),
    good=(
        "model=qwen3-235b-fp8 -- --tp-size 4",
        "model=qwen3-235b-fp8 -- --tp-size 8 --ep-size 2",
        "model=deepseek-v3 -- --tp-size 16 --nnodes 2",
    ),
)
def expert_width_not_divisible_by_quantization_block(c: Config) -> Refusal | None:
    """A rank's share of an expert is not whole FP8 blocks.

    The checkpoint has one scale for each block of 128 by 128 weights. Tensor parallelism cuts every expert into `tp /
    ep` slices, and a cut through a block has no scale. SGLang stops when it builds the layers. Spread whole experts
    with `--ep-size`, or use fewer ranks.
    """
    width, block = c.model.text_hf("moe_intermediate_size"), _block(c)
    slices = moe_tp_size(c)
    if (
        not isinstance(width, int)
        or not c.model.num_experts
        or block is None
        or width % slices
        or width // slices % block == 0
    ):
        return None
    if c.gpu.is_hip and c.env.flag("SGLANG_USE_AITER"):
        return None
    ep = _fitting_ep(c, width, block)
    return Refusal(
        at="tp_size",
        with_=("ep_size", "model_path"),
        message=f"{c.shown('tp_size')} cuts this model's experts ({width} wide) into {slices} slices of "
        f"{width // slices}, which are not whole FP8 blocks of {block}, so SGLang stops when it builds the "
        f"layers. Spread the experts (`--ep-size{f' {ep}' if ep else ''}`) or use fewer ranks.",
        fixes=(
            *((setting(ep_size=ep),) if ep else ()),
            setting(tp_size=_fitting_tp(c, width, block)),
            setting(ep_size=c.tp_size),
        ),
    )


@quantization.refuses(
    "SPC966",
    "mlp-width-not-divisible-by-quantization-block",
    raises="ValueError",
    late=True,
    sglang="layers/quantization/fp8.py:validate_block_quant_shapes",
    bad="model=qwen3-8b -- --tp-size 8 --json-model-override-args "
    """'{"intermediate_size": 11008, "quantization_config": {"quant_method": "fp8", """
    """"weight_block_size": [128, 128]}}'""",
    good="model=qwen3-8b -- --tp-size 8",
)
def mlp_width_not_divisible_by_quantization_block(c: Config) -> Refusal | None:
    """A rank's share of the MLP is not whole FP8 blocks.

    The checkpoint has one scale for each block of 128 by 128 weights, and tensor parallelism would cut through a block.
    Use fewer ranks.
    """
    width, block = c.model.text_hf("intermediate_size"), _block(c)
    if c.model.architecture not in DENSE_MLP or not isinstance(width, int) or block is None:
        return None
    if c.tp_size <= 1 or width % c.tp_size or width // c.tp_size % block == 0:
        return None
    return Refusal(
        at="tp_size",
        with_=("model_path",),
        message=f"{c.shown('tp_size')} cuts this model's MLP ({width} wide) into slices of {width // c.tp_size}, "
        f"which are not whole FP8 blocks of {block}, so SGLang stops when it builds the layers. Use fewer "
        "ranks.",
        fixes=(setting(tp_size=_fitting_tp(c, width, block)), dropping("tp_size")),
    )
