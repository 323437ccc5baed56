"""What attention backends refuse when they are built for the target model.

Follows layers/attention/attention_registry.py and the constructors of layers/attention/*_backend.py (0.5.23).

Modelled: backends for latent attention on other models and the other way round, fa3 off Hopper, hybrid gated-delta-net models on
Blackwell, triton with an encoder, HPC-Ops (hardware, drafting, latent attention), TensorRT-LLM's wide pages, aiter's head counts,
DeepSeek V4's trees, backends of another vendor.
Left out, because it needs the loaded model, the pool or the request: KV access methods of quantized caches, FP8 head shapes of
HPC-Ops, sliding windows with trees on fa3 (the layers decide), metadata of a batch, workspace sizes.
"""

from __future__ import annotations

from collections.abc import Callable

from spec_lsp.facts.model import ModelFacts
from spec_lsp.resolution.attention import backend_field, backends_of
from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, as_far_as_known, dropping, setting
from spec_lsp.resolution.parallel import attention_tp_size

LATENT_ONLY = ("trtllm_mla", "cutedsl_mla", "tokenspeed_mla", "flashmla", "cutlass_mla")
"""Backends that only know latent attention."""

PLAIN_ONLY = ("trtllm_mha", "hpc_ops", "llada2_cfg_flashinfer")
"""Backends that do not know it."""


def runs(c: Config, backend: str | tuple[str, ...]) -> tuple[str, str] | None:
    """The (field, backend) by which a phase of the target runs one of these backends; None when none does."""
    wanted = (backend,) if isinstance(backend, str) else backend
    for phase, name in zip(("prefill", "decode"), backends_of(c), strict=True):
        if name in wanted:
            return backend_field(c, phase), str(name)
    return None


@as_far_as_known
def other_backends(c: Config, field: str, facts: ModelFacts) -> tuple[Change, ...]:
    """Other backends for this field, the hardware's best first."""
    own: tuple[str, ...]
    if facts.uses_mla:
        own = ("fa3", "flashmla") if c.gpu.sm90 else ("trtllm_mla", "flashinfer") if c.gpu.sm100 else ()
    else:
        own = ("fa3",) if c.gpu.sm90 else ("trtllm_mha",) if c.gpu.sm100 else ("aiter",) if c.gpu.is_hip else ()
        own = (*own, "flashinfer") if c.gpu.is_cuda else own
    names = (*own, "triton")
    drop = (dropping(field),) if c.given(field) else ()
    return (*drop, *(setting(**{field: name}) for name in names))


attention_backends = Handler("attention_registry.py:create_trtllm_mla_backend", since="0.5.4")
"""Before 0.5.4 the default backend is chosen here, not by argument resolution."""


@attention_backends.refuses(
    "SPC943",
    "drafting-in-shared-context-on-trtllm-mla",
    raises="ValueError",
    late=True,
    since="0.5.17",
    bad="gpu=b200 model=deepseek-v3 -- --tp-size 8 --dcp-size 2 --attention-backend trtllm_mla --speculative-algorithm EAGLE",
    good="gpu=b200 model=deepseek-v3 -- --tp-size 8 --attention-backend trtllm_mla --speculative-algorithm EAGLE",
)
def drafting_in_shared_context_on_trtllm_mla(c: Config) -> Refusal | None:
    """The trtllm_mla backend cannot verify drafts under decode context parallelism.

    With `--dcp-size` above 1 every rank sees a part of the context; this backend does not tell its kernel which part, nor gives back
    what merging needs. `cutedsl_mla` does both.
    """
    if (
        c.speculative_algorithm is None
        or (c.dcp_size or 1) <= 1
        or backends_of(c)[1] != "trtllm_mla"
        or not c.model.uses_mla
    ):
        return None
    field = backend_field(c, "decode")
    return Refusal(
        at=field if c.given(field) else "dcp_size",
        with_=("dcp_size", "speculative_algorithm"),
        message=f"{c.shown(field)} cannot verify drafts with {c.shown('dcp_size')}, and SGLang stops when it builds the backend. Take "
        "`cutedsl_mla`, or drop one of the two.",
        fixes=(setting(**{field: "cutedsl_mla"}), dropping("dcp_size"), dropping("speculative_algorithm")),
    )


@attention_backends.refuses(
    "SPC900",
    "latent-backend-for-plain-attention",
    raises="ValueError",
    late=True,
    bad=("gpu=b200 -- --attention-backend trtllm_mla", "gpu=h100 -- --attention-backend flashmla"),
    good="gpu=b200 model=deepseek-v3 -- --tp-size 8 --attention-backend trtllm_mla",
)
def latent_backend_for_plain_attention(c: Config) -> Refusal | None:
    """This backend only computes latent attention, and the model has none.

    `trtllm_mla`, `cutedsl_mla`, `tokenspeed_mla`, `flashmla` and `cutlass_mla` are for DeepSeek, Kimi K2, GLM-5 and other models with
    latent attention (MLA). Argument resolution takes them for any model; the server dies when it builds the backend. (FlashMLA dies
    with an AttributeError, the others with a ValueError.)
    """
    found = runs(c, LATENT_ONLY)
    if found is None or c.model.uses_mla:
        return None
    field, name = found
    return Refusal(
        at=field,
        with_=("model_path",),
        message=f"{c.shown(field)} is refused for {c.model.architecture} once the weights are loaded: {name} computes "
        f"latent attention only.",
        fixes=other_backends(c, field, c.model),
    )


@attention_backends.refuses(
    "SPC901",
    "plain-backend-for-latent-attention",
    raises="ValueError",
    late=True,
    sglang="attention_registry.py:create_trtllm_mha_backend",
    bad="gpu=b200 model=deepseek-v3 -- --tp-size 8 --attention-backend trtllm_mha",
    good="gpu=b200 -- --attention-backend trtllm_mha",
)
def plain_backend_for_latent_attention(c: Config) -> Refusal | None:
    """This backend does not compute latent attention, and the model needs it.

    DeepSeek, Kimi K2, GLM-5 and other models with latent attention (MLA) need trtllm_mla, cutedsl_mla, flashmla, fa3, flashinfer or
    triton.
    """
    found = runs(c, PLAIN_ONLY)
    if found is None or not c.model.uses_mla:
        return None
    field, name = found
    return Refusal(
        at=field,
        with_=("model_path",),
        message=f"{c.shown(field)} is refused for {c.model.architecture} once the weights are loaded: {name} does not compute "
        "latent attention.",
        fixes=other_backends(c, field, c.model),
    )


def fa3_runs(c: Config, facts: ModelFacts) -> bool:
    """Whether fa3 can be built for this model on this hardware: Hopper, or Ampere and Ada without latent attention."""
    return c.gpu.major == 9 or (c.gpu.major == 8 and not facts.uses_mla)


@attention_backends.refuses(
    "SPC902",
    "fa3-off-hopper",
    raises="AssertionError",
    late=True,
    gate=True,
    sglang="attention_registry.py:create_flashattention_v3_backend",
    bad=("gpu=b200 -- --attention-backend fa3", "gpu=a100 model=deepseek-v3 -- --tp-size 8 --attention-backend fa3"),
    good=("gpu=h100 -- --attention-backend fa3", "gpu=a100 -- --attention-backend fa3"),
)
def fa3_off_hopper(c: Config) -> Refusal | None:
    """FlashAttention 3 runs on Hopper, and on Ampere and Ada for models without latent attention.

    On Blackwell take trtllm_mha (trtllm_mla for latent attention), fa4 or flashinfer.
    """
    found = runs(c, "fa3")
    if found is None or not c.gpu.is_cuda or c.gpu.major == 9 or fa3_runs(c, c.model):
        return None
    field = found[0]
    why = "latent attention" if c.gpu.major == 8 else "this hardware"
    return Refusal(
        at=field,
        with_=("model_path",) if c.gpu.major == 8 else (),
        message=f"{c.shown(field)} is refused on {c.gpu.title} once the weights are loaded: FlashAttention 3 has no kernels for {why}.",
        fixes=other_backends(c, field, c.model),
    )


def gdn_backends_on_blackwell(c: Config) -> tuple[str, ...]:
    """The backends that a hybrid gated-delta-net model may run on, on Blackwell."""
    if c.before("0.5.10"):
        return ("triton", "trtllm_mha")
    if c.before("0.5.16"):
        return ("triton", "trtllm_mha", "fa4", "flashinfer")
    if c.gpu.sm120:
        return ("triton", "trtllm_mha", "flashinfer")
    return ("triton", "trtllm_mha", "fa4", *(("flashinfer",) if c.since("0.5.21") else ()))


@attention_backends.refuses(
    "SPC903",
    "hybrid-gdn-backend-on-blackwell",
    raises="AssertionError",
    late=True,
    sglang="attention_registry.py:attn_backend_wrapper",
    bad="gpu=b200 model=qwen3-next-80b -- --tp-size 2 --attention-backend torch_native",
    good="gpu=b200 model=qwen3-next-80b -- --tp-size 2 --attention-backend triton",
)
def hybrid_gdn_backend_on_blackwell(c: Config) -> Refusal | None:
    """On Blackwell, Qwen3-Next and Qwen3.5 run on few attention backends.

    Models that mix gated delta net layers with full attention take triton, trtllm_mha, fa4 (SM100) or flashinfer (SM120; SM100 since
    0.5.21) there, for prefill and for decoding.
    """
    if not (c.gpu.sm100 or c.gpu.sm120) or not c.model.is_gdn:
        return None
    allowed = gdn_backends_on_blackwell(c)
    names = backends_of(c) if c.since("0.5.16") else (c.attention_backend,) * 2
    wrong = next((p for p, n in zip(("prefill", "decode"), names, strict=True) if n not in allowed), None)
    if wrong is None:
        return None
    field = backend_field(c, wrong) if c.since("0.5.16") else "attention_backend"
    return Refusal(
        at=field if c.given(field) else "model_path",
        with_=("model_path",) if c.given(field) else (field,),
        message=f"{c.shown(field)} is refused for {c.model.architecture} on {c.gpu.title} once the weights are loaded: it takes "
        f"{', '.join(allowed)} there.",
        fixes=(
            *((dropping(field),) if c.given(field) else ()),
            *(setting(**{field: n}) for n in ("trtllm_mha", "triton")),
        ),
    )


@attention_backends.refuses(
    "SPC904",
    "triton-for-cross-attention",
    raises="AssertionError",
    late=True,
    sglang="attention_registry.py:create_triton_backend",
)
def triton_for_cross_attention(c: Config) -> Refusal | None:
    """The triton backend computes no cross attention.

    Encoder-decoder models (Whisper, Mllama) need flashinfer.
    """
    found = runs(c, "triton")
    if found is None or not c.model.is_encoder_decoder:
        return None
    field = found[0]
    return Refusal(
        at=field if c.given(field) else "model_path",
        with_=("model_path",) if c.given(field) else (field,),
        message=f"{c.shown(field)} is refused for {c.model.architecture} once the weights are loaded: triton computes no cross attention.",
        fixes=(setting(**{field: "flashinfer"}),),
    )


@attention_backends.refuses(
    "SPC905",
    "hpc-ops-launch",
    raises="ValueError",
    late=True,
    since="0.5.17",
    sglang="attention_registry.py:create_hpc_ops_backend",
    bad=(
        "gpu=b200 -- --attention-backend hpc_ops",
        "--attention-backend hpc_ops --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    ),
    good="--attention-backend hpc_ops",
)
def hpc_ops_launch(c: Config) -> Refusal | None:
    """HPC-Ops attention runs on Hopper, without drafts and without cross attention.

    Its kernels are built for SM90 only and cannot verify draft tokens.
    """
    found = runs(c, "hpc_ops")
    if found is None or c.model.uses_mla:
        return None
    field = found[0]
    if c.speculative_algorithm is not None:
        other, why = "speculative_algorithm", f"with {c.shown('speculative_algorithm')}"
    elif not c.gpu.sm90:
        other, why = "", f"on {c.gpu.title}"
    elif c.model.is_encoder_decoder:
        other, why = "model_path", f"for {c.model.architecture}"
    else:
        return None
    return Refusal(
        at=field,
        with_=(other,) if other else (),
        message=f"{c.shown(field)} is refused {why} once the weights are loaded: HPC-Ops has no kernels for it.",
        fixes=other_backends(c, field, c.model),
    )


@attention_backends.refuses(
    "SPC906",
    "wide-pages-on-trtllm-mha",
    raises="ValueError",
    late=True,
    since="0.5.17",
    sglang="trtllm_mha_backend.py:__init__",
    bad="gpu=b200 model=llama-2-7b -- --attention-backend trtllm_mha --page-size 128",
    good="gpu=b200 -- --attention-backend trtllm_mha --page-size 128",
)
def wide_pages_on_trtllm_mha(c: Config) -> Refusal | None:
    """Pages of 128 tokens need grouped queries on TensorRT-LLM's attention.

    On SM100 its kernels for such pages exist only for models with several query heads to a KV head (on each GPU) and keys as wide as
    values. Take pages of 64 tokens.
    """
    found = runs(c, "trtllm_mha")
    if found is None or c.page_size < 128 or not c.gpu.sm100 or c.model.uses_mla:
        return None
    width = attention_tp_size(c)
    grouped = (c.model.num_attention_heads or 0) // width // c.model.get_num_kv_heads(width) > 1
    if grouped and c.model.head_dim == c.model.v_head_dim and c.page_size & (c.page_size - 1) == 0:
        return None
    return Refusal(
        at="page_size" if c.given("page_size") else found[0],
        with_=(found[0],) if c.given("page_size") else ("page_size",),
        message=f"{c.shown('page_size')} is refused with {c.shown(found[0])} for {c.model.architecture} once the weights are "
        "loaded: kernels for pages this wide need several query heads to a KV head.",
        fixes=(setting(page_size=64), dropping("page_size")),
    )


@attention_backends.refuses(
    "SPC907",
    "draft-tree-on-deepseek-v4",
    raises="AssertionError",
    late=True,
    since="0.5.12",
    sglang="deepseek_v4_backend.py:__init__",
)
def draft_tree_on_deepseek_v4(c: Config) -> Refusal | None:
    """DeepSeek V4's sparse attention verifies chains, not trees.

    `--speculative-eagle-topk` has to be 1.
    """
    topk = c.speculative_eagle_topk
    if topk is None or topk <= 1 or runs(c, "dsv4") is None:
        return None
    return Refusal(
        at="speculative_eagle_topk",
        with_=("model_path",),
        message=f"{c.shown('speculative_eagle_topk')} is refused for {c.model.architecture} once the weights are loaded: its sparse "
        "attention verifies one chain of draft tokens.",
        fixes=(setting(speculative_eagle_topk=1),),
    )


def _vendor_problem(c: Config) -> tuple[str, str] | None:
    """The (field, reason) of a backend whose package exists for another vendor's hardware."""
    checks: tuple[tuple[str, Callable[[], bool], str], ...] = (
        ("flashinfer", lambda: c.gpu.is_hip, "FlashInfer exists for NVIDIA GPUs only"),
        ("ascend", lambda: c.gpu.platform != "npu", "it needs Ascend's PyTorch"),
    )
    for name, elsewhere, why in checks:
        found = runs(c, name)
        if found is not None and elsewhere():
            return found[0], why
    return None


@attention_backends.refuses(
    "SPC908",
    "attention-backend-of-another-vendor",
    raises="NameError",
    late=True,
    gate=True,
    sglang="attention_registry.py:create_flashinfer_backend",
    bad=("gpu=mi300x -- --attention-backend flashinfer", "gpu=h100 -- --attention-backend ascend"),
    good="gpu=h100 -- --attention-backend flashinfer",
)
def attention_backend_of_another_vendor(c: Config) -> Refusal | None:
    """This backend is made for another vendor's hardware.

    Argument resolution takes every name of its list; what the backend is made of is missing when it is built. On AMD take aiter or
    triton, on NVIDIA leave the choice to SGLang.
    """
    problem = _vendor_problem(c)
    if problem is None:
        return None
    field, why = problem
    return Refusal(
        at=field,
        message=f"{c.shown(field)} is refused on {c.gpu.title} once the weights are loaded: {why}.",
        fixes=other_backends(c, field, c.model),
    )


@attention_backends.refuses(
    "SPC909",
    "aiter-latent-heads",
    raises="AssertionError",
    late=True,
    since="0.5.22",
    sglang="aiter_backend.py:__init__",
    bad="gpu=mi300x model=kimi-linear-48b -- --tp-size 1 --attention-backend aiter --json-model-override-args "
    "'{\"num_attention_heads\": 24}'",
    good="gpu=mi300x model=deepseek-v3 -- --tp-size 8 --attention-backend aiter",
)
def aiter_latent_heads(c: Config) -> Refusal | None:
    """aiter decodes latent attention for certain numbers of heads only.

    On each GPU there may be fewer than 16 query heads, or a multiple of 16 up to 128. Change `--tp-size`, or decode with triton.
    """
    if c.decode_attention_backend not in (None, "aiter") or runs(c, "aiter") is None or not c.model.uses_mla:
        return None
    if c.speculative_algorithm is not None or c.dcp_size > 1:
        return None
    heads = c.model.get_num_attention_heads(attention_tp_size(c))
    if heads < 16 or (heads % 16 == 0 and heads <= 128):
        return None
    field = backend_field(c, "decode")
    return Refusal(
        at=field,
        with_=("tp_size", "model_path"),
        message=f"{c.shown(field)} is refused for {c.model.architecture} with {c.shown('tp_size')} once the weights are loaded: it "
        f"leaves {heads} heads to a GPU, and aiter takes fewer than 16 or a multiple of 16.",
        fixes=(setting(decode_attention_backend="triton"), setting(attention_backend="triton")),
    )
