"""The language server: the only package that knows the protocol's types.

`run("stdio")` serves one client on standard input and output, `run("tcp", "127.0.0.1", 2087)` any number of clients, each with
a server of its own, until the last one has left. A message goes

    transports → protocol → server (wiring) → features/ → session (texts, settings, analyses) → engine → spec_lsp.analysis
"""

from __future__ import annotations

import logging
import sys
from typing import Literal

Transport = Literal["stdio", "tcp", "ws"]

__all__ = ["run"]


def run(transport: Transport = "stdio", host: str = "127.0.0.1", port: int = 0) -> int:
    """Serve until the client leaves; returns the exit code.

    `host` and `port` are for TCP and WebSocket (port 0: any free one, printed to standard error). Raises OSError when the port
    cannot be had, ImportError when the package websockets is missing for "ws".
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.WARNING)  # below, it writes every message it handles
    from spec_lsp.server.lean import import_protocol

    import_protocol()
    from spec_lsp.server import transports
    from spec_lsp.server.server import Server

    if transport == "tcp":
        return transports.serve_tcp(Server, host, port)
    if transport == "ws":
        return transports.serve_ws(Server, host, port)
    return transports.serve_stdio(Server)
