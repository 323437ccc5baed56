"""What an edit leaves of a text, and what is not searched or moved again because of that."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax import edited as module
from spec_lsp.syntax.edited import common_end, common_start, holds, left_alone, same_ends
from spec_lsp.syntax.lines import LineIndex
from spec_lsp.syntax.offsets import Offsets

texts = st.text(alphabet="ab\n", max_size=12)


@given(texts, texts)
def test_what_two_texts_have_in_common(a: str, b: str) -> None:
    start = common_start(a, b)
    assert a[:start] == b[:start]
    assert a[start : start + 1] != b[start : start + 1] or start == min(len(a), len(b))
    end = common_end(a, b, min(len(a), len(b)) - start)
    assert a[len(a) - end :] == b[len(b) - end :]
    assert left_alone(a, b) == left_alone(a, b) == (start, end)


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_what_two_sequences_have_in_common(a: list[int], b: list[int]) -> None:
    def text(numbers: list[int]) -> str:
        return "".join(map(str, numbers))

    assert same_ends(a, b) == left_alone(text(a), text(b))


@given(st.lists(texts, min_size=2), st.lists(st.sampled_from(["a", "ab", "aba", "b\n"])))
def test_a_text_holds_what_it_holds_after_each_edit(versions: list[str], sought: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SHORT", 0)
        for text in versions:
            assert [holds("x.sh", text, one) for one in sought] == [one in text for one in sought]


def test_only_what_is_new_is_searched() -> None:
    searched: list[int] = []

    class Counted(str):
        def find(self, sought: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
            end = len(self) if end is None else min(end, len(self))
            searched.append(max(end - start, 0))
            return super().find(sought, start, end)

    text = "a\n" * 20_000
    for at in (0, 20_000, 20_001, 39_999):
        text = Counted(f"{text[:at]}-{text[at:]}")
        assert not holds("searched.sh", text, "-smi")
    assert searched[0] == 40_001
    assert max(searched[1:]) < 10
    assert holds("searched.sh", Counted(f"{text[:7]}-smi{text[7:]}"), "-smi")


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5), st.text(alphabet="ab\n", max_size=5)), min_size=1))
def test_lines_begin_where_they_do_after_each_edit(edits: list[tuple[int, int, str]]) -> None:
    index = LineIndex("a\nbb\n\nccc\n" * 3)
    for at, gone, new in edits:
        at = min(at, len(index.text))
        index = index.after(at, min(at + gone, len(index.text)), new)
        afresh = LineIndex(index.text)
        assert [*index.starts] == [*afresh.starts]
        assert [*index.starts[1:]] == [*afresh.starts][1:]
        assert index.starts[-1] == afresh.starts[-1]
        for offset in range(len(index.text) + 1):
            assert index.starts.up_to(offset) == afresh.starts.up_to(offset)
            assert index.position(offset) == afresh.position(offset)


@pytest.mark.parametrize("before", [0, 200, 800])
def test_typing_in_one_place_adds_to_no_offset(before: int) -> None:
    class Numbers(int):
        added = 0

        def __add__(self, other: int) -> int:
            Numbers.added += 1
            return int(self) + other

        def __sub__(self, other: int) -> Numbers:
            return Numbers(self + -other)

    starts = Offsets([Numbers(n) for n in range(0, 10_000, 10)])
    starts = starts.edited(before, before, (), 1).edited(501, 501, (), 1)
    first = Numbers.added
    for _ in range(9):
        starts = starts.edited(501, 501, (), 1)
    assert Numbers.added == first
    assert [b - a for a, b in pairwise(starts)][495:505] == [10] * 5 + [20] + [10] * 4
