"""Converts edits in characters to workspace edits, with the document versions that they apply to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spec_lsp.server.session import Session
    from spec_lsp.syntax.launch import Edit


def workspace_edit(session: Session, edits: Iterable[Edit]) -> dict[str, Any] | None:
    """A WorkspaceEdit for the current versions of the documents; None when one of them cannot be read."""
    by_document: dict[str, list[dict[str, Any]]] = {}
    for edit in sorted(edits, key=lambda e: (e.place.document, e.place.start, e.place.end)):
        lines = session.lines(edit.place.document)
        if lines is None:
            return None
        change = {"range": lines.range(edit.place.start, edit.place.end), "newText": edit.text}
        by_document.setdefault(edit.place.document, []).append(change)
    if not session.client.document_changes:
        return {"changes": {session.uri(name): changes for name, changes in by_document.items()}}
    return {
        "documentChanges": [
            {"textDocument": {"uri": session.uri(name), "version": _version(session, name)}, "edits": changes}
            for name, changes in by_document.items()
        ]
    }


def _version(session: Session, name: str) -> int | None:
    text = session.text(name)
    return text.version if text else None
