"""Commands that end sooner than they seem to: with a comment, a blank, an empty line or nothing where a backslash should continue them.

The launch is what bash reads; the lost lines are reported here, with edits that make them part of the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field
from spec_lsp.syntax.launch import Edit, Problem
from spec_lsp.syntax.shell.ast import Lit, Simple
from spec_lsp.syntax.source import FileSource, Source, WordSource
from spec_lsp.syntax.standing import Standing
from spec_lsp.syntax.word import Place

FLAGS_AFTER_COMMENT = "flags-after-comment"
BLANK_AFTER_BACKSLASH = "blank-after-backslash"
EMPTY_LINE_IN_COMMAND = "empty-line-in-command"
MISSING_BACKSLASH = "missing-backslash"

CONTINUED = expression(r"[ \t]*(?:\\\r?\n[ \t]*)*")
COMMENT = expression(r"#[^\r\n]*")
NEWLINE = expression(r"\r?\n")
FLAG_LINE = expression(r"[ \t]*--?[A-Za-z]")
FLAG = expression(r"(?<!\S)--?[A-Za-z][\w.-]*")

MAX_LINES = 200
MAX_PENDING = 20

Span = tuple[int, int]
Change = tuple[int, int, str]


@dataclass(slots=True)
class Lost:
    """The lines below a broken continuation: their flags, and the comments and empty lines between."""

    flags: list[str] = field(default_factory=list)
    lines: list[Span] = field(default_factory=list)
    """The lines of flags, without line ends."""
    between: list[Span] = field(default_factory=list)
    """The lines, with line ends, before or between lines of flags."""
    end: int = 0


@dataclass(slots=True)
class Break:
    rule: str
    span: Span
    lost: Lost
    changes: list[Change]
    title: str


def broken_continuations(
    commands: Iterable[tuple[Simple, Source]],
    texts: Mapping[str, str],
    standing: Standing | None = None,
) -> tuple[Problem, ...]:
    """The broken continuations of the commands that start SGLang, with places in the texts. `standing` is the script's own, if its places
    are anchored."""
    found: dict[Place, Problem] = {}
    for node, source in commands:
        start, end, text, placed = _text_of(node, source, texts, standing)
        broken = find_break(text, start, end, hidden_comment(node, start - node.start))
        if broken is not None:
            problem = _problem(broken, placed)
            found.setdefault(problem.place, problem)
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class _Placed:
    """Maps offsets of the text that contains a command to places."""

    source: Source
    document: str | None
    standing: Standing | None

    def place(self, start: int, end: int) -> Place:
        if self.document is None:
            place = self.source.place(start, end)
            return place if self.standing is None else self.standing.place(place)
        return Place(self.document, start, end)


def _text_of(
    node: Simple, source: Source, texts: Mapping[str, str], standing: Standing | None
) -> tuple[int, int, str, _Placed]:
    if isinstance(source, FileSource):
        text = texts.get(source.document, "")
        base = (
            standing.offset(source.base)
            if standing is not None and source.document == standing.document
            else source.base
        )
        return base + node.start, base + node.end, text, _Placed(source, source.document, standing)
    assert isinstance(source, WordSource)
    whole = source.statement(0, source.whole)
    return source.base + node.start, source.base + node.end, source.whole, _Placed(whole, None, standing)


def hidden_comment(node: Simple, base: int = 0) -> int | None:
    r"""Where the first word starts that is an escaped blank followed by `#`: `--tp 8 \ # why` contains no comment."""
    for word in node.words:
        if word.literal is not None and word.literal[:2] in (" #", "\t#"):
            first, second = word.parts[0], word.parts[min(1, len(word.parts) - 1)]
            bare = isinstance(second, Lit) and second.verbatim and second.start == word.start + 2
            if bare and isinstance(first, Lit) and not first.verbatim and first.start == word.start:
                return base + word.start
    return None


def find_break(text: str, start: int, end: int, hidden: int | None = None) -> Break | None:
    """The broken continuation that ends the command [start, end), if any."""
    escaped = (hidden, hidden + 2) if hidden is not None else _escaped_blank(text, start, end)
    if escaped is not None:
        return _blank_break(text, start, escaped)
    m = CONTINUED.match(text, end)
    assert m is not None
    at = m.end()
    if text.startswith("#", at):
        return _comment_break(text, start, end, at)
    if not NEWLINE.match(text, at):
        return None
    line = text.rfind("\n", 0, at) + 1
    if "\\" in m.group():
        return _empty_line_break(text, start, line, at)
    return _missing_break(text, start, end, at)


def _escaped_blank(text: str, start: int, end: int) -> Span | None:
    """A backslash followed by blanks at the end of a line: from the backslash to the end of the blanks."""
    backslash = end - 2
    if backslash <= start or text[backslash : end - 1] != "\\" or text[end - 1] not in " \t":
        return None
    if text[backslash - 1] not in " \t":
        return None
    m = re.compile(r"[ \t]*").match(text, end)
    assert m is not None
    behind = m.end()
    return (backslash, behind) if behind == len(text) or text[behind] in "\r\n#" else None


def _blank_break(text: str, start: int, span: Span) -> Break:
    backslash, behind = span
    comment = COMMENT.match(text, behind)
    line_end = comment.end() if comment else behind
    lost = lost_lines(text, line_end)
    if not lost.flags:
        before = len(text[:backslash].rstrip(" \t"))
        return Break(
            BLANK_AFTER_BACKSLASH,
            span,
            lost,
            [(before, behind if not comment else behind - 1, "")],
            "Remove the backslash",
        )
    if comment:
        changes = _mended(text, start, [comment.group()], [(backslash + 1, line_end, "")], lost)
        return Break(BLANK_AFTER_BACKSLASH, span, lost, changes, "Move the comment above the command")
    changes = _mended(text, start, [], [(backslash + 1, behind, "")], lost)
    return Break(BLANK_AFTER_BACKSLASH, span, lost, changes, "Remove the blanks behind the backslash")


def _comment_break(text: str, start: int, end: int, at: int) -> Break | None:
    comment = COMMENT.match(text, at)
    assert comment is not None
    lost = lost_lines(text, comment.end())
    if not lost.flags:
        return None
    own_line = "\n" in text[end:at]
    if own_line:
        line = text.rfind("\n", 0, at) + 1
        newline = NEWLINE.match(text, comment.end())
        own = (line, newline.end() if newline else comment.end(), "")
    else:
        own = (len(text[:at].rstrip(" \t")), comment.end(), " \\")
    changes = _mended(text, start, [comment.group()], [own], lost)
    return Break(FLAGS_AFTER_COMMENT, comment.span(), lost, changes, "Move the comment above the command")


def _empty_line_break(text: str, start: int, line: int, at: int) -> Break | None:
    newline = NEWLINE.match(text, at)
    assert newline is not None
    lost = lost_lines(text, at)
    if not lost.flags:
        return None
    backslash = text.rfind("\\", 0, line)
    changes = _mended(text, start, [], [(line, newline.end(), "")], lost)
    return Break(EMPTY_LINE_IN_COMMAND, (backslash, line), lost, changes, "Remove the empty line")


def _missing_break(text: str, start: int, end: int, at: int) -> Break | None:
    newline = NEWLINE.match(text, at)
    assert newline is not None
    if not FLAG_LINE.match(text, newline.end()):
        return None
    lost = lost_lines(text, at)
    last = max(text.rfind(" ", 0, end), text.rfind("\t", 0, end), text.rfind("\n", 0, end)) + 1
    changes = _mended(text, start, [], [(end, at, " \\")], lost)
    return Break(MISSING_BACKSLASH, (last, end), lost, changes, "Add the backslash")


def reach(text: str, at: int) -> int:
    """The offset up to which commands may be lengthened by an edit at the given offset; commands that end further above are unaffected."""
    for _ in range(MAX_LINES + MAX_PENDING):
        at = text.rfind("\n", 0, at)
        if at < 0:
            break
    return max(at, 0)


def lost_lines(text: str, end: int) -> Lost:
    """The lines of flags below the line that ends at `end`."""
    lost = Lost(end=end)
    pending: list[Span] = []
    newline = NEWLINE.match(text, end)
    position = newline.end() if newline else len(text)
    for _ in range(MAX_LINES):
        if position >= len(text):
            break
        line_end = text.find("\n", position)
        line_end = len(text) if line_end < 0 else line_end
        after = min(line_end + 1, len(text))
        line = text[position:line_end].rstrip("\r")
        if FLAG_LINE.match(line):
            lost.flags.extend(FLAG.findall(line.split(" #")[0]))
            lost.lines.append((position, position + len(line)))
            lost.between.extend(pending)
            pending = []
            lost.end = position + len(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            pending.append((position, after))
            if len(pending) > MAX_PENDING or (lost.flags and text[lost.end - 1] != "\\"):
                break
        else:
            break
        position = after
    return lost


def _mended(text: str, start: int, comments: list[str], own: list[Change], lost: Lost) -> list[Change]:
    """`own` edits together with those that continue the lines below: their comments are moved above the line on which the command starts.

    No edits if comments cannot be placed there, because that line itself continues another.
    """
    moved = list(comments)
    changes = list(own)
    for a, b in lost.between:
        content = text[a:b].strip()
        changes.append((a, b, ""))
        moved += [content] if content else []
    for a, b in lost.lines[:-1]:
        comment = _comment_at(text, a, b)
        body = len(text[a:comment].rstrip(" \t")) + a
        moved += [text[comment:b]] if comment < b else []
        if text[body - 1] != "\\":
            changes.append((body, b, " \\"))
        elif body < b:
            changes.append((body, b, ""))
    if not moved:
        return changes
    line = text.rfind("\n", 0, start) + 1
    if text[:line].rstrip("\r\n").endswith("\\"):
        return []
    indent = text[line : line + len(text[line:start]) - len(text[line:start].lstrip(" \t"))]
    eol = "\r\n" if "\r\n" in text else "\n"
    return [(line, line, "".join(f"{indent}{comment}{eol}" for comment in moved)), *changes]


def _comment_at(text: str, start: int, end: int) -> int:
    """Where the comment on a line of flags starts, `end` if there is none."""
    for m in re.compile(r"(?<=[ \t])#").finditer(text, start, end):
        before = text[start : m.start()]
        if before.count("'") % 2 == 0 and before.count('"') % 2 == 0:
            return m.start()
    return end


def _problem(broken: Break, placed: _Placed) -> Problem:
    edits = tuple(Edit(placed.place(a, b), new) for a, b, new in broken.changes if a < b or new)
    return Problem(broken.rule, placed.place(*broken.span), _message(broken), edits, broken.title if edits else "")


def _message(broken: Break) -> str:
    flags = broken.lost.flags
    named = ", ".join(dict.fromkeys(flags[:6])) + (f" and {len(flags) - 6} more" if len(flags) > 6 else "")
    verb = "is" if len(flags) == 1 else "are"
    lost = f"{named} below {verb} not passed to SGLang"
    if broken.rule == FLAGS_AFTER_COMMENT:
        return f"The shell ends the command at this comment: {lost}."
    if broken.rule == EMPTY_LINE_IN_COMMAND:
        return f"The shell ends the command at the empty line behind this backslash: {lost}."
    if broken.rule == MISSING_BACKSLASH:
        return f"The shell ends the command at this line, which has no backslash at its end: {lost}."
    if not flags:
        return "The blank behind this backslash becomes an argument, which SGLang refuses."
    return f"The shell ends the command here, for a blank follows the backslash: {lost}."
