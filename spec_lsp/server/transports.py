"""stdio, TCP and WebSocket. Each connection gets a server of its own, so that clients do not mix.

All servers of a process work on one loop, in the main thread. Messages are read in other threads: those of standard input in one thread,
those of the network on a loop of its own. So connections are accepted, refused and kept alive, and messages arrive, however long an
analysis takes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO

from spec_lsp.records import dataclass, field, replace
from spec_lsp.server.access import Access, all_loopback, new_token
from spec_lsp.server.framing import MAX_BODY, Fault, Framer, frame
from spec_lsp.server.inbox import Inbox, Message

if TYPE_CHECKING:
    from spec_lsp.server.server import Server

log = logging.getLogger(__name__)

MakeServer = Callable[[], "Server"]

PARENT_CHECK_SECONDS = 3.0
CHUNK = 1 << 16
MAX_UNREAD = 64 * 1024 * 1024
"""How many bytes a network client may leave unread before it counts as gone."""


class Connection:
    """A client's server on the loop. Created on the reading thread; `send` and `hang_up` (with the exit code) are called on the loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        make: MakeServer,
        send: Callable[[bytes], None],
        hang_up: Callable[[int], None],
    ) -> None:
        self.inbox = Inbox(loop, self._receive)
        self._make = make
        self._send = send
        self._hang_up = hang_up
        self._server: Server | None = None
        self._leaving: asyncio.Task[None] | None = None

    @property
    def server(self) -> Server:
        """The client's server, made when its first message is handled."""
        if self._server is None:
            self._server = self._make()
            self._server.wire.send_bytes = self._send
            self._server.wire.on_exit = self._exit
            self._server.wire.inbox = self.inbox
        return self._server

    def _receive(self, message: Message) -> None:
        self.server.wire.receive_message(message)

    def _exit(self, code: int) -> None:
        if self._leaving is None:
            answered = self._server.leave() if self._server is not None else None
            self._leaving = asyncio.get_running_loop().create_task(self._leave(answered, code))

    async def _leave(self, answered: Awaitable[None] | None, code: int) -> None:
        if answered is not None:
            await answered
        self._hang_up(code)

    def left(self, code: int = 1) -> None:
        """The client has gone without `exit`, or we end. Called on the reading thread after all its messages were put into the inbox, or by
        a signal."""
        self.inbox.close(lambda: self._exit(code))


def _at_signals(leave: Callable[[int], None]) -> None:
    """Let Ctrl-C and SIGTERM end the server as if its client left, with the exit code that a shell shows; a second signal ends the process
    at once.

    asyncio's own handlers wait for the loop; KeyboardInterrupt, raised wherever the main thread is, leaves tasks that never end.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def at_once(number: int, _: FrameType | None) -> None:
        os._exit(128 + number)

    def first(number: int, _: FrameType | None) -> None:
        signal.signal(number, at_once)
        leave(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, first)


# --- stdio ------------------------------------------------------------------------------------------------------------


def serve_stdio(make: MakeServer) -> int:
    """Serve one client on standard input and output. Returns the exit code: 0 after `shutdown`, 1 if the client just left, and what a shell
    shows for a signal."""
    reading, writing = _take_stdio()
    return asyncio.run(_stdio(make, reading, writing))


async def _stdio(make: MakeServer, reading: int, writing: BinaryIO) -> int:
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
        if pid is not None and _alive(pid):  # a process that is not visible from here (in a container) is not watched
            watching.append(loop.create_task(_watch_parent(pid, end)))

    watching: list[asyncio.Task[None]] = []
    connection = Connection(loop, make, send, end)
    connection.server.wire.on_initialize = watch
    _at_signals(connection.left)
    threading.Thread(target=_read, args=(reading, connection), daemon=True).start()
    try:
        return await ended
    finally:  # just as when the client's process is gone
        connection.server.stop()


def _read(source: int, connection: Connection) -> None:
    """Read messages in a separate thread, which works on every system and for any kind of standard input."""
    framer = Framer()
    try:
        while data := os.read(source, CHUNK):
            for came in framer.feed(data):
                connection.inbox.put(came)
    except OSError as error:
        log.warning("standard input: %s", error)
    connection.left()


def _take_stdio() -> tuple[int, BinaryIO]:
    """Standard input as a descriptor and output as a file, reserved for us: whatever else is printed goes to standard error."""
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
    """End when the process that started us has ended."""
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


@dataclass(frozen=True, slots=True)
class Listening:
    """Where to listen, and for whom. `once`: end when the last client that sent `initialize` has left."""

    host: str = "127.0.0.1"
    port: int = 0
    once: bool = False
    access: Access = field(default_factory=Access)


def serve_tcp(make: MakeServer, listening: Listening) -> int:
    """Listen for clients. Returns only with `once` or at a signal; raises OSError when the address is not available."""
    return asyncio.run(serve(make, listening, _listen_tcp))


def serve_ws(make: MakeServer, listening: Listening) -> int:
    """Listen for WebSocket clients, as `serve_tcp` does. Raises ImportError when the package websockets is missing."""
    import websockets  # noqa: F401

    return asyncio.run(serve(make, listening, _listen_ws))


async def serve(make: MakeServer, listening: Listening, listen: Callable[[Listening, Door], Awaitable[None]]) -> int:
    """Serve the clients that `listen` accepts; it runs on a thread and loop of its own."""
    loop = asyncio.get_running_loop()
    door = Door(loop, make, listening.once)

    def network() -> None:
        try:
            asyncio.run(listen(listening, door))  # type: ignore[arg-type]
        except BaseException as error:
            loop.call_soon_threadsafe(door.fail, error)

    _at_signals(door.close)
    threading.Thread(target=network, daemon=True).start()
    return await door.ended


class Door:
    """Manages the clients of a listening server: knows who is connected, and when the last one has left."""

    def __init__(self, loop: asyncio.AbstractEventLoop, make: MakeServer, once: bool) -> None:
        self._loop = loop
        self._make = make
        self._once = once
        self._inside: set[Connection] = set()
        self.ended: asyncio.Future[int] = loop.create_future()

    def enter(self, send: Callable[[bytes], None], hang_up: Callable[[], None]) -> Connection:
        """A client has connected. Called on the network's thread, on which `send` and `hang_up` will be called too."""
        network = asyncio.get_running_loop()

        def made() -> Server:
            self._inside.add(connection)
            return self._make()

        def left(code: int) -> None:
            _soon(network, hang_up)
            self._leave(connection, code)

        connection = Connection(self._loop, made, lambda body: _soon(network, send, body), left)
        return connection

    def _leave(self, connection: Connection, code: int) -> None:
        if connection in self._inside:
            self._inside.remove(connection)
            if self._once and not self._inside:
                self._end(code)

    def close(self, code: int) -> None:
        """Disconnect all clients. Called by a signal."""
        for connection in tuple(self._inside):
            connection.left(code)
        self._loop.call_soon_threadsafe(self._end, code)

    def _end(self, code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(code)

    def fail(self, error: BaseException) -> None:
        """No client can connect."""
        if not self.ended.done():
            self.ended.set_exception(error)


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *arguments: object) -> None:
    try:
        loop.call_soon_threadsafe(call, *arguments)
    except RuntimeError:
        log.debug("the network's loop has ended already")


async def _listen_tcp(listening: Listening, door: Door) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _tcp_client(door, reader, writer)

    server = await asyncio.start_server(connected, listening.host, listening.port)
    _announce(server.sockets, "TCP has no way to ask who it is: everybody who reaches the port is served.")
    async with server:
        await server.serve_forever()


async def _tcp_client(door: Door, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    def send(body: bytes) -> None:
        if writer.transport.get_write_buffer_size() > MAX_UNREAD:
            writer.transport.abort()
        elif not writer.is_closing():
            writer.write(frame(body))

    connection = door.enter(send, writer.close)
    framer = Framer()
    try:
        while data := await reader.read(CHUNK):
            for came in framer.feed(data):
                if isinstance(came, Fault) and came.foreign:
                    writer.close()  # the client (a browser, say) speaks another protocol
                    return
                connection.inbox.put(came)
                if isinstance(came, Fault):
                    return  # it is answered before the connection ends
    except OSError as error:
        log.debug("connection lost: %s", error)
    finally:
        connection.left()


async def _listen_ws(listening: Listening, door: Door) -> None:
    from websockets.asyncio.server import ServerConnection
    from websockets.asyncio.server import serve as serve_websockets
    from websockets.http11 import Request, Response

    access = listening.access

    def ask(client: ServerConnection, request: Request) -> Response | None:
        refused = access.refusal(request.path, request.headers, client.local_address[0])
        if refused is None:
            return None
        log.warning("a client was turned away: %s", refused[1])
        return client.respond(refused[0], refused[1] + "\n")

    async def connected(client: ServerConnection) -> None:
        await serve_socket(door, client)

    async with serve_websockets(
        connected, listening.host, listening.port, process_request=ask, max_size=MAX_BODY
    ) as server:
        sockets = list(server.sockets)
        _announce(sockets, "They must know the token.")
        if not _reached_only_from_here(sockets) and not access.token:
            access = replace(access, token=new_token())
            print(f"spec-lsp token: {access.token}", file=sys.stderr, flush=True)
        await server.serve_forever()


async def serve_socket(door: Door, client: Any) -> None:
    """Serve the client of an open WebSocket until it leaves."""
    from websockets.exceptions import ConnectionClosed

    outgoing: asyncio.Queue[bytes | None] = asyncio.Queue()
    unread = 0

    def send(body: bytes) -> None:
        nonlocal unread
        unread += len(body)
        if unread > MAX_UNREAD:
            client.transport.abort()
        else:
            outgoing.put_nowait(body)

    async def write() -> None:
        nonlocal unread
        while (body := await outgoing.get()) is not None:
            await client.send(body.decode())
            unread -= len(body)
        await client.close()

    connection = door.enter(send, lambda: outgoing.put_nowait(None))
    writing = asyncio.create_task(write())
    try:
        async for message in client:
            connection.inbox.put(message.encode("utf-8", "surrogatepass") if isinstance(message, str) else message)
    except ConnectionClosed:
        log.debug("connection lost")
    finally:
        connection.left()
        writing.cancel()


def _reached_only_from_here(sockets: Any) -> bool:
    return all_loopback(socket.getsockname()[0] for socket in sockets)


def _announce(sockets: Any, more: str) -> None:
    """Print the address on standard error (with port 0 the system has chosen it), with a warning if other machines can reach it."""
    for socket in sockets:
        print("spec-lsp listens on {}:{}".format(*socket.getsockname()[:2]), file=sys.stderr, flush=True)
    if not _reached_only_from_here(sockets):
        print(
            f"spec-lsp: warning: other machines reach this address, and clients name the folders that are read. {more}",
            file=sys.stderr,
            flush=True,
        )
