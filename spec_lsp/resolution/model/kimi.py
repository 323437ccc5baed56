"""Kimi K3, Kimi Linear and GLM-5-Next.

Follows arg_groups/model_overrides/kimi_k3.py, kimi_k3_hook.py and glm5_next_hook.py.

Left out: whether the installed FlashInfer (0.6.17 or newer) and aiter have the kernels for decode context parallelism.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.resolution.attention import backends_of
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.linear_attention import ragged_verify_mode
from spec_lsp.resolution.model.common import all_backends_unset

_k3 = Handler(
    "kimi_k3.py:_kimi_k3_overrides",
    since="0.5.17",
    when=lambda c: c.model.architecture == "KimiK3ForConditionalGeneration",
    rare=True,
)


def _decode_backends(c: Config) -> tuple[str, ...]:
    return (
        "cutedsl_mla",
        *(("tokenspeed_mla",) if c.before("0.5.23") else ()),
        *(("aiter",) if c.since("0.5.20") else ()),
    )


@_k3.refuses("SPC844", "kimi-dspark-dcp-with-ragged-verify", raises="ValueError")
def kimi_dspark_dcp_with_ragged_verify(c: Config) -> Refusal | None:
    """Kimi K3 verifies DSPARK drafts statically under decode context parallelism.

    With `--dcp-size` above 1 leave `SGLANG_RAGGED_VERIFY_MODE` out (or `static`).
    """
    if c.dcp_size <= 1 or c.speculative_algorithm != "DSPARK" or ragged_verify_mode(c) == "static":
        return None
    return Refusal(
        at="SGLANG_RAGGED_VERIFY_MODE",
        related_fields=("dcp_size", "speculative_algorithm"),
        message=f"`SGLANG_RAGGED_VERIFY_MODE` is refused with {c.shown('dcp_size')} and DSPARK for Kimi K3: only static verification "
        "is known to be right there.",
        fixes=(dropping_env("SGLANG_RAGGED_VERIFY_MODE"), dropping("dcp_size")),
    )


@_k3.refuses(
    "SPC845",
    "kimi-dcp-off-its-backends",
    raises="AssertionError",
    bad="gpu=b200 model=kimi-k3 -- --tp-size 8 --dcp-size 2 --attention-backend triton",
    good="gpu=b200 model=kimi-k3 -- --tp-size 8",
)
def kimi_dcp_off_its_backends(c: Config) -> Refusal | None:
    """Kimi K3's decode context parallelism runs on cutedsl_mla or, on AMD GPUs, on aiter.

    With `--dcp-size` above 1 leave the attention backends out.
    """
    _, decode = backends_of(c)
    if c.dcp_size <= 1 or decode is None or decode in _decode_backends(c):
        return None
    at = "decode_attention_backend" if c.decode_attention_backend else "attention_backend"
    return Refusal(
        at=at,
        related_fields=("dcp_size",),
        message=f"{c.shown(at)} is refused with {c.shown('dcp_size')} for Kimi K3: decode must run on "
        f"{' or '.join(_decode_backends(c))}.",
        fixes=(dropping(at), setting(decode_attention_backend="cutedsl_mla"), dropping("dcp_size")),
    )


@_k3.adjusts(
    "enable_symm_mem", "speculative_attention_mode", "prefill_attention_backend", "decode_attention_backend",
    "kv_cache_dtype", "dcp_replicate_q_proj", "dcp_comm_backend",
)  # fmt: skip
def share_out_kimi_decode(c: Config) -> None:
    """Under decode context parallelism Kimi K3 runs on backends of its own, with the query projection replicated."""
    if c.dcp_size <= 1:
        return
    prefill, decode = backends_of(c)
    if c.enable_symm_mem:
        c.set(enable_symm_mem=False)
    if c.speculative_algorithm == "DSPARK":
        c.set(speculative_attention_mode="decode")
    if decode == "aiter":
        c.set(prefill_attention_backend="triton" if prefill == "triton" else "aiter", decode_attention_backend="aiter")
    elif decode == "tokenspeed_mla":
        c.set(prefill_attention_backend=decode, decode_attention_backend=decode, kv_cache_dtype="fp8_e4m3")
    else:
        c.set(prefill_attention_backend="trtllm_mla", decode_attention_backend="cutedsl_mla")
    if c.dcp_replicate_q_proj is None and (c.before("0.5.20") or c.dcp_comm_backend in ("a2a", "fi_a2a")):
        c.set(dcp_replicate_q_proj=True)
    if c.before("0.5.20"):
        c.set(dcp_comm_backend="a2a")


@_k3.adjusts("decode_attention_backend", "prefill_attention_backend", "speculative_attention_mode")
def choose_kimi_backend(c: Config) -> None:
    """On SM100 Kimi K3 runs on trtllm_mla, and DSPARK verifies on the decode backend."""
    if c.dcp_size > 1 or not c.gpu.sm100:
        return
    unset = all_backends_unset(c)
    backend = "trtllm_mla" if unset else backends_of(c)[1]
    if unset:
        c.set(decode_attention_backend="trtllm_mla", prefill_attention_backend="trtllm_mla")
    if c.speculative_algorithm == "DSPARK" and backend in ("trtllm_mla", "cutedsl_mla"):
        c.set(speculative_attention_mode="decode")


_k3_moe = Handler(
    "kimi_k3.py:_kimi_k3_moe_runner_overrides",
    since="0.5.17",
    when=lambda c: c.model.architecture == "KimiK3ForConditionalGeneration" and c.gpu.sm100,
)


@_k3_moe.adjusts("moe_runner_backend")
def choose_kimi_moe_runner(c: Config) -> None:
    """On SM100 Kimi K3's MXFP4 experts run on FlashInfer's kernels."""
    config = c.model.text_hf("quantization_config") or c.model.hf("quantization_config") or {}
    groups = (config.get("config_groups") or {}).values()
    packed = any("mxfp4" in str(group.get("format", "")) for group in groups if isinstance(group, Mapping))
    if c.moe_runner_backend == "auto" and packed:
        c.set(moe_runner_backend="flashinfer_mxfp4")


_linear_defaults = Handler(
    "kimi_k3_hook.py:apply_kimi_k3_linear_attn_defaults",
    since="0.5.17",
    when=lambda c: c.model.architecture in ("KimiLinearForCausalLM", "KimiK3ForConditionalGeneration"),
)


@_linear_defaults.adjusts("linear_attn_decode_backend")
def decode_kimi_on_triton(c: Config) -> None:
    """On SM100 with a bfloat16 state the Triton kernels decode Kimi's linear attention fastest."""
    if c.linear_attn_decode_backend is None and c.mamba_ssm_dtype == "bfloat16" and c.gpu.sm100:
        c.set(linear_attn_decode_backend="triton")


@_linear_defaults.adjusts("linear_attn_verify_backend", "speculative_draft_attention_backend")
def verify_kimi_drafts(c: Config) -> None:
    """Kimi's linear attention verifies draft tokens in a fused CuTe DSL kernel; DSPARK drafts on trtllm_mha (SM100)."""
    if c.speculative_algorithm is None:
        return
    if c.linear_attn_verify_backend is None:
        c.set(linear_attn_verify_backend="nv_cutedsl")
    if c.speculative_algorithm == "DSPARK" and c.speculative_draft_attention_backend is None and c.gpu.sm100:
        c.set(speculative_draft_attention_backend="trtllm_mha")


_glm5_next = Handler(
    "glm5_next_hook.py:apply_glm5_next_spec_backend_defaults",
    since="0.5.22",
    when=lambda c: c.model.architecture == "Glm5NextForConditionalGeneration",
)


@_glm5_next.adjusts("linear_attn_verify_backend")
def verify_glm5_next_drafts(c: Config) -> None:
    """On SM100 GLM-5-Next's linear attention verifies draft tokens in a fused CuTe DSL kernel."""
    if c.speculative_algorithm is not None and c.linear_attn_verify_backend is None and c.gpu.sm100:
        c.set(linear_attn_verify_backend="nv_cutedsl")


overrides = (_k3, _k3_moe)
after_overrides = (_linear_defaults, _glm5_next)
