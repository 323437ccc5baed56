"""Shell patterns (`*`, `?`, `[…]`, `@(a|b)`) as regular expressions."""

from __future__ import annotations

import re
from functools import lru_cache

MAX_PATTERN = 400
MAX_WORK = 500_000
MAX_REPEATED = 16
EXTENDED = {"?": "?", "*": "*", "+": "+", "@": ""}
CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "digit": "0-9", "lower": "a-z", "upper": "A-Z",
    "space": r"\s", "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "blank": r" \t", "word": r"\w",
}  # fmt: skip


def matches(text: str, pattern: str) -> bool | None:
    """Whether a pattern matches the whole text; None if we cannot tell. Backslashes in the pattern quote."""
    compiled = compile_pattern(pattern) if affordable(pattern, len(text), 1) else None
    return None if compiled is None else compiled.fullmatch(text) is not None


def affordable(pattern: str, length: int, tries: int) -> bool:
    """Whether matching a text of that length so many times is quick, however the pattern backtracks."""
    if re.search(r"[*+]\(", pattern):  # each character may end one repetition
        return length <= MAX_REPEATED
    stars = len(re.findall(r"(?<!\\)\*", pattern)) + pattern.count("(")
    work: int = tries * (length + 1) ** max(stars, 1) << pattern.count("|")
    return work <= MAX_WORK


def quote(text: str) -> str:
    """The pattern that matches just this text."""
    return re.sub(r"([\\*?\[\]()|@+!])", r"\\\1", text)


def is_plain(pattern: str) -> bool:
    """Whether a pattern matches only one text."""
    return not re.search(r"[*?\[\\]|[@+!]\(", pattern)


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    if len(pattern) > MAX_PATTERN or pattern.count("*") > 8:
        return None
    try:
        return re.compile(_translate(pattern), re.S)
    except (re.error, ValueError, IndexError, KeyError, OverflowError):
        return None


def _translate(pattern: str) -> str:
    out: list[str] = []
    closers: list[str] = []
    i = 0
    while i < len(pattern):
        char = pattern[i]
        following = pattern[i + 1 : i + 2]
        if char == "\\" and following:
            out.append(re.escape(following))
            i += 1
        elif char in EXTENDED and following == "(":
            out.append("(?:")
            closers.append(")" + EXTENDED[char])
            i += 1
        elif char == "!" and following == "(":
            raise ValueError("negated pattern")
        elif closers and char == "|":
            out.append("|")
        elif closers and char == ")":
            out.append(closers.pop())
        elif char == "*":
            out.append(".*")
        elif char == "?":
            out.append(".")
        elif char == "[" and (close := _bracket_end(pattern, i)) is not None:
            out.append(_bracket(pattern[i + 1 : close]))
            i = close
        else:
            out.append(re.escape(char))
        i += 1
    if closers:
        raise ValueError("open group")
    return "".join(out)


def _bracket_end(pattern: str, start: int) -> int | None:
    m = re.compile(r"\[[!^]?\]?(?:\[:\w+:\]|[^\]])*\]").match(pattern, start)
    return m.end() - 1 if m else None


def _bracket(inner: str) -> str:
    negated = inner[:1] in ("!", "^")
    body = inner[1:] if negated else inner
    pieces = re.split(r"\[:(\w+):\]", body)
    text = "".join(CLASSES[p] if i % 2 else re.sub(r"([\\\[\]^&~|])", r"\\\1", p) for i, p in enumerate(pieces))
    return f"[{'^' if negated else ''}{text}]"
