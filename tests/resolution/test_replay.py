"""Resolving by difference gives what resolving from scratch gives."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.analysis import judge
from spec_lsp.analysis.direct import resolve_argv
from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import find
from spec_lsp.facts.model import ModelFacts
from spec_lsp.resolution import replay
from spec_lsp.resolution.engine import Config, Resolution, resolve
from tests.truth.score import DATA, MODELS, rows_of

FILES = (
    "0.5.23-h100",
    "0.5.23-b200",
    "0.5.23-mi300x",
    "0.5.19-h100",
    "0.5.15-b200",
    "0.5.12-h100",
    "0.5.9-b200",
    "0.5.6-h100",
)
ROWS = int(os.environ.get("SPEC_LSP_REPLAY_ROWS", "24"))
"""Launches of each file, spread over it; more on demand."""
_models: dict[str, ModelFacts | None] = {}


def model(path: str) -> ModelFacts | None:
    name = path.rpartition("/")[2]
    if name not in _models:
        config = Path(MODELS) / name / "config.json"
        _models[name] = ModelFacts(json.loads(config.read_text())) if config.is_file() else None
    return _models[name]


def from_scratch(
    handlers: Any, release: Any, defaults: Any, given: replay.Given, *, open_: bool, **parts: Any
) -> Resolution:
    return resolve(handlers, Config(release, defaults, given.typed, spelled=given.spelled, **parts))


def told(resolution: Resolution) -> dict[str, Any]:
    config = resolution.config
    return {
        "fields": config.fields(),
        "unknown": set(config.unknown()),
        "findings": [(f.rule.name, f.said) for f in resolution.findings],
        "undecided": set(resolution.undecided),
        "faults": resolution.faults,
        "history": {f: [(d.step.name, d.previous, d.value) for d in ds] for f, ds in config.history.items()},
    }


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("world", ["known", "no-model", "no-gpu"])
def test_difference_is_resolution(name: str, world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    models = (lambda path: None) if world == "no-model" else model
    asked = []
    rows = rows_of(DATA / f"{name}.jsonl.gz")
    for row in rows[:: max(len(rows) // ROWS, 1)][:ROWS]:
        gpu = None if world == "no-gpu" else find(row["gpu"])

        def ask(row: Any = row, gpu: Any = gpu) -> list[dict[str, Any]]:
            answer = resolve_argv(
                row["argv"], row["env"], Release.parse(row["version"]), gpu, models=models, files=lambda path: None
            )
            assert answer.main is not None
            return [told(answer.main.resolution)] if answer.main.resolution else []

        by_difference = ask()
        with monkeypatch.context() as patch:
            patch.setattr(judge, "resolve_by_difference", from_scratch)
            whole = ask()
        assert by_difference == whole, row["argv"]
        assert all(not one["faults"] for one in whole)
        asked.append((row["argv"], ask, whole))
    for argv, ask, whole in reversed(asked):  # now nothing is run: all is remembered
        assert ask() == whole, argv


def test_baselines_are_bounded() -> None:
    assert len(replay._BASELINES) <= replay.MAX_BASELINES
