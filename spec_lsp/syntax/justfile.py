"""Justfiles: the recipes, each line in a shell of its own or all of them in the interpreter of a first line with `#!`, with `{{…}}`
replaced.

Follows the manual of just: assignments, parameters with defaults, `export`, string literals and their concatenation. Parameters without a
default, functions and conditions are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass, field, replace
from spec_lsp.syntax.carriers import Read
from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.launch import Document
from spec_lsp.syntax.pins import Called, Pins
from spec_lsp.syntax.shell.embedding import Around, Collected, read_script
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.word import Fragment, Place, Word, brought_in, unknown

ASSIGNMENT = expression(r"(?P<export>export[ \t]+)?(?P<name>[A-Za-z_][\w-]*)[ \t]*:=[ \t]*(?P<value>[^\n]*)")
RECIPE = expression(r"@?(?P<name>[A-Za-z_][\w-]*)(?P<parameters>(?:\"[^\"\n]*\"|'[^'\n]*'|[^:\n\"'])*):(?!=)[^\n]*")
PARAMETER = expression(
    r"(?P<many>[*+])?(?P<export>\$)?(?P<name>[A-Za-z_][\w-]*)(?:[ \t]*=[ \t]*(?P<value>\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'|[^\s]+))?"
)
LINE = expression(r"[^\n]*(?:\n|\Z)")
INTERPOLATION = expression(r"\{\{\{\{|\{\{(?P<expression>.*?)\}\}")
TOKEN = expression(
    r"(?P<blank>[ \t]+)|(?P<raw>'''(?:.|\n)*?'''|'[^'\n]*')|(?P<text>\"\"\"(?:\\.|[^\"\\]|\"(?!\"\"))*\"\"\"|\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<call>(?:env_var_or_default|env_var|env)\((?P<arguments>[^()\n]*)\))|(?P<name>[A-Za-z_][\w-]*)(?!\()|(?P<plus>\+)|(?P<slash>/)",
)
SHELL_SHEBANG = expression(r"#!\s*\S*?(?:/env\s+(?:-S\s*)?)?(?:\S*/)?(?:bash|sh|zsh|dash|ksh)\b")
CALLS = expression(r"(?<![\w./-])just(?:[ \t]+-\S+)*[ \t]+(?P<name>[A-Za-z_][\w-]*)")
ON_COMMAND_LINE = "given to the recipe"
COMPUTED = "computed by just"
MAX_DEPTH = 20


@dataclass(slots=True)
class Recipe:
    name: str
    head: tuple[int, int]
    """Its first line."""
    parameters: list[re.Match[str]]
    start: int
    end: int
    values: dict[str, Word] = field(default_factory=dict)


def read_justfile(name: str, text: str, read: Read) -> Document:
    """All launches of a justfile's recipes."""
    reader = _JustfileReader(name, text)
    reader.read()
    pins = Pins(name, text, {r.name: Called(r.head, r.start, r.end) for r in reader.recipes}, CALLS)
    all_ = Collected()
    for recipe in reader.recipes:
        if "sglang" not in text[recipe.start : recipe.end] and "sglang" not in "".join(reader.written.values()):
            continue
        env = reader.environment(recipe)
        for script in reader.scripts(recipe):
            found = read_script(name, script, Around(env, read=read))
            all_.add(replace(found, launches=tuple(pins.told(recipe.name, found.launches))))
    return all_.document(name, text, directives_of(name, text))


class _JustfileReader:
    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.assigned: dict[str, tuple[int, int]] = {}
        self.worked_out: dict[str, Word] = {}
        """The values of assigned names."""
        self.written: dict[str, str] = {}
        self.exported: set[str] = set()
        self.exports_all = re.search(r"^set[ \t]+export\b(?![ \t]*:=[ \t]*false)", text, re.M) is not None
        self.recipes: list[Recipe] = []

    def read(self) -> None:
        text = self.text
        at = 0
        while at < len(text):
            line = LINE.match(text, at)
            end = line.end() if line else len(text)
            content = text[at:end].rstrip("\r\n")
            if not content or content[0] in " \t#[":
                at = max(end, at + 1)
                continue
            assignment = ASSIGNMENT.match(text, at)
            recipe = None if assignment else RECIPE.match(text, at)
            if assignment:
                at = self.assign(assignment)
            elif recipe:
                at = self.recipe(recipe, end)
            else:
                at = end

    def assign(self, m: re.Match[str]) -> int:
        start, end = m.span("value")
        for quotes in ("'''", '"""'):
            if self.text.startswith(quotes, start):
                close = self.text.find(quotes, start + 3)
                end = close + 3 if close >= 0 else end
        self.assigned[m.group("name")] = (start, end)
        self.written[m.group("name")] = self.text[start:end]
        if m.group("export"):
            self.exported.add(m.group("name"))
        newline = self.text.find("\n", end)
        return len(self.text) if newline < 0 else newline + 1

    def recipe(self, m: re.Match[str], start: int) -> int:
        body = re.compile(r"(?:[ \t]+[^\n]*(?:\n|\Z)|[ \t]*\r?\n)*").match(self.text, start)
        end = body.end() if body else start
        parameters = list(PARAMETER.finditer(self.text, m.start("parameters"), m.end("parameters")))
        self.recipes.append(Recipe(m.group("name"), m.span(), parameters, start, end))
        return max(end, start)

    # Values.

    def values(self, recipe: Recipe) -> dict[str, Word]:
        """The values of a recipe's parameters: their defaults, else unknown."""
        if not recipe.values:
            for m in recipe.parameters:
                place = Place(self.name, *m.span("name"))
                if m.group("value") and not m.group("many"):
                    recipe.values[m.group("name")] = self.expression(*m.span("value"), {})
                else:
                    recipe.values[m.group("name")] = unknown(place, ON_COMMAND_LINE)
        return recipe.values

    def environment(self, recipe: Recipe) -> dict[str, Word]:
        names = self.assigned if self.exports_all else self.exported
        env = {name: self.variable(name, {}, 0) for name in names}
        values = self.values(recipe)
        given = {m.group("name"): values[m.group("name")] for m in self.exported_parameters(recipe)}
        env.update((name, word) for name, word in given.items() if not _is_simple(word))
        return env

    def exported_parameters(self, recipe: Recipe) -> list[re.Match[str]]:
        return [m for m in recipe.parameters if m.group("export") or self.exports_all]

    def defaults(self, recipe: Recipe) -> tuple[Fragment, ...]:
        """`$kind="small"` has the same meaning for the recipe's shell as `kind=${kind:-small}`: a default that may be replaced."""
        fragments: list[Fragment] = []
        values = self.values(recipe)
        for m in self.exported_parameters(recipe):
            name, value = m.group("name"), values[m.group("name")]
            if _is_simple(value):
                place = Place(self.name, *m.span("name"))
                fragments.append(Fragment(f"export {name}=${{{name}:-", place, False, fixed=True))
                fragments.extend(value.fragments)
                fragments.append(Fragment("}\n", place, False, fixed=True))
        return tuple(fragments)

    def variable(self, name: str, own: Mapping[str, Word], depth: int) -> Word:
        if name in own:
            return own[name]
        span = self.assigned.get(name)
        if span is None or depth > MAX_DEPTH:
            return unknown(Place(self.name, 0, 0), COMPUTED)
        if name not in self.worked_out:  # once, however often the name occurs
            self.worked_out[name] = unknown(Place(self.name, *span), COMPUTED)
            self.worked_out[name] = self.expression(*span, {}, depth + 1)
        return self.worked_out[name]

    def expression(self, start: int, end: int, own: Mapping[str, Word], depth: int = 0) -> Word:
        """The value of strings and variables with `+` or `/` between them; anything else is unknown."""
        place = Place(self.name, start, end)
        gap = unknown(place, COMPUTED)
        fragments: list[Fragment] = []
        at = start
        stop = start + len(_without_comment(self.text[start:end]).rstrip())
        while at < stop:
            m = TOKEN.match(self.text, at, stop)
            if m is None:
                return gap
            here = Place(self.name, *m.span())
            if m.group("raw"):
                width = 3 if m.group().startswith("'''") else 1
                fragments.extend(self.literal(m.start() + width, m.end() - width, raw=True))
            elif m.group("text"):
                width = 3 if m.group().startswith('"""') else 1
                fragments.extend(self.literal(m.start() + width, m.end() - width, raw=False))
            elif m.group("call"):
                fragments.extend(self.call(m, depth))
            elif m.group("name"):
                value = self.variable(m.group("name"), own, depth)
                fragments.extend(brought_in(value, here))
            elif m.group("slash"):
                fragments.append(Fragment("/", here, False, fixed=True))
            at = m.end()
        return Word(tuple(fragments), place)

    def call(self, m: re.Match[str], depth: int) -> tuple[Fragment, ...]:
        """`env("NAME", "default")` is its default."""
        comma = m.group("arguments").find(",")
        if comma < 0 or m.group("call").startswith("env_var("):
            return (Fragment(None, Place(self.name, *m.span()), False, "from the environment"),)
        start = m.start("arguments") + comma + 1
        while start < m.end("arguments") and self.text[start] in " \t":
            start += 1
        return self.expression(start, m.end("arguments"), {}, depth + 1).fragments

    def literal(self, start: int, end: int, *, raw: bool) -> Iterator[Fragment]:
        at = start
        for m in () if raw else re.compile(r"\\(.)", re.S).finditer(self.text, start, end):
            if at < m.start():
                yield Fragment(self.text[at : m.start()], Place(self.name, at, m.start()))
            meant = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}.get(m.group(1), m.group(1))
            yield Fragment(meant, Place(self.name, *m.span()), False)
            at = m.end()
        if at < end:
            yield Fragment(self.text[at:end], Place(self.name, at, end))

    # Recipes.

    def scripts(self, recipe: Recipe) -> Iterator[Word]:
        """The scripts that a recipe's shells read; a recipe whose first line names a program other than a shell is skipped."""
        lines = list(self.lines(recipe))
        first = next((line.text or "" for line in lines if (line.text or "").strip()), "")
        if first.startswith("#!"):
            if SHELL_SHEBANG.match(first):
                place = Place(self.name, recipe.start, recipe.end)
                whole = self.interpolated(Word(tuple(f for line in lines for f in line.fragments), place), recipe)
                yield whole._replace(fragments=(*self.defaults(recipe), *whole.fragments))
            return
        waiting: list[Fragment] = []
        for line in lines:
            text = line.text or ""
            skip = 0 if waiting else len(text) - len(text.lstrip("@-"))
            waiting.extend(line.slice(skip, len(text)))
            if not text.rstrip("\r\n").endswith("\\"):
                if waiting:
                    yield self.line(waiting, line.place, recipe)
                waiting = []
        if waiting:
            yield self.line(waiting, lines[-1].place, recipe)

    def line(self, fragments: list[Fragment], place: Place, recipe: Recipe) -> Word:
        whole = self.interpolated(Word(tuple(fragments), place), recipe)
        return whole._replace(fragments=(*self.defaults(recipe), *whole.fragments))

    def lines(self, recipe: Recipe) -> Iterator[Word]:
        """The lines of a recipe without the indentation of the first."""
        indent: int | None = None
        at = recipe.start
        while at < recipe.end:
            newline = self.text.find("\n", at)
            after = min(len(self.text) if newline < 0 else newline + 1, recipe.end)
            line = self.text[at:after]
            blanks = len(line) - len(line.lstrip(" \t"))
            if indent is None and line.strip():
                indent = blanks
            start = at + min(blanks, indent or 0)
            place = Place(self.name, start, after)
            yield Word((Fragment(self.text[start:after], place),) if start < after else (), place)
            at = after

    def interpolated(self, script: Word, recipe: Recipe) -> Word:
        """The text with `{{…}}` replaced."""
        source = embedded(script)
        text = source.whole
        if "{{" not in text:
            return script
        values = self.values(recipe)
        fragments: list[Fragment] = []
        at = 0
        for m in INTERPOLATION.finditer(text):
            fragments.extend(source.fragments(at, m.start()))
            here = source.place(*m.span())
            at = m.end()
            if m.group("expression") is None:
                fragments.append(Fragment("{{", here, False))
                continue
            blanks = len(m.group("expression")) - len(m.group("expression").lstrip())
            inside = source.place(m.start("expression") + blanks, m.end("expression"))
            value = self.expression(inside.start, inside.end, values)
            fragments.extend(
                f._replace(via=(here, *(v for v in f.via if not here.contains(v)))) for f in value.fragments
            )
        fragments.extend(source.fragments(at, len(text)))
        return Word(tuple(fragments), script.place)


def _is_simple(word: Word) -> bool:
    """Whether a shell reads the text literally."""
    return word.text is not None and re.fullmatch(r"[\w./:=@%+,-]*", word.text) is not None


def _without_comment(text: str) -> str:
    m = re.search(r"(?:^|[ \t])#", text) if not re.search(r"[\"'][^\"']*#", text) else None
    return text[: m.start()] if m else text
