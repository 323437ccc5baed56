"""Splits a script into statements, each parsed once however often the script changes around it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, replace
from spec_lsp.syntax.edited import left_alone
from spec_lsp.syntax.offsets import Offsets
from spec_lsp.syntax.shell.ast import Script
from spec_lsp.syntax.shell.questions import assigned_names
from spec_lsp.syntax.shell.scanner import NestedTooDeep, ShellSyntaxError
from spec_lsp.syntax.shell.skeleton import Statement, parse_statement
from spec_lsp.syntax.standing import bases_instead, first_bases

TRIVIA = expression(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)+|[ \t]*#[^\n]*\Z|[ \t]+\Z")
LOGICAL_LINE = expression(r"(?:[^\\\n]|\\\r?\n|\\(?!\r?\n))*\n?")
WINDOWS = (4_096, 65_536)
GENERATION = 3_000
GENERATION_CHARACTERS = 3_000_000
MAX_FAILED_CHARACTERS = 400_000
"""How many characters may be read without success before a text is read line by line."""


@dataclass(frozen=True, slots=True)
class Located:
    """A statement and where it starts: at a character of its text, or at the base of its anchored places. `broken`: it was read line by
    line, because bash refuses it or, if `deep`, because it is nested too deeply for us."""

    statement: Statement
    start: int
    text: str
    broken: bool = False
    deep: bool = False


class _Cache:
    """Statements by their text, in two generations: what was not used during a generation is dropped."""

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
    """The variables that any of the statements may set, on any way."""
    found: set[str] = set()
    for one in located:
        statement = one.statement
        if statement.assigns is None:
            statement.assigns = frozenset(assigned_names(statement.script, True))
        found |= statement.assigns
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Restated:
    """The statements of a changed text together with those of the text before.

    `parts` start at their bases (see `standing`), `starts` says where each is in the text. Parts [0, first) are the old ones; those from
    `behind` on are the old ones from `behind_before` on.
    """

    parts: Sequence[Located]
    starts: Offsets
    bases: Sequence[int]
    texts: Sequence[str]
    """What the parts read."""
    broken: Sequence[int]
    """The indices of the parts that are."""
    first: int = 0
    behind: int = 0
    behind_before: int = 0


def stated(text: str) -> Restated:
    """The statements of a text that is read for the first time."""
    located = list(statements(text))
    bases = first_bases(len(located))
    parts = list(map(_based, located, bases))
    starts = Offsets([one.start for one in located])
    return Restated(parts, starts, bases, [one.text for one in parts], _broken(parts), behind=len(parts))


def restate(text: str, old: str, before: Restated) -> Restated | None:
    """The statements of `text` after an edit; unchanged ones are the same objects as in `old`, whose text was `before`. None if there is no
    room left for the bases of new ones."""
    parts, starts = before.parts, before.starts
    start, end = left_alone(old, text)
    shift = len(text) - len(old)
    broken = before.broken
    first = bisect_right(range(len(parts)), start, key=lambda i: starts[i] + len(parts[i].text))
    first = min([first, *broken[:1]])
    if first and not ends_there(parts[first - 1].text):
        first -= 1
    position = starts[first - 1] + len(parts[first - 1].text) if first else 0
    new: list[Located] = []
    same = len(parts)
    for one in statements(text, position):
        at = bisect_left(starts, one.start - shift)
        known = (
            first <= at < len(parts)
            and starts[at] == one.start - shift
            and _goes_on(text, one, old, parts[at], len(text) - end)
        )
        if known and (not broken or at > broken[-1]):
            same = at
            break
        new.append(one)
    bases = bases_instead(before.bases, first, same, len(new))
    if bases is None:
        return None
    behind = first + len(new)
    return Restated(
        [*parts[:first], *map(_based, new, bases), *parts[same:]],
        starts.edited(first, same, [one.start for one in new], shift),
        [*before.bases[:first], *bases, *before.bases[same:]],
        [*before.texts[:first], *(one.text for one in new), *before.texts[same:]],
        [
            *(i for i in broken if i < first),
            *(first + i for i in _broken(new)),
            *(i - same + behind for i in broken if i >= same),
        ],
        first,
        behind,
        same,
    )


def _broken(parts: Sequence[Located]) -> list[int]:
    return [i for i, one in enumerate(parts) if one.broken]


def _goes_on(text: str, one: Located, old: str, other: Located, behind: int) -> bool:
    """Whether two texts are the same from these two statements on: an edit ends at `behind`, or within statements that read the same."""
    return one.start >= behind or (
        one.text == other.text and text[one.start :] == old[len(old) - len(text) + one.start :]
    )


def _based(one: Located, base: int) -> Located:
    return replace(one, start=base)


def ends_there(unit: str) -> bool:
    """Whether a statement ends where its text ends, whatever follows: its last line is not continued by a backslash."""
    return unit.endswith("\n") and not unit.endswith(("\\\n", "\\\r\n"))


def statements(text: str, position: int = 0) -> Iterator[Located]:
    """The statements of a script from `position` on, in order. Of one that bash would refuse, only the first line is read."""
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
    """The statement, and its length; None if bash would refuse it. Raises NestedTooDeep or RecursionError."""
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
