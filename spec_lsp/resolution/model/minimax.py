"""MiniMax M2 and M3. Follows arg_groups/model_overrides/minimax_m2.py and minimax_m3.py.

Left out: environment variables that SGLang sets for its own kernels.
"""

from __future__ import annotations

from spec_lsp.facts import quantization
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.model.common import all_backends_unset, is_blackwell
from spec_lsp.resolution.model.config import quant_method, quantization_unset, served_quantization

_m2 = Handler("minimax_m2.py:_minimax_m2_overrides", when=lambda c: c.model.architecture == "MiniMaxM2ForCausalLM")


@_m2.adjusts("enable_tf32_matmul", since="0.5.15")
def multiply_gates_in_tf32(c: Config) -> None:
    """The gates of this model's experts are multiplied faster in TF32."""
    c.set(enable_tf32_matmul=True)


@_m2.adjusts("moe_runner_backend", since="0.5.18")
def choose_m2_moe_runner(c: Config) -> None:
    """On SM100 the FlashInfer TensorRT-LLM kernels run FP4 experts fastest."""
    if c.gpu.sm100 and c.moe_runner_backend == "auto" and served_quantization(c).method == "modelopt_fp4":
        c.set(moe_runner_backend="flashinfer_trtllm_routed")


# --- M3 ----------------------------------------------------------------------------------------------------------------

M3 = ("MiniMaxM3SparseForCausalLM", "MiniMaxM3SparseForConditionalGeneration")
NVFP4 = "minimax_m3_nvfp4"

_m3 = Handler("minimax_m3.py:_minimax_m3_overrides", since="0.5.16", when=lambda c: c.model.architecture in M3)


def _checkpoint_method(c: Config) -> str | None:
    method = quant_method(c)
    if method != "mxfp8" or c.before("0.5.23"):
        return method
    config = quantization.config_json(c.model, c.release) or {}
    packed = str(config.get("moe_quant_algo", "")).upper() == "NVFP4"
    return NVFP4 if packed and config.get("moe_quant_format") == "nvfp4-pack-quantized" else method


def _method(c: Config) -> str | None:
    asked: str | None = c.quantization
    return asked if asked is not None or quantization_unset(c) else _checkpoint_method(c)


def _is_nvfp4(c: Config) -> bool:
    return c.since("0.5.23") and _method(c) == NVFP4


@_m3.refuses("SPC842", "packed-m3-drafting", raises="ValueError", since="0.5.23")
def packed_m3_drafting(c: Config) -> Refusal | None:
    """The NVFP4 checkpoint of MiniMax M3.1 drafts in few ways.

    It supports DSPARK and DFLASH only, with the vision-language class, on Blackwell, with static verification
    (`SGLANG_RAGGED_VERIFY_MODE=static`), without pipeline parallelism; DFLASH also without prefill/decode disaggregation.
    """
    if not _is_nvfp4(c) or c.speculative_algorithm is None:
        return None
    algorithm = c.speculative_algorithm
    at, fix = "speculative_algorithm", dropping("speculative_algorithm")
    if algorithm not in ("DSPARK", "DFLASH"):
        why = "it drafts with DSPARK or DFLASH only"
    elif c.model.architecture != M3[1]:
        why = "only its vision-language class hands hidden states to a draft"
    elif not is_blackwell(c):
        why = "it drafts on Blackwell only"
    elif c.env.text("SGLANG_RAGGED_VERIFY_MODE", "static") != "static":
        why, at, fix = (
            "it verifies statically only",
            "SGLANG_RAGGED_VERIFY_MODE",
            dropping_env("SGLANG_RAGGED_VERIFY_MODE"),
        )
    elif c.pp_size != 1:
        why, at, fix = "it drafts without pipeline parallelism only", "pp_size", setting(pp_size=1)
    elif algorithm == "DFLASH" and c.disaggregation_mode != "null":
        why, at, fix = (
            "DFLASH cannot be combined with disaggregation here",
            "disaggregation_mode",
            dropping("disaggregation_mode"),
        )
    else:
        return None
    shown = f"`{at}`" if at.isupper() else c.shown(at)
    return Refusal(
        at=at,
        related_fields=("speculative_algorithm", "model_path") if at != "speculative_algorithm" else ("model_path",),
        message=f"{shown} is refused for this NVFP4 checkpoint: {why}.",
        fixes=(fix, dropping("speculative_algorithm")),
    )


@_m3.refuses("SPC843", "packed-m3-settings", raises="ValueError", since="0.5.23")
def packed_m3_settings(c: Config) -> Refusal | None:
    """The NVFP4 checkpoint of MiniMax M3.1 fixes several settings.

    KV pages hold 128 tokens; on Blackwell the experts go over MegaMoE (or none with `flashinfer_trtllm_routed`) and the KV cache is
    FP8 (e4m3). Leave those flags out.
    """
    if not _is_nvfp4(c):
        return None
    if c.page_size not in (None, 128):
        at = "page_size"
    elif not is_blackwell(c):
        return None
    elif c.moe_a2a_backend not in ("none", "megamoe"):
        at = "moe_a2a_backend"
    elif c.kv_cache_dtype not in ("auto", "fp8_e4m3"):
        at = "kv_cache_dtype"
    else:
        return None
    return Refusal(
        at=at,
        related_fields=("model_path",),
        message=f"{c.shown(at)} is refused for this NVFP4 checkpoint: its kernels are made for one value only.",
    )


@_m3.adjusts(
    "page_size", "moe_runner_backend", "attention_backend", "moe_a2a_backend", "kv_cache_dtype",
    "speculative_draft_kv_cache_dtype", "speculative_draft_attention_backend", since="0.5.23",
)  # fmt: skip
def serve_packed_m3(c: Config) -> None:
    """The NVFP4 checkpoint of MiniMax M3.1 comes with its own KV layout, experts and draft settings."""
    if not _is_nvfp4(c):
        return
    if c.speculative_algorithm in ("DSPARK", "DFLASH"):
        if c.speculative_draft_kv_cache_dtype in (None, "auto"):
            c.set(speculative_draft_kv_cache_dtype="bf16")
        if c.speculative_algorithm == "DSPARK" and c.speculative_draft_attention_backend is None:
            c.set(speculative_draft_attention_backend="trtllm_mha")
    blackwell = is_blackwell(c)
    unset = all_backends_unset(c)
    if blackwell and c.moe_runner_backend != "flashinfer_trtllm_routed":
        c.set(moe_a2a_backend="megamoe")
    if c.moe_runner_backend == "auto":
        c.set(moe_runner_backend="deep_gemm" if blackwell else "marlin")
    if blackwell and c.kv_cache_dtype == "auto":
        c.set(kv_cache_dtype="fp8_e4m3")
    if unset:
        c.set(attention_backend="trtllm_mha" if blackwell else "fa3")
    c.set(page_size=128)


@_m3.adjusts("enable_aiter_allreduce_fusion", "disable_custom_all_reduce")
def sum_plainly_on_rocm(c: Config) -> None:
    """On ROCm MiniMax M3's partial sums must not be deferred, and the custom all-reduce is off unless asked for."""
    if _is_nvfp4(c) or not c.gpu.is_hip:
        return
    fused = bool(c.enable_aiter_allreduce_fusion)
    if c.ep_size > 1 and c.moe_a2a_backend == "none" and fused:
        c.set(enable_aiter_allreduce_fusion=False)
        fused = False
    if not fused and not (c.since("0.5.17") and c.env.flag("SGLANG_M3_ALLOW_CUSTOM_AR")):
        c.set(disable_custom_all_reduce=True)


@_m3.adjusts("attention_backend", "page_size")
def choose_m3_backend(c: Config) -> None:
    """MiniMax M3's sparse attention works on KV pages of 128 tokens: fa4 or trtllm_mha on SM100, fa3 on Hopper, triton on ROCm."""
    if _is_nvfp4(c):
        return
    unset = all_backends_unset(c)
    backend = c.attention_backend
    if c.gpu.is_hip:
        if unset:
            c.set(attention_backend="triton")
    elif c.gpu.sm100:
        if unset:
            fp8 = (
                c.since("0.5.17")
                and c.kv_cache_dtype == "fp8_e4m3"
                and not c.env.flag("SGLANG_DISABLE_M3_FP8_ATTN_GEMM")
            )
            backend = "trtllm_mha" if fp8 else "fa4"
            c.set(attention_backend=backend)
        paged = ("fa4", "trtllm_mha") if c.since("0.5.17") else ("fa4",)
        if c.page_size is None and backend in paged:
            c.set(page_size=128)
    elif c.gpu.sm90:
        if unset:
            backend = "fa3"
            c.set(attention_backend="fa3")
        if c.page_size is None and backend == "fa3":
            c.set(page_size=128)


@_m3.adjusts("moe_runner_backend")
def choose_m3_moe_runner(c: Config) -> None:
    """MiniMax M3 runs MXFP8 experts on DeepGEMM (SM100) or triton (ROCm), and bfloat16 ones on triton."""
    if _is_nvfp4(c):
        return
    runner = c.moe_runner_backend
    method = _method(c)
    if runner == "auto":
        if c.gpu.is_hip and method == "mxfp8":
            runner = "triton"
        elif c.gpu.sm100 and method == "mxfp8":
            runner = "deep_gemm"
        elif c.gpu.sm100 and method == "modelopt_mixed" and c.since("0.5.17"):
            runner = "flashinfer_trtllm_routed"
    if method is None and runner in ("auto", "deep_gemm"):
        runner = "triton"
    c.set(moe_runner_backend=runner)


@_m3.adjusts("quantization")
def take_m3_quantization(c: Config) -> None:
    """The checkpoint's own quantization."""
    method = _checkpoint_method(c)
    if c.quantization is None and not quantization_unset(c) and method is not None:
        c.set(quantization=method)


overrides = (_m2, _m3)
