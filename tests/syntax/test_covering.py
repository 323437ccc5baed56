"""Rows that cover the ways of switches: which come together, in how many rows, and at what cost."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax.covering import Cover, Refused, Row, fewest, rows

MOST = 64


def independent(sizes: list[int]) -> tuple[list[dict[int, int]], bool, int]:
    cover: Cover[int] = Cover()
    found, complete = rows(lambda row: [row.way(i, range(size)) for i, size in enumerate(sizes)], MOST, cover)
    return [taken for taken, _ in found], complete, cover.steps


def missing(taken: list[dict[int, int]], sizes: list[int]) -> set[tuple[int, int, int, int]]:
    """Pairs of ways of two switches that no row has together."""
    wanted = {
        (a, x, b, y)
        for a, b in combinations(range(len(sizes)), 2)
        for x, y in product(range(sizes[a]), range(sizes[b]))
    }
    return wanted - {(a, row[a], b, row[b]) for row in taken for a, b in combinations(range(len(sizes)), 2)}


@pytest.mark.parametrize(("switches", "most"), [(2, 4), (10, 10), (20, 12), (40, 16), (80, 18), (200, 20)])
def test_all_pairs_of_on_off_switches_take_few_rows(switches: int, most: int) -> None:
    taken, complete, _ = independent([2] * switches)
    assert complete
    assert not missing(taken, [2] * switches)
    assert len(taken) <= most


def test_choosing_is_at_most_quadratic() -> None:
    steps = {n: independent([2] * n)[2] for n in (10, 20, 40, 80)}
    for n in (10, 20, 40):
        assert steps[2 * n] <= 4 * steps[n]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=9))
def test_any_two_ways_come_together(sizes: list[int]) -> None:
    taken, complete, _ = independent(sizes)
    assert complete
    assert not missing(taken, sizes)


def test_where_there_is_no_room_each_way_comes_first() -> None:
    taken, complete, _ = independent([30, 30, 2])
    assert not complete
    assert len(taken) == MOST
    assert all({row[i] for row in taken} == set(range(n)) for i, n in enumerate([30, 30, 2]))


def test_a_switch_behind_another_comes_up_in_each_way_with_all_others() -> None:
    """Each switch is only asked about where the one before it is on."""

    def run(row: Row[object]) -> dict[int, int]:
        found = {}
        for i in range(6):
            found[i] = row.way(("set", i), (0, 1))
            if found[i]:
                found[i] += row.way(("value", i), (0, 1))
        return found

    found, complete = rows(run, MOST)
    assert complete
    assert not missing([result for _, result in found], [3] * 6)


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 1), st.integers(0, 5), st.integers(0, 1)), max_size=4))
def test_ways_that_exclude_each_other_never_come_together(excluded: set[tuple[int, int, int, int]]) -> None:
    """What is refused is in no row; what else can come together does so, as far as a row was found."""

    def allowed(ways: dict[int, int]) -> bool:
        return not any(ways.get(a) == x and ways.get(b) == y for a, x, b, y in excluded)

    def run(row: Row[int]) -> None:
        ways: dict[int, int] = {}
        for i in range(6):
            open_ways = [w for w in (0, 1) if allowed({**ways, i: w})]
            if not open_ways:
                raise Refused
            ways[i] = row.way(i, open_ways)

    found, _ = rows(run, MOST)
    assert all(allowed(taken) for taken, _ in found)


def test_what_is_said_of_several_is_what_is_said_of_the_least() -> None:
    assert fewest(["all", "pairs", "all"]) == "pairs"
    assert fewest(["some", "pairs"]) == "some"
    assert fewest([]) == "all"
