"""The command line as a whole: help, versions, what is imported when, internal errors."""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spec_lsp import __version__
from spec_lsp.cli import main as module
from spec_lsp.cli.arguments import parser
from tests.cli.conftest import Ran

Run = Callable[..., Ran]


def commands(p: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for action in p._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield from commands(sub, (*words, name))


COMMANDS = sorted(commands(parser()))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_examples(words: tuple[str, ...], run: Run) -> None:
    ran = run(*words, "--help")
    assert ran.code == 0
    assert "usage: spec-lsp" in ran.out
    assert "examples:" in ran.out or words in ((), ("catalog",))
    assert max(map(len, ran.out.splitlines())) <= 130


def test_version(run: Run) -> None:
    assert run("--version") == Ran(0, f"spec-lsp {__version__}\n", "")


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    ran = run()
    assert ran.code == 2
    assert "commands:" in ran.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["chekc"], "invalid choice: 'chekc'"),
        (["check", "--frmat", "json"], "unrecognized arguments: --frmat"),
        (["resolve", "--model-path", "x"], "put `--` before the launch"),
        (["catalog"], "required: ACTION"),
        (["catalog", "compare", ""], "no path is named"),
        (["catalog", "compare", "nothing"], "`nothing` holds no SGLang (no srt/server_args.py)"),
    ],
)
def test_usage_errors(words: list[str], says: str, run: Run) -> None:
    ran = run(*words)
    assert ran.code == 2
    assert says in ran.err


def test_an_internal_error_is_told_as_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(words: list[str]) -> int:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(module, "_run", fail)
    ran = run("check")
    assert ran.code == 2
    assert ran.err.splitlines()[-1].startswith("spec-lsp: internal error: planted (a bug of spec-lsp")
    assert "Traceback" in ran.err


def imported(*words: str) -> set[str]:
    code = f"import sys; from spec_lsp.cli.main import main; main({list(words)!r}); print('\\n'.join(sys.modules), file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    return set(run.stderr.split())


def test_asking_for_the_version_imports_next_to_nothing() -> None:
    assert not imported("--version") & {
        "argparse",
        "dataclasses",
        "yaml",
        "json",
        "typing",
        "spec_lsp.syntax",
        "lsprotocol",
        "tree_sitter",
    }


@pytest.mark.parametrize(
    "words", [("check", "--help"), ("rules",), ("resolve", "--", "--model-path", "x"), ("batch",), ("settings",)]
)
def test_only_the_server_imports_the_protocol(words: tuple[str, ...]) -> None:
    assert not imported(*words) & {"lsprotocol", "pygls", "attrs", "cattrs"}


def test_check_imports_nothing_it_does_not_need(folder: object) -> None:
    assert not imported("check", "clean.sh") & {"lsprotocol", "pygls", "asyncio", "ssl", "urllib.request", "unittest"}


def test_the_grammar_is_imported_for_shell_alone(folder: Path) -> None:
    (folder / "engine.yaml").write_text("model-path: Qwen/Qwen3-8B\nsglang: true\n")
    assert "tree_sitter" not in imported("check", "engine.yaml")
    assert "tree_sitter" in imported("check", "clean.sh")


def test_a_server_whose_client_never_speaks_ends(spawn: Run, folder: Path) -> None:
    ran = spawn("server", "--stdio", "--log-file", folder / "log", "-vv")
    assert ran.code == 1, "the protocol's exit code for a client that leaves without `shutdown`"
    assert (ran.out, ran.err) == ("", "")
    assert (folder / "log").exists()


def test_a_server_that_cannot_log_or_listen_says_so(spawn: Run) -> None:
    assert "cannot write the log to `/no/log`" in spawn("server", "--log-file", "/no/log").err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = spawn("server", "--tcp", "--port", taken.getsockname()[1])
    assert ran.code == 2
    assert "cannot listen on 127.0.0.1:" in ran.err


def test_output_that_cannot_be_written_is_said_so(folder: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "spec_lsp.cli", "check", "refused.sh"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ran.returncode, ran.stderr.startswith("spec-lsp: error: the output cannot be written")) == (2, True)


def test_a_package_that_is_lacking_is_named_with_what_to_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.NEEDED, "no_such_module", "no-such-package")
    ran = run("check", ".")
    assert ran.code == 2
    assert ran.err == (
        "spec-lsp: error: no-such-package is not installed, and spec-lsp needs it: "
        f"run `{sys.executable} -m pip install no-such-package`\n"
    )


def test_every_package_that_is_depended_on_is_looked_for() -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    needed = re.search(r"^dependencies = \[\n(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    assert needed is not None
    packages = re.findall(r'"([\w-]+)', re.sub(r".*;.*", "", needed[1]))
    assert sorted(module.NEEDED.values()) == sorted(packages)


@pytest.mark.parametrize("words", [("check", "clean.sh"), ("check", "nothing.sh"), ("rules",), ("no-command",), ()])
def test_the_program_ends_as_main_does(words: tuple[str, ...], run: Run, spawn: Run) -> None:
    """All that was printed is there, though nothing is cleared away behind it."""
    inside, outside = run(*words), spawn(*words)
    assert (outside.code, outside.out) == (inside.code, inside.out)
    assert bool(outside.err) == bool(inside.err)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
@pytest.mark.parametrize("words", [["rules"], ["--version"]])
def test_output_that_cannot_be_written_is_told(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "spec_lsp.cli", *words], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ran.returncode == 2
    assert b"cannot be written" in ran.stderr
