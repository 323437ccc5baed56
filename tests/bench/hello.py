"""The smallest language server that pygls can be: one diagnostic for each edit. What we cost beyond it is ours."""

from __future__ import annotations

from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("hello", "1")


def publish(uri: str, version: int | None) -> None:
    start = types.Position(0, 0)
    said = types.Diagnostic(types.Range(start, start), f"version {version}", types.DiagnosticSeverity.Warning)
    server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, [said], version))


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
def did_open(params: Any) -> None:
    publish(params.text_document.uri, params.text_document.version)


@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def did_change(params: Any) -> None:
    publish(params.text_document.uri, params.text_document.version)


if __name__ == "__main__":
    server.start_io()
