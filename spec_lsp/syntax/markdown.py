"""Markdown, MDX and reStructuredText: the commands and files in their code blocks.

Each block is read alone: exports and spec-lsp comments of one do not apply to the next, since a reader may type them into different shells.
HTML comments are not part of the page. Placeholders that a reader must replace (`<your-model>`, `{path}`, `...`) are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, replace
from spec_lsp.syntax.carriers import FENCES, Read
from spec_lsp.syntax.directives import begins_line, directives_in
from spec_lsp.syntax.kinds import SUPERVISED
from spec_lsp.syntax.launch import Clue, Directive, Document, Launch
from spec_lsp.syntax.mapped import Mapped
from spec_lsp.syntax.notebook import commands, without_magic
from spec_lsp.syntax.remap import remap
from spec_lsp.syntax.shell.commands import PIN, typed_entry
from spec_lsp.syntax.shell.embedding import Around, read_script
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.standing import Launches, Standing, stand_again
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.written import Nested, with_written_files

FENCE = expression(
    r"^(?P<lead>(?:[ \t]*>)*[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(?P<fence>`{3,}|~{3,})(?P<info>[^\n\r]*)", re.M
)
RST_BLOCK = expression(
    r"^(?P<indent>[ \t]*)(?:\.\.[ \t]+(?:code-block|sourcecode|code|prompt)::[ \t]*(?P<language>[\w+-]*)[^\n]*\n"
    r"|(?!\.\.[ \t])[^\n]*::[ \t]*\r?\n(?=[ \t]*\r?\n))",
    re.M,
)
"""A directive that shows code, or a paragraph that ends with `::` and has a literal block below."""
INFO = expression(r"[{.\s]*(?:(?:code-block|code-cell|code|sourcecode)\}?[ \t]+)?[{.]*([A-Za-z][\w+-]*)?")
SHELLS = frozenset(("bash", "sh", "shell", "zsh", "ksh", "shellscript", "slurm", "sbatch", "terminal"))
CONSOLES = frozenset(("console", "shell-session", "shellsession", "bash-session", "sh-session", "session"))
PLAIN = frozenset(("", "text", "txt", "plaintext", "none", "plain"))
INI = frozenset(("ini", "conf", "cfg", "config", "unit", "properties"))
SERVICE = expression(r"^[ \t]*\[(?:Service|Container)\][ \t]*\r?$", re.M)
INDENTED = expression(
    r"(?P<lines>^(?:    |\t)[ \t]*\S[^\n]*(?:\n|\Z)(?:^(?:    |\t)[^\n]*(?:\n|\Z)|^[ \t]*\r?\n(?=    |\t))*)", re.M
)
PROMPT = expression(
    r"[ \t]*(?:\([\w.\-/ ]+\)[ \t]*)?(?:[\w.-]+@[\w.-]+[:~ ][^\s$#%]*[ \t]*)?(?P<mark>[$%❯➜#])[ \t]+(?=\S)"
)
CONTINUES = expression(r"\\[ \t]*\r?\n?\Z")
ENTRY = typed_entry(r"[ \t]+")
STARTS = expression(
    rf"[ \t]*(?:[$#%][ \t]+)?(?:[A-Za-z_]\w*=\S*[ \t]+)*(?:(?:nohup|exec|time|sudo|env|uv[ \t]+run)[ \t]+)*{ENTRY}"
    rf"|[ \t]*(?:[$#%][ \t]+)?(?:sudo[ \t]+)?(?:nsys|ncu|rocprofv3|numactl|srun|docker|podman|singularity|apptainer)[ \t].*[ \t]{ENTRY}"
)
THEN = expression(r"&&|\|\||;")
SHEBANG = expression(r"\s*#![ \t]*/\S*(?:/|env[ \t]+)(?:bash|sh|zsh|ksh|dash)\b")
CELL = expression(r"^[ \t]*!!?[\w./]", re.M)
"""A line of a notebook's cell that is run by the shell."""
PLACEHOLDER = expression(
    r"(?<![<$\w])<[A-Za-z](?:[^<>\n|;&]*[^<>\s|;&])?>(?!>)"  # <your-model>
    r"|\{\{[^{}\n]*\}\}"  # {{ model }}
    r"|(?<![$\w{\\])\{[A-Za-z_][\w .,|/-]*\}(?!\})"  # {path}
    r"|(?<!\S)\[[-A-Za-z][^\]\n\"']*\](?!\S)"  # [options]
    r"|(?<!\S)(?:\.{3}|…)(?!\S)"  # ...
    r"|(?<=[ \t=])(?:N|X|HOST|PORT|IP|[A-Z0-9_]*YOUR[A-Z0-9_]*|[A-Z][A-Z0-9]*_(?:PATH|DIR|NAME|SIZE|IP|ADDR|PORT|HOST|ID|MODEL))(?=\s|\Z)"
)
ANGLED = expression(r"(?<![<$\w])<[A-Za-z][\w ./:-]*>")
ELISION = expression(r"^[ \t]*[\[(]?(?:\.{3}|…)[\])]?[ \t]*\\?[ \t]*\r?$", re.M)
A_PLACEHOLDER = "a placeholder"
HIDDEN = expression(r"^ {0,3}<!--", re.M)
"""An HTML comment that starts a line (CommonMark's second kind of HTML block)."""
COMMENT = expression(
    r"<!--[ \t]*spec-lsp:(?P<html>[^\n<]*?)-->|\{/\*[ \t]*spec-lsp:(?P<mdx>[^\n{]*?)\*/\}|^[ \t]*\.\.[ \t]+spec-lsp:(?P<rst>[^\n\r]*)",
    re.M,
)
MAX_BLOCKS = 20_000


@dataclass(frozen=True, slots=True)
class Block:
    """A code block: its language in lower case, its content without indentation and quote marks, and its place including the fences."""

    language: str
    body: Word
    extent: Place


@dataclass(frozen=True, slots=True)
class _Read:
    """What a block came to, with places anchored to it, and what that depends on beside the document's name."""

    shape: object
    found: Document | None
    pin: Clue | None = None
    launches: Sequence[Launch] = ()
    """Those found, with the page's pin where they name no release."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """The last reading of a page: where its blocks and what is between them stand, and what was read, by the bases of the blocks."""

    standing: Standing
    read: Mapping[int, _Read]


_readings: dict[str, _Reading] = {}
MAX_REMEMBERED = 64


def read_markdown(name: str, text: str, read: Read, nested: Nested) -> Document:
    """All launches in the code blocks of a text. Blocks that read as they did in the last reading are not read again."""
    every = list(blocks(name, text))
    speaking = [b for b in every if "sglang" in text[b.extent.start : b.extent.end]]
    cuts = sorted({0, *(at for block in speaking for at in block.extent[1:])})
    last = _readings.get(name)
    texts = [text[a:b] for a, b in pairwise((*cuts, len(text)))]
    standing = stand_again(name, texts, last.standing if last is not None else None)
    anchor, in_text = Mapped(standing.anchor), Mapped(standing.place)
    pin = _pin(name, text, every)
    pin = anchor.clue(pin) if pin is not None else None
    before, kept = last.read if last is not None else {}, dict[int, _Read]()
    try:
        for block in speaking:
            base = standing.anchored(block.extent.start)
            kept[base] = _pinned(_read_again(name, text, block, base, before.get(base), read, nested), pin)
    finally:  # what was read before the work was stopped need not be read again
        _keep(name, _Reading(standing, {**before, **kept}))
    found = [one for one in kept.values() if one.found is not None and one.launches]
    inner = [one.found for one in found if one.found is not None]
    directives = [in_text.directive(d) for one in inner for d in one.directives]
    directives += _comments(name, text, every)
    directives.sort(key=lambda d: d.place)
    launches = Launches([launch for one in found for launch in one.launches], standing, tuple(directives))
    problems = tuple(in_text.problem(p) for one in inner for p in one.problems)
    return Document(name, text, launches, problems, launches.of, frozenset[str]().union(*(d.depends_on for d in inner)))


def _keep(name: str, reading: _Reading) -> None:
    still = ((base, reading.read.get(base)) for base in reading.standing.bases)
    _readings.pop(name, None)
    _readings[name] = replace(reading, read={base: one for base, one in still if one is not None})
    if len(_readings) > MAX_REMEMBERED:
        del _readings[next(iter(_readings))]


def _read_again(
    name: str, text: str, block: Block, base: int, known: _Read | None, read: Read, nested: Nested
) -> _Read:
    """What a block comes to; what it came to in the last reading, if it reads the same. One that reads other files is not kept."""
    start, end = block.extent[1:]
    pieces = [(f.place.start - start, f.place.end - start) for f in block.body.fragments]
    shape = block.language, text[start:end], pieces
    if known is not None and known.shape == shape:  # None for one that is not kept
        return known
    asked = False

    def noted(path: str) -> str | None:
        nonlocal asked
        asked = True
        return read(path)

    found = _read_block(name, block, noted, partial(nested, read=noted))

    def anchored(place: Place) -> Place:
        own = place.document == name and start <= place.start and place.end <= end
        return Place(name, place.start - start + base, place.end - start + base) if own else place

    if found is not None:
        to = Mapped(anchored)
        found = replace(
            found,
            launches=tuple(map(to.launch, found.launches)),
            problems=tuple(map(to.problem, found.problems)),
            directives=tuple(to.directive(replace(d, within=block.extent)) for d in found.directives),
        )
    return _Read(None if asked else shape, found)


def _pinned(one: _Read, pin: Clue | None) -> _Read:
    """The same with the launches as they are where a page pins this release."""
    if one.found is None or (one.launches and one.pin == pin):
        return one
    launches = [
        launch if pin is None or _names_release(launch) else replace(launch, clues=(*launch.clues, pin))
        for launch in one.found.launches
    ]
    return replace(one, pin=pin, launches=launches)


def _read_block(name: str, block: Block, read: Read, nested: Nested) -> Document | None:
    """The launches of a block, including those of the `!` lines of a notebook's cell."""
    is_cell = block.language in PLAIN | SHELLS or FENCES.get(block.language) == "python"
    if not is_cell or not CELL.search(block.body.text or ""):
        return _read_as_document(name, block, read, nested)
    typed = [read_script(name, _filled(command), Around(read=read)) for command in commands(block.body)]
    rest = replace(block, body=without_magic(block.body))
    inner = _read_as_document(name, rest, read, nested) or Document(name, block.body.text or "", (), ())
    launches = sorted((*inner.launches, *(one for t in typed for one in t.launches)), key=lambda one: one.extent.start)
    problems = (*inner.problems, *(p for t in typed for p in t.problems))
    asked = inner.depends_on.union(*(t.depends_on for t in typed))
    return replace(inner, launches=tuple(launches), problems=problems, depends_on=asked)


def _filled(command: Word) -> Word:
    return command if command.text is None else _with_holes(command, PLACEHOLDER)


def _read_as_document(name: str, block: Block, read: Read, nested: Nested) -> Document | None:
    language = FENCES.get(block.language)
    if block.language in INI | PLAIN:
        known = (("systemd", SERVICE), ("supervisor", SUPERVISED))
        language = next((kind for kind, section in known if section.search(block.body.text or "")), None)
    if language is not None:
        body = _with_holes(block.body, ANGLED) if language != "python" else block.body
        source = embedded(body)
        return remap(nested(name, source.whole, language=language), source)
    text = block.body.text or ""
    if block.language in PLAIN and not starts_sglang(text) and not SHEBANG.match(text):
        return None
    if block.language not in PLAIN and block.language not in SHELLS and block.language not in CONSOLES:
        return None
    body, comments = _commands(block.body, block.language in CONSOLES)
    filled = _with_holes(body, PLACEHOLDER)
    script = read_script(name, filled, Around(read=read))
    if ELISION.search(text):
        script = replace(script, problems=())
    document = Document(
        name, text, script.launches, script.problems, tuple(comments), script.depends_on, files=script.files
    )
    return with_written_files(document, embedded(filled), nested)


def starts_sglang(text: str) -> bool:
    """Whether a line of a block without a language is a command that starts SGLang; a log may mention it, too."""
    lines = (line for line in text.splitlines() if "sglang" in line)
    return any(STARTS.match(command) for line in lines for command in THEN.split(line))


# --- blocks ------------------------------------------------------------------------------------------------------------


def blocks(name: str, text: str) -> Iterator[Block]:
    """The code blocks in order: fenced ones (in lists, quotes and tabs too), reStructuredText's, indented ones that start SGLang."""
    at = 0
    count = 0
    fence = FENCE.search(text)
    while count < MAX_BLOCKS:
        if fence is not None and fence.start() < at:
            fence = FENCE.search(text, at)
        m = RST_BLOCK.search(text, at, fence.start() if fence else len(text)) or fence
        hidden = HIDDEN.search(text, at, m.start() if m else len(text))
        if hidden is not None:
            yield from _indented(name, text, at, hidden.start())
            end = text.find("-->", hidden.end())
            at = len(text) if end < 0 else end + 3
            continue
        if m is None:
            break
        count += 1
        yield from _indented(name, text, at, m.start())
        if m.re.pattern == FENCE.pattern:
            language, start, body_end, at = _fenced(text, m)
            lead = m.group("lead")
        else:
            language, start, body_end, lead = _directive_body(text, m)
            at = body_end
        body = _dedented(name, text, start, body_end, lead.count(">"), len(lead) - lead.rfind(">") - 1)
        yield Block(language, body, Place(name, m.start(), max(at, m.end())))
    yield from _indented(name, text, at, len(text))


def _fenced(text: str, m: re.Match[str]) -> tuple[str, int, int, int]:
    """Language, start and end of the body, and the end of the closing fence; an unclosed fence extends to the end of the text."""
    fence = m.group("fence")
    info = INFO.match(m.group("info"))
    newline = text.find("\n", m.end())
    start = len(text) if newline < 0 else newline + 1
    closing = re.compile(rf"^[ \t>]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*\r?$", re.M).search(text, start)
    language = (info.group(1) or "").lower() if info else ""
    if "`" in m.group("info") and fence[0] == "`":  # ```inline```
        return "inline", m.end(), m.end(), m.end()
    return (language, start, closing.start(), closing.end()) if closing else (language, start, len(text), len(text))


def _directive_body(text: str, m: re.Match[str]) -> tuple[str, int, int, str]:
    """The body of `.. code-block::` or of a literal block: the lines below that are indented more, without its options."""
    margin = len(m.group("indent"))
    lines = re.compile(rf"(?:[ \t]*\r?\n|[ \t]{{{margin + 1},}}[^\n]*(?:\n|\Z))*").match(text, m.end())
    end = lines.end() if lines else m.end()
    options = re.compile(r"(?:[ \t]+:[\w-]+:[^\n]*\n)*").match(text, m.end())
    start = options.end() if options else m.end()
    first = re.compile(r"(?:[ \t]*\r?\n)*([ \t]*)\S").match(text, start, end)
    return (m.group("language") or "").lower(), start, end, first.group(1) if first else ""


def _indented(name: str, text: str, start: int, end: int) -> Iterator[Block]:
    """Indented blocks between fences, but only those that clearly start SGLang, as indentation has other meanings too."""
    if "sglang" not in text[start:end]:
        return
    for m in INDENTED.finditer(text, start, end):
        above = text[max(m.start("lines") - 100, 0) : m.start("lines")].replace("\r", "")
        if "sglang" in m.group() and (not above.strip() or re.search(r"\n[ \t]*\n\Z", above)):
            first = re.search(r"^[ \t]+(?=\S)", m.group("lines"), re.M)
            body = _dedented(name, text, m.start("lines"), m.end(), 0, len(first.group()) if first else 4)
            if starts_sglang(body.text or ""):
                yield Block("", body, Place(name, m.start("lines"), m.end()))


def _dedented(name: str, text: str, start: int, end: int, quotes: int, indent: int) -> Word:
    """The lines of [start, end) without quote marks and indentation; adjacent characters form one fragment."""
    if not quotes and not indent:
        whole = Place(name, start, end)
        return Word((Fragment(text[start:end], whole),) if start < end else (), whole)
    lead = re.compile(rf"(?:[ \t]*>){{0,{quotes}}}[ \t]{{0,{indent}}}")
    fragments: list[Fragment] = []
    at = start
    while at < end:
        newline = text.find("\n", at, end)
        after = end if newline < 0 else newline + 1
        m = lead.match(text, at, after)
        begin = m.end() if m else at
        if begin < after:
            fragments.append(Fragment(text[begin:after], Place(name, begin, after)))
        at = after
    return Word(tuple(fragments), Place(name, start, end))


# --- what is typed -----------------------------------------------------------------------------------------------------


def _commands(body: Word, console: bool) -> tuple[Word, list[Directive]]:
    """What a reader types, and the spec-lsp comments in it: the text after prompts if there are any, else all lines."""
    lines = list(_lines(body))
    prompts = [PROMPT.match(line) for _, _, line in lines]
    marks = {m.group("mark") for m in prompts if m}
    with_dollar = bool(marks - {"#"})
    typed: list[Fragment] = []
    directives: list[Directive] = []
    document = body.place.document
    if not with_dollar and not (console and marks):
        for start, place, line in lines:
            typed.extend(body.slice(start, start + len(line)))
            directives += _directives(document, line, place)
        return Word(tuple(typed), body.place), directives
    goes_on = False
    for (start, place, line), prompt in zip(lines, prompts, strict=True):
        directives += _directives(document, line, place)
        own = prompt is not None and not (with_dollar and prompt.group("mark") == "#")
        if not own and not goes_on:
            continue
        skip = prompt.end() if own and prompt else 0
        if goes_on and not own:
            more = re.match(r"[ \t]*>[ \t]", line)
            skip = more.end() if more else 0
        typed.extend(body.slice(start + skip, start + len(line)))
        goes_on = CONTINUES.search(line) is not None
    return Word(tuple(typed), body.place), directives


def _lines(body: Word) -> Iterator[tuple[int, Place, str]]:
    """Each line with its offset in the text, its place, and its text with the line end."""
    source = embedded(body)
    at = 0
    for line in source.whole.splitlines(keepends=True):
        yield at, source.place(at, at + len(line)), line
        at += len(line)


def _directives(document: str, line: str, place: Place) -> list[Directive]:
    if "spec-lsp" not in line:
        return []
    found = directives_in(document, line, 0, len(line))
    shift = place.end - len(line)
    return [replace(d, place=Place(document, d.place.start + shift, d.place.end + shift)) for d in found]


def _with_holes(body: Word, pattern: re.Pattern[str]) -> Word:
    """The text with each placeholder unknown."""
    text = body.text or ""
    fragments: list[Fragment] = []
    source = embedded(body)
    at = 0
    for m in pattern.finditer(text):
        fragments.extend(source.fragments(at, m.start()))
        fragments.append(Fragment(None, source.place(*m.span()), False, A_PLACEHOLDER))
        at = m.end()
    if not at:
        return body
    fragments.extend(source.fragments(at, len(text)))
    return Word(tuple(fragments), body.place)


# --- what the page says around them ------------------------------------------------------------------------------------


def _comments(name: str, text: str, every: Sequence[Block]) -> Iterator[Directive]:
    """`<!-- spec-lsp: … -->` outside of code; one above a block applies to all of it."""
    if "spec-lsp" not in text:
        return
    for m in COMMENT.finditer(text):
        if any(b.extent.start <= m.start() < b.extent.end for b in every):
            continue
        own_line = begins_line(text, m.start())
        following = next((b for b in every if b.extent.start >= m.end()), None)
        scope = None
        if own_line and following is not None and not COMMENT.sub("", text[m.end() : following.extent.start]).strip():
            scope = following.extent
        said = m.group("html") or m.group("mdx") or m.group("rst") or ""
        yield Directive(said.strip(), Place(name, m.start(), m.end()), own_line, scope)


def _names_release(launch: Launch) -> bool:
    return any(c.kind in ("image", "pin") for c in launch.clues)


def _pin(name: str, text: str, every: Sequence[Block]) -> Clue | None:
    """The release that the page tells its readers to install, if it is the same throughout."""
    found: dict[str, Clue] = {}
    for block in every:
        start, end = block.extent.start, block.extent.end
        if block.language in SHELLS | CONSOLES and re.search(r"\binstall\b", text[start:end]):
            for m in re.compile(rf"(?<![\w/-]){PIN.pattern}").finditer(text, start, end):
                found.setdefault(m.group().replace(" ", ""), Clue("pin", m.group(), Place(name, *m.span())))
    return next(iter(found.values())) if len(found) == 1 else None
