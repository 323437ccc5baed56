"""Lists and dictionaries: building and changing them, even if they depend on the way."""

from __future__ import annotations

from collections.abc import Sequence

from spec_lsp.interruption import checkpoint
from spec_lsp.records import replace
from spec_lsp.syntax.python.arguments import Arguments
from spec_lsp.syntax.python.values import (
    COMPUTED,
    FRAGMENTS_A_STEP,
    Entry,
    Items,
    Later,
    More,
    Opaque,
    Plain,
    Record,
    Spread,
    Table,
    Text,
    Value,
    as_text,
    data_of,
    is_open,
    mentions,
    place_of,
    plain,
    text_of,
)
from spec_lsp.syntax.python.ways import ExecutionPath
from spec_lsp.syntax.word import TOO_LONG, Fragment, Place, Word

MAX_ITEMS = 2_000
"""The longest list, in items; the rest of a longer one is unknown."""


def items_made(items: Sequence[Value], place: Place, literal: Word | None = None) -> Items:
    """A list of items; of a very long one, its start followed by any number of items."""
    checkpoint(min(len(items), MAX_ITEMS) // FRAGMENTS_A_STEP)
    if len(items) > MAX_ITEMS:
        return Items((*items[:MAX_ITEMS], More(place, TOO_LONG)), place)
    return Items(tuple(items), place, literal)


def items_of(value: Value, place: Place) -> tuple[Value, ...]:
    """The items of `*value`."""
    if isinstance(value, Items):
        return value.items
    return (Spread(value, place),) if is_open(value) else (More(place, getattr(value, "reason", COMPUTED)),)


def items_of_table(owner: Table, verb: str, place: Place) -> Items:
    """`.items()`, `.keys()` and `.values()`."""
    rows: list[Value] = []
    for entry in owner.entries:
        key = Text(entry.key)
        rows.append(key if verb == "keys" else entry.value if verb == "values" else Items((key, entry.value), place))
    return Items((*rows, *((More(owner.place),) if owner.open else ())), place)


def entry_of(owner: Table, key: Value, default: Value) -> Value | None:
    """`owner.get(key, default)`."""
    known, name = data_of(key)
    found = next((e.value for e in owner.entries if known and e.name == name), None)
    return found if found is not None else None if owner.open or not known else default


def fields_table(record: Record, place: Place) -> Table:
    """The fields of an instance as a dictionary."""
    entries = (Entry(Word((Fragment(name, place, False, fixed=True),), place), v) for name, v in record.fields.items())
    return Table(tuple(entries), place, not record.kind)


def sum_of(left: Value, right: Value, place: Place) -> Value:
    """`left + right` of lists or strings, one of which may be unknown."""
    if isinstance(left, Items) or isinstance(right, Items):
        return items_made((*items_of(left, place_of(left)), *items_of(right, place_of(right))), place)
    if is_open(left) or is_open(right):
        signs = mentions(left) or mentions(right)
        return Later(lambda world: sum_of(plain(left, world), plain(right, world), place), place, signs, left)
    if isinstance(left, Text) or isinstance(right, Text):
        return text_of((*as_text(left).fragments, *as_text(right).fragments), place)
    return Opaque(place)


def merged(left: Value, right: Value) -> Value:
    """`{**left, **right}`."""
    if is_open(left) or is_open(right):
        signs = mentions(left) or mentions(right)
        return Later(lambda world: merged(plain(left, world), plain(right, world)), place_of(left), signs, left)
    if not isinstance(left, Table):
        return Table(right.entries if isinstance(right, Table) else (), place_of(left), True)
    if not isinstance(right, Table):
        return replace(left, open=True, literal=None)
    found = left
    for entry in right.entries:
        found = found.with_entry(entry)
    return replace(found, open=left.open or right.open, literal=None)


def changed_items(owner: Items, verb: str, given: Arguments, place: Place) -> Value | None:
    first = given.positional[0] if given.positional else None
    if verb == "append" and first is not None:
        return items_made((*owner.items, first), owner.place)
    if verb == "extend" and first is not None:
        return items_made((*owner.items, *items_of(first, place)), owner.place)
    if verb == "insert" and len(given.positional) == 2:
        waits = any(isinstance(v, Spread) for v in owner.items) or is_open(given.positional[0])
        return inserted_later(owner, given, place) if waits else _inserted(owner, *given.positional)
    if verb in ("insert", "remove", "pop", "clear", "sort", "reverse"):
        return Items((More(place),), owner.place)
    return None


def inserted_later(owner: Value, given: Arguments, place: Place) -> Later:
    """A list that depends on the way, with one more item inserted."""

    def make(world: ExecutionPath) -> Value:
        items = plain(owner, world)
        values = [plain(v, world) for v in given.positional]
        return _inserted(items, *values) if isinstance(items, Items) and len(values) == 2 else Opaque(place)

    return Later(make, place_of(owner), mentions(owner) or any(map(mentions, given.positional)), owner)


def _inserted(owner: Items, index: Value, item: Value) -> Items:
    at = index.value if isinstance(index, Plain) and isinstance(index.value, int) else None
    if at is None or any(isinstance(v, More) for v in owner.items[: at if at >= 0 else None]):
        return Items((More(owner.place),), owner.place)
    items = list(owner.items)
    items.insert(at, item)
    return items_made(items, owner.place)
