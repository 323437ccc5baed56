"""What came from a client and is not handled yet.

The thread that reads a connection puts messages in, however busy the loop is; the loop handles them in their order. Work that takes long
asks here whether it is still wanted.
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
        """Whether it makes work on a document needless: the session ends, the text is another, or a request under way is given up."""
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
    """A message from its body; a fault where it is no JSON."""
    try:
        return Message(json.loads(body))
    except (ValueError, RecursionError, MemoryError) as error:
        return Message(Fault(f"not JSON: {error}"))


class Inbox:
    """The messages of one connection on their way."""

    def __init__(self, loop: asyncio.AbstractEventLoop, handle: Callable[[Message], None]) -> None:
        self._loop = loop
        self._handle = handle
        self._waiting: deque[Message] = deque()
        self._lock = threading.Lock()
        self._closed = False

    # the thread that reads

    def put(self, came: bytes | Fault) -> None:
        """A message body, or a fault in the stream."""
        message = Message(came) if isinstance(came, Fault) else decode(came)
        with self._lock:
            self._waiting.append(message)
        self._soon(self._next)

    def close(self, then: Callable[[], None]) -> None:
        """Nothing more comes: the client has gone. `then` is called on the loop once all that came is handled."""
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
        """Whether something came that is not handled yet."""
        return bool(self._waiting) or self._closed

    def overtakes(self, document: str, under_way: Callable[[Any], bool]) -> Callable[[], bool]:
        """A question to ask again and again while the loop is kept busy by work on a document: whether that is needless by now.

        `under_way` says whether a request is, by its id.
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
