"""Starting the real server, and waiting for its end."""

from __future__ import annotations

import asyncio
import re

from tests.e2e.shared import PATIENCE, SERVER
from tests.e2e.wire import Wire

Process = asyncio.subprocess.Process


async def start(*arguments: str) -> Process:
    """`spec-lsp server` with these arguments, its standard streams as pipes."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*SERVER, *arguments, stdin=pipe, stdout=pipe, stderr=pipe)


def wire_of(process: Process) -> Wire:
    assert process.stdout is not None
    return Wire(process.stdout, process.stdin)


async def ended(process: Process) -> int:
    return await asyncio.wait_for(process.wait(), PATIENCE)


async def listening(*arguments: str) -> tuple[Process, int]:
    """A server that listens on a free port, and the port."""
    process = await start(*arguments, "--port", "0")
    assert process.stderr is not None
    while True:
        line = (await asyncio.wait_for(process.stderr.readline(), PATIENCE)).decode()
        assert line, "the server ended before it listened"
        found = re.search(r"listens on \S+:(\d+)", line)
        if found:
            return process, int(found[1])
