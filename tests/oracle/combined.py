"""Two mistakes in one launch: whether both are told in one run, by what the real SGLang says.

SGLang stops at the first mistake, so what it would say of the second is asked with the first one mended. Refused launches are reduced to the
words that their refusal takes, each in itself. Of two such launches of one model, all words are put together. The pair counts if both
mistakes are true of the whole: SGLang refuses it for one of them, and however the one is mended (by each fix that is
offered, by leaving a part of it out, by another value in one, as far as SGLang accepts the launch by itself), it refuses the whole for the
other, and the other way round.
"""

from __future__ import annotations

import random
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from spec_lsp.analysis import analyse, read_document
from spec_lsp.analysis.fixes import apply, fixes_for
from spec_lsp.analysis.inputs import Options
from spec_lsp.analysis.report import Analysis, Diagnostic
from spec_lsp.catalog.binding import bind, words_from
from spec_lsp.catalog.model import Catalog
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load
from spec_lsp.workspace import DiskWorkspace
from tests.oracle.launches import told as families
from tests.oracle.releases import Oracle
from tests.oracle.repairs import read, script
from tests.oracle.verdicts import sglang, verdicts
from tests.truth.score import MODELS, ask, first_error

Case = dict[str, Any]
Ask = Callable[[Iterable[Case]], list[Case]]
Part = tuple[str, ...]
"""A flag with its values, or an environment variable (`NAME=VALUE`, without dashes)."""
Reason = tuple[str, str]
"""The exception and where it is raised; of argparse, what it says."""

OTHER_VALUES = 2
"""How many other values of a flag are tried."""
MENDS = 8
"""How many ways of mending one mistake are asked about in the whole."""

SCRIPT = str(MODELS.parent / "launch.sh")
"""Where the launch would stand, beside the folder of models."""
WORKSPACE = DiskWorkspace(models=(MODELS.parent,))


@dataclass(frozen=True)
class Mistake:
    """A launch of a model that is refused for one reason, with no word too many; `rule` tells it by itself."""

    model: str
    parts: tuple[Part, ...]
    reason: Reason
    rule: str
    fields: frozenset[str]
    mends: tuple[tuple[Part, ...], ...] = ()


@dataclass
class Combined:
    """How many pairs there are, and those of which not both mistakes are told."""

    counts: Counter[str] = field(default_factory=Counter)
    missed: list[tuple[Case, list[str], list[str]]] = field(default_factory=list)


# --- launches in parts -------------------------------------------------------------------------------------------------


def parts_of(case: Mapping[str, Any]) -> tuple[str, tuple[Part, ...]]:
    """The model, and everything else that the launch gives."""
    groups: list[list[str]] = []
    for word in case["argv"]:
        if word.startswith("--") or not groups:
            groups.append([])
        groups[-1].append(word)
    (_, model, *_), *others = groups
    variables = [(f"{name}={value}",) for name, value in (case.get("env") or {}).items()]
    return model, (*map(tuple, others), *variables)


def case_of(model: str, parts: Iterable[Part]) -> Case:
    """The launch of these parts."""
    argv, env = ["--model-path", model], {}
    for part in parts:
        if part[0].startswith("--"):
            argv += part
        else:
            name, _, env[name] = part[0].partition("=")
    return {"argv": argv, "env": env}


def reason_of(verdict: Mapping[str, Any]) -> Reason | None:
    """Why SGLang stops; None if it does not."""
    error = verdict["error"]
    return (error["type"], error["where"] or error["message"]) if error else None


# --- mistakes ----------------------------------------------------------------------------------------------------------


def mistakes(asking: Ask, cases: Iterable[Case], release: str, gpu: str, counts: Counter[str]) -> list[Mistake]:
    """The refused ones of these launches that are told by themselves, reduced, with ways to mend them."""
    asked = asking([{**case, "id": n} for n, case in enumerate(cases) if not case.get("files")])
    refused = [verdict for verdict in asked if verdict["outcome"] in ("argparse", "refused", "crashed")]
    counts["refused launches"] += len(refused)
    launches = [(*parts_of(v), reason) for v in refused if (reason := reason_of(v))]
    reduced = _reduced(asking, launches)
    answers = ask([_here(case_of(model, parts), release, gpu) for model, parts, _ in reduced])
    catalog = load(Release.parse(release))
    found = [
        Mistake(model, parts, reason, error["rule"], fields_of(catalog, parts))
        for (model, parts, reason), answer in zip(reduced, answers, strict=True)
        if (error := first_error(answer))
    ]
    counts["told by themselves"] += len(found)
    return _mendable(asking, found, release, gpu)


def _here(case: Case, release: str, gpu: str) -> Case:
    return {"id": 0, **case, "version": release, "gpu": gpu}


def _reduced(
    asking: Ask, launches: Sequence[tuple[str, tuple[Part, ...], Reason]]
) -> list[tuple[str, tuple[Part, ...], Reason]]:
    """The launches without the parts that their refusal does not take."""
    now = list(launches)
    for n in range(max((len(parts) for _, parts, _ in launches), default=0)):
        last = [(i, len(parts) - 1 - n) for i, (_, parts, _) in enumerate(launches) if len(parts) > n]
        fewer = [now[i][1][:at] + now[i][1][at + 1 :] for i, at in last]
        asked = asking(case_of(now[i][0], parts) for (i, _), parts in zip(last, fewer, strict=True))
        for (i, _), parts, verdict in zip(last, fewer, asked, strict=True):
            model, _, reason = now[i]
            if reason_of(verdict) == reason:
                now[i] = model, parts, reason
    return now


def fields_of(catalog: Catalog, parts: Iterable[Part]) -> frozenset[str]:
    """What a launch sets: fields, and words that set none."""
    binding = bind(catalog, words_from([word for part in parts for word in part], "argv"))
    return frozenset((*binding.settings, *(part[0].partition("=")[0] for part in parts)))


def _mendable(asking: Ask, found: Sequence[Mistake], release: str, gpu: str) -> list[Mistake]:
    """The mistakes that can be mended, each with ways that SGLang accepts: those that are offered, then a few changes."""
    catalog = load(Release.parse(release))
    tries = [
        (one, parts)
        for one in found
        for parts in (*offered(case_of(one.model, one.parts), release, gpu), *changes(catalog, one.parts))
    ]
    asked = asking(case_of(one.model, parts) for one, parts in tries)
    ways: dict[int, list[tuple[Part, ...]]] = {}
    for (one, parts), verdict in zip(tries, asked, strict=True):
        if verdict["outcome"] == "ok":
            ways.setdefault(id(one), []).append(parts)
    return [replace(one, mends=tuple(ways[id(one)][:MENDS])) for one in found if id(one) in ways]


def offered(case: Case, release: str, gpu: str) -> Iterator[tuple[Part, ...]]:
    """The launch after each fix that is offered for it."""
    analysis = analysed(case, release, gpu)
    return fixed(analysis, [one for one in analysis.diagnostics if one.severity == "error"])


def analysed(case: Case, release: str, gpu: str) -> Analysis:
    """What is said of a script that starts SGLang as the case does."""
    text = f"# spec-lsp: sglang={release} gpu={gpu}\n{script(case)}"
    return analyse(read_document(SCRIPT, text, WORKSPACE), Options(), WORKSPACE)


def fixed(analysis: Analysis, errors: Iterable[Diagnostic]) -> Iterator[tuple[Part, ...]]:
    """The launch after each fix of these errors."""
    text = analysis.document.text
    for error in errors:
        for fix in fixes_for(analysis, error, Options(), WORKSPACE):
            if changed := apply(text, fix.edits):
                yield parts_of(read(changed))[1]


def changes(catalog: Catalog, parts: tuple[Part, ...]) -> Iterator[tuple[Part, ...]]:
    """A launch with one part less, then with another value in one."""
    yield from (parts[:n] + parts[n + 1 :] for n in range(len(parts)))
    for n, part in enumerate(parts):
        flag = catalog.flag(part[0])
        values = (families()["values"].get(flag.field) or flag.choices or ()) if flag and len(part) == 2 else ()
        for value in [v for v in map(str, values) if v != part[1]][:OTHER_VALUES]:
            yield (*parts[:n], (part[0], value), *parts[n + 1 :])


# --- pairs -------------------------------------------------------------------------------------------------------------


def combined(oracle: Oracle, release: str, gpu: str, cases: Iterable[Case], pairs: int, seed: int) -> Combined:
    """Draw `pairs` pairs of the refused launches among these, and count those that are true and told."""
    found = Combined()
    with sglang(oracle, release, gpu) as asked:

        def asking(some: Iterable[Case]) -> list[Case]:
            return list(verdicts(asked, [{"id": 0, **case} for case in some]))

        wrong = mistakes(asking, cases, release, gpu, found.counts)
        for one, other in true_pairs(asking, drawn(wrong, pairs, seed), found.counts):
            count(found, one, other, ask([_here(case_of(one.model, one.parts + other.parts), release, gpu)])[0])
    return found


def drawn(wrong: Sequence[Mistake], pairs: int, seed: int) -> list[tuple[Mistake, Mistake]]:
    """Pairs of mistakes of one model that differ in their reason, and in all that they set."""
    fitting = [
        (a, b)
        for a, b in combinations(wrong, 2)
        if a.model == b.model and a.reason != b.reason and not a.fields & b.fields
    ]
    random.Random(seed).shuffle(fitting)
    return fitting[:pairs]


def true_pairs(
    asking: Ask, pairs: Sequence[tuple[Mistake, Mistake]], counts: Counter[str]
) -> Iterator[tuple[Mistake, Mistake]]:
    """The pairs of which both mistakes are true, when they are put together."""
    wholes = [_whole(a, b) for a, b in pairs]
    said = iter(
        asking(case_of(a.model, parts) for (a, _), whole in zip(pairs, wholes, strict=True) for parts, _ in whole)
    )
    for pair, whole in zip(pairs, wholes, strict=True):
        counts["pairs"] += 1
        answers = [reason_of(next(said)) for _ in whole]
        if all(answer in reasons for answer, (_, reasons) in zip(answers, whole, strict=True)):
            yield pair


def _whole(a: Mistake, b: Mistake) -> list[tuple[tuple[Part, ...], set[Reason]]]:
    """Both launches in one, and that with either mended, each with the reasons for which it has to be refused."""
    whole = (a.parts + b.parts, {a.reason, b.reason})
    return [whole, *((way + b.parts, {b.reason}) for way in a.mends), *((a.parts + way, {a.reason}) for way in b.mends)]


def count(found: Combined, one: Mistake, other: Mistake, answer: Mapping[str, Any]) -> None:
    """Add a pair that is true, with what is said here of the whole."""
    told = [f["rule"] for f in answer["findings"] if f["severity"] == "error"]
    missing = Counter((one.rule, other.rule)) - Counter(told)
    found.counts["true of the whole"] += 1
    found.counts["both told"] += not missing
    if missing:
        found.missed.append((case_of(one.model, one.parts + other.parts), list(missing), told))


def told(found: Combined) -> Iterator[str]:
    """The figures, then the pairs to look at."""
    yield ", ".join(f"{name}: {count}" for name, count in found.counts.items())
    for case, missing, instead in found.missed:
        env = "".join(f"{name}={shlex.quote(value)} " for name, value in case["env"].items())
        yield f"not told: {', '.join(missing)}; told: {', '.join(instead)}\n    {env}{shlex.join(case['argv'])}"
