"""JSON string literals, and where each of their characters is written."""

from __future__ import annotations

import json

from spec_lsp.expressions import expression
from spec_lsp.syntax.source import Source
from spec_lsp.syntax.word import Fragment, Word

JSON_STRING = expression(r'"(?:[^"\\\n]|\\.)*"')
_ESCAPE = expression(r"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.)")
_BLANKS = expression(r"[ \t\r\n]*")


def json_string(source: Source, start: int, end: int) -> Word | None:
    """The word for the literal in [start, end) of the source, including its quotes; None if JSON refuses it."""
    fragments: list[Fragment] = []
    at = start + 1
    for escape in _ESCAPE.finditer(source.text, start + 1, end - 1):
        if at < escape.start():
            fragments.extend(source.fragments(at, escape.start()))
        try:
            text = json.loads(f'"{escape.group()}"')
        except ValueError:
            return None
        fragments.append(Fragment(text, source.place(*escape.span()), False))
        at = escape.end()
    if at < end - 1:
        fragments.extend(source.fragments(at, end - 1))
    return Word(tuple(fragments), source.place(start, end))


def json_strings(source: Source, start: int = 0) -> tuple[Word, ...] | None:
    """The items of the JSON list of strings that begins at `start` of the source; None if there is none.

    An unclosed list or string, as while somebody types, gives the items before its end.
    """
    text = source.text
    at = _skip(text, start)
    if not text.startswith("[", at):
        return None
    at = _skip(text, at + 1)
    words: list[Word] = []
    while at < len(text) and text[at] != "]":
        literal = JSON_STRING.match(text, at)
        if literal is None and words and text[at] == '"' and text.find('"', at + 1) < 0:
            return tuple(words)
        word = json_string(source, *literal.span()) if literal else None
        if literal is None or word is None:
            return None
        words.append(word)
        at = _skip(text, literal.end())
        if text.startswith(",", at):
            at = _skip(text, at + 1)
            if text.startswith("]", at):
                return None
        elif at < len(text) and text[at] != "]":
            return None
    return None if text[at + 1 :].strip() else tuple(words)


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at
