"""Templates in YAML files: `{{ … }}` of Go, Helm and Jinja, `{% … %}`, and `${{ … }}` of workflows.

What a template prints is not known, so each becomes a hole of the same width, and lines that only steer (`{{- if … }}`) become empty.
What stands between `if` and `end` is there in some ways of rendering the file: `Template.ways` tells these apart where it matters.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from spec_lsp.syntax.source import HOLE

TOKEN = re.compile(
    r"\{\{-?[ \t]*(?P<comment>/\*.*?\*/)[ \t]*-?\}\}"
    r"|(?P<flow>\$)?\{\{(?:(?P<go>(?:(?!\{\{|\}\}).){0,1000})\}\}|(?P<open>[^\n]*))"
    r"|\{%(?P<jinja>(?:(?!\{%|%\}).){0,1000})%\}|(?<!\$)\{\#(?P<note>.*?)\#\}",
    re.S,
)
MARKS = ("{{", "{%", "{#")
STARTS = frozenset({"if", "unless"})
LOOPS = frozenset({"range", "with", "for", "define", "block", "macro", "filter", "raw", "call"})
ENDS = re.compile(r"end\w*\Z")
SILENT = re.compile(r"/\*|#|\$\w+\s*:?=|set\b|import\b|extends\b|from\b|break\b|continue\b|template\b")
EQUALS = re.compile(r"eq\s+(?P<a>\S+)\s+[\"'`](?P<b>[^\"'`]*)[\"'`]\Z|(?P<c>[\w.]+)\s*==\s*[\"'](?P<d>[^\"']*)[\"']\Z")
FROM_TEMPLATE = "from a template"
FROM_BLOCK = "from a template's block"
FROM_WORKFLOW = "from the workflow's context"
MAX_WAYS = 16
MAX_LENGTH = 1_000_000


@dataclass(frozen=True, slots=True)
class Hole:
    """[start, end) of the text is printed by a template. `text` is what stands between its braces."""

    start: int
    end: int
    text: str
    reason: str = FROM_TEMPLATE
    silent: bool = False
    """Whether it only steers and prints nothing."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What an arm asks: whether `subject` is `value`; "" asks only whether it is set. `negated` asks for the contrary."""

    subject: str
    value: str = ""
    negated: bool = False


@dataclass(slots=True)
class Arm:
    """The lines [start, end) between `if`, `else` and `end`, there when all of `conditions` hold."""

    start: int
    end: int
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to render: lines to leave out, and what was decided, in words that continue "when "."""

    left_out: tuple[tuple[int, int], ...] = ()
    taken: tuple[tuple[int, str], ...] = ()
    """Where the condition stands and what it is."""


@dataclass(slots=True)
class Template:
    """A text without its templates. `masked` has the same length as the text."""

    masked: str
    holes: list[Hole] = field(default_factory=list)
    hidden: list[tuple[int, int]] = field(default_factory=list)
    """Whole lines that print nothing, or print something nobody knows (then they are in `printed` too)."""
    printed: list[tuple[int, int]] = field(default_factory=list)
    arms: list[Arm] = field(default_factory=list)
    loops: list[tuple[int, int]] = field(default_factory=list)
    """Lines that are printed any number of times."""

    def holes_in(self, start: int, end: int) -> Sequence[Hole]:
        low = bisect_right(self.holes, start, key=lambda h: h.end)
        return self.holes[low : bisect_left(self.holes, end, key=lambda h: h.start)]

    def hidden_in(self, start: int, end: int) -> Sequence[tuple[int, int]]:
        return within(self.hidden, start, end)

    def ways(self, start: int, end: int, matters: re.Pattern[str]) -> list[Way]:
        """The ways to render the lines [start, end), as far as arms that hold something that `matters` differ."""
        arms = [a for a in self.arms if start <= a.start and a.end <= end]
        if not arms:
            return [Way()]
        subjects = _subjects([a for a in arms if matters.search(self.masked, a.start, a.end)])
        asked = {subject: _asked(arms, subject) for subject in subjects}
        ways: dict[Way, None] = {}
        for values in product(*subjects.values()):
            world = dict(zip(subjects, values, strict=True))
            out = tuple((a.start, a.end) for a in arms if not _holds(a, world))
            taken = tuple((asked[s], _in_words(s, v, subjects[s])) for s, v in world.items())
            ways[Way(out, taken)] = None
        return list(ways)


def within(found: Sequence[tuple[int, int]], start: int, end: int) -> Sequence[tuple[int, int]]:
    """Those of some stretches, in order, that lie in [start, end)."""
    low = bisect_right(found, start, key=lambda h: h[1])
    return found[low : bisect_left(found, end, key=lambda h: h[0])]


def _subjects(arms: Sequence[Arm]) -> dict[str, list[str | None]]:
    """What is asked, and the answers that matter; None stands for any other answer."""
    found: dict[str, list[str | None]] = {}
    for arm in arms:
        for condition in arm.conditions:
            answers = found.setdefault(condition.subject, [])
            if condition.value not in answers:
                answers.insert(len(answers) - (None in answers), condition.value)
            if None not in answers:
                answers.append(None)
    while _size(found) > MAX_WAYS:
        widest = max(found, key=lambda s: len(found[s]))
        found[widest].pop()
        if not found[widest]:
            del found[widest]
    return found


def _size(subjects: Mapping[str, Sequence[str | None]]) -> int:
    size = 1
    for answers in subjects.values():
        size *= len(answers)
    return size


def _holds(arm: Arm, world: Mapping[str, str | None]) -> bool:
    """Whether an arm is rendered. A question that does not matter is answered with yes."""
    for condition in arm.conditions:
        if condition.subject in world:
            if (world[condition.subject] == condition.value) == condition.negated:
                return False
        elif condition.negated:
            return False
    return True


def _asked(arms: Sequence[Arm], subject: str) -> int:
    return next((a.start for a in arms if any(c.subject == subject for c in a.conditions)), 0)


def _in_words(subject: str, value: str | None, answers: Sequence[str | None]) -> str:
    if value is None:
        return f"`{subject}` is not set" if "" in answers else f"`{subject}` is something else"
    return f"`{subject}` is set" if value == "" else f"`{subject}` is {value}"


# --- reading -----------------------------------------------------------------------------------------------------------


def read_template(text: str) -> Template:
    """A text with its templates masked."""
    if not any(mark in text for mark in MARKS) or len(text) > MAX_LENGTH:
        return Template(text)
    return _Reader(text).read()


@dataclass(slots=True)
class _Block:
    """An open `if`, `range` or `with`. `before` are the conditions of the arms that come before the open one."""

    start: int
    condition: Condition | None
    inline: int
    before: list[Condition] = field(default_factory=list)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.found = Template(text)
        self.inlined = 0
        """Where the last stretch that is there or not ends."""
        self.blocks: list[_Block] = []

    def read(self) -> Template:
        tokens = [(m, self.line(m)) for m in TOKEN.finditer(self.text)]
        for m, (start, end) in tokens:
            self.token(m, start, end)
        self.fill()
        return self.found

    def line(self, m: re.Match[str]) -> tuple[int, int]:
        """The lines a token stands on, the last line's end included."""
        start = self.text.rfind("\n", 0, m.start()) + 1
        end = self.text.find("\n", max(m.end() - 1, m.start()))
        return start, len(self.text) if end < 0 else end + 1

    def token(self, m: re.Match[str], start: int, end: int) -> None:
        code = (m["comment"] or m["go"] or m["open"] or m["jinja"] or "").strip("-+ \t\r\n")
        word = re.match(r"\w*", code)
        first = word.group() if word else ""
        alone = not TOKEN.sub("", self.text[start:end]).strip() and m["flow"] is None
        steers = m["note"] is not None or self.steers(m, first, code)
        if m["flow"] is None:
            self.turn(m, first, code, start, end, alone)
        if alone and start >= self.inlined:
            self.hide(start, end, not steers)
        elif m.start() >= self.inlined:
            reason = FROM_WORKFLOW if m["flow"] else FROM_TEMPLATE
            self.found.holes.append(Hole(m.start(), m.end(), code, reason, steers))

    def steers(self, m: re.Match[str], first: str, code: str) -> bool:
        if m["flow"]:
            return False
        return (
            first in STARTS
            or first in LOOPS
            or first in ("else", "elif")
            or bool(ENDS.match(first))
            or bool(SILENT.match(code))
        )

    def turn(self, m: re.Match[str], first: str, code: str, start: int, end: int, alone: bool) -> None:
        """Follows blocks: their arms, and stretches of a line that are there or not."""
        if first in STARTS:
            inline = -1 if alone else m.start()
            self.blocks.append(_Block(end, _condition(code[len(first) :], first == "unless"), inline))
        elif first in LOOPS:
            self.blocks.append(_Block(end, None, -1 if alone else m.start()))
        elif first in ("else", "elif") and self.blocks:
            block = self.blocks[-1]
            self.close(block, start)
            if block.condition is not None:
                block.before.append(block.condition)
            rest = re.sub(r"\A(?:else\s+)?(?:el)?if\b|\Aelse\b", "", code).strip()
            block.start = end
            if block.condition is not None:
                block.condition = _condition(rest, False) if rest else Condition("", "", False)
        elif ENDS.match(first) and self.blocks:
            block = self.blocks.pop()
            if block.inline >= 0:
                self.inline(block.inline, m.end())
            else:
                self.close(block, start)

    def close(self, block: _Block, end: int) -> None:
        """Ends the open arm of a block."""
        if block.condition is None and block.inline < 0:
            self.found.loops.append((block.start, end))
        if block.condition is None or block.inline >= 0 or end < block.start:
            return
        own = (block.condition,) if block.condition.subject else ()
        against = tuple(Condition(c.subject, c.value, not c.negated) for c in block.before)
        self.found.arms.append(Arm(block.start, end, (*own, *against)))

    def inline(self, start: int, end: int) -> None:
        """Text that is there or not, in the middle of a line."""
        self.found.holes = [h for h in self.found.holes if h.end <= start]
        self.found.holes.append(Hole(start, end, "", FROM_BLOCK))
        self.found.hidden = [h for h in self.found.hidden if h[1] <= start]
        self.found.printed = [h for h in self.found.printed if h[1] <= start]
        self.inlined = end

    def hide(self, start: int, end: int, prints: bool) -> None:
        if not self.found.hidden or self.found.hidden[-1] != (start, end):
            self.found.hidden.append((start, end))
        if prints and (not self.found.printed or self.found.printed[-1] != (start, end)):
            self.found.printed.append((start, end))

    def fill(self) -> None:
        """Puts holes and empty lines where templates are."""
        self.found.holes = [h for h in self.found.holes if not self.found.hidden_in(h.start, h.end)]
        marks = [(h.start, h.end, " " if h.silent else HOLE) for h in self.found.holes]
        marks += [(a, b, "\n") for a, b in self.found.hidden]
        pieces: list[str] = []
        position = 0
        for start, end, char in sorted(marks):
            if start < position:
                continue
            pieces += (self.text[position:start], char * (end - start))
            position = end
        self.found.masked = "".join(pieces) + self.text[position:]


def _condition(code: str, negated: bool) -> Condition:
    code = " ".join(code.strip("()- \t\n").split())
    while code.startswith("not "):
        code, negated = code[4:].strip("() "), not negated
    ne = code.startswith("ne ")
    equals = EQUALS.match("eq " + code[3:] if ne else code)
    if equals is None:
        return Condition(code, "", negated)
    subject, value = (equals["a"], equals["b"]) if equals["a"] else (equals["c"], equals["d"])
    return Condition(subject, value, negated != ne)


def left_out(masked: str, stretches: Sequence[tuple[int, int]]) -> str:
    """The text with the lines of some stretches made empty."""
    for start, end in stretches:
        masked = masked[:start] + "\n" * (end - start) + masked[end:]
    return masked


def stretches(holes: Sequence[Hole], start: int, end: int) -> Iterator[tuple[int, int, Hole | None]]:
    """[start, end) in pieces that are a hole or none."""
    for hole in holes:
        if hole.start > start:
            yield start, hole.start, None
        yield max(hole.start, start), min(hole.end, end), hole
        start = hole.end
    if start < end:
        yield start, end, None
