"""Offsets, lines and columns in every encoding."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax.lines import LineIndex

texts = st.text("ab\n\ré\u20ac\U0001f600\x0c\u2028", max_size=30)


@given(texts, st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_positions_are_those_of_the_encoded_line(text: str, encoding: str) -> None:
    index = LineIndex(text)
    ends = [0, *(m.end() for m in re.finditer(r"\r\n|\n|\r", text))]
    assert [*index.starts] == ends
    codec = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}[encoding]
    for offset in range(len(text) + 1):
        if text[offset - 1 : offset + 1] == "\r\n":
            continue
        line, column = index.position(offset, encoding)  # type: ignore[arg-type]
        start = max(e for e in ends if e <= offset)
        assert ends[line] == start
        assert column == len(text[start:offset].encode(codec[0])) // codec[1]
        if index.line_span(line)[1] >= offset:
            assert index.offset(line, column, encoding) == offset  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "column", "expected"),
    [(0, 0, 0), (0, 1, 0), (0, 2, 1), (0, 9, 2), (1, 0, 4), (1, 5, 5), (2, 0, 6), (9, 0, 6), (-1, 3, 0), (0, -2, 0)],
)
def test_positions_that_do_not_exist(line: int, column: int, expected: int) -> None:
    assert LineIndex("\U0001f600b\r\nc\n").offset(line, column, "utf-16") == expected


def test_lone_surrogates_count() -> None:
    assert LineIndex("a\ud800b").position(2, "utf-16") == (0, 2)
    assert LineIndex("a\ud800b").position(2, "utf-8") == (0, 4)
