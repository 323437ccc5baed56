"""A copy of this checkout that has never heard of the newest release: what `tests.upkeep` finds in it is what it finds of a new one.

python -m tests.upkeep.forget FOLDER                   # writes the copy
cd FOLDER && python -m tests.upkeep 0.5.23 --rows …    # as if it had just come out
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

from spec_lsp.catalog import store
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load, read_table, releases, write_table

ROOT = Path(__file__).parents[2]
COPIED = ("spec_lsp", "tests", "docs", "pyproject.toml")
NEVER = "9.9.9"
"""What stands for the release in the code: it never comes."""
FOLLOWING = ("spec_lsp/resolution", "spec_lsp/facts", "spec_lsp/catalog", "spec_lsp/analysis")
TABLES = (store.FLAGS, store.VARIABLES, store.FINGERPRINTS)


def forget(folder: Path) -> Release:
    """Write the copy to `folder`; the release that it does not know."""
    *_, before, release = releases()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "corpus", f"*{release}*")
            )
        else:
            shutil.copy(source, folder / name)
    for part in FOLLOWING:
        for path in (folder / part).rglob("*.py"):
            path.write_text(path.read_text("utf-8").replace(str(release), NEVER), "utf-8")
    _tables(folder, release)
    _descriptions(folder, release, before)
    _coverage(folder, release)
    return release


def _tables(folder: Path, release: Release) -> None:
    data, store.DATA = store.DATA, folder / "spec_lsp" / "catalog" / "data"
    try:
        for name in TABLES:
            table = read_table(name)
            write_table(name, {r: [table.rows[i] for i in ids] for r, ids in table.members.items() if r != release})
    finally:
        store.DATA = data
    for name in ("classes", "methods"):
        path = folder / "spec_lsp" / "facts" / "data" / f"{name}.json"
        known = json.loads(path.read_text("utf-8"))
        kept = {k: {r: facts for r, facts in changes.items() if r != str(release)} for k, changes in known.items()}
        path.write_text(json.dumps({k: changes for k, changes in kept.items() if changes}), "utf-8")


def _descriptions(folder: Path, release: Release, before: Release) -> None:
    """What only the forgotten release has is not described, and what it lost is not replaced."""
    new = {n for f in load(release).flags for n in (f.field, f.name[2:].replace("-", "_"))}
    new -= {n for f in load(before).flags for n in (f.field, f.name[2:].replace("-", "_"))}
    for path in (folder / "spec_lsp" / "catalog" / "descriptions").glob("*.toml"):
        _without(path, new)
    gone = set(load(before).by_spelling) - set(load(release).by_spelling)
    _without(folder / "spec_lsp" / "catalog" / "replacements.toml", gone)


def _without(path: Path, names: set[str]) -> None:
    lines = path.read_text("utf-8").split("\n")
    path.write_text("\n".join(line for line in lines if line.partition(" ")[0] not in names), "utf-8")


def _coverage(folder: Path, release: Release) -> None:
    """The tables of raise statements have columns for the releases before."""
    for name in ("coverage", "late"):
        path = folder / "docs" / f"{name}.toml"
        text = re.sub(rf'(?m)^(releases = \[.*?), "{re.escape(str(release))}"\]', r"\1]", path.read_text("utf-8"))
        path.write_text(text, "utf-8")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.upkeep.forget", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the copy is written; it must not exist")
    folder: Path = parser.parse_args(arguments).folder.absolute()
    if folder.exists():
        parser.error(f"{folder} exists already: name a folder that does not.")
    release = forget(folder)
    rows = shlex.quote(str(ROOT / "tests" / "truth" / "data"))
    print(f"{folder} has never heard of SGLang {release}. To see what a report finds in it:")
    print(
        f"cd {shlex.quote(str(folder))} && {shlex.quote(sys.executable)} -m tests.upkeep {release} --rows {rows}/*{release}*"
    )


if __name__ == "__main__":
    main()
