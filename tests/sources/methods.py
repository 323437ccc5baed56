"""spec_lsp/facts/data/methods.json: the hardware and data types that each quantization method takes on NVIDIA, by release.

`python -m tests.sources.methods FOLDER` makes it from the sources of all releases in FOLDER (FOLDER/0.5.23/sglang/…). See
spec_lsp/facts/methods.py for its shape.

Methods are those of layers/quantization/__init__.py's registry; of each configuration class get_min_capability and
get_supported_act_dtypes are evaluated as on a CUDA device. What cannot be evaluated is left out.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

from tests.sources.table import Table

DATA = Path(__file__).parents[2] / "spec_lsp" / "facts" / "data" / "methods.json"
DTYPES = {"half": "float16", "float": "float32"}


def methods_of(root: Path) -> dict[str, dict[str, Any]]:
    """method → {"capability", "dtypes"} of the release whose sources are below `root`."""
    folder = root / "sglang" / "srt" / "layers" / "quantization"
    classes = {
        node.name: node
        for path in sorted(folder.rglob("*.py"))
        for node in ast.parse(path.read_text("utf-8-sig")).body
        if isinstance(node, ast.ClassDef)
    }
    registry = ast.parse((folder / "__init__.py").read_text("utf-8-sig"))
    found = {}
    for method, name in _registered(registry.body):
        facts = {
            "capability": _answer(classes, name, "get_min_capability", method),
            "dtypes": _answer(classes, name, "get_supported_act_dtypes", method),
        }
        found[method] = {key: value for key, value in facts.items() if value is not None}
    return dict(sorted(found.items()))


def _registered(body: list[ast.stmt], method: str = "") -> list[tuple[str, str]]:
    """(method, class) of the registry's dictionaries, the branches of other platforms left out."""
    found = []
    for node in body:
        if isinstance(node, ast.If):
            truth = _truth(node.test, method)
            found += _registered(node.body) if truth else _registered(node.orelse) if truth is False else []
            continue
        for inner in ast.walk(node):
            named = isinstance(node, (ast.Assign, ast.AnnAssign)) and "CPU" in ast.unparse(node).split("=")[0]
            if isinstance(inner, ast.Dict) and not named:
                found += [
                    (key.value, value.id)
                    for key, value in zip(inner.keys, inner.values, strict=True)
                    if isinstance(key, ast.Constant) and isinstance(value, ast.Name)
                ]
    return found


def _truth(test: ast.expr, method: str) -> bool | None:
    """A condition about platforms, as on a CUDA device; None where it is about something else."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            truth = _truth(inner, method)
            return None if truth is None else not truth
        case ast.BoolOp(op=op, values=values):
            parts = [_truth(v, method) for v in values]
            if isinstance(op, ast.Or):
                return True if True in parts else None if None in parts else False
            return False if False in parts else None if None in parts else True
    text = ast.unparse(test)
    if text == "self.use_mxfp8":
        return method == "mxfp8"
    if any(
        word in text
        for word in ("npu", "musa", "hip", "cpu", "xpu", "gfx95", "mps", "hpu", "aiter", "block_fp8_required")
    ):
        return False
    return True if "cuda" in text else None


def _answer(classes: dict[str, ast.ClassDef], name: str, question: str, method: str) -> Any:
    """What a class answers for this method of quantization, on CUDA; None where that cannot be told."""
    node = classes.get(name)
    while node is not None:
        function = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == question), None)
        if function is not None:
            value = _returned(function.body, method)
            if (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Attribute)
                and isinstance(value.func.value, ast.Name)
            ):
                return _answer(classes, value.func.value.id, question, method)
            return _literal(value, method)
        node = next((classes[b.id] for b in node.bases if isinstance(b, ast.Name) and b.id in classes), None)
    return None


def _returned(body: list[ast.stmt], method: str) -> ast.expr | None:
    for node in body:
        if isinstance(node, ast.Return):
            return node.value
        if isinstance(node, ast.If):
            truth = _truth(node.test, method)
            if truth is None:
                return None
            value = _returned(node.body if truth else node.orelse, method)
            if value is not None:
                return value
    return None


def _literal(value: ast.expr | None, method: str) -> Any:
    match value:
        case ast.IfExp(test=test, body=body, orelse=orelse):
            truth = _truth(test, method)
            return None if truth is None else _literal(body if truth else orelse, method)
        case ast.Constant(value=int() as number):
            return number
        case ast.List(elts=elements):
            names = [e.attr for e in elements if isinstance(e, ast.Attribute)]
            return [DTYPES.get(n, n) for n in names] if len(names) == len(elements) else None
    return None


TABLE = Table(DATA, methods_of)

if __name__ == "__main__":
    sys.exit(TABLE.main(sys.argv[1:]))
