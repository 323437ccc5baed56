"""What features need of the server they are in: the session, the connection, and asking the client."""

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
from spec_lsp.server.engine import Engine, RealEngine
from spec_lsp.server.protocol import ContentModified, Protocol, converter, settled

if TYPE_CHECKING:
    from spec_lsp.server.client import Client
    from spec_lsp.server.session import Session

log = logging.getLogger(__name__)

FindFiles = Callable[[Sequence[str]], Iterable[str]]

REFRESH_SECONDS = 10.0
"""How many seconds a client may take to acknowledge that it will ask again."""
MAX_POPUPS = 3
"""The most distinct errors that are shown in a session; the log has all of them."""


class Host(LanguageServer):
    """One client's server without its features. `session` exists after `initialize`."""

    session: Session

    def __init__(
        self, engine: Engine | None = None, *, reads_disk: bool = True, find_files: FindFiles | None = None
    ) -> None:
        """Without `reads_disk` only what the client sends is used. `find_files` returns the files in folders that may launch SGLang, for
        clients that want diagnostics of all; it is called in a thread."""
        super().__init__("spec-lsp", __version__, protocol_cls=Protocol, converter_factory=converter)
        self.engine = engine or RealEngine()
        self.find_files = find_files
        self.reads_disk = reads_disk
        self._shown: set[str] = set()
        self.beginnings: list[Callable[[], Awaitable[None]]] = []
        """What to run once the client has said `initialized`."""
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

    def when_initialized(self, begin: Callable[[], Awaitable[None]]) -> None:
        """Run this once the client has said `initialized`."""
        self.beginnings.append(begin)

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
