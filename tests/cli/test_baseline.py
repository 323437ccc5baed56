"""`check --baseline`: only new findings count, however lines move."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import UNKNOWN_FLAG, Ran

Run = Callable[..., Ran]


@pytest.fixture
def known(run: Run, folder: Path) -> str:
    """A baseline of all that the folder's files have."""
    ran = run("check", "--write-baseline", "known.json")
    assert ran.code == 0
    assert "findings to `known.json`" in ran.out
    return "known.json"


def test_known_findings_are_not_told(run: Run, folder: Path, known: str) -> None:
    assert run("check").code == 1
    ran = run("check", "--baseline", known)
    assert ran.code == 0
    assert "nothing to report" in ran.out
    assert "known from the baseline" in ran.out


@pytest.mark.parametrize(
    "moved", ["# a line\n\n{}", "{}\n# behind\n", "sglang serve x\n{}"], ids=["down", "up", "a launch above"]
)
def test_what_moves_stays_known(run: Run, folder: Path, known: str, moved: str) -> None:
    text = (folder / "unknown.sh").read_text("utf-8")
    (folder / "unknown.sh").write_text(moved.format(text), "utf-8")
    assert run("check", "--baseline", known).code == 0


def test_a_new_finding_counts(run: Run, folder: Path, known: str) -> None:
    (folder / "more.sh").write_text(UNKNOWN_FLAG.replace("--no-such", "--nor-such"), "utf-8")
    ran = run("check", "--baseline", known, "--format", "json")
    assert ran.code == 1
    assert [f["file"] for f in json.loads(ran.out)] == ["more.sh"]


def test_one_more_of_the_same_is_new(run: Run, folder: Path, known: str) -> None:
    text = (folder / "unknown.sh").read_text("utf-8")
    (folder / "unknown.sh").write_text(text + text.splitlines()[-1] + "\n", "utf-8")
    ran = run("check", "--baseline", known)
    assert ran.code == 1
    assert "1 error" in ran.out


def test_what_is_gone_is_told_of_checked_files_only(run: Run, folder: Path, known: str) -> None:
    (folder / "unknown.sh").write_text("#!/bin/bash\nsglang serve ./llama\n", "utf-8")
    assert "1 of the baseline are gone" in run("check", "--baseline", known).out
    assert "gone" not in run("check", "clean.sh", "--baseline", known).out


def test_it_holds_from_another_folder(run: Run, folder: Path, known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    assert run("check", "..", "--baseline", "../known.json").code == 0


def test_writing_twice_writes_the_same(run: Run, folder: Path, known: str) -> None:
    before = (folder / known).read_bytes()
    run("check", "--write-baseline", known)
    assert (folder / known).read_bytes() == before
    assert [e["file"] for e in json.loads(before)["findings"]] == sorted(
        e["file"] for e in json.loads(before)["findings"]
    )


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "other"}', "nonsense", "[" * 5000])
def test_what_is_no_baseline_is_said_to_be_none(run: Run, folder: Path, text: str) -> None:
    (folder / "bad.json").write_text(text)
    ran = run("check", "--baseline", "bad.json")
    assert ran.code == 2
    assert "is no baseline of spec-lsp" in ran.err


@pytest.mark.parametrize("more", [["--fix"], ["--diff"], ["--output", "x"]])
def test_writing_a_baseline_does_nothing_else(run: Run, folder: Path, more: list[str]) -> None:
    assert run("check", "--write-baseline", "known.json", *more).code == 2
    assert not (folder / "known.json").exists()


def test_a_baseline_that_is_not_there_is_told(run: Run, folder: Path) -> None:
    ran = run("check", "--baseline", "gone.json")
    assert ran.code == 2
    assert "does not exist; write one with --write-baseline" in ran.err
