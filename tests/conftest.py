"""What holds for every test. A machine may be slow and busy: laws are held to what they say, never to how long that takes."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests.draws import draws

settings.register_profile("patient", draws(100), suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

os.environ["SPEC_LSP_NO_CACHE"] = "1"  # what a test sees was found in that test
