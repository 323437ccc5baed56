"""The differences of somebody's own build from its nearest release, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from spec_lsp.catalog.fingerprints import RESOLUTION, bare, find, is_resolution, shipped
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.records import dataclass
from spec_lsp.resolution.builds import comparison, index_of, plain, prints_of
from spec_lsp.resolution.engine import Rule
from spec_lsp.resolution.following import Followers, followed


@dataclass(frozen=True, slots=True)
class Difference:
    """A function that differs in a build from its nearest release. `releases` have exactly this form, oldest first; `handlers` and `rules`
    follow it or something that uses it, `certain` if they still match a release; `users` are the functions of the build that use one that
    is new."""

    place: str
    kind: Literal["changed", "new", "gone"]
    releases: tuple[Release, ...]
    handlers: tuple[str, ...]
    rules: tuple[Rule, ...]
    certain: bool
    users: tuple[str, ...] = ()


def differences(release: Release) -> Iterator[Difference]:
    """The functions of argument resolution, and other followed functions, that differ in a build from its nearest release.

    A function that only moved does not differ.
    """
    beside = comparison(release)
    functions, known, concerned = beside.build.functions, shipped(beside.base), beside.concerned()
    moved = prints_of(beside.base)
    for key, definition in sorted(functions.items()):
        if known.get(key) == definition.fingerprint or definition.fingerprint in moved.get(plain(key), ()):
            continue
        if key not in concerned and not key.startswith(RESOLUTION):
            continue
        having = tuple(r for r in releases() if definition.fingerprint in prints_of(r).get(plain(key), ()))
        handlers, rules, certain = concerned.get(key, ((), (), False))
        if find(_place(key), index_of(beside.base)):
            yield Difference(key, "changed", having, handlers, rules, certain)
        else:
            users = tuple(sorted(bare(k) for k, d in functions.items() if bare(key) in d.uses and is_resolution(k)))
            yield Difference(key, "new", having, handlers, rules, certain, users)
    followers = followed(beside.base)
    for key in sorted(known):
        own = followers.get(key, Followers((), ()))
        if (key in followers or key.startswith(RESOLUTION)) and not find(_place(key), beside.known):
            yield Difference(key, "gone", (), own.handlers, own.rules, False)


def _place(key: str) -> str:
    """A function as handlers and rules would name it."""
    return f"{key.partition(':')[0]}:{bare(key)}"
