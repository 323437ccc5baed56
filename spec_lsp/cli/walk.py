"""Which files `check` looks at: what is named, and in folders what git does not ignore."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from spec_lsp.cli.errors import UsageError

SKIPPED_FOLDERS = frozenset({
    ".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox", ".mypy_cache", ".ruff_cache",
    ".pytest_cache", ".eggs", "site-packages",
})  # fmt: skip
"""Never entered where git does not say what to leave out."""

SKIPPED_ENDINGS = frozenset({
    ".safetensors", ".bin", ".pt", ".pth", ".gguf", ".npy", ".npz", ".parquet", ".arrow", ".sqlite", ".db",
    ".so", ".a", ".o", ".pyc", ".whl", ".zip", ".gz", ".xz", ".zst", ".bz2", ".tar",
    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".ico", ".pdf", ".mp4", ".mp3", ".wav", ".woff", ".woff2", ".ttf",
    ".sarif", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".rs", ".go", ".java", ".css", ".map",
})  # fmt: skip
"""Files in folders that cannot launch anything, by the end of their name."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file to look at: its absolute path, and whether it was named by itself rather than found in a folder."""

    path: str
    named: bool


def candidates(paths: Iterable[str], note: Callable[[str], None] = lambda _: None) -> Iterator[Candidate]:
    """The files that the paths name, each once, in the order of the paths and sorted within folders.

    `note` is told of each folder that nobody may enter. Raises UsageError when a path does not exist.
    """
    seen: set[str] = set()
    for path in paths:
        named = os.path.abspath(path)
        if os.path.isdir(named):
            if not os.access(named, os.R_OK | os.X_OK):
                raise UsageError(f"`{path}` cannot be read: permission denied")
            found: Iterable[Candidate] = (Candidate(p, False) for p in _in_folder(named, note))
        elif os.path.lexists(named):
            found = (Candidate(named, True),)
        else:
            raise UsageError(f"`{path}` does not exist")
        for candidate in found:
            if candidate.path not in seen:
                seen.add(candidate.path)
                yield candidate


def _in_folder(folder: str, note: Callable[[str], None]) -> list[str]:
    listed = _listed_by_git(folder, note)
    names = _walked(folder, note) if listed is None else listed
    return sorted(n for n in names if os.path.splitext(n)[1].lower() not in SKIPPED_ENDINGS)


# --- git -------------------------------------------------------------------------------------------------------------


def _listed_by_git(folder: str, note: Callable[[str], None]) -> list[str] | None:
    """The files of a checkout that git does not ignore; None where there is none, or git does not say."""
    if not _in_checkout(folder):
        return None
    listing = _git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
    if listing is None:
        return None
    for closed in _CLOSED.findall(listing.warnings):
        note(os.path.join(folder, closed.rstrip("/")))
    names = [os.path.join(folder, name) for name in listing.text.split("\0") if name]
    if not names and _git(folder, "check-ignore", "-q", ".") is not None:
        return None  # the folder itself is ignored, and yet somebody names it
    files: list[str] = []
    for name in names:
        if os.path.isdir(name):  # another repository inside this one; a linked folder is not followed
            files += [] if os.path.islink(name) else _in_folder(name.rstrip(os.sep), note)
        else:
            files.append(name)
    return files


_CLOSED = re.compile(r"could not open directory '(.+?)': Permission denied")


def _in_checkout(folder: str) -> bool:
    return any(os.path.exists(parent / ".git") for parent in (Path(folder), *Path(folder).parents))


class Said(NamedTuple):
    text: str
    warnings: str


def _git(folder: str, *words: str) -> Said | None:
    """What git prints, or None when it cannot say. A hook's own GIT_DIR and the like would point it elsewhere."""
    env = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")}
    try:
        run = subprocess.run(
            ["git", "-C", folder, *words],
            capture_output=True,
            check=False,
            env={**env, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
        )
    except OSError:
        return None
    return Said(os.fsdecode(run.stdout), os.fsdecode(run.stderr)) if run.returncode == 0 else None


# --- without git -----------------------------------------------------------------------------------------------------


def _walked(folder: str, note: Callable[[str], None]) -> Iterator[str]:
    """Links to folders are not followed, so that a loop of them ends; what is neither file nor link is left out."""
    waiting = [folder]
    while waiting:
        parent = waiting.pop()
        try:
            with os.scandir(parent) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in SKIPPED_FOLDERS:
                            waiting.append(entry.path)
                    elif entry.is_file(follow_symlinks=False) or (entry.is_symlink() and os.path.isfile(entry.path)):
                        yield entry.path
        except PermissionError:
            note(parent)
        except OSError:
            pass  # gone since its name was read
