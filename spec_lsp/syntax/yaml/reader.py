"""Reads YAML files: manifests and other files that hold commands, and SGLang's own `--config` files."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING

from spec_lsp.expressions import expression
from spec_lsp.interruption import checkpoint
from spec_lsp.records import dataclass, field
from spec_lsp.syntax import covering
from spec_lsp.syntax.carriers import Read
from spec_lsp.syntax.covering import fewest
from spec_lsp.syntax.directives import directives_of
from spec_lsp.syntax.launch import Choice, Document, EmbeddedFile, Launch, Problem, Variant, not_read_whole
from spec_lsp.syntax.mapped import Mapped
from spec_lsp.syntax.offsets import Offsets
from spec_lsp.syntax.remap import remap
from spec_lsp.syntax.shell.values import MAX_VARIANTS
from spec_lsp.syntax.source import embedded
from spec_lsp.syntax.standing import Launches, Standing, stand_after_edit, stand_again
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.chart import Chart
from spec_lsp.syntax.yaml.commands import SCRIPT_NAME, ConfigMapEntry, Reader
from spec_lsp.syntax.yaml.nodes import Part, documents, is_mapping, is_scalar, items, root_of, too_much
from spec_lsp.syntax.yaml.pipelines import argo_parameters
from spec_lsp.syntax.yaml.recipes import is_recipe, read_recipe
from spec_lsp.syntax.yaml.surroundings import Frame
from spec_lsp.syntax.yaml.templates import MARKS, Template, Way, dropping, left_out, read_template, within
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
MAX_REMEMBERED = 64
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


@dataclass(frozen=True, slots=True)
class Glance:
    """What a look at the text of one document of a file tells."""

    keys: frozenset[str]
    underscores: int
    dashes: int
    """How many of the keys at the top have some."""
    launches: bool
    """Whether it may launch something."""
    template: bool
    config_map: bool
    compose_configs: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """What a document of a file came to, and what that depends on beside the settings of the file's reading."""

    text: str
    glance: Glance
    masked: str = ""
    around: object = None
    told: Told | None = None


@dataclass(frozen=True, slots=True)
class _Reading:
    """The last reading of a file. The places of `told` are anchored to the file's documents."""

    standing: Standing
    text: str | None
    """The text that was cut into these documents; None where that was done with what a template's marks hold left out."""
    looks_like: LooksLike | None
    around: Around
    kept: dict[int, Kept]
    """By the bases of the documents."""


Around = tuple[object, ...]
"""The texts in ConfigMaps of a file that its documents may mount or read."""
_readings: OrderedDict[str, _Reading] = OrderedDict()


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
    last = _readings.get(name)
    last = last if last is not None and last.looks_like is looks_like_config else None
    if last is not None and last.text is not None:
        standing = stand_after_edit(last.standing, last.text, text, documents, len("--- "))
    else:
        standing = stand_again(name, _texts(text, documents(text)), last.standing if last is not None else None)
    kept = _glanced(standing, last)
    _keep(name, _Reading(standing, text, looks_like_config, last.around if last is not None else (), kept))
    if any(re.match(r"config\b", d.text) for d in directives) or _keys_fit(kept.values(), looks_like_config):
        return Document(name, text, (_config_launch(name, text),), (), directives)
    if not any(map(attrgetter("glance.launches"), kept.values())):
        return Document(name, text, directives=directives)
    if any(map(attrgetter("glance.template"), kept.values())):
        template = read_template(text)
        standing = stand_again(name, _texts(text, documents(template.masked)), standing)
        kept = _glanced(standing, last)
    else:
        template = Template(text)
    file = _File(name, text, looks_like_config, read, standing, template, pages=nested)
    try:
        found = file.read_all(kept, last)
    finally:  # what was read of a file before the work was stopped need not be read again
        whole = text if template.masked is text else None
        _keep(name, _Reading(standing, whole, looks_like_config, file.around, {**kept, **file.kept}))
    launches = Launches(together([((), found.launches)]), standing, directives)
    problems = tuple(map(Mapped(standing.place).problem, found.problems))
    return Document(name, text, launches, problems, directives, frozenset(found.depends_on))


def _keep(name: str, reading: _Reading) -> None:
    _readings[name] = reading
    _readings.move_to_end(name)
    if len(_readings) > MAX_REMEMBERED:
        _readings.popitem(last=False)


def _texts(text: str, stretches: Iterable[tuple[int, int]]) -> list[str]:
    return [text[start:end] for start, end in stretches]


def _glanced(standing: Standing, last: _Reading | None) -> dict[int, Kept]:
    """The documents of a file by their bases, those of the last reading where they read the same."""
    before = last.kept if last is not None else {}
    return {
        base: known if (known := before.get(base)) and known.text == text else Kept(text, _glance(text))
        for base, text in zip(standing.bases, standing.texts, strict=True)
    }


def _glance(text: str) -> Glance:
    keys = [double or single or plain for double, single, plain in TOP_KEY.findall(text)]
    return Glance(
        frozenset(keys),
        sum("_" in key for key in keys),
        sum("-" in key for key in keys),
        SIGN.search(text) is not None,
        any(mark in text for mark in MARKS),
        "ConfigMap" in text,
        COMPOSE_CONFIGS.search(text) is not None,
    )


# --- files with commands -----------------------------------------------------------------------------------------------


class _File:
    """One reading of a file."""

    def __init__(
        self,
        name: str,
        text: str,
        looks_like: LooksLike | None,
        read: Read,
        standing: Standing,
        template: Template,
        depth: int = 0,
        pages: Nested | None = None,
    ) -> None:
        self.name = name
        self.depth = depth
        self.pages = pages
        self.text = text
        self.looks_like = looks_like
        self.standing = standing
        self.template = template
        self.around: Around = ()
        self.kept: dict[int, Kept] = {}
        self.chart = Chart(name, self.read)
        self.values = Values(text, name, self.chart.value, self.chart.list_at)
        self.data: Mapping[str, Mapping[str, Word]] = {}
        self.asked = False
        self._read = read

    def read(self, path: str) -> str | None:
        self.asked = True
        return self._read(path)

    def read_all(self, documents: Mapping[int, Kept], last: _Reading | None = None) -> Told:
        """All that the documents of the file come to, with anchored places."""
        standing = self.standing
        each = [
            (start, start + len(one.text), base, one)
            for start, (base, one) in zip(standing.starts, documents.items(), strict=True)
        ]
        maps = [
            e
            for start, end, _, one in each
            if one.glance.config_map or one.glance.compose_configs
            for e in self.config_maps(start, end, one.glance)
        ]
        self.data = {
            name: data
            for start, end, _, one in each
            if one.glance.config_map
            for name, data in self.config_data(start, end)
        }
        self.around = self.texts_around(maps)
        if last is not None and last.around == self.around:
            self.around = last.around
        all_, plain = Told(), self.template.masked is self.text
        for start, end, base, one in each:
            if not one.glance.launches:
                self.kept[base] = one
                continue
            masked = one.text if plain else self.template.masked[start:end]
            known = one.told if one.around is self.around and one.masked == masked else None
            if known is None:
                known = self.told(start, end, base, maps)
                one = Kept(one.text, one.glance, masked, self.around, None if self.asked else known)
            self.kept[base] = one
            all_.launches += known.launches
            all_.problems += known.problems
            all_.depends_on |= known.depends_on
            all_.used |= known.used
        all_.launches += map(Mapped(standing.anchor).launch, self.unused(maps, all_.used))
        return all_

    def texts_around(self, maps: Sequence[ConfigMapEntry]) -> Around:
        fragment = Mapped(self.standing.anchor).fragments
        return (
            *((e.owner, e.key, fragment(e.content.fragments)) for e in maps),
            *((owner, key, fragment(w.fragments)) for owner, data in self.data.items() for key, w in data.items()),
        )

    def told(self, start: int, end: int, base: int, maps: Sequence[ConfigMapEntry]) -> Told:
        """The results for a document, with anchored places."""
        self.asked = False
        found = self.document(start, end, maps)
        anchored = Mapped(partial(self.anchored, start, end, base))
        launches, problems = map(anchored.launch, found.launches), map(anchored.problem, found.problems)
        return Told(list(launches), list(problems), found.depends_on, found.used)

    def anchored(self, start: int, end: int, base: int, place: Place) -> Place:
        """A place, anchored to the document [start, end) with this base if it lies there."""
        if place.document == self.name and start <= place.start and place.end <= end:
            return Place(place.document, place.start - start + base, place.end - start + base)
        return self.standing.anchor(place)

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
        inner = self.inside(name, source.whole)
        return remap(Document(name, source.whole, tuple(inner.launches), tuple(inner.problems)), source)

    def inside(self, name: str, text: str) -> Told:
        """What the documents of a text inside this one come to; its places are its own."""
        template = read_template(text)
        stretches = list(documents(template.masked))
        starts, texts = [start for start, _ in stretches], _texts(text, stretches)
        standing = Standing(name, starts, texts, Offsets(starts), len(text))
        file = _File(name, text, self.looks_like, self.read, standing, template, self.depth + 1)
        return file.read_all(_glanced(standing, None))

    def page(self, word: Word) -> Document:
        """The launches of the code blocks of a text inside a scalar."""
        source = embedded(word)
        if self.pages is None or self.depth >= MAX_NESTED:
            return Document(self.name, source.whole)
        self.asked = True  # files that scripts of the page source are not recorded
        name = f"{self.name}:{word.place.start}"
        return remap(self.pages(name, source.whole, language="markdown"), source)

    # --- ConfigMaps

    def config_maps(self, start: int, end: int, glance: Glance) -> Iterator[ConfigMapEntry]:
        """The files in a document that is a ConfigMap, and those that Compose writes."""
        if glance.compose_configs:
            yield from self.compose_configs(start, end)
        if not glance.config_map or not CONFIG_MAP.search(self.template.masked, start, end):
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
        if self.refers_to_data:
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
            elif _keys_fit([Kept(content, _glance(content))], self.looks_like):
                yield _config(entry.key, entry.content, entry.content.fragments[0].place)
            elif SIGN.search(content):
                yield from self.nested(entry.content).launches


def _choices(part: Part, given: Mapping[str, bool]) -> Iterator[Choice]:
    places = asked(part.text) if given else {}
    for name, is_set in given.items():
        yield Choice(part.place(places[name], places[name]), f"`{name}` is {'' if is_set else 'not '}set")


# --- configuration files -----------------------------------------------------------------------------------------------


def _keys_fit(documents: Collection[Kept], looks_like: LooksLike | None) -> bool:
    """Whether the keys of a file's documents are those of a `--config` file. With underscores they belong to another program: SGLang
    accepts no such key."""
    if looks_like is None:
        return False
    glances = [one.glance for one in documents]
    keys = frozenset[str]().union(*[g.keys for g in glances])
    if not keys or sum([g.underscores for g in glances]) > sum([g.dashes for g in glances]):
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
