"""How much memory of each GPU a launch needs, in words: an estimate for hovers and `spec-lsp resolve`, never a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from spec_lsp.facts.memory import GIB
from spec_lsp.resolution.engine import Config
from spec_lsp.resolution.late.memory import Estimate, estimate

ASSUMES = (
    "An estimate from config.json: attention, MLP, experts and embeddings; activations, CUDA graphs, drafts and the memory that other "
    "programs hold are not counted."
)


def of(config: Config) -> Estimate | None:
    """The estimate for a resolved configuration; None if the weights are unknown."""
    try:
        return estimate(config)
    except (
        AttributeError,
        ValueError,
        TypeError,
        ZeroDivisionError,
    ):  # a field that this release does not have, or a size that makes no sense
        return None


def lines(config: Config) -> Iterator[str]:
    """One sentence each about weights, KV cache, the tokens that fit, and what is assumed; empty if nothing is known."""
    found = of(config)
    if found is None:
        return
    over = f"TP {config.tp_size}" + (f" × PP {config.pp_size}" if config.pp_size > 1 else "")
    yield (
        f"Weights on each GPU: {found.weights / GIB:.1f} GiB ({found.billions:.1f} billion parameters, {found.per_parameter:g} "
        f"{'byte' if found.per_parameter == 1 else 'bytes'} each in linear layers, over {over})."
    )
    if found.per_token is not None:
        fits = ""
        if found.tokens is not None and found.total is not None:
            fits = f"; about {found.tokens:,} tokens fit into {found.fraction:.3g} of {found.total / GIB:.1f} GiB"
        yield f"KV cache: {found.per_token / 1024:.1f} KiB for each token{fits}."
    yield ASSUMES
