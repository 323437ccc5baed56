"""Random launches of models of many architectures, with what the real SGLang made of them on simulated hardware.

data/architectures.jsonl.gz has a launch a line, as tests/truth/data has; the models are those of tests/models and of
data/architectures.json (config.json by name, less what no resolution reads).
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.analysis.argv import Answer, resolve_argv
from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import find
from spec_lsp.facts.model import ModelFacts

DATA = Path(__file__).parent / "data"
MODELS = Path(__file__).parent.parent / "models"
CONFIGS: dict[str, Any] = json.loads((DATA / "architectures.json").read_text())

Row = dict[str, Any]


def rows() -> list[Row]:
    with gzip.open(DATA / "architectures.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@cache
def model(path: str) -> ModelFacts | None:
    name = path.rpartition("/")[2]
    known = CONFIGS.get(name) or json.loads((MODELS / name / "config.json").read_text())
    return ModelFacts(known)


def ask(row: Row) -> Answer:
    gpu = find(row["gpu"])
    assert gpu is not None
    return resolve_argv(row["argv"], row["env"], Release.parse(row["version"]), gpu, models=model, files=lambda _: None)


def place(function: str) -> str:
    return function.rpartition(":")[2].lstrip("_")


def by_model() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows():
        found.setdefault(row["argv"][1].rpartition("/")[2], []).append(row)
    return found


def equal(mine: object, real: object) -> bool:
    if isinstance(mine, float) and isinstance(real, float):
        return abs(mine - real) < 1e-6
    return (list(mine) if isinstance(mine, tuple) else mine) == real and isinstance(mine, bool) is isinstance(
        real, bool
    )


@pytest.mark.parametrize(("name", "launches"), by_model().items(), ids=by_model())
def test_as_the_real_one(name: str, launches: list[Row]) -> None:
    """Every refusal is found, at its place and of its kind; nothing else is refused; no field that is known is wrong."""
    for row in launches:
        answer = ask(row)
        early = [
            s.merged.found.rule
            for s in answer.findings
            if s.merged.severity == "error" and not s.merged.found.rule.late
        ]
        if row["outcome"] == "refused":
            where = early[0].place(Release.parse(row["version"])) if early else ("", "")
            assert (place(where[0]), where[1]) == (place(row["error"]["at"]), row["error"]["type"]), row
        else:
            assert not early, (row["argv"], answer.findings)
            wrong = {
                k: (v, row["resolved"][k])
                for k, v in answer.resolved.items()
                if k in row["resolved"] and not equal(v, row["resolved"][k])
            }
            assert not wrong, (row["argv"], wrong)


def test_there_are_enough_architectures() -> None:
    assert len({model(name).architecture for name in by_model()}) >= 40  # type: ignore[union-attr]
