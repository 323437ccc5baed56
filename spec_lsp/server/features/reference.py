"""Reference for clients that offer it to people: releases, hardware, rules, and explanations of logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spec_lsp.server.host import Host

CHOICES = "spec-lsp.choices"
RULE_PAGE = "spec-lsp.rulePage"
EXPLAIN_LOG = "spec-lsp.explainLog"


def register(ls: Host) -> dict[str, Any]:
    engine = ls.session.engine

    @ls.command(CHOICES)
    def choices() -> dict[str, list[dict[str, str]]]:
        """The releases (newest first), hardware and rules that settings may name."""
        return engine.choices()

    @ls.command(RULE_PAGE)
    def rule_page(name: str) -> str | None:
        """A rule, named by name or code, as Markdown; None if there is none."""
        return engine.rule_page(name)

    @ls.command(EXPLAIN_LOG)
    def explain_log(text: str, *target: Any) -> list[dict[str, Any]]:
        """The refusals in what a server printed: where SGLang stopped, the rules that report them, and the repaired launch."""
        explained = engine.explain_log(str(text), next((t for t in target if isinstance(t, dict)), {}))
        return [
            {
                "where": one.crash.where,
                "exception": one.crash.exception,
                "message": one.crash.message,
                "sure": one.sure,
                "rules": [{"name": r.name, "code": r.code, "summary": r.summary} for r in one.rules],
                "findings": [
                    {"message": d.message, "fixes": [fix.title for fix in fixes]} for d, fixes in one.findings
                ],
                "launch": one.launch,
                "repaired": one.repaired,
            }
            for one in explained
        ]

    return {}
