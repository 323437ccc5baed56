"""What late rules tell, release by release: a rule's own refused launches from the release on that refuses them, its near misses nowhere.

An example that names no release holds for all that its rule has, or from the one in `SINCE` and `SILENT_SINCE` on.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spec_lsp.analysis.explained import commands
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.resolution.engine import RULES, Rule
from tests.resolution.test_examples import answer

FIRST = Release.parse("0.5.6")
NEWEST = f"--sglang {releases()[-1]}"
LATE = [rule for rule in RULES.values() if rule.late and rule.severity == "error"]
LACKING = {"unknown-flag", "invalid-choice", "model-newer-than-release"}
"""What is said of a launch that uses what a release does not have yet."""

SINCE: dict[str, dict[int, str]] = {
    "adapter-file-not-served": {0: "0.5.11"},
    "adapters-unfit-for-launch": {0: "0.5.14", 1: "0.5.11", 2: "0.5.23"},
    "bounded-gates-on-other-kernel": {1: "0.5.20"},
    "decode-offload-of-other-cache": {1: "0.5.9"},
    "decode-radix-cache-of-sliding-window-model": {0: "0.5.12"},
    "experts-of-compressed-tensors-scheme": {1: "0.5.19"},
    "experts-unfit-for-aiter": {1: "0.5.21"},
    "experts-unfit-for-deepep-v2": {0: "0.5.22"},
    "feature-without-flexkv": {2: "0.5.22"},
    "fp4-kernels-before-blackwell": {0: "0.5.22"},
    "fp8-kernels-off-their-hardware": {2: "0.5.16", 5: "0.5.18"},
    "host-copy-of-this-cache": {0: "0.5.21"},
    "hybrid-gdn-backend-on-blackwell": {0: "0.5.6.post2"},
    "load-format-of-other-weights": {1: "0.5.8", 2: "0.5.23"},
    "memory-saver-with-breakable-graph": {0: "0.5.15"},
    "option-this-model-cannot-run": {2: "0.5.18"},
    "option-this-model-refuses": {0: "0.5.23", 1: "0.5.20", 3: "0.5.9"},
    "quantization-method-of-other-hardware": {0: "0.5.15", 3: "0.5.11"},
    "runner-without-exchange": {0: "0.5.15"},
    "storage-of-other-cache": {1: "0.5.12"},
    "storage-options-unusable": {4: "0.5.10", 5: "0.5.11"},
    "tree-drafting-on-lightning-attention": {0: "0.5.14"},
    "type-of-exchanged-tokens": {0: "0.5.22"},
    "unified-memory-of-plain-model": {0: "0.5.19"},
    "v4-unified-pages-unfit": {0: "0.5.22"},
    "width-of-four-bit-experts": {1: "0.5.22", 2: "0.5.19"},
}
"""By rule: the first release that refuses the example of this number (from 0 on), if it is later than the rule's first."""

SILENT_SINCE: dict[str, dict[int, str]] = {
    "decode-radix-cache-of-sliding-window-model": {0: "0.5.21", 1: "0.5.21"},
    "external-linker-of-other-cache": {1: "0.5.23"},
    "host-receive-without-engine": {0: "0.5.22"},
    "log-level-unknown-to-web-server": {2: "0.5.11"},
    "nodes-without-meeting-place": {2: "0.5.10"},
}
"""By rule: the first release in which the near miss of this number runs."""


def everywhere(rule: Rule, kind: str) -> Iterator[tuple[int, str]]:
    """The examples that name no release, with their numbers."""
    for n, (example, command) in enumerate(zip(getattr(rule, kind), commands(rule, getattr(rule, kind)), strict=True)):
        if "sglang=" not in example:
            yield n, command


def span(rule: Rule, since: str = "") -> list[Release]:
    """The first release that the rule has, and every other one after it, to the last."""
    first = max(FIRST, Release.parse(since or rule.since or str(FIRST)))
    found = [r for r in releases() if r >= first and (not rule.until or r < Release.parse(rule.until))]
    return [*found[:1], *found[-1:0:-2][::-1]]


def errors(command: str, release: Release) -> list[Rule]:
    said = answer(command.replace(NEWEST, f"--sglang {release}"))
    return [s.merged.found.rule for s in said.findings if s.merged.severity == "error"]


@pytest.mark.slow
@pytest.mark.parametrize("rule", LATE, ids=lambda r: r.name)
def test_refused_launches_are_told_in_every_release_that_refuses_them(rule: Rule) -> None:
    silent = []
    for n, command in everywhere(rule, "bad"):
        for release in span(rule, SINCE.get(rule.name, {}).get(n, "")):
            names = {found.name for found in errors(command, release)}
            if rule.name not in names and not names & LACKING:
                silent.append((n, str(release), sorted(names)))
    assert silent == []


@pytest.mark.slow
@pytest.mark.parametrize("rule", LATE, ids=lambda r: r.name)
def test_near_misses_are_silent_in_every_release_that_runs_them(rule: Rule) -> None:
    told = [
        (n, str(release))
        for n, command in everywhere(rule, "good")
        for release in span(rule, SILENT_SINCE.get(rule.name, {}).get(n, ""))
        if rule.name in {found.name for found in errors(command, release)}
    ]
    assert told == []


@pytest.mark.parametrize(("table", "kind"), [(SINCE, "bad"), (SILENT_SINCE, "good")])
def test_the_tables_name_examples(table: dict[str, dict[int, str]], kind: str) -> None:
    known = {rule.name: {n for n, _ in everywhere(rule, kind)} for rule in LATE}
    assert [name for name, since in table.items() if not since.keys() <= known.get(name, set())] == []
