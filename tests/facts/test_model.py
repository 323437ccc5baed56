"""ModelFacts: what SGLang's ModelConfig makes of a config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.model import ModelFacts

MODELS = Path(__file__).parent.parent / "models"


def read(text: str, *overrides: str) -> ModelFacts:
    facts = ModelFacts(json.loads(text))
    return facts.overridden_by(*overrides) if overrides else facts


def folder(name: str) -> ModelFacts:
    return read((MODELS / name / "config.json").read_text())


def of(architecture: str, **config: Any) -> ModelFacts:
    return ModelFacts({"architectures": [architecture], **config})


@pytest.mark.parametrize(
    ("name", "attention", "head_dim", "v_head_dim", "kv_heads_of_two", "context"),
    [
        ("llama-3.1-8b", "MHA", 128, 128, 4, 131072),
        ("llama-2-7b", "MHA", 128, 128, 16, 4096),
        ("gemma-2-9b", "MHA", 256, 256, 4, 8192),
        ("gpt-oss-120b", "MHA", 64, 64, 4, 131072),
        ("deepseek-v2-lite", "MLA", 256, 128, 8, 163840),
        ("deepseek-v3", "MLA", 256, 128, 64, 163840),
        ("kimi-linear-48b", "MLA", 72, 128, 16, 1048576),
        ("qwen3-next-80b", "MHA", 256, 256, 1, 262144),
        ("eagle3-draft", "MHA", 128, 128, 4, 2048),
    ],
)
def test_shapes(name: str, attention: str, head_dim: int, v_head_dim: int, kv_heads_of_two: int, context: int) -> None:
    facts = folder(name)
    assert facts.attention_arch == attention
    assert facts.uses_mla is (attention == "MLA")
    assert (facts.head_dim, facts.v_head_dim) == (head_dim, v_head_dim)
    assert facts.get_num_kv_heads(2) == kv_heads_of_two
    assert facts.context_len() == context
    assert facts.context_len(1024) == 1024


@pytest.mark.parametrize(
    ("name", "predicates"),
    [
        ("llama-3.1-8b", set()),
        ("deepseek-v3", set()),
        ("deepseek-v3.2", {"is_deepseek_dsa"}),
        ("qwen3-next-80b", {"is_gdn", "is_mambaish"}),
        ("nemotron-h-8b", {"is_mamba2", "is_mambaish"}),
        ("kimi-linear-48b", {"is_kda", "is_mambaish", "uses_kda_attention"}),
        ("ring-2.5-1t", {"is_lightning", "is_mambaish"}),
        ("gpt-oss-120b", {"has_attention_sinks"}),
    ],
)
def test_predicates(name: str, predicates: set[str]) -> None:
    asked = (
        "is_deepseek_dsa", "is_gdn", "is_mamba2", "is_kda", "is_lightning", "is_mambaish", "uses_kda_attention",
        "has_attention_sinks", "is_deepseek_v4", "is_minimax_sparse", "is_encoder_decoder", "is_dspark_draft",
    )  # fmt: skip
    facts = folder(name)
    assert {asked_for for asked_for in asked if getattr(facts, asked_for)} == predicates


def test_hybrid_windows() -> None:
    assert folder("gpt-oss-120b").is_hybrid_swa()
    assert not folder("gpt-oss-120b").is_hybrid_swa(disable_hybrid_swa_memory=True)
    assert not folder("llama-3.1-8b").is_hybrid_swa()
    assert of("AnyForCausalLM", is_hybrid_swa=True).is_hybrid_swa()
    assert not of("LagunaForCausalLM", sliding_window=None).is_hybrid_swa()
    assert of("LagunaForCausalLM", sliding_window=512).is_hybrid_swa()


def test_language_model_part_of_a_multimodal_config() -> None:
    facts = of(
        "Any3ForConditionalGeneration", model_type="any", text_config={"hidden_size": 4096, "num_attention_heads": 32}
    )
    assert facts.hidden_size == 4096
    assert facts.head_dim == 128
    assert facts.is_multimodal()
    assert not facts.is_multimodal(language_model_only=True)
    assert not facts.is_multimodal(enable_multimodal=False)
    thinker = of("Omni", thinker_config={"text_config": {"hidden_size": 8}})
    assert thinker.hidden_size == 8


def test_asymmetric_keys_and_values() -> None:
    shapes = {"num_attention_heads": 64, "hidden_size": 4096, "head_dim": 192, "v_head_dim": 128}
    assert of("MiMoV2FlashForCausalLM", **shapes).has_asymmetric_kv
    assert not folder("llama-3.1-8b").has_asymmetric_kv


@pytest.mark.parametrize(
    ("config", "kv_heads"),
    [
        ({"num_attention_heads": 32}, 32),
        ({"num_attention_heads": 32, "num_key_value_heads": 8}, 8),
        ({"num_attention_heads": 32, "num_kv_heads": 4}, 4),
        ({"num_attention_heads": 32, "multi_query": True}, 1),
        ({"num_attention_heads": 32, "model_type": "dbrx", "attn_config": {"kv_n_heads": 8}}, 8),
        (
            {"num_attention_heads": 32, "multi_query": True, "model_type": "falcon", "new_decoder_architecture": True},
            32,
        ),
        ({"num_attention_heads": 32, "multi_query": True, "model_type": "falcon"}, 1),
    ],
)
def test_kv_heads(config: dict[str, Any], kv_heads: int) -> None:
    assert of("AnyForCausalLM", **config).total_num_kv_heads == kv_heads


def test_kv_heads_on_more_gpus_than_heads_and_over_decode_ranks() -> None:
    facts = folder("llama-3.1-8b")
    assert facts.get_num_kv_heads(16) == 1
    assert facts.get_num_kv_heads(8, dcp_size=4) == 4
    assert facts.as_draft().get_num_kv_heads(8, dcp_size=4) == 1


@pytest.mark.parametrize(
    ("config", "context"),
    [
        ({"max_position_embeddings": 4096}, 4096),
        ({"max_position_embeddings": 4096, "rope_scaling": {"rope_type": "linear", "factor": 2.0}}, 8192),
        ({"max_position_embeddings": 4096, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 4096),
        (
            {"max_position_embeddings": 4096, "rope_scaling": {"factor": 8.0, "original_max_position_embeddings": 512}},
            4096,
        ),
        ({"seq_length": 8192, "max_position_embeddings": 4096}, 8192),
        ({}, 2048),
    ],
)
def test_context_length(config: dict[str, Any], context: int) -> None:
    assert of("AnyForCausalLM", **config).context_len() == context


@pytest.mark.parametrize(
    ("name", "experts"),
    [("deepseek-v3", 256), ("qwen3-30b-a3b", 128), ("mixtral-8x7b", 8), ("gpt-oss-120b", 128), ("llama-3.1-8b", None)],
)
def test_experts(name: str, experts: int | None) -> None:
    assert folder(name).num_experts == experts


def test_what_the_draft_worker_sees() -> None:
    draft = folder("deepseek-v3").as_draft()
    assert draft.is_draft
    assert draft.architecture == "DeepseekV3ForCausalLMNextN"
    assert folder("glm-4.5-air").as_draft().architecture == "Glm4MoeForCausalLMNextN"
    assert folder("llama-3.1-8b").as_draft().architecture == "LlamaForCausalLM"
    assert folder("eagle3-draft").as_draft().architecture == "LlamaForCausalLMEagle3"


def test_a_hybrid_draft_without_recurrent_layers() -> None:
    config = {"model_type": "nemotron_h", "mtp_hybrid_override_pattern": "*E"}
    assert of("NemotronHForCausalLM", **config).is_mamba2
    assert not of("NemotronHForCausalLM", **config).as_draft().is_mamba2


def test_overrides_replace_keys_and_merge_parts() -> None:
    facts = ModelFacts(
        {"architectures": ["A"], "hidden_size": 8, "rope_scaling": {"factor": 2.0, "rope_type": "linear"}}
    )
    changed = facts.overridden_by('{"hidden_size": 16, "rope_scaling": {"factor": 4.0}}')
    assert changed.hidden_size == 16
    assert changed.hf("rope_scaling") == {"factor": 4.0, "rope_type": "linear"}
    assert facts.hidden_size == 8


@pytest.mark.parametrize("text", ["{}", "", "[1]", "{not json"])
def test_overrides_that_change_nothing(text: str) -> None:
    assert folder("llama-3.1-8b").overridden_by(text).config == folder("llama-3.1-8b").config


def test_reading_config_json_with_overrides() -> None:
    text = json.dumps({"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 1024})
    assert read(text, '{"max_position_embeddings": 2048}').context_len() == 2048
    assert read(text).context_len() == 1024


def test_shipped_facts_do_not_imply_what_every_config_has() -> None:
    shipped = ModelFacts({"architectures": ["LlamaForCausalLM"]}, complete=False, unsure=frozenset({"index_topk"}))
    assert shipped.hf("sliding_window") is None
    for name in ("hidden_size", "index_topk"):
        with pytest.raises(NotKnown):
            shipped.hf(name)
    with pytest.raises(NotKnown):
        _ = shipped.dtype
    assert ModelFacts({"architectures": ["LlamaForCausalLM"]}).hf("index_topk") is None


@pytest.mark.parametrize(
    ("config", "size"),
    [
        ({"model_type": "qwen3_next"}, 64),
        ({"model_type": "falcon_h1"}, 256),
        ({"model_type": "nemotron_h", "chunk_size": 128}, 128),
        ({"model_type": "nemotron_h"}, 256),
        ({"model_type": "lfm2"}, 1),
        ({"model_type": "falcon_h1", "mamba_chunk_size": 32}, 32),
    ],
)
def test_chunk_of_the_recurrent_kernels(config: dict[str, Any], size: int) -> None:
    assert of("AnyForCausalLM", **config).mamba_chunk_size == size
