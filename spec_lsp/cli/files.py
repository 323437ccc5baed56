"""Reading files as text, and writing them back as they were: encoding, byte order mark, mode and links kept."""

from __future__ import annotations

import codecs
import contextlib
import os
import tempfile
from dataclasses import dataclass

from spec_lsp.workspace import MAX_BYTES, decode


class UnreadableError(Exception):
    """A file that cannot be read or written; the message says why."""


def read_bytes(path: str) -> bytes:
    """A file's bytes. Raises UnreadableError."""
    try:
        if not os.path.isfile(path):
            raise UnreadableError("is not a file" if os.path.exists(path) else "does not exist")
        if os.path.getsize(path) > MAX_BYTES:
            raise UnreadableError(f"is larger than {MAX_BYTES // 1024 // 1024} MiB")
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's bytes are made of text."""

    codec: str
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """Raises UnreadableError when the file's encoding has no such character."""
        try:
            return self.mark + text.encode(self.codec)
        except UnicodeEncodeError as error:
            raise UnreadableError(f"cannot hold {text[error.start]!r} in its encoding ({self.codec})") from error


def encoding_of(data: bytes) -> Encoding:
    """The encoding in which `workspace.decode` reads these bytes."""
    for mark, codec in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            return Encoding(codec, mark)
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return Encoding("latin-1")
    return Encoding("utf-8", mark)


def rewrite(path: str, new: str) -> None:
    """Replace a file's text at once, or not at all. Raises UnreadableError."""
    data = read_bytes(path)
    encoding = encoding_of(data)
    if encoding.encode(decode(data)) != data:
        raise UnreadableError("is not valid text in its encoding, so it is not changed")
    _replace(os.path.realpath(path), encoding.encode(new))


def write_text(path: str, text: str) -> None:
    """Write a report; the file appears whole or not at all. Raises UnreadableError."""
    if os.path.exists(path) and not os.path.isfile(path):  # /dev/stdout, a pipe
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    _replace(os.path.realpath(path), text.encode("utf-8", "backslashreplace"))


def _replace(path: str, data: bytes) -> None:
    folder = os.path.dirname(path) or "."
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        _keep_mode(path, temporary)
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise UnreadableError(f"cannot be written: {error.strerror}") from error


def _keep_mode(path: str, temporary: str) -> None:
    try:
        was = os.stat(path)
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        return
    os.chmod(temporary, was.st_mode & 0o7777)
    if hasattr(os, "chown") and (was.st_uid, was.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(OSError):
            os.chown(temporary, was.st_uid, was.st_gid)


def with_line_ends_of(text: str, insertion: str) -> str:
    """`insertion` with the line ends that `text` uses throughout."""
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        return insertion.replace("\r\n", "\n").replace("\n", "\r\n")
    return insertion
