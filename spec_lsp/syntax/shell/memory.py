"""What is kept from one reading of a document to the next, so that a keystroke only costs what it changes."""

from __future__ import annotations

from typing import Any

from spec_lsp.records import dataclass, field
from spec_lsp.syntax.launch import Clue
from spec_lsp.syntax.shell.launches import Told
from spec_lsp.syntax.shell.values import Fork, Point
from spec_lsp.syntax.word import Place


@dataclass(slots=True, eq=False)
class Remembered:
    """The result of a statement, and everything that it read."""

    node: Any
    names: tuple[str, ...]
    values: list[Any]
    """The variables that it read, with their values."""
    sets: dict[str, bool]
    """Answers to whether the script sets certain variables anywhere."""
    constraints: tuple[Any, ...]
    functions: Any
    points: dict[Any, Point]
    """The points that it met, by their keys."""
    result: Any


def remember(
    node: Any,
    reads: dict[str, Any],
    points: dict[Any, Point],
    constraints: tuple[Any, ...],
    functions: Any,
    result: Any,
) -> Remembered:
    """`reads` holds variables by name, and the answers to "is it set anywhere" by `=name`."""
    sets = {name[1:]: value for name, value in reads.items() if name.startswith("=")}
    variables = {name: value for name, value in reads.items() if not name.startswith("=")}
    return Remembered(node, tuple(variables), list(variables.values()), sets, constraints, functions, points, result)


@dataclass(slots=True, eq=False)
class Memory:
    """The results of the last run over a document, statement by statement, to be used by the next run where nothing changed.

    A statement is identified by its node and its anchored base. Results are passed from run to run unchanged: each knows itself whether it
    still holds.
    """

    points: dict[Any, Point] = field(default_factory=dict)
    results: dict[tuple[int, int, str], list[Remembered]] = field(default_factory=dict)
    launches: dict[tuple[Place, Place], Told] = field(default_factory=dict)
    around: tuple[Clue, ...] = ()
    """The clues of the whole script."""
    unbroken: set[int] = field(default_factory=set)
    """The identities of the launches whose commands are not broken off."""

    def keep(self, key: tuple[int, int, str], entry: Remembered) -> None:
        """Keep a result of a statement, besides its most recent ones."""
        kept = self.results.get(key)
        if kept is None:
            if len(self.results) >= MAX_RESULTS:
                self.results.clear()
            self.results[key] = [entry]
        elif entry not in kept:
            self.results[key] = [*kept[-MAX_KEPT + 1 :], entry]


MAX_RESULTS = 20_000
MAX_KEPT = 8


def same(a: Any, b: Any) -> bool:
    """Whether two values consist of the same objects at each choice."""
    compared: set[tuple[int, int]] = set()

    def equal(a: Any, b: Any) -> bool:
        if a is b or (id(a), id(b)) in compared:
            return True
        if isinstance(a, Fork) and isinstance(b, Fork):
            compared.add((id(a), id(b)))  # the first difference ends the comparison
            return (
                a.point is b.point
                and a.soft == b.soft
                and len(a.arms) == len(b.arms)
                and all(map(equal, a.arms, b.arms))
            )
        if isinstance(a, tuple) and isinstance(b, tuple):
            return len(a) == len(b) and all(map(equal, a, b))
        return isinstance(a, (int, frozenset)) and a == b

    return equal(a, b)
