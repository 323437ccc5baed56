"""JUnit XML: a test suite for each file, a failed test for each error, a passed one for everything milder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

from spec_lsp.cli.formats import Run
from spec_lsp.cli.printed import harmless
from spec_lsp.cli.report import FileReport, ReportedFinding


def write(reports: Iterable[FileReport], out: TextIO, run: Run) -> None:
    """One document with the files that launch something or could not be checked."""
    suites = [r for r in reports if r.found or r.launches or r.problem or r.failure]
    tests, failures, errors = (sum(n) for n in zip(*map(_counts, suites), strict=True)) if suites else (0, 0, 0)
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(f'<testsuites name="spec-lsp" tests="{tests}" failures="{failures}" errors="{errors}">\n')
    for report in suites:
        out.writelines(f"{line}\n" for line in _suite(report))
    out.write("</testsuites>\n")


def _counts(report: FileReport) -> tuple[int, int, int]:
    failed = bool(report.problem or report.failure)
    return max(len(report.found), 1), sum(f.severity == "error" for f in report.found), int(failed)


def _suite(report: FileReport) -> Iterator[str]:
    tests, failures, errors = _counts(report)
    yield f'  <testsuite name={_attribute(report.file)} tests="{tests}" failures="{failures}" errors="{errors}">'
    if report.problem or report.failure:
        message = _attribute(report.problem or "internal error")
        body = f"<error message={message}>{_text(report.failure)}</error>"
        yield f"    <testcase name={_attribute(report.file)}>{body}</testcase>"
    elif not report.found:
        yield f"    <testcase name={_attribute(report.file)} classname={_attribute(report.file)}/>"
    for found in report.found:
        yield f"    {_case(found)}"
    yield "  </testsuite>"


def _case(found: ReportedFinding) -> str:
    at = found.location.start
    where = f"{harmless(found.file)}:{at.line + 1}:{at.character + 1}"
    text = "\n".join([harmless(found.message), *(f"fix: {harmless(fix.title)}" for fix in found.fixes)])
    if found.severity == "error":
        what = f"type={_attribute(found.code)} message={_attribute(found.message)}"
        body = f"<failure {what}>{_text(f'{where}: {text}')}</failure>"
    else:
        body = f"<system-out>{_text(f'{where}: {found.severity}: {text}')}</system-out>"
    name = f"{found.name} line {at.line + 1}"
    return (
        f'<testcase name={_attribute(name)} classname={_attribute(found.file)} line="{at.line + 1}">{body}</testcase>'
    )


def _text(text: str) -> str:
    """Lines of text: XML has no control characters, not even as references."""
    return escape("\n".join(map(harmless, text.split("\n"))))


def _attribute(text: str) -> str:
    return quoteattr(harmless(text))
