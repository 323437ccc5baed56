"""MoE layers: the runner and the exchange between ranks, and which do not go together."""

from __future__ import annotations

import pytest

from tests.resolution.launching import resolved, rules


@pytest.mark.parametrize(
    ("launch", "fields", "expected"),
    [
        ("model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep", "ep_size", (8,)),
        ("model=deepseek-v3 SGLANG_DEEPEP_V2_NUM_MAX_DISPATCH_TOKENS_PER_RANK=16384 -- --tp-size 8 --moe-a2a-backend deepep_v2", "ep_size moe_runner_backend", (8, "deep_gemm")),
        ("gpu=b200 model=qwen3-30b-a3b -- --quantization nvfp4_online", "moe_runner_backend", ("flashinfer_trtllm",)),
        ("gpu=b200 model=qwen3-30b-a3b -- --quantization mxfp8", "moe_runner_backend", ("flashinfer_trtllm",)),
        ("model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend megamoe", "ep_size moe_runner_backend", (2, "auto")),
    ],
)  # fmt: skip
def test_values(launch: str, fields: str, expected: tuple[object, ...]) -> None:
    assert resolved(launch, *fields.split()) == expected


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend flashinfer --moe-runner-backend flashinfer_cutlass", ["exchange-without-attention-dp-on-all-ranks"]),
        ("model=qwen3-30b-a3b -- --tp-size 4 --ep-size 2 --moe-runner-backend flashinfer_cutlass", ["moe-runner-with-partial-expert-parallelism"]),
        ("gpu=mi300x model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend mori --chunked-prefill-size 8192", ["prefill-chunk-above-mori-capacity"]),
        ("model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend megamoe --chunked-prefill-size 16384", ["step-above-megamoe-capacity", "mega-moe-without-its-weights"]),
        ("gpu=a100 model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend megamoe", ["megamoe-on-unfit-gpu"]),
    ],
)  # fmt: skip
def test_refusals(launch: str, expected: list[str]) -> None:
    assert rules(launch) == expected
