"""Runs a script as bash would, with values that may be unknown, and records each launch that it reaches.

Nothing is executed. If a choice cannot be decided, every way is taken, and their results are joined: a variable set in one arm of an `if`
has two values afterwards, distinguished by the same `Point` as every other variable set there. Loops over known words are unrolled; the
body of any other loop runs once with unknown values. Everything is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from spec_lsp.expressions import expression
from spec_lsp.records import replace
from spec_lsp.syntax.covering import Ways, fewest
from spec_lsp.syntax.launch import TOO_DEEP, TOO_MUCH, Choice, Clue, EmbeddedFile, Problem, not_read_whole
from spec_lsp.syntax.shell import ast, commands
from spec_lsp.syntax.shell.clues import text_clues
from spec_lsp.syntax.shell.control import ControlFlow
from spec_lsp.syntax.shell.expand import Expander, through, written_at
from spec_lsp.syntax.shell.launches import Key, Note, Seen, gather
from spec_lsp.syntax.shell.machine import MAX_CALLS, MAX_STEPS, VARIABLES_OF_A_STEP
from spec_lsp.syntax.shell.memory import Memory
from spec_lsp.syntax.shell.questions import PIP, assigned_names, may_start, name_of, shown, without_escaped_blank
from spec_lsp.syntax.shell.state import ALIAS, ARGUMENTS, FILE, INPUT, MISSING, OUTPUT, STATUS, UNREAD, Frame, State
from spec_lsp.syntax.shell.statements import statements
from spec_lsp.syntax.shell.streams import path_key, plain_path
from spec_lsp.syntax.shell.values import (
    DEPENDS,
    NOWHERE,
    TREES,
    UNSET,
    Array,
    Fork,
    PathCondition,
    Point,
    Scalar,
    TooMany,
    Undecided,
    order_of,
    transform,
)
from spec_lsp.syntax.source import Source, WordSource, embedded
from spec_lsp.syntax.word import Place, Word, hull, unknown

Pins = dict[Point, int]

MAX_NAMED_CALLS = 24
"""The most functions that are followed for one call whose name is only partly known."""
MAX_EMBEDDED_CHARACTERS = 300_000
FUNCTION_WORD = expression(r"[\w.-]+")
MAX_EMBEDDED = 6

FORKING_ENV = expression(r"SGL|CUDA_VISIBLE|HIP_VISIBLE|ROCR_VISIBLE|ASCEND|NVSHMEM|TORCH|FLASHINFER|TRITON|NCCL")


class Interpreter(ControlFlow):
    """Runs statements in order. Results: `notes` (its visits to launches), `clues`, and `sourced`, the files it asked for."""

    def __init__(
        self,
        document: str,
        load: Callable[[str], list[tuple[ast.Script, Source]] | None],
        memory: Memory,
        assigns: Callable[[], frozenset[str]],
        builtins: Mapping[str, Callable[[Interpreter, ast.Simple, Source], None]],
    ) -> None:
        super().__init__(document, memory, assigns)
        self.load = load
        self.builtins = builtins
        self.notes: list[Note] = []
        self.uncalled: list[Note] = []
        """The launches of functions that nothing in the document calls."""
        self.entered: list[str] = []
        """The functions called, in order."""
        self.leading: list[str] = []
        """The functions that may start SGLang, as defined at the end of the run."""
        self.too_deep = False
        """Whether a statement that may start SGLang is nested deeper than we read."""
        self.clues: list[Clue] = []
        self.sourced: list[str] = []
        self.env_names: frozenset[str] = frozenset()
        self.env_order: list[str] = []
        self.env_values: list[Any] | None = None
        self.env: dict[str, Word] = {}
        self.exported_words: dict[int, tuple[Scalar, Word]] = {}
        self.embedded_characters = 0
        self.embedded = 0
        self.around: tuple[Clue, ...] = ()
        self.carrier: Place | None = None
        self.looked_at: Ways = "all"
        """The ways to reach the current command that are looked at, if not all are."""

    def run_simple(self, node: ast.Simple, source: Source) -> None:
        name = name_of(node)
        if node.assigning:
            self.assign_defaults(node, source)
        if node.redirects:
            self.keep_documents(node, source)
        if not node.words:
            for assign in node.assigns:
                self.assign(assign, source)
            if node.assigns:
                self.set_status(True)
            return
        if name is not None and self.is_alias(name) and source.text[node.words[0].start : node.words[0].end] == name:
            self.run_alias(node, source, name)
            return
        if name is not None and name in self.state.functions:
            self.run_external(node, source, name)
            return
        if name == "sudo" and name_of(node, 1) == "tee":
            node = ast.Simple(node.start, node.end, node.assigns, node.words[1:], node.redirects)
            name = "tee"
        builtin = self.builtins.get(name or "")
        if builtin is not None:
            builtin(self, node, source)
            return
        self.run_external(node, source, name)

    def is_alias(self, name: str, through: tuple[str, ...] = ()) -> bool:
        """Whether the shell puts an alias of this name in its place. Only those that start SGLang matter, by others too (`through`)."""
        text = self.state.vars.get(ALIAS + name)
        expands = self.state.vars.get(ALIAS, self.expands_aliases)
        if expands is not True or not isinstance(text, Scalar) or name in through:
            return False
        written = "".join(f.text or "" for f in text.fragments)
        return "sglang" in written or self.is_alias(written.partition(" ")[0], (*through, name))

    def run_alias(self, node: ast.Simple, source: Source, name: str) -> None:
        """The command with the alias's text for its first word, which is no alias in there."""
        text, first = self.state.vars[ALIAS + name], node.words[0]
        brought_in = through(text.fragments, source.place(first.start, first.end))
        written = [*source.fragments(node.start, first.start), *brought_in, *source.fragments(first.end, node.end)]
        self.state.vars[ALIAS + name] = UNSET
        place = source.place(node.start, node.end)
        self.run_embedded(node, source, Word(tuple(written), place), (), True, commands.Surroundings())
        self.state.vars[ALIAS + name] = text

    def run_external(self, node: ast.Simple, source: Source, name: str | None) -> None:
        written = self.wrote_files and name is not None and self.is_written(name)
        if name is not None and name not in self.state.functions and not written and not may_start(node, name):
            self.print_unknown(node, source, name)
            if PIP.match(name):
                self.note_pins(node, source)
            else:
                self.fill_arrays(node, source)
            self.set_status(None)
            return
        seen, ways, tree = self.remembered(node, source, lambda: self.ways(lambda x: self.see(node, source, x)))
        if not seen:
            return
        if all(leaf.action is None for _, leaf in seen):
            self.print_unknown(node, source, name or "")
            self.note_pins(node, source)
            self.fill_arrays(node, source)
            self.set_status(None)
            return
        if all(isinstance(leaf.action, commands.Started) for _, leaf in seen):
            for pins, leaf in seen:
                if ways != "all" or self.reached(pins):
                    self.note(node, source, pins, leaf, ways)
            self.print_unknown(node, source, "")
            self.set_status(None)
        elif tree is None:
            self.act_in_rows(node, source, seen, ways)
        else:
            numbers: dict[int, int] = {}
            for i, (_, leaf) in enumerate(seen):
                numbers.setdefault(id(leaf), i)
            decision = transform(tree, lambda leaf: numbers[id(leaf)])
            self.branch(decision, [partial(self.act, node, source, leaf, pins) for pins, leaf in seen])
        if name == "exec":
            self.state.alive = False

    def act_in_rows(self, node: ast.Simple, source: Source, seen: Sequence[tuple[Pins, Seen]], ways: Ways) -> None:
        """Run a command that can be reached in too many ways: a function is called once, with values that depend on the way; anything else
        is run for each of the selected ways, and its effects hold for these only."""
        called = {one.action.name if isinstance(one.action, commands.Called) else None for _, one in seen}
        if None not in called and len(called) == 1:
            args = self.later(lambda x: arguments_of(x.variables.see(node, source, x)))  # type: ignore[attr-defined]
            self.call(node, source, called.pop() or "", args)
            return
        kept, before = self.looked_at, self.state
        self.looked_at = fewest((self.looked_at, ways))
        decision = row_taken([pins for pins, _ in seen])
        arms = [partial(self.act_in_row, node, source, one, pins) for pins, one in seen]
        self.branch(decision, [*arms, self.stop])
        self.looked_at = kept
        if all(before.vars.get(name) is value for name, value in self.state.vars.items() if name != STATUS):
            self.state.constraints = before.constraints

    def act_in_row(self, node: ast.Simple, source: Source, seen: Seen, pins: Pins) -> None:
        context, self.context = self.context, [*self.context, *chosen(pins)]
        self.act(node, source, seen, {})
        self.context = context

    def stop(self) -> None:
        self.state.alive = False

    def act(self, node: ast.Simple, source: Source, seen: Seen, pins: dict[Point, int]) -> None:
        action = seen.action
        if isinstance(action, commands.Started):
            self.note(node, source, pins, seen)
            self.set_status(None)
        elif isinstance(action, commands.Called):
            self.call(node, source, action.name, Array(action.args))
        elif isinstance(action, commands.CalledByPart):
            self.call_one(node, source, action)
        elif isinstance(action, commands.Embedded):
            self.run_embedded(node, source, action.script, action.args, action.same, action.around)
        elif isinstance(action, commands.ScriptFile):
            self.run_written(node, source, action)
        elif isinstance(action, commands.StandardInput):
            self.run_standard_input(node, source, action)
        else:
            self.set_status(None)

    # Launches.

    def see(self, node: ast.Simple, source: Source, x: Expander) -> Seen:
        """The effect of a command under one path condition."""
        x.generous = True
        words = x.words(without_escaped_blank(node), source)
        foreign = self.variable(UNREAD) is not None
        action = commands.recognise(words, self.state.functions, self.is_written, foreign) if words else None
        if isinstance(action, (commands.ScriptFile, commands.StandardInput)):
            return Seen(replace(action, text=self.text_run(action, node, source, x)))
        if not isinstance(action, commands.Started):
            return Seen(action)
        env = self.environment(node, source, x, action.around)
        files = self.files_named(action.args, x)
        return Seen(action, env, files)

    def text_run(
        self, action: commands.ScriptFile | commands.StandardInput, node: ast.Simple, source: Source, x: Expander
    ) -> Word | None:
        """The script in a file that this one wrote, or on standard input, under one path condition; None if unknown."""
        place = source.place(node.start, node.end)
        tree: Any = None
        if isinstance(action, commands.ScriptFile):
            place = action.path.place
            tree = self.variable(FILE + (path_key(action.path.fragments) or ""))
        else:
            read = next((r for r in reversed(node.redirects) if r.body is not None or r.op == "<"), None)
            if read is not None and read.body is not None:
                tree = Scalar(x.scalar(read.body, source))
            else:
                key = self.path_of(read.target, source) if read is not None else None
                tree = self.variable(FILE + key) if key else self.variable(INPUT) if read is None else None
        leaf = x.world.follow(tree) if tree is not None else None
        if not isinstance(leaf, Scalar) or not leaf.fragments:
            return None
        return Word(leaf.fragments, written_at(leaf.fragments, place))

    def environment(
        self, node: ast.Simple, source: Source, x: Expander, around: commands.Surroundings
    ) -> tuple[tuple[str, Word], ...]:
        env: dict[str, Word] = {}
        self.steps += len(self.state.exported) // VARIABLES_OF_A_STEP
        if not around.fresh:
            env.update(self.exported_env(x))
            for assign in node.assigns:
                if assign.value is not None and assign.elements is None:
                    fragments = x.scalar(assign.value, source)
                    env[assign.name] = Word(fragments, source.place(assign.value.start, assign.value.end))
        for name, given in around.env:
            passed = given if given is not None else self.exported_word(name, x)
            if passed is not None:
                env[name] = passed
        return tuple(env.items())

    def exported_env(self, x: Expander) -> dict[str, Word]:
        """All exported variables; computed again only when one of them has changed."""
        exported = self.state.exported
        if self.env_names is not exported:
            self.env_names, self.env_order, self.env_values = exported, sorted(exported), None
        values = [self.state.vars.get(name) for name in self.env_order]
        if self.reads is not None:
            self.reads.update(zip(self.env_order, values, strict=True))
        if self.env_values == values:
            return self.env
        words = {name: self.exported_word(name, x) for name in self.env_order}
        env = {name: word for name, word in words.items() if word is not None}
        if not any(isinstance(v, TREES) for v in values):
            self.env_values, self.env = values, env
        return env

    def exported_word(self, name: str, x: Expander) -> Word | None:
        tree = self.variable(name)
        if tree is None:
            return None
        if isinstance(tree, TREES) and not FORKING_ENV.search(name):
            try:
                leaf = PathCondition(x.world.pins, holds=self, eager=True).follow(tree)
            except (Undecided, TooMany):
                return unknown(Place(self.document, 0, 0), DEPENDS)
        else:
            leaf = x.world.follow(tree)
        if leaf is None:
            return unknown(Place(self.document, 0, 0), DEPENDS)
        if not isinstance(leaf, Scalar):
            return None
        kept = self.exported_words.get(id(leaf))
        if kept is None:
            place = (
                written_at(leaf.fragments, leaf.fragments[0].place) if leaf.fragments else Place(self.document, 0, 0)
            )
            kept = self.exported_words[id(leaf)] = (leaf, Word(leaf.fragments, place))
        return kept[1]

    def fill_arrays(self, node: ast.Simple, source: Source) -> None:
        """`read_flags flags.txt ARGS`, a function of a file that cannot be read: it fills the array."""
        for word in node.words[1:]:
            if word.literal is not None and isinstance(self.state.vars.get(word.literal), Array):
                filled = unknown(source.place(word.start, word.end), "filled by a command", splat=True)
                self.state.vars[word.literal] = Array((filled,))

    def noted(self) -> Sequence[int]:
        return len(self.notes), len(self.clues), len(self.entered), len(self.sourced)

    def files_named(self, args: Sequence[Word], x: Expander) -> tuple[EmbeddedFile, ...]:
        """The files written before that the command names."""
        if not self.wrote_files:
            return ()
        found = []
        for word in args:
            text = word.text
            for candidate in (text, (text or "").partition("=")[2]):
                tree = self.variable(FILE + plain_path(candidate)) if candidate else None
                if tree is not None and candidate:
                    leaf = x.world.follow(tree)
                    if isinstance(leaf, Scalar):
                        place = written_at(leaf.fragments, word.place) if leaf.fragments else word.place
                        found.append(EmbeddedFile(candidate, Word(leaf.fragments, place)))
        return tuple(found)

    def note(self, node: ast.Simple, source: Source, pins: Pins, seen: Seen, ways: Ways = "all") -> None:
        """Record one variant of a launch that a statement starts."""
        self.note_at(source.place(node.start, node.end), pins, seen, node, source, ways)

    def note_at(
        self,
        extent: Place,
        pins: dict[Point, int],
        seen: Seen,
        node: ast.Simple | None = None,
        source: Source | None = None,
        ways: Ways = "all",
    ) -> None:
        """Record one variant of the launch whose words are in `extent`."""
        assert isinstance(seen.action, commands.Started)
        carrier = self.carrier if isinstance(source, WordSource) and source.level else None
        entry = seen.action.entry
        if carrier is not None:
            places = written_places(entry)
        elif isinstance(source, WordSource):
            places = [seen_in(word, extent) for word in entry]
        else:
            places = [word.place for word in entry]
        place = written_at_words(places, extent)
        clues = (*self.around, *seen.action.around.clues)
        devices = next((word for name, word in seen.env if name == "CUDA_VISIBLE_DEVICES"), None)
        if devices is not None and devices.text:
            clues = (*clues, Clue("gpu-count", f"CUDA_VISIBLE_DEVICES={devices.text}", devices.place))
        choices = (*self.context, *chosen(pins))
        implied = chosen(self.turns_left(pins)) if node is not None else ()
        self.notes.append(
            Note(
                seen.action.program, place, extent, node, source, clues, seen, tuple(dict.fromkeys(choices)), implied,
                carrier, fewest((ways, self.looked_at)),
            )
        )  # fmt: skip

    def problems(self) -> tuple[Problem, ...]:
        """What is reported about a script that was not read completely."""
        why = TOO_MUCH if self.exhausted else TOO_DEEP if self.too_deep else ""
        return (not_read_whole(self.document, why),) if why else ()

    @property
    def all_notes(self) -> list[Note]:
        return [*self.notes, *self.uncalled]

    def launches(self) -> dict[Key, list[Note]]:
        """The visits to each launch, in the order in which launches were first reached."""
        return gather(self.all_notes)

    def note_pins(self, node: ast.Simple, source: Source) -> None:
        """`pip install "sglang[all]==0.5.9"`."""
        texts = [w.literal for w in node.words]
        if "install" not in texts and "add" not in texts:
            return
        words = self.in_common(lambda x: tuple(x.words(node.words, source)))
        for word in words if isinstance(words, tuple) else ():
            m = commands.PIN.match(word.known_start)
            if m:
                self.clues.append(Clue("pin", word.text or word.known_start, word.place))
            elif commands.is_build(word.known_start):
                self.clues.append(Clue("build", word.known_start, word.place))

    # Functions and scripts within the script.

    def tell_uncalled(self) -> None:
        """Run the functions that may start SGLang and that the run did not enter: another script may source them, or a person call one.

        Their launches are kept apart from those of the run, from whose end they start. Functions that call others come first.
        """
        told, told_clues, entered = len(self.notes), len(self.clues), len(self.entered)
        end, cost = self.state, (self.steps, self.evaluations)
        self.leading = self.starting_functions(end)
        for name in reversed(self.leading):
            if name in set(self.entered):
                continue
            function, home = end.functions[name]
            self.state = end.fork()
            self.state.constraints = ()
            self.state.vars.pop(ARGUMENTS, None)
            self.frames.append(Frame("function", 0))
            self.context.append(Choice(home.place(function.start, function.end), f"`{name}` is called"))
            self.calls += 1
            self.execute(function.body, home)
            self.calls -= 1
            self.context.pop()
            self.frames.pop()
        self.uncalled = self.notes[told:]
        del self.notes[told:], self.clues[told_clues:], self.entered[entered:]
        self.state, (self.steps, self.evaluations) = end, cost

    def starting_functions(self, state: State) -> list[str]:
        """The functions of this document that mention SGLang, and those that mention such a function."""
        words = {
            name: frozenset(FUNCTION_WORD.findall(home.text[function.start : function.end]))
            for name, (function, home) in state.functions.items()
            if home.place(function.start, function.start).document == self.document
        }
        found = {name for name, said in words.items() if any("sglang" in word for word in said)}
        while more := {name for name, said in words.items() if name not in found and said & found}:
            found |= more
        return [name for name in words if name in found]

    def call(self, node: ast.Simple, source: Source, name: str, args: Any) -> None:
        """Calls a function with arguments, a tree of arrays."""
        function, home = self.state.functions[name]
        self.entered.append(name)
        if self.calls >= MAX_CALLS or self.steps > MAX_STEPS:
            self.set_status(None)
            return
        frame = Frame("function", len(self.state.constraints))
        outer = {n: self.state.vars.get(n, MISSING) for n in (ARGUMENTS, *"123456789")}
        for digit in "123456789":
            self.state.vars.pop(digit, None)
        self.state.vars[ARGUMENTS] = args
        given = {a.name: self.state.vars.get(a.name, MISSING) for a in node.assigns}
        for assign in node.assigns:
            self.assign(assign, source)
        self.frames.append(frame)
        self.context.append(
            Choice(source.place(node.start, node.end), f"`{shown(source, node.start, node.end)}` is called")
        )
        self.calls += 1
        self.execute(function.body, home)
        self.calls -= 1
        self.context.pop()
        self.frames.pop()
        self.settle(frame, ("return",))
        self.restore({**given, **outer, **frame.saved})

    def call_one(self, node: ast.Simple, source: Source, action: commands.CalledByPart) -> None:
        """A call whose function only the command line decides: any of them may run, or a command of that name."""
        if self.calls or len(action.names) > MAX_NAMED_CALLS:
            place = source.place(node.start, node.end)
            for name in action.names:
                for assigned in assigned_names(self.state.functions[name][0].body):
                    self.assign_unknown(assigned, place, "set in a function")
            self.set_status(None)
            return
        text = shown(source, node.words[0].start, node.words[0].end)
        labels = [f"`{text}` is {name}" for name in action.names]
        point = self.new_point(source.place(node.start, node.end), labels)
        decision = Fork(point, tuple(range(len(labels)))) if len(labels) > 1 else 0
        args = Array(action.args)
        self.branch(decision, [partial(self.call, node, source, name, args) for name in action.names])

    def run_embedded(
        self,
        node: ast.Simple,
        source: Source,
        text: Word,
        args: tuple[Word, ...],
        same: bool,
        around: commands.Surroundings,
    ) -> None:
        """A text that a shell reads: `eval "$CMD"`, `bash -c '…'`, `ssh host '…'`."""
        inner = embedded(text)
        self.embedded_characters += len(inner.whole)
        affordable = (
            self.calls < MAX_CALLS
            and self.embedded < MAX_EMBEDDED
            and self.embedded_characters < MAX_EMBEDDED_CHARACTERS
        )
        if not affordable:
            self.set_status(None)
            return
        self.embedded += 1
        self.calls += 1
        outer_clues, self.around = self.around, (*self.around, *around.clues, *text_clues(inner))
        outer_carrier = self.carrier
        if outer_carrier is None and inner.level:
            self.carrier = source.place(node.start, node.end)
        if same:
            self.run_text(inner)
        else:
            given = self.standard_input(node.redirects, source)
            with self.subshell():
                self.enter_process(node, source, around)
                self.set_input(given)
                self.state.vars[ARGUMENTS] = Array(args[1:])
                if args:
                    self.state.vars["0"] = Scalar(args[0].fragments)
                self.run_text(inner)
        self.around, self.carrier = outer_clues, outer_carrier
        self.calls -= 1
        self.embedded -= 1

    def run_written(self, node: ast.Simple, source: Source, action: commands.ScriptFile) -> None:
        """`bash run.sh`, where the script wrote `run.sh` before."""
        text = action.text
        if text is None or not is_shell_script(text.known_start):
            self.set_status(None)
            return
        self.run_embedded(node, source, text, (action.path, *action.args), False, action.around)

    def run_standard_input(self, node: ast.Simple, source: Source, action: commands.StandardInput) -> None:
        """`bash -s <<EOF`, `cat <<EOF | ssh host bash`."""
        if action.text is not None:
            self.set_input(None)
            self.run_embedded(
                ast.Simple(node.start, node.end, node.assigns, node.words, ()),
                source,
                action.text,
                action.args,
                False,
                action.around,
            )
        else:
            self.set_status(None)

    def run_text(self, source: WordSource) -> None:
        """A script inside a word. If bash would refuse it, it is read line by line, even after an `exit`."""
        located = list(statements(source.whole))
        broken = any(one.broken for one in located)
        self.too_deep = self.too_deep or (any(one.deep for one in located) and "sglang" in source.whole)
        for one in located:
            if broken:
                self.state.alive = True
            elif not self.state.alive:
                break
            self.run(one.statement.script, source.statement(one.start, one.text))

    def enter_process(self, node: ast.Simple, source: Source, around: commands.Surroundings) -> None:
        """A new shell sees only exported variables, and in a container or on another host not even these."""
        given: dict[str, Any] = {}
        for assign in node.assigns:
            if assign.value is not None:
                written = assign.value
                given[assign.name] = self.value_of(lambda x, w=written: Scalar(x.scalar(w, source)))  # type: ignore[misc]
        for name, word in around.env:
            given[name] = Scalar(word.fragments) if word is not None else self.state.vars.get(name)
        seen = frozenset() if around.fresh else self.state.exported
        kept = {
            n: v for n, v in self.state.vars.items() if n in seen or n.startswith(FILE) or n in (OUTPUT, INPUT, STATUS)
        }
        self.state.vars = {**kept, **{n: v for n, v in given.items() if v is not None and v is not NOWHERE}}
        self.state.exported = seen | frozenset(given)
        self.state.functions = {}


def written_at_words(places: Sequence[Place], extent: Place) -> Place:
    """Where a reader sees the words that start a command: in the command itself, or else where they are written."""
    seen = [p for p in places if extent.contains(p)] or places
    if not seen or any(p.document != seen[0].document for p in seen):
        return extent
    return hull(seen)


def seen_in(word: Word, extent: Place) -> Place:
    """Where a word is seen in a text: at the name that brings it in, if it is written elsewhere."""
    if extent.contains(word.place):
        return word.place
    return next((via for f in word.fragments for via in f.via if extent.contains(via)), word.place)


def written_places(words: Sequence[Word]) -> list[Place]:
    """Where the characters of words are written, whatever variables they came through."""
    return [fragment.place for word in words for fragment in word.fragments]


def is_shell_script(start: str) -> bool:
    """Whether a text with this beginning is a shell script, as far as the beginning shows."""
    return not start.startswith("#!") or re.match(r"#!.*?\b(?:ba|z|da|k|a)?sh\b", start) is not None


def arguments_of(seen: Seen) -> Array:
    return Array(seen.action.args if isinstance(seen.action, commands.Called) else ())


def row_taken(rows: Sequence[Pins]) -> Any:
    """The index of the row that is taken; their number if none is."""

    def tree(depth: int, left: Sequence[int]) -> Any:
        if len(left) == 1 and depth >= len(orders[left[0]]):
            return left[0]
        point = next((orders[i][depth] for i in left if depth < len(orders[i])), None)
        if point is None:
            return left[0]
        arms = []
        for way in range(len(point.labels)):
            same = [i for i in left if depth < len(orders[i]) and orders[i][depth] is point and rows[i][point] == way]
            arms.append(tree(depth + 1, same) if same else len(rows))
        return Fork(point, tuple(arms))

    orders = [list(row) for row in rows]
    return tree(0, range(len(rows)))


def chosen(pins: Pins) -> tuple[Choice, ...]:
    """Choices in the order in which they are reported: that of the document."""
    turns = sorted(pins.items(), key=lambda turn: order_of(turn[0]))
    return tuple(Choice(point.place, point.labels[way]) for point, way in turns)
