"""The launches of a document: as symbols, and the commands that show the configuration of one and what it is computed for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.analysis.report import Analysis, LaunchReport
    from spec_lsp.analysis.resolved import Target
    from spec_lsp.server.host import Host

SHOW_RESOLVED = "spec-lsp.showResolved"
ASSUMED = "spec-lsp.assumed"
EVENT = 24
"""SymbolKind.Event: a thing that happens."""


def _nearest(analysis: Analysis, name: str, offset: int) -> LaunchReport | None:
    """The launch at an offset, else the next one before it, else the first."""
    own = [r for r in analysis.launches if r.launch.extent.document == name]
    before = [r for r in own if r.launch.extent.start <= offset]
    return before[-1] if before else own[0] if own else None


def register(ls: Host) -> dict[str, Any]:
    session = ls.session

    @ls.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def symbols(params: types.DocumentSymbolParams) -> list[dict[str, Any]]:
        await session.ready()
        from spec_lsp.analysis.overview import title

        name = name_of(params.text_document.uri)
        text, analysis = session.text(name), session.analysis(name)
        found = []
        for report in analysis.launches if text and analysis else ():
            launch = report.launch
            if text is None or launch.extent.document != name:
                continue
            whole = text.lines.range(launch.extent.start, launch.extent.end)
            start = text.lines.range(launch.place.start, launch.place.end)
            symbol = {"name": title(report.launch), "kind": EVENT}
            if session.client.symbol_trees:
                found.append({**symbol, "detail": launch.program, "range": whole, "selectionRange": start})
            else:
                found.append({**symbol, "location": {"uri": text.uri, "range": whole}})
        return found

    def launch_at(uri: str, line: int) -> LaunchReport | None:
        """The launch at a line, or the next one above; None if the document has none."""
        name = name_of(uri)
        text, analysis = session.text(name), session.analysis(name)
        last = text.lines.line_at(len(text.text)) if text else 0
        return _nearest(analysis, name, text.lines.span(min(max(line, 0), last))[1]) if text and analysis else None

    @ls.command(SHOW_RESOLVED)
    async def show_resolved(uri: str, line: int, links: bool = False) -> str | dict[str, Any] | None:
        """The configuration of the launch at a line, as Markdown. With links it comes as `{text, links}`: in the text `#n` leads to the
        n-th of the links, which is `{rule}` or `{uri, range}`."""
        await session.ready()
        report = launch_at(uri, line)
        if report is None:
            return None
        text, targets = session.engine.resolved(report, links=links)
        return {"text": text, "links": [link(target, name_of(uri)) for target in targets]} if links else text

    def link(target: Target, name: str) -> dict[str, Any]:
        """A rule by its name, or a place as the client takes it; None if the document of that place cannot be read."""
        if isinstance(target, str):
            return {"rule": target}
        read = session.scope(name).workspace.read(name, target.document) if target.document != name else None
        document = read[0] if read else target.document
        lines = session.lines(document)
        return {"uri": session.uri(document), "range": lines.range(target.start, target.end)} if lines else {}

    @ls.command(ASSUMED)
    async def assumed(uri: str, line: int) -> dict[str, str] | None:
        """The release and hardware that the launch is judged for, and where they are named; `hardware` is empty where any is possible."""
        await session.ready()
        report = launch_at(uri, line)
        if report is None:
            return None
        world, any_gpu = session.engine.likeliest(report), session.engine.any_gpu(report)
        hardware = world.hardware if not any_gpu else None
        return {
            "text": session.engine.assumed(report),
            "release": str(world.release),
            "releaseFrom": world.release_from,
            "hardware": hardware.name if hardware else "",
            "hardwareTitle": hardware.title if hardware else any_gpu,
            "hardwareFrom": world.hardware_from,
        }

    return {"documentSymbolProvider": True}
