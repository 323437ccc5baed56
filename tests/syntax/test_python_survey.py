"""The look at a whole Python file before it is read: what can start nothing is not read, and what can is."""

from __future__ import annotations

import ast

import pytest

from spec_lsp.syntax.python.survey import survey

COMMAND = '"python -m sglang.launch_server --model-path m"'

SILENT = [
    f"print({COMMAND})",
    f"logger.info({COMMAND} + name)",
    f'logging.error(f"try {{x}}: " {COMMAND})',
    f"raise ValueError({COMMAND})",
    f"raise SystemExit({COMMAND})",
    f"raise ValueError(hint({COMMAND}))",
    f"def f():\n    {COMMAND}\n",
    f"if {COMMAND} == line or line in ({COMMAND}, x):\n    run(line)",
    'run("python -m other.server")',
]
SPEAKING = [
    f"run({COMMAND})",
    f"raise SystemExit(run({COMMAND}))",
    f"raise typer.Exit(code=run({COMMAND}).returncode)",
    f"x = {COMMAND}",
    f"print(run({COMMAND}))",
    f'print("a" + run({COMMAND}))',
    f"print(f'{{run({COMMAND})}}')",
    f"def f(x={COMMAND}): ...",
    f"def print(x): run(x)\nprint({COMMAND})",
    'x = f"python -m sglang.launch_server --port {p}"',
    f"run({COMMAND} if x == {COMMAND} else y)",
    'x = ["sglang", "serve"]',
    '@given("sglang serve")\ndef f(): ...',
]


@pytest.mark.parametrize("text", SILENT)
def test_a_text_that_is_only_shown_raised_or_compared_starts_nothing(text: str) -> None:
    assert not survey(ast.parse(text).body).signs


@pytest.mark.parametrize("text", SPEAKING)
def test_any_other_text_may_start_something(text: str) -> None:
    assert survey(ast.parse(text).body).signs


def test_names_of_sglang_are_known_by_what_they_are_imported_as() -> None:
    found = survey(
        ast.parse("from sglang import Engine as E\nE(x)\nsgl.Engine(y)\nother(z)\nraise ServerArgs(1)\n").body
    )
    assert sorted(ast.unparse(one) for one in found.sinks) == ["E", "sgl.Engine"]


def test_functions_speak_by_their_flags_and_by_what_they_call() -> None:
    text = (
        "def flags():\n    return '--tp'\n"
        "def long():\n" + "    a()\n" * 9 + "def short():\n    return 1\n"
        "def outer():\n    def inner():\n        return flags()\n" + "    b()\n" * 9 + "def starter():\n    launch(x)\n"
    )
    speaking, short = survey(ast.parse(text).body).speaking()
    assert speaking == {"flags", "outer", "inner", "starter"}
    assert short == {"short", "inner", "starter"}
