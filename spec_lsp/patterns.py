"""Patterns as in .gitignore, for the setting `exclude`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache


class Patterns:
    """A list of patterns, relative to one folder. The last one that matches decides; `!` takes a path in again."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._rules = [rule for p in patterns if (rule := _rule(p)) is not None]

    def __bool__(self) -> bool:
        return bool(self._rules)

    def match(self, path: str) -> bool:
        """Whether a file (relative, `/` between folders) is left out, by itself or with a folder above it."""
        if not self._rules:
            return False
        parts = path.split("/")
        if any(self._decide("/".join(parts[:n]), True) for n in range(1, len(parts))):
            return True
        return self._decide(path, False)

    def _decide(self, path: str, is_folder: bool) -> bool:
        out = False
        for expression, taken_in, folders_only in self._rules:
            if (is_folder or not folders_only) and expression.fullmatch(path):
                out = not taken_in
        return out


@lru_cache(maxsize=256)
def _rule(pattern: str) -> tuple[re.Pattern[str], bool, bool] | None:
    """A pattern's expression, whether it takes in, whether it is for folders only; None for comments and blanks."""
    text = pattern.rstrip()
    if not text or text.startswith("#"):
        return None
    taken_in = text.startswith("!")
    text = text.removeprefix("!")
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    expression = _expression(text.lstrip("/"))
    return re.compile(expression if anchored else f"(?:.*/)?{expression}", re.DOTALL), taken_in, folders_only


def _expression(glob: str) -> str:
    out, i = "", 0
    while i < len(glob):
        rest = glob[i:]
        if rest.startswith("**/"):
            out, i = out + "(?:.*/)?", i + 3
        elif rest == "**":
            out, i = out + ".*", i + 2
        elif rest[0] == "*":
            out, i = out + "[^/]*", i + 1
        elif rest[0] == "?":
            out, i = out + "[^/]", i + 1
        elif rest[0] == "[" and (end := glob.find("]", i + 2)) > 0:
            inside = glob[i + 1 : end].replace("\\", "\\\\")
            out, i = out + f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]", end + 1
        elif rest[0] == "\\" and len(rest) > 1:
            out, i = out + re.escape(rest[1]), i + 2
        else:
            out, i = out + re.escape(rest[0]), i + 1
    return out
