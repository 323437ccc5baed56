"""systemd units: the commands of `Exec…=` with the unit's environment, split and expanded as systemd does (systemd.service(5),
systemd.exec(5), systemd.syntax(7)); Podman's container units too (podman-systemd.unit(5))."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass
from spec_lsp.syntax.carriers import Read
from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.env_file import file_variables
from spec_lsp.syntax.launch import Clue, Document, Launch, Problem
from spec_lsp.syntax.shell.embedding import Around, CommandResult, read_arguments
from spec_lsp.syntax.source import HOLE, WordSource, embedded
from spec_lsp.syntax.word import Fragment, Place, Word

COMMANDS = frozenset(("ExecStart", "ExecStartPre", "ExecStartPost", "ExecCondition", "ExecReload"))
PREFIX = expression(r"[@\-:+!|]*")
SECTION = expression(r"[ \t]*\[([^\]\n]*)\]")
ASSIGNMENT = expression(r"[ \t]*([A-Za-z]\w*)[ \t]*=[ \t]*")
NAME = expression(r"[A-Za-z_]\w*\Z")
VARIABLE = expression(r"\$\$|\$\{([A-Za-z_]\w*)\}|%.")
WHOLE_VARIABLE = expression(r"\$([A-Za-z_]\w*)\Z")
ESCAPE = expression(r"\\(?:x[0-9a-fA-F]{2}|[0-7]{3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.S)
SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " ", "\\": "\\", '"': '"', "'": "'",
}  # fmt: skip
FROM_MANAGER = "from the environment of the service"
SPECIFIER = "a specifier of the unit"


@dataclass(frozen=True, slots=True)
class Entry:
    """`key=value` of a section; continuation lines are joined by a blank."""

    section: str
    key: str
    value: Word


def read_systemd(name: str, text: str, read: Read) -> Document:
    """All launches of a unit or a drop-in."""
    place = Place(name, 0, len(text))
    found = read_unit(name, Word((Fragment(text, place),), place), read)
    return Document(name, text, found.launches, found.problems, directives_of(name, text), found.depends_on)


def read_unit(name: str, unit: Word, read: Read) -> CommandResult:
    """The launches of a unit that a word holds; its unknown parts (output of a template) are unknown in the commands."""
    env: dict[str, dict[str, Word]] = {"Service": {}, "Container": {}}
    commands: list[Word] = []
    contained: list[Word] = []
    entrypoint: tuple[Word, ...] = ()
    clues: tuple[Clue, ...] = ()
    asked: set[str] = set()
    for section, key, value in ((e.section or "Service", e.key, e.value) for e in entries(name, embedded(unit))):
        if section not in env:
            continue
        if key == "Environment":
            env[section].update(_environment(value) if value.fragments else {})
        elif key == "EnvironmentFile" and value.text:
            path = value.text.lstrip("-").strip()
            asked.add(path)
            env[section].update(file_variables(path, read(path) or "", comments=False, escaped=FROM_MANAGER))
        elif section == "Service":
            if key in COMMANDS:
                commands = [*commands, value] if embedded(value).whole.strip() else []
        elif key == "Exec":
            contained = [value]
        elif key == "Image" and value.text:
            clues = (Clue("image", value.text, value.place),)
        elif key == "Entrypoint" and value.text and not value.text.startswith("["):
            entrypoint = (value,)
    launches: list[Launch] = []
    problems: list[Problem] = []
    for command in commands:
        for words in argument_lists(command, env["Service"]):
            _add(read_arguments(name, words, Around(env["Service"], read=read), "shell"), launches, problems)
    for command in contained:
        for words in argument_lists(command, env["Service"]):
            around = Around(env["Container"], clues, read=read)
            _add(read_arguments(name, [*entrypoint, *words], around, "shell"), launches, problems)
    return CommandResult(tuple(launches), tuple(problems), frozenset(asked))


def _add(found: CommandResult, launches: list[Launch], problems: list[Problem]) -> None:
    launches += found.launches
    problems += found.problems


# --- lines -------------------------------------------------------------------------------------------------------------


def entries(name: str, source: WordSource) -> Iterator[Entry]:
    """The assignments of a unit in order; comments between the lines of one are left out."""
    section = ""
    at = 0
    while at < len(source.whole):
        pieces, at = _logical_line(source, at)
        if not pieces:
            continue
        word = Word(tuple(pieces), Place(name, pieces[0].place.start, pieces[-1].place.end))
        line = embedded(word).whole
        head = SECTION.match(line)
        if head:
            section = head.group(1)
            continue
        assignment = ASSIGNMENT.match(line)
        if assignment:
            value = word.slice(assignment.end(), len(line.rstrip()))
            yield Entry(section, assignment.group(1), Word(value, word.place))


def _logical_line(source: WordSource, at: int) -> tuple[list[Fragment], int]:
    """The pieces of the line at an offset with its continuations, and where the next line starts."""
    text = source.whole
    pieces: list[Fragment] = []
    while at < len(text):
        newline = text.find("\n", at)
        after = len(text) if newline < 0 else newline + 1
        line = text[at:after].rstrip("\r\n")
        if line.lstrip(" \t").startswith(("#", ";")):
            at = after
            if pieces:
                continue
            return [], at
        end = at + len(line)
        goes_on = line.endswith("\\")
        stop = end - 1 if goes_on else end
        pieces += source.fragments(at, stop) if stop > at else ()
        if goes_on:
            pieces.append(Fragment(" ", source.place(stop, end), False, fixed=True))
        at = after
        if not goes_on:
            break
    return pieces, at


# --- words -------------------------------------------------------------------------------------------------------------


def argument_lists(command: Word, env: Mapping[str, Word]) -> Iterator[list[Word]]:
    """The commands of an `Exec…=` line; a lone `;` ends one."""
    source = embedded(command)
    prefix = PREFIX.match(source.whole)
    at = prefix.end() if prefix else 0
    expands = ":" not in source.whole[:at]
    words: list[Word] = []
    for start, end in spans(source.whole, at):
        if source.whole[start:end] == ";":
            if words:
                yield words
            words = []
            continue
        words.extend(expanded(source, start, end, env if expands else None))
    if words:
        yield words


def spans(text: str, at: int) -> Iterator[tuple[int, int]]:
    """The words of a value, separated by blanks outside of quotes."""
    for m in re.compile(r"(?:\"(?:\\.|[^\"\\])*\"?|'(?:\\.|[^'\\])*'?|\\.|[^\s\"'\\]|\\\Z)+", re.S).finditer(text, at):
        yield m.span()


def expanded(source: WordSource, start: int, end: int, env: Mapping[str, Word] | None) -> list[Word]:
    """What one word becomes: `$VAR` alone becomes the words of its value, anything else one word. `env` is None if nothing is expanded."""
    whole = WHOLE_VARIABLE.match(source.whole[start:end])
    place = source.place(start, end)
    if source.whole[start:end] == HOLE and all(f.text is None for f in source.fragments(start, end)):
        return [Word(source.fragments(start, end), place, True, True)]
    if whole and env is not None:
        value = env.get(whole.group(1))
        if value is None or value.text is None:
            return [Word((Fragment(None, place, False, FROM_MANAGER),), place, True, True)]
        inner = embedded(value)
        return [
            Word(tuple(f._replace(via=(place, *f.via)) for f in unquoted(inner, a, b, None).fragments), place)
            for a, b in spans(inner.whole, 0)
        ]
    return [unquoted(source, start, end, env)]


def unquoted(source: WordSource, start: int, end: int, env: Mapping[str, Word] | None) -> Word:
    """A word with its quotes removed and its escapes and variables replaced."""
    text = source.whole
    fragments: list[Fragment] = []
    quote = ""
    at = start
    while at < end:
        char = text[at]
        if char in "\"'" and quote in ("", char):
            quote = "" if quote else char
            at += 1
        elif char == "\\" and at + 1 < end:
            m = ESCAPE.match(text, at, end)
            stop = m.end() if m else at + 1
            fragments.append(Fragment(_unescaped(text[at:stop]), source.place(at, stop), False))
            at = stop
        elif char in "$%" and (m := VARIABLE.match(text, at, end)) and (char == "%" or env is not None):
            fragments.extend(_variable(source, m, env or {}))
            at = m.end()
        else:
            stop = at + 1
            while stop < end and text[stop] not in "\"'\\$%":
                stop += 1
            fragments.extend(source.fragments(at, stop))
            at = stop
    return Word(tuple(fragments), source.place(start, end))


def _variable(source: WordSource, m: re.Match[str], env: Mapping[str, Word]) -> tuple[Fragment, ...]:
    place = source.place(*m.span())
    if m.group() in ("$$", "%%"):
        return (Fragment(m.group()[0], place, False),)
    if m.group()[0] == "%":
        return (Fragment(None, place, False, SPECIFIER),)
    value = env.get(m.group(1))
    if value is None:
        return (Fragment(None, place, False, FROM_MANAGER),)
    return tuple(f._replace(via=(place, *f.via)) for f in value.fragments)


def _unescaped(escape: str) -> str:
    body = escape[1:]
    if body in SIMPLE:
        return SIMPLE[body]
    try:
        return chr(int(body[1:], 16) if body[0] in "xuU" else int(body, 8))
    except (ValueError, OverflowError):
        return escape


# --- environment -------------------------------------------------------------------------------------------------------


def _environment(value: Word) -> dict[str, Word]:
    """`Environment="A=b c" D=e`."""
    source = embedded(value)
    found: dict[str, Word] = {}
    for start, end in spans(source.whole, 0):
        word = unquoted(source, start, end, None)
        name, equals, _ = word.known_start.partition("=")
        if equals and NAME.match(name):
            found[name] = word.split(len(name) + 1)[1]
    return found
