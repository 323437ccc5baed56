"""SGLang's resolution order, release by release.

Each name is a handler (or a tuple of handlers) of a module of this package, called as SGLang calls it. From 0.5.19 on the order is
that of arg_groups/pipeline.py (run_resolution_pipeline), before it that of ServerArgs.__post_init__; after it come
ServerArgs.check_server_args and what the server refuses later, with the weights loaded (`late`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from spec_lsp.catalog.release import Release
from spec_lsp.resolution.engine import Handler

ORDER_0_5_23 = """
parallel.handle_deprecated_dp_attention
mega_moe.handle_mega_moe
serving.handle_return_hidden_states_mode
serving.handle_media_url_security
serving.handle_watermark_config
hicache.handle_hicache_ratio_default
memory.handle_offload_compatibility
validation.validate_prefill_decode_interval
validation.validate_response_store
validation.validate_sampling_mask_max_tokens
validation.handle_aux_hidden_state_capture
parallel.validate_prefill_cp_platform
platform.handle_hardware_runtime_validation
model_path.handle_model_source_paths
model.apply_muse_spark_env_defaults
serving.handle_multimodal
serving.handle_ssl_validation
serving.handle_asr_validation
serving.handle_deprecated_args
serving.handle_prefill_delayer_env_compat
serving.handle_missing_default_values
model_path.handle_expert_pack
disaggregation.handle_pd_disaggregation
kv_cache.validate_prefill_only_disable_kv_cache_args
parallel.handle_decode_context_parallelism
cuda_graph.apply_inkling_prefill_cuda_graph_default
cuda_graph.apply_muse_glimmer_prefill_cuda_graph_max_bs_default
parallel.handle_dwdp
cuda_graph.handle_cuda_graph_config
platform.handle_hpu_backends
platform.handle_cpu_backends
platform.handle_npu_backends
platform.handle_mps_backends
platform.handle_xpu_backends
platform.handle_symm_mem_device_support
platform.handle_platform_defaults
memory.handle_gpu_memory_settings
model.handle_model_specific_adjustments
validation.default_unset_prefill_decode_interval
memory.handle_offload_compatibility
attention.sampling_backend_default
attention.handle_deterministic_inference
kv_cache.handle_nvfp4_prefill_kv_dequant_dtype
attention.handle_attention_backend_compatibility
cuda_graph.disable_prefill_cuda_graph_for_deepseek_trtllm_mla
linear_attention.handle_mamba_backend
linear_attention.handle_int8_mamba_checkpoint
linear_attention.handle_linear_attn_backend
kv_cache.handle_kv4_compatibility
kv_cache.handle_mxfp8_kv_cache_compatibility
attention.page_size_default
platform.handle_amd_specifics
platform.handle_nccl_pre_warm
serving.handle_grammar_backend
attention.handle_multi_item_scoring
kv_cache.handle_prefill_only_disable_kv_cache
hicache.handle_hicache
parallel.handle_data_parallelism
serving.handle_load_balance_method
parallel.handle_context_parallelism
cuda_graph.apply_prefill_cp_cuda_graph_default
kv_cache.handle_kv_cache_sharding
moe.handle_moe_kernel_config
moe.handle_a2a_moe
parallel.handle_shared_experts_tp
parallel.handle_eplb_and_dispatch
parallel.handle_expert_distribution_metrics
parallel.handle_elastic_ep
validation.validate_experimental_sgl_marlin
parallel.pipeline_parallel_overlap_disable
speculative.handle_speculative_decoding
speculative.resolve_boundary_reduction
parallel.handle_layernorm_sp
moe.validate_flashinfer_a2a_token_budget
mega_moe.validate_mega_moe_token_budget_for_model
model_path.handle_load_format
disaggregation.handle_encoder_disaggregation
serving.handle_tokenizer_batching
serving.handle_environment_variables
kv_cache.handle_cache_compatibility
kv_cache.handle_page_major_kv_layout
kv_cache.handle_unified_memory_pool
serving.handle_dllm_inference
serving.handle_crash_dump_env
serving.handle_debug_utils
validation.handle_other_validations
model.handle_model_capability_adjustments
platform.handle_nvidia_megakernel
platform.handle_amd_monokernel
cuda_graph.finalize_cuda_graph_prefill_max_context
kv_cache.handle_kv_cache_sharding
moe.validate_deepep_v2_speculative_draft
moe.validate_deepep_v2_dispatch_token_budget
validation.check_server_args
late.attention_backends
late.linear_attention_backends
late.speculative_workers
late.model_parallelism
late.quantization
late.moe
late.lora
late.disaggregation
"""

ORDERS: tuple[tuple[str, str], ...] = (("0.5.19", ORDER_0_5_23),)
"""The orders, newest first, each from the release it starts with."""


@cache
def pipeline(release: Release) -> tuple[Handler, ...]:
    """The handlers of a release in SGLang's order; empty for a release older than the oldest order."""
    for since, order in ORDERS:
        if release >= Release.parse(since):
            return tuple(handler for name in order.split() for handler in _named(name))
    return ()


def _named(name: str) -> tuple[Handler, ...]:
    module, _, attribute = name.partition(".")
    try:
        found = getattr(import_module(f"{__package__}.{module}"), attribute, ())
    except ModuleNotFoundError:
        return ()
    return found if isinstance(found, tuple) else (found,)
