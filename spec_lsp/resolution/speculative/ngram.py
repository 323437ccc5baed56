"""NGRAM drafting: drafts looked up in the text itself. Follows arg_groups/speculative_hook.py, _handle_ngram."""

from __future__ import annotations

from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.ranks import attention_dp, attention_dp_switch, no_attention_dp
from spec_lsp.resolution.speculative.common import ONE_METHOD, cap_running_requests, page_one

DRAFT_TOKENS = 12

handler = Handler(
    "speculative_hook.py:_handle_ngram", when=lambda c: c.speculative_algorithm == "NGRAM", earlier=ONE_METHOD
)


@handler.refuses(
    "SPC140",
    "ngram-device",
    raises="ValueError",
    bad="sglang=0.5.15 gpu=h100 -- --speculative-algorithm NGRAM --device cpu",
    good="--speculative-algorithm NGRAM",
)
def ngram_device(c: Config) -> Refusal | None:
    """NGRAM does not draft on this device.

    It drafts on NVIDIA and AMD GPUs, since 0.5.16 on CPUs, since 0.5.21 on Intel GPUs.
    """
    device = str(c.device)
    if (
        device.startswith("cuda")
        if c.before("0.5.16")
        else device in ("cuda", "cpu", *(("xpu",) if c.since("0.5.21") else ()))
    ):
        return None
    return Refusal(
        at="speculative_algorithm",
        related_fields=("device",) if c.given("device") else (),
        message=f"{c.shown('speculative_algorithm')} is refused with {c.shown('device')}: this release does not draft n-grams there.",
        fixes=(dropping("speculative_algorithm"), dropping("device")),
    )


@handler.adjusts("disable_overlap_schedule", since="0.5.16")
def ngram_without_overlap_on_cpu(c: Config) -> None:
    """On a CPU, drafting does not overlap with scheduling."""
    if c.device == "cpu":
        c.set(disable_overlap_schedule=True)


@handler.adjusts("disable_overlap_schedule", until="0.5.14")
def ngram_without_overlap(c: Config) -> None:
    """In these releases n-gram drafting does not overlap with scheduling."""
    c.set(disable_overlap_schedule=True)


@handler.adjusts("max_running_requests")
def ngram_running_requests(c: Config) -> None:
    """Speculative decoding serves at most 48 requests at once unless you say otherwise."""
    cap_running_requests(c)


@handler.adjusts("enable_mixed_chunk")
def ngram_without_mixed_chunk(c: Config) -> None:
    """N-gram drafting cannot draft in batches that mix prefill and decode."""
    c.set(enable_mixed_chunk=False)


@handler.adjusts("speculative_eagle_topk")
def ngram_breadth(c: Config) -> None:
    """N-gram drafting branches as far as --speculative-ngram-max-bfs-breadth allows."""
    c.set(speculative_eagle_topk=c.speculative_ngram_max_bfs_breadth)


@handler.adjusts("speculative_num_draft_tokens")
def ngram_draft_tokens(c: Config) -> None:
    """N-gram drafting verifies 12 tokens at a time."""
    if c.speculative_num_draft_tokens is None:
        tokens = c.speculative_ngram_max_match_window_size if c.before("0.5.10") else DRAFT_TOKENS
        c.set(speculative_num_draft_tokens=tokens)


@handler.refuses(
    "SPC146",
    "ngram-without-breadth",
    raises="ZeroDivisionError",
    since="0.5.14",
    bad="--speculative-algorithm NGRAM --speculative-ngram-max-bfs-breadth 0",
    good="--speculative-algorithm NGRAM --speculative-ngram-max-bfs-breadth 1",
)
def ngram_without_breadth(c: Config) -> Refusal | None:
    """N-gram drafting needs at least one branch.

    SGLang divides the draft tokens by `--speculative-ngram-max-bfs-breadth` and fails on 0.
    """
    if c.speculative_ngram_max_bfs_breadth != 0 or c.speculative_num_steps is not None:
        return None
    return Refusal(
        at="speculative_ngram_max_bfs_breadth",
        message=f"{c.shown('speculative_ngram_max_bfs_breadth')} is refused: SGLang divides by it.",
        fixes=(dropping("speculative_ngram_max_bfs_breadth"), setting(speculative_ngram_max_bfs_breadth=1)),
    )


@handler.adjusts("speculative_num_steps", since="0.5.14")
def ngram_steps(c: Config) -> None:
    """N-gram drafting goes as deep as its draft tokens allow at full breadth."""
    if c.speculative_num_steps is None:
        c.set(speculative_num_steps=c.speculative_num_draft_tokens // c.speculative_eagle_topk)


def _corpus_field(c: Config) -> tuple[str, str] | None:
    """The corpus setting that is wrong, with what is wrong about it."""
    if c.speculative_ngram_external_corpus_path is None:
        return None
    if c.speculative_ngram_external_sam_budget <= 0:
        return "speculative_ngram_external_sam_budget", "a corpus drafts at least one token"
    if c.speculative_ngram_external_corpus_max_tokens <= 0:
        return "speculative_ngram_external_corpus_max_tokens", "a corpus holds at least one token"
    return None


@handler.refuses(
    "SPC141",
    "ngram-corpus-without-budget",
    raises="ValueError",
    since="0.5.11",
    bad="--speculative-algorithm NGRAM --speculative-ngram-external-corpus-path corpus.jsonl",
    good="--speculative-algorithm NGRAM --speculative-ngram-external-corpus-path corpus.jsonl "
    "--speculative-ngram-external-sam-budget 4",
)
def ngram_corpus_without_budget(c: Config) -> Refusal | None:
    """An external corpus needs a budget of draft tokens.

    `--speculative-ngram-external-sam-budget` says how many of the draft tokens come from the corpus; its default of 0
    would leave it unused and is refused. `--speculative-ngram-external-corpus-max-tokens` must be positive too.
    """
    problem = _corpus_field(c)
    if problem is None:
        return None
    name, why = problem
    at = name if c.given(name) else "speculative_ngram_external_corpus_path"
    return Refusal(
        at=at,
        related_fields=("speculative_ngram_external_corpus_path",) if at == name else (name,),
        message=f"`{c.flag('speculative_ngram_external_corpus_path')}` is refused with {c.shown(name)}: {why}.",
        fixes=(
            setting(**{name: 4}) if "budget" in name else dropping(name),
            dropping("speculative_ngram_external_corpus_path"),
        ),
    )


@handler.refuses(
    "SPC143",
    "ngram-corpus-budget-above-draft",
    raises="ValueError",
    since="0.5.11",
    bad="--speculative-algorithm NGRAM --speculative-ngram-external-corpus-path corpus.jsonl "
    "--speculative-ngram-external-sam-budget 64",
    good="--speculative-algorithm NGRAM --speculative-ngram-external-corpus-path corpus.jsonl "
    "--speculative-ngram-external-sam-budget 8",
)
def ngram_corpus_budget_above_draft(c: Config) -> Refusal | None:
    """The external corpus cannot draft more tokens than are drafted in all.

    One of the draft tokens is the last verified one, so `--speculative-ngram-external-sam-budget` is at most
    `--speculative-num-draft-tokens` (12 by default) less one.
    """
    if c.speculative_ngram_external_corpus_path is None or _corpus_field(c) is not None:
        return None
    most = c.speculative_num_draft_tokens - 1
    if c.speculative_ngram_external_sam_budget <= most:
        return None
    return Refusal(
        at="speculative_ngram_external_sam_budget",
        related_fields=("speculative_num_draft_tokens",),
        message=f"{c.shown('speculative_ngram_external_sam_budget')} is refused with {c.shown('speculative_num_draft_tokens')}: it "
        f"is at most {most}.",
        fixes=(
            setting(speculative_ngram_external_sam_budget=max(most, 1)),
            setting(speculative_num_draft_tokens=c.speculative_ngram_external_sam_budget + 1),
        ),
    )


@handler.refuses(
    "SPC144",
    "ngram-tree-on-paged-backend",
    raises="ValueError",
    bad="--speculative-algorithm NGRAM --page-size 64 --attention-backend triton",
    good="--speculative-algorithm NGRAM --page-size 64 --attention-backend flashinfer",
)
def ngram_tree_on_paged_backend(c: Config) -> Refusal | None:
    """N-gram drafts branch, and only flashinfer keeps the branches on KV pages of several tokens.

    `--speculative-ngram-max-bfs-breadth` is 10 by default, which makes a tree. Keep pages of one token, use
    flashinfer, or set the breadth to 1. A backend that sets its own page size (trtllm_mha on Blackwell uses 64) cannot be used.
    """
    if c.speculative_eagle_topk <= 1 or c.page_size <= 1 or c.attention_backend == "flashinfer":
        return None
    at = c.first_given("page_size", "speculative_algorithm")
    return Refusal(
        at=at,
        related_fields=("speculative_algorithm", "attention_backend")
        if at == "page_size"
        else ("page_size", "attention_backend"),
        message=f"{c.shown('speculative_algorithm')} is refused with {c.shown('page_size')} and {c.shown('attention_backend')}: its "
        "drafts branch, and only flashinfer keeps branches on pages of several tokens.",
        fixes=(
            *((page_one(c), dropping("page_size")) if at == "page_size" else ()),
            setting(attention_backend="flashinfer"),
            Change(
                set={"attention_backend": "flashinfer"}, drop=("prefill_attention_backend", "decode_attention_backend")
            ),
            setting(speculative_ngram_max_bfs_breadth=1),
        ),
    )


@handler.refuses(
    "SPC145",
    "ngram-with-dp-attention",
    raises="ValueError",
    bad="--speculative-algorithm NGRAM --tp-size 2 --dp-size 2 --enable-dp-attention",
    good="--speculative-algorithm NGRAM --tp-size 2",
)
def ngram_with_dp_attention(c: Config) -> Refusal | None:
    """N-gram drafting does not work with data-parallel attention.

    The lookup runs once for all requests, not per rank. Draft with EAGLE or EAGLE3, or turn data-parallel attention off.
    """
    if not attention_dp(c):
        return None
    switch = attention_dp_switch(c)
    return Refusal(
        at="speculative_algorithm",
        related_fields=(switch,),
        message=f"{c.shown('speculative_algorithm')} is refused with data-parallel attention: n-grams are not drafted per rank.",
        fixes=(no_attention_dp(c), dropping("speculative_algorithm")),
    )
