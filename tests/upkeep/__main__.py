"""`python -m tests.upkeep RELEASE`: what a new release of SGLang asks of spec-lsp, found, and written down where it can be.

    python -m tests.upkeep 0.5.24                          # sets the release up (tests/oracle), and looks at all of it
    python -m tests.upkeep 0.5.24 --rows FILE.jsonl.gz …   # with truth that was drawn before
    ORACLE=FOLDER python -m tests.upkeep 0.5.24            # where SGLang is set up, if not in ~/.cache/spec-lsp/oracle

It adds the release to the shipped catalogs and tables, draws truth for it into tests/truth/data, prints a report that ends with a checklist,
and writes it, with the source differences, beside the sources (they are SGLang's, and stand in no repository). It can be run again as often
as one likes: what was mended is no longer to be done, and what was read counts as done once the release has a column in
docs/coverage.toml. The exit code is 0 when nothing is left to do.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from spec_lsp.asking.process import CannotAskError
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load, releases
from tests.oracle.__main__ import draw_truth
from tests.oracle.releases import Oracle
from tests.truth.score import DATA
from tests.upkeep import flags, sites, tables, truth
from tests.upkeep.functions import Differences
from tests.upkeep.report import Part, text_of

DRAWN = (("h100", "", 500), ("b200", "", 300), ("mi300x", "", 100), ("h100", "table", 200), ("h100", "argparse", 150))
"""GPU, family and number of the launches that are drawn."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.upkeep", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("release", type=Release.parse)
    parser.add_argument(
        "--rows",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="truth to compare with, instead of drawing some",
    )
    parser.add_argument("--seed", type=int, default=1, help="what launches are drawn from")
    chosen = parser.parse_args(arguments)
    release, oracle, began = chosen.release, Oracle.here(), time.monotonic()
    before = [r for r in releases() if r < release][-1]
    oracle.set_up([str(before), str(release)])
    found = list(parts(oracle, release, before, chosen.rows, chosen.seed))
    title = f"SGLang {release}, as seen from {before}"
    file = oracle.root / "upkeep" / f"{release}.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text_of(title, found, whole=True), "utf-8")
    print(text_of(title, found, whole=False))
    print(f"{(time.monotonic() - began) / 60:.0f} minutes. With the source differences: {file}")
    return 1 if any(part.todo for part in found) else 0


def parts(oracle: Oracle, release: Release, before: Release, rows: list[Path], seed: int) -> Iterator[Part]:
    """Each part, told on standard error as it begins: the last one takes minutes."""
    old, new = (oracle.sources / str(r) / "sglang" for r in (before, release))
    told("functions")
    differences = Differences(old, new, before)
    gone_through = sites.gone_through(str(release))
    functions = differences.part(gone_through)
    told("flags and variables")
    yield flags.part(new, release, before, gone_through)
    yield functions
    told("raise and assert statements")
    yield sites.part(old, new, str(release))
    told("tables")
    yield tables.part(new.parent, release, gone_through)
    told("truth")
    pointers = truth.Pointers(differences, sites.functions_with_new_sites(old, new), changed_fields(release, before))
    yield truth.part(rows or list(drawn(oracle, release, seed)), release, pointers)


def drawn(oracle: Oracle, release: Release, seed: int) -> Iterator[Path]:
    for gpu, family, count in DRAWN:
        told(f"  {count} launches on {gpu} {family}")
        try:
            path, _ = draw_truth(oracle, str(release), gpu, count, family, seed, DATA)
        except CannotAskError as error:
            told(f"  {error}")
            continue
        yield path


def changed_fields(release: Release, before: Release) -> frozenset[str]:
    """The fields whose flags are not what they were."""
    old, new = load(before).by_field, load(release).by_field
    return frozenset(f for f in {*old, *new} if old.get(f) != new.get(f))


def told(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
