"""Functions whose fingerprint changed, what follows each of them, and how they differ."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from spec_lsp.catalog.fingerprints import Definition, bare, definitions
from spec_lsp.catalog.release import Release
from spec_lsp.resolution.engine import plan_of
from spec_lsp.resolution.following import Followers, followed, places
from spec_lsp.resolution.handlers import handlers_of
from tests.upkeep.report import Part, fenced, some

Kind = Literal["changed", "gone", "new"]
NOBODY = Followers((), ())
HELPERS = 3
"""How far a helper that changed is from what is followed, and still told with it."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of argument resolution that the new release has otherwise. `through` names helpers: those who follow what uses it."""

    place: str
    kind: Kind
    followers: Followers
    through: tuple[str, ...]
    difference: tuple[str, ...]

    @property
    def name(self) -> str:
        return bare(self.place)

    @property
    def followed(self) -> bool:
        return bool(self.followers.handlers or self.followers.rules or self.through)


class Differences:
    """Two releases' functions of argument resolution, beside each other. `old` and `new` are packages (folders `sglang`)."""

    def __init__(self, old: Path, new: Path, before: Release) -> None:
        self._roots = old, new
        self._old, self._new = (definitions(root, places()) for root in (old, new))
        self._before = before
        self._followed: Mapping[str, Followers] = followed(before)

    @cached_property
    def functions(self) -> list[Function]:
        """All that differ, those that something follows first."""
        keys = dict.fromkeys((*self._old, *self._new))
        found = [self._function(key, kind) for key in keys if (kind := self._kind(key)) is not None]
        return sorted(found, key=lambda f: (not f.followed, f.place))

    @cached_property
    def moved(self) -> dict[str, str]:
        """Functions that are the same in another file or class."""
        gone = {(bare(k), d.fingerprint): k for k, d in self._old.items() if k not in self._new}
        come = ((k, gone.get((bare(k), d.fingerprint))) for k, d in self._new.items() if k not in self._old)
        return {old: new for new, old in come if old is not None}

    def _kind(self, key: str) -> Kind | None:
        if key in self.moved or key in self.moved.values():
            return None
        if key not in self._new:
            return "gone"
        if key not in self._old:
            return "new"
        return None if self._old[key].fingerprint == self._new[key].fingerprint else "changed"

    def _function(self, key: str, kind: Kind) -> Function:
        own = self._followed.get(key, NOBODY)
        through = () if own is not NOBODY else tuple(self._users(key))
        return Function(key, kind, own, through, tuple(self._difference(key)))

    def _users(self, key: str) -> Iterator[str]:
        """The followed functions that use a helper, directly or through others."""
        name = bare(key)
        seen, names, others = {name}, {name}, self._users_of_another(key)
        for _ in range(HELPERS):
            users = {k for table in (self._old, self._new) for k, d in table.items() if d.uses & names} - others
            yield from sorted(k for k in users if k in self._followed and bare(k) not in seen)
            names = {bare(k) for k in users} - seen
            seen |= names

    def _users_of_another(self, key: str) -> set[str]:
        """Who used the name of a new helper in other files before it came (`logger`): they use another of that name."""
        if key in self._old:
            return set()
        file = key.partition(":")[0]
        return {k for k, d in self._old.items() if bare(key) in d.uses and k.partition(":")[0] != file}

    def _difference(self, key: str) -> Iterator[str]:
        old, new = (
            _source(root, table.get(key)) for root, table in zip(self._roots, (self._old, self._new), strict=True)
        )
        yield from difflib.unified_diff(old, new, lineterm="", n=2)

    # --- what the report points at

    def points_at(self, function: str) -> str:
        """How the report names a function (its own name): as changed, gone or new itself, or as one that uses such a function; else empty."""
        name = function.rpartition(".")[2].lstrip("_")
        kinds = {f.kind for f in self.functions if f.name.lstrip("_") == name}
        if kinds:
            return " and ".join(sorted(kinds))
        users = {bare(u).lstrip("_") for f in self.functions for u in f.through}
        return "uses what changed" if name in users else ""

    def decides(self, field: str) -> str:
        """How the report names what decides a field: a function that differs in lines about it, or one that a step which adjusts it
        follows; else empty."""
        word = re.compile(rf"\b{re.escape(field)}\b")
        for function in self.functions:
            if any(word.search(line) for line in function.difference if line[:1] in "+-"):
                return f"`{function.name}`"
        named = (bare(place) for place in self._adjusting.get(field, ()))
        return next((f"`{name}` ({how})" for name in named if (how := self.points_at(name))), "")

    @cached_property
    def _adjusting(self) -> Mapping[str, list[str]]:
        """The functions that the steps follow which adjust a field, in the release before."""
        found: dict[str, list[str]] = {}
        for handler, steps, _ in plan_of(handlers_of(self._before), self._before):
            for step in steps:
                for field in step.fields:
                    found.setdefault(field, []).append(handler.place(self._before))
        return found

    # --- the part

    def part(self, gone_through: bool = False) -> Part:
        """The functions that differ, each with who follows it; nothing is left to do where somebody has gone through them."""
        followed_, others = [f for f in self.functions if f.followed], [f for f in self.functions if not f.followed]
        new = [f.place for f in others if f.kind == "new"]
        lines = [f"- `{f.place}` ({f.kind}): {_who(f)}" for f in followed_]
        lines += [f"- moved: `{old}` is now `{now}`" for old, now in sorted(self.moved.items())]
        lines += [f"- `{f.place}` ({f.kind}): nothing follows it" for f in others]
        todo = []
        if followed_:
            todo.append(
                f"Follow {len(followed_)} functions that changed: compare each with its handlers and rules (differences in the report)"
            )
        if new:
            todo.append(f"Look at {len(new)} new functions that nothing follows: {some(new)}")
        if gone := [old for old in self.moved if old in self._followed]:
            todo.append(f"Name the new place of {some(gone)} (`sglang=`, with the old one in `earlier`)")
        return Part("Functions of argument resolution", lines, [] if gone_through else todo, list(self._details()))

    def _details(self) -> Iterator[str]:
        for function in self.functions:
            yield from (f"### `{function.place}` ({function.kind})", "", f"Followed by: {_who(function)}", "")
            yield from (*fenced(function.difference[2:], "diff"), "")


def _who(function: Function) -> str:
    own = function.followers
    names = [*own.handlers, *(rule.name for rule in own.rules)]
    if names:
        return some(names)
    return f"what follows {some([bare(p) for p in function.through])}" if function.through else "nothing"


def _source(root: Path, definition: Definition | None) -> list[str]:
    if definition is None:
        return []
    lines = (root / definition.place.partition(":")[0]).read_text("utf-8-sig").split("\n")
    return lines[definition.first - 1 : definition.last]
