"""What dies with the weights loaded, row by row: launches that are refused, in every release that has the refusal, and near misses that run."""

from __future__ import annotations

import pytest

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from tests.resolution.launching import answer

EAGLE3 = "--speculative-algorithm EAGLE3 --speculative-draft-model-path {models}/eagle3-draft"
TREE = "--speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8"
CHAIN = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
NVFP4 = """--json-model-override-args '{"quantization_config": {"quant_method": "modelopt_fp4", "quant_algo": "NVFP4", "group_size": 16}}'"""
AWQ = """--json-model-override-args '{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true}}'"""
PERCHANNEL = (
    """--json-model-override-args '{"n_routed_experts": 160, "moe_intermediate_size": 1408, "quantization_config": {"quant_method": """
    """"compressed-tensors", "format": "float-quantized", "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, """
    """"type": "float", "strategy": "channel"}, "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": true}}}}}'"""
)
ALL = [r for r in releases() if r >= Release.parse("0.5.6")]

GROK = '{"architectures": ["Grok1ForCausalLM"], '

GPTQ = """--json-model-override-args '{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": false, "sym": true}}'"""

Since = str | tuple[str, str]
"""The first release that refuses a launch, or that and the first one that does so no more."""

REFUSED: list[tuple[str, str, Since]] = [
    ("--model-path deepseek-ai/DeepSeek-V4-Flash --tp-size 8", "model-newer-than-release", ("0.5.6", "0.5.11")),
    # loaders
    ("""--load-format dummy --model-loader-extra-config '{"num_threads": 8}'""", "loader-option-of-another-format", "0.5.6"),
    ("--model-loader-extra-config num_threads=8", "loader-options-not-json", "0.5.6"),
    ("--weight-loader-prefetch-checkpoints --weight-loader-prefetch-num-threads 0", "prefetch-without-threads", "0.5.15"),
    ("--load-format layered", "load-format-of-other-weights", "0.5.6"),
    ("model=qwen3-30b-a3b -- --load-format bitsandbytes", "load-format-of-other-weights", "0.5.6"),
    ("model=qwen3-8b -- --load-format flash_rl --speculative-algorithm NGRAM --json-model-override-args "
     """'{"architectures": ["LlamaForCausalLM"]}'""", "load-format-of-other-weights", "0.5.23"),
    ("--model-path Qwen/Qwen2.5-VL-7B-Instruct --mm-feature-transport cuda_vmm", "media-transport-of-other-class", "0.5.18"),
    ("model=qwen3-30b-a3b -- --kv-cache-dtype fp8_e4m3 --quantization-param-path /s.json", "cache-scales-of-other-class", "0.5.6"),
    ("model=deepseek-v3 -- --tp-size 8 --enable-pdmux --chunked-prefill-size -1 --disable-overlap-schedule", "multiplexing-of-other-class", "0.5.6"),
    # vision towers
    ("model=qwen3-vl -- --tp-size 32 --nnodes 4 --dist-init-addr 10.0.0.1:5000", "vision-heads-not-divisible-by-ranks", "0.5.6"),
    # single model classes
    ("gpu=b200 model=qwen3.5-moe -- --tp-size 4 --flashinfer-allreduce-fusion-backend cutedsl --moe-runner-backend triton",
     "option-this-model-refuses", "0.5.21"),
    ("model=ring-2.5-1t -- --tp-size 16 --nnodes 2 --dist-init-addr 10.0.0.1:5000", "option-this-model-refuses", "0.5.9"),
    ("""model=none -- --model-path Qwen/Qwen3-30B-A3B --tp-size 4 --ep-size 4 --ep-num-redundant-experts 4 """
     """--json-model-override-args '{"architectures": ["BailingMoeV2ForCausalLM"]}'""", "copies-of-experts-that-stay", "0.5.6"),
    # more runners of experts
    (f"model=qwen3-30b-a3b -- --tp-size 2 --moe-runner-backend triton {AWQ}", "runner-for-four-bit-experts", "0.5.6.post2"),
    (f"model=qwen3-30b-a3b -- --tp-size 2 --moe-runner-backend triton {GPTQ}", "runner-for-four-bit-experts", ("0.5.6.post2", "0.5.13")),
    ("model=qwen3-30b-a3b -- --tp-size 2 --quantization humming --moe-runner-backend triton", "runner-of-another-method", "0.5.16"),
    (f"model=llama-2-7b -- --tp-size 4 {GPTQ}", "mlp-width-not-divisible-by-quantization-group", "0.5.6"),
    (f"model=qwen3-30b-a3b -- --tp-size 2 {AWQ.replace('{', GROK, 1)}", "runner-without-activation", "0.5.6"),
    # sparse and hybrid attention
    ("gpu=b200 model=deepseek-v3.2 -- --tp-size 2 --dsa-prefill-backend triton_sparse_mla", "triton-sparse-prefill-unfit", "0.5.22"),
    ("gpu=b200 -- --model-path deepseek-ai/DeepSeek-V4-Flash --tp-size 8 --dsv4-prefill-backend flashmla_sparse_q8", "v4-q8-prefill-off-hopper", "0.5.19"),
    ("gpu=rtxpro6000 model=deepseek-v3 -- --tp-size 8 --attention-backend trtllm_mla", "trtllm-mla-prefill-on-sm120", "0.5.6"),
    ("model=kimi-linear-48b -- --tp-size 2 --enable-mis --attention-backend flashinfer", "scoring-on-hybrid-model", "0.5.20"),
    # capability and data type of a quantization method
    ("gpu=a100 -- --quantization w8a8_fp8", "quantization-method-above-gpu", "0.5.6"),
    ("gpu=a100 -- --quantization modelopt_fp8", "quantization-method-above-gpu", "0.5.6"),
    (f"gpu=h100 -- --tp-size 1 {NVFP4}", "quantization-method-above-gpu", ("0.5.6", "0.5.13")),
    (f"gpu=a100 -- --quantization awq {AWQ}", "data-type-of-quantization-method", "0.5.6"),
    # widths and blocks
    ("model=qwen3-235b-fp8 -- --tp-size 8", "expert-width-not-divisible-by-quantization-block", "0.5.6"),
    ("model=minimax-m2 -- --tp-size 8", "expert-width-not-divisible-by-quantization-block", "0.5.6"),
    ("model=deepseek-v3 -- --tp-size 32 --ep-size 32 --nnodes 4 --dist-init-addr 10.0.0.1:5000", "mlp-width-not-divisible-by-quantization-block", "0.5.6"),
    (f"model=llama-2-7b -- --tp-size 4 {AWQ}", "mlp-width-not-divisible-by-quantization-group", "0.5.6"),
    # heads
    ("model=qwen2.5-7b -- --tp-size 8", "attention-heads-not-divisible-by-ranks", "0.5.6"),
    ("model=llama-3.1-8b -- --tp-size 3", "attention-heads-not-divisible-by-ranks", "0.5.6"),
    ("model=qwen3-8b -- --tp-size 6", "attention-heads-not-divisible-by-ranks", "0.5.6"),
    ("model=nemotron-h-8b -- --tp-size 16 --nnodes 2 --dist-init-addr 10.0.0.1:5000", "mamba-heads-not-divisible-by-ranks", "0.5.6"),
    ("model=none -- --model-path openai/whisper-large-v3 --tp-size 8", "attention-heads-not-divisible-by-ranks", "0.5.10"),
    # runners of experts
    ("SGLANG_NPU_FUSED_MOE_MODE=1 model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend ascend_fuseep", "ascend-exchange-on-gpu", "0.5.6"),
    (f"gpu=h100 model=qwen3-30b-a3b -- --tp-size 2 --moe-runner-backend triton {NVFP4}", "nvfp4-experts-before-blackwell", "0.5.13"),
    ("gpu=h100 model=gpt-oss-120b -- --tp-size 2 --moe-runner-backend cutlass", "runner-without-mxfp4-experts", "0.5.11"),
    ("gpu=a100 model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend cutlass", "cutlass-for-fp8-experts", "0.5.6"),
    (
        "gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend deepep --moe-runner-backend flashinfer_trtllm",
        "runner-without-exchange",
        "0.5.15",
    ),
    ("gpu=b200 model=qwen3-235b-fp8 -- --tp-size 4 --moe-a2a-backend deepep --moe-runner-backend flashinfer_trtllm", "runner-without-exchange", "0.5.8"),
    ("SGLANG_ENABLE_JIT_DEEPGEMM=0 model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep", "low-latency-exchange-without-deepgemm", "0.5.6"),
    ("model=qwen3-30b-a3b -- --tp-size 2 --moe-runner-backend hpc_ops", "hpc-ops-without-fp8-experts", "0.5.17"),
    # attention
    (f"model=gpt-oss-120b -- --tp-size 2 {EAGLE3} {TREE} --attention-backend fa3 --page-size 64", "draft-tree-over-sliding-window-pages", "0.5.6"),
    ("model=deepseek-v3 -- --tp-size 8 --attention-backend dsa", "sparse-backend-for-dense-model", "0.5.13"),
    ("model=gemma-2-9b -- --tp-size 8 --dcp-size 2 --attention-backend triton", "shared-context-on-triton-with-window", "0.5.15"),
    ("gpu=b200 -- --model-path Qwen/Qwen2.5-VL-7B-Instruct --mm-attention-backend fa3", "vision-backend-off-its-hardware", "0.5.6"),
    # caches, schedulers, transfers
    ("--enable-unified-memory", "unified-memory-of-plain-model", "0.5.16"),
    ("model=deepseek-v3 -- --tp-size 8 --enable-hierarchical-cache --hicache-mem-layout page_head", "hicache-layout-of-another-attention", "0.5.6"),
    ("--enable-deterministic-inference --attention-backend flashinfer --chunked-prefill-size 2048", "chunk-smaller-than-deterministic-tile", "0.5.22"),
    ("SGLANG_MEMORY_SAVER_CUDA_GRAPH=1 -- --enable-memory-saver", "memory-saver-with-breakable-graph", "0.5.15"),
    ("SGLANG_DISAGGREGATION_THREAD_POOL_SIZE=2 -- --disaggregation-mode prefill", "fewer-transfer-threads-than-queues", "0.5.6"),
    ("--schedule-policy shortest-prefill-first --disable-radix-cache", "shortest-prefill-first-without-prefix-cache", "0.5.21"),
    # adapters' own files
    ("--enable-lora --lora-paths a={models}/dora", "adapter-file-not-served", "0.5.11"),
    ("--enable-lora --lora-paths a={models}/pattern", "adapter-file-not-served", "0.5.6"),
    # groups of processes
    ("SGLANG_PP_LAYER_PARTITION=10,10 -- --pp-size 2", "partition-of-other-stages", "0.5.6"),
    ("--tp-size 4 --dcp-size 3", "context-ranks-not-dividing-tp", "0.5.15"),
    ("--api-key secret --tokenizer-worker-num 4", "api-key-with-tokenizer-workers", "0.5.6"),
    # small floats
    ("gpu=a100 model=qwen3-235b-fp8 -- --tp-size 4", "fp8-experts-before-ada", "0.5.6"),
    ("model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend triton_kernel", "fp8-experts-on-other-runner", "0.5.6"),
    ("model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend flashinfer_cutlass", "fp8-experts-on-other-runner", ("0.5.6", "0.5.20")),
    (
        "gpu=b200 -- --model-path deepseek-ai/DeepSeek-V4-Flash --tp-size 4 --moe-runner-backend flashinfer_trtllm",
        "fp4-experts-on-fp8-kernels",
        "0.5.12",
    ),
    ("model=deepseek-v3 -- --tp-size 8 --enable-two-batch-overlap", "two-batches-without-exchange", ("0.5.6", "0.5.7")),
    # sparse attention, states, storage
    ("gpu=h100 model=deepseek-v3.2 -- --tp-size 8 --dsa-paged-mqa-logits-backend cutedsl", "paged-logits-off-their-hardware", "0.5.15"),
    (
        "model=qwen3-next-80b -- --tp-size 4 --mamba-radix-cache-strategy extra_buffer_lazy --disable-overlap-schedule",
        "lazy-states-without-overlap",
        "0.5.15",
    ),
    ("gpu=npu model=qwen3-next-80b -- --tp-size 8 --page-size 64", "pages-of-recurrent-states", ("0.5.6", "0.5.11")),
    ("gpu=npu model=qwen3-next-80b -- --tp-size 8", "pages-of-recurrent-states", ("0.5.6.post1", "0.5.11")),
    ("--enable-hierarchical-cache --hicache-storage-backend dynamic", "storage-options-unusable", "0.5.6"),
    # memory
    ("--mem-fraction-static 1.5", "memory-fraction-no-gpu-has", "0.5.6"),
    ("--context-length -5", "negative-context-length", "0.5.6"),
    ("gpu=l40s model=llama-3.3-70b -- --tp-size 2", "weights-above-gpu-memory", "0.5.6"),
]  # fmt: skip

RUNS = [
    # near misses of loaders, runners, single classes and sparse attention
    """--load-format auto --model-loader-extra-config '{"enable_multithread_load": true, "num_threads": 8}'""",
    "--weight-loader-prefetch-checkpoints --weight-loader-prefetch-num-threads 1",
    f"model=qwen3-30b-a3b -- --tp-size 8 --moe-runner-backend triton {AWQ}",  # 96 wide, which Marlin does not take
    f"model=qwen3-30b-a3b -- --tp-size 2 {AWQ}",
    f"model=qwen3-30b-a3b -- --tp-size 2 --json-model-override-args '{GROK[:-2]}}}'",
    f"model=llama-2-7b -- --tp-size 2 {GPTQ}",
    f"model=llama-2-7b -- --tp-size 4 {GPTQ.replace('false', 'true')}",
    "gpu=b200 model=deepseek-v3.2 -- --tp-size 4 --dsa-prefill-backend triton_sparse_mla",
    "gpu=rtxpro6000 model=deepseek-v3 -- --tp-size 8 --prefill-attention-backend flashinfer --decode-attention-backend trtllm_mla",
    "gpu=h100 -- --quantization w8a8_fp8",
    "gpu=a100 -- --quantization fp8",
    f"gpu=a100 -- {AWQ}",
    f"gpu=a100 -- --quantization awq --dtype half {AWQ}",
    "model=qwen3-235b-fp8 -- --tp-size 8 --ep-size 8",
    "model=qwen3-235b-fp8 -- --tp-size 4",
    "model=minimax-m2 -- --tp-size 4",
    f"model=glm-4.5-air -- --tp-size 8 {PERCHANNEL}",
    "model=deepseek-v3 -- --tp-size 16 --nnodes 2 --dist-init-addr 10.0.0.1:5000",
    "model=deepseek-v3 -- --tp-size 8 --ep-size 8",
    f"model=llama-2-7b -- --tp-size 2 {AWQ}",
    "model=qwen2.5-7b -- --tp-size 4",
    "model=qwen3-8b -- --tp-size 6 --dp-size 3 --enable-dp-attention",
    "model=nemotron-h-8b -- --tp-size 8",
    "model=none -- --model-path openai/whisper-large-v3 --tp-size 4",
    "gpu=npu model=qwen3-next-80b -- --tp-size 8 --disable-radix-cache",
    "SGLANG_NPU_FUSED_MOE_MODE=1 gpu=npu model=qwen3-30b-a3b -- --tp-size 8 --moe-a2a-backend ascend_fuseep",
    "gpu=h100 model=gpt-oss-120b -- --tp-size 2 --moe-runner-backend triton_kernel",
    "gpu=h100 model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend cutlass",
    "model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep",
    "SGLANG_ENABLE_JIT_DEEPGEMM=0 model=deepseek-v3 -- --tp-size 8",
    f"model=gpt-oss-120b -- --tp-size 2 {EAGLE3} {TREE} --attention-backend fa3 --page-size 1",
    f"model=gpt-oss-120b -- --tp-size 2 {EAGLE3} {CHAIN} --attention-backend fa3 --page-size 64",
    "gpu=h100 -- --model-path Qwen/Qwen2.5-VL-7B-Instruct --mm-attention-backend fa3",
    "gpu=b200 -- --model-path Qwen/Qwen2.5-VL-7B-Instruct --mm-attention-backend triton_attn",
    "model=deepseek-v3 -- --tp-size 8 --enable-hierarchical-cache --hicache-mem-layout page_first",
    "--enable-hierarchical-cache --hicache-mem-layout page_first_direct",
    "--enable-deterministic-inference --attention-backend flashinfer --chunked-prefill-size 4096",
    "--enable-memory-saver",
    "SGLANG_DISAGGREGATION_THREAD_POOL_SIZE=8 -- --disaggregation-mode prefill",
    "--mem-fraction-static 0.9",
    "--context-length 4096",
    "SGLANG_PP_LAYER_PARTITION=14,18 -- --pp-size 2",
    "--api-key secret",
    "gpu=a100 -- --quantization fp8",
    "gpu=l40s model=qwen3-30b-a3b -- --tp-size 2 --quantization fp8",
    "gpu=h100 model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend triton",
    "gpu=a100 model=gpt-oss-120b -- --tp-size 4",
    "model=deepseek-v3 -- --tp-size 8 --moe-a2a-backend deepep --enable-two-batch-overlap",
]  # fmt: skip


def late_errors(launch: str) -> list[str]:
    said = answer(launch).findings
    return [s.merged.found.rule.name for s in said if s.merged.found.rule.late and s.merged.severity == "error"]


def in_release(launch: str, release: object) -> str:
    return f"sglang={release} " + (launch if " -- " in launch else f"-- {launch}")


def refusing(since: Since) -> list[Release]:
    first, end = (since, "") if isinstance(since, str) else since
    return [r for r in ALL if r >= Release.parse(first) and (not end or r < Release.parse(end))]


@pytest.mark.parametrize(("launch", "rule", "since"), REFUSED)
def test_is_told_in_every_release_that_refuses_it(launch: str, rule: str, since: Since) -> None:
    assert [str(r) for r in refusing(since) if rule not in late_errors(in_release(launch, r))] == []


@pytest.mark.parametrize(("launch", "rule", "since"), REFUSED)
def test_is_told_in_no_other_release(launch: str, rule: str, since: Since) -> None:
    others = [r for r in ALL if r not in refusing(since)]
    assert [str(r) for r in others if rule in late_errors(in_release(launch, r))] == []


@pytest.mark.parametrize("launch", RUNS)
def test_near_miss_is_silent_in_every_release(launch: str) -> None:
    assert {str(r): said for r in ALL if (said := late_errors(in_release(launch, r)))} == {}


@pytest.mark.parametrize(
    "launch",
    [
        "sglang=0.5.8 -- --model-path zai-org/GLM-5-FP8 --tp-size 16 --nnodes 2 --dist-init-addr 10.0.0.1:5000",  # builds between two releases bear the name of the first
        "sglang=0.5.9 -- --model-path deepseek-ai/DeepSeek-V4-Flash --tp-size 8 --trust-remote-code",
        "sglang=0.5.12 -- --model-path deepseek-ai/DeepSeek-V4-Flash --tp-size 8",
        "sglang=0.5.23 gpu=h200 -- --model-path deepseek-ai/DeepSeek-V4-Flash --tp-size 8 --dsv4-prefill-backend flashmla_sparse_q8",
        "sglang=0.5.23 model=ring-2.5-1t -- --tp-size 8",
        "sglang=0.5.23 model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend flashinfer_cutlass",  # sent to Triton since 0.5.21
        "sglang=0.5.23 model=qwen3-235b-fp8 -- --tp-size 4 --moe-a2a-backend deepep --moe-runner-backend flashinfer_cutlass",
        "sglang=0.5.23 gpu=b200 -- --model-path sgl-project/DeepSeek-V4-Flash-FP8 --tp-size 4 --moe-runner-backend flashinfer_trtllm",
        "sglang=0.5.23 gpu=b200 model=deepseek-v3.2 -- --tp-size 8 --dsa-paged-mqa-logits-backend cutedsl",
        "sglang=0.5.23 model=qwen3-next-80b -- --tp-size 4 --mamba-radix-cache-strategy extra_buffer --disable-overlap-schedule",
        "sglang=0.5.23 -- --tp-size 16 --nnodes 2 --dist-init-addr 10.0.0.1:5000 --dcp-size 2",
    ],
)
def test_near_miss_of_one_release_is_silent(launch: str) -> None:
    assert late_errors(launch) == []
