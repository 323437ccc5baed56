"""SGLang as somebody has it: what is a release, what is a build of one's own, and what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spec_lsp import kept
from spec_lsp.catalog import builds, store
from spec_lsp.catalog.builds import NoBuildError, content, release_at, wheels
from spec_lsp.catalog.fingerprints import Definition, shipped
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.source import read_flags
from spec_lsp.catalog.variables import read_variables
from tests.sources.unpacked import unpacked

SERVER_ARGS = """
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", type=str, required=True)
        parser.add_argument("--own", type=int, default=LIMIT)

LIMIT = 7
"""
OTHER = 'import os\nX = os.environ.get("SGLANG_OF_OUR_OWN", "1")\n'


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kept, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(builds, "LEAST_SHARED", 0)  # the small ones of these tests share no function with SGLang
    before = dict(store.builds)
    yield
    store.builds.clear()
    store.builds.update(before)


def package(folder: Path, server_args: str = SERVER_ARGS) -> Path:
    """A small SGLang whose folder has another name."""
    (folder / "srt").mkdir(parents=True)
    (folder / "srt" / "server_args.py").write_text(server_args)
    (folder / "other.py").write_text(OTHER)
    return folder


def test_a_build_is_read_with_its_own_flags_and_variables(tmp_path: Path) -> None:
    release = release_at(package(tmp_path / "our-sglang"))
    assert release.local
    assert release.stock in store.releases()
    assert str(release) == f"{release.stock}+{release.local}"
    own = store.load(release).flag("--own")
    assert own is not None
    assert (own.type, own.default) == ("int", 7)
    assert [f.name for f in store.load(release).flags] == ["--help", "--model-path", "--own"]
    assert list(store.environment(release)) == ["SGLANG_OF_OUR_OWN"]
    assert store.nearest(release) == release


def test_what_was_read_is_kept_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = package(tmp_path / "one")
    release = release_at(root)
    (file,) = (tmp_path / "cache" / "sglang").glob("*.json")
    store.builds.clear()
    monkeypatch.setattr(builds, "_read", None)  # it is not read again
    assert release_at(package(tmp_path / "two")) == release
    assert store.load(release).flag("--own") is not None
    assert json.loads(file.read_text())["flags"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"release": "0.5.23"}', '{"release": 3}', "\0", "[" * 100_000])
def test_what_is_kept_and_broken_is_read_again(tmp_path: Path, text: str) -> None:
    release = release_at(package(tmp_path / "one"))
    (file,) = (tmp_path / "cache" / "sglang").glob("*.json")
    file.write_text(text)
    store.builds.clear()
    assert release_at(tmp_path / "one") == release


def test_the_content_is_that_of_the_modules(tmp_path: Path) -> None:
    root = package(tmp_path / "one")
    before = content(root)
    (root / "__pycache__").mkdir()
    (root / "__pycache__" / "x.py").write_text("x")
    (root / "_version.py").write_text("version = '1'")
    (root / "note.txt").write_text("x")
    assert content(root) == before
    (root / "other.py").write_text(OTHER + "\n")
    assert content(root) != before


def test_a_file_that_is_as_it_was_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = package(tmp_path / "one")
    before = content(root)
    monkeypatch.setattr(builds, "_data", None)
    assert content(root) == before
    for file in (tmp_path / "cache" / "sglang").iterdir():
        file.write_text("broken")
    with pytest.raises(TypeError):
        content(root)


@pytest.mark.parametrize(
    "server_args",
    [
        "",
        "class ServerArgs:\n    pass\n",
        "def broken(:\n",
        "\0",
        "x = " + "(" * 5_000,
        "class ServerArgs: add_cli_args = 1",
    ],
)
def test_a_broken_checkout_is_told(tmp_path: Path, server_args: str) -> None:
    with pytest.raises(NoBuildError, match="cannot be read as SGLang"):
        release_at(package(tmp_path / "one", server_args))


def test_a_folder_without_sglang(tmp_path: Path) -> None:
    with pytest.raises(NoBuildError, match=r"holds no SGLang that can be read \(srt/server_args.py"):
        release_at(tmp_path)


def test_what_shares_no_function_with_a_release_is_not_sglang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its few flags would make every launch wrong. What shares enough is a build, whichever release that is."""
    root = package(tmp_path / "one")
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(NoBuildError, match=r"not recognised as SGLang: it shares 0 of \d+ functions with 0\.\d+"):
        release_at(root)
    for release in store.releases():
        known = list(shipped(release).items())
        part = {k: Definition(k, v if n % 3 else "0", frozenset(), 1, 1) for n, (k, v) in enumerate(known)}
        nearest, shared = builds.nearest_release(part)
        assert nearest[:3] == release[:3]
        assert nearest[:3] == release[:3]
        assert shared >= 0.6 * len(known)


def test_every_wheel_is_known() -> None:
    assert set(wheels().values()) == set(store.releases())


# --- against SGLang's own sources --------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", unpacked(), ids=str)
def test_sources_give_what_importing_gives(release: Release) -> None:
    """The shipped flags were made by import, and tests/catalog/data holds argparse's own."""
    root = unpacked()[release]
    reading = read_flags(root)
    assert reading.doubts == ()
    assert reading.flags == store.load(release).flags
    assert {v.name: v for v in read_variables(root)} == store.environment(release)


@pytest.mark.parametrize("release", unpacked(), ids=str)
def test_a_pristine_wheel_is_its_release(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its content, and by what it holds where its files are others, as in a checkout."""
    assert release_at(unpacked()[release]) == release
    monkeypatch.setattr(builds, "wheels", dict)
    assert release_at(unpacked()[release]) == release
