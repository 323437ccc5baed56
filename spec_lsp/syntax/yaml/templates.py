"""Templates in YAML files: `{{ … }}` of Go, Helm and Jinja, `{% … %}`, and `${{ … }}` of workflows.

Each becomes a hole of the same width (`values` knows the output of some), and control lines (`{{- if … }}`) become empty. Text between `if`
and `end` exists in some ways of rendering the file, whether it is lines or a part of one: `Template.ways` distinguishes these where it
matters.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from spec_lsp.expressions import expression
from spec_lsp.interruption import checkpoint
from spec_lsp.records import dataclass, field
from spec_lsp.syntax import covering
from spec_lsp.syntax.source import HOLE

TOKEN = expression(
    r"\{\{-?[ \t]*(?P<comment>/\*.*?\*/)[ \t]*-?\}\}"
    r"|(?P<flow>\$)?\{\{(?:(?P<go>(?:(?!\{\{|\}\}).){0,1000})\}\}|(?P<open>[^\n]*))"
    r"|\{%(?P<jinja>(?:(?!\{%|%\}).){0,1000})%\}|(?<!\$)\{\#(?P<note>.*?)\#\}",
    re.S,
)
MARKS = ("{{", "{%", "{#")
STARTS = frozenset({"if", "unless", "with"})
LOOPS = frozenset({"range", "for", "define", "block", "macro", "filter", "raw", "call"})
ENDS = expression(r"end\w*\Z")
SILENT = expression(r"/\*|#|\$\w+\s*:?=|set\b|import\b|extends\b|from\b|break\b|continue\b|template\b")
EQUALS = expression(r"eq\s+(?P<a>\S+)\s+[\"'`](?P<b>[^\"'`]*)[\"'`]\Z|(?P<c>[\w.]+)\s*==\s*[\"'](?P<d>[^\"']*)[\"']\Z")
INLINE = expression(r"--[a-z]|sglang|^[ \t]*-[ \t]|=|\bvalue:|\bimage:", re.M)
"""What a line must contain so that arms within it are distinguished."""
FROM_TEMPLATE = "from a template"
ELEMENT = "*"
"""The name of the element of a loop."""
FROM_BLOCK = "from a template's block"
FROM_WORKFLOW = "from the workflow's context"
SEPARATES = frozenset(" \t\"'[{,(")
OPENS = frozenset("\"'[{")
BLANK = frozenset(" \t\r\n")
BLANKS = expression(r"[ \t\r\n]*")
MAX_WAYS = 16
MAX_ROWS = 64
"""How many ways are looked at if there are more than MAX_WAYS."""
MAX_LENGTH = 1_000_000


@dataclass(frozen=True, slots=True)
class Hole:
    """A template prints [start, end) of the text. `text` is the code between its braces."""

    start: int
    end: int
    text: str
    reason: str = FROM_TEMPLATE
    silent: bool = False
    """Whether it is a control statement that prints nothing."""
    at: int = 0
    """Where `text` starts in the file."""
    dot: str = ""
    """The meaning of `.` there: the subject of the `with` around it, ELEMENT in a loop."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of an arm: whether `subject` is `value`; "" only asks whether it is set. `negated` means the opposite."""

    subject: str
    value: str = ""
    negated: bool = False


@dataclass(slots=True)
class Arm:
    """The lines [start, end) between `if`, `else` and `end`, which exist if all of `conditions` hold."""

    start: int
    end: int
    conditions: tuple[Condition, ...]
    inline: bool = False
    """Whether it is a part of a line."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of rendering: lines and parts of lines to leave out, and the decisions, in words that continue "when "."""

    left_out: tuple[tuple[int, int], ...] = ()
    dropped: tuple[tuple[int, int], ...] = ()
    """Parts of lines."""
    taken: tuple[tuple[int, str], ...] = ()
    """Where the condition is, and its text."""
    world: tuple[tuple[str, str | bool | None], ...] = ()
    """The values of subjects: a text, set (True), not set (False); None: none of the values that are asked for."""
    looked_at: covering.Ways = "all"
    """How many ways there are, of which this one was chosen."""


@dataclass(slots=True)
class Template:
    """A text without its templates. `masked` has the same length as the text."""

    masked: str
    holes: list[Hole] = field(default_factory=list)
    hidden: list[tuple[int, int]] = field(default_factory=list)
    """Whole lines that print nothing, or print something unknown (then they are in `printed` too)."""
    printed: list[tuple[int, int]] = field(default_factory=list)
    arms: list[Arm] = field(default_factory=list)
    loops: list[tuple[int, int]] = field(default_factory=list)
    """Lines that are printed any number of times."""
    prints: dict[int, Hole] = field(default_factory=dict)
    """The code that prints the lines of `printed`, by where these start."""
    over: dict[int, str] = field(default_factory=dict)
    """The code of loops that treat all elements alike, by where their lines start."""
    defined: list[tuple[int, int]] = field(default_factory=list)
    """Lines that are defined for others to include, in order."""

    def holes_in(self, start: int, end: int) -> Sequence[Hole]:
        low = bisect_right(self.holes, start, key=lambda h: h.end)
        return self.holes[low : bisect_left(self.holes, end, key=lambda h: h.start)]

    def hidden_in(self, start: int, end: int) -> Sequence[tuple[int, int]]:
        return within(self.hidden, start, end)

    def ways(self, start: int, end: int, matters: re.Pattern[str]) -> list[Way]:
        """The ways to render the lines [start, end); arms are distinguished if they contain something that `matters`."""
        arms = [a for a in self.arms if start <= a.start and a.end <= end]
        if not arms:
            return [Way()]
        holds = _holding(matters, self.masked, start, end)
        subjects = _subjects([a for a in arms if a.inline or holds(a.start, a.end)])
        asked: dict[str, int] = {}
        for arm in arms:
            for condition in arm.conditions:
                asked.setdefault(condition.subject, arm.start)
        ways: dict[Way, None] = {}
        worlds, looked_at = _worlds(subjects)
        for world in worlds:
            out = tuple((a.start, a.end) for a in arms if not a.inline and not _holds(a, world))
            dropped = tuple((a.start, a.end) for a in arms if a.inline and not _holds(a, world))
            taken = tuple((asked[s], _in_words(s, v, subjects[s])) for s, v in world.items())
            ways[Way(out, dropped, taken, tuple((s, _known(v, subjects[s])) for s, v in world.items()), looked_at)] = (
                None
            )
        return list(ways)


def within(found: Sequence[tuple[int, int]], start: int, end: int) -> Sequence[tuple[int, int]]:
    """Those of some ranges, in order, that are within [start, end)."""
    low = bisect_right(found, start, key=lambda h: h[1])
    return found[low : bisect_left(found, end, key=lambda h: h[0])]


def _holding(pattern: re.Pattern[str], text: str, start: int, end: int) -> Callable[[int, int], bool]:
    """Tells whether some characters of [start, end) contain a match; looks through the text once, however many lie in each other."""
    spans = [m.span() for m in pattern.finditer(text, start, end)]
    starts = [at for at, _ in spans]

    def holds(low: int, high: int) -> bool:
        at = bisect_left(starts, low)
        if at < len(spans) and spans[at][1] <= high:
            return True
        straddles = at > 0 and spans[at - 1][1] > low
        return (straddles or (at < len(spans) and starts[at] < high)) and pattern.search(text, low, high) is not None

    return holds


def _subjects(arms: Sequence[Arm]) -> dict[str, list[str | None]]:
    """The subjects of conditions, and the answers that matter; None stands for any other answer."""
    found: dict[str, list[str | None]] = {}
    for arm in arms:
        for condition in arm.conditions:
            answers = found.setdefault(condition.subject, [])
            if condition.value not in answers:
                answers.insert(len(answers) - (None in answers), condition.value)
            if None not in answers:
                answers.append(None)
    return found


def _worlds(subjects: Mapping[str, Sequence[str | None]]) -> tuple[list[dict[str, str | None]], covering.Ways]:
    """The combinations of answers to all conditions; if they are too many, enough for any two answers to occur together."""
    if _size(subjects) <= MAX_WAYS:
        return [dict(zip(subjects, values, strict=True)) for values in product(*subjects.values())], "all"

    def answered(row: covering.Row[str]) -> dict[str, str | None]:
        checkpoint()
        return {
            subject: answers[row.way(subject, range(len(answers)), len(answers))]
            for subject, answers in subjects.items()
        }

    found, complete = covering.rows(answered, MAX_ROWS)
    return [world for _, world in found], "pairs" if complete else "some"


def _size(subjects: Mapping[str, Sequence[str | None]]) -> int:
    size = 1
    for answers in subjects.values():
        size *= len(answers)
    return size


def _holds(arm: Arm, world: Mapping[str, str | None]) -> bool:
    """Whether an arm is rendered. Conditions that do not matter are taken to hold."""
    for condition in arm.conditions:
        if condition.subject in world:
            if (world[condition.subject] == condition.value) == condition.negated:
                return False
        elif condition.negated:
            return False
    return True


def _known(value: str | None, answers: Sequence[str | None]) -> str | bool | None:
    if value is None:
        return False if "" in answers else None
    return value or True


def _in_words(subject: str, value: str | None, answers: Sequence[str | None]) -> str:
    if value is None:
        return f"`{subject}` is not set" if "" in answers else f"`{subject}` is something else"
    return f"`{subject}` is set" if value == "" else f"`{subject}` is {value}"


# --- reading -----------------------------------------------------------------------------------------------------------


def read_template(text: str, script: bool = False) -> Template:
    """A text with its templates masked. Parts of several lines are told apart in a script; in YAML they would change its structure."""
    if not any(mark in text for mark in MARKS) or len(text) > MAX_LENGTH:
        return Template(text)
    return _TemplateReader(text, script).read()


@dataclass(slots=True)
class _Block:
    """An open `if`, `range` or `with`. `before` are the conditions of the earlier arms."""

    start: int
    condition: Condition | None
    inline: int
    before: list[Condition] = field(default_factory=list)
    arms: list[Arm] = field(default_factory=list)
    dot: str = ""
    """What `.` stands for: the subject of a `with`, of this block or one around it."""
    defines: bool = False
    over: str = ""
    """The code of a loop."""


class _TemplateReader:
    def __init__(self, text: str, script: bool) -> None:
        self.text = text
        self.script = script
        self.found = Template(text)
        self.inlined = 0
        """The end of the last optional range."""
        self.looked_at = (-1, -1, False)
        """The most recently checked lines, and whether they contain only templates."""
        self.blocks: list[_Block] = []
        self.steering: list[tuple[int, int]] = []
        """Templates in lines that print nothing."""

    def read(self) -> Template:
        tokens = [(m, self.line(m)) for m in TOKEN.finditer(self.text)]
        for m, (start, end) in tokens:
            self.token(m, start, end)
        self.found.arms.sort(key=lambda arm: arm.start)
        self.fill()
        return self.found

    def line(self, m: re.Match[str]) -> tuple[int, int]:
        """The lines of a token, including the end of the last line."""
        start = self.text.rfind("\n", 0, m.start()) + 1
        end = self.text.find("\n", max(m.end() - 1, m.start()))
        return start, len(self.text) if end < 0 else end + 1

    def token(self, m: re.Match[str], start: int, end: int) -> None:
        code = (m["comment"] or m["go"] or m["open"] or m["jinja"] or "").strip("-+ \t\r\n")
        word = re.match(r"\w*", code)
        first = word.group() if word else ""
        alone = m["flow"] is None and self.holds_tokens_alone(start, end)
        steers = m["note"] is not None or self.steers(m, first, code)
        if m["flow"] is None:
            self.turn(m, first, code, start, end, alone)
        dot = self.blocks[-1].dot if self.blocks else ""
        if alone and start >= self.inlined:
            self.hide(self.start_of(m, start, end), end, not steers)
            if not steers:
                self.found.prints.setdefault(start, Hole(*m.span(), code, dot=dot))
        elif m.start() >= self.inlined:
            reason = FROM_WORKFLOW if m["flow"] else FROM_TEMPLATE
            before, behind = self.trimmed(m)
            start, end = (before, behind) if steers else m.span()
            hole = Hole(start, end, code, reason, steers, m.start() + m.group().find(code), dot)
            self.found.holes += (*self.removed(before, start), hole, *self.removed(end, behind))
            if steers:
                self.steering.append(m.span())

    def holds_tokens_alone(self, start: int, end: int) -> bool:
        """Whether lines contain only templates; checked once for each group of lines."""
        if self.looked_at[:2] != (start, end):
            self.looked_at = start, end, not TOKEN.sub("", self.text[start:end]).strip()
        return self.looked_at[2]

    def trimmed(self, m: re.Match[str]) -> tuple[int, int]:
        """A template with the blanks and line ends that it removes (`{{-`, `-}}`)."""
        start, end = self.before(m.start()), m.end()
        if m.group()[-3:-2] == "-":
            behind = BLANKS.match(self.text, end)
            end = behind.end() if behind else end
        return start, end

    def before(self, at: int) -> int:
        """Where the blanks and line ends start that a template at `at` removes. Lines of templates alone are gone with their end."""
        if self.text[at + 2 : at + 3] == "-":
            first = self.found.hidden[-1][1] if self.found.hidden else 0
            while at > first and self.text[at - 1] in BLANK:
                at -= 1
        return at

    def start_of(self, m: re.Match[str], start: int, end: int) -> int:
        """Where a line that is a template alone starts: one that removes both of its line ends joins two lines of a script."""
        joins = self.script and m.group()[-3:-2] == "-" and self.text[start:end].strip() == m.group()
        return min(start, self.before(m.start())) if joins else start

    def removed(self, start: int, end: int) -> Iterator[Hole]:
        if start < end:
            yield Hole(start, end, "", silent=True)

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
        """Follow blocks: their arms, and optional ranges within a line."""
        if first in STARTS:
            condition = _condition(code[len(first) :], first == "unless")
            block = _Block(end if alone else m.end(), condition, -1 if alone else m.start())
            block.dot = condition.subject if first == "with" and condition.subject else self.dot_in(len(self.blocks))
            self.blocks.append(block)
        elif first in LOOPS:
            block = _Block(end, None, -1 if alone else m.start(), defines=first in ("define", "macro"))
            block.dot = ELEMENT if first == "range" else self.dot_in(len(self.blocks))
            block.over = code if first == "range" else ""
            self.blocks.append(block)
        elif first in ("else", "elif") and self.blocks:
            block = self.blocks[-1]
            by_lines = block.inline < 0 and not self.script
            self.close(block, start if by_lines else m.start())
            if block.condition is not None:
                block.before.append(block.condition)
            rest = re.sub(r"\A(?:else\s+)?(?:el)?if\b|\Aelse\b", "", code).strip()
            block.start, block.dot = end if by_lines else m.end(), self.dot_in(len(self.blocks) - 1)
            if block.condition is not None:
                block.condition = _condition(rest, False) if rest else Condition("", "", False)
        elif ENDS.match(first) and self.blocks:
            block = self.blocks.pop()
            if block.inline >= 0 and self.is_opaque(block, start, end):
                self.inline(block.inline, m.end())
                block.arms = []
            else:
                self.close(block, m.start() if block.inline >= 0 or (self.script and block.condition) else start)
            self.found.arms += block.arms

    def dot_in(self, depth: int) -> str:
        """What `.` stands for in the innermost of so many blocks."""
        return self.blocks[depth - 1].dot if depth else ""

    def close(self, block: _Block, end: int) -> None:
        """Close the open arm of a block."""
        if block.condition is None and block.inline < 0:
            (self.found.defined if block.defines else self.found.loops).append((block.start, end))
            asks = any(block.start <= arm.start < end for arm in self.found.arms)
            self.found.over[block.start] = "" if asks else block.over
        if block.condition is None or end < block.start:
            return
        own = (block.condition,) if block.condition.subject else ()
        against = tuple(Condition(c.subject, c.value, not c.negated) for c in block.before)
        block.arms.append(Arm(block.start, end, (*own, *against), block.inline >= 0))

    def is_opaque(self, block: _Block, start: int, end: int) -> bool:
        """Whether a block that ends in the line [start, end) contains nothing but unknown text."""
        loops = block.condition is None or self.inlined > block.inline or (block.inline < start and not self.script)
        return loops or not INLINE.search(self.text, min(start, block.inline), end)

    def inline(self, start: int, end: int) -> None:
        """Text in the middle of a line that may be left out."""
        holes = [h for h in self.found.holes if h.end <= start]
        self.found.holes = [*holes, *self.removed(self.before(start), start), Hole(start, end, "", FROM_BLOCK)]
        self.found.arms = [a for a in self.found.arms if not a.inline or a.end <= start]
        self.steering = [s for s in self.steering if s[1] <= start]
        self.found.hidden = [h for h in self.found.hidden if h[1] <= start]
        self.found.printed = [h for h in self.found.printed if h[1] <= start]
        self.inlined = end

    def hide(self, start: int, end: int, prints: bool) -> None:
        if not self.found.hidden or self.found.hidden[-1] != (start, end):
            self.found.hidden.append((start, end))
        if prints and (not self.found.printed or self.found.printed[-1] != (start, end)):
            self.found.printed.append((start, end))

    def fill(self) -> None:
        """Put holes and empty lines in place of templates."""
        self.found.holes = [h for h in self.found.holes if not self.is_hidden(h)]
        marks = [(h.start, h.end, HOLE) for h in self.found.holes if not h.silent]
        marks += [(a, b, self.in_place_of(a, b)) for a, b in self.steering if not self.found.hidden_in(a, b)]
        marks += [(a, b, "\n") for a, b in self.found.hidden]
        pieces: list[str] = []
        position = 0
        for start, end, char in sorted(marks):
            if start < position:
                continue
            pieces += (self.text[position:start], char * (end - start))
            position = end
        self.found.masked = "".join(pieces) + self.text[position:]

    def is_hidden(self, hole: Hole) -> bool:
        return any(start <= hole.start and hole.end <= end for start, end in self.found.hidden_in(hole.start, hole.end))

    def in_place_of(self, start: int, end: int) -> str:
        """The character in place of a template that prints nothing: a blank, unless that would split a scalar."""
        before = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        apart = before.strip() and before[-1] in SEPARATES
        return " " if apart or self.text[end : end + 1] in OPENS else HOLE


def _condition(code: str, negated: bool) -> Condition:
    code = re.sub(r"\A\$\w+ ?:?= ?", "", " ".join(code.strip("()- \t\n").split()))
    while code.startswith("not "):
        code, negated = code[4:].strip("() "), not negated
    ne = code.startswith("ne ")
    equals = EQUALS.match("eq " + code[3:] if ne else code)
    if equals is None:
        return Condition(code, "", negated)
    subject, value = (equals["a"], equals["b"]) if equals["a"] else (equals["c"], equals["d"])
    return Condition(subject, value, negated != ne)


def left_out(masked: str, lines: Sequence[tuple[int, int]], parts: Sequence[tuple[int, int]] = ()) -> str:
    """The text with some lines emptied, and parts of lines blanked; a line of which nothing remains is emptied too."""
    pieces: list[str] = []
    position = 0
    for start, end in sorted(lines):
        pieces += (masked[position:start], "\n" * (end - max(start, position)))
        position = max(position, end)
    masked = "".join(pieces) + masked[position:]
    for start, end in parts:
        masked = masked[:start] + (HOLE if masked[start - 1 : start] == HOLE else " ") * (end - start) + masked[end:]
        first, last = masked.rfind("\n", 0, start) + 1, (masked.find("\n", end) + 1 or len(masked) + 1) - 1
        if not masked[first:last].strip(" \t" + HOLE):
            masked = masked[:first] + "\n" * (last - first) + masked[last:]
    return masked


def dropping(holes: Sequence[Hole], parts: Sequence[tuple[int, int]]) -> Sequence[Hole]:
    """The holes, merged in order with parts of lines that print nothing."""
    if not parts:
        return holes
    outer = [p for p in parts if not any(q != p and q[0] <= p[0] and p[1] <= q[1] for q in parts)]
    kept = [h for h in holes if not any(a <= h.start and h.end <= b for a, b in outer)]
    return sorted(
        [*kept, *(Hole(a, b, "", FROM_BLOCK, True) for a, b in outer)], key=lambda hole: (hole.start, hole.end)
    )


def stretches(holes: Sequence[Hole], start: int, end: int) -> Iterator[tuple[int, int, Hole | None]]:
    """[start, end) split into pieces that are holes and pieces between."""
    for hole in holes:
        if hole.start > start:
            yield start, hole.start, None
        yield max(hole.start, start), min(hole.end, end), hole
        start = hole.end
    if start < end:
        yield start, end, None
