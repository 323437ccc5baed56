"""One list of findings, or with `--statistics` of rules.

Lines and characters count from 0, characters in code points; ends are exclusive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from spec_lsp.cli.formats import Run
from spec_lsp.cli.printed import json_text
from spec_lsp.cli.report import FileReport, Location, ReportedFinding, by_rule
from spec_lsp.records import fields


def write(reports: Iterable[FileReport], out: TextIO, run: Run) -> None:
    """A JSON list, one finding (or rule with its count) a line."""
    separator = "[\n"
    for entry in _counts(reports) if run.statistics else _findings(reports):
        out.write(separator + json_text(entry))
        separator = ",\n"
    out.write("[]\n" if separator == "[\n" else "\n]\n")


def _findings(reports: Iterable[FileReport]) -> Iterator[dict[str, Any]]:
    return (as_json(found) for report in reports for found in report.found)


def _counts(reports: Iterable[FileReport]) -> Iterator[dict[str, Any]]:
    counts = by_rule(found for report in reports for found in report.found)
    return ({f.name: getattr(count, f.name) for f in fields(count)} for count in counts)


def as_json(found: ReportedFinding) -> dict[str, Any]:
    """A finding as the JSON format shows it."""
    return {
        "file": found.file,
        "rule": found.rule,
        "code": found.code,
        "severity": found.severity,
        "message": found.message,
        "range": range_of(found.location),
        "late": found.late,
        "related": [{"file": loc.file, "range": range_of(loc), "message": text} for loc, text in found.related],
        "fixes": [
            {
                "title": fix.title,
                "applicability": fix.applicability,
                "preferred": fix.preferred,
                "edits": [{"file": e.location.file, "range": range_of(e.location), "text": e.text} for e in fix.edits],
            }
            for fix in found.fixes
        ],
    }


def range_of(location: Location) -> dict[str, dict[str, int]]:
    """A location's start and end."""
    return {
        name: {"line": at.line, "character": at.character}
        for name, at in (("start", location.start), ("end", location.end))
    }
