"""Whether the mistakes that are found behind another are mistakes, by what the real SGLang says.

Such a mistake is false if SGLang accepts the launch once the first is mended, with nothing changed of what the second is about. Tried are
each fix that is offered for the first, and leaving out any one or two of the other parts.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from spec_lsp.analysis.merge import MergedFinding
from spec_lsp.analysis.report import Diagnostic
from spec_lsp.catalog.model import Catalog
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load
from tests.oracle.combined import Ask, Case, Part, analysed, case_of, fields_of, fixed, parts_of
from tests.oracle.releases import Oracle
from tests.oracle.verdicts import sglang, verdicts


@dataclass(frozen=True)
class Behind:
    """A mistake that was found behind another: the launch, the rule, and ways to mend the other one that change nothing it is about."""

    model: str
    parts: tuple[Part, ...]
    rule: str
    message: str
    ways: tuple[tuple[Part, ...], ...]


@dataclass
class Truth:
    """How many are true and false, by rule; of the false ones a launch that SGLang accepts."""

    launches: int = 0
    refused: int = 0
    true: Counter[str] = field(default_factory=Counter)
    false: dict[str, list[tuple[Behind, tuple[Part, ...]]]] = field(default_factory=lambda: defaultdict(list))


def truth(oracle: Oracle, release: str, gpu: str, cases: Iterable[Case]) -> Truth:
    """What SGLang says of all mistakes that are found behind others in these launches."""
    with sglang(oracle, release, gpu) as asked:
        return judged(lambda some: list(verdicts(asked, [{"id": 0, **case} for case in some])), cases, release, gpu)


def judged(asking: Ask, cases: Iterable[Case], release: str, gpu: str) -> Truth:
    cases = [case for case in cases if not case.get("files")]
    refused = [case for case in asking(cases) if case["outcome"] in ("argparse", "refused", "crashed")]
    found = Truth(len(cases), len(refused))
    behind = [one for case in refused for one in mistakes_behind(case, release, gpu)]
    said = iter(asking(case_of(one.model, way) for one in behind for way in one.ways))
    for one in behind:
        accepted = [way for way in one.ways if next(said)["outcome"] == "ok"]
        if accepted:
            found.false[one.rule].append((one, accepted[0]))
        else:
            found.true[one.rule] += 1
    return found


def mistakes_behind(case: Case, release: str, gpu: str) -> Iterator[Behind]:
    """The mistakes of a launch that are found behind others."""
    analysis = analysed({"argv": case["argv"], "env": case.get("env")}, release, gpu)
    errors = [one for one in analysis.diagnostics if one.severity == "error" and not one.late]
    hidden = [one for one in errors if _is_hidden(one)]
    first = list(fixed(analysis, [one for one in errors if one not in hidden])) if hidden else []
    model, parts = parts_of(case)
    catalog = load(Release.parse(release))
    for one in hidden:
        own = _parts_about(catalog, parts, one)
        others = [part for part in parts if part not in own]
        fewer = (tuple(p for p in parts if p not in gone) for n in (1, 2) for gone in combinations(others, n))
        ways = (*(way for way in first if _parts_about(catalog, way, one) == own), *fewer)
        yield Behind(model, parts, one.rule.name, one.message, tuple(dict.fromkeys(ways)))


def _is_hidden(error: Diagnostic) -> bool:
    return isinstance(error.source, MergedFinding) and error.rule.name in error.source.run.hides


def _parts_about(catalog: Catalog, parts: tuple[Part, ...], error: Diagnostic) -> set[Part]:
    """The parts of a launch that an error is about."""
    said = error.source.found.said
    about = {said.at, *said.related_fields} if said else set()
    return {part for part in parts if about & fields_of(catalog, [part])}


def told(found: Truth) -> Iterator[str]:
    """The figures, then what is false, with a launch that SGLang accepts."""
    false = sum(map(len, found.false.values()))
    yield f"launches: {found.launches}, refused: {found.refused}, found behind: {found.true.total() + false}, false: {false}"
    for rule in sorted({*found.true, *found.false}):
        yield f"{rule}: true {found.true[rule]}, false {len(found.false.get(rule, ()))}"
    for one, accepted in (pair for pairs in found.false.values() for pair in pairs):
        case, other = (case_of(one.model, parts) for parts in (one.parts, accepted))
        yield f"false: {one.rule}: {one.message}\n    {_shown(case)}\n    accepted: {_shown(other)}"


def _shown(case: Case) -> str:
    return "".join(f"{name}={shlex.quote(value)} " for name, value in case["env"].items()) + shlex.join(case["argv"])
