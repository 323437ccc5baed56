"""The accelerators people run SGLang on, as far as argument resolution distinguishes them.

Capability and memory follow what `torch.cuda.get_device_capability()` and the driver report for the device (memory in MiB).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Literal

from spec_lsp.facts.known import NotKnown
from spec_lsp.records import dataclass

Platform = Literal["cuda", "hip", "cpu", "npu", "xpu"]


@dataclass(frozen=True, slots=True)
class Hardware:
    """One kind of device, or (with `memory_mib` None) a family of devices that differ in memory.

    `title` is its name in a sentence. `memory_span` are the limits for the devices of a family (MiB), so that rules that depend on memory
    only roughly can be decided for a family too.
    """

    name: str
    title: str
    platform: Platform
    capability: tuple[int, int] | None = None
    memory_mib: int | None = None
    family: str = ""
    memory_span: tuple[int, int] | None = None

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def memory(self) -> int:
        """Device memory in MiB. Raises NotKnown for a family."""
        if self.memory_mib is None:
            raise NotKnown("GPU memory", f"devices of {self.title} differ in memory")
        return self.memory_mib

    @property
    def memory_bounds(self) -> tuple[int, int]:
        """The least and the most memory (MiB) it can have. Raises NotKnown if nothing is known (a CPU's memory)."""
        if self.memory_mib is not None:
            return self.memory_mib, self.memory_mib
        if self.memory_span is None:
            raise NotKnown("device memory", f"{self.title} comes with any amount")
        return self.memory_span

    @property
    def most_memory(self) -> int:
        """The most memory (MiB) of devices with this name: an H100 may be an H100 NVL. Raises NotKnown if nothing is known."""
        return max(self.memory_bounds[1], _most_named_like(self.name))

    @property
    def is_cuda(self) -> bool:
        return self.platform == "cuda"

    @property
    def is_hip(self) -> bool:
        return self.platform == "hip"

    @property
    def major(self) -> int:
        """The major compute capability; 0 if there is none (CPU)."""
        return self.capability[0] if self.capability else 0

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
    def sm110(self) -> bool:
        """Jetson Thor."""
        return self.is_cuda and self.major == 11

    @property
    def blackwell(self) -> bool:
        """Any Blackwell: SM100, SM103, SM110, SM120, SM121 (is_blackwell_supported)."""
        return self.is_cuda and self.major in (10, 11, 12)

    @property
    def gfx95(self) -> bool:
        """AMD CDNA 4 (MI350, MI355)."""
        return self.is_hip and self.capability == (9, 5)


def _cuda(name: str, title: str, capability: tuple[int, int], memory: int, family: str) -> Hardware:
    return Hardware(name, title, "cuda", capability, memory, family)


_DEVICES = (
    _cuda("v100", "V100", (7, 0), 32768, "volta"),
    _cuda("v100-16gb", "V100 16 GB", (7, 0), 16384, "volta"),
    _cuda("t4", "T4", (7, 5), 15360, "turing"),
    _cuda("a100", "A100 80 GB", (8, 0), 81920, "ampere"),
    _cuda("a100-40gb", "A100 40 GB", (8, 0), 40960, "ampere"),
    _cuda("a800", "A800", (8, 0), 81920, "ampere"),
    _cuda("a30", "A30", (8, 0), 24576, "ampere"),
    _cuda("a10", "A10", (8, 6), 23028, "ampere"),
    _cuda("a40", "A40", (8, 6), 46068, "ampere"),
    _cuda("rtxa6000", "RTX A6000", (8, 6), 49140, "ampere"),
    _cuda("rtx3090", "RTX 3090", (8, 6), 24576, "ampere"),
    _cuda("l4", "L4", (8, 9), 23034, "ada"),
    _cuda("l40s", "L40S", (8, 9), 46068, "ada"),
    _cuda("l40", "L40", (8, 9), 46068, "ada"),
    _cuda("l20", "L20", (8, 9), 46068, "ada"),
    _cuda("rtx6000ada", "RTX 6000 Ada", (8, 9), 49140, "ada"),
    _cuda("rtx4080", "RTX 4080", (8, 9), 16376, "ada"),
    _cuda("rtx4090", "RTX 4090", (8, 9), 24564, "ada"),
    _cuda("h100", "H100", (9, 0), 81559, "hopper"),
    _cuda("h100-nvl", "H100 NVL", (9, 0), 95830, "hopper"),
    _cuda("h800", "H800", (9, 0), 81559, "hopper"),
    _cuda("h20", "H20", (9, 0), 97871, "hopper"),
    _cuda("h20-141gb", "H20 141 GB", (9, 0), 143771, "hopper"),
    _cuda("h200", "H200", (9, 0), 143771, "hopper"),
    _cuda("gh200", "GH200", (9, 0), 97871, "hopper"),
    _cuda("b200", "B200", (10, 0), 183359, "sm100"),
    _cuda("gb200", "GB200", (10, 0), 189471, "sm100"),
    _cuda("b300", "B300", (10, 3), 284208, "sm103"),
    _cuda("gb300", "GB300", (10, 3), 284208, "sm103"),
    _cuda("rtxpro6000", "RTX PRO 6000", (12, 0), 97887, "sm120"),
    _cuda("rtx5090", "RTX 5090", (12, 0), 32607, "sm120"),
    _cuda("rtx5080", "RTX 5080", (12, 0), 16303, "sm120"),
    _cuda("gb10", "GB10", (12, 1), 122502, "sm120"),
    _cuda("thor", "Jetson Thor", (11, 0), 125772, "sm110"),
    Hardware("mi300x", "MI300X", "hip", (9, 4), 196592, "mi300"),
    Hardware("mi308x", "MI308X", "hip", (9, 4), 196592, "mi300"),
    Hardware("mi325x", "MI325X", "hip", (9, 4), 262128, "mi300"),
    Hardware("mi350x", "MI350X", "hip", (9, 5), 294896, "mi355"),
    Hardware("mi355x", "MI355X", "hip", (9, 5), 294896, "mi355"),
    Hardware("cpu", "CPU", "cpu", None, None, "cpu"),
    Hardware("npu", "Ascend NPU", "npu", None, None, "npu"),
    Hardware("xpu", "Intel XPU", "xpu", None, None, "xpu"),
)
DEVICES: dict[str, Hardware] = {d.name: d for d in _DEVICES}


def _family(name: str, title: str, platform: Platform, capability: tuple[int, int]) -> Hardware:
    sizes = [d.memory_mib for d in _DEVICES if d.family == name and d.memory_mib is not None]
    return Hardware(name, title, platform, capability, None, name, (min(sizes), max(sizes)))


@cache
def _most_named_like(name: str) -> int:
    """The most memory (MiB) of the variants of a device (`h100-nvl`); 0 if there are none."""
    named = (d.memory_mib for d in _DEVICES if d.name.startswith(f"{name}-") and d.memory_mib is not None)
    return max(named, default=0)


FAMILIES: dict[str, Hardware] = {
    f.name: f
    for f in (
        _family("ampere", "Ampere (A100)", "cuda", (8, 0)),
        _family("ada", "Ada (L40S, RTX 4090)", "cuda", (8, 9)),
        _family("hopper", "Hopper (H100, H200)", "cuda", (9, 0)),
        _family("sm100", "SM100 (B200, GB200)", "cuda", (10, 0)),
        _family("sm103", "SM103 (B300, GB300)", "cuda", (10, 3)),
        _family("sm120", "SM120 (RTX 5090, RTX PRO 6000)", "cuda", (12, 0)),
        _family("mi300", "MI300 (MI300X, MI325X)", "hip", (9, 4)),
        _family("mi355", "MI355 (MI350X, MI355X)", "hip", (9, 5)),
    )
}
"""The hardware worlds of a launch if no hardware is named. CPU, NPU and XPU are worlds only if they are named."""


_NOISE = frozenset({"nvidia", "amd", "instinct", "tesla", "geforce", "intel", "ascend", "jetson", "gpu"})
_ALIASES = {"sm89": "ada", "sm90": "hopper", "gfx942": "mi300", "gfx950": "mi355"}


@lru_cache(maxsize=256)
def find(name: str) -> Hardware | None:
    """The device or family of a name ("H100", "nvidia-h200", "A100-SXM4-40GB", "hopper"); None if unknown."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word and word not in _NOISE]
    words = "-".join(words).replace("rtx-pro-", "rtxpro").replace("rtx-", "rtx").split("-")
    memory = [f"{words[0]}-{word}" for word in words if re.fullmatch(r"\d+gb", word)]
    for key in ("-".join(words), *memory, "-".join(words[:2]), "".join(words[:2]), words[0]):
        found = DEVICES.get(key) or FAMILIES.get(_ALIASES.get(key, key))
        if found is not None:
            return found
    return None
