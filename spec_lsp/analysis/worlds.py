"""Which worlds a launch may meet: the releases and hardware that the file, the settings or the workspace name, else the possible ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spec_lsp.analysis.report import Options, Target, Workspace, World
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import nearest, releases
from spec_lsp.facts.clues import hardware_of, release_of
from spec_lsp.facts.hardware import FAMILIES, Hardware, find
from spec_lsp.syntax.launch import Clue, Directive, Launch

OLDER_WORLDS = tuple(Release.parse(r) for r in ("0.5.21", "0.5.19", "0.5.16", "0.5.13.post1", "0.5.12", "0.5.9"))
"""Releases people still run, looked at only where the newest refuses and nobody named one."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is assumed of the world of one launch. An empty `releases`/`hardware` means that nobody named any."""

    worlds: tuple[World, ...]
    release_named: bool
    hardware_named: bool


def newest() -> Release:
    return releases()[-1]


def assume(
    launch: Launch, directives: Sequence[Directive], options: Options, workspace: Workspace, document: str
) -> Assumed:
    """The worlds of a launch. Release: directive > targets of the settings > image tag > pip pin > the workspace's lock file;
    hardware: directive > targets > image tag, scheduler, node selector. Older releases are not among them (see `OLDER_WORLDS`)."""
    release, hardware = _directed(directives, launch)
    release_from = "directive" if release else ""
    hardware_from = "directive" if hardware else ""
    clues = launch.clues
    if release is None:
        release, release_from = _from_clues(clues)
    if hardware is None:
        hardware, hardware_from = _hardware_from_clues(clues)
    if release is None and not any(t.release for t in options.targets):
        pinned = workspace.release(document)
        release, release_from = pinned if pinned else (None, "")
    worlds: list[World] = []
    for target in options.targets or (Target(),):
        chosen_release = (release if release_from == "directive" else None) or target.release or release
        chosen_hardware = (hardware if hardware_from == "directive" else None) or target.hardware or hardware
        r_from = (
            release_from if chosen_release is release and release else "settings" if target.release else "not named"
        )
        h_from = (
            hardware_from
            if chosen_hardware is hardware and hardware
            else "settings"
            if target.hardware
            else "not named"
        )
        devices = (chosen_hardware,) if chosen_hardware else tuple(FAMILIES.values())
        worlds += [World(chosen_release or newest(), device, r_from, h_from) for device in devices]
    return Assumed(
        tuple(dict.fromkeys(worlds)),
        all(w.release_from != "not named" for w in worlds),
        all(w.hardware_from != "not named" for w in worlds),
    )


def catalog_release(release: Release) -> Release:
    """The shipped release that stands for `release`: itself, else the nearest older one, else the oldest."""
    return nearest(release)


def _directed(directives: Sequence[Directive], launch: Launch) -> tuple[Release | None, Hardware | None]:
    """What the last directive before the launch's end says, each of release and hardware for itself."""
    release: Release | None = None
    hardware: Hardware | None = None
    for directive in directives:
        if directive.place.start < launch.extent.end:
            values = directive_values(directive.text)
            release = Release.read(values.get("sglang", "")) or release
            hardware = find(values.get("gpu", "")) or hardware
    return release, hardware


def directive_values(text: str) -> dict[str, str]:
    """`sglang=0.5.19 gpu=b200` as a mapping; words without `=` are left out."""
    return {name: value for name, _, value in (word.partition("=") for word in text.replace(",", " ").split()) if value}


def _from_clues(clues: Iterable[Clue]) -> tuple[Release | None, str]:
    for kind, source in (("image", "image tag"), ("pin", "pip pin")):
        for clue in clues:
            if clue.kind == kind and (release := release_of(clue)) is not None:
                return release, source
    return None, ""


def _hardware_from_clues(clues: Iterable[Clue]) -> tuple[Hardware | None, str]:
    sources = {"platform": "--device", "gpu": "scheduler or selector", "image": "image tag"}
    for kind, source in sources.items():
        for clue in clues:
            if clue.kind == kind and (device := hardware_of(clue)) is not None:
                return device, source
    return None, ""
