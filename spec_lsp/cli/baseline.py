"""Known findings, so that in a tree with many of them only new ones count.

A baseline stores for each file how often each rule gives each message. Lines do not matter, so moved findings stay known. It is JSON,
sorted, with one finding a line, so that changes can be reviewed and merged.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spec_lsp.cli.errors import UsageError
from spec_lsp.cli.files import write_text
from spec_lsp.cli.report import ReportedFinding
from spec_lsp.files import UnreadableError, read_named
from spec_lsp.records import NamedTuple

VERSION = 1
KIND = "spec-lsp baseline"


class Known(NamedTuple):
    """What identifies the same finding later. `file` is relative to the baseline's folder, with `/` between folders."""

    file: str
    rule: str
    message: str


class Baseline:
    """The findings of a baseline file, each with its number of occurrences that were not met yet."""

    def __init__(self, path: str, here: str, known: Counter[Known]) -> None:
        self._folder = os.path.dirname(os.path.abspath(path))
        self._here = here
        self._left = known

    def knows(self, found: ReportedFinding) -> bool:
        """Whether the finding is a known one; it then counts as met."""
        known = _known(found, self._here, self._folder)
        if not self._left[known]:
            return False
        self._left[known] -= 1
        return True

    def gone(self, checked: Iterable[str]) -> int:
        """How many known findings were not met in the files that were checked (names as they are shown)."""
        names = {_relative(name, self._here, self._folder) for name in checked}
        return sum(count for known, count in self._left.items() if known.file in names)


def read(path: str, here: str) -> Baseline:
    """The baseline in a file. Raises UsageError when it is none."""
    try:
        data = json.loads(read_named(path))
        known = Counter(
            {Known(str(e["file"]), str(e["rule"]), str(e["message"])): int(e["count"]) for e in _entries(data)}
        )
    except UnreadableError as error:
        raise UsageError(f"the baseline `{path}` {error}; write one with --write-baseline") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(f"`{path}` is no baseline of spec-lsp; write one with --write-baseline") from error
    return Baseline(path, here, known)


def write(path: str, found: Iterable[ReportedFinding], here: str) -> int:
    """Write the findings as a baseline; returns how many there are. Raises UsageError."""
    folder = os.path.dirname(os.path.abspath(path))
    counts = Counter(_known(one, here, folder) for one in found)
    lines = [
        json.dumps({**known._asdict(), "count": count}, ensure_ascii=False) for known, count in sorted(counts.items())
    ]
    entries = "\n " + ",\n ".join(lines) + "\n" if lines else ""
    text = f'{{"kind": "{KIND}", "version": {VERSION}, "findings": [{entries}]}}\n'
    try:
        write_text(path, text)
    except UnreadableError as error:
        raise UsageError(f"`{path}` {error}") from error
    return sum(counts.values())


def _entries(data: Any) -> list[dict[str, Any]]:
    if data["kind"] != KIND or data["version"] != VERSION or not isinstance(data["findings"], list):
        raise ValueError("another format")
    return list(data["findings"])


def _known(found: ReportedFinding, here: str, folder: str) -> Known:
    return Known(_relative(found.file, here, folder), found.rule, found.message)


def _relative(file: str, here: str, folder: str) -> str:
    """The name, in the baseline in `folder`, of a file that is shown as this name in `here`."""
    return Path(os.path.relpath(os.path.join(here, file), folder)).as_posix()
