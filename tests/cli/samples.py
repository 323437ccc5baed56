"""Hand-made reports for the tests of output formats."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from spec_lsp.cli.formats import Run, writer
from spec_lsp.cli.report import (
    FileReport,
    Location,
    OfferedFix,
    Position,
    Replacement,
    ReportedFinding,
    SourceLine,
    Totals,
)
from spec_lsp.cli.style import Style


def place(file: str, line: int, start: int, end: int, text: str = "") -> Location:
    lines = (SourceLine(line, text),) if text else ()
    return Location(file, Position(line, start), Position(line, end), lines)


TREE = ReportedFinding(
    "tree-drafting-on-trtllm-mha",
    "SPC123",
    "error",
    "`trtllm_mha` verifies chains only, so `--speculative-eagle-topk 4` is refused.",
    place("run/lаunch é.sh", 4, 2, 28, "  --speculative-eagle-topk 4"),
    related=(
        (place("run/lаunch é.sh", 3, 2, 23, "  --attention-backend trtllm_mha \\"), "`attention_backend` takes part"),
    ),
    fixes=(
        OfferedFix(
            "set `--speculative-eagle-topk 1`",
            "unsafe",
            (Replacement(place("run/lаunch é.sh", 4, 27, 28), "1"),),
            True,
        ),
        OfferedFix(
            "set `--attention-backend fa3`", "unsafe", (Replacement(place("run/lаunch é.sh", 3, 22, 32), "fa3"),)
        ),
    ),
    fingerprint="a" * 32,
)
LATE = ReportedFinding(
    "late-thing",
    "SPC900",
    "warning",
    "Fails: 100% of the time,\nlate.",
    place("config.yaml", 0, 11, 13, "page-size: 16"),
    late=True,
    related=((place("/elsewhere/b.sh", 7, 0, 3, "abc"), "the launch"),),
    fingerprint="b" * 32,
)
HINT = ReportedFinding(
    "unused-ignore",
    "SPC040",
    "hint",
    "<silences> & \x1b[31mnothing",
    place("config.yaml", 3, 0, 4, "# sp"),
    fingerprint="c" * 32,
)
REMARK = ReportedFinding(
    "overridden-value",
    "SPC022",
    "information",
    "`--page-size 16` becomes `64`",
    Location("config.yaml", Position(1, 0), Position(2, 3), (SourceLine(1, "a"), SourceLine(2, "bcd"))),
    fixes=(OfferedFix("write 64", "safe", (Replacement(place("config.yaml", 1, 0, 1), "64"),), True),),
    fingerprint="c" * 32,
)

REPORTS = (
    FileReport("run/lаunch é.sh", (TREE,), launches=1, ignored=2),
    FileReport("config.yaml", (LATE, HINT, REMARK), launches=1),
    FileReport("clean.sh", launches=3),
    FileReport("README.md"),
    FileReport("gone.sh", problem="cannot be read: Permission denied"),
)


def written(name: str, reports: Iterable[FileReport] = REPORTS, style: Style | None = None, **more: Any) -> str:
    """What a format writes."""
    run = Run(style or Style(), **more)
    out = io.StringIO()

    def counted() -> Iterable[FileReport]:
        for report in reports:
            run.totals.add(report)
            yield report

    writer(name)(counted(), out, run)
    return out.getvalue()


__all__ = ["HINT", "LATE", "REMARK", "REPORTS", "TREE", "Totals", "place", "written"]
