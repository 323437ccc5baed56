"""The process itself: how it starts, what it answers, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.processes import Process, ended, listening, start, wire_of
from tests.e2e.shared import PATIENCE, RULE, SCRIPT, SERVER
from tests.e2e.wire import Message, Wire

PUSH: dict[str, Any] = {"textDocument": {"publishDiagnostics": {"dataSupport": True}}}
PULL: dict[str, Any] = {"textDocument": {"diagnostic": {}}}
URI = "file:///w/a.sh"
DOCUMENT = {"textDocument": {"uri": URI}}


def rules(diagnostics: list[Message]) -> list[str]:
    return [d["code"] for d in diagnostics]


# --- the end -----------------------------------------------------------------------------------------------------------


async def test_shutdown_and_exit_end_the_process(process: Process) -> None:
    wire = wire_of(process)
    await wire.start()
    await wire.leave()
    assert await ended(process) == 0


async def test_exit_without_shutdown_is_an_error(process: Process) -> None:
    wire = wire_of(process)
    await wire.start()
    wire.notify("exit", None)
    assert await ended(process) == 1


async def test_exit_ends_a_server_that_was_never_greeted(process: Process) -> None:
    wire_of(process).notify("exit", None)
    assert await ended(process) == 1


async def test_after_shutdown_requests_are_refused(process: Process) -> None:
    wire = wire_of(process)
    await wire.start()
    assert await wire.result("shutdown") is None
    for method in ("textDocument/hover", "shutdown", "initialize"):
        assert (await wire.request(method, {}))["error"]["code"] == -32600
    wire.notify("textDocument/didOpen", {})
    wire.notify("exit", None)
    assert await ended(process) == 0
    wire.finish()


async def test_what_is_under_way_at_shutdown_is_answered(process: Process) -> None:
    wire = wire_of(process)
    await wire.start(PULL)
    wire.open(URI, SCRIPT * 20)
    asked = [wire.ask("textDocument/diagnostic", DOCUMENT) for _ in range(5)]
    await wire.leave()
    assert all(future.done() for future in asked)
    assert await ended(process) == 0


async def test_a_client_that_vanishes_ends_the_process(process: Process) -> None:
    wire = wire_of(process)
    await wire.start()
    assert process.stdin is not None
    process.stdin.close()
    assert await ended(process) == 1


async def test_a_client_that_vanishes_while_it_is_answered_ends_the_process(process: Process) -> None:
    """Nobody reads the answers any more, and the pipe is full of them."""
    wire = wire_of(process)
    await wire.start()
    wire.open(URI, SCRIPT.replace("--served", "--‸ --served"))
    at = {"line": 3, "character": 0}
    for _ in range(200):
        wire.ask("textDocument/completion", {**DOCUMENT, "position": at})
    wire.notify("exit", None)
    process._transport.close()  # type: ignore[attr-defined]
    await ended(process)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX processes")
async def test_a_parent_that_vanishes_ends_the_process(process: Process) -> None:
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    wire = wire_of(process)
    await wire.start(processId=parent.pid)
    parent.kill()
    parent.wait()
    assert await ended(process) == 1


async def test_what_others_print_does_not_reach_the_client() -> None:
    code = (
        "import os, sys, spec_lsp.server.server as s\n"
        "real = s.Server.greet\n"
        "s.Server.greet = lambda self, *p: (print('noise'), os.system('echo noise'), real(self, *p))[2]\n"
        "from spec_lsp.server import run\nsys.exit(run())\n"
    )
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=pipe, stdout=pipe, stderr=pipe)
    wire = wire_of(process)
    assert "capabilities" in (await wire.start())["result"]
    await wire.leave()
    assert await ended(process) == 0


@pytest.mark.parametrize("arguments", [[], ["--stdio"]])
async def test_clients_may_say_stdio_or_not(arguments: list[str]) -> None:
    wire = wire_of(started := await start(*arguments))
    await wire.start()
    await wire.leave()
    assert await ended(started) == 0


# --- odd messages ------------------------------------------------------------------------------------------------------


async def test_malformed_requests_are_answered(process: Process) -> None:
    wire = wire_of(process)
    await wire.start(PUSH)
    wire.send_bytes(b"what is this\r\n\r\n")
    for id_, method, params, code in (
        (None, "textDocument/hover", {"position": "here"}, -32602),
        (None, "textDocument/hover", None, -32602),
        (None, "textDocument/hover", [1, 2], -32602),
        ("a string", "textDocument/completion", {**DOCUMENT, "position": {"line": -1, "character": "x"}}, -32602),
        (None, "textDocument/codeAction", {}, -32602),
        (None, "workspace/executeCommand", {"command": "no.such"}, -32602),
        (None, "no/such", {}, -32601),
        (None, "$/noSuch", {}, -32601),
        (None, "initialize", {"capabilities": {}}, -32600),
    ):
        answer = await wire.request(method, params, id_)
        assert answer["error"]["code"] == code, (method, params, answer)
        assert answer["error"]["message"]
    wire.open(URI, SCRIPT)
    assert RULE in rules(await wire.findings(URI))
    await wire.leave()


async def test_what_is_no_request_is_answered_without_an_id(process: Process) -> None:
    wire = wire_of(process)
    await wire.start()
    for odd, code in (
        (b"{nonsense", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"textDocument/hover"}', -32600),
        (b'{"jsonrpc":"2.0","id":[1],"method":"textDocument/hover"}', -32600),
    ):
        before = len(wire.stray)
        wire.send(odd)
        await wire.request("no/such")  # answers come in order
        (answer,) = wire.stray[before:]
        assert answer["error"]["code"] == code, odd
    await wire.leave()


async def test_before_initialize_nothing_else_is_answered(process: Process) -> None:
    wire = wire_of(process)
    wire.open(URI, SCRIPT)
    assert (await wire.request("textDocument/hover", {}))["error"]["code"] == -32002
    assert (await wire.request("shutdown"))["error"]["code"] == -32002
    await wire.start()
    await wire.leave()


async def test_an_initialize_full_of_unknown_values(process: Process) -> None:
    wire = wire_of(process)
    capabilities = {
        "general": {"positionEncodings": ["utf-9", "utf-8"]},
        "textDocument": {
            "hover": {"contentFormat": ["scroll"]},
            "documentSymbol": {"symbolKind": {"valueSet": [4711]}},
            "completion": {
                "completionItem": {"tagSupport": {"valueSet": [99]}, "insertTextModeSupport": {"valueSet": [9]}},
                "completionList": {"itemDefaults": ["editRange", "smell"]},
                "insertTextMode": 7,
            },
            "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "cook"]}}},
            "publishDiagnostics": {"tagSupport": {"valueSet": [99]}},
            "rename": {"prepareSupportDefaultBehavior": 12},
            "foldingRange": {"foldingRangeKind": {"valueSet": ["paper"]}},
        },
        "workspace": {"workspaceEdit": {"resourceOperations": ["melt"], "failureHandling": "hope"}},
        "shoeSize": 44,
    }
    answer = await wire.start(capabilities, trace="deafening")
    assert answer["result"]["capabilities"]["positionEncoding"] == "utf-8"
    wire.open(URI, SCRIPT, "klingon")
    wire.open("file:///w/b.sh", SCRIPT)
    found = await wire.findings("file:///w/b.sh")
    assert RULE in rules(found)
    odd = [{**found[0], "severity": 17, "tags": [55]}]
    context = {"diagnostics": odd, "only": ["quickfix", "cook"], "triggerKind": 9}
    actions = await wire.result(
        "textDocument/codeAction",
        {"textDocument": {"uri": "file:///w/b.sh"}, "range": odd[0]["range"], "context": context},
    )
    assert actions[0]["diagnostics"][0]["severity"] == 17
    wire.faults.clear()  # what the client says of itself goes back to it as it came, and is none of the protocol's
    await wire.leave()


async def test_cancelling_is_answered(process: Process) -> None:
    wire = wire_of(process)
    await wire.start(PULL)
    wire.open(URI, SCRIPT * 30)
    first = wire.ask("textDocument/diagnostic", DOCUMENT, "c")
    wire.notify("$/cancelRequest", {"id": "c"})
    answer = await asyncio.wait_for(first, PATIENCE)
    assert answer["error"]["code"] == -32800
    for odd in ("c", "never asked", None, 3.5, {"id": 1}):
        wire.notify("$/cancelRequest", {"id": odd})
    wire.notify("$/cancelRequest", None)
    report = await wire.result("textDocument/diagnostic", DOCUMENT)
    assert RULE in rules(report["items"])
    await wire.leave()


# --- TCP and WebSocket -------------------------------------------------------------------------------------------------


async def test_two_clients_over_tcp_do_not_mix(tmp_path: Path) -> None:
    process, port = await listening("--tcp", "--once")
    try:
        one, two = [Wire(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(2)]
        await one.start({**PUSH, "general": {"positionEncodings": ["utf-8"]}})
        await two.start({**PUSH, "general": {"positionEncodings": ["utf-32"]}})
        uri = (tmp_path / "a.sh").as_uri()
        one.open(uri, SCRIPT)
        two.open(uri, SCRIPT.replace("😀 é", "😀😀😀").replace("--attention", "--no-such-flag --attention"))
        assert "no-such-flag" not in json.dumps(await one.findings(uri))
        assert "no-such-flag" in json.dumps(await two.findings(uri))
        await one.leave()
        assert process.returncode is None
        assert "result" in await two.request(
            "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}
        )
        await two.leave()
        assert await ended(process) == 0
    finally:
        if process.returncode is None:
            process.kill()


async def test_the_last_tcp_client_that_vanishes_ends_the_process() -> None:
    process, port = await listening("--tcp", "--once")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await Wire(reader, writer).start()
    writer.transport.abort()
    await ended(process)


async def test_websocket() -> None:
    websockets = pytest.importorskip("websockets.asyncio.client", reason="the package websockets is not installed")
    process, port = await listening("--ws", "--once")
    async with websockets.connect(f"ws://127.0.0.1:{port}") as socket:

        async def ask(id_: int, method: str, params: Any = None) -> Any:
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}))
            while True:
                message = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
                if message.get("id") == id_ and "method" not in message:
                    return message["result"]

        answer = await ask(1, "initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": PULL})
        assert answer["serverInfo"]["name"] == "spec-lsp"
        item = {"uri": URI, "languageId": "shellscript", "version": 1, "text": SCRIPT}
        await socket.send(
            json.dumps({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": item}})
        )
        assert RULE in rules((await ask(2, "textDocument/diagnostic", DOCUMENT))["items"])
        assert await ask(3, "shutdown") is None
        await socket.send(json.dumps({"jsonrpc": "2.0", "method": "exit"}))
    assert await ended(process) == 0


async def test_a_port_that_is_taken_is_said() -> None:
    process, port = await listening("--tcp")
    done = await asyncio.to_thread(
        subprocess.run, [*SERVER, "--tcp", "--port", str(port)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 2
    assert str(port) in done.stderr
    assert "Traceback" not in done.stderr
    process.kill()
    await process.wait()
