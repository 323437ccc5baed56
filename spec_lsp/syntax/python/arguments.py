"""The arguments of a call."""

from __future__ import annotations

from spec_lsp.syntax.python.values import More, Value


class Arguments:
    """The evaluated arguments of a call."""

    def __init__(self, positional: list[Value], keywords: dict[str, Value], rest: list[Value]) -> None:
        self.positional = positional
        self.keywords = keywords
        self.rest = rest
        """The value of `**`."""

    def get(self, index: int, *names: str) -> Value | None:
        """An argument by its position or one of its names."""
        for name in names:
            if name in self.keywords:
                return self.keywords[name]
        if 0 <= index < len(self.positional) and not any(isinstance(v, More) for v in self.positional[: index + 1]):
            return self.positional[index]
        return None
