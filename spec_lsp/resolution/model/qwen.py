"""Qwen3 MoE, Qwen3-Next, Qwen3.5, Qwen3-VL and Qwen4-Exp.

Follows arg_groups/model_overrides/qwen3_5.py, qwen3_moe.py, qwen3_vl.py and qwen4_exp.py.

Left out: malformed compressed indexes of Qwen4-Exp (layers/attention/qsa), which no checkpoint has; what SGLang sets in the
environment for Qwen3-VL on Hopper.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.facts import quantization
from spec_lsp.resolution.attention import default_backend
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.model.config import model_dtype, quant_method, quantization_unset
from spec_lsp.resolution.model.hybrid import extra_buffer

HYBRID = {
    "Qwen3NextForCausalLM": "", "Qwen3_5MoeForConditionalGeneration": "", "Qwen3_5ForConditionalGeneration": "",
    "InternS2PreviewForConditionalGeneration": "", "InternS2MobiusForConditionalGeneration": "0.5.18",
}  # fmt: skip
MOE = {
    "Qwen3MoeForCausalLM": "", "Qwen3VLMoeForConditionalGeneration": "", "Qwen3NextForCausalLM": "",
    "Qwen3_5MoeForConditionalGeneration": "0.5.9", "Qwen3_5ForConditionalGeneration": "0.5.9",
    "InternS2PreviewForConditionalGeneration": "0.5.12", "Qwen4ExpForConditionalGeneration": "0.5.20",
}  # fmt: skip
"""The MoE models of the family, with the release that added each (empty: 0.5.6 or before)."""

# --- attention of the hybrids on SM100 ---------------------------------------------------------------------------------


def _is_hybrid(c: Config) -> bool:
    since = HYBRID.get(c.model.architecture)
    return since is not None and (not since or c.since(since))


_hybrid = Handler("qwen3_5.py:_qwen3_5_hybrid_overrides", since="0.5.14", when=lambda c: _is_hybrid(c) and c.gpu.sm100)


@_hybrid.adjusts("attention_backend", "page_size")
def choose_hybrid_backend(c: Config) -> None:
    """On SM100 a hybrid model runs on trtllm_mha and pages of 64 tokens where its radix cache allows pages, else on triton."""
    if c.attention_backend is None:
        _choose_hybrid_backend(c)


def _choose_hybrid_backend(c: Config) -> None:
    single_tokens = not extra_buffer(c) and not c.disable_radix_cache and c.speculative_algorithm is None
    if default_backend(c) == "trtllm_mha" and not single_tokens:
        c.set(attention_backend="trtllm_mha", page_size=64)
    else:
        c.set(attention_backend="triton", page_size=1)


# --- experts on SM100 --------------------------------------------------------------------------------------------------


def _is_moe(c: Config) -> bool:
    since = MOE.get(c.model.architecture)
    return since is not None and (not since or c.since(since))


_moe = Handler("qwen3_moe.py:_qwen3_moe_family_overrides", when=lambda c: _is_moe(c) and c.gpu.sm100)


def _effective_quantization(c: Config) -> str | None:
    asked: str | None = c.quantization
    return asked if asked is not None or quantization_unset(c) else quant_method(c)


def _has_w4a16_experts(c: Config) -> bool:
    """Whether a ModelOpt checkpoint of mixed precision keeps its experts in FP4 with 16-bit activations."""
    if c.before("0.5.20") or _effective_quantization(c) != "modelopt_mixed":
        return False
    config = quantization.config_json(c.model, c.release) or {}
    layers = config.get("quantized_layers") or {}
    found = (info for name, info in layers.items() if ".experts" in name and isinstance(info, Mapping))
    return any(str(info.get("quant_algo", "")).upper() == "W4A16_NVFP4" for info in found)


@_moe.refuses(
    "SPC835", "w4a16-experts-off-marlin", raises="ValueError", since="0.5.20",
)  # fmt: skip
def w4a16_experts_off_marlin(c: Config) -> Refusal | None:
    """Experts in FP4 with 16-bit activations run on Marlin only.

    The checkpoint mixes precisions, and its experts are of the W4A16 kind, for which FlashInfer's TensorRT-LLM runner has no
    kernel. Leave `--moe-runner-backend` out. (`flashinfer_cutedsl` works with `SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16=1`.)
    """
    if not _has_w4a16_experts(c) or c.moe_runner_backend in ("auto", "marlin"):
        return None
    by_cutedsl = c.moe_runner_backend == "flashinfer_cutedsl" and c.moe_a2a_backend in ("none", "flashinfer")
    if by_cutedsl and c.env.flag("SGLANG_FLASHINFER_CUTEDSL_NVFP4_W4A16"):
        return None
    return Refusal(
        at="moe_runner_backend",
        related_fields=("model_path",),
        message=f"{c.shown('moe_runner_backend')} is refused: this checkpoint's experts are FP4 with 16-bit activations, which run "
        "on Marlin.",
        fixes=(dropping("moe_runner_backend"), setting(moe_runner_backend="marlin")),
    )


@_moe.adjusts("moe_runner_backend")
def choose_qwen_moe_runner(c: Config) -> None:
    """On SM100 the FlashInfer TensorRT-LLM kernels run Qwen's experts fastest."""
    if c.moe_runner_backend != "auto":
        return
    if _has_w4a16_experts(c):
        c.set(moe_runner_backend="marlin")
        return
    mixed = ("modelopt_mixed",) if c.since("0.5.20") else ()
    unquantized = (None,) if c.since("0.5.8") else ()
    if c.moe_a2a_backend == "none" and _effective_quantization(c) in ("fp8", "modelopt_fp4", *unquantized, *mixed):
        c.set(moe_runner_backend="flashinfer_trtllm")


@_moe.adjusts("quantization")
def take_qwen_quantization(c: Config) -> None:
    """The checkpoint's own quantization, which decides the MoE kernels on SM100."""
    if c.quantization is None and not quantization_unset(c) and quant_method(c) is not None:
        c.set(quantization=quant_method(c))


# --- Qwen3-VL ----------------------------------------------------------------------------------------------------------

_vl_rocm = Handler(
    "qwen3_vl.py:_qwen3vl_overrides",
    since="0.5.10",
    when=lambda c: c.model.architecture == "Qwen3VLForConditionalGeneration" and c.gpu.is_hip,
)


@_vl_rocm.adjusts("page_size")
def page_for_unified_aiter(c: Config) -> None:
    """aiter's unified attention works on KV pages of 16 tokens."""
    if c.page_size is None and c.env.flag("SGLANG_USE_AITER_UNIFIED_ATTN"):
        c.set(page_size=16)


def _large_hopper_vl(c: Config) -> bool:
    """`large_hopper_qwen3_vl_model_type`: Qwen3-VL, served with images, on a Hopper of 60 GB or more."""
    names = ("Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration")
    if c.model.architecture not in names or not c.gpu.sm90 or c.gpu.memory < 60 * 1024:
        return False
    images = c.model.is_multimodal(c.enable_multimodal, bool(c.language_model_only))
    return images and c.model.model_type in ("qwen3_vl", "qwen3_vl_moe")


_vl = Handler("qwen3_vl.py:_qwen3vl_hopper_serving_overrides", since="0.5.20", when=_large_hopper_vl)


@_vl.adjusts("mm_preprocess_cache_size_mb", "mm_feature_transport")
def stream_images(c: Config) -> None:
    """Images are taken as seen once: they go from process to process by CUDA IPC and are not kept."""
    retained = (c.mm_preprocess_cache_size_mb or 0) > 0 or c.env.number("SGLANG_VLM_CACHE_SIZE_MB", 0) > 0
    if c.mm_preprocess_cache_size_mb is None:
        c.set(mm_preprocess_cache_size_mb=0)
    if c.mm_feature_transport is None and c.nnodes == 1 and not retained:
        c.set(mm_feature_transport="cuda_ipc")


@_vl.adjusts("radix_eviction_policy", "prefill_decode_interval", "decode_attention_backend")
def serve_images_on_hopper(c: Config) -> None:
    """Settings measured to serve Qwen3-VL best on a large Hopper GPU."""
    if c.radix_eviction_policy == "lru" and not c.given("radix_eviction_policy"):
        c.set(radix_eviction_policy="priority")
    if c.prefill_decode_interval is None:
        c.set(prefill_decode_interval=22)
    if c.attention_backend is None and c.decode_attention_backend is None:
        c.set(decode_attention_backend="flashinfer")


# --- Qwen4-Exp ---------------------------------------------------------------------------------------------------------

_qwen4 = Handler(
    "qwen4_exp.py:_qwen4_exp_overrides",
    since="0.5.20",
    when=lambda c: c.model.architecture == "Qwen4ExpForConditionalGeneration",
)


@_qwen4.refuses(
    "SPC836",
    "qwen4-mori-in-stages",
    raises="ValueError",
    bad="model=qwen4 -- --pp-size 2 --disaggregation-mode prefill --disaggregation-transfer-backend mori",
    good="model=qwen4 -- --disaggregation-mode prefill --disaggregation-transfer-backend mori",
)
def qwen4_mori_in_stages(c: Config) -> Refusal | None:
    """Qwen4-Exp's state cannot go over MORI between servers that run in pipeline stages.

    Use `--pp-size 1`, or another `--disaggregation-transfer-backend`.
    """
    if c.disaggregation_mode == "null" or c.disaggregation_transfer_backend != "mori" or c.pp_size <= 1:
        return None
    return Refusal(
        at="disaggregation_transfer_backend",
        related_fields=("pp_size", "disaggregation_mode"),
        message=f"{c.shown('disaggregation_transfer_backend')} is refused with {c.shown('pp_size')} for this model: MORI cannot pair "
        "its compressed state over pipeline stages.",
        fixes=(setting(pp_size=1), dropping("disaggregation_transfer_backend")),
    )


@_qwen4.refuses(
    "SPC837",
    "qwen4-in-unified-memory",
    raises="ValueError",
    bad="model=qwen4 -- --enable-unified-memory",
    good="model=qwen4 -- --tp-size 1",
)
def qwen4_in_unified_memory(c: Config) -> Refusal | None:
    """Qwen4-Exp does not support the unified memory pool.

    Leave `--enable-unified-memory` out.
    """
    if not c.enable_unified_memory:
        return None
    return Refusal(
        at="enable_unified_memory",
        related_fields=("model_path",),
        message="`--enable-unified-memory` is refused for this model: its states cannot be kept in one pool.",
    )


@_qwen4.adjusts("ple_offload_embedding")
def offload_layer_embeddings(c: Config) -> None:
    """The per-layer embeddings are large and are read by few tokens, so they stay in host memory."""
    if c.ple_offload_embedding is None:
        c.set(ple_offload_embedding=c.gpu.is_cuda and model_dtype(c) == "bfloat16")


@_qwen4.adjusts("moe_dense_tp_size")
def share_out_dense_layers(c: Config) -> None:
    """This model's dense layers are shared out over all GPUs."""
    if c.moe_dense_tp_size == 1 and c.model.text_hf("num_experts") is not None:
        c.set(moe_dense_tp_size=None)


@_qwen4.adjusts("attention_backend", "page_size")
def choose_qwen4_backend(c: Config) -> None:
    """On SM100 a hybrid model runs on trtllm_mha and pages of 64 tokens where its radix cache allows pages, else on triton."""
    if c.gpu.sm100 and c.attention_backend is None:
        _choose_hybrid_backend(c)


def _has_compressed_index(c: Config) -> bool:
    """Whether config.json describes a compressed index (qsa/config.py:parse_qsa_profile)."""
    return c.model.text_hf("indexer_n_heads") is not None


@_qwen4.refuses(
    "SPC888",
    "compressed-index-in-fp8",
    raises="ValueError",
    bad="gpu=a100 model=qwen4 -- --qsa-indexer-dtype fp8_e4m3",
    good="gpu=a100 model=qwen4 -- --tp-size 1",
    since="0.5.23",
)
def compressed_index_in_fp8(c: Config) -> Refusal | None:
    """An FP8 index needs a Hopper or data-centre Blackwell GPU and a model with a compressed index.

    `--qsa-indexer-dtype fp8_e4m3` scores Qwen4-Exp's index in FP8 with TileLang kernels that run on SM90 and SM100 only.
    """
    if c.qsa_indexer_dtype != "fp8_e4m3":
        return None
    if not (c.gpu.is_cuda and (c.gpu.sm90 or c.gpu.sm100)):
        why = f"its kernels do not run on {c.gpu.title}"
    elif not _has_compressed_index(c):
        why = "this model has no compressed index"
    else:
        return None
    return Refusal(
        at="qsa_indexer_dtype",
        message=f"{c.shown('qsa_indexer_dtype')} is refused: {why}. Remove it.",
    )


@_qwen4.adjusts("page_size")
def qwen4_pages(c: Config) -> None:
    """The compressed index of this model needs pages of 64 tokens."""
    if _has_compressed_index(c):
        c.set(page_size=64)


overrides = (_hybrid, _moe, _vl_rocm, _vl, _qwen4)
