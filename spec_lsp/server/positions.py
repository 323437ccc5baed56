"""Between character offsets and the positions of the protocol. The only module that knows what the client counts in.

A position is a line and a number of *units* from the line's start: bytes of UTF-8, code units of UTF-16 or code points,
as agreed when the client said hello. Everything else in spec-lsp counts characters (code points of a Python string) from the start of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)")
_ASTRAL = re.compile(r"[\U00010000-\U0010ffff]")


def split_lines(text: str) -> list[str]:
    """The lines with their ends, the last one without (it may be empty). Only LF, CRLF and CR end a line."""
    if "\r" not in text:
        lines = text.split("\n")
        last = lines.pop()
        return [line + "\n" for line in lines] + [last]
    whole = _LINE.findall(text)
    return [*whole, text[sum(map(len, whole)) :]]


def length_without_end(line: str) -> int:
    """Characters of a line before its line end."""
    if line.endswith("\r\n"):
        return len(line) - 2
    return len(line) - 1 if line.endswith(("\n", "\r")) else len(line)


def units(text: str, encoding: Encoding) -> int:
    """How many units a text takes."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-16":
        return len(text) + len(_ASTRAL.findall(text))
    return len(text.encode("utf-8", "surrogatepass"))


def character(line: str, position: int, encoding: Encoding) -> int:
    """The character of a line at `position` units: the one it is inside of, and the end of the line when it lies behind
    it."""
    end = length_without_end(line)
    if position <= 0:
        return 0
    if encoding == "utf-32" or line.isascii():
        return min(position, end)
    taken = 0
    for at in range(end):
        code = ord(line[at])
        taken += _width(code, encoding)
        if taken > position:
            return at
    return end


def _width(code: int, encoding: Encoding) -> int:
    if encoding == "utf-16":
        return 2 if code > 0xFFFF else 1
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


class Lines:
    """The lines of one version of a text, for conversions. `lines` hold their line ends (see split_lines)."""

    __slots__ = ("_encoding", "_lines", "_starts")

    def __init__(self, lines: Sequence[str], encoding: Encoding) -> None:
        self._lines = lines
        self._encoding: Encoding = encoding
        self._starts = [0, *accumulate(map(len, lines))]

    def __len__(self) -> int:
        return len(self._lines)

    def line_at(self, offset: int) -> int:
        """The line a character stands on; the last line for offsets behind the text."""
        return min(max(bisect_right(self._starts, offset) - 1, 0), len(self._lines) - 1)

    def start_of(self, line: int) -> int:
        """The offset of a line's first character."""
        return self._starts[min(line, len(self._lines))]

    def text_of(self, line: int) -> str:
        """A line with its line end."""
        return self._lines[line]

    def position(self, offset: int) -> dict[str, int]:
        """An offset as a protocol position. Between CR and LF it is the end of the line; behind the text, its end."""
        number = self.line_at(offset)
        line = self._lines[number]
        at = min(offset - self._starts[number], length_without_end(line))
        if self._encoding == "utf-32" or line.isascii():
            return {"line": number, "character": at}
        return {"line": number, "character": units(line[:at], self._encoding)}

    def range(self, start: int, end: int) -> dict[str, dict[str, int]]:
        """Characters [start, end) as a protocol range."""
        return {"start": self.position(start), "end": self.position(end)}

    def offset(self, line: int, position: int) -> int:
        """The offset of a protocol position, clamped to the line and to the text."""
        if line >= len(self._lines):
            return self._starts[-1]
        line = max(line, 0)
        return self._starts[line] + character(self._lines[line], position, self._encoding)
