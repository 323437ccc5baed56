"""`spec-lsp check`: finds the files, checks them, writes what was found."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from spec_lsp.analysis.check import with_severity
from spec_lsp.analysis.rules import all_rules
from spec_lsp.cli import baseline
from spec_lsp.cli.baseline import Baseline
from spec_lsp.cli.checker import Checker, Task, found_of
from spec_lsp.cli.errors import CLEAN, FAILED, FINDINGS, UsageError
from spec_lsp.cli.files import write_text
from spec_lsp.cli.formats import Run, writer
from spec_lsp.cli.formats.text import plural
from spec_lsp.cli.pool import check_all
from spec_lsp.cli.printed import harmless, in_utf_8, unguarded
from spec_lsp.cli.progress import Progress
from spec_lsp.cli.report import FileReport, ReportedFinding, Totals
from spec_lsp.cli.sources import Sources, shown_name
from spec_lsp.cli.style import Style, style_for
from spec_lsp.cli.surroundings import Folders
from spec_lsp.cli.walk import Candidate, candidates
from spec_lsp.cli.worlds import read_gpu, read_release, sglang_named
from spec_lsp.files import MAX_DOCUMENT, MAX_FOUND, MIB, Area, OutsideError, UnreadableError
from spec_lsp.patterns import Patterns
from spec_lsp.records import replace
from spec_lsp.settings_file import SETTINGS_FILES, flaws_of
from spec_lsp.syntax import may_hold_launches, may_launch
from spec_lsp.workspace import decode

STDIN = "-"
NO_CACHE = "SPEC_LSP_NO_CACHE"
"""The variable that does what `--no-cache` does."""


def run(arguments: argparse.Namespace) -> int:
    """Run the command; see `arguments._check` for its options."""
    task = _task(arguments)
    all_rules()  # settings may name any of them
    out: TextIO = io.StringIO() if arguments.output else _standard_output(arguments)
    progress = Progress()
    style = Style(arguments.color == "always") if arguments.output else style_for(out, arguments.color)
    run = Run(
        style,
        arguments.statistics,
        "fix" if task.fix else "diff" if task.diff else "",
        task.unsafe,
        Totals(),
        progress.clear,
    )
    reports = _watched(_reports(arguments, task, progress), run)
    if arguments.write_baseline:
        return _write_baseline(arguments.write_baseline, reports, run, task, progress)
    known = baseline.read(arguments.baseline, task.here) if arguments.baseline else None
    writer(arguments.format)(_counted(reports, run, known), out, run)
    progress.clear()
    if arguments.output:
        _write(arguments.output, out)
    return _exit_code(run.totals, arguments)


def _task(arguments: argparse.Namespace) -> Task:
    if arguments.upgrade:
        read_release(arguments.upgrade)
    for gpu in arguments.gpu:
        read_gpu(gpu)
    if arguments.fix and arguments.diff:
        raise UsageError("--fix changes files and --diff only shows what it would change: give one of them")
    if arguments.diff and arguments.format != "text":
        raise UsageError(f"--diff shows a patch, which --format {arguments.format} has no place for: give one of them")
    if arguments.statistics and arguments.format not in ("text", "json"):
        raise UsageError(f"--statistics is for --format text and json, not {arguments.format}")
    if arguments.write_baseline and (arguments.fix or arguments.diff or arguments.baseline or arguments.output):
        raise UsageError(
            "--write-baseline only writes down what is found: leave --fix, --diff, --baseline and --output out"
        )
    return Task(
        here=str(Path.cwd()),
        paths=named_paths(arguments),
        models=tuple(arguments.models),
        sglang=tuple(map(sglang_named, arguments.sglang)),
        gpu=tuple(arguments.gpu),
        honour_ignores=not arguments.ignore_directives,
        fix=arguments.fix,
        diff=arguments.diff,
        unsafe=arguments.unsafe_fixes,
        fixes=arguments.format != "gitlab" and not arguments.statistics and not arguments.write_baseline,
        upgrade=arguments.upgrade or "",
        overview=arguments.format == "html",
        remember=not arguments.no_cache and not os.environ.get(NO_CACHE),
    )


def named_paths(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The full paths that the command line names; for standard input the file that it stands for."""
    paths = [getattr(arguments, "stdin_filename", None) or STDIN if p == STDIN else p for p in arguments.paths or ["."]]
    return tuple(map(os.path.abspath, paths))


def _standard_output(arguments: argparse.Namespace) -> TextIO:
    """Where findings go: to standard error if the fixed text of standard input goes to standard output."""
    out = sys.stderr if arguments.fix and STDIN in arguments.paths else sys.stdout
    if arguments.format == "github":
        return unguarded(out)
    return out if arguments.format == "text" else in_utf_8(out)


# --- which files -----------------------------------------------------------------------------------------------------


def _reports(arguments: argparse.Namespace, task: Task, progress: Progress) -> Iterator[FileReport]:
    paths = arguments.paths or ["."]
    if STDIN in paths:
        if paths != [STDIN]:
            raise UsageError("`-` stands alone: standard input cannot be checked together with files")
        checker = Checker(task)
        yield _standard_input(arguments, checker)
        yield from settings_reports(checker.folders, task.here)
        return
    folders = Folders(Path(task.here), paths=task.paths)
    files = files_to_read(arguments, task, folders, progress)
    yield from check_all(task, files, arguments.jobs, progress)
    yield from settings_reports(folders, task.here)


def files_to_read(arguments: argparse.Namespace, task: Task, folders: Folders, progress: Progress) -> Iterator[str]:
    """The files to check: named ones, and those in folders that may launch SGLang and are not excluded. The settings that apply to them are
    collected on the way."""
    more = Patterns(arguments.exclude)

    def tell(path: str, what: str) -> None:
        progress.clear()
        print(f"spec-lsp: warning: {harmless(shown_name(path, task.here))} {what}", file=sys.stderr)

    found = candidates(arguments.paths or ["."], folders.area, lambda folder: tell(folder, CLOSED))
    for number, candidate in enumerate(found):
        progress.show(number, 0, "")
        if candidate.named or os.path.basename(candidate.path) == SETTINGS_FILES[0]:
            folders.of(candidate.path)
        try:
            if not candidate.named and not may_be_launched_from(candidate, folders.area):
                continue
        except OutsideError as error:
            tell(candidate.path, f"{error}: it was not read")
            continue
        may_be_excluded = not candidate.named or arguments.force_exclude
        if not (may_be_excluded and _excluded(candidate.path, folders, more, task.here)):
            yield candidate.path


CLOSED = "may not be entered: nothing in it was checked"


def settings_reports(folders: Folders, here: str) -> Iterator[FileReport]:
    """The unusable settings that were found."""
    for file in folders.settings_files():
        severities = folders.of(os.path.join(file.folder, "launch.sh")).options
        told = [d for flaw in flaws_of(file) if (d := with_severity(flaw, severities)) is not None]
        if told:
            sources = Sources({file.path: file.text}, here)
            yield FileReport(shown_name(file.path, here), found=tuple(found_of(d, (), sources) for d in told))


def _excluded(path: str, folders: Folders, more: Patterns, here: str) -> bool:
    return folders.of(path).excludes(path) or bool(more and more.match(Path(os.path.relpath(path, here)).as_posix()))


def may_be_launched_from(candidate: Candidate, area: Area) -> bool:
    """Whether a file found in a folder may launch SGLang. An unreadable one is not skipped, as it could not be checked.

    Raises OutsideError for a link that leads out of the area.
    """
    if not may_hold_launches(candidate.path):
        return False
    try:
        data = candidate.read(area, MAX_FOUND)
    except OutsideError:
        raise
    except UnreadableError as error:
        return isinstance(error.__cause__, PermissionError)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = decode(data).encode()
    return may_launch(candidate.path, data)


def _standard_input(arguments: argparse.Namespace, checker: Checker) -> FileReport:
    task = checker.task
    data = sys.stdin.buffer.read(MAX_DOCUMENT + 1)
    if len(data) > MAX_DOCUMENT:
        raise UsageError(f"standard input is larger than {MAX_DOCUMENT // MIB} MiB")
    name = arguments.stdin_filename or "<stdin>"
    report = checker.text(os.path.join(task.here, name), decode(data))
    if report.text is not None or task.fix:
        unguarded(sys.stdout).write(decode(data) if report.text is None else report.text)
    return report


# --- what comes out --------------------------------------------------------------------------------------------------


def _watched(reports: Iterable[FileReport], run: Run) -> Iterator[FileReport]:
    """The reports, with each finding once (a file may be checked for itself and for launches that use it), and with troubles reported."""
    first: dict[object, ReportedFinding] = {}
    told: set[str] = set()
    for report in reports:
        kept = replace(report, found=tuple(f for f in report.found if first.setdefault(_said(f), f) is f))
        for line in _troubles(kept):
            if line not in told:
                told.add(line)
                run.before_text()
                print(line, file=sys.stderr)
        yield kept


def _said(finding: ReportedFinding) -> object:
    """What is said, and where; not the launch for which it was found."""
    return finding.code, finding.severity, finding.message, finding.location


def _counted(reports: Iterable[FileReport], run: Run, known: Baseline | None) -> Iterator[FileReport]:
    """The reports without the findings that a baseline knows; totals are updated."""
    checked: list[str] = []
    for report in reports:
        if known is not None:
            checked += dict.fromkeys((report.file, *(f.file for f in report.found)))
            new = tuple(f for f in report.found if not known.knows(f))
            run.totals.known += len(report.found) - len(new)
            report = replace(report, found=new)
        run.totals.add(report)
        yield report
    if known is not None:
        run.totals.gone = known.gone(checked)


def _write_baseline(path: str, reports: Iterable[FileReport], run: Run, task: Task, progress: Progress) -> int:
    """Write the findings to a file that --baseline reads."""
    found: list[ReportedFinding] = []
    for report in reports:
        run.totals.add(report)
        found += report.found
    count = baseline.write(path, found, task.here)
    progress.clear()
    print(f"Wrote {plural(count, 'finding')} to `{path}`: `spec-lsp check --baseline {path}` tells only new ones.")
    return FAILED if run.totals.failed or run.totals.faults else CLEAN


def _troubles(report: FileReport) -> Iterator[str]:
    yield from (f"spec-lsp: warning: {harmless(note)}" for note in report.notes)
    if report.problem:
        yield f"spec-lsp: error: {harmless(report.file)} {harmless(report.problem)}"
    for lost in (*report.faults, report.failure) if report.failure else report.faults:
        yield f"{lost}spec-lsp: internal error in {harmless(report.file)}; please report it with the lines above"


def _write(path: str, out: TextIO) -> None:
    assert isinstance(out, io.StringIO)
    try:
        write_text(path, out.getvalue())
    except UnreadableError as error:
        raise UsageError(f"`{path}` {error}") from error


def _exit_code(totals: Totals, arguments: argparse.Namespace) -> int:
    if totals.failed or totals.faults:
        return FAILED
    found = totals.severities["error"] or totals.would_change
    return FINDINGS if found and not arguments.exit_zero else CLEAN
