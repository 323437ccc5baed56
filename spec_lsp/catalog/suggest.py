"""What was probably meant by a flag that does not exist or a value that is not accepted."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from spec_lsp.catalog.alike import flags_like, most_alike
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load

MAX_SUGGESTED = 10
"""The most mistakes of one launch for which suggestions are looked up: if there are more, the words are not misspelled flags."""

FOREIGN = {
    # vLLM
    "--tensor-parallel": "--tensor-parallel-size",
    "--pipeline-parallel": "--pipeline-parallel-size",
    "--data-parallel": "--data-parallel-size",
    "--max-model-len": "--context-length",
    "--max-num-seqs": "--max-running-requests",
    "--max-num-batched-tokens": "--chunked-prefill-size",
    "--gpu-memory-utilization": "--mem-fraction-static",
    "--block-size": "--page-size",
    "--tokenizer": "--tokenizer-path",
    "--enforce-eager": "--disable-cuda-graph",
    "--no-enable-prefix-caching": "--disable-radix-cache",
    "--speculative-model": "--speculative-draft-model-path",
    "--num-speculative-tokens": "--speculative-num-draft-tokens",
    "--speculative-num-tokens": "--speculative-num-draft-tokens",
    "--spec-method": "--speculative-algorithm",
    "--lora-modules": "--lora-paths",
    "--guided-decoding-backend": "--grammar-backend",
    "--distributed-init-addr": "--dist-init-addr",
    # TGI and TensorRT-LLM
    "--model-id": "--model-path",
    "--num-shard": "--tensor-parallel-size",
    "--max-total-tokens-per-batch": "--max-total-tokens",
    "--kv-cache-free-gpu-mem-fraction": "--mem-fraction-static",
    # SGLang's own, under another name
    "--speculative-topk": "--speculative-eagle-topk",
    "--eagle-topk": "--speculative-eagle-topk",
    "--draft-model-path": "--speculative-draft-model-path",
    "--mem-fraction": "--mem-fraction-static",
    "--max-seq-len": "--context-length",
    "--max-total-token-num": "--max-total-tokens",
}
"""Flags of other servers and near misses that similarity of letters does not find, each with the SGLang flag that does the same."""


@functools.lru_cache(maxsize=512)
def suggest_flag(release: Release, typed: str) -> str | None:
    """The flag of a shipped release that somebody probably meant by `typed` (without a `=value`); None if nothing is near."""
    catalog = load(release)
    dashed = typed.replace("_", "-")
    if not dashed.startswith("--"):
        dashed = "--" + dashed.lstrip("-")
    if dashed in catalog.by_spelling:
        return dashed
    foreign = FOREIGN.get(dashed)
    if foreign in catalog.by_spelling:
        return foreign
    starting = [s for s in catalog.by_spelling if s.startswith(dashed)] if len(dashed) > 4 else []
    if len(starting) == 1:
        return starting[0]
    likeness, nearest = next(iter(flags_like(release, dashed)), (0.0, None))
    return nearest if likeness >= ALIKE else None


ALIKE = 0.75
"""The least similarity (`SequenceMatcher.ratio`) at which one name may be meant by another."""


MEANT = {("kv_cache_dtype", "fp8"): "fp8_e4m3"}
"""SGLang's names for values of other servers: vLLM's `fp8` is E4M3."""


def suggest_value(text: str, choices: Sequence[str], field: str = "") -> str | None:
    """The choice of a field that somebody probably meant."""
    meant = MEANT.get((field, text.lower()))
    if meant in choices:
        return meant
    by_folded = {c.lower().replace("-", "_"): c for c in choices}
    folded = text.lower().replace("-", "_")
    return by_folded.get(folded) or _closest(folded, list(by_folded), by_folded)


def is_certain(typed: str, meant: str, among: Iterable[str], field: str = "") -> bool:
    """Whether what was typed can only mean `meant`, one of the names `among`: another notation, another engine's name for it, or a typing
    error that is not as near to any other name."""
    folded, name = _folded(typed), _folded(meant)
    known = (
        _folded(FOREIGN.get("--" + folded, "-")) == name or MEANT.get((field, typed.lower())) == meant or folded == name
    )
    others = [other for other in map(_folded, among) if other != name]
    if known or (name.startswith(folded) and not any(other.startswith(folded) for other in others)):
        return True
    most = 2 if len(name) >= _LONG else 1
    slips = _slips(folded, name, most)
    if slips > most or _digits(folded) != _digits(name) or _opposite(folded, name):
        return False
    return all(_slips(folded, other, slips) > slips for other in others)


@functools.lru_cache(maxsize=512)
def is_certain_flag(release: Release, typed: str, meant: str) -> bool:
    """The same for a flag among those of a shipped release."""
    return is_certain(typed, meant, (s for s in load(release).by_spelling if s.startswith("--")))


_LONG = 8
"""The length from which two typing errors still identify a name."""


def _folded(name: str) -> str:
    return name.lower().lstrip("-").replace("_", "-")


def _digits(name: str) -> str:
    return "".join(c for c in name if c.isdigit())


def _opposite(one: str, other: str) -> bool:
    """Whether the difference is a whole word with a meaning: `no-x` is not `x`."""
    return one.startswith("no-") != other.startswith("no-")


def _slips(one: str, other: str, most: int) -> int:
    """The number of letters that are wrong, missing, superfluous, or swapped with their neighbour (optimal string alignment), if at most
    `most`; else some larger number."""
    if abs(len(one) - len(other)) > most or len(set(one) ^ set(other)) > 2 * most:
        return most + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            cost = min(last[j] + 1, row[-1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > most and min(last) > most:
            return most + 1
        before, last = last, row
    return last[-1]


def _closest(text: str, among: list[str], names: dict[str, str]) -> str | None:
    nearest = most_alike(text, among, ALIKE)
    return names[nearest] if nearest is not None else None
