"""Reads the flags of `ServerArgs` from an unpacked SGLang without importing it.

Two generations: `parser.add_argument(…)` calls in `ServerArgs.add_cli_args` (to 0.5.13), and declared fields
`name: A[type, Arg(…)] = default` that SGLang's `add_cli_args_from_dataclass` turns into arguments (0.5.14 and later; since
0.5.20 in the namespaces of `arg_groups/fields/`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from spec_lsp.catalog.evaluate import FAILS, PACKAGE, CannotTell, Class, Foreign, Function, Member, Module, Tree, run
from spec_lsp.catalog.model import SUPPRESS, Action, Flag
from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field

_DEPRECATED = expression(r"\W*(deprecated|removed)\b", re.IGNORECASE)
ACTION_NAMES: dict[str, Action] = {
    "store": "store",
    "_StoreAction": "store",
    "store_true": "store-true",
    "_StoreTrueAction": "store-true",
    "_HelpAction": "help",
    "BooleanOptionalAction": "boolean",
    "LoRAPathAction": "lora-paths",
    "DeprecatedAction": "deprecated",
    "DeprecatedStoreTrueAction": "deprecated-true",
    "DeprecatedStoreConstAction": "deprecated-const",
    "DeprecatedAliasStoreAction": "deprecated-alias",
}
_MISSING = object()


@dataclass(frozen=True)
class Reading:
    """The flags that the source shows, and what could not be determined about them."""

    flags: tuple[Flag, ...]
    doubts: tuple[str, ...]
    help: Mapping[str, str] = field(default_factory=dict)
    """SGLang's own help text by spelling: to be shown from the reader's installation, never to be stored."""


def read_flags(root: Path) -> Reading:
    """The flags of the package at `root` (the folder `sglang`). Raises CannotTell without a `ServerArgs`."""
    tree = Tree(root)
    module = tree.module(f"{PACKAGE}.srt.server_args")
    if module is None:
        raise CannotTell("there is no srt/server_args.py")
    try:
        return _SourceReader(tree, module).read()
    except (*FAILS, StopIteration) as error:
        raise CannotTell(f"srt/server_args.py is not written as SGLang's is ({type(error).__name__})") from error


class _SourceReader:
    def __init__(self, tree: Tree, module: Module) -> None:
        self.tree = tree
        self.module = module
        self.flags: list[Flag] = [Flag(("-h", "--help"), "help", "help", 0, default=SUPPRESS)]
        self.doubts: list[str] = []
        self.help: dict[str, str] = {}
        self.scope: dict[str, Any] = {}

    def read(self) -> Reading:
        server_args = next(
            (n for n in self.module.syntax.body if isinstance(n, ast.ClassDef) and n.name == "ServerArgs"), None
        )
        method = server_args and next(
            (n for n in server_args.body if isinstance(n, ast.FunctionDef) and n.name == "add_cli_args"), None
        )
        if server_args is None or method is None:
            raise CannotTell("srt/server_args.py has no ServerArgs.add_cli_args")
        self.fields = list(_fields(self.module, server_args))
        self.scope = {"ServerArgs": Class(self.module, server_args), "_declared_default": _DECLARED_DEFAULT}
        run(self.module, method.body, self.scope, self._on_call)
        return Reading(tuple(self.flags), tuple(self.doubts), self.help)

    def _on_call(self, call: ast.Call) -> bool:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
            self._add_argument(call)
        elif isinstance(call.func, ast.Name) and call.func.id == "add_cli_args_from_dataclass":
            for field in self.fields:
                flag = field.flag(self._or_doubt)
                if flag is not None:
                    self.flags.append(flag)
                    self.help.update(dict.fromkeys(flag.spellings, field.help()))
        else:
            return False
        return True

    def _add_argument(self, call: ast.Call) -> None:
        names = [self.module.evaluate(a, self.scope) for a in call.args]
        given = {k.arg: k.value for k in call.keywords if k.arg is not None}
        values = {
            key: self._value(names[0], key, node) for key, node in given.items() if key not in ("help", "metavar")
        }
        help_text = self._help(given.get("help"))
        self.help.update(dict.fromkeys(names, help_text))
        self.flags.append(_flag(names, values, help_text))

    def _value(self, name: str, key: str, node: ast.expr) -> Any:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_declared_default":
            wanted = self.module.evaluate(node.args[0], self.scope)
            field = next(f for f in self.fields if f.name == wanted)
            return self._or_doubt(f"{name}: {key}", lambda: field.default())
        return self._or_doubt(f"{name}: {key}", lambda: self.module.evaluate(node, self.scope))

    def _or_doubt(self, what: str, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except CannotTell as problem:
            self.doubts.append(f"{what}: cannot tell {problem}")
            return None

    def _help(self, node: ast.expr | None) -> str:
        return "" if node is None else "".join(_literal_parts(node))


_DECLARED_DEFAULT = Foreign("sglang.srt.server_args._declared_default")


def _literal_parts(node: ast.expr) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _flag(names: list[str], given: dict[str, Any], help_text: str) -> Flag:
    """The flag that `add_argument(*names, **given)` makes."""
    action = _action(given.get("action", "store"))
    spellings = list(names)
    long = next((n for n in names if n.startswith("--")), names[0])
    dest = given.get("dest") or long.lstrip("-").replace("-", "_")
    nargs, const, default = given.get("nargs"), given.get("const"), _plain(given.get("default"))
    if action == "store-true":
        nargs, const, default = 0, True, default if "default" in given else False
    elif action == "boolean":
        nargs = 0
        spellings += [f"--no-{n[2:]}" for n in names if n.startswith("--")]
    elif action == "deprecated":
        nargs = given.get("nargs", 0)
    elif action == "deprecated-true":
        nargs, const, default = given.get("nargs", 0), True, default if "default" in given else False
    elif action == "deprecated-const":
        nargs, const = given.get("nargs", 0), _plain(given.get("const_value"))
    choices = given.get("choices")
    deprecated = is_deprecated(action, help_text)
    return Flag(
        tuple(spellings),
        dest,
        action,
        nargs,
        _plain(const),
        default,
        _type_name(given.get("type")),
        None if choices is None else tuple(_choices(choices)),
        bool(given.get("required", False)),
        deprecated,
        replacement_in(names, given.get("new_flag"), f"{given.get('error_message') or ''} {help_text}", deprecated),
        action == "deprecated" and (given.get("error_message") is not None or _always_raises(given["action"])),
    )


_FLAG_OR_VARIABLE = expression(r"--[a-z0-9][a-z0-9-]*[a-z0-9](?:=\w+)?|SGLANG_[A-Z0-9_]+(?:=\w+)?")


def replacement_in(names: list[str], new_flag: str | None, advice: str, deprecated: bool) -> str:
    """What SGLang says to use instead of a deprecated flag: its `new_flag`, or the first other name that its texts name."""
    if new_flag or not deprecated:
        return new_flag or ""
    named = (m.group() for m in _FLAG_OR_VARIABLE.finditer(advice))
    return next((n for n in named if n.split("=")[0] not in names), "")


def _always_raises(action: Any) -> bool:
    """Until 0.5.7 SGLang's DeprecatedAction stopped every launch; later only with an `error_message`."""
    methods = [n for n in action.node.body if isinstance(n, ast.FunctionDef) and n.name == "__call__"]
    return any(isinstance(statement, ast.Raise) for method in methods for statement in method.body)


def _action(action: Any) -> Action:
    name = action if isinstance(action, str) else action.name
    if name not in ACTION_NAMES:
        raise CannotTell(f"action {name}: teach source.py what it does")
    return ACTION_NAMES[name]


def is_deprecated(action: Action, help_text: str) -> bool:
    """Whether SGLang calls the flag deprecated: by its action, or at the start of its help."""
    return action.startswith("deprecated") or _DEPRECATED.match(help_text) is not None


def _type_name(type_: Any) -> str | None:
    if type_ is None:
        return None
    if isinstance(type_, (Foreign, Function, Class)):
        return type_.name
    raise CannotTell(f"type {type_!r}")


def _choices(choices: Any) -> list[Any]:
    if isinstance(choices, Class):
        return [m.value for m in choices.members()]
    values = [_plain(c) for c in choices]
    return sorted(values, key=str) if isinstance(choices, (set, frozenset)) else values


def _plain(value: Any) -> Any:
    if isinstance(value, Member):
        return _plain(value.value)
    if isinstance(value, Foreign) and value.name == "SUPPRESS":
        return SUPPRESS
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, (str, int, float, bool, dict)):
        return value
    raise CannotTell(f"value {value!r}")


@dataclass(frozen=True)
class _Field:
    """A declared field of `ServerArgs` or of one of its namespaces."""

    module: Module
    name: str
    annotation: ast.expr
    value: ast.expr | None

    def default(self) -> Any:
        return _MISSING if self.value is None else _plain(self.module.evaluate(self.value))

    def help(self) -> str:
        """SGLang's own help text of the field's flag."""
        metadata = _annotated(self.annotation)[1]
        return self._metadata(metadata, lambda _, read: None)[1] if metadata is not None else ""

    def flag(self, or_doubt: Callable[[str, Callable[[], Any]], Any]) -> Flag | None:
        """The flag that `add_cli_args_from_dataclass` creates for the field, None if it creates none."""
        annotation, metadata = _annotated(self.annotation)
        if metadata is None:
            return None
        arg, help_text = self._metadata(metadata, or_doubt)
        if arg.get("no_cli"):
            return None
        name = arg.get("cli_name") or "--" + self.name.replace("_", "-")
        given: dict[str, Any] = {"dest": self.name}
        default = or_doubt(f"{name}: default", self.default)
        if default is not _MISSING:
            given["default"] = default
        if arg.get("action") is not None:
            given |= {"action": arg["action"], **(arg.get("action_kwargs") or {})}
        else:
            given |= self._scalar(annotation, arg, default)
        return _flag([name, *(arg.get("aliases") or [])], given, help_text)

    def _metadata(
        self, nodes: list[ast.expr], or_doubt: Callable[[str, Callable[[], Any]], Any]
    ) -> tuple[dict[str, Any], str]:
        """The keywords of `Arg(…)`, and its help; a bare string is a help text."""
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Arg":
                helps = [k.value for k in node.keywords if k.arg == "help"]
                keys = {
                    k.arg: or_doubt(f"{self.name}: {k.arg}", lambda k=k: self.module.evaluate(k.value))  # type: ignore[misc]
                    for k in node.keywords
                    if k.arg is not None and k.arg not in ("help", "fallback", "resolvable")
                }
                return keys, "".join(p for h in helps for p in _literal_parts(h))
            if isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp)):
                return {}, "".join(_literal_parts(node))
        return {"no_cli": True}, ""

    def _scalar(self, annotation: ast.expr, arg: dict[str, Any], default: Any) -> dict[str, Any]:
        annotation = _without_none(annotation)
        head, parameters = _generic(annotation)
        given: dict[str, Any] = {"const": arg.get("const")}
        if head == "Literal":
            values = [self.module.evaluate(p) for p in parameters]
            return given | {
                "choices": arg.get("choices") or values,
                "type": arg.get("type_parser") or _builtin(type(values[0]).__name__),
            }
        if head in ("List", "list") and arg.get("type_parser") is None:
            element = _generic(parameters[0])[0] if parameters else "str"
            return given | {
                "type": _builtin(element),
                "nargs": arg.get("nargs") or "+",
                "choices": arg.get("choices") or None,
            }
        if head == "bool":
            return {"action": "store_true"}
        required = arg.get("required") is True or (arg.get("required") is None and default is _MISSING)
        return given | {
            "type": arg.get("type_parser") or _builtin(head),
            "choices": arg.get("choices") or None,
            "nargs": arg.get("nargs") or None,
            "required": required,
        }


def _builtin(name: str) -> Foreign:
    return Foreign(f"builtins.{name if name in ('int', 'float') else 'str'}")


def _fields(module: Module, server_args: ast.ClassDef) -> Iterator[_Field]:
    """The declared fields in the order of the record."""
    namespaces = module.bindings.get("_INPUT_NAMESPACES")
    if not isinstance(namespaces, ast.expr):
        yield from _own_fields(Class(module, server_args))
        return
    found = {f.name: f for c in module.evaluate(namespaces) for f in _own_fields(c)}
    order = module.tree.imported(f"{PACKAGE}.srt.arg_groups.field_order", "POSITIONAL_FIELD_ORDER")
    yield from (found.pop(name) for name in order if name in found)
    yield from found.values()


def _own_fields(owner: Class) -> Iterator[_Field]:
    found: dict[str, _Field] = {}  # a field declared twice keeps its first position, as in a dataclass
    for node in owner.node.body:
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and _generic(node.annotation)[0] not in ("ClassVar", "Derived")
        ):
            found[node.target.id] = _Field(owner.module, node.target.id, _unquoted(node.annotation), node.value)
    yield from found.values()


def _unquoted(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return ast.parse(node.value, mode="eval").body
    return node


def _annotated(node: ast.expr) -> tuple[ast.expr, list[ast.expr] | None]:
    head, parameters = _generic(node)
    if head in ("A", "Annotated"):
        return parameters[0], parameters[1:]
    return node, None


def _generic(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """`List[int]` → ("List", [int])."""
    node = _unquoted(node)
    if isinstance(node, ast.Subscript):
        inner = node.slice
        return _generic(node.value)[0], list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
    if isinstance(node, ast.Attribute):
        return node.attr, []
    return (node.id if isinstance(node, ast.Name) else ""), []


def _without_none(node: ast.expr) -> ast.expr:
    """`Optional[X]`, `Union[X, None]`, `X | None` → X; a union of several types is kept."""
    parts = _union(node)
    rest = [p for p in parts if not (isinstance(p, ast.Constant) and p.value is None)]
    return rest[0] if len(rest) == 1 else node


def _union(node: ast.expr) -> list[ast.expr]:
    node = _unquoted(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union(node.left) + _union(node.right)
    head, parameters = _generic(node)
    if head == "Optional":
        return [*_union(parameters[0]), ast.Constant(None)]
    if head == "Union":
        return [p for parameter in parameters for p in _union(parameter)]
    return [node]
