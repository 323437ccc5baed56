"""The output of templates where it is known: defaults that a template names, and values of its chart.

`{{ .Values.tp | default 8 }}` prints 8 unless it is overridden, and so does `{{ .Values.tp }}` if the chart's `values.yaml` says `tp: 8`;
both are treated like a shell's `${TP:-8}`. A way of rendering the file (`templates.Way`) may determine another value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.templates import ELEMENT, FROM_TEMPLATE, Hole

STRING = r"\"[^\"\\{}]*\"|'[^'\\{}]*'|`[^`{}]*`"
NUMBER = r"-?\d+(?:\.\d+)?"
NAME = r"\$?\.?[A-Za-z_][\w.]*|(?:inputs|workflow)\.parameters\.[\w-]+|\$?\."
ATOM = expression(rf"(?:{STRING}|{NUMBER}|{NAME})(?=[\s|(),]|\Z)")
RANGE = expression(r"range\s+(?:(?:(?P<key>\$\w+)\s*,\s*)?(?P<value>\$\w+)\s*:=\s*)?(?P<subject>\$?\.[\w.]+)\Z")
LIST = expression(r"\$?\.Values(?:\.\w+)+\Z")
LINES = expression(r"toYaml\s+([$\w.]+)\s*(?:\|\s*n?indent\s+\d+)?\Z")
PIPE = expression(r"\s*\|\s*")
DEFAULT = expression(r"default(?:\s+|\s*\(\s*)")
CLOSES = expression(r"\s*(?:,\s*(?:true|boolean\s*=\s*true)\s*)?\)")
REQUIRED = expression(rf"required\s+(?:{STRING})\s+")
SAME = expression(r"(?:int64|int|float64|toString|tostring|string|trim|str)\b")
QUOTES = {"quote": '"', "squote": "'"}
NO_NAMES: Mapping[str, Word] = {}
World = Mapping[str, "str | bool | None"]
"""The values of names in a way of rendering: a text, whether they are set; None: none of the values that are asked for."""
EMPTY = frozenset(("", "0", "false", "False", "null"))
"""Values that `default` replaces."""


@dataclass(frozen=True, slots=True)
class Printed:
    """The output of a template, with `quote` around it."""

    fragments: tuple[Fragment, ...]
    place: Place
    quote: str = ""

    @property
    def quoted(self) -> tuple[Fragment, ...]:
        if not self.quote:
            return self.fragments
        mark = Fragment(self.quote, self.place, False, fixed=True)
        return (mark, *self.fragments, mark)


@dataclass(frozen=True, slots=True)
class Values:
    """Computes the output of templates in a text. `chart` returns scalars of the chart's values by their path."""

    text: str
    document: str
    chart: Callable[[Sequence[str]], Word | None]
    lists: Callable[[Sequence[str]], list[tuple[Word | None, Word]]] = lambda path: []

    def elements(self, loop: str) -> list[Mapping[str, Word]]:
        """The values of names in each round of a loop over values of the chart; none if unknown."""
        found = RANGE.match(loop)
        turns: list[Mapping[str, Word]] = []
        if found is None:
            return turns
        for key, value in self.listed(found["subject"]):
            names = {ELEMENT: value, found["value"] or ELEMENT: value}
            turns.append({**names, found["key"]: key} if found["key"] and key is not None else names)
        return turns

    def listed(self, subject: str) -> list[tuple[Word | None, Word]]:
        return self.lists(subject.removeprefix("$").split(".")[2:]) if LIST.match(subject) else []

    def lines(self, hole: Hole) -> list[Word]:
        """The items of a list that a template prints as lines (`toYaml .Values.args | nindent 8`); none if unknown."""
        printed = LINES.match(hole.text)
        found = self.listed(_name(printed[1], hole.dot)) if printed else []
        return [value for key, value in found if key is None]

    def printed(self, hole: Hole, names: Mapping[str, Word] = NO_NAMES, *, world: World) -> Printed | None:
        """The output of a hole in a way in which `world` holds; None if unknown. `names` are those of the document."""
        if hole.reason != FROM_TEMPLATE:
            return None
        place = Place(self.document, hole.start, hole.end)
        stages = _stages(hole.text)
        if stages is None:
            return None
        value: Word | bool | None = None
        quote = ""
        for what, start, end in stages:
            if what == "value" or (what == "default" and _is_missing(value)):
                value = self.value(hole, start, end, world, names)
            elif what in QUOTES:
                quote = QUOTES[what]
        if not isinstance(value, Word):
            return None
        fragments = tuple(f._replace(via=(place, *f.via)) for f in value.fragments)
        return Printed(fragments, place, quote)

    def value(self, hole: Hole, start: int, end: int, world: World, names: Mapping[str, Word]) -> Word | bool | None:
        """The value of [start, end) of a hole's text: True if it is set to something unknown, False if it is not set."""
        written = hole.text[start:end]
        place = Place(self.document, hole.at + start, hole.at + end)
        if written[0] in "\"'`":
            inside = Place(place.document, place.start + 1, place.end - 1)
            return Word((Fragment(written[1:-1], inside),) if len(written) > 2 else (), place)
        if re.fullmatch(NUMBER, written):
            return Word((Fragment(written, place),), place)
        name = _name(written, hole.dot)
        known = self.chart(name.split(".")[2:]) if name.startswith(".Values.") else names.get(name)
        answer = world.get(name, known)
        if isinstance(answer, str):
            return Word((Fragment(answer, place, False, fixed=True),), place)
        if answer is True and known is not None and not _is_missing(known):
            return known
        return True if answer is None and name in world else answer


def _name(written: str, dot: str) -> str:
    """A name in the form that conditions use: `.` inside of `with .Values.x` is `.Values.x`, and `$.Values.x` is so everywhere."""
    if written.startswith("$."):
        return written[1:]
    if not dot or not written.startswith("."):
        return written
    return dot if written == "." else dot + written


def _is_missing(value: Word | bool | None) -> bool:
    """Whether `default` replaces a value."""
    return value in (None, False) or (isinstance(value, Word) and value.text in EMPTY)


def _stages(code: str) -> list[tuple[str, int, int]] | None:
    """The steps of a template: "value" and "default" with the places of their text, and the names of quoting functions. None: anything
    else."""
    found: list[tuple[str, int, int]] = []
    position = 0
    for first, end in _pieces(code):
        stage = _first(code, position, end) if first else _later(code, position, end)
        if stage is None:
            return None
        found += stage
        behind = PIPE.match(code, end)
        position = behind.end() if behind else end
    return found


def _pieces(code: str) -> Iterator[tuple[bool, int]]:
    """Where the steps of a pipeline end."""
    quote = ""
    first = True
    for i, char in enumerate(code):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'`":
            quote = char
        elif char == "|":
            yield first, len(code[:i].rstrip())
            first = False
    yield first, len(code.rstrip())


def _first(code: str, start: int, end: int) -> list[tuple[str, int, int]] | None:
    """`.Values.x`, `default 8 .Values.x`, `quote .Values.x`."""
    required = REQUIRED.match(code, start, end)
    start = required.end() if required else start
    name = re.compile(r"(quote|squote|default|int|toString)\s+").match(code, start, end)
    atom = ATOM.match(code, name.end() if name else start, end)
    if atom is None:
        return None
    if name is None or name[1] != "default":
        return [("value", *atom.span()), *([(name[1], 0, 0)] if name else [])] if atom.end() == end else None
    blank = re.compile(r"\s+").match(code, atom.end(), end)
    value = ATOM.match(code, blank.end(), end) if blank else None
    if value is None or value.end() != end:
        return None
    return [("value", *value.span()), ("default", *atom.span())]


def _later(code: str, start: int, end: int) -> list[tuple[str, int, int]] | None:
    """`default 8`, `default(8)`, `quote`; steps that leave a value as it is."""
    default = DEFAULT.match(code, start, end)
    if default is None:
        word = code[start:end]
        if word in QUOTES:
            return [(word, 0, 0)]
        return [] if SAME.fullmatch(word) or REQUIRED.match(word + " ") else None
    atom = ATOM.match(code, default.end(), end)
    if atom is None:
        return None
    close = CLOSES.match(code, atom.end(), end)
    return [("default", *atom.span())] if (close.end() if close else atom.end()) == end else None
