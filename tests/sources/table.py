"""A table of facts that are read of SGLang's sources, by name and release, only where they change (null: the name is gone)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases

Facts = Mapping[str, Any]
FIRST = Release.parse("0.5.6")
"""The oldest release that is looked at."""


@dataclass(frozen=True, slots=True)
class Table:
    """`data` is the file; `read` gives the facts by name of the release whose sources are below a folder (that holds `sglang`)."""

    data: Path
    read: Callable[[Path], Mapping[str, Facts]]

    def add(self, release: Release, root: Path) -> list[tuple[str, Facts | None, Facts | None]]:
        """Add a release, newer than all there are or there already; what changed with it: name, facts before and now."""
        known: dict[str, dict[str, Any]] = json.loads(self.data.read_text("utf-8"))
        found, since = self.read(root), Release.parse(_since(release))
        changed = []
        for name in sorted({*known, *found}):
            changes = {r: facts for r, facts in known.get(name, {}).items() if Release.parse(r) < since}
            before, now = next(reversed(changes.values()), None), found.get(name)
            if now != before:
                changes[str(since)] = now
                changed.append((name, before, now))
            known[name] = changes
        self._write({name: changes for name, changes in sorted(known.items()) if changes})
        return changed

    def make(self, folder: Path) -> None:
        """Make the table anew from all catalogued releases in a folder (FOLDER/0.5.23/sglang/…)."""
        self._write({})
        for release in releases():
            if release >= FIRST:
                self.add(release, folder / str(release))

    def _write(self, known: Mapping[str, Mapping[str, Any]]) -> None:
        lines = [f"{json.dumps(name)}: {json.dumps(changes)}" for name, changes in known.items()]
        self.data.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")

    def main(self, arguments: list[str]) -> int:
        if len(arguments) != 1:
            print("give the folder that holds the releases: FOLDER/0.5.23/sglang/…", file=sys.stderr)
            return 2
        self.make(Path(arguments[0]))
        return 0


def _since(release: Release) -> str:
    """A release as the tables name it: what is true of a post release is true of the whole."""
    return str(release).partition(".post")[0]
