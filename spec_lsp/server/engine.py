"""The server's interface to analysis. Imported late: the client gets its answer to `initialize` before parsers, catalogs and rules are
loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spec_lsp.analysis.comparing import Comparison
    from spec_lsp.analysis.completion import Completion
    from spec_lsp.analysis.crash_explained import Explained
    from spec_lsp.analysis.hints import Hint, Kind
    from spec_lsp.analysis.hover import HoverText
    from spec_lsp.analysis.inputs import Options, Workspace, World
    from spec_lsp.analysis.navigation import Link, Origin
    from spec_lsp.analysis.report import Analysis, Diagnostic, Fix, LaunchReport
    from spec_lsp.analysis.resolved import Target
    from spec_lsp.syntax.launch import Edit


class Engine(Protocol):
    """What the server needs of analysis; tests replace it by a fake."""

    def new_cache(self) -> Any:
        """A cache of verdicts for one session, with `clear()`."""

    def analyse(
        self, name: str, text: str, language: str, options: Options, workspace: Workspace, cache: Any
    ) -> Analysis:
        """The analysis of one document."""

    def fixes(
        self, analysis: Analysis, diagnostic: Diagnostic, options: Options, workspace: Workspace, cache: Any
    ) -> tuple[Fix, ...]:
        """The verified fixes of one diagnostic, best first."""

    def fix_all(
        self, name: str, text: str, language: str, options: Options, workspace: Workspace, unsafe: bool
    ) -> tuple[Edit, ...]:
        """One minimal list of edits."""

    def hover(self, analysis: Analysis, offset: int, name: str) -> HoverText | None:
        """The hover text at an offset."""

    def resolved(self, report: LaunchReport, *, links: bool) -> tuple[str, Sequence[Target]]:
        """The configuration that a launch will run with, as Markdown; in one with links `#n` leads to the n-th of the targets."""

    def assumed(self, report: LaunchReport) -> str:
        """The release and hardware that a launch is judged for, in a few words."""

    def any_gpu(self, report: LaunchReport) -> str:
        """A name for the hardware if any is possible ("any GPU"); empty if there is only one."""

    def lens(self, report: LaunchReport) -> str:
        """A lens's title."""

    def likeliest(self, report: LaunchReport) -> World:
        """The world for which that configuration is computed."""

    def compare(
        self, analysis: Analysis, options: Options, workspace: Workspace, targets: Sequence[Mapping[str, Any]]
    ) -> tuple[Comparison, ...]:
        """Each launch on each target, written as in the setting `targets`; unknown names are left open."""

    def explain_log(self, text: str, target: Mapping[str, Any]) -> list[Explained]:
        """The refusals in what a server printed, on a target written as in the setting `targets`, if the log names none."""

    def rule_page(self, name: str) -> str | None:
        """The complete page about a rule, by name or code, as Markdown; None if there is no such rule."""

    def choices(self) -> dict[str, list[dict[str, str]]]:
        """The releases (newest first), hardware and rules that settings may name."""

    def complete(self, analysis: Analysis, offset: int, options: Options, workspace: Workspace) -> Completion | None:
        """What may be typed at an offset."""

    def complete_settings(self, name: str, text: str, offset: int) -> Completion | None:
        """What may be typed at an offset of a file with settings."""

    def document(self, about: Sequence[str]) -> str:
        """The documentation of an item of a completion, as Markdown."""

    def hints(self, analysis: Analysis, start: int, end: int, kinds: frozenset[Kind]) -> list[Hint]:
        """The inlay hints of the launches in a range of characters."""

    def definitions(self, analysis: Analysis, offset: int, name: str, workspace: Workspace) -> list[Origin]:
        """Where the text at an offset comes from."""

    def links(self, analysis: Analysis, workspace: Workspace) -> list[Link]:
        """The links in a document."""


class RealEngine:
    """The implementation by `spec_lsp.analysis`."""

    def new_cache(self) -> Any:
        from spec_lsp.analysis import Cache

        return Cache()

    def analyse(
        self, name: str, text: str, language: str, options: Options, workspace: Workspace, cache: Any
    ) -> Analysis:
        from spec_lsp.analysis import analyse, read_document

        return analyse(read_document(name, text, workspace, language), options, workspace, cache)

    def fixes(
        self, analysis: Analysis, diagnostic: Diagnostic, options: Options, workspace: Workspace, cache: Any
    ) -> tuple[Fix, ...]:
        from spec_lsp.analysis.fixes import fixes_for

        return fixes_for(analysis, diagnostic, options, workspace, cache)

    def fix_all(
        self, name: str, text: str, language: str, options: Options, workspace: Workspace, unsafe: bool
    ) -> tuple[Edit, ...]:
        from spec_lsp.analysis.fixes import fix_all

        return fix_all(name, text, options, workspace, unsafe=unsafe, language=language)

    def hover(self, analysis: Analysis, offset: int, name: str) -> HoverText | None:
        from spec_lsp.analysis.hover import hover

        return hover(analysis, offset, name)

    def resolved(self, report: LaunchReport, *, links: bool) -> tuple[str, Sequence[Target]]:
        from spec_lsp.analysis.resolved import Text, resolved_text

        text = Text(links=links)
        return resolved_text(report, text), text.targets

    def assumed(self, report: LaunchReport) -> str:
        from spec_lsp.analysis.hints import assumed

        return assumed(report)

    def any_gpu(self, report: LaunchReport) -> str:
        from spec_lsp.analysis.hints import any_gpu

        return any_gpu(report)

    def lens(self, report: LaunchReport) -> str:
        from spec_lsp.analysis.hints import lens

        return lens(report)

    def likeliest(self, report: LaunchReport) -> World:
        from spec_lsp.analysis.hints import likeliest

        return likeliest(report)

    def compare(
        self, analysis: Analysis, options: Options, workspace: Workspace, targets: Sequence[Mapping[str, Any]]
    ) -> tuple[Comparison, ...]:
        from spec_lsp.analysis.comparing import compare
        from spec_lsp.settings import read_target

        return compare(analysis.document, options, workspace, [read_target(target) for target in targets])

    def explain_log(self, text: str, target: Mapping[str, Any]) -> list[Explained]:
        from spec_lsp.analysis.crash import read_log
        from spec_lsp.analysis.crash_explained import explain
        from spec_lsp.settings import read_target

        named = read_target(target)
        return list(explain(read_log(text), named.release, named.hardware))

    def rule_page(self, name: str) -> str | None:
        from spec_lsp.analysis.explained import page
        from spec_lsp.analysis.rules import find_rule

        rule = find_rule(name)
        return page(rule) if rule else None

    def choices(self) -> dict[str, list[dict[str, str]]]:
        from spec_lsp.analysis.explained import severity
        from spec_lsp.analysis.rules import all_rules
        from spec_lsp.catalog.store import releases
        from spec_lsp.facts.hardware import DEVICES, FAMILIES

        hardware = [*FAMILIES.values(), *DEVICES.values()]
        return {
            "releases": [{"name": str(release)} for release in reversed(releases())],
            "hardware": [{"name": h.name, "title": h.title, "family": h.family} for h in hardware],
            "rules": [
                {"name": r.name, "code": r.code, "severity": severity(r), "summary": r.summary} for r in all_rules()
            ],
        }

    def complete(self, analysis: Analysis, offset: int, options: Options, workspace: Workspace) -> Completion | None:
        from spec_lsp.analysis.completion import complete

        return complete(analysis, offset, options, workspace)

    def complete_settings(self, name: str, text: str, offset: int) -> Completion | None:
        from spec_lsp.settings_completion import complete_settings

        return complete_settings(name, text, offset)

    def document(self, about: Sequence[str]) -> str:
        from spec_lsp.analysis.completion import document

        return document(about)

    def hints(self, analysis: Analysis, start: int, end: int, kinds: frozenset[Kind]) -> list[Hint]:
        from spec_lsp.analysis.hints import hints

        return hints(analysis, start, end, kinds)

    def definitions(self, analysis: Analysis, offset: int, name: str, workspace: Workspace) -> list[Origin]:
        from spec_lsp.analysis.navigation import definitions

        return definitions(analysis, offset, name, workspace)

    def links(self, analysis: Analysis, workspace: Workspace) -> list[Link]:
        from spec_lsp.analysis.navigation import links

        return links(analysis, workspace)
