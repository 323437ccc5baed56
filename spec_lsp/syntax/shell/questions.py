"""Questions about pieces of a script that can be answered without running it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from spec_lsp.expressions import expression
from spec_lsp.syntax.shell import ast, commands
from spec_lsp.syntax.shell.continuations import hidden_comment
from spec_lsp.syntax.shell.words import SETS_VARIABLE
from spec_lsp.syntax.source import Source

PIP = expression(r"(?:pip3?|uv|pipx)(?:\d(?:\.\d+)?)?\Z")


def name_of(node: ast.Simple, at: int = 0) -> str | None:
    return node.words[at].literal if len(node.words) > at else None


def without_escaped_blank(node: ast.Simple) -> tuple[ast.WordNode, ...]:
    """The words without a blank that is escaped by a backslash at the end of the line: it is reported as a broken continuation."""
    nodes = node.words
    hidden = hidden_comment(node)
    if hidden is not None:
        return tuple(n for n in nodes if n.start < hidden) or nodes
    last = nodes[-1]
    part = last.parts[0] if len(last.parts) == 1 else None
    blank = isinstance(part, ast.Lit) and not part.verbatim and part.text in (" ", "\t") and part.start == last.start
    return nodes[:-1] if blank and len(nodes) > 1 else nodes


def may_start(node: ast.Simple, name: str) -> bool:
    """Whether a command can start SGLang, judged only by its written words."""
    base = name.rpartition("/")[2]
    if base in commands.TEXT_COMMANDS or (PIP.match(base) and base != "uv"):
        return False
    if commands.PYTHON.match(base) or base in commands.PREFIXES or base == "sglang":
        return (
            any(w.literal is None or "sglang" in w.literal or w.literal.startswith("-c") for w in node.words)
            or base in commands.PREFIXES
        )
    return any(w.literal is None or "sglang" in w.literal for w in node.words)


def is_test(node: ast.Command) -> bool:
    """Whether a command is a test: then both outcomes are possible."""
    if isinstance(node, (ast.Test, ast.ArithmeticCommand, ast.Pipeline)):
        return True
    if isinstance(node, ast.Simple):
        name = name_of(node) or ""
        return name in (
            "[",
            "test",
            "grep",
            "command",
            "which",
            "type",
            "pgrep",
            "nvidia-smi",
            "read",
            "hash",
            "lsmod",
            "curl",
            "nc",
        )
    return False


def may_read_script(node: ast.Command) -> bool:
    """Whether a command uses its input in a way that matters here."""
    if not isinstance(node, ast.Simple):
        return isinstance(node, (ast.While, ast.For, ast.Group, ast.If))
    return (name_of(node) or "").rpartition("/")[2] in (
        commands.SHELLS
        | commands.CONTAINERS
        | {
            "ssh",
            "kubectl",
            "oc",
            "cat",
            "tee",
            "sudo",
            "env",
            "xargs",
            "parallel",
            "sbatch",
            "read",
            "mapfile",
            "readarray",
        }
    )


def equality(node: ast.Command) -> tuple[ast.WordNode | None, ast.WordNode | None]:
    """The two sides of a test for equal texts."""
    if (
        isinstance(node, ast.Test)
        and isinstance(node.expression, ast.Compare)
        and node.expression.op in ("=", "==", "-eq")
    ):
        return node.expression.left, node.expression.right
    if isinstance(node, ast.Simple) and name_of(node) in ("[", "test"):
        words = [w for w in node.words[1:] if w.literal != "]"]
        if len(words) == 3 and words[1].literal in ("=", "==", "-eq"):
            return words[0], words[2]
    return None, None


def shown(source: Source, start: int, end: int) -> str:
    """A piece of the script on one line, shortened for people."""
    text = " ".join(source.text[start:end].replace("\\\n", " ").split()).removesuffix(";").strip()
    return text if len(text) <= 48 else text[:45] + "…"


IMPURE = expression(
    r"\$\(|`|\$\{[#!]|\$\{?(?:[?!$-]|RANDOM\b|SECONDS\b|LINENO\b)|(?:^|\s)-[a-mo-yA-Z]\s|(?:^|\s)-o\s|=~"
)
"""What may give a test another outcome each time: files, command output, the status."""
VARIABLE = expression(r"\$\{?([A-Za-z_]\w*|\d|[@#*])")


def asked(node: ast.Command, source: Source) -> tuple[str, bool, frozenset[str]] | None:
    """The question of a test, in one form for all ways to write it; whether it asks for the opposite; the variables that it reads.

    None for anything that is not a test, or whose outcome may differ when it is asked again.
    """
    if not (isinstance(node, ast.Test) or (isinstance(node, ast.Simple) and name_of(node) in ("[", "test"))):
        return None
    text = source.text[node.start : node.end]
    if IMPURE.search(text):
        return None
    names = frozenset("@" if not (name[0].isalpha() or name[0] == "_") else name for name in VARIABLE.findall(text))
    text = re.sub(r"\$\{(\w+)\}", r"$\1", text.replace('"', "").replace("'", "").replace("==", "="))
    text = " ".join(text.split()).removeprefix("test ").strip("[] ")
    turned = False
    if "&&" not in text and "||" not in text:
        while text.startswith("! "):
            text, turned = text[2:], not turned
        if text.startswith("-z "):
            text, turned = "-n" + text[2:], not turned
        elif text.count(" != ") == 1:
            text, turned = text.replace(" != ", " = "), not turned
    return text, turned, names


def arm_label(node: ast.Case, arm: ast.CaseArm, source: Source) -> str:
    subject = shown(source, node.subject.start, node.subject.end)
    patterns = " or ".join(f"`{shown(source, p.start, p.end)}`" for p in arm.patterns[:4])
    return f"`{subject}` is anything else" if patterns == "`*`" else f"`{subject}` is {patterns}"


def is_key(element: ast.Element) -> bool:
    key = element.key
    return key is not None and not (key.literal or "0").isdigit()


def shifts(node: Any) -> bool:
    """Whether a piece of script may change the positional parameters."""
    if isinstance(node, ast.Simple):
        return name_of(node) in ("shift", "set", "getopts")
    if isinstance(node, ast.Script):
        return any(shifts(i) for i in node.items)
    if isinstance(node, ast.AndOr):
        return shifts(node.first) or any(shifts(c) for _, c in node.rest)
    if isinstance(node, ast.If):
        return any(shifts(b) for _, b in node.arms) or shifts(node.otherwise)
    if isinstance(node, ast.Case):
        return any(shifts(a.body) for a in node.arms)
    if isinstance(node, (ast.For, ast.While, ast.Group)):
        return shifts(node.body)
    return False


def arithmetic_names(expression: ast.WordNode) -> Iterator[str]:
    """The variables that an arithmetic expression sets."""
    for part in expression.parts:
        if isinstance(part, ast.Lit):
            for m in SETS_VARIABLE.finditer(part.text):
                yield m.group(1) or m.group(2)


def assigned_names(node: Any, functions: bool = False) -> Iterator[str]:
    """The variables that a piece of script may set; with `functions`, also those that functions in it set when they are called."""
    if isinstance(node, ast.Simple):
        declares = (name_of(node) or "") in ("export", "local", "declare", "typeset", "readonly")
        if not node.words or declares:
            for assign in node.assigns:
                yield assign.name
        if name_of(node) in ("read", "mapfile", "readarray", "getopts", "unset"):
            yield from (w.literal for w in node.words[1:] if w.literal and re.fullmatch(r"[A-Za-z_]\w*", w.literal))
    elif isinstance(node, ast.Script):
        for item in node.items:
            yield from assigned_names(item, functions)
    elif isinstance(node, ast.AndOr):
        yield from assigned_names(node.first, functions)
        for _, command in node.rest:
            yield from assigned_names(command, functions)
    elif isinstance(node, ast.Pipeline):
        for command in node.commands:
            yield from assigned_names(command, functions)
    elif isinstance(node, ast.If):
        for condition, body in node.arms:
            yield from assigned_names(condition, functions)
            yield from assigned_names(body, functions)
        yield from assigned_names(node.otherwise, functions)
    elif isinstance(node, ast.Case):
        for arm in node.arms:
            yield from assigned_names(arm.body, functions)
    elif isinstance(node, ast.For):
        if node.name:
            yield node.name
        for expression in node.header or ():
            yield from arithmetic_names(expression)
        yield from assigned_names(node.body, functions)
    elif isinstance(node, ast.While):
        yield from assigned_names(node.condition, functions)
        yield from assigned_names(node.body, functions)
    elif (isinstance(node, ast.Group) and (functions or not node.subshell)) or (
        isinstance(node, ast.Function) and functions
    ):
        yield from assigned_names(node.body, functions)
    elif isinstance(node, ast.ArithmeticCommand):
        yield from arithmetic_names(node.expression)
