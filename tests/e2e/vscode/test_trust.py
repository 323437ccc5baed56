"""A folder that is not trusted: nothing that it holds is run, whoever's settings name it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.shared import SCRIPT
from tests.e2e.vscode.conftest import Vscode
from tests.e2e.vscode.editor import Editor

expect = pytest.importorskip("playwright.sync_api", reason="no Playwright: run tests/e2e/vscode/setup").expect

PROGRAMS = ("evil", "spec-lsp", "python3", "bin/spec-lsp", ".venv/bin/python", ".venv/bin/spec-lsp")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder that would be run wherever it can: each of its programs leaves `ran` beside the folder."""
    folder = tmp_path / "hostile"
    for name in PROGRAMS:
        program = folder / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\ntouch "{tmp_path}/ran"\n')
        program.chmod(0o755)
    (folder / "run.sh").write_text(SCRIPT, encoding="utf-8")
    return folder


@pytest.mark.parametrize("named", ["./evil", ".venv/bin/python"])
def test_what_a_folder_names_is_not_run(
    named: str, hostile: Path, careful: Vscode, window: Callable[..., Editor], tmp_path: Path
) -> None:
    (hostile / ".vscode").mkdir()
    told = {"spec-lsp.path": named, "spec-lsp.python": str(hostile / "python3"), "spec-lsp.verifyOnSave": True}
    (hostile / ".vscode" / "settings.json").write_text(json.dumps(told))
    editor = window(hostile, careful)
    editor.open("run.sh")
    expect(editor.squiggle()).to_have_count(1)  # by the server on PATH
    assert not (tmp_path / "ran").exists()


def test_a_setting_of_one_s_own_that_every_folder_fills_is_not_run(
    hostile: Path, careful: Vscode, window: Callable[..., Editor], tmp_path: Path
) -> None:
    settings = careful.data / "user" / "User" / "settings.json"
    before = settings.read_text("utf-8")
    settings.write_text(json.dumps({**json.loads(before), "spec-lsp.path": ".venv/bin/python"}))
    try:
        editor = window(hostile, careful)
        editor.open("run.sh")
        expect(editor.notification("is a program of this folder, which you do not trust")).to_be_visible()
        assert not (tmp_path / "ran").exists()
    finally:
        settings.write_text(before)
