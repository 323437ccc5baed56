"""Experts, their runners and the adapters on them: what is refused with the weights loaded, beside the nearest launch that runs."""

from __future__ import annotations

import json

import pytest

from tests.resolution.launching import rules


def _as(**keys: object) -> str:
    return f"--json-model-override-args '{json.dumps(keys)}'"


def _scheme(form: str, weights: dict[str, object], activations: dict[str, object] | None) -> dict[str, object]:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations}
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": {"group_0": group}}


INT8 = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True}
INT4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 64, "symmetric": True}
NVFP4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
TOKENS = {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True}
FP8 = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True}
W8A8 = _as(quantization_config=_scheme("int-quantized", INT8, TOKENS))
W8A8_FP8 = _as(quantization_config=_scheme("float-quantized", {**INT8, "type": "float"}, FP8))
MODELOPT_FP8 = {"quant_method": "modelopt", "quant_algo": "FP8"}
QWEN, GPT = "model=qwen3-30b-a3b", "model=gpt-oss-120b"
MEGA = "--tp-size 2 --attn-dp-size 2 --quantization mxfp8 --moe-a2a-backend flashinfer_megamoe"
BLOCKS = {"quant_method": "fp8", "weight_block_size": [128, 128]}
LORA = "--enable-lora --max-lora-rank 16 --lora-target-modules gate_proj up_proj down_proj --tp-size 2"
QUARK = {
    "quant_method": "quark",
    "global_quant_config": {"weight": {"dtype": "fp4"}, "input_tensors": {"dtype": "fp4"}},
}

V4 = "gpu=h200 model=deepseek-v4 -- --tp-size 8 --moe-runner-backend marlin " + _as(
    fp4_experts=True, num_hash_layers=3, n_shared_experts=1, quantization_config=BLOCKS
)

REFUSED = [
    ("option-this-model-refuses", f"{V4} --enforce-shared-experts-fusion"),
    (
        "fp8-method-of-fp4-checkpoint",
        "gpu=b200 -- --quantization modelopt_mixed " + _as(quantization_config={**MODELOPT_FP8, "quant_algo": "W4A8_AWQ"}),
    ),
    ("runner-without-activation", f"{QWEN} -- --moe-runner-backend deep_gemm {_as(architectures=['Grok1ForCausalLM'])}"),
    ("runner-without-activation", f"sglang=0.5.9 {QWEN} -- --moe-runner-backend deep_gemm {_as(architectures=['Grok1ForCausalLM'])}"),
    ("runner-without-activation", f"{GPT} -- --tp-size 2 --quantization fp8 --moe-runner-backend hpc_ops {_as(quantization_config=None)}"),
    ("runner-without-activation", f"{QWEN} -- --quantization humming {_as(architectures=['NemotronHForCausalLM'])}"),
    ("runner-without-activation", f"gpu=b200 {QWEN} -- {MEGA} {_as(architectures=['NemotronHForCausalLM'])}"),
    (
        "runner-without-activation",
        f"gpu=b200 {QWEN} -- --moe-runner-backend flashinfer_cutlass "
        f"{_as(architectures=['KimiK3LinearForCausalLM'], hidden_act='situ')}",
    ),
    ("hpc-ops-without-fp8-experts", f"{QWEN} -- --tp-size 2 --quantization fp8 --moe-runner-backend hpc_ops"),
    ("hpc-ops-without-fp8-experts", "model=deepseek-v3 -- --tp-size 16 --nnodes 2 --dist-init-addr a:5000 --moe-runner-backend hpc_ops"),
    ("experts-unfit-for-flashinfer-megamoe", f"gpu=b200 {QWEN} -- {MEGA} {_as(moe_intermediate_size=704)}"),
    ("experts-unfit-for-flashinfer-megamoe", f"gpu=b200 {QWEN} -- {MEGA} {_as(hidden_size=2080)}"),
    ("width-of-four-bit-experts", f"{QWEN} -- --tp-size 8 {_as(quantization_config=_scheme('nvfp4-pack-quantized', NVFP4, None))}"),
    ("width-of-four-bit-experts", f"{QWEN} -- --quantization humming --moe-a2a-backend deepep {_as(moe_intermediate_size=704)}"),
    ("experts-of-compressed-tensors-scheme", f"{QWEN} -- {W8A8}"),
    ("experts-of-compressed-tensors-scheme", f"sglang=0.5.9 gpu=a100 {QWEN} -- {W8A8}"),
    (
        "experts-of-compressed-tensors-scheme",
        f"{QWEN} -- --moe-runner-backend triton {_as(quantization_config=_scheme('pack-quantized', INT4, None))}",
    ),
    ("fp8-experts-on-other-runner", "model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend aiter"),
    ("experts-moved-under-own-routing", f"{QWEN} -- --tp-size 2 --ep-size 2 --enable-eplb --moe-runner-backend triton_kernel"),
    ("experts-moved-under-own-routing", f"gpu=b200 {GPT} -- --tp-size 2 --ep-size 2 --ep-num-redundant-experts 2 --enable-eplb"),
    ("experts-unfit-for-aiter", f"gpu=mi355x {QWEN} -- --moe-runner-backend triton {_as(quantization_config=QUARK)}"),
    ("experts-unfit-for-aiter", f"gpu=mi300x {QWEN} SGLANG_USE_AITER=1 -- --tp-size 4 --moe-runner-backend aiter"),
    ("paged-experts-conflict", f"{QWEN} -- --enable-paged-experts --paged-experts-num-resident 32 --moe-runner-backend triton_kernel"),
    (
        "fp4-kernels-before-blackwell",
        "gpu=a100 -- --fp4-gemm-backend flashinfer_trtllm "
        + _as(quantization_config={"quant_method": "modelopt_fp4", "quant_algo": "NVFP4", "group_size": 16}),
    ),
    ("adapters-unfit-for-launch", f"{QWEN} -- {LORA} --quantization modelopt_fp8 {_as(quantization_config=MODELOPT_FP8)}"),
    (
        "adapters-unfit-for-launch",
        "model=deepseek-v3 -- --tp-size 8 --enable-attn-tp-input-scattered --enable-lora --max-lora-rank 16 "
        "--lora-target-modules q_proj embed_tokens",
    ),
    (
        "experimental-runner-of-other-adapted-experts",
        f"gpu=b200 {QWEN} -- {LORA} --moe-runner-backend experimental_sgl_trtllm --quantization fp8",
    ),
]  # fmt: skip

RUN = [
    V4,
    f"{QWEN} -- --moe-runner-backend deep_gemm",
    f"{QWEN} -- --moe-runner-backend triton {_as(architectures=['Grok1ForCausalLM'])}",
    f"{QWEN} -- --moe-runner-backend flashinfer_cutlass {_as(hidden_act='situ')}",
    f"{QWEN} -- --quantization humming",
    "model=qwen3-235b-fp8 -- --tp-size 4 --moe-runner-backend hpc_ops",
    "model=deepseek-v3 -- --tp-size 16 --nnodes 2 --dist-init-addr a:5000 --moe-runner-backend hpc_ops --disable-shared-experts-fusion",
    f"gpu=b200 {QWEN} -- {MEGA}",
    f"{QWEN} -- --tp-size 4 {_as(quantization_config=_scheme('nvfp4-pack-quantized', NVFP4, None))}",
    f"gpu=b200 {QWEN} -- --tp-size 8 {_as(quantization_config=_scheme('nvfp4-pack-quantized', NVFP4, TOKENS))}",
    f"{QWEN} -- --quantization humming --moe-a2a-backend deepep --deepep-dispatcher-output-dtype bf16 {_as(moe_intermediate_size=704)}",
    f"{QWEN} -- {W8A8_FP8}",
    f"{QWEN} -- {_as(quantization_config=_scheme('pack-quantized', INT4, None))}",
    f"{QWEN} -- --tp-size 2 --ep-size 2 --enable-eplb",
    f"sglang=0.5.22 {QWEN} -- --tp-size 2 --ep-size 2 --enable-eplb --moe-runner-backend triton_kernel",
    f"gpu=mi355x {QWEN} -- {_as(quantization_config=QUARK)}",
    f"gpu=mi300x {QWEN} SGLANG_USE_AITER=1 -- --tp-size 4",
    f"{QWEN} -- --tp-size 2 --enable-lora --max-lora-rank 16 --lora-target-modules q_proj --quantization modelopt_fp8 "
    f"{_as(quantization_config=MODELOPT_FP8)}",
    "model=deepseek-v3 -- --tp-size 8 --enable-attn-tp-input-scattered --enable-lora --max-lora-rank 16 --lora-target-modules q_proj",
    f"gpu=b200 {QWEN} -- {LORA} --moe-runner-backend experimental_sgl_trtllm",
]  # fmt: skip


@pytest.mark.parametrize(("rule", "launch"), REFUSED)
def test_is_refused(rule: str, launch: str) -> None:
    assert rule in rules(launch)


@pytest.mark.parametrize("launch", RUN)
def test_runs(launch: str) -> None:
    assert rules(launch) == []
