"""The server always answers, whoever else connects and whatever keeps it busy; and it answers only those who may ask."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.e2e.processes import Process, ended, listening, start, wire_of
from tests.e2e.shared import PATIENCE, RULE, SCRIPT, until
from tests.e2e.wire import Wire

PUSH: dict[str, Any] = {"textDocument": {"publishDiagnostics": {"versionSupport": True}}}
PULL: dict[str, Any] = {"textDocument": {"diagnostic": {}}}
URI = "file:///w/a.sh"
DOCUMENT = {"textDocument": {"uri": URI}}
TOO_LONG = b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}"

SPINNING = """
import sys
from spec_lsp.interruption import checkpoint
from spec_lsp.server.engine import RealEngine
real = RealEngine.analyse
def analyse(self, name, text, *rest):
    while "SPIN" in text:  # one evaluation without an end
        checkpoint()
    return real(self, name, text, *rest)
RealEngine.analyse = analyse
from spec_lsp.cli.main import main
sys.exit(main(["server", *sys.argv[1:]]))
"""


async def spinning(*arguments: str) -> Process:
    """A server to which a document with the word SPIN is work without an end."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", SPINNING, *arguments, stdin=pipe, stdout=pipe, stderr=pipe
    )


async def stop(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


async def connected(port: int) -> Wire:
    return Wire(*await asyncio.open_connection("127.0.0.1", port))


async def until_printed(process: Process, pattern: str) -> re.Match[str]:
    """The first line on standard error with something like this."""
    assert process.stderr is not None
    while True:
        line = (await asyncio.wait_for(process.stderr.readline(), PATIENCE)).decode()
        assert line, f"the server ended before it said {pattern}"
        if found := re.search(pattern, line):
            return found


# --- inside one long evaluation ----------------------------------------------------------------------------------------


@pytest.fixture
async def busy() -> AsyncIterator[tuple[Process, Wire]]:
    process = await spinning("--stdio")
    wire = wire_of(process)
    await wire.start(PUSH)
    wire.open(URI, "SPIN")
    await asyncio.sleep(0.5)
    yield process, wire
    await stop(process)


async def test_shutdown_is_answered(busy: tuple[Process, Wire]) -> None:
    process, wire = busy
    await wire.leave()
    assert await ended(process) == 0


async def test_exit_is_heard(busy: tuple[Process, Wire]) -> None:
    process, wire = busy
    wire.notify("exit", None)
    assert await ended(process) == 1


async def test_a_client_that_leaves_is_noticed(busy: tuple[Process, Wire]) -> None:
    process, _ = busy
    assert process.stdin is not None
    process.stdin.close()
    assert await ended(process) == 1


async def test_a_newer_version_is_analysed_instead(busy: tuple[Process, Wire]) -> None:
    _, wire = busy
    changed = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": SCRIPT}]}
    wire.notify("textDocument/didChange", changed)
    assert RULE in [d["code"] for d in await wire.findings(URI)]
    await wire.leave()


async def test_a_document_that_is_closed_keeps_nobody_busy(busy: tuple[Process, Wire]) -> None:
    _, wire = busy
    wire.notify("textDocument/didClose", DOCUMENT)
    wire.open("file:///w/b.sh", SCRIPT)
    assert RULE in [d["code"] for d in await wire.findings("file:///w/b.sh")]
    await wire.leave()


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
async def test_interrupt_ends_it_without_a_trace(busy: tuple[Process, Wire]) -> None:
    process, _ = busy
    ending = asyncio.ensure_future(ended(process))
    while not ending.done():  # one may fall into a finaliser, where Python swallows it: people press the key again
        process.send_signal(signal.SIGINT)
        await asyncio.wait([ending], timeout=5)
    assert await ending == 130
    assert process.stderr is not None
    assert b"Traceback" not in await process.stderr.read()


async def test_a_pull_that_is_cancelled_is_given_up() -> None:
    process = await spinning("--stdio")
    wire = wire_of(process)
    await wire.start(PULL)
    wire.open(URI, "SPIN")
    pulled = wire.ask("textDocument/diagnostic", DOCUMENT, "p")
    await asyncio.sleep(0.5)
    wire.notify("$/cancelRequest", {"id": "p"})
    assert (await asyncio.wait_for(pulled, PATIENCE))["error"]["code"] == -32800
    await wire.leave()
    assert await ended(process) == 0


async def test_a_tcp_client_that_leaves_frees_the_server_for_others() -> None:
    process = await spinning("--tcp", "--port", "0")
    try:
        port = int((await until_printed(process, r"listens on \S+:(\d+)"))[1])
        one = await connected(port)
        await one.start(PUSH)
        one.open(URI, "SPIN")
        await asyncio.sleep(0.5)
        one._writer.transport.abort()
        two = await connected(port)
        await two.start(PUSH)
        two.open(URI, SCRIPT)
        assert RULE in [d["code"] for d in await two.findings(URI)]
    finally:
        await stop(process)


# --- streams -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [TOO_LONG, b"Content-Length: -1\r\n\r\n", b"x" * 5000, b"GET / HTTP/1.1\r\n\r\n"])
async def test_any_header_over_stdio_is_answered_and_survived(odd: bytes) -> None:
    process = await start("--stdio")
    wire = wire_of(process)
    wire.send_bytes(odd)
    await wire.start()
    assert [m["error"]["code"] for m in wire.stray] == [-32700]
    await wire.leave()
    assert await ended(process) == 0


async def test_a_server_on_a_port_outlives_its_clients() -> None:
    """Those that say nothing, speak another protocol, send what cannot be read, leave with or without a goodbye."""
    process, port = await listening("--tcp")
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        for request in (
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b"", "another protocol is not answered"
            writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(TOO_LONG)
        assert b"-32700" in await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        gone = await connected(port)
        await gone.start()
        gone._writer.transport.abort()
        for _ in range(2):
            wire = await connected(port)
            await wire.start(PUSH)
            wire.open(URI, SCRIPT)
            assert RULE in [d["code"] for d in await wire.findings(URI)]
            await wire.leave()
        assert process.returncode is None
    finally:
        await stop(process)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("transport", ["--tcp", "--ws"])
async def test_interrupt_ends_a_server_on_a_port(transport: str) -> None:
    process, _ = await listening(transport)
    process.send_signal(signal.SIGINT)
    assert await ended(process) == 130
    assert process.stderr is not None
    assert b"Traceback" not in await process.stderr.read()


async def test_a_client_that_reads_nothing_does_not_keep_others_waiting() -> None:
    process, port = await listening("--tcp")
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        deaf = Wire(asyncio.StreamReader(), writer)
        deaf.ask("initialize", {"processId": None, "rootUri": None, "capabilities": PULL})
        deaf.notify("initialized", {})
        deaf.open(URI, SCRIPT)
        for _ in range(3000):
            deaf.ask("textDocument/diagnostic", DOCUMENT)
        wire = await connected(port)
        await wire.start(PUSH)
        await wire.leave()
    finally:
        await stop(process)


# --- who may talk to it ------------------------------------------------------------------------------------------------


async def greeted(port: int, path: str = "", **options: Any) -> int:
    """Whether a WebSocket client is answered: 101, or the status with which it is turned away."""
    websockets = pytest.importorskip("websockets", reason="the package websockets is not installed")
    try:
        async with websockets.connect(f"ws://127.0.0.1:{port}/{path}", **options) as socket:
            await socket.send(
                json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}})
            )
            answer = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
            assert answer["id"] == 1
            return 101
    except websockets.InvalidStatus as refused:
        return int(refused.response.status_code)


async def test_pages_of_other_sites_and_other_names_are_turned_away() -> None:
    process, port = await listening("--ws", "--allow-origin", "https://editor.example", "--allow-host", "box.example")
    try:
        assert await greeted(port) == 101
        assert await greeted(port, origin=f"http://127.0.0.1:{port}") == 101
        assert await greeted(port, origin="https://editor.example") == 101
        assert await greeted(port, origin="https://evil.example") == 403
        assert await greeted(port, origin="null") == 403
        assert await greeted(port, additional_headers={"Host": "evil.example"}) in (400, 403)
        assert process.returncode is None
    finally:
        await stop(process)


async def test_a_token_is_asked_for_where_one_is_set() -> None:
    process, port = await listening("--ws", "--token", "a token of twenty four")
    try:
        assert await greeted(port) == 401
        assert await greeted(port, "?token=a+token+of+twenty+three") == 401
        assert await greeted(port, "?token=a+token+of+twenty+four") == 101
        assert await greeted(port, additional_headers={"Authorization": "Bearer a token of twenty four"}) == 101
    finally:
        await stop(process)


async def test_an_address_that_others_reach_is_told_and_wants_a_token() -> None:
    process = await start("--ws", "--host", "0.0.0.0", "--port", "0")
    try:
        port = int((await until_printed(process, r"listens on \S+:(\d+)"))[1])
        await until_printed(process, "warning: other machines reach")
        token = (await until_printed(process, r"token: (\S{16,})"))[1]
        assert await greeted(port) == 401
        assert await greeted(port, f"?token={token}") == 101
    finally:
        await stop(process)


async def test_an_address_that_others_reach_is_told_over_tcp() -> None:
    process = await start("--tcp", "--host", "0.0.0.0", "--port", "0")
    try:
        await until_printed(process, "warning: other machines reach")
    finally:
        await stop(process)


@pytest.mark.parametrize(
    "arguments",
    [["--ws", "--token", "short"], ["--tcp", "--port", "70000"], ["--tcp", "--host", "no.such.host.invalid"]],
)
async def test_what_cannot_be_served_is_said(arguments: list[str]) -> None:
    process = await start(*arguments)
    assert await ended(process) == 2
    assert process.stderr is not None
    said = await process.stderr.read()
    assert b"spec-lsp: error:" in said
    assert b"Traceback" not in said


async def test_a_token_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "SPEC_LSP_TOKEN", "0123456789abcdef")
    process, port = await listening("--ws")
    try:
        assert await greeted(port) == 401
        assert await greeted(port, "?token=0123456789abcdef") == 101
    finally:
        await stop(process)


async def test_many_clients_at_once() -> None:
    process, port = await listening("--tcp")
    try:
        wires = [await connected(port) for _ in range(8)]
        await asyncio.gather(*(wire.start(PUSH) for wire in wires))
        for wire in wires:
            wire.open(URI, SCRIPT)
        await until(lambda: all(wire.published(URI) for wire in wires), "a publication for each client")
        for wire in wires:
            await wire.leave()
    finally:
        await stop(process)
