"""Diagnostics of a launch that is written as before but stands elsewhere: their places moved along with its words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from spec_lsp.analysis.diagnostics import MAX_UNDERLINE
from spec_lsp.analysis.report import Diagnostic, Related
from spec_lsp.syntax.launch import Launch, Variant
from spec_lsp.syntax.word import Place, Word


def moved(diagnostics: Sequence[Diagnostic], before: Launch, after: Launch, index: int) -> list[Diagnostic] | None:
    """The diagnostics of `before` as those of `after`, the `index`th launch of its document, which reads word for word the same.

    None where that may not be what would be found anew: the launches are written differently (`--tp 8` and `--tp $TP`), or a place
    lies at no word's edge.
    """
    if before is after and all(d.launch == index for d in diagnostics):
        return list(diagnostics)
    move = _move(before, after)
    if move is None:
        return None
    found = []
    for diagnostic in diagnostics:
        place = move.of(diagnostic.place)
        related = [(move.of(r.place), r.message) for r in diagnostic.related]
        if place is None or any(p is None for p, _ in related):
            return None
        kept = tuple(Related(p, message) for p, message in related if p is not None)
        key = diagnostic.key.replace(f":{diagnostic.launch}:", f":{index}:", 1)
        found.append(replace(diagnostic, place=place, related=kept, key=key, launch=index))
    return found


class _Move(NamedTuple):
    """Where the edges of all that is written of one launch lie in another that is written the same."""

    before: str
    after: str
    offsets: dict[int, int]

    def of(self, place: Place) -> Place | None:
        if place.document != self.before:
            return place  # another file is part of what makes two launches read the same: it has not changed
        start, end = self.offsets.get(place.start), self.offsets.get(place.end)
        return None if start is None or end is None else Place(self.after, start, end)


def _move(before: Launch, after: Launch) -> _Move | None:
    """None for launches that are not written alike: as many places, in the same order and as far apart, for the same texts.

    Places as far apart as no underline reaches may be farther or nearer: the assignment of a variable, and the flag that it is given to.
    """
    if before.syntax != after.syntax or _written(before) != _written(after):
        return None
    move = _Move(before.place.document, after.place.document, {})
    for old, new in zip(_places(before), _places(after), strict=True):
        if old.document != move.before or new.document != move.after:
            if old != new:
                return None
        elif (
            move.offsets.setdefault(old.start, new.start) != new.start
            or move.offsets.setdefault(old.end, new.end) != new.end
        ):
            return None
    return move if _as_far_apart(sorted(move.offsets.items())) else None


def _as_far_apart(edges: Sequence[tuple[int, int]]) -> bool:
    for (old, new), (old_next, new_next) in pairwise(edges):
        gap, gap_now = old_next - old, new_next - new
        if gap != gap_now and min(gap, gap_now) <= MAX_UNDERLINE:
            return False
    return True


def _written(launch: Launch) -> list[object]:
    """All that is written of a launch but for where: what it is made of, and what is chosen on the way to it."""
    found: list[object] = []
    for variant in launch.variants:
        found.append([choice.taken for choice in variant.choices])
        for word in _words(variant):
            parts = [(f.text, f.verbatim, f.reason, f.fixed, len(f.via)) for f in word.fragments]
            found.append((word.splat, word.scalar, parts))
    return found


def _places(launch: Launch) -> Iterator[Place]:
    yield launch.place
    for variant in launch.variants:
        for choice in variant.choices:
            yield choice.place
        for word in _words(variant):
            yield word.place
            for fragment in word.fragments:
                yield fragment.place
                yield from fragment.via


def _words(variant: Variant) -> Iterator[Word]:
    yield from variant.words
    yield from variant.env.values()
    yield from (file.content for file in variant.files)
