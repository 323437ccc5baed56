"""The playground: one page with an editor, and the language server behind it, on one port.

The page comes from this package and loads nothing from elsewhere. Its WebSocket accepts only pages of the same address (or of an allowed
origin); each connection gets a server of its own that reads no disk, only the pasted text.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import sys
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

from spec_lsp.records import dataclass
from spec_lsp.server.access import Access, all_loopback
from spec_lsp.server.server import Server
from spec_lsp.server.transports import Door, Listening, serve, serve_socket

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

MAX_MESSAGE = 1024 * 1024
"""In bytes; a pasted text is one message."""
MAX_CONNECTIONS = 64
MAX_SILENCE = 30 * 60
"""After how many seconds without a message a connection is ended; the page reconnects when somebody types."""
OPENING = 10
"""How many seconds a client may take to open its connection."""

SOCKET = "/lsp"
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/examples.json": ("examples.json", "application/json"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
HEADERS = {
    # CodeMirror puts its styles into the page; no other inline code is allowed, and nothing from elsewhere.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class Page:
    """One file of the page, as it is sent."""

    type: str
    plain: bytes
    packed: bytes
    tag: str


@cache
def page_at(path: str) -> Page | None:
    """The file at a path; None where there is none."""
    known = FILES.get(path)
    if known is None:
        return None
    data = (resources.files("spec_lsp.server") / "page" / known[0]).read_bytes()
    return Page(known[1], data, gzip.compress(data, 6, mtime=0), f'"{hashlib.sha256(data).hexdigest()[:20]}"')


def serve_playground(listening: Listening) -> int:
    """Serve until interrupted. Raises OSError when the port is not available."""
    return asyncio.run(serve(partial(Server, reads_disk=False), listening, _listen))


async def _listen(listening: Listening, door: Door) -> None:
    from websockets.asyncio.server import serve as serve_websockets

    connections = 0

    async def connected(client: ServerConnection) -> None:
        nonlocal connections
        if connections >= MAX_CONNECTIONS:
            await client.close(1013, "Too many people are here; try again in a moment.")
            return
        connections += 1
        try:
            await serve_socket(door, Patient(client))
        finally:
            connections -= 1

    async with serve_websockets(
        connected,
        listening.host,
        listening.port,
        process_request=lambda client, request: answer(request, listening.access, client.local_address[0]),
        max_size=MAX_MESSAGE,
        open_timeout=OPENING,
        server_header=None,
    ) as server:
        for bound in server.sockets:
            address, at = bound.getsockname()[:2]
            shown = f"[{address}]" if ":" in address else address
            print(f"The playground is at http://{shown}:{at}/ (Ctrl-C ends it)", file=sys.stderr, flush=True)
        if not all_loopback(bound.getsockname()[0] for bound in server.sockets):
            print(
                "spec-lsp: warning: everybody who reaches this address can use the page. It reads no file and keeps no text, "
                "but it works for whoever asks.",
                file=sys.stderr,
                flush=True,
            )
        await server.serve_forever()


class Patient:
    """A socket that stops delivering messages after a long silence."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket

    async def __aiter__(self) -> Any:
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                yield await asyncio.wait_for(self._socket.recv(), MAX_SILENCE)
        except asyncio.TimeoutError:
            await self._socket.close(1000, "Nothing was typed for half an hour.")
        except ConnectionClosed:
            return

    @property
    def transport(self) -> Any:
        return self._socket.transport

    async def send(self, message: str) -> None:
        await self._socket.send(message)

    async def close(self) -> None:
        await self._socket.close()


# --- HTTP --------------------------------------------------------------------------------------------------------------


def answer(request: Request, access: Access, address: str) -> Response | None:
    """The answer to a request that arrived at our `address`; None lets the WebSocket be opened."""
    refused = access.refusal(request.path, request.headers, address)
    if refused is not None:
        return _response(refused[0], f"{refused[1]}\n".encode())
    path = request.path.partition("?")[0]
    if path == SOCKET:
        return None
    page = page_at(path)
    if page is None:
        return _response(404, b"There is nothing here.\n")
    headers = {"Content-Type": page.type, "ETag": page.tag, "Vary": "Accept-Encoding"}
    if request.headers.get("If-None-Match") == page.tag:
        return _response(304, b"", headers)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return _response(200, page.packed, {**headers, "Content-Encoding": "gzip"})
    return _response(200, page.plain, headers)


def _response(status: int, body: bytes, headers: dict[str, str] | None = None) -> Response:
    from http import HTTPStatus

    from websockets.datastructures import Headers
    from websockets.http11 import Response

    said = {"Content-Type": "text/plain; charset=utf-8", **HEADERS, **(headers or {}), "Content-Length": str(len(body))}
    return Response(status, HTTPStatus(status).phrase, Headers({**said, "Connection": "close"}), body)
