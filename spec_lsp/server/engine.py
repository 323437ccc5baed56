"""The door to analysis. Imported late: the client gets its answer to `initialize` before parsers, catalogs and the
rules are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from spec_lsp.analysis.hover import HoverText
    from spec_lsp.analysis.report import Analysis, Diagnostic, Fix, LaunchReport, Options, Workspace
    from spec_lsp.syntax.launch import Edit


class Engine(Protocol):
    """What the server needs of analysis; tests put another in its place."""

    def new_cache(self) -> Any:
        """A cache of verdicts for one session, with `clear()`."""

    def analyse(
        self, name: str, text: str, language: str, options: Options, workspace: Workspace, cache: Any
    ) -> Analysis:
        """All that is said of one document."""

    def fixes(
        self, analysis: Analysis, diagnostic: Diagnostic, options: Options, workspace: Workspace
    ) -> tuple[Fix, ...]:
        """The verified fixes of one diagnostic, best first."""

    def fix_all(
        self, name: str, text: str, language: str, options: Options, workspace: Workspace, unsafe: bool
    ) -> tuple[Edit, ...]:
        """One minimal list of edits."""

    def hover(self, analysis: Analysis, offset: int, name: str) -> HoverText | None:
        """What is said of the word at an offset."""

    def resolved(self, report: LaunchReport) -> str:
        """The configuration a launch will run with, as Markdown."""


class RealEngine:
    """spec_lsp.analysis."""

    def new_cache(self) -> Any:
        from spec_lsp.analysis import Cache

        return Cache()

    def analyse(
        self, name: str, text: str, language: str, options: Options, workspace: Workspace, cache: Any
    ) -> Analysis:
        from spec_lsp.analysis import analyse, read_document

        return analyse(read_document(name, text, workspace, language), options, workspace, cache)

    def fixes(
        self, analysis: Analysis, diagnostic: Diagnostic, options: Options, workspace: Workspace
    ) -> tuple[Fix, ...]:
        from spec_lsp.analysis import fixes_for

        return fixes_for(analysis, diagnostic, options, workspace)

    def fix_all(
        self, name: str, text: str, language: str, options: Options, workspace: Workspace, unsafe: bool
    ) -> tuple[Edit, ...]:
        from spec_lsp.analysis import fix_all

        return fix_all(name, text, options, workspace, unsafe=unsafe, language=language)

    def hover(self, analysis: Analysis, offset: int, name: str) -> HoverText | None:
        from spec_lsp.analysis.hover import hover

        return hover(analysis, offset, name)

    def resolved(self, report: LaunchReport) -> str:
        from spec_lsp.analysis.hover import resolved_text

        return resolved_text(report)
