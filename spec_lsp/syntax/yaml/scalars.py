"""Maps each character of a YAML scalar to its place in the file, for every style: plain, quoted, literal, folded.

Follows the YAML 1.1 that PyYAML and libyaml read (scanner.py: scan_flow_scalar, scan_plain, scan_block_scalar). The result is compared with
the value from the loader; if they differ, the whole scalar is mapped as one piece.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from spec_lsp.expressions import expression
from spec_lsp.syntax.source import HOLE, Source
from spec_lsp.syntax.word import Fragment, Word

BREAK = expression("\r\n|[\r\n\x85\u2028\u2029]")
GAP = expression("[ \t]*(?:(?:\r\n|[\r\n\x85\u2028\u2029])[ \t]*)+")
ESCAPE = expression(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|(?:\r\n|[\r\n\x85\u2028\u2029])[ \t]*|.)", re.S
)
SIMPLE = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
HEADER = expression("[|>](?:([-+])([1-9])?|([1-9])([-+])?)?[^\r\n\x85\u2028\u2029]*")
LINE_ENDS = "\r\n\x85\u2028\u2029"

Run = tuple[str, int, int, bool]
"""A text, the source characters [start, end) that it stands for, and whether these are the same characters."""
Hidden = Callable[[int], bool]


def scalar_word(
    value: str, style: str | None, start: int, end: int, source: Source, hidden: Sequence[tuple[int, int]] = ()
) -> Word:
    """The text of a scalar node that spans [start, end) of the source, quotes included.

    `hidden` are ranges of the source, whole lines, that do not belong to the text: lines of a template that print nothing.
    """
    place = source.place(start, end)
    raw = source.text[start:end]
    quotes = 1 if style in ("'", '"') else 0
    if value and raw[quotes : len(raw) - quotes] == value and style not in ("|", ">"):
        return Word(source.fragments(start + quotes, end - quotes), place)
    inside = [(a - start, b - start) for a, b in hidden if a < end and start < b]
    runs = _exact(value, style, raw, inside)
    if runs is None:
        runs = [(value, 0, len(raw), False)] if value else []
    fragments: list[Fragment] = []
    for text, low, high, verbatim in runs:
        written = source.fragments(start + low, start + high)
        if verbatim:
            fragments.extend(written)
        elif written:  # a template may remove the line end
            unknown = next((f for f in written if f.text is None), None)
            if unknown is None and HOLE in text:
                unknown = Fragment(None, source.place(start + low, start + high), False, "from a template")
            spot = source.place(start + low, start + high)
            fragments.append(
                Fragment(text, spot, False) if unknown is None else Fragment(None, spot, False, unknown.reason)
            )
    return Word(tuple(fragments), place)


def _exact(value: str, style: str | None, raw: str, hidden: Sequence[tuple[int, int]]) -> list[Run] | None:
    """The runs of a scalar, None if they differ from the loader's value."""
    for number, runs in enumerate(_readings(style, raw, _nothing_hidden)):
        found = list(runs)
        if "".join(run[0] for run in found) != value:
            continue
        if hidden:
            left = partial(_within, hidden)
            shown = next(r for i, r in enumerate(_readings(style, raw, left)) if i == number)
            found = [run for run in shown if not left(run[1])]
        return [run for run in found if run[0]]
    return None


def _within(stretches: Sequence[tuple[int, int]], at: int) -> bool:
    return any(start <= at < end for start, end in stretches)


def _nothing_hidden(at: int) -> bool:
    return False


def _readings(style: str | None, raw: str, hidden: Hidden) -> Iterator[Iterator[Run]]:
    """The possible styles of a scalar, the most likely first."""
    if style == '"':
        yield _double(raw, hidden)
    elif style == "'":
        yield _single(raw, hidden)
    elif style in ("|", ">"):
        header = HEADER.match(raw)
        if header is not None:
            chomping = header[1] or header[4] or ""
            for indent in _indents(raw, header):
                yield _block(raw, header.end(), indent, style == ">", chomping, hidden)
    else:
        yield _folded(raw, 0, len(raw), hidden)


# --- flow scalars ------------------------------------------------------------------------------------------------------


def _single(raw: str, hidden: Hidden) -> Iterator[Run]:
    position = 1
    for m in re.finditer("''", raw[1:-1]):
        yield from _folded(raw, position, m.start() + 1, hidden)
        yield "'", m.start() + 1, m.end() + 1, False
        position = m.end() + 1
    yield from _folded(raw, position, len(raw) - 1, hidden)


def _double(raw: str, hidden: Hidden) -> Iterator[Run]:
    position, end = 1, len(raw) - 1
    while position < end:
        m = ESCAPE.search(raw, position, end)
        stop = m.start() if m else end
        yield from _folded(raw, position, stop, hidden)
        if not m:
            return
        yield _unescaped(m.group()), m.start(), m.end(), False
        position = m.end()
        if m.group()[1] in LINE_ENDS:
            while (line := BREAK.match(raw, position, end)) is not None:
                yield _line_end(line.group()), line.start(), line.end(), False
                position = line.end()
                while position < end and raw[position] in " \t":
                    position += 1


def _unescaped(escape: str) -> str:
    kind = escape[1]
    if kind in "xuU" and len(escape) > 2:
        code = int(escape[2:], 16)
        return chr(code) if code <= 0x10FFFF else ""
    return "" if kind in LINE_ENDS else SIMPLE.get(kind, "")


def _line_end(written: str) -> str:
    return written if written in "\u2028\u2029" else "\n"


def _folded(raw: str, start: int, end: int, hidden: Hidden) -> Iterator[Run]:
    """The text of a flow scalar: a line end with the blanks around it becomes a blank, empty lines become line ends."""
    position = start
    for m in GAP.finditer(raw, start, end):
        if position < m.start():
            yield raw[position : m.start()], position, m.start(), True
        first, *more = BREAK.finditer(raw, m.start(), m.end())
        text = "".join(_line_end(b.group()) for b in more if not hidden(b.start()))
        if _line_end(first.group()) != "\n":
            text = first.group() + text
        yield text or " ", m.start(), m.end(), False
        position = m.end()
    if position < end:
        yield raw[position:end], position, end, True


# --- block scalars -----------------------------------------------------------------------------------------------------


def _indents(raw: str, header: re.Match[str]) -> list[int]:
    """The possible indentations of the text. An explicit number counts from the parent's column, which the raw text does not show."""
    lines = BREAK.split(raw[header.end() :])[1:]
    leading = 0
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        leading = max(leading, indent)
        if line.strip(" "):
            found = leading if line[indent:] else indent
            return list(range(found, 0, -1)) if header[2] or header[3] else [found, indent]
    return [max(leading, 1)]


def _block(raw: str, position: int, indent: int, folds: bool, chomping: str, hidden: Hidden) -> Iterator[Run]:
    end = len(raw)

    def line_end(at: int) -> Run | None:
        found = BREAK.match(raw, at)
        return (_line_end(found.group()), found.start(), found.end(), False) if found else None

    def empty_lines(at: int) -> tuple[list[Run], int, bool]:
        """The line ends before the next text, where that starts, and whether it is indented enough."""
        found: list[Run] = []
        while True:
            column = 0
            while column < indent and at < end and raw[at] == " ":
                at, column = at + 1, column + 1
            line = line_end(at)
            if line is None:
                return found, at, column == indent and at < end
            if not hidden(line[1]):
                found.append(line)
            at = line[2]

    head = line_end(position)
    if head is None:
        return
    breaks, position, inside = empty_lines(head[2])
    last: Run | None = None
    while inside:
        yield from breaks
        starts_blank = raw[position] in " \t"
        stop = m.start() if (m := BREAK.search(raw, position)) else end
        yield raw[position:stop], position, stop, True
        last = line_end(stop)
        breaks, position, inside = empty_lines(last[2] if last else end)
        if inside and last is not None:
            if folds and last[0] == "\n" and not starts_blank and raw[position] not in " \t":
                if not breaks:
                    yield " ", last[1], last[2], False
            else:
                yield last
    if chomping != "-" and last is not None:
        yield last
    if chomping == "+":
        yield from breaks
