"""SGLang's model classes as syntax trees: which classes a class builds, through which of its own and inherited methods.

A class is `module.Name`, the module relative to sglang/srt/models (`qwen2`, `deepseek_common.x`). Methods are looked up as Python
does, along the classes a class inherits from; `super().f` leads to the next one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

PACKAGE = "sglang.srt.models"


@dataclass(eq=False)
class ModelClass:
    """One class. `bases` are the classes of models/ it inherits from; `foreign` the names of its other bases."""

    module: Module
    node: ast.ClassDef

    @cached_property
    def name(self) -> str:
        return f"{self.module.name}.{self.node.name}"

    @cached_property
    def methods(self) -> dict[str, ast.FunctionDef]:
        return {n.name: n for n in self.node.body if isinstance(n, ast.FunctionDef)}

    @cached_property
    def attributes(self) -> set[str]:
        targets = [t for n in self.node.body if isinstance(n, ast.Assign) for t in n.targets]
        targets += [n.target for n in self.node.body if isinstance(n, ast.AnnAssign) and n.value is not None]
        return {t.id for t in targets if isinstance(t, ast.Name)}


@dataclass(eq=False)
class Module:
    """One file: its classes, what it imports from other modules of models/, and its syntax tree."""

    name: str
    tree: ast.Module
    classes: dict[str, ModelClass] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    others: dict[str, ast.AST] = field(default_factory=dict)
    """Functions and variables of the module itself (a dictionary of layer classes, a helper that builds layers)."""

    def __post_init__(self) -> None:
        for node in self.tree.body:
            for inner in ast.walk(node) if isinstance(node, (ast.If, ast.Try)) else (node,):
                if isinstance(inner, ast.ClassDef):
                    self.classes[inner.name] = ModelClass(self, inner)
                elif isinstance(inner, ast.FunctionDef):
                    self.others[inner.name] = inner
                elif isinstance(inner, (ast.Assign, ast.AnnAssign)) and inner.value is not None:
                    targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
                    self.others.update({t.id: inner.value for t in targets if isinstance(t, ast.Name)})
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE):
                module = node.module.removeprefix(PACKAGE).lstrip(".")
                for alias in node.names:
                    self.imported[alias.asname or alias.name] = (module, alias.name)


class Models:
    """All of sglang/srt/models below `root` (a folder that holds sglang/)."""

    def __init__(self, root: Path) -> None:
        folder = root / "sglang" / "srt" / "models"
        self.modules: dict[str, Module] = {}
        self._lines: dict[ModelClass, list[ModelClass]] = {}
        self._mentioned: dict[ModelClass, list[tuple[ModelClass, str]]] = {}
        for path in sorted(folder.rglob("*.py")):
            name = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
            self.modules[name] = Module(name, ast.parse(path.read_text("utf-8-sig")))

    def entries(self) -> Iterator[ModelClass]:
        """The classes of each module's EntryClass: what an `architectures` of config.json can name."""
        for module in self.modules.values():
            if "." in module.name:
                continue
            for node in module.tree.body:
                if isinstance(node, ast.Assign) and any(
                    isinstance(t, ast.Name) and t.id == "EntryClass" for t in node.targets
                ):
                    names = node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value]
                    found = (self.find(module, n.id) for n in names if isinstance(n, ast.Name))
                    yield from (c for c in found if c is not None)

    def find(self, module: Module, name: str) -> ModelClass | None:
        """The class a name stands for in a module."""
        if name in module.classes:
            return module.classes[name]
        if name in module.imported:
            where, original = module.imported[name]
            other = self.modules.get(where)
            return self.find(other, original) if other is not None and other is not module else None
        return None

    def bases(self, cls: ModelClass) -> list[ModelClass]:
        named = [self.find(cls.module, b.id) for b in cls.node.bases if isinstance(b, ast.Name)]
        return [b for b in named if b is not None and b is not cls]

    def line(self, cls: ModelClass) -> list[ModelClass]:
        """The class and those it inherits from (in models/), in the order methods are looked up."""
        if cls not in self._lines:
            found = [cls]
            for base in self.bases(cls):
                found += [c for c in self.line(base) if c not in found]
            self._lines[cls] = found
        return self._lines[cls]

    def standing_for(self, module: Module, name: str) -> list[ModelClass]:
        """The classes that a name leads to: a class, or those that a variable or function of the module mentions."""
        found: list[ModelClass] = []
        todo, seen = [(module, name)], set()
        while todo:
            where, what = todo.pop()
            if (where.name, what) in seen:
                continue
            seen.add((where.name, what))
            cls = self.find(where, what)
            if cls is not None:
                found.append(cls)
            elif what in where.others:
                todo += [(where, n.id) for n in ast.walk(where.others[what]) if isinstance(n, ast.Name)]
            elif what in where.imported and where.imported[what][0] in self.modules:
                other, original = where.imported[what]
                todo.append((self.modules[other], original))
        return found

    def functions(self, cls: ModelClass) -> Iterator[tuple[ModelClass, ast.FunctionDef]]:
        """The methods an object of the class has, with those they reach by `super()` or by naming a base."""
        line = self.line(cls)
        seen: set[tuple[str, str]] = set()
        for name in {n for c in line for n in c.methods}:
            yield from self._method(line, name, 0, seen)

    def method(self, cls: ModelClass, name: str) -> Iterator[tuple[ModelClass, ast.FunctionDef]]:
        """One method and those of the same name that it reaches."""
        yield from self._method(self.line(cls), name, 0, set())

    def _method(
        self, line: list[ModelClass], name: str, start: int, seen: set[tuple[str, str]]
    ) -> Iterator[tuple[ModelClass, ast.FunctionDef]]:
        for at in range(start, len(line)):
            function = line[at].methods.get(name)
            if function is None:
                continue
            if (line[at].name, name) in seen:
                return
            seen.add((line[at].name, name))
            yield line[at], function
            names = {c.node.name for c in line}
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    owner = node.func.value
                    if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super":
                        yield from self._method(line, node.func.attr, at + 1, seen)
                    elif isinstance(owner, ast.Name) and owner.id in names and owner.id != line[at].node.name:
                        where = next(i for i, c in enumerate(line) if c.node.name == owner.id)
                        yield from self._method(line, node.func.attr, where, seen)
            return

    def built(self, entry: ModelClass) -> list[ModelClass]:
        """Every class that building `entry` can build, itself first.

        A class that is only the default of a parameter (`layer_type=LlamaDecoderLayer`) does not count where somebody passes that
        parameter a class of their own.
        """
        passed: set[str] = set()
        while True:
            found, now_passed = self._built(entry, passed)
            if now_passed <= passed:
                return found
            passed |= now_passed

    def _built(self, entry: ModelClass, passed: set[str]) -> tuple[list[ModelClass], set[str]]:
        found, todo, given = [entry], [entry], set(passed)
        while todo:
            for other, parameter in self.mentioned(todo.pop()):
                if parameter.startswith("=") and parameter[1:] in passed:
                    continue
                if parameter and not parameter.startswith("="):
                    given.add(parameter)
                if other not in found:
                    found.append(other)
                    todo.append(other)
        return found, given

    def mentioned(self, cls: ModelClass) -> Sequence[tuple[ModelClass, str]]:
        """The classes that building an object of `cls` mentions, with how (see `_references`)."""
        if cls not in self._mentioned:
            self._mentioned[cls] = [
                (other, parameter)
                for owner, function in self.functions(cls)
                if not function.name.startswith(("forward", "load_", "get_input"))
                for name, parameter in _references(function)
                for other in self.standing_for(owner.module, name)
            ]
        return self._mentioned[cls]


def _references(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Names that a method mentions: (name, "parameter" it is handed to, "=parameter" it is the default of, or "")."""
    arguments = function.args
    with_default = [
        *zip(reversed([*arguments.posonlyargs, *arguments.args]), reversed(arguments.defaults), strict=False)
    ]
    with_default += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    for parameter, default in with_default:
        yield from ((n.id, f"={parameter.arg}") for n in ast.walk(default) if isinstance(n, ast.Name))
    fallbacks: set[ast.AST] = set()
    """`layer_type or LlamaDecoderLayer`: a default too."""
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and isinstance(node.values[0], ast.Name):
                for value in node.values[1:]:
                    fallbacks.add(value)
                    yield from ((n.id, f"={node.values[0].id}") for n in ast.walk(value) if isinstance(n, ast.Name))
            elif isinstance(node, ast.Call):
                for keyword in node.keywords:
                    if keyword.arg:
                        yield from ((n.id, keyword.arg) for n in ast.walk(keyword.value) if isinstance(n, ast.Name))
        loaded = (n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        yield from ((n.id, "") for n in loaded if n not in fallbacks)
