"""Inlay hints: the unwritten values of `spec_lsp.analysis.hints`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.analysis.hints import Hint, Kind
    from spec_lsp.server.positions import Lines
    from spec_lsp.server.shared import SharedHost
    from spec_lsp.settings import Settings


def _kinds(settings: Settings) -> frozenset[Kind]:
    """The kinds of hints that are enabled."""
    kinds: dict[Kind, bool] = {"changed": settings.changed_value_hints, "chosen": settings.chosen_value_hints}
    return frozenset(kind for kind, wanted in kinds.items() if wanted and settings.inlay_hints)


def _shown(hint: Hint, lines: Lines) -> dict[str, Any]:
    label = [
        {"value": part.text, **({"tooltip": {"kind": "markdown", "value": part.tooltip}} if part.tooltip else {})}
        for part in hint.parts
    ]
    return {"position": lines.position(hint.offset), "label": label, "paddingLeft": True}


def register(ls: SharedHost) -> dict[str, Any]:
    session = ls.session

    @ls.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hints(params: types.InlayHintParams) -> list[dict[str, Any]]:
        ls.refreshing.shown("inlay_hint")
        await session.ready()
        name = name_of(params.text_document.uri)
        text, analysis = session.text(name), session.analysis(name)
        kinds = _kinds(session.scope(name).settings)
        if text is None or analysis is None or not kinds:
            return []
        lines = text.lines
        start = lines.offset(params.range.start.line, params.range.start.character)
        end = lines.offset(params.range.end.line, params.range.end.character)
        return [_shown(hint, lines) for hint in session.engine.hints(analysis, start, end, kinds)]

    return {"inlayHintProvider": True}
