"""The README's examples do what they show.

Every `console` block is run, command by command, in a copy of the repository's files, and its output compared; a line `…` stands for any
lines. With SPEC_LSP_UPDATE=1 the README is rewritten with what the commands print. Examples of settings, ignores and CI are read and tried.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from spec_lsp.cli.main import main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TEXT = README.read_text("utf-8")
UPDATE = os.environ.get("SPEC_LSP_UPDATE") == "1"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [body for name, body in BLOCK.findall(TEXT) if name == language]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files the examples speak of, where they may be changed."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "editors").mkdir()
    shutil.copy(ROOT / "editors" / "demo.sh", folder / "editors" / "demo.sh")
    return folder


def shown(command: str, folder: Path) -> str:
    """What a command prints to a person, errors included."""
    tools = folder / "bin"
    if not tools.exists():
        tools.mkdir()
        (tools / "spec-lsp").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m spec_lsp.cli "$@"\n')
        (tools / "spec-lsp").chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "HF_HOME": str(folder / "none"),
    }
    run = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return "\n".join(line.rstrip() for line in run.stdout.decode().splitlines())


def steps(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output shown."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, output.strip("\n")) for command, _, output in (p.partition("\n") for p in parts)]


def matches(expected: str, actual: str) -> bool:
    """Whether the output is as shown; a line `…` stands for any lines."""
    pattern = r"\n".join(r"[\s\S]*" if line == "…" else re.escape(line) for line in expected.split("\n"))
    return re.fullmatch(pattern, actual) is not None


def test_examples_print_what_they_show(copy: Path) -> None:
    """In one test, in order: later examples work on what earlier ones left."""
    text = TEXT
    for block in blocks("console"):
        renewed = ""
        for command, expected in steps(block):
            actual = shown(command, copy)
            if not UPDATE:
                assert matches(expected, actual), f"$ {command}\n{actual}"
            same = "…" in expected.split("\n") and matches(expected, actual)
            renewed += f"$ {command}\n{expected if same else actual}\n"
        text = text.replace(block, renewed, 1)
    if UPDATE and text != TEXT:
        README.write_text(text, "utf-8")


def test_there_are_two_commands_for_set_up() -> None:
    commands = [line for block in blocks("bash") for line in block.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert commands[0].endswith("spec-lsp check editors/demo.sh")
    assert ".venv/bin/pytest" in commands[1]


def test_ci_runs_the_readme_s_test_command() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    sed = re.search(r"command=\$\((sed .*README\.md)\)", script)
    assert sed
    found = subprocess.run(["bash", "-c", sed[1]], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    assert found in TEXT
    assert found.startswith("python3 -m venv .venv && ")


def test_the_example_of_an_ignore_silences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = next(b for b in blocks("bash") if "ignore[" in b)
    rule = re.search(r"ignore\[(.+?)\]", example)
    assert rule
    assert main(["explain", rule[1]]) == 0
    (tmp_path / "launch.sh").write_text("#!/bin/bash\n" + example)
    capsys.readouterr()
    asked = ["check", str(tmp_path / "launch.sh"), "--sglang", "0.5.23", "--gpu", "b200"]
    main(asked)
    assert "error" not in capsys.readouterr().out
    main([*asked, "--ignore-directives"])
    assert f"{rule[1]}[" in capsys.readouterr().out


def test_the_example_of_settings_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec-lsp.toml").write_text(blocks("toml")[0])
    assert main(["settings", str(tmp_path)]) == 0
    assert 'deprecated-flag = "warning"' in capsys.readouterr().out


def test_the_examples_of_ci_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.sh").write_text("sglang serve x\n")
    monkeypatch.chdir(tmp_path)
    commands = [c for block in blocks("yaml") for c in _commands(yaml.safe_load(block)) if c.startswith("spec-lsp ")]
    assert len(commands) == 4
    for command in commands:
        assert main(command.split()[1:]) == 0, command
    written = {"spec-lsp.sarif", "gl-code-quality-report.json", "spec-lsp.xml"}
    assert {p.name for p in tmp_path.iterdir()} == {"run.sh", *written}
    reports = next(r for r in map(yaml.safe_load, blocks("yaml")) if "spec-lsp" in r)["spec-lsp"]["artifacts"][
        "reports"
    ]
    assert set(reports.values()) == written - {"spec-lsp.sarif"}


def test_every_format_is_told_of() -> None:
    told = re.search(r"^\| `--format` \|.*?\n\n", TEXT, re.MULTILINE | re.DOTALL)
    assert told
    assert set(re.findall(r"^\| `(\w+)` \|", told[0], re.MULTILINE)) == {
        path.stem for path in (ROOT / "spec_lsp" / "cli" / "formats").glob("[a-z]*.py")
    }


def _commands(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = value.get("run"), *(value["script"] if isinstance(value.get("script"), list) else [])
        return [c for c in own if isinstance(c, str)] + [c for v in value.values() for c in _commands(v)]
    return [c for v in value for c in _commands(v)] if isinstance(value, list) else []


def test_the_pre_commit_hook_is_the_one_we_have() -> None:
    example = next(yaml.safe_load(b) for b in blocks("yaml") if b.startswith("repos:"))
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert [h["id"] for h in example["repos"][0]["hooks"]] == [h["id"] for h in hooks]
    assert main([*hooks[0]["entry"].split()[1:], str(ROOT / "editors" / "README.md")]) == 0


def test_links_lead_somewhere() -> None:
    for page in [README, *(ROOT / "editors").glob("*.md"), ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
