"""Inlay hints beside a launch: values that SGLang changes, and the few important ones that it chooses.

Plain data in character offsets. A value is shown only if every world that accepts the launch agrees on it, and nothing is shown for a
launch that SGLang refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.report import Analysis, LaunchReport, Run
from spec_lsp.analysis.run import RunResult
from spec_lsp.analysis.worlds import NOT_NAMED
from spec_lsp.catalog.binding import Setting, Unknown
from spec_lsp.facts.known import NotKnown
from spec_lsp.records import dataclass
from spec_lsp.resolution.engine import Config, Decision
from spec_lsp.syntax.word import Place

Kind = Literal["changed", "chosen"]
"""changed: after a value that SGLang will replace (`→ 64`); chosen: at the end of a launch, its choices (`chosen: page size 64`)."""

CHOSEN = ("attention_backend", "page_size")
"""Fields that are shown for every launch, in this order."""

CHOSEN_FOR_DRAFTS = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
"""Fields that are shown for a launch that drafts."""

SHORT = {
    "attention_backend": "attention",
    "page_size": "page size",
    "speculative_num_steps": "steps",
    "speculative_eagle_topk": "topk",
    "speculative_num_draft_tokens": "draft tokens",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a hint's text, and its reason (Markdown, empty where there is nothing to add)."""

    text: str
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class Hint:
    """A text to show at character `offset` of the document, after what is written there."""

    kind: Kind
    offset: int
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)


def hints(analysis: Analysis, start: int, end: int, kinds: frozenset[Kind]) -> list[Hint]:
    """The hints of these kinds in the characters [start, end] of the document, in document order."""
    name = analysis.document.name
    found: list[Hint] = []
    text = analysis.document.text
    for report in analysis.launches:
        extent = report.launch.extent
        if kinds and extent.document == name and extent.start <= end and start <= extent.end:
            found += (h for h in _of_launch(report, name, text) if h.kind in kinds and start <= h.offset <= end)
    return sorted(found, key=lambda h: (h.offset, h.kind))


def _of_launch(report: LaunchReport, name: str, text: str) -> Iterator[Hint]:
    accepting = _accepting(report)
    if not accepting:
        return
    run = report.main()
    if run.resolution is None or _refuses(run.resolution.findings):
        return
    yield from _changed(run, accepting, name)
    chosen = tuple(_chosen(run, accepting))
    if chosen:
        yield Hint("chosen", _end(report, run, text), (Part("chosen: "), *_joined(chosen)))


def _accepting(report: LaunchReport) -> list[RunResult]:
    """The runs in worlds that accept the launch, late checks included; none if a world that somebody named refuses it.

    A `--config` file that no launch names is taken to be the whole launch.
    """
    verdict = report.verdict
    if verdict is None:
        return []
    alone = report.launch.program == "config"
    possible = [r for r in verdict.runs if not r.gated and (r.bare or not alone)]
    accepting = [r for r in possible if not r.refused and r.resolution and not _refuses(r.resolution.findings)]
    named = {r.world for r in possible if r.world.hardware_from != NOT_NAMED}
    return [] if named - {r.world for r in accepting} else accepting


def _refuses(findings: Sequence[Any]) -> bool:
    return any(f.rule.severity == "error" for f in findings)


# --- changed values ----------------------------------------------------------------------------------------------------


def _changed(run: Run, accepting: Sequence[RunResult], name: str) -> Iterator[Hint]:
    for field, setting in run.binding.settings.items():
        place = _written_at(setting, name)
        decision = _overriding(field, setting, run)
        if place is None or decision is None:
            continue
        value = _agreed(field, accepting)
        if value is not _DIFFERS and value != setting.value:
            yield Hint("changed", place.end, (Part(f"→ {written(value)}", decision.step.reason),))


def _written_at(setting: Setting, name: str) -> Place | None:
    """Where the value is visible in this document."""
    place = (setting.values[-1] if setting.values else setting.flag).place
    return place if place.document == name and place.end > place.start else None


def _overriding(field: str, setting: Setting, run: Run) -> Decision | None:
    """The decision that replaced a typed value; None where the value stays, or is only written differently."""
    config = _config(run)
    history = config.history.get(field, ())
    decided = [d for d in history if not d.step.spelling]
    if not decided or isinstance(setting.value, Unknown) or not config.known(field):
        return None
    value = getattr(config, field)
    if value == setting.value or any(d.step.spelling and d.value == value for d in history):
        return None
    return decided[-1]


# --- chosen values -----------------------------------------------------------------------------------------------------


def _chosen(run: Run, accepting: Sequence[RunResult]) -> Iterator[Part]:
    """The important values that SGLang chooses, each with its reason."""
    config = _config(run)
    for field in (*CHOSEN, *CHOSEN_FOR_DRAFTS):
        decisions = config.history.get(field, ())
        if field in run.binding.settings or not decisions or not config.known(field):
            continue
        value = _agreed(field, accepting)
        if value is not _DIFFERS and value is not None:
            yield Part(f"{SHORT[field]} {written(value)}", f"`{_flag(run, field)} {written(value)}`: {_why(decisions)}")


def _why(decisions: Sequence[Decision]) -> str:
    return decisions[-1].step.reason


def _flag(run: Run, field: str) -> str:
    flag = run.binding.catalog.by_field.get(field)
    return flag.name if flag else field


def _joined(parts: Sequence[Part]) -> Iterator[Part]:
    for number, part in enumerate(parts):
        if number:
            yield Part(" · ")
        yield part


def _end(report: LaunchReport, run: Run, text: str) -> int:
    """The offset behind the launch's last word; in a `--config` file, the end of its last entry's line."""
    extent = report.launch.extent
    if report.launch.program != "config":
        return extent.end
    words = [w.place for s in run.binding.settings.values() for w in (s.flag, *s.values)]
    last = max((p.end for p in words if p.document == extent.document), default=report.launch.place.end)
    line = text[last:].partition("\n")[0]
    return last + len(line.rstrip())


# --- values ------------------------------------------------------------------------------------------------------------

_DIFFERS = object()


def _agreed(field: str, runs: Sequence[RunResult]) -> Any:
    """The value that a field has in all runs; _DIFFERS where runs differ or one does not know it."""
    values = [_value_in(run, field) for run in runs]
    same = all(type(v) is type(values[0]) and v == values[0] for v in values)
    return values[0] if values and same else _DIFFERS


def _value_in(run: RunResult, field: str) -> Any:
    try:
        return getattr(run.resolution.config, field) if run.resolution else _DIFFERS
    except (NotKnown, AttributeError):
        return _DIFFERS


def _config(run: Run) -> Config:
    assert run.resolution is not None
    return run.resolution.config


def written(value: Any) -> str:
    """A value as it is written on the command line; `on`, `off` and `unset` for those that have no text."""
    if value is True or value is False:
        return "on" if value else "off"
    if value is None:
        return "unset"
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    text = " ".join(str(value).split())
    return text if len(text) <= 40 else text[:39] + "…"


# --- the lens ----------------------------------------------------------------------------------------------------------


def likeliest(report: LaunchReport) -> World:
    """The world for which a launch's resolved configuration is computed."""
    return report.verdict.main.world if report.verdict else report.main().world


def any_gpu(report: LaunchReport) -> str:
    """The hardware if nobody names it and several kinds are judged: "any NVIDIA GPU"; empty if there is only one."""
    world = likeliest(report)
    if world.hardware is None or world.hardware_from != NOT_NAMED:
        return ""
    judged = {w.hardware for w in report.worlds if w.hardware is not None}
    makers = {h.platform for h in judged}
    if len(judged) < 2:
        return ""
    return f"any {MAKERS[makers.pop()]} GPU" if len(makers) == 1 and makers <= MAKERS.keys() else "any GPU"


MAKERS = {"cuda": "NVIDIA", "hip": "AMD"}


def assumed(report: LaunchReport) -> str:
    """What a launch is judged for, and where that is named: `SGLang 0.5.23 · H100 (image tag)`, `SGLang 0.5.23 (newest) · any GPU`."""
    world = likeliest(report)
    release = _source(world.release_from, "newest")
    if world.hardware is None:
        return f"SGLang {world.release} ({release})"
    if gpu := any_gpu(report):
        return f"SGLang {world.release} ({release}) · {gpu}"
    hardware = _source(world.hardware_from, "the only one possible")
    if release == hardware:
        return f"SGLang {world.release} · {world.hardware.title} ({release})"
    return f"SGLang {world.release} ({release}) · {world.hardware.title} ({hardware})"


def lens(report: LaunchReport) -> str:
    """The title of a code lens, at most LENS characters: what is assumed, without where it is named."""
    world = likeliest(report)
    hardware = any_gpu(report) or (re.sub(r" \(.*\)$", "", world.hardware.title) if world.hardware else "")
    newest = " (newest)" if world.release_from == NOT_NAMED else ""
    behind = f" · {hardware}" if hardware else ""
    titles = [f"Show: SGLang {world.release}{more}{behind}" for more in (newest, "")]
    return next((t for t in titles if len(t) <= LENS), titles[-1][: LENS - 1] + "…")


LENS = 40
"""The longest title of a code lens, in characters: it stands above the code."""


def _source(where: str, otherwise: str) -> str:
    return otherwise if where == NOT_NAMED else where
