"""The user's cache folder: what can be made again is kept there, so that it need not be.

The folder may be deleted at any time. It does not grow without end: what nobody asked for the longest goes first.
"""

from __future__ import annotations

import os
import sys
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path

from spec_lsp.files import UnreadableError, read_named


def cache_folder() -> Path:
    """Where all is kept: the user's cache folder; for somebody who has none, where nothing can be."""
    if sys.platform == "win32":
        user = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        user = "~/Library/Caches"
    else:
        user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    user = os.path.expanduser(user)
    # Somebody without a home, as in a container, has none; nor is one taken that is another in each folder.
    return Path(user if os.path.isabs(user) else os.devnull, "spec-lsp")


class Shelf:
    """Texts of one kind, by name: about so many files at most, and so many bytes of them all."""

    def __init__(self, kind: str, files: int, size: int) -> None:
        self._kind = kind
        self._files = files
        self._size = size

    def path(self, name: str) -> Path:
        """Where a text is, if it is kept."""
        return cache_folder() / self._kind / name

    def get(self, name: str, limit: int) -> str | None:
        """A text that was kept, of no more than `limit` bytes; None where there is none."""
        path = self.path(name)
        try:
            text = read_named(path, limit).decode()
        except (UnreadableError, ValueError):
            return None
        with suppress(OSError):
            os.utime(path)  # it was used: others go before it
        return text

    def keep(self, name: str, text: str) -> None:
        """Keep a text whole, or not at all."""
        try:
            folder = cache_folder() / self._kind
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
                file.write(text)
            os.replace(file.name, folder / name)
            # looking at all of many files takes a while: it is done for a few of the names
            if zlib.crc32(name.encode()) % max(1, self._files // 64) == 0:
                self._tidy(folder)
        except (OSError, ValueError):
            pass

    def _tidy(self, folder: Path) -> None:
        """Remove what was not used the longest, of what is too much; half-written files of somebody who was ended come to be among it."""
        found = []
        for path in folder.iterdir():
            with suppress(OSError):
                status = path.lstat()
                found.append((status.st_mtime_ns, status.st_size, path))
        left = self._size
        for number, (_, size, path) in enumerate(sorted(found, reverse=True)):
            left -= size
            if number >= self._files or left < 0:
                with suppress(OSError):
                    path.unlink()
