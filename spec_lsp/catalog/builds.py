"""SGLang as somebody has it: a release, or a build of somebody's own that is read from its sources, never imported.

    release = release_at(Path(".venv/lib/python3.12/site-packages/sglang"))
    str(release)                # 0.5.23; of a build 0.5.23+7f3a91c: the release that it is nearest to, and its content

A build's flags and variables are its own (`store.load`, `store.environment`); which of its functions are a release's is told by their
fingerprints, and what follows the others is not certain (`resolution/builds.py`). What was read is kept by its content.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from spec_lsp.catalog import store
from spec_lsp.catalog.evaluate import FAILS, CannotTell
from spec_lsp.catalog.fingerprints import Definition, definitions, known_places, shipped
from spec_lsp.catalog.installed import SERVER_ARGS
from spec_lsp.catalog.model import Flag, Variable
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.source import read_flags
from spec_lsp.catalog.variables import modules, read_variables
from spec_lsp.files import MAX_DOCUMENT, MAX_SOURCE, MIB, Area, UnreadableError
from spec_lsp.interruption import checkpoint
from spec_lsp.kept import Shelf
from spec_lsp.records import dataclass

WHEELS = "wheels.json"
MADE = ("_version.py",)
"""Files that are made where a package is built."""
DIGEST = 16
MAX_BUILDS = 16
"""Builds that are remembered: somebody who works on SGLang itself makes another with each save."""
FORMAT = 2
"""Of what is kept under the cache folder."""
SHELF = Shelf("sglang", files=128, size=32 * MIB)
"""What was read. The flags, variables and functions of a build take a quarter of a MiB."""
LEAST_SHARED = 0.1
"""The part of the nearest release's functions that a build has just so; neighbouring releases share 0.7 and more."""


class NoBuildError(Exception):
    """There is no SGLang that can be read; the message says why, as what is said of the path."""


@dataclass(frozen=True, slots=True)
class OwnBuild:
    """A build that is no release. `release` is the one it is nearest to, with its content as the local part; `doubts` are the flags of
    which the sources do not show everything."""

    release: Release
    flags: tuple[Flag, ...]
    variables: tuple[Variable, ...]
    functions: Mapping[str, Definition]
    doubts: tuple[str, ...] = ()


def release_at(root: Path) -> Release:
    """The release that the package at `root` is; one with a local part for a build, which `store` knows from then on.

    Raises NoBuildError.
    """
    key = content(root)
    if key in wheels():
        return wheels()[key]
    known = next((b.release for b in store.builds.values() if b.release.local == key[:7]), None)
    if known is not None:
        return known
    build = _kept(key) or _read(root, key)
    base = build.release.stock
    same = build.flags == store.load(base).flags and {v.name: v for v in build.variables} == store.environment(base)
    if same and {place: d.fingerprint for place, d in build.functions.items()} == shipped(base):
        return base
    while len(store.builds) >= MAX_BUILDS:
        del store.builds[next(iter(store.builds))]
    store.builds[build.release] = build
    return build.release


def content(root: Path) -> str:
    """A hash of all Python files of a package. Raises NoBuildError.

    Where sizes and times of all are as they were, it is what it was.
    """
    area = Area((root,))
    try:
        area.read(root / SERVER_ARGS, MAX_SOURCE)
    except UnreadableError as error:
        raise NoBuildError(f"holds no SGLang that can be read (srt/server_args.py {error})") from error
    paths = [path for path in modules(root) if path.name not in MADE]
    seen = f"content-{_marks(root, paths)}"
    known = SHELF.get(seen, 2 * DIGEST)
    if known is not None and len(known) == 2 * DIGEST:
        return known
    whole = hashlib.blake2b(digest_size=DIGEST)
    for path in paths:
        checkpoint()
        whole.update(path.relative_to(root).as_posix().encode("utf-8", "surrogateescape"))
        whole.update(hashlib.blake2b(_data(area, path), digest_size=DIGEST).digest())
    SHELF.keep(seen, whole.hexdigest())
    return whole.hexdigest()


def _marks(root: Path, paths: Iterable[Path]) -> str:
    """What tells, without reading files, whether any of them changed."""
    whole = hashlib.blake2b(os.fsencode(root), digest_size=DIGEST)
    for path in paths:
        whole.update(_mark(path))
    return whole.hexdigest()


def _mark(path: Path) -> bytes:
    try:
        status = os.lstat(path)
    except OSError:
        return b"\0"
    return os.fsencode(path) + f"\0{status.st_size}\0{status.st_mtime_ns}\0".encode()


def _data(area: Area, path: Path) -> bytes:
    try:
        return area.read(path, MAX_SOURCE)
    except UnreadableError:
        return b""


@functools.cache
def wheels() -> Mapping[str, Release]:
    """The shipped releases by the content of their wheels."""
    path = store.DATA / WHEELS
    return (
        {key: Release.parse(name) for name, key in json.loads(path.read_text("utf-8")).items()} if path.exists() else {}
    )


def add_wheel(release: Release, root: Path) -> None:
    """Ship the content of a release's wheel."""
    known = {str(r): key for key, r in wheels().items()} | {str(release): content(root)}
    text = json.dumps({str(r): known[str(r)] for r in sorted(map(Release.parse, known))}, indent=1)
    store.DATA.mkdir(exist_ok=True)
    (store.DATA / WHEELS).write_text(text + "\n", "utf-8")
    wheels.cache_clear()


def _read(root: Path, key: str) -> OwnBuild:
    """Read a build, and keep what was read."""
    try:
        reading = read_flags(root)
    except CannotTell as problem:
        raise NoBuildError(f"cannot be read as SGLang: {problem}") from problem
    functions = definitions(root, known_places())
    base, shared = nearest_release(functions)
    if shared < LEAST_SHARED * len(shipped(base)):
        raise NoBuildError(
            f"is not recognised as SGLang: it shares {shared} of {len(shipped(base))} functions with {base}, the nearest release"
        )
    variables = read_variables(root, store.environment(base))
    build = OwnBuild(base._replace(local=key[:7]), reading.flags, variables, functions, reading.doubts)
    _keep(key, build)
    return build


def nearest_release(functions: Mapping[str, Definition]) -> tuple[Release, int]:
    """The shipped release that shares most of both its functions and these, the newer of two; and how many are shared."""
    shared = {r: _shared(functions, shipped(r)) for r in store.releases()}
    nearest = max(shared, key=lambda r: (shared[r] / (len(functions) + len(shipped(r))), r))
    return nearest, shared[nearest]


def _shared(functions: Mapping[str, Definition], known: Mapping[str, str]) -> int:
    return sum(known.get(place) == d.fingerprint for place, d in functions.items())


# --- what was read before ----------------------------------------------------------------------------------------------


@functools.cache
def _reader() -> str:
    """What the kept files were read with: another spec-lsp reads otherwise, or other functions."""
    table = (store.DATA / store.FINGERPRINTS).read_bytes()
    return f"{FORMAT}-{hashlib.blake2b(table, digest_size=4).hexdigest()}"


def _name(key: str) -> str:
    return f"{key}-{_reader()}.json"


def _kept(key: str) -> OwnBuild | None:
    """What was read of the same content before; None where nothing was, or where it cannot be used."""
    try:
        data: Any = json.loads(SHELF.get(_name(key), MAX_DOCUMENT) or "")
        base = store.releases()[store.releases().index(Release.parse(data["release"]))]
        return OwnBuild(
            base._replace(local=key[:7]),
            tuple(map(store.decode_flag, data["flags"])),
            tuple(Variable(*row) for row in data["variables"]),
            {p: Definition(p, f, frozenset(uses), first, last) for p, f, uses, first, last in data["functions"]},
            tuple(data["doubts"]),
        )
    except FAILS:
        return None


def _keep(key: str, build: OwnBuild) -> None:
    """Write what was read; where that cannot be, it is read again the next time."""
    functions = [[d.place, d.fingerprint, sorted(d.uses), d.first, d.last] for d in build.functions.values()]
    data = {
        "release": str(build.release.stock),
        "flags": list(map(store.encode_flag, build.flags)),
        "variables": list(map(store.encode_variable, build.variables)),
        "functions": functions,
        "doubts": list(build.doubts),
    }
    SHELF.keep(_name(key), json.dumps(data, separators=(",", ":")))
