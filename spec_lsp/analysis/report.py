"""The results of an analysis: plain data in character offsets, to be shown by the server and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, overload

from spec_lsp.analysis.inputs import World
from spec_lsp.analysis.merge import Verdict
from spec_lsp.analysis.run import RunResult
from spec_lsp.catalog.binding import Binding
from spec_lsp.catalog.release import Release
from spec_lsp.records import dataclass, field, replace
from spec_lsp.resolution.engine import Change, Resolution, Rule, Severity
from spec_lsp.syntax.launch import Document, Edit, Launch, Variant
from spec_lsp.syntax.standing import Standing
from spec_lsp.syntax.word import Place


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

    read: Callable[[], Launch]
    """Makes the launch."""
    worlds: tuple[World, ...]
    main: Callable[[], Run]
    """Computes the likeliest run."""
    verdict: Verdict | None = None
    """What SGLang does with the launch in every world; its bindings may be those of another launch with the same words. None where an
    internal fault kept it from being judged."""
    resolve: Callable[[int, World, Binding], RunResult] | None = None
    """What a variant (by index) would resolve to in a world if its words bound like this."""

    @property
    def launch(self) -> Launch:
        return self.read()


class Reports(Sequence[LaunchReport]):
    """The reports of a document's launches, each made on demand."""

    __slots__ = ("_count", "_made", "_make")

    def __init__(self, make: Callable[[int], LaunchReport], count: int) -> None:
        self._make = make
        self._count = count
        self._made: dict[int, LaunchReport] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> LaunchReport: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[LaunchReport]: ...
    def __getitem__(self, index: int | slice) -> LaunchReport | Sequence[LaunchReport]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        index = range(self._count)[index]
        if index not in self._made:
            self._made[index] = self._make(index)
        return self._made[index]


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that takes part in a finding."""

    place: Place
    message: str


Applicability = Literal["safe", "unsafe", "display"]
"""safe: the server runs the same with it; unsafe: it changes what runs; display: only shown, never applied automatically."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Edits that may fix a finding, before they are verified."""

    title: str
    edits: tuple[Edit, ...]
    applicability: Applicability


@dataclass(frozen=True, slots=True)
class Repair:
    """Changes of a launch's settings that may fix a finding, before they are written and verified. `release` binds the launch's words."""

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
    """Only for analysis: what fixes are made from."""

    def turned(self, place: Callable[[Place], Place]) -> Diagnostic:
        """The same with each place turned into another."""
        related = tuple([Related(place(r.place), r.message) for r in self.related])
        return replace(self, place=place(self.place), related=related)


class PlacedDiagnostics(Sequence[Diagnostic]):
    """Diagnostics, each with its places in the text made when it is asked for. `anchored` are those that edits elsewhere leave alone."""

    __slots__ = ("_made", "anchored", "standing")

    def __init__(self, anchored: Sequence[Diagnostic], standing: Standing | None = None) -> None:
        """Without `standing` their places are those in the text."""
        self.anchored = anchored
        self.standing = standing
        self._made: dict[int, Diagnostic] = {}

    def __len__(self) -> int:
        return len(self.anchored)

    @overload
    def __getitem__(self, index: int) -> Diagnostic: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Diagnostic]: ...
    def __getitem__(self, index: int | slice) -> Diagnostic | Sequence[Diagnostic]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if self.standing is None:
            return self.anchored[index]
        index = range(len(self))[index]
        if index not in self._made:
            self._made[index] = self.anchored[index].turned(self.standing.place)
        return self._made[index]

    def __iter__(self) -> Iterator[Diagnostic]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr([*self])


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result for one document. `diagnostics` are in document order and include those whose place is in another file."""

    document: Document
    diagnostics: PlacedDiagnostics
    launches: Sequence[LaunchReport]
    ignored: int = 0
    """How many findings were silenced by ignore comments."""
    depends_on: frozenset[str] = frozenset()
    """Names of documents whose change may change this analysis."""
    faults: tuple[str, ...] = ()
    """The traceback of each internal fault: a launch that could not be judged has a diagnostic instead of a verdict."""


@dataclass(frozen=True, slots=True)
class Fix:
    """One verified fix. The first of a diagnostic's fixes is `preferred`, the one that fix-all applies, unless it is a `guess`: one of
    several names, or one that is only spelled similarly."""

    title: str
    applicability: Applicability
    edits: tuple[Edit, ...]
    preferred: bool = False
    guess: bool = False
    drops: bool = False
    """Whether it removes or turns off something that was typed."""
