"""What the LoRA manager refuses when it is built. Follows lora/lora_manager.py.

Modelled: adapters under attention data parallelism, pinned adapters, DoRA and target modules as an adapter's file states them.
Left out: vocabularies that adapters extend, ranks, layers that have no LoRA counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.model import ModelFacts
from spec_lsp.resolution import cuda_graph
from spec_lsp.resolution.engine import NO_FIX, Change, Config, Earlier, Handler, Refusal, dropping, setting
from spec_lsp.resolution.late.activations import SQUARED, activation
from spec_lsp.resolution.late.methods import compressed_scheme
from spec_lsp.resolution.late.refused import Barred, first_barred, value_refused
from spec_lsp.resolution.late.runners import on_marlin
from spec_lsp.resolution.model.config import model_dtype, served_quantization
from spec_lsp.resolution.ranks import attention_cp_size, attention_dp, attention_dp_field, attention_tp_size

lora = Handler("lora/lora_manager.py:__init__", when=lambda c: bool(c.enable_lora))

WITH_ATTENTION_DP = ("triton", "triton_v2")
"""LoRA backends that serve attention-DP ranks (triton_v2 is refused before, by argument resolution)."""


@lora.refuses(
    "SPC985", "adapters-with-partial-attention-dp", raises="ValueError", since="0.5.21", late=True,
    bad="--enable-lora --lora-paths a=/a --lora-backend triton --tp-size 4 --dp-size 2 --enable-dp-attention",
    good="--enable-lora --lora-backend triton --tp-size 4 --dp-size 4 --enable-dp-attention "
    """--lora-paths '{"lora_name": "a", "lora_path": "/a", "pinned": true}'""",
)  # fmt: skip
def adapters_with_partial_attention_dp(c: Config) -> Refusal | None:
    """Adapters need every TP rank to be its own attention-DP group.

    The LoRA kernels support the tokens of one rank or of all, not of a few ranks that share an attention-DP group. Use as many
    groups as TP ranks, or no attention data parallelism.
    """
    if not attention_dp(c) or (attention_tp_size(c) == 1 and attention_cp_size(c) == 1):
        return None
    field = attention_dp_field(c)
    return Refusal(
        at=field,
        related_fields=("tp_size", "enable_lora", "lora_paths"),
        message=f"LoRA adapters need as many attention-DP groups as TP ranks, and {c.shown('tp_size')} has more, so "
        "SGLang stops when the adapters are set up.",
        fixes=(
            setting(**{field: c.tp_size}),
            dropping("enable_lora", "lora_paths"),
        ),
    )


@lora.refuses(
    "SPC986", "adapters-on-backend-without-attention-dp", raises="ValueError", since="0.5.21", late=True,
    bad="--enable-lora --lora-paths a=/a --tp-size 2 --dp-size 2 --enable-dp-attention",
    good="--enable-lora --lora-backend triton --tp-size 2 --dp-size 2 --enable-dp-attention "
    """--lora-paths '{"lora_name": "a", "lora_path": "/a", "pinned": true}'""",
)  # fmt: skip
def adapters_on_backend_without_attention_dp(c: Config) -> Refusal | None:
    """This LoRA backend does not serve attention-DP ranks.

    The default backend (`csgmv`) lays out its batches for tensor parallelism; `triton` also supports attention data
    parallelism.
    """
    if not attention_dp(c) or c.lora_backend in WITH_ATTENTION_DP:
        return None
    return Refusal(
        at=c.first_given("lora_backend", attention_dp_field(c)),
        related_fields=("enable_lora", "lora_paths", "lora_backend"),
        message=f"{c.shown('lora_backend')} does not serve adapters with attention data parallelism, so SGLang stops "
        "when the adapters are set up. Use `--lora-backend triton`.",
        fixes=(setting(lora_backend="triton"), dropping("enable_lora", "lora_paths")),
    )


def _adapters(c: Config) -> list[tuple[str, bool]]:
    """The startup adapters by name, each with whether it is pinned (which only the JSON spelling can say)."""
    found = []
    for entry in c.lora_paths or ():
        if isinstance(entry, Mapping):
            found.append((str(entry.get("lora_name")), bool(entry.get("pinned"))))
        else:
            found.append((str(entry).partition("=")[0], False))
    return found


@lora.refuses(
    "SPC987", "unpinned-adapter-with-attention-dp", raises="AssertionError", since="0.5.21", late=True,
    sglang="lora/lora_manager.py:validate_new_adapter",
    bad="--enable-lora --lora-paths a=/a --lora-backend triton --tp-size 2 --dp-size 2 --enable-dp-attention",
    good="--enable-lora --lora-backend triton --tp-size 2 --dp-size 2 --enable-dp-attention "
    """--lora-paths '{"lora_name": "a", "lora_path": "/a", "pinned": true}'""",
)  # fmt: skip
def unpinned_adapter_with_attention_dp(c: Config) -> Refusal | None:
    """With attention data parallelism adapters have to be pinned.

    The ranks cannot agree on which adapter to evict, so each stays where it is: write it as JSON with `"pinned": true`, and give
    `--max-loras-per-batch` two more slots than there are such adapters.
    """
    adapters = _adapters(c) if attention_dp(c) else []
    loose = next((name for name, pinned in adapters if not pinned), None)
    if loose is None:
        return None
    return Refusal(
        at="lora_paths",
        related_fields=(attention_dp_field(c),),
        message=f"The adapter {loose} is not pinned, which attention data parallelism asks for, so SGLang stops when the adapters are set "
        'up. Write it as JSON with `"pinned": true`.',
        fixes=(dropping("enable_lora", "lora_paths"),),
    )


@lora.refuses(
    "SPC988", "all-adapter-slots-pinned", raises="ValueError", late=True,
    sglang="lora/lora_manager.py:validate_new_adapter",
    bad="""--enable-lora --max-loras-per-batch 1 --lora-paths '{"lora_name": "a", "lora_path": "/a", "pinned": true}'""",
    good="""--enable-lora --max-loras-per-batch 2 --lora-paths '{"lora_name": "a", "lora_path": "/a", "pinned": true}'""",
)  # fmt: skip
def all_adapter_slots_pinned(c: Config) -> Refusal | None:
    """The pinned adapters would take every slot of the batch.

    One slot has to stay free for adapters that come and go, and the base model takes one: `--max-loras-per-batch` has to be larger than
    the number of pinned adapters.
    """
    pinned = sum(pin for _, pin in _adapters(c))
    slots = c.max_loras_per_batch
    if not pinned or not isinstance(slots, int) or pinned <= slots - 1:
        return None
    return Refusal(
        at=c.first_given("max_loras_per_batch", "lora_paths"),
        related_fields=("lora_paths",),
        message=f"{c.shown('max_loras_per_batch')} leaves no slot free beside {pinned} pinned adapter{'s' if pinned > 1 else ''}, so "
        "SGLang stops when the adapters "
        "are set up.",
        fixes=(setting(max_loras_per_batch=pinned + 1),),
    )


# --- adapters on experts --------------------------------------------------------------------------------------------

EXPERT_MODULES = ("gate_up_proj", "down_proj")
"""What an adapter names of experts, as lora/utils.py (get_normalized_target_modules) writes it."""

ALIASES = {
    "gate_proj": "gate_up_proj",
    "up_proj": "gate_up_proj",
    "q_proj": "qkv_proj",
    "k_proj": "qkv_proj",
    "v_proj": "qkv_proj",
}

CHOOSY = ("GptOssForCausalLM",)
"""Text models that keep adapters off some of their layers (should_apply_lora)."""


def _targets(c: Config) -> set[str] | None:
    """The modules that adapters may change, normalized; None where only the adapters' files tell."""
    if not c.lora_target_modules:
        return None
    return {ALIASES.get(name.rpartition(".")[2], name.rpartition(".")[2]) for name in c.lora_target_modules}


def _has_experts(c: Config) -> bool:
    return bool(c.model.num_experts) and not c.model.is_multimodal() and c.model.architecture not in CHOOSY


def _adapts_experts(c: Config) -> bool:
    targets = _targets(c)
    return targets is not None and _has_experts(c) and ("all" in targets or targets.issuperset(EXPERT_MODULES))


def _without_adapters(c: Config, method: str | None) -> bool:
    """Whether this runner computes experts in one fused kernel, which has no place for an adapter."""
    runner = c.moe_runner_backend
    if c.before("0.5.19"):
        return runner not in ("auto", "triton", "marlin") and not runner.startswith("experimental")
    if method is None:
        return runner in ("flashinfer_trtllm", "flashinfer_trtllm_routed", "flashinfer_cutlass", "triton_kernel")
    return method == "fp8" and runner in ("flashinfer_trtllm", "flashinfer_trtllm_routed", "deep_gemm")


EXPERTS = "--enable-lora --max-lora-rank 16 --lora-target-modules gate_proj up_proj down_proj --tp-size 2"


@lora.refuses(
    "SPC491", "adapters-on-experts-of-fused-runner", raises="NotImplementedError", late=True, since="0.5.11",
    sglang="layers/quantization/base_config.py:get_moe_quant_info", earlier=(Earlier("0.5.19", "lora/layers.py:__init__"),),
    bad=(
        f"gpu=b200 model=qwen3-30b-a3b -- {EXPERTS} --moe-runner-backend flashinfer_trtllm",
        f"sglang=0.5.15 model=qwen3-30b-a3b -- {EXPERTS} --moe-runner-backend triton_kernel",
    ),
    good=(
        f"model=qwen3-30b-a3b -- {EXPERTS} --moe-runner-backend triton",
        "gpu=b200 model=qwen3-30b-a3b -- --enable-lora --max-lora-rank 16 --lora-target-modules q_proj k_proj v_proj --tp-size 2 "
        "--moe-runner-backend flashinfer_trtllm",
    ),
)  # fmt: skip
def adapters_on_experts_of_fused_runner(c: Config) -> Refusal | None:
    """This MoE runner computes experts in one kernel, where an adapter has no place.

    Adapters that change experts (`gate_proj`, `up_proj` and `down_proj`, or all modules) run on triton, which lets them in between its two
    multiplications.
    """
    if not _adapts_experts(c) or c.moe_a2a_backend != "none" or c.lora_backend == "triton_v2":
        return None
    served = served_quantization(c)
    if served.problem or not _without_adapters(c, served.method):
        return None
    return Refusal(
        at=c.first_given("moe_runner_backend", "lora_target_modules"),
        related_fields=("lora_target_modules", "enable_lora", "moe_runner_backend"),
        message=f"{c.shown('moe_runner_backend')} has no place for adapted experts, which {c.shown('lora_target_modules')} asks for, so "
        "SGLang stops when the adapters are set up. Use triton.",
        fixes=(setting(moe_runner_backend="triton"), dropping("enable_lora", "lora_paths")),
    )


@lora.refuses(
    "SPC492", "second-lora-backend-without-its-runner", raises="ValueError", late=True, since="0.5.23",
    sglang="lora/layers.py:__init__",
    bad=f"model=qwen3-30b-a3b -- {EXPERTS} --lora-backend triton_v2",
    good=(
        f"model=qwen3-30b-a3b -- {EXPERTS} --lora-backend triton_v2 --moe-runner-backend lora_triton",
        f"model=qwen3-30b-a3b -- {EXPERTS} --lora-backend triton",
    ),
)  # fmt: skip
def second_lora_backend_without_its_runner(c: Config) -> Refusal | None:
    """`--lora-backend triton_v2` adapts experts only in the MoE runners that were made for it.

    They are `lora_triton`, `lora_cutedsl` and `lora_marlin`. The other LoRA backends go with the other runners.
    """
    if (
        c.lora_backend != "triton_v2"
        or not _adapts_experts(c)
        or c.moe_runner_backend.startswith(("lora", "experimental"))
    ):
        return None
    return Refusal(
        at="lora_backend",
        related_fields=("moe_runner_backend", "lora_target_modules"),
        message=f"{c.shown('lora_backend')} adapts experts only with a MoE runner of its own, and this launch has "
        f"{c.shown('moe_runner_backend')}, so SGLang stops when the adapters are set up. Use `--moe-runner-backend lora_triton`.",
        fixes=(setting(moe_runner_backend="lora_triton"), setting(lora_backend="triton")),
    )


@lora.refuses(
    "SPC493", "lora-runner-without-adapted-experts", raises="ValueError", late=True, since="0.5.23",
    sglang="lora/lora_manager.py:init_lora_modules",
    bad="model=qwen3-30b-a3b -- --enable-lora --max-lora-rank 16 --lora-target-modules q_proj v_proj --lora-backend triton_v2 "
    "--moe-runner-backend lora_triton --tp-size 2",
    good=f"model=qwen3-30b-a3b -- {EXPERTS} --lora-backend triton_v2 --moe-runner-backend lora_triton",
)  # fmt: skip
def lora_runner_without_adapted_experts(c: Config) -> Refusal | None:
    """A MoE runner of LoRA's own runs only where adapters change experts.

    `lora_triton`, `lora_cutedsl` and `lora_marlin` leave the experts to the adapters' layers, which are built for `gate_up_proj` and
    `down_proj`. Name both in `--lora-target-modules`, or take another runner.
    """
    targets = _targets(c)
    if not c.moe_runner_backend.startswith("lora_") or targets is None or not _has_experts(c) or _adapts_experts(c):
        return None
    return Refusal(
        at="lora_target_modules",
        related_fields=("moe_runner_backend",),
        message=f"{c.shown('moe_runner_backend')} needs adapters on experts, and {c.shown('lora_target_modules')} names no `gate_up_proj` "
        "and `down_proj`, so SGLang stops when the adapters are set up.",
        fixes=(
            setting(lora_target_modules=[*c.lora_target_modules, *(m for m in EXPERT_MODULES if m not in targets)]),
            setting(moe_runner_backend="triton", lora_backend="triton"),
        ),
    )


@lora.refuses(
    "SPC494", "adapters-on-replicated-queries", raises="ValueError", late=True, since="0.5.23",
    sglang="lora/lora_manager.py:_validate_replicated_q_targets",
    bad="model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --dcp-replicate-q-proj --enable-lora --max-lora-rank 16 "
    "--lora-target-modules q_b_proj",
    good="model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --no-dcp-replicate-q-proj --enable-lora --max-lora-rank 16 "
    "--lora-target-modules q_b_proj",
)  # fmt: skip
def adapters_on_replicated_queries(c: Config) -> Refusal | None:
    """Replicated query projections take no adapters.

    With decode context parallelism every rank computes all query heads (`--dcp-replicate-q-proj`), from weights that adapters on
    `q_proj`, `q_b_proj` or `kv_b_proj` would have to change on each. `--no-dcp-replicate-q-proj` keeps heads apart.
    """
    if c.dcp_replicate_q_proj is not True:
        return None
    hit = sorted((_targets(c) or set()) & {"q_b_proj", "qkv_proj", "kv_b_proj"})
    if not hit:
        return None
    return Refusal(
        at="lora_target_modules",
        related_fields=("dcp_replicate_q_proj", "dcp_size"),
        message=f"{c.shown('lora_target_modules')} adapts {hit[0]}, which is replicated under {c.shown('dcp_size')}, so SGLang stops when "
        "the adapters are set up. Use `--no-dcp-replicate-q-proj`.",
        fixes=(setting(dcp_replicate_q_proj=False),),
    )


FOUR_BITS = ("awq_marlin", "gptq_marlin")


def _marlin_without_adapters(c: Config) -> str | None:
    """Why Marlin's kernels do not take adapters on these experts; None where they do, or another runner computes them."""
    served = served_quantization(c)
    if served.problem or c.moe_runner_backend.startswith(("lora", "experimental")) or c.moe_a2a_backend != "none":
        return None
    if served.method in FOUR_BITS and on_marlin(c):
        return "AWQ and GPTQ experts give nothing out to adapters"
    scheme = compressed_scheme(c) if served.method == "compressed-tensors" and c.gpu.major == 8 else None
    if scheme is not None and not scheme[1] and (scheme[0].get("num_bits"), scheme[0].get("type")) == (4, "int"):
        return f"adapters in Marlin's kernels need Hopper or newer, which {c.gpu.title} is not"
    return None


@lora.refuses(
    "SPC1020", "adapters-on-four-bit-experts", raises="AssertionError", late=True, since="0.5.12",
    sglang="lora/layers.py:__init__",
    bad=f"model=qwen3-30b-a3b -- {EXPERTS} --json-model-override-args "
    """'{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true}}'""",
    good="model=qwen3-30b-a3b -- --enable-lora --max-lora-rank 16 --lora-target-modules q_proj v_proj --tp-size 2 "
    "--json-model-override-args "
    """'{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true}}'""",
)  # fmt: skip
def adapters_on_four_bit_experts(c: Config) -> Refusal | None:
    """Experts of four bits take no adapters.

    They run on Marlin's kernels, which hand nothing out between their two multiplications for AWQ and GPTQ, and for other checkpoints only
    on Hopper and newer. Adapt attention only, or serve another checkpoint.
    """
    why = _marlin_without_adapters(c) if _adapts_experts(c) else None
    if why is None:
        return None
    return value_refused(
        c,
        "lora_target_modules",
        f"adapts the experts of this checkpoint, and SGLang stops when the adapters are set up: {why}.",
        "model_path",
        "enable_lora",
        fixes=(
            setting(lora_target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]),
            dropping("enable_lora", "lora_paths"),
        ),
    )


def _whole_blocks(c: Config) -> bool:
    return list((c.model.quantization_config or {}).get("weight_block_size") or ()) == [128, 128]


WEIGHED_INPUTS = ("Llama4ForCausalLM", "Llama4ForConditionalGeneration")
"""Classes that put the router's weights on the inputs of their experts."""

OWN_RUNNERS = (
    Barred(
        "moe_runner_backend",
        lambda c: not c.gpu.is_cuda or c.gpu.major not in (9, 10),
        "its kernels are for Hopper and SM100",
        "",
        lambda _: (setting(moe_runner_backend="triton", lora_backend="triton"),),
    ),
    Barred("moe_a2a_backend", lambda c: c.moe_a2a_backend != "none", "adapted experts do not exchange tokens"),
    Barred(
        "moe_runner_backend",
        lambda c: (
            served_quantization(c).method not in (None, "modelopt_fp4", "fp8")
            or (served_quantization(c).method == "fp8" and not _whole_blocks(c))
        ),
        "it adapts experts in bfloat16, in FP8 with blocks of 128 by 128, and in NVFP4",
        "",
        lambda _: (setting(moe_runner_backend="triton", lora_backend="triton"), dropping("moe_runner_backend")),
    ),
    Barred(
        "dtype",
        lambda c: model_dtype(c) != "bfloat16",
        "adapted experts compute in bfloat16",
        "",
        lambda _: (setting(dtype="bfloat16"), dropping("dtype")),
    ),
    Barred(
        "moe_runner_backend",
        lambda c: c.model.architecture == "GptOssForCausalLM",
        "its experts have biases",
        "",
        lambda _: (setting(moe_runner_backend="triton", lora_backend="triton"),),
    ),
    Barred(
        "moe_runner_backend",
        lambda c: activation(c) not in (None, SQUARED) or c.model.architecture in WEIGHED_INPUTS,
        "it computes SiLU and squared ReLU, with the router's weights on the outputs",
        "",
        lambda _: (setting(moe_runner_backend="triton", lora_backend="triton"),),
    ),
    Barred(
        "moe_runner_backend",
        lambda c: served_quantization(c).method == "fp8" and c.model.hidden_size % 128 != 0,
        "a model in FP8 has to be a multiple of 128 wide",
        "",
        lambda _: (setting(moe_runner_backend="triton", lora_backend="triton"),),
    ),
)


@lora.refuses(
    "SPC1021", "lora-runner-of-other-experts", raises="NotImplementedError", late=True, since="0.5.23",
    sglang="lora/moe/runner.py:_admit",
    bad=(
        f"gpu=rtxpro6000 model=qwen3-30b-a3b -- {EXPERTS} --lora-backend triton_v2 --moe-runner-backend lora_triton",
        f"model=qwen3-30b-a3b -- {EXPERTS} --lora-backend triton_v2 --moe-runner-backend lora_triton --dtype float16",
    ),
    good=f"model=qwen3-30b-a3b -- {EXPERTS} --lora-backend triton_v2 --moe-runner-backend lora_triton",
)  # fmt: skip
def lora_runner_of_other_experts(c: Config) -> Refusal | None:
    """LoRA's own MoE runners adapt experts of few kinds, on Hopper and SM100.

    `lora_triton`, `lora_cutedsl` and `lora_marlin` know experts in bfloat16, block-wise FP8 and NVFP4, without an all-to-all exchange.
    """
    if not c.moe_runner_backend.startswith("lora_") or not _adapts_experts(c):
        return None
    return first_barred(
        c,
        OWN_RUNNERS,
        f"with {c.shown('moe_runner_backend')} when the adapters are set up",
        "moe_runner_backend",
        "model_path",
    )


def _triton(_: Config) -> tuple[Change, ...]:
    return (setting(moe_runner_backend="triton"), dropping("moe_runner_backend"))


EXPERIMENTAL = (
    Barred(
        "moe_runner_backend",
        lambda c: c.moe_runner_backend == "experimental_sgl_marlin" and c.gpu.major < 9,
        "it needs Hopper or newer",
        "0.5.16",
        _triton,
    ),
    Barred(
        "moe_runner_backend",
        lambda c: c.moe_runner_backend == "experimental_sgl_marlin" and activation(c) is not None,
        "it computes plain SiLU with a gate",
        "0.5.16",
        _triton,
    ),
    Barred(
        "moe_runner_backend",
        lambda c: c.moe_runner_backend == "experimental_sgl_trtllm" and activation(c) not in (None, "a bounded SwiGLU"),
        "it computes SiLU with a gate",
        "",
        _triton,
    ),
    Barred(
        "moe_runner_backend",
        lambda c: (
            c.moe_runner_backend == "experimental_sgl_trtllm"
            and served_quantization(c).method in ("fp8", "mxfp8", "modelopt_fp8", "compressed-tensors")
            and not (
                served_quantization(c).method == "fp8" and (c.model.quantization_config or {}).get("weight_block_size")
            )
        ),
        "of FP8 experts it knows those with a scale for each block, other than MXFP8",
        "",
        _triton,
    ),
)


@lora.refuses(
    "SPC1043", "experimental-runner-of-other-adapted-experts", raises="AssertionError", late=True, since="0.5.13",
    sglang="lora/trtllm_lora_temp/lora_layer.py:init_experimental_sgl_trtllm_lora",
    bad=(
        f"gpu=b200 model=qwen3-30b-a3b -- {EXPERTS} --moe-runner-backend experimental_sgl_trtllm --quantization fp8",
        f"gpu=a100 model=qwen3-30b-a3b -- {EXPERTS} --moe-runner-backend experimental_sgl_marlin --lora-backend triton "
        "--lora-use-virtual-experts",
    ),
    good=f"gpu=b200 model=qwen3-30b-a3b -- {EXPERTS} --moe-runner-backend experimental_sgl_trtllm",
)  # fmt: skip
def experimental_runner_of_other_adapted_experts(c: Config) -> Refusal | None:
    """The experimental MoE runners adapt few kinds of experts.

    They compute SiLU with a gate; `experimental_sgl_trtllm` knows bfloat16, block-wise FP8 and NVFP4, `experimental_sgl_marlin` needs
    Hopper or newer. Take triton.
    """
    if not c.moe_runner_backend.startswith("experimental_") or not _adapts_experts(c):
        return None
    return first_barred(
        c, EXPERIMENTAL, "for adapted experts when the adapters are set up", "lora_target_modules", "model_path"
    )


def _scatters_inputs(c: Config) -> bool:
    """Whether the first layers get their inputs scattered over the ranks (AttnTpContext.init_context)."""
    if not c.enable_attn_tp_input_scattered or c.tp_size <= 1 or attention_dp(c) or c.moe_a2a_backend != "none":
        return False
    if c.model.text_hf("q_lora_rank") is None or not c.model.uses_mla or c.model.is_deepseek_dsa:
        return False
    whole = c.moe_dense_tp_size == 1 or cuda_graph.backend_of(c, "prefill") == "tc_piecewise"
    return not whole and c.speculative_algorithm != "EAGLE3"


WITHOUT_QUANT_INFO = ("bitsandbytes", "gguf", "modelopt_fp8", "w4afp8")
"""Methods whose experts do not tell adapters how their weights are stored (get_triton_quant_info)."""


def _attention_only(_: Config) -> tuple[Change, ...]:
    return (
        setting(lora_target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]),
        dropping("enable_lora", "lora_paths"),
    )


UNFIT = (
    Barred(
        "enable_lora_overlap_loading",
        lambda c: bool(c.enable_lora_overlap_loading) and attention_dp(c),
        "with attention data parallelism the ranks cannot agree on an adapter's place while others run",
        "0.5.21",
    ),
    Barred(
        "lora_target_modules",
        lambda c: bool((_targets(c) or set()) & {"embed_tokens", "lm_head"}) and _scatters_inputs(c),
        "`--enable-attn-tp-input-scattered` leaves each rank a part of the embeddings only",
        "",
        lambda _: (dropping("enable_attn_tp_input_scattered"),),
    ),
    Barred(
        "lora_target_modules",
        lambda c: (
            c.model.architecture == "InternS2MobiusForCausalLM" and (_targets(c) or set()).issuperset(EXPERT_MODULES)
        ),
        "this model's banks of experts take no adapters",
        "0.5.18",
        _attention_only,
    ),
    Barred(
        "lora_target_modules",
        lambda c: (
            served_quantization(c).method in WITHOUT_QUANT_INFO and _adapts_experts(c) and c.moe_a2a_backend == "none"
        ),
        "experts of this quantization take no adapters",
        "0.5.11",
        _attention_only,
    ),
    Barred(
        "moe_runner_backend",
        lambda c: (
            c.moe_runner_backend in ("lora_triton", "lora_cutedsl")
            and served_quantization(c).method == "modelopt_fp4"
            and _has_experts(c)
        ),
        "only `lora_marlin` adapts experts in NVFP4",
        "0.5.23",
        lambda _: (setting(moe_runner_backend="lora_marlin"),),
    ),
    Barred(
        "moe_runner_backend",
        lambda c: (
            c.moe_runner_backend in ("flashinfer_cutlass", "flashinfer_cutedsl")
            and c.ep_size > 1
            and c.moe_a2a_backend == "none"
            and served_quantization(c).method == "fp8"
            and bool(c.model.num_experts)
        ),
        "FP8 experts run on Triton instead, which numbers the experts of a rank otherwise, and adapters rely on it",
        "0.5.23",
        _triton,
    ),
)


@lora.refuses(
    "SPC1042", "adapters-unfit-for-launch", raises="ValueError", late=True, since="0.5.10",
    bad=(
        "model=deepseek-v3 -- --tp-size 8 --enable-attn-tp-input-scattered --enable-lora --max-lora-rank 16 "
        "--lora-target-modules q_proj lm_head",
        f"model=qwen3-30b-a3b -- {EXPERTS} --quantization modelopt_fp8 --json-model-override-args "
        """'{"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}'""",
        "model=qwen3-235b-fp8 -- --tp-size 4 --ep-size 4 --enable-lora --max-lora-rank 16 --lora-target-modules q_proj "
        "--moe-runner-backend flashinfer_cutlass",
    ),
    good="model=deepseek-v3 -- --tp-size 8 --enable-lora --max-lora-rank 16 --lora-target-modules q_proj lm_head",
)  # fmt: skip
def adapters_unfit_for_launch(c: Config) -> Refusal | None:
    """The adapters cannot be set up beside this option.

    Some options leave a rank a part of the embeddings, some quantization methods do not tell how they store their experts, and NVFP4
    experts have one of LoRA's own runners only.
    """
    return first_barred(c, UNFIT, "when the adapters are set up", "model_path", "enable_lora")


@lora.refuses(
    "SPC1022", "adapters-of-one-name", raises="ValueError", late=True,
    sglang="lora/lora_manager.py:validate_new_adapter",
    bad="--enable-lora --lora-paths a=/first a=/second",
    good="--enable-lora --lora-paths a=/first b=/second",
)  # fmt: skip
def adapters_of_one_name(c: Config) -> Refusal | None:
    """Two adapters have one name.

    Requests choose an adapter by its name, so each in `--lora-paths` needs its own. Without a name it is the path.
    """
    names = [_name(path) for path in c.lora_paths or ()]
    twice = next((name for i, name in enumerate(names) if name is not None and name in names[:i]), None)
    if twice is None:
        return None
    return value_refused(
        c,
        "lora_paths",
        f"names two adapters `{twice}`, and SGLang stops when it loads the second.",
        "enable_lora",
        fixes=NO_FIX,
    )


def _name(adapter: object) -> str | None:
    """What an entry of `--lora-paths` calls its adapter: `name=path`, JSON, or the path itself."""
    if isinstance(adapter, Mapping):
        name = adapter.get("lora_name")
        return name if isinstance(name, str) else None
    return adapter.partition("=")[0] if isinstance(adapter, str) and not adapter.startswith("{") else None


def _files(c: Config) -> list[tuple[str, ModelFacts]]:
    """The startup adapters whose adapter_config.json can be read: the name of each, and what it states."""
    found = []
    for entry in c.lora_paths or ():
        name, path = _named(entry)
        try:
            found.append((name, c.adapter(path)))
        except NotKnown:
            continue
    return found


def _named(entry: object) -> tuple[str, str]:
    """The name of a startup adapter and its folder; without a name the folder is the name."""
    if isinstance(entry, Mapping):
        return str(entry.get("lora_name")), str(entry.get("lora_path"))
    name, equals, path = str(entry).partition("=")
    return (name, path) if equals else (name, name)


def _unfit(c: Config, adapter: ModelFacts) -> tuple[str, str]:
    """Why an adapter cannot be served by what its file states, and the field that has a part in it."""
    if adapter.hf("use_dora") is True and c.since("0.5.11"):
        return "it is a DoRA adapter", ""
    modules, allowed = adapter.hf("target_modules"), _targets(c)
    if allowed is not None and "all" in allowed and c.before("0.5.9"):
        return "", ""
    if isinstance(modules, str):
        whole = modules in ("all-linear", "all") and c.since("0.5.9")
        if whole and (allowed is not None or c.since("0.5.12")):
            return "", ""
        return f'its `target_modules` is "{modules}", where SGLang reads a list of names', ""
    if not isinstance(modules, list) or allowed is None or "all" in allowed:
        return "", ""
    wanted = {ALIASES.get(name.rpartition(".")[2], name.rpartition(".")[2]) for name in map(str, modules)}
    known = {*ALIASES.values(), "o_proj", "down_proj"}
    outside = sorted(name for name in wanted & known if name not in allowed)
    if outside:
        return f"it changes {', '.join(outside)} too, which `--lora-target-modules` leaves out", "lora_target_modules"
    return "", ""


@lora.refuses(
    "SPC1038", "adapter-file-not-served", raises="ValueError", late=True,
    sglang="lora/lora_manager.py:validate_new_adapter",
    bad=(
        "--enable-lora --lora-paths a={models}/dora",
        "--enable-lora --lora-paths a={models}/pattern",
        "--enable-lora --lora-paths a={models}/lora --lora-target-modules o_proj --max-lora-rank 16",
    ),
    good=(
        "--enable-lora --lora-paths a={models}/lora",
        "--enable-lora --lora-paths a={models}/lora --lora-target-modules q_proj v_proj --max-lora-rank 16",
    ),
)  # fmt: skip
def adapter_file_not_served(c: Config) -> Refusal | None:
    """SGLang does not serve what the adapter's own file states.

    The adapter_config.json of an adapter in the workspace is read: `use_dora` has to be false, and `target_modules` a list of names, each
    of them among those of `--lora-target-modules` if that is set. SGLang stops when it loads the adapters.
    """
    for name, adapter in _files(c):
        why, field = _unfit(c, adapter)
        if why:
            return Refusal(
                at="lora_paths",
                related_fields=(field,) if field else (),
                message=f"The adapter {name} is refused when it is loaded: {why}.",
                fixes=(*((dropping(field),) if field else ()), dropping("enable_lora", "lora_paths")),
            )
    return None
