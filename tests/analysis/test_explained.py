"""A rule explained whole."""

from __future__ import annotations

import pytest

from spec_lsp.analysis.explained import page
from spec_lsp.analysis.rules import all_rules, find_rule
from spec_lsp.resolution.engine import Rule


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_every_page_says_what_the_rule_is_and_how_to_silence_it(rule: Rule) -> None:
    text = page(rule)
    assert text.startswith(f"# {rule.name}\n\n{rule.code} · {rule.severity}")
    assert rule.summary in text
    assert f"ignore[{rule.name}]" in text
    assert text.count("```") % 2 == 0
    assert "\n\n\n" not in text


@pytest.mark.parametrize("name", ["tree-drafting-on-trtllm-mha", "SPC123", "spc123"])
def test_a_rule_is_found_by_name_and_by_code(name: str) -> None:
    found = find_rule(name)
    assert found is not None
    assert found.code == "SPC123"


def test_a_name_of_nothing_finds_nothing() -> None:
    assert find_rule("no-such-rule") is None
