"""Where long work looks up: it may be stopped there, and nowhere else.

Readers, evaluators and judges call `checkpoint()` for each statement, node, world or candidate they take up. That costs some 50 ns and
does nothing, unless whoever asked for the work said with `stopped_when` what makes it needless. At a checkpoint nothing that outlives the
work is half done: caches are filled when a piece is complete. So work that was stopped can be done again, and comes to the same.

One thread of a process does such work; others may decide, through `stopped_when`, that it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Interrupted(BaseException):
    """The work is not wanted any more. No Exception: what guards against faults of ours must let it pass."""


_needless: Callable[[], bool] | None = None


def checkpoint() -> None:
    """Go on, or raise Interrupted if the work under way is not wanted any more."""
    if _needless is not None and _needless():
        raise Interrupted


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
