"""What a launch comes to for the sake of its model: the families' defaults, by device and release, and what they refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.resolution.launching import answer, resolved, rules


@pytest.mark.parametrize(
    ("launch", "fields"),
    [
        # latent attention
        ("model=deepseek-v3 -- --tp-size 8", {"attention_backend": "fa3", "page_size": 1, "quantization": None}),
        (
            "gpu=b200 model=deepseek-v3 -- --tp-size 8",
            {
                "attention_backend": "trtllm_mla",
                "page_size": 64,
                "quantization": "fp8",
                "moe_runner_backend": "flashinfer_trtllm",
            },
        ),
        ("gpu=a100 model=deepseek-v3 -- --tp-size 8", {"attention_backend": "triton", "moe_runner_backend": "auto"}),
        ("gpu=b200 model=deepseek-v3 -- --tp-size 8 --moe-runner-backend triton", {"moe_runner_backend": "triton"}),
        # sparse attention
        (
            "model=deepseek-v3.2 -- --tp-size 8",
            {
                "attention_backend": "dsa",
                "page_size": 64,
                "kv_cache_dtype": "bfloat16",
                "dsa_prefill_backend": "flashmla_sparse",
                "dsa_decode_backend": "fa3",
            },
        ),
        (
            "gpu=b200 model=deepseek-v3.2 -- --tp-size 8",
            {"kv_cache_dtype": "fp8_e4m3", "dsa_prefill_backend": "trtllm", "dsa_decode_backend": "trtllm"},
        ),
        (
            "gpu=mi300x model=deepseek-v3.2 -- --tp-size 8",
            {"page_size": 1, "dsa_prefill_backend": "triton", "dsa_decode_backend": "triton"},
        ),
        (
            "model=deepseek-v3.2 -- --tp-size 8 --kv-cache-dtype fp8_e4m3",
            {"kv_cache_dtype": "fp8_e4m3", "dsa_decode_backend": "flashmla_kv"},
        ),
        (
            "sglang=0.5.9 model=deepseek-v3.2 -- --tp-size 8",
            {"attention_backend": "nsa", "nsa_prefill_backend": "flashmla_sparse", "nsa_decode_backend": "fa3"},
        ),
        # attention sinks
        ("model=gpt-oss-120b -- ", {"attention_backend": "fa3", "dtype": "bfloat16", "moe_runner_backend": "auto"}),
        (
            "gpu=b200 model=gpt-oss-120b -- ",
            {"attention_backend": "trtllm_mha", "moe_runner_backend": "flashinfer_mxfp4"},
        ),
        ("gpu=a100 model=gpt-oss-120b -- ", {"attention_backend": "triton"}),
        ("model=gpt-oss-120b -- --attention-backend triton", {"attention_backend": "triton"}),
        # experts
        ("gpu=b200 model=qwen3-30b-a3b -- ", {"moe_runner_backend": "flashinfer_trtllm", "quantization": None}),
        ("gpu=b200 model=qwen3-235b-fp8 -- --tp-size 8", {"moe_runner_backend": "flashinfer_trtllm", "quantization": "fp8"}),
        ("gpu=b200 model=glm-4.5-air -- --tp-size 8", {"moe_runner_backend": "flashinfer_trtllm"}),
        ("gpu=b200 model=mixtral-8x7b -- ", {"moe_runner_backend": "auto"}),
        # recurrent states
        ("model=qwen3-next-80b -- --tp-size 8", {"mamba_radix_cache_strategy": "extra_buffer", "page_size": 1}),
        ("gpu=b200 model=qwen3-next-80b -- --tp-size 8", {"attention_backend": "triton"}),
        ("model=llama-3.1-8b -- ", {"mamba_radix_cache_strategy": "auto"}),
        ("model=nemotron-h-8b -- ", {"moe_runner_backend": "flashinfer_cutlass", "mamba_radix_cache_strategy": "extra_buffer"}),
        ("model=kimi-linear-48b -- --tp-size 8", {"attention_backend": "fa3", "mamba_radix_cache_strategy": "extra_buffer"}),
        ("gpu=a100 model=ring-2.5-1t -- --tp-size 8", {"attention_backend": "triton"}),
        (
            "sglang=0.5.12 model=qwen3-next-80b -- --tp-size 8",
            {"mamba_scheduler_strategy": "no_buffer", "disable_overlap_schedule": True},
        ),
        # nothing for the model's sake
        ("model=llama-3.1-8b -- ", {"attention_backend": "fa3", "moe_runner_backend": "auto", "quantization": None}),
        ("model=mistral-7b -- ", {"attention_backend": "fa3", "swa_full_tokens_ratio": 0.8, "mamba_full_memory_ratio": 0.9}),
    ],
)  # fmt: skip
def test_defaults_of_families(launch: str, fields: dict[str, Any]) -> None:
    assert answer(launch).outcome == "accepted"
    assert dict(zip(fields, resolved(launch, *fields), strict=True)) == fields


@pytest.mark.parametrize(
    ("launch", "rule"),
    [
        ("model=gemma-2-9b -- --context-length 32768", "context-length-beyond-model"),
        ("model=deepseek-v3 -- --tp-size 8 --quantization awq", "quantization-against-checkpoint"),
        ("gpu=mi300x model=gpt-oss-120b -- --tp-size 8", "quantization-not-on-this-device"),
        ("gpu=mi300x -- --quantization w8a8_int8", "quantization-not-on-rocm"),
        ("model=gpt-oss-120b -- --attention-backend flashinfer", "gpt-oss-on-sinkless-backend"),
        ("model=gpt-oss-120b -- --moe-runner-backend triton_kernel --tp-size 2 --ep-size 2", "triton-kernel-experts-in-parallel"),
        ("model=deepseek-v3.2 -- --tp-size 8 --kv-cache-dtype fp8_e5m2", "sparse-attention-cache-dtype-unsupported"),
        ("model=qwen3-next-80b -- --mamba-radix-cache-strategy no_buffer", "overlap-schedule-without-extra-buffer"),
        ("sglang=0.5.18 model=nemotron-h-8b -- --attention-backend triton", "nemotron-on-triton-attention"),
        ("--enable-cp-decode-attn-tp", "cp-decode-attention-tp-of-other-model"),
        ("--json-model-override-args {a:1}", "model-overrides-not-json"),
        ("--json-model-override-args [1]", "model-overrides-not-an-object"),
    ],
)  # fmt: skip
def test_refusals(launch: str, rule: str) -> None:
    assert answer(launch).outcome == "refused"
    assert rules(launch)[0] == rule


@pytest.mark.parametrize(
    "launch",
    [
        "model=gemma-2-9b SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 -- --context-length 32768",
        "model=deepseek-v3 -- --tp-size 8 --quantization fp8",
        "gpu=mi355x model=gpt-oss-120b -- --tp-size 8",
        "model=gpt-oss-120b -- --moe-runner-backend triton_kernel --tp-size 2",
        "model=qwen3-next-80b -- --mamba-radix-cache-strategy no_buffer --disable-overlap-schedule",
        "model=nemotron-h-8b -- --attention-backend triton",
        "sglang=0.5.18 model=nemotron-h-8b -- --attention-backend flashinfer",
    ],
)
def test_close_to_a_refusal(launch: str) -> None:
    assert answer(launch).outcome == "accepted"


def test_overrides_change_which_family_it_is() -> None:
    overrides = json.dumps({"architectures": ["Olmo2ForCausalLM"]})
    assert rules(f"--attention-backend flashinfer --json-model-override-args '{overrides}'")[:1] == [
        "olmo-on-flashinfer"
    ]
    assert not rules("--attention-backend flashinfer")


def test_overrides_change_sizes() -> None:
    longer = "--context-length 200000"
    assert rules(f"{longer}") == ["context-length-beyond-model"]
    assert not rules(f"""{longer} --json-model-override-args '{{"max_position_embeddings": 262144}}'""")


@pytest.mark.parametrize("release", ["0.5.12", "0.5.13.post1", "0.5.14", "0.5.15", "0.5.23"])
@pytest.mark.parametrize("model", ["qwen3-30b-a3b", "deepseek-v3", "gpt-oss-120b"])
def test_deterministic_inference_rules_out_the_fused_all_reduce(release: str, model: str) -> None:
    launch = f"sglang={release} gpu=h100 model={model} -- --tp-size 8 --attention-backend fa3 --enable-deterministic-inference"
    fused = "enable_flashinfer_allreduce_fusion" if release < "0.5.14" else "flashinfer_allreduce_fusion_backend"
    assert resolved(launch, "enforce_disable_flashinfer_allreduce_fusion", fused) in ((True, False), (True, None))
