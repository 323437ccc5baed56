"""Changes of settings as edits: set, drop and add, on the command line, in config files, in the environment."""

from __future__ import annotations

import pytest

from spec_lsp.analysis.printing import Printer, spelling_of, texts_of
from spec_lsp.analysis.run import bind_variant
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import load
from spec_lsp.resolution.engine import Change, dropping, dropping_env, setting, setting_env
from spec_lsp.syntax.launch import Edit
from tests.analysis.support import NAME, NOTHING, PINNED, SERVER, Memory, after, check

RELEASE = Release.parse("0.5.23")


def printed(
    text: str, change: Change, near: tuple[str, ...] = (), workspace: Memory = NOTHING
) -> tuple[Edit, ...] | None:
    document = check(text, workspace=workspace).document
    launch = document.launches[0]
    binding = bind_variant(launch, 0, RELEASE, lambda path: workspace.read(NAME, path))
    return Printer(document, 0, 0, binding, workspace).print(change, near)


@pytest.mark.parametrize(
    ("words", "change", "result"),
    [
        # set
        ("--page-size 16", setting(page_size=1), "--page-size 1"),
        ("--page-size=16", setting(page_size=1), "--page-size=1"),
        ("--page-size '16'", setting(page_size=1), "--page-size '1'"),
        ("--page-size 16 --tp 2", setting(page_size=1, tp_size=4), "--page-size 1 --tp 4"),
        ("--cuda-graph-bs-decode 1 2", setting(cuda_graph_bs_decode=[4, 8]), "--cuda-graph-bs-decode 4 8"),
        # switches
        ("--enable-metrics --tp 2", setting(enable_metrics=False), "--tp 2"),
        ("--tp 2", setting(enable_metrics=True), "--tp 2 --enable-metrics"),
        # drop
        ("--page-size 16 --tp 2", dropping("page_size"), "--tp 2"),
        ("--page-size=16 --tp 2", dropping("page_size"), "--tp 2"),
        ("--page-size 16 --tp 2 --page-size 32", dropping("page_size"), "--tp 2"),
        ("--page-size 16 --tp 2", setting(page_size=None), "--tp 2"),
        # add
        ("--tp 2", setting(page_size=1), "--tp 2 --page-size 1"),
        ("--tp 2 \\\n  --pp-size 2", setting(page_size=1), "--tp 2 \\\n  --pp-size 2 \\\n  --page-size 1"),
        # several at once
        ("--page-size 16 --tp 2", Change(set={"tp_size": 4}, drop=("page_size",)), "--tp 4"),
    ],
)
def test_command_line(words: str, change: Change, result: str) -> None:
    text = f"{PINNED}{SERVER} {words}\n"
    edits = printed(text, change)
    assert edits is not None
    assert after(text, edits) == f"{PINNED}{SERVER} {result}\n"


def test_a_new_flag_goes_behind_its_neighbour() -> None:
    text = f"{PINNED}{SERVER} \\\n  --page-size 16 \\\n  --tp 2\n"
    edits = printed(text, setting(attention_backend="fa3"), ("page_size",))
    assert edits is not None
    assert after(text, edits) == f"{PINNED}{SERVER} \\\n  --page-size 16 \\\n  --attention-backend fa3 \\\n  --tp 2\n"


def test_a_value_from_a_variable_is_written_there() -> None:
    text = f"{PINNED}PAGE=16\n{SERVER} --page-size $PAGE\n"
    edits = printed(text, setting(page_size=1))
    assert edits is not None
    assert after(text, edits) == f"{PINNED}PAGE=1\n{SERVER} --page-size $PAGE\n"


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("--tp 2", dropping("page_size")),
        ("--tp 2", setting(no_such_field=1)),
        ("--cuda-graph-bs-decode 1 2", setting(cuda_graph_bs_decode=[4])),
        ("--tp 2", setting_env(SGLANG_X="1")),
        ("--tp 2", Change()),
        ("--page-size $PAGE", setting(page_size=1)),
    ],
)
def test_what_cannot_be_written(words: str, change: Change) -> None:
    assert not printed(f"{PINNED}{SERVER} {words}\n", change)


@pytest.mark.parametrize(
    ("config", "change", "result"),
    [
        ("page-size: 16  # why\ntp-size: 2\n", setting(page_size=1), "page-size: 1  # why\ntp-size: 2\n"),
        ("page-size: 16\ntp-size: 2\n", dropping("page_size"), "tp-size: 2\n"),
        ("tp-size: 2\n", setting(page_size=1), "tp-size: 2\npage-size: 1\n"),
        ("enable-metrics: true\n", setting(enable_metrics=False), "enable-metrics: false\n"),
    ],
)
def test_config_file(config: str, change: Change, result: str) -> None:
    workspace = Memory({"/w/c.yaml": config})
    edits = printed(f"{PINNED}{SERVER} --config c.yaml\n", change, ("tp_size",), workspace)
    assert edits is not None
    assert after(config, edits, "/w/c.yaml") == result


def test_config_file_of_a_here_document() -> None:
    text = f"{PINNED}cat > c.yaml <<EOF\npage-size: 16\nEOF\n{SERVER} --config c.yaml\n"
    edits = printed(text, setting(page_size=1))
    assert edits is not None
    assert after(text, edits) == text.replace("16", "1")


@pytest.mark.parametrize(
    ("before", "change", "result"),
    [
        ("SGLANG_X=compact ", setting_env(SGLANG_X="static"), "SGLANG_X=static "),
        ("export SGLANG_X=compact\n", setting_env(SGLANG_X="static"), "export SGLANG_X=static\n"),
        ("export SGLANG_X='compact'\n", setting_env(SGLANG_X="static"), "export SGLANG_X='static'\n"),
        ("A=1 SGLANG_X=compact ", dropping_env("SGLANG_X"), "A=1 "),
        ("export SGLANG_X=compact\n", dropping_env("SGLANG_X"), ""),
        ("export SGLANG_X='compact'\n", dropping_env("SGLANG_X"), ""),
    ],
)
def test_environment(before: str, change: Change, result: str) -> None:
    text = f"{PINNED}{before}{SERVER}\n"
    edits = printed(text, change)
    assert edits is not None
    assert after(text, edits) == f"{PINNED}{result}{SERVER}\n"


@pytest.mark.parametrize(
    ("value", "texts"),
    [(1, ("1",)), ("a b", ("a b",)), ([1, 2], ("1", "2")), ((), ()), (0.5, ("0.5",))],
)
def test_texts_of(value: object, texts: tuple[str, ...]) -> None:
    assert texts_of(value) == texts


@pytest.mark.parametrize(
    ("field", "spelling"),
    [("tp_size", "--tp-size"), ("page_size", "--page-size"), ("model_path", "--model-path")],
)
def test_spelling_of(field: str, spelling: str) -> None:
    assert spelling_of(load(RELEASE).by_field[field], field) == spelling
