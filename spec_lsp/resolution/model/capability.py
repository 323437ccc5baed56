"""What a model's nature rules out at the end: encoders, embeddings, multimodal models without chunked prefill.

Follows model_hook.py:handle_model_capability_adjustments and configs/embedding_model_spec.py.

Left out: checkpoints with a joint schema head or a pointer head, which only files beside config.json show.
"""

from __future__ import annotations

from typing import Any

from spec_lsp.resolution import cuda_graph
from spec_lsp.resolution.engine import Config, Handler, Refusal
from spec_lsp.resolution.model.deepseek_v4 import is_v41

ENCODERS = frozenset({
    "BertModel", "CLIPModel", "Contriever", "LlamaEmbeddingModel", "MistralModel", "XLMRobertaModel", "EmbeddingGemma2Model",
})  # fmt: skip
"""Architectures that make embeddings and nothing else."""


def _is_hrm_text(c: Config) -> bool:
    named = c.model.model_type == "hrm_text" or "HrmTextForCausalLM" in c.model.architectures
    return named and bool(c.model.hf("prefix_lm", True))


_hrm = Handler("overrides.py:_hrm_text_attention_force", since="0.5.16", when=_is_hrm_text)


@_hrm.adjusts(
    "attention_backend", "chunked_prefill_size", "disable_radix_cache", "disable_cuda_graph", "cuda_graph_config"
)
def attend_both_ways(c: Config) -> None:
    """This model reads its prompt both ways, which only triton does, in one piece and without a cached prefix."""
    c.set(attention_backend="triton", chunked_prefill_size=-1, disable_radix_cache=True, disable_cuda_graph=True)
    cuda_graph.disable(c, cuda_graph.DECODE)
    cuda_graph.disable(c, cuda_graph.PREFILL)


_embedding = Handler("model_hook.py:handle_model_capability_adjustments", since="0.5.18")


def _is_classifier(c: Config) -> bool:
    return any("ForSequenceClassification" in name for name in c.model.architectures)


@_embedding.adjusts("is_embedding")
def serve_embeddings(c: Config) -> None:
    """This architecture makes embeddings and nothing else."""
    if c.model.is_embedding_gemma or (not ENCODERS.isdisjoint(c.model.architectures) and not _is_classifier(c)):
        c.set(is_embedding=True)


@_embedding.adjusts("disable_radix_cache", "chunked_prefill_size")
def encode_in_one_piece(c: Config) -> None:
    """An encoder reads every token of the prompt both ways, so it takes the prompt whole and reuses nothing of it."""
    if c.model.is_embedding_gemma or "EmbeddingGemma2Model" in c.model.architectures:
        c.set(disable_radix_cache=True, chunked_prefill_size=-1)


_embedding_gemma = Handler(
    "model_hook.py:handle_model_capability_adjustments", since="0.5.18", when=lambda c: c.model.is_embedding_gemma
)


@_embedding_gemma.adjusts("enable_tokenizer_batch_encode", "prefill_only_disable_kv_cache", "cuda_graph_config")
def encode_in_batches(c: Config) -> None:
    """EmbeddingGemma encodes whole batches in one captured prefill, on Hopper and SM100 without a KV cache."""
    c.set(enable_tokenizer_batch_encode=True)
    requested = c.prefill_attention_backend or c.attention_backend
    if (c.gpu.sm90 or c.gpu.sm100) and requested in (None, "fa3", "fa4"):
        c.set(prefill_only_disable_kv_cache=True)
    cuda_graph.disable(c, cuda_graph.DECODE)
    if not c.gpu.is_cuda:
        cuda_graph.disable(c, cuda_graph.PREFILL)
    elif cuda_graph.backend_of(c, cuda_graph.PREFILL) != cuda_graph.DISABLED:
        _capture_whole_batches(c)


def _capture_whole_batches(c: Config) -> None:
    changes: dict[str, Any] = {"backend": cuda_graph.BREAKABLE}
    if not cuda_graph.is_locked(c, cuda_graph.PREFILL, "max_bs"):
        largest = max(
            c.cuda_graph_config[cuda_graph.PREFILL]["max_bs"] or 0, c.model.context_len(c.context_length), 16384
        )
        changes["max_bs"] = largest
        if not cuda_graph.is_locked(c, cuda_graph.PREFILL, "bs"):
            changes["bs"] = cuda_graph.prefill_sizes(largest)
    c.set(cuda_graph_config=cuda_graph.changed(c, cuda_graph.PREFILL, **changes))


_multimodal = Handler("model_hook.py:handle_model_capability_adjustments")


@_multimodal.adjusts("chunked_prefill_size")
def take_images_whole(c: Config) -> None:
    """This multimodal model cannot take a prompt in chunks."""
    if not c.model.is_multimodal_chunked_prefill_supported and c.model.is_multimodal(
        c.enable_multimodal, bool(c.language_model_only)
    ):
        c.set(chunked_prefill_size=-1)


_replay = Handler("model_hook.py:handle_model_capability_adjustments", since="0.5.23")


@_replay.refuses(
    "SPC872", "encoder-replay-of-other-model", raises="ValueError",
    bad="--enable-encoder-swa-bounded-replay", good="--chunked-prefill-size 4096",
)  # fmt: skip
def encoder_replay_of_other_model(c: Config) -> Refusal | None:
    """Replaying encoder windows is for DeepSeek V4.1.

    Leave `--enable-encoder-swa-bounded-replay` out for other models.
    """
    if not c.enable_encoder_swa_bounded_replay or is_v41(c):
        return None
    return Refusal(
        at="enable_encoder_swa_bounded_replay",
        related_fields=("model_path",),
        message="`--enable-encoder-swa-bounded-replay` is refused: only DeepSeek V4.1 has such windows.",
    )


passes = (_hrm, _embedding, _embedding_gemma, _multimodal, _replay)
