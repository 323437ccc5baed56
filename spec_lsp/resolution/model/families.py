"""The families with few rules each: Gemma, Llama 4, MiMo, Step 3.5, GLM-4.5, Exaone, Olmo, LFM2, MiniCPM, Inkling, …

Follows arg_groups/model_overrides/, the declarations of arg_groups/overrides.py and the branches of
model_hook.py:handle_model_specific_adjustments.
"""

from __future__ import annotations

from collections.abc import Callable

from spec_lsp.facts import quantization
from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution import ranks
from spec_lsp.resolution.attention import backend_field, backends_of
from spec_lsp.resolution.engine import Config, Earlier, Handler, Refusal, dropping, setting, setting_env
from spec_lsp.resolution.model.common import all_backends_unset, is_blackwell
from spec_lsp.resolution.model.config import quant_method, quantization_unset, served_quantization
from spec_lsp.resolution.model.deepseek_v4 import has_fp4_experts

BRANCH = (Earlier("0.5.19", "server_args.py:_handle_model_specific_adjustments"),)


def _is(*names: str) -> Callable[[Config], bool]:
    wanted = frozenset(names)
    return lambda c: c.model.architecture in wanted


def _wide_gpu_backend(c: Config) -> str:
    """trtllm_mha on SM100, fa3 on other NVIDIA GPUs from Ampere on, triton elsewhere."""
    if c.gpu.sm100:
        return "trtllm_mha"
    return "fa3" if c.gpu.is_cuda and c.gpu.major >= 8 else "triton"


def _off_list(c: Config, allowed: tuple[str, ...], why: str, best: tuple[str, ...]) -> Refusal | None:
    """The refusal of a backend for a phase if it is not on a model's list."""
    prefill, decode = backends_of(c)
    phase = "prefill" if prefill not in allowed else "decode" if decode not in allowed else None
    if phase is None:
        return None
    field = backend_field(c, phase)
    names = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
    given = tuple(name for name in names if c.given(name))
    backend = (prefill if phase == "prefill" else decode) or "that SGLang would choose later"
    at = field if c.given(field) else given[0] if given else "model_path"
    what = c.shown(field) if c.given(field) else f"The {phase} backend {backend}"
    return Refusal(
        at=at,
        related_fields=(*(name for name in given if name != at), "model_path"),
        message=f"{what} is refused for {c.model.architecture}: {why}. It runs on {', '.join(allowed)}.",
        fixes=(dropping(*given), *(setting(**{field: name}) for name in best)),
    )


# --- Gemma -------------------------------------------------------------------------------------------------------------

_gemma = Handler(
    "gemma2_gemma3.py:_gemma2_gemma3_overrides",
    when=_is(
        "Gemma2ForCausalLM",
        "Gemma3ForCausalLM",
        "Gemma3ForConditionalGeneration",
        "Gemma3nForCausalLM",
        "Gemma3nForConditionalGeneration",
    ),
)


@_gemma.adjusts("disable_hybrid_swa_memory")
def one_pool_for_gemma(c: Config) -> None:
    """This model's sliding-window layers share the KV pool of the others; SGLang does not split it for them yet."""
    c.set(disable_hybrid_swa_memory=True)


_is_gemma4 = _is("Gemma4ForConditionalGeneration", "Gemma4ForCausalLM", "Gemma4UnifiedForConditionalGeneration")


def _is_gemma4_or_diffusion(c: Config) -> bool:
    if c.before("0.5.13"):
        return c.model.architecture == "Gemma4ForConditionalGeneration"
    return _is_gemma4(c) or (c.model.architecture == "DiffusionGemmaForBlockDiffusion" and c.since("0.5.21"))


_gemma4 = Handler("gemma4.py:_gemma4_overrides", since="0.5.11", when=_is_gemma4_or_diffusion)


@_gemma4.adjusts("attention_backend")
def choose_gemma4_backend(c: Config) -> None:
    """Gemma 4's heads are of two widths, which triton serves everywhere and trtllm_mha on SM100."""
    if c.attention_backend is not None or (c.before("0.5.13") and not all_backends_unset(c)):
        return
    wide = c.gpu.sm100 and c.since("0.5.13") and c.model.architecture != "DiffusionGemmaForBlockDiffusion"
    if wide and c.before("0.5.14") and c.model.text_hf("enable_moe_block", False):
        wide = served_quantization(c).method != "modelopt_fp4"
    c.set(attention_backend="trtllm_mha" if wide else "triton")


@_gemma4.adjusts("quantization", "moe_runner_backend", since="0.5.13")
def choose_gemma4_moe_runner(c: Config) -> None:
    """On SM100 the FlashInfer TensorRT-LLM kernels run FP4 experts fastest."""
    if c.gpu.sm100 and c.moe_runner_backend == "auto" and served_quantization(c).method == "modelopt_fp4":
        c.set(quantization="modelopt_fp4", moe_runner_backend="flashinfer_trtllm")


_gemma4_branch = Handler(
    "model_hook.py:handle_model_specific_adjustments", since="0.5.13", when=_is_gemma4, earlier=BRANCH
)


def _gemma4_backends(c: Config) -> tuple[str, ...]:
    since = (("ascend", "0.5.14"), ("fa4", "0.5.22"), ("intel_amx", "0.5.18"), ("aiter", "0.5.20"))
    return ("trtllm_mha", "triton", "intel_xpu", *(name for name, release in since if c.since(release)))


@_gemma4_branch.refuses(
    "SPC859",
    "gemma4-off-its-backends",
    raises="AssertionError",
    bad="model=gemma4 -- --attention-backend flashinfer",
    good="model=gemma4 -- --attention-backend triton",
)
def gemma4_off_its_backends(c: Config) -> Refusal | None:
    """Gemma 4 runs on few attention backends.

    Its full layers have wider heads than its sliding-window layers. triton serves that everywhere, trtllm_mha on SM100. When only
    one of `--prefill-attention-backend` and `--decode-attention-backend` is given, it must be one of those too.
    """
    return _off_list(c, _gemma4_backends(c), "its heads are of two widths", ("triton",))


# --- Llama 4 -----------------------------------------------------------------------------------------------------------


def _is_llama4(c: Config) -> bool:
    name = c.model.architecture
    return name in ("Llama4ForConditionalGeneration", "Llama4ForCausalLM") or (c.before("0.5.11") and "Llama4" in name)


_llama4 = Handler("llama4.py:_llama4_overrides", when=lambda c: _is_llama4(c) and c.device != "cpu")


@_llama4.adjusts("attention_backend")
def choose_llama4_backend(c: Config) -> None:
    """Llama 4's chunked local attention runs on fa3 (Hopper), trtllm_mha (SM100), aiter (AMD) or triton."""
    if c.attention_backend is not None:
        return
    if c.gpu.sm100:
        backend = "trtllm_mha"
    elif c.gpu.sm90:
        backend = "fa3"
    elif c.gpu.is_hip:
        backend = "aiter"
    else:
        backend = "intel_xpu" if c.device == "xpu" else "triton"
    c.set(attention_backend=backend)


@_llama4.adjusts("moe_runner_backend")
def choose_llama4_moe_runner(c: Config) -> None:
    """On SM100 the FlashInfer TensorRT-LLM kernels run FP8 experts fastest."""
    if c.gpu.sm100 and c.moe_runner_backend == "auto" and c.quantization in ("fp8", "modelopt_fp8"):
        c.set(moe_runner_backend="flashinfer_trtllm")


_llama4_branch = Handler(
    "model_hook.py:handle_model_specific_adjustments",
    when=lambda c: _is_llama4(c) and c.device != "cpu",
    earlier=BRANCH,
)


@_llama4_branch.refuses(
    "SPC860",
    "llama4-off-its-backends",
    raises="AssertionError",
    bad="model=llama4 -- --tp-size 8 --attention-backend torch_native",
    good="model=llama4 -- --tp-size 8 --attention-backend fa3",
)
def llama4_off_its_backends(c: Config) -> Refusal | None:
    """Llama 4 runs on attention backends that support its chunked local attention.

    Those are fa3, aiter, triton, ascend, trtllm_mha and intel_xpu. Leave `--attention-backend` out to get the right one.
    """
    allowed = ("fa3", "aiter", "triton", "trtllm_mha", "intel_xpu", *(("ascend",) if c.since("0.5.10") else ()))
    if c.attention_backend in allowed:
        return None
    return Refusal(
        at="attention_backend",
        related_fields=("model_path",),
        message=f"{c.shown('attention_backend')} is refused for Llama 4: it does not support chunked local attention.",
        fixes=(dropping("attention_backend"), setting(attention_backend="triton")),
    )


# --- MiMo and Step -----------------------------------------------------------------------------------------------------


def _is_mimo(c: Config) -> bool:
    name = c.model.architecture
    return name == "MiMoV2FlashForCausalLM" or (name == "MiMoV2ForCausalLM" and c.since("0.5.11"))


_mimo = Handler("mimo_v2.py:_mimo_v2_overrides", since="0.5.7", when=_is_mimo)


@_mimo.adjusts("enable_multi_layer_eagle")
def draft_mimo_in_layers(c: Config) -> None:
    """This model's checkpoint has several draft layers, one for each step."""
    if c.speculative_algorithm == "EAGLE":
        c.set(enable_multi_layer_eagle=True)


@_mimo.adjusts("attention_backend", since="0.5.22")
def choose_mimo_backend(c: Config) -> None:
    """On SM100 fa4 serves keys and values of different widths."""
    if c.gpu.sm100 and all_backends_unset(c):
        c.set(attention_backend="fa4")


@_mimo.adjusts("moe_runner_backend", since="0.5.17")
def choose_mimo_moe_runner(c: Config) -> None:
    """MiMo's FP8 experts run on FlashInfer's kernels on SM100; MXFP4 ones on Hopper on Marlin."""
    if c.moe_runner_backend != "auto" or quant_method(c) != "fp8":
        return
    if c.before("0.5.22"):
        if c.gpu.sm100:
            c.set(moe_runner_backend="flashinfer_trtllm")
    elif c.gpu.sm100:
        if c.moe_a2a_backend == "none":
            c.set(moe_runner_backend="flashinfer_mxfp4" if has_fp4_experts(c) else "flashinfer_trtllm")
    elif c.gpu.sm90 and has_fp4_experts(c):
        c.set(moe_runner_backend="marlin")


@_mimo.adjusts("swa_full_tokens_ratio", "disable_hybrid_swa_memory", until="0.5.14")
def offload_mimo_whole(c: Config) -> None:
    """This release cannot offload a pool of windows, so MiMo's layers share one."""
    if c.enable_hierarchical_cache:
        c.set(swa_full_tokens_ratio=1.0, disable_hybrid_swa_memory=True)


_mimo_branch = Handler("model_hook.py:handle_model_specific_adjustments", when=_is_mimo, earlier=BRANCH)


@_mimo_branch.refuses(
    "SPC878",
    "mimo-hierarchical-cache-without-unified-tree",
    raises="ValueError",
    bad="model=mimo-v2 -- --tp-size 8 --enable-hierarchical-cache",
    good="model=mimo-v2 -- --tp-size 8",
    since="0.5.14",
    until="0.5.19",
)
def mimo_hierarchical_cache_without_unified_tree(c: Config) -> Refusal | None:
    """MiMo's hierarchical cache needs the unified radix tree.

    These releases have it behind `SGLANG_ENABLE_UNIFIED_RADIX_TREE=1`; from 0.5.19 on it is the only one.
    """
    if not c.enable_hierarchical_cache or c.env.flag("SGLANG_ENABLE_UNIFIED_RADIX_TREE"):
        return None
    return Refusal(
        at="enable_hierarchical_cache",
        related_fields=("model_path",),
        message="`--enable-hierarchical-cache` is refused for MiMo V2 without `SGLANG_ENABLE_UNIFIED_RADIX_TREE=1`: its keys and "
        "values differ in width, which only the unified radix tree offloads.",
        fixes=(setting_env(SGLANG_ENABLE_UNIFIED_RADIX_TREE="1"), dropping("enable_hierarchical_cache")),
    )


@_mimo_branch.refuses("SPC861", "mimo-attention-tp-off-its-weights", raises="ValueError", since="0.5.11")
def mimo_attention_tp_off_its_weights(c: Config) -> Refusal | None:
    """This MiMo checkpoint's fused projections are laid out for one attention TP size.

    config.json says `attention_projection_layout: fused_qkv`: the query, key and value weights are interleaved for as many ranks as
    there are KV heads. Choose `--tp-size`, attention DP and attention CP so that the attention TP size divides that number.
    """
    if c.model.architecture != "MiMoV2ForCausalLM" or (c.encoder_only and c.since("0.5.13")):
        return None
    if c.model.hf("attention_projection_layout") != "fused_qkv":
        return None
    expected = c.model.total_num_kv_heads
    actual = ranks.attention_tp_size(c)
    fits = expected % actual == 0 if c.since("0.5.17") else expected == actual
    if actual > 0 and fits:
        return None
    return Refusal(
        at="tp_size",
        related_fields=(ranks.attention_dp_field(c), "model_path"),
        message=f"Attention TP {actual} is refused: this checkpoint's fused projections are laid out for {expected} ranks.",
        fixes=(setting(tp_size=expected),),
    )


def _is_step3p5(c: Config) -> bool:
    name = c.model.architecture
    return "Step3p5ForCausalLM" in name or ("Step3p7ForConditionalGeneration" in name and c.since("0.5.13"))


_step = Handler("overrides.py:_step3p_overrides", since="0.5.9", when=_is_step3p5)


@_step.adjusts("attention_backend", since="0.5.13")
def choose_step_backend(c: Config) -> None:
    """Step 3.5 runs on fa4 (Blackwell) or fa3 (Hopper)."""
    if all_backends_unset(c) and (is_blackwell(c) or c.gpu.sm90):
        c.set(attention_backend="fa4" if is_blackwell(c) else "fa3")


@_step.adjusts("enable_multi_layer_eagle", "swa_full_tokens_ratio", "disable_hybrid_swa_memory")
def serve_step(c: Config) -> None:
    """This model drafts with several layers, and its window pool cannot be offloaded."""
    if c.speculative_algorithm == "EAGLE":
        c.set(enable_multi_layer_eagle=True)
    if c.enable_hierarchical_cache:
        c.set(swa_full_tokens_ratio=1.0, disable_hybrid_swa_memory=True)


# --- GLM-4.5 -----------------------------------------------------------------------------------------------------------

_glm = Handler("glm4_moe.py:_glm4_moe_overrides", since="0.5.8", when=_is("Glm4MoeForCausalLM"))


@_glm.adjusts("quantization")
def take_glm_quantization(c: Config) -> None:
    """The checkpoint's own quantization, which decides the MoE kernels on SM100."""
    if c.gpu.sm100 and c.quantization is None and not quantization_unset(c) and quant_method(c) is not None:
        c.set(quantization=quant_method(c))


@_glm.adjusts("enable_tf32_matmul", since="0.5.15")
def multiply_glm_gates_in_tf32(c: Config) -> None:
    """The gates of this model's experts are multiplied faster in TF32."""
    c.set(enable_tf32_matmul=True)


@_glm.adjusts("moe_runner_backend")
def choose_glm_moe_runner(c: Config) -> None:
    """On SM100 FlashInfer's TensorRT-LLM kernels run GLM-4.5's experts unless they are FP8."""
    fast = ("modelopt_fp4", None) if c.since("0.5.15") else ("modelopt_fp4",)
    if c.gpu.sm100 and c.moe_a2a_backend == "none" and c.moe_runner_backend == "auto" and c.quantization in fast:
        if c.before("0.5.10"):
            raise NotKnown("FlashInfer's version", "this release takes the kernels from FlashInfer 0.6.3 on")
        c.set(moe_runner_backend="flashinfer_trtllm")


# --- Exaone, Olmo, LFM2 ------------------------------------------------------------------------------------------------


def _is_exaone(c: Config) -> bool:
    name = c.model.architecture
    known = name in ("Exaone4ForCausalLM", "ExaoneMoEForCausalLM") or (
        name == "ExaoneMoeForCausalLM" and c.since("0.5.22")
    )
    return known and c.model.hf("sliding_window_pattern") is not None


_exaone = Handler("exaone.py:_exaone_overrides", since="0.5.9", when=_is_exaone)


@_exaone.adjusts("disable_hybrid_swa_memory")
def one_pool_for_exaone(c: Config) -> None:
    """This model's sliding-window layers share the KV pool of the others; SGLang does not split it for them yet."""
    c.set(disable_hybrid_swa_memory=True)


@_exaone.adjusts("attention_backend", since="0.5.22")
def choose_exaone_backend(c: Config) -> None:
    """Exaone's sliding windows run on trtllm_mha (SM100), fa3 or triton."""
    if c.attention_backend is None:
        c.set(attention_backend=_wide_gpu_backend(c))


_exaone_branch = Handler(
    "model_hook.py:handle_model_specific_adjustments", since="0.5.9", when=_is_exaone, earlier=BRANCH
)


@_exaone_branch.refuses(
    "SPC862",
    "exaone-off-its-backends",
    raises="AssertionError",
    bad="model=exaone4 -- --attention-backend torch_native",
    good="model=exaone4 -- --attention-backend triton",
)
def exaone_off_its_backends(c: Config) -> Refusal | None:
    """Exaone's sliding windows run on fa3, triton or trtllm_mha.

    Before 0.5.22 SGLang does not choose one of them by itself: `--attention-backend` must be given.
    """
    if c.attention_backend in ("fa3", "triton", "trtllm_mha"):
        return None
    given = c.given("attention_backend")
    return Refusal(
        at="attention_backend" if given else "model_path",
        related_fields=("model_path",) if given else (),
        message=(c.shown("attention_backend") if given else "This model without `--attention-backend`")
        + " is refused: its sliding windows run on fa3, triton or trtllm_mha only.",
        fixes=(
            *((dropping("attention_backend"),) if given else ()),
            *(setting(attention_backend=n) for n in ("fa3", "triton")),
        ),
    )


_olmo = Handler("olmo2.py:_olmo2_overrides", when=_is("Olmo2ForCausalLM"))


@_olmo.adjusts("disable_hybrid_swa_memory", "attention_backend")
def serve_olmo(c: Config) -> None:
    """Olmo's sliding windows share the KV pool of the other layers, and run on trtllm_mha (SM100), fa3 or triton."""
    c.set(disable_hybrid_swa_memory=True)
    if c.attention_backend is None:
        c.set(attention_backend=_wide_gpu_backend(c))


_olmo_branch = Handler("model_hook.py:handle_model_specific_adjustments", when=_is("Olmo2ForCausalLM"), earlier=BRANCH)


@_olmo_branch.refuses(
    "SPC863",
    "olmo-on-flashinfer",
    raises="AssertionError",
    bad="model=olmo2 -- --attention-backend flashinfer",
    good="model=olmo2 -- --attention-backend triton",
)
def olmo_on_flashinfer(c: Config) -> Refusal | None:
    """FlashInfer serves Olmo's sliding windows badly, so SGLang refuses it.

    Leave `--attention-backend` out, or use fa3 or triton.
    """
    if c.attention_backend != "flashinfer":
        return None
    return Refusal(
        at="attention_backend",
        related_fields=("model_path",),
        message=f"{c.shown('attention_backend')} is refused for Olmo: it is very slow with this model's sliding windows.",
        fixes=(dropping("attention_backend"), setting(attention_backend="triton")),
    )


def _is_lfm2(c: Config) -> bool:
    name = c.model.architecture
    return name == "Lfm2ForCausalLM" or (name == "Lfm2MoeForCausalLM" and c.since("0.5.17"))


_lfm2 = Handler("lfm2.py:_lfm2_overrides", since="0.5.14", when=lambda c: _is_lfm2(c) and c.gpu.sm100)


@_lfm2.adjusts("attention_backend")
def choose_lfm2_backend(c: Config) -> None:
    """On SM100 LFM2 runs on FlashInfer's attention."""
    if c.attention_backend is None:
        c.set(attention_backend="flashinfer")


_lfm2_branch = Handler("model_hook.py:handle_model_specific_adjustments", since="0.5.9", when=_is_lfm2, earlier=BRANCH)


@_lfm2_branch.refuses(
    "SPC864",
    "lfm2-on-triton-attention",
    raises="AssertionError",
    bad="model=lfm2 -- --attention-backend triton",
    good="model=lfm2 -- --attention-backend flashinfer",
)
def lfm2_on_triton_attention(c: Config) -> Refusal | None:
    """The Triton attention backend needs the first layer to be an attention layer, which it is not in LFM2.

    Leave `--attention-backend` out.
    """
    if c.attention_backend != "triton":
        return None
    return Refusal(
        at="attention_backend",
        related_fields=("model_path",),
        message=f"{c.shown('attention_backend')} is refused for {c.model.architecture}: its first layer is not an attention layer.",
        fixes=(dropping("attention_backend"), setting(attention_backend="flashinfer")),
    )


# --- hybrids with a default on SM100 -----------------------------------------------------------------------------------

_is_falcon_like = _is("FalconH1ForCausalLM", "JetNemotronForCausalLM", "JetVLMForConditionalGeneration")
_falcon = Handler(
    "falcon_h1.py:_falcon_h1_jet_overrides",
    since="0.5.14",
    when=lambda c: c.gpu.sm100 and _is_falcon_like(c),
)


@_falcon.adjusts("attention_backend")
def choose_falcon_backend(c: Config) -> None:
    """On SM100 this hybrid model runs on triton."""
    if c.attention_backend is None:
        c.set(attention_backend="triton")


_granite = Handler(
    "granitemoehybrid.py:_granite_moe_hybrid_overrides",
    since="0.5.14",
    when=lambda c: c.model.architecture == "GraniteMoeHybridForCausalLM" and c.gpu.sm100 and c.model.is_mamba2,
)


@_granite.adjusts("attention_backend")
def choose_granite_backend(c: Config) -> None:
    """On SM100 this hybrid model runs on FlashInfer's attention."""
    if c.attention_backend is None:
        c.set(attention_backend="flashinfer")


def _is_minicpm_v(c: Config) -> bool:
    name = c.model.architecture
    return name == "MiniCPMV4_6ForConditionalGeneration" or (
        name == "MiniCPMV4_7ForConditionalGeneration" and c.since("0.5.23")
    )


_minicpm_v = Handler(
    "minicpmv.py:_minicpm_v4_6_overrides", since="0.5.14", when=lambda c: _is_minicpm_v(c) and c.gpu.sm100
)


@_minicpm_v.adjusts("attention_backend")
def choose_minicpm_v_backend(c: Config) -> None:
    """On SM100 this hybrid model runs on triton."""
    if c.attention_backend is None:
        c.set(attention_backend="triton")


# --- MiniCPM -----------------------------------------------------------------------------------------------------------

_minicpm = Handler(
    "minicpm.py:_minicpm_sala_overrides",
    since="0.5.19",
    when=_is("MiniCPMForCausalLM", "MiniCPMSALAForCausalLM"),
    rare=True,
)


def _sparse_minicpm(c: Config) -> bool:
    """Whether config.json has sparse layers (configs/minicpm.py)."""
    if c.model.model_type != "minicpm_sala":
        return False
    return "minicpm4" in (c.model.hf("mixer_types") or ()) and c.model.hf("sparse_config") is not None


@_minicpm.refuses("SPC865", "minicpm-with-dp-attention", raises="ValueError")
def minicpm_with_dp_attention(c: Config) -> Refusal | None:
    """MiniCPM does not support DP attention.

    Use tensor parallelism alone.
    """
    if not ranks.attention_dp(c):
        return None
    at = ranks.attention_dp_switch(c)
    return Refusal(
        at=at,
        related_fields=("model_path",),
        message=f"{c.shown(at)} is refused for MiniCPM: it shares attention heads out over the whole TP group.",
    )


@_minicpm.refuses("SPC866", "minicpm-sala-with-hierarchical-cache", raises="ValueError")
def minicpm_sala_with_hierarchical_cache(c: Config) -> Refusal | None:
    """MiniCPM SALA's states cannot be offloaded.

    Leave `--enable-hierarchical-cache` out.
    """
    if not c.enable_hierarchical_cache or not (_sparse_minicpm(c) or c.model.is_lightning):
        return None
    return Refusal(
        at="enable_hierarchical_cache",
        related_fields=("model_path",),
        message="`--enable-hierarchical-cache` is refused for this model: its states cannot be offloaded.",
    )


@_minicpm.refuses("SPC867", "sparse-minicpm-disaggregated", raises="ValueError")
def sparse_minicpm_disaggregated(c: Config) -> Refusal | None:
    """MiniCPM's sparse attention does not work across a prefill and a decode server.

    Serve it from one server, or set `SGLANG_MINICPM_FORCE_DENSE=1`.
    """
    if c.env.flag("SGLANG_MINICPM_FORCE_DENSE") or not _sparse_minicpm(c) or c.disaggregation_mode == "null":
        return None
    named = {c.attention_backend, c.prefill_attention_backend, c.decode_attention_backend}
    if not all_backends_unset(c) and not named & {"minicpm_flashattn", "minicpm_flashinfer"}:
        return None
    return Refusal(
        at="disaggregation_mode",
        related_fields=("model_path",),
        message=f"{c.shown('disaggregation_mode')} is refused for this model: its sparse attention has no transfer.",
    )


@_minicpm.adjusts("disable_radix_cache", "attention_backend", "prefill_attention_backend", "decode_attention_backend")
def serve_minicpm(c: Config) -> None:
    """MiniCPM SALA keeps no radix cache, and its sparse layers have attention backends of their own."""
    sparse = _sparse_minicpm(c)
    if sparse or c.model.is_lightning:
        c.set(disable_radix_cache=True)
    if c.env.flag("SGLANG_MINICPM_FORCE_DENSE"):
        dense = {"minicpm_flashattn": "fa4" if is_blackwell(c) else "fa3", "minicpm_flashinfer": "flashinfer"}
        for field in ("attention_backend", "prefill_attention_backend", "decode_attention_backend"):
            if getattr(c, field) in dense:
                c.set(**{field: dense[getattr(c, field)]})
    elif sparse and all_backends_unset(c):
        c.set(attention_backend="minicpm_flashinfer" if is_blackwell(c) else "minicpm_flashattn")


# --- Inkling, GigaChat, Intern-S2 Mobius, Bailing V3, Command A, Muse, Moss, EmbeddingGemma 2 -----------------------------

_inkling = Handler(
    "inkling.py:_inkling_overrides",
    since="0.5.16",
    when=_is("InklingForConditionalGeneration", "InklingForConditionalGenerationMTP"),
)


@_inkling.adjusts(
    "swa_full_tokens_ratio", "mamba_full_memory_ratio", "mamba_radix_cache_strategy", "uses_mamba_radix_cache"
)
def share_inkling_memory(c: Config) -> None:
    """Inkling's windows and states are small, and its radix cache needs the extra buffer of states."""
    untouched = (None, None) if c.since("0.5.20") else (0.8, 0.9)
    if c.swa_full_tokens_ratio == untouched[0]:
        c.set(swa_full_tokens_ratio=0.1)
    if c.mamba_full_memory_ratio == untouched[1]:
        c.set(mamba_full_memory_ratio=0.1)
    if c.mamba_radix_cache_strategy == "auto":
        c.set(mamba_radix_cache_strategy="extra_buffer")
    if c.since("0.5.21") and not c.disable_radix_cache:
        c.set(uses_mamba_radix_cache=True)


@_inkling.adjusts("attention_backend")
def choose_inkling_backend(c: Config) -> None:
    """Inkling's attention runs on fa4 or triton only."""
    if all_backends_unset(c):
        fa4 = c.gpu.sm100 or (c.gpu.sm90 and c.since("0.5.22"))
        c.set(attention_backend="fa4" if fa4 else "triton")


_gigachat = Handler(
    "gigachat35.py:_gigachat35_overrides",
    since="0.5.21",
    when=_is("GigaChat35ForCausalLM", "GigaChat35ForCausalLMNextN"),
)


@_gigachat.adjusts("disable_shared_experts_fusion", "enable_multi_layer_eagle")
def serve_gigachat(c: Config) -> None:
    """GigaChat keeps its shared experts apart and drafts with several layers."""
    c.set(disable_shared_experts_fusion=True)
    if c.speculative_algorithm == "EAGLE":
        c.set(enable_multi_layer_eagle=True)


_is_mobius = _is("InternS2MobiusForConditionalGeneration")
_mobius_first = Handler("model_hook.py:handle_model_specific_adjustments", since="0.5.18", when=_is_mobius)


@_mobius_first.refuses(
    "SPC868",
    "mobius-in-stages",
    raises="ValueError",
    bad="model=mobius -- --pp-size 2",
    good="model=mobius -- --tp-size 2",
)
def mobius_in_stages(c: Config) -> Refusal | None:
    """Intern-S2 Mobius runs without pipeline and expert parallelism.

    Its experts live in shared banks. Keep `--pp-size` and `--ep-size` at 1.
    """
    at = "pp_size" if c.pp_size != 1 else "ep_size" if c.ep_size != 1 else None
    if at is None:
        return None
    return Refusal(
        at=at,
        related_fields=("model_path",),
        message=f"{c.shown(at)} is refused for this model: its experts live in banks that every rank needs whole.",
        fixes=(dropping(at), setting(**{at: 1})),
    )


_mobius = Handler("interns2_mobius.py:_interns2_mobius_baseline_overrides", since="0.5.18", when=_is_mobius)


@_mobius.adjusts("moe_runner_backend")
def choose_mobius_moe_runner(c: Config) -> None:
    """Only the triton_kernel runner supports this model's 2,560 experts."""
    if c.moe_runner_backend == "auto":
        c.set(moe_runner_backend="triton_kernel")


_bailing = Handler(
    "bailing_moe_v3.py:_bailing_moe_v3_overrides",
    since="0.5.21",
    when=_is("BailingMoeV3ForCausalLM", "BailingMoeV3VLForConditionalGeneration"),
)


@_bailing.adjusts("moe_runner_backend")
def choose_bailing_moe_runner(c: Config) -> None:
    """A checkpoint with FP8 layers and MXFP4 experts runs these on FlashInfer's kernels."""
    if c.moe_runner_backend != "auto" or c.device != "cuda" or c.moe_a2a_backend != "none":
        return
    on_gpu = c.gpu.sm90 or c.gpu.sm100 or c.gpu.sm120
    if on_gpu and served_quantization(c).method == "fp8" and has_fp4_experts(c):
        c.set(moe_runner_backend="flashinfer_mxfp4")


_is_cohere_moe = _is("Cohere2VisionForConditionalGeneration", "Cohere2MoeForCausalLM")
_cohere = Handler(
    "cohere2_moe.py:_cohere2_moe_runner_overrides",
    since="0.5.19",
    when=lambda c: c.gpu.sm100 and _is_cohere_moe(c),
)


@_cohere.adjusts("moe_runner_backend")
def choose_cohere_moe_runner(c: Config) -> None:
    """On SM100 the FlashInfer TensorRT-LLM kernels run this model's experts fastest."""
    if c.moe_runner_backend != "auto":
        return
    if served_quantization(c).method is not None:
        config = quantization.config_json(c.model, c.release) or {}
        groups = (config.get("config_groups") or {}).values()
        formats = [config.get("format", ""), *(group.get("format", "") for group in groups)]
        if not any("nvfp4" in str(name) for name in formats):
            return
    c.set(moe_runner_backend="flashinfer_trtllm")


_beam = Handler("beam.py:_beam_overrides", since="0.5.23", when=_is("BeamForCausalLM"), rare=True)


@_beam.adjusts("attention_backend", "moe_runner_backend")
def serve_beam(c: Config) -> None:
    """Beam runs on trtllm_mha, and on SM100 its FP4 experts on FlashInfer's TensorRT-LLM kernels."""
    if all_backends_unset(c) and (c.gpu.sm90 or c.gpu.sm100 or c.gpu.sm120):
        c.set(attention_backend="trtllm_mha")
    method = c.quantization or quant_method(c)
    if method == "modelopt":
        method = (quantization.config_json(c.model, c.release) or {}).get("quant_algo")
    fp4 = method in ("modelopt_fp4", "NVFP4")
    if fp4 and c.gpu.sm100 and c.moe_runner_backend == "auto" and c.moe_a2a_backend == "none":
        c.set(moe_runner_backend="flashinfer_trtllm")


_muse_glimmer = Handler(
    "muse_glimmer.py:_muse_glimmer_fp4_gemm_runner_overrides",
    since="0.5.18",
    when=_is("MuseGlimmerForConditionalGeneration", "MuseGlimmerForCausalLM"),
)


@_muse_glimmer.adjusts("fp4_gemm_runner_backend")
def multiply_muse_in_marlin(c: Config) -> None:
    """On SM120 this model's FP4 weights run on Marlin."""
    if c.gpu.sm120 and c.fp4_gemm_runner_backend == "auto":
        c.set(fp4_gemm_runner_backend="marlin")


_muse_spark = Handler(
    "overrides.py:_muse_spark_overrides", since="0.5.23", when=_is("MuseSparkForConditionalGeneration"), rare=True
)


@_muse_spark.adjusts("enable_tf32_matmul", "kv_cache_dtype", "mm_enable_dp_encoder")
def serve_muse_spark(c: Config) -> None:
    """Muse Spark multiplies in TF32, keeps its KV cache in FP8, and under attention DP runs an encoder on each rank."""
    if c.enable_tf32_matmul is None:
        c.set(enable_tf32_matmul=True)
    if c.kv_cache_dtype == "auto":
        c.set(kv_cache_dtype="fp8_e4m3")
    if c.mm_enable_dp_encoder is None and c.attn_dp_size > 1:
        c.set(mm_enable_dp_encoder=True)


_moss = Handler("moss_vl.py:_moss_vl_overrides", since="0.5.11", when=_is("MossVLForConditionalGeneration"), rare=True)


@_moss.refuses(
    "SPC869",
    "moss-vl-off-flashinfer",
    raises="AssertionError",
    bad="model=moss -- --attention-backend triton",
    good="model=moss -- --attention-backend flashinfer",
)
def moss_vl_off_flashinfer(c: Config) -> Refusal | None:
    """Moss-VL's cross attention runs on FlashInfer in prefill.

    Leave the attention backends out, or set `--prefill-attention-backend flashinfer`.
    """
    prefill, _ = backends_of(c)
    if all_backends_unset(c) or prefill == "flashinfer":
        return None
    at = backend_field(c, "prefill")
    at = at if c.given(at) else "decode_attention_backend"
    return Refusal(
        at=at,
        related_fields=("model_path",),
        message=f"{c.shown(at)} is refused for Moss-VL: its prefill needs FlashInfer's masks for cross attention.",
        fixes=(setting(prefill_attention_backend="flashinfer"), dropping(at)),
    )


@_moss.adjusts("prefill_attention_backend")
def choose_moss_backend(c: Config) -> None:
    """Moss-VL's cross attention runs on FlashInfer in prefill."""
    if all_backends_unset(c):
        c.set(prefill_attention_backend="flashinfer")


_embedding_gemma2 = Handler(
    "embedding_gemma2.py:_embedding_gemma2_overrides", since="0.5.22", when=_is("EmbeddingGemma2Model"), rare=True
)


@_embedding_gemma2.adjusts("disable_radix_cache", "attention_backend")
def serve_embedding_gemma2(c: Config) -> None:
    """An encoder reads every token of the prompt both ways, so nothing of it can be cached."""
    c.set(disable_radix_cache=True)
    if c.attention_backend is None:
        c.set(attention_backend="triton")


_ernie = Handler(
    "ernie45_vl.py:_ernie45_vl_overrides", since="0.5.22", when=_is("Ernie4_5_VLMoeForConditionalGeneration")
)


@_ernie.refuses(
    "SPC870",
    "ernie-vl-with-dp-attention",
    raises="ValueError",
    bad="model=ernie-vl -- --tp-size 2 --attn-dp-size 2",
    good="model=ernie-vl -- --tp-size 2",
)
def ernie_vl_with_dp_attention(c: Config) -> Refusal | None:
    """ERNIE 4.5 VL does not support DP attention.

    Its attention heads are shared out over the whole TP group.
    """
    if not ranks.attention_dp(c):
        return None
    return Refusal(
        at="attn_dp_size",
        related_fields=("model_path",),
        message=f"{c.shown('attn_dp_size')} is refused for this model: its attention heads are shared out over all GPUs.",
    )


# --- IQuest Q1 ---------------------------------------------------------------------------------------------------------

_iquest = Handler(
    "iquest_q1.py:_iquest_q1_overrides", since="0.5.21", when=_is("IQuestQ1ForCausalLM", "IQuestQ1MTP"), rare=True
)


def _iquest_conflict(c: Config) -> tuple[str, str] | None:
    for name in ("attention_backend", "prefill_attention_backend", "decode_attention_backend"):
        if getattr(c, name) not in (None, "fa3"):
            return name, "its attention sinks need fa3"
    if c.speculative_algorithm is not None:
        if c.speculative_algorithm.upper() not in ("EAGLE", "NEXTN"):
            return "speculative_algorithm", "it drafts with EAGLE or NEXTN only"
        if c.speculative_draft_attention_backend not in (None, "fa3"):
            return "speculative_draft_attention_backend", "its draft needs fa3 too"
    if c.attn_cp_size > 1 or c.dcp_size > 1 or c.enable_prefill_cp:
        name = "attn_cp_size" if c.attn_cp_size > 1 else "dcp_size" if c.dcp_size > 1 else "enable_prefill_cp"
        return name, "it does not support context parallelism"
    if c.speculative_eagle_topk is not None and c.speculative_eagle_topk > 1:
        return "speculative_eagle_topk", "it drafts in one chain only"
    if c.enable_multi_layer_eagle:
        return "enable_multi_layer_eagle", "it has one draft layer"
    if ranks.attention_dp(c):
        return ranks.attention_dp_switch(c), "it does not support DP attention"
    return ("pp_size", "it does not support pipeline parallelism") if c.pp_size > 1 else None


@_iquest.refuses(
    "SPC871",
    "feature-unknown-to-iquest",
    raises="ValueError",
    bad="model=iquest -- --pp-size 2",
    good="model=iquest -- --tp-size 2",
)
def feature_unknown_to_iquest(c: Config) -> Refusal | None:
    """IQuest Q1 supports few features.

    Its attention sinks need fa3 everywhere (Hopper); it drafts with EAGLE or NEXTN in one chain, and does not support context, pipeline or
    attention data parallelism.
    """
    found = _iquest_conflict(c)
    if found is None:
        return None
    at, why = found
    return Refusal(
        at=at,
        related_fields=("model_path",),
        message=f"{c.shown(at)} is refused for IQuest Q1: {why}.",
    )


@_iquest.adjusts("attention_backend", "prefill_attention_backend", "decode_attention_backend")
def choose_iquest_backend(c: Config) -> None:
    """IQuest Q1's attention sinks need fa3."""
    if all_backends_unset(c):
        c.set(attention_backend="fa3")
    elif c.attention_backend is None:
        c.set(
            prefill_attention_backend=c.prefill_attention_backend or "fa3",
            decode_attention_backend=c.decode_attention_backend or "fa3",
        )


# --- constants ---------------------------------------------------------------------------------------------------------

_constants = Handler(
    "model_override_base.py:MODEL_OVERRIDES",
    since="0.5.6.post1",
    when=_is("MistralLarge3ForCausalLM", "PixtralForConditionalGeneration"),
)


@_constants.adjusts("dtype")
def compute_mistral_in_bfloat16(c: Config) -> None:
    """This model computes in bfloat16 whatever was asked for."""
    c.set(dtype="bfloat16")


first = (_mobius_first,)
overrides = (
    _constants,
    _bailing, _beam, _cohere, _embedding_gemma2, _ernie, _exaone, _falcon, _gemma, _gemma4, _gigachat, _glm, _granite, _inkling,
    _mobius, _iquest, _lfm2, _llama4, _mimo, _minicpm, _minicpm_v, _moss, _muse_glimmer, _olmo, _muse_spark, _step,
)  # fmt: skip
branch = (_mimo_branch, _llama4_branch, _gemma4_branch, _exaone_branch, _olmo_branch, _lfm2_branch)
