"""Tensor, data, pipeline, expert and context parallelism.

Follows arg_groups/parallel_hook.py, layernorm_sp_hook.py and cp_tp_group_sharing_hook.py, and the parallelism passes of
overrides.py.

Left out: validate_prefill_cp_platform on MUSA (no such hardware is modelled); the InfiniBand devices that elastic EP
checks against /sys/class/infiniband (the field they normalize becomes unknown).
"""

from __future__ import annotations

from dataclasses import replace

from spec_lsp.facts.known import NotKnown
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

# --- the layout of ranks, as other topics read it ---------------------------------------------------------------------


def has_attn_dp_size(c: Config) -> bool:
    """Whether attention-DP groups have a field of their own in this release; before, `dp_size` counted them."""
    return c.since("0.5.22")


def attention_dp(c: Config) -> bool:
    """Whether attention runs data parallel (runtime_context.attn_dp_enabled_of)."""
    if has_attn_dp_size(c):
        return bool(c.attn_dp_size > 1 or c.ep_join_mode == "scale")
    return bool(c.enable_dp_attention)


def attention_dp_size(c: Config) -> int:
    """How many attention-DP groups there are; 1 without DP attention."""
    if has_attn_dp_size(c):
        return int(c.attn_dp_size)
    return int(c.dp_size) if c.enable_dp_attention else 1


def attention_dp_field(c: Config) -> str:
    """The field that sets the number of attention-DP groups in this release."""
    return "attn_dp_size" if has_attn_dp_size(c) else "dp_size"


def data_parallel_ranks(c: Config) -> int:
    """Replicas times attention-DP groups (runtime_context.num_dp_ranks_of)."""
    return int(c.dp_size * c.attn_dp_size) if has_attn_dp_size(c) else int(c.dp_size)


def attention_cp_size(c: Config) -> int:
    """Attention context-parallel width; 1 in releases without it."""
    return int(c.attn_cp_size or 1)


def attention_tp_size(c: Config) -> int:
    """What is left of the TP group for attention heads (runtime_context.derive_attn_tp_size)."""
    return int(c.tp_size) // attention_dp_size(c) // attention_cp_size(c)


def loads_from_instance(c: Config) -> bool:
    """Whether the model comes from another instance, so that its config.json cannot be read beforehand."""
    return str(c.model_path).startswith("instance://")


def crosses_nvlink_domain(c: Config) -> bool:
    """Whether the DCP group reaches beyond the NVLink of one node. Assumes that there is no multi-node NVLink."""
    return int(c.tp_size) // max(int(c.nnodes) // int(c.pp_size), 1) % int(c.dcp_size) != 0


# --- handle_deprecated_dp_attention -----------------------------------------------------------------------------------

handle_deprecated_dp_attention = Handler("parallel_hook.py:handle_deprecated_dp_attention", since="0.5.22")


@handle_deprecated_dp_attention.adjusts("attn_dp_size", "dp_size", "enable_dp_attention", spelling=True)
def read_deprecated_dp_attention(c: Config) -> None:
    """`--enable-dp-attention` with `--dp-size N` is the old spelling of `--attn-dp-size N`."""
    if not c.enable_dp_attention:
        return
    if c.attn_dp_size == 1:
        c.set(attn_dp_size=c.dp_size, dp_size=1)
    c.set(enable_dp_attention=False)


report_dp_attention = Handler("server_args.py:resolved_dict", since="0.5.22")


@report_dp_attention.adjusts("enable_dp_attention", spelling=True)
def report_attention_dp_under_its_old_name(c: Config) -> None:
    """SGLang still reports attention data parallelism under its old name."""
    c.set(enable_dp_attention=c.attn_dp_size > 1)


# --- validate_prefill_cp_platform -------------------------------------------------------------------------------------

validate_prefill_cp_platform = Handler("parallel_hook.py:validate_prefill_cp_platform", since="0.5.20")


@validate_prefill_cp_platform.refuses(
    "SPC500", "prefill-context-parallel-off-cuda", raises="ValueError", since="0.5.20", until="0.5.22", gate=True,
    bad="gpu=mi300x -- --tp-size 8 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
    good="gpu=h100 -- --tp-size 8 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
)  # fmt: skip
def prefill_context_parallel_off_cuda(c: Config) -> Refusal | None:
    """Context-parallel prefill does not run on this platform in this release.

    Splitting one prompt over several GPUs was switched off for AMD (and, in 0.5.20, Ascend) devices while it was
    rewritten; it came back in 0.5.22. Use tensor parallelism alone, or a newer release.
    """
    if c.enable_prefill_cp and (c.gpu.is_hip or (c.gpu.platform == "npu" and c.before("0.5.21"))):
        return Refusal(
            at="enable_prefill_cp",
            message=f"{c.shown('enable_prefill_cp')} is not available on {c.gpu.title}: this SGLang release has no "
            "context-parallel prefill there. Leave it out.",
            fixes=(dropping("enable_prefill_cp"),),
        )
    return None


# --- handle_decode_context_parallelism --------------------------------------------------------------------------------

handle_decode_context_parallelism = Handler(
    "parallel_hook.py:handle_decode_context_parallelism",
    since="0.5.15",
    earlier=(
        Earlier("0.5.19", "server_args.py:_handle_dcp_validation"),
        Earlier("0.5.20", "parallel_hook.py:handle_dcp_validation"),
    ),
)
handle_dcp_validation = handle_decode_context_parallelism
"""Its name before 0.5.20."""


@handle_decode_context_parallelism.adjusts("dcp_comm_backend", since="0.5.20")
def choose_dcp_exchange(c: Config) -> None:
    """Decode context parallelism takes the fastest exchange that the platform has."""
    if c.dcp_comm_backend is not None:
        return
    if c.dcp_size <= 1:
        c.set(dcp_comm_backend="ag_rs")
    elif c.gpu.sm100 and not crosses_nvlink_domain(c):
        c.set(dcp_comm_backend="fi_a2a")
    else:
        c.set(dcp_comm_backend="a2a" if c.gpu.platform in ("cuda", "hip", "xpu") else "ag_rs")


@handle_decode_context_parallelism.refuses(
    "SPC501", "decode-context-parallel-size-below-one", raises="ValueError",
    bad="--tp-size 2 --dcp-size 0", good="--tp-size 2 --dcp-size 1",
)  # fmt: skip
def decode_context_parallel_size_below_one(c: Config) -> Refusal | None:
    """A decode context-parallel group has at least one rank.

    `--dcp-size` says over how many GPUs the KV cache of one sequence is spread while decoding; 1 switches it off.
    """
    if c.dcp_size < 1:
        return Refusal(
            at="dcp_size",
            message=f"{c.shown('dcp_size')} is no group size: SGLang wants at least 1, which means no decode context "
            "parallelism.",
            fixes=(dropping("dcp_size"), setting(dcp_size=1)),
        )
    return None


@handle_decode_context_parallelism.refuses(
    "SPC507", "decode-context-parallel-not-available", raises="ValueError", until="0.5.17",
    bad="sglang=0.5.16 model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --speculative-algorithm EAGLE",
    good="sglang=0.5.16 model=deepseek-v3 -- --tp-size 8 --dcp-size 2",
)  # fmt: skip
def decode_context_parallel_not_available(c: Config) -> Refusal | None:
    """In this release decode context parallelism runs on NVIDIA and AMD GPUs, on NVIDIA without speculative decoding.

    Verifying draft tokens over a KV cache that is spread over GPUs came in 0.5.17. Drop one of the two or use a newer
    release.
    """
    if c.dcp_size <= 1 or c.gpu.is_hip or (c.gpu.is_cuda and c.speculative_algorithm is None):
        return None
    other = "speculative_algorithm" if c.gpu.is_cuda else "device"
    return Refusal(
        at="dcp_size",
        with_=(other,),
        message=f"{c.shown('dcp_size')} is not available with {c.shown(other)} in SGLang {c.release}. Leave it out.",
        fixes=(dropping("dcp_size"), dropping(other)),
    )


@handle_decode_context_parallelism.refuses(
    "SPC502", "decode-and-prefill-context-parallel", raises="ValueError", since="0.5.22",
    bad="--tp-size 4 --dcp-size 2 --enable-prefill-cp --attn-cp-size 2 --cp-strategy zigzag",
    good="--tp-size 4 --enable-prefill-cp --attn-cp-size 2 --cp-strategy zigzag",
)  # fmt: skip
def decode_and_prefill_context_parallel(c: Config) -> Refusal | None:
    """Context parallelism for decode and for prefill exclude each other.

    `--dcp-size` spreads the KV cache of a sequence while decoding, `--enable-prefill-cp` splits the prompt while
    prefilling; the two lay out the ranks differently. Keep the one your workload needs: long prompts want prefill CP,
    long contexts DCP.
    """
    if c.dcp_size > 1 and c.enable_prefill_cp:
        return Refusal(
            at="dcp_size",
            with_=("enable_prefill_cp",),
            message=f"{c.shown('dcp_size')} cannot be combined with {c.shown('enable_prefill_cp')}: decode and "
            "prefill context parallelism lay out the ranks differently. Keep one of them.",
            fixes=(dropping("dcp_size"), dropping("enable_prefill_cp")),
        )
    return None


@handle_decode_context_parallelism.refuses(
    "SPC503", "dcp-exchange-without-dcp", raises="ValueError", since="0.5.17",
    bad="--tp-size 2 --dcp-comm-backend a2a", good="--tp-size 2 --dcp-comm-backend ag_rs",
)  # fmt: skip
def dcp_exchange_without_dcp(c: Config) -> Refusal | None:
    """An all-to-all exchange for decode context parallelism was chosen, but there is no such group.

    `--dcp-comm-backend a2a` and `fi_a2a` only change how ranks of a DCP group merge their attention results, so SGLang
    wants `--dcp-size` above 1 with them.
    """
    if c.dcp_comm_backend in ("a2a", "fi_a2a") and c.dcp_size <= 1:
        return Refusal(
            at="dcp_comm_backend",
            with_=("dcp_size",),
            message=f"{c.shown('dcp_comm_backend')} has nothing to exchange: decode context parallelism is off "
            f"({c.shown('dcp_size')}). Set `--dcp-size` above 1 or leave the backend out.",
            fixes=(dropping("dcp_comm_backend"), setting(dcp_size=2)),
        )
    return None


@handle_decode_context_parallelism.refuses(
    "SPC504", "flashinfer-dcp-exchange-off-cuda", raises="ValueError", since="0.5.17", gate=True,
    bad="gpu=mi300x -- --tp-size 2 --dcp-size 2 --dcp-comm-backend fi_a2a",
    good="gpu=mi300x -- --tp-size 2 --dcp-size 2 --dcp-comm-backend a2a",
)  # fmt: skip
def flashinfer_dcp_exchange_off_cuda(c: Config) -> Refusal | None:
    """FlashInfer's DCP exchange needs NVIDIA GPUs.

    `fi_a2a` hands the exchange to a FlashInfer kernel over multi-node NVLink memory. Elsewhere `a2a` or `ag_rs` do the
    same work.
    """
    if c.dcp_comm_backend == "fi_a2a" and not c.gpu.is_cuda:
        return Refusal(
            at="dcp_comm_backend",
            message=f"{c.shown('dcp_comm_backend')} does not run on {c.gpu.title}: the exchange is a FlashInfer "
            "kernel for NVIDIA GPUs. Use `a2a` or `ag_rs`.",
            fixes=(setting(dcp_comm_backend="a2a"), setting(dcp_comm_backend="ag_rs")),
        )
    return None


@handle_decode_context_parallelism.refuses(
    "SPC505", "replicated-q-without-dcp", raises="ValueError", since="0.5.17",
    bad="--tp-size 2 --dcp-replicate-q-proj",
    good="--tp-size 2 --dcp-size 2 --dcp-comm-backend a2a --dcp-replicate-q-proj",
)  # fmt: skip
def replicated_q_without_dcp(c: Config) -> Refusal | None:
    """Replicating the query projection only makes sense inside a DCP group.

    `--dcp-replicate-q-proj` saves the gathering of queries between the ranks of a decode context-parallel group.
    """
    if c.dcp_replicate_q_proj and c.dcp_size <= 1:
        return Refusal(
            at="dcp_replicate_q_proj",
            with_=("dcp_size",),
            message=f"{c.shown('dcp_replicate_q_proj')} needs a decode context-parallel group, and there is none "
            f"({c.shown('dcp_size')}). Set `--dcp-size` above 1 or leave the flag out.",
            fixes=(dropping("dcp_replicate_q_proj"), setting(dcp_size=2)),
        )
    return None


@handle_decode_context_parallelism.refuses(
    "SPC506", "replicated-q-with-gathering-exchange", raises="ValueError", since="0.5.17",
    bad="--tp-size 2 --dcp-size 2 --dcp-comm-backend ag_rs --dcp-replicate-q-proj",
    good="--tp-size 2 --dcp-size 2 --dcp-comm-backend a2a --dcp-replicate-q-proj",
)  # fmt: skip
def replicated_q_with_gathering_exchange(c: Config) -> Refusal | None:
    """The replicated query projection belongs to the all-to-all exchange of DCP.

    It replaces the gathering of queries over the head dimension, which only `a2a` and `fi_a2a` can do without.
    """
    if c.dcp_replicate_q_proj and c.dcp_size > 1 and c.dcp_comm_backend not in ("a2a", "fi_a2a"):
        return Refusal(
            at="dcp_replicate_q_proj",
            with_=("dcp_comm_backend",),
            message=f"{c.shown('dcp_replicate_q_proj')} does not work with {c.shown('dcp_comm_backend')}: only the "
            "all-to-all exchanges do without gathering the queries. Use `--dcp-comm-backend a2a`.",
            fixes=(setting(dcp_comm_backend="a2a"), dropping("dcp_replicate_q_proj")),
        )
    return None


# --- handle_dwdp ------------------------------------------------------------------------------------------------------

handle_dwdp = Handler("parallel_hook.py:handle_dwdp", since="0.5.17", when=lambda c: bool(c.dwdp_size > 1))


@handle_dwdp.refuses(
    "SPC510", "dwdp-size-other-than-tp-size", raises="AssertionError",
    bad="model=deepseek-v3 -- --tp-size 4 --dwdp-size 2", good="model=deepseek-v3 -- --tp-size 2 --dwdp-size 2",
)  # fmt: skip
def dwdp_size_other_than_tp_size(c: Config) -> Refusal | None:
    """Distributed-weight data parallelism spans exactly the TP group.

    With DWDP every rank serves its own requests and fetches the expert weights it lacks from its neighbours, so the
    group that shares weights is the TP group: `--dwdp-size` and `--tp-size` are the same number.
    """
    if c.dwdp_size != c.tp_size:
        return Refusal(
            at="dwdp_size",
            with_=("tp_size",),
            message=f"{c.shown('dwdp_size')} does not match {c.shown('tp_size')}: ranks that share expert weights are "
            "the TP group. Make the two equal.",
            fixes=(setting(tp_size=c.dwdp_size), setting(dwdp_size=c.tp_size), dropping("dwdp_size")),
        )
    return None


@handle_dwdp.refuses(
    "SPC511", "dwdp-on-decode-server", raises="AssertionError",
    bad="model=deepseek-v3 -- --tp-size 2 --dwdp-size 2 --disaggregation-mode decode",
    good="model=deepseek-v3 -- --tp-size 2 --dwdp-size 2 --disaggregation-mode prefill",
)  # fmt: skip
def dwdp_on_decode_server(c: Config) -> Refusal | None:
    """DWDP is for prefill, not for a decode server.

    Every step fetches the remote expert weights again; prefill hides that behind its long computation, decode cannot.
    """
    if c.disaggregation_mode not in ("null", "prefill"):
        return Refusal(
            at="dwdp_size",
            with_=("disaggregation_mode",),
            message=f"{c.shown('dwdp_size')} cannot run with {c.shown('disaggregation_mode')}: decode steps are too "
            "short to fetch expert weights in. Leave DWDP to the prefill server.",
            fixes=(dropping("dwdp_size"), setting(disaggregation_mode="prefill")),
        )
    return None


@handle_dwdp.refuses(
    "SPC512", "dwdp-with-moving-experts-or-draft", raises="AssertionError",
    bad="model=deepseek-v3 -- --tp-size 2 --dwdp-size 2 --speculative-algorithm EAGLE --pp-size 2",
    good="model=deepseek-v3 -- --tp-size 2 --dwdp-size 2",
)  # fmt: skip
def dwdp_with_moving_experts_or_draft(c: Config) -> Refusal | None:
    """DWDP excludes EPLB, speculative decoding, pipeline parallelism and two-batch overlap.

    Its ranks prefetch expert weights by a fixed plan: nothing may move experts, add a draft model, split the layers
    over stages or interleave two batches.
    """
    conflicts = {
        "enable_eplb": c.enable_eplb,
        "speculative_algorithm": c.speculative_algorithm is not None,
        "pp_size": c.pp_size != 1,
        "enable_two_batch_overlap": c.enable_two_batch_overlap,
    }
    for field, conflict in conflicts.items():
        if conflict:
            return Refusal(
                at=field,
                with_=("dwdp_size",),
                message=f"{c.shown(field)} cannot be combined with {c.shown('dwdp_size')}: DWDP prefetches expert "
                "weights by a fixed plan. Leave one of the two out.",
                fixes=(dropping(field), dropping("dwdp_size")),
            )
    return None


@handle_dwdp.adjusts(
    "attn_dp_size",
    "dp_size",
    "enable_dp_attention",
    "enable_dp_attention_local_control_broadcast",
    "enable_dp_lm_head",
    "moe_dense_tp_size",
    "ep_size",
    "moe_dp_size",
    "moe_a2a_backend",
    "disable_cuda_graph",
)
def lay_out_dwdp(c: Config) -> None:
    """Distributed-weight data parallelism fixes the layout: one attention-DP rank per GPU, no exchange, no graphs."""
    if has_attn_dp_size(c):
        c.set(attn_dp_size=c.dwdp_size, dp_size=1)
    else:
        c.set(dp_size=c.dwdp_size, enable_dp_attention=True)
    c.set(
        enable_dp_attention_local_control_broadcast=True,
        enable_dp_lm_head=True,
        moe_dense_tp_size=1,
        ep_size=c.dwdp_size,
        moe_dp_size=1,
        moe_a2a_backend="none",
        disable_cuda_graph=True,
    )


# --- handle_data_parallelism ------------------------------------------------------------------------------------------

handle_data_parallelism = Handler("parallel_hook.py:handle_data_parallelism")


@handle_data_parallelism.refuses(
    "SPC520", "attention-dp-size-below-one", raises="ValueError", since="0.5.22",
    bad="--tp-size 2 --attn-dp-size 0", good="--tp-size 2 --attn-dp-size 1",
)  # fmt: skip
def attention_dp_size_below_one(c: Config) -> Refusal | None:
    """There is at least one attention data-parallel group.

    `--attn-dp-size` says into how many groups the TP ranks are split for attention; 1 is plain tensor parallelism.
    """
    if c.attn_dp_size < 1:
        return Refusal(
            at="attn_dp_size",
            with_=("dp_size",),
            message=f"{c.shown('attn_dp_size')} is no number of groups: SGLang wants at least 1, which means no "
            "attention data parallelism.",
            fixes=(dropping("attn_dp_size"), setting(attn_dp_size=1)),
        )
    return None


@handle_data_parallelism.refuses(
    "SPC521", "replicas-with-attention-dp", raises="ValueError", since="0.5.22",
    bad="--tp-size 4 --dp-size 2 --attn-dp-size 2", good="--tp-size 4 --attn-dp-size 2",
)  # fmt: skip
def replicas_with_attention_dp(c: Config) -> Refusal | None:
    """Data-parallel replicas and attention data parallelism cannot be combined.

    `--dp-size` starts several copies of the whole model, `--attn-dp-size` splits the attention of one copy. SGLang runs
    one or the other; several copies with attention DP are several servers behind a router.
    """
    if c.attn_dp_size > 1 and c.dp_size > 1:
        return Refusal(
            at="dp_size",
            with_=("attn_dp_size",),
            message=f"{c.shown('dp_size')} asks for replicas of the model and {c.shown('attn_dp_size')} for attention "
            "data parallelism inside one: SGLang does not run both. Drop one of them.",
            fixes=(dropping("dp_size"), dropping("attn_dp_size")),
        )
    return None


@handle_data_parallelism.adjusts("enable_dp_lm_head", "enable_dp_attention", until="0.5.22")
def need_several_dp_ranks_for_dp_attention(c: Config) -> None:
    """With a single data-parallel rank there is no DP attention and no DP LM head."""
    if c.dp_size == 1 and (c.before("0.5.16") or c.ep_join_mode != "scale"):
        c.set(enable_dp_attention=False, enable_dp_lm_head=False)


@handle_data_parallelism.adjusts("enable_dp_lm_head", since="0.5.22")
def need_several_dp_ranks_for_dp_lm_head(c: Config) -> None:
    """With a single data-parallel rank there is no data-parallel LM head."""
    if data_parallel_ranks(c) == 1 and c.ep_join_mode != "scale":
        c.set(enable_dp_lm_head=False)


@handle_data_parallelism.adjusts("schedule_conservativeness")
def admit_more_under_dp_attention(c: Config) -> None:
    """With attention data parallelism each rank schedules less conservatively (0.3 of what was set)."""
    if attention_dp(c):
        c.set(schedule_conservativeness=c.schedule_conservativeness * 0.3)


@handle_data_parallelism.adjusts("enable_dp_attention_local_control_broadcast", since="0.5.23")
def broadcast_control_messages_locally(c: Config) -> None:
    """The Rust server passes control messages to each attention-DP group by itself."""
    if attention_dp(c) and c.env.flag("SGLANG_RUST_SERVER"):
        c.set(enable_dp_attention_local_control_broadcast=True)


@handle_data_parallelism.refuses(
    "SPC522", "tp-size-not-divisible-by-attention-dp-size", raises="AssertionError",
    bad="--tp-size 4 --dp-size 8 --enable-dp-attention", good="--tp-size 8 --dp-size 4 --enable-dp-attention",
)  # fmt: skip
def tp_size_not_divisible_by_attention_dp_size(c: Config) -> Refusal | None:
    """Attention data parallelism splits the TP ranks into equal groups.

    `--tp-size` is the number of GPUs of the whole model; `--attn-dp-size` (`--dp-size` with `--enable-dp-attention`)
    says into how many groups they are split for attention. It has to divide the TP size; SGLang stops on a bare
    assertion.
    """
    if not attention_dp(c) or c.tp_size % attention_dp_size(c) == 0:
        return None
    field = _typed_attention_dp_field(c)
    groups = attention_dp_size(c)
    return Refusal(
        at=attention_dp_field(c),
        with_=("tp_size", "enable_dp_attention"),
        message=f"{_attention_dp_shown(c)} does not divide {c.shown('tp_size')}: the TP ranks are split into equal "
        "groups for attention, and SGLang stops on a bare assertion. Choose a divisor of the TP size.",
        fixes=(setting(tp_size=groups), setting(**{field: c.tp_size}), setting(tp_size=c.tp_size * groups)),
    )


def _typed_attention_dp_field(c: Config) -> str:
    """The field by which the person set the number of attention-DP groups."""
    return "attn_dp_size" if c.given("attn_dp_size") else "dp_size"


def _attention_dp_shown(c: Config) -> str:
    field = _typed_attention_dp_field(c)
    return f"`{c.flag(field)} {attention_dp_size(c)}`" if c.given(field) else c.shown(attention_dp_field(c))


@handle_data_parallelism.adjusts("chunked_prefill_size")
def split_prefill_chunk_over_dp_ranks(c: Config) -> None:
    """The chunked prefill size counts the tokens of all attention-DP ranks together, so each gets its share."""
    if attention_dp(c):
        c.set(chunked_prefill_size=c.chunked_prefill_size // attention_dp_size(c))


@handle_data_parallelism.adjusts("cuda_graph_config", since="0.5.16")
def capture_no_more_than_a_rank_prefills(c: Config) -> None:
    """A prefill graph holds no more tokens than an attention-DP rank's share of a chunk."""
    if not attention_dp(c):
        return
    from spec_lsp.resolution import cuda_graph  # reads the layout above

    most = c.cuda_graph_config["prefill"]["max_bs"]
    if cuda_graph.backend_of(c, "prefill") == "disabled" or most is None or most <= c.chunked_prefill_size:
        return
    if cuda_graph.is_locked(c, "prefill", "max_bs"):
        return
    sizes = {}
    if not cuda_graph.is_locked(c, "prefill", "bs"):
        sizes["bs"] = cuda_graph.prefill_sizes(c.chunked_prefill_size)
    c.set(cuda_graph_config=cuda_graph.changed(c, "prefill", max_bs=c.chunked_prefill_size, **sizes))


@handle_data_parallelism.adjusts("enable_tp_lm_head_all_to_all", since="0.5.18")
def choose_tp_lm_head_exchange(c: Config) -> None:
    """A decode server whose ranks are all attention-DP ranks keeps its LM head tensor parallel with an all-to-all."""
    if c.enable_tp_lm_head_all_to_all is not None:
        return
    c.set(
        enable_tp_lm_head_all_to_all=c.disaggregation_mode == "decode"
        and attention_dp(c)
        and attention_dp_size(c) > 1
        and c.tp_size == attention_dp_size(c)
        and attention_cp_size(c) == 1
        and not c.enable_dp_lm_head
    )


@handle_data_parallelism.refuses(
    "SPC523", "dp-lm-head-without-dp-attention", raises="AssertionError", sglang="overrides.py:_dp_lm_head_validation",
    earlier=(Earlier("0.5.15", "server_args.py:_handle_data_parallelism"),),
    bad="--dp-size 2 --enable-dp-lm-head", good="--tp-size 2 --dp-size 2 --enable-dp-attention --enable-dp-lm-head",
)  # fmt: skip
def dp_lm_head_without_dp_attention(c: Config) -> Refusal | None:
    """A data-parallel LM head needs attention data parallelism.

    `--enable-dp-lm-head` lets every attention-DP group compute the logits of its own requests. Without such groups
    there is nothing to split.
    """
    if c.enable_dp_lm_head and not attention_dp(c):
        return Refusal(
            at="enable_dp_lm_head",
            with_=("dp_size",),
            message=f"{c.shown('enable_dp_lm_head')} needs attention data parallelism, which is off. Add "
            f"`{_attention_dp_advice(c)}` or leave the flag out.",
            fixes=(dropping("enable_dp_lm_head"), attention_dp_fix(c)),
        )
    return None


def _attention_dp_advice(c: Config) -> str:
    return "--attn-dp-size N" if has_attn_dp_size(c) else "--enable-dp-attention"


def attention_dp_fix(c: Config, size: int | None = None) -> Change:
    """Turn attention data parallelism on, over `size` groups (the replicas asked for, or the whole TP group)."""
    if has_attn_dp_size(c):
        groups = size or (c.dp_size if c.dp_size > 1 else c.tp_size)
        return replace(setting(attn_dp_size=groups), drop=("dp_size",) if c.dp_size > 1 else ())
    return setting(enable_dp_attention=True, dp_size=size or c.dp_size)


@handle_data_parallelism.refuses(
    "SPC524", "tp-lm-head-exchange-outside-pure-dp-attention", raises="AssertionError", since="0.5.18",
    sglang="overrides.py:_dp_lm_head_validation",
    bad="--tp-size 4 --dp-size 2 --enable-dp-attention --enable-tp-lm-head-all-to-all",
    good="--tp-size 4 --dp-size 4 --enable-dp-attention --enable-tp-lm-head-all-to-all",
)  # fmt: skip
def tp_lm_head_exchange_outside_pure_dp_attention(c: Config) -> Refusal | None:
    """The LM head all-to-all wants every TP rank to be its own attention-DP group.

    `--enable-tp-lm-head-all-to-all` exchanges hidden states so that a tensor-parallel LM head serves attention-DP
    ranks. It needs as many groups as TP ranks, no context parallelism, and no data-parallel LM head beside it.
    """
    if not c.enable_tp_lm_head_all_to_all:
        return None
    if not attention_dp(c):
        why, field = "there is no attention data parallelism", attention_dp_field(c)
    elif c.enable_dp_lm_head:
        why, field = (
            f"{c.shown('enable_dp_lm_head')} replaces the tensor-parallel LM head it works on",
            "enable_dp_lm_head",
        )
    elif c.tp_size != attention_dp_size(c):
        why, field = (
            f"{c.shown('tp_size')} is not the number of attention-DP groups ({attention_dp_size(c)})",
            "tp_size",
        )
    elif attention_cp_size(c) != 1:
        why, field = f"{c.shown('attn_cp_size')} splits the sequences", "attn_cp_size"
    else:
        return None
    return Refusal(
        at="enable_tp_lm_head_all_to_all",
        with_=(field,),
        message=f"{c.shown('enable_tp_lm_head_all_to_all')} cannot work here: {why}. Leave it out.",
        fixes=(dropping("enable_tp_lm_head_all_to_all"),),
    )


# --- handle_legacy_cp_arguments ---------------------------------------------------------------------------------------

handle_legacy_cp_arguments = Handler("parallel_hook.py:handle_legacy_cp_arguments", since="0.5.14", until="0.5.20")

CP_MODES = {"in-seq-split": "zigzag", "round-robin-split": "interleave"}


@handle_legacy_cp_arguments.adjusts(
    "enable_prefill_cp", "cp_strategy", "enable_prefill_context_parallel", "enable_dsa_prefill_context_parallel",
    "prefill_cp_mode", "dsa_prefill_cp_mode", spelling=True,
)  # fmt: skip
def read_legacy_context_parallel_flags(c: Config) -> None:
    """`--enable-prefill-context-parallel` and its kin are old spellings of `--enable-prefill-cp`, kept in step."""
    plain, sparse = c.enable_prefill_context_parallel, c.enable_dsa_prefill_context_parallel
    if plain or sparse:
        c.set(enable_prefill_cp=True)
        if c.cp_strategy is None:
            c.set(cp_strategy=CP_MODES[c.prefill_cp_mode if plain else c.dsa_prefill_cp_mode])
    if (plain and sparse) or not c.enable_prefill_cp or c.cp_strategy is None:
        return
    if sparse or c.attention_backend in ("dsa", "dsv4"):
        c.set(enable_dsa_prefill_context_parallel=True, enable_prefill_context_parallel=False)
    else:
        c.set(enable_prefill_context_parallel=True)
    mode = next(mode for mode, strategy in CP_MODES.items() if strategy == c.cp_strategy)
    c.set(dsa_prefill_cp_mode=mode, prefill_cp_mode=mode)


# --- handle_context_parallelism ---------------------------------------------------------------------------------------

handle_context_parallelism = Handler("parallel_hook.py:handle_context_parallelism", since="0.5.9")

NEMOTRON_H = ("nemotron_h", "nemotron_h_puzzle")


@handle_context_parallelism.refuses(
    "SPC530", "context-parallel-model-without-it", raises="ValueError", since="0.5.21",
    sglang="parallel_hook.py:_boundary_parallelism_overrides",
    bad="model=nemotron-h-8b -- --tp-size 2 --attn-cp-size 2", good="model=nemotron-h-8b -- --tp-size 2",
)  # fmt: skip
def context_parallel_model_without_it(c: Config) -> Refusal | None:
    """This model cannot split sequences over GPUs.

    Nemotron-H has no attention context parallelism at all, LongCat-Flash none for prefill: their layers do not exchange
    what the ranks would need of each other. Use tensor parallelism alone.
    """
    if attention_cp_size(c) <= 1 or loads_from_instance(c):
        return None
    kind = c.model.text_model_type
    if kind in NEMOTRON_H or (kind == "longcat_flash" and c.enable_prefill_cp):
        return Refusal(
            at="attn_cp_size",
            with_=("enable_prefill_cp",) if kind == "longcat_flash" else ("model_path",),
            message=f"{c.shown('attn_cp_size')} does not work with this model ({c.model.architecture}): its layers "
            "cannot split a sequence over GPUs. Leave context parallelism out.",
            fixes=(dropping("attn_cp_size"), dropping("attn_cp_size", "enable_prefill_cp")),
        )
    return None


@handle_context_parallelism.adjusts("enable_attn_tp_input_scattered", since="0.5.21")
def drop_scattered_attention_input(c: Config) -> None:
    """The forward pass of this model never scatters the attention input, so the flag is switched off."""
    if not c.enable_attn_tp_input_scattered or loads_from_instance(c):
        return
    arch = c.model.architecture
    kimi_k3 = c.since("0.5.22") and arch in ("KimiK3ForConditionalGeneration", "KimiK3LinearForCausalLM")
    inkling = c.since("0.5.23") and arch.startswith("InklingForConditionalGeneration")
    if kimi_k3 or inkling or c.model.text_model_type in (*NEMOTRON_H, "longcat_flash"):
        c.set(enable_attn_tp_input_scattered=False)


@handle_context_parallelism.refuses(
    "SPC531", "prefill-context-parallel-model-on-rocm", raises="ValueError", since="0.5.22",
    bad="gpu=mi300x -- --tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
    good="gpu=h100 -- --tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
)  # fmt: skip
def prefill_context_parallel_model_on_rocm(c: Config) -> Refusal | None:
    """On AMD GPUs only DeepSeek-V4 has context-parallel prefill.

    The attention kernels of the other models do not split a prompt there. Use tensor parallelism alone.
    """
    if (
        c.enable_prefill_cp
        and not loads_from_instance(c)
        and c.gpu.is_hip
        and c.model.architecture != "DeepseekV4ForCausalLM"
    ):
        return Refusal(
            at="enable_prefill_cp",
            message=f"{c.shown('enable_prefill_cp')} works on {c.gpu.title} only with DeepSeek-V4, not with "
            f"{c.model.architecture}. Leave it out.",
            fixes=(dropping("enable_prefill_cp"),),
        )
    return None


@handle_context_parallelism.refuses(
    "SPC532",
    "context-parallel-strategy-the-model-lacks",
    raises="ValueError",
    since="0.5.16",
    bad="sglang=0.5.23 model=deepseek-v3.2 -- --tp-size 8 --attn-cp-size 8 --enable-prefill-cp --cp-strategy zigzag",
    good="sglang=0.5.23 model=deepseek-v3.2 -- --tp-size 8 --attn-cp-size 8 --enable-prefill-cp --cp-strategy "
    "interleave",
)
def context_parallel_strategy_the_model_lacks(c: Config) -> Refusal | None:
    """The model splits prompts only by the other strategy.

    DeepSeek-V3.2 deals tokens out in turn (`interleave`), MiMo-V2 gives every rank one piece from each end (`zigzag`);
    their attention code knows no other way.
    """
    if not c.enable_prefill_cp or loads_from_instance(c):
        return None
    arch, wanted = c.model.architecture, None
    if arch == "DeepseekV32ForCausalLM" and c.since("0.5.20") and c.cp_strategy == "zigzag":
        wanted = "interleave"
    elif arch in ("MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM") and c.cp_strategy != "zigzag" and _uses_cp_v2(c):
        wanted = "zigzag"
    if wanted is None:
        return None
    return Refusal(
        at="cp_strategy" if c.given("cp_strategy") else "enable_prefill_cp",
        with_=("enable_prefill_cp",),
        message=f"{c.shown('cp_strategy')} does not work with {arch}: its attention splits prompts by `{wanted}` "
        f"only. Set `--cp-strategy {wanted}`.",
        fixes=(setting(cp_strategy=wanted),),
    )


def _uses_cp_v2(c: Config) -> bool:
    """Whether MiMo-V2 takes the second version of context parallelism: always since 0.5.20, by default before."""
    return c.since("0.5.20") or c.env.flag("SGLANG_ENABLE_CP_V2", True)


@handle_context_parallelism.refuses(
    "SPC533",
    "context-parallel-images",
    raises="ValueError",
    since="0.5.16",
    bad="--tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag --json-model-override-args "
    """'{"architectures": ["MiMoV2ForCausalLM"], "vision_config": {"depth": 2}, "audio_config": {"depth": 2}}'""",
    good="--tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
)
def context_parallel_images(c: Config) -> Refusal | None:
    """MiMo-V2's context-parallel prefill takes text only.

    Image positions would have to be split over the ranks too, which its code does not do. Serve the language model
    only.
    """
    if not c.enable_prefill_cp or loads_from_instance(c) or not _uses_cp_v2(c):
        return None
    if c.model.architecture not in ("MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM") or not c.model.is_multimodal(
        c.enable_multimodal, bool(c.language_model_only)
    ):
        return None
    if c.language_only or c.language_model_only:
        return None
    return Refusal(
        at="enable_prefill_cp",
        with_=("language_only",),
        message=f"{c.shown('enable_prefill_cp')} takes text only with {c.model.architecture}, which also reads "
        "images. Add `--language-only` or leave context parallelism out.",
        fixes=(setting(language_only=True), dropping("enable_prefill_cp")),
    )


GROUP_SHARING_MODELS = ("Glm5NextForConditionalGeneration", "Qwen4ExpForConditionalGeneration")


def _shares_groups(c: Config) -> bool:
    """Whether prefill CP uses the TP group itself (cp_tp_group_sharing_hook.resolve_cp_tp_group_sharing)."""
    if not c.enable_prefill_cp or attention_cp_size(c) <= 1 or loads_from_instance(c):
        return False
    supported = GROUP_SHARING_MODELS if c.since("0.5.23") else ("Qwen4ExpForConditionalGeneration",)
    return c.model.architecture in supported


def _group_sharing_conflict(c: Config) -> tuple[str, str] | None:
    """The field that keeps a model from sharing its CP and TP groups, and why, in SGLang's order."""
    glm = c.model.architecture == "Glm5NextForConditionalGeneration"
    if attention_cp_size(c) != c.tp_size:
        return "attn_cp_size", f"it has to equal {c.shown('tp_size')}"
    strategy = "interleave" if glm else "zigzag"
    if c.cp_strategy != strategy:
        return "cp_strategy", f"the strategy has to be `{strategy}`"
    algorithm = c.speculative_algorithm
    if algorithm is not None:
        native = algorithm.upper() in ("EAGLE", "NEXTN") and c.speculative_draft_model_path in (None, c.model_path)
        if not glm or (algorithm != "DFLASH" and not (native and c.speculative_eagle_topk in (None, 1))):
            return "speculative_algorithm", "this kind of speculative decoding has not been ported to it"
    qwen = not glm
    pd = c.disaggregation_mode != "null"
    conflicts = {
        "enable_dsa_cache_layer_split": c.enable_dsa_cache_layer_split,
        "dcp_size": c.dcp_size > 1,
        "enable_mixed_chunk": c.enable_mixed_chunk,
        "moe_dp_size": c.moe_dp_size > 1,
        "ep_size": c.ep_size > 1 and (pd or qwen),
        "moe_a2a_backend": qwen and c.moe_a2a_backend != "none",
        "enable_waterfill": qwen and c.enable_waterfill,
        "pp_size": c.pp_size > 1 and (pd or qwen),
        "disaggregation_mode": c.disaggregation_mode == "decode",
        "disaggregation_transfer_backend": glm and pd and c.disaggregation_transfer_backend != "mooncake",
        "speculative_algorithm": glm and pd and algorithm != "DFLASH",
        "dp_size": glm and pd and c.dp_size > 1,
    }
    for field, conflict in conflicts.items():
        if conflict:
            return field, "it has not been ported to it"
    if c.disaggregation_mode == "prefill" and c.env.flag("SGLANG_DISAGG_STAGING_BUFFER"):
        return "SGLANG_DISAGG_STAGING_BUFFER", "prefill and decode would stage transfers differently"
    return None


@handle_context_parallelism.refuses(
    "SPC534",
    "shared-cp-and-tp-group-conflict",
    raises="ValueError",
    since="0.5.23",
    sglang="cp_tp_group_sharing_hook.py:resolve_cp_tp_group_sharing",
    bad="--tp-size 4 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag --json-model-override-args "
    """'{"architectures": ["Qwen4ExpForConditionalGeneration"]}'""",
    good="--tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
)
def shared_cp_and_tp_group_conflict(c: Config) -> Refusal | None:
    """This model's context-parallel prefill shares its group with tensor parallelism, which rules this out.

    GLM-5-Next and Qwen4-Exp split the prompt over the very ranks that also split experts and linear attention. That
    needs `--attn-cp-size` equal to `--tp-size`, the model's own splitting strategy, and none of the features that lay
    out ranks otherwise.
    """
    if not _shares_groups(c):
        return None
    conflict = _group_sharing_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    label = c.shown(field) if not field.startswith("SGLANG_") else f"`{field}`"
    return Refusal(
        at=field,
        with_=("enable_prefill_cp",),
        message=f"{label} does not fit the context-parallel prefill of {c.model.architecture}, where context and "
        f"tensor parallelism share one group: {why}.",
        fixes=(dropping("enable_prefill_cp"), dropping(field)),
    )


@handle_context_parallelism.refuses(
    "SPC535", "prefill-context-parallel-without-strategy", raises="ValueError", since="0.5.14",
    bad="--tp-size 2 --attn-cp-size 2 --enable-prefill-cp",
    good="--tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
)  # fmt: skip
def prefill_context_parallel_without_strategy(c: Config) -> Refusal | None:
    """Context-parallel prefill needs to be told how to split a prompt.

    `zigzag` gives every rank one piece from the front and one from the back of the prompt, which balances causal
    attention; `interleave` deals the tokens out in turn, which sparse attention (DeepSeek-V3.2) needs. There is no
    default.
    """
    if c.enable_prefill_cp and c.cp_strategy is None:
        return Refusal(
            at="enable_prefill_cp",
            with_=("cp_strategy",),
            message=f"{c.shown('enable_prefill_cp')} needs `--cp-strategy`: SGLang has no default for how a prompt is "
            "split over the ranks. Add `zigzag` (dense attention) or `interleave` (sparse attention).",
            fixes=(setting(cp_strategy="zigzag"), setting(cp_strategy="interleave"), dropping("enable_prefill_cp")),
        )
    return None


@handle_context_parallelism.refuses(
    "SPC536", "two-kinds-of-prefill-context-parallel", raises="ValueError", since="0.5.13", until="0.5.20",
    bad="sglang=0.5.19 -- --tp-size 2 --enable-prefill-context-parallel --enable-nsa-prefill-context-parallel",
    good="sglang=0.5.19 -- --tp-size 2 --attn-cp-size 2 --enable-prefill-context-parallel",
)  # fmt: skip
def two_kinds_of_prefill_context_parallel(c: Config) -> Refusal | None:
    """Two kinds of context-parallel prefill were asked for at once.

    `--enable-nsa-prefill-context-parallel` is for DeepSeek-V3.2's sparse attention, `--enable-prefill-context-parallel`
    for all other models. Keep the one that fits the model.
    """
    other = "enable_dsa_prefill_context_parallel"
    if c.enable_prefill_context_parallel and c.enable_dsa_prefill_context_parallel:
        return Refusal(
            at="enable_prefill_context_parallel",
            with_=(other,),
            message="`--enable-prefill-context-parallel` and `--enable-nsa-prefill-context-parallel` exclude each "
            "other: the second is for DeepSeek-V3.2's sparse attention, the first for every other model. "
            "Keep one.",
            fixes=(dropping("enable_prefill_context_parallel"), dropping(other)),
        )
    return None


@handle_context_parallelism.refuses(
    "SPC537", "tp-size-not-divisible-by-context-parallel-size", raises="AssertionError",
    bad="--tp-size 1 --attn-cp-size 2", good="--tp-size 2 --attn-cp-size 2",
)  # fmt: skip
def tp_size_not_divisible_by_context_parallel_size(c: Config) -> Refusal | None:
    """Context parallelism takes its ranks from the TP size.

    `--tp-size` counts all GPUs of the model; `--attn-cp-size` (times the attention-DP groups) says how they are split
    for attention, so it has to divide the TP size.
    """
    if attention_cp_size(c) <= 1:
        return None
    groups = int(c.attn_cp_size) * (c.attn_dp_size if has_attn_dp_size(c) else c.dp_size)
    if c.tp_size % c.attn_cp_size == 0 and c.tp_size % groups == 0:
        return None
    whole = groups if c.tp_size % c.attn_cp_size == 0 else c.attn_cp_size
    shown = c.shown("attn_cp_size")
    if c.tp_size % c.attn_cp_size == 0:
        shown += f" times the {groups // c.attn_cp_size} data-parallel groups"
    return Refusal(
        at="attn_cp_size",
        with_=("tp_size", attention_dp_field(c)),
        message=f"{shown} does not divide {c.shown('tp_size')}: context-parallel ranks are taken from the TP size. "
        f"Make the TP size a multiple of {whole}.",
        fixes=(setting(tp_size=groups), dropping("attn_cp_size")),
    )


@handle_context_parallelism.refuses(
    "SPC538", "aiter-allreduce-fusion-with-context-parallel", raises="AssertionError", since="0.5.10",
    bad="gpu=mi300x -- --tp-size 2 --attn-cp-size 2 --enable-aiter-allreduce-fusion",
    good="gpu=mi300x -- --tp-size 2 --enable-aiter-allreduce-fusion",
)  # fmt: skip
def aiter_allreduce_fusion_with_context_parallel(c: Config) -> Refusal | None:
    """AITER's fused all-reduce does not know context parallelism or MoE data parallelism.

    It fuses the all-reduce over the whole TP group with the norm that follows; these layouts reduce over smaller
    groups.
    """
    if not (attention_cp_size(c) > 1 or (c.moe_dp_size or 1) > 1) or not c.enable_aiter_allreduce_fusion:
        return None
    other = "attn_cp_size" if attention_cp_size(c) > 1 else "moe_dp_size"
    return Refusal(
        at="enable_aiter_allreduce_fusion",
        with_=(other,),
        message=f"{c.shown('enable_aiter_allreduce_fusion')} cannot be combined with {c.shown(other)}: the fused "
        "kernel reduces over the whole TP group. Leave the fusion out.",
        fixes=(dropping("enable_aiter_allreduce_fusion"), dropping(other)),
    )


@handle_context_parallelism.refuses(
    "SPC539",
    "tp-size-not-divisible-by-moe-dp-size",
    raises="AssertionError",
    bad="model=qwen3-30b-a3b -- --tp-size 1 --moe-dp-size 2",
    good="model=qwen3-30b-a3b -- --tp-size 2 --moe-dp-size 2 --attn-cp-size 2",
)
def tp_size_not_divisible_by_moe_dp_size(c: Config) -> Refusal | None:
    """MoE data parallelism takes its ranks from the TP size.

    `--moe-dp-size` splits the GPUs of the model into groups that each hold all experts, so it has to divide
    `--tp-size`.
    """
    if (c.moe_dp_size or 1) > 1 and c.tp_size % c.moe_dp_size:
        return Refusal(
            at="moe_dp_size",
            with_=("tp_size",),
            message=f"{c.shown('moe_dp_size')} does not divide {c.shown('tp_size')}: MoE data-parallel groups are "
            "taken from the TP size. Make the TP size a multiple of it.",
            fixes=(dropping("moe_dp_size"), setting(tp_size=c.moe_dp_size)),
        )
    return None


@handle_context_parallelism.refuses(
    "SPC540", "expert-groups-other-than-tp-size", raises="AssertionError",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --ep-size 2 --moe-dp-size 2 --attn-cp-size 2",
    good="model=qwen3-30b-a3b -- --tp-size 4 --ep-size 2 --moe-dp-size 2 --attn-cp-size 2",
)  # fmt: skip
def expert_groups_other_than_tp_size(c: Config) -> Refusal | None:
    """Expert-parallel size times MoE data-parallel size has to give the TP size.

    Each MoE data-parallel group spreads its experts over `--ep-size` ranks; together the groups are the GPUs of the
    model.
    """
    if (c.moe_dp_size or 1) <= 1:
        return None
    ranks = c.ep_size * c.moe_dp_size
    if ranks > c.tp_size or (c.pp_size == 1 and c.ep_size > 1 and ranks != c.tp_size):
        return Refusal(
            at="moe_dp_size",
            with_=("ep_size", "tp_size"),
            message=f"{c.shown('ep_size')} times {c.shown('moe_dp_size')} makes {ranks} ranks, not the {c.tp_size} of "
            f"{c.shown('tp_size')}. Make the product the TP size.",
            fixes=(dropping("moe_dp_size"), setting(tp_size=ranks)),
        )
    return None


@handle_context_parallelism.refuses(
    "SPC541", "moe-dp-with-pipeline", raises="AssertionError",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --moe-dp-size 2 --attn-cp-size 2 --pp-size 2",
    good="model=qwen3-30b-a3b -- --tp-size 2 --moe-dp-size 2 --attn-cp-size 2",
)  # fmt: skip
def moe_dp_with_pipeline(c: Config) -> Refusal | None:
    """MoE data parallelism does not run with pipeline parallelism.

    The groups it builds span the whole model; pipeline stages would cut them.
    """
    other = "attn_cp_size" if c.before("0.5.10") and attention_cp_size(c) > 1 else "moe_dp_size"
    if (getattr(c, other) or 1) > 1 and c.pp_size != 1:
        return Refusal(
            at="pp_size",
            with_=(other,),
            message=f"{c.shown('pp_size')} cannot be combined with {c.shown(other)}: MoE data-parallel groups "
            "span the whole model. Use one of the two.",
            fixes=(dropping("pp_size"), dropping(other)),
        )
    return None


@handle_context_parallelism.refuses(
    "SPC542",
    "moe-dp-size-other-than-context-parallel-size",
    raises="AssertionError",
    since="0.5.11",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --moe-dp-size 2",
    good="model=qwen3-30b-a3b -- --tp-size 2 --moe-dp-size 2 --attn-cp-size 2",
)
def moe_dp_size_other_than_context_parallel_size(c: Config) -> Refusal | None:
    """MoE data parallelism follows attention context parallelism.

    The tokens a context-parallel rank holds go to its own MoE group, so `--moe-dp-size` is 1 or equal to
    `--attn-cp-size`.
    """
    if attention_cp_size(c) != (c.moe_dp_size or 1) and (c.moe_dp_size or 1) != 1:
        return Refusal(
            at="moe_dp_size",
            with_=("attn_cp_size",),
            message=f"{c.shown('moe_dp_size')} differs from {c.shown('attn_cp_size')}: each context-parallel rank "
            "needs its own MoE group. Make the two equal or leave MoE data parallelism out.",
            fixes=(setting(attn_cp_size=c.moe_dp_size), dropping("moe_dp_size")),
        )
    return None


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
        with_=("tp_size", "moe_a2a_backend"),
        message=f"{c.shown('shared_experts_tp_size')} cannot be used: {why}. Leave it out.",
        fixes=(dropping("shared_experts_tp_size"),),
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
    if (c.enable_eplb or c.init_expert_location != "trivial") and c.ep_dispatch_algorithm is None:
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
            with_=("moe_a2a_backend",),
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
    and SGLang stops on a bare assertion. Set `--ep-size`, or an all-to-all backend, which sets it to the TP size.
    """
    if c.enable_eplb and (c.before("0.5.16") or c.ep_join_mode != "scale") and c.ep_size <= 1:
        return Refusal(
            at="enable_eplb",
            with_=("ep_size",),
            message=f"{c.shown('enable_eplb')} has no other rank to move experts to ({c.shown('ep_size')}), and "
            "SGLang stops on a bare assertion. Set `--ep-size` to the TP size or leave the balancer out.",
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
"""Examples of a group that could grow begin so."""

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
    """Elastic expert parallelism needs a load balancer that knows of lost ranks.

    When a rank dies its experts have to move; only the elasticity-aware algorithms plan for that. `auto` chooses one.
    """
    allowed = ELASTIC_BALANCERS if c.since("0.5.10") else ELASTIC_BALANCERS[:1]
    if c.elastic_ep_backend is not None and c.enable_eplb and c.eplb_algorithm not in allowed:
        return Refusal(
            at="eplb_algorithm",
            with_=("elastic_ep_backend",),
            message=f"{c.shown('eplb_algorithm')} does not know of lost ranks, which {c.shown('elastic_ep_backend')} "
            "has to live with. Leave it out or use `elasticity_aware`.",
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
            with_=("elastic_ep_backend",),
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
    """The first thing in the way of a group that can grow."""
    return next((found for check in _ELASTIC_SCALING if (found := check(c))), None)


def _elastic_replica_conflict(c: Config) -> tuple[str, str] | None:
    """From 0.5.23 on an attention group may span several ranks; every size is then a whole number of groups."""
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
        return "load_balance_method", "only `round_robin` knows new ranks"
    if c.elastic_ep_backend != "mooncake":
        return "elastic_ep_backend", "only Mooncake can add ranks"
    if c.since("0.5.23") and attention_tp_size(c) % c.dcp_size:
        return "dcp_size", "it has to divide the ranks of an attention group"
    return None


def _elastic_graph_conflict(c: Config) -> tuple[str, str] | None:
    """CUDA graphs have to be captured anew when the group has grown; before 0.5.21 there may be none."""
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
    """The flags of elastic expert parallelism do not describe a group that can join or grow.

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
        with_=("elastic_ep_backend", "max_ep_size"),
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


# --- _pipeline_parallel_overlap_disable -------------------------------------------------------------------------------

pipeline_parallel_overlap_disable = Handler("overrides.py:_pipeline_parallel_overlap_disable")


@pipeline_parallel_overlap_disable.adjusts("disable_overlap_schedule")
def schedule_pipeline_without_overlap(c: Config) -> None:
    """Pipeline parallelism keeps several batches in flight by itself, so the overlap schedule is switched off."""
    if c.pp_size > 1:
        c.set(disable_overlap_schedule=True)


# --- handle_layernorm_sp ----------------------------------------------------------------------------------------------

handle_layernorm_sp = Handler("layernorm_sp_hook.py:handle_layernorm_sp", since="0.5.19")

MUSE_SPARK = "MuseSparkForConditionalGeneration"
MUSE = (
    "gpu=b200 model=qwen3-30b-a3b -- --tp-size 4 --ep-size 4 --enable-layernorm-sp --moe-runner-backend flashinfer_trtllm "
    f"""--json-model-override-args '{{"architectures": ["{MUSE_SPARK}"]}}'"""
)
"""Examples with Muse Spark begin so."""


@handle_layernorm_sp.refuses(
    "SPC560", "megamoe-sequence-parallel-without-layernorm-sp", raises="ValueError", since="0.5.23",
    bad="--tp-size 2 --enable-megamoe-for-layernorm-sp", good="model=qwen3-8b -- --tp-size 2 --enable-layernorm-sp",
)  # fmt: skip
def megamoe_sequence_parallel_without_layernorm_sp(c: Config) -> Refusal | None:
    """MegaMoE for sequence-parallel norms needs sequence-parallel norms.

    `--enable-megamoe-for-layernorm-sp` only chooses the expert kernel of `--enable-layernorm-sp`.
    """
    if c.enable_megamoe_for_layernorm_sp and not c.enable_layernorm_sp:
        return Refusal(
            at="enable_megamoe_for_layernorm_sp",
            with_=("enable_layernorm_sp",),
            message=f"{c.shown('enable_megamoe_for_layernorm_sp')} does nothing without `--enable-layernorm-sp`, and "
            "SGLang refuses it. Leave it out.",
            fixes=(dropping("enable_megamoe_for_layernorm_sp"), setting(enable_layernorm_sp=True)),
        )
    return None


def _layernorm_sp_conflict(c: Config) -> tuple[str, str] | None:
    """What keeps a launch from sequence-parallel norms, in SGLang's order (validate_layernorm_sp)."""
    arch = c.model.architecture
    muse = arch == MUSE_SPARK and c.since("0.5.23")
    if c.enable_megamoe_for_layernorm_sp and not muse:
        return "enable_megamoe_for_layernorm_sp", "only Muse Spark has that expert kernel"
    if not muse and arch != "Qwen3ForCausalLM":
        return "enable_layernorm_sp", f"the code of {arch} never enters it; Qwen3 (dense) does"
    if c.tp_size <= 1:
        return "tp_size", "there are no other ranks to split the sequence over"
    if muse and (conflict := _muse_spark_conflict(c)):
        return conflict
    if attention_dp(c):
        return attention_dp_field(c), "the ranks of attention-DP groups hold different sequences"
    if c.speculative_algorithm is not None and not (muse and c.speculative_algorithm == "DFLASH"):
        return "speculative_algorithm", "the hidden states a draft needs are split over the ranks"
    if c.since("0.5.21") and c.pp_size > 1:
        return "pp_size", "the next stage would receive a split sequence"
    return None


def _muse_spark_conflict(c: Config) -> tuple[str, str] | None:
    mega = c.enable_megamoe_for_layernorm_sp
    if (c.tp_size, c.ep_size) not in ((4, 4), (8, 8)):
        return "ep_size", "Muse Spark runs it with TP and EP of 4, or both of 8"
    if c.quantization != "modelopt_fp4" and not (c.quantization is None and mega):
        return "quantization", "Muse Spark needs NVFP4 weights (`modelopt_fp4`) for it"
    if c.moe_a2a_backend not in (("none", "flashinfer") if mega else ("flashinfer",)):
        return "moe_a2a_backend", "Muse Spark needs `--moe-a2a-backend flashinfer` for it"
    if c.moe_runner_backend != "flashinfer_trtllm":
        return "moe_runner_backend", "Muse Spark needs `--moe-runner-backend flashinfer_trtllm` for it"
    return None


MEGA_MOE_BUDGET = "SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK"


def _muse_spark_run_conflict(c: Config) -> tuple[str, str] | None:
    """What keeps Muse Spark's sequence-parallel norms from running, in the order of handle_layernorm_sp."""
    if not c.enable_megamoe_for_layernorm_sp:
        wide = c.env.flag("SGLANG_MOE_NVFP4_DISPATCH")
        return ("SGLANG_MOE_NVFP4_DISPATCH", "its exchange carries BF16 activations") if wide else None
    if c.enable_mixed_chunk:
        return "enable_mixed_chunk", "mixed batches leave the sequence whole"
    graphs = c.cuda_graph_config["prefill"]
    if graphs["backend"] != "breakable":
        return None
    chunk = c.chunked_prefill_size
    if chunk <= 0:
        return "chunked_prefill_size", "prefill graphs need a bound on what a step computes"
    if not graphs["bs"] or max(graphs["bs"]) < chunk:
        return "chunked_prefill_size", "the largest prefill graph has to hold a whole chunk"
    return None


@handle_layernorm_sp.refuses(
    "SPC563",
    "muse-spark-chunk-above-megamoe-capacity",
    raises="ValueError",
    since="0.5.23",
    sglang="layernorm_sp_hook.py:validate_muse_megamoe_token_budget",
    bad=f"{MUSE} --enable-megamoe-for-layernorm-sp --chunked-prefill-size 65536",
    good=f"{MUSE} --enable-megamoe-for-layernorm-sp --chunked-prefill-size 32768",
)
def muse_spark_chunk_above_megamoe_capacity(c: Config) -> Refusal | None:
    """A prefill chunk of Muse Spark does not fit MegaMoE's buffer.

    With `--enable-megamoe-for-layernorm-sp` a rank computes its share of `--chunked-prefill-size` (without chunks, of
    `--max-prefill-tokens`) in a buffer of SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK tokens, 8192 unless set.
    """
    if not (c.enable_layernorm_sp and c.enable_megamoe_for_layernorm_sp) or c.model.architecture != MUSE_SPARK:
        return None
    field = "chunked_prefill_size" if c.chunked_prefill_size > 0 else "max_prefill_tokens"
    share = -(-getattr(c, field) // c.tp_size)
    capacity = c.env.number(MEGA_MOE_BUDGET, 8192)
    if 0 < share <= capacity:
        return None
    return Refusal(
        at=field if capacity > 0 else MEGA_MOE_BUDGET,
        with_=("enable_megamoe_for_layernorm_sp",),
        message=f"{c.shown(field)} makes {share} tokens on a rank, and MegaMoE has room for {capacity}. Lower it, or raise "
        f"`{MEGA_MOE_BUDGET}`.",
        fixes=(setting_env(**{MEGA_MOE_BUDGET: str(share)}), setting(**{field: int(capacity * c.tp_size)})),
    )


@handle_layernorm_sp.refuses(
    "SPC562",
    "muse-spark-norms-that-do-not-run",
    raises="ValueError",
    since="0.5.23",
    bad=(
        f"{MUSE} --enable-megamoe-for-layernorm-sp --enable-mixed-chunk",
        f"{MUSE} --enable-megamoe-for-layernorm-sp --chunked-prefill-size 16384 --cuda-graph-max-bs-prefill 1024",
    ),
    good=f"{MUSE} --enable-megamoe-for-layernorm-sp",
)
def muse_spark_norms_that_do_not_run(c: Config) -> Refusal | None:
    """Muse Spark's sequence-parallel norms do not go with this.

    With `--enable-megamoe-for-layernorm-sp` breakable prefill graphs have to hold a whole chunk, and chunks are not mixed with
    decoding. Without it the exchange carries BF16, so SGLANG_MOE_NVFP4_DISPATCH has to be off.
    """
    if not c.enable_layernorm_sp or c.model.architecture != MUSE_SPARK:
        return None
    conflict = _muse_spark_run_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    return Refusal(
        at=field,
        with_=("enable_layernorm_sp",),
        message=f"{f'`{field}`' if field.isupper() else c.shown(field)} does not go with {c.shown('enable_layernorm_sp')}: {why}.",
        fixes=(dropping_env(field) if field.isupper() else dropping(field), dropping("enable_layernorm_sp")),
    )


@handle_layernorm_sp.adjusts("cuda_graph_config", since="0.5.23")
def keep_only_breakable_prefill_graphs(c: Config) -> None:
    """MegaMoE for Muse Spark's sequence-parallel norms is captured in breakable prefill graphs or not at all."""
    if not (c.enable_layernorm_sp and c.enable_megamoe_for_layernorm_sp) or c.model.architecture != MUSE_SPARK:
        return
    prefill = c.cuda_graph_config["prefill"]
    if prefill["backend"] != "breakable":
        c.set(cuda_graph_config={**c.cuda_graph_config, "prefill": {**prefill, "backend": "disabled"}})


@handle_layernorm_sp.refuses(
    "SPC561",
    "sequence-parallel-norms-that-do-not-fit",
    raises="ValueError",
    sglang="layernorm_sp_hook.py:validate_layernorm_sp",
    bad="--tp-size 2 --enable-layernorm-sp",
    good="model=qwen3-8b -- --tp-size 2 --enable-layernorm-sp",
)
def sequence_parallel_norms_that_do_not_fit(c: Config) -> Refusal | None:
    """Sequence-parallel norms do not fit this launch.

    `--enable-layernorm-sp` splits the tokens of a prompt over the TP ranks between attention layers. Only a few models
    do that (dense Qwen3, Muse Spark), with more than one TP rank, and without attention data parallelism, speculative
    decoding or pipeline parallelism.
    """
    if not c.enable_layernorm_sp:
        return None
    conflict = _layernorm_sp_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    return Refusal(
        at=field,
        with_=("enable_layernorm_sp",),
        message=f"{c.shown('enable_layernorm_sp')} cannot be used with {c.shown(field)}: {why}."
        if field != "enable_layernorm_sp"
        else f"{c.shown(field)} cannot be used: {why}.",
        fixes=(dropping("enable_layernorm_sp"), dropping(field)),
    )
