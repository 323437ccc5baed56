"""Resolves a launch by its differences from a launch whose resolution is known.

`engine.resolve` runs every guard and every step. In most launches, most of them do exactly what they do in the bare launch of the same
model on the same hardware and release, because they read nothing that differs. So the bare launch is resolved once, part by part, and its
reads are recorded (a `Baseline`). For another launch, only the parts are run that read something that differs by then; the results of all
others are taken over. A bare launch in another world (another model, other hardware, other variables) is resolved in the same way, by its
differences from a known one; and if launches hardly differ (one launch in all its worlds, or one whose value somebody types), one of them
takes the place of the bare launch for the others. The result is that of `engine.resolve`, which tests/resolution/test_replay.py checks; the
cost is proportional to the differences.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import Any, TypeVar

from spec_lsp.catalog.release import Release
from spec_lsp.facts.environment import Environment
from spec_lsp.facts.hardware import Hardware
from spec_lsp.facts.model import ModelFacts
from spec_lsp.records import NamedTuple, dataclass
from spec_lsp.resolution.engine import (
    ABSENT,
    ADAPTERS,
    DRAFT,
    DRAFT_PATH,
    EVERYTHING,
    MODEL,
    NO_FIELDS,
    Config,
    Decision,
    Fields,
    Finding,
    Handler,
    Resolution,
    Step,
    UnknownField,
    as_given,
    goes,
    hardware_apart,
    mark_undecided,
    plan_of,
    run_step,
    same_state,
    spelling_of,
)

MAX_BARE = 128
"""How many bare launches are kept: one for each combination of release, GPU, model, environment, and whether the launch is open."""

MAX_SHAPES = 128
"""How many other launches are kept."""

MAX_LEFT = 500
"""The most ranges of parts whose effects a launch caches."""

MODEL_PATH = "model_path"
"""The field that the bare launch also gives."""


class Given(NamedTuple):
    """The fields that a launch gives, and how they are written."""

    typed: Mapping[str, Any]
    spelled: Mapping[str, str]

    def apart(self, other: Given) -> set[str]:
        """The fields that are not given alike."""
        typed, others = self.typed, other.typed
        if typed is others:
            return set()
        names = {name for name, value in typed.items() if not same_state(value, others.get(name, ABSENT))}
        names.update(others.keys() - typed.keys())
        return names


# --- parts and what comes of them --------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """The results of a part: the fields that it changed, its decisions, its findings; for a guard, whether its steps run."""

    states: Mapping[str, Any] = MappingProxyType({})
    log: tuple[tuple[str, Decision], ...] = ()
    findings: tuple[Finding, ...] = ()
    undecided: Mapping[str, str] = MappingProxyType({})
    faults: tuple[str, ...] = ()
    goes: bool = False

    @property
    def says(self) -> bool:
        """Whether it has results besides the fields' states."""
        return bool(self.findings or self.undecided or self.faults)


NOTHING = Outcome()
"""The result of a step that finds nothing to do, as most do, and of one whose guard does not let it run."""
GOES = Outcome(goes=True)
"""The result of a guard that lets its steps run."""


@dataclass(slots=True, eq=False)
class Part:
    """A handler's guard (`step` None; `steps` and `fields` are all of the handler's) or one of its steps. `guard` names the guard's answer,
    as if it were a field ("" without one)."""

    handler: Handler
    step: Step | None
    guard: str
    steps: tuple[Step, ...]
    fields: tuple[str, ...]

    def run(self, c: Config, result: Resolution) -> Outcome:
        """Run it over `c`, and record the result. `result`, of `c`, is empty before and after."""
        if self.step is not None:
            run_step(self.step, c, result)
            went = False
        else:
            went = self._goes(c, result)
        if not (c.touched or result.findings or result.undecided or result.faults):
            return GOES if went else NOTHING
        states = {name: c.state(name) for name in c.touched}
        outcome = Outcome(states, tuple(c.log), tuple(result.findings), result.undecided, tuple(result.faults), went)
        c.touched.clear()
        c.log.clear()
        result.findings, result.undecided, result.faults = [], {}, []
        return outcome

    def _goes(self, c: Config, result: Resolution) -> bool:
        try:
            return goes(self.handler, c)
        except Exception as error:
            mark_undecided(result, error, self.fields, self.steps)
            return False

    def concerns(self, bare: Outcome, reads: Iterable[str]) -> frozenset[str]:
        """What it read or changed where it came to `bare`."""
        answer = (self.guard,) if self.guard and self.step is not None else ()
        return frozenset((*reads, *bare.states, *answer))


@cache
def parts_of(handlers: tuple[Handler, ...], release: Release) -> tuple[Part, ...]:
    """The guards and steps of a release, in order."""
    parts = []
    for number, (handler, steps, fields) in enumerate(plan_of(handlers, release)):
        guard = f"?{number}" if handler.when is not None else ""
        if guard:
            parts.append(Part(handler, None, guard, steps, fields))
        parts += [Part(handler, step, guard, (step,), step.fields) for step in steps]
    return tuple(parts)


# --- the bare launch ---------------------------------------------------------------------------------------------------


class Known(NamedTuple):
    """The input of a launch's known resolution, besides its handlers."""

    gpu: Hardware | None
    model: ModelFacts | None
    draft: ModelFacts | None
    """The draft model that is given."""
    env: Mapping[str, str | None]
    given: Given

    def apart(self, other: Known) -> set[str]:
        """The facts that a part may read that differ between the two, with the variables, and how what is given is written."""
        names = {ADAPTERS}  # looked up by path: in another folder they may be others
        if self.env != other.env:
            variables = self.env.keys() | other.env.keys()
            names.update(f"${name}" for name in variables if self.env.get(name, ...) != other.env.get(name, ...))
        if self.gpu is not other.gpu:
            names.update(hardware_apart(self.gpu, other.gpu))
        if self.model is not other.model:
            names.add(MODEL)
        if self.draft is not other.draft:
            names.add(DRAFT)
        spelled, others_spelled = self.given.spelled, other.given.spelled
        if spelled is not others_spelled and spelled != others_spelled:
            both = spelled.keys() | others_spelled.keys()
            names.update(spelling_of(name) for name in both if spelled.get(name) != others_spelled.get(name))
        return names

    def distance(self, other: Known) -> int:
        """In how much the two differ, counting hardware and variables as one each."""
        return len(self.given.apart(other.given)) + self.way_to(other)

    def way_to(self, other: Known) -> int:
        """How far apart their worlds are: more is read of the model than of the hardware."""
        return (self.gpu is not other.gpu) + 2 * (self.model is not other.model) + (self.env != other.env)


class Baseline:
    """A launch that is resolved part by part, from which others are derived.

    `concerns` gives for each part what it read or changed, `bare` what those came to that did not come to nothing; `start` are the fields
    before the first part, `final` those after the last. `readers` gives for each field the parts, as bits, that it concerns."""

    def __init__(
        self,
        known: Known,
        parts: tuple[Part, ...],
        concerns: list[frozenset[str]],
        bare: dict[int, Outcome],
        start: Fields,
        readers: Mapping[str, int],
    ) -> None:
        self.known, self.parts, self.concerns, self.bare = known, parts, concerns, bare
        self.start, self.readers = start, readers
        self.writers = sorted(n for n, outcome in bare.items() if outcome.states)
        """The parts that change a field."""
        self._left: dict[tuple[int, int], Fields] = {}
        self.logging = [n for n in self.writers if bare[n].log]
        self.saying = [n for n, outcome in bare.items() if outcome.says]
        self.going = frozenset(parts[n].guard for n, outcome in bare.items() if outcome.goes)
        """The guards that let their steps run."""
        self.course: dict[str, tuple[list[int], list[Any]]] = {}
        """For each field that is changed: by which parts, and its state from then on."""
        for number in self.writers:
            for name, state in bare[number].states.items():
                places, states = self.course.setdefault(name, ([], []))
                places.append(number)
                states.append(state)
        self.final = _with(start, {name: states[-1] for name, (_, states) in self.course.items()})

    def state(self, name: str, after: int) -> Any:
        """The bare launch's state of a field after a part (-1: before the first)."""
        if name in self.course:
            places, states = self.course[name]
            at = bisect_right(places, after) - 1
            if at >= 0:
                return states[at]
        return self.start.state(name)

    def left(self, first: int, end: int) -> Fields:
        """The changes of a range of writers, [one, another), numbered among the writers."""
        found = self._left.get((first, end))
        if found is None:
            if len(self._left) >= MAX_LEFT:
                self._left.clear()
            states = (self.bare[number].states for number in self.writers[first:end])
            found = self._left[first, end] = _with(NO_FIELDS, *states)
        return found

    def outcomes(self, telling: list[int], others: Mapping[int, Outcome]) -> Iterator[Outcome]:
        """The results of these parts and of the `others`, in order, for a launch in which the others had another result."""
        for number in sorted({*telling, *others}) if telling else others:
            yield others[number] if number in others else self.bare[number]

    def log(self, others: Mapping[int, Outcome]) -> Iterator[tuple[str, Decision]]:
        """The decisions of such a launch, in order."""
        for outcome in self.outcomes(self.logging, others):
            yield from outcome.log


def _with(fields: Fields, *changes: Mapping[str, Any]) -> Fields:
    """The fields with some states replaced; the last state given for each applies."""
    known, lacking = dict(fields.known), dict(fields.lacking)
    for states in changes:
        for name, state in states.items():
            now, before = (lacking, known) if type(state) is UnknownField else (known, lacking)
            before.pop(name, None)
            now[name] = state
    return Fields(known, lacking)


# --- another launch ----------------------------------------------------------------------------------------------------


WINDOW = 60
"""How many parts, as bits, are looked at in one go: numbers of up to so many bits are fast."""
_ALL = (1 << WINDOW) - 1


class Difference:
    """A launch that is resolved by its differences. `differing` names everything that currently differs from the other launch. `others` are
    the parts that had another result, in order."""

    def __init__(self, baseline: Baseline, known: Known, c: Config) -> None:
        self.baseline, self.c = baseline, c
        self.differing = {EVERYTHING, *apart(baseline, known, c)}
        self.others: dict[int, Outcome] = {}
        self._result = Resolution(c)
        self._behind = 0
        """How many of the baseline's writers have been passed."""
        self._next = baseline.writers[0] if baseline.writers else len(baseline.parts)
        """The next writer."""
        self._pending = 0
        """The parts, as bits, that are concerned by something that differs or did differ."""
        for name in self.differing:
            self._pending |= baseline.readers.get(name, 0)

    def run(self) -> None:
        """Run all parts that are concerned by something that differs."""
        concerns, differing = self.baseline.concerns, self.differing
        for first in range(0, len(concerns), WINDOW):
            waiting = self._pending >> first & _ALL
            while waiting:
                bit = waiting & -waiting
                waiting ^= bit
                number = first + bit.bit_length() - 1
                if not differing.isdisjoint(concerns[number]):
                    self.step(number)
                    waiting = self._pending >> first & _ALL & -(bit << 1)  # more may differ now

    def step(self, number: int) -> None:
        """Run one part, and compare its results."""
        if self._next <= number:
            self._catch_up(number)
        part, bare, c = self.baseline.parts[number], self.baseline.bare.get(number, NOTHING), self.c
        on = part.step is None or not part.guard or self._is_on(part.guard)
        outcome = part.run(c, self._result) if on else NOTHING
        if outcome is bare:
            return
        self.others[number] = outcome
        for name, state in outcome.states.items():
            self._compare(name, state, number)
        for name in bare.states:
            if name not in outcome.states:
                self._compare(name, c.state(name), number)
        if outcome.goes != bare.goes:
            self._differs(part.guard)

    def _is_on(self, guard: str) -> bool:
        """Whether a guard lets its steps run: the same as in the other launch, if it is not concerned."""
        return (guard in self.baseline.going) != (guard in self.differing)

    def _catch_up(self, number: int) -> None:
        """Apply the changes of the parts before this one that were not run, since the last part that was."""
        writers, first = self.baseline.writers, self._behind
        end = bisect_left(writers, number, first)
        if end > first:
            self.c.update(self.baseline.left(first, end))
        self._behind = bisect_right(writers, number, end)
        self._next = writers[self._behind] if self._behind < len(writers) else len(self.baseline.parts)

    def _compare(self, name: str, state: Any, number: int) -> None:
        """Compare a field's state after a part: whether it differs from now on."""
        if same_state(self.baseline.state(name, number), state):
            self.differing.discard(name)
        else:
            self._differs(name)

    def _differs(self, name: str) -> None:
        self.differing.add(name)
        self._pending |= self.baseline.readers.get(name, 0)

    def resolution(self) -> Resolution:
        """Finish: the configuration, and the findings of all parts, in order."""
        baseline, c, others = self.baseline, self.c, self.others
        c.finish(baseline.final, self.differing, partial(baseline.log, others))
        result = Resolution(c)
        for outcome in baseline.outcomes(baseline.saying, others):
            if outcome.says:
                result.findings += outcome.findings
                result.undecided.update(outcome.undecided)
                result.faults += outcome.faults
        return result


class Tracing(Difference):
    """A bare launch that is resolved by its differences from another (its `c` is watched), to become a known one."""

    def __init__(self, baseline: Baseline, known: Known, c: Config) -> None:
        super().__init__(baseline, known, c)
        self._concerns = list(baseline.concerns)
        self._bare = dict(baseline.bare)
        self._readers = dict(baseline.readers)

    def step(self, number: int) -> None:
        """Run one part, and record what it read."""
        self.c.reads.clear()
        super().step(number)
        outcome = self.others.get(number) or self.baseline.bare.get(number, NOTHING)
        if outcome is NOTHING:
            self._bare.pop(number, None)
        else:
            self._bare[number] = outcome
        before, now = self._concerns[number], self.baseline.parts[number].concerns(outcome, self.c.reads)
        if before != now:
            self._concerns[number] = now
            for name in before ^ now:
                self._readers[name] = self._readers.get(name, 0) ^ (1 << number)

    def baseline_of(self, known: Known, start: Fields) -> Baseline:
        """The known launch."""
        return Baseline(known, self.baseline.parts, self._concerns, self._bare, start, self._readers)


def trace(near: Baseline, known: Known, c: Config) -> Baseline:
    """The known launch for `c` (fresh and watched), resolved by its differences from another known one."""
    start = c.snapshot()
    tracing = Tracing(near, known, c)
    tracing.run()
    return tracing.baseline_of(known, start)


def apart(near: Baseline, known: Known, c: Config) -> set[str]:
    """Fields and facts whose initial state differs in the launch of `c`."""
    names, lacking = known.apart(near.known), c._lacking
    for name in known.given.apart(near.known.given):
        names.add(as_given(name))
        if not same_state(c.state(name), near.start.state(name)):
            names.add(name)
    names.update(name for name, state in lacking.items() if near.start.state(name) is not state)
    names.update(name for name in near.start.lacking if name not in lacking)
    return names


# --- the baselines of this process -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Kind:
    """Launches that can be derived from each other: there should be one object for each kind. `other_fields` are the names of fields that
    only other releases have; `open_`: fields that are not given are unknown."""

    handlers: tuple[Handler, ...]
    release: Release
    defaults: Mapping[str, Any]
    other_fields: frozenset[str]
    open_: bool

    def nothing(self) -> Baseline:
        """A launch without any results, so that everything has to be run."""
        parts = parts_of(self.handlers, self.release)
        readers = {EVERYTHING: (1 << len(parts)) - 1}
        concerns = [frozenset((EVERYTHING,))] * len(parts)
        return Baseline(Known(None, None, None, {}, Given({}, {})), parts, concerns, {}, NO_FIELDS, readers)


Key = tuple[Any, ...]
_BARE: OrderedDict[Key, Baseline | int] = OrderedDict()
"""By world. A number counts how often it was met: among many files, most models are hardly met again on the same hardware."""
_SHAPES: OrderedDict[Key, Baseline | int] = OrderedDict()
"""By world and the given fields: for launches that give the same fields. While somebody types a value, everything else stays the same. A
number counts how often such launches were met."""


def bare_launch(kind: Kind, key: Key, known: Known, fresh: Callable[[], Config]) -> Baseline:
    """The bare launch of a world that was met often, else the nearest known one; `fresh` makes its Config if it must be resolved."""
    found = _BARE.get(key, 0)
    if isinstance(found, Baseline) and found.known.model is known.model:
        _BARE.move_to_end(key)
        return found
    others = [one for world, one in _BARE.items() if world[0] is kind and isinstance(one, Baseline)]
    near = min(others, key=lambda one: known.way_to(one.known), default=None)
    met = _meetings(found)
    if near is not None and met < OFTEN:
        _kept(_BARE, key, met, MAX_BARE)
        return near
    return _kept(_BARE, key, trace(near or kind.nothing(), known, fresh()), MAX_BARE)


def alike_launch(
    shape: Key, known: Known, fresh: Callable[[], Config], near: Callable[[], Baseline]
) -> Baseline | None:
    """A launch in the same world that gives the same fields (`shape`), if such were met often lately; `near` returns one to derive it
    from."""
    found = _SHAPES.get(shape, 0)
    if isinstance(found, Baseline) and found.known.model is known.model:
        _SHAPES.move_to_end(shape)
        return found
    met = _meetings(found)
    baseline = trace(near(), known, fresh()) if met >= OFTEN else None
    _kept(_SHAPES, shape, baseline or met, MAX_SHAPES)
    return baseline


OFTEN = 3
"""How often a launch must be met before recording its reads pays off: most are met once, or twice with one of their fixes."""


def _meetings(found: Baseline | int) -> int:
    """How often a launch was met, including now; if another model of its name was recorded, it counts as met often."""
    return found + 1 if isinstance(found, int) else OFTEN


class Last(NamedTuple):
    """The latest launch, from which similar ones are derived: the same launch in its other worlds, or as a fix would leave it.

    `baseline` is None as long as only one was met, as there may be no other.
    """

    known: Known
    baseline: Baseline | None

    def is_close(self, known: Known) -> bool:
        """Whether a launch differs only slightly, possibly in its hardware."""
        return self.known.model is known.model and known.distance(self.known) <= CLOSE


CLOSE = 3
"""How many names may differ between launches that count as similar: the hardware, and a flag or two."""

_lasts: dict[Kind, Last] = {}
"""The latest launch of each kind: a fix is judged in the same releases as its launch."""


def near_launch(
    kind: Kind, world: Key, known: Known, bare: Callable[[], Config], fresh: Callable[[], Config]
) -> Baseline:
    """The launch to derive one from that was not met often: the latest one if that is similar, else the bare one."""
    last = _lasts.get(kind)
    close = last is not None and last.is_close(known)
    if last is not None and close and last.baseline is not None:
        return last.baseline
    given = {name: value for name, value in known.given.typed.items() if name == MODEL_PATH}
    baseline = bare_launch(kind, world, known._replace(draft=None, given=Given(given, {})), bare)
    if close:
        baseline = trace(baseline, known, fresh())
    _lasts[kind] = Last(known, baseline if close else None)
    return baseline


B = TypeVar("B", bound=Baseline | int)


def _kept(baselines: OrderedDict[Key, Baseline | int], key: Key, baseline: B, at_most: int) -> B:
    baselines[key] = baseline
    baselines.move_to_end(key)
    if len(baselines) > at_most:
        baselines.popitem(last=False)
    return baseline


def resolve_by_difference(
    kind: Kind,
    given: Given,
    *,
    unknown: Mapping[str, str],
    untold: frozenset[str],
    gpu: Hardware | None,
    model: ModelFacts | None,
    draft: Callable[[str], ModelFacts | None],
    env: Environment,
) -> Resolution:
    """The result of `engine.resolve` for a new Config of this kind with these parts, by its differences from another launch: the same in
    another world, one in the same world, or the bare one.

    If the kind is open, `unknown` holds all of `untold`.
    """
    typed, spelled = given
    path = {MODEL_PATH: typed[MODEL_PATH]} if MODEL_PATH in typed else {}
    make = partial(
        Config, kind.release, kind.defaults, gpu=gpu, model=model, draft=draft, env=env, other_fields=kind.other_fields
    )

    def config(*, watched: bool) -> Config:
        return make(typed, unknown=unknown, untold=untold, spelled=spelled, watched=watched)

    def bare() -> Config:
        why = next(iter(unknown.values()), "")
        lacking = {n: unknown.get(n, why) for n in kind.defaults if n not in path} if kind.open_ else {}
        return make(path, unknown=lacking, untold=frozenset(lacking), watched=True)

    path_of_draft = typed.get(DRAFT_PATH)
    known = Known(gpu, model, draft(path_of_draft) if isinstance(path_of_draft, str) else None, env.values, given)
    world = (
        kind,
        gpu,
        id(model),
        path.get(MODEL_PATH),
        tuple(sorted(env.values.items(), key=str)) if env.values else (),
    )

    fresh = partial(config, watched=True)

    def near() -> Baseline:
        return near_launch(kind, world, known, bare, fresh)

    shape = (world, frozenset(typed), frozenset(() if kind.open_ else unknown))
    baseline = alike_launch(shape, known, fresh, near) or near()
    difference = Difference(baseline, known, config(watched=False))
    difference.run()
    return difference.resolution()
