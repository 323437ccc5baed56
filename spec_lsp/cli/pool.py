"""Runs a checker over many files: in this process, or in several if that pays off."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice

from spec_lsp.cli.checker import Checker, Task
from spec_lsp.cli.progress import Progress
from spec_lsp.cli.report import FileReport
from spec_lsp.cli.sources import shown_name

FILES_FOR_A_POOL = 48
"""With fewer files that hold launches, starting processes costs more than it saves."""
CHUNK = 4
"""How many files a process gets at a time: few, as launches are clustered and everyone waits for the last chunk."""
MAX_WORKERS = 16
"""The most processes that are started by default: the number of files is not known yet."""

ENDED = "was not checked: the process that read it was killed, or ran out of memory"


Looked = tuple[str, "FileReport | None"]
"""A file, and its report where that is known."""


def check_all(task: Task, paths: Iterable[str], jobs: int | None, progress: Progress) -> Iterator[FileReport]:
    """The reports of the files, in their order. `paths` may still be collected: other processes begin with the first ones.

    Files are changed by one process only, as two launches may share a `--config` file.
    """
    checker = Checker(task)
    files = ((path, checker.known(path)) for path in paths)
    first, unknown = _ahead(files, FILES_FOR_A_POOL if jobs is None else None)
    workers = 1 if task.fix else _workers(unknown, jobs)
    if workers > 1:
        yield from _in_pool(task, chain(first, files), workers, progress)
    else:
        whole = [*first, *files]
        for done, (path, known) in enumerate(whole, 1):
            report = known or checker.file(path)
            yield report
            progress.show(done, len(whole), report.file)


def _ahead(files: Iterator[Looked], most: int | None) -> tuple[list[Looked], int]:
    """The files up to so many that are not known, or all; and how many are not known."""
    first: list[Looked] = []
    unknown = 0
    for looked in files:
        first.append(looked)
        unknown += looked[1] is None
        if unknown == most:
            break
    return first, unknown


def _in_pool(task: Task, files: Iterator[Looked], workers: int, progress: Progress) -> Iterator[FileReport]:
    """The reports in order; other processes make those that are not known."""
    from spec_lsp.cli.workers import spread  # processes and pipes take a while to import

    found = _Counted(files)
    waiting: deque[FileReport | None] = deque()
    chunks = iter(lambda: list(islice(_unknown(found, waiting), CHUNK)), [])
    done = 0
    for chunk, answer in spread(chunks, workers, partial(_start, task)):
        for report in answer if answer is not None else _one_by_one(task, chunk):
            for each in (*_known_first(waiting), report):
                done += 1
                yield each
                progress.show(done, found.total, each.file)
    yield from _known_first(waiting)


def _unknown(files: Iterator[Looked], waiting: deque[FileReport | None]) -> Iterator[str]:
    """The files that are not known. `waiting` is told of all, in order."""
    for path, known in files:
        waiting.append(known)
        if known is None:
            yield path


def _known_first(waiting: deque[FileReport | None]) -> Iterator[FileReport]:
    """Take the known reports at the head of the queue, and drop the mark of the unknown one behind them."""
    while waiting and (known := waiting.popleft()) is not None:
        yield known


def _one_by_one(task: Task, paths: list[str]) -> Iterator[FileReport]:
    """The reports of files one of which has ended a process: each is read by a process of its own."""
    from spec_lsp.cli.workers import spread

    for (path,), answer in spread([[path] for path in paths], 1, partial(_start, task)):
        yield answer[0] if answer is not None else FileReport(shown_name(path, task.here), problem=ENDED)


class _Counted(Iterator[Looked]):
    """Files, counted as they are found."""

    def __init__(self, files: Iterator[Looked]) -> None:
        self._files = files
        self._count = 0
        self.total = 0

    def __next__(self) -> Looked:
        try:
            looked = next(self._files)
        except StopIteration:
            self.total = self._count
            raise
        self._count += 1
        return looked


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
