"""Parallel layouts: how ranks are split, what a split changes, and which splits are refused."""

from __future__ import annotations

import pytest

from tests.resolution.launching import resolved, rules


@pytest.mark.parametrize(
    ("launch", "fields", "expected"),
    [
        ("--tp-size 8 --dp-size 8 --enable-dp-attention", "dp_size attn_dp_size enable_dp_attention", (1, 8, True)),
        ("--tp-size 8 --dp-size 8 --enable-dp-attention", "schedule_conservativeness chunked_prefill_size", (0.3, 1024)),
        ("sglang=0.5.19 -- --tp-size 8 --dp-size 8 --enable-dp-attention", "dp_size schedule_conservativeness chunked_prefill_size", (8, 0.3, 1024)),
        ("--tp-size 8 --attn-dp-size 4", "dp_size attn_dp_size enable_dp_attention chunked_prefill_size", (1, 4, True, 2048)),
        ("--tp-size 2 --dp-size 2", "dp_size attn_dp_size enable_dp_attention", (2, 1, False)),
        ("--pp-size 2", "disable_overlap_schedule", (True,)),
        ("--tp-size 1", "disable_overlap_schedule", (False,)),
        ("sglang=0.5.19 -- --tp-size 2 --attn-cp-size 2 --enable-prefill-context-parallel", "enable_prefill_cp cp_strategy", (True, "zigzag")),
        ("model=deepseek-v3 -- --tp-size 8 --ep-size 8 --enable-eplb", "expert_distribution_recorder_mode ep_dispatch_algorithm", ("stat", "dynamic")),
        ("model=deepseek-v3 -- --tp-size 8 --ep-size 8 --elastic-ep-backend mooncake --enable-eplb", "eplb_algorithm", ("elasticity_aware",)),
        ("model=deepseek-v3 -- --tp-size 2 --dwdp-size 2 --disaggregation-mode prefill", "attn_dp_size ep_size", (2, 2)),
    ],
)  # fmt: skip
def test_values(launch: str, fields: str, expected: tuple[object, ...]) -> None:
    assert resolved(launch, *fields.split()) == expected


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("--tp-size 4 --dp-size 8 --enable-dp-attention", ["tp-size-not-divisible-by-attention-dp-size"]),
        ("--tp-size 4 --dp-size 2 --attn-dp-size 2", ["replicas-with-attention-dp"]),
        ("--tp-size 2 --attn-cp-size 2 --enable-prefill-cp", ["prefill-context-parallel-without-strategy"]),
        ("model=deepseek-v3 -- --tp-size 8 --enable-eplb", ["eplb-without-expert-parallelism"]),
    ],
)  # fmt: skip
def test_refusals(launch: str, expected: list[str]) -> None:
    assert rules(launch) == expected
