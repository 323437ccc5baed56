"""docs/open-texts.md goes through every flag whose values argparse does not check: what it names, and what checks it."""

from __future__ import annotations

import re
from pathlib import Path

from spec_lsp.analysis.rules import all_rules
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load, releases

PAGE = Path(__file__).parents[2] / "docs" / "open-texts.md"
OLDEST = Release.parse("0.5.6")
TEXTS = (None, "str", "nullable_str", "json_list_type")
WITHOUT_VALUE = ("store-true", "store-false", "boolean", "help", "version")
ROW = re.compile(r"^\| `(--[\w-]+)` \| ([^|]+) \| ([^|]*) \|$", re.M)


def rows() -> dict[str, tuple[str, str]]:
    return {flag: (what.strip(), checked.strip()) for flag, what, checked in ROW.findall(PAGE.read_text("utf-8"))}


def open_texts() -> set[str]:
    """The first spelling of each such field, in the release that had it first."""
    found: dict[str, str] = {}
    for release in releases():
        for flag in load(release).flags if release >= OLDEST else ():
            open_text = flag.choices is None and flag.type in TEXTS
            if open_text and flag.takes_value and flag.action not in WITHOUT_VALUE:
                found.setdefault(flag.field, flag.name)
    return set(found.values())


def test_every_open_text_is_on_the_page_once() -> None:
    listed = [flag for flag, _, _ in ROW.findall(PAGE.read_text("utf-8"))]
    assert sorted(listed) == sorted(open_texts())


def test_what_checks_a_text_is_a_rule() -> None:
    names = {rule.name for rule in all_rules()}
    named = {name for _, checked in rows().values() for name in re.findall(r"rules\.md#([\w-]+)", checked)}
    assert named <= names
    assert named


def test_a_fixed_set_is_checked() -> None:
    """One of names that SGLang looks up has a rule, or says why it has none."""
    for flag, (what, checked) in rows().items():
        if what.startswith("one of"):
            assert "rules.md#" in checked or checked.startswith("not checked: "), flag
