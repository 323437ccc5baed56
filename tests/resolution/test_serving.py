"""What the server's front takes: certificates, workers, tokenizers, media."""

from __future__ import annotations

import pytest

from tests.resolution.launching import resolved, rules


@pytest.mark.parametrize(
    ("launch", "fields", "expected"),
    [
        ("sglang=0.5.19 -- --keep-mm-feature-on-device", "mm_feature_transport keep_mm_feature_on_device", ("cuda_ipc", False)),
    ],
)  # fmt: skip
def test_values(launch: str, fields: str, expected: tuple[object, ...]) -> None:
    assert resolved(launch, *fields.split()) == expected


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("--ssl-keyfile key.pem", ["half-a-certificate"]),
        ("--enable-http-worker-reuseport", ["port-sharing-without-workers"]),
        ("--enable-http-worker-reuseport --tokenizer-worker-num 4", []),
        ("--enable-tokenizer-batch-encode --enable-dynamic-batch-tokenizer", ["two-ways-of-batching-tokenization"]),
        ("--dllm-algorithm LowConfidence", ["diffusion-algorithm-on-other-model"]),
    ],
)  # fmt: skip
def test_refusals(launch: str, expected: list[str]) -> None:
    assert rules(launch) == expected
