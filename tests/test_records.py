"""What `spec_lsp.records` makes is what `dataclasses` makes, written when it is first called."""

from __future__ import annotations

import ast
import copy
import dataclasses
import operator
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import pytest

import spec_lsp
from spec_lsp import records

T = TypeVar("T")


def shapes(m: Any) -> Mapping[str, Any]:
    """Classes as our modules declare them, made by one module or the other."""

    @m.dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        y: int = 2
        tags: list[str] = m.field(default_factory=list)
        unit: ClassVar[str] = "m"

        @property
        def total(self) -> int:
            return self.x + self.y

    @m.dataclass(frozen=True, slots=True)
    class Deep(Point):
        y: int = 3
        z: int = 4

    @m.dataclass(slots=True)
    class Open:
        x: int
        y: int = 2

    @m.dataclass(slots=True, eq=False)
    class Same:
        x: int
        y: int = 2

    @m.dataclass
    class Plain:
        x: int
        y: int = m.field(default=2, metadata={"why": "a test"})

    @m.dataclass(frozen=True)
    class Cached:
        x: int
        y: int = 2

        def __hash__(self) -> int:
            return 7

    @m.dataclass(frozen=True, slots=True)
    class Alike:
        x: int
        y: int = m.field(default=2, compare=False, repr=False)

    @m.dataclass(frozen=True, slots=True)
    class Counted:
        x: int
        y: int = 2
        total: int = m.field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.x + self.y)

    @m.dataclass(frozen=True, slots=True)
    class Own:
        x: int
        y: int = 2

        def __eq__(self, other: object) -> bool:
            return other == 1

        def __repr__(self) -> str:
            return "own"

    @m.dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        x: int
        y: int = 2

    @m.dataclass(slots=True)
    class Of(Generic[T]):
        x: T
        y: int = 2

    return {c.__name__: c for c in (Point, Deep, Open, Same, Plain, Cached, Alike, Counted, Own, Ordered, Of)}


OURS, THEIRS = shapes(records), shapes(dataclasses)


def told(act: Callable[[], Any]) -> Any:
    """What comes of something: what can be compared of it, or how it fails."""
    try:
        return act()
    except (AttributeError, TypeError, ValueError) as error:
        return next(kind for kind in (AttributeError, TypeError, ValueError) if isinstance(error, kind))


ACTS: Mapping[str, Callable[[Any, Any], Any]] = {
    "repr": lambda m, c: repr(c(1)),
    "with words": lambda m, c: repr(c(x=1, y=5)),
    "nothing given": lambda m, c: c(),
    "too much given": lambda m, c: c(1, 2, [], 4, 5, 6),
    "another name": lambda m, c: c(1, other=2),
    "alike": lambda m, c: c(1) == c(1),
    "not alike": lambda m, c: c(1) == c(2),
    "another kind": lambda m, c: c(1) == (1, 2),
    "compared in part": lambda m, c: c(1, 2) == c(1, 3),
    "hash": lambda m, c: len({hash(one) for one in [c(1), c(1)]}),
    "in a set": lambda m, c: len({c(1), c(1), c(2)}),
    "set": lambda m, c: setattr(c(1), "x", 2),
    "deleted": lambda m, c: delattr(c(1), "x"),
    "replaced": lambda m, c: repr(m.replace(c(1), x=3)),
    "replaced what is none": lambda m, c: repr(m.replace(c(1), none=3)),
    "replaced what is made": lambda m, c: repr(m.replace(c(1), total=3)),
    "fields": lambda m, c: [(f.name, f.init, f.repr, f.compare, dict(f.metadata)) for f in m.fields(c)],
    "is one": lambda m, c: (m.is_dataclass(c), m.is_dataclass(c(1)), m.is_dataclass(1), m.is_dataclass(int)),
    "matched": lambda m, c: c.__match_args__,
    "copied": lambda m, c: repr(copy.copy(c(1))),
    "its own list": lambda m, c: c(1).tags is c(1).tags,
    "a class attribute": lambda m, c: c.unit,
    "a default": lambda m, c: type(c.y),
    "a property": lambda m, c: c(1).total,
    "slots": lambda m, c: c.__slots__,
    "documentation": lambda m, c: c.__doc__ if c.__name__ == "Point" else None,
    **{
        compare.__name__: lambda m, c, compare=compare: [compare(c(1), c(n)) for n in (0, 1, 2)]
        for compare in (operator.lt, operator.le, operator.gt, operator.ge)
    },
}


@pytest.mark.parametrize("shape", OURS)
@pytest.mark.parametrize("act", ACTS)
def test_it_is_as_the_original(shape: str, act: str) -> None:
    ours, theirs = shapes(records)[shape], THEIRS[shape]
    assert told(lambda: ACTS[act](records, ours)) == told(lambda: ACTS[act](dataclasses, theirs))
    assert told(lambda: ACTS[act](records, ours)) == told(lambda: ACTS[act](dataclasses, theirs)), "the second time"


@records.dataclass(frozen=True, slots=True)
class Sent:
    x: int
    y: tuple[int, ...] = ()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_it_goes_from_one_process_to_another(protocol: int) -> None:
    assert pickle.loads(pickle.dumps(Sent(1, (2,)), protocol)) == Sent(1, (2,))


def test_what_is_frozen_gets_no_attribute() -> None:
    with pytest.raises(AttributeError):
        OURS["Point"](1).new = 2


def test_a_default_that_all_would_share_is_refused() -> None:
    for module in (records, dataclasses):
        with pytest.raises(ValueError, match="default"):

            @module.dataclass
            class Shared:
                x: list[int] = []  # noqa: RUF012


@pytest.mark.parametrize("act", ["replaced", "replaced what is made", "fields", "is one"])
@pytest.mark.parametrize("shape", OURS)
def test_the_original_takes_it_for_its_own(shape: str, act: str) -> None:
    assert told(lambda: ACTS[act](dataclasses, OURS[shape])) == told(lambda: ACTS[act](dataclasses, THEIRS[shape]))


def test_a_field_without_default_behind_one_with_it_is_refused() -> None:
    for module in (records, dataclasses):
        with pytest.raises(TypeError, match="default"):  # noqa: PT012

            @module.dataclass
            class Late:
                x: int = 1
                y: int  # type: ignore[misc]

            Late(2, 3)


def named_tuples(base: Any) -> Any:
    class Spot(base):  # type: ignore[misc]
        """A spot."""

        x: int
        y: int = 2

        @property
        def total(self) -> int:
            return self.x + self.y

        @classmethod
        def origin(cls) -> Any:
            return cls(0, 0)

        def __repr__(self) -> str:
            return f"{self.x}/{self.y}"

    return Spot


@pytest.mark.parametrize(
    "act",
    [
        lambda c: (repr(c(1)), c(1).total, c.origin(), c(x=3, y=4), c(1)._replace(y=5), c(1)._asdict()),
        lambda c: (c.__name__, c.__doc__, c.__module__, c.__qualname__, c._fields, c._field_defaults, c.__mro__[1:]),
        lambda c: c(),
        lambda c: c(1, other=2),
        lambda c: setattr(c(1), "x", 2),
        lambda c: (c(1) == (1, 2), hash(c(1)) == hash((1, 2)), sorted([c(2), c(1)])),
        lambda c: [(x, y) for x, y in [c(1)]],
    ],
)
def test_a_named_tuple_is_as_the_original(act: Callable[[Any], Any]) -> None:
    assert told(lambda: act(named_tuples(records.NamedTuple))) == told(lambda: act(named_tuples(NamedTuple)))


def test_methods_are_written_when_they_are_called() -> None:
    point = shapes(records)["Point"]
    before = point.__init__
    assert "x" not in before.__code__.co_varnames
    point(1)
    assert point.__init__ is not before
    assert point.__init__.__code__.co_varnames[:3] == ("self", "x", "y")


def test_what_is_alike_is_compiled_once() -> None:
    """Two classes with fields of the same kinds: only the names differ, even if one has those that stand for the others'."""

    @records.dataclass(frozen=True, slots=True)
    class Swapped:
        a1: int
        a0: int = 2

    @records.dataclass(frozen=True, slots=True)
    class Plain:
        size: int
        place: int = 3

    before = records._shape.cache_info().misses  # type: ignore[attr-defined]
    assert repr(Swapped(1)).endswith("Swapped(a1=1, a0=2)")
    assert repr(Plain(1)).endswith("Plain(size=1, place=3)")
    assert repr(Plain(place=5, size=4)).endswith("Plain(size=4, place=5)")
    assert records._shape.cache_info().misses <= before + 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="size"):
        Plain()  # type: ignore[call-arg]


def test_our_modules_use_it() -> None:
    """All but the module that runs in another interpreter by itself."""
    root = Path(spec_lsp.__file__).parent
    eager = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if (isinstance(node, ast.ImportFrom) and node.module == "dataclasses")
        or (
            isinstance(node, ast.ImportFrom) and "NamedTuple" in {n.name for n in node.names if node.module == "typing"}
        )
        or (isinstance(node, ast.Import) and node.names[0].name == "dataclasses")
    }
    assert eager == {"asking/worker.py"}
