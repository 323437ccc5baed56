"""What the other backends set and cannot be combined with."""

from __future__ import annotations

from spec_lsp.resolution.attention.common import (
    IN_COMPATIBILITY,
    IN_POST_INIT,
    any_backend_is,
    backend_field,
    backends_of,
    field_naming,
    has_amx,
    main_or_decode_is,
)
from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, dropping, setting

compatibility = Handler("attention_hook.py:handle_attention_backend_compatibility", earlier=IN_POST_INIT)


@compatibility.adjusts("disable_cuda_graph", until="0.5.14")
def eager_backends_before_0_5_14(c: Config) -> None:
    """PyTorch's own attention cannot be captured in a CUDA graph."""
    if c.attention_backend in ("torch_native", "flex_attention"):
        c.set(disable_cuda_graph=True)


@compatibility.adjusts("cuda_graph_config", since="0.5.14")
def eager_backends(c: Config) -> None:
    """PyTorch's own attention cannot be captured in a CUDA graph."""
    if c.attention_backend in ("torch_native", "flex_attention"):
        capture_nothing(c)


def capture_nothing(c: Config) -> None:
    """Backends that capture no CUDA graph, neither for decode nor for prefill."""
    c.set(cuda_graph_config={phase: {**part, "backend": "disabled"} for phase, part in c.cuda_graph_config.items()})


@compatibility.refuses(
    "SPC204",
    "drafting-on-flex-attention",
    raises="AssertionError",
    bad="--attention-backend flex_attention --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft",
    good="--attention-backend triton --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft",
)
def drafting_on_flex_attention(c: Config) -> Refusal | None:
    """The flex_attention backend cannot verify draft tokens.

    It has no kernel for the verification step of speculative decoding, whatever the algorithm. Use another attention
    backend, or serve without a draft.
    """
    if c.attention_backend != "flex_attention" or c.speculative_algorithm is None:
        return None
    return Refusal(
        at=field_naming(c, "flex_attention"),
        related_fields=("speculative_algorithm",),
        message=f"{c.shown('attention_backend')} is refused with {c.shown('speculative_algorithm')}: it cannot verify "
        f"draft tokens.",
        fixes=(
            dropping(field_naming(c, "flex_attention")),
            setting(attention_backend="triton"),
            dropping("speculative_algorithm"),
        ),
    )


XPU_DECODE_GROUP = 16
"""The most query heads for one KV head that the decode kernel for Intel GPUs supports."""

QWEN3_5 = (
    "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration", "Qwen3_5ForCausalLM",
    "Qwen3_5MoeForCausalLM",
)  # fmt: skip
"""Models that place KV heads by decode context-parallel group."""


def _xpu_dcp_conflict(c: Config) -> tuple[str, str] | None:
    """What decode context parallelism cannot be combined with on Intel GPUs, in SGLang's order."""
    model = c.model
    if set(backends_of(c)) != {"intel_xpu"}:
        return backend_field(c, "decode"), "it needs `--attention-backend intel_xpu`"
    if model.uses_mla:
        return "model_path", "MLA has no kernel for it there"
    if model.v_head_dim != model.head_dim:
        return "model_path", "keys and values have to be equally wide"
    if c.tp_size % c.dcp_size:
        return "tp_size", "its size has to divide the TP size"
    alike = model.get_num_kv_heads(c.tp_size, c.dcp_size) == model.get_num_kv_heads(c.tp_size)
    if not alike and model.architecture not in QWEN3_5:
        return "tp_size", "the ranks of a group would hold different KV heads of this model"
    width = c.tp_size // (c.dp_size if c.enable_dp_attention else 1) // c.attn_cp_size
    if width < c.dcp_size:
        return None
    group = model.get_num_attention_heads(width) * c.dcp_size // model.get_num_kv_heads(width, c.dcp_size)
    if group > XPU_DECODE_GROUP:
        return "tp_size", f"{group} query heads would share a KV head, and the kernel is built for {XPU_DECODE_GROUP}"
    if c.speculative_algorithm is not None:
        return "speculative_algorithm", "drafts cannot be verified with it there"
    if model.text_hf("attention_chunk_size") is not None:
        return "model_path", "chunked local attention has no kernel for it there"
    return ("model_path", "encoder-decoder models have no kernel for it there") if model.is_encoder_decoder else None


@compatibility.refuses(
    "SPC221",
    "decode-context-parallel-on-xpu",
    raises="ValueError",
    since="0.5.23",
    sglang="attention_hook.py:_check_xpu_dcp",
    bad=(
        "gpu=xpu model=qwen3-8b -- --tp-size 8 --dcp-size 2 --attention-backend triton",
        "gpu=xpu model=qwen3-8b -- --tp-size 8 --dcp-size 2 --attention-backend intel_xpu",
        "gpu=xpu model=qwen3-30b-a3b -- --tp-size 8 --dcp-size 2 --attention-backend intel_xpu --speculative-algorithm NGRAM",
    ),
    good="gpu=xpu model=qwen3-30b-a3b -- --tp-size 8 --dcp-size 2 --attention-backend intel_xpu",
)
def decode_context_parallel_on_xpu(c: Config) -> Refusal | None:
    """Decode context parallelism on Intel GPUs works with few other settings.

    `--dcp-size` above 1 needs the intel_xpu backend for both phases, ordinary attention heads with keys as wide as values, KV heads
    that a group's ranks hold alike (TP size over DCP size at least the number of KV heads, except for Qwen3.5), at most 16 query
    heads to a KV head, and no draft.
    """
    if c.gpu.platform != "xpu" or c.dcp_size <= 1:
        return None
    conflict = _xpu_dcp_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    return Refusal(
        at="dcp_size",
        related_fields=(field,),
        message=f"{c.shown('dcp_size')} is refused on {c.gpu.title}: {why}.",
        fixes=(dropping("dcp_size"), *((dropping(field),) if field in ("speculative_algorithm",) else ())),
    )


@compatibility.adjusts("disable_radix_cache", since="0.5.10")
def whisper_without_radix_cache(c: Config) -> None:
    """Whisper pads the encoder's tokens, which a cached prefix would not match."""
    if "WhisperForConditionalGeneration" in c.model.architectures:
        c.set(disable_radix_cache=True)


fa3_fp8 = Handler("overrides.py:_attention_backend_fa3_fp8_fallback", since="0.5.4", earlier=IN_COMPATIBILITY)


@fa3_fp8.adjusts("attention_backend")
def no_e5m2_on_fa3(c: Config) -> None:
    """FlashAttention 3 reads no fp8_e5m2 KV cache, so Triton takes its place."""
    if c.attention_backend == "fa3" and c.kv_cache_dtype == "fp8_e5m2":
        c.set(attention_backend="triton")


fa4 = Handler("overrides.py:_fa4_page_constraint", since="0.5.4", earlier=IN_COMPATIBILITY)


@fa4.refuses(
    "SPC218",
    "fa4-for-decoding",
    raises="ValueError",
    until="0.5.8",
    bad="sglang=0.5.7 gpu=b200 -- --attention-backend fa4",
    good="sglang=0.5.7 gpu=b200 -- --prefill-attention-backend fa4",
)
def fa4_for_decoding(c: Config) -> Refusal | None:
    """In these releases FlashAttention 4 only prefills.

    Name it with `--prefill-attention-backend`; decoding needs another backend.
    """
    if not main_or_decode_is(c, "fa4"):
        return None
    at = field_naming(c, "fa4")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused: in this release FlashAttention 4 has kernels for prefill only.",
        fixes=(Change(set={"prefill_attention_backend": "fa4"}, drop=(at,)), dropping(at)),
    )


@fa4.adjusts("page_size")
def fa4_pages(c: Config) -> None:
    """FlashAttention 4 works on KV pages of 128 tokens for models without MLA."""
    named = any_backend_is(c, "fa4") if c.since("0.5.15") else c.prefill_attention_backend == "fa4"
    if not named or (c.since("0.5.5") and c.model.uses_mla) or (c.since("0.5.10") and not c.gpu.sm100):
        return
    if c.since("0.5.15") and (c.speculative_eagle_topk or 0) > 1:
        return
    diffusion = c.since("0.5.22") and "DiffusionGemmaForBlockDiffusion" in c.model.architectures
    c.set(page_size=1 if diffusion else 128)


platforms = Handler("attention_hook.py:handle_attention_backend_compatibility")
AITER_WORKSPACE = 0.85


@platforms.adjusts("mem_fraction_static")
def aiter_workspace(c: Config) -> None:
    """aiter needs workspace for contexts beyond 8192 tokens, so less memory is left for weights and KV cache."""
    if c.attention_backend != "aiter" or c.model.context_len(c.context_length) <= 8192:
        return
    if c.since("0.5.19") and c.typed("mem_fraction_static") is not None:
        if c.env.flag("SGLANG_AITER_HONOR_EXPLICIT_MEM_FRACTION"):
            return
    c.set(mem_fraction_static=c.mem_fraction_static * AITER_WORKSPACE)


@platforms.adjusts("page_size", until="0.5.6.post1")
def ascend_pages(c: Config) -> None:
    """The Ascend backend works on KV pages of 128 tokens."""
    if c.attention_backend == "ascend" and c.gpu.platform == "npu":
        c.set(page_size=128)


@platforms.adjusts("attention_backend")
def fall_back_from_intel(c: Config) -> None:
    """This CPU has no AMX tiles, so PyTorch's own attention takes the place of Intel's."""
    if c.attention_backend == "intel_amx" and c.device == "cpu" and not has_amx(c):
        c.set(attention_backend="torch_native")


@platforms.refuses(
    "SPC216",
    "intel-xpu-latent-prefill",
    raises="ValueError",
    since="0.5.11",
    until="0.5.20",
    bad="sglang=0.5.19 model=deepseek-v3 -- --tp-size 8 --prefill-attention-backend intel_xpu",
    good="sglang=0.5.19 model=deepseek-v3 -- --tp-size 8 --prefill-attention-backend triton",
)
def intel_xpu_latent_prefill(c: Config) -> Refusal | None:
    """In these releases Intel's XPU attention only decodes MLA.

    For DeepSeek-like models name it with `--decode-attention-backend` and prefill with triton.
    """
    if (c.prefill_attention_backend or c.attention_backend) != "intel_xpu" or not c.model.uses_mla:
        return None
    at = backend_field(c, "prefill")
    return Refusal(
        at=at,
        related_fields=("model_path",),
        message=f"{c.shown(at)} is refused for {c.model.architecture}: it decodes MLA but does not prefill it.",
        fixes=(setting(prefill_attention_backend="triton"), dropping(at)),
    )


@platforms.adjusts("page_size")
def intel_xpu_pages(c: Config) -> None:
    """Intel's XPU attention works on KV pages of 64 or 128 tokens (16 and 32 too for MLA)."""
    if c.before("0.5.11"):
        if c.attention_backend == "intel_xpu" and c.page_size not in (32, 64, 128):
            c.set(page_size=128)
        return
    prefill, decode = backends_of(c)
    if "intel_xpu" not in ((prefill, decode) if c.since("0.5.20") else (decode,)):
        return
    if c.page_size not in ((16, 32, 64, 128) if c.model.uses_mla else (64, 128)):
        c.set(page_size=128)


dual_chunk = Handler("overrides.py:_attention_backend_dual_chunk", until="0.5.20", earlier=IN_COMPATIBILITY)


@dual_chunk.refuses(
    "SPC217",
    "other-backend-for-dual-chunk-attention",
    raises="ValueError",
    bad='sglang=0.5.19 -- --attention-backend fa3 --json-model-override-args \'{"dual_chunk_attention_config": '
    '{"chunk_size": 262144}}\'',
    good="sglang=0.5.19 -- --attention-backend fa3",
)
def other_backend_for_dual_chunk_attention(c: Config) -> Refusal | None:
    """A model with dual-chunk attention runs on dual_chunk_flash_attn only.

    The config of Qwen's million-token checkpoints asks for dual-chunk attention, which one backend computes. SGLang
    picks a backend before it looks, so in these releases the backend has to be named, or the config entry removed.
    """
    if c.attention_backend == "dual_chunk_flash_attn" or c.model.hf("dual_chunk_attention_config") is None:
        return None
    return Refusal(
        at=c.first_given("attention_backend", "model_path"),
        related_fields=("model_path",),
        message=f"{c.shown('attention_backend')} is refused for this model: its config asks for dual-chunk attention, "
        "which only dual_chunk_flash_attn computes.",
        fixes=(setting(attention_backend="dual_chunk_flash_attn"),),
    )


@dual_chunk.adjusts("enable_mixed_chunk", "disable_radix_cache")
def dual_chunk_limits(c: Config) -> None:
    """Dual-chunk attention works neither with mixed chunks nor with the radix cache."""
    if c.attention_backend == "dual_chunk_flash_attn":
        c.set(enable_mixed_chunk=False, disable_radix_cache=True)
