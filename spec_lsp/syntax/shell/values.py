"""What a variable can hold, and on which turns of the script that depends.

A value is a leaf or a `Fork`: one value for each way the script can go at a `Point`. The same point in two values is the same
turn, so values that were set in one arm stay together. An evaluation runs in a `World`, which pins some points; one that meets
a point that is not pinned is run again once for each way (`explore`). So the code that evaluates is straight-line code on
plain values, and only turns that matter to a launch multiply its variants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, Union

from spec_lsp.interruption import checkpoint
from spec_lsp.syntax.word import Fragment, Place, Word

MAX_VARIANTS = 64
MAX_WAYS = 4096

FROM_ENVIRONMENT = "from the environment"
DEPENDS = "it depends on the way the script takes"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string."""

    fragments: tuple[Fragment, ...]

    @property
    def text(self) -> str | None:
        parts = [f.text for f in self.fragments]
        return None if None in parts else "".join(p for p in parts if p is not None)


@dataclass(frozen=True, slots=True)
class Array:
    """Words; a splat among them stands for any number."""

    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """`declare -A`: known keys. Other keys are unset."""

    items: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Reference:
    """`declare -n`: another name of a variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Unset:
    """The script knows that the variable is not set."""


UNSET = Unset()

Value = Scalar | Array | Table | Unset
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Point:
    """A turn of the script. `labels` say, for each way, what is taken, in words that continue "when "."""

    place: Place
    labels: tuple[str, ...]
    number: int


@dataclass(slots=True, eq=False)
class Fork(Generic[T]):
    """One value for each way at `point`.

    A `soft` fork takes way `default` without splitting a launch in two, unless something else splits at the same
    point: `--tp ${TP:-4}` is 4, but where a script does other things when TP is set, both are told.
    """

    point: Point
    arms: tuple[Tree[T], ...]
    soft: bool = False
    default: int = 0


Tree = Union[T, "Fork[T]"]


class Undecided(Exception):  # noqa: N818 - control flow
    """An evaluation met a point that its world does not pin."""

    def __init__(self, fork: Fork[Any]) -> None:
        self.fork = fork


class Impossible(Exception):  # noqa: N818 - control flow
    """The script cannot go this way."""


class TooMany(Exception):  # noqa: N818 - control flow
    """There are more ways than we look at; `points` met so far, with how many ways each has."""

    def __init__(self, points: dict[Point, int]) -> None:
        self.points = points


@dataclass(slots=True, eq=False)
class World:
    """The way taken at some points. `split_defaults`: soft forks split too; `blurred` points have no way: what all have comes back."""

    pins: dict[Point, int]
    split_defaults: bool = False
    split_plain: bool = False
    blurred: frozenset[Point] = frozenset()
    turned: bool = False
    """Something that was asked for depends on a point."""
    common: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """What the values of a blurred fork were found to have in common, by its identity: values share forks, each is looked at once."""

    def follow(self, tree: Tree[T]) -> T | None:
        """The value in this world; where the point is blurred, what all its values have, or None."""
        while isinstance(tree, Fork):
            self.turned = True
            way = self.pins.get(tree.point)
            if way is None:
                if tree.soft and not (self.split_plain if tree.default else self.split_defaults):
                    way = tree.default
                elif tree.point in self.blurred:
                    return self.in_common(tree)
                else:
                    raise Undecided(tree)
            tree = tree.arms[way]
        return tree

    def in_common(self, fork: Fork[T]) -> T | None:
        """What the values at a blurred point have in common."""
        known = self.common.get(id(fork))
        if known is None:
            known = self.common[id(fork)] = (fork, blended([self.follow(arm) for arm in fork.arms]))
        found: T | None = known[1]
        return found


def blended(values: list[Any]) -> Any:
    """What values of several ways have in common, the rest unknown; None where that is nothing. Arrays keep the words at both ends."""
    first = values[0]
    if all(v is first for v in values):
        return first
    if not all(isinstance(v, Array) for v in values):
        return None
    lists = [v.words for v in values]
    texts = [
        [word.text if word.text is not None else (word.fragments, word.splat) for word in words] for words in lists
    ]
    shortest = min(map(len, texts))
    start = next((i for i in range(shortest) if any(t[i] != texts[0][i] for t in texts)), shortest)
    room = shortest - start
    end = next((i for i in range(room) if any(t[-1 - i] != texts[0][-1 - i] for t in texts)), room)
    words = lists[0]
    if not start and not end:
        return None
    place = (
        next(w for own in lists for w in own[start : len(own) - end]).place
        if any(len(t) > start + end for t in texts)
        else None
    )
    if place is None:
        return first
    middle = Word((Fragment(None, place, False, DEPENDS),), place, True)
    return Array((*words[:start], middle, *words[len(words) - end :]))


NOWHERE = object()
"""The result of a way that cannot be taken."""


@dataclass(slots=True, eq=False)
class Exploration:
    budget: int
    points: dict[Point, int] = field(default_factory=dict)


def explore(
    evaluate: Callable[[World], T],
    *,
    limit: int,
    split_defaults: bool = False,
    split_plain: bool = False,
    blurred: frozenset[Point] = frozenset(),
) -> Any:
    """The result of `evaluate` in each world it can tell apart; NOWHERE if none is possible.

    Raises TooMany (with the points met) when there are more than `limit`.
    """
    exploration = Exploration(limit * 2)

    def run(pins: dict[Point, int]) -> Any:
        checkpoint()
        exploration.budget -= 1
        if exploration.budget < 0:
            raise TooMany(exploration.points)
        try:
            return evaluate(World(pins, split_defaults, split_plain, blurred))
        except Impossible:
            return NOWHERE
        except Undecided as undecided:
            fork = undecided.fork
        exploration.points[fork.point] = len(fork.arms)
        arms = [run({**pins, fork.point: way}) for way in range(len(fork.arms))]
        return join(fork.point, arms, fork.soft, fork.default)

    return run({})


def join(point: Point, arms: list[Any], soft: bool = False, default: int = 0) -> Any:
    """A fork, or its one value when all ways that can be taken agree."""
    possible = [a for a in arms if a is not NOWHERE]
    if not possible:
        return NOWHERE
    first = possible[0]
    if all(a is first or (not isinstance(a, Fork) and a == first) for a in possible):
        return first
    return Fork(point, tuple(first if a is NOWHERE else a for a in arms), soft, default)


def transform(tree: Any, change: Callable[[Any], Any], harden: bool = False) -> Any:
    """The tree with `change` done to each leaf; a leaf may become a tree. `harden` makes soft forks split.

    What several ways share stays shared, so that a value grows by what is done to it and not by the ways that lead there.
    """
    done: dict[int, Any] = {}

    def changed(part: Any) -> Any:
        if not isinstance(part, Fork):
            return change(part)
        if id(part) not in done:
            arms = [changed(a) for a in part.arms]
            done[id(part)] = join(part.point, arms, part.soft and not harden, part.default)
        return done[id(part)]

    return changed(tree)


def leaves(tree: Any) -> list[tuple[dict[Point, int], Any]]:
    """Each leaf with the ways that lead to it."""
    if not isinstance(tree, Fork):
        return [({}, tree)]
    found = []
    for way, arm in enumerate(tree.arms):
        for pins, leaf in leaves(arm):
            if pins.get(tree.point, way) == way:
                found.append(({tree.point: way, **pins}, leaf))
    return found


def first_leaf(tree: Any) -> Any:
    """What a value is where every turn takes its first way."""
    while isinstance(tree, Fork):
        tree = tree.arms[0]
    return tree


def parts(tree: Any) -> Iterator[Any]:
    """The tree's forks and leaves, each fork once however many ways lead to it."""
    seen: set[int] = set()
    left = [tree]
    while left:
        part = left.pop()
        if isinstance(part, Fork):
            if id(part) in seen:
                continue
            seen.add(id(part))
            left.extend(reversed(part.arms))
        yield part


def outcomes(decision: Any) -> set[int]:
    """The arms that a decision can come to. Past `MAX_WAYS` turns, ways count that need one turn to go two ways."""
    possible = {part for part in parts(decision) if not isinstance(part, Fork)}
    found: set[int] = set()
    left = MAX_WAYS

    def look(tree: Any, pins: dict[Point, int]) -> None:
        nonlocal left
        left -= 1
        if len(found) == len(possible) or left < 0:
            return
        if not isinstance(tree, Fork):
            found.add(tree)
            return
        taken = pins.get(tree.point)
        for way in range(len(tree.arms)) if taken is None else (taken,):
            look(tree.arms[way], {**pins, tree.point: way})

    look(decision, {})
    return found if left >= 0 else possible


def negated(decision: Any) -> Any:
    """A decision between two ways, the other way round."""
    return transform(decision, lambda way: 1 - way)


def leads(tree: Any, allowed: frozenset[int], pins: dict[Point, int]) -> bool:
    """Whether a decision can come to one of the arms."""
    failed: set[int] = set()

    def comes(part: Any) -> bool:
        if not isinstance(part, Fork):
            return part in allowed
        if id(part) in failed:
            return False
        way = pins.get(part.point)
        if any(map(comes, part.arms if way is None else part.arms[way : way + 1])):
            return True
        failed.add(id(part))
        return False

    return comes(tree)


def order_of(point: Point) -> Any:
    """The order in which points are told: as they stand in the document."""
    return point.place, point.labels, point.number


def points_of(tree: Any) -> set[Point]:
    """The points that a value depends on."""
    return {part.point for part in parts(tree) if isinstance(part, Fork)}


def without_nowhere(tree: Any) -> Any:
    """Ways that cannot be taken, replaced by one that can."""
    return transform(tree, lambda leaf: leaf)
