"""Writes files back as they were read: encoding, byte order mark, line ends, mode and links are kept. No other module writes files."""

from __future__ import annotations

import codecs
import contextlib
import os
from collections.abc import Mapping

from spec_lsp.files import MAX_DOCUMENT, Area, UnreadableError
from spec_lsp.records import dataclass
from spec_lsp.workspace import decode


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's text is encoded."""

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


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file's text as it was read, and the new text."""

    old: str
    new: str


def rewrite(texts: Mapping[str, Rewritten], area: Area) -> None:
    """Replace the texts of files, by their paths: each atomically, and none before all can be written. Raises UnreadableError with the path
    as its second argument; then no file is changed (unless a disk fails between two of them).

    A link is followed only inside the area. If a file has several hard links, only the named one changes, as the others cannot be found.
    """
    with contextlib.ExitStack() as unwritten:
        ready: list[tuple[str, str]] = []
        for path, text in texts.items():
            try:
                real = area.real_path(path)
                temporary = _written_beside(real, _encoded(area.read(path, MAX_DOCUMENT), text))
            except UnreadableError as error:
                raise UnreadableError(f"{error}: it is not changed", path) from error
            unwritten.callback(_discard, temporary)
            ready.append((temporary, real))
        for temporary, real in ready:
            _replace(temporary, real)


def _encoded(data: bytes, text: Rewritten) -> bytes:
    encoding = encoding_of(data)
    if encoding.encode(decode(data)) != data:
        raise UnreadableError("is not valid text in its encoding")
    if decode(data) != text.old:
        raise UnreadableError("was changed by somebody else meanwhile")
    return encoding.encode(text.new)


def write_text(path: str, text: str) -> None:
    """Write a report; the file appears complete or not at all. Raises UnreadableError."""
    if os.path.exists(path) and not os.path.isfile(path):  # /dev/stdout, a pipe
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    real = os.path.realpath(path)
    temporary = _written_beside(real, text.encode("utf-8", "backslashreplace"))
    try:
        _replace(temporary, real)
    finally:
        _discard(temporary)


def _written_beside(path: str, data: bytes) -> str:
    """A new file in the same folder, synced to the disk, with the mode and the owner of the file that it will replace."""
    import tempfile  # takes a while to import

    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(
            prefix=f".{os.path.basename(path)[:100]}.", dir=os.path.dirname(path) or "."
        )
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _keep_mode(path, temporary)
    except OSError as error:
        _discard(temporary)
        raise UnreadableError(f"cannot be written: {error.strerror}") from error
    return temporary


def _replace(temporary: str, path: str) -> None:
    try:
        os.replace(temporary, path)
    except OSError as error:
        raise UnreadableError(f"cannot be written: {error.strerror}", path) from error


def _discard(temporary: str) -> None:
    if temporary:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _keep_mode(path: str, temporary: str) -> None:
    try:
        was = os.stat(path)
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        return
    if hasattr(os, "chown") and (was.st_uid, was.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(OSError):
            os.chown(temporary, was.st_uid, was.st_gid)
    os.chmod(temporary, was.st_mode & 0o7777)


def with_line_ends_of(text: str, insertion: str) -> str:
    """`insertion` with the line ends of `text`, if these are the same throughout."""
    if "\r\n" in text and "\n" not in text.replace("\r\n", ""):
        return insertion.replace("\r\n", "\n").replace("\n", "\r\n")
    return insertion
