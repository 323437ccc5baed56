"""How many examples a property is tried on: few in the suite that people run, all of them with `SPEC_LSP_DRAWS=all` (`pytest -m hypothesis`)."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

ALL = os.environ.get("SPEC_LSP_DRAWS") == "all"
SHARE = 5
"""One in so many is tried otherwise."""


def draws(examples: int, **others: Any) -> settings:
    """Settings for a property that `examples` examples are enough for. No deadline: machines are busy at times."""
    return settings(max_examples=examples if ALL else max(examples // SHARE, 5), deadline=None, **others)
