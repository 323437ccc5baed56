"""The releases that a launch's recipe installs, or those that it needs or calls: `uvx --with sglang==0.5.9`, `pip install
sglang==0.5.9`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from spec_lsp.expressions import expression
from spec_lsp.records import NamedTuple, replace
from spec_lsp.syntax.launch import Clue, Launch
from spec_lsp.syntax.shell.commands import PIN
from spec_lsp.syntax.word import Place

INSTALLED = expression(rf"(?<![\w/.-]){PIN.pattern}")
NAME = expression(r"[A-Za-z_][\w.-]*")
SCRIPT = expression(r"^# /// script[ \t]*\r?\n(?P<metadata>(?:#(?: [^\n]*)?\r?\n)*?)# ///[ \t]*\r?$", re.M)
"""The metadata of a script in its comments (PEP 723), of which a file has one block at most."""
TOML_COMMENT = expression(r"[ \t]*#")
MAX_DEPTH = 8


def pins_of_script(document: str, text: str) -> Iterator[Clue]:
    """The releases that the dependencies of a Python script name: `# dependencies = ["sglang==0.5.9"]`."""
    block = SCRIPT.search(text)
    for m in INSTALLED.finditer(text, *block.span("metadata")) if block else ():
        line = text.rfind("\n", 0, m.start()) + 1
        if not TOML_COMMENT.match(text, line + 1):
            yield Clue("pin", m.group(), Place(document, *m.span()))


class Called(NamedTuple):
    """A recipe: its first line, the place of its dependencies after the colon, and its body [start, end)."""

    head: tuple[int, int]
    start: int
    end: int


class Pins:
    """The pins of a file of recipes. `calls` finds where a recipe calls another, whose name is its group `name`."""

    def __init__(self, document: str, text: str, recipes: Mapping[str, Called], calls: re.Pattern[str]) -> None:
        self.document = document
        self.text = text
        self.recipes = recipes
        self.calls = calls

    def told(self, recipe: str, launches: Sequence[Launch]) -> Iterator[Launch]:
        """The launches of a recipe with the pins of the recipes that it needs or calls; a launch that names a release itself is
        unchanged."""
        pins = tuple(dict.fromkeys(self.reached(recipe, set()))) if launches else ()
        for launch in launches:
            own = any(clue.kind == "pin" for clue in launch.clues)
            yield launch if own or not pins else replace(launch, clues=(*launch.clues, *pins))

    def reached(self, recipe: str, seen: set[str]) -> Iterator[Clue]:
        """The pins of a recipe and of those that it needs or calls."""
        found = self.recipes.get(recipe)
        if found is None or recipe in seen or len(seen) > MAX_DEPTH:
            return
        seen.add(recipe)
        for m in INSTALLED.finditer(self.text, found.start, found.end):
            yield Clue("pin", m.group(), Place(self.document, *m.span()))
        head = self.text[slice(*found.head)]
        named = NAME.findall(head.partition(":")[2])
        named += [m["name"] for m in self.calls.finditer(self.text, found.start, found.end)]
        for name in named:
            yield from self.reached(name, seen)
