"""Attention backends: defaults, page sizes, KV dtypes, hardware, deterministic inference, multi-item scoring, sampling
backend.

Follows arg_groups/attention_hook.py and the passes of arg_groups/overrides.py that it calls, in the order it calls
them; before 0.5.15 all of it was ServerArgs._handle_attention_backend_compatibility and its neighbours.

Left out, because no launch decides it: whether a Mac runs it (MPS), platforms that plug themselves in from outside
SGLang, and the environment variables that deterministic inference sets for NCCL.
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, dropping_env, setting

IN_COMPATIBILITY = (
    Earlier("0.5.3", "server_args.py:__post_init__"),
    Earlier("0.5.15", "server_args.py:_handle_attention_backend_compatibility"),
)
IN_POST_INIT = IN_COMPATIBILITY[:1]
IN_DETERMINISTIC = (Earlier("0.5.15", "server_args.py:_handle_deterministic_inference"),)

ABSORBED_MLA = frozenset({
    "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "MistralLarge3ForCausalLM",
    "PixtralForConditionalGeneration", "GlmMoeDsaForCausalLM", "Glm4MoeLiteForCausalLM",
})  # fmt: skip
"""Latent-attention architectures that deterministic inference serves on few backends."""

FA3_BY_DEFAULT_BEFORE_0_5_8 = frozenset({
    "Qwen2ForCausalLM", "Llama4ForConditionalGeneration", "LlamaForCausalLM", "Olmo2ForCausalLM", "Gemma2ForCausalLM",
    "Gemma3ForConditionalGeneration", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "Glm4MoeForCausalLM",
    "Glm4vMoeForConditionalGeneration", "Step3VLForConditionalGeneration",
})  # fmt: skip

# --- what the software around SGLang is assumed to be ---------------------------------------------------------------


def has_flashinfer(c: Config) -> bool:
    """FlashInfer comes with SGLang on NVIDIA, and only there, unless SGLANG_IS_FLASHINFER_AVAILABLE says otherwise."""
    return c.gpu.is_cuda and c.env.flag("SGLANG_IS_FLASHINFER_AVAILABLE", True)


def has_amx(c: Config) -> bool:
    """Whether the CPU has AMX tiles; taken as absent, as where nothing can be said of the CPU."""
    return False


# --- what others ask of the attention backends ----------------------------------------------------------------------


def backends_of(c: Config) -> tuple[str | None, str | None]:
    """The (prefill, decode) backends as they stand: a split field, else the common one."""
    return c.prefill_attention_backend or c.attention_backend, c.decode_attention_backend or c.attention_backend


def backend_field(c: Config, phase: str) -> str:
    """The field that decides a phase's backend ("prefill" or "decode")."""
    split = f"{phase}_attention_backend"
    return split if getattr(c, split) else "attention_backend"


def main_or_decode_is(c: Config, backend: str) -> bool:
    """Whether the common or the decode backend is this one."""
    return backend in (c.attention_backend, c.decode_attention_backend)


def any_backend_is(c: Config, backend: str) -> bool:
    """Whether the common, the decode or the prefill backend is this one."""
    return backend in (c.attention_backend, c.decode_attention_backend, c.prefill_attention_backend)


def field_naming(c: Config, backend: str) -> str:
    """The field to point at for a backend: one that names it, a typed one first."""
    names = ("attention_backend", "decode_attention_backend", "prefill_attention_backend")
    naming = [name for name in names if getattr(c, name) == backend]
    return next((name for name in naming if c.given(name)), naming[0] if naming else names[0])


def one_chain_or_no_draft(c: Config) -> bool:
    """is_no_spec_infer_or_topk_one: topk unset, or 1 with pages of one token."""
    return c.speculative_eagle_topk is None or (c.speculative_eagle_topk == 1 and c.page_size in (1, None))


def is_absorbed_mla(c: Config) -> bool:
    """Whether deterministic inference treats the model as one of DeepSeek's latent-attention models."""
    architecture = c.model.architecture
    if architecture in ("MistralLarge3ForCausalLM", "PixtralForConditionalGeneration"):
        return c.since("0.5.6.post1")
    if architecture == "GlmMoeDsaForCausalLM":
        return c.since("0.5.9")
    if architecture == "Glm4MoeLiteForCausalLM":
        return c.since("0.5.18")
    return architecture in ABSORBED_MLA


def deterministic_backends(c: Config) -> tuple[str, ...]:
    """The backends that deterministic inference accepts."""
    if c.before("0.5.13"):
        return ("flashinfer", "fa3", "triton")
    if c.before("0.5.17"):
        return ("flashinfer", "fa3", "triton", "ascend")
    return ("ascend", "fa3", "fa4", "flashinfer", "triton", *(("intel_xpu",) if c.since("0.5.19") else ()))


def deterministic_radix_backends(c: Config) -> tuple[str, ...]:
    """Those of them that may keep the radix cache."""
    if c.before("0.5.13"):
        return ("fa3", "triton")
    return ("fa3", "triton", "ascend") if c.before("0.5.17") else ("ascend", "fa3", "fa4", "triton")


# --- sampling backend -----------------------------------------------------------------------------------------------

sampling_backend_default = Handler("overrides.py:_sampling_backend_default")


@sampling_backend_default.adjusts("sampling_backend")
def choose_sampling_backend(c: Config) -> None:
    """FlashInfer samples where it is available (NVIDIA), PyTorch elsewhere."""
    if c.sampling_backend is None:
        c.set(sampling_backend="flashinfer" if has_flashinfer(c) else "pytorch")


# --- deterministic inference ----------------------------------------------------------------------------------------

_deterministic = Handler("attention_hook.py:handle_deterministic_inference")


@_deterministic.adjusts("enable_deterministic_inference")
def deterministic_on_policy(c: Config) -> None:
    """Training on the server's own policy needs the same tokens each time."""
    if c.rl_on_policy_target is not None:
        c.set(enable_deterministic_inference=True)


@_deterministic.adjusts("enable_aiter_allreduce_fusion", since="0.5.10")
def unfuse_aiter_allreduce(c: Config) -> None:
    """Fused all-reduce adds in an order that depends on the batch, which deterministic inference rules out."""
    if c.enable_deterministic_inference and c.enable_aiter_allreduce_fusion:
        c.set(enable_aiter_allreduce_fusion=False)


@_deterministic.adjusts("enable_flashinfer_allreduce_fusion", since="0.5.12", until="0.5.13")
def unfuse_flashinfer_allreduce_before_0_5_13(c: Config) -> None:
    """Fused all-reduce adds in an order that depends on the batch, which deterministic inference rules out."""
    if c.enable_deterministic_inference and c.enable_flashinfer_allreduce_fusion:
        c.set(enable_flashinfer_allreduce_fusion=False)


@_deterministic.adjusts("flashinfer_allreduce_fusion_backend", since="0.5.13")
def unfuse_flashinfer_allreduce(c: Config) -> None:
    """Fused all-reduce adds in an order that depends on the batch, which deterministic inference rules out."""
    if c.enable_deterministic_inference and c.flashinfer_allreduce_fusion_backend is not None:
        c.set(flashinfer_allreduce_fusion_backend=None)


@_deterministic.adjusts("sampling_backend")
def sample_with_pytorch(c: Config) -> None:
    """Deterministic inference samples with PyTorch."""
    if c.enable_deterministic_inference and not (c.since("0.5.13") and c.sampling_backend == "ascend"):
        c.set(sampling_backend="pytorch")


_deterministic_backend = Handler("overrides.py:_deterministic_attention_backend", earlier=IN_DETERMINISTIC)


@_deterministic_backend.adjusts("attention_backend")
def choose_deterministic_backend(c: Config) -> None:
    """Deterministic inference takes fa3 on Hopper and older, flashinfer (for DeepSeek triton) on Blackwell."""
    if not c.enable_deterministic_inference or c.attention_backend is not None:
        return
    if c.gpu.sm100 or c.gpu.sm120:
        c.set(attention_backend="triton" if is_absorbed_mla(c) else "flashinfer")
    else:
        c.set(attention_backend="fa3")


@_deterministic_backend.refuses(
    "SPC200",
    "nondeterministic-attention-backend",
    raises="ValueError",
    bad=(
        "--enable-deterministic-inference --attention-backend flex_attention",
        "gpu=b200 -- --enable-deterministic-inference --attention-backend trtllm_mha",
    ),
    good="--enable-deterministic-inference --attention-backend triton",
)
def nondeterministic_attention_backend(c: Config) -> Refusal | None:
    """Deterministic inference runs on few attention backends.

    `--enable-deterministic-inference` (and `--rl-on-policy-target`) promise the same tokens for the same request
    whatever else is in the batch. Only some attention backends have kernels that add in an order that does not depend
    on the batch.

    SGLang looks at the backend after it has made its choices for the model, so the backend it refuses may be one that
    nobody typed: on Blackwell several models get `trtllm_mha` or a sparse backend by default. Name one of the
    deterministic backends.
    """
    if not c.enable_deterministic_inference or c.attention_backend is None:
        return None
    allowed = deterministic_backends(c)
    if c.attention_backend in allowed:
        return None
    switch = "enable_deterministic_inference" if c.given("enable_deterministic_inference") else "rl_on_policy_target"
    typed = c.given("attention_backend")
    order = ("fa3", "flashinfer", "triton") if c.gpu.sm90 else ("flashinfer", "triton", "fa3")
    return Refusal(
        at="attention_backend" if typed else switch,
        with_=(switch,) if typed else ("attention_backend",),
        message=f"{c.shown('attention_backend')} is refused with `{c.flag(switch)}`: its kernels add in an order that "
        f"depends on "
        f"the batch. Deterministic inference runs on {', '.join(allowed)}.",
        fixes=(*(setting(attention_backend=name) for name in order if name in allowed), dropping(switch)),
    )


_deterministic_rest = Handler("attention_hook.py:handle_deterministic_inference")


@_deterministic_rest.refuses(
    "SPC201",
    "nondeterministic-latent-attention",
    raises="ValueError",
    bad="model=deepseek-v3 -- --tp-size 8 --enable-deterministic-inference --attention-backend flashinfer",
    good="model=deepseek-v3 -- --tp-size 8 --enable-deterministic-inference --attention-backend fa3",
)
def nondeterministic_latent_attention(c: Config) -> Refusal | None:
    """DeepSeek-like latent attention is deterministic on fewer backends still.

    For models that run absorbed latent attention (DeepSeek V2/V3, Mistral Large 3, GLM-5, …) FlashInfer is not
    batch-invariant, although it is for other models. Use fa3 (Hopper) or triton.
    """
    if not c.enable_deterministic_inference or not _is_absorbed_mla_in_hook(c):
        return None
    allowed = deterministic_radix_backends(c) if c.since("0.5.17") else ("fa3", "triton")
    if c.attention_backend in allowed:
        return None
    return Refusal(
        at="attention_backend" if c.given("attention_backend") else "enable_deterministic_inference",
        with_=("enable_deterministic_inference", "model_path"),
        message=f"{c.shown('attention_backend')} is refused with deterministic inference for {c.model.architecture}: "
        f"only "
        f"{', '.join(allowed)} are batch-invariant for latent attention.",
        fixes=(
            setting(attention_backend="triton"),
            setting(attention_backend="fa3"),
            dropping("enable_deterministic_inference"),
        ),
    )


@_deterministic_rest.refuses(
    "SPC202",
    "deterministic-fa4-off-sm100",
    raises="ValueError",
    since="0.5.17",
    gate=True,
    bad="model=deepseek-v3 -- --tp-size 8 --enable-deterministic-inference --attention-backend fa4",
    good="model=deepseek-v3 gpu=b200 -- --tp-size 8 --enable-deterministic-inference --attention-backend fa4",
)
def deterministic_fa4_off_sm100(c: Config) -> Refusal | None:
    """fa4 runs absorbed latent attention on SM100 and SM110 only.

    DeepSeek-like models pass fa4 an extra argument that its kernels have on data-centre Blackwell (and Thor) alone. On
    other hardware take fa3 or triton for deterministic inference.
    """
    if not c.enable_deterministic_inference or c.attention_backend != "fa4" or not _is_absorbed_mla_in_hook(c):
        return None
    if c.gpu.is_cuda and c.gpu.major in (10, 11):
        return None
    return Refusal(
        at="attention_backend",
        with_=("enable_deterministic_inference", "model_path"),
        message=f"{c.shown('attention_backend')} is refused with deterministic inference for {c.model.architecture} on "
        f"{c.gpu.title}: the kernel this model needs exists for SM100 and SM110 only.",
        fixes=(setting(attention_backend="fa3"), setting(attention_backend="triton")),
    )


def _is_absorbed_mla_in_hook(c: Config) -> bool:
    if c.since("0.5.21") and c.model.architecture == "Glm5NextForConditionalGeneration":
        return True
    return is_absorbed_mla(c)


@_deterministic_rest.adjusts("disable_radix_cache")
def deterministic_without_radix_cache(c: Config) -> None:
    """With this attention backend a cached prefix would change the numbers, so deterministic inference gives up the
    radix cache."""
    if c.enable_deterministic_inference and c.attention_backend not in deterministic_radix_backends(c):
        c.set(disable_radix_cache=True)


@_deterministic_rest.refuses(
    "SPC203",
    "deterministic-rccl",
    raises="ValueError",
    since="0.5.22",
    sglang="overrides.py:_deterministic_rocm_rccl_check",
    bad="gpu=mi300x -- --enable-deterministic-inference --attention-backend triton --tp-size 4 "
    "--disable-custom-all-reduce",
    good="gpu=mi300x -- --enable-deterministic-inference --attention-backend triton --tp-size 2 "
    "--disable-custom-all-reduce",
)
def deterministic_rccl(c: Config) -> Refusal | None:
    """On ROCm, deterministic inference over more than two GPUs needs SGLang's own all-reduce.

    RCCL's sums depend on the batch above two ranks, and `--disable-custom-all-reduce` leaves nothing but RCCL.
    """
    if not c.enable_deterministic_inference or c.tp_size <= 2 or not c.disable_custom_all_reduce or not c.gpu.is_hip:
        return None
    return Refusal(
        at="disable_custom_all_reduce",
        with_=("enable_deterministic_inference", "tp_size"),
        message=f"`--disable-custom-all-reduce` is refused with deterministic inference and {c.shown('tp_size')} on "
        f"ROCm: the "
        "sums would go through RCCL, whose result depends on the batch above two ranks.",
        fixes=(dropping("disable_custom_all_reduce"), setting(tp_size=2)),
    )


@_deterministic_rest.adjusts("disable_custom_all_reduce")
def deterministic_nccl_tree(c: Config) -> None:
    """Over several GPUs, deterministic inference sums with NCCL's tree algorithm in place of the custom all-reduce."""
    if c.enable_deterministic_inference and c.tp_size > 1 and (c.before("0.5.6.post1") or not c.gpu.is_hip):
        c.set(disable_custom_all_reduce=True)


@_deterministic_rest.adjusts("enable_torch_symm_mem", since="0.5.13")
def deterministic_without_symm_mem(c: Config) -> None:
    """Symmetric memory is used below a size only, so the sum would depend on the number of tokens."""
    if c.enable_deterministic_inference and c.tp_size > 1 and not c.gpu.is_hip:
        c.set(enable_torch_symm_mem=False)


handle_deterministic_inference = (_deterministic, _deterministic_backend, _deterministic_rest)


# --- the default backend --------------------------------------------------------------------------------------------

_default = Handler("overrides.py:_attention_backend_default", since="0.5.4", earlier=IN_COMPATIBILITY)


@_default.adjusts("attention_backend")
def equal_split_backends(c: Config) -> None:
    """Prefill and decode both name this backend."""
    if c.prefill_attention_backend is not None and c.prefill_attention_backend == c.decode_attention_backend:
        c.set(attention_backend=c.prefill_attention_backend)


@_default.adjusts("attention_backend")
def choose_attention_backend(c: Config) -> None:
    """The fastest backend for this model, hardware and kind of drafting, as SGLang ranks them."""
    if c.attention_backend is None:
        c.set(attention_backend=default_backend(c))


def default_backend(c: Config) -> str:
    """get_default_attn_backend."""
    if c.since("0.5.10") and "WhisperForConditionalGeneration" in c.model.architectures:
        return "flashinfer"
    return _default_latent_backend(c) if c.model.uses_mla else _default_plain_backend(c)


def _default_plain_backend(c: Config) -> str:
    chain = one_chain_or_no_draft(c)
    if c.gpu.sm90 and chain and (c.since("0.5.8") or c.model.architecture in FA3_BY_DEFAULT_BEFORE_0_5_8):
        return "fa3"
    if chain and _trtllm_mha_is_default(c):
        return "fa4" if c.since("0.5.17") and c.model.has_asymmetric_kv else "trtllm_mha"
    if c.gpu.is_hip:
        return "aiter"
    if has_flashinfer(c) and not (c.since("0.5.11") and c.model.has_attention_sinks):
        return "flashinfer"
    return "triton"


def _trtllm_mha_is_default(c: Config) -> bool:
    if c.before("0.5.7"):
        return c.since("0.5.6.post2") and (c.gpu.sm100 or c.gpu.sm120)
    if not c.gpu.sm100:
        return False
    algorithm = c.speculative_algorithm
    if algorithm is None or c.speculative_eagle_topk is not None:
        return True
    return c.since("0.5.23") and str(algorithm).upper() == "DFLASH"


def _default_latent_backend(c: Config) -> str:
    if c.gpu.sm90:
        return "fa3"
    if c.gpu.sm100:
        return "flashinfer"
    if c.gpu.is_hip and c.model.get_num_kv_heads(c.tp_size) in (16, 128):
        return "aiter"
    return "triton"


# --- what a backend cannot be combined with, and what it brings -----------------------------------------------------

_compatibility = Handler("attention_hook.py:handle_attention_backend_compatibility", earlier=IN_POST_INIT)


@_compatibility.adjusts("disable_cuda_graph", until="0.5.14")
def eager_backends_before_0_5_14(c: Config) -> None:
    """PyTorch's own attention cannot be captured in a CUDA graph."""
    if c.attention_backend in ("torch_native", "flex_attention"):
        c.set(disable_cuda_graph=True)


@_compatibility.adjusts("cuda_graph_config", since="0.5.14")
def eager_backends(c: Config) -> None:
    """PyTorch's own attention cannot be captured in a CUDA graph."""
    if c.attention_backend in ("torch_native", "flex_attention"):
        capture_nothing(c)


def capture_nothing(c: Config) -> None:
    """Capture no CUDA graph, neither of decoding nor of prefill."""
    c.set(cuda_graph_config={phase: {**part, "backend": "disabled"} for phase, part in c.cuda_graph_config.items()})


@_compatibility.refuses(
    "SPC204",
    "drafting-on-flex-attention",
    raises="AssertionError",
    bad="--attention-backend flex_attention --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft",
    good="--attention-backend triton --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft",
)
def drafting_on_flex_attention(c: Config) -> Refusal | None:
    """The flex_attention backend cannot verify draft tokens.

    It has no kernel for the verification step of speculative decoding, whatever the algorithm. Take another attention
    backend, or serve without a draft.
    """
    if c.attention_backend != "flex_attention" or c.speculative_algorithm is None:
        return None
    return Refusal(
        at=field_naming(c, "flex_attention"),
        with_=("speculative_algorithm",),
        message=f"{c.shown('attention_backend')} is refused with {c.shown('speculative_algorithm')}: it cannot verify "
        f"draft tokens.",
        fixes=(
            dropping(field_naming(c, "flex_attention")),
            setting(attention_backend="triton"),
            dropping("speculative_algorithm"),
        ),
    )


@_compatibility.adjusts("disable_radix_cache", since="0.5.10")
def whisper_without_radix_cache(c: Config) -> None:
    """Whisper pads the encoder's tokens, which a cached prefix would not match."""
    if "WhisperForConditionalGeneration" in c.model.architectures:
        c.set(disable_radix_cache=True)


_pages = Handler("overrides.py:_mla_backend_page_constraints", earlier=IN_COMPATIBILITY)


@_pages.adjusts("page_size")
def flashmla_pages(c: Config) -> None:
    """FlashMLA works on KV pages of 64 tokens."""
    if main_or_decode_is(c, "flashmla"):
        c.set(page_size=64)


@_pages.adjusts("page_size", until="0.5.20")
def cutlass_mla_pages(c: Config) -> None:
    """CUTLASS MLA works on KV pages of 128 tokens."""
    if main_or_decode_is(c, "cutlass_mla"):
        c.set(page_size=128)


@_pages.adjusts("page_size")
def trtllm_mla_pages(c: Config) -> None:
    """TensorRT-LLM's latent attention works on KV pages of 32 or 64 tokens."""
    if main_or_decode_is(c, "trtllm_mla") and c.page_size not in (32, 64):
        c.set(page_size=64)


@_pages.adjusts("page_size", since="0.5.12", until="0.5.23")
def tokenspeed_mla_pages(c: Config) -> None:
    """tokenspeed_mla works on KV pages of 32 or 64 tokens."""
    if main_or_decode_is(c, "tokenspeed_mla") and c.page_size not in (32, 64):
        c.set(page_size=64)


@_pages.adjusts("page_size", since="0.5.13")
def cutedsl_mla_pages(c: Config) -> None:
    """CuteDSL's latent attention works on KV pages of 32 or 64 tokens."""
    if any_backend_is(c, "cutedsl_mla") and c.page_size not in (32, 64):
        c.set(page_size=64)


@_pages.adjusts("page_size")
def trtllm_mha_pages(c: Config) -> None:
    """TensorRT-LLM's attention works on KV pages of 16, 32 or 64 tokens (128 too since 0.5.17)."""
    drafts = c.since("0.5.17") and c.speculative_draft_attention_backend == "trtllm_mha"
    if not drafts and not any_backend_is(c, "trtllm_mha"):
        return
    if c.page_size not in ((16, 32, 64, 128) if c.since("0.5.17") else (16, 32, 64)):
        c.set(page_size=64)


@_pages.adjusts("page_size", since="0.5.17")
def hpc_ops_pages(c: Config) -> None:
    """HPC-Ops works on KV pages of 64 tokens."""
    if any_backend_is(c, "hpc_ops"):
        c.set(page_size=64)


_latent_checks = Handler("overrides.py:_mla_kv_cache_dtype_checks", earlier=IN_COMPATIBILITY)
OTHER_LATENT_BACKENDS = {"sm90": ("fa3", "flashmla"), "other": ("triton", "flashinfer")}


def _other_latent_backends(c: Config) -> tuple[str, ...]:
    return OTHER_LATENT_BACKENDS["sm90" if c.gpu.sm90 else "other"]


@_latent_checks.refuses(
    "SPC205",
    "trtllm-mla-off-blackwell",
    raises="ValueError",
    gate=True,
    bad="model=deepseek-v3 -- --tp-size 8 --attention-backend trtllm_mla",
    good="model=deepseek-v3 gpu=b200 -- --tp-size 8 --attention-backend trtllm_mla",
)
def trtllm_mla_off_blackwell(c: Config) -> Refusal | None:
    """TensorRT-LLM's latent attention exists for Blackwell only.

    Its kernels are built for SM100 and SM120. On Hopper the fast backends for latent attention are fa3 and FlashMLA,
    elsewhere triton.
    """
    if not main_or_decode_is(c, "trtllm_mla") or c.gpu.sm100 or (c.gpu.sm120 and c.since("0.5.4")):
        return None
    at = field_naming(c, "trtllm_mla")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused on {c.gpu.title}: its kernels exist for Blackwell (SM100, SM120) only.",
        fixes=(dropping(at), *(setting(**{at: name}) for name in _other_latent_backends(c))),
    )


@_latent_checks.refuses(
    "SPC206",
    "trtllm-mla-kv-cache-dtype",
    raises="ValueError",
    bad="model=deepseek-v3 gpu=b200 -- --tp-size 8 --attention-backend trtllm_mla --kv-cache-dtype fp8_e5m2",
    good="model=deepseek-v3 gpu=b200 -- --tp-size 8 --attention-backend trtllm_mla --kv-cache-dtype fp8_e4m3",
)
def trtllm_mla_kv_cache_dtype(c: Config) -> Refusal | None:
    """TensorRT-LLM's latent attention reads few KV cache types.

    Its kernels read a cache in bfloat16 or fp8_e4m3 (in some releases fp4_e2m1 too). `bf16` is accepted, `bfloat16` is
    not, although SGLang lists both.
    """
    if not main_or_decode_is(c, "trtllm_mla"):
        return None
    allowed = _trtllm_mla_dtypes(c)
    if c.kv_cache_dtype in allowed:
        return None
    return Refusal(
        at="kv_cache_dtype",
        with_=(field_naming(c, "trtllm_mla"),),
        message=f"{c.shown('kv_cache_dtype')} is refused with trtllm_mla: its kernels read a KV cache of "
        f"{', '.join(allowed)}.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), dropping("kv_cache_dtype")),
    )


def _trtllm_mla_dtypes(c: Config) -> tuple[str, ...]:
    if c.since("0.5.21"):
        return ("fp8_e4m3", "bf16", "auto")
    if c.since("0.5.7"):
        return ("fp8_e4m3", "fp4_e2m1", "bf16", "auto")
    return ("fp8_e4m3", "fp4_e2m1", "auto") if c.since("0.5.4") else ("fp8_e4m3", "auto")


@_latent_checks.refuses(
    "SPC207",
    "tokenspeed-mla-off-blackwell",
    raises="ValueError",
    since="0.5.12",
    until="0.5.23",
    gate=True,
    bad="sglang=0.5.19 model=deepseek-v3 -- --tp-size 8 --attention-backend tokenspeed_mla",
    good="sglang=0.5.19 model=deepseek-v3 gpu=b200 -- --tp-size 8 --attention-backend tokenspeed_mla --kv-cache-dtype "
    "fp8_e4m3",
)
def tokenspeed_mla_off_blackwell(c: Config) -> Refusal | None:
    """tokenspeed_mla exists for Blackwell only.

    Its kernels are built for SM100 and SM120; take fa3 or FlashMLA on Hopper, triton elsewhere.
    """
    if not main_or_decode_is(c, "tokenspeed_mla") or c.gpu.sm100 or c.gpu.sm120:
        return None
    at = field_naming(c, "tokenspeed_mla")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused on {c.gpu.title}: its kernels exist for Blackwell (SM100, SM120) only.",
        fixes=(dropping(at), *(setting(**{at: name}) for name in _other_latent_backends(c))),
    )


@_latent_checks.refuses(
    "SPC208",
    "tokenspeed-mla-kv-cache-dtype",
    raises="ValueError",
    since="0.5.12",
    until="0.5.23",
    bad="sglang=0.5.19 model=deepseek-v3 gpu=b200 -- --tp-size 8 --attention-backend tokenspeed_mla",
    good="sglang=0.5.19 model=deepseek-v3 gpu=b200 -- --tp-size 8 --attention-backend tokenspeed_mla --kv-cache-dtype "
    "fp8_e4m3",
)
def tokenspeed_mla_kv_cache_dtype(c: Config) -> Refusal | None:
    """tokenspeed_mla reads an fp8_e4m3 KV cache only.

    Name the type: `--kv-cache-dtype fp8_e4m3`. The default (`auto`) keeps the model's own type and is refused.
    """
    if not main_or_decode_is(c, "tokenspeed_mla") or c.kv_cache_dtype == "fp8_e4m3":
        return None
    at = field_naming(c, "tokenspeed_mla")
    return Refusal(
        at="kv_cache_dtype" if c.given("kv_cache_dtype") else at,
        with_=(at,) if c.given("kv_cache_dtype") else ("kv_cache_dtype",),
        message=f"{c.shown(at)} is refused with KV cache type {c.kv_cache_dtype}: its kernels read fp8_e4m3 only.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), setting(**{at: "trtllm_mla"})),
    )


_cutedsl = Handler(
    "overrides.py:_cutedsl_prefill_backend_fill",
    since="0.5.13",
    when=lambda c: any_backend_is(c, "cutedsl_mla"),
    earlier=IN_COMPATIBILITY,
)


@_cutedsl.refuses(
    "SPC209",
    "cutedsl-mla-for-prefill",
    raises="AssertionError",
    bad="model=deepseek-v3 gpu=b200 -- --tp-size 8 --prefill-attention-backend cutedsl_mla",
    good="model=deepseek-v3 gpu=b200 -- --tp-size 8 --decode-attention-backend cutedsl_mla --attention-backend "
    "trtllm_mla",
)
def cutedsl_mla_for_prefill(c: Config) -> Refusal | None:
    """CuteDSL's latent attention only decodes.

    It has no prefill kernels. Name it for decoding; SGLang then prefills with trtllm_mla unless told otherwise.
    """
    if c.prefill_attention_backend != "cutedsl_mla":
        return None
    return Refusal(
        at="prefill_attention_backend",
        message=f"{c.shown('prefill_attention_backend')} is refused: CuteDSL's latent attention has kernels for "
        f"decoding only.",
        fixes=(
            setting(prefill_attention_backend="trtllm_mla"),
            Change(set={"decode_attention_backend": "cutedsl_mla"}, drop=("prefill_attention_backend",)),
            dropping("prefill_attention_backend"),
        ),
    )


@_cutedsl.refuses(
    "SPC210",
    "cutedsl-mla-off-sm100",
    raises="ValueError",
    gate=True,
    bad="model=deepseek-v3 -- --tp-size 8 --decode-attention-backend cutedsl_mla",
    good="model=deepseek-v3 gpu=b200 -- --tp-size 8 --decode-attention-backend cutedsl_mla",
)
def cutedsl_mla_off_sm100(c: Config) -> Refusal | None:
    """CuteDSL's latent attention exists for SM100 only.

    Data-centre Blackwell (B200, GB200, B300, GB300) has it; on Hopper take fa3 or FlashMLA, elsewhere triton.
    """
    if c.gpu.sm100:
        return None
    at = field_naming(c, "cutedsl_mla")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused on {c.gpu.title}: its kernels exist for SM100 (B200, GB200, B300, GB300) "
        f"only.",
        fixes=(dropping(at), *(setting(**{at: name}) for name in _other_latent_backends(c))),
    )


@_cutedsl.refuses(
    "SPC211",
    "cutedsl-mla-kv-cache-dtype",
    raises="ValueError",
    bad="model=deepseek-v3 gpu=b200 -- --tp-size 8 --decode-attention-backend cutedsl_mla --kv-cache-dtype fp8_e5m2",
    good="model=deepseek-v3 gpu=b200 -- --tp-size 8 --decode-attention-backend cutedsl_mla --kv-cache-dtype fp8_e4m3",
)
def cutedsl_mla_kv_cache_dtype(c: Config) -> Refusal | None:
    """CuteDSL's latent attention reads a KV cache in fp8_e4m3 or bfloat16.

    Other types of `--kv-cache-dtype` have no kernel there.
    """
    if c.kv_cache_dtype in ("fp8_e4m3", "bf16", "bfloat16", "auto"):
        return None
    return Refusal(
        at="kv_cache_dtype",
        with_=(field_naming(c, "cutedsl_mla"),),
        message=f"{c.shown('kv_cache_dtype')} is refused with cutedsl_mla: its kernels read fp8_e4m3 or bfloat16.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), dropping("kv_cache_dtype")),
    )


@_cutedsl.adjusts("prefill_attention_backend")
def prefill_beside_cutedsl(c: Config) -> None:
    """CuteDSL's latent attention only decodes, so TensorRT-LLM's does the prefill."""
    if c.prefill_attention_backend is None:
        c.set(prefill_attention_backend="trtllm_mla")


_trtllm_mha = Handler("attention_hook.py:handle_attention_backend_compatibility", earlier=IN_POST_INIT)


@_trtllm_mha.refuses(
    "SPC219",
    "trtllm-mha-off-sm100",
    raises="ValueError",
    until="0.5.10",
    gate=True,
    bad="sglang=0.5.9 -- --attention-backend trtllm_mha",
    good="sglang=0.5.9 gpu=b200 -- --attention-backend trtllm_mha",
)
def trtllm_mha_off_sm100(c: Config) -> Refusal | None:
    """In these releases TensorRT-LLM's attention exists for SM100 only.

    Later releases decode with it on Hopper and SM120 too. Take fa3 on Hopper, flashinfer elsewhere.
    """
    if not any_backend_is(c, "trtllm_mha") or c.gpu.sm100:
        return None
    at = field_naming(c, "trtllm_mha")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused on {c.gpu.title}: in this release its kernels are for SM100 only.",
        fixes=_other_plain_backends(c, at),
    )


def _other_plain_backends(c: Config, at: str) -> tuple[Change, ...]:
    names = ("fa3", "flashinfer") if c.gpu.sm90 else ("aiter", "triton") if c.gpu.is_hip else ("flashinfer", "triton")
    return (dropping(at), *(setting(**{at: name}) for name in names))


@_trtllm_mha.refuses(
    "SPC212",
    "trtllm-mha-prefill-hardware",
    raises="ValueError",
    since="0.5.10",
    gate=True,
    bad=("gpu=a100 -- --attention-backend trtllm_mha", "sglang=0.5.18 gpu=h100 -- --attention-backend trtllm_mha"),
    good=(
        "gpu=h100 -- --attention-backend trtllm_mha",
        "sglang=0.5.18 gpu=h100 -- --decode-attention-backend trtllm_mha",
    ),
)
def trtllm_mha_prefill_hardware(c: Config) -> Refusal | None:
    """TensorRT-LLM's attention has no prefill kernels for this hardware.

    Since 0.5.19 it prefills on Hopper (SM90), SM100 and SM120; before that on SM100 only, although it decodes on the
    others. Split the backends (`--prefill-attention-backend` and `--decode-attention-backend`) or take another one.
    """
    if (c.prefill_attention_backend or c.attention_backend) != "trtllm_mha":
        return None
    if c.gpu.sm100 or (c.since("0.5.19") and (c.gpu.sm90 or c.gpu.sm120)):
        return None
    at = backend_field(c, "prefill")
    which = "SM90, SM100 and SM120" if c.since("0.5.19") else "SM100"
    fixes = _other_plain_backends(c, at)
    if at == "attention_backend" and (c.gpu.sm90 or c.gpu.sm120):
        fixes = (setting(prefill_attention_backend="fa3" if c.gpu.sm90 else "flashinfer"), *fixes)
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused for prefill on {c.gpu.title}: its prefill kernels are for {which}.",
        fixes=fixes,
    )


@_trtllm_mha.refuses(
    "SPC213",
    "trtllm-mha-fp8-prefill-on-sm120",
    raises="ValueError",
    since="0.5.19",
    bad="gpu=rtxpro6000 -- --attention-backend trtllm_mha --kv-cache-dtype fp8_e4m3",
    good="gpu=rtxpro6000 -- --attention-backend trtllm_mha",
)
def trtllm_mha_fp8_prefill_on_sm120(c: Config) -> Refusal | None:
    """On SM120, TensorRT-LLM's prefill reads no fp8 KV cache and cannot skip softmax.

    The prefill kernels of workstation Blackwell lack both. Keep the cache in bfloat16, unset
    SGLANG_SKIP_SOFTMAX_PREFILL_THRESHOLD_SCALE_FACTOR, or prefill with flashinfer.
    """
    if (c.prefill_attention_backend or c.attention_backend) != "trtllm_mha" or not c.gpu.sm120:
        return None
    variable = "SGLANG_SKIP_SOFTMAX_PREFILL_THRESHOLD_SCALE_FACTOR"
    fp8 = c.kv_cache_dtype == "fp8_e4m3"
    if not fp8 and not c.env.number(variable, 0.0) > 0:
        return None
    at = backend_field(c, "prefill")
    what = c.shown("kv_cache_dtype") if fp8 else f"`{variable}`"
    return Refusal(
        at="kv_cache_dtype" if fp8 and c.given("kv_cache_dtype") else at,
        with_=(at, "kv_cache_dtype" if fp8 else variable),
        message=f"{what} is refused with trtllm_mha prefill on {c.gpu.title}: the SM120 kernels do not have it.",
        fixes=(
            dropping("kv_cache_dtype") if fp8 else dropping_env(variable),
            setting(prefill_attention_backend="flashinfer"),
        ),
    )


@_trtllm_mha.refuses(
    "SPC214",
    "trtllm-mha-decode-hardware",
    raises="ValueError",
    since="0.5.10",
    gate=True,
    bad="gpu=a100 -- --decode-attention-backend trtllm_mha",
    good="gpu=b200 -- --decode-attention-backend trtllm_mha",
)
def trtllm_mha_decode_hardware(c: Config) -> Refusal | None:
    """TensorRT-LLM's attention decodes on Hopper, SM100 and SM120 only.

    Elsewhere take flashinfer (NVIDIA), aiter (AMD) or triton.
    """
    if (c.decode_attention_backend or c.attention_backend) != "trtllm_mha":
        return None
    if c.gpu.sm90 or c.gpu.sm100 or c.gpu.sm120:
        return None
    at = backend_field(c, "decode")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused for decoding on {c.gpu.title}: its kernels are for SM90, SM100 and SM120.",
        fixes=_other_plain_backends(c, at),
    )


@_trtllm_mha.refuses(
    "SPC215",
    "trtllm-mha-context-parallel-prefill",
    raises="ValueError",
    since="0.5.19",
    bad="model=qwen3-30b-a3b -- --tp-size 4 --attention-backend trtllm_mha --attn-cp-size 2 --enable-prefill-cp "
    "--cp-strategy zigzag",
    good="model=qwen3-30b-a3b gpu=b200 -- --tp-size 4 --attention-backend trtllm_mha",
)
def trtllm_mha_context_parallel_prefill(c: Config) -> Refusal | None:
    """Off SM100, TensorRT-LLM's prefill cannot mask a sequence split over GPUs.

    Context parallelism gives each GPU a part of the sequence; the prefill kernels of Hopper and SM120 cannot mask the
    parts. Prefill with fa3 (Hopper) or flashinfer, or leave context parallelism.
    """
    if (c.prefill_attention_backend or c.attention_backend) != "trtllm_mha" or c.gpu.sm100:
        return None
    if c.attn_cp_size <= 1 and not (c.before("0.5.20") and c.enable_prefill_context_parallel):
        return None
    at = backend_field(c, "prefill")
    return Refusal(
        at=at,
        with_=("attn_cp_size",),
        message=f"{c.shown(at)} is refused for prefill with {c.shown('attn_cp_size')} on {c.gpu.title}: its kernels "
        f"there cannot "
        "mask a sequence that is split over GPUs.",
        fixes=(*_other_plain_backends(c, at), setting(attn_cp_size=1)),
    )


_fa3_fp8 = Handler("overrides.py:_attention_backend_fa3_fp8_fallback", since="0.5.4", earlier=IN_COMPATIBILITY)


@_fa3_fp8.adjusts("attention_backend")
def no_e5m2_on_fa3(c: Config) -> None:
    """FlashAttention 3 reads no fp8_e5m2 KV cache, so Triton takes its place."""
    if c.attention_backend == "fa3" and c.kv_cache_dtype == "fp8_e5m2":
        c.set(attention_backend="triton")


_fa4 = Handler("overrides.py:_fa4_page_constraint", since="0.5.4", earlier=IN_COMPATIBILITY)


@_fa4.refuses(
    "SPC218",
    "fa4-for-decoding",
    raises="ValueError",
    until="0.5.8",
    bad="sglang=0.5.7 gpu=b200 -- --attention-backend fa4",
    good="sglang=0.5.7 gpu=b200 -- --prefill-attention-backend fa4",
)
def fa4_for_decoding(c: Config) -> Refusal | None:
    """In these releases FlashAttention 4 only prefills.

    Name it with `--prefill-attention-backend`; decoding needs another backend.
    """
    if not main_or_decode_is(c, "fa4"):
        return None
    at = field_naming(c, "fa4")
    return Refusal(
        at=at,
        message=f"{c.shown(at)} is refused: in this release FlashAttention 4 has kernels for prefill only.",
        fixes=(Change(set={"prefill_attention_backend": "fa4"}, drop=(at,)), dropping(at)),
    )


@_fa4.adjusts("page_size")
def fa4_pages(c: Config) -> None:
    """FlashAttention 4 works on KV pages of 128 tokens for models without latent attention."""
    named = any_backend_is(c, "fa4") if c.since("0.5.15") else c.prefill_attention_backend == "fa4"
    if not named or (c.since("0.5.5") and c.model.uses_mla) or (c.since("0.5.10") and not c.gpu.sm100):
        return
    if c.since("0.5.15") and (c.speculative_eagle_topk or 0) > 1:
        return
    diffusion = c.since("0.5.22") and "DiffusionGemmaForBlockDiffusion" in c.model.architectures
    c.set(page_size=1 if diffusion else 128)


_platforms = Handler("attention_hook.py:handle_attention_backend_compatibility")
AITER_WORKSPACE = 0.85


@_platforms.adjusts("mem_fraction_static")
def aiter_workspace(c: Config) -> None:
    """aiter needs workspace for contexts beyond 8192 tokens, so less memory is left for weights and KV cache."""
    if c.attention_backend != "aiter" or c.model.context_len(c.context_length) <= 8192:
        return
    if c.since("0.5.19") and c.typed("mem_fraction_static") is not None:
        if c.env.flag("SGLANG_AITER_HONOR_EXPLICIT_MEM_FRACTION"):
            return
    c.set(mem_fraction_static=c.mem_fraction_static * AITER_WORKSPACE)


@_platforms.adjusts("page_size", until="0.5.6.post1")
def ascend_pages(c: Config) -> None:
    """The Ascend backend works on KV pages of 128 tokens."""
    if c.attention_backend == "ascend" and c.gpu.platform == "npu":
        c.set(page_size=128)


@_platforms.adjusts("attention_backend")
def fall_back_from_intel(c: Config) -> None:
    """This CPU has no AMX tiles, so PyTorch's own attention takes the place of Intel's."""
    if c.attention_backend == "intel_amx" and c.device == "cpu" and not has_amx(c):
        c.set(attention_backend="torch_native")


@_platforms.refuses(
    "SPC216",
    "intel-xpu-latent-prefill",
    raises="ValueError",
    since="0.5.11",
    until="0.5.20",
    bad="sglang=0.5.19 model=deepseek-v3 -- --tp-size 8 --prefill-attention-backend intel_xpu",
    good="sglang=0.5.19 model=deepseek-v3 -- --tp-size 8 --prefill-attention-backend triton",
)
def intel_xpu_latent_prefill(c: Config) -> Refusal | None:
    """In these releases Intel's XPU attention only decodes latent attention.

    For DeepSeek-like models name it with `--decode-attention-backend` and prefill with triton.
    """
    if (c.prefill_attention_backend or c.attention_backend) != "intel_xpu" or not c.model.uses_mla:
        return None
    at = backend_field(c, "prefill")
    return Refusal(
        at=at,
        with_=("model_path",),
        message=f"{c.shown(at)} is refused for {c.model.architecture}: it decodes latent attention but does not "
        f"prefill it.",
        fixes=(setting(prefill_attention_backend="triton"), dropping(at)),
    )


@_platforms.adjusts("page_size")
def intel_xpu_pages(c: Config) -> None:
    """Intel's XPU attention works on KV pages of 64 or 128 tokens (16 and 32 too for latent attention)."""
    if c.before("0.5.11"):
        if c.attention_backend == "intel_xpu" and c.page_size not in (32, 64, 128):
            c.set(page_size=128)
        return
    prefill, decode = backends_of(c)
    if "intel_xpu" not in ((prefill, decode) if c.since("0.5.20") else (decode,)):
        return
    if c.page_size not in ((16, 32, 64, 128) if c.model.uses_mla else (64, 128)):
        c.set(page_size=128)


_dual_chunk = Handler("overrides.py:_attention_backend_dual_chunk", until="0.5.20", earlier=IN_COMPATIBILITY)


@_dual_chunk.refuses(
    "SPC217",
    "other-backend-for-dual-chunk-attention",
    raises="ValueError",
    bad='sglang=0.5.19 -- --attention-backend fa3 --json-model-override-args \'{"dual_chunk_attention_config": '
    '{"chunk_size": 262144}}\'',
    good="sglang=0.5.19 -- --attention-backend fa3",
)
def other_backend_for_dual_chunk_attention(c: Config) -> Refusal | None:
    """A model with dual-chunk attention runs on dual_chunk_flash_attn only.

    The config of Qwen's million-token checkpoints asks for dual-chunk attention, which one backend computes. SGLang
    picks a backend before it looks, so in these releases the backend has to be named, or the config entry removed.
    """
    if c.attention_backend == "dual_chunk_flash_attn" or c.model.hf("dual_chunk_attention_config") is None:
        return None
    return Refusal(
        at="attention_backend" if c.given("attention_backend") else "model_path",
        with_=("model_path",),
        message=f"{c.shown('attention_backend')} is refused for this model: its config asks for dual-chunk attention, "
        f"which only "
        "dual_chunk_flash_attn computes.",
        fixes=(setting(attention_backend="dual_chunk_flash_attn"),),
    )


@_dual_chunk.adjusts("enable_mixed_chunk", "disable_radix_cache")
def dual_chunk_limits(c: Config) -> None:
    """Dual-chunk attention works neither with mixed chunks nor with the radix cache."""
    if c.attention_backend == "dual_chunk_flash_attn":
        c.set(enable_mixed_chunk=False, disable_radix_cache=True)


handle_attention_backend_compatibility = (
    _default,
    _compatibility,
    _pages,
    _latent_checks,
    _cutedsl,
    _trtllm_mha,
    _fa3_fp8,
    _fa4,
    _platforms,
    _dual_chunk,
)


# --- page size ------------------------------------------------------------------------------------------------------

page_size_default = Handler("overrides.py:_page_size_default")


@page_size_default.adjusts("page_size")
def choose_page_size(c: Config) -> None:
    """The KV cache is handed out token by token unless a backend wants pages."""
    if c.page_size is not None:
        return
    layout = c.env.text("SGLANG_AITER_KV_CACHE_LAYOUT", "nhd") or "nhd"
    vectorized = c.since("0.5.13") and layout.lower() == "vectorized_5d" and c.gpu.is_hip
    c.set(page_size=64 if vectorized else 1)


# --- multi-item scoring ---------------------------------------------------------------------------------------------

handle_multi_item_scoring = Handler("attention_hook.py:handle_multi_item_scoring", when=lambda c: bool(c.enable_mis))


@handle_multi_item_scoring.adjusts("disable_cuda_graph", "disable_piecewise_cuda_graph", until="0.5.14")
def scoring_without_cuda_graphs_before_0_5_14(c: Config) -> None:
    """Multi-item scoring masks attention anew for each request, which a CUDA graph cannot hold."""
    c.set(disable_cuda_graph=True, disable_piecewise_cuda_graph=True)


@handle_multi_item_scoring.adjusts("cuda_graph_config", since="0.5.14")
def scoring_without_cuda_graphs(c: Config) -> None:
    """Multi-item scoring masks attention anew for each request, which a CUDA graph cannot hold."""
    capture_nothing(c)


@handle_multi_item_scoring.adjusts("disable_radix_cache")
def scoring_without_radix_cache(c: Config) -> None:
    """Multi-item scoring reads items that a shared prefix would mix up."""
    c.set(disable_radix_cache=True)


@handle_multi_item_scoring.adjusts("chunked_prefill_size")
def scoring_without_chunks(c: Config) -> None:
    """Multi-item scoring needs the whole request in one prefill."""
    c.set(chunked_prefill_size=-1)


@handle_multi_item_scoring.refuses(
    "SPC220",
    "scoring-without-flashinfer",
    raises="AssertionError",
    bad="--enable-mis",
    good="--enable-mis --attention-backend flashinfer",
)
def scoring_without_flashinfer(c: Config) -> Refusal | None:
    """Multi-item scoring runs on flashinfer only.

    It needs attention masks of its own, which only FlashInfer takes, for prefill and for decoding. On Hopper and SM100
    SGLang's default is another backend, so `--enable-mis` alone is refused there: name flashinfer.
    """
    prefill, decode = backends_of(c)
    if prefill == "flashinfer" and decode == "flashinfer":
        return None
    at = backend_field(c, "prefill" if prefill != "flashinfer" else "decode")
    splits = tuple(n for n in ("prefill_attention_backend", "decode_attention_backend") if getattr(c, n))
    return Refusal(
        at=at if c.given(at) else "enable_mis",
        with_=("enable_mis",) if c.given(at) else (at,),
        message=f"`--enable-mis` is refused with {c.shown(at)}: multi-item scoring needs attention masks that only "
        f"flashinfer takes.",
        fixes=(Change(set={"attention_backend": "flashinfer"}, drop=splits), dropping("enable_mis")),
    )
