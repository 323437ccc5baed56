"""What the client on the other end can do, read once from its `initialize` parameters.

Clients send values that lsprotocol does not know; those arrive raw (see `protocol.converter`), so nothing here trusts a type.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lsprotocol import types

from spec_lsp.server.positions import Encoding

_ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")


@dataclass(frozen=True, slots=True)
class Client:
    """Capabilities, as plain values."""

    encoding: Encoding = "utf-16"
    pull: bool = False
    related_information: bool = False
    tags: frozenset[int] = frozenset()
    diagnostic_data: bool = False
    document_changes: bool = False
    action_literals: bool = True
    resolves_edits: bool = False
    hover_markdown: bool = True
    hint_markdown: bool = False
    configuration: bool = False
    dynamic_configuration: bool = False
    dynamic_watching: bool = False
    refreshes: frozenset[str] = frozenset()
    """Which of "diagnostics", "inlay_hint", "code_lens" the server may ask to be asked for again."""
    snippets: bool = False
    definition_links: bool = False
    symbol_trees: bool = False
    completion_markdown: bool = True
    completion_tags: frozenset[int] = frozenset()
    completion_deprecated: bool = False
    completion_defaults: frozenset[str] = frozenset()
    """What of a completion's items may be said once for all (`editRange`, …)."""
    link_tooltips: bool = False
    code_lens: bool = False
    commands: frozenset[str] = frozenset()
    """Commands whose results the client shows (`experimental.commands.commands`)."""
    wants_changed: bool = False
    """Whether it wants to be told that the results of commands may be others (`experimental["spec-lsp"].changed`)."""
    initialization_options: Any = None
    folders: tuple[str, ...] = field(default=())
    """Workspace folders, as URIs."""
    process_id: int | None = None


def read_client(params: types.InitializeParams) -> Client:
    """The client that sent these parameters."""
    has = params.capabilities
    return Client(
        encoding=_encoding(_get(has, "general.position_encodings") or ()),
        pull=_pulls(has),
        related_information=bool(
            _get(has, "text_document.publish_diagnostics.related_information")
            or _get(has, "text_document.diagnostic.related_information")
        ),
        tags=_tags(has),
        diagnostic_data=bool(
            _get(has, "text_document.publish_diagnostics.data_support")
            or _get(has, "text_document.diagnostic") is not None
        ),
        document_changes=bool(_get(has, "workspace.workspace_edit.document_changes")),
        action_literals=_get(has, "text_document.code_action.code_action_literal_support") is not None,
        resolves_edits="edit" in (_get(has, "text_document.code_action.resolve_support.properties") or ()),
        hover_markdown=_takes_markdown(_get(has, "text_document.hover.content_format")),
        hint_markdown=_get(has, "text_document.inlay_hint") is not None,
        configuration=bool(_get(has, "workspace.configuration")),
        dynamic_configuration=bool(_get(has, "workspace.did_change_configuration.dynamic_registration")),
        dynamic_watching=bool(_get(has, "workspace.did_change_watched_files.dynamic_registration")),
        refreshes=frozenset(
            kind
            for kind in ("diagnostics", "inlay_hint", "code_lens")
            if _get(has, f"workspace.{kind}.refresh_support")
        ),
        snippets=bool(_get(has, "text_document.completion.completion_item.snippet_support")),
        definition_links=bool(_get(has, "text_document.definition.link_support")),
        symbol_trees=bool(_get(has, "text_document.document_symbol.hierarchical_document_symbol_support")),
        completion_markdown=_takes_markdown(_get(has, "text_document.completion.completion_item.documentation_format")),
        completion_tags=_values(_get(has, "text_document.completion.completion_item.tag_support.value_set")),
        completion_deprecated=bool(_get(has, "text_document.completion.completion_item.deprecated_support")),
        completion_defaults=frozenset(
            filter(_is_text, _get(has, "text_document.completion.completion_list.item_defaults") or ())
        ),
        link_tooltips=bool(_get(has, "text_document.document_link.tooltip_support")),
        code_lens=_get(has, "text_document.code_lens") is not None,
        commands=_commands(_get(has, "experimental")),
        wants_changed=_table(_table(_get(has, "experimental")).get("spec-lsp")).get("changed") is True,
        initialization_options=params.initialization_options,
        folders=_folders(params),
        process_id=params.process_id,
    )


def _get(capabilities: Any, path: str) -> Any:
    value = capabilities
    for name in path.split("."):
        value = getattr(value, name, None)
        if value is None:
            return None
    return value


def _encoding(offered: Any) -> Encoding:
    """The client's first choice among those we speak; UTF-16 where it says nothing."""
    for choice in offered:
        name = getattr(choice, "value", choice)
        for encoding in _ENCODINGS:
            if name == encoding:
                return encoding
    return "utf-16"


def _pulls(capabilities: Any) -> bool:
    """Whether diagnostics are pulled: where the client can, and can be told to pull again.

    Neovim 0.11 pulls a document when that one is edited and at no other time. What another file or the settings change would never
    be seen there, so it is pushed to, as to all that cannot pull.
    """
    told = _get(capabilities, "workspace.diagnostics.refresh_support")
    pushed = _get(capabilities, "text_document.publish_diagnostics") is not None
    return _get(capabilities, "text_document.diagnostic") is not None and bool(told or not pushed)


def _tags(capabilities: Any) -> frozenset[int]:
    offered = _get(capabilities, "text_document.publish_diagnostics.tag_support.value_set") or _get(
        capabilities, "text_document.diagnostic.tag_support.value_set"
    )
    return _values(offered)


def _values(offered: Any) -> frozenset[int]:
    values = (getattr(tag, "value", tag) for tag in offered or ())
    return frozenset(value for value in values if isinstance(value, int))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _commands(experimental: Any) -> frozenset[str]:
    """The commands of `{"commands": {"commands": [...]}}`; what is there may be anything."""
    names = _table(_table(experimental).get("commands")).get("commands")
    return frozenset(n for n in names if isinstance(n, str)) if isinstance(names, (list, tuple)) else frozenset()


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _takes_markdown(formats: Any) -> bool:
    return not formats or any(getattr(f, "value", f) == "markdown" for f in formats)


def _folders(params: types.InitializeParams) -> tuple[str, ...]:
    if params.workspace_folders:
        return tuple(folder.uri for folder in params.workspace_folders)
    if params.root_uri:
        return (params.root_uri,)
    return (("file://" + params.root_path),) if params.root_path else ()
