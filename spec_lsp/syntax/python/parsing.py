"""Parses Python with the standard `ast`, also while it is being typed: what cannot be parsed is left out, statement by statement."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator

from spec_lsp.syntax.word import Place

LINE_END = re.compile(r"\r\n|\n|\r")
TOP_STATEMENT = re.compile(r"^(?![ \t\r\n#)\]}]|(?:else|elif|except|finally|case)\b)(?:(?<!\n@)|(?=@))", re.M)
TOKEN = re.compile(
    r"#[^\n]*|[rRbBuUfF]{0,2}(\"\"\"|''')(?:\\.|(?!\1).)*(?:\1|\Z)|[rRbBuUfF]{0,2}([\"'])(?:\\.|(?!\2)[^\\\n])*(?:\2|(?=\n)|\Z)|[()\[\]{}]",
    re.S,
)
CLOSING = {"(": ")", "[": "]", "{": "}"}
MARK = "\ufeff"
"""A byte order mark, which Python itself leaves out."""
MAX_LENGTH = 3_000_000
MAX_SHRINKS = 40


class Positions:
    """Turns the lines and byte columns of `ast` into characters of the text."""

    def __init__(self, document: str, text: str) -> None:
        self.document = document
        self.text = text
        self.ascii = text.isascii()
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
    """The statements at the top of a text. Never raises."""
    if len(text) > MAX_LENGTH:
        return []
    whole = parsed(text.removeprefix(MARK))
    if whole is not None:
        return whole
    found: list[ast.stmt] = []
    for start, end in _chunks(text):
        chunk = text[start:end]
        line = positions.line_of(start)
        for attempt in _attempts(chunk):
            tree = parsed("\n" * line + attempt)
            if tree is not None:
                found += tree
                break
    return found


def parsed(text: str) -> list[ast.stmt] | None:
    """The statements of a text, None where Python refuses it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, SystemError):
        return None


def _chunks(text: str) -> Iterator[tuple[int, int]]:
    """Stretches that each begin where a statement at the top of a file may begin."""
    starts = [m.start() for m in TOP_STATEMENT.finditer(text)]
    starts = [s for i, s in enumerate(starts) if i == 0 or not text.startswith("@", starts[i - 1])]
    yield from zip(starts, [*starts[1:], len(text)], strict=False)  # without a start there is no stretch


def _attempts(chunk: str) -> Iterator[str]:
    """The chunk, and what is left of it when what is half typed is closed or taken away."""
    yield chunk
    body = chunk.rstrip()
    closers = _missing_closers(body)
    if closers:
        yield body + closers
        for cut in [m.start() for m in reversed(list(re.finditer(r",", body)))][:MAX_SHRINKS]:
            kept = body[:cut]
            yield kept + _missing_closers(kept)
    lines = chunk.split("\n")
    for count in range(1, min(len(lines), MAX_SHRINKS)):
        kept = "\n".join(lines[:-count])
        if kept.strip():
            yield kept + _missing_closers(kept)


def _missing_closers(text: str) -> str:
    """What closes the brackets, and the string, that a text leaves open."""
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
