"""`spec-lsp check`: finds the files, checks them, writes what was found."""

from __future__ import annotations

import argparse
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from spec_lsp.analysis.rules import all_rules
from spec_lsp.cli.checker import Checker, Task
from spec_lsp.cli.errors import CLEAN, FAILED, FINDINGS, UsageError
from spec_lsp.cli.files import UnreadableError, write_text
from spec_lsp.cli.formats import Run, writer
from spec_lsp.cli.garbage import collected_seldom
from spec_lsp.cli.pool import check_all
from spec_lsp.cli.progress import Progress
from spec_lsp.cli.report import FileReport, Found, Totals
from spec_lsp.cli.sources import shown_name
from spec_lsp.cli.style import Style, style_for
from spec_lsp.cli.surroundings import Folders
from spec_lsp.cli.walk import Candidate, candidates
from spec_lsp.cli.worlds import read_gpu, read_release
from spec_lsp.patterns import Patterns
from spec_lsp.syntax import may_hold_launches, may_launch
from spec_lsp.workspace import MAX_BYTES, decode

MAX_FOUND_BYTES = 4 * 1024 * 1024
"""Larger files are left out when they are found in a folder; one that is named is read up to `workspace.MAX_BYTES`."""

STDIN = "-"


@collected_seldom()
def run(arguments: argparse.Namespace) -> int:
    """Run the command; see `arguments._check` for its options."""
    task = _task(arguments)
    all_rules()  # settings may name any of them
    unreadable = Folders(Path(task.here)).of(os.path.join(task.here, "launch.sh")).unreadable
    if unreadable:
        raise UsageError(unreadable)  # what it switches off or names would be judged wrongly
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
    reports = _reports(arguments, task, progress)
    writer(arguments.format)(_watched(reports, run), out, run)
    progress.clear()
    if arguments.output:
        _write(arguments.output, out)
    return _exit_code(run.totals, arguments)


def _task(arguments: argparse.Namespace) -> Task:
    for release in arguments.sglang:
        read_release(release)
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
    return Task(
        here=str(Path.cwd()),
        sglang=tuple(arguments.sglang),
        gpu=tuple(arguments.gpu),
        honour_ignores=not arguments.ignore_directives,
        fix=arguments.fix,
        diff=arguments.diff,
        unsafe=arguments.unsafe_fixes,
        fixes=arguments.format != "gitlab" and not arguments.statistics,
        upgrade=arguments.upgrade or "",
    )


def _standard_output(arguments: argparse.Namespace) -> TextIO:
    """Where findings go: to standard error when the repaired text of standard input goes to standard output."""
    return sys.stderr if arguments.fix and STDIN in arguments.paths else sys.stdout


# --- which files -----------------------------------------------------------------------------------------------------


def _reports(arguments: argparse.Namespace, task: Task, progress: Progress) -> Iterator[FileReport]:
    paths = arguments.paths or ["."]
    if STDIN in paths:
        if paths != [STDIN]:
            raise UsageError("`-` stands alone: standard input cannot be checked together with files")
        yield _standard_input(arguments, task)
        return
    yield from check_all(task, files_to_read(paths, arguments, task, progress), arguments.jobs, progress)


def files_to_read(paths: Sequence[str], arguments: argparse.Namespace, task: Task, progress: Progress) -> Iterator[str]:
    """The files to parse: named ones, and of those in folders the ones that may launch SGLang and are not excluded."""
    folders = Folders(Path(task.here))
    more = Patterns(arguments.exclude)
    found = candidates(paths, lambda folder: _tell_closed(shown_name(folder, task.here), progress))
    for number, candidate in enumerate(found):
        progress.show(number, 0, "")
        if not candidate.named and not _may_launch(candidate):
            continue
        may_be_excluded = not candidate.named or arguments.force_exclude
        if not (may_be_excluded and _excluded(candidate.path, folders, more, task.here)):
            yield candidate.path


def _tell_closed(folder: str, progress: Progress) -> None:
    progress.clear()
    print(f"spec-lsp: warning: `{folder}` may not be entered: nothing in it was checked", file=sys.stderr)


def _excluded(path: str, folders: Folders, more: Patterns, here: str) -> bool:
    return folders.of(path).excludes(path) or bool(more and more.match(Path(os.path.relpath(path, here)).as_posix()))


def _may_launch(candidate: Candidate) -> bool:
    """Whether a file found in a folder may launch SGLang. One that nobody may read is not passed over: it could not be checked."""
    if not may_hold_launches(candidate.path):
        return False
    try:
        data = _glance(candidate.path)
    except PermissionError:
        return True
    except OSError:
        return False
    if data is None:
        return False
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = decode(data).encode()
    return may_launch(candidate.path, data)


def _glance(path: str) -> bytes | None:
    """A file's bytes; None for one that is too large, or no file at all. Opening a pipe does not wait for who may never write.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        whole = stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FOUND_BYTES
        return file.read() if whole else None


def _standard_input(arguments: argparse.Namespace, task: Task) -> FileReport:
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(f"standard input is larger than {MAX_BYTES // 1024 // 1024} MiB")
    name = arguments.stdin_filename or "<stdin>"
    report = Checker(task).text(os.path.join(task.here, name), decode(data), on_disk=False)
    if report.text is not None:
        sys.stdout.write(report.text)
    elif task.fix:
        sys.stdout.write(decode(data))
    return report


# --- what comes out --------------------------------------------------------------------------------------------------


def _watched(reports: Iterable[FileReport], run: Run) -> Iterator[FileReport]:
    """The reports, each finding once (two launches may use the same file), with totals kept and troubles told."""
    seen: set[Found] = set()
    told: set[str] = set()
    for report in reports:
        fresh = tuple(f for f in dict.fromkeys(report.found) if f not in seen)
        seen.update(fresh)
        kept = replace(report, found=fresh)
        run.totals.add(kept)
        for line in _troubles(kept):
            if line not in told:
                told.add(line)
                run.before_text()
                print(line, file=sys.stderr)
        yield kept


def _troubles(report: FileReport) -> Iterator[str]:
    yield from (f"spec-lsp: warning: {note}" for note in report.notes)
    if report.problem:
        yield f"spec-lsp: error: {report.file} {report.problem}"
    for lost in (*report.faults, report.failure) if report.failure else report.faults:
        yield f"{lost}spec-lsp: internal error in {report.file}; please report it with the lines above"


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
