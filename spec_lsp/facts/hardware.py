"""The accelerators people run SGLang on, as far as argument resolution can tell them apart.

Capability and memory follow what `torch.cuda.get_device_capability()` and the driver report for the device (memory in MiB).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spec_lsp.facts.known import NotKnown

Platform = Literal["cuda", "hip", "cpu", "npu", "xpu"]


@dataclass(frozen=True, slots=True)
class Hardware:
    """One kind of device, or (with `memory_mib` None) a family of devices that differ in memory.

    `title` is what a person calls it in a sentence.
    """

    name: str
    title: str
    platform: Platform
    capability: tuple[int, int] | None = None
    memory_mib: int | None = None
    family: str = ""

    @property
    def memory(self) -> int:
        """Device memory in MiB. Raises NotKnown for a family."""
        if self.memory_mib is None:
            raise NotKnown("GPU memory", f"devices of {self.title} differ in memory")
        return self.memory_mib

    @property
    def is_cuda(self) -> bool:
        return self.platform == "cuda"

    @property
    def is_hip(self) -> bool:
        return self.platform == "hip"

    @property
    def major(self) -> int:
        """The major compute capability; 0 where there is none (CPU)."""
        return self.capability[0] if self.capability else 0

    @property
    def sm80(self) -> bool:
        """Ampere or newer within the 8.x line (Ampere, Ada)."""
        return self.is_cuda and self.major == 8

    @property
    def sm90(self) -> bool:
        """Hopper."""
        return self.is_cuda and self.major == 9

    @property
    def sm100(self) -> bool:
        """Data-centre Blackwell: SM100 (B200) and SM103 (B300, GB300)."""
        return self.is_cuda and self.major == 10

    @property
    def sm120(self) -> bool:
        """Workstation Blackwell: SM120 and SM121."""
        return self.is_cuda and self.major == 12

    @property
    def gfx95(self) -> bool:
        """AMD CDNA 4 (MI350, MI355)."""
        return self.is_hip and self.capability == (9, 5)


def _cuda(name: str, title: str, capability: tuple[int, int], memory: int, family: str) -> Hardware:
    return Hardware(name, title, "cuda", capability, memory, family)


_DEVICES = (
    _cuda("v100", "V100", (7, 0), 32768, "volta"),
    _cuda("t4", "T4", (7, 5), 15360, "turing"),
    _cuda("a100", "A100 80 GB", (8, 0), 81920, "ampere"),
    _cuda("a100-40gb", "A100 40 GB", (8, 0), 40960, "ampere"),
    _cuda("a800", "A800", (8, 0), 81920, "ampere"),
    _cuda("a10", "A10", (8, 6), 23028, "ampere"),
    _cuda("a40", "A40", (8, 6), 46068, "ampere"),
    _cuda("rtx3090", "RTX 3090", (8, 6), 24576, "ampere"),
    _cuda("l4", "L4", (8, 9), 23034, "ada"),
    _cuda("l40s", "L40S", (8, 9), 46068, "ada"),
    _cuda("rtx4090", "RTX 4090", (8, 9), 24564, "ada"),
    _cuda("h100", "H100", (9, 0), 81559, "hopper"),
    _cuda("h800", "H800", (9, 0), 81559, "hopper"),
    _cuda("h20", "H20", (9, 0), 97871, "hopper"),
    _cuda("h200", "H200", (9, 0), 143771, "hopper"),
    _cuda("gh200", "GH200", (9, 0), 97871, "hopper"),
    _cuda("b200", "B200", (10, 0), 183359, "sm100"),
    _cuda("gb200", "GB200", (10, 0), 189471, "sm100"),
    _cuda("b300", "B300", (10, 3), 284208, "sm103"),
    _cuda("gb300", "GB300", (10, 3), 284208, "sm103"),
    _cuda("rtxpro6000", "RTX PRO 6000", (12, 0), 97887, "sm120"),
    _cuda("rtx5090", "RTX 5090", (12, 0), 32607, "sm120"),
    _cuda("gb10", "GB10", (12, 1), 122502, "sm120"),
    Hardware("mi300x", "MI300X", "hip", (9, 4), 196592, "mi300"),
    Hardware("mi325x", "MI325X", "hip", (9, 4), 262128, "mi300"),
    Hardware("mi350x", "MI350X", "hip", (9, 5), 294896, "mi355"),
    Hardware("mi355x", "MI355X", "hip", (9, 5), 294896, "mi355"),
    Hardware("cpu", "CPU", "cpu", None, None, "cpu"),
    Hardware("npu", "Ascend NPU", "npu", None, None, "npu"),
    Hardware("xpu", "Intel XPU", "xpu", None, None, "xpu"),
)
DEVICES: dict[str, Hardware] = {d.name: d for d in _DEVICES}

FAMILIES: dict[str, Hardware] = {
    f.name: f
    for f in (
        Hardware("ampere", "Ampere (A100)", "cuda", (8, 0), None, "ampere"),
        Hardware("ada", "Ada (L40S, RTX 4090)", "cuda", (8, 9), None, "ada"),
        Hardware("hopper", "Hopper (H100, H200)", "cuda", (9, 0), None, "hopper"),
        Hardware("sm100", "SM100 (B200, GB200)", "cuda", (10, 0), None, "sm100"),
        Hardware("sm103", "SM103 (B300, GB300)", "cuda", (10, 3), None, "sm103"),
        Hardware("sm120", "SM120 (RTX 5090, RTX PRO 6000)", "cuda", (12, 0), None, "sm120"),
        Hardware("mi300", "MI300 (MI300X, MI325X)", "hip", (9, 4), None, "mi300"),
        Hardware("mi355", "MI355 (MI350X, MI355X)", "hip", (9, 5), None, "mi355"),
    )
}
"""The hardware worlds of a launch whose hardware nobody named. CPU, NPU and XPU are worlds only where something names them."""


def find(name: str) -> Hardware | None:
    """The device or family a person names ("H100", "b200", "nvidia-h200", "hopper"); None when it is not known."""
    key = name.strip().lower().replace("_", "-").replace(" ", "")
    for prefix in ("nvidia-", "amd-", "instinct-"):
        key = key.removeprefix(prefix)
    key = key.replace("geforce-", "").replace("rtx-pro-", "rtxpro").replace("rtx-", "rtx")
    return DEVICES.get(key) or FAMILIES.get(key) or DEVICES.get(key.split("-")[0])
