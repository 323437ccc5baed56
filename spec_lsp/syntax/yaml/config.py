"""Reads a file for SGLang's `--config`: a mapping of flag names to values, as PyYAML's safe loader reads it.

`catalog/` turns the entries into words as SGLang's ConfigArgumentMerger does (server_args_config_parser.py); this module only records what
is written where, and its value in PyYAML. It never raises: what cannot be read is left out, and reported in `error`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import yaml

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass
from spec_lsp.syntax.source import HOLE, FileSource, Source, embedded
from spec_lsp.syntax.word import Place, Word
from spec_lsp.syntax.yaml.scalars import scalar_word

PROPERTIES = expression(r"(?:[&!]\S*(?:[ \t\r\n]+|\Z))+")
BRACKETS = expression(r"[\[\]{}]")
MAX_REPAIRS = 6
MAX_NESTING = 100
MAX_LENGTH = 2_000_000

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A value: its Python data as `yaml.safe_load` returns it, and where it is written.

    `word` is the text of a scalar as written (`0x10`, `yes`), None for a list or mapping; str(value) is what SGLang puts on the command
    line. `known` is False if it contains an unknown part of an embedded text; `value` is then None.
    """

    value: Any
    place: Place
    tag: str
    kind: Literal["scalar", "list", "mapping"]
    word: Word | None = None
    items: tuple[ConfigValue, ...] = ()
    known: bool = True


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """`key: value`. `key.text` is as written; `name` is the loaded key (the key `1` is the integer 1)."""

    key: Word
    value: ConfigValue
    name: Any
    extent: Place
    """From the key to the end of the value."""


@dataclass(frozen=True, slots=True)
class ConfigError:
    """Why SGLang could not load the file, in PyYAML's words, and where."""

    message: str
    place: Place


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file. `root` is "other" if the file has content, but is not a mapping."""

    name: str
    entries: tuple[ConfigEntry, ...]
    root: Literal["mapping", "empty", "other"]
    error: ConfigError | None = None

    def effective(self) -> tuple[ConfigEntry, ...]:
        """The entries in the order of the loaded dictionary: a key given twice keeps its first position and has its last value."""
        last: dict[Any, ConfigEntry] = {}
        for entry in self.entries:
            last[entry.name] = entry
        return tuple(last.values())

    @property
    def values(self) -> Mapping[Any, Any]:
        """The result of `yaml.safe_load`."""
        return {e.name: e.value.value for e in self.effective()}


def read_config(name: str, text: str) -> ConfigFile:
    """Read a separate file; places are in the document `name`."""
    return _read(name, FileSource(name, 0, text))


def read_embedded_config(name: str, content: Word) -> ConfigFile:
    """Read a file that a document writes (`Variant.files`); places are in that document."""
    return _read(name, embedded(content))


def _read(name: str, source: Source) -> ConfigFile:
    text = source.text
    error: ConfigError | None = None
    if len(text) > MAX_LENGTH or nests_too_deep(text):
        return ConfigFile(
            name, (), "other", ConfigError("the file is too large or too deeply nested", source.place(0, 0))
        )
    for _ in range(MAX_REPAIRS):
        try:
            root, extra = _compose(text)
        except Exception as problem:  # PyYAML raises ValueError, TypeError and others besides its own
            start, end, bad = where_broken(problem, text)
            error = error or ConfigError(_message(problem), source.place(start, end))
            blanked = without_line(text, bad)
            if blanked == text:
                break
            text = blanked
            continue
        if extra is not None and error is None:
            error = ConfigError(
                "there is a second document in the file", source.place(extra, min(extra + 3, len(text)))
            )
        return _config(name, root, source, error)
    return ConfigFile(name, (), "other" if text.strip() else "empty", error)


def _compose(text: str) -> tuple[Any, int | None]:
    """The root node of the first document (None if it is empty), and where a second one starts."""
    loader = _Loader(without_mark(text))
    try:
        if not loader.check_node():
            return None, None
        root = loader.get_node()
        extra = loader.get_node().start_mark.index if loader.check_node() else None
        return root, extra
    finally:
        loader.dispose()


def _config(name: str, root: Any, source: Source, error: ConfigError | None) -> ConfigFile:
    if root is None:
        return ConfigFile(name, (), "empty", error)
    if not isinstance(root, yaml.MappingNode):
        empty = root.tag == "tag:yaml.org,2002:null"
        return ConfigFile(name, (), "empty" if empty else "other", error)
    reader = _Values(source)
    try:
        reader.constructor.flatten_mapping(root)
    except yaml.YAMLError as problem:
        error = error or ConfigError(_message(problem), reader.place(root))
    entries = []
    for key, value in root.value:
        entry = reader.entry(key, value)
        if entry is None:
            error = error or ConfigError("a key must be a plain value", reader.place(key))
        else:
            entries.append(entry)
    return ConfigFile(name, tuple(entries), "mapping", error or reader.error)


class _Values:
    """Converts nodes to values."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.constructor: Any = yaml.constructor.SafeConstructor()
        self.error: ConfigError | None = None
        self.seen: dict[int, ConfigValue] = {}

    def place(self, node: Any) -> Place:
        start, end = self.span(node)
        return self.source.place(start, end)

    def span(self, node: Any) -> tuple[int, int]:
        """The characters of a node, without the blank lines and comments after a block."""
        start, end = node.start_mark.index, node.end_mark.index
        if isinstance(node, yaml.ScalarNode):
            start = behind_properties(self.source.text, start, end)
            return start, end if node.style not in ("|", ">") else max(start, end)
        if not node.flow_style and node.value:
            last = node.value[-1]
            last = last[1] if isinstance(last, tuple) else last
            end = max(start, min(end, max(self.span(last)[1], start)))
        return start, end

    def entry(self, key: Any, value: Any) -> ConfigEntry | None:
        if not isinstance(key, yaml.ScalarNode):
            return None
        data = self.value(key)
        found = self.value(value)
        if data.word is None:
            return None
        start, (_, end) = self.span(key)[0], self.span(value)
        extent = self.source.place(start, end) if end >= start else data.place
        return ConfigEntry(data.word, found, data.value if data.known else data.word, extent)

    def value(self, node: Any, depth: int = 0) -> ConfigValue:
        known = self.seen.get(id(node))
        if known is not None:
            return known
        found = self.new_value(node, depth)
        self.seen[id(node)] = found
        return found

    def new_value(self, node: Any, depth: int) -> ConfigValue:
        place = self.place(node)
        if isinstance(node, yaml.ScalarNode):
            start, end = self.span(node)
            word = scalar_word(node.value, node.style, start, end, self.source)
            if word.text is None or (HOLE in node.value and any(f.text is None for f in word.fragments)):
                return ConfigValue(None, place, node.tag, "scalar", word, (), False)
            return ConfigValue(self.constructed(node), place, node.tag, "scalar", word)
        items: tuple[ConfigValue, ...] = ()
        if depth < MAX_NESTING:
            children = node.value if isinstance(node, yaml.SequenceNode) else [v for _, v in node.value]
            self.seen[id(node)] = ConfigValue(None, place, node.tag, "list", None, (), False)
            items = tuple(self.value(child, depth + 1) for child in children)
        kind: Literal["list", "mapping"] = "list" if isinstance(node, yaml.SequenceNode) else "mapping"
        if not all(i.known for i in items):
            return ConfigValue(None, place, node.tag, kind, None, items, False)
        return ConfigValue(self.constructed(node), place, node.tag, kind, None, items)

    def constructed(self, node: Any) -> Any:
        try:
            return data_of(self.constructor, node)
        except Exception as problem:
            self.error = self.error or ConfigError(_message(problem), self.place(node))
            return None


MAX_DIGITS = 4_300
"""The most digits of a whole number: Python 3.11 and later write and read no longer one (`sys.get_int_max_str_digits`)."""


def data_of(constructor: yaml.constructor.SafeConstructor, node: Any) -> Any:
    """The data of a node. Raises as the constructor does, and ValueError for whole numbers that Python does not write out."""
    digits = len(node.value) if node.tag.endswith(":int") else 0
    data = constructor.construct_document(node) if digits <= MAX_DIGITS else None
    if digits > MAX_DIGITS or (isinstance(data, int) and data.bit_length() > MAX_DIGITS * 3):
        raise ValueError(f"a whole number has more than {MAX_DIGITS:,} digits")
    return data


def nests_too_deep(text: str) -> bool:
    """Whether brackets or dashes nest deeper than in any configuration; libyaml recurses without a limit."""
    depth = deepest = 0
    for bracket in BRACKETS.findall(text) if text.count("[") + text.count("{") > MAX_NESTING else ():
        if bracket in "[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth = max(depth - 1, 0)
    return deepest > MAX_NESTING or "- " * MAX_NESTING in text or "? " * MAX_NESTING in text


def where_broken(problem: Exception, text: str) -> tuple[int, int, int]:
    """The characters that a loader's error points at, and an offset in the line to leave out."""
    if isinstance(problem, yaml.reader.ReaderError):
        at = min(max(problem.position, 0), max(len(text) - 1, 0))
        return at, min(at + 1, len(text)), at
    mark = getattr(problem, "problem_mark", None)
    context = getattr(problem, "context_mark", None)
    at = min(mark.index if mark is not None else 0, len(text))
    bad = at
    said = getattr(problem, "context", "") or ""
    if context is not None and any(what in said for what in ("simple key", "quoted scalar", "flow")):
        bad = context.index
    if bad >= len(text.rstrip()):
        bad = max(len(text.rstrip()) - 1, 0)
    line_end = text.find("\n", at)
    end = len(text) if line_end < 0 else line_end
    return min(at, len(text)), max(min(end, at + 40), at), bad


def _message(problem: Exception) -> str:
    parts = [getattr(problem, "context", None), getattr(problem, "problem", None)]
    return ", ".join(p for p in parts if p) or str(problem).split("\n")[0] or type(problem).__name__


def behind_properties(text: str, start: int, end: int) -> int:
    """Where a scalar itself starts: its mark points to its anchor or tag."""
    found = PROPERTIES.match(text, start, end) if text[start : start + 1] in ("&", "!") else None
    return found.end() if found else start


def without_mark(text: str) -> str:
    """The text with a byte order mark replaced by an empty line: libyaml does not count it."""
    return "\n" + text[1:] if text.startswith("\ufeff") else text


def without_line(text: str, at: int) -> str:
    """The text with the line at an offset blanked; all other characters keep their places."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return text[:start] + " " * (end - start) + text[end:]
