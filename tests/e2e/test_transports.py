"""The process itself: how it starts, what it answers, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.e2e.shared import PATIENCE, RULE, SCRIPT, SERVER

PUSH: dict[str, Any] = {"textDocument": {"publishDiagnostics": {"dataSupport": True}}}


class Wire:
    """A client of few words on a pair of streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: Any) -> None:
        self._reader = reader
        self._writer = writer
        self._id = 0
        self.seen: list[dict[str, Any]] = []

    def send(self, message: Any) -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def read(self) -> dict[str, Any]:
        length = 0
        while (line := await self._reader.readline()).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        if not line:
            raise EOFError
        message: dict[str, Any] = json.loads(await self._reader.readexactly(length))
        self.seen.append(message)
        return message

    async def wait(self, wanted: Any) -> dict[str, Any]:
        """The next message for which `wanted` holds."""

        async def search() -> dict[str, Any]:
            while True:
                message = await self.read()
                if wanted(message):
                    return message

        return await asyncio.wait_for(search(), PATIENCE)

    async def request(self, method: str, params: Any = None) -> dict[str, Any]:
        self._id += 1
        id_ = self._id
        self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        return await self.wait(lambda m: m.get("id") == id_ and "method" not in m)

    async def start(self, capabilities: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
        answer = await self.request(
            "initialize", {"processId": None, "rootUri": None, "capabilities": capabilities or PUSH, **params}
        )
        self.notify("initialized", {})
        return answer

    def open(self, uri: str, text: str) -> None:
        item = {"uri": uri, "languageId": "shellscript", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    async def published(self, uri: str, *, some: bool = True) -> list[dict[str, Any]]:
        """The next publication for a document: with diagnostics, or (not `some`) without."""
        message = await self.wait(
            lambda m: (
                m.get("method") == "textDocument/publishDiagnostics"
                and m["params"]["uri"] == uri
                and bool(m["params"]["diagnostics"]) == some
            )
        )
        diagnostics: list[dict[str, Any]] = message["params"]["diagnostics"]
        return diagnostics


@pytest.fixture
async def process() -> AsyncIterator[asyncio.subprocess.Process]:
    started = await _start("--stdio")
    yield started
    if started.returncode is None:
        started.kill()
        await started.wait()


async def _start(*arguments: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*SERVER, *arguments, stdin=pipe, stdout=pipe, stderr=pipe)


def wire_of(process: asyncio.subprocess.Process) -> Wire:
    assert process.stdout is not None
    return Wire(process.stdout, process.stdin)


async def ended(process: asyncio.subprocess.Process) -> int:
    return await asyncio.wait_for(process.wait(), PATIENCE)


# --- the end -----------------------------------------------------------------------------------------------------------


async def test_shutdown_and_exit_end_the_process(process: asyncio.subprocess.Process) -> None:
    wire = wire_of(process)
    await wire.start()
    assert (await wire.request("shutdown"))["result"] is None
    wire.notify("exit", None)
    assert await ended(process) == 0


async def test_a_client_that_vanishes_ends_the_process(process: asyncio.subprocess.Process) -> None:
    wire = wire_of(process)
    await wire.start()
    assert process.stdin is not None
    process.stdin.close()
    await ended(process)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX processes")
async def test_a_parent_that_vanishes_ends_the_process(process: asyncio.subprocess.Process) -> None:
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    wire = wire_of(process)
    await wire.start(processId=parent.pid)
    parent.kill()
    parent.wait()
    await ended(process)


async def test_what_others_print_does_not_reach_the_client() -> None:
    code = (
        "import os, sys, spec_lsp.server.server as s\n"
        "real = s.Server.greet\n"
        "s.Server.greet = lambda self, p: (print('noise'), os.system('echo noise'), real(self, p))[2]\n"
        "from spec_lsp.server import run\nsys.exit(run())\n"
    )
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=pipe, stdout=pipe, stderr=pipe)
    wire = wire_of(process)
    assert "capabilities" in (await wire.start())["result"]
    await wire.request("shutdown")
    wire.notify("exit", None)
    assert await ended(process) == 0


# --- odd messages ------------------------------------------------------------------------------------------------------


async def test_malformed_requests_are_answered(process: asyncio.subprocess.Process) -> None:
    wire = wire_of(process)
    await wire.start()
    wire.send(b"{nonsense")
    assert (await wire.wait(lambda m: "error" in m))["error"]["code"] == -32700
    assert process.stdin is not None
    process.stdin.write(b"what is this\r\n\r\n")
    assert (await wire.request("textDocument/hover", {"position": "here"}))["error"]["code"] == -32602
    assert (await wire.request("no/such", {}))["error"]["code"] == -32601
    wire.open("file:///w/a.sh", SCRIPT)
    assert RULE in [d["code"] for d in await wire.published("file:///w/a.sh")]


async def test_an_initialize_full_of_unknown_values(process: asyncio.subprocess.Process) -> None:
    wire = wire_of(process)
    capabilities = {
        "general": {"positionEncodings": ["utf-9", "utf-8"]},
        "textDocument": {
            "hover": {"contentFormat": ["scroll"]},
            "documentSymbol": {"symbolKind": {"valueSet": [4711]}},
            "publishDiagnostics": {"tagSupport": {"valueSet": [99]}},
        },
        "workspace": {"workspaceEdit": {"resourceOperations": ["melt"], "failureHandling": "hope"}},
    }
    answer = await wire.start(capabilities, trace="deafening")
    assert answer["result"]["capabilities"]["positionEncoding"] == "utf-8"


async def test_cancelling_is_answered(process: asyncio.subprocess.Process) -> None:
    wire = wire_of(process)
    await wire.start({"textDocument": {"diagnostic": {}}})
    wire.open("file:///w/a.sh", SCRIPT)
    params = {"textDocument": {"uri": "file:///w/a.sh"}}
    wire.send({"jsonrpc": "2.0", "id": "c", "method": "textDocument/diagnostic", "params": params})
    wire.notify("$/cancelRequest", {"id": "c"})
    answer = await wire.wait(lambda m: m.get("id") == "c")
    assert answer.get("error", {}).get("code", -32800) == -32800


lines = st.sampled_from(
    [*SCRIPT.split("\n"), "'", '"', "(", "$(", "cat <<EOF", "EOF", "if", "fi", "😀", "\\", "--tp", "--tp 😀"]
)
edits = st.tuples(
    st.integers(0, 12),
    st.integers(0, 90),
    st.integers(0, 12),
    st.integers(0, 90),
    st.lists(lines, max_size=3).map("\n".join),
)


class BlockingWire:
    """A client that blocks: one process for all of hypothesis' examples. A server that does not answer is ended, and so is the test."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([*SERVER, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._id = 0
        self.shown: list[Any] = []

    def notify(self, method: str, params: Any, **more: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        assert self._process.stdin
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def request(self, method: str, params: Any) -> Any:
        self._id += 1
        self.notify(method, params, id=self._id)
        watchdog = threading.Timer(PATIENCE, self._process.kill)
        watchdog.start()
        try:
            while True:
                message = self._read()
                if message.get("method") == "window/showMessage":
                    self.shown.append(message)
                if message.get("id") == self._id and "method" not in message:
                    return message["result"]
        finally:
            watchdog.cancel()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        length = 0
        while (line := self._process.stdout.readline()).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert line, "the server has ended, or did not answer"
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        return message

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def blocking() -> Iterator[BlockingWire]:
    wire = BlockingWire()
    actions = {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}
    capabilities = {"textDocument": {"diagnostic": {}, "codeAction": actions}}
    wire.request("initialize", {"processId": None, "rootUri": None, "capabilities": capabilities})
    wire.notify("initialized", {})
    yield wire
    wire.end()


@settings(max_examples=20, deadline=None)
@given(changes=st.lists(edits, min_size=1, max_size=8))
def test_random_edits_are_always_answered(
    blocking: BlockingWire, changes: list[tuple[int, int, int, int, str]]
) -> None:
    """Whatever is typed, hover and code actions answer; and the text stays in step: put right again, it is flawed as at first."""
    document = {"uri": "file:///w/a.sh"}
    item = {**document, "languageId": "shellscript", "version": 1, "text": SCRIPT}
    blocking.notify("textDocument/didOpen", {"textDocument": item})
    for version, (start_line, start, end_line, end, text) in enumerate(changes, 2):
        span = {"start": {"line": start_line, "character": start}, "end": {"line": end_line, "character": end}}
        change = {"textDocument": {**document, "version": version}, "contentChanges": [{"range": span, "text": text}]}
        blocking.notify("textDocument/didChange", change)
        shown = blocking.request("textDocument/diagnostic", {"textDocument": document})["items"]
        blocking.request("textDocument/hover", {"textDocument": document, "position": span["start"]})
        context = {"diagnostics": shown[:1]}
        blocking.request("textDocument/codeAction", {"textDocument": document, "range": span, "context": context})
    whole = {"textDocument": {**document, "version": 99}, "contentChanges": [{"text": SCRIPT}]}
    blocking.notify("textDocument/didChange", whole)
    shown = blocking.request("textDocument/diagnostic", {"textDocument": document})["items"]
    assert RULE in [d["code"] for d in shown]
    blocking.notify("textDocument/didClose", {"textDocument": document})
    assert blocking.shown == []


# --- TCP and WebSocket -------------------------------------------------------------------------------------------------


async def listening(*arguments: str) -> tuple[asyncio.subprocess.Process, int]:
    """A server that listens on a free port, and the port."""
    process = await _start(*arguments, "--port", "0")
    assert process.stderr is not None
    while True:
        line = (await asyncio.wait_for(process.stderr.readline(), PATIENCE)).decode()
        assert line, "the server ended before it listened"
        found = re.search(r"listens on \S+:(\d+)", line)
        if found:
            return process, int(found[1])


async def test_two_clients_over_tcp_do_not_mix(tmp_path: Path) -> None:
    process, port = await listening("--tcp")
    try:
        one, two = [Wire(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(2)]
        await one.start({**PUSH, "general": {"positionEncodings": ["utf-8"]}})
        await two.start({**PUSH, "general": {"positionEncodings": ["utf-32"]}})
        uri = (tmp_path / "a.sh").as_uri()
        one.open(uri, SCRIPT)
        two.open(uri, SCRIPT.replace("😀 é", "😀😀😀").replace("--attention", "--no-such-flag --attention"))
        shown_one, shown_two = await one.published(uri), await two.published(uri)
        assert "no-such-flag" not in json.dumps(shown_one)
        assert "no-such-flag" in json.dumps(shown_two)
        await one.request("shutdown")
        one.notify("exit", None)
        with pytest.raises(EOFError):
            await asyncio.wait_for(one.read(), PATIENCE)
        assert process.returncode is None
        assert "result" in await two.request(
            "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}
        )
        await two.request("shutdown")
        two.notify("exit", None)
        await ended(process)
    finally:
        if process.returncode is None:
            process.kill()


async def test_the_last_tcp_client_that_vanishes_ends_the_process() -> None:
    process, port = await listening("--tcp")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await Wire(reader, writer).start()
    writer.transport.abort()
    await ended(process)


async def test_websocket() -> None:
    websockets = pytest.importorskip("websockets.asyncio.client", reason="the package websockets is not installed")
    process, port = await listening("--ws")
    async with websockets.connect(f"ws://127.0.0.1:{port}") as socket:
        await socket.send(
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "initialize",
                    "params": {"processId": os.getpid(), "rootUri": None, "capabilities": {}},
                }
            )
        )
        answer = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
        assert answer["result"]["serverInfo"]["name"] == "spec-lsp"
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}))
        assert json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))["id"] == 2
        await socket.send(json.dumps({"jsonrpc": "2.0", "method": "exit"}))
    await ended(process)
