"""The table of well-known models: it can be read, it agrees with the config.json files of tests/models, it finds what people write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.model import ANY_OTHER, CORE_KEYS, ModelFacts
from spec_lsp.facts.well_known import find_model, ids

MODELS = Path(__file__).parent.parent / "models"
DATA = Path(__file__).parents[2] / "spec_lsp/facts/data/well_known.json"
TABLE: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(DATA.read_text())

FOLDERS = {
    "deepseek-v2-lite": "deepseek-ai/DeepSeek-V2-Lite",
    "deepseek-v3": "deepseek-ai/DeepSeek-V3",
    "deepseek-v3.2": "deepseek-ai/DeepSeek-V3.2",
    "gemma-2-9b": "google/gemma-2-9b-it",
    "glm-4.5-air": "zai-org/GLM-4.5-Air",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "kimi-k2": "moonshotai/Kimi-K2-Instruct",
    "kimi-linear-48b": "moonshotai/Kimi-Linear-48B-A3B-Instruct",
    "llama-2-7b": "meta-llama/Llama-2-7b-chat-hf",
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B-Instruct",
    "llama-3.3-70b": "meta-llama/Llama-3.3-70B-Instruct",
    "minimax-m2": "MiniMaxAI/MiniMax-M2",
    "mistral-7b": "mistralai/Mistral-7B-Instruct-v0.3",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "nemotron-h-8b": "nvidia/Nemotron-H-8B-Base-8K",
    "qwen2.5-7b": "Qwen/Qwen2.5-7B-Instruct",
    "qwen3-0.6b": "Qwen/Qwen3-0.6B",
    "qwen3-235b-fp8": "Qwen/Qwen3-235B-A22B-FP8",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
    "qwen3-8b": "Qwen/Qwen3-8B",
    "qwen3-next-80b": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "ring-2.5-1t": "inclusionAI/Ring-2.5-1T",
}
"""The folders of tests/models by the checkpoint they were made after; the two drafts were made up."""

DETAILS = frozenset({"rope_scaling", "quantization_config", "num_nextn_predict_layers", "tie_word_embeddings"})
"""Keys the folders simplify."""


def folder(name: str) -> ModelFacts:
    return ModelFacts(json.loads((MODELS / name / "config.json").read_text()))


def known(model_id: str) -> ModelFacts:
    found = find_model(model_id)
    assert found is not None, model_id
    return found


def test_there_are_enough() -> None:
    assert len(ids()) >= 150
    assert len({model_id.lower() for model_id in ids()}) == len(ids())


@pytest.mark.parametrize("model_id", ids())
def test_every_model_has_an_architecture(model_id: str) -> None:
    facts = known(model_id)
    if "architectures" not in facts.unsure:
        assert facts.architecture
    if "architectures" not in facts.unsure and ANY_OTHER not in facts.unsure:
        assert facts.model_type
        assert facts.attention_arch in ("MLA", "MHA", "SSM")


@pytest.mark.parametrize("model_id", ids())
def test_sizes_fit_together(model_id: str) -> None:
    """Where the numbers are there they are those of a real model: heads divide evenly, sizes are multiples of 8."""
    config = known(model_id).config
    heads, kv_heads = config.get("num_attention_heads"), config.get("num_key_value_heads")
    if heads and kv_heads:
        assert heads % kv_heads == 0
    for key in ("hidden_size", "intermediate_size", "moe_intermediate_size", "head_dim", "vocab_size"):
        assert (config.get(key) or 0) % (2 if key == "vocab_size" else 8) == 0, key


def test_every_line_is_like_a_family_or_a_model() -> None:
    models = {model_id.lower() for model_id in ids()}
    for line, entry in TABLE["models"].items():
        like = str(entry.get("like", "llama"))
        assert like in TABLE["families"] or like.lower() in models, line


def test_every_architecture_of_the_folders_is_there() -> None:
    architectures = {known(i).architecture for i in ids() if "architectures" not in known(i).unsure}
    assert {folder(path.name).architecture for path in MODELS.iterdir()} <= architectures


@pytest.mark.parametrize(("name", "model_id"), FOLDERS.items())
def test_agrees_with_the_folder(name: str, model_id: str) -> None:
    real, shipped = folder(name), known(model_id)
    expected = {**real.config, "dtype": shipped.config.get("dtype")}  # tests/models has everything in bfloat16
    stated = {key: value for key, value in shipped.config.items() if key not in DETAILS and value is not None}
    assert stated == {key: expected.get(key) for key in stated}
    assert shipped.config.get("head_dim") in (None, real.config.get("head_dim"))
    assert {key for key in CORE_KEYS if key not in shipped.config} <= {
        "head_dim", "quantization_config", "max_position_embeddings", "intermediate_size",
    } | shipped.unsure  # fmt: skip


@pytest.mark.parametrize(
    ("written", "model_id"),
    [
        ("qwen/qwen3-8b", "Qwen/Qwen3-8B"),
        (" Qwen/Qwen3-8B/ ", "Qwen/Qwen3-8B"),
        ("Qwen3-8B", "Qwen/Qwen3-8B"),
        ("/data/models/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("unsloth/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("models--Qwen--Qwen3-8B", "Qwen/Qwen3-8B"),
        ("/root/.cache/huggingface/hub/models--openai--gpt-oss-20b/snapshots/0123abc", "openai/gpt-oss-20b"),
        ("/root/.cache/modelscope/hub/models/Qwen/Qwen2___5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("/models/Qwen_Qwen3-8B", "Qwen/Qwen3-8B"),
        ("/models/openai--gpt-oss-20b", "openai/gpt-oss-20b"),
        ("/models/llama3.1_8b_instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("Qwen/Qwen-3-8B", "Qwen/Qwen3-8B"),
        ("meta-llama/Llama-3-8B", "meta-llama/Meta-Llama-3-8B"),
    ],
)
def test_finds_what_people_write(written: str, model_id: str) -> None:
    assert known(written).architectures == known(model_id).architectures
    assert known(written).hidden_size == known(model_id).hidden_size


@pytest.mark.parametrize(
    "written", ["", "/", "Qwen/Qwen9-8B", "Qwen3-8B-GGUF", "my/model", "llama", "OpenGVLab/InternVL2-8B-hf"]
)
def test_does_not_guess(written: str) -> None:
    assert find_model(written) is None


def test_a_copy_may_be_quantized_otherwise() -> None:
    assert known("Qwen/Qwen3-8B").quantization_config is None
    assert known("Qwen/Qwen3-8B-FP8").quantization_config is not None
    with pytest.raises(NotKnown):
        _ = known("mirror/Qwen3-8B").quantization_config


def test_what_a_line_leaves_open_is_not_known() -> None:
    later = known("zai-org/GLM-5.3")
    assert later.architecture == "GlmMoeDsaForCausalLM"
    for read in ("num_experts", "num_hidden_layers", "quantization_config"):
        with pytest.raises(NotKnown):
            getattr(later, read)


def test_what_a_line_does_not_state_is_not_known_where_it_says_so() -> None:
    vision = known("Qwen/Qwen3-ASR-0.6B")
    assert vision.architecture == "Qwen3ASRForConditionalGeneration"
    for read in ("num_experts", "hidden_size", "uses_kda_attention", "sliding_window_size", "quantization_config"):
        with pytest.raises(NotKnown):
            getattr(vision, read)


def test_null_takes_an_inherited_key_back() -> None:
    linear = known("moonshotai/Kimi-Linear-48B-A3B-Instruct")
    assert linear.hf("n_routed_experts") is None
    assert linear.num_experts == 256


@pytest.mark.parametrize(
    ("copy", "model"),
    [
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B-Instruct"),
        ("AxionML/Qwen3-8B-NVFP4", "Qwen/Qwen3-8B"),
        ("cyankiwi/Qwen3-8B-AWQ-4bit", "Qwen/Qwen3-8B"),
        ("RedHatAI/Qwen3-8B-quantized.w8a8", "Qwen/Qwen3-8B"),
        ("/models/Qwen3-8B-FP8-dynamic", "Qwen/Qwen3-8B"),
        ("TheBloke/Llama-2-70B-Chat-AWQ", "meta-llama/Llama-2-70b-chat-hf"),
        ("cognitivecomputations/DeepSeek-R1-AWQ", "deepseek-ai/DeepSeek-R1"),
        ("Eco-Tech/Qwen3.5-122B-A10B-w8a8-mtp", "Qwen/Qwen3.5-122B-A10B"),
        ("Eco-Tech/Qwen3-235B-A22B-w8a8-QuaRot", "Qwen/Qwen3-235B-A22B"),
        ("Eco-Tech/GLM-5.2-W8A8C8", "zai-org/GLM-5.2"),
        ("google/gemma-3-4b-it-qat-w4a16-ct", "google/gemma-3-4b-it"),
        ("mlx-community/Qwen3-8B-MLX-4bit-DWQ", "Qwen/Qwen3-8B"),
        ("nvidia/DeepSeek-R1-0528-FP4-v2", "deepseek-ai/DeepSeek-R1-0528"),
        ("novita/Deepseek-V3-0324-W4AFP8", "deepseek-ai/DeepSeek-V3-0324"),
        ("amd/Llama-3.3-70B-Instruct-MXFP4-Preview", "meta-llama/Llama-3.3-70B-Instruct"),
        ("RedHatAI/Qwen3-8B-NVFP4A16", "Qwen/Qwen3-8B"),
        ("ModelCloud/Qwen3-8B-gptqmodel-4bit", "Qwen/Qwen3-8B"),
        ("turboderp/Qwen3-8B-exl3-4.0bpw", "Qwen/Qwen3-8B"),
    ],
)
def test_a_quantized_copy_is_built_like_its_model(copy: str, model: str) -> None:
    """What quantizing changes is not known of it."""
    found, original = known(copy), known(model)
    for key in ("architecture", "hidden_size", "num_attention_heads", "num_hidden_layers"):
        assert getattr(found, key) == getattr(original, key)
    for key in ("quantization_config", "dtype"):
        with pytest.raises(NotKnown):
            found.hf(key)


SIBLINGS = [
    ("microsoft/Phi-4-reasoning", "microsoft/phi-4"),
    ("meta-llama/Llama-4-Maverick-17B-128E", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"),
    ("nvidia/NVIDIA-Nemotron-Nano-9B-v2-Base-FP8", "nvidia/NVIDIA-Nemotron-Nano-9B-v2"),
    ("me/Meta-Llama-3.1-8B-Chat", "meta-llama/Llama-3.1-8B"),
    ("me/qwen3_8b-sft-grpo", "Qwen/Qwen3-8B"),
    ("AEON-7/Gemma-4-26B-A4B-it-Uncensored-NVFP4", "google/gemma-4-26B-A4B"),
]


@pytest.mark.parametrize(("name", "model"), SIBLINGS)
def test_a_model_trained_on_has_the_layers_of_its_siblings(name: str, model: str) -> None:
    """Training changes the vocabulary and how long texts are: that is not known of it."""
    found, original = known(name), known(model)
    assert found.architecture == original.architecture
    for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"):
        assert found.config.get(key, original.config.get(key)) == original.config.get(key)
    for key in ("vocab_size", "max_position_embeddings", "quantization_config", "dtype"):
        with pytest.raises(NotKnown):
            found.text_hf(key)


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("Qwen/Qwen2.5-VL-32B-Instruct", "Qwen2_5_VLForConditionalGeneration"),
        ("Qwen/Qwen2-1.5B-Instruct", "Qwen2ForCausalLM"),
        ("deepseek-ai/DeepSeek-V4-Pro-0813", "DeepseekV4ForCausalLM"),
    ],
)
def test_another_size_or_date_of_a_series_has_its_architecture_and_nothing_else_is_known_of_it(
    name: str, architecture: str
) -> None:
    found = known(name)
    assert found.config == {"architectures": [architecture]}
    with pytest.raises(NotKnown):
        _ = found.hidden_size


@pytest.mark.parametrize(
    "name", ["google/gemma-3-2b-it", "zai-org/glm-4-9b-chat-1m", "Qwen/Qwen3-Coder-8B", "acme/Phi-4-9B"]
)
def test_a_series_whose_models_differ_says_nothing(name: str) -> None:
    """gemma-3-1b is text alone, larger ones see; of the others one size is known, or none."""
    assert find_model(name) is None


@pytest.mark.parametrize("name", ["me_qwen3-8b", "qwen_mine", "/models/llama_3", "nvidia-8b", "Qwen_Qwen9-8B"])
def test_what_is_no_name_retyped(name: str) -> None:
    assert find_model(name) is None


def test_a_number_is_the_same_only_where_its_parts_are() -> None:
    """Qwen2-57B and Qwen2.5-7B have the same digits."""
    assert known("qwen2.5_7b").hidden_size == known("Qwen/Qwen2.5-7B").hidden_size
    assert find_model("qwen25-7b") is None


@pytest.mark.parametrize("name", ["unsloth/Qwen3-8B-GGUF", "Qwen3-8B-draft", "me/AWQ", "-awq", "Qwen9-80B-AWQ"])
def test_what_is_no_quantized_copy(name: str) -> None:
    assert find_model(name) is None


def test_new_lines_say_where_they_come_from() -> None:
    assert all(isinstance(e["from"], str) and e["from"] for e in TABLE["models"].values() if "from" in e)
