"""The command that shows a document's launches on several targets side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.analysis.comparing import Comparison
    from spec_lsp.server.host import Host
    from spec_lsp.server.positions import Lines

COMPARE = "spec-lsp.compare"
MOST = 8
"""The most targets that are compared at once."""


def register(ls: Host) -> dict[str, Any]:
    session = ls.session

    @ls.command(COMPARE)
    async def compare(uri: str, *targets: Any) -> list[dict[str, Any]]:
        """Each launch of a document on each target (`{"sglang": "0.5.19", "gpu": "h200"}`, either or both): what SGLang does with it, its
        findings, and the fields that do not resolve to the same value on all targets."""
        await session.ready()
        name = name_of(uri)
        text, analysis = session.text(name), session.analysis(name)
        if text is None or analysis is None:
            return []
        scope = session.scope(name)
        from spec_lsp.analysis.overview import title

        wanted = [target for target in targets[:MOST] if isinstance(target, dict)]
        found = session.engine.compare(analysis, scope.options, scope.workspace, wanted)
        return [
            _as_json(one, title(report.launch), text.lines)
            for one, report in zip(found, analysis.launches, strict=True)
        ]

    return {}


def _as_json(found: Comparison, name: str, lines: Lines) -> dict[str, Any]:
    return {
        "title": name,
        "line": lines.line_at(found.place.start),
        "sides": [
            {"target": s.target, "outcome": s.outcome, "remarks": [r._asdict() for r in s.remarks]} for s in found.sides
        ],
        "fields": [{"field": d.field, "values": list(d.values)} for d in found.differences],
    }
