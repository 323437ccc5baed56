"""What is known of one flag across releases, for `explain`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from spec_lsp.analysis.rules import all_rules
from spec_lsp.catalog import Flag, Release, load, releases
from spec_lsp.resolution.engine import Rule, Step
from spec_lsp.resolution.handlers import handlers_of

DEPTH = 3
"""How many levels of helper functions below a rule are looked into."""


def releases_with(spelling: str) -> list[Release]:
    """The releases whose argparse has the flag under this spelling."""
    return [release for release in releases() if load(release).flag(spelling) is not None]


def spellings() -> set[str]:
    """Every spelling of every flag of every release."""
    return {s for release in releases() for flag in load(release).flags for s in flag.spellings if s.startswith("--")}


def find_flag(spelling: str, release: Release | None) -> tuple[Flag, Release] | None:
    """The flag in a release; without one, in the newest release that has it. Abbreviations work as in argparse."""
    for candidate in [release] if release else reversed(releases()):
        flag = load(candidate).flag(spelling)
        if flag is not None:
            return flag, candidate
    at = release or releases()[-1]
    begun = abbreviated(spelling, at)
    flag = load(at).flag(begun[0]) if len(begun) == 1 else None
    return (flag, at) if flag is not None else None


def abbreviated(spelling: str, release: Release) -> list[str]:
    """The spellings in a release that begin so, one for each flag."""
    if not spelling.startswith("--"):
        return []
    begun = {flag: s for s, flag in load(release).by_spelling.items() if s.startswith(spelling)}
    return sorted(begun.values())


def span(found: list[Release]) -> str:
    """Releases in words: `all known releases`, `since 0.5.9`, `0.5.9 to 0.5.12`."""
    known = releases()
    first, last = found[0], found[-1]
    if first == known[0]:
        return "all known releases" if last == known[-1] else f"up to {last}"
    if last == known[-1]:
        return f"since {first}"
    return str(first) if first == last else f"{first} to {last}"


@cache
def readers() -> dict[str, tuple[Rule, ...]]:
    """The rules that read each field, judged by their code."""
    all_rules()
    found: dict[str, dict[str, Rule]] = {}
    for step in _steps():
        for name in _names(step.run, DEPTH):
            if step.rule is not None:
                found.setdefault(name, {})[step.rule.code] = step.rule
    return {name: tuple(rules[code] for code in sorted(rules, key=_by_number)) for name, rules in found.items()}


def _by_number(code: str) -> tuple[int, str]:
    return len(code), code


def _steps() -> Iterator[Step]:
    handlers = dict.fromkeys(handler for release in releases() for handler in handlers_of(release))
    for handler in handlers:
        yield from handler.steps


def _names(function: Any, depth: int) -> set[str]:
    """The attribute names and field names in a function and the helpers it calls."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or not function.__module__.startswith("spec_lsp.resolution."):
        return set()
    names = set(code.co_names) | {c for c in code.co_consts if isinstance(c, str) and c.isidentifier()}
    if depth:
        for name in code.co_names:
            helper = function.__globals__.get(name)
            if isinstance(helper, FunctionType):
                names |= _names(helper, depth - 1)
    return names
