"""Fields of SGLang's ServerArgs that no flag fills, with their values before resolution."""

from __future__ import annotations

from typing import Any

INTERNAL: dict[str, Any] = {
    # which (phase, key) of cuda_graph_config the user chose
    "_cuda_graph_config_locked": frozenset(),
    # which values were moved from an old spelling: by field (see engine.Moved)
    "_moved": {},
}
