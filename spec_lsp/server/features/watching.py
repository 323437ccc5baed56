"""Files that change outside the editor, and workspace folders that come and go."""

from __future__ import annotations

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


def register(ls: Server) -> dict[str, Any]:
    @ls.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        ls.files_changed([name_of(change.uri) for change in params.changes])

    async def begin() -> None:
        if ls.client.dynamic_watching:
            watchers = [types.FileSystemWatcher(glob_pattern=glob) for glob in GLOBS]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
            await ls.register_dynamically(types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)

    ls.when_initialized(begin)
    return {"workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}}}
