"""Files that change on the disk are seen: told by clients that watch, looked at for those that cannot."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.server.engine import RealEngine
from spec_lsp.server.features import watching
from tests.server.fakes import LocalClient

PUSH: dict[str, Any] = {"textDocument": {"publishDiagnostics": {"relatedInformation": True}}}
WATCHES: dict[str, Any] = {**PUSH, "workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}
LAUNCH = "python -m sglang.launch_server --model-path ./m --cuda-graph-max-bs-decode 8\n"
"""A flag of the newest releases: an old pin refuses it."""
LLAMA = '{"architectures": ["LlamaForCausalLM"], "num_attention_heads": 32, "hidden_size": 4096}'


async def started(folder: Path, capabilities: dict[str, Any], engine: Any = None) -> LocalClient:
    client = LocalClient(capabilities, engine, workspaceFolders=[{"uri": folder.as_uri(), "name": "w"}])
    client.answers["client/registerCapability"] = lambda _: None
    await client.start()
    return client


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(watching, "LOOK_SECONDS", 3600.0)
    monkeypatch.setattr(watching, "SOON_SECONDS", 0)
    return tmp_path.resolve()


def real() -> Any:
    return RealEngine()


def messages(client: LocalClient, uri: str) -> list[str]:
    return [d["message"] for d in client.published(uri)[-1]["diagnostics"]]


def rewritten(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text)
    later = path.stat().st_mtime + 5
    os.utime(path, (later, later))


@pytest.mark.parametrize("when", ["open", "save"])
@pytest.mark.parametrize(
    "base", ["requirements.txt", "requirements/prod.txt", "constraints.txt", "Pipfile.lock", "uv.lock"]
)
async def test_a_pin_is_seen_without_a_watcher(folder: Path, base: str, when: str) -> None:
    pins = {"Pipfile.lock": '"sglang": {\n"version": "==%s"}', "uv.lock": 'name = "sglang"\nversion = "%s"\n'}
    pin = pins.get(base, "sglang==%s\n")
    rewritten(folder / base, pin % "0.5.23")
    client = await started(folder, PUSH, real())
    uri = (folder / "a.sh").as_uri()
    client.open(uri, LAUNCH)
    await client.quiet()
    before = messages(client, uri)
    rewritten(folder / base, pin % "0.5.6")
    if when == "open":
        client.open((folder / "b.sh").as_uri(), "x")
    else:
        client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    await client.quiet()
    assert messages(client, uri) != before
    assert any("0.5.6" in message for message in messages(client, uri))


async def test_a_model_is_seen_without_a_watcher(folder: Path) -> None:
    client = await started(folder, PUSH, real())
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "python -m sglang.launch_server --model-path ./m --tp 3 --sglang 1\n")
    await client.quiet()
    seen = client.server.session.surroundings()
    assert str(folder / "m" / "config.json") in seen
    stamp = client.server.session.stamp(str(folder / "a.sh"))
    rewritten(folder / "m" / "config.json", LLAMA)
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    await client.quiet()
    assert client.server.session.stamp(str(folder / "a.sh")) != stamp


@pytest.mark.parametrize("named", ["//elsewhere.example/share/x.sh", "/net/elsewhere/x.sh", "../x.sh", "in/../../x.sh"])
async def test_nothing_outside_is_asked_for(named: str, folder: Path) -> None:
    client = await started(folder, PUSH, real())
    client.open((folder / "a.sh").as_uri(), f"source {named}\nsource ./here.sh\nsglang serve x --config {named}\n")
    await client.quiet()
    seen = {os.path.basename(name) for name in client.server.session.surroundings()}
    assert "here.sh" in seen
    assert "x.sh" not in seen


async def test_no_key_looks_at_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await started(folder, PUSH)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "BAD --config x.yaml")
    await client.quiet()
    looked: list[str] = []
    monkeypatch.setattr(watching, "_stamp", looked.append)
    for version in range(2, 20):
        client.change(uri, version, (0, 0, 0, 0, "x"))
        await client.quiet()
    assert looked == []


ASKS = ("stat", "lstat", "open", "listdir", "scandir", "readlink")
AROUND = {
    "r.sh": "TP=2\n",
    "c.yaml": "page-size: 16\n",
    "m/config.json": LLAMA,
    "requirements.txt": "sglang==0.5.23\n",
    "spec-lsp.toml": 'gpu = "h200"\n',
}


@pytest.mark.parametrize("there", [True, False])
async def test_no_key_waits_for_the_disk(folder: Path, there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a launch names: once the disk was asked, keys go by what it said."""
    for name, content in AROUND.items() if there else ():
        rewritten(folder / name, content)
    client = await started(folder, PUSH, real())
    uri = (folder / "a.sh").as_uri()
    named = "--model-path ./m --draft-model-path some/model --config c.yaml"
    client.open(uri, f"source ./r.sh\npython -m sglang.launch_server {named} --tp $TP --page-sze 1\n")
    await client.quiet()
    asked: list[str] = []
    for name in ASKS:
        ask = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, ask=ask, **k: (asked.append(str(a[0])), ask(*a, **k))[1])
    for version in range(2, 8):
        client.change(uri, version, (1, 0, 1, 0, "A=1 "))
        await client.quiet()
    monkeypatch.undo()
    assert len(client.published(uri)) == 7
    assert asked == []


@pytest.mark.parametrize("capabilities", [PUSH, WATCHES])
async def test_a_model_that_is_downloaded_is_seen(
    folder: Path, capabilities: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lies outside of the workspace: no client tells of it."""
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.02)
    monkeypatch.setenv("HF_HUB_CACHE", str(folder / "hub"))
    (folder / "w").mkdir()
    client = await started(folder / "w", capabilities, real())
    uri = (folder / "w" / "a.sh").as_uri()
    client.open(uri, "python -m sglang.launch_server --model-path some/model --tp 3\n")
    await client.quiet()
    await asyncio.sleep(0.1)
    stamp = client.server.session.stamp(str(folder / "w" / "a.sh"))
    rewritten(folder / "hub" / "models--some--model" / "snapshots" / "1" / "config.json", LLAMA)
    await asyncio.sleep(0.3)
    await client.quiet()
    assert client.server.session.stamp(str(folder / "w" / "a.sh")) != stamp


async def test_files_are_looked_at_now_and_then(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.02)
    client = await started(folder, PUSH)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "fine --config x.yaml")
    await asyncio.sleep(0.1)
    rewritten(folder / "x.yaml", "BAD")
    await asyncio.sleep(0.3)
    assert messages(client, uri) == ["BAD is found"]


async def test_who_watches_is_believed(folder: Path) -> None:
    client = await started(folder, WATCHES)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "fine --config x.yaml")
    await client.quiet()
    rewritten(folder / "x.yaml", "BAD")
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    await client.quiet()
    assert messages(client, uri) == []
    changes = [{"uri": (folder / "x.yaml").as_uri(), "type": 1}]
    client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
    await client.quiet()
    assert messages(client, uri) == ["BAD is found"]


async def test_who_never_answers_is_not(folder: Path) -> None:
    client = LocalClient(WATCHES, workspaceFolders=[{"uri": folder.as_uri(), "name": "w"}])
    await client.start()
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "fine --config x.yaml")
    await client.quiet()
    client.open((folder / "b.sh").as_uri(), "")
    rewritten(folder / "x.yaml", "BAD")
    client.open((folder / "c.sh").as_uri(), "")
    await client.quiet()
    assert messages(client, uri) == ["BAD is found"]


@pytest.mark.parametrize(
    "base",
    ["a.sh", "x.env", "common", "values.yaml", "c.json", "Dockerfile", "Makefile", "justfile", "m/config.json", "uv.lock",
     "requirements-dev.txt", "requirements/prod.txt", "constraints-cuda.txt", "Pipfile.lock", "spec-lsp.toml", "pyproject.toml"],
)  # fmt: skip
def test_every_file_that_counts_is_watched(base: str) -> None:
    assert any(Path("w", base).match(glob.removeprefix("**/")) for glob in watching.GLOBS)


@pytest.mark.parametrize("how", ["watched", "didDeleteFiles", "didRenameFiles"])
async def test_a_folder_that_goes_takes_its_findings_along(folder: Path, how: str) -> None:
    rewritten(folder / "conf" / "x.yaml", "BAD")
    client = await started(folder, WATCHES)
    uri, config = (folder / "a.sh").as_uri(), (folder / "conf" / "x.yaml").as_uri()
    client.open(uri, "fine --config conf/x.yaml")
    await client.quiet()
    assert messages(client, config) == ["BAD is found"]
    gone = (folder / "conf").as_uri()
    shutil.move(folder / "conf", folder / "other")
    if how == "watched":
        client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": gone, "type": 3}]})
    elif how == "didDeleteFiles":
        client.notify("workspace/didDeleteFiles", {"files": [{"uri": gone}]})
    else:
        files = [{"oldUri": gone, "newUri": (folder / "other").as_uri()}]
        client.notify("workspace/didRenameFiles", {"files": files})
    await client.quiet()
    assert messages(client, config) == []
    assert messages(client, uri) == []


async def test_a_workspace_folder_that_is_removed_takes_its_findings_along(tmp_path: Path, folder: Path) -> None:
    one, two = folder / "one", folder / "two"
    one.mkdir()
    rewritten(two / "x.yaml", "BAD")
    client = LocalClient(PUSH, workspaceFolders=[{"uri": f.as_uri(), "name": f.name} for f in (one, two)])
    await client.start()
    uri, config = (one / "a.sh").as_uri(), (two / "x.yaml").as_uri()
    client.open(uri, "fine --config ../two/x.yaml")
    await client.quiet()
    assert messages(client, config) == ["BAD is found"]
    removed = [{"uri": two.as_uri(), "name": "two"}]
    client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": removed}})
    await client.quiet()
    assert messages(client, config) == []
    assert messages(client, uri) == []


async def test_what_lies_in_folders_of_others_changes_nothing(folder: Path) -> None:
    client = await started(folder, WATCHES)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, "BAD")
    await client.quiet()
    before = len(client.engine.analysed)
    names = ("node_modules/x/config.json", ".git/index", "venv/lib/python3/site-packages/m/config.json", "x.md")
    changes = [{"uri": (folder / name).as_uri(), "type": 2} for name in names]
    client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
    await client.quiet()
    assert len(client.engine.analysed) == before
