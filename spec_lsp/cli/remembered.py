"""Keeps the report on a file as long as nothing that it depends on has changed.

A report depends on the text, its name, the settings, and the workspace's answers. So it is kept with every question that was asked of the
workspace and a hash of each answer. If the same text is checked again in the same way, by the same spec-lsp, the questions are asked again,
and the report is used only if every answer is the same.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from spec_lsp.cli.report import (
    FileReport,
    LaunchShown,
    Location,
    OfferedFix,
    Position,
    Replacement,
    ReportedFinding,
    SourceLine,
)
from spec_lsp.cli.surroundings import Surroundings
from spec_lsp.facts.model import ModelFacts
from spec_lsp.files import MIB
from spec_lsp.kept import Shelf
from spec_lsp.records import fields, is_dataclass

MAX_SIZE = MIB // 4
"""The longest report, in characters, that is kept."""
SHELF = Shelf("reports", files=10_000, size=64 * MIB)

Question = tuple[str, ...]
"""The name of a method of the workspace, and its arguments."""


class Remembered:
    """The kept reports of files that are checked in one way. `way` is everything but the file and its surroundings."""

    def __init__(self, way: object) -> None:
        self._way = repr(way)

    def report(self, path: str, data: bytes, around: Surroundings) -> FileReport | None:
        """The kept report of a file with the content `data`; None if there is none, or something may have changed."""
        try:
            proof, asked, report = json.loads(SHELF.get(self._name(path, around), MAX_SIZE) or "")
            if proof != _proof(data, around):
                return None
            if any(_hash(_answer(around, question)) != answer for question, answer in asked):
                return None
            found = _made(report)
        except (ValueError, TypeError, LookupError, RecursionError):
            return None
        return found if isinstance(found, FileReport) else None

    def keep(
        self, path: str, data: bytes, around: Surroundings, asked: Mapping[Question, object], report: FileReport
    ) -> None:
        """Keep a report if a second check would give the same: not if a fault or a limit of work affected it."""
        if report.failure or report.faults or report.problem or report.notes:
            return
        answers = [(question, _hash(answer)) for question, answer in asked.items()]
        text = json.dumps((_proof(data, around), answers, _plain(report)), separators=(",", ":"))
        if len(text) <= MAX_SIZE:
            SHELF.keep(self._name(path, around), text)

    def _name(self, path: str, around: Surroundings) -> str:
        return _hash((path, self._way, around.workspace.roots, around.workspace.models))


# --- what a report follows from ------------------------------------------------------------------------------------------


def _answer(around: Surroundings, question: Question) -> object:
    method, *arguments = question
    if method not in QUESTIONS:
        raise LookupError(method)
    return getattr(around.workspace, method)(*arguments)


QUESTIONS = ("read", "left_out", "model", "unreadable_model", "release", "unread_sglang", "sglang_at")
"""The questions of an analysis: the methods of `analysis.inputs.Workspace`."""


def _proof(data: bytes, around: Surroundings) -> str:
    """A hash of what is known before any question is asked."""
    settings = (around.file.path, around.file.table) if around.file else None
    return _hash((_ourselves(), settings, hashlib.blake2b(data, digest_size=16).digest()))


def _hash(one: object) -> str:
    """The hash of an answer or a key."""
    if isinstance(one, ModelFacts):
        one = (one.config, one.complete, sorted(one.unsure), one.is_draft)
    return hashlib.blake2b(repr(one).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@functools.cache
def _ourselves() -> str:
    """A hash of the names, sizes and times of this program's files, as another version may find something else."""
    return _hash([sys.version, *map(list, map(_files, ("spec_lsp", "yaml", "tree_sitter", "tree_sitter_bash")))])


def _files(package: str) -> Iterator[tuple[str, int, int]]:
    found = find_spec(package)
    folders = list(found.submodule_search_locations or ()) if found else []
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                if entry.is_dir():
                    folders += [entry.path] if entry.name != "__pycache__" else []
                else:
                    status = entry.stat()
                    yield entry.path, status.st_size, status.st_mtime_ns


# --- reports as JSON -------------------------------------------------------------------------------------------------------

SHAPES: Mapping[str, type] = {
    shape.__name__: shape
    for shape in (
        FileReport,
        ReportedFinding,
        Location,
        Position,
        SourceLine,
        OfferedFix,
        Replacement,
        LaunchShown,
    )
}


def _plain(one: Any) -> Any:
    if isinstance(one, tuple):
        return [_plain(part) for part in one]
    if is_dataclass(one):
        return {type(one).__name__: [_plain(getattr(one, f.name)) for f in fields(one)]}
    return one


def _made(one: Any) -> Any:
    if isinstance(one, list):
        return tuple(map(_made, one))
    if isinstance(one, dict):
        ((shape, parts),) = one.items()
        return SHAPES[shape](*map(_made, parts))
    return one
