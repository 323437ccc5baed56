"""supervisord's configuration: the commands of `[program:x]` sections, as supervisord reads them (its options.py and datatypes.py, 4.3).

It is an INI file for Python's `configparser`. A command is split into words as by `shlex.split` (a backslash before a line end makes that a
character of the next word), and no shell expands anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass
from spec_lsp.syntax.carriers import Read
from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.launch import Document
from spec_lsp.syntax.shell.embedding import Around, Collected, read_arguments
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.words import split

SECTION = expression(r"\[([^\]\n]+)\]")
OPTION = expression(r"([^\s=:\[;#][^=:\n]*?)[ \t]*[=:][ \t]*")
COMMENT = expression(r"(?:(?<=[ \t])|^)[;#].*")
EXPANSION = expression(r"%%|%\((?P<name>\w+)\)[-#0 +]*\d*[a-z]")
PAIR = expression(r"[ \t\n,]*(?P<name>[A-Za-z_]\w*)[ \t\n]*=[ \t\n]*(?P<value>\"[^\"]*\"|'[^']*'|[\w/.+\-():%]*)")
PROGRAMS = ("program:", "eventlistener:", "fcgi-program:")
FROM_SUPERVISOR = "supervisord fills it in"


@dataclass(frozen=True, slots=True)
class Option:
    """`name = value` of a section; continuation lines are joined by line ends."""

    section: str
    name: str
    value: Word


def read_supervisor(name: str, text: str, read: Read) -> Document:
    """All launches of a configuration's programs."""
    sections: dict[str, dict[str, Word]] = {}
    for option in options(name, text):
        sections.setdefault(option.section, {})[option.name] = option.value
    shared = _environment(sections.get("supervisord", {}).get("environment"), {})
    all_ = Collected()
    for section, own in sections.items():
        command = own.get("command")
        if command is None or not section.startswith(PROGRAMS):
            continue
        known = {"program_name": section.partition(":")[2], "group_name": section.partition(":")[2]}
        env = {**shared, **_environment(own.get("environment"), known)}
        words = split(_expanded(command, known), escaped='"\\', joins=False)
        found = read_arguments(name, words, Around(env, read=read), "shell")
        all_.add(found)
    return all_.document(name, text, directives_of(name, text))


def options(name: str, text: str) -> Iterator[Option]:
    """The options of all sections in order, without comments."""
    section = option = ""
    indent = 0
    value: list[Fragment] = []
    at = 0

    def ended() -> Iterator[Option]:
        if option and value:
            place = Place(name, value[0].place.start, value[-1].place.end)
            yield Option(section, option, Word(tuple(value), place))

    for line in text.splitlines(keepends=True):
        start, at = at, at + len(line)
        content = COMMENT.sub("", line.rstrip("\r\n")).rstrip()
        blanks = len(content) - len(content.lstrip())
        if not content.strip():
            continue
        if option and blanks > indent:
            value += (
                Fragment("\n", Place(name, start, start), False, fixed=True),
                Fragment(content[blanks:], Place(name, start + blanks, start + len(content))),
            )
            continue
        yield from ended()
        option, value, indent = "", [], blanks
        head = SECTION.match(content, blanks)
        found = None if head else OPTION.match(content, blanks)
        if head:
            section = head[1]
        elif found:
            option = found[1].lower()
            value = [Fragment(content[found.end() :], Place(name, start + found.end(), start + len(content)))]
    yield from ended()


def _expanded(value: Word, known: Mapping[str, str]) -> Word:
    """The value with `%(name)s` replaced; what only supervisord knows is unknown."""
    source = embedded(value)
    fragments: list[Fragment] = []
    at = 0
    for m in EXPANSION.finditer(source.whole):
        fragments += source.fragments(at, m.start()) if at < m.start() else ()
        text = known.get(m["name"]) if m["name"] else "%"
        fragments.append(Fragment(text, source.place(*m.span()), False, "" if text is not None else FROM_SUPERVISOR))
        at = m.end()
    fragments += source.fragments(at, len(source.whole)) if at < len(source.whole) else ()
    return value._replace(fragments=tuple(fragments))


def _environment(value: Word | None, known: Mapping[str, str]) -> dict[str, Word]:
    """`KEY="value",KEY2=value` (datatypes.py, dict_of_key_value_pairs)."""
    if value is None:
        return {}
    source = embedded(value)
    found = {}
    for m in PAIR.finditer(source.whole):
        start, end = m.span("value")
        if m["value"][:1] in ('"', "'"):
            start, end = start + 1, end - 1
        found[m["name"]] = _expanded(Word(source.fragments(start, end), source.place(start, end)), known)
    return found
