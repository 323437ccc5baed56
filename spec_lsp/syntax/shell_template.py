"""Shell scripts that Helm, Go or Jinja print (`serve.sh.j2`, `_helpers.tpl`): what a template prints is unknown, the rest is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.launch import Choice, Document, Problem
from spec_lsp.syntax.shell.embedding import Around, read_script
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.templates import FROM_TEMPLATE, Template, read_template, stretches
from spec_lsp.syntax.yaml.templates import Way as Rendering
from spec_lsp.syntax.yaml.worlds import Way, together

MATTERS = re.compile(r"sglang|--[a-z]|=")
"""What arms of a template must hold to be told apart."""


def read_shell_template(name: str, text: str, read: Callable[[str], str | None]) -> Document:
    """All launches of a template of a script, in each of the ways that it can be rendered."""
    template = read_template(text)
    ways: list[Way] = []
    problems: list[Problem] = []
    depends_on: frozenset[str] = frozenset()
    for way in template.ways(0, len(text), MATTERS):
        found = read_script(name, _rendered(name, text, template, way), Around(read=read))
        choices = tuple(Choice(Place(name, at, at), what) for at, what in way.taken)
        problems += found.problems if not ways else ()
        depends_on |= found.depends_on
        ways.append((choices, found.launches))
    return Document(name, text, tuple(together(ways)), tuple(problems), directives_of(name, text), depends_on)


def _rendered(name: str, text: str, template: Template, way: Rendering) -> Word:
    """The script in one way: lines that only steer are gone, so that a command goes on behind them."""
    fragments: list[Fragment] = []
    position = 0
    for start, end, printed in _gone(template, way):
        fragments += _kept(name, text, template, position, start)
        if printed:
            fragments += (Fragment(None, Place(name, start, end), False, FROM_TEMPLATE), _blank(name, end))
        position = max(position, end)
    fragments += _kept(name, text, template, position, len(text))
    return Word(tuple(fragments), Place(name, 0, len(text)))


def _gone(template: Template, way: Rendering) -> Iterator[tuple[int, int, bool]]:
    """Stretches that are not in the script, and whether something that nobody knows is in their place."""
    printed = set(template.printed)
    position = 0
    for start, end in sorted([*template.hidden, *way.left_out]):
        if end > position:
            yield max(start, position), end, start >= position and (start, end) in printed
            position = end


def _kept(name: str, text: str, template: Template, start: int, end: int) -> Iterator[Fragment]:
    if start >= end:
        return
    for low, high, hole in stretches(template.holes_in(start, end), start, end):
        place = Place(name, low, high)
        if hole is None:
            yield Fragment(text[low:high], place)
        elif hole.silent:
            yield _blank(name, low)
        else:
            yield Fragment(None, place, False, hole.reason)


def _blank(name: str, at: int) -> Fragment:
    return Fragment(" ", Place(name, at, at), False, fixed=True)
