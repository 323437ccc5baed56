"""Which worlds a launch may meet: the releases and hardware that the file, the settings or the workspace name, else the possible ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from spec_lsp.analysis.inputs import Options, Target, Workspace, World
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.facts.clues import OF_ROCM, LaunchClues, Named, hint_of, platform_of, read_clues
from spec_lsp.facts.hardware import DEVICES, FAMILIES, Hardware, find
from spec_lsp.records import dataclass, replace
from spec_lsp.syntax.launch import Directive, Document, Launch

OLDER_WORLDS = tuple(Release.parse(r) for r in ("0.5.21", "0.5.19", "0.5.16", "0.5.13.post1", "0.5.12", "0.5.9"))
"""Releases that people still run, considered only if the newest refuses and nobody named one."""


NOT_NAMED = "not named"


@dataclass(frozen=True, slots=True)
class Assumed:
    """The assumed worlds of one launch. `releases` are those that somebody named, empty if nobody did."""

    worlds: tuple[World, ...]
    release_named: bool
    clues: LaunchClues
    releases: tuple[Named[Release], ...] = ()
    build: str = ""
    """What may be a build that is no release ("the image's own build"); empty for SGLang as it is released."""


def newest() -> Release:
    return releases()[-1]


def assume(
    launch: Launch,
    directives: Sequence[Directive],
    options: Options,
    workspace: Workspace,
    document: str,
    build: str = "",
) -> Assumed:
    """The worlds of a launch. Release: directive > targets of the settings > image tag > pip pin > `sglang` of the settings > the SGLang
    that is installed or checked out > the workspace's lock file. Hardware: directive > targets > `--device`, scheduler, image tag > `gpu`
    of the settings. What names only a maker (ROCm, CUDA) leaves its families; a file's name only says which one is likeliest. Older
    releases are not among the worlds (see `OLDER_WORLDS`). `build`: what shows in the document that it runs somebody's own build."""
    directed_release, directed_device = _directed(directives, launch, workspace, document)
    clues, otherwise = read_clues(launch.clues), options.otherwise
    releases_named = clues.releases or _releases_around(options, workspace, document)
    device_named = clues.device or _named_hardware(otherwise)
    worlds: list[World] = []
    named: list[Named[Release]] = []
    for target in (_located(t, workspace, document) for t in options.targets or (Target(),)):
        asked = (Named(options.release, "asked for"),) if options.release else ()
        chosen = asked or _releases_of(directed_release, target, releases_named)
        named += chosen
        device = directed_device or _named_hardware(target) or device_named
        devices = [Named(device.value, device.source)] if device else _possible(launch, clues, document)
        for release in chosen or (Named(newest(), NOT_NAMED),):
            worlds += [World(release.value, d.value, release.source, d.source) for d in devices]
    release_named = all(w.release_from != NOT_NAMED for w in worlds)
    said = any(w.release_from in ("directive", "asked for") for w in worlds)
    build = build or ("the SGLang that is installed from its sources" if clues.from_sources else "")
    build = build or ("the image's own build" if clues.own_image and not release_named else "")
    return Assumed(
        tuple(dict.fromkeys(worlds)),
        release_named,
        clues,
        tuple(dict.fromkeys(named)),
        "" if said else build,
    )


# --- directives --------------------------------------------------------------------------------------------------------


def _directed(
    directives: Sequence[Directive], launch: Launch, workspace: Workspace, document: str
) -> tuple[Named[Release] | None, Named[Hardware] | None]:
    """The release and the hardware that the last directive before the launch's end names, each taken separately."""
    release: Named[Release] | None = None
    hardware: Named[Hardware] | None = None
    for directive in directives:
        reaches = directive.within is None or directive.within.contains(launch.extent)
        if reaches and directive.place.start < launch.extent.end:
            values = directive_values(directive.text)
            written, device = values.get("sglang", ""), find(values.get("gpu", ""))
            said = workspace.sglang_at(document, written)[0] if is_path(written) else Release.read(written)
            release = Named(said, "directive", directive.place) if said else release
            hardware = Named(device, "directive", directive.place) if device else hardware
    return release, hardware


def directive_values(text: str) -> dict[str, str]:
    """`sglang=0.5.19 gpu=b200` as a mapping; words without `=` are left out. `==` is written as pip does."""
    parts = (word.partition("=") for word in text.replace(",", " ").split())
    return {name: value.removeprefix("=") for name, _, value in parts if value}


# --- releases ----------------------------------------------------------------------------------------------------------


def _releases_of(
    directed: Named[Release] | None, target: Target, clued: Sequence[Named[Release]]
) -> tuple[Named[Release], ...]:
    if directed is not None:
        return (directed,)
    return (Named(target.release, target.release_from),) if target.release else tuple(clued)


def _releases_around(options: Options, workspace: Workspace, document: str) -> tuple[Named[Release], ...]:
    """The release that the settings or the workspace name."""
    otherwise = _located(options.otherwise, workspace, document)
    if otherwise.release is not None:
        return (Named(otherwise.release, otherwise.release_from),)
    at_hand = None if any(t.release for t in options.targets) else workspace.release(document, options.python)
    return (Named(*at_hand),) if at_hand else ()


def _located(target: Target, workspace: Workspace, document: str) -> Target:
    """A target with the release of the SGLang at its path; left open if there is none."""
    return replace(target, release=workspace.sglang_at(document, target.sglang)[0]) if target.sglang else target


def directed_paths(directives: Iterable[Directive]) -> Iterator[tuple[Directive, str]]:
    """The paths by which directives name an SGLang."""
    for directive in directives:
        path = "" if directive.text.startswith("ignore") else directive_values(directive.text).get("sglang", "")
        if is_path(path):
            yield directive, path


def sglang_at_hand(document: Document, options: Options, workspace: Workspace) -> tuple[object, ...]:
    """Everything the disk decides about the SGLang that a document's launches may run on."""
    if not document.launches:
        return ()
    named = [path for _, path in directed_paths(document.directives)]
    named += (t.sglang for t in (*options.targets, options.otherwise) if t.sglang)
    located = tuple(workspace.sglang_at(document.name, path) for path in named)
    return workspace.release(document.name, options.python), located


def is_path(written: str) -> bool:
    """Whether what names an SGLang is a path: `./sglang`, `~/sglang`, `third_party/sglang`."""
    return "/" in written or "\\" in written or written.startswith((".", "~"))


# --- hardware ----------------------------------------------------------------------------------------------------------

FILE_NAME = "file name"


def _named_hardware(target: Target) -> Named[Hardware] | None:
    return Named(target.hardware, target.hardware_from) if target.hardware else None


def _possible(launch: Launch, clues: LaunchClues, document: str) -> list[Named[Hardware]]:
    """The families that a launch may run on if nobody names a device. If the file's name mentions a device, that is used in place of its
    family, as the likeliest.

    Image names take precedence over other clues, and these over names of variables.
    """
    platform = platform_of({name for v in launch.variants for name in v.env})
    if platform == "npu":
        return [Named(DEVICES["npu"], "environment variable")]
    hint = hint_of(document)
    families = list(FAMILIES.values())
    told = list(clues.makers)
    if platform == "hip" or (platform == "cuda" and not _is_for_rocm(launch, hint)):
        told.append(tuple(f for f in families if f.platform == platform))
    for one in told:
        families = [f for f in families if f in one] or families
    return [Named(hint, FILE_NAME) if hint and hint.family == f.name else Named(f, NOT_NAMED) for f in families]


def _is_for_rocm(launch: Launch, hint: Hardware | None) -> bool:
    """Whether it is launched on ROCm although CUDA's variables are set: ROCm reads those too."""
    return (hint is not None and hint.is_hip) or any(w.text in OF_ROCM for v in launch.variants for w in v.words)
