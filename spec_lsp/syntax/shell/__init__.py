"""Shell scripts: from text to launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spec_lsp.syntax.directives import directives_in
from spec_lsp.syntax.launch import Clue, Directive, Document, Launch, Variant
from spec_lsp.syntax.shell.ast import Script
from spec_lsp.syntax.shell.builtins import BUILTINS
from spec_lsp.syntax.shell.clues import script_clues
from spec_lsp.syntax.shell.continuations import broken_continuations
from spec_lsp.syntax.shell.interpreter import Found, Interpreter
from spec_lsp.syntax.shell.memory import Memory
from spec_lsp.syntax.shell.statements import assigned_in, statements
from spec_lsp.syntax.shell.values import MAX_VARIANTS
from spec_lsp.syntax.source import FileSource, Source
from spec_lsp.syntax.word import Word

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
    interpreter = Interpreter(
        name, texts, load, _memories.get(name) or Memory(), lambda: assigned_in(located), BUILTINS
    )
    broken = any(s.broken for s in located)
    for statement in located:
        if broken:
            interpreter.state.alive = True
        elif not interpreter.state.alive:
            break
        interpreter.run(statement.statement.script, FileSource(name, statement.start, statement.text))
    _keep(name, interpreter.memory_left)
    clues = (*script_clues(name, text), *interpreter.clues)
    launches = tuple(_launch(found, clues) for found in interpreter.launches.values())
    return Document(
        name,
        text,
        launches,
        broken_continuations(interpreter.commands, texts),
        _directives(name, text, located),
        frozenset(interpreter.sourced),
    )


def _launch(found: Found, clues: Sequence[Clue]) -> Launch:
    variants = _distinct(found.variants)
    return Launch(
        found.program, found.place, found.extent, variants, "shell", tuple(dict.fromkeys((*found.clues, *clues)))
    )


def _distinct(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """The variants without doubles, and without choices that all of them share."""
    if len(variants) == 1:
        only = variants[0]
        return (Variant(only.words, only.env, (), only.files),) if only.choices else (only,)
    kept: dict[object, Variant] = {}
    for variant in variants:
        key = _signature(variant)
        same = kept.get(key)
        if same is not None:
            common = tuple(c for c in same.choices if c in variant.choices)
            kept[key] = Variant(same.words, same.env, common, same.files)
        else:
            kept[key] = variant
    found = list(kept.values())
    shared = set(found[0].choices).intersection(*(v.choices for v in found)) if found else set()
    if not shared:
        return tuple(found)
    return tuple(Variant(v.words, v.env, tuple(c for c in v.choices if c not in shared), v.files) for v in found)


def _signature(variant: Variant) -> object:
    """What a variant runs with, however it came about."""
    words = tuple(_told(w) for w in variant.words)
    env = tuple((name, _told(word)) for name, word in variant.env.items())
    return words, env, tuple((f.name, _told(f.content)) for f in variant.files)


def _told(word: Word) -> object:
    return word.text if word.text is not None else (word.splat, tuple(f.text for f in word.fragments), word.reason)


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
