"""Jenkinsfiles: the commands of a pipeline's `sh` steps, with the environment, image and agent around them.

Only the needed part of Groovy is read: its four kinds of strings and their escapes, `environment { … }` and `withEnv([…])`, `agent`,
`node`, `docker.image(…).inside(…)`. The value of an expression is known if it is a variable that is set once, to a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field
from spec_lsp.syntax.carriers import Read
from spec_lsp.syntax.directives import begins_line
from spec_lsp.syntax.launch import Clue, Directive, Document
from spec_lsp.syntax.shell.commands import container_options
from spec_lsp.syntax.shell.embedding import Around, Collected, read_script
from spec_lsp.syntax.word import Fragment, Place, Word, literal
from spec_lsp.syntax.yaml.words import split

TOKEN = expression(
    r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<raw>'''(?:\\.|(?!''').)*?(?:'''|\Z))|(?P<text>\"\"\"(?:\\.|(?!\"\"\").)*?(?:\"\"\"|\Z))"
    r"|(?P<raw1>'(?:\\.|[^'\\\n])*'?)|(?P<text1>\"(?:\\.|[^\"\\\n])*\"?)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<mark>[^\s\w])|(?P<line>\n)",
    re.S,
)
ESCAPE = expression(r"\\(?:u+[0-9a-fA-F]{4}|\r\n|.)", re.S)
SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "s": " ", "\n": "", "\r\n": ""}
INTERPOLATION = expression(r"\\.|\$\{(?P<code>[^{}]*)\}|\$(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)", re.S)
DIRECTIVE = expression(r"//[ \t]*spec-lsp:[ \t]*([^\r\n]*)")
FROM_GROOVY = "computed in the pipeline"
AGENT_KEYS = ("image", "label", "args", "docker")
STRINGS = ("raw", "text", "raw1", "text1")


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


@dataclass(slots=True)
class Block:
    """A block in braces; `name` is what precedes it (`environment`, `agent`, `stage`)."""

    name: str = ""
    env: dict[str, Word] = field(default_factory=dict)
    clues: tuple[Clue, ...] = ()


def read_jenkinsfile(name: str, text: str, read: Read) -> Document:
    """All launches of a pipeline's steps."""
    reader = _PipelineReader(name, text, read)
    reader.run()
    directives = tuple(_directives(name, text, reader.comments))
    return reader.all.document(name, text, directives)


def _directives(name: str, text: str, comments: Sequence[Token]) -> Iterator[Directive]:
    for comment in comments:
        m = DIRECTIVE.match(comment.text)
        if m:
            yield Directive(m[1].strip(), Place(name, comment.start, comment.end), begins_line(text, comment.start))


class _PipelineReader:
    def __init__(self, name: str, text: str, read: Read) -> None:
        self.name = name
        self.text = text
        self.read = read
        found = [Token(m.lastgroup or "", m.group(), *m.span()) for m in TOKEN.finditer(text)]
        self.comments = [t for t in found if t.kind == "comment"]
        self.tokens = [t for t in found if t.kind != "comment"]
        self.blocks = [Block()]
        self.values: dict[str, Word | None] = {}
        """Variables of the script; None for one that is set more than once."""
        self.all = Collected()

    def run(self) -> None:
        at = 0
        waiting = Block()
        """What the next block to open is given."""
        while at < len(self.tokens):
            token = self.tokens[at]
            at += 1
            if token.kind == "mark" and token.text == "{":
                outer = self.blocks[-1]
                self.blocks.append(Block(waiting.name, {**outer.env, **waiting.env}, (*waiting.clues, *outer.clues)))
                waiting = Block()
            elif token.kind == "mark" and token.text == "}":
                if len(self.blocks) > 1:
                    self.close()
            elif token.kind == "name":
                at = self.word(token, at, waiting)

    def close(self) -> None:
        """Apply what `environment { … }` and `agent { … }` say to the block around them."""
        block = self.blocks.pop()
        if block.name == "environment":
            self.blocks[-1].env.update(block.env)
        elif block.name in ("agent", "docker"):
            self.blocks[-1].clues = tuple(dict.fromkeys((*block.clues, *self.blocks[-1].clues)))

    def word(self, token: Token, at: int, waiting: Block) -> int:
        """Read what begins with a name: a step, a block, an assignment; returns where to continue."""
        block = self.blocks[-1]
        if self.is_mark(at, "."):
            return self.image_of(at, waiting) if token.text == "docker" else at
        if token.text == "sh":
            return self.step(at)
        if token.text == "withEnv":
            at, listed = self.strings(at)
            for word in listed:
                name, equals, _ = word.known_start.partition("=")
                if equals:
                    waiting.env[name] = word.split(len(name) + 1)[1]
            return at
        if token.text == "node" or (token.text in AGENT_KEYS and block.name in ("agent", "docker")):
            behind, value = self.string(self.skip(at, "("))
            if value is not None:
                holder = waiting if token.text == "node" else block
                holder.clues = (*holder.clues, *self.clues(token.text, value))
                return behind
        if self.is_mark(at, "=") and not self.is_mark(at + 1, "="):
            return self.assign(token, at + 1)
        waiting.name = token.text
        return at

    def clues(self, key: str, value: Word) -> tuple[Clue, ...]:
        if key == "args":
            return container_options(split(value), 0)[1].clues
        kind = "image" if key in ("image", "docker") else "runner"
        return (Clue(kind, value.text, value.place),) if value.text else ()  # type: ignore[arg-type]

    def image_of(self, at: int, waiting: Block) -> int:
        """`docker.image('…').inside('--gpus all') { … }`."""
        if not self.is_name(at + 1, "image"):
            return at
        at, image = self.string(self.skip(at + 2, "("))
        if image is not None:
            waiting.clues = (*waiting.clues, *self.clues("image", image))
        at = self.skip(at, ")")
        if self.is_mark(at, ".") and self.is_name(at + 1, "inside"):
            at, args = self.string(self.skip(at + 2, "("))
            waiting.clues = (*waiting.clues, *(self.clues("args", args) if args is not None else ()))
        return at

    def assign(self, token: Token, at: int) -> int:
        at, value = self.string(at)
        if self.blocks[-1].name == "environment":
            if value is not None:
                self.blocks[-1].env[token.text] = value
        else:
            self.values[token.text] = value if token.text not in self.values else None
        return at

    def step(self, at: int) -> int:
        """`sh '…'`, `sh(script: '…', returnStdout: true)`, `sh label: '…', script: "…"`."""
        at = self.skip(self.skip(at, "("), "[")
        while self.kind(at) == "name" and self.is_mark(at + 1, ":"):
            if self.tokens[at].text == "script":
                at += 2
                break
            at += 3  # another parameter, with a value of one token
            at = self.lines(self.skip(at, ","))
        token = self.tokens[at] if self.kind(at) == "name" else None
        at, script = self.string(at)
        if token is not None and script is None:  # a variable
            place = Place(self.name, token.start, token.end)
            at, script = at + 1, Word(self.value(token.text, place), place)
        if script is not None:
            block = self.blocks[-1]
            found = read_script(self.name, script, Around(block.env, block.clues, read=self.read))
            self.all.add(found)
        return at

    # --- tokens

    def kind(self, at: int) -> str:
        return self.tokens[at].kind if at < len(self.tokens) else ""

    def is_mark(self, at: int, mark: str) -> bool:
        return self.kind(at) == "mark" and self.tokens[at].text == mark

    def is_name(self, at: int, name: str) -> bool:
        return self.kind(at) == "name" and self.tokens[at].text == name

    def lines(self, at: int) -> int:
        while self.kind(at) == "line":
            at += 1
        return at

    def skip(self, at: int, mark: str) -> int:
        return self.lines(at + 1) if self.is_mark(at, mark) else at

    # --- strings

    def strings(self, at: int) -> tuple[int, list[Word]]:
        """The strings of a list that begins at a token: `(["A=b", 'C=d'])`."""
        found: list[Word] = []
        while at < len(self.tokens) and not self.is_mark(at, "]") and not self.is_mark(at, "{"):
            behind, word = self.string(at)
            found += [word] if word is not None else []
            at = max(behind, at + 1)
        return at, found

    def string(self, at: int) -> tuple[int, Word | None]:
        """The string that begins at a token, with `+` between its parts; None if there is none."""
        fragments: list[Fragment] = []
        start = at
        while True:
            kind = self.kind(at)
            if kind in STRINGS:
                fragments += self.characters(self.tokens[at])
            elif kind == "name" and (fragments or self.is_mark(at + 1, "+")):
                token = self.tokens[at]
                fragments += self.value(token.text, Place(self.name, token.start, token.end))
            else:
                break
            at += 1
            plus = self.lines(at)
            if not self.is_mark(plus, "+"):
                break
            at = self.lines(plus + 1)
        if at == start or not fragments:
            return at, (literal("", Place(self.name, 0, 0)) if at > start else None)
        first, last = self.tokens[start], self.tokens[at - 1]
        return at, Word(tuple(fragments), Place(self.name, first.start, last.end))

    def characters(self, token: Token) -> Iterator[Fragment]:
        """The text between the quotes of a string, with escapes and in double quotes also `$name` and `${…}` replaced."""
        quotes = 3 if token.kind in ("raw", "text") else 1
        closed = len(token.text) >= 2 * quotes and token.text.endswith(token.text[:quotes])
        start, end = token.start + quotes, token.end - (quotes if closed else 0)
        if token.kind in ("raw", "raw1"):
            yield from self.escaped(start, end)
            return
        at = start
        for m in INTERPOLATION.finditer(self.text, start, end):
            if m["code"] is None and m["name"] is None:
                continue
            yield from self.escaped(at, m.start())
            yield from self.value((m["code"] or m["name"]).strip(), Place(self.name, *m.span()))
            at = m.end()
        yield from self.escaped(at, end)

    def escaped(self, start: int, end: int) -> Iterator[Fragment]:
        at = start
        for m in ESCAPE.finditer(self.text, start, end):
            if at < m.start():
                yield Fragment(self.text[at : m.start()], Place(self.name, at, m.start()))
            written = m.group()[1:]
            code = written.lstrip("u") if len(written) > 4 else ""
            meant = chr(int(code, 16)) if code else SIMPLE.get(written, written)
            yield Fragment(meant, Place(self.name, *m.span()), False)
            at = m.end()
        if at < end:
            yield Fragment(self.text[at:end], Place(self.name, at, end))

    def value(self, code: str, place: Place) -> tuple[Fragment, ...]:
        """The value of an expression."""
        env: Mapping[str, Word] = self.blocks[-1].env
        found = self.values.get(code) or env.get(code.removeprefix("env."))
        if found is None:
            return (Fragment(None, place, False, FROM_GROOVY),)
        return tuple(f._replace(via=(place, *f.via)) for f in found.fragments)
