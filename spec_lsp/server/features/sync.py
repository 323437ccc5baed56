"""didOpen, didChange, didClose, didSave: keeps the open texts, and notifies the other features of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.text import TextChange
from spec_lsp.server.tolerance import UNNUMBERED
from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.server.shared import SharedHost


class Sync:
    """Handlers of the text notifications. They only edit the text: analysis comes when the queue of messages is empty."""

    def __init__(self, ls: SharedHost) -> None:
        self._ls = ls

    def did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        opened = self._ls.session.open(item.uri, str(item.language_id), _version(item.version), item.text)
        self._ls.diagnostics.half_typed.forget()
        self._changed(opened.name)
        self._ls.look_around()

    def did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        name = name_of(params.text_document.uri)
        text = self._ls.session.text(name)
        if text is None:
            return  # a client that edits a document that it never opened: nothing to update
        changes = list(map(_change, params.content_changes))
        text.apply(changes, _version(params.text_document.version))
        self._ls.diagnostics.half_typed.edited(text, changes)
        self._changed(name)

    def _changed(self, name: str) -> None:
        others = self._ls.session.edited(name)
        self._ls.diagnostics.changed(name, others)
        if others:
            self._ls.refreshing.refresh()

    def did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        name = name_of(params.text_document.uri)
        read = self._ls.session.reads(name)
        closed = self._ls.session.close(name)
        if closed is not None:
            self._ls.diagnostics.closed(closed, [*read, *self._ls.session.edited(name)])

    # Notebooks: their cells are texts like others.

    def notebook_opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        for cell in params.cell_text_documents:
            self.did_open(types.DidOpenTextDocumentParams(cell))

    def notebook_changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        cells = params.change.cells
        structure = cells.structure if cells else None
        for cell in (structure and structure.did_open) or ():
            self.did_open(types.DidOpenTextDocumentParams(cell))
        for gone in (structure and structure.did_close) or ():
            self.did_close(types.DidCloseTextDocumentParams(gone))
        for edited in (cells and cells.text_content) or ():
            self.did_change(types.DidChangeTextDocumentParams(edited.document, edited.changes))

    def notebook_closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        for cell in params.cell_text_documents:
            self.did_close(types.DidCloseTextDocumentParams(cell))


def _version(version: int) -> int | None:
    return None if version == UNNUMBERED else version


def _change(event: Any) -> TextChange:
    span = getattr(event, "range", None)
    if span is None:
        return TextChange(event.text)
    return TextChange(event.text, (span.start.line, span.start.character, span.end.line, span.end.character))


def register(ls: SharedHost) -> dict[str, Any]:
    @ls.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        """The word being typed counts as typed. Clients that watch no files report at least the files that they save."""
        ls.diagnostics.half_typed.finish()
        if not ls.client.dynamic_watching:
            ls.files_changed([name_of(params.text_document.uri)])
        ls.verifying.saved(name_of(params.text_document.uri))
        ls.look_around()

    offered: dict[str, Any] = {"textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": False}}}
    if (
        ls.client.notebooks and not ls.client.pull
    ):  # editors that pull request the documents that they have open themselves
        cells = [{"language": language} for language in ("python", "shellscript")]
        offered["notebookDocumentSync"] = {"notebookSelector": [{"notebook": "*", "cells": cells}], "save": False}
    return offered
