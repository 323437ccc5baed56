"""One connection's server: its session and its features, connected here and nowhere else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any

from lsprotocol import types

from spec_lsp.server.client import read_client
from spec_lsp.server.features import (
    code_actions,
    code_lens,
    comparing,
    completion,
    configuration,
    definition,
    document_links,
    hover,
    inlay_hints,
    launches,
    pulling,
    ranges,
    reference,
    sync,
    verifying,
    watching,
    workspace_diagnostics,
)
from spec_lsp.server.features.sync import Sync
from spec_lsp.server.session import Session
from spec_lsp.server.shared import SharedHost
from spec_lsp.server.warm import warm_up

log = logging.getLogger(__name__)

FEATURES = (
    sync,
    pulling,
    code_actions,
    hover,
    completion,
    inlay_hints,
    code_lens,
    definition,
    document_links,
    launches,
    ranges,
    comparing,
    reference,
    configuration,
    watching,
    workspace_diagnostics,
    verifying,
)


class Server(SharedHost):
    """One client's server with all its features."""

    texts: Sync
    """Exists after `initialize`."""
    _beginning: asyncio.Task[None] | None = None

    def greet(self, params: types.InitializeParams, offered: Any) -> dict[str, Any]:
        """The answer to `initialize`: the capabilities that the features offer to this client, by what it `offered` (its own capabilities,
        JSON)."""
        self.session = Session(
            read_client(params, offered),
            self.engine,
            self.log_line,
            self.warn,
            self.wire.inbox,
            self.wire.is_under_way,
            reads_disk=self.reads_disk,
        )
        self.wire.on_end = self.session.end
        self.share()
        self.texts = Sync(self)
        capabilities: dict[str, Any] = {"positionEncoding": self.client.encoding}
        for feature in FEATURES:
            capabilities.update(feature.register(self))
        capabilities["executeCommandProvider"] = {"commands": list(self.wire.fm.commands)}

        @self.feature(types.INITIALIZED)
        def initialized(_: types.InitializedParams) -> None:
            self._beginning = asyncio.get_running_loop().create_task(self._begin())

        return {"capabilities": capabilities, "serverInfo": {"name": self.name, "version": self.version}}

    async def _begin(self) -> None:
        """Some of these steps wait for answers of the client, which may never come, so they do not wait for each other."""
        ended = await asyncio.gather(*(begin() for begin in self.beginnings), warm_up(self), return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                log.error("after `initialized`", exc_info=error)

    def leave(self) -> Awaitable[None]:
        """The client leaves. Returns an awaitable that ends when the cancelled requests have been answered."""
        if self._beginning is not None:
            self._beginning.cancel()
        self.stop()
        given_up = self.wire.give_up()

        async def answered() -> None:
            if given_up:
                await asyncio.wait(given_up)
            self.wire.send_bytes = None

        return answered()
