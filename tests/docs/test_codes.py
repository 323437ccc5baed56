"""What CONTRIBUTING says of a new rule: its code, and the example."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spec_lsp.analysis.rules import all_rules, by_topic
from spec_lsp.records import replace
from tests.docs.codes import next_code


@pytest.mark.parametrize("topic", [*by_topic(), "a-new-topic"])
def test_a_new_code_is_nobody_s(topic: str) -> None:
    assert next_code(topic, by_topic()) not in {rule.code for rule in all_rules()}


def test_the_example_is_a_rule_of_ours() -> None:
    root = Path(__file__).parents[2]
    (example,) = re.findall(r"```python\n(.*?)```", (root / "CONTRIBUTING.md").read_text("utf-8"), re.DOTALL)
    topic = re.search(r"tests\.docs\.codes (\w+)", (root / "CONTRIBUTING.md").read_text("utf-8"))
    assert topic
    assert example in (root / "spec_lsp" / "resolution" / f"{topic[1]}.py").read_text("utf-8")


def test_codes_go_on_behind_a_thousand() -> None:
    codes = [rule.code for rule in by_topic()["late"]]
    assert next_code("late", by_topic()) == f"SPC{max(int(code.removeprefix('SPC')) for code in codes) + 1}"
    assert [rule.code for rule in all_rules()] == sorted(
        (r.code for r in all_rules()), key=lambda code: int(code.removeprefix("SPC"))
    )


@pytest.mark.parametrize("code", ["SPC???", "SPC", "", "1234", "SPC12b", "SPC-1"])
def test_a_rule_without_a_number_is_named(code: str) -> None:
    (topic, (rule, *others)), *_ = by_topic().items()
    with pytest.raises(SystemExit, match=re.escape(f"{code!r}, which is not")):
        next_code(topic, {topic: (*others, replace(rule, code=code))})
