"""Where an SGLang stands: a checkout, an environment, an editable install as every builder writes it, files that are links."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from spec_lsp.catalog.installed import no_sglang, package_at, sglang_in, uv_cache
from spec_lsp.files import Area

SITE = "env/lib/python3.12/site-packages"


def package(folder: Path) -> Path:
    (folder / "srt").mkdir(parents=True)
    (folder / "srt" / "server_args.py").write_text("class ServerArgs: pass\n")
    return folder


@pytest.mark.parametrize("within", ["", "sglang", "python/sglang"])
def test_where_the_package_lies(tmp_path: Path, within: str) -> None:
    root = package(tmp_path / "checkout" / within)
    assert package_at(tmp_path / "checkout", Area((tmp_path,))) == root
    assert package_at(tmp_path / "checkout", Area((tmp_path / "elsewhere",))) is None


def direct(url: str, **more: object) -> str:
    return json.dumps({"url": url, "dir_info": {"editable": True}, **more})


EDITABLE = {
    "pip": {"sglang-0.5.24.dist-info/direct_url.json": direct("file://SRC/python")},
    "pip, of a subdirectory": {"sglang-0.5.24.dist-info/direct_url.json": direct("file://SRC", subdirectory="python")},
    "setuptools, paths": {"__editable__.sglang-0.5.24.pth": "SRC/python\n"},
    "setuptools, finder": {
        "__editable__.sglang-0.5.24.pth": "import __editable___sglang_0_5_24_finder; __editable___sglang_0_5_24_finder.install()",
        "__editable___sglang_0_5_24_finder.py": "MAPPING: dict[str, str] = {'sglang': 'SRC/python/sglang', 'b': 'c'}\n",
    },
    "hatchling": {"_editable_impl_sglang.pth": "SRC/python"},
    "poetry": {"sglang.pth": "# made\n\nSRC/python\n"},
    "develop": {"sglang.egg-link": "SRC/python\n.", "easy-install.pth": "SRC/python\n"},
    "a relative path": {"own.pth": "../../../../src/python\n"},
}


def environment(tmp_path: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = tmp_path / SITE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("SRC", str(tmp_path / "src dir" if "%20" in text else tmp_path / "src")))
    return tmp_path / "env"


@pytest.mark.parametrize("files", EDITABLE.values(), ids=EDITABLE)
def test_an_editable_install_is_its_checkout(tmp_path: Path, files: Mapping[str, str]) -> None:
    root = package(tmp_path / "src" / "python" / "sglang")
    env = environment(tmp_path, files)
    found = sglang_in(str(env), Area((env,)), Area((tmp_path,)))
    assert found is not None
    assert found.resolve() == root.resolve()
    assert sglang_in(str(env), Area((env,))) is None  # where nobody says that it may lie elsewhere


@pytest.mark.parametrize(
    "files",
    [
        {"sglang-0.5.24.dist-info/direct_url.json": json.dumps({"url": "file://SRC/python", "dir_info": {}})},
        {"sglang-0.5.24.dist-info/direct_url.json": json.dumps({"url": "https://SRC/python"})},
        {"sglang-0.5.24.dist-info/direct_url.json": "{"},
        {"sglang-0.5.24.dist-info/direct_url.json": '{"url": 3}'},
        {"sglang-0.5.24.dist-info/direct_url.json": "[" * 100_000},
        {"sglang-0.5.24.dist-info/direct_url.json": direct("file://[")},
        {"sglang-0.5.24.dist-info/METADATA": ""},
        {"other-1.dist-info/direct_url.json": direct("file://SRC/python")},
        {"sglang.pth": "import os; os.system('x')\n#SRC/python\nSRC/nothing\n\0\n" + "x" * 40_000},
        {"__editable___sglang_finder.py": "MAPPING = {'sglang': '\\x'}"},
    ],
)
def test_what_names_no_checkout(tmp_path: Path, files: Mapping[str, str]) -> None:
    package(tmp_path / "src" / "python" / "sglang")
    env = environment(tmp_path, files)
    assert sglang_in(str(env), Area((env,)), Area((tmp_path,))) is None


def test_an_environment_of_links(tmp_path: Path) -> None:
    """As uv makes it with `--link-mode symlink`: each file leads to its cache."""
    root = package(tmp_path / "cache" / "archive" / "sglang")
    env = environment(tmp_path, {"sglang-0.5.24.dist-info/METADATA": ""})
    (tmp_path / SITE / "sglang" / "srt").mkdir(parents=True)
    (tmp_path / SITE / "sglang" / "srt" / "server_args.py").symlink_to(root / "srt" / "server_args.py")
    assert sglang_in(str(env), Area((env,)), Area((env, tmp_path / "cache"))) == root
    assert sglang_in(str(env), Area((env,))) is None


def test_the_cache_of_uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    assert uv_cache() == str(tmp_path / "uv")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "own"))
    assert uv_cache() == str(tmp_path / "own")


def test_what_is_said_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "sglang-0.5.24-py3-none-any.whl").write_text("")
    assert no_sglang(str(tmp_path)) == "holds no SGLang (no srt/server_args.py)"
    assert "unpack it" in no_sglang(str(tmp_path / "sglang-0.5.24-py3-none-any.whl"))
