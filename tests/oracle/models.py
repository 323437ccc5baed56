"""Models beside those that tests/models describes by hand: the architecture as transformers itself configures it by default.

`python -m tests.oracle models` writes them. Only a config.json each; every key that SGLang could read a default of stands in it, so that
it and spec-lsp read the same.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from tests.oracle.releases import Oracle
from tests.truth.score import MODELS

KINDS = {
    "bert": ("bert", "BertModel"),
    "command-r": ("cohere", "CohereForCausalLM"),
    "deepseek-v4": ("deepseek_v4", "DeepseekV4ForCausalLM"),
    "ernie-4.5-moe": ("ernie4_5_moe", "Ernie4_5_MoeForCausalLM"),
    "exaone-4": ("exaone4", "Exaone4ForCausalLM"),
    "falcon-h1": ("falcon_h1", "FalconH1ForCausalLM"),
    "gemma-3": ("gemma3", "Gemma3ForConditionalGeneration"),
    "glm-4": ("glm4", "Glm4ForCausalLM"),
    "glm-4.7-flash": ("glm4_moe_lite", "Glm4MoeLiteForCausalLM"),
    "glm-5": ("glm_moe_dsa", "GlmMoeDsaForCausalLM"),
    "granite": ("granite", "GraniteForCausalLM"),
    "granite-hybrid": ("granitemoehybrid", "GraniteMoeHybridForCausalLM"),
    "lfm2": ("lfm2", "Lfm2ForCausalLM"),
    "llama-4": ("llama4", "Llama4ForConditionalGeneration"),
    "mistral-small-3": ("mistral3", "Mistral3ForConditionalGeneration"),
    "olmo-2": ("olmo2", "Olmo2ForCausalLM"),
    "phi-3": ("phi3", "Phi3ForCausalLM"),
    "qwen2-moe": ("qwen2_moe", "Qwen2MoeForCausalLM"),
    "qwen2.5-vl": ("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration"),
    "qwen3-vl": ("qwen3_vl", "Qwen3VLForConditionalGeneration"),
    "qwen3-vl-moe": ("qwen3_vl_moe", "Qwen3VLMoeForConditionalGeneration"),
    "qwen3.5": ("qwen3_5", "Qwen3_5ForConditionalGeneration"),
    "qwen3.5-moe": ("qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration"),
    "starcoder-2": ("starcoder2", "Starcoder2ForCausalLM"),
}
"""Folder: (model_type, architecture)."""

SCRIPT = """
import json, sys
from transformers import CONFIG_MAPPING
found = {}
for name, (kind, architecture) in json.loads(sys.argv[1]).items():
    try:
        found[name] = {**json.loads(CONFIG_MAPPING[kind]().to_json_string(use_diff=False)), "architectures": [architecture]}
    except Exception as error:
        print(name, type(error).__name__, error, file=sys.stderr)
json.dump(found, sys.stdout)
"""
NOT_ARCHITECTURE = frozenset((
    "id2label", "label2id", "problem_type", "return_dict", "output_hidden_states", "output_attentions", "chunk_size_feed_forward",
    "is_encoder_decoder", "_name_or_path", "use_cache", "transformers_version", "initializer_range", "bos_token_id", "eos_token_id",
    "pad_token_id", "attention_dropout", "resid_pdrop", "embd_pdrop",
))  # fmt: skip

UNSET = (("architectures", None), ("dtype", None))


def write_models(oracle: Oracle) -> None:
    """Write tests/models/NAME/config.json for each of KINDS that the environment's transformers can configure by default."""
    command = [str(oracle.python), "-c", SCRIPT, json.dumps(KINDS)]
    made: Mapping[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    for name, config in made.items():
        folder = MODELS / name
        folder.mkdir(exist_ok=True)
        config = {**_architecture(config), "dtype": "bfloat16", "torch_dtype": "bfloat16"}
        (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")


def _architecture(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a configuration describes the model."""
    kept = {k: v for k, v in config.items() if k not in NOT_ARCHITECTURE and (k, v) not in UNSET}
    return {k: _architecture(v) if isinstance(v, Mapping) else v for k, v in kept.items()}
