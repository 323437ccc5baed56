"""The coverage table is whole and true: rules it names exist, rules it should name are named, SGLang's source holds its sites."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spec_lsp.analysis.rules import all_rules
from spec_lsp.catalog.release import Release
from spec_lsp.resolution.engine import in_release
from tests.docs.coverage import PAGE, coverage, differences, late_rules, left_out_late, page, resolution_rules
from tests.docs.sites import sites_in

RULES = {rule.name: rule for rule in all_rules()}
SOURCE = os.environ.get("SGLANG_SOURCE", "")
"""A folder with RELEASE/sglang/srt for each release of the table."""


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `python -m tests.docs.coverage`"


def test_every_named_rule_exists() -> None:
    named = {name for entry in coverage().entries for name in entry.rules} | set(coverage().unsited)
    assert named - set(RULES) == set()


def test_every_site_is_covered_or_left_for_a_known_reason() -> None:
    for entry in coverage().entries:
        assert bool(entry.rules) != bool(entry.left), entry
        assert not entry.left or entry.left in coverage().reasons, entry
        assert entry.at, entry
    assert set(coverage().reasons) == {e.left for e in coverage().entries if e.left}, "a reason without a site"


def test_what_is_not_yet_covered_is_told() -> None:
    assert [e for e in coverage().entries if e.left == "not-yet" and not e.why] == []


def test_no_site_is_listed_twice() -> None:
    keys = [(release, e.file, e.function, e.at[release][0]) for e in coverage().entries for release in e.at]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("release", coverage().releases)
def test_rules_hold_for_the_release_of_their_sites(release: str) -> None:
    for entry in coverage().entries:
        if release in entry.at and entry.rules:
            rules = [RULES[name] for name in entry.rules]
            assert any(in_release(Release.parse(release), r.since, r.until) for r in rules), entry


def test_every_rule_of_resolution_has_a_site() -> None:
    named = {name for entry in coverage().entries for name in entry.rules}
    assert resolution_rules() - named == set(coverage().unsited), (
        "`python -m tests.docs.coverage $ORACLE/sg` renews the page"
    )
    assert named & set(coverage().unsited) == set()


def test_late_modules_say_what_they_leave() -> None:
    assert {rule.topic for rule in late_rules()} == {"late"}
    assert {"adapters", "attention", "experts", "layout", "linear_attention", "speculative", "weights"} <= set(
        left_out_late()
    )


@pytest.mark.skipif(not SOURCE, reason="SGLANG_SOURCE names no folder of SGLang's sources")
@pytest.mark.parametrize("release", coverage().releases)
def test_every_site_of_the_source_is_listed(release: str) -> None:
    assert differences(Path(SOURCE), release) == []


# --- finding sites ---------------------------------------------------------------------------------------------------

TEXT = """
def outer(x):
    if x:
        raise ValueError("no")
    try:
        assert x  # a comment
    except (KeyError, OSError):
        raise
    def inner():
        raise errors.Odd
class Some:
    def method(self):
        with self:
            for y in ():
                match y:
                    case 1:
                        raise TypeError(y)
"""


def test_sites_are_found_in_order() -> None:
    found = [(s.function, s.raises, s.nth, s.line) for s in sites_in(TEXT, "f.py")]
    assert found == [
        ("outer", "ValueError", 1, 4),
        ("outer", "AssertionError", 2, 6),
        ("outer", "(again)", 3, 8),
        ("outer.inner", "errors.Odd", 1, 10),
        ("Some.method", "TypeError", 1, 17),
    ]


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("if x:", "if  x :", True),
        ('"no")', '\n        "no")', True),
        ("if x:", "if not x:", False),
        ('"no"', '"never"', False),
    ],
)
def test_drift_is_seen(before: str, after: str, same: bool) -> None:
    old, new = (next(iter(sites_in(text, "f.py"))).sha1 for text in (TEXT, TEXT.replace(before, after, 1)))
    assert (old == new) is same
