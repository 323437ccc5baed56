"""Offsets in a text that are kept from edit to edit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import overload


class Offsets(Sequence[int]):
    """Ascending offsets: where lines or statements begin. An edit moves all that are behind it by the same amount, which is kept once and
    not added to each: typing in one place costs the same however much is below."""

    __slots__ = ("_kept", "_moved", "_turn")

    def __init__(self, kept: list[int], turn: int = 0, moved: int = 0) -> None:
        """Those from the `turn`th on are `moved` further on than `kept` says."""
        self._kept = kept
        self._turn = turn
        self._moved = moved

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self._kept)))]
        at = self._kept[index]
        return at + self._moved if (index if index >= 0 else index + len(self._kept)) >= self._turn else at

    def __iter__(self) -> Iterator[int]:
        return iter([*self._kept[: self._turn], *[at + self._moved for at in self._kept[self._turn :]]])

    def up_to(self, offset: int) -> int:
        """How many are at most an offset."""
        kept, turn, moved = self._kept, self._turn, self._moved
        if turn < len(kept) and kept[turn] + moved <= offset:
            return bisect_right(kept, offset - moved, turn)
        return bisect_right(kept, offset, 0, turn)

    def edited(self, first: int, behind: int, new: Sequence[int], shift: int) -> Offsets:
        """These with others in place of [first, behind), and those from `behind` on moved."""
        kept, turn, moved = self._kept, self._turn, self._moved
        above = kept[:first] if first <= turn else [*kept[:turn], *[at + moved for at in kept[turn:first]]]
        below = kept[behind:] if behind >= turn else [*[at - moved for at in kept[behind:turn]], *kept[turn:]]
        return Offsets([*above, *new, *below], first + len(new), moved + shift)
