"""What the client supports, read once from its `initialize` parameters.

Capabilities are read as the client wrote them, without trusting any type: they may follow any protocol version, or none.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from spec_lsp.records import dataclass, field
from spec_lsp.server.positions import Encoding
from spec_lsp.server.uris import uri_of

_ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
_REFRESHED = {"diagnostics": "diagnostics", "inlay_hint": "inlayHint", "code_lens": "codeLens"}


@dataclass(frozen=True, slots=True)
class Client:
    """Capabilities, as plain values."""

    encoding: Encoding = "utf-16"
    pull: bool = False
    related_information: bool = False
    tags: frozenset[int] = frozenset()
    diagnostic_data: bool = False
    code_description: bool = False
    document_changes: bool = False
    action_literals: bool = True
    resolves_edits: bool = False
    applies_edits: bool = False
    hover_markdown: bool = True
    hint_markdown: bool = False
    shows_documents: bool = False
    configuration: bool = False
    dynamic_configuration: bool = False
    dynamic_watching: bool = False
    refreshes: frozenset[str] = frozenset()
    """Which of "diagnostics", "inlay_hint", "code_lens" the server may ask the client to request again."""
    snippets: bool = False
    definition_links: bool = False
    symbol_trees: bool = False
    completion_markdown: bool = True
    completion_tags: frozenset[int] = frozenset()
    completion_deprecated: bool = False
    completion_defaults: frozenset[str] = frozenset()
    """Properties of completion items that may be given once for all items (`editRange`, …)."""
    link_tooltips: bool = False
    code_lens: bool = False
    commands: frozenset[str] = frozenset()
    """Commands whose results the client shows (`experimental.commands.commands`)."""
    notebooks: bool = False
    """Whether it syncs the cells of notebooks."""
    wants_changed: bool = False
    """Whether it wants to be notified that the results of commands may have changed (`experimental["spec-lsp"].changed`)."""
    initialization_options: Any = None
    folders: tuple[str, ...] = field(default=())
    """Workspace folders, as URIs."""
    process_id: int | None = None


def read_client(params: types.InitializeParams, has: Any) -> Client:
    """The client that sent these parameters, with these capabilities (JSON)."""
    return Client(
        encoding=_encoding(_texts(_get(has, "general.positionEncodings"))),
        pull=_pulls(has),
        related_information=bool(
            _get(has, "textDocument.publishDiagnostics.relatedInformation")
            or _get(has, "textDocument.diagnostic.relatedInformation")
        ),
        tags=_tags(has),
        diagnostic_data=bool(
            _get(has, "textDocument.publishDiagnostics.dataSupport") or _get(has, "textDocument.diagnostic") is not None
        ),
        code_description=bool(
            _get(has, "textDocument.publishDiagnostics.codeDescriptionSupport")
            or _get(has, "textDocument.diagnostic.codeDescriptionSupport")
        ),
        document_changes=bool(_get(has, "workspace.workspaceEdit.documentChanges")),
        action_literals=_get(has, "textDocument.codeAction.codeActionLiteralSupport") is not None,
        resolves_edits="edit" in _texts(_get(has, "textDocument.codeAction.resolveSupport.properties")),
        applies_edits=bool(_get(has, "workspace.applyEdit")),
        hover_markdown=_takes_markdown(_texts(_get(has, "textDocument.hover.contentFormat"))),
        hint_markdown=_get(has, "textDocument.inlayHint") is not None,
        shows_documents=bool(_get(has, "window.showDocument.support")),
        configuration=bool(_get(has, "workspace.configuration")),
        dynamic_configuration=bool(_get(has, "workspace.didChangeConfiguration.dynamicRegistration")),
        dynamic_watching=bool(_get(has, "workspace.didChangeWatchedFiles.dynamicRegistration")),
        refreshes=frozenset(kind for kind, name in _REFRESHED.items() if _get(has, f"workspace.{name}.refreshSupport")),
        snippets=bool(_get(has, "textDocument.completion.completionItem.snippetSupport")),
        definition_links=bool(_get(has, "textDocument.definition.linkSupport")),
        symbol_trees=bool(_get(has, "textDocument.documentSymbol.hierarchicalDocumentSymbolSupport")),
        completion_markdown=_takes_markdown(
            _texts(_get(has, "textDocument.completion.completionItem.documentationFormat"))
        ),
        completion_tags=_values(_get(has, "textDocument.completion.completionItem.tagSupport.valueSet")),
        completion_deprecated=bool(_get(has, "textDocument.completion.completionItem.deprecatedSupport")),
        completion_defaults=frozenset(_texts(_get(has, "textDocument.completion.completionList.itemDefaults"))),
        link_tooltips=bool(_get(has, "textDocument.documentLink.tooltipSupport")),
        code_lens=_get(has, "textDocument.codeLens") is not None,
        commands=frozenset(_texts(_get(has, "experimental.commands.commands"))),
        notebooks=_get(has, "notebookDocument.synchronization") is not None,
        wants_changed=_get(has, "experimental.spec-lsp.changed") is True,
        initialization_options=params.initialization_options,
        folders=_folders(params),
        process_id=params.process_id,
    )


def _get(capabilities: Any, path: str) -> Any:
    """The value at a path of names, None if there is none."""
    value = capabilities
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _encoding(offered: list[str]) -> Encoding:
    """The first encoding in the client's list that we support; UTF-16 if it gives none."""
    return next((encoding for choice in offered for encoding in _ENCODINGS if choice == encoding), "utf-16")


def _pulls(capabilities: Any) -> bool:
    """Whether diagnostics are pulled: if the client can pull, and can be asked to pull again.

    Neovim 0.11 pulls a document only when that document is edited, so it would never see what a change of another file or of the settings
    causes. Diagnostics are pushed to it, as to all clients that cannot pull.
    """
    told = _get(capabilities, "workspace.diagnostics.refreshSupport")
    pushed = _get(capabilities, "textDocument.publishDiagnostics") is not None
    return _get(capabilities, "textDocument.diagnostic") is not None and bool(told or not pushed)


def _tags(capabilities: Any) -> frozenset[int]:
    return _values(_get(capabilities, "textDocument.publishDiagnostics.tagSupport.valueSet")) or _values(
        _get(capabilities, "textDocument.diagnostic.tagSupport.valueSet")
    )


def _values(offered: Any) -> frozenset[int]:
    return frozenset(v for v in offered if isinstance(v, int)) if isinstance(offered, list) else frozenset()


def _texts(values: Any) -> list[str]:
    """The strings of a list; none where there is no list."""
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _takes_markdown(formats: list[str]) -> bool:
    """Whether Markdown is the first of the formats that the client lists and we support, or it lists none."""
    return (
        next((one for one in formats if one in ("markdown", "plaintext")), "plaintext" if formats else "")
        != "plaintext"
    )


def _folders(params: types.InitializeParams) -> tuple[str, ...]:
    if params.workspace_folders:
        return tuple(folder.uri for folder in params.workspace_folders)
    if params.root_uri:
        return (params.root_uri,)
    return (uri_of(params.root_path),) if params.root_path else ()
