"""Which ways a program can go, and what a value is in one of them.

A value that depends on the way is an `Either` at a `Turn`, or is made `Later`, when the way is known (`values.py`). A `World` says which
way each turn goes; it asks when it is not told (`Undecided`), and `explore` answers with each way in turn. So what is built up through
twenty `if` costs twenty small values, and only turns that a launch depends on are gone through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from spec_lsp.syntax.launch import Choice
from spec_lsp.syntax.word import Place

T = TypeVar("T")

MAX_WAYS = 16
"""Ways that are all gone through; of more, enough to go each way at each turn once."""
MAX_SHOWN = 64
MAX_RUNS = 200
MAX_STARTS = 4
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
    decide: Callable[[World], int] | None = None
    about: About | None = None
    answers: list[tuple[Mapping[Turn, int], int]] = field(default_factory=list, repr=False)
    """What `decide` said, by the ways at the turns that it asked for: it says the same where they are the same."""


class Undecided(Exception):  # noqa: N818 - control flow
    """A world was asked for the way at a turn that it does not know."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn


class Impossible(Exception):  # noqa: N818 - control flow
    """The program cannot go this way."""


class World:
    """The way the program goes at each turn. `lean` says which is taken at turns that `pins` do not have; without it they are asked for."""

    def __init__(self, pins: Mapping[Turn, int], lean: Callable[[Turn], int] | None = None) -> None:
        self.pins = dict(pins)
        self.lean = lean
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
                return way
        decide = turn.decide
        way, asked = self.asking(lambda: decide(self))
        if len(turn.answers) < MAX_ANSWERS and USUAL not in asked.values():
            turn.answers.append((asked, way))
        return way

    def told(self, turn: Turn, usual: int | None) -> int:
        """The way at a turn that no test decides."""
        if turn in self.pins:
            return self.pins[turn]
        if usual is not None and not self.splits:
            return usual
        if self.lean is None:
            raise Undecided(turn)
        preferred = self.lean(turn)
        order = [preferred, *(w for w in range(len(turn.labels)) if w != preferred)]
        found = next((w for w in order if possible(self.pins, turn, w)), None)
        if found is None:
            raise Impossible
        self.pins[turn] = found
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


def explore(reach: Callable[[World], None], evaluate: Callable[[World], T]) -> list[tuple[World, T]]:
    """What `evaluate` comes to in each way of the program that gets there (`reach` raises Impossible in any other) and that it tells apart:
    in all of them, or, of too many, in some that between them go each way at each turn."""

    def reached(world: World) -> T:
        reach(world)
        return evaluate(world)

    found: list[tuple[World, T]] = []
    if _all_ways(reached, found):
        return found
    ways: list[tuple[World, None]] = []
    found_all = _all_ways(reach, ways)
    if not ways and not found_all:  # the way there is too long to be looked for
        return list(_some_ways(evaluate, [{}]))
    return list(_some_ways(reached, [world.pins for world, _ in ways[:MAX_STARTS]]))


def _all_ways(evaluate: Callable[[World], T], found: list[tuple[World, T]]) -> bool:
    """Whether these are all."""
    waiting: list[dict[Turn, int]] = [{}]
    runs = 0
    while waiting:
        pins = waiting.pop()
        runs += 1
        if len(found) >= MAX_WAYS or runs > MAX_WAYS * 8:
            return False
        world = World(pins)
        try:
            found.append((world, evaluate(world)))
        except Impossible:
            continue
        except Undecided as asked:
            turn = asked.turn
            ways = [w for w in range(len(turn.labels)) if possible(pins, turn, w)]
            waiting += [{**pins, turn: way} for way in reversed(ways)]
    return True


def _some_ways(evaluate: Callable[[World], T], starts: list[dict[Turn, int]]) -> Iterator[tuple[World, T]]:
    """Each way at each turn at least once, where the turn is met beside the last way at all others; and the first way at all of them."""
    met: set[tuple[Turn, int]] = set()
    gone: set[frozenset[tuple[Turn, int]]] = set()
    waiting = [(pins, lean) for pins in starts for lean in (_first, _last)]
    runs = 0
    while waiting and runs < MAX_RUNS and len(gone) < MAX_SHOWN:
        pins, lean = waiting.pop(0)
        runs += 1
        world = World(pins, lean)
        try:
            result = evaluate(world)
        except Impossible:
            continue
        before: dict[Turn, int] = {}
        for turn, taken in world.pins.items() if lean is _last else ():
            for way in range(len(turn.labels)):
                if way != taken and (turn, way) not in met and possible(before, turn, way):
                    met.add((turn, way))
                    waiting.append(({**before, turn: way}, _last))
            before[turn] = taken
        key = frozenset(world.pins.items())
        if key not in gone:
            gone.add(key)
            yield world, result


def _first(turn: Turn) -> int:
    return 0


def _last(turn: Turn) -> int:
    return len(turn.labels) - 1
