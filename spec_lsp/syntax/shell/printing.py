"""The output of `printf`, and quoting of a text for another shell (`printf %q`, `${X@Q}`); each character keeps its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from spec_lsp.expressions import expression
from spec_lsp.syntax.word import Fragment, Place, Word, hull

PIECE = expression(
    r"%(?:%|([-+ #0]*\d*(?:\.\d+)?)([a-zA-Z]))|\\(?:([abefnrtv\\\"'])|([0-7]{1,3})|x([0-9a-fA-F]{1,2}))|[^%\\]+|[%\\]"
)
CHARACTERS = {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
ESCAPE = expression(r"\\(?:([abefnrtv\\])|0([0-7]{0,3})|x([0-9a-fA-F]{1,2}))")
NEEDS_NO_QUOTES = expression(r"[A-Za-z0-9_@%+=:,./-]+\Z")
PRINTED = "what a command prints"
MAX_ROUNDS = 500
MAX_PIECES = 2_000
MAX_WIDTH = 10_000


def quoted(fragments: Sequence[Fragment], place: Place) -> tuple[Fragment, ...]:
    """A text in quotes, so that a shell reads it as one word with the same characters."""
    texts = [f.text for f in fragments]
    if None not in texts and NEEDS_NO_QUOTES.match("".join(t or "" for t in texts)):
        return tuple(fragments)
    mark = Fragment("'", place, False, fixed=True)
    found = [mark]
    for fragment in fragments:
        pieces = Word((fragment,), place)
        position = 0
        for m in re.finditer("'", fragment.text or ""):
            found += pieces.slice(position, m.start()) if position < m.start() else ()
            found.append(Fragment("'\\''", place, False, fixed=True))
            position = m.end()
        if fragment.text is None:
            found.append(fragment)
        elif position < len(fragment.text):
            found += pieces.slice(position, len(fragment.text))
    return (*found, mark)


def unescaped(fragments: Sequence[Fragment]) -> Iterator[Fragment]:
    """A text with its escapes carried out, as `echo -e` prints it."""
    for known, group in groupby(fragments, lambda f: f.text is not None):
        parts = tuple(group)
        if known and any("\\" in (f.text or "") for f in parts):
            yield from _unescaped(Word(parts, hull(f.place for f in parts)))
        else:
            yield from parts


def _unescaped(word: Word) -> Iterator[Fragment]:
    text = word.text or ""
    position = 0
    for m in ESCAPE.finditer(text):
        yield from word.slice(position, m.start()) if position < m.start() else ()
        number = int(m[2] or "0", 8) & 0xFF if m[2] is not None else int(m[3] or "0", 16)
        meant = CHARACTERS.get(m[1], m[1]) if m[1] else chr(number)
        yield Fragment(meant, hull(f.place for f in word.slice(*m.span())), False, fixed=True)
        position = m.end()
    yield from word.slice(position, len(text)) if position < len(text) else ()


def formatted(words: Sequence[Word], place: Place) -> tuple[Fragment, ...]:
    """The output of `printf` for a format and its arguments; `place` is the command's."""
    whole = (Fragment(None, place, False, PRINTED),)
    if not words or words[0].text is None:
        return whole
    pieces = list(PIECE.finditer(words[0].text))
    takes = any(m.group(2) for m in pieces)
    rest = list(words[1:])
    found: list[Fragment] = []
    for _ in range(MAX_ROUNDS):
        for m in pieces:
            found += _piece(words[0], m, rest, place)
            if len(found) > MAX_PIECES:
                return whole
        if not rest or not takes:
            return tuple(found)
    return whole


def _piece(form: Word, m: re.Match[str], rest: list[Word], place: Place) -> Sequence[Fragment]:
    """The output for one piece of the format; the argument that it uses is taken from `rest`."""
    width, kind = m.group(1), m.group(2)
    if kind:
        return _argument(rest.pop(0) if rest else None, width, kind, place)
    text = m.group()
    if text == "%%":
        text = "%"
    elif m.group(3):
        text = CHARACTERS.get(m.group(3), m.group(3))
    elif m.group(4) or m.group(5):
        text = chr(int(m.group(4), 8) & 0xFF if m.group(4) else int(m.group(5), 16))
    else:
        return form.slice(*m.span())
    return (Fragment(text, hull(f.place for f in form.slice(*m.span())), False, fixed=True),)


def _argument(word: Word | None, width: str, kind: str, place: Place) -> Sequence[Fragment]:
    unknown = (Fragment(None, word.place if word else place, False, word.reason if word else PRINTED),)
    if (word is not None and word.splat) or any(int(n) > MAX_WIDTH for n in re.findall(r"\d+", width[:20])):
        return unknown
    text = word.text if word is not None else ""
    if kind == "q":
        return quoted(word.fragments if word is not None else (), place)
    if kind in "sb":
        if word is not None and not width and not (kind == "b" and "\\" in (text or "")):
            return word.fragments
        if text is None or "\\" in text or not text.isascii():  # bash counts bytes
            return unknown
        return (Fragment(f"%{width}s" % text, place, False, fixed=True),)
    if kind in "diu" and text is not None and re.fullmatch(r"[-+]?\d{1,18}|", text):
        if word is not None and not width and str(int(text or 0)) == text:
            return word.fragments
        return (Fragment(f"%{width}d" % int(text or 0), place, False, fixed=True),)
    return unknown
