"""Files, models, pins and settings of folders on disk."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from spec_lsp.files import MAX_DOCUMENT
from spec_lsp.workspace import DiskWorkspace, decode, pinned_release


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\n", "a\n"),
        ("é‸".encode(), "é‸"),
        (b"\xef\xbb\xbfa", "a"),
        ("aé".encode("utf-16"), "aé"),
        (b"\xe9", "é"),
        (b"", ""),
        (b"a\r\nb", "a\r\nb"),
    ],
)
def test_decode(data: bytes, text: str) -> None:
    assert decode(data) == text


# --- pins --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("sglang==0.5.9\n", "0.5.9"),
        ("torch\nsglang[all]==0.5.5.post3\n", "0.5.5.post3"),
        ("sglang[all] == 0.5.9 ; python_version >= '3.10'\n", "0.5.9"),
        ('dependencies = ["sglang==0.5.9"]', "0.5.9"),
        ("  - sglang==0.5.9\n", "0.5.9"),
        ("sglang==0.5.9 \\\n    --hash=sha256:00\n", "0.5.9"),
        ('[[package]]\nname = "sglang"\nversion = "0.5.9"\n', "0.5.9"),
        ("sglang>=0.5.9\n", None),
        ("sglang==0.5.*\n", None),
        ("sglang==0.5.6.post2.dev8232\n", None),
        ("sglang-router==0.2.4\n", None),
        ("sglang @ git+https://github.com/sgl-project/sglang\n", None),
        ("# sglang was pinned once\n", None),
        ("# sglang==0.5.9\ntorch  # sglang==0.5.9\n", None),
        ("# sglang==0.5.9\nsglang==0.5.12  # not 0.5.9\n", "0.5.12"),
        ('{"default": {"sglang": {"hashes": ["sha256:0"], "version": "==0.5.9"}}}', "0.5.9"),
        ('[[package]]\nname = "sglang-router"\nversion = "0.2.4"\n', None),
        ("", None),
    ],
)
def test_pinned_release(text: str, release: str | None) -> None:
    found = pinned_release(text)
    assert (str(found) if found else None) == release


@pytest.mark.parametrize(
    ("files", "document", "expected"),
    [
        ({"requirements.txt": "sglang==0.5.9\n"}, "a.sh", ("0.5.9", "requirements.txt")),
        ({"requirements-gpu.txt": "sglang==0.5.9\n"}, "a.sh", ("0.5.9", "requirements-gpu.txt")),
        ({"requirements.txt": "sglang==0.5.9\n"}, "deep/er/a.sh", ("0.5.9", "requirements.txt")),
        (
            {"requirements.txt": "sglang==0.5.9\n", "deep/requirements.txt": "sglang==0.5.12\n"},
            "deep/a.sh",
            ("0.5.12", "requirements.txt"),
        ),
        ({"uv.lock": '[[package]]\nname = "sglang"\nversion = "0.5.12"\n'}, "a.sh", ("0.5.12", "uv.lock")),
        ({"pyproject.toml": '[project]\ndependencies = ["sglang==0.5.9"]\n'}, "a.sh", ("0.5.9", "pyproject.toml")),
        ({"requirements/gpu.txt": "sglang==0.5.9\n"}, "a.sh", ("0.5.9", "gpu.txt")),
        ({"constraints.txt": "sglang==0.5.9\n"}, "a.sh", ("0.5.9", "constraints.txt")),
        ({"requirements.txt": "sglang\n"}, "a.sh", None),
        ({}, "a.sh", None),
    ],
)
def test_release(tmp_path: Path, files: dict[str, str], document: str, expected: tuple[str, str] | None) -> None:
    write(tmp_path, files)
    found = DiskWorkspace((tmp_path,)).release(str(tmp_path / document))
    assert (found and (str(found[0]), found[1])) == expected


def test_pins_above_the_root_do_not_count(tmp_path: Path) -> None:
    write(tmp_path, {"requirements.txt": "sglang==0.5.9\n", "inner/a.sh": ""})
    assert DiskWorkspace((tmp_path / "inner",)).release(str(tmp_path / "inner" / "a.sh")) is None


def test_pins_are_forgotten(tmp_path: Path) -> None:
    workspace = DiskWorkspace((tmp_path,))
    document = str(tmp_path / "a.sh")
    assert workspace.release(document) is None
    write(tmp_path, {"requirements.txt": "sglang==0.5.9\n"})
    assert workspace.release(document) is None
    workspace.forget()
    assert workspace.release(document) is not None


# --- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "path", "found"),
    [
        ("sub/a.sh", "c.yaml", "sub/c.yaml"),
        ("sub/a.sh", "./c.yaml", "sub/c.yaml"),
        ("sub/a.sh", "../top.yaml", "top.yaml"),
        ("sub/a.sh", "top.yaml", "top.yaml"),
        ("sub/a.sh", "sub/c.yaml", "sub/c.yaml"),
        ("sub/a.sh", "none.yaml", None),
        ("sub/a.sh", "../../outside.yaml", None),
        ("sub/a.sh", "/etc/hostname", None),
        ("sub/a.sh", "sub", None),
    ],
)
def test_read(tmp_path: Path, document: str, path: str, found: str | None) -> None:
    root = tmp_path / "root"
    write(root, {"sub/c.yaml": "c", "top.yaml": "t", "sub/a.sh": ""})
    write(tmp_path, {"outside.yaml": "o"})
    read = DiskWorkspace((root,)).read(str(root / document), path)
    assert (read and read[0]) == (str(root.resolve() / found) if found else None)


def test_an_open_file_is_read_as_it_is_in_the_editor(tmp_path: Path) -> None:
    write(tmp_path, {"c.yaml": "on disk"})
    name = str(tmp_path.resolve() / "c.yaml")
    workspace = DiskWorkspace((tmp_path,), overlay={name: "in the editor"}.get)
    assert workspace.read(str(tmp_path.resolve() / "a.sh"), "c.yaml") == (name, "in the editor")


def test_huge_files_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with path.open("wb") as file:
        file.truncate(MAX_DOCUMENT + 1)
    assert DiskWorkspace((tmp_path,)).read(str(tmp_path / "a.sh"), "c.yaml") is None


# --- models ------------------------------------------------------------------------------------------------------------

CONFIG = json.dumps({"architectures": ["LlamaForCausalLM"], "num_attention_heads": 32, "hidden_size": 4096})


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("models/mine/config.json", "models/mine"),
        ("sub/mine/config.json", "mine"),
        ("shelf/mine/config.json", "mine"),
    ],
)
def test_model(tmp_path: Path, file: str, named: str) -> None:
    write(tmp_path, {file: CONFIG})
    workspace = DiskWorkspace((tmp_path,), models=(tmp_path / "shelf",))
    facts = workspace.model(str(tmp_path / "sub" / "a.sh"), named)
    assert facts is not None
    assert workspace.model(str(tmp_path / "sub" / "a.sh"), named) is facts


def test_model_of_the_local_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    write(tmp_path, {"models--some--thing/snapshots/abc/config.json": CONFIG})
    workspace = DiskWorkspace()
    assert workspace.model("/w/a.sh", "some/thing") is not None
    assert workspace.model("/w/a.sh", "some/other") is None


@pytest.mark.parametrize("text", ["", "[]", "{", '"x"'])
def test_a_config_that_is_none(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"mine/config.json": text})
    assert DiskWorkspace((tmp_path,)).model(str(tmp_path / "a.sh"), "mine") is None


def test_a_changed_model_is_read_again(tmp_path: Path) -> None:
    write(tmp_path, {"mine/config.json": CONFIG})
    workspace = DiskWorkspace((tmp_path,))
    first = workspace.model(str(tmp_path / "a.sh"), "mine")
    path = tmp_path / "mine" / "config.json"
    path.write_text(CONFIG.replace("32", "64"), encoding="utf-8")
    os.utime(path, (1, 1))
    assert workspace.model(str(tmp_path / "a.sh"), "mine") is not first


# --- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "document", "table", "file"),
    [
        ({"spec-lsp.toml": 'gpu = "h100"'}, "a.sh", {"gpu": "h100"}, "spec-lsp.toml"),
        ({"spec-lsp.toml": 'gpu = "h100"'}, "deep/er/a.sh", {"gpu": "h100"}, "spec-lsp.toml"),
        ({"pyproject.toml": '[tool.spec-lsp]\ngpu = "h100"'}, "a.sh", {"gpu": "h100"}, "pyproject.toml"),
        (
            {"spec-lsp.toml": 'gpu = "h100"', "pyproject.toml": '[tool.spec-lsp]\ngpu = "b200"'},
            "a.sh",
            {"gpu": "h100"},
            "spec-lsp.toml",
        ),
        (
            {"spec-lsp.toml": 'gpu = "h100"', "deep/spec-lsp.toml": 'gpu = "b200"'},
            "deep/a.sh",
            {"gpu": "b200"},
            "deep/spec-lsp.toml",
        ),
        (
            {"spec-lsp.toml": 'gpu = "h100"', "deep/pyproject.toml": "[project]\nname = 'x'"},
            "deep/a.sh",
            {"gpu": "h100"},
            "spec-lsp.toml",
        ),
    ],
)
def test_settings(tmp_path: Path, files: dict[str, str], document: str, table: dict[str, str], file: str) -> None:
    write(tmp_path, files)
    found = DiskWorkspace((tmp_path,)).settings(str(tmp_path / document))
    assert found is not None
    assert (dict(found.table), found.path, found.flaws) == (table, str(tmp_path / file), ())


def test_settings_that_do_not_parse(tmp_path: Path) -> None:
    write(tmp_path, {"spec-lsp.toml": "gpu = "})
    found = DiskWorkspace((tmp_path,)).settings(str(tmp_path / "a.sh"))
    assert found is not None
    assert (dict(found.table), found.path) == ({}, str(tmp_path / "spec-lsp.toml"))
    assert [flaw.message for flaw in found.flaws] == ["spec-lsp.toml cannot be read: invalid value"]


def test_help_comes_from_the_readers_own_sglang(tmp_path: Path) -> None:
    package = tmp_path / "project" / ".venv" / "lib" / "python3.11" / "site-packages" / "sglang" / "srt"
    package.mkdir(parents=True)
    (package / "server_args.py").write_text(
        "import argparse\n"
        "class ServerArgs:\n"
        "    page_size: int = 1\n"
        "    @staticmethod\n"
        "    def add_cli_args(parser):\n"
        "        parser.add_argument('--page-size', type=int, default=ServerArgs.page_size, help='Tokens on\\n a page.')\n"
    )
    script = tmp_path / "project" / "scripts" / "run.sh"
    workspace = DiskWorkspace((tmp_path / "project",))
    assert workspace.installed_help(str(script), "--page-size") == "Tokens on a page."
    assert workspace.installed_help(str(script), "--tp-size") is None
    elsewhere = DiskWorkspace((tmp_path / "other",))
    python = tmp_path / "project" / ".venv" / "bin" / "python"
    assert elsewhere.installed_help("/nowhere/run.sh", "--page-size", str(python)) == "Tokens on a page."


def test_no_help_where_nothing_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert DiskWorkspace((tmp_path,)).installed_help(str(tmp_path / "run.sh"), "--page-size") is None
