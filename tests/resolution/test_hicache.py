"""The hierarchical cache: how layout, copies and storage are brought together."""

from __future__ import annotations

import pytest

from tests.resolution.launching import resolved, rules

HOST = "--enable-hierarchical-cache"


@pytest.mark.parametrize(
    ("launch", "copies", "layout"),
    [
        (HOST, "kernel", "page_first"),
        (f"{HOST} --hicache-io-backend direct", "direct", "page_first_direct"),
        (f"{HOST} --hicache-mem-layout page_first_direct", "direct", "page_first_direct"),
        (f"{HOST} --hicache-storage-backend mooncake --hicache-mem-layout layer_first", "kernel", "page_first"),
        (f"{HOST} --hicache-storage-backend file --hicache-mem-layout layer_first", "kernel", "layer_first"),
        ("--hicache-io-backend direct", "direct", "page_first"),
        ("--disaggregation-mode decode --hicache-io-backend direct", "direct", "page_first_direct"),
        ("sglang=0.5.17 -- --disaggregation-mode decode --hicache-io-backend direct", "direct", "page_first"),
        (f"sglang=0.5.12 -- {HOST} --hicache-storage-backend mooncake", "kernel", "page_first"),
        (f"sglang=0.5.15 gpu=mi300x -- {HOST}", "kernel", "layer_first"),
    ],
)
def test_layout_and_copies(launch: str, copies: str, layout: str) -> None:
    assert resolved(launch, "hicache_io_backend", "hicache_mem_layout") == (copies, layout)


@pytest.mark.parametrize(
    ("launch", "ratio"),
    [
        ("--page-size 1", 2.0),
        ("--hicache-ratio 1.5", 1.5),
        ("--hicache-host-memory-mode buffer_only", 1.2),
        ("--disaggregation-mode decode", None),
    ],
)
def test_size_of_the_host_cache(launch: str, ratio: float | None) -> None:
    assert resolved(launch, "hicache_ratio") == (ratio,)


def test_fa3_does_not_decode_beside_the_copy_kernel_before_0_5_14() -> None:
    launch = f"sglang=0.5.12 -- {HOST}"
    assert resolved(launch, "attention_backend", "decode_attention_backend") == ("fa3", "flashinfer")
    assert resolved(f"sglang=0.5.14 -- {HOST}", "decode_attention_backend") == (None,)


BUFFER = f"{HOST} --hicache-host-memory-mode buffer_only"


@pytest.mark.parametrize(
    ("launch", "rule"),
    [
        (BUFFER, "staging-buffer-without-storage"),
        ("--disaggregation-mode decode --hicache-host-memory-mode buffer_only --hicache-storage-backend file",
         "staging-buffer-on-decode-server"),
        (f"sglang=0.5.21 -- {BUFFER} --hicache-storage-backend file --hicache-write-policy write_back",
         "staging-buffer-with-write-back"),
        (f"{HOST} --enable-unified-cache-external-linker", "linker-with-hierarchical-cache"),
        ("--enable-unified-cache-external-linker --hicache-storage-backend file", "linker-with-storage-backend"),
        ("--enable-unified-cache-external-linker --disable-radix-cache", "linker-without-standard-radix-cache"),
        (f"{HOST} --tp-size 4 --dcp-size 2", "shared-host-cache-without-mla"),
        ("model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse", "hisparse-with-radix-cache"),
        ("--enable-hisparse --disable-radix-cache", "hisparse-on-dense-attention"),
    ],
)  # fmt: skip
def test_refusals(launch: str, rule: str) -> None:
    assert rules(launch)[:1] == [rule]


def test_write_back_is_replaced_where_it_used_to_be_refused() -> None:
    launch = f"{BUFFER} --hicache-storage-backend file --hicache-write-policy write_back"
    assert resolved(launch, "hicache_write_policy") == ("write_through",)
