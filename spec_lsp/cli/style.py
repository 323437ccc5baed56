"""Colours on a terminal."""

from __future__ import annotations

import os
from typing import TextIO

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass

_CODES = {
    "bold": "1", "error": "1;31", "warning": "1;33", "information": "1;34", "hint": "1;36", "frame": "34", "good": "32",
}  # fmt: skip
_CODE_SPAN = expression(r"`([^`\n]+)`")
_ANSI = expression(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Style:
    """Paints text, or leaves it as it is."""

    on: bool = False

    def paint(self, text: str, kind: str) -> str:
        """`text` in the colour of a kind: a severity, or bold, frame, good."""
        return f"\x1b[{_CODES[kind]}m{text}\x1b[0m" if self.on and text else text

    def prose(self, text: str) -> str:
        """A sentence whose `code` shows bold; without colours the backquotes stay."""
        return _CODE_SPAN.sub(lambda m: f"\x1b[1m{m[1]}\x1b[0m", text) if self.on else text


def style_for(stream: TextIO, when: str) -> Style:
    """Colours as `--color` says; `auto` asks the terminal and NO_COLOR, FORCE_COLOR and TERM."""
    if when != "auto":
        return Style(when == "always")
    if os.environ.get("NO_COLOR"):
        return Style(False)
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return Style(True)
    return Style(stream.isatty() and os.environ.get("TERM") != "dumb")


def plain(text: str) -> str:
    """`text` without colours."""
    return _ANSI.sub("", text)
