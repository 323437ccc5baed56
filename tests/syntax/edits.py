"""What the tests of edits share: flags with values, as every layout writes them."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

Pairs = list[tuple[str, str]]
"""Flags with their values; a switch has an empty one."""

values = st.sampled_from(["8", "0.85", "fa3", "/models/a-b", ""])
pairs_of = st.lists(values, min_size=1, max_size=4).map(lambda vs: [(f"--flag-{i}", v) for i, v in enumerate(vs)])


def flat(pairs: Pairs, layout: Callable[[Pairs], str]) -> list[str]:
    """The words that a layout writes; one called `equals` joins each flag and its value."""
    if layout.__name__ == "equals":
        return [f"{f}={v}" if v else f for f, v in pairs]
    return [w for pair in pairs for w in pair if w]
