"""A first look at a whole Python file, before anything is read: whether it can start something, and which functions are relevant to
commands."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from spec_lsp.records import dataclass, field
from spec_lsp.syntax.python.sinks import ENGINE_NAMES, HELPERS, PARSERS, RUNS
from spec_lsp.syntax.python.values import SIGN

SHORT = 6
"""The most statements of a function that is read for its return value alone."""
OF_SGLANG = ENGINE_NAMES | {*HELPERS, *PARSERS}
"""Names of SGLang's own classes and functions that start or set up a server."""
SAYS = OF_SGLANG | {
    "add_argument", "parse_args", "parse_known_args", "Popen", "check_call", "create_subprocess_exec", "create_subprocess_shell",
}  # fmt: skip
"""Words in the names of functions that build or run commands."""
TALKS = frozenset((
    "print", "log", "debug", "info", "warn", "warning", "error", "exception", "critical", "echo", "secho",
))  # fmt: skip
"""Functions without a result that only show their arguments."""
EXITS = frozenset(("SystemExit", "Exit"))
"""Exceptions that end a program, of Python and of Typer."""
SHOWS = (ast.Constant, ast.JoinedStr, ast.BinOp)
"""Expressions that count as shown, not called, if they are arguments of such a function."""
HOLDS = (ast.JoinedStr, ast.BinOp, ast.List, ast.Tuple, ast.Set)
"""Expressions whose parts are only shown or compared if they are themselves."""
MARKS = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop)
READ, SHOWN, RAISED = range(3)
"""How a piece of code is used: for its value; to be shown or compared; to be raised, with everything in it."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True, eq=False)
class About:
    """A function: the last names of what it calls or passes on as an argument, and whether it is relevant to flags or commands."""

    name: str
    short: bool
    called: set[str] = field(default_factory=set)
    flags: bool = False


@dataclass(slots=True)
class Survey:
    """The results of one look at a file. `called` are the last names of what is called anywhere, or passed on as an argument."""

    functions: dict[ast.AST, About] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    sinks: list[ast.expr] = field(default_factory=list)
    """Whether anything is called by a name of SGLang's own functions, or by a name that one was imported as."""
    signs: bool = False
    """Whether a text may be part of a command that starts SGLang, and is not only shown, raised or compared."""

    def called_by(self, functions: Iterable[ast.AST]) -> set[str]:
        return {name for one in functions if one in self.functions for name in self.functions[one].called}

    def speaking(self) -> tuple[set[str], set[str]]:
        """The functions that are relevant to commands or flags, or call such functions; and short ones, which may return a value for
        one."""
        found: set[str] = set()
        short: set[str] = set()
        calls: dict[str, set[str]] = {}
        for one in self.functions.values():
            calls.setdefault(one.name, set()).update(one.called)
            if one.flags:
                found.add(one.name)
            elif one.short:
                short.add(one.name)
        found |= {name for name, called in calls.items() if any(map(RUNS.search, called))}
        while more := {name for name, called in calls.items() if name not in found and called & found}:
            found |= more
        return found, short


Met = tuple[ast.AST, int, tuple[About, ...]]
"""A piece of code to look at: how it is used, and the functions around it."""


def survey(body: Iterable[ast.stmt]) -> Survey:
    """Look at every piece of a file once. Reads nothing and never raises."""
    found = Survey()
    imported: set[str] = set()
    called: list[ast.expr] = []
    showing: set[str] = set()
    waiting: list[Met] = [(one, READ, ()) for one in body]
    while waiting:
        node, how, within = waiting.pop()
        inner = how if how == RAISED or isinstance(node, HOLDS) else READ
        if isinstance(node, ast.Constant):
            _note_text(found, node, how, within)
        elif isinstance(node, ast.Name):
            _note_name(node.id, within)
        elif isinstance(node, ast.Call):
            _note_call(found, node, within)
            shown = inner
            if how != RAISED:
                called.append(node.func)
                if _last(node.func) in TALKS:
                    shown = SHOWN
                    showing.add(_last(node.func))
            waiting += [(a, shown if isinstance(a, SHOWS) else inner, within) for a in node.args]
            waiting += [(one, inner, within) for one in (node.func, *(k.value for k in node.keywords))]
        else:
            if isinstance(node, ast.Attribute):
                _note_name(node.attr, within)
            elif isinstance(node, Function):
                about = found.functions[node] = About(node.name, node.name == "__init__" or len(node.body) <= SHORT)
                within = (*within, about)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                imported.update(a.asname for a in node.names if a.asname and a.name.rpartition(".")[2] in OF_SGLANG)
            elif isinstance(node, ast.Raise):
                inner = RAISED if exit_status(node) is None else READ
            elif isinstance(node, ast.Compare) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                inner = max(how, SHOWN)
            waiting += [(one, inner, within) for one in _parts(node)]
    found.sinks = [func for func in called if _last(func) in OF_SGLANG or _last(func) in imported]
    found.signs = found.signs or any(about.name in showing for about in found.functions.values())
    return found


def exit_status(node: ast.Raise) -> ast.Call | ast.Attribute | None:
    """The exit status of a program that ends as by `sys.exit`, if it is a call: `main()` of `raise SystemExit(main())`."""
    made = node.exc
    if not isinstance(made, ast.Call) or _last(made.func) not in EXITS:
        return None
    status = next(iter((*made.args, *(k.value for k in made.keywords))), None)
    return status if isinstance(status, ast.Call | ast.Attribute) else None


def _note_text(found: Survey, node: ast.Constant, how: int, within: tuple[About, ...]) -> None:
    if isinstance(node.value, str):
        sign = SIGN.search(node.value) is not None
        found.signs = found.signs or (sign and how == READ)
        if sign or node.value.startswith("-"):
            _flag(within)


def _note_name(name: str, within: tuple[About, ...]) -> None:
    if name in SAYS:
        _flag(within)


def _note_call(found: Survey, node: ast.Call, within: tuple[About, ...]) -> None:
    parts = (node.func, *node.args, *(k.value for k in node.keywords))
    names = {name for part in parts if (name := _last(part))}
    found.called |= names
    for about in within:
        about.called |= names


def _flag(within: tuple[About, ...]) -> None:
    for about in within:
        about.flags = True


def _last(node: ast.expr) -> str:
    """The last name of a chain of attributes, empty for anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a piece of code, without the `ast` nodes that only say how a name or an operator is used."""
    for name in node._fields:
        part = getattr(node, name, None)
        if isinstance(part, list):
            yield from (one for one in part if isinstance(one, ast.AST))
        elif isinstance(part, ast.AST) and not isinstance(part, MARKS):
            yield part


def every_statement(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements, including nested ones."""
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
