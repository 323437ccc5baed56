"""The nesting of a document for editors: words in flags with their values, these in launches and in commands; and what can be folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from spec_lsp.records import fields, is_dataclass
from spec_lsp.syntax.launch import Launch
from spec_lsp.syntax.lines import LineIndex
from spec_lsp.syntax.shell import ast
from spec_lsp.syntax.shell.statements import statements
from spec_lsp.syntax.word import Word, hull

Span = tuple[int, int]


def enclosing(name: str, text: str, launches: Iterable[Launch], offset: int, *, shell: bool) -> list[Span]:
    """The ranges around a character of a document, each [start, end) within the next; the smallest first.

    `shell`: the text is a shell script, whose other commands and words are known as well.
    """
    spans = {span for launch in launches for span in _of_launch(name, launch)}
    if shell:
        for one in statements(text):
            if one.start + len(one.text) >= offset:
                if one.start <= offset:
                    spans.update((one.start + a, one.start + b) for a, b in _spans(one.statement.script))
                break
    found: list[Span] = []
    for start, end in sorted({s for s in spans if s[0] <= offset <= s[1] and s[0] < s[1]}, key=lambda s: s[1] - s[0]):
        if not found or (start <= found[-1][0] and found[-1][1] <= end):
            found.append((start, end))
    return found


def _of_launch(name: str, launch: Launch) -> Iterator[Span]:
    """A launch's words, flags with their values, entry point and whole extent."""
    for variant in launch.variants:
        for group in (*_options(variant.words), *((word,) for word in variant.words)):
            places = [word.place for word in group]
            if all(p.document == name for p in places):
                whole = hull(places)
                if launch.extent.contains(whole) or all(not launch.extent.contains(p) for p in places):
                    yield whole.start, whole.end
        for word in variant.words:
            yield from ((f.place.start, f.place.end) for f in word.fragments if f.place.document == name)
    for place in (launch.place, launch.extent):
        if place.document == name:
            yield place.start, place.end


def _options(words: tuple[Word, ...]) -> Iterator[tuple[Word, ...]]:
    """Each flag with the words up to the next."""
    first = [i for i, word in enumerate(words) if word.known_start.startswith("--") or word.splat]
    for start, end in pairwise([*first, len(words)]):
        if not words[start].splat:
            yield words[start:end]


def _spans(node: Any) -> Iterator[Span]:
    """The places of a node and of those in it."""
    if isinstance(node, tuple):
        for one in node:
            yield from _spans(one)
    elif is_dataclass(node):
        if (start := getattr(node, "start", None)) is not None and not isinstance(node, ast.Script):
            yield start, getattr(node, "end", start)
        for one in fields(node):
            yield from _spans(getattr(node, one.name))


CLOSING = frozenset({"fi", "done", "esac", "}", ")"})


def folds(text: str) -> list[Span]:
    """The first and last line of each foldable part of a shell script, by first line; a closing word stays visible."""
    lines = LineIndex(text)
    found: dict[int, int] = {}
    for one in statements(text):
        for start, end in _folds(one.statement.script) if "\n" in one.text[:-1] else ():
            (first, _), (last, column) = (lines.position(one.start + at) for at in (start, end))
            if text[one.start + end - column : one.start + end].strip() in {"", *CLOSING}:
                last -= 1
            if last > first:
                found[first] = max(last, found.get(first, last))
    return sorted(found.items())


def _folds(node: Any) -> Iterator[Span]:
    """Commands, arrays, here-documents, and the arms of a branch, each up to the next."""
    if isinstance(node, tuple):
        for one in node:
            yield from _folds(one)
        return
    if not is_dataclass(node):
        return
    if isinstance(node, ast.If):
        ends = [body.end for _, body in node.arms] + [node.end]
        yield from zip([node.start, *ends], ends, strict=False)
    elif isinstance(node, ast.CaseArm):
        yield node.patterns[0].start, node.body.end
    elif isinstance(node, ast.Redirect):
        if node.body is not None and node.op != "<<<":
            yield node.target.start, node.body.end
    elif isinstance(node, (ast.Simple, ast.Assign, ast.Function, ast.Group, ast.For, ast.While, ast.Case)):
        yield node.start, node.end
    for one in fields(node):
        yield from _folds(getattr(node, one.name))
