"""What the keyword arguments of `sgl.Engine(…)` and `ServerArgs(…)` mean to one release: fields with Python values.

No argparse is involved: a keyword is the name of a field, a value is used as it is, and choices are not checked. Python itself refuses a
keyword that `ServerArgs` does not have.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

from spec_lsp.catalog.binding import BindError, Binding, Setting
from spec_lsp.catalog.history import field_span, replacement
from spec_lsp.catalog.messages import Wording
from spec_lsp.catalog.model import SUPPRESS, Catalog, Flag
from spec_lsp.catalog.suggest import MAX_SUGGESTED, is_certain, suggest_flag, suggest_value
from spec_lsp.catalog.unknown import Unknown
from spec_lsp.syntax.word import Word

WITHOUT_FLAG = frozenset(
    (
        "aux_hidden_state_capture", "custom_sigquit_handler", "enable_cp_tp_group_sharing", "grpc_worker_threads",
        "speculative_boundary_reduction", "stat_loggers", "uses_mamba_radix_cache", "watermark_context_window",
        "watermark_default_enabled", "watermark_enforce_all", "watermark_key", "watermark_key_b", "watermark_max_probability",
        "watermark_mixing_probability",
    )
)  # fmt: skip
"""Fields that no flag fills, of any shipped release (`ServerArgs`, or since 0.5.22 `arg_groups/fields/`)."""

_NO_FIELDS = ("deprecated", "help")
"""Actions of flags whose dest is not a field."""


def bind_keywords(catalog: Catalog, words: Sequence[Word]) -> Binding:
    """Bind keywords, each followed by the word of its value's Python source; a splat stands for any number of both."""
    settings: dict[str, Setting] = {}
    errors: list[BindError] = []
    opened: list[Word] = []
    fields = fields_of(catalog)
    for key, value in _pairs(words):
        name = key.text
        if value is None or name is None:
            opened.append(key)
            continue
        flag = fields.get(name)
        if flag is not None:
            errors += _misspelt(catalog, flag, key, value)
            settings[name] = Setting(name, typed(flag, value), name, key, (value,), flag, keyword=True)
        elif name not in WITHOUT_FLAG and not name.startswith("_"):
            errors.append(_unknown(catalog, key, name, look_up=len(errors) < MAX_SUGGESTED))
    return Binding(catalog, MappingProxyType(settings), tuple(errors), (), tuple(opened))


def fields_of(catalog: Catalog) -> dict[str, Flag]:
    """The fields that a keyword may name, each with the flag that describes it."""
    return {n: f for n, f in catalog.by_field.items() if f.action not in _NO_FIELDS and n != "config"}


def _pairs(words: Sequence[Word]) -> Iterator[tuple[Word, Word | None]]:
    at = 0
    while at < len(words):
        alone = words[at].splat or at + 1 == len(words)
        yield words[at], None if alone else words[at + 1]
        at += 1 if alone else 2


def typed(flag: Flag, word: Word) -> Any:
    """The value of a source text; Unknown if the document does not determine it, or it is of a kind that no flag would give."""
    if word.text is None:
        return Unknown(word.reason)
    try:
        value = ast.literal_eval(word.text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return Unknown("it is computed by the program")
    value = list(value) if isinstance(value, tuple) else value
    return value if _fits(flag, value) else Unknown("it is of a kind that no flag gives")


def _fits(flag: Flag, value: Any) -> bool:
    """Whether a flag could have given the field this value."""
    default = None if flag.default == SUPPRESS else flag.default
    if value is None:
        return default is None
    if flag.nargs == 0 or flag.action == "boolean":
        return isinstance(value, bool)
    if flag.nargs in ("*", "+") or isinstance(flag.nargs, int):
        return isinstance(value, list) and all(_is_one(flag, item) for item in value)
    return _is_one(flag, value)


def _is_one(flag: Flag, value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if flag.choices is not None and value not in flag.choices:
        return False
    if flag.type == "int" or flag.type == "human_readable_int":
        return isinstance(value, int)
    if flag.type == "float":
        return isinstance(value, int | float)
    return isinstance(value, str) if flag.type in ("str", None) else False


def _meant(catalog: Catalog, name: str) -> str | None:
    """The field that a keyword was probably meant to name: `tp` is `tp_size`, a flag's spelling is its field. With its value
    (`cuda_graph_backend_prefill="disabled"`) if both replace the keyword."""
    fields = fields_of(catalog)
    successor = replacement("--" + name.replace("_", "-"), catalog.release)
    if successor is not None and successor.name.startswith("--"):
        field = successor.name[2:].replace("-", "_")
        value = dict(successor.fixed).get(successor.name)
        if field in fields:
            return f"{field}={json.dumps(value)}" if value is not None else field
    if f"{name}_size" in fields:
        return f"{name}_size"
    near = suggest_flag(catalog.release, "--" + name.replace("_", "-"))
    flag = catalog.flag(near) if near else None
    return flag.field if flag is not None and flag.field in fields else None


def _misspelt(catalog: Catalog, flag: Flag, key: Word, value: Word) -> Iterator[BindError]:
    """Note a value that is clearly a misspelled choice of the flag. Python accepts it, but SGLang stops where it uses it."""
    try:
        text = ast.literal_eval((value.text or "").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return
    choices = [str(c) for c in flag.choices or ()]
    if not isinstance(text, str) or not choices or text in choices:
        return
    name = key.text or ""
    near = suggest_value(text, choices, flag.field)
    if near is None or not is_certain(text, near, choices, flag.field):
        return
    yield BindError(
        "invalid-choice",
        Wording(catalog).misspelt_keyword(name, text, near),
        value.place,
        fatal=False,
        words=(key, value),
        definition=flag,
        typed=name,
        text=text,
        candidates=tuple(choices),
        suggestion=near,
    )


def _unknown(catalog: Catalog, key: Word, name: str, *, look_up: bool) -> BindError:
    suggestion = _meant(catalog, name) if look_up else None
    says = f"__init__() got an unexpected keyword argument '{name}'"
    return BindError(
        "unknown-flag",
        Wording(catalog).unknown_keyword(name, suggestion),
        key.place,
        says=says,
        words=(key,),
        typed=name,
        suggestion=suggestion,
        guess=suggestion is not None
        and field_span(name) is None
        and not is_certain(name, suggestion, fields_of(catalog)),
    )
