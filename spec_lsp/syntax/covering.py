"""Chooses which ways through a script to look at when there are too many to list: a covering array, built row by row.

Twenty switches have a million ways, but a few rows suffice to contain each way of each switch, and each combination of ways of two
switches, at least once: ten for a hundred on/off switches at best, slightly more as found here. The switches need not be known beforehand:
a row asks for the way at each switch that it meets (`Row.way`), and the other ways of new switches are wanted in the next rows. So a switch
behind another one, or decided by one, only occurs in combinations that exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from spec_lsp.records import dataclass, field

Switch = TypeVar("Switch")
T = TypeVar("T")

Ways = Literal["all", "pairs", "some"]
"""All ways; enough of them that any two ways of two switches occur together; or each way of each switch, as far as there was room."""

_ORDER: tuple[Ways, ...] = ("all", "pairs", "some")


def fewest(found: Iterable[Ways]) -> Ways:
    """The weakest of several coverages."""
    return max(found, key=_ORDER.index, default="all")


RUNS_OF_A_ROW = 3
"""How many attempts a row may cost: some ways turn out not to exist."""


MAX_TRIES = 12
"""How often a row is tried with another way when the one that it took turns out not to exist."""


class Refused(Exception):  # noqa: N818 - control flow
    """The row is impossible: a way that it has taken does not exist."""


class Again(Exception):  # noqa: N818 - control flow
    """The row must be run once more, with these ways known from the start."""

    def __init__(self, ways: Mapping[Any, int]) -> None:
        self.ways = ways


MIN_MET = 4
MAX_NEEDS = 6
"""The most ways leading to a switch that are considered when one of them may be taken."""


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


@dataclass(slots=True, eq=False)
class Row(Generic[Switch]):
    """One way through all switches, chosen as they are met. `taken` are the ways chosen so far."""

    cover: Cover[Switch]
    wanted: Mapping[Switch, int]
    taken: dict[Switch, int] = field(default_factory=dict)
    mask: int = 0

    def way(self, switch: Switch, ways: Sequence[int], of: int = 0) -> int:
        """The way to take at a switch, one of `ways` (out of `of`): the one that adds most combinations that no row has yet."""
        known = self.taken.get(switch)
        if known is None:
            known = self.wanted.get(switch, -1)
            if known not in ways:
                known = self.cover.choose(self, switch, ways)
            self.take(switch, known, of)
        return known

    def take(self, switch: Switch, way: int, ways: int = 0) -> None:
        """Record that a switch was met, and the way taken; if `ways` are given, those of its ways are wanted."""
        if switch not in self.taken:
            self.taken[switch] = way
            if switch not in self.cover.own:
                for each in range(ways):
                    self.cover.number(switch, each)
            self.mask |= 1 << self.cover.number(switch, way)


@dataclass(slots=True, eq=False)
class Cover(Generic[Switch]):
    """What the rows so far have covered. `steps` counts the choices of ways."""

    numbers: dict[tuple[Switch, int], int] = field(default_factory=dict)
    ways: list[tuple[Switch, int]] = field(default_factory=list)
    """Each way of a switch, by its number."""
    seen: list[int] = field(default_factory=list)
    """The ways that each way has occurred with, as bits."""
    own: dict[Switch, int] = field(default_factory=dict)
    """The ways of a switch, as bits."""
    uses: list[int] = field(default_factory=list)
    needs: dict[Switch, int] = field(default_factory=dict)
    """The ways that were taken each time a switch was met, as bits: those that lead to it, and some by chance."""
    met: dict[Switch, int] = field(default_factory=dict)
    """In how many rows a switch was met."""
    behind: dict[int, set[Switch]] = field(default_factory=dict)
    """The switches that are met only behind a way, by the way's number."""
    tried: set[tuple[int, int]] = field(default_factory=set)
    """Ways that were wanted together, or alone, and did not occur."""
    rows: list[int] = field(default_factory=list)
    """The ways of each row, as bits."""
    steps: int = 0

    def number(self, switch: Switch, way: int) -> int:
        known = self.numbers.get((switch, way))
        if known is None:
            known = self.numbers[switch, way] = len(self.ways)
            self.ways.append((switch, way))
            self.seen.append(0)
            self.uses.append(0)
            self.own[switch] = self.own.get(switch, 0) | 1 << known
        return known

    def choose(self, row: Row[Switch], switch: Switch, ways: Sequence[int]) -> int:
        best, most = ways[0], (-1, 0)
        for way in ways:
            self.steps += 1
            number = self.number(switch, way)
            new = (row.mask & ~self.seen[number]).bit_count()
            for other in self.behind.get(number, ()):
                self.steps += 1
                new += max((row.mask & ~self.seen[each]).bit_count() for each in bits(self.own[other]))
            gain = new, -self.uses[number]
            if gain > most:
                best, most = way, gain
        return best

    def done(self, row: Row[Switch]) -> bool:
        """Record a row that turned out to exist; returns whether it added anything."""
        new = not self.ways
        self.rows.append(row.mask)
        for number in bits(row.mask):
            self.steps += 1
            new |= bool(row.mask & ~self.seen[number])
            self.seen[number] |= row.mask
            self.uses[number] += 1
            self.lead_to(self.ways[number][0], row.mask)
        return new

    def lead_to(self, switch: Switch, mask: int) -> None:
        """Record which ways had been taken when a switch was met."""
        known = self.needs.get(switch)
        needs = mask & ~self.own[switch] if known is None else known & mask
        self.needs[switch] = needs
        self.met[switch] = self.met.get(switch, 0) + 1
        if known is not None and self.is_sure(switch):
            for number in bits(known & ~needs):
                self.behind.get(number, set()).discard(switch)
            for number in bits(needs):
                self.behind.setdefault(number, set()).add(switch)

    def is_sure(self, switch: Switch) -> bool:
        """Whether the ways that lead to a switch are distinguished from those that occurred with it by chance."""
        return self.met.get(switch, 0) >= MIN_MET and self.needs[switch].bit_count() <= MAX_NEEDS

    def wanted(self) -> tuple[int, int] | None:
        """Two ways that no row has together, by their numbers (the same twice: a way that no row has); None if none are left."""
        for number, uses in enumerate(self.uses):
            if not uses and (number, number) not in self.tried:
                return number, number
        every = sum(1 << number for number, uses in enumerate(self.uses) if uses)
        for number, (switch, _) in enumerate(self.ways):
            self.steps += 1
            missing = every & ~self.seen[number] & ~self.own[switch] if self.uses[number] else 0
            while missing:
                other = missing.bit_length() - 1
                if (number, other) not in self.tried:
                    if not self.apart(number, other):
                        return number, other
                    self.tried |= {(number, other), (other, number)}
                missing &= ~(1 << other)
        return None

    def apart(self, number: int, other: int) -> bool:
        """Whether one of two ways is only reached by another way of the other's switch: it always was, and did not occur without."""
        for one, two in ((number, other), (other, number)):
            switch = self.ways[one][0]
            if self.is_sure(switch) and self.needs[switch] & self.own[self.ways[two][0]] & ~(1 << two):
                return any(row >> two & 1 and not row & self.own[switch] for row in self.rows)
        return False

    def together(self, number: int, other: int) -> list[dict[Switch, int]]:
        """What to ask for so that two ways occur together: with the ways that led to them before, or just these two."""
        found = dict((self.ways[number], self.ways[other]))
        needs = [self.needs.get(switch, 0) for switch in found]
        led = {**dict(self.ways[each] for need in needs for each in bits(need)), **found}
        return [led, found] if all(map(self.is_sure, found)) else [found, led]

    def complete(self) -> bool:
        """Whether every two ways that can occur together have done so, as far as was tried."""
        return self.wanted() is None


def led(row: Row[Switch], go: Callable[[dict[Switch, int]], T], size: Callable[[Switch], int]) -> T:
    """The result of `go` for a row, given the ways that are fixed. If that combination does not exist (Refused), the last choice takes
    another way, of `size` ways."""
    fixed = dict(row.wanted)
    for _ in range(MAX_TRIES):
        row.taken, row.mask = {}, 0
        try:
            return go(dict(fixed))
        except Again as again:
            fixed = dict(again.ways)
        except Refused:
            row.cover.steps += 1
            chosen = [switch for switch in row.taken if switch not in fixed]
            if not chosen:
                break
            last = chosen[-1]
            fixed |= {switch: row.taken[switch] for switch in chosen}
            fixed[last] = (fixed[last] + 1) % size(last)
    raise Refused


def rows(
    run: Callable[[Row[Switch]], T], most: int, cover: Cover[Switch] | None = None
) -> tuple[list[tuple[dict[Switch, int], T]], bool]:
    """The results of `run` in rows that cover the ways of all switches it asks about, and whether every two ways have occurred together.

    `run` takes the ways that the row chooses, and raises Refused if these do not exist. At most `most` rows.
    """
    cover = Cover() if cover is None else cover
    found: list[tuple[dict[Switch, int], T]] = []
    left = RUNS_OF_A_ROW * most

    def attempt(wanted: Mapping[Switch, int]) -> None:
        nonlocal left
        left -= 1
        row = Row(cover, wanted)
        try:
            result = run(row)
        except Refused:
            return
        if cover.done(row):
            found.append((row.taken, result))

    attempt({})
    while len(found) < most and left > 0 and (pair := cover.wanted()) is not None:
        for wanted in cover.together(*pair):
            attempt(wanted)
            if cover.uses[pair[0]] and (pair[0] == pair[1] or cover.seen[pair[0]] >> pair[1] & 1):
                break
        else:
            cover.tried |= {pair, pair[::-1]}
    return found, cover.complete()
