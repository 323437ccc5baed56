"""The texts that the client has open, updated by its edits."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from spec_lsp.records import dataclass
from spec_lsp.server.positions import Encoding, Lines


@dataclass(frozen=True, slots=True)
class TextChange:
    """One edit of a didChange: a range in the client's units, or None for the whole text."""

    text: str
    range: tuple[int, int, int, int] | None = None
    """Start line, start units, end line, end units."""


MAX_LOGGED = 64


class OpenText:
    """One open document.

    `name` is its name in the rest of spec-lsp (an absolute path, else the URI); `uri` is the client's name for it.
    """

    __slots__ = ("_encoding", "_lines", "_log", "changes", "edits", "language", "name", "text", "uri", "version")

    def __init__(self, name: str, uri: str, language: str, version: int | None, text: str, encoding: Encoding) -> None:
        self.name = name
        self.uri = uri
        self.language = language
        self.version = version
        self.text = text
        self.edits = 0
        """How many edits were made since it was opened: clients need not number their versions."""
        self.changes = 0
        """Changes since it was opened: an edit may consist of several."""
        self._log: deque[tuple[int, int]] = deque(maxlen=MAX_LOGGED)
        """How many characters the last changes left alone, at the start and at the end."""
        self._encoding: Encoding = encoding
        self._lines: Lines | None = None

    @property
    def lines(self) -> Lines:
        """The line index of this version."""
        if self._lines is None:
            self._lines = Lines(self.text, self._encoding)
        return self._lines

    def apply(self, changes: Iterable[TextChange], version: int | None) -> None:
        """Apply the edits of one didChange in order, each to the result of the one before."""
        for change in changes:
            if change.range is None:
                self.text, self._lines = change.text, None
                self._log.append((0, 0))
            else:
                self._replace(change.range, change.text)
            self.changes += 1
        self.edits += 1
        self.version = version

    def as_after(self, change: int) -> tuple[int, int]:
        """How many characters are for certain as they were after so many changes, at the start and at the end."""
        since = self.changes - change
        if since > len(self._log):
            return 0, 0
        last = list(self._log)[len(self._log) - since :]
        whole = len(self.text)
        return min([whole, *(start for start, _ in last)]), min([whole, *(end for _, end in last)])

    def _replace(self, span: tuple[int, int, int, int], text: str) -> None:
        lines = self.lines
        start, end = sorted((lines.offset(*span[:2]), lines.offset(*span[2:])))
        self._log.append((start, len(self.text) - end))
        self._lines = lines.after(start, end, text)
        self.text = self._lines.text


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
