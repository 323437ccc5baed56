"""Messages from a client that are not handled yet.

The thread that reads a connection puts messages in, however busy the loop is; the loop handles them in order. Long work asks here whether
its result is still wanted.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from spec_lsp.records import dataclass
from spec_lsp.server.framing import Fault
from spec_lsp.server.uris import name_of

log = logging.getLogger(__name__)

ENDS = frozenset({"shutdown", "exit"})
CHANGES_TEXT = frozenset({"textDocument/didOpen", "textDocument/didChange", "textDocument/didClose"})
CANCELS = "$/cancelRequest"


@dataclass(frozen=True, slots=True)
class Message:
    """The JSON of a message, or what is wrong with it."""

    content: Any

    def overtakes(self, document: str, under_way: Callable[[Any], bool]) -> bool:
        """Whether it makes work on a document pointless: the session ends, the text changes, or a request in progress is cancelled."""
        if not isinstance(self.content, dict):
            return False
        method, params = self.content.get("method"), self.content.get("params")
        if not isinstance(method, str):
            return False
        if method in ENDS:
            return True
        if method in CHANGES_TEXT:
            item = params.get("textDocument") if isinstance(params, dict) else None
            uri = item.get("uri") if isinstance(item, dict) else None
            return isinstance(uri, str) and name_of(uri) == document
        return method == CANCELS and isinstance(params, dict) and under_way(params.get("id"))


def decode(body: bytes) -> Message:
    """A message from its body; a fault if it is not JSON."""
    try:
        return Message(json.loads(body))
    except (ValueError, RecursionError, MemoryError) as error:
        return Message(Fault(f"not JSON: {error}"))


class Inbox:
    """The unhandled messages of one connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, handle: Callable[[Message], None]) -> None:
        self._loop = loop
        self._handle = handle
        self._waiting: deque[Message] = deque()
        self._lock = threading.Lock()
        self._closed = False

    # the thread that reads

    def put(self, came: bytes | Fault) -> None:
        """Add a message body, or a fault in the stream."""
        message = Message(came) if isinstance(came, Fault) else decode(came)
        with self._lock:
            self._waiting.append(message)
        self._soon(self._next)

    def close(self, then: Callable[[], None]) -> None:
        """No more messages: the client has gone. `then` is called on the loop once all of them are handled."""
        self._closed = True
        self._soon(then)

    def _soon(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            log.debug("the loop has ended already")

    # the loop

    def _next(self) -> None:
        with self._lock:
            message = self._waiting.popleft()
        self._handle(message)

    def waits(self) -> bool:
        """Whether a message is waiting."""
        return bool(self._waiting) or self._closed

    def overtakes(self, document: str, under_way: Callable[[Any], bool]) -> Callable[[], bool]:
        """A function to be called again and again during work on a document: whether the result is no longer wanted.

        `under_way` says whether a request, by its id, is in progress.
        """
        seen = 0

        def needless() -> bool:
            nonlocal seen
            if len(self._waiting) == seen:
                return self._closed
            with self._lock:
                fresh = list(self._waiting)[seen:]
            seen += len(fresh)
            return self._closed or any(message.overtakes(document, under_way) for message in fresh)

        return needless
