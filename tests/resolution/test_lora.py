"""Adapters: what turns them on, and what they need."""

from __future__ import annotations

import pytest

from tests.resolution.launching import resolved, rules


@pytest.mark.parametrize(
    ("launch", "fields", "expected"),
    [
        ("--lora-paths a=/a", "enable_lora lora_backend max_loras_per_batch", (True, "csgmv", 8)),
        ("--enable-lora --max-lora-rank 64 --lora-target-modules all", "lora_target_modules lora_paths", (["all"], [])),
    ],
)  # fmt: skip
def test_values(launch: str, fields: str, expected: tuple[object, ...]) -> None:
    assert resolved(launch, *fields.split()) == expected


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("--enable-lora", ["lora-without-adapters-or-shape"]),
        ("--enable-lora --lora-paths a=/a --max-loaded-loras 4 --max-loras-per-batch 8", ["fewer-loaded-adapters-than-needed"]),
    ],
)  # fmt: skip
def test_refusals(launch: str, expected: list[str]) -> None:
    assert rules(launch) == expected
