"""What the KV pools of DeepSeek V4, of FP4 caches and of scaled FP8 caches refuse, and servers of encoders.

Follows mem_cache/deepseek_v4_memory_pool.py, model_executor/pool_configurator.py (DSV4PoolConfigurator), mem_cache/pool_host/,
model_runner_components/load_model_utils.py and disaggregation/encoder/ (0.5.23).

Left out: sizes that the memory found at start decides, layouts of AMD's own kernels.
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Change, Config, Earlier, Handler, Refusal, dropping, dropping_env, setting
from spec_lsp.resolution.late.layout import served_class

v4_pools = Handler(
    "mem_cache/deepseek_v4_memory_pool.py:select_dsv4_kv_layout", since="0.5.12", rare=True,
    when=lambda c: c.model.is_deepseek_v4 and str(c.device).startswith("cuda"),
)  # fmt: skip

LAYOUT, OPTION = "SGLANG_DSV4_KV_LAYOUT", "SGLANG_DSV4_COMPRESSED_KV_LAYOUT"


def _layout_conflict(c: Config) -> tuple[str, tuple[str, ...], str] | None:
    """The variable to point at, the related fields, and the reason."""
    mode = (c.env.text(LAYOUT, "v4") or "").lower()
    if c.dsv4_attn_backend == "trtllm":
        option = (c.env.text(OPTION, "auto") or "").lower()
        if mode not in ("auto", "v4"):
            return LAYOUT, ("dsv4_attn_backend",), "trtllm keeps uniform FP8 pages"
        if option not in ("auto", "fp8"):
            return OPTION, ("dsv4_attn_backend",), "trtllm keeps uniform FP8 pages"
        return None
    if mode not in ("v4", "v41", "v41_new", "auto"):
        return LAYOUT, (), "the layouts are v4, v41, v41_new and auto"
    if mode in ("v41", "v41_new") and c.gpu.is_cuda and not c.gpu.sm100:
        return LAYOUT, (), f"the layouts of V4.1 need SM100, which {c.gpu.title} is not"
    return None


@v4_pools.refuses(
    "SPC451", "v4-layout-that-cannot-be", raises="AssertionError", late=True, since="0.5.21",
    bad=(f"model=v4 {LAYOUT}=v41 -- --tp-size 8", f"gpu=b200 model=v4 {LAYOUT}=v42 -- --tp-size 8"),
    good=(f"gpu=b200 model=v4 {LAYOUT}=v41 -- --tp-size 8", f"model=v4 {LAYOUT}=auto -- --tp-size 8"),
)  # fmt: skip
def v4_layout_that_cannot_be(c: Config) -> Refusal | None:
    """DeepSeek V4's cache has no such layout here.

    `SGLANG_DSV4_KV_LAYOUT` is v4, v41, v41_new or auto. The layouts of V4.1 exist for SM100 (B200, GB200, B300); `--dsv4-attn-backend
    trtllm` has pages of its own.
    """
    if c.env.text(LAYOUT, "v4") == "v4" and c.dsv4_attn_backend != "trtllm":
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


# --- caches of few bits ---------------------------------------------------------------------------------------------

narrow_caches = Handler(
    "mem_cache/pool_host/mha.py:__init__",
    when=lambda c: bool(c.device == "cuda") and str(c.kv_cache_dtype) in ("fp8_e4m3", "nvfp4", "fp4_mx_block16"),
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
    if c.kv_cache_dtype == "fp8_e4m3" or not c.enable_hierarchical_cache:
        return None
    if c.model.is_mambaish or c.model.is_hybrid_swa(bool(c.disable_hybrid_swa_memory)) or c.model.is_deepseek_dsa:
        return None
    return Refusal(
        at="enable_hierarchical_cache",
        related_fields=("kv_cache_dtype",),
        message=f"{c.shown('enable_hierarchical_cache')} is refused with {c.shown('kv_cache_dtype')} when the host cache is built: it has "
        "no place for the scales of an FP4 cache.",
        fixes=(setting(kv_cache_dtype="fp8_e4m3"), dropping("enable_hierarchical_cache")),
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
    if facts is None or "kv_scales" in facts.loads:
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
