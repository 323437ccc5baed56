"""Linear attention and state-space layers: the kernels that decode, verify and prefill them, and ReplaySSM.

Follows arg_groups/mamba_hook.py (handle_mamba_backend, handle_int8_mamba_checkpoint) and attention_hook.py
(handle_linear_attn_backend); before 0.5.19 methods of ServerArgs. The checks of the mamba radix cache
(validate_mamba_extra_buffer, validate_mamba_no_buffer) belong to the model-specific adjustments, which call them.

Left out: whether FlashInfer's mamba module can be imported on NVIDIA (it comes with SGLang), and the CUDA release that
FlashInfer's prefill needs on Blackwell (13, which SGLang's own images have).
"""

from __future__ import annotations

from spec_lsp.resolution.attention import has_flashinfer
from spec_lsp.resolution.engine import (
    Change,
    Config,
    Earlier,
    Handler,
    Refusal,
    dropping,
    dropping_env,
    setting,
    setting_env,
)


def on_sm100_or_newer(c: Config) -> bool:
    """NVIDIA hardware with compute capability 10 and above (Blackwell of any kind)."""
    return c.gpu.is_cuda and c.gpu.major >= 10


def decode_backend(c: Config) -> str:
    """The kernels that currently decode linear attention."""
    return str(c.linear_attn_decode_backend or c.linear_attn_backend)


def decode_field(c: Config) -> str:
    """The field that decides them."""
    return "linear_attn_decode_backend" if c.linear_attn_decode_backend else "linear_attn_backend"


def keeps_extra_buffer(c: Config) -> bool:
    """mamba_extra_buffer_of: whether the radix cache keeps a second copy of each state."""
    strategy = c.mamba_radix_cache_strategy if c.since("0.5.14") else c.mamba_scheduler_strategy
    return c.disable_radix_cache is False and strategy in ("extra_buffer", "extra_buffer_lazy")


def ragged_verify_mode(c: Config) -> str:
    """SGLANG_RAGGED_VERIFY_MODE as written ("static" when it is not set)."""
    return c.env.text("SGLANG_RAGGED_VERIFY_MODE", "static") or ""


# --- mamba backend --------------------------------------------------------------------------------------------------

handle_mamba_backend = Handler("mamba_hook.py:handle_mamba_backend")


@handle_mamba_backend.refuses(
    "SPC250",
    "negative-philox-rounds",
    raises="ValueError",
    since="0.5.15",
    bad="model=nemotron-h-8b -- --mamba-cache-philox-rounds -1",
    good="model=nemotron-h-8b -- --mamba-cache-philox-rounds 10",
)
def negative_philox_rounds(c: Config) -> Refusal | None:
    """The number of Philox rounds cannot be negative.

    `--mamba-cache-philox-rounds` sets the rounds of the random generator behind stochastic rounding; 0 means its default.
    """
    if c.mamba_cache_philox_rounds >= 0:
        return None
    return Refusal(
        at="mamba_cache_philox_rounds",
        message=f"{c.shown('mamba_cache_philox_rounds')} is refused: the number of rounds must be 0 (the default) or more.",
    )


@handle_mamba_backend.refuses(
    "SPC251",
    "zero-mamba-states-per-path",
    raises="ValueError",
    since="0.5.17",
    bad="model=nemotron-h-8b -- --mamba-max-states-per-path 0",
    good="model=nemotron-h-8b -- --mamba-max-states-per-path -1",
)
def zero_mamba_states_per_path(c: Config) -> Refusal | None:
    """The number of states kept for a path must be -1 or positive.

    `--mamba-max-states-per-path -1` (the default) keeps as many recurrent states for a cached prefix as fit; a positive
    number caps them.
    """
    count = c.mamba_max_states_per_path
    if count > 0 or count == -1:
        return None
    return Refusal(
        at="mamba_max_states_per_path",
        message=f"{c.shown('mamba_max_states_per_path')} is refused: it is -1 (no cap) or a positive number.",
        fixes=(dropping("mamba_max_states_per_path"), setting(mamba_max_states_per_path=1)),
    )


@handle_mamba_backend.refuses(
    "SPC252",
    "stochastic-rounding-of-wide-state",
    raises="ValueError",
    since="0.5.15",
    bad="model=nemotron-h-8b gpu=b200 -- --enable-mamba-cache-stochastic-rounding",
    good="model=nemotron-h-8b gpu=b200 -- --enable-mamba-cache-stochastic-rounding --mamba-ssm-dtype float16",
)
def stochastic_rounding_of_wide_state(c: Config) -> Refusal | None:
    """Stochastic rounding is for a float16 state.

    It makes up for the narrow mantissa of float16 in the recurrent state; bfloat16 and float32 states are rounded as
    usual. Name the type with `--mamba-ssm-dtype float16`, or leave the rounding off.
    """
    if not c.enable_mamba_cache_stochastic_rounding or c.mamba_ssm_dtype == "float16":
        return None
    return Refusal(
        at="enable_mamba_cache_stochastic_rounding",
        related_fields=("mamba_ssm_dtype",),
        message="`--enable-mamba-cache-stochastic-rounding` is refused with "
        f"{_state_type(c)}: it rounds float16 states only.",
        fixes=(setting(mamba_ssm_dtype="float16"), dropping("enable_mamba_cache_stochastic_rounding")),
    )


def _state_type(c: Config) -> str:
    return "a state type nobody named" if c.mamba_ssm_dtype is None else c.shown("mamba_ssm_dtype")


@handle_mamba_backend.refuses(
    "SPC253",
    "stochastic-rounding-off-cuda",
    raises="ValueError",
    since="0.5.15",
    hardware_only=True,
    bad="model=nemotron-h-8b gpu=mi300x -- --enable-mamba-cache-stochastic-rounding --mamba-ssm-dtype float16",
    good="model=nemotron-h-8b gpu=b200 -- --enable-mamba-cache-stochastic-rounding --mamba-ssm-dtype float16",
)
def stochastic_rounding_off_cuda(c: Config) -> Refusal | None:
    """Stochastic rounding of the recurrent state exists on NVIDIA only.

    The instruction behind it is NVIDIA's. On other hardware leave the flag out; the state is then rounded as usual.
    """
    if not c.enable_mamba_cache_stochastic_rounding or c.mamba_ssm_dtype != "float16" or c.gpu.is_cuda:
        return None
    return Refusal(
        at="enable_mamba_cache_stochastic_rounding",
        message=f"`--enable-mamba-cache-stochastic-rounding` is refused on {c.gpu.title}: only NVIDIA GPUs have it.",
    )


@handle_mamba_backend.refuses(
    "SPC254",
    "triton-stochastic-rounding-off-sm100",
    raises="ValueError",
    since="0.5.15",
    bad="model=nemotron-h-8b -- --enable-mamba-cache-stochastic-rounding --mamba-ssm-dtype float16",
    good="model=nemotron-h-8b -- --enable-mamba-cache-stochastic-rounding --mamba-ssm-dtype float16 --mamba-backend "
    "flashinfer",
)
def triton_stochastic_rounding_off_sm100(c: Config) -> Refusal | None:
    """Triton's stochastic rounding needs an instruction that only SM100 has.

    On Hopper and older use `--mamba-backend flashinfer`.
    """
    if not c.enable_mamba_cache_stochastic_rounding or c.mamba_ssm_dtype != "float16" or not c.gpu.is_cuda:
        return None
    if c.mamba_backend != "triton" or c.gpu.sm100:
        return None
    return Refusal(
        at="enable_mamba_cache_stochastic_rounding",
        related_fields=("mamba_backend",),
        message="`--enable-mamba-cache-stochastic-rounding` is refused with the triton mamba backend on "
        f"{c.gpu.title}: it needs an instruction of SM100.",
        fixes=(setting(mamba_backend="flashinfer"), dropping("enable_mamba_cache_stochastic_rounding")),
    )


@handle_mamba_backend.refuses(
    "SPC255",
    "flashinfer-mamba-off-cuda",
    raises="ValueError",
    since="0.5.9",
    bad="model=nemotron-h-8b gpu=mi300x -- --mamba-backend flashinfer",
    good="model=nemotron-h-8b gpu=mi300x -- --mamba-backend triton",
)
def flashinfer_mamba_off_cuda(c: Config) -> Refusal | None:
    """FlashInfer's Mamba kernels do not exist for this hardware.

    FlashInfer exists for NVIDIA GPUs only. Triton's kernels (the default) run everywhere.
    """
    if c.mamba_backend != "flashinfer" or has_flashinfer(c):
        return None
    return Refusal(
        at="mamba_backend",
        message=f"{c.shown('mamba_backend')} is refused on {c.gpu.title}: FlashInfer exists for NVIDIA GPUs only.",
    )


# --- int8 checkpoints of the state ----------------------------------------------------------------------------------

handle_int8_mamba_checkpoint = Handler(
    "mamba_hook.py:handle_int8_mamba_checkpoint", since="0.5.14", when=lambda c: bool(c.enable_int8_mamba_checkpoint)
)


@handle_int8_mamba_checkpoint.refuses(
    "SPC256",
    "int8-mamba-checkpoint-beside-other-caches",
    raises="ValueError",
    bad=(
        "model=nemotron-h-8b -- --enable-int8-mamba-checkpoint --enable-hierarchical-cache",
        "model=nemotron-h-8b -- --enable-int8-mamba-checkpoint --enable-lmcache",
    ),
    good="model=nemotron-h-8b -- --enable-int8-mamba-checkpoint",
)
def int8_mamba_checkpoint_beside_other_caches(c: Config) -> Refusal | None:
    """Only SGLang's own radix cache supports int8 checkpoints of the recurrent state.

    The hierarchical cache, LMCache and other radix cache backends would read them as bfloat16 states. Keep one of the
    two.
    """
    other = next((name for name in _caches_without_int8(c) if getattr(c, name)), None)
    if other is None:
        return None
    return Refusal(
        at="enable_int8_mamba_checkpoint",
        related_fields=(other,),
        message=f"`--enable-int8-mamba-checkpoint` is refused with {c.shown(other)}, which would read the int8 states "
        f"as bfloat16.",
        fixes=(dropping("enable_int8_mamba_checkpoint"), dropping(other)),
    )


def _caches_without_int8(c: Config) -> tuple[str, ...]:
    names = ("enable_hierarchical_cache", "radix_cache_backend")
    return (*names, "enable_lmcache") if c.since("0.5.20") else names


# --- linear attention backends --------------------------------------------------------------------------------------

handle_linear_attn_backend = Handler("attention_hook.py:handle_linear_attn_backend", since="0.5.10")


@handle_linear_attn_backend.adjusts("linear_attn_decode_backend", since="0.5.11")
def decode_with_flashinfer(c: Config) -> None:
    """On SM100 FlashInfer decodes linear attention fastest, if its state is bfloat16."""
    if c.mamba_ssm_dtype != "bfloat16" or c.linear_attn_decode_backend is not None:
        return
    if c.since("0.5.18") and c.linear_attn_backend == "helion":
        return
    if c.before("0.5.13") and c.speculative_algorithm is not None:
        return
    if c.gpu.sm100:
        c.set(linear_attn_decode_backend="flashinfer")


@handle_linear_attn_backend.refuses(
    "SPC257",
    "flashkda-for-decoding",
    raises="ValueError",
    since="0.5.15",
    bad="model=kimi-linear-48b -- --linear-attn-decode-backend flashkda",
    good="model=kimi-linear-48b -- --linear-attn-prefill-backend flashkda",
)
def flashkda_for_decoding(c: Config) -> Refusal | None:
    """FlashKDA only prefills.

    It has no decode kernel. Name it with `--linear-attn-prefill-backend`; decoding stays with triton.
    (`--linear-attn-backend flashkda` means the same.)
    """
    if c.linear_attn_decode_backend != "flashkda":
        return None
    return Refusal(
        at="linear_attn_decode_backend",
        message=f"{c.shown('linear_attn_decode_backend')} is refused: FlashKDA has kernels for prefill only.",
        fixes=(
            Change(set={"linear_attn_prefill_backend": "flashkda"}, drop=("linear_attn_decode_backend",)),
            dropping("linear_attn_decode_backend"),
        ),
    )


@handle_linear_attn_backend.adjusts("linear_attn_decode_backend", since="0.5.15")
def decode_beside_flashkda(c: Config) -> None:
    """FlashKDA only prefills, so Triton decodes."""
    if c.linear_attn_decode_backend is None and c.linear_attn_backend == "flashkda":
        c.set(linear_attn_decode_backend="triton")


@handle_linear_attn_backend.refuses(
    "SPC258",
    "flashinfer-decode-of-wide-state",
    raises="ValueError",
    bad="model=qwen3-next-80b gpu=b200 -- --linear-attn-decode-backend flashinfer --mamba-ssm-dtype float32",
    good="model=qwen3-next-80b gpu=b200 -- --linear-attn-decode-backend flashinfer --mamba-ssm-dtype bfloat16",
)
def flashinfer_decode_of_wide_state(c: Config) -> Refusal | None:
    """On Blackwell, FlashInfer decodes linear attention with a bfloat16 state only.

    Its kernels there keep the recurrent state in bfloat16 (on Hopper in float32). Say so with `--mamba-ssm-dtype
    bfloat16`: SGLang does not look into the model's config here.
    """
    if decode_backend(c) != "flashinfer" or c.mamba_ssm_dtype == "bfloat16" or not on_sm100_or_newer(c):
        return None
    at = decode_field(c)
    return Refusal(
        at=at,
        related_fields=("mamba_ssm_dtype",),
        message=f"{c.shown(at)} is refused with {_state_type(c)} on {c.gpu.title}: FlashInfer decodes a bfloat16 "
        f"state there.",
        fixes=(setting(mamba_ssm_dtype="bfloat16"), dropping(at), setting(**{at: "triton"})),
    )


def _verify_backend(c: Config) -> str | None:
    verify = c.linear_attn_verify_backend
    return "flashinfer" if verify is None and decode_backend(c) == "flashinfer" else verify


@handle_linear_attn_backend.adjusts("linear_attn_verify_backend", since="0.5.22")
def verify_with_triton_under_pp(c: Config) -> None:
    """With SGLANG_ENABLE_PP_SPEC, FlashInfer's rows do not fit Kimi delta attention, so Triton verifies."""
    if not c.env.flag("SGLANG_ENABLE_PP_SPEC") or _verify_backend(c) != "flashinfer":
        return
    if c.model.uses_kda_attention:
        c.set(linear_attn_verify_backend="triton")


@handle_linear_attn_backend.refuses(
    "SPC259",
    "flashinfer-verify-of-wide-state",
    raises="ValueError",
    since="0.5.17",
    bad="model=qwen3-next-80b gpu=b200 -- --linear-attn-verify-backend flashinfer --mamba-ssm-dtype float32",
    good="model=qwen3-next-80b gpu=b200 -- --linear-attn-verify-backend flashinfer --mamba-ssm-dtype bfloat16",
)
def flashinfer_verify_of_wide_state(c: Config) -> Refusal | None:
    """On Blackwell, FlashInfer verifies drafts of linear attention with a bfloat16 state only.

    Say so with `--mamba-ssm-dtype bfloat16`, or verify with triton.
    """
    if c.linear_attn_verify_backend != "flashinfer" or c.mamba_ssm_dtype == "bfloat16" or not on_sm100_or_newer(c):
        return None
    return Refusal(
        at="linear_attn_verify_backend",
        related_fields=("mamba_ssm_dtype",),
        message=f"{c.shown('linear_attn_verify_backend')} is refused with {_state_type(c)} on {c.gpu.title}: "
        "FlashInfer verifies a bfloat16 state there.",
        fixes=(setting(mamba_ssm_dtype="bfloat16"), dropping("linear_attn_verify_backend")),
    )


# --- ReplaySSM ------------------------------------------------------------------------------------------------------


def _replay(c: Config) -> bool:
    return bool(c.enable_linear_replayssm)


@handle_linear_attn_backend.refuses(
    "SPC260",
    "replayssm-decode-backend",
    raises="ValueError",
    since="0.5.15",
    bad="model=qwen3-next-80b -- --enable-linear-replayssm --disable-radix-cache --linear-attn-decode-backend "
    "flashinfer",
    good="model=qwen3-next-80b -- --enable-linear-replayssm --disable-radix-cache",
)
def replayssm_decode_backend(c: Config) -> Refusal | None:
    """Buffered decoding (ReplaySSM) runs on few decode kernels.

    `--enable-linear-replayssm` lets the decode kernel write its inputs to a ring and fold them into the state later.
    Triton's kernel does so, and since 0.5.18 Helion's (for Kimi delta attention).
    """
    allowed = ("triton", "helion") if c.since("0.5.18") else ("triton",)
    if not _replay(c) or decode_backend(c) in allowed:
        return None
    at = decode_field(c)
    return Refusal(
        at=at,
        related_fields=("enable_linear_replayssm",),
        message=f"{c.shown(at)} is refused with `--enable-linear-replayssm`: only {' and '.join(allowed)} write its "
        f"ring.",
        fixes=(dropping(at), setting(linear_attn_decode_backend="triton"), dropping("enable_linear_replayssm")),
    )


@handle_linear_attn_backend.refuses(
    "SPC261",
    "replayssm-with-extra-buffer",
    raises="ValueError",
    since="0.5.15",
    bad="model=qwen3-next-80b -- --enable-linear-replayssm",
    good="model=qwen3-next-80b -- --enable-linear-replayssm --disable-radix-cache",
    earlier=(Earlier("0.5.16", "server_args.py:_handle_linear_attn_backend", "AttributeError"),),
)
def replayssm_with_extra_buffer(c: Config) -> Refusal | None:
    """Buffered decoding (ReplaySSM) does not work with the radix cache's extra buffer.

    With overlap scheduling the radix cache of a hybrid model keeps a second copy of each state (`extra_buffer`, which
    SGLang chooses by itself), and swapping the copies would lose the ring. Use `--mamba-radix-cache-strategy
    no_buffer` (which gives up overlap scheduling) or `--disable-radix-cache`.
    """
    if not _replay(c) or not keeps_extra_buffer(c):
        return None
    strategy = "mamba_radix_cache_strategy" if c.since("0.5.14") else "mamba_scheduler_strategy"
    return Refusal(
        at=strategy if c.given(strategy) else "enable_linear_replayssm",
        related_fields=("enable_linear_replayssm",) if c.given(strategy) else (strategy,),
        message=f"`--enable-linear-replayssm` is refused with {c.shown(strategy)}: swapping the two copies of a state "
        "would lose its ring.",
        fixes=(
            setting(mamba_radix_cache_strategy="no_buffer", disable_overlap_schedule=True),
            setting(disable_radix_cache=True),
            dropping("enable_linear_replayssm"),
        ),
    )


@handle_linear_attn_backend.refuses(
    "SPC262",
    "replayssm-with-disaggregation",
    raises="ValueError",
    since="0.5.15",
    bad="model=qwen3-next-80b -- --enable-linear-replayssm --disable-radix-cache --disaggregation-mode decode",
    good="model=qwen3-next-80b -- --enable-linear-replayssm --disable-radix-cache",
)
def replayssm_with_disaggregation(c: Config) -> Refusal | None:
    """Buffered decoding (ReplaySSM) does not work with prefill and decode on separate servers.

    The state pool of a decode server has no ring.
    """
    if not _replay(c) or c.disaggregation_mode == "null":
        return None
    return Refusal(
        at="enable_linear_replayssm",
        related_fields=("disaggregation_mode",),
        message=f"`--enable-linear-replayssm` is refused with {c.shown('disaggregation_mode')}: its ring is not part "
        "of the state that servers hand over.",
        fixes=(dropping("enable_linear_replayssm"), dropping("disaggregation_mode")),
    )


@handle_linear_attn_backend.refuses(
    "SPC263",
    "empty-replayssm-ring",
    raises="ValueError",
    since="0.5.15",
    bad="model=qwen3-next-80b -- --enable-linear-replayssm --disable-radix-cache --linear-replayssm-cache-len 0",
    good="model=qwen3-next-80b -- --enable-linear-replayssm --disable-radix-cache --linear-replayssm-cache-len 8",
)
def empty_replayssm_ring(c: Config) -> Refusal | None:
    """The ring of buffered decoding needs room for at least one token.

    `--linear-replayssm-cache-len` says how many tokens wait in the ring before they are folded into the state; 16 is the default.
    """
    if not (_replay(c) or _gdn_spec(c)) or c.linear_replayssm_cache_len >= 1:
        return None
    return Refusal(
        at="linear_replayssm_cache_len",
        related_fields=("enable_linear_replayssm" if _replay(c) else "enable_gdn_replayssm_spec",),
        message=f"{c.shown('linear_replayssm_cache_len')} is refused: the ring holds at least one token.",
        fixes=(dropping("linear_replayssm_cache_len"), setting(linear_replayssm_cache_len=16)),
    )


# --- ReplaySSM for verification -------------------------------------------------------------------------------------


def _spec(c: Config) -> bool:
    return bool(c.enable_linear_replayssm_spec)


def _gdn_spec(c: Config) -> bool:
    return c.since("0.5.16") and c.before("0.5.17") and bool(c.enable_gdn_replayssm_spec)


def _spec_field(c: Config) -> str:
    return "enable_gdn_replayssm_spec" if c.before("0.5.17") else "enable_linear_replayssm_spec"


@handle_linear_attn_backend.refuses(
    "SPC264",
    "tree-drafting-with-replayssm-verify",
    raises="ValueError",
    since="0.5.16",
    bad="model=qwen3-next-80b -- --enable-linear-replayssm-spec --speculative-algorithm NEXTN --speculative-num-steps "
    "3 "
    "--speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
    good="model=qwen3-next-80b -- --enable-linear-replayssm-spec --speculative-algorithm NEXTN "
    "--speculative-num-steps 3 "
    "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def tree_drafting_with_replayssm_verify(c: Config) -> Refusal | None:
    """ReplaySSM verifies a chain of draft tokens, not a tree.

    Its kernel masks each draft token against the ones before it, which is right for one chain
    (`--speculative-eagle-topk 1`) and wrong for branches. Draft a chain, or remove the flag: the ordinary verification
    handles trees.
    """
    if not (_spec(c) or _gdn_spec(c)) or c.speculative_eagle_topk in (None, 1):
        return None
    return Refusal(
        at="speculative_eagle_topk",
        related_fields=(_spec_field(c),),
        message=f"{c.shown('speculative_eagle_topk')} is refused with `{c.flag(_spec_field(c))}`: its kernel verifies "
        "one chain of draft tokens, not a tree.",
        fixes=(setting(speculative_eagle_topk=1), dropping(_spec_field(c))),
    )


@handle_linear_attn_backend.refuses(
    "SPC265",
    "replayssm-verify-decode-backend",
    raises="ValueError",
    since="0.5.16",
    bad="model=kimi-linear-48b -- --enable-linear-replayssm-spec --linear-attn-decode-backend helion",
    good="model=kimi-linear-48b -- --enable-linear-replayssm-spec --linear-attn-decode-backend triton",
)
def replayssm_verify_decode_backend(c: Config) -> Refusal | None:
    """ReplaySSM's verification runs beside few decode kernels.

    It works beside triton and flashinfer (in 0.5.16, triton only). That differs from `--enable-linear-replayssm`, which
    takes triton and helion.
    """
    if not (_spec(c) or _gdn_spec(c)):
        return None
    allowed = ("triton",) if c.before("0.5.17") else ("triton", "flashinfer")
    if decode_backend(c) in allowed:
        return None
    at = decode_field(c)
    return Refusal(
        at=at,
        related_fields=(_spec_field(c),),
        message=f"{c.shown(at)} is refused with `{c.flag(_spec_field(c))}`: it works beside {' and '.join(allowed)} "
        f"only.",
        fixes=(setting(linear_attn_decode_backend="triton"), dropping(_spec_field(c))),
    )


@handle_linear_attn_backend.refuses(
    "SPC266",
    "ragged-replayssm-verify",
    raises="ValueError",
    since="0.5.17",
    bad="model=qwen3-next-80b SGLANG_RAGGED_VERIFY_MODE=compact -- --enable-linear-replayssm-spec",
    good="model=qwen3-next-80b SGLANG_RAGGED_VERIFY_MODE=static -- --enable-linear-replayssm-spec",
)
def ragged_replayssm_verify(c: Config) -> Refusal | None:
    """ReplaySSM's verification accepts ragged drafts only from DSPARK or DFLASH, with kernels that fill its ring.

    `SGLANG_RAGGED_VERIFY_MODE` other than `static` lets requests verify different numbers of tokens. That works for
    DSPARK and DFLASH with `--linear-attn-verify-backend triton` or `nv_cutedsl`; with anything else the ring would hold
    stale tokens.
    """
    if not _spec(c):
        return None
    mode = ragged_verify_mode(c)
    if mode not in ("cap-accept", "compact"):
        return None
    drafts = (c.speculative_algorithm or "").upper() in ("DSPARK", "DFLASH")
    if drafts and c.linear_attn_verify_backend in ("triton", "nv_cutedsl"):
        return None
    return Refusal(
        at="enable_linear_replayssm_spec",
        related_fields=("SGLANG_RAGGED_VERIFY_MODE", "linear_attn_verify_backend", "speculative_algorithm"),
        message=f"`--enable-linear-replayssm-spec` is refused with `SGLANG_RAGGED_VERIFY_MODE={mode}`: ragged drafts "
        "need DSPARK or DFLASH and `--linear-attn-verify-backend` triton or nv_cutedsl.",
        fixes=(
            dropping_env("SGLANG_RAGGED_VERIFY_MODE"),
            setting_env(SGLANG_RAGGED_VERIFY_MODE="static"),
            *((setting(linear_attn_verify_backend="triton"),) if drafts else ()),
            dropping("enable_linear_replayssm_spec"),
        ),
    )


@handle_linear_attn_backend.refuses(
    "SPC267",
    "unknown-ragged-verify-mode",
    raises="ValueError",
    since="0.5.17",
    sglang="ragged_verify.py:read_ragged_verify_mode",
    bad="model=qwen3-next-80b SGLANG_RAGGED_VERIFY_MODE=dense -- --enable-linear-replayssm-spec",
    good="model=qwen3-next-80b SGLANG_RAGGED_VERIFY_MODE=static -- --enable-linear-replayssm-spec",
)
def unknown_ragged_verify_mode(c: Config) -> Refusal | None:
    """SGLANG_RAGGED_VERIFY_MODE is static, cap-accept or compact.

    The variable says whether all requests verify the same number of draft tokens (`static`, the default) or their own.
    SGLang reads it for `--enable-linear-replayssm-spec` and accepts no other value.
    """
    return unknown_mode(c, "enable_linear_replayssm_spec") if _spec(c) else None


def unknown_mode(c: Config, reader: str) -> Refusal | None:
    """The refusal of an unknown verify mode; `reader` is the field whose use reads the variable."""
    mode = ragged_verify_mode(c)
    if mode in ("static", "cap-accept", "compact"):
        return None
    return Refusal(
        at="SGLANG_RAGGED_VERIFY_MODE",
        related_fields=(reader,),
        message=f"`SGLANG_RAGGED_VERIFY_MODE={mode}` is refused: the modes are static, cap-accept and compact.",
        fixes=(dropping_env("SGLANG_RAGGED_VERIFY_MODE"), setting_env(SGLANG_RAGGED_VERIFY_MODE="static")),
    )


@handle_linear_attn_backend.refuses(
    "SPC268",
    "gdn-replayssm-verify-with-extra-buffer",
    raises="ValueError",
    since="0.5.16",
    until="0.5.17",
    bad="sglang=0.5.16 model=qwen3-next-80b -- --enable-gdn-replayssm-spec",
    good="sglang=0.5.16 model=qwen3-next-80b -- --enable-gdn-replayssm-spec --disable-radix-cache",
)
def gdn_replayssm_verify_with_extra_buffer(c: Config) -> Refusal | None:
    """In 0.5.16, ReplaySSM's verification does not work with the radix cache's extra buffer.

    Turn the radix cache off, or use `--mamba-radix-cache-strategy no_buffer`.
    """
    if not _gdn_spec(c) or not keeps_extra_buffer(c):
        return None
    return Refusal(
        at="enable_gdn_replayssm_spec",
        related_fields=("mamba_radix_cache_strategy",),
        message=f"`--enable-gdn-replayssm-spec` is refused with {c.shown('mamba_radix_cache_strategy')}.",
        fixes=(setting(disable_radix_cache=True), dropping("enable_gdn_replayssm_spec")),
    )


@handle_linear_attn_backend.refuses(
    "SPC269",
    "replayssm-verify-with-disaggregation",
    raises="ValueError",
    since="0.5.16",
    bad="model=qwen3-next-80b -- --enable-linear-replayssm-spec --disaggregation-mode prefill",
    good="model=qwen3-next-80b -- --enable-linear-replayssm-spec --disaggregation-mode decode",
)
def replayssm_verify_with_disaggregation(c: Config) -> Refusal | None:
    """ReplaySSM's verification does not run on a prefill server.

    A prefill server never verifies drafts, so the ring would only cost memory. Give the flag to the decode server.
    (0.5.16 refuses it on both.)
    """
    if not (_spec(c) or _gdn_spec(c)) or c.disaggregation_mode == "null":
        return None
    if c.since("0.5.17") and c.disaggregation_mode != "prefill":
        return None
    return Refusal(
        at=_spec_field(c),
        related_fields=("disaggregation_mode",),
        message=f"`{c.flag(_spec_field(c))}` is refused with {c.shown('disaggregation_mode')}: "
        + (
            "a prefill server never verifies drafts."
            if c.since("0.5.17")
            else "in this release servers cannot hand its ring over."
        ),
    )


@handle_linear_attn_backend.refuses(
    "SPC270",
    "replayssm-decode-and-verify",
    raises="ValueError",
    since="0.5.16",
    bad="model=qwen3-next-80b -- --enable-linear-replayssm-spec --enable-linear-replayssm --disable-radix-cache",
    good="model=qwen3-next-80b -- --enable-linear-replayssm-spec",
)
def replayssm_decode_and_verify(c: Config) -> Refusal | None:
    """ReplaySSM either decodes or verifies.

    Both use one ring, and move along it in ways that exclude each other. With speculative decoding keep the flag for
    verification.
    """
    if not (_spec(c) or _gdn_spec(c)) or not _replay(c):
        return None
    return Refusal(
        at="enable_linear_replayssm",
        related_fields=(_spec_field(c),),
        message=f"`--enable-linear-replayssm` is refused with `{c.flag(_spec_field(c))}`: both would write the same "
        f"ring.",
        fixes=(dropping("enable_linear_replayssm"), dropping(_spec_field(c))),
    )


@handle_linear_attn_backend.refuses(
    "SPC271",
    "gdn-replayssm-ring-not-power-of-two",
    raises="ValueError",
    since="0.5.16",
    until="0.5.17",
    bad="sglang=0.5.16 model=qwen3-next-80b -- --enable-gdn-replayssm-spec --disable-radix-cache "
    "--linear-replayssm-cache-len 12",
    good="sglang=0.5.16 model=qwen3-next-80b -- --enable-gdn-replayssm-spec --disable-radix-cache "
    "--linear-replayssm-cache-len 16",
)
def gdn_replayssm_ring_not_power_of_two(c: Config) -> Refusal | None:
    """In 0.5.16, the ring of ReplaySSM's verification holds a power of two of tokens.

    The ring wraps around by masking the position. Use 16 (the default) or 32.
    """
    length = c.linear_replayssm_cache_len if _gdn_spec(c) else 1
    if length < 1 or length & (length - 1) == 0:
        return None
    return Refusal(
        at="linear_replayssm_cache_len",
        related_fields=("enable_gdn_replayssm_spec",),
        message=f"{c.shown('linear_replayssm_cache_len')} is refused with `--enable-gdn-replayssm-spec`: it must be a "
        f"power of two.",
        fixes=(setting(linear_replayssm_cache_len=16), setting(linear_replayssm_cache_len=32)),
    )


@handle_linear_attn_backend.refuses(
    "SPC272",
    "gdn-replayssm-verify-of-narrow-state",
    raises="ValueError",
    since="0.5.16",
    until="0.5.17",
    bad="sglang=0.5.16 model=qwen3-next-80b -- --enable-gdn-replayssm-spec --disable-radix-cache --mamba-ssm-dtype "
    "bfloat16",
    good="sglang=0.5.16 model=qwen3-next-80b -- --enable-gdn-replayssm-spec --disable-radix-cache --mamba-ssm-dtype "
    "float32",
)
def gdn_replayssm_verify_of_narrow_state(c: Config) -> Refusal | None:
    """In 0.5.16, ReplaySSM's verification needs a float32 state.

    The verified tokens are folded into the state exactly as they would have been decoded, which a 16-bit state cannot
    hold. Leave `--mamba-ssm-dtype` out.
    """
    if not _gdn_spec(c) or c.mamba_ssm_dtype in (None, "float32"):
        return None
    return Refusal(
        at="mamba_ssm_dtype",
        related_fields=("enable_gdn_replayssm_spec",),
        message=f"{c.shown('mamba_ssm_dtype')} is refused with `--enable-gdn-replayssm-spec`: it folds into a float32 "
        f"state.",
        fixes=(dropping("mamba_ssm_dtype"), setting(mamba_ssm_dtype="float32"), dropping("enable_gdn_replayssm_spec")),
    )


@handle_linear_attn_backend.adjusts("mamba_ssm_dtype", since="0.5.16")
def replayssm_verify_state(c: Config) -> None:
    """ReplaySSM's verification keeps the recurrent state in float32 unless told otherwise."""
    if (_spec(c) or _gdn_spec(c)) and c.mamba_ssm_dtype is None:
        c.set(mamba_ssm_dtype="float32")


validate_gdn_replayssm_spec_ring = Handler(
    "server_args.py:_validate_gdn_replayssm_spec_ring", since="0.5.16", until="0.5.17"
)


@validate_gdn_replayssm_spec_ring.refuses(
    "SPC273",
    "short-gdn-replayssm-ring",
    raises="ValueError",
    bad="sglang=0.5.16 model=qwen3-next-80b -- --enable-gdn-replayssm-spec --disable-radix-cache "
    "--linear-replayssm-cache-len 4 "
    "--speculative-algorithm NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 4",
    good="sglang=0.5.16 model=qwen3-next-80b -- --enable-gdn-replayssm-spec --disable-radix-cache "
    "--linear-replayssm-cache-len 8 "
    "--speculative-algorithm NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 4",
)
def short_gdn_replayssm_ring(c: Config) -> Refusal | None:
    """In 0.5.16, the ring of ReplaySSM's verification holds twice the draft tokens of a step.

    The ring must still have room for a whole draft when it is flushed. Lengthen it with `--linear-replayssm-cache-len`.
    """
    if not _gdn_spec(c) or c.speculative_num_draft_tokens is None:
        return None
    needed = 2 * (8 if c.speculative_adaptive else c.speculative_num_draft_tokens)
    if c.linear_replayssm_cache_len >= needed:
        return None
    return Refusal(
        at="linear_replayssm_cache_len",
        related_fields=("enable_gdn_replayssm_spec", "speculative_num_draft_tokens"),
        message=f"{c.shown('linear_replayssm_cache_len')} is refused with {c.shown('speculative_num_draft_tokens')}: "
        f"the ring "
        f"must hold at least {needed} tokens.",
        fixes=(setting(linear_replayssm_cache_len=16), setting(linear_replayssm_cache_len=32)),
    )
