"""Hover: the text of `spec_lsp.analysis.hover` for the word under the cursor."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.server.host import Host


def plain(markdown: str) -> str:
    """Our Markdown for a client without Markdown support: without markup, tables as lines of words."""
    text = re.sub(r"^\|[\s:|-]+\|\n", "", markdown, flags=re.MULTILINE)
    text = re.sub(r"^\|\s*(.*?)\s*\|$", lambda m: re.sub(r"\s*\|\s*", "  ", m[1]), text, flags=re.MULTILINE)
    text = re.sub(r"^```\w*\n?", "", text, flags=re.MULTILINE)
    return text.replace("**", "").replace("`", "").replace("\\|", "|")


def register(ls: Host) -> dict[str, Any]:
    session = ls.session

    @ls.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> dict[str, Any] | None:
        await session.ready()
        name = name_of(params.text_document.uri)
        text = session.text(name)
        if text is None:
            return None
        offset = text.lines.offset(params.position.line, params.position.character)
        said = (session.engine.hover(analysis, offset, name) for analysis in session.views(name))
        found = next((hover for hover in said if hover is not None), None)
        if found is None:
            return None
        if found.flag:
            from spec_lsp.analysis.hover import with_help

            scope = session.scope(name)
            found = with_help(found, scope.workspace.installed_help(name, found.flag, scope.settings.python))
        markdown = session.client.hover_markdown
        contents = {
            "kind": "markdown" if markdown else "plaintext",
            "value": found.markdown if markdown else plain(found.markdown),
        }
        return {"contents": contents, "range": text.lines.range(found.place.start, found.place.end)}

    return {"hoverProvider": True}
