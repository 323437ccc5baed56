"""Files, models, pins and settings of folders on disk."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from spec_lsp.analysis import analyse, read_document
from spec_lsp.analysis.inputs import Options, Target
from spec_lsp.files import MAX_DOCUMENT, Area
from spec_lsp.settings import options, read_settings
from spec_lsp.workspace import DiskWorkspace, decode, in_workspace, pinned_release


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


@pytest.mark.parametrize("named", ["adapters/mine", "adapters/mine/", "../adapters/mine"])
def test_adapter(tmp_path: Path, named: str) -> None:
    write(tmp_path, {"adapters/mine/adapter_config.json": '{"use_dora": true}', "sub/a.sh": ""})
    facts = DiskWorkspace((tmp_path,)).model(str(tmp_path / "sub" / "a.sh"), os.path.join(named, "adapter_config.json"))
    assert facts is not None
    assert facts.hf("use_dora") is True


def test_adapter_outside_the_workspace(tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/adapter_config.json": '{"use_dora": true}', "w/a.sh": ""})
    workspace = DiskWorkspace((tmp_path / "w",))
    assert workspace.model(str(tmp_path / "w" / "a.sh"), str(tmp_path / "elsewhere" / "adapter_config.json")) is None


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


# --- the SGLang that somebody has --------------------------------------------------------------------------------------

SGLANG = """
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", type=str, required=True)
        parser.add_argument("--own", type=int, default=1, choices=[1, 2])
"""
LOCK = '[[package]]\nname = "sglang"\nversion = "0.5.12"\n'


@pytest.fixture
def _no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spec_lsp.kept.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(
        "spec_lsp.catalog.builds.LEAST_SHARED", 0
    )  # what is written here shares no function with SGLang
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("_no_environment")
@pytest.mark.parametrize(
    ("folder", "told"),
    [
        (".venv/lib/python3.12/site-packages/sglang", "environment .venv"),
        ("deep/venv/lib/python3.12/site-packages/sglang", "environment venv"),
        (".conda/lib/python3.10/site-packages/sglang", "environment .conda"),
        (".pixi/envs/default/lib/python3.11/site-packages/sglang", "environment .pixi/envs/default"),
        (".venv/Lib/site-packages/sglang", "environment .venv"),
        ("python/sglang", "checkout"),
        ("third_party/sglang/python/sglang", "checkout third_party/sglang"),
        ("elsewhere/sglang", None),
    ],
)
def test_the_sglang_at_hand_comes_before_lock_files(tmp_path: Path, folder: str, told: str | None) -> None:
    root = tmp_path / "work"
    write(root, {f"{folder}/srt/server_args.py": SGLANG, "uv.lock": LOCK})
    found = DiskWorkspace((root,)).release(str(root / "deep" / "run.sh"))
    assert found is not None
    assert found[1] == (told or "uv.lock")
    assert bool(found[0].local) == (told is not None)


@pytest.mark.usefixtures("_no_environment")
def test_the_selected_interpreter_comes_first(tmp_path: Path) -> None:
    root, chosen = tmp_path / "work", tmp_path / "chosen"
    write(root, {".venv/lib/python3.12/site-packages/sglang/srt/server_args.py": SGLANG})
    write(chosen, {"lib/python3.12/site-packages/sglang/srt/server_args.py": SGLANG + "# other\n"})
    found = DiskWorkspace((root,)).release(str(root / "run.sh"), str(chosen / "bin" / "python"))
    assert found is not None
    assert found[1] == f"interpreter in {chosen}"
    nothing = DiskWorkspace((root,)).release(str(root / "run.sh"), str(tmp_path / "none" / "bin" / "python"))
    assert nothing is not None
    assert nothing[1] == "environment .venv"


@pytest.mark.usefixtures("_no_environment")
@pytest.mark.parametrize(
    ("variable", "within", "told"),
    [("", True, "environment .venv"), ("", False, None), ("VIRTUAL_ENV", False, "environment of VIRTUAL_ENV")],
)
def test_an_editable_install_is_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, within: bool, told: str | None
) -> None:
    """Elsewhere only where the person's own environment has it: no repository names what lies outside of it."""
    root = tmp_path / "work"
    source = (root if within else tmp_path) / "src"
    write(source, {"python/sglang/srt/server_args.py": SGLANG})
    write(root, {".venv/lib/python3.12/site-packages/sglang.pth": f"{source}/python\n", "run.sh": ""})
    if variable:
        monkeypatch.setenv(variable, str(root / ".venv"))
    found = DiskWorkspace((root,)).release(str(root / "run.sh"))
    assert (found and found[1]) == told


@pytest.mark.usefixtures("_no_environment")
def test_a_broken_sglang_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, {".venv/lib/python3.12/site-packages/sglang/srt/server_args.py": "def broken(:\n", "uv.lock": LOCK})
    workspace, document = DiskWorkspace((tmp_path,)), str(tmp_path / "run.sh")
    found = workspace.release(document)
    assert found is not None
    assert found[1] == "uv.lock"
    assert "no valid Python" in workspace.unread_sglang(document)
    for text, told in (("", 1), ("# spec-lsp: sglang=0.5.19\n", 0)):
        text += "python -m sglang.launch_server --model-path Qwen/Qwen3-8B\n"
        analysis = analyse(read_document(document, text, workspace), Options(), workspace)
        said = [
            d.message for d in analysis.diagnostics if "The SGLang of environment .venv cannot be read" in d.message
        ]
        assert len(said) == told


@pytest.mark.usefixtures("_no_environment")
def test_an_sglang_of_ten_lines_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's launches are held against the few flags that it has."""
    monkeypatch.setattr("spec_lsp.catalog.builds.LEAST_SHARED", 0.1)
    write(tmp_path, {"sglang/srt/server_args.py": f"{SGLANG}# of ten lines\n"})
    workspace, document = DiskWorkspace((tmp_path,)), str(tmp_path / "run.sh")
    text = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --page-size 16\n"
    analysis = analyse(read_document(document, text, workspace), Options(), workspace)
    told = [d.message for d in analysis.diagnostics]
    assert ["is not recognised as SGLang" in message for message in told] == [True], told


@pytest.mark.usefixtures("_no_environment")
def test_a_changed_sglang_is_read_again(tmp_path: Path) -> None:
    file = "python/sglang/srt/server_args.py"
    write(tmp_path, {file: SGLANG})
    workspace = DiskWorkspace((tmp_path,), watched=True)
    before = workspace.release(str(tmp_path / "run.sh"))
    write(tmp_path, {file: SGLANG.replace("--own", "--other")})
    assert workspace.release(str(tmp_path / "run.sh")) == before
    assert str(tmp_path / file) in workspace.looked_at(str(tmp_path / "run.sh"))
    workspace.forget()
    assert workspace.release(str(tmp_path / "run.sh")) != before


@pytest.mark.usefixtures("_no_environment")
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("./vendored/sglang", ""),
        ("vendored/sglang/python/sglang", ""),
        ("./environment", ""),
        ("./nothing", "holds no SGLang (no srt/server_args.py)"),
        ("./broken", "cannot be read as SGLang"),
        ("../outside", "lies outside the workspace"),
        ("./link", "holds no SGLang (no srt/server_args.py)"),
    ],
)
def test_an_sglang_named_by_its_path(tmp_path: Path, path: str, why: str) -> None:
    root = tmp_path / "work"
    write(tmp_path, {"outside/sglang/srt/server_args.py": SGLANG, "work/broken/srt/server_args.py": "x"})
    write(root, {"vendored/sglang/python/sglang/srt/server_args.py": SGLANG})
    write(root, {"environment/lib/python3.12/site-packages/sglang/srt/server_args.py": SGLANG})
    (root / "link").symlink_to(tmp_path / "outside")
    workspace = DiskWorkspace((root,))
    release, said = workspace.sglang_at(str(root / "run.sh"), path)
    assert (release is None) == bool(why)
    assert why in said
    text = f"# spec-lsp: sglang={path} gpu=h100\npython -m sglang.launch_server --model-path Qwen/Qwen3-8B --own 2\n"
    write(root, {"run.sh": text})
    analysis = analyse(read_document(str(root / "run.sh"), text, workspace), Options(), workspace)
    named = [d.message for d in analysis.diagnostics if d.rule.name == "unknown-directive"]
    assert [why in m for m in named] == [True] * bool(why)
    assert [d.rule.name for d in analysis.diagnostics if d.severity == "error"] == ["unknown-flag"] * bool(why)
    assert analysis.launches[0].worlds[0].release_from == ("not named" if why else "directive")


@pytest.mark.usefixtures("_no_environment")
@pytest.mark.parametrize(
    ("written", "misfit"),
    [
        ("./sg", ""),
        ("./nothing", "holds no SGLang"),
        ("../outside", "lies outside the workspace"),
        ("sg", "is not a release of SGLang"),
    ],
)
def test_a_setting_that_names_an_sglang(tmp_path: Path, written: str, misfit: str) -> None:
    root = tmp_path / "work"
    write(tmp_path, {"outside/srt/server_args.py": SGLANG, "work/sg/srt/server_args.py": SGLANG})
    write(root, {"spec-lsp.toml": f'sglang = "{written}"\n'})
    file = DiskWorkspace((root,)).settings(str(root / "run.sh"))
    assert file is not None
    used = in_workspace(file, Area((root,)))
    table, misfits = read_settings(used.table)
    told = {*(f.message for f in used.flaws), *map(str, misfits)}
    assert [misfit in t for t in told] == [True] * bool(misfit), told
    assert bool(table.sglang) == (not misfit)
    text = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --own 2\n"
    workspace = DiskWorkspace((root,))
    analysis = analyse(read_document(str(root / "run.sh"), text, workspace), options(table), workspace)
    assert ("unknown-flag" in [d.rule.name for d in analysis.diagnostics]) == bool(misfit)


@pytest.mark.usefixtures("_no_environment")
@pytest.mark.parametrize("named", [Options(otherwise=Target(sglang="PATH")), Options(targets=(Target(sglang="PATH"),))])
@pytest.mark.parametrize(("source", "told"), [("def broken(:\n", True), (SGLANG, False)])
def test_settings_that_name_an_sglang_that_cannot_be_read_are_told(
    tmp_path: Path, named: Options, source: str, told: bool
) -> None:
    write(tmp_path, {"sg/srt/server_args.py": source})
    path = str(tmp_path / "sg")
    used = replace(
        named,
        targets=tuple(replace(t, sglang=path) for t in named.targets),
        otherwise=replace(named.otherwise, sglang=named.otherwise.sglang and path),
    )
    text = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B\n"
    workspace = DiskWorkspace((tmp_path,))
    analysis = analyse(read_document(str(tmp_path / "run.sh"), text, workspace), used, workspace)
    found = [d for d in analysis.diagnostics if d.rule.name == "unknown-release" and "cannot be read" in d.message]
    assert [(d.severity, path in d.message) for d in found] == [("warning", True)] * told


def test_somebody_without_a_home_has_no_hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwd = pytest.importorskip("pwd")
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    for variable in ("HOME", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    assert DiskWorkspace((tmp_path,)).model(str(tmp_path / "a.sh"), "nobody/nothing") is None
