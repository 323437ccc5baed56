"""Makefiles: the recipes of rules, each line in a shell of its own, with the variables of make expanded (the manual of GNU make).

A variable may always be set on the command line instead; the file's value is used, like the default of `${X:-default}` in a script. If a
launch depends on conditionals that compare a variable (`ifeq ($(GPU),h100)`, `ifdef DEBUG`), the file is read once for each value that they
distinguish. What depends on other conditions, or on a function of make, is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field
from spec_lsp.syntax.carriers import Read
from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.launch import Choice, Document, Launch, Problem
from spec_lsp.syntax.pins import Called, Pins
from spec_lsp.syntax.shell.embedding import Around, CommandResult, read_script
from spec_lsp.syntax.source import Source, embedded
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.worlds import Way, together

ASSIGNMENT = expression(
    r"[ ]*(?P<words>(?:(?:override|export|private)[ \t]+)*)(?P<name>[\w.\-]+)[ \t]*(?P<op>:{1,3}=|\?=|\+=|!=|=)[ \t]*"
)
EXPORT = expression(r"[ ]*export(?:[ \t]+(?P<names>[\w.\- \t]+))?[ \t]*\Z")
DEFINE = expression(r"[ ]*(?:(?:override|export)[ \t]+)*define[ \t]+(?P<name>[\w.\-]+)[ \t]*(?P<op>:{0,3}=|\?=|\+=)?")
ENDEF = expression(r"[ ]*endef\b")
CONDITION = expression(r"[ ]*(?P<word>ifeq|ifneq|ifdef|ifndef)\b(?P<rest>.*)", re.S)
ELSE = expression(r"[ ]*else\b[ \t]*(?P<more>(?:ifeq|ifneq|ifdef|ifndef)\b.*)?", re.S)
ENDIF = expression(r"[ ]*endif\b")
RULE = expression(r"(?P<targets>[^\s:=#][^:=#]*?)[ \t]*::?(?!=)(?P<rest>.*)", re.S)
JOINT = expression(r"[ \t]*\\\r?\n[ \t]*")
COMPARED = expression(
    r"[ \t]*\((?P<a>[^,]*),(?P<b>.*)\)[ \t]*\Z|[ \t]*([\"'])(?P<c>.*?)\3[ \t]+([\"'])(?P<d>.*?)\5", re.S
)
SUBJECT = expression(r"\$(?:\(([\w.\-]+)\)|\{([\w.\-]+)\})\Z")
REFERENCE = expression(r"\$(?:(?P<dollar>\$)|(?P<open>[({])|(?P<single>[^\s$({]))")
FUNCTION = expression(r"(or|if)[ \t]+")
SINGLE = expression(r"\$[({]([A-Za-z_]\w*)[)}][ \t]*,")
AUTOMATIC = frozenset("@<^?*+|%")
FROM_COMMAND_LINE = "from the command line of make"
COMPUTED = "computed by make"
CONDITIONAL = "it depends on a condition of the makefile"
MAX_DEPTH = 20
MAX_FRAGMENTS = 2_000
MAX_WORLDS = 16
CALLS = expression(
    r"(?:\$[({]MAKE[)}]|(?<![\w./-])g?make)(?:[ \t]+(?:-\S+|\w+=\S+))*[ \t]+(?P<name>[A-Za-z_][\w.-]*)(?![\w=])"
)
"""A recipe that calls another."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable: its text, and whether it is expanded when it is used (`=`) or was when it was set (`:=`)."""

    value: Word
    expanded: bool = False
    exported: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A logical line: its text, with the line ends of continuations, and its place."""

    start: int
    end: int
    text: str
    recipe: bool


@dataclass(slots=True)
class Rule:
    targets: tuple[str, ...]
    head: tuple[int, int]
    """Its first line."""
    variables: dict[str, Variable] = field(default_factory=dict)
    lines: list[Word] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Test:
    """A conditional that compares a variable with a text: the variable, the text, and whether it holds where they are the same."""

    name: str
    text: str
    same: bool


@dataclass(slots=True)
class Turn:
    """A variable that conditionals compare, with the texts that they distinguish, and the place of the first conditional."""

    name: str
    texts: dict[str, None]
    place: Place

    def ways(self, own: str | None) -> list[tuple[str | None, Choice]]:
        """The values to try, None for any other, each with its label; `own` is the file's own value."""
        first = own if own is not None else ""
        texts = [t for t in self.texts if t != first and (t or own is None)]
        values = [first, *texts] if first in self.texts else texts
        told: list[tuple[str | None, Choice]] = [
            (text, Choice(self.place, f"`{self.name}` is `{text}`" if text else f"`{self.name}` is not set"))
            for text in values
        ]
        other = f"`{self.name}` is set" if list(self.texts) == [""] else f"`{self.name}` is none of these"
        return [*told, (None, Choice(self.place, other))]


World = Mapping[str, "str | None"]


def read_makefile(name: str, text: str, read: Read) -> Document:
    """All launches of a makefile's recipes."""
    reader = _MakefileReader(name, text, {})
    launches, problems, asked = reader.started(read)
    turns = reader.turns_of(launches)
    if turns:
        ways: list[Way] = []
        for world in product(*turns.values()):
            values = dict(zip(turns, (value for value, _ in world), strict=True))
            found, more, files = _MakefileReader(name, text, values).started(read)
            ways.append((tuple(choice for _, choice in world), found))
            problems += [p for p in more if p not in problems]
            asked |= files
        launches = together(ways)
    return Document(name, text, tuple(launches), tuple(problems), directives_of(name, text), frozenset(asked))


class _MakefileReader:
    """Reads a makefile for given values of the variables that conditionals compare; None for a value that equals none of the compared
    texts."""

    def __init__(self, name: str, text: str, world: World) -> None:
        self.name = name
        self.text = text
        self.world = world
        self.turns: dict[str, Turn] = {}
        self.asking: list[frozenset[str]] = []
        """The variables that the conditionals around the current line compare."""
        self.holds_flags: dict[str, bool] = {}
        """The variables that the file sets, with whether all their values are flags."""
        self.gaps: dict[Place, frozenset[str]] = {}
        """Values that depend on conditionals, with the variables that these compare."""
        self.variables: dict[str, Variable] = {}
        self.by_target: dict[str, dict[str, Variable]] = {}
        self.exports_all = False
        self.one_shell = ".ONESHELL" in text and re.search(r"^\.ONESHELL[ \t]*:", text, re.M) is not None
        self.rules: list[Rule] = []
        self.conditions: list[bool | None] = []
        """The conditionals around the current line: taken, not taken, or unknown."""
        self.done: list[bool] = []

    def started(self, read: Read) -> tuple[list[Launch], list[Problem], set[str]]:
        """The launches of all recipes, their problems, and the files asked for."""
        self.read()
        pins = Pins(self.name, self.text, self.recipes(), CALLS)
        launches: list[Launch] = []
        problems: list[Problem] = []
        asked: set[str] = set()
        for rule in self.rules:
            for script in self.scripts(rule):
                if "sglang" not in "".join(f.text or "" for f in script.fragments):
                    continue
                found: CommandResult = read_script(self.name, script, Around(self.environment(rule), read=read))
                launches += pins.told(rule.targets[0] if rule.targets else "", found.launches)
                problems += found.problems
                asked |= found.depends_on
        return launches, problems, asked

    def turns_of(self, launches: list[Launch]) -> dict[str, list[tuple[str | None, Choice]]]:
        """The variables on which launches depend through conditionals, with the ways of each, as many as are looked at."""
        words = [word for one in launches for v in one.variants for word in (*v.words, *v.env.values())]
        gaps = {f.place for word in words for f in word.fragments if f.text is None and f.reason == CONDITIONAL}
        names = {name for gap in gaps for name in self.gaps.get(gap, ())}
        found: dict[str, list[tuple[str | None, Choice]]] = {}
        room = MAX_WORLDS
        for turn in self.turns.values():
            if turn.name in names:
                known = self.variables.get(turn.name)
                ways = turn.ways(self.expand(known.value, {}).text if known is not None else None)
                if len(ways) <= room:
                    room //= len(ways)
                    found[turn.name] = ways
        return found

    # Lines.

    def lines(self) -> Iterator[Line]:
        text = self.text
        at = 0
        while at < len(text):
            start = at
            while True:
                newline = text.find("\n", at)
                at = len(text) if newline < 0 else newline + 1
                content = text[start:at].rstrip("\r\n")
                if newline < 0 or not content.endswith("\\"):
                    break
            yield Line(start, start + len(content), content, content.startswith("\t"))

    def word(self, start: int, end: int) -> Word:
        place = Place(self.name, start, end)
        return Word((Fragment(self.text[start:end], place),) if start < end else (), place)

    def read(self) -> None:
        rule: Rule | None = None
        waiting: tuple[str, int, str] | None = None
        for line in self.lines():
            if waiting is not None:
                if ENDEF.match(line.text):
                    name, start, op = waiting
                    self.set(name, self.word(start, max(start, line.start - 1)), op, False)
                    waiting = None
                continue
            if line.recipe and rule is not None and not _is_conditional(line.text.lstrip("\t")):
                if self.taken() is not False:
                    rule.lines.append(self.word(line.start + 1, line.end))
                continue
            if self.conditional(line):
                continue
            content = line.text
            if not content.strip() or content.lstrip().startswith("#"):
                continue
            if self.taken() is False:
                self.note(content)
                continue
            define = DEFINE.match(content)
            if define:
                after = self.text.find("\n", line.end)
                waiting = (define.group("name"), len(self.text) if after < 0 else after + 1, define.group("op") or "=")
                continue
            rule = self.statement(line, rule)

    def statement(self, line: Line, rule: Rule | None) -> Rule | None:
        content = _without_comment(line.text)
        export = EXPORT.match(content)
        if export:
            names = (export.group("names") or "").split()
            self.exports_all = self.exports_all or not names
            for name in names:
                known = self.variables.get(name)
                if known is not None:
                    self.variables[name] = Variable(known.value, known.expanded, True)
            return None
        assignment = ASSIGNMENT.match(content)
        if assignment:
            self.note(content)
            self.assign(assignment, line.start, content, self.variables)
            return None
        head = RULE.match(content)
        if head is None:
            return None
        targets = tuple(head.group("targets").split())
        rest = line.start + head.start("rest")
        specific = ASSIGNMENT.match(head.group("rest").lstrip(" \t"))
        if specific:
            shift = rest + len(head.group("rest")) - len(head.group("rest").lstrip(" \t"))
            for target in targets:
                own = self.by_target.setdefault(target, {})
                self.assign(specific, shift, head.group("rest").lstrip(" \t"), own)
            return None
        new = Rule(targets, (line.start, line.end))
        self.rules.append(new)
        semicolon = content.find(";", head.start("rest"))
        if semicolon >= 0:
            new.lines.append(self.word(line.start + semicolon + 1, line.start + len(content)))
        return new

    def note(self, content: str) -> None:
        """Record what kind of text an assignment gives, whether it is taken or not."""
        m = ASSIGNMENT.match(content)
        if m is not None:
            flags = content[m.end() :].lstrip().startswith("-")
            self.holds_flags[m.group("name")] = flags and self.holds_flags.get(m.group("name"), True)

    # Conditionals.

    def taken(self) -> bool | None:
        if any(c is False for c in self.conditions):
            return False
        return None if any(c is None for c in self.conditions) else True

    def conditional(self, line: Line) -> bool:
        """Whether the line belongs to a conditional, which is then followed."""
        content = line.text.lstrip("\t")
        opening = CONDITION.match(content)
        if opening:
            holds = self.holds(opening, line)
            self.conditions.append(holds)
            self.asking.append(self.asked_by(opening, line))
            self.done.append(holds is True)
            return True
        otherwise = ELSE.match(content)
        if otherwise and self.conditions:
            before = self.conditions[-1]
            more = otherwise.group("more")
            again = CONDITION.match(more) if more else None
            if self.done[-1]:
                self.conditions[-1] = False
            elif again:
                self.asking[-1] |= self.asked_by(again, line)
                holds = self.holds(again, line)
                self.conditions[-1] = None if before is None and holds is True else holds
                self.done[-1] = holds is True and before is False
            else:
                self.conditions[-1] = None if before is None else not before
            return True
        if ENDIF.match(content) and self.conditions:
            self.conditions.pop()
            self.done.pop()
            self.asking.pop()
            return True
        return False

    def asked_by(self, m: re.Match[str], line: Line) -> frozenset[str]:
        """The variable that a conditional compares; the comparison is recorded."""
        test = _test(m)
        if test is None:
            return frozenset()
        turn = self.turns.setdefault(test.name, Turn(test.name, {}, Place(self.name, line.start, line.end)))
        turn.texts[test.text] = None
        return frozenset((test.name,))

    def holds(self, m: re.Match[str], line: Line) -> bool | None:
        """Whether a condition holds; unknown if it depends on the command line or make's environment."""
        test = _test(m)
        if test is not None:
            return (self.world[test.name] == test.text) is test.same if test.name in self.world else None
        parts = COMPARED.match(m.group("rest"))
        if m.group("word") in ("ifdef", "ifndef") or parts is None or "$" in m.group("rest"):
            return None
        left, right = _sides(parts)
        return (left == right) is (m.group("word") == "ifeq")

    # Variables.

    def assign(self, m: re.Match[str], base: int, content: str, scope: dict[str, Variable]) -> None:
        start, end = base + m.end(), base + len(content.rstrip())
        value = _joined_lines(self.word(start, max(start, end)))
        exported = "export" in m.group("words")
        self.set(m.group("name"), value, m.group("op"), exported, scope)

    def set(self, name: str, value: Word, op: str, exported: bool, scope: dict[str, Variable] | None = None) -> None:
        scope = self.variables if scope is None else scope
        before = scope.get(name)
        exported = exported or (before is not None and before.exported)
        if scope is self.variables and name in self.world and self.world[name] != self.expand(value, {}).text:
            return  # the command line sets it
        if self.taken() is None:
            self.gaps[value.place] = frozenset[str]().union(*self.asking)
            gap = (Fragment(None, value.place, False, CONDITIONAL),)
            kept = before.value.fragments if before is not None and op == "+=" else ()
            scope[name] = Variable(Word((*kept, *gap), value.place), False, exported)
        elif op == "?=":
            scope.setdefault(name, Variable(value, False, exported))
        elif op == "!=":
            scope[name] = Variable(Word((Fragment(None, value.place, False, COMPUTED),), value.place), True, exported)
        elif op == "+=" and before is not None:
            blank = Fragment(" ", Place(self.name, value.place.start, value.place.start), False, fixed=True)
            more = self.expand(value, {}) if before.expanded else value
            joined = Word((*before.value.fragments, blank, *more.fragments), value.place)
            scope[name] = Variable(joined, before.expanded, exported)
        elif op.startswith(":"):
            scope[name] = Variable(self.expand(value, {}), True, exported)
        else:
            scope[name] = Variable(value, False, exported)

    def environment(self, rule: Rule) -> dict[str, Word]:
        """The variables that make gives to the shells of a rule."""
        own = self.own(rule)
        known = {**self.variables, **own}
        return {
            name: self.expand(variable.value, own) if not variable.expanded else variable.value
            for name, variable in known.items()
            if variable.exported or self.exports_all
        }

    def own(self, rule: Rule) -> dict[str, Variable]:
        found: dict[str, Variable] = {}
        for target in rule.targets:
            found.update(self.by_target.get(target, {}))
        return found

    # Recipes.

    def recipes(self) -> dict[str, Called]:
        """The rules by their targets: of several for one target, the one with a recipe."""
        found: dict[str, Called] = {}
        for rule in sorted(self.rules, key=lambda rule: bool(rule.lines)):
            start, end = (rule.lines[0].place.start, rule.lines[-1].place.end) if rule.lines else (0, 0)
            found.update((target, Called(rule.head, start, end)) for target in rule.targets)
        return found

    def scripts(self, rule: Rule) -> Iterator[Word]:
        """The scripts that a rule's shells read: each line by itself, or all of them with `.ONESHELL`."""
        own = self.own(rule)
        parts = [self.expand(_without_prefix(line), own) for line in rule.lines]
        if not self.one_shell:
            yield from parts
            return
        fragments: list[Fragment] = []
        for part in parts:
            fragments.extend(part.fragments)
            fragments.append(Fragment("\n", Place(self.name, part.place.end, part.place.end), False, fixed=True))
        if fragments:
            yield Word(tuple(fragments), parts[0].place)

    def expand(
        self, word: Word, own: Mapping[str, Variable], depth: int = 0, seen: frozenset[str] = frozenset()
    ) -> Word:
        """The text with `$(VAR)`, `${VAR}` and `$$` replaced."""
        source = embedded(word)
        text = source.whole
        if "$" not in text:
            return word
        fragments: list[Fragment] = []
        at = 0
        while (m := REFERENCE.search(text, at)) is not None:
            fragments.extend(source.fragments(at, m.start()))
            stop = _closing(text, m.end() - 1) if m.group("open") else m.end()
            fragments.extend(self.reference(source, m, stop, own, depth, seen))
            at = stop
            if len(fragments) > MAX_FRAGMENTS:
                break
        fragments.extend(source.fragments(at, len(text)))
        return Word(tuple(fragments), word.place)

    def reference(
        self, source: Source, m: re.Match[str], stop: int, own: Mapping[str, Variable], depth: int, seen: frozenset[str]
    ) -> tuple[Fragment, ...]:
        place = source.place(m.start(), stop)
        if m.group("dollar"):
            return (Fragment("$", place, False),)
        name = m.group("single") or source.text[m.end() : max(m.end(), stop - 1)].strip()
        call = FUNCTION.match(source.text, m.end(), stop - 1) if m.group("open") else None
        if call:
            arguments = [self.expand(a, own, depth + 1, seen) for a in _arguments(source, call.end(), stop - 1)]
            return self.called(call.group(1), arguments, source.text[call.end() : stop], place)
        variable = own.get(name) or self.variables.get(name)
        if name in AUTOMATIC or not re.fullmatch(r"[\w.\-]+", name):
            return (Fragment(None, place, False, COMPUTED),)
        if variable is None and name == "MAKE":
            return (Fragment("make", place, False, fixed=True),)
        if variable is None and self.world.get(name) is not None:
            return (Fragment(self.world[name], place, False, fixed=True),)
        if variable is None and self.holds_flags.get(name):
            return ()  # another arm sets it
        if variable is None or name in seen or depth > MAX_DEPTH:
            return (Fragment(None, place, False, FROM_COMMAND_LINE),)
        value = variable.value
        if not variable.expanded:
            value = self.expand(value, own, depth + 1, seen | {name})
        return tuple(f._replace(via=(place, *f.via)) for f in value.fragments)

    def called(self, function: str, arguments: list[Word], text: str, place: Place) -> tuple[Fragment, ...]:
        """`$(or A,B)` is its first argument that is not empty, `$(if C,A,B)` is A if C is not empty. A variable that only the command line
        can set is taken to be empty, except in `$(if $(X),A)`, which may be A, like `${X:+A}` in a shell."""
        if function == "or":
            told = [a for a in arguments if a.text != "" and (a.text is not None or not _from_command_line(a))]
            return (told or arguments[-1:])[0].fragments if arguments else ()
        condition, then, *otherwise = [*arguments, Word((), place), Word((), place)][: max(len(arguments), 2)]
        if condition.text is not None or not _from_command_line(condition):
            chosen = (
                (then if condition.text else (otherwise or [Word((), place)])[0])
                if condition.text is not None
                else None
            )
            return chosen.fragments if chosen is not None else (Fragment(None, place, False, COMPUTED),)
        asked = SINGLE.match(text)
        if asked is None or (otherwise and otherwise[0].fragments):
            return otherwise[0].fragments if otherwise else ()
        return (
            Fragment(f"${{{asked.group(1)}:+", place, False, fixed=True),
            *then.fragments,
            Fragment("}", place, False, fixed=True),
        )


def _from_command_line(word: Word) -> bool:
    """Whether a text consists only of variables that the file does not set."""
    return bool(word.fragments) and all(f.text is None and f.reason == FROM_COMMAND_LINE for f in word.fragments)


def _arguments(source: Source, start: int, end: int) -> Iterator[Word]:
    """The arguments of a function of make, separated by commas outside of brackets; blanks around them do not count."""
    depth, at = 0, start
    for i in range(start, end + 1):
        char = source.text[i] if i < end else ","
        depth += (char in "({") - (char in ")}")
        if char == "," and (depth == 0 or i == end):
            low, high = at, i
            while low < high and source.text[low] in " \t\\\r\n":
                low += 1
            while high > low and source.text[high - 1] in " \t":
                high -= 1
            yield Word(source.fragments(low, high) if low < high else (), source.place(low, high))
            at = i + 1


def _sides(parts: re.Match[str]) -> tuple[str, str]:
    """The two texts that `ifeq` compares, in either notation."""
    return (parts.group("a") or parts.group("c") or "").strip(), (parts.group("b") or parts.group("d") or "").strip()


def _test(m: re.Match[str]) -> Test | None:
    """A conditional as a test of one variable; None for any other conditional."""
    word, rest = m.group("word"), m.group("rest").split("#")[0]
    if word in ("ifdef", "ifndef"):
        name = rest.strip()
        return Test(name, "", word == "ifndef") if re.fullmatch(r"[\w.\-]+", name) else None
    parts = COMPARED.match(rest)
    if parts is None:
        return None
    left, right = _sides(parts)
    left, right = (right, left) if "$" in right else (left, right)
    subject = SUBJECT.match(re.sub(r"^\$\(strip[ \t]+(.*)\)\Z", r"\1", left))
    if subject is None or "$" in right:
        return None
    return Test(subject.group(1) or subject.group(2), right, word == "ifeq")


def _is_conditional(text: str) -> bool:
    return bool(CONDITION.match(text) or ELSE.match(text) or ENDIF.match(text)) and text[:1] != "\t"


def _without_comment(text: str) -> str:
    """A line up to its comment."""
    m = re.search(r"(?<!\\)#", text)
    return text[: m.start()] if m else text


def _without_prefix(line: Word) -> Word:
    """A recipe line without the prefixes that tell make how to run it (`@`, `-`, `+`), and without the tabs of continuation lines."""
    text = line.text or ""
    m = re.match(r"[ \t]*[@\-+ \t]*", text)
    source = embedded(line)
    fragments: list[Fragment] = []
    at = m.end() if m else 0
    for tab in re.compile(r"(?<=\n)\t").finditer(text, at):
        fragments.extend(source.fragments(at, tab.start()))
        at = tab.end()
    fragments.extend(source.fragments(at, len(text)))
    return Word(tuple(fragments), line.place)


def _joined_lines(word: Word) -> Word:
    """The value of a variable: a backslash at the end of a line and the blanks around it become one blank."""
    text = word.text or ""
    source = embedded(word)
    fragments: list[Fragment] = []
    at = 0
    for m in JOINT.finditer(text):
        fragments.extend(source.fragments(at, m.start()))
        fragments.append(Fragment(" ", source.place(*m.span()), False, fixed=True))
        at = m.end()
    fragments.extend(source.fragments(at, len(text)))
    return Word(tuple(fragments), word.place)


def _closing(text: str, start: int) -> int:
    """The offset after the bracket that closes the one at `start`."""
    opening, closing = text[start], {"(": ")", "{": "}"}[text[start]]
    depth = 0
    for at in range(start, len(text)):
        if text[at] == opening:
            depth += 1
        elif text[at] == closing:
            depth -= 1
            if depth == 0:
                return at + 1
    return len(text)
