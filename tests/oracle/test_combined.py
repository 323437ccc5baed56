"""Two mistakes are put together, and count where SGLang says that both are true of the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from spec_lsp.catalog.store import load, releases
from tests.oracle.combined import Combined, Mistake, case_of, count, drawn, mistakes, offered, parts_of, true_pairs
from tests.oracle.combined import told as lines
from tests.oracle.launches import draw

QWEN = "{models}/qwen3-8b"
PAGE, TIMEOUT, RANKS = ("--page-size", "7"), ("--dist-timeout", "0"), ("--tp-size", "2")


def says(refused: dict[str, str]) -> Any:
    """A SGLang that refuses a launch for the first of these words that it has."""

    def asking(cases: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        verdicts = []
        for case in cases:
            why = next((where for word, where in refused.items() if word in case["argv"]), "")
            error = {"type": "ValueError", "where": why, "message": "no"} if why else None
            verdicts.append({**case, "outcome": "refused" if why else "ok", "error": error})
        return verdicts

    return asking


def mistake(reason: str, *parts: tuple[str, ...], model: str = QWEN, mends: Any = ((),)) -> Mistake:
    return Mistake(model, parts, ("ValueError", reason), reason, frozenset(p[0] for p in parts), mends)


def test_a_launch_is_its_parts() -> None:
    for case in draw(load(releases()[-1]), 6, 60):
        whole = case_of(*parts_of(case))
        assert (whole["argv"], whole["env"]) == (case["argv"], case["env"])


def test_pairs_are_of_one_model_and_share_no_flag_and_no_reason() -> None:
    a, b = mistake("a.py:a:1", PAGE), mistake("b.py:b:1", TIMEOUT)
    others = (
        mistake("a.py:a:1", TIMEOUT),
        mistake("c.py:c:1", PAGE),
        mistake("d.py:d:1", RANKS, model="{models}/llama-3.1-8b"),
    )
    assert drawn([a, b], 9, 1) == [(a, b)]
    assert all({first.reason, second.reason} != {a.reason} for first, second in drawn([a, b, *others], 9, 1))
    assert not any(a.fields & second.fields for first, second in drawn([a, *others], 9, 1) if first is a)


def test_a_pair_counts_if_both_are_true_however_the_other_is_mended() -> None:
    a, b = mistake("a.py:a:1", PAGE), mistake("b.py:b:1", TIMEOUT)
    both = says({"--page-size": "a.py:a:1", "--dist-timeout": "b.py:b:1"})
    counts: Counter[str] = Counter()
    assert list(true_pairs(both, [(a, b)], counts)) == [(a, b)]
    assert counts == {"pairs": 1}
    one = says({"--page-size": "a.py:a:1"})
    assert list(true_pairs(one, [(a, b)], counts)) == []
    another_way = mistake("a.py:a:1", PAGE, mends=((), (RANKS,)))  # with two ranks, nothing is wrong any more
    ends = says({"--tp-size": "", "--page-size": "a.py:a:1", "--dist-timeout": "b.py:b:1"})
    assert list(true_pairs(ends, [(another_way, b)], counts)) == []


def test_what_is_told_is_counted_by_rule() -> None:
    found = Combined()
    a, b = mistake("a", PAGE), mistake("b", TIMEOUT)
    for told in (["a", "b"], ["a"]):
        count(found, a, b, {"findings": [{"rule": rule, "severity": "error"} for rule in told]})
    assert found.counts == {"true of the whole": 2, "both told": 1}
    assert [missing for _, missing, _ in found.missed] == [["b"]]
    assert "not told: b; told: a" in "\n".join(lines(found))


def test_mistakes_are_reduced_and_mended() -> None:
    """The words that a refusal does not take go, and every way to mend it is one that SGLang accepts."""
    words = ["--page-size", "7", "--tp-size", "4", "--attn-dp-size", "3"]
    case = {"argv": ["--model-path", QWEN, *words], "env": {}}
    asking = says({"3": "parallel_hook.py:handle_data_parallelism:1"})
    (found,) = mistakes(asking, [case], "0.5.23", "h100", Counter())
    assert (found.rule, found.parts) == ("tp-size-not-divisible-by-attention-dp-size", (("--attn-dp-size", "3"),))
    assert found.mends
    assert all("3" not in part for way in found.mends for part in way)


def test_fixes_that_are_offered_are_ways_to_mend() -> None:
    ways = list(offered(case_of(QWEN, [("--tp-size", "4"), ("--attn-dp-size", "3")]), "0.5.23", "h100"))
    assert (("--tp-size", "3"), ("--attn-dp-size", "3")) in ways
