"""Parameters and bytes counted from config.json, against what the publishers state."""

from __future__ import annotations

import pytest

from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.memory import Layout, bytes_of, kv_per_token, parameters, weights
from spec_lsp.facts.well_known import find_model


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 8.03), ("meta-llama/Llama-3.1-70B-Instruct", 70.6), ("Qwen/Qwen2.5-7B-Instruct", 7.62),
        ("Qwen/Qwen3-8B", 8.19), ("Qwen/Qwen3-30B-A3B", 30.5), ("Qwen/Qwen3-235B-A22B", 235), ("mistralai/Mixtral-8x7B-Instruct-v0.1", 46.7),
        ("deepseek-ai/DeepSeek-V3", 671), ("moonshotai/Kimi-K2-Instruct", 1026), ("openai/gpt-oss-120b", 116.8), ("MiniMaxAI/MiniMax-M2", 229),
        ("deepseek-ai/DeepSeek-V2", 236), ("zai-org/GLM-4.5", 353),
    ],
)  # fmt: skip
def test_parameters_are_those_the_publisher_states(name: str, billions: float) -> None:
    model = find_model(name)
    assert model is not None
    counted = parameters(model)
    assert counted.linear + 2 * counted.embeddings == pytest.approx(billions * 1e9, rel=0.01)


def test_a_family_that_is_not_counted() -> None:
    model = find_model("google/gemma-2-9b-it")
    assert model is not None
    with pytest.raises(NotKnown):
        parameters(model)


def test_weights_are_spread() -> None:
    model = find_model("deepseek-ai/DeepSeek-V3")
    assert model is not None
    one = weights(model, 1, 1, 1.0, "bfloat16")
    assert weights(model, 8, 1, 1.0, "bfloat16") == pytest.approx(one / 8)
    assert weights(model, 8, 2, 1.0, "bfloat16") < one / 8


@pytest.mark.parametrize(
    ("name", "layout", "dtype", "expected"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", Layout(1, 1), "auto", 131072),
        ("meta-llama/Llama-3.1-8B-Instruct", Layout(1, 16), "auto", 16384),
        ("meta-llama/Llama-3.1-8B-Instruct", Layout(1, 1), "fp8_e4m3", 65536),
        ("deepseek-ai/DeepSeek-V3", Layout(1, 8), "auto", 61 * 576 * 2),
    ],
)
def test_kv_cache(name: str, layout: Layout, dtype: str, expected: int) -> None:
    model = find_model(name)
    assert model is not None
    assert kv_per_token(model, layout, dtype) == expected


def test_types_of_weights() -> None:
    assert bytes_of(None, "bfloat16", None) == 2
    assert bytes_of("fp8", "bfloat16", None) == 1
    assert bytes_of("gptq_marlin", "bfloat16", {"bits": 8}) == 1
    with pytest.raises(NotKnown):
        bytes_of("gguf", "bfloat16", None)
