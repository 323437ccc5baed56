"""The text store against a reference that works on encoded bytes, in all three encodings."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.server.positions import Encoding, Lines
from spec_lsp.server.text import OpenText, TextChange

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
WIDTH = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
CODEC = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}

texts = st.text(st.sampled_from("ab-é€𝄞😀 \t\r\n\x0b\x0c\x85\u2028"), max_size=40)


def encoded_lines(text: str, encoding: Encoding) -> list[tuple[bytes, bytes]]:
    """Lines as (content, end) in the encoding."""
    pieces = re.split(r"(\r\n|\r|\n)", text)
    pairs = zip(pieces[::2], [*pieces[1::2], ""], strict=True)
    return [(content.encode(CODEC[encoding]), end.encode(CODEC[encoding])) for content, end in pairs]


def reference_offset(lines: list[tuple[bytes, bytes]], line: int, position: int, encoding: Encoding) -> int:
    """The byte offset of a position, clamped."""
    if line >= len(lines):
        return sum(len(c) + len(e) for c, e in lines)
    return sum(len(c) + len(e) for c, e in lines[:line]) + min(position * WIDTH[encoding], len(lines[line][0]))


@st.composite
def edits(draw: st.DrawFn, text: str, encoding: Encoding) -> tuple[TextChange, str]:
    """An edit at whole characters, and the text it makes of `text`."""
    lines = encoded_lines(text, encoding)

    def position() -> tuple[int, int]:
        line = draw(st.integers(0, len(lines)))
        if line == len(lines):
            return line, draw(st.integers(0, 3))
        content = lines[line][0].decode(CODEC[encoding])
        column = draw(st.integers(0, len(content) + 1))
        beyond = 1 if column > len(content) else 0
        return line, len(content[:column].encode(CODEC[encoding])) // WIDTH[encoding] + beyond

    start, end = sorted((position(), position()))
    new = draw(texts)
    data = text.encode(CODEC[encoding])
    a, b = reference_offset(lines, *start, encoding), reference_offset(lines, *end, encoding)
    result = data[:a] + new.encode(CODEC[encoding]) + data[b:]
    return TextChange(new, (*start, *end)), result.decode(CODEC[encoding])


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(data=st.data())
def test_edits_agree_with_the_reference(encoding: Encoding, data: st.DataObject) -> None:
    text = data.draw(texts)
    opened = OpenText("/a.sh", "file:///a.sh", "sh", 1, text, encoding)
    for version in range(2, data.draw(st.integers(2, 8))):
        change, text = data.draw(edits(text, encoding))
        opened.apply([change], version)
        assert opened.text == text
        assert len(opened.lines) == len(re.findall(r"\r\n|\r|\n", text)) + 1
        assert opened.version == version


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=texts, data=st.data())
def test_positions_go_there_and_back(encoding: Encoding, text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    lines = Lines(text, encoding)
    position = lines.position(offset)
    back = lines.offset(position["line"], position["character"])
    inside_crlf = 0 < offset < len(text) and text[offset - 1 : offset + 1] == "\r\n"
    assert back == (offset - 1 if inside_crlf else offset)


@pytest.mark.parametrize(
    ("line", "encoding", "expected"),
    [
        ("a😀b\n", "utf-8", [0, 1, 1, 1, 1, 2, 3, 3]),
        ("a😀b\r\n", "utf-16", [0, 1, 1, 2, 3, 3]),
        ("a😀b", "utf-32", [0, 1, 2, 3, 3]),
        ("é€\r", "utf-8", [0, 0, 1, 1, 1, 2, 2]),
    ],
)
def test_a_position_inside_a_character_is_its_start(line: str, encoding: Encoding, expected: list[int]) -> None:
    lines = Lines(line, encoding)
    assert [lines.offset(0, n) for n in range(len(expected))] == expected


def test_only_three_line_ends() -> None:
    assert len(Lines("a\x0cb\x0bc\x85d\u2028e\u2029f\x1cg", "utf-16")) == 1
    assert len(Lines("a\nb\r\nc\rd\n", "utf-16")) == 5
    assert len(Lines("", "utf-16")) == 1


def test_whole_text_and_swapped_ranges() -> None:
    opened = OpenText("/a", "file:///a", "sh", 1, "one\ntwo", "utf-16")
    opened.apply([TextChange("x\ny\n"), TextChange("-", (1, 1, 0, 1))], 2)
    assert opened.text == "x-\n"


def test_a_cr_and_an_lf_that_meet_are_one_line_end() -> None:
    opened = OpenText("/a", "file:///a", "sh", 1, "a\rb", "utf-16")
    opened.apply([TextChange("\n", (1, 0, 1, 0))], 2)
    assert len(opened.lines) == 2
    opened.apply([TextChange("x", (0, 1, 0, 1))], 3)
    assert opened.text == "ax\r\nb"
