"""Reads from the source of a test which value it is about, and for which values it holds."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from spec_lsp.records import NamedTuple
from spec_lsp.syntax.python.ways import About

COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: lambda a, b: bool(a == b),
    ast.NotEq: lambda a, b: bool(a != b),
    ast.Lt: lambda a, b: bool(a < b),
    ast.LtE: lambda a, b: bool(a <= b),
    ast.Gt: lambda a, b: bool(a > b),
    ast.GtE: lambda a, b: bool(a >= b),
    ast.Is: lambda a, b: bool(a is b if b is None or isinstance(b, bool) else a == b),
    ast.IsNot: lambda a, b: not bool(a is b if b is None or isinstance(b, bool) else a == b),
    ast.In: lambda a, b: bool(a in b),
    ast.NotIn: lambda a, b: bool(a not in b),
}
CONTRARY: dict[type, type] = {ast.NotEq: ast.Eq, ast.NotIn: ast.In, ast.IsNot: ast.Is, ast.GtE: ast.Lt, ast.LtE: ast.Gt}
OUTSIDE = "\0anything else"
MAX_LABEL = 60


class Asked(NamedTuple):
    """A test in one form for all notations and its opposite (`turned`): its subject, and the values for which it holds."""

    subject: ast.expr
    form: str
    turned: bool
    holds: Callable[[Any], bool | None]
    samples: tuple[Any, ...]
    written: str
    """The source of the subject, in one form."""

    def about(self, subject: object) -> About:
        """The source of the question."""
        return About(subject, _contrary(self.holds) if self.turned else self.holds, self.samples)


def asked(node: ast.expr) -> Asked:
    """The question of a test that is not a `not`, `and` or `or`."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        known, against = _constant(node.comparators[0])
        operator = type(node.ops[0])
        if known:
            turned = operator in CONTRARY
            operator = CONTRARY.get(operator, operator)
            form = f"{operator.__name__} {against!r}"
            return Asked(node.left, form, turned, _holds(operator, against), _samples(against), ast.dump(node.left))
        contrary = CONTRARY.get(operator)
        if contrary is not None:
            node = ast.copy_location(ast.Compare(node.left, [contrary()], node.comparators), node)
            return Asked(node, "", True, bool, (True, False), ast.dump(node))
    return Asked(node, "", False, bool, (True, False, None), ast.dump(node))


def compared(operator: type, left: Any, right: Any) -> bool | None:
    """`left operator right`; None if Python refuses it."""
    try:
        return COMPARISONS[operator](left, right)
    except (TypeError, ValueError):
        return None


def shown(source: str) -> str:
    """The source of a test on one line, shortened for people."""
    text = " ".join(source.split())
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"


def _holds(operator: type, against: Any) -> Callable[[Any], bool | None]:
    return lambda value: compared(operator, value, against)


def _contrary(holds: Callable[[Any], bool | None]) -> Callable[[Any], bool | None]:
    return lambda value: None if (found := holds(value)) is None else not found


def _samples(against: Any) -> tuple[Any, ...]:
    if isinstance(against, bool) or against is None:
        return (None, True, False, OUTSIDE)
    if isinstance(against, int | float):
        return (against - 1, against, against + 1, None, 0)
    if isinstance(against, list | tuple):
        return (*against, None, OUTSIDE, "")
    return (against, None, OUTSIDE, "")


def _constant(node: ast.expr) -> tuple[bool, Any]:
    try:
        return True, ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None
