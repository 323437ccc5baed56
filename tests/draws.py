"""Which examples a property is tried on: few, and the same ones each time, in the suite that people run; more of them with
`SPEC_LSP_DRAWS=all`, and others each time with `SPEC_LSP_DRAWS=anew` (both with `pytest -m hypothesis`)."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

ASKED = os.environ.get("SPEC_LSP_DRAWS", "")
SHARE = 5
"""One in so many is tried otherwise."""


def draws(examples: int, **others: Any) -> settings:
    """Settings for a property that `examples` examples are enough for. No deadline: machines are busy at times."""
    number = examples if ASKED in ("all", "anew") else max(examples // SHARE, 5)
    return settings(max_examples=number, derandomize=ASKED != "anew", deadline=None, **others)
