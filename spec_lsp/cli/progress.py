"""A progress line on the terminal for long runs."""

from __future__ import annotations

import os
import sys
import time

from spec_lsp.cli.printed import harmless

PATIENCE = 0.4
"""How many seconds it stays hidden, so that short runs are quiet."""
PACE = 0.1


class Progress:
    """`Checking 120/300 ━━━━────── scripts/launch.sh` on standard error, when that is a terminal."""

    def __init__(self) -> None:
        self.on = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._next = time.monotonic() + PATIENCE
        self._shown = False

    def show(self, done: int, total: int, what: str) -> None:
        """Show how far the run is; most calls do nothing."""
        if not self.on or (now := time.monotonic()) < self._next:
            return
        self._next = now + PACE
        self._shown = True
        width = os.get_terminal_size(sys.stderr.fileno()).columns or 80  # some terminals do not report their width
        bar = "━" * (20 * done // total) if total else ""
        line = f"Checking {done}/{total} {bar:─<20} {what}" if total else f"Looking for launches: {done} files"
        sys.stderr.write(f"\r\x1b[K{harmless(line)[: width - 1]}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away, before anything else is written."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
