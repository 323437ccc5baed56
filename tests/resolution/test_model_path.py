"""Loading: expert packs, weight caches, load formats."""

from __future__ import annotations

import pytest

from tests.resolution.launching import answer, resolved, rules


@pytest.mark.parametrize(
    ("launch", "rule"),
    [
        ("--load-format expert_pack", "expert-pack-without-pack"),
        ("--weight-cache-mode client --speculative-algorithm NGRAM", "weight-cache-with-drafting"),
    ],
)
def test_refusals(launch: str, rule: str) -> None:
    assert rule in rules(launch)


@pytest.mark.parametrize("launch", ["--load-format auto", "--load-format dummy", "--weight-cache-mode client"])
def test_accepted(launch: str) -> None:
    assert answer(launch).outcome == "accepted"


@pytest.mark.parametrize("load_format", ["auto", "dummy", "safetensors"])
def test_a_load_format_that_was_typed_stays(load_format: str) -> None:
    assert resolved(f"--load-format {load_format}", "load_format") == (load_format,)
