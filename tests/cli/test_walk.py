"""Which files a folder holds for `check`."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.cli.check import may_be_launched_from
from spec_lsp.cli.errors import UsageError
from spec_lsp.cli.walk import candidates
from spec_lsp.files import Area
from tests.draws import draws

needs_git = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


def tree(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("sglang\n")


def found(*paths: Path) -> list[str]:
    return [c.path for c in candidates([str(p) for p in paths])]


def relative(root: Path, *paths: Path) -> list[str]:
    return [os.path.relpath(p, root) for p in found(*(paths or (root,)))]


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def test_without_a_checkout_caches_and_environments_are_left_out(tmp_path: Path) -> None:
    tree(
        tmp_path, "b.sh", "a.sh", ".github/workflows/x.yml", "node_modules/x.sh", ".venv/x.sh", "sub/c.yaml", "logo.png"
    )
    assert relative(tmp_path) == [".github/workflows/x.yml", "a.sh", "b.sh", "sub/c.yaml"]


@needs_git
def test_what_git_ignores_is_left_out(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    tree(tmp_path, "a.sh", "out/b.sh", "sub/c.sh", "sub/d.log", "node_modules/kept.sh")
    (tmp_path / ".gitignore").write_text("out/\n")
    (tmp_path / "sub/.gitignore").write_text("*.log\n")
    assert relative(tmp_path) == [".gitignore", "a.sh", "node_modules/kept.sh", "sub/.gitignore", "sub/c.sh"]
    assert relative(tmp_path, tmp_path / "sub") == ["sub/.gitignore", "sub/c.sh"]


@needs_git
def test_an_ignored_folder_that_is_named_is_walked(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    tree(tmp_path, "out/b.sh")
    (tmp_path / ".gitignore").write_text("out/\n")
    assert relative(tmp_path, tmp_path / "out") == ["out/b.sh"]
    assert relative(tmp_path, tmp_path / "out/b.sh") == ["out/b.sh"]


@needs_git
def test_a_repository_inside_a_repository_is_walked(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    tree(tmp_path, "inner/a.sh", "inner/skip.sh")
    git(tmp_path / "inner", "init", "-q")
    (tmp_path / "inner/.gitignore").write_text("skip.sh\n")
    assert "inner/a.sh" in relative(tmp_path)
    assert "inner/skip.sh" not in relative(tmp_path)


@needs_git
def test_a_hook_s_own_git_variables_do_not_mislead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q")
    tree(tmp_path, "a.sh")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert relative(tmp_path) == ["a.sh"]


def test_each_file_comes_once_and_order_is_kept(tmp_path: Path) -> None:
    tree(tmp_path, "x/b.sh", "x/a.sh", "c.sh")
    assert relative(tmp_path, tmp_path / "c.sh", tmp_path / "x", tmp_path / "x/a.sh", tmp_path / "c.sh") == [
        "c.sh",
        "x/a.sh",
        "x/b.sh",
    ]


def test_a_linked_folder_is_not_followed(tmp_path: Path) -> None:
    tree(tmp_path, "a/x.sh")
    (tmp_path / "a/loop").symlink_to(tmp_path / "a")
    assert relative(tmp_path) == ["a/x.sh"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("in_checkout", [False, pytest.param(True, marks=needs_git)])
def test_what_is_no_file_is_left_out(in_checkout: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "a/x.sh")
    (tmp_path / "gone.sh").symlink_to(tmp_path / "nowhere.sh")
    (tmp_path / "one.sh").symlink_to(tmp_path / "other.sh")
    (tmp_path / "other.sh").symlink_to(tmp_path / "one.sh")
    (tmp_path / "a/up").symlink_to(tmp_path)
    (tmp_path / "link.sh").symlink_to(tmp_path / "a/x.sh")
    os.mkfifo(tmp_path / "pipe.sh")
    monkeypatch.chdir(tmp_path)  # the names of sockets are short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("listening.sh")
    if in_checkout:
        git(tmp_path, "init", "-q")
    area = Area((tmp_path,))
    looked_at = [c.path for c in candidates([str(tmp_path)]) if may_be_launched_from(c, area)]
    assert [os.path.relpath(p, tmp_path) for p in looked_at] == ["a/x.sh", "link.sh"]


def test_a_folder_that_may_not_be_entered_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "a.sh", "closed/b.sh", "z/c.sh")
    closed = str(tmp_path / "closed")
    monkeypatch.setattr(os, "scandir", refusing(closed))
    told: list[str] = []
    assert [c.path for c in candidates([str(tmp_path)], note=told.append)] == [
        str(tmp_path / n) for n in ("a.sh", "z/c.sh")
    ]
    assert told == [closed]


def refusing(closed: str) -> Callable[[str], AbstractContextManager[Iterator[os.DirEntry[str]]]]:
    """`os.scandir` for a person who may not read a folder: whoever runs the tests may be allowed everything."""
    real = os.scandir

    def scandir(path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        if path == closed:
            raise PermissionError
        return real(path)

    return scandir


def test_a_path_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        found(tmp_path / "gone.sh")


# --- git is the oracle -------------------------------------------------------------------------------------------------

TREE = (
    "a.sh",
    "b.log",
    "build/a.sh",
    "sub/a.sh",
    "sub/build/b.sh",
    "sub/deep/b.log",
    "sub/deep/c.sh",
    "x y/a.sh",
    "out/keep.sh",
)
LINES = (
    "*.log",
    "build/",
    "/build",
    "sub/*",
    "!c.sh",
    "deep",
    "!sub/deep/",
    "**/a.sh",
    "out/*",
    "!out/keep.sh",
    "x y",
    "/sub/**/b.*",
    "*",
    "!*/",
)


@needs_git
@draws(25)
@given(
    st.dictionaries(
        st.sampled_from(["", "sub/", "sub/deep/", "out/"]),
        st.lists(st.sampled_from(LINES), min_size=1, max_size=4),
        max_size=3,
    ),
    st.lists(st.sampled_from(LINES), max_size=2),
    st.lists(st.sampled_from(LINES), max_size=2),
)
def test_a_walk_finds_what_git_finds(
    tmp_path_factory: pytest.TempPathFactory, own: dict[str, list[str]], of_checkout: list[str], of_user: list[str]
) -> None:
    root, home = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
        patch.delenv("GIT_CONFIG_GLOBAL", raising=False)
        (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/mine  # a comment\n")
        (home / "mine").write_text("\n".join(of_user))
        git(root, "init", "-q")
        git(root, "config", "core.excludesFile", "/nowhere") if not of_user else None
        tree(root, *TREE)
        for folder, lines in own.items():
            (root / folder / ".gitignore").write_text("\n".join(lines) + "\n")
        (root / ".git" / "info" / "exclude").write_text("\n".join(of_checkout) + "\n")
        listed = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-z", "--others", "--exclude-standard"],
            check=True,
            capture_output=True,
        )
        expected = sorted(name for name in listed.stdout.decode().split("\0") if name)
        assert sorted(relative(root)) == expected


@needs_git
def test_a_linked_worktree_has_the_excludes_of_its_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "main")
    main = tmp_path / "main"
    git(main, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", "../tree")
    (main / ".git" / "info" / "exclude").write_text("no.sh\n")
    tree(tmp_path / "tree", "a.sh", "no.sh")
    assert relative(tmp_path / "tree") == ["a.sh"]
