"""The sentences a reader sees of a merged finding."""

from __future__ import annotations

from spec_lsp.analysis.judge import Merged
from spec_lsp.syntax.launch import Choice, Launch


def message_of(merged: Merged, launch: Launch) -> str:
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
    where = " ".join(part for part in (merged.where, when_of(merged.variants, launch)) if part)
    return f"{message} This holds {where}." if where else message


def when_of(variants: tuple[int, ...], launch: Launch) -> str:
    """What is chosen in all of these variants but not in every one: "when $1 is big"; empty for all variants."""
    if not variants:
        return ""
    every = [frozenset(v.choices) for v in launch.variants]
    common = _shared([every[i] for i in variants]) - _shared(every)
    taken = [c.taken for c in launch.variants[variants[0]].choices if c in common]
    return f"when {' and '.join(taken)}" if taken else "in some branches of the script"


def _shared(sets: list[frozenset[Choice]]) -> frozenset[Choice]:
    return sets[0].intersection(*sets[1:])
