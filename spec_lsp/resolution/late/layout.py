"""What models refuse when their layers are split over GPUs or pipeline stages.

Follows the attention classes of models/ and layers/linear.py (QKVParallelLinear), and model_executor/model_runner.py.

Modelled: attention and KV heads of target and draft that are not divisible by the ranks; classes without pipeline parallelism. What each
class requires is data of each release (facts/classes.py). Left out: models and towers that pad heads, CPU (which pads them), the
transformers backend, the heads of linear attention.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.facts.classes import ClassFacts, class_facts, first_release, in_transformers
from spec_lsp.facts.model import ModelFacts
from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.late.refused import value_refused
from spec_lsp.resolution.ranks import attention_tp_size

model_parallelism = Handler("layers/linear.py:__init__", when=lambda c: bool(c.device == "cuda"))

IN_SGLANG = ("auto", "sglang")
"""Values of `--model-impl` with which SGLang's own class runs, if it has one."""


def served_class(c: Config, model: ModelFacts) -> ClassFacts | None:
    """The requirements of SGLang's class of this model; None if the model runs in another class (a plugin's, Transformers')."""
    if c.model_impl not in IN_SGLANG:
        return None
    return class_facts(model.architecture, c.release)


def head_ranks(c: Config, model: ModelFacts) -> int | None:
    """The number of ranks over which a model's class divides its attention heads; None if it does not require equal shares."""
    facts = served_class(c, model)
    if facts is None:
        return None
    if facts.heads:
        return int(c.tp_size) if facts.heads == "tp" else attention_tp_size(c)
    # Before 0.5.9, latent attention kept its heads whole under NSA's context parallelism, and divided them otherwise.
    if c.before("0.5.9") and model.uses_mla and not c.enable_nsa_prefill_context_parallel:
        return attention_tp_size(c)
    return None


def _divides(ranks: int, heads: int, kv_heads: int | None) -> bool:
    if heads % ranks:
        return False
    if kv_heads is None:
        return True
    return kv_heads % ranks == 0 if kv_heads >= ranks else ranks % kv_heads == 0


def heads_fit(c: Config, tp: int) -> bool:
    """Whether a TP group of this size can divide the model's attention heads, as far as its class requires that."""
    facts, ranks = served_class(c, c.model), head_ranks(c, c.model)
    if facts is None or ranks is None:
        return True
    shared = tp * ranks // int(c.tp_size)
    heads = c.model.num_attention_heads
    if shared < 1 or not isinstance(heads, int):
        return shared >= 1
    return _divides(shared, heads, c.model.total_num_kv_heads if facts.kv_heads else None)


@model_parallelism.refuses(
    "SPC950", "attention-heads-not-divisible-by-ranks", raises="AssertionError", late=True,
    bad=("model=qwen2.5-7b -- --tp-size 8", "--tp-size 3"), good=("model=qwen2.5-7b -- --tp-size 4", "--tp-size 8"),
)  # fmt: skip
def attention_heads_not_divisible_by_ranks(c: Config) -> Refusal | None:
    """The GPUs cannot share the attention heads evenly.

    Every rank computes whole heads, and as many as the others: the number of ranks has to divide the query heads, and
    to divide the KV heads or be a multiple of them. SGLang finds out when it builds the model and stops on a bare
    assertion. Choose a TP size that fits; GPUs that are left over can run a second replica.
    """
    facts, ranks = served_class(c, c.model), head_ranks(c, c.model)
    if facts is None or ranks is None or ranks <= 1:
        return None
    heads = c.model.num_attention_heads
    if not isinstance(heads, int):
        return None
    kv_heads = c.model.total_num_kv_heads if facts.kv_heads else None
    if _divides(ranks, heads, kv_heads):
        return None
    fitting = next(n for n in range(ranks, 0, -1) if _divides(n, heads, kv_heads))
    shared = f"{heads} attention heads" + (
        f" and {kv_heads} KV heads" if kv_heads is not None and heads % ranks == 0 else ""
    )
    per = "" if ranks == c.tp_size else f", which leaves {ranks} ranks for attention,"
    return Refusal(
        at="tp_size",
        related_fields=("model_path",),
        message=f"{c.shown('tp_size')}{per} cannot share this model's {shared} evenly, so SGLang stops when it builds "
        f"the model. {fitting} {'ranks divide' if fitting > 1 else 'rank divides'} them.",
        fixes=(setting(tp_size=c.tp_size // ranks * fitting),),
    )


TOWER_HEADS = ("num_heads", "num_attention_heads", "vt_num_attention_heads")


def _tower_heads(model: ModelFacts) -> int | None:
    """The heads of the vision tower; None if config.json does not say them in one way."""
    vision = model.hf("vision_config", None)
    found = [vision[key] for key in TOWER_HEADS if key in vision] if isinstance(vision, Mapping) else []
    return found[0] if len(found) == 1 and isinstance(found[0], int) else None


@model_parallelism.refuses(
    "SPC1122", "vision-heads-not-divisible-by-ranks", raises="AssertionError", late=True,
    sglang="layers/attention/vision.py:__init__",
    bad="model=qwen3-vl -- --tp-size 32 --nnodes 4",
    good=("model=qwen3-vl -- --tp-size 32 --nnodes 4 --mm-enable-dp-encoder", "model=qwen3-vl -- --tp-size 8"),
)  # fmt: skip
def vision_heads_not_divisible_by_ranks(c: Config) -> Refusal | None:
    """The GPUs cannot share the heads of the vision tower evenly.

    A tower that does not pad its heads is split like the language model, and often has fewer heads. With `--mm-enable-dp-encoder` every
    rank has the whole tower, and images are shared out instead, where the model's class knows it.
    """
    facts, ranks, heads = served_class(c, c.model), attention_tp_size(c), _tower_heads(c.model)
    if facts is None or not facts.towers or heads is None or heads % ranks == 0:
        return None
    if c.language_only or c.mm_enable_dp_encoder or not c.model.is_multimodal(c.enable_multimodal):
        return None
    fitting = next(n for n in range(ranks, 0, -1) if heads % n == 0)
    whole = facts.towers == "copies"
    return Refusal(
        at="tp_size",
        related_fields=("model_path",),
        message=f"{c.shown('tp_size')} cannot share the {heads} heads of this model's vision tower evenly, so SGLang stops when it builds "
        "the model. " + ("Add `--mm-enable-dp-encoder`." if whole else f"{fitting} ranks divide them."),
        fixes=(
            *((setting(mm_enable_dp_encoder=True),) if whole else ()),
            setting(tp_size=c.tp_size // ranks * fitting),
        ),
    )


@model_parallelism.refuses(
    "SPC952", "draft-heads-not-divisible-by-ranks", raises="AssertionError", late=True,
    bad="model=qwen3-8b -- --tp-size 8 --speculative-algorithm STANDALONE --speculative-draft-model-path {models}/qwen2.5-7b",
    good="model=qwen3-8b -- --tp-size 4 --speculative-algorithm STANDALONE --speculative-draft-model-path {models}/qwen2.5-7b",
)  # fmt: skip
def draft_heads_not_divisible_by_ranks(c: Config) -> Refusal | None:
    """The GPUs cannot share the draft model's attention heads evenly.

    A draft model is split over the target's ranks, whatever its size: their number has to divide its query heads, and to divide its
    KV heads or be a multiple of them. SGLang finds out when it builds the draft, after the target's weights are loaded.
    """
    if c.speculative_algorithm is None or c.speculative_draft_model_path in (None, c.model_path) or c.draft is None:
        return None
    draft = c.draft.as_draft()
    facts, ranks = served_class(c, draft), head_ranks(c, draft)
    heads = draft.num_attention_heads
    if facts is None or ranks is None or ranks <= 1 or not isinstance(heads, int):
        return None
    kv_heads = draft.total_num_kv_heads if facts.kv_heads else None
    if _divides(ranks, heads, kv_heads):
        return None
    fitting = next(n for n in range(ranks, 0, -1) if _divides(n, heads, kv_heads))
    shared = f"{heads} attention heads" + (f" and {kv_heads} KV heads" if kv_heads and heads % ranks == 0 else "")
    return Refusal(
        at=c.first_given("tp_size", "speculative_draft_model_path"),
        related_fields=("speculative_draft_model_path", "model_path"),
        message=f"{c.shown('tp_size')} cannot share the draft's {shared} evenly, so SGLang stops when it builds the draft, with the "
        f"target loaded. {fitting} {'ranks divide' if fitting > 1 else 'rank divides'} them.",
        fixes=(setting(tp_size=c.tp_size // ranks * fitting), setting(speculative_algorithm="NGRAM")),
    )


@model_parallelism.refuses(
    "SPC951",
    "pipeline-through-model-without-stages",
    raises="AssertionError",
    late=True,
    sglang="model_executor/model_runner.py:__init__",
    bad=("model=qwen3-next-80b -- --tp-size 4 --pp-size 2", "model=gemma-2-9b -- --pp-size 2"),
    good=("model=deepseek-v3 -- --tp-size 8 --pp-size 2", "--pp-size 2"),
)
def pipeline_through_model_without_stages(c: Config) -> Refusal | None:
    """This model cannot be split into pipeline stages.

    A stage takes hidden states from the one before and passes its own on; the code of this model has no place for that.
    SGLang finds out when the weights are loaded and stops. Use tensor (or for many experts expert) parallelism over the
    same GPUs.
    """
    facts = served_class(c, c.model) if c.pp_size > 1 else None
    if facts is None or facts.stages is not False:
        return None
    return Refusal(
        at="pp_size",
        related_fields=("model_path",),
        message=f"{c.shown('pp_size')} does not work with {c.model.architecture}, whose code has no pipeline stages: "
        "SGLang loads the weights and stops. Use tensor parallelism over the same GPUs.",
        fixes=(setting(pp_size=1, tp_size=c.tp_size * c.pp_size), dropping("pp_size")),
    )


OWN_CLASSES = ("SGLANG_EXTERNAL_MODEL_PACKAGE", "SGLANG_PLUGINS")
"""Variables that load model classes from elsewhere."""


def _skips_a_release(older: Release, newer: Release) -> bool:
    """Whether a release is between the two; post-releases do not count."""
    return any(older[:3] < release[:3] < newer[:3] for release in releases())


@model_parallelism.refuses(
    "SPC698", "model-newer-than-release", raises="ValueError", late=True, sglang="models/registry.py:_raise_for_unsupported",
    bad="sglang=0.5.9 model=none -- --model-path deepseek-ai/DeepSeek-V4-Flash --tp-size 8",
    good="sglang=0.5.12 model=none -- --model-path deepseek-ai/DeepSeek-V4-Flash --tp-size 8",
)  # fmt: skip
def model_newer_than_release(c: Config) -> Refusal | None:
    """This release of SGLang does not have the model's class yet.

    Neither does the Transformers that it comes with, to which SGLang would fall back. Use a newer release. A model that brings its own code
    may run with `--trust-remote-code`. Nothing is said of the release just before the first that has the class: builds made between the
    two name themselves after it.
    """
    name = c.model.architecture
    first = first_release(name)
    if first is None or not _skips_a_release(c.release, first) or in_transformers(name, c.release):
        return None
    if c.model_impl not in IN_SGLANG or any(c.env.is_set(variable) for variable in OWN_CLASSES):
        return None
    if c.trust_remote_code and (not c.model.complete or c.model.hf("auto_map") is not None):
        return None
    return value_refused(
        c,
        "model_path",
        f"needs a class that SGLang {c.release} does not have: {name} is served from {first} on.",
        fixes=(),
    )
