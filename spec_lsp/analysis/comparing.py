"""One document on several targets, side by side: what each release or GPU refuses, and what it resolves to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from spec_lsp.analysis.cache import Cache
from spec_lsp.analysis.check import analyse
from spec_lsp.analysis.inputs import Options, Target, Workspace
from spec_lsp.analysis.merge import Outcome
from spec_lsp.analysis.report import Analysis, LaunchReport
from spec_lsp.records import NamedTuple, dataclass, replace
from spec_lsp.resolution.engine import Severity
from spec_lsp.syntax.launch import Document
from spec_lsp.syntax.word import Place

OFF = "off or not set"
NOT_THERE = "—"
"""Shown for a field that the release does not have, or a launch that it does not accept."""


class Remark(NamedTuple):
    """A finding of one launch on one target."""

    rule: str
    severity: Severity
    message: str


@dataclass(frozen=True, slots=True)
class Side:
    """One launch on one target: what SGLang does with it, and its errors and warnings."""

    target: str
    outcome: Outcome
    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that is known on every side but differs; `values` holds one text for each side."""

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One launch (by its place) on each target."""

    place: Place
    sides: tuple[Side, ...]
    differences: tuple[Difference, ...]


def compare(
    document: Document, options: Options, workspace: Workspace, targets: Sequence[Target], cache: Cache | None = None
) -> tuple[Comparison, ...]:
    """Each launch of the document on each target. A target that names nothing stands for the worlds that the document itself leaves."""
    cache = cache if cache is not None else Cache()
    analyses = [analyse(document, _at(options, target), workspace, cache) for target in targets]
    return tuple(
        Comparison(
            launch.place,
            tuple(_side(a, index, target) for a, target in zip(analyses, targets, strict=True)),
            tuple(_differences([a.launches[index] for a in analyses])),
        )
        for index, launch in enumerate(document.launches)
    )


def _at(options: Options, target: Target) -> Options:
    if target == Target():
        return replace(options, targets=(), otherwise=Target())
    return replace(options, targets=(target,))


def _side(analysis: Analysis, index: int, target: Target) -> Side:
    report = analysis.launches[index]
    told = (d for d in analysis.diagnostics if d.launch == index and d.severity in ("error", "warning"))
    remarks = dict.fromkeys(Remark(d.rule.name, d.severity, d.message) for d in told)
    outcome: Outcome = report.verdict.outcome if report.verdict else "unknown"
    return Side(str(target) or "any release and GPU", outcome, tuple(remarks))


def _differences(reports: Sequence[LaunchReport]) -> Iterator[Difference]:
    """The fields whose values differ, in the order of SGLang's flags. A value that is unknown on one side is not counted as different."""
    resolved = [dict(_resolved(report)) for report in reports]
    for name in dict.fromkeys(name for one in resolved for name in one):
        values = [one.get(name, NOT_THERE) for one in resolved]
        told = [value for value in values if value is not None]
        if len(told) == len(values) and len({OFF if value == NOT_THERE else value for value in told}) > 1:
            yield Difference(name, tuple(told))


def _resolved(report: LaunchReport) -> Iterator[tuple[str, str | None]]:
    """The text of every field of the release, None where the value is unknown."""
    run = report.main()
    if run.resolution is None:
        return
    config = run.resolution.config
    values, unknown = config.fields(), config.unknown()
    for name in run.binding.catalog.by_field:
        if name in unknown:
            yield name, None
        elif name in values:
            yield name, _text(values[name])


def _text(value: Any) -> str:
    """A value as in JSON, but text without quotes. Off and unset look the same, as they do to SGLang's switches."""
    if value is None or value is False:
        return OFF
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
