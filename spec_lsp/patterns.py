"""Patterns as in .gitignore: for the setting `exclude`, and for git's own files.

A pattern becomes a regular expression that never backtracks at a `*`: the text between two `*` is matched where it first fits, as no later
place can be better. So matching is linear for every pattern. (pathspec, which supports the same patterns, leaves matching to backtracking:
`*a*a*a*a*a*b` takes it minutes for one long name.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count, groupby

MAX_PATTERNS = 5_000
"""The most patterns of one list that are used."""
MAX_PATTERN = 1_000
"""The longest pattern, in characters: file names have at most 255, and paths rarely more."""


class Patterns:
    """A list of patterns, relative to one folder. The last one that matches decides; `!` includes a path again."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._lines = tuple(p for p in patterns if p.strip() and not p.startswith("#"))[:MAX_PATTERNS]

    def __bool__(self) -> bool:
        return bool(self._lines)

    def match(self, path: str) -> bool:
        """Whether a file (relative, `/` between folders) is excluded, by itself or with a folder above it."""
        if not self._lines:
            return False
        parts = path.split("/")
        if any(self.decide("/".join(parts[:n]), True) for n in range(1, len(parts))):
            return True
        return bool(self.decide(path, False))

    def decide(self, path: str, is_folder: bool) -> bool | None:
        """Whether a path is excluded (True) or included again (False); None if no pattern matches the path itself."""
        if not self._lines:
            return None
        expression, taken_in = _compiled(self._lines, is_folder)
        found = expression.fullmatch(path) if expression is not None else None
        return None if found is None else not taken_in[found.lastgroup or ""]


def misfit(pattern: str) -> str:
    """Why a pattern can match nothing, as the end of a sentence; empty if it can match."""
    if len(pattern) > MAX_PATTERN:
        return f"a pattern of more than {MAX_PATTERN:,} characters is not used"
    text = _trimmed(pattern)
    if text and not text.startswith("#") and _rule(text) is None:
        return f"{pattern!r} matches nothing"
    return ""


@lru_cache(maxsize=512)
def _compiled(lines: Sequence[str], is_folder: bool) -> tuple[re.Pattern[str] | None, dict[str, bool]]:
    """One expression for all patterns, the last one first; the name of the matching group says whether it includes."""
    rules = [r for line in reversed(lines) if len(line) <= MAX_PATTERN and (r := _rule(_trimmed(line))) is not None]
    parts, taken_in = [], {}
    numbers = count()
    usable = (rule for rule in rules if is_folder or not rule.folders_only)
    for number, (way, own) in enumerate(groupby(usable, key=lambda rule: rule.taken_in)):
        taken_in[f"way{number}"] = way
        parts.append(f"(?P<way{number}>{'|'.join(rule.expression(numbers) for rule in own)})")
    return (re.compile("|".join(parts), re.DOTALL), taken_in) if parts else (None, {})


class _Rule:
    def __init__(self, segments: list[str], taken_in: bool, folders_only: bool) -> None:
        self._segments = segments
        self.taken_in = taken_in
        self.folders_only = folders_only

    def expression(self, numbers: Iterator[int]) -> str:
        """Runs of segments between `**`. The first run is anchored at the beginning, the last one at the end, each other one matches where
        it first fits."""
        runs = _split(self._segments, "**")
        written = ["/".join(_segment(s, numbers) for s in run) for run in runs]
        if len(runs) == 1:
            return written[0]
        out = f"{written[0]}/" if runs[0] else ""
        for run in written[1:-1]:
            out += _first_fit(rf"(?:[^/]*/)*?{run}/", numbers) if run else ""
        return out + (rf"(?:[^/]*/)*{written[-1]}" if runs[-1] else ".+")


def _rule(text: str) -> _Rule | None:
    """A pattern without its line end; None for comments, blanks and what git does not accept as a pattern."""
    if not text or text.startswith("#"):
        return None
    taken_in = text.startswith("!")
    text = text.removeprefix("!")
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    segments = text.split("/")
    if segments and segments[0] == "" and len(segments) > 1:
        segments = segments[1:]
    elif len(segments) == 1:
        segments = ["**", *segments]
    segments = [s for s, _ in groupby(segments) if s == "**"] if set(segments) == {"**"} else _without_doubles(segments)
    if not all(_chunks(s) is not None for s in segments) or "" in segments:
        return None
    return _Rule(segments, taken_in, folders_only)


def _without_doubles(segments: Sequence[str]) -> list[str]:
    return [s for i, s in enumerate(segments) if s != "**" or i == 0 or segments[i - 1] != "**"]


def _trimmed(line: str) -> str:
    """The pattern without trailing blanks, except one after a backslash."""
    kept = line.rstrip("\r\n").rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return kept + " " if backslashes % 2 and len(kept) < len(line.rstrip("\r\n")) else kept


def _split(segments: Sequence[str], mark: str) -> list[list[str]]:
    runs: list[list[str]] = [[]]
    for segment in segments:
        if segment == mark:
            runs.append([])
        else:
            runs[-1].append(segment)
    return runs


def _first_fit(expression: str, numbers: Iterator[int]) -> str:
    """Matched where it first fits, and nowhere else afterwards."""
    name = f"fit{next(numbers)}"
    return f"(?=(?P<{name}>{expression}))(?P={name})"


# --- one segment -----------------------------------------------------------------------------------------------------


def _segment(segment: str, numbers: Iterator[int]) -> str:
    chunks = _chunks(segment) or [""]
    if len(chunks) == 1:
        return chunks[0]
    middle = "".join(_first_fit(f"[^/]*?{chunk}", numbers) for chunk in chunks[1:-1] if chunk)
    return f"{chunks[0]}{middle}[^/]*{chunks[-1]}"


@lru_cache(maxsize=4096)
def _chunks(segment: str) -> list[str] | None:
    """The parts between the `*` of a segment, as expressions; None for a segment that git does not accept."""
    chunks, i = [""], 0
    while i < len(segment):
        c = segment[i]
        if c == "*":
            chunks.append("")
        elif c == "?":
            chunks[-1] += "[^/]"
        elif c == "[":
            found = _class(segment, i)
            if found is None:
                return None
            expression, i = found
            chunks[-1] += expression
            continue
        elif c == "\\":
            i += 1
            if i == len(segment):
                return None
            chunks[-1] += re.escape(segment[i])
        else:
            chunks[-1] += re.escape(c)
        i += 1
    return chunks


_NAMED = {
    "alnum": r"a-zA-Z0-9", "alpha": r"a-zA-Z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": r"0-9", "graph": r"!-~",
    "lower": r"a-z", "print": r" -~", "punct": r"!-/:-@\[-`{-~", "space": r" \t\n\r\f\v", "upper": r"A-Z", "xdigit": r"0-9A-Fa-f",
}  # fmt: skip


def _class(segment: str, start: int) -> tuple[str, int] | None:
    """The characters in brackets, and where they end. A slash is never among them."""
    i = start + 1
    negated = segment[i : i + 1] in ("!", "^")
    i += negated
    first = i
    inside = ""
    while True:
        if i >= len(segment):
            return None
        if segment[i] == "]" and i > first:
            break
        if segment.startswith("[:", i) and (end := segment.find(":]", i)) > 0:
            named = _NAMED.get(segment[i + 2 : end])
            if named is None:
                return None
            inside, i = inside + named, end + 2
            continue
        low, i = _one(segment, i)
        if segment[i : i + 1] == "-" and i + 1 < len(segment) and segment[i + 1] != "]":
            high, i = _one(segment, i + 1)
            inside += f"{_escaped(low)}-{_escaped(high)}" if low <= high else _escaped(low)  # as git has it
        else:
            inside += _escaped(low)
    if not inside:
        return ("[^/]" if negated else "(?!)"), i + 1
    return (f"(?!/)[{'^' if negated else ''}{inside}]"), i + 1


def _one(segment: str, i: int) -> tuple[str, int]:
    if segment[i] == "\\" and i + 1 < len(segment):
        i += 1
    return segment[i], i + 1


def _escaped(c: str) -> str:
    return f"\\U{ord(c):08x}"
