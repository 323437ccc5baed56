"""Cutting words keeps their places."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax.word import Fragment, Place, Word, hull


@st.composite
def words(draw: st.DrawFn) -> Word:
    fragments = []
    position = 0
    for _ in range(draw(st.integers(1, 4))):
        position += draw(st.integers(0, 2))
        text = draw(st.text("abc", max_size=4))
        if draw(st.booleans()):
            fragments.append(Fragment(text, Place("d", position, position + len(text))))
            position += len(text)
        else:
            fragments.append(Fragment(text, Place("d", position, position + 2), False))
            position += 2
    return Word(tuple(fragments), hull(f.place for f in fragments))


@given(words(), st.integers(0, 16))
def test_split_keeps_text_and_places(word: Word, at: int) -> None:
    text = word.text or ""
    at = min(at, len(text))
    left, right = word.split(at)
    assert (left.text or "") == text[:at]
    assert (right.text or "") == text[at:]
    for part in (left, right):
        for fragment in part.fragments:
            assert fragment.place.start >= word.place.start
            if fragment.verbatim:
                assert len(fragment.text or "") == fragment.place.end - fragment.place.start


@given(words(), st.integers(0, 16), st.integers(0, 16))
def test_slice_is_the_text(word: Word, a: int, b: int) -> None:
    text = word.text or ""
    start, end = sorted((min(a, len(text)), min(b, len(text))))
    assert "".join(f.text or "" for f in word.slice(start, end)) == text[start:end]


def test_a_split_of_an_unknown_value() -> None:
    word = Word((Fragment("--tp=", Place("d", 0, 5)), Fragment(None, Place("d", 5, 8), False, "x")), Place("d", 0, 8))
    flag, value = word.split(5)
    assert flag.text == "--tp="
    assert value.text is None
    assert value.place == Place("d", 5, 8)


def test_what_is_known_around_unknown_parts() -> None:
    texts = ("--model=", None, "/a/", None, "/b", "c")
    word = Word(tuple(Fragment(t, Place("d", i, i + 1), False) for i, t in enumerate(texts)), Place("d", 0, len(texts)))
    assert (word.known_start, word.known_end) == ("--model=", "/bc")
    assert word._replace(splat=True).known_end == ""
