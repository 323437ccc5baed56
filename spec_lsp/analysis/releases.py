"""In which releases the findings of a launch hold, if nobody named the release that it runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from spec_lsp.analysis.findings import RunFinding, findings_of, is_fatal, reasons_of
from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.merge import MergedFinding, by_variant, variants_of, where_of
from spec_lsp.analysis.rules import AMBIGUOUS_FLAG, UNKNOWN_FLAG
from spec_lsp.analysis.run import Runner, RunResult
from spec_lsp.analysis.worlds import OLDER_WORLDS
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.records import replace


def older_runs(runner: Runner, runs: Sequence[RunResult], worlds: Sequence[World]) -> list[RunResult]:
    """The launch in older releases, newest first, until one accepts it. What refusals hide there is looked for if it is in the newest one.

    If the newest release refuses it on every hardware for the same reason, older ones are asked on one hardware only. Those that refuse it
    there for another reason are asked on all: `trtllm_mla` says that the hardware is not Hopper.
    """
    older = _older_runs(runner, runs, worlds)
    return runner.behind(older) if any(r.hides for r in runs) else older


def _older_runs(runner: Runner, runs: Sequence[RunResult], worlds: Sequence[World]) -> list[RunResult]:
    everywhere = frozenset.intersection(*(reasons_of(r) for r in runs))
    one = next((w for w in worlds if w.hardware and w.hardware.family == "hopper"), worlds[0])
    releases_asked = list(OLDER_WORLDS)
    if everywhere and len(worlds) > 1:
        older: list[RunResult] = []
        for release in OLDER_WORLDS:
            asked = list(runner.in_worlds([replace(one, release=release)]))
            older += asked
            if not all(r.refused for r in asked):
                return older
            if all(everywhere & reasons_of(r) for r in asked):
                releases_asked.remove(release)
        if not releases_asked:
            return older
    older = []
    for release in releases_asked:
        older += list(runner.in_worlds([replace(w, release=release) for w in worlds]))
        if not all(r.refused for r in older):
            break
    return older


def since_when(
    runner: Runner, runs: Sequence[RunResult], older: Sequence[RunResult], world: World
) -> Mapping[tuple[str, str], Release]:
    """For each finding that ends the launch in the newest release, the first release in which it does."""
    hiding = any(r.hides for r in runs)
    causes = {f.cause for r in runs for f in findings_of(r) if is_fatal(f, r)}
    seen: dict[Release, set[tuple[str, str]]] = {}
    for judged in older:
        seen.setdefault(judged.world.release, set()).update(f.cause for f in findings_of(judged))
    since: dict[tuple[str, str], Release] = {}
    for cause in causes:
        without = max((release for release, found in seen.items() if cause not in found), default=None)
        for release in releases():
            if without is None or release <= without:
                continue
            if release not in seen:
                asked = list(runner.in_worlds([replace(world, release=release)]))
                asked = runner.behind(asked) if hiding else asked
                seen[release] = {f.cause for r in asked for f in findings_of(r)}
            if cause in seen[release]:
                since[cause] = release
                break
    return since


def since_release(merged: MergedFinding, since: Release | None, *, refused_everywhere: bool) -> MergedFinding:
    """The finding with "since", if only newer releases have it. It becomes a warning if another reason ends the launch in every release,
    and stays an error if each release has a reason of its own."""
    if merged.severity != "error" or since is None or not is_fatal(merged.found, merged.run):
        return merged
    if not refused_everywhere:
        return replace(merged, where=" ".join(filter(None, (merged.where, f"since {since}"))))
    if merged.found.rule in (AMBIGUOUS_FLAG, UNKNOWN_FLAG):
        return replace(merged, severity="warning", where=f"since {since}")
    return merged


def only_older(runs: Sequence[RunResult], older: Sequence[RunResult]) -> list[MergedFinding]:
    """The reasons for which older releases refuse what the newest refuses for others, the newest of them first."""
    told = {f.cause for r in runs for f in findings_of(r)}
    cases: OrderedDict[tuple[str, str], list[tuple[RunFinding, RunResult]]] = OrderedDict()
    for judged in older:
        for found in findings_of(judged):
            if is_fatal(found, judged) and found.cause not in told:
                cases.setdefault(found.identity, []).append((found, judged))
    merged = []
    for seen in cases.values():
        found, first = seen[0]
        holding = [j for _, j in seen]
        where = where_of(holding, (*runs, *older))
        merged.append(MergedFinding(found, "error", first, where, variants_of(holding, older), by_variant(seen)))
    return merged
