"""The cache folder: whose it is, that it may be deleted, and that it does not grow without end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from spec_lsp import kept
from spec_lsp.catalog.builds import content
from spec_lsp.kept import Shelf, cache_folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "spec-lsp" / "things"


def test_the_cache_folder_is_the_users(folder: Path) -> None:
    assert cache_folder() == folder.parent


def used(folder: Path, *names: str) -> None:
    """As if they had been used in this order, the last one now."""
    for age, name in enumerate(reversed(names)):
        os.utime(folder / name, (1_000_000 - age,) * 2)


def test_what_was_not_used_the_longest_goes_first(folder: Path) -> None:
    shelf = Shelf("things", files=3, size=100)
    for name in ("a", "b", "c"):
        shelf.keep(name, name)
    used(folder, "a", "b", "c")
    assert shelf.get("a", 10) == "a"
    shelf.keep("d", "d")
    assert sorted(p.name for p in folder.iterdir()) == ["a", "c", "d"]
    assert shelf.get("b", 10) is None


def test_so_does_what_takes_too_much_and_what_was_half_written(folder: Path) -> None:
    shelf = Shelf("things", files=9, size=10)
    shelf.keep("a", "12345")
    (folder / "tmphalf").write_text("x" * 6)
    used(folder, "tmphalf", "a")
    shelf.keep("b", "12345")
    assert sorted(p.name for p in folder.iterdir()) == ["a", "b"]


def test_of_many_files_too_many_go_now_and_then(folder: Path) -> None:
    shelf = Shelf("things", files=640, size=10_000)
    for n in range(1000):
        shelf.keep(f"{n:x}", "")
    assert 640 <= len(list(folder.iterdir())) < 740


def test_it_may_be_deleted_at_any_time(folder: Path) -> None:
    shelf = Shelf("things", files=9, size=100)
    shelf.keep("a", "1")
    (folder / "a").unlink()
    folder.rmdir()
    assert shelf.get("a", 10) is None
    shelf.keep("a", "2")
    assert shelf.get("a", 10) == "2"


def test_a_text_that_is_longer_than_any_is_none(folder: Path) -> None:
    shelf = Shelf("things", files=9, size=100)
    shelf.keep("a", "123")
    assert shelf.get("a", 2) is None


def test_where_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(kept, "cache_folder", lambda: tmp_path / "file" / "below")
    shelf = Shelf("things", files=9, size=100)
    shelf.keep("a", "1")
    assert shelf.get("a", 10) is None


@pytest.mark.skipif(sys.platform == "win32", reason="every user has a folder there")
@pytest.mark.parametrize("named", [None, "cache"])
def test_somebody_without_a_cache_folder_reads_builds_each_time(
    named: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a container whose user has no home; and no folder is taken that a repository could hold."""
    import pwd

    monkeypatch.undo()
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if named:
        monkeypatch.setenv("XDG_CACHE_HOME", named)
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "packages" / "sglang"
    (root / "srt").mkdir(parents=True)
    (root / "srt" / "server_args.py").write_text("")
    assert content(root) == content(root)
    assert [path.name for path in tmp_path.iterdir()] == ["packages"]
