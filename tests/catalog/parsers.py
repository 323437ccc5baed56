"""What SGLang's own parsers hold, release by release: the reference for the catalogs and for binding."""

from __future__ import annotations

import functools
import json
import lzma
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


@functools.cache
def rows() -> dict[str, list[dict[str, Any]]]:
    """Every release's arguments as its argparse parser holds them."""
    return json.loads(lzma.decompress((DATA / "parsers.json.xz").read_bytes()))
