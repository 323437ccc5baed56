"""The source excerpt under a finding: numbered lines, carets under the place itself, dashes under related places."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from spec_lsp.cli.printed import harmless
from spec_lsp.cli.report import Location, SourceLine
from spec_lsp.cli.style import Style
from spec_lsp.records import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """Screen columns [start, end) of a line to underline, with what to say of them."""

    start: int
    end: int
    label: str = ""
    primary: bool = True


def excerpt(primary: Location, related: Sequence[tuple[Location, str]], severity: str, style: Style) -> list[str]:
    """The terminal's view of a finding: its file and position, and the source of all its places."""
    files = dict.fromkeys([primary.file, *(location.file for location, _ in related)])
    width = _gutter([primary, *(location for location, _ in related)])
    shown: list[str] = []
    for file in files:
        here = [(location, text) for location, text in related if location.file == file]
        first = primary if file == primary.file else here[0][0]
        arrow = "-->"
        position = f"{harmless(file)}:{first.start.line + 1}:{first.start.character + 1}"
        shown.append(" " * width + style.paint(arrow, "frame") + f" {position}")
        own = [(primary, "", True)] if file == primary.file else []
        shown += _snippet([*own, *((loc, text, False) for loc, text in here)], width, severity, style)
    return shown


def _gutter(locations: Iterable[Location]) -> int:
    """How many digits the highest line number has."""
    return len(str(max((line.number + 1 for loc in locations for line in loc.lines), default=1)))


def _snippet(parts: Sequence[tuple[Location, str, bool]], width: int, severity: str, style: Style) -> list[str]:
    """The source lines of one file with their marks; lines between them that are not shown become `...`."""
    lines: dict[int, SourceLine] = {}
    marks: dict[int, list[Mark]] = {}
    for location, label, is_primary in parts:
        for line in location.lines:
            kept = lines.setdefault(line.number, line)
            mark = _mark(location, kept, label if line is location.lines[-1] else "", is_primary)
            if mark is not None:
                marks.setdefault(line.number, []).append(mark)
    bar = style.paint("|", "frame")
    shown = [f"{'':{width}} {bar}"]
    previous: int | None = None
    for number in sorted(lines):
        if previous is not None and number > previous + 1:
            shown.append(style.paint("...", "frame"))
        previous = number
        shown.append(f"{style.paint(f'{number + 1:>{width}}', 'frame')} {bar} {_shown(lines[number])}".rstrip())
        shown += [f"{'':{width}} {bar} {row}" for row in _mark_rows(marks.get(number, []), severity, style)]
    return [*shown, f"{'':{width}} {bar}"]


def _shown(line: SourceLine) -> str:
    return ("…" if line.cut else "") + harmless(line.text)


def _mark(location: Location, line: SourceLine, label: str, primary: bool) -> Mark | None:
    """The part of a line that the location covers, in screen columns; None if it covers nothing that is shown."""
    start = location.start.character - line.cut if line.number == location.start.line else _indent(line.text)
    end = location.end.character - line.cut if line.number == location.end.line else len(line.text.rstrip())
    if start > len(line.text) or end < 0 or (end < start and line.number != location.start.line):
        return None
    start, end = max(start, 0), min(max(end, start), len(line.text))
    lead = 1 if line.cut else 0
    first = lead + columns(line.text[:start])
    return Mark(first, max(lead + columns(line.text[:end]), first + 1), label, primary)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def columns(text: str) -> int:
    """How many columns of a terminal a text takes, as `harmless` shows it."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(_width, harmless(text)))


def _width(c: str) -> int:
    if unicodedata.combining(c):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def _mark_rows(marks: Sequence[Mark], severity: str, style: Style) -> list[str]:
    """The rows under a source line: all underlines with the label of the last, then one for each other label."""
    if not marks:
        return []
    ordered = sorted(marks, key=lambda m: (m.start, not m.primary))
    row = _underlines(ordered, severity, style)
    labelled = [m for m in ordered if m.label]
    if labelled and labelled[-1] is ordered[-1]:
        row += f" {_label(labelled.pop().label, severity, style, ordered[-1].primary)}"
    return [row, *(f"{'':{m.start}}{_label(m.label, severity, style, m.primary)}" for m in reversed(labelled))]


def _label(text: str, severity: str, style: Style, primary: bool) -> str:
    return style.paint(harmless(text), severity if primary else "frame")


def _underlines(marks: Sequence[Mark], severity: str, style: Style) -> str:
    """One row of underlines; the primary one wins where two overlap."""
    end = max(m.end for m in marks)
    row = [" "] * end
    for mark in sorted(marks, key=lambda m: m.primary):
        row[mark.start : mark.end] = ("^" if mark.primary else "-") * (mark.end - mark.start)
    if not style.on:
        return "".join(row)
    painted, run = "", ""
    for c in [*row, ""]:
        if run and c != run[0]:
            painted += run if run[0] == " " else style.paint(run, severity if run[0] == "^" else "frame")
            run = ""
        run += c
    return painted
