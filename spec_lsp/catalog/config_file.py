"""The words that a `--config` file becomes: SGLang's ConfigArgumentMerger, release by release.

| since | booleans | dictionaries | keys it refuses |
| --- | --- | --- | --- |
| 0.5.3.post3 | `true` is the flag alone, `false` nothing | Python's text of it | none |
| 0.5.8 | the same for switches known by their dest; else the word `true` or `false` | | the dest of any flag that is no plain switch or value |
| 0.5.14 | | JSON | |
| 0.5.23 | switches are known by every long spelling | | not those of a flag that takes one value |
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spec_lsp.catalog.argparse_rules import Arg
from spec_lsp.catalog.model import Catalog, Flag
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load
from spec_lsp.syntax.word import Fragment, Place, Word

SINCE = Release(0, 5, 3)
"""`--config` came with 0.5.3; the oldest release shipped that has it is 0.5.3.post3."""

_REFUSES_KEYS = Release(0, 5, 8)
_JSON = Release(0, 5, 14)
_ALL_SPELLINGS = Release(0, 5, 23)


class ConfigValueLike(Protocol):
    @property
    def value(self) -> Any: ...
    @property
    def word(self) -> Word | None: ...
    @property
    def place(self) -> Place: ...


class ConfigEntryLike(Protocol):
    @property
    def key(self) -> Word: ...
    @property
    def value(self) -> ConfigValueLike: ...


class ConfigFileLike(Protocol):
    """What `spec_lsp.syntax.yaml` reads of a file."""

    @property
    def entries(self) -> Sequence[ConfigEntryLike]: ...
    @property
    def problem(self) -> str:
        """Empty, "not-mapping", or what is wrong with the YAML."""

    @property
    def problem_place(self) -> Place | None: ...


@dataclass(frozen=True, slots=True)
class BadKey:
    """A key that makes SGLang stop: `action` is what it says the flag's action is, None if the key is no text."""

    word: Word
    flag: Flag | None


def words_of(catalog: Catalog, file: ConfigFileLike) -> tuple[list[Arg], list[BadKey]]:
    """The words of a file's entries, in order, and the keys that SGLang refuses."""
    args: list[Arg] = []
    bad: list[BadKey] = []
    for entry in file.entries:
        key = entry.key.text
        if key is None:
            continue
        refused = refused_keys(catalog.release).get(key.replace("-", "_"))
        if refused is not None:
            bad.append(BadKey(entry.key, refused))
            continue
        args.extend(_entry(catalog, key, entry))
    return args, bad


def _entry(catalog: Catalog, key: str, entry: ConfigEntryLike) -> Iterator[Arg]:
    flag = Arg(_flag_word(entry.key), f"--{key}", True)
    value = entry.value.value
    texts: list[str]
    if isinstance(value, bool):
        alone = catalog.release < _REFUSES_KEYS or key.replace("-", "_") in switches(catalog.release)
        if alone and not value:
            return
        texts = [] if alone else [str(value).lower()]
    elif isinstance(value, list):
        if not value:
            return
        texts = [str(v) for v in value]
    elif isinstance(value, dict) and catalog.release >= _JSON:
        texts = [json.dumps(value, default=str)]
    else:
        texts = [str(value)]
    yield flag
    for text in texts:
        yield Arg(_value_word(entry.value, text), text, True)


def _flag_word(key: Word) -> Word:
    start = key.place.start
    dashes = Fragment("--", Place(key.place.document, start, start), False)
    return Word((dashes, *key.fragments), key.place)


def _value_word(value: ConfigValueLike, text: str) -> Word:
    if value.word is not None and value.word.text == text:
        return value.word
    return Word((Fragment(text, value.place, False),), value.place)


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
    if release < _REFUSES_KEYS:
        return {}
    supported = [
        f
        for f in catalog.flags
        if f.action in ("store", "store-true") or (release >= _ALL_SPELLINGS and f.nargs is None)
    ]
    usable = {k for f in supported for k in _keys(f, release)} if release >= _ALL_SPELLINGS else set()
    return {
        key: flag
        for flag in catalog.flags
        if flag not in supported and flag.action != "help" and "--config" not in flag.spellings
        for key in _keys(flag, release)
        if key not in usable
    }
