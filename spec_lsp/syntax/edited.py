"""What an edit leaves of a text, found from the two texts alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count, islice
from operator import is_not
from typing import Any

from spec_lsp.records import dataclass, field

MAX_REMEMBERED = 64
SHORT = 10_000
"""Texts of fewer characters are searched at once."""


def left_alone(old: str, text: str) -> tuple[int, int]:
    """How many characters two texts share at their start, and how many of the others at their end."""
    if old is _last[0] and text is _last[1]:
        return _last[2], _last[3]
    start = common_start(old, text)
    end = common_end(old, text, min(len(old), len(text)) - start)
    _last[:] = old, text, start, end
    return start, end


_last: list[Any] = ["", "", 0, 0]
"""The last two texts and what they share: several readers ask for the same."""


def common_start(a: str, b: str) -> int:
    """How many characters two texts share at their start."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_end(a: str, b: str, most: int) -> int:
    """How many of their last `most` characters two texts share."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def same_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """How many objects two sequences have in common at their start, and how many of the others at their end."""
    most = min(len(old), len(new))
    start = next(compress(count(), map(is_not, old, new)), most)
    return start, next(compress(count(), map(is_not, islice(reversed(old), most - start), reversed(new))), most - start)


@dataclass(slots=True)
class _Searched:
    """A text, and where it holds what was searched in it: -1 where it does not."""

    text: str
    found: dict[str, int] = field(default_factory=dict)


def holds(name: str, text: str, sought: str) -> bool:
    """Whether the text of a document holds a short one. Where it has just been edited, only what is new is searched: to search a long text
    takes longer than to read a statement."""
    if len(text) < SHORT:
        return sought in text
    searched = _searched.pop(name, None)
    if searched is None:
        searched = _Searched(text)
    elif searched.text is not text:
        searched = _Searched(text, _found_again(searched, text))
    _searched[name] = searched
    if len(_searched) > MAX_REMEMBERED:
        del _searched[next(iter(_searched))]
    if sought not in searched.found:
        searched.found[sought] = text.find(sought)
    return searched.found[sought] >= 0


_searched: dict[str, _Searched] = {}
"""By document, the most recent ones."""


def _found_again(before: _Searched, text: str) -> dict[str, int]:
    """What was found in the text before, as far as that tells where it is now."""
    start, end = left_alone(before.text, text)
    behind = len(text) - end
    found: dict[str, int] = {}
    for sought, at in before.found.items():
        around = len(sought) - 1
        if at < 0:
            found[sought] = text.find(sought, max(start - around, 0), behind + around)
        elif at + around < start:
            found[sought] = at
        elif at >= len(before.text) - end:
            found[sought] = at + len(text) - len(before.text)
    return found
