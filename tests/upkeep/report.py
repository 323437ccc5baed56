"""The parts of an upkeep report, as Markdown; each says what is left for a person to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One part: what was found, and the lines of the checklist that it asks for (none: nothing is left to do)."""

    title: str
    found: Sequence[str]
    todo: Sequence[str] = ()
    details: Sequence[str] = ()
    """What stands in the file alone: source differences."""


def text_of(title: str, parts: Iterable[Part], *, whole: bool) -> str:
    """The report; without `whole` without details."""
    parts = list(parts)
    lines = [f"# {title}"]
    for part in parts:
        lines += ["", f"## {part.title}", "", *(part.found or ["Nothing."])]
        if whole and part.details:
            lines += ["", *part.details]
    lines += ["", "## Checklist", ""]
    todo = [item for part in parts for item in part.todo]
    lines += [f"- [ ] {item}" for item in todo] or [
        "Nothing is left to do but to raise the floors: UPDATE_FLOORS=1 pytest tests/truth."
    ]
    return "\n".join(lines) + "\n"


def some(items: Sequence[str], most: int = 12) -> str:
    """Names for a sentence."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(f"`{i}`" for i in items[:most]) + more


def fenced(lines: Sequence[str], language: str, most: int = 160) -> list[str]:
    """Lines as a block, cut where they are too many to read."""
    cut = [*lines[:most], f"… ({len(lines) - most} more lines)"] if len(lines) > most else lines
    return [f"```{language}", *cut, "```"]
