"""Comments to spec-lsp: `# spec-lsp: …`."""

from __future__ import annotations

import re

from spec_lsp.syntax.launch import Directive
from spec_lsp.syntax.word import Place

DIRECTIVE = re.compile(r"#[ \t]*spec-lsp:[ \t]*([^\r\n]*)")


def directives_in(document: str, text: str, start: int, end: int) -> list[Directive]:
    """The directives in [start, end) of a text, a stretch that holds nothing but comments and blanks."""
    found = []
    for m in DIRECTIVE.finditer(text, start, end):
        line = text.rfind("\n", 0, m.start()) + 1
        own_line = not text[line : m.start()].strip(" \t#")
        found.append(Directive(m.group(1).strip(), Place(document, m.start(), m.end()), own_line))
    return found


def directives_of(document: str, text: str) -> tuple[Directive, ...]:
    """The directives of a text in which `#` starts a comment at the start of a line or behind a blank."""
    if "spec-lsp" not in text:
        return ()
    found: list[Directive] = []
    for m in DIRECTIVE.finditer(text):
        if m.start() == 0 or text[m.start() - 1] in " \t\n":
            found.extend(directives_in(document, text, m.start(), m.end()))
    return tuple(found)
