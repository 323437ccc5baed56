"""A value that the document does not determine."""

from __future__ import annotations

from spec_lsp.records import dataclass


@dataclass(frozen=True, slots=True)
class Unknown:
    """`reason` continues "unknown: " ("from the environment")."""

    reason: str
