"""`python -m tests.oracle`: set SGLang up, ask it, and draw truth from it. README.md shows the commands."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from spec_lsp.asking.process import CannotAskError
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load
from tests.oracle import combined, hidden
from tests.oracle.launches import draw, families
from tests.oracle.models import write_models
from tests.oracle.releases import Oracle
from tests.oracle.repairs import measured, told
from tests.oracle.verdicts import Row, rows, seed_of, sglang, verdicts, worlds, write
from tests.truth.score import DATA


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    p = commands.add_parser("setup", help="install what asking releases takes, from the package registry")
    p.add_argument("releases", nargs="+", metavar="RELEASE")
    p = commands.add_parser("ask", help="cases on standard input, a JSON object a line; verdicts on standard output")
    p.add_argument("release")
    p.add_argument("gpu")
    p.add_argument("--jobs", type=int, default=2)
    p = commands.add_parser("draw", help="random launches with SGLang's verdicts, into tests/truth/data")
    p.add_argument("release")
    p.add_argument("gpu")
    p.add_argument("count", type=int)
    p.add_argument("--family", choices=families(), default="", help="of this kind alone, in a file of its own")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--into", type=Path, default=DATA, metavar="FOLDER")
    p = commands.add_parser("worlds", help="the same random launches in several worlds")
    p.add_argument("count", type=int)
    p.add_argument("file", type=Path, help="worlds-….jsonl.gz")
    p.add_argument("worlds", nargs="+", metavar="RELEASE,GPU", help="the first one's flags are drawn from")
    p.add_argument("--seed", type=int, default=1)
    p = commands.add_parser("repairs", help="what `check --fix` makes of random launches, with SGLang's verdicts")
    p.add_argument("release")
    p.add_argument("gpu")
    p.add_argument("count", type=int)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--tree", type=Path, help="another checkout, whose `check` is run")
    p = commands.add_parser(
        "combined", help="whether both mistakes of two refused launches are told when they are one launch"
    )
    p.add_argument("release")
    p.add_argument("gpu")
    p.add_argument("count", type=int, help="how many launches are drawn")
    p.add_argument("pairs", type=int)
    p.add_argument("--seed", type=int, default=1)
    p = commands.add_parser("hidden", help="whether what is found behind the first mistake of random launches is true")
    p.add_argument("release")
    p.add_argument("gpu")
    p.add_argument("count", type=int)
    p.add_argument("--seed", type=int, default=1)
    commands.add_parser(
        "models", help="renew the config.json files of tests/models that come from the table of well-known models"
    )
    return top


def main(arguments: list[str]) -> int:
    chosen = parser().parse_args(arguments)
    oracle = Oracle.here()
    try:
        match chosen.command:
            case "setup":
                oracle.set_up(chosen.releases)
            case "ask":
                with sglang(oracle, chosen.release, chosen.gpu, chosen.jobs) as asked:
                    for verdict in verdicts(asked, map(json.loads, sys.stdin)):
                        print(json.dumps(verdict), flush=True)
            case "draw":
                print(
                    *draw_truth(
                        oracle, chosen.release, chosen.gpu, chosen.count, chosen.family, chosen.seed, chosen.into
                    )
                )
            case "worlds":
                pairs = [(release, gpu) for release, _, gpu in (w.partition(",") for w in chosen.worlds)]
                cases = list(draw(load(Release.parse(pairs[0][0])), chosen.seed, chosen.count))
                print(chosen.file, write(chosen.file, worlds(oracle, cases, pairs)))
            case "repairs":
                found = measured(oracle, chosen.release, chosen.gpu, cases_of(chosen), chosen.tree)
                print(*told(found), sep="\n")
                return 1 if found.broken else 0
            case "combined":
                both = combined.combined(
                    oracle, chosen.release, chosen.gpu, cases_of(chosen), chosen.pairs, chosen.seed
                )
                print(*combined.told(both), sep="\n")
            case "hidden":
                behind = hidden.truth(oracle, chosen.release, chosen.gpu, cases_of(chosen))
                print(*hidden.told(behind), sep="\n")
            case "models":
                write_models(oracle)
    except (CannotAskError, FileNotFoundError, ValueError) as error:
        print(f"tests.oracle: {error}", file=sys.stderr)
        return 2
    return 0


def cases_of(chosen: argparse.Namespace) -> Iterator[Row]:
    seed = seed_of(chosen.seed, chosen.release, chosen.gpu, "")
    return draw(load(Release.parse(chosen.release)), seed, chosen.count)


def draw_truth(
    oracle: Oracle, release: str, gpu: str, count: int, family: str, seed: int, into: Path
) -> tuple[Path, int]:
    """A file of truth, and how many rows it has."""
    path = into / f"{family + '-' if family else ''}{release}-{gpu}.jsonl.gz"
    cases = draw(load(Release.parse(release)), seed_of(seed, release, gpu, family), count, family)
    with sglang(oracle, release, gpu) as asked:
        return path, write(path, rows(verdicts(asked, cases), release, gpu))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
