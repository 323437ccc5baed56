"""EAGLE, EAGLE3 (NEXTN is EAGLE by now) and STANDALONE drafting.

Follows arg_groups/speculative_hook.py: _handle_eagle_family, _handle_iquest_q1_mtp_draft,
_auto_choose_speculative_params.
"""

from __future__ import annotations

from spec_lsp.resolution.attention import backend_field, backends_of
from spec_lsp.resolution.engine import (
    Change,
    Config,
    Earlier,
    Handler,
    Refusal,
    dropping,
    dropping_env,
    setting,
    setting_env,
)
from spec_lsp.resolution.ranks import attention_dp, attention_dp_switch, no_attention_dp
from spec_lsp.resolution.speculative.common import (
    DRAFT_BACKENDS,
    DRAFT_SHAPE,
    ONE_METHOD,
    cap_running_requests,
    draft_facts,
    is_eagle,
    page_one,
)

DRAFTS_ITSELF_SINCE = {
    "DeepseekV32ForCausalLM": "0.5.3",
    "DeepseekV3ForCausalLM": "",
    "Glm4MoeForCausalLM": "",
    "BailingMoeForCausalLM": "0.5.3",
    "BailingMoeV2ForCausalLM": "0.5.3",
    "MistralLarge3ForCausalLM": "0.5.6.post1",
    "PixtralForConditionalGeneration": "0.5.6.post1",
    "Glm4MoeLiteForCausalLM": "0.5.8",
    "GlmMoeDsaForCausalLM": "0.5.9",
    "BailingMoeV2_5ForCausalLM": "0.5.9",
    "HYV3ForCausalLM": "0.5.11",
    "DeepseekV4ForCausalLM": "0.5.12",
    "HYV4ForCausalLM": "0.5.20",
    "Qwen4ExpForConditionalGeneration": "0.5.20",
}
"""Targets whose checkpoint holds a draft layer, with the first release that uses it automatically."""

TREES_BY_DEFAULT = ("LlamaForCausalLM", "Grok1ForCausalLM", "Grok1VForCausalLM")
CHAINS_BEFORE_0_5_8 = (
    "DeepseekV32ForCausalLM",
    "DeepseekV3ForCausalLM",
    "DeepseekV2ForCausalLM",
    "GptOssForCausalLM",
    "BailingMoeForCausalLM",
    "BailingMoeV2ForCausalLM",
)
CHAINS_SINCE_0_5_6_POST1 = ("Glm4MoeForCausalLM", "MistralLarge3ForCausalLM", "PixtralForConditionalGeneration")

eagle = Handler("speculative_hook.py:_handle_eagle_family", when=is_eagle, earlier=ONE_METHOD)


@eagle.refuses(
    "SPC120",
    "standalone-draft-with-dp-attention",
    raises="ValueError",
    since="0.5.2",
    earlier=(Earlier("0.5.3", "server_args.py:__post_init__", "AssertionError"), *ONE_METHOD[1:]),
    bad="--speculative-algorithm STANDALONE --speculative-draft-model-path {models}/qwen3-0.6b --tp-size 2 --dp-size 2 "
    "--enable-dp-attention",
    good="--speculative-algorithm STANDALONE --speculative-draft-model-path {models}/qwen3-0.6b --tp-size 2",
)
def standalone_draft_with_dp_attention(c: Config) -> Refusal | None:
    """A standalone draft model does not work with data-parallel attention.

    Draft with EAGLE3 (or the target's own NEXTN layer), or turn data-parallel attention off.
    """
    if c.speculative_algorithm != "STANDALONE" or not attention_dp(c):
        return None
    switch = attention_dp_switch(c)
    return Refusal(
        at="speculative_algorithm",
        related_fields=(switch,),
        message=f"{c.shown('speculative_algorithm')} is refused with data-parallel attention: a draft model of its own is not "
        "split over the ranks.",
        fixes=(no_attention_dp(c), Change(drop=("speculative_algorithm", "speculative_draft_model_path"))),
    )


@eagle.adjusts("max_running_requests")
def eagle_running_requests(c: Config) -> None:
    """Speculative decoding serves at most 48 requests at once unless you say otherwise."""
    cap_running_requests(c)


# --- overlap scheduling ---------------------------------------------------------------------------------------------


def overlap_worker(c: Config) -> bool:
    """SGLANG_ENABLE_SPEC_V2: the worker that overlaps drafting with scheduling; the only one since 0.5.14."""
    if c.before("0.5.4"):
        return bool(c.enable_beta_spec)
    return c.env.flag("SGLANG_ENABLE_SPEC_V2", c.since("0.5.11"))


@eagle.adjusts("disable_overlap_schedule", since="0.5.16")
def no_overlap_on_cpu(c: Config) -> None:
    """On a CPU, drafting does not overlap with scheduling."""
    if c.device == "cpu":
        c.set(disable_overlap_schedule=True)


@eagle.adjusts("disable_overlap_schedule", since="0.5.11", until="0.5.14")
def overlap_worker_of_0_5_11(c: Config) -> None:
    """In these releases a tree (and SGLANG_ENABLE_SPEC_V2=0) needs the older worker, which does not overlap."""
    tree = c.before("0.5.13") and (c.speculative_eagle_topk or 0) > 1
    if tree or not overlap_worker(c):
        c.set(disable_overlap_schedule=True)


@eagle.refuses(
    "SPC130",
    "tree-drafting-with-overlap-worker",
    raises="ValueError",
    since="0.5.7",
    until="0.5.11",
    bad="sglang=0.5.9 SGLANG_ENABLE_SPEC_V2=1 -- --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft --speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
    good="sglang=0.5.9 SGLANG_ENABLE_SPEC_V2=1 -- --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft --speculative-num-steps 5 --speculative-eagle-topk 1 --speculative-num-draft-tokens 6",
)
def tree_drafting_with_overlap_worker(c: Config) -> Refusal | None:
    """In these releases the overlapping worker only drafts chains.

    `SGLANG_ENABLE_SPEC_V2=1` chooses it. Draft a chain (`--speculative-eagle-topk 1`), or leave the variable out.
    """
    if not _overlaps_before_0_5_11(c) or (c.speculative_eagle_topk or 0) <= 1:
        return None
    return Refusal(
        at="speculative_eagle_topk",
        related_fields=("SGLANG_ENABLE_SPEC_V2",),
        message=f"{c.shown('speculative_eagle_topk')} is refused with `SGLANG_ENABLE_SPEC_V2`: in this release the overlapping "
        "worker drafts chains only.",
        fixes=(setting(speculative_eagle_topk=1), dropping_env("SGLANG_ENABLE_SPEC_V2")),
    )


def _overlaps_before_0_5_11(c: Config) -> bool:
    names = (
        ("EAGLE", "EAGLE3", "STANDALONE")
        if c.since("0.5.8")
        else ("EAGLE", "EAGLE3")
        if c.since("0.5.7")
        else ("EAGLE",)
    )
    return overlap_worker(c) and c.speculative_algorithm in names


@eagle.adjusts("disable_overlap_schedule", until="0.5.11")
def overlap_worker_before_0_5_11(c: Config) -> None:
    """In these releases drafting overlaps with scheduling only with SGLANG_ENABLE_SPEC_V2=1."""
    if _overlaps_before_0_5_11(c):
        c.set(disable_overlap_schedule=False)
    elif c.since("0.5.7") or not overlap_worker(c):
        c.set(disable_overlap_schedule=True)


@eagle.notes(
    "SPC132",
    "overlap-worker-not-asked-for",
    severity="hint",
    since="0.5.4",
    until="0.5.11",
    bad="sglang=0.5.9 -- --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
    good="sglang=0.5.9 SGLANG_ENABLE_SPEC_V2=1 -- --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def overlap_worker_not_asked_for(c: Config) -> Refusal | None:
    """In these releases drafting overlaps with scheduling only when asked to.

    The worker that drafts while the next batch is scheduled is faster for chains (`--speculative-eagle-topk 1`), and has to be
    chosen with `SGLANG_ENABLE_SPEC_V2=1`. From 0.5.11 on it is the default.
    """
    names = ("EAGLE", "EAGLE3") if c.since("0.5.7") else ("EAGLE",)
    chain = c.speculative_algorithm in names and c.speculative_eagle_topk == 1 and not c.enable_multi_layer_eagle
    if not chain or c.env.is_set("SGLANG_ENABLE_SPEC_V2") or c.typed("disable_overlap_schedule"):
        return None
    return Refusal(
        at="speculative_algorithm",
        related_fields=("SGLANG_ENABLE_SPEC_V2",),
        message=f"{c.shown('speculative_algorithm')} runs without overlapping here: this release needs `SGLANG_ENABLE_SPEC_V2=1` for the "
        "faster worker.",
        fixes=(setting_env(SGLANG_ENABLE_SPEC_V2="1"),),
    )


@eagle.adjusts("enable_mixed_chunk")
def eagle_without_mixed_chunk(c: Config) -> None:
    """A draft model of its own cannot draft in batches that mix prefill and decode (before 0.5.19 no EAGLE draft can)."""
    if c.enable_mixed_chunk and (c.before("0.5.19") or c.speculative_algorithm == "STANDALONE"):
        c.set(enable_mixed_chunk=False)


# --- which draft ----------------------------------------------------------------------------------------------------


@eagle.adjusts("speculative_draft_model_path", "speculative_draft_model_revision")
def draft_in_target(c: Config) -> None:
    """The target's checkpoint holds a draft layer of its own."""
    since = DRAFTS_ITSELF_SINCE.get(c.model.architecture)
    if since is None or (since and c.before(since)) or c.speculative_draft_model_path is not None:
        return
    c.set(speculative_draft_model_path=c.model_path)
    if c.since("0.5.6"):
        c.set(speculative_draft_model_revision=c.revision)


iquest = Handler(
    "speculative_hook.py:_handle_iquest_q1_mtp_draft",
    since="0.5.21",
    when=lambda c: is_eagle(c) and c.model.architecture == "IQuestQ1ForCausalLM",
    rare=True,
)


@iquest.refuses("SPC131", "iquest-draft-that-does-not-fit", raises="ValueError")
def iquest_draft_that_does_not_fit(c: Config) -> Refusal | None:
    """IQuest Q1 drafts with its own MTP checkpoint, as a chain.

    It needs `--speculative-draft-model-path` with that checkpoint (not the target's path), whose width, vocabulary and layer count match
    the target's; no `--speculative-token-map`; at least one step; topk 1 and draft tokens = steps + 1 if they are given.
    """
    problem = _iquest_problem(c)
    if problem is None:
        return None
    at, why = problem
    return Refusal(
        at=at,
        related_fields=("model_path",),
        message=f"{c.shown(at)} is refused for IQuest Q1: {why}.",
        fixes=(dropping(at), Change(drop=DRAFT_SHAPE)),
    )


def _iquest_problem(c: Config) -> tuple[str, str] | None:
    if c.speculative_draft_model_path in (None, c.model_path):
        return "speculative_algorithm", "it needs --speculative-draft-model-path with its own draft checkpoint"
    draft, target, path = draft_facts(c), c.model, "speculative_draft_model_path"
    if draft.model_type not in ("iquest_q1_mtp", "iquest_q1-mtp"):
        return None if not draft.complete else (path, "the draft is not its MTP checkpoint")
    if (draft.hidden_size, draft.vocab_size) != (target.hidden_size, target.vocab_size):
        return path, "the draft's width and vocabulary must be the target's"
    if draft.hf("num_target_layers") != target.num_hidden_layers:
        return path, "the draft is made for another number of layers"
    if c.speculative_token_map is not None:
        return "speculative_token_map", "its draft has the whole vocabulary"
    steps = c.speculative_num_steps if c.speculative_num_steps is not None else draft.hf("num_draft_slots")
    if steps < 1:
        return "speculative_num_steps", "it drafts a step at least"
    if c.speculative_eagle_topk not in (None, 1):
        return "speculative_eagle_topk", "it drafts a chain"
    if c.speculative_num_draft_tokens not in (None, steps + 1):
        return "speculative_num_draft_tokens", "a chain is verified with one token more than it has steps"
    return None


@iquest.adjusts(*DRAFT_SHAPE)
def iquest_shape(c: Config) -> None:
    """IQuest Q1 drafts a chain as long as its draft has slots."""
    steps = c.speculative_num_steps
    steps = draft_facts(c).hf("num_draft_slots") if steps is None else steps
    c.set(speculative_num_steps=steps, speculative_eagle_topk=1, speculative_num_draft_tokens=steps + 1)


# --- the shape of the draft -----------------------------------------------------------------------------------------

shape = Handler("speculative_hook.py:_handle_eagle_family", when=is_eagle, earlier=ONE_METHOD)


def _chooses_shape(c: Config) -> bool:
    adaptive = c.since("0.5.14") and c.speculative_adaptive
    return not adaptive and c.speculative_num_steps is None


@shape.refuses(
    "SPC121",
    "topk-without-steps",
    raises="AssertionError",
    bad=(
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft --speculative-eagle-topk 4",
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft --speculative-num-draft-tokens 8",
    ),
    good="--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft --speculative-num-steps 5 "
    "--speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
)
def topk_without_steps(c: Config) -> Refusal | None:
    """Steps, topk and draft tokens must be given all three or not at all.

    Without `--speculative-num-steps` SGLang chooses steps, topk and draft tokens itself, and asserts that neither of
    the other two is given: the server dies with a bare AssertionError. Give all three, or none.
    """
    if not _chooses_shape(c):
        return None
    given = tuple(name for name in DRAFT_SHAPE[1:] if getattr(c, name) is not None)
    if not given:
        return None
    steps, topk, tokens = automatic_shape(c)
    topk = c.speculative_eagle_topk or topk
    steps = max(steps, (c.speculative_num_draft_tokens or 1) - 1) if topk == 1 else steps
    tokens = steps + 1 if topk == 1 else c.speculative_num_draft_tokens or tokens
    return Refusal(
        at=given[0],
        related_fields=given[1:],
        message=f"{c.shown(given[0])} is refused without `--speculative-num-steps`: SGLang then chooses the whole shape of the "
        "draft and dies with a bare AssertionError when one of them is given.",
        fixes=(
            Change(drop=given),
            setting(speculative_num_steps=steps, speculative_eagle_topk=topk, speculative_num_draft_tokens=tokens),
        ),
    )


def automatic_shape(c: Config) -> tuple[int, int, int]:
    """_auto_choose_speculative_params: (steps, topk, draft tokens)."""
    if c.speculative_algorithm == "STANDALONE":
        return 3, 1, 4
    architecture = c.model.architecture
    if architecture in TREES_BY_DEFAULT:
        return 5, 4, 8
    if c.since("0.5.8") or architecture in CHAINS_BEFORE_0_5_8:
        return 3, 1, 4
    if c.since("0.5.6.post1") and architecture in CHAINS_SINCE_0_5_6_POST1:
        return 3, 1, 4
    return (3, 1, 4) if c.since("0.5.7") and architecture == "MiMoV2FlashForCausalLM" else (5, 4, 8)


@shape.adjusts(*DRAFT_SHAPE)
def choose_shape(c: Config) -> None:
    """SGLang drafts a tree of 8 tokens (5 steps, topk 4) for Llama and Grok, a chain of 3 steps for other models."""
    if _chooses_shape(c):
        c.set(**dict(zip(DRAFT_SHAPE, automatic_shape(c), strict=True)))


@shape.refuses(
    "SPC122",
    "steps-without-topk",
    raises="TypeError",
    bad="--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft --speculative-num-steps 3",
    good="--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft --speculative-num-steps 3 "
    "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def steps_without_topk(c: Config) -> Refusal | None:
    """Steps need topk and draft tokens with them.

    SGLang fills in topk only when steps are left out too; given alone, `--speculative-num-steps` ends in a TypeError (None compared with
    a number). Give all three, or none. A chain has topk 1 and one draft token more than steps.
    """
    if c.speculative_num_steps is None or c.speculative_eagle_topk is not None:
        return None
    if c.speculative_use_rejection_sampling and "trtllm_mha" not in backends_of(c):
        return None
    steps = c.speculative_num_steps
    return Refusal(
        at="speculative_num_steps",
        related_fields=("speculative_num_draft_tokens",) if c.given("speculative_num_draft_tokens") else (),
        message=f"{c.shown('speculative_num_steps')} is refused without `--speculative-eagle-topk`: SGLang fills in topk only when "
        "the steps are left out too, and compares None with a number here.",
        fixes=(
            setting(speculative_eagle_topk=1, speculative_num_draft_tokens=steps + 1),
            Change(drop=tuple(name for name in DRAFT_SHAPE if c.given(name))),
        ),
    )


@shape.refuses(
    "SPC123",
    "tree-drafting-on-trtllm-mha",
    raises="ValueError",
    bad="gpu=b200 -- --attention-backend trtllm_mha --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft --speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
    good="gpu=b200 -- --attention-backend trtllm_mha --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft --speculative-num-steps 5 --speculative-eagle-topk 1 --speculative-num-draft-tokens 6",
)
def tree_drafting_on_trtllm_mha(c: Config) -> Refusal | None:
    """trtllm_mha verifies chains of draft tokens, not trees.

    Its kernels have no mask for the branches of a draft tree, so `--speculative-eagle-topk` must be 1 when trtllm_mha
    does prefill or decode. More steps make a longer chain; a backend with tree masks (flashinfer, triton, fa3 on Hopper) verifies trees.
    """
    if c.speculative_eagle_topk is None or c.speculative_eagle_topk <= 1:
        return None
    at = _field_of_trtllm_mha(c)
    if at is None:
        return None
    fixes = [setting(speculative_eagle_topk=1), *(setting(**{at: name}) for name in ("flashinfer", "triton"))]
    return Refusal(
        at="speculative_eagle_topk",
        related_fields=(at,),
        message=f"{c.shown('speculative_eagle_topk')} is refused with {c.shown(at)}: its kernels verify one chain of draft tokens, "
        "not a tree.",
        fixes=tuple(fixes if c.given("speculative_eagle_topk") else [*fixes[1:], _chain(3)]),
    )


def _chain(steps: int) -> Change:
    return setting(speculative_num_steps=steps, speculative_eagle_topk=1, speculative_num_draft_tokens=steps + 1)


def _field_of_trtllm_mha(c: Config) -> str | None:
    """The field that selects trtllm_mha; None if no phase runs it."""
    if c.before("0.5.15") and c.attention_backend == "trtllm_mha":
        return "attention_backend"
    for phase, backend in zip(("prefill", "decode"), backends_of(c), strict=True):
        if backend == "trtllm_mha":
            return backend_field(c, phase)
    return None


# --- rejection sampling ---------------------------------------------------------------------------------------------


@shape.adjusts("speculative_use_rejection_sampling", since="0.5.21")
def sample_on_rocm(c: Config) -> None:
    """ROCm has no kernels for sampled verification of a chain, so drafts are sampled by rejection there."""
    if c.speculative_algorithm != "EAGLE" or c.speculative_eagle_topk != 1 or not c.gpu.is_hip:
        return
    thresholds = (c.speculative_accept_threshold_single, c.speculative_accept_threshold_acc)
    if c.speculative_token_map is not None or thresholds != (1.0, 1.0) or c.enable_deterministic_inference:
        return
    if c.env.number("SGLANG_SIMULATE_ACC_LEN", -1.0) <= 0:
        c.set(speculative_use_rejection_sampling=True)


def _rejects(c: Config) -> bool:
    return bool(c.speculative_use_rejection_sampling)


def _sampling_switch(c: Config) -> str:
    """The flag that asked for rejection sampling."""
    name = "speculative_use_rejection_sampling"
    return "speculative_use_block_verification" if not c.given(name) and c.speculative_use_block_verification else name


@shape.refuses(
    "SPC124",
    "rejection-sampling-algorithm",
    raises="NotImplementedError",
    since="0.5.14",
    bad="--speculative-use-rejection-sampling --speculative-algorithm STANDALONE --speculative-draft-model-path {models}/qwen3-0.6b",
    good="--speculative-use-rejection-sampling --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def rejection_sampling_algorithm(c: Config) -> Refusal | None:
    """Rejection sampling is for EAGLE and EAGLE3 drafts.

    Only their workers hand the draft's probabilities to the verification, which weighs them against the target's. A
    standalone draft model does not.
    """
    if not _rejects(c) or c.speculative_algorithm in ("EAGLE", "EAGLE3"):
        return None
    at = _sampling_switch(c)
    return Refusal(
        at=at,
        related_fields=("speculative_algorithm",),
        message=f"`{c.flag(at)}` is refused with {c.shown('speculative_algorithm')}: only EAGLE and EAGLE3 drafts bring the "
        "probabilities it needs.",
    )


@shape.refuses(
    "SPC125",
    "rejection-sampling-of-tree",
    raises="ValueError",
    since="0.5.14",
    bad=(
        "--speculative-use-rejection-sampling --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft",
        "--speculative-use-rejection-sampling --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
        "--speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
    ),
    good="--speculative-use-rejection-sampling --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def rejection_sampling_of_tree(c: Config) -> Refusal | None:
    """Rejection sampling works on chains only.

    It accepts or rejects one draft token after the other, so the draft must be a chain: `--speculative-eagle-topk 1`.
    For Llama SGLang's own choice is a tree (topk 4), so the three shape flags have to be given there.
    """
    if not _rejects(c) or c.speculative_algorithm not in ("EAGLE", "EAGLE3") or c.speculative_eagle_topk == 1:
        return None
    at, typed = _sampling_switch(c), c.given("speculative_eagle_topk")
    topk = "a draft without topk" if c.speculative_eagle_topk is None else c.shown("speculative_eagle_topk")
    return Refusal(
        at="speculative_eagle_topk" if typed else at,
        related_fields=(at,) if typed else (),
        message=f"`{c.flag(at)}` is refused with {topk}: it samples one chain of draft tokens, so topk must be 1.",
        fixes=(setting(speculative_eagle_topk=1), _chain(c.speculative_num_steps or 3), dropping(at)),
    )


@shape.refuses(
    "SPC126",
    "deterministic-rejection-sampling",
    raises="ValueError",
    since="0.5.14",
    bad="sglang=0.5.22 -- --speculative-use-rejection-sampling --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 "
    "--enable-deterministic-inference",
    good="sglang=0.5.23 -- --speculative-use-rejection-sampling --speculative-algorithm EAGLE3 --speculative-draft-model-path "
    "{models}/eagle3-draft --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 "
    "--enable-deterministic-inference",
)
def deterministic_rejection_sampling(c: Config) -> Refusal | None:
    """Rejection sampling is not deterministic.

    Before 0.5.23 it draws from a generator that all requests share. Since 0.5.23 it is deterministic on GPUs, and
    refused elsewhere.
    """
    if not _rejects(c) or not c.enable_deterministic_inference or c.speculative_eagle_topk != 1:
        return None
    if c.since("0.5.23") and str(c.device).startswith("cuda"):
        return None
    at = _sampling_switch(c)
    return Refusal(
        at=at,
        related_fields=("enable_deterministic_inference",),
        message=f"`{c.flag(at)}` is refused with deterministic inference: its random numbers depend on the batch here.",
        fixes=(dropping(at), dropping("enable_deterministic_inference")),
    )


@shape.refuses(
    "SPC127",
    "rejection-sampling-with-thresholds",
    raises="ValueError",
    since="0.5.14",
    bad="--speculative-use-rejection-sampling --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --speculative-accept-threshold-single 0.5",
    good="--speculative-use-rejection-sampling --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def rejection_sampling_with_thresholds(c: Config) -> Refusal | None:
    """Rejection sampling has no acceptance thresholds.

    It accepts each draft token with the probability that keeps the target's distribution;
    `--speculative-accept-threshold-single` and `-acc` loosen another way of verifying, and would be ignored.
    """
    if not _rejects(c) or c.speculative_eagle_topk != 1 or c.speculative_algorithm not in ("EAGLE", "EAGLE3"):
        return None
    names = ("speculative_accept_threshold_single", "speculative_accept_threshold_acc")
    moved = tuple(name for name in names if getattr(c, name) != 1.0)
    if not moved:
        return None
    at = _sampling_switch(c)
    return Refusal(
        at=moved[0],
        related_fields=(at, *moved[1:]),
        message=f"{c.shown(moved[0])} is refused with `{c.flag(at)}`: rejection sampling has no thresholds.",
        fixes=(dropping(*moved), dropping(at)),
    )


@shape.refuses(
    "SPC128",
    "rejection-sampling-of-layered-draft",
    raises="NotImplementedError",
    since="0.5.14",
    until="0.5.16",
    bad="sglang=0.5.15 -- --speculative-use-rejection-sampling --enable-multi-layer-eagle --speculative-algorithm EAGLE "
    "--speculative-draft-model-path {models}/eagle-draft --speculative-num-steps 3 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 4",
    good="sglang=0.5.15 -- --speculative-use-rejection-sampling --speculative-algorithm EAGLE --speculative-draft-model-path "
    "{models}/eagle-draft --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)
def rejection_sampling_of_layered_draft(c: Config) -> Refusal | None:
    """In these releases rejection sampling does not work with several draft layers.

    Only one draft layer hands its probabilities to the verification; 0.5.16 lifts this.
    """
    if not _rejects(c) or not c.enable_multi_layer_eagle or c.speculative_eagle_topk != 1:
        return None
    return Refusal(
        at="speculative_use_rejection_sampling",
        related_fields=("enable_multi_layer_eagle",),
        message="`--speculative-use-rejection-sampling` is refused with `--enable-multi-layer-eagle` in this release.",
        fixes=(dropping("speculative_use_rejection_sampling"), dropping("enable_multi_layer_eagle")),
    )


# --- what the shape asks for ----------------------------------------------------------------------------------------


@shape.adjusts("speculative_num_draft_tokens")
def chain_tokens(c: Config) -> None:
    """A chain (topk 1) is verified with one token more than it has steps."""
    if c.speculative_eagle_topk == 1:
        c.set(speculative_num_draft_tokens=c.speculative_num_steps + 1)


def page_tree_backends(c: Config) -> tuple[str, ...]:
    """The backends that can store a draft tree on KV pages of several tokens."""
    if c.before("0.5.6"):
        return ("flashinfer",)
    return ("flashinfer", "fa3", "triton") if c.since("0.5.13") else ("flashinfer", "fa3")


@shape.refuses(
    "SPC129",
    "tree-drafting-on-paged-backend",
    raises="ValueError",
    since="0.5.2",
    bad="gpu=b200 -- --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft --speculative-num-steps 5 "
    "--speculative-eagle-topk 8 --speculative-num-draft-tokens 16 --page-size 64 --attention-backend fa4",
    good="gpu=b200 -- --speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft --speculative-num-steps 5 "
    "--speculative-eagle-topk 8 --speculative-num-draft-tokens 16 --page-size 64 --attention-backend triton",
)
def tree_drafting_on_paged_backend(c: Config) -> Refusal | None:
    """A draft tree on KV pages of several tokens needs an attention backend that supports it.

    With `--speculative-eagle-topk` above 1 the draft branches, and the branches share the last page of the prompt. flashinfer, fa3 (since
    0.5.6) and triton (since 0.5.13) copy that page for each branch; other backends would overwrite one branch with another.

    Draft a chain (topk 1), use one of those backends, or keep pages of one token. Pages of one token are no way out for a backend that
    sets its own page size (FlashMLA uses 64).
    """
    if c.speculative_eagle_topk is None or c.speculative_eagle_topk <= 1 or c.page_size <= 1:
        return None
    allowed = page_tree_backends(c)
    if c.attention_backend in allowed:
        return None
    at = c.first_given("speculative_eagle_topk", "speculative_algorithm")
    steps = c.speculative_num_steps
    # without a draft implementation the launch would only fail later
    drafts = c.given("speculative_draft_attention_backend") or c.attention_backend in DRAFT_BACKENDS
    return Refusal(
        at=at,
        related_fields=("page_size", "attention_backend"),
        message=f"{c.shown('speculative_eagle_topk')} is refused with {c.shown('page_size')} and "
        f"{c.shown('attention_backend') if c.attention_backend else 'no attention backend named'}: only "
        f"{', '.join(allowed)} keep a draft tree on pages of several tokens.",
        fixes=(
            *(
                (setting(speculative_eagle_topk=1) if at == "speculative_eagle_topk" else _chain(steps),)
                if drafts
                else ()
            ),
            *(setting(attention_backend=name) for name in _for_gpu(c, allowed)),
            *((page_one(c),) if drafts else ()),
        ),
    )


def _for_gpu(c: Config, names: tuple[str, ...]) -> tuple[str, ...]:
    first = "fa3" if c.gpu.sm90 else "triton" if c.gpu.is_hip else "flashinfer"
    return tuple(sorted((n for n in names if n != "fa3" or c.gpu.sm90), key=lambda name: name != first))


handlers = (eagle, iquest, shape)
