"""spec_lsp/facts/data/registers.json: the names that SGLang keeps in lists and registries, by release.

`python -m tests.sources.registers FOLDER` makes it from the sources of all releases in FOLDER (FOLDER/0.5.23/sglang/…). See
spec_lsp/facts/registers.py for what each register holds. A register that a release does not have is left out.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.sources.table import Table

DATA = Path(__file__).parents[2] / "spec_lsp" / "facts" / "data" / "registers.json"


def registers_of(root: Path) -> dict[str, dict[str, Any]]:
    """register → {"names"} of the release whose sources are below `root`."""
    srt = root / "sglang" / "srt"
    values = _values(srt / "layers" / "moe" / "utils.py", "MoeRunnerBackend")
    found = {
        "cpu_methods": _literal(srt / "layers" / "quantization" / "__init__.py", "CPU_QUANTIZATION_METHODS"),
        "overlapping_classes": _literal(
            srt / "model_executor" / "model_runner_components" / "startup_weight_load.py", "_SUPPORTED_ARCHITECTURES"
        ),
        "mxfp4_runners": _mxfp4_runners(srt / "layers" / "quantization" / "mxfp4.py", values),
        "fused_runners": _fused_runners(srt / "layers" / "moe" / "moe_runner" / "runner.py", values),
    }
    for exchange, runner in _registered(srt / "layers" / "moe"):
        found.setdefault(f"exchanges_of_{runner}", []).append(exchange)
    return {name: {"names": sorted(names)} for name, names in found.items() if names}


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8-sig") if path.is_file() else "")


def _literal(path: Path, name: str) -> list[str]:
    """The strings of a dictionary's keys or of a list that a module assigns to a name."""
    for node in _tree(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            dictionary = isinstance(node.value, ast.Dict)
            inside = node.value.keys if isinstance(node.value, ast.Dict) else ast.walk(node.value)
            assert dictionary or isinstance(node.value, (ast.Call, ast.List, ast.Set, ast.Tuple))
            return [n.value for n in inside if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return []


def _method(path: Path, cls: str, name: str) -> ast.FunctionDef | None:
    for node in _tree(path).body:
        if isinstance(node, ast.ClassDef) and node.name == cls:
            return next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == name), None)
    return None


def _values(path: Path, enum: str) -> dict[str, list[str]]:
    """The values of an enumeration that a method (`is_triton`) of it, or of what it inherits from, asks for."""
    classes = {n.name: n for n in _tree(path).body if isinstance(n, ast.ClassDef)}
    line = [classes[enum], *(classes[b.id] for b in classes[enum].bases if isinstance(b, ast.Name) and b.id in classes)]
    members = {
        ast.unparse(n.targets[0]): str(n.value.value)
        for n in classes[enum].body
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)
    }
    return {
        function.name: [
            members[n.attr] for n in ast.walk(function) if isinstance(n, ast.Attribute) and n.attr in members
        ]
        for cls in line
        for function in cls.body
        if isinstance(function, ast.FunctionDef) and function.name.startswith("is_")
    }


def _asked(node: ast.AST, values: dict[str, list[str]]) -> Iterator[str]:
    """The values that a condition asks for by `is_…()`."""
    for n in ast.walk(node):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
            yield from values.get(n.func.attr, ())


def _mxfp4_runners(path: Path, values: dict[str, list[str]]) -> list[str]:
    """The runners that MXFP4 experts accept, of a release that builds none for others."""
    function, start = (_method(path, "Mxfp4MoEMethod", name) for name in ("create_moe_runner", "__init__"))
    if function is None or start is None or not _leaves_others_out(function):
        return []
    return sorted({*_asked(function, values), *_asked(start, values)})


def _leaves_others_out(function: ast.AST) -> bool:
    """Whether a chain of conditions builds a runner, and what is left at its end gets none."""
    builds = "self.runner ="
    return any(
        isinstance(n, ast.If)
        and n.orelse
        and not isinstance(n.orelse[0], ast.If)
        and any(builds in ast.unparse(body) for body in n.body)
        and not any(builds in ast.unparse(rest) for rest in n.orelse)
        for n in ast.walk(function)
    )


def _fused_runners(path: Path, values: dict[str, list[str]]) -> list[str]:
    """The runners without a core, which need a function for the exchange in use; none in a release that does not insist."""
    function = _method(path, "MoeRunner", "__init__")
    if function is None or "fused_func is None" not in ast.unparse(function):
        return []
    return sorted({
        runner
        for branch in ast.walk(function)
        if isinstance(branch, ast.If) and any("self.runner_core = None" in ast.unparse(n) for n in branch.body)
        for runner in _asked(branch.test, values)
    })  # fmt: skip


def _registered(folder: Path) -> Iterator[tuple[str, str]]:
    """(exchange, runner) of each function that does an exchange and its experts in one."""
    for path in sorted(folder.rglob("*.py")):
        for function in (n for n in ast.walk(_tree(path)) if isinstance(n, ast.FunctionDef)):
            for call in (d for d in function.decorator_list if isinstance(d, ast.Call)):
                if ast.unparse(call.func) == "register_fused_func":
                    exchange, runner = (a.value for a in call.args if isinstance(a, ast.Constant))
                    yield str(exchange), str(runner)


TABLE = Table(DATA, registers_of)

if __name__ == "__main__":
    sys.exit(TABLE.main(sys.argv[1:]))
