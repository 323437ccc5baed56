"""Completion at a cursor in a launch: flags, their values, keys and values of `--config` files.

Plain data in character offsets. Documentation is made for one item at a time (`document`), when it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any, Literal

import yaml

from spec_lsp.analysis.candidates import Fit, Trial, values_of
from spec_lsp.analysis.cursor import LinePart, LineSpot, Spot, WordSpot, line_part, spot
from spec_lsp.analysis.drafts import drafts_for
from spec_lsp.analysis.hover import flag_text, rule_text, type_of, value_text
from spec_lsp.analysis.inputs import Options, Workspace, World
from spec_lsp.analysis.navigation import MODEL_FIELDS
from spec_lsp.analysis.report import Analysis
from spec_lsp.analysis.run import bind_variant, model_path
from spec_lsp.analysis.worlds import assume
from spec_lsp.catalog.binding import Binding
from spec_lsp.catalog.config_file import refused_keys, switches
from spec_lsp.catalog.descriptions import describe
from spec_lsp.catalog.history import replacement
from spec_lsp.catalog.keywords import fields_of
from spec_lsp.catalog.model import SUPPRESS, Catalog, Flag
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import catalog_of, load, releases
from spec_lsp.expressions import expression
from spec_lsp.facts.hardware import DEVICES, FAMILIES
from spec_lsp.facts.known import NotKnown
from spec_lsp.facts.well_known import ids
from spec_lsp.records import dataclass, replace
from spec_lsp.resolution.engine import RULES
from spec_lsp.syntax.edit import yaml_text
from spec_lsp.syntax.launch import Launch
from spec_lsp.syntax.word import Place, Word

ItemKind = Literal["flag", "value", "key"]

RELATED = {
    ("speculative_",): ("speculative_",),
    ("enable_lora", "lora_"): ("lora_", "max_lora", "enable_lora"),
    ("disaggregation_",): ("disaggregation_",),
    ("enable_hierarchical_cache", "hicache_"): ("hicache_", "enable_hierarchical_cache"),
    ("ep_size", "moe_"): ("ep_", "moe_", "enable_eplb", "eplb_", "deepep_"),
    ("dp_size", "enable_dp_"): ("dp_", "enable_dp_", "load_balance_method"),
    ("nnodes", "node_rank"): ("nnodes", "node_rank", "dist_init_addr"),
    ("quantization",): ("quantization", "kv_cache_dtype"),
}
"""If a field with one of these prefixes is set, fields with one of the other prefixes are related to it."""

COMMON = (
    "model_path", "tp_size", "host", "port", "mem_fraction_static", "context_length", "attention_backend", "page_size",
    "speculative_algorithm", "dp_size", "ep_size", "quantization", "kv_cache_dtype", "dtype", "chunked_prefill_size",
    "max_running_requests", "trust_remote_code", "served_model_name", "reasoning_parser", "tool_call_parser", "config",
)  # fmt: skip
"""Fields that most launches set, roughly in this order."""

MAX_ALTERNATIVES = 12
"""The most choices that a snippet's placeholder lists."""


@dataclass(frozen=True, slots=True)
class Item:
    """One candidate. `text` replaces the place; `snippet` (empty: none) does so with placeholders, for clients that support them.

    Items are sorted by `rank`, then in the order given. `about` is the input of `document`, as plain data.
    """

    label: str
    kind: ItemKind
    text: str
    rank: int
    detail: str = ""
    snippet: str = ""
    deprecated: bool = False
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """All candidates for `place`, which contains the cursor; the client filters them while typing goes on."""

    place: Place
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of the launch around the cursor, without what is being typed."""

    launch: Launch
    variant: int
    world: World
    worlds: tuple[World, ...]
    binding: Binding
    workspace: Workspace
    document: str

    @property
    def catalog(self) -> Catalog:
        return self.binding.catalog


def complete(analysis: Analysis, offset: int, options: Options, workspace: Workspace) -> Completion | None:
    """The completion at character `offset` of the document; None outside of launches and of spec-lsp comments, and if no candidate is
    known."""
    directive = _in_directive(analysis, offset)
    if directive is not None:
        return directive
    at = spot(analysis.document, offset, workspace)
    if at is None:
        return None
    world, worlds = _worlds(at, analysis, options, workspace)
    catalog = catalog_of(world.release)
    known = partial(_known, at, world, worlds, analysis.document.name, workspace)
    found = _in_words(at, catalog, known) if isinstance(at, WordSpot) else _in_line(at, catalog, known)
    return found if found and _on_a_line(found.place, analysis.document.text) else None


def _on_a_line(place: Place, text: str) -> bool:
    return not {"\n", "\r"} & set(text[place.start : place.end])


def _worlds(at: Spot, analysis: Analysis, options: Options, workspace: Workspace) -> tuple[World, tuple[World, ...]]:
    """The likeliest world of the launch, and all of them."""
    for report in analysis.launches:
        if report.launch.place.start == at.launch.place.start and report.verdict is not None:
            return report.verdict.main.world, report.worlds
    document = analysis.document
    worlds = assume(at.launch, document.directives, options, workspace, document.name).worlds
    hopper = [w for w in worlds if w.hardware and w.hardware.family == "hopper"]
    return (hopper or worlds)[0], worlds


def _known(
    at: Spot, world: World, worlds: tuple[World, ...], document: str, workspace: Workspace, launch: Launch
) -> _Known:
    configs = partial(workspace.read, document)
    binding = bind_variant(launch, at.variant, world.release, configs)
    return _Known(launch, at.variant, world, worlds, binding, workspace, document)


# --- in a comment to spec-lsp ------------------------------------------------------------------------------------------

_DIRECTIVE = expression(r"(?:#|//)\s*spec-lsp:(?P<said>[^\"\\]*)\Z")
_NAMES = expression(r"\s*ignore(?:-file)?\s*\[(?:[^\]]*,)?\s*(?P<typed>[\w-]*)\Z")
_SETTING = expression(r"(?:.*[\s,])?(?P<name>sglang|gpu)=(?P<typed>[\w.-]*)\Z")
_START = expression(r"(?:.*[\s,])?(?P<typed>[\w-]*)\Z")


def _in_directive(analysis: Analysis, offset: int) -> Completion | None:
    """Completion in `# spec-lsp: …`: rules, releases, GPUs, and the words it may begin with."""
    text = analysis.document.text
    line = re.split(r"[\r\n]", text[max(offset - LONGEST_LINE, 0) : offset])[-1]
    directive = _DIRECTIVE.search(line)
    if directive is None:
        return None
    said = directive["said"]
    names, setting, start = (form.match(said) for form in (_NAMES, _SETTING, _START))
    found = names or setting or (None if "]" in said or "[" in said else start)
    if found is None:
        return None
    rest = re.compile(r"[\w.-]*").match(text, offset)
    place = Place(analysis.document.name, offset - len(found["typed"]), rest.end() if rest else offset)
    if names is not None:
        return Completion(place, tuple(_rules(analysis)))
    return Completion(place, tuple(_settings_of(setting["name"] if setting is not None else "")))


LONGEST_LINE = 1000
"""How many characters before the cursor on its line are searched for a comment."""


def _rules(analysis: Analysis) -> Iterator[Item]:
    """All rules, those with findings in this document first."""
    here = {d.rule.name for d in analysis.diagnostics if d.place.document == analysis.document.name}
    for rule in RULES.values():
        yield Item(rule.name, "value", rule.name, int(rule.name not in here), rule.summary, about=(RULE, rule.name))


def _settings_of(name: str) -> Iterator[Item]:
    """The values of a setting of `# spec-lsp:`, the newest release first; everything that the comment may contain if no setting is
    named."""
    if name == "sglang":
        yield from (Item(str(release), "value", str(release), 0) for release in reversed(releases()))
    elif name == "gpu":
        for hardware in {**DEVICES, **FAMILIES}.values():
            yield Item(hardware.name, "value", hardware.name, int(hardware.name in FAMILIES), hardware.title)
    else:
        for word, detail in DIRECTIVES.items():
            yield Item(word, "value", word, 0, detail)


DIRECTIVES = {
    "sglang=": "the release that the launches below run with",
    "gpu=": "the GPU that the launches below run on",
    "ignore[": "silence rules in the next command, or on this line",
    "ignore-file[": "silence rules in this file",
}

RULE = "rule"
"""How the `about` of a rule begins."""


# --- in words ----------------------------------------------------------------------------------------------------------


def _in_words(at: WordSpot, catalog: Catalog, known: Any) -> Completion | None:
    if at.keyword:
        place = at.place(0, len(at.typed) + len(at.rest))
        return Completion(place, tuple(_keywords(at, known(at.without(0))))) if place else None
    if at.launch.program == "engine":
        return _in_keyword(at, catalog, known)
    if at.launch.program == "trainer":
        return None
    name, equals, _ = at.typed.partition("=")
    if name.startswith("-") and equals:
        flag = _flag_of(catalog, name)
        place = at.place(len(name) + 1, len(at.typed) + len(at.rest))
        return _values(flag, place, known(at.without(0)), name) if flag else None
    place = at.place(0, len(at.typed) + len(at.rest.partition("=")[0]))
    pending, given = _pending(catalog, at.before)
    if pending is not None and not at.typed.startswith("-"):
        around = known(at.without(given + 1))
        values = _as_items(at, _values(pending, place, around, at.before[-1 - given].text or ""))
        more = given > 0 and not at.typed
        return _with_flags(values, place, at, known) if more else values
    if at.launch.program == "serve" and not at.before and not at.typed.startswith("-"):
        return _values(catalog.by_field["model_path"], place, known(at.without(0)), "")
    return _with_flags(None, place, at, known)


def _in_keyword(at: WordSpot, catalog: Catalog, known: Any) -> Completion | None:
    """The values of a keyword argument, while the cursor is in a string."""
    flag = fields_of(catalog).get(at.before[-1].text or "") if at.before else None
    if flag is None or at.typed[:1] not in ("'", '"'):
        return None
    inside = at.rest[:-1] if at.rest.endswith(at.typed[0]) else at.rest
    return _values(flag, at.place(1, len(at.typed) + len(inside)), known(at.without(1)), flag.name)


def _keywords(at: WordSpot, around: _Known) -> Iterator[Item]:
    """The names of an engine's arguments, with `=` where none follows."""
    related = _related(around.binding)
    release = around.catalog.release
    fields = fields_of(around.catalog)
    behind = "=" if at.keyword == "argument" else ""
    for entry in _entries(release):
        if entry.first and entry.field in fields:
            rank = _rank(entry, around.binding, related)
            about = (entry.spelling, str(release))
            yield Item(entry.field, "key", entry.field + behind, rank, entry.detail, "", entry.flag.deprecated, about)


def _with_flags(values: Completion | None, place: Place | None, at: WordSpot, known: Any) -> Completion | None:
    around: _Known = known(at.without(0))
    follows = at.rest.startswith("=") or bool(at.behind and not at.behind[0].known_start.startswith("-"))
    one_each = at.launch.syntax in ("yaml-words", "list-words")
    items = _flags(around, alone=not follows and "=" not in at.rest and not one_each)
    if at.launch.syntax == "yaml-mapping":
        dashes = (
            "" if at.word.fragments[0].fixed else "--"
        )  # of keys, with the quotes or colon that keys are written with here
        items = (_as_key(item, dashes) for item in items)
    return Completion(place, (*(values.items if values else ()), *items)) if place else None


def _as_items(at: WordSpot, values: Completion | None) -> Completion | None:
    """Values as items of a YAML list, which must be strings: numbers are quoted unless the cursor is already inside quotes."""
    if values is None or at.launch.syntax != "yaml-words" or at.word.place.start < at.word.fragments[0].place.start:
        return values
    return replace(values, items=tuple(replace(i, text=yaml_text.scalar(i.text)) for i in values.items))


def _as_key(item: Item, dashes: str) -> Item:
    """A flag as the key of a mapping that becomes flags."""
    return replace(item, label=dashes + item.label[2:], text=dashes + item.text[2:], snippet="", kind="key")


def _flag_of(catalog: Catalog, typed: str) -> Flag | None:
    """The flag that a spelling or unambiguous prefix means."""
    exact = catalog.flag(typed)
    if exact is not None or not typed.startswith("--") or len(typed) < 3:
        return exact
    fields = {f.dest: f for s, f in catalog.by_spelling.items() if s.startswith(typed)}
    return next(iter(fields.values())) if len(fields) == 1 else None


def _pending(catalog: Catalog, before: Sequence[Word]) -> tuple[Flag | None, int]:
    """The flag before the cursor that can still take a value, and how many it has so far."""
    for given, word in enumerate(reversed(before)):
        if word.known_start.startswith("--"):
            flag = _flag_of(catalog, word.text or "")
            return (flag, given) if flag is not None and _takes_more(flag, given) else (None, 0)
        if word.splat:
            break
    return None, 0


def _takes_more(flag: Flag, given: int) -> bool:
    if flag.nargs in ("+", "*"):
        return True
    return given < (flag.nargs if isinstance(flag.nargs, int) else 1)


# --- flags -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    """A spelling of a flag, with what is the same for every launch. `common` is its rank among the common flags, else a large number."""

    spelling: str
    flag: Flag
    field: str
    first: bool
    common: int
    detail: str
    placeholder: str
    switch: bool


@cache
def _entries(release: Release) -> tuple[_Entry, ...]:
    """The long spellings of a shipped release's flags, common ones first; flags that only stop SGLang are left out."""
    known = switches(release)
    entries = [
        _Entry(
            spelling,
            flag,
            flag.field,
            spelling == flag.name,
            COMMON.index(flag.field) if flag.field in COMMON else len(COMMON),
            _detail(flag, spelling, release),
            _placeholder(flag) if flag.takes_value else "",
            spelling[2:].replace("-", "_") in known,
        )
        for spelling, flag in load(release).by_spelling.items()
        if spelling.startswith("--") and flag.action != "help" and not flag.fatal
    ]
    return tuple(sorted(entries, key=lambda e: e.common))


def _flags(around: _Known, *, alone: bool) -> Iterator[Item]:
    """Every spelling of every flag, with a placeholder for its value where none follows."""
    related = _related(around.binding)
    release = str(around.catalog.release)
    for entry in _entries(around.catalog.release):
        spelling = entry.spelling
        snippet = f"{spelling} {entry.placeholder}" if alone and entry.placeholder else ""
        rank = _rank(entry, around.binding, related)
        about = (spelling, release)
        yield Item(spelling, "flag", spelling, rank, entry.detail, snippet, entry.flag.deprecated, about)


def _related(binding: Binding) -> tuple[str, ...]:
    """The prefixes of fields that belong to the settings already given."""
    return tuple(
        start
        for causes, starts in RELATED.items()
        if any(field.startswith(causes) for field in binding.settings)
        for start in starts
    )


def _rank(entry: _Entry, binding: Binding, related: tuple[str, ...]) -> int:
    """0: belongs to what is typed or is missing; 1: common; 2: any; 3: another spelling; 4: given already; 5: deprecated."""
    if entry.flag.deprecated:
        return 5
    if entry.field in binding.settings or (entry.field == "config" and binding.config is not None):
        return 4
    if not entry.first:
        return 3
    if entry.flag.required or (related and entry.field.startswith(related)):
        return 0
    return 1 if entry.common < len(COMMON) else 2


def _detail(flag: Flag, spelling: str, release: Release) -> str:
    """A flag in a few words: its type and its default."""
    if flag.deprecated:
        instead = replacement(spelling, release)
        return "deprecated" + (f": use {instead.instead}" if instead and instead.instead else "")
    if flag.default in (None, SUPPRESS) or not flag.takes_value:
        return type_of(flag)
    return f"{type_of(flag)}, {_text(flag.default)} unless given"


def _placeholder(flag: Flag) -> str:
    """The first placeholder of a snippet."""
    if flag.choices and len(flag.choices) <= MAX_ALTERNATIVES:
        return "${1|" + ",".join(_escaped(str(c), ",|") for c in flag.choices) + "|}"
    default = "" if flag.default in (None, SUPPRESS) or isinstance(flag.default, (list, dict)) else str(flag.default)
    return "${1:" + _escaped(default) + "}" if default else "$1"


def _escaped(text: str, more: str = "") -> str:
    """Text escaped for a snippet."""
    return re.sub(rf"([\\\\$}}{re.escape(more)}])", r"\\\1", text)


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


# --- values ------------------------------------------------------------------------------------------------------------


def _values(flag: Flag, place: Place | None, around: _Known, spelling: str) -> Completion | None:
    """The values of a flag; those that cannot run come last."""
    if place is None or not flag.takes_value:
        return None
    return Completion(place, tuple(_value_items(flag, around, spelling or flag.name)))


def _value_items(flag: Flag, around: _Known, spelling: str) -> Iterator[Item]:
    if flag.field in MODEL_FIELDS:
        drafts = _drafts(around) if flag.field == "speculative_draft_model_path" else []
        yield from (Item(name, "value", name, 0, "a draft of the model's sizes") for name in drafts)
        rank = 1 if drafts else 0
        yield from (Item(name, "value", name, rank, "a model spec-lsp knows") for name in ids() if name not in drafts)
        return
    models = cache(partial(around.workspace.model, around.document))
    trial = Trial(around.launch, around.variant, around.world, around.worlds, around.binding, models)
    values = values_of(flag, around.catalog) or trial.named_by_rules(flag)
    fits = trial.fits(flag, values)
    for value in values:
        fit = fits.get(value, Fit())
        detail = _fit_text(fit, around.world)
        rank = 0 if not fit.refused else 1 if fit.elsewhere else 2
        release = str(around.catalog.release)
        yield Item(str(value), "value", str(value), rank, detail, about=(spelling, release, str(value), detail))


def _drafts(around: _Known) -> list[str]:
    """The known drafts that fit the launch's model."""
    model, algorithm = model_path(around.binding), around.binding.settings.get("speculative_algorithm")
    target = around.workspace.model(around.document, model) if model is not None else None
    if model is None or target is None:
        return []
    kind = str(algorithm.value).upper() if algorithm is not None else ""
    try:
        return drafts_for(target, model, kind)
    except NotKnown:
        return []


def _fit_text(fit: Fit, world: World) -> str:
    """What happens with a value here, in a few words."""
    if not fit.refused:
        return f"becomes {fit.becomes}" if fit.becomes else ""
    where = f" on {world.hardware.title}" if world.hardware else ""
    return f"runs on {fit.elsewhere}, not{where}: {fit.refused}" if fit.elsewhere else f"refused{where}: {fit.refused}"


# --- in a `--config` file ----------------------------------------------------------------------------------------------


def _in_line(at: LineSpot, catalog: Catalog, known: Any) -> Completion | None:
    part = line_part(at)
    place = at.place(part.start, part.end) if part else None
    if part is None or place is None:
        return None
    around: _Known = known(at.without_line())
    style = _Style.of(at.text)
    if part.key is None:
        return Completion(place, tuple(_keys(around, style, part)))
    flag = _flag_of(catalog, "--" + part.key)
    return Completion(place, tuple(_line_values(flag, around, style, part))) if flag else None


@dataclass(frozen=True, slots=True)
class _Style:
    """How a file writes keys and switches."""

    quote: str
    on: str
    off: str

    @classmethod
    def of(cls, text: str) -> _Style:
        keys = re.findall(r"^[ \t]*([\"']?)[A-Za-z][\w-]*[\"']?[ \t]*:", text, re.MULTILINE)
        quotes = set(keys)
        said = re.search(
            r":[ \t]+(true|false|True|False|TRUE|FALSE|yes|no|Yes|No|on|off|On|Off)[ \t]*(?:#.*)?$", text, re.MULTILINE
        )
        on, off = _SWITCHES[said[1].lower()] if said else _SWITCHES["true"]
        case = str.title if said and said[1].istitle() else str.upper if said and said[1].isupper() else str
        return cls(quotes.pop() if len(quotes) == 1 else "", case(on), case(off))


_SWITCHES = {word: pair for pair in (("true", "false"), ("yes", "no"), ("on", "off")) for word in pair}


def _keys(around: _Known, style: _Style, part: LinePart) -> Iterator[Item]:
    """Keys for every spelling of the flags that a file may set, written as this file writes its keys."""
    related = _related(around.binding)
    release = around.catalog.release
    refused = refused_keys(release)
    for entry in _entries(release):
        key = entry.spelling[2:]
        if entry.field == "config" or key.replace("-", "_") in refused:
            continue
        rank = _rank(entry, around.binding, related)
        text, snippet = _entry_text(key, entry, style, part)
        about = (entry.spelling, str(release))
        yield Item(key, "key", text, rank, entry.detail, snippet, entry.flag.deprecated, about)


def _entry_text(key: str, entry: _Entry, style: _Style, part: LinePart) -> tuple[str, str]:
    """The text and the snippet of a key, with its colon and a value where none follows."""
    name = key if part.quote else f"{style.quote}{key}{style.quote}"
    if part.colon or part.quote:
        return name, ""
    if entry.switch:
        return f"{name}: {style.on}", ""
    return f"{name}: ", f"{name}: {entry.placeholder}" if entry.placeholder else ""


def _line_values(flag: Flag, around: _Known, style: _Style, part: LinePart) -> Iterator[Item]:
    blank = " " if part.blank else ""
    if not flag.takes_value:
        release = str(around.catalog.release)
        for word, detail in ((style.on, "gives the switch"), (style.off, "as if it were not there")):
            yield Item(word, "value", blank + word, 0, detail, about=(flag.name, release, word, detail))
        return
    for item in _value_items(flag, around, f"--{part.key}"):
        text = item.text if part.quote else _scalar(item.text, flag)
        yield Item(item.label, "value", blank + text, item.rank, item.detail, about=item.about)


def _scalar(text: str, flag: Flag) -> str:
    """A value as a plain YAML scalar; quoted where YAML would read it as something else."""
    if flag.type in ("int", "float", "human_readable_int"):
        return text
    try:
        same = yaml.safe_load(text) == text
    except yaml.YAMLError:
        same = False
    return text if same else f'"{text}"'


# --- documentation -----------------------------------------------------------------------------------------------------


def document(about: Sequence[str]) -> str:
    """The documentation of an item by its `about`, as Markdown; empty where there is nothing to say."""
    if len(about) < 2:
        return ""
    spelling, named, *value = about
    if spelling == RULE:
        return rule_text(RULES[named]) if named in RULES else ""
    release = Release.read(named)
    catalog = catalog_of(release) if release is not None else None
    flag = _flag_of(catalog, spelling) if catalog is not None else None
    if release is None or flag is None:
        return ""
    if not value:
        return "\n\n".join(flag_text(flag, spelling, release))
    text, *detail = value
    about = value_text(flag, text, release, spelling) or f"**`{text}`** · value of `{spelling}`"
    return "\n\n".join(filter(None, (about, *detail, describe(flag))))
