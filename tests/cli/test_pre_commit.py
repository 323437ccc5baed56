"""The hook of `.pre-commit-hooks.yaml`, run by the real pre-commit on a repository that uses it as the README shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEMO = (ROOT / "editors" / "demo.sh").read_text("utf-8")
FIXED = DEMO.replace("TOPK=4", "TOPK=1")
RULE = "tree-drafting-on-trtllm-mha"


def _lacks() -> str:
    """Why it cannot be tried here; empty when it can."""
    if find_spec("pre_commit") is None:
        return "pre-commit is not installed: pip install pre-commit"
    if shutil.which("git") is None:
        return "git is not installed"
    asked = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", tempfile.mkdtemp(), "hatchling"]
    got = subprocess.run(asked, capture_output=True, check=False, timeout=120).returncode == 0
    return "" if got else "pre-commit builds the hook with packages that cannot be had here"


def git(folder: Path, *words: str) -> str:
    """Run git with an identity of its own and nothing of this machine's or of an outer hook's."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env |= {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A repository with what the hook needs of this one as it is on the disk, and its revision."""
    if lacking := _lacks():
        pytest.skip(lacking)
    folder = tmp_path_factory.mktemp("hooks")
    (folder / "docs").mkdir()
    for name in (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE", "docs/rules.md"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "spec_lsp", folder / "spec_lsp", ignore=shutil.ignore_patterns("__pycache__"))
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")
    return folder, git(folder, "rev-parse", "HEAD")


def commit_checked(project: Path, home: Path) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | {"PRE_COMMIT_HOME": str(home)}
    words = [sys.executable, "-m", "pre_commit", "run", "--all-files", "--color", "never"]
    return subprocess.run(words, cwd=project, env=env, capture_output=True, text=True, check=False)


def test_the_hook_of_the_readme(hooks: tuple[Path, str], tmp_path: Path) -> None:
    folder, revision = hooks
    readme = (ROOT / "README.md").read_text("utf-8")
    example = re.search(r"^```yaml\n(repos:\n.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert example
    config = re.sub(r"repo: \S+", f"repo: {folder.as_uri()}", example[1])
    project = tmp_path / "project"
    project.mkdir()
    (project / ".pre-commit-config.yaml").write_text(re.sub(r"rev: \S+", f"rev: {revision}", config))
    (project / "run it.sh").write_text(DEMO)
    (project / "other.txt").write_text("sglang serve x --no-such-flag\n")
    git(project, "init", "-q")
    git(project, "add", "-A")
    done = commit_checked(project, tmp_path / "cache")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{RULE}[" in done.stdout
    assert "run it.sh:11" in done.stdout
    assert "no-such-flag" not in done.stdout, "a kind of file that the hook is not for"
    (project / "run it.sh").write_text(FIXED)
    git(project, "add", "-A")
    done = commit_checked(project, tmp_path / "cache")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout
