"""A whole session as each editor would have it: with the capabilities it sends (clients/*.json), in the units it asks for.

`source` in those files says which were recorded from the running editor (with clients/record.py) and which were written down from its
source. Each also speaks in the other encodings, and is pushed to and pulls.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.processes import listening, start, wire_of
from tests.e2e.shared import PATIENCE, RULE, SCRIPT, Encoding, offset, position, until
from tests.e2e.wire import Message, Wire

CLIENTS = {path.stem: json.loads(path.read_text("utf-8")) for path in Path(__file__).parent.glob("clients/*.json")}
ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
EXPECTED: dict[str, tuple[Encoding, bool]] = {
    "emacs-eglot": ("utf-16", False),
    "emacs-lsp-mode": ("utf-16", False),
    "helix": ("utf-8", False),
    "neovim": ("utf-8", False),
    "vim-ale": ("utf-16", False),
    "vscode": ("utf-16", True),
    "zed": ("utf-16", True),
}
"""The units each is answered in, and whether it pulls diagnostics: Neovim and Helix cannot be told to pull again, so they are pushed to."""

HEAD = "口口😀 é"
TEXT = SCRIPT.replace("😀 é", HEAD)
WRITTEN = ("--attention-backend trtllm_mha", "--speculative-eagle-topk $TOPK")


def has(capabilities: Any, path: str) -> Any:
    for name in path.split("."):
        capabilities = capabilities.get(name) if isinstance(capabilities, dict) else None
    return capabilities


@dataclass
class Editor:
    """An editor with one document, which it keeps as an editor does."""

    wire: Wire
    capabilities: dict[str, Any]
    encoding: Encoding
    pulls: bool
    uri: str
    text: str = ""
    version: int = 0
    answered: list[Message] = field(default_factory=list)

    # --- what a person does

    def open(self, text: str) -> None:
        self.text, self.version = text, 1
        self.wire.open(self.uri, text)

    def edit(self, start: int, end: int, new: str) -> None:
        span = {"start": self.position(start), "end": self.position(end)}
        self.text, self.version = self.text[:start] + new + self.text[end:], self.version + 1
        document = {"uri": self.uri, "version": self.version}
        change = {"range": span, "text": new}
        self.wire.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def replace(self, old: str, new: str) -> None:
        at = self.text.index(old)
        self.edit(at, at + len(old), new)

    async def ask(self, method: str, **more: Any) -> Any:
        return await self.wire.result(f"textDocument/{method}", {"textDocument": {"uri": self.uri}, **more})

    async def diagnostics(self) -> list[Message] | None:
        """What is said of the document as it is; None while a push is awaited."""
        if self.pulls:
            items: list[Message] = (await self.ask("diagnostic"))["items"]
            return items
        last = self.wire.published(self.uri)
        return None if last is None else last["diagnostics"]

    async def found(self) -> Message:
        """The refusal, at characters that take part in it: a push that edits have overtaken points somewhere else."""

        async def one() -> Any:
            shown = await self.diagnostics() or ()
            return next((d for d in shown if d["code"] == RULE and self.under(d["range"]) in WRITTEN), None)

        return await until(one, f"{RULE} to be found at {WRITTEN}")

    async def gone(self) -> None:
        async def none() -> bool:
            shown = await self.diagnostics()
            return shown is not None and not any(d["code"] == RULE for d in shown)

        await until(none, f"{RULE} to go")

    # --- units

    def position(self, at: int) -> dict[str, int]:
        line, character = position(self.text, at, self.encoding)
        return {"line": line, "character": character}

    def offset(self, at: dict[str, int]) -> int:
        return offset(self.text, at["line"], at["character"], self.encoding)

    def under(self, span: Any) -> str:
        return self.text[self.offset(span["start"]) : self.offset(span["end"])]

    # --- edits

    def apply(self, edit: Message) -> None:
        """A workspace edit, in the form the client takes."""
        if has(self.capabilities, "workspace.workspaceEdit.documentChanges"):
            (change,) = edit["documentChanges"]
            assert change["textDocument"] == {"uri": self.uri, "version": self.version}
            edits = change["edits"]
        else:
            assert set(edit) == {"changes"}
            ((uri, edits),) = edit["changes"].items()
            assert uri == self.uri
        for one in sorted(edits, key=lambda e: self.offset(e["range"]["start"]), reverse=True):
            self.edit(self.offset(one["range"]["start"]), self.offset(one["range"]["end"]), one["newText"])

    def accept(self, found: Message, label: str) -> None:
        """An item of a completion, as the client puts it in; a snippet's stops are left empty."""
        item = next(i for i in found["items"] if i["label"] == label)
        shared = found.get("itemDefaults", {})
        assert set(shared) <= set(has(self.capabilities, "textDocument.completion.completionList.itemDefaults") or ())
        span = shared.get("editRange") or item["textEdit"]["range"]
        new = item.get("textEditText", label) if "editRange" in shared else item["textEdit"]["newText"]
        if item.get("insertTextFormat", shared.get("insertTextFormat")) == 2:
            assert has(self.capabilities, "textDocument.completion.completionItem.snippetSupport")
            new = new.partition("$")[0]
        self.edit(self.offset(span["start"]), self.offset(span["end"]), new.strip())


async def a_day(editor: Editor) -> None:
    """Open, edit, look, complete, fix; in a text with characters of one, two, three and four bytes before what is spoken of."""
    wire, capabilities = editor.wire, editor.capabilities
    editor.open(TEXT)
    found = await editor.found()
    for related in found.get("relatedInformation", ()):
        assert editor.under(related["location"]["range"]) in {*WRITTEN, "8", "$TOPK"}

    editor.replace("  # 𝄞 and 😀 lie outside the BMP", " # €")
    editor.replace(HEAD, HEAD + "😀")
    await editor.found()

    at = editor.text.index("--attention-backend")
    hover = await editor.ask("hover", position=editor.position(at + 3))
    formats = has(capabilities, "textDocument.hover.contentFormat") or ["markdown"]
    assert hover["contents"]["kind"] in formats
    assert editor.under(hover["range"]) == "--attention-backend"

    editor.replace(" --attention-backend", " --page-siz 64 --attention-backend")
    cursor = editor.text.index("--page-siz") + len("--page-siz")
    editor.accept(await editor.ask("completion", position=editor.position(cursor)), "--page-size")
    assert f'"{HEAD}😀" --page-size 64 --attention-backend' in editor.text

    await look_around(editor)
    await fix(editor, await editor.found())
    assert "\nTOPK=1 # €\n" in editor.text
    await editor.gone()
    wire.notify("textDocument/didClose", {"textDocument": {"uri": editor.uri}})
    await wire.leave()


async def look_around(editor: Editor) -> None:
    """What an editor asks by itself of what the server offers."""
    end = editor.position(len(editor.text))
    whole = {"start": {"line": 0, "character": 0}, "end": end}
    symbols = await editor.ask("documentSymbol")
    trees = bool(has(editor.capabilities, "textDocument.documentSymbol.hierarchicalDocumentSymbolSupport"))
    assert [("selectionRange" in symbol) for symbol in symbols] == [trees]
    for hint in await editor.ask("inlayHint", range=whole):
        assert editor.offset(hint["position"]) <= len(editor.text)
    at = editor.text.index("$TOPK")
    (origin,) = await editor.ask("definition", position=editor.position(at + 1))
    assert editor.under(origin.get("targetRange") or origin["range"]) == "8"
    await editor.ask("documentLink")
    if has(editor.capabilities, "textDocument.codeLens") is not None:
        await editor.ask("codeLens")


async def fix(editor: Editor, found: Message) -> None:
    """The preferred quick fix of a finding, as the client sends that back."""
    lost = (
        ()
        if editor.pulls or has(editor.capabilities, "textDocument.publishDiagnostics.dataSupport")
        else ("data", "source")
    )
    found = {key: value for key, value in found.items() if key not in lost}  # ALE sends neither back
    context = {"diagnostics": [found], "only": ["quickfix"]}
    actions = await editor.ask("codeAction", range=found["range"], context=context)
    action = actions[0]
    assert action["isPreferred"]
    if "edit" not in action:
        assert "edit" in (has(editor.capabilities, "textDocument.codeAction.resolveSupport.properties") or ())
        action = await editor.wire.result("codeAction/resolve", action)
    editor.apply(action["edit"])


async def editor_on(wire: Wire, client: dict[str, Any], folder: Path) -> Editor:
    told = {key: value for key, value in client.items() if key != "source"}
    workspace = [{"uri": folder.as_uri(), "name": "w"}]
    answer = await wire.start(told.pop("capabilities"), workspaceFolders=workspace, **told)
    offered = answer["result"]["capabilities"]
    pulls = "diagnosticProvider" in offered
    uri = (folder / "run it ü.sh").as_uri()
    return Editor(wire, client["capabilities"], offered["positionEncoding"], pulls, uri)


def test_the_clients_that_are_spoken_of_are_here() -> None:
    assert set(CLIENTS) == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(CLIENTS))
async def test_a_day_with_each_editor(name: str, tmp_path: Path) -> None:
    """Over standard input and output, as editors start it."""
    process = await start("--stdio")
    try:
        editor = await editor_on(wire_of(process), CLIENTS[name], tmp_path.resolve())
        assert (editor.encoding, editor.pulls) == EXPECTED[name]
        await a_day(editor)
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    finally:
        if process.returncode is None:
            process.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def port() -> AsyncIterator[int]:
    """A server that many clients connect to: as long as the first one stays, so does the process."""
    process, found = await listening("--tcp", "--once")
    first = Wire(*await asyncio.open_connection("127.0.0.1", found))
    await first.start()
    yield found
    await first.leave()
    await asyncio.wait_for(process.wait(), PATIENCE)


def as_told(client: dict[str, Any], encoding: Encoding, pulls: bool) -> dict[str, Any]:
    """The client, if it counted in these units and were to pull, or not."""
    told = copy.deepcopy(client)
    capabilities = told["capabilities"]
    capabilities["general"] = {**capabilities.get("general", {}), "positionEncodings": [encoding, "utf-16"]}
    capabilities["textDocument"].pop("diagnostic", None)
    if pulls:
        capabilities["textDocument"]["diagnostic"] = {"dynamicRegistration": False}
        capabilities["workspace"]["diagnostics"] = {"refreshSupport": True}
    return told


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("how", ["push", "pull"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", sorted(CLIENTS))
async def test_in_every_encoding_pushed_and_pulled(
    port: int, name: str, encoding: Encoding, how: str, tmp_path: Path
) -> None:
    wire = Wire(*await asyncio.open_connection("127.0.0.1", port))
    editor = await editor_on(wire, as_told(CLIENTS[name], encoding, how == "pull"), tmp_path.resolve())
    assert (editor.encoding, editor.pulls) == (encoding, how == "pull")
    await a_day(editor)
