"""The checks at the end of the settings' resolution."""

from __future__ import annotations

import pytest

from tests.resolution.launching import rules


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("--tp-size 1 --nnodes 2", ["gpus-not-divisible-by-nodes"]),
        ("--tp-size 2 --nnodes 2", []),
        ("--served-model-name llama:8b", ["colon-in-served-name"]),
        ("--chunked-prefill-size 1000 --page-size 64", ["prefill-chunk-not-divisible-by-page"]),
    ],
)  # fmt: skip
def test_refusals(launch: str, expected: list[str]) -> None:
    assert rules(launch) == expected
