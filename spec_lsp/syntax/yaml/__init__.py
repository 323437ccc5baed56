"""YAML files: SGLang's own `--config` files."""

from __future__ import annotations

import re
from collections.abc import Callable

from spec_lsp.syntax.directives import DIRECTIVE, directives_in
from spec_lsp.syntax.launch import Directive, Document, EmbeddedFile, Launch, Variant
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.config import (
    ConfigEntry,
    ConfigError,
    ConfigFile,
    ConfigValue,
    read_config,
    read_embedded_config,
)

__all__ = [
    "ConfigEntry",
    "ConfigError",
    "ConfigFile",
    "ConfigValue",
    "read_config",
    "read_embedded_config",
    "read_yaml",
]

TOP_KEY = re.compile(r"^(?:\"([A-Za-z][\w-]*)\"|'([A-Za-z][\w-]*)'|([A-Za-z][\w-]*))[ \t]*:(?=[ \t\r\n]|\Z)", re.M)


def read_yaml(name: str, text: str, looks_like_config: Callable[[frozenset[str]], bool] | None) -> Document:
    """A YAML document; one launch of program "config" if it is a configuration file of SGLang's.

    It is one if a directive `# spec-lsp: config` says so, or `looks_like_config` does, asked with the keys at its top (kebab case).
    The launch's words are `--config NAME`, and its variant's only file is the document itself.
    """
    directives = _directives(name, text)
    keys = frozenset((m.group(1) or m.group(2) or m.group(3)).replace("_", "-") for m in TOP_KEY.finditer(text))
    told = any(re.match(r"config\b", d.text) for d in directives)
    if not told and not (keys and looks_like_config is not None and looks_like_config(keys)):
        return Document(name, text, directives=directives)
    start = Place(name, 0, 0)
    whole = Place(name, 0, len(text))
    words = (
        Word((Fragment("--config", start, False, fixed=True),), start),
        Word((Fragment(name, start, False, fixed=True),), start),
    )
    first = TOP_KEY.search(text)
    place = Place(name, first.start(), first.end() - 1) if first else start
    content = Word((Fragment(text, whole),), whole)
    variant = Variant(words, files=(EmbeddedFile(name, content),))
    return Document(name, text, (Launch("config", place, whole, (variant,), "yaml-mapping"),), (), directives)


def _directives(name: str, text: str) -> tuple[Directive, ...]:
    if "spec-lsp" not in text:
        return ()
    found: list[Directive] = []
    for m in DIRECTIVE.finditer(text):
        if m.start() == 0 or text[m.start() - 1] in " \t\n":
            found.extend(directives_in(name, text, m.start(), m.end()))
    return tuple(found)
