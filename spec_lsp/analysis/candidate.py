"""A way out before it is verified."""

from __future__ import annotations

from spec_lsp.analysis.report import Applicability
from spec_lsp.records import dataclass
from spec_lsp.syntax.launch import Edit


@dataclass(frozen=True, slots=True)
class Candidate:
    """Edits that may help, before they are verified."""

    title: str
    edits: tuple[Edit, ...]
    size: int = 1
    applicability: Applicability | None = None
    """None: decided by what verification sees."""
    guess: bool = False
    """Whether nothing says that it was meant: fix-all leaves it."""
    drops: bool = False
    """Whether it takes out or turns off something that was typed."""
    spelling: bool = False
    """Whether it puts right how a value is written: what SGLang says of the right value it would have said before."""
