"""The texts that the client has open, kept in step with its edits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spec_lsp.server.positions import Encoding, Lines, character, split_lines


@dataclass(frozen=True, slots=True)
class Change:
    """One edit of a didChange: a range in the client's units, or None for the whole text."""

    text: str
    range: tuple[int, int, int, int] | None = None
    """Start line, start units, end line, end units."""


class OpenText:
    """One open document: its lines, and what is made of them when it is asked for.

    `name` is how the rest of spec-lsp calls it (an absolute path, else the URI); `uri` is what the client calls it.
    """

    __slots__ = ("_encoding", "_lines", "_text", "language", "lines", "name", "touched", "uri", "version")

    def __init__(self, name: str, uri: str, language: str, version: int | None, text: str, encoding: Encoding) -> None:
        self.name = name
        self.uri = uri
        self.language = language
        self.version = version
        self._encoding: Encoding = encoding
        self.lines = split_lines(text)
        self._text: str | None = text
        self._lines: Lines | None = None
        self.touched: list[tuple[int, int, bool]] = []
        """What was edited since diagnostics were last sent: first line, last line, whether lines came or went."""

    @property
    def text(self) -> str:
        """The whole text."""
        if self._text is None:
            self._text = "".join(self.lines)
        return self._text

    @property
    def index(self) -> Lines:
        """The line index of this version."""
        if self._lines is None:
            self._lines = Lines(self.lines, self._encoding)
        return self._lines

    def apply(self, changes: Iterable[Change], version: int | None) -> None:
        """Apply the edits of one didChange, in order, each on what the one before made."""
        for change in changes:
            if change.range is None:
                self.touched.append((0, len(self.lines), True))
                self.lines = split_lines(change.text)
                self._text = change.text
            else:
                self._splice(change.range, change.text)
                self._text = None
        self._lines = None
        self.version = version

    def _splice(self, range_: tuple[int, int, int, int], text: str) -> None:
        start_line, start_units, end_line, end_units = range_
        lines = self.lines
        if (end_line, end_units) < (start_line, start_units):
            start_line, start_units, end_line, end_units = end_line, end_units, start_line, start_units
        first, head = self._place(start_line, start_units)
        last, tail = self._place(end_line, end_units)
        middle = lines[first][:head] + text + lines[last][tail:]
        if middle.startswith("\n") and first > 0 and lines[first - 1].endswith("\r"):
            first -= 1  # the CR before it and this LF are one line end now
            middle = lines[first] + middle
        pieces = split_lines(middle)
        if last + 1 < len(lines):
            pieces.pop()  # `middle` ends with its line's end, so the last piece is empty
        self.touched.append((first, last, len(pieces) != last - first + 1))
        lines[first : last + 1] = pieces

    def _place(self, line: int, position: int) -> tuple[int, int]:
        """A line and a character in it, clamped."""
        if line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        line = max(line, 0)
        return line, character(self.lines[line], position, self._encoding)


class TextStore:
    """The open documents, by name."""

    def __init__(self) -> None:
        self._texts: dict[str, OpenText] = {}

    def __iter__(self) -> Iterator[OpenText]:
        return iter(list(self._texts.values()))

    def __len__(self) -> int:
        return len(self._texts)

    def get(self, name: str) -> OpenText | None:
        return self._texts.get(name)

    def open(self, text: OpenText) -> None:
        self._texts[text.name] = text

    def close(self, name: str) -> OpenText | None:
        return self._texts.pop(name, None)
