"""Distributes work over processes. If one dies, its current work is lost, and the caller is told."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from typing import Any, TypeVar

from spec_lsp.cli.garbage import COLLECT_EVERY

Chunk = TypeVar("Chunk")
Answer = TypeVar("Answer")

AHEAD = 2
"""How many chunks a process has at a time, so that the next one is there when it has finished one."""


def spread(
    chunks: Iterable[Chunk], workers: int, start: Callable[[], Callable[[Chunk], Answer]]
) -> Iterator[tuple[Chunk, Answer | None]]:
    """Each chunk with its result, in order; None if its process died (killed, or out of memory).

    Every process creates the function that works on chunks with `start`. `chunks` may still be collected: the first ones are started
    already. If no process can be started, the work is done in this one. The processes are ended in any case.
    """
    crew = _Crew(workers, start)
    taken: dict[int, Chunk] = {}
    answers: dict[int, Any] = {}
    given_back = 0
    source = enumerate(chunks)
    more = True
    try:
        while more or given_back < len(taken):
            chunk = next(source, None) if more else None
            more = chunk is not None
            if chunk is not None:
                taken[chunk[0]] = chunk[1]
                crew.waiting.append(chunk)
            answers.update(crew.turn(patient=not more))
            while given_back in answers:
                yield taken[given_back], answers.pop(given_back)
                given_back += 1
    finally:
        crew.dismiss()


class _Worker:
    """A process, and the chunks that it was given and has not answered, by number."""

    def __init__(self, context: BaseContext, start: Callable[[], Any], others: Iterable[Connection]) -> None:
        self.pipe, theirs = context.Pipe()
        inherited = [self.pipe, *others] if context.get_start_method() == "fork" else []
        self.given: deque[tuple[int, Any]] = deque()
        self.process = context.Process(target=_serve, args=(theirs, inherited, start), daemon=True)  # type: ignore[attr-defined]
        try:
            self.process.start()
        except OSError:
            self.pipe.close()
            raise
        finally:
            theirs.close()

    def give(self, chunk: tuple[int, Any]) -> None:
        self.given.append(chunk)
        try:
            self.pipe.send(chunk)
        except OSError:
            return  # it has died, as the end of its pipe shows


class _Crew:
    """The processes, started as there is work for them."""

    def __init__(self, most: int, start: Callable[[], Any]) -> None:
        forks = "fork" in multiprocessing.get_all_start_methods()
        self._context = multiprocessing.get_context("fork" if forks else "spawn")
        self._most = most
        self._start = start
        self._workers: list[_Worker] = []
        self._alone: Callable[[Any], Any] | None = None
        self.waiting: deque[tuple[int, Any]] = deque()

    def turn(self, *, patient: bool) -> dict[int, Any]:
        """Hand out waiting chunks and collect results; `patient`: wait for a result."""
        self._hand_out()
        if self._alone is not None:
            return {number: self._alone(chunk) for number, chunk in self._drained()}
        busy = [worker for worker in self._workers if worker.given]
        ready = wait([worker.pipe for worker in busy], None if patient and busy else 0)
        answers: dict[int, Any] = {}
        for worker in [worker for worker in busy if worker.pipe in ready]:
            answers.update(self._taken_in(worker))
        return answers

    def _taken_in(self, worker: _Worker) -> dict[int, Any]:
        try:
            number, answer = worker.pipe.recv()
        except (EOFError, OSError):
            return self._lost(worker)
        worker.given.popleft()
        return {number: answer}

    def _hand_out(self) -> None:
        for ahead in range(AHEAD):
            while self.waiting:
                idle = next((worker for worker in self._workers if len(worker.given) <= ahead), None) or self._hire()
                if idle is None:
                    break
                idle.give(self.waiting.popleft())

    def _hire(self) -> _Worker | None:
        if len(self._workers) >= self._most:
            return None
        try:
            worker = _Worker(self._context, self._start, [one.pipe for one in self._workers])
        except OSError:
            if not self._workers:
                self._alone = self._start()
            return None
        self._workers.append(worker)
        return worker

    def _drained(self) -> Iterator[tuple[int, Any]]:
        while self.waiting:
            yield self.waiting.popleft()

    def _lost(self, worker: _Worker) -> dict[int, Any]:
        """A process has died: its current chunk is lost, the ones that it had not begun are given to others."""
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.join()
        lost = [worker.given.popleft()] if worker.given else []
        self.waiting.extendleft(reversed(worker.given))
        return {number: None for number, _ in lost}

    def dismiss(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()


def _serve(pipe: Connection, inherited: Iterable[Connection], start: Callable[[], Callable[[Any], Any]]) -> None:
    """The main loop of a process: until the pipe is closed, at the latest when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent
    for other in inherited:
        other.close()  # a copy of the parent's end, which must be the only one
    gc.freeze()  # what is loaded now is never garbage
    gc.set_threshold(COLLECT_EVERY)
    work = start()
    with suppress(EOFError, OSError):  # the parent has gone
        while True:
            number, chunk = pipe.recv()
            pipe.send((number, work(chunk)))
