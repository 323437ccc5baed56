"""New `raise` and `assert` statements: those that no rule tells and no reason leaves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.docs import coverage, late
from tests.docs.sites import Site, sites_of
from tests.upkeep.report import Part

Key = tuple[str, str, str, str]


def new_sites(old: Path, new: Path, sources: Iterable[str]) -> list[Site]:
    """The sites of the package `new` that `old` does not have, by function, exception and fingerprint. `sources` as in coverage.toml."""
    patterns = [source.partition(":")[0] for source in sources]
    before = Counter(map(_key, sites_of(old / "srt", patterns)))
    found = []
    for site in sites_of(new / "srt", patterns):
        if before[_key(site)] > 0:
            before[_key(site)] -= 1
        else:
            found.append(site)
    return found


def _key(site: Site) -> Key:
    return site.file, site.function.rpartition(".")[2], site.raises, site.sha1


def functions_with_new_sites(old: Path, new: Path) -> frozenset[str]:
    """The names of the functions of argument resolution that have new sites."""
    found = new_sites(old, new, coverage.coverage().sources)
    return frozenset(s.function.rpartition(".")[2].lstrip("_") for s in found if _listed(s))


def gone_through(release: str) -> bool:
    """Whether somebody has been through the release: it has a column in docs/coverage.toml."""
    return release in coverage.coverage().releases


def part(old: Path, new: Path, release: str) -> Part:
    """New sites of argument resolution, each to be told by a rule or left for a reason; and those of what runs later, by function.

    Of a release that was gone through, what its column still lacks.
    """
    if gone_through(release):
        lacking = coverage.differences(new.parent.parent, release)
        todo = [f"Complete docs/coverage.toml: it lacks {len(lacking)} sites, or has them otherwise"] if lacking else []
        return Part("New `raise` and `assert` statements", [f"- {line}" for line in lacking], todo)
    early = [s for s in new_sites(old, new, coverage.coverage().sources) if _listed(s)]
    later: dict[tuple[str, str], list[Site]] = defaultdict(list)
    for site in new_sites(old, new, late.mapping()["sources"]):
        later[site.file, f"{site.function} ({site.about})" if site.about else site.function].append(site)
    told, left, open_ = [], Counter[str](), []
    for (file, function), sites in later.items():
        rules = [r.name for r in late.late_rules() if late.covers(r, file, function)]
        line = next((line for line in late.lines() if line.matches(file, function)), None)
        if rules:
            told.append(f"- `{file}:{function}`: {len(sites)} (of `{'`, `'.join(rules)}`)")
        elif line is not None and line.reason not in ("not-yet", "unread"):
            left[line.reason] += len(sites)
        else:
            open_.append(f"- `{file}:{function}`: {len(sites)}{' (unread)' if line is not None else ''}")
    lines = [
        f"{len(early)} new in argument resolution:",
        "",
        *(f"- `{s.file}:{s.function}` `{s.raises}` (line {s.line}, {s.sha1})" for s in early),
    ]
    lines += [
        "",
        f"{sum(map(len, later.values()))} new in what runs later. In functions that rules tell:",
        "",
        *(told or ["- none"]),
    ]
    lines += ["", "Without rule or reason:", "", *(open_ or ["- none"])]
    lines += ["", "Left: " + (", ".join(f"{n} for `{reason}`" for reason, n in left.most_common()) or "none") + "."]
    todo = []
    if early:
        todo.append(
            f"Give {len(early)} new sites a rule or a reason in docs/coverage.toml, and the release a column (`releases`)"
        )
    if told or open_:
        todo.append(
            f"Look at {len(told) + len(open_)} functions with new late sites (docs/late.toml; `python -m tests.docs.late FOLDER` renews the sites)"
        )
    return Part("New `raise` and `assert` statements", lines, todo)


def _listed(site: Site) -> bool:
    """Whether coverage.toml is about the function, where it names functions of a file."""
    for source in coverage.coverage().sources:
        pattern, _, functions = source.partition(":")
        if Path(site.file).match(pattern) or (
            pattern.endswith("**/*.py") and site.file.startswith(pattern.removesuffix("**/*.py"))
        ):
            return not functions or site.function in functions.split()
    return True
