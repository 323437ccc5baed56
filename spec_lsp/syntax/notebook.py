"""Jupyter notebooks: the code cells as one Python program, with the commands of `!` lines and `%%bash` cells."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spec_lsp.expressions import expression
from spec_lsp.records import replace
from spec_lsp.syntax.carriers import Read
from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.launch import Clue, Document
from spec_lsp.syntax.python import read_python
from spec_lsp.syntax.remap import remap
from spec_lsp.syntax.shell.embedding import Around, Collected, CommandResult, read_script
from spec_lsp.syntax.source import FileSource, embedded
from spec_lsp.syntax.strings import JSON_STRING, json_string
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.written import Nested

TOKEN = expression(rf"(?P<string>{JSON_STRING.pattern})|(?P<mark>[\[\]{{}}:,])|[^\s\"\[\]{{}}:,]+|\s+|\"", re.S)
SHELL_CELL = expression(r"%%(?:bash|sh|shell|script[ \t]+(?:bash|sh))\b[^\n]*\n?")
MAGIC = expression(
    r"^(?P<blank>[ \t]*)(?P<mark>!!?|%sx[ \t]|%system[ \t]|%pip[ \t]|%)(?P<command>(?:[^\n\\]|\\\n|\\.)*)", re.M
)
VALUE = expression(r"(?<!\{)\{(?![ \t]*\})[^{}\n]*\}(?!\})")
FROM_PYTHON = "from the notebook's Python"


def read_cell(name: str, text: str, read: Read) -> Document:
    """The launches of one code cell, which an editor has open as a text of its own."""
    whole = Place(name, 0, len(text))
    cell = Word((Fragment(text, whole),), whole)
    found, program = _of_cell(name, cell, read)
    if program is not None:
        source = embedded(program)
        found.append(remap(read_python(name, source.whole, read), source))
    launches = [launch for part in found for launch in part.launches]
    problems = [problem for part in found for problem in part.problems]
    asked = frozenset(path for part in found for path in part.depends_on)
    launches.sort(key=lambda one: one.extent.start)
    return Document(name, text, tuple(launches), tuple(problems), directives_of(name, text), asked)


def _of_cell(name: str, cell: Word, read: Read) -> tuple[list[CommandResult | Document], Word | None]:
    """What the commands of a code cell come to, and its Python; None if it is another language's."""
    whole = cell.text or ""
    shell = SHELL_CELL.match(whole)
    if shell:
        script = Word(embedded(cell).fragments(shell.end(), len(whole)), cell.place)
        return [read_script(name, script, Around(read=read))], None
    if whole.startswith("%%"):
        return [], None
    return [read_script(name, command, Around(read=read)) for command in commands(cell)], without_magic(cell)


def read_notebook(name: str, text: str, read: Read, nested: Nested) -> Document:
    """All launches of a notebook's cells: those of its program, and of the Markdown between."""
    all_ = Collected()
    clues: list[Clue] = []
    program: list[Fragment] = []

    def note(found: CommandResult | Document) -> None:
        all_.add(found)
        clues.extend(found.clues if isinstance(found, CommandResult) else ())

    for kind, cell in cells(name, text):
        if kind == "markdown":
            source = embedded(cell)
            note(remap(nested(name, source.whole, language="markdown"), source))
            continue
        found, python = _of_cell(name, cell, read)
        for part in found:
            note(part)
        if python is not None:
            end = Place(name, cell.place.end, cell.place.end)
            program += (*python.fragments, Fragment("\n", end, False, fixed=True))
    if program:
        source = embedded(Word(tuple(program), Place(name, 0, len(text))))
        note(remap(read_python(name, source.whole, read), source))
    all_.launches = [replace(one, clues=tuple(dict.fromkeys((*one.clues, *clues)))) for one in all_.launches]
    all_.launches.sort(key=lambda one: one.extent.start)
    return all_.document(name, text, ())


def code_cells(name: str, text: str) -> Iterator[tuple[Word, Word]]:
    """The cells with Python in order: each as written, and as a program."""
    for kind, cell in cells(name, text):
        if kind == "code" and not (cell.text or "").startswith("%%"):
            yield cell, without_magic(cell)


def cell_program(text: str) -> str:
    """The Python of a cell that is a text of its own; empty if it is another language's."""
    cell = Word((Fragment(text, Place("", 0, len(text))),), Place("", 0, len(text)))
    return "" if text.startswith("%%") else embedded(without_magic(cell)).whole


def commands(source: Word) -> Iterator[Word]:
    """The commands of `!` lines that mention SGLang; what Python fills in is unknown."""
    text = source.text or ""
    inner = embedded(source)
    for m in MAGIC.finditer(text):
        if m.group("mark").startswith(("!", "%s")) and "sglang" in m.group("command"):
            fragments: list[Fragment] = []
            at = m.start("command")
            for gap in VALUE.finditer(text, at, m.end("command")):
                fragments.extend(inner.fragments(at, gap.start()))
                fragments.append(Fragment(None, inner.place(*gap.span()), False, FROM_PYTHON))
                at = gap.end()
            fragments.extend(inner.fragments(at, m.end("command")))
            yield Word(tuple(fragments), inner.place(m.start("command"), m.end("command")))


def without_magic(source: Word) -> Word:
    """The cell as Python: IPython's own lines become statements without effect."""
    return Word(tuple(_without_magic(source)), source.place)


def _without_magic(source: Word) -> Iterator[Fragment]:
    text = source.text or ""
    inner = embedded(source)
    at = 0
    for m in MAGIC.finditer(text):
        start = m.end("blank")
        yield from inner.fragments(at, start)
        yield Fragment("pass", inner.place(start, m.end()), False, fixed=True)
        at = m.end()
    yield from inner.fragments(at, len(text))


def cells(name: str, text: str) -> Iterator[tuple[str, Word]]:
    """The code and Markdown cells in order, each with its kind and the text of its `source` (one string, or one for each line)."""
    source = FileSource(name, 0, text)
    path: list[str] = []
    key = ""
    kind = ""
    held: list[Fragment] | None = None
    start = 0
    for m in TOKEN.finditer(text):
        mark = m.group("mark")
        if m.group("string"):
            behind = re.compile(r"\s*:").match(text, m.end())
            if behind:
                key = m.group("string")[1:-1]
                continue
            if path[-2:] == ["cells", ""] and key == "cell_type":
                kind = m.group("string")[1:-1]
            elif (path[-2:] == ["cells", ""] and key == "source") or path[-3:] == ["cells", "", "source"]:
                held = held if held is not None else []
                start = start or m.start()
                word = json_string(source, *m.span())
                held.extend(word.fragments if word is not None else ())
        elif mark == "{":
            if path[-1:] == ["cells"]:
                kind, held, start = "", None, 0
            path.append("" if path[-1:] == ["cells"] else key or "{")
        elif mark == "[":
            path.append(key or "[")
        elif mark in ("}", "]") and path:
            path.pop()
            if mark == "}" and path[-1:] == ["cells"] and kind in ("code", "markdown") and held:
                yield kind, Word(tuple(held), Place(name, start, m.start()))
