"""Words of command lines in YAML: variables of Kubernetes and Compose, and strings split as a shell would."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from spec_lsp.expressions import expression
from spec_lsp.syntax.shell.values import FROM_ENVIRONMENT
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.word import Fragment, Place, Word, hull
from spec_lsp.syntax.yaml.config import data_of

KUBERNETES = expression(r"\$\$|\$\((?P<name>[A-Za-z_][\w.-]*)\)")
COMPOSE = expression(r"\$\$|\$(?P<plain>[A-Za-z_]\w*)|\$\{(?P<name>[A-Za-z_]\w*)(?P<how>:?[-?+])?")
VARIABLE = expression(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
PARAMETER = expression(r"\{(?P<name>[A-Za-z_]\w*)\}")
FIELD = expression(r"(?<![$%{\\])\{[A-Za-z_]\w*\}(?!\})")
FROM_OPERATOR = "set by what runs the container"
FROM_SWEEP = "from the sweep"
FROM_TOOL = "filled in by the tool that reads the file"

Setting = Word | bool | None
"""The value of a name for Compose; True or False if it is only known whether it is set; None if not even that is known."""
Lookup = Callable[[str], Setting]
Replace = Callable[[re.Match[str]], "tuple[Fragment, ...] | None"]


def substituted(word: Word, pattern: re.Pattern[str], replace: Replace) -> Word:
    """The word with matches in its text replaced; None leaves a match as it is. Unknown parts match nothing."""
    text = embedded(word).whole
    fragments: list[Fragment] = []
    position = 0
    for m in pattern.finditer(text):
        new = replace(m)
        if new is None:
            continue
        fragments += word.slice(position, m.start()) if position < m.start() else ()
        fragments += new
        position = m.end()
    if not position:
        return word
    fragments += word.slice(position, len(text)) if position < len(text) else ()
    return word._replace(fragments=tuple(fragments))


def place_in(word: Word, start: int, end: int) -> Place:
    """Where the characters [start, end) of a word's text are written, an unknown part counting as one."""
    found = word.slice(start, end)
    return hull(f.place for f in found) if found else word.place


def brought_in(value: Word, reference: Place) -> tuple[Fragment, ...]:
    """A variable's value where it is referred to."""
    return tuple(f._replace(via=(reference, *f.via)) for f in value.fragments)


def kubernetes(word: Word, env: Mapping[str, Word], is_script: bool) -> Word:
    """`$(NAME)` replaced by the variable's value; a name that the file does not set is unknown, or in a script left to the shell."""

    def replace(m: re.Match[str]) -> tuple[Fragment, ...] | None:
        reference = place_in(word, m.start(), m.end())
        if m["name"] is None:
            return None if is_script else (Fragment("$", reference, False),)
        value = env.get(m["name"])
        if value is not None:
            return brought_in(value, reference)
        return None if is_script else (Fragment(None, reference, False, FROM_OPERATOR),)

    return substituted(word, KUBERNETES, replace) if "$" in embedded(word).whole else word


def with_variables(word: Word, env: Mapping[str, Word]) -> Word:
    """`$NAME` and `${NAME}` replaced by their known values."""

    def replace(m: re.Match[str]) -> tuple[Fragment, ...] | None:
        value = env.get(m[1] or m[2])
        return brought_in(value, place_in(word, m.start(), m.end())) if value is not None else None

    return substituted(word, VARIABLE, replace) if env and "$" in embedded(word).whole else word


def asked(text: str) -> dict[str, int]:
    """The names about which a text asks whether they are set (`${NAME:+--flag}`), as Compose reads it, and the first place of each."""
    found: dict[str, int] = {}
    for m in COMPOSE.finditer(text):
        if (m["how"] or "").endswith("+"):
            found.setdefault(m["name"], m.start())
    return found


def compose(word: Word, lookup: Lookup) -> Word:
    """`${NAME:-default}` and similar replaced as Compose does it."""
    text = embedded(word).whole
    if "$" not in text:
        return word
    fragments: list[Fragment] = []
    position = 0
    while m := COMPOSE.search(text, position):
        fragments += word.slice(position, m.start()) if position < m.start() else ()
        end, new = _interpolated(word, text, m, lookup)
        fragments += new
        position = end
    fragments += word.slice(position, len(text)) if position < len(text) else ()
    return word._replace(fragments=tuple(fragments))


def _interpolated(word: Word, text: str, m: re.Match[str], lookup: Lookup) -> tuple[int, tuple[Fragment, ...]]:
    """Where a reference ends, and its replacement."""
    if m.group() == "$$":
        return m.end(), (Fragment("$", place_in(word, m.start(), m.end()), False),)
    name = m["plain"] or m["name"]
    end = m.end() if m["plain"] else _closing(text, m.end())
    reference = place_in(word, m.start(), end)
    how = m["how"] or ""
    value = lookup(name)
    given = _is_given(value, how.startswith(":"))
    operand = Word(word.slice(m.end(), end - 1), reference) if how and m.end() < end - 1 else Word((), reference)
    if (how.endswith("-") and not given) or (how.endswith("+") and given):
        value = compose(operand, lookup)
    elif given is False and not how.endswith("?"):
        value = Word((), reference)
    if isinstance(value, Word) and not (given is None and how.endswith("+")):
        return end, brought_in(value, reference)
    return end, (Fragment(None, reference, False, FROM_ENVIRONMENT),)


def _is_given(value: Setting, colon: bool) -> bool | None:
    """Whether a name is set, and with a colon not empty."""
    if isinstance(value, Word):
        return not colon or value.text != ""
    return value


def _closing(text: str, position: int) -> int:
    """The offset after the brace that closes a reference."""
    depth = 1
    for i in range(position, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if not depth:
            return i + 1
    return len(text)


def parameters(word: Word) -> Word:
    """`{name}` of a sweep is unknown."""
    return substituted(
        word,
        PARAMETER,
        lambda m: (Fragment(None, place_in(word, m.start(), m.end()), False, f"{FROM_SWEEP} over {m['name']}"),),
    )


def formatted(word: Word) -> Word:
    """A one-line command that contains `{name}`: a tool (Python's `str.format`) replaces that, and may append more arguments."""
    whole = embedded(word).whole
    if not FIELD.search(whole) or "\n" in whole.strip().replace("\\\n", ""):
        return word
    shorter = word._replace(fragments=word.slice(0, len(whole.rstrip())))
    found = substituted(
        shorter, FIELD, lambda m: (Fragment(None, place_in(shorter, m.start(), m.end()), False, FROM_TOOL),)
    )
    end = Place(word.place.document, word.place.end, word.place.end)
    more = Fragment(" ", end, False, fixed=True), Fragment(None, end, False, FROM_TOOL)
    return found._replace(fragments=(*found.fragments, *more))


def split(word: Word, *, escaped: str = '"\\$`', joins: bool = True) -> list[Word]:
    """A string split at its blanks; quotes and backslashes are removed, nothing is expanded (Compose's `command: …`).

    `escaped` are the characters before which a backslash in double quotes is removed; `joins`: whether one before a line end joins the
    lines.
    """
    return list(_split(word, embedded(word).whole, escaped, joins))


def _split(word: Word, text: str, escaped: str, joins: bool) -> Iterator[Word]:
    kept: list[tuple[int, int]] = []
    start = -1
    position = 0
    quote = ""
    while position < len(text):
        char = text[position]
        if not quote and char in " \t\r\n":
            if start >= 0:
                yield _piece(word, kept, start, position)
            kept, start = [], -1
            position += 1
            continue
        start = position if start < 0 else start
        behind = text[position + 1 : position + 2]
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        elif char == "\\" and behind and (not quote or (quote == '"' and behind in escaped)):
            position += 1
            kept += [(position, position + 1)] if behind != "\n" or not joins else []
        else:
            kept.append((position, position + 1))
        position += 1
    if start >= 0:
        yield _piece(word, kept, start, len(text))


def _piece(word: Word, kept: list[tuple[int, int]], start: int, end: int) -> Word:
    runs: list[tuple[int, int]] = []
    for a, b in kept:
        if runs and runs[-1][1] == a:
            runs[-1] = (runs[-1][0], b)
        else:
            runs.append((a, b))
    fragments = tuple(f for a, b in runs for f in word.slice(a, b))
    alone = len(fragments) == 1 and fragments[0].text is None and end - start == 1
    return Word(fragments, seen(word, start, end), alone, alone)


def seen(word: Word, start: int, end: int) -> Place:
    """Where a reader sees a part of a word: at a reference, not at its value."""
    places = [next((v for v in f.via if word.place.contains(v)), f.place) for f in word.slice(start, end)]
    return hull(places) if places else word.place


def joined_lines(words: list[Word]) -> Word:
    """A list of script lines as one text."""
    fragments: list[Fragment] = []
    for i, word in enumerate(words):
        if i:
            end = words[i - 1].place
            fragments.append(Fragment("\n", Place(end.document, end.end, end.end), False, fixed=True))
        fragments += word.fragments
    return Word(tuple(fragments), hull(w.place for w in words))


def loaded(node: Any) -> Any:
    """A scalar's data as `yaml.safe_load` returns it, None if that fails."""
    try:
        return data_of(yaml.constructor.SafeConstructor(), node)
    except Exception:
        return None
