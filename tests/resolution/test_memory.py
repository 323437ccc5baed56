"""The memory budget. The values are SGLang's own, asked of each release on simulated hardware."""

from __future__ import annotations

import pytest

from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import DEVICES, FAMILIES, Hardware
from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution.engine import Config
from spec_lsp.resolution.memory import tier
from tests.resolution.launching import resolved, rules

MOE = "model=deepseek-v3"
DP_ATTENTION = "--tp-size 8 --dp-size 8 --enable-dp-attention"
EAGLE = "--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft"


@pytest.mark.parametrize(
    ("launch", "chunk", "fraction"),
    [
        ("--page-size 1", 8192, 0.83),
        ("--tp-size 8", 8192, 0.812),
        (f"{MOE} -- --tp-size 8", 8192, 0.799),
        (f"{MOE} -- {DP_ATTENTION}", 1024, 0.573),
        ("--disaggregation-mode decode", 8192, 0.874),
        ("--disaggregation-mode prefill", 8192, 0.836),
        (EAGLE, 8192, 0.83),
        ("--disable-cuda-graph --chunked-prefill-size -1", -1, 0.691),
        ("gpu=b200 -- --page-size 1", 16384, 0.854),
        (f"gpu=b200 {MOE} -- --tp-size 8", 16384, 0.844),
        (f"gpu=b200 {MOE} -- {DP_ATTENTION}", 2048, 0.743),
        ("gpu=b200 -- --disaggregation-mode decode", 16384, 0.944),
        ("gpu=rtx4090 -- --page-size 1", 4096, 0.704),
        ("gpu=rtx4090 -- --tp-size 8", 4096, 0.658),
        (f"gpu=rtx4090 {MOE} -- --tp-size 8", 4096, 0.612),
        ("gpu=t4 -- --page-size 1", 2048, 0.735),
        ("sglang=0.5.19 gpu=rtx4090 -- --page-size 1", 2048, 0.833),
        (f"sglang=0.5.19 gpu=rtx4090 {MOE} -- --tp-size 8", 2048, 0.743),
        (f"sglang=0.5.15 {MOE} -- --tp-size 8", 8192, 0.818),
        (f"sglang=0.5.15 {MOE} -- {DP_ATTENTION}", 1024, 0.592),
        ("sglang=0.5.15 -- --disaggregation-mode prefill", 8192, 0.841),
        ("sglang=0.5.12 -- --page-size 1", 8192, 0.83),
        (f"sglang=0.5.12 -- {EAGLE}", 8192, 0.779),
        ("sglang=0.5.12 -- --disaggregation-mode decode", 8192, 0.835),
        ("sglang=0.5.12 -- --disable-cuda-graph --chunked-prefill-size -1", -1, 0.685),
    ],
)
def test_chunk_and_memory_fraction(launch: str, chunk: int, fraction: float) -> None:
    assert resolved(launch, "chunked_prefill_size", "mem_fraction_static") == (chunk, fraction)


def test_what_was_typed_stays() -> None:
    launch = "--mem-fraction-static 0.7 --chunked-prefill-size 1000"
    assert resolved(launch, "chunked_prefill_size", "mem_fraction_static") == (1000, 0.7)


def test_the_memory_of_a_cpu_is_not_known() -> None:
    assert resolved("gpu=cpu -- --device cpu", "chunked_prefill_size", "mem_fraction_static") == (None, None)


def config_on(hardware: Hardware) -> Config:
    return Config(Release.parse("0.5.23"), {}, {}, gpu=hardware)


@pytest.mark.parametrize(("family", "chunk"), [("hopper", 8192), ("sm100", 16384), ("mi300", 16384), ("mi355", 16384)])
def test_a_family_has_a_chunk_where_its_devices_agree(family: str, chunk: int) -> None:
    assert tier(config_on(FAMILIES[family])).chunk == chunk


@pytest.mark.parametrize("family", ["ampere", "ada", "sm120"])
def test_a_family_has_none_where_they_do_not(family: str) -> None:
    with pytest.raises(NotKnown):
        tier(config_on(FAMILIES[family]))


def test_memory_is_exact_at_the_bounds() -> None:
    assert tier(config_on(DEVICES["h200"])).chunk == 8192
    assert tier(config_on(DEVICES["b200"])).chunk == 16384


def test_the_two_ways_to_offload_exclude_each_other() -> None:
    found = rules("--ple-offload-embedding --offload-group-size 2")
    assert found == ["embedding-offload-with-layer-offload", "layer-embeddings-off-qwen4"]
    assert rules("sglang=0.5.19 -- --cpu-offload-gb 8") == []
