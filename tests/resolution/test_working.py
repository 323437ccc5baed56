"""Launches that are documented as working on the GPU they name: no late error is said of any, least of all that weights do not fit."""

from __future__ import annotations

from pathlib import Path

from spec_lsp.resolution.examples import read_example
from tests.resolution.launching import answer, model

LAUNCHES = [
    line
    for line in (Path(__file__).parent / "data" / "working.txt").read_text().splitlines()
    if not line.startswith("#")
]


def _named(launch: str) -> str:
    argv = read_example(launch).argv
    return argv[argv.index("--model-path") + 1]


def test_no_late_error_is_said_of_launches_that_work() -> None:
    wrong = {
        launch: [said.merged.found.rule.name for said in answer(launch).findings if said.merged.severity == "error"]
        for launch in LAUNCHES
    }
    assert {launch: names for launch, names in wrong.items() if names} == {}


def test_there_are_many_and_all_their_models_are_known() -> None:
    assert len(LAUNCHES) >= 200
    assert [launch for launch in LAUNCHES if model(_named(launch)) is None] == []
