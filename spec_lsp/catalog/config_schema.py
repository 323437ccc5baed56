"""A JSON Schema of the file that SGLang's `--config` accepts, so that any YAML editor completes and checks it.

It accepts what SGLang's own parser accepts, as `config_file.py` turns a file into words and `binding.py` reads them. It is stricter on
purpose: a key must be written out (argparse accepts abbreviations, until a release adds a longer name); `null`, which SGLang reads as the
text `None`, is not allowed; before 0.5.14 neither is a mapping, which SGLang turned into its Python repr. A schema cannot check JSON inside
a string.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spec_lsp.catalog.binding import LOG_LEVEL_CHECKED, LOG_LEVELS
from spec_lsp.catalog.config_file import REFUSES_KEYS, SINCE, WRITES_JSON, refused_keys, switches
from spec_lsp.catalog.converters import cuda_graph_keys
from spec_lsp.catalog.descriptions import describe
from spec_lsp.catalog.model import SUPPRESS, Catalog, Flag
from spec_lsp.catalog.release import Release

DIALECT = "http://json-schema.org/draft-07/schema#"

DIGITS = r"\d+(_\d+)*"
WHOLE_NUMBER = rf"^\s*[+-]?{DIGITS}\s*$"
NUMBER = rf"^\s*[+-]?({DIGITS}(\.({DIGITS})?)?|\.{DIGITS})([eE][+-]?{DIGITS})?\s*$"
INFINITE = r"^\s*[+-]?([iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])\s*$"
JSON = r"^\s*([\[{\"0-9-]|true|false|null|NaN|Infinity)"
"""The beginning of a text that may be JSON."""
SUFFIXED_NUMBER = r"^\s*\d+(\.\d+)?[kMGT]\s*$|^\s*\d+[KMGT]i\s*$|" + WHOLE_NUMBER

Schema = dict[str, Any]


def config_schema(catalog: Catalog) -> Schema:
    """The schema (draft 7) of a release's configuration file. Raises ValueError for a release that has no `--config`."""
    release = catalog.release
    if release < SINCE:
        raise ValueError(f"SGLang {release} has no `--config`: it came with 0.5.3")
    return {
        "$schema": DIALECT,
        "title": f"SGLang {release} --config",
        "description": f"The configuration file of `python -m sglang.launch_server --config FILE`, for SGLang {release}.",
        "type": ["object", "null"],
        "properties": {
            spelling[2:]: _property(flag, release)
            for flag in catalog.flags
            if _usable(flag, release)
            for spelling in flag.spellings
            if spelling.startswith("--") and _usable_key(spelling[2:], flag, release)
        },
        "additionalProperties": False,
    }


def _usable(flag: Flag, release: Release) -> bool:
    return flag.action != "help" and not flag.fatal and "--config" not in flag.spellings


def _usable_key(key: str, flag: Flag, release: Release) -> bool:
    """Whether the key has an effect: SGLang stops at some keys, and a switch under a name that SGLang does not know has no value."""
    name = key.replace("-", "_")
    if name in refused_keys(release):
        return False
    return flag.nargs != 0 or release < REFUSES_KEYS or name in switches(release)


def _property(flag: Flag, release: Release) -> Schema:
    schema: Schema = {}
    text = describe(flag)
    if text:
        schema["description"] = text
    if flag.deprecated:
        schema["deprecated"] = True
        schema["deprecationMessage"] = f"Use {flag.replacement}." if flag.replacement else "Deprecated by SGLang."
    schema |= _values(flag, release)
    if flag.default not in (None, SUPPRESS) and _plain(flag.default):
        schema["default"] = flag.default
    return schema


def _values(flag: Flag, release: Release) -> Schema:
    """The values that a key of the flag may have."""
    if flag.nargs == 0:
        return {"type": "boolean"}
    one = _one(flag, release)
    if flag.nargs in ("+", "*"):
        return {"anyOf": [one, {"type": "array", "items": one}]}
    return one


def _one(flag: Flag, release: Release) -> Schema:
    """One value, as the flag's converter accepts the text that SGLang makes of it."""
    if flag.choices:
        return {"enum": list(flag.choices)}
    match flag.type:
        case "int":
            return {"type": ["integer", "string"], "pattern": WHOLE_NUMBER}
        case "float":
            return {"type": ["number", "string"], "pattern": f"{NUMBER}|{INFINITE}"}
        case "human_readable_int":
            return {"type": ["integer", "string"], "pattern": SUFFIXED_NUMBER}
        case "loads" | "json_list_type":
            return _text(release, JSON)
        case "parse_cuda_graph_config_arg":
            phases = {phase: _graph_phase(phase, release) for phase in ("decode", "prefill")}
            structured = {"type": "object", "properties": phases, "additionalProperties": False}
            text = {"type": "string", "pattern": r"^\s*\{"}
            return {"anyOf": [structured, text]} if release >= WRITES_JSON else text
        case "parse_cuda_graph_backend_arg":
            return {"type": "string"}
    if flag.field == "log_level" and release >= LOG_LEVEL_CHECKED:
        return {"type": "string", "pattern": _any_case(sorted(LOG_LEVELS))}
    return _text(release)


def _text(release: Release, pattern: str = "") -> Schema:
    """A value that SGLang uses as text, whatever its YAML type."""
    types = ["string", "number"]
    if release >= REFUSES_KEYS:  # before, YAML's `true` was the flag alone
        types.append("boolean")
    if release >= WRITES_JSON:
        types.append("object")
    return {"type": types, "pattern": pattern} if pattern else {"type": types}


def _any_case(words: Iterable[str]) -> str:
    """A pattern that matches words in upper or lower case: regular expressions in JSON Schema have no flags."""
    return f"^({'|'.join(''.join(f'[{c.upper()}{c.lower()}]' for c in word) for word in words)})$"


def _graph_phase(phase: str, release: Release) -> Schema:
    keys = cuda_graph_keys(phase, release)
    return {"type": "object", "properties": {key: {} for key in keys}, "additionalProperties": False}


def _plain(value: object) -> bool:
    """Whether a default can be written as JSON."""
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and _plain(v) for k, v in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return all(map(_plain, value))
    return isinstance(value, (str, int, float, bool)) or value is None
