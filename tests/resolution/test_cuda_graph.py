"""CUDA graph settings: which flag wins, what is captured where, at which sizes."""

from __future__ import annotations

from typing import Any

import pytest

from spec_lsp.resolution.cuda_graph import cpu_sizes, decode_sizes, prefill_sizes
from tests.resolution.launching import resolved, rules


def phase(launch: str, name: str) -> dict[str, Any]:
    (config,) = resolved(launch, "cuda_graph_config")
    assert isinstance(config, dict)
    found: dict[str, Any] = config[name]
    return found


@pytest.mark.parametrize(
    ("launch", "decode", "prefill"),
    [
        ("--page-size 1", "full", "breakable"),
        ("gpu=mi300x -- --page-size 1", "full", "disabled"),
        ("--disable-cuda-graph", "disabled", "disabled"),
        ("--disable-decode-cuda-graph", "disabled", "breakable"),
        ("--disable-cuda-graph --cuda-graph-backend-prefill full", "disabled", "full"),
        ("""--cuda-graph-backend-decode breakable --cuda-graph-config '{"decode": {"backend": "full"}}'""", "full", "breakable"),
        ("--disaggregation-mode decode", "full", "disabled"),
        ("--disaggregation-mode prefill", "disabled", "breakable"),
        ("--disaggregation-mode decode --cuda-graph-backend-prefill breakable", "full", "breakable"),
        ("--pp-size 2", "full", "disabled"),
        ("--pp-size 2 --cuda-graph-backend-prefill breakable", "full", "breakable"),
        ("model=kimi-linear-48b -- --tp-size 4", "full", "disabled"),
        ("model=deepseek-v3 -- --tp-size 8", "full", "breakable"),
        ("sglang=0.5.16 model=deepseek-v3 -- --tp-size 8", "full", "disabled"),
        ("sglang=0.5.14 -- --page-size 1", "full", "tc_piecewise"),
        ("sglang=0.5.14 -- --enable-hierarchical-cache", "full", "disabled"),
        ("gpu=b200 model=deepseek-v3 -- --tp-size 8", "full", "disabled"),
    ],
)  # fmt: skip
def test_backends(launch: str, decode: str, prefill: str) -> None:
    assert (phase(launch, "decode")["backend"], phase(launch, "prefill")["backend"]) == (decode, prefill)


@pytest.mark.parametrize(
    ("launch", "largest"),
    [
        ("--page-size 1", 256),
        ("--tp-size 4", 512),
        ("--max-running-requests 100", 100),
        ("sglang=0.5.21 -- --max-running-requests 100", 256),
        ("--cuda-graph-max-bs-decode 33", 33),
        ("--cuda-graph-bs-decode 1 16", 16),
        ("gpu=b200 -- --page-size 1", 512),
    ],
)
def test_largest_decode_graph(launch: str, largest: int) -> None:
    decode = phase(launch, "decode")
    assert decode["max_bs"] == largest == max(decode["bs"])


@pytest.mark.parametrize(
    ("launch", "largest"),
    [
        ("--page-size 1", 8192),
        ("--max-total-tokens 2000", 2000),
        ("model=llama-2-7b -- --page-size 1", 4096),
        ("sglang=0.5.22 model=deepseek-v3 -- --tp-size 8", 2048),
        ("model=deepseek-v3 gpu=b200 -- --tp-size 8", 8192),
        ("sglang=0.5.16 -- --context-length 4096", 4096),
        ("--context-length 4096", 8192),
    ],
)
def test_largest_prefill_graph(launch: str, largest: int) -> None:
    assert phase(launch, "prefill")["max_bs"] == largest


def test_sizes_are_dense_where_batches_are_small() -> None:
    assert decode_sizes(32, speculative=False, padded=True) == [1, 2, 4, 8, 12, 16, 24, 32]
    assert decode_sizes(12, speculative=True, padded=True) == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12]
    assert decode_sizes(33, speculative=False, padded=True)[-2:] == [32, 33]
    assert decode_sizes(33, speculative=False, padded=True, ends_at_max=False)[-1] == 32
    assert decode_sizes(3, speculative=False, padded=False) == [1, 2, 3]
    assert prefill_sizes(64) == [4, 8, 12, 16, 20, 24, 28, 32, 48, 64]
    assert 576 in prefill_sizes(1024)
    assert 576 not in prefill_sizes(1024, "0.5.8")
    assert cpu_sizes(20, padded=True) == [*range(1, 17), 18, 20]


def test_the_prefill_context_is_rounded_to_pages_and_bounded() -> None:
    launch = "--cuda-graph-prefill-max-context 1000 --page-size 64"
    assert phase(launch, "prefill")["max_context_size"] == 1024
    assert rules("--cuda-graph-prefill-max-context 0") == ["nonpositive-prefill-graph-context"]
    beyond = ["prefill-graph-context-beyond-model"]
    assert rules("--cuda-graph-prefill-max-context 300000") == beyond
    assert rules("--cuda-graph-prefill-max-context 8000 --context-length 4096") == beyond
