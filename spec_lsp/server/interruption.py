"""Gives typing priority over analysis: a long analysis stops between two launches when messages wait, and is resumed later.

An analysis asks its cache before it judges a launch. There it is interrupted if messages wait; verdicts reached so far stay in the cache.
For a message that makes the analysis pointless it is stopped anywhere: see `spec_lsp.interruption`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from spec_lsp.interruption import Interrupted


class InterruptibleCache:
    """A cache of verdicts that raises Interrupted when messages wait, but never before one verdict was added, so that every attempt makes
    progress."""

    def __init__(self, verdicts: Any, somebody_waits: Callable[[], bool]) -> None:
        self._verdicts = verdicts
        self._somebody_waits = somebody_waits
        self._allowed = False
        self._added = False

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Analyses may be interrupted only within this context."""
        self._allowed, self._added = True, False
        try:
            yield
        finally:
            self._allowed = False

    def get(self, key: Any) -> Any:
        if self._allowed and self._added and self._somebody_waits():
            raise Interrupted
        return self._verdicts.get(key)

    def put(self, key: Any, verdict: Any) -> None:
        self._added = True
        self._verdicts.put(key, verdict)

    @property
    def kept(self) -> Any:
        """See analysis.cache.Cache."""
        return self._verdicts.kept

    def found(self, about: object, part: Any, find: Callable[[], Any]) -> Any:
        return self._verdicts.found(about, part, find)

    def keep(self, document: str, launches: Any) -> None:
        self._verdicts.keep(document, launches)

    def clear(self) -> None:
        self._verdicts.clear()
