"""Messages out of a stream of bytes, and into one: `Content-Length: N`, an empty line, N bytes of JSON."""

from __future__ import annotations

import re

MAX_BODY = 512 * 1024 * 1024
"""No message is that long; a header that says so is broken."""

_LENGTH = re.compile(rb"^content-length:[ \t]*(\d+)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_END = re.compile(rb"\r?\n\r?\n")


class Framer:
    """Collects bytes as they come and gives back whole message bodies.

    Header lines that are not understood are passed over, and so is a header without a usable length: the next one
    counts.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted: int | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """The message bodies that `data` completes, in order."""
        self._buffer += data
        bodies: list[bytes] = []
        while (body := self._next()) is not None:
            bodies.append(body)
        return bodies

    def _next(self) -> bytes | None:
        while self._wanted is None:
            end = _END.search(self._buffer)
            if end is None:
                return None
            length = _LENGTH.search(bytes(self._buffer[: end.start()]))
            del self._buffer[: end.end()]
            if length is not None and int(length[1]) <= MAX_BODY:
                self._wanted = int(length[1])
        if len(self._buffer) < self._wanted:
            return None
        body = bytes(self._buffer[: self._wanted])
        del self._buffer[: self._wanted]
        self._wanted = None
        return body


def frame(body: bytes) -> bytes:
    """A message as it goes over stdio or TCP."""
    return b"Content-Length: %d\r\n\r\n" % len(body) + body
