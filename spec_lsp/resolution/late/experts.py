"""What MoE layers and the exchanges between their ranks refuse when they are built.

Follows layers/moe/fused_moe_triton/layer.py, layers/moe/token_dispatcher/ and the MoE blocks of models/.

Modelled: experts that ranks cannot share, more ranks than experts, exchanges with a dispatch mode they lack, DeepEP's
and its kin's limit on tokens. Left out: packages that are not installed; NVSHMEM and RDMA at run time; runners that
only plugins bring.
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, dropping_env, setting, setting_env
from spec_lsp.resolution.late.layout import served_class
from spec_lsp.resolution.late.refused import value_refused
from spec_lsp.resolution.late.weights import moe_tp_size

moe = Handler("layers/moe/fused_moe_triton/layer.py:__init__", when=lambda c: bool(c.model.num_experts))


@moe.refuses(
    "SPC975",
    "fewer-experts-than-ranks",
    raises="ValueError",
    late=True,
    sglang="models/deepseek_v2.py:__init__",
    bad="model=qwen3-30b-a3b -- --tp-size 256 --nnodes 32 "
    """--json-model-override-args '{"num_attention_heads": 256, "num_key_value_heads": 4}'""",
    good="model=qwen3-30b-a3b -- --tp-size 4",
)
def fewer_experts_than_ranks(c: Config) -> Refusal | None:
    """There are more TP ranks than experts.

    The MoE blocks of this model need at least one expert for each TP rank, however the experts are split.
    """
    experts = c.model.num_experts
    facts = served_class(c, c.model)
    if experts is None or c.tp_size <= experts or facts is None or not facts.expert_each:
        return None
    return Refusal(
        at="tp_size",
        related_fields=("model_path",),
        message=f"{c.shown('tp_size')} is more than the {experts} experts of this model, and SGLang stops when it "
        "builds them. Use fewer ranks.",
        fixes=(setting(tp_size=experts),),
    )


BALANCERS = (
    "auto", "deepseek", "deepseek_hierarchical", "deepseek_vec", "deepseek_vec_hierarchical", "elasticity_aware",
    "elasticity_aware_hierarchical",
)  # fmt: skip
"""The members of EplbAlgorithm, of all releases."""


@moe.refuses(
    "SPC998",
    "unknown-expert-balancer",
    raises="KeyError",
    late=True,
    sglang="eplb/eplb_algorithms/__init__.py:compute_algorithm",
    bad="model=qwen3-30b-a3b -- --tp-size 4 --ep-size 4 --enable-eplb --eplb-algorithm deepsek",
    good="model=qwen3-30b-a3b -- --tp-size 4 --ep-size 4 --enable-eplb --eplb-algorithm deepseek",
)
def unknown_expert_balancer(c: Config) -> Refusal | None:
    """There is no expert balancing algorithm of this name.

    `--eplb-algorithm` accepts any text, and SGLang looks it up when it first rebalances the experts.
    """
    if not c.enable_eplb or c.eplb_algorithm in BALANCERS:
        return None
    return Refusal(
        at="eplb_algorithm",
        related_fields=("enable_eplb",),
        message=f"{c.shown('eplb_algorithm')} is refused: the algorithms are {', '.join(BALANCERS)}.",
        choices=BALANCERS,
    )


@moe.refuses(
    "SPC695",
    "copies-of-experts-that-stay",
    raises="AssertionError",
    late=True,
    sglang="models/bailing_moe.py:__init__",
    bad="model=qwen3-30b-a3b -- --tp-size 4 --ep-size 4 --ep-num-redundant-experts 4 "
    """--json-model-override-args '{"architectures": ["BailingMoeV2ForCausalLM"]}'""",
    good="model=qwen3-30b-a3b -- --tp-size 4 --ep-size 4 --ep-num-redundant-experts 4",
)
def copies_of_experts_that_stay(c: Config) -> Refusal | None:
    """This model's class does not support redundant experts.

    Ling and Ring (Bailing), LLaDA 2 and Sarvam have one place for each expert, and stop on a bare assertion when the MoE layers are built.
    """
    if not (c.ep_num_redundant_experts or 0) > 0:
        return None
    facts = served_class(c, c.model)
    if facts is None or facts.expert_copies:
        return None
    return value_refused(
        c,
        "ep_num_redundant_experts",
        f"is refused for {c.model.architecture} when SGLang builds the MoE layers: it has one place for each expert. Remove it.",
        "model_path",
    )


@moe.refuses(
    "SPC976",
    "experts-not-divisible-by-expert-ranks",
    raises="AssertionError",
    late=True,
    bad="""model=qwen3-30b-a3b -- --tp-size 4 --ep-size 4 --json-model-override-args '{"num_experts": 126}'""",
    good="model=qwen3-30b-a3b -- --tp-size 4 --ep-size 4",
)
def experts_not_divisible_by_expert_ranks(c: Config) -> Refusal | None:
    """The expert-parallel ranks cannot share the experts evenly.

    Every rank holds as many experts as the others: `--ep-size` has to divide the model's experts and the copies of
    `--ep-num-redundant-experts` together.
    """
    experts = (c.model.num_experts or 0) + (c.ep_num_redundant_experts or 0)
    if c.ep_size <= 1 or experts % c.ep_size == 0 or c.ep_join_mode == "scale":
        return None
    redundant = c.ep_num_redundant_experts or 0
    return Refusal(
        at="ep_size",
        related_fields=("ep_num_redundant_experts", "model_path"),
        message=f"{c.shown('ep_size')} does not divide the {experts} experts"
        f"{f' ({redundant} of them copies)' if redundant else ''}, so SGLang stops when it builds the layers.",
        fixes=(
            setting(ep_size=next(n for n in range(c.ep_size, 0, -1) if experts % n == 0 and c.tp_size % n == 0)),
            setting(ep_num_redundant_experts=redundant + -experts % c.ep_size),
        ),
    )


@moe.refuses(
    "SPC977", "expert-width-not-divisible-by-ranks", raises="AssertionError", late=True,
    bad="""model=qwen3-30b-a3b -- --tp-size 4 --json-model-override-args '{"moe_intermediate_size": 770}'""",
    good="model=qwen3-30b-a3b -- --tp-size 4",
)  # fmt: skip
def expert_width_not_divisible_by_ranks(c: Config) -> Refusal | None:
    """The ranks cannot share an expert's matrices evenly.

    Tensor parallelism cuts every expert into `tp / ep` equal slices. Spread whole experts with `--ep-size`, or use
    another TP size.
    """
    width, slices = c.model.text_hf("moe_intermediate_size"), moe_tp_size(c)
    if not isinstance(width, int) or slices <= 1 or width % slices == 0:
        return None
    return Refusal(
        at="tp_size",
        related_fields=("ep_size", "model_path"),
        message=f"{c.shown('tp_size')} cannot cut this model's experts ({width} wide) into {slices} equal slices, so "
        "SGLang stops when it builds the layers. Spread the experts with `--ep-size`.",
        fixes=(setting(ep_size=c.tp_size),),
    )


LOW_LATENCY_ONLY = {"mooncake": "", "nixl": "0.5.10"}
"""Exchanges that have no dispatch for prefill, and since when they are there."""


@moe.refuses(
    "SPC978",
    "exchange-without-prefill-dispatch",
    raises="NotImplementedError",
    late=True,
    sglang="layers/moe/token_dispatcher/mooncake.py:__init__",
    bad=(
        "model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend mooncake",
        "model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend nixl --deepep-mode normal",
    ),
    good="model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend mooncake --deepep-mode low_latency",
)
def exchange_without_prefill_dispatch(c: Config) -> Refusal | None:
    """This all-to-all backend dispatches in low-latency mode only.

    Mooncake's and NIXL's exchanges have no mode for large prefill batches. `--deepep-mode auto`, the default, needs
    both modes, so the MoE layers stop when they are built. Set `--deepep-mode low_latency`, or use DeepEP, which has
    both.
    """
    since = LOW_LATENCY_ONLY.get(c.moe_a2a_backend)
    if since is None or (since and c.before(since)) or c.deepep_mode == "low_latency":
        return None
    return Refusal(
        at="moe_a2a_backend",
        related_fields=("deepep_mode",),
        message=f"{c.shown('moe_a2a_backend')} has no dispatch for prefill, which {c.shown('deepep_mode')} asks for, "
        "so SGLang stops when it builds the MoE layers. Set `--deepep-mode low_latency`.",
        fixes=(setting(deepep_mode="low_latency"), setting(moe_a2a_backend="deepep")),
    )


DISPATCH_LIMIT = 1024
DISPATCH_VARIABLES = {
    "deepep": "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK",
    "mooncake": "SGLANG_MOONCAKE_EP_NUM_MAX_DISPATCH_TOKENS_PER_RANK",
    "nixl": "SGLANG_NIXL_EP_NUM_MAX_DISPATCH_TOKENS_PER_RANK",
}


@moe.refuses(
    "SPC979",
    "dispatch-buffer-above-limit",
    raises="AssertionError",
    late=True,
    sglang="layers/moe/token_dispatcher/deepep.py:__init__",
    bad="model=deepseek-v3 SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK=2048 -- --tp-size 8 --moe-a2a-backend deepep",
    good="model=deepseek-v3 SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK=256 -- --tp-size 8 --moe-a2a-backend deepep",
)
def dispatch_buffer_above_limit(c: Config) -> Refusal | None:
    """The low-latency buffer of an all-to-all backend holds at most 1024 tokens.

    DeepEP's kernels (and Mooncake's and NIXL's) count finished sends in a buffer of fixed size; more tokens on a rank
    would overrun it.
    """
    variable = DISPATCH_VARIABLES.get(c.moe_a2a_backend)
    if variable is None or not c.env.is_set(variable):
        return None
    tokens = c.env.number(variable, 0)
    if tokens <= DISPATCH_LIMIT:
        return None
    return Refusal(
        at=variable,
        related_fields=("moe_a2a_backend",),
        message=f"`{variable}={tokens}` is more than the {DISPATCH_LIMIT} tokens that {c.shown('moe_a2a_backend')} "
        "can hold on a rank, so SGLang stops when it builds the MoE layers.",
        fixes=(setting_env(**{variable: str(DISPATCH_LIMIT)}), dropping_env(variable)),
    )


@moe.refuses(
    "SPC980",
    "pplx-through-pipeline",
    raises="AssertionError",
    late=True,
    since="0.5.17",
    sglang="layers/moe/token_dispatcher/pplx.py:_ensure_nvshmem",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --pp-size 2 --moe-a2a-backend pplx "
    "--chunked-prefill-size 256",
    good="model=qwen3-30b-a3b -- --tp-size 2 --dp-size 2 --enable-dp-attention --moe-a2a-backend pplx "
    "--chunked-prefill-size 256",
)
def pplx_through_pipeline(c: Config) -> Refusal | None:
    """The PPLX exchange spans all GPUs of the launch.

    Its expert-parallel group has to be the whole world, which pipeline stages cut.
    """
    if c.moe_a2a_backend != "pplx" or c.pp_size <= 1:
        return None
    return Refusal(
        at="pp_size",
        related_fields=("moe_a2a_backend",),
        message=f"{c.shown('moe_a2a_backend')} exchanges tokens among all GPUs, but {c.shown('pp_size')} cuts them "
        "into stages, so SGLang stops when it builds the MoE layers. Use one stage.",
        fixes=(setting(pp_size=1), setting(moe_a2a_backend="deepep")),
    )


@moe.refuses(
    "SPC1032", "two-batches-without-exchange", raises="KeyError", late=True, since="0.5.6", until="0.5.7",
    sglang="models/deepseek_v2.py:op_experts",
    bad="sglang=0.5.6 model=deepseek-v3 -- --tp-size 8 --enable-two-batch-overlap",
    good="sglang=0.5.6 model=deepseek-v3 -- --tp-size 8 --enable-two-batch-overlap --moe-a2a-backend deepep",
)  # fmt: skip
def two_batches_without_exchange(c: Config) -> Refusal | None:
    """DeepSeek's and Qwen3's MoE blocks overlap two batches over an exchange only.

    `--enable-two-batch-overlap` computes one half of a batch while the other half's tokens travel. Without an exchange the blocks have no
    tokens from it, and SGLang stops in the first forward pass; later releases check it at start.
    """
    overlapping = ("DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "Qwen3MoeForCausalLM")
    if not c.enable_two_batch_overlap or c.moe_a2a_backend != "none" or c.model.architecture not in overlapping:
        return None
    return value_refused(
        c,
        "enable_two_batch_overlap",
        "has no communication to overlap: there is no all-to-all backend, and SGLang stops in the first forward pass. Remove it.",
        "moe_a2a_backend",
        "model_path",
        fixes=(dropping("enable_two_batch_overlap"), setting(moe_a2a_backend="deepep")),
    )
