"""What SGLang does with a launch, over all its variants and worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spec_lsp.analysis.findings import reasons_of
from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.merge import MergedFinding, Verdict, merge
from spec_lsp.analysis.releases import older_runs, only_older, since_release, since_when
from spec_lsp.analysis.rules import INVALID_CHOICE, OVERRIDDEN_VALUE, UNKNOWN_FLAG
from spec_lsp.analysis.run import Condoned, ConfigSource, ModelSource, Runner, RunResult
from spec_lsp.catalog.release import Release
from spec_lsp.records import replace
from spec_lsp.syntax.launch import Launch


def judge(
    launch: Launch,
    worlds: Sequence[World],
    models: ModelSource,
    configs: ConfigSource,
    *,
    release_named: bool = True,
    build: str = "",
    ask_older: bool = True,
    runs: Sequence[RunResult] = (),
    condoned: Condoned = frozenset(),
) -> Verdict:
    """Judge a launch in all its variants and worlds. If the release is not named, older ones are tried where the newest refuses. Somebody's
    own `build` ("the image's own build") may have flags and choices that no release has.

    Without `ask_older` the findings are the same, except for their severity, for where they are said to hold, and for those that only older
    releases have. `runs`: those of the same launch in the same worlds, if they were already made. `condoned`: the refusals that its writer
    answers for, which end nothing.
    """
    runner = Runner(launch, models, configs, condoned)
    runs = [*map(runner.condoning, runs)] or runner.behind(list(runner.in_worlds(worlds)))
    since: Mapping[tuple[str, str], Release] = {}
    elsewhere: list[MergedFinding] = []
    everywhere = True
    if not release_named and all(r.refused for r in runs):
        if not ask_older:
            return replace(merge(runs), older_unasked=True)
        older = older_runs(runner, runs, worlds)
        accepted = not all(r.refused for r in older)
        shared = frozenset.intersection(*map(reasons_of, (*runs, *older)))
        if accepted or frozenset.union(*map(reasons_of, runs)) - shared:
            since = since_when(runner, runs, older, worlds[0])
        if accepted:
            return merge(runs, accepted_elsewhere=since)
        everywhere = bool(shared)
        elsewhere = [] if everywhere else only_older(runs, older)
    verdict = merge(runs)
    found = [_with_effect(m, runner) for m in verdict.findings]
    found = [since_release(m, since.get(m.found.cause), refused_everywhere=everywhere) for m in found]
    found = [_unless_built(m, build) for m in found] if build else found
    return replace(verdict, findings=(*found, *elsewhere))


def _unless_built(merged: MergedFinding, build: str) -> MergedFinding:
    """The finding as a warning if somebody's own build may accept the flag or value."""
    if merged.severity == "error" and merged.found.rule in (UNKNOWN_FLAG, INVALID_CHOICE):
        return replace(merged, severity="warning", where=f"unless {build} takes it", stock=True)
    return merged


def _with_effect(merged: MergedFinding, runner: Runner) -> MergedFinding:
    """Whether an overridden flag has any effect: the launch is resolved once more without it."""
    said, resolution = merged.found.said, merged.run.resolution
    if merged.found.rule is not OVERRIDDEN_VALUE or said is None or resolution is None:
        return merged
    without = runner.without(merged.run, said.at).resolution
    same = without is not None and without.config.fields() == resolution.config.fields()
    return replace(merged, without_effect=same)
