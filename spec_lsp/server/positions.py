"""Converts between character offsets and the protocol's positions. The only module that knows the client's units.

A position is a line and a number of *units* from the line's start: bytes of UTF-8, code units of UTF-16 or code points, as agreed at
`initialize`. Everything else in spec-lsp counts characters (code points) from the start of the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from spec_lsp.syntax.lines import LineIndex

Encoding = Literal["utf-8", "utf-16", "utf-32"]
Position = dict[str, int]
Range = dict[str, Position]


class Lines:
    """The lines of one version of a text, for conversions in one client's encoding."""

    __slots__ = ("_carriage", "_encoding", "_index")

    def __init__(self, text: str, encoding: Encoding) -> None:
        from spec_lsp.syntax.lines import LineIndex  # not at the top: the import loads the parsers

        self._index: LineIndex = LineIndex(text)
        self._encoding: Encoding = encoding
        self._carriage = "\r" in text

    def __len__(self) -> int:
        return len(self._index)

    @property
    def text(self) -> str:
        return self._index.text

    def line_at(self, offset: int) -> int:
        """The number of the line that contains a character."""
        return self._index.position(offset)[0]

    def span(self, line: int) -> tuple[int, int]:
        """The characters of a line without its line end."""
        return self._index.line_span(line)

    def position(self, offset: int) -> Position:
        """An offset as a protocol position. An offset between CR and LF is the end of the line, one beyond the text its end."""
        if self._carriage and offset > 0 and self.text[offset - 1 : offset + 1] == "\r\n":
            offset -= 1
        line, character = self._index.position(offset, self._encoding)
        return {"line": line, "character": character}

    def below(self, offset: int) -> int:
        """Where the next line begins; behind the text, if there is none."""
        line = self.line_at(offset) + 1
        return self.span(line)[0] if line < len(self) else len(self.text) + 1

    def range(self, start: int, end: int) -> Range:
        """Characters [start, end) as a protocol range."""
        return {"start": self.position(start), "end": self.position(end)}

    def on_one_line(self, start: int, end: int) -> bool:
        """Whether no line ends within some characters."""
        text = self.text
        return text.find("\n", start, end) < 0 and not (self._carriage and "\r" in text[start:end])

    def written_range(self, start: int, end: int) -> str:
        """Characters [start, end) as a protocol range in JSON, for code that runs at every key."""
        one, column, other, end_column = self._between(start, end)
        return f'{{"start":{{"line":{one},"character":{column}}},"end":{{"line":{other},"character":{end_column}}}}}'

    def _between(self, start: int, end: int) -> tuple[int, int, int, int]:
        if not self._carriage and self._index.ascii:
            return self._index.span(start, end)
        a, b = self.position(start), self.position(end)
        return a["line"], a["character"], b["line"], b["character"]

    def after(self, start: int, end: int, new: str) -> Lines:
        """The lines of the text with `new` in place of the characters [start, end)."""
        made = Lines.__new__(Lines)
        made._index = self._index.after(start, end, new)
        made._encoding = self._encoding
        made._carriage = self._carriage or "\r" in new
        return made

    def offset(self, line: int, units: int) -> int:
        """The offset of a protocol position, clamped to the line and to the text; within a character, its start."""
        return self._index.offset(line, units, self._encoding)
