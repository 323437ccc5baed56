"""Quick fixes of diagnostics, "ignore here", and `source.fixAll.spec-lsp`.

A diagnostic's `data` identifies the finding. It is looked up in the analysis of the current text, so an action is never stale: a finding
that is gone has no fix, and every edit carries the version that it applies to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from spec_lsp.server.features.diagnostics import Reporter
from spec_lsp.server.features.edits import workspace_edit
from spec_lsp.server.features.ignoring import NOT_IGNORED, ignore_here, ignore_in_file
from spec_lsp.server.features.verifying import OPEN_REPORT
from spec_lsp.server.protocol import ContentModified
from spec_lsp.server.tolerance import THOSE_IN_RANGE
from spec_lsp.server.uris import name_of

if TYPE_CHECKING:
    from spec_lsp.analysis.report import Analysis, Diagnostic, Fix
    from spec_lsp.server.host import Host
    from spec_lsp.server.session import Session
    from spec_lsp.syntax.launch import Edit

QUICKFIX = "quickfix"
FIX_ALL = "source.fixAll.spec-lsp"
APPLY = "spec-lsp.applyEdit"
IGNORE = "Ignore `"
"""How the titles of actions that silence a finding begin: they come after repairs."""


class CodeActions:
    """Makes code actions of a session's documents."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._fixes: dict[tuple[str, int, str], tuple[Fix, ...]] = {}
        """Verified fixes, by document, analysis and finding."""

    async def actions(self, params: types.CodeActionParams) -> list[dict[str, Any]]:
        """The answer to `textDocument/codeAction`. Raises ContentModified when the text changes meanwhile."""
        await self._session.ready()
        name = name_of(params.text_document.uri)
        text = self._session.text(name)
        if text is None:
            return []
        only = params.context.only or None
        chosen = self._chosen(name, params)
        steps: list[Callable[[], list[dict[str, Any]]]] = []
        if _wanted(QUICKFIX, only):
            steps += [partial(self._quick_fixes, *one) for one in chosen]
        if _wanted(FIX_ALL, only):
            steps.append(partial(self._fix_all_if_wanted, name, chosen, explicit=only is not None))
        edits = text.edits
        actions: list[dict[str, Any]] = []
        for step in steps:
            actions += await self._session.work(name, step)
            if text.edits != edits or self._session.text(name) is not text:
                raise ContentModified
        if _wanted(QUICKFIX, only) and self._session.client.shows_documents:
            actions += self._open_report(name, params)
        actions.sort(key=lambda action: (not action.get("isPreferred", False), action["title"].startswith(IGNORE)))
        if self._session.client.action_literals:
            return actions
        commands = [action["command"] for action in actions if "command" in action]
        if not self._session.client.applies_edits:
            return commands
        return [_as_command(action, name, edits) for action in actions if action.get("edit")] + commands

    def still_fits(self, name: str, edits: int) -> bool:
        """Whether a document is unchanged since it had this number of edits."""
        text = self._session.text(name)
        return text is not None and text.edits == edits

    async def resolve(self, data: Any) -> dict[str, Any] | None:
        """The edit of an action that was sent with this data and without its edit; None if there is nothing to resolve.

        Raises ContentModified when the finding is gone.
        """
        if not isinstance(data, dict) or not isinstance(data.get("document"), str):
            return None
        name = data["document"]

        def make() -> tuple[Edit, ...]:
            if data.get("fixAll"):
                return self._fix_all_edits(name)
            return self._ignore_edits(name, str(data.get("ignore")), whole_file=data.get("wholeFile") is True)

        edits = await self._session.work(name, make)
        edit = workspace_edit(self._session, edits) if edits else None
        if edit is None:
            raise ContentModified
        return edit

    # quick fixes

    def _chosen(self, name: str, params: types.CodeActionParams) -> list[tuple[Any, Analysis, Diagnostic]]:
        """The findings to offer actions for: the client's diagnostic, the analysis that it comes from, and the finding there.

        If the client names no diagnostics, those in the range are meant.
        """
        if any(shown.data == THOSE_IN_RANGE["data"] for shown in params.context.diagnostics):
            return list(Reporter(self._session).found(name, lambda told: _meet(told, params.range)))
        chosen: list[tuple[Any, Analysis, Diagnostic]] = []
        for shown in params.context.diagnostics:
            found = self._by_data(shown.data) or self._by_place(name, shown)
            if found is not None:
                chosen.append((shown, *found))
        return chosen

    def _by_data(self, data: Any) -> tuple[Analysis, Diagnostic] | None:
        if not isinstance(data, dict) or not isinstance(data.get("document"), str):
            return None
        analysis = self._session.analysis(data["document"])
        found = next((d for d in analysis.diagnostics if d.key == data.get("key")), None) if analysis else None
        return (analysis, found) if analysis and found else None

    def _by_place(self, name: str, shown: types.Diagnostic) -> tuple[Analysis, Diagnostic] | None:
        """For clients that do not send `data` back, or not even the source (ALE): rule and place identify the finding."""
        if shown.data is not None or shown.source not in (None, "spec-lsp"):
            return None
        analysis, lines = self._session.analysis(name), self._session.lines(name)
        if analysis is None or lines is None:
            return None
        at = (shown.range.start.line, shown.range.start.character)
        for diagnostic in analysis.diagnostics:
            if diagnostic.rule.name == shown.code and diagnostic.place.document == name:
                start = lines.position(diagnostic.place.start)
                if (start["line"], start["character"]) == at:
                    return analysis, diagnostic
        return None

    def _quick_fixes(self, shown: Any, analysis: Analysis, diagnostic: Diagnostic) -> list[dict[str, Any]]:
        actions = []
        for fix in self._fixes_of(analysis, diagnostic):
            edit = workspace_edit(self._session, fix.edits)
            if edit is not None:
                action = {"title": fix.title, "kind": QUICKFIX, "diagnostics": [shown], "edit": edit}
                actions.append({**action, "isPreferred": True} if fix.preferred else action)
        return actions + self._ignore(shown, analysis, diagnostic)

    def _fixes_of(self, analysis: Analysis, diagnostic: Diagnostic) -> tuple[Fix, ...]:
        name = analysis.document.name
        key = (name, self._session.stamp(name), diagnostic.key)
        if key not in self._fixes:
            if len(self._fixes) > 256:
                self._fixes.clear()
            scope = self._session.scope(name)
            self._fixes[key] = self._session.engine.fixes(
                analysis, diagnostic, scope.options, scope.workspace, self._session.cache
            )
        return self._fixes[key]

    # ignore here

    def _ignore(self, shown: Any, analysis: Analysis, diagnostic: Diagnostic) -> list[dict[str, Any]]:
        if diagnostic.rule.name in NOT_IGNORED:
            return []
        name = analysis.document.name
        actions: list[dict[str, Any]] = []
        for where, whole_file in (("here", False), ("in this file", True)):
            action: dict[str, Any] = {
                "title": f"{IGNORE}{diagnostic.rule.name}` {where}",
                "kind": QUICKFIX,
                "diagnostics": [shown],
            }
            if self._session.client.resolves_edits:
                data = {"document": name, "ignore": diagnostic.key, "wholeFile": whole_file}
                actions.append({**action, "data": data})
                continue
            edits = self._ignore_edits(name, diagnostic.key, whole_file=whole_file)
            edit = workspace_edit(self._session, edits) if edits else None
            if edit and any(edit.values()) and edit not in [a["edit"] for a in actions]:
                actions.append({**action, "edit": edit})
        return actions[::-1] if _is_ignored_elsewhere(analysis, diagnostic) else actions

    def _ignore_edits(self, name: str, key: str, *, whole_file: bool) -> tuple[Edit, ...]:
        analysis, text = self._session.analysis(name), self._session.text(name)
        diagnostic = next((d for d in analysis.diagnostics if d.key == key), None) if analysis else None
        if analysis is None or text is None or diagnostic is None:
            return ()
        ignore = ignore_in_file if whole_file else ignore_here
        return ignore(self._session, analysis, diagnostic, text)

    # disagreements with the installed SGLang

    def _open_report(self, name: str, params: types.CodeActionParams) -> list[dict[str, Any]]:
        """Actions that open the report of what the installed SGLang and spec-lsp say otherwise."""
        reports = self._session.reports.get(name, {})
        shown = [d for d in params.context.diagnostics if d.source == "sglang" and d.message in reports]
        title = "Open a report of this disagreement"
        return [
            {
                "title": title,
                "kind": QUICKFIX,
                "diagnostics": [one],
                "command": {
                    "title": title,
                    "command": OPEN_REPORT,
                    "arguments": [params.text_document.uri, one.message],
                },
            }
            for one in shown
        ]

    # fix all

    def _goes_with_all(self, name: str, analysis: Analysis, diagnostic: Diagnostic) -> bool:
        """Whether fix-all would repair this finding: it is not offered in a menu where it would do nothing."""
        scope = self._session.scope(name)
        allowed = ("safe", "unsafe") if scope.settings.unsafe_fixes else ("safe",)
        return any(fix.preferred and fix.applicability in allowed for fix in self._fixes_of(analysis, diagnostic)[:1])

    def _fix_all_if_wanted(
        self, name: str, chosen: Sequence[tuple[Any, Analysis, Diagnostic]], *, explicit: bool
    ) -> list[dict[str, Any]]:
        wanted = explicit or any(self._goes_with_all(name, a, d) for _, a, d in chosen)
        return self._fix_all(name, explicit=explicit) if wanted else []

    def _fix_all(self, name: str, *, explicit: bool) -> list[dict[str, Any]]:
        analysis = self._session.analysis(name)
        if analysis is None or not analysis.diagnostics:
            return []
        action: dict[str, Any] = {"title": "Fix all spec-lsp problems that have a safe fix", "kind": FIX_ALL}
        if self._session.scope(name).settings.unsafe_fixes:
            action["title"] = "Fix all spec-lsp problems"
        if self._session.client.resolves_edits and not explicit:
            return [{**action, "data": {"document": name, "fixAll": True}}]
        edits = self._fix_all_edits(name)
        edit = workspace_edit(self._session, edits) if edits else None
        return [{**action, "edit": edit}] if edit else []

    def _fix_all_edits(self, name: str) -> tuple[Edit, ...]:
        text = self._session.text(name)
        if text is None:
            return ()
        scope = self._session.scope(name)
        unsafe = scope.settings.unsafe_fixes
        return self._session.engine.fix_all(name, text.text, text.language, scope.options, scope.workspace, unsafe)


def _is_ignored_elsewhere(analysis: Analysis, diagnostic: Diagnostic) -> bool:
    """Whether a comment in the document already silences the rule at another place: then the whole file is likely meant."""
    return any(f"[{diagnostic.rule.name}]" in directive.text for directive in analysis.document.directives)


def _as_command(action: dict[str, Any], name: str, edits: int) -> dict[str, Any]:
    """An action for a client that supports only commands."""
    return {"title": action["title"], "command": APPLY, "arguments": [action["edit"], name, edits]}


def _meet(found: dict[str, Any], asked: types.Range) -> bool:
    """Whether two ranges share a character or an end."""
    start, end = ((found[at]["line"], found[at]["character"]) for at in ("start", "end"))
    return start <= (asked.end.line, asked.end.character) and (asked.start.line, asked.start.character) <= end


def _wanted(kind: str, only: Iterable[Any] | None) -> bool:
    """Whether the client asks for this kind: for all kinds, for this one, or for one that contains it."""
    if only is None:
        return True
    names = [str(getattr(o, "value", o)) for o in only]
    return any(not name or kind == name or kind.startswith(name + ".") for name in names)


def register(ls: Host) -> dict[str, Any]:
    actions = CodeActions(ls.session)

    @ls.feature(types.TEXT_DOCUMENT_CODE_ACTION)
    async def code_action(params: types.CodeActionParams) -> list[dict[str, Any]]:
        return await actions.actions(params)

    if ls.client.applies_edits and not ls.client.action_literals:

        @ls.command(APPLY)
        async def apply(edit: Any, name: str, edits: int) -> None:
            """Have the client make an edit, unless the document has changed meanwhile."""
            if not actions.still_fits(name, edits):
                raise ContentModified
            params = ls.wire.structured({"edit": edit}, types.ApplyWorkspaceEditParams)
            await ls.ask(types.WORKSPACE_APPLY_EDIT, params)

    provider: dict[str, Any] = {"codeActionKinds": [QUICKFIX, FIX_ALL]}
    if ls.client.resolves_edits:

        @ls.feature(types.CODE_ACTION_RESOLVE)
        async def resolve(params: types.CodeAction) -> dict[str, Any]:
            edit = await actions.resolve(params.data)
            return {**ls.wire.plain(params), **({"edit": edit} if edit else {})}

        provider["resolveProvider"] = True
    return {"codeActionProvider": provider}
