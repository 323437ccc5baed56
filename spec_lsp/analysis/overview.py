"""An overview of one launch: what it serves, what it was judged for, what SGLang does with it and runs with."""

from __future__ import annotations

from spec_lsp.analysis.hints import assumed
from spec_lsp.analysis.merge import Outcome
from spec_lsp.analysis.report import LaunchReport
from spec_lsp.analysis.resolved import decided_rows, typed_rows
from spec_lsp.records import dataclass
from spec_lsp.syntax.launch import Launch
from spec_lsp.syntax.word import Place


@dataclass(frozen=True, slots=True)
class LaunchOverview:
    """`fields` are those that were typed or that SGLang decides: name, value and reason, in Markdown. `assumed` is the release and hardware
    that they were computed for."""

    title: str
    program: str
    place: Place
    assumed: str
    outcome: Outcome
    fields: tuple[tuple[str, str, str], ...]


def overview(report: LaunchReport) -> LaunchOverview:
    launch, outcome = report.launch, report.verdict.outcome if report.verdict else "unknown"
    run = report.main()
    rows = tuple((row.name, row.value, " ".join(row.why)) for row in (*typed_rows(run), *decided_rows(run)))
    return LaunchOverview(title(launch), launch.program, launch.place, assumed(report), outcome, rows)


def title(launch: Launch) -> str:
    """The name of a launch in an outline: the model that it serves."""
    words = [word.text or "" for word in launch.variants[0].words]
    for flag in ("--model-path", "--model"):
        if flag in words[:-1]:
            return words[words.index(flag) + 1] or "SGLang"
    if launch.program == "serve" and words and not words[0].startswith("-"):
        return words[0] or "SGLang"
    return "SGLang configuration" if launch.program == "config" else "SGLang"
