"""spec_lsp/catalog/data/benches.json and dynamo.json: the flags that programs around SGLang's parser take for themselves, by release.

    python -m tests.sources.own FOLDER [WHEELS]

FOLDER holds the sources of all releases (FOLDER/0.5.23/sglang/…): the benches' flags are the `add_argument` calls of their modules. WHEELS
holds Dynamo's wheels (ai_dynamo-1.6.1-….whl, of the package registry): its flags are those of `dynamo/sglang/args.py` and of what that
imports of its own arguments, and its metadata says which SGLang it is made for.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spec_lsp.catalog.release import Release
from tests.sources.table import Table

DATA = Path(__file__).parents[2] / "spec_lsp/catalog/data"
MODULES: Mapping[str, tuple[str, ...]] = {
    "one_batch": ("benchmark/one_batch.py", "bench_one_batch.py"),
    "one_batch_server": (
        "benchmark/one_batch_server.py",
        "bench_one_batch_server.py",
        "test/bench_one_batch_server_internal.py",
    ),
    "offline_throughput": ("benchmark/offline_throughput.py", "bench_offline_throughput.py"),
    "deep_gemm": ("compile_deep_gemm.py",),
    "weight_cache": ("srt/weight_cache/daemon.py",),
}
"""Where each program's parser is written, in any release: the first that adds a flag is the one."""
SWITCHES = ("store_true", "store_false", "version", "help", "store_const", "count")
_GROUP = re.compile(r"dynamo\.common\.configuration\.groups\.(\w+)|dynamo\.sglang\.(backend_args)")


def benches(root: Path) -> dict[str, dict[str, Any]]:
    """`PROGRAM --flag` → how many words follow it, of the release whose sources are below `root`."""
    found = {}
    for program, modules in MODULES.items():
        texts = (root / "sglang" / module for module in modules)
        flags = next(filter(None, (flags_of([t.read_text("utf-8-sig")]) for t in texts if t.is_file())), {})
        found.update({f"{program} {flag}": {"values": values} for flag, values in flags.items()})
    return found


def flags_of(texts: list[str]) -> dict[str, str]:
    """Every flag that some modules add to a parser → how many words follow it: none (""), one ("1"), any number ("*")."""
    trees = [ast.parse(text) for text in texts]
    both_ways = {"BooleanOptionalAction"} | {
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and "BooleanOptionalAction" in "".join(map(ast.unparse, node.bases))
    }
    found: dict[str, str] = {}
    for tree in trees:
        for names, settings in _added(tree):
            action = settings.get("action", "")
            negated = settings.get("negatable") or any(action.endswith(each) for each in both_ways)
            values = "" if negated or action in SWITCHES else _values(settings.get("nargs", ""))
            for name in names:
                found[name] = values
                if negated:
                    found["--no-" + name[2:]] = ""
    return dict(sorted(found.items()))


def _values(nargs: str) -> str:
    return "1" if nargs in ("", "1") else "*"


def _added(tree: ast.AST) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The names of each flag and what is said of it: of calls, and of tables of them (`{"flags": ["--endpoint"], "action": …}`)."""
    for node in ast.walk(tree):
        said: dict[str, Any] = {}
        names: list[str] = []
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called not in ("add_argument", "add_negatable_bool_argument"):
                continue
            said = {k.arg: k.value for k in node.keywords if k.arg}
            names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            names += [said[k].value for k in ("flag_name", "obsolete_flag") if isinstance(said.get(k), ast.Constant)]
            if called == "add_negatable_bool_argument":
                said["negatable"] = ast.Constant("yes")
        elif isinstance(node, ast.Dict):
            said = {k.value: v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)}
            if isinstance(listed := said.get("flags"), ast.List):
                names = [e.value for e in listed.elts if isinstance(e, ast.Constant)]
        settings = {k: str(v.value) if isinstance(v, ast.Constant) else ast.unparse(v) for k, v in said.items()}
        if names := [n for n in names if isinstance(n, str) and n.startswith("--")]:
            yield names, settings


def dynamo(wheels: Path) -> dict[str, Any]:
    """Dynamo's versions with the SGLang each is made for, and its flags where they change from one version to the next."""
    made_for: dict[str, str] = {}
    flags: dict[str, dict[str, str | None]] = {}
    before: dict[str, str] = {}
    for version, path in sorted((Release.parse(p.name.split("-")[1]), p) for p in wheels.glob("ai_dynamo-*.whl")):
        with zipfile.ZipFile(path) as wheel:
            release = _asked_for(wheel)
            if release is None or "dynamo/sglang/args.py" not in wheel.namelist():
                continue
            made_for[str(version)] = release
            now = {**flags_of(_modules(wheel)), "--help": "", "--version": ""}
        for flag in {*before, *now}:
            if before.get(flag) != now.get(flag):
                flags.setdefault(flag, {})[str(version)] = now.get(flag)
        before = now
    return {"made_for": made_for, "flags": dict(sorted(flags.items()))}


def _asked_for(wheel: zipfile.ZipFile) -> str | None:
    """The release of SGLang that the extra `sglang` pins."""
    metadata = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    pin = re.search(r"^Requires-Dist: sglang\b[^=\n]*==([\w.]+)", wheel.read(metadata).decode(), re.M)
    return pin[1] if pin else None


def _modules(wheel: zipfile.ZipFile) -> list[str]:
    """The texts of the worker's arguments and of the groups of arguments that they import, in turn."""
    waiting, seen, texts = ["dynamo/sglang/args.py"], set(), []
    while waiting:
        name = waiting.pop()
        if name in seen or name not in wheel.namelist():
            continue
        seen.add(name)
        texts.append(text := wheel.read(name).decode())
        for group, own in _GROUP.findall(text):
            waiting.append(f"dynamo/sglang/{own}.py" if own else f"dynamo/common/configuration/groups/{group}.py")
    return texts


TABLE = Table(DATA / "benches.json", benches)

if __name__ == "__main__":
    if len(sys.argv) > 2:
        text = json.dumps(dynamo(Path(sys.argv[2])), indent=0)
        (DATA / "dynamo.json").write_text(text + "\n", "utf-8")
    sys.exit(TABLE.main(sys.argv[1:2]))
