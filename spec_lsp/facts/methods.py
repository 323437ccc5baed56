"""The GPUs and data types that each quantization method supports on NVIDIA, by release.

data/methods.json lists for each method of SGLang's registry the releases in which something about it changed (null: the method was
removed). It is generated from sglang/srt/layers/quantization by `python -m tests.sources.methods`, never edited. SGLang compares before it
builds the model (model_loader/loader.py, _get_quantization_config).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from spec_lsp.catalog.release import Release
from spec_lsp.records import NamedTuple


class Requirements(NamedTuple):
    """What a method requires of the GPU (`capability`: 89 for 8.9; None: unknown) and of the activations (`dtypes`; empty: unknown)."""

    capability: int | None = None
    dtypes: tuple[str, ...] = ()

    def runs_on(self, capability: tuple[int, int]) -> bool:
        return self.capability is None or capability[0] * 10 + capability[1] >= self.capability


NOTHING_KNOWN = Requirements()

GENERATIONS = {
    60: "Pascal", 70: "Volta", 75: "Turing", 80: "Ampere", 89: "Ada or Hopper", 90: "Hopper", 100: "Blackwell",
}  # fmt: skip
"""The usual names of the oldest GPUs with a capability."""


@cache
def requirements(method: str, release: Release) -> Requirements:
    """The requirements of this release's `method`; empty if the release does not have it."""
    found = None
    for since, facts in _table().get(method, {}).items():
        if release >= Release.parse(since):
            found = facts
    return NOTHING_KNOWN if found is None else Requirements(found.get("capability"), tuple(found.get("dtypes", ())))


def needed(capability: int) -> str:
    """A capability in words: "SM89 (Ada or Hopper)"."""
    name = GENERATIONS.get(capability)
    return f"SM{capability}" + (f" ({name})" if name else "")


@cache
def _table() -> Mapping[str, Mapping[str, dict[str, Any] | None]]:
    text = Path(__file__).with_name("data").joinpath("methods.json").read_text("utf-8")
    table: Mapping[str, Mapping[str, dict[str, Any] | None]] = json.loads(text)
    return table
