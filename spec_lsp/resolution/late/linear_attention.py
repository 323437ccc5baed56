"""What linear-attention backends refuse when they are built.

Follows layers/attention/hybrid_linear_attn_backend.py, layers/attention/linear/*_backend.py and their kernels (0.5.23).

Modelled: Lightning with a tree; kernels that gated delta nets (GDN) and Kimi delta attention (KDA) do not have for decoding, prefill
and verification, or not on this hardware; FlashInfer's prefill with deterministic inference; multi-item scoring; Mamba-2 heads and
groups that the ranks do not divide, and its track interval.
Left out: kernels that need a package nobody can see (FlashKDA, Helion), FlashInfer's checkpoint interval, shapes of the state pool.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.resolution import cuda_graph
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, setting
from spec_lsp.resolution.late.refused import Barred, first_barred, value_refused
from spec_lsp.resolution.linear_attention import decode_backend, decode_field
from spec_lsp.resolution.model.config import served_quantization
from spec_lsp.resolution.model.hybrid import extra_buffer, old_extra_buffer, strategy_field
from spec_lsp.resolution.ranks import attention_tp_size

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
        at=c.first_given("speculative_eagle_topk", "speculative_algorithm"),
        related_fields=("linear_attn_backend",) if c.given("linear_attn_backend") else ("model_path",),
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
            related_fields=("model_path",),
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
    """Gated delta net layers do not run on this kernel.

    Qwen3-Next and Qwen3.5 run on triton, cutedsl or flashinfer for decoding and prefill; flashkda, helion, nvidia_kda and ptx_kda are for
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
    """Kimi delta attention does not run on this kernel in this phase.

    flashkda, nvidia_kda and ptx_kda only prefill; nv_cutedsl only verifies drafts. Decoding runs on triton, helion, cutedsl or flashinfer.
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
        at=c.first_given("speculative_eagle_topk", field),
        related_fields=(field, "model_path"),
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
        at=c.first_given("speculative_eagle_topk", field),
        related_fields=(field, "model_path"),
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
    hardware_only=True,
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
                related_fields=("model_path",),
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
        related_fields=("enable_deterministic_inference",),
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
        related_fields=("enable_mis",),
        message=f"{c.shown(field)} is refused with `--enable-mis` for {c.model.architecture} once the weights are loaded: scoring "
        "prefills with triton only.",
        fixes=(Change(set={"linear_attn_prefill_backend": "triton"}), dropping("enable_mis")),
    )


@linear_attention_backends.refuses(
    "SPC694",
    "scoring-on-hybrid-model",
    raises="ValueError",
    late=True,
    since="0.5.20",
    sglang="hybrid_linear_attn_backend.py:validate_mis_support",
    bad="model=kimi-linear-48b -- --tp-size 2 --enable-mis --attention-backend flashinfer",
    good="model=qwen3-next-80b -- --tp-size 2 --enable-mis --attention-backend flashinfer --linear-attn-prefill-backend triton",
)
def scoring_on_hybrid_model(c: Config) -> Refusal | None:
    """Multi-item scoring of hybrid models supports gated delta nets only.

    The items of a request start from the state after the query, which Mamba-2, Kimi's and lightning attention do not hand over. Remove
    `--enable-mis` for such models.
    """
    if not c.enable_mis or not (c.model.is_mamba2 or c.model.is_kda or c.model.is_lightning):
        return None
    if c.model.model_type.startswith("inkling"):
        return None
    return value_refused(
        c,
        "enable_mis",
        f"is refused for {c.model.architecture} once the weights are loaded: its recurrent layers do not score items. Remove it.",
        "model_path",
    )


FLASHINFER_KDA = (
    Barred(
        "enable_two_batch_overlap",
        lambda c: bool(c.enable_two_batch_overlap),
        "FlashInfer prefills one batch at a time",
    ),
    Barred(
        "cuda_graph_backend_prefill",
        lambda c: cuda_graph.backend_of(c, "prefill") == "full",
        "FlashInfer's prefill cannot be captured whole",
        "",
        lambda _: (setting(cuda_graph_backend_prefill="breakable"), dropping("cuda_graph_backend_prefill")),
    ),
)


@linear_attention_backends.refuses(
    "SPC1010",
    "flashinfer-kda-prefill-conflict",
    raises="ValueError",
    late=True,
    since="0.5.23",
    sglang="kda_backend.py:_validate_flashinfer_kda_prefill",
    bad="gpu=b200 model=kimi-linear-48b -- --tp-size 2 --linear-attn-prefill-backend flashinfer --cuda-graph-backend-prefill full",
    good="gpu=b200 model=kimi-linear-48b -- --tp-size 2 --linear-attn-prefill-backend flashinfer",
)
def flashinfer_kda_prefill_conflict(c: Config) -> Refusal | None:
    """FlashInfer prefills Kimi delta attention eagerly, one batch at a time.

    Use breakable prefill graphs, or prefill with triton (`--linear-attn-prefill-backend triton`).
    """
    if not c.model.is_kda or backend_for(c, "prefill") != "flashinfer":
        return None
    field = field_for(c, "prefill")
    return first_barred(c, FLASHINFER_KDA, f"with {c.shown(field)} once the weights are loaded", field)


def _bounded_gate(c: Config) -> bool:
    """Whether the model's gates are clamped from below, which only some kernels do."""
    linear = c.model.text_hf("linear_attn_config")
    bound = linear.get("gate_lower_bound") if isinstance(linear, Mapping) else c.model.text_hf("kda_lower_bound")
    return bound is not None


@linear_attention_backends.refuses(
    "SPC1026",
    "bounded-gates-on-other-kernel",
    raises="NotImplementedError",
    late=True,
    since="0.5.18",
    sglang="kda_backend.py:decode",
    earlier=(Earlier("0.5.20", "kda_cutedsl.py:decode"),),
    bad=(
        "gpu=b200 model=kimi-linear-48b -- --tp-size 2 --linear-attn-decode-backend cutedsl --json-model-override-args "
        """'{"linear_attn_config": {"kda_layers": [1, 2, 3], "gate_lower_bound": -5.0}}'""",
        "gpu=b200 model=kimi-linear-48b -- --tp-size 2 --linear-attn-verify-backend flashinfer --speculative-algorithm NGRAM "
        "--mamba-ssm-dtype bfloat16 --speculative-ngram-max-bfs-breadth 1 --json-model-override-args "
        """'{"linear_attn_config": {"kda_layers": [1, 2, 3], "gate_lower_bound": -5.0}}'""",
    ),
    good="gpu=b200 model=kimi-linear-48b -- --tp-size 2 --linear-attn-decode-backend cutedsl",
)
def bounded_gates_on_other_kernel(c: Config) -> Refusal | None:
    """Only Triton decodes Kimi delta attention whose gates have a lower bound, and verifies its drafts.

    Kimi K3 and Ling 3 are such models. Leave `--linear-attn-decode-backend` and `--linear-attn-verify-backend` out.
    """
    if not c.model.is_kda or not _bounded_gate(c):
        return None
    decoding = backend_for(c, "decode")
    if decoding == "triton" or (decoding != "cutedsl" and c.before("0.5.21")):
        return _bounded_gates_verified(c)
    field = field_for(c, "decode")
    return Refusal(
        at=field,
        related_fields=("model_path",),
        message=f"{c.shown(field)} does not decode this model's gates, which have a lower bound, and SGLang stops in its first forward "
        "pass. Decode with triton.",
        fixes=(dropping(field), setting(linear_attn_decode_backend="triton")),
    )


def _bounded_gates_verified(c: Config) -> Refusal | None:
    """Drafts that FlashInfer's kernel should verify."""
    if c.speculative_algorithm is None or backend_for(c, "verify") != "flashinfer" or c.before("0.5.20"):
        return None
    return value_refused(
        c,
        field_for(c, "verify"),
        "does not verify drafts of a model whose gates have a lower bound, and SGLang stops in its first forward pass. Verify with triton.",
        "model_path",
        fixes=(dropping("linear_attn_verify_backend"), setting(linear_attn_verify_backend="triton")),
    )


@linear_attention_backends.refuses(
    "SPC1051",
    "states-that-cutedsl-does-not-give-out",
    raises="NotImplementedError",
    late=True,
    since="0.5.16",
    sglang="kda_cutedsl.py:extend",
    bad="gpu=b200 model=kimi-linear-48b -- --tp-size 2 --linear-attn-prefill-backend cutedsl --mamba-radix-cache-strategy extra_buffer",
    good=(
        "gpu=b200 model=kimi-linear-48b -- --tp-size 2 --linear-attn-prefill-backend cutedsl --disable-radix-cache",
        "gpu=h100 model=kimi-linear-48b -- --tp-size 2 --linear-attn-prefill-backend cutedsl",
    ),
)
def states_that_cutedsl_does_not_give_out(c: Config) -> Refusal | None:
    """CuTe DSL's prefill of Kimi delta attention gives no states out for the radix cache.

    `--mamba-radix-cache-strategy extra_buffer` keeps the state after every so many tokens of a prompt. Prefill with triton, or do
    without the cache. On GPUs other than SM100 SGLang prefills with triton by itself.
    """
    if not c.model.is_kda or backend_for(c, "prefill") != "cutedsl" or c.disable_radix_cache or _bounded_gate(c):
        return None
    if not str(c.mamba_radix_cache_strategy).startswith("extra_buffer"):
        return None
    if not c.gpu.sm100:  # Triton prefills there, whatever is named
        return None
    return value_refused(
        c,
        field_for(c, "prefill"),
        f"gives no states out, which {c.shown('mamba_radix_cache_strategy')} keeps for the radix cache, so SGLang stops at the first "
        "prompt that is long enough.",
        "mamba_radix_cache_strategy",
        "model_path",
        fixes=(setting(linear_attn_prefill_backend="triton"), setting(disable_radix_cache=True)),
    )


# --- Mamba-2 ----------------------------------------------------------------------------------------------------------

NEMOTRON = ("nemotron_h", "nemotron_h_puzzle")


def _mamba_shape(c: Config) -> tuple[int, int] | None:
    """The heads and groups of a Mamba-2 model's states, from its config.json; None for other models."""
    model = c.model
    if not model.is_mamba2:
        return None
    if model.model_type in NEMOTRON:
        heads, groups = model.text_hf("mamba_num_heads"), model.text_hf("mamba_n_groups") or model.text_hf("n_groups")
    elif model.model_type in ("falcon_h1", "granitemoehybrid"):
        heads, groups = model.text_hf("mamba_n_heads"), model.text_hf("mamba_n_groups")
    else:
        return None
    return (heads, groups) if isinstance(heads, int) and isinstance(groups, int) else None


@linear_attention_backends.refuses(
    "SPC981",
    "mamba-heads-not-divisible-by-ranks",
    raises="AssertionError",
    late=True,
    sglang="layers/attention/mamba/mamba.py:__init__",
    bad="model=nemotron-h-8b -- --tp-size 16 --nnodes 2",
    good="model=nemotron-h-8b -- --tp-size 8",
)
def mamba_heads_not_divisible_by_ranks(c: Config) -> Refusal | None:
    """The GPUs cannot share the Mamba heads or their groups evenly.

    Every rank computes as many Mamba heads as the others, and as many of the groups that share their inputs, unless there is one group
    only: the number of ranks has to divide both. NemotronH has eight groups, so at most eight ranks.
    """
    shape, ranks = _mamba_shape(c), attention_tp_size(c)
    if shape is None or ranks != c.tp_size or ranks <= 1:
        return None
    heads, groups = shape
    quantized = served_quantization(c).method is not None

    def fits(n: int) -> bool:
        return heads % n == 0 and (groups % n == 0 or (groups == 1 and not (quantized and n > 1)))

    if fits(ranks):
        return None
    best = next(n for n in range(ranks, 0, -1) if fits(n))
    return Refusal(
        at="tp_size",
        related_fields=("model_path",),
        message=f"{c.shown('tp_size')} cannot share this model's {heads} Mamba heads in {groups} "
        f"{'groups' if groups > 1 else 'group'} evenly, so SGLang stops when it builds the model. {best} "
        f"{'ranks divide' if best > 1 else 'rank divides'} them.",
        fixes=(setting(tp_size=best),),
    )


@linear_attention_backends.refuses(
    "SPC982",
    "track-interval-below-mamba-chunk",
    raises="AssertionError",
    late=True,
    since="0.5.13",
    sglang="layers/attention/hybrid_linear_attn_backend.py:__init__",
    bad="model=nemotron-h-8b -- --mamba-radix-cache-strategy extra_buffer --mamba-track-interval 64",
    good="model=nemotron-h-8b -- --mamba-radix-cache-strategy extra_buffer --mamba-track-interval 256",
)
def track_interval_below_mamba_chunk(c: Config) -> Refusal | None:
    """The states of a Mamba-2 model are kept more often than it computes them.

    With the `extra_buffer` strategy SGLang keeps a state every `--mamba-track-interval` tokens. The kernels hand one out every
    `chunk_size` tokens (config.json; 128 for NemotronH, 256 for Granite and Falcon).
    """
    if _mamba_shape(c) is None or not (extra_buffer(c) if c.since("0.5.14") else old_extra_buffer(c)):
        return None
    chunk, interval = c.model.mamba_chunk_size, c.mamba_track_interval
    if interval is None or interval >= chunk:
        return None
    return Refusal(
        at=c.first_given("mamba_track_interval", strategy_field(c)),
        related_fields=(strategy_field(c), "model_path"),
        message=f"{c.shown('mamba_track_interval')} is less than the {chunk} tokens of this model's Mamba chunks, so SGLang stops when it "
        "builds the attention backend.",
        fixes=(setting(mamba_track_interval=chunk), dropping("mamba_track_interval")),
    )


@linear_attention_backends.refuses(
    "SPC1033", "lazy-states-without-overlap", raises="AssertionError", late=True, since="0.5.15",
    sglang="mem_cache/kv_cache_configurator.py:_calculate_mamba_ratio",
    earlier=(Earlier("0.5.16", "model_runner_kv_cache_mixin.py:_calculate_mamba_ratio"),),
    bad="model=qwen3-next-80b -- --tp-size 4 --mamba-radix-cache-strategy extra_buffer_lazy --disable-overlap-schedule",
    good="model=qwen3-next-80b -- --tp-size 4 --mamba-radix-cache-strategy extra_buffer --disable-overlap-schedule",
)  # fmt: skip
def lazy_states_without_overlap(c: Config) -> Refusal | None:
    """Lazy states need the overlap scheduler.

    With `extra_buffer_lazy` a state is kept while the next batch is scheduled. Take `extra_buffer`, or keep the overlap scheduler.
    """
    if c.mamba_radix_cache_strategy != "extra_buffer_lazy" or not extra_buffer(c) or not c.disable_overlap_schedule:
        return None
    if not c.model.is_mambaish:
        return None
    return value_refused(
        c,
        "mamba_radix_cache_strategy",
        "needs the overlap scheduler, and SGLang stops when it sizes the pool of states.",
        "disable_overlap_schedule",
        fixes=(setting(mamba_radix_cache_strategy="extra_buffer"), dropping("disable_overlap_schedule")),
    )
