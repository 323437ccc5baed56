"""Checks one file: text to analysis to plain data. One `Checker` lives in each process."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from spec_lsp.analysis.cache import Cache
from spec_lsp.analysis.check import analyse
from spec_lsp.analysis.faults import told
from spec_lsp.analysis.reading import read_document
from spec_lsp.analysis.report import Analysis, Diagnostic, Fix
from spec_lsp.catalog.release import Release
from spec_lsp.cli.files import Rewritten, rewrite, with_line_ends_of
from spec_lsp.cli.printed import harmless
from spec_lsp.cli.remembered import Question, Remembered
from spec_lsp.cli.report import FileReport, LaunchShown, OfferedFix, Replacement, ReportedFinding
from spec_lsp.cli.sources import Sources, shown_name
from spec_lsp.cli.surroundings import Folders, Surroundings
from spec_lsp.cli.walk import candidates
from spec_lsp.facts.model import ModelFacts
from spec_lsp.files import MAX_DOCUMENT, UnreadableError, read_named
from spec_lsp.interruption import Exhausted, bounded
from spec_lsp.records import dataclass, replace
from spec_lsp.syntax.launch import Edit
from spec_lsp.workspace import decode

if TYPE_CHECKING:
    from spec_lsp.analysis.fixes import Applied

T = TypeVar("T")

MAX_STEPS, STEPS_A_LAUNCH = 60_000, 250
"""How much work may be spent on the fixes of a file's findings, and the addition for each of its launches: each fix is tried on the whole
file. `--fix` also applies fixes of findings without any of these."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a run of `check` does with each file. `fixes`: whether the fixes of each finding are wanted; `paths`: the full paths that the
    command line names."""

    here: str
    paths: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    sglang: tuple[str, ...] = ()
    gpu: tuple[str, ...] = ()
    honour_ignores: bool = True
    fix: bool = False
    diff: bool = False
    unsafe: bool = False
    fixes: bool = True
    upgrade: str = ""
    """The release to compare with, empty if there is none."""
    overview: bool = False
    """Whether each launch is reported with what it resolves to."""
    remember: bool = False
    """Whether what was found before, and is found now, is kept in the user's cache folder."""


class Recording:
    """A workspace that remembers what it was asked, and the texts it gave: findings may lie in them."""

    def __init__(self, surroundings: Surroundings, name: str, text: str) -> None:
        self._workspace = surroundings.workspace
        self.texts = {name: text}
        self.asked: dict[Question, object] = {}

    def read(self, document: str, path: str) -> tuple[str, str] | None:
        found = self._answer(self._workspace.read(document, path), "read", document, path)
        if found is not None:
            self.texts.setdefault(*found)
        return found

    def left_out(self, document: str, path: str) -> str:
        return self._answer(self._workspace.left_out(document, path), "left_out", document, path)

    def model(self, document: str, path_or_id: str) -> ModelFacts | None:
        return self._answer(self._workspace.model(document, path_or_id), "model", document, path_or_id)

    def unreadable_model(self, document: str, path_or_id: str) -> str:
        found = self._workspace.unreadable_model(document, path_or_id)
        return self._answer(found, "unreadable_model", document, path_or_id)

    def release(self, document: str, python: str = "") -> tuple[Release, str] | None:
        return self._answer(self._workspace.release(document, python), "release", document, python)

    def unread_sglang(self, document: str, python: str = "") -> str:
        return self._answer(self._workspace.unread_sglang(document, python), "unread_sglang", document, python)

    def sglang_at(self, document: str, path: str) -> tuple[Release | None, str]:
        return self._answer(self._workspace.sglang_at(document, path), "sglang_at", document, path)

    def _answer(self, answer: T, *question: str) -> T:
        self.asked[question] = answer
        return answer


class Checker:
    """Checks files as a task says."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.folders = Folders(
            Path(task.here),
            task.sglang,
            task.gpu,
            paths=task.paths,
            honour_ignores=task.honour_ignores,
            models=task.models,
        )
        self._cache = Cache()
        self._named = frozenset(task.paths)
        # --fix writes, and --diff shows what it would write
        remembers = task.remember and not task.fix and not task.diff
        self._remembered = Remembered(replace(task, paths=())) if remembers else None

    def known(self, path: str) -> FileReport | None:
        """The report of a file, where all that it follows from is as it was when the file was checked before."""
        if self._remembered is None:
            return None
        try:
            return self._remembered.report(path, self.bytes(path), self._surroundings(path))
        except UnreadableError:
            return None

    def file(self, path: str) -> FileReport:
        """The report of a file, checked anew; never raises."""
        name = shown_name(path, self.task.here)
        try:
            data = self.bytes(path)
            text, surroundings = decode(data), self._surroundings(path)
            workspace = Recording(surroundings, path, text)
            report = self._report(path, text, workspace, surroundings, on_disk=True)
            if self._remembered is not None:
                self._remembered.keep(path, data, surroundings, workspace.asked, report)
            return report
        except UnreadableError as error:
            return FileReport(name, problem=str(error))
        except Exception:
            import traceback

            return FileReport(name, failure=traceback.format_exc())

    def bytes(self, path: str) -> bytes:
        """The bytes of a file: a named one wherever it is, one found in a folder only if it is in the workspace. Raises UnreadableError."""
        return read_named(path) if path in self._named else self.folders.area.read(path, MAX_DOCUMENT)

    def text(self, path: str, text: str) -> FileReport:
        """The report of a text that would be the file at `path`."""
        surroundings = self._surroundings(path)
        return self._report(path, text, Recording(surroundings, path, text), surroundings, on_disk=False)

    def _report(
        self, path: str, text: str, workspace: Recording, surroundings: Surroundings, *, on_disk: bool
    ) -> FileReport:
        if self.task.upgrade and not (self.task.fix or self.task.diff):
            return self._upgrade(path, text, workspace, surroundings)
        analysis = self._analyse(path, text, workspace, surroundings)
        report = FileReport(
            shown_name(path, self.task.here),
            launches=len(analysis.launches),
            ignored=analysis.ignored,
            faults=analysis.faults,
        )
        if (self.task.fix or self.task.diff) and analysis.diagnostics:
            return self._repaired(report, analysis, workspace, surroundings, on_disk)
        return self._with_findings(report, analysis, workspace, surroundings)

    def _analyse(self, path: str, text: str, workspace: Recording, surroundings: Surroundings) -> Analysis:
        return analyse(read_document(path, text, workspace), surroundings.options, workspace, self._cache)

    def _surroundings(self, path: str) -> Surroundings:
        """With --fix or --diff, a file is fixed for the release that it is upgraded to."""
        found = self.folders.of(path)
        if not self.task.upgrade or not (self.task.fix or self.task.diff):
            return found
        return replace(found, options=replace(found.options, release=Release.parse(self.task.upgrade)))

    def _upgrade(self, path: str, text: str, workspace: Recording, surroundings: Surroundings) -> FileReport:
        """What another release refuses or changes, compared with the present one."""
        from spec_lsp.analysis.fixes import fixes_for
        from spec_lsp.analysis.upgrade import upgrade

        document = read_document(path, text, workspace)
        result = upgrade(document, surroundings.options, workspace, Release.parse(self.task.upgrade), self._cache)
        sources = Sources(workspace.texts, self.task.here)
        found = []
        for diagnostic in result.diagnostics:
            fixes = (
                fixes_for(result.analysis, diagnostic, result.options, workspace, self._cache)
                if self.task.fixes
                else ()
            )
            found.append(found_of(diagnostic, fixes, sources))
        return FileReport(
            shown_name(path, self.task.here),
            found=tuple(found),
            launches=len(result.analysis.launches),
            ignored=result.analysis.ignored,
            faults=result.analysis.faults,
            overview=self._overview(result.analysis, sources),
        )

    # --- findings

    def _with_findings(
        self, report: FileReport, analysis: Analysis, workspace: Recording, surroundings: Surroundings
    ) -> FileReport:
        """The report with the findings, each with its fixes."""
        sources = Sources(workspace.texts, self.task.here)
        found, faults = [], list(analysis.faults)
        wanted = self.task.fixes
        with bounded(MAX_STEPS + STEPS_A_LAUNCH * len(analysis.launches)):
            for number, diagnostic in enumerate(analysis.diagnostics):
                fixes: Sequence[Fix] = ()
                try:
                    if wanted:
                        from spec_lsp.analysis.fixes import fixes_for  # many files have no finding

                        fixes = fixes_for(analysis, diagnostic, surroundings.options, workspace, self._cache)
                except Exhausted:
                    wanted = False
                    note = (
                        f"{report.file}: fixes are shown for the first {number} of {len(analysis.diagnostics)} findings"
                    )
                    report = replace(report, notes=(*report.notes, note))
                except Exception as error:
                    faults.append(told(error))
                found.append(found_of(diagnostic, fixes, sources))
        return replace(report, found=tuple(found), faults=tuple(faults), overview=self._overview(analysis, sources))

    def _overview(self, analysis: Analysis, sources: Sources) -> tuple[LaunchShown, ...]:
        """Each launch with what it resolves to, if the task wants that."""
        if not self.task.overview:
            return ()
        from spec_lsp.analysis.overview import overview

        return tuple(
            LaunchShown(sources.bare(one.place), one.title, one.program, one.assumed, one.outcome, one.fields)
            for one in map(overview, analysis.launches)
        )

    # --- fixes

    def _repaired(
        self, report: FileReport, before: Analysis, workspace: Recording, surroundings: Surroundings, on_disk: bool
    ) -> FileReport:
        """The report after fix-all with the findings that remain; failures to write are reported."""
        from spec_lsp.analysis.fixes import repair

        path, text = before.document.name, before.document.text
        unsafe = self.task.unsafe or surroundings.settings.unsafe_fixes
        refused: set[str] = set()

        def may_edit(document: str) -> bool:
            may = document == path or (on_disk and document in self._editable)
            if not may:
                refused.add(document)
            return may

        edits, applied = repair(path, text, surroundings.options, workspace, unsafe=unsafe, may_edit=may_edit)
        notes = (
            f"{shown_name(d, self.task.here)} is not among the files to check: it is not changed"
            for d in sorted(refused)
        )
        report = replace(report, notes=(*report.notes, *notes))
        texts = _changed(edits, workspace.texts)
        if self.task.diff:
            diff = "".join(self._diff(name, workspace.texts[name], new) for name, new in sorted(texts.items()))
            return replace(self._with_findings(report, before, workspace, surroundings), diff=diff)
        if on_disk:
            try:
                rewrite({n: Rewritten(workspace.texts[n], new) for n, new in texts.items()}, self.folders.area)
            except UnreadableError as error:
                problem, concerned = error.args
                told_ = (
                    problem
                    if concerned == path
                    else f"is not repaired: {shown_name(concerned, self.task.here)} {problem}"
                )
                return replace(self._with_findings(report, before, workspace, surroundings), problem=told_)
            for name in texts:
                self.folders.forget_file(name)
        fixed = Recording(surroundings, path, texts.get(path, text))
        after = self._analyse(path, texts.get(path, text), fixed, surroundings)
        return replace(
            self._with_findings(report, after, fixed, surroundings),
            fixed=tuple(map(self._told, applied)) if texts else (),
            text=None if on_disk else texts.get(path, text),
        )

    @cached_property
    def _editable(self) -> frozenset[str]:
        """The files that are named, or were found and are not excluded: no other is changed."""
        found = candidates(self.task.paths, self.folders.area)
        return frozenset(c.path for c in found if c.named or not self.folders.of(c.path).excludes(c.path))

    def _told(self, applied: Applied) -> str:
        """One line for a fix."""
        rule = applied.diagnostic.rule
        name = shown_name(applied.diagnostic.place.document, self.task.here)
        return f"{name}:{applied.line + 1}: {rule.name}[{rule.code}]: {applied.fix.title}"

    def _diff(self, name: str, old: str, new: str) -> str:
        import difflib

        shown = harmless(shown_name(name, self.task.here))
        lines = difflib.unified_diff(_lines(old), _lines(new), shown, shown)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def found_of(diagnostic: Diagnostic, fixes: Sequence[Fix], sources: Sources) -> ReportedFinding:
    """A diagnostic as plain data."""
    rule = diagnostic.rule
    location = sources.location(diagnostic.place)
    print_ = hashlib.sha256(
        f"{location.file}\0{diagnostic.key}\0{diagnostic.message}".encode(errors="replace")
    ).hexdigest()
    return ReportedFinding(
        rule.name,
        rule.code,
        diagnostic.severity,
        diagnostic.message,
        location,
        diagnostic.late,
        tuple((sources.location(r.place), r.message) for r in diagnostic.related),
        tuple(_offered(fix, sources) for fix in fixes),
        print_[:32],
    )


def _offered(fix: Fix, sources: Sources) -> OfferedFix:
    edits = tuple(Replacement(sources.bare(e.place), e.text) for e in fix.edits)
    return OfferedFix(fix.title, fix.applicability, edits, fix.preferred, fix.guess)


def _changed(edits: Sequence[Edit], texts: Mapping[str, str]) -> dict[str, str]:
    """The new texts of the documents that the edits change."""
    from spec_lsp.analysis.fixes import apply

    new = {}
    for document in dict.fromkeys(e.place.document for e in edits):
        old = texts[document]
        own = [replace(e, text=with_line_ends_of(old, e.text)) for e in edits if e.place.document == document]
        changed = apply(old, own)
        if changed is not None and changed != old:
            new[document] = changed
    return new


def _lines(text: str) -> list[str]:
    """Lines as diff and patch count them: a line ends at a line feed and nowhere else."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
