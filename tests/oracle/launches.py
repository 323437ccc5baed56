"""Random launches of a release: of a topic whose flags act on one another, of the whole table of flags, or misspelt.

The same seed draws the same launches from the same catalog.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from spec_lsp.catalog.model import Catalog, Flag
from tests.truth.score import MODELS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Case = dict[str, Any]

TABLE, ARGPARSE = "table", "argparse"
WITHOUT_MEANING = frozenset(("help", "config", "model_path"))
WITH_A_VARIABLE = 0.12
DRAFTS = ("eagle3-draft", "eagle-draft", "llama-3.1-8b", "qwen3-0.6b")


@cache
def told() -> Mapping[str, Any]:
    """families.toml."""
    table: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("families.toml").read_text("utf-8"))
    return table


def families() -> tuple[str, ...]:
    return (*told()["families"], TABLE, ARGPARSE)


def draw(catalog: Catalog, seed: int, count: int, family: str = "") -> Iterator[Case]:
    """`count` different launches of one family, or of all topics (drafting as often as three others)."""
    rng = random.Random(seed)
    topics = [*told()["families"], "spec", "spec"]
    seen: set[str] = set()
    while len(seen) < count:
        of = family or rng.choice(topics)
        argv, files = misspelt(rng, catalog) if of == ARGPARSE else (written(rng, catalog, of), {})
        key = json.dumps([argv, files])
        if key in seen:
            continue
        seen.add(key)
        case = {"id": f"{of}-{seed}-{len(seen)}", "argv": argv, "env": variables(rng)}
        yield {**case, "files": files} if files else case


def variables(rng: random.Random) -> dict[str, str]:
    if rng.random() >= WITH_A_VARIABLE:
        return {}
    values = told()["environment"]
    name = rng.choice(["SGLANG_ENABLE_SPEC_V2", "SGLANG_ENABLE_SPEC_V2", *values])
    return {name: rng.choice(values[name])}


# --- launches as people write them -------------------------------------------------------------------------------------


def written(rng: random.Random, catalog: Catalog, family: str) -> list[str]:
    """One launch of a topic, or with flags of the whole table."""
    fields, models = _whole_table(catalog) if family == TABLE else _topic(catalog, family)
    names = list(() if family == TABLE else told()["families"][family]["always"])
    size = len(names) + rng.choice([1, 2, 3, 3, 4, 4, 5, 6, 8])
    while len(names) < size and set(fields) - set(names):
        names.append(rng.choice([f for f in fields if f not in names]))
    argv = ["--model-path", "{models}/" + rng.choice(models)]
    for name in _with_companions(rng, names):
        flag = catalog.by_field.get(name)
        if flag is not None:
            argv += [flag.name, *_value(rng, flag)]
    return argv


def _topic(catalog: Catalog, family: str) -> tuple[Sequence[str], Sequence[str]]:
    """The topic's fields that this release has, and its models."""
    topic = told()["families"][family]
    return [field for field in topic["fields"] if field in catalog.by_field], topic["models"]


def _whole_table(catalog: Catalog) -> tuple[Sequence[str], Sequence[str]]:
    fields = [f for f, flag in catalog.by_field.items() if f not in WITHOUT_MEANING and not flag.fatal]
    return fields, models()


@cache
def models() -> Sequence[str]:
    """The folders of tests/models that are served, not drafts."""
    return sorted(p.name for p in MODELS.iterdir() if not p.name.endswith("-draft"))


def _with_companions(rng: random.Random, names: list[str]) -> list[str]:
    """The fields with those that people set beside them, mostly."""
    more = []
    if "speculative_algorithm" in names and rng.random() < 0.7:
        more.append("speculative_draft_model_path")
    if {"speculative_algorithm", "speculative_eagle_topk"} <= set(names) and rng.random() < 0.6:
        more += ["speculative_num_steps", "speculative_num_draft_tokens"]
    if {"enable_dp_attention", "dp_size"} & set(names) and rng.random() < 0.7:
        more.append("tp_size")
    return list(dict.fromkeys((*names, *more)))


def _value(rng: random.Random, flag: Flag) -> list[str]:
    """The words that follow a flag."""
    values = told()["values"].get(flag.field)
    if not flag.takes_value or (flag.action == "boolean" and values is None):
        return []
    if flag.field == "speculative_draft_model_path":
        return ["{models}/" + rng.choice(DRAFTS)]
    if values is not None:
        return [str(rng.choice(values))]
    if flag.choices:
        return [str(rng.choice(flag.choices))]
    match flag.type:
        case "int" | "human_readable_int":
            return [str(rng.choice([0, 1, 2, 8, 64]))]
        case "float":
            return [str(rng.choice([0.0, 0.5, 1.0]))]
        case "loads":
            return [rng.choice(["{}", '{"a": 1}'])]
    return [rng.choice(["x", "auto", "none"])]


# --- launches as people misspell them ----------------------------------------------------------------------------------

FOREIGN = (
    ("--max-model-len", "4096"),
    ("--gpu-memory-utilization", "0.9"),
    ("--enable-ep-moe",),
    ("--speculative-model", "x"),
    ("--disable-mla",),
    ("--tensor-parallel", "2"),
)
"""Flags of other servers, and of SGLang once."""
CONFIG = "{files}/c.yaml"
NAMED = (
    ("--config", CONFIG), ("--config", CONFIG), (f"--config={CONFIG}",), ("--config", "{files}/missing.yaml"),
    ("--config", CONFIG, "--config", CONFIG),
)  # fmt: skip
GOOD = {"int": "4", "float": "0.5", "loads": '{"a": 1}', "human_readable_int": "4k", "json_list_type": "[1]"}


def misspelt(rng: random.Random, catalog: Catalog) -> tuple[list[str], dict[str, str]]:
    """A launch with prefixes, `=`, wrong letters, missing and wrong values, repeats and `--config` files; and those files by name."""
    flags = [f for f in catalog.flags if f.dest not in WITHOUT_MEANING and f.name.startswith("--")]
    argv, files = ["--model-path", "{models}/llama-3.1-8b"], {}
    for _ in range(rng.choice([1, 1, 2, 3])):
        flag = rng.choice(flags)
        spelling = rng.choice([s for s in flag.spellings if s.startswith("--")])
        good = str(rng.choice(flag.choices)) if flag.choices else GOOD.get(flag.type or "", "x")
        value = [good] if flag.takes_value else []
        way = rng.choice(WAYS)
        if way == "config":
            files["c.yaml"] = _config(rng, rng.choice([spelling[2:], spelling[2:], flag.dest]), value)
            argv += rng.choice(NAMED)
        else:
            argv += _spelt(rng, way, spelling, value, good)
    return argv, files


WAYS = (
    "prefix", "prefix", "prefix", "equals", "under", "typo", "unknown", "missing", "type", "choice", "repeat", "extra", "bool", "config",
    "plain", "negative", "many",
)  # fmt: skip


def _spelt(rng: random.Random, way: str, flag: str, value: list[str], good: str) -> Sequence[str]:
    match way:
        case "prefix":
            return [flag[: rng.randint(5, max(6, len(flag) - 1))], *value]
        case "equals":
            return [f"{flag}={value[0] if value else 'true'}"]
        case "under":
            return ["--" + flag[2:].replace("-", "_"), *value]
        case "typo":
            at = rng.randint(4, len(flag) - 1) if len(flag) > 4 else len(flag)
            return [flag[:at] + flag[at + 1 :], *value]
        case "unknown":
            return rng.choice(FOREIGN)
        case "missing":
            return [flag]
        case "type":
            return [flag, rng.choice(["abc", "1.5", "1e3", "", "0x10", "1_000", "true", "None"])]
        case "choice":
            return [flag, rng.choice([good.upper(), good + "x", "none", "auto"])]
        case "repeat":
            return [flag, *value, flag, *value]
        case "extra":
            return [flag, *value, "stray"]
        case "bool":
            return [flag.replace("--", "--no-", 1)]
        case "negative":
            return [flag, "-1"]
        case "many":
            return [flag, *value, *value]
    return [flag, *value]


def _config(rng: random.Random, key: str, value: list[str]) -> str:
    typed = json.dumps(value[0]) if value else "true"
    return rng.choice([
        f"{key}: {typed}\n", f"{key}: false\n", f"{key}: 'true'\n", f"{key}: [1, 2]\n", f"{key}: {{a: 1}}\n", f"{key}:\n", "- a\n", "",
        f"{key}: {value[0] if value else 'yes'}\nport: 30001\n",
    ])  # fmt: skip
