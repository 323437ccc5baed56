"""Output formats of `check`. Each module has `write(reports, out, run)`, which consumes the reports as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Literal, TextIO

from spec_lsp.cli.report import FileReport, Totals
from spec_lsp.cli.style import Style
from spec_lsp.records import dataclass, field


@dataclass(frozen=True, slots=True)
class Run:
    """What a format may need to know about the run. `totals` are complete once the reports are consumed.

    `fixing` and `unsafe`: how fixes are treated, by the options. `before_text` is called before anything is written to a terminal that
    shows progress.
    """

    style: Style = field(default_factory=Style)
    statistics: bool = False
    fixing: Literal["", "fix", "diff"] = ""
    unsafe: bool = False
    totals: Totals = field(default_factory=Totals)
    before_text: Callable[[], None] = lambda: None


Writer = Callable[[Iterable[FileReport], TextIO, Run], None]


def writer(name: str) -> Writer:
    """The writer of a format named in `arguments.FORMATS`."""
    found: Writer = import_module(f"{__name__}.{name}").write
    return found
