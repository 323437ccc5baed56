"""Which quantization a checkpoint is served with, by what is asked for, what config.json says, the device and the release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import Hardware, find
from spec_lsp.facts.model import ModelFacts
from spec_lsp.facts.quantization import Served, compatible, method_of, methods, rocm_methods, served

FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False}


def gpu(name: str) -> Hardware:
    found = find(name)
    assert found is not None
    return found


def checkpoint(config: Mapping[str, Any] | None, architecture: str = "LlamaForCausalLM", **more: Any) -> ModelFacts:
    return ModelFacts({"architectures": [architecture], "quantization_config": config, **more})


@pytest.mark.parametrize(
    ("config", "asked", "device", "method"),
    [
        (None, None, "h100", None),
        (None, "fp8", "h100", "fp8"),
        (FP8, None, "h100", "fp8"),
        (FP8, "fp8", "b200", "fp8"),
        (AWQ, None, "a100", "awq_marlin"),
        (AWQ, "awq", "a100", "awq"),
        (AWQ, None, "v100", "awq"),
        (AWQ, None, "mi300x", "awq"),
        (AWQ, "moe_wna16", "a100", "moe_wna16"),
        (GPTQ, None, "a100", "gptq_marlin"),
        (GPTQ, "moe_wna16", "a100", "moe_wna16"),
        ({**GPTQ, "desc_act": True}, None, "a100", "gptq_marlin"),
        ({"quant_method": "mxfp4"}, None, "h100", "mxfp4"),
        ({"quant_method": "compressed-tensors"}, None, "h100", "compressed-tensors"),
        ({"quant_method": "compressed-tensors"}, "w8a8_fp8", "h100", "w8a8_fp8"),
        ({"quant_algo": "NVFP4"}, None, "b200", "modelopt_fp4"),
        ({"quant_algo": "NVFP4"}, "modelopt_fp4", "b200", "modelopt_fp4"),
        ({"quant_algo": "FP8"}, "modelopt", "h100", "modelopt_fp8"),
        ({"quantization": {"quant_algo": "FP8"}}, None, "h100", "modelopt_fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, None, "b200", "modelopt_fp4"),
        (FP8, "modelopt_fp4", "b200", "modelopt_fp4"),
        (FP8, "nvfp4_online", "b200", "nvfp4_online"),
        (FP8, "quark_mxfp4", "mi355x", "quark_mxfp4"),
        (FP8, "humming", "h100", "humming"),
    ],
)
def test_served(config: Mapping[str, Any] | None, asked: str | None, device: str, method: str | None) -> None:
    found = served(checkpoint(config), gpu(device), Release.parse("0.5.23"), asked)
    assert (found.method, found.problem) == (method, "")


@pytest.mark.parametrize(
    ("config", "asked", "device", "release", "problem"),
    [
        (FP8, "awq", "h100", "0.5.23", "mismatch"),
        (AWQ, "gptq_marlin", "h100", "0.5.23", "mismatch"),
        ({"quant_method": "mxfp4"}, "fp8", "h100", "0.5.23", "mismatch"),
        ({"quant_method": "mxfp4"}, "humming", "h100", "0.5.23", "mismatch"),
        (FP8, "modelopt_fp4", "b200", "0.5.17", "mismatch"),
        (FP8, "nvfp4_online", "b200", "0.5.13", "mismatch"),
        ({"quant_method": "mxfp4"}, None, "mi300x", "0.5.23", "unknown"),
        ({"quant_method": "qoq"}, None, "a100", "0.5.16", "unknown"),
        ({**GPTQ, "bits": 3}, None, "a100", "0.5.20", "unknown"),
        (None, "w8a8_int8", "mi300x", "0.5.23", "rocm"),
        (None, "modelopt_fp4", "mi355x", "0.5.23", "rocm"),
    ],
)
def test_objections(
    config: Mapping[str, Any] | None, asked: str | None, device: str, release: str, problem: str
) -> None:
    assert served(checkpoint(config), gpu(device), Release.parse(release), asked).problem == problem


def test_mismatch_names_both() -> None:
    assert served(checkpoint(FP8), gpu("h100"), Release.parse("0.5.23"), "AWQ") == Served("awq", "fp8", "mismatch")


def test_a_draft_goes_by_its_checkpoint() -> None:
    draft = checkpoint(FP8).as_draft()
    assert served(draft, gpu("h100"), Release.parse("0.5.23"), "awq") == Served("fp8", "fp8")
    assert served(draft, gpu("h100"), Release.parse("0.5.7"), "awq").problem == "mismatch"


@pytest.mark.parametrize(
    ("architecture", "release", "method"),
    [
        ("NemotronHForCausalLM", "0.5.10", "modelopt_mixed"),
        ("NemotronHForCausalLM", "0.5.9", "w4afp8"),
        ("DeepseekV3ForCausalLM", "0.5.10", "w4afp8"),
        ("DeepseekV3ForCausalLM", "0.5.23", "w4afp8"),
    ],
)
def test_mixed_precision(architecture: str, release: str, method: str) -> None:
    config = {"quant_algo": "MIXED_PRECISION"}
    if release == "0.5.23":
        config |= {"quantized_layers": {"a": {"quant_algo": "FP8"}}}  # type: ignore[dict-item]
    assert method_of(checkpoint(config, architecture), Release.parse(release)) == method


def test_mixed_precision_with_fp4_layers() -> None:
    config = {"quant_algo": "MIXED_PRECISION", "quantized_layers": {"a": {"quant_algo": "NVFP4"}}}
    assert method_of(checkpoint(config), Release.parse("0.5.15")) == "modelopt_mixed"


@pytest.mark.parametrize(
    ("method", "device", "first", "last"),
    [
        ("mxfp8", "h100", "0.5.9", "0.5.23"),
        ("modelopt_mixed", "h100", "0.5.10", "0.5.23"),
        ("humming", "h100", "0.5.16", "0.5.23"),
        ("qoq", "h100", "0.5.6", "0.5.15"),
        ("gptq", "h100", "0.5.6", "0.5.19"),
        ("mxfp4", "mi355x", "0.5.6", "0.5.23"),
    ],
)
def test_methods_come_and_go(method: str, device: str, first: str, last: str) -> None:
    for release in ("0.5.6", "0.5.8", "0.5.9", "0.5.10", "0.5.14", "0.5.15", "0.5.16", "0.5.19", "0.5.20", "0.5.23"):
        at = Release.parse(release)
        assert (method in methods(at, gpu(device))) is (Release.parse(first) <= at <= Release.parse(last)), release


def test_methods_of_the_cpu_engine() -> None:
    newest = Release.parse("0.5.23")
    assert {"mxfp4", "gptq"} <= methods(newest, gpu("cpu"), cpu_engine=True)
    assert not {"mxfp4", "gptq"} & methods(newest, gpu("cpu"))


def test_what_rocm_lets_through() -> None:
    assert "mxfp8" in rocm_methods(Release.parse("0.5.14"))
    assert "mxfp8" not in rocm_methods(Release.parse("0.5.13"))


def test_compatible_from_a_release_on() -> None:
    assert compatible("modelopt_fp4", "fp8", Release.parse("0.5.18"))
    assert not compatible("modelopt_fp4", "fp8", Release.parse("0.5.17"))
    assert compatible("w8a8_int8", "compressed-tensors", Release.parse("0.5.6"))
    assert not compatible("fp8", "awq", Release.parse("0.5.23"))
