"""Prefill and decode on separate servers: what each role turns on and off."""

from __future__ import annotations

import pytest

from tests.resolution.launching import resolved, rules


@pytest.mark.parametrize(
    ("launch", "fields", "expected"),
    [
        ("--disaggregation-mode decode", "disable_radix_cache disaggregation_decode_extra_slots load_balance_method", (True, 0, "round_robin")),
        ("--disaggregation-mode decode --disaggregation-decode-enable-radix-cache", "disable_radix_cache", (False,)),
        ("--disaggregation-mode prefill", "disable_radix_cache load_balance_method", (False, "follow_bootstrap_room")),
        ("--tp-size 1", "load_balance_method", ("round_robin",)),
        ("sglang=0.5.9 -- --disaggregation-mode prefill --tp-size 4 --disaggregation-decode-tp 2", "disaggregation_decode_tp disaggregation_decode_dp disaggregation_prefill_pp", (2, 1, 1)),
    ],
)  # fmt: skip
def test_values(launch: str, fields: str, expected: tuple[object, ...]) -> None:
    assert resolved(launch, *fields.split()) == expected


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("--disaggregation-mode prefill --disaggregation-transfer-backend fake", ["fake-transfer-on-prefill-server"]),
        ("sglang=0.5.9 -- --tp-size 4 --disaggregation-mode prefill --disaggregation-decode-tp 3", ["decode-tp-size-neither-multiple-nor-divisor"]),
        ("--language-model-only", ["language-model-only-conflict"]),
    ],
)  # fmt: skip
def test_refusals(launch: str, expected: list[str]) -> None:
    assert rules(launch) == expected
