"""Which ways a program can go, and what a value is in one of them.

A value that depends on the way is an `Either` at a `Turn`, or is made `Later`, when the way is known (`values.py`). An `ExecutionPath`
says which way each turn goes; it asks when it is not told (`Undecided`), and `explore` answers with each way in turn. So what is built up
through twenty `if` costs twenty small values, and only turns that a launch depends on are gone through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from spec_lsp.interruption import checkpoint
from spec_lsp.records import dataclass, field
from spec_lsp.syntax import covering
from spec_lsp.syntax.launch import Choice
from spec_lsp.syntax.word import Place

T = TypeVar("T")

MAX_WAYS = 16
"""Ways that are all gone through; of more, some that cover them."""
MAX_SHOWN = 64
MAX_ANSWERS = 16
"""Answers of one test that are remembered from world to world."""
USUAL = -1


@dataclass(frozen=True, slots=True)
class About:
    """What a question asks of a subject: `holds` of the subject's value, None where it cannot be asked; for `samples` it may
    come out either way.

    Two questions with the same `subject` are about the same value.
    """

    subject: object
    holds: Callable[[Any], bool | None]
    samples: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """A point where the program goes one way of several. `labels` say for each what is taken, in words that continue "when ".

    `decide` finds the way from others (an `if` whose test asks several questions); without it only the world can say.
    """

    place: Place
    labels: tuple[str, ...]
    decide: Callable[[ExecutionPath], int] | None = None
    about: About | None = None
    answers: list[tuple[Mapping[Turn, int], int]] = field(default_factory=list, repr=False)
    """What `decide` said, by the ways at the turns that it asked for: it says the same where they are the same."""


class Undecided(Exception):  # noqa: N818 - control flow
    """A world was asked for the way at a turn that it does not know."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn


class Impossible(Exception):  # noqa: N818 - control flow
    """The program cannot go this way."""


class ExecutionPath:
    """The way the program goes at each turn. A `row` says which where `pins` do not; without one it is asked for."""

    def __init__(self, pins: Mapping[Turn, int], row: covering.Row[Turn] | None = None) -> None:
        self.pins = dict(pins)
        self.row = row
        self.splits = 0
        """Above 0, a turn with a way that is usual is asked for too: a test is being answered."""
        self.kept: dict[object, tuple[object, Any, Mapping[Turn, int]]] = {}
        """What values come to in this world, so that each is made once, with the turns that it depends on."""
        self.asked: dict[Turn, int] = {}
        """The turns that what is being made has asked for, with the ways there (USUAL where nothing else decided)."""

    def keep(self, key: object, of: object, make: Callable[[], Any]) -> Any:
        """What `make` comes to, made once for the key; `of` is kept alive with it."""
        if key not in self.kept:
            made, asked = self.asking(make)
            self.kept[key] = of, made, asked
        _, made, asked = self.kept[key]
        self.asked.update(asked)
        return made

    def asking(self, make: Callable[[], T]) -> tuple[T, Mapping[Turn, int]]:
        """What `make` comes to, and the turns it asked for."""
        outer, self.asked = self.asked, {}
        try:
            return make(), self.asked
        finally:
            outer.update(self.asked)
            self.asked = outer

    def way(self, turn: Turn, usual: int | None = None) -> int:
        """The way at a turn, a number in `turn.labels`. `usual` is taken where nothing else depends on it."""
        if turn.decide is not None:
            way: int = self.keep(id(turn), turn, lambda: self.decided(turn))
            return way
        way = self.told(turn, usual)
        self.asked[turn] = way if turn in self.pins else USUAL
        return way

    def decided(self, turn: Turn) -> int:
        """What a test says, remembered from worlds in which all that it asked for was the same."""
        assert turn.decide is not None
        for asked, way in turn.answers:
            if all(self.pins.get(t) == w for t, w in asked.items()):
                self.asked.update(asked)
                if self.row is not None:
                    for each, taken in asked.items():
                        self.row.take(each, taken, len(each.labels))
                return way
        decide = turn.decide
        way, asked = self.asking(lambda: decide(self))
        if len(turn.answers) < MAX_ANSWERS and USUAL not in asked.values():
            turn.answers.append((asked, way))
        return way

    def told(self, turn: Turn, usual: int | None) -> int:
        """The way at a turn that no test decides."""
        if turn in self.pins:
            if self.row is not None:
                self.row.take(turn, self.pins[turn], len(turn.labels))
            return self.pins[turn]
        if usual is not None and not self.splits:
            return usual
        if self.row is None:
            raise Undecided(turn)
        ways = [way for way in range(len(turn.labels)) if possible(self.pins, turn, way)]
        if not ways:
            raise Impossible
        found = self.pins[turn] = self.row.way(turn, ways, len(turn.labels))
        return found

    def choices(self) -> tuple[Choice, ...]:
        """What this world takes, for people."""
        return tuple(Choice(turn.place, turn.labels[way]) for turn, way in self.pins.items() if turn.labels[way])


def possible(pins: Mapping[Turn, int], turn: Turn, way: int) -> bool:
    """Whether some value answers all questions about one subject so: nothing is both `a` and `b`, or None and above 1."""
    about = turn.about
    if about is None:
        return True
    asked = [(t.about, w) for t, w in pins.items() if t.about is not None and t.about.subject == about.subject]
    if not asked:
        return True
    asked.append((about, way))
    samples = [value for one, _ in asked for value in one.samples]
    return any(all(one.holds(value) == (answer == 0) for one, answer in asked) for value in samples)


def explore(
    reach: Callable[[ExecutionPath], None], evaluate: Callable[[ExecutionPath], T]
) -> tuple[list[tuple[ExecutionPath, T]], covering.Ways]:
    """What `evaluate` comes to in each way of the program that gets there (`reach` raises Impossible in any other) and that it tells apart:
    in all of them, or, of too many, in some that cover them; and which these are."""

    def reached(world: ExecutionPath) -> T:
        reach(world)
        return evaluate(world)

    found: list[tuple[ExecutionPath, T]] = []
    if _all_ways(reached, found):
        return found, "all"
    covered = _some_ways(reached)
    if not covered[0] and not _all_ways(reach, []):  # the way there is too long to be looked for
        return _some_ways(evaluate)[0], "some"
    return covered


def _all_ways(evaluate: Callable[[ExecutionPath], T], found: list[tuple[ExecutionPath, T]]) -> bool:
    """Whether these are all."""
    waiting: list[dict[Turn, int]] = [{}]
    runs = 0
    while waiting:
        checkpoint()
        pins = waiting.pop()
        runs += 1
        if len(found) >= MAX_WAYS or runs > MAX_WAYS * 8:
            return False
        world = ExecutionPath(pins)
        try:
            found.append((world, evaluate(world)))
        except Impossible:
            continue
        except Undecided as asked:
            turn = asked.turn
            ways = [w for w in range(len(turn.labels)) if possible(pins, turn, w)]
            waiting += [{**pins, turn: way} for way in reversed(ways)]
    return True


def _some_ways(evaluate: Callable[[ExecutionPath], T]) -> tuple[list[tuple[ExecutionPath, T]], covering.Ways]:
    """Each way at each turn, and any two ways at two turns together while there is room."""

    def run(row: covering.Row[Turn]) -> tuple[ExecutionPath, T]:
        def go(pins: dict[Turn, int]) -> tuple[ExecutionPath, T]:
            checkpoint()
            world = ExecutionPath(pins, row)
            try:
                result = evaluate(world)
            except Impossible:
                raise covering.Refused from None
            world.pins = {turn: way for turn, way in world.pins.items() if turn in row.taken}
            return world, result

        return covering.led(row, go, lambda turn: len(turn.labels))

    found, complete = covering.rows(run, MAX_SHOWN)
    return [result for _, result in found], "pairs" if complete else "some"
