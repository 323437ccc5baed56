"""The server with what its features share, and what becomes of that when something around the texts changes."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from spec_lsp.server.features.diagnostics import Diagnostics
from spec_lsp.server.features.refreshing import Refreshing
from spec_lsp.server.features.verifying import Verifying
from spec_lsp.server.host import Host


class SharedHost(Host):
    """What it shares exists after `initialize`."""

    diagnostics: Diagnostics
    refreshing: Refreshing
    verifying: Verifying

    def share(self) -> None:
        """Make what features share; the session must exist."""
        self.diagnostics = Diagnostics(self)
        self.refreshing = Refreshing(self)
        self.verifying = Verifying(self, self.diagnostics.surroundings_changed)

    def stop(self) -> None:
        """End what a thread is waiting for, as the end of the process would wait for the thread."""
        if hasattr(self, "verifying"):
            self.verifying.end()

    def files_changed(self, names: Iterable[str]) -> None:
        """Files changed on disk (document names)."""
        self.surroundings_changed()
        concerned = self.session.files_changed(names)
        self.diagnostics.surroundings_changed(concerned)
        if concerned:
            self.refreshing.refresh()

    def folders_changed(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        """Workspace folders came or went."""
        event = params.event
        self.session.folders_changed((f.uri for f in event.added), (f.uri for f in event.removed))
        self.everything_changed()
        self.folders_came()

    def everything_changed(self) -> None:
        """All documents must be analysed again."""
        self.surroundings_changed()
        self.diagnostics.surroundings_changed([text.name for text in self.session.texts])
        self.refreshing.refresh()
