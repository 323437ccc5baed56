"""What argument resolution reads of a model: its config.json, seen as SGLang's ModelConfig sees it.

Follows sglang/srt/configs/model_config.py (ModelConfig, 0.5.23), configs/hybrid_arch.py and utils/hf_transformers/
(get_config, get_hf_text_config, get_context_length). What a launch adds (`--context-length`, `--is-embedding`,
`--quantization`, …) is an argument of the methods here; what config.json alone decides is a property.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, Literal, cast

from spec_lsp.facts import architectures as arch
from spec_lsp.facts.known import NotKnown

AttentionArch = Literal["MLA", "MHA", "SSM"]

CORE_KEYS = frozenset({
    "architectures", "model_type", "hidden_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "vocab_size", "max_position_embeddings", "quantization_config", "dtype",
    "intermediate_size",
})  # fmt: skip
"""Keys that every config.json has: if shipped facts of a well-known model lack one, it is unknown. Any other key is one that only some
architectures have; shipped facts include it if the model's config.json does."""

ANY_OTHER = "*"
"""In a list of unsure keys: every key that the facts do not state."""

CONTEXT_LENGTH_KEYS = (
    "max_sequence_length",
    "seq_length",
    "max_seq_len",
    "model_max_length",
    "max_position_embeddings",
)

SUB_CONFIGS = ("llm_config", "language_config", "text_config")
"""Where a multimodal config keeps its language model, in the order SGLang looks (after thinker_config)."""

_PARTS = frozenset({*SUB_CONFIGS, "thinker_config", "vision_config", "audio_config", "rope_scaling", "rope_parameters"})
"""The keys that `--json-model-override-args` merges instead of replacing."""

_ABSENT = object()


class ModelFacts:
    """A model's config.json as a mapping.

    `complete` is False for shipped facts of well-known models, which hold only what resolution reads: reading a missing key of `CORE_KEYS`,
    or a key named in `unsure`, raises NotKnown instead of giving the default. `is_draft` marks the draft worker's view of the checkpoint
    (see `as_draft`).
    """

    __slots__ = ("__dict__", "complete", "config", "is_draft", "unsure")

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        complete: bool = True,
        unsure: frozenset[str] = frozenset(),
        is_draft: bool = False,
    ) -> None:
        self.config = config
        self.complete = complete
        self.unsure = unsure
        self.is_draft = is_draft

    # reading keys

    def hf(self, name: str, default: Any = None) -> Any:
        """`hf_config.<name>`: a key of config.json, else of its language model's part, else `default`."""
        value = self.config.get(name, _ABSENT)
        if value is _ABSENT and self.text is not self.config:
            value = self.text.get(name, _ABSENT)
        return self._or_default(name, value, default)

    def text_hf(self, name: str, default: Any = None) -> Any:
        """`hf_text_config.<name>`: a key of the language model's part of config.json (all of it for a text model)."""
        return self._or_default(name, self.text.get(name, _ABSENT), default)

    def _or_default(self, name: str, value: Any, default: Any) -> Any:
        if value is not _ABSENT:
            return value
        if not self.complete and (name in CORE_KEYS or name in self.unsure or ANY_OTHER in self.unsure):
            raise NotKnown(f"the model's {name}")
        return default

    def _number(self, name: str) -> int:
        """A number that ModelConfig requires; if config.json lacks it, its configuration class may have a default."""
        value = self.text_hf(name)
        if not isinstance(value, int):
            raise NotKnown(f"the model's {name}", "its config.json does not say")
        return value

    @cached_property
    def text(self) -> Mapping[str, Any]:
        """The language model's part of config.json."""
        if self.architecture.startswith("Llava") and self.architecture.endswith("ForCausalLM"):
            return self.config
        thinker = self.config.get("thinker_config")
        if isinstance(thinker, Mapping):
            inner = thinker.get("text_config")
            return inner if isinstance(inner, Mapping) else thinker
        for key in SUB_CONFIGS:
            part = self.config.get(key)
            if isinstance(part, Mapping):
                return part
        return self.config

    # what kind of model it is

    @cached_property
    def architectures(self) -> tuple[str, ...]:
        """`hf_config.architectures`."""
        value = self.config.get("architectures", _ABSENT)
        names = tuple(self._or_default("architectures", value, None) or ())
        return (arch.DRAFT_OF.get(names[0], names[0]), *names[1:]) if self.is_draft and names else names

    @cached_property
    def architecture(self) -> str:
        """The first of the architectures, which SGLang goes by; empty when the config names none."""
        return next(iter(self.architectures), "")

    def _any_of(self, names: frozenset[str]) -> bool:
        return not names.isdisjoint(self.architectures)

    @cached_property
    def model_type(self) -> str:
        """`hf_config.model_type`."""
        return self.hf("model_type") or ""

    @cached_property
    def text_model_type(self) -> str:
        return self.text_hf("model_type") or ""

    def is_generation(self, is_embedding: bool = False) -> bool:
        """ModelConfig.is_generation."""
        return not (self.is_embedding_gemma or self._any_of(arch.EMBEDDING) or is_embedding)

    @cached_property
    def is_embedding_gemma(self) -> bool:
        return self.text_model_type == "gemma3_text" and bool(self.text_hf("use_bidirectional_attention", False))

    def multimodal_enabled(self, enable_multimodal: bool | None = None) -> bool:
        """How ModelConfig interprets `--enable-multimodal` (None: not given)."""
        if enable_multimodal is not None:
            return enable_multimodal
        if self.architecture in arch.MULTIMODAL_OFF_BY_DEFAULT:
            return False
        has_both = self.hf("vision_config") is not None and self.hf("audio_config") is not None
        return self.architecture != "MiMoV2ForCausalLM" or has_both

    def is_multimodal(self, enable_multimodal: bool | None = None, language_model_only: bool = False) -> bool:
        """ModelConfig.is_multimodal."""
        if (
            language_model_only
            or self.hf("language_model_only", False)
            or not self.multimodal_enabled(enable_multimodal)
        ):
            return False
        if self._any_of(arch.MULTIMODAL) or self.text is not self.config:
            return True
        return self.model_type == "deepseek_v41" and (self.hf("vision_n_layers", 0) or 0) > 0

    @cached_property
    def is_multimodal_chunked_prefill_supported(self) -> bool:
        """ModelConfig.is_multimodal_chunked_prefill_supported, for a model that is multimodal."""
        return not self._any_of(arch.NO_MULTIMODAL_CHUNKED_PREFILL)

    @cached_property
    def is_encoder_decoder(self) -> bool:
        return self._any_of(arch.ENCODER_DECODER)

    # attention

    @cached_property
    def attention_arch(self) -> AttentionArch:
        """ModelConfig.attention_arch: latent attention (MLA), ordinary heads (MHA), or no attention at all (SSM)."""
        if self._any_of(arch.MLA):
            return "MLA"
        if self._any_of(arch.MLA_IF_KV_LORA) and self.text_hf("kv_lora_rank") is not None:
            return "MLA"
        if "DeepseekVL2ForCausalLM" in self.architectures and self.text_hf("use_mla", True):
            return "MLA"
        return "SSM" if self._any_of(arch.PURE_SSM) else "MHA"

    @cached_property
    def uses_mla(self) -> bool:
        """`use_mla_backend()`."""
        return self.attention_arch == "MLA"

    @cached_property
    def is_deepseek_dsa(self) -> bool:
        """DeepSeek sparse attention: V3.2, GLM-5, …"""
        return self.architecture in arch.DSA and self.hf("index_topk") is not None

    @cached_property
    def is_deepseek_v4(self) -> bool:
        return self.architecture in arch.DEEPSEEK_V4

    @cached_property
    def is_minimax_sparse(self) -> bool:
        return self.architecture in ("MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration")

    @cached_property
    def is_dspark_draft(self) -> bool:
        return self.architecture in ("DSparkDraftModel", "DSparkMiniMaxDraftModel")

    @cached_property
    def head_dim(self) -> int:
        """ModelConfig.head_dim, which is not always config.json's."""
        if self._any_of(arch.MLA_HEAD_DIM_256) or ("DeepseekVL2ForCausalLM" in self.architectures and self.uses_mla):
            return 256
        if "PixtralForConditionalGeneration" in self.architectures and self.uses_mla:
            return 256
        if self._any_of(
            frozenset({"MiniCPM3ForCausalLM", "BailingMoeV3ForCausalLM", "BailingMoeV3VLForConditionalGeneration"})
        ):
            return 128
        if self._any_of(
            frozenset({"KimiLinearForCausalLM", "KimiK3LinearForCausalLM", "KimiK3ForConditionalGeneration"})
        ):
            return 72
        if "SarvamMLAForCausalLM" in self.architectures:
            return self._number("qk_nope_head_dim") + self._number("qk_rope_head_dim")
        return self._text_head_dim

    @cached_property
    def _text_head_dim(self) -> int:
        value = self.text_hf("head_dim")
        if value is not None:
            return int(value)
        if self._any_of(arch.PURE_SSM):
            return 0
        return self._number("hidden_size") // self._number("num_attention_heads")

    @cached_property
    def v_head_dim(self) -> int:
        """ModelConfig.v_head_dim."""
        if self.is_deepseek_v4:
            return self.head_dim
        if "Glm4MoeForCausalLMNextN" in self.architectures:
            return self._text_head_dim
        return self.text_hf("v_head_dim") or self._text_head_dim

    @cached_property
    def swa_head_dim(self) -> int:
        value = self.text_hf("swa_head_dim")
        return self._text_head_dim if value is None else int(value)

    @cached_property
    def swa_v_head_dim(self) -> int:
        value = self.text_hf("swa_v_head_dim")
        return self.swa_head_dim if value is None else int(value)

    @cached_property
    def has_asymmetric_kv(self) -> bool:
        """Whether keys and values differ in width (ModelConfig.has_asymmetric_kv)."""
        return self.head_dim != self.v_head_dim or self.swa_head_dim != self.swa_v_head_dim

    @cached_property
    def has_attention_sinks(self) -> bool:
        """ModelConfig.has_attention_sinks."""
        if self._any_of(arch.SWA_SINKS):
            return True
        if self._any_of(arch.MIMO_V2 | {"MiMoV2MTP"}):
            return bool(
                self.text_hf("add_swa_attention_sink_bias", False)
                or self.text_hf("add_full_attention_sink_bias", False)
            )
        return bool(self.text_hf("learnable_sink", False))

    @cached_property
    def sliding_window_size(self) -> int | None:
        """ModelConfig.sliding_window_size."""
        values = (self.text_hf(key) for key in ("sliding_window_size", "sliding_window", "window_size"))
        return next((value for value in values if value is not None), None)

    def is_hybrid_swa(self, disable_hybrid_swa_memory: bool = False) -> bool:
        """ModelConfig.is_hybrid_swa: sliding-window and full layers with KV pools of their own."""
        return not disable_hybrid_swa_memory and self._has_hybrid_swa

    @cached_property
    def _has_hybrid_swa(self) -> bool:
        if not self._any_of(arch.HYBRID_SWA):
            return bool(self.text_hf("is_hybrid_swa", False))
        if "BeamForCausalLM" in self.architectures:
            return "sliding_attention" in (self.text_hf("layer_types") or ())
        return "LagunaForCausalLM" not in self.architectures or bool(self.text_hf("sliding_window", 0))

    @cached_property
    def num_attention_heads(self) -> int | None:
        """Query heads; None for a model without attention. Whisper's configuration class gives its encoder's heads this name."""
        value: int | None = self.text_hf(
            "encoder_attention_heads" if self.model_type == "whisper" else "num_attention_heads"
        )
        return value

    def get_num_attention_heads(self, tp_size: int) -> int:
        """Query heads on one GPU."""
        return max(1, (self.num_attention_heads or 0) // tp_size)

    @cached_property
    def total_num_kv_heads(self) -> int:
        """ModelConfig.get_total_num_kv_heads()."""
        falcon = self.model_type in ("falcon", "RefinedWeb", "RefinedWebModel") and self.hf(
            "new_decoder_architecture", False
        )
        if not falcon and self.text_hf("multi_query", False):
            return 1
        if self.model_type in ("mpt", "dbrx"):
            return int((self.hf("attn_config") or {}).get("kv_n_heads") or self._number("num_attention_heads"))
        if self.model_type == "nemotron-nas":
            raise NotKnown("the model's KV heads", "they differ from block to block")
        names = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")
        for name in names:
            value = self.text_hf(name)
            if value is not None:
                return int(value)
        return 0 if self.attention_arch == "SSM" else self._number("num_attention_heads")

    def get_num_kv_heads(self, tp_size: int, dcp_size: int = 1) -> int:
        """KV heads on one GPU; a draft never shares the decode context."""
        return max(1, self.total_num_kv_heads // (tp_size // (1 if self.is_draft else dcp_size)))

    # linear attention (configs/hybrid_arch.py)

    @cached_property
    def is_gdn(self) -> bool:
        """Gated delta net layers (Qwen3-Next, Qwen3.5, …): `hybrid_gdn_config`."""
        return self.text_model_type in arch.GDN_TYPES

    @cached_property
    def is_mamba2(self) -> bool:
        """State-space layers (Nemotron-H, Falcon-H1, …): `mamba2_config`."""
        if self.is_draft and self.model_type in ("nemotron_h", "nemotron_h_puzzle"):
            pattern = self.hf("mtp_hybrid_override_pattern")
            if pattern is not None and "M" not in pattern:
                return False
        if self.model_type in arch.MAMBA2_TYPES:
            return True
        if self.model_type in ("inkling_model", "inkling_mm_model"):
            return True
        kinds = (
            self.hf("layer_types") or ()
        )  # transformers 5 writes "linear_attention", which SGLang takes for the same
        return self.model_type == "granitemoehybrid" and not {"mamba", "linear_attention"}.isdisjoint(kinds)

    @cached_property
    def is_kda(self) -> bool:
        """Kimi delta attention layers: `hybrid_kda_config` (Kimi Linear, Kimi K3, Ling V3, GLM-5-Next)."""
        if "kimi_linear" in (self.model_type, self.text_model_type):
            return True
        if "bailing_hybrid" in (self.model_type, self.text_model_type):
            return self._bailing_uses_kda
        return self.model_type == "glm5_next" and not self.is_draft

    @cached_property
    def _bailing_uses_kda(self) -> bool:
        return self.text_hf("short_conv_kernel_size") is not None

    @cached_property
    def is_lightning(self) -> bool:
        """Lightning attention layers: `hybrid_lightning_config` (Ring/Ling 2.5, MiniCPM-SALA)."""
        if self.model_type == "bailing_hybrid":
            return not self._bailing_uses_kda
        return self.model_type == "minicpm_sala" and "lightning-attn" in (self.hf("mixer_types") or ())

    @cached_property
    def is_mambaish(self) -> bool:
        """Any recurrent state beside the KV cache: `mambaish_config`."""
        return self.is_mamba2 or self.is_gdn or self.is_kda or self.is_lightning or self.model_type == "gigachat35"

    @cached_property
    def mamba_chunk_size(self) -> int:
        """Tokens of a chunk of the recurrent kernels: `hf_config.mamba_chunk_size`, else that of the linear-attention kernels."""
        if self.model_type in ("nemotron_h", "nemotron_h_puzzle"):
            return int(self.hf("mamba_chunk_size") or self.hf("chunk_size") or 256)
        if self.model_type in ("lfm2", "lfm2_moe", "lfm2_vl", "zaya"):
            return 1
        default = 256 if self.model_type in ("falcon_h1", "granitemoehybrid") else 64
        return int(self.hf("mamba_chunk_size", default))

    @cached_property
    def uses_kda_attention(self) -> bool:
        """`uses_kda_attention()` of model_config.py, which looks at the layers themselves."""
        for config in (self.config, self.text):
            linear, heads, head_dim, layers = (
                self._or_default(name, config.get(name, _ABSENT), None)
                for name in ("linear_attn_config", "linear_num_heads", "linear_head_dim", "layer_types")
            )
            if isinstance(linear, Mapping) and linear.get("kda_layers"):
                return True
            if heads is not None and head_dim is not None and "linear_attention" in (layers or ()):
                return True
        return False

    # sizes

    @cached_property
    def hidden_size(self) -> int:
        return self._number("hidden_size")

    @cached_property
    def num_hidden_layers(self) -> int:
        return self._number("num_hidden_layers")

    @cached_property
    def vocab_size(self) -> int:
        return self._number("vocab_size")

    @cached_property
    def num_experts(self) -> int | None:
        """Routed experts; None for a dense model."""
        for name in ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"):
            value = self.text_hf(name)
            if value is not None:
                return int(value)
        return None

    @cached_property
    def derived_context_len(self) -> int:
        """The context length config.json allows (get_context_length)."""
        scaling = self.text_hf("rope_scaling") or self.text_hf("rope_parameters")
        factor = 1.0
        if isinstance(scaling, Mapping):
            plain = "original_max_position_embeddings" in scaling or scaling.get("rope_type") == "llama3"
            factor = 1.0 if plain else scaling.get("factor", 1)
        for key in CONTEXT_LENGTH_KEYS:
            value = self.text_hf(key)
            if value is not None:
                return int(factor * value)
        return 2048

    def context_len(self, context_length: int | None = None) -> int:
        """ModelConfig.context_len for a launch with this `--context-length` (None: not given), refusals aside."""
        if context_length is not None:
            return context_length
        if self.architecture == "EmbeddingGemma2Model":
            return min(self.derived_context_len, 8192)
        return self.derived_context_len

    # quantization

    @cached_property
    def quantization_config(self) -> Mapping[str, Any] | None:
        """`hf_config.quantization_config` as config.json has it; facts/quantization.py says what SGLang makes of it."""
        value = self.hf("quantization_config")
        return value if isinstance(value, Mapping) else None

    @cached_property
    def dtype(self) -> str | None:
        """The weights' type as config.json states it ("bfloat16"); None when it does not."""
        value: str | None = (
            self.text.get("dtype")
            or self.text.get("torch_dtype")
            or self.config.get("dtype")
            or self.config.get("torch_dtype")
        )
        if value is None:
            self._or_default("dtype", _ABSENT, None)
        return value

    # views

    def as_draft(self) -> ModelFacts:
        """The checkpoint as a draft worker sees it (ModelConfig._config_draft_model)."""
        return ModelFacts(self.config, complete=self.complete, unsure=self.unsure, is_draft=True)

    def overridden(self, overrides: Mapping[str, Any]) -> ModelFacts:
        """With the value of `--json-model-override-args` applied: a key replaces config.json's, a part (`text_config`) is merged."""
        config = dict(self.config)
        for key, value in overrides.items():
            old = config.get(key)
            part = key in _PARTS and isinstance(value, Mapping) and isinstance(old, Mapping)
            config[key] = {**cast(Mapping[str, Any], old), **value} if part else value
        return ModelFacts(config, complete=self.complete, unsure=self.unsure, is_draft=self.is_draft)

    def overridden_by(self, text: str) -> ModelFacts:
        """With the text of `--json-model-override-args` applied; unchanged if that is not a JSON object."""
        return _overridden_by(self, text)


@lru_cache(maxsize=128)
def _overridden_by(facts: ModelFacts, text: str) -> ModelFacts:
    try:
        overrides = json.loads(text)
    except ValueError:
        return facts
    return facts.overridden(overrides) if isinstance(overrides, dict) and overrides else facts
