"""What the script knows at a point, and the names under which more than its variables is kept there."""

from __future__ import annotations

from typing import Any

from spec_lsp.records import dataclass, field
from spec_lsp.syntax.shell import ast
from spec_lsp.syntax.source import Source

STATUS = "?"
"""How the last command ended: a tree of True, False and None (unknown)."""
OUTPUT = ">"
"""What has been printed, where a substitution or a redirect reads it."""
INPUT = "<"
"""What waits on standard input, where it is known."""
ARGUMENTS = "@"
"""The positional parameters, as an array."""
FILE = "file:"
"""A file that the script wrote, by its path."""
UNREAD = "unread:"
"""Set where the script sources a file that cannot be read, whose functions nobody knows."""
ORIGIN = "of:"
"""Values that tests have told more of, with what they were before."""

MAX_ESCAPES = 8

MISSING: Any = object()
"""Stands for a variable that the script has not set."""


@dataclass(slots=True, eq=False)
class State:
    """What the script knows at a point: variables (and files written, positional parameters, the last status)."""

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
    """How many constraints hold outside."""
    escapes: list[tuple[str, State]] = field(default_factory=list)
    saved: dict[str, Any] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """It may have been left in as many places as we follow."""
        return len(self.escapes) >= MAX_ESCAPES


def origin_in(state: State, name: str) -> Any:
    """What tells whether a variable still holds what it held: its value, before what tests say of it was added."""
    value = state.vars.get(name, MISSING)
    kept = state.vars.get(ORIGIN + name)
    if kept is not None and kept[0] is value:
        return kept[1]
    return f"${name}" if value is MISSING else value
