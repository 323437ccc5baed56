"""The resolution of somebody's own build, function by function.

Each step follows a function of SGLang's. If the build's function is the same as in its nearest release, that release's step is used; if it
is the same as in another release, that one's. If the build changed it, what the step adjusts is unknown, and what it refuses is a warning,
as the build may have changed just that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Literal, cast

from spec_lsp.catalog.builds import OwnBuild
from spec_lsp.catalog.fingerprints import bare, find, index, is_resolution, shipped
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import builds, releases
from spec_lsp.facts.known import NotKnown
from spec_lsp.interruption import checkpoint
from spec_lsp.records import dataclass, replace
from spec_lsp.resolution.engine import Config, Handler, Refusal, Rule, Step, in_release
from spec_lsp.resolution.pipeline import handlers_by_name

State = Literal["same", "earlier", "changed", "gone"]
"""As in the nearest release, as in another one, as in none, or not there."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The state, in a build, of a place that handlers or rules follow. `release` is the one whose steps are used; `functions` are those
    that no release has in this form."""

    place: str
    state: State
    release: Release
    functions: tuple[str, ...] = ()

    @property
    def certain(self) -> bool:
        return self.state in ("same", "earlier")

    def why(self) -> str:
        """What the build did, as a sentence without its full stop."""
        if self.state == "gone":
            return f"this build has no `{bare(self.place)}`"
        return f"this build changed {' and '.join(f'`{bare(f)}`' for f in self.functions[:2])}"


class Comparison:
    """A build compared with the releases, by the functions that are followed."""

    def __init__(self, build: OwnBuild) -> None:
        self.build = build
        self.base = build.release.stock
        self.known = index(build.functions)
        self._followed: dict[str, Followed] = {}
        self._places = {place for _, handler in handlers_by_name(self.base) for place, _ in _places(handler, self.base)}
        self._own = {key for place in self._places for key in find(place, self.known)}
        """The functions of the build that handlers follow; none of them counts as a part of another."""
        by_name: dict[str, list[str]] = {}
        for key in build.functions:
            by_name.setdefault(bare(key), []).append(key)
        self._by_name = by_name

    def followed(self, place: str) -> Followed:
        """The state of a place in the build."""
        if place not in self._followed:
            self._followed[place] = self._compare(place)
        return self._followed[place]

    def concerned(self) -> Mapping[str, tuple[tuple[str, ...], tuple[Rule, ...], bool]]:
        """The handlers and rules that depend on each function of the build, and whether all of them are the same as in a release."""
        found: dict[str, tuple[dict[str, None], dict[str, Rule], list[bool]]] = {}
        for name, handler in handlers_by_name(self.base):
            for place, rule in _places(handler, self.base):
                certain = self.followed(place).certain
                for key in self._parts(find(place, self.known)):
                    handlers, rules, sure = found.setdefault(key, ({}, {}, []))
                    handlers[name] = None
                    sure.append(certain)
                    if rule is not None and in_release(self.base, rule.since, rule.until):
                        rules[rule.name] = rule
        return {key: (tuple(h), tuple(r.values()), all(sure)) for key, (h, r, sure) in found.items()}

    def _compare(self, place: str) -> Followed:
        there = find(place, index_of(self.base)) or _FORMER
        keys = tuple(k for p in _FORMER for k in find(p, self.known)) if there is _FORMER else find(place, self.known)
        if not keys:
            return Followed(place, "gone", self.base)
        parts = self._parts(keys)
        other = self._changed(parts, self.base)
        if not other and set(map(bare, keys)) >= {bare(k) for k in there if there is not _FORMER}:
            return Followed(place, "same", self.base)
        for release in reversed(releases()):
            if release != self.base and not self._changed(parts, release):
                return Followed(place, "earlier", release)
        return Followed(place, "changed", self.base, other)

    def _parts(self, keys: Iterable[str]) -> set[str]:
        """Functions with everything that they use, except what other handlers follow."""
        found: set[str] = set()
        todo = list(keys)
        while todo:
            checkpoint()
            key = todo.pop()
            if key in found:
                continue
            found.add(key)
            file = key.partition(":")[0]
            for name in self.build.functions[key].uses:
                named = self._by_name.get(name, ())
                near = [k for k in named if k.partition(":")[0] == file] or [k for k in named if is_resolution(k)]
                todo += (k for k in near if k not in self._own)
        return found

    def _changed(self, keys: Iterable[str], release: Release) -> tuple[str, ...]:
        """Those of the functions that differ from a release's, wherever they are in its files."""
        prints = prints_of(release)
        functions = self.build.functions
        return tuple(sorted(k for k in keys if functions[k].fingerprint not in prints.get(plain(k), ())))


_FORMER = ("server_args.py:_handle_model_specific_adjustments", "server_args.py:__post_init__")
"""Where releases before 0.5.15 had the code that has functions of its own since."""


@cache
def index_of(release: Release) -> Mapping[str, Sequence[str]]:
    return index(shipped(release))


@cache
def prints_of(release: Release) -> Mapping[str, frozenset[str]]:
    """The fingerprints of a release's functions by their names."""
    found: dict[str, set[str]] = {}
    for key, fingerprint in shipped(release).items():
        found.setdefault(plain(key), set()).add(fingerprint)
    return {name: frozenset(prints) for name, prints in found.items()}


def plain(key: str) -> str:
    return bare(key).lstrip("_")


@lru_cache(maxsize=8)
def comparison(release: Release) -> Comparison:
    """The comparison of a build that was read. Raises KeyError for any other release."""
    return Comparison(cast(OwnBuild, builds[release]))


def _places(handler: Handler, release: Release) -> Iterator[tuple[str, Rule | None]]:
    yield handler.place(release), None
    for step in handler.steps:
        if step.rule is not None:
            yield step.rule.place(release)[0], step.rule


def handlers_of_build(release: Release) -> tuple[Handler, ...]:
    """The handlers of a build, in the order of the release that it is nearest to."""
    beside = comparison(release)
    return tuple(_handler(handler, beside) for _, handler in handlers_by_name(beside.base))


def _handler(handler: Handler, beside: Comparison) -> Handler:
    """A handler whose steps are those of the releases that its functions match."""
    own = beside.followed(handler.place(beside.base))
    if not in_release(own.release, handler.since, handler.until):
        own = replace(own, release=beside.base)
    if not in_release(own.release, handler.since, handler.until):
        return Handler(handler.sglang)
    made = Handler(handler.sglang, when=_when(handler, own.release), earlier=handler.earlier, rare=handler.rare)
    for step in handler.steps:
        rule = step.rule
        followed = own if rule is None else beside.followed(rule.place(beside.base)[0])
        if rule is not None and own.state in ("changed", "gone") and followed.certain:
            followed = own  # its caller may no longer call it
        if in_release(followed.release, step.since, step.until):
            made.steps += _steps(step, made, followed)
    return made


def _when(handler: Handler, release: Release) -> Callable[[Config], bool] | None:
    guard = handler.when
    return None if guard is None else lambda c: bool(_as_in(release, guard, c))


def _as_in(release: Release, run: Callable[[Config], Any], c: Config) -> Any:
    """A step as it is in another release than the launch's."""
    build, c.release = c.release, release
    try:
        return run(c)
    finally:
        c.release = build


def _steps(step: Step, handler: Handler, followed: Followed) -> list[Step]:
    """A step as the build has it. An uncertain refusal becomes two steps: one that warns and one that leaves it undecided."""

    def run(c: Config) -> Any:
        return _as_in(followed.release, step.run, c)

    def lacking(c: Config) -> Any:
        raise NotKnown("SGLang's function", followed.why())

    def warn(c: Config) -> Refusal | None:
        said = cast("Refusal | None", run(c))
        return said and said._replace(message=f"{said.message} {followed.why().capitalize()}: it may take this launch.")

    run.__doc__ = lacking.__doc__ = step.run.__doc__
    same = replace(step, run=run, handler=handler, since="", until="")
    if followed.certain:
        return [same]
    if step.rule is None:
        return [replace(same, run=lacking)]
    if step.rule.severity != "error":
        return []
    return [replace(same, run=warn, rule=_as_warning(step.rule)), replace(same, run=lacking)]


@cache
def _as_warning(rule: Rule) -> Rule:
    return replace(rule, severity="warning")
