"""Which files `check` looks at: named ones, and in folders those that git does not ignore. No program is run, git included."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter

from spec_lsp.cli.errors import UsageError
from spec_lsp.cli.ignored import Ignored, Ignoring
from spec_lsp.files import Area, read_named, workspace_of
from spec_lsp.records import dataclass

SKIPPED_FOLDERS = frozenset({
    ".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox", ".mypy_cache", ".ruff_cache",
    ".pytest_cache", ".eggs", "site-packages",
})  # fmt: skip
"""Folders that are skipped outside of checkouts."""

SKIPPED_ENDINGS = frozenset({
    ".safetensors", ".bin", ".pt", ".pth", ".gguf", ".npy", ".npz", ".parquet", ".arrow", ".sqlite", ".db",
    ".so", ".a", ".o", ".pyc", ".whl", ".zip", ".gz", ".xz", ".zst", ".bz2", ".tar",
    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".ico", ".pdf", ".mp4", ".mp3", ".wav", ".woff", ".woff2", ".ttf",
    ".sarif", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".rs", ".go", ".java", ".css", ".map",
})  # fmt: skip
"""Endings of files that cannot launch anything; they are skipped in folders."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file to look at: its absolute path, and its real path if it is known to contain no links (else empty)."""

    path: str
    named: bool
    """Whether it was named by itself rather than found in a folder."""
    real: str = ""

    def read(self, area: Area, limit: int) -> bytes:
        """Its bytes. A file found in a folder is read only in the area, a named one wherever it is. Raises UnreadableError."""
        if self.named:
            return read_named(self.path, limit)
        return area.read_found(self.real, limit) if self.real else area.read(self.path, limit)


def candidates(
    paths: Iterable[str], area: Area | None = None, note: Callable[[str], None] = lambda _: None
) -> Iterator[Candidate]:
    """The files that the paths name, each once, in the order of the paths and sorted within folders.

    Files in folders are read only in `area` (by default the workspace of the paths). `note` is called for each folder that may not be
    entered. Raises UsageError when a path does not exist.
    """
    paths = list(paths)
    ignoring = Ignoring(area or Area(workspace_of(paths)))
    seen: set[str] = set()
    for path in paths:
        named = os.path.abspath(path)
        if os.path.isdir(named):
            if not os.access(named, os.R_OK | os.X_OK):
                raise UsageError(f"`{path}` cannot be read: permission denied")
            found: Iterable[Candidate] = sorted(_walked(named, ignoring, note), key=attrgetter("path"))
        elif os.path.lexists(named):
            found = (Candidate(named, True),)
        else:
            raise UsageError(f"`{path}` does not exist")
        for candidate in found:
            if candidate.path not in seen:
                seen.add(candidate.path)
                yield candidate


def _walked(folder: str, ignoring: Ignoring, note: Callable[[str], None]) -> Iterator[Candidate]:
    """Links to folders are not followed, which also avoids loops; anything that is neither file nor link is skipped."""
    real = os.path.realpath(folder)
    waiting: list[tuple[str, str, Ignored | None]] = [(folder, real, ignoring.in_folder(real))]
    while waiting:
        parent, real, ignored = waiting.pop()
        try:
            with os.scandir(parent) as listing:
                entries = list(listing)
        except PermissionError:
            note(parent)
            continue
        except OSError:
            continue  # removed since the folder was listed
        names = {entry.name for entry in entries}
        if ".git" in names:
            ignored = ignoring.in_checkout(real)  # a repository inside another has its own
        if ignored is not None and ".gitignore" in names:
            ignored = ignored.within(real, ignoring.area)
        for entry in entries:
            lies = os.path.join(real, entry.name)
            if entry.is_dir(follow_symlinks=False):
                if not _skipped(entry.name, lies, ignored):
                    waiting.append((entry.path, lies, ignored))
            elif _may_be_launched_from(entry) and not (ignored and ignored.leaves_out(lies, is_folder=False)):
                yield Candidate(entry.path, False, "" if entry.is_symlink() else lies)


def _skipped(name: str, lies: str, ignored: Ignored | None) -> bool:
    if ignored is None:
        return name in SKIPPED_FOLDERS
    return name == ".git" or ignored.leaves_out(lies, is_folder=True)


def _may_be_launched_from(entry: os.DirEntry[str]) -> bool:
    if entry.name == ".git" or os.path.splitext(entry.name)[1].lower() in SKIPPED_ENDINGS:
        return False
    return entry.is_file(follow_symlinks=False) or (entry.is_symlink() and os.path.isfile(entry.path))
