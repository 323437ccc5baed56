"""Where long work looks up: it may be stopped there, and nowhere else; and where its steps are counted.

Readers, evaluators and judges call `checkpoint()` for each statement, node, world or candidate they take up. That costs some 50 ns and
does nothing, unless whoever asked for the work said with `stopped_when` what makes it needless. At a checkpoint nothing that outlives the
work is half done: caches are filled when a piece is complete. So work that was stopped can be done again, and comes to the same.

One thread of a process does such work; others may decide, through `stopped_when`, that it ends.

Checkpoints are the steps by which work is bounded, too: within `bounded` there are only so many. What costs more than a step says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Interrupted(BaseException):
    """The work is not wanted any more. No Exception: what guards against faults of ours must let it pass."""


class Exhausted(Exception):  # noqa: N818 - a bound that was met, not an error
    """The work took more steps than it may. What is not known by then stays unknown."""


_needless: Callable[[], bool] | None = None
_left = float("inf")
"""Steps that the work under way may still take."""


def checkpoint(steps: int = 1) -> None:
    """Go on, after so many steps; or raise Interrupted if the work under way is not wanted any more, Exhausted if it took too many."""
    global _left
    _left -= steps
    if _left < 0:
        raise Exhausted
    if _needless is not None and _needless():
        raise Interrupted


@contextmanager
def bounded(steps: float) -> Iterator[None]:
    """Within this, checkpoints raise Exhausted after so many steps. Within another such block, whichever bound is met first."""
    global _left
    outer, _left = _left, min(_left, steps)
    given = _left
    try:
        yield
    finally:
        _left = outer - (given - max(_left, 0))


@contextmanager
def stopped_when(needless: Callable[[], bool]) -> Iterator[None]:
    """Within this, checkpoints raise Interrupted as soon as `needless()` is true. Within another such block, either suffices."""
    global _needless
    outer = _needless
    _needless = needless if outer is None else lambda: outer() or needless()
    try:
        yield
    finally:
        _needless = outer
