"""One launch in one world: what its words bind to, and what that resolves to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from spec_lsp.analysis.grid import grid
from spec_lsp.analysis.hidden import hidden
from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.rules import rule_of
from spec_lsp.analysis.worlds import FILE_NAME, NOT_NAMED
from spec_lsp.catalog.binding import Binding, ReadConfig, Setting, Unknown, bind, rebound
from spec_lsp.catalog.meant import fields_meant
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import catalog_of, fields_of_any, load
from spec_lsp.facts.clues import device_told
from spec_lsp.facts.environment import Environment
from spec_lsp.facts.hardware import Hardware
from spec_lsp.facts.model import ModelFacts
from spec_lsp.interruption import checkpoint
from spec_lsp.records import NamedTuple, dataclass, replace
from spec_lsp.resolution.engine import RULES, Change, Resolution, Rule
from spec_lsp.resolution.handlers import handlers_of
from spec_lsp.resolution.internal_fields import INTERNAL
from spec_lsp.resolution.replay import Given, Kind, resolve_by_difference
from spec_lsp.syntax.launch import Launch, Variant

if TYPE_CHECKING:
    from spec_lsp.syntax.yaml.config import ConfigFile

ModelSource = Callable[[str], "ModelFacts | None"]
ConfigSource = Callable[[str], "tuple[str, str] | None"]
"""A `--config` file as the launch names it: (document name, text), or None."""

Condoned = frozenset[tuple[str, str]]
"""What refuses nothing, because the launch's writer says so: rules, by name, and the field or words they are about (empty: anything)."""

OLDEST_MODELLED = Release.parse("0.5.6")
"""The oldest release whose whole resolution is followed; of older ones only some refusals are known."""
OLDEST_FOLLOWED = Release.parse("0.5.3")
"""The oldest release of which all is followed but the adjustments for single models."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """One variant in one world. Words that do not bind are left out of the resolution, and what they may have meant is unknown."""

    variant: int
    world: World
    binding: Binding
    resolution: Resolution | None
    modelled: bool
    """Whether this release's resolution is followed at all."""
    bare: bool = False
    """Whether unknown words (`"$@"`) are taken to add nothing; otherwise they may set any field before them."""
    condoned: Condoned = frozenset()
    hides: frozenset[str] = frozenset()
    """The rules of those of its refusals that were found behind others (see `hidden`)."""

    @property
    def bad_arguments(self) -> bool:
        return any(e.fatal and not self.condones(rule_of(e), e.about) for e in self.binding.errors)

    @property
    def refused(self) -> bool:
        return self.bad_arguments or (self.resolution is not None and self._refused(self.resolution))

    def _refused(self, resolution: Resolution) -> bool:
        if not self.condoned:
            return resolution.refused
        return any(f.ends_resolution and not self.condones(f.rule, f.said.at) for f in resolution.findings)

    def condones(self, rule: Rule, about: str) -> bool:
        """Whether a finding about a field, or about words, ends no launch here."""
        return bool(self.condoned) and not self.condoned.isdisjoint(((rule.name, about), (rule.name, "")))

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
        found = self.resolution.findings if self.resolution is not None else ()
        return any(f.rule.hardware_only and not self.condones(f.rule, f.said.at) for f in found)


@lru_cache(maxsize=128)
def _kind(release: Release, open_: bool) -> Kind:
    """The release's handlers and fields with their defaults, and the names that only other releases have."""
    defaults = {**INTERNAL, **load(release).defaults}
    every = fields_of_any() | INTERNAL.keys()
    return Kind(handlers_of(release), release, defaults, every - defaults.keys(), open_)


def environment(variant: Variant) -> Environment:
    return Environment({name: word.text for name, word in variant.env.items()})


def bind_variant(launch: Launch, index: int, release: Release, configs: ConfigSource) -> Binding:
    """The words of one variant as the shipped release nearest to `release` binds them."""
    variant = launch.variants[index]
    catalog = catalog_of(release)
    if launch.program == "engine":
        from spec_lsp.catalog.keywords import bind_keywords  # imports ast, and few launches are calls

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
    """Resolve one bound variant in one world. `values`: those of the binding, if they were already computed."""
    release = binding.catalog.release
    values = values or Values.of(binding)
    given, unknown = values.given, values.unknown
    meant = _meant(binding)
    open_ = meant is None or (not bare and is_open(launch, binding))
    kind = _kind(release, open_)
    untold = frozenset(kind.defaults.keys() - given.typed.keys() - unknown.keys()) if open_ else meant or frozenset()
    if bare:
        untold |= NAMED_BY_WHO_STARTS - given.typed.keys() - unknown.keys()
    if untold:
        given, unknown = values.without(untold), {**unknown, **dict.fromkeys(untold, OPEN)}
    path = None if "model_path" in untold else model_path(binding)
    resolution = resolve_by_difference(
        kind,
        given,
        unknown=unknown,
        untold=untold,
        gpu=device_of(given.typed, world),
        model=models(path) if path is not None else None,
        draft=models,
        env=environment(launch.variants[index]),
    )
    return RunResult(index, world, binding, resolution, release >= OLDEST_MODELLED, bare)


NAMED_BY_WHO_STARTS = frozenset({"dist_init_addr"})
"""Fields that a script leaves to whoever starts it, once for each cluster: where more words may come, they are not taken to be left out."""

OPEN = "words that the file does not tell, or that SGLang does not take, may be meant to set it"


MAX_MISTAKES = 24
"""The most words that do not bind for which we guess what they were meant to be."""


def _meant(binding: Binding) -> frozenset[str] | None:
    """The fields that the words which do not bind may have been meant to set; None if it may be any field."""
    fields: set[str] = set()
    if len(binding.errors) > MAX_MISTAKES:
        return None
    for error in binding.errors:
        if error.kind in _ANY_FIELD and not error.definition:
            return None
        fields.update(fields_meant(binding, error))
    return frozenset(fields)


_ANY_FIELD = frozenset(("config-missing", "config-not-mapping", "config-twice"))
"""Argument errors because of which a whole file of flags is not read."""


def without(field: str, binding: Binding) -> Binding:
    """The binding as if nobody had typed the field."""
    return replace(binding, settings={name: one for name, one in binding.settings.items() if name != field})


def is_open(launch: Launch, binding: Binding) -> bool:
    """Whether more may be given than the document shows: by `"$@"`, by a trainer, or on the command line that names a `--config` file.

    What is written counts as meant; anything else may be added.
    """
    return bool(binding.open) or launch.in_part


MAX_RANKS, MAX_NUMBER = 2**16, 2**62
"""Larger numbers are not followed: the first limit is for the GPUs, nodes and parts that work is divided among, the second for all other
numbers."""


def _is_vast(setting: Setting) -> bool:
    """Whether a typed number is too large to be meant: some rules count up to it, or calculate with it beyond the range of a float."""
    value = setting.value
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    divides = setting.field.endswith(("tp_size", "dp_size", "ep_size", "pp_size", "cp_size", "nnodes", "node_rank"))
    return abs(value) > (MAX_RANKS if divides else MAX_NUMBER)


class Values(NamedTuple):
    """What a binding gives: typed values with how they are written, and the reasons of unknown ones, by field."""

    given: Given
    unknown: Mapping[str, str]

    @classmethod
    def of(cls, binding: Binding) -> Values:
        known = {
            name: s for name, s in binding.settings.items() if not isinstance(s.value, Unknown) and not _is_vast(s)
        }
        unknown = {
            n: s.value.reason if isinstance(s.value, Unknown) else "a number too large to follow"
            for n, s in binding.settings.items()
            if n not in known
        }
        return cls(Given({n: s.value for n, s in known.items()}, {n: s.spelled for n, s in known.items()}), unknown)

    def changed(self, change: Change) -> Values:
        """The values after a change of fields."""
        kept = self.without({*change.set, *change.drop})
        unknown = {n: why for n, why in self.unknown.items() if n not in change.set and n not in change.drop}
        return Values(kept._replace(typed={**kept.typed, **change.set}), unknown)

    def without(self, fields: Set[str]) -> Given:
        """The given values without these fields."""
        if fields.isdisjoint(self.given.typed):
            return self.given
        return Given({f: v for f, v in self.given.typed.items() if f not in fields}, self.given.spelled)


def model_path(binding: Binding) -> str | None:
    """Under which path or id the facts of a launch's model are to be looked up (see `Setting.path_to_name`)."""
    setting = binding.settings.get("model_path")
    return setting.path_to_name if setting is not None else None


def device_of(typed: Mapping[str, Any], world: World) -> Hardware | None:
    """The world's hardware, unless the launch itself names another kind of device."""
    if world.hardware_from in (NOT_NAMED, FILE_NAME):
        return device_told(typed) or world.hardware
    return world.hardware


def _configs(variant: Variant, configs: ConfigSource) -> ReadConfig:
    """Reads `--config` files: those that the document itself writes take precedence over those of the workspace."""
    written = {file.name: file for file in variant.files}

    def read(path: str) -> tuple[str, str] | ConfigFile | None:
        file = written.get(path)
        if file is not None and file.content.text is not None:
            from spec_lsp.syntax.yaml.config import read_embedded_config  # imports PyYAML, and few launches name a file

            return read_embedded_config(file.content.place.document, file.content)
        return configs(path)

    return read


class Runner:
    """Runs one launch in the worlds that are asked about. Its words are bound once for each release."""

    def __init__(
        self, launch: Launch, models: ModelSource, configs: ConfigSource, condoned: Condoned = frozenset()
    ) -> None:
        self.launch = launch
        self.condoned = condoned
        self._models = models
        self._configs = configs
        self._bound: dict[tuple[int, Release], tuple[Binding, Values]] = {}
        self._first: dict[int, tuple[Binding, Values]] = {}

    def in_worlds(self, worlds: Sequence[World]) -> Iterator[RunResult]:
        """Every variant in its worlds (see `grid`); twice where more may be given than is seen."""
        for index, world in grid(self.launch, worlds):
            checkpoint()
            binding, values = self.binding(index, world.release)
            judged = run(self.launch, index, world, self._models, binding, values=values)
            yield self.condoning(judged)
            if is_open(self.launch, binding) and not (judged.resolution and judged.resolution.refused):
                yield self.condoning(run(self.launch, index, world, self._models, binding, bare=True, values=values))

    def behind(self, runs: Sequence[RunResult]) -> list[RunResult]:
        """The runs with the refusals that others hide.

        Most refusals hide none. So of the runs of one variant that refuse the same, the first is looked at, and the others if it hides any.
        """
        hides: dict[object, bool] = {}
        looked: list[RunResult] = []
        for judged in runs:
            if not judged.bare and judged.resolution is not None and judged.resolution.refused:
                alike = (
                    judged.variant,
                    frozenset((f.rule.name, f.said.at) for f in judged.resolution.findings if f.ends_resolution),
                )
                if hides.get(alike, True):
                    judged = self._looked_behind(judged, judged.resolution)
                    hides.setdefault(alike, bool(judged.hides))
            looked.append(judged)
        return looked

    def _looked_behind(self, judged: RunResult, resolution: Resolution) -> RunResult:
        checkpoint()
        values = self.binding(judged.variant, judged.world.release)[1]
        known: list[tuple[Change, Resolution | None]] = []

        def mended(change: Change) -> Resolution | None:
            if not any(change == one for one, _ in known):
                changed = values.changed(change)
                after = run(self.launch, judged.variant, judged.world, self._models, judged.binding, values=changed)
                known.append((change, after.resolution))
            return next(resolution for one, resolution in known if one == change)

        more = hidden(resolution, mended)
        if not more:
            return judged
        told = replace(resolution, findings=[*resolution.findings, *more])
        return replace(judged, resolution=told, hides=frozenset(f.rule.name for f in more))

    def condoning(self, judged: RunResult) -> RunResult:
        """A run with the rules that end no launch here."""
        return replace(judged, condoned=self.condoned) if judged.condoned != self.condoned else judged

    def binding(self, index: int, release: Release) -> tuple[Binding, Values]:
        """How a variant's words bind in a release."""
        found = self._bound.get((index, release))
        if found is None:
            found = self._bound[index, release] = self._bind(index, release)
        return found

    def _bind(self, index: int, release: Release) -> tuple[Binding, Values]:
        if index in self._first and self.launch.program == "launch_server":
            first, values = self._first[index]
            alike = rebound(first, catalog_of(release))
            if alike is not None:
                return alike, values
        binding = bind_variant(self.launch, index, release, self._configs)
        found = binding, Values.of(binding)
        self._first.setdefault(index, found)
        return found

    def without(self, judged: RunResult, field: str) -> RunResult:
        """The same run without the launch's setting of a field."""
        binding = without(field, judged.binding)
        return run(self.launch, judged.variant, judged.world, self._models, binding, bare=judged.bare)
