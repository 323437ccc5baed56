"""No line of the table lacks, unsaid, what every known config.json of its architecture has: each rule that reads it would go by a default.

A line whose facts come from a config.json is whole; of any other, a key that the rules read is there or named unsure.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spec_lsp.catalog.store import fields_of_any
from spec_lsp.facts.model import ANY_OTHER, CORE_KEYS
from spec_lsp.facts.well_known import find_model
from tests.sources.models import PARTS, keys_read

ROOT = Path(__file__).parents[2] / "spec_lsp"
TABLE: Mapping[str, Mapping[str, Any]] = json.loads((ROOT / "facts/data/well_known.json").read_text("utf-8"))["models"]
FUNCTION = re.compile(r"^(?:    )?def (\w+)", re.M)


def keys_of(config: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a config.json and of its language model's part."""
    for key, value in config.items():
        yield key
        if key in PARTS and isinstance(value, Mapping):
            yield from keys_of(value)


def lacking() -> dict[str, list[str]]:
    """key → the ids of lines that neither have it nor name it unsure, though every config.json of their architecture has it."""
    whole: dict[str, list[set[str]]] = defaultdict(list)
    others: list[tuple[str, str, set[str]]] = []
    for line, entry in TABLE.items():
        model_id = line.split()[0]
        facts = find_model(model_id)
        assert facts is not None
        keys = set(keys_of(facts.config))
        if "config.json" in entry.get("from", ""):
            whole[facts.architecture].append(keys)
        elif "architectures" not in facts.unsure and ANY_OTHER not in facts.unsure:
            others.append((model_id, facts.architecture, keys | facts.unsure))
    read = keys_read() - CORE_KEYS - fields_of_any()
    found: dict[str, list[str]] = defaultdict(list)
    for model_id, architecture, said in others:
        always = set.intersection(*whole[architecture]) if whole[architecture] else set()
        for key in (always & read) - said:
            found[key].append(model_id)
    return found


def readers(key: str) -> list[str]:
    """The functions (rules and what they ask of a model) that read a key."""
    found = []
    for path in (*(ROOT / "facts").glob("*.py"), *(ROOT / "resolution").rglob("*.py")):
        text = path.read_text("utf-8")
        for use in re.finditer(rf'"{key}"', text):
            names = FUNCTION.findall(text, 0, use.start())
            found.append(f"{path.stem}.{names[-1] if names else ''}")
    return sorted(set(found))


def test_what_a_rule_reads_of_a_model_is_there_or_named_unsure() -> None:
    assert {f"{key}, read by {', '.join(readers(key))}": sorted(ids) for key, ids in lacking().items()} == {}
