"""Collects the launches of a Python file as they are found: each once, with the choices on the way to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from spec_lsp.interruption import Exhausted, checkpoint
from spec_lsp.records import dataclass, replace
from spec_lsp.syntax.covering import Ways, fewest
from spec_lsp.syntax.launch import Choice, Clue, Launch, Problem, Program, Variant
from spec_lsp.syntax.python.parsing import Positions
from spec_lsp.syntax.shell.embedding import CommandResult
from spec_lsp.syntax.shell.values import MAX_VARIANTS
from spec_lsp.syntax.word import Place, Word

MAX_CALLS = 400
"""The most launches that are recorded for one file."""
STEPS_OF_A_LAUNCH = 100


@dataclass(slots=True)
class Noted:
    """A launch, with the visits to its call."""

    launch: Launch
    variants: dict[object, Variant]
    ways: Ways = "all"


class Notes:
    """Records what is found. The results are `launches()`, `problems` and `depends_on`."""

    def __init__(self, document: str, positions: Positions) -> None:
        self.document = document
        self.positions = positions
        self.noted: dict[object, Noted] = {}
        self.problems: dict[Place, Problem] = {}
        self.depends_on: set[str] = set()
        self.clues: dict[Clue, None] = {}
        self.around: tuple[Clue, ...] = ()
        self.pending: list[tuple[Place, CommandResult]] = []
        """Commands that functions return to callers in the file, which may add to them, or that are passed to the file's own functions."""
        self.waiting = False
        """Whether what is found now is such a command."""
        self.context: list[Choice] = []
        """The choices that lead to where the file is being read."""
        self.looked_at: Ways = "all"
        """The ways of the program that are looked at now, if not all are."""
        self.quiet = 0
        """If above 0, nothing is recorded."""

    @contextmanager
    def choice(self, choice: Choice | None) -> Iterator[None]:
        if choice is not None:
            self.context.append(choice)
        try:
            yield
        finally:
            if choice is not None:
                self.context.pop()

    def add(
        self,
        program: Program,
        call: Place,
        words: tuple[Word, ...],
        env: Mapping[str, Word],
        syntax: str,
        entry: Place | None = None,
    ) -> None:
        start = entry or Place(
            self.document, call.start, min(call.end, call.start + _name_length(self.positions.text, call))
        )
        launch = Launch(program, start, call, (Variant(words, env),), syntax, self.around)  # type: ignore[arg-type]
        self.keep(launch)

    def note(self, call: Place, found: CommandResult, syntax: str, new: bool = False) -> None:
        """Record what a command starts; with `new`, only launches that are not recorded yet."""
        if self.waiting:
            self.pending.append((call, self.told(found)))
            return
        known = set(self.noted) if new else set()
        written = _written(v for n in self.noted.values() for v in n.variants.values()) if new else set()
        for launch in found.launches:
            own = replace(launch, syntax=syntax) if launch.syntax == "yaml-words" else launch  # type: ignore[arg-type]
            places = _written(launch.variants) if new else set()
            if _key(launch) not in known and not (places and places <= written):
                self.keep(own)
        for problem in found.problems:
            self.problems.setdefault(problem.place, problem)
        self.depends_on |= found.depends_on

    def told(self, found: CommandResult) -> CommandResult:
        """What was found, with the choices that lead to where the file is being read."""
        context = tuple(self.context)
        return replace(
            found,
            launches=tuple(
                replace(
                    one,
                    variants=tuple(replace(v, choices=(*context, *v.choices)) for v in one.variants),
                    ways=fewest((one.ways, self.looked_at)),
                )
                for one in found.launches
            ),
        )

    def keep(self, launch: Launch) -> None:
        """Record a launch; if it is recorded already, new variants are added."""
        if self.quiet:
            return
        checkpoint(STEPS_OF_A_LAUNCH)
        key = _key(launch)
        noted = self.noted.get(key)
        if noted is None:
            if len(self.noted) >= MAX_CALLS:
                raise Exhausted
            noted = self.noted[key] = Noted(launch, {})
        noted.ways = fewest((noted.ways, launch.ways, self.looked_at))
        for variant in launch.variants:
            told = _told(variant)
            choices = (*self.context, *variant.choices)
            same = noted.variants.get(told)
            if same is not None:
                noted.variants[told] = replace(same, choices=tuple(c for c in same.choices if c in choices))
            elif len(noted.variants) < MAX_VARIANTS:
                noted.variants[told] = replace(variant, choices=choices)
            else:
                noted.ways = "some"

    def launches(self) -> tuple[Launch, ...]:
        found = [
            replace(
                n.launch,
                variants=_distinct(list(n.variants.values())),
                clues=tuple(dict.fromkeys((*n.launch.clues, *self.clues))),
                ways=n.ways,
            )
            for n in self.noted.values()
        ]
        return tuple(sorted(found, key=lambda one: (one.extent.start, one.extent.end)))


def _distinct(variants: list[Variant]) -> tuple[Variant, ...]:
    """The variants without choices that all of them share."""
    shared = set(variants[0].choices).intersection(*(v.choices for v in variants))
    return tuple(replace(v, choices=tuple(c for c in dict.fromkeys(v.choices) if c not in shared)) for v in variants)


def _key(launch: Launch) -> object:
    """What identifies a launch: the last word of the entry point, as the first may be one of several (`venv or sys.executable`)."""
    return launch.place.document, launch.place.end, launch.program


def _written(variants: Iterable[Variant]) -> set[Place]:
    """Where the words of launches are written."""
    return {f.place for variant in variants for word in variant.words for f in word.fragments if f.verbatim}


def _told(variant: Variant) -> object:
    words = tuple((w.text, w.splat, tuple(f.text for f in w.fragments)) for w in variant.words)
    return words, tuple((n, w.text) for n, w in variant.env.items())


def _name_length(text: str, call: Place) -> int:
    bracket = text.find("(", call.start, call.end)
    return (bracket if bracket >= 0 else call.end) - call.start
