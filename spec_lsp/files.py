"""The one place where files are read: only regular files of bounded size, and only where that is allowed.

Everything that a repository names is read through an `Area`: the folders that may be read, links followed. Files elsewhere are not opened.
Only a file that a person names on the command line is read wherever it is.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable

MIB = 1024 * 1024
MAX_DOCUMENT = 16 * MIB
"""In bytes: a file that is named on the command line, is sourced, or pins a release (lock files are long)."""
MAX_FOUND = 4 * MIB
"""In bytes: a file that is found in a folder and may launch something."""
MAX_MODEL = 4 * MIB
"""In bytes: a model's config.json; long lists of layers that are not quantized take some 0.5 MB."""
MAX_SETTINGS = MIB
"""In bytes: a file with settings, ignore rules or git configuration."""
MAX_SOURCE = MIB
"""In bytes: a module of an installed SGLang; the largest has a third of that. Parsing may take a thousand times the memory."""
MAX_PATH = 32_767
"""The longest path, in characters: no system accepts longer ones, and following their links would take long."""


class UnreadableError(Exception):
    """A file that cannot be read or written; the message says why, phrased to follow the file's name."""


class MissingError(UnreadableError):
    """There is no such file."""


class OutsideError(UnreadableError):
    """The file lies outside the folders that may be read."""

    def __init__(self) -> None:
        super().__init__("lies outside the workspace")


_FLAGS = os.O_RDONLY
for _name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)


class Area:
    """Folders in which everything may be read, and nothing outside."""

    def __init__(self, folders: Iterable[str | os.PathLike[str]]) -> None:
        # a folder behind a link is kept under both names, as documents use either
        named = [os.path.abspath(f) for f in folders]
        self.real = tuple(dict.fromkeys(os.path.realpath(f) for f in named))
        self.folders = tuple(dict.fromkeys((*named, *self.real)))
        self._below = tuple(map(_beneath, self.folders))
        self._below_real = tuple(map(_beneath, self.real))

    def names(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path, as written, leads into the area. The disk is not accessed."""
        normal = os.path.normpath(path)
        return normal.startswith(self._below) or normal in self.folders

    def holds(self, real: str) -> bool:
        """Whether a path without links is in the area."""
        return real.startswith(self._below_real) or real in self.real

    def real_path(self, path: str | os.PathLike[str]) -> str:
        """The real path, links followed. Raises UnreadableError if it is not in the area."""
        if not self.names(path):
            raise OutsideError
        real = real_path(path)
        if not self.holds(real):
            raise OutsideError
        return real

    def read(self, path: str | os.PathLike[str], limit: int) -> bytes:
        """A file of the area. Raises UnreadableError."""
        return _read(self.real_path(path), limit, self)

    def read_found(self, path: str, limit: int) -> bytes:
        """A file found by a directory walk: like `read`, for a path that is known to be a file without links.

        Raises UnreadableError.
        """
        return _read(path, limit, self, is_file=True)


def real_path(path: str | os.PathLike[str]) -> str:
    """The real path, links followed. Raises UnreadableError for an invalid path."""
    if len(os.fspath(path)) > MAX_PATH:
        raise UnreadableError("is not a path")
    try:
        return os.path.realpath(path)
    except (OSError, ValueError) as error:
        raise UnreadableError("is not a path") from error


def read_named(path: str | os.PathLike[str], limit: int = MAX_DOCUMENT) -> bytes:
    """A file that a person or their own configuration names, wherever it is. Raises UnreadableError."""
    return _read(real_path(path), limit, None)


def read_ends(path: str | os.PathLike[str], limit: int = MAX_DOCUMENT) -> bytes:
    """Like `read_named`, but of a larger file only its beginning and its end, separated by a line end, half of the limit each."""
    return _read(real_path(path), limit, None, ends=True)


def _beneath(folder: str) -> str:
    """The prefix of all paths in a folder."""
    return folder if folder.endswith(os.sep) else folder + os.sep


def _read(real: str, limit: int, area: Area | None, *, is_file: bool = False, ends: bool = False) -> bytes:
    """Read an opened file after checking what and where it is: the disk may have changed since the path was checked."""
    try:
        if not is_file:
            _look(real)
        descriptor = os.open(real, _FLAGS)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableError("is not a regular file")
            if area is not None and not area.holds(_opened(descriptor, real)):
                raise OutsideError
            if status.st_size > limit and ends:
                return _ends(descriptor, limit // 2)
            if status.st_size > limit:
                raise UnreadableError(f"is larger than {limit // MIB} MiB")
            return _bytes(descriptor, status.st_size, limit)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingError("does not exist") from error
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror}") from error
    except ValueError as error:  # NUL
        raise UnreadableError("is not a path") from error


def _look(real: str) -> None:
    """Check a path before opening it, as devices must not even be opened. Raises UnreadableError, OSError."""
    mode = os.stat(real, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        raise MissingError("is a link that leads nowhere")
    if not stat.S_ISREG(mode):
        raise UnreadableError("is not a regular file")


def _bytes(descriptor: int, size: int, limit: int) -> bytes:
    """The whole file; files of /proc have no size but content."""
    parts: list[bytes] = []
    read = 0
    while read <= limit and (part := os.read(descriptor, max(size - read, 0) + 1)):
        parts.append(part)
        read += len(part)
        if read == size:
            break
    if read > limit:
        raise UnreadableError(f"is larger than {limit // MIB} MiB")
    return b"".join(parts)


def _ends(descriptor: int, half: int) -> bytes:
    beginning = os.read(descriptor, half)
    os.lseek(descriptor, -half, os.SEEK_END)
    return beginning + b"\n" + os.read(descriptor, half)


def _opened(descriptor: int, real: str) -> str:
    """The real path of an opened file. If the system does not provide it, where its path leads now, if that is still the same file."""
    where = _asked_of_the_system(descriptor)
    if where is not None:
        return where
    now = os.path.realpath(real)
    if not os.path.samestat(os.stat(now), os.fstat(descriptor)):
        raise OutsideError
    return now


def _asked_of_the_system(descriptor: int) -> str | None:
    try:
        if sys.platform == "darwin":
            import fcntl

            return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # a system without /proc
        return None


def checkout_of(folder: str) -> str | None:
    """The innermost folder with a `.git`, from `folder` upwards; None if there is none."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def workspace_of(arguments: Iterable[str]) -> tuple[str, ...]:
    """The folders that may be read when these files and folders are named on a command line: the checkouts around them, or else the folders
    themselves or those of the files."""
    folders = (f if os.path.isdir(f) else os.path.dirname(f) for f in map(os.path.abspath, arguments))
    found = dict.fromkeys(checkout_of(f) or f for f in dict.fromkeys(folders))
    return tuple(f for f in found if not any(f != other and f.startswith(_beneath(other)) for other in found))
