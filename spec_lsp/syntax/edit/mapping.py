"""Edits SGLang's `--config` files: one line for each key, in the key style and list style of the file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spec_lsp.expressions import expression
from spec_lsp.records import dataclass
from spec_lsp.syntax.edit.change import WordChange, apply_edits
from spec_lsp.syntax.launch import Edit
from spec_lsp.syntax.word import Place

if TYPE_CHECKING:
    from spec_lsp.syntax.yaml.config import ConfigEntry, ConfigFile

PLAIN = expression(r"[A-Za-z0-9_/.][A-Za-z0-9_./:@%+ -]*\Z")


@dataclass(frozen=True, slots=True)
class ConfigEditor:
    """Edits the configuration in [start, end) of a document's text: the whole file, or a here-document's body.

    Entries are those of `self.config`; their places are offsets of the document.
    """

    document: str
    text: str
    start: int = 0
    end: int | None = None

    @property
    def body(self) -> str:
        return self.text[self.start : self.end]

    @property
    def config(self) -> ConfigFile:
        """The configuration, with places in its own text: offset 0 is `start`."""
        return _read(self.document, self.body)

    def entry(self, name: Any) -> ConfigEntry | None:
        """The effective entry of a key: the last one."""
        return next((e for e in reversed(self.config.entries) if e.name == name), None)

    # Operations.

    def set_value(self, name: Any, value: Any) -> WordChange | None:
        """Give a key another value, keeping its quotes and comments."""
        entry = self.entry(name)
        if entry is None or self.is_elsewhere(entry):
            return None
        expected = {**self.config.values, name: value}
        old = entry.value
        if old.kind == "scalar" and old.place.start >= entry.key.place.end:
            written = scalar(value, self.body[old.place.start : old.place.start + 1])
            if old.place.start == old.place.end:
                written = " " + written if not self.body[: old.place.start].endswith((" ", "\t")) else written
            return self.checked([(old.place.start, old.place.end, written)], expected)
        colon = self.body.find(":", entry.key.place.end)
        return self.checked([(colon + 1, entry.extent.end, " " + scalar(value, ""))], expected)

    def rename(self, name: Any, new: str) -> WordChange | None:
        """Give a key another name."""
        entry = self.entry(name)
        if entry is None or self.is_elsewhere(entry):
            return None
        expected = {(new if k == name else k): v for k, v in self.config.values.items()}
        return self.checked([(entry.key.place.start, entry.key.place.end, new)], expected)

    def replace(self, name: Any, pairs: Mapping[str, Any]) -> WordChange | None:
        """Replace an entry by other keys with their values. Keys are in kebab case, and written in the style of the file."""
        entry = self.entry(name)
        if entry is None or self.is_elsewhere(entry):
            return None
        snake = "_" in str(name) or ("-" not in str(name) and self.writes_snake())
        written = {(k.replace("-", "_") if snake else k): v for k, v in pairs.items()}
        if any(k in self.config.values and k != name for k in written):
            return None
        expected: dict[Any, Any] = {}
        for key, value in self.config.values.items():
            expected.update(written if key == name else {key: value})
        line = self.body.rfind("\n", 0, entry.key.place.start) + 1
        eol = "\r\n" if "\r\n" in self.body else "\n"
        between = ", " if self.is_flow(entry) else eol + self.body[line : entry.key.place.start]
        text = between.join(f"{k}: {scalar(v, '')}" for k, v in written.items())
        return self.checked([(entry.key.place.start, max(entry.extent.end, entry.value.place.end), text)], expected)

    def remove(self, name: Any) -> WordChange | None:
        """Remove a key with its lines, each time it is given."""
        entries = [e for e in self.config.entries if e.name == name]
        if not entries or any(self.is_elsewhere(e) for e in entries):
            return None
        expected = {k: v for k, v in self.config.values.items() if k != name}
        return self.checked([self.whole(e) for e in entries], expected)

    def insert(self, key: str, value: Any, after: Any = None) -> WordChange | None:
        """Add a key after the entry `after`, or at the end. `key` is in kebab case and is written in the style of the file."""
        entries = self.config.entries
        if key in self.config.values:
            return None
        written = key.replace("-", "_") if self.writes_snake() else key
        expected = {**self.config.values, written: value}
        anchor = (self.entry(after) if after is not None else None) or (entries[-1] if entries else None)
        if anchor is None:
            separator = "" if not self.body or self.body.endswith("\n") else "\n"
            at = len(self.body)
            return self.checked([(at, at, f"{separator}{written}: {scalar(value, '')}\n")], expected)
        if self.is_flow(anchor):
            at = anchor.extent.end
            return self.checked([(at, at, f", {written}: {scalar(value, '')}")], expected)
        eol = "\r\n" if "\r\n" in self.body else "\n"
        line = self.body.rfind("\n", 0, anchor.key.place.start) + 1
        indent = self.body[line : anchor.key.place.start]
        newline = self.body.find("\n", max(anchor.extent.end - 1, anchor.key.place.start))
        at = len(self.body) if newline < 0 else newline + 1
        before = eol if newline < 0 else ""
        lines = f"{indent}{written}: {scalar(value, '')}"
        if isinstance(value, list) and value and self.writes_block_lists():
            lines = f"{indent}{written}:" + "".join(f"{eol}{indent}  - {scalar(v, '')}" for v in value)
        return self.checked([(at, at, f"{before}{lines}{eol if newline >= 0 else ''}")], expected)

    # Style.

    def writes_snake(self) -> bool:
        keys = [e.key.text or "" for e in self.config.entries]
        return sum("_" in k for k in keys) > sum("-" in k for k in keys)

    def writes_block_lists(self) -> bool:
        lists = [e.value for e in self.config.entries if e.value.kind == "list"]
        return any(self.body[v.place.start : v.place.start + 1] == "-" for v in lists)

    def is_flow(self, entry: ConfigEntry) -> bool:
        """Whether the mapping is written in braces."""
        line = self.body.rfind("\n", 0, entry.key.place.start) + 1
        return bool(self.body[line : entry.key.place.start].strip(" \t\"'"))

    def is_elsewhere(self, entry: ConfigEntry) -> bool:
        """Whether an entry is included from an anchor by a merge key."""
        return entry.extent.end < entry.key.place.end or entry.value.place.start < entry.key.place.start

    def whole(self, entry: ConfigEntry) -> tuple[int, int, str]:
        """An entry with its lines, or with its comma between braces."""
        body = self.body
        if self.is_flow(entry):
            behind = re.compile(r"[ \t]*,[ \t]*").match(body, entry.extent.end)
            if behind:
                return entry.key.place.start, behind.end(), ""
            before = re.search(r"[ \t]*,[ \t\r\n]*\Z", body[: entry.key.place.start])
            return (before.start() if before else entry.key.place.start), entry.extent.end, ""
        line = body.rfind("\n", 0, entry.key.place.start) + 1
        newline = body.find("\n", max(entry.extent.end - 1, entry.key.place.start))
        return line, (len(body) if newline < 0 else newline + 1), ""

    # Reading back.

    def checked(self, changes: list[tuple[int, int, str]], expected: Mapping[Any, Any]) -> WordChange | None:
        edits = tuple(Edit(Place(self.document, self.start + a, self.start + b), new) for a, b, new in changes)
        inside = tuple(Edit(Place(self.document, a, b), new) for a, b, new in changes)
        changed = apply_edits(self.body, self.document, inside)
        if changed is None:
            return None
        after = _read(self.document, changed)
        before = self.config.error
        if after.error is not None and before is None:
            return None
        same = list(after.values.items()) if expected else []
        if not expected:
            return WordChange(edits) if not after.values else None
        return WordChange(edits) if dict(same) == dict(expected) and _types(same) == _types(expected.items()) else None


def _types(items: Any) -> dict[Any, type]:
    return {k: type(v) for k, v in items}


def scalar(value: Any, quote: str) -> str:
    """A value on one line; text keeps its kind of quote."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(scalar(v, "") for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(str(k), '')}: {scalar(v, '')}" for k, v in value.items()) + "}"
    text = str(value)
    if quote == "'" and "\n" not in text:
        return "'" + text.replace("'", "''") + "'"
    if quote != '"' and PLAIN.match(text) and not text.endswith((" ", ":")) and _reads_as_text(text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _read(document: str, text: str) -> ConfigFile:
    from spec_lsp.syntax.yaml.config import read_config  # imports PyYAML, and few launches name a file

    return read_config(document, text)


def _reads_as_text(text: str) -> bool:
    if ": " in text or " #" in text:
        return False
    import yaml

    try:
        return bool(yaml.safe_load(text) == text)
    except (yaml.YAMLError, ValueError):
        return False
