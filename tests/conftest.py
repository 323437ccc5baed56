"""What holds for every test. A machine may be slow and busy: laws are held to what they say, never to how long that takes."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from spec_lsp.cli.garbage import COLLECT_EVERY
from tests.draws import draws

HERE = Path(__file__).parent

settings.register_profile("patient", draws(100), suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

os.environ["SPEC_LSP_NO_CACHE"] = "1"  # what a test sees was found in that test
gc.disable()
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # In the background: the programs that tests start would ignore Ctrl-C, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


FIRST = ("test_bounds.py", "truth", "e2e", "hostile", "upkeep", "asking", "server", "cli", "resolution")
"""What takes longest for each file is begun first: a file is run by one process, and the last one is waited for."""
SLOW = frozenset({"test_bounds.py", "truth", "e2e", "hostile", "upkeep", "fuzz"})
"""What tries whole programs, corpora or sizes: marked `slow`."""


@pytest.hookimpl(tryfirst=True)  # `-m` looks at marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(FIRST)}
    items.sort(key=lambda item: ranks.get(_part(item), len(ranks)))
    for item in items:
        if _part(item) in SLOW:
            item.add_marker("slow")


def _part(item: pytest.Item) -> str:
    return item.path.relative_to(HERE).parts[0]


def pytest_collection_finish() -> None:
    """What is collected stays, and launches keep most of what they make: to look for garbage among ten thousand tests as often as Python
    does takes a quarter of the time."""
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY)
    gc.enable()
