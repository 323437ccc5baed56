"""What holds for every test. A machine may be slow and busy: laws are held to what they say, never to how long that takes."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
