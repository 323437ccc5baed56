"""How much memory of each GPU a model needs: its weights and its KV cache, from config.json alone.

Counted are the matrices that every model of a family has: attention, MLP, experts, embeddings. Not counted are norms, biases and routers (a
thousandth of a model), draft layers, activations and CUDA graphs; so `weights` is a lower bound of what SGLang loads. Families that share
parameters differently, or keep states beside the KV cache, raise NotKnown.

Follows the linear layers of sglang/srt/models (llama, qwen2, qwen3, mixtral, qwen2_moe, qwen3_moe, glm4_moe, deepseek_v2, minimax_m2,
gpt_oss) and the pools of mem_cache/memory_pool.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.model import ModelFacts
from spec_lsp.records import NamedTuple

DENSE = frozenset({
    "LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM",
})  # fmt: skip
PLAIN_EXPERTS = frozenset({
    "MixtralForCausalLM", "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM", "Glm4MoeForCausalLM", "MiniMaxM2ForCausalLM",
    "GptOssForCausalLM",
})  # fmt: skip
LATENT_EXPERTS = frozenset({
    "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM",
})  # fmt: skip
WIDTH_IS_INTERMEDIATE = frozenset({"MixtralForCausalLM", "MiniMaxM2ForCausalLM", "GptOssForCausalLM"})
"""MoE models whose experts' width is `intermediate_size`."""

GIB = 1024**3


class Parameters(NamedTuple):
    """Parameters of a whole model: of its linear layers (which quantization shrinks), of the routed experts among them, and of its
    embeddings (which are not quantized; input and output count once if they may be tied)."""

    linear: int
    experts: int
    embeddings: int


class Layout(NamedTuple):
    """How the launch divides the KV cache: PP ranks, and the TP ranks that share attention heads."""

    pp: int
    attention_tp: int


@lru_cache(maxsize=128)
def parameters(model: ModelFacts) -> Parameters:
    """The parameters of a model of the counted families. Raises NotKnown for others, and if config.json does not say."""
    name = model.architecture
    if name not in DENSE | PLAIN_EXPERTS | LATENT_EXPERTS or model.is_draft:
        raise NotKnown("the model's parameters", "its family is not counted")
    hidden, layers = model.hidden_size, model.num_hidden_layers
    attention = _latent_attention(model, hidden) if name in LATENT_EXPERTS else _plain_attention(model, hidden)
    experts, sparse = 0, 0
    if name not in DENSE:
        sparse = layers - _dense_layers(model)
        experts = sparse * 3 * hidden * _expert_width(model) * _routed(model)
    shared = 3 * hidden * _shared_width(model) * sparse
    dense = 3 * hidden * _int(model, "intermediate_size") * (layers - sparse) if layers > sparse else 0
    return Parameters(attention * layers + experts + shared + dense, experts, model.vocab_size * hidden)


def _int(model: ModelFacts, key: str) -> int:
    value = model.text_hf(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise NotKnown(f"the model's {key}", "its config.json does not say")
    return value


def _plain_attention(model: ModelFacts, hidden: int) -> int:
    heads, kv_heads = _int(model, "num_attention_heads"), model.total_num_kv_heads
    return 2 * hidden * (heads + kv_heads) * model.head_dim


def _latent_attention(model: ModelFacts, hidden: int) -> int:
    heads, latent = _int(model, "num_attention_heads"), _int(model, "kv_lora_rank")
    nope, rope, value = (_int(model, key) for key in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    queries = model.text_hf("q_lora_rank")
    query = hidden * queries + queries * heads * (nope + rope) if queries else hidden * heads * (nope + rope)
    return int(query + hidden * (latent + rope) + latent * heads * (nope + value) + heads * value * hidden)


def _expert_width(model: ModelFacts) -> int:
    return _int(model, "intermediate_size" if model.architecture in WIDTH_IS_INTERMEDIATE else "moe_intermediate_size")


def _routed(model: ModelFacts) -> int:
    if model.num_experts is None:
        raise NotKnown("the model's experts", "its config.json does not say")
    return model.num_experts


def _dense_layers(model: ModelFacts) -> int:
    if model.text_hf("decoder_sparse_step") not in (None, 1) or model.text_hf("mlp_only_layers"):
        raise NotKnown("the model's dense layers", "they lie among the others")
    if model.text_hf("moe_layer_freq") not in (None, 1):
        raise NotKnown("the model's dense layers", "they lie among the others")
    return int(model.text_hf("first_k_dense_replace") or 0)


def _shared_width(model: ModelFacts) -> int:
    width = model.text_hf("shared_expert_intermediate_size")
    if isinstance(width, int):
        return width
    shared = model.text_hf("n_shared_experts")
    return shared * _expert_width(model) if isinstance(shared, int) and model.architecture not in DENSE else 0


# --- bytes ------------------------------------------------------------------------------------------------------------

DTYPE_BYTES = {"float16": 2.0, "bfloat16": 2.0, "float32": 4.0}
METHOD_BYTES = {
    "fp8": 1.0, "modelopt_fp8": 1.0, "w8a8_fp8": 1.0, "w8a8_int8": 1.0, "blockwise_int8": 1.0, "mxfp8": 1.0,
    "mxfp4": 0.5, "modelopt_fp4": 0.5, "nvfp4_online": 0.5, "w4afp8": 0.5, "awq": 0.5, "awq_marlin": 0.5, "petit_nvfp4": 0.5,
    "bitsandbytes": 0.5,
}  # fmt: skip
"""Bytes for each parameter of a linear layer (scales, a few per cent more, are not counted)."""


def bytes_of(method: str | None, dtype: str, config: Mapping[str, Any] | None) -> float:
    """Bytes of a linear layer's parameter in this quantization. Raises NotKnown for methods that differ from layer to layer."""
    if method is None:
        if dtype not in DTYPE_BYTES:
            raise NotKnown("the weights' type", dtype)
        return DTYPE_BYTES[dtype]
    if method in ("gptq", "gptq_marlin", "moe_wna16", "auto-round"):
        bits = (config or {}).get("bits")
        if isinstance(bits, int):
            return bits / 8
    if method == "compressed-tensors":
        groups = (config or {}).get("config_groups")
        bits_of = [(g.get("weights") or {}).get("num_bits") for g in (groups or {}).values()]
        known = [bits for bits in bits_of if isinstance(bits, int)]
        if known and len(known) == len(bits_of):
            return min(known) / 8
    if method in METHOD_BYTES:
        return METHOD_BYTES[method]
    raise NotKnown("the weights' type", f"{method} is not counted")


def quantizes_experts_only(method: str | None) -> bool:
    """Whether only routed experts are quantized, as in gpt-oss."""
    return method == "mxfp4"


def weights(model: ModelFacts, tp: int, pp: int, per_parameter: float, dtype: str, experts_only: bool = False) -> int:
    """The least bytes of weights on the fullest GPU: linear layers are divided by TP × PP, the embeddings by TP."""
    counted = parameters(model)
    full = DTYPE_BYTES.get(dtype, 2.0)
    shrunk = counted.experts if experts_only else counted.linear
    body = shrunk * per_parameter + (counted.linear - shrunk) * full
    return int(body / (tp * pp) + counted.embeddings * full / tp)


KV_BYTES = {"auto": 2.0, "bfloat16": 2.0, "bf16": 2.0, "float16": 2.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0}


def kv_per_token(model: ModelFacts, layout: Layout, kv_dtype: str) -> int:
    """Bytes of KV cache for a token on a GPU. Raises NotKnown if layers keep less (a sliding window) or other states."""
    if kv_dtype not in KV_BYTES:
        raise NotKnown("the KV cache's type", kv_dtype)
    if model.is_mambaish or model.is_hybrid_swa() or model.is_deepseek_dsa or model.is_deepseek_v4:
        raise NotKnown("the KV cache's size", "layers of this model keep different caches")
    layers = -(-model.num_hidden_layers // layout.pp)
    if model.uses_mla:
        width = _int(model, "kv_lora_rank") + _int(model, "qk_rope_head_dim")
    else:
        width = 2 * max(1, model.total_num_kv_heads // layout.attention_tp) * model.head_dim
    return int(layers * width * KV_BYTES[kv_dtype])
