"""Tries the laws of tests/fuzz/laws.py on changed files of the corpus, on edit sequences, and on changed streams of messages.

    python -m tests.fuzz --minutes 10                      as many cases as ten minutes allow
    python -m tests.fuzz --files 50000 --edits 10000       so many, however long it takes
    python -m tests.fuzz --replay edits:0:4711             one case again
    python -m tests.fuzz --replay found/edits-0-4711.json  the same, whatever has become of the corpus

A run is told by its seed: the same seed makes the same cases. What breaks a law is written to `--out`, a file for each case. Exit code
1 where something did.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.fuzz.cases import Texts, case_of, changed_file, edited_file
from tests.fuzz.frames import changed_stream
from tests.fuzz.laws import Failure, Outcome, Trials

COMPARED = 10
"""Of so many changed files, one is also read as if it were alone. Edit sequences all are."""
SLOWEST = 10
EVERY = 15.0
"""Seconds between two lines of progress."""


@dataclass(slots=True)
class Report:
    """What a run came to."""

    files: int = 0
    edits: int = 0
    streams: int = 0
    documents: int = 0
    seconds: float = 0.0
    slowest: list[tuple[float, str]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    memory: list[tuple[int, float]] = field(default_factory=list)
    """(documents, MB) now and then."""

    def add(self, outcome: Outcome) -> None:
        self.documents += outcome.documents
        self.failures += outcome.failures
        self.slowest = sorted([*self.slowest, (outcome.seconds, outcome.case)], reverse=True)[:SLOWEST]


def run(minutes: float | None, files: int | None, edits: int | None, seed: str, start: int = 0) -> Iterator[Report]:
    """Runs, giving the report so far after each case. Without numbers, as many as the minutes allow; three files for each sequence."""
    report, began = Report(), time.monotonic()
    trials = Trials()
    number = start

    def over() -> bool:
        return minutes is not None and time.monotonic() - began > 60 * minutes

    wanted_files, wanted_edits = (files or 0, edits or 0) if files is not None or edits is not None else (10**9, 10**9)
    try:
        while not over() and (report.files < wanted_files or report.edits < wanted_edits):
            if report.files < wanted_files:
                for more in range(5):
                    case = changed_file(seed, 5 * number + more)
                    report.add(trials.trial(case, compare=more == 0 and number % 2 == 0, fixes=more == 1))
                    report.files += 1
            if report.edits < wanted_edits:
                report.add(trials.trial(edited_file(seed, number), compare=True))
                report.edits += 1
            failure = changed_stream(seed, number)
            report.streams += 1
            if failure is not None:
                report.failures.append(failure)
            number += 1
            report.seconds = time.monotonic() - began
            if not report.memory or report.documents >= report.memory[-1][0] + 1000:
                report.memory.append((report.documents, memory()))
            yield report
    finally:
        trials.end()


def memory() -> float:
    """MB that this process holds now; 0 where that cannot be told."""
    try:
        found = re.search(r"^VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0


def lines(report: Report) -> Iterator[str]:
    """The report for a reader."""
    yield (
        f"{report.files} changed files, {report.edits} edit sequences, {report.streams} streams: {report.documents} documents read in "
        f"{report.seconds:.0f} s"
    )
    yield "slowest, in seconds of CPU for one version:"
    yield from (f"  {seconds:6.2f}  {case}" for seconds, case in report.slowest)
    shown = report.memory[:: max(len(report.memory) // 8, 1)]
    yield "memory after so many documents: " + ", ".join(f"{mb:.0f} MB ({n})" for n, mb in shown)
    for failure in report.failures:
        said = failure.says.strip().splitlines() or [""]
        yield f"{failure.kind}: {failure.case} ({failure.name}): {said[-1] if failure.kind == 'crash' else said[0]}"
    yield f"{len(report.failures)} broke a law" if report.failures else "no law was broken"


def keep(failure: Failure, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "-", failure.case)
    (out / f"{name}.json").write_text(json.dumps(asdict(failure), indent=1), "utf-8")


def replay(what: str) -> int:
    """One case again, alone in its session; what it says is printed whole."""
    if what.endswith(".json"):
        kept = json.loads(Path(what).read_text("utf-8"))
        texts = Texts(kept["case"], kept["name"], tuple(kept["versions"]))
    elif what.startswith("frames:"):
        _, seed, number = what.rsplit(":", 2)
        failure = changed_stream(seed, int(number))
        print(failure.says if failure else "no law was broken")
        return 1 if failure else 0
    else:
        texts = case_of(what)
    trials = Trials()
    outcome = trials.trial(texts, compare=True, fixes=texts.case.startswith("file"))
    trials.end()
    print(
        f"{texts.name}, {len(texts.versions)} versions, {outcome.seconds:.2f} s of CPU at most; the last:\n{texts.versions[-1]}"
    )
    for failure in outcome.failures:
        print(f"{failure.kind}: {failure.says}")
    return 1 if outcome.failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, help="stop after so many minutes")
    parser.add_argument("--files", type=int, metavar="N", help="changed files to try")
    parser.add_argument("--edits", type=int, metavar="N", help="edit sequences to try")
    parser.add_argument("--seed", default="0", help="names the run; another seed makes other cases (default 0)")
    parser.add_argument(
        "--start", type=int, default=0, metavar="N", help="the number of the first case, to go on with a run"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("fuzz-found"),
        help="where cases that break a law are written (default fuzz-found)",
    )
    parser.add_argument("--replay", metavar="CASE", help="try one case again, named as in a report, or written by one")
    arguments = parser.parse_args()
    sys.setswitchinterval(1)
    if arguments.replay:
        return replay(arguments.replay)
    if arguments.minutes is None and arguments.files is None and arguments.edits is None:
        parser.error("say how long (--minutes), or how much (--files, --edits)")
    report, told, kept = Report(), time.monotonic(), 0
    try:
        for report in run(arguments.minutes, arguments.files, arguments.edits, arguments.seed, arguments.start):
            for failure in report.failures[kept:]:
                keep(failure, arguments.out)
                print(f"{failure.kind}: {failure.case} ({failure.name})", file=sys.stderr, flush=True)
            kept = len(report.failures)
            if time.monotonic() - told > EVERY:
                told = time.monotonic()
                print(f"{report.files} files, {report.edits} sequences, {memory():.0f} MB", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    print("\n".join(lines(report)))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
