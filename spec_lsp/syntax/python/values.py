"""What a Python expression may be, as far as its text tells, and where it is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from spec_lsp.syntax.word import Fragment, Place, Word, unknown

PARAMETER = "a parameter"
COMPUTED = "computed by the program"
DEPENDS = "it depends on the way the program takes"


@dataclass(frozen=True, slots=True)
class Text:
    """A string; `literal` is its source, quotes and all, where it is one literal."""

    word: Word
    literal: Word | None = None


@dataclass(frozen=True, slots=True)
class Plain:
    """A number, True, False or None, with its source."""

    value: Any
    literal: Word


@dataclass(frozen=True, slots=True)
class Items:
    """A list or tuple; a `More` in it stands for any number of items."""

    items: tuple[Value, ...]
    place: Place
    literal: Word | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a dictionary."""

    key: Word
    value: Value

    @property
    def name(self) -> str:
        return self.key.text or ""


@dataclass(frozen=True, slots=True)
class Table:
    """A dictionary; `open` if it may have keys that nobody knows."""

    entries: tuple[Entry, ...]
    place: Place
    open: bool = False
    literal: Word | None = None

    def with_entry(self, entry: Entry) -> Table:
        kept = tuple(e for e in self.entries if e.name != entry.name)
        return replace(self, entries=(*kept, entry), literal=None)


@dataclass(frozen=True, slots=True)
class Opaque:
    """Nobody knows."""

    place: Place
    reason: str = COMPUTED


@dataclass(frozen=True, slots=True)
class More:
    """Any number of items that nobody knows."""

    place: Place
    reason: str = COMPUTED


Value = Text | Plain | Items | Table | Opaque | More


def place_of(value: Value) -> Place:
    if isinstance(value, Text):
        return value.word.place
    return value.literal.place if isinstance(value, Plain) else value.place


def as_text(value: Value) -> Word:
    """The value as `str()` makes an argument of it."""
    if isinstance(value, Text):
        return value.word
    if isinstance(value, Plain):
        written, text = value.literal, str(value.value)
        if written.text == text:
            return written
        first = next(iter(written.fragments), Fragment(None, written.place, False))
        return Word((Fragment(text, first.place, False, via=first.via),), written.place)
    place = place_of(value)
    return unknown(place, value.reason if isinstance(value, Opaque | More) else COMPUTED, splat=isinstance(value, More))


def data_of(value: Value) -> tuple[bool, Any]:
    """Whether the value is known throughout, and what it is."""
    if isinstance(value, Text):
        return value.word.text is not None, value.word.text
    if isinstance(value, Plain):
        return True, value.value
    if isinstance(value, Items):
        parts = [data_of(v) for v in value.items]
        return all(known for known, _ in parts), [v for _, v in parts]
    if isinstance(value, Table) and not value.open:
        parts = [data_of(e.value) for e in value.entries]
        return all(known for known, _ in parts), {e.name: v for e, (_, v) in zip(value.entries, parts, strict=True)}
    return False, None


def as_source(value: Value) -> Word:
    """The value as Python source: as it is written where it is a literal, else what it comes to."""
    written = None if isinstance(value, Opaque | More) else value.literal
    if written is not None:
        return written
    known, data = data_of(value)
    place = place_of(value)
    if not known:
        reason = value.word.reason if isinstance(value, Text) else getattr(value, "reason", COMPUTED)
        return unknown(place, reason or COMPUTED)
    return Word((Fragment(repr(data), place, False, fixed=True),), place)


def seen_at(value: Value, place: Place) -> Value:
    """A value that a name brings in: it is seen where the name stands, and written where it was written."""
    if isinstance(value, Text):
        return Text(_seen(value.word, place), _seen(value.literal, place) if value.literal else None)
    if isinstance(value, Plain):
        return Plain(value.value, _seen(value.literal, place))
    if isinstance(value, Items | Table) and value.literal is not None:
        return replace(value, literal=_seen(value.literal, place))
    return replace(value, place=place) if isinstance(value, Opaque) else value


def _seen(word: Word, place: Place) -> Word:
    return Word(tuple(f._replace(via=(place, *f.via)) for f in word.fragments), place)


def alike(left: Value, right: Value) -> bool:
    """Whether two values are known to be the same, wherever they are written."""
    if left is right:
        return True
    (known, a), (also, b) = data_of(left), data_of(right)
    return bool(known and also and type(a) is type(b) and a == b) or left == right


def joined(left: Value | None, right: Value | None, place: Place) -> Value:
    """What a name may be after two ways of the program."""
    if left is None or right is None or alike(left, right):
        found = left if left is not None else right
        assert found is not None
        return found
    if isinstance(left, Items) and isinstance(right, Items):
        same = 0
        while same < min(len(left.items), len(right.items)) and alike(left.items[same], right.items[same]):
            same += 1
        return Items((*left.items[:same], More(place, DEPENDS)), left.place)
    if isinstance(left, Table) and isinstance(right, Table):
        others = {e.name: e.value for e in right.entries}
        kept = tuple(e for e in left.entries if e.name in others and alike(e.value, others[e.name]))
        return Table(kept, left.place, True)
    if isinstance(left, Text) and isinstance(right, Text):
        return _joined_text(left, right, place)
    return Opaque(place, DEPENDS)


def _joined_text(left: Text, right: Text, place: Place) -> Value:
    """The start that two strings share, and something unknown behind it."""
    same = 0
    a, b = left.word.fragments, right.word.fragments
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    return Text(Word((*a[:same], Fragment(None, place, False, DEPENDS)), left.word.place))
