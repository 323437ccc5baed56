"""With which quantization a checkpoint is served: what `--quantization` asks for, and what config.json says.

Follows ModelConfig._verify_quantization (sglang/srt/configs/model_config.py), the registry of sglang/srt/layers/quantization and each
method's override_quantization_method, of 0.5.6 to 0.5.23.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from spec_lsp.catalog.release import Release
from spec_lsp.facts.methods import needed, requirements
from spec_lsp.records import NamedTuple

if TYPE_CHECKING:
    from spec_lsp.facts.hardware import Hardware
    from spec_lsp.facts.model import ModelFacts

Problem = Literal["", "mismatch", "unknown", "rocm"]


class Served(NamedTuple):
    """The quantization that the model is served with; `problem` is SGLang's objection, `checkpoint` what config.json asks for."""

    method: str | None
    checkpoint: str | None = None
    problem: Problem = ""


REQUANTIZED = frozenset({"quark_mxfp4"})
"""Methods that re-quantize any checkpoint while loading (since 0.5.17)."""

_FIRST_METHODS = frozenset({
    "auto-round", "awq", "awq_marlin", "blockwise_int8", "compressed-tensors", "fbgemm_fp8", "fp8", "gguf",
    "gptq", "gptq_marlin", "modelopt", "modelopt_fp4", "modelopt_fp8", "moe_wna16", "petit_nvfp4", "qoq",
    "quark", "w4afp8", "w8a8_fp8", "w8a8_int8",
})  # fmt: skip
_METHODS_ADDED = {
    "0.5.8": ("quark_int4fp8_moe", "modelslim", "bitsandbytes"),
    "0.5.9": ("mxfp8",),
    "0.5.10": ("modelopt_mixed",),
    "0.5.13": ("quark_mxfp4",),
    "0.5.14": ("nvfp4_online",),
    "0.5.15": ("auto-round-int8", "mxfp_w4a8"),
    "0.5.16": ("humming",),
    "0.5.23": ("minimax_m3_nvfp4",),
}
_METHODS_REMOVED = {"0.5.16": ("fbgemm_fp8", "qoq"), "0.5.20": ("gptq",)}

_FIRST_ROCM_METHODS = frozenset({
    "auto-round", "awq", "compressed-tensors", "compressed_tensors", "fbgemm_fp8", "fp8", "gptq", "mxfp4",
    "petit_nvfp4", "quark", "w8a8_fp8",
})  # fmt: skip
_ROCM_METHODS_ADDED = {
    "0.5.8": ("quark_int4fp8_moe",),
    "0.5.13": ("quark_mxfp4",),
    "0.5.14": ("mxfp8",),
    "0.5.15": ("auto-round-int8",),
}
_ROCM_METHODS_REMOVED = {"0.5.16": ("fbgemm_fp8",), "0.5.20": ("gptq",)}

_COMPATIBLE = {
    "modelopt_fp8": (("modelopt", ""),),
    "modelopt_fp4": (("modelopt", ""), ("fp8", "0.5.18")),
    "modelopt_mixed": (("modelopt", "0.5.10"),),
    "nvfp4_online": (("fp8", "0.5.14"), ("modelopt_fp8", "0.5.18")),
    "minimax_m3_nvfp4": (("mxfp8", "0.5.23"),),
    "petit_nvfp4": (("modelopt", ""),),
    "w8a8_int8": (("compressed-tensors", ""), ("compressed_tensors", "")),
    "w8a8_fp8": (("compressed-tensors", ""), ("compressed_tensors", "")),
    "auto-round-int8": (("compressed-tensors", "0.5.15"), ("compressed_tensors", "0.5.15")),
}
"""Methods that may be asked for (key) for a checkpoint of another method, each since the release named."""


@cache
def _release(text: str) -> Release:
    return Release.parse(text)


def _in(
    release: Release, first: frozenset[str], added: Mapping[str, Any], removed: Mapping[str, Any]
) -> frozenset[str]:
    names = set(first)
    for since, more in added.items():
        if release >= _release(since):
            names.update(more)
    for since, gone in removed.items():
        if release >= _release(since):
            names.difference_update(gone)
    return frozenset(names)


def methods(release: Release, gpu: Hardware, cpu_engine: bool = False) -> frozenset[str]:
    """QUANTIZATION_METHODS: the methods this release knows on this device (`cpu_engine`: SGLANG_USE_CPU_ENGINE is set)."""
    return _methods(
        release, gpu.platform, gpu.gfx95, cpu_engine
    )  # only these facts of the device are read: replay.py depends on which are


@cache
def _methods(release: Release, platform: str, gfx95: bool, cpu_engine: bool) -> frozenset[str]:
    names = set(_in(release, _FIRST_METHODS, _METHODS_ADDED, _METHODS_REMOVED))
    on_cpu = platform == "cpu" and cpu_engine
    if platform == "cuda" or gfx95 or (on_cpu and release >= _release("0.5.14")):
        names.add("mxfp4")
    if on_cpu and release >= _release("0.5.20"):
        names.add("gptq")
    if platform == "npu":
        names |= {"gptq", "mxfp4"}
    if platform == "xpu" and release >= _release("0.5.19"):
        names |= {"gptq", "awq"} | ({"mxfp4"} if release >= _release("0.5.20") else set())
    return frozenset(names)


@cache
def rocm_methods(release: Release) -> frozenset[str]:
    """The methods ModelConfig lets through on ROCm."""
    return _in(release, _FIRST_ROCM_METHODS, _ROCM_METHODS_ADDED, _ROCM_METHODS_REMOVED)


def refused_by_device(method: str, gpu: Hardware, release: Release) -> str:
    """Why this device serves no checkpoint with the method, phrased as the end of a sentence; empty if it may.

    For models without a config.json at hand. `modelopt` is never refused: the checkpoint turns it into another method.
    """
    if method == "modelopt":
        return ""
    if gpu.is_hip and method in methods(release, gpu) and method not in rocm_methods(release):
        return "does not run on ROCm"
    wanted = requirements(method, release)
    if not gpu.is_cuda or gpu.capability is None or wanted.capability is None or wanted.runs_on(gpu.capability):
        return ""
    major, minor = gpu.capability
    return f"needs {needed(wanted.capability)} or newer, and {gpu.title} is SM{major}{minor}"


def checkpoint_config(model: ModelFacts, release: Release) -> Mapping[str, Any] | None:
    """ModelConfig._parse_quant_hf_config: the quantization that the checkpoint's files declare."""
    config = config_json(model, release)
    if config is None:
        config = model.hf("compression_config")
    if config is None and isinstance(standalone := model.hf("hf_quant_config"), Mapping):
        config = _modelopt(standalone, model, release)
    return config if isinstance(config, Mapping) else None


def config_json(model: ModelFacts, release: Release) -> Mapping[str, Any] | None:
    """`hf_config.quantization_config` once ModelConfig is built: ModelOpt's algorithm has become a method's name."""
    config = model.hf("quantization_config")
    if not isinstance(config, Mapping):
        return None
    unnamed = "quant_method" not in config and release >= _release("0.5.9")
    if unnamed or (config.get("quant_method") == "modelopt" and release >= _release("0.5.10")):
        parsed = _modelopt(config, model, release)
        return {**config, **parsed} if parsed else config
    return config


def method_of(model: ModelFacts, release: Release) -> str | None:
    """`get_quantization_config(hf_config)`: the method that config.json names."""
    config = config_json(model, release)
    return None if config is None else config.get("quant_method")


def _modelopt(config: Mapping[str, Any], model: ModelFacts, release: Release) -> Mapping[str, Any] | None:
    """ModelConfig._parse_modelopt_quant_config, of config.json's section or of hf_quant_config.json."""
    for _ in range(2):
        nested = config.get("quantization")
        config = nested if isinstance(nested, Mapping) else config
    algorithm = config.get("quant_algo")
    if not algorithm:
        return None
    if algorithm == "MIXED_PRECISION":
        mixed = _has_nvfp4_layers(config) if release >= _release("0.5.15") else "NemotronH" in model.architecture
        mixed = mixed and release >= _release("0.5.10")
        return {"quant_method": "modelopt_mixed" if mixed else "w4afp8", "quant_algo": algorithm}
    if "FP4" in algorithm:
        return {"quant_method": "modelopt_fp4", "quant_algo": algorithm}
    if algorithm == "MXFP8" and release >= _release("0.5.17"):
        size = config.get("group_size", 32)
        return {"quant_method": "mxfp8", "quant_algo": algorithm, "weight_block_size": [1, size], "scale_fmt": "ue8m0"}
    if algorithm == "FP8" or ("FP8" in algorithm and release < _release("0.5.17")):
        return {"quant_method": "modelopt_fp8", "quant_algo": algorithm}
    return None


def _has_nvfp4_layers(config: Mapping[str, Any]) -> bool:
    layers = (config.get("quantized_layers") or {}).values()
    return any(
        str(each.get("quant_algo", "")).upper() in ("NVFP4", "W4A16_NVFP4")
        for each in layers
        if isinstance(each, Mapping)
    )


def compatible(requested: str, checkpoint: str, release: Release) -> bool:
    """Whether a checkpoint of one method may be served by the other that was asked for."""
    pairs = _COMPATIBLE.get(requested, ())
    return any(method == checkpoint and (not since or release >= _release(since)) for method, since in pairs)


def served(
    model: ModelFacts, gpu: Hardware, release: Release, requested: str | None, cpu_engine: bool = False
) -> Served:
    """ModelConfig's quantization for a launch that asks for `requested` (None: nothing), with its objection if any."""
    method = requested.lower() if requested is not None else None
    config = checkpoint_config(model, release)
    checkpoint = None
    if config is not None:
        checkpoint = str(config.get("quant_method", method or "")).lower()
        keeps = model.is_draft and method == "nvfp4_online" and checkpoint in ("modelopt_fp4", "modelopt_mixed")
        if (method not in REQUANTIZED or release < _release("0.5.17")) and not keeps:
            detected = _detected(config, method, gpu, release)
            if detected:
                method = checkpoint = detected
        if method is None:
            method = checkpoint
        elif method != checkpoint and not keeps and not compatible(method, checkpoint, release):
            if model.is_draft and release >= _release("0.5.8"):
                method = checkpoint
            elif method not in REQUANTIZED or release < _release("0.5.17"):
                return Served(method, checkpoint, "mismatch")
    if method is not None and method not in methods(release, gpu, cpu_engine):
        return Served(method, checkpoint, "unknown")
    if method is not None and gpu.is_hip and method not in rocm_methods(release):
        return Served(method, checkpoint, "rocm")
    return Served(method, checkpoint)


def _detected(config: Mapping[str, Any], requested: str | None, gpu: Hardware, release: Release) -> str | None:
    """The method that some method's override_quantization_method makes of a checkpoint, the first in the registry's order."""
    declared = str(config.get("quant_method", "")).lower()
    algorithm = str(config.get("quant_algo") or "").upper()
    if requested not in ("nvfp4_online", *REQUANTIZED):
        if requested == "modelopt" and (named := _of_modelopt_algorithm(algorithm, release)):
            return named
        if declared in ("modelopt_fp8", "modelopt_fp4"):
            return declared
    if declared == "modelopt_mixed" and release >= _release("0.5.10"):
        return "modelopt_mixed"
    marlin = {"awq": "awq_marlin", "gptq": "gptq_marlin"}.get(declared)
    if marlin and gpu.is_cuda and requested in (None, "marlin", marlin) and _marlin_serves(config, declared, gpu):
        return marlin
    if requested == "moe_wna16" and _is_wna16(config, declared, gpu):
        return requested
    if declared == "modelopt" and gpu.is_hip:
        return "petit_nvfp4"
    if requested == "humming" and declared != "mxfp4" and release >= _release("0.5.16"):
        return requested
    return None


def _of_modelopt_algorithm(algorithm: str, release: Release) -> str | None:
    if algorithm == "MIXED_PRECISION":
        return "modelopt_mixed" if release >= _release("0.5.10") else None
    if "FP4" in algorithm:
        return "modelopt_fp4"
    return "modelopt_fp8" if "FP8" in algorithm and algorithm != "MXFP8" else None


def _marlin_serves(config: Mapping[str, Any], declared: str, gpu: Hardware) -> bool:
    """Whether the Marlin kernels support the checkpoint's bits, groups and zero points."""
    bits, group = config.get("bits"), config.get("group_size")
    if gpu.major < 8 or group not in (-1, 32, 64, 128):
        return False
    if declared == "awq":
        return bits == 4 and config.get("zero_point") is True
    if config.get("checkpoint_format") == "marlin" or config.get("is_marlin_format", False):
        return False
    return bits in (4, 8) and config.get("sym") is True and config.get("desc_act") is not None


def _is_wna16(config: Mapping[str, Any], declared: str, gpu: Hardware) -> bool:
    if declared == "gptq":
        return not config.get("desc_act") and config.get("bits") in (4, 8)
    return declared == "awq" and config.get("bits") == 4 and gpu.capability is not None and gpu.capability >= (7, 5)
