"""The state of a script at a point, and the names of what is kept there besides variables."""

from __future__ import annotations

from typing import Any

from spec_lsp.records import dataclass, field
from spec_lsp.syntax.shell import ast
from spec_lsp.syntax.source import Source

STATUS = "?"
"""How the last command ended: a tree of True, False and None (unknown)."""
OUTPUT = ">"
"""What has been printed, if a substitution or a redirect reads it."""
INPUT = "<"
"""The content of standard input, if known."""
ARGUMENTS = "@"
"""The positional parameters, as an array."""
FILE = "file:"
"""A file that the script wrote, by its path."""
UNREAD = "unread:"
"""Set if the script sources a file that cannot be read, whose functions are unknown."""
ALIAS = "alias:"
"""The text of an alias, by its name; with no name, whether aliases are expanded."""
ORIGIN = "of:"
"""Values that tests have told more about, with what they were before."""

MAX_ESCAPES = 8

MISSING: Any = object()
"""Stands for a variable that the script has not set."""


@dataclass(slots=True, eq=False)
class State:
    """The state of a script at a point: variables, files written, positional parameters, the last status."""

    vars: dict[str, Any]
    exported: frozenset[str] = frozenset()
    functions: dict[str, tuple[ast.Function, Source]] = field(default_factory=dict)
    constraints: tuple[tuple[Any, frozenset[int]], ...] = ()
    alive: bool = True

    def fork(self) -> State:
        return State(dict(self.vars), self.exported, dict(self.functions), self.constraints, True)


@dataclass(slots=True, eq=False)
class Frame:
    """A function or loop that `return`, `break` or `continue` leave early, with the states in which they did."""

    kind: str
    depth: int
    """How many constraints hold outside of it."""
    escapes: list[tuple[str, State]] = field(default_factory=list)
    saved: dict[str, Any] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether it was left in as many places as we follow."""
        return len(self.escapes) >= MAX_ESCAPES


def origin_in(state: State, name: str) -> Any:
    """What a variable's value is recognized by: the value before tests told more about it."""
    value = state.vars.get(name, MISSING)
    kept = state.vars.get(ORIGIN + name)
    if kept is not None and kept[0] is value:
        return kept[1]
    return f"${name}" if value is MISSING else value
