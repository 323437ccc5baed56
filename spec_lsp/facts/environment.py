"""The environment variables a launch is given, read the way SGLang reads them.

Follows sglang/srt/environ.py (EnvBool, EnvInt, EnvFloat, EnvStr) and, for older releases, sglang/srt/utils get_bool_env_var.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.facts.known import NotKnown

TRUE = frozenset({"true", "1", "yes", "y"})
FALSE = frozenset({"false", "0", "no", "n"})


class Environment:
    """Variables by name. A value of None means: set, but nobody can tell to what. A name that is absent is not set.

    Each that is asked about is entered into `reads`, as "$NAME".
    """

    __slots__ = ("reads", "values")

    def __init__(self, values: Mapping[str, str | None], reads: set[str] | None = None) -> None:
        self.values = values
        self.reads = set() if reads is None else reads

    def text(self, name: str, default: str | None = None) -> str | None:
        """The variable's text, or `default` when it is not set. Raises NotKnown when its value cannot be told."""
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
        """The variable as a switch; a text that is neither true nor false is `default`, as SGLang warns and takes the default."""
        value = self.text(name)
        if value is None or value.strip() == "":
            return default
        lowered = value.strip().lower()
        if lowered in TRUE:
            return True
        return False if lowered in FALSE else default

    def number(self, name: str, default: float) -> float:
        """The variable as a number (int where it is written as one); `default` when unset or no number."""
        value = self.text(name)
        try:
            return default if value is None else int(value)
        except ValueError:
            pass
        try:
            return float(value or "")
        except ValueError:
            return default
