"""One connection's server: its session and its features, connected here and nowhere else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from spec_lsp import __version__
from spec_lsp.server.client import Client, read_client
from spec_lsp.server.engine import Engine, RealEngine
from spec_lsp.server.features import (
    code_actions,
    code_lens,
    comparing,
    completion,
    configuration,
    definition,
    diagnostics,
    document_links,
    hover,
    inlay_hints,
    launches,
    ranges,
    reference,
    refreshing,
    sync,
    verifying,
    watching,
    workspace_diagnostics,
)
from spec_lsp.server.protocol import ContentModified, Protocol, converter, settled
from spec_lsp.server.session import Session
from spec_lsp.server.warm import warm_up

if TYPE_CHECKING:
    from spec_lsp.server.features.diagnostics import Diagnostics
    from spec_lsp.server.features.refreshing import Refreshing
    from spec_lsp.server.features.sync import Sync
    from spec_lsp.server.features.verifying import Verifying

log = logging.getLogger(__name__)

FEATURES = (
    sync,
    diagnostics,
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
    refreshing,
    workspace_diagnostics,
    verifying,
)

FindFiles = Callable[[Sequence[str]], Iterable[str]]

REFRESH_SECONDS = 10.0
"""How many seconds a client may take to acknowledge that it will ask again."""
MAX_POPUPS = 3
"""The most distinct errors that are shown in a session; the log has all of them."""


class Server(LanguageServer):
    """One client's server. `session`, `texts` and `diagnostics` exist after `initialize`."""

    session: Session
    texts: Sync
    diagnostics: Diagnostics
    refreshing: Refreshing
    verifying: Verifying

    def __init__(
        self, engine: Engine | None = None, *, reads_disk: bool = True, find_files: FindFiles | None = None
    ) -> None:
        """Without `reads_disk` only what the client sends is used. `find_files` returns the files in folders that may launch SGLang, for
        clients that want diagnostics of all; it is called in a thread."""
        super().__init__("spec-lsp", __version__, protocol_cls=Protocol, converter_factory=converter)
        self.engine = engine or RealEngine()
        self.find_files = find_files
        self._reads_disk = reads_disk
        self._shown: set[str] = set()
        self._beginning: asyncio.Task[None] | None = None
        self._beginnings: list[Callable[[], Awaitable[None]]] = []
        self.look_around: Callable[[], None] = lambda: None
        """Check whether files around the open documents changed, for clients that do not report it."""
        self.surroundings_changed: Callable[[], None] = lambda: None
        """Called when files, folders or settings have changed."""
        self.folders_came: Callable[[], None] = lambda: None
        """Called when the workspace folders have changed."""

    @property
    def client(self) -> Client:
        return self.session.client

    @property
    def wire(self) -> Protocol:
        """The connection."""
        assert isinstance(self.protocol, Protocol)
        return self.protocol

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
            reads_disk=self._reads_disk,
        )
        self.wire.on_end = self.session.end
        capabilities: dict[str, Any] = {"positionEncoding": self.client.encoding}
        for feature in FEATURES:
            capabilities.update(feature.register(self))
        capabilities["executeCommandProvider"] = {"commands": list(self.wire.fm.commands)}

        @self.feature(types.INITIALIZED)
        def initialized(_: types.InitializedParams) -> None:
            self._beginning = asyncio.get_running_loop().create_task(self._begin())

        return {"capabilities": capabilities, "serverInfo": {"name": self.name, "version": self.version}}

    def when_initialized(self, begin: Callable[[], Awaitable[None]]) -> None:
        """Run this once the client has said `initialized`."""
        self._beginnings.append(begin)

    async def _begin(self) -> None:
        """Some of these steps wait for answers of the client, which may never come, so they do not wait for each other."""
        ended = await asyncio.gather(*(begin() for begin in self._beginnings), warm_up(self), return_exceptions=True)
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

    def stop(self) -> None:
        """End what a thread is waiting for, as the end of the process would wait for the thread."""
        if hasattr(self, "verifying"):
            self.verifying.end()

    # --- what happens around the texts

    def files_changed(self, names: Iterable[str]) -> None:
        """Files changed on disk (document names)."""
        self.surroundings_changed()
        concerned = self.session.files_changed(names)
        self.diagnostics.surroundings_changed(concerned)
        if concerned:
            self.refreshing.refresh()

    def folders_changed(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        """Workspace folders came or went."""
        event = params.event
        self.session.folders_changed((f.uri for f in event.added), (f.uri for f in event.removed))
        self.everything_changed()
        self.folders_came()

    def everything_changed(self) -> None:
        """All documents must be analysed again."""
        self.surroundings_changed()
        self.diagnostics.surroundings_changed([text.name for text in self.session.texts])
        self.refreshing.refresh()

    # --- asking the client

    async def refresh(self, method: str) -> None:
        """Have the client request again what it shows. A client that does not answer may be asked again later."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.ask(method, None), REFRESH_SECONDS)

    async def ask(self, method: str, params: Any) -> Any:
        """Send a request to the client; None if it refuses or does not know it."""
        try:
            return await settled(self.wire.send_request_async(method, params))
        except JsonRpcException as error:
            log.warning("%s: %s", method, error)
            return None

    async def register_dynamically(self, method: str, options: Any) -> bool:
        """Register for a method that cannot be registered in the answer to `initialize`; returns whether the client agreed."""
        registration = types.Registration(id=f"spec-lsp {method}", method=method, register_options=options)
        params = types.RegistrationParams(registrations=[registration])
        try:
            await settled(self.wire.send_request_async(types.CLIENT_REGISTER_CAPABILITY, params))
        except JsonRpcException as error:
            log.warning("%s: %s", types.CLIENT_REGISTER_CAPABILITY, error)
            return False
        return True

    # --- words to the person

    def log_line(self, line: str) -> None:
        """A line in the client's log."""
        self.wire.notify_plain(types.WINDOW_LOG_MESSAGE, {"type": 3, "message": line})

    def warn(self, line: str) -> None:
        """A message shown to the user, and logged."""
        self.wire.notify_plain(types.WINDOW_LOG_MESSAGE, {"type": 2, "message": line})
        self.wire.notify_plain(types.WINDOW_SHOW_MESSAGE, {"type": 2, "message": f"spec-lsp: {line}"})

    def report_server_error(self, error: Exception, source: Any) -> None:
        """A line in the client's log for every internal error, and a message for the first of its kind.

        An error in a request is already in its answer, and a text that changed meanwhile is no error.
        """
        if isinstance(error, ContentModified):
            return
        kind = f"{type(error).__name__}: {error}".strip()
        self.wire.notify_plain(types.WINDOW_LOG_MESSAGE, {"type": 1, "message": kind})
        first_line = kind.partition("\n")[0]
        in_answer = getattr(source, "__name__", "") == "FeatureRequestError"
        if not in_answer and first_line not in self._shown and len(self._shown) < MAX_POPUPS:
            self._shown.add(first_line)
            self.wire.notify_plain(types.WINDOW_SHOW_MESSAGE, {"type": 1, "message": f"spec-lsp: {first_line}"})
