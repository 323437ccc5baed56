"""Turns places (characters of a document) into locations (lines and characters of a file, with the lines to show)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from spec_lsp.cli.report import Location, Position, SourceLine
from spec_lsp.syntax.lines import LineIndex
from spec_lsp.syntax.word import Place

LONG_LINE = 220
"""Longer lines are shown partially."""
LEAD = 60
"""How many characters are shown before the place in a long line."""
SHOWN_LINES = 5
"""Of a place that covers more lines, only so many first ones are shown."""


def shown_name(document: str, here: str) -> str:
    """How a file is named to a person who stands in folder `here`: relative to it where it lies below."""
    if not os.path.isabs(document):
        return document
    prefix = here.rstrip(os.sep) + os.sep
    name = document[len(prefix) :] if document.startswith(prefix) else document
    return Path(name).as_posix()


class Sources:
    """The texts of the documents of one analysis, by name."""

    def __init__(self, texts: Mapping[str, str], here: str) -> None:
        self._texts = texts
        self._here = here
        self._indices: dict[str, LineIndex] = {}

    def location(self, place: Place) -> Location:
        """Where a place is, with the lines to show."""
        index = self._index(place.document)
        start, end = Position(*index.position(place.start)), Position(*index.position(place.end))
        last = min(end.line, start.line + SHOWN_LINES - 1)
        lines = tuple(
            self._line(index, n, start.character if n == start.line else 0) for n in range(start.line, last + 1)
        )
        return Location(shown_name(place.document, self._here), start, end, lines)

    def bare(self, place: Place) -> Location:
        """Where a place is, without lines to show."""
        index = self._index(place.document)
        ends = Position(*index.position(place.start)), Position(*index.position(place.end))
        return Location(shown_name(place.document, self._here), *ends)

    def _index(self, document: str) -> LineIndex:
        if document not in self._indices:
            self._indices[document] = LineIndex(self._texts.get(document, ""))
        return self._indices[document]

    @staticmethod
    def _line(index: LineIndex, number: int, character: int) -> SourceLine:
        start, end = index.line_span(number)
        text = index.text[start:end]
        if len(text) <= LONG_LINE:
            return SourceLine(number, text)
        cut = max(character - LEAD, 0)
        return SourceLine(number, text[cut : cut + LONG_LINE], cut)
