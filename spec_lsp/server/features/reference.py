"""What there is to choose from and to read, for clients that let people do so: releases, hardware and rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spec_lsp.server.server import Server

CHOICES = "spec-lsp.choices"
RULE_PAGE = "spec-lsp.rulePage"


def register(ls: Server) -> dict[str, Any]:
    engine = ls.session.engine

    @ls.command(CHOICES)
    def choices() -> dict[str, list[dict[str, str]]]:
        """The releases (newest first), hardware and rules that settings may name."""
        return engine.choices()

    @ls.command(RULE_PAGE)
    def rule_page(name: str) -> str | None:
        """A rule, named by name or code, as Markdown; None if there is none."""
        return engine.rule_page(name)

    return {}
