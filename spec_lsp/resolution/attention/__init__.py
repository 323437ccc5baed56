"""Attention backends: defaults, page sizes, KV dtypes, hardware, deterministic inference, multi-item scoring, sampling backend.

Follows arg_groups/attention_hook.py and the passes of arg_groups/overrides.py that it calls, in the order it calls them; before 0.5.15 all
of it was ServerArgs._handle_attention_backend_compatibility and its neighbours.

Left out, because a launch does not determine it: whether a Mac runs it (MPS), platforms that are plugged in from outside SGLang, and the
environment variables that deterministic inference sets for NCCL.
"""

from spec_lsp.resolution.attention import backends, defaults, deterministic, latent, scoring, trtllm_mha
from spec_lsp.resolution.attention.common import backend_field, backends_of, has_amx, has_flashinfer
from spec_lsp.resolution.attention.defaults import default_backend

sampling_backend_default = defaults.sampling_backend_default
page_size_default = defaults.page_size_default
handle_deterministic_inference = deterministic.handle_deterministic_inference
handle_multi_item_scoring = scoring.handle_multi_item_scoring

handle_attention_backend_compatibility = (
    defaults.default,
    backends.compatibility,
    latent.pages,
    latent.checks,
    latent.cutedsl,
    trtllm_mha.handler,
    backends.fa3_fp8,
    backends.fa4,
    backends.platforms,
    backends.dual_chunk,
)

__all__ = [
    "backend_field",
    "backends_of",
    "default_backend",
    "handle_attention_backend_compatibility",
    "handle_deterministic_inference",
    "handle_multi_item_scoring",
    "has_amx",
    "has_flashinfer",
    "page_size_default",
    "sampling_backend_default",
]
