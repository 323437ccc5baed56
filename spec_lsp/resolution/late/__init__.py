"""What the server refuses after argument resolution, with the weights loaded: one module for each topic.

The rules are marked `late`; they read the resolved configuration. A launch that argument resolution refuses never gets here.
"""

from spec_lsp.resolution.late.activations import activations
from spec_lsp.resolution.late.adapters import lora
from spec_lsp.resolution.late.attention import attention_backends
from spec_lsp.resolution.late.block_drafts import block_drafts
from spec_lsp.resolution.late.caches import caches
from spec_lsp.resolution.late.expert_widths import expert_widths
from spec_lsp.resolution.late.experts import moe
from spec_lsp.resolution.late.groups import process_groups
from spec_lsp.resolution.late.hisparse import sparse_host_cache
from spec_lsp.resolution.late.kernels import kernels
from spec_lsp.resolution.late.layout import model_parallelism
from spec_lsp.resolution.late.linear_attention import linear_attention_backends
from spec_lsp.resolution.late.linkers import cache_linkers
from spec_lsp.resolution.late.loading import loaders, tokenizers
from spec_lsp.resolution.late.memory import gpu_memory
from spec_lsp.resolution.late.methods import quantization_methods, quantization_platforms
from spec_lsp.resolution.late.options import model_options
from spec_lsp.resolution.late.pools import encoders, narrow_caches, v4_pools
from spec_lsp.resolution.late.runners import amd_experts, expert_runners, expert_stores
from spec_lsp.resolution.late.scheduling import cpu_graphs, scheduler
from spec_lsp.resolution.late.small_floats import small_floats
from spec_lsp.resolution.late.sparse_attention import sparse_attention
from spec_lsp.resolution.late.speculative import speculative_workers
from spec_lsp.resolution.late.startup import model_runner
from spec_lsp.resolution.late.storage import cache_storage
from spec_lsp.resolution.late.transfer import disaggregation, encoder_receivers, transfer_engines
from spec_lsp.resolution.late.trees import prefix_caches
from spec_lsp.resolution.late.web import templates, web_server
from spec_lsp.resolution.late.weights import quantization

__all__ = [
    "activations",
    "amd_experts",
    "attention_backends",
    "block_drafts",
    "cache_linkers",
    "cache_storage",
    "caches",
    "cpu_graphs",
    "disaggregation",
    "encoder_receivers",
    "encoders",
    "expert_runners",
    "expert_stores",
    "expert_widths",
    "gpu_memory",
    "kernels",
    "linear_attention_backends",
    "loaders",
    "lora",
    "model_options",
    "model_parallelism",
    "model_runner",
    "moe",
    "narrow_caches",
    "prefix_caches",
    "process_groups",
    "quantization",
    "quantization_methods",
    "quantization_platforms",
    "scheduler",
    "small_floats",
    "sparse_attention",
    "sparse_host_cache",
    "speculative_workers",
    "templates",
    "tokenizers",
    "transfer_engines",
    "v4_pools",
    "web_server",
]
