"""docs/coverage-late.md: every function that can refuse a launch after argument resolution, and the rule that covers it.

The mapping is docs/late.toml, which a person edits; `python -m tests.docs.late` renews the page from it. The functions are in
data/late-sites.json.gz, which `python -m tests.docs.late FOLDER` takes from SGLang's source (FOLDER as for tests.docs.coverage).
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any

from spec_lsp.analysis.rules import all_rules
from spec_lsp.resolution.engine import Rule
from tests.docs.sites import sites_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOCS = Path(__file__).parents[2] / "docs"
MAPPING = DOCS / "late.toml"
PAGE = DOCS / "coverage-late.md"
SITES = Path(__file__).parent / "data" / "late-sites.json.gz"

Sites = Mapping[str, Mapping[str, Mapping[str, str]]]
"""file → function → release → the fingerprints of its sites, one word each. In models/ the function says what its sites are about."""


@dataclass(frozen=True, slots=True)
class Left:
    """A line of `left`: what its patterns match is left for `reason`."""

    reason: str
    file: tuple[str, ...]
    function: tuple[str, ...]
    why: str = ""

    def matches(self, file: str, function: str) -> bool:
        return any(fnmatchcase(file, p) for p in self.file) and any(fnmatchcase(function, p) for p in self.function)


@dataclass(frozen=True, slots=True)
class Function:
    """A function with sites: how many in each release, the rules that cover it or the line that leaves it."""

    file: str
    name: str
    counts: Mapping[str, int]
    rules: tuple[str, ...]
    left: Left | None


@cache
def mapping() -> Mapping[str, Any]:
    return tomllib.loads(MAPPING.read_text("utf-8"))


@cache
def lines() -> tuple[Left, ...]:
    return tuple(
        Left(line["reason"], _patterns(line["file"]), _patterns(line["function"]), line.get("why", ""))
        for line in mapping()["left"]
    )


def _patterns(written: str | list[str]) -> tuple[str, ...]:
    return tuple(written.split("|") if isinstance(written, str) else written)


def stored() -> Sites:
    sites: Sites = json.loads(gzip.decompress(SITES.read_bytes()))
    return sites


def sites(root: Path) -> Sites:
    """The functions with sites in SGLang's source below `root`."""
    found: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for release in mapping()["releases"]:
        for site in sites_of(root / release / "sglang" / "srt", mapping()["sources"]):
            name = f"{site.function} ({site.about})" if site.about else site.function
            found[site.file, name][release].append(sha1((site.raises + site.sha1).encode()).hexdigest()[:6])
    out: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for (file, function), by_release in sorted(found.items()):
        out[file][function] = {r: " ".join(said) for r, said in by_release.items()}
    return out


# --- what covers them ------------------------------------------------------------------------------------------------


def late_rules() -> list[Rule]:
    return [rule for rule in all_rules() if rule.late]


def covers(rule: Rule, file: str, function: str) -> bool:
    """Whether the rule's `sglang` names this function: by the end of its file's path and its own name."""
    place, _, name = rule.sglang.rpartition(":")
    return f"/{file}".endswith(f"/{place}") and function.rpartition(".")[2] == name


def functions() -> Iterator[Function]:
    """Every function with the sites of it that rules cover, and once more with those that a line leaves (`left` None: no line does).

    A rule covers all sites of a function, or those that `only` names by their numbers in the newest release; `single` gives sites of a
    function a reason of their own.
    """
    also = mapping()["also"]
    everywhere = [key for key in also if "*" in key]
    by_name: dict[str, list[Rule]] = defaultdict(list)
    for rule in late_rules():
        by_name[rule.sglang.rpartition(":")[2]].append(rule)
    for file, inside in stored().items():
        for function, by_release in inside.items():
            where = f"{file}:{function}"
            rules = [r.name for r in by_name[function.rpartition(".")[2]] if covers(r, file, function)]
            rules += [name for name in also.get(where, ()) if name not in rules]
            rules += [name for key in everywhere if fnmatchcase(where, key) for name in also[key] if name not in rules]
            told, others = (
                _told(where, by_release) if rules else ({}, {r: len(t.split()) for r, t in by_release.items()})
            )
            if told:
                yield Function(file, function, told, tuple(rules), None)
            for reason, numbers in mapping()["single"].get(where, {}).items():
                alone = _chosen(by_release, numbers)
                if alone:
                    others = {r: n - alone.get(r, 0) for r, n in others.items() if n > alone.get(r, 0)}
                    yield Function(file, function, alone, (), Left(reason, (file,), (function,)))
            if others:
                left = next((line for line in lines() if line.matches(file, function)), None)
                yield Function(file, function, others, (), left)


def _told(where: str, by_release: Mapping[str, str]) -> tuple[dict[str, int], dict[str, int]]:
    """How many sites of a covered function the rules tell, and how many they do not, by release."""
    numbers = mapping()["only"].get(where)
    counts = {release: len(text.split()) for release, text in by_release.items()}
    if numbers is None:
        return counts, {}
    told = _chosen(by_release, numbers)
    return told, {r: n - told.get(r, 0) for r, n in counts.items() if n > told.get(r, 0)}


def _chosen(by_release: Mapping[str, str], numbers: Sequence[int]) -> dict[str, int]:
    """How many sites of a function have one of these numbers in the newest release, or are the same in an older one.

    A site that reads otherwise in an older release counts by its number there, where the function has as many sites.
    """
    sites = {release: text.split() for release, text in by_release.items()}
    newest = sites.get(mapping()["releases"][-1], [])
    chosen = {newest[n - 1] for n in numbers if n <= len(newest)}
    found: dict[str, int] = {}
    for release, words in sites.items():
        alike = len(words) == len(newest)
        moved = {n for n in numbers if alike and n <= len(newest) and newest[n - 1] not in words}
        found[release] = sum(w in chosen or n in moved for n, w in enumerate(words, 1))
    return {r: n for r, n in found.items() if n}


# --- the page --------------------------------------------------------------------------------------------------------


def page() -> str:
    """docs/coverage-late.md."""
    return "\n".join(_page()).rstrip() + "\n"


def _page() -> Iterator[str]:
    releases, found = mapping()["releases"], list(functions())
    yield from ("<!-- Generated by `python -m tests.docs.late` from late.toml. Do not edit. -->", "")
    yield from ("# Coverage of late refusals", "")
    yield (
        "The `raise` and `assert` statements of what runs after argument resolution (attention, MoE, quantization, drafting, model "
        f"execution, caches, LoRA, disaggregation, managers, model classes and their loader, process groups, grammars, entry points) in {' and '.join(releases)}, by function. A launch decides few of them; "
        "the rules below cover those that people meet, and what is left is left for a reason."
    )
    yield from ("", f"| | {' | '.join(releases)} | |", "| --- | " + "---: | " * len(releases) + "--- |")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for f in found:
        counts[f.left.reason if f.left else "covered"].update(f.counts)
    for name, text in {"covered": "a rule tells it", **mapping()["reasons"]}.items():
        yield f"| {name} | {' | '.join(str(counts[name][r]) for r in releases)} | {text} |"
    yield f"| all | {' | '.join(str(sum(c[r] for c in counts.values())) for r in releases)} | statements |"
    yield from (
        "",
        "## Covered",
        "",
        f"| function | {' | '.join(releases)} | |",
        "| --- | " + "---: | " * len(releases) + "--- |",
    )
    yield from (_row(f, ", ".join(f"[`{n}`](rules.md#{n})" for n in f.rules)) for f in found if f.rules)
    yield from (
        "",
        "## Not yet",
        "",
        f"| function | {' | '.join(releases)} | |",
        "| --- | " + "---: | " * len(releases) + "--- |",
    )
    yield from (_row(f, f.left.why) for f in found if f.left and f.left.reason == "not-yet")
    yield from ("", "## Left, by file", "", "| file | functions | |", "| --- | ---: | --- |")
    by_file: dict[str, Counter[str]] = defaultdict(Counter)
    for f in found:
        if f.left and f.left.reason != "not-yet":
            by_file[f.file][f.left.reason] += 1
    yield from (f"| `{file}` | {sum(c.values())} | {', '.join(sorted(c))} |" for file, c in by_file.items())


def _row(function: Function, text: str) -> str:
    numbers = " | ".join(str(function.counts.get(r, "–")) for r in mapping()["releases"])
    return f"| `{function.file}:{function.name or '(module)'}` | {numbers} | {text} |"


def main(arguments: list[str]) -> int:
    """Renew the page, with a folder of SGLang's sources the functions too."""
    for folder in arguments:
        text = json.dumps(sites(Path(folder)), indent=0, sort_keys=True)
        SITES.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
