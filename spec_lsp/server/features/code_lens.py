"""A lens on each launch that opens the configuration it will run with; its title says what that was computed for.

The lens's command returns Markdown, which the client must show. So only clients get lenses that declare support
(`experimental.commands.commands` holds `spec-lsp.showResolved`), or whose user enables them in the settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.features.launches import SHOW_RESOLVED
from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.server.shared import SharedHost


def register(ls: SharedHost) -> dict[str, Any]:
    session = ls.session
    if not session.client.code_lens:
        return {}

    @ls.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def code_lens(params: types.CodeLensParams) -> list[dict[str, Any]]:
        ls.refreshing.shown("code_lens")
        await session.ready()
        name = name_of(params.text_document.uri)
        text, analysis = session.text(name), session.analysis(name)
        wanted = session.scope(name).settings.code_lens
        if text is None or analysis is None or wanted == "never":
            return []
        if wanted != "always" and SHOW_RESOLVED not in session.client.commands:
            return []
        lenses = []
        for report in analysis.launches:
            place = report.launch.place
            if place.document == name:
                span = text.lines.range(place.start, place.end)
                arguments = [text.uri, span["start"]["line"]]
                command = {"title": session.engine.lens(report), "command": SHOW_RESOLVED, "arguments": arguments}
                lenses.append({"range": span, "command": command})
        return lenses

    return {"codeLensProvider": {"resolveProvider": False}}
