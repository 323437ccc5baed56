"""What applies to every speculative algorithm: its name, the draft's options, adaptive drafting.

Follows arg_groups/speculative_hook.py (handle_speculative_decoding, _resolve_speculative_algorithm_alias, _maybe_disable_adaptive,
_init_adaptive_speculative_params, _handle_frozen_kv_mtp) and speculative/spec_info.py.
"""

from __future__ import annotations

from spec_lsp.facts.known import NotGiven, NotKnown
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.linear_attention import unknown_mode
from spec_lsp.resolution.ranks import attention_dp
from spec_lsp.resolution.speculative.common import DRAFT_SHAPE, ONE_METHOD, cap_running_requests

SINCE = {"FROZEN_KV_MTP": "0.5.12", "DFLASH": "0.5.11", "DSPARK": "0.5.16", "UNO": "0.5.20"}
"""The algorithms that were added after 0.5.6."""

GEMMA4_ASSISTANTS = ("Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM")

# --- before the algorithm is looked at ------------------------------------------------------------------------------

preparation = Handler("speculative_hook.py:handle_speculative_decoding")


@preparation.adjusts("speculative_draft_model_revision", since="0.5.6")
def draft_revision(c: Config) -> None:
    """The draft comes from the main branch of its repository."""
    if c.speculative_draft_model_path is not None and c.speculative_draft_model_revision is None:
        c.set(speculative_draft_model_revision="main")


@preparation.refuses(
    "SPC112",
    "trtllm-experts-in-draft",
    raises="AssertionError",
    since="0.5.7",
    until="0.5.11",
    bad="sglang=0.5.9 gpu=b200 model=deepseek-v3 -- --tp-size 8 --speculative-moe-runner-backend flashinfer_trtllm",
    good="sglang=0.5.9 gpu=b200 model=deepseek-v3 -- --tp-size 8 --speculative-moe-runner-backend triton",
)
def trtllm_experts_in_draft(c: Config) -> Refusal | None:
    """In these releases the draft's experts cannot run on flashinfer_trtllm.

    Leave `--speculative-moe-runner-backend` to SGLang, or name another runner.
    """
    if c.speculative_moe_runner_backend != "flashinfer_trtllm":
        return None
    return Refusal(
        at="speculative_moe_runner_backend",
        message=f"{c.shown('speculative_moe_runner_backend')} is refused: in this release the draft's experts cannot run on it.",
        fixes=(dropping("speculative_moe_runner_backend"), setting(speculative_moe_runner_backend="triton")),
    )


@preparation.adjusts("speculative_moe_runner_backend", since="0.5.7")
def draft_moe_runner(c: Config) -> None:
    """The draft's experts run as the target's do, where the draft can."""
    if c.speculative_moe_runner_backend is None:
        c.set(speculative_moe_runner_backend=_draft_runner(c, str(c.moe_runner_backend)))


def _draft_runner(c: Config, runner: str) -> str:
    if c.before("0.5.11"):
        routed = ("flashinfer_trtllm_routed",) if c.since("0.5.10") else ()
        return "auto" if runner in ("flashinfer_trtllm", *routed) else runner
    if c.since("0.5.22") and runner == "flashinfer_megamoe":
        return "flashinfer_trtllm"
    return "auto" if c.since("0.5.23") and runner.startswith("lora_") else runner


# --- the algorithm --------------------------------------------------------------------------------------------------

algorithm = Handler("speculative_hook.py:handle_speculative_decoding")


@algorithm.adjusts("speculative_algorithm", since="0.5.12", spelling=True)
def upper_case(c: Config) -> None:
    """Algorithm names are written in capitals."""
    if c.speculative_algorithm is not None:
        c.set(speculative_algorithm=c.speculative_algorithm.upper())


def drafts_with_gemma4_assistant(c: Config) -> bool:
    """Whether the draft is one of Gemma 4's assistants. An unreadable draft is assumed to be made for its target, and an unknown target to
    be another model: without knowing what NEXTN means nothing could be reported."""
    try:
        draft = c.draft
    except NotKnown:
        if _is_gemma4(c):
            raise
        return False
    assistants = GEMMA4_ASSISTANTS if c.since("0.5.13") else GEMMA4_ASSISTANTS[:1]
    return draft is not None and any(name in assistants for name in draft.architectures)


def _is_gemma4(c: Config) -> bool:
    try:
        return c.model.architecture.startswith("Gemma4")
    except NotGiven:
        return False


@algorithm.refuses(
    "SPC100",
    "gemma4-assistant-as-eagle3",
    raises="ValueError",
    since="0.5.12",
    sglang="speculative_hook.py:_resolve_speculative_algorithm_alias",
    earlier=(Earlier("0.5.13", "server_args.py:_resolve_speculative_algorithm_alias"),),
)
def gemma4_assistant_as_eagle3(c: Config) -> Refusal | None:
    """Gemma 4's assistant drafts as NEXTN, not as EAGLE3.

    It shares the target's KV cache (SGLang calls that FROZEN_KV_MTP and turns NEXTN or EAGLE into it by itself).
    """
    if c.speculative_algorithm != "EAGLE3" or not drafts_with_gemma4_assistant(c):
        return None
    return Refusal(
        at="speculative_algorithm",
        related_fields=("speculative_draft_model_path",),
        message=f"{c.shown('speculative_algorithm')} is refused with this draft: a Gemma 4 assistant drafts as NEXTN.",
        fixes=(setting(speculative_algorithm="NEXTN"),),
    )


@algorithm.adjusts("speculative_algorithm", spelling=True)
def alias(c: Config) -> None:
    """NEXTN is another name for EAGLE; with a Gemma 4 assistant both become FROZEN_KV_MTP."""
    if c.speculative_algorithm not in ("NEXTN", "EAGLE"):
        return
    frozen = c.since("0.5.12") and drafts_with_gemma4_assistant(c)
    c.set(speculative_algorithm="FROZEN_KV_MTP" if frozen else "EAGLE")


options = Handler("speculative_hook.py:handle_speculative_decoding")


@options.refuses(
    "SPC102",
    "drafting-with-decode-radix-cache",
    raises="ValueError",
    since="0.5.23",
    bad="--speculative-algorithm NGRAM --disaggregation-mode decode --disaggregation-decode-enable-radix-cache",
    good="--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft --disaggregation-mode decode "
    "--disaggregation-decode-enable-radix-cache",
)
def drafting_with_decode_radix_cache(c: Config) -> Refusal | None:
    """Few speculative algorithms work with a radix cache on a decode server.

    With `--disaggregation-decode-enable-radix-cache` only EAGLE, EAGLE3 (NEXTN) and DSPARK can resume from a cached prefix.
    """
    if c.disaggregation_mode != "decode" or not c.disaggregation_decode_enable_radix_cache:
        return None
    if c.speculative_algorithm in (None, "DSPARK", "EAGLE", "EAGLE3"):
        return None
    return Refusal(
        at="disaggregation_decode_enable_radix_cache",
        related_fields=("speculative_algorithm",),
        message=f"`--disaggregation-decode-enable-radix-cache` is refused with {c.shown('speculative_algorithm')}: on a decode "
        "server only EAGLE, EAGLE3 and DSPARK work with a radix cache.",
        fixes=(dropping("disaggregation_decode_enable_radix_cache"), dropping("speculative_algorithm")),
    )


@options.refuses(
    "SPC103",
    "block-verification-algorithm",
    raises="ValueError",
    since="0.5.22",
    bad="--speculative-use-block-verification --speculative-algorithm NGRAM",
    good="--speculative-use-block-verification --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def block_verification_algorithm(c: Config) -> Refusal | None:
    """Block verification needs draft tokens that were sampled.

    It weighs a whole block of draft tokens by their probabilities, which EAGLE, EAGLE3 (NEXTN), DFLASH and DSPARK provide.
    """
    if not c.speculative_use_block_verification or c.speculative_algorithm in ("EAGLE", "EAGLE3", "DFLASH", "DSPARK"):
        return None
    named = c.speculative_algorithm is not None
    why = f"with {c.shown('speculative_algorithm')}" if named else "without an algorithm"
    return Refusal(
        at="speculative_use_block_verification",
        related_fields=("speculative_algorithm",) if named else (),
        message=f"`--speculative-use-block-verification` is refused {why}: it weighs drafts of EAGLE, EAGLE3, DFLASH or DSPARK.",
    )


@options.refuses(
    "SPC104",
    "block-verification-off-gpu",
    raises="ValueError",
    since="0.5.22",
    bad="--device cpu --speculative-use-block-verification --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft",
    good="--speculative-use-block-verification --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def block_verification_off_gpu(c: Config) -> Refusal | None:
    """Block verification exists on NVIDIA and AMD GPUs only.

    The launch names another `--device`. Leave `--speculative-use-block-verification` out there.
    """
    if not c.speculative_use_block_verification or c.device == "cuda":
        return None
    return Refusal(
        at="speculative_use_block_verification",
        related_fields=("device",),
        message=f"`--speculative-use-block-verification` is refused with {c.shown('device')}: its kernel is for NVIDIA and AMD GPUs.",
    )


@options.adjusts("speculative_use_rejection_sampling", since="0.5.22")
def block_verification_samples(c: Config) -> None:
    """Block verification needs sampled drafts, so EAGLE drafts by rejection sampling."""
    if c.speculative_use_block_verification and c.speculative_algorithm in ("EAGLE", "EAGLE3"):
        c.set(speculative_use_rejection_sampling=True)


@options.refuses(
    "SPC105",
    "non-positive-draft-window",
    raises="ValueError",
    since="0.5.13",
    bad="--speculative-draft-window-size 0",
    good="--speculative-draft-window-size 512",
)
def non_positive_draft_window(c: Config) -> Refusal | None:
    """The draft model's attention window must be at least one token.

    To let the draft model see the whole context, leave `--speculative-draft-window-size` out.
    """
    if c.speculative_draft_window_size is None or c.speculative_draft_window_size > 0:
        return None
    return Refusal(
        at="speculative_draft_window_size",
        message=f"{c.shown('speculative_draft_window_size')} is refused: a window holds at least one token.",
    )


@options.refuses(
    "SPC106",
    "negative-draft-sink",
    raises="ValueError",
    since="0.5.21",
    bad="--speculative-draft-window-size 512 --speculative-draft-sink-size -1",
    good="--speculative-draft-window-size 512 --speculative-draft-sink-size 4",
)
def negative_draft_sink(c: Config) -> Refusal | None:
    """The number of sink tokens cannot be negative.

    `--speculative-draft-sink-size` counts the first tokens of a sequence that the draft model sees in addition to its window.
    """
    if c.speculative_draft_sink_size is None or c.speculative_draft_sink_size >= 0:
        return None
    return Refusal(
        at="speculative_draft_sink_size",
        message=f"{c.shown('speculative_draft_sink_size')} is refused: it is 0 or more tokens.",
        fixes=(dropping("speculative_draft_sink_size"), setting(speculative_draft_sink_size=0)),
    )


@options.refuses(
    "SPC107",
    "draft-sink-without-window",
    raises="ValueError",
    since="0.5.21",
    bad="--speculative-draft-sink-size 4",
    good="--speculative-draft-window-size 512 --speculative-draft-sink-size 4",
)
def draft_sink_without_window(c: Config) -> Refusal | None:
    """Sink tokens need a draft window.

    `--speculative-draft-sink-size` keeps the first tokens visible when a window hides the rest; without
    `--speculative-draft-window-size` the draft sees all tokens anyway.
    """
    if c.speculative_draft_sink_size is None or c.speculative_draft_window_size is not None:
        return None
    return Refusal(
        at="speculative_draft_sink_size",
        message=f"{c.shown('speculative_draft_sink_size')} is refused without `--speculative-draft-window-size`: there is no "
        "window that they could be added to.",
        fixes=(dropping("speculative_draft_sink_size"), setting(speculative_draft_window_size=512)),
    )


@options.refuses(
    "SPC101",
    "unknown-speculative-algorithm",
    raises="ValueError",
    since="0.5.12",
    sglang="spec_info.py:from_string",
    bad="--speculative-algorithm MEDUSA",
    good="--speculative-algorithm NGRAM",
)
def unknown_speculative_algorithm(c: Config) -> Refusal | None:
    """There is no speculative algorithm of this name.

    SGLang has EAGLE, EAGLE3, NEXTN (another name for EAGLE), STANDALONE, NGRAM, DFLASH, DSPARK (0.5.16) and UNO (0.5.20), in any
    case. Plugins may add names; then turn this rule off.
    """
    known = algorithms(c)
    if c.speculative_algorithm is None or c.speculative_algorithm in (
        *known,
        "NEXTN",
    ):  # what NEXTN means may be unknown
        return None
    return Refusal(
        at="speculative_algorithm",
        message=f"{c.shown('speculative_algorithm')} is refused: the algorithms are {', '.join(n for n in known if n != 'NONE')}.",
        fixes=(setting(speculative_algorithm="EAGLE3"), setting(speculative_algorithm="NGRAM")),
        choices=(*(n for n in known if n != "NONE"), "NEXTN"),
    )


def algorithms(c: Config) -> tuple[str, ...]:
    """The names that this release accepts, after aliases are resolved."""
    names = ("EAGLE", "EAGLE3", "STANDALONE", "NGRAM", "DFLASH", "DSPARK", "UNO", "FROZEN_KV_MTP", "NONE")
    return tuple(name for name in names if name not in SINCE or c.since(SINCE[name]))


@options.refuses(
    "SPC108",
    "skipped-mlp-sync-without-eagle",
    raises="AssertionError",
    since="0.5.11",
    until="0.5.23",
    bad="sglang=0.5.19 -- --speculative-skip-dp-mlp-sync",
    good="sglang=0.5.19 -- --speculative-skip-dp-mlp-sync --speculative-algorithm EAGLE --speculative-draft-model-path "
    "{models}/eagle-draft",
)
def skipped_mlp_sync_without_eagle(c: Config) -> Refusal | None:
    """Only EAGLE can skip synchronizing the MLP over data-parallel ranks.

    `--speculative-skip-dp-mlp-sync` needs `--speculative-algorithm EAGLE` (or NEXTN); EAGLE3 is not enough. 0.5.23 removed the flag.
    """
    if not c.speculative_skip_dp_mlp_sync or c.speculative_algorithm == "EAGLE":
        return None
    named = c.speculative_algorithm is not None
    why = f"with {c.shown('speculative_algorithm')}" if named else "without an algorithm"
    return Refusal(
        at="speculative_skip_dp_mlp_sync",
        related_fields=("speculative_algorithm",) if named else (),
        message=f"`--speculative-skip-dp-mlp-sync` is refused {why}: only EAGLE can skip that step.",
    )


@options.refuses(
    "SPC109",
    "prefill-coordination-algorithm",
    raises="ValueError",
    since="0.5.21",
    bad="SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION=1 -- --speculative-algorithm NGRAM",
    good="SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION=1 -- --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft",
)
def prefill_coordination_algorithm(c: Config) -> Refusal | None:
    """Coordinated prefill over data-parallel ranks needs a single-layer EAGLE draft.

    `SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION` is refused without speculative decoding too: EAGLE, EAGLE3 (NEXTN), and since 0.5.22
    DSPARK, have it, and not with `--enable-multi-layer-eagle`.
    """
    variable = "SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION"
    if not c.env.flag(variable):
        return None
    allowed = ("EAGLE", "EAGLE3", "DSPARK") if c.since("0.5.22") else ("EAGLE", "EAGLE3")
    layered = c.speculative_algorithm in allowed
    if layered and not c.enable_multi_layer_eagle:
        return None
    other = "enable_multi_layer_eagle" if layered else "speculative_algorithm"
    named = getattr(c, other) is not None
    return Refusal(
        at=variable,
        related_fields=(other,) if named else (),
        message=f"`{variable}` is refused "
        + (f"with {c.shown(other)}" if named else "without an algorithm")
        + f": it coordinates single-layer drafts of {', '.join(allowed)}.",
        fixes=(dropping_env(variable), *((dropping("enable_multi_layer_eagle"),) if layered else ())),
    )


# --- adaptive drafting ----------------------------------------------------------------------------------------------

adaptive_before = Handler(
    "speculative_hook.py:_init_adaptive_speculative_params", since="0.5.14", when=lambda c: bool(c.speculative_adaptive)
)
adaptive_after = Handler(
    "adaptive_spec_params.py:validate_adaptive_initial_steps",
    since="0.5.11",
    until="0.5.14",
    when=lambda c: bool(c.speculative_adaptive),
)


@adaptive_after.adjusts("speculative_adaptive")
@adaptive_before.adjusts("speculative_adaptive")
def give_up_adaptive(c: Config) -> None:
    """The number of steps adapts only for EAGLE chains on one rank's own schedule."""
    topk = c.speculative_eagle_topk
    c.set(
        speculative_adaptive=c.speculative_algorithm in ("EAGLE", "EAGLE3")
        and (topk == 1 or (topk is None and c.since("0.5.14")))
        and not attention_dp(c)
        and not c.enable_multi_layer_eagle
        and not c.enable_two_batch_overlap
        and not c.enable_pdmux
    )


def candidate_steps(c: Config) -> tuple[int, ...]:
    """The numbers of steps adaptive drafting chooses among. Raises NotKnown for those of a file."""
    if c.speculative_adaptive_config is not None:
        raise NotKnown("speculative_adaptive_config", "the file is not read")
    if c.before("0.5.14"):
        return (1, 3, 7)
    return (0, 1, 3, 7) if c.before("0.5.20") else (0, 1, 3, 5, 7)


@adaptive_before.adjusts("speculative_eagle_topk", "speculative_num_steps")
def adaptive_start(c: Config) -> None:
    """Adaptive drafting starts with a chain of medium length."""
    if not c.speculative_adaptive:
        return
    steps = candidate_steps(c)
    if c.speculative_eagle_topk is None:
        c.set(speculative_eagle_topk=1)
    if c.speculative_num_steps is None:
        c.set(speculative_num_steps=steps[len(steps) // 2])


def _outside_candidates(c: Config) -> Refusal | None:
    if not c.speculative_adaptive or c.speculative_num_steps in candidate_steps(c):
        return None
    steps = candidate_steps(c)
    return Refusal(
        at="speculative_num_steps",
        related_fields=("speculative_adaptive",),
        message=f"{c.shown('speculative_num_steps')} is refused with `--speculative-adaptive`: it adapts among "
        f"{', '.join(map(str, steps))} steps and has to start with one of them.",
        fixes=(
            Change(drop=DRAFT_SHAPE),
            *(setting(speculative_num_steps=n) for n in steps if abs(n - c.speculative_num_steps) == 1),
            dropping("speculative_adaptive"),
        ),
    )


@adaptive_before.refuses(
    "SPC110",
    "start-outside-adaptive-steps",
    raises="ValueError",
    bad="--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft --speculative-adaptive "
    "--speculative-num-steps 2 --speculative-eagle-topk 1 --speculative-num-draft-tokens 3",
    good="--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft --speculative-adaptive "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def start_outside_adaptive_steps(c: Config) -> Refusal | None:
    """Adaptive drafting must start with one of the step counts that it switches between.

    `--speculative-adaptive` switches between 0, 1, 3, 5 and 7 steps (without 5 before 0.5.20) or those of `--speculative-adaptive-config`;
    `--speculative-num-steps` says where it starts.
    """
    return _outside_candidates(c)


@adaptive_after.refuses(
    "SPC113",
    "start-outside-first-adaptive-steps",
    raises="ValueError",
    since="0.5.13",
    bad="sglang=0.5.13.post1 -- --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-adaptive --speculative-num-steps 2 --speculative-eagle-topk 1 --speculative-num-draft-tokens 3",
    good="sglang=0.5.13.post1 -- --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-adaptive --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def start_outside_first_adaptive_steps(c: Config) -> Refusal | None:
    """Adaptive drafting must start with one of the step counts that it switches between.

    In 0.5.13 it switches between 1, 3 and 7 steps; `--speculative-num-steps` says where it starts.
    """
    return _outside_candidates(c)


@adaptive_before.adjusts("speculative_num_draft_tokens")
def adaptive_draft_tokens(c: Config) -> None:
    """A chain is verified with one token more than it has steps."""
    if c.speculative_adaptive:
        candidate_steps(c)
        c.set(speculative_num_draft_tokens=c.speculative_num_steps + 1)


# --- the switch that every algorithm reads --------------------------------------------------------------------------

verify_mode = Handler(
    "ragged_verify.py:read_ragged_verify_mode",
    since="0.5.16",
    when=lambda c: c.speculative_algorithm not in (None, "NONE"),
)


@verify_mode.refuses(
    "SPC111",
    "unknown-verify-mode-while-drafting",
    raises="ValueError",
    bad="SGLANG_RAGGED_VERIFY_MODE=dense -- --speculative-algorithm NGRAM",
    good="SGLANG_RAGGED_VERIFY_MODE=static -- --speculative-algorithm NGRAM",
)
def unknown_verify_mode_while_drafting(c: Config) -> Refusal | None:
    """SGLANG_RAGGED_VERIFY_MODE is static, cap-accept or compact.

    Every speculative algorithm reads it at start, including those that do not use it.
    """
    return unknown_mode(c, "speculative_algorithm")


# --- FROZEN_KV_MTP --------------------------------------------------------------------------------------------------

frozen_kv_mtp = Handler(
    "speculative_hook.py:_handle_frozen_kv_mtp",
    since="0.5.12",
    when=lambda c: c.speculative_algorithm == "FROZEN_KV_MTP",
    earlier=ONE_METHOD,
)


@frozen_kv_mtp.adjusts("max_running_requests")
def frozen_running_requests(c: Config) -> None:
    """Speculative decoding serves at most 48 requests at once unless you say otherwise."""
    cap_running_requests(c)


@frozen_kv_mtp.adjusts("disable_overlap_schedule", until="0.5.14")
def frozen_without_overlap(c: Config) -> None:
    """In these releases an assistant that shares the target's KV cache drafts without overlap scheduling."""
    c.set(disable_overlap_schedule=True)


@frozen_kv_mtp.adjusts("enable_mixed_chunk")
def frozen_without_mixed_chunk(c: Config) -> None:
    """An assistant that shares the target's KV cache cannot draft in mixed batches."""
    c.set(enable_mixed_chunk=False)
