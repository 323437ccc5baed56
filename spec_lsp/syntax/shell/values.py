"""The possible values of a variable, and the choices of the script that they depend on.

A value is a leaf or a `Fork`: one value for each way the script can go at a `Point`. The same point in two values is the same choice, so
values that were set in one arm stay together. An evaluation runs under a `PathCondition`, which pins some points; an evaluation that meets
a point that is not pinned is run again once for each way (`explore`). So the code that evaluates is straight-line code on plain values, and
only choices that matter to a launch multiply its variants.

A value with too many ways is not listed but computed under the path condition that asks (`Later`, and `Grown` for what is appended to bit
by bit), so that twenty switches cost twenty small values; and a launch is looked at in rows that cover the ways (`covering`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar, Union

from spec_lsp.interruption import checkpoint
from spec_lsp.records import NamedTuple, dataclass, field
from spec_lsp.syntax import covering
from spec_lsp.syntax.word import Fragment, Place, Word

MAX_VARIANTS = 64
MAX_WAYS = 4096
MAX_DEPTH = 40
"""How deeply values may be made from other values; deeper ones are not looked for."""
MAX_SIZE = 1_000_000
MAX_NODES = 600
"""The most choices in one listed value; larger values are computed under the path condition that asks."""

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
    """Words; a splat among them stands for any number of words."""

    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """`declare -A`: the known keys. All other keys are unset."""

    items: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Reference:
    """`declare -n`: another name of a variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Unset:
    """The variable is known not to be set."""


UNSET = Unset()

Value = Scalar | Array | Table | Unset
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Point:
    """A choice in the script. `labels` name each way, in words that continue "when "."""

    place: Place
    labels: tuple[str, ...]
    number: int


@dataclass(slots=True, eq=False)
class Fork(Generic[T]):
    """One value for each way at `point`.

    A `soft` fork takes way `default` without splitting a launch in two, unless something else splits at the same point: `--tp ${TP:-4}` is
    4, but if the script also branches on whether TP is set, both ways are looked at.
    """

    point: Point
    arms: tuple[Tree[T], ...]
    soft: bool = False
    default: int = 0
    shape: Shape | None = None


class Shape(NamedTuple):
    """`points` are all that a fork depends on; `size` counts its choices, shared ones each time, up to MAX_SIZE; `once` says that no point
    occurs twice on the way to a leaf."""

    points: frozenset[Point]
    size: int
    once: bool


@dataclass(slots=True, eq=False)
class Later(Generic[T]):
    """A value with too many ways to be listed. `make` computes it, or a tree of it, under a path condition.

    `possible` gives all outcomes, if it is a decision.
    """

    make: Callable[[PathCondition], Any]
    possible: Callable[[], frozenset[Any]] = frozenset


@dataclass(slots=True, eq=False)
class Grown:
    """A value to which something is appended or prepended: `add` puts the parts together, None if one is unknown."""

    front: Any
    before: Any
    back: Any
    add: Callable[[Any, Any, Any], Any]


Tree = Union[T, "Fork[T]", Later[T], Grown]
TREES = (Fork, Later, Grown)
"""Types that are not values themselves but hold several."""


class Undecided(Exception):  # noqa: N818 - control flow
    """An evaluation met a point that its path condition does not pin."""

    def __init__(self, fork: Fork[Any]) -> None:
        self.fork = fork


class Impossible(Exception):  # noqa: N818 - control flow
    """The script cannot go this way."""


class TooDeep(Exception):  # noqa: N818 - control flow
    """Values made from other values are nested more deeply than we follow."""


class TooMany(Exception):  # noqa: N818 - control flow
    """There are more ways than we look at; `points` met so far, with the number of ways of each."""

    def __init__(self, points: dict[Point, int]) -> None:
        self.points = points


class Holds(Protocol):
    """Restricts a path condition to the ways that lead to where the script is."""

    def admits(self, world: PathCondition, point: Point, way: int) -> bool:
        """Whether one can still get there after taking a way at a point."""

    def settle_ways(self, world: PathCondition, point: Point) -> None:
        """Pin what follows from the way at a point."""


@dataclass(slots=True, eq=False)
class PathCondition:
    """Which way is taken at each of some points where a script forks. `split_defaults`: forks at defaults (`${X:-4}`) count as well. At a
    `blurred` point no way is taken: it gives what all its ways have in common.

    With a `row`, ways that are not pinned are chosen by it. `eager`: a value that has too many ways ends the evaluation.
    """

    pins: dict[Point, int]
    split_defaults: bool = False
    split_plain: bool = False
    blurred: frozenset[Point] = frozenset()
    turned: bool = False
    """Whether something that was asked for depends on a point."""
    common: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """The common part of the values of a blurred fork, by identity: values share forks, so each is computed once."""
    row: covering.Row[Point] | None = None
    holds: Holds | None = None
    eager: bool = False
    usual: dict[Point, int] = field(default_factory=dict)
    """Soft forks that were followed without a choice: the row can no longer take another way there."""
    made: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """The results of values that were computed here, by identity."""
    depth: int = 0
    steps: int = 0

    def follow(self, tree: Any) -> Any:
        """The value under this path condition; at a blurred point, what all values have in common, or None."""
        while True:
            if isinstance(tree, Fork):
                self.turned = True
                way = self.pins.get(tree.point)
                if way is None:
                    if tree.soft and not (self.split_plain if tree.default else self.split_defaults):
                        way = tree.default
                        if self.row is not None:
                            self.usual[tree.point] = way
                    elif tree.point in self.blurred:
                        return self.in_common(tree)
                    else:
                        way = self.choose(tree)
                elif self.row is not None:
                    self.row.take(tree.point, way, len(tree.arms))
                tree = tree.arms[way]
            elif isinstance(tree, Later):
                tree = self.later(tree)
            elif isinstance(tree, Grown):
                return self.grown(tree)
            else:
                return tree

    def choose(self, fork: Fork[Any]) -> int:
        """The way that the row takes at a point that is not pinned."""
        if self.row is None:
            raise Undecided(fork)
        point, holds = fork.point, self.holds
        ways = [w for w in range(len(fork.arms)) if holds is None or holds.admits(self, point, w)]
        if not ways:
            raise Impossible
        way = self.pins[point] = self.row.way(point, ways, len(fork.arms))
        if self.usual.get(point, way) != way:
            raise Undecided(fork)  # the assumed default is not taken: evaluate again with what is known now
        if holds is not None:
            holds.settle_ways(self, point)
        return way

    def later(self, later: Later[Any]) -> Any:
        """The value of a `Later` under this path condition."""
        known = self.made.get(id(later))
        if known is None:
            if self.eager:
                raise TooMany({})
            if self.depth >= MAX_DEPTH:
                return self.too_deep()
            self.depth += 1
            self.steps += 1
            try:
                known = self.made[id(later)] = later, self.follow(later.make(self))
            finally:
                self.depth -= 1
        self.turned = True
        return known[1]

    def too_deep(self) -> None:
        """Values nested too deeply are unknown, if the evaluation allows that."""
        if not self.blurred:
            raise TooDeep

    def grown(self, grown: Grown) -> Any:
        """The value of a `Grown` value, however often it was added to."""
        if self.eager:
            raise TooMany({})
        known = self.made.get(id(grown))
        if known is None and self.depth >= MAX_DEPTH:
            return self.too_deep()
        if known is None:
            added: list[Grown] = []
            tree: Any = grown
            while True:
                while isinstance(tree, Fork):
                    way = self.pins.get(tree.point)
                    if way is None or tree.soft or tree.point in self.blurred:
                        break
                    if self.row is not None:
                        self.row.take(tree.point, way, len(tree.arms))
                    tree = tree.arms[way]
                if isinstance(tree, Fork) and not tree.soft and tree.point not in self.blurred:
                    self.choose(tree)
                elif isinstance(tree, Grown) and id(tree) not in self.made:
                    self.steps += 1
                    added.append(tree)
                    tree = tree.before
                else:
                    break
            self.depth += 1
            try:
                value = self.follow(tree)
                for one in reversed(added):
                    value = one.add(self.follow(one.front), value, self.follow(one.back))
            finally:
                self.depth -= 1
            known = self.made[id(grown)] = grown, value
        self.turned = True
        return known[1]

    def asking(self, make: Callable[[], T], split_defaults: bool, split_plain: bool) -> T:
        """The result of `make` under this path condition, with `split_defaults` changed."""
        kept = self.split_defaults, self.split_plain
        self.split_defaults, self.split_plain = split_defaults, split_plain
        try:
            return make()
        finally:
            self.split_defaults, self.split_plain = kept

    def in_common(self, fork: Fork[Any]) -> Any:
        """The common part of the values at a blurred point."""
        known = self.common.get(id(fork))
        if known is None:
            known = self.common[id(fork)] = (fork, blended([self.follow(arm) for arm in fork.arms]))
        return known[1]


def blended(values: list[Any]) -> Any:
    """The common part of the values of several ways, with the rest unknown; None if there is none. Arrays keep the words at both ends."""
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
    evaluate: Callable[[PathCondition], T],
    limit: int,
    start: Callable[[dict[Point, int]], PathCondition] = PathCondition,
) -> Any:
    """The result of `evaluate` under each path condition that it distinguishes; NOWHERE if none is possible. `start` makes one with some
    ways pinned.

    Raises TooMany (with the points met) when there are more than `limit`.
    """
    return _explored(evaluate, Exploration(limit * 2), start, {})


def _explored(
    evaluate: Callable[[PathCondition], T],
    exploration: Exploration,
    start: Callable[[dict[Point, int]], PathCondition],
    pins: dict[Point, int],
) -> Any:
    """No closure, as are others below: one that calls itself would keep all that it sees until garbage is looked for."""
    checkpoint()
    exploration.budget -= 1
    if exploration.budget < 0:
        raise TooMany(exploration.points)
    try:
        return evaluate(start(pins))
    except Impossible:
        return NOWHERE
    except Undecided as undecided:
        fork = undecided.fork
    exploration.points[fork.point] = len(fork.arms)
    arms = [_explored(evaluate, exploration, start, {**pins, fork.point: way}) for way in range(len(fork.arms))]
    return join(fork.point, arms, fork.soft, fork.default)


def cover(
    evaluate: Callable[[PathCondition], T],
    most: int,
    start: Callable[[dict[Point, int]], PathCondition] = PathCondition,
) -> tuple[list[tuple[dict[Point, int], T]], covering.Ways, int]:
    """The results of `evaluate` in rows that cover the ways of all points it asks about, which ways these are, and the steps it took."""
    cover: covering.Cover[Point] = covering.Cover()

    def run(row: covering.Row[Point]) -> T:
        def go(pins: dict[Point, int]) -> T:
            checkpoint()
            world = start(pins)
            world.row = row
            try:
                return evaluate(world)
            except Undecided:
                raise covering.Again({**world.pins, **row.taken}) from None
            except Impossible:
                raise covering.Refused from None

        return covering.led(row, go, lambda point: len(point.labels))

    found, complete = covering.rows(run, most, cover)
    ways: covering.Ways = "all" if not cover.ways else "pairs" if complete else "some"
    return found, ways, cover.steps


def join(point: Point, arms: list[Any], soft: bool = False, default: int = 0) -> Any:
    """A fork, or its one value if all ways that can be taken agree."""
    possible = [a for a in arms if a is not NOWHERE]
    if not possible:
        return NOWHERE
    first = possible[0]
    if all(a is first or (not isinstance(a, Fork) and a == first) for a in possible):
        return first
    return Fork(point, tuple(first if a is NOWHERE else a for a in arms), soft, default)


def transform(tree: Any, change: Callable[[Any], Any], harden: bool = False) -> Any:
    """The tree with `change` applied to each leaf; a leaf may become a tree. `harden` makes soft forks split.

    What several ways share stays shared, so the cost depends on the size of the tree and not on the number of ways.
    """
    return _transformed(tree, change, harden, {})


def _transformed(part: Any, change: Callable[[Any], Any], harden: bool, done: dict[int, Any]) -> Any:
    if isinstance(part, (Later, Grown)):
        return changed_later(part, change, harden)
    if not isinstance(part, Fork):
        return change(part)
    if id(part) not in done:
        arms = [_transformed(a, change, harden, done) for a in part.arms]
        done[id(part)] = join(part.point, arms, part.soft and not harden, part.default)
    return done[id(part)]


def changed_later(later: Later[Any] | Grown, change: Callable[[Any], Any], harden: bool) -> Later[Any]:
    """`change` applied to a value when it is computed."""

    def make(world: PathCondition) -> Any:
        value = world.asking(lambda: world.follow(later), True, world.split_plain) if harden else world.follow(later)
        return change(value)

    def possible() -> frozenset[Any]:
        before = later.possible() if isinstance(later, Later) else ()
        return frozenset(leaf for value in before for leaf in parts(change(value)) if not isinstance(leaf, Fork))

    return Later(make, possible)


def is_later(tree: Any) -> bool:
    """Whether some of a value is computed under the path condition that asks."""
    return any(isinstance(part, (Later, Grown)) for part in parts(tree))


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


def shape_of(fork: Fork[Any]) -> Shape:
    """What a fork depends on, and its size; computed once."""
    if fork.shape is None:
        below = [shape_of(arm) for arm in fork.arms if isinstance(arm, Fork)]
        points = frozenset().union(*(one.points for one in below))
        once = fork.point not in points and all(one.once for one in below)
        fork.shape = Shape(points | {fork.point}, 1 + min(sum(one.size for one in below), MAX_SIZE), once)
    return fork.shape


def size_of(tree: Any) -> int:
    """The largest number of choices in a value; shared ones are counted each time."""
    return shape_of(tree).size if isinstance(tree, Fork) else 1


def pruned(tree: Any) -> Any:
    """The same tree, in which no point occurs twice on the way to a leaf."""
    if not isinstance(tree, Fork) or shape_of(tree).once:
        return tree
    return _pruned(tree, {}, {})


def _pruned(part: Any, pins: dict[Point, int], done: dict[tuple[int, frozenset[tuple[Point, int]]], Any]) -> Any:
    if not isinstance(part, Fork):
        return part
    points = shape_of(part).points
    key = id(part), frozenset((p, w) for p, w in pins.items() if p in points)
    if key not in done:
        way = pins.get(part.point)
        if way is not None:
            done[key] = _pruned(part.arms[way], pins, done)
        elif len(done) > MAX_NODES:
            done[key] = part
        else:
            arms = [_pruned(arm, {**pins, part.point: i}, done) for i, arm in enumerate(part.arms)]
            same = all(a is b for a, b in zip(arms, part.arms, strict=True))
            done[key] = part if same else join(part.point, arms, part.soft, part.default)
    return done[key]


def are_many(*trees: Any) -> bool:
    """Whether values have more choices together than are listed, each counted once."""
    if sum(map(size_of, trees)) <= MAX_NODES:
        return False
    left = MAX_NODES
    for tree in trees:
        left -= sum(1 for _ in islice(parts(tree), max(left, 0) + 1))
    return left < 0


def first_leaf(tree: Any, holds: Holds | None = None) -> Any:
    """The value if every choice takes its first way."""
    while isinstance(tree, Fork):
        tree = tree.arms[0]
    if isinstance(tree, (Later, Grown)):
        try:
            return PathCondition({}, row=covering.Row(covering.Cover(), {}), holds=holds).follow(tree)
        except (TooDeep, Undecided, Impossible):
            return None
    return tree


def paths(tree: Any, most: int) -> int:
    """The number of ways of a value in which no point occurs twice; more than `most` if it is not listed."""
    return _paths(tree, most, {})


def _paths(part: Any, most: int, known: dict[int, int]) -> int:
    if isinstance(part, (Later, Grown)):
        return most + 1
    if not isinstance(part, Fork):
        return 1
    if id(part) not in known:
        known[id(part)] = min(sum(_paths(arm, most, known) for arm in part.arms), most + 1)
    return known[id(part)]


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
    """The arms that a decision can lead to. With more than `MAX_WAYS` choices, impossible ways (one choice going two ways) are counted
    too."""
    possible = possible_leaves(decision)
    if is_later(decision):
        return possible
    found: set[int] = set()
    left = MAX_WAYS
    parts: list[tuple[Any, dict[Point, int]]] = [(decision, {})]
    while parts and len(found) < len(possible):
        tree, pins = parts.pop()
        left -= 1
        if left < 0:
            return possible
        if isinstance(tree, Fork):
            taken = pins.get(tree.point)
            ways = range(len(tree.arms)) if taken is None else (taken,)
            parts += ((tree.arms[way], {**pins, tree.point: way}) for way in ways)
        else:
            found.add(tree)
    return found


def possible_leaves(decision: Any) -> set[int]:
    """The arms that a decision contains."""
    found: set[int] = set()
    for part in parts(decision):
        if isinstance(part, Later):
            found |= part.possible()
        elif not isinstance(part, Fork):
            found.add(part)
    return found


def leads(tree: Any, allowed: frozenset[int], pins: dict[Point, int], known: dict[int, bool] | None = None) -> bool:
    """Whether a decision can lead to one of the arms. `known` are the results for its parts, by identity."""
    if isinstance(tree, Later):
        return not allowed.isdisjoint(tree.possible())
    if not isinstance(tree, Fork):
        return tree in allowed
    known = {} if known is None else known
    if id(tree) not in known:
        way = pins.get(tree.point)
        arms = tree.arms if way is None else tree.arms[way : way + 1]
        known[id(tree)] = any(leads(arm, allowed, pins, known) for arm in arms)
    return known[id(tree)]


def order_of(point: Point) -> Any:
    """The order in which points are reported: that of the document."""
    return point.place, point.labels, point.number


def points_of(tree: Any) -> frozenset[Point]:
    """The points that a value depends on."""
    return shape_of(tree).points if isinstance(tree, Fork) else frozenset()
