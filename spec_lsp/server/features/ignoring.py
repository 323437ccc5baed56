"""Where an ignore comment can stand so that it silences a finding and changes nothing else: tried, not guessed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spec_lsp.server.positions import length_without_end

if TYPE_CHECKING:
    from spec_lsp.analysis.report import Analysis, Diagnostic
    from spec_lsp.server.session import Session
    from spec_lsp.server.text import OpenText
    from spec_lsp.syntax.launch import Edit

NOT_IGNORED = frozenset({"unused-ignore", "unknown-directive"})
"""Findings about the comments themselves: they are corrected, not silenced."""


def ignore_here(session: Session, analysis: Analysis, diagnostic: Diagnostic, text: OpenText) -> tuple[Edit, ...]:
    """The first edit that silences the finding, or none: behind its line, above its line, above its command, at the top
    of the file."""
    scope = session.scope(text.name)
    for edit in _candidates(analysis, diagnostic, text):
        changed = text.text[: edit.place.start] + edit.text + text.text[edit.place.end :]
        after = session.engine.analyse(
            text.name, changed, text.language, scope.options, scope.workspace, session.engine.new_cache()
        )
        if _silenced(analysis, after, diagnostic):
            return (edit,)
    return ()


def _silenced(before: Analysis, after: Analysis, diagnostic: Diagnostic) -> bool:
    """Whether the finding is ignored now and everything else is as it was."""
    return (
        after.ignored > before.ignored and _said(after) < _said(before) and len(after.launches) == len(before.launches)
    )


def _said(analysis: Analysis) -> int:
    return len(analysis.diagnostics)


def _candidates(analysis: Analysis, diagnostic: Diagnostic, text: OpenText) -> Iterator[Edit]:
    from spec_lsp.syntax.launch import Edit  # not at the top: the client waits for its first answer meanwhile
    from spec_lsp.syntax.word import Place

    name, lines = text.name, text.index
    comment = f"# spec-lsp: ignore[{diagnostic.rule.name}]"
    spots = [p for p in (diagnostic.place, *(r.place for r in diagnostic.related)) if p.document == name]
    if diagnostic.launch is not None and diagnostic.launch < len(analysis.launches):
        spots.append(analysis.launches[diagnostic.launch].launch.extent)
    numbers = list(dict.fromkeys(lines.line_at(p.start) for p in spots))
    newline = next((line[length_without_end(line) :] for line in text.lines if line.endswith(("\n", "\r"))), "\n")
    for number in numbers[:1]:
        end = lines.start_of(number) + length_without_end(lines.text_of(number))
        yield Edit(Place(name, end, end), "  " + comment)
    for number in numbers:
        start = lines.start_of(number)
        line = lines.text_of(number)
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        yield Edit(Place(name, start, start), f"{indent}{comment}{newline}")
    top = lines.start_of(1) if len(lines) > 1 and lines.text_of(0).startswith("#!") else 0
    yield Edit(Place(name, top, top), f"{comment.replace('ignore[', 'ignore-file[')}{newline}")
