"""Python string literals, and where each of their characters is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from spec_lsp.expressions import expression
from spec_lsp.records import NamedTuple
from spec_lsp.syntax.word import Fragment, Place

LITERAL = expression(
    r"(?P<prefix>[rRbBuUfF]{0,2})(?:(?P<triple>\"\"\"|''')(?P<long>(?:\\.|(?!(?P=triple)).)*)(?P=triple)|(?P<quote>[\"'])(?P<short>(?:\\.|(?!(?P=quote))[^\\\n])*)(?P=quote))",
    re.S,
)
BETWEEN = expression(r"(?:[ \t\r\n\f]|\\\r?\n|#[^\n]*)*")
ESCAPE = expression(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|[0-7]{1,3}|\r\n|.)", re.S)
SIMPLE = {
    "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\n": "", "\r\n": "", "\r": "",
}  # fmt: skip


class Piece(NamedTuple):
    """One literal of a string that may consist of several; [start, end) is the text between its quotes."""

    raw: bool
    formatted: bool
    start: int
    end: int


def pieces(text: str, start: int, end: int) -> list[Piece] | None:
    """The literals in [start, end), with blanks and comments between; None if there is anything else."""
    found: list[Piece] = []
    at = start
    while at < end:
        blanks = BETWEEN.match(text, at, end)
        at = blanks.end() if blanks else at
        if at >= end:
            break
        m = LITERAL.match(text, at, end)
        if m is None:
            return None
        group = "long" if m.group("triple") else "short"
        prefix = m.group("prefix").lower()
        found.append(Piece("r" in prefix, "f" in prefix, m.start(group), m.end(group)))
        at = m.end()
    return found


def characters(document: str, text: str, start: int, end: int, raw: bool) -> Iterator[Fragment]:
    """The characters between quotes: escapes map as a whole, everything else one to one."""
    at = start
    for m in () if raw else ESCAPE.finditer(text, start, end):
        if at < m.start():
            yield Fragment(text[at : m.start()], Place(document, at, m.start()))
        meant = _unescaped(m.group())
        if meant:
            yield Fragment(meant, Place(document, *m.span()), False)
        at = m.end()
    if at < end:
        yield Fragment(text[at:end], Place(document, at, end))


def _unescaped(escape: str) -> str:
    body = escape[1:]
    if body in SIMPLE:
        return SIMPLE[body]
    if body[0] in "xuU":
        try:
            return chr(int(body[1:], 16))
        except (ValueError, OverflowError):
            return escape
    if body[0] in "01234567":
        return chr(int(body, 8))
    return escape


Evaluated = Callable[[str, Place], "tuple[Fragment, ...]"]
"""The value of an expression between braces, by its source and the place of the braces."""


def formatted(document: str, text: str, piece: Piece, evaluate: Evaluated) -> Iterator[Fragment]:
    """The characters of one literal of an f-string."""
    at = begin = piece.start
    while at < piece.end:
        char = text[at]
        if char == "\\" and not piece.raw:
            at += 2
        elif text.startswith(("{{", "}}"), at) and at + 1 < piece.end:
            yield from characters(document, text, begin, at, piece.raw)
            yield Fragment(char, Place(document, at, at + 2), False)
            at += 2
            begin = at
        elif char == "{":
            yield from characters(document, text, begin, at, piece.raw)
            close = _closing(text, at, piece.end)
            yield from evaluate(text[at + 1 : close], Place(document, at, min(close + 1, piece.end)))
            at = begin = close + 1
        else:
            at += 1
    yield from characters(document, text, min(begin, piece.end), piece.end, piece.raw)


def _closing(text: str, start: int, end: int) -> int:
    """The brace that closes the one at `start`."""
    depth = 0
    at = start
    quote = ""
    while at < end:
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return end
