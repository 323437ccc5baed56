"""What DFLASH and DSPARK read of a draft's config.json.

Follows speculative/dflash_utils.py (parse_dflash_draft_config, get_dflash_layer_types) and dspark_components/dspark_config.py. SGLang
falls back to a default when a draft's config makes no sense; so does this module, by `None`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spec_lsp.facts.model import ModelFacts

MARKOV_HEADS = ("vanilla", "gated", "rnn")
BUNDLED_KEYS = ("dspark_block_size", "dspark_markov_rank", "dspark_noise_token_id", "dspark_target_layer_ids")


class _NoSenseError(Exception):
    """The draft's config holds a value that SGLang refuses to read."""


def dflash_block_size(draft: ModelFacts) -> int | None:
    """The draft's block size; None when its config names none or makes no sense."""
    try:
        return _parse_dflash(draft)
    except _NoSenseError:
        return None


def dspark_gamma(draft: ModelFacts) -> int | None:
    """The number of tokens a DSpark draft proposes; None when its config names none or makes no sense."""
    try:
        block_size = _parse_dflash(draft)
        _check_dspark(draft)
        prefixed = draft.hf("dspark_block_size")
        return block_size if prefixed is None else _integer(prefixed)
    except _NoSenseError:
        return None


def bundles_dspark(target: ModelFacts) -> bool:
    """Whether a target's checkpoint carries a DSpark draft head."""
    return any(target.hf(key) is not None for key in BUNDLED_KEYS)


def drafts_causally(draft: ModelFacts) -> bool:
    """Whether every layer of a DFLASH draft is causal or looks through a sliding window."""
    if draft.text_hf("is_causal", False) is True:
        return True
    kinds = draft.text_hf("layer_types", draft.hf("layer_types"))
    return bool(kinds) and set(kinds) == {"sliding_attention"} and len(kinds) == draft.text_hf("num_hidden_layers")


def part_of(draft: ModelFacts, *names: str) -> dict[str, Any]:
    part: dict[str, Any] = {}
    for name in names:
        value = draft.hf(name)
        part.update(value if isinstance(value, Mapping) else {})
    return part


def _integer(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise _NoSenseError from None


def _at_least(value: Any, least: int) -> int | None:
    if value is None:
        return None
    number = _integer(value)
    if number < least:
        raise _NoSenseError
    return number


def _parse_dflash(draft: ModelFacts) -> int | None:
    part = part_of(draft, "dflash_config")
    _at_least(draft.text_hf("num_hidden_layers"), 1)
    _at_least(part.get("num_target_layers", draft.hf("num_target_layers")), 1)
    block_size = _at_least(part.get("block_size", draft.hf("block_size")), 1)
    for pair in (("conv_kernel_size", "conv_group_size"), ("selector_rank", "selector_top_k")):
        first, second = (_at_least(part.get(name, 0), 0) for name in pair)
        if bool(first) != bool(second):
            raise _NoSenseError
    layers = part.get("target_layer_ids", draft.hf("target_layer_ids"))
    if layers is not None and (not isinstance(layers, (list, tuple)) or not layers):
        raise _NoSenseError
    token = part.get("mask_token", draft.hf("mask_token"))
    if token is not None and (not isinstance(token, str) or not token):
        raise _NoSenseError
    _check_token_id(part.get("mask_token_id", draft.hf("mask_token_id")))
    if (
        part.get("projector_type", draft.hf("projector_type")) == "domino"
        and block_size is not None
        and block_size <= 1
    ):
        raise _NoSenseError
    return block_size


def _check_token_id(value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise _NoSenseError


def _check_dspark(draft: ModelFacts) -> None:
    part = part_of(draft, "dflash_config", "dspark_config")
    prefixed = draft.hf("dspark_markov_rank")
    rank = part.get("markov_rank", draft.hf("markov_rank", 0)) if prefixed is None else prefixed
    rank = _at_least(rank, 0) or 0
    head = draft.hf("dspark_markov_head_type")
    head = part.get("markov_head_type", draft.hf("markov_head_type")) if head is None else head
    if rank > 0 and head is None and not bundles_dspark(draft):
        raise _NoSenseError
    if head is not None and str(head).lower() not in MARKOV_HEADS:
        raise _NoSenseError
