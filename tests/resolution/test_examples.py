"""Every rule's own examples, as the commands that its page shows: each `bad` one must give the rule, each `good` one must not, and must be
accepted."""

from __future__ import annotations

import json
import shlex
from functools import cache
from pathlib import Path

import pytest

from spec_lsp.analysis.argv import Answer, resolve_argv
from spec_lsp.analysis.explained import commands
from spec_lsp.catalog.release import Release
from spec_lsp.catalog.store import releases
from spec_lsp.cli.arguments import parser
from spec_lsp.cli.main import main
from spec_lsp.cli.resolve import typed_launch
from spec_lsp.facts.hardware import find
from spec_lsp.facts.known import ADAPTER
from spec_lsp.facts.model import ModelFacts
from spec_lsp.facts.well_known import find_model
from spec_lsp.resolution.engine import RULES, Rule
from spec_lsp.resolution.examples import FOLDER, in_lines
from spec_lsp.resolution.handlers import handlers_of
from tests.resolution.launching import adapter

MODELS = Path(__file__).parent.parent / "models"
MORE_MODELS = json.loads((Path(__file__).parent / "data" / "architectures.json").read_text())
"""What config.json says of models that have no folder, by name."""

for release in releases():
    handlers_of(release)  # imports every rule


@cache
def model(path: str) -> ModelFacts | None:
    folder, _, name = path.rpartition("/")
    if name == ADAPTER:
        return adapter(path)
    if folder != FOLDER:
        return find_model(path)
    config = MODELS / name / "config.json"
    return ModelFacts(json.loads(config.read_text()) if config.is_file() else MORE_MODELS[name])


def answer(command: str) -> Answer:
    """What `spec-lsp resolve … -- LAUNCH` works out, with the models of the tests in place of those in the examples' folder."""
    arguments = parser().parse_args(shlex.split(command)[1:])
    env, program, argv = typed_launch(arguments)
    hardware = find(arguments.gpu)
    assert hardware is not None, arguments.gpu
    return resolve_argv(
        tuple(argv), env, Release.parse(arguments.sglang), hardware, models=model, files=lambda _: None, program=program
    )


def cases(kind: str) -> list[tuple[str, str]]:
    return [(rule.name, command) for rule in RULES.values() for command in commands(rule, getattr(rule, kind))]


@pytest.mark.parametrize(("name", "command"), cases("bad"))
def test_bad_example_gives_the_rule(name: str, command: str) -> None:
    rule = RULES[name]
    said = answer(command)
    assert name in [s.merged.found.rule.name for s in said.findings], (said.outcome, said.findings)
    if rule.severity == "error" and not rule.late:
        assert said.outcome in ("refused", "bad-arguments")


@pytest.mark.parametrize(("name", "command"), cases("good"))
def test_good_example_is_accepted(name: str, command: str) -> None:
    said = answer(command)
    assert name not in [s.merged.found.rule.name for s in said.findings]
    assert said.outcome in ("accepted", "unknown"), said.findings


@pytest.mark.parametrize(("name", "command"), [case for case in cases("bad")[::7] if FOLDER not in case[1]])
def test_an_example_is_a_command_to_paste(
    name: str, command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every seventh of those whose model has a public name, as the shell hands it on, in a folder that says nothing."""
    monkeypatch.chdir(tmp_path)
    main(shlex.split(command)[1:])
    assert name in capsys.readouterr().out


def said_of(command: str) -> set[str]:
    return {s.merged.found.rule.name for s in answer(command).findings if s.merged.severity != "hint"}


@pytest.mark.parametrize(("name", "command"), cases("good"))
def test_a_word_that_is_no_flag_brings_no_other_finding(name: str, command: str) -> None:
    """What it may have meant is unknown, which silences and never speaks."""
    assert said_of(f"{command} --no-such-thing 1") <= {*said_of(command), "unknown-flag"}, name


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda r: r.name)
def test_rule_is_documented(rule: Rule) -> None:
    assert rule.summary
    assert rule.summary[-1] in ".!?"
    assert rule.explanation
    assert rule.code.startswith("SPC")


def test_codes_are_unique() -> None:
    codes = [rule.code for rule in RULES.values()]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("width", [1, 40, 100])
def test_an_example_in_lines_is_the_same_command(width: int) -> None:
    for _, command in cases("bad")[::20]:
        lines = in_lines(command, width)
        assert shlex.split("\n".join(lines).replace("\\\n", "")) == shlex.split(command)
        assert all(len(line) <= width or line.strip().count(" --") == 0 for line in lines)
