"""Asking SGLang when a file is saved: only where the editor switches it on, told with its source, gone with the next edit."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from spec_lsp import kept
from spec_lsp.server.engine import RealEngine
from spec_lsp.server.framing import frame
from tests.asking.fake import write
from tests.server.fakes import LocalClient, range_
from tests.server.test_diagnostics import PULL, PUSH
from tests.truth.score import MODELS

LAUNCH = "# spec-lsp: gpu=h100\npython3 -m sglang.launch_server --model-path ./llama --page-size {}\n"
ON = {"verifyOnSave": True, "python": sys.executable}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(write(tmp_path / "packages")))
    folder = tmp_path.resolve() / "here"
    shutil.copytree(MODELS / "llama-3.1-8b", folder / "llama")
    return folder


async def started(folder: Path, capabilities: dict[str, Any], options: dict[str, Any]) -> LocalClient:
    engine: Any = RealEngine()
    client = LocalClient(
        capabilities, engine, workspaceFolders=[{"uri": folder.as_uri(), "name": "w"}], initializationOptions=options
    )
    client.answers = {"workspace/diagnostic/refresh": lambda _: None, "client/registerCapability": lambda _: None}
    await client.start()
    return client


async def saved(client: LocalClient, uri: str) -> None:
    """Save, and wait until SGLang has been asked about it, where it is."""
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    await client.quiet()
    working = client.server.verifying._working
    if working is not None:
        await asyncio.wait_for(working, 60)
    await client.quiet()


def of_sglang(items: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(i["range"], i["severity"], i["code"], i["message"]) for i in items if i["source"] == "sglang"]


REFUSED = (
    range_(1, 53, 1, 67), 1, "ValueError",
    "page_size 32 does not suit ./llama. spec-lsp does not know this refusal: please report it. "
    "`spec-lsp verify FILE --report report.md` writes what to send.",
)  # fmt: skip


async def test_pushed(folder: Path) -> None:
    client = await started(folder, PUSH, ON)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, LAUNCH.format(32))
    await client.quiet()
    assert of_sglang(client.published(uri)[-1]["diagnostics"]) == []
    await saved(client, uri)
    assert of_sglang(client.published(uri)[-1]["diagnostics"]) == [REFUSED]
    client.change(uri, 2, (1, 65, 1, 67, "16"))
    await client.quiet()
    assert of_sglang(client.published(uri)[-1]["diagnostics"]) == []
    await saved(client, uri)
    assert of_sglang(client.published(uri)[-1]["diagnostics"]) == []
    client.server.verifying.end()


async def test_pulled(folder: Path) -> None:
    client = await started(folder, PULL, ON)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, LAUNCH.format(32))
    first = await client.pull(uri)
    await saved(client, uri)
    assert "workspace/diagnostic/refresh" in client.methods()
    second = await client.pull(uri, first["resultId"])
    assert of_sglang(second["items"]) == [REFUSED]
    client.server.verifying.end()


SHOWING = {**PUSH, "window": {"showDocument": {"support": True}}}


@pytest.mark.parametrize("literals", [True, False])
async def test_a_report_of_a_disagreement_is_opened(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, literals: bool
) -> None:
    """By a quick fix whose command has the client open a file, whatever the client makes of actions; gone with the next edit."""
    monkeypatch.setattr(kept, "cache_folder", lambda: tmp_path / "cache")
    capabilities: dict[str, Any] = {**SHOWING, "textDocument": {**SHOWING["textDocument"], "codeAction": {}}}
    if literals:
        capabilities["textDocument"]["codeAction"] = {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}
    client = await started(folder, capabilities, ON)
    client.answers["window/showDocument"] = lambda _: {"success": True}
    uri = (folder / "a.sh").as_uri()
    client.open(uri, LAUNCH.format(32))
    await saved(client, uri)
    [shown] = [d for d in client.published(uri)[-1]["diagnostics"] if d["source"] == "sglang"]

    async def offered() -> list[dict[str, Any]]:
        asked = {"textDocument": {"uri": uri}, "range": shown["range"], "context": {"diagnostics": [shown]}}
        return list((await client.request("textDocument/codeAction", asked))["result"])

    [action] = await offered()
    assert action["title"] == "Open a report of this disagreement"
    command = action["command"] if literals else action
    params = {"command": command["command"], "arguments": command["arguments"]}
    assert command["command"] == "spec-lsp.openReport"
    report = (await client.request("workspace/executeCommand", params))["result"]
    assert "disagree on NVIDIA H100 80GB HBM3 (simulated)" in report
    [request] = [m for m in client.messages if m.get("method") == "window/showDocument"]
    assert Path(url2pathname(urlsplit(request["params"]["uri"]).path)).read_text() == report
    client.change(uri, 2, (1, 65, 1, 67, "16"))
    assert await offered() == []
    assert (await client.request("workspace/executeCommand", params))["result"] is None
    client.server.verifying.end()


async def test_a_client_that_opens_nothing_is_offered_no_report(folder: Path) -> None:
    client = await started(folder, PUSH, ON)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, LAUNCH.format(32))
    await saved(client, uri)
    [shown] = [d for d in client.published(uri)[-1]["diagnostics"] if d["source"] == "sglang"]
    asked = {"textDocument": {"uri": uri}, "range": shown["range"], "context": {"diagnostics": [shown]}}
    assert (await client.request("textDocument/codeAction", asked))["result"] == []
    params = {"command": "spec-lsp.openReport", "arguments": [uri, shown["message"]]}
    assert "disagree on" in (await client.request("workspace/executeCommand", params))["result"]
    assert "window/showDocument" not in client.methods()
    client.server.verifying.end()


async def test_what_was_edited_meanwhile_is_not_told(folder: Path) -> None:
    client = await started(folder, PUSH, ON)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, LAUNCH.format(32))
    await client.quiet()
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    await client.quiet()
    client.change(uri, 2, (0, 0, 0, 0, "# a comment\n"))
    working = client.server.verifying._working
    assert working is not None
    await asyncio.wait_for(working, 60)
    await client.quiet()
    assert of_sglang(client.published(uri)[-1]["diagnostics"]) == []
    client.server.verifying.end()


@pytest.mark.parametrize("options", [{}, {"verifyOnSave": False, "python": sys.executable}])
async def test_off_until_it_is_switched_on(folder: Path, options: dict[str, Any]) -> None:
    client = await started(folder, PUSH, options)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, LAUNCH.format(32))
    await saved(client, uri)
    assert client.server.verifying._working is None


async def test_no_file_switches_it_on_or_names_the_interpreter(folder: Path) -> None:
    """What a settings file says of it is told as what cannot be used; an interpreter that it names is never started."""
    program = folder / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ntouch {folder}/ran\n")
    program.chmod(0o755)
    settings = folder / "spec-lsp.toml"
    settings.write_text('verify-on-save = true\npython = ".venv/bin/python"\n')
    client = await started(folder, PUSH, {})
    uri = (folder / "a.sh").as_uri()
    client.open(uri, LAUNCH.format(32))
    await saved(client, uri)
    assert client.server.verifying._working is None
    client.open(settings.as_uri(), settings.read_text(), "toml")
    await client.quiet()
    (item,) = client.published(settings.as_uri())[-1]["diagnostics"]
    assert "only the editor's settings may switch it on" in item["message"]
    assert client.server.session.asks(str(folder / "a.sh")) is None
    client = await started(folder, PUSH, {"verifyOnSave": True})
    assert client.server.session.asks(str(folder / "a.sh")) == ""
    assert not (folder / "ran").exists()


async def test_an_interpreter_that_each_folder_could_hold_is_not_started(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The editor's settings hold in every folder: a relative path in them would start what a repository put there."""
    program = folder / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ntouch {folder}/ran\n")
    program.chmod(0o755)
    monkeypatch.chdir(folder)
    client = await started(folder, PUSH, {"verifyOnSave": True, "python": ".venv/bin/python"})
    uri = (folder / "a.sh").as_uri()
    client.open(uri, LAUNCH.format(32))
    await saved(client, uri)
    lines = [m["params"]["message"] for m in client.messages if m.get("method") == "window/logMessage"]
    assert any("is another one in each folder. Name it by its full path." in line for line in lines)
    assert not (folder / "ran").exists()


async def test_a_text_that_is_gone_is_asked_about_no_further(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def told(self: Any, analysis: Any, index: int, *_: Any) -> list[Any]:
        asked.append(index)
        client.change(uri, 2, (0, 0, 0, 0, "# a comment\n"))
        await asyncio.sleep(0.1)
        return []

    monkeypatch.setattr("spec_lsp.server.features.verifying.Verifying._told", told)
    client = await started(folder, PUSH, ON)
    uri = (folder / "a.sh").as_uri()
    client.open(uri, LAUNCH.format(32) * 3)
    await saved(client, uri)
    assert asked == [0]


async def test_an_interpreter_that_is_none_is_told_once_and_everything_goes_on(folder: Path) -> None:
    client = await started(folder, PUSH, {"verifyOnSave": True, "python": str(folder / "no-python")})
    uri = (folder / "a.sh").as_uri()
    client.open(uri, LAUNCH.format("x"))
    for _ in range(2):
        await saved(client, uri)
    lines = [m["params"]["message"] for m in client.messages if m.get("method") == "window/logMessage"]
    assert [line for line in lines if "SGLang was not asked" in line] == [
        f"SGLang was not asked: There is no Python interpreter `{folder}/no-python`. Name the Python interpreter that has SGLang "
        "(`--python`, or the setting `python` of your editor)."
    ]
    assert [i["code"] for i in client.published(uri)[-1]["diagnostics"]] == ["invalid-value"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="SGLang is asked where processes can be forked")
@pytest.mark.parametrize("how", ["gone", "exit", "interrupted", "terminated"])
def test_a_server_that_goes_waits_for_no_sglang(tmp_path: Path, how: str) -> None:
    """Nor does it leave one behind."""
    started, program = tmp_path / "started", tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho $$ > {started}.new\nmv {started}.new {started}\nexec sleep 100\n")
    program.chmod(0o755)
    root, uri = tmp_path.as_uri(), (tmp_path / "a.sh").as_uri()
    options = {"verifyOnSave": True, "python": str(program)}
    document = {"uri": uri, "languageId": "shellscript", "version": 1, "text": LAUNCH.format(1)}
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": {
            "processId": None, "capabilities": {}, "rootUri": root, "initializationOptions": options,
        }},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": document}},
        {"method": "textDocument/didSave", "params": {"textDocument": {"uri": uri}}},
    ]  # fmt: skip
    server = subprocess.Popen(
        [sys.executable, "-m", "spec_lsp.cli", "server", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    with server:
        assert server.stdin is not None
        server.stdin.write(b"".join(frame(json.dumps({"jsonrpc": "2.0", **m}).encode()) for m in messages))
        server.stdin.flush()
        until = time.monotonic() + 60
        while not started.exists() and time.monotonic() < until:
            time.sleep(0.05)
        asked = int(started.read_text())
        if how == "gone":
            server.stdin.close()
        elif how == "exit":
            server.stdin.write(frame(b'{"jsonrpc": "2.0", "method": "exit"}'))
            server.stdin.flush()
        else:
            server.send_signal(signal.SIGINT if how == "interrupted" else signal.SIGTERM)
        assert server.wait(60) == {"gone": 1, "exit": 1, "interrupted": 130, "terminated": 143}[how]
    until = time.monotonic() + 10
    while runs(asked) and time.monotonic() < until:
        time.sleep(0.05)
    assert not runs(asked)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # one that has ended, and that nobody has asked about yet, does not run
    return not (stat.exists() and ") Z " in stat.read_text())
