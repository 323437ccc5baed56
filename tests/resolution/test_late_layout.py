"""Layouts and exchanges refused only with the model's weights loaded."""

from __future__ import annotations

import pytest

from tests.resolution.launching import rules

PINNED = """--lora-paths '{"lora_name": "a", "lora_path": "/a", "pinned": true}'"""


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("model=qwen2.5-7b -- --tp-size 4", []),
        ("model=qwen2.5-7b -- --tp-size 8", ["attention-heads-not-divisible-by-ranks"]),
        ("model=qwen3-235b-fp8 -- --tp-size 4", []),
        ("model=qwen3-235b-fp8 -- --tp-size 8", ["expert-width-not-divisible-by-quantization-block"]),
        ("model=qwen3-235b-fp8 -- --tp-size 8 --ep-size 2", []),
        ("model=deepseek-v3 -- --tp-size 32 --nnodes 4", ["expert-width-not-divisible-by-quantization-block"]),
        ("model=minimax-m2 -- --tp-size 8", ["expert-width-not-divisible-by-quantization-block"]),
        ("model=minimax-m2 -- --tp-size 4", []),
        ("model=minimax-m2 -- --tp-size 8 --ep-size 8", []),
        ("model=deepseek-v3 -- --tp-size 32 --ep-size 32 --nnodes 4", ["mlp-width-not-divisible-by-quantization-block"]),
        ("sglang=0.5.6 model=deepseek-v3 -- --tp-size 24 --nnodes 3", ["attention-heads-not-divisible-by-ranks"]),
        ("model=nemotron-h-8b -- --tp-size 3", ["mamba-heads-not-divisible-by-ranks"]),
        ("model=qwen3-8b -- --tp-size 6", ["attention-heads-not-divisible-by-ranks"]),
        ("model=qwen3-8b -- --tp-size 6 --attn-dp-size 3", []),
        ("model=llama-3.1-8b -- --tp-size 6 --attn-dp-size 3", ["attention-heads-not-divisible-by-ranks"]),
        ("model=qwen3-8b -- --tp-size 6 --model-impl transformers", []),
        ("model=gemma-2-9b -- --pp-size 2", ["pipeline-through-model-without-stages"]),
        ("model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend mooncake", ["exchange-without-prefill-dispatch"]),
        ("model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend mooncake --deepep-mode low_latency", []),
        (f"--enable-lora {PINNED} --tp-size 2 --dp-size 2 --enable-dp-attention", ["adapters-on-backend-without-attention-dp"]),
        (f"--enable-lora {PINNED} --lora-backend triton --tp-size 2 --dp-size 2 --enable-dp-attention", []),
        (
            "--enable-lora --lora-paths a=/a --lora-backend triton --tp-size 2 --dp-size 2 --enable-dp-attention",
            ["unpinned-adapter-with-attention-dp"],
        ),
        (
            "sglang=0.5.19 -- --enable-lora --lora-paths a=/a --lora-backend triton --tp-size 2 --dp-size 2 --enable-dp-attention",
            [],
        ),
    ],
)  # fmt: skip
def test_refusals(launch: str, expected: list[str]) -> None:
    assert rules(launch) == expected
