"""The input of an analysis beside a document's text: settings, the files around it, and the worlds that a launch may run in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import Hardware
from spec_lsp.facts.model import ModelFacts
from spec_lsp.records import dataclass, field
from spec_lsp.resolution.engine import Severity


@dataclass(frozen=True, slots=True)
class Target:
    """A world that somebody named: a release, a device (or family), or both; None where it is left open. `…_from` says where it is named;
    `sglang` is the path of an SGLang in place of a release."""

    release: Release | None = None
    hardware: Hardware | None = None
    release_from: str = "settings"
    hardware_from: str = "settings"
    sglang: str = ""

    def __str__(self) -> str:
        parts = [f"SGLang {self.release}" if self.release else "", self.hardware.title if self.hardware else ""]
        return " on ".join(p for p in parts if p)


@dataclass(frozen=True, slots=True)
class Options:
    """What settings decide of an analysis. `severities` maps rule names to a severity or "off". `targets` replaces the worlds, `otherwise`
    applies where a file names none, `release` overrides whatever a file names. Fix-all applies the fixes of the rules in `fix_all`; of
    every rule where it is None. `python` is the interpreter whose SGLang is meant."""

    targets: tuple[Target, ...] = ()
    severities: Mapping[str, Severity | Literal["off"]] = field(default_factory=dict)
    honour_ignores: bool = True
    otherwise: Target = Target()
    release: Release | None = None
    fix_all: frozenset[str] | None = None
    python: str = ""


class Workspace(Protocol):
    """The files and models analysis may read. Implementations never fetch."""

    def read(self, document: str, path: str) -> tuple[str, str] | None:
        """A file as `document` names it: (its own document name, its text), or None when it is not in the workspace."""

    def left_out(self, document: str, path: str) -> str:
        """Why a file that `read` does not give is left out though it may be there, as what is said of it ("lies outside the workspace");
        empty where there is no such reason."""

    def unreadable_model(self, document: str, path_or_id: str) -> str:
        """Why the config.json of a model that lies where it may be read cannot be used, as what is said of it; empty where there is no
        such reason."""

    def model(self, document: str, path_or_id: str) -> ModelFacts | None:
        """The facts of a model folder or model id; None when nothing is known of it."""

    def release(self, document: str, python: str = "") -> tuple[Release, str] | None:
        """The SGLang that is at hand around the document (the environment of `python`, one in its folders, a checkout), else the release
        that its folders pin, and where (`.venv`, `requirements.txt`); None when none does."""

    def unread_sglang(self, document: str, python: str = "") -> str:
        """What is said of an SGLang at hand that would come before what `release` gives, and cannot be read; empty where there is none."""

    def sglang_at(self, document: str, path: str) -> tuple[Release | None, str]:
        """The SGLang at a path that somebody named, or why there is none, as what is said of the path."""


@dataclass(frozen=True, slots=True)
class World:
    """One world a launch was resolved in, and why: `release_from`/`hardware_from` say where each was taken from
    ("image tag", "directive", "settings", "not named")."""

    release: Release
    hardware: Hardware | None
    release_from: str = "not named"
    hardware_from: str = "not named"
