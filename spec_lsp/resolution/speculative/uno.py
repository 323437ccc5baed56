"""UNO drafting: the target drafts for itself with an adapter. Follows arg_groups/speculative_hook.py, _handle_uno."""

from __future__ import annotations

from spec_lsp.resolution.attention import backends_of
from spec_lsp.resolution.engine import Change, Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.ranks import attention_dp, no_attention_dp

MOST_NODES = 128
MOST_SLOTS = 2048

handler = Handler("speculative_hook.py:_handle_uno", since="0.5.20", when=lambda c: c.speculative_algorithm == "UNO")
_GOOD = "--speculative-algorithm UNO --uno-lora-path adapter --speculative-num-draft-tokens 4"


def _misfit(c: Config) -> tuple[str, str, Change] | None:
    """The first setting that UNO does not support: the field, why, the fix."""
    if not str(c.device).startswith("cuda"):
        return "device", "it drafts on NVIDIA and AMD GPUs only", dropping("device")
    if c.speculative_draft_model_path is not None:
        return "speculative_draft_model_path", "the target drafts for itself", dropping("speculative_draft_model_path")
    if c.uno_lora_path is None:
        return "speculative_algorithm", "it needs `--uno-lora-path`", dropping("speculative_algorithm")
    if c.enable_deterministic_inference:
        return (
            "enable_deterministic_inference",
            "it samples without a seed of each request",
            dropping("enable_deterministic_inference"),
        )
    if c.enable_strict_thinking:
        return "enable_strict_thinking", "it does not decode with a grammar", dropping("enable_strict_thinking")
    return None


@handler.refuses(
    "SPC176",
    "setting-that-uno-lacks",
    raises="ValueError",
    bad=("--speculative-algorithm UNO --speculative-num-draft-tokens 4", _GOOD + " --enable-strict-thinking"),
    good=_GOOD,
)
def setting_that_uno_lacks(c: Config) -> Refusal | None:
    """UNO drafts with the target itself and an adapter, on a GPU.

    It needs `--uno-lora-path`, and works with no draft model, no deterministic inference and no strict thinking.
    """
    return _refusal(c, _misfit(c))


def _refusal(c: Config, problem: tuple[str, str, Change] | None) -> Refusal | None:
    if problem is None:
        return None
    at, why, fix = problem
    return Refusal(
        at=at,
        related_fields=() if at == "speculative_algorithm" else ("speculative_algorithm",),
        message=(
            f"{c.shown(at)} is refused with UNO: " if at != "speculative_algorithm" else f"{c.shown(at)} is refused: "
        )
        + f"{why}.",
        fixes=(fix, dropping("speculative_algorithm")),
    )


def _topk(c: Config) -> int:
    return 1 if c.speculative_eagle_topk is None else int(c.speculative_eagle_topk)


def _bad_shape(c: Config) -> tuple[str, str, Change] | None:
    tokens, topk, steps = c.speculative_num_draft_tokens, _topk(c), c.speculative_num_steps
    width = "speculative_num_draft_tokens"
    if tokens is None or tokens < 1:
        return (
            (width if c.given(width) else "speculative_algorithm"),
            "it needs `--speculative-num-draft-tokens` of 1 or more",
            setting(speculative_num_draft_tokens=4),
        )
    if topk < 1:
        return "speculative_eagle_topk", "topk is at least 1", dropping("speculative_eagle_topk")
    if topk == 1:
        return None
    if steps is None or steps < 1:
        return (
            "speculative_eagle_topk",
            "a tree needs `--speculative-num-steps` of 1 or more",
            setting(speculative_eagle_topk=1),
        )
    return _tree_problem(int(tokens), topk, int(steps))


def _tree_problem(tokens: int, topk: int, steps: int) -> tuple[str, str, Change] | None:
    width, chain = "speculative_num_draft_tokens", setting(speculative_eagle_topk=1)
    if tokens < steps + 1:
        return width, f"a tree of {steps} steps verifies at least {steps + 1} tokens", setting(**{width: steps + 1})
    if tokens > MOST_NODES:
        return width, f"a tree verifies {MOST_NODES} tokens at most", setting(**{width: MOST_NODES})
    if tokens * topk > MOST_SLOTS:
        return width, f"draft tokens times topk are {MOST_SLOTS} at most", chain
    capacity, row = 1, 1
    for _ in range(steps):
        row *= topk
        capacity += row
        if capacity >= tokens:
            break
    most = min(capacity, topk * (steps - 1) + 2)
    return (
        (width, f"a tree of {steps} steps and topk {topk} holds {most} tokens at most", setting(**{width: most}))
        if tokens > most
        else None
    )


@handler.refuses(
    "SPC177",
    "uno-shape",
    raises="ValueError",
    bad=(
        "--speculative-algorithm UNO --uno-lora-path adapter",
        "--speculative-algorithm UNO --uno-lora-path adapter --speculative-num-draft-tokens 2 --speculative-num-steps 3 "
        "--speculative-eagle-topk 2",
    ),
    good="--speculative-algorithm UNO --uno-lora-path adapter --speculative-num-draft-tokens 6 --speculative-num-steps 3 "
    "--speculative-eagle-topk 2 --attention-backend fa3",
)
def uno_shape(c: Config) -> Refusal | None:
    """UNO cannot draft this shape.

    It needs `--speculative-num-draft-tokens`. A tree (topk above 1) needs `--speculative-num-steps` too, and the tokens must be at least
    steps + 1, at most 128, at most 2048 / topk, and no more than such a tree holds: topk × (steps − 1) + 2.
    """
    return _refusal(c, _bad_shape(c))


def _tree_misfit(c: Config) -> tuple[str, str, Change] | None:
    for name, what in (("enable_pdmux", "PD multiplexing"), ("enable_two_batch_overlap", "two-batch overlap")):
        if getattr(c, name):
            return name, f"a tree does not work with {what}", dropping(name)
    for name in ("speculative_accept_threshold_single", "speculative_accept_threshold_acc"):
        if getattr(c, name) != 1.0:
            return name, "a tree is verified without thresholds", dropping(name)
    return None


@handler.refuses(
    "SPC178",
    "setting-that-uno-trees-lack",
    raises="ValueError",
    bad="--speculative-algorithm UNO --uno-lora-path adapter --speculative-num-draft-tokens 6 --speculative-num-steps 3 "
    "--speculative-eagle-topk 2 --speculative-accept-threshold-single 0.5",
    good="--speculative-algorithm UNO --uno-lora-path adapter --speculative-num-draft-tokens 6 --speculative-num-steps 3 "
    "--speculative-eagle-topk 2 --attention-backend fa3",
)
def setting_that_uno_trees_lack(c: Config) -> Refusal | None:
    """UNO's trees work with neither PD multiplexing, nor two-batch overlap, nor acceptance thresholds.

    A chain (topk 1) works with all three.
    """
    return _refusal(c, _tree_misfit(c)) if _topk(c) > 1 else None


@handler.adjusts("speculative_num_steps", "speculative_eagle_topk")
def chain_is_one_step(c: Config) -> None:
    """UNO drafts a chain in one step."""
    if _topk(c) == 1:
        c.set(speculative_num_steps=1, speculative_eagle_topk=1)


def _parallel_misfit(c: Config) -> tuple[str, str, Change] | None:
    for name in ("tp_size", "pp_size"):
        if getattr(c, name) != 1:
            return name, "it runs on one GPU", dropping(name)
    if attention_dp(c):
        return "speculative_algorithm", "it does not work with data-parallel attention", no_attention_dp(c)
    if c.attn_cp_size != 1:
        return "attn_cp_size", "it does not work with context parallelism", dropping("attn_cp_size")
    for name in ("enable_lora", "lora_paths"):
        if getattr(c, name):
            return name, "its own adapter leaves no room for others", dropping("enable_lora", "lora_paths")
    if c.speculative_use_rejection_sampling:
        return (
            "speculative_use_rejection_sampling",
            "it samples in its own way",
            dropping("speculative_use_rejection_sampling"),
        )
    return None


@handler.adjusts("enable_lora_overlap_loading", "lora_strict_loading")
def uno_adapter_loading(c: Config) -> None:
    """UNO's adapter is loaded whole before the first request."""
    c.set(enable_lora_overlap_loading=False, lora_strict_loading=True)


@handler.refuses(
    "SPC179",
    "uno-beyond-one-gpu",
    raises="ValueError",
    bad=_GOOD + " --tp-size 2",
    good=_GOOD,
)
def uno_beyond_one_gpu(c: Config) -> Refusal | None:
    """UNO serves one model on one GPU, with its own adapter and its own sampling.

    Tensor, pipeline, context and data-parallel attention, other LoRA adapters and rejection sampling are refused.
    """
    return _refusal(c, _parallel_misfit(c))


@handler.adjusts("enable_mixed_chunk")
def uno_without_mixed_chunk(c: Config) -> None:
    """UNO cannot draft in batches that mix prefill and decode."""
    c.set(enable_mixed_chunk=False)


@handler.refuses(
    "SPC180",
    "uno-off-fa3",
    raises="ValueError",
    bad=_GOOD + " --attention-backend triton",
    good=_GOOD,
)
def uno_off_fa3(c: Config) -> Refusal | None:
    """UNO runs on fa3 only, for prefill and for decoding; that means Hopper, where fa3 is the default.

    Its draft and verification steps are written for that backend. SGLang chooses it on Hopper when topk is not given;
    with topk above 1 name `--attention-backend fa3`.
    """
    if backends_of(c) == ("fa3", "fa3"):
        return None
    names = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
    at = next((name for name in names if c.given(name) and getattr(c, name) != "fa3"), "attention_backend")
    return Refusal(
        at=at if c.given(at) else "speculative_algorithm",
        related_fields=("speculative_algorithm",) if c.given(at) else ("attention_backend",),
        message=f"{c.shown(at)} is refused with UNO: it runs on fa3 only.",
        fixes=(Change(set={"attention_backend": "fa3"}, drop=names[1:]), dropping("speculative_algorithm")),
    )
