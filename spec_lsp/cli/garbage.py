"""How often Python looks for garbage: a check keeps most of the objects that it creates, and Python's default frequency would take a fifth
of the time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

COLLECT_EVERY = 500_000
"""The number of new objects after which to look: some tens of MB."""


@contextmanager
def collected_seldom() -> Iterator[None]:
    """Within this context, also in forked processes, garbage is collected less often."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_EVERY)
    try:
        yield
    finally:
        gc.set_threshold(*before)
