"""Document links: `--config` files, and the pages of models that are named by their id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.analysis.navigation import Link
    from spec_lsp.server.host import Host
    from spec_lsp.server.positions import Lines
    from spec_lsp.server.session import Session


def _shown(link: Link, lines: Lines, session: Session) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "range": lines.range(link.place.start, link.place.end),
        "target": session.uri(link.document) if link.document else link.address,
    }
    if session.client.link_tooltips:
        shown["tooltip"] = link.tooltip
    return shown


def register(ls: Host) -> dict[str, Any]:
    session = ls.session

    @ls.feature(types.TEXT_DOCUMENT_DOCUMENT_LINK)
    async def document_links(params: types.DocumentLinkParams) -> list[dict[str, Any]]:
        await session.ready()
        name = name_of(params.text_document.uri)
        text, analysis = session.text(name), session.analysis(name)
        if text is None or analysis is None:
            return []
        found = session.engine.links(analysis, session.scope(name).workspace)
        return [_shown(link, text.lines, session) for link in found]

    return {"documentLinkProvider": {"resolveProvider": False}}
