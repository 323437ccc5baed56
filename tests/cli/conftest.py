"""A folder with a model and launches, and ways to run the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from spec_lsp.cli.main import main

MODELS = Path(__file__).parents[1] / "models"

CLEAN = """\
#!/bin/bash
python3 -m sglang.launch_server --model-path ./llama --page-size 16
"""

REFUSED = """\
#!/bin/bash
# spec-lsp: sglang=0.5.23 gpu=b200
TOPK=4
python3 -m sglang.launch_server \\
  --model-path ./llama \\
  --speculative-algorithm EAGLE3 --speculative-draft-model-path ./draft \\
  --speculative-num-steps 3 --speculative-num-draft-tokens 8 \\
  --speculative-eagle-topk $TOPK \\
  --attention-backend trtllm_mha  # Zoë
"""

UNKNOWN_FLAG = """\
#!/bin/bash
python3 -m sglang.launch_server --model-path ./llama --no-such-flag-at-all
"""


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: `clean.sh`, `refused.sh`, `unknown.sh`, and the models they name."""
    for name, model in (("llama", "llama-3.1-8b"), ("draft", "eagle3-draft")):
        shutil.copytree(MODELS / model, tmp_path / name)
    for name, text in (("clean", CLEAN), ("refused", REFUSED), ("unknown", UNKNOWN_FLAG)):
        (tmp_path / f"{name}.sh").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    for variable in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `spec-lsp` in this process."""

    def run_(*words: str | Path) -> Ran:
        code = main([str(w) for w in words])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run_


@pytest.fixture
def spawn(folder: Path) -> Callable[..., Ran]:
    """Run `spec-lsp` in a process of its own, with `input` on standard input."""

    def spawn_(*words: str | Path, input: bytes = b"", **env: str) -> Ran:
        command = [sys.executable, "-m", "spec_lsp.cli", *map(str, words)]
        done = subprocess.run(
            command, input=input, capture_output=True, check=False, env={**os.environ, **env}, timeout=60
        )
        return Ran(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    return spawn_
