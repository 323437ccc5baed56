"""Shell scripts and systemd units that Helm, Go or Jinja print (`serve.sh.j2`, `_helpers.tpl`, `x.service.j2`), in each of the ways that
they can be rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from spec_lsp.expressions import expression
from spec_lsp.syntax.carriers import Read
from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.launch import Choice, Document, Launch, Problem
from spec_lsp.syntax.shell.embedding import Around, CommandResult, read_script
from spec_lsp.syntax.systemd import read_unit
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.chart import Chart
from spec_lsp.syntax.yaml.templates import FROM_TEMPLATE, Hole, Template, read_template, stretches
from spec_lsp.syntax.yaml.values import Printed, Values
from spec_lsp.syntax.yaml.worlds import Way, looked_at, together

Stretch = tuple[int, int]
Printer = Callable[[Hole], "Printed | None"]
ReadWord = Callable[[str, Word, Read], CommandResult]
GIVEN = expression(r"(?:^|[\s;])[A-Za-z_]\w*=\"?\Z|(?:\(\(|\[\[?[ \t]|\bseq[ \t])[^'\n]*\Z")
PLAIN = expression(r"[\w./:@%+-]*\Z")
NOBODY_SETS = "_value_of_the_template"
MATTERS = expression(r"sglang|--[a-z]|=")
"""What arms of a template must hold to be told apart."""


def read_shell_template(name: str, text: str, read: Read) -> Document:
    """All launches of a template of a script, in each of the ways that it can be rendered.

    What it defines for others to include (`define`) is a script of its own: nobody knows what runs before it.
    """
    return _read_template(name, text, read, lambda name, word, read: read_script(name, word, Around(read=read)))


def read_systemd_template(name: str, text: str, read: Read) -> Document:
    """All launches of a template of a unit."""
    return _read_template(name, text, read, read_unit)


def _read_template(name: str, text: str, read: Read, read_word: ReadWord) -> Document:
    template = read_template(text)
    chart = Chart(name, read)
    values = Values(text, name, chart.value)
    launches: list[Launch] = []
    problems: list[Problem] = []
    depends_on: frozenset[str] = frozenset()
    for start, end, outside in _scripts(template, len(text)):
        ways: list[Way] = []
        for way in template.ways(start, end, MATTERS):
            printer = partial(values.printed, world=dict(way.world))
            word = _rendered(name, text, template, [*way.left_out, *way.dropped, *outside], printer)
            found = read_word(name, word, read)
            choices = tuple(Choice(Place(name, at, at), what) for at, what in way.taken)
            problems += found.problems if not ways else ()
            depends_on |= found.depends_on
            ways.append((choices, looked_at(found.launches, way.looked_at)))
        launches += together(ways)
    launches.sort(key=lambda launch: launch.place.start)
    depends_on |= chart.depends_on
    return Document(name, text, tuple(launches), tuple(problems), directives_of(name, text), depends_on)


def _scripts(template: Template, size: int) -> Iterator[tuple[int, int, Sequence[Stretch]]]:
    """The scripts in a template: where each lies, and what does not belong to it."""
    for start, end in template.defined:
        yield start, end, [(0, start), (end, size)]
    yield 0, size, template.defined


def _rendered(name: str, text: str, template: Template, out: Sequence[Stretch], printer: Printer) -> Word:
    """The script in one way: lines that only steer are gone, so that a command goes on behind them."""
    fragments: list[Fragment] = []
    position = 0
    for start, end, printed in _gone(template, out):
        fragments += _kept(name, text, template, position, start, printer)
        if printed:
            fragments += (Fragment(None, Place(name, start, end), False, FROM_TEMPLATE), _blank(name, end))
        position = max(position, end)
    fragments += _kept(name, text, template, position, len(text), printer)
    return Word(tuple(fragments), Place(name, 0, len(text)))


def _gone(template: Template, out: Sequence[Stretch]) -> Iterator[tuple[int, int, bool]]:
    """Stretches that are not in the script, and whether something that nobody knows is in their place."""
    printed = set(template.printed)
    position = 0
    for start, end in sorted([*template.hidden, *out]):
        if end > position:
            yield max(start, position), end, start >= position and (start, end) in printed
            position = end


def _kept(name: str, text: str, template: Template, start: int, end: int, printer: Printer) -> Iterator[Fragment]:
    if start >= end:
        return
    for low, high, hole in stretches(template.holes_in(start, end), start, end):
        place = Place(name, low, high)
        if hole is None:
            yield Fragment(text[low:high], place)
        elif not hole.silent:
            printed = printer(hole)
            fragments = printed.quoted if printed is not None else (Fragment(None, place, False, hole.reason),)
            yield from _as_default(fragments, place) if _is_default(text, hole) else fragments


def _is_default(text: str, hole: Hole) -> bool:
    """Whether what a template names as a default is given to a variable, alone, or decides how a test or a loop goes."""
    return "default" in hole.text and GIVEN.search(text, max(hole.start - 80, 0), hole.start) is not None


def _as_default(fragments: Sequence[Fragment], place: Place) -> Iterator[Fragment]:
    """`N={{ n | default(0) }}` is to the shell what `N=${n:-0}` is: a value that may be another one."""
    plain = all(f.text is not None and PLAIN.match(f.text) for f in fragments)
    if plain:
        yield Fragment(f"${{{NOBODY_SETS}:-", place, False, fixed=True)
    yield from fragments
    if plain:
        yield Fragment("}", place, False, fixed=True)


def _blank(name: str, at: int) -> Fragment:
    return Fragment(" ", Place(name, at, at), False, fixed=True)
