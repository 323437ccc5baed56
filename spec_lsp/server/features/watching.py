"""Changes of files outside the editor, and of workspace folders.

Clients that cannot watch files (Neovim on Linux), or never answer the request, only report the files that they have open. For them the few
relevant files are checked when a document is opened or saved, and every two seconds; never at a key, and off the event loop, since a disk
may be slow. No client reports files outside of the workspace (downloaded models, files behind links): these are checked for all clients.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.server.shared import SharedHost

GLOBS = ("**/*",)
"""Everything is watched, as scripts and launches may have any name; irrelevant changes are ignored when they are reported."""

LOOK_SECONDS = 2.0
SOON_SECONDS = 0.2

Stamp = tuple[int, int] | None
"""When a file was changed (ns) and its size; None where there is none."""


def _stamp(name: str) -> Stamp:
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


def _stamps(names: Iterable[str], wanted: Callable[[str], bool]) -> dict[str, Stamp]:
    return {name: _stamp(name) for name in names if wanted(name)}


class Looking:
    """Checks the files around the open documents that no client watches."""

    def __init__(self, ls: SharedHost) -> None:
        self._ls = ls
        self._watched = False
        """Whether the client reports changes in the workspace."""
        self._known: dict[str, Stamp] = {}
        self._task: asyncio.Task[None] | None = None
        self._again: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Check regularly until the client leaves."""
        self._task = asyncio.get_running_loop().create_task(self._now_and_then())

    def watched(self) -> None:
        """The client watches the workspace from now on."""
        self._watched = True

    def look(self) -> None:
        """Report files that changed since the last check, as a client that watches files would."""
        if self._task is not None and not self._watched:
            self._seen(_stamps(self._ls.session.surroundings(), self._wanted))

    def _seen(self, now: dict[str, Stamp]) -> None:
        changed = [name for name, stamp in now.items() if name in self._known and self._known[name] != stamp]
        self._known = now
        if changed:
            self._ls.files_changed(changed)

    def _wanted(self, name: str) -> bool:
        """Whether the client does not report changes of a file."""
        return not self._watched or not self._ls.session.in_folders(os.path.realpath(name))

    def look_now(self) -> None:
        """Check now, and again once a just opened document is analysed: only then are the files around it known."""
        self.look()
        if self._task is not None and (self._again is None or self._again.done()):
            self._again = asyncio.get_running_loop().create_task(self._look_soon())

    async def _look_soon(self) -> None:
        await asyncio.sleep(SOON_SECONDS)
        self.look()

    async def _now_and_then(self) -> None:
        while self._ls.wire.send_bytes is not None:
            names = self._ls.session.surroundings()
            self._seen(await asyncio.to_thread(_stamps, names, self._wanted))
            await asyncio.sleep(LOOK_SECONDS)


def register(ls: SharedHost) -> dict[str, Any]:
    looking = Looking(ls)
    ls.look_around = looking.look_now

    @ls.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        ls.files_changed([name_of(change.uri) for change in params.changes])

    @ls.feature(types.WORKSPACE_DID_CREATE_FILES)
    def did_create(params: types.CreateFilesParams) -> None:
        ls.files_changed([name_of(file.uri) for file in params.files])

    @ls.feature(types.WORKSPACE_DID_RENAME_FILES)
    def did_rename(params: types.RenameFilesParams) -> None:
        ls.files_changed([name_of(uri) for file in params.files for uri in (file.old_uri, file.new_uri)])

    @ls.feature(types.WORKSPACE_DID_DELETE_FILES)
    def did_delete(params: types.DeleteFilesParams) -> None:
        ls.files_changed([name_of(file.uri) for file in params.files])

    async def begin() -> None:
        looking.begin()
        if ls.client.dynamic_watching:
            watchers = [types.FileSystemWatcher(glob_pattern=glob) for glob in GLOBS]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
            if await ls.register_dynamically(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options):
                looking.watched()

    ls.when_initialized(begin)
    everything = {"filters": [{"pattern": {"glob": "**/*"}}]}
    operations = dict.fromkeys(("didCreate", "didRename", "didDelete"), everything)
    folders = {"supported": True, "changeNotifications": True}
    return {"workspace": {"workspaceFolders": folders, "fileOperations": operations}}
