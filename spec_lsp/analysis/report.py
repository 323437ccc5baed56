"""What analysis says of a document: plain data in character offsets, for the server and the command line to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from spec_lsp.catalog.binding import Binding
from spec_lsp.catalog.release import Release
from spec_lsp.facts.hardware import Hardware
from spec_lsp.facts.model import ModelFacts
from spec_lsp.resolution.engine import Change, Resolution, Rule, Severity
from spec_lsp.syntax.launch import Document, Edit, Launch, Variant
from spec_lsp.syntax.word import Place

if TYPE_CHECKING:
    from spec_lsp.analysis.judge import RunResult, Verdict

# --- what analysis is given --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """A world somebody named: a release, a device (or family), or both; None where it is left open."""

    release: Release | None = None
    hardware: Hardware | None = None

    def __str__(self) -> str:
        parts = [f"SGLang {self.release}" if self.release else "", self.hardware.title if self.hardware else ""]
        return " on ".join(p for p in parts if p)


@dataclass(frozen=True, slots=True)
class Options:
    """What settings decide of an analysis. `severities` maps rule names to a severity or "off"; `targets` replaces the worlds,
    `otherwise` holds where a file names none, `release` whatever it names. Fix-all applies the fixes of the rules `fix_all` names; of every
    rule where it is None."""

    targets: tuple[Target, ...] = ()
    severities: Mapping[str, Severity | Literal["off"]] = field(default_factory=dict)
    honour_ignores: bool = True
    otherwise: Target = Target()
    release: Release | None = None
    fix_all: frozenset[str] | None = None


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

    def release(self, document: str) -> tuple[Release, str] | None:
        """The release that the folders around the document pin, and where (`requirements.txt`); None when none does."""


# --- what analysis says ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class World:
    """One world a launch was resolved in, and why: `release_from`/`hardware_from` say where each was taken from
    ("image tag", "directive", "settings", "not named")."""

    release: Release
    hardware: Hardware | None
    release_from: str = "not named"
    hardware_from: str = "not named"


@dataclass(frozen=True, slots=True)
class Run:
    """One variant of a launch in one world: how its words bind and what they resolve to."""

    variant: Variant
    world: World
    binding: Binding
    resolution: Resolution | None
    """None when the words do not bind: SGLang's argparse ends the launch first."""


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """One launch and its run in the likeliest world (first variant, newest or named release, named hardware or Hopper)."""

    launch: Launch
    worlds: tuple[World, ...]
    main: Callable[[], Run]
    """Computed when asked for."""
    verdict: Verdict | None = None
    """What SGLang does with the launch in every world; its bindings may be those of another launch that reads the same. None where a
    fault of ours kept it from being judged."""
    resolve: Callable[[int, World, Binding], RunResult] | None = None
    """What a variant (by index) would resolve to in a world if its words bound like this."""


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that takes part in a finding."""

    place: Place
    message: str


Applicability = Literal["safe", "unsafe", "display"]
"""safe: the server runs the same with it; unsafe: it changes what runs; display: shown, never applied by itself."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Edits that may be a way out, before they are verified."""

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability


@dataclass(frozen=True, slots=True)
class Repair:
    """Changes of a launch's settings that may be a way out, before they are printed and verified. `release` binds the launch's words."""

    changes: tuple[Change, ...]
    release: Release


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding at one place, merged over variants and worlds.

    `key` identifies it among the document's diagnostics across requests (content-based, no offsets). `place` and `related` may lie
    in other documents (a `--config` file); `launch` is the index of the launch in its document, None for findings of the document itself.
    """

    rule: Rule
    severity: Severity
    message: str
    place: Place
    key: str
    late: bool = False
    related: tuple[Related, ...] = ()
    unnecessary: bool = False
    deprecated: bool = False
    launch: int | None = None
    also: tuple[int, ...] = ()
    """Other launches of the document with the same finding at the same place: they share the flag."""
    source: Any = field(default=None, compare=False, repr=False)
    """For analysis alone: from what fixes are made."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that is said of one document. `diagnostics` are in document order and hold those whose place lies in other files too."""

    document: Document
    diagnostics: tuple[Diagnostic, ...]
    launches: tuple[LaunchReport, ...]
    ignored: int = 0
    """How many findings ignore comments silenced."""
    depends_on: frozenset[str] = frozenset()
    """Names of documents whose change may change this analysis."""
    faults: tuple[str, ...] = ()
    """The traceback of each fault of ours: a launch that could not be judged has a diagnostic instead of a verdict."""


@dataclass(frozen=True, slots=True)
class Fix:
    """One verified way out. The first of a diagnostic's fixes is `preferred`, the one that fix-all applies, unless it is a `guess`: one
    of several names, or one that is only spelt alike."""

    title: str
    applicability: Applicability
    edits: tuple[Edit, ...]
    preferred: bool = False
    guess: bool = False
    drops: bool = False
    """Whether it takes out or turns off something that was typed."""
