"""Finds which of many names resembles a misspelled one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load, releases

LEAST = 0.7
"""The least similarity (`SequenceMatcher.ratio`) at which two names count as alike."""
MAX_LENGTH = 80
"""The longest name, in characters, that is compared with others."""


@lru_cache(maxsize=512)
def flags_like(release: Release, typed: str) -> tuple[tuple[float, str], ...]:
    """The flags of a shipped release that are spelled like `typed` (with its dashes), the most similar first, with their similarity."""
    known = load(release).by_spelling
    return tuple((likeness, name) for likeness, name in _flags_like(typed) if name in known)


@lru_cache(maxsize=512)
def _flags_like(typed: str) -> tuple[tuple[float, str], ...]:
    """The same over all releases: these have nearly all flags in common, so a name is compared with each flag only once."""
    return tuple(sorted(_like(typed, _every_flag()), reverse=True))


@cache
def _every_flag() -> Sequence[str]:
    return sorted({s for release in releases() for s in load(release).by_spelling if s.startswith("--")})


def most_alike(typed: str, names: Sequence[str], least: float) -> str | None:
    """The name that is most similar to `typed`, if at least this similar; None otherwise."""
    return max(((likeness, name) for likeness, name in _like(typed, names) if likeness >= least), default=(0.0, None))[
        1
    ]


def _like(typed: str, names: Sequence[str]) -> Iterator[tuple[float, str]]:
    """The names with a similarity to `typed` of at least `LEAST`. Most are ruled out quickly by the letters that they cannot share."""
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
