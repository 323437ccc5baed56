"""GitLab's code quality report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, TextIO

from spec_lsp.cli.formats import Run
from spec_lsp.cli.printed import json_text
from spec_lsp.cli.report import FileReport, ReportedFinding

SEVERITIES = {"error": "critical", "warning": "major", "information": "minor", "hint": "info"}


def write(reports: Iterable[FileReport], out: TextIO, run: Run) -> None:
    """One list. GitLab drops entries with equal fingerprints, so equal ones are numbered."""
    seen: Counter[str] = Counter()
    entries = []
    for report in reports:
        for found in report.found:
            seen[found.fingerprint] += 1
            entries.append(_entry(found, seen[found.fingerprint]))
    out.write(json_text(entries, indent=1) + "\n")


def _entry(found: ReportedFinding, number: int) -> dict[str, Any]:
    start, end = found.location.start, found.location.end
    return {
        "description": f"{found.rule}: {found.message}",
        "check_name": found.code,
        "fingerprint": found.fingerprint if number == 1 else f"{found.fingerprint}-{number}",
        "severity": SEVERITIES[found.severity],
        "location": {
            "path": found.file,
            "positions": {
                "begin": {"line": start.line + 1, "column": start.character + 1},
                "end": {"line": end.line + 1, "column": end.character + 1},
            },
            "lines": {"begin": start.line + 1, "end": end.line + 1},
        },
    }
