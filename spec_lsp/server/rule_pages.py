"""Links to the pages of rules: the page of all rules that comes with spec-lsp, so that links work without a network."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import spec_lsp
from spec_lsp.expressions import expression
from spec_lsp.server.uris import uri_of

_HEADING = expression(r"^### (\S+)\s*$")


def rule_url(rule: str) -> str | None:
    """The URI of a rule's page, by the rule's name; None if there is none. Its fragment is a line number, as editors understand it."""
    return _urls().get(rule)


@cache
def _urls() -> dict[str, str]:
    package = Path(spec_lsp.__file__).parent
    page = next((p for p in (package / "docs" / "rules.md", package.parent / "docs" / "rules.md") if p.is_file()), None)
    if page is None:
        return {}
    lines = page.read_text("utf-8").split("\n")
    found = ((number, _HEADING.match(line)) for number, line in enumerate(lines, 1))
    return {heading[1]: f"{uri_of(str(page))}#L{number}" for number, heading in found if heading is not None}
