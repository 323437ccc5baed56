"""What the external cache linkers refuse: caches of models, and drafts beside them, that they cannot store.

Follows mem_cache/hybrid_cache/linker_pool_assembler.py and hybrid_pool_assembler.py (build_direct_linker_pool_group), mem_cache/registry.py
and speculative/base_spec_worker.py (_build_hicache_draft_plan).

Left out: linkers of one's own (`dynamic`), drafts whose config.json says how many of their layers predict.
"""

from __future__ import annotations

from spec_lsp.resolution.engine import Config, Handler, Refusal
from spec_lsp.resolution.kv_cache import separate_windows
from spec_lsp.resolution.late.refused import Barred, first_barred, without_one_of
from spec_lsp.resolution.late.speculative import packs_draft

LINKER = "enable_unified_cache_external_linker"

cache_linkers = Handler(
    "hybrid_cache/hybrid_pool_assembler.py:build_direct_linker_pool_group", since="0.5.20", rare=True,
    when=lambda c: bool(c.device == "cuda" and c.enable_unified_cache_external_linker and not c.disable_radix_cache),
)  # fmt: skip


def _states_beside_latent_pages(c: Config) -> bool:
    return bool(c.model.is_mambaish and not separate_windows(c))


def _unknown_cache(c: Config) -> bool:
    if c.model.is_deepseek_v4:
        return False
    if not c.model.is_mambaish:
        return not c.model.is_deepseek_dsa
    return c.before("0.5.23") or c.model.is_deepseek_dsa or not (separate_windows(c) or c.model.uses_mla)


def _unpacked_draft(c: Config) -> bool:
    """Whether the draft's cache lies beside the target's: layers of the checkpoint itself (MTP) lie in it."""
    if c.since("0.5.23") and _states_beside_latent_pages(c):
        return False
    return c.speculative_algorithm in ("EAGLE3", "DFLASH", "STANDALONE")


LINKED = (
    Barred(LINKER, _unknown_cache, "this model's cache has no place in an external store"),
    Barred(
        "dcp_size",
        lambda c: c.dcp_size > 1 and _states_beside_latent_pages(c),
        "beside recurrent states every rank has to hold whole pages",
        way_out=without_one_of("dcp_size", LINKER),
    ),
    Barred(
        "kv_cache_dtype",
        lambda c: c.kv_cache_dtype == "mxfp8" and c.model.is_mambaish and separate_windows(c),
        "it stores no scales",
        way_out=without_one_of("kv_cache_dtype", LINKER),
    ),
    Barred(
        "enable_int8_mamba_checkpoint",
        lambda c: bool(c.enable_int8_mamba_checkpoint) and c.model.is_mambaish,
        "it stores no states of INT8",
        way_out=without_one_of("enable_int8_mamba_checkpoint", LINKER),
    ),
    Barred(
        "speculative_algorithm",
        _unpacked_draft,
        "it has no place for the draft's own cache",
        "",
        without_one_of("speculative_algorithm", LINKER),
    ),
    Barred(
        "speculative_algorithm",
        lambda c: _states_beside_latent_pages(c) and packs_draft(c),
        "beside recurrent states it has no place for the layers that predict",
        way_out=without_one_of("speculative_algorithm", LINKER),
    ),
)


@cache_linkers.refuses(
    "SPC1080", "external-linker-of-other-cache", raises="ValueError", late=True,
    bad=(
        "--enable-unified-cache-external-linker",
        "sglang=0.5.22 model=kimi-linear-48b -- --tp-size 4 --enable-unified-cache-external-linker",
        "model=kimi-linear-48b -- --tp-size 4 --dcp-size 2 --enable-unified-cache-external-linker",
        "model=deepseek-v3.2 -- --tp-size 8 --enable-unified-cache-external-linker --speculative-algorithm EAGLE3 "
        "--speculative-draft-model-path {models}/eagle3-draft --speculative-num-steps 3 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 4",
    ),
    good=(
        "model=deepseek-v3.2 -- --tp-size 8 --enable-unified-cache-external-linker",
        "model=kimi-linear-48b -- --tp-size 4 --enable-unified-cache-external-linker",
        "--enable-unified-cache-external-linker --unified-cache-external-linker-backend dynamic "
        """--unified-cache-external-linker-config '{"linker": "Mine", "linker_module_path": "my.module"}'""",
    ),
)  # fmt: skip
def external_linker_of_other_cache(c: Config) -> Refusal | None:
    """SGLang's own cache linkers store the caches of few models.

    `--enable-unified-cache-external-linker` with `mooncake` or `mori` knows the caches of DeepSeek sparse attention (V3.2, GLM-5) and
    DeepSeek V4; from 0.5.23 on also those of models that have recurrent states beside latent attention (Kimi-Linear) or beside sliding
    windows. Other models have `--enable-hierarchical-cache`, or a linker of their own (`dynamic`).
    """
    if c.unified_cache_external_linker_backend == "dynamic" or c.radix_cache_backend or c.enable_lmcache:
        return None
    if c.disaggregation_mode == "decode" or c.encoder_only:
        return None
    return first_barred(
        c,
        LINKED,
        f"with {c.shown('unified_cache_external_linker_backend')} when the cache is built",
        LINKER,
        "model_path",
    )
