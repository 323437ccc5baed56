"""`spec-lsp verify`: asks the installed SGLang about launches."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spec_lsp.analysis.check import analyse
from spec_lsp.analysis.reading import read_document
from spec_lsp.analysis.report import Analysis, LaunchReport
from spec_lsp.analysis.rules import all_rules
from spec_lsp.asking.interpreter import interpreter
from spec_lsp.asking.process import CannotAskError
from spec_lsp.asking.verdicts import DISAGREEMENTS, Verdict
from spec_lsp.asking.verify import Desk, Told, devices, summary, told, verify
from spec_lsp.cli.check import files_to_read, named_paths
from spec_lsp.cli.checker import Checker, Recording, Task
from spec_lsp.cli.errors import CLEAN, FAILED, FINDINGS, TERMINATED, UsageError
from spec_lsp.cli.excerpt import excerpt
from spec_lsp.cli.files import write_text
from spec_lsp.cli.formats.text import headline
from spec_lsp.cli.printed import harmless, in_utf_8, json_text
from spec_lsp.cli.progress import Progress
from spec_lsp.cli.sources import Sources, shown_name
from spec_lsp.cli.style import Style, style_for
from spec_lsp.cli.surroundings import Surroundings
from spec_lsp.cli.worlds import read_gpu
from spec_lsp.files import UnreadableError
from spec_lsp.workspace import decode


def run(arguments: argparse.Namespace) -> int:
    """Ask about every launch. Exit code 1 when SGLang refuses one, or disagrees with spec-lsp; 2 when something could not be asked."""
    all_rules()
    for gpu in arguments.gpu:
        read_gpu(gpu)
    task = Task(str(Path.cwd()), named_paths(arguments), tuple(arguments.models), (), tuple(arguments.gpu))
    shown = _Shown(arguments, task.here)
    try:
        with terminating(), Desk(interpreter(arguments.python)) as desk:
            for path in files_to_read(arguments, task, shown.checker.folders, shown.progress):
                shown.file(path, desk)
    except CannotAskError as error:
        raise UsageError(str(error)) from error
    return shown.end()


@contextmanager
def terminating() -> Iterator[None]:
    """Let SIGTERM end the command as Ctrl-C does: SGLang's process is ended, and its folder removed."""
    if (
        threading.current_thread() is not threading.main_thread()
    ):  # called from another program's thread, which handles signals itself
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Shown:
    """Shows the answers, and counts them."""

    def __init__(self, arguments: argparse.Namespace, here: str) -> None:
        self._arguments = arguments
        self._style = style_for(sys.stdout, arguments.color)
        self._reports: dict[str, None] = {}
        self._launches = 0
        self._bad = self._failed = False
        self.progress = Progress()
        self.checker = Checker(Task(here, named_paths(arguments), tuple(arguments.models), (), tuple(arguments.gpu)))

    def file(self, path: str, desk: Desk) -> None:
        name = shown_name(path, self.checker.task.here)
        try:
            text = decode(self.checker.bytes(path))
        except UnreadableError as error:
            self.progress.clear()
            print(f"spec-lsp: error: {harmless(name)} {harmless(str(error))}", file=sys.stderr)
            self._failed = True
            return
        around = self.checker.folders.of(path)
        workspace = Recording(around, path, text)
        analysis = analyse(read_document(path, text, workspace), around.options, workspace)
        for index in range(len(analysis.launches)):
            self._launch(analysis, index, around, Sources(workspace.texts, self.checker.task.here), desk)

    def _launch(self, analysis: Analysis, index: int, around: Surroundings, sources: Sources, desk: Desk) -> None:
        report = analysis.launches[index]
        self._launches += 1
        for device, own in devices(report):
            verdicts = verify(analysis, index, around.workspace, desk.sglang(device, own))
            findings = told(analysis, report.launch, verdicts, around.workspace)
            self._bad |= bool(findings)
            self._reports.update(dict.fromkeys(v.report() for v in verdicts if v.relation in DISAGREEMENTS))
            self.progress.clear()
            if self._arguments.json:
                for verdict in verdicts:
                    print(json_text(as_json(verdict, sources)), file=in_utf_8(sys.stdout), flush=True)
            else:
                print("\n".join(_lines(report, verdicts, findings, sources, self._style)), flush=True)

    def end(self) -> int:
        """Print the summary; returns the exit code."""
        self.progress.clear()
        if not self._launches and not self._arguments.json:
            print("No launch of SGLang was found.")
        if self._arguments.report:
            try:
                write_text(self._arguments.report, "\n".join(self._reports))
            except UnreadableError as error:
                raise UsageError(f"`{self._arguments.report}` {error}") from error
        elif self._reports and not self._arguments.json:
            print(f"\n{PLEASE}\n\n{_first(self._reports)}")
        return FAILED if self._failed else FINDINGS if self._bad else CLEAN


PLEASE = "spec-lsp and SGLang disagree. Please report it, after a look at what of this is nobody else's business:"
MAX_REPORTS = 3
"""The most disagreements that are printed in full; `--report` writes all."""


def _first(reports: Collection[str]) -> str:
    first = list(reports)[:MAX_REPORTS]
    more = len(reports) - len(first)
    lines = [harmless(line) for report in first for line in report.splitlines()]
    return "\n".join([*lines, *([f"({more} more: `--report FILE` writes all of them)"] if more else [])])


def _lines(
    report: LaunchReport, verdicts: Sequence[Verdict], findings: Sequence[Told], sources: Sources, style: Style
) -> Iterator[str]:
    at = sources.bare(verdicts[0].way.launch.place)
    where = f"{harmless(at.file)}:{at.start.line + 1}:{at.start.character + 1}"
    yield f"{style.paint(where, 'bold')}: {harmless(summary(report, verdicts))}"
    for found in findings:
        where = f" ({found.verdict.where})" if found.verdict.where else ""
        yield headline(found.severity, f"sglang[{found.code}]", f"{found.message}{where}", style)
        yield from excerpt(sources.location(found.place), (), found.severity, style)


def as_json(verdict: Verdict, sources: Sources) -> dict[str, Any]:
    """One way of a launch: where it is, what SGLang says, and how that compares. Positions count from 0."""
    at, answer = sources.bare(verdict.place), verdict.answer
    return {
        "file": at.file,
        "start": {"line": at.start.line, "character": at.start.character},
        "end": {"line": at.end.line, "character": at.end.character},
        "when": [choice.taken for choice in verdict.way.launch.variants[verdict.way.variant].choices],
        "sglang": verdict.ready.version,
        "device": verdict.ready.device,
        "simulated": verdict.ready.simulated,
        "relation": verdict.relation,
        "outcome": answer.get("outcome"),
        "words": verdict.words or None,
        "raised": verdict.where or None,
        "reason": verdict.reason if verdict.relation in ("not-asked", "unanswered") else None,
        "rules": [rule.name for rule in verdict.rules],
        "differing": [{"field": f, "sglang": theirs, "spec-lsp": own} for f, theirs, own in verdict.differing],
        "report": verdict.report() if verdict.relation in DISAGREEMENTS else None,
    }
