"""What the platform decides by itself."""

from __future__ import annotations

import pytest

from tests.resolution.launching import resolved, rules


@pytest.mark.parametrize(
    ("launch", "fields", "values"),
    [
        ("gpu=cpu -- --device cpu", ("sampling_backend",), ("pytorch",)),
        ("gpu=cpu -- --device cpu --attention-backend torch_native", ("attention_backend",), ("torch_native",)),
        ("gpu=gb200 -- --device cpu", ("attention_backend",), ("torch_native",)),
        ("gpu=mi300x -- --page-size 1", ("triton_attention_num_kv_splits",), (16,)),
        ("--page-size 1", ("triton_attention_num_kv_splits",), (8,)),
        ("--enable-symm-mem", ("enable_symm_mem",), (True,)),
        ("gpu=cpu -- --device cpu --enable-symm-mem", ("enable_symm_mem",), (False,)),
        ("gpu=npu -- --page-size 128", ("attention_backend", "disable_custom_all_reduce"), ("ascend", True)),
        ("gpu=xpu -- --page-size 64", ("sampling_backend", "enable_fused_qk_norm_rope"), ("intel_xpu", True)),
    ],
)
def test_defaults(launch: str, fields: tuple[str, ...], values: tuple[object, ...]) -> None:
    assert resolved(launch, *fields) == values


def test_a_cpu_must_be_asked_for() -> None:
    assert rules("gpu=cpu -- --page-size 1")[0] == "cpu-not-asked-for"
    assert "cpu-not-asked-for" not in rules("gpu=cpu SGLANG_USE_CPU_ENGINE=1 -- --page-size 1")
    assert rules("gpu=cpu -- --device cpu") == []


def test_only_one_kernel_plug_in() -> None:
    assert "two-kernel-plugins" in rules("--enable-nvidia-megakernel --enable-amd-monokernel")
