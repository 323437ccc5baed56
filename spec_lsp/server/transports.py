"""stdio, TCP and WebSocket. Each connection gets a server of its own, so that clients do not mix."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

from spec_lsp.server.framing import Framer, frame

if TYPE_CHECKING:
    from spec_lsp.server.server import Server

log = logging.getLogger(__name__)

MakeServer = Callable[[], "Server"]

PARENT_CHECK_SECONDS = 3.0
CHUNK = 1 << 16


# --- stdio ------------------------------------------------------------------------------------------------------------


def serve_stdio(make: MakeServer) -> int:
    """Serve one client on standard input and output. Returns the exit code: 0 after `shutdown`, 1 when the client just
    left."""
    reading, writing = _take_stdio()
    return asyncio.run(_stdio(make(), reading, writing))


async def _stdio(server: Server, reading: int, writing: BinaryIO) -> int:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def end(code: int) -> None:
        if not ended.done():
            ended.set_result(code)

    def send(body: bytes) -> None:
        try:
            writing.write(frame(body))
            writing.flush()
        except (OSError, ValueError):
            end(1)

    def watch(pid: int | None) -> None:
        if pid is not None and _alive(pid):  # one that cannot be seen from here (a container) is not watched
            watching.append(loop.create_task(_watch_parent(pid, end)))

    watching: list[asyncio.Task[None]] = []
    server.wire.send_bytes = send
    server.wire.on_exit = end
    server.wire.on_initialize = watch
    incoming = _Incoming(server.wire.receive)
    server.wire.somebody_waits = incoming.waits
    threading.Thread(target=_read, args=(reading, loop, incoming, end), daemon=True).start()
    return await ended


class _Incoming:
    """Messages on their way from the reading thread to the loop, counted."""

    def __init__(self, receive: Callable[[bytes], None]) -> None:
        self._receive = receive
        self._came = 0
        self._handled = 0

    def came(self, loop: asyncio.AbstractEventLoop, body: bytes) -> None:
        """Called in the reading thread."""
        self._came += 1
        loop.call_soon_threadsafe(self._handle, body)

    def _handle(self, body: bytes) -> None:
        self._handled += 1
        self._receive(body)

    def waits(self) -> bool:
        """Called on the loop: whether a message has come that it has not handled yet."""
        return self._came > self._handled


def _read(source: int, loop: asyncio.AbstractEventLoop, incoming: _Incoming, end: Callable[[int], None]) -> None:
    """Read messages in a thread of its own (on every system, whatever kind of file standard input is) and hand them to
    the loop."""
    framer = Framer()
    try:
        while data := os.read(source, CHUNK):
            for body in framer.feed(data):
                incoming.came(loop, body)
    except OSError as error:
        log.warning("standard input: %s", error)
    try:
        loop.call_soon_threadsafe(end, 1)
    except RuntimeError:
        return  # the loop has ended already


def _take_stdio() -> tuple[int, BinaryIO]:
    """Standard input as a descriptor and output as a file, for us alone: what anything else prints goes to standard
    error."""
    reading, writing = os.dup(0), os.dup(1)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(reading, os.O_BINARY)
        msvcrt.setmode(writing, os.O_BINARY)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return reading, os.fdopen(writing, "wb")


async def _watch_parent(pid: int, end: Callable[[int], None]) -> None:
    """End when the process that started us is gone."""
    while _alive(pid):
        await asyncio.sleep(PARENT_CHECK_SECONDS)
    log.warning("the client's process %s is gone", pid)
    end(1)


def _alive(pid: int) -> bool:
    if sys.platform == "win32":
        import ctypes

        handle = ctypes.windll.kernel32.OpenProcess(0x00100000, False, pid)
        if handle:
            ctypes.windll.kernel32.CloseHandle(handle)
        return bool(handle)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


# --- TCP and WebSocket ------------------------------------------------------------------------------------------------


class _Clients:
    """Counts the clients of a listening server: it ends when the last one has left."""

    def __init__(self) -> None:
        self._count = 0
        self._code = 0
        self.all_left: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def came(self) -> None:
        self._count += 1

    def left(self, code: int) -> None:
        self._count -= 1
        self._code = max(self._code, code)
        if self._count == 0 and not self.all_left.done():
            self.all_left.set_result(self._code)


def serve_tcp(make: MakeServer, host: str, port: int) -> int:
    """Listen for clients until the last one has left."""
    return asyncio.run(_tcp(make, host, port))


async def _tcp(make: MakeServer, host: str, port: int) -> int:
    clients = _Clients()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        clients.came()
        clients.left(await _tcp_client(make(), reader, writer))

    listening = await asyncio.start_server(connected, host, port)
    _announce(listening.sockets)
    async with listening:
        return await clients.all_left


async def _tcp_client(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
    exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def end(code: int) -> None:
        if not exit_code.done():
            exit_code.set_result(code)

    server.wire.send_bytes = lambda body: None if writer.is_closing() else writer.write(frame(body))
    server.wire.on_exit = end
    reading = asyncio.create_task(_read_stream(reader, server.wire.receive, end))
    code = await exit_code
    reading.cancel()
    server.wire.send_bytes = None
    try:
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    except OSError:
        log.debug("the client closed first")
    return code


async def _read_stream(
    reader: asyncio.StreamReader, receive: Callable[[bytes], None], end: Callable[[int], None]
) -> None:
    framer = Framer()
    try:
        while data := await reader.read(CHUNK):
            for body in framer.feed(data):
                receive(body)
                await asyncio.sleep(0)
    except OSError as error:
        log.debug("connection lost: %s", error)
    end(1)


def serve_ws(make: MakeServer, host: str, port: int) -> int:
    """Listen for WebSocket clients until the last one has left. Raises ImportError when the package websockets is
    missing."""
    import websockets  # noqa: F401

    return asyncio.run(_ws(make, host, port))


async def _ws(make: MakeServer, host: str, port: int) -> int:
    from websockets.asyncio.server import serve

    clients = _Clients()

    async def connected(socket: Any) -> None:
        clients.came()
        clients.left(await _ws_client(make(), socket))

    async with serve(connected, host, port, max_size=None) as listening:
        _announce(listening.sockets)
        return await clients.all_left


async def _ws_client(server: Server, socket: Any) -> int:
    from websockets.exceptions import ConnectionClosed

    outgoing: asyncio.Queue[bytes | None] = asyncio.Queue()
    codes: list[int] = []
    server.wire.send_bytes = outgoing.put_nowait

    def leave(code: int) -> None:
        codes.append(code)
        outgoing.put_nowait(None)

    server.wire.on_exit = leave

    async def write() -> None:
        while (body := await outgoing.get()) is not None:
            await socket.send(body.decode())
        await socket.close()

    writing = asyncio.create_task(write())
    try:
        async for message in socket:
            server.wire.receive(message.encode() if isinstance(message, str) else message)
            await asyncio.sleep(0)
    except ConnectionClosed:
        log.debug("connection lost")
    server.wire.send_bytes = None
    writing.cancel()
    return codes[0] if codes else 1


def _announce(sockets: Any) -> None:
    """Say where we listen, on standard error: with port 0 the system has chosen."""
    for socket in sockets:
        print("spec-lsp listens on {}:{}".format(*socket.getsockname()[:2]), file=sys.stderr, flush=True)
