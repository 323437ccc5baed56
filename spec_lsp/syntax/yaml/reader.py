"""Reads YAML files: manifests and other files that hold commands, and SGLang's own `--config` files."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from spec_lsp.expressions import expression
from spec_lsp.interruption import checkpoint
from spec_lsp.records import dataclass, field
from spec_lsp.syntax import covering
from spec_lsp.syntax.carriers import Read
from spec_lsp.syntax.covering import fewest
from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.launch import Choice, Directive, Document, EmbeddedFile, Launch, Problem, Variant, not_read_whole
from spec_lsp.syntax.remap import remap
from spec_lsp.syntax.shell.values import MAX_VARIANTS
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.chart import Chart
from spec_lsp.syntax.yaml.commands import SCRIPT_NAME, ConfigMapEntry, Reader
from spec_lsp.syntax.yaml.nodes import Part, documents, is_mapping, is_scalar, items, root_of, too_much
from spec_lsp.syntax.yaml.pipelines import argo_parameters
from spec_lsp.syntax.yaml.recipes import is_recipe, read_recipe
from spec_lsp.syntax.yaml.shift import shift
from spec_lsp.syntax.yaml.surroundings import Frame
from spec_lsp.syntax.yaml.templates import Template, Way, dropping, left_out, read_template, within
from spec_lsp.syntax.yaml.values import Values
from spec_lsp.syntax.yaml.words import asked
from spec_lsp.syntax.yaml.worlds import looked_at, together

if TYPE_CHECKING:
    from spec_lsp.syntax.written import Nested

TOP_KEY = expression(r"^(?:\"([A-Za-z][\w-]*)\"|'([A-Za-z][\w-]*)'|([A-Za-z][\w-]*))[ \t]*:(?=[ \t\r\n]|\Z)", re.M)
SIGN = expression(r"sglang|sgl-dev|srt-slurm", re.I)
CONFIG_MAP = expression(r"^kind:[ \t]*[\"']?ConfigMap\b", re.M)
COMPOSE_CONFIGS = expression(r"^configs:[ \t]*$", re.M)
CONFIG_NAME = expression(r"\.ya?ml\Z", re.I)
MATTERS = expression(r"--[a-z]|sglang|^[ \t]*-[ \t]|\bvalue:|\bimage:", re.M)
MAX_REMEMBERED = 512
MAX_ASKED = 4
"""The most names for which both cases, set and not set, are read."""
MAX_NESTED = 2
"""How many levels of YAML texts inside YAML are read."""
ALWAYS = Way()

LooksLike = Callable[[frozenset[str]], bool]


@dataclass(slots=True)
class Told:
    """The results for a document of a file."""

    launches: list[Launch] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    depends_on: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)


_told: OrderedDict[object, tuple[int, Told | None]] = OrderedDict()
"""The results for documents, and where they started then."""


def read_yaml(
    name: str,
    text: str,
    looks_like_config: LooksLike | None,
    read: Read = lambda path: None,
    nested: Nested | None = None,
) -> Document:
    """Read a YAML file: the launches in its documents, or one of program "config" if it is an SGLang `--config` file.

    It is one if a directive `# spec-lsp: config` says so, or `looks_like_config` does for its top-level keys (kebab case). That launch's
    words are `--config NAME`, and its variant's only file is the document itself. `nested` reads texts with code blocks inside scalars.
    """
    directives = directives_of(name, text)
    if _is_config(text, directives, looks_like_config):
        return Document(name, text, (_config_launch(name, text),), (), directives)
    if not SIGN.search(text):
        return Document(name, text, directives=directives)
    found = _File(name, text, looks_like_config, read, pages=nested).read_all()
    launches = tuple(together([((), found.launches)]))
    return Document(name, text, launches, tuple(found.problems), directives, frozenset(found.depends_on))


# --- files with commands -----------------------------------------------------------------------------------------------


class _File:
    """One reading of a file."""

    def __init__(
        self,
        name: str,
        text: str,
        looks_like: LooksLike | None,
        read: Read,
        depth: int = 0,
        pages: Nested | None = None,
    ) -> None:
        self.name = name
        self.depth = depth
        self.pages = pages
        self.text = text
        self.looks_like = looks_like
        self.template: Template = read_template(text)
        self.chart = Chart(name, self.read)
        self.values = Values(text, name, self.chart.value, self.chart.list_at)
        self.data: Mapping[str, Mapping[str, Word]] = {}
        self.asked = False
        self.signs = [m.start() for m in SIGN.finditer(text)]
        self._read = read

    def read(self, path: str) -> str | None:
        self.asked = True
        return self._read(path)

    def read_all(self) -> Told:
        stretches = list(documents(self.template.masked))
        maps = [e for start, end in stretches for e in self.config_maps(start, end)]
        self.data = {name: data for start, end in stretches for name, data in self.config_data(start, end)}
        told = [self.told(start, end, maps) for start, end in stretches if self.matters(start, end)]
        all_ = Told()
        for one in told:
            all_.launches += one.launches
            all_.problems += one.problems
            all_.depends_on |= one.depends_on
            all_.used |= one.used
        all_.launches += self.unused(maps, all_.used)
        return all_

    def matters(self, start: int, end: int) -> bool:
        at = bisect_left(self.signs, start)
        return at < len(self.signs) and self.signs[at] < end

    def told(self, start: int, end: int, maps: Sequence[ConfigMapEntry]) -> Told:
        """The results for a document: those of last time, if nothing has changed."""
        named = (
            *((e.owner, e.key, e.content.fragments) for e in maps),
            *((owner, key, word.fragments) for owner, data in self.data.items() for key, word in data.items()),
        )
        key = (self.name, self.text[start:end], self.template.masked[start:end], named, self.looks_like)
        before, found = _told.pop(key, (start, None))
        if found is not None and before != start:
            moves = shift(self.name, before, before + end - start, start - before)
            launches, problems = map(moves.launch, found.launches), map(moves.problem, found.problems)
            found = Told(list(launches), list(problems), found.depends_on, found.used)
        if found is None:
            self.asked = False
            found = self.document(start, end, maps)
            if self.asked:
                return found
        _told[key] = (start, found)
        if len(_told) > MAX_REMEMBERED:
            _told.popitem(last=False)
        return found

    def document(self, start: int, end: int, maps: Sequence[ConfigMapEntry]) -> Told:
        """Read a document in each of the ways in which its template can be rendered."""
        ways: list[tuple[tuple[Choice, ...], Sequence[Launch]]] = []
        told = Told()
        for way in self.template.ways(start, end, MATTERS):
            part = self.part(start, end, way)
            if part.root is None and (why := too_much(part.text)):
                told.problems.append(not_read_whole(self.name, why))
                break
            taken = tuple(Choice(Place(self.name, at, at), what) for at, what in way.taken)
            settings, of_settings = self.settings(part)
            for given in settings:
                reader = Reader(
                    part, self.read, self.looks_like, given, maps, self.data, nested=self.nested, page=self.page
                )
                if is_recipe(part):
                    reader.launches += read_recipe(part)
                else:
                    reader.document()
                told.problems += reader.problems if not ways else []
                told.depends_on |= reader.depends_on | self.chart.depends_on
                told.used |= reader.used
                launches = looked_at(reader.launches, fewest((way.looked_at, of_settings)))
                ways.append(((*taken, *_choices(part, given)), launches))
        told.launches = together(ways)
        return told

    def settings(self, part: Part) -> tuple[list[Mapping[str, bool]], covering.Ways]:
        """Combinations of whether the names are set that a Compose file asks about; a selection if there are too many."""
        names = asked(part.text) if "+" in part.text and part.is_compose else []
        written = self.read(".env") or "" if names else ""
        names = [n for n in names if not re.search(rf"^[ \t]*(?:export[ \t]+)?{n}=", written, re.M)]
        if len(names) <= MAX_ASKED:
            every = product((True, False), repeat=len(names))
            return [dict(zip(names, ways, strict=True)) for ways in every], "all"

        def answered(row: covering.Row[str]) -> Mapping[str, bool]:
            checkpoint()
            return {name: row.way(name, (0, 1), 2) == 0 for name in names}

        found, complete = covering.rows(answered, MAX_VARIANTS)
        return [given for _, given in found], "pairs" if complete else "some"

    def part(self, start: int, end: int, way: Way = ALWAYS) -> Part:
        template, out = self.template, way.left_out
        text = template.masked[start:end]
        if out or way.dropped:
            text = left_out(
                text, [(a - start, b - start) for a, b in out], [(a - start, b - start) for a, b in way.dropped]
            )
        hidden = template.hidden_in(start, end)
        printed = [h for h in within(template.printed, start, end) if not any(a <= h[0] < b for a, b in out)]
        holes = dropping(template.holes_in(start, end), way.dropped)
        signs = None if "&" in text else [m.start() for m in SIGN.finditer(text)]
        loops = [h for h in template.loops if h[0] < end and start < h[1]]
        part = Part(self.name, text, start, holes, sorted([*hidden, *out]), printed, loops, signs=signs)
        part.root = root_of(text)
        if holes or printed:
            part.names = argo_parameters(part) if ".parameters." in self.text else {}
            part.printer = partial(self.values.printed, world=dict(way.world))
            part.lines = lambda at: self.values.lines(template.prints[at]) if at in template.prints else []
            part.elements = lambda at: self.values.elements(template.over.get(at, ""))
        return part

    def nested(self, word: Word) -> Document:
        """The launches of a YAML text inside a scalar; its places are those in this file."""
        source = embedded(word)
        if self.depth >= MAX_NESTED:
            return Document(self.name, source.whole)
        name = f"{self.name}:{word.place.start}"
        inner = _File(name, source.whole, self.looks_like, self.read, self.depth + 1).read_all()
        return remap(Document(name, source.whole, tuple(inner.launches), tuple(inner.problems)), source)

    def page(self, word: Word) -> Document:
        """The launches of the code blocks of a text inside a scalar."""
        source = embedded(word)
        if self.pages is None or self.depth >= MAX_NESTED:
            return Document(self.name, source.whole)
        self.asked = True  # files that scripts of the page source are not recorded
        name = f"{self.name}:{word.place.start}"
        return remap(self.pages(name, source.whole, language="markdown"), source)

    # --- ConfigMaps

    def config_maps(self, start: int, end: int) -> Iterator[ConfigMapEntry]:
        """The files in a document that is a ConfigMap, and those that Compose writes."""
        if COMPOSE_CONFIGS.search(self.template.masked, start, end):
            yield from self.compose_configs(start, end)
        if not CONFIG_MAP.search(self.template.masked, start, end):
            return
        part = self.part(start, end)
        data = part.get(part.root, "data")
        owner = part.text_at(part.root, "metadata", "name") or ""
        for key, (_, value) in part.entries(data).items() if is_mapping(data) else ():
            if is_scalar(value) and (
                CONFIG_NAME.search(key) or SCRIPT_NAME.search(key) or value.value.startswith("#!")
            ):
                yield ConfigMapEntry(owner, key, part.word(value), start, end)

    def config_data(self, start: int, end: int) -> Iterator[tuple[str, Mapping[str, Word]]]:
        """The name of the ConfigMap in a document, and its contents as possible values of variables."""
        if "ConfigMap" in self.template.masked[start:end] and self.refers_to_data:
            part = self.part(start, end)
            if part.text_at(part.root, "kind") == "ConfigMap":
                entries = part.entries(part.get(part.root, "data"))
                data = {key: part.word(value) for key, (_, value) in entries.items() if is_scalar(value)}
                yield part.text_at(part.root, "metadata", "name") or "", data

    @property
    def refers_to_data(self) -> bool:
        return "configMapRef" in self.text or "configMapKeyRef" in self.text

    def compose_configs(self, start: int, end: int) -> Iterator[ConfigMapEntry]:
        part = self.part(start, end)
        for _, service in part.entries(part.get(part.root, "services")).values():
            for used in items(part.get(service, "configs")):
                source = part.text_at(used, "source")
                target = part.text_at(used, "target") or source
                content = part.get(part.root, "configs", source, "content") if source else None
                if source and target and is_scalar(content):
                    yield ConfigMapEntry(source, target.rpartition("/")[2], part.word(content), start, end)

    def unused(self, maps: Sequence[ConfigMapEntry], used: set[str]) -> Iterator[Launch]:
        """The launches in files of ConfigMaps that no command of the file names: scripts, and configuration files."""
        for entry in maps:
            content = "".join(f.text or "" for f in entry.content.fragments)
            if entry.name in used or not content:
                continue
            if not CONFIG_NAME.search(entry.key):
                reader = Reader(self.part(entry.start, entry.end), self.read, self.looks_like, config_maps=maps)
                reader.script(entry.content, Frame())
                yield from reader.launches
            elif _keys_fit(content, self.looks_like):
                yield _config(entry.key, entry.content, entry.content.fragments[0].place)
            elif SIGN.search(content):
                yield from self.nested(entry.content).launches


def _choices(part: Part, given: Mapping[str, bool]) -> Iterator[Choice]:
    places = asked(part.text) if given else {}
    for name, is_set in given.items():
        yield Choice(part.place(places[name], places[name]), f"`{name}` is {'' if is_set else 'not '}set")


# --- configuration files -----------------------------------------------------------------------------------------------


def _is_config(text: str, directives: Sequence[Directive], looks_like: LooksLike | None) -> bool:
    return any(re.match(r"config\b", d.text) for d in directives) or _keys_fit(text, looks_like)


def _keys_fit(text: str, looks_like: LooksLike | None) -> bool:
    """Whether its keys are those of a `--config` file. With underscores they belong to another program: SGLang accepts no such key."""
    if looks_like is None:
        return False
    keys = [m.group(1) or m.group(2) or m.group(3) for m in TOP_KEY.finditer(text)]
    if not keys or sum("_" in key for key in keys) > sum("-" in key for key in keys):
        return False
    return looks_like(frozenset(key.replace("_", "-") for key in keys))


def _config_launch(name: str, text: str) -> Launch:
    first = TOP_KEY.search(text)
    whole = Place(name, 0, len(text))
    place = Place(name, first.start(), first.end() - 1) if first else Place(name, 0, 0)
    return _config(name, Word((Fragment(text, whole),), whole), place)


def _config(name: str, content: Word, place: Place) -> Launch:
    """A configuration file as a launch without further arguments."""
    start = Place(place.document, content.place.start, content.place.start)
    words = (
        Word((Fragment("--config", start, False, fixed=True),), start),
        Word((Fragment(name, start, False, fixed=True),), start),
    )
    variant = Variant(words, files=(EmbeddedFile(name, content),))
    return Launch("config", place, content.place, (variant,), "yaml-mapping")
