"""Reads the words of one statement of a shell script, and leaves its skeleton to tree-sitter-bash.

The skeleton of `if [ "$1" = a ]; then b > f & fi` is `if w ; then w & fi`: each command is one word, and all that the grammar reads
otherwise than bash is written so that it reads the same. Each word of it knows what it stands for, so the tree of the skeleton
(`structure.py`) is that of the statement, in characters whatever the encoding. What is lifted out or mended, all of it here:

| written | bash | the grammar alone |
| --- | --- | --- |
| words, assignments, arrays, `((…))` | what `words.py` reads | loses blanks, escapes, second expansions; `x=(x=(` takes it forever |
| `a <<A <<B \\| c`, `a && { b; } > f` | a here-document or redirect belongs to its command | to all that follows or goes before |
| `! ! a \\| b`, `time { a; }`, `coproc S { a; }` | words before a pipeline | negates `a` alone; reads `time` and `coproc` as commands |
| `f() for …`, `f() { a; } > g` | any compound command is a body | only some are |
| `for x in; do`, `for x; { a; }` | no words; braces instead of `do` | an error |
| `case x in a\\|b) … ;;& … esac\\|c` | patterns are words, `esac` is none | extended globs; takes `;;&` apart and `esac\\|c` together |
| `{ { a; } }`, `if (a) then` | nothing need stand between a compound command and a reserved word | an error: there is a `;` between them |
| `((a); b)` | a subshell in a subshell | an arithmetic command: there is a blank between them |
| `a \\| b \\| c`, newline, `d` | two pipelines | may be one command: a newline that ends a command becomes `;` |
| `fi`, `done`, `}`, `; ;` | an error | commands: refused here |

`parse_statement` reads from a position through the newline that ends the statement, here-documents included. What it returns
depends on no character behind that newline. In a statement that bash would refuse, `tolerant` reads the first line as
far as it goes: quotes end with their line, and a compound command that has no end is what stands on the line.
"""

from __future__ import annotations

import re

from spec_lsp.expressions import expression
from spec_lsp.interruption import checkpoint
from spec_lsp.records import dataclass, field
from spec_lsp.syntax.shell import ast
from spec_lsp.syntax.shell.scanner import Heredoc, ShellSyntaxError
from spec_lsp.syntax.shell.words import MAX_DEPTH, WordParser, closing_bracket, word_of

NAME = expression(r"[A-Za-z_][A-Za-z0-9_]*")
ASSIGNMENT = expression(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=|\[)")
REDIRECT = expression(r"(\d+|\{[A-Za-z_]\w*\})?(<<<|<<-?|<>|<&|>&|>>|>\||<(?!\()|>(?!\())|(&>>?)")
REDIRECT_STARTS = frozenset("<>&{0123456789")
OPERATOR = expression(r";;&|;;|;&|&&|\|\||\|&|[;&|]")
FUNCTION = expression(r"(?:function[ \t]+)?([^\s\"'\\$`;&|<>()]+)[ \t]*(\([ \t]*\))?")
PREFIX = expression(
    r"!|time(?:[ \t]+-p(?=\s))?|coproc(?:[ \t]+[A-Za-z_]\w*(?=[ \t]+(?:[{(]|(?:if|for|while|until|case|\[\[)\s)))?"
)
UNARY = expression(r"-[a-zA-Z](?=[ \t\r\n\\])")
BINARY = expression(r"(?:==|=~|!=|=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))(?=[ \t\r\n\\]|\Z)|[<>]")
DECLARATIONS = frozenset({"export", "local", "declare", "typeset", "readonly"})
PATTERNS, ARM = ("esac",), (";;", "esac")
FOLLOWING = {
    "if": ("then",), "elif": ("then",), "then": ("elif", "else", "fi"), "else": ("fi",), "case": PATTERNS,
    "while": ("do",), "until": ("do",), "for": ("do",), "do": ("done",), "{": ("}",), "(": (")",), "[[": ("]]",),
}  # fmt: skip
"""The words that continue or close a construct after each of its words; the last ones close it."""
NOTHING = ast.Script(0, 0, ())


@dataclass(slots=True, eq=False)
class Statement:
    """One statement from its first character through its newline; all offsets count from that character."""

    script: ast.Script
    comments: tuple[tuple[int, int], ...]
    assigns: frozenset[str] | None = None
    """The variables that it may set, computed at first use."""


def parse_statement(text: str, start: int, end: int, *, tolerant: bool = False) -> tuple[Statement, int]:
    """The statement that begins at `start`, and the offset after it. Offsets in its nodes are those of `text`.

    Raises ShellSyntaxError unless `tolerant`.
    """
    reader = SkeletonReader(text, start, end, tolerant)
    script = reader.commands("\n")
    return Statement(script, tuple(reader.comments)), reader.pos


@dataclass(slots=True, eq=False)
class _Level:
    """The state of reading one list of commands."""

    words: list[tuple[bytes, int, int]] = field(default_factory=list)
    """The words of the skeleton, with the characters that each stands for."""
    open: list[tuple[str, ...]] = field(default_factory=list)
    """For each open construct, the words that continue or close it."""
    ready: bool = True
    """A command may begin here."""
    needed: bool = False
    """A command must begin here."""
    piped: bool = False
    closed: int = -1
    """Where a compound command ended, if only redirects have followed since."""
    negated: int | None = None
    """Where the `!` of the pipeline is that begins here."""
    lifted: list[ast.Function | ast.For] = field(default_factory=list)
    """The functions and loops whose body begins here, the innermost last."""


NO_LEVEL = _Level()


@dataclass(slots=True, eq=False)
class SkeletonReader(WordParser):
    """Reads the commands of a text and writes their skeleton; all positions are those of the text."""

    level: _Level = NO_LEVEL
    marks: ast.Marks = field(default_factory=ast.Marks)

    # Lists.

    def commands(self, stop: str) -> ast.Script:
        """Commands up to `stop`: through a newline that ends a statement, up to an unmatched `)`, or "" for the end of the text."""
        outer, self.level = self.level, _Level()
        start = self.pos
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail_deep()
        try:
            self.read(stop)
        except ShellSyntaxError:
            if not self.tolerant:
                raise
            self.pos = self.end
        script = self.structured(start)
        self.depth -= 1
        self.level = outer
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
            elif not self.redirect(found := self.marks.redirects.setdefault(level.closed, [])):
                self.go_on("" if found else self.reserved())

    def end_of_line(self) -> None:
        start, level = self.pos, self.level
        self.newline()
        if not level.ready:
            self.put(b";", start, start)
        level.negated = level.negated if level.needed else None
        level.piped &= level.needed
        level.ready, level.closed = True, -1

    def separator(self) -> None:
        m = OPERATOR.match(self.text, self.pos, self.end)
        assert m is not None
        start, op, level = self.pos, m.group(), self.level
        self.pos = m.end()
        if op in (";;", ";&", ";;&"):
            if level.needed or not level.open or level.open[-1] is not ARM:
                self.fail()
            op, level.open[-1] = ";;", PATTERNS
        elif level.ready:
            self.fail()
        self.put(op.encode(), start, self.pos)
        level.needed = op in ("&&", "||", "|", "|&")
        level.piped = op in ("|", "|&")
        level.ready, level.closed = True, -1

    def go_on(self, word: str) -> None:
        """A word that continues or closes the innermost construct."""
        level = self.level
        if level.needed or not level.open or word not in level.open[-1]:
            self.fail()
        if level.closed >= 0:
            self.put(b";", self.pos, self.pos)
        level.open.pop()
        self.pos += len(word)
        self.put(word.encode(), self.pos - len(word), self.pos)
        if word in FOLLOWING:
            self.go_into(word)
        else:
            self.compound_ends()

    def go_into(self, word: str) -> None:
        level = self.level
        level.open.append(FOLLOWING[word])
        level.ready, level.closed, level.piped = True, -1, False

    def compound_ends(self) -> None:
        level = self.level
        level.ready = level.needed = False
        level.closed = self.pos

    def begins(self, start: int) -> None:
        """A command begins, whose word in the skeleton starts there."""
        level = self.level
        if len(level.open) + len(level.lifted) + self.depth > MAX_DEPTH:
            self.fail_deep()
        if level.negated is not None:
            self.marks.negated[start] = level.negated
        if level.lifted:
            self.marks.lifted[start] = level.lifted
        level.negated, level.lifted = None, []
        level.ready = level.needed = False

    def put(self, word: bytes, start: int, end: int) -> None:
        """A word of the skeleton, with the characters that it stands for."""
        self.level.words.append((word, start, end))

    def structured(self, start: int) -> ast.Script:
        """The commands from there; open constructs are closed after them."""
        from spec_lsp.syntax.shell.structure import Structure  # importing tree-sitter takes a while

        level = self.level
        if level.needed:
            self.put(b"w", self.pos, self.pos)
        ready = level.ready and not level.needed
        for following in reversed(level.open):
            while following:
                word = following[-1]
                if not ready and word not in ("]]", ")"):
                    self.put(b";", self.pos, self.pos)
                self.put(word.encode(), self.pos, self.pos)
                ready, following = word in FOLLOWING, FOLLOWING.get(word, ())
        return Structure(self.text, self.tolerant, self.marks, level.words).script(start, self.pos)

    # Commands.

    def command(self) -> None:
        checkpoint()
        level, word = self.level, self.reserved()
        if word in ("!", "time", "coproc") and not level.piped:
            m = PREFIX.match(self.text, self.pos, self.end)
            assert m is not None
            if word == "!":
                level.negated = self.pos if level.negated is None else None
            self.pos = m.end()
        elif word in ("if", "while", "until", "{"):
            self.opens(word)
        elif word in ("for", "select"):
            self.loop(word)
        elif word == "case":
            self.case_head()
        elif word == "[[":
            self.test()
        elif self.at("("):
            self.parenthesis()
        elif (m := FUNCTION.match(self.text, self.pos, self.end)) and (
            word == "function" or (m[2] and not word and "=" not in m[1])
        ):
            level.lifted.append(ast.Function(self.pos, 0, m[1], NOTHING))
            level.needed = True
            self.pos = m.end()
        elif word in ("", "time", "coproc"):
            self.simple()
        else:
            self.go_on(word)

    def opens(self, word: str) -> None:
        start = self.pos
        self.begins(start)
        self.pos += len(word)
        self.put(word.encode(), start, self.pos)
        self.go_into(word)

    def parenthesis(self) -> None:
        start = self.pos
        close = self.balanced(start + 2) if self.at("((") else None
        if close is None:
            self.opens("(")
            return
        expression = self.inner_text(start + 2, close)
        self.pos = close + 2
        self.marks.built[start] = ast.ArithmeticCommand(start, self.pos, expression)
        self.begins(start)
        self.put(b"w", start, self.pos)
        self.compound_ends()

    def loop(self, word: str) -> None:
        """`for` and `select` up to `do`."""
        start = self.pos
        self.pos += len(word)
        self.blanks()
        loop = ast.For(start, 0, "", None, NOTHING, select=word == "select")
        if self.at("(("):
            close = self.balanced(self.pos + 2)
            if close is None:
                self.fail()
            loop.header = self.for_header(self.pos + 2, close)
            first = NAME.match((loop.header[0].literal or "").strip())
            self.pos = close + 2
        else:
            first = NAME.match(self.text, self.pos, self.end)
            if not first:
                self.fail()
            self.pos = first.end()
            self.newlines()
            if self.at("in") and not NAME.match(self.text, self.pos + 2, self.end):
                self.pos += 2
                words: list[ast.WordNode] = []
                self.blanks()
                while self.pos < self.end and self.text[self.pos] not in ";\n\r&|()<>":
                    words.extend(self.words())
                    self.blanks()
                loop.words = tuple(words)
        loop.name = first.group() if first else ""
        self.blanks()
        if self.at(";"):
            self.pos += 1
        self.newlines()
        if self.reserved() == "{":
            self.level.lifted.append(loop)
            return
        self.marks.built[start] = loop
        self.begins(start)
        self.put(b"for w;", start, self.pos)
        self.go_into("for")

    def for_header(self, start: int, end: int) -> tuple[ast.WordNode, ...]:
        """The three expressions of `for ((…; …; …))`."""
        found: list[ast.WordNode] = []
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
        self.marks.built[start] = ast.Case(start, 0, self.word(), ())
        self.newlines()
        self.take("in")
        self.begins(start)
        self.put(b"case w in", start, self.pos)
        self.go_into("case")

    def case_arm(self) -> None:
        """The patterns of an arm, or the end of all arms."""
        level, start = self.level, self.pos
        if self.reserved() == "esac":
            self.go_on("esac")
            return
        if self.at("("):
            self.pos += 1
        patterns: list[ast.WordNode] = []
        while not patterns or self.at("|"):
            self.pos += 1 if patterns else 0
            self.blanks()
            patterns.append(self.word())
            self.blanks()
        self.take(")")
        self.marks.built[start] = ast.CaseArm(tuple(patterns), NOTHING, False)
        self.put(b"w)", start, self.pos)
        level.open[-1] = ARM
        level.piped = False

    def simple(self) -> None:
        """A simple command with its redirects: one word of the skeleton."""
        start = last = self.pos
        outer, self.assigning = self.assigning, False
        assigns: list[ast.Assign] = []
        words: list[ast.WordNode] = []
        redirects: list[ast.Redirect] = []
        try:
            while True:
                self.blanks()
                if self.pos >= self.end:
                    break
                char = self.text[self.pos]
                if char in ";|\n)" or (char == "\r" and self.at("\r\n")) or (char == "&" and not self.at("&>")):
                    break
                if char in REDIRECT_STARTS and self.redirect(redirects):
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
            self.pos = self.end
        if last == start:
            self.fail()
        self.marks.built[start] = ast.Simple(
            start, last, tuple(assigns), tuple(words), tuple(redirects), self.assigning
        )
        self.assigning |= outer
        self.begins(start)
        self.put(b"w", start, last)

    # Redirects and assignments.

    def redirect(self, found: list[ast.Redirect]) -> bool:
        m = REDIRECT.match(self.text, self.pos, self.end)
        if not m:
            return False
        op = m.group(2) or m.group(3)
        self.pos = m.end()
        self.blanks()
        target = self.word()
        redirect = ast.Redirect(op, target, target if op == "<<<" else None, m.group(1) or "")
        found.append(redirect)
        if op in ("<<", "<<-"):
            self.heredocs.append(Heredoc(redirect, _unquoted(target), target.quoted, op == "<<-"))
        return True

    def assignment(self) -> ast.Assign | None:
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
            return ast.Assign(start, self.pos, m.group(1), append, None, elements, index)
        if self.pos >= self.end or self.text[self.pos] in " \t\n\r;&|)":
            value = ast.WordNode(self.pos, self.pos, (), "")
        else:
            value = self.word()
        return ast.Assign(start, self.pos, m.group(1), append, value, None, index)

    def array(self) -> tuple[ast.Element, ...]:
        self.pos += 1
        elements: list[ast.Element] = []
        while True:
            self.newlines()
            if self.pos >= self.end:
                if self.tolerant:
                    unclosed = ast.Opaque(self.pos, self.pos, False, "the array is not closed")
                    return (*elements, ast.Element(ast.WordNode(self.pos, self.pos, (unclosed,))))
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
                elements.append(ast.Element(ast.WordNode(self.pos, self.pos, (), ""), key))
                continue
            elements.extend(ast.Element(word, key) for word in (self.words() if key is None else [self.word()]))
            if self.pos == before:
                self.fail()

    # [[ … ]]

    def test(self) -> None:
        """Write each comparison as a word."""
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
            here = self.pos
            if level.needed and self.at("!") and self.text[here + 1 : here + 2] in (" ", "\t", "("):
                self.pos += 1
                self.put(b"!", here, self.pos)
            elif level.needed and self.at("("):
                self.opens("(")
                level.needed = True
            elif level.needed:
                self.marks.built[here] = self.comparison()
                self.put(b"w", here, self.pos)
                level.needed = False
            elif self.at("&&") or self.at("||"):
                self.pos += 2
                self.put(self.text[here : self.pos].encode(), here, self.pos)
                level.needed = True
            elif self.at(")") and len(level.open) > outside:
                self.pos += 1
                self.put(b")", here, self.pos)
                level.open.pop()
            else:
                break
        if len(level.open) > outside:
            self.fail()
        self.go_on("]]" if self.at("]]") else "")

    def comparison(self) -> ast.Compare:
        m = UNARY.match(self.text, self.pos, self.end)
        if m:
            before = self.pos
            self.pos = m.end()
            self.newlines()
            if not BINARY.match(self.text, self.pos, self.end):
                return ast.Compare(m.group(), None, self.word())
            self.pos = before
        left = self.word()
        self.newlines()
        m = BINARY.match(self.text, self.pos, self.end)
        if not m:
            return ast.Compare("-n", None, left)
        self.pos = m.end()
        self.newlines()
        right = self.regular_expression() if m.group() == "=~" else self.word()
        return ast.Compare(m.group(), left, right)

    def regular_expression(self) -> ast.WordNode:
        """The right side of `=~`, in which parentheses and bars are ordinary characters."""
        start = self.pos
        parts: list[ast.Part] = []
        depth = 0
        while self.pos < self.end:
            char = self.text[self.pos]
            if char in " \t\r\n" and depth <= 0:
                break
            if char in "()|<>;&" or char in " \t":
                depth += {"(": 1, ")": -1}.get(char, 0)
                if char == ")" and depth < 0:
                    break
                parts.append(ast.Lit(self.pos, self.pos + 1, char, False))
                self.pos += 1
                continue
            if char == "\n":
                self.fail()
            if char == "\\":
                parts.append(ast.Lit(self.pos, self.pos + 2, self.text[self.pos : self.pos + 2], False))
                self.pos += 2
                continue
            parts.extend(self.word().parts)
        if self.pos == start:
            self.fail()
        return word_of(start, self.pos, parts, False)


def _unquoted(word: ast.WordNode) -> str:
    """The delimiter of a here-document: its text, in which expansions are literal."""
    return word.literal if word.literal is not None else ""
