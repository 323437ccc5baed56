"""Which files `check` looks at: what is named, and in folders what git does not ignore."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

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


def candidates(paths: Iterable[str]) -> Iterator[Candidate]:
    """The files that the paths name, each once, in the order of the paths and sorted within folders.

    Raises UsageError when a path does not exist.
    """
    seen: set[str] = set()
    for path in paths:
        named = os.path.abspath(path)
        if os.path.isdir(named):
            if not os.access(named, os.R_OK | os.X_OK):
                raise UsageError(f"`{path}` cannot be read: permission denied")
            found: Iterable[Candidate] = (Candidate(p, False) for p in _in_folder(named))
        elif os.path.lexists(named):
            found = (Candidate(named, True),)
        else:
            raise UsageError(f"`{path}` does not exist")
        for candidate in found:
            if candidate.path not in seen:
                seen.add(candidate.path)
                yield candidate


def _in_folder(folder: str) -> list[str]:
    listed = _listed_by_git(folder)
    names = _walked(folder) if listed is None else listed
    return sorted(n for n in names if os.path.splitext(n)[1].lower() not in SKIPPED_ENDINGS)


# --- git -------------------------------------------------------------------------------------------------------------


def _listed_by_git(folder: str) -> list[str] | None:
    """The files of a checkout that git does not ignore; None where there is none, or git does not say."""
    if not _in_checkout(folder):
        return None
    listing = _git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
    if listing is None:
        return None
    names = [os.path.join(folder, name) for name in listing.split("\0") if name]
    if not names and _git(folder, "check-ignore", "-q", ".") is not None:
        return None  # the folder itself is ignored, and yet somebody names it
    files: list[str] = []
    for name in names:
        if os.path.isdir(name):  # another repository inside this one; a linked folder is not followed
            files += [] if os.path.islink(name) else _in_folder(name.rstrip(os.sep))
        else:
            files.append(name)
    return files


def _in_checkout(folder: str) -> bool:
    return any(os.path.exists(parent / ".git") for parent in (Path(folder), *Path(folder).parents))


def _git(folder: str, *words: str) -> str | None:
    """What git prints, or None when it cannot say. A hook's own GIT_DIR and the like would point it elsewhere."""
    env = {k: v for k, v in os.environ.items() if k not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")}
    try:
        run = subprocess.run(
            ["git", "-C", folder, *words], capture_output=True, check=False, env=env, stdin=subprocess.DEVNULL
        )
    except OSError:
        return None
    return os.fsdecode(run.stdout) if run.returncode == 0 else None


# --- without git -----------------------------------------------------------------------------------------------------


def _walked(folder: str) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS]
        for name in files:
            yield os.path.join(parent, name)
