"""What linear-attention backends refuse when they are built.

Follows layers/attention/hybrid_linear_attn_backend.py, layers/attention/linear/*_backend.py and their kernels (0.5.23).

Modelled: Lightning with a tree; kernels that gated delta nets (GDN) and Kimi delta attention (KDA) do not have for decoding, prefill
and verification, or not on this hardware; FlashInfer's prefill with deterministic inference; multi-item scoring.
Left out: kernels that need a package nobody can see (FlashKDA, Helion), FlashInfer's checkpoint interval, shapes of the state pool.
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.linear_attention import decode_backend, decode_field

linear_attention_backends = Handler("hybrid_linear_attn_backend.py:__init__")

NAMES = {
    "decode": "linear_attn_decode_backend",
    "prefill": "linear_attn_prefill_backend",
    "verify": "linear_attn_verify_backend",
}

GDN: dict[str, tuple[str, ...]] = {
    "decode": ("triton", "cutedsl", "flashinfer"),
    "prefill": ("triton", "cutedsl", "flashinfer"),
}
KDA: dict[str, tuple[str, ...]] = {
    "decode": ("triton", "helion", "cutedsl", "flashinfer"),
    "prefill": ("triton", "helion", "flashkda", "flashinfer", "cutedsl", "ptx_kda", "nvidia_kda"),
    "verify": ("triton", "helion", "nv_cutedsl", "flashinfer"),
}
SINCE = {"helion": "0.5.18", "ptx_kda": "0.5.18", "nvidia_kda": "0.5.18"}


def _draft_tree(c: Config) -> bool:
    return (c.speculative_eagle_topk or 0) > 1


def _is_lightning(c: Config) -> bool:
    if c.linear_attn_backend == "lightning":
        return True
    return c.model.is_lightning and (c.since("0.5.19") or c.model.model_type == "bailing_hybrid")


@linear_attention_backends.refuses(
    "SPC920",
    "tree-drafting-on-lightning-attention",
    raises="NotImplementedError",
    late=True,
    since="0.5.13",
    sglang="lightning_backend.py:__init__",
    bad="model=ring-2.5-1t -- --tp-size 8 --speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 4 "
    "--speculative-num-draft-tokens 8 --page-size 1",
    good="model=ring-2.5-1t -- --tp-size 8 --speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 4 --page-size 1",
)
def tree_drafting_on_lightning_attention(c: Config) -> Refusal | None:
    """Lightning attention verifies chains, not trees.

    Models with Lightning (seg_la) linear attention (Ring and Ling 2.5, and since 0.5.19 MiniCPM-SALA) keep a running state that
    advances token by token: it has no place for the branches of a draft tree, and would commit the state of another branch. The
    server refuses to build the backend when `--speculative-eagle-topk` is above 1, with the weights loaded.

    Draft a chain: topk 1, and one draft token more than steps.
    """
    if not _draft_tree(c) or not _is_lightning(c):
        return None
    steps = c.speculative_num_steps
    chain = {"speculative_num_draft_tokens": steps + 1} if steps is not None else {}
    return Refusal(
        at="speculative_eagle_topk" if c.given("speculative_eagle_topk") else "speculative_algorithm",
        with_=("linear_attn_backend",) if c.given("linear_attn_backend") else ("model_path",),
        message=f"{c.shown('speculative_eagle_topk')} is refused once the weights are loaded: Lightning attention verifies one "
        "chain of draft tokens, not a tree.",
        fixes=(setting(speculative_eagle_topk=1), setting(speculative_eagle_topk=1, **chain)),
    )


def backend_for(c: Config, phase: str) -> str:
    """The kernels of a phase as the backends resolve them ("prefill" without the defaults that depend on the pool)."""
    if phase == "decode":
        return decode_backend(c)
    if phase == "prefill":
        return str(c.linear_attn_prefill_backend or c.linear_attn_backend)
    verify = c.linear_attn_verify_backend
    return str(verify) if verify is not None else ("flashinfer" if decode_backend(c) == "flashinfer" else "triton")


def field_for(c: Config, phase: str) -> str:
    """The field that decides a phase's kernels."""
    return decode_field(c) if phase == "decode" else NAMES[phase] if getattr(c, NAMES[phase]) else "linear_attn_backend"


def _unsupported(c: Config, kind: str, kernels: dict[str, tuple[str, ...]]) -> Refusal | None:
    for phase, names in kernels.items():
        name = backend_for(c, phase)
        if name in names or (name == "intel_xpu" and c.gpu.platform == "xpu"):
            continue
        field = field_for(c, phase)
        allowed = [n for n in names if n not in SINCE or c.since(SINCE[n])]
        return Refusal(
            at=field,
            with_=("model_path",),
            message=f"{c.shown(field)} is refused for {c.model.architecture} once the weights are loaded: {kind} layers have no such "
            f"kernel for {phase} ({', '.join(allowed)}).",
            fixes=(dropping(field), setting(**{NAMES[phase]: "triton"})),
        )
    return None


@linear_attention_backends.refuses(
    "SPC921",
    "gdn-kernel",
    raises="ValueError",
    late=True,
    since="0.5.13",
    sglang="gdn_backend.py:__init__",
    bad="model=qwen3-next-80b -- --tp-size 2 --linear-attn-backend helion",
    good="model=qwen3-next-80b -- --tp-size 2 --linear-attn-backend triton",
)
def gdn_kernel(c: Config) -> Refusal | None:
    """Gated delta net layers have no such kernel.

    Qwen3-Next and Qwen3.5 take triton, cutedsl or flashinfer for decoding and prefill; flashkda, helion, nvidia_kda and ptx_kda are for
    Kimi delta attention.
    """
    return _unsupported(c, "gated delta net", GDN) if c.model.is_gdn else None


@linear_attention_backends.refuses(
    "SPC922",
    "kda-kernel",
    raises="ValueError",
    late=True,
    since="0.5.17",
    sglang="kda_backend.py:__init__",
    bad="model=kimi-linear-48b -- --tp-size 2 --linear-attn-decode-backend nvidia_kda",
    good="model=kimi-linear-48b -- --tp-size 2 --linear-attn-prefill-backend nvidia_kda",
)
def kda_kernel(c: Config) -> Refusal | None:
    """Kimi delta attention has no such kernel for this phase.

    flashkda, nvidia_kda and ptx_kda only prefill; nv_cutedsl only verifies drafts. Decoding takes triton, helion, cutedsl or flashinfer.
    """
    return _unsupported(c, "Kimi delta attention", KDA) if c.model.is_kda else None


@linear_attention_backends.refuses(
    "SPC923",
    "tree-drafting-on-flashinfer-kda",
    raises="ValueError",
    late=True,
    since="0.5.16",
    sglang="kda_backend.py:__init__",
    bad="gpu=b200 model=kimi-linear-48b -- --tp-size 2 --mamba-ssm-dtype bfloat16 --linear-attn-verify-backend flashinfer "
    "--speculative-algorithm EAGLE --speculative-draft-model-path {models}/eagle-draft --speculative-num-steps 3 "
    "--speculative-eagle-topk 4 --speculative-num-draft-tokens 8 --attention-backend triton",
    good="gpu=b200 model=kimi-linear-48b -- --tp-size 2 --linear-attn-verify-backend triton --speculative-algorithm EAGLE "
    "--speculative-draft-model-path {models}/eagle-draft --speculative-num-steps 3 --speculative-eagle-topk 4 "
    "--speculative-num-draft-tokens 8 --attention-backend triton",
)
def tree_drafting_on_flashinfer_kda(c: Config) -> Refusal | None:
    """FlashInfer verifies chains of Kimi delta attention, not trees.

    Verify with triton (`--linear-attn-verify-backend triton`), or draft a chain.
    """
    if not _draft_tree(c) or not c.model.is_kda or backend_for(c, "verify") != "flashinfer":
        return None
    field = field_for(c, "verify") if c.linear_attn_verify_backend else decode_field(c)
    return Refusal(
        at="speculative_eagle_topk" if c.given("speculative_eagle_topk") else field,
        with_=(field, "model_path"),
        message=f"{c.shown('speculative_eagle_topk')} is refused with {c.shown(field)} once the weights are loaded: FlashInfer "
        "verifies one chain of draft tokens here.",
        fixes=(setting(speculative_eagle_topk=1), setting(linear_attn_verify_backend="triton")),
    )


@linear_attention_backends.refuses(
    "SPC924",
    "tree-drafting-on-flashinfer-gdn",
    raises="RuntimeError",
    late=True,
    since="0.5.12",
    until="0.5.16",
    sglang="gdn_flashinfer.py:target_verify",
    bad="sglang=0.5.15 model=qwen3-next-80b -- --tp-size 2 --linear-attn-decode-backend flashinfer --speculative-algorithm NEXTN "
    "--speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
    good="sglang=0.5.15 model=qwen3-next-80b -- --tp-size 2 --speculative-algorithm NEXTN --speculative-num-steps 3 "
    "--speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
)
def tree_drafting_on_flashinfer_gdn(c: Config) -> Refusal | None:
    """In these releases FlashInfer verifies chains of gated delta nets, not trees.

    (Since 0.5.16 Triton verifies a tree whatever decodes.) Decode with triton, or draft a chain.
    """
    if not _draft_tree(c) or not c.model.is_gdn:
        return None
    phase = next((p for p in ("decode", "prefill") if backend_for(c, p) == "flashinfer"), None)
    if phase is None:
        return None
    field = field_for(c, phase)
    return Refusal(
        at="speculative_eagle_topk" if c.given("speculative_eagle_topk") else field,
        with_=(field, "model_path"),
        message=f"{c.shown('speculative_eagle_topk')} is refused with {c.shown(field)} at the first draft: in this release FlashInfer "
        "verifies one chain of draft tokens.",
        fixes=(setting(speculative_eagle_topk=1), dropping(field), setting(**{NAMES[phase]: "triton"})),
    )


@linear_attention_backends.refuses(
    "SPC925",
    "linear-attention-kernel-off-its-hardware",
    raises="ValueError",
    late=True,
    since="0.5.15",
    gate=True,
    sglang="gdn_backend.py:__init__",
    bad=(
        "gpu=mi300x model=qwen3-next-80b -- --tp-size 2 --linear-attn-backend cutedsl",
        "gpu=h100 model=kimi-linear-48b -- --tp-size 2 --linear-attn-prefill-backend flashinfer",
    ),
    good="gpu=h100 model=qwen3-next-80b -- --tp-size 2 --linear-attn-backend cutedsl",
)
def linear_attention_kernel_off_its_hardware(c: Config) -> Refusal | None:
    """This linear-attention kernel does not exist for this hardware.

    CuTe DSL and FlashInfer need NVIDIA GPUs; FlashInfer needs Hopper or newer for gated delta nets and SM100 or SM103 for Kimi delta
    attention; Intel's needs an Intel GPU. Triton runs everywhere.
    """
    if not (c.model.is_gdn or c.model.is_kda):
        return None
    for phase in ("decode", "prefill"):
        if backend_for(c, phase) in _missing(c, phase):
            field = field_for(c, phase)
            return Refusal(
                at=field,
                with_=("model_path",),
                message=f"{c.shown(field)} is refused for {c.model.architecture} on {c.gpu.title} once the weights are loaded: the "
                f"kernel does not exist there for {phase}.",
                fixes=(dropping(field), setting(**{NAMES[phase]: "triton"})),
            )
    return None


def _missing(c: Config, phase: str) -> tuple[str, ...]:
    """The kernels that this hardware does not have."""
    elsewhere = () if c.gpu.platform == "xpu" else ("intel_xpu",)
    if not c.gpu.is_cuda:
        return ("cutedsl", "flashinfer", "helion", "ptx_kda", "nvidia_kda", *elsewhere)
    oldest = 9 if c.model.is_gdn else 10
    if c.gpu.major < oldest or (c.model.is_kda and phase == "prefill" and c.gpu.major != 10):
        return ("flashinfer", *elsewhere)
    return elsewhere


@linear_attention_backends.refuses(
    "SPC926",
    "deterministic-flashinfer-gdn-prefill",
    raises="ValueError",
    late=True,
    since="0.5.19",
    sglang="gdn_backend.py:_validate_gdn_linear_attn_backends",
    bad="model=qwen3-next-80b -- --tp-size 2 --enable-deterministic-inference --linear-attn-prefill-backend flashinfer",
    good="model=qwen3-next-80b -- --tp-size 2 --enable-deterministic-inference --linear-attn-prefill-backend triton",
)
def deterministic_flashinfer_gdn_prefill(c: Config) -> Refusal | None:
    """FlashInfer's prefill of gated delta nets is not deterministic.

    Prefill with triton.
    """
    if not c.enable_deterministic_inference or not c.model.is_gdn or backend_for(c, "prefill") != "flashinfer":
        return None
    field = field_for(c, "prefill")
    return Refusal(
        at=field,
        with_=("enable_deterministic_inference",),
        message=f"{c.shown(field)} is refused with deterministic inference for {c.model.architecture} once the weights are loaded.",
        fixes=(setting(linear_attn_prefill_backend="triton"), dropping("enable_deterministic_inference")),
    )


@linear_attention_backends.refuses(
    "SPC927",
    "scoring-on-gdn-prefill",
    raises="ValueError",
    late=True,
    since="0.5.20",
    sglang="gdn_backend.py:validate_gdn_mis_backend",
    bad="model=qwen3-next-80b -- --tp-size 2 --enable-mis --attention-backend flashinfer --linear-attn-prefill-backend flashinfer",
    good="model=qwen3-next-80b -- --tp-size 2 --enable-mis --attention-backend flashinfer --linear-attn-prefill-backend triton",
)
def scoring_on_gdn_prefill(c: Config) -> Refusal | None:
    """Multi-item scoring of gated delta nets prefills with triton only.

    The items of a request start from the state after the query, which only Triton's kernel can hand over.
    """
    if not c.enable_mis or not c.model.is_gdn or backend_for(c, "prefill") == "triton":
        return None
    field = field_for(c, "prefill")
    return Refusal(
        at=field,
        with_=("enable_mis",),
        message=f"{c.shown(field)} is refused with `--enable-mis` for {c.model.architecture} once the weights are loaded: scoring "
        "prefills with triton only.",
        fixes=(Change(set={"linear_attn_prefill_backend": "triton"}), dropping("enable_mis")),
    )
