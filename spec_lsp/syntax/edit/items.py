"""Edits of items between brackets and commas: the argument lists of JSON and Python, the arguments of a Python call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from spec_lsp.expressions import expression
from spec_lsp.syntax.launch import Edit
from spec_lsp.syntax.word import Place

COMMENT = r"[ \t]*(?:#[^\n]*)?"
ONE_LINE = expression(rf",{COMMENT}(?:\r?\n|\Z)")
COMMA = expression(r"[ \t]*,[ \t]*")
COMMA_BEFORE = expression(r",[ \t\r\n]*\Z")
OPENING = expression(
    r"(?P<indent>[ \t]*)(?P<list>\w[\w.]*)(?:\.append\(|\.extend\([\[(]|[ \t]*\+=[ \t]*[\[(])[ \t]*(?=[\w\"'])"
)
"""The beginnings of statements that add items to a list."""
CLOSING = expression(rf"[ \t]*,?[ \t]*[\])]+{COMMENT}(?:\r?\n|\Z)")
CALL = expression(r"\.append\(\s*\Z")
BREAK = expression(r"[\])][ \t]*(?:;|#[^\n]*\n|\r?\n)")
"""Between two statements."""
NO_SIBLING = expression(r"(?:el(?:se|if)|except|finally)\b")


def quoted(text: str, quote: str) -> str:
    """A text to write inside quotes of a kind, with the escapes that JSON and Python share."""
    if quote != "'":
        return json.dumps(text, ensure_ascii=False)
    return "'" + json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"


def quote_of(text: str, place: Place) -> str:
    """The quote that encloses an item; a double one if none does."""
    found = re.match(r"[rRbBuUfF]*([\"'])", text[place.start : place.end])
    return found.group(1) if found else '"'


def value_edits(text: str, place: Place, written: Place, value: str) -> Iterator[tuple[Edit, ...]]:
    """Ways to replace an item's text: inside its quotes, or together with them."""
    quote = text[written.start - 1 : written.start]
    if quote in ("'", '"'):
        yield (Edit(written, quoted(value, quote)[1:-1]),)
    yield (Edit(place, quoted(value, quote_of(text, place))),)
    yield (Edit(written, value),)


def removal_edits(text: str, first: Place, last: Place) -> Iterator[tuple[Edit, ...]]:
    """Ways to remove the items from `first` to `last`: with their lines if nothing else is on them, else with a comma."""
    document = first.document
    start, end = first.start, last.end
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    statements = statements_around(text, line, first, last)
    if statements is not None:
        yield (statements,)
    if CALL.search(text, line, start) or BREAK.search(text, first.end, last.start):
        return  # Python refuses `append()`; the rest of the statement belongs to something else
    whole = ONE_LINE.match(text, end)
    if not text[line:start].strip() and whole:
        yield (Edit(Place(document, line, whole.end()), ""),)
    before = COMMA_BEFORE.search(text, max(0, start - 400), start)
    behind = COMMA.match(text, end)
    if behind:
        yield (Edit(Place(document, start, behind.end()), ""),)
    if before:
        yield (Edit(Place(document, before.start(), end), ""),)
    yield (Edit(Place(document, start, end), ""),)


def statements_around(text: str, line: int, first: Place, last: Place) -> Edit | None:
    """Ways to remove the statements, from the one that begins at `line`, that only add the items from `first` to `last` to a list."""
    opening, closing = OPENING.match(text, line), CLOSING.match(text, last.end)
    if opening is None or closing is None or opening.end() != first.start:
        return None
    lines = text[line : closing.end()].splitlines()
    if any((m := OPENING.match(each)) is None or m.groups() != opening.groups() or ";" in each for each in lines):
        return None
    indent = opening["indent"]
    beside = (text[:line].rstrip().rpartition("\n")[2], text[closing.end() :].lstrip("\r\n").partition("\n")[0])
    alone = indent and not any(re.match(rf"{indent}(?![ \t]|{NO_SIBLING.pattern})", each) for each in beside)
    if alone:
        return Edit(Place(first.document, line + len(indent), closing.end() - len(lines_end(closing.group()))), "pass")
    return Edit(Place(first.document, line, closing.end()), "")


def lines_end(text: str) -> str:
    return text[len(text.rstrip("\r\n")) :]


def insertion_edits(text: str, after: Place, items: Sequence[str]) -> Iterator[tuple[Edit, ...]]:
    """Ways to add items after another one: on a line of their own if that one begins its line, else after its comma."""
    document, at = after.document, after.end
    line = max(text.rfind("\n", 0, after.start), text.rfind("\r", 0, after.start)) + 1
    lead = text[line : after.start]
    written = ", ".join(items)
    eol = "\r\n" if "\r\n" in text else "\n"
    behind = ONE_LINE.match(text, at)
    indent = lead[: len(lead) - len(lead.lstrip(" \t"))]
    if behind and indent and re.match(r"[ \t]*[rRbBuUfF]*[\"'\w]", lead + text[after.start : after.end]):
        yield (Edit(Place(document, behind.end(), behind.end()), f"{indent}{written},{eol}"),)
    if not lead.strip() and lead:
        yield (Edit(Place(document, at, at), f",{eol}{indent}{written}"),)
    yield (Edit(Place(document, at, at), f", {written}"),)


def keyword_edits(text: str, after: Place, argument: str, *, first: bool) -> Iterator[tuple[Edit, ...]]:
    """Ways to add an argument to a call, after another argument, or after the bracket (`first`; `after` is the function's name)."""
    if not first:
        yield from insertion_edits(text, after, [argument])
        return
    bracket = text.find("(", after.end) + 1
    at = Place(after.document, bracket, bracket)
    if bracket:
        yield (Edit(at, argument),)
        yield (Edit(at, f"{argument}, "),)
