"""What images, pins, schedulers and device names show about the release and the hardware of a launch.

An ambiguous text shows nothing: judging a launch for the wrong release is worse than judging it for several.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.wrappers import made_for
from spec_lsp.expressions import expression
from spec_lsp.facts.hardware import DEVICES, FAMILIES, Hardware, find
from spec_lsp.facts.instances import instance
from spec_lsp.records import dataclass
from spec_lsp.syntax.launch import Clue
from spec_lsp.syntax.word import Place

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Named(Generic[T]):
    """Something that was named: what, where from ("image tag", "settings"), and its place in the document (None: elsewhere)."""

    value: T
    source: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class LaunchClues:
    """What the clues of one launch show, each read once."""

    releases: tuple[Named[Release], ...] = ()
    """Pins that differ (one for each branch) are all possible, and so are images at one place (one for each job of a matrix)."""
    device: Named[Hardware] | None = None
    makers: tuple[tuple[Hardware, ...], ...] = ()
    """For each clue that names a maker but no device, the families that remain possible; images come before other clues."""
    from_sources: bool = False
    """Whether SGLang is installed from sources, which may not be a release's."""
    own_image: bool = False
    """Whether an image may contain something that is not a release."""
    foreign_image: bool = False
    """Whether an image is not one of SGLang's own."""
    undated_image: bool = False
    """Whether an image names neither a release nor the latest."""
    counts: tuple[Clue, ...] = ()
    """The clues that may say how many GPUs the launch is given."""
    one_node: bool = True
    """Whether nothing says that it runs on several nodes."""


_DEVICE_SOURCES = {
    "platform": "--device",
    "gpu": "scheduler or selector",
    "runner": "pipeline's runner",
    "image": "image tag",
}
"""The kinds of clues that may name a device, the most reliable first, and what they are called in messages."""


def read_clues(clues: Sequence[Clue]) -> LaunchClues:
    """Read all clues of a launch."""
    if not clues:
        return LaunchClues()
    images = [c for c in clues if c.kind == "image"]
    devices = (
        Named(device, source, clue.place)
        for kind, source in _DEVICE_SOURCES.items()
        for clue in clues
        if clue.kind == kind and (device := hardware_of(clue)) is not None
    )
    return LaunchClues(
        releases=_releases(clues),
        device=next(devices, None),
        makers=tuple(filter(None, map(families_of, sorted(clues, key=lambda c: c.kind != "image")))),
        from_sources=any(c.kind == "build" for c in clues),
        own_image=any(map(is_unreleased, images)),
        foreign_image=not all(map(is_official, images)),
        undated_image=any(release_of(c) is None and not image_parts(c.text)[1].startswith("latest") for c in images),
        counts=tuple(c for c in clues if c.kind in ("gpu", "gpu-count")),
        one_node=all(c.text.strip() == "1" for c in clues if c.kind == "nodes"),
    )


# --- the release -------------------------------------------------------------------------------------------------------

_NOT_THE_SERVER = expression(
    r"sgl(?:ang)?[-_](?:router|sidecar|runtime|gateway|model-gateway|jax|kernel|diffusion|operator|client|bench|test)"
    r"|dynamo|nvcr\.io[/#]nvidia[/+]sglang",
    re.IGNORECASE,
)
"""Images with version numbers of their own: the router, Dynamo's other runtimes (1.x), NGC's calendar (25.12), …"""

_DYNAMO = expression(r"(?:^|/)ai-dynamo/sglang-runtime$")
"""Dynamo's worker, whose versions are each made for a release of SGLang."""

_RELEASE = r"(?P<release>\d+\.\d+\.\d+(?:\.?(?:post|rc)\d+)?)(?![\w.]*dev\d)(?=$|[-_.+])"
_TAG = expression(rf"(?:^|sgl(?:ang|-dev)[-_]?)v?{_RELEASE}", re.IGNORECASE)
_ARCHIVE = expression(rf"sgl(?:ang|-dev)[\w-]*?[+:_@#-]v?{_RELEASE}", re.IGNORECASE)
_ARCHIVE_END = expression(r"\.(?:sqsh|sif|squashfs|tar|tar\.gz)$", re.IGNORECASE)
_PIN = expression(r"sglang\s*(?:\[[^\]]*\])?\s*={2,3}\s*(?P<release>[0-9][\w.+!]*)(?P<more>.*)", re.IGNORECASE)

_OFFICIAL = expression(r"(?:^|/)(?:lmsysorg/sglang(?:-\w+)?|rocm/sgl-dev|ascend/sglang)$")
_OLDEST, _NEXT_MAJOR = Release(0, 3, 0), Release(1, 0, 0)


def _releases(clues: Sequence[Clue]) -> tuple[Named[Release], ...]:
    """The releases that images name, or else pins."""
    for kind, source in (("image", "image tag"), ("pin", "pip pin")):
        found = [Named(r, source, c.place) for c in clues if c.kind == kind and (r := release_of(c)) is not None]
        if found:
            likely = [n for n in found if kind == "pin" or n.place == found[0].place]
            return tuple(reversed({n.value: n for n in reversed(likely)}.values()))
    return ()


def release_of(clue: Clue) -> Release | None:
    """The release that an image tag or a pip pin names; also the one that a version of Dynamo's worker is made for.
    None for `latest`, nightly builds and images that are not SGLang's server."""
    if clue.kind == "pin":
        return _pinned(clue.text)
    if clue.kind != "image":
        return None
    repository, tag = image_parts(clue.text.strip())
    if _DYNAMO.search(repository):
        version = re.match(r"v?(\d+\.\d+\.\d+)(?=$|[-_.+])", tag)
        return made_for(version[1]) if version else None
    return None if _NOT_THE_SERVER.search(clue.text) else _from_image(clue.text.strip())


def _pinned(text: str) -> Release | None:
    """`sglang[all]==0.5.9`; not a development build, whose number only says what came before it."""
    match = _PIN.search(text)
    if match is None or "dev" in match["release"] or match["more"].lstrip().startswith("*"):
        return None
    return Release.read(match["release"].rstrip("."))


def _from_image(image: str) -> Release | None:
    """The release in `lmsysorg/sglang:v0.5.9-cu130@sha256:…` or `lmsysorg+sglang+v0.5.9.sqsh`.

    The tag of a mirror or a derived image counts only if it can be an SGLang release: `team/sglang-server:2.1.0` may contain anything.
    """
    if _ARCHIVE_END.search(image):
        name = _ARCHIVE_END.sub("", image.rpartition("/")[2])
        found = _ARCHIVE.search(name)
        repository = ""
    else:
        repository, tag = image_parts(image)
        if not re.search(r"sglang|sgl-dev", image, re.IGNORECASE):
            return None
        found = _TAG.search(tag)
    release = Release.read(found["release"]) if found else None
    if release is None or (not _OFFICIAL.search(repository) and not _OLDEST <= release < _NEXT_MAJOR):
        return None
    return release


def is_unreleased(clue: Clue) -> bool:
    """Whether an SGLang image may contain something that is not a release: a nightly build, a build for one model or with private
    patches."""
    if (
        clue.kind != "image"
        or not re.search(r"sglang|sgl-dev", clue.text, re.IGNORECASE)
        or release_of(clue) is not None
    ):
        return False
    repository, tag = image_parts(clue.text.strip())
    return not _OFFICIAL.search(repository) or not (not tag or tag.startswith("latest"))


def is_official(clue: Clue) -> bool:
    """Whether an image is one that SGLang itself publishes."""
    return _OFFICIAL.search(image_parts(clue.text.strip())[0]) is not None


def image_parts(image: str) -> tuple[str, str]:
    """Repository and tag of an image reference, both without scheme and digest; a registry's port is no tag."""
    text = re.sub(r"^[a-z]+://", "", image).partition("@")[0].replace("#", "/")
    folder, _, name = text.rpartition("/")
    name, _, tag = name.partition(":")
    return f"{folder}/{name}" if folder else name, tag


# --- the hardware ------------------------------------------------------------------------------------------------------

_TAG_HARDWARE: tuple[tuple[str, str], ...] = (
    (r"mi30\dx?|mi30x|gfx942", "mi300"),
    (r"mi325", "mi325x"),
    (r"mi35\dx?|mi35x|gfx950", "mi355"),
    (r"xeon|(?<![a-z0-9])cpu(?![a-z0-9])", "cpu"),
    (r"cann|npu|910b|(?<![a-z0-9])a[23](?![a-z0-9])", "npu"),
    (r"(?<![a-z0-9])xpu(?![a-z0-9])", "xpu"),
    (r"gb300|b300", "sm103"),
    (r"gb200|b200|grace-blackwell", "sm100"),
    (r"(?<![a-z])h20(?![0-9])", "h20"),
    (r"h200", "h200"),
    (r"h100", "h100"),
)
"""A device, or a family where one image serves all of it (MI300X, MI308X and MI325X; B200 and GB200)."""

_CUDA = tuple(f for f in FAMILIES.values() if f.platform == "cuda")
_HIP = tuple(f for f in FAMILIES.values() if f.platform == "hip")
_PRODUCT = expression(r"(?:gpu|gres):(?P<name>[A-Za-z][\w.-]*)")


def hardware_of(clue: Clue) -> Hardware | None:
    """The device or family that a clue names: an image tag's suffix, a scheduler's `gpu:h100:8`, a node selector's product name."""
    if clue.kind == "image":
        return _from_tag(clue.text)
    if clue.kind == "platform":
        return _from_platform(clue.text)
    if clue.kind == "gpu":
        return _from_scheduler(clue.text)
    return _from_runner(clue.text) if clue.kind == "runner" else None


def families_of(clue: Clue) -> tuple[Hardware, ...]:
    """The families that remain possible if a clue names a maker but no device: ROCm, CUDA. Empty if it shows nothing."""
    text = clue.text.lower()
    if clue.kind == "image":
        if re.search(r"rocm|sgl-dev", text):
            return _HIP
        return _CUDA if re.search(r"(?<![a-z])cu(?:da)?1[1-4]\d?(?:\.\d)?", image_parts(text)[1] or text) else ()
    if clue.kind == "platform" and text.startswith(("/dev/kfd", "amd.com/gpu", "rocm-smi", "amd-smi")):
        return _HIP
    if clue.kind == "platform" and text.startswith(("cuda", "nvidia")):
        return _CUDA
    if clue.kind == "gpu" and hardware_of(clue) is None:
        return _of_maker(text)
    return ()


_MAKERS = (
    (_HIP, r"\bamd\b|instinct|radeon|\bmi\d{3}|\bg4ad\."),
    (_CUDA, r"nvidia|tesla|geforce|\b(?:ml\.)?(?:p\d|g\d)\w*\.|\b(?:a2|a3|a4x?|g2|g4)-|standard_n[cd]|bm\.gpu"),
)
"""Names of devices and of clouds' machine types that show only the maker."""


def _of_maker(text: str) -> tuple[Hardware, ...]:
    """The families of the only maker that the name of a device or a machine type mentions."""
    found = [families for families, names in _MAKERS if re.search(names, text)]
    return found[0] if len(found) == 1 else ()


_MAKERS_VARIABLES = (
    (expression(r"(?:HIP|ROCR|HSA|RCCL|MIOPEN)_|SGLANG_(?:USE_)?(?:AITER|ROCM)"), "hip"),
    (expression(r"(?:ASCEND|HCCL)_"), "npu"),
    (expression(r"(?:CUDA|NVIDIA|NCCL|NVSHMEM)_"), "cuda"),
)
"""Variables that a maker's software reads, the most specific first: ROCm also reads CUDA's and NCCL's names."""


def platform_of(variables: Collection[str]) -> str | None:
    """The platform that the names of a process's variables suggest: "hip", "npu", "cuda"; None if they suggest none."""
    for pattern, platform in _MAKERS_VARIABLES:
        if any(pattern.match(name) for name in variables):
            return platform
    return None


def _from_tag(image: str) -> Hardware | None:
    """The device in an image's tag or its archive's name; a model's name (`b2000m`) does not count."""
    _, tag = image_parts(image)
    text = (tag or image.rpartition("/")[2]).lower().replace("_", "-")
    for pattern, name in _TAG_HARDWARE:
        if re.search(pattern, text):
            return FAMILIES.get(name) or DEVICES[name]
    if re.search(r"(?<![a-z])blackwell", text):
        return None  # SM100 or SM120
    repository, _ = image_parts(image)
    suffix = re.search(r"sglang-(npu|xpu|cpu|xeon)$", repository)
    if suffix or re.search(r"ascend/sglang$", repository):
        return DEVICES[{"xeon": "cpu"}.get(suffix[1], suffix[1]) if suffix else "npu"]
    return None


_ACCELERATORS = (
    (r"^/dev/davinci|^/dev/devmm|huawei\.com/|ascend|^npu-smi", "npu"),
    (r"^gpu\.intel\.com|^xpu-smi", "xpu"),
)


def _from_platform(text: str) -> Hardware | None:
    """`cpu`, `npu`; `/dev/davinci0` that a container is given."""
    for pattern, name in _ACCELERATORS:
        if re.search(pattern, text.lower()):
            return DEVICES[name]
    return None if "/" in text else find(text)


def _from_scheduler(text: str) -> Hardware | None:
    """`gpu:h100:8` (only the type counts), `h200|b200` (either: nothing), `NVIDIA-H100-80GB-HBM3`."""
    product = _PRODUCT.search(text)
    if product is not None:
        return find(product["name"])
    found: set[Hardware | None] = set()
    for either in text.split("|"):
        named = list(dict.fromkeys(filter(None, map(_named, re.split(r"[,&\[\]()*+\s]+", either)))))
        found.add(_only(named))
    return _only(found)


def _from_runner(text: str) -> Hardware | None:
    """The only device among a pipeline's labels (`8-gpu-b200`, `self-hosted,h200`), the same in each of several jobs (`|`)."""
    found: set[Hardware | None] = set()
    for labels in text.lower().replace("_", "-").split("|"):
        named = {DEVICES[m[1]] for m in _IN_NAME.finditer(labels) if m[1] not in _NO_HINT or _says_gpu(labels, m)}
        named |= {
            FAMILIES.get(name) or DEVICES[name]
            for pattern, name in _TAG_HARDWARE
            if name.startswith("mi") and not named and re.search(rf"(?<![a-z0-9])(?:{pattern})(?![a-z0-9])", labels)
        }
        found.add(_only(named))
    return _only(found)


def _only(found: Collection[T]) -> T | None:
    """The only element; None if there are several or none."""
    return next(iter(found)) if len(found) == 1 else None


def _says_gpu(labels: str, found: re.Match[str]) -> bool:
    """Whether a short name is marked as a GPU's: `1-gpu-l4`."""
    return found[1] != "cpu" and re.search(r"gpu-?\Z", labels[: found.start()]) is not None


def _named(text: str) -> Hardware | None:
    return instance(text) or next((d for word in _words(text) if (d := find(word)) is not None), None)


def _words(text: str) -> Iterable[str]:
    """Candidates in a scheduler's text, longest first: `gpu:h100:8` → `gpu:h100:8`, `h100`, …"""
    yield text
    yield from re.split(r"[^A-Za-z0-9]+", text)


_IN_NAME = expression(r"(?<![a-z0-9])(" + "|".join(sorted(DEVICES, key=len, reverse=True)) + r")(?![a-z0-9])")
_NO_HINT = frozenset(("cpu", "thor", "t4", "l4", "a10"))
"""Too short, or too likely to mean something else in a file's name."""


def hint_of(name: str) -> Hardware | None:
    """The device that the name of a file or its folder mentions (`run_glm5_b200.sh`): only a hint. None if it names several."""
    text = "/".join(re.split(r"[/\\]", name)[-2:]).lower().replace("_", "-")
    found = {DEVICES[m[1]] for m in _IN_NAME.finditer(text) if m[1] not in _NO_HINT}
    return _only(found)


# --- what a launch itself gives -----------------------------------------------------------------------------------------

_TELLS_DEVICE = {
    "device": {"cpu": "cpu", "npu": "npu", "xpu": "xpu"},
    "attention_backend": {"ascend": "npu"},
    "prefill_attention_backend": {"ascend": "npu"},
    "decode_attention_backend": {"ascend": "npu"},
    "sampling_backend": {"ascend": "npu"},
    "mm_attention_backend": {"ascend_attn": "npu"},
    "moe_a2a_backend": {"ascend_fuseep": "npu"},
    "disaggregation_transfer_backend": {"ascend": "npu"},
}
"""Values that show which kind of device a launch is for, by field. Those of Ascend run nowhere else, and people omit the device."""


OF_ROCM = frozenset(("aiter", "wave"))
"""Values of flags that run only on ROCm."""


def device_told(typed: Mapping[str, Any]) -> Hardware | None:
    """The device that the known values of a launch are for, by field; None if they show nothing."""
    told = (values.get(str(typed.get(field))) for field, values in _TELLS_DEVICE.items())
    device = next(filter(None, told), None)
    return DEVICES[device] if device is not None else None
