"""A client of the bare protocol that takes nothing for granted.

It reads all the time, answers what the server asks as an editor does, and keeps account: each request gets one answer, never two, and
nothing is answered that was not asked. What the server sends is held to the protocol's types.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from lsprotocol import converters, types

from tests.e2e.shared import PATIENCE, until

Message = dict[str, Any]
_CONVERTER = converters.get_converter()


class Wire:
    """One connection. Ends with `finish`, which says what was wrong with it."""

    def __init__(self, reader: asyncio.StreamReader, writer: Any) -> None:
        self._reader = reader
        self._writer = writer
        self._id = 0
        self._asked: dict[Any, tuple[str, asyncio.Future[Message]]] = {}
        self._answered: set[Any] = set()
        self.faults: list[str] = []
        self.notifications: list[Message] = []
        self.questions: list[str] = []
        """The methods the server asked for."""
        self.stray: list[Message] = []
        """Answers to what could not be understood: their id is null."""
        self.answers: dict[str, Callable[[Any], Any]] = {"workspace/configuration": lambda p: [None] * len(p["items"])}
        self.ended = asyncio.Event()
        self._reading = asyncio.get_running_loop().create_task(self._read_all())

    # --- out

    def send(self, message: Any) -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def send_bytes(self, data: bytes) -> None:
        self._writer.write(data)

    def notify(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: Any = None, id_: Any = None) -> asyncio.Future[Message]:
        """Send a request; the future is its whole answer."""
        self._id += 1
        key = self._id if id_ is None else id_
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._asked[key] = (method, future)
        self.send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
        return future

    async def request(self, method: str, params: Any = None, id_: Any = None) -> Message:
        return await asyncio.wait_for(self.ask(method, params, id_), PATIENCE)

    async def result(self, method: str, params: Any = None) -> Any:
        """The result of a request that must not fail."""
        answer = await self.request(method, params)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    async def start(self, capabilities: Any = None, **params: Any) -> Message:
        told = {"processId": None, "rootUri": None, "capabilities": capabilities or {}, **params}
        answer = await self.request("initialize", told)
        self.notify("initialized", {})
        return answer

    def open(self, uri: str, text: str, language: str = "shellscript", version: int = 1) -> None:
        item = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    async def leave(self) -> None:
        """Say goodbye as a client should."""
        assert await self.result("shutdown") is None
        self.notify("exit", None)
        await asyncio.wait_for(self.ended.wait(), PATIENCE)
        self.finish()

    def finish(self) -> None:
        """Fails when a request has no answer, or when anything came that should not have."""
        self._reading.cancel()
        waiting = [f"{method} ({key!r})" for key, (method, _) in self._asked.items()]
        assert not waiting, f"not answered: {waiting}"
        assert not self.faults, self.faults

    # --- in

    def published(self, uri: str) -> Message | None:
        """The last publication for a document."""
        pushed = [m["params"] for m in self.notifications if m["method"] == "textDocument/publishDiagnostics"]
        return next((p for p in reversed(pushed) if p["uri"] == uri), None)

    async def findings(self, uri: str, *, some: bool = True) -> list[Message]:
        """The diagnostics of the first publication from now on, the last one included, with (or without) any."""

        def wanted() -> Message | None:
            last = self.published(uri)
            return last if last is not None and bool(last["diagnostics"]) == some else None

        found: list[Message] = (await until(wanted, f"diagnostics of {uri}"))["diagnostics"]
        return found

    async def _read_all(self) -> None:
        try:
            while True:
                self._take(await self._read())
        except (EOFError, ConnectionError, asyncio.IncompleteReadError):
            self.ended.set()
            for _, future in self._asked.values():
                if not future.done():
                    future.set_exception(EOFError("the server has gone"))

    async def _read(self) -> Message:
        length = 0
        while (line := await self._reader.readline()).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        if not line:
            raise EOFError
        message: Message = json.loads(await self._reader.readexactly(length))
        return message

    def _take(self, message: Message) -> None:
        if message.get("jsonrpc") != "2.0":
            self.faults.append(f"no JSON-RPC: {message}")
        if "method" not in message:
            self._take_answer(message)
        elif "id" in message:
            self._answer(message)
        else:
            self.notifications.append(message)
            self._hold_to(types.METHOD_TO_TYPES.get(message["method"], (None,))[0], message)

    def _take_answer(self, message: Message) -> None:
        key = message.get("id")
        if ("result" in message) == ("error" in message):
            self.faults.append(f"an answer has a result or an error: {message}")
        if key is None:
            self.stray.append(message)
        elif key in self._asked:
            method, future = self._asked.pop(key)
            self._answered.add(key)
            if "result" in message:
                self._hold_to(types.METHOD_TO_TYPES.get(method, (None, None))[1], message)
            future.set_result(message)
        else:
            self.faults.append(f"{'answered twice' if key in self._answered else 'not asked for'}: {message}")

    def _answer(self, message: Message) -> None:
        method = message["method"]
        self.questions.append(method)
        self._hold_to(types.METHOD_TO_TYPES.get(method, (None,))[0], message)
        result = self.answers.get(method, lambda _: None)(message.get("params"))
        self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _hold_to(self, expected: Any, message: Message) -> None:
        if expected is None:
            return
        try:
            _CONVERTER.structure(message, expected)
        except Exception as problem:
            self.faults.append(f"not of the protocol's type {expected.__name__}: {problem!r}: {str(message)[:500]}")
