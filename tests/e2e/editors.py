"""What the tests of real editors share: the pages under editors/, whose very configuration is tried, and a `spec-lsp` in PATH."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.shared import PATIENCE

ROOT = Path(__file__).parents[2]
EDITORS = ROOT / "editors"


def block(page: str, language: str, holding: str = "") -> str:
    """The first fenced block of a page in this language that holds a text: what a reader would copy.

    A block within a list is as its list item is; its indentation is taken off.
    """
    text = (EDITORS / page).read_text("utf-8")
    for indent, body in re.findall(rf"^([ ]*)```{language}\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL):
        if holding in body:
            return re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
    raise AssertionError(f"editors/{page} has no block of {language} with {holding!r}")


def command_folder(home: Path) -> Path:
    """A folder with a `spec-lsp` that runs this checkout, as pipx would install it."""
    folder = home / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    command = folder / "spec-lsp"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m spec_lsp.cli "$@"\n')
    command.chmod(0o755)
    return folder


def environment(home: Path, **more: str) -> dict[str, str]:
    """A person's environment: a home of their own, and `spec-lsp` in PATH."""
    return {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{command_folder(home)}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8",
        "PATIENCE_MS": str(int(PATIENCE * 1000)),
        **{f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")},
        **more,
    }


def run(words: Sequence[str], env: dict[str, str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run an editor to its end. Its standard input stays open and says nothing: some end when it does."""
    reading, writing = os.pipe()
    try:
        return subprocess.run(
            words,
            env=env,
            cwd=cwd,
            stdin=reading,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=4 * PATIENCE,
        )
    finally:
        os.close(reading)
        os.close(writing)


def version_of(command: str, *words: str) -> str:
    """What an editor says of itself; empty when it does not run."""
    try:
        done = subprocess.run(
            [command, *words], capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
        )
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""
