"""KV cache types, servers without a KV cache, and what caches exclude; the unified pool and sharding."""

from __future__ import annotations

import pytest

from tests.resolution.launching import resolved, rules

NO_KV = "--is-embedding --prefill-only-disable-kv-cache --chunked-prefill-size -1 --disable-radix-cache"
POOL = "--enable-unified-memory"
SHARD = "--disaggregation-mode prefill --enable-kv-cache-sharding --page-size 64 --attention-backend fa3"
CP = "--tp-size 2 --attn-cp-size 2 --enable-prefill-cp --cp-strategy zigzag"


@pytest.mark.parametrize(
    ("launch", "rule"),
    [
        ("--kv-cache-dtype mxfp8", "mxfp8-kv-cache-off-blackwell"),
        ("gpu=mi300x -- --kv-cache-dtype fp4_mx_block16", "fp4-kv-cache-off-cuda"),
        ("gpu=b200 -- --kv-cache-dtype nvfp4 --attention-backend triton", "nvfp4-prefill-backend"),
        ("gpu=b200 -- --kv-cache-dtype nvfp4 --decode-attention-backend flashinfer", "nvfp4-decode-backend"),
        ("gpu=b200 -- --kv-cache-dtype nvfp4 --enable-hierarchical-cache", "native-nvfp4-in-host-cache"),
        ("gpu=b200 -- --kv-cache-dtype nvfp4 --disaggregation-mode decode", "native-nvfp4-in-disaggregation"),
        ("--kv-cache-dtype fp4_mx_block16", "fp4-kv-cache-backend"),
        ("--prefill-kv-cache-dequant-dtype nvfp4", "dequant-dtype-without-nvfp4"),
        ("--prefill-only-disable-kv-cache", "no-kv-cache-for-generation"),
        (f"{NO_KV} --attention-backend flashinfer", "no-kv-cache-off-flashattention"),
        ("--enable-hierarchical-cache --disable-radix-cache", "host-cache-without-radix-cache"),
        ("--disaggregation-decode-enable-offload-kvcache", "decode-offload-off-decode-server"),
        ("--disaggregation-decode-retraction-backup host_pool", "host-pool-backup-off-decode-server"),
        ("--radix-eviction-policy tlru", "tlru-threshold"),
        ("--swa-full-tokens-ratio 0", "sliding-window-share-out-of-range"),
        ("--enable-lmcache --enable-hierarchical-cache", "lmcache-beside-another-cache"),
        ("--enable-lmcache --disaggregation-mode prefill", "lmcache-with-unsupported-feature"),
        ("sglang=0.5.15 -- --enable-session-radix-cache", "session-radix-cache-without-priority"),
        ("SGLANG_ENABLE_SPEC_V2=1 sglang=0.5.9 -- --disaggregation-mode decode "
         "--disaggregation-decode-enable-offload-kvcache", "decode-offload-with-spec-v2"),
        ("--enable-page-major-kv-layout", "page-major-layout-without-unified-memory"),
        (f"{POOL} --attention-backend flex_attention", "page-major-attention-backend"),
        (f"sglang=0.5.16 -- {POOL} --attention-backend fa3", "page-major-attention-backend"),
        (f"model=qwen3-next-80b -- --tp-size 4 {POOL} --mamba-backend flashinfer", "page-major-linear-backend"),
        (f"{POOL} --disaggregation-mode prefill --disaggregation-transfer-backend nixl", "unified-memory-across-servers"),
        (f"{POOL} --speculative-algorithm EAGLE3 --speculative-draft-model-path {{models}}/eagle3-draft "
         "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
         "unified-memory-eagle-target"),
        (f"{POOL} --enable-lmcache", "unified-memory-with-excluded-feature"),
        (f"{POOL} --tp-size 4 --dcp-size 2", "unified-memory-with-dcp"),
        (f"sglang=0.5.22 gpu=b200 -- {POOL}", "unified-memory-graph-on-trtllm-mha"),
        ("--enable-kv-cache-sharding", "sharded-kv-cache-off-prefill-server"),
        (SHARD, "sharded-kv-cache-without-ranks"),
        (f"{SHARD} {CP} --enable-flexkv", "sharded-kv-cache-with-excluded-feature"),
        (f"{SHARD} {CP} --disaggregation-transfer-backend mori", "sharded-kv-cache-transfer"),
    ],
)  # fmt: skip
def test_refusals(launch: str, rule: str) -> None:
    assert rules(launch)[:1] == [rule]


@pytest.mark.parametrize(
    "launch",
    [
        "gpu=b200 -- --kv-cache-dtype nvfp4",
        "gpu=b200 -- --model-path thinkingmachines/Inkling --kv-cache-dtype mxfp8",
        NO_KV,
        f"gpu=b200 model=gpt-oss-120b -- --tp-size 2 {POOL}",
        f"sglang=0.5.19 model=gpt-oss-120b -- --tp-size 2 {POOL} --attention-backend triton",
        f"{SHARD} {CP}",
        "--enable-lmcache",
        "sglang=0.5.17 -- --enable-session-radix-cache",
    ],
)
def test_accepted(launch: str) -> None:
    assert rules(launch) == []


@pytest.mark.parametrize(
    ("launch", "prefill", "decode"),
    [
        ("gpu=b200 -- --kv-cache-dtype nvfp4", "trtllm_mha", "trtllm_mha"),
        ("gpu=b200 -- --kv-cache-dtype nvfp4 --prefill-kv-cache-dequant-dtype fp8_e4m3", "flashinfer", "trtllm_mha"),
    ],
)
def test_backends_of_an_nvfp4_cache(launch: str, prefill: str, decode: str) -> None:
    assert resolved(launch, "prefill_attention_backend", "decode_attention_backend") == (prefill, decode)


def test_chunks_of_a_sharded_cache_end_with_pages() -> None:
    launch = f"{SHARD} {CP} --chunked-prefill-size 1000"
    assert resolved(launch, "chunked_prefill_size") == (1024,)
    assert resolved(f"{SHARD} {CP}", "chunked_prefill_size") == (8192,)


def test_fallbacks_fill_what_nobody_set() -> None:
    assert resolved("--page-size 1", "swa_full_tokens_ratio", "mamba_full_memory_ratio") == (0.8, 0.9)
