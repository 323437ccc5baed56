"""Where in a TOML text a cursor stands: in what the readers of TOML read, and in what they refuse."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax.toml_spot import toml_spot

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VALUE = "c4n4ry"
"""A text that stands for a value."""


def on_lines(found: list[str]) -> str:
    """An array with a line and a comment for each value."""
    return "[\n  " + " ,  # ]}\n ".join(found) + "]"


values = st.recursive(
    st.sampled_from(["1", "true", "'x'", '"a, b # ]"']),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda found: f"[{', '.join(found)}]"),
        st.lists(inner, max_size=3).map(on_lines),
        st.lists(inner, max_size=3).map(
            lambda found: "{ " + ", ".join(f"k{n} = {v}" for n, v in enumerate(found)) + " }"
        ),
    ),
    max_leaves=6,
)
tables = st.lists(st.tuples(st.sampled_from(["", "[t]", "[t.u]", "[[v]]"]), st.lists(values, max_size=3)), max_size=4)


def paths(table: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys that lead to the text that stands for a value."""
    if table == VALUE:
        yield keys
    for key, value in table.items() if isinstance(table, dict) else ():
        yield from paths(value, (*keys, key))
    for value in table if isinstance(table, list) else ():
        yield from paths(value, keys)


@given(tables=tables, where=st.integers(0, 50))
def test_the_place_of_a_value_is_the_one_it_is_read_at(tables: list[tuple[str, list[str]]], where: int) -> None:
    lines = [f"{head}\n" + "".join(f"a{n} = {value}\n" for n, value in enumerate(found)) for head, found in tables]
    text = "".join(lines)
    spots = [at for at in range(len(text)) if text.startswith("'x'", at)]
    if not spots:
        return
    at = spots[where % len(spots)]
    text = f"{text[:at]}'{VALUE}'{text[at + 3 :]}"
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # a table that is written twice
    spot = toml_spot(text, at + 3)
    assert spot is not None
    assert (spot.kind, text[spot.start : spot.end], spot.quote, spot.closed) == ("value", VALUE, "'", True)
    assert [spot.keys] == list(paths(read))


@given(text=st.text(alphabet="ab.=[]{}\"'#\n ,-1", max_size=60), where=st.integers(0, 60))
def test_any_text_is_read_to_its_end(text: str, where: int) -> None:
    spot = toml_spot(text, min(where, len(text)))
    assert spot is None or spot.start <= min(where, len(text)) <= spot.end


@pytest.mark.parametrize("piece", ["[", "a=[", "a={", "\n", '"', "a.", "#", "x='", "a=1\n", "[a]\n"])
def test_long_texts_take_no_longer_than_they_are_long(piece: str) -> None:
    """Twice as long takes twice the steps, or what is read of it is bounded."""

    def taken(times: int) -> int:
        called = 0

        def count(*_: object) -> None:
            nonlocal called
            called += 1

        sys.setprofile(count)
        try:
            toml_spot(piece * times, times * len(piece))
        finally:
            sys.setprofile(None)
        return called

    assert taken(4_000) <= 2.2 * taken(2_000) + 50
