"""`workspace/diagnostic` over the real protocol: every file of the folders, streamed, with progress, cancelled, switched off."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.processes import Process, wire_of
from tests.e2e.shared import PATIENCE, until
from tests.e2e.wire import Message, Wire

PULL: dict[str, Any] = {"textDocument": {"diagnostic": {}}, "window": {"workDoneProgress": True}}
FLAWED = "python -m sglang.launch_server --model-path x --no-such-flag 1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    for name in ("a.sh", "deep/b.sh", "c.sh", "ignored/d.sh", "excluded/e.sh"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(FLAWED)
    (root / "fine.sh").write_text("python -m sglang.launch_server --model-path x\n")
    (root / "other.sh").write_text("echo nothing --no-such-flag\n")
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("ignored/\n")
    (root / "spec-lsp.toml").write_text('exclude = ["excluded/"]\n')
    return root


async def greeted(process: Process, folder: Path, **more: Any) -> Wire:
    wire = wire_of(process)
    answer = await wire.start(PULL, workspaceFolders=[{"uri": folder.as_uri(), "name": "w"}], **more)
    assert answer["result"]["capabilities"]["diagnosticProvider"]["workspaceDiagnostics"] is True
    return wire


def ids(items: list[Message]) -> list[dict[str, str]]:
    return [{"uri": i["uri"], "value": i["resultId"]} for i in items]


def told(items: list[Message], folder: Path) -> dict[str, list[str]]:
    return {i["uri"].removeprefix(folder.as_uri() + "/"): [d["code"] for d in i["items"]] for i in items}


async def test_every_file_that_launches_is_told_of(process: Process, folder: Path) -> None:
    wire = await greeted(process, folder)
    items = (await wire.result("workspace/diagnostic", {"previousResultIds": []}))["items"]
    assert told(items, folder) == {name: ["unknown-flag"] for name in ("a.sh", "c.sh", "deep/b.sh")}

    again = (await wire.result("workspace/diagnostic", {"previousResultIds": ids(items)}))["items"]
    assert {i["kind"] for i in again} == {"unchanged"}

    (folder / "a.sh").write_text("python -m sglang.launch_server --model-path x\n")
    (folder / "c.sh").unlink()
    wire.notify(
        "workspace/didChangeWatchedFiles",
        {"changes": [{"uri": (folder / n).as_uri(), "type": 2} for n in ("a.sh", "c.sh")]},
    )
    third = (await wire.result("workspace/diagnostic", {"previousResultIds": ids(items)}))["items"]
    full = told([i for i in third if i["kind"] == "full"], folder)
    assert full == {"a.sh": [], "c.sh": []}
    await wire.leave()


async def test_a_document_that_is_open_is_pulled_by_itself(process: Process, folder: Path) -> None:
    wire = await greeted(process, folder)
    wire.open((folder / "a.sh").as_uri(), FLAWED)
    items = (await wire.result("workspace/diagnostic", {"previousResultIds": []}))["items"]
    assert set(told(items, folder)) == {"c.sh", "deep/b.sh"}
    await wire.leave()


async def test_reports_are_streamed_with_progress(process: Process, folder: Path) -> None:
    wire = await greeted(process, folder)
    tokens = {"partialResultToken": "part", "workDoneToken": 7}
    answer = await wire.result("workspace/diagnostic", {"previousResultIds": [], **tokens})
    assert answer["items"] == []
    progress = [n["params"] for n in wire.notifications if n["method"] == "$/progress"]
    parts = [i for p in progress if p["token"] == "part" for i in p["value"]["items"]]
    assert set(told(parts, folder)) == {"a.sh", "c.sh", "deep/b.sh"}
    work = [p["value"]["kind"] for p in progress if p["token"] == 7]
    assert work[0] == "begin"
    assert work[-1] == "end"
    assert "report" in work
    await wire.leave()


async def test_it_is_cancelled_and_others_are_answered_meanwhile(process: Process, folder: Path) -> None:
    for n in range(200):
        (folder / f"many{n}.sh").write_text(FLAWED.replace("x", f"x{n}", 1))
    wire = await greeted(process, folder)
    asked = wire.ask(
        "workspace/diagnostic", {"previousResultIds": [], "partialResultToken": "p", "workDoneToken": "w"}, "all"
    )
    await until(
        lambda: any(n["params"]["token"] == "p" for n in wire.notifications if n["method"] == "$/progress"), "a part"
    )
    uri = "file:///elsewhere/x.sh"
    wire.open(uri, FLAWED)
    report = await wire.result("textDocument/diagnostic", {"textDocument": {"uri": uri}})
    assert [d["code"] for d in report["items"]] == ["unknown-flag"]
    assert not asked.done()
    wire.notify("$/cancelRequest", {"id": "all"})
    assert (await asyncio.wait_for(asked, PATIENCE))["error"]["code"] == -32800
    last = [
        n["params"]["value"] for n in wire.notifications if n["method"] == "$/progress" and n["params"]["token"] == "w"
    ]
    assert last[-1] == {"kind": "end"}
    await wire.leave()


@pytest.mark.parametrize("how", ["file", "editor"])
async def test_it_is_switched_off_by_a_setting(process: Process, folder: Path, how: str) -> None:
    if how == "file":
        (folder / "spec-lsp.toml").write_text("workspace-diagnostics = false\n")
    options = {"initializationOptions": {"workspaceDiagnostics": False}} if how == "editor" else {}
    wire = await greeted(process, folder, **options)
    before = [{"uri": (folder / "a.sh").as_uri(), "value": "old"}]
    items = (await wire.result("workspace/diagnostic", {"previousResultIds": before}))["items"]
    assert told(items, folder) == {"a.sh": []}, "what was told before goes"
    await wire.leave()
