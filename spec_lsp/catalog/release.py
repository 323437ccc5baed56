"""SGLang releases: parsing and comparing them."""

from __future__ import annotations

import functools
import re

from spec_lsp.expressions import expression
from spec_lsp.records import NamedTuple

_NAME = expression(
    r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:\.?(post|rc|a|b|dev)(\d+))?(?:\+[0-9A-Za-z.]+)?", re.ASCII | re.IGNORECASE
)
_STAGES = {"dev": -4, "a": -3, "b": -2, "rc": -1, "post": 1}


class Release(NamedTuple):
    """One release, ordered as by pip: `0.5.5rc1 < 0.5.5 < 0.5.5.post3 < 0.5.6`.

    A plain tuple of integers, so it is cheap to compare and can be a dictionary key. `stage` is 0 for a final release, 1 for `.postN`,
    below 0 for pre-releases; `number` is the N. `local` names somebody's own build by its content (`0.5.23+7f3a91c`): it comes after the
    release that it is nearest to (see builds.py).
    """

    major: int
    minor: int
    patch: int
    stage: int = 0
    number: int = 0
    local: str = ""

    @staticmethod
    def parse(text: str) -> Release:
        """`0.5.9`, `v0.5.5.post3`, `0.5.6rc1`; a local part (`+cu130`) is ignored. Raises ValueError otherwise."""
        release = Release.read(text)
        if release is None:
            raise ValueError(f"not a release of SGLang: {text!r}")
        return release

    @staticmethod
    @functools.lru_cache(maxsize=1024)
    def read(text: str) -> Release | None:
        """Like `parse`, but None for anything that is not a release."""
        match = _NAME.fullmatch(text.strip())
        if match is None:
            return None
        major, minor, patch, stage, number = match.groups()
        return Release(
            int(major),
            int(minor),
            int(patch or 0),
            _STAGES[stage.lower()] if stage else 0,
            int(number) if number else 0,
        )

    def __str__(self) -> str:
        base = f"{self.major}.{self.minor}.{self.patch}"
        local = f"+{self.local}" if self.local else ""
        if self.stage == 0:
            return base + local
        name = next(n for n, s in _STAGES.items() if s == self.stage)
        return f"{base}{'.' if name in ('post', 'dev') else ''}{name}{self.number}{local}"

    @property
    def stock(self) -> Release:
        """The release itself; for a build the one that it is nearest to."""
        return self._replace(local="") if self.local else self

    def __repr__(self) -> str:
        return f"Release({str(self)!r})"
