"""Launches are written and read as they are, and the counts say what happened to them."""

from __future__ import annotations

from typing import Any

import pytest

from spec_lsp.catalog.store import load, releases
from tests.oracle.launches import draw
from tests.oracle.repairs import Repairs, count, fixed, flags, read, script, told


def test_a_script_holds_the_case() -> None:
    for case in draw(load(releases()[-1]), 5, 60):
        assert read(script(case)) == {"argv": case["argv"], "env": case.get("env") or {}}


def test_what_check_leaves_is_read_back() -> None:
    argv = ["--model-path", "{models}/qwen3-8b", "--page-sise", "16"]
    safe, whole = (fixed([{"argv": argv}], "0.5.23", "h100", *options) for options in ((), ("--unsafe-fixes",)))
    assert flags(whole[0]) == {"--model-path": 1, "--page-size": 1}
    assert whole[0]["argv"][1] == "{models}/qwen3-8b"
    assert safe[0]["argv"] == argv


def verdict(outcome: str, *argv: str, **resolved: Any) -> dict[str, Any]:
    return {"argv": list(argv), "env": {}, "outcome": outcome, "resolved": resolved, "error": None}


@pytest.mark.parametrize(
    ("was", "kept", "now", "counted", "broken"),
    [
        (verdict("ok", page_size=1), verdict("ok", page_size=1), verdict("ok", page_size=1), {"accepted": 1}, 0),
        (
            verdict("ok", "--a", page_size=1), verdict("ok", page_size=2), verdict("ok", page_size=2),
            {"accepted and changed by safe fixes": 1}, 1,
        ),
        (verdict("ok", "--a"), verdict("ok", "--a"), verdict("refused"), {"accepted and changed": 1}, 2),
        (verdict("ok", "--a"), verdict("ok", "--a"), verdict("ok"), {"accepted, changed: unexplained": 1}, 1),
        (verdict("ok", "--late"), verdict("ok", "--late"), verdict("ok"), {"accepted, changed: late, would die": 1}, 0),
        (verdict("ok", "--a"), verdict("ok", "--b"), verdict("ok", "--b"), {"accepted and changed by safe fixes": 1}, 0),
        (
            verdict("refused", "--a", "--b"), verdict("refused", "--a", "--b"), verdict("ok", "--b"),
            {"refused, changed, accepted": 1, "flags given up": 1}, 0,
        ),
    ],
)  # fmt: skip
def test_counts(was: Any, kept: Any, now: Any, counted: dict[str, int], broken: int) -> None:
    found = Repairs()
    count(found, was, kept, now, ["a-late-rule"] if "--late" in was["argv"] else [])
    assert found.counts | counted == found.counts
    assert found.broken == broken
    assert len(list(told(found))) >= 1
