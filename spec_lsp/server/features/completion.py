"""Completion: the candidates of `spec_lsp.analysis.completion`; documentation is sent when an item is looked at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.features.hover import plain
from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.analysis.completion import Completion, Item
    from spec_lsp.analysis.report import Analysis
    from spec_lsp.server.client import Client
    from spec_lsp.server.host import Host
    from spec_lsp.server.positions import Lines, Range
    from spec_lsp.server.session import Session
    from spec_lsp.server.text import OpenText

TRIGGERS = ["-", "=", " ", "["]
KINDS = {"flag": 10, "key": 10, "value": 12}
"""CompletionItemKind: Property, Value."""

PLAIN, SNIPPET = 1, 2
DEPRECATED = 1
"""InsertTextFormat.PlainText and Snippet, CompletionItemTag.Deprecated."""


def _fitting(items: Iterable[Item], typed: str) -> list[Item]:
    """The items that may complete what is typed, best first: those that start with it, by rank.

    Clients filter further while typing goes on, but some show everything they are sent, so items that cannot be meant are left out. The
    rest contain the typed characters in order, as editors match them.
    """
    wanted = typed.strip().lower()
    fitting = [item for item in items if _within(wanted, item.text.lower()) or _within(wanted, item.label.lower())]
    return sorted(fitting, key=lambda i: (not i.text.strip().lower().startswith(wanted), i.rank))


def _within(wanted: str, text: str) -> bool:
    """Whether the text contains all the characters in order."""
    at = 0
    for character in wanted:
        at = text.find(character, at) + 1
        if not at:
            return False
    return True


def _item(item: Item, number: int, client: Client) -> dict[str, Any]:
    """An item without its range; `newText` is the text that it inserts."""
    snippet = item.snippet if client.snippets else ""
    shown: dict[str, Any] = {
        "label": item.label,
        "kind": KINDS[item.kind],
        "sortText": f"{number:04}",
        "newText": snippet or item.text,
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


def _list(items: list[dict[str, Any]], span: Range, defaults: frozenset[str]) -> dict[str, Any]:
    """The answer; what is the same for all items is sent once to clients that support such defaults."""
    if "editRange" not in defaults:
        for item in items:
            item["textEdit"] = {"range": span, "newText": item.pop("newText")}
        return {"isIncomplete": False, "items": items}
    for item in items:
        text = item.pop("newText")
        if text != item["label"]:
            item["textEditText"] = text
    shared: dict[str, Any] = {"editRange": span}
    if "insertTextFormat" in defaults and 2 * sum("insertTextFormat" in item for item in items) > len(items):
        shared["insertTextFormat"] = SNIPPET
        for item in items:
            if item.pop("insertTextFormat", None) is None:
                item["insertTextFormat"] = PLAIN
    return {"isIncomplete": False, "itemDefaults": shared, "items": items}


def _span(found: Completion, offset: int, lines: Lines) -> Range:
    """The characters to replace, on the cursor's line as the protocol requires."""
    first, last = lines.span(lines.line_at(offset))
    return lines.range(max(found.place.start, first), min(found.place.end, last))


def _as_config(text: OpenText, session: Session) -> Analysis:
    """A document that an open script reads, marked as a `--config` file for this reading; harmless if it is none.

    A file with one key, or an empty one, cannot be recognized by itself.
    """
    scope = session.scope(text.name)
    said = f"{text.text}\n# spec-lsp: config\n"  # at the end, so that offsets stay the same
    return session.engine.analyse(
        text.name, said, text.language, scope.options, scope.workspace, session.engine.new_cache()
    )


def register(ls: Host) -> dict[str, Any]:
    session = ls.session

    @ls.feature(types.TEXT_DOCUMENT_COMPLETION)
    async def completion(params: types.CompletionParams) -> dict[str, Any] | None:
        await session.ready()
        name = name_of(params.text_document.uri)
        text, analysis = session.text(name), session.analysis(name)
        if text is None:
            return None
        offset = text.lines.offset(params.position.line, params.position.character)
        if session.holds_settings(name):
            return answer(session.engine.complete_settings(name, text.text, offset), text, offset)
        if analysis is None:
            return None
        scope = session.scope(name)

        def complete() -> Completion | None:
            found = session.engine.complete(analysis, offset, scope.options, scope.workspace)
            if found is None and session.dependants(name):
                found = session.engine.complete(_as_config(text, session), offset, scope.options, scope.workspace)
            return found

        return answer(await session.work(name, complete), text, offset)

    def answer(found: Completion | None, text: OpenText, offset: int) -> dict[str, Any] | None:
        if found is None:
            return None
        span = _span(found, offset, text.lines)
        fitting = _fitting(found.items, text.text[found.place.start : offset])
        items = [_item(item, number, session.client) for number, item in enumerate(fitting)]
        return _list(items, span, session.client.completion_defaults)

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
