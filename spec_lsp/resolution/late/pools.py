"""What the KV pools of DeepSeek V4, of FP4, MXFP8 and scaled FP8 caches refuse, and servers of encoders.

Follows mem_cache/deepseek_v4_memory_pool.py, model_executor/pool_configurator.py (DSV4PoolConfigurator), mem_cache/pool_host/,
model_runner_components/load_model_utils.py and disaggregation/encoder/ (0.5.23).

Left out: sizes that the memory found at start decides.
"""

from __future__ import annotations

from spec_lsp.resolution.attention import backend_field, backends_of
from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.kv_cache import separate_windows
from spec_lsp.resolution.late.layout import served_class
from spec_lsp.resolution.late.refused import Barred, first_barred, value_refused

v4_pools = Handler(
    "mem_cache/deepseek_v4_memory_pool.py:select_dsv4_kv_layout", since="0.5.12", rare=True,
    when=lambda c: c.model.is_deepseek_v4 and str(c.device).startswith("cuda"),
)  # fmt: skip

LAYOUT, OPTION = "SGLANG_DSV4_KV_LAYOUT", "SGLANG_DSV4_COMPRESSED_KV_LAYOUT"


def _layout_conflict(c: Config) -> tuple[str, tuple[str, ...], str] | None:
    """The variable to point at, the related fields, and the reason."""
    mode = (c.env.text(LAYOUT, "v4") or "").lower()
    option = (c.env.text(OPTION, "auto") or "").lower()
    if c.dsv4_attn_backend == "trtllm":
        if mode not in ("auto", "v4"):
            return LAYOUT, ("dsv4_attn_backend",), "trtllm keeps uniform FP8 pages"
        if option not in ("auto", "fp8"):
            return OPTION, ("dsv4_attn_backend",), "trtllm keeps uniform FP8 pages"
        return None
    if mode not in ("v4", "v41", "v41_new", "auto"):
        return LAYOUT, (), "the layouts are v4, v41, v41_new and auto"
    if mode in ("v41", "v41_new") and c.gpu.is_cuda and not c.gpu.sm100:
        return LAYOUT, (), f"the layouts of V4.1 need SM100, which {c.gpu.title} is not"
    if option not in ("auto", "fp8", "fp4"):
        return OPTION, (), "the layouts are fp8, fp4 and auto"
    if not c.gpu.is_cuda or (mode == "auto" and c.before("0.5.22")):
        return None
    if option == "fp4" and (mode == "v4" or not c.gpu.sm100):
        return OPTION, (), "pages of FP4 lie beside a cache of V4.1 only"
    if c.enable_hisparse and mode != "v4" and c.gpu.sm100:
        return LAYOUT, ("enable_hisparse",), "HiSparse moves pages of V4 only"
    return None


@v4_pools.refuses(
    "SPC451", "v4-layout-that-cannot-be", raises="AssertionError", late=True, since="0.5.21",
    bad=(
        f"model=v4 {LAYOUT}=v41 -- --tp-size 8",
        f"gpu=b200 model=v4 {LAYOUT}=v42 -- --tp-size 8",
        f"model=v4 {OPTION}=fp4 -- --tp-size 8",
        f"gpu=b200 model=v4 {LAYOUT}=v41 -- --tp-size 8 --enable-hisparse --disable-radix-cache",
    ),
    good=(
        f"gpu=b200 model=v4 {LAYOUT}=v41 -- --tp-size 8",
        f"model=v4 {LAYOUT}=auto -- --tp-size 8",
        f"gpu=b200 model=v4 {LAYOUT}=v41 {OPTION}=fp4 -- --tp-size 8",
    ),
)  # fmt: skip
def v4_layout_that_cannot_be(c: Config) -> Refusal | None:
    """DeepSeek V4's cache has no such layout here.

    `SGLANG_DSV4_KV_LAYOUT` is v4, v41, v41_new or auto. The layouts of V4.1 exist for SM100 (B200, GB200, B300); only beside them can
    compressed pages be FP4 (`SGLANG_DSV4_COMPRESSED_KV_LAYOUT`), and HiSparse does not move them. `--dsv4-attn-backend trtllm` has pages
    of its own.
    """
    if not c.env.is_set(LAYOUT) and not c.env.is_set(OPTION) and c.dsv4_attn_backend != "trtllm":
        return None
    if c.dsv4_attn_backend == "flashmla_mega":
        return None
    found = _layout_conflict(c)
    if found is None:
        return None
    at, related, why = found
    return Refusal(
        at=at,
        related_fields=(*related, "model_path"),
        message=f"`{at}={c.env.text(at, '')}` is refused when the cache is built: {why}.",
        fixes=(dropping_env(at), *(dropping(field) for field in related)),
    )


ONLINE, ONLINE_DRAFTS = "SGLANG_OPT_USE_ONLINE_COMPRESS", "SGLANG_EXPERIMENTAL_ONLINE_C128_MTP"
V4_DRAFT = "--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"


@v4_pools.refuses(
    "SPC452", "v4-online-compression-of-drafts", raises="AssertionError", late=True,
    sglang="model_executor/pool_configurator.py:__init__",
    bad=f"gpu=b200 model=v4 {ONLINE}=1 -- --tp-size 8 {V4_DRAFT}",
    good=(
        f"gpu=b200 model=v4 {ONLINE}=1 -- --tp-size 8",
        f"gpu=b200 model=v4 {ONLINE}=1 {ONLINE_DRAFTS}=1 -- --tp-size 8 {V4_DRAFT}",
    ),
)  # fmt: skip
def v4_online_compression_of_drafts(c: Config) -> Refusal | None:
    """DeepSeek V4 cannot take drafted tokens back once they are compressed.

    `SGLANG_OPT_USE_ONLINE_COMPRESS` keeps one running state for 128 tokens, which drafts that are refused would spoil.
    `SGLANG_EXPERIMENTAL_ONLINE_C128_MTP` allows it for EAGLE.
    """
    if not c.env.flag(ONLINE) or c.speculative_algorithm is None:
        return None
    if c.env.flag(ONLINE_DRAFTS) and c.speculative_algorithm in ("EAGLE", "EAGLE3"):
        return None
    return Refusal(
        at=ONLINE,
        related_fields=("speculative_algorithm",),
        message=f"`{ONLINE}` is refused with {c.shown('speculative_algorithm')} when the cache is built: a compressed state cannot give "
        "drafted tokens back.",
        fixes=(dropping_env(ONLINE), dropping("speculative_algorithm")),
    )


RING_HOLDS = 10
"""Drafted tokens that the ring of 16 states for 4 tokens each can give back (get_compress_state_write_pad); the other ring holds 130."""


@v4_pools.refuses(
    "SPC453", "v4-drafts-beyond-ring", raises="AssertionError", late=True, since="0.5.18",
    sglang="model_executor/pool_configurator.py:_assert_ring_serves_draft_tokens",
    bad="gpu=b200 model=v4 -- --tp-size 8 --speculative-algorithm EAGLE --speculative-num-steps 11 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 12",
    good=f"gpu=b200 model=v4 -- --tp-size 8 {V4_DRAFT}",
)  # fmt: skip
def v4_drafts_beyond_ring(c: Config) -> Refusal | None:
    """DeepSeek V4 verifies at most ten drafted tokens.

    Its compressed cache keeps the last states in a ring, so that refused drafts can be taken back; the ring holds ten of them.
    """
    tokens = c.speculative_num_draft_tokens
    if c.speculative_algorithm is None or tokens is None or tokens <= RING_HOLDS:
        return None
    ratios = c.model.text_hf("compress_ratios")
    if not isinstance(ratios, (list, tuple)) or 4 not in ratios:
        return None
    at = c.first_given("speculative_num_draft_tokens", "speculative_algorithm")
    steps = {"speculative_num_steps": RING_HOLDS - 1} if c.speculative_algorithm in ("EAGLE", "EAGLE3") else {}
    return Refusal(
        at=at,
        related_fields=("model_path", "speculative_algorithm"),
        message=f"{tokens} drafted tokens are refused for {c.model.architecture} when the cache is built: its ring of compressed states "
        f"gives back {RING_HOLDS} at most.",
        fixes=(Change(set={"speculative_num_draft_tokens": RING_HOLDS, **steps}), dropping("speculative_algorithm")),
    )


FLASHMLA, UNIFIED_FP8 = "SGLANG_HACK_FLASHMLA_BACKEND", "SGLANG_DSV4_UNIFIED_KV_FP8"
UNIFIED = (
    Barred(
        "pp_size",
        lambda c: (
            c.pp_size > 1 and c.disaggregation_mode != "null" and c.gpu.gfx95 and c.env.flag(UNIFIED_FP8)
        ),
        f"what `{UNIFIED_FP8}` keeps apart is not sent by pipeline stages",
        "0.5.22",
        lambda _: (setting(pp_size=1), dropping_env(UNIFIED_FP8)),
    ),
    Barred(
        "hicache_host_memory_mode",
        lambda c: bool(c.enable_hierarchical_cache) and c.hicache_host_memory_mode == "buffer_only",
        "its windows stay on the GPU",
        "0.5.19",
    ),
)  # fmt: skip


@v4_pools.refuses(
    "SPC1086", "v4-unified-pages-unfit", raises="ValueError", late=True, since="0.5.19",
    sglang="model_executor/pool_configurator.py:check_dsv4_unified_fp8_pd_supported",
    earlier=(Earlier("0.5.22", "mem_cache/buffer_mode/pipeline.py:validate_buffer_only_stack"),),
    bad=f"gpu=mi355x model=v4 {FLASHMLA}=unified_kv_triton {UNIFIED_FP8}=1 -- --tp-size 4 --pp-size 2 --disaggregation-mode prefill",
    good=f"gpu=mi355x model=v4 {FLASHMLA}=unified_kv_triton {UNIFIED_FP8}=1 -- --tp-size 8 --disaggregation-mode prefill",
)  # fmt: skip
def v4_unified_pages_unfit(c: Config) -> Refusal | None:
    """DeepSeek V4's unified pages on AMD cannot be served like this.

    `SGLANG_HACK_FLASHMLA_BACKEND=unified_kv_triton` puts V4's caches into one. In FP8 (`SGLANG_DSV4_UNIFIED_KV_FP8`) it is handed from
    prefill to decode servers without pipeline stages only, and its sliding windows have no place in host memory that only buffers.
    """
    if not c.gpu.is_hip or c.env.text(FLASHMLA) != "unified_kv_triton":
        return None
    return first_barred(c, UNIFIED, f"with `{FLASHMLA}=unified_kv_triton` when the cache is built", "model_path")


# --- caches of few bits ---------------------------------------------------------------------------------------------

narrow_caches = Handler(
    "mem_cache/pool_host/mha.py:__init__",
    when=lambda c: bool(c.device == "cuda") and str(c.kv_cache_dtype) in ("fp8_e4m3", "nvfp4", "fp4_mx_block16", "mxfp8"),
)  # fmt: skip


@narrow_caches.refuses(
    "SPC454", "hicache-of-fp4-cache", raises="ValueError", late=True, since="0.5.23",
    bad="gpu=b200 -- --kv-cache-dtype fp4_mx_block16 --attention-backend trtllm_mha --enable-hierarchical-cache",
    good="gpu=b200 -- --kv-cache-dtype fp8_e4m3 --attention-backend trtllm_mha --enable-hierarchical-cache",
)  # fmt: skip
def hicache_of_fp4_cache(c: Config) -> Refusal | None:
    """An FP4 cache cannot be copied to host memory.

    Its block scales are kept apart from the values, and the hierarchical cache moves values only. Use `--kv-cache-dtype fp8_e4m3`, or no
    hierarchical cache.
    """
    if c.kv_cache_dtype in ("fp8_e4m3", "mxfp8") or not c.enable_hierarchical_cache:
        return None
    if c.model.is_mambaish or separate_windows(c) or c.model.is_deepseek_dsa:
        return None
    return Refusal(
        at="enable_hierarchical_cache",
        related_fields=("kv_cache_dtype",),
        message=f"{c.shown('enable_hierarchical_cache')} is refused with {c.shown('kv_cache_dtype')} when the host cache is built: it has "
        "no place for the scales of an FP4 cache.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), dropping("enable_hierarchical_cache")),
    )


@narrow_caches.refuses(
    "SPC1088", "mxfp8-cache-without-scales", raises="RuntimeError", late=True, since="0.5.16",
    sglang="layers/attention/flashattention_backend.py:_mxfp8_sf_kwargs",
    bad="gpu=b200 -- --kv-cache-dtype mxfp8 --attention-backend fa4",
    good="""gpu=b200 -- --kv-cache-dtype mxfp8 --json-model-override-args '{"architectures": ["InklingForConditionalGeneration"]}'""",
)  # fmt: skip
def mxfp8_cache_without_scales(c: Config) -> Refusal | None:
    """Only Inkling, on fa4, writes the scales of an MXFP8 cache.

    An MXFP8 cache has a scale for every 32 values, which a model computes beside its keys and values. Inkling's attention does; with other
    models, or on another backend, the server stops at the first prefill. `fp8_e4m3` has no such scales.
    """
    if c.kv_cache_dtype != "mxfp8" or c.model.uses_mla or c.model.is_deepseek_v4 or c.model.is_minimax_sparse:
        return None
    if "fa4" in backends_of(c):
        at, why = "model_path", f"{c.model.architecture} computes none"
        if c.model.architecture.startswith("Inkling"):
            return None
    else:
        at, why = backend_field(c, "prefill"), "only fa4 reads them"
        if c.page_size == 128 and c.dcp_size <= 1:  # written without scales, and read as plain FP8
            return None
    return Refusal(
        at="kv_cache_dtype",
        related_fields=(at,),
        message=f"{c.shown('kv_cache_dtype')} is refused at the first prefill: its cache needs scales for 32 values each, and {why}. Use "
        "`fp8_e4m3`.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), dropping("kv_cache_dtype")),
    )


@narrow_caches.refuses(
    "SPC1049", "fp4-cache-on-flashinfer", raises="ValueError", late=True, since="0.5.16",
    sglang="layers/attention/flashinfer_backend.py:_check_kv_attention_access",
    bad="--kv-cache-dtype fp4_mx_block16 --prefill-attention-backend triton --decode-attention-backend flashinfer",
    good="--kv-cache-dtype fp4_mx_block16 --attention-backend triton",
)  # fmt: skip
def fp4_cache_on_flashinfer(c: Config) -> Refusal | None:
    """FlashInfer does not read this FP4 cache.

    It prefills from an NVFP4 cache only; `triton`, `torch_native`, `flex_attention` and `trtllm_mha` read `fp4_mx_block16`.
    """
    if c.kv_cache_dtype not in ("nvfp4", "fp4_mx_block16") or c.model.uses_mla:
        return None
    if c.model.is_mambaish or c.model.is_hybrid_swa():
        return None
    prefill, decode = backends_of(c)
    if decode != "flashinfer" and (prefill != "flashinfer" or c.kv_cache_dtype == "nvfp4"):
        return None
    field = backend_field(c, "decode" if decode == "flashinfer" else "prefill")
    return value_refused(
        c,
        field,
        f"does not read a cache in {c.kv_cache_dtype}, and SGLang stops when it builds the attention backend.",
        "kv_cache_dtype",
        fixes=(setting(**{field: "triton"}), setting(kv_cache_dtype="fp8_e4m3"), dropping(field)),
    )


@narrow_caches.refuses(
    "SPC455", "cache-scales-of-other-class", raises="RuntimeError", late=True,
    sglang="model_executor/model_runner_components/load_model_utils.py:load_kv_cache_scales",
    earlier=(Earlier("0.5.17", "model_executor/model_runner.py:load_model"),),
    bad="model=qwen3-30b-a3b -- --tp-size 2 --kv-cache-dtype fp8_e4m3 --quantization-param-path /scales.json",
    good=(
        "--kv-cache-dtype fp8_e4m3 --quantization-param-path /scales.json",
        "model=qwen3-30b-a3b -- --tp-size 2 --kv-cache-dtype fp8_e4m3",
    ),
)  # fmt: skip
def cache_scales_of_other_class(c: Config) -> Refusal | None:
    """This model's class cannot read scales of the KV cache from a file.

    `--quantization-param-path` names a file of scales for an FP8 cache, which the classes of Llama, Qwen2, Qwen3 and a few more read.
    Without it the scales are those of the checkpoint, or 1.
    """
    if c.quantization_param_path is None or c.kv_cache_dtype != "fp8_e4m3":
        return None
    facts, name = served_class(c, c.model), c.model.architecture
    if facts is None or "kv_scales" in facts.supports:
        return None
    return Refusal(
        at="quantization_param_path",
        related_fields=("model_path", "kv_cache_dtype"),
        message=f"{c.shown('quantization_param_path')} is refused for {name} once the weights are loaded: its class reads no scales from "
        "a file.",
    )


# --- encoders -------------------------------------------------------------------------------------------------------

encoders = Handler(
    "disaggregation/encoder/runtime.py:launch_dp_runtime", since="0.5.15", rare=True, when=lambda c: bool(c.encoder_only),
    earlier=(Earlier("0.5.19", "disaggregation/encode_server.py:_launch_server_dp"),),
)  # fmt: skip


@encoders.refuses(
    "SPC456", "encoder-copies-over-ranks", raises="ValueError", late=True,
    bad="--model-path Qwen/Qwen2.5-VL-7B-Instruct --encoder-only --dp-size 2 --tp-size 2",
    good=("--model-path Qwen/Qwen2.5-VL-7B-Instruct --encoder-only --dp-size 2",
    "--model-path Qwen/Qwen2.5-VL-7B-Instruct --encoder-only --tp-size 2"),
)  # fmt: skip
def encoder_copies_over_ranks(c: Config) -> Refusal | None:
    """An encoder server has copies or tensor parallelism, not both.

    `--encoder-only` with `--dp-size` starts one process for each copy of the encoder, on one GPU each.
    """
    if c.dp_size <= 1 or c.tp_size == 1:
        return None
    return Refusal(
        at=c.first_given("dp_size", "tp_size"),
        related_fields=("encoder_only", "tp_size"),
        message=f"`--encoder-only` is refused with {c.shown('dp_size')} and {c.shown('tp_size')} when the encoder starts: copies run on "
        "one GPU each.",
        fixes=(setting(tp_size=1), dropping("dp_size")),
    )
