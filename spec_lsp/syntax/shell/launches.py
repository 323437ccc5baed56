"""Launches as a run finds them, visit by visit, and as a document lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from operator import attrgetter

from spec_lsp.records import dataclass, field
from spec_lsp.syntax.covering import Ways, fewest
from spec_lsp.syntax.edited import same_ends
from spec_lsp.syntax.launch import Choice, Clue, EmbeddedFile, Launch, Program, Variant
from spec_lsp.syntax.shell import ast, commands
from spec_lsp.syntax.shell.values import MAX_VARIANTS
from spec_lsp.syntax.source import FileSource, Source
from spec_lsp.syntax.word import Place, Word, hull, told

Key = tuple[Place, Place]
Choices = tuple[Choice, ...]
Visit = tuple["Seen", Choices]


@dataclass(slots=True)
class Seen:
    """The effect of a command under one path condition."""

    action: commands.Action | None
    env: tuple[tuple[str, Word], ...] = ()
    files: tuple[EmbeddedFile, ...] = ()
    kept_told: object = field(default=None, compare=False, repr=False)

    def told(self) -> object:
        """What the launch runs with, regardless of how it was reached and where it is written."""
        if self.kept_told is None:
            args = self.action.args if isinstance(self.action, commands.Started) else ()
            env = tuple((name, told(word)) for name, word in self.env)
            self.kept_told = (tuple(map(told, args)), env, tuple((f.name, told(f.content)) for f in self.files))
        return self.kept_told

    def variant(self, choices: Choices) -> Variant:
        args = self.action.args if isinstance(self.action, commands.Started) else ()
        return Variant(args, dict(self.env), choices, self.files)


@dataclass(slots=True, eq=False)
class Note:
    """One visit of a run to a command that starts SGLang. `node` and `source` are set if a statement starts it."""

    program: Program
    place: Place
    extent: Place
    node: ast.Simple | None
    source: Source | None
    clues: tuple[Clue, ...]
    seen: Seen
    choices: Choices
    """The choices that it depends on."""
    implied: Choices = ()
    """The choices that were made before; reported if another visit came on another way."""
    carrier: Place | None = None
    """The statement that runs a text from variables: where such a text is written depends on the way taken."""
    ways: Ways = "all"
    key: Key = field(init=False)
    """What identifies the launch: where the last word of its entry point is written, and the command if that is elsewhere.

    The extent of a command does not identify it, as a composed text starts and ends elsewhere on each way.
    """
    guessed: bool = field(init=False)

    def __post_init__(self) -> None:
        action = self.seen.action
        self.guessed = isinstance(action, commands.Started) and action.around.guessed
        if self.carrier is not None:
            self.key = self.place, self.carrier
        elif self.extent.contains(self.place):
            end = Place(self.place.document, self.place.end, self.place.end)
            self.key = end, end
        else:
            self.key = self.place, self.extent


@dataclass(slots=True, eq=False)
class LaunchSite:
    """A launch, with all visits to it."""

    program: Program
    place: Place
    extent: Place
    visits: list[Visit] = field(default_factory=list)
    clues: dict[Clue, None] = field(default_factory=dict)
    ways: Ways = "all"


NOWHERE = Place("", -1, -1)


def gather(notes: Sequence[Note]) -> dict[Key, list[Note]]:
    """The visits of a run to each launch, in order. Arguments of an unknown command only count as a launch if nothing else starts it."""
    if any(note.guessed for note in notes):
        started = {note.place for note in notes if not note.guessed}
        notes = [note for note in notes if not (note.guessed and note.place in started)]
    visits: dict[Key, list[Note]] = {}
    for note in notes:
        visits.setdefault(note.key, []).append(note)
    return visits


def _gathered(notes: Sequence[Note]) -> LaunchSite:
    first = notes[0]
    extent = first.extent if first.carrier is not None else hull(note.extent for note in notes)
    found = LaunchSite(first.program, first.place, extent)
    ways: dict[Place, set[str]] = {}
    for note in notes:
        found.clues.update(dict.fromkeys(note.clues))
        for choice in (*note.choices, *note.implied):
            ways.setdefault(choice.place, set()).add(choice.taken)
    found.ways = fewest([*(note.ways for note in notes), "all" if len(notes) <= MAX_VARIANTS else "some"])
    for note in notes[:MAX_VARIANTS]:
        implied = (choice for choice in note.implied if len(ways[choice.place]) > 1)
        found.visits.append((note.seen, tuple(dict.fromkeys((*note.choices, *implied)))))
    return found


@dataclass(slots=True, eq=False)
class Told:
    """A launch of the last reading, with what it was made from."""

    notes: list[Note]
    visits: list[Visit]
    around: tuple[Clue, ...]
    """The clues of the whole script."""
    clues: tuple[Clue, ...]
    launch: Launch
    command: tuple[ast.Simple, Source] | None = field(init=False)
    """The statement that starts it."""
    statement: Place = field(init=False)
    """Where that stands, if it is a statement of a document; else in none."""

    def __post_init__(self) -> None:
        started = ((n.node, n.source) for n in self.notes if n.node is not None and n.source is not None)
        self.command = next(started, None)
        source = self.command[1] if self.command is not None else None
        self.statement = source.place(0, len(source.text)) if isinstance(source, FileSource) else NOWHERE

    def holds(self, notes: list[Note], around: tuple[Clue, ...]) -> bool:
        """Whether it is what these notes, among these clues of the whole script, come to."""
        return self.around is around and self.notes == notes


def tell(notes: list[Note], around: tuple[Clue, ...], last: Told | None) -> Told:
    """The launch of these visits: the same object as in the last reading if nothing about it has changed."""
    found = _gathered(notes)
    own = tuple(dict.fromkeys((*found.clues, *around)))
    if (
        last is not None
        and last.clues == own
        and last.launch.ways == found.ways
        and _same_visits(last.visits, found.visits)
    ):
        return Told(notes, found.visits, around, own, last.launch)
    variants = distinct(found.visits)
    launch = Launch(found.program, found.place, found.extent, variants, "shell", own, ways=found.ways)
    return Told(notes, found.visits, around, own, launch)


def tell_all(
    notes: Sequence[Note], around: tuple[Clue, ...], last: Sequence[Note], known: Mapping[Key, Told]
) -> dict[Key, Told]:
    """The launches of a run with these notes, in the order in which they were first reached. `known` are those of the last reading, by the
    notes `last`: where the notes of a launch are the same, it is not looked at."""
    start, end = same_ends(last, notes)
    new, old = notes[start : len(notes) - end], last[start : len(last) - end]
    came, gone = gather(new), list(dict.fromkeys(note.key for note in old))
    if (
        list(came) == gone
        and not any(map(GUESSED, (*notes, *old)))
        and all(one.around is around for one in islice(known.values(), 1))
        and sum(len(known[key].notes) for key in gone) == len(old)  # none of theirs is in front or behind
    ):
        return {**known, **{key: tell(visits, around, known[key]) for key, visits in came.items()}}
    return {
        key: one if (one := known.get(key)) and one.holds(visits, around) else tell(visits, around, one)
        for key, visits in gather(notes).items()
    }


GUESSED = attrgetter("guessed")


def _same_visits(a: Sequence[Visit], b: Sequence[Visit]) -> bool:
    return len(a) == len(b) and all(x[0] is y[0] and x[1] == y[1] for x, y in zip(a, b, strict=True))


def distinct(visits: Sequence[Visit]) -> tuple[Variant, ...]:
    """The variants without duplicates, and without choices that all of them share."""
    if len(visits) == 1:
        return (visits[0][0].variant(()),)
    kept: dict[object, Visit] = {}
    for seen, choices in visits:
        same = kept.get(seen.told())
        kept[seen.told()] = (seen, choices) if same is None else (same[0], tuple(c for c in same[1] if c in choices))
    found = list(kept.values())
    shared = set(found[0][1]).intersection(*(choices for _, choices in found))
    return tuple(seen.variant(tuple(c for c in choices if c not in shared)) for seen, choices in found)
