"""Names people use for GPUs, and what the devices of a family have in common."""

from __future__ import annotations

import pytest

from spec_lsp.facts.hardware import DEVICES, FAMILIES, find
from spec_lsp.facts.known import NotKnown


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("h100", "h100"), ("H100", "h100"), ("NVIDIA H100 80GB HBM3", "h100"), ("nvidia-h100-80gb-hbm3", "h100"),
        ("NVIDIA-H100-NVL", "h100-nvl"), ("A100-SXM4-80GB", "a100"), ("A100-SXM4-40GB", "a100-40gb"), ("Tesla T4", "t4"),
        ("RTX PRO 6000", "rtxpro6000"), ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtxpro6000"),
        ("RTX A6000", "rtxa6000"), ("RTX 6000 Ada Generation", "rtx6000ada"), ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("AMD Instinct MI300X", "mi300x"), ("mi355", "mi355"), ("hopper", "hopper"), ("sm90", "hopper"), ("gb200", "gb200"),
    ],
)  # fmt: skip
def test_finds_what_a_person_names(name: str, device: str) -> None:
    found = find(name)
    assert found is not None
    assert found.name == device


@pytest.mark.parametrize("name", ["", "quantum", "8xh100"])
def test_says_when_a_name_is_not_known(name: str) -> None:
    assert find(name) is None


def test_generations_do_not_overlap() -> None:
    for device in DEVICES.values():
        assert sum((device.sm90, device.sm100, device.sm110, device.sm120)) <= 1
        assert device.blackwell == (device.sm100 or device.sm110 or device.sm120)


def test_a_family_has_bounds_where_it_has_no_memory() -> None:
    hopper = FAMILIES["hopper"]
    with pytest.raises(NotKnown):
        _ = hopper.memory
    assert hopper.memory_bounds == (81559, 143771)
    assert DEVICES["b200"].memory_bounds == (183359, 183359)
    with pytest.raises(NotKnown):
        _ = DEVICES["cpu"].memory_bounds
