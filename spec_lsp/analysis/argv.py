"""A launch given as argument words, not in a document: the engine of `spec-lsp resolve` and `spec-lsp batch`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.judge import judge
from spec_lsp.analysis.merge import MergedFinding, Outcome, Verdict
from spec_lsp.analysis.messages import message_of
from spec_lsp.analysis.report import LaunchReport, Run
from spec_lsp.analysis.run import OLDEST_MODELLED, ModelSource, RunResult, run
from spec_lsp.analysis.worlds import OLDER_WORLDS, newest
from spec_lsp.catalog.binding import Binding, words_from
from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import FAMILIES, Hardware
from spec_lsp.records import dataclass, field
from spec_lsp.syntax.launch import Launch, Program, Variant
from spec_lsp.syntax.word import Place, literal

ARGV = "argv"
"""The document name of words that stand in no file: character n of the words joined by single spaces."""


@dataclass(frozen=True, slots=True)
class Said:
    """One finding: the merged finding with its message."""

    merged: MergedFinding
    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """`outcome` is what SGLang's own argument resolution does: accepted, refused, bad-arguments, depends (on the world), unknown.

    `resolved` holds the fields that are the same in every world that accepts. `worlds` are those that were looked at.
    """

    outcome: Outcome
    findings: tuple[Said, ...]
    resolved: Mapping[str, Any] = field(default_factory=dict)
    main: RunResult | None = None
    worlds: tuple[World, ...] = ()
    report: LaunchReport | None = None


def resolve_argv(
    argv: Sequence[str],
    env: Mapping[str, str],
    release: Release | None,
    hardware: Hardware | None,
    *,
    models: ModelSource,
    files: Callable[[str], str | None],
    program: Program = "launch_server",
) -> Answer:
    """Judge an argv (what follows the entry point). `files` gives the text of a `--config` file by its path as typed.

    With `release` or `hardware` None, every possible one is a world: releases from 0.5.9 on, the hardware families.
    """
    launch = _launch(argv, env, program)
    worlds = [
        World(r, h, "given" if release else "not named", "given" if hardware else "not named")
        for r in ((release,) if release else (newest(), *OLDER_WORLDS))
        for h in ((hardware,) if hardware else tuple(FAMILIES.values()))
    ]
    verdict = judge(launch, worlds, models, lambda path: _file(path, files))
    said = tuple(Said(m, message_of(m, launch)) for m in verdict.findings)
    report = LaunchReport(
        lambda: launch, tuple(worlds), partial(_run, launch, verdict.main), verdict, partial(_resolved, launch, models)
    )
    return Answer(_outcome(verdict, worlds), said, _agreed(verdict), verdict.main, tuple(worlds), report)


def _run(launch: Launch, judged: RunResult) -> Run:
    return Run(launch.variants[judged.variant], judged.world, judged.binding, judged.resolution)


def _resolved(launch: Launch, models: ModelSource, variant: int, world: World, binding: Binding) -> RunResult:
    """What the words resolve to in a world if they bind like this."""
    return run(launch, variant, world, models, binding)


def _launch(argv: Sequence[str], env: Mapping[str, str], program: Program) -> Launch:
    words = words_from(argv, ARGV)
    nowhere = Place(ARGV, 0, 0)
    variables = {name: literal(value, nowhere) for name, value in env.items()}
    extent = Place(ARGV, 0, words[-1].place.end if words else 0)
    return Launch(program, nowhere, extent, (Variant(words, variables),))


def _file(path: str, files: Callable[[str], str | None]) -> tuple[str, str] | None:
    """The file as binding asks for it: here every file that is not found is certainly not there."""
    text = files(path)
    if text is None:
        raise FileNotFoundError(path)
    return path, text


def _outcome(verdict: Verdict, worlds: Sequence[World]) -> Outcome:
    """What resolution does; "unknown" where a release before the oldest modelled one accepts the words."""
    if verdict.outcome in ("accepted", "depends") and any(w.release < OLDEST_MODELLED for w in worlds):
        return "unknown"
    return verdict.outcome


def _agreed(verdict: Verdict) -> dict[str, Any]:
    """The fields known and equal in every run that accepts."""
    runs = [r for r in verdict.runs if not r.refused and r.resolution is not None and r.modelled]
    if not runs:
        return {}
    first, *rest = [r.resolution.config.fields() for r in runs if r.resolution is not None]
    if not rest:
        return first
    return {
        k: v
        for k, v in first.items()
        if all(k in other and other[k] == v and type(other[k]) is type(v) for other in rest)
    }
