"""What `check --fix` makes of random launches, and what the real SGLang says of the result.

Two laws, and figures: a safe fix leaves every field that SGLang resolves as it is; what fix-all changes of a launch that SGLang's argument
resolution accepts is the repair of a late refusal (counted apart, by rule), or keeps what runs. Of the launches that SGLang refuses: how many are accepted after one
`check --fix --unsafe-fixes`, and how many flags were given up for it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.oracle.releases import Oracle
from tests.oracle.verdicts import sglang, verdicts
from tests.truth.score import MODELS, ask

Case = dict[str, Any]
START = ["python3", "-m", "sglang.launch_server"]


@dataclass
class Repairs:
    """Counts by what SGLang says before and after, and the launches to look at."""

    counts: Counter[str] = field(default_factory=Counter)
    refused_still: list[tuple[Case, Case]] = field(default_factory=list)
    resolved_otherwise: list[tuple[Case, Case, dict[str, tuple[Any, Any]]]] = field(default_factory=list)
    refused_now: list[tuple[Case, Case]] = field(default_factory=list)
    given_up: list[tuple[Case, list[str]]] = field(default_factory=list)
    unexplained: list[tuple[Case, Case]] = field(default_factory=list)
    late: Counter[str] = field(default_factory=Counter)

    @property
    def broken(self) -> int:
        """Launches for which a law does not hold."""
        return len(self.resolved_otherwise) + len(self.refused_now) + len(self.unexplained)


def fixed(cases: Iterable[Case], release: str, gpu: str, *options: str, tree: Path | None = None) -> list[Case]:
    """Each case as `check --fix` leaves it, each written to a script of its own. `tree` is another checkout whose command is run."""
    cases = list(cases)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{n:05}.sh") for n in range(len(cases))]
        for path, case in zip(paths, cases, strict=True):
            path.write_text(script(case), "utf-8")
        command = [sys.executable, "-m", "spec_lsp.cli", "check", folder, "--sglang", release, "--gpu", gpu]
        command += ["--models", str(MODELS.parent), "--fix", *options, "--output", os.devnull]
        environment = {**os.environ, "PYTHONPATH": str(tree)} if tree else None
        subprocess.run(command, check=False, cwd=tree, env=environment)
        return [{**case, **read(path.read_text("utf-8"))} for path, case in zip(paths, cases, strict=True)]


def script(case: Mapping[str, Any]) -> str:
    """A shell script that starts SGLang as the case does. Model folders stand in a folder `models`."""
    words = [f"{name}={shlex.quote(value)}" for name, value in (case.get("env") or {}).items()]
    words += [*START, *(shlex.quote(word.replace("{models}/", "models/")) for word in case["argv"])]
    return "#!/bin/bash\n" + " ".join(words) + "\n"


def read(text: str) -> Case:
    """The case that a script starts."""
    words = shlex.split(text, comments=True)
    at = words.index(START[0])
    env = dict(word.split("=", 1) for word in words[:at])
    return {"argv": [re.sub(r"(^|=)models/", r"\1{models}/", w) for w in words[at + len(START) :]], "env": env}


def flags(case: Mapping[str, Any]) -> Counter[str]:
    return Counter(word.partition("=")[0] for word in case["argv"] if word.startswith("--"))


def measured(oracle: Oracle, release: str, gpu: str, cases: Iterable[Case], tree: Path | None = None) -> Repairs:
    """Ask SGLang of each case as it is, with the safe fixes, and with all."""
    found = Repairs()
    cases = [case for case in cases if not case.get("files")]
    safe, whole = (fixed(cases, release, gpu, *options, tree=tree) for options in ((), ("--unsafe-fixes",)))
    with sglang(oracle, release, gpu) as asked:
        before = list(verdicts(asked, cases))
        after_safe, after = (list(_again(asked, cases, changed, before)) for changed in (safe, whole))
    answers = ask([{"id": 0, **case, "version": release, "gpu": gpu} for case in cases])
    for was, kept, now, answer in zip(before, after_safe, after, answers, strict=True):
        if "unanswered" in (was["outcome"], kept["outcome"], now["outcome"]):
            found.counts["unanswered"] += 1
            continue
        count(found, was, kept, now, [f["rule"] for f in answer["findings"] if f["late"]])
    return found


def _again(asked: Any, cases: list[Case], changed: list[Case], before: list[Case]) -> Iterator[Case]:
    """The verdicts of those cases that were changed; of the others what was said before."""
    same = [_same(case, other) for case, other in zip(cases, changed, strict=True)]
    told = iter(list(verdicts(asked, [other for other, kept in zip(changed, same, strict=True) if not kept])))
    yield from (first if kept else next(told) for first, kept in zip(before, same, strict=True))


def _same(case: Case, other: Case) -> bool:
    return case["argv"] == other["argv"] and (case.get("env") or {}) == other["env"]


def count(found: Repairs, was: Case, kept: Case, now: Case, late: Sequence[str]) -> None:
    """Add one launch: what SGLang says of it as it was, with the safe fixes, and with all; and the rules by which it dies later."""
    accepted = was["outcome"] == "ok"
    changed = was["argv"] != now["argv"]
    found.counts["accepted" if accepted else "refused"] += 1
    found.counts[f"{'accepted' if accepted else 'refused'} and changed"] += changed
    if accepted and not _same(was, {"argv": kept["argv"], "env": kept.get("env") or {}}):
        found.counts["accepted and changed by safe fixes"] += 1
        otherwise = _otherwise(was.get("resolved") or {}, kept.get("resolved") or {})
        if kept["outcome"] != "ok" or otherwise:
            found.resolved_otherwise.append((was, kept, otherwise))
    if accepted and now["argv"] != kept["argv"]:
        found.counts["accepted, changed: late, would die" if late else "accepted, changed: unexplained"] += 1
        found.late.update(late)
        if not late:
            found.unexplained.append((was, now))
    if accepted and now["outcome"] != "ok":
        found.refused_now.append((was, now))
    if not accepted and changed:
        found.counts["refused, changed, accepted"] += now["outcome"] == "ok"
        if now["outcome"] != "ok":
            found.refused_still.append((was, now))
    if gone := sorted((flags(was) - flags(now)).elements()):
        found.counts["flags given up"] += len(gone) if not accepted else 0
        found.given_up.append((was, gone))


def _otherwise(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The fields that are resolved otherwise; what SGLang draws at random is none."""
    drawn = ("random_seed",)
    names = [name for name in {*before, *after} if name not in drawn and before.get(name) != after.get(name)]
    return {name: (before.get(name), after.get(name)) for name in sorted(names)}


def told(found: Repairs) -> Iterator[str]:
    """The figures, then the launches to look at."""
    yield ", ".join(f"{name}: {count}" for name, count in found.counts.items())
    for was, kept, otherwise in found.resolved_otherwise:
        yield f"resolved otherwise: {shlex.join(was['argv'])}\n    now: {shlex.join(kept['argv'])}\n    {otherwise}"
    yield from (f"late, would die: {rule}: {number}" for rule, number in found.late.most_common())
    for was, now in found.unexplained:
        yield f"changed without a reason: {shlex.join(was['argv'])}\n    now: {shlex.join(now['argv'])}"
    for was, now in found.refused_now:
        yield f"accepted before: {shlex.join(was['argv'])}\n    now: {shlex.join(now['argv'])}: {now['error']}"
    for was, now in found.refused_still:
        yield f"refused: {shlex.join(was['argv'])}\n    now: {shlex.join(now['argv'])}: {(now['error'] or {}).get('message', '')[:160]}"
    for was, gone in found.given_up:
        yield f"given up ({was['outcome']}): {' '.join(gone)} of {shlex.join(was['argv'])}"
