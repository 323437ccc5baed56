"""Goes through a script as bash would, on values that may be unknown, and notes each launch it comes to.

Nothing is executed. A turn that cannot be decided takes every way, and what the ways leave behind is joined: a variable that
one arm of an `if` sets has two values after it, told apart by the same `Point` as every other variable set there. Loops over
known words are unrolled; any other loop runs its body once on unknown values. Everything is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from spec_lsp.syntax.launch import Choice, Clue, EmbeddedFile
from spec_lsp.syntax.shell import arithmetic, ast, commands, conditions
from spec_lsp.syntax.shell.clues import text_clues
from spec_lsp.syntax.shell.expand import (
    ALWAYS_SET,
    FROM_COMMAND_LINE,
    SET_IN_LOOP,
    Expander,
    bounded,
    bounded_array,
    written_at,
)
from spec_lsp.syntax.shell.launches import Found, Key, Note, Seen, gather
from spec_lsp.syntax.shell.memory import Memory, Remembered, remember, same
from spec_lsp.syntax.shell.patterns import is_plain, matches
from spec_lsp.syntax.shell.questions import (
    PIP,
    arithmetic_names,
    arm_label,
    asked,
    assigned_names,
    equality,
    is_key,
    is_test,
    may_read_script,
    may_start,
    name_of,
    shifts,
    shown,
    without_escaped_blank,
)
from spec_lsp.syntax.shell.statements import statements
from spec_lsp.syntax.shell.values import (
    DEPENDS,
    FROM_ENVIRONMENT,
    MAX_VARIANTS,
    NOWHERE,
    UNSET,
    Array,
    Fork,
    Impossible,
    Point,
    Reference,
    Scalar,
    Table,
    TooMany,
    Tree,
    Undecided,
    Unset,
    Value,
    World,
    explore,
    join,
    leaves,
    transform,
)
from spec_lsp.syntax.source import FileSource, Source, WordSource, embedded
from spec_lsp.syntax.word import Fragment, Place, Word, hull, unknown

MAX_STEPS = 12_000
VARIABLES_OF_A_STEP = 500
"""How many variables may be copied at the cost of a command: what bounds a script that sets thousands."""
MAX_ROUNDS = 64
MAX_CALLS = 24
MAX_NAMED_CALLS = 24
"""Functions that one call with a half-known name is followed into."""
MAX_EVALUATIONS = 12_000
MAX_EMBEDDED_CHARACTERS = 300_000
MAX_EMBEDDED = 6
MAX_ASSIGNED_WAYS = 32

STATUS = "?"
OUTPUT = ">"
INPUT = "<"
ARGUMENTS = "@"
FILE = "file:"
ASKED = "if:"
"""How tests came out, each by what it asks and by the values it asks of."""
ORIGIN = "of:"
"""Values that tests have told more of, with what they were before."""


STEP = re.compile(r"\s*(?:([A-Za-z_]\w*)\s*(\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))|(\+\+|--)\s*([A-Za-z_]\w*))(.*)", re.S)
"""An arithmetic expression that sets a variable: its name, the operator, what follows."""
SILENT = frozenset({
    "cd", "export", "set", "source", ".", "mkdir", "sleep", "[", "test", "true", "false", ":", "pushd", "popd",
    "local", "declare", "shift", "unset", "read", "exit", "return",
})  # fmt: skip
FORKING_ENV = re.compile(r"SGL|CUDA_VISIBLE|HIP_VISIBLE|ROCR_VISIBLE|ASCEND|NVSHMEM|TORCH|FLASHINFER|TRITON|NCCL")


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


MISSING: Any = object()


class Interpreter:
    """Runs statements in order. `notes` (its visits to launches) and `clues` are what it found; `sourced` the files it asked for.

    `memory` is that of the last run over the same document; `memory_left` is for the next.
    """

    def __init__(
        self,
        document: str,
        load: Callable[[str], list[tuple[ast.Script, Source]] | None],
        memory: Memory,
        assigns: Callable[[], frozenset[str]],
        builtins: Mapping[str, Callable[[Interpreter, ast.Simple, Source], None]],
    ) -> None:
        self.document = document
        self.load = load
        self.assigns = assigns
        self.builtins = builtins
        self.zsh = False
        self.state = State({})
        self.notes: list[Note] = []
        self.clues: list[Clue] = []
        self.sourced: list[str] = []
        self.memory = memory
        self.memory_left = Memory()
        self.reads: dict[str, Any] | None = None
        self.turns: dict[Any, int] = {}
        self.priority: set[Point] = set()
        self.frames: list[Frame] = []
        self.context: list[Choice] = []
        self.kept_words: dict[tuple[int, int], list[Word]] = {}
        self.printed: dict[tuple[int, int], Any] = {}
        self.capturing = 0
        self.assigned: frozenset[str] | None = None
        self.wrote_files = False
        self.env_names: frozenset[str] = frozenset()
        self.env_order: list[str] = []
        self.env_values: list[Any] | None = None
        self.env: dict[str, Word] = {}
        self.exported_words: dict[int, tuple[Scalar, Word]] = {}
        self.steps = 0
        self.evaluations = 0
        self.embedded_characters = 0
        self.embedded = 0
        self.around: tuple[Clue, ...] = ()
        self.calls = 0

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
        """What the script has set a variable to; notes that it was asked for."""
        found = self.state.vars.get(name)
        if self.reads is not None:
            self.reads[name] = found
        return found

    def remembered(self, node: ast.Simple | ast.Assign, source: Source, compute: Callable[[], Any]) -> Any:
        """What a statement comes to, taken from the last run if nothing that it reads has changed."""
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
                break
        else:
            self.reads = {}
            try:
                result = compute()
            finally:
                reads, self.reads = self.reads, None
            entry = remember(node, reads, self.state.constraints, functions, result)
        kept = self.memory_left.results.setdefault(key, [])
        if len(kept) < 8:
            kept.append(entry)
        return entry.result

    def reads_again(self, entry: Remembered) -> bool:
        """Whether what a statement read last time is what it would read now."""
        now = list(map(self.state.vars.get, entry.names))
        if any(a is not b and not same(a, b) for a, b in zip(now, entry.values, strict=True)):
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
        """`$?`: 0 after what succeeds; which other number a failure gives is not known."""
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

    def all_assigned(self) -> frozenset[str]:
        """The variables that the script sets somewhere."""
        if self.assigned is None:
            self.assigned = self.assigns()
        return self.assigned

    def sets(self, name: str) -> bool:
        assigned = self.all_assigned()
        if self.reads is not None:
            self.reads["=" + name] = name in assigned
        return name in assigned

    def new_point(self, place: Place, labels: Sequence[str]) -> Point:
        turn = (place, tuple(labels))
        self.turns[turn] = self.turns.get(turn, 0) + 1
        return self.kept_point((*turn, self.turns[turn]), place, tuple(labels))

    def kept_point(self, key: Any, place: Place, labels: tuple[str, ...]) -> Point:
        """The point of the last run, so that what depends on it is the same value."""
        point = self.memory_left.points.get(key)
        if point is None:
            point = self.memory.points.get(key) or Point(
                place, labels, self.turns.get(key[:2], 0) if isinstance(key, tuple) else 0
            )
            self.memory_left.points[key] = point
        return point

    def substitute(
        self, node: ast.Substitution, body: ast.Script, source: Source, world: World
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
        """What a script prints, for each way it can go."""
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

    def known_substitution(self, body: ast.Script, source: Source, world: World) -> tuple[Fragment, ...] | None:
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

    # Evaluation in worlds.

    def check(self, world: World) -> None:
        """Goes on only in worlds that lead here; pins what is then certain."""
        for tree, allowed in self.state.constraints:
            self.hold(tree, allowed, world)

    def hold(self, tree: Any, allowed: frozenset[int], world: World) -> None:
        """Pins the ways that the constraint leaves no choice about."""
        while isinstance(tree, Fork):
            way = world.pins.get(tree.point)
            if way is None:
                possible = [i for i, arm in enumerate(tree.arms) if _leads(arm, allowed, world.pins)]
                if not possible:
                    raise Impossible
                if len(possible) > 1:
                    return
                way = world.pins[tree.point] = possible[0]
            tree = tree.arms[way]
        if tree not in allowed:
            raise Impossible

    def evaluate(
        self, what: Callable[[Expander], Any], *, limit: int, defaults: bool = False, plain: bool = False
    ) -> Any:
        """The tree of what `what` gives in each world; unknown to the caller (MISSING) when there are too many."""

        def inside(world: World) -> Any:
            self.evaluations += 1
            self.check(world)
            return what(Expander(self, world, None if self.capturing else self.kept_words))

        if self.evaluations > MAX_EVALUATIONS:
            limit = 1
        try:
            return explore(inside, limit=limit, split_defaults=defaults, split_plain=plain)
        except TooMany as too_many:
            points = dict(too_many.points)
        for _ in range(4):
            blurred = frozenset(set(points) - self.worth_telling(points, limit))
            try:
                return explore(inside, limit=limit * 2, blurred=blurred)
            except TooMany as too_many:
                points.update(too_many.points)
                limit = max(limit // 4, 1)
        return explore(inside, limit=10_000, blurred=frozenset(self.memory_left.points.values()))

    def worth_telling(self, points: dict[Point, int], limit: int) -> set[Point]:
        """The points whose ways are all looked at: presets first, as many as the limit has room for."""
        room = limit
        kept: set[Point] = set()
        for point in sorted(points, key=lambda p: (p not in self.priority, -points[p], _order(p))):
            if points[point] <= room:
                room //= points[point]
                kept.add(point)
        return kept

    def value_of(self, what: Callable[[Expander], Value]) -> Any:
        """The value of an assignment, with the ways its parts depend on."""
        if self.evaluations > MAX_EVALUATIONS:
            return self.evaluate(what, limit=1)
        try:
            return self.explore_value(what, True)
        except TooMany:
            return self.evaluate(what, limit=MAX_ASSIGNED_WAYS)

    def explore_value(self, what: Callable[[Expander], Value], defaults: bool) -> Any:
        def inside(world: World) -> Any:
            self.evaluations += 1
            self.check(world)
            return what(Expander(self, world, None if self.capturing else self.kept_words))

        return explore(inside, limit=MAX_ASSIGNED_WAYS, split_defaults=defaults)

    # Turns.

    def branch(self, decision: Any, arms: Sequence[Callable[[], None]]) -> None:
        """Runs each arm that can be taken, and joins what they leave. `decision` is a tree of indices of arms."""
        if decision is NOWHERE:
            self.state.alive = False
            return
        taken = sorted({leaf for _, leaf in leaves(decision)})
        if len(taken) == 1:
            arms[taken[0]]()
            return
        before = self.state
        ends: dict[int, State] = {}
        for way in taken:
            self.state = before.fork()
            self.steps += len(before.vars) // VARIABLES_OF_A_STEP
            self.state.constraints = (*before.constraints, (decision, frozenset({way})))
            arms[way]()
            if self.state.alive:
                ends[way] = self.state
        self.state = self.joined(before, decision, ends)

    def joined(self, before: State, decision: Any, ends: dict[int, State]) -> State:
        if not ends:
            before = before.fork()
            before.alive = False
            return before
        first = next(iter(ends.values()))
        state = State(dict(first.vars), first.exported, first.functions, before.constraints)
        if len(ends) < len({leaf for _, leaf in leaves(decision)}):
            state.constraints = (*before.constraints, (decision, frozenset(ends)))
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
        told = {name for name in names if name.startswith((ASKED, ORIGIN))}
        for name in told:
            state.vars.pop(name, None)
        for name in names - told:
            values = {way: end.vars.get(name, MISSING) for way, end in ends.items()}
            origins = [_origin_in(end, name) for end in ends.values()]
            values = {way: self.outside(name) if v is MISSING else v for way, v in values.items()}
            tree = transform(decision, lambda leaf, v=values: v.get(leaf, NOWHERE), harden=True)  # type: ignore[misc]
            if tree is not NOWHERE:
                state.vars[name] = tree
                if all(o is origins[0] or o == origins[0] == f"${name}" for o in origins):
                    state.vars[ORIGIN + name] = (tree, origins[0])
        return state

    def outside(self, name: str) -> Any:
        """The value of a variable that the script has not set, as a value to join with others."""
        if name.startswith(FILE) or name in (STATUS, OUTPUT):
            return UNSET
        place = Place(self.document, 0, 0)
        if name == ARGUMENTS:
            return Array((unknown(place, FROM_COMMAND_LINE, splat=True),))
        reason = FROM_COMMAND_LINE if name.isdigit() else FROM_ENVIRONMENT
        value = Scalar((Fragment(None, place, False, reason),))
        return value if name in ALWAYS_SET else Fork(self.point(name), (UNSET, value), True, 0)

    def decided(self, node: ast.Command | None, source: Source, place: Place, labels: Sequence[str]) -> Any:
        """The last status as a decision: 0 for success, 1 for failure, told apart where it is unknown.

        A test that was asked before on the same values (`node`; None for what is no single command) comes out as it did then.
        """
        question = asked(node, source) if node is not None else None
        key = earlier = None
        turned = False
        if question is not None:
            text, turned, names = question
            origins = tuple(_origin_in(self.state, name) for name in sorted(names))
            key = f"{ASKED}{text}:{tuple(o if isinstance(o, str) else id(o) for o in origins)}"
            earlier = self.state.vars.get(key)
        point: list[Point] = []

        def index(leaf: Any) -> Any:
            if leaf is True or leaf is False:
                return 0 if leaf else 1
            if earlier is not None:
                return _turned(earlier[0]) if turned else earlier[0]
            if not point:
                point.append(self.new_point(place, labels))
            return Fork(point[0], (0, 1))

        decision = transform(self.state.vars.get(STATUS), index)
        if key is not None and earlier is None and isinstance(decision, Fork):
            self.state.vars[key] = (_turned(decision) if turned else decision, origins)
        return decision

    def settle(self, frame: Frame, kinds: Sequence[str]) -> None:
        """Joins the states in which a frame was left early with the present one."""
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
            if isinstance(decision, Fork):
                before = self.state
                self.state = self.joined(before, decision, {0: left, 1: before})
                self.state.constraints = before.constraints[: frame.depth]
        frame.escapes = kept[::-1]

    # Commands.

    def run(self, script: ast.Script, source: Source) -> None:
        for item in script.items:
            if not self.state.alive:
                return
            self.execute(item, source)

    def execute(self, node: ast.Command, source: Source) -> None:
        if self.frames or self.calls:  # what stands in the file itself runs once, however long the file
            self.steps += 1
        if self.steps > MAX_STEPS:
            self.set_status(None)
            return
        if not self.capturing:
            self.printed.clear()
            self.kept_words.clear()
        redirects = getattr(node, "redirects", ())
        if redirects and not isinstance(node, ast.Simple):
            self.run_redirected(node, redirects, source)
        else:
            EXECUTE[type(node)](self, node, source)

    def run_redirected(self, node: ast.Command, redirects: Sequence[ast.Redirect], source: Source) -> None:
        """A compound command whose commands read or write elsewhere."""
        kept = {name: self.state.vars.get(name, MISSING) for name in (INPUT, OUTPUT)}
        writes = any(writes_file(r) for r in redirects)
        if any(r.op in READS for r in redirects):
            self.set_input(self.standard_input(redirects, source))
        if writes:
            self.state.vars[OUTPUT] = Scalar(())
        EXECUTE[type(node)](self, node, source)
        printed = self.state.vars.get(OUTPUT, UNSET)
        self.restore(kept)
        if writes:
            self.write_to(redirects, source, printed)

    def set_input(self, value: Any) -> None:
        self.restore({INPUT: MISSING if value is None else value})

    def standard_input(self, redirects: Sequence[ast.Redirect], source: Source) -> Any:
        """What a command reads: a here-document, a file that the script wrote, a pipe; None if nobody knows."""
        for redirect in reversed(redirects):
            body = redirect.body
            if body is not None:
                end = (
                    (Fragment("\n", source.place(body.end, body.end), False, fixed=True),)
                    if redirect.op == "<<<"
                    else ()
                )
                value = self.value_of(lambda x, b=body, e=end: Scalar((*x.scalar(b, source), *e)))  # type: ignore[misc]
                return None if value is NOWHERE else value
            if redirect.op == "<" and redirect.descriptor in ("", "0"):
                key = self.path_of(redirect.target, source)
                return self.variable(FILE + key) if key else None
        return self.state.vars.get(INPUT)

    def set_status(self, status: Any) -> None:
        self.state.vars[STATUS] = status

    def run_script(self, node: ast.Script, source: Source) -> None:
        self.run(node, source)

    def run_list(self, node: ast.AndOr, source: Source) -> None:
        self.execute(node.first, source)
        previous = node.first
        for op, command in node.rest:
            if not self.state.alive:
                return
            wanted = 0 if op == "&&" else 1
            status = self.state.vars.get(STATUS)
            if wanted == 0 and status is None and not is_test(previous):
                self.execute(command, source)
            else:
                text = shown(source, previous.start, previous.end)
                place = source.place(previous.start, previous.end)
                decision = self.decided(previous, source, place, (f"`{text}` holds", f"`{text}` fails"))
                arms: list[Callable[[], None]] = [lambda: self.set_status(True), lambda: self.set_status(False)]
                arms[wanted] = partial(self.refined, previous, source, wanted, command)
                self.branch(decision, arms)
            previous = command

    def refined(self, condition: ast.Command, source: Source, way: int, command: ast.Command) -> None:
        if way == 0:
            self.assume(condition, source)
        self.execute(command, source)

    def run_pipeline(self, node: ast.Pipeline, source: Source) -> None:
        if len(node.commands) > 1:
            self.run_pipes(node, source)
        else:
            self.execute(node.commands[0], source)
        if node.negated:
            self.set_status(transform(self.state.vars.get(STATUS), lambda s: None if s is None else not s))

    def run_pipes(self, node: ast.Pipeline, source: Source) -> None:
        """Each command in a process of its own; what one prints is kept for a command that makes something of it."""
        outer = self.state
        output: Any = MISSING
        for i, command in enumerate(node.commands):
            self.state = outer.fork()
            reads = i + 1 < len(node.commands) and may_read_script(node.commands[i + 1])
            if reads:
                self.state.vars[OUTPUT] = Scalar(())
            elif i + 1 < len(node.commands):
                self.state.vars.pop(OUTPUT, None)
            if i:
                self.restore({INPUT: output})
            self.execute(command, source)
            output = self.state.vars.get(OUTPUT, MISSING) if reads else MISSING
            if self.state.alive:
                outer.vars.update((name, value) for name, value in self.state.vars.items() if name.startswith(FILE))
        captured = self.state.vars.get(OUTPUT, MISSING)
        self.state = outer
        if OUTPUT in outer.vars:
            outer.vars[OUTPUT] = (
                captured
                if captured is not MISSING
                else Scalar((Fragment(None, Place(self.document, 0, 0), False, DEPENDS),))
            )
        self.set_status(None)

    def run_group(self, node: ast.Group, source: Source) -> None:
        if not node.subshell:
            self.run(node.body, source)
            return
        with self.subshell():
            self.run(node.body, source)

    @contextmanager
    def subshell(self) -> Iterator[None]:
        """Runs in a process of its own: of what it sets, only what it prints and writes remains."""
        outer, frames, calls = self.state, self.frames, self.calls
        self.state = outer.fork()
        self.frames = []
        self.calls += 1
        try:
            yield
        finally:
            inner = self.state
            self.state, self.frames, self.calls = outer, frames, calls
            if inner.alive:
                for name, value in inner.vars.items():
                    if name == OUTPUT or name.startswith(FILE):
                        outer.vars[name] = value
            self.set_status(None)

    def run_if(self, node: ast.If, source: Source) -> None:
        self.run_arm(node, 0, source)

    def run_arm(self, node: ast.If, index: int, source: Source) -> None:
        if index == len(node.arms):
            if node.otherwise is not None:
                self.run(node.otherwise, source)
            return
        condition, body = node.arms[index]
        self.run(condition, source)
        if not self.state.alive:
            return
        text = shown(source, condition.start, condition.end)
        place = source.place(condition.start, condition.end)
        only = condition.items[0] if len(condition.items) == 1 else None
        decision = self.decided(only, source, place, (f"`{text}` holds", f"`{text}` fails"))

        def then() -> None:
            if condition.items:
                self.assume(condition.items[-1], source)
            self.run(body, source)

        self.branch(decision, [then, lambda: self.run_arm(node, index + 1, source)])

    def assume(self, condition: ast.Command, source: Source) -> None:
        """In the arm where `$X = text` holds, X is that text."""
        left, right = equality(condition)
        name = conditions.compared_variable(left, right) if right is not None else None
        if name is None or right is None or left is None or not is_plain(right.literal or ""):
            return
        fragments = tuple(
            Fragment(f.text, f.place, f.verbatim, f.reason, f.via, True)
            for f in Expander(self, World({})).literal_word(right, source).fragments
        )
        self.refine(name, Scalar(fragments))

    def refine(self, name: str, value: Scalar) -> None:
        """Gives an unknown variable the value that the way taken implies."""
        if not re.fullmatch(r"[A-Za-z_]\w*|[1-9]", name):
            return
        present, origin = self.lookup(name), _origin_in(self.state, name)

        def known(leaf: Any) -> Any:
            return value if isinstance(leaf, Scalar) and leaf.text is None else leaf

        refined = value if present is None else transform(present, known)
        self.state.vars[name] = refined
        self.state.vars[ORIGIN + name] = (refined, origin)

    def run_case(self, node: ast.Case, source: Source) -> None:
        labels = [arm_label(node, arm, source) for arm in node.arms]
        whole = any(p.literal == "*" for arm in node.arms for p in arm.patterns)
        place = source.place(node.subject.start, node.subject.end)
        labels.append(f"`{shown(source, node.subject.start, node.subject.end)}` is none of those listed")
        point: list[Point] = []

        def choose(x: Expander) -> Any:
            text = x.text(node.subject, source)
            possible: list[int] = []
            for i, arm in enumerate(node.arms):
                outcome = _arm_matches(arm, text, x, source)
                if outcome is True:
                    possible.append(i)
                    break
                if outcome is None:
                    possible.append(i)
            else:
                if text is not None or not whole:
                    possible.append(len(node.arms))
            return possible[0] if len(possible) == 1 else tuple(possible)

        decision = self.evaluate(choose, limit=MAX_VARIANTS, defaults=True)

        def spread(leaf: Any) -> Any:
            if not isinstance(leaf, tuple):
                return leaf
            if not point:
                point.append(self.new_point(place, labels))
                self.priority.add(point[0])
            return Fork(point[0], tuple(i if i in leaf else NOWHERE for i in range(len(labels))))

        if decision is NOWHERE:
            self.state.alive = False
            return
        decision = transform(decision, spread)
        if point:
            self.priority.update(_points(decision))
        arms = [partial(self.run_case_arm, node, i, source) for i in range(len(node.arms))]
        self.branch(_without_nowhere(decision), [*arms, lambda: None])

    def run_case_arm(self, node: ast.Case, index: int, source: Source) -> None:
        arm = node.arms[index]
        name = conditions.compared_variable(node.subject, ast.WordNode(0, 0, (), ""))
        if (
            name
            and len(arm.patterns) == 1
            and arm.patterns[0].literal is not None
            and is_plain(arm.patterns[0].literal)
        ):
            fragments = Expander(self, World({})).literal_word(arm.patterns[0], source).fragments
            self.refine(
                name, Scalar(tuple(Fragment(f.text, f.place, f.verbatim, f.reason, f.via, True) for f in fragments))
            )
        self.run(arm.body, source)
        if arm.falls_through and index + 1 < len(node.arms) and self.state.alive:
            self.run(node.arms[index + 1].body, source)

    def run_test(self, node: ast.Test, source: Source) -> None:
        emptiness = conditions.asks_emptiness(node.expression)
        self.set_status(self.tested(lambda x: conditions.test(node.expression, x, source), emptiness))

    def tested(self, what: Callable[[Expander], bool | None], emptiness: bool = False) -> Any:
        """The outcomes of a test in each world; None where it is unknown. A test for emptiness tells apart whether variables are set."""
        tree = self.evaluate(what, limit=MAX_VARIANTS, defaults=True, plain=emptiness)
        return None if tree is NOWHERE else tree

    def run_arithmetic(self, node: ast.ArithmeticCommand, source: Source) -> None:
        self.calculate(node.expression, source)

    def calculate(self, expression: ast.WordNode, source: Source) -> None:
        """`(( … ))`: sets what the expression sets; the status says whether its value is other than 0."""
        for one in arithmetic_parts(expression):
            first = one.parts[0] if one.parts else None
            m = STEP.match(first.text) if isinstance(first, ast.Lit) else None
            if m:
                self.step(m.group(1) or m.group(4), one, source)
                continue
            self.set_status(self.tested(lambda x, e=one: _truth(x.arithmetic(e, source))))  # type: ignore[misc]
            for name in arithmetic_names(one):
                self.assign_unknown(name, source.place(one.start, one.end), "arithmetic")

    def step(self, name: str, expression: ast.WordNode, source: Source) -> None:
        """`i = 3`, `i += 2`, `i++`."""
        here = source.place(expression.start, expression.end)

        def build(x: Expander) -> Value:
            m = STEP.fullmatch(x.text(expression, source) or "")
            if m is None:
                return Scalar((Fragment(None, here, False, "arithmetic"),))
            op, rest = m.group(2) or m.group(3), m.group(5) or ""
            written = f"{name} {op[0]} 1" if op in ("++", "--") else rest if op == "=" else f"{name} {op[:-1]} ({rest})"
            value = arithmetic.evaluate(written, x.number_text)
            return Scalar((Fragment(None if value is None else str(value), here, False, fixed=True),))

        value = self.value_of(build)
        if value is not NOWHERE:
            self.state.vars[name] = value
        self.set_status(None)

    def run_function(self, node: ast.Function, source: Source) -> None:
        self.state.functions[node.name] = (node, source)
        self.set_status(True)

    # Loops.

    def run_for(self, node: ast.For, source: Source) -> None:
        if node.header is not None:
            self.run_counting(node, node.header, source)
            return
        words = self.loop_words(node, source)
        if words is None:
            self.run_unknown_loop(node, node.body, source, node.name)
            return
        if node.select:
            self.run_choice(node, words, source)
            return
        frame = Frame("loop", len(self.state.constraints))
        self.frames.append(frame)
        for word in words:
            if not self.state.alive or self.steps > MAX_STEPS:
                break
            self.state.vars[node.name] = Scalar(word.fragments)
            label = f"`{node.name}` is `{word.text}`" if word.text is not None else f"`{node.name}` is not known"
            self.context.append(Choice(word.place, label))
            self.run(node.body, source)
            self.context.pop()
            self.settle(frame, ("continue",))
        self.frames.pop()
        self.settle(frame, ("break", "continue"))

    def run_choice(self, node: ast.For, words: Sequence[Word], source: Source) -> None:
        """`select x in a b`: somebody chooses one of the words."""
        if not words:
            return
        labels = [f"`{node.name}` is `{word.text}`" if word.text is not None else "it is not known" for word in words]
        point = self.new_point(source.place(node.start, node.body.start), labels)
        self.priority.add(point)
        self.state.vars[node.name] = join(point, [Scalar(word.fragments) for word in words])
        frame = Frame("loop", len(self.state.constraints))
        self.frames.append(frame)
        self.run(node.body, source)
        self.frames.pop()
        self.settle(frame, ("break", "continue"))

    def run_counting(self, node: ast.For, header: tuple[ast.WordNode, ...], source: Source) -> None:
        """`for ((i = 0; i < 4; i++))`."""
        first, condition, step = header
        place = source.place(first.start, step.end)
        self.calculate(first, source)
        frame = Frame("loop", len(self.state.constraints))
        self.frames.append(frame)
        for _ in range(MAX_ROUNDS):
            status = True
            if condition.parts:
                status = self.tested(lambda x: _truth(x.arithmetic(condition, source)))
            if status is False or not self.state.alive:
                break
            if status is not True or self.steps > MAX_STEPS:
                self.frames.pop()
                self.run_unknown_loop(node, node.body, source, node.name)
                self.settle(frame, ("break", "continue"))
                return
            value = self.state.vars.get(node.name)
            known = value.text if isinstance(value, Scalar) else None
            self.context.append(
                Choice(place, f"`{node.name}` is `{known}`" if known else f"`{node.name}` is not known")
            )
            self.run(node.body, source)
            self.context.pop()
            self.settle(frame, ("continue",))
            self.calculate(step, source)
        else:
            self.forget(node.body, source, node.name, SET_IN_LOOP)
        self.frames.pop()
        self.settle(frame, ("break", "continue"))

    def loop_words(self, node: ast.For, source: Source) -> Sequence[Word] | None:
        """The values of a loop variable, None if they are not known or too many."""
        if not node.name or node.words is None:
            arguments = self.state.vars.get(ARGUMENTS)
            if not node.name or not isinstance(arguments, Array):
                return None
            words: Sequence[Word] = arguments.words
        else:
            found = self.evaluate(lambda x: tuple(x.words(node.words or (), source)), limit=1)
            if not isinstance(found, tuple):
                return None
            words = found
        if len(words) > MAX_ROUNDS or any(w.splat for w in words):
            return None
        return words

    def run_while(self, node: ast.While, source: Source) -> None:
        frame = Frame("loop", len(self.state.constraints))
        self.frames.append(frame)
        for _ in range(MAX_ROUNDS):
            before = dict(self.state.vars)
            self.run(node.condition, source)
            status = self.state.vars.get(STATUS)
            if node.until and status is not None:
                status = transform(status, lambda s: None if s is None else not s)
            if status is False or not self.state.alive:
                break
            if status is not True or self.steps > MAX_STEPS:
                self.frames.pop()
                self.run_unknown_loop(node, node.body, source, "")
                self.settle(frame, ("break", "continue"))
                return
            self.run(node.body, source)
            self.settle(frame, ("continue",))
            if not self.state.alive or all(before.get(n) is v for n, v in self.state.vars.items() if n != STATUS):
                break
        else:
            self.forget(node.body, source, "", SET_IN_LOOP)
        self.frames.pop()
        self.settle(frame, ("break", "continue"))

    def run_unknown_loop(self, node: ast.For | ast.While, body: ast.Script, source: Source, name: str) -> None:
        """Runs the body once, on unknown values; afterwards it ran never, or set what it sets to we do not know what."""
        place = source.place(node.start, min(node.start + 5, node.end))
        text = shown(source, node.start, body.start)
        point = self.new_point(place, (f"`{text}` does nothing", f"`{text}` runs"))
        frame = Frame("loop", len(self.state.constraints) + 1)

        def once() -> None:
            self.frames.append(frame)
            self.forget(body, source, name, SET_IN_LOOP)
            kept = self.state.fork()
            self.run(body, source)
            self.frames.pop()
            if self.state.alive:
                self.settle(frame, ("continue",))
                kept.vars.update(self.flags_left(kept))
            kept.constraints = self.state.constraints
            self.state = kept

        self.branch(Fork(point, (0, 1)), [lambda: None, once])

    def flags_left(self, before: State) -> dict[str, Any]:
        """The variables in which a loop collects flags, as its last round leaves them."""
        changed = {n: v for n, v in self.state.vars.items() if n in before.vars and v is not before.vars[n]}
        return {name: value for name, value in changed.items() if any(map(_holds_flags, leaves(value)))}

    def forget(self, body: ast.Script, source: Source, name: str, reason: str) -> None:
        place = source.place(body.start, body.end)
        names = set(assigned_names(body))
        if name:
            names.add(name)
        if shifts(body):
            self.state.vars[ARGUMENTS] = Array((unknown(place, FROM_COMMAND_LINE, splat=True),))
            for digit in "123456789":
                self.state.vars.pop(digit, None)
        for assigned in names:
            self.assign_unknown(assigned, place, reason)

    def assign_unknown(self, name: str, place: Place, reason: str) -> None:
        present = self.state.vars.get(name)
        if isinstance(present, Fork):
            present = leaves(present)[0][1]
        if isinstance(present, Array):
            self.state.vars[name] = Array((unknown(place, reason, splat=True),))
        else:
            self.state.vars[name] = Scalar((Fragment(None, place, False, reason),))

    # Assignments.

    def assign(self, node: ast.Assign, source: Source, local: bool = False) -> None:
        if local:
            self.make_local(node.name)
        name = self.target_of(node.name)
        if name == "IFS" and node.value is not None and node.value.literal is None:
            return
        value = self.remembered(node, source, lambda: self.assigned_value(node, source))
        if value is not NOWHERE:
            self.state.vars[name] = value

    def target_of(self, name: str) -> str:
        """The variable that a name stands for."""
        held = self.state.vars.get(name)
        return held.name if isinstance(held, Reference) else name

    def assigned_value(self, node: ast.Assign, source: Source) -> Any:
        if node.elements is not None:
            return self.array_value(node, source)
        if node.index is not None:
            return self.element_value(node, source)
        if node.append:
            return self.appended_value(node, source)
        written = node.value
        assert written is not None
        if written.literal is not None:
            return Scalar(Expander(self, World({})).scalar(written, source))

        def build(x: Expander) -> Value:
            x.generous = len(written.parts) > 1
            return Scalar(x.scalar(written, source))

        return self.value_of(build)

    def present(self, name: str, x: Expander) -> Any:
        tree = self.lookup(name)
        return UNSET if tree is None else x.world.follow(tree)

    def array_value(self, node: ast.Assign, source: Source) -> Any:
        elements = node.elements or ()
        keyed = any(e.key is not None for e in elements)

        def build(x: Expander) -> Value:
            before = self.present(node.name, x) if node.append else UNSET
            if isinstance(before, Table) or (keyed and any(is_key(e) for e in elements)):
                return self.table(before, elements, x, source)
            x.generous = True
            words = x.words([e.value for e in elements], source)
            place = source.place(node.start, node.end)
            if before is None:
                return Array((unknown(place, DEPENDS, splat=True), *words))
            return bounded_array((*_as_words(before, place), *words), place)

        return self.value_of(build)

    def table(self, before: Any, elements: Sequence[ast.Element], x: Expander, source: Source) -> Value:
        items = dict(before.items) if isinstance(before, Table) else {}
        for element in elements:
            key = x.text(element.key, source) if element.key is not None else None
            if key is not None:
                items[key] = Scalar(x.scalar(element.value, source))
        return Table(items)

    def element_value(self, node: ast.Assign, source: Source) -> Any:
        place = source.place(node.start, node.end)

        def build(x: Expander) -> Value:
            assert node.index is not None
            before = self.present(node.name, x)
            key = x.text(node.index, source)
            value = Scalar(x.scalar(node.value, source)) if node.value is not None else Scalar(())
            if isinstance(before, Array):
                if (
                    key is not None
                    and key.isdigit()
                    and not any(w.splat for w in before.words)
                    and int(key) <= len(before.words)
                ):
                    at = int(key)
                    new = Word(value.fragments, written_at(value.fragments, place) if value.fragments else place)
                    return Array((*before.words[:at], new, *before.words[at + 1 :]))
                return Array((unknown(place, DEPENDS, splat=True),))
            if key is None or not isinstance(before, (Table, Unset)):
                return Table({}) if isinstance(before, (Table, Unset)) else before or UNSET
            return Table({**(before.items if isinstance(before, Table) else {}), key: value})

        return self.value_of(build)

    def appended_value(self, node: ast.Assign, source: Source) -> Any:
        def build(x: Expander) -> Value:
            assert node.value is not None
            before = self.present(node.name, x)
            x.generous = len(node.value.parts) > 1
            more = x.scalar(node.value, source)
            if isinstance(before, Array):
                if not before.words:
                    return Array((Word(more, source.place(node.value.start, node.value.end)),))
                first = before.words[0]
                return Array((Word((*first.fragments, *more), first.place, first.splat), *before.words[1:]))
            if isinstance(before, Scalar):
                return Scalar(bounded((*before.fragments, *more), source.place(node.start, node.end)))
            if before is None:
                return Scalar((Fragment(None, source.place(node.start, node.end), False, DEPENDS), *more))
            return Scalar(more)

        return self.value_of(build)

    def make_local(self, name: str) -> None:
        for frame in reversed(self.frames):
            if frame.kind == "function":
                frame.saved.setdefault(name, self.state.vars.get(name, MISSING))
                return

    # Simple commands.

    def run_simple(self, node: ast.Simple, source: Source) -> None:
        name = name_of(node)
        if node.assigning:
            self.assign_defaults(node, source)
        if not node.words:
            for assign in node.assigns:
                self.assign(assign, source)
            if node.assigns:
                self.set_status(True)
            return
        if name is not None and name in self.state.functions:
            self.run_external(node, source, name)
            return
        if name == "sudo" and name_of(node, 1) == "tee":
            node = ast.Simple(node.start, node.end, node.assigns, node.words[1:], node.redirects)
            name = "tee"
        builtin = self.builtins.get(name or "")
        if builtin is not None:
            builtin(self, node, source)
            return
        self.run_external(node, source, name)

    def assign_defaults(self, node: ast.Simple, source: Source) -> None:
        """`${X:=4}` sets X."""
        for word in (*node.words, *(a.value for a in node.assigns if a.value is not None)):
            for part in word.parts:
                if isinstance(part, ast.Arithmetic):
                    for name in arithmetic_names(part.expression):
                        self.assign_unknown(name, source.place(part.start, part.end), "arithmetic")
                if isinstance(part, ast.Param) and part.op in (":=", "=") and part.index is None:
                    holder = ast.WordNode(part.start, part.end, (part,))
                    value = self.value_of(lambda x, h=holder: Scalar(x.scalar(h, source)))  # type: ignore[misc]
                    if value is not NOWHERE:
                        self.state.vars[part.name] = value

    def run_external(self, node: ast.Simple, source: Source, name: str | None) -> None:
        written = self.wrote_files and name is not None and self.is_written(name)
        if name is not None and name not in self.state.functions and not written and not may_start(node, name):
            self.print_unknown(node, source, name)
            if PIP.match(name):
                self.note_pins(node, source)
            self.set_status(None)
            return
        mapping = self.remembered(
            node, source, lambda: self.evaluate(lambda x: self.see(node, source, x), limit=MAX_VARIANTS)
        )
        if mapping is NOWHERE:
            return
        seen = [(pins, leaf) for pins, leaf in leaves(mapping)]
        if all(leaf.action is None for _, leaf in seen):
            self.print_unknown(node, source, name or "")
            self.note_pins(node, source)
            self.set_status(None)
            return
        if all(isinstance(leaf.action, commands.Started) for _, leaf in seen):
            for pins, leaf in seen:
                self.note(node, source, pins, leaf)
            self.print_unknown(node, source, "")
            self.set_status(None)
        else:
            numbers = {id(leaf): i for i, (_, leaf) in enumerate(seen)}
            decision = transform(mapping, lambda leaf: numbers[id(leaf)])
            self.branch(decision, [partial(self.act, node, source, leaf, pins) for pins, leaf in seen])
        if name == "exec":
            self.state.alive = False

    def is_written(self, word: Word | str) -> bool:
        """Whether a path is that of a file which the script has written."""
        key = plain_path(word) if isinstance(word, str) else path_key(word.fragments)
        return self.wrote_files and key is not None and self.variable(FILE + key) is not None

    def see(self, node: ast.Simple, source: Source, x: Expander) -> Seen:
        """What a command does in one world."""
        x.generous = True
        words = x.words(without_escaped_blank(node), source)
        action = commands.recognise(words, self.state.functions, self.is_written) if words else None
        if not isinstance(action, commands.Started):
            return Seen(action)
        env = self.environment(node, source, x, action.around)
        files = self.files_named(action.args, x)
        return Seen(action, env, files)

    def environment(
        self, node: ast.Simple, source: Source, x: Expander, around: commands.Surroundings
    ) -> tuple[tuple[str, Word], ...]:
        env: dict[str, Word] = {}
        self.steps += len(self.state.exported) // VARIABLES_OF_A_STEP
        if not around.fresh:
            env.update(self.exported_env(x))
            for assign in node.assigns:
                if assign.value is not None and assign.elements is None:
                    fragments = x.scalar(assign.value, source)
                    env[assign.name] = Word(fragments, source.place(assign.value.start, assign.value.end))
        for name, given in around.env:
            passed = given if given is not None else self.exported_word(name, x)
            if passed is not None:
                env[name] = passed
        return tuple(env.items())

    def exported_env(self, x: Expander) -> dict[str, Word]:
        """All exported variables; made anew only when one of them has changed."""
        exported = self.state.exported
        if self.env_names is not exported:
            self.env_names, self.env_order, self.env_values = exported, sorted(exported), None
        values = [self.state.vars.get(name) for name in self.env_order]
        if self.reads is not None:
            self.reads.update(zip(self.env_order, values, strict=True))
        if self.env_values == values:
            return self.env
        words = {name: self.exported_word(name, x) for name in self.env_order}
        env = {name: word for name, word in words.items() if word is not None}
        if not any(isinstance(v, Fork) for v in values):
            self.env_values, self.env = values, env
        return env

    def exported_word(self, name: str, x: Expander) -> Word | None:
        tree = self.variable(name)
        if tree is None:
            return None
        if isinstance(tree, Fork) and not FORKING_ENV.search(name):
            try:
                leaf = World(x.world.pins).follow(tree)
            except Undecided:
                return unknown(Place(self.document, 0, 0), DEPENDS)
        else:
            leaf = x.world.follow(tree)
        if leaf is None:
            return unknown(Place(self.document, 0, 0), DEPENDS)
        if not isinstance(leaf, Scalar):
            return None
        kept = self.exported_words.get(id(leaf))
        if kept is None:
            place = (
                written_at(leaf.fragments, leaf.fragments[0].place) if leaf.fragments else Place(self.document, 0, 0)
            )
            kept = self.exported_words[id(leaf)] = (leaf, Word(leaf.fragments, place))
        return kept[1]

    def files_named(self, args: Sequence[Word], x: Expander) -> tuple[EmbeddedFile, ...]:
        """The files written before that the command names."""
        if not self.wrote_files:
            return ()
        found = []
        for word in args:
            text = word.text
            for candidate in (text, (text or "").partition("=")[2]):
                tree = self.variable(FILE + plain_path(candidate)) if candidate else None
                if tree is not None and candidate:
                    leaf = x.world.follow(tree)
                    if isinstance(leaf, Scalar):
                        place = written_at(leaf.fragments, word.place) if leaf.fragments else word.place
                        found.append(EmbeddedFile(candidate, Word(leaf.fragments, place)))
        return tuple(found)

    def note(self, node: ast.Simple, source: Source, pins: dict[Point, int], seen: Seen) -> None:
        """Notes one variant of a launch that a statement starts."""
        self.note_at(source.place(node.start, node.end), pins, seen, node, source)

    def note_at(
        self,
        extent: Place,
        pins: dict[Point, int],
        seen: Seen,
        node: ast.Simple | None = None,
        source: Source | None = None,
    ) -> None:
        """Notes one variant of the launch whose words stand in `extent`."""
        assert isinstance(seen.action, commands.Started)
        place = written_at_words(seen.action.entry, extent)
        clues = (*self.around, *seen.action.around.clues)
        devices = next((word for name, word in seen.env if name == "CUDA_VISIBLE_DEVICES"), None)
        if devices is not None and devices.text:
            clues = (*clues, Clue("gpu-count", f"CUDA_VISIBLE_DEVICES={devices.text}", devices.place))
        ways = sorted(pins.items(), key=lambda item: _order(item[0])) if pins else ()
        choices = (*self.context, *(Choice(point.place, point.labels[way]) for point, way in ways))
        if len(choices) > 1:
            choices = tuple(dict.fromkeys(choices))
        self.notes.append(Note(seen.action.program, place, extent, node, source, clues, seen, choices))

    @property
    def launches(self) -> dict[Key, Found]:
        """The launches found, in the order in which they are come to first."""
        return gather(self.notes)

    @property
    def starting(self) -> dict[Key, tuple[ast.Simple, Source]]:
        """The statements that start SGLang."""
        found: dict[Key, tuple[ast.Simple, Source]] = {}
        for note in self.notes:
            if note.node is not None and note.source is not None:
                found.setdefault(note.key, (note.node, note.source))
        return found

    def act(self, node: ast.Simple, source: Source, seen: Seen, pins: dict[Point, int]) -> None:
        action = seen.action
        if isinstance(action, commands.Started):
            self.note(node, source, pins, seen)
            self.set_status(None)
        elif isinstance(action, commands.Called):
            self.call(node, source, action)
        elif isinstance(action, commands.CalledByPart):
            self.call_one(node, source, action)
        elif isinstance(action, commands.Embedded):
            self.run_embedded(node, source, action.script, action.args, action.same, action.around)
        elif isinstance(action, commands.ScriptFile):
            self.run_written(node, source, action)
        elif isinstance(action, commands.StandardInput):
            self.run_standard_input(node, source, action)
        else:
            self.set_status(None)

    def call(self, node: ast.Simple, source: Source, action: commands.Called) -> None:
        function, home = self.state.functions[action.name]
        if self.calls >= MAX_CALLS or self.steps > MAX_STEPS:
            self.set_status(None)
            return
        frame = Frame("function", len(self.state.constraints))
        outer = {n: self.state.vars.get(n, MISSING) for n in (ARGUMENTS, *"123456789")}
        for digit in "123456789":
            self.state.vars.pop(digit, None)
        self.state.vars[ARGUMENTS] = Array(action.args)
        given = {a.name: self.state.vars.get(a.name, MISSING) for a in node.assigns}
        for assign in node.assigns:
            self.assign(assign, source)
        self.frames.append(frame)
        self.context.append(
            Choice(source.place(node.start, node.end), f"`{shown(source, node.start, node.end)}` is called")
        )
        self.calls += 1
        self.execute(function.body, home)
        self.calls -= 1
        self.context.pop()
        self.frames.pop()
        self.settle(frame, ("return",))
        self.restore({**given, **outer, **frame.saved})

    def call_one(self, node: ast.Simple, source: Source, action: commands.CalledByPart) -> None:
        """A call whose function only the command line decides: each of them may run, or a command of that name."""
        if self.calls or len(action.names) > MAX_NAMED_CALLS:
            place = source.place(node.start, node.end)
            for name in action.names:
                for assigned in assigned_names(self.state.functions[name][0].body):
                    self.assign_unknown(assigned, place, "set in a function")
            self.set_status(None)
            return
        text = shown(source, node.words[0].start, node.words[0].end)
        labels = [f"`{text}` is {name}" for name in action.names]
        point = self.new_point(source.place(node.start, node.end), labels)
        decision = Fork(point, tuple(range(len(labels)))) if len(labels) > 1 else 0
        calls = [commands.Called(name, action.args) for name in action.names]
        self.branch(decision, [lambda c=c: self.call(node, source, c) for c in calls])  # type: ignore[misc]

    def restore(self, saved: dict[str, Any]) -> None:
        for name, value in saved.items():
            if value is MISSING:
                self.state.vars.pop(name, None)
            else:
                self.state.vars[name] = value

    def run_embedded(
        self,
        node: ast.Simple,
        source: Source,
        text: Word,
        args: tuple[Word, ...],
        same: bool,
        around: commands.Surroundings,
    ) -> None:
        """A text that a shell reads: `eval "$CMD"`, `bash -c '…'`, `ssh host '…'`."""
        inner = embedded(text)
        self.embedded_characters += len(inner.whole)
        affordable = (
            self.calls < MAX_CALLS
            and self.embedded < MAX_EMBEDDED
            and self.embedded_characters < MAX_EMBEDDED_CHARACTERS
        )
        if not affordable:
            self.set_status(None)
            return
        self.embedded += 1
        self.calls += 1
        outer_clues, self.around = self.around, (*self.around, *around.clues, *text_clues(inner))
        if same:
            self.run_text(inner)
        else:
            given = self.standard_input(node.redirects, source)
            with self.subshell():
                self.enter_process(node, source, around)
                self.set_input(given)
                self.state.vars[ARGUMENTS] = Array(args[1:])
                if args:
                    self.state.vars["0"] = Scalar(args[0].fragments)
                self.run_text(inner)
        self.around = outer_clues
        self.calls -= 1
        self.embedded -= 1

    def run_written(self, node: ast.Simple, source: Source, action: commands.ScriptFile) -> None:
        """`bash run.sh`, where the script wrote `run.sh` before."""
        key = path_key(action.path.fragments)
        text = self.written_text(key or "", action.path.place)
        if text is None or not is_shell_script(text.known_start):
            self.set_status(None)
            return
        self.run_embedded(node, source, text, (action.path, *action.args), False, action.around)

    def path_of(self, word: ast.WordNode, source: Source) -> str | None:
        """What the file is known by that a word names."""
        key = self.evaluate(lambda x: path_key(x.scalar(word, source)), limit=1)
        return key if isinstance(key, str) else None

    def written_text(self, key: str, otherwise: Place) -> Word | None:
        """The text of a file that the script wrote; of the ways to write it, the first."""
        value = self.variable(FILE + key)
        if isinstance(value, Fork):
            value = leaves(value)[0][1]
        if not isinstance(value, Scalar) or not value.fragments:
            return None
        return Word(value.fragments, written_at(value.fragments, otherwise))

    def run_text(self, source: WordSource) -> None:
        """A script that a word carries. One that bash would refuse is read as far as its lines go, even behind an `exit`."""
        located = list(statements(source.whole))
        broken = any(one.broken for one in located)
        for one in located:
            if broken:
                self.state.alive = True
            elif not self.state.alive:
                break
            self.run(one.statement.script, source.statement(one.start, one.text))

    def enter_process(self, node: ast.Simple, source: Source, around: commands.Surroundings) -> None:
        """A new shell sees exported variables only, in a container or on another host not even these."""
        given: dict[str, Any] = {}
        for assign in node.assigns:
            if assign.value is not None:
                written = assign.value
                given[assign.name] = self.value_of(lambda x, w=written: Scalar(x.scalar(w, source)))  # type: ignore[misc]
        for name, word in around.env:
            given[name] = Scalar(word.fragments) if word is not None else self.state.vars.get(name)
        seen = frozenset() if around.fresh else self.state.exported
        kept = {
            n: v for n, v in self.state.vars.items() if n in seen or n.startswith(FILE) or n in (OUTPUT, INPUT, STATUS)
        }
        self.state.vars = {**kept, **{n: v for n, v in given.items() if v is not None and v is not NOWHERE}}
        self.state.exported = seen | frozenset(given)
        self.state.functions = {}

    def run_standard_input(self, node: ast.Simple, source: Source, action: commands.StandardInput) -> None:
        """`bash -s <<EOF`, `cat <<EOF | ssh host bash`."""
        text = self.standard_input(node.redirects, source)
        if isinstance(text, Fork):
            text = leaves(text)[0][1]
        if isinstance(text, Scalar) and text.fragments:
            place = written_at(text.fragments, source.place(node.start, node.end))
            self.set_input(None)
            self.run_embedded(
                ast.Simple(node.start, node.end, node.assigns, node.words, ()),
                source,
                Word(text.fragments, place),
                action.args,
                False,
                action.around,
            )
        else:
            self.set_status(None)

    # Output and files.

    def write(self, node: ast.Simple, source: Source, what: Callable[[Expander], tuple[Fragment, ...]]) -> None:
        """What a command prints goes to the file it is redirected to, or to the substitution that reads it."""
        to_file = any(writes_file(r) for r in node.redirects)
        if not to_file and OUTPUT not in self.state.vars:
            return
        here = source.place(node.start, node.end)
        printed = self.value_of(lambda x: Scalar(bounded(what(x), here)))
        if printed is NOWHERE:
            return
        if to_file:
            self.write_to(node.redirects, source, printed)
        else:
            self.state.vars[OUTPUT] = self.concatenated(self.state.vars[OUTPUT], printed)

    def write_to(self, redirects: Sequence[ast.Redirect], source: Source, printed: Any) -> None:
        """Writes a text to the file that redirects name."""
        nothing = isinstance(printed, Scalar) and len(printed.fragments) == 1 and printed.text is None
        if nothing and not self.wrote_files:
            return
        last = [r for r in redirects if writes_file(r)][-1]
        key = self.path_of(last.target, source)
        if key:
            self.write_file(key, printed, last.op == ">>")

    def write_file(self, path: str, value: Any, append: bool) -> None:
        """Notes what a file holds; `path` as `path_key` has it."""
        key = FILE + path
        self.wrote_files = True
        before = self.state.vars.get(key)
        if append and before is not None:
            value = self.concatenated(before, value)
        elif append:
            return
        self.state.vars[key] = value

    def concatenated(self, left: Any, right: Any) -> Any:
        def added(fragments: tuple[Fragment, ...], b: Any) -> tuple[Fragment, ...]:
            more = b.fragments if isinstance(b, Scalar) else ()
            return bounded((*fragments, *more), Place(self.document, 0, 0))

        def add(a: Any) -> Any:
            fragments = a.fragments if isinstance(a, Scalar) else ()
            return transform(right, lambda b: Scalar(added(fragments, b)))

        return transform(left, add)

    def print_unknown(self, node: ast.Simple, source: Source, name: str) -> None:
        if name in SILENT or (OUTPUT not in self.state.vars and not node.redirects):
            return
        here = source.place(node.start, node.end)
        self.write(node, source, lambda x: (Fragment(None, here, False, "what a command prints"),))

    def note_pins(self, node: ast.Simple, source: Source) -> None:
        """`pip install "sglang[all]==0.5.9"`."""
        texts = [w.literal for w in node.words]
        if "install" not in texts and "add" not in texts:
            return
        words = self.evaluate(lambda x: tuple(x.words(node.words, source)), limit=1)
        for word in words if isinstance(words, tuple) else ():
            m = commands.PIN.match(word.known_start)
            if m:
                self.clues.append(Clue("pin", word.text or word.known_start, word.place))


EXECUTE: dict[type, Callable[[Interpreter, Any, Source], None]] = {
    ast.Simple: Interpreter.run_simple,
    ast.Pipeline: Interpreter.run_pipeline,
    ast.AndOr: Interpreter.run_list,
    ast.Script: Interpreter.run_script,
    ast.If: Interpreter.run_if,
    ast.For: Interpreter.run_for,
    ast.While: Interpreter.run_while,
    ast.Case: Interpreter.run_case,
    ast.Function: Interpreter.run_function,
    ast.Group: Interpreter.run_group,
    ast.Test: Interpreter.run_test,
    ast.ArithmeticCommand: Interpreter.run_arithmetic,
}


def written_at_words(words: Sequence[Word], extent: Place) -> Place:
    """Where a reader sees the words that start a command: in the command itself, or else where they are written."""
    places = [w.place for w in words]
    seen = [p for p in places if extent.contains(p)] or places
    if not seen or any(p.document != seen[0].document for p in seen):
        return extent
    return hull(seen)


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


def _arm_matches(arm: ast.CaseArm, text: str | None, x: Expander, source: Source) -> bool | None:
    outcome: bool | None = False
    for node in arm.patterns:
        if node.literal == "*":
            return True
        pattern = x.pattern(node, source)
        found = None if text is None or pattern is None else matches(text, pattern)
        if found:
            return True
        if found is None:
            outcome = None
    return outcome


def _origin_in(state: State, name: str) -> Any:
    """What tells whether a variable still holds what it held: its value, before what tests say of it was added."""
    value = state.vars.get(name, MISSING)
    kept = state.vars.get(ORIGIN + name)
    if kept is not None and kept[0] is value:
        return kept[1]
    return f"${name}" if value is MISSING else value


def _turned(decision: Any) -> Any:
    return transform(decision, lambda way: 1 - way)


def _leads(tree: Any, allowed: frozenset[int], pins: dict[Point, int]) -> bool:
    """Whether a decision can come to one of the arms."""
    if isinstance(tree, Fork):
        way = pins.get(tree.point)
        return any(_leads(arm, allowed, pins) for arm in (tree.arms if way is None else tree.arms[way : way + 1]))
    return tree in allowed


def _order(point: Point) -> Any:
    """The order in which points are told: as they stand in the document."""
    return point.place, point.labels, point.number


def _points(tree: Any) -> set[Point]:
    if not isinstance(tree, Fork):
        return set()
    return {tree.point}.union(*(_points(a) for a in tree.arms))


def _without_nowhere(tree: Any) -> Any:
    """Ways that cannot be taken, replaced by one that can."""
    if not isinstance(tree, Fork):
        return tree
    return join(tree.point, [_without_nowhere(a) for a in tree.arms], tree.soft, tree.default)


def _as_words(value: Any, place: Place) -> tuple[Word, ...]:
    if isinstance(value, Array):
        return value.words
    if isinstance(value, Scalar):
        return (Word(value.fragments, written_at(value.fragments, place) if value.fragments else place),)
    return ()


READS = ("<", "<<", "<<-", "<<<")


def writes_file(redirect: ast.Redirect) -> bool:
    """Whether a redirect sends what is printed to a file."""
    return redirect.op in (">", ">>", ">|", "&>", "&>>") and redirect.descriptor in ("", "1")


def path_key(path: Sequence[Fragment]) -> str | None:
    """What a file is known by: its path, in which a value that nobody knows is told by where it comes from; None for any other."""
    pieces = []
    for fragment in path:
        if fragment.text is not None:
            pieces.append(fragment.text)
        elif fragment.via:
            pieces.append("\0{}:{}:{}\0".format(*fragment.place))
        else:
            return None
    return plain_path("".join(pieces))


def is_shell_script(start: str) -> bool:
    """Whether a text that begins like this is one for a shell, if it says so at all."""
    return not start.startswith("#!") or re.match(r"#!.*?\b(?:ba|z|da|k|a)?sh\b", start) is not None


def arithmetic_parts(expression: ast.WordNode) -> list[ast.WordNode]:
    """The expressions between the commas of a list; one with parentheses or expansions stays whole."""
    text = expression.literal
    if text is None or "," not in text or "(" in text or len(expression.parts) != 1:
        return [expression]
    found = []
    start = expression.parts[0].start
    for piece in text.split(","):
        end = start + len(piece)
        found.append(ast.WordNode(start, end, (ast.Lit(start, end, piece, True),), piece, True))
        start = end + 1
    return found


def _holds_flags(leaf: tuple[dict[Point, int], Any]) -> bool:
    value = leaf[1]
    if isinstance(value, Array):
        return any(word.known_start.startswith("--") for word in value.words)
    return isinstance(value, Scalar) and any("--" in (f.text or "") for f in value.fragments)


def _truth(value: int | None) -> bool | None:
    return None if value is None else value != 0


def plain_path(path: str) -> str:
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path
