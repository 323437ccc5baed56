"""Carries what was read of a text over to the text after an edit: the same things, at the places where they stand now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from spec_lsp.syntax.launch import Choice, Clue, EmbeddedFile
from spec_lsp.syntax.shell import commands
from spec_lsp.syntax.shell.launches import Note, Seen
from spec_lsp.syntax.shell.values import Array, Fork, Grown, Later, Point, Scalar, Table
from spec_lsp.syntax.source import FileSource, Source, WordSource
from spec_lsp.syntax.word import Fragment, Place, Word

T = TypeVar("T")
_new = tuple.__new__


class Unmovable(Exception):  # noqa: N818 - control flow
    """Something stands in the text that the edit replaced, or is made from it when it is asked for."""


@dataclass(slots=True, eq=False)
class Move:
    """An edit of `document`: the characters [start, end) of the old text became others, so that what is behind moves by `shift`.

    The same object moved twice is the same object again.
    """

    document: str
    start: int
    end: int
    shift: int
    kept: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def offset(self, at: int) -> int:
        if at <= self.start:
            return at
        if at < self.end:
            raise Unmovable
        return at + self.shift

    def place(self, place: Place) -> Place:
        document, start, end = place
        if end <= self.start or document != self.document:
            return place
        if start >= self.end:
            return _new(Place, (document, start + self.shift, end + self.shift))
        return Place(document, self.offset(start), self.offset(end))

    def fragments(self, fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
        if len(fragments) == 1:
            return (self.fragment(fragments[0]),)
        return tuple([self.fragment(f) for f in fragments])

    def fragment(self, fragment: Fragment) -> Fragment:
        text, place, verbatim, reason, via, fixed = fragment
        if via:
            via = tuple([self.place(v) for v in via])
        return _new(Fragment, (text, self.place(place), verbatim, reason, via, fixed))

    def word(self, word: Word) -> Word:
        known = self.kept.get(id(word))
        if known is not None:
            moved: Word = known[1]
            return moved
        fragments, place, splat, scalar = word
        if len(fragments) == 1 and fragments[0][1] == place and not fragments[0][4]:
            text, _, verbatim, reason, via, fixed = fragments[0]
            place = self.place(place)
            fragments = (_new(Fragment, (text, place, verbatim, reason, via, fixed)),)
        else:
            fragments, place = self.fragments(fragments), self.place(place)
        new: Word = _new(Word, (fragments, place, splat, scalar))
        self.kept[id(word)] = (word, new)
        return new

    def words(self, words: Iterable[Word]) -> tuple[Word, ...]:
        return tuple([self.word(w) for w in words])

    def value(self, value: Any) -> Any:
        """What a variable holds; what is no value of a variable stays."""
        known = self.kept.get(id(value))
        if known is not None:
            return known[1]
        new: Any = value
        if isinstance(value, Scalar):
            fragments = self.fragments(value.fragments)
            new = value if fragments == value.fragments else Scalar(fragments)
        elif isinstance(value, Array):
            words = self.words(value.words)
            new = value if words == value.words else Array(words)
        elif isinstance(value, Table):
            new = Table({key: self.value(item) for key, item in value.items.items()})
        elif isinstance(value, (Later, Grown)):
            raise Unmovable
        elif isinstance(value, Fork):
            new = Fork(self.point(value.point), tuple(map(self.value, value.arms)), value.soft, value.default)
        else:
            return value
        self.kept[id(value)] = (value, new)
        return new

    def point(self, point: Point) -> Point:
        known = self.kept.get(id(point))
        if known is not None:
            moved: Point = known[1]
            return moved
        place = self.place(point.place)
        new = point if place == point.place else Point(place, point.labels, point.number)
        self.kept[id(point)] = (point, new)
        return new

    def point_key(self, key: Any) -> Any:
        """What a point is known by: a name, or a place with labels and a number."""
        return (self.place(key[0]), *key[1:]) if isinstance(key, tuple) else key

    def source(self, source: Source) -> Source:
        if isinstance(source, FileSource):
            if source.document != self.document or source.base + len(source.text) <= self.start:
                return source
            return FileSource(source.document, self.offset(source.base), source.text)
        assert isinstance(source, WordSource)
        return WordSource(self.word(source.word), source.whole, source.base, source.text, source.starts)

    def clues(self, clues: Iterable[Clue]) -> tuple[Clue, ...]:
        return tuple([Clue(c.kind, c.text, self.place(c.place)) for c in clues])

    def note(self, note: Note) -> Note:
        choices, implied = (
            tuple([Choice(self.place(c.place), c.taken) for c in each]) for each in (note.choices, note.implied)
        )
        return Note(
            note.program,
            self.place(note.place),
            self.place(note.extent),
            note.node,
            None if note.source is None else self.source(note.source),
            self.clues(note.clues),
            self.seen(note.seen),
            choices,
            implied,
            None if note.carrier is None else self.place(note.carrier),
            note.ways,
        )

    def seen(self, seen: Seen) -> Seen:
        known = self.kept.get(id(seen))
        if known is not None:
            moved: Seen = known[1]
            return moved
        action = seen.action
        assert isinstance(action, commands.Started)
        around = action.around
        if around.env or around.clues:
            env = tuple([(name, None if word is None else self.word(word)) for name, word in around.env])
            around = replace(around, env=env, clues=self.clues(around.clues))
        action = commands.Started(action.program, self.words(action.entry), self.words(action.args), around)
        env_words = tuple([(name, self.word(word)) for name, word in seen.env])
        files = tuple([EmbeddedFile(f.name, self.word(f.content)) for f in seen.files])
        new = Seen(action, env_words, files, seen.kept_told)
        self.kept[id(seen)] = (seen, new)
        return new
