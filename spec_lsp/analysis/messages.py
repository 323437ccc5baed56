"""The sentences a reader sees of a merged finding."""

from __future__ import annotations

from spec_lsp.analysis.judge import Merged


def message_of(merged: Merged) -> str:
    """What the rule says of this launch, and where it holds when that is not everywhere."""
    found, binding = merged.found, merged.run.binding
    if found.said is not None:
        message = found.said.message
    elif found.error is not None:
        message = binding.errors[found.error].message
    else:
        message = binding.notes[found.note or 0].message
    if found.rule.late:
        message += " The server finds out only after loading the weights."
    return f"{message} This holds {merged.where}." if merged.where else message
