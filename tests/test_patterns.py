"""`exclude` means what .gitignore means; git itself is the oracle where it is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.patterns import Patterns
from tests.draws import draws

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


# --- laws --------------------------------------------------------------------------------------------------------------

PIECES = (
    "a",
    "b",
    "*",
    "**",
    "?",
    "[ab]",
    "[!a]",
    "/",
    "\\",
    ".sh",
    "]",
    "-",
    "[a-b]",
    "[b-a]",
    "[[:alpha:]]",
    "**/",
    "/**",
    "!",
    " ",
    "#",
)
NAMES = ("a", "b", "ab", "a.sh", "x]y", "a b", "-", "a\\b", "aab", "!x", "#c")


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@draws(40)
@given(
    st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join), min_size=1, max_size=3),
    st.lists(
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join), min_size=1, max_size=20, unique=True
    ),
)
def test_any_patterns_mean_what_git_means(
    tmp_path_factory: pytest.TempPathFactory, patterns: list[str], paths: list[str]
) -> None:
    if any(re.search(r"\[[^]]*/|\\\\/", p) for p in patterns):
        return  # a slash in brackets or behind a backslash: git itself takes the one for text and the other for a slash
    if any(re.search(r"[^/]\*\*+(/|$)", p) for p in patterns):
        return  # git before 2.41 compares unrelated pointers there: its answer depends on where the texts lie in memory
    folder = tmp_path_factory.mktemp("git")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".gitignore").write_text("\n".join(patterns) + "\n")
    run = subprocess.run(
        ["git", "-C", str(folder), "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(paths), capture_output=True, text=True, check=False,
    )  # fmt: skip
    ours = Patterns(patterns)
    assert {p for p in paths if ours.match(p)} == set(run.stdout.split("\0")) - {""}


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 400 + "*b", "a" * 4000), ("**/a/" * 90 + "b", "/".join("a" * 200)), ("?" * 900 + "*b", "a" * 3000),
        ("**/*a*a*/**/*a*a*/**/*a*/c", "/".join(["a" * 20] * 80)), ("[a]*" * 200 + "b", "a" * 2000), ("[a-" * 300 + "]", "a" * 300),
    ],
)  # fmt: skip
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    """A pattern that backtracks would not end at all."""
    assert not Patterns([pattern]).match(path)
