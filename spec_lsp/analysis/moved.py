"""Diagnostics of a launch that is written as before but stands elsewhere: their places moved along with its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, repeat
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

    def takes(self, old: Place, new: Place) -> bool:
        """Notes where a place went; False where that is not where its edges went before."""
        before, start, end = old
        after, start_now, end_now = new
        if before != self.before or after != self.after:
            return old == new
        return (
            self.offsets.setdefault(start, start_now) == start_now and self.offsets.setdefault(end, end_now) == end_now
        )


def _move(before: Launch, after: Launch) -> _Move | None:
    """None for launches that are not written alike: as many places, in the same order and as far apart, for the same texts.

    Places as far apart as no underline reaches may be farther or nearer: the assignment of a variable, and the flag that it is given to.
    """
    if before.syntax != after.syntax or len(before.variants) != len(after.variants):
        return None
    move = _Move(before.place.document, after.place.document, {})
    if not move.takes(before.place, after.place) or not all(
        map(_variants_alike, before.variants, after.variants, repeat(move))
    ):
        return None
    return move if _as_far_apart(move.offsets) else None


def _variants_alike(old: Variant, new: Variant, move: _Move) -> bool:
    """Whether two ways are written alike but for where: what they are made of, and what is chosen on the way to them."""
    return (
        len(old.choices) == len(new.choices)
        and all(
            a.taken == b.taken and move.takes(a.place, b.place) for a, b in zip(old.choices, new.choices, strict=True)
        )
        and _words_alike(old.words, new.words, move)
        and _words_alike(tuple(old.env.values()), tuple(new.env.values()), move)
        and _words_alike([f.content for f in old.files], [f.content for f in new.files], move)
    )


def _words_alike(olds: Sequence[Word], news: Sequence[Word], move: _Move) -> bool:
    """This looks at every word of every launch that stands elsewhere after a keystroke, so it takes the tuples apart."""
    if len(olds) != len(news):
        return False
    for old, new in zip(olds, news, strict=True):
        parts, place, splat, scalar = old
        parts_now, place_now, splat_now, scalar_now = new
        if len(parts) != len(parts_now) or splat != splat_now or scalar != scalar_now:
            return False
        if not move.takes(place, place_now):
            return False
        for part, part_now in zip(parts, parts_now, strict=True):
            text, at, verbatim, reason, via, fixed = part
            text_now, at_now, verbatim_now, reason_now, via_now, fixed_now = part_now
            if text != text_now or verbatim != verbatim_now or reason != reason_now or fixed != fixed_now:
                return False
            if (at is not place or at_now is not place_now) and not move.takes(at, at_now):
                return False
            if (via or via_now) and (len(via) != len(via_now) or not all(map(move.takes, via, via_now))):
                return False
    return True


def _as_far_apart(offsets: Mapping[int, int]) -> bool:
    if len({new - old for old, new in offsets.items()}) == 1:
        return True  # as a rule: the lines above became more or fewer
    for (old, new), (old_next, new_next) in pairwise(sorted(offsets.items())):
        gap, gap_now = old_next - old, new_next - new
        if gap != gap_now and min(gap, gap_now) <= MAX_UNDERLINE:
            return False
    return True
