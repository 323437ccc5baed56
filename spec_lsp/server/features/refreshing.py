"""Asks the client to request inlay hints and lenses again when something other than an edit of the document changed them.

A client that shows the results of our commands is notified that they may have changed (`spec-lsp/changed`, if it asks for that with
`experimental: {"spec-lsp": {"changed": true}}`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from lsprotocol import types

if TYPE_CHECKING:
    from spec_lsp.server.host import Host

Kind = Literal["inlay_hint", "code_lens"]
METHODS: dict[Kind, str] = {
    "inlay_hint": types.WORKSPACE_INLAY_HINT_REFRESH,
    "code_lens": types.WORKSPACE_CODE_LENS_REFRESH,
}

CHANGED = "spec-lsp/changed"


class Refreshing:
    """One round of requests at a time, so that a slow client is not asked twice."""

    def __init__(self, ls: Host) -> None:
        self._ls = ls
        self._shown: dict[str, None] = {}
        """The kinds that the client has requested: only these can be out of date."""
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def shown(self, kind: Kind) -> None:
        """The client was sent results of this kind."""
        if kind in self._ls.client.refreshes:
            self._shown[METHODS[kind]] = None

    def refresh(self) -> None:
        """Results shown for some document may be out of date."""
        if self._ls.client.wants_changed:
            self._ls.wire.notify_plain(CHANGED, {})
        self._again = True
        if self._shown and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._ask())

    async def _ask(self) -> None:
        while self._again:
            self._again = False
            await asyncio.gather(*(self._ls.refresh(method) for method in self._shown))
