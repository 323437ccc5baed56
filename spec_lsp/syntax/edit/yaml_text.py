"""Candidate edits of YAML: items of argument lists, and keys that become flags. The caller checks which of them read back as intended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from spec_lsp.expressions import expression
from spec_lsp.syntax.edit import items
from spec_lsp.syntax.launch import Edit
from spec_lsp.syntax.word import Place

PLAIN = expression(r"(?:--?[A-Za-z][\w-]*(?:=[\w./:@%+-]*)?|[A-Za-z0-9_/.][\w./:@%+-]*)\Z")
ITEM = expression(r"[ \t]*-[ \t]+")
UP_TO_COMMENT = expression(r"(?:[^#]|(?<=[^ \t,\[])#)*")
REST = expression(r"[ \t]*(?:#[^\r\n]*)?(?=\r?\n|\Z)")


# --- scalars -----------------------------------------------------------------------------------------------------------


def scalar(text: str, quote: str = "", otherwise: str = '"') -> str:
    """A text as a YAML scalar that reads as this string: in quotes of a kind, or plain if possible and else in the quotes `otherwise`."""
    if not quote and not (PLAIN.match(text) and _is_text(text)):
        quote = otherwise
    if quote == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return text if not quote else json.dumps(text, ensure_ascii=False)


def _is_text(text: str) -> bool:
    """Whether a plain scalar is read as a string, and as this one."""
    import yaml

    try:
        return not text.endswith(":") and yaml.safe_load(text) == text
    except (yaml.YAMLError, ValueError):
        return False


def quote_at(text: str, place: Place) -> str:
    """The quote that a scalar begins with, empty for a plain one."""
    first = text[place.start : place.start + 1]
    return first if first in ("'", '"') else ""


def escaped(text: str) -> Iterator[str]:
    """A text as it is written inside double and inside single quotes, if that differs."""
    if '"' in text or "\\" in text:
        yield text.replace("\\", "\\\\").replace('"', '\\"')
    if "'" in text:
        yield text.replace("'", "''")


def value_edits(text: str, whole: Place, written: Place | None, value: str, full: str) -> Iterator[tuple[Edit, ...]]:
    """Ways to give a scalar another text: `whole` is the scalar, which is to read `full`; `written` is where the changed part is written,
    which may be another scalar (a variable's)."""
    if written is not None and not whole.contains(written):
        before, behind = text[written.start - 1 : written.start], text[written.end : written.end + 1]
        if before == behind and before in ("'", '"'):
            around = Place(written.document, written.start - 1, written.end + 1)
            yield (Edit(around, scalar(value, before)),)
        yield (Edit(written, scalar(value)),)
        yield (Edit(written, value),)
        return
    yield (Edit(whole, scalar(full, quote_at(text, whole))),)
    if written is not None:
        yield (Edit(written, value),)


# --- lists -------------------------------------------------------------------------------------------------------------


def line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def block_item(text: str, place: Place) -> str | None:
    """What precedes an item that has its lines to itself: indentation, dash and blanks; None if it does not."""
    start = line_start(text, place.start)
    prefix = text[start : place.start]
    if not re.fullmatch(r"(?:[ \t]|>(?=[ \t]))*-[ \t]+", prefix) or REST.match(text, place.end) is None:
        return None
    return prefix


def is_item(text: str, place: Place) -> bool:
    """Whether a scalar is an item of a list, on lines or in brackets."""
    if block_item(text, place) is not None:
        return True
    behind = re.compile(r"[ \t\r\n]*(?:#[^\r\n]*[ \t\r\n]*)*").match(text, place.end)
    return (
        behind is not None and text[behind.end() : behind.end() + 1] in (",", "]") and _begins_item(text, place.start)
    )


def _begins_item(text: str, at: int) -> bool:
    """Whether a place is preceded by a bracket or a comma, with only comments and empty lines between."""
    start = end = line_start(text, at)
    line = before = text[start:at].rstrip()
    while start and not before and at - start < 4_000:
        end, start = start, line_start(text, start - 1)
        line = text[start:end].rstrip()
        before = line[: found.end()].rstrip() if (found := UP_TO_COMMENT.match(line)) else ""
    return bool(before) and (before[-1] in "[," or line[-1] in "[,")


def removal_edits(text: str, first: Place, last: Place) -> Iterator[tuple[Edit, ...]]:
    """Ways to remove the items from `first` to `last`: with their lines and the comments on them, or with a comma."""
    if block_item(text, first) is not None and block_item(text, last) is not None:
        rest = REST.match(text, last.end)
        end = rest.end() if rest else last.end
        end += 2 if text[end : end + 2] == "\r\n" else 1 if text[end : end + 1] == "\n" else 0
        yield (Edit(Place(first.document, line_start(text, first.start), end), ""),)
        return
    yield from items.removal_edits(text, first, last)


def insertion_edits(text: str, anchor: Place, new: Sequence[str], *, before: bool) -> Iterator[tuple[Edit, ...]]:
    """Ways to add items after the item that ends where `anchor` ends, or before the one that starts there."""
    document = anchor.document
    eol = "\r\n" if "\r\n" in text else "\n"
    start = line_start(text, anchor.start if before else anchor.end - 1)
    prefix = ITEM.match(text, start)
    rest = REST.match(text, anchor.end)
    if prefix and rest and (not before or prefix.end() == anchor.start):
        at = start if before else rest.end()
        lines = [prefix.group() + item for item in new]
        yield (Edit(Place(document, at, at), "".join(f"{line}{eol}" if before else f"{eol}{line}" for line in lines)),)
    if before:
        yield (Edit(Place(document, anchor.start, anchor.start), ", ".join(new) + ", "),)
    else:
        yield from items.insertion_edits(text, anchor, new)


def split_edits(text: str, place: Place, first: str, second: str) -> Iterator[tuple[Edit, ...]]:
    """Ways to split one item into two."""
    prefix = block_item(text, place)
    eol = "\r\n" if "\r\n" in text else "\n"
    yield (Edit(place, f"{first}{eol}{prefix}{second}" if prefix is not None else f"{first}, {second}"),)


# --- mappings ----------------------------------------------------------------------------------------------------------


def entry_end(text: str, key: Place, end: int) -> int:
    """The end of the lines of a block entry with this key and last known value: lines that are indented further belong to it."""
    start = line_start(text, key.start)
    indent = key.start - start
    position = text.find("\n", max(end - 1, key.start)) + 1 or len(text)
    while position < len(text):
        stop = text.find("\n", position) + 1 or len(text)
        line = text[position:stop]
        depth = len(line) - len(line.lstrip(" "))
        if not line.strip() or not (depth > indent or (depth == indent and line.lstrip().startswith("- "))):
            break
        position = stop
    return position


def value_end(text: str, key: Place, last: Place) -> Place:
    """The last place of an entry: its last word, or what follows the colon of a key that is a word alone (`flag: true`)."""
    if last != key:
        return last
    found = re.compile(r"[\"']?[ \t]*:[ \t]*[^\s,}\]#]*").match(text, key.end)
    return Place(key.document, key.start, found.end() if found else key.end)


def is_flow_entry(text: str, key: Place) -> bool:
    """Whether a key is written between braces."""
    return bool(text[line_start(text, key.start) : key.start].strip(" \t\"'-"))


def entry_removals(text: str, key: Place, last: Place) -> Iterator[tuple[Edit, ...]]:
    """Ways to remove an entry, from its key to its last value."""
    document, start = key.document, line_start(text, key.start)
    last = value_end(text, key, last)
    if is_flow_entry(text, key):
        yield from items.removal_edits(text, key, last)
        closing = re.compile(r"[ \t\r\n]*\]").match(text, last.end)
        if closing:
            yield from items.removal_edits(text, key, Place(document, last.start, closing.end()))
        return
    yield (Edit(Place(document, start, entry_end(text, key, last.end)), ""),)


def entry_insertions(text: str, key: Place, last: Place, entry: str) -> Iterator[tuple[Edit, ...]]:
    """Ways to add an entry after the one from `key` to `last`."""
    document, start = key.document, line_start(text, key.start)
    last = value_end(text, key, last)
    if is_flow_entry(text, key):
        yield (Edit(Place(document, last.end, last.end), f", {entry}"),)
        closing = re.compile(r"[ \t\r\n]*\]").match(text, last.end)
        if closing:
            yield (Edit(Place(document, closing.end(), closing.end()), f", {entry}"),)
        return
    eol = "\r\n" if "\r\n" in text else "\n"
    at = entry_end(text, key, last.end)
    indent = " " * (key.start - start) if text[start : key.start].strip() else text[start : key.start]
    ends = text[at - 1 : at] == "\n"
    yield (Edit(Place(document, at, at), f"{'' if ends else eol}{indent}{entry}{eol if ends else ''}"),)


def switched_on(text: str, extent: Place, key: str, value: str) -> Iterator[tuple[Edit, ...]]:
    """Ways to give a value to a key that has `false` or none."""
    for name in (key, key.replace("-", "_")):
        pattern = re.compile(
            rf"(?<![\w-])[\"']?{re.escape(name)}[\"']?[ \t]*:(?P<blank>[ \t]*)(?P<value>false|null|~|no|off)?(?=[ \t\r\n,}}]|\Z)"
        )
        for m in pattern.finditer(text, extent.start, extent.end + len(key)):
            yield (Edit(Place(extent.document, m.end() - len(m["blank"] + (m["value"] or "")), m.end()), f" {value}"),)


def entry_value(values: Sequence[str]) -> str:
    """The value of a key that becomes a flag with these words."""
    written = [v if re.fullmatch(r"-?\d+(?:\.\d+)?", v) else scalar(v) for v in values]
    if not written:
        return "true"
    return written[0] if len(written) == 1 else f"[{', '.join(written)}]"
