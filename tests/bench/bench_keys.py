"""What one key costs in CPU: `python tests/bench/bench_keys.py [--quick]`.

A server in this process is sent a digit more, or a few less, at a value in the middle of a document, so that all below stands elsewhere; from
the message to the JSON of the diagnostics, in milliseconds of CPU. That says something on a busy machine, too: ratios within one run above all.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import logging
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
from generate import LAUNCHES, manifest, page, script  # noqa: E402

from spec_lsp.server.lean import import_protocol  # noqa: E402

import_protocol()
from spec_lsp.server.server import Server  # noqa: E402

CAPABILITIES = {
    "general": {"positionEncodings": ["utf-8"]},
    "textDocument": {"publishDiagnostics": {"relatedInformation": True, "dataSupport": True}},
}
DOCUMENTS = {
    "shell, hardware unknown": ("run.sh", lambda n: script(hardware=False, launches=n)),
    "shell, hardware given": ("run.sh", lambda n: script(hardware=True, launches=n)),
    "YAML, hardware unknown": ("pods.yaml", lambda n: manifest(launches=n)),
    "Markdown, hardware unknown": ("page.md", lambda n: page(launches=n)),
    "nothing launched": ("run.sh", lambda n: script(hardware=False, launches=n).replace("sglang.", "other.")),
}
TYPED = "--max-running-requests"


class Typist:
    """Types in one document of a server of its own."""

    def __init__(self, name: str, text: str) -> None:
        self.uri = f"file:///nowhere/{name}"
        self.lines = text.split("\n")
        self.line = next(i for i, line in enumerate(self.lines) if i > len(self.lines) // 2 and TYPED in line)
        self.sent: list[bytes] = []
        self._version = itertools.count(2)
        self._digits = itertools.cycle("1234567890")

    async def open(self) -> None:
        self.wire = Server().wire
        self.wire.send_bytes = self.sent.append
        self._send("initialize", {"processId": None, "rootUri": None, "capabilities": CAPABILITIES}, id=1)
        self._send("initialized", {})
        text = "\n".join(self.lines)
        self._send(
            "textDocument/didOpen", {"textDocument": {"uri": self.uri, "languageId": "", "version": 1, "text": text}}
        )
        await self._published()

    async def key(self) -> float:
        old = self.lines[self.line]
        end = len(old.rstrip(" \\"))
        typed = len(old[:end]) - len(old[:end].rstrip("0123456789"))
        start, new = (end - 3, "") if typed > 5 else (end, next(self._digits))
        self.lines[self.line] = old[:start] + new + old[end:]
        span = {
            "start": {"line": self.line, "character": start},
            "end": {"line": self.line, "character": end},
        }
        began = time.process_time()
        self._send(
            "textDocument/didChange",
            {
                "textDocument": {"uri": self.uri, "version": next(self._version)},
                "contentChanges": [{"range": span, "text": new}],
            },
        )
        await self._published()
        return 1000 * (time.process_time() - began)

    def _send(self, method: str, params: Any, **more: int) -> None:
        self.wire.receive(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode())

    async def _published(self) -> None:
        while not any(b"publishDiagnostics" in body for body in self.sent):
            await asyncio.sleep(0)
        self.sent.clear()


async def figures(times: int) -> None:
    for label, (name, make) in DOCUMENTS.items():
        typists = [Typist(f"{launches}/{name}", make(launches)) for launches in (LAUNCHES, 10 * LAUNCHES)]
        samples: tuple[list[float], list[float]] = ([], [])
        for typist in typists:
            await typist.open()
        for number in range(times + 10):
            for typist, kept in zip(typists, samples, strict=True):
                took = await typist.key()
                if number >= 10:
                    kept.append(took)
        tail = [sorted(one)[round(0.95 * (times - 1))] for one in samples]
        middle = [statistics.median(one) for one in samples]
        print(
            f"{label:26} 1,000 lines {middle[0]:6.2f} / {tail[0]:6.2f}   10,000 lines {middle[1]:6.2f} / {tail[1]:6.2f}   "
            f"× {middle[1] / middle[0]:.1f} / × {tail[1] / tail[0]:.1f}",
            flush=True,
        )


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("--quick", action="store_true", help="a fifth of the samples")
    logging.disable(logging.CRITICAL)
    print(f"{'ms of CPU':26} median / p95")
    asyncio.run(figures(40 if arguments.parse_args().quick else 200))


if __name__ == "__main__":
    main()
