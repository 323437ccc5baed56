"""Tensor, data and pipeline parallelism.

Follows arg_groups/parallel_hook.py, layernorm_sp_hook.py and the parallelism passes of overrides.py.
"""

from __future__ import annotations

from spec_lsp.resolution import cuda_graph
from spec_lsp.resolution.engine import (
    MOVED,
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
from spec_lsp.resolution.ranks import (
    attention_cp_size,
    attention_dp,
    attention_dp_field,
    attention_dp_size,
    data_parallel_ranks,
    has_attn_dp_size,
)

# --- handle_deprecated_dp_attention -----------------------------------------------------------------------------------

handle_deprecated_dp_attention = Handler("parallel_hook.py:handle_deprecated_dp_attention", since="0.5.22")


@handle_deprecated_dp_attention.adjusts("attn_dp_size", "dp_size", "enable_dp_attention", MOVED, spelling=True)
def read_deprecated_dp_attention(c: Config) -> None:
    """`--enable-dp-attention` with `--dp-size N` is the old spelling of `--attn-dp-size N`."""
    if not c.enable_dp_attention:
        return
    # A misspelled word may have been meant as the new flag, but not beside the old one.
    written = c.known("attn_dp_size") or c.given("attn_dp_size")
    if not written or c.attn_dp_size == 1:
        c.move("attn_dp_size", "dp_size", "enable_dp_attention", value=c.dp_size)
        c.set(dp_size=1)
    c.set(enable_dp_attention=False)


report_dp_attention = Handler("server_args.py:resolved_dict", since="0.5.22")


@report_dp_attention.adjusts("enable_dp_attention", spelling=True)
def report_attention_dp_under_its_old_name(c: Config) -> None:
    """SGLang still reports attention data parallelism under its old name."""
    c.set(enable_dp_attention=c.attn_dp_size > 1)


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
            related_fields=("tp_size",),
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
            related_fields=("disaggregation_mode",),
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
                related_fields=("dwdp_size",),
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
            related_fields=("dp_size",),
            message=f"{c.shown('attn_dp_size')} is not a number of groups: it must be at least 1, which means no "
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
            related_fields=("attn_dp_size",),
            message=f"{c.shown('dp_size')} asks for replicas of the model and {c.shown('attn_dp_size')} for attention "
            "data parallelism inside one: SGLang does not run both. Remove one of them.",
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
    field, groups = attention_dp_field(c), attention_dp_size(c)
    return Refusal(
        at=field,
        related_fields=("tp_size", "enable_dp_attention"),
        message=f"{c.shown(field)} does not divide {c.shown('tp_size')}: the TP ranks are split into equal "
        "groups for attention, and SGLang stops with a bare AssertionError. Choose a divisor of the TP size.",
        fixes=(setting(tp_size=groups), setting(**{field: c.tp_size}), setting(tp_size=c.tp_size * groups)),
    )


@handle_data_parallelism.adjusts("chunked_prefill_size", spelling=True)
def split_prefill_chunk_over_dp_ranks(c: Config) -> None:
    """The chunked prefill size counts the tokens of all attention-DP ranks together, so each gets its share."""
    if attention_dp(c):
        c.set(chunked_prefill_size=c.chunked_prefill_size // attention_dp_size(c))


@handle_data_parallelism.adjusts("cuda_graph_config", since="0.5.16")
def capture_no_more_than_a_rank_prefills(c: Config) -> None:
    """A prefill graph holds no more tokens than an attention-DP rank's share of a chunk."""
    if not attention_dp(c):
        return
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
            related_fields=("dp_size",),
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
        return setting(attn_dp_size=groups)._replace(drop=("dp_size",) if c.dp_size > 1 else ())
    return setting(enable_dp_attention=True, dp_size=size or c.dp_size)


@handle_data_parallelism.refuses(
    "SPC524", "tp-lm-head-exchange-outside-pure-dp-attention", raises="AssertionError", since="0.5.18",
    sglang="overrides.py:_dp_lm_head_validation",
    bad="--tp-size 4 --dp-size 2 --enable-dp-attention --enable-tp-lm-head-all-to-all",
    good="--tp-size 4 --dp-size 4 --enable-dp-attention --enable-tp-lm-head-all-to-all",
)  # fmt: skip
def tp_lm_head_exchange_outside_pure_dp_attention(c: Config) -> Refusal | None:
    """The LM head all-to-all needs every TP rank to be its own attention-DP group.

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
        related_fields=(field,),
        message=f"{c.shown('enable_tp_lm_head_all_to_all')} cannot work here: {why}. Remove it.",
    )


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
"""The beginning of examples with Muse Spark."""


@handle_layernorm_sp.refuses(
    "SPC560", "megamoe-sequence-parallel-without-layernorm-sp", raises="ValueError", since="0.5.23",
    bad="--tp-size 2 --enable-megamoe-for-layernorm-sp", good="model=qwen3-8b -- --tp-size 2 --enable-layernorm-sp",
)  # fmt: skip
def megamoe_sequence_parallel_without_layernorm_sp(c: Config) -> Refusal | None:
    """`--enable-megamoe-for-layernorm-sp` needs `--enable-layernorm-sp`.

    `--enable-megamoe-for-layernorm-sp` only chooses the expert kernel of `--enable-layernorm-sp`.
    """
    if c.enable_megamoe_for_layernorm_sp and not c.enable_layernorm_sp:
        return Refusal(
            at="enable_megamoe_for_layernorm_sp",
            related_fields=("enable_layernorm_sp",),
            message=f"{c.shown('enable_megamoe_for_layernorm_sp')} does nothing without `--enable-layernorm-sp`, and "
            "SGLang refuses it. Remove it.",
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
        related_fields=("enable_megamoe_for_layernorm_sp",),
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
    """Muse Spark's sequence-parallel norms cannot be combined with this.

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
        related_fields=("enable_layernorm_sp",),
        message=f"{f'`{field}`' if field.isupper() else c.shown(field)} cannot be combined with {c.shown('enable_layernorm_sp')}: {why}.",
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
        related_fields=("enable_layernorm_sp",),
        message=f"{c.shown('enable_layernorm_sp')} cannot be used with {c.shown(field)}: {why}."
        if field != "enable_layernorm_sp"
        else f"{c.shown(field)} cannot be used: {why}.",
        fixes=(dropping("enable_layernorm_sp"), dropping(field)),
    )
