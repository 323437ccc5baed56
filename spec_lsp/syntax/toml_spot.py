"""Where in a TOML text a cursor is: in which key or value of which table, however much of it is typed so far.

TOML parsers need complete files. This one reads up to the cursor and skips broken lines.
"""

from __future__ import annotations

import re
from typing import Literal

from spec_lsp.expressions import expression
from spec_lsp.interruption import checkpoint
from spec_lsp.records import dataclass

Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TomlSpot:
    """`keys` lead to the value, or to the table of the key, or are the header's parts so far. `start` and `end` are the characters to
    replace: inside `quote`, if they are in quotes, which are `closed` or not. `given`: the keys that the table already has."""

    kind: Literal["header", "key", "value"]
    keys: Keys
    start: int
    end: int
    quote: str = ""
    closed: bool = False
    given: frozenset[str] = frozenset()


def toml_spot(text: str, offset: int) -> TomlSpot | None:
    """What is at a character; None in comments and after a complete entry."""
    try:
        _Scanner(text, offset).file()
    except _Found as found:
        return found.spot
    return None


class _Found(Exception):  # noqa: N818
    def __init__(self, spot: TomlSpot | None) -> None:
        self.spot = spot


_BARE = expression(r"[\w.-]*")
_SCALAR = expression(r"[^\s,\]}#]*")
_BLANKS, _SPACE = expression(r"[ \t]*"), expression(r"(?:[ \t\r\n]|#[^\n]*)*")
MOST_NESTED = 20


class _Scanner:
    def __init__(self, text: str, offset: int) -> None:
        self.text = text
        self.at = 0
        self.offset = offset
        self.given: dict[Keys, set[str]] = {}

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip(self, blanks: re.Pattern[str]) -> None:
        """Skip blanks; a cursor in a comment among them is at nothing."""
        found = blanks.match(self.text, self.at)
        assert found is not None
        comment = found[0].rfind("#", 0, max(self.offset - self.at, 0))
        if (
            self.at <= self.offset < found.end()
            and comment >= 0
            and "\n" not in found[0][comment : self.offset - self.at]
        ):
            raise _Found(None)
        self.at = found.end()

    def file(self) -> None:
        table: Keys = ()
        while self.at < len(self.text) or self.at <= self.offset:
            checkpoint()
            start = self.at
            self._blank_lines()
            if self.peek() == "[":
                table = self.header()
            else:
                self.entry(table, 0)
            self.line_end()
            if self.at == start:
                return

    def _blank_lines(self) -> None:
        """Skip to the next entry, but not past the cursor's own line."""
        while True:
            self.skip(_BLANKS)
            if self.peek() not in ("\r", "\n") or self.at >= self.offset or not self.peek():
                return
            self.at += 1

    def line_end(self) -> None:
        end = self.text.find("\n", self.at) % (len(self.text) + 1)
        if self.at < self.offset <= end:
            raise _Found(None)
        self.at = min(end + 1, len(self.text))

    def header(self) -> Keys:
        line_end = self.text.find("\n", self.at) % (len(self.text) + 1)
        inner = self.at + (2 if self.text.startswith("[[", self.at) else 1)
        close = self.text.find("]", inner, line_end) % (line_end + 1)
        if inner <= self.offset <= close:
            raise _Found(TomlSpot("header", (), inner, close, closed=self.text[close : close + 1] == "]"))
        self.at = close
        return _parts(self.text[inner:close])

    def entry(self, table: Keys, depth: int) -> None:
        """`key = value`."""
        start = self.at
        if self.peek() == "#":
            if start < self.offset <= self.text.find("\n", start) % (len(self.text) + 1):
                raise _Found(None)
            return
        end = self._key_end()
        if start <= self.offset <= end:
            raise _Found(TomlSpot("key", table, start, end, given=frozenset(self.given.get(table, ()))))
        keys = _parts(self.text[start:end])
        self.at = end
        self.skip(_BLANKS)
        if self.peek() != "=":
            return
        self.given.setdefault(table, set()).update(keys[:1])
        self.at += 1
        self.value((*table, *keys), depth)

    def _key_end(self) -> int:
        at = self.at
        while True:
            quote = self.text[at : at + 1]
            if quote and quote in "\"'":
                line_end = self.text.find("\n", at) % (len(self.text) + 1)
                at = self.text.find(quote, at + 1, line_end) % (line_end + 1) + 1
                at = min(at, line_end)
            found = _BARE.match(self.text, at)
            assert found is not None
            if found.end() == at:
                return at
            at = found.end()

    def value(self, keys: Keys, depth: int) -> None:
        before = self.at
        self.skip(_BLANKS)
        if before <= self.offset < self.at:
            raise _Found(TomlSpot("value", keys, self.offset, self.offset))
        first = self.peek()
        if first == "[" and depth < MOST_NESTED:
            self.several("]", keys, depth)
        elif first == "{" and depth < MOST_NESTED:
            self.given.pop(keys, None)
            self.several("}", keys, depth)
        elif first and first in "\"'":
            self.string(keys)
        else:
            found = _SCALAR.match(self.text, self.at)
            assert found is not None
            if self.at <= self.offset <= found.end():
                raise _Found(TomlSpot("value", keys, self.at, found.end()))
            self.at = found.end()

    def several(self, close: str, keys: Keys, depth: int) -> None:
        """An array's values, or the entries of an inline table, to the end."""
        self.at += 1
        while True:
            checkpoint()
            before = self.at
            self.skip(_SPACE)
            if self.peek() in (close, "") and not before <= self.offset <= self.at:
                self.at += 1
                return
            if self.peek() in (close, ""):
                self.at = self.offset  # the cursor is before the end, in what is not typed yet
            self.value(keys, depth + 1) if close == "]" else self.entry(keys, depth + 1)
            self.skip(_SPACE)
            if self.peek() == ",":
                self.at += 1
            elif self.at == before:
                return

    def string(self, keys: Keys) -> None:
        quote = self.peek()
        if self.text.startswith(quote * 3, self.at):
            self.at = self.text.find(quote * 3, self.at + 3) % (len(self.text) + 1) + 3
            return
        start = self.at + 1
        line_end = self.text.find("\n", start) % (len(self.text) + 1)
        end = self.text.find(quote, start, line_end)
        closed = end >= 0
        if not closed:
            found = _SCALAR.match(self.text, start)
            assert found is not None
            end = found.end()
        if start <= self.offset <= end:
            raise _Found(TomlSpot("value", keys, start, end, quote, closed))
        self.at = end + closed


def _parts(written: str) -> Keys:
    """The parts of a key, with or without quotes."""
    return tuple(part[0] or part[1] or part[2] for part in re.findall(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)", written))
