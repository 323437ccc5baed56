"""Finds where an ignore comment silences a finding and changes nothing else, by trying each place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spec_lsp.analysis.report import Analysis, Diagnostic
    from spec_lsp.server.session import Session
    from spec_lsp.server.text import OpenText
    from spec_lsp.syntax.launch import Edit

NOT_IGNORED = frozenset({"unused-ignore", "unknown-directive"})
"""Findings about the comments themselves: they are corrected, not silenced."""


def ignore_here(session: Session, analysis: Analysis, diagnostic: Diagnostic, text: OpenText) -> tuple[Edit, ...]:
    """The first edit that silences the finding, or none: above its command, behind its line, above its line, at the top of the file."""
    return _first(session, analysis, diagnostic, text, (*_here(analysis, diagnostic, text), _in_file(diagnostic, text)))


def ignore_in_file(session: Session, analysis: Analysis, diagnostic: Diagnostic, text: OpenText) -> tuple[Edit, ...]:
    """The edit that silences the rule in the whole file, or none."""
    return _first(session, analysis, diagnostic, text, (_in_file(diagnostic, text),))


def _first(
    session: Session, analysis: Analysis, diagnostic: Diagnostic, text: OpenText, edits: Iterable[Edit]
) -> tuple[Edit, ...]:
    """The first of the edits that silences the finding."""
    scope = session.scope(text.name)
    for edit in edits:
        changed = text.text[: edit.place.start] + edit.text + text.text[edit.place.end :]
        after = session.engine.analyse(
            text.name, changed, text.language, scope.options, scope.workspace, session.engine.new_cache()
        )
        if _silenced(analysis, after, diagnostic):
            return (edit,)
    return ()


def _silenced(before: Analysis, after: Analysis, diagnostic: Diagnostic) -> bool:
    """Whether the finding is ignored now and everything else is unchanged."""
    return (
        after.ignored > before.ignored and _said(after) < _said(before) and len(after.launches) == len(before.launches)
    )


def _said(analysis: Analysis) -> int:
    return len(analysis.diagnostics)


def _here(analysis: Analysis, diagnostic: Diagnostic, text: OpenText) -> Iterator[Edit]:
    from spec_lsp.syntax.launch import (
        Edit,
    )  # not at the top of the file: the import would delay the client's first answer
    from spec_lsp.syntax.word import Place

    name, lines = text.name, text.lines
    comment = f"# spec-lsp: ignore[{diagnostic.rule.name}]"
    spots = [p for p in (diagnostic.place, *(r.place for r in diagnostic.related)) if p.document == name]
    numbers = list(dict.fromkeys(lines.line_at(p.start) for p in spots))
    newline = _newline(text.text)

    def above(number: int) -> Edit:
        start, end = lines.span(number)
        line = text.text[start:end]
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        return Edit(Place(name, start, start), f"{indent}{comment}{newline}")

    if diagnostic.launch is not None and diagnostic.launch < len(analysis.launches):
        command = analysis.launches[diagnostic.launch].launch.extent
        if command.document == name:
            yield above(lines.line_at(command.start))
    for number in numbers[:1]:
        _, end = lines.span(number)
        yield Edit(Place(name, end, end), "  " + comment)
    yield from map(above, numbers)


def _in_file(diagnostic: Diagnostic, text: OpenText) -> Edit:
    from spec_lsp.syntax.launch import Edit
    from spec_lsp.syntax.word import Place

    top = text.lines.span(1)[0] if len(text.lines) > 1 and text.text.startswith("#!") else 0
    comment = f"# spec-lsp: ignore-file[{diagnostic.rule.name}]{_newline(text.text)}"
    return Edit(Place(text.name, top, top), comment)


def _newline(text: str) -> str:
    """The line ending that the text uses first."""
    found = re.search(r"\r\n|\n|\r", text)
    return found[0] if found else "\n"
