"""Nemotron-H and its kin. Follows arg_groups/model_overrides/nemotron_h.py (nemotron_h_hook.py before 0.5.15).

Left out: the assertion that a ModelOpt checkpoint's `mlp_hidden_act` is "relu2", which holds for every such checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.facts import quantization
from spec_lsp.resolution.engine import Config, Earlier, Handler, Refusal, dropping, setting
from spec_lsp.resolution.model.common import all_backends_unset, is_blackwell
from spec_lsp.resolution.model.config import served_quantization

ARCHITECTURES = {
    "NemotronHForCausalLM": "",
    "NemotronHPuzzleForCausalLM": "0.5.13",
    "NemotronH_Omni_Reasoning_V3": "0.5.20",
}
MODELOPT = ("modelopt", "modelopt_fp8", "modelopt_fp4", "modelopt_mixed")


def is_nemotron_h(c: Config) -> bool:
    """Whether the model is of the family in this release."""
    since = ARCHITECTURES.get(c.model.architecture)
    return since is not None and (not since or c.since(since))


_overrides = Handler(
    "nemotron_h.py:_nemotron_h_overrides",
    when=is_nemotron_h,
    earlier=(
        Earlier("0.5.15", "nemotron_h_hook.py:apply_nemotron_h_defaults"),
        Earlier("0.5.19", "overrides.py:_nemotron_h_overrides"),
    ),
)


def _quantization(c: Config) -> str | None:
    """The quantization after the family's override: ModelOpt's generic name is replaced by the precise one."""
    served = served_quantization(c).method
    if served not in MODELOPT:
        asked: str | None = c.quantization
        return asked
    if served != "modelopt":
        return served
    algorithm = (quantization.config_json(c.model, c.release) or {}).get("quant_algo")
    return {"MIXED_PRECISION": "modelopt_mixed", "NVFP4": "modelopt_fp4"}.get(str(algorithm), "modelopt_fp8")


def _remaps_experts(c: Config) -> bool:
    return c.since("0.5.23") and bool(
        c.enable_eplb or c.ep_num_redundant_experts > 0 or c.init_expert_location != "trivial"
    )


def _has_w4a16_experts(c: Config) -> bool:
    if c.before("0.5.18") or served_quantization(c).method not in MODELOPT or _quantization(c) != "modelopt_mixed":
        return False
    layers = (quantization.config_json(c.model, c.release) or {}).get("quantized_layers") or {}
    found = (info for name, info in layers.items() if ".experts." in name and isinstance(info, Mapping))
    return any(info.get("quant_algo") == "W4A16_NVFP4" for info in found)


@_overrides.refuses(
    "SPC838", "remapped-experts-routed-in-kernel", raises="ValueError", since="0.5.23",
    sglang="nemotron_h.py:_validate_expert_remap",
    bad=("model=nemotron-h-8b -- --enable-eplb --moe-runner-backend flashinfer_trtllm",
         "model=nemotron-h-8b -- --enable-eplb --moe-runner-backend flashinfer_cutedsl"),
    good="model=nemotron-h-8b -- --moe-runner-backend flashinfer_trtllm",
)  # fmt: skip
def remapped_experts_routed_in_kernel(c: Config) -> Refusal | None:
    """This MoE runner does not follow experts that are moved or doubled.

    For Nemotron-H `flashinfer_trtllm` routes inside its kernel, and `flashinfer_cutedsl` without an all-to-all backend leaves the
    experts' scales behind when EPLB moves them. With `--enable-eplb`, `--ep-num-redundant-experts` or `--init-expert-location` take
    `flashinfer_trtllm_routed`.
    """
    if not _remaps_experts(c):
        return None
    cutedsl = c.enable_eplb and c.moe_runner_backend == "flashinfer_cutedsl" and c.moe_a2a_backend == "none"
    if c.moe_runner_backend != "flashinfer_trtllm" and not cutedsl:
        return None
    return Refusal(
        at="moe_runner_backend",
        related_fields=("enable_eplb", "ep_num_redundant_experts", "init_expert_location"),
        message=f"{c.shown('moe_runner_backend')} is refused with moved or redundant experts for this model: it does not follow "
        "where they went.",
        fixes=(
            setting(moe_runner_backend="flashinfer_trtllm_routed"),
            dropping("moe_runner_backend"),
            dropping("enable_eplb"),
        ),
    )


@_overrides.refuses(
    "SPC839",
    "uneven-experts-remapped",
    raises="ValueError",
    since="0.5.23",
    sglang="nemotron_h.py:_validate_expert_remap",
)
def uneven_experts_remapped(c: Config) -> Refusal | None:
    """Layers with different numbers of experts cannot share one map of moved experts.

    This puzzle variant of Nemotron-H has MoE layers of different sizes, so EPLB and redundant experts are refused for it.
    """
    if c.model.architecture != "NemotronHPuzzleForCausalLM" or not _remaps_experts(c):
        return None
    blocks = c.model.hf("block_configs") or ()
    if len({block.get("n_routed_experts") for block in blocks if block.get("block_type") == "moe"}) <= 1:
        return None
    at = "enable_eplb" if c.enable_eplb else "ep_num_redundant_experts"
    return Refusal(
        at=at,
        related_fields=("model_path",),
        message=f"{c.shown(at)} is refused: the MoE layers of this model have different numbers of experts.",
    )


@_overrides.refuses(
    "SPC840",
    "w4a16-experts-of-nemotron-off-marlin",
    raises="ValueError",
    bad="model=nemotron-w4a16 -- --moe-runner-backend triton",
    good="model=nemotron-w4a16 -- --moe-runner-backend marlin",
    since="0.5.18",
)
def w4a16_experts_of_nemotron_off_marlin(c: Config) -> Refusal | None:
    """Experts in FP4 with 16-bit activations run on Marlin, without an all-to-all backend.

    The checkpoint mixes precisions, and its experts are of the W4A16 kind. Leave `--moe-a2a-backend` and `--moe-runner-backend` out.
    """
    if not _has_w4a16_experts(c):
        return None
    at = "moe_a2a_backend" if c.moe_a2a_backend != "none" else "moe_runner_backend"
    if at == "moe_runner_backend" and c.moe_runner_backend in ("auto", "marlin"):
        return None
    return Refusal(
        at=at,
        related_fields=("model_path",),
        message=f"{c.shown(at)} is refused: this checkpoint's experts are FP4 with 16-bit activations, which run on Marlin without "
        "an all-to-all backend.",
    )


@_overrides.adjusts("moe_runner_backend")
def choose_nemotron_moe_runner(c: Config) -> None:
    """Nemotron-H runs its experts on FlashInfer: TensorRT-LLM kernels on SM100, CUTLASS elsewhere (FP4 before Blackwell: Marlin)."""
    served = served_quantization(c).method
    if c.before("0.5.11"):
        if served in MODELOPT:
            c.set(moe_runner_backend="flashinfer_cutlass")
        return
    if c.moe_runner_backend != "auto":
        return
    on_sm100 = c.gpu.sm100 and c.moe_a2a_backend == "none"
    if _has_w4a16_experts(c):
        c.set(moe_runner_backend="marlin")
    elif _remaps_experts(c) and on_sm100:
        c.set(moe_runner_backend="flashinfer_trtllm_routed")
    elif served in MODELOPT or (served is None and c.since("0.5.13")):
        fp4 = served in ("modelopt_fp4", "modelopt_mixed") or _quantization(c) == "modelopt_fp4"
        if on_sm100:
            runner = "flashinfer_trtllm"
        elif fp4 and c.since("0.5.13") and c.gpu.is_cuda and 8 <= c.gpu.major < 10:
            runner = "marlin"
        else:
            runner = "flashinfer_cutlass"
        c.set(moe_runner_backend=runner)


@_overrides.adjusts("quantization")
def name_modelopt_method(c: Config) -> None:
    """The precise ModelOpt method of the checkpoint."""
    if served_quantization(c).method in MODELOPT:
        c.set(quantization=_quantization(c))


@_overrides.adjusts("attention_backend", since="0.5.14", until="0.5.19")
def choose_nemotron_backend_before_0_5_19(c: Config) -> None:
    """On SM100 Nemotron-H runs on FlashInfer's attention."""
    if c.gpu.sm100 and c.attention_backend is None:
        c.set(attention_backend="flashinfer")


@_overrides.adjusts(
    "attention_backend",
    "page_size",
    "mamba_radix_cache_strategy",
    "speculative_draft_attention_backend",
    since="0.5.19",
)
def choose_nemotron_backend(c: Config) -> None:
    """On SM100 Nemotron-H runs on trtllm_mha and pages; with a draft tree, or on other Blackwell, it drafts on triton."""
    if not is_blackwell(c) or not all_backends_unset(c):
        return
    if c.speculative_algorithm is None:
        if c.gpu.sm100:
            c.set(attention_backend="trtllm_mha")
        return
    algorithm = c.speculative_algorithm.upper()
    draft = None
    if c.gpu.sm100 and c.speculative_eagle_topk in (None, 1):
        c.set(attention_backend="trtllm_mha")
        if c.page_size is None:
            c.set(page_size=64)
        if c.mamba_radix_cache_strategy == "auto":
            c.set(mamba_radix_cache_strategy="extra_buffer")
        if algorithm in ("EAGLE", "NEXTN", "DSPARK"):
            draft = "trtllm_mha"
    else:
        c.set(attention_backend="triton")
        if algorithm in ("EAGLE", "NEXTN", "DFLASH", "DSPARK"):
            draft = "flashinfer"
    if draft and c.speculative_draft_attention_backend is None:
        c.set(speculative_draft_attention_backend=draft)


_branch = Handler(
    "server_args.py:_handle_model_specific_adjustments",
    since="0.5.7",
    until="0.5.19",
    when=is_nemotron_h,
    earlier=(
        Earlier("0.5.12", "server_args.py:_handle_model_specific_adjustments"),
        Earlier("0.5.15", "nemotron_h_hook.py:apply_nemotron_h_defaults"),
    ),
)


@_branch.refuses(
    "SPC841", "nemotron-on-triton-attention", raises="AssertionError",
    bad="sglang=0.5.18 model=nemotron-h-8b -- --attention-backend triton",
    good="sglang=0.5.18 model=nemotron-h-8b -- --attention-backend flashinfer",
)  # fmt: skip
def nemotron_on_triton_attention(c: Config) -> Refusal | None:
    """In these releases the Triton attention backend needs the first layer to be an attention layer.

    In Nemotron-H it is not, so releases before 0.5.19 refuse `--attention-backend triton` for it.
    """
    if c.attention_backend != "triton":
        return None
    return Refusal(
        at="attention_backend",
        related_fields=("model_path",),
        message=f"{c.shown('attention_backend')} is refused for {c.model.architecture} in this release: its first layer may be no "
        "attention layer.",
        fixes=(dropping("attention_backend"), setting(attention_backend="flashinfer")),
    )


overrides = (_overrides,)
branch = (_branch,)
