"""The possible values of a Python expression, as far as the file shows, and where they are written."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spec_lsp.expressions import expression
from spec_lsp.interruption import checkpoint
from spec_lsp.records import dataclass, field, replace
from spec_lsp.syntax.launch import Clue
from spec_lsp.syntax.python.ways import ExecutionPath, Turn
from spec_lsp.syntax.word import MAX_CHARACTERS, MAX_FRAGMENTS, MAX_VIA, TOO_LONG, Fragment, Place, Word, unknown

PARAMETER = "a parameter"
COMPUTED = "computed by the program"
DEPENDS = "it depends on the way the program takes"


@dataclass(frozen=True, slots=True)
class Text:
    """A string; `literal` is its source including quotes, if it is one literal."""

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
    name: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.key.text or "")


@dataclass(frozen=True, slots=True)
class Table:
    """A dictionary; `open` if it may have unknown keys."""

    entries: tuple[Entry, ...]
    place: Place
    open: bool = False
    literal: Word | None = None

    def with_entry(self, entry: Entry) -> Table:
        checkpoint(len(self.entries) // FRAGMENTS_A_STEP)
        name = entry.name
        kept = [e for e in self.entries if e.name != name]
        if len(kept) >= MAX_ENTRIES:
            return replace(self, open=True, literal=None)
        return replace(self, entries=(*kept, entry), literal=None)


@dataclass(frozen=True, slots=True)
class Opaque:
    """An unknown value. `of` is the same for the same unknown value, whatever its name."""

    place: Place
    reason: str = COMPUTED
    of: object = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class More:
    """Any number of unknown items."""

    place: Place
    reason: str = COMPUTED


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """One value for each way at the choice `turn`. `usual` is the way taken if nothing else depends on it (a default), else None."""

    turn: Turn
    arms: tuple[Value, ...]
    place: Place
    usual: int | None = None
    signs: bool = False
    """Whether it may hold a command that starts SGLang (`mentions`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Later:
    """A value that is computed when the way is known, because its parts depend on it."""

    make: Callable[[ExecutionPath], Value]
    place: Place
    signs: bool
    under: Value | None = None
    """The value that something was appended to, if it was made so."""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """The items, among others, of a list that depends on the way."""

    value: Value
    place: Place


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """An object with attributes: an instance of the class `kind` of the file, or the options of a parser (no kind)."""

    fields: Mapping[str, Value]
    place: Place
    kind: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Routine:
    """A function of the file. `kind` is the class it is a method of; `within` if it is defined in another function."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    clues: tuple[Clue, ...]
    place: Place
    kind: str = ""
    within: bool = False


Value = Text | Plain | Items | Table | Opaque | More | Either | Later | Spread | Record | Routine
MAX_ENTRIES = 2_000
"""The largest dictionary, in entries; a larger one may have any further entries."""
LAYER = 12
DEEP = 150
"""How deep in a value, made of other values, an execution path looks."""
SIGN = expression(
    r"launch_server|sglang\s+serve|sglang\.(?:bench|cli|srt)|dynamo\.sglang|compile_deep_gemm|(?:\A|[/\s])sglang\s*\Z"
)
"""What may show that a text belongs to a command that starts SGLang: something it contains, or ends with."""


class Waits(Exception):  # noqa: N818 - control flow
    """A question about a value depends on the way of the program."""


def text_of(fragments: Iterable[Fragment], place: Place) -> Text:
    """A composed text; of a very long one, its start followed by an unknown part."""
    kept: list[Fragment] = []
    characters = 0
    for fragment in fragments:
        characters += len(fragment.text or "")
        if len(kept) >= MAX_FRAGMENTS or characters > MAX_CHARACTERS:
            kept = [*kept[:KEPT_FRAGMENTS], Fragment(None, place, False, TOO_LONG)]
            break
        kept.append(fragment)
    checkpoint(len(kept) // FRAGMENTS_A_STEP)
    return Text(Word(tuple(kept), place))


KEPT_FRAGMENTS = 50
CHARACTERS_A_STEP = 2_000
FRAGMENTS_A_STEP = 3
"""How many fragments may be copied for the cost of one step."""


def is_open(value: Value) -> bool:
    """Whether the value itself depends on the way, not only something inside it."""
    return isinstance(value, Either | Later | Spread)


def depends(value: Value) -> bool:
    """Whether the value, or something in it, depends on the way."""
    if isinstance(value, Items):
        return any(map(depends, value.items))
    if isinstance(value, Table):
        return any(depends(e.value) for e in value.entries)
    return is_open(value)


def mentions(value: Value) -> bool:
    """Whether a value may hold a command that starts SGLang."""
    if isinstance(value, Text):
        text = "".join([f.text or "" for f in value.word.fragments])
        checkpoint(len(text) // CHARACTERS_A_STEP)
        return SIGN.search(text) is not None
    if isinstance(value, Items):
        return any(map(mentions, value.items))
    if isinstance(value, Table):
        return any(mentions(e.value) for e in value.entries)
    if isinstance(value, Spread):
        return mentions(value.value)
    return isinstance(value, Either | Later) and value.signs


def plain(value: Value, world: ExecutionPath, depth: int = 0) -> Value:
    """The value under an execution path, including everything in it."""
    if isinstance(value, Text | Plain | Opaque | More | Routine | Record):
        return value
    if depth > DEEP:
        return Opaque(place_of(value), DEPENDS)
    key = id(value), world.splits > 0
    if key not in world.kept:
        for one in _layers(value, world):
            world.keep((id(one), world.splits > 0), one, lambda one=one: _made(one, world, 0))  # type: ignore[misc]
    made: Value = world.keep(key, value, lambda: _made(value, world, depth))
    return made


def _layers(value: Value, world: ExecutionPath) -> list[Value]:
    """The earlier stages of a value that was appended to repeatedly, the first first: computed in this order, none needs deep recursion."""
    found: list[Value] = []
    one: Value | None = value
    steps = 0
    while one is not None and (id(one), world.splits > 0) not in world.kept:
        if steps >= LAYER and not isinstance(one, Spread):
            found.append(one)
            steps = 0
        if isinstance(one, Either):
            one = one.arms[world.way(one.turn, one.usual)]
        elif isinstance(one, Later):
            one = one.under
        elif isinstance(one, Spread):
            one = one.value
        else:
            one = one.items[0] if isinstance(one, Items) and one.items and isinstance(one.items[0], Spread) else None
        steps += 1
    return found[::-1]


def _made(value: Value, world: ExecutionPath, depth: int) -> Value:
    if isinstance(value, Either):
        return plain(value.arms[world.way(value.turn, value.usual)], world, depth + 1)
    if isinstance(value, Later):
        return plain(value.make(world), world, depth + 1)
    if isinstance(value, Items) and depends(value):
        items: list[Value] = []
        for item in value.items:
            items += spread(item, world, depth + 1)
        return Items(tuple(items), value.place)
    if isinstance(value, Table) and depends(value):
        return replace(
            value, entries=tuple(Entry(e.key, plain(e.value, world, depth + 1)) for e in value.entries), literal=None
        )
    return value


def spread(item: Value, world: ExecutionPath, depth: int = 0) -> tuple[Value, ...]:
    """An item of a list under an execution path; for a `Spread`, its items."""
    if not isinstance(item, Spread):
        return (plain(item, world, depth),)
    found = plain(item.value, world, depth)
    return found.items if isinstance(found, Items) else (More(item.place, getattr(found, "reason", COMPUTED)),)


def place_of(value: Value) -> Place:
    if isinstance(value, Text):
        return value.word.place
    return value.literal.place if isinstance(value, Plain) else value.place


def as_text(value: Value) -> Word:
    """The value as the argument that `str()` makes of it. Raises Waits."""
    if is_open(value):
        raise Waits
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
    """Whether the value is completely known, and the value. Raises Waits."""
    if is_open(value):
        raise Waits
    if isinstance(value, Text):
        return value.word.text is not None, value.word.text
    if isinstance(value, Plain):
        return True, value.value
    if isinstance(value, Items):
        checkpoint(len(value.items) // FRAGMENTS_A_STEP)
        parts = [data_of(v) for v in value.items]
        return all(known for known, _ in parts), [v for _, v in parts]
    if isinstance(value, Table) and not value.open:
        parts = [data_of(e.value) for e in value.entries]
        return all(known for known, _ in parts), {e.name: v for e, (_, v) in zip(value.entries, parts, strict=True)}
    return False, None


def as_source(value: Value) -> Word:
    """The value as Python source: as written if it is a literal, else its repr."""
    written = value.literal if isinstance(value, Text | Plain | Items | Table) else None
    if written is not None:
        return written
    known, data = data_of(value)
    place = place_of(value)
    if not known:
        reason = value.word.reason if isinstance(value, Text) else getattr(value, "reason", COMPUTED)
        return unknown(place, reason or COMPUTED)
    return Word((Fragment(repr(data), place, False, fixed=True),), place)


def seen_at(value: Value, place: Place) -> Value:
    """The value of a name: it is seen where the name is used, and written where it was assigned."""
    if isinstance(value, Either) and not any(map(is_open, value.arms)):
        return Either(value.turn, tuple(seen_at(a, place) for a in value.arms), place, value.usual, value.signs)
    if is_open(value):
        return Later(lambda world: seen_at(plain(value, world), place), place, mentions(value))
    if isinstance(value, Text):
        return Text(_seen(value.word, place), _seen(value.literal, place) if value.literal else None)
    if isinstance(value, Plain):
        return Plain(value.value, _seen(value.literal, place))
    if isinstance(value, Items | Table) and value.literal is not None:
        return replace(value, literal=_seen(value.literal, place))
    return replace(value, place=place) if isinstance(value, Opaque) else value


def _seen(word: Word, place: Place) -> Word:
    checkpoint(len(word.fragments) // FRAGMENTS_A_STEP)
    return Word(tuple(f._replace(via=(place, *f.via[: MAX_VIA - 1])) for f in word.fragments), place)


def named(value: Value) -> Value:
    """A value that is given a name: an unknown one is recognized by it later."""
    return replace(value, of=object()) if isinstance(value, Opaque) and value.of is None else value


def alike(left: Value, right: Value) -> bool:
    """Whether two values are known to be equal, wherever they are written."""
    if left is right:
        return True
    if depends(left) or depends(right):
        return left == right
    (known, a), (also, b) = data_of(left), data_of(right)
    return bool(known and also and type(a) is type(b) and a == b) or left == right


def joined(turn: Turn, ends: Mapping[int, Value], place: Place) -> Value:
    """The value of a name after a choice, by the ways that lead there."""
    values = list(ends.values())
    if all(alike(values[0], v) for v in values[1:]):
        return values[0]
    arms = tuple(ends.get(way, values[0]) for way in range(len(turn.labels)))
    return Either(turn, arms, place, None, any(map(mentions, values)))


def mixed(left: Value, right: Value, place: Place) -> Value:
    """What is certain about a name after some rounds of a loop, or after something that may have failed: the common beginning of both
    values."""
    if alike(left, right):
        return left
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
        return _mixed_text(left, right, place)
    return Opaque(place, DEPENDS)


def _mixed_text(left: Text, right: Text, place: Place) -> Value:
    """The common start of two strings, followed by an unknown part."""
    same = 0
    a, b = left.word.fragments, right.word.fragments
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    return Text(Word((*a[:same], Fragment(None, place, False, DEPENDS)), left.word.place))
