"""Words: quotes, expansions, braces, and the text of here-documents."""

from __future__ import annotations

import re
from abc import abstractmethod

from spec_lsp.expressions import expression
from spec_lsp.syntax.shell.ast import Arithmetic, Lit, Opaque, Param, Part, Script, Substitution, WordNode
from spec_lsp.syntax.shell.braces import expand_braces
from spec_lsp.syntax.shell.scanner import CONTINUED, NEWLINE, Heredoc, Scanner, ShellSyntaxError

MAX_DEPTH = 40
PLAIN = expression(
    r"(?:[^\s\"'\\$`;&|<>()]|[\f\v\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]|\r(?!\n))+"
)
IN_DOUBLE_QUOTES = expression(r"[^\"\\$`]+")
IN_HEREDOC = expression(r"[^\\$`]+")
IN_ARGUMENT = expression(r"[^\"'\\$`}]+")
IN_QUOTED_ARGUMENT = expression(r"[^\"\\$`}]+")
PARAMETER = expression(r"(?:\\\r?\n)*(?:[A-Za-z_](?:(?:\\\r?\n)*[A-Za-z0-9_])*|[0-9]|[@*#?$!-])")
"""A line may continue before a name and within it."""
BRACED_PARAMETER = expression(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
PLACEHOLDER = expression(r"\$\{[A-Za-z_]\w*\.(?:[^{}\n]|\$\{[^{}\n]*\})*\}")
SETS_VARIABLE = expression(r"([A-Za-z_]\w*)\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))|(?:\+\+|--)([A-Za-z_]\w*)")
"""A variable that an arithmetic expression sets."""
OPERATORS = expression(r":?[-=?+]|##?|%%?|//?|\^\^?|,,?|@|:")
ANSI_ESCAPE = expression(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|c(.)|(.))", re.S
)
ANSI_SIMPLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
TRANSFORMATIONS = {"Q": "@Q", "U": "^^", "L": ",,", "u": "^"}
"""The operations of `${X@…}` that we can follow, by operator."""


class WordParser(Scanner):
    """Reads words. A subclass reads the commands of substitutions."""

    __slots__ = ()

    @abstractmethod
    def commands(self, stop: str) -> Script:
        """Commands up to `stop`, which is not consumed: an unmatched `)`, or "" for the end of the text."""

    def within(self, start: int, end: int, *, tolerant: bool) -> WordParser:
        """A parser of the same kind for a part of the text."""
        return type(self)(self.text, start, end, tolerant, self.depth + 1)

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
        return word_of(start, self.pos, parts, quoted)

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
        """Where a quote that is never closed ends, for text that is being typed: at the end of its line."""
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
        """A backslash outside of quotes; True unless it continues a line."""
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
            parts.append(Lit(escape.start(), escape.end(), _ansi(escape), True, False))
            self.pos = escape.end()

    def process_substitution(self, parts: list[Part]) -> None:
        start = self.pos
        self.pos += 2
        self.commands(")")
        self.close(")")
        parts.append(Opaque(start, self.pos, True, "process substitution"))

    def extended_glob(self, parts: list[Part]) -> None:
        close = self.balanced_one(self.pos + 1)
        if close is None:
            self.fail()
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
        if self.at("$[") and (close := self.balanced_bracket(start + 2)) is not None:
            self.pos = close + 1
            parts.append(Arithmetic(start, self.pos, quoted, self.inner_text(start + 2, close)))
            return
        if self.at("${"):
            parts.append(self.braced(quoted))
            return
        m = PARAMETER.match(self.text, start + 1, self.end)
        if m:
            self.pos = m.end()
            name = CONTINUED.sub("", m.group())
            parts.append(Param(start, self.pos, name, quoted, index=name if name in ("@", "*") else None))  # type: ignore[arg-type]
            return
        parts.append(Lit(start, start + 1, "$", quoted))
        self.pos += 1

    def substitution(self, quoted: bool) -> Substitution:
        start = self.pos
        self.pos += 2
        outer, self.heredocs = self.heredocs, []
        body = self.commands(")")
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
            inner = self.within(m.start(1), m.end(1), tolerant=False)
            try:
                body = inner.commands("")
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
        self.pos = m.end()
        param = Param(start, start, m.group(), quoted, length=length, indirect=indirect, split=split)
        if param.name in ("@", "*"):
            param.index = param.name  # type: ignore[assignment]
        if self.at("["):
            self.subscript(param)
        if self.at("."):
            return self.placeholder(start, quoted)
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

    def placeholder(self, start: int, quoted: bool) -> Part:
        """`${deployment.port}` is not shell syntax: the tool that reads the file (Hydra, Maven) replaces it before it becomes a script."""
        m = PLACEHOLDER.match(self.text, start, self.end)
        if not m:
            self.fail()
        self.pos = m.end()
        return Opaque(start, self.pos, quoted, "filled in before the script runs")

    def subscript(self, param: Param) -> None:
        close = self.balanced_bracket(self.pos + 1)
        if close is None:
            self.fail()
        inner = self.text[self.pos + 1 : close]
        param.index = inner if inner in ("@", "*") else self.inner_text(self.pos + 1, close)  # type: ignore[assignment]
        self.pos = close + 1

    def operator(self, param: Param, quoted: bool) -> None:
        m = OPERATORS.match(self.text, self.pos, self.end)
        if not m:
            self.fail()
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
            # In `"${X#'a'}"` single quotes quote; in `"${X:-'a'}"` they are ordinary characters.
            param.arg = self.argument(quoted and param.op.lstrip(":") in ("-", "=", "?", "+"), "")

    def argument(self, quoted: bool, stop: str) -> WordNode:
        """The word after an operator in `${…}`, up to the brace or the character `stop`, which is not consumed."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail_deep()
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
        return word_of(start, self.pos, parts, any_quoted or quoted)

    def inner_text(self, start: int, end: int) -> WordNode:
        """[start, end) as a text with expansions: an arithmetic expression, a subscript."""
        inner = self.within(start, end, tolerant=True)
        if inner.depth > MAX_DEPTH:
            self.fail_deep()
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
        return word_of(start, end, parts, True)

    def balanced(self, start: int) -> int | None:
        """The offset of the `))` that closes what opens at `start`, None if it is closed by single parentheses."""
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

    # Here-documents.

    def heredoc_body(self, heredoc: Heredoc) -> None:
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
        heredoc.redirect.body = word_of(start, stop, parts, True)
        self.pos = behind

    def heredoc_lines(self, start: int, stop: int, strip_tabs: bool) -> list[tuple[int, int]]:
        """The runs of a here-document's text that count: all of it, or each line after its tabs."""
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


def word_of(start: int, end: int, parts: list[Part], quoted: bool) -> WordNode:
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
    """Where the `]` is that closes an index that begins at `start`: `A[${#A[@]}]`; -1 if its line has none."""
    depth = 1
    for i in range(start, end):
        if text[i] == "\n":
            break
        depth += {"[": 1, "]": -1}.get(text[i], 0)
        if not depth:
            return i
    return -1
