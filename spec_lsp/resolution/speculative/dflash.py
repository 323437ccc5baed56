"""DFLASH drafting: a draft that fills a whole block at once.

Follows arg_groups/speculative_hook.py: _handle_dflash, _resolve_dflash_draft_attention_backend.
"""

from __future__ import annotations

from spec_lsp.resolution.attention import backends_of
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.ranks import attention_dp, attention_dp_switch, no_attention_dp
from spec_lsp.resolution.speculative.common import (
    ONE_METHOD,
    cap_running_requests,
    draft_facts,
    refused_block,
    refused_device,
    refused_stages,
)
from spec_lsp.resolution.speculative.draft_config import dflash_block_size, drafts_causally

BLOCK_SIZE = 16

handler = Handler(
    "speculative_hook.py:_handle_dflash",
    since="0.5.11",
    when=lambda c: c.speculative_algorithm == "DFLASH",
    earlier=ONE_METHOD,
)


@handler.refuses(
    "SPC150",
    "dflash-device",
    raises="ValueError",
    since="0.5.16",
    bad="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft --device cpu",
    good="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft",
)
def dflash_device(c: Config) -> Refusal | None:
    """DFLASH does not draft on this device.

    It drafts on NVIDIA and AMD GPUs, since 0.5.17 on Ascend NPUs, since 0.5.20 on Intel GPUs; not on CPUs.
    """
    others = (*(("npu",) if c.since("0.5.17") else ()), *(("xpu",) if c.since("0.5.20") else ()))
    return None if str(c.device).startswith("cuda") or c.device in others else refused_device(c)


@handler.refuses(
    "SPC151",
    "dflash-with-dp-attention",
    raises="ValueError",
    until="0.5.23",
    bad="sglang=0.5.22 -- --speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft --tp-size 2 "
    "--attn-dp-size 2",
    good="sglang=0.5.22 -- --speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft --tp-size 2",
)
def dflash_with_dp_attention(c: Config) -> Refusal | None:
    """Before 0.5.23 DFLASH does not work with data-parallel attention.

    (On Ascend NPUs it does since 0.5.20.)
    """
    if not attention_dp(c) or (c.since("0.5.20") and c.device == "npu"):
        return None
    switch = attention_dp_switch(c)
    return Refusal(
        at="speculative_algorithm",
        related_fields=(switch,),
        message=f"{c.shown('speculative_algorithm')} is refused with data-parallel attention in this release.",
        fixes=(no_attention_dp(c), dropping("speculative_algorithm")),
    )


@handler.refuses(
    "SPC152",
    "dflash-dp-attention-without-lm-head",
    raises="ValueError",
    since="0.5.23",
    bad="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft --tp-size 2 --attn-dp-size 2",
    good="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft --tp-size 2 --attn-dp-size 2 "
    "--enable-dp-lm-head",
)
def dflash_dp_attention_without_lm_head(c: Config) -> Refusal | None:
    """With data-parallel attention, DFLASH uses the target's LM head on each rank.

    That needs `--enable-dp-lm-head`, a CUDA device, no context parallelism and no coordinated prefill
    (`SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION`).
    """
    if not attention_dp(c) or c.device == "npu":
        return None
    switch, variable = attention_dp_switch(c), "SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION"
    if not str(c.device).startswith("cuda"):
        at, why, fix = "device", "it needs a CUDA device", dropping("device")
    elif not c.enable_dp_lm_head:
        at, why, fix = switch, "it needs `--enable-dp-lm-head`", setting(enable_dp_lm_head=True)
    elif c.attn_cp_size != 1:
        at, why, fix = "attn_cp_size", "it does not work with context parallelism", dropping("attn_cp_size")
    elif c.env.flag(variable):
        at, why, fix = variable, f"it does not work with `{variable}`", dropping_env(variable)
    else:
        return None
    return Refusal(
        at=at,
        related_fields=("speculative_algorithm",) if at == switch else ("speculative_algorithm", switch),
        message=f"{c.shown('speculative_algorithm')} is refused with data-parallel attention: {why}.",
        fixes=(fix, no_attention_dp(c)),
    )


@handler.refuses(
    "SPC155",
    "dflash-with-pipeline-parallelism",
    raises="ValueError",
    bad="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft --pp-size 2",
    good="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft --tp-size 2",
)
def dflash_with_pipeline_parallelism(c: Config) -> Refusal | None:
    """DFLASH does not work with pipeline parallelism.

    Its draft reads hidden states of layers that other stages would hold. Spread the model with `--tp-size`.
    """
    return refused_stages(c, "its draft reads layers of all stages") if c.pp_size != 1 else None


@handler.refuses(
    "SPC156",
    "dflash-without-draft",
    raises="ValueError",
    bad="--speculative-algorithm DFLASH",
    good="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft",
)
def dflash_without_draft(c: Config) -> Refusal | None:
    """DFLASH needs a draft model.

    Name one with `--speculative-draft-model-path`. NGRAM drafts without a model; targets with a NEXTN layer draft by
    themselves.
    """
    if c.speculative_draft_model_path is not None:
        return None
    return Refusal(
        at="speculative_algorithm",
        message=f"{c.shown('speculative_algorithm')} is refused without `--speculative-draft-model-path`: it needs a draft model.",
        fixes=(dropping("speculative_algorithm"), setting(speculative_algorithm="NGRAM")),
    )


@handler.adjusts("speculative_num_steps", "speculative_eagle_topk")
def one_block(c: Config) -> None:
    """DFLASH drafts one block in one step: steps and topk mean nothing to it and are 1."""
    c.set(speculative_num_steps=1, speculative_eagle_topk=1)


@handler.refuses(
    "SPC157",
    "empty-dflash-block",
    raises="ValueError",
    bad="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft --speculative-dflash-block-size 0",
    good="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft --speculative-dflash-block-size 8",
)
def empty_dflash_block(c: Config) -> Refusal | None:
    """A block must hold at least one token.

    Leave `--speculative-dflash-block-size` out and the draft's config decides (16 where it says nothing).
    """
    return refused_block(c, "speculative_dflash_block_size", BLOCK_SIZE)


@handler.refuses(
    "SPC158",
    "dflash-block-other-than-draft-tokens",
    raises="ValueError",
    bad="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft --speculative-dflash-block-size 8 "
    "--speculative-num-draft-tokens 16",
    good="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft --speculative-dflash-block-size 16 "
    "--speculative-num-draft-tokens 16",
)
def dflash_block_other_than_draft_tokens(c: Config) -> Refusal | None:
    """For DFLASH, the block size and the number of draft tokens are the same number.

    Give one of `--speculative-dflash-block-size` and `--speculative-num-draft-tokens`, or the same number in both.
    """
    block, tokens = c.speculative_dflash_block_size, c.speculative_num_draft_tokens
    if block is None or tokens is None or block == tokens:
        return None
    return Refusal(
        at="speculative_num_draft_tokens",
        related_fields=("speculative_dflash_block_size",),
        message=f"{c.shown('speculative_num_draft_tokens')} is refused with {c.shown('speculative_dflash_block_size')}: a block is "
        "what is verified, so the numbers must agree.",
        fixes=(dropping("speculative_num_draft_tokens"), dropping("speculative_dflash_block_size")),
    )


@handler.adjusts("speculative_num_draft_tokens")
def block_is_drafted(c: Config) -> None:
    """DFLASH verifies one block at a time: as many tokens as --speculative-dflash-block-size or the draft's config say."""
    if c.speculative_dflash_block_size is not None:
        c.set(speculative_num_draft_tokens=c.speculative_dflash_block_size)
    elif c.speculative_num_draft_tokens is None:
        c.set(speculative_num_draft_tokens=dflash_block_size(draft_facts(c)) or BLOCK_SIZE)


def _window_field(c: Config) -> str:
    return "speculative_draft_window_size" if c.since("0.5.12") else "speculative_dflash_draft_window_size"


@handler.refuses(
    "SPC159",
    "dflash-window-below-block",
    raises="ValueError",
    bad="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft --speculative-draft-window-size 2",
    good="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft --speculative-draft-window-size 512",
)
def dflash_window_below_block(c: Config) -> Refusal | None:
    """The draft model's window must hold at least one block.

    DFLASH drafts a whole block at once, so `--speculative-draft-window-size` cannot be below the block size (16 by default).
    """
    name = _window_field(c)
    window = getattr(c, name)
    if window is None or (window > 0 and window >= c.speculative_num_draft_tokens):
        return None
    return Refusal(
        at=name,
        related_fields=("speculative_num_draft_tokens",),
        message=f"{c.shown(name)} is refused with {c.shown('speculative_num_draft_tokens')}: the window must hold the block that "
        "is drafted.",
        fixes=(dropping(name), setting(**{name: 512})),
    )


def draft_backends(c: Config) -> tuple[str, ...]:
    """The attention backends that a DFLASH draft runs on (DRAFT_ATTENTION_BACKEND_CHOICES)."""
    later = (("trtllm_mha", "0.5.17"), ("intel_xpu", "0.5.20"))
    return ("flashinfer", "fa3", "fa4", "triton", "ascend", *(name for name, since in later if c.since(since)))


@handler.adjusts("speculative_draft_attention_backend", since="0.5.15")
def draft_backend(c: Config) -> None:
    """A DFLASH draft runs on the target's prefill backend where it can, else on flashinfer (triton on ROCm)."""
    backend = c.speculative_draft_attention_backend or backends_of(c)[0]
    fallback = "triton" if c.gpu.is_hip or c.gpu.platform == "xpu" else "flashinfer"
    if backend not in draft_backends(c):
        backend = fallback
    elif backend == "trtllm_mha" and not drafts_causally(draft_facts(c)):
        backend = "fa4" if c.since("0.5.23") and c.gpu.sm100 else fallback
    c.set(speculative_draft_attention_backend=backend)


@handler.adjusts("max_running_requests")
def dflash_running_requests(c: Config) -> None:
    """Speculative decoding serves at most 48 requests at once unless you say otherwise."""
    cap_running_requests(c)


@handler.adjusts("disable_overlap_schedule", until="0.5.14")
def dflash_without_overlap(c: Config) -> None:
    """In these releases DFLASH does not overlap with scheduling."""
    c.set(disable_overlap_schedule=True)


@handler.adjusts("enable_mixed_chunk", until="0.5.19")
def dflash_without_mixed_chunk(c: Config) -> None:
    """In these releases DFLASH cannot draft in batches that mix prefill and decode."""
    c.set(enable_mixed_chunk=False)
