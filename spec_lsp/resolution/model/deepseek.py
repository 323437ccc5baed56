"""The DeepSeek family: V3/R1, V3.2 and its kin with sparse attention (DSA), Kimi K2, Mistral Large 3, GLM-5, LongCat, HY V4.

Follows arg_groups/model_overrides/deepseek_v2.py, the DeepSeek branch of model_hook.py:handle_model_specific_adjustments and its
passes in arg_groups/overrides.py.

Left out: whether a checkpoint without a declared quantization holds FP8 experts (its safetensors are not read): the quantization
and the MoE runner of such a DeepseekV3ForCausalLM on SM100 become unknown. Whether DeepGEMM is installed for HY V4: its runners
become unknown. Environment variables that SGLang sets for its own kernels. The draft of a ModelOpt FP4 checkpoint on ROCm
(_deepseek_spec_moe_resolution): ModelConfig refuses such a checkpoint there before.
"""

from __future__ import annotations

from typing import Any

from spec_lsp.facts import quantization
from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution import cuda_graph, ranks
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, as_far_as_known, dropping, setting
from spec_lsp.resolution.model.common import all_backends_unset, cp_field, cp_mode_field, no_prefill_cuda_graph
from spec_lsp.resolution.model.config import quant_method, quantization_unset

FAMILY = {
    "DeepseekV3ForCausalLM": "", "DeepseekV32ForCausalLM": "", "KimiK25ForConditionalGeneration": "0.5.9",
    "MistralLarge3ForCausalLM": "0.5.6.post1", "PixtralForConditionalGeneration": "0.5.6.post1", "GlmMoeDsaForCausalLM": "0.5.9",
    "LongcatFlashForCausalLM": "0.5.16", "LongcatFlashForCausalLMNextN": "0.5.16", "Dots3NoteForCausalLM": "0.5.19",
    "Glm5NextForConditionalGeneration": "0.5.20", "HYV4ForCausalLM": "0.5.20", "HYV4ForCausalLMNextN": "0.5.20",
}  # fmt: skip
"""The architectures of the family, with the release that added each (empty: 0.5.6 or before).

Before 0.5.12 SGLang reads a V3.2 config.json as a V3 one, which gives the same result here.
"""

BRANCH = (Earlier("0.5.19", "server_args.py:_handle_model_specific_adjustments"),)
OVERRIDES = (Earlier("0.5.15", "server_args.py:_handle_model_specific_adjustments"),)

HYV4 = ("HYV4ForCausalLM", "HYV4ForCausalLMNextN")


def in_family(c: Config) -> bool:
    """Whether the model is of the family in this release."""
    since = FAMILY.get(c.model.architecture)
    return since is not None and (not since or c.since(since))


def _in_branch(c: Config) -> bool:
    """The architectures of the branch in handle_model_specific_adjustments: the family without LongCat's draft."""
    return in_family(c) and c.model.architecture != "LongcatFlashForCausalLMNextN"


def _sparse_branch(c: Config) -> bool:
    return _in_branch(c) and c.model.is_deepseek_dsa


def _on_gpu(c: Config) -> bool:
    return c.gpu.platform not in ("npu", "xpu")


# --- names that changed ------------------------------------------------------------------------------------------------


def dsa_fields(c: Config) -> tuple[str, str]:
    """The fields of the sparse-attention kernels for prefill and decode."""
    return (
        ("dsa_prefill_backend", "dsa_decode_backend")
        if c.since("0.5.13")
        else ("nsa_prefill_backend", "nsa_decode_backend")
    )


def _dsa_options(c: Config) -> tuple[str | None, str | None]:
    prefill, decode = dsa_fields(c)
    return getattr(c, prefill), getattr(c, decode)


def _set_dsa(c: Config, prefill: str | None, decode: str | None) -> None:
    fields = dsa_fields(c)
    c.set(**{fields[0]: prefill, fields[1]: decode})


def _zigzag(c: Config) -> bool:
    """Whether a prompt is divided into two halves (the only way before 0.5.8)."""
    return c.before("0.5.8") or getattr(c, cp_mode_field(c)) in ("zigzag", "in-seq-split")


# --- the family's defaults: model_overrides/deepseek_v2.py -------------------------------------------------------------

_overrides = Handler("deepseek_v2.py:_deepseek_family_overrides", when=in_family, earlier=OVERRIDES)


@_overrides.refuses(
    "SPC817", "context-parallel-hyv4", raises="ValueError", since="0.5.20",
    bad='--enable-prefill-cp --json-model-override-args \'{"architectures": ["HYV4ForCausalLM"]}\'',
    good="model=deepseek-v3 -- --tp-size 8",
)  # fmt: skip
def context_parallel_hyv4(c: Config) -> Refusal | None:
    """HY V4 runs without context parallelism.

    Its attention has learned sinks, which neither prefill context parallelism (`--enable-prefill-cp`) nor decode context
    parallelism (`--dcp-size`) can share out.
    """
    if c.model.architecture not in HYV4:
        return None
    at = "enable_prefill_cp" if c.enable_prefill_cp else "dcp_size" if c.dcp_size > 1 else None
    if at is None:
        return None
    return Refusal(
        at=at,
        related_fields=("model_path",),
        message=f"{c.shown(at)} is refused for {c.model.architecture}: its attention sinks cannot be shared out over context "
        "parallel ranks.",
    )


def _dsa_with_dcp(c: Config) -> bool:
    return c.model.is_deepseek_dsa and c.since("0.5.22") and bool(c.dcp_size > 1)


@_overrides.refuses(
    "SPC818", "sparse-attention-dcp-with-cache-tiers", raises="ValueError", since="0.5.22",
    sglang="deepseek_v2.py:_dsa_dcp_overrides",
    bad=("model=deepseek-v3.2 -- --tp-size 8 --dcp-size 2 --enable-hierarchical-cache",
         "model=deepseek-v3.2 -- --tp-size 8 --dcp-size 2 --disaggregation-mode prefill",
         "model=deepseek-v3.2 -- --tp-size 8 --dcp-size 2 --speculative-algorithm EAGLE --speculative-num-steps 3 "
         "--speculative-eagle-topk 2 --speculative-num-draft-tokens 4"),
    good="model=deepseek-v3.2 -- --tp-size 8 --dcp-size 2",
)  # fmt: skip
def sparse_attention_dcp_with_cache_tiers(c: Config) -> Refusal | None:
    """Decode context parallelism of a sparse-attention model works with few other features.

    With `--dcp-size` above 1 each rank holds a part of the index that DSA selects tokens by. Hierarchical caches
    (`--enable-hierarchical-cache`, `--enable-hisparse`), prefill/decode disaggregation and draft trees would need the whole.
    """
    if not _dsa_with_dcp(c):
        return None
    if c.enable_hisparse or c.enable_hierarchical_cache:
        at, change = ("enable_hisparse" if c.enable_hisparse else "enable_hierarchical_cache"), None
    elif c.disaggregation_mode != "null":
        at, change = "disaggregation_mode", None
    elif c.speculative_eagle_topk not in (None, 1):
        at, change = "speculative_eagle_topk", setting(speculative_eagle_topk=1)
    else:
        return None
    return Refusal(
        at=at,
        related_fields=("dcp_size",),
        message=f"{c.shown(at)} is refused with {c.shown('dcp_size')} for a sparse-attention model: each decode rank holds only a "
        "part of the index.",
        fixes=(*((change,) if change else ()), dropping(at), dropping("dcp_size")),
    )


def _dsa_cp(c: Config) -> bool:
    return c.model.is_deepseek_dsa and _on_gpu(c) and bool(getattr(c, cp_field(c)))


def _mla_cp(c: Config) -> bool:
    if c.model.is_deepseek_dsa or c.before("0.5.13"):
        return False
    asked = c.enable_prefill_cp if c.since("0.5.14") else c.enable_prefill_context_parallel
    return bool(asked) and c.model.uses_mla


@_overrides.refuses(
    "SPC819", "replicas-and-attention-dp-under-prefill-cp", raises="AssertionError", since="0.5.22",
    sglang="model_override_base.py:context_parallel_attn_dp_size",
    bad="model=deepseek-v3 -- --tp-size 8 --enable-prefill-cp --dp-size 2 --attn-dp-size 2",
    good="model=deepseek-v3 -- --tp-size 8 --attn-dp-size 2",
)  # fmt: skip
def replicas_and_attention_dp_under_prefill_cp(c: Config) -> Refusal | None:
    """Prefill context parallelism works with attention DP or replicas, not both.

    Under `--enable-prefill-cp` a DeepSeek-like model reads `--dp-size` as attention DP (an old spelling), so it cannot stand
    beside `--attn-dp-size`.
    """
    if not (_dsa_cp(c) or _mla_cp(c)) or not (c.attn_dp_size > 1 and c.dp_size > 1):
        return None
    return Refusal(
        at="dp_size",
        related_fields=("attn_dp_size", "enable_prefill_cp"),
        message=f"{c.shown('dp_size')} is refused with {c.shown('attn_dp_size')} under `--enable-prefill-cp`: replicas and attention "
        "DP cannot be combined there.",
        fixes=(dropping("dp_size"), dropping("attn_dp_size")),
    )


@_overrides.refuses(
    "SPC820", "interleaved-cp-with-dp-attention", raises="AssertionError", since="0.5.8", until="0.5.22",
    bad="sglang=0.5.19 model=deepseek-v3.2 -- --tp-size 8 --dp-size 2 --enable-prefill-cp --cp-strategy interleave",
    good="sglang=0.5.19 model=deepseek-v3.2 -- --tp-size 8 --enable-prefill-cp --cp-strategy interleave",
)  # fmt: skip
def interleaved_cp_with_dp_attention(c: Config) -> Refusal | None:
    """Interleaved context parallelism of sparse attention cannot be combined with DP attention.

    Before 0.5.22 `--cp-strategy interleave` needs `--dp-size 1`. Use zigzag, or a newer release.
    """
    if not _dsa_cp(c) or _zigzag(c) or c.dp_size == 1:
        return None
    mode = cp_mode_field(c)
    return Refusal(
        at="dp_size",
        related_fields=(mode, cp_field(c)),
        message=f"{c.shown('dp_size')} is refused with {c.shown(mode)}: this release interleaves a prompt over one attention "
        "group only.",
        fixes=(dropping("dp_size"), setting(**{mode: "zigzag" if c.since("0.5.14") else "in-seq-split"})),
    )


@_overrides.refuses(
    "SPC821", "sparse-attention-cp-beyond-eight", raises="AssertionError",
    bad="model=deepseek-v3.2 -- --tp-size 16 --nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.1:5000 --enable-prefill-cp",
    good="model=deepseek-v3.2 -- --tp-size 8",
)  # fmt: skip
def sparse_attention_cp_beyond_eight(c: Config) -> Refusal | None:
    """Context parallelism of sparse attention stays on one machine.

    SGLang has seen wrong numbers across machines and takes at most `--tp-size 8` with `--enable-prefill-cp` (before 0.5.12: exactly
    8).
    """
    fits = c.tp_size <= 8 if c.since("0.5.12") else c.tp_size == 8
    if not _dsa_cp(c) or fits:
        return None
    switch = cp_field(c)
    return Refusal(
        at="tp_size",
        related_fields=(switch,),
        message=f"{c.shown('tp_size')} is refused with `{c.flag(switch)}` for a sparse-attention model: it is exact on one "
        "machine of 8 GPUs only.",
        fixes=(setting(tp_size=8), dropping(switch)),
    )


@_overrides.refuses(
    "SPC822", "pooled-index-over-dcp", raises="ValueError", since="0.5.22",
    bad='model=deepseek-v3.2 -- --tp-size 8 --dcp-size 2 --json-model-override-args \'{"index_kpool": 4}\'',
    good="model=deepseek-v3.2 -- --tp-size 8 --dcp-size 2",
)  # fmt: skip
def pooled_index_over_dcp(c: Config) -> Refusal | None:
    """A pooled sparse-attention index cannot be split over decode ranks.

    The model keeps one index key for several tokens (`index_kpool` in its config.json), and those tokens would belong to
    different ranks of `--dcp-size`.
    """
    if not _dsa_with_dcp(c) or not _on_gpu(c) or _legacy_rocm_pages(c) or c.model.hf("index_kpool", 1) <= 1:
        return None
    return Refusal(
        at="dcp_size",
        related_fields=("model_path",),
        message=f"{c.shown('dcp_size')} is refused: this model's index pools several tokens into one key, which would lie on "
        "different ranks.",
    )


def _legacy_rocm_pages(c: Config) -> bool:
    """Whether ROCm only has kernels that work on single tokens. Assumes Triton 3.5 or newer, as ROCm 7 images have."""
    if not c.gpu.is_hip or c.before("0.5.8"):
        return False
    if c.before("0.5.12"):
        return True
    return not c.env.flag("SGLANG_USE_AITER") or c.env.flag("SGLANG_DSA_HIP_DISABLE_PRESHUFFLE")


@_overrides.adjusts("attention_backend")
def choose_deepseek_backend(c: Config) -> None:
    """DeepSeek's sparse attention has a backend of its own; without it, SM100 runs MLA on trtllm_mla."""
    if not all_backends_unset(c):
        return
    if c.model.is_deepseek_dsa:
        c.set(attention_backend="dsa" if c.since("0.5.13") else "nsa")
    elif c.gpu.sm100:
        c.set(attention_backend="trtllm_mla")


@_overrides.adjusts("dsa_prefill_backend", "dsa_decode_backend", "dcp_replicate_q_proj", since="0.5.22")
def sparse_attention_under_dcp(c: Config) -> None:
    """Decode context parallelism of sparse attention runs on the trtllm kernels, with the query projection replicated."""
    if not _dsa_with_dcp(c):
        return
    prefill, decode = _dsa_options(c)
    c.set(dsa_prefill_backend=prefill or "trtllm", dsa_decode_backend=decode or "trtllm")
    if c.dcp_replicate_q_proj is None and c.dcp_comm_backend in ("a2a", "fi_a2a"):
        c.set(dcp_replicate_q_proj=True)


@_overrides.adjusts(
    "attn_dp_size", "dp_size", "attn_cp_size", "moe_dense_tp_size", "moe_a2a_backend", "ep_size", since="0.5.22"
)
def lay_out_prefill_cp(c: Config) -> None:
    """Prefill context parallelism takes the ranks that attention DP leaves; experts then span them all."""
    sparse = _dsa_cp(c)
    if not sparse and not _mla_cp(c):
        return
    groups = c.attn_dp_size * c.dp_size
    if not sparse or c.cp_strategy == "zigzag":
        c.set(moe_dense_tp_size=1, moe_a2a_backend="deepep", ep_size=c.tp_size)
    keep = sparse and c.cp_strategy == "interleave" and c.attn_cp_size > 1
    c.set(attn_cp_size=c.attn_cp_size if keep else c.tp_size // groups, attn_dp_size=groups, dp_size=1)


@_overrides.adjusts(
    "enable_dp_attention",
    "attn_cp_size",
    "moe_dense_tp_size",
    "moe_a2a_backend",
    "ep_size",
    "kv_cache_dtype",
    until="0.5.22",
)
def lay_out_prefill_cp_before_0_5_22(c: Config) -> None:
    """Prefill context parallelism takes the ranks that DP attention leaves; experts then span them all."""
    sparse = _dsa_cp(c)
    if not sparse and not _mla_cp(c):
        return
    c.set(enable_dp_attention=True, moe_dense_tp_size=1)
    if c.since("0.5.10"):
        c.set(attn_cp_size=c.tp_size // c.dp_size)
    if not sparse or _zigzag(c):
        c.set(moe_a2a_backend="deepep", ep_size=c.tp_size)
        if c.before("0.5.10"):
            c.set(kv_cache_dtype="bf16")


@_overrides.adjusts("enable_dp_attention", until="0.5.8")
def sparse_attention_in_dp_groups(c: Config) -> None:
    """Sparse attention ran in DP-attention groups only."""
    if c.model.is_deepseek_dsa and _on_gpu(c):
        c.set(enable_dp_attention=True)


@_overrides.adjusts("page_size")
def sparse_attention_pages(c: Config) -> None:
    """The kernels of DeepSeek's sparse attention work on KV pages of 64 tokens (on ROCm without aiter: of one)."""
    if not c.model.is_deepseek_dsa or c.gpu.platform == "npu":
        return
    if c.gpu.platform == "xpu" and c.since("0.5.12"):
        if c.since("0.5.20"):
            c.set(page_size=128)
    elif _legacy_rocm_pages(c):
        c.set(page_size=1)
    else:
        c.set(page_size=64 * c.model.hf("index_kpool", 1) if c.since("0.5.22") else 64)


@_overrides.adjusts("moe_runner_backend", "fp8_gemm_runner_backend", since="0.5.20")
def hyv4_runners(c: Config) -> None:
    """HY V4's MXFP8 weights run on DeepGEMM where it is installed."""
    if c.model.architecture not in HYV4:
        return
    config = quantization.config_json(c.model, c.release) or {}
    if str(config.get("quant_algo", "")).upper() == "MXFP8":
        raise NotKnown("DeepGEMM", "whether it is installed is not in a launch")


# --- the branch of handle_model_specific_adjustments -------------------------------------------------------------------

_branch = Handler("model_hook.py:handle_model_specific_adjustments", when=_sparse_branch, earlier=BRANCH)


@_branch.refuses(
    "SPC823", "two-batch-overlap-with-shared-index", raises="ValueError", since="0.5.13",
    sglang="model_hook.py:_validate_dsa_tbo_index_sharing",
    earlier=(Earlier("0.5.20", "model_hook.py:handle_model_specific_adjustments"),),
    bad='model=deepseek-v3.2 -- --tp-size 8 --ep-size 8 --moe-a2a-backend deepep --enable-two-batch-overlap '
    '--json-model-override-args \'{"index_topk_freq": 4}\'',
    good="model=deepseek-v3.2 -- --tp-size 8 --ep-size 8 --moe-a2a-backend deepep --enable-two-batch-overlap",
)  # fmt: skip
def two_batch_overlap_with_shared_index(c: Config) -> Refusal | None:
    """Two-batch overlap loses the selection that sparse-attention layers share.

    In this model some layers reuse the tokens that an earlier layer selected (`index_topk_freq`, `index_topk_pattern` or
    `indexer_types` in config.json). `--enable-two-batch-overlap` does not hand them on.
    """
    if not c.enable_two_batch_overlap:
        return None
    model = c.model
    shares = (
        (model.hf("index_topk_freq", 1) or 1) > 1
        or "S" in (model.hf("index_topk_pattern") or "")
        or (c.since("0.5.20") and "shared" in (model.hf("indexer_types") or ()))
    )
    if not shares:
        return None
    return Refusal(
        at="enable_two_batch_overlap",
        related_fields=("model_path",),
        message="`--enable-two-batch-overlap` is refused: layers of this model share the tokens their sparse attention selects, "
        "and overlapped batches do not hand them on.",
    )


@_branch.adjusts("cuda_graph_config", "disable_piecewise_cuda_graph", since="0.5.13")
def no_prefill_graph_under_sparse_cp(c: Config) -> None:
    """Prefill of a sparse-attention model is not captured in a CUDA graph under context parallelism."""
    if not _dsa_cp(c):
        return
    captured = c.since("0.5.23") and cuda_graph.backend_of(c, cuda_graph.PREFILL) == cuda_graph.BREAKABLE
    if not captured or not cuda_graph.captures_context_parallel_prefill(c):
        no_prefill_cuda_graph(c)


_dsa_dtype = Handler(
    "overrides.py:_dsa_kv_cache_dtype_default", when=lambda c: _sparse_branch(c) and c.gpu.platform != "npu"
)


@_dsa_dtype.refuses(
    "SPC824", "sparse-attention-sinks-with-quantized-cache", raises="ValueError", since="0.5.20",
    bad='model=deepseek-v3.2 -- --tp-size 8 --kv-cache-dtype fp8_e4m3 --json-model-override-args \'{"learnable_sink": true}\'',
    good="model=deepseek-v3.2 -- --tp-size 8 --kv-cache-dtype fp8_e4m3",
)  # fmt: skip
def sparse_attention_sinks_with_quantized_cache(c: Config) -> Refusal | None:
    """Learned attention sinks need a bfloat16 KV cache.

    The sparse-attention kernels that support sinks (`learnable_sink` in config.json) read no FP8 cache.
    """
    if not _on_gpu(c) or not c.model.hf("learnable_sink", False) or c.kv_cache_dtype in ("auto", "bf16", "bfloat16"):
        return None
    return Refusal(
        at="kv_cache_dtype",
        related_fields=("model_path",),
        message=f"{c.shown('kv_cache_dtype')} is refused: this model's attention sinks need a bfloat16 KV cache.",
        fixes=(dropping("kv_cache_dtype"), setting(kv_cache_dtype="bfloat16")),
    )


@_dsa_dtype.adjusts("kv_cache_dtype")
def sparse_attention_cache_dtype(c: Config) -> None:
    """DeepSeek's sparse attention keeps its KV cache in FP8 on Blackwell and in bfloat16 elsewhere."""
    if c.gpu.platform == "xpu":
        if c.since("0.5.20") and c.kv_cache_dtype == "auto":
            c.set(kv_cache_dtype="bfloat16")
        return
    if c.kv_cache_dtype == "auto":
        sinks = c.since("0.5.20") and c.model.hf("learnable_sink", False)
        c.set(kv_cache_dtype="fp8_e4m3" if c.gpu.major >= 10 and not sinks else "bfloat16")
    elif c.kv_cache_dtype == "bf16":
        c.set(kv_cache_dtype="bfloat16")


@_dsa_dtype.refuses(
    "SPC825", "sparse-attention-cache-dtype-unsupported", raises="AssertionError",
    earlier=(
        Earlier("0.5.9", "server_args.py:_handle_model_specific_adjustments"),
        Earlier("0.5.13", "server_args.py:_set_default_nsa_kv_cache_dtype"),
        Earlier("0.5.15", "server_args.py:_set_default_dsa_kv_cache_dtype"),
    ),
    bad="model=deepseek-v3.2 -- --tp-size 8 --kv-cache-dtype fp8_e5m2",
    good="model=deepseek-v3.2 -- --tp-size 8 --kv-cache-dtype fp8_e4m3",
)  # fmt: skip
def sparse_attention_cache_dtype_unsupported(c: Config) -> Refusal | None:
    """DeepSeek's sparse attention reads a bfloat16 or an FP8 (e4m3) KV cache, nothing else.

    Leave `--kv-cache-dtype` out: SGLang chooses FP8 on Blackwell and bfloat16 elsewhere.
    """
    if not _on_gpu(c) or c.kv_cache_dtype in ("bfloat16", "fp8_e4m3"):
        return None
    return Refusal(
        at="kv_cache_dtype",
        related_fields=("model_path",),
        message=f"{c.shown('kv_cache_dtype')} is refused for a sparse-attention model: its kernels read bfloat16 or fp8_e4m3 only.",
        fixes=(dropping("kv_cache_dtype"), setting(kv_cache_dtype="fp8_e4m3"), setting(kv_cache_dtype="bfloat16")),
    )


_dsa_split = Handler(
    "overrides.py:_dsa_split_backend_resolution", when=lambda c: _sparse_branch(c) and c.gpu.platform != "npu"
)


def _has_sinks(c: Config) -> bool:
    return c.since("0.5.20") and bool(c.model.hf("learnable_sink", False))


@_dsa_split.refuses(
    "SPC826", "sparse-attention-sinks-off-flashmla", raises="ValueError", since="0.5.20",
    bad='model=deepseek-v3.2 -- --tp-size 8 --dsa-prefill-backend fa3 --json-model-override-args \'{"learnable_sink": true}\'',
    good="model=deepseek-v3.2 -- --tp-size 8 --dsa-prefill-backend flashmla_sparse",
)  # fmt: skip
def sparse_attention_sinks_off_flashmla(c: Config) -> Refusal | None:
    """Learned attention sinks run on the flashmla_sparse kernels only.

    Leave `--dsa-prefill-backend` and `--dsa-decode-backend` out for this model.
    """
    if not _on_gpu(c) or not _has_sinks(c):
        return None
    for at in ("dsa_prefill_backend", "dsa_decode_backend"):
        if getattr(c, at) not in (None, "flashmla_sparse"):
            return Refusal(
                at=at,
                related_fields=("model_path",),
                message=f"{c.shown(at)} is refused: only flashmla_sparse supports this model's attention sinks.",
                fixes=(dropping(at), setting(**{at: "flashmla_sparse"})),
            )
    return None


@_dsa_split.adjusts("dsa_prefill_backend", "dsa_decode_backend", "nsa_prefill_backend", "nsa_decode_backend")
def choose_sparse_backends(c: Config) -> None:
    """The fastest sparse-attention kernels for this device and KV cache."""
    if c.before("0.5.9"):
        _force_sparse_backends(c)
        return
    prefill, decode = _dsa_defaults(c)
    typed_prefill, typed_decode = _dsa_options(c)
    if c.before("0.5.11") and c.since("0.5.10") and (prefill, decode) == ("trtllm", "trtllm"):
        typed_prefill = typed_decode = None
    _set_dsa(c, typed_prefill or prefill, typed_decode or decode)


def _force_sparse_backends(c: Config) -> None:
    """Until 0.5.8 the kernels depend on KV cache and device alone."""
    if c.kv_cache_dtype == "fp8_e4m3":
        _set_dsa(c, "flashmla_auto", "flashmla_kv")
    elif c.gpu.major >= 10:
        _set_dsa(c, "flashmla_sparse", "flashmla_sparse")


def _dsa_defaults(c: Config) -> tuple[str | None, str | None]:
    fp8 = c.kv_cache_dtype == "fp8_e4m3"
    if c.gpu.platform == "xpu":
        return ("intel_xpu", "intel_xpu") if c.since("0.5.20") else (None, None)
    if _has_sinks(c):
        return "flashmla_sparse", "flashmla_sparse"
    if c.since("0.5.17") and c.gpu.sm120 and fp8 and c.model.architecture == "GlmMoeDsaForCausalLM":
        return "flashinfer_sparse_mla", "flashinfer_sparse_mla"
    if c.enable_hisparse:
        backend = _hisparse_default(c, fp8)
        return backend, backend
    if c.gpu.is_hip and c.since("0.5.20"):
        return "triton", "triton"
    if c.gpu.is_hip and c.since("0.5.10") and _dsa_options(c) == (None, None):
        return "tilelang", "tilelang"
    if fp8:
        return _fp8_defaults(c)
    return "flashmla_sparse", "trtllm" if c.gpu.major >= 10 else "fa3"


def _hisparse_default(c: Config, fp8: bool) -> str:
    if c.before("0.5.12"):
        return "flashmla_sparse"
    if c.gpu.is_hip and c.since("0.5.14"):
        return "tilelang"
    return "flashmla_kv" if fp8 else "flashmla_sparse"


def _fp8_defaults(c: Config) -> tuple[str, str]:
    if c.gpu.major >= 10 and c.since("0.5.10"):
        return "trtllm", "trtllm"
    return "flashmla_kv" if c.since("0.5.11") else "flashmla_auto", "flashmla_kv"


def _split_checked(c: Config) -> bool:
    """Whether SGLang compares the sparse-attention kernels with the device and the KV cache at all."""
    if not _on_gpu(c) or _has_sinks(c):
        return False
    glm_on_sm120 = c.gpu.sm120 and c.kv_cache_dtype == "fp8_e4m3" and c.model.architecture == "GlmMoeDsaForCausalLM"
    return not glm_on_sm120 and (not c.enable_hisparse or c.since("0.5.20"))


def _dsa_field(c: Config, backend: str) -> str:
    prefill, decode = dsa_fields(c)
    return prefill if getattr(c, prefill) == backend else decode


@as_far_as_known
def _other_sparse_kernels(c: Config) -> tuple[Change, ...]:
    given = tuple(name for name in dsa_fields(c) if c.given(name))
    return (*(dropping(name) for name in given), dropping(*given)) if given else ()


@_dsa_split.refuses(
    "SPC827", "tilelang-hisparse-with-fp8-cache", raises="ValueError", since="0.5.22",
    bad="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache --kv-cache-dtype fp8_e4m3 "
    "--dsa-prefill-backend tilelang",
    good="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache --kv-cache-dtype fp8_e4m3",
)  # fmt: skip
def tilelang_hisparse_with_fp8_cache(c: Config) -> Refusal | None:
    """HiSparse has no TileLang kernels for an FP8 KV cache on NVIDIA.

    Leave `--dsa-prefill-backend` and `--dsa-decode-backend` out, or keep the cache in bfloat16.
    """
    if not _split_checked(c) or not c.enable_hisparse or c.gpu.is_hip or c.kv_cache_dtype != "fp8_e4m3":
        return None
    if "tilelang" not in _dsa_options(c):
        return None
    return Refusal(
        at=_dsa_field(c, "tilelang"),
        related_fields=("enable_hisparse", "kv_cache_dtype"),
        message=f"{c.shown(_dsa_field(c, 'tilelang'))} is refused with `--enable-hisparse` and an FP8 KV cache.",
        fixes=(*_other_sparse_kernels(c), setting(kv_cache_dtype="bfloat16")),
    )


@_dsa_split.refuses(
    "SPC828", "triton-sparse-attention-off-rocm", raises="ValueError", since="0.5.20", hardware_only=True,
    sglang="overrides.py:_check_dsa_backend_constraints",
    bad="model=deepseek-v3.2 -- --tp-size 8 --dsa-prefill-backend triton",
    good="gpu=mi300x model=deepseek-v3.2 -- --tp-size 8 --dsa-prefill-backend triton",
)  # fmt: skip
def triton_sparse_attention_off_rocm(c: Config) -> Refusal | None:
    """The Triton kernels for sparse attention are for AMD GPUs.

    On NVIDIA use flashmla_kv (Hopper), trtllm (Blackwell) or leave the choice to SGLang.
    """
    if not _split_checked(c) or c.gpu.is_hip or "triton" not in _dsa_options(c):
        return None
    at = _dsa_field(c, "triton")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused on {c.gpu.title}: these sparse-attention kernels are for ROCm.",
        fixes=_other_sparse_kernels(c),
    )


@_dsa_split.refuses(
    "SPC829", "tilelang-with-fp8-cache", raises="ValueError", since="0.5.17",
    sglang="overrides.py:_check_dsa_backend_constraints",
    earlier=(Earlier("0.5.22", "overrides.py:_check_tilelang_dsa_fp8_kv"),),
    bad=("model=deepseek-v3.2 -- --tp-size 8 --kv-cache-dtype fp8_e4m3 --dsa-prefill-backend tilelang",
         "sglang=0.5.19 model=deepseek-v3.2 -- --tp-size 8 --kv-cache-dtype fp8_e4m3 --dsa-decode-backend tilelang"),
    good="model=deepseek-v3.2 -- --tp-size 8 --kv-cache-dtype bfloat16 --dsa-prefill-backend tilelang",
)  # fmt: skip
def tilelang_with_fp8_cache(c: Config) -> Refusal | None:
    """TileLang's sparse-attention kernels share an FP8 KV cache with no others on NVIDIA.

    They store FP8 values without scales, the other kernels with scales: since 0.5.22 both phases must be `tilelang` (without
    decode context parallelism, and on SM89 or newer); before, they take a bfloat16 cache only.
    """
    if not _split_checked(c) or c.gpu.is_hip or c.kv_cache_dtype != "fp8_e4m3" or "tilelang" not in _dsa_options(c):
        return None
    whole = (
        _dsa_options(c) == ("tilelang", "tilelang")
        and (c.dcp_size or 1) <= 1
        and (c.gpu.capability or (0, 0)) >= (8, 9)
    )
    if whole and c.since("0.5.22"):
        return None
    at = _dsa_field(c, "tilelang")
    both = (setting(dsa_prefill_backend="tilelang", dsa_decode_backend="tilelang"),) if c.since("0.5.22") else ()
    return Refusal(
        at=at,
        related_fields=("kv_cache_dtype", "dsa_prefill_backend", "dsa_decode_backend"),
        message=f"{c.shown(at)} is refused with {c.shown('kv_cache_dtype')}: TileLang's FP8 layout is not that of the other "
        "sparse-attention kernels.",
        fixes=(*_other_sparse_kernels(c), setting(kv_cache_dtype="bfloat16"), *both),
    )


_layer_split = Handler("model_hook.py:handle_model_specific_adjustments", when=_sparse_branch, earlier=BRANCH)


@_layer_split.refuses(
    "SPC830", "prefill-cp-on-sparse-decode-server", raises="AssertionError", since="0.5.8",
    bad="model=deepseek-v3.2 -- --tp-size 8 --enable-prefill-cp --disaggregation-mode decode",
    good="model=deepseek-v3.2 -- --tp-size 8 --disaggregation-mode decode",
)  # fmt: skip
def prefill_cp_on_sparse_decode_server(c: Config) -> Refusal | None:
    """A decode server does not prefill, so it cannot use prefill context parallelism.

    Give `--enable-prefill-cp` to the prefill server only.
    """
    switch = cp_field(c)
    if not getattr(c, switch) or c.disaggregation_mode != "decode":
        return None
    return Refusal(
        at=switch,
        related_fields=("disaggregation_mode",),
        message=f"`{c.flag(switch)}` is refused with `--disaggregation-mode decode`: a decode server does not prefill.",
    )


@_layer_split.refuses(
    "SPC831", "layer-split-cache-off-prefill-cp", raises="ValueError", since="0.5.16",
    bad=("model=deepseek-v3.2 -- --tp-size 8 --enable-dsa-cache-layer-split",
         "model=deepseek-v3.2 -- --tp-size 8 --enable-dsa-cache-layer-split --disaggregation-mode prefill",
         "model=deepseek-v3.2 -- --tp-size 8 --enable-dsa-cache-layer-split --disaggregation-mode prefill --enable-prefill-cp "
         "--cp-strategy interleave --disaggregation-transfer-backend nixl"),
    good="model=deepseek-v3.2 -- --tp-size 8 --enable-dsa-cache-layer-split --disaggregation-mode prefill --enable-prefill-cp "
    "--cp-strategy interleave",
)  # fmt: skip
def layer_split_cache_off_prefill_cp(c: Config) -> Refusal | None:
    """Splitting the sparse-attention cache by layers is for prefill servers under interleaved context parallelism.

    `--enable-dsa-cache-layer-split` lets each context-parallel rank keep the KV cache of some layers. It needs all of:
    `--disaggregation-mode prefill`, `--enable-prefill-cp --cp-strategy interleave`, the Mooncake transfer, no pipeline parallelism.
    """
    if not c.enable_dsa_cache_layer_split:
        return None
    if c.disaggregation_mode != "prefill":
        why, other = "it works on prefill servers only", "disaggregation_mode"
    elif not c.enable_prefill_cp or c.cp_strategy != "interleave":
        why, other = "it needs `--enable-prefill-cp --cp-strategy interleave`", "cp_strategy"
    elif c.disaggregation_transfer_backend != "mooncake":
        why, other = "only the Mooncake transfer moves such a cache", "disaggregation_transfer_backend"
    elif c.pp_size > 1:
        why, other = "it cannot be combined with pipeline parallelism", "pp_size"
    else:
        return None
    return Refusal(
        at="enable_dsa_cache_layer_split",
        related_fields=(other,),
        message=f"`--enable-dsa-cache-layer-split` is refused: {why}.",
    )


_latent_branch = Handler(
    "model_hook.py:handle_model_specific_adjustments", when=lambda c: _in_branch(c) and not c.model.is_deepseek_dsa
)


@_latent_branch.adjusts("cuda_graph_config", "disable_piecewise_cuda_graph", since="0.5.13")
def no_prefill_graph_under_latent_cp(c: Config) -> None:
    """Prefill with MLA is not captured in a CUDA graph under context parallelism."""
    if _mla_cp(c):
        no_prefill_cuda_graph(c)


# --- quantization and MoE runners, of the target and of the draft ------------------------------------------------------

_moe_quant = Handler("overrides.py:_deepseek_moe_quant_resolution", when=lambda c: _in_branch(c) and c.gpu.sm100)


def _int4_thinking(c: Config) -> bool:
    """Kimi K2 Thinking and K2.5: compressed-tensors with 4-bit integers in groups of 32."""
    config = quantization.config_json(c.model, c.release) or {}
    weights: Any = ((config.get("config_groups") or {}).get("group_0") or {}).get("weights") or {}
    wanted = {"num_bits": 4, "group_size": 32, "strategy": "group", "type": "int"}
    return config.get("quant_method") == "compressed-tensors" and all(weights.get(k) == v for k, v in wanted.items())


@_moe_quant.adjusts("quantization")
def take_deepseek_quantization(c: Config) -> None:
    """The checkpoint's own quantization, which decides the MoE kernels on SM100."""
    if c.quantization is not None or quantization_unset(c):
        return
    method = quant_method(c)
    if method is None and c.model.architecture == "DeepseekV3ForCausalLM" and c.since("0.5.11"):
        raise NotKnown(
            "the checkpoint's weights", "config.json declares no quantization, and FP8 experts show only in the weights"
        )
    if (
        method is None
        and c.before("0.5.11")
        and c.model.architecture in ("DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM")
    ):
        method = "fp8"
    c.set(quantization=method)


@_moe_quant.adjusts("enable_flashinfer_allreduce_fusion", until="0.5.7")
def fuse_deepseek_allreduce(c: Config) -> None:
    """On SM100 DeepSeek's all-reduce is fused with the layer norm that follows."""
    if not c.enable_dp_attention and c.nnodes == 1:
        c.set(enable_flashinfer_allreduce_fusion=True)


@_moe_quant.adjusts("moe_runner_backend")
def choose_deepseek_moe_runner(c: Config) -> None:
    """On SM100 the FlashInfer TensorRT-LLM kernels run DeepSeek's experts fastest."""
    if c.moe_a2a_backend != "none" or c.moe_runner_backend != "auto":
        return
    if c.since("0.5.17") and c.model.architecture.startswith("LongcatFlash"):
        return
    fast = ("fp8", "modelopt_fp8", "modelopt_fp4", *(("modelopt_mixed",) if c.since("0.5.10") else ()))
    unquantized = c.since("0.5.12") and c.quantization is None
    if c.quantization in fast or unquantized or (c.since("0.5.10") and _int4_thinking(c)):
        c.set(moe_runner_backend="flashinfer_trtllm")


@_moe_quant.adjusts("speculative_moe_runner_backend", "speculative_moe_a2a_backend", since="0.5.7", until="0.5.10")
def choose_draft_experts(c: Config) -> None:
    """An FP4 checkpoint's draft layer is not quantized, so its experts run on other kernels than the target's."""
    if c.quantization != "modelopt_fp4" or c.speculative_algorithm != "EAGLE":
        return
    if c.speculative_moe_runner_backend is None or c.speculative_moe_a2a_backend is None:
        deepep = c.env.flag("SGLANG_NVFP4_CKPT_FP8_NEXTN_MOE")
        c.set(
            speculative_moe_runner_backend="deep_gemm" if deepep else "triton",
            speculative_moe_a2a_backend="deepep" if deepep else "none",
        )


@_moe_quant.adjusts("fp8_gemm_runner_backend", since="0.5.16")
def choose_longcat_gemm_runner(c: Config) -> None:
    """LongCat's FP8 scales are not powers of two, which the TensorRT-LLM kernels take as they are."""
    if not c.model.architecture.startswith("LongcatFlash") or c.fp8_gemm_runner_backend != "auto":
        return
    config = quantization.config_json(c.model, c.release) or {}
    if c.quantization in ("fp8", "modelopt_fp8") and config.get("scale_fmt") != "ue8m0":
        c.set(fp8_gemm_runner_backend="flashinfer_trtllm")


_rocm = Handler(
    "model_hook.py:handle_model_specific_adjustments", since="0.5.21", when=lambda c: _in_branch(c) and c.gpu.is_hip
)


@_rocm.adjusts("enable_aiter_allreduce_fusion", "disable_aiter_allreduce_fusion_in_prefill")
def fuse_glm_allreduce_on_rocm(c: Config) -> None:
    """GLM-5 decodes faster on ROCm with aiter's fused all-reduce."""
    if c.model.architecture == "GlmMoeDsaForCausalLM" and not ranks.attention_dp(c) and c.nnodes == 1:
        c.set(enable_aiter_allreduce_fusion=True, disable_aiter_allreduce_fusion_in_prefill=True)


overrides = (_overrides,)
branch = (_branch, _dsa_dtype, _dsa_split, _layer_split, _latent_branch, _moe_quant, _rocm)
