"""Merges the findings of all runs of a launch: how severe each is, and where it holds.

A `Verdict` holds no places: launches with the same words have the same one, so it is cached by the words.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Literal

from spec_lsp.analysis.findings import RunFinding, findings_of, is_fatal
from spec_lsp.analysis.rules import INVALID_CHOICE, REMOVED_FLAG, UNKNOWN_FLAG
from spec_lsp.analysis.run import RunResult
from spec_lsp.analysis.worlds import FILE_NAME
from spec_lsp.catalog.history import choice_span, flag_span
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.records import dataclass
from spec_lsp.resolution.engine import Severity

Outcome = Literal["accepted", "refused", "bad-arguments", "depends", "unknown"]


@dataclass(frozen=True, slots=True)
class MergedFinding:
    """A finding over all worlds. `run` is the first in which it was seen; `where` continues "refused " (empty: everywhere)."""

    found: RunFinding
    severity: Severity
    run: RunResult
    where: str = ""
    variants: tuple[int, ...] = ()
    """The variants in which it holds, when not in all."""
    cases: tuple[tuple[RunFinding, RunResult], ...] = ()
    """The first run of each variant that has the finding: variants may write its cause at different places."""
    stock: bool = False
    """Whether it is said of SGLang as released, from which somebody's own build may differ."""
    without_effect: bool = False
    """Whether the launch resolves to exactly the same configuration without the flag."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What SGLang does with a launch, over all its variants and worlds. `main` is the likeliest run."""

    outcome: Outcome
    findings: tuple[MergedFinding, ...]
    main: RunResult
    runs: tuple[RunResult, ...]
    older_unasked: bool = False
    """Whether older releases would have been tried, but were not."""


def merge(runs: Sequence[RunResult], accepted_elsewhere: Mapping[tuple[str, str], Release] | None = None) -> Verdict:
    """Merge runs. `accepted_elsewhere` is given if older releases accept the launch: the release since which each finding holds."""
    accepting = [r for r in runs if not r.refused]
    kept = [r for r in runs if not r.gated] or list(runs)
    merged = _merged(kept, bool(accepting), accepted_elsewhere)
    main = accepting[0] if accepting else kept[0]
    return Verdict(
        _outcome(runs, accepting, accepted_elsewhere), tuple(merged), _likeliest(accepting or kept, main), tuple(runs)
    )


def _likeliest(runs: Sequence[RunResult], fallback: RunResult) -> RunResult:
    """A run on the hardware that the file's name mentions, else on Hopper."""
    hinted = [r for r in runs if r.world.hardware_from == FILE_NAME]
    hopper = [r for r in runs if r.world.hardware and r.world.hardware.family == "hopper"]
    return next(iter(hinted or hopper), fallback)


def _outcome(runs: Sequence[RunResult], accepting: Sequence[RunResult], accepted_elsewhere: object) -> Outcome:
    if not accepting:
        if accepted_elsewhere is not None:
            return "depends"
        return "bad-arguments" if all(r.bad_arguments for r in runs) else "refused"
    if len(accepting) < len(runs):
        return "depends"
    return "accepted" if all(r.decided for r in runs) else "unknown"


def _merged(
    runs: Sequence[RunResult], some_accept: bool, accepted_elsewhere: Mapping[tuple[str, str], Release] | None
) -> list[MergedFinding]:
    seen: OrderedDict[tuple[str, str], list[tuple[RunFinding, RunResult]]] = OrderedDict()
    for judged in runs:
        for found in findings_of(judged):
            seen.setdefault(found.identity, []).append((found, judged))
    accepting = [r for r in runs if not r.refused]
    merged = []
    for cases in seen.values():
        found, first = cases[0]
        holding = [j for _, j in cases]
        fatal = is_fatal(found, first)
        audience = list(runs) if fatal else accepting or list(runs)
        everywhere = len(holding) >= len(audience)
        severity: Severity = found.rule.severity
        where = ""
        if fatal:
            if some_accept:
                severity, where = "warning", where_of(holding, runs)
            elif accepted_elsewhere is not None:
                release = accepted_elsewhere.get(found.cause)
                severity, where = "warning", f"since {release}" if release else "by the newest release"
            elif not everywhere:
                where = where_of(holding, runs)
                severity = "warning" if all(j.bare for j in holding) else severity
            if found.rule is REMOVED_FLAG and first.world.release < releases()[0]:
                continue  # a release older than all known ones may still have had it
            if found.rule in (UNKNOWN_FLAG, INVALID_CHOICE) and not _known_to_be_refused(found, first):
                severity = "warning"
                error = first.binding.errors[found.error or 0]
                if first.world.release < releases()[0] and (error.guess or not error.suggestion):
                    continue
        elif found.rule.severity == "error" and not everywhere:
            severity, where = "warning", where_of(holding, runs)
        elif not everywhere:
            continue
        variants = variants_of(holding, runs) if severity == "warning" or where else ()
        merged.append(MergedFinding(found, severity, first, where, variants, by_variant(cases)))
    return merged


def _known_to_be_refused(found: RunFinding, judged: RunResult) -> bool:
    """Whether this very release is known to refuse a flag or value, even if it is newer or older than all known releases."""
    release = judged.world.release
    if release >= releases()[0]:
        return release.stock <= releases()[-1]
    error = judged.binding.errors[found.error or 0]
    field = error.definition.field if error.definition is not None else ""
    span = choice_span(field, error.text) if error.kind == "invalid-choice" else flag_span(error.typed)
    return span is not None and not span.from_the_start


def by_variant(cases: Sequence[tuple[RunFinding, RunResult]]) -> tuple[tuple[RunFinding, RunResult], ...]:
    """The first case of each variant."""
    first: dict[int, tuple[RunFinding, RunResult]] = {}
    for found, judged in cases:
        first.setdefault(judged.variant, (found, judged))
    return tuple(first.values())


def variants_of(holding: Sequence[RunResult], runs: Sequence[RunResult]) -> tuple[int, ...]:
    """The variants in which something holds; empty when they are all that were judged in these worlds."""
    variants, worlds = tuple(dict.fromkeys(r.variant for r in holding)), {r.world for r in holding}
    return variants if len(variants) < len({r.variant for r in runs if r.world in worlds}) else ()


def where_of(holding: Sequence[RunResult], runs: Sequence[RunResult]) -> str:
    """Which of the runs these are, as a phrase: "on SM100 (B200, GB200)", "on SGLang 0.5.19", "when $1 is big"."""
    parts = []
    hardware = list(dict.fromkeys(r.world.hardware.title for r in holding if r.world.hardware))
    if hardware and len(hardware) < len({r.world.hardware for r in runs}):
        parts.append("on " + _listed(hardware))
    named = list(dict.fromkeys(str(r.world.release) for r in holding))
    if len(named) < len({r.world.release for r in runs}):
        parts.append("on SGLang " + _listed(named))
    if not parts and not variants_of(holding, runs) and all(r.bare for r in holding):
        reasons = dict.fromkeys(w.reason or "from elsewhere" for w in holding[0].binding.open) or [
            "from the command line"
        ]
        parts.append(f"unless what comes {_listed(list(reasons))} changes it")
    return " ".join(parts)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
