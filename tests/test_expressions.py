"""Expressions that are compiled when they are first used are those that re compiles at once."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import spec_lsp
from spec_lsp.expressions import expression

METHODS = {
    "findall": ("a1 b22",),
    "finditer": ("a1 b22",),
    "fullmatch": ("b22",),
    "match": ("a1 b22",),
    "search": ("a1 b22", 2),
    "split": ("a1 b22 c",),
    "sub": (r"<\1>", "a1 b22"),
    "subn": (r"<\1>", "a1 b22"),
}


@pytest.mark.parametrize("method", METHODS)
def test_methods_are_those_of_a_pattern(method: str) -> None:
    ours, plain = expression(r"[a-z](\d+)", re.I), re.compile(r"[a-z](\d+)", re.I)
    assert _plain(getattr(ours, method)(*METHODS[method])) == _plain(getattr(plain, method)(*METHODS[method]))
    assert (ours.pattern, ours.flags) == (plain.pattern, plain.flags)


def _plain(found: object) -> object:
    """What can be compared of a result."""
    if isinstance(found, re.Match):
        return found.span(), found.groups()
    return [m.span() for m in found] if hasattr(found, "__next__") else found


def test_nothing_is_compiled_before_it_is_used() -> None:
    wrong = expression("(")
    assert wrong.pattern == "("
    with pytest.raises(re.error):
        wrong.search("")


def test_no_module_compiles_an_expression_when_it_is_imported() -> None:
    root = Path(spec_lsp.__file__).parent
    eager = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in root.rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
        for call in ast.walk(node.value)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "re.compile"
    ]
    assert eager == []
