"""What SGLang's model classes can do and insist on, by release.

data/classes.json has for each class that an `architectures` of config.json can name the releases in which something of it changed
(null: the class is gone). It is made from sglang/srt/models by `python -m tests.sources.classes`; nobody types it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from spec_lsp.catalog.release import Release
from spec_lsp.expressions import expression


class ClassFacts(NamedTuple):
    """One class in one release.

    `heads`: over which ranks it insists on sharing its query heads evenly (all TP ranks, or those of attention TP; empty: it does not
    say), `kv_heads`: its KV heads too. `mlp`: every MLP is split over all TP ranks. `stages`: its forward pass takes the hidden states
    of a pipeline stage before it, and it can be built as one of several. `captures`: the kinds of drafts ("eagle3", "dflash", "dspark")
    it collects hidden states for.
    `expert_width`: the key of config.json that says how wide its routed experts are (empty: it is not read there).
    `expert_each`: it refuses more TP ranks than experts. `expert_copies`: it takes redundant experts. `vision`: it builds VisionAttention.
    """

    captures: tuple[str, ...] = ()
    stages: bool | None = None
    heads: Literal["", "tp", "attn"] = ""
    kv_heads: bool = False
    mlp: str = ""
    expert_width: str = ""
    expert_each: bool = False
    expert_copies: bool = True
    vision: bool = False


@cache
def class_facts(name: str, release: Release) -> ClassFacts | None:
    """The class of this name; None when this release does not serve it (a plugin or a newer release may)."""
    found = None
    for since, facts in _table().get(name, {}).items():
        if release >= Release.parse(since):
            found = facts
    return None if found is None else ClassFacts(**{**found, "captures": tuple(found["captures"])})


_NO_TARGET = expression(
    "NextN|MTP|Eagle|Draft|DSpark|Assistant|LiLiCorr|MindSpore|Transformers|TorchNative|Bert|Roberta|Contriever|CLIP|Embedding"
    "|Bidirectional|Classification|Reward|PixtralVision"
)


def is_target(name: str) -> bool:
    """Whether a class generates text by itself, going by its name: no draft, no embedding or scoring model, no wrapper for others."""
    return _NO_TARGET.search(name) is None


@cache
def first_release(name: str) -> Release | None:
    """The first of the releases looked at (0.5.6 is the oldest) that serves the class; None when none does."""
    return next((Release.parse(r) for r, facts in _table().get(name, {}).items() if facts is not None), None)


@cache
def in_transformers(name: str, release: Release) -> bool:
    """Whether the Transformers that this release comes with may name the class, so that SGLang can fall back to it.

    data/transformers.json is made by `python -m tests.sources.transformers` from the versions that releases ask for.
    """
    since = _in_transformers().get(name)
    return since is not None and release >= Release.parse(since)


@cache
def _in_transformers() -> Mapping[str, str]:
    text = Path(__file__).with_name("data").joinpath("transformers.json").read_text("utf-8")
    table: Mapping[str, str] = json.loads(text)
    return table


@cache
def _table() -> Mapping[str, Mapping[str, dict[str, Any] | None]]:
    text = Path(__file__).with_name("data").joinpath("classes.json").read_text("utf-8")
    table: Mapping[str, Mapping[str, dict[str, Any] | None]] = json.loads(text)
    return table
