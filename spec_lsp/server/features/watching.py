"""Files that change outside the editor, and workspace folders that come and go.

Clients that cannot be asked to watch files (Neovim on Linux) tell only of those that they have open with us. For them the few files
that matter are looked at now and then.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.session import PIN_FILES, SETTINGS_FILES
from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.server.server import Server

GLOBS = (
    "**/*.{yaml,yml,sh,bash,zsh,env}",
    "**/config.json",
    "**/requirements*.txt",
    "**/{" + ",".join((*SETTINGS_FILES, *PIN_FILES)) + "}",
)
"""`--config` files and sourced scripts, models, and what names settings and releases."""


LOOK_SECONDS = 2.0

Stamp = tuple[int, int] | None
"""When a file was changed (ns) and its size; None where there is none."""


def _stamp(name: str) -> Stamp:
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


async def look_around(ls: Server) -> None:
    """Tell the server of files that changed, as a client does that watches them; until the client has gone."""
    known: dict[str, Stamp] = {}
    while ls.wire.send_bytes is not None:
        now = {name: _stamp(name) for name in ls.session.surroundings()}
        changed = [name for name, stamp in now.items() if name in known and known[name] != stamp]
        known = now
        if changed:
            ls.files_changed(changed)
        await asyncio.sleep(LOOK_SECONDS)


def register(ls: Server) -> dict[str, Any]:
    @ls.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        ls.files_changed([name_of(change.uri) for change in params.changes])

    looking: list[asyncio.Task[None]] = []

    async def begin() -> None:
        if not ls.client.dynamic_watching:
            looking.append(asyncio.get_running_loop().create_task(look_around(ls)))
        else:
            watchers = [types.FileSystemWatcher(glob_pattern=glob) for glob in GLOBS]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
            await ls.register_dynamically(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)

    ls.when_initialized(begin)
    return {"workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}}}
