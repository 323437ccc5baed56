"""Reads which environment variables an unpacked SGLang uses, without importing it.

Three kinds of evidence, the best first: the declarations of `srt/environ.py` (`SGLANG_X = EnvBool(False)`), reads by name
(`os.environ.get("SGLANG_X", "0")`, `get_bool_env_var("SGLANG_X")`), and any other occurrence of the name in a string.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spec_lsp.catalog.evaluate import PACKAGE, CannotTell, Module, Tree
from spec_lsp.catalog.model import Variable, VariableType
from spec_lsp.expressions import expression
from spec_lsp.files import MAX_SOURCE, MIB, Area, UnreadableError
from spec_lsp.interruption import checkpoint

_NAME = expression(r"(?:SGLANG|SGL)_[A-Z0-9_]*[A-Z0-9]")
_FLAG = expression(r"--[a-z0-9][a-z0-9-]+")
_SAID_REMOVED = expression(r"((?:SGLANG|SGL)_[A-Z0-9_]*[A-Z0-9]) (?:has been|was|is) (?:removed|deprecated)")
_DECLARED: tuple[tuple[str, VariableType], ...] = (
    ("EnvBool", "bool"),
    ("EnvInt", "int"),
    ("EnvFloat", "float"),
    ("EnvStr", "str"),
    ("EnvTuple", "list"),
    ("EnvJSON", "json"),
)
_GENERATED = ("_version.py",)
MAX_PARSED = 64 * MIB
"""The most characters of all modules that are parsed; SGLang's modules that name a variable have some 27 MiB."""
MAX_OF_BUILD = 12 * MIB
"""The same for a build that is nearly a release; compared with the release before, 0.5.23 needs 2 MiB."""
MAX_MODULES = 20_000
"""The most Python files of a package that are read; SGLang has some 5,000."""


def read_variables(root: Path, known: Mapping[str, Variable] = MappingProxyType({})) -> tuple[Variable, ...]:
    """The `SGLANG_*` and `SGL_*` variables of the package at `root` (the folder `sglang`), by name.

    For a build that is nearly a release whose variables are `known`, modules that name no other variables are not read again.
    """
    tree, area = Tree(root, MAX_OF_BUILD if known else MAX_PARSED), Area((root,))
    found: dict[str, Variable] = {}
    for path in modules(root):
        checkpoint()
        try:
            data = area.read(path, MAX_SOURCE)
        except UnreadableError:
            continue
        if (b"SGLANG_" in data or b"SGL_" in data) and path.name not in _GENERATED:
            text = data.decode("utf-8", "replace")
            named = set(_NAME.findall(text)) if known and "class Envs" not in text else None
            if named is not None and named <= known.keys():
                found.update((name, _better(found.get(name), known[name])) for name in named)
                continue
            parts = path.relative_to(root).with_suffix("").parts
            module = Module(tree, ".".join([PACKAGE, *parts]), path)
            for variable in _in_module(module):
                found[variable.name] = _better(found.get(variable.name), variable)
    return tuple(found[name] for name in sorted(found))


def modules(root: Path) -> list[Path]:
    """The Python files of a package in order, up to a limit that SGLang does not reach. Links are skipped, as many may lead to one file."""
    found: list[Path] = []
    for folder, below, inside in os.walk(root):
        checkpoint()
        below[:] = sorted(b for b in below if b != "__pycache__")
        paths = (Path(folder, name) for name in inside if name.endswith(".py"))
        found += (path for path in paths if not path.is_symlink())
        if len(found) > MAX_MODULES:
            break
    return sorted(found[:MAX_MODULES])


def _better(known: Variable | None, new: Variable) -> Variable:
    """What is known of a variable after one more piece of evidence; a declaration or a deprecation is final."""
    if known is None or (new.deprecated and not known.deprecated):
        return new
    if known.type == "unknown" and new.type != "unknown" and not known.deprecated:
        return new
    return known


def _in_module(module: Module) -> Iterator[Variable]:
    try:
        nodes = list(ast.walk(module.syntax))
    except CannotTell:
        return
    for node in nodes:
        if isinstance(node, ast.ClassDef) and node.name == "Envs":
            yield from _declared(module, node)
    for node in nodes:
        if isinstance(node, ast.Call):
            yield from _deprecated_call(node)
            yield from _read(module, node)
        elif isinstance(node, ast.Dict):
            yield from _deprecated_table(node)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if _NAME.fullmatch(node.value):
                yield Variable(node.value)
            for said in _SAID_REMOVED.finditer(node.value):
                yield Variable(said[1], "unknown", None, True)


def _declared(module: Module, owner: ast.ClassDef) -> Iterator[Variable]:
    for node in owner.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            name, value = node.target.id, node.value
        else:
            continue
        if not _NAME.fullmatch(name):
            continue
        kind = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
        type_: VariableType = next((t for prefix, t in _DECLARED if kind.startswith(prefix)), "unknown")
        yield Variable(
            name, type_, _constant(module, value.args[0]) if isinstance(value, ast.Call) and value.args else None
        )
        if isinstance(value, ast.Call):
            for keyword in value.keywords:
                if keyword.arg == "deprecated_name" and isinstance(keyword.value, ast.Constant):
                    yield Variable(str(keyword.value.value), type_, None, True, name)


def _read(module: Module, call: ast.Call) -> Iterator[Variable]:
    """`os.environ.get("X", "1")`, `os.getenv("X")`, `get_int_env_var("X", 3)`."""
    function = ast.unparse(call.func)
    last = function.rsplit(".", 1)[-1]
    if not call.args or not ("env" in last or function.endswith("environ.get")):
        return
    name = _constant(module, call.args[0])
    if isinstance(name, str) and _NAME.fullmatch(name):
        default = _constant(module, call.args[1]) if len(call.args) > 1 else None
        type_: VariableType = (
            "bool" if "bool" in last else "int" if "int" in last else "float" if "float" in last else "str"
        )
        yield Variable(name, type_, default)


def _deprecated_call(call: ast.Call) -> Iterator[Variable]:
    """`_print_deprecated_env(new, old)`, `_warn_deprecated_env_to_cli_flag(name, advice)`: before 0.5.20."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if name == "_print_deprecated_env" and texts:
        new, old = texts[0], texts[-1] if len(texts) > 1 else texts[0].replace("SGLANG_", "SGL_", 1)
        yield Variable(old, "unknown", None, True, new)
    elif name.startswith("_warn_deprecated_env") and texts:
        yield Variable(texts[0], "unknown", None, True, _named(" ".join(texts[1:])))


def _deprecated_table(node: ast.Dict) -> Iterator[Variable]:
    """Entries `"SGLANG_OLD": _DeprecatedEnv(replacement="SGLANG_NEW", note=…)`."""
    for key, value in zip(node.keys, node.values, strict=True):
        if (
            isinstance(key, ast.Constant)
            and isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and value.func.id == "_DeprecatedEnv"
            and isinstance(key.value, str)
        ):
            texts = [n.value for n in ast.walk(value) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            yield Variable(key.value, "unknown", None, True, _named(" ".join(texts)))


def _named(advice: str) -> str:
    """The first flag or variable that a piece of advice names; the rest is dropped."""
    flag, name = _FLAG.search(advice), _NAME.search(advice)
    return (flag or name).group() if flag or name else ""  # type: ignore[union-attr]


def _constant(module: Module, node: ast.expr) -> Any:
    try:
        value = module.evaluate(node)
    except (CannotTell, RecursionError, TypeError, ValueError):
        return None
    if isinstance(value, tuple):
        value = list(value)
    plain = value is None or isinstance(value, (bool, int, float, str)) or (isinstance(value, list) and not value)
    return value if plain else None
