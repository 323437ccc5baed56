"""Every character of a YAML scalar's text stands where its map says, in every style."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax.shell.embedding import read_script
from spec_lsp.syntax.source import FileSource
from spec_lsp.syntax.word import Word
from spec_lsp.syntax.yaml.nodes import Part, root_of
from spec_lsp.syntax.yaml.scalars import scalar_word
from tests.draws import draws

LOADERS = [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)]


def words(text: str, loader: type) -> list[tuple[str, Word]]:
    """The value of each scalar as the loader gives it, and its word."""
    found = []
    loading = loader(text)
    try:
        while loading.check_node():
            stack = [loading.get_node()]
            while stack:
                node = stack.pop()
                if isinstance(node, yaml.ScalarNode):
                    start, end = node.start_mark.index, node.end_mark.index
                    word = scalar_word(node.value, node.style, start, end, FileSource("x", 0, text))
                    found.append((node.value, word))
                else:
                    stack += [n for item in node.value for n in (item if isinstance(item, tuple) else (item,))]
    finally:
        loading.dispose()
    return found


def check(text: str, loader: type, exact: bool = True) -> int:
    """Counts the scalars. `exact`: letters that are written as themselves map as themselves."""
    found = words(text, loader)
    for value, word in found:
        assert (word.text or "") == value
        for fragment in word.fragments:
            written = text[fragment.place.start : fragment.place.end]
            if fragment.verbatim:
                assert written == fragment.text
            elif exact:
                assert not {*"abcd"} & {*(fragment.text or "")} or "\\" in written
    return len(found)


BODY = st.lists(st.text("ab \t#:-\\\"'\u00e9\U0001f600", max_size=6), max_size=6)
HEADERS = st.sampled_from(["|", "|-", "|+", ">", ">-", ">+", "|2", ">2-", "|2+", "|-  # c", ">1", "|4-"])


@given(HEADERS, BODY, st.integers(1, 5), st.sampled_from(["\n", "\r\n"]), st.sampled_from(LOADERS), st.booleans())
@draws(400)
def test_block_scalars(header: str, body: list[str], indent: int, eol: str, loader: type, more: bool) -> None:
    lines = [f"k: {header}", *(" " * indent + line if line else "" for line in body)]
    text = eol.join(lines) + (eol + "z: 1" + eol if more else "")
    try:
        loaded = list(yaml.load_all(text, Loader=loader))
    except yaml.YAMLError:
        return
    assert check(text, loader) >= 2 * len(loaded)


@given(
    st.sampled_from(["'", '"', ""]), BODY, st.integers(1, 4), st.sampled_from(["\n", "\r\n"]), st.sampled_from(LOADERS)
)
@draws(300)
def test_flow_scalars(quote: str, body: list[str], indent: int, eol: str, loader: type) -> None:
    text = f"- {quote}" + f"{eol}{' ' * indent}".join(body) + f"{quote}{eol}- c{eol}"
    try:
        list(yaml.load_all(text, Loader=loader))
    except yaml.YAMLError:
        return
    assert check(text, loader) >= 1


@given(st.text("ab\n\t \\\"'\x07\x85\u2028\u00a0é😀\x00:#", max_size=20), st.sampled_from(["|", ">", '"', "'", None]), st.sampled_from([20, 80]), st.sampled_from(LOADERS), st.booleans())  # fmt: skip
@draws(300)
def test_what_the_dumper_writes(value: str, style: str | None, width: int, loader: type, allow: bool) -> None:
    text = yaml.safe_dump({"k": [value]}, default_style=style, width=width, allow_unicode=allow)
    assert check(text, loader) == 2


CASES = [
    ('"a\\\n  b"', [("a", "a"), ("", "\\\n  "), ("b", "b")]),
    ('"a \\\n\n  b"', None),
    ('"\\x61\\u00e9\\U0001F600\\t\\/"', None),
    ("'it''s'", [("it", "it"), ("'", "''"), ("s", "s")]),
    ("a\n  b\n\n  c", [("a", "a"), (" ", "\n  "), ("b", "b"), ("\n", "\n\n  "), ("c", "c")]),
    ("|2\n    a\n   b", [("  a", "  a"), ("\n", "\n"), (" b", " b")]),
    (">\n  a\n  b\n\n  c\n    d\n  e", [("a", "a"), (" ", "\n"), ("b", "b"), ("\n", "\n"), ("c", "c"), ("\n", "\n"), ("  d", "  d"), ("\n", "\n"), ("e", "e")]),
]  # fmt: skip


@pytest.mark.parametrize(("written", "expected"), CASES, ids=range(len(CASES)))
def test_cases(written: str, expected: list[tuple[str, str]] | None) -> None:
    text = f"k: {written}\n"
    for loader in LOADERS:
        check(text, loader)
        (word,) = [w for value, w in words(text, loader) if value != "k"]
        found = [(f.text or "", text[f.place.start : f.place.end]) for f in word.fragments]
        kept = [pair for pair in expected or [] if pair[0]]
        assert expected is None or [pair for pair in found if pair != ("\n", "\n") or pair in kept][: len(kept)] == kept


def test_script_nested_twice_maps_to_the_file() -> None:
    text = (
        'args:\n- |\n    ssh host "bash -c \'sglang serve m --a b\\$c --d \\"e f\\"\'"\n'
        '- "bash -c \\"sglang serve \\\\\\"x y\\\\\\" --g h\\""\n'
    )
    part = Part("pod.yaml", text, 0)
    part.root = root_of(text)
    found = []
    for node in part.get(part.root, "args").value:
        (launch,) = read_script("pod.yaml", part.word(node)).launches
        found.append(
            [(w.text, [text[f.place.start : f.place.end] for f in w.fragments]) for w in launch.variants[0].words]
        )
    assert found[0][:3] == [("m", ["m"]), ("--a", ["--a"]), (None, ["b", "\\$c"])]
    assert found[0][4] == ("e f", ["e f"])
    assert found[1] == [("x y", ["x y"]), ("--g", ["--g"]), ("h", ["h"])]


def test_scalars_behind_anchors_and_tags_start_behind_them() -> None:
    text = "a: &x 'b'\nc: !!str  d\ne: &y !!str |\n  f\ng: *x\n"
    part = Part("x.yaml", text, 0)
    part.root = root_of(text)
    shown = {key: text[slice(*part.span(value))] for key, (_, value) in part.entries(part.root).items()}
    assert shown == {"a": "'b'", "c": "d", "e": "|\n  f", "g": "'b'"}
    assert [part.word(v).text for _, v in part.entries(part.root).values()] == ["b", "d", "f\n", "b"]
