"""Attention backends and caches that do not go together: what is refused with the weights loaded, beside the nearest launch that runs."""

from __future__ import annotations

import pytest

from tests.resolution.launching import rules

KIMI = "gpu=b200 model=kimi-linear-48b -- --tp-size 2"
BOUND = """--json-model-override-args '{"linear_attn_config": {"kda_layers": [1, 2, 3], "gate_lower_bound": -5.0}}'"""
NGRAM = "--mamba-ssm-dtype bfloat16 --speculative-algorithm NGRAM --speculative-ngram-max-bfs-breadth 1"
FLASHMLA = "gpu=h100 model=deepseek-v3 -- --tp-size 16 --nnodes 2 --dist-init-addr a:5000 --attention-backend flashmla"
MINICPM = """--attention-backend minicpm_flashattn --json-model-override-args '{"sparse_config": {"kernel_size": 32, "kernel_stride": 16}}'"""
M3 = (
    """model=qwen3-8b -- --tp-size 8 --enable-hisparse --disable-radix-cache --json-model-override-args '{"architectures": """
    """["MiniMaxM3SparseForCausalLM"], "sparse_attention_config": {"sparse_topk_blocks": 16, "sparse_block_size": 128}}'"""
)
WHISPER = """gpu=xpu -- --attention-backend intel_xpu --json-model-override-args '{"architectures": ["WhisperForConditionalGeneration"]}'"""
LOOPS = (
    """gpu=xpu -- --tp-size 16 --nnodes 2 --dist-init-addr a:5000 --attention-backend intel_xpu --json-model-override-args '{"architectures": """
    """["IQuestLoopCoderForCausalLM"]}'"""
)


@pytest.mark.parametrize(
    ("rule", "launch"),
    [
        ("fp4-cache-on-flashinfer", "--kv-cache-dtype fp4_mx_block16 --prefill-attention-backend triton --decode-attention-backend flashinfer"),
        ("fp4-cache-on-flashinfer", "--kv-cache-dtype fp4_mx_block16 --prefill-attention-backend flashinfer --decode-attention-backend triton"),
        (
            "fp4-cache-on-flashinfer",
            "sglang=0.5.19 gpu=b200 -- --kv-cache-dtype nvfp4 --prefill-attention-backend triton --decode-attention-backend flashinfer",
        ),
        ("fp8-cache-in-shared-context-on-flashmla", f"{FLASHMLA} --dcp-size 2 --kv-cache-dtype fp8_e4m3"),
        ("states-that-cutedsl-does-not-give-out", f"{KIMI} --linear-attn-prefill-backend cutedsl"),
        ("bounded-gates-on-other-kernel", f"{KIMI} --linear-attn-verify-backend flashinfer {NGRAM} {BOUND}"),
        ("pages-of-sparse-minicpm", f"{MINICPM} --page-size 64"),
        ("flex-attention-of-encoder", "model=bert -- --attention-backend flex_attention"),
        ("flex-attention-of-encoder", "sglang=0.5.9 model=bert -- --attention-backend flex_attention"),
        ("hisparse-options-out-of-range", f"""{M3} --hisparse-config '{{"top_k": 512, "device_buffer_size": 1024}}'"""),
        ("option-of-intel-attention", f"{WHISPER} --cuda-graph-backend-decode full"),
        ("option-of-intel-attention", f"{LOOPS} --dcp-size 2"),
    ],
)  # fmt: skip
def test_is_refused(rule: str, launch: str) -> None:
    assert rule in rules(launch)


@pytest.mark.parametrize(
    "launch",
    [
        "--kv-cache-dtype fp4_mx_block16 --attention-backend triton",
        "--kv-cache-dtype fp8_e4m3 --prefill-attention-backend triton --decode-attention-backend flashinfer",
        "gpu=b200 -- --kv-cache-dtype nvfp4 --prefill-attention-backend flashinfer",
        f"{FLASHMLA} --dcp-size 2",
        f"{FLASHMLA} --kv-cache-dtype fp8_e4m3",
        f"{KIMI} --linear-attn-prefill-backend cutedsl --disable-radix-cache",
        f"{KIMI} --linear-attn-prefill-backend cutedsl {BOUND}",
        f"{KIMI} --linear-attn-verify-backend flashinfer {NGRAM}",
        MINICPM,
        "model=bert -- --attention-backend triton",
        "model=qwen3-8b -- --attention-backend flex_attention",
    ],
)
def test_runs(launch: str) -> None:
    assert rules(launch) == []


@pytest.mark.parametrize("launch", [M3, WHISPER, LOOPS])
def test_says_nothing_of_it(launch: str) -> None:
    assert not {"hisparse-options-out-of-range", "option-of-intel-attention"} & {*rules(launch)}
