"""Resolving by difference gives what resolving from scratch gives."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.analysis import run as running
from spec_lsp.analysis.argv import resolve_argv
from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.judge import judge
from spec_lsp.catalog.binding import words_from
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load, releases
from spec_lsp.facts.hardware import find
from spec_lsp.facts.model import ModelFacts
from spec_lsp.resolution import replay
from spec_lsp.resolution.engine import Config, Resolution, hardware_apart, resolve
from spec_lsp.resolution.internal_fields import INTERNAL
from spec_lsp.syntax.launch import Launch, Variant
from spec_lsp.syntax.word import Place, literal
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


def from_scratch(kind: replay.Kind, given: replay.Given, **parts: Any) -> Resolution:
    typed, spelled = given
    c = Config(kind.release, kind.defaults, typed, spelled=spelled, other_fields=kind.other_fields, **parts)
    return resolve(kind.handlers, c)


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


def spread(name: str, number: int) -> list[dict[str, Any]]:
    """So many launches of a file, spread over it."""
    rows = rows_of(DATA / f"{name}.jsonl.gz")
    return rows[:: max(len(rows) // number, 1)][:number]


def same(ask: Any, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is asked for, by difference and from scratch."""
    by_difference = ask()
    with monkeypatch.context() as patch:
        patch.setattr(running, "resolve_by_difference", from_scratch)
        whole: list[dict[str, Any]] = ask()
    assert by_difference == whole
    assert all(not one["faults"] for one in whole)
    return whole


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("world", ["known", "no-model", "no-gpu"])
def test_difference_is_resolution(name: str, world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    models = (lambda path: None) if world == "no-model" else model
    asked = []
    for row in spread(name, ROWS):
        gpu = None if world == "no-gpu" else find(row["gpu"])

        def ask(row: Any = row, gpu: Any = gpu) -> list[dict[str, Any]]:
            answer = resolve_argv(
                row["argv"], row["env"], Release.parse(row["version"]), gpu, models=models, files=lambda path: None
            )
            assert answer.main is not None
            return [told(answer.main.resolution)] if answer.main.resolution else []

        asked.append((ask, same(ask, monkeypatch)))
    for ask, whole in reversed(asked):  # and again, now that all bare launches are known
        assert ask() == whole


GPUS = ("h100", "mi300x", "b200", "rtx5090")


@pytest.mark.parametrize("first", GPUS)
@pytest.mark.parametrize("program", ["launch_server", "config"])  # of the second, what is not given is not known
def test_bare_launches_are_told_from_one_another(first: str, program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever world is met first, the bare launches of other hardware, models and variables come out as from scratch."""
    replay._BARE.clear()
    nowhere = Place("argv", 0, 0)
    for row in spread("0.5.23-b200", ROWS // 3):
        variables = {name: literal(value, nowhere) for name, value in row["env"].items()}
        launch = Launch(program, nowhere, nowhere, (Variant(words_from(row["argv"], "argv"), variables),))
        worlds = [World(Release.parse("0.5.23"), find(gpu), "given", "given") for gpu in (first, *GPUS)]

        def ask(launch: Launch = launch, worlds: Any = worlds) -> list[dict[str, Any]]:
            runs = judge(launch, worlds, model, lambda path: None).runs
            return [told(run.resolution) for run in runs if run.resolution]

        same(ask, monkeypatch)


@pytest.mark.parametrize("known", [True, False])
def test_launches_that_hardly_differ_are_told_from_one_another(known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As fixes are tried: the launch without each of its words in turn, in several worlds, of two releases by turns."""
    nowhere = Place("argv", 0, 0)
    models = model if known else lambda path: None
    taken = [(release, gpu) for gpu in GPUS for release in ("0.5.23", "0.5.19")]
    worlds = [World(Release.parse(release), find(gpu), "given", "given") for release, gpu in taken]
    for row in spread("0.5.23-h100", ROWS // 6):
        for left_out in (None, *range(2, len(row["argv"]))):
            argv = [word for number, word in enumerate(row["argv"]) if number != left_out]
            launch = Launch("launch_server", nowhere, nowhere, (Variant(words_from(argv, "argv"), {}),))

            def ask(launch: Launch = launch) -> list[dict[str, Any]]:
                runs = judge(launch, worlds, models, lambda path: None).runs
                return [told(run.resolution) for run in runs if run.resolution]

            same(ask, monkeypatch)


@pytest.mark.parametrize("field", ["--speculative-draft-model-path", "--lora-paths"])
def test_what_a_path_leads_to_may_change(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same words in another folder, or after an edit there, may name another draft model or adapter."""
    argv = [
        "--model-path",
        "target",
        "--speculative-algorithm",
        "EAGLE3",
        "--tp-size",
        "2",
        "--enable-lora",
        field,
        "own",
    ]
    target = ModelFacts(json.loads((Path(MODELS) / "llama-3.1-8b" / "config.json").read_text()))
    drafts = [ModelFacts({"architectures": [name], "vocab_size": size}) for name, size in (("A", 8), ("B", 9))]
    adapters = [ModelFacts({"r": rank, "target_modules": ["q_proj"]}) for rank in (8, 512)]
    for _ in range(5):
        for draft, adapter in zip((*drafts, None), (*adapters, None), strict=True):

            def models(path: str, draft: Any = draft, adapter: Any = adapter) -> ModelFacts | None:
                return target if path == "target" else adapter if path.endswith("json") else draft

            def ask(models: Any = models) -> list[dict[str, Any]]:
                answer = resolve_argv(
                    argv, {}, Release.parse("0.5.23"), find("h100"), models=models, files=lambda path: None
                )
                assert answer.main is not None
                assert answer.main.resolution is not None
                return [told(answer.main.resolution)]

            same(ask, monkeypatch)


def test_no_field_is_hidden() -> None:
    """Steps read fields as attributes: none may have the name of one that every Config has."""
    fields = {name for release in releases() for name in load(release).defaults} | set(INTERNAL)
    assert not fields & set(dir(Config))


def test_baselines_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MAX_BARE", 3)
    replay._BARE.clear()
    for number in range(5):
        resolve_argv(["--model-path", f"m{number}"], {}, None, find("h100"), models=model, files=lambda path: None)
        assert len(replay._BARE) <= 3


def test_reads_of_hardware_are_those_of_its_facts() -> None:
    """A launch in another world is told by the facts that differ; what was looked up by the hardware as a whole counts as all of them."""
    h100, h200 = find("h100"), find("h200")
    assert h100 is not None
    assert h200 is not None
    c = Config(Release.parse("0.5.23"), {}, {}, gpu=h100, watched=True)
    assert c.gpu.sm90
    assert c.gpu.is_cuda
    assert c.reads == {"@gpu", "@gpu.sm90", "@gpu.is_cuda"}
    assert c.reads.isdisjoint(hardware_apart(h100, h200))
    assert {"@gpu.memory", "@gpu.memory_bounds", "@gpu.*"} <= hardware_apart(h100, h200)
    assert c.gpu == h100
    assert {h100: "found"}[c.gpu] == "found"
    assert not c.reads.isdisjoint(hardware_apart(h100, h200))
    assert hardware_apart(h100, h100) == frozenset()
    assert hardware_apart(None, h100) == {"@gpu"}
