"""Commands inside another document: a script in a YAML scalar or a Markdown fence, the argument list of a container.

The reader of that document turns its content into words, each character with its place in the file; the results carry these places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from spec_lsp.records import dataclass, field, replace
from spec_lsp.syntax.launch import NOTHING, Clue, Directive, Document, EmbeddedFile, Launch, Problem, Syntax
from spec_lsp.syntax.shell import ast, commands
from spec_lsp.syntax.shell.builtins import BUILTINS
from spec_lsp.syntax.shell.continuations import broken_continuations
from spec_lsp.syntax.shell.expand import Expander
from spec_lsp.syntax.shell.interpreter import Interpreter
from spec_lsp.syntax.shell.launches import Seen, tell
from spec_lsp.syntax.shell.memory import Memory
from spec_lsp.syntax.shell.sourced import SourcedFiles
from spec_lsp.syntax.shell.state import FILE
from spec_lsp.syntax.shell.statements import assigned_in, statements
from spec_lsp.syntax.shell.streams import plain_path, written_files
from spec_lsp.syntax.shell.values import PathCondition, Scalar
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.word import Word, hull

MAX_CHARACTERS = 300_000
"""The longest embedded script, in characters, that is read."""


@dataclass(frozen=True, slots=True)
class Around:
    """What the surrounding document says about the process that runs a command.

    `env` are the variables that it is given (exported), `clues` show its release and hardware. `files` are those that the document puts on
    its disk (a mounted ConfigMap); a launch that names one has it in `Variant.files`. `read` is that of `parse`. `dash` says that the shell
    is Debian's `/bin/sh`, whose `echo` carries out escapes without `-e`.
    """

    env: Mapping[str, Word] = field(default_factory=lambda: NOTHING)
    clues: tuple[Clue, ...] = ()
    files: tuple[EmbeddedFile, ...] = ()
    read: Callable[[str], str | None] = lambda path: None
    dash: bool = False


NOTHING_AROUND = Around()


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command starts. `files` are those that it writes and `clues` those that it gives (a pin), for what runs after it."""

    launches: tuple[Launch, ...] = ()
    problems: tuple[Problem, ...] = ()
    depends_on: frozenset[str] = frozenset()
    files: tuple[EmbeddedFile, ...] = ()
    clues: tuple[Clue, ...] = ()


@dataclass(slots=True, eq=False)
class Collected:
    """What a reader has found so far."""

    launches: list[Launch] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    depends_on: set[str] = field(default_factory=set)

    def add(self, found: CommandResult | Document) -> None:
        self.launches += found.launches
        self.problems += found.problems
        self.depends_on |= found.depends_on

    def document(self, name: str, text: str, directives: tuple[Directive, ...]) -> Document:
        return Document(name, text, tuple(self.launches), tuple(self.problems), directives, frozenset(self.depends_on))


def read_script(document: str, script: Word, around: Around = NOTHING_AROUND) -> CommandResult:
    """The launches of a script inside `document`; unknown parts of the word are unknown to the script."""
    source = embedded(script)
    if len(source.whole) > MAX_CHARACTERS:
        return CommandResult()
    run = _Run(document, around, lambda: assigned_in(statements(source.whole)))
    run.interpreter.run_text(source)
    run.interpreter.tell_uncalled()
    return run.found()


def read_arguments(
    document: str, words: Sequence[Word], around: Around = NOTHING_AROUND, syntax: Syntax = "yaml-words"
) -> CommandResult:
    """The launches of a command given as a complete list of arguments; wrappers and shells are looked through.

    `syntax` is how the words are written, unless a shell in the command starts SGLang.
    """
    if not words:
        return CommandResult()
    action = commands.recognise(words, ())
    if action is None:
        return CommandResult()
    run = _Run(document, around, frozenset)
    run.act(action, words)
    found = run.found()
    if not isinstance(action, commands.Started):
        return found
    return replace(found, launches=tuple(replace(one, syntax=syntax) for one in found.launches))


class _Run:
    """An interpreter that starts with what a document gives a process."""

    def __init__(self, document: str, around: Around, assigns: Callable[[], frozenset[str]]) -> None:
        self.document = document
        self.clues = around.clues
        self.sourced = SourcedFiles(around.read)
        self.interpreter = Interpreter(document, self.sourced.load, Memory(), assigns, BUILTINS)
        state = self.interpreter.state
        state.vars.update((name, Scalar(word.fragments)) for name, word in around.env.items())
        state.exported = frozenset(around.env)
        state.vars.update((FILE + plain_path(f.name), Scalar(f.content.fragments)) for f in around.files)
        self.interpreter.wrote_files = bool(around.files)
        self.interpreter.dash = around.dash

    def act(self, action: commands.Action, words: Sequence[Word]) -> None:
        extent = hull(w.place for w in words)
        node = ast.Simple(0, 0, (), (), ())
        source = embedded(Word((), extent))
        if isinstance(action, commands.Started):
            x = Expander(self.interpreter, PathCondition({}))
            env = self.interpreter.environment(node, source, x, action.around)
            seen = Seen(action, env, self.interpreter.files_named(action.args, x))
            self.interpreter.note_at(extent, {}, seen)
        elif isinstance(action, commands.Embedded):
            self.interpreter.run_embedded(node, source, action.script, action.args, action.same, action.around)

    def found(self) -> CommandResult:
        ran = self.interpreter
        clues = (*self.clues, *ran.clues)
        told = [tell(notes, clues, None) for notes in ran.launches().values()]
        return CommandResult(
            tuple(one.launch for one in told),
            (*broken_continuations(filter(None, (one.command for one in told)), self.sourced.texts), *ran.problems()),
            frozenset(ran.sourced),
            tuple(written_files(ran.state.vars, ran)),
            tuple(ran.clues),
        )
