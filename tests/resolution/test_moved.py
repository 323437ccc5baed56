"""Values that SGLang moves from an old spelling: what is refused of the new field is shown, and mended, at what was typed."""

from __future__ import annotations

import re

import pytest

from spec_lsp.resolution.engine import RULES, Change, Refusal
from tests.resolution.launching import answer, rules

NEW = re.compile(r"--attn-dp-size (\d+)")
OLD = re.compile(r"--dp-size (\d+)")


def _as_new(example: str) -> str:
    """The example in the newest release; with the old spelling of attention data parallelism."""
    text = example if " -- " in example else " -- " + example
    text = re.sub(r"sglang=\S+ ?", "", text)
    return NEW.sub(r"--dp-size \1 --enable-dp-attention", text) if not OLD.search(text) else text


PLACED = sorted(
    {
        (rule.name, launch)
        for rule in RULES.values()
        for launch in map(_as_new, rule.bad)
        if not rule.until and "--enable-dp-attention" in launch and "--attn-dp-size" not in launch
    }
)
"""Every launch with attention data parallelism that a rule of the newest release gives as an example of what it refuses."""


def _said(launch: str) -> list[Refusal]:
    return [s.merged.found.said for s in answer(launch).findings if s.merged.found.said is not None]


@pytest.mark.parametrize(("rule", "launch"), PLACED)
def test_nothing_is_placed_at_a_field_that_was_not_typed(rule: str, launch: str) -> None:
    for said in _said(launch):
        fields = {said.at, *said.related_fields, *(f for c in said.candidates for f in (*c.set, *c.drop))}
        assert "attn_dp_size" not in fields, said
        assert "`--attn-dp-size" not in said.message, said


def test_many_rules_are_tried() -> None:
    assert len({rule for rule, _ in PLACED}) > 15


@pytest.mark.parametrize(
    ("launch", "rule", "at"),
    [
        ("--tp-size 4 --dp-size 3 --enable-dp-attention", "tp-size-not-divisible-by-attention-dp-size", "dp_size"),
        ("--tp-size 4 --attn-dp-size 3", "tp-size-not-divisible-by-attention-dp-size", "attn_dp_size"),
        (
            "gpu=a100 model=qwen3-30b-a3b -- --tp-size 2 --moe-runner-backend megamoe",
            "megamoe-on-unfit-gpu",
            "moe_runner_backend",
        ),
        (
            "gpu=a100 model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend megamoe",
            "megamoe-on-unfit-gpu",
            "moe_a2a_backend",
        ),
    ],
)
def test_the_place_is_what_was_typed(launch: str, rule: str, at: str) -> None:
    assert rule in rules(launch)
    assert next(s.merged.found.said for s in answer(launch).findings if s.merged.found.rule.name == rule).at == at  # type: ignore[union-attr]


def test_another_number_keeps_the_old_spelling_and_none_takes_its_switch_along() -> None:
    (said,) = _said("--tp-size 2 --dp-size 2 --enable-dp-attention --speculative-algorithm NGRAM")
    assert said.related_fields == ("dp_size",)
    assert Change(drop=("dp_size", "enable_dp_attention")) in said.candidates
    (said,) = _said("--tp-size 4 --dp-size 3 --enable-dp-attention")
    assert Change(set={"dp_size": 4}) in said.candidates
