"""Diagnostics of a launch that reads as before but stands elsewhere: their places moved along with its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spec_lsp.analysis.report import Diagnostic, Related
from spec_lsp.syntax.launch import Launch
from spec_lsp.syntax.word import Place


def moved(diagnostics: Sequence[Diagnostic], before: Launch, after: Launch, index: int) -> list[Diagnostic] | None:
    """The diagnostics of `before` as those of `after`, the `index`th launch of its document, which reads word for word the same.

    None when a place lies at no word's edge (inside a file that the script writes): then it must be found anew.
    """
    if before is after and all(d.launch == index for d in diagnostics):
        return list(diagnostics)
    edges = _Edges(before, after)
    found = []
    for diagnostic in diagnostics:
        place = edges.of(diagnostic.place)
        related = [(edges.of(r.place), r.message) for r in diagnostic.related]
        if place is None or any(p is None for p, _ in related):
            return None
        kept = tuple(Related(p, message) for p, message in related if p is not None)
        key = diagnostic.key.replace(f":{diagnostic.launch}:", f":{index}:", 1)
        found.append(replace(diagnostic, place=place, related=kept, key=key, launch=index))
    return found


class _Edges:
    """Where each word and fragment of one launch starts and ends in another that reads the same."""

    def __init__(self, before: Launch, after: Launch) -> None:
        self._document = before.place.document
        old, new = _places(before), _places(after)
        self._starts = dict(zip([p[:2] for p in old], [p[:2] for p in new], strict=True))
        self._ends = dict(zip([(p[0], p[2]) for p in old], [(p[0], p[2]) for p in new], strict=True))

    def of(self, place: Place) -> Place | None:
        start = self._starts.get((place.document, place.start))
        end = self._ends.get((place.document, place.end))
        if start is None or end is None or start[0] != end[0]:
            # another file is part of what makes two launches read the same: it has not changed
            return place if place.document != self._document else None
        return Place(start[0], start[1], end[1])


def _places(launch: Launch) -> list[Place]:
    found = [launch.place]
    for variant in launch.variants:
        for word in (*variant.words, *variant.env.values()):
            found.append(word.place)
            for fragment in word.fragments:
                found.append(fragment.place)
                if fragment.via:
                    found += fragment.via
    return found
