"""What linear-attention (Mamba, GDN, KDA, Lightning) kernels, their states and replay refuse."""

from __future__ import annotations

import pytest

from tests.resolution.launching import answer, resolved, rules

MAMBA = "model=nemotron-h-8b"
GDN = "model=qwen3-next-80b"
KDA = "model=kimi-linear-48b"
LIGHTNING = "model=ring-2.5-1t -- --tp-size 8 --speculative-algorithm EAGLE --speculative-num-steps 3"
CHAIN = "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
TREE = "--speculative-eagle-topk 4 --speculative-num-draft-tokens 8"


@pytest.mark.parametrize(
    ("launch", "rule"),
    [
        (f"{MAMBA} -- --mamba-cache-philox-rounds -1", "negative-philox-rounds"),
        (f"{MAMBA} gpu=b200 -- --enable-mamba-cache-stochastic-rounding", "stochastic-rounding-of-wide-state"),
        (f"{MAMBA} gpu=mi300x -- --mamba-backend flashinfer", "flashinfer-mamba-off-cuda"),
        (f"{MAMBA} -- --enable-int8-mamba-checkpoint --enable-hierarchical-cache",
         "int8-mamba-checkpoint-beside-other-caches"),
        (f"{KDA} -- --linear-attn-decode-backend flashkda", "flashkda-for-decoding"),
        (f"{GDN} gpu=b200 -- --tp-size 4 --linear-attn-backend flashinfer", "flashinfer-decode-of-wide-state"),
        (f"{GDN} -- --enable-linear-replayssm", "replayssm-with-extra-buffer"),
        (f"{GDN} -- --enable-linear-replayssm --disable-radix-cache --linear-replayssm-cache-len 0",
         "empty-replayssm-ring"),
        (f"sglang=0.5.16 {GDN} -- --enable-gdn-replayssm-spec", "gdn-replayssm-verify-with-extra-buffer"),
        (f"{GDN} SGLANG_RAGGED_VERIFY_MODE=compact -- --enable-linear-replayssm-spec", "ragged-replayssm-verify"),
    ],
)  # fmt: skip
def test_refusals(launch: str, rule: str) -> None:
    assert rules(launch)[:1] == [rule]


@pytest.mark.parametrize(
    ("launch", "rule"),
    [
        (f"{LIGHTNING} {TREE} --page-size 1", "tree-drafting-on-lightning-attention"),
        (f"sglang=0.5.19 {LIGHTNING} {TREE} --page-size 1", "tree-drafting-on-lightning-attention"),
        (f"{LIGHTNING} {CHAIN}", None),
        (f"{GDN} -- --tp-size 2 --linear-attn-backend helion", "gdn-kernel"),
        (f"{KDA} -- --tp-size 2 --linear-attn-decode-backend nvidia_kda", "kda-kernel"),
        (f"{GDN} gpu=mi300x -- --tp-size 2 --linear-attn-backend cutedsl",
         "linear-attention-kernel-off-its-hardware"),
        (f"{GDN} -- --tp-size 2 --enable-deterministic-inference --linear-attn-prefill-backend flashinfer",
         "deterministic-flashinfer-gdn-prefill"),
    ],
)  # fmt: skip
def test_refusals_with_the_weights_loaded(launch: str, rule: str | None) -> None:
    assert answer(launch).outcome == "accepted"
    assert rules(launch) == ([rule] if rule else [])


def test_backends_left_open_are_triton() -> None:
    assert resolved(f"{GDN} -- --tp-size 4", "linear_attn_backend", "mamba_backend") == ("triton", "triton")
