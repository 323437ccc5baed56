"""Reads messages from a stream of bytes, and writes them: `Content-Length: N`, an empty line, N bytes of JSON.

A bad header does not end the stream: it is reported, and the next usable header is looked for. Each byte is looked at once, however long
the lines, and no more than one line and one body are kept.
"""

from __future__ import annotations

import re

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass

MAX_BODY = 128 * 1024 * 1024
"""In bytes. No message is that long; a header that says so is broken."""
MAX_LINE = 1024
MAX_HEADER = 16 * 1024
"""The limit in bytes of one header line, and of all headers of a message."""

_FIELD = expression(rb"([A-Za-z][A-Za-z0-9-]*)[ \t]*:[ \t]*([^\r]*?)[ \t]*\r?")
_NEXT = expression(rb"content-length[ \t]*:[ \t]*\d{1,9}[ \t]*\r?\n", re.IGNORECASE)
_CHARSET = expression(rb"charset[ \t]*=[ \t]*\"?([\w-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a stream that is not a message, described for the client."""

    message: str
    foreign: bool = False
    """Whether it belongs to another protocol: the sender does not speak ours."""


class Framer:
    """Collects incoming bytes and returns complete message bodies, and faults."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        """How many bytes of the buffer were already searched for a line end or a header."""
        self._lost = False
        """Whether the next header is being looked for, wherever it is."""
        self._wanted: int | None = None
        """The length in bytes of the body that is being collected."""
        self._begin_header()

    def _begin_header(self) -> None:
        self._length: int | None = None
        self._charset = ""
        self._header = 0

    def feed(self, data: bytes) -> list[bytes | Fault]:
        """The messages and faults that `data` completes, in order."""
        self._buffer += data
        found: list[bytes | Fault] = []
        while (one := self._next()) is not None:
            found.append(one)
        return found

    def _next(self) -> bytes | Fault | None:
        while self._wanted is None:
            line = self._next_header() if self._lost else self._next_line()
            if line is None:
                return None
            fault = line if isinstance(line, Fault) else self._take_line(line)
            if fault is not None:
                self._lost = True
                self._begin_header()
                return fault
        if len(self._buffer) < self._wanted:
            return None
        body = bytes(self._buffer[: self._wanted])
        del self._buffer[: self._wanted]
        self._wanted, charset = None, self._charset
        self._begin_header()
        if charset not in ("", "utf-8", "utf8"):
            return Fault(f"the charset of a message is utf-8, not {charset}")
        return body

    def _next_line(self) -> bytes | Fault | None:
        """The next line without its end; None while there is none."""
        end = self._buffer.find(b"\n", self._searched)
        self._searched = len(self._buffer) if end < 0 else 0
        if (len(self._buffer) if end < 0 else end) > MAX_LINE:
            self._searched = 0
            ours = self._buffer[:8].lower() == b"content-"
            return Fault(f"a header line is longer than {MAX_LINE} bytes", foreign=not ours)
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._header += len(line) + 1
        return line

    def _next_header(self) -> bytes | None:
        """The next line that gives a length, whatever precedes it; None while there is none."""
        found = _NEXT.search(self._buffer, self._searched)
        if found is None:
            kept = min(len(self._buffer), 2 * MAX_LINE)
            del self._buffer[: len(self._buffer) - kept]
            self._searched = max(kept - MAX_LINE, 0)
            return None
        line = found.group().rstrip(b"\r\n")
        del self._buffer[: found.end()]
        self._searched = 0
        self._lost = False
        return line

    def _take_line(self, line: bytes) -> Fault | None:
        if line in (b"", b"\r"):
            return self._end_header()
        if self._header > MAX_HEADER:
            return Fault(f"a header is longer than {MAX_HEADER} bytes", foreign=True)
        field = _FIELD.fullmatch(line)
        name, value = (field[1].lower(), field[2]) if field is not None else (b"", b"")
        behind_something = name.endswith(b"content-length") and name != b"content-length"
        if not name or behind_something:
            self._buffer[:0] = line + b"\n"  # a header may follow on the same line, after a body that was too long
            return Fault("a header line is a name, a colon and a value", foreign=True)
        if name == b"content-length":
            return self._take_length(value)
        if name == b"content-type":
            charset = _CHARSET.search(value)
            self._charset = charset[1].decode().lower() if charset else ""
            return None
        return None

    def _take_length(self, value: bytes) -> Fault | None:
        if not value.isdigit() or len(value) > 9 or int(value) > MAX_BODY:
            return Fault(f"Content-Length is a number of bytes, at most {MAX_BODY}")
        if self._length not in (None, int(value)):
            return Fault("Content-Length is given twice, with different values")
        self._length = int(value)
        return None

    def _end_header(self) -> Fault | None:
        if self._length is None and self._header <= 2:
            self._header = 0  # an empty line before a header means nothing
            return None
        if self._length is None:
            return Fault("a message header gives the Content-Length", foreign=True)
        self._wanted = self._length
        return None


def frame(body: bytes) -> bytes:
    """A message in the format of stdio and TCP."""
    return b"Content-Length: %d\r\n\r\n" % len(body) + body
