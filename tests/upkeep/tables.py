"""Model classes, what quantization methods take and the benches' own flags, of the new release: added to the tables that are made of the sources."""

from __future__ import annotations

from pathlib import Path

from spec_lsp.catalog.release import Release
from tests.sources import classes, methods, own
from tests.upkeep.report import Part


def part(root: Path, release: Release) -> Part:
    """Add the release whose sources are below `root`."""
    lines, todo = [], []
    for title, table in (
        ("model classes", classes.TABLE),
        ("quantization methods", methods.TABLE),
        ("flags of benches", own.TABLE),
    ):
        changes = table.add(release, root)
        lines += [
            f"{len(changes)} {title} changed:",
            "",
            *(f"- `{name}`: {_short(before)} → {_short(now)}" for name, before, now in changes),
            "",
        ]
        if new := [name for name, before, now in changes if before is None]:
            todo.append(
                f"Look at {len(new)} new {title}: `{'`, `'.join(new)}` (architectures.py, descriptions of values, tests/oracle/models.py)"
            )
    return Part("Tables made of the sources", lines, todo)


def _short(facts: object) -> str:
    return "none" if facts is None else f"`{facts}`"
