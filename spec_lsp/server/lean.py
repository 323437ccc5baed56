"""Makes importing lsprotocol cheap.

It defines some 550 classes with attrs, which writes and compiles methods for each, and its converter resolves the annotations of all:
most of the 0.4 s until a client has its first answer, for classes of which a connection uses a few dozen. While the module is being
imported, `attrs.define` only marks a class; it is made when somebody makes an instance of it or asks for its fields. `__repr__` and
`__eq__` are left out: no server calls them. Garbage collection is off too: all of it stays.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Unmade:
    """Stands for the fields of a class that is not made yet: who asks for them gets a class that is."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type) -> Any:
        _make(self._cls)
        return self._cls.__attrs_attrs__  # type: ignore[attr-defined]


def _mark(cls: type) -> type:
    def first(self: Any, *args: Any, **fields: Any) -> None:
        _make(cls)
        self.__init__(*args, **fields)

    cls.__attrs_attrs__ = _Unmade(cls)  # type: ignore[attr-defined]
    cls.__init__ = first  # type: ignore[misc]
    return cls


def _make(cls: Any) -> None:
    import attrs
    from lsprotocol import types

    del cls.__attrs_attrs__, cls.__init__
    attrs.define(cls, slots=False, repr=False, eq=False)
    attrs.resolve_types(cls, types.ALL_TYPES_MAP, {})


@contextmanager
def _marked_classes() -> Iterator[None]:
    import attrs

    define: Any = attrs.define

    def lean(maybe_cls: type | None = None, **options: Any) -> Any:
        if maybe_cls is None or options or maybe_cls.__bases__ != (object,):
            return define(maybe_cls, **{"repr": False, "eq": False, **options})
        return _mark(maybe_cls)

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
    with _marked_classes():
        import lsprotocol.types
    import lsprotocol._hooks

    lsprotocol._hooks._resolved_forward_references = True  # each class is, when it is made
    import pygls.lsp.server  # noqa: F401


def settle() -> None:
    """What has been imported by now stays; collect only what comes."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*SELDOM)
    gc.enable()


SELDOM = (50_000, 20, 20)
"""How many objects may come before garbage is looked for. Analyses have hardly any cycles, and of a long file they hold a million objects:
to look through them at Python's own thresholds takes a fifth of each key."""


def ignoring_errors(run: Callable[[], object]) -> None:
    """Run something that only saves time later."""
    try:
        run()
    except Exception:  # whatever it is, it shows when the thing is really needed
        return
