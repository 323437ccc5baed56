"""Dockerfiles: the commands that their stages run, with the variables, images and files of `ENV`, `ARG`, `FROM` and `COPY`.

Follows the Dockerfile reference: line continuation and comments in it, the parser directive `escape`, here-documents, the exec and shell
forms, `ENTRYPOINT` before `CMD`, and stages that start from another one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from posixpath import basename, commonpath, join, normpath, relpath

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field, replace
from spec_lsp.syntax.carriers import Read
from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.launch import Clue, Document, Edit, EmbeddedFile, Launch, Problem
from spec_lsp.syntax.mapped import Mapped
from spec_lsp.syntax.shell.embedding import Around, CommandResult, read_arguments, read_script
from spec_lsp.syntax.source import HOLE, WordSource, embedded
from spec_lsp.syntax.strings import json_strings
from spec_lsp.syntax.word import Fragment, Place, Word, brought_in, unknown

ESCAPE_DIRECTIVE = expression(r"(?:#[^\n]*\n)*?#[ \t]*escape[ \t]*=[ \t]*([`\\])[ \t]*\r?(?:\n|\Z)", re.I)
INSTRUCTION = expression(r"[ \t]*([A-Za-z]+)(?=[ \t]|\Z)[ \t]*")
OPTION = expression(r"--[\w-]+(?:=\S*)?[ \t]+")
HEREDOC = expression(r"(?<!<)<<(-?)[ \t]*([\"']?)([A-Za-z_][\w.]*)\2")
STAGE = expression(r"(\S+)(?:[ \t]+[Aa][Ss][ \t]+(\S+))?")
NAME = expression(r"[A-Za-z_]\w*")
BLANKS = expression(r"[ \t]*")
SHELL = ("/bin/sh", "-c")
BUILD_ARGUMENT = "a build argument"
BASE_IMAGE = "from the base image"
AT_RUN = "given to the container"
COMMANDS = expression(r"(?:/usr(?:/local)?)?/s?bin/[^/]+\Z")
MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Instruction:
    """`name` in capitals; `body` is the rest, with its lines joined; `documents` are the bodies of its here-documents, each with whether
    Docker expands variables in it."""

    name: str
    body: Word
    documents: tuple[tuple[Word, bool], ...] = ()


@dataclass(slots=True)
class Stage:
    """The state of a stage so far."""

    env: dict[str, Word] = field(default_factory=dict)
    args: dict[str, Word] = field(default_factory=dict)
    files: dict[str, EmbeddedFile] = field(default_factory=dict)
    clues: tuple[Clue, ...] = ()
    entrypoint: Instruction | None = None
    command: Instruction | None = None
    own: bool = False
    """Whether this stage itself has a command to run."""
    own_command: bool = False
    folder: str = "/"
    """`WORKDIR`."""
    dash: bool = True
    """Whether `RUN` runs Debian's `/bin/sh`, which is not bash."""


def read_dockerfile(name: str, text: str, read: Read) -> Document:
    """All launches of a Dockerfile: those that build its stages, and those that the stages run."""
    reader = _DockerfileReader(name, read)
    for instruction in instructions(name, text):
        reader.take(instruction)
    reader.finish()
    return Document(
        name, text, tuple(reader.launches), tuple(reader.problems), directives_of(name, text), frozenset(reader.asked)
    )


def clues_of_image(content: Word, target: str = "") -> tuple[Clue, ...]:
    """What the text of a Dockerfile shows about the image that it builds: about its last stage, or that named `target`."""
    source = embedded(content)
    reader = _DockerfileReader(content.place.document, lambda path: None)
    for instruction in instructions(reader.name, source.whole):
        reader.take(instruction)
    stage = reader.stages.get(target.lower(), reader.stage)
    moved = Mapped(lambda place: source.place(place.start, place.end))
    return tuple(moved.clue(c) for c in stage.clues if HOLE not in c.text) if stage is not None else ()


# --- instructions ------------------------------------------------------------------------------------------------------


def instructions(name: str, text: str) -> Iterator[Instruction]:
    """The instructions in order, with here-documents and without comments."""
    chosen = ESCAPE_DIRECTIVE.match(text)
    escape = chosen.group(1) if chosen else "\\"
    goes_on = re.compile(re.escape(escape) + r"[ \t]*\r?(?:\n|\Z)")
    at = len(text) - len(text.removeprefix("\ufeff"))
    while at < len(text):
        pieces, at, start = _logical_line(name, text, at, goes_on)
        body = Word(
            tuple(pieces), Place(name, start, max(start, pieces[-1].place.end)) if pieces else Place(name, start, start)
        )
        whole = body.text or ""
        head = INSTRUCTION.match(whole)
        if head is None:
            continue
        keyword = head.group(1).upper()
        rest = Word(body.slice(head.end(), len(whole)), body.place)
        documents: list[tuple[Word, bool]] = []
        if keyword in ("RUN", "COPY", "ADD"):
            for m in HEREDOC.finditer(whole, head.end()):
                content, at = _here_document(name, text, at, m.group(3), m.group(1) == "-")
                documents.append((content, not m.group(2)))
        yield Instruction(keyword, rest, tuple(documents))


def _logical_line(name: str, text: str, at: int, goes_on: re.Pattern[str]) -> tuple[list[Fragment], int, int]:
    """The pieces of the instruction at an offset without the continuations between them, where the next one starts, and where this one
    does."""
    pieces: list[Fragment] = []
    start = at
    while at < len(text):
        newline = text.find("\n", at)
        after = len(text) if newline < 0 else newline + 1
        line = text[at:after].rstrip("\r\n")
        end = at + len(line)
        stripped = line.lstrip(" \t")
        if stripped.startswith("#") or (not stripped and pieces):
            at = after
            continue
        joint = goes_on.search(text, at, after) if line.strip() else None
        content_end = joint.start() if joint else end
        if not pieces:
            start = at + len(line) - len(stripped)
        if content_end > at:
            pieces.append(Fragment(text[at:content_end], Place(name, at, content_end)))
        at = after
        if joint is None:
            break
    return pieces, at, start


def _here_document(name: str, text: str, at: int, delimiter: str, strip: bool) -> tuple[Word, int]:
    """The body that starts at an offset, and where the line after its delimiter starts."""
    pieces: list[Fragment] = []
    start = at
    while at < len(text):
        newline = text.find("\n", at)
        after = len(text) if newline < 0 else newline + 1
        line = text[at:after].rstrip("\r\n")
        if (line.lstrip("\t") if strip else line) == delimiter:
            return Word(tuple(pieces), Place(name, start, at)), after
        tabs = len(line) - len(line.lstrip("\t")) if strip else 0
        pieces.append(Fragment(text[at + tabs : after], Place(name, at + tabs, after)))
        at = after
    return Word(tuple(pieces), Place(name, start, at)), at


# --- stages ------------------------------------------------------------------------------------------------------------


class _DockerfileReader:
    def __init__(self, name: str, read: Read) -> None:
        self.name = name
        self.read = read
        self.stages: dict[str, Stage] = {}
        self.global_args: dict[str, Word] = {}
        self.stage: Stage | None = None
        self.launches: list[Launch] = []
        self.problems: list[Problem] = []
        self.asked: set[str] = set()

    def take(self, instruction: Instruction) -> None:
        handler = HANDLERS.get(instruction.name)
        if handler is not None:
            handler(self, instruction)

    def finish(self) -> None:
        """The launches of the stage that ends here; a stage that only continues another one adds none."""
        if self.stage is not None and self.stage.own:
            self.note(self.run(self.stage))

    def note(self, found: CommandResult) -> None:
        self.launches.extend(found.launches)
        self.problems.extend(found.problems)
        self.asked |= found.depends_on

    def around(self, stage: Stage, building: bool = False) -> Around:
        env = {**stage.args, **stage.env} if building else stage.env
        files = tuple(
            EmbeddedFile(name, f.content) for f in stage.files.values() for name in _names(f.name, stage.folder)
        )
        return Around(env, stage.clues, files, self.read, building and stage.dash)

    # The instructions.

    def start_stage(self, instruction: Instruction) -> None:
        self.finish()
        source = _without_options(instruction.body)
        m = STAGE.match(source.text)
        stage = Stage()
        self.stage = stage
        if m is None:
            return
        image = expanded(source, m.start(1), m.end(1), self.global_args, BUILD_ARGUMENT)
        base = self.stages.get((image.text or "").lower())
        if base is not None:
            stage.env, stage.files, stage.clues = dict(base.env), dict(base.files), base.clues
            stage.entrypoint, stage.command = base.entrypoint, base.command
            stage.folder, stage.dash = base.folder, base.dash
        elif image.text:
            stage.clues = (Clue("image", image.text, image.place),)
        if m.group(2):
            self.stages[m.group(2).lower()] = stage

    def set_argument(self, instruction: Instruction) -> None:
        source = embedded(instruction.body)
        scope = self.global_args if self.stage is None else self.stage.args
        known = {
            **self.global_args,
            **(self.stage.args if self.stage else {}),
            **(self.stage.env if self.stage else {}),
        }
        for start, end in words_in(source.text):
            m = NAME.match(source.text, start, end)
            if m is None:
                continue
            if m.end() < end and source.text[m.end()] == "=":
                scope[m.group()] = expanded(source, m.end() + 1, end, known, BUILD_ARGUMENT)
            elif self.stage is not None and m.group() in self.global_args:
                scope[m.group()] = self.global_args[m.group()]
            else:
                scope[m.group()] = unknown(source.place(start, end), BUILD_ARGUMENT)

    def set_environment(self, instruction: Instruction) -> None:
        if self.stage is None:
            return
        source = embedded(instruction.body)
        text = source.text
        known = {**self.stage.args, **self.stage.env}
        first = NAME.match(text)
        if first is None:
            return
        if not text.startswith("=", first.end()):
            blanks = BLANKS.match(text, first.end())
            start = blanks.end() if blanks else first.end()
            self.stage.env[first.group()] = expanded(source, start, len(text.rstrip()), known, BASE_IMAGE)
            return
        for start, end in words_in(text):
            m = NAME.match(text, start, end)
            if m is not None and text.startswith("=", m.end()):
                self.stage.env[m.group()] = expanded(source, m.end() + 1, end, known, BASE_IMAGE)

    def build(self, instruction: Instruction) -> None:
        """`RUN`: the launches in it, the files that it writes and the releases that it installs."""
        if self.stage is None:
            return
        source = _without_options(instruction.body)
        words = json_strings(source)
        around = self.around(self.stage, building=True)
        if words is not None:
            found = read_arguments(self.name, words, around)
        elif instruction.documents and HEREDOC.fullmatch(source.text.strip()):
            found = read_script(self.name, instruction.documents[0][0], around)
        else:
            found = read_script(self.name, _with_documents(source, instruction), around)
        self.note(found)
        if found.clues:  # what is installed later replaces the image's release
            kept = (c for c in self.stage.clues if c.kind != "image")
            self.stage.clues = tuple(dict.fromkeys((*kept, *found.clues)))
        for file in found.files:
            self.write(self.stage, file.name, file.content)

    def copy(self, instruction: Instruction) -> None:
        """`COPY <<EOF /entry.sh`."""
        if self.stage is None or not instruction.documents:
            return
        source = _without_options(instruction.body)
        targets = source.text.split()
        if len(targets) < 2 or len(instruction.documents) != 1:
            return
        content, expands = instruction.documents[0]
        if expands:
            known = {**self.stage.args, **self.stage.env}
            content = expanded(embedded(content), 0, len(content.text or ""), known, BASE_IMAGE, quotes=False)
        self.write(self.stage, targets[-1], content)

    def write(self, stage: Stage, name: str, content: Word) -> None:
        name = normpath(join(stage.folder, name))
        stage.files[name] = EmbeddedFile(name, content)

    def set_folder(self, instruction: Instruction) -> None:
        if self.stage is not None:
            known = {**self.stage.args, **self.stage.env}
            source = embedded(instruction.body)
            folder = expanded(source, 0, len(source.text.rstrip()), known, BASE_IMAGE).text
            self.stage.folder = normpath(join(self.stage.folder, folder or "an unknown one"))

    def set_shell(self, instruction: Instruction) -> None:
        if self.stage is not None:
            self.stage.dash = "bash" not in instruction.body.known_start

    def set_entrypoint(self, instruction: Instruction) -> None:
        if self.stage is not None:
            self.stage.entrypoint, self.stage.own = instruction, True
            if not self.stage.own_command:
                self.stage.command = None

    def set_command(self, instruction: Instruction) -> None:
        if self.stage is not None:
            self.stage.command, self.stage.own, self.stage.own_command = instruction, True, True

    def on_build(self, instruction: Instruction) -> None:
        source = embedded(instruction.body)
        head = INSTRUCTION.match(source.text)
        if head is not None:
            body = Word(source.fragments(head.end(), len(source.text)), instruction.body.place)
            self.take(replace(instruction, name=head.group(1).upper(), body=body))

    # The command of a stage.

    def run(self, stage: Stage) -> CommandResult:
        """`ENTRYPOINT` followed by `CMD`, as the container runs them."""
        around = self.around(stage)
        entry, command = stage.entrypoint, stage.command
        if entry is None:
            return self.start(command, around) if command is not None else CommandResult()
        words = json_strings(embedded(entry.body))
        if words is None:
            self.problems += list_for_a_shell(entry)
            return read_script(self.name, entry.body, around)
        more = json_strings(embedded(command.body)) if command is not None else ()
        if more is None and command is not None:
            self.problems += list_for_a_shell(command)
            at = Place(self.name, command.body.place.start, command.body.place.start)
            more = (*(literal_at(text, at) for text in SHELL), command.body)
        if not more:
            more = (unknown(Place(self.name, entry.body.place.end, entry.body.place.end), AT_RUN, splat=True),)
        return self.arguments((*words, *more), around)

    def start(self, command: Instruction, around: Around) -> CommandResult:
        words = json_strings(embedded(command.body))
        if words is None:
            self.problems += list_for_a_shell(command)
            return read_script(self.name, command.body, around)
        return self.arguments(words, around)

    def arguments(self, words: Sequence[Word], around: Around) -> CommandResult:
        """An argument list; if it starts a script that the Dockerfile writes, that script is run with these arguments."""
        written = {f.name: f for f in around.files}
        for i, word in enumerate(words[:2]):
            file = written.get(word.text or "")
            if file is not None:
                shell = literal_at("bash", word.place), literal_at("-c", word.place)
                return read_arguments(self.name, (*shell, file.content, word, *words[i + 1 :]), around)
        return read_arguments(self.name, words, around, "list-words")


HANDLERS: Mapping[str, Callable[[_DockerfileReader, Instruction], None]] = {
    "FROM": _DockerfileReader.start_stage,
    "ARG": _DockerfileReader.set_argument,
    "ENV": _DockerfileReader.set_environment,
    "RUN": _DockerfileReader.build,
    "COPY": _DockerfileReader.copy,
    "ADD": _DockerfileReader.copy,
    "ENTRYPOINT": _DockerfileReader.set_entrypoint,
    "CMD": _DockerfileReader.set_command,
    "ONBUILD": _DockerfileReader.on_build,
    "WORKDIR": _DockerfileReader.set_folder,
    "SHELL": _DockerfileReader.set_shell,
}


def _names(path: str, folder: str) -> Iterator[str]:
    """By what a file is started: its path, its place in the working directory, and its name if it is where commands are."""
    yield path
    if commonpath((path, folder)) == folder and path != folder:
        within = relpath(path, folder)
        yield from (within, "./" + within)
    if COMMANDS.match(path):
        yield basename(path)


def literal_at(text: str, place: Place) -> Word:
    """A word that Docker itself adds."""
    return Word((Fragment(text, place, False, fixed=True),), place)


def _without_options(body: Word) -> WordSource:
    """The body after `--platform=…`, `--mount=…`."""
    source = embedded(body)
    at = 0
    while m := OPTION.match(source.text, at):
        at = m.end()
    return embedded(Word(source.fragments(at, len(source.text)), body.place)) if at else source


def _with_documents(source: WordSource, instruction: Instruction) -> Word:
    """The command line followed by its here-documents, as the shell gets them."""
    fragments = list(source.fragments(0, len(source.text)))
    end = Place(instruction.body.place.document, instruction.body.place.end, instruction.body.place.end)
    for m, (content, _) in zip(HEREDOC.finditer(source.text), instruction.documents, strict=False):
        fragments.append(Fragment("\n", end, False, fixed=True))
        fragments.extend(content.fragments)
        fragments.append(Fragment(m.group(3), end, False, fixed=True))
    return Word(tuple(fragments), instruction.body.place)


# --- lists that are none -----------------------------------------------------------------------------------------------

LIST_FOR_A_SHELL = "list-for-a-shell"
ITEM = expression(
    r"[ \t\r\n]*(?:(?P<string>\"(?:[^\"\\\n]|\\.)*\")|(?P<single>'[^'\"\\\n]*')|(?P<bare>[^\s,\[\]\"']+)|(?P<comma>,)|(?P<close>\]))"
)


def list_for_a_shell(instruction: Instruction) -> tuple[Problem, ...]:
    """What is wrong with a list of arguments that starts SGLang but is not JSON; None if it is meant for a shell."""
    source = embedded(instruction.body)
    text = source.text
    start = text.find("[")
    if start < 0 or text[:start].strip() or "sglang" not in text:
        return ()
    found = _faults(source, start + 1)
    if not found:
        return ()
    fault, place, _ = found[0]
    program = re.sub(r"[\"']", "", text[start:].split()[0])
    message = f"This list is no JSON, for {fault}: Docker hands it to a shell as it stands, and that looks for a program named `{program}`."
    title = "Write the list as JSON"
    return (Problem(LIST_FOR_A_SHELL, place, message, tuple(edit for _, _, edit in found), title),)


def _faults(source: WordSource, at: int) -> list[tuple[str, Place, Edit]]:
    """What keeps the items from `at` on from being a JSON list, each with its correction; empty if it is more than a typing mistake."""
    text = source.text
    found: list[tuple[str, Place, Edit]] = []
    last = at
    awaited = True
    while (m := ITEM.match(text, at)) is not None:
        start, end = m.span(m.lastgroup or 0)
        here = source.place(start, end)
        if m.lastgroup == "close":
            if awaited and text[last - 1] == ",":
                comma = source.place(last - 1, last)
                found.append(("a comma stands behind its last item", comma, Edit(comma, "")))
            return found if not text[end:].strip() else []
        if m.lastgroup == "comma":
            if awaited:
                return []
        else:
            if not awaited:
                gap = source.place(last, last)
                found.append((f"a comma is missing before `{text[start:end]}`", here, Edit(gap, ",")))
            if m.lastgroup != "string":
                bare = text[start:end].strip("'")
                how = "stands in single quotes" if m.lastgroup == "single" else "is not in double quotes"
                found.append((f"`{text[start:end]}` {how}", here, Edit(here, f'"{bare}"')))
        awaited = m.lastgroup == "comma"
        at = last = end
    return []


# --- Docker's own words and variables ----------------------------------------------------------------------------------


def words_in(text: str) -> Iterator[tuple[int, int]]:
    """The words of `ENV` and `ARG`; quotes and backslashes keep blanks in a word."""
    for m in re.finditer(r"(?:\\.|\"(?:\\.|[^\"\\])*\"?|'[^']*'?|[^\s\\\"']|\\\Z)+", text, re.S):
        yield m.span()


TOKEN = expression(
    r"\$\{(?P<braced>[A-Za-z_]\w*)(?:(?P<op>:?[-+?])(?P<word>(?:[^{}\\]|\\.)*))?\}|\$(?P<bare>[A-Za-z_]\w*)|\\(?P<escaped>.)|(?P<quote>[\"'])",
    re.S,
)


def expanded(
    source: WordSource,
    start: int,
    end: int,
    known: Mapping[str, Word],
    reason: str,
    quotes: bool = True,
    depth: int = 0,
) -> Word:
    """The characters [start, end) as Docker expands them: variables, and outside of here-documents also quotes.

    A variable that the file does not set may be set elsewhere; `reason` says where.
    """
    text = source.text
    fragments: list[Fragment] = []
    quote = ""
    at = start

    def keep(stop: int) -> None:
        if at < stop:
            fragments.extend(source.fragments(at, stop))

    for m in TOKEN.finditer(text, start, end):
        if m.start() < at:
            continue
        mark = m.group("quote")
        if mark:
            if not quotes or (quote and quote != mark):
                continue
            keep(m.start())
            quote = "" if quote else mark
            at = m.end()
        elif quote == "'":
            continue
        elif m.group("escaped") is not None:
            if not quotes and m.group("escaped") != "$":
                continue
            keep(m.start())
            at = m.end() - 1
        else:
            keep(m.start())
            fragments.extend(_variable(source, m, known, reason, depth))
            at = m.end()
    keep(end)
    return Word(tuple(fragments), source.place(start, end))


def _variable(
    source: WordSource, m: re.Match[str], known: Mapping[str, Word], reason: str, depth: int
) -> tuple[Fragment, ...]:
    name = m.group("braced") or m.group("bare")
    here = source.place(*m.span())
    value = known.get(name)
    op = m.group("op") or ""
    if op.endswith("+"):
        value = None
    elif op.endswith("-") and (value is None or value.text is None) and depth < MAX_DEPTH:
        return expanded(source, m.start("word"), m.end("word"), known, reason, False, depth + 1).fragments
    if value is None:
        return (Fragment(None, here, False, reason),)
    return brought_in(value, here)
