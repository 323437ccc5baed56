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
        (
            "model=deepseek-v3 -- --tp-size 32 --nnodes 4 --dist-init-addr 10.0.0.1:5000",
            ["expert-width-not-divisible-by-quantization-block", "mlp-width-not-divisible-by-quantization-block"],
        ),
        ("model=minimax-m2 -- --tp-size 8", ["expert-width-not-divisible-by-quantization-block"]),
        ("model=minimax-m2 -- --tp-size 4", []),
        ("model=minimax-m2 -- --tp-size 8 --ep-size 8", []),
        (
            "model=deepseek-v3 -- --tp-size 32 --ep-size 32 --nnodes 4 --dist-init-addr 10.0.0.1:5000",
            ["mlp-width-not-divisible-by-quantization-block", "shared-expert-width-not-divisible-by-quantization-block"],
        ),
        (
            "sglang=0.5.6 model=deepseek-v3 -- --tp-size 24 --nnodes 3 --dist-init-addr 10.0.0.1:5000",
            ["attention-heads-not-divisible-by-ranks", "expert-width-not-divisible-by-ranks"],
        ),
        ("model=nemotron-h-8b -- --tp-size 3", ["mamba-heads-not-divisible-by-ranks", "attention-heads-not-divisible-by-ranks"]),
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


@pytest.mark.parametrize(
    "launch",
    [
        "gpu=h100 model=llama-3.3-70b -- --tp-size 2",
        "gpu=rtx4090 model=llama-3.3-70b -- --tp-size 2 --cpu-offload-gb 80",
        "gpu=rtx4090 model=llama-3.3-70b -- --tp-size 4 --quantization fp8",
        "gpu=h200 model=deepseek-v3 -- --tp-size 8",
        "gpu=h100 model=deepseek-v3 -- --tp-size 8",  # it would need more than an H100 has, but an H100 NVL may be meant
        "gpu=mi300x model=deepseek-v3 -- --tp-size 8",
        "gpu=b200 model=deepseek-v3 -- --tp-size 4",
        "gpu=h100 model=gpt-oss-120b -- --tp-size 1",
        "gpu=h100 model=llama-3.3-70b -- --tp-size 2 --pp-size 2 --mem-fraction-static 0.8",
        "gpu=rtx4090 model=gemma-2-9b -- --tp-size 1",
    ],
)
def test_weights_that_may_fit(launch: str) -> None:
    assert rules(launch) == []


@pytest.mark.parametrize(
    "launch",
    [
        "gpu=l40s model=llama-3.3-70b -- --tp-size 2",
        "gpu=h100 model=kimi-k2 -- --tp-size 8",
        "gpu=h200 model=deepseek-v3 -- --tp-size 4",
        "gpu=rtx4090 model=qwen3-30b-a3b -- --tp-size 2",
        "gpu=h200 model=deepseek-v3 -- --tp-size 8 --mem-fraction-static 0.5",
    ],
)
def test_weights_that_cannot_fit(launch: str) -> None:
    assert rules(launch) == ["weights-above-gpu-memory"]
