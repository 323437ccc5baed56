"""Runs a checker over many files: in this process, or over several where that pays."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from spec_lsp.cli.checker import Checker, Task
from spec_lsp.cli.garbage import COLLECT_EVERY
from spec_lsp.cli.progress import Progress
from spec_lsp.cli.report import FileReport

FILES_FOR_A_POOL = 48
"""Files with launches below which starting processes costs more than it saves."""
CHUNK = 4
"""Files that a process gets at a time: few, as launches lie in clusters and the last chunk is waited for."""
MAX_WORKERS = 16
"""Processes that are started unasked: how many files there will be is not known yet."""

_checker: Checker | None = None


def check_all(task: Task, paths: Iterable[str], jobs: int | None, progress: Progress) -> Iterator[FileReport]:
    """The reports of the files, in their order. `paths` may still be being found: other processes begin with the first ones.

    Files are changed by one process only: two launches may share a `--config` file.
    """
    paths = iter(paths)
    first = list(islice(paths, FILES_FOR_A_POOL)) if jobs is None else list(paths)
    workers = 1 if task.fix else _workers(len(first), jobs)
    if workers > 1:
        yield from _in_pool(task, chain(first, paths), workers, progress)
        return
    files = [*first, *paths]
    checker = Checker(task)
    for done, path in enumerate(files, 1):
        report = checker.file(path)
        yield report
        progress.show(done, len(files), report.file)


def _in_pool(task: Task, paths: Iterator[str], workers: int, progress: Progress) -> Iterator[FileReport]:
    forks = "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if forks else "spawn")
    with context.Pool(workers, _start, (task,)) as pool:
        chunks = iter(lambda: list(islice(paths, CHUNK)), [])
        sent = [(len(chunk), pool.apply_async(_check, (chunk,))) for chunk in chunks]
        total, done = sum(size for size, _ in sent), 0
        for _, answer in sent:
            for report in answer.get():
                done += 1
                yield report
                progress.show(done, total, report.file)


def _workers(files: int, jobs: int | None) -> int:
    if jobs is not None:
        return min(jobs, files)
    return min(_cpus(), MAX_WORKERS) if files >= FILES_FOR_A_POOL else 1


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
    gc.freeze()  # what is loaded is here to stay
    gc.set_threshold(COLLECT_EVERY)
    _checker = Checker(task)


def _check(paths: list[str]) -> list[FileReport]:
    assert _checker is not None
    return [_checker.file(path) for path in paths]
