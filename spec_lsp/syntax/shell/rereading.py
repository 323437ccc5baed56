"""Runs a script again after an edit: from the statement that changed to where the rest can only come to what it came to before.

A run leaves checkpoints, at the edit and here and there. The next run starts at the last one before its first changed statement.
Where it meets a checkpoint behind the edit with all that a statement can read as it was (but for places, which moved), the rest of
the last run is taken over, its places moved along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from spec_lsp.syntax.shell.interpreter import Interpreter
from spec_lsp.syntax.shell.machine import MAX_EVALUATIONS, MAX_STEPS, Answer
from spec_lsp.syntax.shell.memory import Memory, same
from spec_lsp.syntax.shell.moving import Move, Unmovable
from spec_lsp.syntax.shell.sourced import SourcedFiles
from spec_lsp.syntax.shell.state import FILE, State
from spec_lsp.syntax.shell.statements import Located, Restated
from spec_lsp.syntax.shell.values import Fork
from spec_lsp.syntax.source import FileSource, Source
from spec_lsp.syntax.word import Place

STRIDE = 24
"""Statements between checkpoints that no edit asked for."""
MAX_CHECKPOINTS = 60


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The interpreter before it runs statement `index`; the counts are of what it had noted until then."""

    index: int
    state: State
    turns: Mapping[Any, int]
    answers: Mapping[Any, Answer]
    wrote_files: bool
    notes: int
    clues: int
    sourced: int
    entered: int
    points: int
    steps: int
    evaluations: int
    embedded_characters: int


@dataclass(slots=True, eq=False)
class Reading:
    """What a run over a document leaves for the next."""

    text: str
    located: Sequence[Located]
    run: Interpreter
    files: SourcedFiles
    broken: bool
    """Bash would refuse some statement: then an `exit` is no reason to read no further."""
    checkpoints: list[Checkpoint] = field(default_factory=list)
    stopped: bool = False
    """Some statement ended the script."""
    written: Mapping[str, Any] = field(default_factory=dict)
    """What the script has written to files when it ends."""


def run_again(reading: Reading, last: Reading | None, restated: Restated, document: str) -> None:
    """Runs the statements of `reading`, taking over from `last` what can be taken; `restated` says how their statements differ."""
    run, located = reading.run, reading.located
    move = Move(document, restated.start, restated.end, restated.shift)
    index = 0
    if last is not None and usable(last, reading):
        move_points(run, last, move)
        index = resume(reading, last, restated.first)
    else:
        last = None
    known = (
        {c.index - restated.behind_before + restated.behind: c for c in last.checkpoints} if last is not None else {}
    )
    marks = {restated.first, restated.behind, len(located)}
    while True:
        old = known.get(index) if index >= restated.behind else None
        if last is not None and old is not None and rejoin(reading, last, old, move, index):
            return
        if (index in marks or index % STRIDE == 0) and not (
            reading.checkpoints and reading.checkpoints[-1].index == index
        ):
            reading.checkpoints.append(checkpoint(run, index))
        if index == len(located):
            break
        statement = located[index]
        run.run(statement.statement.script, FileSource(document, statement.start, statement.text))
        index += 1
        if not run.state.alive:
            reading.stopped = True
            if not reading.broken:
                break
            run.state.alive = True
    reading.written = {name: value for name, value in run.state.vars.items() if name.startswith(FILE)}
    run.tell_uncalled()


def usable(last: Reading, reading: Reading) -> bool:
    """Whether a run over the present text meets the same world: sourced files, what is set somewhere, how an `exit` is taken."""
    if last.run.zsh != reading.run.zsh:
        return False
    if last.stopped and last.broken != reading.broken:
        return False
    if any(reading.files.content(path) != content for path, content in last.files.asked.items()):
        return False
    return last.run.assigned is None or last.run.assigned == reading.run.all_assigned()


def move_points(run: Interpreter, last: Reading, move: Move) -> None:
    """The points of the last run by what they are known by now."""
    standing = {k: p for k, p in last.run.memory_left.points.items() if movable(move, p.place)}
    points = {move.point_key(key): move.point(point) for key, point in standing.items()}
    run.memory = replace(last.run.memory_left, points=points)


def movable(move: Move, place: Place) -> bool:
    return place.document != move.document or place.end <= move.start or place.start >= move.end


def resume(reading: Reading, last: Reading, first: int) -> int:
    """Goes to the last checkpoint at or before a statement; gives the index of the statement to run next."""
    before = [c for c in last.checkpoints if c.index <= first]
    if not before:
        return 0
    start, run = before[-1], reading.run
    run.state = start.state.fork()
    run.turns = dict(start.turns)
    run.answers = dict(start.answers)
    run.wrote_files = start.wrote_files
    run.notes = last.run.notes[: start.notes]
    run.clues = last.run.clues[: start.clues]
    run.sourced = last.run.sourced[: start.sourced]
    run.entered = last.run.entered[: start.entered]
    run.steps, run.evaluations = start.steps, start.evaluations
    run.embedded_characters = start.embedded_characters
    begin = last.located[start.index].start if start.index < len(last.located) else len(last.text)
    kept = last.run.memory_left
    run.memory_left = Memory(
        dict(islice(kept.points.items(), start.points)),
        {key: found for key, found in kept.results.items() if key[1] < begin or key[2] != run.document},
    )
    reading.checkpoints = before if len(before) <= MAX_CHECKPOINTS else [*before[:-1:2], start]
    reading.stopped = last.stopped
    return start.index


def checkpoint(run: Interpreter, index: int) -> Checkpoint:
    return Checkpoint(
        index,
        run.state.fork(),
        dict(run.turns),
        dict(run.answers),
        run.wrote_files,
        len(run.notes),
        len(run.clues),
        len(run.sourced),
        len(run.entered),
        len(run.memory_left.points),
        run.steps,
        run.evaluations,
        run.embedded_characters,
    )


def rejoin(reading: Reading, last: Reading, old: Checkpoint, move: Move, index: int) -> bool:
    """Takes over what the last run came to behind a checkpoint, if the present one is there with the same values."""
    run, ran = reading.run, last.run
    steps = run.steps + ran.steps - old.steps
    evaluations = run.evaluations + ran.evaluations - old.evaluations
    if max(steps / MAX_STEPS, evaluations / MAX_EVALUATIONS) > 1 or run.embedded_characters != old.embedded_characters:
        return False
    leading = [*run.starting_functions(run.state), *ran.leading]
    if not {*leading} <= {*run.entered, *ran.entered[old.entered :]}:
        return False  # what calls nothing is told from the end of the run
    try:
        if not agrees(run, old, move):
            return False
        notes = [move.note(note) for note in ran.notes[old.notes :]]
        clues = move.clues(ran.clues[old.clues :])
        reading.written = {name: move.value(value) for name, value in last.written.items()}
        points = {move.point_key(k): move.point(p) for k, p in islice(ran.memory_left.points.items(), old.points, None)}
    except Unmovable:
        return False
    reading.checkpoints.append(checkpoint(run, index))
    run.notes += notes
    run.clues += clues
    run.sourced += ran.sourced[old.sourced :]
    run.entered += ran.entered[old.entered :]
    run.leading = leading
    run.memory_left.points.update(points)
    run.steps, run.evaluations = steps, evaluations
    run.embedded_characters = ran.embedded_characters
    run.assigned = run.assigned if ran.assigned is None else ran.assigned
    reading.stopped = reading.stopped or last.stopped
    return True


def agrees(run: Interpreter, old: Checkpoint, move: Move) -> bool:
    """Whether the run is where the last one was, but for places that moved."""
    now, then = run.state, old.state
    if run.wrote_files != old.wrote_files or now.exported != then.exported or now.vars.keys() != then.vars.keys():
        return False
    if not all(same_values(value, then.vars[name], move) for name, value in now.vars.items()):
        return False
    constraints = tuple((move.value(tree), allowed) for tree, allowed in then.constraints)
    turns = {(move.place(key[0]), *key[1:]): count for key, count in old.turns.items()}
    return (
        same(now.constraints, constraints)
        and run.turns == turns
        and [(k[0], a.point) for k, a in run.answers.items()]
        == [(k[0], move.point(a.point)) for k, a in old.answers.items()]
        and same_functions(now.functions, then.functions, move)
    )


def same_values(now: Any, then: Any, move: Move) -> bool:
    if now is then:
        return True
    moved = move.value(then)
    return now is moved or (same(now, moved) if isinstance(now, Fork) else bool(now == moved))


def same_functions(now: Mapping[str, tuple[Any, Source]], then: Mapping[str, tuple[Any, Source]], move: Move) -> bool:
    if list(now) != list(then):
        return False
    for name, (node, source) in now.items():
        old_node, old_source = then[name]
        if node is not old_node:
            return False
        if source is old_source:
            continue
        moved = move.source(old_source)
        if not isinstance(source, FileSource) or not isinstance(moved, FileSource):
            return False
        if (source.document, source.base, source.text) != (moved.document, moved.base, moved.text):
            return False
    return True
