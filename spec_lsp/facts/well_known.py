"""Facts of well-known models, for ids without a config.json at hand.

data/well_known.json holds one line for each model: the ids that share the facts, then the keys of config.json that resolution reads, except
those inherited from the model or family that it is `like`. A null removes an inherited key (or is config.json's own null). `unsure` names
keys that config.json may have but that the line leaves open (`*`: all that it does not state): reading one of those, or a missing key of
`CORE_KEYS`, gives NotKnown. `from` says where a line's facts come from, if not from the model's own published config.json. `python -m
tests.sources.models` makes lines from config.json files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from spec_lsp.expressions import expression
from spec_lsp.facts.model import ANY_OTHER, ModelFacts

_CACHE_FOLDER = "models--"
"""The name of a model's folder in the Hugging Face cache: models--<org>--<name>."""

_MODELSCOPE_DOT = "___"
"""What ModelScope's cache writes for a dot (`Qwen2___5-7B-Instruct`)."""

_NAMED_FIRST = ("meta-", "nvidia-")
"""Publishers whose models are called with their name in front and without it."""

_BEFORE_NUMBER = expression(r"(?<=[a-z])-(?=\d)")


@lru_cache(maxsize=512)
def find_model(name: str) -> ModelFacts | None:
    """Facts of the model called `name`: its id in any case, or its name under another organisation or in a folder, also with a suffix that
    says that its weights were quantized (`Qwen3-32B-AWQ`, `GLM-4.7-NVFP4`), or as people retype it (`llama3.1_8b_instruct`,
    `Qwen_Qwen3-8B`).

    Only the id itself determines how the weights are quantized: a copy with the same name may differ. A name that is not in the table gets
    what its siblings share: another training of the same size (`-Base`, `-it`) has the same layers, another size of a series has the
    architecture of the known ones.
    """
    wanted = name.strip().rstrip("/").lower()
    exact = _by_id().get(wanted)
    if exact is not None:
        return _facts(exact)
    last = _last_part(wanted)
    found = _by_part(last)
    return _by_part(rest) if found is None and (rest := _without_publisher(last)) else found


def _by_part(last: str) -> ModelFacts | None:
    named = _named(last)
    if named is not None:
        return _facts(named, exact=False)
    while (shorter := _QUANTIZED.sub("", last)) != last:
        last = shorter
        named = _named(last)
        if named is not None:
            return _facts(named, exact=False, unsure=QUANTIZING_CHANGES)
    return _sibling(last) or _in_series(last)


QUANTIZING_CHANGES = frozenset(("dtype", "torch_dtype", "num_nextn_predict_layers", "mtp_num_hidden_layers"))
"""Keys that quantizing a model may change, besides the quantization itself: AWQ copies compute in float16, many leave out the MTP
layers."""

QUANTIZATION = frozenset(("quantization_config", "hf_quant_config"))
"""Where a checkpoint says how it is quantized."""

TRAINING_CHANGES = QUANTIZING_CHANGES | QUANTIZATION | {
    "max_position_embeddings", "model_max_length", "max_sequence_length", "seq_length",
    "max_seq_len", "rope_scaling", "rope_parameters", "rope_theta", "sliding_window", "sliding_window_size", "use_sliding_window",
    "vocab_size", "tie_word_embeddings", "use_bidirectional_attention",
}  # fmt: skip
"""Keys that may differ between a base model and one trained from it: these, the context length, the vocabulary."""

_QUANTIZED = expression(
    r"[-_.](?:awq|gptq(?:model)?|autoround|auto-round|(?:nv|mx|nvfp4-)?fp[48](?:a\d+)?(?:[-_.]preview)?|fp16|int[2-8]|nf4|bnb|hqq|aqlm|quark|rtn|qad|"
    r"w-mxfp4-a-fp8|w\d+a(?:\d+|fp8)(?:fp8|s?c8|kv\d)?(?:[-_.](?:float)?mtp)?|e4m3|ptpc|[2-8]bits?|\d(?:\.\d+)?bpw|exl[23]|bf16|modelopt|"
    r"compressed-tensors|marlin|modelslim|quarot|mindie|mlx|dwq|qat|ct|inc|q4_0|unquantized|quantized|quant|dynamic|static|pertensor|per-tensor|"
    r"channel|block|kv|mix(?:ed)?|g(?:32|64|128)|sym|asym|unsloth|ud|uncensored|abliterated|derestricted|heretic)"
    r"(?:[-_.]v[1-9])?$"
)
"""Suffixes that say how a copy of a model was quantized or trained on, which does not change its architecture. GGUF is not among them: such
a file brings its own configuration."""

_TRAINED = expression(
    r"[-_.](?:instruct|chat|base|it|pt|sft|dpo|grpo|ppo|rl|ft|finetuned|merged|thinking|reasoning|preview)$"
)
"""Ends of names that say what a model was trained for."""

_DATED = expression(r"[-_.](?:\d{4}|\d{2}-\d{4}|\d{6,8})$")
"""The date of a checkpoint (`-2507`, `-08-2024`)."""

_SIZE = expression(r"(?<![a-z0-9.])(a?)\d+(?:\.\d+)?[bmt](?![a-z0-9])")
"""A number of parameters: all (`30b`), or the active ones (`a3b`)."""


def ids() -> tuple[str, ...]:
    """Every id the table knows, as its publisher writes it."""
    return tuple(name for line in _table()["models"] for name in line.split())


def _last_part(name: str) -> str:
    for part in reversed(name.split("/")):
        if part.startswith(_CACHE_FOLDER):
            return part.rpartition("--")[2]
    return name.rpartition("/")[2].replace(_MODELSCOPE_DOT, ".")


def _without_publisher(name: str) -> str:
    """The name in a folder called after the id with its slash replaced (`Qwen_Qwen3-8B`, `Qwen--Qwen3-8B`)."""
    publisher, mark, rest = name.partition("_")
    if "--" in publisher:
        publisher, mark, rest = name.partition("--")
    return rest.lstrip("_-") if mark and publisher in _publishers() else ""


@cache
def _publishers() -> frozenset[str]:
    return frozenset(name.partition("/")[0] for name, _ in _lines())


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
def _last_parts() -> tuple[tuple[str, Mapping[str, Any]], ...]:
    return tuple((name.rpartition("/")[2], entry) for name, entry in _lines())


@cache
def _by_name() -> Mapping[str, Mapping[str, Any] | None]:
    """By the part after the slash; None if two models share it."""
    found: dict[str, Mapping[str, Any] | None] = {}
    for last, entry in _last_parts():
        found[last] = None if last in found and found[last] is not entry else entry
    return found


def _named(last: str) -> Mapping[str, Any] | None:
    """The model with that name, however its parts are joined; None if several are."""
    if last in _by_name():
        return _by_name()[last]
    alike = list(_called(_retyped).get(_retyped(last), {}).values())
    return alike[0] if alike and all(entry is alike[0] for entry in alike) else None


def _retyped(name: str) -> str:
    """A name whatever joins its parts and whether a hyphen stands before a number (`llama3.1_8b_instruct`)."""
    return _BEFORE_NUMBER.sub("", _joined(name))


def _joined(name: str) -> str:
    for publisher in _NAMED_FIRST:
        name = name.removeprefix(publisher)
    return name.replace("_", "-")


@lru_cache(maxsize=8192)
def _stem(name: str) -> str:
    """What a model and its siblings are called: the series with its version, and the size."""
    name = _joined(name)
    while (shorter := _TRAINED.sub("", _QUANTIZED.sub("", name))) != name:
        name = shorter
    return name


@lru_cache(maxsize=8192)
def _undated(name: str) -> str:
    return _stem(_DATED.sub("", _stem(name)))


def _series(name: str) -> str:
    return _SIZE.sub(r"\1#", _undated(name))


@cache
def _called(shortened: Callable[[str], str]) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """The table's models by their names without suffixes."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for last, entry in _last_parts():
        found.setdefault(shortened(last), {})[last] = entry
    return found


def _sibling(name: str) -> ModelFacts | None:
    """What all known trainings of a model share, without the keys that training changes; None if none is known or their classes differ."""
    known = [_config(entry) for entry in _called(_stem).get(_stem(name), {}).values()]
    if len({_architecture(config) for config, _ in known}) != 1:
        return None
    left_open = set(TRAINING_CHANGES).union(*(unsure for _, unsure in known))
    return ModelFacts(_shared([config for config, _ in known], left_open), complete=False, unsure=frozenset(left_open))


def _in_series(name: str) -> ModelFacts | None:
    """The architecture of a series, if at least two sizes are known and all share it; or that of the same size with another date."""
    dated = _called(_undated).get(_undated(name), {}) if _undated(name) != _stem(name) else {}
    sizes = _called(_series).get(_series(name), {})
    known = dated or (sizes if len({_undated(size) for size in sizes}) > 1 else {})
    found = {_architecture(_config(entry)[0]) for entry in known.values()}
    if len(found) != 1 or not (architecture := found.pop()):
        return None
    return ModelFacts({"architectures": [architecture]}, complete=False, unsure=frozenset((ANY_OTHER,)))


def _architecture(config: Mapping[str, Any]) -> str:
    return next(iter(config.get("architectures") or ()), "")


def _shared(configs: Sequence[Mapping[str, Any]], left_open: set[str]) -> dict[str, Any]:
    """The keys on which all agree; the others, and those in their parts, become unsure."""
    shared: dict[str, Any] = {}
    for key in dict.fromkeys(key for config in configs for key in config):
        values = [config.get(key, ANY_OTHER) for config in configs]
        if key in left_open:
            continue
        if all(isinstance(value, Mapping) for value in values):
            shared[key] = _shared(values, left_open)
        elif all(value == values[0] for value in values):
            shared[key] = values[0]
        else:
            left_open.add(ANY_OTHER if any(isinstance(value, Mapping) for value in values) else key)
    return shared


def _facts(entry: Mapping[str, Any], *, exact: bool = True, unsure: frozenset[str] = frozenset()) -> ModelFacts:
    config, left_open = _config(entry)
    if not exact:
        unsure = unsure | QUANTIZATION
    return ModelFacts(_without(config, unsure), complete=False, unsure=unsure.union(left_open))


def _without(config: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    """A config without some keys, in its parts too."""
    return {k: _without(v, keys) if isinstance(v, Mapping) else v for k, v in config.items() if k not in keys}


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
