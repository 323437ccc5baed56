"""The shipped catalogs: compressed tables under `data/`, written by `spec_lsp.catalog.build` and by nothing else.

A table holds each distinct row once and, for every release, the numbers of its rows in the parser's order.
"""

from __future__ import annotations

import functools
import gzip
import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from spec_lsp.catalog.model import FIELDS, SUPPRESS, Catalog, Flag, Variable
from spec_lsp.catalog.release import Release
from spec_lsp.records import dataclass

DATA = Path(__file__).parent / "data"
FLAGS = "flags.json.gz"
VARIABLES = "environment.json.gz"
FINGERPRINTS = "fingerprints.json.gz"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of every release. `rows` are JSON lists, `members[release]` the indices of the release's rows."""

    rows: Sequence[Any]
    members: Mapping[Release, Sequence[int]]


def read_table(name: str) -> Table:
    """The table in `data/NAME`; empty if there is none yet."""
    path = DATA / name
    if not path.exists():
        return Table((), {})
    data = json.loads(gzip.decompress(path.read_bytes()))
    return Table(data["rows"], {Release.parse(r): ids for r, ids in data["releases"].items()})


def write_table(name: str, releases: Mapping[Release, Sequence[Any]]) -> None:
    """Write the rows of all releases to `data/NAME`; the same rows give the same bytes."""
    numbers: dict[str, int] = {}
    members = {
        str(release): [numbers.setdefault(_encode(row), len(numbers)) for row in releases[release]]
        for release in sorted(releases)
    }
    rows = ",\n".join(numbers)
    text = f'{{"releases": {_encode(members)}, "rows": [{rows}]}}'
    DATA.mkdir(exist_ok=True)
    (DATA / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _encode(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Build(Protocol):
    """What is known of a build besides the release that it is nearest to."""

    @property
    def release(self) -> Release: ...
    @property
    def flags(self) -> tuple[Flag, ...]: ...
    @property
    def variables(self) -> tuple[Variable, ...]: ...


builds: dict[Release, Build] = {}
"""Builds of somebody's own that were read (see builds.py), by their releases."""


@functools.cache
def _flags() -> Table:
    return read_table(FLAGS)


@functools.cache
def _variables() -> Table:
    return read_table(VARIABLES)


@functools.cache
def releases() -> tuple[Release, ...]:
    """The releases that are shipped, oldest first."""
    return tuple(_flags().members)


@functools.lru_cache(maxsize=64)
def catalog_of(release: Release) -> Catalog:
    """The catalog that any release is checked against (its `release` says which): its own, that of a later post-release (0.5.8.post1 for
    0.5.8), else the nearest older one, else the oldest. Post-releases rarely add flags; the release before lacks all that 0.5.8 added."""
    later = () if release.local else (r for r in releases() if r[:3] == release[:3] and r >= release)
    return load(next(iter(later), release if release.local else nearest(release)))


def nearest(release: Release) -> Release:
    """The release itself if it is shipped or a build that was read, else the nearest older one; the oldest if none is older."""
    shipped = releases()
    if release in builds:
        return release
    return shipped[max(bisect_right(shipped, release) - 1, 0)]


@functools.lru_cache(maxsize=64)
def load(release: Release) -> Catalog:
    """The catalog of a shipped release, or of a build that was read. Raises KeyError for any other: ask `nearest` first."""
    if release.local:
        return Catalog(release, builds[release].flags)
    table = _flags()
    return Catalog(release, tuple(_flag(i) for i in table.members[release]))


@functools.cache
def fields_of_any() -> frozenset[str]:
    """The fields that some shipped release has, read from the table's rows, as loading every catalog takes a while."""
    return frozenset(FIELDS.get(dest, dest) for _, dest, _, _, _, default, *_ in _flags().rows if default != SUPPRESS)


@functools.lru_cache(maxsize=64)
def environment(release: Release) -> Mapping[str, Variable]:
    """The environment variables that a shipped release's source reads, or a build's, by name."""
    if release.local:
        return MappingProxyType({v.name: v for v in builds[release].variables})
    table = _variables()
    return MappingProxyType({v.name: v for v in map(_variable, table.members.get(release, ()))})


@functools.cache
def _flag(number: int) -> Flag:
    return decode_flag(_flags().rows[number])


@functools.cache
def _variable(number: int) -> Variable:
    return Variable(*_variables().rows[number])


def forget() -> None:
    """Drop cached tables after they were written again."""
    for cached in (_flags, _variables, releases, catalog_of, load, fields_of_any, environment, _flag, _variable):
        cached.cache_clear()


def decode_flag(row: Sequence[Any]) -> Flag:
    """A flag from its row: spellings, dest, action, nargs, const, default, type, choices, and a note where needed."""
    spellings, dest, action, nargs, const, default, type_, choices, *rest = row
    note: dict[str, Any] = rest[0] if rest else {}
    return Flag(
        tuple(spellings),
        dest,
        action,
        nargs,
        const,
        default,
        type_,
        None if choices is None else tuple(choices),
        **note,
    )


def encode_flag(flag: Flag) -> list[Any]:
    """The row of a flag; see `decode_flag`."""
    note: dict[str, Any] = {}
    if flag.required:
        note["required"] = True
    if flag.deprecated:
        note["deprecated"] = True
    if flag.replacement:
        note["replacement"] = flag.replacement
    if flag.fatal:
        note["fatal"] = True
    choices = None if flag.choices is None else list(flag.choices)
    row = [list(flag.spellings), flag.dest, flag.action, flag.nargs, flag.const, flag.default, flag.type, choices]
    return [*row, note] if note else row


def encode_variable(variable: Variable) -> list[Any]:
    """The row of an environment variable; trailing fields that say nothing are left out."""
    row = [variable.name, variable.type, variable.default]
    return [*row, variable.deprecated, variable.replacement] if variable.deprecated else row
