"""The functions of a Python file. A function is read where it is called, with its arguments; one that is not called is read once, in the
state around it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

from spec_lsp.syntax.launch import Choice, Clue
from spec_lsp.syntax.python import options
from spec_lsp.syntax.python.arguments import Arguments
from spec_lsp.syntax.python.conditions import shown
from spec_lsp.syntax.python.control import Frame
from spec_lsp.syntax.python.expressions import ENVIRON, State
from spec_lsp.syntax.python.parsing import Positions
from spec_lsp.syntax.python.starting import Starting, fixed_word
from spec_lsp.syntax.python.survey import Function, every_statement, exit_status
from spec_lsp.syntax.python.values import (
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
    mentions,
    plain,
)
from spec_lsp.syntax.python.ways import ExecutionPath, Turn
from spec_lsp.syntax.word import Fragment, Word

MAX_CALLED = 4_000
"""The most statements that are read in function bodies because of calls."""
MAX_NESTED = 8
OPTIONS = ("args", "opts", "options", "flags", "cli_args")
"""Names of parameters that take the options of the command line."""


class Functions(Starting):
    """Reads the bodies of functions."""

    def __init__(self, document: str, text: str, positions: Positions, read: Callable[[str], str | None]) -> None:
        super().__init__(document, text, positions, read)
        self.speaking: set[str] = set()
        """The functions that are relevant to commands (`survey.py`)."""
        self.short: set[str] = set()
        self.deferred: list[tuple[Routine, State | None]] = []
        """Functions to be read unless they are called; nested ones with the state around them."""
        self.entered: set[ast.AST] = set()
        self.options: dict[str, Value] = {}
        """The options of the command line that the file declares."""

    def define(self, node: Function) -> None:
        clues = (*self.around, *self.decorator_clues(node.decorator_list))
        routine = Routine(node, clues, self.positions.place(node), within=bool(self.frames))
        self.state[node.name] = routine
        self.deferred.append((routine, self.state if self.frames else None))

    def decorator_clues(self, decorators: Sequence[ast.expr]) -> tuple[Clue, ...]:
        """`@app.function(gpu="H100:2")`: the hardware on which Modal and similar services run a function."""
        found = []
        for node in decorators:
            self.evaluate(node)
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                if keyword.arg == "gpu":
                    value = self.evaluate(keyword.value)
                    if isinstance(value, Text) and value.word.known_start:
                        found.append(Clue("gpu", value.word.known_start, value.word.place))
        return tuple(found)

    def call_routine(
        self, routine: Routine, node: ast.Call, given: Arguments, passed: Mapping[str, str]
    ) -> Value | None:
        """Read the body of a function of the file with its arguments; returns its result, None if it is not read."""
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

    def passed(self, routine: Routine, node: ast.Call) -> dict[str, str]:
        """For each parameter, the name whose value it is given: a list that the function adds to grows here, too."""
        names = [a.arg for a in _parameters(routine)]
        found = {k.arg: key for k in node.keywords if k.arg and (key := self.evaluator.key_of(k.value))}
        for name, argument in zip(names, node.args, strict=False):
            key = self.evaluator.key_of(argument) if not isinstance(argument, ast.Starred) else None
            if key:
                found[name] = key
        return found

    def bound(self, routine: Routine, given: Arguments) -> State:
        """The parameters of a function with the values that a call gives them."""
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
            left = (Entry(fixed_word(name, place), value) for name, value in named.items() if name)
            state[spec.kwarg.arg] = Table(tuple(left), place, not surely)
        return state

    def run_deferred(self, outer: State) -> None:
        while self.deferred:
            routine, around = self.deferred.pop(0)
            if routine.node not in self.entered and self.is_read(routine.node):
                self.body_of(routine, around if around is not None else outer)

    def is_read(self, node: Function) -> bool:
        """Whether a function that is not called may start something, or leave something to those that do."""
        return node.name in self.speaking or any(any(attributes_set(s)) for s in every_statement(node.body))

    def body_of(self, routine: Routine, outer: State) -> State:
        """Read a function that is not called, in the state around it; returns the state that it leaves."""
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
        """The value of a parameter if no call of the function is known: its default, or unknown."""
        place = self.positions.place(argument)
        unknown = Opaque(place, PARAMETER, object())
        if argument.arg in OPTIONS and self.options:
            return Record(self.options, place)
        if default is None:
            return unknown
        value = self.evaluate_quietly(default)
        return Either(turn, (value, unknown), place, 1 if isinstance(value, Plain) and value.value is None else 0)

    def read_body(self, frame: Frame, state: State) -> tuple[State, Value]:
        """Read the body of a function in the given state; returns the state that it leaves, and its result."""
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


def _returned(frame: Frame) -> Value:
    """The result of a function, by the way to each `return`."""
    place = frame.routine.place
    nothing = Plain(None, Word((Fragment("None", place, False, fixed=True),), place))
    if not frame.returns:
        return nothing
    if not frame.returns[0][0]:
        return frame.returns[0][1]
    returns = tuple(frame.returns)

    def make(world: ExecutionPath) -> Value:
        for path, value in returns:
            if all(world.way(turn) in taken for turn, taken in path):
                return plain(value, world)
        return nothing

    return Later(make, place, any(mentions(value) for _, value in returns))


def _parameters(routine: Routine) -> list[ast.arg]:
    """The parameters for positional arguments, without `self`."""
    spec = routine.node.args
    found = [*spec.posonlyargs, *spec.args]
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in routine.node.decorator_list)
    return found[1:] if routine.kind and not static else found


def _with_defaults(
    spec: ast.arguments, positional: list[ast.arg] | None = None
) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Each parameter with its default, positional ones first."""
    every = [*spec.posonlyargs, *spec.args]
    defaults = [*[None] * (len(every) - len(spec.defaults)), *spec.defaults]
    for argument, default in zip(every, defaults, strict=True):
        if positional is None or argument in positional:
            yield argument, default
    yield from zip(spec.kwonlyargs, spec.kw_defaults, strict=True)


def attributes_set(statement: ast.stmt) -> Iterator[str]:
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
