"""Makes importing lsprotocol cheap.

It defines some 550 classes with attrs, which generates and compiles methods for each, and its converter resolves all their annotations.
That is most of the 0.4 s until a client gets its first answer, although a connection uses only a few dozen classes. While the module is
imported, `attrs.define` therefore only marks a class; the class is built when it is first instantiated or its fields are asked for.
`__repr__` and `__eq__` are left out: no server calls them. Garbage collection is off too, as none of it becomes garbage.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Unmade:
    """Stands for the fields of a class that is not built yet: asking for them builds the class."""

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

    lsprotocol._hooks._resolved_forward_references = True  # each class does that itself when it is built
    import pygls.lsp.server  # noqa: F401


def settle() -> None:
    """Exclude everything imported so far from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*SELDOM)
    gc.enable()


SELDOM = (50_000, 20, 20)
"""How many objects may be created before garbage is looked for. Analyses create hardly any cycles, and those of a long file hold a million
objects: at Python's own thresholds, collecting would take a fifth of the time of each key."""


def ignoring_errors(run: Callable[[], object]) -> None:
    """Run something that only saves time later."""
    try:
        run()
    except Exception:  # any error will show again when the thing is really needed
        return
