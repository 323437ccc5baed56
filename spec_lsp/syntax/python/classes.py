"""The classes of a Python file: their methods, read with the attributes that the class and `__init__` set, and their instances."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence

from spec_lsp.records import dataclass, field, replace
from spec_lsp.syntax.launch import Choice
from spec_lsp.syntax.python.arguments import Arguments
from spec_lsp.syntax.python.expressions import State
from spec_lsp.syntax.python.functions import Functions, attributes_set
from spec_lsp.syntax.python.parsing import Positions
from spec_lsp.syntax.python.survey import Function, Survey, every_statement
from spec_lsp.syntax.python.values import Opaque, Plain, Record, Routine, Table, Text, Value, mixed, place_of
from spec_lsp.syntax.word import Place

FIRST = ("__init__", "setUpClass", "setUp")
"""Methods that run before others."""


@dataclass(slots=True, eq=False)
class Kind:
    """A class of the file: its own attributes and methods, and its base classes in the file."""

    node: ast.ClassDef
    bases: list[str]
    state: State = field(default_factory=dict)
    methods: dict[str, Function] = field(default_factory=dict)


class Classes(Functions):
    """Reads classes, and creates instances of them."""

    def __init__(self, document: str, text: str, positions: Positions, read: Callable[[str], str | None]) -> None:
        super().__init__(document, text, positions, read)
        self.survey = Survey()
        self.kinds: dict[str, Kind] = {}

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
        """Read the methods of a class, own and inherited, with its attributes."""
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

    def members(self, line: Sequence[Kind]) -> tuple[State, dict[str, Routine]]:
        """The attributes and methods of a class, with those it inherits."""
        attributes: State = {}
        methods: dict[str, Routine] = {}
        for base in reversed(line):
            attributes.update(base.state)
            methods.update({name: self.method_of(node, base.node.name) for name, node in base.methods.items()})
        return attributes, methods

    def _line_of(self, kind: Kind) -> list[Kind]:
        """The class and its bases in the file, itself first."""
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

    def inherited(self, func: ast.expr, found: Routine) -> Routine:
        """The method that `super().name` refers to."""
        if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call)) or not self.frames:
            return found
        own = self.frames[-1].routine.kind
        for base in self._line_of(self.kinds[own])[1:] if own in self.kinds else ():
            if found.node.name in base.methods:
                return self.method_of(base.methods[found.node.name], base.node.name)
        return found

    def instance(self, kind: Kind, node: ast.Call, given: Arguments, place: Place) -> Value | None:
        """An instance of one of the file's classes: with what `__init__` sets, or with the fields that are given."""
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
        """The fields of a dataclass or similar: the given values, else their defaults."""
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

    def call_method(self, node: ast.Call, given: Arguments) -> Value | None:
        """Call a method of an instance of one of the file's classes; attributes that it sets are kept."""
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
        """Bind `self` to an instance."""
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


def _filled_in(value: Value) -> Value:
    """An attribute of a class as its methods see it: None and an empty string may be replaced by a subclass, so they are unknown."""
    waits = (isinstance(value, Plain) and value.value is None) or (isinstance(value, Text) and value.word.text == "")
    return Opaque(place_of(value), "set by a subclass") if waits else value


def _attribute_counts(methods: Iterable[Function]) -> dict[str, int]:
    """How many methods assign each attribute of `self` or `cls`."""
    counts: dict[str, int] = {}
    for method in methods:
        for name in {name for statement in every_statement(method.body) for name in attributes_set(statement)}:
            counts[name] = counts.get(name, 0) + 1
    return counts
