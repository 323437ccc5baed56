"""`spec-lsp check --upgrade`: what another release would change."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran

Run = Callable[..., Ran]

OLD = """\
# spec-lsp: sglang=0.5.9 gpu=h100
python3 -m sglang.launch_server --model-path ./llama --stream-output --hicache-mem-layout layer_first
"""


@pytest.fixture
def old(folder: Path) -> str:
    (folder / "old.sh").write_text(OLD, encoding="utf-8")
    return "old.sh"


def test_text(run: Run, old: str) -> None:
    found = run("check", old, "--upgrade", "0.5.23")
    assert found.code == 1
    assert "`--incremental-streaming-output`" in found.out
    assert "info: changed-value[SPC028]" in found.out


def test_json(run: Run, old: str) -> None:
    found = json.loads(run("check", old, "--upgrade", "0.5.23", "--format", "json").out)
    kinds = {(f["rule"], f["severity"]) for f in found}
    assert kinds == {("unknown-flag", "error"), ("changed-value", "information")}
    (removed,) = [f for f in found if f["rule"] == "unknown-flag"]
    assert [fix["title"] for fix in removed["fixes"]] == ["Write `--incremental-streaming-output`"]
    assert not any("hicache-mem-layout" in f["message"] for f in found)


def test_a_file_that_survives(run: Run, old: str) -> None:
    found = run("check", old, "--upgrade", "0.5.9")
    assert (found.code, "error" in found.out) == (0, False)


def test_fix_writes_what_the_target_takes(run: Run, old: str, folder: Path) -> None:
    run("check", old, "--upgrade", "0.5.23", "--fix", "--unsafe-fixes")
    assert "--incremental-streaming-output" in (folder / old).read_text(encoding="utf-8")


def test_no_release(run: Run, old: str) -> None:
    found = run("check", old, "--upgrade", "newest")
    assert found.code == 2
    assert "`newest` is not a release of SGLang" in found.err
