"""What torch reports about a GPU, for simulation where there is none."""

from __future__ import annotations

from typing import Any

from spec_lsp.facts.hardware import DEVICES, Hardware
from spec_lsp.records import dataclass

NAMES = {
    "v100": "Tesla V100-SXM2-32GB",
    "v100-16gb": "Tesla V100-SXM2-16GB",
    "t4": "Tesla T4",
    "a100": "NVIDIA A100-SXM4-80GB",
    "a100-40gb": "NVIDIA A100-SXM4-40GB",
    "a800": "NVIDIA A800-SXM4-80GB",
    "a30": "NVIDIA A30",
    "a10": "NVIDIA A10",
    "a40": "NVIDIA A40",
    "rtxa6000": "NVIDIA RTX A6000",
    "rtx3090": "NVIDIA GeForce RTX 3090",
    "l4": "NVIDIA L4",
    "l40s": "NVIDIA L40S",
    "l40": "NVIDIA L40",
    "l20": "NVIDIA L20",
    "rtx6000ada": "NVIDIA RTX 6000 Ada Generation",
    "rtx4080": "NVIDIA GeForce RTX 4080",
    "rtx4090": "NVIDIA GeForce RTX 4090",
    "h100": "NVIDIA H100 80GB HBM3",
    "h100-nvl": "NVIDIA H100 NVL",
    "h800": "NVIDIA H800",
    "h20": "NVIDIA H20",
    "h20-141gb": "NVIDIA H20-3e",
    "h200": "NVIDIA H200",
    "gh200": "NVIDIA GH200 480GB",
    "b200": "NVIDIA B200",
    "gb200": "NVIDIA GB200",
    "b300": "NVIDIA B300 SXM6 AC",
    "gb300": "NVIDIA GB300",
    "rtxpro6000": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    "rtx5090": "NVIDIA GeForce RTX 5090",
    "rtx5080": "NVIDIA GeForce RTX 5080",
    "gb10": "NVIDIA GB10",
    "thor": "NVIDIA Thor",
    "mi300x": "AMD Instinct MI300X",
    "mi308x": "AMD Instinct MI308X",
    "mi325x": "AMD Instinct MI325X",
    "mi350x": "AMD Instinct MI350X",
    "mi355x": "AMD Instinct MI355X",
    "cpu": "a machine without GPU",
}
"""`torch.cuda.get_device_name()`, as drivers report it."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device as torch would describe it. `hardware` is what spec-lsp calls it."""

    hardware: Hardware
    name: str

    def as_json(self) -> dict[str, Any]:
        """The description that is passed to worker.py."""
        known = self.hardware
        return {
            "platform": known.platform,
            "name": self.name,
            "capability": list(known.capability) if known.capability else None,
            "memory_mib": known.memory_mib,
        }


def device_for(hardware: Hardware) -> Device | None:
    """The device to simulate for a device or, as its first, a family; None where it cannot be simulated (NPU, XPU)."""
    alike = (d for d in DEVICES.values() if d.family == hardware.family)
    known = hardware if hardware.name in DEVICES else next(alike, None)
    return Device(known, NAMES[known.name]) if known is not None and known.name in NAMES else None
