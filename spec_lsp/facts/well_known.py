"""Facts of well-known models, for ids whose config.json is not at hand.

data/well_known.json holds one line a model: the ids that share the facts, then the keys of config.json that resolution
reads, less those of the model or family it is `like`. A null takes an inherited key back (or is config.json's own null).
`unsure` names keys that config.json may have but that the line leaves open (`*`: all that it does not state): reading one of those, or one
of the keys every config.json has (`CORE_KEYS`), gives NotKnown. `from` says where a line's facts come from, where that is not the
model's own config.json as its publisher shows it. `python -m tests.sources.models` makes lines from config.json files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from spec_lsp.expressions import expression
from spec_lsp.facts.model import ModelFacts

_CACHE_FOLDER = "models--"
"""What a model's folder in the Hugging Face cache is called: models--<org>--<name>."""


@lru_cache(maxsize=512)
def find_model(name: str) -> ModelFacts | None:
    """Facts of the model that someone calls `name`: its id in any case, or its name under another organisation or in a folder, also
    with what says that its weights were quantized behind it (`Qwen3-32B-AWQ`, `GLM-4.7-NVFP4`).

    Only the id itself says how the weights are quantized: a copy of the same name may be quantized otherwise.
    """
    wanted = name.strip().rstrip("/").lower()
    exact = _by_id().get(wanted)
    if exact is not None:
        return _facts(exact)
    last = _last_part(wanted)
    named = _by_name().get(last)
    if named is not None:
        return _facts(named, exact=False)
    while (shorter := _QUANTIZED.sub("", last)) != last:
        last = shorter
        named = _by_name().get(last)
        if named is not None:
            return _facts(named, exact=False, unsure=QUANTIZING_CHANGES)
    return None


QUANTIZING_CHANGES = frozenset(("dtype", "torch_dtype", "num_nextn_predict_layers", "mtp_num_hidden_layers"))
"""Keys that quantizing a model may change, beside the quantization itself: AWQ copies compute in float16, many leave the MTP layers out."""


_QUANTIZED = expression(
    r"[-_.](?:awq|gptq|autoround|nvfp4|mxfp[48](?:[-_.]preview)?|fp[48]|int[48]|w[48]a(?:4|8|16)(?:fp8)?|[48]bits?|bnb|bf16|modelopt|"
    r"marlin|modelslim|"
    r"quantized|dynamic|block|channel|static|kv|mix(?:ed)?|g(?:32|64|128)|sym|hf|v[12]|unsloth|uncensored|abliterated)$"
)
"""Ends of names that say how a copy of a model was quantized or trained on, which leaves its architecture as it is. A GGUF file is none:
it brings a configuration of its own."""


def ids() -> tuple[str, ...]:
    """Every id the table knows, as its publisher writes it."""
    return tuple(name for line in _table()["models"] for name in line.split())


def _last_part(name: str) -> str:
    for part in reversed(name.split("/")):
        if part.startswith(_CACHE_FOLDER):
            return part.rpartition("--")[2]
    return name.rpartition("/")[2]


@cache
def _table() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    text = Path(__file__).with_name("data").joinpath("well_known.json").read_text("utf-8")
    table: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(text)
    return table


def _lines() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for line, entry in _table()["models"].items():
        for name in line.split():
            yield name.lower(), entry


@cache
def _by_id() -> Mapping[str, Mapping[str, Any]]:
    return dict(_lines())


@cache
def _by_name() -> Mapping[str, Mapping[str, Any] | None]:
    """By the part behind the slash; None where two models share it."""
    found: dict[str, Mapping[str, Any] | None] = {}
    for name, entry in _lines():
        last = _last_part(name)
        found[last] = None if last in found and found[last] is not entry else entry
    return found


def _facts(entry: Mapping[str, Any], *, exact: bool = True, unsure: frozenset[str] = frozenset()) -> ModelFacts:
    config, left_open = _config(entry)
    if not exact:
        config.pop("quantization_config", None)
    for key in unsure:
        config.pop(key, None)
    return ModelFacts(config, complete=False, unsure=frozenset(left_open) | unsure)


def _config(entry: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The keys of an entry with those it is like, and the keys it is unsure about."""
    config: dict[str, Any] = {}
    unsure: set[str] = set()
    like = entry.get("like")
    if like is not None:
        config, unsure = _config(_table()["families"].get(like) or _by_id()[like.lower()])
    own = {key: value for key, value in entry.items() if key not in ("like", "unsure", "from")}
    config.update(own)
    unsure.difference_update(own)
    for key in entry.get("unsure", ()):
        unsure.add(key)
        config.pop(key, None)
    return config, unsure
