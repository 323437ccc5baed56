"""The results of `check`, as plain data that every output format reads and that can be sent between processes.

Lines and characters count from 0, characters in code points. Files are named as they are shown: relative to the current folder if they are
below it, with `/` between folders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from spec_lsp.analysis.report import Applicability
from spec_lsp.records import dataclass, field
from spec_lsp.resolution.engine import Severity


@dataclass(frozen=True, slots=True, order=True)
class Position:
    line: int
    character: int


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line to show, without its end. Of a very long one only a part: `cut` characters are omitted before it."""

    number: int
    text: str
    cut: int = 0


@dataclass(frozen=True, slots=True)
class Location:
    """The characters from `start` to `end` (exclusive) of a file, with the lines to show."""

    file: str
    start: Position
    end: Position
    lines: tuple[SourceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Replacement:
    """One edit of a fix."""

    location: Location
    text: str


@dataclass(frozen=True, slots=True)
class OfferedFix:
    title: str
    applicability: Applicability
    edits: tuple[Replacement, ...]
    preferred: bool = False
    guess: bool = False


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """One finding. `fingerprint` stays the same when only lines above it change."""

    rule: str
    code: str
    severity: Severity
    message: str
    location: Location
    late: bool = False
    related: tuple[tuple[Location, str], ...] = ()
    fixes: tuple[OfferedFix, ...] = ()
    fingerprint: str = ""

    @property
    def file(self) -> str:
        return self.location.file

    @property
    def name(self) -> str:
        """The rule's name as shown: `tree-drafting-on-paged-backend[SPC104]`."""
        return f"{self.rule}[{self.code}]"


@dataclass(frozen=True, slots=True)
class LaunchShown:
    """A launch in a report of all launches; see `analysis.overview.LaunchOverview`."""

    location: Location
    title: str
    program: str
    assumed: str
    outcome: str
    fields: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class FileReport:
    """One checked file. `problem` says why it could not be read, `failure` holds the traceback of an internal error."""

    file: str
    found: tuple[ReportedFinding, ...] = ()
    launches: int = 0
    ignored: int = 0
    fixed: tuple[str, ...] = ()
    """What was fixed, a line for each finding that is gone."""
    diff: str = ""
    text: str | None = None
    """The fixed text of standard input."""
    overview: tuple[LaunchShown, ...] = ()
    """Each launch, if a format shows them."""
    notes: tuple[str, ...] = ()
    problem: str = ""
    failure: str = ""
    faults: tuple[str, ...] = ()
    """The traceback of each internal fault in a launch; the launch has a finding that says so."""


SEVERITIES: tuple[Severity, ...] = ("error", "warning", "information", "hint")


@dataclass(frozen=True, slots=True)
class RuleCount:
    """How often a rule was reported with a severity."""

    rule: str
    code: str
    severity: Severity
    count: int

    @property
    def name(self) -> str:
        return f"{self.rule}[{self.code}]"


def by_rule(found: Iterable[ReportedFinding]) -> list[RuleCount]:
    """The findings counted by rule and severity, the most frequent first."""
    counts = Counter((f.severity, f.rule, f.code) for f in found)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], SEVERITIES.index(item[0][0]), item[0][1]))
    return [RuleCount(rule, code, severity, count) for (severity, rule, code), count in ordered]


@dataclass(slots=True)
class Totals:
    """The sum of a run."""

    files: int = 0
    launches: int = 0
    ignored: int = 0
    fixed: int = 0
    known: int = 0
    """Findings that a baseline holds."""
    gone: int = 0
    """Findings of the baseline that the checked files no longer have."""
    would_change: int = 0
    failed: int = 0
    faults: int = 0
    severities: Counter[str] = field(default_factory=Counter)
    fixable: Counter[str] = field(default_factory=Counter)
    """How many findings have a preferred fix, by its applicability."""

    def add(self, report: FileReport) -> None:
        self.files += 1
        self.launches += report.launches
        self.ignored += report.ignored
        self.fixed += len(report.fixed)
        self.would_change += bool(report.diff)
        self.failed += bool(report.problem or report.failure)
        self.faults += len(report.faults)
        for found in report.found:
            self.severities[found.severity] += 1
            if found.fixes and found.fixes[0].preferred:
                self.fixable[found.fixes[0].applicability] += 1
