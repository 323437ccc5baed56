"""Since when and until when each flag, choice and environment variable exists, across the shipped releases; and what replaces what is gone.

The replacements are in `replacements.toml`, for a person to edit; a flag's own `replacement` in the catalog comes first.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import environment, load, releases

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

REPLACEMENTS = Path(__file__).with_name("replacements.toml")


@dataclass(frozen=True, slots=True)
class Span:
    """The shipped releases that have something: `since` is the first, `until` the first later one without it (None: the newest has it)."""

    since: Release
    until: Release | None

    def __contains__(self, release: object) -> bool:
        return isinstance(release, Release) and self.since <= release and (self.until is None or release < self.until)

    @property
    def from_the_start(self) -> bool:
        """Whether the oldest shipped release has it already, so that `since` says nothing."""
        return self.since == releases()[0]


@dataclass(frozen=True, slots=True)
class Replacement:
    """What to use instead of a flag or variable that is gone or deprecated, and what to know about it."""

    instead: str
    note: str = ""


def flag_span(spelling: str) -> Span | None:
    """The releases that know a flag by this exact spelling; None if none does."""
    return _flags().get(spelling)


def choice_span(field: str, choice: str) -> Span | None:
    """The releases whose flags for this field take this value; None if none does."""
    return _choices().get((field, choice))


def variable_span(name: str) -> Span | None:
    """The releases that read this environment variable; None if none does."""
    return _variables().get(name)


def replacement(name: str, release: Release | None = None) -> Replacement | None:
    """What replaces a flag (`--cuda-graph-max-bs`) or variable (`SGLANG_ENABLE_SPEC_V2`), as far as known.

    With `release`, what that release itself says of a deprecated one comes first.
    """
    said = ""
    if name.startswith("-"):
        flag = load(release).flag(name) if release is not None and release in releases() else _last_flag(name)
        said = flag.replacement if flag is not None else ""
    else:
        variable = environment(release).get(name) if release is not None else None
        said = variable.replacement if variable is not None else ""
    edited = _replacements().get(name)
    if edited is not None:
        return edited
    return Replacement(said) if said else None


def _last_flag(name: str) -> Any:
    span = flag_span(name)
    if span is None:
        return None
    having = [r for r in releases() if r in span]
    return load(having[-1]).flag(name)


def _spans(members: Iterable[tuple[Release, Iterable[Any]]]) -> Mapping[Any, Span]:
    first: dict[Any, Release] = {}
    gone: dict[Any, Release | None] = {}
    known: set[Any] = set()
    for release, names in members:
        now = set(names)
        for name in now:
            first.setdefault(name, release)
            gone[name] = None
        for name in known - now:
            gone[name] = release
        known = now
    return MappingProxyType({name: Span(since, gone[name]) for name, since in first.items()})


@functools.cache
def _flags() -> Mapping[str, Span]:
    return _spans((r, load(r).by_spelling) for r in releases())


@functools.cache
def _choices() -> Mapping[tuple[str, str], Span]:
    return _spans((r, {(f.field, str(c)) for f in load(r).flags for c in f.choices or ()}) for r in releases())


@functools.cache
def _variables() -> Mapping[str, Span]:
    return _spans((r, environment(r)) for r in releases())


@functools.cache
def _replacements() -> Mapping[str, Replacement]:
    data = tomllib.loads(REPLACEMENTS.read_text(encoding="utf-8"))
    return {name: Replacement(**entry) for name, entry in {**data["flags"], **data["variables"]}.items()}
