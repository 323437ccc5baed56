"""Launches in texts within texts: each character has its place in the file, and a change there reads back as it was meant."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax import parse
from spec_lsp.syntax.edit import apply_edits, editor_of
from tests.draws import draws
from tests.syntax.support import START, check_maps, told


def single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def double(text: str) -> str:
    for char in '\\"$`':
        text = text.replace(char, "\\" + char)
    return f'"{text}"'


def in_document(text: str) -> str:
    """A text as an unquoted here-document writes it."""
    for char in "\\$`":
        text = text.replace(char, "\\" + char)
    return text


LEVELS: dict[str, Callable[[str], str]] = {
    "bash -c ''": lambda c: f"bash -c {single(c)}",
    'bash -c ""': lambda c: f"bash -c {double(c)}",
    "ssh": lambda c: f"ssh host {double('cd /x && ' + c)}",
    "here-document": lambda c: f"bash -s <<EOF\n{in_document(c)}\nEOF",
    "quoted here-document": lambda c: f"ssh host <<'END'\n{c}\nEND",
    "docker": lambda c: f"docker run --rm image bash -lc {double(c)}",
    "tmux": lambda c: f"tmux send-keys -t x {single(c)} Enter",
    "srun": lambda c: f"srun -N 1 bash -c {single(c)}",
    "written": lambda c: f"cat > s.sh <<'SCRIPT'\n#!/bin/bash\n{c}\nSCRIPT\nbash s.sh",
    "printed": lambda c: f"echo {single(c)} > t.sh\nchmod +x t.sh\n./t.sh",
    "eval": lambda c: f"C={single(c)}\neval \"$C\"",
    "substitution": lambda c: f"D=$(cat <<'TEXT'\n{c}\nTEXT\n)\neval \"$D\"",
    "wrap": lambda c: f"sbatch --wrap={double(c)}",
}  # fmt: skip
values = st.sampled_from(["8", "fa3", "a b", "it's", '{"a": 1}', "x$y", "é\U0001f600", "back\\slash"])


def launch(words: list[str]) -> str:
    return f"{START} --first 1 " + " ".join(single(w) if not w.isalnum() else w for w in words)


@given(
    st.lists(st.sampled_from(sorted(LEVELS)), min_size=1, max_size=3, unique=True),
    st.lists(values, min_size=1, max_size=3),
)
@draws(80)
def test_words_and_their_places(levels: list[str], words: list[str]) -> None:
    text = launch(words)
    for level in levels:
        text = LEVELS[level](text)
    document = parse("run.sh", text + "\n")
    check_maps(document)
    (found,) = document.launches
    assert [w.text for w in found.variants[0].words] == ["--first", "1", *words]


@given(
    st.lists(st.sampled_from(sorted(LEVELS)), min_size=1, max_size=2, unique=True),
    values,
    st.sampled_from(["16", "flashinfer"]),
)
@draws(50)
def test_changes_read_back(levels: list[str], word: str, value: str) -> None:
    text = launch(["a", word])
    for level in levels:
        text = LEVELS[level](text)
    document = parse("run.sh", text + "\n")
    edit = editor_of(document, 0)
    for change, expected in (
        (edit.set_value(1, value), ["--first", value, "a", word]),
        (edit.set_value(2, value), ["--first", "1", value, word]),
        (edit.insert(1, "--new", [value]), ["--first", "1", "--new", value, "a", word]),
        (edit.rename(0, "--second"), ["--second", "1", "a", word]),
        (edit.remove(0, 2), ["a", word]),
    ):
        assert change is not None
        changed = apply_edits(document.text, "run.sh", change.edits)
        assert changed is not None
        again = parse("run.sh", changed)
        check_maps(again)
        assert [told(w) for w in again.launches[0].variants[0].words] == expected


@pytest.mark.parametrize("depth", [4, 6])
def test_deep_nesting(depth: int) -> None:
    text = launch(["a b"])
    for _ in range(depth):
        text = f"bash -c {single(text)}"
    document = parse("run.sh", text)
    check_maps(document)
    assert [w.text for w in document.launches[0].variants[0].words] == ["--first", "1", "a b"]
