"""`--config` files: what PyYAML loads, with the place of every character."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax import parse
from spec_lsp.syntax.word import Fragment, Place, Word
from spec_lsp.syntax.yaml.config import ConfigFile, ConfigValue, read_config, read_embedded_config
from tests.draws import draws

TEXT = """\
# a server
model-path: "a\\tb"  # c
tp-size: 8
trust_remote_code: yes
cuda-graph-bs: [1, 2, 4]
json-model-override-args:
  a: 1
  b: [x]
names:
  - 'it''s'
  - 2

tp-size: 4
script: |
  one
    two

  three
folded: >-
  p
  q
"""


def check(text: str, config: ConfigFile) -> None:
    """Every verbatim character is where the map says."""

    def word(w: Word | None) -> None:
        for fragment in w.fragments if w is not None else ():
            assert 0 <= fragment.place.start <= fragment.place.end <= len(text)
            if fragment.verbatim and fragment.text is not None:
                assert text[fragment.place.start : fragment.place.end] == fragment.text

    def value(v: ConfigValue, depth: int = 0) -> None:
        word(v.word)
        assert 0 <= v.place.start <= v.place.end <= len(text)
        for item in v.items if depth < 20 else ():
            value(item, depth + 1)

    for entry in config.entries:
        word(entry.key)
        value(entry.value)


def test_entries() -> None:
    config = read_config("c.yaml", TEXT)
    assert config.error is None
    assert config.values == yaml.safe_load(TEXT)
    check(TEXT, config)
    shown = [(e.key.text, TEXT[e.value.place.start : e.value.place.end]) for e in config.entries]
    assert shown[:5] == [("model-path", '"a\\tb"'), ("tp-size", "8"), ("trust_remote_code", "yes"), ("cuda-graph-bs", "[1, 2, 4]"), ("json-model-override-args", "a: 1\n  b: [x]")]  # fmt: skip
    assert [e.value.value for e in config.effective() if e.name == "tp-size"] == [4]
    path = config.entries[0].value.word
    assert path is not None
    assert [(f.text, f.verbatim) for f in path.fragments] == [("a", True), ("\t", False), ("b", True)]
    script = next(e.value.word for e in config.entries if e.name == "script")
    assert script is not None
    assert [f.text for f in script.fragments if f.verbatim] == ["one", "  two", "three"]


BROKEN: list[tuple[str, str, dict[object, object], str]] = [
    ("a: 1\nb\nc: 3\n", "mapping", {"a": 1, "c": 3}, "could not find expected"),
    ("a: [1,\nb: 2\n", "mapping", {"b": 2}, "flow sequence"),
    ('a: "x\nb: 2\n', "mapping", {"b": 2}, "quoted scalar"),
    ("a: 1\n---\nb: 2\n", "mapping", {"a": 1}, "second document"),
    ("a: *x\nb: 1\n", "mapping", {"b": 1}, "alias"),
    ("a: 1\n\x00\n", "mapping", {"a": 1}, "unacceptable"),
    ("a: !!python/name:os.system ''\nb: 1\n", "mapping", {"a": None, "b": 1}, "constructor"),
    ("a: b: c\nd: 1\n", "mapping", {"d": 1}, "mapping values"),
    ("\ta: 1\nb: 2\n", "mapping", {"b": 2}, "cannot start"),
    ("? [a]\n: 1\n", "mapping", {}, "plain value"),
    ("[" * 100_000, "other", {}, "deeply nested"),
    ("- " * 50_000, "other", {}, "deeply nested"),
]


@pytest.mark.parametrize(("text", "root", "values", "message"), BROKEN, ids=range(len(BROKEN)))
def test_broken_files_give_what_can_be_read(text: str, root: str, values: dict[object, object], message: str) -> None:
    config = read_config("c.yaml", text)
    assert config.root == root
    assert dict(config.values) == values
    assert config.error is not None
    assert message in config.error.message
    check(text, config)


@pytest.mark.parametrize(
    ("text", "root"),
    [("", "empty"), ("# x\n", "empty"), ("~\n", "empty"), ("- 1\n", "other"), ("a\n", "other"), ("a: 1\n", "mapping")],
)
def test_roots(text: str, root: str) -> None:
    config = read_config("c.yaml", text)
    assert config.root == root
    assert config.error is None


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text("a1 '\"\\#:-é😀\n\t{[&*!", max_size=12)
)
trees = st.recursive(
    scalars,
    lambda t: st.lists(t, max_size=3) | st.dictionaries(st.text("ab-", min_size=1, max_size=4), t, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text("abc-_ é", min_size=1, max_size=8), trees, max_size=4), st.sampled_from([True, False, None]), st.sampled_from([None, '"', "'", "|", ">"]))  # fmt: skip
@draws(150)
def test_values_are_those_of_the_loader(data: dict[str, object], flow: bool | None, style: str | None) -> None:
    text = yaml.safe_dump(data, default_flow_style=flow, default_style=style, allow_unicode=True, width=30)
    config = read_config("c.yaml", text)
    assert config.error is None
    assert (dict(config.values) or None) == (yaml.safe_load(text) or None)
    check(text, config)
    for entry in config.entries:
        if entry.value.word is not None and entry.value.tag.endswith(":str"):
            assert entry.value.word.text == entry.value.value


@given(st.text("ab:- \n'\"[]{}#&*!|>\t\x00é", max_size=60))
@draws(150)
def test_any_text(text: str) -> None:
    config = read_config("c.yaml", text)
    check(text, config)
    try:
        loaded = yaml.safe_load(text)
    except Exception:
        return
    if isinstance(loaded, dict) and config.error is None:
        assert dict(config.values) == loaded


def test_a_text_with_holes() -> None:
    place = Place("run.sh", 10, 30)
    content = Word(
        (
            Fragment("tp: 4\nmodel: /m/", place),
            Fragment(None, place, False, "from the environment"),
            Fragment("\nx: 1\n", place, False),
        ),
        place,
    )
    config = read_embedded_config("c.yaml", content)
    assert config.error is None
    entries = {e.name: e.value for e in config.entries}
    assert entries["tp"].value == 4
    assert entries["tp"].place == Place("run.sh", 14, 15)
    assert not entries["model"].known
    assert entries["model"].word is not None
    assert entries["model"].word.known_start == "/m/"
    assert entries["x"].value == 1


def test_a_configuration_is_recognised_by_its_keys() -> None:
    text = "model-path: m\ntp_size: 2\n"
    seen: list[frozenset[str]] = []

    def looks_like(keys: frozenset[str]) -> bool:
        seen.append(keys)
        return True

    document = parse("server.yaml", text, looks_like_config=looks_like)
    assert seen == [frozenset({"model-path", "tp-size"})]
    (launch,) = document.launches
    assert launch.program == "config"
    assert launch.syntax == "yaml-mapping"
    (variant,) = launch.variants
    assert [w.text for w in variant.words] == ["--config", "server.yaml"]
    (file,) = variant.files
    assert [e.name for e in read_embedded_config(file.name, file.content).entries] == ["model-path", "tp_size"]
    assert parse("server.yaml", text).launches == ()
    assert parse("server.yaml", "# spec-lsp: config\n" + text).launches
    assert parse("untitled:1", text, language="yaml", looks_like_config=looks_like).launches
    assert parse("server.yaml", text, looks_like_config=lambda keys: False).launches == ()
