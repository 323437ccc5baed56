"""From the text of a file to the launches in it, each word with an exact map back to the file."""

from __future__ import annotations

from collections.abc import Callable

from spec_lsp.syntax.launch import Document
from spec_lsp.syntax.shell import read_shell

__all__ = ["parse"]


def nothing(path: str) -> str | None:
    """The reader of a caller that has no other files."""
    return None


def parse(name: str, text: str, read: Callable[[str], str | None] = nothing, language: str | None = None) -> Document:
    """All that can be read of a text. Never raises."""
    if "sglang" not in text:
        return Document(name, text)
    return read_shell(name, text, read)
