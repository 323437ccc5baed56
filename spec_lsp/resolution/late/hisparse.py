"""What the sparse cache in host memory (HiSparse) refuses when it is built: options out of range, drafts it cannot verify.

Follows mem_cache/sparsity/factory.py (_parse_sparse_config) and managers/hisparse_coordinator.py (HiSparseSpecSwapManager).

Left out: how many requests a GPU buffer serves, which the memory found at start decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from spec_lsp.resolution.engine import Config, Handler, Refusal, dropping, setting
from spec_lsp.resolution.late.refused import value_refused

sparse_host_cache = Handler(
    "mem_cache/sparsity/factory.py:_parse_sparse_config", since="0.5.12",
    when=lambda c: bool(c.device == "cuda" and c.enable_hisparse),
)  # fmt: skip


def _options(c: Config) -> Mapping[str, object] | None:
    """The options; None if they are no JSON."""
    text = c.hisparse_config
    try:
        value = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return None
    return value if isinstance(value, dict) else {}


@sparse_host_cache.refuses(
    "SPC1034", "hisparse-options-not-json", raises="ValueError", late=True,
    bad="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache --hisparse-config top_k=2048",
    good="""model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache --hisparse-config '{"top_k": 2048}'""",
)  # fmt: skip
def hisparse_options_not_json(c: Config) -> Refusal | None:
    """The options of the sparse host cache are a JSON object.

    SGLang reads `--hisparse-config` when it builds the caches.
    """
    if _options(c) is not None:
        return None
    return value_refused(
        c, "hisparse_config", "is no JSON, and SGLang stops when it builds the caches. Remove it.", "enable_hisparse"
    )


def _chosen_tokens(c: Config) -> int | None:
    """How many tokens MiniMax-M3's sparse attention chooses for a query (MiniMaxSparseAttnBackend); None for other models."""
    sparse = (
        (c.model.text_hf("sparse_attention_config") or {}) if c.model.is_minimax_sparse and c.since("0.5.21") else {}
    )
    blocks, size = sparse.get("sparse_topk_blocks"), sparse.get("sparse_block_size")
    return blocks * size if isinstance(blocks, int) and isinstance(size, int) else None


def _wrong_option(options: Mapping[str, object], c: Config) -> str | None:
    top_k, block = options.get("top_k", 2048), options.get("swap_in_block_size", 960)
    buffer = options.get("device_buffer_size")
    if isinstance(top_k, int) and isinstance(buffer, int) and buffer < top_k:
        return f"`device_buffer_size` {buffer} does not hold the {top_k} tokens of `top_k`"
    chosen = _chosen_tokens(c)
    if buffer is None and isinstance(top_k, int):
        buffer = 2 * top_k
    if chosen is not None and isinstance(buffer, int) and buffer < chosen:
        return f"`device_buffer_size` {buffer} does not hold the {chosen} tokens that this model's sparse attention chooses"
    if c.since("0.5.15") and (not isinstance(block, int) or isinstance(block, bool) or not 0 < block <= 1024):
        return "`swap_in_block_size` is a whole number from 1 to 1024"
    return None


@sparse_host_cache.refuses(
    "SPC1083", "hisparse-options-out-of-range", raises="ValueError", late=True,
    bad="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache --hisparse-config "
    """'{"top_k": 2048, "device_buffer_size": 1024}'""",
    good="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache --hisparse-config "
    """'{"top_k": 2048, "device_buffer_size": 4096}'""",
)  # fmt: skip
def hisparse_options_out_of_range(c: Config) -> Refusal | None:
    """The options of the sparse host cache contradict each other.

    In `--hisparse-config`, `device_buffer_size` counts the tokens that stay on the GPU for each request: at least the `top_k` (2048) that
    are attended to, and for MiniMax-M3 the blocks its config.json names. `swap_in_block_size` is the kernel's block, at most 1024.
    """
    why = _wrong_option(_options(c) or {}, c)
    if why is None:
        return None
    return value_refused(c, "hisparse_config", f"is refused when the caches are built: {why}.", "enable_hisparse")


SPARSE_SPAN, MOST_DRAFTED = range(2, 5), 8192
"""How many drafted tokens the sparse host cache verifies, and how many rows it swaps in for them (HiSparseSpecSwapManager)."""


def _no_swap_of_drafts(c: Config) -> str | None:
    tokens = c.speculative_num_draft_tokens
    if c.model.is_deepseek_v4:
        return "drafts are verified on caches of DeepSeek sparse attention only"
    top_k = c.model.text_hf("index_topk") or (_options(c) or {}).get("top_k", 2048)
    if not isinstance(top_k, int) or not isinstance(tokens, int):
        return None
    if tokens not in SPARSE_SPAN:
        return f"it verifies 2 to 4 drafted tokens, not {tokens}"
    if top_k < 1024:
        return f"drafts need a `top_k` of 1024 or more, not {top_k}"
    if tokens * top_k > MOST_DRAFTED:
        return f"{tokens} drafted tokens times a `top_k` of {top_k} exceed its {MOST_DRAFTED} rows"
    return None


@sparse_host_cache.refuses(
    "SPC1084", "drafts-on-sparse-host-cache", raises="ValueError", late=True, since="0.5.22",
    sglang="managers/hisparse_coordinator.py:__init__",
    bad="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache --speculative-algorithm EAGLE "
    "--speculative-num-steps 5 --speculative-eagle-topk 1 --speculative-num-draft-tokens 6",
    good="model=deepseek-v3.2 -- --tp-size 8 --enable-hisparse --disable-radix-cache --speculative-algorithm EAGLE "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
)  # fmt: skip
def drafts_on_sparse_host_cache(c: Config) -> Refusal | None:
    """The sparse host cache verifies few drafted tokens.

    `--enable-hisparse` swaps in the tokens that each drafted token attends to: 2 to 4 drafted tokens, and 8192 rows at most. DeepSeek V4's
    sparse host cache verifies no drafts.
    """
    if c.speculative_algorithm is None or not c.speculative_num_draft_tokens:
        return None
    why = _no_swap_of_drafts(c)
    if why is None:
        return None
    shorter = setting(speculative_num_steps=3, speculative_num_draft_tokens=4)
    return value_refused(
        c,
        "speculative_num_draft_tokens" if c.given("speculative_num_draft_tokens") else "speculative_algorithm",
        f"is refused with {c.shown('enable_hisparse')} when the caches are built: {why}.",
        "speculative_algorithm",
        "enable_hisparse",
        fixes=(
            *((shorter,) if c.speculative_algorithm in ("EAGLE", "EAGLE3") else ()),
            dropping("speculative_algorithm"),
            dropping("enable_hisparse"),
        ),
    )
