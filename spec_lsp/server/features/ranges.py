"""Ranges: what can be folded, and the steps in which a selection grows: a word, its flag with the value, the launch, the commands around
it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.server.host import Host
    from spec_lsp.server.text import OpenText


def _is_shell(text: OpenText) -> bool:
    from spec_lsp.syntax.kinds import kind_of

    return kind_of(text.name, text.text, text.language) == "shell"


def register(ls: Host) -> dict[str, Any]:
    session = ls.session

    @ls.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    def folding(params: types.FoldingRangeParams) -> list[dict[str, Any]] | None:
        """Folds of whole shell scripts. None for other files: if an editor gets some folds from us, it looks for no others."""
        from spec_lsp.syntax.outline import folds

        text = session.text(name_of(params.text_document.uri))
        if text is None or not _is_shell(text):
            return None
        return [{"startLine": first, "endLine": last} for first, last in folds(text.text)]

    @ls.feature(types.TEXT_DOCUMENT_SELECTION_RANGE)
    def selection(params: types.SelectionRangeParams) -> list[dict[str, Any]] | None:
        from spec_lsp.syntax.outline import enclosing

        name = name_of(params.text_document.uri)
        text, analysis = session.text(name), session.analysis(name)
        if text is None:
            return None
        launches = [report.launch for report in analysis.launches] if analysis else []
        shell = _is_shell(text)
        found = []
        for position in params.positions:
            offset = text.lines.offset(position.line, position.character)
            spans = enclosing(name, text.text, launches, offset, shell=shell)
            here: dict[str, Any] | None = None
            for start, end in reversed(spans or [(offset, offset)]):
                here = {"range": text.lines.range(start, end), **({"parent": here} if here else {})}
            assert here is not None
            found.append(here)
        return found

    return {"foldingRangeProvider": True, "selectionRangeProvider": True}
