"""Drafting: what SGLang fills in, and what it refuses, at once and with the weights loaded."""

from __future__ import annotations

import pytest

from tests.resolution.launching import answer, resolved, rules

SHAPE = ("speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
EAGLE = "--speculative-algorithm EAGLE --speculative-draft-model-path {models}/eagle-draft"
EAGLE3 = "--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft"
CHAIN = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
TREE = "--speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8"
DFLASH = "--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft"
DSPARK = "--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft"
UNO = "--speculative-algorithm UNO --uno-lora-path adapter"
DP = "--tp-size 2 --dp-size 2 --enable-dp-attention"


@pytest.mark.parametrize(
    ("launch", "shape"),
    [
        (f"model=llama-2-7b -- {EAGLE}", ("EAGLE", 5, 4, 8)),
        ("model=qwen3-next-80b -- --tp-size 4 --speculative-algorithm NEXTN", ("EAGLE", 3, 1, 4)),
        (f"{EAGLE3} {TREE}", ("EAGLE3", 5, 4, 8)),
        (f"{EAGLE3.replace('EAGLE3 ', 'eagle3 ')} {CHAIN}", ("EAGLE3", 3, 1, 4)),
        (f"sglang=0.5.9 model=llama-2-7b -- {EAGLE}", ("EAGLE", 5, 4, 8)),
        (f"{EAGLE3} --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 8",
         ("EAGLE3", 3, 1, 4)),
    ],
)  # fmt: skip
def test_shape(launch: str, shape: tuple[object, ...]) -> None:
    assert resolved(launch, *SHAPE) == shape


@pytest.mark.parametrize(
    ("launch", "rule"),
    [
        ("--speculative-algorithm MEDUSA", "unknown-speculative-algorithm"),
        (f"sglang=0.5.19 -- {EAGLE} --speculative-num-steps 1", "steps-without-topk"),
        (f"{EAGLE} --speculative-eagle-topk 4", "topk-without-steps"),
        (f"--speculative-algorithm STANDALONE --speculative-draft-model-path {{models}}/qwen3-0.6b {DP}",
         "standalone-draft-with-dp-attention"),
        (f"--speculative-algorithm NGRAM {DP}", "ngram-with-dp-attention"),
        ("--speculative-algorithm NGRAM --speculative-ngram-external-corpus-path corpus.jsonl",
         "ngram-corpus-without-budget"),
        ("--speculative-algorithm DFLASH", "dflash-without-draft"),
        (f"{DFLASH} --pp-size 2", "dflash-with-pipeline-parallelism"),
        (f"{DFLASH} --speculative-dflash-block-size 8 --speculative-num-draft-tokens 16",
         "dflash-block-other-than-draft-tokens"),
        ("--speculative-algorithm DSPARK", "dspark-without-draft"),
        (f"{DSPARK} {DP}", "dspark-dp-attention-without-lm-head"),
        (f"{UNO} --speculative-num-draft-tokens 4 --tp-size 2", "uno-beyond-one-gpu"),
        (f"{UNO} --speculative-num-draft-tokens 4 --attention-backend triton", "uno-off-fa3"),
        (f"{EAGLE3} --speculative-use-rejection-sampling", "rejection-sampling-of-tree"),
        ("--speculative-algorithm NGRAM --speculative-use-block-verification", "block-verification-algorithm"),
        (f"{EAGLE3} --speculative-adaptive --speculative-num-steps 2 --speculative-eagle-topk 1 "
         "--speculative-num-draft-tokens 3", "start-outside-adaptive-steps"),
        ("sglang=0.5.9 gpu=b200 model=deepseek-v3 -- --tp-size 8 --speculative-moe-runner-backend flashinfer_trtllm",
         "trtllm-experts-in-draft"),
    ],
)  # fmt: skip
def test_refusals(launch: str, rule: str) -> None:
    assert rules(launch)[:1] == [rule]


@pytest.mark.parametrize(
    ("backend", "accepted"),
    [
        # A tree on pages of 16 tokens, by release; flashinfer was always taken, and each other backend since its first.
        ("flashinfer", {"0.5.2", "0.5.5.post3", "0.5.6", "0.5.12", "0.5.13.post1", "0.5.23"}),
        ("fa3", {"0.5.6", "0.5.12", "0.5.13.post1", "0.5.23"}),
        ("triton", {"0.5.13.post1", "0.5.23"}),
    ],
)
@pytest.mark.parametrize("release", ["0.5.2", "0.5.5.post3", "0.5.6", "0.5.12", "0.5.13.post1", "0.5.23"])
def test_trees_on_wide_pages(backend: str, accepted: set[str], release: str) -> None:
    said = rules(f"sglang={release} -- {EAGLE3} {TREE} --page-size 16 --attention-backend {backend}")
    assert said == ([] if release in accepted else ["tree-drafting-on-paged-backend"])


@pytest.mark.parametrize("release", ["0.5.1.post3", "0.5.2", "0.5.9", "0.5.12", "0.5.23"])
def test_trees_on_trtllm_mha(release: str) -> None:
    launch = f"sglang={release} gpu=b200 -- {EAGLE3} {TREE} --attention-backend trtllm_mha"
    assert rules(launch)[:1] == ["tree-drafting-on-trtllm-mha"]


def test_nextn_with_a_draft_nobody_knows_is_no_unknown_algorithm() -> None:
    launch = "model=none -- --model-path google/gemma-4-31B-it --speculative-algorithm NEXTN --speculative-draft-model-path some/assistant"
    assert rules(launch) == []


def test_no_page_rule_before_it_was_written() -> None:
    assert rules(f"sglang=0.5.1.post3 -- {EAGLE3} {TREE} --page-size 16 --attention-backend triton") == []


def test_a_release_not_modelled_is_left_unknown() -> None:
    assert answer(f"sglang=0.5.2 -- {EAGLE3} {TREE}").outcome == "unknown"


V2 = "SGLANG_ENABLE_SPEC_V2=1"


@pytest.mark.parametrize(
    ("launch", "rule"),
    [
        (f"{V2} sglang=0.5.5.post3 gpu=a100 -- {EAGLE3} {TREE} --disable-cuda-graph",
         "tree-drafting-with-first-overlap-worker"),
        (f"{V2} sglang=0.5.9 -- {EAGLE3} {TREE}", "tree-drafting-with-overlap-worker"),
        (f"{V2} sglang=0.5.9 -- {EAGLE3} {CHAIN}", None),
        (f"sglang=0.5.9 -- {EAGLE3} {TREE}", None),
        (f"sglang=0.5.18 -- {EAGLE} --enable-multi-layer-eagle", "tree-drafting-with-draft-layers"),
        (f"sglang=0.5.10.post1 gpu=gb300 {V2} model=kimi-k2 -- --tp-size 4 {EAGLE3} {CHAIN}",
         "latent-backend-for-plain-draft"),
        (f"sglang=0.5.10.post1 gpu=gb300 {V2} model=kimi-k2 -- --tp-size 4 {EAGLE3} {CHAIN} "
         "--speculative-draft-attention-backend flashinfer", None),
        (f"gpu=b200 model=deepseek-v3 -- --tp-size 8 --speculative-algorithm EAGLE {CHAIN} "
         "--speculative-draft-attention-backend trtllm_mha", "plain-backend-for-latent-draft"),
        (f"{EAGLE3} {CHAIN} --attention-backend torch_native", "backend-without-draft"),
        (f"gpu=b200 -- {EAGLE3} {CHAIN} --speculative-draft-attention-backend fa3", "fa3-draft-off-hopper"),
        (f"gpu=mi300x -- {EAGLE3}", "tree-drafting-on-aiter"),
        (f"model=gemma-2-9b -- {EAGLE3} {CHAIN}", "target-without-eagle3"),
        (f"model=mixtral-8x7b -- {DFLASH}", "target-without-block-drafts"),
    ],
)  # fmt: skip
def test_refusals_of_workers(launch: str, rule: str | None) -> None:
    assert rules(launch) == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("flags", "refused"),
    [("--enable-dp-attention", True), ("--enable-dp-attention --enable-dp-lm-head", False), ("", False)],
)
def test_dspark_reads_attention_dp_as_typed_in_0_5_17(flags: str, refused: bool) -> None:
    """One group alone switches data-parallel attention off, but this release's DSPARK looks at what was typed."""
    found = rules(
        f"sglang=0.5.17 gpu=b200 model=qwen3-8b -- --tp-size 8 --speculative-algorithm DSPARK --speculative-draft-model-path "
        f"{{models}}/llama-3.1-8b {flags}"
    )
    assert ("dspark-dp-attention-without-lm-head" in found) is refused
