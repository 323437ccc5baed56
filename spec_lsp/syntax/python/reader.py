"""Goes through a Python file in order, without running any of it, and notes what it starts.

A call of one of the file's own functions reads its body with what it is given. Functions that nothing calls are read after the file's own
statements, on what these leave behind; their parameters are unknown, or what they are by default. Both arms of an `if` are read, and what
they set differently depends on the way (`ways.py`). A loop over known values takes each of them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache

from spec_lsp.syntax.launch import Choice, Clue, Launch, Problem, Program, Variant
from spec_lsp.syntax.python import options
from spec_lsp.syntax.python.conditions import shown
from spec_lsp.syntax.python.evaluate import ENVIRON, MAX_ROUNDS, Arguments, Evaluator, State, merged, sum_of
from spec_lsp.syntax.python.parsing import Positions
from spec_lsp.syntax.python.sinks import (
    ENGINE_NAMES,
    ENGINES,
    EXEC_FUNCTIONS,
    EXPECTS_FAILURE,
    HELPERS,
    LOOKS,
    NOT_OURS,
    PARSERS,
    RUNS,
    SHELL_FUNCTIONS,
    SPEAKS,
    STARTS_TEXT,
    TELLS,
    Helper,
)
from spec_lsp.syntax.python.survey import Function, Survey, exit_status, survey
from spec_lsp.syntax.python.values import (
    COMPUTED,
    PARAMETER,
    Either,
    Entry,
    Items,
    Later,
    More,
    Opaque,
    Plain,
    Record,
    Routine,
    Spread,
    Table,
    Text,
    Value,
    as_source,
    as_text,
    depends,
    is_open,
    joined,
    mentions,
    mixed,
    named,
    place_of,
    plain,
)
from spec_lsp.syntax.python.ways import Impossible, Turn, World, explore
from spec_lsp.syntax.shell.commands import PIN, SGLANG_IMAGE
from spec_lsp.syntax.shell.embedding import Around, Found, read_arguments, read_script
from spec_lsp.syntax.shell.values import MAX_VARIANTS
from spec_lsp.syntax.word import Fragment, Place, Word, unknown

MAX_STATEMENTS = 30_000
MAX_CALLS = 400
MAX_CALLED = 4_000
"""Statements read in bodies of functions because of calls."""
MAX_NESTED = 8
FIRST = ("__init__", "setUpClass", "setUp")
"""Methods that run before others."""
OPTIONS = ("args", "opts", "options", "flags", "cli_args")
"""What parameters are called that take the options of the command line."""
LEAVES = frozenset(("sys.exit", "exit", "quit", "os._exit"))
Way = tuple[Turn, frozenset[int]]
"""A turn, and the ways there that lead to where the file is being read."""


@dataclass(slots=True, eq=False)
class Kind:
    """A class of the file: its own attributes and methods, and the classes of the file it comes from."""

    node: ast.ClassDef
    bases: list[str]
    state: State = field(default_factory=dict)
    methods: dict[str, Function] = field(default_factory=dict)


@dataclass(slots=True)
class Noted:
    """A launch as the visits to its call find it."""

    launch: Launch
    variants: dict[object, Variant]


@dataclass(slots=True)
class Frame:
    """A body of a function that is being read: on what state of the file, and what it returns on which ways."""

    routine: Routine
    outer: State
    called: bool
    depth: int
    returns: list[tuple[tuple[Way, ...], Value]] = field(default_factory=list)


class Reader:
    """Reads one file. `launches`, `problems` and `depends_on` are what it found."""

    def __init__(self, document: str, text: str, positions: Positions, read: Callable[[str], str | None]) -> None:
        self.document = document
        self.read = read
        self.positions = positions
        self.canonical: dict[str, str] = {"sgl": "sglang"}
        self.rebound = cache(_rebound)
        self.survey = Survey()
        self.speaking: set[str] = set()
        self.short: set[str] = set()
        self.evaluator = Evaluator(document, text, positions, self.canonical, self.on_call)
        self.noted: dict[object, Noted] = {}
        self.problems: dict[Place, Problem] = {}
        self.depends_on: set[str] = set()
        self.clues: dict[Clue, None] = {}
        self.around: tuple[Clue, ...] = ()
        self.deferred: list[tuple[Routine, State | None]] = []
        """Functions to be read unless something calls them; those within another with what surrounds them."""
        self.entered: set[ast.AST] = set()
        self.frames: list[Frame] = []
        self.path: list[Way] = []
        self.options: dict[str, Value] = {}
        self.guards: list[str] = []
        """Names of arguments that the release is asked for where the file is being read."""
        self.pending: list[tuple[Place, Found]] = []
        """Commands that functions return to callers of the file, which may add to them, or that the file's own functions are given."""
        self.waiting = False
        """Whether what is found now is such a command."""
        self.kinds: dict[str, Kind] = {}
        self.defined: set[str] = set()
        self.globals: set[str] = set()
        """Names that a function sets for the whole file."""
        self.context: list[Choice] = []
        self.quiet = 0
        self.steps = 0
        self.called_steps = 0

    @property
    def state(self) -> State:
        return self.evaluator.state

    @state.setter
    def state(self, state: State) -> None:
        self.evaluator.state = state

    # The file.

    def run(self, body: Sequence[ast.stmt]) -> None:
        self.prepare(body)
        self.survey = survey(body)
        if not self.may_start_any():
            return
        self.speaking, self.short = self.survey.speaking()
        self.state[ENVIRON] = Table((), Place(self.document, 0, 0), True)
        self.block(body)
        outer = dict(self.state)
        for name in self.globals:
            if name in outer:
                outer[name] = Opaque(place_of(outer[name]), "set in a function")
        self.path = []
        self.deferred.sort(key=lambda one: one[0].node.name in self.survey.called)
        self.run_deferred(outer)
        read: set[str] = set()
        while waiting := [name for name in self.kinds if name not in read]:
            read.update(waiting)
            for name in waiting:
                self.read_class(self.kinds[name], outer)
        for call, found in self.pending:
            self.note(call, found, "list-words", new=True)

    def may_start_any(self) -> bool:
        """Whether anything in the file can start something: a call of SGLang's own, or a text that is part of a command."""
        names = (self.evaluator.name_of(func) for func in self.survey.sinks)
        return self.survey.signs or any(ENGINES.match(n) or n.rpartition(".")[2] not in ENGINE_NAMES for n in names)

    def prepare(self, body: Iterable[ast.stmt]) -> None:
        """What is imported under which name, and which functions the file has itself."""
        for node in every_statement(body):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    self.canonical[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                for alias in node.names:
                    self.canonical[alias.asname or alias.name] = f"{module}.{alias.name}"
            elif isinstance(node, Function | ast.ClassDef):
                self.defined.add(node.name)
            elif isinstance(node, ast.Global):
                self.globals.update(node.names)

    # Statements.

    def block(self, body: Sequence[ast.stmt]) -> bool:
        """Reads statements in order; whether the end is reached."""
        for statement in body:
            self.steps += 1
            self.called_steps += any(f.called for f in self.frames)
            if self.steps - self.called_steps > MAX_STATEMENTS:
                return False
            handler = STATEMENTS.get(type(statement))
            if handler is not None:
                if handler(self, statement) is False:
                    return False
                continue
            for child in ast.iter_child_nodes(statement):
                if isinstance(child, ast.expr):
                    self.evaluate(child)
                    if isinstance(child, ast.Call) and self.evaluator.name_of(child.func) in LEAVES:
                        return False
        return True

    def evaluate(self, node: ast.expr) -> Value:
        return self.evaluator.evaluate(node)

    def assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        for target in node.targets:
            self.bind(target, value)

    def assign_annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.bind(node.target, self.evaluate(node.value))

    def assign_more(self, node: ast.AugAssign) -> None:
        value = self.evaluate(node.value)
        key = self.evaluator.key_of(node.target)
        if key is None:
            return
        before = self.state.get(key)
        place = self.positions.place(node.target)
        if isinstance(node.op, ast.Add) and before is not None:
            self.state[key] = sum_of(before, value, place_of(before))
        elif isinstance(node.op, ast.BitOr) and before is not None and (isinstance(before, Table) or is_open(before)):
            self.state[key] = merged(before, value)
        else:
            self.state[key] = Opaque(place)

    def bind(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            self.bind_each(target.elts, value)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, Opaque(self.positions.place(target)))
        elif isinstance(target, ast.Subscript):
            self.bind_entry(target, value)
        else:
            key = self.evaluator.key_of(target)
            if key is not None:
                self.state[key] = named(value)

    def bind_each(self, targets: Sequence[ast.expr], value: Value) -> None:
        known = isinstance(value, Items) and len(value.items) == len(targets)
        for i, target in enumerate(targets):
            item = value.items[i] if known and isinstance(value, Items) else Opaque(self.positions.place(target))
            self.bind(target, item)

    def bind_entry(self, target: ast.Subscript, value: Value) -> None:
        """`env["X"] = …`, `os.environ["X"] = …`."""
        key = self.evaluator.key_of(target.value)
        if key is None:
            return
        full = self.evaluator.name_of(target.value)
        key = ENVIRON if full == ENVIRON else key
        owner = self.state.get(key)
        name = self.evaluate(target.slice)
        if isinstance(owner, Table) or (owner is not None and is_open(owner)):
            if isinstance(name, Text) and name.word.text is not None and name.word.text not in self.guards:
                self.state[key] = merged(owner, Table((Entry(name.word, value),), place_of(owner)))
            else:
                self.state[key] = merged(owner, Table((), place_of(owner), True))
        elif isinstance(owner, Items):
            self.state[key] = Items((More(owner.place),), owner.place)

    def branch(self, node: ast.If) -> bool:
        known = _constant_test(node.test)
        self.evaluate(node.test)
        turn = self.evaluator.test(node.test) if known is None else known
        if isinstance(turn, bool):
            return self.block(node.body if turn else node.orelse)
        asked = self.evaluator.asked_of_release(node.test)
        return self.ways([lambda: self.guarded(asked, node.body), lambda: self.block(node.orelse)], turn)

    def guarded(self, name: str, body: Sequence[ast.stmt]) -> bool:
        """Reads what is done where the release has an argument of this name: nobody here knows whether it has."""
        self.guards.append(name)
        reached = self.block(body)
        self.guards.pop()
        return reached

    def ways(self, arms: Sequence[Callable[[], bool]], turn: Turn) -> bool:
        """Reads each arm from the present state, and joins what those leave that reach their end."""
        before, depth = self.state, len(self.path)
        ends: dict[int, State] = {}
        for way, arm in enumerate(arms):
            self.state = dict(before)
            self.path.append((turn, frozenset((way,))))
            if arm():
                ends[way] = self.state
            del self.path[depth:]
        if not ends:
            self.state = before
            return False
        if len(ends) < len(arms):
            self.path.append((turn, frozenset(ends)))
        self.state = _joined_states(turn, ends, turn.place)
        return True

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Reads something whose ends are not those of what surrounds it: a round of a loop, a function."""
        depth = len(self.path)
        try:
            yield
        finally:
            del self.path[depth:]

    def loop(self, node: ast.For | ast.AsyncFor) -> bool:
        source = self.evaluate(node.iter)
        place = self.positions.place(node.iter)
        if (
            isinstance(source, Items)
            and len(source.items) <= MAX_ROUNDS
            and not any(isinstance(v, More) or is_open(v) for v in source.items)
        ):
            for item in source.items:
                self.bind(node.target, item)
                label = self._label(node.target, item)
                with self.choice(Choice(place_of(item), label) if label else None), self.aside():
                    self.block(node.body)
            return self.block(node.orelse)
        self.rounds(lambda: self.bind(node.target, Opaque(place)), node, place)
        return self.block(node.orelse)

    def rounds(self, begin: Callable[[], None], node: ast.For | ast.AsyncFor | ast.While, place: Place) -> None:
        """Any number of rounds: none, or one with what more of them may do unknown."""
        before = dict(self.state)
        for name in self.rebound(node):
            if name in self.state and not isinstance(self.state[name], Items | Table | Routine):
                self.state[name] = Opaque(place, COMPUTED)
        for name in _added_to(node):
            if isinstance(self.state.get(name), Plain):
                self.state[name] = Opaque(place, COMPUTED)
        start = dict(self.state)
        turn = Turn(place, ("the loop runs", "the loop does not run"))
        with self.aside():
            self.path.append((turn, frozenset((0,))))
            begin()
            self.block(node.body)
        ends = {0: _grown(start, self.state, place), 1: before}
        self.state = _joined_states(turn, ends, place)

    @staticmethod
    def _label(target: ast.expr, item: Value) -> str:
        if not isinstance(target, ast.Name) or not isinstance(item, Text | Plain):
            return ""
        text = as_text(item).text
        return f"`{target.id}` is `{text}`" if text is not None else ""

    @contextmanager
    def choice(self, choice: Choice | None) -> Iterator[None]:
        if choice is not None:
            self.context.append(choice)
        try:
            yield
        finally:
            if choice is not None:
                self.context.pop()

    def repeat(self, node: ast.While) -> bool:
        self.evaluate(node.test)
        if _constant_test(node.test) is True:
            with self.aside():
                self.block(node.body)
            return True
        self.rounds(lambda: None, node, self.positions.place(node.test))
        return True

    def attempt(self, node: ast.Try) -> bool:
        before = dict(self.state)
        place = self.positions.place(node)
        reached = self.block(node.body) and self.block(node.orelse)
        after, depth = self.state, len(self.path)
        labels = "nothing fails", *(f"`{_raised(h)}` is raised" for h in node.handlers)
        turn = Turn(place, labels)
        ends = {0: after} if reached else {}
        for way, handler in enumerate(node.handlers, 1):
            self.state = _mixed_states(before, after, place)
            self.path.append((turn, frozenset((way,))))
            if self.block(handler.body):
                ends[way] = self.state
            del self.path[depth:]
        if ends and len(ends) <= len(node.handlers):
            self.path.append((turn, frozenset(ends)))
        self.state = _joined_states(turn, ends, place) if ends else after
        return self.block(node.finalbody) and bool(ends)

    def with_(self, node: ast.With | ast.AsyncWith) -> bool:
        fails = False
        before = self.state.get(ENVIRON)
        for item in node.items:
            value = self.evaluate(item.context_expr)
            if isinstance(item.context_expr, ast.Call):
                name = self.evaluator.name_of(item.context_expr.func)
                fails = fails or EXPECTS_FAILURE.search(name) is not None
                self.patch_environment(item.context_expr, name)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value if isinstance(value, Opaque) else Opaque(place_of(value)))
        self.quiet += fails
        reached = self.block(node.body)
        self.quiet -= fails
        if before is not None:
            self.state[ENVIRON] = before
        return reached or fails

    def patch_environment(self, node: ast.Call, name: str) -> None:
        """`with patch.dict(os.environ, {…}):`."""
        if not name.endswith("patch.dict") or len(node.args) < 2 or self.evaluator.name_of(node.args[0]) != ENVIRON:
            return
        environ, more = self.state.get(ENVIRON), self.evaluate(node.args[1])
        if isinstance(environ, Table) and isinstance(more, Table):
            for entry in more.entries:
                environ = environ.with_entry(entry)
            self.state[ENVIRON] = environ

    def match(self, node: ast.Match) -> bool:
        self.evaluate(node.subject)
        arms: list[Callable[[], bool]] = [lambda case=case: self.block(case.body) for case in node.cases]  # type: ignore[misc]
        subject = ast.unparse(node.subject)
        labels = [f"`{subject}` is `{ast.unparse(case.pattern)}`" for case in node.cases]
        arms.append(lambda: True)
        return self.ways(arms, Turn(self.positions.place(node.subject), (*labels, f"`{subject}` is anything else")))

    def leave(self, node: ast.Return | ast.Raise | ast.Break | ast.Continue) -> bool:
        if isinstance(node, ast.Return) and node.value is not None:
            value = self.evaluate(node.value)
            if self.frames:
                frame = self.frames[-1]
                frame.returns.append((tuple(self.path[frame.depth :]), value))
            self.start_returned(node.value, value)
        if isinstance(node, ast.Raise) and node.exc is not None:
            status = exit_status(node)
            if status is None:
                self.evaluate_quietly(node.exc)
            else:
                self.evaluate(status)
        return False

    def delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                key = self.evaluator.key_of(target.value)
                owner = self.state.get(key or "")
                if isinstance(owner, Items) and key:
                    self.state[key] = Items((More(owner.place),), owner.place)

    # Functions and classes.

    def start_returned(self, node: ast.expr, value: Value) -> None:
        """A list of words that a function returns is a command, a text if its name says so; callers in the file may add to it first."""
        called = self.frames[-1].called if self.frames else False
        self.waiting = called
        for (one,) in self.each_way(value) if mentions(value) else ():
            if isinstance(one, Items):
                place = one.place if isinstance(node, ast.Name) else self.positions.place(node)
                self.start_arguments(place, one, self.environment(None))
            elif isinstance(one, Text) and self.frames and returns_command(self.frames[-1].routine.node.name, one):
                self.start_script(self.positions.place(node), one, self.environment(None))
        self.waiting = False

    def told(self, found: Found) -> Found:
        """What was found, with what is chosen where the file is being read."""
        context = tuple(self.context)
        return replace(
            found,
            launches=tuple(
                replace(one, variants=tuple(replace(v, choices=(*context, *v.choices)) for v in one.variants))
                for one in found.launches
            ),
        )

    def define(self, node: Function) -> None:
        clues = (*self.around, *self.decorator_clues(node.decorator_list))
        routine = Routine(node, clues, self.positions.place(node), within=bool(self.frames))
        self.state[node.name] = routine
        self.deferred.append((routine, self.state if self.frames else None))

    def define_class(self, node: ast.ClassDef) -> None:
        bases = [name for base in node.bases if (name := self.evaluator.key_of(base))]
        kind = self.kinds[node.name] = Kind(node, bases)
        clues = self.decorator_clues(node.decorator_list)
        outer, around = self.state, self.around
        self.state = dict(outer)
        self.around = (*around, *clues)
        fields = [s for s in node.body if not isinstance(s, Function)]
        self.block(fields)
        kind.state = {name: value for name, value in self.state.items() if outer.get(name) is not value}
        kind.methods = {s.name: s for s in node.body if isinstance(s, Function)}
        self.state, self.around = outer, around
        for name, value in kind.state.items():
            outer[f"{node.name}.{name}"] = value
        for name, method in kind.methods.items():
            outer[f"{node.name}.{name}"] = self.method_of(method, node.name)

    def method_of(self, method: Function, kind: str) -> Routine:
        return Routine(method, self.decorator_clues(method.decorator_list), self.positions.place(method), kind)

    def read_class(self, kind: Kind, outer: State) -> None:
        """The methods of a class, its own and those it inherits, on its own attributes."""
        line = self._line_of(kind)
        attributes, methods = self.members(line)
        if len(line) > 1 and not any(m.kind == kind.node.name for m in methods.values()) and not kind.state:
            return
        clues = tuple(c for base in line for c in self.decorator_clues(base.node.decorator_list))
        inherits = len(line) > 1 or any(kind.node.name in other.bases for other in self.kinds.values())
        state = {
            **outer,
            **{f"self.{name}": _filled_in(value) for name, value in attributes.items()},
            **{f"self.{name}": method for name, method in methods.items()},
        }
        attributes_of: State = {}
        label = Choice(self._name_place(kind.node), f"the class is `{kind.node.name}`") if inherits else None
        nodes = [m.node for m in methods.values()]
        counts = _attribute_counts(nodes)
        called = self.survey.called_by(nodes)
        if inherits:
            self.entered.difference_update(nodes)
        with self.choice(label):
            for method in sorted(
                methods.values(),
                key=lambda m: (m.node.name not in FIRST, m.node.name in called, m.node.lineno),
            ):
                known = method.node in self.entered
                if method.node.name not in FIRST and (known or not self.is_read(method.node)):
                    continue
                self.quiet += known
                own = {**state, **attributes_of}
                left = self.body_of(replace(method, clues=(*clues, *method.clues)), own)
                self.quiet -= known
                for name, value in left.items():
                    before = attributes_of.get(name, state.get(name))
                    if not name.startswith("self.") or before is value:
                        continue
                    if counts.get(name, 0) > 1:
                        attributes_of[name] = Opaque(place_of(value), "set more than once")
                    else:
                        attributes_of[name] = value if before is None else mixed(before, value, place_of(value))
                self.run_deferred({**state, **attributes_of})

    def is_read(self, node: Function) -> bool:
        """Whether a function that nothing calls may start something, or leave something to those that do."""
        return node.name in self.speaking or any(any(_attributes_set(s)) for s in every_statement(node.body))

    def members(self, line: Sequence[Kind]) -> tuple[State, dict[str, Routine]]:
        """The attributes and methods of a class, with those it inherits."""
        attributes: State = {}
        methods: dict[str, Routine] = {}
        for base in reversed(line):
            attributes.update(base.state)
            methods.update({name: self.method_of(node, base.node.name) for name, node in base.methods.items()})
        return attributes, methods

    def run_deferred(self, outer: State) -> None:
        while self.deferred:
            routine, around = self.deferred.pop(0)
            if routine.node not in self.entered and self.is_read(routine.node):
                self.body_of(routine, around if around is not None else outer)

    def _line_of(self, kind: Kind) -> list[Kind]:
        """The class and those of the file it comes from, itself first."""
        found: list[Kind] = []
        waiting = [kind]
        while waiting:
            one = waiting.pop(0)
            if one not in found:
                found.append(one)
                waiting += [self.kinds[b] for b in one.bases if b in self.kinds]
        return found

    def _name_place(self, node: ast.ClassDef) -> Place:
        start, _ = self.positions.span(node)
        at = self.positions.text.find(node.name, start)
        return Place(self.document, at, at + len(node.name))

    def body_of(self, routine: Routine, outer: State) -> State:
        """Reads a function that nothing calls, on what surrounds it; gives what it leaves behind."""
        self.entered.add(routine.node)
        state = dict(outer)
        spec = routine.node.args
        turn = Turn(
            self.positions.place(routine.node),
            (f"`{routine.node.name}` is called with its defaults", f"`{routine.node.name}` is given more"),
        )
        for argument, default in _with_defaults(spec):
            if argument.arg not in ("self", "cls"):
                state[argument.arg] = self.parameter(argument, default, turn)
        if spec.vararg is not None:
            place = self.positions.place(spec.vararg)
            state[spec.vararg.arg] = Items((More(place, PARAMETER),), place)
        if spec.kwarg is not None:
            state[spec.kwarg.arg] = Table((), self.positions.place(spec.kwarg), True)
        state.update(self.click_options(routine.node))
        return self.read_body(Frame(routine, outer, False, 0), state)[0]

    def click_options(self, node: Function) -> State:
        """The parameters that `@click.option(…)` gives a function."""
        found: State = {}
        for decorator in node.decorator_list:
            name = self.evaluator.name_of(decorator.func) if isinstance(decorator, ast.Call) else ""
            if isinstance(decorator, ast.Call) and name.rpartition(".")[2] == "option":
                positional = [self.evaluate_quietly(a) for a in decorator.args]
                keywords = {k.arg: self.evaluate_quietly(k.value) for k in decorator.keywords if k.arg}
                one = options.option(decorator, Arguments(positional, keywords, []), self.positions.place(decorator))
                found.update([one] if one is not None else [])
        return found

    def parameter(self, argument: ast.arg, default: ast.expr | None, turn: Turn) -> Value:
        """What a parameter is while nobody is known to call the function: its default, or anything."""
        place = self.positions.place(argument)
        unknown = Opaque(place, PARAMETER, object())
        if argument.arg in OPTIONS and self.options:
            return Record(self.options, place)
        if default is None:
            return unknown
        value = self.evaluate_quietly(default)
        return Either(turn, (value, unknown), place, 1 if isinstance(value, Plain) and value.value is None else 0)

    def read_body(self, frame: Frame, state: State) -> tuple[State, Value]:
        """Reads the body of a function on the state given; what it leaves behind, and what it returns."""
        before, around, path = self.state, self.around, self.path
        if not frame.called:
            self.path = []
        frame.depth = len(self.path)
        self.state = state
        self.around = (*frame.routine.clues,) if not frame.called else (*around, *frame.routine.clues)
        self.frames.append(frame)
        with self.aside():
            self.block(frame.routine.node.body)
        self.frames.pop()
        left = self.state
        self.state, self.around, self.path = before, around, path
        return left, _returned(frame)

    def decorator_clues(self, decorators: Sequence[ast.expr]) -> tuple[Clue, ...]:
        """`@app.function(gpu="H100:2")`: the hardware that Modal and its like run a function on."""
        found = []
        for node in decorators:
            self.evaluate(node)
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                if keyword.arg == "gpu":
                    value = self.evaluate(keyword.value)
                    if isinstance(value, Text) and value.word.known_start:
                        found.append(Clue("gpu", value.word.known_start, value.word.place))
        return tuple(found)

    # Calls.

    def on_call(self, node: ast.Call, name: str, given: Arguments) -> Value | None:
        last = name.rpartition(".")[2]
        self.note_clues(last, given)
        place = self.positions.place(node) if self.evaluator.within is None else self.evaluator.within
        own = self.own_call(node, last, given, place)
        if self.quiet:
            return own
        if self.may_start(name, last, given):
            outer, self.waiting = self.waiting, own is not None
            for one in self.each_way_given(given):
                self.start(node, name, last, one, place)
            self.waiting = outer
        return own

    def may_start(self, name: str, last: str, given: Arguments) -> bool:
        if ENGINES.match(name) or last in HELPERS or last in PARSERS:
            return True
        values = (*given.positional, *given.keywords.values())
        return not (SPEAKS.match(last) or LOOKS.match(last)) and any(map(mentions, values))

    def start(self, node: ast.Call, name: str, last: str, given: Arguments, place: Place) -> None:
        """What a call starts, in one way of the program."""
        helper = HELPERS.get(last)
        if ENGINES.match(name):
            self.start_engine(node, last, given, place)
        elif helper is not None and self.is_helper(name, last):
            self.start_helper(helper, given, place)
        elif (
            last in PARSERS and last not in self.defined and given.positional and isinstance(given.positional[0], Items)
        ):
            self.start_words(given.positional[0], place)
        else:
            self.start_command(name, last, given, place)

    def each_way_given(self, given: Arguments) -> Iterator[Arguments]:
        """The arguments in each way of the program that they depend on."""
        values = (*given.positional, *given.keywords.values(), *given.rest)
        first, second = len(given.positional), len(given.positional) + len(given.keywords)
        for found in self.each_way(*(Items((v,), place_of(v)) for v in values)):
            lists = [v.items if isinstance(v, Items) else () for v in found]
            positional = [v for one in lists[:first] for v in one]
            keywords = {name: one[0] for name, one in zip(given.keywords, lists[first:second], strict=True)}
            yield Arguments(positional, keywords, [one[0] for one in lists[second:]])

    def each_way(self, *values: Value) -> Iterator[tuple[Value, ...]]:
        """The values, and the environment, in each way of the program that they depend on."""
        environ = self.state[ENVIRON]
        path = tuple(self.path)
        if not any(map(depends, (*values, environ))):
            yield values
            return

        def reach(world: World) -> None:
            for turn, taken in path:
                if world.way(turn) not in taken:
                    raise Impossible

        context = self.context
        for world, found in explore(reach, lambda world: tuple(plain(v, world) for v in (*values, environ))):
            self.context, self.state[ENVIRON] = [*context, *world.choices()], found[-1]
            yield found[:-1]
        self.context, self.state[ENVIRON] = context, environ

    # Calls of what the file has itself.

    def own_call(self, node: ast.Call, last: str, given: Arguments, place: Place) -> Value | None:
        """What a call of the file's own functions, classes and options comes to; None for any other."""
        if last == "add_argument":
            found = options.option(node, given, place)
            if found is not None:
                self.options[found[0]] = found[1]
            return None
        if last in ("parse_args", "parse_known_args") and self.options and last not in self.defined:
            record = Record(self.options, place)
            return Items((record, Items((More(place),), place)), place) if last == "parse_known_args" else record
        target = given.keywords.get("target")
        if isinstance(target, Routine):  # a thread or process
            args, kwargs = given.keywords.get("args"), given.keywords.get("kwargs")
            listed: list[Value] = list(args.items) if isinstance(args, Items) else []
            listed += [More(place_of(args))] if args is not None and not isinstance(args, Items) else []
            self.call_routine(target, node, Arguments(listed, {}, [kwargs] if kwargs is not None else []), {})
            return None
        if (
            last in ("submit", "apply_async", "run_in_executor")
            and given.positional
            and isinstance(given.positional[0], Routine)
        ):
            self.call_routine(
                given.positional[0], node, Arguments(given.positional[1:], given.keywords, given.rest), {}
            )
            return None
        key = self.evaluator.key_of(node.func)
        called = self.state.get(key) if key is not None else None
        if isinstance(called, Routine):
            return self.call_routine(self.inherited(node.func, called), node, given, self.passed(called, node))
        if key in self.kinds or (key == "cls" and self.frames):
            kind = key if key in self.kinds else self.frames[-1].routine.kind
            return self.instance(self.kinds[kind], node, given, place) if kind in self.kinds else None
        return self.call_method(node, given) if isinstance(node.func, ast.Attribute) else None

    def inherited(self, func: ast.expr, found: Routine) -> Routine:
        """The method that `super().name` means."""
        if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call)) or not self.frames:
            return found
        own = self.frames[-1].routine.kind
        for base in self._line_of(self.kinds[own])[1:] if own in self.kinds else ():
            if found.node.name in base.methods:
                return self.method_of(base.methods[found.node.name], base.node.name)
        return found

    def call_method(self, node: ast.Call, given: Arguments) -> Value | None:
        """A method of an instance of one of the file's classes; what it sets stays set."""
        assert isinstance(node.func, ast.Attribute)
        owner = (
            self.evaluate_quietly(node.func.value)
            if isinstance(node.func.value, ast.Name | ast.Attribute | ast.Call)
            else None
        )
        if not isinstance(owner, Record) or owner.kind not in self.kinds:
            return None
        _, methods = self.members(self._line_of(self.kinds[owner.kind]))
        method = methods.get(node.func.attr)
        if method is None:
            return None
        before = {name: value for name, value in self.state.items() if name.startswith("self.")}
        self.become(owner, methods)
        value = self.call_routine(method, node, given, self.passed(method, node))
        changed = replace(owner, fields=self.own_fields())
        self.leave_self(before)
        key = self.evaluator.key_of(node.func.value)
        if key is not None and key in self.state:
            self.state[key] = changed
        return value

    def become(self, owner: Record, methods: Mapping[str, Routine]) -> None:
        """Makes `self` an instance."""
        self.leave_self({})
        self.state.update({f"self.{name}": value for name, value in {**methods, **owner.fields}.items()})

    def leave_self(self, before: State) -> None:
        self.state = {name: value for name, value in self.state.items() if not name.startswith("self.")} | before

    def own_fields(self) -> State:
        return {
            name[5:]: value
            for name, value in self.state.items()
            if name.startswith("self.") and not isinstance(value, Routine)
        }

    def instance(self, kind: Kind, node: ast.Call, given: Arguments, place: Place) -> Value | None:
        """An instance of one of the file's classes: with what `__init__` sets, or its fields as they are given."""
        line = self._line_of(kind)
        attributes, methods = self.members(line)
        init = methods.get("__init__")
        if init is None:
            return Record(self.given_fields(line, attributes, given), place, kind.node.name)
        before = {name: value for name, value in self.state.items() if name.startswith("self.")}
        self.become(Record(attributes, place), methods)
        done = self.call_routine(init, node, given, self.passed(init, node))
        fields = self.own_fields()
        self.leave_self(before)
        return None if done is None else Record(fields, place, kind.node.name)

    def given_fields(self, line: Sequence[Kind], attributes: State, given: Arguments) -> State:
        """The fields of a dataclass or its like: what is given, else their defaults."""
        names = [
            s.target.id
            for base in reversed(line)
            for s in base.node.body
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        ]
        fields = dict(attributes)
        fields.update(zip(names, given.positional, strict=False))
        fields.update(given.keywords)
        for table in given.rest:
            if isinstance(table, Table) and not table.open:
                fields.update({e.name: e.value for e in table.entries})
            else:
                return {}
        return fields

    def passed(self, routine: Routine, node: ast.Call) -> dict[str, str]:
        """For each parameter, the name whose value it is given: a list that is added to there has more here."""
        names = [a.arg for a in _parameters(routine)]
        found = {k.arg: key for k in node.keywords if k.arg and (key := self.evaluator.key_of(k.value))}
        for name, argument in zip(names, node.args, strict=False):
            key = self.evaluator.key_of(argument) if not isinstance(argument, ast.Starred) else None
            if key:
                found[name] = key
        return found

    def call_routine(
        self, routine: Routine, node: ast.Call, given: Arguments, passed: Mapping[str, str]
    ) -> Value | None:
        """Reads the body of a function of the file with what it is given; what it returns, None where it is not read."""
        recursive = any(f.routine.node is routine.node for f in self.frames)
        too_much = len(self.frames) >= MAX_NESTED or self.called_steps > MAX_CALLED
        if recursive or too_much or not (self.speaking | self.short) & {routine.node.name}:
            return None
        self.entered.add(routine.node)
        outer = self.frames[0].outer if self.frames else self.state
        own = {name: v for name, v in self.state.items() if name.startswith("self.") or name == ENVIRON}
        base = dict(self.state) if routine.within else {**outer, **own}
        bound = self.bound(routine, given)
        if not (given.positional or given.keywords or given.rest):
            bound.update(self.click_options(routine.node))
        place = self.positions.place(node) if self.evaluator.within is None else self.evaluator.within
        label = Choice(place, f"`{shown(ast.unparse(node))}` is called") if node.args or node.keywords else None
        with self.choice(label):
            left, value = self.read_body(Frame(routine, outer, True, 0), {**base, **bound})
        self.state.update({name: v for name, v in left.items() if name.startswith("self.") or name == ENVIRON})
        rebound = self.rebound(routine.node)
        for name, key in passed.items():
            before, after = bound.get(name), left.get(name)
            if before is not None and after is not None and before is not after and name not in rebound:
                self.state[key] = after
        return value

    def bound(self, routine: Routine, given: Arguments) -> State:
        """The parameters of a function with what a call gives them."""
        spec = routine.node.args
        listed = list(given.positional)
        sure = next((i for i, v in enumerate(listed) if isinstance(v, More | Spread)), len(listed))
        state: State = {}
        rest = [t for t in given.rest if isinstance(t, Table)]
        surely = len(rest) == len(given.rest) and not any(t.open for t in rest) and sure == len(listed)
        named = {**{e.name: e.value for t in rest for e in t.entries}, **given.keywords}
        parameters = _parameters(routine)
        for i, (argument, default) in enumerate(_with_defaults(spec, parameters)):
            positional = i < len(parameters) and i < sure
            if positional and i < len(listed):
                state[argument.arg] = listed[i]
            elif argument.arg in named:
                state[argument.arg] = named.pop(argument.arg)
            elif default is not None and surely:
                state[argument.arg] = self.evaluate_quietly(default)
            else:
                state[argument.arg] = Opaque(self.positions.place(argument), PARAMETER, object())
        if spec.vararg is not None:
            place = self.positions.place(spec.vararg)
            state[spec.vararg.arg] = Items(
                tuple(listed[len(parameters) :]) if sure == len(listed) else (More(place, PARAMETER),), place
            )
        if spec.kwarg is not None:
            place = self.positions.place(spec.kwarg)
            left = (Entry(_fixed(name, place), value) for name, value in named.items() if name)
            state[spec.kwarg.arg] = Table(tuple(left), place, not surely)
        return state

    def is_helper(self, name: str, last: str) -> bool:
        """Whether it is SGLang's own function, and not one of this name that the file or another package has."""
        module = name.rpartition(".")[0]
        return last not in self.defined and (not module or "sglang" in module or "test_utils" in module)

    def note_clues(self, last: str, given: Arguments) -> None:
        """Images and pins that a program names: `Image.from_registry("lmsysorg/sglang:v0.5.9")`, `.pip_install("sglang==0.5.9")`."""
        for value in given.positional:
            text = value.word.known_start if isinstance(value, Text) else ""
            if last in ("from_registry", "from_dockerhub") and SGLANG_IMAGE.search(text) and isinstance(value, Text):
                self.clues[Clue("image", text, value.word.place)] = None
            elif last.endswith("pip_install") and PIN.match(text) and isinstance(value, Text):
                self.clues[Clue("pin", text, value.word.place)] = None

    def environment(self, given: Value | None) -> dict[str, Word]:
        table = given if given is not None and not isinstance(given, Plain) else self.state.get(ENVIRON)
        if not isinstance(table, Table):
            return {}
        return {e.name: as_text(e.value) for e in table.entries if e.name}

    def surroundings(self, env: Mapping[str, Word]) -> Around:
        return Around(env, self.around, (), self.read)

    def start_command(self, name: str, last: str, given: Arguments, place: Place) -> None:
        """A command that is handed to the system, or to a function that plainly runs it."""
        env = self.environment(given.keywords.get("env"))
        shell = given.keywords.get("shell")
        with_shell = isinstance(shell, Plain) and bool(shell.value)
        values = [*given.positional, *given.keywords.values()]
        runs = name in SHELL_FUNCTIONS or last in SHELL_FUNCTIONS or with_shell
        for i, value in enumerate(values):
            if isinstance(value, Items):
                self.start_arguments(place, value, env)
            elif isinstance(value, Text) and "sglang" in "".join(f.text or "" for f in value.word.fragments):
                plainly = STARTS_TEXT.match(value.word.known_start) is not None
                if (runs and i == 0) or (plainly and RUNS.search(last)):
                    self.start_script(place, value, env)
        if last == "create_subprocess_exec" and len(given.positional) > 1:
            self.start_arguments(place, Items(tuple(given.positional), place), env)
        if EXEC_FUNCTIONS.match(name) and len(given.positional) > 2 and isinstance(given.positional[1], Text):
            self.start_arguments(place, Items(tuple(given.positional[1:]), place), env)

    def start_arguments(self, call: Place, value: Items, env: Mapping[str, Word]) -> None:
        found = self.commands_of(value, env)
        if found is not None:
            self.note(call, found, "list-words")

    def commands_of(self, value: Items, env: Mapping[str, Word]) -> Found | None:
        """What a list of arguments starts."""
        words = [as_text(v) for v in value.items]
        if self.quiet or not any("sglang" in (f.text or "") for w in words for f in w.fragments):
            return None
        return read_arguments(self.document, words, self.surroundings(env))

    def start_script(self, call: Place, value: Text, env: Mapping[str, Word]) -> None:
        self.note(call, read_script(self.document, value.word, self.surroundings(env)), "shell")

    def start_helper(self, helper: Helper, given: Arguments, place: Place) -> None:
        model = given.get(helper.model[0], *helper.model[1])
        args = given.get(helper.args[0], *helper.args[1])
        separated = given.keywords.get("pd_separated")
        if "num_replicas" in given.keywords or (
            separated is not None and not (isinstance(separated, Plain) and not separated.value)
        ):
            return
        given_items: tuple[Value, ...] = ()
        if isinstance(args, Items):
            given_items = args.items
        elif args is not None and not isinstance(args, Plain):
            given_items = (More(place_of(args), getattr(args, "reason", COMPUTED)),)
        start = Place(self.document, place.start, place.start)
        env = next((given.keywords[n] for n in helper.env if n in given.keywords), None)
        first = as_text(model) if model is not None else unknown(start, PARAMETER)
        words = (
            _fixed("--model-path", start),
            first,
            *map(as_text, given_items),
            *self.helpers_tp(helper, given, start),
        )
        self.add(
            helper.program,
            place,
            words,
            self.environment(env) if env is not None else self.environment(None),
            "list-words",
        )

    @staticmethod
    def helpers_tp(helper: Helper, given: Arguments, start: Place) -> tuple[Word, ...]:
        """`--tp` as a helper adds it."""
        size = given.get(helper.tp[0], *helper.tp[1]) if helper.tp is not None else None
        args = given.get(helper.args[0], *helper.args[1])
        there = isinstance(args, Items) and any(as_text(v).known_start.startswith("--tp") for v in args.items)
        alone = isinstance(size, Plain) and size.value == 1
        return () if size is None or there or alone else (_fixed("--tp", start), as_text(size))

    def start_words(self, value: Items, place: Place) -> None:
        words = tuple(map(as_text, value.items))
        if any(w.text not in (None, "-h", "--help") for w in words):
            self.add("launch_server", place, words, self.environment(None), "list-words")

    def start_engine(self, node: ast.Call, last: str, given: Arguments, place: Place) -> None:
        """`sgl.Engine(…)`, `ServerArgs(…)`: words are the keywords, each with the source of its value."""
        if "server_args" in given.keywords or self.evaluator.within is not None:
            return
        words: list[Word] = []
        rest = iter(given.rest)
        if last == "ServerArgs" and given.positional:
            first = given.positional[0]
            words += [_fixed("model_path", place_of(first)), as_source(first)]
        for keyword in node.keywords:
            if keyword.arg is None:
                words += self.unpacked_keywords(next(rest))
            elif keyword.arg not in NOT_OURS:
                start = self.positions.place(keyword).start
                key = Place(self.document, start, start + len(keyword.arg))
                words += [Word((Fragment(keyword.arg, key),), key), as_source(given.keywords[keyword.arg])]
        if any(not w.splat for w in words):
            self.add("engine", place, tuple(words), self.environment(None), "keywords", self.positions.place(node.func))

    def evaluate_quietly(self, node: ast.expr) -> Value:
        self.quiet += 1
        value = self.evaluate(node)
        self.quiet -= 1
        return value

    def unpacked_keywords(self, value: Value) -> list[Word]:
        if not isinstance(value, Table):
            return [unknown(place_of(value), getattr(value, "reason", COMPUTED), splat=True)]
        words = [w for e in value.entries if e.name not in NOT_OURS for w in (e.key, as_source(e.value))]
        return [*words, unknown(value.place, COMPUTED, splat=True)] if value.open else words

    # Notes.

    def add(
        self,
        program: Program,
        call: Place,
        words: tuple[Word, ...],
        env: Mapping[str, Word],
        syntax: str,
        entry: Place | None = None,
    ) -> None:
        start = entry or Place(
            self.document, call.start, min(call.end, call.start + _name_length(self.positions.text, call))
        )
        launch = Launch(program, start, call, (Variant(words, env),), syntax, self.around)  # type: ignore[arg-type]
        self.keep(launch)

    def note(self, call: Place, found: Found, syntax: str, new: bool = False) -> None:
        """Notes what a command starts; with `new`, only what nothing else has noted."""
        if self.waiting:
            self.pending.append((call, self.told(found)))
            return
        known = set(self.noted) if new else set()
        written = _written(v for n in self.noted.values() for v in n.variants.values()) if new else set()
        for launch in found.launches:
            own = replace(launch, syntax=syntax) if launch.syntax == "yaml-words" else launch  # type: ignore[arg-type]
            places = _written(launch.variants) if new else set()
            if _key(launch) not in known and not (places and places <= written):
                self.keep(own)
        for problem in found.problems:
            self.problems.setdefault(problem.place, problem)
        self.depends_on |= found.depends_on

    def keep(self, launch: Launch) -> None:
        """Notes a launch; one that is noted already gets the variants that are new."""
        if self.quiet:
            return
        key = _key(launch)
        noted = self.noted.get(key)
        if noted is None:
            if len(self.noted) >= MAX_CALLS:
                return
            noted = self.noted[key] = Noted(launch, {})
        for variant in launch.variants:
            told = _told(variant)
            choices = (*self.context, *variant.choices)
            same = noted.variants.get(told)
            if same is not None:
                noted.variants[told] = replace(same, choices=tuple(c for c in same.choices if c in choices))
            elif len(noted.variants) < MAX_VARIANTS:
                noted.variants[told] = replace(variant, choices=choices)

    def launches(self) -> tuple[Launch, ...]:
        found = [
            replace(
                n.launch,
                variants=_distinct(list(n.variants.values())),
                clues=tuple(dict.fromkeys((*n.launch.clues, *self.clues))),
            )
            for n in self.noted.values()
        ]
        return tuple(sorted(found, key=lambda one: (one.extent.start, one.extent.end)))


def _distinct(variants: list[Variant]) -> tuple[Variant, ...]:
    """The variants without choices that all of them share."""
    shared = set(variants[0].choices).intersection(*(v.choices for v in variants))
    return tuple(replace(v, choices=tuple(c for c in dict.fromkeys(v.choices) if c not in shared)) for v in variants)


def _key(launch: Launch) -> object:
    """What tells launches apart: the last word of the entry point, for the first may be one of several (`venv or sys.executable`)."""
    return launch.place.document, launch.place.end, launch.program


def _written(variants: Iterable[Variant]) -> set[Place]:
    """Where the words of launches are written."""
    return {f.place for variant in variants for word in variant.words for f in word.fragments if f.verbatim}


def _told(variant: Variant) -> object:
    words = tuple((w.text, w.splat, tuple(f.text for f in w.fragments)) for w in variant.words)
    return words, tuple((n, w.text) for n, w in variant.env.items())


def _filled_in(value: Value) -> Value:
    """The attribute of a class as its methods see it: None and an empty string wait for a subclass to say more."""
    waits = (isinstance(value, Plain) and value.value is None) or (isinstance(value, Text) and value.word.text == "")
    return Opaque(place_of(value), "set by a subclass") if waits else value


def _fixed(text: str, place: Place) -> Word:
    at = Place(place.document, place.start, place.start)
    return Word((Fragment(text, at, False, fixed=True),), at)


def _name_length(text: str, call: Place) -> int:
    bracket = text.find("(", call.start, call.end)
    return (bracket if bracket >= 0 else call.end) - call.start


def returns_command(name: str, value: Text) -> bool:
    """Whether a function returns a text for a shell to run, not for people to read."""
    return STARTS_TEXT.match(value.word.known_start) is not None and bool(RUNS.search(name)) and not TELLS.search(name)


def _joined_states(turn: Turn, ends: Mapping[int, State], place: Place) -> State:
    first, *others = ends.values()
    found = dict(first)
    differing = {name for other in others for name, value in other.items() if first.get(name) is not value}
    for name in differing:
        values = {way: state[name] for way, state in ends.items() if name in state}
        found[name] = joined(turn, values, place)
    return found


def _mixed_states(left: State, right: State, place: Place) -> State:
    found = dict(left)
    for name, value in right.items():
        own = left.get(name)
        if own is not value:
            found[name] = value if own is None else mixed(own, value, place)
    return found


def _grown(before: State, after: State, place: Place) -> State:
    """What one round of a loop leaves, with what further rounds may add unknown."""
    found = dict(after)
    for name, value in after.items():
        own = before.get(name)
        if own is None or own is value:
            continue
        begins = own.items if isinstance(own, Items) else (own,)
        if isinstance(value, Items) and tuple(map(_spread, value.items[: len(begins)])) == begins:
            found[name] = Items((*value.items, More(place)), value.place)
        else:
            found[name] = mixed(own, value, place)
    return found


def _spread(item: Value) -> Value:
    return item.value if isinstance(item, Spread) else item


def _returned(frame: Frame) -> Value:
    """What a function returns, by the way to each `return`."""
    place = frame.routine.place
    nothing = Plain(None, Word((Fragment("None", place, False, fixed=True),), place))
    if not frame.returns:
        return nothing
    if not frame.returns[0][0]:
        return frame.returns[0][1]
    returns = tuple(frame.returns)

    def make(world: World) -> Value:
        for path, value in returns:
            if all(world.way(turn) in taken for turn, taken in path):
                return plain(value, world)
        return nothing

    return Later(make, place, any(mentions(value) for _, value in returns))


def _parameters(routine: Routine) -> list[ast.arg]:
    """The parameters that take positional arguments, without the object itself."""
    spec = routine.node.args
    found = [*spec.posonlyargs, *spec.args]
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in routine.node.decorator_list)
    return found[1:] if routine.kind and not static else found


def _with_defaults(
    spec: ast.arguments, positional: list[ast.arg] | None = None
) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Each parameter with its default, those that take positional arguments first."""
    every = [*spec.posonlyargs, *spec.args]
    defaults = [*[None] * (len(every) - len(spec.defaults)), *spec.defaults]
    for argument, default in zip(every, defaults, strict=True):
        if positional is None or argument in positional:
            yield argument, default
    yield from zip(spec.kwonlyargs, spec.kw_defaults, strict=True)


def _rebound(node: ast.AST) -> set[str]:
    """The names that a piece of program may set to another value; not those that it only adds to."""
    found: dict[str, int] = {}
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store | ast.Del):
            found[one.id] = found.get(one.id, 0) + 1
    for name in _added_to(node):
        found[name] -= 1
    return {name for name, times in found.items() if times}


def _added_to(node: ast.AST) -> list[str]:
    """The names that a piece of program adds to with `+=`, as often as it does."""
    return [n.target.id for n in ast.walk(node) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)]


def _raised(handler: ast.ExceptHandler) -> str:
    return ast.unparse(handler.type) if handler.type is not None else "something"


def _attribute_counts(methods: Iterable[Function]) -> dict[str, int]:
    """In how many methods each attribute of `self` or `cls` is assigned."""
    counts: dict[str, int] = {}
    for method in methods:
        for name in {name for statement in every_statement(method.body) for name in _attributes_set(statement)}:
            counts[name] = counts.get(name, 0) + 1
    return counts


def _attributes_set(statement: ast.stmt) -> Iterator[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    for target in targets:
        for node in target.elts if isinstance(target, ast.Tuple) else (target,):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in ("self", "cls")
            ):
                yield f"self.{node.attr}"


def every_statement(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements, those within others too."""
    waiting = list(body)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        inner: list[ast.stmt] = []
        for field_name in ("body", "orelse", "finalbody"):
            inner += getattr(node, field_name, ())
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            inner += part.body
        waiting.extend(reversed(inner))


def _constant_test(node: ast.expr) -> bool | None:
    if isinstance(node, ast.Constant):
        return bool(node.value)
    main = isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == "__name__"
    if main or (isinstance(node, ast.Name) and node.id == "TYPE_CHECKING"):
        return main
    return None


STATEMENTS: dict[type, Callable[..., bool | None]] = {
    ast.Assign: Reader.assign,
    ast.AnnAssign: Reader.assign_annotated,
    ast.AugAssign: Reader.assign_more,
    ast.If: Reader.branch,
    ast.For: Reader.loop,
    ast.AsyncFor: Reader.loop,
    ast.While: Reader.repeat,
    ast.Try: Reader.attempt,
    ast.With: Reader.with_,
    ast.AsyncWith: Reader.with_,
    ast.Match: Reader.match,
    ast.Return: Reader.leave,
    ast.Raise: Reader.leave,
    ast.Break: Reader.leave,
    ast.Continue: Reader.leave,
    ast.Delete: Reader.delete,
    ast.FunctionDef: Reader.define,
    ast.AsyncFunctionDef: Reader.define,
    ast.ClassDef: Reader.define_class,
}
