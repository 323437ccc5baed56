"""The ways a program can go, and values on each of them.

A value that depends on the way is an `Either` at a `Turn`, or is computed `Later`, when the way is known (`values.py`). An `ExecutionPath`
holds the way taken at each turn; if it does not know one, it raises `Undecided`, and `explore` tries each way. So what is built up through
twenty `if` costs twenty small values, and only choices that a launch depends on are tried.
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
"""The most ways that are all looked at; of more, some that cover them."""
MAX_SHOWN = 64
MAX_ANSWERS = 16
"""How many answers of one test are remembered from one execution path to the next."""
USUAL = -1


@dataclass(frozen=True, slots=True)
class About:
    """The question of a test: `holds` tests the subject's value, None if that is impossible; it may have either outcome for the `samples`.

    Two questions with the same `subject` are about the same value.
    """

    subject: object
    holds: Callable[[Any], bool | None]
    samples: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """A point where the program goes one of several ways. `labels` name each way, in words that continue "when ".

    `decide` computes the way from others (an `if` whose test asks several questions); without it the way is chosen freely.
    """

    place: Place
    labels: tuple[str, ...]
    decide: Callable[[ExecutionPath], int] | None = None
    about: About | None = None
    answers: list[tuple[Mapping[Turn, int], int]] = field(default_factory=list, repr=False)
    """The results of `decide`, by the ways at the choices that it asked about: where these are the same, so is the result."""


class Undecided(Exception):  # noqa: N818 - control flow
    """The way at a turn was asked for that the execution path does not know."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn


class Impossible(Exception):  # noqa: N818 - control flow
    """The program cannot go this way."""


class ExecutionPath:
    """The way the program goes at each turn. A `row` chooses where `pins` do not; without one, Undecided is raised."""

    def __init__(self, pins: Mapping[Turn, int], row: covering.Row[Turn] | None = None) -> None:
        self.pins = dict(pins)
        self.row = row
        self.splits = 0
        """If above 0, choices with a usual way are asked about, too: a test is being answered."""
        self.kept: dict[object, tuple[object, Any, Mapping[Turn, int]]] = {}
        """The values computed under this execution path, each once, with the choices that they depend on."""
        self.asked: dict[Turn, int] = {}
        """The choices that the current computation has asked about, with the ways there (USUAL if nothing else decided)."""

    def keep(self, key: object, of: object, make: Callable[[], Any]) -> Any:
        """The result of `make`, computed once for the key; `of` is kept alive with it."""
        if key not in self.kept:
            made, asked = self.asking(make)
            self.kept[key] = of, made, asked
        _, made, asked = self.kept[key]
        self.asked.update(asked)
        return made

    def asking(self, make: Callable[[], T]) -> tuple[T, Mapping[Turn, int]]:
        """The result of `make`, and the choices that it asked about."""
        outer, self.asked = self.asked, {}
        try:
            return make(), self.asked
        finally:
            outer.update(self.asked)
            self.asked = outer

    def way(self, turn: Turn, usual: int | None = None) -> int:
        """The way at a turn, an index of `turn.labels`. `usual` is taken if nothing else depends on it."""
        if turn.decide is not None:
            way: int = self.keep(id(turn), turn, lambda: self.decided(turn))
            return way
        way = self.told(turn, usual)
        self.asked[turn] = way if turn in self.pins else USUAL
        return way

    def decided(self, turn: Turn) -> int:
        """The outcome of a test, remembered from execution paths on which everything that it asked for was the same."""
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
        """The choices on this execution path, for people."""
        return tuple(Choice(turn.place, turn.labels[way]) for turn, way in self.pins.items() if turn.labels[way])


def possible(pins: Mapping[Turn, int], turn: Turn, way: int) -> bool:
    """Whether some value gives all these answers about one subject: nothing is both `a` and `b`, or None and above 1."""
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
    """The results of `evaluate` on the ways of the program that get there (`reach` raises Impossible on any other) and that it
    distinguishes: on all of them or, if they are too many, on some that cover them; and the coverage."""

    def reached(world: ExecutionPath) -> T:
        reach(world)
        return evaluate(world)

    found: list[tuple[ExecutionPath, T]] = []
    if _all_ways(reached, found):
        return found, "all"
    covered = _some_ways(reached)
    if not covered[0] and not _all_ways(reach, []):  # finding a way there would take too long
        return _some_ways(evaluate)[0], "some"
    return covered


def _all_ways(evaluate: Callable[[ExecutionPath], T], found: list[tuple[ExecutionPath, T]]) -> bool:
    """Whether these are all ways."""
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
    """Each way at each choice, and any two ways at two choices together as long as there is room."""

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
