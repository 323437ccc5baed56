"""Which attention backend and page size a launch gets, and what backends, determinism and scoring refuse."""

from __future__ import annotations

import pytest

from tests.resolution.launching import answer, resolved, rules

BACKENDS = ("attention_backend", "page_size")
LATENT = "model=deepseek-v3 -- --tp-size 8"


@pytest.mark.parametrize(
    ("launch", "backend", "page"),
    [
        ("--port 1", "fa3", 1),
        ("gpu=b200 -- --port 1", "trtllm_mha", 64),
        ("gpu=a100 -- --port 1", "flashinfer", 1),
        ("gpu=l40s -- --port 1", "flashinfer", 1),
        ("gpu=rtxpro6000 -- --port 1", "flashinfer", 1),
        ("gpu=mi300x -- --port 1", "aiter", 1),
        ("gpu=cpu -- --device cpu", "torch_native", 1),
        ("sglang=0.5.9 -- --port 1", "fa3", 1),
        (LATENT, "fa3", 1),
        (f"gpu=b200 {LATENT}", "trtllm_mla", 64),
        (f"gpu=mi300x {LATENT}", "aiter", 1),
        (f"{LATENT} --attention-backend flashmla", "flashmla", 64),
        (f"sglang=0.5.19 gpu=b200 {LATENT} --attention-backend cutlass_mla", "cutlass_mla", 128),
        ("sglang=0.5.23 gpu=b200 model=deepseek-v3 -- --attention-backend tokenspeed_mla", "cutedsl_mla", 64),
        ("--enable-deterministic-inference", "fa3", 1),
        ("gpu=b200 -- --enable-deterministic-inference", "flashinfer", 1),
        ("--kv-cache-dtype fp8_e5m2 --attention-backend fa3", "triton", 1),
        ("--kv-cache-dtype fp8_e4m3 --attention-backend fa3", "fa3", 1),
        ("--page-size 16", "fa3", 16),
    ],
)
def test_backend(launch: str, backend: str, page: int) -> None:
    assert resolved(launch, *BACKENDS) == (backend, page)


def test_fp8_e5m2_moves_fa3_to_triton_with_a_word_about_it() -> None:
    said = answer("--kv-cache-dtype fp8_e5m2 --attention-backend fa3")
    assert said.outcome == "accepted"
    assert [s.merged.severity for s in said.findings] == ["information"]


@pytest.mark.parametrize(
    ("launch", "rule"),
    [
        ("--enable-deterministic-inference --attention-backend flex_attention", "nondeterministic-attention-backend"),
        ("gpu=b200 -- --enable-deterministic-inference --attention-backend trtllm_mha",
         "nondeterministic-attention-backend"),
        (f"{LATENT} --enable-deterministic-inference --attention-backend flashinfer",
         "nondeterministic-latent-attention"),
        (f"{LATENT} --attention-backend trtllm_mla", "trtllm-mla-off-blackwell"),
        (f"gpu=b200 {LATENT} --attention-backend trtllm_mla --kv-cache-dtype fp8_e5m2", "trtllm-mla-kv-cache-dtype"),
        ("sglang=0.5.22 -- --attention-backend tokenspeed_mla --kv-cache-dtype fp8_e4m3",
         "tokenspeed-mla-off-blackwell"),
        ("-- --attention-backend tokenspeed_mla", "cutedsl-mla-off-sm100"),
        ("gpu=a100 -- --attention-backend trtllm_mha", "trtllm-mha-prefill-hardware"),
        ("sglang=0.5.9 -- --attention-backend trtllm_mha", "trtllm-mha-off-sm100"),
        ("sglang=0.5.7 gpu=b200 -- --attention-backend fa4", "fa4-for-decoding"),
        ("--enable-mis", "scoring-without-flashinfer"),
    ],
)  # fmt: skip
def test_refusals(launch: str, rule: str) -> None:
    assert rules(launch.removeprefix("-- "))[:1] == [rule]


@pytest.mark.parametrize(
    "launch",
    [
        "sglang=0.5.8.post1 gpu=b200 -- --prefill-attention-backend fa4",
        "gpu=b200 -- --attention-backend fa4",
        "--attention-backend flashinfer --enable-mis --disable-radix-cache --chunked-prefill-size -1",
        f"gpu=b200 {LATENT} --attention-backend trtllm_mla --kv-cache-dtype fp8_e4m3",
        "gpu=b200 -- --enable-deterministic-inference --attention-backend flashinfer",
    ],
)
def test_accepted(launch: str) -> None:
    assert rules(launch) == []


@pytest.mark.parametrize(
    ("launch", "rule"),
    [
        ("gpu=b200 -- --attention-backend trtllm_mla", "latent-backend-for-plain-attention"),
        (f"gpu=b200 {LATENT} --attention-backend trtllm_mha", "plain-backend-for-latent-attention"),
        ("gpu=b200 -- --attention-backend fa3", "fa3-off-hopper"),
        ("gpu=a100 -- --attention-backend fa3", None),
        ("gpu=mi300x -- --attention-backend flashinfer", "attention-backend-of-another-vendor"),
        ("gpu=b200 -- --attention-backend hpc_ops", "hpc-ops-launch"),
        ("gpu=b200 model=qwen3-next-80b -- --tp-size 2 --attention-backend torch_native",
         "hybrid-gdn-backend-on-blackwell"),
    ],
)  # fmt: skip
def test_refusals_with_the_weights_loaded(launch: str, rule: str | None) -> None:
    said = answer(launch)
    assert said.outcome == "accepted"
    assert rules(launch) == [rule] if rule else rules(launch) == []
