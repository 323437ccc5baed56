"""Reads values out of Python sources without importing them: just enough of the language for tables of flags.

Constants, containers, comprehensions, enum members, class attributes, small functions, and names imported from other files of the same
tree. Anything that cannot be determined (such as a call into a foreign package) raises `CannotTell`.
"""

from __future__ import annotations

import ast
import functools
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from spec_lsp.expressions import expression
from spec_lsp.files import MAX_SOURCE, MIB, Area, UnreadableError
from spec_lsp.interruption import checkpoint
from spec_lsp.records import dataclass, field

PACKAGE = "sglang"
"""The package's import name, whatever its folder is called."""
MAX_DEPTH = 60
MAX_STEPS = 150_000
"""The most expressions, loop rounds and statements evaluated for one tree; SGLang's own needs some 3,000."""
MAX_PARSED = 4 * MIB
"""The most characters of all modules of one tree that are parsed and kept; the flags of SGLang need no more than 1 MiB."""
MAX_SIZE = 100_000
"""The largest value, in items or characters."""
MAX_BITS = 4_096
"""The largest whole number, in bits."""
FAILS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError, OSError,
)  # fmt: skip
"""The exceptions that reading and evaluating arbitrary source may raise: then nothing is known."""
_PYTHON = ".".join(map(str, sys.version_info[:2]))
WIDTHS = expression(r"\d{4}|\*|\{[^{}]*\{")
"""What makes a formatted text very long."""


class CannotTell(Exception):  # noqa: N818 - an answer, not a failure
    """The value of an expression is not in the sources."""


@dataclass(frozen=True)
class Foreign:
    """A name that is defined outside the tree (`argparse.SUPPRESS`, `json.loads`), by its dotted path."""

    path: str

    @property
    def name(self) -> str:
        return self.path.rsplit(".", 1)[-1]


@dataclass(frozen=True)
class Function:
    module: Module
    node: ast.FunctionDef | ast.Lambda
    name: str


@dataclass(frozen=True)
class Class:
    module: Module
    node: ast.ClassDef

    @property
    def name(self) -> str:
        return self.node.name

    def bases(self) -> list[Any]:
        values = (_maybe(self.module, base, {}) for base in self.node.bases)
        return [v for v in values if not isinstance(v, CannotTell)]

    def is_enum(self) -> bool:
        return any(
            (isinstance(b, Foreign) and b.name in ("Enum", "IntEnum", "StrEnum", "Flag"))
            or (isinstance(b, Class) and b.is_enum())
            for b in self.bases()
        )

    def assignments(self) -> Iterator[tuple[str, ast.expr]]:
        """Class attributes with a value, in order."""
        for node in self.node.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                yield node.targets[0].id, node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                yield node.target.id, node.value

    def members(self) -> list[Member]:
        """Members of an enum."""
        found: list[Member] = []
        for name, value in self.assignments():
            if not name.startswith("_"):
                self.module.tree.spend(len(found))
                scope = {m.name: m.value for m in found}
                found.append(Member(self, name, _enum_value(self.module.evaluate(value, scope), len(found))))
        return found

    def attribute(self, name: str) -> Any:
        if self.is_enum():
            for member in self.members():
                if member.name == name:
                    return member
        assigned = dict(self.assignments())
        if name in assigned:
            # a class body sees its earlier names
            seen = {n.id for n in ast.walk(assigned[name]) if isinstance(n, ast.Name)} & set(assigned) - {name}
            return self.module.evaluate(assigned[name], {n: self.attribute(n) for n in seen})
        for node in self.node.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return Function(self.module, node, name)
        for base in self.bases():
            if isinstance(base, Class):
                try:
                    return base.attribute(name)
                except CannotTell:
                    continue
        raise CannotTell(f"{self.name}.{name}")


@dataclass(frozen=True)
class Member:
    """A member of an enum."""

    owner: Class
    name: str
    value: Any


@dataclass(frozen=True)
class Instance:
    """The result of calling a class of the tree; only its arguments are known."""

    owner: Class
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)


def _enum_value(value: Any, index: int) -> Any:
    return index + 1 if isinstance(value, Foreign) and value.name == "auto" else value


@dataclass(eq=False)
class Module:
    tree: Tree
    name: str
    path: Path
    depth: int = 0

    def __hash__(self) -> int:
        return hash(self.name)

    @functools.cached_property
    def syntax(self) -> ast.Module:
        """Raises CannotTell for a source that cannot be read, or lies outside the tree."""
        try:
            text = Area((self.tree.root,)).read(self.path, MAX_SOURCE).decode()
            self.tree.parse(len(text))
            return ast.parse(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))
        except SyntaxError as error:
            raise CannotTell(f"{self.name} is no valid Python {_PYTHON} (line {error.lineno or 1})") from error
        except (*FAILS, UnreadableError) as error:
            raise CannotTell(f"{self.name} cannot be read") from error

    @functools.cached_property
    def bindings(self) -> dict[str, ast.AST | tuple[str, str]]:
        """What each top-level name is bound to: a value, a definition, or (module, name) of an import."""
        found: dict[str, ast.AST | tuple[str, str]] = {}
        self._bind(self.syntax.body, found)
        return found

    def _bind(self, body: list[ast.stmt], found: dict[str, ast.AST | tuple[str, str]]) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found[node.name] = node
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found[target.id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                found[node.target.id] = node.value
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                found.update((k, v) for k, v in self.imports(node).items() if k != "*")
            elif isinstance(node, ast.Try):
                self._bind(node.body, found)
            elif isinstance(node, ast.If):
                other: dict[str, ast.AST | tuple[str, str]] = {}
                self._bind(node.orelse, other)
                self._bind(node.body, other)
                for name, value in other.items():
                    found.setdefault(name, value)

    def imports(self, node: ast.Import | ast.ImportFrom) -> dict[str, tuple[str, str]]:
        if isinstance(node, ast.Import):
            return {
                (a.asname or a.name.split(".")[0]): (a.name if a.asname else a.name.split(".")[0], "")
                for a in node.names
            }
        base = node.module or ""
        if node.level:
            package = self.name.split(".")
            if self.path.name != "__init__.py":
                package = package[:-1]
            package = package[: len(package) - node.level + 1]
            base = ".".join([*package, base] if base else package)
        return {a.asname or a.name: (base, a.name) for a in node.names}

    def lookup(self, name: str) -> Any:
        """The value of a top-level name."""
        if name not in self.bindings:
            if name in _BUILTINS:
                return _BUILTINS[name]
            return self._from_star(name)
        bound = self.bindings[name]
        if isinstance(bound, tuple):
            return self.tree.imported(*bound)
        if isinstance(bound, ast.FunctionDef):
            return Function(self, bound, name)
        if isinstance(bound, ast.ClassDef):
            return Class(self, bound)
        assert isinstance(bound, ast.expr)
        return self.tree.once(self, name, bound)

    def _from_star(self, name: str) -> Any:
        """A name that `from x import *` brings in."""
        for node in self.syntax.body:
            if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names):
                source = self.tree.module(self.imports(node)["*"][0])
                if source is not None and source is not self and source.has(name):
                    return source.lookup(name)
        raise CannotTell(f"{self.name}.{name}")

    def has(self, name: str) -> bool:
        if name in self.bindings:
            return True
        try:
            self._from_star(name)
        except CannotTell:
            return False
        return True

    def evaluate(self, node: ast.expr, scope: Mapping[str, Any] | None = None) -> Any:
        """The value of an expression in this module, with the local names `scope`. Raises CannotTell."""
        self.tree.spend(1)
        try:
            return _bounded(_Evaluator(self, dict(scope or {})).visit(node))
        except FAILS as error:
            raise CannotTell(type(node).__name__) from error


class Tree:
    """The unpacked `sglang` package at `root` (the folder that contains `srt/`), of which at most so many characters are parsed."""

    def __init__(self, root: Path, most: int = MAX_PARSED) -> None:
        self.root = root
        self._modules: dict[str, Module | None] = {}
        self._values: dict[tuple[str, str], Any] = {}
        self._busy: set[tuple[str, str]] = set()
        self._left = MAX_STEPS
        self._unparsed = most
        self.depth = 0

    def spend(self, steps: int) -> None:
        """Count so many steps. Raises CannotTell when the limit is exceeded."""
        self._left -= steps
        if self._left < 0:
            raise CannotTell("it takes more work than any tree should")

    def parse(self, size: int) -> None:
        """Count so many parsed characters. Raises CannotTell when the limit is exceeded."""
        checkpoint()
        self._unparsed -= size
        if self._unparsed < 0:
            raise CannotTell("it is larger than any tree should be")

    def module(self, name: str) -> Module | None:
        """The module `sglang.x.y`, None if it has no source in the tree."""
        if name not in self._modules:
            parts = name.split(".")
            path = self.root.joinpath(*parts[1:])
            files = [path / "__init__.py", path.with_suffix(".py")] if parts[0] == PACKAGE else []
            file = next((f for f in files if f.is_file()), None)
            self._modules[name] = Module(self, name, file) if file else None
        return self._modules[name]

    def imported(self, module_name: str, name: str) -> Any:
        module = self.module(module_name)
        if not name:
            return module or Foreign(module_name)
        if module is None:
            return Foreign(f"{module_name}.{name}")
        if module.has(name):
            return module.lookup(name)
        submodule = self.module(f"{module_name}.{name}")
        if submodule is None:
            raise CannotTell(f"{module_name}.{name}")
        return submodule

    def imported_or_foreign(self, module_name: str, name: str) -> Any:
        try:
            return self.imported(module_name, name)
        except CannotTell:
            return Foreign(f"{module_name}.{name}")

    def once(self, module: Module, name: str, node: ast.expr) -> Any:
        key = (module.name, name)
        if key in self._values:
            return self._values[key]
        if key in self._busy:
            raise CannotTell(f"{name} is defined by itself")
        self._busy.add(key)
        try:
            value = module.evaluate(node)
        finally:
            self._busy.discard(key)
        self._values[key] = value
        return value

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What a function of the tree returns, if its body is simple."""
        if isinstance(function, Class):
            return Instance(function, tuple(args), kwargs)
        if not isinstance(function, Function):
            raise CannotTell(f"call of {function!r}")
        if self.depth > MAX_DEPTH:
            raise CannotTell("calls too deep")
        node = function.node
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        scope: dict[str, Any] = {}
        for argument, default in zip(reversed(names), reversed(node.args.defaults), strict=False):
            scope[argument] = function.module.evaluate(default)
        for keyword, keyword_default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            if keyword_default is not None:
                scope[keyword.arg] = function.module.evaluate(keyword_default)
        scope.update(zip(names, args, strict=False))
        scope.update(kwargs)
        self.depth += 1
        try:
            if isinstance(node, ast.Lambda):
                return function.module.evaluate(node.body, scope)
            return run(function.module, node.body, scope)
        except _Return as result:
            return result.value
        finally:
            self.depth -= 1


class _Return(Exception):  # noqa: N818 - control flow, not an error
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def run(
    module: Module, body: list[ast.stmt], scope: dict[str, Any], on_call: Callable[[ast.Call], bool] | None = None
) -> Any:
    """Execute simple statements; `on_call` is called for each statement that is a call, and returns whether it handled it."""
    for node in body:
        module.tree.spend(1)
        if isinstance(node, ast.Return):
            raise _Return(None if node.value is None else module.evaluate(node.value, scope))
        if isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Call) and on_call is not None and not on_call(node.value):
                _mutate(module, node.value, scope)
            elif isinstance(node.value, ast.Call):
                _mutate(module, node.value, scope) if on_call is None else None
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            scope[node.targets[0].id] = _maybe(module, node.value, scope)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            scope[node.target.id] = _maybe(module, node.value, scope)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, (source, attribute) in module.imports(node).items():
                scope[name] = module.tree.imported_or_foreign(source, attribute)
        elif isinstance(node, ast.If):
            taken = node.body if module.evaluate(node.test, scope) else node.orelse
            run(module, taken, scope, on_call)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            for value in _iterate(module.evaluate(node.iter, scope)):
                module.tree.spend(1)
                scope[node.target.id] = value
                run(module, node.body, scope, on_call)
        elif isinstance(node, ast.Try):
            run(module, node.body, scope, on_call)
        elif not isinstance(node, (ast.Pass, ast.FunctionDef, ast.ClassDef, ast.Assert)):
            raise CannotTell(f"statement {type(node).__name__}")
    return None


def _maybe(module: Module, node: ast.expr, scope: dict[str, Any]) -> Any:
    """The value, or the exception to be raised when it is used."""
    try:
        return module.evaluate(node, scope)
    except CannotTell as problem:
        return problem


def _mutate(module: Module, call: ast.Call, scope: dict[str, Any]) -> None:
    """`names.append(x)` and similar on a local container."""
    target = call.func
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        container = scope.get(target.value.id)
        if isinstance(container, (list, set, dict)) and target.attr in (
            "append",
            "extend",
            "add",
            "update",
            "remove",
            "discard",
        ):
            try:
                getattr(container, target.attr)(*[module.evaluate(a, scope) for a in call.args])
            except FAILS as error:
                raise CannotTell(target.attr) from error
            _bounded(container)


def _bounded(value: Any) -> Any:
    """The value. Raises CannotTell if it is larger than any that SGLang has."""
    size = (
        value.bit_length() * MAX_SIZE // MAX_BITS
        if isinstance(value, int)
        else len(value)
        if isinstance(value, (str, bytes, list, tuple, set, frozenset, dict))
        else 0
    )
    if size > MAX_SIZE:
        raise CannotTell("it is very large")
    return value


def _would_be(operator_: type, left: Any, right: Any) -> int:
    """A lower bound for the size of an operator's result, before it is computed."""
    if operator_ in (ast.Pow, ast.LShift):
        bits = abs(right) if isinstance(right, int) else 1
        each = max(left.bit_length(), 1) if operator_ is ast.Pow and isinstance(left, int) else 1
        return bits * each * MAX_SIZE // MAX_BITS
    if operator_ is ast.Mult:
        sized, times = (right, left) if isinstance(left, int) else (left, right)
        if isinstance(times, int) and isinstance(sized, (str, bytes, list, tuple)):
            return len(sized) * max(times, 0)
    if operator_ is ast.Mod and isinstance(left, (str, bytes)) and WIDTHS.search(str(left)):
        return MAX_SIZE + 1
    return 0


def _iterate(value: Any) -> list[Any]:
    if isinstance(value, range) and len(value) > MAX_SIZE:
        raise CannotTell("a very long range")
    if isinstance(value, Class) and value.is_enum():
        return list(value.members())
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)  # a set has no order; SGLang's messages about one have none either
    if isinstance(value, (list, tuple, dict, str, range)):
        return list(value)
    raise CannotTell(f"iteration over {value!r}")


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_CONTAINERS = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
_BUILTINS: dict[str, Any] = {
    name: Foreign(f"builtins.{name}")
    for name in (
        *(
            "str",
            "int",
            "float",
            "bool",
            "list",
            "tuple",
            "set",
            "frozenset",
            "dict",
            "sorted",
            "len",
            "range",
            "map",
            "getattr",
        ),
        *(
            "isinstance",
            "type",
            "object",
            "None",
            "Exception",
            "ValueError",
            "bytes",
            "any",
            "all",
            "min",
            "max",
            "property",
        ),
    )
}


class _Evaluator(ast.NodeVisitor):
    def __init__(self, module: Module, scope: dict[str, Any]) -> None:
        self.module = module
        self.scope = scope

    def visit(self, node: ast.AST) -> Any:
        self.module.tree.spend(1)
        return super().visit(node)

    def generic_visit(self, node: ast.AST) -> Any:
        raise CannotTell(ast.unparse(node))

    def visit_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def visit_List(self, node: ast.List) -> Any:
        return self._items(node.elts)

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._items(node.elts))

    def visit_Set(self, node: ast.Set) -> Any:
        return set(self._items(node.elts))

    def _items(self, nodes: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found.extend(_iterate(self.visit(node.value)))
            else:
                found.append(self.visit(node))
        return found

    def visit_Dict(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found.update(self.visit(value))
            else:
                found[self.visit(key)] = _maybe(self.module, value, self.scope)
        return found

    def visit_Name(self, node: ast.Name) -> Any:
        value = self.scope[node.id] if node.id in self.scope else self.module.lookup(node.id)
        if isinstance(value, CannotTell):
            raise value
        return value

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.visit(node.value)
        if isinstance(owner, Foreign):
            path = f"{owner.path}.{node.attr}"
            return sys.maxsize if path == "sys.maxsize" else Foreign(path)
        if isinstance(owner, Module):
            if node.attr in owner.bindings:
                return owner.lookup(node.attr)
            return owner.tree.imported(owner.name, node.attr)
        if isinstance(owner, Class):
            return owner.attribute(node.attr)
        if isinstance(owner, Member) and node.attr in ("name", "value"):
            return getattr(owner, node.attr)
        if isinstance(owner, Instance):
            return owner.owner.attribute(node.attr)
        raise CannotTell(ast.unparse(node))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.visit(node.left), self.visit(node.right)
        if _would_be(type(node.op), left, right) > MAX_SIZE:
            raise CannotTell("it is very large")
        try:
            return _bounded(_BINARY[type(node.op)](left, right))
        except (KeyError, TypeError) as error:
            raise CannotTell(ast.unparse(node)) from error

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        if isinstance(node.op, ast.USub) and isinstance(value, (int, float)):
            return -value
        raise CannotTell(ast.unparse(node))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        value: Any = None
        for part in node.values:
            value = self.visit(part)
            if bool(value) == isinstance(node.op, ast.Or):
                return value
        return value

    def visit_Compare(self, node: ast.Compare) -> Any:
        left = self.visit(node.left)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.visit(comparator)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self.visit(node.body if self.visit(node.test) else node.orelse)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        parts = [str(self.visit(v.value if isinstance(v, ast.FormattedValue) else v)) for v in node.values]
        if sum(map(len, parts)) > MAX_SIZE:
            raise CannotTell("a very long text")
        return "".join(parts)

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        return list(islice(self._comprehension(node.elt, node.generators), MAX_SIZE + 1))

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return list(islice(self._comprehension(node.elt, node.generators), MAX_SIZE + 1))

    def visit_SetComp(self, node: ast.SetComp) -> Any:
        return set(self._comprehension(node.elt, node.generators))

    def _comprehension(self, element: ast.expr, generators: list[ast.comprehension]) -> Iterator[Any]:
        first, *rest = generators
        for value in _iterate(self.visit(first.iter)):
            inner = _Evaluator(self.module, {**self.scope, **_unpacked(first.target, value)})
            if all(inner.visit(test) for test in first.ifs):
                self.module.tree.spend(1)
                if rest:
                    yield from inner._comprehension(element, rest)
                else:
                    yield inner.visit(element)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return Function(self.module, node, "<lambda>")

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        owner, key = self.visit(node.value), self.visit(node.slice)
        try:
            return owner[key]
        except (KeyError, TypeError, IndexError) as error:
            raise CannotTell(ast.unparse(node)) from error

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            owner = self.visit(node.func.value)
            found = self._method(owner, node)
            if found is not _NO_METHOD:
                return found
        function = self.visit(node.func)
        args = self._items(node.args)
        kwargs = {k.arg: self.visit(k.value) for k in node.keywords if k.arg is not None}
        if isinstance(function, Foreign):
            return _foreign_call(self.module.tree, function, args, kwargs)
        return self.module.tree.call(function, args, kwargs)

    def _method(self, owner: Any, node: ast.Call) -> Any:
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        if isinstance(owner, Instance) and name in ("get", "value") and not node.args:
            # sglang.srt.environ: EnvBool(False).get() without a variable set gives the default
            if "default" in owner.kwargs:
                return owner.kwargs["default"]
            if owner.args:
                return owner.args[0]
            raise CannotTell(ast.unparse(node))
        if isinstance(owner, (str, dict, list, set, frozenset, tuple)) and name in _METHODS:
            given = self._items(node.args)
            if _makes_long(owner, name, given):
                raise CannotTell("a very long text")
            result = _bounded(getattr(owner, name)(*given))
            return list(result) if name in ("keys", "values", "items") else result
        if isinstance(owner, Class) and owner.is_enum() and name == "keys":
            raise CannotTell(ast.unparse(node))
        return _NO_METHOD


def _makes_long(owner: Any, name: str, given: list[Any]) -> bool:
    """Whether a method of a text may produce one that is longer than any of SGLang's."""
    if not isinstance(owner, str):
        return False
    if name == "format":
        return WIDTHS.search(owner) is not None
    if name == "replace" and len(given) >= 2 and isinstance(given[0], str) and isinstance(given[1], str):
        return len(owner) + owner.count(given[0]) * len(given[1]) > MAX_SIZE
    if name == "join" and given and isinstance(given[0], (list, tuple, set)):
        return len(owner) * len(given[0]) + sum(len(str(i)) for i in given[0]) > MAX_SIZE
    return False


_NO_METHOD = object()
_METHODS = frozenset(
    (
        *("keys", "values", "items", "get", "copy", "union"),
        *("lower", "upper", "title", "join", "replace", "strip", "lstrip", "rstrip", "split", "format"),
        *("startswith", "endswith"),
    )
)


def _unpacked(target: ast.expr, value: Any) -> dict[str, Any]:
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, ast.Tuple):
        found: dict[str, Any] = {}
        for part, item in zip(target.elts, value, strict=True):
            found.update(_unpacked(part, item))
        return found
    raise CannotTell(ast.unparse(target))


def _foreign_call(tree: Tree, function: Foreign, args: list[Any], kwargs: dict[str, Any]) -> Any:
    name = function.name
    if function.path == "sys.modules.get":
        return None  # in a fresh process nothing is imported yet
    if name in _CONTAINERS and function.path.startswith("builtins."):
        return _CONTAINERS[name](_iterate(args[0]) if args else ())
    if name == "sorted":
        return sorted(_iterate(args[0]))
    if name == "dict":
        return dict(*args, **kwargs)
    if name == "len":
        return len(args[0])
    if name == "range":
        return range(*args)
    if name in ("str", "int", "float", "bool") and function.path.startswith("builtins.") and args:
        return {"str": str, "int": int, "float": float, "bool": bool}[name](args[0])
    if name == "field":  # dataclasses.field, msgspec.field
        if "default" in kwargs:
            return kwargs["default"]
        if "default_factory" in kwargs:
            factory = kwargs["default_factory"]
            return _foreign_call(tree, factory, [], {}) if isinstance(factory, Foreign) else tree.call(factory, [], {})
        raise CannotTell("field without a default")
    raise CannotTell(f"call of {function.path}")
