"""Reads statements in order: the values of names after them, and the ways on which the program gets there."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

from spec_lsp.interruption import Exhausted, checkpoint
from spec_lsp.records import dataclass, field
from spec_lsp.syntax.launch import Choice
from spec_lsp.syntax.python.arguments import Arguments
from spec_lsp.syntax.python.containers import merged, sum_of
from spec_lsp.syntax.python.evaluate import Evaluator
from spec_lsp.syntax.python.expressions import ENVIRON, MAX_ROUNDS, State
from spec_lsp.syntax.python.notes import Notes
from spec_lsp.syntax.python.parsing import Positions
from spec_lsp.syntax.python.sinks import EXPECTS_FAILURE
from spec_lsp.syntax.python.survey import Function
from spec_lsp.syntax.python.values import (
    COMPUTED,
    Entry,
    Items,
    More,
    Opaque,
    Plain,
    Routine,
    Spread,
    Table,
    Text,
    Value,
    as_text,
    is_open,
    joined,
    mixed,
    named,
    place_of,
)
from spec_lsp.syntax.python.ways import Turn
from spec_lsp.syntax.word import Fragment, Place

MAX_STATEMENTS = 30_000
STEPS_OF_A_STATEMENT = 5
"""Work of a statement besides that of its expressions."""
LEAVES = frozenset(("sys.exit", "exit", "quit", "os._exit"))
Way = tuple[Turn, frozenset[int]]
"""A choice, and the ways there that lead to where the file is being read."""


@dataclass(slots=True)
class Frame:
    """A function body that is being read: the state of the file on which it is read, and what it returns on which ways."""

    routine: Routine
    outer: State
    called: bool
    depth: int
    returns: list[tuple[tuple[Way, ...], Value]] = field(default_factory=list)


class Statements(Notes, ABC):
    """Reads statements, and has expressions evaluated in the state that the statements leave."""

    def __init__(self, document: str, text: str, positions: Positions) -> None:
        super().__init__(document, positions)
        self.canonical: dict[str, str] = {"sgl": "sglang"}
        self.rebound = cache(_rebound)
        self.evaluator = Evaluator(document, text, positions, self.canonical, self.on_call)
        self.frames: list[Frame] = []
        self.path: list[Way] = []
        self.guards: list[str] = []
        """Names of arguments that the program looks for in the installed release, where the file is being read."""
        self.steps = 0
        self.called_steps = 0

    @abstractmethod
    def on_call(self, node: ast.Call, name: str, given: Arguments) -> Value | None:
        """Called for each call that is evaluated; its result, None if unknown."""

    @abstractmethod
    def leave(self, node: ast.Return | ast.Raise | ast.Break | ast.Continue) -> bool:
        """Called for a statement after which nothing follows."""

    @abstractmethod
    def define(self, node: Function) -> None:
        """A function is defined."""

    @abstractmethod
    def define_class(self, node: ast.ClassDef) -> None:
        """A class is defined."""

    @property
    def state(self) -> State:
        return self.evaluator.state

    @state.setter
    def state(self, state: State) -> None:
        self.evaluator.state = state

    def block(self, body: Sequence[ast.stmt]) -> bool:
        """Read statements in order; returns whether the end is reached."""
        for statement in body:
            checkpoint(STEPS_OF_A_STATEMENT)
            self.steps += 1
            self.called_steps += any(f.called for f in self.frames)
            if self.steps - self.called_steps > MAX_STATEMENTS:
                raise Exhausted
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

    def evaluate_quietly(self, node: ast.expr) -> Value:
        self.quiet += 1
        value = self.evaluate(node)
        self.quiet -= 1
        return value

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

    def delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                key = self.evaluator.key_of(target.value)
                owner = self.state.get(key or "")
                if isinstance(owner, Items) and key:
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
        """Read what is done if the release has an argument of this name, which we do not know."""
        self.guards.append(name)
        reached = self.block(body)
        self.guards.pop()
        return reached

    def ways(self, arms: Sequence[Callable[[], bool]], turn: Turn) -> bool:
        """Read each arm from the current state, and join the states of those that reach their end."""
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
        """Read something with ends of its own: a round of a loop, a function."""
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
        """Read any number of rounds: none, or one, after which the effects of further ones are unknown."""
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


def _constant_test(node: ast.expr) -> bool | None:
    if isinstance(node, ast.Constant):
        return bool(node.value)
    main = isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == "__name__"
    if main or (isinstance(node, ast.Name) and node.id == "TYPE_CHECKING"):
        return main
    return None


def _raised(handler: ast.ExceptHandler) -> str:
    return ast.unparse(handler.type) if handler.type is not None else "something"


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
    """The value after one round of a loop, with what further rounds may add unknown."""
    found = dict(after)
    for name, value in after.items():
        own = before.get(name)
        if own is None or own is value:
            continue
        begins = own.items if isinstance(own, Items) else (own,)
        if isinstance(value, Items) and tuple(map(_spread, value.items[: len(begins)])) == begins:
            found[name] = Items((*value.items, More(place)), value.place)
        elif isinstance(value, Text) and isinstance(own, Text) and (longer := _longer(own, value, place)) is not None:
            found[name] = longer
        else:
            found[name] = mixed(own, value, place)
    return found


def _longer(before: Text, after: Text, place: Place) -> Text | None:
    """A string to which each round adds: the addition of one round, followed by unknown ones, separated by blanks if the text is; None for
    other values."""
    start, fragments = before.word.fragments, after.word.fragments
    added = fragments[len(start) :]
    if fragments[: len(start)] != start or not added:
        return None
    at = Place(place.document, place.end, place.end)
    blank = (Fragment(" ", at, False, fixed=True),)
    first, last = added[0].text or "", added[-1].text or ""
    more = (Fragment(None, place, False, COMPUTED),)
    between, behind = blank if first[:1].isspace() else (), blank if last[-1:].isspace() else ()
    return Text(after.word._replace(fragments=(*fragments, *between, *more, *behind)))


def _spread(item: Value) -> Value:
    return item.value if isinstance(item, Spread) else item


def _rebound(node: ast.AST) -> set[str]:
    """The names that a piece of code may bind to another value, except those that it only adds to."""
    found: dict[str, int] = {}
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store | ast.Del):
            found[one.id] = found.get(one.id, 0) + 1
    for name in _added_to(node):
        found[name] -= 1
    return {name for name, times in found.items() if times}


def _added_to(node: ast.AST) -> list[str]:
    """The names that a piece of code adds to with `+=`, with how often it does."""
    return [n.target.id for n in ast.walk(node) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)]


STATEMENTS: dict[type, Callable[..., bool | None]] = {
    ast.Assign: Statements.assign,
    ast.AnnAssign: Statements.assign_annotated,
    ast.AugAssign: Statements.assign_more,
    ast.If: Statements.branch,
    ast.For: Statements.loop,
    ast.AsyncFor: Statements.loop,
    ast.While: Statements.repeat,
    ast.Try: Statements.attempt,
    ast.With: Statements.with_,
    ast.AsyncWith: Statements.with_,
    ast.Match: Statements.match,
    ast.Return: lambda run, node: run.leave(node),
    ast.Raise: lambda run, node: run.leave(node),
    ast.Break: lambda run, node: run.leave(node),
    ast.Continue: lambda run, node: run.leave(node),
    ast.Delete: Statements.delete,
    ast.FunctionDef: lambda run, node: run.define(node),
    ast.AsyncFunctionDef: lambda run, node: run.define(node),
    ast.ClassDef: lambda run, node: run.define_class(node),
}
