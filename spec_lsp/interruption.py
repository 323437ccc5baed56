"""Points at which long work may be stopped, and at which its steps are counted.

Readers, evaluators and judges call `checkpoint()` for each statement, node, world or candidate. That costs some 50 ns and does nothing,
unless whoever asked for the work specified with `stopped_when` what makes it pointless. At a checkpoint, nothing that outlives the work is
half done: caches are filled when a piece is complete. So work that was stopped can be repeated with the same result.

One thread of a process does such work; other threads may end it through `stopped_when`.

Checkpoints also count the steps by which work is limited: within `bounded` there is a maximum. Expensive work counts as several steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Interrupted(BaseException):
    """The work is no longer wanted. Not a subclass of Exception, so that handlers for internal faults let it pass."""


class Exhausted(Exception):  # noqa: N818 - a bound that was met, not an error
    """The work took more steps than allowed. What is unknown by then stays unknown."""


_needless: Callable[[], bool] | None = None
_left = float("inf")
"""How many more steps the current work may take."""


def checkpoint(steps: int = 1) -> None:
    """Count so many steps and continue; raise Interrupted if the current work is no longer wanted, Exhausted if it took too many steps."""
    global _left
    _left -= steps
    if _left < 0:
        raise Exhausted
    if _needless is not None and _needless():
        raise Interrupted


@contextmanager
def bounded(steps: float) -> Iterator[None]:
    """Within this context, checkpoints raise Exhausted after so many steps. If contexts are nested, the limit that is reached first
    applies."""
    global _left
    outer, _left = _left, min(_left, steps)
    given = _left
    try:
        yield
    finally:
        _left = outer - (given - max(_left, 0))


@contextmanager
def stopped_when(needless: Callable[[], bool]) -> Iterator[None]:
    """Within this context, checkpoints raise Interrupted as soon as `needless()` is true. If contexts are nested, either suffices."""
    global _needless
    outer = _needless
    _needless = needless if outer is None else lambda: outer() or needless()
    try:
        yield
    finally:
        _needless = outer
