"""What sparse attention refuses when its backend is built: DeepSeek's (V3.2, GLM-5, V4) and MiniMax-M3's.

Follows layers/attention/dsa_backend.py (_validate_triton_sparse_mla_backend) and the constructors of deepseek_v4_backend.py,
deepseek_v4_trtllm_backend.py and minimax_sparse_backend.py.

Left out: pools that SGLang always gives these models, and head widths that all of them share.
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.late.refused import value_refused
from spec_lsp.resolution.ranks import attention_tp_size

sparse_attention = Handler("layers/attention/dsa_backend.py:_validate_triton_sparse_mla_backend", since="0.5.15")

MOST_HEADS = 32
"""The most query heads of a rank that Triton's sparse kernel supports."""


def _unfit_for_triton(c: Config) -> tuple[str, str] | None:
    """The (field, reason) of what Triton's sparse prefill does not support."""
    if not c.gpu.is_cuda or c.gpu.major < 9:
        return "", f"it does not run on {c.gpu.title}"
    heads = c.model.get_num_attention_heads(attention_tp_size(c))
    if heads > MOST_HEADS:
        return "tp_size", f"{heads} query heads on a rank are more than the {MOST_HEADS} it holds"
    if (c.model.text_hf("index_kpool") or 1) > 1:
        return "model_path", "it does not know this model's pooled indexer"
    union = 0 if c.enable_deterministic_inference else c.dsa_triton_union
    if union and heads * union not in (16, 32):
        return "dsa_triton_union", f"{heads} query heads on a rank times a union of {union} are neither 16 nor 32"
    return None


@sparse_attention.refuses(
    "SPC688", "triton-sparse-prefill-unfit", raises="ValueError", late=True, since="0.5.22",
    bad=(
        "gpu=a100 model=deepseek-v3.2 -- --tp-size 16 --nnodes 2 --dsa-prefill-backend triton_sparse_mla",
        "gpu=b200 model=deepseek-v3.2 -- --tp-size 2 --dsa-prefill-backend triton_sparse_mla",
        "gpu=b200 model=deepseek-v3.2 -- --tp-size 8 --dsa-prefill-backend triton_sparse_mla --dsa-triton-union 4",
    ),
    good=(
        "gpu=b200 model=deepseek-v3.2 -- --tp-size 8 --dsa-prefill-backend triton_sparse_mla",
        "gpu=b200 model=deepseek-v3.2 -- --tp-size 8 --dsa-prefill-backend triton_sparse_mla --dsa-triton-union 2",
    ),
)  # fmt: skip
def triton_sparse_prefill_unfit(c: Config) -> Refusal | None:
    """Triton's sparse prefill runs from Hopper on, with at most 32 query heads on a rank.

    A union of queries (`--dsa-triton-union`) has to make 16 or 32 rows of them. With fewer ranks, or attention data parallelism, more heads
    fall to each rank: use `flashmla_sparse` or let SGLang choose the backend.
    """
    if c.dsa_prefill_backend != "triton_sparse_mla" or not c.model.is_deepseek_dsa:
        return None
    unfit = _unfit_for_triton(c)
    if unfit is None:
        return None
    at, why = unfit
    fixes = (dropping("dsa_triton_union"),) if at == "dsa_triton_union" else ()
    return value_refused(
        c,
        "dsa_prefill_backend",
        f"is refused when SGLang builds the attention backend: {why}.",
        *((at,) if at else ()),
        fixes=(
            *fixes,
            dropping("dsa_prefill_backend", "dsa_triton_union"),
            setting(dsa_prefill_backend="flashmla_sparse"),
        ),
    )


Q8 = "SGLANG_DSV4_Q8KV8_PREFILL"


@sparse_attention.refuses(
    "SPC689", "v4-q8-prefill-off-hopper", raises="ValueError", late=True, hardware_only=True, since="0.5.19",
    sglang="layers/attention/deepseek_v4_backend.py:__init__",
    bad="gpu=b200 model=v4 -- --tp-size 8 --dsv4-prefill-backend flashmla_sparse_q8",
    good="gpu=h200 model=v4 -- --tp-size 8 --dsv4-prefill-backend flashmla_sparse_q8",
)  # fmt: skip
def v4_q8_prefill_off_hopper(c: Config) -> Refusal | None:
    """FlashMLA's FP8 prefill of DeepSeek V4 runs on Hopper only.

    Remove `--dsv4-prefill-backend` elsewhere. `SGLANG_DSV4_Q8KV8_PREFILL` overrides the flag.
    """
    if c.dsv4_prefill_backend != "flashmla_sparse_q8" or c.gpu.sm90 or c.env.is_set(Q8) or not c.model.is_deepseek_v4:
        return None
    return value_refused(
        c,
        "dsv4_prefill_backend",
        f"does not run on {c.gpu.title}, and SGLang stops when it builds the attention backend. Remove it.",
    )


COMPRESS = "SGLANG_OPT_USE_ONLINE_COMPRESS"


@sparse_attention.refuses(
    "SPC690", "v4-trtllm-kernels-with-online-compression", raises="AssertionError", late=True, since="0.5.20",
    sglang="layers/attention/deepseek_v4_trtllm_backend.py:__init__",
    bad=f"gpu=b200 model=v4 {COMPRESS}=1 -- --tp-size 8 --dsv4-attn-backend trtllm",
    good="gpu=b200 model=v4 -- --tp-size 8 --dsv4-attn-backend trtllm",
)  # fmt: skip
def v4_trtllm_kernels_with_online_compression(c: Config) -> Refusal | None:
    """DeepSeek V4's trtllm kernels read caches that were not compressed on the way.

    `SGLANG_OPT_USE_ONLINE_COMPRESS` goes with FlashMLA's.
    """
    if c.dsv4_attn_backend != "trtllm" or not c.env.is_set(COMPRESS) or not c.env.flag(COMPRESS):
        return None
    if not c.model.is_deepseek_v4:
        return None
    return value_refused(
        c,
        "dsv4_attn_backend",
        f"is refused with `{COMPRESS}` when SGLang builds the attention backend. Remove one of them.",
        COMPRESS,
        fixes=(dropping_env(COMPRESS), dropping("dsv4_attn_backend")),
    )


@sparse_attention.refuses(
    "SPC1009", "paged-logits-off-their-hardware", raises="ValueError", late=True, hardware_only=True, since="0.5.15",
    sglang="layers/attention/dsa/paged_mqa_logits_backend.py:resolve",
    bad=(
        "model=deepseek-v3.2 -- --tp-size 8 --dsa-paged-mqa-logits-backend cutedsl",
        "gpu=b200 model=deepseek-v3.2 -- --tp-size 8 --dsa-paged-mqa-logits-backend aiter",
    ),
    good="gpu=b200 model=deepseek-v3.2 -- --tp-size 8 --dsa-paged-mqa-logits-backend cutedsl",
)  # fmt: skip
def paged_logits_off_their_hardware(c: Config) -> Refusal | None:
    """These kernels of the sparse-attention indexer do not run on this GPU.

    `--dsa-paged-mqa-logits-backend cutedsl` needs SM100 (B200, GB200, B300), `aiter` an AMD GPU, which has nothing else. `auto` chooses.
    """
    name = c.dsa_paged_mqa_logits_backend
    fits = name in (None, "auto", "aiter") if c.gpu.is_hip else name != "aiter" and (name != "cutedsl" or c.gpu.sm100)
    if fits or not c.model.is_deepseek_dsa:
        return None
    return value_refused(
        c,
        "dsa_paged_mqa_logits_backend",
        f"has no kernels for {c.gpu.title}, and SGLang stops when it builds the attention backend. Remove it.",
        "model_path",
    )
