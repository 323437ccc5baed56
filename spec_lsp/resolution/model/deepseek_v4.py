"""DeepSeek V4 and V4.1. Follows arg_groups/model_overrides/deepseek_v4.py and arg_groups/deepseek_v4_hook.py.

Left out: whether the routed experts are stored in FP4 where neither config.json nor `SGLANG_DSV4_FP4_EXPERTS` says so (their
safetensors are not read): the MoE runner becomes unknown. Environment variables that SGLang sets for its own kernels.
"""

from __future__ import annotations

from spec_lsp.facts import quantization
from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution import cuda_graph, ranks
from spec_lsp.resolution.attention import backends_of, has_flashinfer
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, dropping_env, setting, setting_env
from spec_lsp.resolution.linear_attention import ragged_verify_mode
from spec_lsp.resolution.model.common import cp_field, cp_mode_field


def is_v4(c: Config) -> bool:
    """DeepSeek V4 as a target."""
    return c.model.architecture == "DeepseekV4ForCausalLM"


def is_v41(c: Config) -> bool:
    """DeepSeek V4.1."""
    return c.model.model_type == "deepseek_v41"


def has_fp4_experts(c: Config) -> bool:
    """`model_config.is_fp4_experts`: the routed experts are stored in MXFP4."""
    config = c.model.quantization_config or {}
    declared = config.get("routed_experts_quant_method")
    if declared == "mxfp4":
        return True
    mimo = c.model.architecture in ("MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM")
    if mimo and str(config.get("store_dtype") or "").lower() == "mxfp4":
        return True
    if not c.model.is_deepseek_v4 or declared is not None:
        return False
    if c.env.is_set("SGLANG_DSV4_FP4_EXPERTS") and not c.env.is_set("SGLANG_DSV4_FP4_DEQUANT"):
        return c.env.flag("SGLANG_DSV4_FP4_EXPERTS", True)
    stored = c.model.hf("fp4_experts")
    if stored is None:
        raise NotKnown("the checkpoint's experts", "config.json does not say how they are stored")
    return bool(stored)


def _has_nvfp4_experts(c: Config) -> bool:
    """`model_config.nvfp4_moe_meta`: a hybrid checkpoint with FP8 layers and NVFP4 experts."""
    config = quantization.config_json(c.model, c.release) or {}
    return (
        str(config.get("quant_algo", "")).upper() == "MIXED_PRECISION"
        and str(config.get("moe_quant_algo", "")).upper() == "NVFP4"
        and config.get("group_size") is not None
    )


# --- defaults ----------------------------------------------------------------------------------------------------------

_overrides = Handler("deepseek_v4.py:_deepseek_v4_overrides", when=is_v4, since="0.5.12", rare=True)


@_overrides.adjusts("attention_backend", "prefill_attention_backend", "decode_attention_backend", "page_size")
def attend_as_v4(c: Config) -> None:
    """DeepSeek V4 has an attention backend of its own, which works on KV pages of 256 tokens."""
    c.set(attention_backend="dsv4", page_size=128 if c.device == "npu" else 256)
    if c.device == "npu":
        c.set(prefill_attention_backend="dsv4", decode_attention_backend="dsv4")


@_overrides.adjusts("fp8_gemm_runner_backend", since="0.5.21")
def multiply_v41_in_cutedsl(c: Config) -> None:
    """On SM100 V4.1's MXFP8 blocks run on FlashInfer's CuTe DSL kernels."""
    if not is_v41(c) or c.device != "cuda" or not c.gpu.sm100 or c.fp8_gemm_runner_backend != "auto":
        return
    config = c.model.quantization_config or {}
    blocks = config.get("quant_method") == "fp8" and list(config.get("weight_block_size") or ()) == [32, 32]
    if blocks and config.get("scale_fmt") == "ue8m0" and has_flashinfer(c):
        c.set(fp8_gemm_runner_backend="flashinfer_cutedsl")


@_overrides.adjusts("swa_full_tokens_ratio")
def small_window_pool(c: Config) -> None:
    """V4's windows are short, so a tenth of the tokens is enough for their pool."""
    if c.since("0.5.20"):
        if c.swa_full_tokens_ratio is None and not is_v41(c):
            c.set(swa_full_tokens_ratio=0.1)
    elif c.swa_full_tokens_ratio == 0.8:
        c.set(swa_full_tokens_ratio=0.1)


@_overrides.adjusts("moe_runner_backend")
def choose_v4_moe_runner(c: Config) -> None:
    """V4's FP4 experts run on FlashInfer's kernels."""
    if c.moe_runner_backend != "auto":
        return
    if c.since("0.5.14") and _has_nvfp4_experts(c):
        c.set(moe_runner_backend="flashinfer_trtllm_routed")
    elif c.since("0.5.19") and _runs_mxfp4(c) and has_fp4_experts(c):
        c.set(moe_runner_backend="flashinfer_mxfp4")


def _runs_mxfp4(c: Config) -> bool:
    devices = c.gpu.sm90 or c.gpu.sm100 or c.gpu.sm120
    return bool(
        c.device == "cuda" and devices and c.moe_a2a_backend == "none" and not c.env.flag("SGLANG_DSV4_FP4_DEQUANT")
    )


_dtype = Handler("overrides.py:_deepseek_v4_kv_cache_dtype", when=is_v4, since="0.5.12")


@_dtype.adjusts("kv_cache_dtype")
def v4_cache_dtype(c: Config) -> None:
    """DeepSeek V4 keeps its KV cache in FP8."""
    if c.device == "npu":
        c.set(kv_cache_dtype="bfloat16")
    elif c.kv_cache_dtype == "auto":
        c.set(kv_cache_dtype="fp8_e4m3")


@_dtype.refuses(
    "SPC846",
    "v4-cache-dtype-unsupported",
    raises="AssertionError",
    bad="gpu=b200 model=v4 -- --tp-size 8 --kv-cache-dtype fp8_e5m2",
    good="gpu=b200 model=v4 -- --tp-size 8",
)
def v4_cache_dtype_unsupported(c: Config) -> Refusal | None:
    """DeepSeek V4 reads an FP8 (e4m3) or a bfloat16 KV cache, nothing else.

    Leave `--kv-cache-dtype` out to get FP8.
    """
    if c.kv_cache_dtype in ("fp8_e4m3", "bfloat16"):
        return None
    return Refusal(
        at="kv_cache_dtype",
        related_fields=("model_path",),
        message=f"{c.shown('kv_cache_dtype')} is refused for DeepSeek V4: its kernels read fp8_e4m3 or bfloat16 only.",
        fixes=(dropping("kv_cache_dtype"), setting(kv_cache_dtype="fp8_e4m3")),
    )


_defaults = Handler("deepseek_v4_hook.py:apply_deepseek_v4_defaults", when=is_v4, since="0.5.12")


@_defaults.adjusts("dsv4_attn_backend", since="0.5.23")
def choose_v4_kernels(c: Config) -> None:
    """V4's attention runs on FlashMLA; V4.1 on SM100 with whole heads on its fused kernels."""
    if c.dsv4_attn_backend != "auto":
        return
    parallel_heads = not c.enable_prefill_cp and ranks.attention_tp_size(c) > 1
    layout = c.env.text("SGLANG_DSV4_KV_LAYOUT")
    mega = (
        is_v41(c)
        and c.device == "cuda"
        and c.gpu.sm100
        and c.kv_cache_dtype == "fp8_e4m3"
        and not (c.disaggregation_mode == "null" and parallel_heads)
        and (layout is None or layout.lower() in ("auto", "v41", "v41_new"))
    )
    c.set(dsv4_attn_backend="flashmla_mega" if mega else "flashmla")


@_defaults.refuses(
    "SPC847",
    "v4-fused-kernels-elsewhere",
    raises="AssertionError",
    bad="gpu=h100 model=v4 -- --tp-size 8 --dsv4-attn-backend flashmla_mega",
    good="gpu=h100 model=v4 -- --tp-size 8",
    since="0.5.23",
)
def v4_fused_kernels_elsewhere(c: Config) -> Refusal | None:
    """The flashmla_mega kernels are for DeepSeek V4.1 on SM100.

    Leave `--dsv4-attn-backend` at auto.
    """
    if c.dsv4_attn_backend != "flashmla_mega" or (is_v41(c) and c.device == "cuda" and c.gpu.sm100):
        return None
    return Refusal(
        at="dsv4_attn_backend",
        related_fields=("model_path",),
        message=f"{c.shown('dsv4_attn_backend')} is refused: those kernels serve DeepSeek V4.1 on SM100 only.",
    )


@_defaults.refuses(
    "SPC848",
    "v4-trtllm-kernels-unsupported",
    raises="AssertionError",
    bad="gpu=h100 model=v4 -- --tp-size 8 --dsv4-attn-backend trtllm",
    good="gpu=h100 model=v4 -- --tp-size 8",
    since="0.5.20",
)
def v4_trtllm_kernels_unsupported(c: Config) -> Refusal | None:
    """DeepSeek V4's trtllm kernels work with few other features.

    `--dsv4-attn-backend trtllm` needs SM100, an FP8 KV cache and chunked prefill, and cannot be combined with HiSparse, context parallelism
    or prefill/decode disaggregation. Leave it at auto otherwise.
    """
    if c.dsv4_attn_backend != "trtllm":
        return None
    at = None
    if c.device != "cuda" or not c.gpu.sm100:
        at = "dsv4_attn_backend"
    elif c.kv_cache_dtype not in ("auto", "fp8_e4m3"):
        at = "kv_cache_dtype"
    elif c.enable_hisparse:
        at = "enable_hisparse"
    elif c.enable_prefill_cp or c.attn_cp_size > 1 or c.dcp_size > 1:
        at = "enable_prefill_cp" if c.enable_prefill_cp else "attn_cp_size" if c.attn_cp_size > 1 else "dcp_size"
    elif c.disaggregation_mode != "null":
        at = "disaggregation_mode"
    elif c.chunked_prefill_size is None or c.chunked_prefill_size <= 0:
        at = "chunked_prefill_size"
    if at is None:
        return None
    return Refusal(
        at=at,
        related_fields=("dsv4_attn_backend",) if at != "dsv4_attn_backend" else (),
        message=f"{c.shown('dsv4_attn_backend')} is refused"
        + (f" on {c.gpu.title}." if at == "dsv4_attn_backend" else f" with {c.shown(at)}."),
        fixes=(dropping("dsv4_attn_backend"), dropping(at)),
    )


@_defaults.adjusts("max_running_requests")
def bound_v4_requests(c: Config) -> None:
    """DeepSeek V4 serves at most 256 requests at once unless you say otherwise."""
    if c.max_running_requests is None:
        c.set(max_running_requests=256)


@_defaults.refuses("SPC849", "v4-drafting-unsupported", raises="AssertionError")
def v4_drafting_unsupported(c: Config) -> Refusal | None:
    """DeepSeek V4 drafts with EAGLE in one chain, or with DSPARK.

    SGLang looks for exactly `--speculative-algorithm EAGLE` with `--speculative-eagle-topk 1` typed out (and from 0.5.16 for
    `DSPARK`): other algorithms, the name NEXTN, a tree, or topk left out are refused.
    """
    algorithm = c.speculative_algorithm
    if algorithm is None:
        return None
    known = ("EAGLE", "DSPARK") if c.since("0.5.16") else ("EAGLE",)
    if algorithm not in known:
        return Refusal(
            at="speculative_algorithm",
            related_fields=("model_path",),
            message=f"{c.shown('speculative_algorithm')} is refused for DeepSeek V4: it drafts with {' or '.join(known)} only.",
            fixes=(
                setting(speculative_algorithm="EAGLE"),
                setting(speculative_algorithm="EAGLE", speculative_eagle_topk=1),
                setting(
                    speculative_algorithm="EAGLE",
                    speculative_num_steps=3,
                    speculative_eagle_topk=1,
                    speculative_num_draft_tokens=4,
                ),
                dropping("speculative_algorithm"),
            ),
        )
    if algorithm != "EAGLE" or c.speculative_eagle_topk == 1:
        return None
    given = c.given("speculative_eagle_topk")
    return Refusal(
        at="speculative_eagle_topk" if given else "speculative_algorithm",
        related_fields=("speculative_algorithm",) if given else (),
        message=f"{c.shown('speculative_eagle_topk' if given else 'speculative_algorithm')} is refused for DeepSeek V4: it drafts "
        "in one chain, and needs `--speculative-eagle-topk 1` typed out.",
        fixes=(
            setting(speculative_eagle_topk=1),
            setting(speculative_num_steps=3, speculative_eagle_topk=1, speculative_num_draft_tokens=4),
        ),
    )


@_defaults.refuses(
    "SPC879",
    "v4-disaggregated-in-stages",
    raises="ValueError",
    bad="model=v4 -- --tp-size 8 --pp-size 2 --disaggregation-mode prefill",
    good="model=v4 -- --tp-size 8 --disaggregation-mode prefill",
    until="0.5.13",
)
def v4_disaggregated_in_stages(c: Config) -> Refusal | None:
    """DeepSeek V4's cache could not be transferred between pipeline stages.

    In 0.5.12 prefill/decode disaggregation of V4 needs `--pp-size 1`.
    """
    if c.disaggregation_mode == "null" or c.pp_size <= 1:
        return None
    return Refusal(
        at="pp_size",
        related_fields=("disaggregation_mode",),
        message=f"{c.shown('pp_size')} is refused with {c.shown('disaggregation_mode')} for DeepSeek V4 in this release: its cache "
        "cannot be cut into pipeline stages.",
        fixes=(setting(pp_size=1), dropping("disaggregation_mode")),
    )


# --- V4.1 --------------------------------------------------------------------------------------------------------------

_features = Handler("deepseek_v4_hook.py:validate_deepseek_v41_features", when=is_v4, since="0.5.21")


@_features.refuses(
    "SPC850",
    "encoder-replay-off-v41",
    raises="ValueError",
    bad="model=v4 -- --tp-size 8 --enable-encoder-swa-bounded-replay",
    good="model=v4 -- --tp-size 8",
)
def encoder_replay_off_v41(c: Config) -> Refusal | None:
    """Replaying encoder windows is for DeepSeek V4.1.

    Leave `--enable-encoder-swa-bounded-replay` out for V4.
    """
    if is_v41(c) or not c.enable_encoder_swa_bounded_replay:
        return None
    return Refusal(
        at="enable_encoder_swa_bounded_replay",
        related_fields=("model_path",),
        message="`--enable-encoder-swa-bounded-replay` is refused: only DeepSeek V4.1 has such windows.",
    )


@_features.refuses(
    "SPC885",
    "v41-prefill-graphs-of-trtllm",
    raises="ValueError",
    bad="gpu=b200 model=v41 -- --tp-size 8 --dsv4-attn-backend trtllm --cuda-graph-backend-prefill full",
    good="gpu=b200 model=v41 -- --tp-size 8 --dsv4-attn-backend trtllm --cuda-graph-backend-prefill disabled",
    since="0.5.22",
)
def v41_prefill_graphs_of_trtllm(c: Config) -> Refusal | None:
    """DeepSeek V4.1 on TensorRT-LLM kernels has few prefill graphs.

    With `--dsv4-attn-backend trtllm` prefill runs eagerly or, from 0.5.23 on, in breakable graphs.
    """
    if not is_v41(c) or c.dsv4_attn_backend != "trtllm" or _prefill_graph(c) in _replayable_graphs(c):
        return None
    return Refusal(
        at="dsv4_attn_backend",
        related_fields=("cuda_graph_backend_prefill",),
        message=f"{c.shown('dsv4_attn_backend')} is refused with {_prefill_graph(c)} prefill graphs for DeepSeek V4.1. Set "
        f"`--cuda-graph-backend-prefill {' or '.join(_replayable_graphs(c))}`.",
        fixes=tuple(setting(cuda_graph_backend_prefill=backend) for backend in _replayable_graphs(c)),
    )


def _prefill_graph(c: Config) -> str:
    return cuda_graph.backend_of(c, cuda_graph.PREFILL)


def _replayable_graphs(c: Config) -> tuple[str, ...]:
    """The prefill graph backends that work with replayed windows and TensorRT-LLM kernels."""
    return (cuda_graph.DISABLED, *((cuda_graph.BREAKABLE,) if c.since("0.5.23") else ()))


def _encoder_replay_conflict(c: Config) -> str | None:
    """The first field that replaying encoder windows cannot be combined with; ROCm supports it since 0.5.22, on gfx950."""
    now, rocm = c.since("0.5.23"), c.gpu.is_hip
    no_hardware = not (c.gpu.is_cuda or (c.since("0.5.22") and rocm and c.gpu.gfx95))
    graphs = _prefill_graph(c)
    disaggregated = c.disaggregation_mode == "decode" or (rocm and c.disaggregation_mode == "prefill")
    conflicts = (
        ("enable_encoder_swa_bounded_replay", no_hardware),
        ("cuda_graph_backend_prefill", graphs not in _replayable_graphs(c) or (rocm and graphs != cuda_graph.DISABLED)),
        ("attn_cp_size", c.attn_cp_size > 1),
        (ranks.attention_dp_field(c), ranks.attention_dp(c) and (rocm or not now)),
        ("enable_unified_cache_external_linker", not now and bool(c.enable_unified_cache_external_linker)),
        ("enable_unified_memory", bool(c.enable_unified_memory)),
        ("disaggregation_mode", disaggregated if now else c.disaggregation_mode != "null"),
        ("enable_mixed_chunk", bool(c.enable_mixed_chunk)),
        ("enable_lora", bool(c.enable_lora)),
        ("enable_session_radix_cache", bool(c.enable_session_radix_cache)),
    )
    return next((name for name, conflict in conflicts if conflict), None)


def _v41_conflict(c: Config) -> tuple[str, str] | None:
    """The first feature that V4.1 does not support: the field, and why."""
    replay = c.enable_encoder_swa_bounded_replay
    if replay and (name := _encoder_replay_conflict(c)):
        if name == "enable_encoder_swa_bounded_replay":
            return name, f"{c.gpu.title} cannot replay its encoder's windows"
        return name, "it cannot be combined with `--enable-encoder-swa-bounded-replay`"
    algorithm = c.speculative_algorithm
    unsupported = (
        (
            "speculative_algorithm",
            algorithm is not None and str(algorithm).upper() != "DSPARK",
            "V4.1 drafts with DSPARK only",
        ),
        ("enable_hisparse", bool(c.enable_hisparse), "V4.1 has no HiSparse"),
        (
            "SGLANG_HACK_FLASHMLA_BACKEND",
            c.gpu.is_hip and c.env.text("SGLANG_HACK_FLASHMLA_BACKEND") == "unified_kv_triton",
            "its caches do not share a layout",
        ),
        (
            "dsv4_attn_backend",
            c.dsv4_attn_backend == "trtllm" and (c.before("0.5.22") or bool(replay or _decoder_replay_before(c))),
            "its kernels replay no windows",
        ),
        ("enable_two_batch_overlap", bool(c.enable_two_batch_overlap), "V4.1 does not overlap batches"),
        ("pp_size", c.pp_size > 1, "V4.1 has no pipeline stages"),
    )
    return next(((name, why) for name, conflict, why in unsupported if conflict), None)


def _decoder_replay_before(c: Config) -> bool:
    """Whether 0.5.22 was asked to replay decoder windows; in later releases TensorRT-LLM kernels support that."""
    return c.before("0.5.23") and bool(c.enable_decoder_swa_bounded_replay)


@_features.refuses("SPC851", "feature-unknown-to-v41", raises="ValueError")
def feature_unknown_to_v41(c: Config) -> Refusal | None:
    """DeepSeek V4.1 does not support this feature.

    It drafts with DSPARK only and has no HiSparse, two-batch overlap or pipeline parallelism; replaying encoder windows excludes
    mixed chunks, LoRA, radix sessions, unified memory, context parallelism and decode servers.
    """
    found = _v41_conflict(c) if is_v41(c) else None
    if found is None:
        return None
    at, why = found
    return Refusal(
        at=at,
        related_fields=("model_path",),
        message=f"{f'`{at}`' if at.isupper() else c.shown(at)} is refused for DeepSeek V4.1: {why}.",
        fixes=(dropping_env(at) if at.isupper() else dropping(at), dropping("enable_encoder_swa_bounded_replay")),
    )


@_features.adjusts("enable_decoder_swa_bounded_replay", since="0.5.23")
def replay_decoder_windows(c: Config) -> None:
    """V4.1 replays its decoder's windows where the rest of the launch allows it."""
    if not is_v41(c) or c.enable_decoder_swa_bounded_replay is not None:
        return
    graphs = cuda_graph.backend_of(c, cuda_graph.PREFILL) in (cuda_graph.DISABLED, cuda_graph.BREAKABLE)
    runners = ("none",) if c.gpu.is_hip else ("none", "megamoe")
    whole = c.attn_dp_size == c.tp_size and c.attn_cp_size == 1 and c.moe_a2a_backend in runners
    c.set(
        enable_decoder_swa_bounded_replay=bool(
            (c.gpu.is_cuda or c.gpu.is_hip)
            and (c.disaggregation_mode == "null" or c.gpu.is_cuda)
            and not (c.enable_prefill_cp or c.attn_cp_size != 1 or c.dcp_size != 1)
            and not c.enable_return_hidden_states
            and graphs
            and (whole or not ranks.attention_dp(c))
        )
    )


@_features.refuses(
    "SPC886",
    "decoder-replay-conflict",
    raises="ValueError",
    bad="model=v41 -- --tp-size 8 --enable-decoder-swa-bounded-replay --attn-dp-size 4",
    good="model=v41 -- --tp-size 8 --enable-decoder-swa-bounded-replay",
)
def decoder_replay_conflict(c: Config) -> Refusal | None:
    """Replaying decoder windows works with few parallel layouts.

    `--enable-decoder-swa-bounded-replay` runs late layers of DeepSeek V4.1 on each request's last tokens only. It needs eager or
    (from 0.5.22 on) breakable prefill, and under attention data parallelism, which 0.5.21 excludes, one rank to a group and a plain
    (on NVIDIA also MegaMoE) exchange.
    """
    if not is_v41(c) or not c.given("enable_decoder_swa_bounded_replay") or not c.enable_decoder_swa_bounded_replay:
        return None
    runners = ("none",) if c.gpu.is_hip else ("none", "megamoe") if c.gpu.is_cuda else ()
    groups = ranks.attention_dp_field(c)
    graphs = (cuda_graph.DISABLED, *((cuda_graph.BREAKABLE,) if c.since("0.5.22") else ()))
    if _prefill_graph(c) not in graphs:
        at = "cuda_graph_backend_prefill"
    elif not ranks.attention_dp(c):
        return None
    elif c.before("0.5.22") or ranks.attention_dp_size(c) != c.tp_size or c.attn_cp_size != 1:
        at = groups
    elif c.moe_a2a_backend not in runners:
        at = "moe_a2a_backend"
    else:
        return None
    return Refusal(
        at="enable_decoder_swa_bounded_replay",
        related_fields=(at,),
        message=f"{c.shown('enable_decoder_swa_bounded_replay')} is refused with {c.shown(at)}: late layers see only the last "
        "tokens of each request, which this layout cannot share out.",
        fixes=(dropping("enable_decoder_swa_bounded_replay"), dropping(at)),
    )


@_features.refuses(
    "SPC852",
    "v41-disaggregated-drafting",
    raises="ValueError",
    bad="model=v41 -- --tp-size 8 --speculative-algorithm DSPARK --disaggregation-mode prefill "
    "--disaggregation-transfer-backend mori",
    good="model=v41 -- --tp-size 8",
)
def v41_disaggregated_drafting(c: Config) -> Refusal | None:
    """DeepSeek V4.1 drafts across prefill and decode servers under conditions.

    Verification must be static, the transfer Mooncake or NIXL, decode without context parallelism; context parallelism of prefill
    takes `--enable-prefill-cp --cp-strategy interleave`.
    """
    if not is_v41(c) or c.disaggregation_mode == "null" or c.speculative_algorithm is None:
        return None
    interleaved = c.disaggregation_mode == "prefill" and c.enable_prefill_cp and c.cp_strategy == "interleave"
    transfers = ("mooncake", "nixl") if c.since("0.5.22") else ("mooncake",)
    if ragged_verify_mode(c) != "static":
        at = "SGLANG_RAGGED_VERIFY_MODE"
    elif c.disaggregation_transfer_backend not in transfers:
        at = "disaggregation_transfer_backend"
    elif c.dcp_size != 1:
        at = "dcp_size"
    elif (c.enable_prefill_cp or c.attn_cp_size != 1) and not interleaved:
        at = "enable_prefill_cp" if c.enable_prefill_cp else "attn_cp_size"
    else:
        return None
    shown = f"`{at}`" if at.isupper() else c.shown(at)
    return Refusal(
        at=at,
        related_fields=("speculative_algorithm", "disaggregation_mode"),
        message=f"{shown} is refused with {c.shown('speculative_algorithm')} on a {c.disaggregation_mode} server of DeepSeek V4.1.",
        fixes=(dropping("speculative_algorithm"),),
    )


# --- context parallelism -----------------------------------------------------------------------------------------------

_cp = Handler(
    "deepseek_v4_hook.py:validate_deepseek_v4_cp",
    when=lambda c: is_v4(c) and bool(getattr(c, cp_field(c))),
    since="0.5.12",
)


@_cp.refuses(
    "SPC853",
    "v4-cp-strategy",
    raises="ValueError",
    bad="model=v4 -- --tp-size 8 --enable-prefill-cp --cp-strategy zigzag",
    good="model=v4 -- --tp-size 8 --enable-prefill-cp --cp-strategy interleave",
)
def v4_cp_strategy(c: Config) -> Refusal | None:
    """DeepSeek V4's context parallelism interleaves tokens.

    Give `--cp-strategy interleave` with `--enable-prefill-cp` (zigzag works on Ascend NPUs only).
    """
    mode, switch = cp_mode_field(c), cp_field(c)
    interleaved = "interleave" if c.since("0.5.14") else "round-robin-split"
    strategy = getattr(c, mode)
    if strategy == interleaved or (strategy == "zigzag" and c.gpu.platform == "npu" and c.since("0.5.21")):
        return None
    given = c.given(mode)
    return Refusal(
        at=mode if given else switch,
        related_fields=(switch,) if given else (mode,),
        message=f"{c.shown(mode)} is refused for DeepSeek V4: its kernels need interleaved tokens.",
        fixes=(setting(**{mode: interleaved}), dropping(switch)),
    )


@_cp.refuses(
    "SPC854",
    "v4-cp-on-rocm-unsupported",
    raises="ValueError",
    bad="gpu=mi355x model=v4 -- --tp-size 8 --enable-prefill-cp --cp-strategy interleave --enable-two-batch-overlap",
    good="gpu=mi355x model=v4 -- --tp-size 8 --enable-prefill-cp --cp-strategy interleave",
    since="0.5.22",
)
def v4_cp_on_rocm_unsupported(c: Config) -> Refusal | None:
    """On AMD GPUs DeepSeek V4's context parallelism works with few other features.

    It needs the dsv4 attention backend for both phases, one node, V4 (not V4.1), no window replay and no two-batch overlap.
    """
    if not c.gpu.is_hip:
        return None
    if backends_of(c) != ("dsv4", "dsv4"):
        at = "prefill_attention_backend" if backends_of(c)[0] != "dsv4" else "decode_attention_backend"
    elif c.nnodes > 1:
        at = "nnodes"
    elif is_v41(c):
        at = "enable_prefill_cp"
    elif c.enable_decoder_swa_bounded_replay:
        at = "enable_decoder_swa_bounded_replay"
    elif c.enable_two_batch_overlap:
        at = "enable_two_batch_overlap"
    else:
        return None
    return Refusal(
        at=at,
        related_fields=("enable_prefill_cp",),
        message=f"{c.shown(at)} is refused with `--enable-prefill-cp` for this model on {c.gpu.title}.",
        fixes=(dropping(at), dropping("enable_prefill_cp")),
    )


@_cp.refuses(
    "SPC855", "v4-replicas-and-attention-dp-under-prefill-cp", raises="AssertionError",
    bad="model=v4 -- --tp-size 8 --attn-dp-size 2 --dp-size 2 --enable-prefill-cp --cp-strategy " "interleave",
    good="model=v4 -- --tp-size 8 --enable-prefill-cp --cp-strategy interleave", since="0.5.22",
    sglang="model_override_base.py:context_parallel_attn_dp_size",
)  # fmt: skip
def v4_replicas_and_attention_dp_under_prefill_cp(c: Config) -> Refusal | None:
    """Prefill context parallelism works with attention DP or replicas, not both.

    Under `--enable-prefill-cp` DeepSeek V4 reads `--dp-size` as attention DP (an old spelling).
    """
    if not (c.attn_dp_size > 1 and c.dp_size > 1):
        return None
    return Refusal(
        at="dp_size",
        related_fields=("attn_dp_size", "enable_prefill_cp"),
        message=f"{c.shown('dp_size')} is refused with {c.shown('attn_dp_size')} under `--enable-prefill-cp`.",
        fixes=(dropping("dp_size"), dropping("attn_dp_size")),
    )


@_cp.adjusts(
    "attn_dp_size", "dp_size", "enable_dp_attention", "moe_dense_tp_size", "attn_cp_size",
    "enable_dsa_prefill_context_parallel", "dsa_prefill_cp_mode", "enable_prefill_context_parallel",
)  # fmt: skip
def lay_out_v4_cp(c: Config) -> None:
    """Prefill context parallelism takes the ranks that attention DP leaves."""
    if c.since("0.5.22"):
        groups = c.attn_dp_size * c.dp_size
        c.set(attn_dp_size=groups, dp_size=1, moe_dense_tp_size=1, attn_cp_size=c.tp_size // groups)
    else:
        c.set(enable_dp_attention=True, moe_dense_tp_size=1, attn_cp_size=c.tp_size // c.dp_size)
    if c.since("0.5.14") and c.before("0.5.20"):
        c.set(enable_dsa_prefill_context_parallel=True, dsa_prefill_cp_mode="round-robin-split")
    if c.since("0.5.18") and c.before("0.5.20"):
        c.set(enable_prefill_context_parallel=False)


@_cp.refuses(
    "SPC856",
    "v4-cp-layout",
    raises="AssertionError",
    bad="model=v4 -- --tp-size 16 --nnodes 2 --enable-prefill-cp --cp-strategy interleave",
    good="model=v4 -- --tp-size 8 --enable-prefill-cp --cp-strategy interleave",
)
def v4_cp_layout(c: Config) -> Refusal | None:
    """DeepSeek V4's context parallelism stays on one machine, without attention DP.

    It supports at most `--tp-size 8` and one attention group.
    """
    if c.gpu.platform == "npu" and c.since("0.5.21"):
        return None
    field = ranks.attention_dp_field(c)
    groups = getattr(c, field)
    if groups == 1 and c.tp_size <= 8:
        return None
    at = "tp_size" if groups == 1 else field
    return Refusal(
        at=at,
        related_fields=(cp_field(c),),
        message=f"{c.shown(at)} is refused with `{c.flag(cp_field(c))}` for DeepSeek V4: it shares a prompt out over one attention "
        "group of at most 8 GPUs.",
        fixes=(dropping(at), dropping(cp_field(c))),
    )


@_cp.refuses(
    "SPC857",
    "v4-cp-with-other-exchange",
    raises="ValueError",
    bad="model=v4 -- --tp-size 8 --enable-prefill-cp --cp-strategy interleave --moe-a2a-backend flashinfer",
    good="model=v4 -- --tp-size 8 --enable-prefill-cp --cp-strategy interleave",
    since="0.5.17",
)
def v4_cp_with_other_exchange(c: Config) -> Refusal | None:
    """DeepSeek V4's context parallelism works with few all-to-all backends.

    Use `--moe-a2a-backend` none, deepep, megamoe or (from 0.5.19) mori.
    """
    allowed = ("none", "deepep", "megamoe", *(("mori",) if c.since("0.5.19") else ()))
    if c.moe_a2a_backend in allowed:
        return None
    return Refusal(
        at="moe_a2a_backend",
        related_fields=("enable_prefill_cp",),
        message=f"{c.shown('moe_a2a_backend')} is refused with `--enable-prefill-cp` for DeepSeek V4: it works with {', '.join(allowed)}.",
        fixes=(dropping("moe_a2a_backend"), setting(moe_a2a_backend="deepep")),
    )


_sm120 = Handler(
    "overrides.py:_deepseek_v4_sm120_moe", when=lambda c: is_v4(c) and c.gpu.sm120, since="0.5.13", until="0.5.19"
)


@_sm120.adjusts("moe_runner_backend")
def run_v4_experts_on_marlin(c: Config) -> None:
    """SM120 lacks the hardware that V4's other expert kernels use."""
    if c.moe_runner_backend == "auto":
        c.set(moe_runner_backend="marlin")


# --- the budget of replayed windows ------------------------------------------------------------------------------------

_replay_budget = Handler(
    "deepseek_v4_hook.py:validate_deepseek_v41_encoder_replay_budget",
    since="0.5.23",
    when=lambda c: is_v41(c) and bool(c.enable_encoder_swa_bounded_replay),
)


@_replay_budget.refuses("SPC858", "encoder-replay-without-budget", raises="ValueError")
def encoder_replay_without_budget(c: Config) -> Refusal | None:
    """Replaying encoder windows needs a bound on requests and a chunk that holds the replayed tokens.

    Set `--max-running-requests`, and a `--chunked-prefill-size` of at least 128 tokens plus one KV page.
    """
    least = 128 + (c.page_size or 1)
    if c.max_running_requests is not None and c.max_running_requests > 0 and (c.chunked_prefill_size or 0) >= least:
        return None
    return Refusal(
        at="enable_encoder_swa_bounded_replay",
        related_fields=("max_running_requests", "chunked_prefill_size"),
        message=f"`--enable-encoder-swa-bounded-replay` is refused: it needs `--max-running-requests` above 0 and a prefill chunk of "
        f"at least {least} tokens.",
        fixes=(setting(max_running_requests=256), dropping("enable_encoder_swa_bounded_replay")),
    )


# --- MegaMoE before 0.5.21 -------------------------------------------------------------------------------------------

MEGA_MOE_BUDGET = "SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK"

_mega_moe = Handler(
    "deepseek_v4_hook.py:validate_deepseek_v4_mega_moe_token_budget",
    since="0.5.17",
    until="0.5.21",
    when=lambda c: is_v4(c) and c.moe_a2a_backend == "megamoe" and c.disaggregation_mode != "decode",
)


@_mega_moe.refuses(
    "SPC887",
    "v4-chunk-above-megamoe-capacity",
    raises="ValueError",
    bad="gpu=b200 model=v4 -- --tp-size 8 --moe-a2a-backend megamoe --chunked-prefill-size 32768",
    good="gpu=b200 model=v4 -- --tp-size 8 --moe-a2a-backend megamoe --chunked-prefill-size 8192",
)
def v4_chunk_above_megamoe_capacity(c: Config) -> Refusal | None:
    """A prefill chunk of DeepSeek V4 does not fit MegaMoE's buffer.

    MegaMoE reserves room for SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK tokens on each rank. A rank's share of
    `--chunked-prefill-size` has to fit, so chunked prefill cannot be off either.
    """
    if c.pp_size > 1 and c.enable_dynamic_chunking:
        return None
    share = _chunk_on_a_rank(c)
    capacity = c.env.number(MEGA_MOE_BUDGET, 1024 if c.before("0.5.18") else 8192)
    if 0 < share <= capacity:
        return None
    why = (
        f"of which a rank gets {share} tokens; MegaMoE has room for {capacity}"
        if share > 0
        else "which leaves prefill unbounded"
    )
    room = (setting_env(**{MEGA_MOE_BUDGET: str(share)}),) if share > 0 else ()
    return Refusal(
        at="chunked_prefill_size",
        related_fields=("moe_a2a_backend", MEGA_MOE_BUDGET),
        message=f"{c.shown('chunked_prefill_size')} is refused for DeepSeek V4 with MegaMoE, {why}.",
        fixes=(*room, setting(chunked_prefill_size=capacity)),
    )


def _chunk_on_a_rank(c: Config) -> int:
    """A rank's part of a prefill chunk, rounded up to what its attention group shares; 0 if there is no limit."""
    chunk = int(c.chunked_prefill_size or 0)
    if chunk <= 0:
        return 0
    if c.enable_prefill_cp:
        return -(-chunk // int(c.attn_cp_size))
    groups = ranks.attention_dp_size(c)
    width = max(int(c.tp_size) // groups // int(c.attn_cp_size), 1)
    return -(-(chunk // groups) // width) * width


overrides = (_overrides,)
defaults = (_dtype, _defaults)
validation = (_features, _cp, _mega_moe, _sm120)
capability = (_replay_budget,)
