"""Whether the mistakes that are found behind another are mistakes, by what the real SGLang says.

The first mistake is mended in all ways at hand: by each fix that is offered for it, by leaving out one or two parts, by another value in one.
The setting that the second is about stays. The second is true if SGLang then refuses the launch for it, and false if SGLang accepts the launch
with nothing changed that the second names, or if it never refuses for it and accepts some way. What is refused for other reasons in all
ways is not shown.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from spec_lsp.analysis.merge import MergedFinding
from spec_lsp.analysis.report import Diagnostic
from spec_lsp.catalog.model import Catalog
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load
from tests.oracle.combined import (
    Ask,
    Case,
    Part,
    Reason,
    analysed,
    case_of,
    changes,
    fields_of,
    fixed,
    parts_of,
    reason_of,
)
from tests.oracle.releases import Oracle
from tests.oracle.verdicts import sglang, verdicts


@dataclass(frozen=True)
class Behind:
    """A mistake that was found behind another: the launch, why it is refused at first, the rule and where SGLang has it.

    `ways` mend the first mistake and keep the setting that this one is about; each with whether it keeps all else that this one names.
    """

    model: str
    parts: tuple[Part, ...]
    first: Reason | None
    rule: str
    message: str
    place: tuple[str, str]
    ways: Mapping[tuple[Part, ...], bool]


@dataclass
class Truth:
    """How many are true, by rule; those that are not shown, and those that are false, with a launch that SGLang accepts."""

    launches: int = 0
    refused: int = 0
    true: Counter[str] = field(default_factory=Counter)
    unshown: list[Behind] = field(default_factory=list)
    false: list[tuple[Behind, Case]] = field(default_factory=list)


def truth(oracle: Oracle, release: str, gpu: str, cases: Iterable[Case]) -> Truth:
    """What SGLang says of all mistakes that are found behind others in these launches."""
    with sglang(oracle, release, gpu) as asked:
        return judged(lambda some: list(verdicts(asked, [{"id": 0, **case} for case in some])), cases, release, gpu)


def judged(asking: Ask, cases: Iterable[Case], release: str, gpu: str) -> Truth:
    """The same with what SGLang is asked by."""
    cases = [case for case in cases if not case.get("files")]
    refused = [case for case in asking(cases) if case["outcome"] in ("argparse", "refused", "crashed")]
    found = Truth(len(cases), len(refused))
    behind = [one for case in refused for one in mistakes_behind(case, release, gpu)]
    said = iter(asking(case_of(one.model, way) for one in behind for way in one.ways))
    for one in behind:
        answers = [(next(said), kept) for kept in one.ways.values()]
        accepted = sorted((not kept, n) for n, (answer, kept) in enumerate(answers) if answer["outcome"] == "ok")
        true = any(_is_refused_for(one, answer) for answer, _ in answers)
        if accepted and not (true and accepted[0][0]):
            found.false.append((one, answers[accepted[0][1]][0]))
        elif true:
            found.true[one.rule] += 1
        else:
            found.unshown.append(one)
    return found


def _is_refused_for(one: Behind, answer: Case) -> bool:
    """Whether SGLang refuses a launch for this mistake, not for the first one."""
    reason = reason_of(answer)
    if reason is None or reason == one.first:
        return False
    (_, name), raises = one.place[0].rsplit(":", 1), one.place[1]
    return reason[0] == raises and name in reason[1].split(":")


def mistakes_behind(case: Case, release: str, gpu: str) -> Iterator[Behind]:
    """The mistakes of a refused launch that are found behind others."""
    analysis = analysed({"argv": case["argv"], "env": case.get("env")}, release, gpu)
    errors = [one for one in analysis.diagnostics if one.severity == "error" and not one.late]
    hidden = [one for one in errors if _is_hidden(one)]
    first = list(fixed(analysis, [one for one in errors if one not in hidden])) if hidden else []
    model, parts = parts_of(case)
    catalog = load(Release.parse(release))
    for one in hidden:
        at, *related = _about(one)
        fewer = (tuple(p for p in parts if p not in gone) for gone in combinations(parts, 2))
        tried = dict.fromkeys((*first, *changes(catalog, parts), *fewer))
        keeping = [way for way in tried if parts_with(catalog, way, [at]) == parts_with(catalog, parts, [at])]
        named = parts_with(catalog, parts, related)
        ways = {way: parts_with(catalog, way, related) == named for way in keeping}
        yield Behind(model, parts, reason_of(case), one.rule.name, one.message, one.rule.place(catalog.release), ways)


def _is_hidden(error: Diagnostic) -> bool:
    return isinstance(error.source, MergedFinding) and error.rule.name in error.source.run.hides


def _about(error: Diagnostic) -> tuple[str, ...]:
    """The fields that an error is about: its own, and those it names."""
    said = error.source.found.said
    return (said.at, *said.related_fields) if said else ("",)


def parts_with(catalog: Catalog, parts: tuple[Part, ...], fields: Iterable[str]) -> list[Part]:
    """The parts that set any of these fields."""
    return [part for part in parts if not fields_of(catalog, [part]).isdisjoint(fields)]


def told(found: Truth) -> Iterator[str]:
    """The figures, then what is false, with a launch that SGLang accepts."""
    counts = {"launches": found.launches, "refused": found.refused, "true": found.true.total()}
    counts |= {"not shown": len(found.unshown), "false": len(found.false)}
    yield ", ".join(f"{name}: {count}" for name, count in counts.items())
    yield from (f"true: {rule}: {count}" for rule, count in found.true.most_common())
    for one in found.unshown:
        yield f"not shown: {one.rule}: {one.message}\n    {_shown(case_of(one.model, one.parts))}"
    for one, accepted in found.false:
        yield f"false: {one.rule}: {one.message}\n    {_shown(case_of(one.model, one.parts))}\n    accepted: {_shown(accepted)}"


def _shown(case: Case) -> str:
    return "".join(f"{name}={shlex.quote(value)} " for name, value in case["env"].items()) + shlex.join(case["argv"])
