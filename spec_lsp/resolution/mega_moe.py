"""MegaMoE: dispatch, expert computation and combination in one DeepGEMM kernel. Follows arg_groups/mega_moe_hook.py."""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.resolution import ranks
from spec_lsp.resolution.engine import MOVED, Config, Handler, Refusal, dropping, setting, setting_env

BUDGET = "SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK"
ROCM_DECODE_BUDGET = "SGLANG_AMD_FLYDSL_MEGA_MOE_DECODE_MTPR"

# --- handle_mega_moe --------------------------------------------------------------------------------------------------

handle_mega_moe = Handler("mega_moe_hook.py:handle_mega_moe", since="0.5.18")


@handle_mega_moe.adjusts("moe_runner_backend", "moe_a2a_backend", MOVED, spelling=True)
def read_megamoe_runner(c: Config) -> None:
    """`--moe-runner-backend megamoe` is another spelling of `--moe-a2a-backend megamoe`."""
    if c.moe_runner_backend == "megamoe":
        c.set(moe_runner_backend="auto")
        c.move("moe_a2a_backend", "moe_runner_backend", value="megamoe")


@handle_mega_moe.refuses(
    "SPC640",
    "megamoe-with-batch-overlap",
    raises="ValueError",
    since="0.5.21",
    sglang="mega_moe_hook.py:check_mega_moe_compat",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend megamoe --enable-single-batch-overlap",
    good="model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep --enable-single-batch-overlap",
)
def megamoe_with_batch_overlap(c: Config) -> Refusal | None:
    """MegaMoE cannot be overlapped with another batch.

    Two-batch and single-batch overlap split the MoE step into dispatch, computation and combination; MegaMoE does all
    three in one kernel.
    """
    if c.moe_a2a_backend != "megamoe":
        return None
    for overlap in ("enable_two_batch_overlap", "enable_single_batch_overlap"):
        if getattr(c, overlap):
            return Refusal(
                at=overlap,
                related_fields=("moe_a2a_backend",),
                message=f"{c.shown(overlap)} cannot be combined with {c.shown('moe_a2a_backend')}, which does the "
                "whole MoE step in one kernel. Remove one of the two.",
                fixes=(dropping(overlap), setting(moe_a2a_backend="deepep")),
            )
    return None


@handle_mega_moe.refuses(
    "SPC641",
    "megamoe-on-unfit-gpu",
    raises="ValueError",
    since="0.5.21",
    hardware_only=True,
    sglang="mega_moe_hook.py:check_mega_moe_compat",
    bad="gpu=a100 model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend megamoe",
    good="gpu=h100 model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend megamoe",
)
def megamoe_on_unfit_gpu(c: Config) -> Refusal | None:
    """MegaMoE needs a Hopper or data-centre Blackwell GPU, or ROCm.

    Its DeepGEMM kernels compute block-FP8 experts on SM90 and FP4 experts on SM100; on AMD AITER has one of its own.
    Elsewhere use DeepEP or no all-to-all backend.
    """
    if c.moe_a2a_backend == "megamoe" and not (c.gpu.sm90 or c.gpu.sm100 or c.gpu.is_hip):
        return Refusal(
            at="moe_a2a_backend",
            message=f"MegaMoE ({c.shown('moe_a2a_backend')}) does not run on {c.gpu.title}: it needs SM90, SM100 or ROCm. Leave "
            "it out.",
            fixes=(dropping("moe_a2a_backend"), setting(moe_a2a_backend="deepep")),
        )
    return None


# --- validate_mega_moe_token_budget_for_model -------------------------------------------------------------------------

validate_mega_moe_token_budget_for_model = Handler(
    "mega_moe_hook.py:validate_mega_moe_token_budget", since="0.5.21",
    when=lambda c: c.moe_a2a_backend == "megamoe" and not (c.since("0.5.23") and c.encoder_only),
)  # fmt: skip

WITHOUT_FALLBACK = frozenset({
    "DeepseekV4ForCausalLM", "InternS2PreviewForConditionalGeneration", "MellumForCausalLM", "Qwen2MoeForCausalLM",
    "Qwen3MoeForCausalLM", "Qwen3NextForCausalLM", "Qwen3VLMoeForConditionalGeneration", "Qwen3_5MoeForCausalLM",
    "Qwen3_5MoeForConditionalGeneration",
})  # fmt: skip
"""Models whose MoE layers have no fallback when a step exceeds MegaMoE's buffer."""


@validate_mega_moe_token_budget_for_model.refuses(
    "SPC642",
    "decode-above-rocm-megamoe-capacity",
    raises="ValueError",
    since="0.5.23",
    sglang="mega_moe_hook.py:validate_flydsl_decode_capacity",
    bad="gpu=mi300x model=deepseek-v3 SGLANG_AMD_USE_FLYDSL_MEGA_MOE=1 SGLANG_AMD_FLYDSL_MEGA_MOE_DECODE_MTPR=64 -- "
    "--tp-size 8 --moe-a2a-backend megamoe --max-running-requests 256",
    good="gpu=mi300x model=deepseek-v3 SGLANG_AMD_USE_FLYDSL_MEGA_MOE=1 SGLANG_AMD_FLYDSL_MEGA_MOE_DECODE_MTPR=256 "
    "-- --tp-size 8 --moe-a2a-backend megamoe --max-running-requests 256",
)
def decode_above_rocm_megamoe_capacity(c: Config) -> Refusal | None:
    """The largest decode step does not fit the decode buffer of ROCm's MegaMoE.

    SGLANG_AMD_FLYDSL_MEGA_MOE_DECODE_MTPR gives decode a buffer of its own. It has to hold what
    `--max-running-requests` requests compute in a step on one rank, and does not work with attention context
    parallelism.
    """
    if not (c.gpu.is_hip and c.env.flag("SGLANG_AMD_USE_FLYDSL_MEGA_MOE")) or c.disaggregation_mode == "prefill":
        return None
    capacity = c.env.number(ROCM_DECODE_BUDGET, 0)
    if capacity <= 0 or capacity >= c.env.number("SGLANG_AMD_FLYDSL_MEGA_MOE_MTPR", 8192):
        return None
    tokens = _rocm_decode_tokens(c)
    if ranks.attention_cp_size(c) > 1:
        why, field = "it does not work with attention context parallelism", "attn_cp_size"
    elif tokens is None:
        why, field = "it needs `--max-running-requests` to know the largest step", "max_running_requests"
    elif tokens > capacity:
        why, field = f"a rank decodes up to {tokens} tokens at once", "max_running_requests"
    else:
        return None
    return Refusal(
        at=ROCM_DECODE_BUDGET,
        related_fields=(field, "moe_a2a_backend"),
        message=f"`{ROCM_DECODE_BUDGET}={capacity}` cannot be used: {why}. Raise it or set it to 0.",
        fixes=(setting_env(**{ROCM_DECODE_BUDGET: "0"}),),
    )


def _rocm_decode_tokens(c: Config) -> int | None:
    if c.max_running_requests is None:
        return None
    per_request = 1
    if c.speculative_algorithm:
        per_request = max(c.speculative_num_draft_tokens or 1, c.speculative_eagle_topk or 1)
    return int(c.max_running_requests // ranks.attention_dp_size(c) * per_request)


def _needs_budget(c: Config) -> bool:
    """Whether there is no fallback for a step that exceeds the buffer."""
    if c.gpu.is_hip or ranks.loads_from_instance(c):
        return False
    fp4 = ("modelopt_fp4", "minimax_m3_nvfp4") if c.since("0.5.23") else ("modelopt_fp4",)
    config = c.model.quantization_config
    algorithm = config.get("quant_algo", "") if isinstance(config, Mapping) else ""
    return c.model.architecture in WITHOUT_FALLBACK or c.quantization in fp4 or "FP4" in str(algorithm)


def _decode_tokens(c: Config) -> int:
    requests = int(c.cuda_graph_config["decode"]["max_bs"] or 0)
    if c.since("0.5.23") and c.max_running_requests is not None:
        width = c.tp_size // c.attn_dp_size
        requests = min(requests, -(-(c.max_running_requests // c.attn_dp_size) // width) * width)
    return requests * int((c.speculative_num_draft_tokens or 1) if c.speculative_algorithm else 1)


def _prefill_tokens(c: Config) -> int:
    """A rank's part of a prefill chunk, rounded up to what the ranks share."""
    if c.enable_prefill_cp:
        return int(-(-c.chunked_prefill_size // c.attn_cp_size))
    groups = ranks.attention_dp_size(c)
    share = c.chunked_prefill_size // groups
    width = max(c.tp_size // groups // ranks.attention_cp_size(c), 1)
    return int(-(-share // width) * width)


@validate_mega_moe_token_budget_for_model.refuses(
    "SPC643", "step-above-megamoe-capacity", raises="ValueError",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend megamoe --chunked-prefill-size 16384",
    good="model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend megamoe --chunked-prefill-size 8192",
)  # fmt: skip
def step_above_megamoe_capacity(c: Config) -> Refusal | None:
    """A step does not fit MegaMoE's buffer.

    MegaMoE reserves room for SGLANG_OPT_DEEPGEMM_MEGA_MOE_NUM_MAX_TOKENS_PER_RANK tokens (8192 unless set) on each
    rank. For models that have no other MoE kernel, a rank's share of a prefill chunk and its largest decode step have
    to fit.
    """
    if not _needs_budget(c):
        return None
    capacity = c.env.number(BUDGET, 8192)
    needed, field = 0, "chunked_prefill_size"
    if c.disaggregation_mode != "prefill" and (tokens := _decode_tokens(c)) > capacity:
        needed, field = tokens, "cuda_graph_max_bs_decode"
    elif (
        c.disaggregation_mode == "decode" or (c.pp_size > 1 and c.enable_dynamic_chunking) or not c.chunked_prefill_size
    ):
        return None
    elif c.chunked_prefill_size > 0:
        needed = _prefill_tokens(c)
    if needed <= capacity:
        return None
    return Refusal(
        at=field,
        related_fields=("moe_a2a_backend", BUDGET),
        message=f"A rank computes up to {needed} tokens at once ({c.shown(field)}), more than the {capacity} that "
        f"MegaMoE has room for. Raise `{BUDGET}` or lower the limit.",
        fixes=(setting_env(**{BUDGET: str(needed)}), setting(**{field: int(capacity)})),
    )


@validate_mega_moe_token_budget_for_model.refuses(
    "SPC644", "megamoe-without-chunked-prefill", raises="ValueError",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend megamoe --chunked-prefill-size -1",
    good="model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend megamoe --chunked-prefill-size 8192",
)  # fmt: skip
def megamoe_without_chunked_prefill(c: Config) -> Refusal | None:
    """MegaMoE needs chunked prefill for this model.

    Its buffer has a fixed size and the model has no other MoE kernel, so a prefill step may not grow with the prompt.
    """
    if c.disaggregation_mode == "decode" or (c.pp_size > 1 and c.enable_dynamic_chunking) or not _needs_budget(c):
        return None
    chunk = c.chunked_prefill_size
    if chunk is not None and chunk > 0 and (c.enable_prefill_cp or chunk >= ranks.attention_dp_size(c)):
        return None
    return Refusal(
        at="chunked_prefill_size",
        related_fields=("moe_a2a_backend",),
        message=f"{c.shown('chunked_prefill_size')} leaves prefill without a bound, but MegaMoE has a buffer of fixed "
        "size. Set a chunk size above zero.",
        fixes=(dropping("chunked_prefill_size"), setting(chunked_prefill_size=8192)),
    )
