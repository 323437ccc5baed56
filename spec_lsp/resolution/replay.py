"""Resolution again, doing only what was not done before.

`engine.resolve` runs every step. Most handlers of most launches do just what they did for the bare launch of the same model on the
same hardware and release: they read fields that nobody touched. So the bare launch is resolved once, handler by handler, with its reads
written down (a `Baseline`). For another launch, a handler whose reads do not differ is not run: its `Outcome` is entered again. One
that reads fields that differ is run, and its outcome remembered by what it read of them, for the next launch in which they are
the same. The result is that of `engine.resolve`, which tests/resolution/test_replay.py checks; the cost is what differs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from operator import itemgetter
from typing import Any

from spec_lsp.catalog.release import Release
from spec_lsp.facts.environment import Environment
from spec_lsp.facts.hardware import Hardware
from spec_lsp.facts.model import ModelFacts
from spec_lsp.resolution.engine import (
    ABSENT,
    DRAFT_PATH,
    EVERYTHING,
    Config,
    Decision,
    Finding,
    Handler,
    Lacking,
    Resolution,
    Step,
    give_up,
    goes,
    plan_of,
    run_step,
    same_state,
)

MAX_BASELINES = 128
"""How many are kept: a release × a GPU × a model × an environment × whether the launch is open."""

MAX_REMEMBERED = 1500
"""Outcomes that a baseline remembers before it starts anew: somebody who types a number goes through many."""

MAX_TOKENS = 20_000
"""Values of fields, over all baselines, before everything is forgotten but the bare launches."""

TRIED = 40
"""Launches that a handler has met before it is told whether they repeat."""

MAX_KINDS = 8
"""Sets of fields that a handler is remembered to have read; beyond, it is only run."""

SAME = ("model_path",)
"""Fields that the bare launch gives too."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one handler read, and all that it did: the fields it left otherwise, its decisions, and what it said."""

    reads: frozenset[str]
    states: Mapping[str, Any]
    log: tuple[tuple[str, Decision], ...]
    findings: tuple[Finding, ...]
    undecided: Mapping[str, str]
    faults: tuple[str, ...]

    @property
    def says(self) -> bool:
        """Whether it tells anything beside what the fields are."""
        return bool(self.findings or self.undecided or self.faults)


def outcome_of(handler: Handler, steps: tuple[Step, ...], fields: tuple[str, ...], c: Config) -> Outcome:
    """Run a handler's guard and steps, and write down what came of it."""
    c.reads, c.touched, c.log = set(), set(), []
    result = Resolution(c)
    try:
        went = goes(handler, c)
    except Exception as error:
        went = False
        give_up(result, error, fields, steps)
    for step in steps if went else ():
        run_step(step, c, result)
    return Outcome(
        frozenset(c.reads),
        {name: c._own[name] for name in c.touched},
        tuple(c.log),
        tuple(result.findings),
        result.undecided,
        tuple(result.faults),
    )


# --- the bare launch ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Remembered:
    """An outcome in some launch. `changes` tells for each field it left otherwise by what token that differs from the bare launch's
    after the same handler (None: not at all)."""

    outcome: Outcome
    changes: tuple[tuple[str, int | None], ...]
    unmatched: tuple[str, ...] = ()
    """Fields that the bare launch's handler left otherwise, and this one did not."""
    says: bool = False


class Kind:
    """The launches in which a handler reads the same fields: its outcomes by how these differ, a token each (None: not at all)."""

    __slots__ = ("ask", "names", "outcomes", "reads", "seen")

    def __init__(self, reads: frozenset[str], watched: Collection[str]) -> None:
        self.reads = reads
        self.seen = len(watched)
        """How many of the watched fields are looked at, or are none of its own."""
        self.names: tuple[str, ...] = tuple(watched) if EVERYTHING in reads else tuple(n for n in watched if n in reads)
        self.outcomes: dict[Hashable, Remembered] = {}
        self.ask = _asking(self.names)
        """Takes how a launch's fields differ and gives the key."""

    def key(self, differing: Mapping[str, int | None]) -> Hashable:
        """What its fields differ by, of all that are watched."""
        if self.seen < len(differing):
            for name in list(differing)[self.seen :]:
                self._watch(name)
            self.seen = len(differing)
        return self.ask(differing)

    def _watch(self, name: str) -> None:
        """From now on this field may differ too; it did not in what is remembered."""
        if name in self.reads or EVERYTHING in self.reads:
            before = self.names
            self.names = (*before, name)
            self.ask = _asking(self.names)
            self.outcomes = {_widened(key, len(before)): found for key, found in self.outcomes.items()}


def _asking(names: tuple[str, ...]) -> Callable[[Mapping[str, int | None]], Hashable]:
    return itemgetter(*names) if names else _nothing


def _nothing(_: Mapping[str, int | None]) -> Hashable:
    return ()


def _widened(key: Any, width: int) -> Hashable:
    """A key with one more field, which does not differ. (`itemgetter` gives no tuple for a single one.)"""
    return None if width == 0 else (key, None) if width == 1 else (*key, None)


class Known:
    """A handler with what came of it, in the bare launch and in others."""

    __slots__ = ("bare", "before", "bit", "fields", "handler", "hits", "kinds", "misses", "steps")

    def __init__(
        self, handler: Handler, steps: tuple[Step, ...], fields: tuple[str, ...], bare: Outcome, number: int
    ) -> None:
        self.handler, self.steps, self.fields = handler, steps, fields
        self.bare = Remembered(bare, tuple((name, None) for name in bare.states), says=bare.says)
        self.bit = 1 << number
        self.before: _Before | None = None
        self.hits = self.misses = 0
        self.kinds: list[Kind] = []
        self.forget()

    def forget(self) -> None:
        """Forget all launches but the bare one."""
        kind = Kind(self.bare.outcome.reads, ())
        kind.outcomes[()] = self.bare
        self.kinds = [kind]

    def recall(self, differing: Mapping[str, int | None]) -> Remembered | None:
        """What came of the handler where its fields differed by the same."""
        for kind in self.kinds:
            found = kind.outcomes.get(kind.key(differing))
            if found is not None:
                self.hits += 1
                return found
        self.misses += 1
        return None

    @property
    def repeats(self) -> bool:
        """Whether it pays to remember: not where every launch is new."""
        return self.misses < TRIED or self.hits > self.misses

    def remember(self, differing: Mapping[str, int | None], found: Remembered) -> None:
        """Keep what has come of it where its fields differed like this."""
        reads = found.outcome.reads
        kind = next((k for k in self.kinds if k.reads == reads), None)
        if kind is None:
            kind = Kind(reads, differing)
            if len(self.kinds) < MAX_KINDS:
                self.kinds.append(kind)
        kind.outcomes[kind.key(differing)] = found


@dataclass(slots=True)
class Baseline:
    """A bare launch resolved. `start` are its fields before the first handler, `final` after the last."""

    handlers: tuple[Known, ...]
    model: ModelFacts | None
    start: Mapping[str, Any]
    final: Mapping[str, Any]
    lacking: tuple[str, ...]
    """The fields that are not known at the start."""
    readers: dict[str, int] = field(default_factory=dict)
    """For each field the handlers, as bits, that read or write it."""
    course: dict[str, tuple[list[int], list[Any]]] = field(default_factory=dict)
    """For each field that a handler left otherwise: which handlers did, and what it was from then on."""
    saying: frozenset[int] = frozenset()
    """The handlers that say something."""
    watched: dict[str, int | None] = field(default_factory=dict)
    """The fields that have differed in some launch."""
    remembered: int = 0

    def state(self, name: str, after: int) -> Any:
        """What the bare launch holds of a field after a handler (-1: before the first)."""
        if name in self.course:
            places, states = self.course[name]
            at = bisect_right(places, after) - 1
            if at >= 0:
                return states[at]
        return self.start.get(name, ABSENT)

    def log(self, others: Mapping[int, Remembered]) -> Iterator[tuple[str, Decision]]:
        """The decisions of a launch, in order, in which some handlers came to something else."""
        for number, known in enumerate(self.handlers):
            yield from others.get(number, known.bare).outcome.log

    def watch(self, name: str) -> None:
        """From now on this field may differ."""
        self.watched.setdefault(name, None)

    def forget(self) -> None:
        """Forget what launches but the bare one came to."""
        self.watched.clear()
        self.remembered = 0
        for known in self.handlers:
            known.forget()


# --- what fields differ by ---------------------------------------------------------------------------------------------

_TOKENS: dict[Hashable, int] = {}
_numbers = count()


def token_of(name: str, state: Any, mark: Hashable = None, facts: object = None) -> int:
    """A number that stands for all there is to know of a field: its state, and how it is given."""
    key = (name, plain(state), mark, facts)
    found = _TOKENS.get(key)
    if found is None:
        found = _TOKENS[key] = next(_numbers)  # never one that stood for something else
    return found


def plain(value: Any) -> Hashable:
    """A value as something to look up: equal for two values only if they are of one type and equal."""
    return repr(value) if isinstance(value, (list, dict, tuple, set)) else (type(value), value)


def facts_of(name: str, path: Any, c: Config) -> ModelFacts | None:
    """What goes with a draft model's path: its facts."""
    return c._draft(path) if name == DRAFT_PATH and isinstance(path, str) and c._draft else None


class Given:
    """The fields that a launch gives, with all that a step can see of how: made once for all worlds."""

    __slots__ = ("marks", "spelled", "tokens", "typed")

    def __init__(self, typed: Mapping[str, Any], spelled: Mapping[str, str]) -> None:
        self.typed = typed
        self.spelled = spelled
        self.marks: dict[str, Hashable] = {n: (plain(v), spelled.get(n)) for n, v in typed.items() if n not in SAME}
        self.tokens = {n: token_of(n, typed[n], mark) for n, mark in self.marks.items() if n != DRAFT_PATH}


def trace(handlers: tuple[Handler, ...], c: Config) -> Baseline:
    """Resolve `c`, which must be fresh, with every read written down."""
    defaults = c._base
    start = {**defaults, **c._own}
    known = tuple(
        Known(handler, steps, fields, outcome_of(handler, steps, fields, c), number)
        for number, (handler, steps, fields) in enumerate(plan_of(handlers, c.release))
    )
    lacking = tuple(name for name, state in start.items() if type(state) is Lacking)
    saying = frozenset(number for number, one in enumerate(known) if one.bare.says)
    baseline = Baseline(known, c._model, start, {**defaults, **c._own}, lacking, saying=saying)
    for number, one in enumerate(known):
        for name in one.bare.outcome.reads.union(one.bare.outcome.states):
            baseline.readers[name] = baseline.readers.get(name, 0) | one.bit
        for name, state in one.bare.outcome.states.items():
            places, states = baseline.course.setdefault(name, ([], []))
            places.append(number)
            states.append(state)
    return baseline


class _Before(dict[str, Any]):
    """The bare launch's fields before a handler, looked up when they are asked for."""

    def __init__(self, baseline: Baseline, number: int) -> None:
        super().__init__()
        self._baseline = baseline
        self._after = number - 1

    def __missing__(self, name: str) -> Any:
        state = self[name] = self._baseline.state(name, self._after)
        return state

    def keys(self) -> Any:
        return self._baseline.final.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self._baseline.final)


# --- another launch ----------------------------------------------------------------------------------------------------


class _Difference:
    """What a launch's fields differ by from the bare launch's at the same point. The launch's Config holds only those that do."""

    __slots__ = ("_own", "baseline", "c", "given", "pending", "tokens")

    def __init__(self, c: Config, baseline: Baseline, given: Given) -> None:
        self.c = c
        self.baseline = baseline
        self.tokens: dict[str, int | None] = dict(baseline.watched)
        """A token for each field that differs, None for one that may but does not."""
        self.pending = baseline.readers.get(EVERYTHING, 0)
        """The handlers, as bits, that may come to something else."""
        self.given = given
        start, told = baseline.start, c._own
        self._own: dict[str, Any] = {}
        c._own = self._own
        for name, state in told.items():
            if name in given.marks or (state is not start.get(name) and not same_state(start.get(name, ABSENT), state)):
                self._differs(name, state)
        for name in baseline.lacking:
            if name not in told:
                self._differs(name, c._base.get(name, ABSENT))

    def _differs(self, name: str, state: Any, token: int | None = None) -> None:
        given = self.given
        mark = given.marks.get(name)
        if mark is not None:
            token = given.tokens.get(name) if state is given.typed[name] else None
        self._own[name] = state
        if name not in self.baseline.watched:
            self.baseline.watch(name)
        self.tokens[name] = token_of(name, state, mark, facts_of(name, state, self.c)) if token is None else token
        self.pending |= self.baseline.readers.get(name, 0)

    def after(self, done: Remembered, number: int) -> None:
        """The launch came to this, and the bare one to what it came to."""
        states, given = done.outcome.states, self.given.marks
        for name, token in done.changes:
            if token is not None or name in given:
                self._differs(name, states[name], token)
            else:
                self._agrees(name)
        for name in done.unmatched:
            self._kept(name, number)

    def _kept(self, name: str, number: int) -> None:
        """The bare launch's handler left a field otherwise, and this launch's did not."""
        baseline = self.baseline
        state = self._own[name] if name in self._own else baseline.state(name, number - 1)
        if name in self.given.marks or not same_state(baseline.state(name, number), state):
            self._differs(name, state)
        else:
            self._agrees(name)

    def _agrees(self, name: str) -> None:
        self._own.pop(name, None)
        if name in self.tokens:
            self.tokens[name] = None

    def run(self, known: Known, number: int) -> Remembered:
        """Run a handler, and remember what comes of it."""
        baseline, c = self.baseline, self.c
        if known.before is None:
            known.before = _Before(baseline, number)
        c._base = known.before
        outcome = outcome_of(known.handler, known.steps, known.fields, c)
        differing = dict(self.tokens) if known.repeats else None  # as it is before the fields are compared again
        changes = tuple(
            (name, None if same_state(baseline.state(name, number), state) else token_of(name, state, None, facts_of(name, state, c)))
            for name, state in outcome.states.items()
        )  # fmt: skip
        unmatched = tuple(name for name in known.bare.outcome.states if name not in outcome.states)
        done = Remembered(outcome, changes, unmatched, outcome.says)
        if differing is not None:
            known.remember(differing, done)
            baseline.remembered += 1
        return done


def replay(baseline: Baseline, c: Config, given: Given) -> Resolution:
    """Resolve `c`, which differs from the baseline's launch in what it gives."""
    if baseline.remembered > MAX_REMEMBERED:
        baseline.forget()
    difference = _Difference(c, baseline, given)
    tokens, handlers = difference.tokens, baseline.handlers
    others: dict[int, Remembered] = {}
    number = 0
    while waiting := difference.pending >> number:
        number += (waiting & -waiting).bit_length() - 1
        known = handlers[number]
        done = known.recall(tokens) or difference.run(known, number)
        if done is not known.bare:
            others[number] = done
        difference.after(done, number)
        number += 1
    c.finish(baseline.final, partial(baseline.log, others))
    return _said(baseline, others, c)


def _said(baseline: Baseline, others: Mapping[int, Remembered], c: Config) -> Resolution:
    """What the handlers say, in order."""
    result = Resolution(c)
    for number in sorted(baseline.saying.union(others)) if baseline.saying else others:
        done = others.get(number) or baseline.handlers[number].bare
        if done.says:
            result.findings += done.outcome.findings
            result.undecided.update(done.outcome.undecided)
            result.faults += done.outcome.faults
    return result


# --- the baselines of this process -------------------------------------------------------------------------------------


_BASELINES: OrderedDict[tuple[Any, ...], Baseline] = OrderedDict()


def resolve_by_difference(
    handlers: tuple[Handler, ...],
    release: Release,
    defaults: Mapping[str, Any],
    given: Given,
    *,
    unknown: Mapping[str, str],
    untold: frozenset[str],
    gpu: Hardware | None,
    model: ModelFacts | None,
    draft: Callable[[str], ModelFacts | None],
    env: Environment,
    other_fields: frozenset[str],
    open_: bool,
) -> Resolution:
    """`engine.resolve` of a new Config with these parts, by difference from the bare launch of the same world.

    `open_`: what is not given is unknown (`unknown` then holds all of `untold`).
    """
    facts = {"gpu": gpu, "model": model, "draft": draft, "env": env, "other_fields": other_fields}
    typed = given.typed
    c = Config(release, defaults, typed, unknown=unknown, untold=untold, spelled=given.spelled, **facts)  # type: ignore[arg-type]
    if len(_TOKENS) > MAX_TOKENS:
        _TOKENS.clear()
        for known in _BASELINES.values():
            known.forget()
    path, values = typed.get("model_path"), env.values
    key = (handlers, release, gpu, id(model), path, tuple(sorted(values.items(), key=str)) if values else (), open_)
    baseline = _BASELINES.get(key)
    if baseline is None or baseline.model is not model:
        bare = {name: typed[name] for name in SAME if name in typed}
        why = next(iter(unknown.values()), "") if open_ else ""
        bare_unknown = {name: unknown.get(name, why) for name in defaults if name not in bare} if open_ else {}
        fresh = Config(
            release, defaults, bare, unknown=bare_unknown, untold=frozenset(bare_unknown) if open_ else untold, **facts  # type: ignore[arg-type]
        )  # fmt: skip
        baseline = _BASELINES[key] = trace(handlers, fresh)
        if len(_BASELINES) > MAX_BASELINES:
            _BASELINES.popitem(last=False)
    else:
        _BASELINES.move_to_end(key)
    return replay(baseline, c, given)
