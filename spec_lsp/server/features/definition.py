"""Definition: from a variable to its assignment, from `--config` to the file, from a flag to the file's key that sets the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.analysis.navigation import Origin
    from spec_lsp.server.host import Host
    from spec_lsp.server.positions import Lines
    from spec_lsp.server.session import Session


def _location(origin: Origin, own: Lines, session: Session) -> dict[str, Any] | None:
    """A link if the client supports links, else a location; None when the document cannot be read."""
    target = origin.target
    lines = session.lines(target.document)
    if lines is None:
        return None
    uri, span = session.uri(target.document), lines.range(target.start, target.end)
    if not session.client.definition_links:
        return {"uri": uri, "range": span}
    origin_span = own.range(origin.place.start, origin.place.end)
    return {"originSelectionRange": origin_span, "targetUri": uri, "targetRange": span, "targetSelectionRange": span}


def register(ls: Host) -> dict[str, Any]:
    session = ls.session

    @ls.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> list[dict[str, Any]]:
        await session.ready()
        name = name_of(params.text_document.uri)
        text, analysis = session.text(name), session.analysis(name)
        if text is None or analysis is None:
            return []
        offset = text.lines.offset(params.position.line, params.position.character)
        found = session.engine.definitions(analysis, offset, name, session.scope(name).workspace)
        return [shown for origin in found if (shown := _location(origin, text.lines, session)) is not None]

    return {"definitionProvider": True}
