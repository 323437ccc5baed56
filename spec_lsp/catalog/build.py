"""Makes the shipped catalogs: `spec-lsp catalog build PATH-TO-SGLANG [--release V] [--python INTERPRETER]`.

SGLang is read in one of two ways, and the report says which:

- **import**: an interpreter that has SGLang builds the real parser and prints what is in it. Exact.
- **source**: the sources are read without being run, for those who have only the wheel. Where they do not show everything,
  it says what is missing and writes nothing.

Environment variables always come from the sources.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from spec_lsp.catalog import builds, fingerprints, store
from spec_lsp.catalog.evaluate import CannotTell
from spec_lsp.catalog.model import ACTIONS, Action, Flag, Variable
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.source import ACTION_NAMES, Reading, is_deprecated, read_flags, replacement_in
from spec_lsp.catalog.variables import read_variables
from spec_lsp.expressions import expression
from spec_lsp.records import dataclass

_VERSION = expression(r"^\s*(?:__version__|version)\s*=.*?['\"]([0-9][^'\"]*)['\"]", re.MULTILINE)
_SCRIPT = Path(__file__).with_name("introspect.py")


class BuildError(Exception):
    """Nothing was written; the message says why."""


@dataclass(frozen=True)
class Built:
    """What was read of one SGLang, and how."""

    release: Release
    how: Literal["import", "source"]
    flags: tuple[Flag, ...]
    variables: tuple[Variable, ...]

    def report(self) -> str:
        """What a maintainer reviews: how it was read, and every difference to the release before."""
        older = [r for r in store.releases() if r < self.release]
        head = (
            f"SGLang {self.release}: {len(self.flags)} flags by {self.how}, {len(self.variables)} environment variables"
        )
        if not older:
            return head
        before = older[-1]
        lines = [head, f"compared with {before}:"]
        lines += [f"  {line}" for line in flag_differences(store.load(before).flags, self.flags)]
        lines += [f"  {line}" for line in variable_differences(before, self.variables)]
        return "\n".join(lines)


def build(
    path: Path,
    release: str | None = None,
    python: str | None = None,
    prelude: Path | None = None,
    write: bool = True,
) -> Built:
    """Read the SGLang at `path` and add it to the shipped catalogs.

    `path` is an unpacked wheel, a checkout (its `python/` folder is found), or the package itself. With `python`, that
    interpreter imports it; `prelude` is a script that runs first there (to stub packages that a machine without a GPU
    lacks). Raises BuildError.
    """
    root = package(path)
    reading, how = _by_import(root, python, prelude) if python else (_by_source(root), "source")
    name = release or version(root)
    if name is None:
        raise BuildError(f"{root} does not say which release it is: pass --release")
    try:
        built = Built(Release.parse(name), how, reading.flags, read_variables(root))  # type: ignore[arg-type]
    except ValueError as error:
        raise BuildError(str(error)) from error
    if write:
        write_catalog(built, root)
    return built


def package(path: Path) -> Path:
    """The folder of the package `sglang` at or below `path`. Raises BuildError."""
    for folder in (path, path / "sglang", path / "python" / "sglang"):
        if (folder / "srt" / "server_args.py").is_file():
            return folder
    raise BuildError(f"no sglang/srt/server_args.py in {path}")


def version(root: Path) -> str | None:
    """The release that the package, or the installation metadata beside it, names."""
    for file in ("_version.py", "version.py"):
        if (root / file).is_file():
            found = _VERSION.search((root / file).read_text(encoding="utf-8"))
            if found and not found[1].startswith("0.0.0"):
                return found[1]
    folders = sorted(root.parent.glob("sglang-*.dist-info"))
    return folders[0].name.removeprefix("sglang-").removesuffix(".dist-info") if folders else None


def _by_source(root: Path) -> Reading:
    try:
        reading = read_flags(root)
    except CannotTell as problem:
        raise BuildError(f"cannot read the flags from the sources: {problem}") from problem
    if reading.doubts:
        raise BuildError("the sources do not show everything; use --python.\n  " + "\n  ".join(reading.doubts))
    return reading


def _by_import(root: Path, python: str, prelude: Path | None) -> tuple[Reading, str]:
    command = [python, str(_SCRIPT), str(root.parent.resolve()), *([str(prelude)] if prelude else [])]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise BuildError(f"{python} cannot import it:\n{run.stderr.strip()[-2000:]}")
    rows = json.loads(run.stdout.strip().splitlines()[-1])["flags"]
    return Reading(tuple(imported_flag(row) for row in rows), ()), "import"


def imported_flag(row: dict[str, Any]) -> Flag:
    """The flag that a row of `introspect.py` describes."""
    name = row["action"]
    action: Action | None = ACTION_NAMES.get(name, name if name in ACTIONS else None)
    if action is None:
        raise BuildError(f"action {name}: teach source.py what it does")
    deprecated = is_deprecated(action, row["help"])
    return Flag(
        tuple(row["flags"]),
        row["dest"],
        action,
        row["nargs"],
        row["const"],
        row["default"],
        row["type"],
        None if row["choices"] is None else tuple(row["choices"]),
        row["required"],
        deprecated,
        replacement_in(row["flags"], row["new_flag"], f"{row['error_message']} {row['help']}", deprecated),
        action == "deprecated" and row["fatal"],
    )


def write_catalog(built: Built, root: Path) -> None:
    """Add what was read to the shipped catalogs, replacing what they hold for that release, with the fingerprints of its functions."""
    functions = fingerprints.fingerprints(root, fingerprints.known_places())
    builds.add_wheel(built.release, root)
    for name, rows in (
        (store.FLAGS, [store.encode_flag(f) for f in built.flags]),
        (store.VARIABLES, [store.encode_variable(v) for v in built.variables]),
        (store.FINGERPRINTS, sorted(functions.items())),
    ):
        table = store.read_table(name)
        releases: dict[Release, list[Any]] = {r: [table.rows[i] for i in ids] for r, ids in table.members.items()}
        releases[built.release] = rows
        store.write_table(name, releases)
    store.forget()
    fingerprints.forget()


def flag_differences(old: tuple[Flag, ...], new: tuple[Flag, ...]) -> Iterator[str]:
    """One line for each flag that was added, removed or changed. A flag that gains or loses a spelling is changed."""
    before, after = {f.spellings: f for f in old}, {f.spellings: f for f in new}
    gone, come = [s for s in before if s not in after], [s for s in after if s not in before]
    same = {n: o for n in come for o in gone if set(n) & set(o)}
    yield from (f"- {'/'.join(spellings)}" for spellings in gone if spellings not in same.values())
    yield from (f"+ {'/'.join(spellings)}" for spellings in come if spellings not in same)
    for spellings, flag in after.items():
        known = before.get(same.get(spellings, spellings))
        if known is not None and known != flag:
            yield f"~ {'/'.join(known.spellings)}: {', '.join(_changes(known, flag))}"


def _changes(old: Flag, new: Flag) -> Iterator[str]:
    yield from _gone_and_come("no longer ", "also ", old.spellings, new.spellings)
    yield from _otherwise(
        old,
        new,
        "dest",
        "action",
        "nargs",
        "const",
        "default",
        "type",
        "required",
        "deprecated",
        "replacement",
        "fatal",
    )
    yield from _gone_and_come("choice -", "choice +", old.choices or (), new.choices or ())


def _otherwise(old: object, new: object, *names: str) -> Iterator[str]:
    """What each of these attributes was and is, where it is not the same."""
    for name in names:
        if getattr(old, name) != getattr(new, name):
            yield f"{name} {getattr(old, name)!r} → {getattr(new, name)!r}"


def _gone_and_come(gone: str, come: str, old: Sequence[object], new: Sequence[object]) -> Iterator[str]:
    yield from (f"{gone}{item}" for item in old if item not in new)
    yield from (f"{come}{item}" for item in new if item not in old)


def variable_differences(before: Release, variables: tuple[Variable, ...]) -> Iterator[str]:
    old, new = store.environment(before), {v.name: v for v in variables}
    yield from (f"- ${name}" for name in old if name not in new)
    yield from (f"+ ${name}" for name in new if name not in old)
    for name in [n for n in new if n in old and old[n] != new[n]]:
        changes = _otherwise(old[name], new[name], "type", "default", "deprecated", "replacement")
        yield f"~ ${name}: {', '.join(changes)}"
