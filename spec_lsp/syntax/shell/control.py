"""Which statements run, and how often: lists, pipelines, `if`, `case`, loops and functions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from spec_lsp.interruption import checkpoint
from spec_lsp.syntax.launch import Choice
from spec_lsp.syntax.shell import arithmetic, ast, conditions
from spec_lsp.syntax.shell.expand import SET_IN_LOOP, Expander
from spec_lsp.syntax.shell.machine import MAX_STEPS
from spec_lsp.syntax.shell.memory import Memory
from spec_lsp.syntax.shell.patterns import is_plain, matches
from spec_lsp.syntax.shell.questions import arm_label, is_test, may_read_script, shown
from spec_lsp.syntax.shell.state import ARGUMENTS, FILE, INPUT, MISSING, ORIGIN, OUTPUT, STATUS, Frame, State
from spec_lsp.syntax.shell.streams import READS, Streams, writes_file
from spec_lsp.syntax.shell.values import (
    DEPENDS,
    NOWHERE,
    TREES,
    UNSET,
    Array,
    Fork,
    Grown,
    Later,
    PathCondition,
    Scalar,
    join,
    outcomes,
    parts,
    transform,
)
from spec_lsp.syntax.source import Source
from spec_lsp.syntax.word import Fragment, Place, Word, one_of, possible

MAX_ROUNDS = 64
THEN, ELSE = 0, 1


class ControlFlow(Streams):
    """Runs compound commands. If a choice cannot be decided, all ways are taken; loops over known words are unrolled."""

    def __init__(self, document: str, memory: Memory, assigns: Callable[[], frozenset[str]]) -> None:
        super().__init__(document, memory, assigns)
        self.context: list[Choice] = []

    @abstractmethod
    def run_simple(self, node: ast.Simple, source: Source) -> None:
        """Run a command that is not a compound one: an assignment, a builtin, a program, a function."""

    def run(self, script: ast.Script, source: Source) -> None:
        for item in script.items:
            if not self.state.alive:
                return
            self.execute(item, source)

    def execute(self, node: ast.Command, source: Source) -> None:
        checkpoint()
        if self.frames or self.calls:  # top-level commands run once, however long the file is
            self.steps += 1
        if self.steps > MAX_STEPS and not self.goes_on(node):
            self.set_status(None)
            return
        if not self.capturing:
            self.printed.clear()
            self.kept_words.clear()
        redirects = getattr(node, "redirects", ())
        if redirects and not isinstance(node, ast.Simple):
            self.run_redirected(node, redirects, source)
        else:
            EXECUTE[type(node)](self, node, source)

    def goes_on(self, node: ast.Command) -> bool:
        """Whether a command is still run although the step limit is exceeded: a top-level one that is not an assignment."""
        nested = self.frames or self.calls
        return not nested and self.steps < 3 * MAX_STEPS and isinstance(node, ast.Simple) and bool(node.words)

    def run_redirected(self, node: ast.Command, redirects: Sequence[ast.Redirect], source: Source) -> None:
        """Run a compound command whose commands read from or write to elsewhere."""
        kept = {name: self.state.vars.get(name, MISSING) for name in (INPUT, OUTPUT)}
        writes = any(writes_file(r) for r in redirects)
        if any(r.op in READS for r in redirects):
            self.set_input(self.standard_input(redirects, source))
        if writes:
            self.state.vars[OUTPUT] = Scalar(())
        EXECUTE[type(node)](self, node, source)
        printed = self.state.vars.get(OUTPUT, UNSET)
        self.restore(kept)
        if writes:
            self.write_to(redirects, source, printed)

    def run_script(self, node: ast.Script, source: Source) -> None:
        self.run(node, source)

    def run_list(self, node: ast.AndOr, source: Source) -> None:
        self.execute(node.first, source)
        previous = node.first
        for op, command in node.rest:
            if not self.state.alive or self.exhausted:
                return
            wanted = 0 if op == "&&" else 1
            status = self.state.vars.get(STATUS)
            if wanted == 0 and status is None and not is_test(previous):
                self.execute(command, source)
            else:
                text = shown(source, previous.start, previous.end)
                place = source.place(previous.start, previous.end)
                decision = self.decided(previous, source, place, (f"`{text}` holds", f"`{text}` fails"))
                arms: list[Callable[[], None]] = [lambda: self.set_status(True), lambda: self.set_status(False)]
                arms[wanted] = partial(self.refined, previous, source, wanted, command)
                self.branch(decision, arms)
            previous = command

    def refined(self, condition: ast.Command, source: Source, way: int, command: ast.Command) -> None:
        if way == 0:
            self.assume(condition, source)
        self.execute(command, source)

    def run_pipeline(self, node: ast.Pipeline, source: Source) -> None:
        if len(node.commands) > 1:
            self.run_pipes(node, source)
        else:
            self.execute(node.commands[0], source)
        if node.negated:
            self.set_status(transform(self.state.vars.get(STATUS), lambda s: None if s is None else not s))

    def run_pipes(self, node: ast.Pipeline, source: Source) -> None:
        """Run each command in a process of its own; the output of one is kept for a next one that uses it."""
        outer = self.state
        output: Any = MISSING
        for i, command in enumerate(node.commands):
            self.state = outer.fork()
            reads = i + 1 < len(node.commands) and may_read_script(node.commands[i + 1])
            if reads:
                self.state.vars[OUTPUT] = Scalar(())
            elif i + 1 < len(node.commands):
                self.state.vars.pop(OUTPUT, None)
            if i:
                self.restore({INPUT: output})
            self.execute(command, source)
            output = self.state.vars.get(OUTPUT, MISSING) if reads else MISSING
            if self.state.alive:
                outer.vars.update((name, value) for name, value in self.state.vars.items() if name.startswith(FILE))
        captured = self.state.vars.get(OUTPUT, MISSING)
        self.state = outer
        if OUTPUT in outer.vars:
            outer.vars[OUTPUT] = (
                captured
                if captured is not MISSING
                else Scalar((Fragment(None, Place(self.document, 0, 0), False, DEPENDS),))
            )
        self.set_status(None)

    def run_group(self, node: ast.Group, source: Source) -> None:
        if not node.subshell:
            self.run(node.body, source)
            return
        with self.subshell():
            self.run(node.body, source)

    @contextmanager
    def subshell(self) -> Iterator[None]:
        """Run in a process of its own, from which only output and written files remain."""
        outer, frames, calls = self.state, self.frames, self.calls
        self.state = outer.fork()
        self.frames = []
        self.calls += 1
        try:
            yield
        finally:
            inner = self.state
            self.state, self.frames, self.calls = outer, frames, calls
            if inner.alive:
                for name, value in inner.vars.items():
                    if name == OUTPUT or name.startswith(FILE):
                        outer.vars[name] = value
            self.set_status(None)

    def run_if(self, node: ast.If, source: Source) -> None:
        """Run the arms in order, however many: each runs where the ones before fail, and the results are joined from the last on."""
        open_arms: list[tuple[State, Any, State]] = []
        for condition, body in node.arms:
            self.run(condition, source)
            if not self.state.alive:
                break
            text = shown(source, condition.start, condition.end)
            place = source.place(condition.start, condition.end)
            only = condition.items[0] if len(condition.items) == 1 else None
            decision = self.decided(only, source, place, (f"`{text}` holds", f"`{text}` fails"))
            if decision is NOWHERE:
                self.state.alive = False
                break
            before, taken = self.state, outcomes(decision)
            if THEN not in taken:
                continue
            if ELSE in taken:
                self.turn(before, decision, THEN)
            if condition.items:
                self.assume(condition.items[-1], source)
            self.run(body, source)
            if ELSE not in taken:
                break
            open_arms.append((before, decision, self.state))
            self.turn(before, decision, ELSE)
        else:
            if node.otherwise is not None:
                self.run(node.otherwise, source)
        for before, decision, then in reversed(open_arms):
            ends = {way: end for way, end in ((THEN, then), (ELSE, self.state)) if end.alive}
            self.meet(before, decision, (THEN, ELSE), ends)

    def run_case(self, node: ast.Case, source: Source) -> None:
        labels = [arm_label(node, arm, source) for arm in node.arms]
        whole = any(p.literal == "*" for arm in node.arms for p in arm.patterns)
        place = source.place(node.subject.start, node.subject.end)
        labels.append(f"`{shown(source, node.subject.start, node.subject.end)}` is none of those listed")

        def choose(x: Expander) -> Any:
            text = x.text(node.subject, source)
            may_be = possible(x.scalar(node.subject, source)) if text is None else ()
            ways: list[int] = []
            for i, arm in enumerate(node.arms):
                outcome = _arm_matches(arm, text, x, source) if not may_be else _all_match(arm, may_be, x, source)
                if outcome is not False:
                    ways.append(i)
                if outcome is True:
                    break
            else:
                if text is not None or not whole:
                    ways.append(len(node.arms))
            return ways[0] if len(ways) == 1 else tuple(ways)

        every = tuple(range(len(labels)))
        decision = self.decide(choose, frozenset({every}), True, False)

        if decision is NOWHERE:
            self.state.alive = False
            return
        open_leaves = [every if isinstance(leaf, Later) else leaf for leaf in parts(decision)]
        ways = sorted(set().union(*(leaf for leaf in open_leaves if isinstance(leaf, tuple))))
        if ways:
            point = self.new_point(place, [labels[way] for way in ways])

            def spread(leaf: Any) -> Any:
                if not isinstance(leaf, tuple):
                    return leaf
                return join(point, [way if way in leaf else NOWHERE for way in ways])

            decision = transform(decision, spread)
        arms = [partial(self.run_case_arm, node, i, source) for i in range(len(node.arms))]
        self.branch(decision, [*arms, lambda: None])

    def run_case_arm(self, node: ast.Case, index: int, source: Source) -> None:
        arm = node.arms[index]
        name = conditions.compared_variable(node.subject, ast.WordNode(0, 0, (), ""))
        texts = [p.literal for p in arm.patterns if p.literal is not None and is_plain(p.literal)]
        if name and len(texts) == len(arm.patterns) == 1:
            fragments = Expander(self, PathCondition({})).literal_word(arm.patterns[0], source).fragments
            self.refine(
                name, Scalar(tuple(Fragment(f.text, f.place, f.verbatim, f.reason, f.via, True) for f in fragments))
            )
        elif name and len(texts) == len(arm.patterns):
            place = source.place(node.subject.start, node.subject.end)
            words = (Expander(self, PathCondition({})).literal_word(p, source).text or "" for p in arm.patterns)
            self.refine(name, Scalar((Fragment(None, place, False, one_of(list(words))),)))
        self.run(arm.body, source)
        if arm.falls_through and index + 1 < len(node.arms) and self.state.alive:
            self.run(node.arms[index + 1].body, source)

    def run_test(self, node: ast.Test, source: Source) -> None:
        emptiness = conditions.asks_emptiness(node.expression)
        self.set_status(self.tested(lambda x: conditions.test(node.expression, x, source), emptiness))

    def run_arithmetic(self, node: ast.ArithmeticCommand, source: Source) -> None:
        self.calculate(node.expression, source)

    def run_function(self, node: ast.Function, source: Source) -> None:
        self.state.functions[node.name] = (node, source)
        self.set_status(True)

    # Loops.

    def run_for(self, node: ast.For, source: Source) -> None:
        if node.header is not None:
            self.run_counting(node, node.header, source)
            return
        words = self.loop_words(node, source)
        if words is None:
            self.run_unknown_loop(node, node.body, source, node.name)
            return
        if node.select:
            self.run_choice(node, words, source)
            return
        frame = Frame("loop", len(self.state.constraints))
        self.frames.append(frame)
        for word in words:
            if not self.state.alive or self.steps > MAX_STEPS:
                break
            self.state.vars[node.name] = Scalar(word.fragments)
            label = f"`{node.name}` is `{word.text}`" if word.text is not None else f"`{node.name}` is not known"
            self.context.append(Choice(word.place, label))
            self.run(node.body, source)
            self.context.pop()
            self.settle(frame, ("continue",))
        self.frames.pop()
        self.settle(frame, ("break", "continue"))

    def run_choice(self, node: ast.For, words: Sequence[Word], source: Source) -> None:
        """`select x in a b`: the user chooses one of the words."""
        if not words:
            return
        labels = [f"`{node.name}` is `{word.text}`" if word.text is not None else "it is not known" for word in words]
        point = self.new_point(source.place(node.start, node.body.start), labels)
        self.state.vars[node.name] = join(point, [Scalar(word.fragments) for word in words])
        frame = Frame("loop", len(self.state.constraints))
        self.frames.append(frame)
        self.run(node.body, source)
        self.frames.pop()
        self.settle(frame, ("break", "continue"))

    def run_counting(self, node: ast.For, header: tuple[ast.WordNode, ...], source: Source) -> None:
        """`for ((i = 0; i < 4; i++))`."""
        first, condition, step = header
        place = source.place(first.start, step.end)
        self.calculate(first, source)
        frame = Frame("loop", len(self.state.constraints))
        self.frames.append(frame)
        for _ in range(MAX_ROUNDS):
            status = True
            if condition.parts:
                status = self.tested(lambda x: arithmetic.truth(x.arithmetic(condition, source)))
            if status is False or not self.state.alive:
                break
            if status is not True or self.steps > MAX_STEPS:
                self.frames.pop()
                self.run_unknown_loop(node, node.body, source, node.name)
                self.settle(frame, ("break", "continue"))
                return
            value = self.state.vars.get(node.name)
            known = value.text if isinstance(value, Scalar) else None
            self.context.append(
                Choice(place, f"`{node.name}` is `{known}`" if known else f"`{node.name}` is not known")
            )
            self.run(node.body, source)
            self.context.pop()
            self.settle(frame, ("continue",))
            self.calculate(step, source)
        else:
            self.forget(node.body, source, node.name, SET_IN_LOOP)
        self.frames.pop()
        self.settle(frame, ("break", "continue"))

    def loop_words(self, node: ast.For, source: Source) -> Sequence[Word] | None:
        """The values of a loop variable, None if they are unknown or too many."""
        if not node.name or node.words is None:
            arguments = self.state.vars.get(ARGUMENTS)
            if not node.name or not isinstance(arguments, Array):
                return None
            words: Sequence[Word] = arguments.words
        else:
            found = self.in_common(lambda x: tuple(x.words(node.words or (), source)))
            if found == ():  # if there is a default, the loop may run
                found = self.decide(lambda x: tuple(x.words(node.words or (), source)), frozenset(), True, False)
            if not isinstance(found, tuple):
                return None
            words = found
        if len(words) > MAX_ROUNDS or any(w.splat for w in words):
            return None
        return words

    def run_while(self, node: ast.While, source: Source) -> None:
        frame = Frame("loop", len(self.state.constraints))
        self.frames.append(frame)
        for _ in range(MAX_ROUNDS):
            before = dict(self.state.vars)
            self.run(node.condition, source)
            status = self.state.vars.get(STATUS)
            if node.until and status is not None:
                status = transform(status, lambda s: None if s is None else not s)
            if status is False or not self.state.alive:
                break
            if status is not True or self.steps > MAX_STEPS:
                self.frames.pop()
                self.run_unknown_loop(node, node.body, source, "")
                self.settle(frame, ("break", "continue"))
                return
            self.run(node.body, source)
            self.settle(frame, ("continue",))
            if not self.state.alive or nothing_new(before, self.state.vars):
                break
            if frame.full:
                self.forget(node.body, source, "", SET_IN_LOOP)
                break
        else:
            self.forget(node.body, source, "", SET_IN_LOOP)
        self.frames.pop()
        self.settle(frame, ("break", "continue"))

    def run_unknown_loop(self, node: ast.For | ast.While, body: ast.Script, source: Source, name: str) -> None:
        """Run the body once, with unknown values. Afterwards either it has not run, or the variables that it sets are unknown."""
        place = source.place(node.start, min(node.start + 5, node.end))
        text = shown(source, node.start, body.start)
        point = self.new_point(place, (f"`{text}` does nothing", f"`{text}` runs"))
        frame = Frame("loop", len(self.state.constraints) + 1)

        def once() -> None:
            self.frames.append(frame)
            self.forget(body, source, name, SET_IN_LOOP)
            kept = self.state.fork()
            self.run(body, source)
            self.frames.pop()
            if self.state.alive:
                self.settle(frame, ("continue",))
                kept.vars.update(self.flags_left(kept))
            kept.constraints = self.state.constraints
            self.state = kept

        self.branch(Fork(point, (0, 1)), [lambda: None, once])

    def flags_left(self, before: State) -> dict[str, Any]:
        """The variables in which a loop collects flags, with their values after its last round."""
        changed = {n: v for n, v in self.state.vars.items() if n in before.vars and v is not before.vars[n]}
        return {name: value for name, value in changed.items() if any(map(_holds_flags, parts(value)))}


EXECUTE: dict[type, Callable[[ControlFlow, Any, Source], None]] = {
    ast.Simple: lambda flow, node, source: flow.run_simple(node, source),
    ast.Pipeline: ControlFlow.run_pipeline,
    ast.AndOr: ControlFlow.run_list,
    ast.Script: ControlFlow.run_script,
    ast.If: ControlFlow.run_if,
    ast.For: ControlFlow.run_for,
    ast.While: ControlFlow.run_while,
    ast.Case: ControlFlow.run_case,
    ast.Function: ControlFlow.run_function,
    ast.Group: ControlFlow.run_group,
    ast.Test: ControlFlow.run_test,
    ast.ArithmeticCommand: ControlFlow.run_arithmetic,
}


def _arm_matches(arm: ast.CaseArm, text: str | None, x: Expander, source: Source) -> bool | None:
    outcome: bool | None = False
    for node in arm.patterns:
        if node.literal == "*":
            return True
        pattern = x.pattern(node, source)
        found = None if text is None or pattern is None else matches(text, pattern)
        if found:
            return True
        if found is None:
            outcome = None
    return outcome


def _all_match(arm: ast.CaseArm, texts: Sequence[str], x: Expander, source: Source) -> bool | None:
    """Whether an arm is taken for every text that the subject may be."""
    found = {_arm_matches(arm, text, x, source) for text in texts}
    return next(iter(found)) if len(found) == 1 else None


def nothing_new(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether a round left all variables unchanged, so that further rounds change nothing either."""
    return all(
        before.get(name) is value or (not isinstance(value, TREES) and before.get(name) == value)
        for name, value in after.items()
        if name != STATUS and not name.startswith(ORIGIN)
    )


def _holds_flags(value: Any) -> bool:
    if isinstance(value, (Later, Grown)):
        return True
    if isinstance(value, Array):
        return any(word.known_start.startswith("--") for word in value.words)
    return isinstance(value, Scalar) and any("--" in (f.text or "") for f in value.fragments)
