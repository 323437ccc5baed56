"""A real Emacs, in batch, with the configuration of editors/emacs.md: eglot and lsp-mode."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.editors import block, environment, run
from tests.e2e.shared import PATIENCE, RULE, SCRIPT, repaired

DRIVER = Path(__file__).with_name("drive.el")
PAGE = "emacs.md"


def lacks(library: str) -> str:
    """Why Emacs cannot be tried with a library; empty when it can."""
    emacs = shutil.which("emacs")
    if emacs is None:
        return "no Emacs: apt-get install emacs-nox elpa-eglot elpa-lsp-mode"
    code = f'(progn (package-initialize) (kill-emacs (if (locate-library "{library}") 0 1)))'
    done = subprocess.run([emacs, "-q", "--batch", "--eval", code], capture_output=True, timeout=PATIENCE)
    return "" if done.returncode == 0 else f"Emacs has no {library}: apt-get install elpa-{library}"


def drive(script: Path, how: str, init: str, hover: str = "on B200") -> dict[str, Any]:
    """Run a function of drive.el with this configuration, which waits for a hover that holds a text; what each step said."""
    home = script.parent.parent / "home"
    home.mkdir()
    (home / "init.el").write_text(init, "utf-8")
    env = environment(home, SCRIPT=str(script), RULE=RULE, DRIVE=how, HOVER=hover, INIT=str(home / "init.el"))
    done = run(["emacs", "-q", "--batch", "-l", str(DRIVER)], env, cwd=script.parent)
    lines = filter(lambda line: line.startswith("{"), done.stdout.splitlines())
    said = {m["step"]: m["value"] for m in map(json.loads, lines)}
    assert done.returncode == 0, said.get("failed", done.stdout + done.stderr)
    return said


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script in a checkout: both find the project's root by that."""
    folder = (tmp_path / "project é").resolve()
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / "run.sh").write_text(SCRIPT, encoding="utf-8")
    return folder / "run.sh"


def check(said: dict[str, Any], script: Path) -> None:
    assert said["diagnostic"]["text"] in ("--attention-backend trtllm_mha", "--speculative-eagle-topk $TOPK")
    assert "on B200" in said["hover"]
    assert len(said["menu"]) >= 2
    assert script.read_text(encoding="utf-8") == repaired(SCRIPT)


NO_EGLOT = lacks("eglot")
NO_LSP_MODE = lacks("lsp-mode")


@pytest.mark.skipif(bool(NO_EGLOT), reason=NO_EGLOT)
def test_eglot(script: Path) -> None:
    said = drive(script, "with-eglot", block(PAGE, "elisp", "eglot-server-programs"))
    assert said["attached"] == "spec-lsp"
    check(said, script)
    assert said["completed"].lstrip().startswith("--page-size --served-model-name")


@pytest.mark.skipif(bool(NO_EGLOT), reason=NO_EGLOT)
def test_settings_with_eglot(script: Path) -> None:
    script.write_text(SCRIPT.replace("# spec-lsp: sglang=0.5.23 gpu=b200\n", ""), encoding="utf-8")
    settings = block(PAGE, "elisp", "eglot-workspace-configuration")
    said = drive(script, "with-eglot", block(PAGE, "elisp", "eglot-server-programs") + settings, "on B200")
    assert "on B200" in said["hover"]


@pytest.mark.skipif(bool(NO_LSP_MODE), reason=NO_LSP_MODE)
def test_lsp_mode(script: Path) -> None:
    said = drive(script, "with-lsp-mode", block(PAGE, "elisp", "lsp-register-client"))
    assert "spec-lsp" in said["attached"]
    check(said, script)
