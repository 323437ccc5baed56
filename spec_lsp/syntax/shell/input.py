"""How `read` and `mapfile` split a known text; each character keeps its place."""

from __future__ import annotations

from collections.abc import Sequence

from spec_lsp.syntax.shell.expand import written_at
from spec_lsp.syntax.word import Fragment, Place, Word

BLANKS = " \t\n"
MAX_LINES = 500


def as_word(fragments: Sequence[Fragment], otherwise: Place) -> Word:
    return Word(tuple(fragments), written_at(fragments, otherwise) if fragments else otherwise)


def cut_line(text: Word) -> tuple[Word, Word]:
    """The first line without its end, and what follows it. An unknown part counts as part of its line."""
    position = 0
    for fragment in text.fragments:
        newline = (fragment.text or "").find("\n")
        if newline >= 0:
            at = position + newline
            size = _size(text)
            return as_word(_slice(text, 0, at), text.place), as_word(_slice(text, at + 1, size), text.place)
        position += 1 if fragment.text is None else len(fragment.text)
    return text, Word((), text.place)


def lines_of(text: Word) -> list[Word] | None:
    """All lines, None if there are too many."""
    found = []
    while text.fragments:
        line, text = cut_line(text)
        found.append(line)
        if len(found) > MAX_LINES:
            return None
    return found


def fields_of(line: Word, separators: str, most: int | None) -> list[Word] | None:
    """A line split as `read` does, into at most so many fields, the last of which takes the rest; None if this depends on an unknown
    part."""
    text = line.text
    if text is None and most == 1 and not any("\n" in (f.text or "") for f in line.fragments):
        return [line]
    if text is None or "\\" in text:
        return None
    blank = "".join(c for c in separators if c in BLANKS)
    end = len(text.rstrip(blank)) if blank else len(text)
    start = len(text) - len(text.lstrip(blank)) if blank else 0
    found: list[Word] = []
    while start < end:
        stop = next((i for i in range(start, end) if text[i] in separators), end)
        behind = _behind(text, stop, end, separators, blank)
        if most is not None and len(found) == most - 1 and behind < end:
            stop = behind = end
        found.append(as_word(_slice(line, start, stop), line.place))
        start = behind
    return found


def _behind(text: str, at: int, end: int, separators: str, blank: str) -> int:
    """Where the next field starts: after blanks, with at most one other separator among them."""
    while at < end and text[at] in blank:
        at += 1
    if at < end and text[at] in separators:
        at += 1
        while at < end and text[at] in blank:
            at += 1
    return at


def _size(word: Word) -> int:
    return sum(1 if f.text is None else len(f.text) for f in word.fragments)


def _slice(word: Word, start: int, end: int) -> tuple[Fragment, ...]:
    return tuple(f for f in word.slice(start, end) if f.text != "") if start < end else ()
