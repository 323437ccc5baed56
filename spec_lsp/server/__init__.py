"""The language server: the only package that knows the protocol's types.

`run("stdio")` serves one client on standard input and output, `run("tcp", "127.0.0.1", 2087)` any number of clients, each with
a server of its own. A message goes

    transports → inbox → protocol → server (wiring) → features/ → session (texts, settings, analyses) → engine → spec_lsp.analysis
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal

Transport = Literal["stdio", "tcp", "ws"]

__all__ = ["run", "run_playground"]


def run(
    transport: Transport = "stdio",
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    once: bool = False,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    token: str = "",
    find_files: Callable[[Sequence[str]], Iterable[str]] | None = None,
) -> int:
    """Serve. Returns the exit code when the client has left (over TCP and WebSocket only with `once`, when the last one has), or at Ctrl-C
    or SIGTERM (130, 143).

    `host` and `port` are where TCP and WebSocket listen; port 0 means any free one, which is printed to standard error. `hosts`, `origins`
    and `token` are required of a WebSocket's opening request: see `access.Access`. `find_files`: see `host.Host`.

    Raises OSError when the port is not available, ImportError when the package websockets is missing for "ws".
    """
    _prepare()
    from spec_lsp.server import transports
    from spec_lsp.server.access import Access
    from spec_lsp.server.server import Server

    make = partial(Server, find_files=find_files)
    listening = transports.Listening(host, port, once, Access(tuple(hosts), tuple(origins), token))
    if transport == "tcp":
        return transports.serve_tcp(make, listening)
    if transport == "ws":
        return transports.serve_ws(make, listening)
    return transports.serve_stdio(make)


def run_playground(host: str, port: int, *, hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> int:
    """Serve the page into which a launch can be pasted, until Ctrl-C (exit code 130). Raises OSError when the port is not available."""
    _prepare()
    from spec_lsp.server.access import Access
    from spec_lsp.server.playground import serve_playground
    from spec_lsp.server.transports import Listening

    return serve_playground(Listening(host, port, access=Access(tuple(hosts), tuple(origins))))


def _prepare() -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.WARNING)  # below, it writes every message it handles
    from spec_lsp.server.lean import import_protocol

    import_protocol()
