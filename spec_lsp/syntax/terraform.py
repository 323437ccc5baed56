"""Terraform and OpenTofu: scripts in here-documents (`user_data = <<-EOT`), strings and lists, and the arguments of containers.

Only the needed part of HCL is read: blocks, attributes, objects, strings with `${…}`, here-documents and lists. `var.x` with a default and
`local.x` have the file's values; anything else that Terraform computes is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field, replace
from spec_lsp.syntax.carriers import Read
from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.kinds import kind_of
from spec_lsp.syntax.launch import Clue, ClueKind, Document
from spec_lsp.syntax.remap import remap
from spec_lsp.syntax.shell.embedding import Around, Collected, CommandResult, read_arguments, read_script
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.word import Fragment, Place, Word, literal, unknown
from spec_lsp.syntax.written import MANIFEST, Nested
from spec_lsp.syntax.yaml.words import joined_lines

TOKEN = expression(
    r"(?P<blank>(?:\s|#[^\n]*|//[^\n]*|/\*.*?(?:\*/|\Z))+)"
    r"|<<(?P<dash>-?)(?P<delimiter>[A-Za-z_][\w-]*)[ \t]*\r?\n(?P<document>.*?)(?:^[ \t]*(?P=delimiter)[ \t]*\r?$|\Z)"
    r"|(?P<string>\")|(?P<name>[A-Za-z_][\w-]*(?:\.[\w-]+)*)|(?P<number>\d+(?:\.\d+)?)|(?P<mark>[^\s\w])",
    re.S | re.M,
)
IN_STRING = expression(
    r"(?P<kept>\$\$\{|%%\{)|\$\{(?P<code>(?:[^{}\"]|\"[^\"\n]*\"|\{[^{}]*\})*)\}|(?P<directive>%\{[^{}\n]*\})"
    r"|\\(?P<escape>u[0-9a-fA-F]{4}|.)|(?P<end>[\"\n])"
)
IN_DOCUMENT = expression(
    r"(?P<kept>\$\$\{|%%\{)|\$\{(?P<code>(?:[^{}\"]|\"[^\"\n]*\"|\{[^{}]*\})*)\}|(?P<directive>%\{[^{}\n]*\})"
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
VARIABLE = expression(r"^[ \t]*variable[ \t]+\"(?P<name>[\w-]+)\"[ \t]*\{(?P<body>[^{}]*)\}", re.M)
LOCALS = expression(r"^[ \t]*locals[ \t]*\{(?P<body>[^{}]*)\}", re.M)
DEFAULT = expression(
    r"^[ \t]*default[ \t]*=[ \t]*(?:\"(?P<text>[^\"\\$%\n]*)\"|(?P<number>-?\d+(?:\.\d+)?))[ \t]*\r?$", re.M
)
LOCAL = expression(
    r"^[ \t]*(?P<name>[\w-]+)[ \t]*=[ \t]*(?:\"(?P<text>[^\"\\$%\n]*)\"|(?P<number>-?\d+(?:\.\d+)?))[ \t]*\r?$", re.M
)
CLUES: dict[str, ClueKind] = {
    **dict.fromkeys(
        ("instance_type", "machine_type", "vm_size", "size", "shape", "gpu_type", "accelerator_type", "node_instance_type"), "gpu"
    ),
    **dict.fromkeys(("image", "image_uri", "container_image"), "image"),
}  # fmt: skip
ACCELERATORS = frozenset(("guest_accelerator", "accelerator", "accelerators"))
RESOURCE = expression(r"(?:nvidia\.com|amd\.com|huawei\.com|gpu\.intel\.com)/")
ENVIRONMENTS = frozenset(("env", "environment", "env_vars", "environment_variables"))
PARTS_OF_A_COMMAND = ("entrypoint", "entryPoint", "command", "args")
LINES = frozenset(("inline", "commands"))
SAME_TEXT = frozenset(
    (
        "base64encode",
        "trimspace",
        "chomp",
        "jsonencode",
        "base64gzip",
        "tostring",
        "tolist",
        "nonsensitive",
        "sensitive",
    )
)
"""Functions that stand for their first argument."""
FROM_TERRAFORM = "computed by Terraform"
MAX_DEPTH = 60


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int
    end: int
    word: Word | None = None
    """The text of a string or here-document."""
    own_line: bool = False
    """Whether it is the first of its line."""


@dataclass(slots=True)
class Block:
    """A block or an object: the values of its attributes, each as the words of a list or as one word."""

    name: str
    outer: Block | None = None
    attributes: dict[str, list[Word]] = field(default_factory=dict)
    lists: set[str] = field(default_factory=set)
    documents: set[str] = field(default_factory=set)
    env: dict[str, Word] = field(default_factory=dict)
    clues: list[Clue] = field(default_factory=list)

    def text(self, name: str) -> str | None:
        found = self.attributes.get(name, ())
        return found[0].text if len(found) == 1 else None

    def around(self, read: Read) -> Around:
        """The settings of this block and those around it; inner ones come first."""
        env: dict[str, Word] = {}
        clues: list[Clue] = []
        block: Block | None = self
        while block is not None:
            env = {**block.env, **env}
            clues += block.clues
            block = block.outer
        return Around(env, tuple(dict.fromkeys(clues)), read=read)


def read_terraform(name: str, text: str, read: Read, nested: Nested) -> Document:
    """All launches of a configuration."""
    reader = _TerraformReader(name, text)
    reader.body(Block(""), 0, 0)
    all_ = Collected()
    for block in reader.blocks:
        for found in _started(name, block, read, nested):
            all_.add(found)
    all_.launches.sort(key=lambda launch: launch.extent.start)
    return all_.document(name, text, directives_of(name, text))


# --- what a block starts -----------------------------------------------------------------------------------------------


def _started(name: str, block: Block, read: Read, nested: Nested) -> Iterator[CommandResult | Document]:
    around = block.around(read)
    command = [key for key in PARTS_OF_A_COMMAND if key in block.attributes]
    if any(key in block.lists for key in command):
        yield read_arguments(name, [word for key in command for word in block.attributes[key]], around, "list-words")
        command = list(PARTS_OF_A_COMMAND)
    for key, words in block.attributes.items():
        if key in command and key in block.lists:
            continue
        if key in block.lists:
            if key in LINES and words:
                yield read_script(name, joined_lines(words), around)
        elif words and _speaks(words[0]) and (key in block.documents or _is_script(key)):
            yield _text(name, words[0], around, nested)


def _text(name: str, word: Word, around: Around, nested: Nested) -> CommandResult | Document:
    """The launches of a text: it is read as a script unless it is clearly another kind of file."""
    source = embedded(word)
    start = source.whole.lstrip()
    kind = "yaml" if start.startswith("#cloud-config") or MANIFEST.search(start) else kind_of("", start, None)
    kind = "json" if start.startswith(("{", "[")) else kind
    if kind in ("", "shell"):
        return read_script(name, word, around)
    found = remap(nested(name, source.whole, language=kind), source)
    launches = (replace(one, clues=tuple(dict.fromkeys((*one.clues, *around.clues)))) for one in found.launches)
    return replace(found, launches=tuple(launches))


def _speaks(word: Word) -> bool:
    return any("sglang" in (f.text or "") for f in word.fragments)


def _is_script(key: str) -> bool:
    return re.search(r"command|script|user_data|userdata|run|exec|cmd", key) is not None


# --- HCL ---------------------------------------------------------------------------------------------------------------


class _TerraformReader:
    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.known = dict(self.given())
        self.tokens = list(self.tokenized())
        self.blocks: list[Block] = []

    def given(self) -> Iterator[tuple[str, Word]]:
        """The values of `var.x` and `local.x`, if the file states them literally."""
        for variable in VARIABLE.finditer(self.text):
            default = DEFAULT.search(self.text, *variable.span("body"))
            if default is not None:
                yield f"var.{variable['name']}", self.literal(default)
        for block in LOCALS.finditer(self.text):
            for m in LOCAL.finditer(self.text, *block.span("body")):
                yield f"local.{m['name']}", self.literal(m)

    def literal(self, m: re.Match[str]) -> Word:
        group = "text" if m["text"] is not None else "number"
        return literal(m[group], Place(self.name, *m.span(group)))

    # Tokens.

    def tokenized(self) -> Iterator[Token]:
        at = 0
        own_line = True
        while at < len(self.text):
            m = TOKEN.match(self.text, at)
            if m is None:
                at += 1
                continue
            start, at = m.start(), m.end()
            kind = m.lastgroup or ""
            if kind == "blank":
                own_line = own_line or "\n" in m.group()
                continue
            if kind == "string":
                word, at = self.string(at)
                yield Token("string", "", start, at, word, own_line)
            elif kind == "document":
                pieces = self.lines(*m.span("document"), strip=bool(m["dash"]))
                fragments = [f for low, high in pieces for f in self.template(low, high)]
                yield Token(
                    "document", "", start, at, Word(tuple(fragments), Place(self.name, *m.span("document"))), own_line
                )
            else:
                yield Token(kind, m.group(), start, at, None, own_line)
            own_line = False

    def string(self, start: int) -> tuple[Word, int]:
        """The string whose first character is at `start`, and where the text after it starts."""
        fragments: list[Fragment] = []
        at = start
        for m in IN_STRING.finditer(self.text, start):
            if at < m.start():
                fragments.append(Fragment(self.text[at : m.start()], Place(self.name, at, m.start())))
            at = m.end()
            if m["end"]:
                break
            fragments += self.replaced(m, m["escape"] or "")
        return Word(tuple(fragments), Place(self.name, start - 1, max(at, start))), max(at, start)

    def template(self, start: int, end: int) -> Iterator[Fragment]:
        """The characters of a here-document."""
        at = start
        for m in IN_DOCUMENT.finditer(self.text, start, end):
            if at < m.start():
                yield Fragment(self.text[at : m.start()], Place(self.name, at, m.start()))
            yield from self.replaced(m, "")
            at = m.end()
        if at < end:
            yield Fragment(self.text[at:end], Place(self.name, at, end))

    def replaced(self, m: re.Match[str], escape: str) -> Iterator[Fragment]:
        """The replacement of `$${`, `${…}`, `%{…}` (empty) and an escape."""
        place = Place(self.name, *m.span())
        if m["kept"]:
            yield Fragment(m["kept"][1:], place, False)
        elif escape:
            meant = chr(int(escape[1:], 16)) if len(escape) > 1 else ESCAPES.get(escape, escape)
            yield Fragment(meant, place, False)
        elif m["code"] is not None:
            value = self.known.get(m["code"].strip())
            yield from self.brought_in(value, place)

    def brought_in(self, value: Word | None, place: Place) -> tuple[Fragment, ...]:
        if value is None:
            return (Fragment(None, place, False, FROM_TERRAFORM),)
        return tuple(f._replace(via=(place, *f.via)) for f in value.fragments)

    def lines(self, start: int, end: int, *, strip: bool) -> list[tuple[int, int]]:
        """The lines of a here-document; `<<-` removes from each the indentation that all share."""
        text = self.text[start:end]
        lines = text.splitlines(keepends=True)
        indents = [len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()]
        margin = min(indents, default=0) if strip else 0
        if not margin:
            return [(start, end)]
        found = []
        for line in lines:
            blanks = min(margin, len(line) - len(line.lstrip(" \t")))
            found.append((start + blanks, start + len(line)))
            start += len(line)
        return found

    # Structure. Each function takes the index of a token and returns that of the token after what it read.

    def kind(self, at: int) -> str:
        return self.tokens[at].kind if at < len(self.tokens) else ""

    def is_mark(self, at: int, marks: str) -> bool:
        return self.kind(at) == "mark" and self.tokens[at].text in marks

    def body(self, block: Block, at: int, depth: int) -> int:
        """Attributes and blocks up to the closing brace."""
        if depth > MAX_DEPTH:
            return len(self.tokens)
        self.blocks.append(block)
        while at < len(self.tokens) and not self.is_mark(at, "}"):
            at = self.entry(block, at, depth)
        self.close(block)
        return at + 1

    def entry(self, block: Block, at: int, depth: int) -> int:
        token = self.tokens[at]
        if token.kind not in ("name", "string"):
            return self.body(Block("", block), at + 1, depth + 1) if self.is_mark(at, "{") else at + 1
        key = token.text if token.word is None else token.word.text or ""
        if self.is_mark(at + 1, "=:") and not self.is_mark(at + 2, "="):
            return self.attribute(block, key, at + 2, depth)
        at += 1
        while self.kind(at) in ("name", "string") and not self.tokens[at].own_line:
            at += 1  # labels
        return self.body(Block(key, block), at + 1, depth + 1) if self.is_mark(at, "{") else at

    def attribute(self, block: Block, key: str, at: int, depth: int) -> int:
        if self.is_mark(at, "["):
            block.lists.add(key)
        if self.kind(at) == "document" or (self.is_mark(at + 1, "(") and self.kind(at + 2) == "document"):
            block.documents.add(key)
        at, words = self.value(block, key, at, depth)
        block.attributes[key] = words
        return at

    def value(self, block: Block, key: str, at: int, depth: int) -> tuple[int, list[Word]]:
        """The words of an expression; blocks in it are read as such."""
        start = at
        at, words = self.operand(block, key, at, depth)
        while self.is_mark(at, "?:=!<>&|+-*/%.[") and not self.tokens[at].own_line and at > start:
            at, _ = self.operand(block, key, at + 1, depth)
            words = [self.computed(start, at)]
        return at, words

    def operand(self, block: Block, key: str, at: int, depth: int) -> tuple[int, list[Word]]:
        kind = self.kind(at)
        if kind in ("string", "document"):
            word = self.tokens[at].word
            return at + 1, [word] if word is not None else []
        if kind == "number":
            token = self.tokens[at]
            return at + 1, [literal(token.text, Place(self.name, token.start, token.end))]
        if self.is_mark(at, "{"):
            return self.body(Block(key, block), at + 1, depth + 1), []
        if self.is_mark(at, "[("):
            return self.listed(block, key, at, depth)
        if kind == "name":
            return self.called(block, key, at, depth) if self.is_mark(at + 1, "(") else (at + 1, [self.named(at)])
        return at + 1, []

    def listed(self, block: Block, key: str, at: int, depth: int) -> tuple[int, list[Word]]:
        """The words between brackets."""
        closing = "]" if self.is_mark(at, "[") else ")"
        words: list[Word] = []
        at += 1
        while at < len(self.tokens) and not self.is_mark(at, closing):
            if self.is_mark(at, "}") or depth > MAX_DEPTH:
                return at, words  # it is not closed
            start = at
            at, found = self.value(block, key, at, depth + 1)
            if not self.is_mark(at, f",{closing}"):  # HCL refuses it, so it is not a list of arguments
                found = [self.computed(start, at)]
            words += found
            at += self.is_mark(at, ",")
        return at + 1, words

    def called(self, block: Block, key: str, at: int, depth: int) -> tuple[int, list[Word]]:
        """A function's value: the items joined by `concat`, a text that is only encoded; unknown for any other function."""
        behind, words = self.listed(block, key, at + 1, depth)
        function = self.tokens[at].text
        if function in SAME_TEXT or function == "concat":
            return behind, words
        return behind, [self.computed(at, behind)]

    def named(self, at: int) -> Word:
        token = self.tokens[at]
        place = Place(self.name, token.start, token.end)
        if token.text in ("true", "false"):
            return literal(token.text, place)
        value = self.known.get(token.text)
        return Word(self.brought_in(value, place), place) if value is not None else unknown(place, FROM_TERRAFORM)

    def computed(self, start: int, end: int) -> Word:
        last = self.tokens[min(max(end - 1, start), len(self.tokens) - 1)]
        return unknown(Place(self.name, self.tokens[start].start, last.end), FROM_TERRAFORM)

    # The settings of blocks.

    def close(self, block: Block) -> None:
        """Pass the settings of a block to the one around it."""
        outer = block.outer
        for key, words in block.attributes.items():
            for word in words if key in CLUES else ():
                if word.text:
                    block.clues.append(Clue(CLUES[key], word.text, word.place))
            if RESOURCE.match(key) and outer is not None:
                maker = "nvidia" if key.startswith("nvidia") else key
                place = words[0].place if words else Place(self.name, 0, 0)
                block.clues.append(Clue("platform", maker, place))
        if outer is None:
            return
        if block.name in ENVIRONMENTS:
            named = block.text("name")
            if named is not None:
                outer.env[named] = next(
                    iter(block.attributes.get("value", ())), unknown(Place(self.name, 0, 0), FROM_TERRAFORM)
                )
            else:
                outer.env.update((key, words[0]) for key, words in block.attributes.items() if len(words) == 1)
        elif block.name in ACCELERATORS and (kind := block.text("type")):
            outer.clues.append(Clue("gpu", kind, block.attributes["type"][0].place))
        elif block.name in ("limits", "requests", "resources"):
            outer.clues += block.clues
