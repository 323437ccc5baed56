"""Reads the words of one statement of a shell script, and leaves its skeleton to tree-sitter-bash.

In the skeleton each command stands as one word, `www`, of its own length, and all that the grammar reads otherwise than bash is
made something of the same length that it reads alike. So the tree of the skeleton (`structure.py`) is that of the statement, and
its bytes are our characters. What is lifted out or mended, all of it here:

| written | bash | the grammar alone |
| --- | --- | --- |
| words, assignments, arrays, `((…))` | what `words.py` reads | loses blanks, escapes, second expansions; `x=(x=(` takes it forever |
| `a <<A <<B \\| c`, `a && { b; } > f` | a here-document or redirect belongs to its command | to all that follows or goes before |
| `! ! a \\| b`, `time { a; }`, `coproc S { a; }` | words before a pipeline | negates `a` alone; reads `time` and `coproc` as commands |
| `f() for …`, `f() { a; } > g` | any compound command is a body | only some are |
| `for x in; do`, `for x; { a; }` | no words; braces instead of `do` | an error |
| `case x in a\\|b) … ;;&` | patterns are words | extended globs; takes `;;&` apart |
| `{ { a; } }`, `if (a) then` | nothing need stand between a compound command and a reserved word | an error: it gets its `;` |
| `((a); b)` | a subshell in a subshell | an arithmetic command: the outer parenthesis moves aside |
| `a \\| b \\| c`, newline, `d` | two pipelines | may be one command: a newline that ends a command becomes `;` |
| `fi`, `done`, `}`, `; ;` | an error | commands: refused here |

`parse_statement` reads from a position through the newline that ends the statement, here-documents included. What it returns
depends on no character behind that newline. In a statement that bash would refuse, `tolerant` reads the first line as
far as it goes: quotes end with their line, and a compound command that has no end is what stands on the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from spec_lsp.interruption import checkpoint
from spec_lsp.syntax.shell.ast import (
    ArithmeticCommand,
    Assign,
    Command,
    Compare,
    Element,
    For,
    Function,
    Group,
    Lit,
    Opaque,
    Part,
    Redirect,
    Script,
    Simple,
    WordNode,
)
from spec_lsp.syntax.shell.scanner import Heredoc, ShellSyntaxError
from spec_lsp.syntax.shell.words import MAX_DEPTH, PLAIN, WordParser, closing_bracket, word_of

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=|\[)")
REDIRECT = re.compile(r"(\d+|\{[A-Za-z_]\w*\})?(<<<|<<-?|<>|<&|>&|>>|>\||<(?!\()|>(?!\())|(&>>?)")
REDIRECT_STARTS = frozenset("<>&{0123456789")
OPERATOR = re.compile(r";;&|;;|;&|&&|\|\||\|&|[;&|]")
FUNCTION = re.compile(r"([^\s\"'\\$`;&|<>()=]+)[ \t]*\([ \t]*\)")
PARENTHESES = re.compile(r"[ \t]*\([ \t]*\)")
PREFIX = re.compile(
    r"!|time(?:[ \t]+-p(?=\s))?|coproc(?:[ \t]+[A-Za-z_]\w*(?=[ \t]+(?:[{(]|(?:if|for|while|until|case|\[\[)\s)))?"
)
UNARY = re.compile(r"-[a-zA-Z](?=[ \t\r\n\\])")
BINARY = re.compile(r"(?:==|=~|!=|=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))(?=[ \t\r\n\\]|\Z)|[<>]")
DECLARATIONS = frozenset({"export", "local", "declare", "typeset", "readonly"})

FOLLOWING = {
    "if": ("then",),
    "elif": ("then",),
    "then": ("elif", "else", "fi"),
    "else": ("fi",),
    "while": ("do",),
    "until": ("do",),
    "do": ("done",),
    "{": ("}",),
    "(": (")",),
    "[[": ("]]",),
}
"""What goes on with a construct or closes it, behind a word of it; what stands last leads to its end."""
PATTERNS, ARM = ("esac",), (";;", "esac")
OPENING = frozenset({"if", "while", "until", "{"})


@dataclass(slots=True, eq=False)
class Statement:
    """One statement from its first character through its newline; all offsets count from that character."""

    script: Script
    comments: tuple[tuple[int, int], ...]
    assigns: frozenset[str] | None = None
    """The variables it may set, once somebody asked."""


def parse_statement(text: str, start: int, end: int, *, tolerant: bool = False) -> tuple[Statement, int]:
    """The statement that begins at `start`, and the offset behind it. Offsets in its nodes are those of `text`.

    Raises ShellSyntaxError unless `tolerant`.
    """
    reader = SkeletonReader(text, start, end, tolerant)
    script = reader.commands("\n")
    return Statement(script, tuple(reader.comments)), reader.pos


@dataclass(slots=True, eq=False)
class Head:
    """What stands before a command or pipeline and is lifted out."""

    start: int
    negated: bool = False
    wraps: list[Callable[[Command], Command]] = field(default_factory=list)
    """Makes functions and loops of the command, the innermost last."""


@dataclass(slots=True, eq=False)
class _Level:
    """Where reading is in one list of commands."""

    open: list[tuple[str, ...]] = field(default_factory=list)
    """For each construct that is open, what goes on with it or closes it."""
    ready: bool = True
    """A command may begin here."""
    needed: bool = False
    """A command must begin here."""
    piped: bool = False
    closed: int = -1
    """Where a compound command ended, if only redirects have followed."""
    head: Head | None = None
    token: int = 0
    """Where reading is; what stands before is in the skeleton."""


@dataclass(slots=True, eq=False)
class SkeletonReader(WordParser):
    """Reads the commands of a text and writes their skeleton; all positions are those of the text."""

    base: int = field(init=False)
    skeleton: bytearray | None = field(init=False, default=None)
    """Character `i` stands at `i - base + 1`."""
    level: _Level = field(init=False, default_factory=_Level)
    leaves: dict[int, Simple | ArithmeticCommand | Compare] = field(init=False, default_factory=dict)
    """What a word of the skeleton is, by where it starts."""
    heads: dict[int, Head] = field(init=False, default_factory=dict)
    loops: dict[int, tuple[str, tuple[WordNode, ...] | None, tuple[WordNode, ...] | None, bool]] = field(
        init=False, default_factory=dict
    )
    """Name, words, header and whether it is a `select`, of a loop by where it starts."""
    subjects: dict[int, WordNode] = field(init=False, default_factory=dict)
    patterns: dict[int, tuple[WordNode, ...]] = field(init=False, default_factory=dict)
    falls_through: set[int] = field(init=False, default_factory=set)
    redirects: dict[int, list[Redirect]] = field(init=False, default_factory=dict)
    """Those of a compound command, by where it ends."""

    def __post_init__(self) -> None:
        self.base = self.pos

    # Lists.

    def commands(self, stop: str) -> Script:
        """Commands up to `stop`: through a newline that ends a statement, up to a `)` that is not theirs, or "" to the end."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail()
        outer, self.level = self.level, _Level()
        if self.skeleton is None:
            self.skeleton = bytearray(b" " * (self.end - self.base + 1))
        start = self.pos
        try:
            self.read(stop)
        except ShellSyntaxError:
            if not self.tolerant:
                raise
            self.write(self.level.token, b" " * (self.end - self.level.token))
            self.pos = self.end
        script = self.structured(start)
        self.level = outer
        self.depth -= 1
        return script

    def read(self, stop: str) -> None:
        level = self.level
        while True:
            self.blanks()
            if self.pos >= self.end:
                if not self.tolerant and (level.open or level.needed or stop == ")" or (stop and self.heredocs)):
                    self.fail()
                return
            char = self.text[self.pos]
            level.token = self.pos
            if char == "\n" or (char == "\r" and self.at("\r\n")):
                self.end_of_line()
                if stop == "\n" and not level.open and not level.needed:
                    return
            elif level.open and level.open[-1] is PATTERNS:
                self.case_arm()
            elif char == ")":
                if stop == ")" and not level.open and not level.needed:
                    return
                self.go_on(")")
            elif char in ";&|" and not self.at("&>"):
                self.separator()
            elif level.ready:
                self.command()
            elif not self.redirect(self.redirects.setdefault(level.closed, [])):
                self.go_on(self.reserved())

    def end_of_line(self) -> None:
        start, level = self.pos, self.level
        self.newline()
        self.write(start, b" " * (self.pos - start))  # what here-documents held
        if not level.ready:
            self.write(start, b";")
        if not level.needed:
            level.head = None
        level.ready, level.closed = True, -1

    def separator(self) -> None:
        m = OPERATOR.match(self.text, self.pos, self.end)
        assert m is not None
        start, op, level = self.pos, m.group(), self.level
        self.pos = m.end()
        if op in (";;", ";&", ";;&"):
            if level.needed or not level.open or level.open[-1] is not ARM:
                self.fail()
            if level.ready and self.written(start - 1) == ";":
                self.write(start - 1, b" ")
            self.write(start, b";;")
            if op != ";;":
                self.falls_through.add(start)
            level.open[-1] = PATTERNS
        else:
            if level.ready:
                self.fail()
            self.write(start, op.encode())
            level.needed = op not in (";", "&")
        level.piped = op[0] == "|" and op != "||"
        level.ready, level.closed, level.head = True, -1, None

    def go_on(self, word: str) -> None:
        """A word that goes on with the innermost construct, or closes it."""
        level = self.level
        if level.needed or not level.open or word not in level.open[-1]:
            self.fail()
        if not level.ready and 0 <= level.closed < self.pos:
            self.write(self.pos - 1, b";")
        self.write(self.pos, word.encode())
        self.pos += len(word)
        if word in FOLLOWING:
            level.open[-1] = FOLLOWING[word]
            level.ready, level.closed, level.piped = True, -1, False
        else:
            level.open.pop()
            self.compound_ends()

    def compound_ends(self) -> None:
        self.level.ready = self.level.needed = False
        self.level.closed = self.pos

    def write(self, start: int, skeleton: bytes) -> None:
        assert self.skeleton is not None
        at = start - self.base + 1
        self.skeleton[at : at + len(skeleton)] = skeleton

    def written(self, at: int) -> str:
        assert self.skeleton is not None
        return chr(self.skeleton[at - self.base + 1])

    def structured(self, start: int) -> Script:
        """The commands of the skeleton [start, pos); what is open is closed behind it."""
        from spec_lsp.syntax.shell.structure import Structure  # tree-sitter takes a while to import

        level = self.level
        assert self.skeleton is not None
        skeleton = bytes(self.skeleton[start - self.base : self.pos - self.base + 1])
        if skeleton.isspace():
            return Script(start, self.pos, ())
        if level.needed:
            skeleton += b" w"
        ready = level.ready and not level.needed
        for following in reversed(level.open):
            while following:
                word = following[-1]
                skeleton += (b"\n" if ready or word in ("]]", ")") else b";") + word.encode()
                ready = word in FOLLOWING
                following = FOLLOWING.get(word, ())
        return Structure(self, start - 1).script(skeleton, start, self.pos)

    # Commands.

    def command(self) -> None:
        checkpoint()
        level, start = self.level, self.pos
        if self.text[start] == "(":
            self.parenthesis()
            return
        word = self.reserved()
        if word in ("!", "time", "coproc") and not level.piped:
            self.prefix()
        elif word in OPENING:
            self.opens(word)
        elif word in ("for", "select"):
            self.loop(word)
        elif word == "case":
            self.case_head()
        elif word == "[[":
            self.test()
        elif word == "function":
            self.function_keyword()
        elif word and word not in ("time", "coproc"):
            self.go_on(word)
        elif m := FUNCTION.match(self.text, start, self.end):
            self.function(start, m.group(1), m.end())
        else:
            self.simple()

    def begins(self, at: int) -> None:
        """A command begins, `at` in the skeleton."""
        level = self.level
        if level.head is not None:
            self.heads[at] = level.head
        level.ready = level.needed = False
        level.head = None

    def opens(self, word: str, at: int | None = None) -> None:
        """A construct opens; its word stands `at` in the skeleton."""
        level = self.level
        at = self.pos if at is None else at
        self.begins(at)
        self.write(at, word.encode())
        self.pos += len(word)
        level.open.append(FOLLOWING[word])
        if len(level.open) + self.depth > MAX_DEPTH:
            self.fail()
        level.ready, level.piped = True, False

    def prefix(self) -> None:
        m = PREFIX.match(self.text, self.pos, self.end)
        assert m is not None
        level = self.level
        if level.head is None:
            level.head = Head(self.pos)
        level.head.negated ^= m.group() == "!"
        self.pos = m.end()

    def parenthesis(self) -> None:
        start = self.pos
        if not self.at("(("):
            self.opens("(")
            return
        close = self.balanced(start + 2)
        if close is None:
            self.opens("(", start - 1 if self.written(start - 1) == " " else start)
            return
        expression = self.inner_text(start + 2, close)
        self.pos = close + 2
        self.leaves[start] = ArithmeticCommand(start, self.pos, expression)
        self.begins(start)
        self.write(start, b"w" * (self.pos - start))
        self.compound_ends()

    def loop(self, word: str) -> None:
        """`for` and `select` through what stands before `do`."""
        start = self.pos
        self.pos += len(word)
        self.blanks()
        name = ""
        words: list[WordNode] | None = None
        header: tuple[WordNode, ...] | None = None
        if self.at("(("):
            close = self.balanced(self.pos + 2)
            if close is None:
                self.fail()
            header = self.for_header(self.pos + 2, close)
            first = NAME.match(header[0].literal.strip() if header and header[0].literal else "")
            name = first.group() if first else ""
            self.pos = close + 2
        else:
            m = NAME.match(self.text, self.pos, self.end)
            if not m:
                self.fail()
            name = m.group()
            self.pos = m.end()
            self.newlines()
            if self.at("in") and not NAME.match(self.text, self.pos + 2, self.end):
                self.pos += 2
                words = []
                self.blanks()
                while self.pos < self.end and self.text[self.pos] not in ";\n\r&|()<>":
                    words.extend(self.words())
                    self.blanks()
        self.blanks()
        if self.at(";"):
            self.pos += 1
        self.newlines()
        listed = None if words is None else tuple(words)
        if self.reserved() == "{":
            self.wrap(start, lambda body: _braced_loop(start, name, listed, header, word == "select", body))
            self.write(start, b" " * (self.pos - start))
            return
        self.loops[start] = (name, listed, header, word == "select")
        self.begins(start)
        self.write(start, b"for " + b"w" * (self.pos - start - 5) + b";")
        self.level.open.append(("do",))
        self.level.ready = True

    def for_header(self, start: int, end: int) -> tuple[WordNode, ...]:
        """The three expressions of `for ((…; …; …))`."""
        found: list[WordNode] = []
        for piece in self.text[start:end].split(";"):
            found.append(self.inner_text(start, start + len(piece)))
            start += len(piece) + 1
        if len(found) != 3:
            self.fail()
        return tuple(found)

    def case_head(self) -> None:
        start = self.pos
        self.pos += len("case")
        self.blanks()
        self.subjects[start] = self.word()
        self.newlines()
        self.take("in")
        self.begins(start)
        self.write(start, b"case " + b"w" * (self.pos - start - 8) + b" in")
        self.level.open.append(PATTERNS)
        self.level.ready = True

    def case_arm(self) -> None:
        """The patterns of an arm, or the end of them all."""
        level, start = self.level, self.pos
        if self.reserved() == "esac":
            self.go_on("esac")
            return
        if self.at("("):
            self.pos += 1
        patterns: list[WordNode] = []
        while True:
            self.blanks()
            patterns.append(self.word())
            self.blanks()
            if not self.at("|"):
                break
            self.pos += 1
        self.take(")")
        self.patterns[start] = tuple(patterns)
        self.write(start, b"w" * (self.pos - 1 - start) + b")")
        level.open[-1] = ARM
        level.piped = False

    def function_keyword(self) -> None:
        start = self.pos
        self.pos += len("function")
        self.blanks()
        m = PLAIN.match(self.text, self.pos, self.end)
        if not m:
            self.fail()
        parentheses = PARENTHESES.match(self.text, m.end(), self.end)
        self.function(start, m.group(), parentheses.end() if parentheses else m.end())

    def function(self, start: int, name: str, behind: int) -> None:
        self.pos = behind
        self.wrap(start, lambda body: Function(start, body.end, name, body))
        self.level.needed = True

    def wrap(self, start: int, make: Callable[[Command], Command]) -> None:
        level = self.level
        if level.head is None:
            level.head = Head(start)
        level.head.wraps.append(make)
        if len(level.head.wraps) + self.depth > MAX_DEPTH:
            self.fail()

    def simple(self) -> None:
        """A simple command with its redirects: one word of the skeleton."""
        start = last = self.pos
        outer, self.assigning = self.assigning, False
        assigns: list[Assign] = []
        words: list[WordNode] = []
        redirects: list[Redirect] = []
        try:
            while True:
                self.blanks()
                if self.pos >= self.end:
                    break
                char = self.text[self.pos]
                if char in ";|\n)" or (char == "\r" and self.at("\r\n")) or (char == "&" and not self.at("&>")):
                    break
                if self.redirect(redirects):
                    last = self.pos
                    continue
                if char == "(":
                    self.fail()
                if not words or (words[0].literal in DECLARATIONS):
                    assign = self.assignment()
                    if assign is not None:
                        assigns.append(assign)
                        last = self.pos
                        continue
                words.extend(self.words())
                last = self.pos
        except ShellSyntaxError:
            if not self.tolerant:
                raise
            self.write(last, b" " * (self.end - last))
            self.pos = self.end
        if last == start:
            self.fail()
        self.leaves[start] = Simple(start, last, tuple(assigns), tuple(words), tuple(redirects), self.assigning)
        self.assigning |= outer
        self.begins(start)
        self.write(start, b"w" * (last - start))

    # Redirects and assignments.

    def redirect(self, found: list[Redirect]) -> bool:
        m = REDIRECT.match(self.text, self.pos, self.end) if self.text[self.pos] in REDIRECT_STARTS else None
        if not m:
            return False
        start, op = self.pos, m.group(2) or m.group(3)
        self.pos = m.end()
        self.blanks()
        target = self.word()
        redirect = Redirect(op, target, target if op == "<<<" else None, m.group(1) or "")
        found.append(redirect)
        self.write(start, b" " * (self.pos - start))
        if op in ("<<", "<<-"):
            self.heredocs.append(Heredoc(redirect, _unquoted(target), target.quoted, op == "<<-"))
        return True

    def assignment(self) -> Assign | None:
        start = self.pos
        m = ASSIGNMENT.match(self.text, start, self.end)
        if not m:
            return None
        index = None
        if m.group(2) == "[":
            close = closing_bracket(self.text, m.end(), self.end)
            if close < 0 or not re.compile(r"\+?=").match(self.text, close + 1, self.end):
                return None
            index = self.inner_text(m.end(), close)
            append = self.text[close + 1] == "+"
            self.pos = close + (3 if append else 2)
        else:
            append = m.group(2) == "+="
            self.pos = m.end()
        if self.at("("):
            elements = self.array()
            return Assign(start, self.pos, m.group(1), append, None, elements, index)
        if self.pos >= self.end or self.text[self.pos] in " \t\n\r;&|)":
            value = WordNode(self.pos, self.pos, (), "")
        else:
            value = self.word()
        return Assign(start, self.pos, m.group(1), append, value, None, index)

    def array(self) -> tuple[Element, ...]:
        self.pos += 1
        elements: list[Element] = []
        while True:
            self.newlines()
            if self.pos >= self.end:
                if self.tolerant:
                    return (
                        *elements,
                        Element(
                            WordNode(
                                self.pos, self.pos, (Opaque(self.pos, self.pos, False, "the array is not closed"),)
                            )
                        ),
                    )
                self.fail()
            if self.at(")"):
                self.pos += 1
                return tuple(elements)
            key = None
            if self.at("["):
                m = re.compile(r"\[([^\]\n]*)\]=").match(self.text, self.pos, self.end)
                if m:
                    key = self.inner_text(m.start(1), m.end(1))
                    self.pos = m.end()
            before = self.pos
            if key is not None and (self.pos >= self.end or self.text[self.pos] in " \t\n\r)"):
                elements.append(Element(WordNode(self.pos, self.pos, (), ""), key))
                continue
            elements.extend(Element(word, key) for word in (self.words() if key is None else [self.word()]))
            if self.pos == before:
                self.fail()

    # [[ … ]]

    def test(self) -> None:
        """Leaves each comparison as a word."""
        level = self.level
        self.opens("[[")
        outside = len(level.open)
        level.needed = True
        while True:
            self.newlines()
            if self.pos >= self.end:
                if not self.tolerant:
                    self.fail()
                return
            here = level.token = self.pos
            if level.needed and self.at("!") and self.text[here + 1 : here + 2] in (" ", "\t", "("):
                self.write(here, b"!")
                self.pos += 1
            elif level.needed and self.at("("):
                self.opens("(")
                level.needed = True
            elif level.needed:
                comparison = self.comparison()
                self.leaves[here] = comparison
                self.write(here, b"w" * (comparison.right.end - here))
                level.needed = False
            elif self.at("&&") or self.at("||"):
                self.write(here, self.text[here : here + 2].encode())
                self.pos += 2
                level.needed = True
            elif self.at(")") and len(level.open) > outside:
                self.write(here, b")")
                self.pos += 1
                level.open.pop()
            else:
                break
        if len(level.open) > outside:
            self.fail()
        self.go_on("]]" if self.at("]]") else "")

    def comparison(self) -> Compare:
        m = UNARY.match(self.text, self.pos, self.end)
        if m:
            before = self.pos
            self.pos = m.end()
            self.newlines()
            if not BINARY.match(self.text, self.pos, self.end):
                return Compare(m.group(), None, self.word())
            self.pos = before
        left = self.word()
        self.newlines()
        m = BINARY.match(self.text, self.pos, self.end)
        if not m:
            return Compare("-n", None, left)
        self.pos = m.end()
        self.newlines()
        right = self.regular_expression() if m.group() == "=~" else self.word()
        return Compare(m.group(), left, right)

    def regular_expression(self) -> WordNode:
        """The right side of `=~`: parentheses and bars are characters of it."""
        start = self.pos
        parts: list[Part] = []
        depth = 0
        while self.pos < self.end:
            char = self.text[self.pos]
            if char in " \t\r\n" and depth <= 0:
                break
            if char in "()|<>;&" or char in " \t":
                depth += {"(": 1, ")": -1}.get(char, 0)
                if char == ")" and depth < 0:
                    break
                parts.append(Lit(self.pos, self.pos + 1, char, False))
                self.pos += 1
                continue
            if char == "\n":
                self.fail()
            if char == "\\":
                parts.append(Lit(self.pos, self.pos + 2, self.text[self.pos : self.pos + 2], False))
                self.pos += 2
                continue
            parts.extend(self.word().parts)
        if self.pos == start:
            self.fail()
        return word_of(start, self.pos, parts, False)


def _unquoted(word: WordNode) -> str:
    """The delimiter of a here-document: its text, with expansions taken as written."""
    return word.literal if word.literal is not None else ""


def _braced_loop(
    start: int,
    name: str,
    words: tuple[WordNode, ...] | None,
    header: tuple[WordNode, ...] | None,
    select: bool,
    body: Command,
) -> Command:
    """A loop whose body stands in braces."""
    assert isinstance(body, Group)
    return For(start, body.end, name, words, body.body, body.redirects, header, select)
