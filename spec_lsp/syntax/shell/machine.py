"""A script's variables and the ways it can go: expressions are evaluated for each way, and the results of ways are joined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, TypeVar

from spec_lsp.records import dataclass
from spec_lsp.syntax.covering import Ways
from spec_lsp.syntax.shell import ast
from spec_lsp.syntax.shell.expand import ALWAYS_SET, FROM_COMMAND_LINE, Expander
from spec_lsp.syntax.shell.memory import Memory, Remembered, remember, same
from spec_lsp.syntax.shell.questions import asked, name_of
from spec_lsp.syntax.shell.state import ARGUMENTS, FILE, MISSING, ORIGIN, OUTPUT, STATUS, Frame, State, origin_in
from spec_lsp.syntax.shell.values import (
    FROM_ENVIRONMENT,
    MAX_NODES,
    MAX_VARIANTS,
    NOWHERE,
    TREES,
    UNSET,
    Array,
    Fork,
    Impossible,
    Later,
    PathCondition,
    Point,
    Reference,
    Scalar,
    TooDeep,
    TooMany,
    Tree,
    Value,
    are_many,
    changed_later,
    cover,
    explore,
    is_later,
    leads,
    leaves,
    order_of,
    outcomes,
    points_of,
    pruned,
    size_of,
    transform,
)
from spec_lsp.syntax.source import FileSource, Source
from spec_lsp.syntax.word import Fragment, Place, Word, unknown

MAX_STEPS = 12_000
VARIABLES_OF_A_STEP = 500
"""How many variables may be copied for the cost of one command: limits a script that sets thousands."""
SIZE_OF_A_STEP = 20
"""How many words, or pieces of a text, may be created for the cost of one command: limits values that are copied again and again."""
TURNS_OF_A_STEP = 150
"""How many choices the values left by the arms may have together for the cost of one command."""
MAX_CALLS = 24
MAX_EVALUATIONS = 12_000
MAX_ASSIGNED_WAYS = 32
MAX_TURNS_LEFT = 16
TESTED: frozenset[bool | None] = frozenset({True, False, None})
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The point at which a question is decided; `turned` if the question is the opposite of its key."""

    point: Point
    turned: bool
    values: tuple[Any, ...]
    """The values that the question is about, kept so that their ids are not reused."""


class Machine(ABC):
    """The state that statements read and change. A subclass defines the effect of each statement.

    `memory` is that of the last run over the same document; `memory_left` is for the next.
    """

    def __init__(
        self,
        document: str,
        memory: Memory,
        assigns: Callable[[], frozenset[str]],
    ) -> None:
        self.document = document
        self.assigns = assigns
        self.zsh = False
        self.dash = False
        self.expands_aliases = False
        self.state = State({})
        self.memory = memory
        self.memory_left = Memory()
        self.reads: dict[str, Any] | None = None
        """What the statement whose result will be remembered has asked for; `met` are the points among it."""
        self.met: dict[Any, Point] = {}
        self.turns: dict[Any, int] = {}
        self.answers: dict[Any, Answer] = {}
        """The outcomes of tests, by the question and the values that it is about."""
        self.frames: list[Frame] = []
        self.constrained_by: Any = ()
        self.constrained: dict[Point, list[tuple[Any, frozenset[int]]]] = {}
        """The results of `constrained_by` for each point."""
        self.kept_words: dict[tuple[int, int], list[Word]] = {}
        self.printed: dict[tuple[int, int], Any] = {}
        self.capturing = 0
        self.assigned: frozenset[str] | None = None
        self.assignments: dict[str, bool] = {}
        """Whether the script sets a variable anywhere, for variables about which this was asked."""
        self.wrote_files = False
        self.steps = 0
        self.evaluations = 0
        self.calls = 0

    @abstractmethod
    def noted(self) -> Sequence[int]:
        """How many launches, calls and sourced files have been recorded."""

    @abstractmethod
    def run(self, script: ast.Script, source: Source) -> None:
        """Run the statements of a script in the current state."""

    # What an expansion reads.

    def lookup(self, name: str) -> Tree[Value] | None:
        if name == STATUS:
            return self.last_status()
        found: Any = self.variable(name)
        if isinstance(found, Reference):
            return self.lookup(found.name) if found.name != name else None
        if found is None and name.isdigit():
            return self.positional(int(name))
        if found is None and name == "#":
            return self.count()
        if found is None and (name == "0" or name == "BASH_SOURCE"):
            return self.script_path()
        value: Tree[Value] | None = found
        return value

    def variable(self, name: str) -> Any:
        """The value that the script has set a variable to; the question is recorded."""
        found = self.state.vars.get(name)
        if self.reads is not None:
            self.reads[name] = found
        return found

    def remembered(self, node: ast.Simple | ast.Assign, source: Source, compute: Callable[[], Any]) -> Any:
        """The result of a statement, taken from the last run if nothing that it reads has changed."""
        if not isinstance(source, FileSource) or self.capturing or self.reads is not None:
            return compute()
        key = (id(node), source.base, source.document)
        functions = (self.state.functions.keys() - (), self.wrote_files, self.state.exported)
        for entry in self.memory.results.get(key, ()):
            if (
                entry.functions == functions
                and same(entry.constraints, self.state.constraints)
                and self.reads_again(entry)
            ):
                self.memory_left.points.update(entry.points)
                break
        else:
            self.reads, self.met = {}, {}
            noted = self.noted()
            try:
                result = compute()
            finally:
                reads, self.reads = self.reads, None
            if self.noted() != noted or (isinstance(result, TREES) and is_later(result)):
                return result  # a command substitution started something, which must be reported each time; or its reads are unknown
            entry = remember(node, reads, self.met, self.state.constraints, functions, result)
        self.memory_left.keep(key, entry)
        return entry.result

    def reads_again(self, entry: Remembered) -> bool:
        """Whether what a statement read last time would be the same now."""
        now = list(map(self.state.vars.get, entry.names))
        if any(a is not b and not same(a, b) for a, b in zip(now, entry.values, strict=True)):
            return False
        if any(self.memory_left.points.get(key, point) is not point for key, point in entry.points.items()):
            return False
        return all(self.sets(name) is value for name, value in entry.sets.items())

    def script_path(self) -> Tree[Value]:
        name = self.document.rpartition("/")[2] or "script"
        return Scalar((Fragment(f"./{name}", Place(self.document, 0, 0), False, fixed=True),))

    def positional(self, number: int) -> Tree[Value] | None:
        if number == 0:
            return self.script_path()
        arguments = self.variable(ARGUMENTS)
        if arguments is None:
            return None

        def pick(leaf: Value) -> Value:
            words = leaf.words if isinstance(leaf, Array) else ()
            for i, word in enumerate(words[:number]):
                if word.splat:
                    return Scalar((Fragment(None, word.place, False, word.reason or FROM_COMMAND_LINE),))
                if i == number - 1:
                    return Scalar(word.fragments)
            return UNSET

        picked: Tree[Value] = transform(arguments, pick)
        return picked

    def last_status(self) -> Tree[Value]:
        """`$?`: 0 after success; the number of a failure is unknown."""
        place = Place(self.document, 0, 0)

        def number(leaf: Any) -> Value:
            text = "0" if leaf is True else None
            return Scalar((Fragment(text, place, False, "exit status", fixed=True),))

        told: Tree[Value] = transform(self.variable(STATUS), number)
        return told

    def count(self) -> Tree[Value] | None:
        arguments = self.variable(ARGUMENTS)
        if arguments is None:
            return None

        def size(leaf: Value) -> Value:
            words = leaf.words if isinstance(leaf, Array) else ()
            place = words[0].place if words else Place(self.document, 0, 0)
            if any(w.splat for w in words):
                return Scalar((Fragment(None, place, False, FROM_COMMAND_LINE),))
            return Scalar((Fragment(str(len(words)), place, False, fixed=True),))

        counted: Tree[Value] = transform(arguments, size)
        return counted

    def point(self, name: str) -> Point:
        shown = f"`${name}`" if name.isdigit() else f"`{name}`"
        return self.kept_point(name, Place(self.document, 0, 0), (f"{shown} is not set", f"{shown} is set"))

    def entry(self, subscript: str, keys: tuple[str, ...]) -> Point:
        shown = f"`${subscript}`" if subscript.isdigit() else f"`{subscript}`"
        labels = tuple(f"{shown} is {f'`{key}`' if key else 'anything else'}" for key in keys)
        return self.kept_point((subscript, keys), Place(self.document, 0, 0), labels)

    def all_assigned(self) -> frozenset[str]:
        """The variables that the script sets somewhere."""
        if self.assigned is None:
            self.assigned = self.assigns()
        return self.assigned

    def sets(self, name: str) -> bool:
        found = self.assignments[name] = name in self.all_assigned()
        if self.reads is not None:
            self.reads["=" + name] = found
        return found

    def new_point(self, place: Place, labels: Sequence[str]) -> Point:
        turn = (place, tuple(labels))
        self.turns[turn] = self.turns.get(turn, 0) + 1
        return self.kept_point((*turn, self.turns[turn]), place, tuple(labels))

    def kept_point(self, key: Any, place: Place, labels: tuple[str, ...]) -> Point:
        """The point of the last run, so that the values that depend on it are the same objects."""
        point = self.memory_left.points.get(key)
        if point is None:
            point = self.memory.points.get(key) or Point(
                place, labels, self.turns.get(key[:2], 0) if isinstance(key, tuple) else 0
            )
            self.memory_left.points[key] = point
        if self.reads is not None:
            self.met[key] = point
        return point

    def substitute(
        self, node: ast.Substitution, body: ast.Script, source: Source, world: PathCondition
    ) -> tuple[Fragment, ...]:
        here = source.place(node.start, node.end)
        constant = self.known_substitution(body, source, world)
        if constant is not None:
            return constant
        if self.calls >= MAX_CALLS or self.steps > MAX_STEPS:
            return (Fragment(None, here, False, "command substitution"),)
        key = (id(node), id(source))
        if key not in self.printed:
            self.printed[key] = self.capture(body, source)
        tree = self.printed[key]
        value = world.follow(tree) if tree is not MISSING else None
        if not isinstance(value, Scalar):
            return (Fragment(None, here, False, "command substitution"),)
        return without_last_newlines(
            tuple(Fragment(None, here, False, "command substitution") if f.text is None else f for f in value.fragments)
        )

    def capture(self, body: ast.Script, source: Source) -> Any:
        """The output of a script, for each way it can go."""
        outer, frames = self.state, self.frames
        self.state = outer.fork()
        self.state.vars[OUTPUT] = Scalar(())
        self.frames = []
        self.calls += 1
        self.capturing += 1
        try:
            self.run(body, source)
            return self.state.vars.get(OUTPUT, MISSING)
        finally:
            self.state, self.frames = outer, frames
            self.calls -= 1
            self.capturing -= 1

    def known_substitution(self, body: ast.Script, source: Source, world: PathCondition) -> tuple[Fragment, ...] | None:
        """`$(dirname "$0")`, `$(cd DIR && pwd)`, `$(basename X)`: folders of the script itself."""
        if len(body.items) != 1:
            return None
        item = body.items[0]
        if isinstance(item, ast.AndOr) and len(item.rest) == 1 and isinstance(item.first, ast.Simple):
            last = item.rest[0][1]
            if (
                name_of(item.first) == "cd"
                and isinstance(last, ast.Simple)
                and name_of(last) == "pwd"
                and len(item.first.words) >= 2
            ):
                return Expander(self, world).scalar(item.first.words[-1], source)
            return None
        if not isinstance(item, ast.Simple) or len(item.words) < 2 or item.redirects:
            return None
        name = name_of(item)
        if name in ("realpath", "readlink"):
            return Expander(self, world).scalar(item.words[-1], source)
        if name not in ("dirname", "basename"):
            return None
        words = Expander(self, world).words(item.words[1:], source)
        if len(words) != 1 or words[0].text is None:
            return None
        folder, slash, last_part = words[0].text.rstrip("/").rpartition("/")
        text = last_part if name == "basename" else (folder or ("/" if slash else "."))
        return (Fragment(text, words[0].place, False, fixed=True),)

    # Evaluation under path conditions.

    def check(self, world: PathCondition) -> None:
        """Continue only on ways that lead here; ways that are then certain are pinned."""
        for tree, allowed in self.state.constraints:
            self.hold(tree, allowed, world)

    def reached(self, pins: dict[Point, int]) -> bool:
        """Whether the script reaches the current state on some way with these choices."""
        return all(leads(tree, allowed, pins) for tree, allowed in self.state.constraints)

    def turns_left(self, pins: dict[Point, int]) -> dict[Point, int]:
        """The choices, besides `pins`, that the current state determines; none if it was reached through more than a person could read."""
        points = {point for tree, _ in self.state.constraints for point in points_of(tree)}
        if len(points) > MAX_TURNS_LEFT:
            return {}
        left: dict[Point, int] = {}
        for point in sorted(points - pins.keys(), key=order_of):
            ways = [way for way in range(len(point.labels)) if self.reached({**pins, point: way})]
            if len(ways) == 1:
                left[point] = ways[0]
        return left

    def hold(self, tree: Any, allowed: frozenset[int], world: PathCondition) -> None:
        """Pin the ways that the constraint determines."""
        known: dict[int, bool] = {}
        while isinstance(tree, Fork):
            way = world.pins.get(tree.point)
            if way is None:
                possible = [i for i, arm in enumerate(tree.arms) if leads(arm, allowed, world.pins, known)]
                if not possible:
                    raise Impossible
                if len(possible) > 1:
                    return
                way = world.pins[tree.point] = possible[0]
            tree = tree.arms[way]
        if isinstance(tree, Later):
            if world.row is None:
                return
            tree = world.follow(tree)
        if tree not in allowed:
            raise Impossible

    def admits(self, world: PathCondition, point: Point, way: int) -> bool:
        """Whether one can still reach the current state after taking a way at a point."""
        pins = {**world.pins, point: way}
        return all(leads(tree, allowed, pins) for tree, allowed in self.constraints_on(point))

    def settle_ways(self, world: PathCondition, point: Point) -> None:
        for tree, allowed in self.constraints_on(point):
            self.hold(tree, allowed, world)

    def constraints_on(self, point: Point) -> Sequence[tuple[Any, frozenset[int]]]:
        """The constraints of the current state on a point."""
        if self.constrained_by is not self.state.constraints:
            self.constrained_by, self.constrained = self.state.constraints, {}
            for constraint in self.state.constraints:
                for each in points_of(constraint[0]):
                    self.constrained.setdefault(each, []).append(constraint)
        return self.constrained.get(point, ())

    def world(self, defaults: bool = False, plain: bool = False, blurred: frozenset[Point] = frozenset()) -> Any:
        """Creates path conditions that know where the script is."""
        return lambda pins: PathCondition(pins, defaults, plain, blurred, holds=self)

    def eager(self, defaults: bool = False, plain: bool = False) -> Any:
        """Creates path conditions in which values are listed completely, or not at all."""
        return lambda pins: PathCondition(pins, defaults, plain, holds=self, eager=True)

    def decide(self, what: Callable[[Expander], Any], possible: frozenset[Any], defaults: bool, plain: bool) -> Any:
        """The tree of outcomes of a question under each path condition; `possible` are all outcomes."""
        try:
            return explore(self.inside(what), self.room(MAX_VARIANTS), self.eager(defaults, plain))
        except TooMany:
            pass
        return self.later(lambda x: x.world.asking(lambda: what(x), defaults, plain), lambda: possible)

    def later(self, what: Callable[[Expander], Any], possible: Callable[[], frozenset[Any]] = frozenset) -> Later[Any]:
        """A value that is computed under the path condition that asks, with the variables as they are now."""
        self.steps += len(self.state.vars) // VARIABLES_OF_A_STEP
        then, printed = self.state.fork(), dict(self.printed)

        def make(world: PathCondition) -> Any:
            machine = world.holds
            assert isinstance(machine, Machine)
            return machine.as_it_was(then, printed, lambda: what(Expander(machine, world)))

        return Later(make, possible)

    def as_it_was(self, then: State, known: dict[tuple[int, int], Any], make: Callable[[], Any]) -> Any:
        """The result of `make` with the variables of an earlier time. Its reads are not recorded, as it depends on no current variable."""
        self.evaluations += 1
        now, reads, printed = self.state, self.reads, self.printed
        self.state, self.printed = then, known
        self.reads = None if reads is None else {}
        try:
            return make()
        finally:
            self.state, self.reads, self.printed = now, reads, printed

    def some_ways(self, tree: Any) -> list[Any]:
        """The values of an expression on selected ways that cover all of them."""
        try:
            return [value for _, value in cover(lambda world: world.follow(tree), MAX_VARIANTS, self.world())[0]]
        except TooDeep:
            return []

    def room(self, ways: int, otherwise: int = 1) -> int:
        """How many ways are looked at; fewer after too many evaluations."""
        return ways if self.evaluations <= MAX_EVALUATIONS else otherwise

    @property
    def exhausted(self) -> bool:
        """A part of the script was not looked at, because the script takes too many steps."""
        return self.steps > MAX_STEPS

    def in_common(self, what: Callable[[Expander], Any]) -> Any:
        """The common outcome of all ways; where they differ, what all have in common, or None."""
        inside = self.inside(what)
        try:
            return explore(inside, 1, self.eager())
        except TooMany:
            pass
        blurred = frozenset(self.memory_left.points.values())
        try:
            return explore(inside, MAX_VARIANTS, self.world(blurred=blurred))
        except (TooMany, TooDeep):
            return None

    def ways(self, what: Callable[[Expander], T]) -> tuple[list[tuple[dict[Point, int], T]], Ways, Any]:
        """The outcomes of all ways, or of a covering selection; and the tree of all ways if they are all."""
        if not any(is_later(tree) for tree, _ in self.state.constraints):
            try:
                tree = explore(self.inside(what), self.room(MAX_VARIANTS), self.eager())
                return ([] if tree is NOWHERE else leaves(tree)), "all", tree
            except TooMany:
                pass
        try:
            found, ways, steps = cover(self.inside(what), self.room(MAX_VARIANTS, 2), self.world())
        except TooDeep:
            common = self.in_common(what)
            return ([] if common in (None, NOWHERE) else [({}, common)]), "some", None
        self.evaluations += steps // MAX_VARIANTS
        return found, ways, None

    def inside(self, what: Callable[[Expander], Any]) -> Callable[[PathCondition], Any]:
        """An evaluation under one path condition; raises Impossible if the current state is not reached under it."""

        def evaluated(world: PathCondition) -> Any:
            self.evaluations += 1
            self.check(world)
            return what(Expander(self, world, None if self.capturing else self.kept_words))

        return evaluated

    def value_of(self, what: Callable[[Expander], Value]) -> Any:
        """The value of an assignment, with the ways that its parts depend on."""
        try:
            value = explore(self.inside(what), self.room(MAX_ASSIGNED_WAYS), self.eager(True))
            self.steps += length_of(value) // SIZE_OF_A_STEP
            return value
        except TooMany:
            return self.later(what)

    def tested(self, what: Callable[[Expander], bool | None], emptiness: bool = False) -> Any:
        """The outcomes of a test under each path condition; None where unknown. A test for emptiness distinguishes whether variables are
        set."""
        tree = self.decide(what, TESTED, True, emptiness)
        return None if tree is NOWHERE else tree

    # Choices.

    def branch(self, decision: Any, arms: Sequence[Callable[[], None]]) -> None:
        """Run each arm that can be taken, and join the results. `decision` is a tree of indices of arms."""
        if decision is NOWHERE:
            self.state.alive = False
            return
        taken = sorted(outcomes(decision))
        if len(taken) == 1:
            arms[taken[0]]()
            return
        before = self.state
        ends: dict[int, State] = {}
        for way in taken:
            self.turn(before, decision, way)
            arms[way]()
            if self.state.alive:
                ends[way] = self.state
        self.meet(before, decision, taken, ends)

    def turn(self, before: State, decision: Any, way: int) -> None:
        """Continue from a state on the way on which the decision has these outcomes."""
        self.state = before.fork()
        self.steps += len(before.vars) // VARIABLES_OF_A_STEP
        self.state.constraints = (*before.constraints, (decision, frozenset({way})))

    def meet(self, before: State, decision: Any, taken: Sequence[int], ends: dict[int, State]) -> None:
        """Continue with the joined results of the ways taken; `ends` are those that do not end the script."""
        self.state = self.joined(before, decision, ends)
        self.state.constraints = (*before.constraints, *still_open(decision, taken, ends, len(before.constraints) + 1))

    def joined(self, before: State, decision: Any, ends: dict[int, State]) -> State:
        if not ends:
            before = before.fork()
            before.alive = False
            return before
        first = next(iter(ends.values()))
        state = State(dict(first.vars), first.exported, first.functions, before.constraints)
        for end in ends.values():
            state.exported |= end.exported
            state.functions = {**end.functions, **state.functions}
        if len(ends) == 1:
            return state
        names: set[str] = set()
        for end in ends.values():
            if end is not first:
                names.update(n for n, v in end.vars.items() if first.vars.get(n) is not v)
                names.update(n for n in first.vars if n not in end.vars)
        turns = 0
        told = {name for name in names if name.startswith(ORIGIN)}
        for name in told:
            state.vars.pop(name, None)
        for name in names - told:
            values = {way: end.vars.get(name, MISSING) for way, end in ends.items()}
            origins = [origin_in(end, name) for end in ends.values()]
            values = {way: self.outside(name) if v is MISSING else v for way, v in values.items()}
            tree = self.chosen_by(decision, values)
            turns += min(size_of(tree), MAX_NODES)
            if tree is not NOWHERE:
                state.vars[name] = tree
                if all(o is origins[0] or o == origins[0] == f"${name}" for o in origins):
                    state.vars[ORIGIN + name] = (tree, origins[0])
        self.steps += turns // TURNS_OF_A_STEP
        return state

    def chosen_by(self, decision: Any, values: dict[int, Any]) -> Any:
        """The value left by an arm, for each arm that a decision can lead to."""

        def chosen(arm: int) -> Any:
            return values.get(arm, NOWHERE)

        if not are_many(decision, *values.values()):
            return pruned(transform(decision, chosen, harden=True))
        some = next(iter(values.values()))
        whole: Later[Any] = Later(lambda world: world.asking(lambda: world.follow(decision), True, world.split_plain))
        return changed_later(whole, lambda arm: values.get(arm, some), False)

    def outside(self, name: str) -> Any:
        """The value of a variable that the script has not set, to be joined with others."""
        if name.startswith(FILE) or name in (STATUS, OUTPUT):
            return UNSET
        place = Place(self.document, 0, 0)
        if name == ARGUMENTS:
            return Array((unknown(place, FROM_COMMAND_LINE, splat=True),))
        reason = FROM_COMMAND_LINE if name.isdigit() else FROM_ENVIRONMENT
        value = Scalar((Fragment(None, place, False, reason),))
        default = 0 if self.sets(name) else 1  # the same as for an expansion of an unset variable
        return value if name in ALWAYS_SET else Fork(self.point(name), (UNSET, value), True, default)

    def decided(self, node: ast.Command | None, source: Source, place: Place, labels: Sequence[str]) -> Any:
        """The last status as a decision: 0 for success, 1 for failure, and both ways where it is unknown.

        If the same test was already run on the same values, its outcome is the same (`node`; None if it is not a single command).
        """
        question = asked(node, source) if node is not None else None
        key: Any = None
        turned = False
        origins: tuple[Any, ...] = ()
        if question is not None:
            text, turned, names = question
            origins = tuple(origin_in(self.state, name) for name in sorted(names))
            key = (text, *(o if isinstance(o, str) else id(o) for o in origins))

        def told_apart() -> Any:
            answered = self.answers.get(key) if key is not None else None
            if answered is None:
                point = self.new_point(place, labels)
                answered = Answer(point, turned, origins)
                if key is not None:
                    self.answers[key] = answered
            return Fork(answered.point, (0, 1) if answered.turned == turned else (1, 0))

        status = self.state.vars.get(STATUS)
        unknown: list[Any] = [told_apart()] if is_later(status) else []

        def index(leaf: Any) -> Any:
            if leaf is True or leaf is False:
                return 0 if leaf else 1
            if not unknown:
                unknown.append(told_apart())
            return unknown[0]

        decision = pruned(transform(status, index))
        self.steps += max(size_of(decision) - MAX_VARIANTS, 0) // 2
        return decision

    def settle(self, frame: Frame, kinds: Sequence[str]) -> None:
        """Join the states in which a frame was left early with the current one."""
        kept = []
        for kind, left in reversed(frame.escapes):
            if kind not in kinds:
                kept.append((kind, left))
                continue
            if not self.state.alive:
                constraints = left.constraints[: frame.depth]
                self.state = left.fork()
                self.state.constraints = constraints
                continue
            decision: Any = 0
            for tree, allowed in reversed(left.constraints[frame.depth :]):
                decision = transform(tree, lambda leaf, a=allowed, d=decision: d if leaf in a else 1)  # type: ignore[misc]
            if isinstance(decision, TREES):
                before = self.state
                self.state = self.joined(before, decision, {0: left, 1: before})
                self.state.constraints = before.constraints[: frame.depth]
        frame.escapes = kept[::-1]

    def set_status(self, status: Any) -> None:
        self.state.vars[STATUS] = status

    def restore(self, saved: dict[str, Any]) -> None:
        for name, value in saved.items():
            if value is MISSING:
                self.state.vars.pop(name, None)
            else:
                self.state.vars[name] = value


def length_of(value: Any) -> int:
    """How many parts a value is made of."""
    return len(value.fragments) if isinstance(value, Scalar) else len(value.words) if isinstance(value, Array) else 1


def still_open(
    decision: Any, taken: Sequence[int], ends: dict[int, State], depth: int
) -> tuple[tuple[Any, frozenset[int]], ...]:
    """The constraint after the arms of a decision: the decision led to an arm that reaches its end, on a way that the arm leaves open.
    `depth` counts the constraints at the start of an arm."""
    within = {way: end.constraints[depth:] for way, end in ends.items()}
    if not any(within.values()):
        return ((decision, frozenset(ends)),) if len(ends) < len(taken) else ()

    def came_through(way: int) -> Any:
        through: Any = 1 if way in ends else 0
        for tree, allowed in reversed(within.get(way, ())):
            through = transform(tree, lambda leaf, a=allowed, t=through: t if leaf in a else 0)  # type: ignore[misc]
        return through

    if are_many(decision, *(tree for tree, _ in chain(*within.values()))):
        whole: Later[Any] = Later(lambda world: world.follow(decision), lambda: frozenset(outcomes(decision)))
        return ((changed_later(whole, came_through, False), frozenset({1})),)
    return ((pruned(transform(decision, came_through)), frozenset({1})),)


def without_last_newlines(fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
    found = list(fragments)
    while found and found[-1].text is not None:
        text = found[-1].text
        kept = text.rstrip("\n")
        if kept == text:
            break
        last = found.pop()
        if kept:
            place = last.place
            if last.verbatim:
                place = Place(place.document, place.start, place.start + len(kept))
            found.append(Fragment(kept, place, last.verbatim, "", last.via, last.fixed))
            break
    return tuple(found)
