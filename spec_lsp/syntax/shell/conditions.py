"""Tests on known values: `[ … ]`, `[[ … ]]`. True, False, or None if that is only known when the script runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from spec_lsp.expressions import expression
from spec_lsp.syntax.shell import arithmetic
from spec_lsp.syntax.shell.ast import Both, Compare, Expression, Not, Param, WordNode
from spec_lsp.syntax.shell.expand import FROM_COMMAND_LINE, Expander
from spec_lsp.syntax.shell.patterns import matches
from spec_lsp.syntax.shell.values import FROM_ENVIRONMENT, Unset
from spec_lsp.syntax.source import Source
from spec_lsp.syntax.word import Fragment, Word, possible

NUMERIC = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}
MAX_BACKTRACKING = 500_000
SIMPLE_REGEX = expression(r"[\w\s^$.*+?|()\[\]/:,-]*\Z")


def test(expression: Expression, expander: Expander, source: Source) -> bool | None:
    """The outcome of `[[ … ]]`."""
    if isinstance(expression, Not):
        inner = test(expression.inner, expander, source)
        return None if inner is None else not inner
    if isinstance(expression, Both):
        left = test(expression.left, expander, source)
        if left is expression.either:
            return left
        right = test(expression.right, expander, source)
        if right is expression.either:
            return right
        return None if left is None or right is None else right
    return _compare(expression, expander, source)


def _compare(c: Compare, expander: Expander, source: Source) -> bool | None:
    if c.left is None:
        if c.op == "-v":
            return _is_set(expander.text(c.right, source), expander)
        if c.op in ("-z", "-n"):
            empty = nonempty(expander.scalar(c.right, source))
            return None if empty is None else empty == (c.op == "-n")
        return None
    may_be = possible(expander.scalar(c.left, source))
    if may_be:
        return _alike(_compare_text(c, text, expander, source) for text in may_be)
    return _compare_text(c, expander.text(c.left, source), expander, source)


def _alike(outcomes: Iterable[bool | None]) -> bool | None:
    """The common outcome, None if they differ."""
    found = set(outcomes)
    return next(iter(found)) if len(found) == 1 else None


def _compare_text(c: Compare, left: str | None, expander: Expander, source: Source) -> bool | None:
    """The outcome of a comparison whose left side is a text; None if unknown."""
    assert c.left is not None
    if c.op in NUMERIC:
        return _numbers(c.op, left, expander.text(c.right, source), expander)
    if c.op == "=~":
        return _regex(left, expander.text(c.right, source))
    if c.op in ("=", "==", "!="):
        pattern = expander.pattern(c.right, source)
        if left is None or pattern is None:
            return _differs_in_emptiness(c, expander, source)
        same = (
            None
            if _asks_if_sourced(expander.scalar(c.left, source), expander.scalar(c.right, source))
            else matches(left, pattern)
        )
        return None if same is None else same == (c.op != "!=")
    right = expander.text(c.right, source)
    if left is None or right is None or c.op not in ("<", ">"):
        return None
    return left < right if c.op == "<" else left > right


def _asks_if_sourced(left: Sequence[Fragment], right: Sequence[Fragment]) -> bool:
    """`$BASH_SOURCE = $0`: a script may be run or sourced."""
    return all(len(side) == 1 and side[0].fixed and side[0].place.end == 0 for side in (left, right))


def _differs_in_emptiness(c: Compare, expander: Expander, source: Source) -> bool | None:
    """`[[ $X == "" ]]` where X is known not to be empty."""
    assert c.left is not None
    if c.right.literal == "" and nonempty(expander.scalar(c.left, source)):
        return c.op == "!="
    return None


def asks_emptiness(expression: Expression) -> bool:
    """Whether a test checks if something is set or empty."""
    if isinstance(expression, Not):
        return asks_emptiness(expression.inner)
    if isinstance(expression, Both):
        return asks_emptiness(expression.left) or asks_emptiness(expression.right)
    return expression.op in ("-z", "-n", "-v") or expression.right.literal == ""


def nonempty(fragments: Sequence[Fragment]) -> bool | None:
    """Whether a string has characters. A tested variable from outside is taken to have some; the other case is a way of its own."""
    if any(f.text for f in fragments) or all(possible(fragments) or ("",)):
        return True
    unknown = [f for f in fragments if f.text is None]
    if any(f.reason in (FROM_ENVIRONMENT, FROM_COMMAND_LINE) for f in unknown):
        return True
    return None if unknown else False


def _is_set(name: str | None, expander: Expander) -> bool | None:
    if not name or not re.fullmatch(r"[A-Za-z_]\w*", name):
        return None
    return not isinstance(expander.leaf(name), Unset)


def _numbers(op: str, left: str | None, right: str | None, expander: Expander) -> bool | None:
    if left is None or right is None:
        return None
    a = arithmetic.evaluate(left, expander.number_text)
    b = arithmetic.evaluate(right, expander.number_text)
    if a is None or b is None:
        return None
    return {"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}[op]


def _regex(text: str | None, pattern: str | None) -> bool | None:
    if text is None or pattern is None or len(text) > 500 or not SIMPLE_REGEX.match(pattern):
        return None
    if backtracking(pattern, len(text)) > MAX_BACKTRACKING:
        return None
    if "[:" in pattern or re.search(r"[)*+?][*+?]|\([^)]*[*+][^)]*\)[*+]", pattern):
        return None
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return None


def backtracking(pattern: str, length: int) -> int:
    """An upper bound for the ways in which a regular expression may be tried on a text: what is repeated or optional may be tried at each
    character, and each `|` doubles the ways."""
    repeated = sum(map(pattern.count, "*+?{"))
    return int((length + 1) ** (repeated + 1)) << pattern.count("|")


def bracket(words: Sequence[Word]) -> bool | None:
    """The outcome of `[ … ]` without its last bracket, or of `test`."""
    if any(w.splat and not w.scalar for w in words):
        return None
    value, rest = _or(list(words))
    return value if not rest else None


def _or(words: list[Word]) -> tuple[bool | None, list[Word]]:
    left, rest = _and(words)
    while rest and rest[0].text == "-o":
        right, rest = _and(rest[1:])
        left = True if left or right else (None if left is None or right is None else False)
    return left, rest


def _and(words: list[Word]) -> tuple[bool | None, list[Word]]:
    left, rest = _primary(words)
    while rest and rest[0].text == "-a":
        right, rest = _primary(rest[1:])
        left = False if left is False or right is False else (None if left is None or right is None else True)
    return left, rest


def _primary(words: list[Word]) -> tuple[bool | None, list[Word]]:
    if not words:
        return False, []
    if words[0].text == "!" and len(words) > 1:
        value, rest = _primary(words[1:])
        return (None if value is None else not value), rest
    if len(words) >= 3 and words[1].text in {"=", "==", "!=", *NUMERIC}:
        return _binary(words[1].text or "", words[0], words[2]), words[3:]
    op = words[0].text
    if op is not None and re.fullmatch(r"-[a-zA-Z]", op) and len(words) >= 2:
        if op in ("-z", "-n"):
            filled = nonempty(words[1].fragments)
            return (None if filled is None else filled == (op == "-n")), words[2:]
        return None, words[2:]
    return nonempty(words[0].fragments), words[1:]


def _binary(op: str, left: Word, right: Word) -> bool | None:
    may_be = possible(left.fragments)
    if may_be:
        texts = (Word((Fragment(text, left.place, False),), left.place) for text in may_be)
        return _alike(_binary(op, text, right) for text in texts)
    a = _scalar_text(left)
    b = _scalar_text(right)
    if op not in NUMERIC:
        if a is None or b is None:
            if "" in (a, b) and nonempty(left.fragments if b == "" else right.fragments):
                return op == "!="
            return None
        return None if _asks_if_sourced(left.fragments, right.fragments) else (a == b) == (op != "!=")
    if (
        a is None
        or b is None
        or not re.fullmatch(r"\s*[-+]?\d{1,18}\s*", a)
        or not re.fullmatch(r"\s*[-+]?\d{1,18}\s*", b)
    ):
        return None
    x, y = int(a), int(b)
    return {"-eq": x == y, "-ne": x != y, "-lt": x < y, "-le": x <= y, "-gt": x > y, "-ge": x >= y}[op]


def _scalar_text(word: Word) -> str | None:
    return None if word.splat else word.text


def compared_variable(left: WordNode | None, right: WordNode) -> str | None:
    """The variable that `$X = literal` compares, if that is the whole comparison."""
    if left is None or right.literal is None or len(left.parts) != 1:
        return None
    part = left.parts[0]
    if (
        isinstance(part, Param)
        and part.index is None
        and not part.length
        and not part.indirect
        and part.op in ("", ":-", "-")
    ):
        return part.name
    return None
