"""Which variants of a launch are judged on which hardware: all on all, as long as they are few.

A script with many switches has too many runs to judge while somebody types. Then every variant is judged on the likeliest hardware. On each
other hardware that nobody named, only as many are judged as are needed for any two settings of any two switches to come together, so that a
refusal by one hardware is not missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.worlds import NOT_NAMED
from spec_lsp.syntax.launch import Choice, Launch

MAX_RUNS = 96
"""The number of variants × worlds up to which every variant is judged in every world: launches are judged while somebody types."""


def grid(launch: Launch, worlds: Sequence[World]) -> Iterator[tuple[int, World]]:
    """The variants, by index, each with the worlds that it is judged in."""
    some = _likeliest(worlds) if len(worlds) * len(launch.variants) > MAX_RUNS else worlds
    few = covering(launch) if len(some) < len(worlds) else frozenset()
    for index in range(len(launch.variants)):
        for world in worlds:
            if world in some or index in few:
                yield index, world


def _likeliest(worlds: Sequence[World]) -> Sequence[World]:
    """The named worlds and, of those without named hardware, only the likeliest."""
    unnamed = [w.hardware for w in worlds if w.hardware_from == NOT_NAMED and w.hardware is not None]
    likeliest = next((h for h in unnamed if h.family == "hopper"), unnamed[0] if unnamed else None)
    return [w for w in worlds if w.hardware_from != NOT_NAMED or w.hardware == likeliest]


def covering(launch: Launch) -> frozenset[int]:
    """Variants among which any two choices come together that do so in some variant; all variants if choices do not distinguish them."""
    pairs = [_pairs(variant.choices) for variant in launch.variants]
    if len({frozenset(p) for p in pairs}) < len(pairs):
        return frozenset(range(len(pairs)))
    missing = set().union(*pairs)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(pairs)), key=lambda index: len(pairs[index] & missing))
        chosen.add(best)
        missing -= pairs[best]
    return frozenset(chosen)


def _pairs(choices: Sequence[Choice]) -> set[tuple[Choice, Choice]]:
    return set(combinations_with_replacement(choices, 2))
