"""The real server, as a process for one test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.e2e.processes import Process, start


@pytest.fixture
async def process() -> AsyncIterator[Process]:
    started = await start("--stdio")
    yield started
    if started.returncode is None:
        started.kill()
        await started.wait()
