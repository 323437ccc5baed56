"""Shell scripts: from text to launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spec_lsp.expressions import expression
from spec_lsp.syntax.directives import MARK, directives_in
from spec_lsp.syntax.launch import Directive, Document
from spec_lsp.syntax.shell.builtins import BUILTINS
from spec_lsp.syntax.shell.clues import script_clues
from spec_lsp.syntax.shell.continuations import broken_continuations
from spec_lsp.syntax.shell.interpreter import Interpreter
from spec_lsp.syntax.shell.launches import tell
from spec_lsp.syntax.shell.memory import Memory
from spec_lsp.syntax.shell.rereading import Reading, run_again
from spec_lsp.syntax.shell.sourced import SourcedFiles
from spec_lsp.syntax.shell.statements import Located, Restated, assigned_in, restate, statements
from spec_lsp.syntax.shell.streams import written_files
from spec_lsp.syntax.shell.values import MAX_VARIANTS

__all__ = ["MAX_VARIANTS", "read_shell"]

ZSH = expression(r"#!\s*\S*?(?:/env\s+(?:-S\s*)?)?(?:\S*/)?zsh\b")
MAX_REMEMBERED = 64

_readings: dict[str, Reading] = {}


def _keep(name: str, reading: Reading) -> None:
    """Keeps a reading for the next one of the same document, for the documents seen last."""
    _readings.pop(name, None)
    _readings[name] = reading
    while len(_readings) > MAX_REMEMBERED:
        del _readings[next(iter(_readings))]


def read_shell(name: str, text: str, read: Callable[[str], str | None]) -> Document:
    """All launches of a script, with those of files it sources where these start one."""
    files = SourcedFiles(read)
    last = _readings.get(name)
    restated = Restated(list(statements(text))) if last is None else restate(text, last.text, last.located)
    located = restated.located
    run = Interpreter(name, files.load, Memory(), lambda: assigned_in(located), BUILTINS)
    run.zsh = ZSH.match(text) is not None or name.endswith((".zsh", ".zshrc"))
    run.too_deep = "sglang" in text and any(s.deep for s in located)
    reading = Reading(text, located, run, files, any(s.broken for s in located))
    run_again(reading, last, restated, name)
    clues = (*script_clues(name, text), *run.clues)
    memory = last.run.memory_left if last is not None else Memory()
    told = {key: tell(found, clues, memory.launches.get(key)) for key, found in run.launches.items()}
    run.memory_left.launches = told
    _keep(name, reading)
    return Document(
        name,
        text,
        tuple(one.launch for one in told.values()),
        (*broken_continuations(run.starting, {**files.texts, name: text}), *run.problems()),
        _directives(name, text, located),
        frozenset(run.sourced),
        files=tuple(written_files(reading.written, run)),
    )


def _directives(name: str, text: str, located: Sequence[Located]) -> tuple[Directive, ...]:
    """The directives in comments, which stand between statements or inside them."""
    if "spec-lsp" not in text:
        return ()
    found: list[Directive] = []
    position = 0
    if text.startswith(f"{MARK}#"):  # which to a shell is no comment
        found.extend(directives_in(name, text, 1, text.find("\n") + 1 or len(text)))
    for statement in located:
        if position < statement.start:
            found.extend(directives_in(name, text, position, statement.start))
        for start, end in statement.statement.comments:
            found.extend(directives_in(name, text, statement.start + start, statement.start + end))
        position = statement.start + len(statement.text)
    found.extend(directives_in(name, text, position, len(text)))
    return tuple(found)
