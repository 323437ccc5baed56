"""Speculative decoding, one module for each family of algorithms.

Follows arg_groups/speculative_hook.py (handle_speculative_decoding and what it calls, until 0.5.12 one method of ServerArgs) and
arg_groups/boundary_reduction.py.

Left out: algorithms that plugins register, platforms from outside SGLang, files named by --speculative-adaptive-config (the fields they
decide become unknown), and whether a target's folder contains a DSpark draft (assumed to be absent if the folder is at hand, unknown if
not).
"""

from spec_lsp.resolution.speculative import boundary, dflash, dspark, eagle, general, ngram, uno

handle_speculative_decoding = (
    general.preparation,
    general.algorithm,
    general.options,
    general.adaptive_before,
    general.verify_mode,
    dflash.handler,
    uno.handler,
    dspark.handler,
    general.frozen_kv_mtp,
    *eagle.handlers,
    ngram.handler,
    general.adaptive_after,
)

resolve_boundary_reduction = boundary.handler

__all__ = ["handle_speculative_decoding", "resolve_boundary_reduction"]
