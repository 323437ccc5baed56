"""The table of late refusals is whole and true: every function is covered by a rule that exists or left for a reason."""

from __future__ import annotations

import os
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from spec_lsp.analysis.rules import all_rules
from tests.docs.late import PAGE, covers, functions, late_rules, lines, mapping, page, sites, stored

SOURCE = os.environ.get("SGLANG_SOURCE", "")
RULES = {rule.name: rule for rule in all_rules()}


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `python -m tests.docs.late`"


def test_every_function_is_covered_or_left() -> None:
    assert [f"{f.file}:{f.name}" for f in functions() if not f.rules and f.left is None] == []


def test_every_line_leaves_something_for_a_known_reason() -> None:
    used = {f.left for f in functions()}
    waiting = {"unread"}  # for statements of the next release
    assert [line for line in lines() if line not in used and line.reason not in waiting] == []
    assert {f.left.reason for f in functions() if f.left} | waiting == set(mapping()["reasons"])


def test_also_names_rules_and_functions() -> None:
    known = {f"{file}:{name}" for file, inside in stored().items() for name in inside}
    keys = {*mapping()["also"], *mapping()["only"], *mapping()["single"]}
    assert {key for key in keys if not any(fnmatchcase(name, key) for name in known)} == set()
    assert {name for names in mapping()["also"].values() for name in names} - set(RULES) == set()


def test_single_sites_are_left_for_known_reasons_and_told_by_no_rule() -> None:
    for where, reasons in mapping()["single"].items():
        numbers = [n for chosen in reasons.values() for n in chosen]
        assert len(numbers) == len(set(numbers)), where
        assert set(reasons) <= set(mapping()["reasons"]), where
        assert not set(numbers) & set(mapping()["only"].get(where, ())), where


def test_every_late_rule_has_a_function() -> None:
    """But those whose refusal has no statement of its own, or stands in a model's code."""
    covered = {name for f in functions() for name in f.rules}
    without = {rule.name for rule in late_rules()} - covered
    assert without == set(mapping()["elsewhere"])


def test_a_name_that_classes_share_says_which_statements_are_told() -> None:
    """A rule's place names a method without its class: those of the file's other classes are looked at one by one (`only`, `whole`)."""
    methods = Counter(
        (file, name.rpartition(".")[2]) for file, inside in stored().items() for name in inside if " (" not in name
    )
    told = {(f.file, f.name) for f in functions() if f.rules and methods[f.file, f.name.rpartition(".")[2]] > 1}
    looked_at = {*mapping()["only"], *mapping()["also"], *mapping()["whole"]}
    assert {f"{file}:{name}" for file, name in told} - looked_at == set()


def test_a_rule_covers_its_own_function_only() -> None:
    rule = RULES["latent-backend-for-plain-attention"]
    assert covers(rule, "layers/attention/attention_registry.py", "create_trtllm_mla_backend")
    assert not covers(rule, "layers/attention/attention_registry.py", "create_trtllm_mha_backend")
    assert not covers(rule, "layers/other_attention_registry.py", "create_trtllm_mla_backend")


@pytest.mark.skipif(not SOURCE, reason="SGLANG_SOURCE names no folder of SGLang's sources")
def test_functions_are_those_of_the_source() -> None:
    assert sites(Path(SOURCE)) == stored()
