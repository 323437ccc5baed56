"""One launch through binding and resolution, in every variant and every world; and what that makes of each finding.

A `Verdict` holds no places: it is the same for two launches whose words read the same, so it is cached by what they read
(`launch_key`), and only the launch that is being typed in is judged again.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from spec_lsp.analysis.grid import grid
from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.rules import (
    ABBREVIATED_FLAG,
    AMBIGUOUS_FLAG,
    DEPRECATED_FLAG,
    INVALID_CHOICE,
    OVERRIDDEN_VALUE,
    REMOVED_FLAG,
    REPEATED_FLAG,
    UNKNOWN_FLAG,
    rule_of,
)
from spec_lsp.analysis.worlds import FILE_NAME, NOT_NAMED, OLDER_WORLDS, catalog_release
from spec_lsp.catalog.binding import BindError, Binding, Note, ReadConfig, Setting, Unknown, bind, rebound
from spec_lsp.catalog.history import choice_span, flag_span
from spec_lsp.catalog.keywords import bind_keywords
from spec_lsp.catalog.meant import fields_meant
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import fields_of_any, load, releases
from spec_lsp.facts.clues import device_told
from spec_lsp.facts.environment import Environment
from spec_lsp.facts.hardware import Hardware
from spec_lsp.facts.model import ModelFacts
from spec_lsp.interruption import checkpoint
from spec_lsp.resolution.engine import RULES, Change, Refusal, Resolution, Rule, Severity
from spec_lsp.resolution.internal_fields import INTERNAL
from spec_lsp.resolution.pipeline import pipeline
from spec_lsp.resolution.replay import Given, Kind, resolve_by_difference
from spec_lsp.syntax.launch import Launch, Variant

if TYPE_CHECKING:
    from spec_lsp.syntax.yaml.config import ConfigFile

ModelSource = Callable[[str], "ModelFacts | None"]
ConfigSource = Callable[[str], "tuple[str, str] | None"]
"""A `--config` file as the launch names it: (document name, text), or None."""

OLDEST_MODELLED = Release.parse("0.5.6")
"""The oldest release whose whole resolution is followed; of older ones only some refusals are known."""

Outcome = Literal["accepted", "refused", "bad-arguments", "depends", "unknown"]


# --- one run -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunResult:
    """One variant in one world. Words that do not bind are left out of the resolution, and what they may have meant is unknown."""

    variant: int
    world: World
    binding: Binding
    resolution: Resolution | None
    modelled: bool
    """Whether resolution follows this release at all."""
    bare: bool = False
    """Whether words that the document does not tell (`"$@"`) are taken to add nothing; otherwise they may set any field before them."""

    @property
    def bad_arguments(self) -> bool:
        return any(e.fatal for e in self.binding.errors)

    @property
    def refused(self) -> bool:
        return self.bad_arguments or (self.resolution is not None and self.resolution.refused)

    @property
    def decided(self) -> bool:
        """Whether acceptance is certain: every refusal that the release has could be decided."""
        return self.modelled and not self.bare and self.resolution is not None and not self._undecided()

    def _undecided(self) -> bool:
        """Whether a refusal of argument resolution itself could not be decided."""
        names = self.resolution.undecided if self.resolution else {}
        return any(RULES[name].severity == "error" and not RULES[name].late for name in names)

    @property
    def gated(self) -> bool:
        """Whether a typed value cannot run on this world's hardware at all."""
        return self.resolution is not None and any(f.rule.hardware_only for f in self.resolution.findings)


@lru_cache(maxsize=128)
def _kind(release: Release, open_: bool) -> Kind:
    """The release's handlers and fields with their defaults, and the names that only other releases have."""
    defaults = {**INTERNAL, **load(release).defaults}
    every = fields_of_any() | INTERNAL.keys()
    return Kind(pipeline(release), release, defaults, every - defaults.keys(), open_)


def environment(variant: Variant) -> Environment:
    return Environment({name: word.text for name, word in variant.env.items()})


def bind_variant(launch: Launch, index: int, release: Release, configs: ConfigSource) -> Binding:
    """The words of one variant as the shipped release nearest to `release` binds them."""
    variant = launch.variants[index]
    catalog = load(catalog_release(release))
    if launch.program == "engine":
        return bind_keywords(catalog, variant.words)
    return bind(catalog, variant.words, program=launch.program, read_config=_configs(variant, configs))


def run(
    launch: Launch,
    index: int,
    world: World,
    models: ModelSource,
    binding: Binding,
    *,
    bare: bool = False,
    values: Values | None = None,
) -> RunResult:
    """Resolve one bound variant in one world. `values`: those of the binding, where they are at hand."""
    release = binding.catalog.release
    values = values or Values(binding)
    given, unknown = values.given, values.unknown
    meant = _meant(binding)
    open_ = meant is None or (not bare and is_open(launch, binding))
    kind = _kind(release, open_)
    untold = frozenset(kind.defaults.keys() - given.typed.keys() - unknown.keys()) if open_ else meant or frozenset()
    if untold:
        given, unknown = values.without(untold), {**unknown, **dict.fromkeys(untold, OPEN)}
    path = given.typed.get("model_path")
    resolution = resolve_by_difference(
        kind,
        given,
        unknown=unknown,
        untold=untold,
        gpu=device_of(given.typed, world),
        model=models(path) if isinstance(path, str) else None,
        draft=models,
        env=environment(launch.variants[index]),
    )
    return RunResult(index, world, binding, resolution, release >= OLDEST_MODELLED, bare)


OPEN = "words that the file does not tell, or that SGLang does not take, may be meant to set it"


MAX_MISTAKES = 24
"""Words that do not bind, of more than which none is looked at for what it can have meant."""


def _meant(binding: Binding) -> frozenset[str] | None:
    """The fields that words which do not bind can have been meant to set; None when that is any field."""
    fields: set[str] = set()
    if len(binding.errors) > MAX_MISTAKES:
        return None
    for error in binding.errors:
        if error.kind in _ANY_FIELD and not error.definition:
            return None
        fields.update(fields_meant(binding, error))
    return frozenset(fields)


_ANY_FIELD = frozenset(("config-missing", "config-not-mapping", "config-twice"))
"""Mistakes for which a whole file of flags is not read."""


def is_open(launch: Launch, binding: Binding) -> bool:
    """Whether more may be given than the document tells: by `"$@"`, by a trainer, or on the command line that names a `--config` file.

    What is written is taken as meant; what is not written may come.
    """
    return bool(binding.open) or launch.in_part


MAX_RANKS, MAX_NUMBER = 2**16, 2**62
"""Numbers beyond which a value is not followed: of the GPUs, nodes and parts that work is divided among, and of anything."""


def _is_vast(setting: Setting) -> bool:
    """Whether a typed number is larger than any launch has a use for: rules count up to it, or beyond what a float holds."""
    value = setting.value
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    divides = setting.field.endswith(("tp_size", "dp_size", "ep_size", "pp_size", "cp_size", "nnodes", "node_rank"))
    return abs(value) > (MAX_RANKS if divides else MAX_NUMBER)


class Values:
    """What a binding gives: typed values with how they are written, and the reasons of unknown ones, by field."""

    __slots__ = ("given", "unknown")

    def __init__(self, binding: Binding) -> None:
        known = {
            name: s for name, s in binding.settings.items() if not isinstance(s.value, Unknown) and not _is_vast(s)
        }
        self.given = Given({n: s.value for n, s in known.items()}, {n: s.spelled for n, s in known.items()})
        self.unknown = {
            n: s.value.reason if isinstance(s.value, Unknown) else "a number too large to follow"
            for n, s in binding.settings.items()
            if n not in known
        }

    def without(self, fields: Set[str]) -> Given:
        """What is given beside these fields."""
        if fields.isdisjoint(self.given.typed):
            return self.given
        return Given({f: v for f, v in self.given.typed.items() if f not in fields}, self.given.spelled)


class BindingCache:
    """A launch's variants bound for the releases that are asked about, each once, with their values."""

    def __init__(self, launch: Launch, configs: ConfigSource) -> None:
        self._launch = launch
        self._configs = configs
        self._bound: dict[tuple[int, Release], tuple[Binding, Values]] = {}
        self._first: dict[int, tuple[Binding, Values]] = {}

    def binding(self, index: int, release: Release) -> tuple[Binding, Values]:
        """What a variant's words come to in a release."""
        found = self._bound.get((index, release))
        if found is None:
            found = self._bound[index, release] = self._bind(index, release)
        return found

    def _bind(self, index: int, release: Release) -> tuple[Binding, Values]:
        if index in self._first and self._launch.program == "launch_server":
            first, values = self._first[index]
            alike = rebound(first, load(catalog_release(release)))
            if alike is not None:
                return alike, values
        binding = bind_variant(self._launch, index, release, self._configs)
        found = binding, Values(binding)
        self._first.setdefault(index, found)
        return found


def device_of(typed: Mapping[str, Any], world: World) -> Hardware | None:
    """The world's hardware, but for a launch that itself names another kind of device."""
    if world.hardware_from in (NOT_NAMED, FILE_NAME):
        return device_told(typed) or world.hardware
    return world.hardware


def _configs(variant: Variant, configs: ConfigSource) -> ReadConfig:
    """Files that the document itself writes come before those of the workspace."""
    written = {file.name: file for file in variant.files}

    def read(path: str) -> tuple[str, str] | ConfigFile | None:
        file = written.get(path)
        if file is not None and file.content.text is not None:
            from spec_lsp.syntax.yaml.config import read_embedded_config  # PyYAML: few launches name a file

            return read_embedded_config(file.content.place.document, file.content)
        return configs(path)

    return read


# --- findings ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunFinding:
    """One finding without places: what a rule says (`said`) or which binding error or note it is (`error`, `note`: indices).

    `about` is what it is about: the field, or the words as typed."""

    rule: Rule
    about: str
    said: Refusal | None = None
    error: int | None = None
    note: int | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """What makes it the same finding in another world."""
        return self.rule.name, self.about

    @property
    def cause(self) -> tuple[str, str]:
        """What makes it the same in another release: one may call a flag unknown that another calls ambiguous, or a key."""
        return ("arguments", self.about.removeprefix("--")) if self.error is not None else (self.rule.name, "")


@dataclass(frozen=True, slots=True)
class MergedFinding:
    """A finding over all worlds. `run` is the first in which it was seen; `where` continues "refused " (empty: everywhere)."""

    found: RunFinding
    severity: Severity
    run: RunResult
    where: str = ""
    variants: tuple[int, ...] = ()
    """The variants in which it holds, when not in all."""
    cases: tuple[tuple[RunFinding, RunResult], ...] = ()
    """The first of each variant in which it was seen: variants may write it at different places."""
    stock: bool = False
    """Whether it is said of SGLang as it is released, and a build of somebody's own may differ."""
    without_effect: bool = False
    """Whether the launch resolves to the very same configuration without the flag."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What SGLang does with a launch, over all its variants and worlds. `main` is the likeliest run."""

    outcome: Outcome
    findings: tuple[MergedFinding, ...]
    main: RunResult
    runs: tuple[RunResult, ...]
    older_unasked: bool = False
    """Whether older releases would have been asked what they make of it, and were not."""


def findings_of(judged: RunResult) -> list[RunFinding]:
    """All that is found in one run, argparse's first."""
    binding = judged.binding
    said_of: Counter[str] = Counter()

    def counted(about: str) -> str:
        """The same words may be wrong twice."""
        said_of[about] += 1
        return about if said_of[about] == 1 else f"{about} ({said_of[about]})"

    found = [RunFinding(rule_of(e), counted(_words_of(e)), error=i) for i, e in enumerate(binding.errors)]
    for i, note in enumerate(binding.notes):
        rule = NOTED.get(note.kind)
        if rule is ABBREVIATED_FLAG and not _surprising(note):
            continue
        if rule is not None:
            found.append(RunFinding(rule, counted(f"{note.kind} {note.typed}"), note=i))
    if judged.resolution is not None:
        seen: set[str] = set()
        late: set[str] = set()
        for finding in judged.resolution.findings:
            name, at = finding.rule.name, finding.said.at
            if name in seen or (finding.rule.late and at in late):
                continue  # a late refusal that is at the same field mostly follows from the first
            seen.add(name)
            if finding.rule.late:
                late.add(at)
            found.append(RunFinding(finding.rule, at, finding.said))
        if not judged.refused:
            found += [RunFinding(OVERRIDDEN_VALUE, said.at, said) for said in overridden(judged)]
    return found


NOTED = {"repeated": REPEATED_FLAG, "deprecated": DEPRECATED_FLAG, "prefix": ABBREVIATED_FLAG}
"""The rules of what SGLang accepts but a person should know."""


def _surprising(note: Note) -> bool:
    """Whether an abbreviation may not be meant as one: whole words of the flag are missing, or it is a flag of another release's."""
    _, *missing = (note.suggestion or "").removeprefix(note.typed).split("-")
    return len(missing) > 1 or flag_span(note.typed) is not None


def _words_of(error: BindError) -> str:
    """What a mistake of arguments is about, as typed."""
    typed = " ".join(dict.fromkeys(filter(None, (error.typed, error.text))))
    return typed or " ".join(w.text or w.known_start for w in error.words) or error.kind


def overridden(judged: RunResult) -> list[Refusal]:
    """Typed values that SGLang will replace, each with the reason of the last step that decided the field."""
    if judged.resolution is None:
        return []
    config, settings = judged.resolution.config, judged.binding.settings
    known = {f: s for f, s in settings.items() if not isinstance(s.value, Unknown) and config.known(f)}
    replaced = [field for field, setting in known.items() if getattr(config, field) != setting.value]
    history = config.history if replaced else {}
    said = []
    for field in replaced:
        value = getattr(config, field)
        decisions = history.get(field, ())
        deciding = [d for d in decisions if not d.step.spelling]
        if not deciding or any(d.step.spelling and d.value == value for d in decisions):
            continue
        message = f"{config.flag_as_typed(field)} becomes {_written(value)}: {deciding[-1].step.reason}"
        fixes = (Change(set={field: value}), Change(drop=(field,)))
        said.append(Refusal(field, message, fixes=fixes))
    return said


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "unset" if value is None else f"`{value}`"


# --- all worlds --------------------------------------------------------------------------------------------------------


def judge(
    launch: Launch,
    worlds: Sequence[World],
    models: ModelSource,
    configs: ConfigSource,
    *,
    release_named: bool = True,
    build: str = "",
    ask_older: bool = True,
    runs: Sequence[RunResult] = (),
) -> Verdict:
    """Judge a launch in all its variants and worlds. With the release not named, older ones are looked at where the newest refuses;
    a `build` of somebody's own ("the image's own build") may know flags and choices that no release has.

    Without `ask_older` the findings are the same, but for how bad they are, what is said of where they hold, and those that only
    older releases have. `runs`: those of the same launch in the same worlds, where they are at hand."""
    bound = BindingCache(launch, configs)
    runs = runs or list(runs_of(launch, worlds, models, bound))
    since: Mapping[tuple[str, str], Release] = {}
    elsewhere: list[MergedFinding] = []
    everywhere = True
    if not release_named and all(r.refused for r in runs):
        if not ask_older:
            return replace(_verdict(runs), older_unasked=True)
        older = _older(launch, runs, worlds, models, bound)
        accepted = not all(r.refused for r in older)
        shared = frozenset.intersection(*map(_reasons, (*runs, *older)))
        if accepted or frozenset.union(*map(_reasons, runs)) - shared:
            since = _since(launch, runs, older, worlds, models, bound)
        if accepted:
            return _verdict(runs, accepted_elsewhere=since)
        everywhere = bool(shared)
        elsewhere = [] if everywhere else _only_older(runs, older)
    verdict = _verdict(runs)
    found = [_with_effect(m, launch, models) for m in verdict.findings]
    found = [_since_release(m, since.get(m.found.cause), refused_everywhere=everywhere) for m in found]
    found = [_unless_built(m, build) for m in found] if build else found
    return replace(verdict, findings=(*found, *elsewhere))


def _since_release(merged: MergedFinding, since: Release | None, *, refused_everywhere: bool) -> MergedFinding:
    """A reason that only newer releases have says so. It is a warning where another reason ends the launch in every release, and an
    error where each release has a reason of its own."""
    if merged.severity != "error" or since is None or not _fatal(merged.found, merged.run):
        return merged
    if not refused_everywhere:
        return replace(merged, where=" ".join(filter(None, (merged.where, f"since {since}"))))
    if merged.found.rule in (AMBIGUOUS_FLAG, UNKNOWN_FLAG):
        return replace(merged, severity="warning", where=f"since {since}")
    return merged


def _unless_built(merged: MergedFinding, build: str) -> MergedFinding:
    """A flag or value that somebody's own build may take, as a warning that says so."""
    if merged.severity == "error" and merged.found.rule in (UNKNOWN_FLAG, INVALID_CHOICE):
        return replace(merged, severity="warning", where=f"unless {build} takes it", stock=True)
    return merged


def _only_older(runs: Sequence[RunResult], older: Sequence[RunResult]) -> list[MergedFinding]:
    """Why older releases refuse what the newest refuses for other reasons, the newest of them first."""
    told = {f.cause for r in runs for f in findings_of(r)}
    cases: OrderedDict[tuple[str, str], list[tuple[RunFinding, RunResult]]] = OrderedDict()
    for judged in older:
        for found in findings_of(judged):
            if _fatal(found, judged) and found.cause not in told:
                cases.setdefault(found.identity, []).append((found, judged))
    merged = []
    for seen in cases.values():
        found, first = seen[0]
        holding = [j for _, j in seen]
        where = _where(holding, (*runs, *older))
        merged.append(MergedFinding(found, "error", first, where, _variants(holding, older), _by_variant(seen)))
    return merged


def _with_effect(merged: MergedFinding, launch: Launch, models: ModelSource) -> MergedFinding:
    """Whether an overridden flag does anything at all: the launch is resolved once more without it."""
    if merged.found.rule is not OVERRIDDEN_VALUE or merged.found.said is None or merged.run.resolution is None:
        return merged
    first, field, resolution = merged.run, merged.found.said.at, merged.run.resolution
    settings = {name: setting for name, setting in first.binding.settings.items() if name != field}
    binding = replace(first.binding, settings=settings)
    without = run(launch, first.variant, first.world, models, binding, bare=first.bare).resolution
    same = without is not None and without.config.fields() == resolution.config.fields()
    return replace(merged, without_effect=same)


def runs_of(launch: Launch, worlds: Sequence[World], models: ModelSource, bound: BindingCache) -> Iterator[RunResult]:
    """Every variant in its worlds (see `grid`); where more may be given than is seen, twice."""
    for index, world in grid(launch, worlds):
        checkpoint()
        binding, values = bound.binding(index, world.release)
        judged = run(launch, index, world, models, binding, values=values)
        yield judged
        if is_open(launch, binding) and not (judged.resolution and judged.resolution.refused):
            yield run(launch, index, world, models, binding, bare=True, values=values)


def _older(
    launch: Launch, runs: Sequence[RunResult], worlds: Sequence[World], models: ModelSource, bound: BindingCache
) -> list[RunResult]:
    """The launch in older releases, newest first, until one takes it.

    What the newest release refuses on every hardware, older ones are asked about on one. Where they refuse it there for another reason,
    they are asked on all: `trtllm_mla` says that it is not Hopper.
    """
    everywhere = frozenset.intersection(*(_reasons(r) for r in runs))
    one = next((w for w in worlds if w.hardware and w.hardware.family == "hopper"), worlds[0])
    releases_asked = list(OLDER_WORLDS)
    if everywhere and len(worlds) > 1:
        older: list[RunResult] = []
        for release in OLDER_WORLDS:
            asked = list(runs_of(launch, [replace(one, release=release)], models, bound))
            older += asked
            if not all(r.refused for r in asked):
                return older
            if all(everywhere & _reasons(r) for r in asked):
                releases_asked.remove(release)
        if not releases_asked:
            return older
    older = []
    for release in releases_asked:
        older += list(runs_of(launch, [replace(w, release=release) for w in worlds], models, bound))
        if not all(r.refused for r in older):
            break
    return older


def _reasons(judged: RunResult) -> frozenset[tuple[str, str]]:
    """What ends the launch."""
    return frozenset(f.identity for f in findings_of(judged) if _fatal(f, judged))


def _since(
    launch: Launch,
    runs: Sequence[RunResult],
    older: Sequence[RunResult],
    worlds: Sequence[World],
    models: ModelSource,
    bound: BindingCache,
) -> Mapping[tuple[str, str], Release]:
    """For each finding that ends the launch in the newest release, the release from which on it does."""
    causes = {f.cause for r in runs for f in findings_of(r) if _fatal(f, r)}
    seen: dict[Release, set[tuple[str, str]]] = {}
    for judged in older:
        seen.setdefault(judged.world.release, set()).update(f.cause for f in findings_of(judged))
    since: dict[tuple[str, str], Release] = {}
    for cause in causes:
        without = max((release for release, found in seen.items() if cause not in found), default=None)
        for release in releases():
            if without is None or release <= without:
                continue
            if release not in seen:
                asked = list(runs_of(launch, [replace(worlds[0], release=release)], models, bound))
                seen[release] = {f.cause for r in asked for f in findings_of(r)}
            if cause in seen[release]:
                since[cause] = release
                break
    return since


def _fatal(found: RunFinding, judged: RunResult) -> bool:
    """Whether the finding is (part of) why argument resolution ends the launch."""
    if found.error is not None:
        return judged.binding.errors[found.error].fatal
    return found.rule.severity == "error" and not found.rule.late


def _verdict(runs: Sequence[RunResult], accepted_elsewhere: Mapping[tuple[str, str], Release] | None = None) -> Verdict:
    """Merge runs. `accepted_elsewhere`: older releases take the launch; since when each finding holds."""
    accepting = [r for r in runs if not r.refused]
    kept = [r for r in runs if not r.gated] or list(runs)
    merged = _merge(kept, bool(accepting), accepted_elsewhere)
    main = accepting[0] if accepting else kept[0]
    return Verdict(
        _outcome(runs, accepting, accepted_elsewhere), tuple(merged), _likeliest(accepting or kept, main), tuple(runs)
    )


def _likeliest(runs: Sequence[RunResult], fallback: RunResult) -> RunResult:
    """A run on what the file's name speaks of, else on Hopper."""
    hinted = [r for r in runs if r.world.hardware_from == FILE_NAME]
    hopper = [r for r in runs if r.world.hardware and r.world.hardware.family == "hopper"]
    return next(iter(hinted or hopper), fallback)


def _outcome(runs: Sequence[RunResult], accepting: Sequence[RunResult], accepted_elsewhere: object) -> Outcome:
    if not accepting:
        if accepted_elsewhere is not None:
            return "depends"
        return "bad-arguments" if all(r.bad_arguments for r in runs) else "refused"
    if len(accepting) < len(runs):
        return "depends"
    return "accepted" if all(r.decided for r in runs) else "unknown"


def _merge(
    runs: Sequence[RunResult], some_accept: bool, accepted_elsewhere: Mapping[tuple[str, str], Release] | None
) -> list[MergedFinding]:
    seen: OrderedDict[tuple[str, str], list[tuple[RunFinding, RunResult]]] = OrderedDict()
    for judged in runs:
        for found in findings_of(judged):
            seen.setdefault(found.identity, []).append((found, judged))
    accepting = [r for r in runs if not r.refused]
    merged = []
    for cases in seen.values():
        found, first = cases[0]
        holding = [j for _, j in cases]
        fatal = _fatal(found, first)
        audience = list(runs) if fatal else accepting or list(runs)
        everywhere = len(holding) >= len(audience)
        severity: Severity = found.rule.severity
        where = ""
        if fatal:
            if some_accept:
                severity, where = "warning", _where(holding, runs)
            elif accepted_elsewhere is not None:
                release = accepted_elsewhere.get(found.cause)
                severity, where = "warning", f"since {release}" if release else "by the newest release"
            elif not everywhere:
                where = _where(holding, runs)
                severity = "warning" if all(j.bare for j in holding) else severity
            if found.rule is REMOVED_FLAG and first.world.release < releases()[0]:
                continue  # a release older than all that are known may still have had it
            if found.rule in (UNKNOWN_FLAG, INVALID_CHOICE) and not _known_to_be_refused(found, first):
                severity = "warning"
                if first.world.release < releases()[0] and not first.binding.errors[found.error or 0].suggestion:
                    continue
        elif found.rule.severity == "error" and not everywhere:
            severity, where = "warning", _where(holding, runs)
        elif not everywhere:
            continue
        variants = _variants(holding, runs) if severity == "warning" or where else ()
        merged.append(MergedFinding(found, severity, first, where, variants, _by_variant(cases)))
    return merged


def _known_to_be_refused(found: RunFinding, judged: RunResult) -> bool:
    """Whether the very release refuses a flag or value, one that is newer or older than all that are known included."""
    release = judged.world.release
    if release >= releases()[0]:
        return release.stock <= releases()[-1]
    error = judged.binding.errors[found.error or 0]
    field = error.definition.field if error.definition is not None else ""
    span = choice_span(field, error.text) if error.kind == "invalid-choice" else flag_span(error.typed)
    return span is not None and not span.from_the_start


def _by_variant(cases: Sequence[tuple[RunFinding, RunResult]]) -> tuple[tuple[RunFinding, RunResult], ...]:
    """The first case of each variant."""
    first: dict[int, tuple[RunFinding, RunResult]] = {}
    for found, judged in cases:
        first.setdefault(judged.variant, (found, judged))
    return tuple(first.values())


def _variants(holding: Sequence[RunResult], runs: Sequence[RunResult]) -> tuple[int, ...]:
    """The variants in which something holds; empty when they are all that were judged in these worlds."""
    variants, worlds = tuple(dict.fromkeys(r.variant for r in holding)), {r.world for r in holding}
    return variants if len(variants) < len({r.variant for r in runs if r.world in worlds}) else ()


def _where(holding: Sequence[RunResult], runs: Sequence[RunResult]) -> str:
    """Which of the runs these are, as a phrase: "on SM100 (B200, GB200)", "on SGLang 0.5.19", "when $1 is big"."""
    parts = []
    hardware = list(dict.fromkeys(r.world.hardware.title for r in holding if r.world.hardware))
    if hardware and len(hardware) < len({r.world.hardware for r in runs}):
        parts.append("on " + _listed(hardware))
    named = list(dict.fromkeys(str(r.world.release) for r in holding))
    if len(named) < len({r.world.release for r in runs}):
        parts.append("on SGLang " + _listed(named))
    if not parts and not _variants(holding, runs) and all(r.bare for r in holding):
        reasons = dict.fromkeys(w.reason or "from elsewhere" for w in holding[0].binding.open) or [
            "from the command line"
        ]
        parts.append(f"unless what comes {_listed(list(reasons))} changes it")
    return " ".join(parts)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
