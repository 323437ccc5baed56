"""What ends a command early."""

from __future__ import annotations

from collections.abc import Iterable

CLEAN, FINDINGS, FAILED = 0, 1, 2
"""Exit codes: nothing to say, findings of error severity (or a refused launch), usage or internal error."""
INTERRUPTED, BROKEN_PIPE, TERMINATED = 130, 141, 143
"""Exit codes a shell shows for a program that SIGINT, SIGPIPE or SIGTERM ended."""


class UsageError(Exception):
    """The command cannot run as it was given: the message says why and what would do. Exit code 2."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ " Did you mean `x`?" with a leading blank, or nothing when no known word is near."""
    import difflib  # takes a while to import

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean `{near[0]}`?" if near else ""
