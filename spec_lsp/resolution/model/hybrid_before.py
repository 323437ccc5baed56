"""The radix cache of hybrid models before 0.5.14, when each model's branch decided what is supported.

Follows ServerArgs._handle_mamba_radix_cache (0.5.9 to 0.5.13) and the branches of ServerArgs._handle_model_specific_adjustments (0.5.6 to
0.5.8).
"""

from __future__ import annotations

from spec_lsp.records import NamedTuple
from spec_lsp.resolution.attention import default_backend
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.model.hybrid import FALCON_LIKE, QWEN_HYBRIDS, keeps_old_states, old_extra_buffer

_radix = Handler("server_args.py:_handle_mamba_radix_cache", since="0.5.9", until="0.5.14")


class Ability(NamedTuple):
    """The settings in the branch of a hybrid model: whether its radix cache works, and its attention backend on SM100."""

    cached: bool = True
    sm100: str | None = None


def ability(c: Config) -> Ability | None:
    """The settings of this model's branch; None for a model that is not a hybrid (0.5.9 to 0.5.13)."""
    name = c.model.architecture
    if name == "KimiLinearForCausalLM":
        return Ability(cached=False)
    if name == "BailingMoeV2_5ForCausalLM":
        return Ability(cached=c.since("0.5.13"))
    if name in ("NemotronHForCausalLM", "Lfm2ForCausalLM") or (
        name == "NemotronHPuzzleForCausalLM" and c.since("0.5.13")
    ):
        return Ability(sm100="flashinfer")
    if name in QWEN_HYBRIDS or (name == "InternS2PreviewForConditionalGeneration" and c.since("0.5.12")):
        return Ability(sm100=_qwen_backend(c) if c.gpu.sm100 else None)
    if name in FALCON_LIKE or (name == "MiniCPMV4_6ForConditionalGeneration" and c.since("0.5.12")):
        return Ability(sm100="triton")
    if name == "GraniteMoeHybridForCausalLM" and c.model.is_mamba2:
        return Ability(sm100="flashinfer" if c.since("0.5.13") else "triton")
    return None


def _qwen_backend(c: Config) -> str:
    single_tokens = not old_extra_buffer(c) and not c.disable_radix_cache and c.speculative_algorithm is None
    paged = c.since("0.5.10") and default_backend(c) == "trtllm_mha" and not single_tokens
    return "trtllm_mha" if paged else "triton"


@_radix.adjusts("attention_backend", "uses_mamba_radix_cache", "disable_radix_cache")
def start_hybrid(c: Config) -> None:
    """A hybrid model gets its own attention backend on SM100; some cannot keep a radix cache in this release."""
    found = ability(c)
    if found is None:
        return
    c.set(uses_mamba_radix_cache=True)
    if c.gpu.sm100 and c.attention_backend is None and found.sm100 is not None:
        c.set(attention_backend=found.sm100)
    if not found.cached:
        c.set(disable_radix_cache=True)


@_radix.refuses(
    "SPC880", "flashinfer-states-without-extra-buffer", raises="ValueError", since="0.5.10", until="0.5.11",
    bad="sglang=0.5.10.post1 model=qwen3-next-80b -- --linear-attn-decode-backend flashinfer --mamba-scheduler-strategy no_buffer",
    good="sglang=0.5.10.post1 model=qwen3-next-80b -- --linear-attn-decode-backend flashinfer --mamba-scheduler-strategy extra_buffer",
)  # fmt: skip
def flashinfer_states_without_extra_buffer(c: Config) -> Refusal | None:
    """FlashInfer's linear-attention decode needs the extra buffer of states in this release.

    Use `--mamba-scheduler-strategy extra_buffer`, or the Triton kernels.
    """
    if (
        not keeps_old_states(c)
        or c.linear_attn_decode_backend != "flashinfer"
        or c.mamba_scheduler_strategy != "no_buffer"
    ):
        return None
    return Refusal(
        at="linear_attn_decode_backend",
        related_fields=("mamba_scheduler_strategy",),
        message=f"{c.shown('linear_attn_decode_backend')} is refused with {c.shown('mamba_scheduler_strategy')}: it writes states "
        "that only the extra buffer keeps.",
        fixes=(setting(mamba_scheduler_strategy="extra_buffer"), dropping("linear_attn_decode_backend")),
    )


@_radix.refuses(
    "SPC881", "extra-buffer-without-radix-cache", raises="ValueError", since="0.5.10",
    bad="sglang=0.5.12 model=qwen3-next-80b -- --mamba-scheduler-strategy extra_buffer --disable-radix-cache",
    good="sglang=0.5.12 model=qwen3-next-80b -- --mamba-scheduler-strategy extra_buffer",
)  # fmt: skip
def extra_buffer_without_radix_cache(c: Config) -> Refusal | None:
    """An extra buffer of states serves the radix cache, which is switched off.

    Without a radix cache the overlap schedule works with `no_buffer` already: leave `--mamba-scheduler-strategy` out.
    """
    if not keeps_old_states(c) or not old_extra_buffer(c) or not c.disable_radix_cache:
        return None
    return Refusal(
        at="mamba_scheduler_strategy",
        related_fields=("disable_radix_cache",),
        message=f"{c.shown('mamba_scheduler_strategy')} is refused with `--disable-radix-cache`: the buffer holds what the radix "
        "cache shares.",
        fixes=(dropping("mamba_scheduler_strategy"), dropping("disable_radix_cache")),
    )


_plain = Handler(
    "server_args.py:_handle_mamba_radix_cache",
    since="0.5.9",
    until="0.5.14",
    when=lambda c: keeps_old_states(c) and not old_extra_buffer(c) and not c.disable_radix_cache,
)


@_plain.adjusts("page_size", since="0.5.11")
def single_tokens_without_extra_buffer(c: Config) -> None:
    """Without an extra buffer of states, a hybrid model's radix cache shares single tokens only."""
    if c.page_size is not None and c.page_size != 1:
        c.set(page_size=1)


@_plain.refuses(
    "SPC882", "drafting-without-extra-buffer", raises="ValueError", since="0.5.10",
    bad="sglang=0.5.12 model=qwen3-next-80b -- --speculative-algorithm NEXTN",
    good="sglang=0.5.12 model=qwen3-next-80b -- --speculative-algorithm NEXTN --mamba-scheduler-strategy extra_buffer",
)  # fmt: skip
def drafting_without_extra_buffer(c: Config) -> Refusal | None:
    """A hybrid model cannot draft and keep its radix cache without an extra buffer of states.

    The states that verification leaves behind would overwrite the shared ones. Use `--mamba-scheduler-strategy extra_buffer` where
    the model has it, or `--disable-radix-cache`.
    """
    if c.speculative_algorithm is None or (c.gpu.is_hip and c.since("0.5.11")):
        return None
    return Refusal(
        at="speculative_algorithm",
        related_fields=("mamba_scheduler_strategy",),
        message=f"{c.shown('speculative_algorithm')} is refused for {c.model.architecture} with its radix cache and without an extra "
        "buffer of states.",
        fixes=(
            setting(mamba_scheduler_strategy="extra_buffer"),
            setting(disable_radix_cache=True),
            dropping("speculative_algorithm"),
        ),
    )


@_plain.adjusts("disable_radix_cache", "disable_overlap_schedule")
def serve_without_extra_buffer(c: Config) -> None:
    """Without an extra buffer of states the scheduler must not run ahead; a backend of pages, or drafting, costs the radix cache."""
    if c.speculative_algorithm is not None:
        c.set(disable_radix_cache=True)
    elif c.attention_backend == "trtllm_mha":
        c.set(disable_radix_cache=True, disable_overlap_schedule=False)
    else:
        c.set(disable_overlap_schedule=True)


# --- 0.5.6 to 0.5.8 ----------------------------------------------------------------------------------------------------

_oldest = Handler("server_args.py:_handle_model_specific_adjustments", until="0.5.9")


@_oldest.adjusts("disable_radix_cache")
def no_radix_cache_for_kimi(c: Config) -> None:
    """Kimi Linear keeps no radix cache in this release."""
    if c.model.architecture == "KimiLinearForCausalLM":
        c.set(disable_radix_cache=True)


@_oldest.adjusts("attention_backend", "disable_radix_cache", "disable_overlap_schedule")
def serve_qwen3_next(c: Config) -> None:
    """On SM100 Qwen3-Next runs on triton; its radix cache holds states, which the scheduler must not run ahead of."""
    if c.model.architecture != "Qwen3NextForCausalLM":
        return
    cached = not c.disable_radix_cache
    if cached and c.before("0.5.7"):
        c.set(disable_overlap_schedule=True)
    if c.gpu.sm100:
        if c.before("0.5.6.post1") or c.attention_backend is None:
            c.set(attention_backend="triton")
        if cached and c.attention_backend == "trtllm_mha":
            c.set(disable_radix_cache=True, disable_overlap_schedule=False)
            cached = False
    if cached and c.since("0.5.7") and c.before("0.5.8") and not old_extra_buffer(c):
        c.set(disable_overlap_schedule=True)


@_oldest.adjusts("disable_overlap_schedule", since="0.5.8")
def no_overlap_for_glm(c: Config) -> None:
    """This release gives GLM-4.5 the schedule of a hybrid model, by mistake."""
    if c.model.architecture == "Glm4MoeForCausalLM" and not old_extra_buffer(c) and not c.disable_radix_cache:
        c.set(disable_overlap_schedule=True)


@_oldest.adjusts("attention_backend", "disable_radix_cache", "disable_overlap_schedule")
def serve_other_hybrids(c: Config) -> None:
    """The radix cache of a hybrid model holds states, which the scheduler must not run ahead of."""
    name = c.model.architecture
    nemotron = name == "NemotronHForCausalLM"
    if c.disable_radix_cache or c.before("0.5.6.post1") or not (nemotron or name in FALCON_LIKE):
        return
    if nemotron and c.since("0.5.8") and c.speculative_algorithm is not None:
        c.set(disable_radix_cache=True)
        return
    c.set(disable_overlap_schedule=True)
    if c.gpu.sm100 and c.since("0.5.7"):
        if c.attention_backend is None:
            c.set(attention_backend="flashinfer" if nemotron else "triton")
        if c.attention_backend == "trtllm_mha":
            c.set(disable_radix_cache=True, disable_overlap_schedule=False)


start = (_radix,)
end = (_plain, _oldest)
