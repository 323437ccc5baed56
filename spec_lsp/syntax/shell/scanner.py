"""A position in a script's text, and what every part of bash's grammar skips: blanks, comments, newlines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NoReturn

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field
from spec_lsp.syntax.shell.ast import Redirect

BLANKS = expression(r"(?:[ \t]+|\\\r?\n)+")
CONTINUED = expression(r"\\\r?\n")
NEWLINE = expression(r"\r?\n")
RESERVED = expression(
    r"(?:if|then|elif|else|fi|for|select|while|until|do|done|case|esac|function|time|coproc|\[\[|[{}!])(?=[\s;&|()<>]|\Z)"
)


class ShellSyntaxError(Exception):
    """Bash would refuse the statement, or it is nested too deeply for us."""


class NestedTooDeep(ShellSyntaxError):  # noqa: N818 - a bound of ours, no error of theirs
    """Bash may accept the statement, but it is nested too deeply for us."""


@dataclass(slots=True, eq=False)
class Heredoc:
    """A here-document whose text begins after the next newline."""

    redirect: Redirect
    delimiter: str
    quoted: bool
    strip_tabs: bool


@dataclass(slots=True, eq=False)
class Scanner(ABC):
    """Offsets refer to `text`; reading goes from `pos` to `end`. A mismatch raises ShellSyntaxError."""

    text: str
    pos: int
    end: int
    tolerant: bool
    depth: int = 0
    comments: list[tuple[int, int]] = field(default_factory=list)
    heredocs: list[Heredoc] = field(default_factory=list)
    """The here-documents of the current line, in order."""
    assigning: bool = False

    @abstractmethod
    def heredoc_body(self, heredoc: Heredoc) -> None:
        """Reads the text of a here-document that begins here."""

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

    def fail(self) -> NoReturn:
        raise ShellSyntaxError

    def fail_deep(self) -> NoReturn:
        raise NestedTooDeep

    def close(self, token: str) -> None:
        if self.pos >= self.end and self.tolerant:
            return
        self.take(token)

    def reserved(self) -> str:
        m = RESERVED.match(self.text, self.pos, self.end)
        if not m:
            return ""
        return m.group()
