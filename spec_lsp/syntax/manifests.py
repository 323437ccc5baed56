"""Manifests that a script writes in here-documents: `kubectl apply -f - <<EOF`, `cat > compose.yaml <<EOF`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from spec_lsp.syntax.launch import Document
from spec_lsp.syntax.remap import remap
from spec_lsp.syntax.source import Source, embedded
from spec_lsp.syntax.word import Fragment, Place, Word

HERE_DOCUMENT = re.compile(r"<<(?P<dash>-?)[ \t]*(?P<quote>[\"']?)(?P<word>[A-Za-z_]\w*)(?P=quote)[^\n]*\n")
MANIFEST = re.compile(r"^(?:apiVersion|services)[ \t]*:", re.M)
EXPANSION = re.compile(r"\$\{[^{}\n]*\}|\$\([^()\n]*\)|\$[A-Za-z_]\w*")
EXPANDED = "the shell fills it in"


class Nested(Protocol):
    """Reads a text that a document holds as a document of its own, in a language."""

    def __call__(self, name: str, text: str, *, language: str) -> Document: ...


def with_manifests(document: Document, source: Source, nested: Nested) -> Document:
    """The document with what the manifests in its script start; `source` is the script's text."""
    if "<<" not in source.text or not MANIFEST.search(source.text):
        return document
    launches = list(document.launches)
    for body in _bodies(document.name, source):
        inner = embedded(body)
        found = remap(nested(document.name, inner.whole, language="yaml"), inner)
        launches += found.launches
    launches.sort(key=lambda one: one.extent.start)
    return replace(document, launches=tuple(launches))


def _bodies(name: str, source: Source) -> Iterator[Word]:
    """The here-documents that hold manifests; what the shell fills in is unknown."""
    text = source.text
    at = 0
    while (m := HERE_DOCUMENT.search(text, at)) is not None:
        tabs = r"\t*" if m.group("dash") else ""
        end = re.compile(rf"^{tabs}{m.group('word')}\r?$", re.M).search(text, m.end())
        stop = end.start() if end else len(text)
        at = end.end() if end else len(text)
        if "sglang" in text[m.end() : stop] and MANIFEST.search(text, m.end(), stop):
            yield _body(name, source, m.end(), stop, expands=not m.group("quote"))


def _body(name: str, source: Source, start: int, stop: int, *, expands: bool) -> Word:
    fragments: list[Fragment] = []
    at = start
    for gap in EXPANSION.finditer(source.text, start, stop) if expands else ():
        fragments.extend(source.fragments(at, gap.start()))
        fragments.append(Fragment(None, source.place(*gap.span()), False, EXPANDED))
        at = gap.end()
    fragments.extend(source.fragments(at, stop))
    return Word(tuple(fragments), Place(name, source.place(start, stop).start, source.place(start, stop).end))
