"""What the real SGLang says of launches, kept as rows of tests/truth/data."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from spec_lsp.asking.devices import device_for
from spec_lsp.asking.process import Limits, SGLang
from spec_lsp.facts.hardware import find
from tests.oracle.releases import Oracle
from tests.truth.score import MODELS

Row = dict[str, Any]

TUNED = re.compile(
    r"attention_backend|(prefill|decode)_attention_backend|page_size|kv_cache_dtype|speculative_.*|max_running_requests|disable_overlap_schedule"
    r"|disable_radix_cache|enable_mixed_chunk|chunked_prefill_size|max_prefill_tokens|mem_fraction_static|sampling_backend|grammar_backend"
    r"|moe_(runner|a2a)_backend|moe_dense_tp_size|(ep|dp|tp|pp|attn_dp|attn_cp|moe_dp|dcp)_size|enable_dp_(attention|lm_head)|linear_attn_.*|mamba_.*"
    r"|enable_linear_replayssm.*|quantization|dtype|device|enable_hierarchical_cache|hicache_.*|disaggregation_(mode|transfer_backend)"
    r"|disable_cuda_graph|cuda_graph_max_bs|enable_deterministic_inference|disable_custom_all_reduce|flashinfer_allreduce_fusion_backend"
    r"|enable_flashinfer_allreduce_fusion|schedule_policy|load_balance_method|enable_lora|lora_backend|max_loras_per_batch|swa_full_tokens_ratio"
    r"|disable_hybrid_swa_memory|[dn]sa_.*|enable_multi_layer_eagle|enable_two_batch_overlap|enable_eplb|deepep_mode"
    r"|fp[84]_gemm_runner_backend|is_embedding|context_length|skip_tokenizer_init|rl_on_policy_target|enable_torch_compile|radix_eviction_policy"
)
"""The fields that people tune: of these a row keeps what they end up as."""
LONG_TEXT, MESSAGE = 120, 240


def sglang(oracle: Oracle, release: str, gpu: str, jobs: int = 2) -> SGLang:
    """A release on a simulated GPU."""
    hardware = find(gpu)
    device = device_for(hardware) if hardware else None
    if device is None:
        raise ValueError(f"{gpu} is no GPU that can be simulated")
    packages = [str(p) for p in oracle.packages(release)]
    limits = Limits(starting=600, asking=120, jobs=jobs)
    return SGLang(str(oracle.python), device, packages=packages, models=str(MODELS), limits=limits)


def verdicts(asked: SGLang, cases: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """Each case with what SGLang says of it."""
    cases = list(cases)
    for case, answer in zip(cases, asked.ask(cases), strict=True):
        yield {**case, **answer}


def rows(verdicts: Iterable[Row], release: str, gpu: str) -> Iterator[Row]:
    """What a checker has to reproduce; what could not be asked is left out."""
    for verdict in verdicts:
        if verdict["outcome"] == "unanswered":
            continue
        kept = ("id", "argv", "env", "files") if verdict.get("files") else ("id", "argv", "env")
        row = {k: verdict[k] for k in kept} | {"version": release, "gpu": gpu, "outcome": verdict["outcome"]}
        if error := verdict["error"]:
            at = ":".join((error["where"] or "").split(":")[:2])
            row["error"] = {"type": error["type"], "at": at, "message": error["message"][:MESSAGE]}
        if fields := verdict.get("resolved"):
            row["resolved"] = {k: v for k, v in fields.items() if TUNED.fullmatch(k) and not _long(v)}
        yield row


def _long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > LONG_TEXT


def worlds(oracle: Oracle, cases: list[Row], asked: list[tuple[str, str]]) -> Iterator[Row]:
    """The same launches in several worlds (release, GPU), those that every world could be asked about."""
    outcomes: dict[str, dict[str, str]] = {case["id"]: {} for case in cases}
    for release, gpu in asked:
        with sglang(oracle, release, gpu) as one:
            for verdict in verdicts(one, cases):
                outcomes[verdict["id"]][f"{release} {gpu}"] = verdict["outcome"]
    for case in cases:
        if "unanswered" not in outcomes[case["id"]].values():
            yield {**case, "outcomes": outcomes[case["id"]]}


def seed_of(seed: int, *about: str) -> int:
    """A seed for each file, so that no two draw the same launches."""
    return zlib.crc32(" ".join((str(seed), *about)).encode())


def write(path: Path, lines: Iterable[Row]) -> int:
    """Write rows; gives how many."""
    text = [json.dumps(line) for line in lines]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(("\n".join(text) + "\n").encode(), 9, mtime=0))
    return len(text)
