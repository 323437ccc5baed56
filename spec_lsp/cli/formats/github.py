"""GitHub Actions workflow commands: findings become annotations on the changed lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from spec_lsp.cli.formats import Run
from spec_lsp.cli.printed import harmless
from spec_lsp.cli.report import FileReport, ReportedFinding

COMMANDS = {"error": "error", "warning": "warning", "information": "notice", "hint": "notice"}


def write(reports: Iterable[FileReport], out: TextIO, run: Run) -> None:
    """One command a line."""
    for report in reports:
        for found in report.found:
            out.write(annotation(found) + "\n")


def annotation(found: ReportedFinding) -> str:
    """The workflow command of a finding; lines and columns count from 1."""
    start, end = found.location.start, found.location.end
    values = {"file": found.file, "line": start.line + 1, "endLine": end.line + 1}
    if start.line == end.line:  # GitHub refuses columns for ranges of several lines
        values |= {"col": start.character + 1, "endColumn": end.character + 1}
    values["title"] = f"spec-lsp {found.name}"
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in values.items())
    lines = [found.message, *(f"Fix: {fix.title}" for fix in found.fixes[:1])]
    return f"::{COMMANDS[found.severity]} {properties}::{_data(chr(10).join(lines))}"


def _data(text: str) -> str:
    """Lines of text, with invisible characters escaped."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return harmless(escaped)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
