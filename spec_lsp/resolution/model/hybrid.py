"""Hybrid models, which keep a recurrent (mamba) state beside the KV cache: the strategy of their radix cache.

Follows arg_groups/overrides.py (_mamba_radix_cache_resolution), arg_groups/mamba_hook.py (validate_mamba_extra_buffer,
validate_mamba_no_buffer) and arg_groups/model_hook.py (handle_mamba_radix_cache).
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Earlier, Handler, Refusal, dropping, setting

RADIX_CACHE = {
    "KimiLinearForCausalLM": "", "BailingMoeV2_5ForCausalLM": "", "Qwen3NextForCausalLM": "",
    "Qwen3_5MoeForConditionalGeneration": "", "InternS2PreviewForConditionalGeneration": "",
    "Qwen3_5ForConditionalGeneration": "", "MiniCPMV4_6ForConditionalGeneration": "", "NemotronHForCausalLM": "",
    "NemotronHPuzzleForCausalLM": "", "FalconH1ForCausalLM": "", "JetNemotronForCausalLM": "",
    "JetVLMForConditionalGeneration": "", "Lfm2ForCausalLM": "", "ZayaForCausalLM": "", "Lfm2MoeForCausalLM": "0.5.17",
    "KimiK3ForConditionalGeneration": "0.5.17", "InternS2MobiusForConditionalGeneration": "0.5.18",
    "BailingMoeV3ForCausalLM": "0.5.19", "Qwen3_5MoeForCausalLM": "0.5.19", "Qwen3_5ForCausalLM": "0.5.19",
    "NemotronH_Omni_Reasoning_V3": "0.5.20", "Glm5NextForConditionalGeneration": "0.5.20",
    "Qwen4ExpForConditionalGeneration": "0.5.20", "BailingMoeV3VLForConditionalGeneration": "0.5.21",
    "MiniCPMV4_7ForConditionalGeneration": "0.5.23",
}  # fmt: skip
"""Architectures whose radix cache also holds recurrent states, with the release that added each (empty: 0.5.15 or before)."""

EXTRA_BUFFER = {
    "Qwen3_5ForConditionalGeneration": "", "Qwen3_5MoeForConditionalGeneration": "", "Qwen3NextForCausalLM": "",
    "InternS2PreviewForConditionalGeneration": "", "MiniCPMV4_6ForConditionalGeneration": "",
    "BailingMoeV2_5ForCausalLM": "", "FalconH1ForCausalLM": "", "GraniteMoeHybridForCausalLM": "",
    "NemotronHForCausalLM": "", "NemotronHPuzzleForCausalLM": "", "KimiLinearForCausalLM": "0.5.16",
    "KimiK3ForConditionalGeneration": "0.5.17", "Qwen3_5MoeForCausalLM": "0.5.19", "Qwen3_5ForCausalLM": "0.5.19",
    "BailingMoeV3ForCausalLM": "0.5.19", "Qwen4ExpForConditionalGeneration": "0.5.20",
    "Glm5NextForConditionalGeneration": "0.5.20", "NemotronH_Omni_Reasoning_V3": "0.5.20",
    "BailingMoeV3VLForConditionalGeneration": "0.5.21", "InklingForConditionalGeneration": "0.5.21",
    "InklingForConditionalGenerationMTP": "0.5.21", "MiniCPMV4_7ForConditionalGeneration": "0.5.23",
}  # fmt: skip
"""Those that can keep an extra buffer of states, which overlap scheduling and pages of several tokens need."""

FLA_CHUNK = 64
"""Tokens of a chunk of the linear-attention kernels."""

QWEN_HYBRIDS = ("Qwen3NextForCausalLM", "Qwen3_5MoeForConditionalGeneration", "Qwen3_5ForConditionalGeneration")
FALCON_LIKE = ("FalconH1ForCausalLM", "JetNemotronForCausalLM", "JetVLMForConditionalGeneration")


def has_radix_states(c: Config) -> bool:
    """Whether the radix cache of this model holds recurrent states besides KV pages."""
    architecture = c.model.architecture
    if architecture == "GraniteMoeHybridForCausalLM":
        return c.model.is_mamba2
    since = RADIX_CACHE.get(architecture)
    if since is not None:
        return not since or c.since(since)
    return registered(c)


def registered(c: Config) -> bool:
    """Whether the model registers itself as a hybrid (GigaChat 3.5, configs/linear_attn_model_registry.py)."""
    return c.model.architecture == "GigaChat35ForCausalLM"


def extra_buffer(c: Config) -> bool:
    """`mamba_extra_buffer_of`: whether the radix cache keeps an extra buffer of states."""
    strategy = c.mamba_radix_cache_strategy if c.disable_radix_cache is False else None
    return strategy in ("extra_buffer", "extra_buffer_lazy")


def can_have_extra_buffer(c: Config) -> bool:
    """`supports_mamba_cache_extra_buffer`: the model can, and its linear attention runs on Triton."""
    if c.gpu.platform == "xpu" and c.since("0.5.20"):
        return False
    since = EXTRA_BUFFER.get(c.model.architecture)
    able = (since is not None and (not since or c.since(since))) or registered(c)
    return able and c.linear_attn_backend == "triton"


# --- before 0.5.14 -----------------------------------------------------------------------------------------------------


def strategy_field(c: Config) -> str:
    """The field of the strategy."""
    return "mamba_radix_cache_strategy" if c.since("0.5.14") else "mamba_scheduler_strategy"


def old_extra_buffer(c: Config) -> bool:
    """`enable_mamba_extra_buffer()` before 0.5.14, whether or not there is a radix cache."""
    return c.mamba_scheduler_strategy in ("extra_buffer", "extra_buffer_lazy")


def keeps_old_states(c: Config) -> bool:
    """Whether the model's branch checks its radix cache of states before 0.5.14 (and the cache works for the model)."""
    name = c.model.architecture
    if c.before("0.5.9"):
        if name == "Glm4MoeForCausalLM":
            return c.since("0.5.8")
        return c.since("0.5.7") and (name in ("NemotronHForCausalLM", *FALCON_LIKE) or _is_old_qwen3_next(c))
    if name in ("NemotronHForCausalLM", "Lfm2ForCausalLM", *QWEN_HYBRIDS, *FALCON_LIKE):
        return True
    if name == "GraniteMoeHybridForCausalLM":
        return c.model.is_mamba2
    if name in ("BailingMoeV2_5ForCausalLM", "NemotronHPuzzleForCausalLM"):
        return c.since("0.5.13")
    later = ("InternS2PreviewForConditionalGeneration", "MiniCPMV4_6ForConditionalGeneration")
    return name in later and c.since("0.5.12")


def _is_old_qwen3_next(c: Config) -> bool:
    return c.model.architecture == "Qwen3NextForCausalLM" and c.before("0.5.8")


def _old_extra_buffer_works(c: Config) -> bool:
    name = c.model.architecture
    if name == "Lfm2ForCausalLM":
        return False
    if name in ("NemotronHForCausalLM", "GraniteMoeHybridForCausalLM", *FALCON_LIKE):
        return c.since("0.5.13")
    return True


# --- the strategy ------------------------------------------------------------------------------------------------------

_resolution = Handler(
    "overrides.py:_mamba_radix_cache_resolution",
    since="0.5.14",
    when=lambda c: not c.disable_radix_cache and has_radix_states(c),
)


@_resolution.adjusts("uses_mamba_radix_cache")
def hold_recurrent_states(c: Config) -> None:
    """The radix cache of a hybrid model holds recurrent states too."""
    c.set(uses_mamba_radix_cache=True)


@_resolution.adjusts("mamba_radix_cache_strategy", "disable_overlap_schedule")
def choose_radix_strategy(c: Config) -> None:
    """A hybrid model's radix cache keeps an extra buffer of states where it can, else the overlap schedule is given up."""
    if c.mamba_radix_cache_strategy != "auto":
        return
    wanted = not c.disable_overlap_schedule or (c.page_size is not None and c.page_size > 1)
    if wanted and can_have_extra_buffer(c):
        c.set(mamba_radix_cache_strategy="extra_buffer")
    else:
        c.set(mamba_radix_cache_strategy="no_buffer", disable_overlap_schedule=True)


# --- what it cannot be combined with -----------------------------------------------------------------------------------

_no_states = Handler("model_hook.py:handle_mamba_radix_cache", since="0.5.21")


@_no_states.refuses(
    "SPC806", "radix-strategy-without-recurrent-state", raises="ValueError",
    bad="--mamba-radix-cache-strategy extra_buffer", good="model=qwen3-next-80b -- --mamba-radix-cache-strategy extra_buffer",
)  # fmt: skip
def radix_strategy_without_recurrent_state(c: Config) -> Refusal | None:
    """The model has no recurrent state for a mamba radix cache to keep.

    `--mamba-radix-cache-strategy extra_buffer` is for hybrid models (Qwen3-Next, Nemotron-H, Kimi Linear, …), whose radix cache
    stores recurrent states beside KV pages. For any other model remove it.
    """
    if c.uses_mamba_radix_cache or not extra_buffer(c):
        return None
    return Refusal(
        at="mamba_radix_cache_strategy",
        related_fields=("model_path",),
        message=f"{c.shown('mamba_radix_cache_strategy')} is refused: {c.model.architecture} keeps no recurrent state that such a "
        "buffer could hold.",
    )


def _buffered(c: Config) -> bool:
    if c.before("0.5.14"):
        return keeps_old_states(c) and old_extra_buffer(c)
    return bool(c.uses_mamba_radix_cache) and extra_buffer(c)


def _unbuffered(c: Config) -> bool:
    return bool(c.uses_mamba_radix_cache) and not extra_buffer(c)


_extra_buffer = Handler(
    "mamba_hook.py:validate_mamba_extra_buffer",
    when=_buffered,
    earlier=(
        Earlier("0.5.9", "server_args.py:_handle_model_specific_adjustments"),
        Earlier("0.5.14", "server_args.py:_handle_mamba_radix_cache"),
        Earlier("0.5.19", "server_args.py:_validate_mamba_extra_buffer"),
    ),
)


@_extra_buffer.refuses(
    "SPC807", "extra-buffer-not-supported-by-model", raises="AssertionError",
    bad=("model=qwen3-next-80b -- --mamba-radix-cache-strategy extra_buffer --linear-attn-backend cutedsl",
         "sglang=0.5.15 model=kimi-linear-48b -- --mamba-radix-cache-strategy extra_buffer"),
    good="model=qwen3-next-80b -- --mamba-radix-cache-strategy extra_buffer",
)  # fmt: skip
def extra_buffer_not_supported_by_model(c: Config) -> Refusal | None:
    """This model, or its linear-attention backend, cannot keep an extra buffer of states.

    The extra buffer stores recurrent states at fixed places of a prompt, so that requests can share them while the scheduler
    runs ahead. Only some hybrid models do that, and only with the Triton linear-attention kernels
    (`--linear-attn-backend triton`). Otherwise use `no_buffer`, which needs pages of one token and no overlap schedule.
    """
    if can_have_extra_buffer(c) if c.since("0.5.14") else _old_extra_buffer_works(c):
        return None
    off_triton = c.since("0.5.14") and c.linear_attn_backend != "triton"
    strategy = strategy_field(c)
    return Refusal(
        at=strategy if c.given(strategy) or not off_triton else "linear_attn_backend",
        related_fields=("linear_attn_backend", "model_path") if off_triton else ("model_path",),
        message=f"{c.shown(strategy)} is refused "
        + (
            f"with {c.shown('linear_attn_backend')}: only the Triton kernels store states in the extra buffer."
            if off_triton
            else f"for {c.model.architecture}: its radix cache cannot keep an extra buffer of states."
        ),
        fixes=(
            dropping("linear_attn_backend"),
            dropping(strategy),
            setting(**{strategy: "no_buffer", "disable_overlap_schedule": True}),
        ),
    )


@_extra_buffer.refuses(
    "SPC808", "extra-buffer-off-gpu", raises="AssertionError", hardware_only=True,
    bad="sglang=0.5.15 gpu=mi300x model=qwen3-next-80b -- --mamba-radix-cache-strategy extra_buffer",
    good="gpu=mi300x model=qwen3-next-80b -- --mamba-radix-cache-strategy extra_buffer",
)  # fmt: skip
def extra_buffer_off_gpu(c: Config) -> Refusal | None:
    """The extra buffer of states needs kernels that this device lacks.

    They run on NVIDIA, from 0.5.16 on AMD GPUs and from 0.5.18 on Intel's; there are none for a CPU. Use `no_buffer` there.
    """
    supported = c.gpu.is_cuda or (c.gpu.platform == "npu" and c.since("0.5.11"))
    supported = supported or (c.gpu.is_hip and c.since("0.5.16")) or (c.gpu.platform == "xpu" and c.since("0.5.18"))
    if supported:
        return None
    strategy = strategy_field(c)
    return Refusal(
        at=strategy,
        message=f"{c.shown(strategy)} is refused on {c.gpu.title}: the kernels that fill the buffer are not there.",
        fixes=(setting(**{strategy: "no_buffer", "disable_overlap_schedule": True}), dropping(strategy)),
    )


@_extra_buffer.refuses(
    "SPC809", "lazy-extra-buffer-with-drafting", raises="AssertionError", since="0.5.13", until="0.5.18",
    bad=("sglang=0.5.15 model=qwen3-next-80b -- --mamba-radix-cache-strategy extra_buffer_lazy --speculative-algorithm NEXTN "
         "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"),
    good="model=qwen3-next-80b -- --mamba-radix-cache-strategy extra_buffer",
)  # fmt: skip
def lazy_extra_buffer_with_drafting(c: Config) -> Refusal | None:
    """The lazy extra buffer does not support speculative decoding in these releases.

    Up to 0.5.16 `extra_buffer_lazy` is refused when the number of draft tokens is set, in 0.5.17 with DFLASH. Take
    `extra_buffer`, or a newer release.
    """
    strategy = strategy_field(c)
    if getattr(c, strategy) != "extra_buffer_lazy":
        return None
    if c.since("0.5.17"):
        refused, at = (c.speculative_algorithm or "").upper() == "DFLASH", "speculative_algorithm"
    else:
        refused, at = c.speculative_num_draft_tokens is not None, "speculative_num_draft_tokens"
    if not refused:
        return None
    return Refusal(
        at=strategy,
        related_fields=(at,),
        message=f"{c.shown(strategy)} is refused with {c.shown(at)}: this release's lazy buffer cannot follow draft tokens.",
        fixes=(setting(**{strategy: "extra_buffer"}),),
    )


@_extra_buffer.refuses(
    "SPC810", "lazy-extra-buffer-disaggregated", raises="AssertionError", since="0.5.17",
    bad="model=qwen3-next-80b -- --mamba-radix-cache-strategy extra_buffer_lazy --disaggregation-mode prefill",
    good="model=qwen3-next-80b -- --mamba-radix-cache-strategy extra_buffer --disaggregation-mode prefill",
)  # fmt: skip
def lazy_extra_buffer_disaggregated(c: Config) -> Refusal | None:
    """The lazy extra buffer does not work across a prefill and a decode server.

    The decode server's pool has no slots that are filled later. Use `extra_buffer`.
    """
    if c.mamba_radix_cache_strategy != "extra_buffer_lazy" or c.disaggregation_mode == "null":
        return None
    return Refusal(
        at="mamba_radix_cache_strategy",
        related_fields=("disaggregation_mode",),
        message=f"{c.shown('mamba_radix_cache_strategy')} is refused with {c.shown('disaggregation_mode')}: the decode server has "
        "no slots that are filled later.",
        fixes=(setting(mamba_radix_cache_strategy="extra_buffer"),),
    )


@_extra_buffer.refuses(
    "SPC811", "track-interval-below-draft-tokens", raises="AssertionError",
    bad=("model=qwen3-next-80b -- --mamba-track-interval 2 --speculative-algorithm NEXTN --speculative-num-steps 3 "
         "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4"),
    good=("model=qwen3-next-80b -- --mamba-track-interval 64 --speculative-algorithm NEXTN --speculative-num-steps 3 "
          "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4"),
)  # fmt: skip
def track_interval_below_draft_tokens(c: Config) -> Refusal | None:
    """The interval between stored states is shorter than a verification step.

    `--mamba-track-interval` says after how many tokens a state goes to the radix cache. One verification step adds up to
    `--speculative-num-draft-tokens` tokens at once, so the interval must not be shorter. The default, 256, fits.
    """
    if c.speculative_num_draft_tokens is None or c.mamba_track_interval >= c.speculative_num_draft_tokens:
        return None
    return Refusal(
        at="mamba_track_interval",
        related_fields=("speculative_num_draft_tokens",),
        message=f"{c.shown('mamba_track_interval')} is refused with {c.shown('speculative_num_draft_tokens')}: one step verifies "
        "more tokens than lie between two stored states.",
    )


@_extra_buffer.refuses(
    "SPC812", "track-interval-off-pages", raises="AssertionError",
    bad="model=qwen3-next-80b -- --mamba-track-interval 32 --page-size 64",
    good="model=qwen3-next-80b -- --mamba-track-interval 64 --page-size 64",
)  # fmt: skip
def track_interval_off_pages(c: Config) -> Refusal | None:
    """The interval between stored states is not a multiple of the page size.

    `--mamba-track-interval` must be a multiple of the page size: the radix cache shares whole pages, and the state that belongs
    to a page is the one after its last token.
    """
    if c.page_size is None or c.mamba_track_interval % c.page_size == 0:
        return None
    return Refusal(
        at=c.first_given("mamba_track_interval", "page_size"),
        related_fields=("page_size",) if c.given("mamba_track_interval") else ("mamba_track_interval",),
        message=f"{c.shown('mamba_track_interval')} is refused with {c.shown('page_size')}: a state must belong to the end of a "
        "page.",
        fixes=(dropping("mamba_track_interval"), dropping("page_size")),
    )


@_extra_buffer.refuses(
    "SPC813", "page-size-off-recurrent-chunk", raises="AssertionError",
    sglang="overrides.py:mamba_cache_chunk_size",
    earlier=(
        Earlier("0.5.9", "server_args.py:_handle_model_specific_adjustments"),
        Earlier("0.5.13", "server_args.py:_handle_mamba_radix_cache"),
        Earlier("0.5.19", "server_args.py:mamba_cache_chunk_size"),
    ),
    bad="model=qwen3-next-80b -- --page-size 48 --mamba-track-interval 96",
    good="model=qwen3-next-80b -- --page-size 32 --mamba-track-interval 96",
)  # fmt: skip
def page_size_off_recurrent_chunk(c: Config) -> Refusal | None:
    """The page size does not fit the chunks of the recurrent kernels.

    The kernels run over a prompt in chunks (64 tokens for most models) and leave a state after each. Either the page size or the
    chunk must be a multiple of the other, or no page would end with a state.
    """
    if c.page_size is None:
        return None
    chunk = c.model.mamba_chunk_size if c.since("0.5.13") else FLA_CHUNK
    larger, smaller = max(chunk, c.page_size), min(chunk, c.page_size)
    if (chunk % c.page_size if c.before("0.5.8") else larger % smaller) == 0:
        return None
    return Refusal(
        at="page_size",
        message=f"{c.shown('page_size')} is refused: this model's recurrent kernels run in chunks of {chunk} tokens, and neither "
        "is a multiple of the other.",
        fixes=(setting(page_size=chunk), dropping("page_size")),
    )


_no_buffer = Handler(
    "mamba_hook.py:validate_mamba_no_buffer",
    since="0.5.14",
    when=_unbuffered,
    earlier=(Earlier("0.5.19", "server_args.py:_validate_mamba_no_buffer"),),
)


@_no_buffer.refuses(
    "SPC814", "paged-cache-without-extra-buffer", raises="AssertionError",
    bad="model=qwen3-next-80b -- --mamba-radix-cache-strategy no_buffer --page-size 64",
    good="model=qwen3-next-80b -- --mamba-radix-cache-strategy extra_buffer --page-size 64",
)  # fmt: skip
def paged_cache_without_extra_buffer(c: Config) -> Refusal | None:
    """Without an extra buffer of states, a hybrid model's radix cache shares single tokens only.

    Pages of several tokens need `--mamba-radix-cache-strategy extra_buffer` (where the model and its linear-attention backend can
    do that), or no radix cache at all. The page size need not have been typed: an attention backend may bring it.
    """
    if c.page_size in (1, None):
        return None
    return Refusal(
        at=c.first_given("page_size", "mamba_radix_cache_strategy"),
        related_fields=("mamba_radix_cache_strategy", "linear_attn_backend"),
        message=f"{c.shown('page_size')} is refused with {c.shown('mamba_radix_cache_strategy')}: without an extra buffer of "
        "states the radix cache of a hybrid model shares single tokens only.",
        fixes=(
            dropping("mamba_radix_cache_strategy"),
            setting(page_size=1),
            setting(mamba_radix_cache_strategy="extra_buffer"),
            dropping("linear_attn_backend"),
            setting(disable_radix_cache=True),
        ),
    )


@_no_buffer.refuses(
    "SPC815", "overlap-schedule-without-extra-buffer", raises="AssertionError",
    bad="model=qwen3-next-80b -- --mamba-radix-cache-strategy no_buffer",
    good="model=qwen3-next-80b -- --mamba-radix-cache-strategy no_buffer --disable-overlap-schedule",
)  # fmt: skip
def overlap_schedule_without_extra_buffer(c: Config) -> Refusal | None:
    """Without an extra buffer of states, the scheduler must not run ahead of a hybrid model.

    `no_buffer` keeps one state a request and overwrites it, so SGLang needs `--disable-overlap-schedule` with it. Left at `auto`,
    the strategy is chosen so that everything fits.
    """
    if c.disable_overlap_schedule:
        return None
    return Refusal(
        at="mamba_radix_cache_strategy",
        related_fields=("disable_overlap_schedule",),
        message=f"{c.shown('mamba_radix_cache_strategy')} is refused with the overlap schedule: the one state a request keeps "
        "would be overwritten while the next batch is prepared.",
        fixes=(
            dropping("mamba_radix_cache_strategy"),
            setting(disable_overlap_schedule=True),
            setting(mamba_radix_cache_strategy="extra_buffer"),
            setting(disable_radix_cache=True),
        ),
    )


@_no_buffer.refuses(
    "SPC816", "trtllm-mha-without-extra-buffer", raises="AssertionError",
    bad="model=qwen3-next-80b gpu=b200 -- --mamba-radix-cache-strategy no_buffer --disable-overlap-schedule "
    "--attention-backend trtllm_mha",
    good="model=qwen3-next-80b gpu=b200 -- --attention-backend trtllm_mha",
)  # fmt: skip
def trtllm_mha_without_extra_buffer(c: Config) -> Refusal | None:
    """trtllm_mha reads KV pages of 16 tokens or more, and without an extra buffer of states pages have one token.

    Use another attention backend, the extra buffer, or no radix cache.
    """
    if c.attention_backend != "trtllm_mha":
        return None
    return Refusal(
        at=c.first_given("attention_backend", "mamba_radix_cache_strategy"),
        related_fields=("mamba_radix_cache_strategy",),
        message=f"{c.shown('attention_backend')} is refused with {c.shown('mamba_radix_cache_strategy')}: its KV pages hold 16 "
        "tokens or more, and without an extra buffer of states pages have one.",
        fixes=(
            dropping("mamba_radix_cache_strategy"),
            setting(mamba_radix_cache_strategy="extra_buffer"),
            setting(attention_backend="triton"),
            setting(disable_radix_cache=True),
        ),
    )


handle_mamba_radix_cache = (_resolution, _no_states, _extra_buffer, _no_buffer)
