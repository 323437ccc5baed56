"""Resolve a launch as a person would type it, for the tables of the tests beside this file.

A launch is written as the rules' examples are (see spec_lsp.resolution.examples): `sglang=0.5.19 gpu=b200 model=… -- flags`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from spec_lsp.analysis.argv import Answer, resolve_argv
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.facts.hardware import find
from spec_lsp.facts.known import ADAPTER
from spec_lsp.facts.model import ModelFacts
from spec_lsp.facts.well_known import find_model
from spec_lsp.resolution.examples import read_example

MODELS = Path(__file__).parent.parent / "models"


@cache
def model(path: str) -> ModelFacts | None:
    if path.endswith(ADAPTER):
        return adapter(path)
    config = Path(path.replace("{models}", str(MODELS))) / "config.json"
    return ModelFacts(json.loads(config.read_text())) if config.is_file() else find_model(path)


def adapter(path: str) -> ModelFacts | None:
    """The adapter of this name in tests/adapters."""
    file = MODELS.parent / "adapters" / Path(path).parent.name / ADAPTER
    return ModelFacts(json.loads(file.read_text())) if file.is_file() else None


def answer(text: str) -> Answer:
    """What the launch comes to; without `sglang=` in the newest release."""
    example = read_example(text if " -- " in text else " -- " + text)
    release = Release.parse(example.release) if example.release else releases()[-1]
    hardware = find(example.gpu)
    assert hardware is not None, example.gpu
    return resolve_argv(example.argv, example.env, release, hardware, models=model, files=lambda _: None)


def rules(text: str) -> list[str]:
    """The names of the errors said of the launch, in order."""
    return [said.merged.found.rule.name for said in answer(text).findings if said.merged.severity == "error"]


def resolved(text: str, *fields: str) -> tuple[object, ...]:
    """Fields of the resolved launch; None too where a field is not known."""
    values = answer(text).resolved
    return tuple(values.get(field) for field in fields)
