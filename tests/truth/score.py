"""Compare `spec-lsp batch` with verdicts of the real SGLang.

    python -m tests.truth.score [--misses N] [FILE.jsonl.gz …]

A row of `data/VERSION-GPU.jsonl.gz` is one random launch with what that release of SGLang said on that (simulated) hardware.
`worlds-*` rows hold the same launch in several worlds; they are asked with the GPU or the release not given.

precision  of the launches called refused or bad-arguments, the share that SGLang refuses
recall     of the launches SGLang refuses, the share called so
same       of those refused by name, the share whose first early error names SGLang's function and exception
classes    of the (function, exception) pairs with three refusals or more, the share of which at least half are found as such
changed    of the resolved fields that differ from what was typed and from the default, the share known and equal
agreement  of all resolved fields known, the share equal
clean      of the accepted launches, the share with no wrong field and the verdict accepted
wrong      (worlds) launches called refused though a world accepts them
all        (worlds) of the launches that every world refuses, the share called refused
"""

from __future__ import annotations

import argparse
import gzip
import json
import shlex
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load
from spec_lsp.cli.batch import Judge

DATA = Path(__file__).parent / "data"
MODELS = Path(__file__).parent.parent / "models"

Row = dict[str, Any]
Figures = dict[str, float]


def rows_of(path: Path) -> list[Row]:
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def ask(cases: list[Row]) -> list[Row]:
    """One answer for each case, in order: what the command answers, in this process, for which all releases are loaded once."""
    answers = [json.loads(_judge().line(json.dumps(case))) for case in cases]
    assert [a["id"] for a in answers] == [c["id"] for c in cases]
    for answer in answers:
        assert bool(first_error(answer)) == (answer["verdict"] in ("refused", "bad-arguments")), answer
    return answers


@cache
def _judge() -> Judge:
    return Judge(str(MODELS))


def first_error(answer: Row) -> Row | None:
    return next((f for f in answer["findings"] if f["severity"] == "error" and not f["late"]), None)


def equal(a: object, b: object) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, float) or isinstance(b, float):
        try:
            return abs(float(a) - float(b)) < 1e-6  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return False
    return a == b


def typed_or_default(row: Row) -> Row:
    """What a reader without any resolution would say of each field."""
    catalog = load(Release.parse(row["version"]))
    values = {f.dest: f.default for f in catalog.flags}
    argv = row["argv"]
    for word, following in zip(argv, [*argv[1:], None], strict=True):
        spelling, equals, text = word.partition("=")
        flag = catalog.flag(spelling)
        if flag is None:
            continue
        value = text if equals else following
        if flag.nargs == 0:
            values[flag.dest] = not word.startswith("--no-")
            continue
        for kind in (int, float, str):
            try:
                values[flag.dest] = kind(value)
                break
            except (TypeError, ValueError):
                continue
    return values


def _place(where: str | None) -> str:
    return (where or "").rsplit(":", 1)[-1].lstrip("_")


def count(row: Row, answer: Row, n: Counter[str], classes: dict[tuple[str, str], list[bool]]) -> list[str]:
    """Add one answer to the counts; returns what is wrong with it."""
    refused, said = row["outcome"] != "ok", answer["verdict"] in ("refused", "bad-arguments")
    n["refused"] += refused
    n["said"] += said
    n["hit"] += refused and said
    wrong = [] if refused == said else [f"SGLang: {row['outcome']}, here: {answer['verdict']}"]
    if refused and row["outcome"] != "argparse":
        key = (_place(row["error"]["at"]), row["error"]["type"])
        error = first_error(answer) or {}
        found = said and (_place(error.get("sglang")), error.get("raises")) == key
        classes[key].append(found)
        n["placed"] += said
        n["same"] += found
    if not refused:
        wrong += _count_fields(row, answer, n)
        n["accepted"] += 1
        n["clean"] += not wrong and answer["verdict"] == "accepted"
    return wrong


def _count_fields(row: Row, answer: Row, n: Counter[str]) -> list[str]:
    plain, known = typed_or_default(row), answer.get("resolved", {})
    wrong = []
    for field, value in row["resolved"].items():
        right = field in known and equal(known[field], value)
        n["known"] += field in known
        n["agree"] += right
        if field in plain and not equal(plain[field], value):
            n["changed"] += 1
            n["changed known"] += right
        if field in known and not right:
            wrong.append(f"{field}: SGLang {value!r}, here {known[field]!r}")
    return wrong


def share(n: Counter[str], part: str, whole: str) -> float:
    return round(100 * n[part] / n[whole], 2) if n[whole] else 100.0


def score(path: Path, misses: int = 0) -> Figures:
    """The figures of one file."""
    rows = rows_of(path)
    if path.name.startswith("worlds-"):
        return _score_worlds(path, rows, misses)
    answers = ask([{k: r[k] for k in ("id", "argv", "env", "files", "version", "gpu") if k in r} for r in rows])
    n: Counter[str] = Counter()
    classes: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for row, answer in zip(rows, answers, strict=True):
        wrong = count(row, answer, n, classes)
        if wrong and misses > 0:
            misses -= 1
            print(f"  {row['id']} {row['version']} {row['gpu']}: {'; '.join(wrong[:4])}")
            print("    ", shlex.join(row["argv"]), row["env"] or "", row.get("files") or "", row.get("error") or "")
            print("    ", [f["rule"] for f in answer["findings"]])
    frequent = [found for found in classes.values() if len(found) >= 3]
    n["classes"], n["classes found"] = len(frequent), sum(sum(f) * 2 >= len(f) for f in frequent)
    pairs = {
        "precision": ("hit", "said"), "recall": ("hit", "refused"), "same": ("same", "placed"), "classes": ("classes found", "classes"),
        "changed": ("changed known", "changed"), "agreement": ("agree", "known"), "clean": ("clean", "accepted"),
    }  # fmt: skip
    return {figure: share(n, *parts) for figure, parts in pairs.items()}


def _score_worlds(path: Path, rows: list[Row], misses: int) -> Figures:
    unknown = "gpu" if "gpus" in path.name else "version"
    version, gpu = next(iter(rows[0]["outcomes"])).split(" ")
    given = {"version": version, "gpu": gpu, unknown: None}
    answers = ask([{"id": r["id"], "argv": r["argv"], "env": r["env"], **given} for r in rows])
    n: Counter[str] = Counter()
    for row, answer in zip(rows, answers, strict=True):
        everywhere = "ok" not in row["outcomes"].values()
        said = answer["verdict"] in ("refused", "bad-arguments")
        n["everywhere"] += everywhere
        n["found"] += everywhere and said
        n["wrong"] += said and not everywhere
        if said != everywhere and misses > 0:
            misses -= 1
            print("  ", row["id"], answer["verdict"], shlex.join(row["argv"]), row["env"] or "", row["outcomes"])
    return {"wrong": float(n["wrong"]), "all": share(n, "found", "everywhere")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", type=int, default=0, help="print this many cases of each file that went wrong")
    parser.add_argument("files", nargs="*", type=Path, default=sorted(DATA.glob("*.jsonl.gz")))
    chosen = parser.parse_args()
    for path in chosen.files:
        figures = score(path, chosen.misses)
        print(
            f"{path.name.removesuffix('.jsonl.gz'):32}",
            "  ".join(f"{name} {value:6.2f}" for name, value in figures.items()),
        )


if __name__ == "__main__":
    main()
