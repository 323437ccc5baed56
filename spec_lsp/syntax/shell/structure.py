"""What tree-sitter-bash says of a skeleton (`skeleton.py`), as our nodes: lists, pipelines, compound commands, conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Point

from spec_lsp.syntax.shell.ast import (
    AndOr,
    ArithmeticCommand,
    Both,
    Case,
    CaseArm,
    Command,
    Compare,
    Expression,
    For,
    Group,
    If,
    Not,
    Pipeline,
    Redirect,
    Script,
    Test,
    While,
)
from spec_lsp.syntax.shell.scanner import ShellSyntaxError

if TYPE_CHECKING:
    from spec_lsp.syntax.shell.skeleton import SkeletonReader

LANGUAGE = Language(tree_sitter_bash.language())
MAX_CALLS = 100
"""How often tree-sitter may report progress on a text, beside once for every `CHARACTERS` of them. The worst linear one takes 12."""
CHARACTERS = 4


def kinds(*names: str) -> frozenset[int]:
    return frozenset(i for i in range(LANGUAGE.node_kind_count) if LANGUAGE.node_kind_for_id(i) in names)


NESTED = kinds("list", "pipeline")
OPERATORS = {kind: operator for operator in ("&&", "||") for kind in kinds(operator)}
SEPARATOR, BACKGROUND, PIPE = kinds(";", "\n"), kinds("&"), kinds("|", "|&")
THEN, ELIF, ELSE, DO_GROUP, ARM, FALLS = (
    kinds("then"), kinds("elif_clause"), kinds("else_clause"), kinds("do_group"), kinds("case_item"), kinds(";;"),
)  # fmt: skip
OR, UNARY, BINARY, PARENTHESIZED, UNTIL = (
    kinds("||"), kinds("unary_expression"), kinds("binary_expression"), kinds("parenthesized_expression"), kinds("until"),
)  # fmt: skip


def parse(skeleton: bytes) -> Node:
    """The tree of a skeleton. Raises ShellSyntaxError where it has an error or takes too long.

    tree-sitter calls back while it parses what it reads by a function, not while it parses bytes.
    """
    left = MAX_CALLS + len(skeleton) // CHARACTERS

    def read(at: int, _: Point) -> bytes:
        return skeleton[at : at + 4096]

    def too_long(_: int, error: bool) -> bool:
        nonlocal left
        left -= 1
        return left < 0 or error

    try:
        root = Parser(LANGUAGE).parse(read, progress_callback=too_long).root_node
    except ValueError:  # cancelled
        raise ShellSyntaxError from None
    if root.has_error:
        raise ShellSyntaxError
    return root


class Structure:
    """Reads the tree of a skeleton whose first byte is character `offset` of the text."""

    def __init__(self, reader: SkeletonReader, offset: int) -> None:
        self.reader = reader
        self.offset = offset
        self.limit = reader.pos

    def script(self, skeleton: bytes, start: int, end: int) -> Script:
        """The commands of [start, end); one after the other where the grammar knows nothing better and the reader is tolerant."""
        try:
            return Script(start, end, self.commands(parse(skeleton).children))
        except ShellSyntaxError:
            if not self.reader.tolerant:
                raise
        found: list[Command] = []
        for at, leaf in sorted(self.reader.leaves.items()):
            if (found[-1].end if found else start) <= at < end and not isinstance(leaf, Compare):
                found.append(leaf)
        return Script(start, end, tuple(found))

    def start(self, node: Node) -> int:
        return node.start_byte + self.offset

    def end(self, node: Node) -> int:
        return min(node.end_byte + self.offset, self.limit)

    # Lists.

    def part(self, nodes: Sequence[Node], before: Node) -> Script:
        """The commands that stand before a word of a compound command."""
        items, end = self.commands(nodes), min(self.start(before), self.limit)
        return Script(items[0].start if items else end, end, items)

    def commands(self, nodes: Sequence[Node]) -> tuple[Command, ...]:
        items: list[Command] = []
        for node in nodes:
            kind = node.kind_id
            if kind in SEPARATOR:
                continue
            if kind in BACKGROUND:
                if items:
                    items[-1] = _in_background(items[-1], self.end(node))
            elif (command := self.and_or(node)) is not None:
                items.append(command)
        return tuple(items)

    def and_or(self, node: Node) -> Command | None:
        """None for what only ends an open line. The grammar may take `a | b | c && d` for `a | { b | c && d; }`."""
        parts: list[tuple[str, list[Node]]] = [("", [])]
        nodes = [node]
        while nodes:
            node = nodes.pop()
            kind = node.kind_id
            if kind in NESTED:
                nodes += reversed(node.children)
            elif kind in OPERATORS:
                parts.append((OPERATORS[kind], []))
            elif kind not in PIPE:
                parts[-1][1].append(node)
        commands = [(op, command) for op, nodes in parts if (command := self.pipeline(nodes)) is not None]
        if len(commands) < 2:
            return commands[0][1] if commands else None
        first = commands[0][1]
        return AndOr(first.start, commands[-1][1].end, first, tuple(commands[1:]))

    def pipeline(self, nodes: Sequence[Node]) -> Command | None:
        head = self.reader.heads.get(self.start(nodes[0]))
        commands = [command for node in nodes if (command := self.command(node)) is not None]
        negated = head is not None and head.negated
        if not commands or (len(commands) == 1 and not negated):
            return commands[0] if commands else None
        return Pipeline(head.start if head else commands[0].start, commands[-1].end, tuple(commands), negated)

    # Commands.

    def command(self, node: Node) -> Command | None:
        start, end = self.start(node), self.end(node)
        read = READERS.get(node.kind_id)
        if read is None:
            raise ShellSyntaxError
        command = read(self, node, start, end)
        head = self.reader.heads.get(start)
        if head is not None and command is not None:
            for wrap in reversed(head.wraps):
                command = wrap(command)
        return command

    def redirects(self, end: int) -> tuple[Redirect, ...]:
        return tuple(self.reader.redirects.get(end, ()))

    def simple(self, node: Node, start: int, end: int) -> Command | None:
        leaf = self.reader.leaves.get(start)
        if isinstance(leaf, ArithmeticCommand):
            leaf.redirects = self.redirects(end)
        assert not isinstance(leaf, Compare)
        return leaf

    def group(self, node: Node, start: int, end: int) -> Command:
        start = self.reader.text.index("{", start)
        return Group(start, end, self.part(node.children[1:-1], node.children[-1]), False, self.redirects(end))

    def subshell(self, node: Node, start: int, end: int) -> Command:
        start = self.reader.text.index("(", max(start, 0))  # it may stand aside
        return Group(start, end, self.part(node.children[1:-1], node.children[-1]), True, self.redirects(end))

    def if_command(self, node: Node, start: int, end: int) -> Command:
        arms: list[tuple[Script, Script]] = []
        otherwise = None
        children = node.children
        parts = [i for i, child in enumerate(children) if child.kind_id in ELIF or child.kind_id in ELSE]
        arms.append(self.arm(children[: parts[0] if parts else -1], children[parts[0] if parts else -1]))
        for i in parts:
            clause, behind = children[i], children[i + 1]
            if clause.kind_id in ELIF:
                arms.append(self.arm(clause.children, behind))
            else:
                otherwise = self.part(clause.children[1:], behind)
        return If(start, end, tuple(arms), otherwise, self.redirects(end))

    def arm(self, children: Sequence[Node], behind: Node) -> tuple[Script, Script]:
        """`if …; then …`, before `behind`."""
        then = next(i for i, child in enumerate(children) if child.kind_id in THEN)
        return self.part(children[1:then], children[then]), self.part(children[then + 1 :], behind)

    def body(self, do_group: Node) -> Script:
        return self.part(do_group.children[1:-1], do_group.children[-1])

    def for_command(self, node: Node, start: int, end: int) -> Command:
        name, words, header, select = self.reader.loops[start]
        return For(start, end, name, words, self.body(node.children[-1]), self.redirects(end), header, select)

    def while_command(self, node: Node, start: int, end: int) -> Command:
        word, *condition, body = node.children
        until = word.kind_id in UNTIL
        return While(start, end, self.part(condition, body), self.body(body), until, self.redirects(end))

    def case_command(self, node: Node, start: int, end: int) -> Command:
        children = node.children
        arms = [self.case_arm(a, behind) for a, behind in pairwise(children) if a.kind_id in ARM]
        return Case(start, end, self.reader.subjects[start], tuple(arms), self.redirects(end))

    def case_arm(self, node: Node, behind: Node) -> CaseArm:
        _, _, *body = node.children
        last = body.pop() if body and body[-1].kind_id in FALLS else None
        falls_through = last is not None and self.start(last) in self.reader.falls_through
        return CaseArm(self.reader.patterns[self.start(node)], self.part(body, last or behind), falls_through)

    def test(self, node: Node, start: int, end: int) -> Command | None:
        expression = self.expression(node.children[1])
        return Test(start, end, expression, self.redirects(end)) if expression else None

    def expression(self, node: Node) -> Expression | None:
        """None for what only ends an open line."""
        kind, children = node.kind_id, node.children
        if kind in BINARY:
            left, right = self.expression(children[0]), self.expression(children[2])
            return Both(left, right, children[1].kind_id in OR) if left and right else left
        if kind in PARENTHESIZED:
            return self.expression(children[1])
        if kind in UNARY:
            inner = self.expression(children[1])
            return Not(inner) if inner else None
        leaf = self.reader.leaves.get(self.start(node))
        assert leaf is None or isinstance(leaf, Compare)
        return leaf


def _in_background(command: Command, end: int) -> Command:
    if isinstance(command, AndOr):
        return AndOr(command.start, end, command.first, command.rest, True)
    return AndOr(command.start, end, command, (), True)


Reader = Callable[[Structure, Node, int, int], "Command | None"]
_BY_NAME: dict[str, Reader] = {
    "command": Structure.simple,
    "compound_statement": Structure.group,
    "subshell": Structure.subshell,
    "if_statement": Structure.if_command,
    "for_statement": Structure.for_command,
    "while_statement": Structure.while_command,
    "case_statement": Structure.case_command,
    "test_command": Structure.test,
}
READERS = {kind: read for name, read in _BY_NAME.items() for kind in kinds(name)}
