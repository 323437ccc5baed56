"""The words that a `--config` file becomes: SGLang's ConfigArgumentMerger, release by release.

| since | booleans | dictionaries | keys it refuses |
| --- | --- | --- | --- |
| 0.5.3.post3 | `true` is the flag alone, `false` nothing | Python's text of it | none |
| 0.5.8 | so for switches, by their dest; else the word `true` or `false` | | the dest of any other action than store and switch |
| 0.5.14 | | JSON | |
| 0.5.23 | switches are known by every long spelling | | not those of a flag that takes one value |
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from spec_lsp.catalog.argparse_rules import Arg
from spec_lsp.catalog.model import Catalog, Flag
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load
from spec_lsp.records import dataclass
from spec_lsp.syntax.word import Fragment, Place, Word, unknown

if TYPE_CHECKING:
    from spec_lsp.syntax.yaml.config import ConfigEntry, ConfigFile, ConfigValue

SINCE = Release(0, 5, 3)
"""`--config` came with 0.5.3; the oldest release shipped that has it is 0.5.3.post3."""

REFUSES_KEYS = Release(0, 5, 8)
"""Since then booleans of flags that are no switches become words, and some keys stop SGLang."""
WRITES_JSON = Release(0, 5, 14)
"""Since then a dictionary becomes JSON."""
_ALL_SPELLINGS = Release(0, 5, 23)


@dataclass(frozen=True, slots=True)
class BadKey:
    """A key at which SGLang stops: the flag it belongs to, or None for a key that is not text (`8080: x`, `null: x`)."""

    word: Word
    flag: Flag | None


def words_of(catalog: Catalog, file: ConfigFile) -> tuple[list[Arg], list[BadKey]]:
    """The words of a file's entries, in order, and the keys that SGLang refuses."""
    args: list[Arg] = []
    bad: list[BadKey] = []
    for entry in file.effective():
        name = entry.name
        if not isinstance(name, str):
            if catalog.release >= REFUSES_KEYS:
                bad.append(BadKey(entry.key, None))
                continue
            name = str(name)
        refused = refused_keys(catalog.release).get(name.replace("-", "_"))
        if refused is not None:
            bad.append(BadKey(entry.key, refused))
        else:
            args.extend(_entry(catalog.release, name, entry))
    return args, bad


def _entry(release: Release, key: str, entry: ConfigEntry) -> Iterator[Arg]:
    flag = Arg(_flag_word(entry.key, key), f"--{key}", True)
    value = entry.value
    if not value.known:
        yield flag
        yield Arg(unknown(value.place, "a part of the file is not known", splat=value.kind != "scalar"), None, True)
    elif isinstance(value.value, bool):
        if release >= REFUSES_KEYS and key.replace("-", "_") not in switches(release):
            yield flag
            yield _value(value, str(value.value).lower())
        elif value.value:
            yield flag
    elif isinstance(value.value, list):
        if value.value:
            yield flag
            items = value.items if len(value.items) == len(value.value) else [value] * len(value.value)
            yield from (_value(item, str(v)) for item, v in zip(items, value.value, strict=True))
    else:
        yield flag
        yield _value(
            value,
            json.dumps(value.value, default=str)
            if value.kind == "mapping" and release >= WRITES_JSON
            else str(value.value),
        )


def _flag_word(key: Word, name: str) -> Word:
    """`--name`; its characters are those of the written key, if the key is spelled so."""
    start = key.place.start
    dashes = Fragment("--", Place(key.place.document, start, start), False)
    named = key.fragments if key.text == name else (Fragment(name, key.place, False),)
    return Word((dashes, *named), key.place)


def _value(value: ConfigValue, text: str) -> Arg:
    if value.word is not None and value.word.text == text:
        return Arg(value.word, text, True)
    return Arg(Word((Fragment(text, value.place, False),), value.place), text, True)


def _keys(flag: Flag, release: Release) -> set[str]:
    if release < _ALL_SPELLINGS:
        return {flag.dest}
    return {flag.dest} | {s[2:].replace("-", "_") for s in flag.spellings if s.startswith("--")}


@functools.cache
def switches(release: Release) -> frozenset[str]:
    """Keys whose `true` becomes the flag alone."""
    catalog = load(release)
    return frozenset(k for f in catalog.flags if f.action == "store-true" for k in _keys(f, release))


@functools.cache
def refused_keys(release: Release) -> dict[str, Flag]:
    """Keys that stop SGLang with "Unsupported config option"."""
    catalog = load(release)
    if release < REFUSES_KEYS:
        return {}

    def supported(flag: Flag) -> bool:
        return flag.action in ("store", "store-true") or (release >= _ALL_SPELLINGS and flag.nargs is None)

    takes = [f for f in catalog.flags if supported(f)]
    usable = {k for f in takes for k in _keys(f, release)} if release >= _ALL_SPELLINGS else set()
    return {
        key: flag
        for flag in catalog.flags
        if not supported(flag) and flag.action != "help" and "--config" not in flag.spellings
        for key in _keys(flag, release)
        if key not in usable
    }
