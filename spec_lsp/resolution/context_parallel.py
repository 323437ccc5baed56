"""Context parallelism in prefill and decode.

Follows arg_groups/parallel_hook.py and cp_tp_group_sharing_hook.py. Left out: validate_prefill_cp_platform on MUSA (no such hardware
is modelled).
"""

from __future__ import annotations

from spec_lsp.resolution.engine import (
    MOVED,
    Config,
    Earlier,
    Handler,
    Refusal,
    dropping,
    setting,
)
from spec_lsp.resolution.ranks import attention_cp_size, attention_dp_field, has_attn_dp_size, loads_from_instance

# --- validate_prefill_cp_platform -------------------------------------------------------------------------------------

validate_prefill_cp_platform = Handler("parallel_hook.py:validate_prefill_cp_platform", since="0.5.20")


@validate_prefill_cp_platform.refuses(
    "SPC500", "prefill-context-parallel-off-cuda", raises="ValueError", since="0.5.20", until="0.5.22", hardware_only=True,
    bad="gpu=mi300x -- --tp-size 8 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
    good="gpu=h100 -- --tp-size 8 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
)  # fmt: skip
def prefill_context_parallel_off_cuda(c: Config) -> Refusal | None:
    """Context-parallel prefill does not run on this platform in this release.

    Splitting one prompt over several GPUs was switched off for AMD (and, in 0.5.20, Ascend) devices while it was
    rewritten; it came back in 0.5.22. Use tensor parallelism alone, or a newer release.
    """
    if c.enable_prefill_cp and (c.gpu.is_hip or (c.gpu.platform == "npu" and c.before("0.5.21"))):
        return Refusal(
            at="enable_prefill_cp",
            message=f"{c.shown('enable_prefill_cp')} is not available on {c.gpu.title}: this SGLang release has no "
            "context-parallel prefill there. Remove it.",
        )
    return None


# --- handle_decode_context_parallelism --------------------------------------------------------------------------------


def crosses_nvlink_domain(c: Config) -> bool:
    """Whether the DCP group extends beyond the NVLink of one node. Assumes that there is no multi-node NVLink."""
    return int(c.tp_size) // max(int(c.nnodes) // int(c.pp_size), 1) % int(c.dcp_size) != 0


handle_decode_context_parallelism = Handler(
    "parallel_hook.py:handle_decode_context_parallelism",
    since="0.5.15",
    earlier=(
        Earlier("0.5.19", "server_args.py:_handle_dcp_validation"),
        Earlier("0.5.20", "parallel_hook.py:handle_dcp_validation"),
    ),
)
handle_dcp_validation = handle_decode_context_parallelism
"""Its name before 0.5.20."""


@handle_decode_context_parallelism.adjusts("dcp_comm_backend", since="0.5.20")
def choose_dcp_exchange(c: Config) -> None:
    """Decode context parallelism uses the fastest communication backend of the platform."""
    if c.dcp_comm_backend is not None:
        return
    if c.dcp_size <= 1:
        c.set(dcp_comm_backend="ag_rs")
    elif c.gpu.sm100 and not crosses_nvlink_domain(c):
        c.set(dcp_comm_backend="fi_a2a")
    else:
        c.set(dcp_comm_backend="a2a" if c.gpu.platform in ("cuda", "hip", "xpu") else "ag_rs")


@handle_decode_context_parallelism.refuses(
    "SPC501", "decode-context-parallel-size-below-one", raises="ValueError",
    bad="--tp-size 2 --dcp-size 0", good="--tp-size 2 --dcp-size 1",
)  # fmt: skip
def decode_context_parallel_size_below_one(c: Config) -> Refusal | None:
    """A decode context-parallel group has at least one rank.

    `--dcp-size` says over how many GPUs the KV cache of one sequence is spread while decoding; 1 switches it off.
    """
    if c.dcp_size < 1:
        return Refusal(
            at="dcp_size",
            message=f"{c.shown('dcp_size')} is not a group size: it must be at least 1, which means no decode context "
            "parallelism.",
            fixes=(dropping("dcp_size"), setting(dcp_size=1)),
        )
    return None


@handle_decode_context_parallelism.refuses(
    "SPC507", "decode-context-parallel-not-available", raises="ValueError", until="0.5.17",
    bad="sglang=0.5.16 model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --speculative-algorithm EAGLE",
    good="sglang=0.5.16 model=deepseek-v3 -- --tp-size 8 --dcp-size 2",
)  # fmt: skip
def decode_context_parallel_not_available(c: Config) -> Refusal | None:
    """In this release decode context parallelism runs on NVIDIA and AMD GPUs, on NVIDIA without speculative decoding.

    Verifying draft tokens over a KV cache that is spread over GPUs came in 0.5.17. Remove one of the two or use a newer
    release.
    """
    if c.dcp_size <= 1 or c.gpu.is_hip or (c.gpu.is_cuda and c.speculative_algorithm is None):
        return None
    other = "speculative_algorithm" if c.gpu.is_cuda else "device"
    return Refusal(
        at="dcp_size",
        related_fields=(other,),
        message=f"{c.shown('dcp_size')} is not available with {c.shown(other)} in SGLang {c.release}. Remove it.",
        fixes=(dropping("dcp_size"), dropping(other)),
    )


@handle_decode_context_parallelism.refuses(
    "SPC502", "decode-and-prefill-context-parallel", raises="ValueError", since="0.5.22",
    bad="--tp-size 4 --dcp-size 2 --enable-prefill-cp --attn-cp-size 2 --cp-strategy zigzag",
    good="--tp-size 4 --enable-prefill-cp --attn-cp-size 2 --cp-strategy zigzag",
)  # fmt: skip
def decode_and_prefill_context_parallel(c: Config) -> Refusal | None:
    """Context parallelism for decode and for prefill exclude each other.

    `--dcp-size` spreads the KV cache of a sequence while decoding, `--enable-prefill-cp` splits the prompt while
    prefilling; the two lay out the ranks differently. Keep the one your workload needs: long prompts want prefill CP,
    long contexts DCP.
    """
    if c.dcp_size > 1 and c.enable_prefill_cp:
        return Refusal(
            at="dcp_size",
            related_fields=("enable_prefill_cp",),
            message=f"{c.shown('dcp_size')} cannot be combined with {c.shown('enable_prefill_cp')}: decode and "
            "prefill context parallelism lay out the ranks differently. Keep one of them.",
            fixes=(dropping("dcp_size"), dropping("enable_prefill_cp")),
        )
    return None


@handle_decode_context_parallelism.refuses(
    "SPC503", "dcp-exchange-without-dcp", raises="ValueError", since="0.5.17",
    bad="--tp-size 2 --dcp-comm-backend a2a", good="--tp-size 2 --dcp-comm-backend ag_rs",
)  # fmt: skip
def dcp_exchange_without_dcp(c: Config) -> Refusal | None:
    """An all-to-all exchange for decode context parallelism was chosen, but there is no such group.

    `--dcp-comm-backend a2a` and `fi_a2a` only change how ranks of a DCP group merge their attention results, so SGLang
    needs `--dcp-size` above 1 with them.
    """
    if c.dcp_comm_backend in ("a2a", "fi_a2a") and c.dcp_size <= 1:
        return Refusal(
            at="dcp_comm_backend",
            related_fields=("dcp_size",),
            message=f"{c.shown('dcp_comm_backend')} has nothing to exchange: decode context parallelism is off "
            f"with {c.shown('dcp_size')}. Set `--dcp-size` above 1 or leave the backend out.",
            fixes=(dropping("dcp_comm_backend"), setting(dcp_size=2)),
        )
    return None


@handle_decode_context_parallelism.refuses(
    "SPC504", "flashinfer-dcp-exchange-off-cuda", raises="ValueError", since="0.5.17", hardware_only=True,
    bad="gpu=mi300x -- --tp-size 2 --dcp-size 2 --dcp-comm-backend fi_a2a",
    good="gpu=mi300x -- --tp-size 2 --dcp-size 2 --dcp-comm-backend a2a",
)  # fmt: skip
def flashinfer_dcp_exchange_off_cuda(c: Config) -> Refusal | None:
    """FlashInfer's DCP exchange needs NVIDIA GPUs.

    `fi_a2a` hands the exchange to a FlashInfer kernel over multi-node NVLink memory. Elsewhere `a2a` or `ag_rs` do the
    same work.
    """
    if c.dcp_comm_backend == "fi_a2a" and not c.gpu.is_cuda:
        return Refusal(
            at="dcp_comm_backend",
            message=f"{c.shown('dcp_comm_backend')} does not run on {c.gpu.title}: the exchange is a FlashInfer "
            "kernel for NVIDIA GPUs. Use `a2a` or `ag_rs`.",
            fixes=(setting(dcp_comm_backend="a2a"), setting(dcp_comm_backend="ag_rs")),
        )
    return None


@handle_decode_context_parallelism.refuses(
    "SPC505", "replicated-q-without-dcp", raises="ValueError", since="0.5.17",
    bad="--tp-size 2 --dcp-replicate-q-proj",
    good="--tp-size 2 --dcp-size 2 --dcp-comm-backend a2a --dcp-replicate-q-proj",
)  # fmt: skip
def replicated_q_without_dcp(c: Config) -> Refusal | None:
    """Replicating the query projection only makes sense inside a DCP group.

    `--dcp-replicate-q-proj` saves the gathering of queries between the ranks of a decode context-parallel group.
    """
    if c.dcp_replicate_q_proj and c.dcp_size <= 1:
        return Refusal(
            at="dcp_replicate_q_proj",
            related_fields=("dcp_size",),
            message=f"{c.shown('dcp_replicate_q_proj')} needs a decode context-parallel group, and there is none "
            f"with {c.shown('dcp_size')}. Set `--dcp-size` above 1 or leave the flag out.",
            fixes=(dropping("dcp_replicate_q_proj"), setting(dcp_size=2)),
        )
    return None


@handle_decode_context_parallelism.refuses(
    "SPC506", "replicated-q-with-gathering-exchange", raises="ValueError", since="0.5.17",
    bad="--tp-size 2 --dcp-size 2 --dcp-comm-backend ag_rs --dcp-replicate-q-proj",
    good="--tp-size 2 --dcp-size 2 --dcp-comm-backend a2a --dcp-replicate-q-proj",
)  # fmt: skip
def replicated_q_with_gathering_exchange(c: Config) -> Refusal | None:
    """The replicated query projection belongs to the all-to-all exchange of DCP.

    It replaces the gathering of queries over the head dimension, which only `a2a` and `fi_a2a` can do without.
    """
    if c.dcp_replicate_q_proj and c.dcp_size > 1 and c.dcp_comm_backend not in ("a2a", "fi_a2a"):
        return Refusal(
            at="dcp_replicate_q_proj",
            related_fields=("dcp_comm_backend",),
            message=f"{c.shown('dcp_replicate_q_proj')} does not work with {c.shown('dcp_comm_backend')}: only the "
            "all-to-all exchanges do without gathering the queries. Use `--dcp-comm-backend a2a`.",
            fixes=(setting(dcp_comm_backend="a2a"), dropping("dcp_replicate_q_proj")),
        )
    return None


# --- handle_legacy_cp_arguments ---------------------------------------------------------------------------------------

handle_legacy_cp_arguments = Handler("parallel_hook.py:handle_legacy_cp_arguments", since="0.5.14", until="0.5.20")

CP_MODES = {"in-seq-split": "zigzag", "round-robin-split": "interleave"}


@handle_legacy_cp_arguments.adjusts(
    "enable_prefill_cp", "cp_strategy", "enable_prefill_context_parallel", "enable_dsa_prefill_context_parallel",
    "prefill_cp_mode", "dsa_prefill_cp_mode", MOVED, spelling=True,
)  # fmt: skip
def read_legacy_context_parallel_flags(c: Config) -> None:
    """`--enable-prefill-context-parallel` and similar flags are old spellings of `--enable-prefill-cp`, kept in step."""
    plain, sparse = c.enable_prefill_context_parallel, c.enable_dsa_prefill_context_parallel
    if plain or sparse:
        kind = "prefill" if plain else "dsa_prefill"
        c.move("enable_prefill_cp", f"enable_{kind}_context_parallel", value=True)
        if c.cp_strategy is None:
            mode = f"{kind}_cp_mode"
            c.move("cp_strategy", mode, value=CP_MODES[getattr(c, mode)])
    if (plain and sparse) or not c.enable_prefill_cp or c.cp_strategy is None:
        return
    if sparse or c.attention_backend in ("dsa", "dsv4"):
        c.set(enable_dsa_prefill_context_parallel=True, enable_prefill_context_parallel=False)
    else:
        c.set(enable_prefill_context_parallel=True)
    mode = next(mode for mode, strategy in CP_MODES.items() if strategy == c.cp_strategy)
    c.set(dsa_prefill_cp_mode=mode, prefill_cp_mode=mode)


# --- handle_context_parallelism ---------------------------------------------------------------------------------------

handle_context_parallelism = Handler("parallel_hook.py:handle_context_parallelism", since="0.5.9")

NEMOTRON_H = ("nemotron_h", "nemotron_h_puzzle")


@handle_context_parallelism.refuses(
    "SPC530", "context-parallel-model-without-it", raises="ValueError", since="0.5.21",
    sglang="parallel_hook.py:_boundary_parallelism_overrides",
    bad="model=nemotron-h-8b -- --tp-size 2 --attn-cp-size 2", good="model=nemotron-h-8b -- --tp-size 2",
)  # fmt: skip
def context_parallel_model_without_it(c: Config) -> Refusal | None:
    """This model cannot split sequences over GPUs.

    Nemotron-H has no attention context parallelism at all, LongCat-Flash none for prefill: their layers do not exchange
    what the ranks would need of each other. Use tensor parallelism alone.
    """
    if attention_cp_size(c) <= 1 or loads_from_instance(c):
        return None
    kind = c.model.text_model_type
    if kind in NEMOTRON_H or (kind == "longcat_flash" and c.enable_prefill_cp):
        return Refusal(
            at="attn_cp_size",
            related_fields=("enable_prefill_cp",) if kind == "longcat_flash" else ("model_path",),
            message=f"{c.shown('attn_cp_size')} does not work with this model ({c.model.architecture}): its layers "
            "cannot split a sequence over GPUs. Leave context parallelism out.",
            fixes=(dropping("attn_cp_size"), dropping("attn_cp_size", "enable_prefill_cp")),
        )
    return None


@handle_context_parallelism.adjusts("enable_attn_tp_input_scattered", since="0.5.21")
def drop_scattered_attention_input(c: Config) -> None:
    """The forward pass of this model never scatters the attention input, so the flag is switched off."""
    if not c.enable_attn_tp_input_scattered or loads_from_instance(c):
        return
    arch = c.model.architecture
    kimi_k3 = c.since("0.5.22") and arch in ("KimiK3ForConditionalGeneration", "KimiK3LinearForCausalLM")
    inkling = c.since("0.5.23") and arch.startswith("InklingForConditionalGeneration")
    if kimi_k3 or inkling or c.model.text_model_type in (*NEMOTRON_H, "longcat_flash"):
        c.set(enable_attn_tp_input_scattered=False)


@handle_context_parallelism.refuses(
    "SPC531", "prefill-context-parallel-model-on-rocm", raises="ValueError", since="0.5.22",
    bad="gpu=mi300x -- --tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
    good="gpu=h100 -- --tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
)  # fmt: skip
def prefill_context_parallel_model_on_rocm(c: Config) -> Refusal | None:
    """On AMD GPUs only DeepSeek-V4 has context-parallel prefill.

    The attention kernels of the other models do not split a prompt there. Use tensor parallelism alone.
    """
    if (
        c.enable_prefill_cp
        and not loads_from_instance(c)
        and c.gpu.is_hip
        and c.model.architecture != "DeepseekV4ForCausalLM"
    ):
        return Refusal(
            at="enable_prefill_cp",
            message=f"{c.shown('enable_prefill_cp')} works on {c.gpu.title} only with DeepSeek-V4, not with "
            f"{c.model.architecture}. Remove it.",
        )
    return None


@handle_context_parallelism.refuses(
    "SPC532",
    "context-parallel-strategy-the-model-lacks",
    raises="ValueError",
    since="0.5.16",
    bad="sglang=0.5.23 model=deepseek-v3.2 -- --tp-size 8 --attn-cp-size 8 --enable-prefill-cp --cp-strategy zigzag",
    good="sglang=0.5.23 model=deepseek-v3.2 -- --tp-size 8 --attn-cp-size 8 --enable-prefill-cp --cp-strategy "
    "interleave",
)
def context_parallel_strategy_the_model_lacks(c: Config) -> Refusal | None:
    """The model splits prompts only by the other strategy.

    DeepSeek-V3.2 deals tokens out in turn (`interleave`), MiMo-V2 gives every rank one piece from each end (`zigzag`);
    their attention code supports no other strategy.
    """
    if not c.enable_prefill_cp or loads_from_instance(c):
        return None
    arch, wanted = c.model.architecture, None
    if arch == "DeepseekV32ForCausalLM" and c.since("0.5.20") and c.cp_strategy == "zigzag":
        wanted = "interleave"
    elif arch in ("MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM") and c.cp_strategy != "zigzag" and _uses_cp_v2(c):
        wanted = "zigzag"
    if wanted is None:
        return None
    return Refusal(
        at=c.first_given("cp_strategy", "enable_prefill_cp"),
        related_fields=("enable_prefill_cp",),
        message=f"{c.shown('cp_strategy')} does not work with {arch}: its attention splits prompts by `{wanted}` "
        f"only. Set `--cp-strategy {wanted}`.",
        fixes=(setting(cp_strategy=wanted),),
    )


def _uses_cp_v2(c: Config) -> bool:
    """Whether MiMo-V2 uses the second version of context parallelism: always since 0.5.20, by default before."""
    return c.since("0.5.20") or c.env.flag("SGLANG_ENABLE_CP_V2", True)


@handle_context_parallelism.refuses(
    "SPC533",
    "context-parallel-images",
    raises="ValueError",
    since="0.5.16",
    bad="--tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag --json-model-override-args "
    """'{"architectures": ["MiMoV2ForCausalLM"], "vision_config": {"depth": 2}, "audio_config": {"depth": 2}}'""",
    good="--tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
)
def context_parallel_images(c: Config) -> Refusal | None:
    """MiMo-V2's context-parallel prefill supports text only.

    Image positions would have to be split over the ranks too, which its code does not do. Serve the language model
    only.
    """
    if not c.enable_prefill_cp or loads_from_instance(c) or not _uses_cp_v2(c):
        return None
    if c.model.architecture not in ("MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM") or not c.model.is_multimodal(
        c.enable_multimodal, bool(c.language_model_only)
    ):
        return None
    if c.language_only or c.language_model_only:
        return None
    return Refusal(
        at="enable_prefill_cp",
        related_fields=("language_only",),
        message=f"{c.shown('enable_prefill_cp')} supports text only with {c.model.architecture}, which also reads "
        "images. Add `--language-only` or leave context parallelism out.",
        fixes=(setting(language_only=True), dropping("enable_prefill_cp")),
    )


GROUP_SHARING_MODELS = ("Glm5NextForConditionalGeneration", "Qwen4ExpForConditionalGeneration")


def _shares_groups(c: Config) -> bool:
    """Whether prefill CP uses the TP group itself (cp_tp_group_sharing_hook.resolve_cp_tp_group_sharing)."""
    if not c.enable_prefill_cp or attention_cp_size(c) <= 1 or loads_from_instance(c):
        return False
    supported = GROUP_SHARING_MODELS if c.since("0.5.23") else ("Qwen4ExpForConditionalGeneration",)
    return c.model.architecture in supported


def _group_sharing_conflict(c: Config) -> tuple[str, str] | None:
    """The field that keeps a model from sharing its CP and TP groups, and why, in SGLang's order."""
    glm = c.model.architecture == "Glm5NextForConditionalGeneration"
    if attention_cp_size(c) != c.tp_size:
        return "attn_cp_size", f"it has to equal {c.shown('tp_size')}"
    strategy = "interleave" if glm else "zigzag"
    if c.cp_strategy != strategy:
        return "cp_strategy", f"the strategy has to be `{strategy}`"
    algorithm = c.speculative_algorithm
    if algorithm is not None:
        native = algorithm.upper() in ("EAGLE", "NEXTN") and c.speculative_draft_model_path in (None, c.model_path)
        if not glm or (algorithm != "DFLASH" and not (native and c.speculative_eagle_topk in (None, 1))):
            return "speculative_algorithm", "this kind of speculative decoding has not been ported to it"
    qwen = not glm
    pd = c.disaggregation_mode != "null"
    conflicts = {
        "enable_dsa_cache_layer_split": c.enable_dsa_cache_layer_split,
        "dcp_size": c.dcp_size > 1,
        "enable_mixed_chunk": c.enable_mixed_chunk,
        "moe_dp_size": c.moe_dp_size > 1,
        "ep_size": c.ep_size > 1 and (pd or qwen),
        "moe_a2a_backend": qwen and c.moe_a2a_backend != "none",
        "enable_waterfill": qwen and c.enable_waterfill,
        "pp_size": c.pp_size > 1 and (pd or qwen),
        "disaggregation_mode": c.disaggregation_mode == "decode",
        "disaggregation_transfer_backend": glm and pd and c.disaggregation_transfer_backend != "mooncake",
        "speculative_algorithm": glm and pd and algorithm != "DFLASH",
        "dp_size": glm and pd and c.dp_size > 1,
    }
    for field, conflict in conflicts.items():
        if conflict:
            return field, "it has not been ported to it"
    if c.disaggregation_mode == "prefill" and c.env.flag("SGLANG_DISAGG_STAGING_BUFFER"):
        return "SGLANG_DISAGG_STAGING_BUFFER", "prefill and decode would stage transfers differently"
    return None


@handle_context_parallelism.refuses(
    "SPC534",
    "shared-cp-and-tp-group-conflict",
    raises="ValueError",
    since="0.5.23",
    sglang="cp_tp_group_sharing_hook.py:resolve_cp_tp_group_sharing",
    bad="--tp-size 4 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag --json-model-override-args "
    """'{"architectures": ["Qwen4ExpForConditionalGeneration"]}'""",
    good="--tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
)
def shared_cp_and_tp_group_conflict(c: Config) -> Refusal | None:
    """This model's context-parallel prefill shares its group with tensor parallelism, which rules this out.

    GLM-5-Next and Qwen4-Exp split the prompt over the very ranks that also split experts and linear attention. That
    needs `--attn-cp-size` equal to `--tp-size`, the model's own splitting strategy, and none of the features that lay
    out ranks otherwise.
    """
    if not _shares_groups(c):
        return None
    conflict = _group_sharing_conflict(c)
    if conflict is None:
        return None
    field, why = conflict
    label = c.shown(field) if not field.startswith("SGLANG_") else f"`{field}`"
    return Refusal(
        at=field,
        related_fields=("enable_prefill_cp",),
        message=f"{label} does not fit the context-parallel prefill of {c.model.architecture}, where context and "
        f"tensor parallelism share one group: {why}.",
        fixes=(dropping("enable_prefill_cp"), dropping(field)),
    )


@handle_context_parallelism.refuses(
    "SPC535", "prefill-context-parallel-without-strategy", raises="ValueError", since="0.5.14",
    bad="--tp-size 2 --attn-cp-size 2 --enable-prefill-cp",
    good="--tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag",
)  # fmt: skip
def prefill_context_parallel_without_strategy(c: Config) -> Refusal | None:
    """Context-parallel prefill needs to be told how to split a prompt.

    `zigzag` gives every rank one piece from the front and one from the back of the prompt, which balances causal
    attention; `interleave` deals the tokens out in turn, which sparse attention (DeepSeek-V3.2) needs. There is no
    default.
    """
    if c.enable_prefill_cp and c.cp_strategy is None:
        return Refusal(
            at="enable_prefill_cp",
            related_fields=("cp_strategy",),
            message=f"{c.shown('enable_prefill_cp')} needs `--cp-strategy`: SGLang has no default for how a prompt is "
            "split over the ranks. Add `zigzag` (dense attention) or `interleave` (sparse attention).",
            fixes=(setting(cp_strategy="zigzag"), setting(cp_strategy="interleave"), dropping("enable_prefill_cp")),
        )
    return None


@handle_context_parallelism.refuses(
    "SPC536", "two-kinds-of-prefill-context-parallel", raises="ValueError", since="0.5.13", until="0.5.20",
    bad="sglang=0.5.19 -- --tp-size 2 --enable-prefill-context-parallel --enable-nsa-prefill-context-parallel",
    good="sglang=0.5.19 -- --tp-size 2 --attn-cp-size 2 --enable-prefill-context-parallel",
)  # fmt: skip
def two_kinds_of_prefill_context_parallel(c: Config) -> Refusal | None:
    """Two kinds of context-parallel prefill were asked for at once.

    `--enable-nsa-prefill-context-parallel` is for DeepSeek-V3.2's sparse attention, `--enable-prefill-context-parallel`
    for all other models. Keep the one that fits the model.
    """
    other = "enable_dsa_prefill_context_parallel"
    if c.enable_prefill_context_parallel and c.enable_dsa_prefill_context_parallel:
        return Refusal(
            at="enable_prefill_context_parallel",
            related_fields=(other,),
            message="`--enable-prefill-context-parallel` and `--enable-nsa-prefill-context-parallel` exclude each "
            "other: the second is for DeepSeek-V3.2's sparse attention, the first for every other model. "
            "Keep one.",
            fixes=(dropping("enable_prefill_context_parallel"), dropping(other)),
        )
    return None


@handle_context_parallelism.refuses(
    "SPC537", "tp-size-not-divisible-by-context-parallel-size", raises="AssertionError",
    bad="--tp-size 1 --attn-cp-size 2", good="--tp-size 2 --attn-cp-size 2",
)  # fmt: skip
def tp_size_not_divisible_by_context_parallel_size(c: Config) -> Refusal | None:
    """Context parallelism takes its ranks from the TP size.

    `--tp-size` counts all GPUs of the model; `--attn-cp-size` (times the attention-DP groups) says how they are split
    for attention, so it has to divide the TP size.
    """
    if attention_cp_size(c) <= 1:
        return None
    groups = int(c.attn_cp_size) * (c.attn_dp_size if has_attn_dp_size(c) else c.dp_size)
    if c.tp_size % c.attn_cp_size == 0 and c.tp_size % groups == 0:
        return None
    whole = groups if c.tp_size % c.attn_cp_size == 0 else c.attn_cp_size
    shown = c.shown("attn_cp_size")
    if c.tp_size % c.attn_cp_size == 0:
        shown += f" times the {groups // c.attn_cp_size} data-parallel groups"
    return Refusal(
        at="attn_cp_size",
        related_fields=("tp_size", attention_dp_field(c)),
        message=f"{shown} does not divide {c.shown('tp_size')}: context-parallel ranks are taken from the TP size. "
        f"Make the TP size a multiple of {whole}.",
        fixes=(setting(tp_size=groups), dropping("attn_cp_size")),
    )


@handle_context_parallelism.refuses(
    "SPC538", "aiter-allreduce-fusion-with-context-parallel", raises="AssertionError", since="0.5.10",
    bad="gpu=mi300x -- --tp-size 2 --attn-cp-size 2 --enable-aiter-allreduce-fusion",
    good="gpu=mi300x -- --tp-size 2 --enable-aiter-allreduce-fusion",
)  # fmt: skip
def aiter_allreduce_fusion_with_context_parallel(c: Config) -> Refusal | None:
    """AITER's fused all-reduce does not support context parallelism or MoE data parallelism.

    It fuses the all-reduce over the whole TP group with the norm that follows; these layouts reduce over smaller
    groups.
    """
    if not (attention_cp_size(c) > 1 or (c.moe_dp_size or 1) > 1) or not c.enable_aiter_allreduce_fusion:
        return None
    other = "attn_cp_size" if attention_cp_size(c) > 1 else "moe_dp_size"
    return Refusal(
        at="enable_aiter_allreduce_fusion",
        related_fields=(other,),
        message=f"{c.shown('enable_aiter_allreduce_fusion')} cannot be combined with {c.shown(other)}: the fused "
        "kernel reduces over the whole TP group. Leave the fusion out.",
        fixes=(dropping("enable_aiter_allreduce_fusion"), dropping(other)),
    )


@handle_context_parallelism.refuses(
    "SPC539",
    "tp-size-not-divisible-by-moe-dp-size",
    raises="AssertionError",
    bad="model=qwen3-30b-a3b -- --tp-size 1 --moe-dp-size 2",
    good="model=qwen3-30b-a3b -- --tp-size 2 --moe-dp-size 2 --attn-cp-size 2",
)
def tp_size_not_divisible_by_moe_dp_size(c: Config) -> Refusal | None:
    """MoE data parallelism takes its ranks from the TP size.

    `--moe-dp-size` splits the GPUs of the model into groups that each hold all experts, so it has to divide
    `--tp-size`.
    """
    if (c.moe_dp_size or 1) > 1 and c.tp_size % c.moe_dp_size:
        return Refusal(
            at="moe_dp_size",
            related_fields=("tp_size",),
            message=f"{c.shown('moe_dp_size')} does not divide {c.shown('tp_size')}: MoE data-parallel groups are "
            "taken from the TP size. Make the TP size a multiple of it.",
            fixes=(dropping("moe_dp_size"), setting(tp_size=c.moe_dp_size)),
        )
    return None


@handle_context_parallelism.refuses(
    "SPC540", "expert-groups-other-than-tp-size", raises="AssertionError",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --ep-size 2 --moe-dp-size 2 --attn-cp-size 2",
    good="model=qwen3-30b-a3b -- --tp-size 4 --ep-size 2 --moe-dp-size 2 --attn-cp-size 2",
)  # fmt: skip
def expert_groups_other_than_tp_size(c: Config) -> Refusal | None:
    """Expert-parallel size times MoE data-parallel size has to give the TP size.

    Each MoE data-parallel group spreads its experts over `--ep-size` ranks; together the groups are the GPUs of the
    model.
    """
    if (c.moe_dp_size or 1) <= 1:
        return None
    ranks = c.ep_size * c.moe_dp_size
    if ranks > c.tp_size or (c.pp_size == 1 and c.ep_size > 1 and ranks != c.tp_size):
        return Refusal(
            at="moe_dp_size",
            related_fields=("ep_size", "tp_size"),
            message=f"{c.shown('ep_size')} times {c.shown('moe_dp_size')} makes {ranks} ranks, not the {c.tp_size} of "
            f"{c.shown('tp_size')}. Make the product the TP size.",
            fixes=(dropping("moe_dp_size"), setting(tp_size=ranks)),
        )
    return None


@handle_context_parallelism.refuses(
    "SPC541", "moe-dp-with-pipeline", raises="AssertionError",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --moe-dp-size 2 --attn-cp-size 2 --pp-size 2",
    good="model=qwen3-30b-a3b -- --tp-size 2 --moe-dp-size 2 --attn-cp-size 2",
)  # fmt: skip
def moe_dp_with_pipeline(c: Config) -> Refusal | None:
    """MoE data parallelism does not run with pipeline parallelism.

    The groups it builds span the whole model; pipeline stages would cut them.
    """
    other = "attn_cp_size" if c.before("0.5.10") and attention_cp_size(c) > 1 else "moe_dp_size"
    if (getattr(c, other) or 1) > 1 and c.pp_size != 1:
        return Refusal(
            at="pp_size",
            related_fields=(other,),
            message=f"{c.shown('pp_size')} cannot be combined with {c.shown(other)}: MoE data-parallel groups "
            "span the whole model. Use one of the two.",
            fixes=(dropping("pp_size"), dropping(other)),
        )
    return None


@handle_context_parallelism.refuses(
    "SPC542",
    "moe-dp-size-other-than-context-parallel-size",
    raises="AssertionError",
    since="0.5.11",
    bad="model=qwen3-30b-a3b -- --tp-size 2 --moe-dp-size 2",
    good="model=qwen3-30b-a3b -- --tp-size 2 --moe-dp-size 2 --attn-cp-size 2",
)
def moe_dp_size_other_than_context_parallel_size(c: Config) -> Refusal | None:
    """MoE data parallelism follows attention context parallelism.

    The tokens a context-parallel rank holds go to its own MoE group, so `--moe-dp-size` is 1 or equal to
    `--attn-cp-size`.
    """
    if attention_cp_size(c) != (c.moe_dp_size or 1) and (c.moe_dp_size or 1) != 1:
        return Refusal(
            at="moe_dp_size",
            related_fields=("attn_cp_size",),
            message=f"{c.shown('moe_dp_size')} differs from {c.shown('attn_cp_size')}: each context-parallel rank "
            "needs its own MoE group. Make the two equal or leave MoE data parallelism out.",
            fixes=(setting(attn_cp_size=c.moe_dp_size), dropping("moe_dp_size")),
        )
    return None
