"""One list of findings. Lines and characters count from 0, characters in code points; ends are exclusive."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TextIO

from spec_lsp.cli.formats import Run
from spec_lsp.cli.report import FileReport, Found, Location


def write(reports: Iterable[FileReport], out: TextIO, run: Run) -> None:
    """A JSON list, one finding a line."""
    separator = "[\n"
    for report in reports:
        for found in report.found:
            out.write(separator + json.dumps(as_json(found), ensure_ascii=False))
            separator = ",\n"
    out.write("[]\n" if separator == "[\n" else "\n]\n")


def as_json(found: Found) -> dict[str, Any]:
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
