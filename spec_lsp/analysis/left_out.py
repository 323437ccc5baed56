"""Files that a document names and that are not read: they lie outside the workspace, are no files of bounded size, or hold nothing that
can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from spec_lsp.analysis.inputs import Workspace
from spec_lsp.analysis.report import Diagnostic, LaunchReport
from spec_lsp.analysis.rules import FILE_LEFT_OUT
from spec_lsp.syntax.launch import Document, Launch, Variant
from spec_lsp.syntax.word import Place, Word


def files_left_out(document: Document, launches: Sequence[LaunchReport], workspace: Workspace) -> list[Diagnostic]:
    """What is said of sourced files, of other files that the document includes, and of `--config` files, where each is named."""
    found: dict[tuple[str, Place], Diagnostic] = {}
    flags = [(r.launch, pairs) for r in launches for v in r.launch.variants if (pairs := _naming(v))]
    for path, place in (*_included(document), *_configurations(flags)):
        if workspace.read(document.name, path) is None and (why := workspace.left_out(document.name, path)):
            message = f"`{path}` {why}, so spec-lsp does not read it: what it sets is unknown."
            key = f"{FILE_LEFT_OUT.name}:{path}"
            found.setdefault((path, place), Diagnostic(FILE_LEFT_OUT, FILE_LEFT_OUT.severity, message, place, key))
    for path, place in _models(flags):
        if workspace.model(document.name, path) is None and (why := workspace.unreadable_model(document.name, path)):
            message = f"The config.json of `{path}` {why}, so spec-lsp does not read it: what the model is is unknown."
            key = f"{FILE_LEFT_OUT.name}:{path}"
            found.setdefault((path, place), Diagnostic(FILE_LEFT_OUT, FILE_LEFT_OUT.severity, message, place, key))
    return list(found.values())


def _included(document: Document) -> Iterator[tuple[str, Place]]:
    for path in sorted(document.depends_on):
        start, end = _named_at(document.text, path)
        yield path, Place(document.name, start, end)


def _named_at(text: str, path: str) -> tuple[int, int]:
    """The characters that name a file: behind `source` or `.` if it is named there, else wherever it is first named."""
    named = re.escape(path)
    found = re.search(rf"(?:\bsource|(?<![^\s;&|])\.)[ \t]+[\"']?(?:\./)*({named})", text)
    found = found or re.search(rf"(?<![\w/.-])(?:\./)*({named})", text)
    return found.span(1) if found else (0, 0)


Flags = Sequence[tuple[Launch, Sequence[tuple[Word, Word]]]]
"""What may be a flag that names a file, each with the word behind it, of each way of each launch."""


def _naming(variant: Variant) -> list[tuple[Word, Word]]:
    """A glance, at every word and at every keystroke: words of several parts may be such flags, too."""
    return [
        (word, behind)
        for word, behind in pairwise(variant.words)
        if len(word[0]) != 1 or "model" in (text := word[0][0][0] or "") or text == "--config"
    ]


def _configurations(flags: Flags) -> Iterator[tuple[str, Place]]:
    for launch, pairs in flags:
        for flag, path in pairs if launch.program != "config" else ():
            if flag.text == "--config" and path.text and not _is_written(launch, path.text):
                yield path.text, path.place_of(0, len(path.text)) or path.place


def _is_written(launch: Launch, path: str) -> bool:
    return any(file.name == path for variant in launch.variants for file in variant.files)


def _models(flags: Flags) -> Iterator[tuple[str, Place]]:
    """What stands behind `--model-path` and the flags like it."""
    for _, pairs in flags:
        for flag, value in pairs:
            spelling, equals, joined = (flag.text or "").partition("=")
            if not spelling.startswith("--") or "model" not in spelling:
                continue
            word, path = (flag, joined) if equals else (value, value.text or "")
            if path and not path.startswith("-"):
                start = len(word.text or "") - len(path)
                yield path, word.place_of(start, start + len(path)) or word.place
