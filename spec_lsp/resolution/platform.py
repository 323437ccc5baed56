"""What the platform decides before anything else is chosen: backends of CPU, NPU, XPU and HPU, AMD's own settings.

Follows arg_groups/platform_hook.py, hardware_backend/npu/utils.py (set_default_server_args) and the kernel_plugins
bindings.

Left out, beside what `pipeline.NOT_FOLLOWED` names: whether a kernel plug-in is installed and serves the model
(handle_nvidia_megakernel, handle_amd_monokernel). The launch does not say, so only the pair of flags is refused.
"""

from __future__ import annotations

from spec_lsp.facts.known import NotKnown
from spec_lsp.resolution.cuda_graph import (
    DECODE,
    DISABLED,
    FULL,
    PIECEWISE,
    PREFILL,
    backend_of,
    disable,
    is_locked,
)
from spec_lsp.resolution.engine import Config, Earlier, Handler, Refusal, dropping, setting, setting_env


def _earlier(name: str) -> tuple[Earlier, ...]:
    return (Earlier("0.5.19", f"server_args.py:_{name}"),)


# --- finding the device -----------------------------------------------------------------------------------------------

find_device = Handler("common.py:get_device")
"""The device from handle_missing_default_values if none is named."""


@find_device.refuses(
    "SPC421", "cpu-not-asked-for", raises="RuntimeError",
    bad="gpu=cpu -- --page-size 16", good="gpu=cpu -- --device cpu",
)  # fmt: skip
def cpu_not_asked_for(c: Config) -> Refusal | None:
    """SGLang runs on a CPU only when told to.

    Where it finds no accelerator it does not fall back to the CPU by itself. Give `--device cpu`, or set
    `SGLANG_USE_CPU_ENGINE=1`, which also makes SGLang load its CPU kernels.
    """
    if c.device is not None or c.gpu.platform != "cpu" or c.env.text("SGLANG_USE_CPU_ENGINE") == "1":
        return None
    return Refusal(
        at="device",
        related_fields=("SGLANG_USE_CPU_ENGINE",),
        message="There is no accelerator and no device is named, so SGLang stops. Name the CPU with --device cpu.",
        fixes=(setting(device="cpu"), setting_env(SGLANG_USE_CPU_ENGINE="1")),
    )


# --- HPU and CPU ------------------------------------------------------------------------------------------------------

handle_hpu_backends = Handler("platform_hook.py:handle_hpu_backends", earlier=_earlier("handle_hpu_backends"))


@handle_hpu_backends.adjusts("attention_backend", "sampling_backend")
def choose_hpu_backends(c: Config) -> None:
    """On Gaudi, attention runs with torch_native and sampling with PyTorch."""
    if c.device == "hpu":
        c.set(attention_backend="torch_native", sampling_backend="pytorch")


handle_cpu_backends = Handler("platform_hook.py:handle_cpu_backends", earlier=_earlier("handle_cpu_backends"))

_ARM_HOSTS = frozenset({"gh200", "gb200", "gb300", "gb10", "thor"})
"""Devices whose host has an ARM CPU. Any other host is assumed to be x86."""


@handle_cpu_backends.adjusts("attention_backend", "sampling_backend")
def choose_cpu_backends(c: Config) -> None:
    """On a CPU, attention runs with intel_amx (torch_native on ARM) and sampling with PyTorch."""
    if c.device != "cpu":
        return
    if c.attention_backend is None:
        is_arm = c.since("0.5.12") and c.gpu.name in _ARM_HOSTS
        c.set(attention_backend="torch_native" if is_arm else "intel_amx")
    c.set(sampling_backend="pytorch")


# --- NPU --------------------------------------------------------------------------------------------------------------

handle_npu_backends = Handler(
    "platform_hook.py:handle_npu_backends",
    when=lambda c: bool(c.device == "npu"),
    earlier=_earlier("handle_npu_backends"),
)


@handle_npu_backends.adjusts("attention_backend", "prefill_attention_backend", "decode_attention_backend", "page_size")
def choose_npu_attention(c: Config) -> None:
    """On Ascend, attention runs with the ascend backend, on KV pages of 128 tokens."""
    c.set(attention_backend="ascend", prefill_attention_backend="ascend", decode_attention_backend="ascend")
    if c.page_size is None:
        c.set(page_size=128)


@handle_npu_backends.adjusts("chunked_prefill_size", "cuda_graph_config", "cuda_graph_max_bs")
def choose_npu_sizes(c: Config) -> None:
    """On Ascend, the prefill chunk and the graph sizes follow the memory of the card."""
    raise NotKnown("NPU memory", "Ascend cards differ in memory")


@handle_npu_backends.adjusts("disable_custom_all_reduce")
def reduce_with_hccl(c: Config) -> None:
    """Ascend has no custom all-reduce."""
    c.set(disable_custom_all_reduce=True)


@handle_npu_backends.adjusts("hicache_io_backend", "hicache_mem_layout")
def choose_npu_host_cache(c: Config) -> None:
    """On Ascend, the host cache is copied by the kernel_ascend backend, in a layout of its own."""
    backs_up = c.disaggregation_mode == "decode" and c.disaggregation_decode_retraction_backup in (None, "host_pool")
    if not (
        c.enable_hierarchical_cache
        or c.disaggregation_decode_enable_offload_kvcache
        or (c.since("0.5.18") and backs_up)
    ):
        return
    layout = "page_first_kv_split" if c.model.uses_mla else "page_first_direct"
    c.set(hicache_io_backend="kernel_ascend", hicache_mem_layout=layout)


# --- XPU --------------------------------------------------------------------------------------------------------------

handle_xpu_backends = Handler(
    "platform_hook.py:handle_xpu_backends",
    when=lambda c: bool(c.device == "xpu"),
    earlier=_earlier("handle_xpu_backends"),
)


@handle_xpu_backends.adjusts("sampling_backend", since="0.5.21")
def choose_xpu_sampling(c: Config) -> None:
    """Intel GPUs sample with their own kernels."""
    if c.sampling_backend is None:
        c.set(sampling_backend="intel_xpu")


@handle_xpu_backends.adjusts("enable_fused_qk_norm_rope", since="0.5.23")
def fuse_xpu_norm_and_rope(c: Config) -> None:
    """On Intel GPUs the fused normalization and rotary embedding is always faster."""
    if c.enable_fused_qk_norm_rope is None:
        c.set(enable_fused_qk_norm_rope=True)


@handle_xpu_backends.adjusts("cuda_graph_config", since="0.5.14")
def keep_xpu_graphs_opt_in(c: Config) -> None:
    """On Intel GPUs decode graphs are captured only when asked for, prefill graphs hardly at all."""
    if c.since("0.5.15") and (not is_locked(c, DECODE) or backend_of(c, DECODE) not in (DISABLED, FULL)):
        disable(c, DECODE)
    if c.before("0.5.15") or (c.before("0.5.17") and backend_of(c, PREFILL) not in (DISABLED, PIECEWISE)):
        disable(c, PREFILL)


@handle_xpu_backends.adjusts("disable_piecewise_cuda_graph", until="0.5.14")
def disable_xpu_prefill_graph(c: Config) -> None:
    """Intel GPUs have no piecewise prefill graphs."""
    c.set(disable_piecewise_cuda_graph=True)


# --- symmetric memory, AMD, NCCL --------------------------------------------------------------------------------------

handle_symm_mem_device_support = Handler("platform_hook.py:handle_symm_mem_device_support", since="0.5.19")


@handle_symm_mem_device_support.adjusts("enable_symm_mem")
def drop_symmetric_memory(c: Config) -> None:
    """Symmetric memory is NCCL's, which only NVIDIA and AMD devices have."""
    if c.enable_symm_mem and not (c.gpu.is_cuda or c.gpu.is_hip):
        c.set(enable_symm_mem=False)


handle_amd_specifics = Handler("platform_hook.py:handle_amd_specifics", earlier=_earlier("handle_amd_specifics"))


@handle_amd_specifics.adjusts("triton_attention_num_kv_splits")
def split_kv_on_amd(c: Config) -> None:
    """On AMD, Triton attention splits the KV cache in 16."""
    if c.gpu.is_hip:
        c.set(triton_attention_num_kv_splits=16)


handle_nccl_pre_warm = Handler("platform_hook.py:handle_nccl_pre_warm", earlier=_earlier("handle_nccl_pre_warm"))


@handle_nccl_pre_warm.adjusts("pre_warm_nccl")
def drop_nccl_warm_up(c: Config) -> None:
    """There is no NCCL to warm up on this device."""
    has_nccl = c.gpu.is_cuda or c.gpu.is_hip or (c.since("0.5.16") and c.gpu.platform == "npu")
    if c.pre_warm_nccl and not has_nccl:
        c.set(pre_warm_nccl=False)


# --- kernel plug-ins --------------------------------------------------------------------------------------------------

handle_nvidia_megakernel = Handler("binding.py:handle_nvidia_megakernel", since="0.5.23")


@handle_nvidia_megakernel.refuses(
    "SPC420", "two-kernel-plugins", raises="ValueError",
    bad="--enable-nvidia-megakernel --enable-amd-monokernel",
)  # fmt: skip
def two_kernel_plugins(c: Config) -> Refusal | None:
    """Both kernel plug-ins are switched on.

    `--enable-nvidia-megakernel` and `--enable-amd-monokernel` each replace the model's whole forward pass with
    kernels from a plug-in, one for each vendor. Keep the flag of the vendor whose GPUs will run.
    """
    if not (c.enable_nvidia_megakernel and c.enable_amd_monokernel):
        return None
    return Refusal(
        at="enable_nvidia_megakernel",
        related_fields=("enable_amd_monokernel",),
        message=f"{c.shown('enable_nvidia_megakernel')} and {c.shown('enable_amd_monokernel')} both replace the "
        "model's forward pass, so SGLang stops. Keep the flag of your GPUs' vendor.",
        fixes=(dropping("enable_amd_monokernel"), dropping("enable_nvidia_megakernel")),
    )


handle_amd_monokernel = Handler("binding.py:handle_amd_monokernel", since="0.5.23")


@handle_amd_monokernel.adjusts("cuda_graph_config")
def capture_monokernel_widths(c: Config) -> None:
    """The monokernel plug-in chooses which decode batch sizes are captured."""
    if c.enable_amd_monokernel:
        raise NotKnown("the plug-in's kernels", "they are not part of SGLang")
