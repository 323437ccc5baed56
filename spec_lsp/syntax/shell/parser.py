"""Reads one statement of a shell script into nodes, as bash would read it.

Written by hand rather than on a general grammar, for three things that launches need and that are bash's own: what ends a
command (a comment or a blank behind a backslash does), exact characters (not bytes) of every run of literal text, and
statements that can be read one by one, so that a keystroke costs one statement.

`parse_statement` reads from a position through the newline that ends the statement, here-documents included. What it returns
depends on no character behind that newline. In a statement that bash would refuse, `tolerant` reads the first line as
far as it goes: quotes end with their line, and a compound command that has no end is what stands on the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from spec_lsp.syntax.shell.ast import (
    AndOr,
    Arithmetic,
    ArithmeticCommand,
    Assign,
    Both,
    Case,
    CaseArm,
    Command,
    Compare,
    Element,
    Expression,
    For,
    Function,
    Group,
    If,
    Lit,
    Not,
    Opaque,
    Param,
    Part,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Substitution,
    Test,
    While,
    WordNode,
)
from spec_lsp.syntax.shell.braces import expand_braces

MAX_DEPTH = 60

BLANKS = re.compile(r"(?:[ \t]+|\\\r?\n)+")
COMMENT = re.compile(r"#[^\n]*?(?=\r?\n|\Z)")
NEWLINE = re.compile(r"\r?\n")
PLAIN = re.compile(
    r"(?:[^\s\"'\\$`;&|<>()]|[\f\v\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]|\r(?!\n))+"
)
IN_DOUBLE_QUOTES = re.compile(r"[^\"\\$`]+")
IN_HEREDOC = re.compile(r"[^\\$`]+")
IN_ARGUMENT = re.compile(r"[^\"'\\$`}]+")
IN_QUOTED_ARGUMENT = re.compile(r"[^\"\\$`}]+")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]|[@*#?$!-]")
BRACED_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=|\[)")
REDIRECT = re.compile(r"(\d+|\{[A-Za-z_]\w*\})?(<<<|<<-?|<>|<&|>&|>>|>\||<(?!\()|>(?!\())|(&>>?)")
SETS_VARIABLE = re.compile(r"([A-Za-z_]\w*)\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))|(?:\+\+|--)([A-Za-z_]\w*)")
"""A variable that an arithmetic expression sets."""
REDIRECT_STARTS = frozenset("<>&{0123456789")
FUNCTION = re.compile(r"([^\s\"'\\$`;&|<>()=]+)[ \t]*\([ \t]*\)")
RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|for|select|while|until|do|done|case|esac|function|time|coproc|\[\[|[{}!])(?=[\s;&|()<>]|\Z)"
)
OPERATORS = re.compile(r":?[-=?+]|##?|%%?|//?|\^\^?|,,?|@|:")
UNARY = re.compile(r"-[a-zA-Z](?=[ \t\r\n\\])")
BINARY = re.compile(r"(?:==|=~|!=|=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))(?=[ \t\r\n\\]|\Z)|[<>]")
ANSI_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c(.)|(.))", re.S
)
ANSI_SIMPLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
TRANSFORMATIONS = {"Q": "@Q", "U": "^^", "L": ",,", "u": "^"}
"""What `${X@…}` does that we can follow, by the operator that does it."""
DECLARATIONS = frozenset({"export", "local", "declare", "typeset", "readonly"})


class ShellSyntaxError(Exception):
    """Bash would refuse the statement, or it is nested too deep for us."""


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
    parser = _Parser(text, start, end, tolerant)
    script = parser.line()
    return Statement(script, tuple(parser.comments)), parser.pos


def parse_script(text: str) -> Script | None:
    """A whole text as one script, or None if bash would refuse it."""
    parser = _Parser(text, 0, len(text), False)
    try:
        script = parser.script(frozenset())
    except (ShellSyntaxError, RecursionError):
        return None
    return script if parser.pos >= parser.end else None


def parse_text(text: str) -> WordNode | None:
    """A text as the inside of double quotes, as an unquoted here-document has it."""
    parser = _Parser(text, 0, len(text), False)
    try:
        parts = parser.text_parts(len(text), strip_tabs=False)
    except (ShellSyntaxError, RecursionError):
        return None
    return _word(0, len(text), parts, True)


@dataclass(slots=True, eq=False)
class _Heredoc:
    redirect: Redirect
    delimiter: str
    quoted: bool
    strip_tabs: bool


@dataclass(slots=True, eq=False)
class _Parser:
    text: str
    pos: int
    end: int
    tolerant: bool
    depth: int = 0
    comments: list[tuple[int, int]] = field(default_factory=list)
    heredocs: list[_Heredoc] = field(default_factory=list)
    assigning: bool = False

    # Blanks, comments, newlines.

    def blanks(self) -> None:
        m = BLANKS.match(self.text, self.pos, self.end)
        if m:
            self.pos = m.end()
        if self.pos < self.end and self.text[self.pos] == "#":
            self.comment()

    def comment(self) -> None:
        newline = self.text.find("\n", self.pos, self.end)
        stop = self.end if newline < 0 else newline
        if stop > self.pos and self.text[stop - 1] == "\r":
            stop -= 1
        self.comments.append((self.pos, stop))
        self.pos = stop

    def newline(self) -> bool:
        m = NEWLINE.match(self.text, self.pos, self.end)
        if not m:
            return False
        self.pos = m.end()
        if self.heredocs:
            pending, self.heredocs = self.heredocs, []
            for heredoc in pending:
                self.heredoc_body(heredoc)
        return True

    def newlines(self) -> None:
        self.blanks()
        while self.newline():
            self.blanks()

    def at(self, token: str) -> bool:
        return self.text.startswith(token, self.pos, self.end)

    def take(self, token: str) -> None:
        if not self.at(token):
            self.fail()
        self.pos += len(token)

    def fail(self) -> None:
        raise ShellSyntaxError

    def reserved(self) -> str:
        m = RESERVED.match(self.text, self.pos, self.end)
        if not m:
            return ""
        return m.group()

    def keyword(self, word: str) -> None:
        self.newlines()
        if self.reserved() != word:
            if self.tolerant and self.pos >= self.end:
                return
            self.fail()
        self.pos += len(word)

    # Lists.

    def line(self) -> Script:
        """Commands up to a newline."""
        start = self.pos
        items: list[Command] = []
        while True:
            self.blanks()
            if self.pos >= self.end:
                if self.heredocs and not self.tolerant:
                    self.fail()
                break
            if self.newline():
                break
            try:
                items.append(self.and_or())
            except ShellSyntaxError:
                if not self.tolerant:
                    raise
                self.pos = self.end
                break
        return Script(start, self.pos, tuple(items))

    def script(self, stops: frozenset[str]) -> Script:
        """Commands up to one of the reserved words or closing tokens `stops`, which stays."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail()
        self.newlines()
        start = self.pos
        items: list[Command] = []
        while self.pos < self.end and not self.stops_here(stops):
            items.append(self.and_or())
            self.newlines()
        self.depth -= 1
        return Script(start, self.pos, tuple(items))

    def stops_here(self, stops: frozenset[str]) -> bool:
        if self.text[self.pos] in ");":
            return ")" in stops if self.text[self.pos] == ")" else ";;" in stops
        word = self.reserved()
        return word in stops if word else False

    def and_or(self) -> Command:
        start = self.pos
        first = self.pipeline()
        rest: list[tuple[str, Command]] = []
        while True:
            self.blanks()
            op = self.text[self.pos : min(self.pos + 2, self.end)]
            if op not in ("&&", "||"):
                break
            self.pos += 2
            self.newlines()
            if self.pos >= self.end and self.tolerant:
                break
            rest.append((op, self.pipeline()))
        background = False
        if self.pos < self.end:
            if op[:1] == "&":
                self.pos += 1
                background = True
            elif op[:1] == ";" and op != ";;":
                self.pos += 1
            elif op[:1] not in (";", ")", "\n") and op != "\r\n" and not self.reserved():
                self.fail()
        if not rest and not background:
            return first
        return AndOr(start, self.pos, first, tuple(rest), background)

    def pipeline(self) -> Command:
        start = self.pos
        negated = False
        while (word := self.reserved()) in ("!", "time", "coproc"):
            self.pos += len(word)
            negated ^= word == "!"
            self.blanks()
            if word == "time" and self.at("-p "):
                self.pos += 2
                self.blanks()
        commands = [self.command()]
        while True:
            self.blanks()
            if not self.at("|") or self.at("||"):
                break
            self.pos += 2 if self.at("|&") else 1
            self.newlines()
            commands.append(self.command())
        if len(commands) == 1 and not negated:
            return commands[0]
        return Pipeline(start, self.pos, tuple(commands), negated)

    # Commands.

    def command(self) -> Command:
        if self.pos >= self.end:
            self.fail()
        if self.text[self.pos] == "(":
            return self.parenthesis()
        word = self.reserved()
        if word == "if":
            return self.if_command()
        if word in ("for", "select"):
            return self.for_command(word)
        if word in ("while", "until"):
            return self.while_command(word)
        if word == "case":
            return self.case_command()
        if word == "function":
            return self.function_keyword()
        if word == "{":
            return self.group()
        if word == "[[":
            return self.test()
        if word and word not in ("time", "coproc"):
            self.fail()
        m = FUNCTION.match(self.text, self.pos, self.end)
        if m:
            return self.function(m.start(), m.group(1), m.end())
        return self.simple()

    def parenthesis(self) -> Command:
        start = self.pos
        if self.at("(("):
            close = self.balanced(start + 2)
            if close is not None:
                expression = self.inner_text(start + 2, close)
                self.pos = close + 2
                return ArithmeticCommand(start, self.pos, expression, self.redirects())
        self.pos += 1
        body = self.script(frozenset({")"}))
        self.close(")")
        return Group(start, self.pos, body, True, self.redirects())

    def close(self, token: str) -> None:
        if self.pos >= self.end and self.tolerant:
            return
        self.take(token)

    def group(self) -> Command:
        start = self.pos
        self.pos += 1
        body = self.script(frozenset({"}"}))
        self.keyword("}")
        return Group(start, self.pos, body, False, self.redirects())

    def if_command(self) -> Command:
        start = self.pos
        arms: list[tuple[Script, Script]] = []
        otherwise = None
        while True:
            self.pos += len("if") if not arms else len("elif")
            condition = self.script(frozenset({"then"}))
            self.keyword("then")
            body = self.script(frozenset({"elif", "else", "fi"}))
            arms.append((condition, body))
            if self.reserved() != "elif":
                break
        if self.reserved() == "else":
            self.pos += len("else")
            otherwise = self.script(frozenset({"fi"}))
        self.keyword("fi")
        return If(start, self.pos, tuple(arms), otherwise, self.redirects())

    def for_command(self, word: str) -> Command:
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
                raise AssertionError
            header = self.for_header(self.pos + 2, close)
            first = NAME.match(header[0].literal.strip() if header and header[0].literal else "")
            name = first.group() if first else ""
            self.pos = close + 2
        else:
            m = NAME.match(self.text, self.pos, self.end)
            if not m:
                self.fail()
                raise AssertionError
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
        if self.reserved() == "{":
            self.pos += 1
            body = self.script(frozenset({"}"}))
            self.keyword("}")
        else:
            self.keyword("do")
            body = self.script(frozenset({"done"}))
            self.keyword("done")
        listed = None if words is None else tuple(words)
        return For(start, self.pos, name, listed, body, self.redirects(), header, word == "select")

    def for_header(self, start: int, end: int) -> tuple[WordNode, ...]:
        """The three expressions of `for ((…; …; …))`."""
        found: list[WordNode] = []
        for piece in self.text[start:end].split(";"):
            found.append(self.inner_text(start, start + len(piece)))
            start += len(piece) + 1
        if len(found) != 3:
            self.fail()
        return tuple(found)

    def while_command(self, word: str) -> Command:
        start = self.pos
        self.pos += len(word)
        condition = self.script(frozenset({"do"}))
        self.keyword("do")
        body = self.script(frozenset({"done"}))
        self.keyword("done")
        return While(start, self.pos, condition, body, word == "until", self.redirects())

    def case_command(self) -> Command:
        start = self.pos
        self.pos += len("case")
        self.blanks()
        subject = self.word()
        self.newlines()
        self.take("in")
        arms: list[CaseArm] = []
        self.newlines()
        while self.pos < self.end and self.reserved() != "esac":
            arms.append(self.case_arm())
            self.newlines()
        self.keyword("esac")
        return Case(start, self.pos, subject, tuple(arms), self.redirects())

    def case_arm(self) -> CaseArm:
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
        body = self.script(frozenset({";;", "esac"}))
        falls_through = False
        for token in (";;&", ";;", ";&"):
            if self.at(token):
                self.pos += len(token)
                falls_through = token != ";;"
                break
        return CaseArm(tuple(patterns), body, falls_through)

    def function_keyword(self) -> Command:
        start = self.pos
        self.pos += len("function")
        self.blanks()
        m = PLAIN.match(self.text, self.pos, self.end)
        if not m:
            self.fail()
            raise AssertionError
        end = m.end()
        parens = re.compile(r"[ \t]*\([ \t]*\)").match(self.text, end, self.end)
        return self.function(start, m.group(), parens.end() if parens else end)

    def function(self, start: int, name: str, behind: int) -> Command:
        self.pos = behind
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail()
        self.newlines()
        body = Script(self.pos, self.pos, ()) if self.tolerant and self.pos >= self.end else self.command()
        self.depth -= 1
        return Function(start, self.pos, name, body)

    def simple(self) -> Command:
        start = self.pos
        last = start
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
        if self.pos == start:
            self.fail()
        node = Simple(start, last, tuple(assigns), tuple(words), tuple(redirects), self.assigning)
        self.assigning |= outer
        return node

    # Redirects and here-documents.

    def redirects(self) -> tuple[Redirect, ...]:
        found: list[Redirect] = []
        self.blanks()
        while self.pos < self.end and self.redirect(found):
            self.blanks()
        return tuple(found)

    def redirect(self, found: list[Redirect]) -> bool:
        m = REDIRECT.match(self.text, self.pos, self.end)
        if not m:
            return False
        op = m.group(2) or m.group(3)
        self.pos = m.end()
        self.blanks()
        target = self.word()
        redirect = Redirect(op, target, target if op == "<<<" else None, m.group(1) or "")
        found.append(redirect)
        if op in ("<<", "<<-"):
            self.heredocs.append(_Heredoc(redirect, _unquoted(target), target.quoted, op == "<<-"))
        return True

    def heredoc_body(self, heredoc: _Heredoc) -> None:
        start = line = self.pos
        while True:
            if line >= self.end:
                if not self.tolerant:
                    self.fail()
                stop = line
                break
            newline = self.text.find("\n", line, self.end)
            stop = self.end if newline < 0 else newline
            content = self.text[line:stop].removesuffix("\r")
            if (content.lstrip("\t") if heredoc.strip_tabs else content) == heredoc.delimiter:
                stop = line
                self.pos = self.end if newline < 0 else newline + 1
                break
            line = self.end if newline < 0 else newline + 1
        behind = max(self.pos, stop)
        self.pos = start
        if heredoc.quoted:
            parts: list[Part] = [
                Lit(a, b, self.text[a:b], True) for a, b in self.heredoc_lines(start, stop, heredoc.strip_tabs)
            ]
        else:
            parts = self.text_parts(stop, heredoc.strip_tabs)
        heredoc.redirect.body = _word(start, stop, parts, True)
        self.pos = behind

    def heredoc_lines(self, start: int, stop: int, strip_tabs: bool) -> list[tuple[int, int]]:
        """The runs of a here-document's text that count: all of it, or each line behind its tabs."""
        if not strip_tabs:
            return [(start, stop)] if start < stop else []
        lines = re.compile(r"\t*([^\n]*\n?)").finditer(self.text, start, stop)
        return [line.span(1) for line in lines if line.start(1) < line.end(1)]

    def text_parts(self, stop: int, strip_tabs: bool) -> list[Part]:
        """The parts of an unquoted here-document's text [pos, stop)."""
        outer_end, self.end = self.end, stop
        parts: list[Part] = []
        while self.pos < stop:
            char = self.text[self.pos]
            if char == "\\":
                self.double_quoted_escape(parts, "\\$`\n")
            elif char in "$`":
                self.expansion(parts, True)
            else:
                m = IN_HEREDOC.match(self.text, self.pos, stop)
                if m is None:
                    break
                for a, b in self.heredoc_runs(m.start(), m.end(), strip_tabs):
                    parts.append(Lit(a, b, self.text[a:b], True))
                self.pos = m.end()
        self.end = outer_end
        return parts

    def heredoc_runs(self, start: int, stop: int, strip_tabs: bool) -> list[tuple[int, int]]:
        if not strip_tabs:
            return [(start, stop)]
        at_line_start = start == 0 or self.text[start - 1] == "\n"
        if at_line_start:
            return self.heredoc_lines(start, stop, True)
        newline = self.text.find("\n", start, stop)
        if newline < 0:
            return [(start, stop)]
        return [(start, newline + 1), *self.heredoc_lines(newline + 1, stop, True)]

    # Assignments.

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

    # Words.

    def words(self) -> list[WordNode]:
        """The word here, or the words that its braces expand to."""
        start = self.pos
        word = self.word()
        return expand_braces(word) if "{" in self.text[start : self.pos] else [word]

    def word(self) -> WordNode:
        start = self.pos
        parts: list[Part] = []
        quoted = False
        while self.pos < self.end:
            m = PLAIN.match(self.text, self.pos, self.end)
            if m:
                parts.append(Lit(m.start(), m.end(), m.group(), False))
                self.pos = m.end()
                continue
            char = self.text[self.pos]
            if char == '"':
                quoted = True
                self.double_quotes(parts)
            elif char == "'":
                quoted = True
                self.single_quotes(parts)
            elif char == "\\":
                quoted |= self.escape(parts)
            elif char == "$" and self.at("$'"):
                quoted = True
                self.ansi_quotes(parts)
            elif char == "$" and self.at('$"'):
                quoted = True
                self.pos += 1
                self.double_quotes(parts)
            elif char in "$`":
                self.expansion(parts, False)
            elif char in "<>" and self.text.startswith("(", self.pos + 1, self.end):
                self.process_substitution(parts)
            elif char == "(" and self.pos > start and self.text[self.pos - 1] in "?*+@!":
                self.extended_glob(parts)
            else:
                break
        if self.pos == start:
            self.fail()
        return _word(start, self.pos, parts, quoted)

    def double_quotes(self, parts: list[Part]) -> None:
        start = self.pos
        before = len(parts)
        self.pos += 1
        self.until_double_quote(parts)
        if self.pos >= self.end:
            if not self.tolerant:
                self.fail()
            outer, self.end = self.end, self.line_end(start + 1, self.end)
            del parts[before:]
            self.pos = start + 1
            self.until_double_quote(parts)
            self.end = outer
        else:
            self.pos += 1
        if len(parts) == before:
            parts.append(Lit(start + 1, start + 1, "", True))

    def until_double_quote(self, parts: list[Part]) -> None:
        while self.pos < self.end:
            char = self.text[self.pos]
            if char == '"':
                return
            if char == "\\":
                self.double_quoted_escape(parts, '"\\$`\n')
            elif char in "$`":
                self.expansion(parts, True)
            else:
                m = IN_DOUBLE_QUOTES.match(self.text, self.pos, self.end)
                assert m is not None
                parts.append(Lit(m.start(), m.end(), m.group(), True))
                self.pos = m.end()

    def line_end(self, start: int, stop: int) -> int:
        """Where a quote that is never closed ends, for a reader who is still typing: with its line."""
        newline = self.text.find("\n", start, stop)
        if newline < 0:
            return stop
        end = newline - 1 if newline > start and self.text[newline - 1] == "\r" else newline
        while end > start and self.text[end - 1] in " \t\\":
            end -= 1
        return end

    def double_quoted_escape(self, parts: list[Part], special: str) -> None:
        """A backslash inside double quotes or a here-document."""
        start = self.pos
        following = self.text[start + 1 : min(start + 3, self.end)]
        if following[:1] == "\n" or following == "\r\n":
            self.pos += 2 if following[:1] == "\n" else 3
        elif following[:1] and following[0] in special:
            parts.append(Lit(start, start + 2, following[0], True, False))
            self.pos += 2
        else:
            parts.append(Lit(start, start + 1, "\\", True))
            self.pos += 1

    def single_quotes(self, parts: list[Part]) -> None:
        start = self.pos + 1
        close = self.text.find("'", start, self.end)
        if close < 0:
            if not self.tolerant:
                self.fail()
            close = self.line_end(start, self.end)
            parts.append(Lit(start, close, self.text[start:close], True))
            self.pos = close
            return
        parts.append(Lit(start, close, self.text[start:close], True))
        self.pos = close + 1

    def escape(self, parts: list[Part]) -> bool:
        """A backslash outside quotes; True unless it continues a line."""
        start = self.pos
        if start + 1 >= self.end:
            parts.append(Lit(start, start + 1, "\\", True))
            self.pos += 1
            return True
        m = NEWLINE.match(self.text, start + 1, self.end)
        if m:
            self.pos = m.end()
            return False
        parts.append(Lit(start, start + 2, self.text[start + 1], True, False))
        self.pos += 2
        return True

    def ansi_quotes(self, parts: list[Part]) -> None:
        """`$'…'`."""
        self.pos += 2
        start = self.pos
        while True:
            m = re.compile(r"[^\\']*").match(self.text, self.pos, self.end)
            assert m is not None
            if m.group():
                parts.append(Lit(m.start(), m.end(), m.group(), True))
            self.pos = m.end()
            if self.pos >= self.end:
                if not self.tolerant:
                    self.fail()
                return
            if self.text[self.pos] == "'":
                if self.pos == start:
                    parts.append(Lit(start, start, "", True))
                self.pos += 1
                return
            escape = ANSI_ESCAPE.match(self.text, self.pos, self.end)
            if not escape:
                self.fail()
                raise AssertionError
            parts.append(Lit(escape.start(), escape.end(), _ansi(escape), True, False))
            self.pos = escape.end()

    def process_substitution(self, parts: list[Part]) -> None:
        start = self.pos
        self.pos += 2
        self.script(frozenset({")"}))
        self.close(")")
        parts.append(Opaque(start, self.pos, True, "process substitution"))

    def extended_glob(self, parts: list[Part]) -> None:
        close = self.balanced_one(self.pos + 1)
        if close is None:
            self.fail()
            raise AssertionError
        parts.append(Lit(self.pos, close + 1, self.text[self.pos : close + 1], False))
        self.pos = close + 1

    # Expansions.

    def expansion(self, parts: list[Part], quoted: bool) -> None:
        start = self.pos
        if self.text[start] == "`":
            parts.append(self.backticks(quoted))
            return
        if self.at("$(("):
            close = self.balanced(start + 3)
            if close is not None:
                expression = self.inner_text(start + 3, close)
                self.assigning |= SETS_VARIABLE.search(self.text, start + 3, close) is not None
                self.pos = close + 2
                parts.append(Arithmetic(start, self.pos, quoted, expression))
                return
        if self.at("$("):
            parts.append(self.substitution(quoted))
            return
        if self.at("${"):
            parts.append(self.braced(quoted))
            return
        m = PARAMETER.match(self.text, start + 1, self.end)
        if m:
            self.pos = m.end()
            name = m.group()
            parts.append(Param(start, self.pos, name, quoted, index=name if name in ("@", "*") else None))  # type: ignore[arg-type]
            return
        parts.append(Lit(start, start + 1, "$", quoted))
        self.pos += 1

    def substitution(self, quoted: bool) -> Substitution:
        start = self.pos
        self.pos += 2
        outer, self.heredocs = self.heredocs, []
        body = self.script(frozenset({")"}))
        self.close(")")
        self.heredocs = outer
        return Substitution(start, self.pos, quoted, body)

    def backticks(self, quoted: bool) -> Substitution:
        start = self.pos
        m = re.compile(r"`((?:[^`\\]|\\.)*)`", re.S).match(self.text, start, self.end)
        if not m:
            if not self.tolerant:
                self.fail()
            self.pos = self.end
            return Substitution(start, self.pos, quoted, None)
        body = None
        if "\\" not in m.group(1):
            inner = _Parser(self.text, m.start(1), m.end(1), False, self.depth + 1)
            try:
                body = inner.script(frozenset())
            except ShellSyntaxError:
                body = None
        self.pos = m.end()
        return Substitution(start, self.pos, quoted, body)

    def braced(self, quoted: bool) -> Part:
        """`${…}`."""
        start = self.pos
        self.pos += 2
        length = indirect = False
        if self.at("#") and not self.at("#}"):
            length = True
            self.pos += 1
        elif self.at("!"):
            indirect = True
            self.pos += 1
        split = self.at("=")
        self.pos += split
        m = BRACED_PARAMETER.match(self.text, self.pos, self.end)
        if not m:
            self.fail()
            raise AssertionError
        self.pos = m.end()
        param = Param(start, start, m.group(), quoted, length=length, indirect=indirect, split=split)
        if param.name in ("@", "*"):
            param.index = param.name  # type: ignore[assignment]
        if self.at("["):
            self.subscript(param)
        if not self.at("}"):
            self.operator(param, quoted)
        if self.pos >= self.end and self.tolerant:
            return Opaque(start, self.end, quoted, "not closed")
        self.take("}")
        param.end = self.pos
        if param.op == "@":
            letter = param.arg.literal if param.arg is not None else None
            if letter not in TRANSFORMATIONS:
                return Opaque(start, self.pos, quoted, "a transformation of a variable")
            param.op, param.arg = TRANSFORMATIONS[letter], None
        return param

    def subscript(self, param: Param) -> None:
        close = self.balanced_bracket(self.pos + 1)
        if close is None:
            self.fail()
            raise AssertionError
        inner = self.text[self.pos + 1 : close]
        param.index = inner if inner in ("@", "*") else self.inner_text(self.pos + 1, close)  # type: ignore[assignment]
        self.pos = close + 1

    def operator(self, param: Param, quoted: bool) -> None:
        m = OPERATORS.match(self.text, self.pos, self.end)
        if not m:
            self.fail()
            raise AssertionError
        param.op = m.group()
        self.pos = m.end()
        if param.op in (":=", "="):
            self.assigning = True
        if param.op in ("/", "//"):
            param.arg = self.argument(quoted, "/")
            if self.at("/"):
                self.pos += 1
                param.second = self.argument(quoted, "")
        elif param.op == ":":
            param.arg = self.argument(quoted, ":")
            if self.at(":"):
                self.pos += 1
                param.second = self.argument(quoted, "")
        else:
            # In `"${X#'a'}"` quotes quote; in `"${X:-'a'}"` a single quote is a character.
            param.arg = self.argument(quoted and param.op.lstrip(":") in ("-", "=", "?", "+"), "")

    def argument(self, quoted: bool, stop: str) -> WordNode:
        """The word behind an operator in `${…}`, up to the brace or the character `stop`, which stays."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail()
        start = self.pos
        parts: list[Part] = []
        any_quoted = False
        run = IN_QUOTED_ARGUMENT if quoted else IN_ARGUMENT
        while self.pos < self.end:
            char = self.text[self.pos]
            if char == "}" or (stop and char == stop):
                break
            if char == '"':
                any_quoted = True
                if quoted:
                    self.pos += 1
                else:
                    self.double_quotes(parts)
            elif char == "'" and not quoted:
                any_quoted = True
                self.single_quotes(parts)
            elif char == "\\":
                if quoted:
                    self.double_quoted_escape(parts, '"\\$`}\n')
                else:
                    any_quoted |= self.escape(parts)
            elif char in "$`":
                if not quoted and self.at("$'"):
                    self.ansi_quotes(parts)
                else:
                    self.expansion(parts, quoted)
            else:
                m = run.match(self.text, self.pos, self.end)
                assert m is not None
                end = m.end()
                if stop:
                    at = self.text.find(stop, m.start(), end)
                    end = at if at >= 0 else end
                if end == m.start():
                    break
                parts.append(Lit(m.start(), end, self.text[m.start() : end], quoted))
                self.pos = end
        self.depth -= 1
        return _word(start, self.pos, parts, any_quoted or quoted)

    def inner_text(self, start: int, end: int) -> WordNode:
        """[start, end) as a text with expansions: an arithmetic expression, a subscript."""
        inner = _Parser(self.text, start, end, True, self.depth + 1)
        if inner.depth > MAX_DEPTH:
            self.fail()
        parts: list[Part] = []
        while inner.pos < end:
            char = self.text[inner.pos]
            if char in "$`":
                inner.expansion(parts, True)
            elif char == '"':
                inner.pos += 1
            elif char == "'":
                inner.single_quotes(parts)
            elif char == "\\":
                inner.double_quoted_escape(parts, '"\\$`\n')
            else:
                m = re.compile(r"[^\\$`\"']+").match(self.text, inner.pos, end)
                assert m is not None
                parts.append(Lit(m.start(), m.end(), m.group(), True))
                inner.pos = m.end()
        return _word(start, end, parts, True)

    def balanced(self, start: int) -> int | None:
        """The offset of the `))` that closes what is open at `start`, None if it closes as single parentheses."""
        close = self.balanced_one(start)
        if close is None or not self.text.startswith("))", close, self.end):
            return None
        return close

    def balanced_one(self, start: int) -> int | None:
        depth = 0
        for m in re.compile(r"[()\"']|\\.|\n\n\n", re.S).finditer(self.text, start, min(self.end, start + 4000)):
            token = m.group()
            if token == "(":
                depth += 1
            elif token == ")":
                if depth == 0:
                    return m.start()
                depth -= 1
        return None

    def balanced_bracket(self, start: int) -> int | None:
        depth = 0
        for m in re.compile(r"[\[\]\n]").finditer(self.text, start, self.end):
            if m.group() == "\n":
                return None
            if m.group() == "[":
                depth += 1
            elif depth == 0:
                return m.start()
            else:
                depth -= 1
        return None

    # [[ … ]]

    def test(self) -> Command:
        start = self.pos
        self.pos += 2
        expression = self.test_or()
        self.newlines()
        self.close("]]")
        return Test(start, self.pos, expression, self.redirects())

    def test_or(self) -> Expression:
        left = self.test_and()
        self.newlines()
        while self.at("||"):
            self.pos += 2
            left = Both(left, self.test_and(), True)
            self.newlines()
        return left

    def test_and(self) -> Expression:
        left = self.test_not()
        self.newlines()
        while self.at("&&"):
            self.pos += 2
            left = Both(left, self.test_not(), False)
            self.newlines()
        return left

    def test_not(self) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail()
        self.newlines()
        try:
            if self.at("!") and self.text[self.pos + 1 : self.pos + 2] in (" ", "\t", "("):
                self.pos += 1
                return Not(self.test_not())
            if self.at("("):
                self.pos += 1
                inner = self.test_or()
                self.newlines()
                self.take(")")
                return inner
            return self.comparison()
        finally:
            self.depth -= 1

    def comparison(self) -> Expression:
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
        return _word(start, self.pos, parts, False)


def _word(start: int, end: int, parts: list[Part], quoted: bool) -> WordNode:
    literal: str | None = ""
    if len(parts) == 1 and isinstance(parts[0], Lit):
        literal = parts[0].text
    else:
        texts = []
        for part in parts:
            if not isinstance(part, Lit):
                return WordNode(start, end, tuple(parts), None, quoted)
            texts.append(part.text)
        literal = "".join(texts)
    return WordNode(start, end, tuple(parts), literal, quoted)


def _unquoted(word: WordNode) -> str:
    """The delimiter of a here-document: its text, with expansions taken as written."""
    return word.literal if word.literal is not None else ""


def _ansi(m: re.Match[str]) -> str:
    simple, octal, hex_, short, long, control, other = m.groups()
    if simple:
        return ANSI_SIMPLE[simple]
    if octal:
        return chr(int(octal, 8) & 0xFF)
    digits = hex_ or short or long
    if digits:
        code = int(digits, 16)
        return chr(code) if code <= 0x10FFFF else "\ufffd"
    if control:
        return chr(ord(control) & 0x1F)
    return "\\" + other


def closing_bracket(text: str, start: int, end: int) -> int:
    """Where the `]` of an index stands that begins at `start`: `A[${#A[@]}]`; -1 if its line has none."""
    depth = 1
    for i in range(start, end):
        if text[i] == "\n":
            break
        depth += {"[": 1, "]": -1}.get(text[i], 0)
        if not depth:
            return i
    return -1
