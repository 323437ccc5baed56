"""What an editor writes reads back as what was meant, in every layout."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax import parse
from spec_lsp.syntax.edit import ConfigEditor, WordChange, WordEditor, apply_edits, editor_of
from spec_lsp.syntax.edit.change import UNREADABLE, flaws
from spec_lsp.syntax.launch import Edit
from spec_lsp.syntax.word import Place
from tests.draws import draws
from tests.syntax.edits import Pairs, flat, pairs_of
from tests.syntax.support import START, check_maps


def continued(pairs: Pairs) -> str:
    return " \\\n".join([START, *(f"    {f} {v}".rstrip() for f, v in pairs)]) + "\n"


def one_line(pairs: Pairs) -> str:
    return " ".join([START, *(f"{f} {v}".rstrip() for f, v in pairs)]) + " > log 2>&1 &\n"


def equals(pairs: Pairs) -> str:
    return " \\\n  ".join([START, *(f"{f}={v}" if v else f for f, v in pairs)]) + "\n"


def array(pairs: Pairs) -> str:
    body = "\n".join(f"  {f} {v}".rstrip() + ("  # why" if i % 2 else "") for i, (f, v) in enumerate(pairs))
    return f'ARGS=(\n{body}\n)\n{START} "${{ARGS[@]}}"\n'


def apart(pairs: Pairs) -> str:
    body = "\n".join(f"  {f}\n  {v}" if v else f"  {f}" for f, v in pairs)
    return f'CMD=(\n  {START}\n{body}\n)\nexec "${{CMD[@]}}"\n'


def array_line(pairs: Pairs) -> str:
    return f"A=({' '.join(f'{f} {v}'.rstrip() for f, v in pairs)})\n{START} ${{A[@]}}\n"


def string(pairs: Pairs) -> str:
    return f'F="{" ".join(f"{f} {v}".rstrip() for f, v in pairs)}"\n{START} $F\n'


def string_lines(pairs: Pairs) -> str:
    return 'F="\n' + "\n".join(f"  {f} {v}".rstrip() for f, v in pairs) + f'\n"\n{START} $F\n'


def nested(pairs: Pairs) -> str:
    return f"ssh host 'cd /x && {one_line(pairs).strip()}'\n"


def nested_double(pairs: Pairs) -> str:
    return f'bash -c "{continued(pairs).rstrip()}"\n'


def heredoc(pairs: Pairs) -> str:
    return f"ssh host bash -s <<EOF\n{continued(pairs)}EOF\n"


def windows(pairs: Pairs) -> str:
    return continued(pairs).replace("\n", "\r\n")


def variables(pairs: Pairs) -> str:
    lines = "".join(f"V{i}={v}\n" for i, (_, v) in enumerate(pairs) if v)
    return lines + " \\\n  ".join([START, *(f"{f} $V{i}" if v else f for i, (f, v) in enumerate(pairs))]) + "\n"


LAYOUTS: list[Callable[[Pairs], str]] = [
    continued, one_line, equals, array, apart, array_line, string, string_lines, nested, nested_double, heredoc, windows, variables,
]  # fmt: skip


def after(text: str, change: WordChange | None) -> list[str | None]:
    assert change is not None
    changed = apply_edits(text, "run.sh", change.edits)
    assert changed is not None
    document = parse("run.sh", changed)
    check_maps(document)
    assert not document.problems
    (launch,) = document.launches
    return [w.text for w in launch.variants[0].words]


def editor(text: str) -> WordEditor:
    document = parse("run.sh", text)
    assert len(document.launches) == 1
    return editor_of(document, 0)


@given(pairs_of, st.sampled_from(LAYOUTS), st.sampled_from(["16", "flashinfer"]), st.integers(0, 3))
@draws(150)
def test_setting_a_value(pairs: Pairs, layout: Callable[[Pairs], str], value: str, which: int) -> None:
    which %= len(pairs)
    flag, old = pairs[which]
    if not old:
        return
    text = layout(pairs)
    edit = editor(text)
    at = flat(pairs, layout).index(f"{flag}={old}" if layout is equals else flag)
    changed = [*pairs[:which], (flag, value), *pairs[which + 1 :]]
    change = edit.set_value(at, value, len(flag) + 1) if layout is equals else edit.set_value(at + 1, value)
    assert after(text, change) == flat(changed, layout)
    assert change is not None
    assert change.also == ()


@given(pairs_of, st.sampled_from(LAYOUTS), st.integers(0, 3))
@draws(150)
def test_removing_a_flag(pairs: Pairs, layout: Callable[[Pairs], str], which: int) -> None:
    which %= len(pairs)
    flag, old = pairs[which]
    text = layout(pairs)
    words = flat(pairs, layout)
    at = words.index(f"{flag}={old}" if layout is equals and old else flag)
    count = 1 if layout is equals or not old else 2
    change = editor(text).remove(at, count)
    assert after(text, change) == words[:at] + words[at + count :]
    assert change is not None
    changed = apply_edits(text, "run.sh", change.edits) or ""
    assert not changed.rstrip().endswith("\\")
    if layout in (array, string_lines, apart) and "# why" not in text:
        assert changed == layout(pairs[:which] + pairs[which + 1 :]) or len(pairs) == 1
    if layout in (continued, equals, windows, one_line):
        assert changed == layout(pairs[:which] + pairs[which + 1 :])


@given(pairs_of, st.sampled_from(LAYOUTS), st.sampled_from(["1", "", "a b", '{"x": [1]}']), st.integers(-1, 3))
@draws(200)
def test_inserting_a_flag(pairs: Pairs, layout: Callable[[Pairs], str], value: str, where: int) -> None:
    where = min(where, len(pairs) - 1)
    text = layout(pairs)
    before = pairs[: where + 1]
    at = len(flat(before, layout)) - 1
    edit = editor(text)
    change = edit.insert(at, "--new", [value] if value else [])
    words = flat(pairs, layout)
    if change is None:
        assert " " in value or layout in (apart, nested_double)
        return
    new = [f"--new={value}"] if value and edit.joins_values() else ["--new", *([value] if value else [])]
    assert after(text, change) == words[: at + 1] + new + words[at + 1 :]
    changed = apply_edits(text, "run.sh", change.edits)
    if layout in (continued, string_lines, windows) and " " not in value and where >= 0:
        assert changed == layout([*before, ("--new", value), *pairs[where + 1 :]])


@given(pairs_of, st.sampled_from(LAYOUTS), st.integers(0, 3))
@draws(80)
def test_renaming_a_flag(pairs: Pairs, layout: Callable[[Pairs], str], which: int) -> None:
    which %= len(pairs)
    flag, value = pairs[which]
    text = layout(pairs)
    at = flat(pairs, layout).index(f"{flag}={value}" if layout is equals and value else flag)
    changed = [*pairs[:which], ("--other", value), *pairs[which + 1 :]]
    assert after(text, editor(text).rename(at, "--other")) == flat(changed, layout)


CASES: list[tuple[str, Callable[[WordEditor], WordChange | None], str | None]] = [
    (f"N=4\n{START} --a $N\n", lambda e: e.set_value(1, "1"), f"N=1\n{START} --a $N\n"),
    (f"{START} --a ${{N:-4}}\n", lambda e: e.set_value(1, "1"), f"{START} --a ${{N:-1}}\n"),
    (f"{START} --a 'x y' --b\n", lambda e: e.set_value(1, "z w"), f"{START} --a 'z w' --b\n"),
    (f'{START} --a "x"\n', lambda e: e.set_value(1, "y"), f'{START} --a "y"\n'),
    (f"{START} --a x\n", lambda e: e.set_value(1, "y z"), f"{START} --a 'y z'\n"),
    (f"{START} --a ''\n", lambda e: e.set_value(1, "y"), f"{START} --a y\n"),
    (f"{START} --a $N\n", lambda e: e.set_value(1, "1"), None),
    (f"{START} --a $(cmd)\n", lambda e: e.set_value(1, "1"), None),
    (f"{START} --a $((1 + 1))\n", lambda e: e.set_value(1, "1"), None),
    (f"A=1\nB=2\n{START} --a $A$B\n", lambda e: e.set_value(1, "3"), None),
    (f"{START} --a $N --b\n", lambda e: e.remove(0, 2), f"{START} --b\n"),
    (f"{START} \\\n  --a 1 \\\n  --b 2 > log &\n", lambda e: e.remove(2, 2), f"{START} \\\n  --a 1 > log &\n"),
    (f"{START}\n", lambda e: e.insert(-1, "--a", ["1"]), f"{START} --a 1\n"),
    (f"if x; then\n  {START} \\\n    --a 1\nfi\n", lambda e: e.insert(1, "--b"), f"if x; then\n  {START} \\\n    --a 1 \\\n    --b\nfi\n"),
    (f'{START} \\\n  --a 1 \\\n  "$@"\n', lambda e: e.insert(1, "--b", ["2"]), f'{START} \\\n  --a 1 \\\n  --b 2 \\\n  "$@"\n'),
    ("case $1 in\n a) T=1;;\n b) T=2;;\nesac\n" + f"{START} --a $T\n", lambda e: e.set_value(1, "9"), "case $1 in\n a) T=9;;\n b) T=2;;\nesac\n" + f"{START} --a $T\n"),
    (f"case $T in\n 4) X=;;\n *) exit;;\nesac\n{START} --a $T\n", lambda e: e.set_value(1, "9"), None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "operation", "expected"), CASES, ids=range(len(CASES)))
def test_cases(text: str, operation: Callable[[WordEditor], WordChange | None], expected: str | None) -> None:
    change = operation(editor_of(parse("run.sh", text), 0))
    assert (None if change is None else apply_edits(text, "run.sh", change.edits)) == expected


def test_a_change_tells_what_else_it_changes() -> None:
    text = f"N=4\n{START} --a $N --b $N\nsglang serve m --c $N\n"
    document = parse("run.sh", text)
    change = editor_of(document, 0).set_value(1, "9")
    assert change is not None
    assert [(i, w.text) for i, w in change.also] == [(0, "4"), (1, "4")]


def test_a_value_in_a_sourced_file() -> None:
    files = {"lib.sh": "TP=4\n"}
    text = f"source lib.sh\n{START} --tp $TP\n"
    change = editor_of(parse("run.sh", text, files.get), 0, read=files.get).set_value(1, "8")
    assert change is not None
    assert [(e.place.document, e.place.start, e.text) for e in change.edits] == [("lib.sh", 3, "8")]


# --config files.

keys = st.sampled_from(["model-path", "tp-size", "page-size", "json-x", "names", "chat"])
data = st.one_of(
    st.integers(-5, 99), st.booleans(), st.sampled_from(["a", "a b", "yes", "1", "it's", 'q"r', "x: y", "é😀", "", "# c"]),
    st.lists(st.integers(0, 9), max_size=3), st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 3), max_size=2),
)  # fmt: skip
configs = st.dictionaries(keys, data, min_size=1, max_size=4)


@st.composite
def config_texts(draw: st.DrawFn) -> tuple[str, dict[str, object]]:
    config = draw(configs)
    flow = draw(st.booleans())
    text = ""
    for key, value in config.items():
        if flow:
            text += f"{key}: {yaml.safe_dump(value, default_flow_style=True, allow_unicode=True).split(chr(10))[0]}\n"
        else:
            text += yaml.safe_dump({key: value}, default_flow_style=False, allow_unicode=True)
        text += draw(st.sampled_from(["", "", "# note\n", "\n"]))
    return text, config


@given(config_texts(), data, st.integers(0, 5))
@draws(150)
def test_config_edits(made: tuple[str, dict[str, object]], value: object, which: int) -> None:
    text, config = made
    key = list(config)[which % len(config)]
    edit = ConfigEditor("c.yaml", text)
    comments = text.count("# note\n")

    def read(change: WordChange | None) -> object:
        assert change is not None
        changed = apply_edits(text, "c.yaml", change.edits)
        assert changed is not None
        assert changed.count("# note\n") == comments
        return yaml.safe_load(changed) or {}

    assert read(edit.set_value(key, value)) == {**config, key: value}
    assert read(edit.remove(key)) == {k: v for k, v in config.items() if k != key}
    assert read(edit.rename(key, "other")) == {("other" if k == key else k): v for k, v in config.items()}
    assert read(edit.insert("new-key", value, key)) == {
        **config,
        ("new_key" if edit.writes_snake() else "new-key"): value,
    }


CONFIG_CASES: list[tuple[str, Callable[[ConfigEditor], WordChange | None], str]] = [
    ("a: 'x'  # why\nb: 2\n", lambda e: e.set_value("a", "y"), "a: 'y'  # why\nb: 2\n"),
    ("a: 1\nb:\n  - 1\n  - 2\n\n# end\nc: 3\n", lambda e: e.remove("b"), "a: 1\n\n# end\nc: 3\n"),
    ("a_b: 1\nc_d: 2\n", lambda e: e.insert("e-f", 3, "a_b"), "a_b: 1\ne_f: 3\nc_d: 2\n"),
    ("{a: 1, b: 2}\n", lambda e: e.remove("b"), "{a: 1}\n"),
    ("{a: 1, b: 2}\n", lambda e: e.insert("c", 3), "{a: 1, b: 2, c: 3}\n"),
    ("a: 1", lambda e: e.insert("b", 2), "a: 1\nb: 2"),
    ("", lambda e: e.insert("b", 2), "b: 2\n"),
    ("a:\n  - 1\n", lambda e: e.insert("b", [1, 2]), "a:\n  - 1\nb:\n  - 1\n  - 2\n"),
    ("a: 1\nb: 2\na: 3\n", lambda e: e.remove("a"), "b: 2\n"),
]


@pytest.mark.parametrize(("text", "operation", "expected"), CONFIG_CASES, ids=range(len(CONFIG_CASES)))
def test_config_cases(text: str, operation: Callable[[ConfigEditor], WordChange | None], expected: str) -> None:
    change = operation(ConfigEditor("c.yaml", text))
    assert change is not None
    assert apply_edits(text, "c.yaml", change.edits) == expected


CELL = '{{"cells": [{{"cell_type": "code", "source": {}}}]}}'
FLAWS = [
    ("python", "f(\n", 1),
    ("python", "\ufefff()\n", 0),
    ("yaml", "a: [1\n", UNREADABLE),
    ("yaml", "a: [1]\n---\nb: 'x\n", UNREADABLE),
    ("yaml", "a: [1]\n---\nb: x\n", 0),
    ("yaml", "a: *b\n", UNREADABLE),
    ("notebook", "{]", UNREADABLE),
    ("notebook", "{}", 0),
    ("notebook", CELL.format('"f(1)"'), 0),
    ("notebook", CELL.format('["f(\\n", "1"]'), 1),
    ("notebook", CELL.format('"!ls (\\n%time x\\nf(1)"'), 0),
    ("notebook", CELL.format('"%%bash\\necho ("'), 0),
    ("markdown", "```python\nf(\n```\n\n```py\nf(1)\n```\n", 1),
    ("markdown", "- a\n\n  ```python\n  if x:\n      f(1)\n  ```\n", 0),
    ("markdown", "```bash\nf(\n```\n", 0),
    ("shell", "'", 0),
]


@pytest.mark.parametrize(("kind", "text", "expected"), FLAWS, ids=range(len(FLAWS)))
def test_what_cannot_be_read_without_mending(kind: str, text: str, expected: int) -> None:
    assert flaws(kind, text) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "import subprocess\nsubprocess.run(['sglang', 'serve', 'm', '--tp', '8'])\n"),
        ("a.yaml", "image: sglang\ncommand: [sglang, serve, m, --tp, '8']\n"),
    ],
)
def test_no_edit_breaks_a_file(name: str, text: str) -> None:
    """Readers mend what is half typed; what an edit leaves needs no mending, unless the file did before."""
    editor = editor_of(parse(name, text), 0)
    end = text.rindex("]")
    words = ["m", "--tp", "8"]
    assert editor.checked((Edit(Place(name, end, end), ", "),), words, 2, 0, 0) is not None
    assert editor.checked((Edit(Place(name, end, end + 1), ""),), words, 2, 0, 0) is None
    broken = text[:end] + text[end + 1 :]
    editor = editor_of(parse(name, broken), 0)
    assert editor.checked((Edit(Place(name, end, end), ","),), words, 2, 0, 0) is not None
