"""`exclude` means what .gitignore means; git itself is the oracle where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from spec_lsp.patterns import Patterns

PATHS = [
    "a.sh", "b.yaml", "build/a.sh", "deep/build/a.sh", "deep/er/a.sh", "deep/er/b.yaml", "third_party/x/a.sh", "a[1].sh", "ab.sh", "# x",
    "deep/x1.sh", "deep/x2.sh", "with blank.sh",
]  # fmt: skip

CASES = [
    (["*.sh"], ["a.sh", "build/a.sh", "deep/build/a.sh", "deep/er/a.sh", "third_party/x/a.sh", "a[1].sh", "ab.sh", "deep/x1.sh", "deep/x2.sh", "with blank.sh"]),
    (["/a.sh"], ["a.sh"]),
    (["a.sh"], ["a.sh", "build/a.sh", "deep/build/a.sh", "deep/er/a.sh", "third_party/x/a.sh"]),
    (["build/"], ["build/a.sh", "deep/build/a.sh"]),
    (["/build"], ["build/a.sh"]),
    (["deep/*.sh"], ["deep/x1.sh", "deep/x2.sh"]),
    (["deep/**"], ["deep/build/a.sh", "deep/er/a.sh", "deep/er/b.yaml", "deep/x1.sh", "deep/x2.sh"]),
    (["**/er/*.yaml"], ["deep/er/b.yaml"]),
    (["deep/**/a.sh"], ["deep/build/a.sh", "deep/er/a.sh"]),
    (["x[12].sh"], ["deep/x1.sh", "deep/x2.sh"]),
    (["x[!1].sh"], ["deep/x2.sh"]),
    (["a\\[1\\].sh"], ["a[1].sh"]),
    (["a?.sh"], ["ab.sh"]),
    (["*.sh", "!a.sh"], ["a[1].sh", "ab.sh", "deep/x1.sh", "deep/x2.sh", "with blank.sh"]),
    (["deep/", "!deep/er/a.sh"], ["deep/build/a.sh", "deep/er/a.sh", "deep/er/b.yaml", "deep/x1.sh", "deep/x2.sh"]),
    (["# x", "", "   "], []),
    (["with blank.sh"], ["with blank.sh"]),
]  # fmt: skip


@pytest.mark.parametrize(("patterns", "expected"), CASES, ids=[" ".join(p) for p, _ in CASES])
def test_patterns_mean_what_git_means(patterns: list[str], expected: list[str], tmp_path: Path) -> None:
    ours = Patterns(patterns)
    assert [p for p in PATHS if ours.match(p)] == expected
    if shutil.which("git"):
        assert _git(tmp_path, patterns) == set(expected)


def _git(folder: Path, patterns: list[str]) -> set[str]:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".gitignore").write_text("\n".join(patterns) + "\n")
    run = subprocess.run(
        ["git", "-C", str(folder), "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(PATHS),
        capture_output=True,
        text=True,
        check=False,
    )
    return set(run.stdout.split("\0")) - {""}
