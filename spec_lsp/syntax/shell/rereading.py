"""Runs a script again after an edit: from the changed statement to a point from which the results must be the same as before.

A run leaves checkpoints, at the edit and at regular distances. The next run starts at the last one before its first changed statement. If
it meets a checkpoint after the edit, and everything that a statement can read is as it was there, the rest of the last run is taken over:
places are anchored (see `standing`), so the objects are still valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from spec_lsp.records import dataclass, field
from spec_lsp.syntax.launch import Directive
from spec_lsp.syntax.shell.interpreter import Interpreter
from spec_lsp.syntax.shell.machine import MAX_EVALUATIONS, MAX_STEPS, Answer
from spec_lsp.syntax.shell.memory import Memory, same
from spec_lsp.syntax.shell.sourced import SourcedFiles
from spec_lsp.syntax.shell.state import FILE, State
from spec_lsp.syntax.shell.statements import Restated, assigned_in
from spec_lsp.syntax.shell.values import Fork, is_later
from spec_lsp.syntax.source import FileSource, Source

STRIDE = 24
"""The number of statements between regular checkpoints."""
MAX_CHECKPOINTS = 60


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The interpreter before it runs statement `index`; the counts are of what it had recorded until then."""

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
    """What a run over a document leaves for the next one."""

    text: str
    stated: Restated
    run: Interpreter
    files: SourcedFiles
    broken: bool
    """Whether bash would refuse some statement: then text after an `exit` is read nevertheless."""
    checkpoints: list[Checkpoint] = field(default_factory=list)
    stopped: bool = False
    """Whether some statement ended the script."""
    directives: tuple[Directive, ...] = ()
    written: Mapping[str, Any] = field(default_factory=dict)
    """The files that the script has written when it ends."""
    writes_later: bool = False
    """Whether some of their contents are computed on demand."""


def run_again(reading: Reading, last: Reading | None, document: str) -> None:
    """Run the statements of `reading`, taking over from `last` what is possible."""
    run, restated = reading.run, reading.stated
    parts = restated.parts
    index = 0
    if last is not None and usable(last, reading):
        run.memory = last.run.memory_left
        run.assignments.update(last.run.assignments)
        index = resume(reading, last, restated.first)
    else:
        last = None
    moved = restated.behind - restated.behind_before
    known = {c.index + moved: c for c in last.checkpoints} if last is not None else {}
    marks = {restated.first, restated.behind, len(parts)}
    while True:
        old = known.get(index) if index >= restated.behind else None
        if last is not None and old is not None and rejoin(reading, last, old, index):
            return
        if (index in marks or index % STRIDE == 0) and not (
            reading.checkpoints and reading.checkpoints[-1].index == index
        ):
            reading.checkpoints.append(checkpoint(run, index))
        if index == len(parts):
            break
        part = parts[index]
        run.run(part.statement.script, FileSource(document, part.start, part.text))
        index += 1
        if not run.state.alive:
            reading.stopped = True
            if not reading.broken:
                break
            run.state.alive = True
    reading.written = {name: value for name, value in run.state.vars.items() if name.startswith(FILE)}
    reading.writes_later = any(map(is_later, reading.written.values()))
    run.tell_uncalled()


def usable(last: Reading, reading: Reading) -> bool:
    """Whether the last run can be used: the sourced files are the same, as is what is set anywhere as far as the last run asked, and how an
    `exit` is treated."""
    if last.run.zsh != reading.run.zsh:
        return False
    if last.stopped and last.broken != reading.broken:
        return False
    if any(reading.files.content(path) != content for path, content in last.files.asked.items()):
        return False
    now, then = reading.stated, last.stated
    touched = assigned_in([*now.parts[now.first : now.behind], *then.parts[now.first : now.behind_before]])
    asked = last.run.assignments.items()
    return all((name in reading.run.all_assigned()) is found for name, found in asked if name in touched)


def resume(reading: Reading, last: Reading, first: int) -> int:
    """Go to the last checkpoint at or before a statement; returns the index of the statement to run next."""
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
    kept = last.run.memory_left
    run.memory_left = Memory(dict(islice(kept.points.items(), start.points)), kept.results)
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


def rejoin(reading: Reading, last: Reading, old: Checkpoint, index: int) -> bool:
    """Take over the results of the last run after a checkpoint, if the current state is the same as at that checkpoint."""
    run, ran = reading.run, last.run
    steps = run.steps + ran.steps - old.steps
    evaluations = run.evaluations + ran.evaluations - old.evaluations
    if max(steps / MAX_STEPS, evaluations / MAX_EVALUATIONS) > 1 or run.embedded_characters != old.embedded_characters:
        return False
    leading = [*run.starting_functions(run.state), *ran.leading]
    if not {*leading} <= {*run.entered, *ran.entered[old.entered :]}:
        return False  # functions that nothing calls are run from the end of the run
    if last.writes_later or not agrees(run, old):
        return False  # what is computed on demand asks the run that it belongs to
    reading.checkpoints.append(checkpoint(run, index))
    run.memory_left.points.update(islice(ran.memory_left.points.items(), old.points, None))
    run.notes += ran.notes[old.notes :]
    run.clues += ran.clues[old.clues :]
    run.sourced += ran.sourced[old.sourced :]
    run.entered += ran.entered[old.entered :]
    run.leading = leading
    run.steps, run.evaluations = steps, evaluations
    run.embedded_characters = ran.embedded_characters
    reading.written = last.written
    reading.stopped = reading.stopped or last.stopped
    return True


def agrees(run: Interpreter, old: Checkpoint) -> bool:
    """Whether the run is in the same state as the last one was."""
    now, then = run.state, old.state
    return (
        run.wrote_files == old.wrote_files
        and now.exported == then.exported
        and same_variables(now.vars, then.vars)
        and same(now.constraints, then.constraints)
        and run.turns == old.turns
        and [(k[0], a.point) for k, a in run.answers.items()] == [(k[0], a.point) for k, a in old.answers.items()]
        and same_functions(now.functions, then.functions)
    )


def same_variables(now: Mapping[str, Any], then: Mapping[str, Any]) -> bool:
    if now == then:  # nearly all are the same objects, which this sees fastest
        return True
    return now.keys() == then.keys() and all(same_values(value, then[name]) for name, value in now.items())


def same_values(now: Any, then: Any) -> bool:
    return now is then or (same(now, then) if isinstance(now, Fork) else bool(now == then))


def same_functions(now: Mapping[str, tuple[Any, Source]], then: Mapping[str, tuple[Any, Source]]) -> bool:
    if list(now) != list(then):
        return False
    for name, (node, source) in now.items():
        old_node, old_source = then[name]
        if node is not old_node:
            return False
        if source is old_source:
            continue
        if not isinstance(source, FileSource) or not isinstance(old_source, FileSource):
            return False
        if (source.document, source.base, source.text) != (old_source.document, old_source.base, old_source.text):
            return False
    return True
