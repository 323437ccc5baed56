"""Fingerprints of SGLang's functions: which functions of a source tree are the same as in a release, and which differ.

A fingerprint is a hash of a function's syntax without what has no effect: comments, docstrings, annotations, names of locals, log messages,
the texts of errors. It is the same under every Python that can read the source.

found = fingerprints(Path("site-packages/sglang")) found["srt/arg_groups/hicache_hook.py:handle_hicache"] ==
shipped(Release.parse("0.5.23"))[…]
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spec_lsp.catalog.evaluate import FAILS
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import FINGERPRINTS, read_table
from spec_lsp.files import MAX_SOURCE, MIB, Area, UnreadableError
from spec_lsp.interruption import checkpoint
from spec_lsp.records import dataclass

FILES = ("srt/server_args.py", "srt/configs/model_config.py", "srt/utils/common.py", "srt/utils.py")
FOLDER = "srt/arg_groups"
"""Where SGLang's argument resolution stands, in all releases: every function of these is followed."""
RESOLUTION = (FILES[0], f"{FOLDER}/")
"""How the places of argument resolution begin."""
_COMMON = frozenset(("init__", "post_init__", "from_string", "get_config", "draft"))
"""Names, without their prefix, that are ambiguous without their file."""
MAX_PARSED = 16 * MIB
"""The most characters of all files of one tree that are read."""
MAX_FILES = 2_000
"""Files of one tree that are read; SGLang's resolution has some 150."""
_LOGS = frozenset(("logger", "logging", "warnings", "print"))


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, a method, or a constant of a module. `uses` are the names of others in its text; lines count from 1."""

    place: str
    fingerprint: str
    uses: frozenset[str]
    first: int
    last: int

    @property
    def name(self) -> str:
        """Its own name, without file and class."""
        return bare(self.place)


def fingerprints(root: Path, places: Iterable[str] = ()) -> dict[str, str]:
    """The fingerprints of the package at `root` (the folder `sglang`), by `file:name` (`srt/server_args.py:ServerArgs.from_cli_args`).

    All functions, methods and constants of argument resolution, and what `places` (`layers/linear.py:__init__`) name elsewhere. A file
    that cannot be read, or is not Python, has none.
    """
    return {place: found.fingerprint for place, found in definitions(root, places).items()}


def definitions(root: Path, places: Iterable[str] = ()) -> dict[str, Definition]:
    """The same, with the names that each uses and its lines."""
    wanted: dict[str, set[str]] = {}
    for place in places:
        wanted.setdefault(place.partition(":")[0].rpartition("/")[2], set()).add(place)
    area, left = Area((root,)), MAX_PARSED
    found: dict[str, Definition] = {}
    for file in files(root, wanted):
        checkpoint()
        whole = is_resolution(file)
        asked = wanted.get(file.rpartition("/")[2], set())
        names = {p.partition(":")[2] for p in asked if in_file(p, file)}
        if whole or names:
            text = _text(area, root, file)
            left -= len(text)
            if left < 0:
                break
            there = _in_text(text, file, None if whole else {n.rpartition(".")[2] for n in names})
            found.update((d.place, d) for d in there if whole or names & _called(d.place))
    defined = {d.name for d in found.values()}
    return {p: Definition(p, d.fingerprint, d.uses & defined, d.first, d.last) for p, d in found.items()}


def _called(key: str) -> set[str]:
    """The forms in which a place may name a function: `ServerArgs.from_cli_args`, `from_cli_args`, `ServerArgs`."""
    name = key.partition(":")[2]
    return {name, *name.split(".")}


@functools.cache
def shipped(release: Release) -> Mapping[str, str]:
    """The fingerprints of a shipped release; none if it is not shipped."""
    table = _table()
    return MappingProxyType(dict(map(table.rows.__getitem__, table.members.get(release, ()))))


@functools.cache
def known_places() -> frozenset[str]:
    """The functions in some shipped release's fingerprints, besides those of argument resolution."""
    return frozenset(key for key, _ in _table().rows if not is_resolution(key))


def is_resolution(key: str) -> bool:
    """Whether a function stands in a file of which all functions are followed."""
    file = key.partition(":")[0]
    return file in FILES or file.startswith(f"{FOLDER}/")


@functools.cache
def _table() -> Any:
    return read_table(FINGERPRINTS)


def bare(place: str) -> str:
    """The name of a function without its file and class."""
    return place.partition(":")[2].rpartition(".")[2]


def find(place: str, known: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The known functions (an `index`) that a place means, as handlers and rules write it: `hicache_hook.py:handle_hicache`.

    A function that another release has in another file counts, with or without a leading underscore (`_handle_hicache` was a method); if it
    is in the named file, only those there. For a class all its methods.
    """
    name = place.partition(":")[2].lstrip("_")
    alike = known.get(name, ())
    there = [k for k in alike if in_file(place, k.partition(":")[0])]
    if there or name.strip("_") in _COMMON:
        return tuple(there)
    return tuple(k for k in alike if k.startswith(RESOLUTION))


def index(known: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Functions by all names that a place may use for them."""
    found: dict[str, list[str]] = {}
    for key in known:
        for word in dict.fromkeys(w.lstrip("_") for w in key.partition(":")[2].split(".")):
            found.setdefault(word, []).append(key)
    return found


def in_file(place: str, file: str) -> bool:
    """Whether a place (`moe/utils.py:initialize_moe_config`) names a file, by the end of its path."""
    return ("/" + file).endswith("/" + place.partition(":")[0])


def files(root: Path, names: Iterable[str] = ()) -> list[str]:
    """The files below `root` to be read, by their relative paths: those of resolution, and others with these names."""
    wanted = frozenset(names)
    found = [f for f in FILES if os.path.isfile(root / f)]
    for folder, below, inside in os.walk(root / "srt"):
        below[:] = sorted(b for b in below if b != "__pycache__")
        relative = os.path.relpath(folder, root).replace(os.sep, "/")
        followed = relative == FOLDER or relative.startswith(FOLDER + "/")
        found += [f"{relative}/{n}" for n in sorted(inside) if n.endswith(".py") and (followed or n in wanted)]
        if len(found) > MAX_FILES:
            break
    return list(dict.fromkeys(found))[:MAX_FILES]


def _text(area: Area, root: Path, file: str) -> str:
    """The text of a file; empty for one that cannot be read."""
    try:
        return area.read(root / file, MAX_SOURCE).decode().removeprefix("\ufeff")
    except (ValueError, UnreadableError):
        return ""


def _in_text(text: str, file: str, names: set[str] | None) -> list[Definition]:
    """The definitions of a file: all, or those with these names."""
    try:
        if names is not None and not any(name in text for name in names):
            return []
        return [_definition(*found) for found in _in_body(ast.parse(text).body, f"{file}:", names)]
    except FAILS:
        return []


def _in_body(body: Iterable[ast.stmt], prefix: str, names: set[str] | None) -> Iterator[tuple[str, ast.AST, ast.stmt]]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if names is None or node.name in names:
                    yield prefix + node.name, node, node
            case ast.ClassDef():
                whole = names is None or node.name in names
                yield from _in_body(node.body, f"{prefix}{node.name}.", None if whole else names)
            case ast.If() | ast.Try():
                yield from _in_body([*node.body, *node.orelse], prefix, names)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if prefix.endswith(":"):
                if names is None or name in names:
                    yield prefix + name, value, node
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if prefix.endswith(":"):
                if names is None or name in names:
                    yield prefix + name, value, node


def _definition(place: str, node: ast.AST, statement: ast.stmt) -> Definition:
    checkpoint()
    locals_ = _locals(node)
    names = {name: f"<{number}>" for number, name in enumerate(locals_)}
    text: list[str] = []
    _write(node, {**names, getattr(node, "name", ""): "<itself>"}, text)
    uses: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=name) if name not in locals_:
                uses.add(name)
            case ast.Attribute(attr=name):
                uses.add(name)
            case ast.ImportFrom(names=imported):
                uses.update(a.name for a in imported)
    digest = hashlib.blake2b("".join(text).encode("utf-8", "replace"), digest_size=6).hexdigest()
    first = min((d.lineno for d in getattr(statement, "decorator_list", ())), default=statement.lineno)
    return Definition(place, digest, frozenset(uses - {bare(place)}), first, statement.end_lineno or statement.lineno)


# --- what of the syntax counts -----------------------------------------------------------------------------------------


def _locals(function: ast.AST) -> dict[str, None]:
    """The names that a function binds itself, in an order that does not depend on the names; imported names are kept."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return {}
    found: dict[str, None] = {}
    other: set[str] = {function.name}
    for node in ast.walk(function):
        name: str | None = None
        match node:
            case ast.Name(ctx=ast.Store()):
                name = node.id
            case ast.arg():
                name = node.arg
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                name = node.name
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                name = node.name
            case ast.Global() | ast.Nonlocal():
                other.update(node.names)
            case ast.alias():
                other.add((node.asname or node.name).split(".")[0])
        if name is not None:
            found[name] = None
    return {name: None for name in found if name not in other}


_UNREAD = frozenset(("ctx", "kind", "type_comment", "type_params", "annotation", "returns"))
"""Parts of nodes that have no effect, or that not every Python has."""


_NAMED: Mapping[type[ast.AST], str] = {
    **dict.fromkeys(
        (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar), "name"
    ),
    ast.Name: "id",
    ast.arg: "arg",
}
"""Nodes that name something, with the part that is the name."""


def _write(node: Any, names: Mapping[str, str], text: list[str]) -> None:
    """Append a node's syntax to `text`: its kind and its parts, with locals replaced by numbers."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        node = ast.Raise(node.exc.func)
    elif isinstance(node, ast.Assert):
        node = ast.Assert(node.test)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        node = ast.Assign([node.target], node.value)
    if isinstance(node, ast.AST):
        own = _NAMED.get(type(node))
        text.append(type(node).__name__ + "(")
        for name in node._fields:
            value = getattr(node, name, None)
            if name == own:
                text.append(names.get(value, value) if isinstance(value, str) else "")
            elif name not in _UNREAD and value is not None and value != []:
                text.append(name + "=")
                _write(value, names, text)
        text.append(")")
    elif isinstance(node, list):
        text.append("[")
        for item in node:
            if not _is_silent(item):
                _write(item, names, text)
        text.append("]")
    else:
        text.append(f"{node!r};")


def _is_silent(node: Any) -> bool:
    """Whether a statement has no effect but output: a docstring, a log line, `pass`."""
    if isinstance(node, ast.Pass) or (isinstance(node, ast.AnnAssign) and node.value is None):
        return True
    if not isinstance(node, ast.Expr):
        return False
    if isinstance(node.value, ast.Constant):
        return True
    if not isinstance(node.value, ast.Call):
        return False
    function: ast.expr = node.value.func
    while isinstance(function, ast.Attribute):
        function = function.value
    name = function.id if isinstance(function, ast.Name) else ""
    return name in _LOGS or name.startswith(("log_", "rank0_log"))


def forget() -> None:
    """Drop cached tables after they were written again."""
    shipped.cache_clear()
    known_places.cache_clear()
    _table.cache_clear()
