"""Cuts a script into statements, each parsed once however often the script changes around it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from spec_lsp.expressions import expression
from spec_lsp.syntax.shell.ast import Script
from spec_lsp.syntax.shell.questions import assigned_names
from spec_lsp.syntax.shell.scanner import NestedTooDeep, ShellSyntaxError
from spec_lsp.syntax.shell.skeleton import Statement, parse_statement

TRIVIA = expression(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)+|[ \t]*#[^\n]*\Z|[ \t]+\Z")
LOGICAL_LINE = expression(r"(?:[^\\\n]|\\\r?\n|\\(?!\r?\n))*\n?")
WINDOWS = (4_096, 65_536)
GENERATION = 3_000
GENERATION_CHARACTERS = 3_000_000
MAX_FAILED_CHARACTERS = 400_000
"""Characters read in vain before a text is taken line by line."""


@dataclass(frozen=True, slots=True)
class Located:
    """A statement and where it starts. `broken`: it was read line by line, since bash refuses it or, `deep`, we cannot follow it."""

    statement: Statement
    start: int
    text: str
    broken: bool = False
    deep: bool = False


class _Cache:
    """Statements by their text, in two generations: what a generation's time did not use is dropped."""

    def __init__(self) -> None:
        self.young: dict[str, list[tuple[str, Statement]]] = {}
        self.old: dict[str, list[tuple[str, Statement]]] = {}
        self.count = 0
        self.characters = 0

    def find(self, text: str, start: int) -> tuple[str, Statement] | None:
        key = _key(text, start)
        for generation in (self.young, self.old):
            for entry in generation.get(key, ()):
                if text.startswith(entry[0], start):
                    if generation is self.old:
                        self.keep(key, entry)
                    return entry
        return None

    def add(self, unit: str, statement: Statement) -> None:
        self.keep(_key(unit, 0), (unit, statement))

    def keep(self, key: str, entry: tuple[str, Statement]) -> None:
        if self.count >= GENERATION or self.characters >= GENERATION_CHARACTERS:
            self.old, self.young = self.young, {}
            self.count = self.characters = 0
        entries = self.young.setdefault(key, [])
        if len(entries) >= 64:
            entries.pop(0)
        entries.append(entry)
        self.count += 1
        self.characters += len(entry[0])


def _key(text: str, start: int) -> str:
    """The first line with the lines that continue it."""
    newline = text.find("\n", start)
    while newline > start and (text[newline - 1] == "\\" or text.startswith("\\\r", newline - 2)):
        newline = text.find("\n", newline + 1)
    return text[start : newline + 1] if newline >= 0 else ""


_cache = _Cache()


def assigned_in(located: Iterable[Located]) -> frozenset[str]:
    """The variables that any of the statements may set, on whatever way."""
    found: set[str] = set()
    for one in located:
        statement = one.statement
        if statement.assigns is None:
            statement.assigns = frozenset(assigned_names(statement.script, True))
        found |= statement.assigns
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Restated:
    """The statements of a changed text beside those of the text before.

    The characters [start, end) of the old text were replaced, which moves what is behind by `shift`. Statements [0, first) are the
    old ones; those from `behind` on are the old ones from `behind_before` on, moved.
    """

    located: Sequence[Located]
    first: int = 0
    behind: int = 0
    behind_before: int = 0
    start: int = 0
    end: int = 0
    shift: int = 0


def restate(text: str, old: str, before: Sequence[Located]) -> Restated:
    """The statements of `text`, where those of `old` were `before`."""
    start = common_start(old, text)
    tail = common_end(old, text, min(len(old), len(text)) - start)
    end, shift = len(old) - tail, len(text) - len(old)
    broken = [i for i, one in enumerate(before) if one.broken]
    first = bisect_right(before, start, key=lambda one: one.start + len(one.text))
    first = min([first, *broken[:1]])
    if first and not ends_there(before[first - 1].text):
        first -= 1
    located = list(before[:first])
    position = located[-1].start + len(located[-1].text) if located else 0
    for one in statements(text, position):
        same = bisect_left(before, one.start - shift, key=lambda other: other.start)
        known = one.start >= end + shift and same < len(before) and before[same].start == one.start - shift
        if known and (not broken or same > broken[-1]):
            behind = len(located)
            located += before[same:] if not shift else [_moved(other, shift) for other in before[same:]]
            return Restated(located, first, behind, same, start, end, shift)
        located.append(one)
    return Restated(located, first, len(located), len(before), start, end, shift)


def ends_there(unit: str) -> bool:
    """Whether a statement ends where its text does, whatever follows: with a line that no backslash continues."""
    return unit.endswith("\n") and not unit.endswith(("\\\n", "\\\r\n"))


def _moved(one: Located, shift: int) -> Located:
    return replace(one, start=one.start + shift)


def common_start(a: str, b: str) -> int:
    """How many characters two texts have in common at their start."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_end(a: str, b: str, most: int) -> int:
    """How many of their last `most` characters two texts have in common."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def statements(text: str, position: int = 0) -> Iterator[Located]:
    """The statements of a script from `position` on, in order. One that bash would refuse is read as far as its first line goes."""
    failed = 0
    size = len(text)
    while position < size:
        trivia = TRIVIA.match(text, position)
        if trivia:
            position = trivia.end()
            continue
        known = _cache.find(text, position)
        if known is not None:
            unit, statement = known
            yield Located(statement, position, unit)
            position += len(unit)
            continue
        deep = False
        try:
            parsed = _strict(text, position) if failed < MAX_FAILED_CHARACTERS else None
        except (NestedTooDeep, RecursionError):
            parsed, deep = None, True
        broken = parsed is None
        if parsed is None:
            failed += size - position
            parsed = _tolerant(text, position)
        statement, length = parsed
        unit = text[position : position + length]
        yield Located(statement, position, unit, broken, deep)
        position += length


def _strict(text: str, start: int) -> tuple[Statement, int] | None:
    """The statement, and its length; None where bash would refuse it. Raises NestedTooDeep or RecursionError."""
    remaining = len(text) - start
    for window in (*WINDOWS, remaining):
        piece = text[start : start + window]
        whole = window >= remaining
        try:
            statement, end = parse_statement(piece, 0, len(piece))
        except NestedTooDeep:
            raise
        except ShellSyntaxError:
            if whole:
                return None
            continue
        if end < len(piece) or whole:
            if end and ends_there(piece[:end]):
                _cache.add(piece[:end], statement)
            return (statement, end) if end else None
    return None


def _tolerant(text: str, start: int) -> tuple[Statement, int]:
    m = LOGICAL_LINE.match(text, start)
    assert m is not None
    line = m.group() or text[start : start + 1]
    try:
        statement, _ = parse_statement(line, 0, len(line), tolerant=True)
    except (ShellSyntaxError, RecursionError):
        statement = Statement(Script(0, 0, ()), ())
    return statement, len(line)
