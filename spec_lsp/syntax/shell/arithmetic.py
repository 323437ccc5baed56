"""`$((…))` on known values, with bash's operators and 64-bit wrap-around."""

from __future__ import annotations

from collections.abc import Callable

from spec_lsp.expressions import expression

TOKEN = expression(r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)|([A-Za-z_]\w*)|(\*\*|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>!~&|^?:()]))")
LEVELS: tuple[frozenset[str], ...] = (
    frozenset({"||"}),
    frozenset({"&&"}),
    frozenset({"|"}),
    frozenset({"^"}),
    frozenset({"&"}),
    frozenset({"==", "!="}),
    frozenset({"<", ">", "<=", ">="}),
    frozenset({"<<", ">>"}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
)
MAX_LENGTH = 300
MAX_NESTING = 20
MAX_LOOKUPS = 500


class NotKnown(Exception):  # noqa: N818 - control flow
    """The expression has no value, or one that is only known when the script runs."""


def evaluate(expression: str, lookup: Callable[[str], str | None]) -> int | None:
    """The value of an arithmetic expression, None if unknown. `lookup` gives a variable's text, "" if it is unset."""
    try:
        return _Evaluation(_tokens(expression), _counted(lookup), 0).whole()
    except (NotKnown, RecursionError):
        return None


def _counted(lookup: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """The same, but stopping after this many variables: each may be an expression of others."""
    left = MAX_LOOKUPS

    def counted(name: str) -> str | None:
        nonlocal left
        left -= 1
        if left < 0:
            raise NotKnown
        return lookup(name)

    return counted


def _tokens(expression: str) -> list[str]:
    if len(expression) > MAX_LENGTH:
        raise NotKnown
    tokens = []
    position = 0
    text = expression.rstrip()
    while position < len(text):
        m = TOKEN.match(text, position)
        if not m:
            raise NotKnown
        tokens.append(m.group(m.lastindex or 0))
        position = m.end()
    return tokens


class _Evaluation:
    def __init__(self, tokens: list[str], lookup: Callable[[str], str | None], nesting: int) -> None:
        self.tokens = tokens
        self.lookup = lookup
        self.nesting = nesting
        self.position = 0

    def whole(self) -> int:
        if not self.tokens:
            return 0
        value = self.conditional()
        if self.position != len(self.tokens):
            raise NotKnown
        return value

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def conditional(self) -> int:
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.take()
        yes = self.conditional()
        if self.take() != ":":
            raise NotKnown
        no = self.conditional()
        return yes if condition else no

    def binary(self, level: int) -> int:
        if level == len(LEVELS):
            return self.power()
        left = self.binary(level + 1)
        while self.peek() in LEVELS[level]:
            left = _wrap(_apply(self.take(), left, self.binary(level + 1)))
        return left

    def power(self) -> int:
        base = self.unary()
        if self.peek() != "**":
            return base
        self.take()
        exponent = self.power()
        if not 0 <= exponent <= 64:
            raise NotKnown
        return _wrap(base**exponent)

    def unary(self) -> int:
        token = self.take()
        if token in ("-", "+", "!", "~"):
            value = self.unary()
            return _wrap({"-": -value, "+": value, "!": int(not value), "~": ~value}[token])
        if token == "(":
            value = self.conditional()
            if self.take() != ")":
                raise NotKnown
            return value
        if not token:
            raise NotKnown
        return self.atom(token)

    def atom(self, token: str) -> int:
        if token[0].isdigit():
            return _number(token)
        if not (token[0].isalpha() or token[0] == "_"):
            raise NotKnown
        text = self.lookup(token)
        if text is None or self.nesting > MAX_NESTING:
            raise NotKnown
        return _Evaluation(_tokens(text), self.lookup, self.nesting + 1).whole()


def _number(token: str) -> int:
    try:
        if token[:2] in ("0x", "0X"):
            return _wrap(int(token, 16))
        return _wrap(int(token, 8) if token[0] == "0" and len(token) > 1 else int(token))
    except ValueError:
        raise NotKnown from None


def _wrap(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _apply(op: str, a: int, b: int) -> int:
    if op in ("/", "%"):
        if b == 0:
            raise NotKnown
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if op == "/" else a - quotient * b
    if op in ("<<", ">>"):
        if not 0 <= b < 64:
            raise NotKnown
        return a << b if op == "<<" else a >> b
    return {
        "+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b,
        "==": int(a == b), "!=": int(a != b), "<": int(a < b), ">": int(a > b), "<=": int(a <= b), ">=": int(a >= b),
        "&&": int(bool(a) and bool(b)), "||": int(bool(a) or bool(b)),
    }[op]  # fmt: skip


def truth(value: int | None) -> bool | None:
    """Whether `(( … ))` succeeds; None if the value is unknown."""
    return None if value is None else value != 0
