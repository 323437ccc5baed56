"""What attention backends refuse when they are built for the target model.

Follows layers/attention/attention_registry.py and the constructors of layers/attention/*_backend.py (0.5.23).

Modelled: backends for MLA on other models and the other way round, fa3 off Hopper, hybrid gated-delta-net models on
Blackwell, triton with an encoder, HPC-Ops (hardware, drafting, MLA), TensorRT-LLM's wide pages, aiter's head counts,
DeepSeek V4's trees, backends of another vendor.
Left out, because it needs the loaded model, the pool or the request: KV access methods of quantized caches, FP8 head shapes of
HPC-Ops, metadata of a batch, workspace sizes.
"""

from __future__ import annotations

from collections.abc import Callable

from spec_lsp.facts.classes import class_facts
from spec_lsp.facts.model import ModelFacts
from spec_lsp.resolution.attention import backend_field, backends_of
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, as_far_as_known, dropping, setting
from spec_lsp.resolution.late.refused import Barred, first_barred, value_refused
from spec_lsp.resolution.ranks import attention_tp_size

LATENT_ONLY = ("trtllm_mla", "cutedsl_mla", "tokenspeed_mla", "flashmla", "cutlass_mla")
"""Backends that compute MLA only."""

PLAIN_ONLY = ("trtllm_mha", "hpc_ops", "llada2_cfg_flashinfer")
"""Backends that do not compute it."""


def runs(c: Config, backend: str | tuple[str, ...]) -> tuple[str, str] | None:
    """The (field, backend) by which a phase of the target runs one of these backends; None if none does."""
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
        related_fields=("dcp_size", "speculative_algorithm"),
        message=f"{c.shown(field)} cannot verify drafts with {c.shown('dcp_size')}, and SGLang stops when it builds the backend. Take "
        "`cutedsl_mla`, or remove one of the two.",
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
    """This backend computes MLA only, and the model does not use MLA.

    `trtllm_mla`, `cutedsl_mla`, `tokenspeed_mla`, `flashmla` and `cutlass_mla` are for DeepSeek, Kimi K2, GLM-5 and other models with
    multi-head latent attention (MLA). Argument resolution accepts them for any model; the server dies when it builds the backend.
    (FlashMLA dies with an AttributeError, the others with a ValueError.)
    """
    found = runs(c, LATENT_ONLY)
    if found is None or c.model.uses_mla:
        return None
    field, name = found
    return Refusal(
        at=field,
        related_fields=("model_path",),
        message=f"{c.shown(field)} is refused for {c.model.architecture} once the weights are loaded: {name} computes "
        f"MLA only.",
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
    """This backend does not compute MLA, and the model needs it.

    DeepSeek, Kimi K2, GLM-5 and other models with multi-head latent attention (MLA) need trtllm_mla, cutedsl_mla, flashmla,
    fa3, flashinfer or triton.
    """
    found = runs(c, PLAIN_ONLY)
    if found is None or not c.model.uses_mla:
        return None
    field, name = found
    return Refusal(
        at=field,
        related_fields=("model_path",),
        message=f"{c.shown(field)} is refused for {c.model.architecture} once the weights are loaded: {name} does not compute "
        "MLA.",
        fixes=other_backends(c, field, c.model),
    )


def fa3_runs(c: Config, facts: ModelFacts) -> bool:
    """Whether fa3 can be built for this model on this hardware: Hopper, or Ampere and Ada without MLA."""
    return c.gpu.major == 9 or (c.gpu.major == 8 and not facts.uses_mla)


@attention_backends.refuses(
    "SPC902",
    "fa3-off-hopper",
    raises="AssertionError",
    late=True,
    hardware_only=True,
    sglang="attention_registry.py:create_flashattention_v3_backend",
    bad=("gpu=b200 -- --attention-backend fa3", "gpu=a100 model=deepseek-v3 -- --tp-size 8 --attention-backend fa3"),
    good=("gpu=h100 -- --attention-backend fa3", "gpu=a100 -- --attention-backend fa3"),
)
def fa3_off_hopper(c: Config) -> Refusal | None:
    """FlashAttention 3 runs on Hopper, and on Ampere and Ada for models without MLA.

    On Blackwell use trtllm_mha (trtllm_mla for MLA), fa4 or flashinfer.
    """
    found = runs(c, "fa3")
    if found is None or not c.gpu.is_cuda or c.gpu.major == 9 or fa3_runs(c, c.model):
        return None
    field = found[0]
    why = "MLA" if c.gpu.major == 8 else "this hardware"
    return Refusal(
        at=field,
        related_fields=("model_path",) if c.gpu.major == 8 else (),
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

    Models that mix gated delta net layers with full attention run on triton, trtllm_mha, fa4 (SM100) or flashinfer (SM120; SM100 since
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
        related_fields=("model_path",) if c.given(field) else (field,),
        message=f"{c.shown(field)} is refused for {c.model.architecture} on {c.gpu.title} once the weights are loaded: it runs on "
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
    """The triton backend does not compute cross attention.

    Encoder-decoder models (Whisper, Mllama) need flashinfer.
    """
    found = runs(c, "triton")
    if found is None or not c.model.is_encoder_decoder:
        return None
    field = found[0]
    return Refusal(
        at=field if c.given(field) else "model_path",
        related_fields=("model_path",) if c.given(field) else (field,),
        message=f"{c.shown(field)} is refused for {c.model.architecture} once the weights are loaded: triton computes no cross attention.",
        fixes=(setting(**{field: "flashinfer"}),),
    )


def _unfit_for_hpc_ops(c: Config) -> tuple[str, str] | None:
    """The field that makes this launch's attention unsupported by HPC-Ops, and the reason in words."""
    of_model = "model_path", f"for {c.model.architecture}"
    if c.model.is_encoder_decoder or c.model.head_dim != 128 or c.model.is_hybrid_swa():
        return of_model
    heads, kv_heads = (c.model.num_attention_heads or 0) // c.tp_size, c.model.get_num_kv_heads(c.tp_size)
    if heads // kv_heads not in (4, 8):
        return of_model
    if c.kv_cache_dtype == "fp8_e4m3" and (heads, kv_heads) not in ((8, 1), (64, 8)):
        return "kv_cache_dtype", f"with {c.shown('kv_cache_dtype')} for {heads} query and {kv_heads} KV heads on a rank"
    if c.kv_cache_dtype not in ("auto", "bf16", "bfloat16", "fp8_e4m3"):
        return "kv_cache_dtype", f"with {c.shown('kv_cache_dtype')}"
    return None


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
        "--attention-backend hpc_ops --kv-cache-dtype fp8_e5m2",
        "model=llama-2-7b -- --attention-backend hpc_ops",
    ),
    good="--attention-backend hpc_ops",
)
def hpc_ops_launch(c: Config) -> Refusal | None:
    """HPC-Ops attention runs on Hopper only, without speculative decoding, for plain attention with four or eight query heads to a KV head.

    Its kernels are built for SM90, cannot verify draft tokens, and know heads 128 wide and caches in bfloat16, or in FP8 for a few
    numbers of heads.
    """
    found = runs(c, "hpc_ops")
    if found is None or c.model.uses_mla:
        return None
    field = found[0]
    if c.speculative_algorithm is not None:
        other, why = "speculative_algorithm", f"with {c.shown('speculative_algorithm')}"
    elif not c.gpu.sm90:
        other, why = "", f"on {c.gpu.title}"
    elif (unfit := _unfit_for_hpc_ops(c)) is not None:
        other, why = unfit
    else:
        return None
    return Refusal(
        at=field,
        related_fields=(other,) if other else (),
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
    """On trtllm_mha, pages of 128 tokens need grouped-query attention.

    On SM100 its kernels for such pages exist only for models with several query heads to a KV head (on each GPU) and keys as wide as
    values. Use pages of 64 tokens.
    """
    found = runs(c, "trtllm_mha")
    if found is None or c.page_size < 128 or not c.gpu.sm100 or c.model.uses_mla:
        return None
    width = attention_tp_size(c)
    grouped = (c.model.num_attention_heads or 0) // width // c.model.get_num_kv_heads(width) > 1
    if grouped and c.model.head_dim == c.model.v_head_dim and c.page_size & (c.page_size - 1) == 0:
        return None
    return Refusal(
        at=c.first_given("page_size", found[0]),
        related_fields=(found[0],) if c.given("page_size") else ("page_size",),
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
        related_fields=("model_path",),
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
    hardware_only=True,
    sglang="attention_registry.py:create_flashinfer_backend",
    bad=("gpu=mi300x -- --attention-backend flashinfer", "gpu=h100 -- --attention-backend ascend"),
    good="gpu=h100 -- --attention-backend flashinfer",
)
def attention_backend_of_another_vendor(c: Config) -> Refusal | None:
    """This backend is made for another vendor's hardware.

    Argument resolution accepts every name on its list; the package behind the backend is missing when it is built. On AMD use aiter or
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
    """aiter decodes MLA for certain numbers of heads only.

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
        related_fields=("tp_size", "model_path"),
        message=f"{c.shown(field)} is refused for {c.model.architecture} with {c.shown('tp_size')} once the weights are loaded: it "
        f"leaves {heads} heads to a GPU, and aiter supports fewer than 16 or a multiple of 16.",
        fixes=(setting(decode_attention_backend="triton"), setting(attention_backend="triton")),
    )


SPARSE_LATENT = ("dsa", "nsa")
"""DeepSeek sparse attention; its name before 0.5.13 was nsa."""


@attention_backends.refuses(
    "SPC971",
    "sparse-backend-for-dense-model",
    raises="AssertionError",
    late=True,
    sglang="layers/attention/dsa_backend.py:__init__",
    earlier=(Earlier("0.5.13", "layers/attention/nsa_backend.py:__init__"),),
    bad=("model=deepseek-v3 -- --tp-size 8 --attention-backend dsa", "sglang=0.5.9 -- --attention-backend nsa"),
    good="model=deepseek-v3.2 -- --tp-size 8 --attention-backend dsa",
)
def sparse_backend_for_dense_model(c: Config) -> Refusal | None:
    """This backend is for models with DeepSeek's sparse attention.

    DeepSeek-V3.2 and GLM-5 choose a few tokens with an indexer of their own; SGLang gives them the backend by itself. Other models have
    no indexer.
    """
    found = runs(c, SPARSE_LATENT)
    if found is None or c.model.is_deepseek_dsa:
        return None
    field, name = found
    return Refusal(
        at=field,
        related_fields=("model_path",),
        message=f"{c.shown(field)} is refused for {c.model.architecture} once the weights are loaded: {name} computes DeepSeek's sparse "
        "attention only.",
        fixes=other_backends(c, field, c.model),
    )


WINDOWED = frozenset({
    "GptOssForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM", "Gemma3ForConditionalGeneration",
})  # fmt: skip
"""Models some of whose layers have a sliding window (`get_attention_sliding_window_size` of their classes)."""


def drafts_trees(c: Config) -> bool:
    """Whether drafts are trees, which are verified with a mask."""
    return c.speculative_algorithm in ("EAGLE", "EAGLE3", "NEXTN") and (c.speculative_eagle_topk or 1) > 1


@attention_backends.refuses(
    "SPC972",
    "draft-tree-over-sliding-window-pages",
    raises="AssertionError",
    late=True,
    since="0.5.6",
    sglang="layers/attention/flashattention_backend.py:_init_sliding_window_attn_spec_metadata",
    bad="model=gpt-oss-120b -- --tp-size 2 --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8 --attention-backend fa3 --page-size 64",
    good="model=gpt-oss-120b -- --tp-size 2 --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8 --attention-backend fa3 --page-size 1",
)
def draft_tree_over_sliding_window_pages(c: Config) -> Refusal | None:
    """FlashAttention 3 cannot verify a draft tree over pages of several tokens where layers have a sliding window.

    gpt-oss and Gemma have such layers. Draft a chain (topk 1), or use pages of one token.
    """
    if not drafts_trees(c):
        return None
    if (c.page_size or 1) <= 1 or c.model.architecture not in WINDOWED:
        return None
    decode = backends_of(c)[1]
    verifies = backends_of(c)[0] if c.speculative_attention_mode == "prefill" else decode
    if verifies != "fa3":
        return None
    at = c.first_given("page_size", "speculative_eagle_topk")
    return Refusal(
        at=at,
        related_fields=("speculative_eagle_topk", "page_size", "attention_backend"),
        message=f"{c.shown('page_size')} with {c.shown('speculative_eagle_topk')} is refused on fa3 when drafts are verified: it cannot "
        f"page a tree through the sliding window of {c.model.architecture}.",
        fixes=(
            setting(page_size=1),
            setting(speculative_eagle_topk=1, speculative_num_draft_tokens=(c.speculative_num_steps or 1) + 1),
            setting(attention_backend="triton"),
        ),
    )


@attention_backends.refuses(
    "SPC973",
    "shared-context-on-triton-with-window",
    raises="NotImplementedError",
    late=True,
    since="0.5.15",
    sglang="layers/attention/triton_backend.py:_forward_extend_dcp",
    bad="model=gemma-2-9b -- --tp-size 8 --dcp-size 2 --attention-backend triton",
    good="model=gemma-2-9b -- --tp-size 8 --attention-backend triton",
)
def shared_context_on_triton_with_window(c: Config) -> Refusal | None:
    """Triton's decode context parallelism supports neither sliding windows nor attention sinks nor trees of drafts.

    The launch starts and dies on the first prompt. Remove `--dcp-size` for gpt-oss, Gemma and their like, and where drafts are verified as
    a tree.
    """
    if (c.dcp_size or 1) <= 1:
        return None
    prefill, decode = backends_of(c)
    verifies = prefill if c.speculative_attention_mode == "prefill" else decode
    if prefill == "triton" and c.model.architecture in WINDOWED:
        why, other = f"for {c.model.architecture}: the first prompt stops on its sliding window", "model_path"
    elif verifies == "triton" and drafts_trees(c):
        why, other = f"with {c.shown('speculative_eagle_topk')}: verifying a tree stops", "speculative_eagle_topk"
    else:
        return None
    return value_refused(c, "dcp_size", f"does not work on triton {why}. Remove it.", "attention_backend", other)


@attention_backends.refuses(
    "SPC974",
    "vision-backend-off-its-hardware",
    raises="ValueError",
    late=True,
    hardware_only=True,
    sglang="layers/attention/vision.py:_determine_attention_backend",
    bad=(
        "gpu=b200 model=none -- --model-path Qwen/Qwen2.5-VL-7B-Instruct --mm-attention-backend fa3",
        "gpu=h100 model=none -- --model-path Qwen/Qwen2.5-VL-7B-Instruct --mm-attention-backend aiter_attn",
    ),
    good="gpu=h100 model=none -- --model-path Qwen/Qwen2.5-VL-7B-Instruct --mm-attention-backend fa3",
)
def vision_backend_off_its_hardware(c: Config) -> Refusal | None:
    """This attention backend for images does not run on this GPU.

    `--mm-attention-backend fa3` is refused on Blackwell, `aiter_attn` is AMD's, `fa4` and `flashinfer_cudnn` NVIDIA's. Left out, SGLang
    chooses one that fits.
    """
    backend = c.mm_attention_backend
    if not c.given("mm_attention_backend") or c.language_only or not c.model.is_multimodal(c.enable_multimodal):
        return None
    facts = class_facts(c.model.architecture, c.release)
    if facts is None or not facts.vision:
        return None
    fits = {
        "fa3": c.gpu.is_cuda and not c.gpu.blackwell,
        "fa4": c.gpu.is_cuda,
        "flashinfer_cudnn": c.gpu.is_cuda,
        "aiter_attn": c.gpu.is_hip,
        "ascend_attn": c.gpu.platform == "npu",
    }
    if fits.get(backend, True):
        return None
    return Refusal(
        at="mm_attention_backend",
        message=f"{c.shown('mm_attention_backend')} does not run on {c.gpu.title}, and SGLang stops when it builds the vision layers. "
        "Remove it.",
    )


OF_ONE_MODEL: dict[str, tuple[str, Callable[[ModelFacts], bool]]] = {
    "dsv4": ("DeepSeek V4", lambda model: model.is_deepseek_v4),
    "minicpm_flashattn": ("MiniCPM's sparse attention", lambda model: model.hf("sparse_config") is not None),
    "minicpm_flashinfer": ("MiniCPM's sparse attention", lambda model: model.hf("sparse_config") is not None),
}
"""Backends for one family of models: the family's name, and whether a model belongs to it."""


@attention_backends.refuses(
    "SPC995",
    "backend-of-one-model-family",
    raises="ValueError",
    late=True,
    since="0.5.12",
    sglang="layers/attention/minicpm/backend.py:__init__",
    bad=("--attention-backend minicpm_flashattn", "--attention-backend dsv4"),
    good="--attention-backend fa3",
)
def backend_of_one_model_family(c: Config) -> Refusal | None:
    """This attention backend belongs to one family of models.

    `dsv4` reads the caches of DeepSeek V4, `minicpm_flashattn` and `minicpm_flashinfer` the sparse attention of MiniCPM. SGLang gives such
    models their backend by itself.
    """
    found = runs(c, tuple(OF_ONE_MODEL))
    if found is None:
        return None
    field, name = found
    family, fits = OF_ONE_MODEL[name]
    if fits(c.model):
        return None
    return Refusal(
        at=field,
        related_fields=("model_path",),
        message=f"{c.shown(field)} is refused for {c.model.architecture} once the weights are loaded: it is for {family}.",
        fixes=other_backends(c, field, c.model),
    )


@attention_backends.refuses(
    "SPC1052",
    "pages-of-sparse-minicpm",
    raises="ValueError",
    late=True,
    since="0.5.19",
    sglang="layers/attention/minicpm/cache.py:reset_allocator",
    bad="--attention-backend minicpm_flashattn --page-size 64 --json-model-override-args "
    """'{"sparse_config": {"kernel_size": 32, "kernel_stride": 16}}'""",
    good="--attention-backend minicpm_flashattn --json-model-override-args "
    """'{"sparse_config": {"kernel_size": 32, "kernel_stride": 16}}'""",
)
def pages_of_sparse_minicpm(c: Config) -> Refusal | None:
    """MiniCPM's sparse attention has pages of one token.

    Its index of compressed keys is kept by token. Leave `--page-size` out.
    """
    found = runs(c, ("minicpm_flashattn", "minicpm_flashinfer"))
    if found is None or c.page_size in (None, 1) or c.model.hf("sparse_config") is None:
        return None
    return value_refused(
        c,
        "page_size",
        f"is refused with {c.shown(found[0])} when the attention backend is built: its pages have one token.",
        found[0],
        "model_path",
        fixes=(dropping("page_size"), setting(page_size=1)),
    )


WITH_ENCODERS = frozenset({
    "BertForSequenceClassification", "BertModel", "Contriever", "EmbeddingGemma2Model", "Lfm2BidirectionalModel",
    "MllamaForConditionalGeneration", "WhisperForConditionalGeneration", "XLMRobertaForSequenceClassification", "XLMRobertaModel",
})  # fmt: skip
"""Classes with layers in which tokens see those after them, or those of another text (AttentionType.ENCODER_ONLY, is_cross_attention)."""


@attention_backends.refuses(
    "SPC1053",
    "flex-attention-of-encoder",
    raises="NotImplementedError",
    late=True,
    sglang="layers/attention/torch_flex_backend.py:forward_extend",
    bad="model=bert -- --attention-backend flex_attention",
    good="model=bert -- --attention-backend triton",
)
def flex_attention_of_encoder(c: Config) -> Refusal | None:
    """`flex_attention` computes causal attention only.

    Encoders look both ways, and layers of cross attention look at another text. Use `triton` or `torch_native`.
    """
    found = runs(c, "flex_attention")
    if found is None or c.model.architecture not in WITH_ENCODERS:
        return None
    return value_refused(
        c,
        found[0],
        f"computes causal attention only, and {c.model.architecture} has an encoder, so SGLang stops in its first forward pass.",
        "model_path",
        fixes=other_backends(c, found[0], c.model),
    )


@attention_backends.refuses(
    "SPC1050",
    "fp8-cache-in-shared-context-on-flashmla",
    raises="AssertionError",
    late=True,
    since="0.5.15",
    sglang="layers/attention/flashmla_backend.py:forward_decode",
    bad="model=deepseek-v3 -- --tp-size 16 --nnodes 2 --dcp-size 2 --attention-backend flashmla --kv-cache-dtype fp8_e4m3",
    good="model=deepseek-v3 -- --tp-size 16 --nnodes 2 --dcp-size 2 --attention-backend flashmla",
)
def fp8_cache_in_shared_context_on_flashmla(c: Config) -> Refusal | None:
    """FlashMLA does not decode from an FP8 cache that ranks share.

    With `--dcp-size` above 1 every rank keeps a part of the context, in bfloat16 under this backend.
    """
    if (c.dcp_size or 1) <= 1 or backends_of(c)[1] != "flashmla" or not str(c.kv_cache_dtype).startswith("fp8"):
        return None
    return value_refused(
        c,
        "kv_cache_dtype",
        f"is refused with {c.shown('dcp_size')} by FlashMLA's decode, and SGLang stops in its first forward pass.",
        "dcp_size",
        backend_field(c, "decode"),
        fixes=(dropping("kv_cache_dtype"), dropping("dcp_size")),
    )


SHORT_CONVOLUTIONS = ("Lfm2ForCausalLM", "Lfm2MoeForCausalLM", "Lfm2VlForConditionalGeneration", "ZayaForCausalLM")


@attention_backends.refuses(
    "SPC691",
    "short-convolutions-on-npu",
    raises="NotImplementedError",
    late=True,
    since="0.5.15",
    sglang="attention_registry.py:attn_backend_wrapper",
    bad="gpu=npu model=lfm2 -- --tp-size 4 --device npu --disable-radix-cache",
    good="gpu=h100 model=lfm2 -- --tp-size 4",
)
def short_convolutions_on_npu(c: Config) -> Refusal | None:
    """Models with short convolutions (LFM2, ZAYA1) do not run on Ascend NPUs.

    SGLang keeps the state of such layers beside the attention backend, which has no part for it on Ascend.
    """
    if c.gpu.platform != "npu" or c.model.architecture not in SHORT_CONVOLUTIONS:
        return None
    why = f"has layers of short convolutions, which SGLang does not have for {c.gpu.title}."
    return value_refused(c, "model_path", why, fixes=())


@attention_backends.refuses(
    "SPC692",
    "trtllm-mla-prefill-on-sm120",
    raises="RuntimeError",
    late=True,
    hardware_only=True,
    since="0.5.6",
    sglang="layers/attention/trtllm_mla_backend.py:forward_extend",
    bad="gpu=rtxpro6000 model=deepseek-v3 -- --tp-size 8 --attention-backend trtllm_mla",
    good="gpu=rtxpro6000 model=deepseek-v3 -- --tp-size 8 --attention-backend flashinfer",
)
def trtllm_mla_prefill_on_sm120(c: Config) -> Refusal | None:
    """TensorRT-LLM's prefill of latent attention exists for SM100 only.

    SGLang accepts `trtllm_mla` on SM120 too, where its decoding has kernels; the first prompt fails with the weights loaded. Prefill with
    `flashinfer` or `triton`.
    """
    if not c.gpu.sm120 or backends_of(c)[0] != "trtllm_mla" or not c.model.uses_mla:
        return None
    return value_refused(
        c,
        backend_field(c, "prefill"),
        f"has no prefill kernels for {c.gpu.title}, and the first prompt fails with the weights loaded. Prefill with `flashinfer`.",
        "model_path",
        fixes=(
            setting(prefill_attention_backend="flashinfer"),
            setting(attention_backend="flashinfer"),
            setting(attention_backend="triton"),
        ),
    )


@attention_backends.refuses(
    "SPC693",
    "nvfp4-cache-prefill-off-sm100",
    raises="ValueError",
    late=True,
    hardware_only=True,
    since="0.5.21",
    sglang="layers/attention/trtllm_mha_backend.py:__init__",
)
def nvfp4_cache_prefill_off_sm100(c: Config) -> Refusal | None:
    """TensorRT-LLM prefills from an NVFP4 cache on SM100 only.

    On Hopper and SM120 it decodes from one; prefill with `flashinfer`.
    """
    if c.kv_cache_dtype != "nvfp4" or not (c.gpu.sm90 or c.gpu.sm120) or backends_of(c)[0] != "trtllm_mha":
        return None
    return value_refused(
        c,
        backend_field(c, "prefill"),
        f"does not prefill from an NVFP4 cache on {c.gpu.title}, and SGLang stops when it builds the backend. Prefill with `flashinfer`.",
        "kv_cache_dtype",
        fixes=(setting(prefill_attention_backend="flashinfer"), dropping("kv_cache_dtype")),
    )


def _asks_for_graphs(c: Config) -> bool:
    """Whether somebody asks for decode graphs, which are off on Intel GPUs by default."""
    return c.typed("cuda_graph_backend_decode") == "full" and not c.typed("disable_cuda_graph")


XPU = (
    Barred(
        "model_path",
        lambda c: c.model.is_encoder_decoder and _asks_for_graphs(c),
        "a model with an encoder is not captured in graphs",
        "",
        lambda _: (setting(disable_cuda_graph=True),),
    ),
    Barred(
        "dcp_size",
        lambda c: c.dcp_size > 1 and c.model.architecture == "IQuestLoopCoderForCausalLM",
        "layers of a shared context compute their own keys, which this model's later rounds do not",
    ),
    Barred("dcp_size", lambda c: c.dcp_size > 1 and c.model.is_hybrid_swa(), "a shared context has no sliding windows"),
    Barred(
        "dcp_size",
        lambda c: c.dcp_size > 1 and c.kv_cache_dtype not in ("auto", "bf16", "bfloat16"),
        "a shared context is not quantized",
    ),
    Barred(
        "dcp_size",
        lambda c: c.dcp_size > 1 and _asks_for_graphs(c),
        "a shared context is not captured in graphs",
        "",
        lambda _: (setting(disable_cuda_graph=True), dropping("dcp_size")),
    ),
    Barred(
        "page_size",
        lambda c: (
            (c.page_size or 1) > 1
            and c.speculative_algorithm is not None
            and (c.speculative_eagle_topk or 1) > 1
            and c.model.is_hybrid_swa()
        ),
        "trees of drafts over a sliding window have pages of one token",
        "",
        lambda _: (setting(page_size=1), setting(speculative_eagle_topk=1)),
    ),
)


@attention_backends.refuses(
    "SPC1024",
    "option-of-intel-attention",
    raises="ValueError",
    late=True,
    since="0.5.23",
    sglang="layers/attention/xpu_backend.py:_assert_dcp_supported",
    bad="gpu=xpu -- --tp-size 16 --nnodes 2 --dcp-size 2 --attention-backend intel_xpu --kv-cache-dtype fp8_e4m3",
    good="gpu=xpu -- --tp-size 16 --nnodes 2 --dcp-size 2 --attention-backend intel_xpu",
)
def option_of_intel_attention(c: Config) -> Refusal | None:
    """Intel's attention backend shares a context among ranks in the plain case only.

    `--dcp-size` above 1 needs full attention, an unquantized cache and no graphs there; a tree of drafts needs pages of one token.
    """
    found = runs(c, "intel_xpu")
    if found is None:
        return None
    return first_barred(c, XPU, f"with {c.shown(found[0])} when the attention backend is built", found[0], "model_path")
