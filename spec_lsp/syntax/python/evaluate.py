"""What expressions come to: literals, names that the file sets, lists put together, strings formatted. Everything else is unknown."""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from spec_lsp.syntax.python import conditions, strings
from spec_lsp.syntax.python.parsing import Positions, parsed
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
    place_of,
    plain,
    seen_at,
)
from spec_lsp.syntax.python.ways import Impossible, Turn, Undecided, World
from spec_lsp.syntax.shell.values import FROM_ENVIRONMENT
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.word import Fragment, Place, Word

ENVIRON = "os.environ"
MAX_ITEMS = 2_000
MAX_NUMBER = 1 << 53
MAX_DEPTH = 60
MAX_ROUNDS = 64
"""Rounds of a loop over known items that are gone through one by one."""
OUTSIDE = object()
RELEASE = "it depends on the release"
INSPECTS = frozenset(
    ("inspect.signature", "signature", "dataclasses.fields", "fields", "dir", "vars", "inspect.getfullargspec")
)
DECLARES = re.compile(
    r"(?:\A|\.)dataclasses\.field\Z|\A(?:field|Field|Option|Argument)\Z|\A(?:pydantic|typer|attrs?|cyclopts)\.\w*(?:ield|ib|Option|Argument)\Z"
)
OF_SGLANG = re.compile(r"\Asglang\.|(?:\A|\.)(?:ServerArgs|Engine)\Z")
PROPERTIES = frozenset(("property", "cached_property"))
COPIES = frozenset((
    "list", "tuple", "copy.copy", "copy.deepcopy", "copy", "deepcopy", "dict", "textwrap.dedent", "dedent", "os.path.expanduser",
))  # fmt: skip
"""Functions that come to what they are given."""
LOOKED_AT = frozenset((
    "str", "int", "float", "bool", "isinstance", "len", "shlex.split", "shlex.join", "shlex.quote", "json.dumps", "dataclasses.asdict",
    "asdict", "vars",
))  # fmt: skip
"""Functions whose result can be told from what they are given."""
READS = frozenset((
    "items", "keys", "values", "get", "split", "join", "strip", "rstrip", "lstrip", "format", "replace", "startswith", "endswith",
    "removeprefix", "removesuffix", "lower", "upper", "model_dump",
))  # fmt: skip
"""Methods whose result can be told from what their object is."""
TEXT_CHANGES = frozenset(("replace", "removeprefix", "removesuffix", "lower", "upper", "title"))
TYPES = frozenset(("str", "int", "float", "bool", "list", "tuple", "dict"))
BLANKS = re.compile(r"\s+")

State = dict[str, Value]
"""What names hold: `args`, `self.model`, `os.environ`."""

Call = Callable[[ast.Call, str, "Arguments"], "Value | None"]


class Arguments:
    """The evaluated arguments of a call."""

    def __init__(self, positional: list[Value], keywords: dict[str, Value], rest: list[Value]) -> None:
        self.positional = positional
        self.keywords = keywords
        self.rest = rest
        """What `**` brings."""

    def get(self, index: int, *names: str) -> Value | None:
        """An argument by its position or one of its names."""
        for name in names:
            if name in self.keywords:
                return self.keywords[name]
        if 0 <= index < len(self.positional) and not any(isinstance(v, More) for v in self.positional[: index + 1]):
            return self.positional[index]
        return None


class Parts(NamedTuple):
    """What an expression reads: names, and calls and attributes by their nodes; whether a text in it may start SGLang."""

    node: ast.expr
    names: tuple[str, ...]
    calls: tuple[int, ...]
    signs: bool


class Evaluator:
    """Evaluates expressions in `state`. `on_call` sees each call, and may say what it comes to."""

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
        """Where an expression inside an f-string stands; its own nodes have no places."""
        self.depth = 0
        self.world: World | None = None
        """The way in which an expression is evaluated once more; None while the file is gone through."""
        self.known_parts: dict[int, Parts] = {}
        self.forms: dict[int, tuple[ast.expr, conditions.Asked]] = {}
        self.called: dict[int, Value] = {}
        """What calls of the file's own functions came to, by the node."""
        self.questions: dict[object, tuple[Turn, tuple[bool, object]]] = {}
        """Each question with whether it was first asked the other way round; what it is about is kept, so that it stays itself."""

    # Places.

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

    # Names.

    def key_of(self, node: ast.expr) -> str | None:
        """`args`, `self.model`, `os.environ`: what a name or a chain of attributes is known as."""
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
        """The full name of a function, with what it is imported as: `subprocess.run`, `sglang.Engine`."""
        key = self.key_of(node)
        if key is None:
            return f"?.{node.attr}" if isinstance(node, ast.Attribute) else ""
        first, dot, rest = key.partition(".")
        return self.canonical.get(first, first) + dot + rest

    # Expressions.

    def evaluate(self, node: ast.expr) -> Value:
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
        """What an expression comes to, or how to tell once the way is known."""
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
        """What an expression is evaluated on: the present state, and what calls in it came to."""
        parts = self.parts(node)
        return dict(self.state), {call: self.called[call] for call in parts.calls if call in self.called}

    def mentions(self, node: ast.expr) -> bool:
        """Whether an expression may come to a command that starts SGLang."""
        parts = self.parts(node)
        return parts.signs or any(key in self.state and mentions(self.state[key]) for key in parts.names)

    def parts(self, node: ast.expr) -> Parts:
        """What an expression is made of, looked up once."""
        found = self.known_parts.get(id(node))
        if found is None:
            nodes = [n for n in ast.walk(node) if isinstance(n, ast.expr)]
            names = dict.fromkeys(key for n in nodes if (key := self.key_of(n)))
            calls = tuple(id(n) for n in nodes if isinstance(n, ast.Call | ast.Attribute))
            texts = (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
            found = self.known_parts[id(node)] = Parts(node, tuple(names), calls, any(map(SIGN.search, texts)))
        return found

    def again(
        self, node: ast.expr, world: World, state: State, called: dict[int, Value], within: Place | None = None
    ) -> Value:
        """An expression in a world, on the state it was met in. Starts nothing and changes nothing."""
        kept = self.state, self.called, self.within, self.world, self.depth
        self.state, self.called, self.within, self.world = dict(state), called, within, world
        try:
            return self.evaluate(node)
        finally:
            self.state, self.called, self.within, self.world, self.depth = kept

    # Tests.

    def test(self, node: ast.expr) -> Turn | bool:
        """How a test, evaluated already, comes out: True, False, or the turn at which it is told (0: it holds, 1: it does not)."""
        state, called = self.met_in(node)
        if self.world is not None:
            return self.holds(node, self.world, state, called)
        try:
            return self.holds(node, World({}), state, called)
        except (Undecided, Impossible):
            decide = lambda world: 0 if self.holds(node, world, state, called) else 1  # noqa: E731
            return Turn(self.place(node), ("", ""), decide)

    def holds(self, node: ast.expr, world: World, state: State, called: dict[int, Value]) -> bool:
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
        """The turn at which a test is told that only somebody outside can answer, the same for the same test of the same values."""
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
        """The name in a test whether this release of SGLang has it (`"x" in inspect.signature(ServerArgs).parameters`, `hasattr`)."""
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
        """A comparison as a value, where its sides are known."""
        values = [self.evaluate(n) for n in (node.left, *node.comparators)]
        if len(node.ops) != 1:
            return self.opaque(node)
        (left_known, left), (right_known, right) = map(data_of, values)
        found = conditions.compared(type(node.ops[0]), left, right) if left_known and right_known else None
        if found is None and len(values) == 2 and isinstance(node.ops[0], ast.Is | ast.IsNot):
            found = _is_none(values[0], right if right_known else OUTSIDE, isinstance(node.ops[0], ast.Is))
        return self.answer(node) if found is None else self.computed(node, found)

    def answer(self, node: ast.expr) -> Value:
        """A test as a value: True or False, as the program goes."""
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
            if piece.formatted:
                fragments.extend(strings.formatted(self.document, self.text, piece, self.formatted))
            else:
                fragments.extend(strings.characters(self.document, self.text, piece.start, piece.end, piece.raw))
        if isinstance(value, str) and "".join(f.text or "" for f in fragments) != value.replace("\r\n", "\n"):
            fragments = [Fragment(value, place, False)] if value else []
        literal = self.source_of(node) if isinstance(node, ast.Constant) else None
        return Text(Word(tuple(fragments), place), literal)

    def formatted(self, expression: str, place: Place) -> tuple[Fragment, ...]:
        """What `{expression}` of an f-string comes to."""
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
        """A function by its name; a property is what it returns."""
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
        for item in node.elts:
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
        return Items(tuple(found[:MAX_ITEMS]), self.place(node), literal)

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
            return Text(Word(_with_gaps(left.word, re.compile(r"%(?:\(\w+\))?[-\d.]*[a-z]")), self.place(node)))
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
                found = value  # what is unknown may be empty itself
        return plain(found, self.world) if self.world is not None else found

    def subscript(self, node: ast.Subscript) -> Value:
        owner, index = self.evaluate(node.value), self.evaluate(node.slice)
        if is_open(owner):
            raise Waits
        known, at = data_of(index)
        if not known:
            return self.opaque(node)
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

    def walrus(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        self.state[node.target.id] = value
        return value

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Value:
        """The items for each round over known ones; what an `if` lets through depends on the way."""
        before = dict(self.state)
        items = self.rounds(node.generators, lambda: (self.evaluate(node.elt),), self.place(node))
        self.state = before
        return Items(items[:MAX_ITEMS], self.place(node))

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

    # Calls whose result can be told.

    def function(self, node: ast.Call, name: str, given: Arguments) -> Value | None:
        place = self.place(node)
        first = given.positional[0] if given.positional else None
        if name in ("os.environ.get", "os.getenv"):
            return self.from_environment(node, first, given.get(1, "default"))
        if name == "dict" and not given.positional:
            found: Value = Table(
                tuple(Entry(_key(self, k), given.keywords[k.arg]) for k in node.keywords if k.arg), place
            )
            for more in given.rest:
                found = merged(found, more)
            return found
        if DECLARES.search(name):
            return self.declared(node, given)
        if name in INSPECTS and node.args and OF_SGLANG.search(self.name_of(node.args[0])):
            return self.opaque(node, RELEASE)
        if first is None or isinstance(first, More | Spread):
            return Items((), place) if name in ("list", "tuple") and first is None else None
        if name in COPIES:
            return first if isinstance(first, Items | Table | Text | Record) or is_open(first) else None
        if is_open(first) and name in LOOKED_AT:
            raise Waits
        if name in ("str", "int", "float", "bool"):
            return self.converted(node, name, first)
        if name == "isinstance" and len(given.positional) == 2:
            return self.is_of_type(node, first)
        if name == "len" and isinstance(first, Items) and not any(isinstance(v, More | Spread) for v in first.items):
            return self.computed(node, len(first.items))
        if name in ("dataclasses.asdict", "asdict", "vars") and isinstance(first, Record):
            return fields_table(first, place)
        if name == "shlex.split" and isinstance(first, Text):
            return split(first.word, place, quotes=True)
        if name in ("shlex.quote", "pipes.quote", "quote") and isinstance(first, Text):
            return Text(first.word._replace(place=place))
        if name in ("shlex.join", "subprocess.list2cmdline") and isinstance(first, Items):
            return joined_by(Text(Word((Fragment(" ", place, False, fixed=True),), place)), first, place)
        if name == "json.dumps":
            known, data = data_of(first)
            if known:
                return Text(Word((Fragment(json.dumps(data), place, False, fixed=True),), place))
        return None

    def from_environment(self, node: ast.Call, name: Value | None, default: Value | None) -> Value | None:
        known, text = data_of(name) if name is not None else (False, None)
        environ = self.state.get(ENVIRON)
        if known and isinstance(environ, Table):
            found = next((e.value for e in environ.entries if e.name == text), None)
            if found is not None:
                return found if self.world is None else plain(found, self.world)
        unknown = self.opaque(node, FROM_ENVIRONMENT)
        if (
            default is None
            or not known
            or self.world is not None
            or (isinstance(default, Plain) and default.value is None)
        ):
            return default if default is not None and self.world is not None else unknown
        key = ("environment", text)
        if key not in self.questions:
            self.questions[key] = Turn(unknown.place, (f"`{text}` is not set", f"`{text}` is set")), (False, None)
        return Either(self.questions[key][0], (default, unknown), unknown.place, 0)

    def declared(self, node: ast.Call, given: Arguments) -> Value | None:
        """`field(default=8)`, `Field(8)`, `typer.Option(8, "--tp")`: what an attribute or a parameter is unless it is given."""
        factory = next((k.value for k in node.keywords if k.arg == "default_factory"), None)
        if isinstance(factory, ast.Lambda):
            return self.evaluate(factory.body)
        if isinstance(factory, ast.Name) and factory.id in ("list", "tuple", "dict"):
            place = self.place(node)
            return Table((), place) if factory.id == "dict" else Items((), place)
        return given.get(0, "default")

    def converted(self, node: ast.Call, name: str, first: Value) -> Value | None:
        """`str(x)`, `int(x)`, …"""
        if name == "str":
            word = as_text(first)
            return None if word.splat else Text(word._replace(place=self.place(node)))
        if name == "bool":
            known = truth_of(first)
            return None if known is None else self.computed(node, known)
        if isinstance(first, Text) and first.word.text is not None:
            try:
                return Plain((int if name == "int" else float)(first.word.text), first.word)
            except ValueError:
                return None
        return first if isinstance(first, Plain) and isinstance(first.value, int if name == "int" else float) else None

    def is_of_type(self, node: ast.Call, value: Value) -> Value | None:
        names = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        known = [name.id for name in names if isinstance(name, ast.Name) and name.id in TYPES]
        own = type_name(value)
        if not own or len(known) != len(names):
            return None
        return self.computed(node, own in known or (own == "bool" and "int" in known))

    def method(self, node: ast.Call, given: Arguments) -> Value | None:
        """Methods of strings, lists and dictionaries; those that change the list change what its name holds."""
        if not isinstance(node.func, ast.Attribute):
            return None
        owner = self.evaluate(node.func.value)
        verb = node.func.attr
        place = self.place(node)
        if is_open(owner):
            owner = self.state.get(self.key_of(node.func.value) or "", owner)
            if verb in ("append", "extend"):
                owner = Items((Spread(owner, place_of(owner)),), place_of(owner))
            elif verb == "insert":
                return self.keep(node.func.value, inserted_later(owner, given, place))
            elif verb in ("update", "setdefault"):
                return self.keep(node.func.value, changed_entries_later(owner, verb, node, given, self))
            elif verb in ("remove", "pop", "clear", "sort", "reverse"):
                return self.keep(node.func.value, self.opaque(node))
            elif verb == "copy":
                return owner
            elif verb in READS:
                raise Waits
            else:
                return None
        if isinstance(owner, Text):
            return self.text_method(owner, verb, given, place)
        if isinstance(owner, Items):
            if verb == "copy":
                return owner
            changed = changed_items(owner, verb, given, place)
            return self.keep(node.func.value, changed) if changed is not None else None
        if (
            verb in ("get", "pop")
            and self.name_of(node.func.value) != ENVIRON
            and (isinstance(owner, Opaque) or (isinstance(owner, Table) and owner.open))
        ):
            found = self.or_default(node, owner, given)
            if found is not None:
                return found
        if isinstance(owner, Record) and verb == "model_dump":
            return fields_table(owner, place)
        if isinstance(owner, Table):
            if verb == "copy":
                return owner
            if verb in ("items", "keys", "values"):
                return items_of_table(owner, verb, place)
            if verb == "get" and given.positional:
                return entry_of(owner, given.positional[0], given.get(1, "default") or self.computed(node, None))
            changed_table = changed_entries(owner, verb, node, given, self)
            return self.keep(node.func.value, changed_table) if changed_table is not None else None
        return None

    def or_default(self, node: ast.Call, owner: Value, given: Arguments) -> Value | None:
        """`settings.get("tp", 8)` of a dictionary that nobody knows: the default where nothing is given."""
        name, default = given.get(0), given.get(1, "default")
        if not isinstance(name, Text) or name.word.text is None or not isinstance(default, Text | Plain):
            return None
        if isinstance(owner, Table) and any(e.name == name.word.text for e in owner.entries):
            return None
        if isinstance(default, Plain) and default.value is None:
            return None
        key = ("given", name.word.text, self.key_of(node.func))
        unknown = self.opaque(node)
        if key not in self.questions:
            shown = conditions.shown(ast.unparse(node.args[0]))
            labels = f"{shown} is not given", f"{shown} is given"
            self.questions[key] = Turn(unknown.place, labels), (False, None)
        found = Either(self.questions[key][0], (default, unknown), unknown.place, 0)
        return found if self.world is None else plain(found, self.world)

    def keep(self, target: ast.expr, value: Value) -> Value:
        key = self.key_of(target)
        if key is not None:
            if self.canonical.get(key.partition(".")[0], "") == "os" or key == ENVIRON:
                key = ENVIRON
            self.state[key] = value
        return Plain(None, Word((), place_of(value)))

    def text_method(self, owner: Text, verb: str, given: Arguments, place: Place) -> Value | None:
        if verb == "split" and not given.positional:
            return split(owner.word, place, quotes=False)
        if verb == "join" and given.positional and isinstance(given.positional[0], Items):
            return joined_by(owner, given.positional[0], place)
        if verb in ("strip", "rstrip", "lstrip", "encode"):
            return owner
        if verb in ("startswith", "endswith") and given.positional:
            return self.begins(owner, verb, given.positional[0], place)
        if verb == "format":
            return Text(Word(_with_gaps(owner.word, re.compile(r"\{[^{}]*\}")), place))
        if verb in TEXT_CHANGES:
            return changed_text(owner, verb, given, place)
        return None

    def begins(self, owner: Text, verb: str, part: Value, place: Place) -> Value | None:
        known, what = data_of(part)
        text = owner.word.text
        if not known or text is None or not isinstance(what, str | list):
            return None
        parts = (what,) if isinstance(what, str) else tuple(map(str, what))
        found = text.startswith(parts) if verb == "startswith" else text.endswith(parts)
        return Plain(found, Word((Fragment(repr(found), place, False, fixed=True),), place))


def _key(evaluator: Evaluator, keyword: ast.keyword) -> Word:
    start = evaluator.place(keyword).start
    name = keyword.arg or ""
    place = Place(evaluator.document, start, start + len(name))
    return Word((Fragment(name, place, evaluator.within is None),), place)


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def truth_of(value: Value) -> bool | None:
    """Whether a value counts as true, where that is known."""
    if isinstance(value, Items) and value.items and not any(isinstance(v, More | Spread) for v in value.items):
        return True
    if isinstance(value, Table) and value.entries:
        return True
    if isinstance(value, Text) and value.word.known_start:
        return True
    if isinstance(value, Record | Routine):
        return True
    if is_open(value):
        return None
    known, data = data_of(value)
    return bool(data) if known else None


def _is_none(value: Value, right: Any, positive: bool) -> bool | None:
    """`value is None`, of a value that is certainly something else."""
    if right is not None or isinstance(value, Opaque | More):
        return None
    return not positive


def identity(value: Value | None) -> object:
    """What tells a value from others, known or not."""
    return value.of if isinstance(value, Opaque) and value.of is not None else id(value)


def type_name(value: Value) -> str:
    """The type of a value, empty where it is not known."""
    if isinstance(value, Plain):
        return type(value.value).__name__
    if isinstance(value, Text):
        return "str"
    return "list" if isinstance(value, Items) else "dict" if isinstance(value, Table) else ""


def items_of(value: Value, place: Place) -> tuple[Value, ...]:
    """What `*value` brings."""
    if isinstance(value, Items):
        return value.items
    return (Spread(value, place),) if is_open(value) else (More(place, getattr(value, "reason", COMPUTED)),)


def items_of_table(owner: Table, verb: str, place: Place) -> Items:
    """`.items()`, `.keys()` and `.values()`."""
    rows: list[Value] = []
    for entry in owner.entries:
        key = Text(entry.key)
        rows.append(key if verb == "keys" else entry.value if verb == "values" else Items((key, entry.value), place))
    return Items((*rows, *((More(owner.place),) if owner.open else ())), place)


def entry_of(owner: Table, key: Value, default: Value) -> Value | None:
    """`owner.get(key, default)`."""
    known, name = data_of(key)
    found = next((e.value for e in owner.entries if known and e.name == name), None)
    return found if found is not None else None if owner.open or not known else default


def fields_table(record: Record, place: Place) -> Table:
    """The fields of an instance as a dictionary."""
    entries = (Entry(Word((Fragment(name, place, False, fixed=True),), place), v) for name, v in record.fields.items())
    return Table(tuple(entries), place, not record.kind)


def sum_of(left: Value, right: Value, place: Place) -> Value:
    """`left + right` of lists or strings, one of which may be unknown."""
    if isinstance(left, Items) or isinstance(right, Items):
        both = (*items_of(left, place_of(left)), *items_of(right, place_of(right)))
        return Items(both[:MAX_ITEMS], place)
    if is_open(left) or is_open(right):
        signs = mentions(left) or mentions(right)
        return Later(lambda world: sum_of(plain(left, world), plain(right, world), place), place, signs)
    if isinstance(left, Text) or isinstance(right, Text):
        fragments = (*as_text(left).fragments, *as_text(right).fragments)
        return Text(Word(fragments, place))
    return Opaque(place)


def merged(left: Value, right: Value) -> Value:
    """`{**left, **right}`."""
    if is_open(left) or is_open(right):
        signs = mentions(left) or mentions(right)
        return Later(lambda world: merged(plain(left, world), plain(right, world)), place_of(left), signs)
    if not isinstance(left, Table):
        return Table(right.entries if isinstance(right, Table) else (), place_of(left), True)
    if not isinstance(right, Table):
        return replace(left, open=True, literal=None)
    found = left
    for entry in right.entries:
        found = found.with_entry(entry)
    return replace(found, open=left.open or right.open, literal=None)


def changed_items(owner: Items, verb: str, given: Arguments, place: Place) -> Value | None:
    first = given.positional[0] if given.positional else None
    if verb == "append" and first is not None:
        return Items((*owner.items, first), owner.place)
    if verb == "extend" and first is not None:
        return Items((*owner.items, *items_of(first, place)), owner.place)
    if verb == "insert" and len(given.positional) == 2:
        waits = any(isinstance(v, Spread) for v in owner.items) or is_open(given.positional[0])
        return inserted_later(owner, given, place) if waits else _inserted(owner, *given.positional)
    if verb in ("insert", "remove", "pop", "clear", "sort", "reverse"):
        return Items((More(place),), owner.place)
    return None


def inserted_later(owner: Value, given: Arguments, place: Place) -> Later:
    """A list that depends on the way, with one more item in it."""

    def make(world: World) -> Value:
        items = plain(owner, world)
        values = [plain(v, world) for v in given.positional]
        return _inserted(items, *values) if isinstance(items, Items) and len(values) == 2 else Opaque(place)

    return Later(make, place_of(owner), mentions(owner) or any(map(mentions, given.positional)))


def _inserted(owner: Items, index: Value, item: Value) -> Items:
    at = index.value if isinstance(index, Plain) and isinstance(index.value, int) else None
    if at is None or any(isinstance(v, More) for v in owner.items[: at if at >= 0 else None]):
        return Items((More(owner.place),), owner.place)
    items = list(owner.items)
    items.insert(at, item)
    return Items(tuple(items), owner.place)


def changed_entries(owner: Table, verb: str, node: ast.Call, given: Arguments, evaluator: Evaluator) -> Value | None:
    if verb == "update":
        found: Value = owner
        for value in (*given.positional, *given.rest):
            found = merged(found, value)
        named = tuple(Entry(_key(evaluator, k), given.keywords[k.arg]) for k in node.keywords if k.arg)
        return merged(found, Table(named, owner.place)) if named else found
    if verb == "setdefault" and len(given.positional) == 2 and isinstance(given.positional[0], Text):
        key, value = given.positional
        assert isinstance(key, Text)
        known = any(e.name == key.word.text for e in owner.entries)
        return owner if known or key.word.text is None else owner.with_entry(Entry(key.word, value))
    if verb in ("pop", "clear"):
        known, name = data_of(given.positional[0]) if given.positional else (False, None)
        kept = tuple(e for e in owner.entries if known and e.name != name)
        return replace(owner, entries=kept, literal=None)
    return None


def changed_entries_later(owner: Value, verb: str, node: ast.Call, given: Arguments, evaluator: Evaluator) -> Later:
    """A dictionary that depends on the way, after one of its methods changed it."""

    def make(world: World) -> Value:
        table = plain(owner, world)
        changed = changed_entries(table, verb, node, given, evaluator) if isinstance(table, Table) else None
        return changed if changed is not None else Table((), place_of(owner), True)

    return Later(make, place_of(owner), mentions(owner) or any(map(mentions, given.positional)))


def changed_text(owner: Text, verb: str, given: Arguments, place: Place) -> Text:
    """`text.replace("_", "-")` and its like of a known text; it is written where the text is, and cannot be changed there."""
    known, arguments = data_of(Items(tuple(given.positional), place))
    text = owner.word.text
    first = next(iter(owner.word.fragments), None)
    try:
        new = getattr(text, verb)(*arguments) if known and text is not None else None
    except (TypeError, ValueError):
        new = None
    if not isinstance(new, str) or first is None:
        return Text(Word((Fragment(None, place, False, COMPUTED),), place))
    if new == text:
        return owner
    return Text(Word((Fragment(new, first.place, False, via=first.via, fixed=True),), place))


def split(word: Word, place: Place, *, quotes: bool) -> Items:
    """The words of a string, as `str.split` or `shlex.split` cut it."""
    source = embedded(word)
    found: list[Value] = []
    for start, end in _cuts(source.whole, quotes):
        fragments: list[Fragment] = []
        for low, high in _unquoted(source.whole, start, end) if quotes else [(start, end)]:
            fragments.extend(source.fragments(low, high))
        found.append(Text(Word(tuple(fragments), source.place(start, end))))
    return Items(tuple(found[:MAX_ITEMS]), place)


QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"?|'[^']*'?|\\.|[^\s\"'\\]+", re.S)


def _cuts(text: str, quotes: bool) -> Iterator[tuple[int, int]]:
    pattern = re.compile(rf"(?:{QUOTED.pattern})+" if quotes else r"\S+", re.S)
    for m in pattern.finditer(text):
        yield m.span()


def _unquoted(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for m in QUOTED.finditer(text, start, end):
        part = m.group()
        if part[0] in "\"'":
            closed = len(part) > 1 and part[-1] == part[0]
            yield m.start() + 1, m.end() - (1 if closed else 0)
        else:
            yield (m.start() + 1 if part[0] == "\\" else m.start()), m.end()


def joined_by(separator: Text, items: Items, place: Place) -> Value:
    if any(isinstance(v, Spread) for v in items.items):
        raise Waits
    fragments: list[Fragment] = []
    for i, item in enumerate(items.items):
        if i:
            fragments.extend(f._replace(place=place, verbatim=False, fixed=True) for f in separator.word.fragments)
        fragments.extend(as_text(item).fragments)
    return Text(Word(tuple(fragments), place))


ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def _worked_out(node: ast.expr) -> int | None:
    """The number that whole numbers written out come to: `32 * 1024`; None for anything else and beyond what a flag takes."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp) or type(node.op) not in ARITHMETIC:
        return None
    right = _worked_out(node.right)  # first: a long sum of texts ends here
    left = None if right is None else _worked_out(node.left)
    if left is None or right is None:
        return None
    number = ARITHMETIC[type(node.op)](left, right)
    return number if abs(number) < MAX_NUMBER else None


def _with_gaps(word: Word, pattern: re.Pattern[str]) -> tuple[Fragment, ...]:
    """The string with what will be formatted into it unknown."""
    source = embedded(word)
    found: list[Fragment] = []
    at = 0
    for m in pattern.finditer(source.whole):
        found.extend(source.fragments(at, m.start()))
        found.append(Fragment(None, source.place(*m.span()), False, COMPUTED))
        at = m.end()
    found.extend(source.fragments(at, len(source.whole)))
    return tuple(found)


@lru_cache(maxsize=2_000)
def _expression(source: str) -> list[ast.stmt] | None:
    """An expression between the braces of an f-string."""
    return parsed(f"({source})")


EXPRESSIONS: dict[type, Callable[..., Value]] = {
    ast.Constant: Evaluator.constant,
    ast.JoinedStr: Evaluator.string,
    ast.Name: Evaluator.name,
    ast.Attribute: Evaluator.name,
    ast.List: Evaluator.items,
    ast.Tuple: Evaluator.items,
    ast.Dict: Evaluator.table,
    ast.BinOp: Evaluator.added,
    ast.IfExp: Evaluator.conditional,
    ast.BoolOp: Evaluator.chosen,
    ast.Subscript: Evaluator.subscript,
    ast.NamedExpr: Evaluator.walrus,
    ast.ListComp: Evaluator.comprehension,
    ast.GeneratorExp: Evaluator.comprehension,
    ast.SetComp: Evaluator.comprehension,
    ast.DictComp: Evaluator.table_of_rounds,
    ast.Compare: Evaluator.compare,
    ast.UnaryOp: Evaluator.negated,
    ast.Await: Evaluator.awaited,
    ast.Call: Evaluator.call,
}
