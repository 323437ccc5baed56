"""Results of calls of Python's builtin functions and methods, as far as they are known."""

from __future__ import annotations

import ast
import json
import re

from spec_lsp.expressions import expression
from spec_lsp.records import replace
from spec_lsp.syntax.python import conditions
from spec_lsp.syntax.python.arguments import Arguments
from spec_lsp.syntax.python.containers import (
    changed_items,
    entry_of,
    fields_table,
    inserted_later,
    items_of_table,
    merged,
)
from spec_lsp.syntax.python.expressions import ENVIRON, OF_SGLANG, RELEASE, Expressions
from spec_lsp.syntax.python.texts import TEXT_CHANGES, changed_text, joined_by, split, with_gaps
from spec_lsp.syntax.python.truth import truth_of, type_name
from spec_lsp.syntax.python.values import (
    Either,
    Entry,
    Items,
    Later,
    More,
    Opaque,
    Plain,
    Record,
    Spread,
    Table,
    Text,
    Value,
    Waits,
    as_text,
    data_of,
    is_open,
    mentions,
    place_of,
    plain,
    text_of,
)
from spec_lsp.syntax.python.ways import ExecutionPath, Turn
from spec_lsp.syntax.shell.values import FROM_ENVIRONMENT
from spec_lsp.syntax.word import Fragment, Place, Word

INSPECTS = frozenset(
    ("inspect.signature", "signature", "dataclasses.fields", "fields", "dir", "vars", "inspect.getfullargspec")
)
DECLARES = expression(
    r"(?:\A|\.)dataclasses\.field\Z|\A(?:field|Field|Option|Argument)\Z|\A(?:pydantic|typer|attrs?|cyclopts)\.\w*(?:ield|ib|Option|Argument)\Z"
)
COPIES = frozenset((
    "list", "tuple", "copy.copy", "copy.deepcopy", "copy", "deepcopy", "dict", "textwrap.dedent", "dedent", "os.path.expanduser",
))  # fmt: skip
"""Functions that return their argument."""
LOOKED_AT = frozenset((
    "str", "int", "float", "bool", "isinstance", "len", "shlex.split", "shlex.join", "shlex.quote", "json.dumps", "dataclasses.asdict",
    "asdict", "vars",
))  # fmt: skip
"""Functions whose result can be computed from their arguments."""
READS = frozenset((
    "items", "keys", "values", "get", "split", "join", "strip", "rstrip", "lstrip", "format", "replace", "startswith", "endswith",
    "removeprefix", "removesuffix", "lower", "upper", "model_dump",
))  # fmt: skip
"""Methods whose result can be computed from their object."""
MAX_DIGITS = 60
"""The most digits of a text that is read as a number; no flag takes more."""
TYPES = frozenset(("str", "int", "float", "bool", "list", "tuple", "dict"))


class Evaluator(Expressions):
    """Evaluates expressions, calls included."""

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
        """`field(default=8)`, `Field(8)`, `typer.Option(8, "--tp")`: the default of an attribute or a parameter."""
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
        if isinstance(first, Text) and first.word.text is not None and len(first.word.text) <= MAX_DIGITS:
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
        """Methods of strings, lists and dictionaries; those that change a list also change the value of its name."""
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
                return self.entry(node, owner, given)
            changed_table = changed_entries(owner, verb, node, given, self)
            return self.keep(node.func.value, changed_table) if changed_table is not None else None
        return None

    def entry(self, node: ast.Call, owner: Table, given: Arguments) -> Value | None:
        """`owner.get(key, default)`."""
        default = given.get(1, "default") or self.computed(node, None)
        if isinstance(node.args[0], ast.Starred):
            return entry_of(owner, given.positional[0], default)
        key = self.told_apart(node.args[0])
        return entry_of(owner, key, default) if data_of(key)[0] else self.by_key(node, node.args[0], owner, default)

    def or_default(self, node: ast.Call, owner: Value, given: Arguments) -> Value | None:
        """`settings.get("tp", 8)` of an unknown dictionary: the default, unless a value is given."""
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
            return text_of(with_gaps(owner.word, re.compile(r"\{[^{}]*\}")), place)
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

    def make(world: ExecutionPath) -> Value:
        table = plain(owner, world)
        changed = changed_entries(table, verb, node, given, evaluator) if isinstance(table, Table) else None
        return changed if changed is not None else Table((), place_of(owner), True)

    return Later(make, place_of(owner), mentions(owner) or any(map(mentions, given.positional)), owner)
