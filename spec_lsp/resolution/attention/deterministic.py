"""Deterministic inference: its attention backend, what it turns off, what it refuses."""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Earlier, Handler, Refusal, dropping, one_of, setting

IN_DETERMINISTIC = (Earlier("0.5.15", "server_args.py:_handle_deterministic_inference"),)


ABSORBED_MLA = frozenset({
    "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "MistralLarge3ForCausalLM",
    "PixtralForConditionalGeneration", "GlmMoeDsaForCausalLM", "Glm4MoeLiteForCausalLM",
})  # fmt: skip
"""Latent-attention architectures for which deterministic inference supports few backends."""


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
    """Those of them with which the radix cache may stay on."""
    if c.before("0.5.13"):
        return ("fa3", "triton")
    return ("fa3", "triton", "ascend") if c.before("0.5.17") else ("ascend", "fa3", "fa4", "triton")


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


@_deterministic_backend.adjusts("attention_backend", since="0.5.4")
def choose_deterministic_backend(c: Config) -> None:
    """Deterministic inference uses fa3 on Hopper and older, flashinfer (for DeepSeek triton) on Blackwell."""
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
    if not c.enable_deterministic_inference or (c.attention_backend is None and c.since("0.5.4")):
        return None
    allowed = deterministic_backends(c)
    if c.attention_backend in allowed:
        return None
    if c.attention_backend is None:
        return Refusal(
            at="enable_deterministic_inference",
            related_fields=("attention_backend",),
            message=f"Before 0.5.4, `--enable-deterministic-inference` is refused unless `--attention-backend` is given: it can be "
            f"{one_of(allowed)}.",
            fixes=(
                *(setting(attention_backend=name) for name in ("triton", *allowed)),
                dropping("enable_deterministic_inference"),
            ),
        )
    switch = c.first_given("enable_deterministic_inference", "rl_on_policy_target")
    typed = c.given("attention_backend")
    order = ("fa3", "flashinfer", "triton") if c.gpu.sm90 else ("flashinfer", "triton", "fa3")
    return Refusal(
        at="attention_backend" if typed else switch,
        related_fields=(switch,) if typed else ("attention_backend",),
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
    since="0.5.4",
    bad="model=deepseek-v3 -- --tp-size 8 --enable-deterministic-inference --attention-backend flashinfer",
    good="model=deepseek-v3 -- --tp-size 8 --enable-deterministic-inference --attention-backend fa3",
)
def nondeterministic_latent_attention(c: Config) -> Refusal | None:
    """DeepSeek-like MLA is deterministic on fewer backends still.

    For models that run MLA (DeepSeek V2/V3, Mistral Large 3, GLM-5, …) FlashInfer is not
    batch-invariant, although it is for other models. Use fa3 (Hopper) or triton.
    """
    if not c.enable_deterministic_inference or not _is_absorbed_mla_in_hook(c):
        return None
    allowed = deterministic_radix_backends(c) if c.since("0.5.17") else ("fa3", "triton")
    if c.attention_backend in allowed:
        return None
    return Refusal(
        at=c.first_given("attention_backend", "enable_deterministic_inference"),
        related_fields=("enable_deterministic_inference", "model_path"),
        message=f"{c.shown('attention_backend')} is refused with deterministic inference for {c.model.architecture}: "
        f"only "
        f"{', '.join(allowed)} are batch-invariant for MLA.",
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
    hardware_only=True,
    bad="model=deepseek-v3 -- --tp-size 8 --enable-deterministic-inference --attention-backend fa4",
    good="model=deepseek-v3 gpu=b200 -- --tp-size 8 --enable-deterministic-inference --attention-backend fa4",
)
def deterministic_fa4_off_sm100(c: Config) -> Refusal | None:
    """fa4 runs MLA on SM100 and SM110 only.

    DeepSeek-like models pass fa4 an extra argument that its kernels have on data-centre Blackwell (and Thor) alone. On
    other hardware use fa3 or triton for deterministic inference.
    """
    if not c.enable_deterministic_inference or c.attention_backend != "fa4" or not _is_absorbed_mla_in_hook(c):
        return None
    if c.gpu.is_cuda and c.gpu.major in (10, 11):
        return None
    return Refusal(
        at="attention_backend",
        related_fields=("enable_deterministic_inference", "model_path"),
        message=f"{c.shown('attention_backend')} is refused with deterministic inference for {c.model.architecture} on "
        f"{c.gpu.title}: the kernel this model needs exists for SM100 and SM110 only.",
        fixes=(setting(attention_backend="fa3"), setting(attention_backend="triton")),
    )


def _is_absorbed_mla_in_hook(c: Config) -> bool:
    if c.since("0.5.21") and c.model.architecture == "Glm5NextForConditionalGeneration":
        return True
    return is_absorbed_mla(c)


@_deterministic_rest.adjusts("disable_radix_cache", since="0.5.4")
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
        related_fields=("enable_deterministic_inference", "tp_size"),
        message=f"`--disable-custom-all-reduce` is refused with deterministic inference and {c.shown('tp_size')} on "
        "ROCm: the sums would go through RCCL, whose result depends on the batch above two ranks.",
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
