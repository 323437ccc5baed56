"""Whether a file works with another release of SGLang, and what changes: each launch at its own release is compared with the same launch at
that one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from spec_lsp.analysis.cache import Cache
from spec_lsp.analysis.check import analyse, with_severity
from spec_lsp.analysis.diagnostics import in_order, setting_place
from spec_lsp.analysis.inputs import Options, Workspace
from spec_lsp.analysis.report import Analysis, Diagnostic, LaunchReport, Run
from spec_lsp.analysis.rules import CHANGED_VALUE
from spec_lsp.analysis.worlds import NOT_NAMED, OLDER_WORLDS, newest
from spec_lsp.catalog.binding import Unknown
from spec_lsp.catalog.release import Release
from spec_lsp.records import dataclass, replace
from spec_lsp.resolution.internal_fields import INTERNAL
from spec_lsp.syntax.launch import Document
from spec_lsp.syntax.word import Place


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What changes. `analysis` is the document at the target with all its findings, `options` those that it was made with; fixes are made
    from both. `diagnostics` are its findings that are new there, and the values that differ."""

    analysis: Analysis
    options: Options
    diagnostics: tuple[Diagnostic, ...]
    present: tuple[Release, ...]
    """The releases that were compared with, one for each launch."""


def upgrade(
    document: Document, options: Options, workspace: Workspace, target: Release, cache: Cache | None = None
) -> Upgrade:
    """Compare the document as it is with the document at `target`.

    A launch whose release nobody names is compared with the newest release before the target that accepts it, since it presumably runs
    today.
    """
    cache = cache if cache is not None else Cache()
    there = replace(options, release=target)
    after = analyse(document, there, workspace, cache)
    before = dict(_present(document, options, workspace, target, cache))
    found = [d for d in after.diagnostics if d.launch is not None and not _told(d, before[d.launch])]
    for index, report in enumerate(after.launches):
        found += _changed_values(before[index].launches[index], report, index)
    kept = [d for d in (with_severity(d, options) for d in found) if d is not None]
    present = tuple(before[i].launches[i].worlds[0].release for i in range(len(after.launches)))
    return Upgrade(after, there, in_order(kept), present)


def _present(
    document: Document, options: Options, workspace: Workspace, target: Release, cache: Cache
) -> Iterator[tuple[int, Analysis]]:
    """Each launch of the document with the analysis at its present release."""
    own = analyse(document, options, workspace, cache)
    older: list[Analysis] = []
    for index, report in enumerate(own.launches):
        if any(w.release_from != NOT_NAMED for w in report.worlds):
            yield index, own
            continue
        if not older:
            older = [
                analyse(document, replace(options, release=r), workspace, cache)
                for r in sorted((newest(), *OLDER_WORLDS), reverse=True)
                if r < target
            ] or [own]
        yield index, next((a for a in older if not _refused(a, index)), older[0])


def _refused(analysis: Analysis, launch: int) -> bool:
    return any(d.launch == launch and d.severity == "error" for d in analysis.diagnostics)


def _told(diagnostic: Diagnostic, before: Analysis) -> bool:
    """Whether the launch already has the finding, with the same severity or a worse one."""
    severities = ("error", "warning", "information", "hint")
    return any(
        d.rule is diagnostic.rule
        and d.place == diagnostic.place
        and severities.index(d.severity) <= severities.index(diagnostic.severity)
        for d in before.diagnostics
    )


# --- values ------------------------------------------------------------------------------------------------------------


def _changed_values(before: LaunchReport, after: LaunchReport, index: int) -> Iterator[Diagnostic]:
    """The fields that both releases have and resolve to different values, on the same hardware."""
    old, new = before.main(), after.main()
    if old.resolution is None or new.resolution is None or old.resolution.refused or new.resolution.refused:
        return
    if old.world.hardware != new.world.hardware:
        return
    was, becomes = old.resolution.config.fields(), new.resolution.config.fields()
    for field in sorted(was.keys() & becomes.keys() - INTERNAL.keys()):
        if _differ(was[field], becomes[field]) and _comparable(old, new, field):
            yield _changed(old, new, field, was[field], becomes[field], index, after.launch.place)


def _differ(one: Any, other: Any) -> bool:
    """Whether values differ to a reader: unset and off count as the same."""
    return (one or None) != (other or None) if one in (None, False) or other in (None, False) else bool(one != other)


def _comparable(old: Run, new: Run, field: str) -> bool:
    """Whether both releases have a flag for the field, and no value was typed that only one of them accepts."""
    if field not in old.binding.catalog.by_field or field not in new.binding.catalog.by_field:
        return False
    settings = [r.binding.settings.get(field) for r in (old, new)]
    return not any(s is not None and isinstance(s.value, Unknown) for s in settings)


def _changed(old: Run, new: Run, field: str, was: Any, becomes: Any, index: int, launch: Place) -> Diagnostic:
    assert new.resolution is not None
    setting = new.binding.settings.get(field)
    place = setting_place(setting) if setting is not None and setting.flag.fragments else launch
    history = [d for d in new.resolution.config.history.get(field, ()) if not d.step.spelling]
    reason = f": {history[-1].step.reason}" if history else ", its default."
    releases = old.binding.catalog.release, new.binding.catalog.release
    name = new.binding.catalog.by_field[field].name
    message = f"`{name}` is {_shown(was)} in SGLang {releases[0]} and {_shown(becomes)} in {releases[1]}{reason}"
    return Diagnostic(
        CHANGED_VALUE, CHANGED_VALUE.severity, message, place, f"{CHANGED_VALUE.name}:{index}:{field}", launch=index
    )


def _shown(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"`{_short(value)}`"


def _short(value: Any, most: int = 60) -> str:
    """A long list abbreviated to its first and last items."""
    text = " ".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 3 :]}"
