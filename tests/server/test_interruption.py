"""Typing goes before analysis, and every interrupted analysis gets on."""

from __future__ import annotations

import pytest

from spec_lsp.analysis.cache import Cache
from spec_lsp.server.interruption import Interrupted, InterruptibleCache


class Verdicts(dict[str, int]):
    def put(self, key: str, verdict: int) -> None:
        self[key] = verdict


def judge(cache: InterruptibleCache, launches: str) -> list[str]:
    """The launches that had to be judged."""
    judged = []
    for launch in launches:
        if cache.get(launch) is None:
            judged.append(launch)
            cache.put(launch, 1)
    return judged


def test_each_try_adds_at_least_one_verdict_and_keeps_it() -> None:
    cache = InterruptibleCache(Verdicts(), lambda: True)
    for _ in "abcd":
        with cache.interruptible(), pytest.raises(Interrupted):
            judge(cache, "abcde")
    with cache.interruptible():
        assert judge(cache, "abcde") == ["e"]


def test_nothing_is_interrupted_elsewhere_or_when_nobody_waits() -> None:
    assert judge(InterruptibleCache(Verdicts(), lambda: True), "abc") == ["a", "b", "c"]
    cache = InterruptibleCache(Verdicts(), lambda: False)
    with cache.interruptible():
        assert judge(cache, "abc") == ["a", "b", "c"]


def test_what_a_cache_can_do_an_interruptible_one_can() -> None:
    cache = Cache()
    interruptible = InterruptibleCache(cache, lambda: False)
    for name in (name for name in dir(cache) if not name.startswith("_")):
        assert hasattr(interruptible, name), name
    assert interruptible.found(cache, 1, lambda: "found") == "found"
    assert interruptible.found(cache, 1, lambda: "again") == "found"
