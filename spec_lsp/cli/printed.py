"""Printed text never acts as a command: not on a terminal, not on a CI runner.

Names, values and messages come from files that anybody may have written. `harmless` turns such a text into one safe line; every text format
passes what it shows through it. `Guarded` wraps standard output and standard error as a last check: it lets no control character pass
except line ends and our own colours.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TextIO

from spec_lsp.expressions import expression

_BIDIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_DANGEROUS = f"\x7f-\x9f\u2028\u2029\ud800-\udfff{_BIDIRECTIONAL}"

# --- text for people -------------------------------------------------------------------------------------------------


def harmless(text: str) -> str:
    """A text from elsewhere as one line that a terminal may show: control characters as their pictures, a tab as four blanks, anything else
    that is invisible as its escape."""
    if text.isprintable():
        return text
    return "".join(map(_picture, text))


@lru_cache(maxsize=1024)
def _picture(c: str) -> str:
    code = ord(c)
    if c == "\t":
        return "    "
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return c if c.isprintable() or c in "\u00a0\u3000" else _escaped(c)


def _escaped(c: str) -> str:
    """A character escaped as in JSON, so that an escape inside of JSON keeps its meaning."""
    code = ord(c)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + ((code - 0x10000) >> 10):04x}\\u{0xDC00 + ((code - 0x10000) & 0x3FF):04x}"


# --- text for programs -----------------------------------------------------------------------------------------------

_UNSAFE_IN_JSON = expression(f"[{_DANGEROUS}]")


def json_text(value: Any, **options: Any) -> str:
    """Equivalent JSON without dangerous characters."""
    import json

    return _UNSAFE_IN_JSON.sub(lambda m: _escaped(m[0]), json.dumps(value, ensure_ascii=False, **options))


def in_utf_8(stream: TextIO) -> TextIO:
    """The stream for JSON or XML, which are UTF-8 whatever the terminal's encoding."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8")
    return stream


# --- standard output and standard error ------------------------------------------------------------------------------

_UNSAFE = expression(
    # our own colours, the progress line, and Windows line ends pass
    r"(?P<own>\x1b\[[0-9;]*m|\r\x1b\[K|\r\n)|"
    rf"(?P<bad>[\x00-\x08\x0b-\x1f{_DANGEROUS}])|"
    # commands of the runners of GitHub and Azure (anywhere in a line, or at its start), and of TeamCity
    r"(?P<command>#(?=#(?:\[|vso\[|teamcity\[)))|(?P<first>^[^\S\n]*:)(?=:)",
    re.MULTILINE,
)
_ANY_UNSAFE = expression(rf"[\x00-\x08\x0b-\x1f{_DANGEROUS}]|##|::")


class Guarded:
    """A text stream whose output never acts as a command. `raw` is the underlying stream."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw
        self._line = ""
        """The leading blanks of the current line; something else once the line has more."""

    def write(self, text: str) -> int:
        self.raw.write(self._safe(text) if _ANY_UNSAFE.search(text) else text)
        begun = text if "\n" in text else self._line + text
        rest = begun.rpartition("\n")[2]
        self._line = rest if not rest.strip() else "…"
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def _safe(self, text: str) -> str:
        lead = self._line
        return _UNSAFE.sub(_guard, lead + text)[len(lead) :]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def _guard(found: re.Match[str]) -> str:
    if found["own"]:
        return found["own"]
    if found["bad"]:
        return _escaped(found["bad"])
    return found[0][:-1] + _escaped(found[0][-1])


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Standard output and standard error guarded."""
    before = sys.stdout, sys.stderr
    for stream in before:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")  # characters that a terminal's encoding lacks are not an error
    sys.stdout, sys.stderr = (Guarded(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def unguarded(stream: TextIO) -> TextIO:
    """The underlying stream, for intended commands, or for a user's own text that is returned."""
    return stream.raw if isinstance(stream, Guarded) else stream
