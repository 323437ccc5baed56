"""What the families of speculative algorithms share."""

from __future__ import annotations

from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.model import ModelFacts
from spec_lsp.resolution.engine import Change, Config, Earlier, Refusal, dropping, setting

ONE_METHOD = (
    Earlier("0.5.3", "server_args.py:__post_init__"),
    Earlier("0.5.13", "server_args.py:_handle_speculative_decoding"),
)
"""Until 0.5.12 one method of ServerArgs did it all."""

RUNNING_REQUESTS = 48
DRAFT_SHAPE = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


DRAFT_BACKENDS = {
    "flashinfer": "", "triton": "", "aiter": "", "fa3": "", "hybrid_linear_attn": "", "flashmla": "", "trtllm_mha": "",
    "trtllm_mla": "", "nsa": "", "ascend": "", "fa4": "0.5.10", "dsv4": "0.5.12", "tokenspeed_mla": "0.5.12", "dsa": "0.5.13",
    "cutedsl_mla": "0.5.13", "intel_amx": "0.5.16", "intel_xpu": "0.5.20",
}  # fmt: skip
"""The backends with a draft implementation, and since when."""


def is_eagle(c: Config) -> bool:
    """Whether the EAGLE family handles the algorithm."""
    return c.speculative_algorithm in ("EAGLE", "EAGLE3", "STANDALONE")


def draft_facts(c: Config) -> ModelFacts:
    """The draft's facts. Raises NotKnown when it has none or they cannot be read."""
    facts = c.draft
    if facts is None:
        raise NotKnown("draft model", "no draft model is named")
    return facts


def page_one(c: Config) -> Change:
    """Pages of one token."""
    return setting(page_size=1)


def cap_running_requests(c: Config) -> None:
    """Limit requests to 48 at once unless another limit is given."""
    if c.max_running_requests is None:
        c.set(max_running_requests=RUNNING_REQUESTS)


# --- algorithms that draft a block at once (DFLASH, DSPARK) -------------------------------------------------------------


def refused_device(c: Config) -> Refusal:
    """The refusal of a device that the algorithm does not draft on."""
    return Refusal(
        at="speculative_algorithm",
        related_fields=("device",) if c.given("device") else (),
        message=f"{c.shown('speculative_algorithm')} is refused with {c.shown('device')}: {c.speculative_algorithm} does not draft there.",
        fixes=(dropping("speculative_algorithm"), dropping("device")),
    )


def refused_stages(c: Config, why: str) -> Refusal:
    """The refusal of pipeline parallelism."""
    return Refusal(
        at="pp_size",
        related_fields=("speculative_algorithm",),
        message=f"{c.shown('pp_size')} is refused with {c.shown('speculative_algorithm')}: {why}.",
        fixes=(dropping("pp_size"), dropping("speculative_algorithm")),
    )


def refused_block(c: Config, field: str, default: int) -> Refusal | None:
    """The refusal of a block without a token; `default` is its usual size."""
    size = getattr(c, field)
    if size is None or size > 0:
        return None
    return Refusal(
        at=field,
        message=f"{c.shown(field)} is refused: a block holds at least one token.",
        fixes=(dropping(field), setting(**{field: default})),
    )
