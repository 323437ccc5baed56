"""A possible fix before it is verified."""

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
    """None: verification decides."""
    guess: bool = False
    """Whether this is only a guess at what was meant; fix-all does not apply guesses."""
    drops: bool = False
    """Whether it removes or turns off something that was typed."""
    spelling: bool = False
    """Whether it only corrects how a value is written: what SGLang says about the corrected value is not the fix's doing."""
