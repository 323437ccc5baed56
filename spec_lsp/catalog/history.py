"""In which of the shipped releases each flag, choice and environment variable exists; and replacements of removed ones.

The replacements are in `replacements.toml`, which is edited by hand; a flag's own `replacement` in the catalog takes precedence.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import environment, load, nearest, releases
from spec_lsp.records import dataclass, field

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

    def __str__(self) -> str:
        """In words: `since 0.5.9, gone in 0.5.20`."""
        first = "from the oldest we know" if self.from_the_start else f"since {self.since}"
        return first + (f", gone in {self.until}" if self.until else "")


@dataclass(frozen=True, slots=True)
class Replacement:
    """What to use instead of a flag or variable that is gone or deprecated, and what to know about it."""

    instead: str = ""
    note: str = ""
    also: tuple[str, ...] = ()
    """Flags with their values that are needed beside `instead`."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The old flag's values, mapped to those of the new one."""
    value_of: str = ""
    """The flag whose value the new one is given."""
    takes_over: bool = False
    """Whether the new flag replaces that one, too."""

    @property
    def fixed(self) -> tuple[tuple[str, str], ...]:
        """The flags and values to write if the value is fixed: `--moe-a2a-backend`, `deepep`."""
        pairs = [tuple(re.split(r"[ =]", text, maxsplit=1)) for text in (self.instead, *self.also)]
        return tuple((p[0], p[1]) for p in pairs if len(p) == 2) if all(len(p) == 2 for p in pairs) else ()

    @property
    def name(self) -> str:
        """The flag or variable alone: `--moe-a2a-backend` of `--moe-a2a-backend deepep`."""
        return re.split(r"[ =]", self.instead, maxsplit=1)[0]


def flag_span(spelling: str) -> Span | None:
    """The releases that know a flag by this exact spelling; None if none does."""
    return _flags().get(spelling)


def choice_span(name: str, choice: str) -> Span | None:
    """The releases whose flags for this field take this value; None if none does."""
    return _choices().get((name, choice))


def field_span(name: str) -> Span | None:
    """The releases that have a field of this name, which a flag of any name fills; None if none has."""
    return _fields().get(name)


def variable_span(name: str) -> Span | None:
    """The releases that read this environment variable; None if none does."""
    return _variables().get(name)


def variable_names() -> Iterable[str]:
    """Every environment variable that some release reads."""
    return _variables().keys()


def replacement(name: str, release: Release | None = None) -> Replacement | None:
    """The replacement of a flag (`--cuda-graph-max-bs`) or variable (`SGLANG_ENABLE_SPEC_V2`) in a release, as far as known.

    A replacement that was itself replaced before `release` (default: the newest) is followed further.
    """
    release = release or releases()[-1]
    found = _replacement(name, release)
    for _ in range(5):
        if found is None or not found.instead or _exists(found.name, release):
            break
        later = _replacement(found.name, release)
        if later is None:
            break
        found = later
    return found


def _replacement(name: str, release: Release) -> Replacement | None:
    """The replacement from our file, else the one that the release itself names."""
    edited = _replacements().get(name)
    if edited is not None:
        return edited
    shipped = nearest(release)
    known = load(shipped).flag(name) if name.startswith("-") else environment(shipped).get(name)
    return Replacement(known.replacement) if known is not None and known.replacement else None


def _exists(name: str, release: Release) -> bool:
    return name in (load(nearest(release)).by_spelling if name.startswith("-") else environment(nearest(release)))


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
def _fields() -> Mapping[str, Span]:
    return _spans((r, {f.field for f in load(r).flags if f.action != "deprecated"}) for r in releases())


@functools.cache
def _variables() -> Mapping[str, Span]:
    return _spans((r, environment(r)) for r in releases())


@functools.cache
def _replacements() -> Mapping[str, Replacement]:
    if sys.version_info >= (3, 11):
        import tomllib  # takes a while to import
    else:  # pragma: no cover
        import tomli as tomllib

    data = tomllib.loads(REPLACEMENTS.read_text(encoding="utf-8"))
    return {
        name: Replacement(**{**entry, "also": tuple(entry.get("also", ()))})
        for name, entry in {**data["flags"], **data["variables"]}.items()
    }
