"""Texts for people inside a program: strings that are statements of their own, with code blocks in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from spec_lsp.expressions import expression
from spec_lsp.syntax.python.parsing import Positions
from spec_lsp.syntax.python.strings import characters, pieces
from spec_lsp.syntax.python.survey import every_statement
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.word import Fragment, Place, Word

CODE = expression(r"^[ \t]*(?:`{3,}|~{3,}|\.\.[ \t]+(?:code-block|code|sourcecode)::)", re.M)


def docstrings(name: str, text: str, positions: Positions, body: Sequence[ast.stmt]) -> Iterator[Word]:
    """The texts with code blocks that mention SGLang, each without the indentation of the code around it."""
    for statement in every_statement(body):
        value = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            continue
        if "sglang" in value.value and CODE.search(value.value):
            start, end = positions.span(value)
            parts = pieces(text, start, end) or []
            found = [f for p in parts for f in characters(name, text, p.start, p.end, p.raw)]
            yield _without_margin(Word(tuple(found), Place(name, start, end)))


def _without_margin(page: Word) -> Word:
    """The text without the indentation that all its lines but the first share."""
    source = embedded(page)
    lines = source.whole.splitlines(keepends=True)
    margin = min((len(line) - len(line.lstrip(" \t")) for line in lines[1:] if line.strip()), default=0)
    fragments: list[Fragment] = []
    at = 0
    for line in lines:
        skipped = min(margin, len(line) - len(line.lstrip(" \t"))) if at else 0
        fragments += source.fragments(at + skipped, at + len(line)) if skipped < len(line) else ()
        at += len(line)
    return page._replace(fragments=tuple(fragments))
