"""Strings: changing, splitting, joining and formatting them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from spec_lsp.expressions import expression
from spec_lsp.interruption import checkpoint
from spec_lsp.syntax.python.arguments import Arguments
from spec_lsp.syntax.python.containers import MAX_ITEMS, items_made
from spec_lsp.syntax.python.values import (
    COMPUTED,
    Items,
    Spread,
    Text,
    Value,
    Waits,
    as_text,
    data_of,
    text_of,
)
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.word import MAX_CHARACTERS, MAX_FRAGMENTS, Fragment, Place, Word

TEXT_CHANGES = frozenset(("replace", "removeprefix", "removesuffix", "lower", "upper", "title"))
QUOTED = expression(r"\"(?:\\.|[^\"\\])*\"?|'[^']*'?|\\.|[^\s\"'\\]+", re.S)


def changed_text(owner: Text, verb: str, given: Arguments, place: Place) -> Text:
    """`text.replace("_", "-")` and similar of a known text; the result has the text's place, and cannot be edited there."""
    known, arguments = data_of(Items(tuple(given.positional), place))
    text = owner.word.text
    first = next(iter(owner.word.fragments), None)
    try:
        new = getattr(text, verb)(*arguments) if known and text is not None and _short(verb, text, arguments) else None
    except (TypeError, ValueError):
        new = None
    if not isinstance(new, str) or first is None:
        return Text(Word((Fragment(None, place, False, COMPUTED),), place))
    if new == text:
        return owner
    return Text(Word((Fragment(new, first.place, False, via=first.via, fixed=True),), place))


def _short(verb: str, text: str, arguments: list[Any]) -> bool:
    """Whether the result of a change is short enough to be known."""
    if verb != "replace" or len(arguments) < 2 or not all(isinstance(a, str) for a in arguments[:2]):
        return True
    old, new, *_ = arguments
    return len(text) + text.count(old) * len(new) <= MAX_CHARACTERS


def split(word: Word, place: Place, *, quotes: bool) -> Items:
    """The words of a string, split as by `str.split` or `shlex.split`."""
    source = embedded(word)
    found: list[Value] = []
    for start, end in _cuts(source.whole, quotes):
        fragments: list[Fragment] = []
        for low, high in _unquoted(source.whole, start, end) if quotes else [(start, end)]:
            fragments.extend(source.fragments(low, high))
        found.append(text_of(fragments, source.place(start, end)))
        if len(found) > MAX_ITEMS:
            break
    return items_made(found, place)


def _cuts(text: str, quotes: bool) -> Iterator[tuple[int, int]]:
    pattern = re.compile(rf"(?:{QUOTED.pattern})+" if quotes else r"\S+", re.S)
    for m in pattern.finditer(text):
        yield m.span()


def _unquoted(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for m in QUOTED.finditer(text, start, end):
        part = m.group()
        if part[0] in "\"'":
            closed = len(part) > 1 and part[-1] == part[0]
            yield m.start() + 1, m.end() - (1 if closed else 0)
        else:
            yield (m.start() + 1 if part[0] == "\\" else m.start()), m.end()


def joined_by(separator: Text, items: Items, place: Place) -> Value:
    if any(isinstance(v, Spread) for v in items.items):
        raise Waits
    fragments: list[Fragment] = []
    for i, item in enumerate(items.items):
        if i:
            fragments.extend(f._replace(place=place, verbatim=False, fixed=True) for f in separator.word.fragments)
        fragments.extend(as_text(item).fragments)
        checkpoint()
        if len(fragments) > MAX_FRAGMENTS:
            break
    return text_of(fragments, place)


def with_gaps(word: Word, pattern: re.Pattern[str]) -> tuple[Fragment, ...]:
    """The string with its placeholders unknown."""
    source = embedded(word)
    found: list[Fragment] = []
    at = 0
    for m in pattern.finditer(source.whole):
        found.extend(source.fragments(at, m.start()))
        found.append(Fragment(None, source.place(*m.span()), False, COMPUTED))
        at = m.end()
    found.extend(source.fragments(at, len(source.whole)))
    return tuple(found)
