"""Explains the refusals of a log: each with the rules that report it, checked against the launch in the log if there is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spec_lsp.analysis.cache import Cache
from spec_lsp.analysis.check import analyse
from spec_lsp.analysis.crash import Crash, Log, candidates, launch_of, told_by
from spec_lsp.analysis.fixes import apply, fixes_for
from spec_lsp.analysis.in_memory import InMemory
from spec_lsp.analysis.inputs import Options, Target
from spec_lsp.analysis.reading import read_document
from spec_lsp.analysis.report import Diagnostic, Fix
from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import Hardware
from spec_lsp.records import dataclass
from spec_lsp.resolution.engine import Rule

NAME = "launch.sh"
MOST_RULES = 3
MOST_CRASHES = 5
"""The most different refusals of one log that are explained."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A refusal with the rules that report it, the likeliest first. `sure`: the launch in the log breaks the rule, or no other rule
    fits."""

    crash: Crash
    rules: tuple[Rule, ...]
    sure: bool
    findings: tuple[tuple[Diagnostic, tuple[Fix, ...]], ...] = ()
    launch: str = ""
    """The launch of the log as a command line; empty when it has none."""

    @property
    def repaired(self) -> str:
        """The launch with the first fix of the first finding that has one; empty without one."""
        best = next((fixes[0] for _, fixes in self.findings if fixes), None)
        return (apply(f"{self.launch}\n", best.edits) or "").strip() if best else ""


def explain(log: Log, release: Release | None = None, gpu: Hardware | None = None) -> Iterator[Explained]:
    """Explain each refusal of a log. The release and hardware that the log names are used unless others are given."""
    release, gpu = release or log.release, gpu or log.hardware
    launch = launch_of(log, release)
    options = Options(otherwise=Target(release, gpu))
    for crash in log.crashes[:MOST_CRASHES]:
        fitting = candidates(crash, release)
        found = _findings(launch, fitting, options) if launch and fitting else ()
        confirmed = told_by(fitting, [diagnostic.rule.name for diagnostic, _ in found])
        yield Explained(
            crash,
            confirmed or fitting[:MOST_RULES],
            bool(confirmed) or len(fitting) == 1,
            tuple((d, fixes) for d, fixes in found if d.rule in confirmed),
            launch,
        )


def _findings(launch: str, rules: Sequence[Rule], options: Options) -> tuple[tuple[Diagnostic, tuple[Fix, ...]], ...]:
    """The findings of the launch for these rules, with fixes."""
    workspace, cache = InMemory(), Cache()
    analysis = analyse(read_document(NAME, f"{launch}\n", workspace), options, workspace, cache)
    told = [d for d in analysis.diagnostics if d.rule in rules]
    return tuple((d, fixes_for(analysis, d, options, workspace, cache)) for d in told)
