"""Goes through a Python file in order, without running any of it, and notes what it starts.

Bodies of functions are read after the file's own statements, on what these leave behind; their parameters are unknown. Both arms of an
`if` are read, and what they set differently is unknown where they meet. A loop over known values takes each of them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from spec_lsp.syntax.launch import Choice, Clue, Launch, Problem, Program, Variant
from spec_lsp.syntax.python.evaluate import ENVIRON, Arguments, Evaluator, State, merged, sum_of
from spec_lsp.syntax.python.parsing import Positions
from spec_lsp.syntax.python.sinks import (
    ENGINES,
    EXEC_FUNCTIONS,
    EXPECTS_FAILURE,
    HELPERS,
    NOT_OURS,
    PARSERS,
    RUNS,
    SHELL_FUNCTIONS,
    SPEAKS,
    STARTS_TEXT,
    Helper,
)
from spec_lsp.syntax.python.values import (
    COMPUTED,
    PARAMETER,
    Entry,
    Items,
    More,
    Opaque,
    Plain,
    Table,
    Text,
    Value,
    as_source,
    as_text,
    joined,
    place_of,
)
from spec_lsp.syntax.shell.commands import PIN, SGLANG_IMAGE
from spec_lsp.syntax.shell.embedding import Around, Found, read_arguments, read_script
from spec_lsp.syntax.shell.values import MAX_VARIANTS
from spec_lsp.syntax.word import Fragment, Place, Word, unknown

MAX_ROUNDS = 16
MAX_STATEMENTS = 30_000
MAX_CALLS = 400

Function = ast.FunctionDef | ast.AsyncFunctionDef


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


class Reader:
    """Reads one file. `launches`, `problems` and `depends_on` are what it found."""

    def __init__(self, document: str, text: str, positions: Positions, read: Callable[[str], str | None]) -> None:
        self.document = document
        self.read = read
        self.positions = positions
        self.canonical: dict[str, str] = {"sgl": "sglang"}
        self.evaluator = Evaluator(document, text, positions, self.canonical, self.on_call)
        self.noted: dict[object, Noted] = {}
        self.problems: dict[Place, Problem] = {}
        self.depends_on: set[str] = set()
        self.clues: dict[Clue, None] = {}
        self.around: tuple[Clue, ...] = ()
        self.deferred: list[tuple[Function, tuple[Clue, ...]]] = []
        self.kinds: dict[str, Kind] = {}
        self.defined: set[str] = set()
        self.globals: set[str] = set()
        """Names that a function sets for the whole file."""
        self.context: list[Choice] = []
        self.quiet = 0
        self.steps = 0
        self.calls = 0

    @property
    def state(self) -> State:
        return self.evaluator.state

    @state.setter
    def state(self, state: State) -> None:
        self.evaluator.state = state

    # The file.

    def run(self, body: Sequence[ast.stmt]) -> None:
        self.prepare(body)
        self.state[ENVIRON] = Table((), Place(self.document, 0, 0), True)
        self.block(body)
        outer = dict(self.state)
        for name in self.globals:
            if name in outer:
                outer[name] = Opaque(place_of(outer[name]), "set in a function")
        while self.deferred:
            function, clues = self.deferred.pop(0)
            self.body_of(function, outer, clues)
        read: set[str] = set()
        while waiting := [name for name in self.kinds if name not in read]:
            read.update(waiting)
            for name in waiting:
                self.read_class(self.kinds[name], outer)

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
            if self.steps > MAX_STATEMENTS:
                return False
            handler = STATEMENTS.get(type(statement))
            if handler is not None:
                if handler(self, statement) is False:
                    return False
                continue
            for child in ast.iter_child_nodes(statement):
                if isinstance(child, ast.expr):
                    self.evaluate(child)
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
        elif isinstance(node.op, ast.BitOr) and isinstance(before, Table):
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
                self.state[key] = value

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
        if isinstance(owner, Table):
            if isinstance(name, Text) and name.word.text is not None:
                self.state[key] = owner.with_entry(Entry(name.word, value))
            else:
                self.state[key] = replace(owner, open=True, literal=None)
        elif isinstance(owner, Items):
            self.state[key] = Items((More(owner.place),), owner.place)

    def branch(self, node: ast.If) -> bool:
        self.evaluate(node.test)
        known = _constant_test(node.test)
        if known is not None:
            return self.block(node.body if known else node.orelse)
        return self.ways(
            [lambda: self.block(node.body), lambda: self.block(node.orelse)], self.positions.place(node.test)
        )

    def ways(self, arms: Sequence[Callable[[], bool]], place: Place) -> bool:
        """Reads each arm from the present state, and joins what those leave that reach their end."""
        before = self.state
        ends: list[State] = []
        for arm in arms:
            self.state = dict(before)
            if arm():
                ends.append(self.state)
        if not ends:
            self.state = before
            return False
        self.state = ends[0]
        for other in ends[1:]:
            self.state = _joined_states(self.state, other, place)
        return True

    def loop(self, node: ast.For | ast.AsyncFor) -> bool:
        source = self.evaluate(node.iter)
        place = self.positions.place(node.iter)
        if (
            isinstance(source, Items)
            and len(source.items) <= MAX_ROUNDS
            and not any(isinstance(v, More) for v in source.items)
        ):
            for item in source.items:
                self.bind(node.target, item)
                label = self._label(node.target, item)
                with self.choice(Choice(place_of(item), label) if label else None):
                    self.block(node.body)
            return self.block(node.orelse)

        def once() -> bool:
            self.bind(node.target, Opaque(place))
            self.block(node.body)
            return True

        return self.ways([lambda: True, once], place) and self.block(node.orelse)

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

        def once() -> bool:
            self.block(node.body)
            return True

        endless = _constant_test(node.test) is True
        return self.ways([once] if endless else [lambda: True, once], self.positions.place(node.test))

    def attempt(self, node: ast.Try) -> bool:
        before = dict(self.state)
        place = self.positions.place(node)
        reached = self.block(node.body) and self.block(node.orelse)
        after = self.state
        ends = [after] if reached else []
        for handler in node.handlers:
            self.state = _joined_states(before, after, place)
            if self.block(handler.body):
                ends.append(self.state)
        self.state = ends[0] if ends else after
        for other in ends[1:]:
            self.state = _joined_states(self.state, other, place)
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
        arms = [lambda case=case: self.block(case.body) for case in node.cases]
        return self.ways([*arms, lambda: True], self.positions.place(node.subject))

    def leave(self, node: ast.Return | ast.Raise | ast.Break | ast.Continue) -> bool:
        if isinstance(node, ast.Return) and node.value is not None:
            value = self.evaluate(node.value)
            if isinstance(value, Items) and not isinstance(node.value, ast.Name):
                self.start_arguments(self.positions.place(node.value), value, self.environment(None))
            elif isinstance(value, Items):
                self.start_arguments(value.place, value, self.environment(None))
        if isinstance(node, ast.Raise) and node.exc is not None:
            self.quiet += 1
            self.evaluate(node.exc)
            self.quiet -= 1
        return False

    def delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                key = self.evaluator.key_of(target.value)
                owner = self.state.get(key or "")
                if isinstance(owner, Items) and key:
                    self.state[key] = Items((More(owner.place),), owner.place)

    # Functions and classes.

    def define(self, node: Function) -> None:
        self.deferred.append((node, (*self.around, *self.decorator_clues(node.decorator_list))))

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

    def read_class(self, kind: Kind, outer: State) -> None:
        """The methods of a class, its own and those it inherits, on its own attributes."""
        line = self._line_of(kind)
        attributes: State = {}
        methods: dict[str, Function] = {}
        for base in reversed(line):
            attributes.update(base.state)
            methods.update(base.methods)
        if len(line) > 1 and not any(m in kind.methods.values() for m in methods.values()) and not kind.state:
            return
        clues = tuple(c for base in line for c in self.decorator_clues(base.node.decorator_list))
        inherits = len(line) > 1 or any(kind.node.name in other.bases for other in self.kinds.values())
        state = {**outer, **{f"self.{name}": _filled_in(value) for name, value in attributes.items()}}
        attributes_of: State = {}
        label = Choice(self._name_place(kind.node), f"the class is `{kind.node.name}`") if inherits else None
        counts = _attribute_counts(methods.values())
        with self.choice(label):
            for method in sorted(
                methods.values(), key=lambda m: (m.name not in ("__init__", "setUpClass", "setUp"), m.lineno)
            ):
                left = self.body_of(
                    method, {**state, **attributes_of}, (*clues, *self.decorator_clues(method.decorator_list))
                )
                for name, value in left.items():
                    before = attributes_of.get(name, state.get(name))
                    if not name.startswith("self.") or before is value:
                        continue
                    if counts.get(name, 0) > 1:
                        attributes_of[name] = Opaque(place_of(value), "set more than once")
                    else:
                        attributes_of[name] = value if before is None else joined(before, value, place_of(value))
                self.run_deferred({**state, **attributes_of})

    def run_deferred(self, outer: State) -> None:
        while self.deferred:
            function, clues = self.deferred.pop(0)
            self.body_of(function, outer, clues)

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

    def body_of(self, function: Function, outer: State, clues: tuple[Clue, ...]) -> State:
        """Reads a function's body on what surrounds it; gives what it leaves behind."""
        before, around = self.state, self.around
        self.state = dict(outer)
        self.around = clues
        spec = function.args
        for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            if argument.arg not in ("self", "cls"):
                self.state[argument.arg] = Opaque(self.positions.place(argument), PARAMETER)
        if spec.vararg is not None:
            place = self.positions.place(spec.vararg)
            self.state[spec.vararg.arg] = Items((More(place, PARAMETER),), place)
        if spec.kwarg is not None:
            self.state[spec.kwarg.arg] = Table((), self.positions.place(spec.kwarg), True)
        self.block(function.body)
        left = self.state
        self.state, self.around = before, around
        return left

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
        if self.quiet:
            return None
        place = self.positions.place(node) if self.evaluator.within is None else self.evaluator.within
        if ENGINES.match(name):
            return self.start_engine(node, last, given, place)
        helper = HELPERS.get(last)
        if helper is not None and self.is_helper(name, last):
            self.start_helper(helper, given, place)
            return None
        if last in PARSERS and last not in self.defined and given.positional and isinstance(given.positional[0], Items):
            self.start_words(given.positional[0], place)
            return None
        if not SPEAKS.match(last):
            self.start_command(name, last, given, place)
        return None

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
        if EXEC_FUNCTIONS.match(name) and len(given.positional) > 2 and isinstance(given.positional[1], Text):
            self.start_arguments(place, Items(tuple(given.positional[1:]), place), env)

    def start_arguments(self, call: Place, value: Items, env: Mapping[str, Word]) -> None:
        words = [as_text(v) for v in value.items]
        if self.quiet or not any("sglang" in (f.text or "") for w in words for f in w.fragments):
            return
        found = read_arguments(self.document, words, self.surroundings(env))
        self.note(call, found, "list-words")

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
        words = (Word((Fragment("--model-path", start, False, fixed=True),), start), first, *map(as_text, given_items))
        self.add(
            helper.program,
            place,
            words,
            self.environment(env) if env is not None else self.environment(None),
            "list-words",
        )

    def start_words(self, value: Items, place: Place) -> None:
        words = tuple(map(as_text, value.items))
        if any(w.text not in (None, "-h", "--help") for w in words):
            self.add("launch_server", place, words, self.environment(None), "list-words")

    def start_engine(self, node: ast.Call, last: str, given: Arguments, place: Place) -> Value | None:
        """`sgl.Engine(…)`, `ServerArgs(…)`: words are the keywords, each with the source of its value."""
        if "server_args" in given.keywords or self.evaluator.within is not None:
            return None
        words: list[Word] = []
        if last == "ServerArgs" and given.positional:
            first = given.positional[0]
            words += [_fixed("model_path", place_of(first)), as_source(first)]
        for keyword in node.keywords:
            if keyword.arg is None:
                words += self.unpacked_keywords(self.evaluate_quietly(keyword.value))
            elif keyword.arg not in NOT_OURS:
                start = self.positions.place(keyword).start
                key = Place(self.document, start, start + len(keyword.arg))
                words += [Word((Fragment(keyword.arg, key),), key), as_source(given.keywords[keyword.arg])]
        if any(not w.splat for w in words):
            self.add("engine", place, tuple(words), self.environment(None), "keywords", self.positions.place(node.func))
        return None

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
        self.keep(call, launch)

    def note(self, call: Place, found: Found, syntax: str) -> None:
        for launch in found.launches:
            own = replace(launch, syntax=syntax) if launch.syntax == "yaml-words" else launch  # type: ignore[arg-type]
            self.keep(call, own)
        for problem in found.problems:
            self.problems.setdefault(problem.place, problem)
        self.depends_on |= found.depends_on

    def keep(self, call: Place, launch: Launch) -> None:
        """Notes a launch; one that is noted already gets the variants that are new."""
        if self.quiet:
            return
        key = (launch.place, launch.program, call)
        noted = self.noted.get(key)
        if noted is None:
            if len(self.noted) >= MAX_CALLS:
                return
            noted = self.noted[key] = Noted(launch, {})
        for variant in launch.variants:
            if len(noted.variants) < MAX_VARIANTS:
                choices = (*self.context, *variant.choices)
                noted.variants.setdefault(_told(variant), replace(variant, choices=choices))

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


def _joined_states(left: State, right: State, place: Place) -> State:
    found = dict(left)
    for name, value in right.items():
        own = left.get(name)
        if own is not value:
            found[name] = joined(own, value, place)
    return found


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
