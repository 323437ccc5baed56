"""The smallest set of changes found that makes SGLang accept a launch, as a person would choose them.

A launch may be refused for several reasons, and what mends one may bring another. The search tries changes of settings, not of text: each
is resolved in the run that is refused. A changed value costs less than a companion that is added, and far less than a flag that is taken
out: somebody meant it. Where only the writer knows what is missing (a draft's path, a certificate, an adapter), nothing is changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from heapq import heappop, heappush
from itertools import count
from typing import Any

from spec_lsp.analysis.candidates import SIZES, trial_setting, values_of
from spec_lsp.analysis.findings import RunFinding, findings_of
from spec_lsp.analysis.run import ModelSource, RunResult, is_open, run
from spec_lsp.catalog.binding import Binding, Setting, Unknown
from spec_lsp.catalog.model import Flag
from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field, replace
from spec_lsp.resolution.engine import Change, Rule
from spec_lsp.syntax.launch import Launch
from spec_lsp.syntax.word import Word, literal

MAX_RESOLUTIONS = 400
"""How often a launch is resolved in one search."""

VALUE, COMPANION, REMOVAL = 10.0, 15.0, 90.0
"""The cost of giving a flag another value, of adding a flag, and of removing one."""

PER_REFUSAL = 25.0
"""The estimated cost of each remaining refusal: that of a value that needs a companion flag."""

OWN_IDEA = 3.0
"""The extra cost of a change that the refusal itself does not propose."""

INTENTIONS = frozenset(
    (
        "speculative_algorithm",
        "enable_lora",
        "lora_paths",
        "quantization",
        "enable_hierarchical_cache",
        "disaggregation_mode",
        "tp_size",
    )
)
"""What the launch is meant to do: no repair removes these."""

NAMED = frozenset(("speculative_algorithm", "quantization", "disaggregation_mode"))
"""Fields whose value is a name: another name means another intention, not another value of the same one."""

ADDED = frozenset(("disaggregation_mode",))
"""Names that a launch without any may be given: a flag that only one kind of server has tells which kind was meant."""

ALIKE = (frozenset(("EAGLE", "EAGLE3", "NEXTN")), frozenset(("DFLASH", "DSPARK")))
"""Speculative algorithms that need a draft model made for them: the draft model tells which of them was meant."""

WRITERS_CHOICE = frozenset(("weights-above-gpu-memory", "gpus-not-divisible-by-nodes"))
"""Rules whose fix has a price of its own: more GPUs, fewer machines, or a model that answers less well."""

TELLS_WHICH = frozenset(("quantization-against-checkpoint",))
"""Rules that know which name is right, because the checkpoint says so."""

KEPT = frozenset(
    ("model_path", "tokenizer_path", "speculative_draft_model_path", "served_model_name", "host", "port", "nnodes")
)
"""Fields whose value only the writer of the launch knows."""

MAX_CHOICES = 30
MAX_MOVES = 60
PLACEHOLDER = "placeholder"

_DROPPED = object()


@dataclass(frozen=True)
class State:
    """The changed fields (`_DROPPED`: removed) and environment variables (None: removed)."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str | None] = field(default_factory=dict)
    moves: tuple[Change, ...] = ()
    """The changes that led here, in order."""

    def having(self, change: Change) -> State:
        fields = {**self.fields, **change.set, **dict.fromkeys(change.drop, _DROPPED)}
        env = {**self.env, **change.set_env, **dict.fromkeys(change.drop_env)}
        return State(fields, env, (*self.moves, change))

    @property
    def key(self) -> tuple[object, ...]:
        return tuple(sorted((f, repr(v)) for f, v in self.fields.items())), tuple(sorted(self.env.items(), key=str))

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes one by one, removals last, so that each can be written separately."""
        kept = [Change(set={f: v}) for f, v in self.fields.items() if v is not _DROPPED]
        dropped = [Change(drop=(f,)) for f, v in self.fields.items() if v is _DROPPED]
        env = [Change(set_env={n: v}) if v is not None else Change(drop_env=(n,)) for n, v in self.env.items()]
        return (*kept, *env, *dropped)


@dataclass(slots=True)
class Bench:
    """A refused run of a launch, to be resolved with changed settings. `left` counts the resolutions that are still allowed."""

    launch: Launch
    first: RunResult
    models: ModelSource
    left: int = MAX_RESOLUTIONS

    @property
    def binding(self) -> Binding:
        return self.first.binding

    def refusals(self, state: State) -> list[RunFinding]:
        """Why SGLang refuses the launch as changed, late refusals included, first reason first."""
        self.left -= 1
        settings = dict(self.binding.settings)
        for name, value in state.fields.items():
            flag = self.binding.catalog.by_field.get(name)
            if value is _DROPPED or value is None or flag is None:
                settings.pop(name, None)
            else:
                settings[name] = trial_setting(flag, value)
        launch, index = self._launch(state), self.first.variant
        binding = replace(self.binding, settings=settings)
        judged = run(launch, index, self.first.world, self.models, binding, bare=is_open(launch, binding))
        return [f for f in findings_of(judged) if f.said is not None and f.rule.severity == "error"]

    def _launch(self, state: State) -> Launch:
        """The launch with the changed environment."""
        if not state.env:
            return self.launch
        variant = self.launch.variants[self.first.variant]
        env: dict[str, Word] = {n: w for n, w in variant.env.items() if n not in state.env}
        for name, value in state.env.items():
            if value is not None and name in variant.env:
                env[name] = literal(value, variant.env[name].place)
        variants = list(self.launch.variants)
        variants[self.first.variant] = replace(variant, env=env)
        return replace(self.launch, variants=tuple(variants))

    # --- what a state costs

    def cost(self, state: State) -> float:
        fields = sum(self._cost_of(name, value) for name, value in state.fields.items())
        return fields + sum(REMOVAL if value is None else VALUE for value in state.env.values())

    def _cost_of(self, name: str, value: Any) -> float:
        setting = self.binding.settings.get(name)
        if value is _DROPPED or value is None or value is False:
            return (
                REMOVAL * (1.5 if name in INTENTIONS else 1)
                if setting is not None and setting.value is not False
                else 0.0
            )
        if setting is None:
            return COMPANION
        return VALUE + _distance(setting.value, value)

    def removed(self, state: State) -> Iterator[str]:
        """What was typed and is removed in this state."""
        yield from (name for name, value in state.fields.items() if self._cost_of(name, value) >= REMOVAL)
        yield from (name for name, value in state.env.items() if value is None)

    # --- moves

    def moves(self, found: RunFinding, *, removals: bool) -> Iterator[tuple[Change, float]]:
        """Changes that may resolve a refusal, each with its cost beyond its size."""
        said = found.said
        assert said is not None
        if found.rule.name in WRITERS_CHOICE:
            return
        for change in said.candidates:
            if (removals or not self._removes(change)) and not self._gives_up(found.rule, change):
                yield change, 0.0
        for name in dict.fromkeys((said.at, *said.related_fields)):
            if name in KEPT or name in NAMED:
                continue
            flag = self.binding.catalog.by_field.get(name)
            setting = self.binding.settings.get(name)
            if flag is None:
                continue
            for value in self._values(flag, setting):
                yield Change(set={name: value}), OWN_IDEA
            if setting is not None and removals and name not in INTENTIONS:
                yield Change(drop=(name,)), OWN_IDEA

    def gives_up(self, found: RunFinding) -> bool:
        """Whether a refusal can only be resolved by giving up what the launch is meant to do."""
        assert found.said is not None
        proposed = found.rule.name not in WRITERS_CHOICE and any(
            self._gives_up(found.rule, c) for c in found.said.candidates
        )
        return proposed and not any(self.moves(found, removals=True))

    def _gives_up(self, rule: Rule, change: Change) -> bool:
        """Whether a change removes what the launch is meant to do, or replaces it by something else."""
        if any(name in KEPT or name in INTENTIONS for name in change.drop):
            return True
        intended = {name: value for name, value in change.set.items() if name in INTENTIONS}
        return not KEPT.isdisjoint(change.set) or any(
            value in (None, False) or (name in NAMED and rule.name not in TELLS_WHICH and not self._alike(name, value))
            for name, value in intended.items()
        )

    def _alike(self, name: str, value: Any) -> bool:
        """Whether a name means the same intention as the typed one, or states one that was left out."""
        setting = self.binding.settings.get(name)
        if setting is None:
            return name in ADDED
        both = {str(setting.value).upper(), str(value).upper()}
        return any(both <= names for names in ALIKE)

    def _removes(self, change: Change) -> bool:
        return bool(change.drop or change.drop_env) or any(v is None or v is False for v in change.set.values())

    def _values(self, flag: Flag, setting: Setting | None) -> Sequence[Any]:
        """Other values of a typed flag, nearest first, and values of the flags that it needs."""
        if not flag.takes_value or flag.action == "boolean":
            return () if setting is not None else (True,)
        if flag.nargs is not None or (setting is not None and isinstance(setting.value, Unknown)):
            return ()
        values = values_of(flag) if flag.choices or flag.field in SIZES else _numbers(flag)
        if setting is None:
            return values if len(values) <= MAX_CHOICES else ()
        other = [v for v in values if v != setting.value]
        return sorted(other, key=lambda v: _distance(setting.value, v))[:MAX_CHOICES]


_WHOLE = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
_PARTS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 2.0)


def _numbers(flag: Flag) -> tuple[Any, ...]:
    """Common numbers for a flag that has no list of common values, its default first."""
    own = (flag.default,) if isinstance(flag.default, int | float) and not isinstance(flag.default, bool) else ()
    return (*own, *(_WHOLE if flag.type == "int" else _PARTS if flag.type == "float" else ()))


def _distance(typed: Any, value: Any) -> float:
    """The distance of a value from the typed one, always less than the cost of another change. For numbers it grows with the power of two
    between them; another name counts as a number of a sixteenth of the typed one."""
    if isinstance(typed, bool) or isinstance(value, bool) or not isinstance(typed, int | float) or typed <= 0:
        return 1.0
    if not isinstance(value, int | float) or value <= 0:
        return 3.0
    return min(3.0, abs(math.log2(value) - math.log2(typed)) / 4)


# --- the search --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Solution:
    """A state in which SGLang takes the launch, what it costs, and which of the typed flags and variables it takes out."""

    state: State
    cost: float
    removed: frozenset[str]


def least_changes(bench: Bench, most: int = 8, *, dear: bool = False) -> Iterator[Solution]:
    """The states in which SGLang accepts the launch, cheapest first, up to a limit: all that are as cheap as the first (`as_cheap`), and
    others that the search met on its way. With `dear` it looks for all of the others too, for when none of the cheap ones can be written.

    None where only the writer knows what is missing, or where the launch would have to give up what it is meant to do. What no setting can
    resolve (weights that do not fit on any such GPU) stays.
    """
    start = State()
    refusals = bench.refusals(start)
    if not refusals:
        return
    if any(missing(bench, start, f) or bench.gives_up(f) for f in refusals):
        return
    beyond = {f.identity for f in refusals if f.rule.late and not any(bench.moves(f, removals=True))}
    order = count()
    queue: list[tuple[float, int, State, list[RunFinding]]] = [(0.0, next(order), start, refusals)]
    seen = {start.key}
    solved: list[tuple[float, int, State]] = []
    while queue and bench.left > 0:
        at_least, _, state, refusals = heappop(queue)
        if solved and at_least > solved[0][0] + OWN_IDEA:
            break
        for move, more in _moves(bench, refusals):
            after = state.having(move)
            if after.key in seen or bench.left <= 0:
                continue
            seen.add(after.key)
            cost = bench.cost(after) + more
            if solved and not dear and cost > solved[0][0] + OWN_IDEA:
                bench.left -= 1  # as if it were tried: both searches try the same
                continue
            left = [f for f in bench.refusals(after) if f.identity not in beyond]
            if len(left) > len(refusals) + 1:
                continue
            if not left:
                least = _without_needless(bench, after, beyond)
                if all(least.key != other.key for _, _, other in solved):
                    heappush(solved, (cost - bench.cost(after) + bench.cost(least), next(order), least))
            else:
                heappush(queue, (cost + PER_REFUSAL * len(left), next(order), after, left))
    while solved and most:
        most -= 1
        cost, _, state = heappop(solved)
        yield Solution(state, cost, frozenset(bench.removed(state)))


def _without_needless(bench: Bench, state: State, beyond: Set[tuple[object, ...]]) -> State:
    """The state without the moves that were tried on the way and that a later one makes needless."""
    for nth in range(len(state.moves) - 1):
        less = State()
        for move in (*state.moves[:nth], *state.moves[nth + 1 :]):
            less = less.having(move)
        if bench.left > 0 and all(f.identity in beyond for f in bench.refusals(less)):
            return _without_needless(bench, less, beyond)
    return state


def as_cheap(solutions: Sequence[Solution]) -> list[Solution]:
    """Those that cost no more than the first, as far as costs can be compared."""
    return [s for s in solutions if s.cost <= solutions[0].cost + OWN_IDEA]


def likeliest(solutions: Sequence[Solution]) -> Solution | None:
    """The cheapest solution; None where an equally cheap one removes something else, as nobody knows which of the two was meant."""
    if not solutions:
        return None
    cheap = as_cheap(solutions)
    best = min(cheap, key=lambda s: len(s.removed))
    return None if best.removed and any(s.removed != best.removed for s in cheap) else best


def _moves(bench: Bench, refusals: Sequence[RunFinding]) -> list[tuple[Change, float]]:
    """What to try next: the first refusals first, and what they propose before anything else."""
    found: list[tuple[float, int, Change, float]] = []
    order = count()
    for nth, refusal in enumerate(refusals[:3]):
        for change, more in bench.moves(refusal, removals=True):
            found.append((bench.cost(State().having(change)) + more + nth, next(order), change, more))
    return [(change, more) for _, _, change, more in sorted(found, key=lambda f: f[:2])[:MAX_MOVES]]


def missing(bench: Bench, state: State, found: RunFinding) -> tuple[str, ...]:
    """The fields whose value only the writer knows (a path, a certificate, an adapter), any of which would resolve a refusal."""
    said = found.said
    if said is None:
        return ()
    in_message = _flags_in(said.message)
    spoken_of = [
        f
        for f in bench.binding.catalog.flags
        if (f.field in (said.at, *said.related_fields) or not in_message.isdisjoint(f.spellings))
        and f.field != "model_path"
        and _is_free_text(f)
    ]
    mended = []
    for flag in spoken_of:
        value: Any = [PLACEHOLDER] if flag.nargs in ("*", "+") or flag.action == "lora-paths" else PLACEHOLDER
        after = bench.refusals(state.having(Change(set={flag.field: value})))
        if all(f.identity != found.identity for f in after):
            mended.append(flag.field)
    return tuple(mended)


def _flags_in(message: str) -> set[str]:
    return {word.strip("`.,:;()") for word in message.split()}


def _is_free_text(flag: Flag) -> bool:
    written = _OF_ITS_WRITER.search(flag.field) is not None and flag.choices is None and not flag.deprecated
    return flag.action == "lora-paths" or written


_OF_ITS_WRITER = expression(r"(?:paths?|file|cert|certs|dir|folder|urls?|addr|token_map|extra_config|corpus)$")
"""Fields that only the writer of the launch can fill in: a model, a file, an address."""
