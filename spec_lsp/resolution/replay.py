"""Resolution again, doing only what differs from a launch already resolved.

`engine.resolve` runs every step. Most steps of most launches do just what they did for the bare launch of the same model on the
same hardware and release: they read fields that nobody touched. So the bare launch is resolved once with its reads written down (a
`Baseline`), and for another launch a step is run only if it reads a field that differs; else what it did is done again. The result is
the same, which tests/resolution/test_replay.py checks; the cost is what differs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spec_lsp.catalog.release import Release
from spec_lsp.facts.environment import Environment
from spec_lsp.facts.hardware import Hardware
from spec_lsp.facts.known import NotTold
from spec_lsp.facts.model import ModelFacts
from spec_lsp.resolution.engine import (
    Config,
    Decision,
    Finding,
    Handler,
    Resolution,
    Step,
    give_up,
    goes,
    plan_of,
    run_step,
)

MAX_BASELINES = 128
"""How many are kept: a release × a GPU × a model × an environment × whether the launch is open."""

SAME = ("model_path",)
"""Fields that the bare launch gives too."""

EVERYTHING = "*"
"""A read of all fields at once: the step always runs."""


# --- writing down what a launch reads ----------------------------------------------------------------------------------


class _Recording(Config):
    """A Config that writes down which fields are read."""

    __slots__ = ("reads", "sets")
    reads: set[str]
    sets: list[tuple[str, Any, Decision | None]]

    def __getattribute__(self, name: str) -> Any:
        if name not in _OWN:
            object.__getattribute__(self, "reads").add(name)
        return super().__getattribute__(name)

    def given(self, name: str) -> bool:
        self.reads.add(name)
        return super().given(name)

    def typed(self, name: str) -> Any:
        self.reads.add(name)
        return super().typed(name)

    def known(self, name: str) -> bool:
        self.reads.add(name)
        return super().known(name)

    def shown(self, name: str) -> str:
        self.reads.add(name)
        return super().shown(name)

    def flag_as_typed(self, name: str) -> str:
        self.reads.add(name)
        return super().flag_as_typed(name)

    def fields(self) -> dict[str, Any]:
        self.reads.add(EVERYTHING)
        return super().fields()

    def set(self, **fields: Any) -> None:
        for name, value in fields.items():
            before = len(self.history.get(name, ()))
            super().set(**{name: value})
            history = self.history.get(name, [])
            self.sets.append((name, value, history[-1] if len(history) > before else None))


# methods and facts are no fields; facts are the same for baseline and launch
_FACTS = frozenset({"model", "draft"})
"""What `--json-model-override-args` changes beside its own field."""

_OWN = frozenset(name for cls in _Recording.__mro__ for name in vars(cls)) - _FACTS | {"__dict__", "__class__"}


@dataclass(frozen=True, slots=True)
class Traced:
    """What a step read and did. `sets` are the values it decided, in order, each with the history's entry if it changed the field;
    `said` and `lacking` tell how it ended."""

    step: Step
    reads: frozenset[str]
    sets: tuple[tuple[str, Any, Decision | None], ...] = ()
    said: Finding | None = None
    lacking: Exception | None = None


@dataclass(frozen=True, slots=True)
class TracedHandler:
    """A handler's guard and steps. `went` is what the guard said (None: it could not be told); `reads` covers guard and steps."""

    handler: Handler
    fields: tuple[str, ...]
    steps: tuple[Step, ...]
    guard_reads: frozenset[str]
    went: bool | None
    lacking: Exception | None
    traced: tuple[Traced, ...]
    reads: frozenset[str]
    quiet: bool
    """Whether it changed nothing and said nothing."""


@dataclass(slots=True)
class Baseline:
    """A bare launch resolved: its steps, and what it started with."""

    handlers: tuple[TracedHandler, ...]
    start: Mapping[str, Any]
    unknown: Mapping[str, str]
    untold: frozenset[str]
    model: ModelFacts | None
    draft: Callable[[str], ModelFacts | None] | None = field(default=None)


# --- making a baseline -------------------------------------------------------------------------------------------------


def trace(handlers: tuple[Handler, ...], c: Config) -> Baseline:
    """Resolve `c` with every read written down. `c` must be a `_Recording`."""
    assert isinstance(c, _Recording)
    c.reads, c.sets = set(), []
    start, unknown, untold = dict(c.__dict__), dict(c._unknown), frozenset(c._untold)
    result = Resolution(c)
    traced = [
        _trace_handler(handler, steps, fields, c, result) for handler, steps, fields in plan_of(handlers, c.release)
    ]
    return Baseline(tuple(traced), start, unknown, untold, c._model, c._draft)


def _trace_handler(
    handler: Handler, steps: tuple[Step, ...], fields: tuple[str, ...], c: _Recording, result: Resolution
) -> TracedHandler:
    went: bool | None = True
    lacking: Exception | None = None
    guard_reads: frozenset[str] = frozenset()
    if handler.when is not None:
        c.reads = set()
        try:
            went = goes(handler, c)
        except Exception as error:
            went, lacking = None, error
            give_up(result, error, fields, steps)
        guard_reads = frozenset(c.reads)
    traced = tuple(_trace_step(step, c, result) for step in steps) if went else ()
    reads = guard_reads.union(*(t.reads for t in traced))
    quiet = lacking is None and not any(t.sets or t.said or t.lacking for t in traced)
    return TracedHandler(handler, fields, steps, guard_reads, went, lacking, traced, reads, quiet)


def _trace_step(step: Step, c: _Recording, result: Resolution) -> Traced:
    c.reads, c.sets = set(), []
    findings = len(result.findings)
    error = run_step(step, c, result)
    said = result.findings[-1] if len(result.findings) > findings else None
    return Traced(step, frozenset(c.reads), tuple(c.sets), said, error)


# --- resolving by difference -------------------------------------------------------------------------------------------


class _Difference:
    """Which fields of a launch differ from the baseline's at the same point."""

    __slots__ = ("base", "base_unknown", "base_untold", "c", "dirty", "given")

    def __init__(self, c: Config, baseline: Baseline, same: Iterable[str]) -> None:
        self.c = c
        self.base = dict(baseline.start)
        self.base_unknown = set(baseline.unknown)
        self.base_untold = set(baseline.untold)
        self.given = set(c._typed).difference(same)
        self.dirty: set[str] = {EVERYTHING}
        self.update(c._typed)
        self.update(c._unknown.keys() | baseline.unknown.keys())
        if "json_model_override_args" in self.dirty:
            self.dirty |= _FACTS

    def update(self, fields: Iterable[str]) -> None:
        """Compare fields again after one side decided them."""
        values, unknown = self.c.__dict__, self.c._unknown
        for name in fields:
            if name in self.given:
                self.dirty.add(name)
            elif name in values:
                same = name in self.base and _equal(self.base[name], values[name])
                (self.dirty.discard if same else self.dirty.add)(name)
            elif name in unknown:
                same = name not in self.base and name in self.base_unknown
                same = same and (name in self.c._untold) == (name in self.base_untold)
                (self.dirty.discard if same else self.dirty.add)(name)

    def base_sets(self, traced: Traced) -> None:
        """Let the baseline do what its step did."""
        for name, value, _ in traced.sets:
            self.base[name] = value
        if traced.lacking is not None:
            self.base_forgets(traced.step.fields, traced.lacking)
        if traced.said is not None and traced.said.ends_resolution:
            self.base_forgets((traced.said.said.at,), None)

    def base_forgets(self, fields: Iterable[str], lacking: Exception | None) -> None:
        untold = isinstance(lacking, NotTold)
        for name in fields:
            if untold and name in SAME:
                continue
            self.base.pop(name, None)
            self.base_unknown.add(name)
            (self.base_untold.add if untold else self.base_untold.discard)(name)


def _equal(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and bool(a == b))


def replay(baseline: Baseline, c: Config, same: Iterable[str]) -> Resolution:
    """Resolve `c`, which differs from the baseline's launch in what it gives beyond the fields `same`."""
    result = Resolution(c)
    difference = _Difference(c, baseline, same)
    dirty = difference.dirty
    for traced in baseline.handlers:
        if traced.reads.isdisjoint(dirty):
            if not traced.quiet:
                _again(traced, result, difference)
        else:
            _anew(traced, result, difference)
    c._step = None
    return result


def _again(handler: TracedHandler, result: Resolution, difference: _Difference) -> None:
    """Do what the baseline's handler did."""
    if handler.lacking is not None:
        give_up(result, handler.lacking, handler.fields, handler.steps)
        difference.base_forgets(handler.fields, handler.lacking)
        difference.update(handler.fields)
    for traced in handler.traced:
        if traced.sets or traced.said or traced.lacking:
            _step_again(traced, result, difference)


def _step_again(traced: Traced, result: Resolution, difference: _Difference) -> None:
    c, dirty, base = result.config, difference.dirty, difference.base
    c._step = traced.step
    for name, value, decision in traced.sets:
        if name in dirty:
            c.set(**{name: value})
            if name not in difference.given:
                dirty.discard(name)
        else:
            c.__dict__[name] = value
            if decision is not None:
                c.history.setdefault(name, []).append(decision)
        base[name] = value
    if traced.lacking is None and traced.said is None:
        return
    if traced.lacking is not None:
        give_up(result, traced.lacking, traced.step.fields, (traced.step,))
    if traced.said is not None:
        result.add(traced.said)
    difference.base_sets(traced)
    difference.update((*traced.step.fields, traced.said.said.at) if traced.said is not None else traced.step.fields)


def _anew(handler: TracedHandler, result: Resolution, difference: _Difference) -> None:
    """Run the handler's guard and those of its steps that read something that differs."""
    c = result.config
    went, lacking = handler.went, handler.lacking
    if not handler.guard_reads.isdisjoint(difference.dirty):
        lacking = None
        try:
            went = goes(handler.handler, c)
        except Exception as error:
            went, lacking = None, error
    if went and handler.went:
        for traced in handler.traced:
            if traced.reads.isdisjoint(difference.dirty):
                if traced.sets or traced.said or traced.lacking:
                    _step_again(traced, result, difference)
            else:
                before = len(result.findings)
                run_step(traced.step, c, result)
                difference.base_sets(traced)
                if traced.step.fields:
                    difference.update(traced.step.fields)
                if traced.said is not None or len(result.findings) > before:
                    difference.update(f.said.at for f in (traced.said, *result.findings[before:]) if f is not None)
        return
    for traced in handler.traced:
        difference.base_sets(traced)
    if handler.lacking is not None:
        difference.base_forgets(handler.fields, handler.lacking)
    if lacking is not None:
        give_up(result, lacking, handler.fields, handler.steps)
    elif went:
        for step in handler.steps:
            run_step(step, c, result)
    said = (*result.findings, *(t.said for t in handler.traced if t.said is not None))
    difference.update((*handler.fields, *(f.said.at for f in said)))


# --- the baselines of this process -------------------------------------------------------------------------------------


_BASELINES: OrderedDict[tuple[Any, ...], Baseline] = OrderedDict()


def resolve_by_difference(
    handlers: tuple[Handler, ...],
    release: Release,
    defaults: Mapping[str, Any],
    typed: Mapping[str, Any],
    *,
    unknown: Mapping[str, str],
    untold: frozenset[str],
    gpu: Hardware | None,
    model: ModelFacts | None,
    draft: Callable[[str], ModelFacts | None],
    env: Environment,
    other_fields: frozenset[str],
    spelled: Mapping[str, str],
    open_: bool,
) -> Resolution:
    """`engine.resolve` of a new Config with these parts, by difference from the bare launch of the same world.

    `open_`: what is not given is unknown (`unknown` then holds all of `untold`).
    """
    facts = {"gpu": gpu, "model": model, "draft": draft, "env": env, "other_fields": other_fields}
    c = Config(release, defaults, typed, unknown=unknown, untold=untold, spelled=spelled, **facts)  # type: ignore[arg-type]
    key = (
        handlers,
        release,
        gpu,
        id(model),
        typed.get("model_path"),
        tuple(sorted(env.values.items(), key=str)),
        open_,
    )
    baseline = _BASELINES.get(key)
    if baseline is None or baseline.model is not model:
        bare = {name: typed[name] for name in SAME if name in typed}
        why = next(iter(unknown.values()), "") if open_ else ""
        bare_unknown = {name: unknown.get(name, why) for name in defaults if name not in bare} if open_ else {}
        recording = _Recording(
            release, defaults, bare, unknown=bare_unknown, untold=frozenset(bare_unknown) if open_ else untold, **facts  # type: ignore[arg-type]
        )  # fmt: skip
        baseline = _BASELINES[key] = trace(handlers, recording)
        if len(_BASELINES) > MAX_BASELINES:
            _BASELINES.popitem(last=False)
    else:
        _BASELINES.move_to_end(key)
    return replay(baseline, c, SAME)
