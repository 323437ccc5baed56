"""Moves a document that was read from a text inside another document to its places there.

A Markdown fence, a cell of a notebook, a ConfigMap's entry: the text is read as a file of its own, and the results are moved to where its
characters are written. Only the map knows about indentation, escapes and quote marks.
"""

from __future__ import annotations

from spec_lsp.records import replace
from spec_lsp.syntax.launch import Document
from spec_lsp.syntax.mapped import Mapped
from spec_lsp.syntax.source import Source
from spec_lsp.syntax.word import Fragment


def remap(inner: Document, source: Source) -> Document:
    """`inner` as read from `source.text`, with its places mapped by `source`; places in other documents stay.

    A verbatim fragment becomes one for each contiguous range. The name and text stay those of `inner`.
    """
    moved = _Moved(inner.name, source)
    return replace(
        inner,
        launches=tuple(map(moved.launch, inner.launches)),
        problems=tuple(map(moved.problem, inner.problems)),
        directives=tuple(map(moved.directive, inner.directives)),
    )


class _Moved(Mapped):
    def __init__(self, name: str, source: Source) -> None:
        super().__init__(lambda place: source.place(place.start, place.end) if place.document == name else place)
        self.name = name
        self.source = source

    def fragments(self, fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
        return tuple(piece for fragment in fragments for piece in self._pieces(fragment))

    def _pieces(self, fragment: Fragment) -> tuple[Fragment, ...]:
        if not fragment.verbatim or fragment.text is None or fragment.place.document != self.name:
            return (self.fragment(fragment),)
        via = tuple(map(self.place, fragment.via))
        pieces = self.source.fragments(fragment.place.start, fragment.place.end)
        return tuple(p._replace(via=(*p.via, *via), fixed=p.fixed or fragment.fixed) for p in pieces)
