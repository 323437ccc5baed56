"""A real Vim with ALE and the configuration of editors/vim.md."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.e2e.editors import block, environment, run, version_of
from tests.e2e.shared import RULE, SCRIPT, repaired

DRIVER = Path(__file__).with_name("drive.vim")
ALE = (Path("/usr/share/vim-ale"), Path("/usr/share/vim/vimfiles/pack/dist-bundle/opt/ale"))
"""Where Debian's vim-ale may be; `packadd ale` finds it by itself."""

VIMRC = """\
set nocompatible noswapfile hidden viminfo= shortmess+=I encoding=utf-8
filetype plugin indent on
let g:ale_linters_explicit = 1
let g:ale_linters = {'sh': ['spec-lsp']}
let g:ale_lint_delay = 50
packadd ale
"""


def vim() -> tuple[str, str]:
    """A Vim with what ALE needs, and why there is none."""
    for name in ("vim.nox", "vim.gtk3", "vim"):
        found = shutil.which(name)
        told = version_of(found, "--version") if found else ""
        if found and all(feature in told for feature in ("+job", "+channel", "+timers", "+lambda")):
            return found, "" if any(path.exists() for path in ALE) else "no ALE: apt-get install vim-ale"
    return "", "no Vim with jobs and channels: apt-get install vim-nox vim-ale"


VIM, LACKS = vim()
pytestmark = pytest.mark.skipif(bool(LACKS), reason=LACKS)


def test_ale(tmp_path: Path) -> None:
    project, home = (tmp_path / "project é").resolve(), tmp_path / "home"
    project.mkdir()
    home.mkdir()
    script, told, vimrc = project / "run.sh", tmp_path / "said.jsonl", home / "vimrc"
    script.write_text(SCRIPT, encoding="utf-8")
    vimrc.write_text(VIMRC + block("vim.md", "vim", "ale#linter#Define"), encoding="utf-8")
    env = environment(home, TERM="dumb", SCRIPT=str(script), RULE=RULE, SAID=str(told))
    done = run([VIM, "--not-a-term", "-N", "-u", str(vimrc), "-S", str(DRIVER)], env, cwd=project)
    lines = told.read_text("utf-8").splitlines() if told.exists() else []
    said = {m["step"]: m["value"] for m in map(json.loads, lines)}
    assert done.returncode == 0, said.get("failed", done.stdout[-2000:] + done.stderr)
    assert said["diagnostic"]["text"] in ("--attention-backend trtllm_mha", "--speculative-eagle-topk $TOPK")
    assert "**" not in said["hover"], "ALE asks for plain text"
    assert script.read_text(encoding="utf-8") == repaired(SCRIPT)
