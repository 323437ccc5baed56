"""What is found behind another mistake is true or false, as SGLang says."""

from __future__ import annotations

from typing import Any

from tests.oracle.hidden import Truth, judged, mistakes_behind, told
from tests.oracle.test_combined import says

WORDS = ["--tp-size", "4", "--attn-dp-size", "3", "--speculative-algorithm", "NGRAM", "--port", "30001"]
QWEN = ["--model-path", "{models}/qwen3-8b"]
CASE: dict[str, Any] = {"id": 1, "argv": [*QWEN, *WORDS], "env": {}, "error": None}
FIRST, SECOND = "tp-size-not-divisible-by-attention-dp-size", "ngram-with-dp-attention"


RANKS, DRAFTING = ("--attn-dp-size", "3"), ("--speculative-algorithm", "NGRAM")


def test_ways_out_of_the_first_keep_what_the_second_is_about() -> None:
    (behind,) = mistakes_behind(CASE, "0.5.23", "h100")
    assert behind.rule == SECOND
    assert behind.ways[(RANKS, DRAFTING)] is True  # two parts less
    assert behind.ways[(DRAFTING, ("--port", "30001"))] is False  # without ranks, which the second names
    assert all(DRAFTING in way for way in behind.ways)
    assert any(("--tp-size", "3") in way for way in behind.ways)  # a fix that is offered


def test_a_way_that_mends_both_keeps_not_all() -> None:
    """One of the fixes offered is for the whole launch."""
    words = ["--dllm-algorithm", "LowConfidence", "--enable-lora"]
    (behind,) = mistakes_behind({**CASE, "argv": [*QWEN, *words]}, "0.5.22", "h100")
    assert behind.ways[(("--enable-lora",),)] is True
    assert not any(kept for way, kept in behind.ways.items() if ("--max-lora-rank", "64") in way)


def test_a_launch_without_a_second_mistake_has_none_behind() -> None:
    assert not list(mistakes_behind({**CASE, "argv": [*QWEN, *WORDS[:-4]]}, "0.5.23", "h100"))


def judged_by(refused: dict[str, str]) -> Truth:
    return judged(says(refused), [CASE], "0.5.23", "h100")


def test_it_is_true_if_sglang_then_refuses_for_it() -> None:
    (behind,) = mistakes_behind(CASE, "0.5.23", "h100")
    file, _, name = behind.place[0].partition(":")
    found = judged_by({"4": "first", "NGRAM": f"{file}:{name}:7"})
    assert (dict(found.true), found.unshown, found.false) == ({SECOND: 1}, [], [])


def test_it_is_not_shown_if_other_reasons_refuse() -> None:
    found = judged_by({"4": "first", "NGRAM": "elsewhere.py:other:7"})
    assert (found.true.total(), len(found.unshown), found.false) == (0, 1, [])
    assert f"not shown: {SECOND}" in "\n".join(told(found))


def test_it_is_false_if_sglang_accepts() -> None:
    found = judged_by({"4": "first"})
    assert (found.true.total(), found.unshown, len(found.false)) == (0, [], 1)
    assert f"false: {SECOND}" in "\n".join(told(found))
