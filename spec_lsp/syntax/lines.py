"""Line ends as in the Language Server Protocol, and columns in the units that clients count in.

A line ends with LF, CRLF or CR only: form feeds and U+2028 are characters of a line. Offsets are code points of the text; lines and columns
count from 0. Built once for a text; each conversion is a binary search.
"""

from __future__ import annotations

from typing import Literal

from spec_lsp.expressions import expression
from spec_lsp.syntax.offsets import Offsets

Encoding = Literal["utf-8", "utf-16", "utf-32"]

LINE_END = expression(r"\r\n|\n|\r")


class LineIndex:
    """The lines of one text."""

    __slots__ = ("ascii", "starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        starts = [0]
        if "\r" in text:
            starts.extend(m.end() for m in LINE_END.finditer(text))
        else:
            position = text.find("\n")
            while position >= 0:
                starts.append(position + 1)
                position = text.find("\n", position + 1)
        self.starts = Offsets(starts)
        self.ascii = text.isascii()

    def after(self, start: int, end: int, new: str) -> LineIndex:
        """The lines of the text with `new` in place of the characters [start, end); other lines are not looked at again."""
        text = f"{self.text[:start]}{new}{self.text[end:]}"
        if "\r" in text:
            return LineIndex(text)
        made = LineIndex.__new__(LineIndex)
        made.text = text
        made.ascii = text.isascii()
        own = [start + i + 1 for i, character in enumerate(new) if character == "\n"]
        starts = self.starts
        made.starts = starts.edited(starts.up_to(start), starts.up_to(end), own, len(new) - (end - start))
        return made

    def __len__(self) -> int:
        """How many lines there are: one more than line ends."""
        return len(self.starts)

    def line_span(self, line: int) -> tuple[int, int]:
        """The characters of a line without its line end. A line past the last is empty, at the end of the text."""
        if line < 0:
            return 0, 0
        if line >= len(self.starts):
            return len(self.text), len(self.text)
        start = self.starts[line]
        if line + 1 == len(self.starts):
            return start, len(self.text)
        end = self.starts[line + 1]
        end -= 2 if self.text.startswith("\r\n", max(end - 2, start)) else 1
        return start, end

    def position(self, offset: int, encoding: Encoding = "utf-32") -> tuple[int, int]:
        """Line and column of an offset, which is cut to the text; the column in the encoding's units."""
        offset = min(max(offset, 0), len(self.text))
        line = self.starts.up_to(offset) - 1
        start = self.starts[line]
        if self.ascii or encoding == "utf-32":
            return line, offset - start
        return line, units(self.text[start:offset], encoding)

    def span(self, start: int, end: int) -> tuple[int, int, int, int]:
        """Line and column of two offsets of a text in ASCII, in any units."""
        starts = self.starts
        start, end = min(start, len(self.text)), min(end, len(self.text))
        one = starts.up_to(start) - 1
        first = starts[one]
        if one + 1 == len(starts) or end < starts[one + 1]:
            return one, start - first, one, end - first
        other = starts.up_to(end) - 1
        return one, start - first, other, end - starts[other]

    def offset(self, line: int, column: int, encoding: Encoding = "utf-32") -> int:
        """The offset of a line and column. Past the end of a line means its end; within a character means its start."""
        start, end = self.line_span(line)
        if column <= 0:
            return start
        if self.ascii or encoding == "utf-32":
            return min(start + column, end)
        content = self.text[start:end]
        if content.isascii():
            return min(start + column, end)
        used = 0
        for i, char in enumerate(content):
            used += units(char, encoding)
            if used > column:
                return start + i
        return end


def units(text: str, encoding: Encoding) -> int:
    """The length of a text in an encoding's units. A lone surrogate counts as the replacement character does."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-16":
        return len(text) + sum(c > "\uffff" for c in text)
    return sum(1 if c < "\x80" else 2 if c < "\u0800" else 3 if c <= "\uffff" else 4 for c in text)
