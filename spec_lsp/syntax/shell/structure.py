"""Turns the tree that tree-sitter-bash makes of a skeleton (`skeleton.py`) into our nodes: lists, pipelines, compound commands,
conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Point

from spec_lsp.records import replace
from spec_lsp.syntax.shell import ast
from spec_lsp.syntax.shell.scanner import ShellSyntaxError

LANGUAGE = Language(tree_sitter_bash.language())
MAX_REPORTS = 100
CHARACTERS = 4
"""tree-sitter may report progress this many times, and once more for each CHARACTERS characters. The longest pipelines take a third of
that."""


def parse(skeleton: bytes) -> Node:
    """The tree of a skeleton. Raises ShellSyntaxError if it has an error or takes too long.

    tree-sitter only reports progress when it reads its input through a function, not when it parses bytes.
    """
    left = MAX_REPORTS + len(skeleton) // CHARACTERS

    def read(at: int, _: Point) -> bytes:
        return skeleton[at : at + 4096]

    def stops(_: int, error: bool) -> bool:
        nonlocal left
        left -= 1
        return error or left < 0

    try:
        root = Parser(LANGUAGE).parse(read, progress_callback=stops).root_node
    except ValueError:
        raise ShellSyntaxError from None
    if root.has_error:
        raise ShellSyntaxError
    return root


class Structure:
    """Reads the tree of a skeleton, whose words stand for characters [start, end) of the text."""

    def __init__(self, text: str, tolerant: bool, marks: ast.Marks, words: Sequence[tuple[bytes, int, int]]) -> None:
        self.text = text
        self.tolerant = tolerant
        self.marks = marks
        self.skeleton = b" ".join([word for word, _, _ in words])
        self.starts: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        """The characters at which words end, by their ends in the skeleton."""
        at = 0
        for word, start, end in words:
            self.starts[at] = start
            at += len(word) + 1
            self.ends[at - 1] = end

    def script(self, start: int, end: int) -> ast.Script:
        """The commands up to `end`; if the grammar fails and `tolerant`, one after the other."""
        try:
            return ast.Script(start, end, self.commands(parse(self.skeleton).children) if self.skeleton else ())
        except ShellSyntaxError:
            if not self.tolerant:
                raise
        found: list[ast.Command] = []
        for at, node in sorted(self.marks.built.items()):
            known = isinstance(node, (ast.Simple, ast.ArithmeticCommand))
            if known and (found[-1].end if found else start) <= at < end:
                found.append(node)
        return ast.Script(start, end, tuple(found))

    def start(self, node: Node) -> int:
        return self.starts[node.start_byte]

    def end(self, node: Node) -> int:
        return self.ends[node.end_byte]

    # Lists.

    def part(self, nodes: Sequence[Node], before: Node) -> ast.Script:
        """The commands before a word of a compound command."""
        items, end = self.commands(nodes), self.start(before)
        return ast.Script(items[0].start if items else end, end, items)

    def commands(self, nodes: Sequence[Node]) -> tuple[ast.Command, ...]:
        items: list[ast.Command] = []
        for node in nodes:
            kind = node.type
            if kind == "&" and items:
                last = items[-1]
                last = last if isinstance(last, ast.AndOr) else ast.AndOr(last.start, last.end, last, ())
                items[-1] = replace(last, end=self.end(node), background=True)
            elif kind not in (";", "\n", "&") and (command := self.and_or(node)) is not None:
                items.append(command)
        return tuple(items)

    def and_or(self, node: Node) -> ast.Command | None:
        """None for a part that only ends an open line. The grammar may read `a | b | c && d` as `a | { b | c && d; }`."""
        if node.type not in ("list", "pipeline"):
            return self.pipeline([node])
        parts: list[tuple[str, list[Node]]] = [("", [])]
        nodes = [node]
        while nodes:
            node = nodes.pop()
            kind = node.type
            if kind in ("list", "pipeline"):
                nodes += reversed(node.children)
            elif kind in ("&&", "||"):
                parts.append((kind, []))
            elif kind not in ("|", "|&"):
                parts[-1][1].append(node)
        commands = [(op, command) for op, nodes in parts if (command := self.pipeline(nodes)) is not None]
        if len(commands) < 2:
            return commands[0][1] if commands else None
        first = commands[0][1]
        return ast.AndOr(first.start, commands[-1][1].end, first, tuple(commands[1:]))

    def pipeline(self, nodes: Sequence[Node]) -> ast.Command | None:
        negated = self.marks.negated.get(self.start(nodes[0]))
        commands = [command for node in nodes if (command := self.command(node)) is not None]
        if not commands or (len(commands) == 1 and negated is None):
            return commands[0] if commands else None
        start = commands[0].start if negated is None else negated
        return ast.Pipeline(start, commands[-1].end, tuple(commands), negated is not None)

    # Commands.

    def command(self, node: Node) -> ast.Command | None:
        start, end = self.start(node), self.end(node)
        read = READERS.get(node.type)
        if read is None:
            raise ShellSyntaxError
        command = read(self, node, start, end)
        return command if command is None else self.lifted(start, command)

    def lifted(self, start: int, body: ast.Command) -> ast.Command:
        """The function or loop whose body begins there, or the command itself."""
        for outer in reversed(self.marks.lifted.get(start, ())):
            if isinstance(outer, ast.Function):
                outer.body = body
            else:
                assert isinstance(body, ast.Group)
                outer.body, outer.redirects = body.body, body.redirects
            outer.end = body.end
            body = outer
        return body

    def redirects(self, end: int) -> tuple[ast.Redirect, ...]:
        return tuple(self.marks.redirects.get(end, ()))

    def simple(self, node: Node, start: int, end: int) -> ast.Command | None:
        command: ast.Simple | ast.ArithmeticCommand | None = self.marks.built.get(start)
        if isinstance(command, ast.ArithmeticCommand):
            command.redirects = self.redirects(end)
        return command

    def group(self, node: Node, start: int, end: int) -> ast.Command:
        return ast.Group(start, end, self.inside(node), node.type == "subshell", self.redirects(end))

    def inside(self, node: Node) -> ast.Script:
        """The nodes between the first word and the last."""
        _, *nodes, last = node.children
        return self.part(nodes, last)

    def if_command(self, node: Node, start: int, end: int) -> ast.Command:
        *children, last = node.children
        clauses = [child for child in children if child.type in ("elif_clause", "else_clause")]
        arms = [self.arm(children[: len(children) - len(clauses)], [*clauses, last][0])]
        otherwise = None
        for clause, behind in pairwise([*clauses, last]):
            if clause.type == "elif_clause":
                arms.append(self.arm(clause.children, behind))
            else:
                otherwise = self.part(clause.children[1:], behind)
        return ast.If(start, end, tuple(arms), otherwise, self.redirects(end))

    def arm(self, children: Sequence[Node], behind: Node) -> tuple[ast.Script, ast.Script]:
        """The condition and the body of an `if` or `elif`; `behind` is the node after the body (`elif`, `else` or `fi`)."""
        then = next(i for i, child in enumerate(children) if child.type == "then")
        return self.part(children[1:then], children[then]), self.part(children[then + 1 :], behind)

    def for_command(self, node: Node, start: int, end: int) -> ast.Command:
        loop: ast.For = self.marks.built[start]
        loop.end, loop.body, loop.redirects = end, self.inside(node.children[-1]), self.redirects(end)
        return loop

    def while_command(self, node: Node, start: int, end: int) -> ast.Command:
        word, *condition, body = node.children
        until = word.type == "until"
        return ast.While(start, end, self.part(condition, body), self.inside(body), until, self.redirects(end))

    def case_command(self, node: Node, start: int, end: int) -> ast.Command:
        case: ast.Case = self.marks.built[start]
        _, _, _, *items, last = node.children
        arms = [self.case_arm(item, behind) for item, behind in pairwise([*items, last])]
        case.end, case.arms, case.redirects = end, tuple(arms), self.redirects(end)
        return case

    def case_arm(self, node: Node, behind: Node) -> ast.CaseArm:
        arm: ast.CaseArm = self.marks.built[self.start(node)]
        _, _, *body = node.children
        if body and body[-1].type == ";;":
            behind = body.pop()
            arm.falls_through = self.text.startswith((";&", ";;&"), self.start(behind))
        arm.body = self.part(body, behind)
        return arm

    def test(self, node: Node, start: int, end: int) -> ast.Command | None:
        expression = self.expression(node.children[1])
        return ast.Test(start, end, expression, self.redirects(end)) if expression else None

    def expression(self, node: Node) -> ast.Expression | None:
        """None for a part that only ends an open line."""
        kind, children = node.type, node.children
        if kind == "binary_expression":
            left, right = self.expression(children[0]), self.expression(children[2])
            return ast.Both(left, right, children[1].type == "||") if left and right else left
        if kind == "parenthesized_expression":
            return self.expression(children[1])
        if kind == "unary_expression":
            inner = self.expression(children[1])
            return ast.Not(inner) if inner else None
        comparison: ast.Compare | None = self.marks.built.get(self.start(node))
        return comparison


READERS: dict[str, Callable[[Structure, Node, int, int], ast.Command | None]] = {
    "command": Structure.simple,
    "compound_statement": Structure.group,
    "subshell": Structure.group,
    "if_statement": Structure.if_command,
    "for_statement": Structure.for_command,
    "while_statement": Structure.while_command,
    "case_statement": Structure.case_command,
    "test_command": Structure.test,
}
