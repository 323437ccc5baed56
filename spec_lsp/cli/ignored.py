"""What git ignores, read from its files. Git itself is never run: a repository's own configuration may name programs that it would start.

Patterns come, in order of precedence, from the `.gitignore` of a folder and of those above it in the checkout, from the checkout's
`info/exclude`, and from the user's excludes file, which only the user's own configuration names.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from functools import cached_property

from spec_lsp.expressions import expression
from spec_lsp.files import MAX_SETTINGS, Area, UnreadableError, checkout_of, read_named
from spec_lsp.patterns import Patterns
from spec_lsp.records import dataclass

MAX_INCLUDED = 10
"""How many levels of git configuration files that include others are followed."""


@dataclass(frozen=True)
class Ignored:
    """The patterns that apply in a folder: each with the folder that its paths are relative to, the strongest last."""

    levels: tuple[tuple[str, Patterns], ...] = ()

    def within(self, folder: str, area: Area) -> Ignored:
        """The patterns inside a folder (a path without links), which may have its own."""
        own = _gitignore(folder, area)
        return Ignored((*self.levels, (folder, own))) if own else self

    def leaves_out(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path (without links) is ignored by itself; a directory walk never enters an ignored folder."""
        for folder, patterns in reversed(self.levels):
            decided = patterns.decide(path[len(folder) + 1 :].replace(os.sep, "/"), is_folder)
            if decided is not None:
                return decided
        return False


class Ignoring:
    """Finds what is ignored in checkouts. The user's own excludes are read once."""

    def __init__(self, area: Area) -> None:
        self.area = area

    @cached_property
    def _of_the_user(self) -> Patterns:
        return Patterns(user_excludes())

    def in_checkout(self, root: str) -> Ignored:
        """The patterns of a checkout (its root, a path without links) other than those in `.gitignore` files."""
        levels = ((root, self._of_the_user), (root, Patterns(_lines(_info_exclude(root, self.area)))))
        return Ignored(tuple(level for level in levels if level[1]))

    def in_folder(self, folder: str) -> Ignored | None:
        """The patterns for a folder (a path without links) other than its own `.gitignore`; None if there is no checkout, or if the folder
        itself is ignored: whoever names it explicitly wants its contents."""
        root = checkout_of(folder)
        if root is None:
            return None
        ignored = self.in_checkout(root)
        at = root
        for name in os.path.relpath(folder, root).split(os.sep) if folder != root else ():
            ignored = ignored.within(at, self.area)
            at = os.path.join(at, name)
            if name == ".git" or ignored.leaves_out(at, is_folder=True):
                return None
        return ignored


def _gitignore(folder: str, area: Area) -> Patterns:
    """A folder's own patterns. As git has it, a link is not followed."""
    with contextlib.suppress(UnreadableError):
        return Patterns(_lines(area.read_found(os.path.join(folder, ".gitignore"), MAX_SETTINGS)))
    return Patterns(())


def _lines(data: bytes) -> list[str]:
    return os.fsdecode(data.removeprefix(b"\xef\xbb\xbf")).split("\n")


# --- info/exclude ----------------------------------------------------------------------------------------------------


def _info_exclude(root: str, area: Area) -> bytes:
    """The patterns in a checkout's `info/exclude`; for a linked worktree those of its repository."""
    exclude = os.path.join("info", "exclude")
    with contextlib.suppress(UnreadableError):
        if os.path.isdir(git := os.path.join(root, ".git")):
            return area.read(os.path.join(git, exclude), MAX_SETTINGS)
        folder = _repository_of(root, area)
        if folder is not None:
            return Area((folder,)).read(os.path.join(folder, exclude), MAX_SETTINGS)
    return b""


def _repository_of(root: str, area: Area) -> str | None:
    """The folder that a `.git` file names, if that folder confirms it: for a submodule it is in the `.git` of the surrounding checkout, for
    a linked worktree it contains a file that names the worktree. Otherwise any file could name any folder. Raises UnreadableError."""
    link = os.path.join(root, ".git")
    named = re.fullmatch(r"gitdir: ([^\n\0]+)\n?", os.fsdecode(area.read_found(link, MAX_SETTINGS)))
    if named is None:
        return None
    folder = os.path.realpath(os.path.join(root, named[1]))
    around = checkout_of(os.path.dirname(root))
    if around is not None and Area((os.path.join(around, ".git"),)).holds(folder):
        return folder
    repository, worktrees = os.path.split(os.path.dirname(folder))
    if worktrees != "worktrees" or not os.path.isfile(os.path.join(folder, "gitdir")):
        return None
    back = os.fsdecode(Area((folder,)).read(os.path.join(folder, "gitdir"), MAX_SETTINGS)).rstrip("\n")
    return repository if os.path.realpath(os.path.join(folder, back)) == link else None


# --- the user's own --------------------------------------------------------------------------------------------------


def user_excludes() -> list[str]:
    """The patterns of `core.excludesFile` in the user's own configuration, else of git's default place for them."""
    home = os.path.expanduser("~")
    xdg = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    named = os.environ.get("GIT_CONFIG_GLOBAL")
    files = [os.path.join(xdg, "git", "config"), os.path.join(home, ".gitconfig")] if named is None else [named]
    found = [value for file in files for key, value in git_configuration(file) if key == "core.excludesfile"]
    path = os.path.expanduser(found[-1]) if found else os.path.join(xdg, "git", "ignore")
    with contextlib.suppress(UnreadableError):
        return _lines(read_named(os.path.join(home, path), MAX_SETTINGS)) if path else []
    return []


_HEADER = expression(r"\s*\[\s*([-.\w]+)\s*(\"(?:[^\"\\]|\\.)*\")?\s*\]")
_VARIABLE = expression(r"\s*([A-Za-z][-A-Za-z0-9]*)\s*(?:=\s*(.*))?")
_PIECE = expression(r"\"((?:[^\"\\]|\\.)*)\"|\\(.)|([#;].*)|([^\"\\#;]+)|(.)", re.DOTALL)


def git_configuration(path: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """The variables in a git configuration file, as `section.name` in lower case (with the subsection if there is one)."""
    try:
        text = os.fsdecode(read_named(path, MAX_SETTINGS))
    except UnreadableError:
        return
    section = ""
    for line in text.replace("\r\n", "\n").replace("\\\n", "").split("\n"):
        header = _HEADER.match(line)
        if header:
            section = header[1].lower() + (f".{header[2][1:-1]}" if header[2] else "")
            line = line[header.end() :]
        variable = _VARIABLE.match(line)
        if variable is None or not section:
            continue
        key, value = f"{section}.{variable[1].lower()}", _unquoted(variable[2] or "")
        if key == "include.path" and depth < MAX_INCLUDED:
            yield from git_configuration(os.path.join(os.path.dirname(path), os.path.expanduser(value)), depth + 1)
        yield key, value


def _unquoted(written: str) -> str:
    out = ""
    for quoted, escaped, comment, plain, other in _PIECE.findall(written.strip()):
        if comment:
            return out.rstrip()
        out += (
            re.sub(r"\\(.)", _escape, quoted) if quoted else _letter(escaped) if escaped else plain or other.strip('"')
        )
    return out


def _escape(found: re.Match[str]) -> str:
    return _letter(found[1])


def _letter(escaped: str) -> str:
    return {"n": "\n", "t": "\t", "b": "\b"}.get(escaped, escaped)
