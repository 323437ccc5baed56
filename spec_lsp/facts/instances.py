"""Which accelerator a cloud's machine types have, where their names do not say it (`p5.48xlarge`, `a3-megagpu-8g`).

Names that hold the device's own (`p6-b200.48xlarge`, `BM.GPU.H200.8`, `Standard_ND96isr_H200_v5`) need no row but where that would mislead.
"""

from __future__ import annotations

from spec_lsp.expressions import expression
from spec_lsp.facts.hardware import DEVICES, Hardware

_AWS = "docs.aws.amazon.com/ec2/latest/instancetypes/ac.html"
_GOOGLE = "cloud.google.com/compute/docs/gpus"
_AZURE = "learn.microsoft.com/azure/virtual-machines/sizes/overview#gpu-accelerated"
_ORACLE = "docs.oracle.com/iaas/Content/Compute/References/computeshapes.htm"

INSTANCES: tuple[tuple[str, str, str], ...] = (
    (r"p3", "v100-16gb", _AWS),
    (r"p3dn", "v100", _AWS),
    (r"p4d", "a100-40gb", _AWS),
    (r"p4de", "a100", _AWS),
    (r"p5", "h100", _AWS),
    (r"p5en?", "h200", _AWS),
    (r"g4dn", "t4", _AWS),
    (r"g5", "a10", _AWS),
    (r"g6|gr6", "l4", _AWS),
    (r"g6e", "l40s", _AWS),
    (r"g7e", "rtxpro6000", _AWS),
    (r"a2-(?:high|mega)gpu", "a100-40gb", _GOOGLE),
    (r"a2-ultragpu", "a100", _GOOGLE),
    (r"a3-(?:high|mega|edge)gpu", "h100", _GOOGLE),
    (r"a3-ultragpu", "h200", _GOOGLE),
    (r"a4-highgpu|a4", "b200", _GOOGLE),
    (r"a4x-highgpu|a4x", "gb200", _GOOGLE),
    (r"a4x-maxgpu", "gb300", _GOOGLE),
    (r"g2-standard|g2", "l4", _GOOGLE),
    (r"g4-standard", "rtxpro6000", _GOOGLE),
    (r"standard_nd96asr(?:_a100)?_v4", "a100-40gb", _AZURE),
    (r"standard_nc(?:40|80)adi?s_h100_v5", "h100-nvl", _AZURE),
    (r"bm\.gpu4", "a100-40gb", _ORACLE),
)
"""The first parts of names, in lower case, the device, and where that is written."""

_SIZES = {_AWS: r"\.(?:\d*xlarge|metal[\w-]*)", _GOOGLE: r"-\d+g?", _AZURE: "", _ORACLE: r"\.\d+"}
"""What stands behind these parts."""
_PATTERNS = tuple(
    (expression(rf"(?:(?:ml\.)?(?:{name}){_SIZES[source]}|family=(?:{name}))\Z"), device)
    for name, device, source in INSTANCES
)


def instance(name: str) -> Hardware | None:
    """The device of a machine type (`p5.48xlarge`, `ml.g5.xlarge`) or of a family of them (`family=p5`); None for any other text."""
    lowered = name.strip().lower()
    found = (device for pattern, device in _PATTERNS if pattern.match(lowered))
    device = next(found, None)
    return DEVICES[device] if device is not None else None
