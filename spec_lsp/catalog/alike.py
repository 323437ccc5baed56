"""Which of many names a misspelt one looks like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load, releases

LEAST = 0.7
"""How alike two names are at least, to be told of one another (`SequenceMatcher.ratio`)."""
MAX_LENGTH = 80
"""Characters of a name beyond which it is like none."""


@lru_cache(maxsize=512)
def flags_like(release: Release, typed: str) -> tuple[tuple[float, str], ...]:
    """The flags of a shipped release that are spelt much like `typed` (with its dashes), the most alike first: how much, and which."""
    known = load(release).by_spelling
    return tuple((likeness, name) for likeness, name in _flags_like(typed) if name in known)


@lru_cache(maxsize=512)
def _flags_like(typed: str) -> tuple[tuple[float, str], ...]:
    """Of all releases: they have nearly all flags in common, so a name is compared with each flag once."""
    return tuple(sorted(_like(typed, _every_flag()), reverse=True))


@cache
def _every_flag() -> Sequence[str]:
    return sorted({s for release in releases() for s in load(release).by_spelling if s.startswith("--")})


def most_alike(typed: str, names: Sequence[str], least: float) -> str | None:
    """The name that is most like `typed`, at least so much; None if none is."""
    return max(((likeness, name) for likeness, name in _like(typed, names) if likeness >= least), default=(0.0, None))[
        1
    ]


def _like(typed: str, names: Sequence[str]) -> Iterator[tuple[float, str]]:
    """The names that are at least `LEAST` like `typed`, and how much. Letters that the two cannot share rule most out at a glance."""
    if len(typed) > MAX_LENGTH:
        return
    letters = typed.encode("latin-1", "replace")
    from difflib import SequenceMatcher  # takes a while to import

    matcher = SequenceMatcher(None, "", typed)
    for name in names:
        own = name.encode("latin-1", "replace")
        shared = min(len(letters) - len(letters.translate(None, own)), len(own) - len(own.translate(None, letters)))
        if 2 * shared < LEAST * (len(letters) + len(own)):
            continue
        matcher.set_seq1(name)
        if matcher.quick_ratio() >= LEAST and (likeness := matcher.ratio()) >= LEAST:
            yield likeness, name
