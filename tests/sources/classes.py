"""spec_lsp/facts/data/classes.json: what each of SGLang's model classes can do and asserts, by release.

`python -m tests.sources.classes FOLDER` makes it from the sources of all releases in FOLDER (FOLDER/0.5.23/sglang/…). See
spec_lsp/facts/classes.py for its shape.

Attention heads: a class counts as splitting its heads over `tp` (or `attn`: attention TP) ranks when every class with RadixAttention
that it can build either asserts that those ranks divide the heads, raises where they do not, or hands the heads to `divide()` or to
QKVParallelLinear, which do. Where two of them differ, or one pads, nothing is said of the class.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.sources.table import Table
from tests.sources.trees import ModelClass, Models

DATA = Path(__file__).parents[2] / "spec_lsp" / "facts" / "data" / "classes.json"

ATTENTION = {"RadixAttention"}
CAPTURES = {
    "eagle3": "set_eagle3_layers_to_capture",
    "dflash": "set_dflash_layers_to_capture",
    "dspark": "set_dspark_layers_to_capture",
}
SUPPORTS = {
    "kv_scales": "load_kv_cache_scales",
    "bitsandbytes": "bitsandbytes_stacked_params_mapping",
    "layered": "load_weights_to_module",
    "cuda_vmm": "supports_cuda_vmm_feature_transport",
    "split_prefill": "forward_split_prefill",
}
ONE_STAGE = r"(pp_group\.world_size|\bpp_size) == 1$|is_first_rank and .*is_last_rank$"
MORE_STAGES = r"^\S*(pp_group\.world_size|\bpp_size) != 1$"
NO_COPIES = r"ep_num_redundant_experts == 0$"


def facts_of(models: Models, entry: ModelClass) -> dict[str, Any]:
    """What one release says of one class."""
    facts: dict[str, Any] = {}
    line = models.line(entry)
    names = {n for c in line for n in (*c.methods, *c.attributes)}
    facts["captures"] = sorted(kind for kind, method in CAPTURES.items() if method in names)
    facts["supports"] = _supports(line, names)
    forward = next((c.methods["forward"] for c in line if "forward" in c.methods), None)
    if forward is not None:
        facts["stages"] = "pp_proxy_tensors" in {a.arg for a in (*forward.args.args, *forward.args.kwonlyargs)}
    built = models.built(entry)
    constructors = [f for c in built for _, f in models.method(c, "__init__")]
    if any(_insists(f, ONE_STAGE, MORE_STAGES) for f in constructors):
        facts["stages"] = False
    if any(_insists(f, NO_COPIES) for f in constructors):
        facts["expert_copies"] = False
    facts.update(_heads(models, built))
    if _mlp_over_tp(models, built):
        facts["mlp"] = "tp"
    widths = {w for c in built for _, f in models.method(c, "__init__") for w in _expert_widths(f)}
    if len(widths) == 1 and (width := widths.pop()):
        facts["expert_width"] = width
    if any(_asks_for_an_expert_a_rank(models, c) for c in built):
        facts["expert_each"] = True
    towers = [call for f in constructors for call in _named(f, "VisionAttention")]
    if towers:
        facts["vision"] = True
    if towers and (over := _tower_ranks(towers, constructors)):
        facts["towers"] = over
    return facts


def _supports(line: list[ModelClass], names: set[str]) -> list[str]:
    """What the parts of SGLang that look for a method or attribute of the class find."""
    found = {kind for kind, name in SUPPORTS.items() if name in names | _passed_on(line) and not _stops(line, name)}
    load = _method(line, "load_weights")
    if load is not None and any(_last(d) == "supports_quantized_rl_reload" for d in load.decorator_list):
        found.add("flash_rl")
    return sorted(found)


def _method(line: list[ModelClass], name: str) -> ast.FunctionDef | None:
    return next((c.methods[name] for c in line if name in c.methods), None)


def _stops(line: list[ModelClass], name: str) -> bool:
    """Whether the method is there to say that there is none."""
    function = _method(line, name)
    return function is not None and ast.unparse(function.body[-1]).startswith(("raise ", "assert False"))


def _passed_on(line: list[ModelClass]) -> set[str]:
    """What a class asks of another by `__getattr__`: anything that a class of its module has."""
    modules = [c.module for c in line if "__getattr__" in c.methods]
    return {n for module in modules for c in module.classes.values() for n in (*c.methods, *c.attributes)}


# --- attention heads --------------------------------------------------------------------------------------------------


def _heads(models: Models, built: list[ModelClass]) -> dict[str, Any]:
    kinds: list[tuple[str, bool] | None] = []
    for cls in built:
        functions = list(models.method(cls, "__init__"))
        if any(_calls(f, ATTENTION) for _, f in functions):
            kinds.append(_split([f for _, f in functions]))
    if not kinds or any(k is None for k in kinds):
        return {}
    over = {k[0] for k in kinds if k is not None}
    if len(over) > 1:
        return {}
    found: dict[str, Any] = {"heads": over.pop()}
    if all(k is not None and k[1] for k in kinds):
        found["kv_heads"] = True
    return found


def _calls(function: ast.FunctionDef, names: set[str]) -> bool:
    return any(isinstance(n, ast.Call) and _last(n.func) in names for n in ast.walk(function))


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _split(functions: list[ast.FunctionDef]) -> tuple[str, bool] | None:
    """Over which ranks these constructors insist on splitting the query heads, and whether the KV heads too."""
    query: set[str] = set()
    kv: set[str] = set()
    for function in functions:
        for heads, ranks in _insisted(function):
            over = _ranks(function, ranks)
            if over and ("kv" in heads or "key_value" in heads):
                kv.add(over)
            elif over and "head" in heads:
                query.add(over)
    if len(query) != 1 or kv - query:
        return None
    return next(iter(query)), bool(kv)


def _insisted(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """(text of the heads, what has to divide them) of a constructor; None as divisor stands for QKVParallelLinear's default group."""
    for node, always in _statements(function.body):
        own = [node.test] if isinstance(node, ast.If) else [node]
        for inner in (n for part in own for n in ast.walk(part)):
            if isinstance(inner, ast.Call) and _last(inner.func) == "divide" and len(inner.args) == 2:
                found: list[tuple[str, ast.expr | None]] = [(ast.unparse(inner.args[0]), inner.args[1])]
            elif isinstance(inner, ast.Call) and _last(inner.func) == "QKVParallelLinear":
                found = list(_of_projection(inner))
            else:
                continue
            yield from (pair for pair in found if always or "kv" in pair[0])
        if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and _raises(node.body)):
            for inner in ast.walk(node.test):
                if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mod):
                    heads = ast.unparse(inner.left)
                    if always or "kv" in heads or "key_value" in heads:
                        yield heads, inner.right


def _statements(body: list[ast.stmt], always: bool = True) -> Iterator[tuple[ast.stmt, bool]]:
    """Statements of a constructor, and whether they always run: of those in a branch only what is said of KV heads counts."""
    for node in body:
        yield node, always
        if isinstance(node, ast.If) and not _raises(node.body):
            yield from _statements([*node.body, *node.orelse], False)


def _insists(function: ast.FunctionDef, wanted: str, unwanted: str = r"(?!)") -> bool:
    """Whether a constructor always asserts the condition `wanted`, or raises on `unwanted` (regular expressions for their text)."""
    return any(
        (isinstance(node, ast.Assert) and re.search(wanted, ast.unparse(node.test)))
        or (isinstance(node, ast.If) and _raises(node.body) and re.search(unwanted, ast.unparse(node.test)))
        for node, always in _statements(function.body)
        if always
    )


def _raises(body: list[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Raise) for n in body)


def _of_projection(call: ast.Call) -> Iterator[tuple[str, ast.expr | None]]:
    given = {k.arg: k.value for k in call.keywords if k.arg}
    heads = given.get("total_num_heads") or (call.args[2] if len(call.args) > 2 else None)
    kv_heads = given.get("total_num_kv_heads") or (call.args[3] if len(call.args) > 3 else None)
    group = given.get("tp_size") or given.get("parallel_group")
    if any(k.arg is None for k in call.keywords):
        return
    if heads is not None and "head" in ast.unparse(heads):
        yield "heads", group
    if kv_heads is not None and "kv" in ast.unparse(kv_heads):
        yield "kv_heads", group


def _ranks(function: ast.FunctionDef, ranks: ast.expr | None) -> str:
    """ "tp" or "attn": which group's size a divisor is; empty where it is another's."""
    if ranks is None:
        return "tp"
    if isinstance(ranks, ast.Constant) and isinstance(ranks.value, str):
        return {"tp": "tp", "attn_tp": "attn"}.get(ranks.value, "")
    text = ast.unparse(ranks)
    values = [text]
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                if text in [ast.unparse(part) for part in parts]:
                    values.append(ast.unparse(node.value))
    said = values[1:] or values
    if len(said) != 1 or " if " in said[0]:
        return ""
    if re.search(r"attn_tp_size|get_attention_tp_size|attention_tp_size|'attn_tp'", said[0]):
        return "attn"
    if re.search(r"get_tensor_model_parallel_world_size|parallel\(\)\.tp_size|parallel\.tp_size|'tp'", said[0]):
        return "tp"
    return ""


# --- MLPs ---------------------------------------------------------------------------------------------------------------


def _mlp_over_tp(models: Models, built: list[ModelClass]) -> bool:
    """Whether every MLP with a merged gate and up projection is split over all TP ranks, whoever builds it."""
    found = False
    for cls in built:
        for owner, function in models.method(cls, "__init__"):
            for call in (n for n in ast.walk(function) if isinstance(n, ast.Call)):
                if _last(call.func) == "MergedColumnParallelLinear":
                    found = True
                    if not _is_over_tp(function, call):
                        return False
                elif any(k.arg in ("tp_size", "parallel_group", None) for k in call.keywords):
                    other = models.find(owner.module, _last(call.func))
                    if other is not None and any(
                        _calls(f, {"MergedColumnParallelLinear"}) for _, f in models.method(other, "__init__")
                    ):
                        return False
    return found


def _is_over_tp(function: ast.FunctionDef, call: ast.Call) -> bool:
    given = {k.arg: k.value for k in call.keywords}
    group = given.get("tp_size") or given.get("parallel_group")
    if None in given:
        return False
    if group is None:
        return True
    if isinstance(group, ast.Constant):
        return group.value == "tp"
    arguments = function.args
    defaults = dict(zip(reversed([a.arg for a in arguments.args]), reversed(arguments.defaults), strict=False))
    defaults.update({a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d})
    default = defaults.get(ast.unparse(group))
    return isinstance(default, ast.Constant) and default.value in ("tp", None)


# --- experts and vision -----------------------------------------------------------------------------------------------


def _asks_for_an_expert_a_rank(models: Models, cls: ModelClass) -> bool:
    """`if tp_size > number of experts: raise` in its constructor."""
    for _, function in models.method(cls, "__init__"):
        for node in ast.walk(function):
            if isinstance(node, ast.If) and _raises(node.body) and isinstance(node.test, ast.Compare):
                test = node.test
                if isinstance(test.ops[0], ast.Gt) and "expert" in ast.unparse(test.comparators[0]):
                    return _ranks(function, test.left) == "tp" or ast.unparse(test.left) == "self.tp_size"
    return False


def _expert_widths(function: ast.FunctionDef) -> Iterator[str]:
    """The key of config.json that the width of routed experts comes from; "" where it comes from elsewhere."""
    for call in (n for n in ast.walk(function) if isinstance(n, ast.Call)):
        given = {k.arg: k.value for k in call.keywords}
        if "num_experts" in given and "top_k" in given and "intermediate_size" in given:
            width = given["intermediate_size"]
            direct = isinstance(width, ast.Attribute) and ast.unparse(width.value) in ("config", "self.config")
            yield width.attr if direct and isinstance(width, ast.Attribute) else ""


def _named(function: ast.FunctionDef, name: str) -> Iterator[ast.Call]:
    return (n for n in ast.walk(function) if isinstance(n, ast.Call) and _last(n.func) == name)


def _tower_ranks(towers: list[ast.Call], constructors: list[ast.FunctionDef]) -> str:
    """ "attn" where the ranks of attention TP have to divide the heads of all towers, "copies" where `--mm-enable-dp-encoder` gives each
    rank a whole tower instead.

    Towers that pad their heads say nothing, and neither do those that are always whole.
    """
    given = [{k.arg for k in call.keywords} for call in towers]
    text = "\n".join(map(ast.unparse, constructors))
    if any(keywords & {"num_dummy_heads", None} for keywords in given) or re.search(
        r"use_data_parallel ?= ?True", text
    ):
        return ""
    return "copies" if "mm_enable_dp_encoder" in text else "attn"


# --- the file ----------------------------------------------------------------------------------------------------------


def classes_of(root: Path) -> dict[str, dict[str, Any]]:
    """The facts of each class that an `architectures` of config.json can name."""
    models = Models(root)
    return {entry.node.name: facts_of(models, entry) for entry in models.entries()}


TABLE = Table(DATA, classes_of)

if __name__ == "__main__":
    sys.exit(TABLE.main(sys.argv[1:]))
