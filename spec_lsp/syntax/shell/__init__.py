"""Shell scripts: from text to launches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set

from spec_lsp.expressions import expression
from spec_lsp.syntax.directives import MARK, directives_in
from spec_lsp.syntax.edited import holds
from spec_lsp.syntax.launch import Directive, Document, Problem
from spec_lsp.syntax.mapped import Mapped
from spec_lsp.syntax.shell.builtins import BUILTINS
from spec_lsp.syntax.shell.clues import script_clues
from spec_lsp.syntax.shell.continuations import broken_continuations, reach
from spec_lsp.syntax.shell.interpreter import Interpreter
from spec_lsp.syntax.shell.launches import tell_all
from spec_lsp.syntax.shell.memory import Memory
from spec_lsp.syntax.shell.rereading import Reading, run_again
from spec_lsp.syntax.shell.sourced import SourcedFiles
from spec_lsp.syntax.shell.statements import Restated, assigned_in, restate, stated
from spec_lsp.syntax.shell.streams import written_files
from spec_lsp.syntax.shell.values import MAX_VARIANTS
from spec_lsp.syntax.standing import Launches, Standing, WhenAsked, anchored_clues
from spec_lsp.syntax.word import Place

__all__ = ["MAX_VARIANTS", "read_shell"]

ZSH = expression(r"#!\s*\S*?(?:/env\s+(?:-S\s*)?)?(?:\S*/)?zsh\b")
EXPANDS_ALIASES = expression(r"#!\s*(?:\S*/)?(?:env\s+(?:-S\s*)?(?:\S*/)?)?(?:(?:sh|dash|ksh)\b|bash\s+-\w*i)")
"""Shells that expand aliases in scripts. Bash does so only where it is interactive or told to."""
MAX_REMEMBERED = 64

_readings: dict[str, Reading] = {}


def _keep(name: str, reading: Reading) -> None:
    """Keep a reading for the next one of the same document, for the most recently read documents."""
    _readings.pop(name, None)
    _readings[name] = reading
    while len(_readings) > MAX_REMEMBERED:
        del _readings[next(iter(_readings))]


def read_shell(name: str, text: str, read: Callable[[str], str | None]) -> Document:
    """All launches of a script, with those of files that it sources and that start one."""
    files = SourcedFiles(read)
    last = _readings.get(name)
    found = restate(text, last.text, last.stated) if last is not None else None
    if found is None:
        last, found = None, stated(text)
    parts = found.parts
    standing = Standing(name, found.bases, found.texts, found.starts, len(text))
    run = Interpreter(name, files.load, Memory(), lambda: assigned_in(parts), BUILTINS)
    run.zsh = ZSH.match(text) is not None or name.endswith((".zsh", ".zshrc"))
    run.expands_aliases = run.zsh or EXPANDS_ALIASES.match(text) is not None
    run.too_deep = "sglang" in text and any(parts[i].deep for i in found.broken)
    reading = Reading(text, found, run, files, bool(found.broken))
    run_again(reading, last, name)
    clues = (*anchored_clues(script_clues(name, text), standing), *run.clues)
    memory = last.run.memory_left if last is not None else Memory()
    clues = memory.around if clues == memory.around else clues
    told = tell_all(run.all_notes, clues, last.run.all_notes if last is not None else (), memory.launches)
    run.memory_left.launches, run.memory_left.around = told, clues
    broken = _broken(reading, memory.unbroken, {**files.texts, name: text}, standing)
    directives = reading.directives = _directives(name, text, found, last)
    _keep(name, reading)
    in_text = Mapped(standing.place)
    return Document(
        name,
        text,
        Launches([one.launch for one in told.values()], standing, directives),
        (*broken, *run.problems()),
        directives,
        frozenset(run.sourced),
        files=WhenAsked(lambda: map(in_text.file, written_files(reading.written, run))),
    )


def _broken(reading: Reading, unbroken: Set[int], texts: Mapping[str, str], standing: Standing) -> list[Problem]:
    """The broken continuations; commands that were found unbroken are checked again if lines below them changed."""
    found: dict[Place, Problem] = {}
    memory, text, stated, name = reading.run.memory_left, reading.text, reading.stated, standing.document
    low = standing.anchored(reach(text, stated.starts[stated.first - 1] if stated.first else 0))
    high = stated.parts[stated.behind].start if stated.behind < len(stated.parts) else math.inf
    memory.unbroken = set(map(id, memory.launches.values()))
    for one in memory.launches.values():
        document, start, end = one.statement
        if id(one) in unbroken and not (low <= end and start <= high and document == name):
            continue
        problems = broken_continuations([one.command], texts, standing) if one.command is not None else ()
        if problems:
            found.update((p.place, p) for p in problems if p.place not in found)
            memory.unbroken.discard(id(one))
    return list(found.values())


def _directives(name: str, text: str, found: Restated, last: Reading | None) -> tuple[Directive, ...]:
    """The directives in comments, which are between statements or inside them: those of the last reading but for what was read anew."""
    if not holds(name, text, "spec-lsp"):
        return ()
    starts, parts = found.starts, found.parts
    above = position = starts[found.first - 1] + len(parts[found.first - 1].text) if found.first else 0
    below = starts[found.behind] if found.behind < len(parts) else len(text)
    moved = len(text) - len(last.text) if last is not None else 0
    before = last.directives if last is not None else ()
    directives = [d for d in before if d.place.end <= above]
    if not position and text.startswith(f"{MARK}#"):  # which a shell does not take as a comment
        directives.extend(directives_in(name, text, 1, text.find("\n") + 1 or len(text)))
    for index in range(found.first, found.behind):
        part, begin = parts[index], starts[index]
        if position < begin:
            directives.extend(directives_in(name, text, position, begin))
        for start, end in part.statement.comments:
            directives.extend(directives_in(name, text, begin + start, begin + end))
        position = begin + len(part.text)
    directives.extend(directives_in(name, text, position, below))
    for kept in before:
        if kept.place.start >= below - moved:
            directives.extend(directives_in(name, text, kept.place.start + moved, kept.place.end + moved))
    return tuple(directives)
