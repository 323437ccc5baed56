"""Expert parallelism: redundant experts, their placement and metrics, and groups that grow and shrink.

Follows arg_groups/parallel_hook.py. Left out: the InfiniBand devices that elastic EP checks against /sys/class/infiniband (the field that
they normalize becomes unknown).
"""

from __future__ import annotations

from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution.engine import (
    Config,
    Handler,
    Refusal,
    dropping,
    dropping_env,
    setting,
)
from spec_lsp.resolution.ranks import (
    attention_cp_size,
    attention_dp,
    attention_dp_field,
    attention_dp_size,
    attention_tp_size,
    loads_from_instance,
)

# --- handle_shared_experts_tp -----------------------------------------------------------------------------------------

handle_shared_experts_tp = Handler(
    "parallel_hook.py:handle_shared_experts_tp", since="0.5.21", when=lambda c: c.shared_experts_tp_size is not None
)

EXPERT_PARALLEL_EXCHANGES = ("deepep", "megamoe", "mooncake", "ascend_fuseep", "mori")


@handle_shared_experts_tp.refuses(
    "SPC545", "shared-experts-tp-not-available", raises="ValueError",
    bad="model=deepseek-v3 -- --tp-size 8 --shared-experts-tp-size 2", good="model=deepseek-v3 -- --tp-size 8",
)  # fmt: skip
def shared_experts_tp_not_available(c: Config) -> Refusal | None:
    """Splitting the shared experts by themselves needs Kimi-K3, an all-to-all backend and a fitting size.

    `--shared-experts-tp-size` gives the shared experts a tensor-parallel width of their own: a divisor of the attention
    TP width, on Kimi-K3 alone, with experts exchanged by DeepEP, MegaMoE, Mooncake, MoRI or Ascend's fused exchange.
    """
    size, width = c.shared_experts_tp_size, attention_tp_size(c)
    if size < 1 or width % size:
        why = f"it has to divide the attention TP width, {width}"
    elif loads_from_instance(c) or c.model.architecture != "KimiK3ForConditionalGeneration":
        why = "only Kimi-K3 has shared experts that can be split so"
    elif c.moe_a2a_backend not in EXPERT_PARALLEL_EXCHANGES:
        why = f"it needs an all-to-all backend ({', '.join(EXPERT_PARALLEL_EXCHANGES)})"
    else:
        return None
    return Refusal(
        at="shared_experts_tp_size",
        related_fields=("tp_size", "moe_a2a_backend"),
        message=f"{c.shown('shared_experts_tp_size')} cannot be used: {why}. Remove it.",
    )


# --- handle_eplb_and_dispatch -----------------------------------------------------------------------------------------

handle_eplb_and_dispatch = Handler("parallel_hook.py:handle_eplb_and_dispatch")


@handle_eplb_and_dispatch.adjusts("expert_distribution_recorder_mode")
def record_experts_for_eplb(c: Config) -> None:
    """The expert load balancer needs statistics of which experts are used."""
    if c.enable_eplb and c.expert_distribution_recorder_mode is None:
        c.set(expert_distribution_recorder_mode="stat")


def _needs_same_replica_on_all_ranks(c: Config) -> bool:
    """Without an all-to-all exchange every rank computes the same tokens and has to pick the same copy of an expert."""
    return c.since("0.5.17") and c.moe_a2a_backend == "none"


@handle_eplb_and_dispatch.adjusts("ep_dispatch_algorithm")
def choose_dispatch_algorithm(c: Config) -> None:
    """Experts that may have several copies need a rule for which copy is used."""
    placed = c.init_expert_location is not None if c.before("0.5.6") else c.init_expert_location != "trivial"
    if (c.enable_eplb or placed) and c.ep_dispatch_algorithm is None:
        c.set(ep_dispatch_algorithm="dynamic" if _needs_same_replica_on_all_ranks(c) else "static")


@handle_eplb_and_dispatch.refuses(
    "SPC546", "per-rank-expert-copies-without-exchange", raises="ValueError", since="0.5.17",
    bad="model=deepseek-v3 -- --tp-size 8 --ep-size 8 --ep-dispatch-algorithm static",
    good="model=deepseek-v3 -- --tp-size 8 --ep-size 8 --ep-dispatch-algorithm dynamic",
)  # fmt: skip
def per_rank_expert_copies_without_exchange(c: Config) -> Refusal | None:
    """This dispatch rule picks another copy of an expert on each rank, which needs an all-to-all backend.

    With `--moe-a2a-backend none` all ranks compute the same tokens and add up their parts, so they have to agree on the
    copy: `dynamic` does that. `static` and `lp` are for exchanges that send each token to one rank.
    """
    if c.ep_dispatch_algorithm in ("static", "lp") and _needs_same_replica_on_all_ranks(c):
        return Refusal(
            at="ep_dispatch_algorithm",
            related_fields=("moe_a2a_backend",),
            message=f"{c.shown('ep_dispatch_algorithm')} lets each rank pick its own copy of an expert, but without "
            "an all-to-all backend all ranks have to pick the same. Use `dynamic`, or an all-to-all backend.",
            fixes=(
                setting(ep_dispatch_algorithm="dynamic"),
                dropping("ep_dispatch_algorithm"),
                setting(moe_a2a_backend="deepep"),
            ),
        )
    return None


@handle_eplb_and_dispatch.refuses(
    "SPC547",
    "eplb-without-expert-parallelism",
    raises="AssertionError",
    bad="model=deepseek-v3 -- --tp-size 8 --enable-eplb",
    good="model=deepseek-v3 -- --tp-size 8 --ep-size 8 --enable-eplb",
)
def eplb_without_expert_parallelism(c: Config) -> Refusal | None:
    """The expert load balancer needs experts spread over several ranks.

    `--enable-eplb` moves experts between expert-parallel ranks; with `--ep-size 1` there is nowhere to move them to,
    and SGLang stops with a bare AssertionError. Set `--ep-size`, or an all-to-all backend, which sets it to the TP size.
    """
    if c.enable_eplb and (c.before("0.5.16") or c.ep_join_mode != "scale") and c.ep_size <= 1:
        return Refusal(
            at="enable_eplb",
            related_fields=("ep_size",),
            message=f"{c.shown('enable_eplb')} has no other rank to move experts to with {c.shown('ep_size')}, and "
            "SGLang stops with a bare AssertionError. Set `--ep-size` to the TP size or leave the balancer out.",
            fixes=(setting(ep_size=c.tp_size), dropping("enable_eplb")),
        )
    return None


# --- handle_expert_distribution_metrics -------------------------------------------------------------------------------

handle_expert_distribution_metrics = Handler("parallel_hook.py:handle_expert_distribution_metrics")


@handle_expert_distribution_metrics.refuses(
    "SPC548", "removed-expert-balancedness-variable", raises="ValueError", since="0.5.18", until="0.5.21",
    bad="sglang=0.5.20 SGLANG_ENABLE_EPLB_BALANCEDNESS_METRIC=1 -- --tp-size 1", good="sglang=0.5.20 -- --tp-size 1",
)  # fmt: skip
def removed_expert_balancedness_variable(c: Config) -> Refusal | None:
    """An environment variable of older releases stops this one.

    `SGLANG_ENABLE_EPLB_BALANCEDNESS_METRIC` was replaced by `--expert-balancedness-report-mode`.
    """
    if c.env.is_set("SGLANG_ENABLE_EPLB_BALANCEDNESS_METRIC"):
        return Refusal(
            at="SGLANG_ENABLE_EPLB_BALANCEDNESS_METRIC",
            message="`SGLANG_ENABLE_EPLB_BALANCEDNESS_METRIC` is gone, and SGLang stops when it is set. Use "
            "`--expert-balancedness-report-mode` instead.",
            fixes=(dropping_env("SGLANG_ENABLE_EPLB_BALANCEDNESS_METRIC"),),
        )
    return None


@handle_expert_distribution_metrics.adjusts("expert_distribution_recorder_mode")
def record_experts_for_metrics(c: Config) -> None:
    """Reporting how evenly experts are used needs the statistics."""
    if c.expert_distribution_recorder_mode is not None:
        return
    if c.expert_balancedness_report_mode != "off" if c.since("0.5.18") else c.enable_expert_distribution_metrics:
        c.set(expert_distribution_recorder_mode="stat")


@handle_expert_distribution_metrics.adjusts("expert_distribution_recorder_buffer_size")
def size_expert_recorder(c: Config) -> None:
    """The recorder of expert use keeps as many steps as there are between two rebalancings, else 1000."""
    if c.expert_distribution_recorder_buffer_size is not None:
        return
    if c.eplb_rebalance_num_iterations is not None:
        c.set(expert_distribution_recorder_buffer_size=c.eplb_rebalance_num_iterations)
    elif c.expert_distribution_recorder_mode is not None:
        c.set(expert_distribution_recorder_buffer_size=1000)


# --- handle_elastic_ep ------------------------------------------------------------------------------------------------

handle_elastic_ep = Handler("parallel_hook.py:handle_elastic_ep")

ELASTIC = (
    "model=deepseek-v3 -- --tp-size 8 --ep-size 8 --elastic-ep-backend mooncake --moe-a2a-backend nixl --enable-dp-lm-head "
    "--load-balance-method round_robin --deepep-mode low_latency"
)
"""The beginning of examples with a group that may grow."""

ELASTIC_BALANCERS = ("elasticity_aware", "elasticity_aware_hierarchical")


@handle_elastic_ep.adjusts("ep_join_mode", since="0.5.16", until="0.5.21")
def read_deprecated_rejoin(c: Config) -> None:
    """`--elastic-ep-rejoin` is the old spelling of `--elastic-ep-join-mode recover`."""
    if c.elastic_ep_rejoin and c.ep_join_mode is None:
        c.set(ep_join_mode="recover")


@handle_elastic_ep.adjusts("eplb_algorithm")
def balance_elastically(c: Config) -> None:
    """With elastic expert parallelism the load balancer has to be the elasticity-aware one."""
    if c.elastic_ep_backend is not None and c.enable_eplb and c.eplb_algorithm == "auto":
        c.set(eplb_algorithm="elasticity_aware")


@handle_elastic_ep.refuses(
    "SPC550",
    "elastic-ep-with-fixed-balancer",
    raises="AssertionError",
    bad="model=deepseek-v3 -- --tp-size 8 --ep-size 8 --elastic-ep-backend mooncake --enable-eplb --eplb-algorithm "
    "deepseek",
    good="model=deepseek-v3 -- --tp-size 8 --ep-size 8 --elastic-ep-backend mooncake --enable-eplb",
)
def elastic_ep_with_fixed_balancer(c: Config) -> Refusal | None:
    """Elastic expert parallelism needs a load balancer that handles lost ranks.

    When a rank dies its experts have to move; only the elasticity-aware algorithms plan for that. `auto` chooses one.
    """
    allowed = ELASTIC_BALANCERS if c.since("0.5.10") else ELASTIC_BALANCERS[:1]
    if c.elastic_ep_backend is not None and c.enable_eplb and c.eplb_algorithm not in allowed:
        return Refusal(
            at="eplb_algorithm",
            related_fields=("elastic_ep_backend",),
            message=f"{c.shown('eplb_algorithm')} does not handle lost ranks, which {c.shown('elastic_ep_backend')} "
            "has to expect. Remove it or use `elasticity_aware`.",
            fixes=(dropping("eplb_algorithm"), setting(eplb_algorithm="elasticity_aware")),
        )
    return None


@handle_elastic_ep.refuses(
    "SPC551", "elastic-ep-with-pipeline", raises="AssertionError", since="0.5.11",
    bad="model=deepseek-v3 -- --tp-size 8 --ep-size 8 --elastic-ep-backend mooncake --pp-size 2",
    good="model=deepseek-v3 -- --tp-size 8 --ep-size 8 --elastic-ep-backend mooncake",
)  # fmt: skip
def elastic_ep_with_pipeline(c: Config) -> Refusal | None:
    """Elastic expert parallelism does not run with pipeline parallelism.

    Ranks that come and go would have to do so in every pipeline stage at once.
    """
    if c.elastic_ep_backend is not None and c.pp_size != 1:
        return Refusal(
            at="pp_size",
            related_fields=("elastic_ep_backend",),
            message=f"{c.shown('pp_size')} cannot be combined with {c.shown('elastic_ep_backend')}: ranks could not "
            "leave every pipeline stage at once. Use one of the two.",
            fixes=(dropping("pp_size"), dropping("elastic_ep_backend")),
        )
    return None


@handle_elastic_ep.adjusts("mooncake_ib_device", since="0.5.9")
def normalize_elastic_devices(c: Config) -> None:
    """Mooncake's InfiniBand devices are checked against those of the machine."""
    if c.elastic_ep_backend == "mooncake" and c.mooncake_ib_device is not None:
        raise NotKnown("InfiniBand devices", "they are listed in /sys/class/infiniband of the machine")


def _elastic_join_conflict(c: Config) -> tuple[str, str] | None:
    """The field that does not fit the way a rank joins or grows an elastic group, and why, in SGLang's order."""
    backend = c.elastic_ep_backend
    if c.before("0.5.16"):
        alone = c.elastic_ep_rejoin and backend is None
        return ("elastic_ep_rejoin", "it needs `--elastic-ep-backend`") if alone else None
    if c.elastic_ep_rejoin and c.ep_join_mode not in (None, "recover"):
        return "elastic_ep_rejoin", f"it means `--elastic-ep-join-mode recover`, not `{c.ep_join_mode}`"
    if c.ep_join_mode is not None:
        if backend is None:
            return "ep_join_mode", "it needs `--elastic-ep-backend`"
        if c.ep_join_mode == "scale" and c.node_rank != 1:
            return "node_rank", "a group that joins to scale up is `--node-rank 1`"
        if c.ep_join_mode == "scale" and c.ep_join_rank_offset <= 0:
            return "ep_join_mode", "`--elastic-ep-join-rank-offset` has to give the present size of the group"
    if c.ep_join_rank_offset and c.ep_join_mode != "scale":
        return "ep_join_rank_offset", "it belongs to `--elastic-ep-join-mode scale`"
    if c.max_ep_size is not None and (backend is None or c.max_ep_size <= 0):
        return "max_ep_size", "it needs `--elastic-ep-backend`" if backend is None else "it has to be positive"
    scaling = backend is not None and c.max_ep_size is not None and c.max_ep_size > c.tp_size
    if c.elastic_ep_initial_size is not None and not scaling:
        return "elastic_ep_initial_size", "it needs `--max-ep-size` above the TP size"
    return _elastic_scaling_conflict(c) if scaling else None


def _elastic_scaling_conflict(c: Config) -> tuple[str, str] | None:
    """The first reason why a group cannot grow."""
    return next((found for check in _ELASTIC_SCALING if (found := check(c))), None)


def _elastic_replica_conflict(c: Config) -> tuple[str, str] | None:
    """Since 0.5.23 an attention group may span several ranks; every size must then be a whole number of groups."""
    if c.before("0.5.23"):
        return None
    if c.tp_size % (c.attn_dp_size * c.attn_cp_size):
        return "attn_dp_size", f"{c.tp_size} ranks do not divide into its groups"
    width = attention_tp_size(c) * c.attn_cp_size
    sizes = [("max_ep_size", c.max_ep_size), ("elastic_ep_initial_size", c.elastic_ep_initial_size or c.tp_size)]
    if c.ep_join_mode == "scale":
        sizes.append(("ep_join_rank_offset", c.ep_join_rank_offset))
    for field, size in sizes:
        if size <= 0 or size % width:
            return field, f"attention groups of {width} ranks do not divide {size}"
    if attention_tp_size(c) > 1 and c.moe_dense_tp_size != 1:
        return "moe_dense_tp_size", "attention groups of several ranks need `--moe-dense-tp-size 1`"
    return None


def _elastic_service_conflict(c: Config) -> tuple[str, str] | None:
    checks = (
        ("elastic_ep_scale_timeout", c.elastic_ep_scale_timeout <= 0, "it has to be above zero"),
        ("tokenizer_worker_num", c.tokenizer_worker_num != 1, "a group that grows has one tokenizer worker"),
        ("use_ray", c.use_ray, "Ray cannot add ranks to it"),
        ("enable_elastic_expert_backup", c.enable_elastic_expert_backup, "it is not kept up while the group grows"),
    )
    return next(((field, why) for field, wrong, why in checks if wrong), None)


def _elastic_size_conflict(c: Config) -> tuple[str, str] | None:
    """Whether the sizes of the group, now and when it has grown, are consistent."""
    initial = c.elastic_ep_initial_size
    if c.ep_join_mode != "scale":
        wrong = initial is not None and initial != c.tp_size
        return ("elastic_ep_initial_size", f"the group starts with its TP size, {c.tp_size}") if wrong else None
    grown = c.ep_join_rank_offset + c.tp_size
    if initial is None:
        return "ep_join_mode", "who joins needs `--elastic-ep-initial-size`, the size the group started with"
    if initial > c.ep_join_rank_offset:
        return "elastic_ep_initial_size", f"the group has only {c.ep_join_rank_offset} ranks"
    if grown > c.max_ep_size:
        return "max_ep_size", f"with who joins the group has {grown} ranks"
    if c.tp_size == 1 and c.moe_dense_tp_size != 1:
        return "moe_dense_tp_size", "a single rank that joins needs `--moe-dense-tp-size 1`"
    return ("elastic_ep_initial_size", "it has to be positive") if initial <= 0 else None


def _elastic_exchange_conflict(c: Config) -> tuple[str, str] | None:
    if c.load_balance_method != "round_robin":
        return "load_balance_method", "only `round_robin` includes new ranks"
    if c.elastic_ep_backend != "mooncake":
        return "elastic_ep_backend", "only Mooncake can add ranks"
    if c.since("0.5.23") and attention_tp_size(c) % c.dcp_size:
        return "dcp_size", "it has to divide the ranks of an attention group"
    return None


def _elastic_graph_conflict(c: Config) -> tuple[str, str] | None:
    """CUDA graphs must be captured again when the group has grown; before 0.5.21 there may be none."""
    decode, prefill = (c.cuda_graph_config[phase]["backend"] for phase in ("decode", "prefill"))
    if decode != "disabled" and (c.before("0.5.21") or decode != "full"):
        instead = "none can be captured" if c.before("0.5.21") else "only `full` ones can be captured again"
        return "cuda_graph_backend_decode", f"{instead} when the group grows"
    if prefill != "disabled":
        return "cuda_graph_backend_prefill", "growing needs `--cuda-graph-backend-prefill disabled`"
    if decode == "disabled":
        return None
    checks = (
        ("device", c.device != "cuda"),
        ("speculative_algorithm", c.speculative_algorithm is not None),
        ("is_embedding", c.is_embedding),
        ("dllm_algorithm", c.dllm_algorithm is not None),
        ("encoder_only", c.encoder_only),
        ("forward_hooks", c.forward_hooks),
        ("enable_pdmux", c.enable_pdmux),
    )
    found = next((field for field, wrong in checks if wrong), None)
    return (found, "its CUDA graphs are not captured again when the group grows") if found else None


def _elastic_layout_conflict(c: Config) -> tuple[str, str] | None:
    groups = attention_dp_field(c)
    checks = (
        (groups, not attention_dp(c), "growing needs data-parallel attention"),
        ("enable_dp_lm_head", not c.enable_dp_lm_head, "growing needs `--enable-dp-lm-head`"),
        ("attn_cp_size", attention_cp_size(c) != 1, "growing needs `--attn-cp-size 1`"),
        ("moe_dp_size", c.moe_dp_size != 1, "growing needs `--moe-dp-size 1`"),
        ("ep_size", c.ep_size != c.tp_size, "growing needs the expert-parallel size to be the TP size"),
        (
            groups,
            c.before("0.5.23") and attention_dp_size(c) != c.tp_size,
            "growing needs as many attention groups as ranks",
        ),
        ("moe_a2a_backend", c.moe_a2a_backend != "nixl", "growing needs `--moe-a2a-backend nixl`"),
    )
    return next(((field, why) for field, wrong, why in checks if wrong), None)


_ELASTIC_SCALING = (
    _elastic_replica_conflict, _elastic_service_conflict, _elastic_size_conflict, _elastic_exchange_conflict,
    _elastic_graph_conflict, _elastic_layout_conflict,
)  # fmt: skip
"""What keeps a group from growing, in SGLang's order."""


@handle_elastic_ep.refuses(
    "SPC552", "elastic-ep-group-that-cannot-join", raises="AssertionError", since="0.5.11",
    bad=(
        "model=deepseek-v3 -- --tp-size 8 --elastic-ep-join-mode recover",
        f"{ELASTIC} --attn-dp-size 8 --max-ep-size 16 --speculative-algorithm NGRAM",
        f"{ELASTIC} --attn-dp-size 4 --max-ep-size 16",
        f"{ELASTIC} --attn-dp-size 4 --max-ep-size 15 --moe-dense-tp-size 1",
    ),
    good=(
        "model=deepseek-v3 -- --tp-size 8 --elastic-ep-backend mooncake --elastic-ep-join-mode recover",
        f"{ELASTIC} --attn-dp-size 8 --max-ep-size 16",
        f"{ELASTIC} --attn-dp-size 4 --max-ep-size 16 --moe-dense-tp-size 1",
    ),
)  # fmt: skip
def elastic_ep_group_that_cannot_join(c: Config) -> Refusal | None:
    """These flags of elastic expert parallelism do not work together.

    A rank that comes back (`recover`) needs an elastic backend. A group that grows (`scale`, `--max-ep-size` above the
    TP size) needs Mooncake, the NIXL exchange, attention data parallelism with `--enable-dp-lm-head`, expert
    parallelism over the TP group, and plain round-robin balancing.
    """
    conflict = _elastic_join_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    return Refusal(
        at=field,
        related_fields=("elastic_ep_backend", "max_ep_size"),
        message=f"{c.shown(field) if c.given(field) else f'`{c.flag(field)}`'} does not fit elastic expert parallelism: {why}.",
        fixes=(dropping(field), dropping("ep_join_mode"), dropping("max_ep_size")),
    )


@handle_elastic_ep.adjusts("elastic_ep_initial_size", "enable_dp_attention_local_control_broadcast", since="0.5.16")
def note_size_at_start(c: Config) -> None:
    """A group that can grow remembers the size it started with."""
    if c.elastic_ep_backend is None or c.max_ep_size is None or c.max_ep_size <= c.tp_size:
        return
    c.set(enable_dp_attention_local_control_broadcast=True)
    if c.ep_join_mode != "scale" and c.elastic_ep_initial_size is None:
        c.set(elastic_ep_initial_size=c.tp_size)
