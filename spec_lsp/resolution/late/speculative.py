"""What speculative workers refuse when they build the draft.

Follows speculative/draft_utils.py (DraftBackendFactory), the workers of speculative/ and the draft backends of layers/attention
(0.5.23).

A draft runs on `--speculative-draft-attention-backend`, else on the target's backends. Modelled: backends without a draft
implementation, backends that do not fit the draft's attention or this hardware, trees on backends that only draft chains, targets that
cannot hand out hidden states, drafts of the wrong kind or with another vocabulary, several draft layers with a tree, the overlapping
worker of 0.5.4 to 0.5.6.
Left out: token maps and tokenizers (files), what a draft's weights hold, Domino and LiLiCorr heads, quantized heads of the target.
"""

from __future__ import annotations

from spec_lsp.facts.classes import class_facts, is_target
from spec_lsp.facts.model import ModelFacts
from spec_lsp.resolution.attention import backend_field, backends_of
from spec_lsp.resolution.engine import (
    Change,
    Config,
    Earlier,
    Handler,
    Refusal,
    as_far_as_known,
    dropping,
    dropping_env,
    setting,
)
from spec_lsp.resolution.late.attention import LATENT_ONLY, PLAIN_ONLY, fa3_runs
from spec_lsp.resolution.speculative.common import DRAFT_BACKENDS, DRAFT_SHAPE, is_eagle

CHAIN_ONLY = ("flashmla", "trtllm_mla", "cutedsl_mla", "tokenspeed_mla")
"""Backends whose multi-step draft is a chain; flashinfer's is too when the draft has MLA."""

EAGLE3_DRAFTS = ("LlamaForCausalLMEagle3", "Eagle3DeepseekV2ForCausalLM", "MindSporeForCausalLM")
"""Draft classes that an EAGLE3 worker can drive (they map draft tokens to the target's)."""

speculative_workers = Handler(
    "draft_utils.py:_create_backend", since="0.5.4", when=lambda c: c.speculative_algorithm is not None
)


def draft_model(c: Config) -> ModelFacts:
    """The draft as its worker sees it: the draft's checkpoint, or the target's draft layers."""
    return (c.draft or c.model).as_draft()


def packs_draft(c: Config) -> bool:
    """Whether the draft's layers lie in the target's pages: layers of the checkpoint itself, which predict (MTP)."""
    own = c.draft is None or c.speculative_draft_model_path == c.model_path
    return bool(c.speculative_algorithm == "EAGLE" and own and c.model.text_hf("num_nextn_predict_layers"))


def draft_backends(c: Config) -> tuple[tuple[str, str], ...]:
    """The (field, backend) pairs that an EAGLE draft builds, for several draft steps and for catching up with the target."""
    own = c.speculative_draft_attention_backend
    if own:
        return (("speculative_draft_attention_backend", own),)
    prefill, decode = backends_of(c)
    pairs = []
    if c.speculative_num_steps > 1:
        pairs.append((backend_field(c, "decode"), str(decode)))
    catch_up = ("decode", decode) if c.speculative_attention_mode == "decode" else ("prefill", prefill)
    pairs.append((backend_field(c, catch_up[0]), str(catch_up[1])))
    return tuple(dict.fromkeys(pairs))


def draft_runner_backends(c: Config) -> tuple[tuple[str, str], ...]:
    """The (field, backend) pairs of the draft model's own passes: one of its own, or the target's two."""
    own = c.speculative_draft_attention_backend
    if own:
        return (("speculative_draft_attention_backend", own),)
    return tuple(
        (backend_field(c, phase), str(name)) for phase, name in zip(("prefill", "decode"), backends_of(c), strict=True)
    )


@as_far_as_known
def other_draft_backends(c: Config) -> tuple[Change, ...]:
    """Backends that a draft of this kind can run on, on this hardware."""
    if draft_model(c).uses_mla:
        names = ("fa3",) if c.gpu.sm90 else ("trtllm_mla",) if c.gpu.sm100 else ()
    else:
        names = ("fa3",) if c.gpu.sm90 else ("trtllm_mha",) if c.gpu.sm100 else ()
        names = (*names, "flashinfer") if c.gpu.is_cuda else names
    return tuple(setting(speculative_draft_attention_backend=name) for name in (*names, "triton"))


def _at(c: Config, field: str) -> tuple[str, tuple[str, ...]]:
    """Where to point: the backend's field if it was typed, else the algorithm."""
    return (field, ("speculative_algorithm",)) if c.given(field) else ("speculative_algorithm", (field,))


@speculative_workers.refuses(
    "SPC930",
    "backend-without-draft",
    raises="ValueError",
    late=True,
    bad=(
        "--attention-backend torch_native --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        "gpu=b200 -- --speculative-draft-attention-backend wave --speculative-algorithm EAGLE3 --speculative-draft-model-path "
        "{models}/eagle3-draft --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    ),
    good="--attention-backend torch_native --speculative-draft-attention-backend triton --speculative-algorithm EAGLE3 "
    "--speculative-draft-model-path {models}/eagle3-draft --speculative-num-steps 3 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 4",
)
def backend_without_draft(c: Config) -> Refusal | None:
    """This attention backend cannot run a draft model.

    An EAGLE draft runs on the target's attention backend unless `--speculative-draft-attention-backend` names another one.
    `torch_native`, `wave`, `hpc_ops`, `flex_attention` and a few more compute the target but cannot draft: the server dies when it builds
    the draft, with the weights loaded.
    """
    if not is_eagle(c) or c.enable_multi_layer_eagle or _drafts_sparsely(c):
        return None
    able = [name for name, since in DRAFT_BACKENDS.items() if not since or c.since(since)]
    lacking = next(((field, name) for field, name in draft_backends(c) if name not in able), None)
    if lacking is None:
        return None
    field, name = lacking
    at, related_fields = _at(c, field)
    return Refusal(
        at=at,
        related_fields=related_fields,
        message=f"{c.shown(field)} is refused with {c.shown('speculative_algorithm')} once the weights are loaded: {name} has no draft "
        "implementation.",
        fixes=(*((dropping(field),) if c.given(field) else ()), *other_draft_backends(c)),
    )


def _drafts_sparsely(c: Config) -> bool:
    """Whether the draft builds backends of a special kind (Qwen4-Exp)."""
    return c.model.architecture.startswith("Qwen4Exp")


@speculative_workers.refuses(
    "SPC931",
    "latent-backend-for-plain-draft",
    raises="ValueError",
    late=True,
    sglang="attention_registry.py:create_trtllm_mla_backend",
    bad="gpu=b200 model=kimi-k2 -- --tp-size 8 --attention-backend trtllm_mla --speculative-algorithm EAGLE3 "
    "--speculative-draft-model-path {models}/eagle3-draft --speculative-num-steps 3 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 4",
    good="gpu=b200 model=kimi-k2 -- --tp-size 8 --attention-backend trtllm_mla --speculative-algorithm EAGLE3 "
    "--speculative-draft-model-path {models}/eagle3-draft --speculative-num-steps 3 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 4 --speculative-draft-attention-backend trtllm_mha",
)
def latent_backend_for_plain_draft(c: Config) -> Refusal | None:
    """The draft model does not use MLA, but would run on an MLA backend.

    EAGLE3 drafts of DeepSeek, Kimi K2 or GLM-5 are mostly small Llama-like models. Without `--speculative-draft-attention-backend` they
    inherit the target's backend, and `trtllm_mla` (SGLang's choice for many such targets on Blackwell), `cutedsl_mla` or `flashmla` cannot
    run them. Give the draft a backend of its own: trtllm_mha on Blackwell, fa3 on Hopper.
    """
    if not is_eagle(c):
        return None
    found = next(((f, n) for f, n in draft_runner_backends(c) if n in LATENT_ONLY), None)
    if found is None or draft_model(c).uses_mla:
        return None
    field, name = found
    at, related_fields = _at(c, field)
    return Refusal(
        at=at,
        related_fields=(*related_fields, "speculative_draft_model_path"),
        message=f"{c.shown('speculative_algorithm')} is refused once the weights are loaded: the draft does not use MLA and would "
        f"run on {name}, which computes nothing else.",
        fixes=other_draft_backends(c),
    )


@speculative_workers.refuses(
    "SPC932",
    "plain-backend-for-latent-draft",
    raises="ValueError",
    late=True,
    sglang="attention_registry.py:create_trtllm_mha_backend",
    bad="gpu=b200 model=deepseek-v3 -- --tp-size 8 --speculative-draft-attention-backend trtllm_mha --speculative-algorithm EAGLE "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    good="gpu=b200 model=deepseek-v3 -- --tp-size 8 --speculative-draft-attention-backend trtllm_mla --speculative-algorithm EAGLE "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def plain_backend_for_latent_draft(c: Config) -> Refusal | None:
    """The draft model uses MLA, but would run on a backend that does not compute it.

    The NEXTN layer of DeepSeek, GLM-5 or Kimi uses MLA as its target does.
    """
    if not is_eagle(c):
        return None
    found = next(((f, n) for f, n in draft_runner_backends(c) if n in PLAIN_ONLY), None)
    if found is None or not draft_model(c).uses_mla:
        return None
    field, name = found
    at, related_fields = _at(c, field)
    return Refusal(
        at=at,
        related_fields=related_fields,
        message=f"{c.shown(field)} is refused for this draft once the weights are loaded: it uses MLA, and {name} does not "
        "compute that.",
        fixes=(*((dropping(field),) if c.given(field) else ()), *other_draft_backends(c)),
    )


@speculative_workers.refuses(
    "SPC933",
    "fa3-draft-off-hopper",
    raises="AssertionError",
    late=True,
    sglang="attention_registry.py:create_flashattention_v3_backend",
    bad="gpu=b200 -- --speculative-draft-attention-backend fa3 --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    good="gpu=h100 -- --speculative-draft-attention-backend fa3 --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def fa3_draft_off_hopper(c: Config) -> Refusal | None:
    """The draft model would run on FlashAttention 3, which does not run it on this hardware.

    fa3 runs on Hopper, and on Ampere and Ada for models without MLA.
    """
    if c.speculative_draft_attention_backend != "fa3" or c.speculative_algorithm in ("NGRAM", "UNO"):
        return None
    if not c.gpu.is_cuda or c.gpu.major == 9 or fa3_runs(c, draft_model(c)):
        return None
    field = "speculative_draft_attention_backend"
    at, related_fields = _at(c, field)
    return Refusal(
        at=at,
        related_fields=related_fields,
        message=f"{c.shown(field)} is refused on {c.gpu.title} once the weights are loaded: FlashAttention 3 does not run this draft "
        "there.",
        fixes=(*((dropping(field),) if c.given(field) else ()), *other_draft_backends(c)),
    )


@speculative_workers.refuses(
    "SPC934",
    "tree-drafting-on-chain-backend",
    raises="ValueError",
    late=True,
    sglang="flashinfer_mla_backend.py:__init__",
    bad=(
        "model=deepseek-v3 gpu=a100 -- --tp-size 8 --attention-backend flashinfer --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
        "model=deepseek-v3 -- --tp-size 8 --speculative-draft-attention-backend flashmla --speculative-algorithm EAGLE "
        "--speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
    ),
    good="model=deepseek-v3 gpu=a100 -- --tp-size 8 --attention-backend flashinfer --speculative-algorithm EAGLE "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def tree_drafting_on_chain_backend(c: Config) -> Refusal | None:
    """With MLA, this backend drafts chains, not trees.

    FlashInfer (for a draft with MLA), FlashMLA, trtllm_mla and cutedsl_mla have no tree masks for several draft steps. Draft
    a chain (`--speculative-eagle-topk 1`), or give the draft triton, or fa3 on Hopper.
    """
    if (
        not is_eagle(c)
        or (c.speculative_eagle_topk or 0) <= 1
        or c.speculative_num_steps <= 1
        or c.enable_multi_layer_eagle
    ):
        return None
    field, name = draft_backends(c)[0]
    if name not in CHAIN_ONLY and (name != "flashinfer" or not draft_model(c).uses_mla):
        return None
    return Refusal(
        at=c.first_given("speculative_eagle_topk", "speculative_algorithm"),
        related_fields=(field,),
        message=f"{c.shown('speculative_eagle_topk')} is refused with {c.shown(field)} once the weights are loaded: {name} drafts one "
        "chain, not a tree.",
        fixes=(
            setting(speculative_eagle_topk=1),
            setting(speculative_draft_attention_backend="fa3" if c.gpu.sm90 else "triton"),
            setting(speculative_draft_attention_backend="triton"),
        ),
    )


@speculative_workers.refuses(
    "SPC935",
    "tree-drafting-on-aiter",
    raises="NotImplementedError",
    late=True,
    since="0.5.13",
    sglang="aiter_backend.py:_ensure_spec_v2_topk_supported",
    bad=(
        "gpu=mi300x -- --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft",
        "gpu=mi300x -- --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
        "--speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
    ),
    good="gpu=mi300x -- --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def tree_drafting_on_aiter(c: Config) -> Refusal | None:
    """aiter drafts chains, not trees.

    aiter is SGLang's choice on ROCm, and for Llama its choice of shape is a tree (topk 4): the two do not work together. Give the shape
    of a chain, or draft on triton.
    """
    if not is_eagle(c) or (c.speculative_eagle_topk or 0) <= 1 or c.enable_multi_layer_eagle:
        return None
    found = next(((f, n) for f, n in draft_backends(c) if n == "aiter"), None)
    if found is None:
        return None
    field = found[0]
    typed = c.given("speculative_eagle_topk")
    chain = setting(speculative_num_steps=3, speculative_eagle_topk=1, speculative_num_draft_tokens=4)
    return Refusal(
        at="speculative_eagle_topk" if typed else "speculative_algorithm",
        related_fields=(field,),
        message=f"{c.shown('speculative_eagle_topk')} is refused with {c.shown(field)} once the weights are loaded: aiter drafts one "
        "chain, not a tree.",
        fixes=(
            setting(speculative_eagle_topk=1) if typed else chain,
            setting(speculative_draft_attention_backend="triton"),
            setting(attention_backend="triton"),
        ),
    )


# --- targets that drafts can read -----------------------------------------------------------------------------------


def _lacks_hook(c: Config, kind: str) -> bool:
    """Whether SGLang serves this target but cannot extract the hidden states that a draft of this kind reads."""
    facts = class_facts(c.model.architecture, c.release)
    return facts is not None and is_target(c.model.architecture) and kind not in facts.captures


def _hookless(c: Config, why: str) -> Refusal:
    return Refusal(
        at="speculative_algorithm",
        related_fields=("model_path",),
        message=f"{c.shown('speculative_algorithm')} is refused for {c.model.architecture} once the weights are loaded: {why}.",
        fixes=(setting(speculative_algorithm="NGRAM"), dropping("speculative_algorithm")),
    )


@speculative_workers.refuses(
    "SPC936",
    "target-without-eagle3",
    raises="ValueError",
    late=True,
    since="0.5.6",
    sglang="attention_backend_setup.py:configure_aux_hidden_state_capture",
    earlier=(
        Earlier("0.5.11", "model_runner.py:initialize", "AttributeError"),
        Earlier("0.5.16", "model_runner.py:init_aux_hidden_state_capture", "AttributeError"),
        Earlier("0.5.23", "attention_backend_setup.py:configure_aux_hidden_state_capture", "AttributeError"),
    ),
    bad="model=gemma-2-9b -- --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    good="--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft --speculative-num-steps 3 "
    "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def target_without_eagle3(c: Config) -> Refusal | None:
    """This model class cannot hand its hidden states to an EAGLE3 draft.

    An EAGLE3 draft reads hidden states of three layers of the target; the target's class in SGLang must collect them. For classes
    that do not, there is NGRAM, STANDALONE, or EAGLE.
    """
    if c.speculative_algorithm != "EAGLE3" or c.draft is None or not _lacks_hook(c, "eagle3"):
        return None
    config = draft_model(c).hf("eagle_config")
    if isinstance(config, dict) and config.get("use_aux_hidden_state", True) is False:
        return None
    return _hookless(c, "in this release its class does not collect the hidden states that an EAGLE3 draft reads")


@speculative_workers.refuses(
    "SPC937",
    "target-without-block-drafts",
    raises="ValueError",
    late=True,
    since="0.5.11",
    sglang="attention_backend_setup.py:configure_aux_hidden_state_capture",
    earlier=(Earlier("0.5.16", "model_runner.py:init_aux_hidden_state_capture"),),
    bad="model=mixtral-8x7b -- --speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft",
    good="--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft",
)
def target_without_block_drafts(c: Config) -> Refusal | None:
    """This model class cannot hand its hidden states to a DFLASH or DSPARK draft.

    Such a draft reads hidden states of several layers of the target; the target's class in SGLang must collect them.
    For classes that do not, there is NGRAM.
    """
    if c.speculative_algorithm not in ("DFLASH", "DSPARK") or not _lacks_hook(c, "dflash"):
        return None
    if c.speculative_algorithm == "DSPARK" and not _lacks_hook(c, "dspark"):
        return None
    return _hookless(
        c, f"in this release its class does not collect the hidden states that a {c.speculative_algorithm} draft reads"
    )


# --- drafts that fit ------------------------------------------------------------------------------------------------


@speculative_workers.refuses(
    "SPC938",
    "draft-of-another-kind",
    raises="AttributeError",
    late=True,
    sglang="eagle_worker_v2.py:init_lm_head",
    bad=(
        "--speculative-algorithm EAGLE3 --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/qwen3-0.6b --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    ),
    good="--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft --speculative-num-steps 3 "
    "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def draft_of_another_kind(c: Config) -> Refusal | None:
    """The draft model is not an EAGLE3 draft.

    `--speculative-algorithm EAGLE3` needs a checkpoint trained as one (its class is LlamaForCausalLMEagle3 or
    Eagle3DeepseekV2ForCausalLM). Without `--speculative-draft-model-path` SGLang uses the target's own checkpoint: a target with a
    NEXTN layer then needs `--speculative-algorithm NEXTN`. A whole small model drafts with STANDALONE.
    """
    if c.speculative_algorithm != "EAGLE3":
        return None
    draft = draft_model(c)
    known = class_facts(draft.architecture, c.release) is not None and is_target(draft.architecture)
    if draft.architecture in EAGLE3_DRAFTS or not (known or _is_draft_layer(draft)):
        return None
    own = c.draft is None or c.speculative_draft_model_path == c.model_path
    what = "there is no `--speculative-draft-model-path`" if c.draft is None else f"the draft is a {draft.architecture}"
    other = "STANDALONE" if not own else "NEXTN" if _is_draft_layer(draft) else "NGRAM"
    return Refusal(
        at="speculative_algorithm",
        related_fields=("speculative_draft_model_path",)
        if c.given("speculative_draft_model_path")
        else ("model_path",),
        message=f"{c.shown('speculative_algorithm')} is refused once the weights are loaded: {what}, and only an EAGLE3 checkpoint "
        "maps its tokens to the target's.",
        fixes=(setting(speculative_algorithm=other), setting(speculative_algorithm="NGRAM")),
    )


def _is_draft_layer(draft: ModelFacts) -> bool:
    return draft.architecture.endswith(("NextN", "MTP"))


@speculative_workers.refuses(
    "SPC939",
    "standalone-draft-with-another-vocabulary",
    raises="ValueError",
    late=True,
    since="0.5.15",
    sglang="standalone_worker_v2.py:_validate_vocab_compatibility",
    bad="--speculative-algorithm STANDALONE --speculative-draft-model-path {models}/qwen3-0.6b",
    good="model=qwen3-8b -- --speculative-algorithm STANDALONE --speculative-draft-model-path {models}/qwen3-0.6b",
)
def standalone_draft_with_another_vocabulary(c: Config) -> Refusal | None:
    """A standalone draft model needs the target's vocabulary.

    Its tokens are handed to the target as they are. Use a small model of the same family.
    """
    if c.speculative_algorithm != "STANDALONE" or c.draft is None:
        return None
    draft, target = draft_model(c).vocab_size, c.model.vocab_size
    if draft == target:
        return None
    return Refusal(
        at="speculative_draft_model_path",
        related_fields=("model_path",),
        message=f"{c.shown('speculative_draft_model_path')} is refused once the weights are loaded: it has {draft} tokens, the target "
        f"{target}.",
        fixes=(Change(set={"speculative_algorithm": "NGRAM"}, drop=("speculative_draft_model_path", *DRAFT_SHAPE)),),
    )


@speculative_workers.refuses(
    "SPC940",
    "rejection-sampling-with-reduced-vocabulary",
    raises="ValueError",
    late=True,
    since="0.5.14",
    sglang="eagle_worker_v2.py:alloc_memory_pool",
    bad="--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft --speculative-num-steps 3 "
    "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --speculative-use-rejection-sampling",
    good="--speculative-algorithm EAGLE --speculative-draft-model-path {models}/eagle-draft --speculative-num-steps 3 "
    "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --speculative-use-rejection-sampling",
)
def rejection_sampling_with_reduced_vocabulary(c: Config) -> Refusal | None:
    """Rejection sampling needs a draft with the target's whole vocabulary.

    Most EAGLE3 drafts have only the commonest tokens (`draft_vocab_size` in their config, 32000 of 128256 for Llama 3). The
    probabilities of draft and target cannot be compared then.
    """
    if not c.speculative_use_rejection_sampling or c.speculative_algorithm != "EAGLE3" or c.draft is None:
        return None
    size = draft_model(c).hf("draft_vocab_size")
    if size is None or size == c.model.vocab_size or c.enable_multi_layer_eagle:
        return None
    switch = "speculative_use_rejection_sampling"
    at = switch if c.given(switch) else "speculative_use_block_verification"
    return Refusal(
        at=at,
        related_fields=("speculative_draft_model_path",),
        message=f"`{c.flag(at)}` is refused once the weights are loaded: the draft has {size} tokens, the target {c.model.vocab_size}.",
    )


@speculative_workers.refuses(
    "SPC941",
    "tree-drafting-with-draft-layers",
    raises="AssertionError",
    late=True,
    since="0.5.13",
    sglang="multi_layer_eagle_worker_v2.py:__init__",
    bad="--speculative-algorithm EAGLE --enable-multi-layer-eagle --speculative-draft-model-path {models}/eagle-draft",
    good="--speculative-algorithm EAGLE --enable-multi-layer-eagle --speculative-draft-model-path {models}/eagle-draft "
    "--speculative-num-steps 5 --speculative-eagle-topk 1 --speculative-num-draft-tokens 6",
)
def tree_drafting_with_draft_layers(c: Config) -> Refusal | None:
    """With several draft layers, the number of draft tokens must be the number of steps plus 1.

    With `--enable-multi-layer-eagle` each draft layer adds a token to a chain. SGLang's own choice of shape for Llama is a tree (5 steps,
    topk 4, 8 tokens), which does not fit: give topk 1 and steps + 1 draft tokens.
    """
    if not c.enable_multi_layer_eagle or c.speculative_algorithm not in ("EAGLE", "EAGLE3"):
        return None
    steps, tokens = c.speculative_num_steps, c.speculative_num_draft_tokens
    if tokens == steps + 1:
        return None
    return Refusal(
        at=c.first_given("enable_multi_layer_eagle", "speculative_algorithm"),
        related_fields=tuple(name for name in DRAFT_SHAPE if c.given(name)),
        message=f"`--enable-multi-layer-eagle` is refused with {steps} steps and {tokens} draft tokens once the weights are loaded: its "
        "layers verify one token more than there are steps.",
        fixes=(
            setting(speculative_num_steps=steps, speculative_eagle_topk=1, speculative_num_draft_tokens=steps + 1),
            dropping("enable_multi_layer_eagle"),
        ),
    )


@speculative_workers.refuses(
    "SPC488", "chained-steps-of-convolving-draft", raises="NotImplementedError", late=True, since="0.5.17",
    sglang="draft_utils.py:_assert_draft_needs_no_conv_sidecar",
    bad="""model=inkling -- --tp-size 8 --json-model-override-args '{"model_type": "inkling_mm_model"}' --speculative-algorithm EAGLE """
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    good="""model=inkling -- --tp-size 8 --json-model-override-args '{"model_type": "inkling_mm_model"}' --speculative-algorithm EAGLE """
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --enable-multi-layer-eagle",
)  # fmt: skip
def chained_steps_of_convolving_draft(c: Config) -> Refusal | None:
    """Inkling's draft has short convolutions, whose states one draft layer cannot carry over several steps.

    `--enable-multi-layer-eagle` drafts each step with a layer of its own.
    """
    if not is_eagle(c) or c.enable_multi_layer_eagle or (c.speculative_num_steps or 0) <= 1:
        return None
    if not draft_model(c).architecture.startswith("InklingForConditionalGeneration"):
        return None
    return Refusal(
        at="speculative_algorithm",
        related_fields=("enable_multi_layer_eagle", "model_path"),
        message=f"{c.shown('speculative_algorithm')} is refused for Inkling's draft once the weights are loaded: a layer cannot carry its "
        "convolutions over several steps. Add `--enable-multi-layer-eagle`.",
        fixes=(
            setting(enable_multi_layer_eagle=True),
            setting(speculative_num_steps=1, speculative_num_draft_tokens=2),
        ),
    )


@speculative_workers.refuses(
    "SPC942",
    "tree-drafting-with-first-overlap-worker",
    raises="RuntimeError",
    late=True,
    since="0.5.4",
    until="0.5.7",
    sglang="eagle_worker_v2.py:draft",
    bad="sglang=0.5.6 SGLANG_ENABLE_SPEC_V2=1 -- --speculative-algorithm EAGLE --speculative-draft-model-path {models}/eagle-draft "
    "--speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
    good="sglang=0.5.6 SGLANG_ENABLE_SPEC_V2=1 -- --speculative-algorithm EAGLE --speculative-draft-model-path {models}/eagle-draft "
    "--speculative-num-steps 5 --speculative-eagle-topk 1 --speculative-num-draft-tokens 6",
)
def tree_drafting_with_first_overlap_worker(c: Config) -> Refusal | None:
    """In these releases the overlapping worker drafts chains only, and fails in the first draft step.

    `SGLANG_ENABLE_SPEC_V2=1` chooses it. The launch is accepted and dies in the first draft step. Draft a chain, or leave the
    variable out.
    """
    if c.speculative_algorithm not in ("EAGLE", "EAGLE3") or (c.speculative_eagle_topk or 0) <= 1:
        return None
    if not c.env.flag("SGLANG_ENABLE_SPEC_V2") or c.disable_overlap_schedule:
        return None
    return Refusal(
        at=c.first_given("speculative_eagle_topk", "speculative_algorithm"),
        related_fields=("SGLANG_ENABLE_SPEC_V2",),
        message=f"{c.shown('speculative_eagle_topk')} dies in the first draft step with `SGLANG_ENABLE_SPEC_V2`: in this release the "
        "overlapping worker drafts chains only.",
        fixes=(
            setting(speculative_eagle_topk=1, speculative_num_draft_tokens=c.speculative_num_steps + 1),
            dropping_env("SGLANG_ENABLE_SPEC_V2"),
        ),
    )


@speculative_workers.refuses(
    "SPC1025", "tree-drafting-with-frozen-cache", raises="ValueError", late=True, since="0.5.12",
    sglang="frozen_kv_mtp_worker_v2.py:_init_draft_attn_backend",
    earlier=(Earlier("0.5.15", "frozen_kv_mtp_worker.py:_init_draft_attn_backend"),),
)  # fmt: skip
def tree_drafting_with_frozen_cache(c: Config) -> Refusal | None:
    """A draft that reads the target's cache drafts trees on triton and trtllm_mha only.

    Gemma 4's assistants are such drafts. Set `--speculative-eagle-topk 1`, or `--speculative-draft-attention-backend triton`.
    """
    if c.speculative_algorithm != "FROZEN_KV_MTP" or (c.speculative_eagle_topk or 1) <= 1:
        return None
    backend = c.speculative_draft_attention_backend or backends_of(c)[1]
    if backend in ("triton", "trtllm_mha"):
        return None
    return Refusal(
        at="speculative_eagle_topk" if c.given("speculative_eagle_topk") else "speculative_algorithm",
        related_fields=("speculative_algorithm", "speculative_draft_attention_backend", "attention_backend"),
        message=f"{c.shown('speculative_eagle_topk')} drafts a tree, which a draft on the target's cache cannot with `{backend}`, so "
        "SGLang stops when it builds the draft. Draft on triton, or a chain.",
        fixes=(setting(speculative_draft_attention_backend="triton"), setting(speculative_eagle_topk=1)),
    )
