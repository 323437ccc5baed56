"""SGLang's releases as a developer has them unpacked: `SPEC_LSP_SGLANG` names a folder with RELEASE/sglang/… in it."""

from __future__ import annotations

import os
from pathlib import Path

from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases

VARIABLE = "SPEC_LSP_SGLANG"


def unpacked() -> dict[Release, Path]:
    """The packages (folders `sglang`) of the shipped releases that are there; none where the variable is not set."""
    folder = os.environ.get(VARIABLE, "")
    found = {r: Path(folder, str(r), "sglang") for r in releases()} if folder else {}
    return {release: root for release, root in found.items() if root.is_dir()}
