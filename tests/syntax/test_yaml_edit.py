"""What an editor writes into YAML reads back as what was meant: items of lists, keys, scripts in scalars of every style."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.syntax import parse
from spec_lsp.syntax.edit import WordChange, WordEditor, apply_edits, editor_of
from spec_lsp.syntax.launch import Document
from tests.draws import draws
from tests.syntax.edits import Pairs, flat, pairs_of
from tests.syntax.support import check_maps, forget

NAME = "pod.yaml"
HEAD = "spec:\n  containers:\n  - name: s\n"
ENTRY = "python -m sglang.launch_server"


def block(pairs: Pairs) -> str:
    items = "".join(f"    - {f}  # why\n" + (f'    - "{v}"\n' if v else "") for f, v in pairs)
    return f"{HEAD}    command: [python, -m, sglang.launch_server]\n    args:\n{items}    env: []\n"


def block_deep(pairs: Pairs) -> str:
    items = "".join(f"      - '{f}'\n" + (f"      - '{v}'\n" if v else "") for f, v in pairs)
    return f"{HEAD}    command:\n      - python\n      - -m\n      - sglang.launch_server\n{items}"


def equals(pairs: Pairs) -> str:
    items = "".join(f"    - {f}={v}\n" if v else f"    - {f}\n" for f, v in pairs)
    return f"{HEAD}    command: [python, -m, sglang.launch_server]\n    args:\n{items}"


def flow(pairs: Pairs) -> str:
    items = ", ".join(f'{f}, "{v}"' if v else f for f, v in pairs)
    return f"{HEAD}    command: [python, -m, sglang.launch_server]\n    args: [{items}]\n"


def flow_lines(pairs: Pairs) -> str:
    items = ",\n".join(f'      "{f}", "{v}"' if v else f'      "{f}"' for f, v in pairs)
    return f'{HEAD}    command: ["python", "-m", "sglang.launch_server",\n{items}]\n'


def flow_comments(pairs: Pairs) -> str:
    items = "".join(f'      "{w}", # [why], then\n' for f, v in pairs for w in (f, v) if w)
    return f"{HEAD}    command: [python, -m, sglang.launch_server]\n    args: [ # these\n      # first\n{items}    ]\n"


def literal(pairs: Pairs) -> str:
    body = " \\\n        ".join([f"      {ENTRY}", *(f"{f} {v}".rstrip() for f, v in pairs)])
    return f"{HEAD}    command: [bash, -c]\n    args:\n    - |\n{body}\n"


def folded(pairs: Pairs) -> str:
    body = "\n      ".join([f"      {ENTRY}", *(f"{f} {v}".rstrip() for f, v in pairs)])
    return f"{HEAD}    command: [bash, -c]\n    args:\n    - >-\n{body}\n"


def double(pairs: Pairs) -> str:
    return f'{HEAD}    command: [bash, -c, "{ENTRY} {" ".join(f"{f} {v}".rstrip() for f, v in pairs)}"]\n'


def single(pairs: Pairs) -> str:
    return f"{HEAD}    command: [bash, -c, '{ENTRY} {' '.join(f'{f} {v}'.rstrip() for f, v in pairs)}']\n"


def plain(pairs: Pairs) -> str:
    return f"run: {ENTRY} {' '.join(f'{f} {v}'.rstrip() for f, v in pairs)}\n"


def nested_single(pairs: Pairs) -> str:
    flags = " ".join(f"{f} {v}".rstrip() for f, v in pairs)
    return f"{HEAD}    command: [bash, -c]\n    args:\n    - |\n      ssh host '{ENTRY} {flags}'\n"


def nested_double(pairs: Pairs) -> str:
    flags = " ".join(f"{f} {v}".rstrip() for f, v in pairs)
    return f'run: "ssh host \\"{ENTRY} {flags}\\""\n'


def manifest(pairs: Pairs) -> str:
    """YAML in a text of YAML."""
    inner = block(pairs).replace("\n", "\n    ")
    return f"patches:\n- patch: |\n    {inner.rstrip()}\n"


def compose(pairs: Pairs) -> str:
    body = "\n      ".join(f"{f} {v}".rstrip() for f, v in pairs)
    return f"services:\n  s:\n    command: >\n      {ENTRY}\n      {body}\n    environment: [A=1]\n"


def recipe(pairs: Pairs) -> str:
    body = "".join(f"      {f.removeprefix('--')}: {v or 'true'}\n" for f, v in pairs)
    return f"backend:\n  sglang_config:\n    aggregated:\n{body}frontend:\n  type: sglang\n"


def recipe_flow(pairs: Pairs) -> str:
    body = ", ".join(f"{f.removeprefix('--')}: {v or 'true'}" for f, v in pairs)
    return f"backend: {{sglang_config: {{aggregated: {{{body}}}}}}}\n"


def dashed(pairs: Pairs) -> str:
    body = "".join(f"    {f}: {v or 'true'}\n" for f, v in pairs)
    return f"launch:\n  module: sglang.launch_server\n  options:\n{body}  port: 3\n"


def dashed_quoted(pairs: Pairs) -> str:
    return dashed([(f'"{f}"', v) for f, v in pairs])


def windows(pairs: Pairs) -> str:
    return block(pairs).replace("\n", "\r\n")


MAPPINGS = (recipe, recipe_flow, dashed, dashed_quoted)
LAYOUTS: list[Callable[[Pairs], str]] = [
    block, block_deep, equals, flow, flow_lines, flow_comments, literal, folded, double, single, plain, compose, nested_single, nested_double, manifest, recipe, recipe_flow, windows,
    dashed, dashed_quoted,
]  # fmt: skip


def reading(
    name: str, text: str, read: Callable[[str], str | None] = lambda path: None, language: str | None = None
) -> Document:
    return parse(name, text, read, language, lambda keys: bool(keys & {"flag-0", "flag-1", "new", "other"}))


def editor(text: str) -> WordEditor:
    forget()
    document = reading(NAME, text)
    check_maps(document)
    assert len(document.launches) == 1
    return editor_of(document, 0, parse=reading)


def added_by_tool(text: str) -> int:
    """How many words of the launch stand nowhere in the file."""
    return sum(w.place.start == w.place.end or all(f.fixed for f in w.fragments) for w in editor(text).words)


def after(text: str, change: WordChange | None) -> list[str | None]:
    assert change is not None
    changed = apply_edits(text, NAME, change.edits)
    assert changed is not None
    list(yaml.safe_load_all(changed))
    document = reading(NAME, changed)
    check_maps(document)
    assert not document.problems
    (launch,) = document.launches
    return [w.text for w in launch.variants[0].words if not all(f.fixed or f.text is None for f in w.fragments)]


@given(pairs_of, st.sampled_from(LAYOUTS), st.sampled_from(["16", "flashinfer", "true", "a: b"]), st.integers(0, 3))
@draws(100)
def test_setting_a_value(pairs: Pairs, layout: Callable[[Pairs], str], value: str, which: int) -> None:
    which %= len(pairs)
    flag, old = pairs[which]
    if not old:
        return
    text = layout(pairs)
    edit = editor(text)
    at = flat(pairs, layout).index(f"{flag}={old}" if layout is equals else flag) + added_by_tool(text)
    change = edit.set_value(at, value, len(flag) + 1) if layout is equals else edit.set_value(at + 1, value)
    if change is None:
        assert value == "a: b"
        assert layout in (plain, compose, nested_single, nested_double)
        return
    assert after(text, change) == flat([*pairs[:which], (flag, value), *pairs[which + 1 :]], layout)
    assert change.also == ()


@given(pairs_of, st.sampled_from(LAYOUTS), st.integers(0, 3))
@draws(100)
def test_removing_a_flag(pairs: Pairs, layout: Callable[[Pairs], str], which: int) -> None:
    which %= len(pairs)
    flag, old = pairs[which]
    text = layout(pairs)
    words = flat(pairs, layout)
    at = words.index(f"{flag}={old}" if layout is equals and old else flag)
    count = 1 if layout is equals or not old else 2
    change = editor(text).remove(at + added_by_tool(text), count)
    if len(pairs) == 1 and layout in MAPPINGS:
        return
    assert after(text, change) == words[:at] + words[at + count :]
    assert change is not None
    if len(pairs) > 1 and layout is not folded:
        assert apply_edits(text, NAME, change.edits) == layout(pairs[:which] + pairs[which + 1 :])


@given(pairs_of, st.sampled_from(LAYOUTS), st.sampled_from(["1", "", "true", "a b", '{"x": [1]}']), st.integers(-1, 3))
@draws(150)
def test_inserting_a_flag(pairs: Pairs, layout: Callable[[Pairs], str], value: str, where: int) -> None:
    where = min(where, len(pairs) - 1)
    text = layout(pairs)
    before = pairs[: where + 1]
    edit = editor(text)
    shift = added_by_tool(text)
    at = len(flat(before, layout)) - 1 + (shift if where >= 0 else 0)
    change = edit.insert(at, "--new", [value] if value else [])
    if change is None:
        assert layout in (plain, nested_single, nested_double)
        assert " " in value
        return
    joined = layout is equals and edit.joins_values() and value
    new = [f"--new={value}"] if joined else ["--new", *([value] if value else [])]
    found = after(text, change)
    words = flat(pairs, layout)
    if layout in MAPPINGS:
        assert sorted(map(str, found)) == sorted([*words, *new])
    else:
        assert found == words[: at + 1] + new + words[at + 1 :]
    if layout in (block_deep, literal, recipe, recipe_flow) and value == "1" and where >= 0:
        assert apply_edits(text, NAME, change.edits) == layout([*before, ("--new", value), *pairs[where + 1 :]])


@given(pairs_of, st.sampled_from(LAYOUTS), st.integers(0, 3))
@draws(100)
def test_renaming_a_flag(pairs: Pairs, layout: Callable[[Pairs], str], which: int) -> None:
    which %= len(pairs)
    flag, value = pairs[which]
    text = layout(pairs)
    at = flat(pairs, layout).index(f"{flag}={value}" if layout is equals and value else flag) + added_by_tool(text)
    changed = [*pairs[:which], ("--other", value), *pairs[which + 1 :]]
    assert after(text, editor(text).rename(at, "--other")) == flat(changed, layout)


POD = "containers:\n- image: lmsysorg/sglang:v0.5.9\n"
CASES: list[tuple[str, Callable[[WordEditor], WordChange | None], str | None]] = [
    (POD + "  args: [--a, '1']\n", lambda e: e.insert(-1, "--b", ["8"]), POD + "  args: [--b, '8', --a, '1']\n"),
    (POD + "  args:\n  - --a\n", lambda e: e.insert(-1, "--b", ["yes"]), POD + '  args:\n  - --b\n  - "yes"\n  - --a\n'),
    (POD + "  args: [--a, --b]\n", lambda e: e.remove(1, 1), POD + "  args: [--a]\n"),
    (POD + '  args: [--a, "$(X)"]\n  env: [{name: X, value: "4"}]\n', lambda e: e.set_value(1, "8"), POD + '  args: [--a, "$(X)"]\n  env: [{name: X, value: "8"}]\n'),
    (POD + "  args: [--a, $(X)]\n", lambda e: e.set_value(1, "8"), None),
    ("x: &x \"3\"\n" + POD + "  args: [--a, *x]\n", lambda e: e.set_value(1, "8"), "x: &x \"8\"\n" + POD + "  args: [--a, *x]\n"),
    ("services:\n  s:\n    command: sglang serve m --a ${T:-4}\n", lambda e: e.set_value(2, "8"), "services:\n  s:\n    command: sglang serve m --a ${T:-8}\n"),
    ("run: sglang serve m --tp={{ .Values.tp | default 8 }}\n", lambda e: e.set_value(1, "4", 5), "run: sglang serve m --tp={{ .Values.tp | default 4 }}\n"),
    (POD + "  args: [--tp, '{{ default \"8\" .tp }}']\n", lambda e: e.set_value(1, "4"), POD + "  args: [--tp, '{{ default \"4\" .tp }}']\n"),
    (POD + "  args:\n  - {{ if .x }}--a{{ end }}\n  - --b\n", lambda e: e.remove(1), POD + "  args:\n  - {{ if .x }}--a{{ end }}\n"),
    (POD + "  args:\n  - {{ if .x }}--a=1{{ end }}\n  - --b\n", lambda e: e.set_value(0, "2", 4), POD + "  args:\n  - {{ if .x }}--a=2{{ end }}\n  - --b\n"),
    ("services:\n  s:\n    command: sglang serve m ${X:+--a ${T:-4}}\n", lambda e: e.set_value(2, "8"), "services:\n  s:\n    command: sglang serve m ${X:+--a ${T:-8}}\n"),
    ("services:\n  s:\n    command: sglang serve m ${X:+--a 1}\n", lambda e: e.insert(2, "--b"), "services:\n  s:\n    command: sglang serve m ${X:+--a 1} --b\n"),
    ("services:\n  s:\n    command: sglang serve m ${X:+--a 1} --b\n", lambda e: e.remove(1, 2), "services:\n  s:\n    command: sglang serve m --b\n"),
    ('run: "sglang serve m --a \\"x y\\""\n', lambda e: e.set_value(2, "z w"), 'run: "sglang serve m --a \\"z w\\""\n'),
    ('run: "sglang serve m"\n', lambda e: e.insert(0, "--a", ["x y"]), "run: \"sglang serve m --a 'x y'\"\n"),
    ("run: 'sglang serve m'\n", lambda e: e.insert(0, "--a", ["x y"]), "run: 'sglang serve m --a ''x y'''\n"),
    ("backend:\n  sglang_config:\n    decode:\n      page-size: 64 # why\n", lambda e: e.set_value(len(e.words) - 1, "1"), "backend:\n  sglang_config:\n    decode:\n      page-size: 1 # why\n"),
    ("backend: {sglang_config: {decode: {a-b: 1, cuda-graph-bs: [1, 2]}}}\n", lambda e: e.remove(len(e.words) - 3, 3), "backend: {sglang_config: {decode: {a-b: 1}}}\n"),
    ("backend:\n  sglang_config:\n    decode:\n      x: false\n      y: 1\n", lambda e: e.insert(-1, "--x"), "backend:\n  sglang_config:\n    decode:\n      x: true\n      y: 1\n"),
    ("backend:\n  sglang_config:\n    decode:\n      x:\n        - 1\n        - 2\n      # note\n      y: 1\n", lambda e: e.remove(len(e.words) - 5, 3), "backend:\n  sglang_config:\n    decode:\n      # note\n      y: 1\n"),
    ("backend:\n  sglang_config:\n    decode:\n      a_b: 1\n      c_d: 2\n", lambda e: e.insert(99 and len(e.words) - 1, "--e-f", ["3"]), "backend:\n  sglang_config:\n    decode:\n      a_b: 1\n      c_d: 2\n      e_f: 3\n"),
    ("backend:\n  sglang_config:\n    decode:\n      x: 1\n", lambda e: e.set_value(1, "8"), None),
    (POD + "  args: [--config=a.yaml, --b]\n", lambda e: e.split(0), POD + "  args: [--config, a.yaml, --b]\n"),
    (POD + "  args:\n  - --a\n  - --config=8  # c\n", lambda e: e.split(1), POD + '  args:\n  - --a\n  - --config\n  - "8"  # c\n'),
    ("run: sglang serve m --config=a.yaml\n", lambda e: e.split(1), "run: sglang serve m --config a.yaml\n"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "operation", "expected"), CASES, ids=range(len(CASES)))
def test_cases(text: str, operation: Callable[[WordEditor], WordChange | None], expected: str | None) -> None:
    text = "# sglang\n" + text
    change = operation(editor_of(parse(NAME, text), 0))
    changed = None if change is None else apply_edits(text, NAME, change.edits)
    assert changed == (None if expected is None else "# sglang\n" + expected)
