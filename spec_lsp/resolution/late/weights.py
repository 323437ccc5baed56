"""What quantized layers refuse when their weights are split over GPUs.

Follows layers/quantization/fp8.py (validate_block_quant_shapes, Fp8MoEMethod.create_weights), fp8_utils.py (validate_fp8_block_shape)
and layers/quantization/awq/ (create_weights).

Modelled: checkpoints with blockwise FP8 scales (`weight_block_size`, or compressed-tensors' strategy "block"): the width of routed and
shared experts, of dense MLPs and of the dense layers before the experts; AWQ's groups along a dense MLP's width. All are looked at for a
repair: ranks that suit one of them and cut another are no way out. GPTQ's groups are looked at as AWQ's: its plain kernels refuse a group
that is cut, and Marlin's matrix kernel one whose number of scales does not divide the width.
Left out: checkpoints that leave MLP or expert layers unquantized; AITER's padding of experts; attention projections, whose heads are as
wide as a block in the models that come so; what depends on the files (which layers are packed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spec_lsp.facts.classes import class_facts
from spec_lsp.records import NamedTuple
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, setting
from spec_lsp.resolution.late.layout import heads_fit
from spec_lsp.resolution.late.methods import compressed_scheme
from spec_lsp.resolution.model.config import served_quantization

SPLIT = frozenset({
    "fp8", "blockwise_int8", "compressed-tensors", "awq", "awq_marlin", "gptq", "gptq_marlin", "modelopt_fp4", "petit_nvfp4",
})  # fmt: skip
"""The methods whose shapes are modelled here."""

quantization = Handler(
    "layers/quantization/fp8.py:create_weights",
    when=lambda c: served_quantization(c).method in SPLIT,
)


class Cut(NamedTuple):
    """Matrices of width `width` that are split into `slices`."""

    what: str
    width: int
    slices: int

    def fits(self, block: int) -> bool:
        return self.width % self.slices == 0 and self.width // self.slices % block == 0


def _block(c: Config) -> int | None:
    """The side of the checkpoint's quantization blocks; None where scales are not blockwise or some layers may be left out."""
    config = c.model.quantization_config
    if not isinstance(config, Mapping):
        return None
    sides = config.get("weight_block_size")
    if sides is None:
        sides = _block_of_groups(config.get("config_groups"))
    if not isinstance(sides, (list, tuple)) or not sides:
        return None
    left_out: list[Any] = []
    for key in LEFT_OUT:
        left_out += config.get(key) or ()
    if any(part in str(name) for name in left_out for part in ("experts", "up_proj", "down_proj", "mlp.*", "re:.*mlp")):
        return None
    return int(max(sides))


LEFT_OUT = ("ignored_layers", "modules_to_not_convert", "ignore", "exclude_modules")
"""Where a checkpoint says which layers are not quantized."""


def _block_of_groups(groups: object) -> object:
    """The block that compressed-tensors' one group of linear layers names; None for any other scheme."""
    if not isinstance(groups, Mapping) or len(groups) != 1:
        return None
    weights = next(iter(groups.values())).get("weights") or {}
    return weights.get("block_structure") if weights.get("strategy") == "block" else None


def moe_tp_size(c: Config) -> int:
    """How many ranks the matrices of one expert are split over."""
    return max(1, int(c.tp_size) // max(1, int(c.ep_size)) // max(1, int(c.moe_dp_size or 1)))


FIRST_LAYERS_DENSE = frozenset({
    "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM", "Glm4MoeForCausalLM",
    "Glm4MoeLiteForCausalLM", "BailingMoeForCausalLM", "BailingMoeV2ForCausalLM",
})  # fmt: skip
"""MoE models whose first `first_k_dense_replace` layers are dense (models/deepseek_v2.py, glm4_moe.py, glm4_moe_lite.py,
bailing_moe.py): split over all TP ranks, or not at all with `--moe-dense-tp-size 1`."""

SHARED_BESIDE_EXPERTS = frozenset({
    "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM", "Glm4MoeForCausalLM",
})  # fmt: skip
"""MoE models whose shared experts are layers of their own wherever they are not fused with the routed ones; on NVIDIA they never are
under expert parallelism (models/deepseek_v2.py, glm4_moe.py)."""


def expert_width(c: Config) -> int | None:
    """The width of a routed expert, by the key of config.json that the model's class reads."""
    facts = class_facts(c.model.architecture, c.release)
    width = c.model.text_hf(facts.expert_width if facts and facts.expert_width else "moe_intermediate_size")
    return width if isinstance(width, int) and c.model.num_experts else None


def _experts(c: Config, tp: int, ep: int) -> Iterator[Cut]:
    width = expert_width(c)
    if width is not None and not (c.gpu.is_hip and c.env.flag("SGLANG_USE_AITER")):
        yield Cut("experts", width, max(1, tp // ep // max(1, int(c.moe_dp_size or 1))))


def _shared_experts(c: Config, tp: int, ep: int) -> Iterator[Cut]:
    if c.moe_a2a_backend != "none" or c.env.flag("SGLANG_SHARED_EXPERT_TP1") or tp <= 1:
        return
    name, width = c.model.architecture, None
    if name == "Step3p5ForCausalLM":
        width = c.model.text_hf("share_expert_dim")
    elif name == "Qwen2MoeForCausalLM":
        width = c.model.text_hf("shared_expert_intermediate_size")
    elif name in SHARED_BESIDE_EXPERTS and c.gpu.is_cuda and (ep > 1 or c.disable_shared_experts_fusion):
        width = (c.model.text_hf("n_shared_experts") or 0) * (c.model.text_hf("moe_intermediate_size") or 0)
    if isinstance(width, int) and width > 0:
        yield Cut("shared experts", width, tp)


def _dense_layers(c: Config, tp: int) -> Iterator[Cut]:
    width, facts = c.model.text_hf("intermediate_size"), class_facts(c.model.architecture, c.release)
    if tp <= 1 or not isinstance(width, int):
        return
    if not c.model.num_experts and facts is not None and facts.mlp == "tp":
        yield Cut("MLP", width, tp)
    elif c.model.architecture in FIRST_LAYERS_DENSE and (c.model.text_hf("first_k_dense_replace") or 0) > 0:
        if c.moe_dense_tp_size != 1:
            yield Cut("first dense layers", width, tp)


def cuts(c: Config, tp: int, ep: int) -> tuple[Cut, ...]:
    """All matrices that these sizes split."""
    return (*_experts(c, tp, ep), *_shared_experts(c, tp, ep), *_dense_layers(c, tp))


def _repairs(c: Config, block: int) -> tuple[Change, ...]:
    """Sizes at which no block is cut: first with more expert parallelism, then with fewer ranks."""
    tp, experts = int(c.tp_size), c.model.num_experts or 0

    def whole(n: int, ep: int, but: str = "") -> bool:
        return all(cut.fits(block) for cut in cuts(c, n, ep) if cut.what != but)

    wide = [ep for ep in range(int(c.ep_size) + 1, tp + 1) if tp % ep == 0 and experts and experts % ep == 0]
    found = [setting(ep_size=ep) for ep in wide if whole(tp, ep)][:1]
    if not found:
        found = [setting(ep_size=ep, moe_dense_tp_size=1) for ep in wide if whole(tp, ep, "first dense layers")][:1]
    fewer = (
        n for n in range(tp - 1, 0, -1) if n % int(c.ep_size) == 0 and heads_fit(c, n) and whole(n, int(c.ep_size))
    )
    return (*found, *(setting(tp_size=n) for n in [*fewer][:1]))


def _kind(c: Config) -> str:
    return "INT8" if served_quantization(c).method == "blockwise_int8" else "FP8"


def _through_a_block(c: Config, cut: Cut | None, block: int, way_out: str) -> Refusal | None:
    """Nothing for a split into unequal slices, which is another rule's, nor for one between blocks."""
    if cut is None or cut.width % cut.slices or cut.fits(block):
        return None
    return Refusal(
        at=c.first_given("tp_size", "ep_size", "model_path"),
        related_fields=("ep_size", "model_path"),
        message=f"{c.shown('tp_size')} cuts this model's {cut.what} ({cut.width} wide) into {cut.slices} slices of "
        f"{cut.width // cut.slices}, which are not whole {_kind(c)} blocks of {block}, so SGLang stops when it builds the layers. "
        f"{way_out}",
        fixes=_repairs(c, block),
    )


@quantization.refuses(
    "SPC965",
    "expert-width-not-divisible-by-quantization-block",
    raises="ValueError",
    late=True,
    bad=(
        "model=qwen3-235b-fp8 -- --tp-size 8",
        "model=deepseek-v3 -- --tp-size 32 --nnodes 4",
        "model=minimax-m2 -- --tp-size 8",
    ),
    good=(
        "model=qwen3-235b-fp8 -- --tp-size 4",
        "model=qwen3-235b-fp8 -- --tp-size 8 --ep-size 2",
        "model=deepseek-v3 -- --tp-size 16 --nnodes 2",
    ),
)
def expert_width_not_divisible_by_quantization_block(c: Config) -> Refusal | None:
    """A rank's share of an expert is not a whole number of FP8 blocks.

    The checkpoint has one scale for each block of 128 by 128 weights. Tensor parallelism cuts every expert into `tp /
    ep` slices, and a cut through a block has no scale. SGLang stops when it builds the layers. Spread whole experts
    with `--ep-size`, or use fewer ranks.
    """
    block = _block(c)
    if block is None:
        return None
    cut = next(_experts(c, int(c.tp_size), int(c.ep_size)), None)
    spread = next((change.set["ep_size"] for change in _repairs(c, block) if "ep_size" in change.set), None)
    flag = f"`--ep-size{f' {spread}' if spread else ''}`"
    return _through_a_block(c, cut, block, f"Spread the experts ({flag}) or use fewer ranks.")


@quantization.refuses(
    "SPC966",
    "mlp-width-not-divisible-by-quantization-block",
    raises="ValueError",
    late=True,
    sglang="layers/quantization/fp8.py:validate_block_quant_shapes",
    earlier=(Earlier("0.5.8", "layers/quantization/fp8.py:create_weights"),),
    bad=(
        "model=qwen3-8b -- --tp-size 8 --json-model-override-args "
        """'{"intermediate_size": 11008, "quantization_config": {"quant_method": "fp8", """
        """"weight_block_size": [128, 128]}}'""",
        "model=deepseek-v3 -- --tp-size 32 --ep-size 32 --nnodes 4",
    ),
    good=("model=qwen3-8b -- --tp-size 8", "model=deepseek-v3 -- --tp-size 32 --ep-size 32 --nnodes 4 --moe-dense-tp-size 1 "
          "--moe-a2a-backend deepep"),
)  # fmt: skip
def mlp_width_not_divisible_by_quantization_block(c: Config) -> Refusal | None:
    """A rank's share of the MLP is not a whole number of FP8 blocks.

    The checkpoint has one scale for each block of 128 by 128 weights, and tensor parallelism would cut through a block. MoE models
    whose first layers are dense have such MLPs too, which `--ep-size` does not spread. Use fewer ranks; with
    `--moe-dense-tp-size 1` every rank keeps the dense layers whole.
    """
    block = _block(c)
    if block is None:
        return None
    return _through_a_block(c, next(_dense_layers(c, int(c.tp_size)), None), block, "Use fewer ranks.")


@quantization.refuses(
    "SPC967",
    "shared-expert-width-not-divisible-by-quantization-block",
    raises="ValueError",
    late=True,
    sglang="layers/quantization/fp8.py:validate_block_quant_shapes",
    earlier=(Earlier("0.5.8", "layers/quantization/fp8.py:create_weights"),),
    bad="model=glm-4.5-air -- --tp-size 32 --ep-size 32 --nnodes 4 --json-model-override-args "
    """'{"num_attention_heads": 96, "moe_intermediate_size": 1408, "first_k_dense_replace": 0, "quantization_config": """
    """{"quant_method": "fp8", "weight_block_size": [128, 128]}}'""",
    good="model=glm-4.5-air -- --tp-size 8",
)
def shared_expert_width_not_divisible_by_quantization_block(c: Config) -> Refusal | None:
    """A rank's share of the shared experts is not a whole number of FP8 blocks.

    Expert parallelism spreads the routed experts; the shared ones, which every token passes, stay split over all TP ranks. The
    checkpoint has one scale for each block of 128 by 128 weights, and the ranks would cut through a block. Use fewer ranks, or an
    all-to-all backend (`--moe-a2a-backend deepep`): every rank then keeps the shared experts whole.
    """
    block = _block(c)
    if block is None:
        return None
    cut = next(_shared_experts(c, int(c.tp_size), int(c.ep_size)), None)
    said = _through_a_block(
        c, cut, block, "Use fewer ranks, or an all-to-all backend, with which every rank keeps them whole."
    )
    return said and said._replace(fixes=(*said.candidates, setting(moe_a2a_backend="deepep")))


@quantization.refuses(
    "SPC968",
    "mlp-width-not-divisible-by-quantization-group",
    raises="ValueError",
    late=True,
    sglang="layers/quantization/awq/schemes/awq_linear.py:create_weights",
    earlier=(
        Earlier("0.5.11", "layers/quantization/awq.py:create_weights"),
        Earlier("0.5.12", "layers/quantization/awq/schemes/awq_linear.py:create_weights"),
    ),
    bad=(
        "model=llama-2-7b -- --tp-size 4 --json-model-override-args "
        """'{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true}}'""",
        "model=llama-2-7b -- --tp-size 4 --json-model-override-args "
        """'{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": false, "sym": true}}'""",
        "gpu=b200 model=llama-2-7b -- --tp-size 32 --nnodes 4 --json-model-override-args "
        """'{"quantization_config": {"quant_method": "modelopt_fp4", "quant_algo": "NVFP4", "group_size": 16}}'""",
    ),
    good=(
        "model=llama-2-7b -- --tp-size 2 --json-model-override-args "
        """'{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true}}'""",
        "model=llama-2-7b -- --tp-size 2 --json-model-override-args "
        """'{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": false, "sym": true}}'""",
    ),
)
def mlp_width_not_divisible_by_quantization_group(c: Config) -> Refusal | None:
    """A rank's share of the MLP is not a whole number of quantization groups.

    AWQ, GPTQ, weight-only checkpoints of compressed-tensors (128, mostly) and NVFP4 (16) have one scale for each group of weights along
    the width that tensor parallelism cuts. Marlin's kernels do not take an AWQ layer of such a width, and the plain ones, to which SGLang
    falls back, refuse it; a GPTQ layer stops in the first forward pass. Use fewer ranks.
    """
    config, grouped = c.model.quantization_config or {}, _grouped(c)
    left_out = [str(name) for key in LEFT_OUT for name in config.get(key) or ()]
    if grouped is None or c.model.num_experts or config.get("dynamic"):  # GPTQModel's rules for single layers
        return None
    if any(part in name for name in left_out for part in ("mlp", "down_proj")):
        return None
    name, group, cuts_a_group = grouped
    cut = next(_dense_layers(c, int(c.tp_size)), None)
    if cut is None or cut.width % cut.slices or not cuts_a_group(cut.width // cut.slices, group):
        return None
    fewer = (n for n in range(cut.slices - 1, 0, -1) if heads_fit(c, n) and Cut("", cut.width, n).fits(group))
    stops = "in its first forward pass" if cuts_a_group is _cuts_a_scale else "when it builds the layers"
    return Refusal(
        at="tp_size" if c.given("tp_size") else "model_path",
        related_fields=("model_path",),
        message=f"{c.shown('tp_size')} cuts this model's MLP ({cut.width} wide) into slices of {cut.width // cut.slices}, which are not "
        f"whole {name} groups of {group}, so SGLang stops {stops}. Use fewer ranks.",
        fixes=tuple(setting(tp_size=n) for n in [*fewer][:1]),
    )


Cuts = Callable[[int, int], bool]


def _grouped(c: Config) -> tuple[str, int, Cuts] | None:
    """The kind of quantization, how many weights share a scale along the width, and when ranks cut through them; None without groups."""
    config, method = c.model.quantization_config or {}, served_quantization(c).method
    if method in ("modelopt_fp4", "petit_nvfp4"):
        return "NVFP4", 16, _cuts
    if method == "compressed-tensors":
        weights, activations = compressed_scheme(c) or ({}, {"of": "several groups"})
        group = weights.get("group_size") if weights.get("type") == "int" and not activations else None
        name = "compressed-tensors"
    else:
        group = config.get("group_size", config.get("q_group_size"))
        name = "AWQ" if method in ("awq", "awq_marlin") else "GPTQ"
    if not isinstance(group, int) or group <= 0 or (method == "gptq_marlin" and config.get("desc_act")):
        return None
    found = CUTS.get(method or "")
    return None if found is None else (name, group, found)


def _cuts_a_scale(width: int, group: int) -> bool:
    """Whether Marlin's kernel stops: it takes width divided by the number of scales as the group, which must be a whole number."""
    scales = width // group
    return width % group != 0 and (scales == 0 or width % scales != 0)


def _cuts(width: int, group: int) -> bool:
    return width % group != 0


CUTS: Mapping[str, Cuts] = {
    "awq": _cuts, "awq_marlin": _cuts, "gptq": _cuts, "gptq_marlin": _cuts_a_scale, "compressed-tensors": _cuts,
}  # fmt: skip
"""Whether a rank's share of this width cuts one of the quantization groups."""
