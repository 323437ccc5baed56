"""Plain tables and paragraphs for a terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

from spec_lsp.cli.excerpt import columns
from spec_lsp.cli.style import Style, plain

WIDEST = 56
"""The most columns of a terminal that a cell may take, except in the last column."""


def width() -> int:
    """The width of text: the terminal's, within limits."""
    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 120))


def table(rows: Sequence[Sequence[str]], style: Style, heads: Sequence[str] = ()) -> list[str]:
    """Columns side by side. The last one is wrapped at the terminal's width; the others are cut if they are too wide."""
    if not rows:
        return []
    every = [[*(_cut(cell) for cell in row[:-1]), row[-1]] for row in ([heads, *rows] if heads else rows)]
    widths = [max(columns(plain(row[i])) for row in every) for i in range(len(every[0]) - 1)]
    indent = sum(w + 2 for w in widths)
    room = max(width() - indent, 24)
    lines = []
    for number, row in enumerate(every):
        cells = [cell + " " * (w - columns(plain(cell))) for cell, w in zip(row, widths, strict=False)]
        first, *more = fold(row[-1], room) or [""]
        line = "  ".join([*cells, first]).rstrip()
        lines += [style.paint(line, "bold") if heads and not number else line, *(" " * indent + m for m in more)]
    return lines


def _cut(cell: str) -> str:
    return cell if len(plain(cell)) <= WIDEST else plain(cell)[: WIDEST - 1] + "…"


def fold(text: str, room: int) -> list[str]:
    """A text in lines of at most `room` columns; words are kept whole."""
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)


def paragraphs(text: str, style: Style, indent: str = "") -> list[str]:
    """Markdown prose for a terminal: paragraphs wrapped, lists and code kept, `code` bold."""
    lines: list[str] = []
    for block in text.strip().split("\n\n"):
        if lines:
            lines.append("")
        if block.startswith(("    ", "```", "|")):
            lines += [indent + line for line in block.split("\n")]
            continue
        for item in _items(block):
            lead = "  " if item.startswith(("- ", "* ")) else ""
            folded = textwrap.wrap(
                item, width() - len(indent), subsequent_indent=lead, break_long_words=False, break_on_hyphens=False
            )
            lines += [indent + style.prose(line) for line in folded]
    return lines


def _items(block: str) -> list[str]:
    """The items of a list, or the one paragraph."""
    items: list[str] = []
    for line in block.split("\n"):
        if items and not line.lstrip().startswith(("- ", "* ")):
            items[-1] += " " + line.strip()
        else:
            items.append(line.strip())
    return items
