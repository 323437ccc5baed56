"""Laws that hold in every document that carries a launch: words are what was written, places are exact, edits read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax import parse
from spec_lsp.syntax.edit import WordChange, apply_edits, editor_of
from spec_lsp.syntax.launch import Document
from tests.draws import draws
from tests.syntax.carriers import (
    CARRIERS,
    Carrier,
    fence_in_quote,
    manifest,
    notebook,
    notebook_command,
    python_helper,
    supervised,
)
from tests.syntax.support import check_maps

word = st.one_of(
    st.sampled_from(["--tp", "8", "--page-size=64", "acme/dense", "--x", "a b", "it's", '{"a": [1]}', "é😀", "100%", "$HOME", "a\\b", "#c", "~"]),
    st.text(st.sampled_from("abQY09 -_=./\"'\\$%#é😀{}[]:,;&|<>*?!`()"), min_size=1, max_size=8),
)  # fmt: skip
all_words = st.lists(word, min_size=1, max_size=5).map(lambda found: ["--model-path", "m", *found])


def argv(document: Document) -> list[str | None]:
    (launch,) = document.launches
    assert len(launch.variants) == 1
    words = [w.text for w in launch.variants[0].words if not w.splat]
    return words[2:] if words[:4] == ["--model-path", "m", "--model-path", "m"] else words


def read_alike(carrier: Carrier, words: list[str]) -> bool:
    """Whether the carrier's own syntax, and not ours, leaves the words as they are."""
    text = "".join(words)
    if carrier.id == "fence_in_docstring" and ('"""' in text or '"' in text[-1:]):
        return False
    if (carrier.name.endswith(".md") and carrier.write is not CARRIERS[10].write) or carrier.id.startswith("fence_in_"):
        return not any(c in text for c in "<>{}[]…") and "..." not in text
    if carrier.write in (notebook, notebook_command):
        return not any(c in text for c in "{}")
    if carrier.id in ("code_launch", "code_task", "development_container"):
        return "${" not in text
    if carrier.write is manifest:
        return "$" not in text
    if carrier.write is supervised:
        return not any(c in text for c in "#;")  # comments, also in quotes
    return "\0" not in text


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda c: c.id)
@given(words=all_words)
@draws(25)
def test_words_are_what_was_written(carrier: Carrier, words: list[str]) -> None:
    if not read_alike(carrier, words):
        return
    document = parse(carrier.name, carrier.write(words))
    check_maps(document)
    assert argv(document) == words


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda c: c.id)
@given(
    words=all_words,
    at=st.integers(0, 400),
    mark=st.sampled_from(["", "x", '"', "\n", "\uf8f1", "[", "'''", "{{", "$("]),
)
@draws(20)
def test_nothing_that_is_typed_breaks_the_reader(carrier: Carrier, words: list[str], at: int, mark: str) -> None:
    text = carrier.write(words)
    at %= len(text)
    check_maps(parse(carrier.name, text[:at] + mark + text[at:]))
    check_maps(parse(carrier.name, text[:at]))


PLAIN = ["--model-path", "m", "--a", "1", "--tp", "8", "--b", "two"]


def after(document: Document, change: WordChange | None) -> list[str | None]:
    assert change is not None
    changed = apply_edits(document.text, document.name, change.edits)
    assert changed is not None
    again = parse(document.name, changed)
    check_maps(again)
    return argv(again)


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda c: c.id)
@pytest.mark.parametrize("value", ["16", "flashinfer"])
def test_setting_a_value(carrier: Carrier, value: str) -> None:
    document = parse(carrier.name, carrier.write(PLAIN))
    shift = len(document.launches[0].variants[0].words) - len(PLAIN) if carrier.write is python_helper else 0
    change = editor_of(document, 0).set_value(5 + shift, value)
    assert after(document, change) == [*PLAIN[:5], value, *PLAIN[6:]]


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda c: c.id)
def test_removing_a_flag_leaves_the_document_as_if_it_had_never_been(carrier: Carrier) -> None:
    document = parse(carrier.name, carrier.write(PLAIN))
    shift = len(document.launches[0].variants[0].words) - len(PLAIN) if carrier.write is python_helper else 0
    change = editor_of(document, 0).remove(4 + shift, 2)
    kept = [*PLAIN[:4], *PLAIN[6:]]
    assert after(document, change) == kept
    assert change is not None
    if carrier.id not in ("dockerfile_lines", "fence_in_quote", "notebook", "python_list"):
        assert apply_edits(document.text, document.name, change.edits) == carrier.write(kept)


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda c: c.id)
def test_inserting_a_flag(carrier: Carrier) -> None:
    document = parse(carrier.name, carrier.write(PLAIN))
    shift = len(document.launches[0].variants[0].words) - len(PLAIN) if carrier.write is python_helper else 0
    change = editor_of(document, 0).insert(5 + shift, "--new", ["3"])
    assert after(document, change) == [*PLAIN[:6], "--new", "3", *PLAIN[6:]]


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda c: c.id)
def test_renaming_a_flag(carrier: Carrier) -> None:
    document = parse(carrier.name, carrier.write(PLAIN))
    shift = len(document.launches[0].variants[0].words) - len(PLAIN) if carrier.write is python_helper else 0
    change = editor_of(document, 0).rename(4 + shift, "--other")
    assert after(document, change) == [*PLAIN[:4], "--other", *PLAIN[5:]]


def test_a_quoted_fence_keeps_its_marks() -> None:
    document = parse("a.md", fence_in_quote(PLAIN))
    change = editor_of(document, 0).insert(5, "--new", ["3"])
    assert change is not None
    changed = apply_edits(document.text, document.name, change.edits) or ""
    assert all(line.startswith(">") for line in changed.splitlines())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_command_that_the_text_cuts_off_is_read_anew_when_it_goes_on(end: str) -> None:
    start = f"sglang serve cut-off --tp 2 \\{end}"
    assert argv(parse("run.sh", start)) == ["cut-off", "--tp", "2"]
    assert argv(parse("run.sh", f"{start}  --page-size 64{end}")) == ["cut-off", "--tp", "2", "--page-size", "64"]
