"""Runs a checker over many files: in this process, or over several where that pays."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence

from spec_lsp.cli.checker import Checker, Task
from spec_lsp.cli.report import FileReport

FILES_FOR_A_POOL = 48
"""Files with launches below which starting processes costs more than it saves."""
CHUNK = 8

_checker: Checker | None = None


def check_all(task: Task, paths: Sequence[str], jobs: int | None) -> Iterator[FileReport]:
    """The reports of the files, in their order.

    Files are changed by one process only: two launches may share a `--config` file.
    """
    workers = _workers(len(paths), jobs)
    if workers < 2 or task.fix:
        checker = Checker(task)
        yield from (checker.file(path) for path in paths)
        return
    forks = "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if forks else "spawn")
    with context.Pool(workers, _start, (task,)) as pool:
        yield from pool.imap(_check, paths, CHUNK)


def _workers(files: int, jobs: int | None) -> int:
    if jobs is not None:
        return min(jobs, files)
    return min(_cpus(), files // CHUNK) if files >= FILES_FOR_A_POOL else 1


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ignore_interrupts() -> None:
    """In a worker: Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _start(task: Task) -> None:
    global _checker
    ignore_interrupts()
    _checker = Checker(task)


def _check(path: str) -> FileReport:
    assert _checker is not None
    return _checker.file(path)
