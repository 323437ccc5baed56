"""Model classes, what quantization methods take and the benches' own flags, of the new release: added to the tables that are made of the sources."""

from __future__ import annotations

from pathlib import Path

from spec_lsp.catalog.release import Release
from tests.sources import classes, methods, own, registers
from tests.upkeep.report import Part


def part(root: Path, release: Release, gone_through: bool = False) -> Part:
    """Add the release whose sources are below `root`; nothing is left to do where somebody has gone through it."""
    lines, todo = [], []
    for title, table, places in (
        ("model classes", classes.TABLE, "spec_lsp/facts/architectures.py, tests/oracle/models.py"),
        ("quantization methods", methods.TABLE, "spec_lsp/facts/quantization.py"),
        ("registers", registers.TABLE, "spec_lsp/facts/registers.py"),
        ("flags of benches", own.TABLE, ""),
    ):
        changes = table.add(release, root)
        lines += [
            f"Changed {title}: {len(changes)}",
            "",
            *(f"- `{name}`: {_short(before)} → {_short(now)}" for name, before, now in changes),
            "",
        ]
        new = [name for name, before, _ in changes if before is None]
        if new and places and not gone_through:
            todo.append(f"Look at {len(new)} new {title}: `{'`, `'.join(new)}` ({places})")
    return Part("Tables made of the sources", lines, todo)


def _short(facts: object) -> str:
    return "none" if facts is None else f"`{facts}`"
