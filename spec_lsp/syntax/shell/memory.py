"""What is kept from one reading of a document to the next, so that a keystroke costs what it changes."""

from __future__ import annotations

from typing import Any

from spec_lsp.records import dataclass, field
from spec_lsp.syntax.launch import Clue
from spec_lsp.syntax.shell.launches import Told
from spec_lsp.syntax.shell.values import Fork, Point
from spec_lsp.syntax.word import Place


@dataclass(slots=True, eq=False)
class Remembered:
    """What a statement came to, and all that it read to come to it."""

    node: Any
    names: tuple[str, ...]
    values: list[Any]
    """The variables it read, and what they held."""
    sets: dict[str, bool]
    """Whether the script sets certain variables somewhere."""
    constraints: tuple[Any, ...]
    functions: Any
    points: dict[Any, Point]
    """The points it met, by what they are known by."""
    result: Any


def remember(
    node: Any,
    reads: dict[str, Any],
    points: dict[Any, Point],
    constraints: tuple[Any, ...],
    functions: Any,
    result: Any,
) -> Remembered:
    """`reads` holds variables by name, and answers to "is it set anywhere" by `=name`."""
    sets = {name[1:]: value for name, value in reads.items() if name.startswith("=")}
    variables = {name: value for name, value in reads.items() if not name.startswith("=")}
    return Remembered(node, tuple(variables), list(variables.values()), sets, constraints, functions, points, result)


@dataclass(slots=True, eq=False)
class Memory:
    """What the last run over a document came to, statement by statement, for the next run to use where nothing changed.

    A statement is known by its node and the base that it is anchored to. The results of statements are handed from run to run as they are:
    each says itself whether it still holds.
    """

    points: dict[Any, Point] = field(default_factory=dict)
    results: dict[tuple[int, int, str], list[Remembered]] = field(default_factory=dict)
    launches: dict[tuple[Place, Place], Told] = field(default_factory=dict)
    around: tuple[Clue, ...] = ()
    """The clues that are the whole script's."""
    unbroken: dict[int, Told] = field(default_factory=dict)
    """The launches whose commands go on as far as they look, by identity."""

    def keep(self, key: tuple[int, int, str], entry: Remembered) -> None:
        """Keeps what a statement came to, of all it came to the last."""
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
    """Whether two values are the same objects, turn by turn."""
    compared: set[tuple[int, int]] = set()

    def equal(a: Any, b: Any) -> bool:
        if a is b or (id(a), id(b)) in compared:
            return True
        if isinstance(a, Fork) and isinstance(b, Fork):
            compared.add((id(a), id(b)))  # what is found to differ ends the comparison
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
