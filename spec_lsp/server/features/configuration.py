"""Settings from the client: `initializationOptions`, `workspace/configuration`, `didChangeConfiguration`.

The first diagnostics do not wait for them: texts are analysed with the settings known so far, and again when the client has answered.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.session import settings_table
from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.server.shared import SharedHost

SECTION = "spec-lsp"


async def pull_settings(ls: SharedHost) -> None:
    """Ask for the settings of the workspace and of each of its folders; if they changed, analyse everything again."""
    uris = [None, *(root.as_uri() for root in ls.session.roots)]
    items = [types.ConfigurationItem(scope_uri=uri, section=SECTION) for uri in uris]
    answer = await ls.ask(types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items=items))
    if not isinstance(answer, (list, tuple)):
        return
    tables = {name_of(uri) if uri else "": settings_table(table) for uri, table in zip(uris, answer, strict=False)}
    take_settings(ls, tables)


def take_settings(ls: SharedHost, tables: dict[str, Any]) -> None:
    """Use these settings from now on."""
    if tables == ls.session.pulled:
        return
    ls.session.pulled = tables
    ls.session.settings_changed()
    ls.everything_changed()


def register(ls: SharedHost) -> dict[str, Any]:
    @ls.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        if ls.client.configuration:
            await pull_settings(ls)
        elif isinstance(params.settings, dict):
            take_settings(ls, {"": settings_table(params.settings)})

    async def tell_of_changes() -> None:
        if ls.client.dynamic_configuration:
            options = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
            await ls.register_dynamically(types.WORKSPACE_DID_CHANGE_CONFIGURATION, options)

    async def pull() -> None:
        if ls.client.configuration:
            await pull_settings(ls)

    pulling: set[asyncio.Task[None]] = set()

    def folders_came() -> None:
        task = asyncio.get_running_loop().create_task(pull())
        pulling.add(task)
        task.add_done_callback(pulling.discard)

    ls.folders_came = folders_came
    ls.when_initialized(tell_of_changes)
    ls.when_initialized(pull)
    return {}
