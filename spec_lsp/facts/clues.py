"""What images, pins, schedulers and device names tell of the release and the hardware a launch will meet."""

from __future__ import annotations

import re
from collections.abc import Iterable

from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import DEVICES, FAMILIES, Hardware, find
from spec_lsp.syntax.launch import Clue

_IMAGE = re.compile(
    r"(?P<repository>[\w./:-]*?(?:sglang|sgl-dev)[\w.-]*)(?::(?P<tag>[\w.+-]+))?(?:@sha256:[0-9a-f]+)?$"
)
_NOT_THE_SERVER = re.compile(r"sglang-(?:router|sidecar|runtime|gateway|jax)|ai-dynamo|nvcr\.io/nvidia/sglang")
_TAG_RELEASE = re.compile(r"v?(\d+\.\d+\.\d+(?:\.post\d+|rc\d+)?)(?=$|[-_.+])")
_SQSH_RELEASE = re.compile(r"sglang[+:_-]v(\d+\.\d+\.\d+(?:\.post\d+|rc\d+)?)")

_TAG_HARDWARE: tuple[tuple[str, str], ...] = (
    (r"mi30x|mi300", "mi300"),
    (r"mi325", "mi325x"),
    (r"mi35x|mi350|mi355", "mi355"),
    (r"xeon|\bcpu\b", "cpu"),
    (r"cann|npu|910b|\ba3\b|\ba2\b", "npu"),
    (r"\bxpu\b", "xpu"),
    (r"gb300|b300", "sm103"),
    (r"gb200|b200|blackwell", "sm100"),
)


def release_of(clue: Clue) -> Release | None:
    """The release that an image tag or a pip pin names; None for `latest`, nightly builds and images that are not SGLang's server."""
    if clue.kind == "pin":
        match = re.search(r"==\s*([0-9][\w.+]*)", clue.text)
        return Release.read(match.group(1)) if match else None
    if clue.kind != "image" or _NOT_THE_SERVER.search(clue.text):
        return None
    named = _IMAGE.search(clue.text)
    found = _TAG_RELEASE.match(named["tag"]) if named and named["tag"] else _SQSH_RELEASE.search(clue.text)
    return Release.read(found.group(1)) if found else None


def hardware_of(clue: Clue) -> Hardware | None:
    """The device or family that a clue names: an image tag's suffix, a scheduler's `gpu:h100:8`, a node selector's product name."""
    if clue.kind == "image":
        return _from_tag(clue.text)
    if clue.kind == "platform":
        return find(clue.text)
    if clue.kind == "gpu":
        return next((d for word in _words(clue.text) if (d := find(word)) is not None), None)
    return None


def _from_tag(image: str) -> Hardware | None:
    _, _, tag = image.rpartition(":")
    text = tag.lower().replace("_", "-")
    for pattern, name in _TAG_HARDWARE:
        if re.search(pattern, text):
            return DEVICES.get(name) or FAMILIES.get(name)
    return None


def _words(text: str) -> Iterable[str]:
    """Candidates in a scheduler's text, longest first: `gpu:h100:8` → `gpu:h100:8`, `h100`, …"""
    yield text
    yield from re.split(r"[^A-Za-z0-9]+", text)
