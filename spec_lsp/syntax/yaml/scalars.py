"""Where each character of a YAML scalar stands in its file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spec_lsp.syntax.source import Source
from spec_lsp.syntax.word import Fragment, Word

ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\r?\n[ \t]*|.)", re.S)
SIMPLE = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip

Run = tuple[str, int, int, bool]
"""Text, the source characters [start, end) it stands for, and whether they are the same characters."""


def scalar_word(value: str, style: str | None, start: int, end: int, source: Source) -> Word:
    """The text of a scalar node that spans [start, end) of the source, quotes included."""
    place = source.place(start, end)
    raw = source.text[start:end]
    runs = [run for run in _runs(value, style, raw) if run[0]]
    if "".join(run[0] for run in runs) != value:
        runs = [(value, 0, len(raw), False)] if value else []
    fragments: list[Fragment] = []
    for text, low, high, verbatim in runs:
        if verbatim:
            fragments.extend(source.fragments(start + low, start + high))
        else:
            fragments.append(Fragment(text, source.place(start + low, start + high), False))
    return Word(tuple(fragments), place)


def _runs(value: str, style: str | None, raw: str) -> Iterator[Run]:
    if style == '"':
        yield from _double(raw)
    elif style == "'":
        yield from _single(raw)
    elif style in ("|", ">"):
        yield from _block(value, raw)
    else:
        yield from _folded(raw, 0, len(raw))


def _single(raw: str) -> Iterator[Run]:
    position = 1
    for m in re.finditer("''", raw[1:-1]):
        yield from _folded(raw, position, m.start() + 1)
        yield "'", m.start() + 1, m.end() + 1, False
        position = m.end() + 1
    yield from _folded(raw, position, len(raw) - 1)


def _double(raw: str) -> Iterator[Run]:
    position, end = 1, len(raw) - 1
    while position < end:
        m = ESCAPE.search(raw, position, end)
        stop = m.start() if m else end
        yield from _folded(raw, position, stop)
        if not m:
            return
        yield _unescaped(m.group()), m.start(), m.end(), False
        position = m.end()


def _unescaped(escape: str) -> str:
    kind = escape[1]
    if kind in "xuU" and len(escape) > 2:
        code = int(escape[2:], 16)
        return chr(code) if code <= 0x10FFFF else ""
    return "" if kind in "\r\n" else SIMPLE.get(kind, "")


def _folded(raw: str, start: int, end: int) -> Iterator[Run]:
    """Text of a flow scalar: a line end with the blanks around it is a blank, empty lines are line ends."""
    position = start
    for m in re.compile(r"[ \t]*(?:\r?\n[ \t]*)+").finditer(raw, start, end):
        if position < m.start():
            yield raw[position : m.start()], position, m.start(), True
        breaks = m.group().count("\n")
        yield (" " if breaks == 1 else "\n" * (breaks - 1)), m.start(), m.end(), False
        position = m.end()
    if position < end:
        yield raw[position:end], position, end, True


def _block(value: str, raw: str) -> Iterator[Run]:
    """Text of a block scalar, line by line; folding is left to the caller, who sees that the texts differ."""
    header_end = raw.find("\n") + 1
    if not header_end:
        return
    indent = _block_indent(raw, header_end)
    position = header_end
    produced = 0
    while produced < len(value) and position < len(raw):
        newline = raw.find("\n", position)
        line_end = len(raw) if newline < 0 else newline
        stop = line_end - 1 if raw[position:line_end].endswith("\r") else line_end
        content = min(position + indent, stop)
        text = raw[content:stop]
        if text:
            yield text, content, stop, True
            produced += len(text)
        if newline >= 0 and produced < len(value):
            separator = value[produced]
            if separator in "\n " and value[produced - len(text) : produced] == text:
                yield separator, stop, newline + 1, False
                produced += 1
        position = line_end + 1


def _block_indent(raw: str, start: int) -> int:
    m = re.match(r"[|>][-+]?(\d)", raw)
    lines = [line for line in raw[start:].split("\n") if line.strip()]
    found = min((len(line) - len(line.lstrip(" ")) for line in lines[:1]), default=0)
    return found if not m else min(found, 10_000)
