"""SARIF 2.1.0, for code scanning. Columns count code points from 1."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from spec_lsp import __version__
from spec_lsp.analysis.rules import all_rules
from spec_lsp.cli.formats import Run
from spec_lsp.cli.printed import json_text
from spec_lsp.cli.report import FileReport, Location, OfferedFix, ReportedFinding
from spec_lsp.resolution.engine import Rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "information": "note", "hint": "note"}


def write(reports: Iterable[FileReport], out: TextIO, run: Run) -> None:
    """One log with one run. Every rule that spec-lsp has is described, found or not."""
    rules = all_rules()
    numbers = {rule.code: number for number, rule in enumerate(rules)}
    results, problems = [], []
    for report in reports:
        results += [_result(found, numbers) for found in report.found]
        problems += [_problem(report)] if report.problem or report.failure else []
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "spec-lsp",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": [_rule(rule) for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"SRCROOT": {"uri": Path.cwd().as_uri().rstrip("/") + "/"}},
                "invocations": [{"executionSuccessful": not problems, "toolExecutionNotifications": problems}],
                "results": results,
            }
        ],
    }
    out.write(json_text(log, indent=1) + "\n")


def _rule(rule: Rule) -> dict[str, Any]:
    text = "\n\n".join(t for t in (rule.summary, rule.explanation) if t)
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": text},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"tags": [rule.topic]},
    }


def _result(found: ReportedFinding, numbers: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": found.code,
        "level": LEVELS[found.severity],
        "message": {"text": found.message},
        "locations": [_location(found.location)],
        "partialFingerprints": {"specLsp/v1": found.fingerprint},
        "properties": {"late": found.late},
    }
    if found.code in numbers:
        result["ruleIndex"] = numbers[found.code]
    if found.related:
        result["relatedLocations"] = [
            {"id": n, **_location(loc), "message": {"text": text}} for n, (loc, text) in enumerate(found.related, 1)
        ]
    fixes = [_fix(fix) for fix in found.fixes if fix.edits]
    return {**result, "fixes": fixes} if fixes else result


def _location(location: Location) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": _artifact(location.file), "region": _region(location)}}


def _region(location: Location) -> dict[str, int]:
    return {
        "startLine": location.start.line + 1,
        "startColumn": location.start.character + 1,
        "endLine": location.end.line + 1,
        "endColumn": location.end.character + 1,
    }


def _artifact(file: str) -> dict[str, str]:
    path = urllib.parse.quote(file.encode("utf-8", _any_text(file)))
    if os.path.isabs(file):
        return {"uri": f"file://{path}" if path.startswith("/") else Path(file).as_uri()}
    return {"uri": path, "uriBaseId": "SRCROOT"}


def _any_text(name: str) -> str:
    """Encodes a name: names that are not UTF-8 are as Python reads them, with surrogates for undecodable bytes."""
    halves = any("\ud800" <= c <= "\udfff" and not "\udc80" <= c <= "\udcff" for c in name)
    return "surrogatepass" if halves else "surrogateescape"


def _fix(fix: OfferedFix) -> dict[str, Any]:
    files = dict.fromkeys(e.location.file for e in fix.edits)
    return {
        "description": {"text": fix.title},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(file),
                "replacements": [
                    {"deletedRegion": _region(e.location), "insertedContent": {"text": e.text}}
                    for e in fix.edits
                    if e.location.file == file
                ],
            }
            for file in files
        ],
    }


def _problem(report: FileReport) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": f"{report.file} {report.problem or 'could not be checked: internal error'}"},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(report.file)}}],
    }
