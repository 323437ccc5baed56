"""Makes lines of spec_lsp/facts/data/well_known.json from the config.json files of their publishers:

    python -m tests.sources.models FOLDER SOURCE

FOLDER holds ORG--NAME_config.json (and ORG--NAME_hf_quant_config.json where the publisher has one), SOURCE says where they were seen. A line
keeps the keys that spec-lsp reads, and of long lists what is read of them. A model of which the table leaves nothing open stays as it is.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from spec_lsp.facts.model import CORE_KEYS
from spec_lsp.facts.well_known import find_model, ids

PACKAGE = Path(__file__).parents[2] / "spec_lsp"
TABLE = PACKAGE / "facts/data/well_known.json"

PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
ENCODERS: Mapping[str, tuple[str, ...]] = {"vision_config": ("num_hidden_layers", "hidden_size"), "audio_config": ()}
"""What is read of an encoder: that there is one, and how large."""
SCALING = ("type", "rope_type", "factor", "original_max_position_embeddings")
LONGEST = 8
"""Entries of a list that is kept as it is: of longer ones only which entries there are is read."""


@cache
def keys_read() -> frozenset[str]:
    """The names in quotes in the code that reads config.json."""
    sources = [*(PACKAGE / "facts").glob("*.py"), *(PACKAGE / "resolution").rglob("*.py")]
    return frozenset(name for s in sources for name in re.findall(r'"([a-z][a-z0-9_]+)"', s.read_text("utf-8")))


def line_of(config: Mapping[str, Any], quantized: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the table keeps of a model's config.json, and of its hf_quant_config.json."""
    kept = _part(config)
    if quantized is not None:
        kept["hf_quant_config"] = _quantization(quantized)
    stated = any("quantization_config" in part for part in (kept, *(kept.get(name) or {} for name in PARTS)))
    return kept if stated or quantized is not None else {**kept, "quantization_config": None}


def _part(config: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for key, value in config.items():
        if key in PARTS and isinstance(value, Mapping):
            kept[key] = _part(value)
        elif key in ENCODERS and isinstance(value, Mapping):
            kept[key] = {k: value[k] for k in ENCODERS[key] if k in value}
        elif key in ("rope_scaling", "rope_parameters") and isinstance(value, Mapping):
            kept[key] = {k: value[k] for k in SCALING if k in value}
        elif key == "quantization_config" and isinstance(value, Mapping):
            kept[key] = _quantization(value)
        elif key == "torch_dtype":
            kept["dtype"] = value
        elif key in keys_read() and value is not None:
            kept[key] = _short(value)
    return kept


def _short(value: Any) -> Any:
    if isinstance(value, list) and len(value) > LONGEST:
        return _distinct([_short(v) for v in value])
    return {k: _short(v) for k, v in value.items() if k in keys_read()} if isinstance(value, Mapping) else value


def _quantization(config: Mapping[str, Any]) -> dict[str, Any]:
    """A quantization with its layers told once, whatever their number."""
    return {key: _layers(value) for key, value in config.items() if key != "producer" and value is not None}


def _layers(value: Any) -> Any:
    if isinstance(value, list):
        return _distinct(list(map(_plain, value)))
    return {_plain(k): _layers(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def _distinct(values: list[Any]) -> list[Any]:
    return list({json.dumps(v): v for v in values}.values())


def _plain(name: Any) -> Any:
    """A layer's name for all layers of its kind."""
    return re.sub(r"\.\d+(?=\.|$)", ".0", name) if isinstance(name, str) else name


def lines(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each model's id and line."""
    for path in sorted(folder.glob("*_config.json")):
        if path.name.endswith("_hf_quant_config.json"):
            continue
        name = path.name.removesuffix("_config.json")
        quantized = path.with_name(f"{name}_hf_quant_config.json")
        own = json.loads(quantized.read_text("utf-8")) if quantized.exists() else None
        yield name.replace("--", "/", 1), line_of(json.loads(path.read_text("utf-8")), own)


def having(table: Mapping[str, Any], name: str, line: Mapping[str, Any]) -> dict[str, Any]:
    """The table's models with a line of its own for one of them. What shared its line, or is like it, keeps what it had."""
    found: dict[str, Any] = {}
    old = next((entry for names, entry in table.items() if name in names.split()), None)
    for names, entry in table.items():
        rest = " ".join(other for other in names.split() if other != name)
        if rest != names:
            found[name] = line
        if rest:
            found[rest] = _merged(old, entry) if old is not None and entry.get("like") == name else entry
    return found if name in found else {**found, name: line}


def _merged(model: Mapping[str, Any], like: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with all that it has of the model that it is like."""
    merged = {**model, **like}
    if "like" in model:
        merged["like"] = model["like"]
    else:
        merged.pop("like")
    unsure = [u for u in model.get("unsure", ()) if u not in like]
    if unsure or "unsure" in like:
        merged["unsure"] = list(dict.fromkeys((*unsure, *like.get("unsure", ()))))
    return {k: v for k, v in merged.items() if k == "unsure" or k not in like.get("unsure", ())}


def main(folder: Path, source: str) -> None:
    table = json.loads(TABLE.read_text("utf-8"))
    for name, line in lines(folder):
        known = find_model(name) if name in ids() else None
        if known is not None and not known.unsure and CORE_KEYS - {"head_dim"} <= known.config.keys():
            continue
        table["models"] = having(table["models"], name, {**line, "from": source})
    TABLE.write_text(written(table), "utf-8")


def written(table: Mapping[str, Mapping[str, Any]]) -> str:
    """The table as it is kept: one line for each family and each model."""
    parts = []
    for part, entries in table.items():
        rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in entries.items())
        parts.append(f"{json.dumps(part)}: {{\n{rows}\n}}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
