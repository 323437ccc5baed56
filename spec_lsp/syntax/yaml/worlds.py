"""Joins the launches of one document that was read in several ways: one launch at each place, with a variant for each way."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from spec_lsp.records import replace
from spec_lsp.syntax.covering import Ways, fewest
from spec_lsp.syntax.launch import Choice, Launch, Variant
from spec_lsp.syntax.shell.values import MAX_VARIANTS
from spec_lsp.syntax.word import told

IDENTITY, START = attrgetter("program", "place"), attrgetter("place.start")
Way = tuple[tuple[Choice, ...], Sequence[Launch]]


def together(ways: Sequence[Way]) -> list[Launch]:
    """The launches of all ways, in the order of their places."""
    if len(ways) == 1 and not ways[0][0]:
        alone = ways[0][1]
        if len(set(map(IDENTITY, alone))) == len(alone):
            return sorted(alone, key=START)
    found: dict[object, list[tuple[tuple[Choice, ...], Launch]]] = {}
    for choices, launches in ways:
        for launch in launches:
            found.setdefault(IDENTITY(launch), []).append((choices, launch))
    merged = [_merged(same) for same in found.values()]
    return sorted(merged, key=START)


def looked_at(launches: Sequence[Launch], ways: Ways) -> Sequence[Launch]:
    """Marks launches that were found in a selection of the ways to read a document."""
    return launches if ways == "all" else [replace(one, ways=fewest((one.ways, ways))) for one in launches]


def _merged(same: Sequence[tuple[tuple[Choice, ...], Launch]]) -> Launch:
    first = same[0][1]
    kept: dict[object, Variant] = {}
    for choices, launch in same:
        for variant in launch.variants:
            taken = (*choices, *variant.choices)
            key = variant_key(variant)
            old = kept.get(key)
            shared = tuple(c for c in old.choices if c in taken) if old is not None else taken
            kept[key] = replace(variant if old is None else old, choices=shared)
    ways = fewest([*(launch.ways for _, launch in same), "all" if len(kept) <= MAX_VARIANTS else "some"])
    variants = list(kept.values())[:MAX_VARIANTS]
    common = set(variants[0].choices).intersection(*(v.choices for v in variants))
    variants = [replace(v, choices=tuple(c for c in v.choices if c not in common)) for v in variants]
    clues = tuple(dict.fromkeys(c for _, launch in same for c in launch.clues))
    return replace(first, variants=tuple(variants), clues=clues, ways=ways)


def variant_key(variant: Variant) -> object:
    """What a variant runs with, regardless of how it was reached."""
    return (
        tuple(map(told, variant.words)),
        tuple((name, told(word)) for name, word in variant.env.items()),
        tuple((f.name, told(f.content)) for f in variant.files),
    )
