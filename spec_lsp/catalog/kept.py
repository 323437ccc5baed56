"""What was read of builds, kept under the user's cache folder so that no content is read twice.

Whoever lacks what is kept reads it again: the folder may be deleted at any time. It does not grow without end: what nobody asked for
the longest goes first.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from spec_lsp.files import MIB, UnreadableError, read_named

MAX_FILES = 128
MAX_BYTES = 32 * MIB
"""What the folder may hold: the flags, variables and functions of a build take a quarter of a MiB."""


def cache_folder() -> Path:
    """Where it is kept: the user's cache folder; for somebody who has none, where nothing can be."""
    if sys.platform == "win32":
        user = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        user = "~/Library/Caches"
    else:
        user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    user = os.path.expanduser(user)
    # Somebody without a home, as in a container, has none; nor is one taken that is another in each folder.
    return Path(user if os.path.isabs(user) else os.devnull, "spec-lsp", "sglang")


def kept(name: str, limit: int) -> str | None:
    """A text that was kept, of no more than `limit` bytes; None where there is none."""
    path = cache_folder() / name
    try:
        text = read_named(path, limit).decode()
    except (UnreadableError, ValueError):
        return None
    with suppress(OSError):
        os.utime(path)  # it was used: others go before it
    return text


def keep(name: str, text: str) -> None:
    """Keep a text whole, or not at all."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
            file.write(text)
        os.replace(file.name, folder / name)
        _tidy(folder)
    except (OSError, ValueError):
        pass


def _tidy(folder: Path) -> None:
    """Remove what was not used the longest, of what is too much; half-written files of somebody who was ended come to be among it."""
    found = []
    for path in folder.iterdir():
        with suppress(OSError):
            status = path.lstat()
            found.append((status.st_mtime_ns, status.st_size, path))
    left = MAX_BYTES
    for number, (_, size, path) in enumerate(sorted(found, reverse=True)):
        left -= size
        if number >= MAX_FILES or left < 0:
            with suppress(OSError):
                path.unlink()
