"""The files that a script sources."""

from __future__ import annotations

from collections.abc import Callable

from spec_lsp.syntax.shell.ast import Script
from spec_lsp.syntax.shell.statements import statements
from spec_lsp.syntax.source import FileSource, Source

MAX_SOURCED = 40


class SourcedFiles:
    """Reads each file once, and no more than MAX_SOURCED of them. `read` returns a file's text, None if it has none."""

    def __init__(self, read: Callable[[str], str | None]) -> None:
        self.read = read
        self.asked: dict[str, str | None] = {}
        """The contents of the files that were asked for."""

    def content(self, path: str) -> str | None:
        """The content of a file."""
        if path not in self.asked and len(self.asked) < MAX_SOURCED:
            self.asked[path] = self.read(path)
        return self.asked.get(path)

    def load(self, path: str) -> list[tuple[Script, Source]] | None:
        """The statements of a file."""
        found = self.content(path)
        if found is None:
            return None
        return [(s.statement.script, FileSource(path, s.start, s.text)) for s in statements(found)]

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the files that could be read."""
        return {path: text for path, text in self.asked.items() if text is not None}
