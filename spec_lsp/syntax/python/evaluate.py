"""What expressions come to: literals, names that the file sets, lists put together, strings formatted. Everything else is unknown."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from spec_lsp.syntax.python import strings
from spec_lsp.syntax.python.parsing import Positions, parsed
from spec_lsp.syntax.python.values import (
    COMPUTED,
    DEPENDS,
    Entry,
    Items,
    More,
    Opaque,
    Plain,
    Table,
    Text,
    Value,
    as_text,
    data_of,
    joined,
    place_of,
    seen_at,
)
from spec_lsp.syntax.shell.values import FROM_ENVIRONMENT
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.word import Fragment, Place, Word

ENVIRON = "os.environ"
MAX_ITEMS = 2_000
MAX_DEPTH = 60
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
                return handler(self, node)
            for name in node._fields:
                child = getattr(node, name)
                for one in child if isinstance(child, list) else (child,):
                    if isinstance(one, ast.expr):
                        self.evaluate(one)
            return self.opaque(node)
        finally:
            self.depth -= 1

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
        body = parsed(f"({expression})")
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
        return seen_at(found, self.place(node))

    def unknown_attribute(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Attribute):
            self.evaluate(node.value)
        return self.opaque(node)

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
        value = self.evaluate(node.value)
        return (
            value.items if isinstance(value, Items) else (More(self.place(node), getattr(value, "reason", COMPUTED)),)
        )

    def table(self, node: ast.Dict) -> Value:
        found = Table((), self.place(node))
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.evaluate(item)
            if key is None:
                found = merged(found, value)
                continue
            name = self.evaluate(key)
            if isinstance(name, Text) and name.word.text is not None:
                found = found.with_entry(Entry(name.word, value))
            else:
                found = replace(found, open=True)
        return replace(found, literal=self.source_of(node) if _is_literal(node) else None)

    def added(self, node: ast.BinOp) -> Value:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        if isinstance(node.op, ast.Add):
            return sum_of(left, right, self.place(node))
        if isinstance(node.op, ast.BitOr) and isinstance(left, Table):
            return merged(left, right)
        if isinstance(node.op, ast.Mod) and isinstance(left, Text):
            return Text(Word(_with_gaps(left.word, re.compile(r"%(?:\(\w+\))?[-\d.]*[a-z]")), self.place(node)))
        return self.opaque(node)

    def conditional(self, node: ast.IfExp) -> Value:
        self.evaluate(node.test)
        return joined(self.evaluate(node.body), self.evaluate(node.orelse), self.place(node))

    def chosen(self, node: ast.BoolOp) -> Value:
        """`x or "default"`: the first that is certainly true."""
        values = [self.evaluate(v) for v in node.values]
        for value in values[:-1]:
            known, data = data_of(value)
            if not known:
                return self.opaque(node, DEPENDS)
            if bool(data) == isinstance(node.op, ast.Or):
                return value
        return values[-1]

    def subscript(self, node: ast.Subscript) -> Value:
        owner, index = self.evaluate(node.value), self.evaluate(node.slice)
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
        if isinstance(at, int) and -len(items) <= at < len(items) and not any(isinstance(v, More) for v in items):
            return items[at]
        return self.opaque(node)

    def walrus(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        self.state[node.target.id] = value
        return value

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Value:
        """`[str(x) for x in args]` is `args`; any other is a list of something."""
        generator = node.generators[0]
        source = self.evaluate(generator.iter)
        plain = isinstance(generator.target, ast.Name) and len(node.generators) == 1 and not generator.ifs
        if plain and isinstance(source, Items):
            element = node.elt
            if (
                isinstance(element, ast.Call)
                and isinstance(element.func, ast.Name)
                and element.func.id == "str"
                and len(element.args) == 1
            ):
                element = element.args[0]
            assert isinstance(generator.target, ast.Name)
            if isinstance(element, ast.Name) and element.id == generator.target.id:
                return source
        return Items((More(self.place(node)),), self.place(node))

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
        found = self.on_call(node, name, arguments)
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
            found = Table(tuple(Entry(_key(self, k), given.keywords[k.arg]) for k in node.keywords if k.arg), place)
            for more in given.rest:
                found = merged(found, more)
            return found
        if first is None or isinstance(first, More):
            return Items((), place) if name in ("list", "tuple") and first is None else None
        if name in ("str", "int", "float", "repr"):
            word = as_text(first)
            if name == "str" and not word.splat:
                return Text(word._replace(place=place))
            return first if isinstance(first, Plain) and name != "repr" else None
        if name in ("list", "tuple", "sorted") and isinstance(first, Items):
            return first if name != "sorted" else None
        if name in (
            "copy.copy",
            "copy.deepcopy",
            "copy",
            "deepcopy",
            "dict",
            "textwrap.dedent",
            "dedent",
            "os.path.expanduser",
        ):
            return first if isinstance(first, Items | Table | Text) else None
        if name == "shlex.split" and isinstance(first, Text):
            return split(first.word, place, quotes=True)
        if name == "shlex.join" and isinstance(first, Items):
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
                return found
        return default if default is not None else self.opaque(node, FROM_ENVIRONMENT)

    def method(self, node: ast.Call, given: Arguments) -> Value | None:
        """Methods of strings, lists and dictionaries; those that change the list change what its name holds."""
        if not isinstance(node.func, ast.Attribute):
            return None
        owner = self.evaluate(node.func.value)
        verb = node.func.attr
        place = self.place(node)
        if isinstance(owner, Text):
            return self.text_method(owner, verb, given, place)
        if isinstance(owner, Items):
            if verb == "copy":
                return owner
            changed = changed_items(owner, verb, given, place)
            return self.keep(node.func.value, changed) if changed is not None else None
        if isinstance(owner, Table):
            if verb == "copy":
                return owner
            changed_table = changed_entries(owner, verb, node, given, self)
            return self.keep(node.func.value, changed_table) if changed_table is not None else None
        return None

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
        if verb in ("strip", "rstrip", "lstrip", "lower", "encode"):
            return owner if verb != "lower" else None
        if verb == "format":
            return Text(Word(_with_gaps(owner.word, re.compile(r"\{[^{}]*\}")), place))
        if verb in ("replace", "removeprefix", "removesuffix", "upper", "title"):
            return Text(Word((Fragment(None, place, False, COMPUTED),), place))
        return None


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


def sum_of(left: Value, right: Value, place: Place) -> Value:
    """`left + right` of lists or strings, one of which may be unknown."""
    if isinstance(left, Items) or isinstance(right, Items):
        both: list[Value] = []
        for side in (left, right):
            both += (
                side.items if isinstance(side, Items) else (More(place_of(side), getattr(side, "reason", COMPUTED)),)
            )
        return Items(tuple(both[:MAX_ITEMS]), place)
    if isinstance(left, Text) or isinstance(right, Text):
        fragments = (*as_text(left).fragments, *as_text(right).fragments)
        return Text(Word(fragments, place))
    return Opaque(place)


def merged(left: Table, right: Value) -> Table:
    """`{**left, **right}`."""
    if not isinstance(right, Table):
        return replace(left, open=True, literal=None)
    found = left
    for entry in right.entries:
        found = found.with_entry(entry)
    return replace(found, open=left.open or right.open, literal=None)


def changed_items(owner: Items, verb: str, given: Arguments, place: Place) -> Items | None:
    first = given.positional[0] if given.positional else None
    if verb == "append" and first is not None:
        return Items((*owner.items, first), owner.place)
    if verb == "extend" and first is not None:
        more = first.items if isinstance(first, Items) else (More(place, getattr(first, "reason", COMPUTED)),)
        return Items((*owner.items, *more), owner.place)
    if verb in ("insert", "remove", "pop", "clear", "sort", "reverse"):
        return Items((More(place),), owner.place)
    return None


def changed_entries(owner: Table, verb: str, node: ast.Call, given: Arguments, evaluator: Evaluator) -> Table | None:
    if verb == "update":
        found = owner
        for value in (*given.positional, *given.rest):
            found = merged(found, value)
        for keyword in node.keywords:
            if keyword.arg:
                found = found.with_entry(Entry(_key(evaluator, keyword), given.keywords[keyword.arg]))
        return found
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
    fragments: list[Fragment] = []
    for i, item in enumerate(items.items):
        if i:
            fragments.extend(f._replace(place=place, verbatim=False, fixed=True) for f in separator.word.fragments)
        fragments.extend(as_text(item).fragments)
    return Text(Word(tuple(fragments), place))


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
    ast.Call: Evaluator.call,
}
