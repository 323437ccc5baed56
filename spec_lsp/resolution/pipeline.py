"""SGLang's resolution order, release by release.

Each line names a handler (or a tuple of handlers) of a module of this package, in the order SGLang calls them, or one that is not
followed (`NOT_FOLLOWED`). Where
not all releases of an order call it, `since` is the first that does and `until` the first that does not. From 0.5.19
on the order is that of arg_groups/pipeline.py (run_resolution_pipeline), before it that of ServerArgs.__post_init__;
after it come ServerArgs.check_server_args and what the server refuses later, with the weights loaded (`late`).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from spec_lsp.catalog.release import Release
from spec_lsp.resolution.engine import Handler, in_release

ORDER_0_5_15 = """
parallel.handle_deprecated_dp_attention since 0.5.22
mega_moe.handle_mega_moe since 0.5.19
expert_exchange.handle_moe_runner_backend_alias since 0.5.18 until 0.5.19
serving.handle_return_hidden_states_mode since 0.5.17
serving.handle_media_url_security since 0.5.18
serving.handle_watermark_config since 0.5.22
hicache.handle_hicache_ratio_default since 0.5.18
memory.handle_offload_compatibility since 0.5.20
early_validation.validate_prefill_decode_interval since 0.5.19
early_validation.validate_response_store since 0.5.20
early_validation.validate_sampling_mask_max_tokens since 0.5.20
early_validation.handle_aux_hidden_state_capture since 0.5.23
context_parallel.validate_prefill_cp_platform since 0.5.20
platform.handle_hardware_runtime_validation since 0.5.19
model_path.handle_model_source_paths
model.apply_muse_spark_env_defaults since 0.5.23
serving.handle_multimodal
serving.handle_ssl_validation
serving.handle_asr_validation
serving.validate_default_chat_template_kwargs since 0.5.16 until 0.5.18
serving.handle_deprecated_args
serving.handle_prefill_delayer_env_compat
platform.find_device
serving.handle_missing_default_values
model_path.handle_expert_pack since 0.5.19
disaggregation.handle_pd_disaggregation
context_parallel.handle_legacy_cp_arguments until 0.5.20
kv_cache.validate_prefill_only_disable_kv_cache_args
context_parallel.handle_dcp_validation until 0.5.20
context_parallel.handle_decode_context_parallelism since 0.5.20
model.build_model_config
cuda_graph.apply_inkling_prefill_cuda_graph_default since 0.5.16
cuda_graph.apply_muse_glimmer_prefill_cuda_graph_max_bs_default since 0.5.18
parallel.handle_dwdp since 0.5.17
cuda_graph.handle_cuda_graph_config
memory.apply_glm5_chunked_prefill_default since 0.5.20 until 0.5.22
platform.handle_hpu_backends
platform.handle_cpu_backends
platform.handle_npu_backends
platform.handle_mps_backends
platform.handle_xpu_backends
platform.handle_symm_mem_device_support since 0.5.19
platform.handle_platform_defaults
memory.handle_gpu_memory_settings
model.handle_model_specific_adjustments
early_validation.default_unset_prefill_decode_interval since 0.5.20
memory.handle_offload_compatibility since 0.5.20
attention.sampling_backend_default
attention.handle_deterministic_inference
kv_cache.handle_nvfp4_prefill_kv_dequant_dtype since 0.5.21
attention.handle_attention_backend_compatibility
cuda_graph.disable_prefill_cuda_graph_for_deepseek_trtllm_mla
linear_attention.handle_mamba_backend
linear_attention.handle_int8_mamba_checkpoint
linear_attention.handle_linear_attn_backend
cuda_graph.apply_glm5_prefill_cuda_graph_policy since 0.5.20 until 0.5.22
kv_cache.handle_kv4_compatibility
kv_cache.handle_mxfp8_kv_cache_compatibility since 0.5.16
attention.page_size_default
platform.handle_amd_specifics
platform.handle_nccl_pre_warm
serving.handle_grammar_backend
attention.handle_multi_item_scoring
kv_cache.handle_prefill_only_disable_kv_cache
hicache.handle_hicache
parallel.handle_data_parallelism
serving.handle_load_balance_method
context_parallel.handle_legacy_cp_arguments until 0.5.20
context_parallel.handle_context_parallelism
cuda_graph.apply_prefill_cp_cuda_graph_default since 0.5.23
kv_sharding.handle_kv_cache_sharding since 0.5.22
moe.handle_moe_kernel_config
expert_exchange.handle_a2a_moe
expert_parallel.handle_shared_experts_tp since 0.5.21
expert_parallel.handle_eplb_and_dispatch
expert_parallel.handle_expert_distribution_metrics
expert_parallel.handle_elastic_ep
early_validation.validate_experimental_sgl_marlin since 0.5.16
parallel.pipeline_parallel_overlap_disable
speculative.handle_speculative_decoding
speculative.resolve_boundary_reduction since 0.5.21
parallel.handle_layernorm_sp since 0.5.19
linear_attention.validate_gdn_replayssm_spec_ring since 0.5.16 until 0.5.17
expert_exchange.validate_cutedsl_a2a_token_budget until 0.5.22
expert_exchange.validate_flashinfer_a2a_token_budget since 0.5.22
mega_moe.validate_mega_moe_token_budget_for_model since 0.5.21
model_path.handle_load_format
disaggregation.handle_encoder_disaggregation
serving.handle_tokenizer_batching
serving.handle_environment_variables
kv_cache.handle_cache_compatibility
unified_memory.handle_page_major_kv_layout
unified_memory.handle_unified_memory_pool
serving.handle_dllm_inference
serving.handle_crash_dump_env
serving.handle_debug_utils
early_validation.handle_other_validations
model.handle_model_capability_adjustments since 0.5.16
platform.handle_nvidia_megakernel since 0.5.23
platform.handle_amd_monokernel since 0.5.23
cuda_graph.finalize_cuda_graph_prefill_max_context since 0.5.21
kv_sharding.handle_kv_cache_sharding since 0.5.22
expert_exchange.validate_deepep_v2_speculative_draft since 0.5.19
expert_exchange.validate_deepep_v2_dispatch_token_budget since 0.5.19
validation.check_server_args
model.fill_fallbacks since 0.5.20
parallel.report_dp_attention since 0.5.22
"""
"""0.5.15 and later."""

ORDER_0_5_12 = """
model_path.maybe_download_model_for_runai
serving.handle_load_balance_method
serving.handle_multimodal
serving.handle_ssl_validation
serving.handle_asr_validation since 0.5.13
disaggregation.handle_pd_disaggregation
context_parallel.handle_legacy_cp_arguments since 0.5.14
kv_cache.validate_prefill_only_disable_kv_cache_args since 0.5.12
serving.handle_deprecated_args
serving.handle_prefill_delayer_env_compat
platform.find_device
serving.handle_missing_default_values
model.build_model_config since 0.5.14
cuda_graph.handle_cuda_graph_config since 0.5.14
platform.handle_hpu_backends
platform.handle_cpu_backends
platform.handle_npu_backends
platform.handle_mps_backends
platform.handle_xpu_backends
platform.handle_platform_defaults
model.build_model_config until 0.5.14
cuda_graph.handle_piecewise_cuda_graph until 0.5.14
memory.handle_gpu_memory_settings
model.handle_model_specific_adjustments
attention.sampling_backend_default
attention.handle_deterministic_inference
attention.handle_attention_backend_compatibility
linear_attention.handle_mamba_backend
linear_attention.handle_int8_mamba_checkpoint since 0.5.14
linear_attention.handle_linear_attn_backend
kv_cache.handle_kv4_compatibility
attention.page_size_default
platform.handle_amd_specifics
platform.handle_nccl_pre_warm
serving.handle_grammar_backend
attention.handle_multi_item_scoring
kv_cache.handle_prefill_only_disable_kv_cache since 0.5.12
hicache.handle_hicache
parallel.handle_data_parallelism
context_parallel.handle_legacy_cp_arguments since 0.5.14
context_parallel.handle_context_parallelism
moe.handle_moe_kernel_config
expert_exchange.handle_a2a_moe
expert_parallel.handle_eplb_and_dispatch
expert_parallel.handle_expert_distribution_metrics
expert_parallel.handle_elastic_ep
parallel.pipeline_parallel_overlap_disable
speculative.handle_speculative_decoding
expert_exchange.validate_cutedsl_a2a_token_budget since 0.5.13
model_path.handle_load_format
disaggregation.handle_encoder_disaggregation
serving.handle_tokenizer_batching
serving.handle_environment_variables
kv_cache.handle_cache_compatibility
serving.handle_dllm_inference
serving.handle_crash_dump_env since 0.5.13
serving.handle_debug_utils
early_validation.handle_other_validations
validation.check_server_args
"""
"""0.5.12 to 0.5.14: disaggregation and load balancing come first."""

_DETERMINISTIC = "attention.handle_deterministic_inference\n"
_DLLM = "serving.handle_dllm_inference\n"
ORDER_0_5_11 = ORDER_0_5_12.replace(_DETERMINISTIC, "").replace(_DLLM, _DETERMINISTIC + _DLLM)
"""0.5.11: as 0.5.12, with deterministic inference still after speculative decoding."""

ORDER_0_5_8 = """
model_path.maybe_download_model_for_runai since 0.5.10
serving.handle_load_balance_method
serving.handle_ssl_validation since 0.5.10
serving.handle_deprecated_args
serving.handle_prefill_delayer_env_compat
platform.find_device
serving.handle_missing_default_values
platform.handle_hpu_backends
platform.handle_cpu_backends
platform.handle_npu_backends
platform.handle_mps_backends since 0.5.10
platform.handle_xpu_backends since 0.5.10
model.build_model_config
cuda_graph.handle_piecewise_cuda_graph since 0.5.10
memory.handle_gpu_memory_settings
model.handle_model_specific_adjustments
attention.sampling_backend_default
attention.handle_attention_backend_compatibility
linear_attention.handle_mamba_backend since 0.5.9
linear_attention.handle_linear_attn_backend since 0.5.10
kv_cache.handle_kv4_compatibility
attention.page_size_default
platform.handle_amd_specifics
platform.handle_nccl_pre_warm since 0.5.10
serving.handle_grammar_backend
hicache.handle_hicache
parallel.handle_data_parallelism
context_parallel.handle_context_parallelism since 0.5.9
moe.handle_moe_kernel_config
expert_exchange.handle_a2a_moe
expert_parallel.handle_eplb_and_dispatch
expert_parallel.handle_expert_distribution_metrics
expert_parallel.handle_elastic_ep
parallel.pipeline_parallel_overlap_disable
speculative.handle_speculative_decoding
model_path.handle_load_format
disaggregation.handle_pd_disaggregation
disaggregation.handle_encoder_disaggregation
serving.handle_tokenizer_batching
serving.handle_environment_variables
kv_cache.handle_cache_compatibility
attention.handle_deterministic_inference
serving.handle_dllm_inference
serving.handle_debug_utils
early_validation.handle_other_validations
validation.check_server_args
"""
"""0.5.8 to 0.5.10: disaggregation and deterministic inference come after speculative decoding."""

ORDER_0_5_7 = """
serving.handle_deprecated_args
platform.find_device
serving.handle_missing_default_values
platform.handle_hpu_backends
platform.handle_cpu_backends
platform.handle_npu_backends
model.build_model_config
memory.handle_gpu_memory_settings
model.handle_model_specific_adjustments
hicache.handle_hicache
attention.sampling_backend_default
attention.handle_attention_backend_compatibility
kv_cache.handle_kv4_compatibility
attention.page_size_default
platform.handle_amd_specifics
serving.handle_grammar_backend
parallel.handle_data_parallelism
moe.handle_moe_kernel_config
expert_exchange.handle_a2a_moe
expert_parallel.handle_eplb_and_dispatch
expert_parallel.handle_expert_distribution_metrics
expert_parallel.handle_elastic_ep
parallel.pipeline_parallel_overlap_disable
speculative.handle_speculative_decoding
model_path.handle_load_format
disaggregation.handle_pd_disaggregation
disaggregation.handle_encoder_disaggregation
serving.handle_tokenizer_batching
serving.handle_environment_variables
kv_cache.handle_cache_compatibility
attention.handle_deterministic_inference
serving.handle_dllm_inference
serving.handle_debug_utils
early_validation.handle_other_validations
validation.check_server_args
"""
"""0.5.7: as 0.5.8, with the hierarchical cache before the attention backend."""

ORDER_0_5_3 = """
serving.handle_deprecated_args
platform.find_device
serving.handle_missing_default_values
model.build_model_config
memory.handle_gpu_memory_settings
early.graph_sizes until 0.5.4
platform.handle_hpu_backends
platform.handle_cpu_backends
platform.handle_npu_backends since 0.5.6.post1
cuda_graph.handle_compilation_cfg since 0.5.6.post2
early.model_specific_adjustments until 0.5.6
model.handle_model_specific_adjustments since 0.5.6
hicache.handle_hicache since 0.5.4
attention.sampling_backend_default
attention.handle_attention_backend_compatibility
attention.page_size_default
platform.handle_amd_specifics
serving.handle_grammar_backend
parallel.handle_data_parallelism
moe.handle_moe_kernel_config
expert_exchange.handle_a2a_moe
expert_parallel.handle_eplb_and_dispatch
expert_parallel.handle_expert_distribution_metrics
parallel.pipeline_parallel_overlap_disable
early.hicache until 0.5.4
speculative.handle_speculative_decoding
model_path.handle_load_format
disaggregation.handle_pd_disaggregation
serving.handle_tokenizer_batching
serving.handle_environment_variables
kv_cache.handle_cache_compatibility
serving.handle_metrics_labels since 0.5.6
attention.handle_deterministic_inference
serving.handle_request_metrics_exporters since 0.5.6
serving.handle_dllm_inference since 0.5.6
early_validation.handle_other_validations
expert_parallel.handle_elastic_ep since 0.5.4
validation.check_server_args
late.speculative_workers since 0.5.4 until 0.5.6
"""
"""0.5.3 to 0.5.6: memory settings come before the device's own, elastic EP comes last; before 0.5.6 see also early.py."""

ORDER_0_5_1 = """
early.unfollowed
early.model_specific_adjustments
attention.handle_attention_backend_compatibility
attention.page_size_default
speculative.handle_speculative_decoding
"""
"""0.5.1 and 0.5.2: what early.py says of them."""

LATE = """
late.process_groups
late.attention_backends
late.linear_attention_backends
late.sparse_attention
late.speculative_workers
late.block_drafts
late.quantization_methods
late.quantization_platforms
late.expert_runners
late.amd_experts
late.activations
late.expert_widths
late.expert_stores
late.small_floats
late.loaders
late.model_options
late.model_parallelism
late.quantization
late.moe
late.kernels
late.gpu_memory
late.caches
late.sparse_host_cache
late.v4_pools
late.narrow_caches
late.prefix_caches
late.cache_linkers
late.cache_storage
late.encoders
late.scheduler
late.cpu_graphs
late.model_runner
late.lora
late.disaggregation
late.transfer_engines
late.encoder_receivers
late.tokenizers
late.templates
late.web_server
"""
"""What the server refuses after argument resolution."""
LATE_SINCE = "0.5.6"
"""The first release whose model classes, workers and kernels were read for it."""

ORDERS: tuple[tuple[str, str], ...] = (
    ("0.5.15", ORDER_0_5_15),
    ("0.5.12", ORDER_0_5_12),
    ("0.5.11", ORDER_0_5_11),
    ("0.5.8", ORDER_0_5_8),
    ("0.5.7", ORDER_0_5_7),
    ("0.5.3", ORDER_0_5_3),
    ("0.5.1", ORDER_0_5_1),
)
"""The orders, newest first, each from the release it starts with."""


NOT_FOLLOWED: dict[str, str] = {
    "platform.handle_hardware_runtime_validation": "it asks whether MLX is installed, on Apple silicon",
    "platform.handle_mps_backends": "Apple silicon is no hardware of ours",
    "platform.handle_platform_defaults": "the defaults of platforms outside SGLang's tree",
    "model_path.handle_model_source_paths": "it fetches models of object stores; no field changes",
    "model_path.maybe_download_model_for_runai": "it fetches models of object stores; no field changes",
    "model.apply_muse_spark_env_defaults": "it sets environment variables that no step here reads",
    "serving.handle_crash_dump_env": "it sets environment variables of CUDA's core dumps; no field changes",
    "serving.handle_metrics_labels": "its refusal is a rule of validation.py",
    "serving.handle_request_metrics_exporters": "its refusal is a rule of validation.py",
}
"""What SGLang calls and we do not follow, and why. Any other name that resolves to nothing is an error."""


def names(release: Release) -> tuple[str, ...]:
    """The names of a release's handlers in SGLang's order; none for a release older than the oldest order."""
    for since, order in ORDERS:
        if release >= Release.parse(since):
            late = LATE if release >= Release.parse(LATE_SINCE) else ""
            lines = (order + late).split("\n")
            return tuple(line.split(maxsplit=1)[0] for line in lines if line and _is_in(release, line))
    return ()


def all_names() -> tuple[str, ...]:
    """The names of every order, each once."""
    lines = "\n".join([*(order for _, order in ORDERS), LATE]).split("\n")
    return tuple(dict.fromkeys(line.split()[0] for line in lines if line))


def _is_in(release: Release, line: str) -> bool:
    words = line.split()
    bounds = dict(zip(words[1::2], words[2::2], strict=True))
    return in_release(release, bounds.get("since", ""), bounds.get("until", ""))


def handlers_by_name(release: Release) -> Iterator[tuple[str, Handler]]:
    """The handlers of a shipped release in SGLang's order, each with its name here (`hicache.handle_hicache`), which may stand for several.
    None of a release older than the oldest order."""
    yield from ((name, handler) for name in names(release) for handler in _named(name))


def _named(name: str) -> tuple[Handler, ...]:
    if name in NOT_FOLLOWED:
        return ()
    module, _, attribute = name.partition(".")
    found = getattr(import_module(f"{__package__}.{module}"), attribute)
    return found if isinstance(found, tuple) else (found,)
