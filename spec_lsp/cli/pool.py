"""Runs a checker over many files: in this process, or over several where that pays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice

from spec_lsp.cli.checker import Checker, Task
from spec_lsp.cli.progress import Progress
from spec_lsp.cli.report import FileReport
from spec_lsp.cli.sources import shown_name

FILES_FOR_A_POOL = 48
"""Files with launches below which starting processes costs more than it saves."""
CHUNK = 4
"""Files that a process gets at a time: few, as launches lie in clusters and the last chunk is waited for."""
MAX_WORKERS = 16
"""Processes that are started unasked: how many files there will be is not known yet."""

ENDED = "was not checked: the process that read it was killed, or ran out of memory"


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
    from spec_lsp.cli.workers import spread  # processes and pipes take a while to import

    found = _Counted(paths)
    chunks = iter(lambda: list(islice(found, CHUNK)), [])
    done = 0
    for chunk, answer in spread(chunks, workers, partial(_start, task)):
        for report in answer if answer is not None else _one_by_one(task, chunk):
            done += 1
            yield report
            progress.show(done, found.total, report.file)


def _one_by_one(task: Task, paths: list[str]) -> Iterator[FileReport]:
    """The reports of files of which one has ended a process: each is read by a process that may end with it alone."""
    from spec_lsp.cli.workers import spread

    for (path,), answer in spread([[path] for path in paths], 1, partial(_start, task)):
        yield answer[0] if answer is not None else FileReport(shown_name(path, task.here), problem=ENDED)


class _Counted(Iterator[str]):
    """Files, and how many there are once all are found."""

    def __init__(self, paths: Iterator[str]) -> None:
        self._paths = paths
        self._count = 0
        self.total = 0

    def __next__(self) -> str:
        try:
            path = next(self._paths)
        except StopIteration:
            self.total = self._count
            raise
        self._count += 1
        return path


def _workers(files: int, jobs: int | None) -> int:
    if jobs is not None:
        return min(jobs, files)
    return min(_cpus(), MAX_WORKERS) if files >= FILES_FOR_A_POOL else 1


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start(task: Task) -> Callable[[list[str]], list[FileReport]]:
    checker = Checker(task)
    return lambda paths: [checker.file(path) for path in paths]
