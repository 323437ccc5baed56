"""Values of expressions: literals, names that the file sets, composed lists, formatted strings. Everything else is unknown."""

from __future__ import annotations

import ast
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from spec_lsp.expressions import expression
from spec_lsp.interruption import checkpoint
from spec_lsp.records import NamedTuple, replace
from spec_lsp.syntax.python import conditions, strings
from spec_lsp.syntax.python.arguments import Arguments
from spec_lsp.syntax.python.containers import MAX_ITEMS, items_made, items_of, merged, sum_of
from spec_lsp.syntax.python.parsing import Positions, parsed
from spec_lsp.syntax.python.texts import with_gaps
from spec_lsp.syntax.python.truth import OUTSIDE, identity, is_none, truth_of
from spec_lsp.syntax.python.values import (
    COMPUTED,
    DEPENDS,
    SIGN,
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
    Waits,
    alike,
    as_text,
    data_of,
    depends,
    is_open,
    mentions,
    plain,
    seen_at,
    text_of,
)
from spec_lsp.syntax.python.ways import ExecutionPath, Impossible, Turn, Undecided
from spec_lsp.syntax.shell.values import FROM_ENVIRONMENT
from spec_lsp.syntax.word import MAX_FRAGMENTS, TOO_LONG, Fragment, Place, Word

ENVIRON = "os.environ"
MAX_NUMBER = 1 << 53
MAX_WHOLE = 1 << 256
"""A larger whole number is not written out: no flag takes it, and Python itself limits how many digits it writes."""
MAX_DEPTH = 60
MAX_KEYS = 16
"""The most entries of a dictionary that are told apart when the key is unknown."""
MAX_ROUNDS = 64
"""How many rounds of a loop over known items are read one by one."""
RELEASE = "it depends on the release"
OF_SGLANG = expression(r"\Asglang\.|(?:\A|\.)(?:ServerArgs|Engine)\Z")
PROPERTIES = frozenset(("property", "cached_property"))
State = dict[str, Value]
"""The values of names: `args`, `self.model`, `os.environ`."""
Call = Callable[[ast.Call, str, "Arguments"], "Value | None"]
ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


class Parts(NamedTuple):
    """What an expression reads: names, and calls and attributes by their nodes; and whether a text in it may start SGLang."""

    node: ast.expr
    names: tuple[str, ...]
    calls: tuple[int, ...]
    signs: bool


class Expressions(ABC):
    """Evaluates expressions in `state`. `on_call` is called for each call, and may return its result."""

    def __init__(
        self, document: str, text: str, positions: Positions, canonical: dict[str, str], on_call: Call
    ) -> None:
        self.document = document
        self.text = text
        self.positions = positions
        self.canonical = canonical
        self.on_call = on_call
        self.state: State = {}
        self.within: Place | None = None
        """The place of the f-string around an expression; the expression's own nodes have no places."""
        self.depth = 0
        self.world: ExecutionPath | None = None
        """The way for which an expression is evaluated again; None during the first pass over the file."""
        self.known_parts: dict[int, Parts] = {}
        self.forms: dict[int, tuple[ast.expr, conditions.Asked]] = {}
        self.equalities: dict[tuple[int, str], ast.Compare] = {}
        self.called: dict[int, Value] = {}
        """The results of calls of the file's own functions, by node."""
        self.questions: dict[object, tuple[Turn, tuple[bool, object]]] = {}
        """Each question, with whether it was first asked in its opposite form; its subject is kept, so that its id is not reused."""

    @abstractmethod
    def method(self, node: ast.Call, given: Arguments) -> Value | None:
        """The result of a method of a string, a list or a dictionary; None for any other."""

    @abstractmethod
    def function(self, node: ast.Call, name: str, given: Arguments) -> Value | None:
        """The result of a builtin function; None for any other."""

    def place(self, node: ast.expr | ast.keyword) -> Place:
        return self.within or self.positions.place(node)

    def source_of(self, node: ast.expr) -> Word | None:
        """The source of a literal, one to one."""
        if self.within is not None:
            return None
        start, end = self.positions.span(node)
        place = Place(self.document, start, end)
        return Word((Fragment(self.text[start:end], place),), place)

    def opaque(self, node: ast.expr, reason: str = COMPUTED) -> Opaque:
        return Opaque(self.place(node), reason)

    def key_of(self, node: ast.expr) -> str | None:
        """`args`, `self.model`, `os.environ`: the key of a name or a chain of attributes."""
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            owner = self.key_of(node.value)
            if owner is None:
                return None
            return f"self.{node.attr}" if owner == "cls" else f"{owner}.{node.attr}"
        if isinstance(node, ast.Call):  # `type(self).model`, `super().model`
            name = self.key_of(node.func)
            return "self" if name in ("type", "super") else None
        return None

    def name_of(self, node: ast.expr) -> str:
        """The full name of a function, with its imports resolved: `subprocess.run`, `sglang.Engine`."""
        key = self.key_of(node)
        if key is None:
            return f"?.{node.attr}" if isinstance(node, ast.Attribute) else ""
        first, dot, rest = key.partition(".")
        return self.canonical.get(first, first) + dot + rest

    def evaluate(self, node: ast.expr) -> Value:
        checkpoint()
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                return self.opaque(node)
            handler = EXPRESSIONS.get(type(node))
            if handler is not None:
                return self.handled(handler, node)
            for name in node._fields:
                child = getattr(node, name)
                for one in child if isinstance(child, list) else (child,):
                    if isinstance(one, ast.expr):
                        self.evaluate(one)
            return self.opaque(node)
        finally:
            self.depth -= 1

    def handled(self, handler: Callable[..., Value], node: ast.expr) -> Value:
        """The value of an expression, or how to compute it once the way is known."""
        try:
            return handler(self, node)
        except Waits:
            if self.world is not None:
                return self.opaque(node, DEPENDS)
        within = self.within
        state, called = self.met_in(node)
        signs = self.mentions(node) or any(map(mentions, called.values()))
        return Later(lambda world: self.again(node, world, state, called, within), self.place(node), signs)

    def met_in(self, node: ast.expr) -> tuple[State, dict[int, Value]]:
        """What an expression is evaluated with: the current state, and the results of calls in it."""
        parts = self.parts(node)
        return dict(self.state), {call: self.called[call] for call in parts.calls if call in self.called}

    def mentions(self, node: ast.expr) -> bool:
        """Whether an expression's value may be a command that starts SGLang."""
        parts = self.parts(node)
        return parts.signs or any(key in self.state and mentions(self.state[key]) for key in parts.names)

    def parts(self, node: ast.expr) -> Parts:
        """The parts of an expression, computed once."""
        found = self.known_parts.get(id(node))
        if found is None:
            nodes = [n for n in ast.walk(node) if isinstance(n, ast.expr)]
            checkpoint(len(nodes) // 2)
            names = dict.fromkeys(key for n in nodes if (key := self.key_of(n)))
            calls = tuple(id(n) for n in nodes if isinstance(n, ast.Call | ast.Attribute))
            texts = (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
            found = self.known_parts[id(node)] = Parts(node, tuple(names), calls, any(map(SIGN.search, texts)))
        return found

    def again(
        self, node: ast.expr, world: ExecutionPath, state: State, called: dict[int, Value], within: Place | None = None
    ) -> Value:
        """The value of an expression under an execution path, in the state in which it was met. Starts nothing and changes nothing."""
        kept = self.state, self.called, self.within, self.world, self.depth
        self.state, self.called, self.within, self.world = dict(state), called, within, world
        try:
            return self.evaluate(node)
        finally:
            self.state, self.called, self.within, self.world, self.depth = kept

    def test(self, node: ast.expr) -> Turn | bool:
        """The outcome of a test that is already evaluated: True, False, or the choice on which it depends (way 0: it holds, 1: it does
        not)."""
        state, called = self.met_in(node)
        if self.world is not None:
            return self.holds(node, self.world, state, called)
        try:
            return self.holds(node, ExecutionPath({}), state, called)
        except (Undecided, Impossible):
            decide = lambda world: 0 if self.holds(node, world, state, called) else 1  # noqa: E731
            return Turn(self.place(node), ("", ""), decide)

    def holds(self, node: ast.expr, world: ExecutionPath, state: State, called: dict[int, Value]) -> bool:
        if isinstance(node, ast.BoolOp):
            wanted = isinstance(node.op, ast.Or)
            return wanted if any(self.holds(v, world, state, called) == wanted for v in node.values) else not wanted
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self.holds(node.operand, world, state, called)
        form = self.forms.get(id(node))
        if form is None:
            form = self.forms[id(node)] = (node, conditions.asked(node))
        world.splits += 1
        try:
            known = truth_of(plain(self.again(node, world, state, called), world))
            subject = plain(self.again(form[1].subject, world, state, called), world) if known is None else None
        finally:
            world.splits -= 1
        if known is not None:
            return known
        turn, turned = self.question(node, form[1], subject, state)
        return (world.way(turn) == 0) != turned

    def question(self, node: ast.expr, one: conditions.Asked, value: Value | None, state: State) -> tuple[Turn, bool]:
        """The choice for a test whose outcome is only known outside of the file; the same one for the same test of the same values."""
        holders = [state.get(key) for key in self.parts(one.subject).names]
        subject: object = one.written, tuple(map(identity, holders))
        if isinstance(value, Opaque) and value.of is not None:
            subject = value.of
        asked = subject, one.form
        if asked not in self.questions:
            text = conditions.shown(ast.unparse(node))
            labels = f"`{text}` holds", f"`{text}` does not hold"
            self.questions[asked] = Turn(self.place(node), labels, None, one.about(subject)), (one.turned, holders)
        turn, (turned, _) = self.questions[asked]
        return turn, turned != one.turned

    def asked_of_release(self, node: ast.expr) -> str:
        """The name, in a test whether this release of SGLang has it (`"x" in inspect.signature(ServerArgs).parameters`, `hasattr`)."""
        if isinstance(node, ast.Call) and self.name_of(node.func) == "hasattr" and len(node.args) == 2:
            of, name = node.args[0], node.args[1]
            return str(name.value) if isinstance(name, ast.Constant) and OF_SGLANG.search(self.name_of(of)) else ""
        if (
            not isinstance(node, ast.Compare)
            or not isinstance(node.ops[0], ast.In)
            or not isinstance(node.left, ast.Constant)
        ):
            return ""
        found = self.evaluate(node.comparators[0])
        last = found.items[-1] if isinstance(found, Items) and found.items else found
        return str(node.left.value) if getattr(last, "reason", "") == RELEASE else ""

    def compare(self, node: ast.Compare) -> Value:
        """A comparison as a value, if its sides are known."""
        values = [self.evaluate(n) for n in (node.left, *node.comparators)]
        if len(node.ops) != 1:
            return self.opaque(node)
        (left_known, left), (right_known, right) = map(data_of, values)
        found = conditions.compared(type(node.ops[0]), left, right) if left_known and right_known else None
        if found is None and len(values) == 2 and isinstance(node.ops[0], ast.Is | ast.IsNot):
            found = is_none(values[0], right if right_known else OUTSIDE, isinstance(node.ops[0], ast.Is))
        return self.answer(node) if found is None else self.computed(node, found)

    def answer(self, node: ast.expr) -> Value:
        """A test as a value: True or False, depending on the way."""
        turn = self.test(node) if self.world is None else None
        if isinstance(turn, bool):
            return self.computed(node, turn)
        if turn is None:
            return self.opaque(node)
        return Either(turn, (self.computed(node, True), self.computed(node, False)), self.place(node))

    def negated(self, node: ast.UnaryOp) -> Value:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            if is_open(value):
                raise Waits
            known = truth_of(value)
            return self.answer(node) if known is None else self.computed(node, not known)
        literal = self.source_of(node)
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and isinstance(value, Plain):
            number = value.value
            if isinstance(number, int | float) and not isinstance(number, bool) and literal is not None:
                return Plain(-number, literal)
        return self.opaque(node)

    def computed(self, node: ast.expr, value: Any) -> Plain:
        place = self.place(node)
        return Plain(value, Word((Fragment(repr(value), place, False, fixed=True),), place))

    def awaited(self, node: ast.Await) -> Value:
        return self.evaluate(node.value)

    def constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, str):
            return self.string(node)
        literal = self.source_of(node)
        if isinstance(node.value, int) and abs(node.value) >= MAX_WHOLE:
            return self.opaque(node, TOO_LONG)
        if isinstance(node.value, bool | int | float) or node.value is None:
            place = self.place(node)
            return Plain(node.value, literal or Word((Fragment(repr(node.value), place, False),), place))
        return self.opaque(node)

    def string(self, node: ast.Constant | ast.JoinedStr) -> Value:
        place = self.place(node)
        value = node.value if isinstance(node, ast.Constant) else None
        if self.within is not None:
            known = value if isinstance(value, str) else None
            return Text(Word((Fragment(known, place, False, COMPUTED if known is None else ""),), place))
        start, end = self.positions.span(node)
        found = strings.pieces(self.text, start, end)
        if found is None:
            text = value if isinstance(value, str) else None
            return Text(Word((Fragment(text, place, False, COMPUTED if text is None else ""),), place))
        fragments: list[Fragment] = []
        for piece in found:
            if len(fragments) > MAX_FRAGMENTS and isinstance(node, ast.JoinedStr):
                return text_of(fragments, place)
            if piece.formatted:
                fragments.extend(strings.formatted(self.document, self.text, piece, self.formatted))
            else:
                fragments.extend(strings.characters(self.document, self.text, piece.start, piece.end, piece.raw))
        if isinstance(value, str) and "".join(f.text or "" for f in fragments) != value.replace("\r\n", "\n"):
            fragments = [Fragment(value, place, False)] if value else []
        if isinstance(node, ast.JoinedStr):
            return text_of(fragments, place)
        return Text(Word(tuple(fragments), place), self.source_of(node))

    def formatted(self, expression: str, place: Place) -> tuple[Fragment, ...]:
        """The text of `{expression}` in an f-string."""
        body = _expression(expression)
        unknown = (Fragment(None, place, False, COMPUTED),)
        if body is None or len(body) != 1 or not isinstance(body[0], ast.Expr):
            return unknown
        outer, self.within = self.within, place
        try:
            word = as_text(seen_at(self.evaluate(body[0].value), place))
        finally:
            self.within = outer
        return unknown if word.splat else word.fragments

    def name(self, node: ast.Name | ast.Attribute) -> Value:
        key = self.key_of(node)
        if key is None:
            return self.unknown_attribute(node)
        found = self.state.get(key)
        if found is None:
            full = self.name_of(node)
            found = self.state.get(full) if full == ENVIRON else None
        if found is None:
            return self.unknown_attribute(node)
        if isinstance(found, Routine):
            return self.on_attribute(node, found)
        return seen_at(found if self.world is None else plain(found, self.world), self.place(node))

    def on_attribute(self, node: ast.expr, routine: Routine) -> Value:
        """The value of an attribute: a function by its name; for a property, what it returns."""
        if not any(isinstance(d, ast.Name) and d.id in PROPERTIES for d in routine.node.decorator_list):
            return routine
        if self.world is not None:
            return plain(self.called[id(node)], self.world) if id(node) in self.called else self.opaque(node)
        call = ast.copy_location(ast.Call(node, [], []), node)
        found = self.on_call(call, self.name_of(node), Arguments([], {}, []))
        self.called[id(node)] = found if found is not None else self.opaque(node)
        return self.called[id(node)]

    def unknown_attribute(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Attribute):
            owner = self.evaluate(node.value)
            if is_open(owner):
                raise Waits
            if isinstance(owner, Opaque) and (owner.reason == RELEASE or owner.of is not None):
                reason = owner.reason if owner.reason == RELEASE else COMPUTED
                return Opaque(self.place(node), reason, None if owner.of is None else (owner.of, node.attr))
            found = owner.fields.get(node.attr) if isinstance(owner, Record) else None
            if found is not None:
                return seen_at(found if self.world is None else plain(found, self.world), self.place(node))
        return (
            Opaque(self.place(node), COMPUTED, ("name", node.id)) if isinstance(node, ast.Name) else self.opaque(node)
        )

    def items(self, node: ast.List | ast.Tuple) -> Value:
        found: list[Value] = []
        for item in node.elts[: MAX_ITEMS + 1]:
            if isinstance(item, ast.Starred):
                found.extend(self.unpacked(item))
            else:
                found.append(self.evaluate(item))
        plain = all(not isinstance(v, Opaque | More) and getattr(v, "literal", None) for v in found)
        literal = (
            self.source_of(node)
            if plain and not any(isinstance(i, ast.Starred | ast.Name) for i in node.elts)
            else None
        )
        if literal is not None and not _is_literal(node):
            literal = None
        return items_made(found, self.place(node), literal)

    def unpacked(self, node: ast.Starred) -> tuple[Value, ...]:
        return items_of(self.evaluate(node.value), self.place(node))

    def table(self, node: ast.Dict) -> Value:
        found = Table((), self.place(node))
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.evaluate(item)
            if key is None:
                both = merged(found, value)
                if not isinstance(both, Table):
                    raise Waits
                found = both
                continue
            name = self.evaluate(key)
            if is_open(name):
                raise Waits
            if isinstance(name, Text) and name.word.text is not None:
                found = found.with_entry(Entry(name.word, value))
            else:
                found = replace(found, open=True)
        return replace(found, literal=self.source_of(node) if _is_literal(node) else None)

    def added(self, node: ast.BinOp) -> Value:
        number = _worked_out(node)
        if number is not None:
            place = self.place(node)
            return Plain(number, Word((Fragment(str(number), place, False),), place))
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        if isinstance(node.op, ast.Add):
            return sum_of(left, right, self.place(node))
        if isinstance(node.op, ast.BitOr) and (isinstance(left, Table) or is_open(left)):
            return merged(left, right)
        if is_open(left):
            raise Waits
        if isinstance(node.op, ast.Mod) and isinstance(left, Text):
            return text_of(with_gaps(left.word, re.compile(r"%(?:\(\w+\))?[-\d.]*[a-z]")), self.place(node))
        return self.opaque(node)

    def conditional(self, node: ast.IfExp) -> Value:
        return self.one_of(node.test, node.body, node.orelse, self.place(node))

    def one_of(self, test: ast.expr, yes: ast.expr, no: ast.expr, place: Place) -> Value:
        """`yes if test else no`."""
        self.evaluate(test)
        turn = self.test(test)
        if isinstance(turn, bool):
            self.evaluate(no if turn else yes)
            return self.evaluate(yes if turn else no)
        values = self.evaluate(yes), self.evaluate(no)
        return values[0] if alike(*values) else Either(turn, values, place, None, any(map(mentions, values)))

    def chosen(self, node: ast.BoolOp) -> Value:
        """`x or "default"`, `x and y`."""
        *firsts, last = node.values
        found = self.evaluate(last)
        for test in reversed(firsts):
            value = self.evaluate(test)
            turn = self.test(test)
            either = isinstance(node.op, ast.Or)
            if isinstance(turn, bool):
                found = value if turn == either else found
            elif not (either and isinstance(value, Opaque) and truth_of(found) is False):
                arms = (value, found) if either else (found, value)
                found = Either(turn, arms, self.place(node), None, any(map(mentions, arms)))
            else:
                found = value  # an unknown value may be empty itself
        return plain(found, self.world) if self.world is not None else found

    def subscript(self, node: ast.Subscript) -> Value:
        owner = self.evaluate(node.value)
        index = self.told_apart(node.slice) if isinstance(owner, Table) else self.evaluate(node.slice)
        if is_open(owner):
            raise Waits
        known, at = data_of(index)
        if not known:
            return self.by_key(node, node.slice, owner) if isinstance(owner, Table) else self.opaque(node)
        if isinstance(owner, Table):
            found = next((e.value for e in owner.entries if e.name == at), None)
            if found is not None:
                return seen_at(found, self.place(node))
            environ = self.name_of(node.value) == ENVIRON
            return self.opaque(node, FROM_ENVIRONMENT if environ else COMPUTED)
        items = owner.items if isinstance(owner, Items) else ()
        if any(isinstance(v, Spread) for v in items):
            raise Waits
        if isinstance(at, int) and -len(items) <= at < len(items) and not any(isinstance(v, More) for v in items):
            return items[at]
        return self.opaque(node)

    def told_apart(self, node: ast.expr) -> Value:
        """A key, in all ways and not only in that of a default, as what an `if` asks about is."""
        if self.world is None:
            return self.evaluate(node)
        self.world.splits += 1
        try:
            return plain(self.evaluate(node), self.world)
        finally:
            self.world.splits -= 1

    def by_key(self, node: ast.expr, key: ast.expr, owner: Table, otherwise: Value | None = None) -> Value:
        """An entry whose key is not known, `presets[name]`: as `a if name == "a" else b`, over the keys that the dictionary has."""
        entries = [e for e in owner.entries if isinstance(e.name, str)]
        if not 0 < len(entries) <= MAX_KEYS or self.name_of(getattr(node, "value", node)) == ENVIRON:
            return self.opaque(node)
        found = otherwise or (self.opaque(node) if owner.open else entries.pop().value)
        for entry in reversed(entries):
            turn = self.test(self.equality(key, str(entry.name)))
            if isinstance(turn, bool):
                found = entry.value if turn else found
            else:
                arms = seen_at(entry.value, self.place(node)), found
                found = Either(turn, arms, self.place(node), None, any(map(mentions, arms)))
        return found

    def equality(self, node: ast.expr, text: str) -> ast.Compare:
        """`node == text`, which the program does not ask in these words."""
        made = self.equalities.get((id(node), text))
        if made is None:
            made = ast.Compare(node, [ast.Eq()], [ast.copy_location(ast.Constant(text), node)])
            self.equalities[id(node), text] = ast.copy_location(made, node)
        return made

    def walrus(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        self.state[node.target.id] = value
        return value

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Value:
        """The items for each round over known items; whether an `if` lets one through depends on the way."""
        before = dict(self.state)
        items = self.rounds(node.generators, lambda: (self.evaluate(node.elt),), self.place(node))
        self.state = before
        return items_made(items, self.place(node))

    def rounds(
        self, generators: list[ast.comprehension], make: Callable[[], tuple[Value, ...]], place: Place
    ) -> tuple[Value, ...]:
        if not generators:
            return make()
        first, *others = generators
        source = self.evaluate(first.iter)
        if is_open(source):
            raise Waits
        if not isinstance(source, Items) or len(source.items) > MAX_ROUNDS:
            return (More(place, getattr(source, "reason", COMPUTED)),)
        found: tuple[Value, ...] = ()
        for item in source.items:
            if isinstance(item, Spread):
                raise Waits
            if isinstance(item, More):
                found = (*found, item)
                continue
            self.bind_names(first.target, item)
            found = (*found, *self.let_through(first.ifs, lambda: self.rounds(others, make, place), place))
            if len(found) > MAX_ITEMS:
                break
        return found

    def let_through(
        self, tests: list[ast.expr], make: Callable[[], tuple[Value, ...]], place: Place
    ) -> tuple[Value, ...]:
        if not tests:
            return make()
        self.evaluate(tests[0])
        turn = self.test(tests[0])
        if isinstance(turn, bool):
            return self.let_through(tests[1:], make, place) if turn else ()
        inner = Items(self.let_through(tests[1:], make, place), place)
        return (Spread(Either(turn, (inner, Items((), place)), place, None, mentions(inner)), place),)

    def bind_names(self, target: ast.expr, value: Value) -> None:
        """The names of a loop's target."""
        if isinstance(target, ast.Name):
            self.state[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            known = isinstance(value, Items) and len(value.items) == len(target.elts)
            for i, one in enumerate(target.elts):
                self.bind_names(one, value.items[i] if known and isinstance(value, Items) else self.opaque(one))

    def table_of_rounds(self, node: ast.DictComp) -> Value:
        """`{k: v for k, v in d.items()}`."""
        before = dict(self.state)
        pair = lambda: (Items((self.evaluate(node.key), self.evaluate(node.value)), self.place(node)),)  # noqa: E731
        pairs = self.rounds(node.generators, pair, self.place(node))
        self.state = before
        found = Table((), self.place(node))
        for one in pairs:
            if depends(one):
                raise Waits
            key = one.items[0] if isinstance(one, Items) else None
            if isinstance(one, Items) and isinstance(key, Text) and key.word.text is not None:
                found = found.with_entry(Entry(key.word, one.items[1]))
            else:
                found = replace(found, open=True)
        return found

    def call(self, node: ast.Call) -> Value:
        positional: list[Value] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                positional.extend(self.unpacked(argument))
            else:
                positional.append(self.evaluate(argument))
        keywords: dict[str, Value] = {}
        rest: list[Value] = []
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is None:
                rest.append(value)
            else:
                keywords[keyword.arg] = value
        name = self.name_of(node.func)
        arguments = Arguments(positional, keywords, rest)
        if self.world is not None:
            found = plain(self.called[id(node)], self.world) if id(node) in self.called else None
        else:
            found = self.on_call(node, name, arguments)
            self.called.pop(id(node), None)
            if found is not None:
                self.called[id(node)] = found
        if found is None:
            found = self.method(node, arguments) or self.function(node, name, arguments)
        return found if found is not None else self.opaque(node)


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


@lru_cache(maxsize=2_000)
def _expression(source: str) -> list[ast.stmt] | None:
    """The expression between the braces of an f-string."""
    return parsed(f"({source})")


def _worked_out(node: ast.expr) -> int | None:
    """The value of arithmetic on whole numbers: `32 * 1024`; None for anything else, and for values that no flag takes."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int and abs(node.value) < MAX_NUMBER else None
    if not isinstance(node, ast.BinOp) or type(node.op) not in ARITHMETIC:
        return None
    right = _worked_out(node.right)  # checked first, so that a long sum of texts ends here
    left = None if right is None else _worked_out(node.left)
    if left is None or right is None:
        return None
    number = ARITHMETIC[type(node.op)](left, right)
    return number if abs(number) < MAX_NUMBER else None


EXPRESSIONS: dict[type, Callable[..., Value]] = {
    ast.Constant: Expressions.constant,
    ast.JoinedStr: Expressions.string,
    ast.Name: Expressions.name,
    ast.Attribute: Expressions.name,
    ast.List: Expressions.items,
    ast.Tuple: Expressions.items,
    ast.Dict: Expressions.table,
    ast.BinOp: Expressions.added,
    ast.IfExp: Expressions.conditional,
    ast.BoolOp: Expressions.chosen,
    ast.Subscript: Expressions.subscript,
    ast.NamedExpr: Expressions.walrus,
    ast.ListComp: Expressions.comprehension,
    ast.GeneratorExp: Expressions.comprehension,
    ast.SetComp: Expressions.comprehension,
    ast.DictComp: Expressions.table_of_rounds,
    ast.Compare: Expressions.compare,
    ast.UnaryOp: Expressions.negated,
    ast.Await: Expressions.awaited,
    ast.Call: Expressions.call,
}
