"""Shell scripts: from text to launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spec_lsp.syntax.directives import directives_in
from spec_lsp.syntax.launch import Directive, Document
from spec_lsp.syntax.shell.ast import Script
from spec_lsp.syntax.shell.builtins import BUILTINS
from spec_lsp.syntax.shell.clues import script_clues
from spec_lsp.syntax.shell.continuations import broken_continuations
from spec_lsp.syntax.shell.interpreter import Interpreter
from spec_lsp.syntax.shell.launches import tell
from spec_lsp.syntax.shell.memory import Memory
from spec_lsp.syntax.shell.statements import assigned_in, statements
from spec_lsp.syntax.shell.values import MAX_VARIANTS
from spec_lsp.syntax.source import FileSource, Source

__all__ = ["MAX_VARIANTS", "read_shell"]

MAX_SOURCED = 40
MAX_REMEMBERED = 64

_memories: dict[str, Memory] = {}


def _keep(name: str, memory: Memory) -> None:
    """Keeps what a run came to for the next run over the same document, for the documents seen last."""
    _memories.pop(name, None)
    _memories[name] = memory
    while len(_memories) > MAX_REMEMBERED:
        del _memories[next(iter(_memories))]


def read_shell(name: str, text: str, read: Callable[[str], str | None]) -> Document:
    """All launches of a script, with those of files it sources where these start one."""
    texts: dict[str, str] = {name: text}

    def load(path: str) -> list[tuple[Script, Source]] | None:
        if len(texts) > MAX_SOURCED:
            return None
        content = texts.get(path) if path != name else None
        if content is None:
            content = read(path)
        if content is None:
            return None
        texts[path] = content
        return [(s.statement.script, FileSource(path, s.start, s.text)) for s in statements(content)]

    located = list(statements(text))
    memory = _memories.get(name) or Memory()
    interpreter = Interpreter(name, texts, load, memory, lambda: assigned_in(located), BUILTINS)
    broken = any(s.broken for s in located)
    for statement in located:
        if broken:
            interpreter.state.alive = True
        elif not interpreter.state.alive:
            break
        interpreter.run(statement.statement.script, FileSource(name, statement.start, statement.text))
    _keep(name, interpreter.memory_left)
    clues = (*script_clues(name, text), *interpreter.clues)
    told = {key: tell(found, clues, memory.launches.get(key)) for key, found in interpreter.launches.items()}
    interpreter.memory_left.launches = told
    launches = tuple(one.launch for one in told.values())
    return Document(
        name,
        text,
        launches,
        broken_continuations(interpreter.commands, texts),
        _directives(name, text, located),
        frozenset(interpreter.sourced),
    )


def _directives(name: str, text: str, located: Sequence[object]) -> tuple[Directive, ...]:
    if "spec-lsp" not in text:
        return ()
    found: list[Directive] = []
    position = 0
    for statement in statements(text):
        found.extend(directives_in(name, text, position, statement.start))
        for start, end in statement.statement.comments:
            found.extend(directives_in(name, text, statement.start + start, statement.start + end))
        position = statement.start + len(statement.text)
    found.extend(directives_in(name, text, position, len(text)))
    return tuple(found)
