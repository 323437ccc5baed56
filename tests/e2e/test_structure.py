"""What a document is made of, and edits as commands, over the real protocol."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.e2e.processes import Process, wire_of
from tests.e2e.shared import PATIENCE
from tests.e2e.wire import Message, Wire

SCRIPT = """\
# spec-lsp: sglang=0.5.23 gpu=b200
PAGE=16
python -m sglang.launch_server \\
  --model-path acme/dense \\
  --page-size $PAGE \\
  --no-such-flag 1
"""
LAUNCH = {"start": {"line": 2, "character": 0}, "end": {"line": 5, "character": 18}}


async def opened(process: Process, folder: Path, capabilities: Any, text: str = SCRIPT) -> tuple[Wire, str]:
    wire = wire_of(process)
    await wire.start(capabilities, workspaceFolders=[{"uri": folder.as_uri(), "name": "w"}])
    uri = (folder / "run.sh").as_uri()
    wire.open(uri, text)
    return wire, uri


async def test_launches_are_symbols_of_the_document(process: Process, tmp_path: Path) -> None:
    trees = {"textDocument": {"documentSymbol": {"hierarchicalDocumentSymbolSupport": True}}}
    wire, uri = await opened(process, tmp_path.resolve(), trees)
    (symbol,) = await wire.result("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    assert "dense" in symbol["name"]
    assert symbol["range"] == LAUNCH
    assert symbol["selectionRange"]["start"] == LAUNCH["start"]


async def test_a_launch_of_several_lines_folds(process: Process, tmp_path: Path) -> None:
    wire, uri = await opened(process, tmp_path.resolve(), {"textDocument": {"foldingRange": {}}})
    (fold,) = await wire.result("textDocument/foldingRange", {"textDocument": {"uri": uri}})
    assert (fold["startLine"], fold["endLine"]) == (2, 5)


async def test_a_selection_grows_from_the_value_to_the_launch(process: Process, tmp_path: Path) -> None:
    wire, uri = await opened(process, tmp_path.resolve(), {"textDocument": {"selectionRange": {}}})
    params = {"textDocument": {"uri": uri}, "positions": [{"line": 3, "character": 18}]}
    (selection,) = await wire.result("textDocument/selectionRange", params)
    ranges = []
    while selection:
        ranges.append(selection["range"])
        selection = selection.get("parent")
    assert ranges[0] == {"start": {"line": 3, "character": 15}, "end": {"line": 3, "character": 25}}
    assert LAUNCH in ranges


async def test_a_client_without_literal_actions_gets_commands_whose_edits_it_is_asked_to_make(
    process: Process, tmp_path: Path
) -> None:
    wire, uri = await opened(process, tmp_path.resolve(), {"workspace": {"applyEdit": True}})
    edits: list[Any] = []

    def apply(params: Any) -> Message:
        edits.append(params["edit"])
        return {"applied": True}

    wire.answers["workspace/applyEdit"] = apply
    flag = {"start": {"line": 5, "character": 4}, "end": {"line": 5, "character": 4}}
    asked = {"textDocument": {"uri": uri}, "range": flag, "context": {}}
    commands = await wire.result("textDocument/codeAction", asked)
    assert commands
    assert {one["command"] for one in commands} == {"spec-lsp.applyEdit"}
    await wire.result(
        "workspace/executeCommand", {"command": "spec-lsp.applyEdit", "arguments": commands[0]["arguments"]}
    )
    assert len(edits) == 1


async def test_a_file_that_is_made_is_seen(process: Process, tmp_path: Path) -> None:
    """The script reads `page.env`, which comes to be while the script is open."""
    folder = tmp_path.resolve()
    text = "# spec-lsp: sglang=0.5.23 gpu=b200\n. ./page.env\npython -m sglang.launch_server --model-path acme/dense $MORE\n"
    wire, uri = await opened(process, folder, {"textDocument": {"diagnostic": {}}}, text)
    pull = {"textDocument": {"uri": uri}}
    assert "unknown-flag" not in [d["code"] for d in (await wire.result("textDocument/diagnostic", pull))["items"]]
    (folder / "page.env").write_text("MORE='--no-such-flag 1'\n")
    wire.notify("workspace/didCreateFiles", {"files": [{"uri": (folder / "page.env").as_uri()}]})

    async def told() -> None:
        while True:
            report = await wire.result("textDocument/diagnostic", pull)
            related = [d for found in report.get("relatedDocuments", {}).values() for d in found["items"]]
            if "unknown-flag" in [d["code"] for d in (*report["items"], *related)]:
                return
            await asyncio.sleep(0.1)

    await asyncio.wait_for(told(), PATIENCE)
