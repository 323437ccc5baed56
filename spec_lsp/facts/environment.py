"""The environment variables given to a launch, read as SGLang reads them.

Follows sglang/srt/environ.py (EnvBool, EnvInt, EnvFloat, EnvStr) and, for older releases, sglang/srt/utils get_bool_env_var.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.facts.known import NotKnown

TRUE = frozenset({"true", "1", "yes", "y"})
FALSE = frozenset({"false", "0", "no", "n"})


class Environment:
    """Variables by name. A value of None means: set, but to an unknown value. A name that is absent is not set.

    Each one that is asked for is added to `reads`, as "$NAME".
    """

    __slots__ = ("reads", "values")

    def __init__(self, values: Mapping[str, str | None], reads: set[str] | None = None) -> None:
        self.values = values
        self.reads = set() if reads is None else reads

    def text(self, name: str, default: str | None = None) -> str | None:
        """The variable's text, or `default` if it is not set. Raises NotKnown if its value is unknown."""
        self.reads.add(f"${name}")
        if name not in self.values:
            return default
        value = self.values[name]
        if value is None:
            raise NotKnown(name, "its value is not in the file")
        return value

    def is_set(self, name: str) -> bool:
        self.reads.add(f"${name}")
        return name in self.values

    def flag(self, name: str, default: bool = False) -> bool:
        """The variable as a switch; a text that is neither true nor false gives `default`, as SGLang warns and uses the default."""
        value = self.text(name)
        if value is None or value.strip() == "":
            return default
        lowered = value.strip().lower()
        if lowered in TRUE:
            return True
        return False if lowered in FALSE else default

    def number(self, name: str, default: float) -> float:
        """The variable as a number (int if it is written as one); `default` if it is unset or not a number."""
        value = self.text(name)
        try:
            return default if value is None else int(value)
        except ValueError:
            pass
        try:
            return float(value or "")
        except ValueError:
            return default
