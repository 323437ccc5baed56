"""What holds of every text: it is read and judged without a fault, in bounded time, and what is said of it depends on nothing seen before."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from spec_lsp.analysis import analyse, read_document
from spec_lsp.analysis.cache import Cache
from spec_lsp.analysis.fixes import fixes_for
from spec_lsp.analysis.inputs import Options, Target
from spec_lsp.analysis.report import Analysis
from spec_lsp.facts.hardware import find
from tests.analysis.support import Memory
from tests.fuzz.cases import FOLDER, Texts

MAX_SECONDS = 2.0
"""Of CPU, for one version of a document."""
GIVEN_UP = 6.0
"""Seconds of CPU after which a case is stopped."""
NEIGHBOURS = Memory({f"{FOLDER}/env.sh": "MODEL=x\nTP=8\n", f"{FOLDER}/x.yaml": "page-size: 7\ntp-size: 2\n"})
OPTIONS = (Options(), Options(targets=(Target(hardware=find("h100")),)))


@dataclass(frozen=True, slots=True)
class Failure:
    """A law that a case breaks. `kind` is "crash", "slow" or "difference"."""

    case: str
    kind: str
    says: str
    name: str
    versions: tuple[str, ...]
    """The versions of the document up to the one that failed."""


@dataclass(slots=True)
class Outcome:
    """What came of one case."""

    case: str
    seconds: float = 0.0
    """The most CPU that one version took."""
    documents: int = 0
    failures: list[Failure] = field(default_factory=list)


class GaveUp(BaseException):
    """A case took longer than anybody waits."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises GaveUp within, after so many seconds of CPU. Main thread, POSIX; elsewhere nothing is limited."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise GaveUp

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Trials:
    """Tries cases, one after the other, as one long session."""

    def __init__(self) -> None:
        self._apart = Apart() if hasattr(os, "fork") else None
        self._cache = Cache()

    def end(self) -> None:
        if self._apart is not None:
            self._apart.end()

    def trial(self, texts: Texts, *, compare: bool, fixes: bool = False) -> Outcome:
        """Analyses each version in the session; with `compare`, the last one also as if it were the first thing ever seen."""
        outcome = Outcome(texts.case)
        options = OPTIONS[sum(map(ord, texts.case)) % 2]
        analysis = None
        for number, text in enumerate(texts.versions, 1):
            versions = texts.versions[:number]
            began = time.process_time()
            try:
                with at_most(GIVEN_UP):
                    analysis = analysed(texts.name, text, options, self._cache)
                    if fixes and number == len(texts.versions):
                        for diagnostic in analysis.diagnostics[:3]:
                            fixes_for(analysis, diagnostic, options, NEIGHBOURS, self._cache)
            except (Exception, GaveUp) as error:
                kind = "slow" if isinstance(error, GaveUp) else "crash"
                outcome.failures.append(Failure(texts.case, kind, _told(error), texts.name, versions))
                return outcome
            took = time.process_time() - began
            outcome.seconds = max(outcome.seconds, took)
            outcome.documents += 1
            if analysis.faults:
                outcome.failures.append(Failure(texts.case, "crash", analysis.faults[0], texts.name, versions))
                return outcome
            if took > MAX_SECONDS:
                outcome.failures.append(Failure(texts.case, "slow", f"{took:.1f} s of CPU", texts.name, versions))
        if compare and analysis is not None and self._apart is not None:
            fresh = self._apart.seen(texts.name, texts.versions[-1], options)
            said = difference(fresh, seen(analysis))
            if said:
                outcome.failures.append(Failure(texts.case, "difference", said, texts.name, texts.versions))
        return outcome


def analysed(name: str, text: str, options: Options, cache: Cache) -> Analysis:
    return analyse(read_document(name, text, NEIGHBOURS), options, NEIGHBOURS, cache)


def seen(analysis: Analysis) -> dict[str, Any]:
    """All that is said of a document, as plain data."""
    document = analysis.document
    return {
        "diagnostics": [
            (d.rule.name, d.severity, d.message, d.place, d.related, d.launch, d.also, d.key)
            for d in analysis.diagnostics
        ],
        "launches": [repr(launch) for launch in document.launches],
        "outcomes": [r.verdict.outcome if r.verdict else "" for r in analysis.launches],
        "problems": [repr(p) for p in document.problems],
        "directives": [repr(d) for d in document.directives],
        "depends_on": sorted(analysis.depends_on),
    }


def difference(fresh: Any, found: Any) -> str:
    """The first thing that is said otherwise than by who sees the document alone; empty for none."""
    if isinstance(fresh, str):
        return fresh
    for key, value in fresh.items():
        if value != found[key]:
            one, other = next((a, b) for a, b in zip_longest(value, found[key]) if a != b)
            return f"{key}: alone\n  {one}\nin the session\n  {other}"
    return ""


def _told(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


# --- as if nothing had been seen before ----------------------------------------------------------------------------------


class Apart:
    """A copy of this process from before it saw the documents of a run. A copy of the copy answers each question, and is gone. POSIX."""

    def __init__(self) -> None:
        analysed(f"{FOLDER}/first.sh", "python -m sglang.launch_server --model-path x --tp 2\n", OPTIONS[0], Cache())
        self._questions, self._answers = multiprocessing.Pipe(), multiprocessing.Pipe()
        self._pid = os.fork()
        if self._pid == 0:
            self._serve()

    def _serve(self) -> None:
        while True:
            question = self._questions[1].recv()
            if question is None:
                os._exit(0)
            child = os.fork()
            if child == 0:
                try:
                    with at_most(GIVEN_UP):
                        name, text, options = question
                        answer: Any = seen(analysed(name, text, options, Cache()))
                except BaseException as error:
                    answer = _told(error)
                self._answers[1].send(answer)
                os._exit(0)
            os.waitpid(child, 0)

    def seen(self, name: str, text: str, options: Options) -> Any:
        """What is `seen` of a document by who never saw another; a traceback where it cannot be analysed."""
        self._questions[0].send((name, text, options))
        return self._answers[0].recv()

    def end(self) -> None:
        self._questions[0].send(None)
        os.waitpid(self._pid, 0)
