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
from dataclasses import dataclass

from spec_lsp.interruption import checkpoint
from spec_lsp.syntax.shell.ast import (
    AndOr,
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
    Part,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Test,
    While,
    WordNode,
)
from spec_lsp.syntax.shell.scanner import Heredoc, ShellSyntaxError
from spec_lsp.syntax.shell.words import MAX_DEPTH, PLAIN, WordParser, closing_bracket, word_of

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=|\[)")
REDIRECT = re.compile(r"(\d+|\{[A-Za-z_]\w*\})?(<<<|<<-?|<>|<&|>&|>>|>\||<(?!\()|>(?!\())|(&>>?)")
REDIRECT_STARTS = frozenset("<>&{0123456789")
FUNCTION = re.compile(r"([^\s\"'\\$`;&|<>()=]+)[ \t]*\([ \t]*\)")
UNARY = re.compile(r"-[a-zA-Z](?=[ \t\r\n\\])")
BINARY = re.compile(r"(?:==|=~|!=|=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))(?=[ \t\r\n\\]|\Z)|[<>]")
DECLARATIONS = frozenset({"export", "local", "declare", "typeset", "readonly"})


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


class _Parser(WordParser):
    __slots__ = ()

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
        checkpoint()
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

    # Redirects and assignments.

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
        return word_of(start, self.pos, parts, False)


def _unquoted(word: WordNode) -> str:
    """The delimiter of a here-document: its text, with expansions taken as written."""
    return word.literal if word.literal is not None else ""
