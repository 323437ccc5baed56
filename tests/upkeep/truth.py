"""Fresh truth, and where the pipeline as it is disagrees with it, grouped by SGLang's function."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spec_lsp.catalog.release import Release
from tests.truth.score import ask, equal, first_error, rows_of
from tests.upkeep.functions import Differences
from tests.upkeep.report import Part

Row = dict[str, Any]

ARGPARSE = "argparse"
"""Where words are refused before there are functions."""


@dataclass(slots=True)
class Miss:
    """What goes wrong at one function or field: how often, how the report points at it, and the first launch that shows it."""

    count: int = 0
    pointed: str = ""
    shown: str = ""
    kinds: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Pointers:
    """What the other parts of the report name: functions that differ, functions with new sites, fields whose flags changed."""

    differences: Differences
    sites: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()

    def function(self, at: str) -> str:
        """How a function is pointed at (`arg_groups/x.py:f`, or `x.py:f` as our rules write it); empty where it is not."""
        if at == ARGPARSE:
            return "flags changed" if self.flags else ""
        name = at.rpartition(":")[2].rpartition(".")[2].lstrip("_")
        return self.differences.points_at(name) or ("new statements" if name in self.sites else "")

    def field(self, name: str) -> str:
        return self.differences.decides(name) or ("its flag changed" if name in self.flags else "")


def misses(files: Iterable[Path], release: Release, pointers: Pointers) -> tuple[dict[str, Miss], int]:
    """The disagreements by function, or by field where no function is known; and how many launches were asked."""
    found: dict[str, Miss] = defaultdict(Miss)
    asked = 0
    for path in files:
        rows = rows_of(path)
        asked += len(rows)
        for row, answer in zip(rows, ask([_case(r, release) for r in rows]), strict=True):
            for where, kind, pointed in _wrong(row, answer, pointers):
                miss = found[where]
                miss.count += 1
                miss.kinds[kind] += 1
                miss.pointed = miss.pointed or pointed
                miss.shown = miss.shown or f"{row['id']} in {path.name}"
    return dict(found), asked


def _case(row: Row, release: Release) -> Row:
    return {**{k: row[k] for k in ("id", "argv", "env", "files", "gpu") if k in row}, "version": str(release)}


def _wrong(row: Row, answer: Row, pointers: Pointers) -> Iterator[tuple[str, str, str]]:
    """(function or field, what is wrong, how the report points at it) of one launch. What spec-lsp leaves open is not wrong."""
    refused, said = row["outcome"] != "ok", answer["verdict"] in ("refused", "bad-arguments")
    error = first_error(answer) or {}
    theirs, ours = (row.get("error") or {}).get("at") or ARGPARSE, error.get("sglang") or ARGPARSE
    if refused and not said:
        yield theirs, "not refused", pointers.function(theirs)
    elif said and not refused:
        yield ours, f"refused by {error['rule']}", pointers.function(ours)
    elif refused and theirs != ARGPARSE and _name(theirs) != _name(ours):
        yield theirs, f"told as {error['rule']}", pointers.function(theirs) or pointers.function(ours)
    elif not refused:
        known = answer.get("resolved", {})
        wrong = (name for name, value in row["resolved"].items() if name in known and not equal(known[name], value))
        yield from ((f"`{name}`", "ends up otherwise", pointers.field(name)) for name in wrong)


def _name(at: str) -> str:
    return at.rpartition(":")[2].lstrip("_")


def part(files: Iterable[Path], release: Release, pointers: Pointers) -> Part:
    """The misses, and which of them the report did not point at."""
    found, asked = misses(files, release, pointers)
    ordered = sorted(found.items(), key=lambda item: -item[1].count)
    total = sum(m.count for m in found.values())
    lines = [f"{asked} launches asked, {total} disagreements at {len(found)} functions and fields.", ""]
    if ordered:
        lines += ["| where | times | what | pointed at by | first seen |", "| --- | ---: | --- | --- | --- |"]
    for where, miss in ordered:
        kinds = ", ".join(kind for kind, _ in miss.kinds.most_common(2))
        lines.append(f"| {where} | {miss.count} | {kinds} | {miss.pointed or '**nothing above**'} | {miss.shown} |")
    unpointed = [where for where, miss in ordered if not miss.pointed]
    todo = [f"Mend {total} disagreements with SGLang at {len(found)} functions and fields"] if found else []
    if unpointed:
        todo.append(f"Find out what the report does not point at: {', '.join(unpointed)}")
    return Part("Where SGLang says otherwise", lines, todo)
