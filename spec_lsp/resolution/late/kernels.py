"""Kernels that a flag chooses and that the hardware lacks, refused when layers and pools are built.

Follows layers/quantization/unquant.py (initialize_bf16_gemm_config), layers/quantization/fp8_utils.py (_dispatch_explicit_backend),
layers/moe/utils.py (initialize_moe_config), layers/attention/dsa_backend.py, layers/attention/minimax_sparse_backend.py and the
pools of DeepSeek V4's hierarchical cache.

Left out: matrix kernels of MXFP8 and NVFP4 weights, which go by the shapes of single layers; packages that are not installed
(AITER, DeepGEMM, cuDNN); environment variables of single kernels with values nobody uses.
"""

from __future__ import annotations

from collections.abc import Mapping

from spec_lsp.resolution.engine import Config, Earlier, Handler, Refusal, dropping, setting
from spec_lsp.resolution.late.methods import compressed_scheme
from spec_lsp.resolution.late.refused import value_refused
from spec_lsp.resolution.model.config import served_quantization

kernels = Handler("layers/quantization/unquant.py:initialize_bf16_gemm_config", since="0.5.4")


@kernels.refuses(
    "SPC910",
    "bf16-kernels-off-their-hardware",
    raises="ValueError",
    late=True,
    hardware_only=True,
    since="0.5.18",
    bad=(
        "gpu=b200 -- --bf16-gemm-backend gemv",
        "gpu=h100 -- --bf16-gemm-backend cutedsl",
    ),
    good=("gpu=h100 -- --bf16-gemm-backend gemv", "gpu=b200 -- --bf16-gemm-backend cutedsl"),
)
def bf16_kernels_off_their_hardware(c: Config) -> Refusal | None:
    """This BF16 GEMM backend does not run on this GPU.

    `--bf16-gemm-backend gemv` is for Hopper and SM120, `cutedsl` for SM100.
    """
    fits = {"gemv": c.gpu.sm90 or c.gpu.sm120 or not c.gpu.is_cuda, "cutedsl": c.gpu.sm100}
    if fits.get(c.bf16_gemm_backend, True):
        return None
    return Refusal(
        at="bf16_gemm_backend",
        message=f"{c.shown('bf16_gemm_backend')} does not run on {c.gpu.title}, and the scheduler stops when it starts. Remove it.",
    )


@kernels.refuses(
    "SPC911",
    "deterministic-cutedsl-bf16",
    raises="ValueError",
    late=True,
    since="0.5.18",
    bad="gpu=b200 -- --bf16-gemm-backend cutedsl --enable-deterministic-inference --attention-backend flashinfer",
    good="gpu=b200 -- --enable-deterministic-inference --attention-backend flashinfer",
)
def deterministic_cutedsl_bf16(c: Config) -> Refusal | None:
    """CuTe DSL's BF16 kernels are not deterministic.

    Their sums depend on the batch. Leave `--bf16-gemm-backend` out: deterministic inference uses PyTorch's.
    """
    if c.bf16_gemm_backend != "cutedsl" or not c.enable_deterministic_inference:
        return None
    return Refusal(
        at="bf16_gemm_backend",
        related_fields=("enable_deterministic_inference",),
        message=f"{c.shown('bf16_gemm_backend')} depends on the batch, which {c.shown('enable_deterministic_inference')} rules out, and "
        "the scheduler stops when it starts. Remove it.",
        fixes=(dropping("bf16_gemm_backend"), dropping("enable_deterministic_inference")),
    )


def _has_block_fp8(c: Config) -> bool:
    """Whether linear layers have FP8 weights with a scale for each 128 by 128 block."""
    config = c.model.quantization_config
    sides = config.get("weight_block_size") if isinstance(config, Mapping) else None
    return served_quantization(c).method == "fp8" and list(sides or ()) == [128, 128]


def _has_mxfp8(c: Config) -> bool:
    """Whether linear layers have MXFP8 weights, whose kernels are chosen by the same flag and looked at in the same way."""
    backends = ("flashinfer_trtllm", "flashinfer_cutlass", "deep_gemm")
    return c.since("0.5.18") and served_quantization(c).method == "mxfp8" and c.fp8_gemm_runner_backend in backends


JIT = "SGLANG_ENABLE_JIT_DEEPGEMM"
WEIGHT_ONLY_NVFP4 = (
    """--json-model-override-args '{"quantization_config": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", """
    """"config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", """
    """"group_size": 16}, "input_activations": null}}}}'"""
)


@kernels.refuses(
    "SPC912",
    "fp8-kernels-off-their-hardware",
    raises="RuntimeError",
    late=True,
    hardware_only=True,
    since="0.5.10",
    sglang="layers/quantization/fp8_utils.py:_dispatch_explicit_backend",
    bad=(
        "gpu=h100 model=deepseek-v3 -- --tp-size 16 --nnodes 2 --fp8-gemm-backend flashinfer_trtllm",
        "gpu=b200 model=deepseek-v3 -- --tp-size 8 --fp8-gemm-backend flashinfer_deepgemm",
        "gpu=h100 model=deepseek-v3 -- --tp-size 16 --nnodes 2 --fp8-gemm-backend cutlass",
        "gpu=h100 model=deepseek-v3 -- --tp-size 16 --nnodes 2 --fp8-gemm-backend aiter",
        "gpu=a100 model=deepseek-v3 -- --tp-size 16 --nnodes 2 --fp8-gemm-backend deep_gemm",
        "gpu=rtxpro6000 -- --quantization mxfp8 --fp8-gemm-backend flashinfer_trtllm",
    ),
    good=(
        "gpu=b200 model=deepseek-v3 -- --tp-size 8 --fp8-gemm-backend flashinfer_trtllm",
        "gpu=h100 model=deepseek-v3 -- --tp-size 16 --nnodes 2 --fp8-gemm-backend deep_gemm",
    ),
)
def fp8_kernels_off_their_hardware(c: Config) -> Refusal | None:
    """This FP8 GEMM backend does not run on this GPU.

    For block-FP8 weights (and MXFP8 from 0.5.18 on) `--fp8-gemm-backend flashinfer_trtllm` needs SM100, `flashinfer_cutlass` Blackwell,
    `flashinfer_deepgemm` Hopper, `aiter` AMD, `deep_gemm` Hopper or newer (and no `SGLANG_ENABLE_JIT_DEEPGEMM=0`), and from 0.5.16 on
    `cutlass` SM120.
    SGLang stops when it builds the layers. `auto` chooses what fits.
    """
    gpu = c.gpu
    fits = {
        "flashinfer_trtllm": gpu.sm100,
        "flashinfer_cutlass": gpu.sm100 or gpu.sm120,
        "flashinfer_deepgemm": gpu.sm90,
        "cutlass": gpu.sm120 or c.before("0.5.16"),
        "aiter": not gpu.is_cuda,
        "deep_gemm": not gpu.is_cuda or (gpu.major >= 9 and not (c.env.is_set(JIT) and not c.env.flag(JIT))),
    }
    if fits.get(c.fp8_gemm_runner_backend, True) or not c.given("fp8_gemm_runner_backend"):
        return None
    if not (_has_block_fp8(c) or _has_mxfp8(c)):
        return None
    return Refusal(
        at="fp8_gemm_runner_backend",
        related_fields=("model_path",),
        message=f"{c.shown('fp8_gemm_runner_backend')} has no kernels for {gpu.title}, and SGLang stops when it builds this model's FP8 "
        "layers. Remove it.",
    )


def _is_weight_only_nvfp4(c: Config) -> bool:
    """Whether a checkpoint of compressed-tensors has weights in NVFP4 and activations of sixteen bits."""
    scheme = (
        compressed_scheme(c) if c.since("0.5.22") and served_quantization(c).method == "compressed-tensors" else None
    )
    return scheme is not None and not scheme[1] and (scheme[0].get("num_bits"), scheme[0].get("type")) == (4, "float")


@kernels.refuses(
    "SPC687",
    "fp4-kernels-before-blackwell",
    raises="ValueError",
    late=True,
    hardware_only=True,
    since="0.5.13",
    sglang="layers/quantization/compressed_tensors/schemes/compressed_tensors_w4a16_nvfp4.py:_use_flashinfer_bf16_fp4",
    earlier=(Earlier("0.5.22", "layers/quantization/modelopt_quant.py:process_weights_after_loading"),),
    bad=(
        f"gpu=h100 -- --fp4-gemm-backend flashinfer_cutedsl {WEIGHT_ONLY_NVFP4}",
        "gpu=h100 -- --fp4-gemm-backend flashinfer_cutlass --json-model-override-args "
        """'{"quantization_config": {"quant_method": "modelopt_fp4", "quant_algo": "NVFP4", "group_size": 16}}'""",
    ),
    good=f"gpu=h100 -- --fp4-gemm-backend marlin {WEIGHT_ONLY_NVFP4}",
)
def fp4_kernels_before_blackwell(c: Config) -> Refusal | None:
    """Before Blackwell only Marlin multiplies NVFP4 weights.

    The other values of `--fp4-gemm-backend` need Blackwell for a checkpoint of ModelOpt, `flashinfer_cutedsl` and `flashinfer_cudnn` also
    for one of compressed-tensors whose weights alone are NVFP4. Left out, SGLang chooses Marlin's kernels.
    """
    backend = c.fp4_gemm_runner_backend
    if backend in ("auto", "marlin") or c.gpu.major not in (8, 9):
        return None
    algorithm = (c.model.quantization_config or {}).get("quant_algo")
    native = served_quantization(c).method == "modelopt_fp4" and algorithm in ("NVFP4", "NVFP4_AWQ")
    if not native and not (backend in ("flashinfer_cutedsl", "flashinfer_cudnn") and _is_weight_only_nvfp4(c)):
        return None
    return value_refused(
        c,
        "fp4_gemm_runner_backend",
        f"has no kernels for this model's NVFP4 weights on {c.gpu.title}, and SGLang stops when it builds the layers. Remove it.",
        "model_path",
    )


@kernels.refuses(
    "SPC913",
    "single-batch-overlap-on-hopper",
    raises="ValueError",
    late=True,
    since="0.5.13",
    sglang="layers/moe/utils.py:initialize_moe_config",
    bad="gpu=h100 model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend deepep --enable-single-batch-overlap",
    good="gpu=b200 model=qwen3-30b-a3b -- --tp-size 2 --moe-a2a-backend deepep --enable-single-batch-overlap",
)
def single_batch_overlap_on_hopper(c: Config) -> Refusal | None:
    """Single-batch overlap does not run on Hopper.

    The DeepGEMM that SGLang ships has no kernels for it there, so the scheduler of an MoE model stops when it starts.
    """
    if not c.enable_single_batch_overlap or not c.gpu.sm90 or not c.model.num_experts:
        return None
    return Refusal(
        at="enable_single_batch_overlap",
        message=f"{c.shown('enable_single_batch_overlap')} does not run on {c.gpu.title}, and the scheduler stops when it starts. Leave "
        "it out.",
    )


# --- sparse attention --------------------------------------------------------------------------------------------------


@kernels.refuses(
    "SPC914",
    "trtllm-sparse-attention-off-sm100",
    raises="",
    late=True,
    hardware_only=True,
    since="0.5.13",
    sglang="dsa_backend.py:_forward_trtllm",
    bad="gpu=rtxpro6000 model=deepseek-v3.2 -- --tp-size 8 --dsa-prefill-backend trtllm --dsa-decode-backend trtllm "
    "--kv-cache-dtype fp8_e4m3",
    good="gpu=b200 model=deepseek-v3.2 -- --tp-size 8 --dsa-prefill-backend trtllm --dsa-decode-backend trtllm "
    "--kv-cache-dtype fp8_e4m3",
)
def trtllm_sparse_attention_off_sm100(c: Config) -> Refusal | None:
    """TensorRT-LLM's sparse attention kernels exist for SM100 only.

    SGLang accepts `--dsa-prefill-backend trtllm` and `--dsa-decode-backend trtllm` on SM120 and fails in the first forward pass: the
    kernels are built for data-centre Blackwell. Leave the flags out; SM120 has defaults of its own.
    """
    if not c.model.is_deepseek_dsa or not c.gpu.sm120:
        return None
    fields = [f for f in ("dsa_prefill_backend", "dsa_decode_backend") if c.given(f) and getattr(c, f) == "trtllm"]
    if not fields:
        return None
    named = " and ".join(c.shown(f) for f in fields) + (" have" if len(fields) > 1 else " has")
    return Refusal(
        at=fields[0],
        related_fields=(*fields[1:], "model_path"),
        message=f"{named} no kernels for {c.gpu.title}, and the server fails in its first forward pass, with the weights loaded. Leave "
        f"{'them' if len(fields) > 1 else 'it'} out.",
        fixes=(dropping(*fields),),
    )


@kernels.refuses(
    "SPC915",
    "flashmla-sparse-q8-conflict",
    raises="ValueError",
    late=True,
    since="0.5.16",
    sglang="dsa_backend.py:_validate_flashmla_sparse_q8_backend",
    bad=(
        "gpu=h100 model=deepseek-v3.2 -- --tp-size 16 --nnodes 2 --dsa-decode-backend flashmla_sparse_q8",
        "gpu=b200 model=deepseek-v3.2 -- --tp-size 8 --dsa-prefill-backend flashmla_sparse_q8 --dsa-decode-backend tilelang "
        "--kv-cache-dtype bfloat16",
    ),
    good="gpu=h100 model=deepseek-v3.2 -- --tp-size 16 --nnodes 2 --dsa-prefill-backend flashmla_sparse_q8 "
    "--dsa-decode-backend flashmla_kv --kv-cache-dtype fp8_e4m3",
)
def flashmla_sparse_q8_conflict(c: Config) -> Refusal | None:
    """The flashmla_sparse_q8 kernels prefill on Hopper, without mixed chunks or HiSparse.

    They compute sparse attention in FP8 for prefill only, on SM90, from chunks of their own. Decode needs another
    `--dsa-decode-backend`.
    """
    if not c.model.is_deepseek_dsa:
        return None
    if c.dsa_prefill_backend == "flashmla_sparse_q8":
        for at, conflict, why in (
            ("dsa_prefill_backend", not (c.gpu.is_cuda and c.gpu.sm90), f"its kernels do not run on {c.gpu.title}"),
            ("enable_mixed_chunk", c.enable_mixed_chunk, "its kernels do not support mixed batches"),
            ("enable_hisparse", c.enable_hisparse, "its kernels do not find pages that were moved"),
        ):
            if conflict:
                return _sparse_q8_refused(c, at, "dsa_prefill_backend", why)
    if c.dsa_decode_backend == "flashmla_sparse_q8":
        return _sparse_q8_refused(c, "dsa_decode_backend", "dsa_decode_backend", "its kernels only prefill")
    return None


def _sparse_q8_refused(c: Config, at: str, backend: str, why: str) -> Refusal:
    together = "" if at == backend else f" with {c.shown(backend)}"
    return Refusal(
        at=at,
        related_fields=(backend,) if at != backend else (),
        message=f"{c.shown(at)} is refused{together} when the attention backend is built: {why}.",
        fixes=(dropping(at), *((dropping(backend),) if at != backend else ())),
    )


@kernels.refuses(
    "SPC916",
    "tree-drafting-on-minimax-sparse-rocm",
    raises="NotImplementedError",
    bad="gpu=mi355x model=minimax-m3 -- --tp-size 8 --speculative-algorithm EAGLE3 "
    "--speculative-draft-model-path {models}/eagle3-draft --speculative-num-steps 3 "
    "--speculative-eagle-topk 2 --speculative-num-draft-tokens 4",
    good="gpu=mi355x model=minimax-m3 -- --tp-size 8",
    late=True,
    since="0.5.22",
    sglang="minimax_sparse_backend.py:__init__",
)
def tree_drafting_on_minimax_sparse_rocm(c: Config) -> Refusal | None:
    """MiniMax-M3's sparse attention verifies chains only on AMD GPUs.

    Set `--speculative-eagle-topk 1`.
    """
    if (
        not (c.gpu.is_hip and c.model.is_minimax_sparse)
        or c.speculative_algorithm is None
        or c.speculative_eagle_topk == 1
    ):
        return None
    return Refusal(
        at="speculative_eagle_topk" if c.speculative_eagle_topk is not None else "speculative_algorithm",
        related_fields=("speculative_algorithm",),
        message=f"This model's sparse attention verifies chains only on {c.gpu.title}, and SGLang stops when it builds the attention "
        "backend. Set `--speculative-eagle-topk 1`.",
        fixes=(setting(speculative_eagle_topk=1), dropping("speculative_algorithm")),
    )


# --- caches ------------------------------------------------------------------------------------------------------------


@kernels.refuses(
    "SPC917",
    "hicache-size-of-deepseek-v4",
    raises="ValueError",
    bad="model=v4 -- --tp-size 8 --enable-hierarchical-cache --hicache-size 30",
    good="model=v4 -- --tp-size 8 --enable-hierarchical-cache --hicache-ratio 2",
    late=True,
    since="0.5.12",
    sglang="hybrid_pool_assembler.py:_deepseek_v4_num_host_pages",
)
def hicache_size_of_deepseek_v4(c: Config) -> Refusal | None:
    """DeepSeek V4's hierarchical cache is sized by ratio.

    Its caches of several widths grow together, so `--hicache-size` cannot be shared out; give `--hicache-ratio`.
    """
    if not c.model.is_deepseek_v4 or not c.enable_hierarchical_cache or not (c.hicache_size or 0) > 0:
        return None
    return Refusal(
        at="hicache_size",
        related_fields=("model_path", "enable_hierarchical_cache"),
        message=f"{c.shown('hicache_size')} is refused for DeepSeek V4 when its host pools are built. Give `--hicache-ratio`.",
    )


@kernels.refuses(
    "SPC918",
    "layer-embeddings-off-qwen4",
    raises="ValueError",
    late=True,
    since="0.5.20",
    sglang="load_model_utils.py:load_model_with_memory_saver",
    bad="--ple-offload-embedding",
    good="--tp-size 1",
)
def layer_embeddings_off_qwen4(c: Config) -> Refusal | None:
    """Only Qwen4-Exp has per-layer embeddings to keep in host memory.

    `--ple-offload-embedding` is refused for any other model when it is loaded.
    """
    if not c.ple_offload_embedding or "Qwen4ExpForConditionalGeneration" in c.model.architectures:
        return None
    return Refusal(
        at="ple_offload_embedding",
        related_fields=("model_path",),
        message=f"{c.shown('ple_offload_embedding')} is refused for this model when it is loaded: only Qwen4-Exp has such embeddings.",
    )
