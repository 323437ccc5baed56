"""Goes through a Python file in order, without running any of it, and records what it starts.

A call of one of the file's own functions reads its body with the given arguments. Functions that are not called are read after the file's
own statements, in the state that these leave; their parameters have their defaults or are unknown. Both arms of an `if` are read, and
values that differ afterwards depend on the way (`ways.py`). A loop over known values takes each of them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from spec_lsp.syntax.python import options
from spec_lsp.syntax.python.arguments import Arguments
from spec_lsp.syntax.python.classes import Classes
from spec_lsp.syntax.python.expressions import ENVIRON
from spec_lsp.syntax.python.parsing import Positions
from spec_lsp.syntax.python.sinks import ENGINE_NAMES, ENGINES
from spec_lsp.syntax.python.survey import Function, every_statement, survey
from spec_lsp.syntax.python.values import Items, More, Opaque, Record, Routine, Table, Value, place_of
from spec_lsp.syntax.word import Place


class Reader(Classes):
    """Reads one file. Results: `launches()`, `problems` and `depends_on`."""

    def __init__(self, document: str, text: str, positions: Positions, read: Callable[[str], str | None]) -> None:
        super().__init__(document, text, positions, read)
        self.globals: set[str] = set()
        """Names that a function sets for the whole file."""

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
        """Find the names of imports, and the functions that the file defines."""
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

    def own_call(self, node: ast.Call, last: str, given: Arguments, place: Place) -> Value | None:
        """The result of a call of the file's own functions, classes and options; None for any other."""
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
