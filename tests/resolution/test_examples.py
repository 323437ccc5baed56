"""Every rule's own examples: each `bad` one must give the rule, each `good` one must not, and must be accepted."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from spec_lsp.analysis.argv import Answer, resolve_argv
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.facts.hardware import find
from spec_lsp.facts.model import ModelFacts
from spec_lsp.facts.well_known import find_model
from spec_lsp.resolution.engine import RULES, Rule, in_release
from spec_lsp.resolution.examples import Example, read_example
from spec_lsp.resolution.pipeline import pipeline

MODELS = Path(__file__).parent.parent / "models"
MORE_MODELS = json.loads((Path(__file__).parent / "data" / "architectures.json").read_text())
"""What config.json says of models that have no folder, by name."""

for release in releases():
    pipeline(release)  # imports every rule


@cache
def model(path: str) -> ModelFacts | None:
    config = Path(path.replace("{models}", str(MODELS))) / "config.json"
    if config.is_file():
        return ModelFacts(json.loads(config.read_text()))
    name = path.removeprefix("{models}/")
    return ModelFacts(MORE_MODELS[name]) if name in MORE_MODELS else find_model(path)


def newest(rule: Rule) -> Release:
    return next(r for r in reversed(releases()) if in_release(r, rule.since, rule.until))


def answer(example: Example, rule: Rule) -> Answer:
    release = Release.parse(example.release) if example.release else newest(rule)
    hardware = find(example.gpu)
    assert hardware is not None, example.gpu
    return resolve_argv(
        example.argv, example.env, release, hardware, models=model, files=lambda _: None, program=example.program
    )


def cases(kind: str) -> list[tuple[str, str]]:
    return [(rule.name, text) for rule in RULES.values() for text in getattr(rule, kind) if text]


@pytest.mark.parametrize(("name", "text"), cases("bad"))
def test_bad_example_gives_the_rule(name: str, text: str) -> None:
    rule = RULES[name]
    said = answer(read_example(text), rule)
    assert name in [s.merged.found.rule.name for s in said.findings], (said.outcome, said.findings)
    if rule.severity == "error" and not rule.late:
        assert said.outcome in ("refused", "bad-arguments")


@pytest.mark.parametrize(("name", "text"), cases("good"))
def test_good_example_is_accepted(name: str, text: str) -> None:
    said = answer(read_example(text), RULES[name])
    assert name not in [s.merged.found.rule.name for s in said.findings]
    assert said.outcome in ("accepted", "unknown"), said.findings


def said_of(example: Example, rule: Rule) -> set[str]:
    return {s.merged.found.rule.name for s in answer(example, rule).findings if s.merged.severity != "hint"}


@pytest.mark.parametrize(("name", "text"), cases("good"))
def test_a_word_that_is_no_flag_brings_no_other_finding(name: str, text: str) -> None:
    """What it may have meant is unknown, which silences and never speaks."""
    example = read_example(text)
    more = replace(example, argv=(*example.argv, "--no-such-thing", "1"))
    assert said_of(more, RULES[name]) <= {*said_of(example, RULES[name]), "unknown-flag"}


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda r: r.name)
def test_rule_is_documented(rule: Rule) -> None:
    assert rule.summary
    assert rule.summary[-1] in ".!?"
    assert rule.explanation
    assert rule.code.startswith("SPC")


def test_codes_are_unique() -> None:
    codes = [rule.code for rule in RULES.values()]
    assert len(codes) == len(set(codes))
