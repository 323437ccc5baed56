"""Parses Python with the standard `ast`, even while it is being typed: statements that cannot be parsed are left out."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator

from spec_lsp.expressions import expression
from spec_lsp.syntax.word import Place

LINE_END = expression(r"\r\n|\n|\r")
TOP_STATEMENT = expression(r"^(?![ \t\r\n#)\]}]|(?:else|elif|except|finally|case)\b)(?:(?<!\n@)|(?=@))", re.M)
TOKEN = expression(
    r"#[^\n]*|[rRbBuUfF]{0,2}(\"\"\"|''')(?:\\.|(?!\1).)*(?:\1|\Z)|[rRbBuUfF]{0,2}([\"'])(?:\\.|(?!\2)[^\\\n])*(?:\2|(?=\n)|\Z)|[()\[\]{}]",
    re.S,
)
CLOSING = {"(": ")", "[": "]", "{": "}"}
MARK = "\ufeff"
"""A byte order mark, which Python itself leaves out."""
MAX_LENGTH = 3_000_000
BUDGET = 1_000_000
"""The most characters that are parsed to repair a file that does not parse."""
MAX_MENDS = 8
MAX_CUTS = 3


class Positions:
    """Converts the lines and byte columns of `ast` to characters of the text."""

    def __init__(self, document: str, text: str) -> None:
        self.document = document
        self.text = text
        self.ascii = text.isascii()
        self.spans: dict[ast.AST, tuple[int, int]] = {}
        self.starts = [len(text) - len(text.removeprefix(MARK)), *(m.end() for m in LINE_END.finditer(text))]

    def offset(self, line: int, column: int) -> int:
        if line > len(self.starts):
            return len(self.text)
        start = self.starts[line - 1]
        if self.ascii:
            return min(start + column, len(self.text))
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        content = self.text[start:end]
        if content.isascii():
            return min(start + column, len(self.text))
        return start + len(content.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> tuple[int, int]:
        found = self.spans.get(node)
        if found is None:
            found = self.spans[node] = self._span(node)
        return found

    def _span(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> tuple[int, int]:
        start = self.offset(node.lineno, node.col_offset)
        if node.end_lineno is None or node.end_col_offset is None:
            return start, start
        return start, max(start, self.offset(node.end_lineno, node.end_col_offset))

    def place(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> Place:
        return Place(self.document, *self.span(node))

    def line_of(self, offset: int) -> int:
        """The line an offset is in, counted from 0."""
        return bisect_right(self.starts, offset) - 1


def statements(text: str, positions: Positions) -> list[ast.stmt]:
    """The top-level statements of a text. Never raises."""
    if len(text) > MAX_LENGTH:
        return []
    whole = parsed(text.removeprefix(MARK))
    if whole is not None:
        return whole
    found: list[ast.stmt] = []
    left = BUDGET
    for start, end in _chunks(text):
        body, used = _mended(text[start:end], positions.line_of(start), left)
        found += body
        left -= used
    return found


def parsed(text: str) -> list[ast.stmt] | None:
    """The statements of a text, None if Python refuses it."""
    return _parsed(text)[0]


def _parsed(text: str) -> tuple[list[ast.stmt] | None, int]:
    """The statements of a text, or None and the line (from 1) at which Python fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text).body, 0
    except SyntaxError as error:
        return None, error.lineno or 1
    except (ValueError, RecursionError, MemoryError, OverflowError, SystemError):
        return None, 1


def _chunks(text: str) -> Iterator[tuple[int, int]]:
    """Parts of a text that each begin where a top-level statement may begin."""
    starts = [m.start() for m in TOP_STATEMENT.finditer(text)]
    starts = [s for i, s in enumerate(starts) if i == 0 or not text.startswith("@", starts[i - 1])]
    yield from zip(starts, [*starts[1:], len(text)], strict=False)  # without a beginning there is no part


def _mended(chunk: str, line: int, budget: int) -> tuple[list[ast.stmt], int]:
    """The statements of a part that starts at a line (from 0), in which incomplete code is closed or removed, and how many characters were
    parsed for that. Remaining characters keep their line and column."""
    padding = "\n" * line
    used = 0
    lines = chunk.split("\n")
    for _ in range(MAX_MENDS):
        used += sum(map(len, lines)) + len(lines)
        body, number = _parsed(padding + "\n".join(lines))
        if body is not None:
            return body, used
        at = min(max(number - 1 - line, 0), len(lines) - 1)
        best, farthest = lines, -1
        for candidate in _without(lines, at, _end_of(lines, at)):
            if used > budget:
                return [], used
            used += len(chunk)
            body, again = _parsed(padding + "\n".join(candidate))
            if body is not None:
                return body, used
            if again > farthest:
                best, farthest = candidate, again
        lines = best
    return [], used


def _end_of(lines: list[str], at: int) -> int:
    """The line after the statement at a line, by its indentation."""
    indent = _indent(lines[at])
    end = at + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > indent):
        end += 1
    return end


def _without(lines: list[str], at: int, end: int) -> Iterator[list[str]]:
    """The lines, in which the statement at some lines is closed, cut at a comma, or replaced by one without effect."""
    statement = "\n".join(lines[at:end]).rstrip()
    behind = lines[end:]
    gap = end - at

    def instead(text: str) -> list[str]:
        new = text.split("\n")
        return [*lines[:at], *new, *[""] * (gap - len(new)), *behind]

    if closers := missing_closers(statement):
        yield instead(statement + closers)
        for cut in [m.start() for m in re.finditer(",", statement)][: -MAX_CUTS - 1 : -1]:
            yield instead(statement[:cut] + missing_closers(statement[:cut]))
    yield instead(lines[at][: _indent(lines[at])] + "pass")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def missing_closers(text: str) -> str:
    """What closes the brackets and the string that a text leaves open."""
    stack: list[str] = []
    quote = ""
    for m in TOKEN.finditer(text):
        token = m.group()
        if token in CLOSING:
            stack.append(CLOSING[token])
        elif token in ")]}" and len(token) == 1:
            if stack and stack[-1] == token:
                stack.pop()
        elif (
            m.group(1)
            and m.end() == len(text)
            and (len(token.lstrip("rRbBuUfF")) < 6 or not token.endswith(m.group(1)))
        ):
            quote = m.group(1)
        elif (
            m.group(2)
            and m.end() == len(text)
            and (len(token.lstrip("rRbBuUfF")) < 2 or not token.endswith(m.group(2)))
        ):
            quote = m.group(2)
    return quote + "".join(reversed(stack))
