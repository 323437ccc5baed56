"""textDocument/diagnostic: the diagnostics of a document, for clients that ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.server.protocol import Written
    from spec_lsp.server.shared import SharedHost


def register(ls: SharedHost) -> dict[str, Any]:
    if not ls.client.pull:
        return {}

    @ls.feature(types.TEXT_DOCUMENT_DIAGNOSTIC)
    async def diagnostic(params: types.DocumentDiagnosticParams) -> Written:
        """First lets the messages received so far be read: a later edit or a cancellation saves the work."""
        await ls.session.ready()
        return ls.diagnostics.pull(name_of(params.text_document.uri), params.previous_result_id)

    return {
        "diagnosticProvider": {"identifier": "spec-lsp", "interFileDependencies": True, "workspaceDiagnostics": False}
    }
