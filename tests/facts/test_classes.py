"""What the data of SGLang's model classes and quantization methods say."""

from __future__ import annotations

import pytest

from spec_lsp.catalog.release import Release
from spec_lsp.facts.classes import class_facts, is_target
from spec_lsp.facts.methods import needed, requirements


@pytest.mark.parametrize(
    ("name", "release", "field", "value"),
    [
        ("LlamaForCausalLM", "0.5.6", "heads", "tp"),
        ("Qwen3MoeForCausalLM", "0.5.23", "heads", "attn"),
        ("MiniMaxM2ForCausalLM", "0.5.9", "heads", "tp"),
        ("MiniMaxM2ForCausalLM", "0.5.23", "heads", "attn"),
        ("MiniMaxM2ForCausalLM", "0.5.23", "expert_width", "intermediate_size"),
        ("DeepseekV3ForCausalLM", "0.5.23", "kv_heads", False),
        ("Qwen3NextForCausalLM", "0.5.23", "stages", False),
        ("KimiK25ForConditionalGeneration", "0.5.9", "captures", ()),
        ("KimiK25ForConditionalGeneration", "0.5.10", "captures", ("eagle3",)),
        ("Qwen2_5_VLForConditionalGeneration", "0.5.23", "vision", True),
    ],
)
def test_class_facts(name: str, release: str, field: str, value: object) -> None:
    facts = class_facts(name, Release.parse(release))
    assert facts is not None
    assert getattr(facts, field) == value


def test_a_class_that_a_release_does_not_have() -> None:
    assert class_facts("Step3p5ForCausalLM", Release.parse("0.5.6")) is None
    assert class_facts("SomebodysForCausalLM", Release.parse("0.5.23")) is None


def test_targets() -> None:
    assert is_target("LlamaForCausalLM")
    assert not is_target("LlamaForCausalLMEagle3")
    assert not is_target("DeepseekV3ForCausalLMNextN")


@pytest.mark.parametrize(
    ("method", "release", "capability"),
    [
        ("fp8", "0.5.23", 80), ("mxfp8", "0.5.23", 100), ("w8a8_fp8", "0.5.6", 89), ("modelopt_fp4", "0.5.12", 100),
        ("modelopt_fp4", "0.5.13.post1", 80), ("nvfp4_online", "0.5.23", 100), ("gptq", "0.5.23", None),
    ],
)  # fmt: skip
def test_requirements(method: str, release: str, capability: int | None) -> None:
    assert requirements(method, Release.parse(release)).capability == capability


def test_data_types() -> None:
    assert requirements("awq", Release.parse("0.5.23")).dtypes == ("float16",)
    assert needed(89) == "SM89 (Ada or Hopper)"


@pytest.mark.parametrize(
    ("name", "release", "supports"),
    [
        ("LlamaForCausalLM", "0.5.6", ("bitsandbytes", "kv_scales", "split_prefill")),
        ("SolarForCausalLM", "0.5.23", ("bitsandbytes",)),
        ("Qwen2ForCausalLM", "0.5.19", ("bitsandbytes", "kv_scales", "split_prefill")),
        ("Qwen2ForCausalLM", "0.5.23", ("bitsandbytes", "flash_rl", "kv_scales", "split_prefill")),
        ("NanbeigeForCausalLM", "0.5.23", ()),
        ("MiniCPMV", "0.5.23", ("bitsandbytes",)),
        ("TorchNativeLlamaForCausalLM", "0.5.12", ("layered",)),
        ("Qwen3VLForConditionalGeneration", "0.5.23", ("cuda_vmm",)),
        ("Qwen3VLForConditionalGeneration", "0.5.17", ()),
        ("Qwen3MoeForCausalLM", "0.5.23", ("split_prefill",)),
    ],
)
def test_what_few_classes_support(name: str, release: str, supports: tuple[str, ...]) -> None:
    facts = class_facts(name, Release.parse(release))
    assert facts is not None
    assert facts.supports == supports
