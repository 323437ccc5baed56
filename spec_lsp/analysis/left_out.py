"""Reports files that a document names but that are not read: they lie outside the workspace, are not regular files of bounded size, or have
unusable content."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

from spec_lsp.analysis.inputs import Workspace
from spec_lsp.analysis.report import Diagnostic
from spec_lsp.analysis.rules import FILE_LEFT_OUT
from spec_lsp.syntax.launch import Document, Launch, Variant
from spec_lsp.syntax.word import Place, Word

Kind = Literal["file", "model"]
Named = tuple[Kind, str]
"""A file or a model, by its path."""


def files_left_out(document: Document, named: Iterable[frozenset[Named]], workspace: Workspace) -> list[Diagnostic]:
    """Diagnostics about sourced files, other included files, `--config` files and models, each where it is named. `named` is what each
    launch names, in the order of the launches."""
    each = frozenset[Named]().union(*named)
    gone: dict[Named, str] = {n: why for n in each if (why := _left_out(n, document, workspace))}
    found: dict[tuple[str, Place], Diagnostic] = {}
    for path, place in _included(document):
        if why := _left_out(("file", path), document, workspace):
            found.setdefault((path, place), _diagnostic("file", path, why, place))
    for launch in document.launches if gone else ():
        for kind, path, place in _places(launch):
            if (kind, path) in gone:
                found.setdefault((path, place), _diagnostic(kind, path, gone[kind, path], place))
    return list(found.values())


def _left_out(named: Named, document: Document, workspace: Workspace) -> str:
    """Why the file at a path is not read, phrased to follow its name; empty if it is read, or there is no reason to give."""
    kind, path = named
    if kind == "file":
        return "" if workspace.read(document.name, path) is not None else workspace.left_out(document.name, path)
    return "" if workspace.model(document.name, path) is not None else workspace.unreadable_model(document.name, path)


def _diagnostic(kind: Kind, path: str, why: str, place: Place) -> Diagnostic:
    what, subject = (
        ("what it sets", f"`{path}`") if kind == "file" else ("what the model is", f"The config.json of `{path}`")
    )
    message = f"{subject} {why}, so spec-lsp does not read it: {what} is unknown."
    return Diagnostic(FILE_LEFT_OUT, FILE_LEFT_OUT.severity, message, place, f"{FILE_LEFT_OUT.name}:{path}")


def named_by(launch: Launch) -> frozenset[Named]:
    """The files and models that a launch names."""
    return frozenset((kind, path) for kind, path, _ in _places(launch))


def _places(launch: Launch) -> Iterator[tuple[Kind, str, Place]]:
    for variant in launch.variants:
        pairs = _naming(variant)
        if pairs and launch.program != "config":
            yield from (("file", path, place) for path, place in _configurations(launch, pairs))
        yield from (("model", path, place) for path, place in _models(pairs))


def _included(document: Document) -> Iterator[tuple[str, Place]]:
    for path in sorted(document.depends_on):
        start, end = _named_at(document.text, path)
        yield path, Place(document.name, start, end)


def _named_at(text: str, path: str) -> tuple[int, int]:
    """The characters that name a file: after `source` or `.` if it is named there, else its first occurrence."""
    named = re.escape(path)
    found = re.search(rf"(?:\bsource|(?<![^\s;&|])\.)[ \t]+[\"']?(?:\./)*({named})", text)
    found = found or re.search(rf"(?<![\w/.-])(?:\./)*({named})", text)
    return found.span(1) if found else (0, 0)


Flags = Sequence[tuple[Word, Word]]
"""The words that may be flags that name a file, each with the following word."""


def _naming(variant: Variant) -> Flags:
    """Must be cheap, as it sees every word; words of several parts may be such flags, too."""
    return [
        (word, behind)
        for word, behind in pairwise(variant.words)
        if len(word[0]) != 1 or "model" in (text := word[0][0][0] or "") or text == "--config"
    ]


def _configurations(launch: Launch, flags: Flags) -> Iterator[tuple[str, Place]]:
    for flag, path in flags:
        if flag.text == "--config" and path.text and not _is_written(launch, path.text):
            yield path.text, path.place_of(0, len(path.text)) or path.place


def _is_written(launch: Launch, path: str) -> bool:
    return any(file.name == path for variant in launch.variants for file in variant.files)


OF_NO_FILE = ("--served-model-name",)
"""Flags with "model" in their name whose value is not a model."""


def _models(flags: Flags) -> Iterator[tuple[str, Place]]:
    """The values of `--model-path` and similar flags."""
    for flag, value in flags:
        spelling, equals, joined = (flag.text or "").partition("=")
        if not spelling.startswith("--") or "model" not in spelling or spelling in OF_NO_FILE:
            continue
        word, path = (flag, joined) if equals else (value, value.text or "")
        if path and not path.startswith("-"):
            start = len(word.text or "") - len(path)
            yield path, word.place_of(start, start + len(path)) or word.place
