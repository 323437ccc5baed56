"""Messages in orders that nobody would send: the server survives, answers all, and keeps in step."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.processes import ended, start, wire_of
from tests.e2e.shared import CONFIG, PATIENCE, RULE, SCRIPT, until
from tests.e2e.wire import Wire

ROUNDS = int(os.environ.get("SPEC_LSP_FUZZ", "2"))
"""Sessions; each has a seed of its own."""
MESSAGES = 250
INTERNAL_ERROR = -32603

URIS = (
    "file:///w/a.sh",
    "file:///w/a%20b.sh",
    "file:///w/a b.sh",
    "file:///w/%C3%A4%F0%9F%98%80.sh",
    "file:///w/ä😀.sh",
    "file:///w/100%25.sh",
    "file:///w/100%.sh",
    "file:///w/%ff.sh",
    "file:///c%3A/w/a.sh",
    "file:///C:/w/a.sh",
    "file://host/share/a.sh",
    "file:///",
    "file:a.sh",
    "untitled:Untitled-1",
    "git:/w/a.sh?%7B%22path%22%3A%22/w/a.sh%22%2C%22ref%22%3A%22~%22%7D",
    "vscode-vfs://github/o/r/run.sh",
    "vscode-notebook-cell:/w/n.ipynb#W0sZmlsZQ%3D%3D",
    "file:///w/config.yaml",
    "",
    "no uri at all",
    "😀",
)
TEXTS = (
    SCRIPT,
    SCRIPT.replace("\n", "\r\n"),
    SCRIPT.replace("\n", "\r"),
    CONFIG,
    "python -m sglang.launch_server --config config.yaml\n",
    "",
    "\x00\ud7ff\ufeff",
    "(" * 3000,
    "a=$(" * 400,
    "- " * 2000,
    "sglang serve " + "x" * 200_000,
    "sglang serve x --tp 2\n" * 2000,
)
PIECES = (
    "",
    "\n",
    "\r",
    "\r\n",
    "'",
    '"',
    "$(",
    "`",
    "<<EOF\n",
    "😀",
    "\u2028",
    " --tp 😀",
    "\\\n",
    "sglang serve x\n",
    "{",
    ": [",
)
LANGUAGES = ("shellscript", "yaml", "dockerfile", "markdown", "python", "makefile", "plaintext", "", "helm", "?")
ASKED = (
    "hover", "completion", "codeAction", "documentSymbol", "inlayHint", "codeLens", "definition", "documentLink", "diagnostic",
    "foldingRange", "noSuchThing",
)  # fmt: skip
CAPABILITIES: dict[str, Any] = {
    "workspace": {
        "configuration": True,
        "diagnostics": {"refreshSupport": True},
        "inlayHint": {"refreshSupport": True},
    },
    "textDocument": {
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}},
            "resolveSupport": {"properties": ["edit"]},
        },
        "codeLens": {},
        "completion": {"completionItem": {"snippetSupport": True}, "completionList": {"itemDefaults": ["editRange"]}},
        "publishDiagnostics": {"relatedInformation": True, "dataSupport": True},
    },
    "experimental": {"commands": {"commands": ["spec-lsp.showResolved"]}},
}
PULLS = {**CAPABILITIES, "textDocument": {**CAPABILITIES["textDocument"], "diagnostic": {}}}


def number(chance: random.Random) -> int:
    return chance.choice((0, 0, 1, 2, 3, 5, 7, 20, 90, 4000, 2**31 - 1))


def place(chance: random.Random) -> dict[str, int]:
    return {"line": number(chance), "character": number(chance)}


def span(chance: random.Random) -> dict[str, Any]:
    """Any range: backwards, beyond the text, within a character."""
    return {"start": place(chance), "end": place(chance)}


def change(chance: random.Random) -> dict[str, Any]:
    if chance.random() < 0.1:
        return {"text": chance.choice(TEXTS)}
    return {"range": span(chance), "text": "".join(chance.choices(PIECES, k=chance.randrange(4)))}


def send_something(wire: Wire, chance: random.Random, version: int, asked: list[asyncio.Future[Any]]) -> None:
    """One message of any kind, about any document, open or not."""
    document = {"uri": chance.choice(URIS)}
    kind = chance.random()
    if kind < 0.15:
        wire.open(document["uri"], chance.choice(TEXTS), chance.choice(LANGUAGES), version)
    elif kind < 0.5:
        changes = [change(chance) for _ in range(chance.randrange(1, 4))]
        params = {"textDocument": {**document, "version": version}, "contentChanges": changes}
        wire.notify("textDocument/didChange", params)
    elif kind < 0.57:
        wire.notify("textDocument/didClose", {"textDocument": document})
    elif kind < 0.6:
        wire.notify("textDocument/didSave", {"textDocument": document})
    elif kind < 0.63:
        wire.notify("workspace/didChangeWatchedFiles", {"changes": [{**document, "type": chance.choice((1, 2, 3, 9))}]})
    elif kind < 0.65:
        settings = {"spec-lsp": {"gpu": chance.choice(("b200", "h100", "moon", 7)), "rules": chance.choice(({}, 3))}}
        wire.notify("workspace/didChangeConfiguration", {"settings": settings})
    elif kind < 0.7:
        wire.notify("$/cancelRequest", {"id": chance.randrange(version + 5)})
    elif kind < 0.73:
        arguments = chance.choice(([document["uri"], number(chance)], [], [7], ["x", "y"], None))
        params = {"command": "spec-lsp.showResolved", "arguments": arguments}
        asked.append(wire.ask("workspace/executeCommand", params))
    else:
        context = {
            "diagnostics": [{"range": span(chance), "message": "", "data": chance.choice((None, 3, {"key": 1}))}]
        }
        params = {"textDocument": document, "position": place(chance), "range": span(chance), "context": context}
        asked.append(wire.ask(f"textDocument/{chance.choice(ASKED)}", params))


def seeds() -> Iterator[Any]:
    for seed in range(ROUNDS):
        for name, capabilities in (("push", CAPABILITIES), ("pull", PULLS)):
            yield pytest.param(seed, capabilities, id=f"{name} {seed}")


@pytest.mark.parametrize(("seed", "capabilities"), list(seeds()))
async def test_anything_in_any_order(seed: int, capabilities: dict[str, Any]) -> None:
    process = await start("--stdio")
    try:
        assert process.stderr is not None
        told = asyncio.create_task(process.stderr.read())
        wire, chance, asked = wire_of(process), random.Random(seed), list[asyncio.Future[Any]]()
        await wire.start(capabilities)
        for version in range(MESSAGES):
            send_something(wire, chance, version, asked)
            if chance.random() < 0.1 and asked:
                await asyncio.wait_for(chance.choice(asked), PATIENCE)
        answers = await asyncio.wait_for(asyncio.gather(*asked), 4 * PATIENCE)
        assert [a for a in answers if a.get("error", {}).get("code") == INTERNAL_ERROR] == []
        await in_step(wire, "file:///w/z.sh")
        await wire.leave()
        assert await ended(process) == 0
        log = (await told).decode()
        assert "ERROR spec_lsp" not in log, log[-3000:]
    finally:
        if process.returncode is None:
            process.kill()


async def in_step(wire: Wire, uri: str) -> None:
    """After all that, a flaw is found where it is, in a text that was edited."""
    wire.open(uri, SCRIPT.replace("TOPK=8", "TOPK=1"))
    text = {"uri": uri, "version": 2}
    at = {"start": {"line": 2, "character": 5}, "end": {"line": 2, "character": 6}}
    wire.notify("textDocument/didChange", {"textDocument": text, "contentChanges": [{"range": at, "text": "8"}]})

    async def found() -> bool:
        answer = await wire.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        shown = (
            answer["result"]["items"]
            if "result" in answer
            else (wire.published(uri) or {"diagnostics": []})["diagnostics"]
        )
        return RULE in [d["code"] for d in shown]

    await until(found, "the flaw to be found")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_server() -> AsyncIterator[Wire]:
    process = await start("--stdio")
    wire = wire_of(process)
    await wire.start(CAPABILITIES)
    yield wire
    await wire.leave()
    assert await ended(process) == 0


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("uri", [uri for uri in URIS if not uri.endswith("config.yaml")])
async def test_a_document_of_any_name_is_checked(uri: str, one_server: Wire) -> None:
    """What a client calls a document comes back as it was said."""
    one_server.open(uri, SCRIPT)
    found = await one_server.findings(uri)
    assert RULE in [d["code"] for d in found]
    at = found[0]["range"]["start"]
    hover = await one_server.result("textDocument/hover", {"textDocument": {"uri": uri}, "position": at})
    assert hover["contents"]["value"]
    params = {"textDocument": {"uri": uri}, "range": found[0]["range"], "context": {"diagnostics": found[:1]}}
    actions = await one_server.result("textDocument/codeAction", params)
    assert set(actions[0]["edit"]["changes"]) == {uri}
    one_server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert await one_server.findings(uri, some=False) == []
