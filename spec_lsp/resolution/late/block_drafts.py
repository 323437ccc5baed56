"""What the workers of DFLASH and DSPARK refuse when they build their draft.

Follows model_runner_components/spec_aux_hidden_state.py, speculative/dflash_utils.py, dflash_worker_v2.py and dspark_components/
(0.5.23).

Left out: calibration tables and confidence heads (files and weights), simulated acceptance.
"""

from __future__ import annotations

from spec_lsp.facts.model import ModelFacts
from spec_lsp.resolution import cuda_graph
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.linear_attention import ragged_verify_mode
from spec_lsp.resolution.ranks import attention_dp, attention_dp_field, attention_tp_size
from spec_lsp.resolution.speculative.common import DRAFT_SHAPE
from spec_lsp.resolution.speculative.draft_config import bundles_dspark, part_of

block_drafts = Handler(
    "model_runner_components/spec_aux_hidden_state.py:_resolve_dflash_aux_hidden_state", since="0.5.11",
    when=lambda c: c.speculative_algorithm in ("DFLASH", "DSPARK"),
)  # fmt: skip


def _target_layers(c: Config) -> int:
    return c.model.num_hidden_layers * int(c.model.text_hf("num_loops", 1))


def _read_layers(c: Config, draft: ModelFacts) -> list[int] | None:
    """The target's layers that the draft names; None if it leaves the choice to SGLang."""
    named = part_of(draft, "dflash_config").get("target_layer_ids", draft.hf("target_layer_ids"))
    if c.speculative_algorithm == "DSPARK" and draft.hf("dspark_target_layer_ids") is not None:
        named = draft.hf("dspark_target_layer_ids")
    return list(named) if isinstance(named, (list, tuple)) and all(isinstance(n, int) for n in named) else None


def _other_ways() -> tuple[Change, ...]:
    return (
        Change(set={"speculative_algorithm": "NGRAM"}, drop=("speculative_draft_model_path", *DRAFT_SHAPE)),
        Change(drop=("speculative_algorithm", "speculative_draft_model_path", *DRAFT_SHAPE)),
    )


DFLASH = "--speculative-algorithm DFLASH --speculative-draft-model-path {models}/eagle3-draft"
DSPARK = "--speculative-algorithm DSPARK --speculative-draft-model-path {models}/eagle3-draft"
NO_MARKOV = """--json-model-override-args '{"architectures": ["DSparkDraftModel"], "markov_rank": %d, "markov_head_type": "vanilla"}'"""


@block_drafts.refuses(
    "SPC481", "draft-reads-layer-beyond-target", raises="ValueError", late=True,
    sglang="speculative/dflash_utils.py:resolve_target_layer_ids",
    bad=DFLASH + """ --json-model-override-args '{"dflash_config": {"target_layer_ids": [1, 16, 40]}}'""",
    good=DFLASH + """ --json-model-override-args '{"dflash_config": {"target_layer_ids": [1, 16, 31]}}'""",
)  # fmt: skip
def draft_reads_layer_beyond_target(c: Config) -> Refusal | None:
    """The draft was trained for a target with more layers.

    A DFLASH or DSPARK draft names the target's layers it reads (`target_layer_ids` in its config.json), from 0 on. One that the target
    does not have shows that the draft belongs to another target.
    """
    if c.draft is None:
        return None
    layers, count = _read_layers(c, c.draft), _target_layers(c)
    beyond = [layer for layer in layers or () if not 0 <= layer < count]
    if not beyond:
        return None
    return Refusal(
        at=c.first_given("speculative_draft_model_path", "speculative_algorithm"),
        related_fields=("model_path", "speculative_algorithm"),
        message=f"{c.shown('speculative_draft_model_path')} is refused once the weights are loaded: the draft reads layer {beyond[0]} of "
        f"a target whose last is {count - 1}. It was trained for another target.",
        fixes=_other_ways(),
    )


@block_drafts.refuses(
    "SPC482", "dspark-draft-without-markov-head", raises="ValueError", late=True, since="0.5.16",
    bad=f"{DSPARK} {NO_MARKOV % 0}",
    good=f"{DSPARK} {NO_MARKOV % 8}",
)  # fmt: skip
def dspark_draft_without_markov_head(c: Config) -> Refusal | None:
    """A DSPARK draft needs its Markov head.

    It corrects each drafted token by the one before (`markov_rank` in the draft's config.json is its width). A draft without one drafts
    with DFLASH.
    """
    if c.speculative_algorithm != "DSPARK" or c.draft is None:
        return None
    if not c.draft.is_dspark_draft and not bundles_dspark(c.draft):
        return None
    prefixed = c.draft.hf("dspark_markov_rank")
    part = part_of(c.draft, "dflash_config", "dspark_config")
    rank = part.get("markov_rank", c.draft.text_hf("markov_rank", c.draft.hf("markov_rank", 0)))
    if (rank if prefixed is None else prefixed) not in (0, None):
        return None
    return Refusal(
        at=c.first_given("speculative_draft_model_path", "speculative_algorithm"),
        related_fields=("speculative_algorithm",),
        message=f"{c.shown('speculative_algorithm')} is refused once the weights are loaded: the draft's config.json gives its Markov head "
        "no width (`markov_rank`).",
        fixes=(setting(speculative_algorithm="DFLASH"), *_other_ways()),
    )


@block_drafts.refuses(
    "SPC483", "sliding-draft-without-window", raises="ValueError", late=True, since="0.5.15",
    sglang="speculative/dflash_utils.py:get_dflash_attention_sliding_window_size",
    bad=DFLASH + """ --json-model-override-args '{"architectures": ["DFlashDraftModel"], "layer_types": ["sliding_attention"]}'""",
    good=DFLASH + """ --json-model-override-args '{"architectures": ["DFlashDraftModel"], "layer_types": ["sliding_attention"], """
    """"sliding_window": 1024}'""",
)  # fmt: skip
def sliding_draft_without_window(c: Config) -> Refusal | None:
    """The draft has sliding-window layers, and no width for the window.

    `layer_types` in its config.json names sliding attention, and `sliding_window` is missing.
    """
    draft = c.draft
    if (
        draft is None
        or "DFlash" not in draft.architecture
        or draft.text_hf("sliding_window", draft.hf("sliding_window"))
    ):
        return None
    kinds = draft.text_hf("layer_types", draft.hf("layer_types"))
    if (
        not isinstance(kinds, list)
        or "sliding_attention" not in kinds
        or "swa_window_size" in part_of(draft, "dflash_config")
    ):
        return None
    return Refusal(
        at="speculative_draft_model_path",
        related_fields=("speculative_algorithm",),
        message=f"{c.shown('speculative_draft_model_path')} is refused once the weights are loaded: its config.json has sliding layers and "
        "no `sliding_window`.",
        fixes=_other_ways(),
    )


def _domino_gap(draft: ModelFacts) -> str | None:
    """What a Domino draft's config lacks, in SGLang's order."""
    part = part_of(draft, "dflash_config")

    def value(name: str) -> object:
        return part.get(name, draft.hf(name))

    if not isinstance(value("shift_label"), bool):
        return "`shift_label` is true or false"
    if value("pure_draft_prefix_len") != 1:
        return "`pure_draft_prefix_len` has to be 1"
    return next((f"`{name}` is missing" for name in ("gru_hidden_dim", "emb_dim") if value(name) is None), None)


DOMINO = """--json-model-override-args '{"architectures": ["DFlashDraftModel"], "dflash_config": {"projector_type": "domino", %s}}'"""


@block_drafts.refuses(
    "SPC484", "domino-draft-without-sizes", raises="ValueError", late=True, since="0.5.20",
    sglang="speculative/dflash_utils.py:parse_dflash_draft_config",
    bad=DFLASH + " " + DOMINO % '"shift_label": true, "pure_draft_prefix_len": 1, "emb_dim": 64',
    good=DFLASH + " " + DOMINO % '"shift_label": true, "pure_draft_prefix_len": 1, "emb_dim": 64, "gru_hidden_dim": 64',
)  # fmt: skip
def domino_draft_without_sizes(c: Config) -> Refusal | None:
    """A Domino draft's config.json has to give the sizes of its projector.

    They are `shift_label`, `pure_draft_prefix_len` (1), `gru_hidden_dim` and `emb_dim`, in `dflash_config` or beside it.
    """
    draft = c.draft
    if draft is None or part_of(draft, "dflash_config").get("projector_type", draft.hf("projector_type")) != "domino":
        return None
    gap = _domino_gap(draft)
    if gap is None:
        return None
    return Refusal(
        at="speculative_draft_model_path",
        related_fields=("speculative_algorithm",),
        message=f"{c.shown('speculative_draft_model_path')} is refused once the weights are loaded: in its config.json {gap}, which a "
        "Domino draft needs.",
        fixes=_other_ways(),
    )


@block_drafts.refuses(
    "SPC485", "domino-draft-in-this-launch", raises="ValueError", late=True, since="0.5.20",
    sglang="speculative/dflash_worker_v2.py:__init__",
    bad=DFLASH + " --speculative-domino-candidate-pool-size -1 "
    + DOMINO % '"shift_label": true, "pure_draft_prefix_len": 1, "emb_dim": 64, "gru_hidden_dim": 64',
    good=DFLASH + " " + DOMINO % '"shift_label": true, "pure_draft_prefix_len": 1, "emb_dim": 64, "gru_hidden_dim": 64',
)  # fmt: skip
def domino_draft_in_this_launch(c: Config) -> Refusal | None:
    """A Domino draft does not run with these settings.

    Its pool of candidates (`--speculative-domino-candidate-pool-size`) is not negative, it drafts more than one token, and from 0.5.23 on
    it is refused with attention data parallelism.
    """
    draft = c.draft
    if draft is None or part_of(draft, "dflash_config").get("projector_type", draft.hf("projector_type")) != "domino":
        return None
    if c.since("0.5.23") and attention_dp(c):
        at, why = attention_dp_field(c), "with attention data parallelism only plain drafts work"
    elif c.speculative_domino_candidate_pool_size < 0:
        at, why = "speculative_domino_candidate_pool_size", "a pool is not smaller than empty"
    elif c.speculative_num_draft_tokens is not None and c.speculative_num_draft_tokens <= 1:
        at, why = "speculative_num_draft_tokens", "it drafts more than one token"
    else:
        return None
    return Refusal(
        at=at,
        related_fields=("speculative_draft_model_path", "speculative_algorithm"),
        message=f"{c.shown(at)} is refused for the Domino draft once the weights are loaded: {why}.",
        fixes=(dropping(at), *_other_ways()),
    )


# --- DSPARK over ranks ----------------------------------------------------------------------------------------------


def _with_experts(c: Config) -> bool:
    """draft_is_deepseek_v4: the draft is DeepSeek V4's own, with experts."""
    return c.draft is not None and c.draft.is_deepseek_v4


@block_drafts.refuses(
    "SPC486", "dspark-experts-over-attention-ranks", raises="ValueError", late=True, since="0.5.16",
    sglang="speculative/dspark_components/dspark_worker_v2.py:__init__",
    bad="gpu=b200 model=v4 -- --speculative-algorithm DSPARK --speculative-draft-model-path {models}/v4 --tp-size 8 "
    "--dp-size 4 --enable-dp-attention --enable-dp-lm-head",
    good="gpu=b200 model=v4 -- --speculative-algorithm DSPARK --speculative-draft-model-path {models}/v4 --tp-size 8 "
    "--dp-size 8 --enable-dp-attention --enable-dp-lm-head",
)  # fmt: skip
def dspark_experts_over_attention_ranks(c: Config) -> Refusal | None:
    """A DSPARK draft with experts needs each rank to be its own attention-DP group.

    DeepSeek V4's draft has experts. Ranks that share a group would add up the experts' output twice, so SGLang refuses: give as many
    groups as TP ranks.
    """
    if c.speculative_algorithm != "DSPARK" or not attention_dp(c) or not _with_experts(c) or attention_tp_size(c) == 1:
        return None
    if not str(c.device).startswith("cuda"):
        return None
    field = attention_dp_field(c)
    return Refusal(
        at=field,
        related_fields=("tp_size", "speculative_algorithm"),
        message=f"{c.shown('speculative_algorithm')} is refused once the weights are loaded: the draft has experts, so each of the "
        f"{c.tp_size} TP ranks has to be an attention-DP group of its own.",
        fixes=(
            setting(**{field: c.tp_size}),
            dropping("speculative_algorithm", "speculative_draft_model_path"),
        ),
    )


RAGGED = "SGLANG_RAGGED_VERIFY_MODE"


@block_drafts.refuses(
    "SPC487", "compact-verify-in-graphs", raises="ValueError", late=True, since="0.5.16",
    sglang="model_executor/runner/decode_cuda_graph_runner.py:__init__",
    bad=(
        f"{RAGGED}=compact -- {DSPARK} --disable-cuda-graph-padding {NO_MARKOV % 8}",
        f"{RAGGED}=compact -- {DSPARK} --tp-size 2 --dp-size 2 --enable-dp-attention --enable-dp-lm-head {NO_MARKOV % 8}",
    ),
    good=(
        f"{RAGGED}=compact -- {DSPARK} {NO_MARKOV % 8}",
        f"{DSPARK} --disable-cuda-graph-padding {NO_MARKOV % 8}",
    ),
)  # fmt: skip
def compact_verify_in_graphs(c: Config) -> Refusal | None:
    """Captured decode graphs cannot verify compactly here.

    `SGLANG_RAGGED_VERIFY_MODE=compact` packs requests with different numbers of drafted tokens into one captured size. That needs padding,
    and does not go with two-batch overlap, adapters, or a dense draft over attention-DP groups.
    """
    if (
        c.speculative_algorithm != "DSPARK"
        or ragged_verify_mode(c) != "compact"
        or not str(c.device).startswith("cuda")
    ):
        return None
    if cuda_graph.backend_of(c, cuda_graph.DECODE) == cuda_graph.DISABLED or c.disaggregation_mode == "prefill":
        return None
    if c.enable_two_batch_overlap:
        at = "enable_two_batch_overlap"
    elif c.enable_lora:
        at = "enable_lora"
    elif c.disable_cuda_graph_padding:
        at = "disable_cuda_graph_padding"
    elif attention_dp(c) and c.draft is not None and not _with_experts(c):
        at = attention_dp_field(c)
    else:
        return None
    return Refusal(
        at=RAGGED,
        related_fields=(at, "speculative_algorithm"),
        message=f"`{RAGGED}=compact` is refused with {c.shown(at)} when graphs are captured: a captured step cannot hold the packed "
        "requests.",
        fixes=(dropping_env(RAGGED), *(() if at == "enable_lora" else (dropping(at),))),
    )


@block_drafts.refuses(
    "SPC1089", "mask-token-without-tokenizer", raises="RuntimeError", late=True,
    sglang="speculative/dflash_worker_v2.py:_resolve_mask_token_id",
    earlier=(Earlier("0.5.14", "speculative/dflash_worker.py:_resolve_mask_token_id"),),
    bad=f"{DFLASH} --skip-tokenizer-init",
    good=DFLASH + """ --skip-tokenizer-init --json-model-override-args '{"dflash_config": {"mask_token_id": 128002}}'""",
)  # fmt: skip
def mask_token_without_tokenizer(c: Config) -> Refusal | None:
    """A DFLASH draft finds its mask token with the tokenizer.

    It fills the tokens that are drafted with a mask token. Where the draft's config.json does not give its number (`mask_token_id`), SGLang
    looks it up in the tokenizer, which `--skip-tokenizer-init` leaves out.
    """
    draft = c.draft
    if c.speculative_algorithm != "DFLASH" or draft is None or not c.skip_tokenizer_init:
        return None
    if part_of(draft, "dflash_config").get("mask_token_id", draft.hf("mask_token_id")) is not None:
        return None
    return Refusal(
        at="skip_tokenizer_init",
        related_fields=("speculative_draft_model_path", "speculative_algorithm"),
        message=f"{c.shown('skip_tokenizer_init')} is refused with {c.shown('speculative_algorithm')} once the weights are loaded: the "
        "draft's config.json gives no `mask_token_id`, so the tokenizer has to know it.",
        fixes=(dropping("skip_tokenizer_init"), *_other_ways()),
    )


@block_drafts.refuses(
    "SPC1090", "packed-head-over-ranks", raises="RuntimeError", late=True, since="0.5.18",
    sglang="speculative/dflash_worker_v2.py:_greedy_sample_from_quantized_head",
    bad=f"--load-format gguf --tp-size 2 {DFLASH}",
    good=f"--load-format gguf --tp-size 1 {DFLASH}",
)  # fmt: skip
def packed_head_over_ranks(c: Config) -> Refusal | None:
    """DFLASH drafts with the head of a GGUF model on one rank only.

    The draft reads its tokens off the target's head. A head that GGUF packed is not put together from the parts of several ranks.
    """
    if c.speculative_algorithm != "DFLASH" or c.load_format != "gguf" or c.tp_size <= 1:
        return None
    return Refusal(
        at=c.first_given("tp_size", "speculative_algorithm"),
        related_fields=("speculative_algorithm", "model_path"),
        message=f"{c.shown('tp_size')} is refused with {c.shown('speculative_algorithm')} when the first token is drafted: the head of a "
        "GGUF model is on one rank then.",
        fixes=(setting(tp_size=1), *_other_ways()),
    )
