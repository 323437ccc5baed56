"""Whether values count as true, and how they are distinguished."""

from __future__ import annotations

from typing import Any

from spec_lsp.syntax.python.values import (
    Items,
    More,
    Opaque,
    Plain,
    Record,
    Routine,
    Spread,
    Table,
    Text,
    Value,
    data_of,
    is_open,
)

OUTSIDE = object()


def truth_of(value: Value) -> bool | None:
    """Whether a value counts as true, if known."""
    if isinstance(value, Items) and value.items and not any(isinstance(v, More | Spread) for v in value.items):
        return True
    if isinstance(value, Table) and value.entries:
        return True
    if isinstance(value, Text) and value.word.known_start:
        return True
    if isinstance(value, Record | Routine):
        return True
    if is_open(value):
        return None
    known, data = data_of(value)
    return bool(data) if known else None


def is_none(value: Value, right: Any, positive: bool) -> bool | None:
    """Whether `value is None` is certainly false."""
    if right is not None or isinstance(value, Opaque | More):
        return None
    return not positive


def identity(value: Value | None) -> object:
    """A key that distinguishes a value from others, known or not."""
    return value.of if isinstance(value, Opaque) and value.of is not None else id(value)


def type_name(value: Value) -> str:
    """The type of a value, empty if unknown."""
    if isinstance(value, Plain):
        return type(value.value).__name__
    if isinstance(value, Text):
        return "str"
    return "list" if isinstance(value, Items) else "dict" if isinstance(value, Table) else ""
