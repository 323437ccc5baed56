"""A refusal hides no other mistake, and a mistake that every way out ends with it is not told."""

from __future__ import annotations

import pytest

from tests.resolution.launching import rules

ON = "sglang=0.5.21 gpu=b200 model="


@pytest.mark.parametrize(
    ("launch", "hiding", "hidden"),
    [
        # A refused backend is not known, and with it not which one prefill has.
        (f"{ON}gpt-oss-120b -- --enable-deterministic-inference --decode-attention-backend dsv4", "gpt-oss-on-sinkless-backend", "nondeterministic-attention-backend"),
        # The wrong setting itself is refused twice.
        (f"{ON}llama-3.1-8b -- --enable-prefill-cp --prefill-only-disable-kv-cache", "context-parallelism-without-kv-cache", "prefill-context-parallel-without-strategy"),
        # A step that a refused value makes go its own way.
        (f"{ON}gemma-2-9b -- --dllm-algorithm LowConfidence --enable-lora", "diffusion-algorithm-on-other-model", "lora-without-adapters-or-shape"),
        ("--tp-size 4 --attn-dp-size 3 --speculative-algorithm NGRAM", "tp-size-not-divisible-by-attention-dp-size", "ngram-with-dp-attention"),
    ],
)  # fmt: skip
def test_the_other_mistake_is_told(launch: str, hiding: str, hidden: str) -> None:
    assert {hiding, hidden} <= set(rules(launch))


@pytest.mark.parametrize(
    "launch",
    [
        # Of the three ways out one sets a backend that this model cannot use either.
        "gpu=h100 model=llama-3.1-8b -- --attention-backend trtllm_mla",
        # With `--tp-size 4` both are accepted: there is attention data parallelism to overlap.
        "gpu=b200 model=deepseek-v3 -- --enable-two-batch-overlap --attn-dp-size 4",
        # Only the writer knows the draft: nobody would leave the algorithm out.
        "--speculative-algorithm EAGLE3",
    ],
)
def test_what_a_way_out_ends_too_is_not_told(launch: str) -> None:
    assert len(rules(launch)) == 1


def test_an_accepted_launch_hides_nothing() -> None:
    assert rules("--tp-size 4 --attn-dp-size 4 --enable-dp-lm-head") == []
