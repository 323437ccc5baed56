"""Moves the launches of a document that itself only moved within its file."""

from __future__ import annotations

from spec_lsp.syntax.mapped import Mapped
from spec_lsp.syntax.word import Place


def shift(name: str, first: int, last: int, by: int) -> Mapped:
    """Move places in [first, last) of the document `name` by a number of characters.

    Places in other documents of the file (a ConfigMap that a pod mounts) stay.
    """

    def moved(place: Place) -> Place:
        document, start, end = place
        if document != name or start < first or end > last:
            return place
        return Place(document, start + by, end + by)

    return Mapped(moved)
