"""The names that SGLang keeps in lists and registries, by release.

data/registers.json is generated from the sources by `python -m tests.sources.registers`, never edited:

| register | names |
| --- | --- |
| `cpu_methods` | quantization methods with kernels for CPUs |
| `overlapping_classes` | model classes that load their weights while CUDA graphs are captured |
| `mxfp4_runners` | MoE runners for MXFP4 experts |
| `fused_runners` | MoE runners that do an exchange and the experts in one function |
| `exchanges_of_RUNNER` | the exchanges for which a runner has such a function |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from spec_lsp.catalog.release import Release


@cache
def register(name: str, release: Release) -> frozenset[str] | None:
    """The names in a register of this release; None if the release does not have it."""
    found = None
    for since, facts in _table().get(name, {}).items():
        if release >= Release.parse(since):
            found = facts
    return None if found is None else frozenset(found["names"])


@cache
def _table() -> Mapping[str, Mapping[str, Mapping[str, list[str]] | None]]:
    text = Path(__file__).with_name("data").joinpath("registers.json").read_text("utf-8")
    table: Mapping[str, Mapping[str, Mapping[str, list[str]] | None]] = json.loads(text)
    return table
