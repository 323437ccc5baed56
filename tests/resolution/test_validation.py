"""The checks at the end of the settings' resolution."""

from __future__ import annotations

import pytest

from tests.resolution.launching import rules


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("--tp-size 1 --nnodes 2", ["gpus-not-divisible-by-nodes", "nodes-without-meeting-place"]),
        ("--tp-size 2 --nnodes 2", ["nodes-without-meeting-place"]),
        ("--tp-size 3 --nnodes 3 --dist-init-addr 10.0.0.1:5000", ["attention-heads-not-divisible-by-ranks"]),
        ("--tp-size 2 --nnodes 2 --dist-init-addr 10.0.0.1:5000", []),
        ("--served-model-name llama:8b", ["colon-in-served-name"]),
        ("--chunked-prefill-size 1000 --page-size 64", ["prefill-chunk-not-divisible-by-page"]),
    ],
)  # fmt: skip
def test_refusals(launch: str, expected: list[str]) -> None:
    assert rules(launch) == expected
