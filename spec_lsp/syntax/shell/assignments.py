"""Assignments: strings, arrays and tables, arithmetic, and the values that a successful test implies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from spec_lsp.expressions import expression
from spec_lsp.syntax.shell import arithmetic, ast, conditions
from spec_lsp.syntax.shell.expand import (
    FROM_COMMAND_LINE,
    Expander,
    bounded,
    bounded_array,
    first_of,
    through,
    written_at,
)
from spec_lsp.syntax.shell.machine import MAX_ASSIGNED_WAYS, Machine
from spec_lsp.syntax.shell.patterns import is_plain
from spec_lsp.syntax.shell.questions import arithmetic_names, assigned_names, equality, is_key, shifts
from spec_lsp.syntax.shell.state import ARGUMENTS, MISSING, ORIGIN, origin_in
from spec_lsp.syntax.shell.values import (
    DEPENDS,
    NOWHERE,
    UNSET,
    Array,
    Grown,
    PathCondition,
    Reference,
    Scalar,
    Table,
    Unset,
    Value,
    first_leaf,
    paths,
    transform,
)
from spec_lsp.syntax.source import Source
from spec_lsp.syntax.word import Fragment, Place, Word, unknown

STEP = expression(r"\s*(?:([A-Za-z_]\w*)\s*(\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))|(\+\+|--)\s*([A-Za-z_]\w*))(.*)", re.S)
"""An arithmetic expression that sets a variable: its name, the operator, what follows."""


class Assignments(Machine):
    """The statements and expansions that set variables."""

    def assign(self, node: ast.Assign, source: Source, local: bool = False) -> None:
        if local:
            self.make_local(node.name)
        name = self.target_of(node.name)
        if name == "IFS" and node.value is not None and node.value.literal is None:
            return
        value = self.remembered(node, source, lambda: self.assigned_value(node, source))
        if value is not NOWHERE:
            self.state.vars[name] = value

    def target_of(self, name: str) -> str:
        """The variable that a name stands for."""
        held = self.state.vars.get(name)
        return held.name if isinstance(held, Reference) else name

    def assigned_value(self, node: ast.Assign, source: Source) -> Any:
        if node.elements is not None:
            return self.array_value(node, source)
        if node.index is not None:
            return self.element_value(node, source)
        if node.append:
            return self.appended_value(node, source)
        written = node.value
        assert written is not None
        if written.literal is not None:
            return Scalar(Expander(self, PathCondition({})).scalar(written, source))

        def build(x: Expander) -> Value:
            x.generous = len(written.parts) > 1
            return Scalar(x.scalar(written, source))

        own = next((i for i, part in enumerate(written.parts) if _is_whole(part, node.name)), None)
        if own is None or not self.is_wide(node.name):
            return self.value_of(build)
        place = written.parts[own]
        front, back = (
            self.text_value(parts, written, source) for parts in (written.parts[:own], written.parts[own + 1 :])
        )
        return self.grown_text(node.name, front, back, source.place(place.start, place.end))

    def is_wide(self, name: str) -> bool:
        """Whether a variable has more possible values than are listed: then what is appended to it is kept separately."""
        return paths(self.lookup(name), MAX_ASSIGNED_WAYS // 2) > MAX_ASSIGNED_WAYS // 2

    def text_value(self, parts: Sequence[ast.Part], word: ast.WordNode, source: Source) -> Any:
        """Parts of a word, expanded into one text."""
        some = ast.WordNode(word.start, word.end, tuple(parts))
        return self.value_of(lambda x: Scalar(x.scalar(some, source))) if parts else Scalar(())

    def grown_text(self, name: str, front: Any, back: Any, here: Place) -> Any:
        """A text with others before and after it; `here` is where it is expanded."""

        def add(front: Any, value: Any, back: Any) -> Value:
            value = first_of(value) if isinstance(value, Array) else value
            own: tuple[Fragment, ...] = ()
            if isinstance(value, Scalar):
                own = through(value.fragments, here)
            elif not isinstance(value, (Unset, Table)):
                own = (Fragment(None, here, False, getattr(value, "reason", DEPENDS)),)
            ends = [
                v.fragments if isinstance(v, Scalar) else (Fragment(None, here, False, DEPENDS),) for v in (front, back)
            ]
            return Scalar(bounded((*ends[0], *own, *ends[1]), here))

        return Grown(front, self.lookup(name), back, add)

    def words_value(self, nodes: Sequence[ast.WordNode], source: Source) -> Any:
        """The words that these written words become."""

        def build(x: Expander) -> Value:
            x.generous = True
            return Array(tuple(x.words(nodes, source)))

        return self.value_of(build) if nodes else Array(())

    def grown_words(
        self, name: str, front: Sequence[ast.WordNode], back: Sequence[ast.WordNode], source: Source, here: Place,
        via: Place | None,
    ) -> Any:  # fmt: skip
        """An array with words before and after it; `via` is where it is expanded, if it is."""

        def add(front: Any, value: Any, back: Any) -> Value:
            many = (unknown(here, DEPENDS, splat=True),)
            if isinstance(value, Table):
                return value
            own = many if value is None else _as_words(value, here)
            if via is not None:
                own = tuple(Word(through(w.fragments, via), w.place, w.splat, w.scalar) for w in own)
            ends = [v.words if isinstance(v, Array) else many for v in (front, back)]
            return bounded_array((*ends[0], *own, *ends[1]), here)

        return Grown(self.words_value(front, source), self.lookup(name), self.words_value(back, source), add)

    def array_value(self, node: ast.Assign, source: Source) -> Any:
        elements = node.elements or ()
        keyed = any(e.key is not None for e in elements)
        if not keyed and self.is_wide(node.name):
            nodes, place = [e.value for e in elements], source.place(node.start, node.end)
            if node.append:
                return self.grown_words(node.name, (), nodes, source, place, None)
            own = next(
                (i for i, one in enumerate(nodes) if len(one.parts) == 1 and _is_all(one.parts[0], node.name)), None
            )
            if own is not None:
                via = source.place(nodes[own].start, nodes[own].end)
                return self.grown_words(node.name, nodes[:own], nodes[own + 1 :], source, place, via)

        def build(x: Expander) -> Value:
            before = present(node.name, x) if node.append else UNSET
            if isinstance(before, Table) or (keyed and any(is_key(e) for e in elements)):
                return table(before, elements, x, source)
            x.generous = True
            words = x.words([e.value for e in elements], source)
            place = source.place(node.start, node.end)
            if before is None:
                return Array((unknown(place, DEPENDS, splat=True), *words))
            return bounded_array((*_as_words(before, place), *words), place)

        return self.value_of(build)

    def element_value(self, node: ast.Assign, source: Source) -> Any:
        place = source.place(node.start, node.end)

        def build(x: Expander) -> Value:
            assert node.index is not None
            before = present(node.name, x)
            key = x.text(node.index, source)
            value = Scalar(x.scalar(node.value, source)) if node.value is not None else Scalar(())
            if isinstance(before, Array):
                if (
                    key is not None
                    and key.isdigit()
                    and not any(w.splat for w in before.words)
                    and int(key) <= len(before.words)
                ):
                    at = int(key)
                    new = Word(value.fragments, written_at(value.fragments, place) if value.fragments else place)
                    return Array((*before.words[:at], new, *before.words[at + 1 :]))
                return Array((unknown(place, DEPENDS, splat=True),))
            if key is None or not isinstance(before, (Table, Unset)):
                return Table({}) if isinstance(before, (Table, Unset)) else before or UNSET
            return Table({**(before.items if isinstance(before, Table) else {}), key: value})

        return self.value_of(build)

    def appended_value(self, node: ast.Assign, source: Source) -> Any:
        if (
            node.value is not None
            and self.is_wide(node.name)
            and not isinstance(first_leaf(self.lookup(node.name), self), Array)
        ):
            place = source.place(node.start, node.end)
            return self.grown_text(node.name, Scalar(()), self.text_value(node.value.parts, node.value, source), place)

        def build(x: Expander) -> Value:
            assert node.value is not None
            before = present(node.name, x)
            x.generous = len(node.value.parts) > 1
            more = x.scalar(node.value, source)
            if isinstance(before, Array):
                if not before.words:
                    return Array((Word(more, source.place(node.value.start, node.value.end)),))
                first = before.words[0]
                return Array((Word((*first.fragments, *more), first.place, first.splat), *before.words[1:]))
            if isinstance(before, Scalar):
                return Scalar(bounded((*before.fragments, *more), source.place(node.start, node.end)))
            if before is None:
                return Scalar((Fragment(None, source.place(node.start, node.end), False, DEPENDS), *more))
            return Scalar(more)

        return self.value_of(build)

    def make_local(self, name: str) -> None:
        for frame in reversed(self.frames):
            if frame.kind == "function":
                frame.saved.setdefault(name, self.state.vars.get(name, MISSING))
                return

    def assign_defaults(self, node: ast.Simple, source: Source) -> None:
        """`${X:=4}` sets X."""
        for word in (*node.words, *(a.value for a in node.assigns if a.value is not None)):
            for part in word.parts:
                if isinstance(part, ast.Arithmetic):
                    for name in arithmetic_names(part.expression):
                        self.assign_unknown(name, source.place(part.start, part.end), "arithmetic")
                if isinstance(part, ast.Param) and part.op in (":=", "=") and part.index is None:
                    holder = ast.WordNode(part.start, part.end, (part,))
                    value = self.value_of(lambda x, h=holder: Scalar(x.scalar(h, source)))  # type: ignore[misc]
                    if value is not NOWHERE:
                        self.state.vars[part.name] = value

    # Arithmetic.

    def calculate(self, expression: ast.WordNode, source: Source) -> None:
        """`(( … ))`: sets what the expression sets; the status says whether its value is other than 0."""
        for one in arithmetic_parts(expression):
            first = one.parts[0] if one.parts else None
            m = STEP.match(first.text) if isinstance(first, ast.Lit) else None
            if m:
                self.step(m.group(1) or m.group(4), one, source)
                continue
            self.set_status(self.tested(lambda x, e=one: arithmetic.truth(x.arithmetic(e, source))))  # type: ignore[misc]
            for name in arithmetic_names(one):
                self.assign_unknown(name, source.place(one.start, one.end), "arithmetic")

    def step(self, name: str, expression: ast.WordNode, source: Source) -> None:
        """`i = 3`, `i += 2`, `i++`."""
        here = source.place(expression.start, expression.end)

        def build(x: Expander) -> Value:
            m = STEP.fullmatch(x.text(expression, source) or "")
            if m is None:
                return Scalar((Fragment(None, here, False, "arithmetic"),))
            op, rest = m.group(2) or m.group(3), m.group(5) or ""
            written = f"{name} {op[0]} 1" if op in ("++", "--") else rest if op == "=" else f"{name} {op[:-1]} ({rest})"
            value = arithmetic.evaluate(written, x.number_text)
            return Scalar((Fragment(None if value is None else str(value), here, False, fixed=True),))

        value = self.value_of(build)
        if value is not NOWHERE:
            self.state.vars[name] = value
        self.set_status(None)

    # Unknown values, and what a chosen way implies.

    def forget(self, body: ast.Script, source: Source, name: str, reason: str) -> None:
        place = source.place(body.start, body.end)
        names = set(assigned_names(body))
        if name:
            names.add(name)
        if shifts(body):
            self.state.vars[ARGUMENTS] = Array((unknown(place, FROM_COMMAND_LINE, splat=True),))
            for digit in "123456789":
                self.state.vars.pop(digit, None)
        for assigned in names:
            self.assign_unknown(assigned, place, reason)

    def assign_unknown(self, name: str, place: Place, reason: str) -> None:
        present = first_leaf(self.state.vars.get(name), self)
        if isinstance(present, Array):
            self.state.vars[name] = Array((unknown(place, reason, splat=True),))
        else:
            self.state.vars[name] = Scalar((Fragment(None, place, False, reason),))

    def assume(self, condition: ast.Command, source: Source) -> None:
        """In the arm where `$X = text` holds, X is that text."""
        left, right = equality(condition)
        name = conditions.compared_variable(left, right) if right is not None else None
        if name is None or right is None or left is None or not is_plain(right.literal or ""):
            return
        fragments = tuple(
            Fragment(f.text, f.place, f.verbatim, f.reason, f.via, True)
            for f in Expander(self, PathCondition({})).literal_word(right, source).fragments
        )
        self.refine(name, Scalar(fragments))

    def refine(self, name: str, value: Scalar) -> None:
        """Give an unknown variable the value that the way taken implies."""
        if not re.fullmatch(r"[A-Za-z_]\w*|[1-9]", name):
            return
        present, origin = self.lookup(name), origin_in(self.state, name)

        def known(leaf: Any) -> Any:
            return value if isinstance(leaf, Scalar) and leaf.text is None else leaf

        refined = value if present is None else transform(present, known)
        self.state.vars[name] = refined
        self.state.vars[ORIGIN + name] = (refined, origin)


def present(name: str, x: Expander) -> Any:
    """A variable's value before it is assigned to; None if unknown."""
    tree = x.variables.lookup(name)
    return UNSET if tree is None else x.world.follow(tree)


def table(before: Any, elements: Sequence[ast.Element], x: Expander, source: Source) -> Value:
    items = dict(before.items) if isinstance(before, Table) else {}
    for element in elements:
        key = x.text(element.key, source) if element.key is not None else None
        if key is not None:
            items[key] = Scalar(x.scalar(element.value, source))
    return Table(items)


def _is_whole(part: ast.Part, name: str) -> bool:
    """`$X`, `${X}`, `${X:-}`: the whole variable."""
    return (
        isinstance(part, ast.Param)
        and part.name == name
        and part.index is None
        and not (part.length or part.indirect)
        and (not part.op or (part.op in (":-", "-") and (part.arg is None or not part.arg.parts)))
    )


def _is_all(part: ast.Part, name: str) -> bool:
    """`"${A[@]}"`: all words of an array."""
    return (
        isinstance(part, ast.Param)
        and part.name == name
        and part.index == "@"
        and part.quoted
        and not (part.op or part.length or part.indirect)
    )


def _as_words(value: Any, place: Place) -> tuple[Word, ...]:
    if isinstance(value, Array):
        return value.words
    if isinstance(value, Scalar):
        return (Word(value.fragments, written_at(value.fragments, place) if value.fragments else place),)
    return ()


def arithmetic_parts(expression: ast.WordNode) -> list[ast.WordNode]:
    """The expressions between the commas of a list; one with parentheses or expansions is kept whole."""
    text = expression.literal
    if text is None or "," not in text or "(" in text or len(expression.parts) != 1:
        return [expression]
    found = []
    start = expression.parts[0].start
    for piece in text.split(","):
        end = start + len(piece)
        found.append(ast.WordNode(start, end, (ast.Lit(start, end, piece, True),), piece, True))
        start = end + 1
    return found
