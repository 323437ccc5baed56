"""Comments to spec-lsp: `# spec-lsp: …`."""

from __future__ import annotations

from spec_lsp.expressions import expression
from spec_lsp.syntax.launch import Directive
from spec_lsp.syntax.word import Place

MARK = "\ufeff"
"""A byte order mark."""
DIRECTIVE = expression(r"#[ \t]*spec-lsp:[ \t]*([^\r\n]*)")


def directives_in(document: str, text: str, start: int, end: int) -> list[Directive]:
    """The directives in [start, end) of a text, a range that contains only comments and blanks."""
    found = []
    for m in DIRECTIVE.finditer(text, start, end):
        own_line = begins_line(text, m.start(), " \t#")
        found.append(Directive(m.group(1).strip(), Place(document, m.start(), m.end()), own_line))
    return found


def begins_line(text: str, at: int, blanks: str = " \t") -> bool:
    """Whether an offset is preceded on its line only by blanks and, at the beginning of the text, a byte order mark."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return not line.removeprefix(MARK).strip(blanks)


def directives_of(document: str, text: str) -> tuple[Directive, ...]:
    """The directives of a text in which `#` starts a comment at the start of a line or after a blank."""
    if "spec-lsp" not in text:
        return ()
    found: list[Directive] = []
    for m in DIRECTIVE.finditer(text):
        if m.start() == 0 or text[m.start() - 1] in f" \t\n{MARK}":
            found.extend(directives_in(document, text, m.start(), m.end()))
    return tuple(found)
