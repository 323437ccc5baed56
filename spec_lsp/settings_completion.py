"""Completion in settings files: keys and their values, the names of rules, releases and GPUs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from spec_lsp.analysis.completion import RULE, Completion, Item
from spec_lsp.analysis.rules import all_rules
from spec_lsp.catalog.store import releases
from spec_lsp.facts.hardware import DEVICES, FAMILIES
from spec_lsp.records import Field, fields
from spec_lsp.settings import SEVERITIES, Settings
from spec_lsp.settings_file import SETTINGS_FILES
from spec_lsp.syntax.toml_spot import Keys, TomlSpot, toml_spot
from spec_lsp.syntax.word import Place

DECLARED: Mapping[str, Field[Any]] = {f.name.replace("_", "-"): f for f in fields(Settings)}


def complete_settings(path: str, text: str, offset: int) -> Completion | None:
    """The completions at character `offset` of a spec-lsp.toml or pyproject.toml; None where none of our settings can be."""
    spot = toml_spot(text, offset)
    if spot is None:
        return None
    prefix: Keys = () if os.path.basename(path) == SETTINGS_FILES[0] else ("tool", "spec-lsp")
    if spot.kind == "header":
        items = [_item(".".join((*prefix, *keys)), "key", detail) for keys, detail in TABLES if prefix or keys]
    elif spot.keys[: len(prefix)] == prefix:
        keys = spot.keys[len(prefix) :]
        items = list(_keys(keys, spot) if spot.kind == "key" else _values(keys, spot))
    else:
        return None
    return Completion(Place(path, spot.start, spot.end), tuple(items)) if items else None


TABLES: tuple[tuple[Keys, str], ...] = (
    ((), "settings of spec-lsp"),
    (("rules",), "a severity for each rule"),
    (("targets",), "a release and a GPU that launches must pass: [[…]], once for each"),
)


def _item(text: str, kind: Any, detail: str, rank: int = 0, snippet: str = "", about: tuple[str, ...] = ()) -> Item:
    return Item(text, kind, text, rank, detail, snippet, about=about)


def _keys(table: Keys, spot: TomlSpot) -> Iterator[Item]:
    if table == ("rules",):
        for rule in all_rules():
            if rule.name not in spot.given:
                yield _entry(rule.name, {"type": "string"}, rule.summary, (RULE, rule.name))
    elif table in ((), ("targets",)):
        for name, declared in DECLARED.items():
            if name not in spot.given and (not table or name in ("sglang", "gpu")):
                yield _entry(name, declared.metadata["schema"], declared.metadata["description"])


def _entry(name: str, schema: Mapping[str, Any], detail: str, about: tuple[str, ...] = ()) -> Item:
    opened, closed = {"string": ('"', '"'), "array": ("[", "]"), "object": ("{ ", " }")}.get(schema["type"], ("", ""))
    snippet = f"{name} = {opened}$1{closed}".replace("}", "\\}")
    return Item(name, "key", f"{name} = ", 0, detail, snippet, about=about)


def _values(keys: Keys, spot: TomlSpot) -> Iterator[Item]:
    match keys:
        case ("sglang",) | ("targets", "sglang"):
            yield from (_text(str(release), "", spot) for release in reversed(releases()))
        case ("gpu",) | ("targets", "gpu"):
            yield from (_text(h.name, h.title, spot, h.name in FAMILIES) for h in {**DEVICES, **FAMILIES}.values())
        case ("rules", _):
            yield from (_text(severity, "", spot) for severity in SEVERITIES)
        case ("fix-all",):
            yield _text("all", "every rule", spot)
            yield from (_text(r.name, r.summary, spot, about=(RULE, r.name)) for r in all_rules())
        case (name,) if name in DECLARED:
            schema = DECLARED[name].metadata["schema"]
            yield from (_text(value, "", spot) for value in schema.get("enum", ()))
            if schema["type"] == "boolean" and not spot.quote:
                yield from (Item(word, "value", word, 0) for word in ("true", "false"))


def _text(value: str, detail: str, spot: TomlSpot, later: bool = False, about: tuple[str, ...] = ()) -> Item:
    """A text, with the quotes that it still needs."""
    written = f'"{value}"' if not spot.quote else value if spot.closed else value + spot.quote
    return Item(value, "value", written, int(later), detail, about=about)
