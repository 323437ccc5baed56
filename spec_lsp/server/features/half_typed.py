"""Withholds findings about the word that is being typed.

Findings that a word is misspelled, and errors and warnings about its value (`1` on the way to `16`), are not shown while that word was the
last to be edited: until an edit elsewhere, a save, or a second without a key.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from spec_lsp.expressions import expression

if TYPE_CHECKING:
    from spec_lsp.analysis.report import Diagnostic
    from spec_lsp.server.text import OpenText, TextChange
    from spec_lsp.syntax.standing import Standing

PATIENCE = 1.0
"""After how many seconds without a key a word counts as typed."""
SPELLING = frozenset(
    {
        "unknown-flag",
        "ambiguous-flag",
        "abbreviated-flag",
        "invalid-choice",
        "invalid-value",
        "missing-value",
        "unexpected-value",
        "stray-argument",
    }
)
"""The rules that an incomplete word breaks."""
MAX_WORD = 200

_BEFORE, _AFTER = expression(r"\S*\Z"), expression(r"\S*")


class HalfTyped:
    """Which word is being typed. `typed_now` is called with the document's name when the word counts as typed."""

    def __init__(self, typed_now: Callable[[str], None]) -> None:
        self._typed_now = typed_now
        self._word: tuple[str, int, int] | None = None
        self._joined = False
        """Whether the word is a flag with its value, as `--page-size=1` is."""
        self._timer: asyncio.TimerHandle | None = None

    def edited(self, text: OpenText, changes: list[TextChange]) -> None:
        """A document was edited by these changes, which resulted in this text."""
        self.forget()
        if len(changes) != 1 or changes[0].range is None or re.search(r"\s", changes[0].text):
            return
        at = text.lines.offset(*changes[0].range[:2]) + len(changes[0].text)
        before = _BEFORE.search(text.text, max(at - MAX_WORD, 0), at)
        after = _AFTER.match(text.text, at, at + MAX_WORD)
        assert before is not None
        assert after is not None
        if before.start() < after.end():
            self._word = (text.name, before.start(), after.end())
            self._joined = "=" in text.text[before.start() : at]
            self._timer = asyncio.get_running_loop().call_later(PATIENCE, self.finish)

    def withheld(self, diagnostics: Sequence[Diagnostic], document: str, standing: Standing | None = None) -> set[int]:
        """The indices of the findings in a document that are not told yet. With `standing`, their places are anchored to that."""
        if self._word is None or self._word[0] != document:
            return set()
        start, end = self._word[1:] if standing is None else map(standing.anchored, self._word[1:])
        near = (i for i, d in enumerate(diagnostics) if start < d.place.end <= end)
        return {i for i in near if self._is_typed(diagnostics[i], document, start)}

    def _is_typed(self, diagnostic: Diagnostic, document: str, start: int) -> bool:
        """Whether a finding that ends in the word is about that word, which begins at `start`."""
        place = diagnostic.place
        if place.document != document:
            return False
        if diagnostic.rule.name in SPELLING:
            return start <= place.start
        is_value = place.start < start or (self._joined and place.start == start)
        return is_value and diagnostic.severity in ("error", "warning")

    def finish(self) -> None:
        """The word counts as typed: withheld findings are shown."""
        if self._word is not None:
            name = self._word[0]
            self.forget()
            self._typed_now(name)

    def forget(self) -> None:
        """Withhold nothing."""
        self._word = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
