"""Where the nodes of a parsed text stand: in a file, or in a word that another script passed on as text.

Nodes carry offsets into the text they were parsed from. A source turns these into places in documents; it is what makes
maps compose: the text of `bash -c "…"` is a word, whose characters stand in the document, or in yet another word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from spec_lsp.syntax.word import Fragment, Place, Word, hull

HOLE = "\uf8f0"
"""Stands in an embedded text for a part that nobody knows. A document may hold this character too: fragments decide."""


class Source(Protocol):
    text: str

    def place(self, start: int, end: int) -> Place:
        """Where [start, end) of the text stands."""

    def fragments(self, start: int, end: int) -> tuple[Fragment, ...]:
        """The characters [start, end) with their places."""


@dataclass(slots=True, eq=False)
class FileSource:
    """A statement of a document: offset 0 of its nodes is character `base`. `text` is the statement's own."""

    document: str
    base: int
    text: str

    def place(self, start: int, end: int) -> Place:
        return Place(self.document, self.base + start, self.base + end)

    def fragments(self, start: int, end: int) -> tuple[Fragment, ...]:
        return (Fragment(self.text[start:end], Place(self.document, self.base + start, self.base + end)),)


@dataclass(slots=True, eq=False)
class WordSource:
    """A text that a word carries."""

    word: Word
    text: str

    def place(self, start: int, end: int) -> Place:
        if start == end:
            behind = self.word.slice(start, start + 1)
            if behind:
                return Place(behind[0].place.document, behind[0].place.start, behind[0].place.start)
            before = self.word.slice(start - 1, start) if start else ()
            at = before[-1].place if before else self.word.place
            return Place(at.document, at.end, at.end)
        found = self.word.slice(start, end)
        if not found:
            return self.word.place
        return hull(f.place for f in found)

    def fragments(self, start: int, end: int) -> tuple[Fragment, ...]:
        return self.word.slice(start, end)


def embedded(word: Word) -> WordSource:
    """The text of a word, with a hole for each part that is unknown."""
    return WordSource(word, "".join(HOLE if f.text is None else f.text for f in word.fragments))
