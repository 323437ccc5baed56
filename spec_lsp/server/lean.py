"""Makes importing lsprotocol cheap.

It defines some 550 classes, and attrs compiles `__repr__` and `__eq__` for each: half of the 0.3 s that the import
takes, for methods that no server calls. They are left out while the module is being imported. Garbage collection is off
too: all of it stays.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def _plain_classes() -> Iterator[None]:
    import attrs

    define: Any = attrs.define

    def lean(maybe_cls: type | None = None, **options: Any) -> Any:
        return define(maybe_cls, **{"repr": False, "eq": False, **options})

    attrs.define = lean
    try:
        yield
    finally:
        attrs.define = define


def import_protocol() -> None:
    """Import lsprotocol and pygls. Leaves garbage collection off: call `settle` once everything else is imported."""
    if "lsprotocol.types" in sys.modules:
        return
    gc.disable()
    with _plain_classes():
        import lsprotocol.types  # noqa: F401
    import pygls.lsp.server  # noqa: F401


def settle() -> None:
    """What has been imported by now stays; collect only what comes."""
    gc.collect()
    gc.freeze()
    gc.enable()


def ignoring_errors(run: Callable[[], object]) -> None:
    """Run something that only saves time later."""
    try:
        run()
    except Exception:  # whatever it is, it shows when the thing is really needed
        return
