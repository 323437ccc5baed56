"""Where the nodes of a parsed text are written: in a file, or in a word that another script passed on as text.

Nodes carry offsets into the text that they were parsed from. A source maps these to places in documents, and sources nest: the text of
`bash -c "…"` is a word, whose characters are written in the document, or in yet another word.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Protocol

from spec_lsp.records import dataclass
from spec_lsp.syntax.word import Fragment, Place, Word, hull

HOLE = "\uf8f0"
"""The character for an unknown part of an embedded text. A document may contain it too: the fragments decide."""


class Source(Protocol):
    text: str

    def place(self, start: int, end: int) -> Place:
        """Where [start, end) of the text is written."""

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


class WordSource:
    """A statement of a text that a word carries: offset 0 of its nodes is character `base` of `whole`. `text` is the statement's own."""

    __slots__ = ("base", "level", "starts", "text", "whole", "word")

    def __init__(
        self,
        word: Word,
        whole: str,
        base: int = 0,
        text: str | None = None,
        starts: list[int] | None = None,
        level: int | None = None,
    ) -> None:
        self.word = word
        self.whole = whole
        self.base = base
        self.text = whole if text is None else text
        self.starts = _starts(word) if starts is None else starts
        self.level = _level(word) if level is None else level
        """How many expansions the whole text came through: 0 if it is written out where it is passed on."""

    def statement(self, base: int, text: str) -> WordSource:
        """A statement of the same text that starts at character `base`."""
        return WordSource(self.word, self.whole, base, text, self.starts, self.level)

    def place(self, start: int, end: int) -> Place:
        if start == end:
            behind = self.fragments(start, start + 1)
            if behind:
                return Place(behind[0].place.document, behind[0].place.start, behind[0].place.start)
            before = self.fragments(start - 1, start) if self.base + start else ()
            at = before[-1].place if before else self.word.place
            return Place(at.document, at.end, at.end)
        found = self.fragments(start, end)
        if not found:
            return self.word.place
        seen = dict.fromkeys(map(self.seen, found))
        if len(seen) == 1 and self.part_of_one(start, end, found, next(iter(seen))):
            return hull(f.place for f in found)
        return hull(seen)

    def part_of_one(self, start: int, end: int, found: Sequence[Fragment], name: Place) -> bool:
        """Whether [start, end) is one of several words that a name brings in, all written in one document: they stand where it is set."""
        if any(f.place.document != name.document or f.place == name for f in found):
            return False
        around = (*(self.fragments(start - 1, start) if self.base + start else ()), *self.fragments(end, end + 1))
        return any(self.seen(f) == name for f in around)

    def seen(self, fragment: Fragment) -> Place:
        """Where a reader of the text sees a fragment: at the name that brings it in, if the rest of the text is written around that."""
        if len(fragment.via) <= self.level:
            return fragment.place
        if self.level:
            return fragment.via[self.level]
        return next((v for v in fragment.via if self.word.place.contains(v)), fragment.place)

    def fragments(self, start: int, end: int) -> tuple[Fragment, ...]:
        start, end = self.base + start, self.base + end
        first = max(bisect_right(self.starts, start) - 1, 0)
        while first and self.starts[first] >= start:
            first -= 1
        last = bisect_left(self.starts, end, first) + 1
        shift = self.starts[first] if self.starts else 0
        part = Word(self.word.fragments[first:last], self.word.place)
        return part.slice(start - shift, end - shift)


def _level(word: Word) -> int:
    return min((len(f.via) for f in word.fragments if f.verbatim), default=0)


def _starts(word: Word) -> list[int]:
    """Where in the text each fragment starts; an unknown one counts as one character."""
    starts = []
    position = 0
    for fragment in word.fragments:
        starts.append(position)
        position += 1 if fragment.text is None else len(fragment.text)
    return starts


def embedded(word: Word) -> WordSource:
    """The text of a word, with HOLE for each unknown part."""
    return WordSource(word, "".join(HOLE if f.text is None else f.text for f in word.fragments))
