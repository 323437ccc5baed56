"""DSPARK drafting. Follows arg_groups/speculative_hook.py, _handle_dspark."""

from __future__ import annotations

from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.linear_attention import ragged_verify_mode
from spec_lsp.resolution.ranks import attention_dp_size, attention_dp_switch, no_attention_dp
from spec_lsp.resolution.speculative.common import (
    cap_running_requests,
    draft_facts,
    refused_block,
    refused_device,
    refused_stages,
)
from spec_lsp.resolution.speculative.draft_config import bundles_dspark, dspark_gamma

GAMMA = 7
COORDINATION = "SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION"

handler = Handler(
    "speculative_hook.py:_handle_dspark", since="0.5.16", when=lambda c: c.speculative_algorithm == "DSPARK"
)


@handler.refuses(
    "SPC160",
    "dspark-device",
    raises="ValueError",
    bad="--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --device cpu",
    good="--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft",
)
def dspark_device(c: Config) -> Refusal | None:
    """DSPARK does not draft on this device.

    It drafts on NVIDIA and AMD GPUs, since 0.5.18 on Ascend NPUs, since 0.5.23 on Intel GPUs; not on CPUs.
    """
    others = (*(("npu",) if c.since("0.5.18") else ()), *(("xpu",) if c.since("0.5.23") else ()))
    return None if str(c.device).startswith(("cuda", *others)) else refused_device(c)


def _over_ranks(c: Config) -> bool:
    """Whether the checks for data-parallel attention apply; in 0.5.17 by the typed flag, even if a single group turns it off."""
    if c.since("0.5.18"):
        return attention_dp_size(c) > 1
    return bool(c.enable_dp_attention or (c.since("0.5.17") and c.typed("enable_dp_attention")))


def _on_npu(c: Config) -> bool:
    return c.since("0.5.18") and str(c.device).startswith("npu")


@handler.refuses(
    "SPC161",
    "dspark-dp-attention-without-lm-head",
    raises="ValueError",
    bad="--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --tp-size 2 --dp-size 2 "
    "--enable-dp-attention",
    good="--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --tp-size 2 --dp-size 2 "
    "--enable-dp-attention --enable-dp-lm-head",
)
def dspark_dp_attention_without_lm_head(c: Config) -> Refusal | None:
    """With data-parallel attention, DSPARK needs the LM head on each rank: `--enable-dp-lm-head`.

    Each rank drafts for its own requests and needs the whole output layer for that.
    """
    if not _over_ranks(c) or c.enable_dp_lm_head or (c.before("0.5.18") and c.typed("enable_dp_lm_head")):
        return None
    switch = attention_dp_switch(c)
    return Refusal(
        at=switch,
        related_fields=("speculative_algorithm",),
        message=f"{c.shown('speculative_algorithm')} is refused with data-parallel attention: it needs `--enable-dp-lm-head`.",
        fixes=(setting(enable_dp_lm_head=True), no_attention_dp(c)),
    )


def _exchanges(c: Config) -> tuple[str, ...]:
    if c.before("0.5.18"):
        return ("none",)
    return ("none", "megamoe", "mori") if c.since("0.5.21") else ("none", "megamoe")


@handler.refuses(
    "SPC162",
    "dspark-expert-exchange",
    raises="ValueError",
    bad="model=qwen3-30b-a3b -- --speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --tp-size 2 "
    "--dp-size 2 --enable-dp-attention --enable-dp-lm-head --moe-a2a-backend deepep",
    good="model=qwen3-30b-a3b -- --speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --tp-size 2 "
    "--dp-size 2 --enable-dp-attention --enable-dp-lm-head",
)
def dspark_expert_exchange(c: Config) -> Refusal | None:
    """With data-parallel attention, DSPARK works with few all-to-all backends.

    Its experts run without one (`--moe-a2a-backend none`), with megamoe (0.5.18) or mori (0.5.21).
    """
    if not _over_ranks(c) or _on_npu(c) or c.moe_a2a_backend in _exchanges(c):
        return None
    return Refusal(
        at="moe_a2a_backend",
        related_fields=("speculative_algorithm",),
        message=f"{c.shown('moe_a2a_backend')} is refused with {c.shown('speculative_algorithm')} and data-parallel attention: it "
        f"works with {', '.join(_exchanges(c))}.",
        fixes=(dropping("moe_a2a_backend"), dropping("speculative_algorithm")),
    )


@handler.refuses(
    "SPC163",
    "ragged-dspark-over-ranks",
    raises="ValueError",
    since="0.5.18",
    bad="model=qwen3-30b-a3b SGLANG_RAGGED_VERIFY_MODE=compact SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION=1 -- "
    "--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --tp-size 2 --dp-size 2 "
    "--enable-dp-attention --enable-dp-lm-head",
    good="model=qwen3-30b-a3b SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION=1 -- --speculative-algorithm DSPARK "
    "--speculative-draft-model-path {models}/eagle3-draft --tp-size 2 --dp-size 2 --enable-dp-attention --enable-dp-lm-head",
)
def ragged_dspark_over_ranks(c: Config) -> Refusal | None:
    """Ranks that exchange experts or coordinate prefill must verify the same number of tokens.

    With data-parallel attention and an all-to-all backend (or `SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION`, since 0.5.22) DSPARK needs
    `SGLANG_RAGGED_VERIFY_MODE=static`, which is the default.
    """
    if not _over_ranks(c) or _on_npu(c) or ragged_verify_mode(c) == "static":
        return None
    coordinates = c.since("0.5.22") and c.env.flag(COORDINATION)
    if c.moe_a2a_backend == "none" and not coordinates:
        return None
    return Refusal(
        at="SGLANG_RAGGED_VERIFY_MODE",
        related_fields=("speculative_algorithm", COORDINATION if coordinates else "moe_a2a_backend"),
        message=f"`SGLANG_RAGGED_VERIFY_MODE={ragged_verify_mode(c)}` is refused: these ranks must verify the same number of tokens.",
        fixes=(dropping_env("SGLANG_RAGGED_VERIFY_MODE"),),
    )


@handler.refuses(
    "SPC164",
    "dspark-context-parallelism-over-ranks",
    raises="ValueError",
    bad="model=deepseek-v3 -- --speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --tp-size 8 "
    "--dp-size 2 --enable-dp-attention --enable-dp-lm-head --attn-cp-size 2",
    good="model=deepseek-v3 -- --speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --tp-size 8 "
    "--dp-size 2 --enable-dp-attention --enable-dp-lm-head",
)
def dspark_context_parallelism_over_ranks(c: Config) -> Refusal | None:
    """With data-parallel attention, DSPARK does not work with context parallelism.

    Choose one way to split attention: `--attn-cp-size 1`, or no data-parallel attention.
    """
    if not _over_ranks(c) or c.attn_cp_size <= 1:
        return None
    return Refusal(
        at="attn_cp_size",
        related_fields=("speculative_algorithm",),
        message=f"{c.shown('attn_cp_size')} is refused with {c.shown('speculative_algorithm')} and data-parallel attention.",
        fixes=(dropping("attn_cp_size"), dropping("speculative_algorithm")),
    )


@handler.refuses(
    "SPC165",
    "dspark-draft-exchange",
    raises="ValueError",
    bad="model=qwen3-30b-a3b -- --speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --tp-size 2 "
    "--dp-size 2 --enable-dp-attention --enable-dp-lm-head --speculative-moe-a2a-backend deepep",
    good="model=qwen3-30b-a3b -- --speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --tp-size 2 "
    "--dp-size 2 --enable-dp-attention --enable-dp-lm-head",
)
def dspark_draft_exchange(c: Config) -> Refusal | None:
    """A DSPARK draft uses the all-to-all backend of its target.

    It ignores `--speculative-moe-a2a-backend`; with data-parallel attention another value than the target's is refused.
    """
    if not _over_ranks(c) or _on_npu(c) or c.speculative_moe_a2a_backend in (None, c.moe_a2a_backend):
        return None
    return Refusal(
        at="speculative_moe_a2a_backend",
        related_fields=("moe_a2a_backend", "speculative_algorithm"),
        message=f"{c.shown('speculative_moe_a2a_backend')} is refused with {c.shown('speculative_algorithm')}: the draft exchanges "
        f"experts as the target does ({c.moe_a2a_backend}).",
    )


@handler.refuses(
    "SPC166",
    "dspark-with-pipeline-parallelism",
    raises="ValueError",
    bad="--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --pp-size 2",
    good="--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --tp-size 2",
)
def dspark_with_pipeline_parallelism(c: Config) -> Refusal | None:
    """DSPARK does not decode with pipeline parallelism.

    Since 0.5.21 a prefill server (`--disaggregation-mode prefill`) may have several stages.
    """
    if c.pp_size == 1 or (c.since("0.5.21") and c.disaggregation_mode == "prefill"):
        return None
    return refused_stages(c, "it does not decode over several stages")


@handler.refuses(
    "SPC167",
    "dspark-without-draft",
    raises="ValueError",
    bad="model=mistral-7b -- --speculative-algorithm DSPARK",
    good="--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft",
)
def dspark_without_draft(c: Config) -> Refusal | None:
    """DSPARK needs a draft.

    Some checkpoints carry one (their config has `dspark_*` keys, or, since 0.5.23, their folder has a `dspark/` part); for others name it
    with `--speculative-draft-model-path`.
    """
    if c.speculative_draft_model_path is not None or bundles_dspark(c.model):
        return None
    if c.since("0.5.23") and not c.model.complete:
        raise NotKnown("the model's folder", "it may hold a dspark/ part")
    return Refusal(
        at="speculative_algorithm",
        related_fields=("model_path",),
        message=f"{c.shown('speculative_algorithm')} is refused without `--speculative-draft-model-path`: this model carries no "
        "DSpark draft.",
        fixes=(dropping("speculative_algorithm"), setting(speculative_algorithm="NGRAM")),
    )


@handler.adjusts("speculative_draft_model_path", "speculative_draft_model_revision")
def bundled_draft(c: Config) -> None:
    """The target's checkpoint carries a DSpark draft."""
    if c.speculative_draft_model_path is not None:
        return
    if bundles_dspark(c.model):
        c.set(speculative_draft_model_path=c.model_path, speculative_draft_model_revision=c.revision)
    elif c.since("0.5.23"):
        raise NotKnown("the model's folder", "it may hold a dspark/ part")


@handler.adjusts("speculative_num_steps", "speculative_eagle_topk")
def one_block(c: Config) -> None:
    """DSPARK drafts one block in one step: steps and topk mean nothing to it and are 1."""
    c.set(speculative_num_steps=1, speculative_eagle_topk=1)


@handler.refuses(
    "SPC168",
    "empty-dspark-block",
    raises="ValueError",
    bad="--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --speculative-dspark-block-size 0",
    good="--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --speculative-dspark-block-size 7",
)
def empty_dspark_block(c: Config) -> Refusal | None:
    """A block must hold at least one token.

    Leave `--speculative-dspark-block-size` out and the draft's config decides (7 where it says nothing).
    """
    return refused_block(c, "speculative_dspark_block_size", GAMMA)


def gamma(c: Config) -> int | None:
    """The number of drafted tokens, if flags or the draft's config determine it."""
    if c.speculative_dspark_block_size is not None:
        return int(c.speculative_dspark_block_size)
    found = dspark_gamma(draft_facts(c))
    return GAMMA if found is None and c.speculative_num_draft_tokens is None else found


@handler.refuses(
    "SPC169",
    "dspark-draft-tokens",
    raises="ValueError",
    bad=(
        "--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --speculative-dspark-block-size 7 "
        "--speculative-num-draft-tokens 4",
        "--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --speculative-num-draft-tokens 1",
    ),
    good="--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft --speculative-dspark-block-size 7 "
    "--speculative-num-draft-tokens 8",
)
def dspark_draft_tokens(c: Config) -> Refusal | None:
    """DSPARK verifies one token more than it drafts.

    So `--speculative-num-draft-tokens` is `--speculative-dspark-block-size` + 1 (or the draft's own block size + 1), and at least 2. Leave
    it out, and SGLang computes it.
    """
    tokens = c.speculative_num_draft_tokens
    if tokens is None:
        return None
    drafted = gamma(c)
    if tokens >= 2 and drafted in (None, tokens - 1):
        return None
    what = "a block of at least one token" if drafted is None else f"{drafted} drafted tokens"
    return Refusal(
        at="speculative_num_draft_tokens",
        related_fields=("speculative_dspark_block_size",) if c.speculative_dspark_block_size is not None else (),
        message=f"{c.shown('speculative_num_draft_tokens')} is refused: DSPARK verifies one token more than it drafts, and this is "
        f"{what}.",
        fixes=(
            dropping("speculative_num_draft_tokens"),
            *((setting(speculative_num_draft_tokens=drafted + 1),) if drafted else ()),
            Change(drop=("speculative_num_draft_tokens", "speculative_dspark_block_size")),
        ),
    )


@handler.adjusts("speculative_num_draft_tokens")
def verify_one_more(c: Config) -> None:
    """DSPARK verifies one token more than it drafts."""
    drafted = gamma(c)
    if drafted is not None:
        c.set(speculative_num_draft_tokens=drafted + 1)


@handler.adjusts("max_running_requests")
def dspark_running_requests(c: Config) -> None:
    """Speculative decoding serves at most 48 requests at once unless you say otherwise."""
    cap_running_requests(c)


@handler.adjusts("enable_mixed_chunk", until="0.5.19")
def dspark_without_mixed_chunk(c: Config) -> None:
    """In these releases DSPARK cannot draft in batches that mix prefill and decode."""
    c.set(enable_mixed_chunk=False)
