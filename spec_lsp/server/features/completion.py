"""Completion: what `spec_lsp.analysis.completion` says may be typed at the cursor; documentation when an item is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.features.hover import plain
from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.analysis.completion import Completion, Item
    from spec_lsp.server.client import Client
    from spec_lsp.server.positions import Lines, Range
    from spec_lsp.server.server import Server

TRIGGERS = ["-", "=", " "]
KINDS = {"flag": 10, "key": 10, "value": 12}
"""CompletionItemKind: Property, Value."""

SNIPPET = 2
DEPRECATED = 1
"""InsertTextFormat.Snippet, CompletionItemTag.Deprecated."""


def _item(item: Item, number: int, span: Range, client: Client) -> dict[str, Any]:
    snippet = item.snippet if client.snippets else ""
    shown: dict[str, Any] = {
        "label": item.label,
        "kind": KINDS[item.kind],
        "sortText": f"{item.rank}{number:04}",
        "textEdit": {"range": span, "newText": snippet or item.text},
    }
    if item.detail:
        shown["detail"] = item.detail
    if snippet:
        shown["insertTextFormat"] = SNIPPET
    if item.about:
        shown["data"] = {"about": item.about}
    if item.deprecated and DEPRECATED in client.completion_tags:
        shown["tags"] = [DEPRECATED]
    elif item.deprecated and client.completion_deprecated:
        shown["deprecated"] = True
    return shown


def _span(found: Completion, offset: int, lines: Lines) -> Range:
    """The characters to replace: on the cursor's line, as the protocol wants it."""
    first, last = lines.span(lines.line_at(offset))
    return lines.range(max(found.place.start, first), min(found.place.end, last))


def register(ls: Server) -> dict[str, Any]:
    session = ls.session

    @ls.feature(types.TEXT_DOCUMENT_COMPLETION)
    async def completion(params: types.CompletionParams) -> dict[str, Any] | None:
        await session.ready()
        name = name_of(params.text_document.uri)
        text, analysis = session.text(name), session.analysis(name)
        if text is None or analysis is None:
            return None
        offset = text.lines.offset(params.position.line, params.position.character)
        scope = session.scope(name)
        found = session.engine.complete(analysis, offset, scope.options, scope.workspace)
        if found is None:
            return None
        span = _span(found, offset, text.lines)
        items = [_item(item, number, span, session.client) for number, item in enumerate(found.items)]
        return {"isIncomplete": False, "items": items}

    @ls.feature(types.COMPLETION_ITEM_RESOLVE)
    def resolve(params: types.CompletionItem) -> dict[str, Any]:
        item: dict[str, Any] = ls.wire.plain(params)
        about = params.data.get("about") if isinstance(params.data, dict) else None
        markdown = session.engine.document(about) if isinstance(about, (list, tuple)) else ""
        if not markdown:
            return item
        rich = session.client.completion_markdown
        return {
            **item,
            "documentation": {
                "kind": "markdown" if rich else "plaintext",
                "value": markdown if rich else plain(markdown),
            },
        }

    return {"completionProvider": {"triggerCharacters": TRIGGERS, "resolveProvider": True}}
