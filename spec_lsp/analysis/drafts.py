"""Which known models can draft for a target, judged by their config.json: of the kind that the algorithm needs, and of matching sizes."""

from __future__ import annotations

from collections.abc import Iterator

from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.model import ModelFacts
from spec_lsp.facts.well_known import find_model, ids
from spec_lsp.resolution.late.speculative import EAGLE3_DRAFTS


def drafts_for(target: ModelFacts, name: str, algorithm: str) -> list[str]:
    """The ids of known drafts that fit a target called `name`, the most similar names first. `algorithm` may be empty."""
    return sorted(_fitting(target, algorithm), key=lambda draft: -_likeness(draft, name))


def _fitting(target: ModelFacts, algorithm: str) -> Iterator[str]:
    for name in ids():
        draft = find_model(name)
        try:
            if draft is not None and _fits(draft, target, algorithm):
                yield name
        except NotKnown:
            continue


def _fits(draft: ModelFacts, target: ModelFacts, algorithm: str) -> bool:
    """Whether a draft reads the target's tokens and, unless it is a whole model, its hidden states."""
    if draft.vocab_size != target.vocab_size:
        return False
    if algorithm == "STANDALONE":
        return not _is_head(draft) and draft.hidden_size < target.hidden_size
    wanted = draft.architecture in EAGLE3_DRAFTS
    if algorithm in ("EAGLE", "NEXTN"):
        wanted = _is_head(draft) and not wanted
    elif algorithm != "EAGLE3":
        wanted = _is_head(draft) and not algorithm
    return wanted and draft.hidden_size == target.hidden_size


def _is_head(draft: ModelFacts) -> bool:
    return "Eagle" in draft.architecture


def _likeness(draft: str, target: str) -> float:
    from difflib import SequenceMatcher  # takes a while to import

    own, other = (name.rstrip("/").rpartition("/")[2].lower() for name in (draft, target))
    return SequenceMatcher(None, own, other).ratio()
