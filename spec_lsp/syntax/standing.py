"""Places that stay the same while other parts of a text are edited.

What is read as a unit (a statement, a document of a YAML file) is a *part*. A place within it is *anchored*: it counts characters from the
part's base, a number that stays the same however the text around the part changes. Bases rise in the order of the parts and are far apart,
so anchored places come before, cover and contain each other exactly as the places in the text do; only distances between parts mean
nothing. Blanks and comments above a part count backwards from its base, those after the last part on from its end.

A `Standing` is the one table of where the parts of a text begin now. An edit creates another table and leaves everything read from other
parts unchanged: the same objects are then in other places of the text. Readers and `analysis.check` work with anchored places; everybody
else gets places in the text, which `Launches` computes for the launches that are asked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TypeVar, overload

from spec_lsp.syntax.edited import left_alone
from spec_lsp.syntax.launch import Clue, Directive, Launch
from spec_lsp.syntax.mapped import Mapped
from spec_lsp.syntax.offsets import Offsets
from spec_lsp.syntax.word import Place

T = TypeVar("T")

GAP = 1 << 60
"""The distance between the bases of parts that are read together."""
STEP = 1 << 40
"""The distance between the base of an inserted part and the one above it, if there is room."""
ROOM = 1 << 25
"""The least distance between two bases: more characters than any text that is read has."""


def first_bases(count: int) -> list[int]:
    """The bases of parts that are read for the first time."""
    return list(range(GAP, GAP * (count + 1), GAP))


def bases_between(above: int, count: int, below: int | None) -> list[int] | None:
    """The bases of parts inserted between one with base `above` and one with base `below` (None: at the end); None without room."""
    found: list[int] = []
    for left in range(count, 0, -1):
        step = GAP if below is None else min((below - above) // (left + 1), STEP)
        if step < ROOM:
            return None
        above += step
        found.append(above)
    return found


def bases_instead(bases: Sequence[int], first: int, same: int, count: int) -> list[int] | None:
    """The bases of `count` parts in place of parts [first, same): the old ones as far as there are, so that what precedes an edit within a
    part keeps its anchored place; None without room."""
    kept = bases[first : min(same, first + count)]
    above = kept[-1] if kept else bases[first - 1] if first else 0
    more = bases_between(above, count - len(kept), bases[same] if same < len(bases) else None)
    return None if more is None else [*kept, *more]


class Standing:
    """The positions of the parts of `document`: part i has base `bases[i]`, text `texts[i]` and begins at `starts[i]`."""

    __slots__ = ("_high", "_low", "_shift", "bases", "document", "size", "starts", "texts")

    def __init__(self, document: str, bases: Sequence[int], texts: Sequence[str], starts: Offsets, size: int) -> None:
        """`size` is the length of the whole text."""
        self.document = document
        self.bases = bases
        self.texts = texts
        self.starts = starts
        self.size = size
        self._low, self._high, self._shift = 1, 0, 0
        """The part that was asked for last, as most questions repeat it."""

    def offset(self, anchored: int) -> int:
        """The offset in the text of an anchored offset."""
        if not self._low <= anchored <= self._high:
            self._turn_to(anchored)
        return min(max(anchored - self._shift, 0), self.size)

    def _turn_to(self, anchored: int) -> None:
        bases = self.bases
        if not bases:
            self._low, self._high, self._shift = 0, self.size, 0
            return
        at = max(bisect_right(bases, anchored) - 1, 0)
        end = bases[at] + len(self.texts[at])
        if anchored > end and at + 1 < len(bases):
            at += 1
            end = bases[at] + len(self.texts[at])
        self._low = bases[at]
        self._high = end
        self._shift = bases[at] - self.starts[at]

    def parts(self, places: Iterable[Place]) -> frozenset[int] | None:
        """The bases of the parts that contain anchored places of the document; None for a place between parts."""
        found: set[int] = set()
        for place in places:
            for at in place[1:] if place.document == self.document else ():
                if not self._low <= at <= self._high:
                    self._turn_to(at)
                if not self._low <= at <= self._high:
                    return None
                found.add(self._low)
        return frozenset(found)

    def part(self, base: int) -> tuple[int, str] | None:
        """Where the part with this base begins, and its text; None if it no longer exists."""
        at = bisect_left(self.bases, base)
        if at == len(self.bases) or self.bases[at] != base:
            return None
        return self.starts[at], self.texts[at]

    def anchored(self, offset: int) -> int:
        """The anchored form of an offset of the text: relative to its part, or between two parts to the one below."""
        if not self.bases:
            return offset
        at = max(self.starts.up_to(offset) - 1, 0)
        if offset - self.starts[at] >= len(self.texts[at]) and at + 1 < len(self.starts):
            at += 1
        return self.bases[at] + offset - self.starts[at]

    def place(self, place: Place) -> Place:
        """The place in the text of an anchored place; places in other documents stay."""
        document, start, end = place
        if document != self.document:
            return place
        if self._low <= start and end <= self._high:
            return Place(document, start - self._shift, end - self._shift)
        start = self.offset(start)
        return Place(document, start, max(start, self.offset(end)))

    def anchor(self, place: Place) -> Place:
        """A place in the text, anchored; one that ends with a part ends in it. Places in other documents stay."""
        if place.document != self.document:
            return place
        start = self.anchored(place.start)
        self._turn_to(start)
        end = start + place.end - place.start
        return Place(place.document, start, end if end <= self._high else self.anchored(place.end))


def stand_again(document: str, texts: Sequence[str], last: Standing | None) -> Standing:
    """Where parts stand that follow each other without a gap: those that read as they did before and behind an edit keep their bases,
    and are the very same texts."""
    nothing = Standing(document, (), (), Offsets([]), 0)
    return _instead(nothing if last is None else last, 0, len(last.texts) if last is not None else 0, texts)


def stand_after_edit(last: Standing, old: str, text: str, cut: Cut, mark: int) -> Standing:
    """The same for a text that was `old`, without a look at all of it. `cut` gives the stretches of a text; whether one begins at a
    character is decided by the one in front of it and by `mark` from it on."""
    start, end = left_alone(old, text)
    starts = last.starts
    first, same = max(starts.up_to(start - mark) - 1, 0), starts.up_to(len(old) - end)
    begin = starts[first] if len(starts) else 0
    piece = text[begin : starts[same] + len(text) - len(old) if same < len(starts) else len(text)]
    return _instead(last, first, same, [piece[a:b] for a, b in cut(piece)])


def _instead(last: Standing, first: int, same: int, texts: Sequence[str]) -> Standing:
    """Where parts stand with others in place of [first, same), as far as these read otherwise."""
    old = last.texts[first:same]
    most = min(len(old), len(texts))
    above = next((i for i in range(most) if old[i] != texts[i]), most)
    below = next((i for i in range(most - above) if old[-1 - i] != texts[-1 - i]), most - above)
    at = list(accumulate(map(len, texts), initial=last.starts[first] if old else 0))
    first, same, new = first + above, same - below, texts[above : len(texts) - below]
    whole = [*last.texts[:first], *new, *last.texts[same:]]
    bases = bases_instead(last.bases, first, same, len(new))
    all_ = [*last.bases[:first], *bases, *last.bases[same:]] if bases is not None else first_bases(len(whole))
    shift = sum(map(len, texts)) - sum(map(len, old))
    starts = last.starts.edited(first, same, at[above : above + len(new)], shift)
    return Standing(last.document, all_, whole, starts, last.size + shift)


Cut = Callable[[str], Iterable[tuple[int, int]]]


class Launches(Sequence[Launch]):
    """The launches of a text with their places in the text, computed on demand; `anchored` are those with anchored places."""

    __slots__ = ("_made", "_mapped", "anchored", "directives", "of", "standing")

    def __init__(self, anchored: Sequence[Launch], standing: Standing, of: tuple[Directive, ...]) -> None:
        """`of` are the directives of the text, whose places are in no part."""
        self.anchored = anchored
        self.standing = standing
        self.of = of
        self._mapped = Mapped(standing.place)
        self._made: dict[int, Launch] = {}
        anchor = Mapped(standing.anchor)
        self.directives = tuple(map(anchor.directive, of))

    def __len__(self) -> int:
        return len(self.anchored)

    @overload
    def __getitem__(self, index: int) -> Launch: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Launch]: ...
    def __getitem__(self, index: int | slice) -> Launch | Sequence[Launch]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        index = range(len(self))[index]
        if index not in self._made:
            self._made[index] = self._mapped.launch(self.anchored[index])
        return self._made[index]

    def __iter__(self) -> Iterator[Launch]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))


class WhenAsked(Sequence[T]):
    """The result of `make`, computed at first use."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Iterable[T]]) -> None:
        self._make = make
        self._made: tuple[T, ...] | None = None

    def all(self) -> tuple[T, ...]:
        if self._made is None:
            self._made = tuple(self._make())
        return self._made

    def __len__(self) -> int:
        return len(self.all())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.all()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.all() == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.all())


def anchored_clues(clues: Sequence[Clue], standing: Standing) -> list[Clue]:
    """Clues that were found in the text itself, with anchored places."""
    return list(map(Mapped(standing.anchor).clue, clues))
