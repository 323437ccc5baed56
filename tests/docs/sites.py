"""The sites of SGLang's source that can end a launch: every `raise` and `assert`, told apart without copying a line of it.

A site is named by its file, its function, the exception and its place among the function's sites; `sha1` is of its source
and of the conditions it stands under, so that a change is seen.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Site:
    """One `raise` or `assert`. `file` is relative to sglang/srt; `nth` counts the sites of the function from 1; `line` is for reading only.

    `about` says what a model's class refuses, where it is one of what they all do: "heads" that ranks do not divide, "experts" fewer
    than ranks.
    """

    file: str
    function: str
    raises: str
    nth: int
    sha1: str
    line: int
    about: str = ""


def sites_of(root: Path, files: Iterable[str]) -> Iterator[Site]:
    """The sites of files below sglang/srt. A pattern ("arg_groups/*.py") stands for all it matches, a missing file for none."""
    for pattern in files:
        for path in sorted(root.glob(pattern)):
            yield from sites_in(path.read_text("utf-8-sig"), path.relative_to(root).as_posix())


def sites_in(source: str, file: str) -> Iterator[Site]:
    """The sites of one file's text, top to bottom."""
    counts: Counter[str] = Counter()
    lines = [line.encode() for line in source.split("\n")]
    for function, guards, node in _walk(ast.parse(source).body, "", ()):
        counts[function] += 1
        said = "\n".join("".join(_segment(lines, part).split()) for part in (*guards, node))
        digest = sha1(said.encode()).hexdigest()[:10]
        yield Site(file, function, _exception(node), counts[function], digest, node.lineno, _about(file, said))


def _about(file: str, said: str) -> str:
    """What a site of models/ is about, by its conditions without blanks."""
    if not file.startswith("models/"):
        return ""
    if "%" in said and "head" in said.lower() and re.search(r"(tp|world|shard)\w*(==|!=|\b)", said):
        return "heads"
    return "experts" if re.search(r"tp_size>[\w.]*experts", said) else ""


def _segment(lines: list[bytes], node: ast.AST | str) -> str:
    """A node's source; `lines` are those of the file, encoded, as columns of the parser count bytes."""
    if isinstance(node, str):
        return node
    first, last = getattr(node, "lineno", 1) - 1, (getattr(node, "end_lineno", None) or 1) - 1
    text = lines[first : last + 1]
    text[-1] = text[-1][: getattr(node, "end_col_offset", None)]
    text[0] = text[0][getattr(node, "col_offset", 0) :]
    return b"\n".join(text).decode()


def _exception(node: ast.Raise | ast.Assert) -> str:
    if isinstance(node, ast.Assert):
        return "AssertionError"
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return ast.unparse(raised) if raised is not None else "(again)"


Guards = tuple["ast.AST | str", ...]


def _walk(
    body: Iterable[ast.AST], function: str, guards: Guards
) -> Iterator[tuple[str, Guards, ast.Raise | ast.Assert]]:
    for node in body:
        match node:
            case ast.Raise() | ast.Assert():
                yield function, guards, node
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield from _walk(node.body, f"{function}.{name}" if function else name, ())
            case ast.If(test=test) | ast.While(test=test):
                yield from _walk(node.body, function, (*guards, "if", test))
                yield from _walk(node.orelse, function, (*guards, "else", test))
            case ast.For(target=target, iter=iterated) | ast.AsyncFor(target=target, iter=iterated):
                yield from _walk(node.body, function, (*guards, "for", target, iterated))
                yield from _walk(node.orelse, function, guards)
            case ast.Match(subject=subject):
                for case in node.cases:
                    yield from _walk(case.body, function, (*guards, "match", subject, case.pattern))
            case ast.Try():
                yield from _walk(node.body, function, guards)
                for handler in node.handlers:
                    caught: Guards = ("except", handler.type) if handler.type else ("except",)
                    yield from _walk(handler.body, function, (*guards, *caught))
                yield from _walk([*node.orelse, *node.finalbody], function, guards)
            case ast.With() | ast.AsyncWith():
                yield from _walk(node.body, function, guards)
            case _:
                pass
