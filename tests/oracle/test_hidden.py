"""What is found behind another mistake is true or false, as SGLang says."""

from __future__ import annotations

from typing import Any

from tests.oracle.hidden import judged, mistakes_behind, told
from tests.oracle.test_combined import says

WORDS = ["--tp-size", "4", "--attn-dp-size", "3", "--speculative-algorithm", "NGRAM", "--port", "30001"]
QWEN = ["--model-path", "{models}/qwen3-8b"]
CASE: dict[str, Any] = {"id": 1, "argv": [*QWEN, *WORDS], "env": {}}
FIRST, SECOND = "tp-size-not-divisible-by-attention-dp-size", "ngram-with-dp-attention"


def test_ways_out_of_the_first_keep_what_the_second_is_about() -> None:
    (behind,) = mistakes_behind(CASE, "0.5.23", "h100")
    assert behind.rule == SECOND
    assert (("--attn-dp-size", "3"), ("--speculative-algorithm", "NGRAM")) in behind.ways  # two parts less
    assert all({("--attn-dp-size", "3"), ("--speculative-algorithm", "NGRAM")} <= set(way) for way in behind.ways)
    assert any(("--tp-size", "3") in way for way in behind.ways)  # a fix that is offered


def test_a_way_that_mends_both_is_none() -> None:
    """One of the fixes offered is for the whole launch."""
    words = ["--dllm-algorithm", "LowConfidence", "--enable-lora"]
    (behind,) = mistakes_behind({**CASE, "argv": [*QWEN, *words]}, "0.5.22", "h100")
    assert behind.ways == ((("--enable-lora",),),)


def test_a_launch_without_a_second_mistake_has_none_behind() -> None:
    assert not list(mistakes_behind({**CASE, "argv": [*QWEN, *WORDS[:-4]]}, "0.5.23", "h100"))


def test_it_is_true_if_no_way_is_accepted() -> None:
    asking: Any = says({"4": "first", "NGRAM": "second"})
    found = judged(asking, [CASE], "0.5.23", "h100")
    assert (found.true, found.false) == ({SECOND: 1}, {})


def test_it_is_false_if_one_is() -> None:
    asking: Any = says({"4": "first"})
    found = judged(asking, [CASE], "0.5.23", "h100")
    assert (found.true, list(found.false)) == ({}, [SECOND])
    assert f"{SECOND}: true 0, false 1" in "\n".join(told(found))
