"""docs/coverage.md: every `raise` and `assert` of SGLang's argument resolution, and the rule that covers it.

The mapping is docs/coverage.toml, which a person edits; `python -m tests.docs.coverage` renews the page from it. With SGLang's
source at hand, `python -m tests.docs.coverage FOLDER` also prints what the mapping lacks: FOLDER holds each release as
`RELEASE/sglang/srt` (`pip download --no-deps sglang==RELEASE`, unzipped).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import spec_lsp.resolution.late
from spec_lsp.analysis.rules import all_rules
from spec_lsp.catalog.release import Release
from spec_lsp.resolution.engine import Rule, plan_of
from spec_lsp.resolution.handlers import handlers_of
from tests.docs.sites import Site, sites_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOCS = Path(__file__).parents[2] / "docs"
DATA = DOCS / "coverage.toml"
PAGE = DOCS / "coverage.md"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the table. `at`: (place in the function, sha1) by release; `rules` cover it, or `left` is a reason's name."""

    file: str
    function: str
    raises: str
    at: dict[str, tuple[int, str]]
    rules: tuple[str, ...] = ()
    left: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """docs/coverage.toml: `sources` are files ("path" or "path:function function") below sglang/srt, `reasons` explain `left`,
    `unsited` are rules whose refusal stands in no `raise` or `assert`, with the reason."""

    releases: tuple[str, ...]
    sources: tuple[str, ...]
    reasons: dict[str, str]
    unsited: dict[str, str]
    entries: tuple[Entry, ...]


@cache
def coverage() -> Coverage:
    """The mapping."""
    data = tomllib.loads(DATA.read_text("utf-8"))
    releases = tuple(data["releases"])
    entries = tuple(
        _entry(file, function, line, releases)
        for file, functions in data["sites"].items()
        for function, lines in functions.items()
        for line in lines
    )
    return Coverage(releases, tuple(data["sources"]), data["reasons"], data["unsited"], entries)


def _entry(file: str, function: str, line: dict[str, Any], releases: tuple[str, ...]) -> Entry:
    at = {r: (int(line[r].split()[0]), line[r].split()[1]) for r in releases if r in line}
    rules, left, why = tuple(line.get("rules", ())), line.get("left", ""), line.get("why", "")
    return Entry(file, function, line["raises"], at, rules, left, why)


# --- against SGLang's source -----------------------------------------------------------------------------------------


def sites(root: Path, release: str) -> Iterator[Site]:
    """The sites of a release that the table is about; `root` holds RELEASE/sglang/srt."""
    for source in coverage().sources:
        pattern, _, functions = source.partition(":")
        for site in sites_of(root / release / "sglang" / "srt", [pattern]):
            if not functions or site.function in functions.split():
                yield site


def differences(root: Path, release: str) -> list[str]:
    """What the table lacks or says wrongly of a release: one line each, empty when it is whole."""
    told = {
        (e.file, e.function, e.at[release][0]): (e.raises, e.at[release][1])
        for e in coverage().entries
        if release in e.at
    }
    found = {(s.file, s.function, s.nth): (s.raises, s.sha1) for s in sites(root, release)}
    missing = [f"{_place(key)} is missing: {raises} {sha1}" for key, (raises, sha1) in found.items() if key not in told]
    gone = [f"{_place(key)} is not in the source" for key in told if key not in found]
    changed = [
        f"{_place(key)} is {' '.join(found[key])}, the table has {' '.join(told[key])}"
        for key in told
        if key in found and found[key] != told[key]
    ]
    return missing + gone + changed


def _place(key: tuple[str, str, int]) -> str:
    file, function, nth = key
    return f"{file}:{function} {nth}"


# --- the rules -------------------------------------------------------------------------------------------------------


def resolution_rules() -> set[str]:
    """The rules of argument resolution that refuse in one of the table's releases, by name."""
    return {
        step.rule.name
        for release in map(Release.parse, coverage().releases)
        for _, steps, _ in plan_of(handlers_of(release), release)
        for step in steps
        if step.rule is not None and step.rule.severity == "error" and not step.rule.late
    }


def late_rules() -> list[Rule]:
    """The rules of what the server refuses later."""
    return [rule for rule in all_rules() if rule.late]


def left_out_late() -> dict[str, str]:
    """What the late modules leave, by module: the sentence of their docstrings that says so."""
    said = {}
    for path in sorted(Path(spec_lsp.resolution.late.__path__[0]).glob("[a-z]*.py")):
        doc = import_module(f"spec_lsp.resolution.late.{path.stem}").__doc__ or ""
        _, found, left = doc.partition("Left out")
        if found:
            sentence = " ".join(left.partition("\n\n")[0].split())
            said[path.stem] = sentence.lstrip(":, ").removesuffix(".")
    return said


# --- the page --------------------------------------------------------------------------------------------------------


def page() -> str:
    """docs/coverage.md."""
    return "\n".join(_page()).rstrip() + "\n"


def _page() -> Iterator[str]:
    yield from ("<!-- Generated by `python -m tests.docs.coverage` from coverage.toml. Do not edit. -->", "")
    yield from ("# Coverage", "")
    yield (
        f"Every `raise` and `assert` of SGLang's argument resolution in {' and '.join(coverage().releases)}, and the "
        "rule that covers it or why none does. A line names a site by its function, its exception and its place among "
        "the function's `raise` and `assert` statements in each release (– where the release has no such site)."
    )
    yield ""
    yield from _summary()
    yield from _not_yet()
    for file in dict.fromkeys(e.file for e in coverage().entries):
        yield from ("", f"## {file}", "")
        yield f"| function | exception | {' | '.join(coverage().releases)} | |"
        yield "| --- | --- | " + "--- | " * len(coverage().releases) + "--- |"
        yield from (_line(e) for e in coverage().entries if e.file == file)
    yield from _unsited()
    yield from _late()


def _summary() -> Iterator[str]:
    releases = coverage().releases
    counts = {r: Counter(e.left for e in coverage().entries if r in e.at) for r in releases}
    yield f"| | {' | '.join(releases)} | |"
    yield "| --- | " + "---: | " * len(releases) + "--- |"
    for name, text in {"": "a rule covers the site", **coverage().reasons}.items():
        numbers = " | ".join(str(counts[r][name]) for r in releases)
        yield f"| {name or 'covered'} | {numbers} | {text} |"
    yield f"| all | {' | '.join(str(sum(counts[r].values())) for r in releases)} | |"


def _not_yet() -> Iterator[str]:
    notes = Counter(e.why for e in coverage().entries if e.left == "not-yet")
    if notes:
        yield from ("", "Not yet covered, though a launch decides them:", "")
        yield from (f"- {why} ({count} site{'s' * (count > 1)})" for why, count in notes.items())


def _line(entry: Entry) -> str:
    places = " | ".join(str(entry.at[r][0]) if r in entry.at else "–" for r in coverage().releases)
    what = ", ".join(_link(name) for name in entry.rules) or f"{entry.left}"
    why = f": {entry.why}" if entry.why else ""
    return f"| `{entry.function or '(module)'}` | `{entry.raises}` | {places} | {what}{why} |"


def _link(name: str) -> str:
    return f"[`{name}`](rules.md#{name})"


def _unsited() -> Iterator[str]:
    yield from ("", "## Refusals without a site", "")
    yield "These rules refuse what SGLang fails on without a `raise` or `assert` of its own in the files above."
    yield from ("", "| rule | |", "| --- | --- |")
    yield from (f"| {_link(name)} | {why} |" for name, why in coverage().unsited.items())


def _late() -> Iterator[str]:
    yield from ("", "## Late refusals", "")
    yield (
        "What the server refuses after argument resolution, with the weights loaded. [coverage-late.md](coverage-late.md) goes "
        "through the functions these statements stand in; what each module leaves stands under the rules."
    )
    yield from ("", "| rule | where SGLang refuses | exception |", "| --- | --- | --- |")
    for rule in late_rules():
        yield f"| {_link(rule.name)} | `{rule.sglang}` | " + (f"`{rule.raises}` |" if rule.raises else "|")
    yield from ("", "Left out:", "")
    yield from (f"- {module.replace('_', ' ')}: {text}." for module, text in left_out_late().items())


def main(arguments: list[str]) -> int:
    """Renew the page; with a folder of SGLang's sources, print what the mapping lacks and say so in the exit code."""
    PAGE.write_text(page(), "utf-8")
    lines = [
        f"{r}: {line}" for folder in arguments for r in coverage().releases for line in differences(Path(folder), r)
    ]
    print("\n".join(lines), end="\n" * bool(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
