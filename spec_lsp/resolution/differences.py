"""What a build of somebody's own has otherwise than the release that it is nearest to, for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from spec_lsp.catalog.fingerprints import RESOLUTION, bare, find, is_resolution, shipped
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.resolution.builds import comparison, index_of, plain, prints_of
from spec_lsp.resolution.engine import Rule
from spec_lsp.resolution.following import Followers, followed


@dataclass(frozen=True, slots=True)
class Difference:
    """A function that a build has otherwise than its nearest release. `releases` have it just so, oldest first; `handlers` and `rules`
    follow it or what uses it, `certain` as a release has them; `users` are the functions of the build that use one that is new."""

    place: str
    kind: Literal["changed", "new", "gone"]
    releases: tuple[Release, ...]
    handlers: tuple[str, ...]
    rules: tuple[Rule, ...]
    certain: bool
    users: tuple[str, ...] = ()


def differences(release: Release) -> Iterator[Difference]:
    """The functions of argument resolution, and those that are followed elsewhere, that a build has otherwise than its nearest release.

    One that only moved is no other.
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
