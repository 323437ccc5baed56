"""Which of SGLang's functions each handler and rule follows in each release; used to see what a build affects (see builds.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType

from spec_lsp.catalog.fingerprints import find, index, shipped
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.records import dataclass
from spec_lsp.resolution.engine import Handler, Rule, plan_of
from spec_lsp.resolution.handlers import handlers_of
from spec_lsp.resolution.pipeline import handlers_by_name


@dataclass(frozen=True, slots=True)
class Followers:
    """The followers of a function: handlers by their names in pipeline.py (`hicache.handle_hicache`), and rules."""

    handlers: tuple[str, ...]
    rules: tuple[Rule, ...]


@cache
def places() -> frozenset[str]:
    """Every place that a handler or rule names for any release: `hicache_hook.py:handle_hicache`."""
    return frozenset(place for release in releases() for place, _, _ in _named(release))


@cache
def followed(release: Release) -> Mapping[str, Followers]:
    """The followers of each function of a shipped release, by the function (`srt/arg_groups/hicache_hook.py:handle_hicache`)."""
    known = index(shipped(release))
    found: dict[str, tuple[dict[str, None], dict[str, Rule]]] = {}
    for place, handler, rule in _named(release):
        for key in find(place, known):
            handlers, rules = found.setdefault(key, ({}, {}))
            if rule is None:
                handlers[handler] = None
            else:
                rules[rule.name] = rule
    return MappingProxyType({key: Followers(tuple(h), tuple(r.values())) for key, (h, r) in found.items()})


def unplaced(release: Release) -> frozenset[str]:
    """Named places for which a shipped release has no function: it has none of its own there, or the name is wrong.

    A handler that adjusts nothing follows no function itself.
    """
    known = index(shipped(release))
    named = set()
    for handler, steps, _ in plan_of(handlers_of(release), release):
        named |= {handler.place(release) if s.rule is None else s.rule.place(release)[0] for s in steps}
    return frozenset(place for place in named if not find(place, known))


def _named(release: Release) -> Iterator[tuple[str, str, Rule | None]]:
    """The places for a release, each with who names it: a handler, or a rule of one."""
    names = {handler: name for name, handler in handlers_by_name(release)}
    for handler, steps, _ in plan_of(handlers_of(release), release):
        yield handler.place(release), names[handler], None
        for step in steps:
            if step.rule is not None:
                yield step.rule.place(release)[0], names[handler], step.rule


def place_of(handler: Handler, rule: Rule | None, release: Release) -> str:
    """The place that a handler's adjustments follow, or one of its rules."""
    return handler.place(release) if rule is None else rule.place(release)[0]
