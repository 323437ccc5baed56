"""Steps, handlers and the configuration they resolve.

SGLang turns what was typed into what runs through an ordered list of handlers. So does this package: a `Handler` stands for one of
SGLang's; its steps *adjust* fields or *refuse* the launch, top to bottom. Steps are plain Python over concrete values. Reading something
unknown raises `NotKnown`, which ends the step: an adjustment then leaves its fields unknown, a refusal reports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, cast

from spec_lsp.catalog.release import Release
from spec_lsp.facts.environment import Environment
from spec_lsp.facts.hardware import Hardware
from spec_lsp.facts.known import ADAPTER, NotGiven, NotKnown
from spec_lsp.records import NamedTuple, dataclass, field

if TYPE_CHECKING:
    from spec_lsp.facts.model import ModelFacts

Guard = Callable[["Config"], bool]
P = ParamSpec("P")


# --- what a step says --------------------------------------------------------------------------------------------------


class Change(NamedTuple):
    """A way out, as an operation on settings, not on text: fields to set, fields and environment variables to drop or set."""

    set: Mapping[str, Any] = {}
    drop: tuple[str, ...] = ()
    set_env: Mapping[str, str] = {}
    drop_env: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many settings it touches: smaller changes are offered first."""
        return len(self.set) + len(self.drop) + len(self.set_env) + len(self.drop_env)


def setting(**fields: Any) -> Change:
    """Set these fields."""
    return Change(set=fields)


def dropping(*fields: str) -> Change:
    """Remove the flags of these fields."""
    return Change(drop=fields)


def setting_env(**variables: str) -> Change:
    """Set these environment variables."""
    return Change(set_env=variables)


def dropping_env(*variables: str) -> Change:
    """Do not set these environment variables."""
    return Change(drop_env=variables)


def as_far_as_known(make: Callable[P, tuple[Change, ...]]) -> Callable[P, tuple[Change, ...]]:
    """For functions that make candidate fixes: they return none if something they need is unknown, so that the refusal is reported without
    fixes."""

    @wraps(make)
    def fixes(*args: P.args, **kwargs: P.kwargs) -> tuple[Change, ...]:
        try:
            return make(*args, **kwargs)
        except NotKnown:
            return ()

    return fixes


class Moved(NamedTuple):
    """A value that SGLang moved: `source` is typed, an old spelling of the field. `switches` are typed beside it, so that it is moved."""

    source: str
    switches: tuple[str, ...]
    value: Any

    def change(self, target: str, change: Change) -> Change:
        """The change of what is typed that has the same effect as this change of the field."""
        if self.source in change.set or self.source in change.drop:
            return change
        if target in change.drop:
            gone = (*(name for name in change.drop if name != target), self.source, *self.switches)
            return change._replace(drop=tuple(dict.fromkeys(gone)))
        if target not in change.set:
            return change
        if self.switches:  # they say what the old field means, so it takes the same values
            return change._replace(set={self.source if n == target else n: value for n, value in change.set.items()})
        return change._replace(drop=(*change.drop, self.source))


NO_FIX: tuple[Change, ...] = ()
"""There is no candidate: only the writer knows what is missing."""


class Refusal(NamedTuple):
    """Why SGLang refuses the launch.

    `at` is the field the reader should look at first; `related_fields` the other fields that take part (related places). Names of
    environment variables are allowed in both. `fixes` are candidates, best first: analysis offers only those that work; if none are named,
    the one candidate is to remove `at`, and `NO_FIX` says that there is none. `choices` are the values that `at` accepts, if the launch is
    refused because it is given none of them.
    """

    at: str
    message: str
    related_fields: tuple[str, ...] = ()
    fixes: tuple[Change, ...] | None = None
    choices: tuple[str, ...] = ()

    @property
    def candidates(self) -> tuple[Change, ...]:
        """The fixes to try, best first."""
        return (dropping(self.at),) if self.fixes is None else self.fixes


Note = Refusal
"""What a `notes` step returns: the same shape, for a launch that SGLang accepts."""


# --- rules and steps ---------------------------------------------------------------------------------------------------

Severity = Literal["error", "warning", "information", "hint"]


class Earlier(NamedTuple):
    """Releases before `before` refuse in another function (or with another exception)."""

    before: str
    sglang: str
    raises: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: name, code, documentation, examples, versions. `since` and `until` are releases; `until` is the first without it.

    `text` is the documentation as it stands in the source: the summary in its first line, and the explanation. Few runs show any.
    `hardware_only`: the typed value cannot run on this hardware at all, so the writer has other hardware (see Handler.refuses). `sglang`
    and `raises` say where the newest release raises what; `earlier` where older releases do, oldest first.
    """

    code: str
    name: str
    text: str
    topic: str
    sglang: str
    raises: str = ""
    late: bool = False
    severity: Severity = "error"
    hardware_only: bool = False
    since: str = ""
    until: str = ""
    bad: tuple[str, ...] = ()
    good: tuple[str, ...] = ()
    earlier: tuple[Earlier, ...] = ()

    @property
    def summary(self) -> str:
        return self.text.strip().partition("\n")[0]

    @property
    def explanation(self) -> str:
        return _dedent(self.text.strip().partition("\n")[2])

    def place(self, release: Release) -> tuple[str, str]:
        """Where this release refuses, and the exception: ("file.py:function", "ValueError")."""
        for place in self.earlier:
            if release < _release(place.before):
                return place.sglang, place.raises or self.raises
        return self.sglang, self.raises


@dataclass(frozen=True, slots=True)
class Step:
    """One adjustment (`fields` it may set) or one rule's check."""

    name: str
    run: Callable[[Config], Any]
    handler: Handler
    fields: tuple[str, ...] = ()
    rule: Rule | None = None
    since: str = ""
    until: str = ""
    spelling: bool = False

    @property
    def reason(self) -> str:
        """The first paragraph of the step's docstring: why, in one sentence for the reader."""
        return " ".join((self.run.__doc__ or "").strip().partition("\n\n")[0].split())


RULES: dict[str, Rule] = {}
"""Every rule by name."""


_CODES: dict[str, Rule] = {}


def declare(rule: Rule) -> Rule:
    """Enter a rule into RULES. Raises ValueError if its name or code is taken: neither is ever reused."""
    twin = RULES.get(rule.name) or _CODES.setdefault(rule.code, rule)
    if twin is not rule:
        raise ValueError(f"rule {rule.name} ({rule.code}) clashes with {twin.name} ({twin.code})")
    RULES[rule.name] = rule
    return rule


class Handler:
    """One of SGLang's handlers: its steps in order.

    `sglang` is "file.py:function" of the newest release, `earlier` says where older ones have it. `when` guards all steps: if it is false
    none runs, if it is unknown the fields that they adjust become unknown. `since`/`until` are the releases that have it. `rare`: it is for
    a model that few people run, so an unknown model is assumed not to be that one.
    """

    def __init__(
        self,
        sglang: str,
        *,
        when: Guard | None = None,
        since: str = "",
        until: str = "",
        earlier: tuple[Earlier, ...] = (),
        rare: bool = False,
    ) -> None:
        self.sglang = sglang
        self.rare = rare
        self.earlier = earlier
        self.when = when
        self.since = since
        self.until = until
        self.steps: list[Step] = []

    def place(self, release: Release) -> str:
        """Where this release has the handler: "file.py:function"."""
        return next((e.sglang for e in self.earlier if release < _release(e.before)), self.sglang)

    def adjusts(
        self, *fields: str, since: str = "", until: str = "", spelling: bool = False
    ) -> Callable[[Callable[[Config], None]], Callable[[Config], None]]:
        """Declare a step that may set these fields. The first line of its docstring is the reason shown to the reader.

        `spelling`: the step only changes how a value is written (case, an alias, a rank's share of it), which is not reported as an
        override.
        """

        def declare(run: Callable[[Config], None]) -> Callable[[Config], None]:
            self.steps.append(Step(run.__name__, run, self, fields, None, since, until, spelling))
            return run

        return declare

    def refuses(
        self,
        code: str,
        name: str,
        *,
        raises: str,
        bad: str | Sequence[str] = (),
        good: str | Sequence[str] = (),
        since: str = "",
        until: str = "",
        late: bool = False,
        hardware_only: bool = False,
        sglang: str = "",
        earlier: tuple[Earlier, ...] = (),
    ) -> Callable[[Callable[[Config], Refusal | None]], Callable[[Config], Refusal | None]]:
        """Declare a refusal rule: the step returns a Refusal when SGLang would raise, None otherwise.

        `late` marks a refusal raised after argument resolution, with the weights loaded. `sglang` names the place if it differs from the
        handler's, `earlier` where older releases raise it. `hardware_only`: the rule only says that a typed value cannot run on this
        hardware (`trtllm_mla` on Hopper). If no hardware is named, the writer is assumed to have other hardware, and such a world is
        dropped as long as another accepts. `bad` and `good` are example argument lists (see `examples.py`), run by a generic test.
        """

        def enter(run: Callable[[Config], Refusal | None]) -> Callable[[Config], Refusal | None]:
            rule = Rule(
                code, name, run.__doc__ or "", _topic(run.__module__), sglang or self.sglang, raises, late,
                hardware_only=hardware_only, since=since or self.since, until=until or self.until,
                bad=as_examples(bad), good=as_examples(good), earlier=earlier or (() if sglang else self.earlier),
            )  # fmt: skip
            return self._enter(run, rule)

        return enter

    def notes(
        self,
        code: str,
        name: str,
        *,
        severity: Severity = "information",
        bad: str | Sequence[str] = (),
        good: str | Sequence[str] = (),
        since: str = "",
        until: str = "",
        sglang: str = "",
    ) -> Callable[[Callable[[Config], Note | None]], Callable[[Config], Note | None]]:
        """Declare a rule that reports something about a launch that SGLang accepts."""

        def enter(run: Callable[[Config], Note | None]) -> Callable[[Config], Note | None]:
            rule = Rule(
                code, name, run.__doc__ or "", _topic(run.__module__), sglang or self.sglang, severity=severity,
                since=since or self.since, until=until or self.until, bad=as_examples(bad), good=as_examples(good),
                earlier=() if sglang else self.earlier,
            )  # fmt: skip
            return self._enter(run, rule)

        return enter

    def _enter(self, run: Callable[[Config], Refusal | None], rule: Rule) -> Callable[[Config], Refusal | None]:
        self.steps.append(Step(rule.name, run, self, (), declare(rule), rule.since, rule.until))
        return run


def as_examples(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _topic(module: str) -> str:
    """The module of this package a rule belongs to: "speculative" for spec_lsp.resolution.speculative.eagle."""
    return module.removeprefix(f"{__package__}.").partition(".")[0]


def _dedent(text: str) -> str:
    lines = text.strip("\n").split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines).strip()


# --- the configuration -------------------------------------------------------------------------------------------------


class Decision(NamedTuple):
    """One decision in a field's history: `step` put `value` where `previous` was (None as previous: unknown or unset)."""

    step: Step
    previous: Any
    value: Any


ABSENT: Any = object()
"""The state of a field that does not exist."""


@dataclass(frozen=True, slots=True)
class UnknownField:
    """What a Config holds for an unknown field: why, and whether it is `untold` (see NotGiven)."""

    why: str
    untold: bool = False


_unknown_field = cache(UnknownField)
"""One object for each reason, as hundreds of them are compared."""


class _AsGiven(dict[str, str]):
    """Names of reads of what was typed for a field, which may differ from what the field is now."""

    def __missing__(self, name: str) -> str:
        self[name] = f"{name}, as given"
        return self[name]


as_given = _AsGiven().__getitem__
"""The name of a read of what was typed for a field."""

_UNHEARD: set[str] = set()
"""Receives the reads that nobody asks about."""

OVERRIDES = "json_model_override_args"
DRAFT_PATH = "speculative_draft_model_path"
MOVED = "_moved"
"""The internal field that holds which values SGLang moved from one field to another."""
EVERYTHING = "*"
"""A read of all fields at once."""
GPU, MODEL = "@gpu", "@model"
"""A read of whether the hardware is known, and one of the model."""
WHOLE_GPU = f"{GPU}.*"
"""A read of everything about the hardware."""
DRAFT, ADAPTERS = "@draft", "@adapters"
"""A read of the facts of the draft model, and one of those of adapters: both are looked up by their paths."""


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields by name: the values of known ones, and the unknown ones. A field in neither does not exist."""

    known: Mapping[str, Any]
    lacking: Mapping[str, UnknownField]

    def __contains__(self, name: str) -> bool:
        return name in self.known or name in self.lacking

    def state(self, name: str) -> Any:
        """The field's value, an `UnknownField`, or ABSENT."""
        return self.known[name] if name in self.known else self.lacking.get(name, ABSENT)


NO_FIELDS = Fields({}, {})


class SeenHardware:
    """Hardware that records which of its facts are read ("@gpu.memory"). Comparing or hashing it counts as reading all."""

    __slots__ = ("_gpu", "_reads")

    def __init__(self, gpu: Hardware, reads: set[str]) -> None:
        self._gpu, self._reads = gpu, reads

    def __getattr__(self, name: str) -> Any:
        self._reads.add(f"{GPU}.{name}")
        return getattr(self._gpu, name)

    def __hash__(self) -> int:
        self._reads.add(WHOLE_GPU)
        return hash(self._gpu)

    def __eq__(self, other: object) -> bool:
        self._reads.add(WHOLE_GPU)
        return self._gpu == (other._gpu if isinstance(other, SeenHardware) else other)


@cache
def hardware_apart(a: Hardware | None, b: Hardware | None) -> frozenset[str]:
    """The reads of hardware that differ between the two."""
    if a is None or b is None:
        return frozenset() if a is b else frozenset({GPU})
    facts = (name for name in dir(a) if not name.startswith("_"))
    names = [f"{GPU}.{name}" for name in facts if _fact(a, name) != _fact(b, name)]
    return frozenset(names if a == b else (WHOLE_GPU, *names))


def _fact(gpu: Hardware, name: str) -> Any:
    try:
        return getattr(gpu, name)
    except NotKnown as lacking:
        return type(lacking), lacking.what, lacking.why


class Config:
    """What resolution has decided so far, and the world it decides in.

    Fields are attributes (`c.page_size`), named as in SGLang's ServerArgs; reading an unknown one raises NotKnown; one that this release
    does not have reads as None. Facts: `c.release`, `c.gpu`, `c.model` (the target), `c.draft` (the draft model; None when no draft path is
    set), `c.env`. Reading an unknown fact raises NotKnown too.

    A known field is in the object's `__dict__`, so reading it costs no more than reading any attribute. A `watched` Config keeps fields
    elsewhere and collects in `reads` everything that is asked for: fields, what was typed for them, facts, variables ("$NAME"). `log` has
    the decisions in order, `touched` the fields that were set or forgotten; replay.py depends on both.
    """

    __slots__ = (
        "__dict__", "_base", "_draft", "_gpu", "_known", "_lacking", "_log", "_model", "_other_fields", "_spelled", "_step", "_typed",
        "env", "log", "reads", "release", "touched",
    )  # fmt: skip

    def __init__(
        self,
        release: Release,
        defaults: Mapping[str, Any],
        typed: Mapping[str, Any],
        *,
        unknown: Mapping[str, str] = MappingProxyType({}),
        untold: frozenset[str] = frozenset(),
        gpu: Hardware | None = None,
        model: ModelFacts | None = None,
        draft: Callable[[str], ModelFacts | None] | None = None,
        env: Environment | None = None,
        other_fields: frozenset[str] = frozenset(),
        spelled: Mapping[str, str] = MappingProxyType({}),
        watched: bool = False,
    ) -> None:
        """`typed` holds the values given by flag or file, `unknown` the unknown fields (with why), `untold` those of them that may be given
        elsewhere (see NotGiven); `other_fields` the names of fields that only other releases have; `spelled` how typed fields are written
        (`--tp 8`, `tp-size: 8`)."""
        self.reads: set[str] = set() if watched else _UNHEARD
        self.touched: set[str] = set()
        self.log: list[tuple[str, Decision]] = []
        self._log: Callable[[], Iterable[tuple[str, Decision]]] | None = None
        self._base = NO_FIELDS
        self._known: dict[str, Any] = {**defaults, **typed}
        self._lacking: dict[str, Any] = {}
        """The states of unknown fields; entries for fields that are known by now do not count."""
        for name, why in unknown.items():
            self._known.pop(name, None)
            self._lacking[name] = _unknown_field(why, name in untold)
        self._typed = typed
        self.release = release
        self.env = Environment(env.values if env else {}, self.reads)
        self._gpu = gpu
        self._model = self._as_overridden(model) if model is not None else None
        self._draft = draft
        self._other_fields = other_fields
        self._spelled = spelled
        self._step: Step | None = None
        self.__dict__ = {} if watched else self._known

    def __getattr__(self, name: str) -> Any:
        if name in _SLOTS:  # not set yet
            raise AttributeError(name)
        self.reads.add(name)
        value = self.state(name)
        if type(value) is UnknownField:
            raise (NotGiven if value.untold else NotKnown)(name, value.why)
        if value is not ABSENT:
            return value
        if name in self._other_fields:
            return None
        raise AttributeError(f"no SGLang release has a field {name!r}")

    @property
    def watched(self) -> bool:
        """Whether reads are recorded."""
        return self.reads is not _UNHEARD

    def state(self, name: str) -> Any:
        """The field's value, an `UnknownField`, or ABSENT, without recording the read: for replay.py, not for steps."""
        if name in self._known:
            return self._known[name]
        return self._lacking[name] if name in self._lacking else self._base.state(name)

    def snapshot(self) -> Fields:
        """All fields as they are now."""
        return Fields(dict(self._known), {n: state for n, state in self._lacking.items() if n not in self._known})

    def update(self, fields: Fields) -> None:
        """Set these fields without logging: for replay.py, not for steps."""
        self._known.update(fields.known)
        for name, lacking in fields.lacking.items():
            self._known.pop(name, None)
            self._lacking[name] = lacking

    def finish(self, base: Fields, own: Iterable[str], log: Callable[[], Iterable[tuple[str, Decision]]]) -> None:
        """End resolution, and share memory with others: all fields but `own` are as in `base`. `log` gives the decisions."""
        known, lacking = self._known, self._lacking
        self._base, self._log, self.log = base, log, []
        self._known = self.__dict__ = {name: known[name] for name in own if name in known}
        self._lacking = {n: lacking.get(n, ABSENT) for n in own if n not in known and (n in lacking or n in base)}

    # facts

    @property
    def gpu(self) -> Hardware:
        """The hardware. Raises NotKnown if nobody named it."""
        self.reads.add(GPU)
        if self._gpu is None:
            raise NotKnown("hardware", "nothing names the GPU")
        return self._gpu if self.reads is _UNHEARD else cast("Hardware", SeenHardware(self._gpu, self.reads))

    @property
    def model(self) -> ModelFacts:
        """The target model's facts. Raises NotKnown if its config.json cannot be read."""
        self.reads.update(_OF_MODEL)
        if self._model is None:
            raise NotGiven("model", "its config.json is not at hand")
        if OVERRIDES not in self._known and type(overrides := self.state(OVERRIDES)) is UnknownField:
            raise NotKnown(OVERRIDES, overrides.why)
        return self._model

    def _as_overridden(self, facts: ModelFacts) -> ModelFacts:
        """The facts with `--json-model-override-args` applied, which SGLang applies to target and draft alike."""
        overrides = self._typed.get(OVERRIDES)
        return facts.overridden_by(str(overrides)) if overrides else facts

    @property
    def draft(self) -> ModelFacts | None:
        """The draft model's facts; None if no draft path is set. Raises NotKnown if its config.json cannot be read."""
        self.reads.update(_OF_DRAFT)
        path = self.speculative_draft_model_path
        if path is None:
            return None
        facts = self.facts_at(path)
        if facts is None:
            raise NotGiven("draft model", "its config.json is not at hand")
        return self._as_overridden(facts)

    def facts_at(self, path: str) -> ModelFacts | None:
        """What is known of a model by its path, without recording the read."""
        return self._draft(path) if self._draft else None

    def adapter(self, path: str) -> ModelFacts:
        """What the adapter_config.json of an adapter states. Raises NotKnown if it cannot be read."""
        self.reads.add(ADAPTERS)
        facts = self.facts_at(f"{path.rstrip('/')}/{ADAPTER}")
        if facts is None:
            raise NotGiven("adapter", "its adapter_config.json is not at hand")
        return facts

    def since(self, release: str) -> bool:
        """Whether this release is `release` or newer."""
        return self.release >= _release(release)

    def before(self, release: str) -> bool:
        """Whether this release is older than `release`."""
        return self.release < _release(release)

    # fields

    def given(self, name: str) -> bool:
        """Whether the field was typed (by flag or in a --config file), whatever it is now."""
        self.reads.add(as_given(name))
        return name in self._typed

    def first_given(self, *names: str) -> str:
        """The first of these fields that was given, else the last: the field at which a refusal is shown."""
        return next((name for name in names[:-1] if self.given(name)), names[-1])

    def typed(self, name: str) -> Any:
        """The value as typed, or None if the field was not given: SGLang's raw input, for handlers that look back at it."""
        self.reads.add(as_given(name))
        return self._typed.get(name)

    def gives_any(self, names: Collection[str]) -> bool:
        """Whether any of the fields was typed with a value other than 0 or ""."""
        self.reads.update(map(as_given, names))
        return not self._typed.keys().isdisjoint(names) and any(self._typed.get(name) for name in names)

    def known(self, name: str) -> bool:
        """Whether the field's present value is known."""
        self.reads.add(name)
        return name in self._known or (name in self._base.known and name not in self._lacking)

    def set(self, **fields: Any) -> None:
        """Set fields. Only the running step's declared fields may be set."""
        step = self._step
        for name, value in fields.items():
            self.reads.add(name)
            if step is not None:
                if name not in step.fields:
                    raise ValueError(f"{step.name} sets {name}, which it does not declare")
                previous = self.state(name)
                if previous is ABSENT or previous != value or type(previous) is not type(value):
                    before = None if previous is ABSENT or type(previous) is UnknownField else previous
                    self.log.append((name, Decision(step, before, value)))
            self._known[name] = value
            self.touched.add(name)

    def move(self, target: str, source: str, *switches: str, value: Any) -> None:
        """Set a field to a value that SGLang takes from an old spelling of it: what is refused of the field is shown at what was typed."""
        self.set(**{target: value})
        if self.given(source):
            self.set(_moved={**self._moves, target: Moved(source, switches, value)})

    @property
    def _moves(self) -> Mapping[str, Moved]:
        self.reads.add(MOVED)
        found = self.state(MOVED)
        return found if isinstance(found, dict) else {}

    def as_typed(self, said: Refusal) -> Refusal:
        """A refusal at the fields that were typed, where SGLang moved their values."""
        moves = self._moves
        if not moves:
            return said
        at, *related = (moves[name].source if name in moves else name for name in (said.at, *said.related_fields))
        fixes = said.candidates
        for target, moved in moves.items():
            fixes = tuple(moved.change(target, change) for change in fixes)
        return said._replace(at=at, related_fields=tuple(n for n in dict.fromkeys(related) if n != at), fixes=fixes)

    def forget(self, fields: Iterable[str], why: str, *, untold: bool = False) -> None:
        """Make fields unknown; `untold`: see NotGiven."""
        lacking = _unknown_field(why, untold)
        for name in fields:
            self._lacking[name] = lacking
            self._known.pop(name, None)
            self.touched.add(name)

    def fields(self) -> dict[str, Any]:
        """All fields whose values are known. Which of them were moved is none."""
        self.reads.add(EVERYTHING)
        found = {**self._base.known, **self._known}
        found.pop(MOVED, None)
        for name in self._lacking.keys() - self._known.keys():
            found.pop(name, None)
        return found

    def unknown(self) -> dict[str, str]:
        """The fields whose values are unknown, with why."""
        lacking = {**self._base.lacking, **self._lacking}
        return {n: state.why for n, state in lacking.items() if type(state) is UnknownField and n not in self._known}

    @property
    def history(self) -> dict[str, list[Decision]]:
        """The decisions of each field, in order."""
        found: dict[str, list[Decision]] = {}
        for name, decision in self.log if self._log is None else self._log():
            found.setdefault(name, []).append(decision)
        return found

    # words for messages

    def flag_as_typed(self, name: str) -> str:
        """A typed field as it was typed: "`--page-size 16`"; a switch without its value."""
        self.reads.update((as_given(name), spelling_of(name)))
        value = self._typed[name]
        plain = self.flag(name) if value is True else f"{self.flag(name)} {_plain(value)}"
        return f"`{self._spelled.get(name, plain)}`"

    def flag(self, name: str) -> str:
        """The field's flag: `--page-size`."""
        return "--" + name.replace("_", "-")

    def shown(self, name: str) -> str:
        """The field as a message names it: "`--page-size 16`" if it is as typed, "`--page-size 64` (SGLang's choice)" if SGLang set it."""
        state = self.state(name)
        self.reads.add(name)
        value = None if state is ABSENT or type(state) is UnknownField else state
        if self.given(name) and self._typed[name] == value:
            return self.flag_as_typed(name)
        if name in self._moves and self._moves[name].value == value:
            return self.flag_as_typed(self._moves[name].source)
        if self.given(name) and (isinstance(value, dict) or type(state) is UnknownField):  # as it was read, or refused
            return self.flag_as_typed(name)
        flag = self.flag(name)
        if value is None or value is False:
            return f"`{flag}` (not given)"
        typed = flag if value is True or isinstance(value, dict) else f"{flag} {_plain(value)}"
        return f"`{typed}` (SGLang's choice)"


_SLOTS = frozenset(Config.__slots__)
_OF_MODEL = (MODEL, OVERRIDES, as_given(OVERRIDES))
_OF_DRAFT = (DRAFT, OVERRIDES, as_given(OVERRIDES))


def spelling_of(name: str) -> str:
    """A read of how a typed field is written."""
    return f"{name}, as written"


def same_state(a: Any, b: Any) -> bool:
    """Whether two fields hold the same: values of the same type (also within), or unknown for the same reason."""
    if a is b:
        return True
    if type(a) is not type(b) or a != b:
        return False
    if isinstance(a, dict):
        return all(same_state(value, b[key]) for key, value in a.items())
    return not isinstance(a, (list, tuple)) or all(map(same_state, a, b))


def one_of(names: Sequence[str]) -> str:
    """Names to choose from: "a, b or c"."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def _plain(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


@cache
def _release(text: str) -> Release:
    return Release.parse(text)


# --- running -----------------------------------------------------------------------------------------------------------


class Finding(NamedTuple):
    """What one rule reports about the launch in one world."""

    rule: Rule
    said: Refusal

    @property
    def ends_resolution(self) -> bool:
        """Whether SGLang's own argument resolution stops here; a late refusal leaves the resolved configuration as it is."""
        return self.rule.severity == "error" and not self.rule.late


@dataclass(slots=True)
class Resolution:
    """The resolved configuration and what was found on the way, in SGLang's order.

    `undecided` holds the rules that could not be decided, with what was unknown; `faults` our own exceptions, which end a step as NotKnown
    does and which tests do not tolerate.
    """

    config: Config
    findings: list[Finding] = field(default_factory=list)
    undecided: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def add(self, finding: Finding) -> None:
        """Add a finding. A refused field becomes unknown, so that refusals that only follow from it are not reported."""
        self.findings.append(Finding(finding.rule, self.config.as_typed(finding.said)))
        if finding.ends_resolution:
            self.config.forget((finding.said.at,), f"SGLang refuses it ({finding.rule.name})")

    @property
    def refused(self) -> bool:
        """Whether argument resolution itself refuses (late refusals do not count)."""
        return any(f.rule.severity == "error" and not f.rule.late for f in self.findings)


def in_release(release: Release, since: str, until: str) -> bool:
    """Whether `release` is in [since, until); an empty bound is open."""
    return not ((since and release < _release(since)) or (until and release >= _release(until)))


@cache
def plan_of(
    handlers: tuple[Handler, ...], release: Release
) -> tuple[tuple[Handler, tuple[Step, ...], tuple[str, ...]], ...]:
    """The handlers and steps of this release, each handler with all the fields it may set."""
    plan = []
    for handler in handlers:
        if in_release(release, handler.since, handler.until):
            steps = tuple(s for s in handler.steps if in_release(release, s.since, s.until))
            if steps:
                plan.append((handler, steps, tuple({f for s in steps for f in s.fields})))
    return tuple(plan)


def resolve(handlers: tuple[Handler, ...], c: Config) -> Resolution:
    """Run the handlers over `c`, which becomes the resolved configuration. `replay.py` gives the same result faster."""
    result = Resolution(c)
    for handler, steps, fields in plan_of(handlers, c.release):
        try:
            if not goes(handler, c):
                continue
        except Exception as error:
            mark_undecided(result, error, fields, steps)
            continue
        for step in steps:
            run_step(step, c, result)
    return result


def goes(handler: Handler, c: Config) -> bool:
    """Whether the handler's guard lets its steps run. Raises NotKnown if that is unknown."""
    if handler.when is None:
        return True
    try:
        return bool(handler.when(c))
    except NotGiven:
        if handler.rare:
            return False
        raise


def run_step(step: Step, c: Config, result: Resolution) -> Exception | None:
    """Run one step; returns why it could not be completed, if so."""
    c._step = step
    try:
        said = step.run(c)
    except Exception as error:
        mark_undecided(result, error, step.fields, (step,))
        return error
    if said is not None and step.rule is not None:
        result.add(Finding(step.rule, said))
    return None


SPEAKS_FOR = {"prefill_attention_backend": "attention_backend", "decode_attention_backend": "attention_backend"}
"""Fields that are also determined by another one, if that is typed."""


def mark_undecided(result: Resolution, error: Exception, fields: Iterable[str], steps: Iterable[Step]) -> None:
    """A step that ended early leaves its fields unknown and its rules undecided, whether by NotKnown or by a fault of ours."""
    lacking = (
        error if isinstance(error, NotKnown) else NotKnown("a fault of spec-lsp", f"{type(error).__name__}: {error}")
    )
    if lacking is not error:
        result.faults.append(f"{', '.join(s.name for s in steps)}: {lacking.why}")
    c = result.config
    untold = isinstance(error, NotGiven)
    kept = {f for f in fields if c.known(f) and (c.given(f) or c.given(SPEAKS_FOR.get(f, f)))} if untold else set()
    c.forget([f for f in fields if f not in kept], _why(lacking), untold=untold)
    result.undecided.update((s.rule.name, lacking.what) for s in steps if s.rule)


def _why(lacking: NotKnown) -> str:
    return f"depends on {lacking.what}" if not lacking.why else f"depends on {lacking.what}: {lacking.why}"
