"""TensorRT-LLM's attention: the hardware and the launches it exists for."""

from __future__ import annotations

from spec_lsp.resolution.attention.common import IN_POST_INIT, any_backend_is, backend_field, field_naming
from spec_lsp.resolution.engine import (
    Change,
    Config,
    Handler,
    Refusal,
    as_far_as_known,
    dropping,
    dropping_env,
    setting,
)

handler = Handler("attention_hook.py:handle_attention_backend_compatibility", earlier=IN_POST_INIT)


@handler.refuses(
    "SPC219",
    "trtllm-mha-off-sm100",
    raises="ValueError",
    until="0.5.10",
    hardware_only=True,
    bad="sglang=0.5.9 -- --attention-backend trtllm_mha",
    good="sglang=0.5.9 gpu=b200 -- --attention-backend trtllm_mha",
)
def trtllm_mha_off_sm100(c: Config) -> Refusal | None:
    """In these releases TensorRT-LLM's attention exists for SM100 only.

    Later releases decode with it on Hopper and SM120 too. Use fa3 on Hopper, flashinfer elsewhere.
    """
    if not any_backend_is(c, "trtllm_mha") or c.gpu.sm100:
        return None
    at = field_naming(c, "trtllm_mha")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused on {c.gpu.title}: in this release its kernels are for SM100 only.",
        fixes=_other_plain_backends(c, at),
    )


@as_far_as_known
def _other_plain_backends(c: Config, at: str) -> tuple[Change, ...]:
    names = ("fa3", "flashinfer") if c.gpu.sm90 else ("aiter", "triton") if c.gpu.is_hip else ("flashinfer", "triton")
    return (dropping(at), *(setting(**{at: name}) for name in names))


@handler.refuses(
    "SPC212",
    "trtllm-mha-prefill-hardware",
    raises="ValueError",
    since="0.5.10",
    hardware_only=True,
    bad=("gpu=a100 -- --attention-backend trtllm_mha", "sglang=0.5.18 gpu=h100 -- --attention-backend trtllm_mha"),
    good=(
        "gpu=h100 -- --attention-backend trtllm_mha",
        "sglang=0.5.18 gpu=h100 -- --decode-attention-backend trtllm_mha",
    ),
)
def trtllm_mha_prefill_hardware(c: Config) -> Refusal | None:
    """TensorRT-LLM's attention has no prefill kernels for this hardware.

    Since 0.5.19 it prefills on Hopper (SM90), SM100 and SM120; before that on SM100 only, although it decodes on the
    others. Split the backends (`--prefill-attention-backend` and `--decode-attention-backend`) or use another one.
    """
    if (c.prefill_attention_backend or c.attention_backend) != "trtllm_mha":
        return None
    if c.gpu.sm100 or (c.since("0.5.19") and (c.gpu.sm90 or c.gpu.sm120)):
        return None
    at = backend_field(c, "prefill")
    which = "SM90, SM100 and SM120" if c.since("0.5.19") else "SM100"
    fixes = _other_plain_backends(c, at)
    if at == "attention_backend" and (c.gpu.sm90 or c.gpu.sm120):
        fixes = (setting(prefill_attention_backend="fa3" if c.gpu.sm90 else "flashinfer"), *fixes)
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused for prefill on {c.gpu.title}: its prefill kernels are for {which}.",
        fixes=fixes,
    )


@handler.refuses(
    "SPC213",
    "trtllm-mha-fp8-prefill-on-sm120",
    raises="ValueError",
    since="0.5.19",
    bad="gpu=rtxpro6000 -- --attention-backend trtllm_mha --kv-cache-dtype fp8_e4m3",
    good="gpu=rtxpro6000 -- --attention-backend trtllm_mha",
)
def trtllm_mha_fp8_prefill_on_sm120(c: Config) -> Refusal | None:
    """On SM120, TensorRT-LLM's prefill reads no fp8 KV cache and cannot skip softmax.

    The prefill kernels for workstation Blackwell support neither. Keep the cache in bfloat16, unset
    SGLANG_SKIP_SOFTMAX_PREFILL_THRESHOLD_SCALE_FACTOR, or prefill with flashinfer.
    """
    if (c.prefill_attention_backend or c.attention_backend) != "trtllm_mha" or not c.gpu.sm120:
        return None
    variable = "SGLANG_SKIP_SOFTMAX_PREFILL_THRESHOLD_SCALE_FACTOR"
    fp8 = c.kv_cache_dtype == "fp8_e4m3"
    if not fp8 and not c.env.number(variable, 0.0) > 0:
        return None
    at = backend_field(c, "prefill")
    what = c.shown("kv_cache_dtype") if fp8 else f"`{variable}`"
    return Refusal(
        at="kv_cache_dtype" if fp8 and c.given("kv_cache_dtype") else at,
        related_fields=(at, "kv_cache_dtype" if fp8 else variable),
        message=f"{what} is refused with trtllm_mha prefill on {c.gpu.title}: the SM120 kernels do not have it.",
        fixes=(
            dropping("kv_cache_dtype") if fp8 else dropping_env(variable),
            setting(prefill_attention_backend="flashinfer"),
        ),
    )


@handler.refuses(
    "SPC214",
    "trtllm-mha-decode-hardware",
    raises="ValueError",
    since="0.5.10",
    hardware_only=True,
    bad="gpu=a100 -- --decode-attention-backend trtllm_mha",
    good="gpu=b200 -- --decode-attention-backend trtllm_mha",
)
def trtllm_mha_decode_hardware(c: Config) -> Refusal | None:
    """TensorRT-LLM's attention decodes on Hopper, SM100 and SM120 only.

    Elsewhere use flashinfer (NVIDIA), aiter (AMD) or triton.
    """
    if (c.decode_attention_backend or c.attention_backend) != "trtllm_mha":
        return None
    if c.gpu.sm90 or c.gpu.sm100 or c.gpu.sm120:
        return None
    at = backend_field(c, "decode")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused for decoding on {c.gpu.title}: its kernels are for SM90, SM100 and SM120.",
        fixes=_other_plain_backends(c, at),
    )


@handler.refuses(
    "SPC215",
    "trtllm-mha-context-parallel-prefill",
    raises="ValueError",
    since="0.5.19",
    bad="model=qwen3-30b-a3b -- --tp-size 4 --attention-backend trtllm_mha --attn-cp-size 2 --enable-prefill-cp "
    "--cp-strategy zigzag",
    good="model=qwen3-30b-a3b gpu=b200 -- --tp-size 4 --attention-backend trtllm_mha",
)
def trtllm_mha_context_parallel_prefill(c: Config) -> Refusal | None:
    """Off SM100, TensorRT-LLM's prefill cannot mask a sequence split over GPUs.

    Context parallelism gives each GPU a part of the sequence; the prefill kernels of Hopper and SM120 cannot mask the
    parts. Prefill with fa3 (Hopper) or flashinfer, or leave context parallelism.
    """
    if (c.prefill_attention_backend or c.attention_backend) != "trtllm_mha" or c.gpu.sm100:
        return None
    if c.attn_cp_size <= 1 and not (c.before("0.5.20") and c.enable_prefill_context_parallel):
        return None
    at = backend_field(c, "prefill")
    return Refusal(
        at=at,
        related_fields=("attn_cp_size",),
        message=f"{c.shown(at)} is refused for prefill with {c.shown('attn_cp_size')} on {c.gpu.title}: its kernels "
        "there cannot mask a sequence that is split over GPUs.",
        fixes=(*_other_plain_backends(c, at), setting(attn_cp_size=1)),
    )
