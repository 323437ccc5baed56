"""What docs/integrations.md, the action and the templates promise, tried."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from spec_lsp.cli.main import main
from tests.cli.conftest import REFUSED
from tests.e2e.shared import PATIENCE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "integrations.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[str]:
    return [body for name, body in BLOCK.findall(text) if name == language]


@pytest.mark.parametrize("page", ["README.md", "docs/integrations.md"])
def test_python_examples_run(page: str, tmp_path: Path) -> None:
    for example in blocks((ROOT / page).read_text("utf-8"), "python"):
        ran = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert ran.stdout.strip()


def test_the_example_of_a_config_file_is_right_by_the_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (command,) = blocks(PAGE, "bash")
    assert main(command.split()[1:]) == 0
    schema = json.loads((tmp_path / "sglang-config.schema.json").read_text("utf-8"))
    (example,) = blocks(PAGE, "yaml")
    jsonschema.validate(yaml.safe_load(example), schema)


def test_the_json_output_is_as_its_schema_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text(REFUSED)
    main(["check", "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    schema = json.loads((ROOT / "docs" / "check.schema.json").read_text("utf-8"))
    jsonschema.validate(found, schema)
    item = schema["items"]["properties"]
    assert all(set(one) == set(item) for one in found)


# --- yaml-language-server ----------------------------------------------------------------------------------------------

YAML_SERVER = shutil.which("yaml-language-server")


@pytest.mark.skipif(
    YAML_SERVER is None, reason="yaml-language-server is not installed: npm install -g yaml-language-server"
)
def test_the_real_yaml_language_server_checks_and_completes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["schema", "--sglang", "0.5.23", "--output", "s.json"]) == 0
    text = "# yaml-language-server: $schema=./s.json\nmodel-path: m\ntp-sise: 2\npage-size: sixteen\nspeculative-e"
    uri = (tmp_path / "c.yaml").as_uri()
    assert YAML_SERVER
    with subprocess.Popen([YAML_SERVER, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        try:
            _send(server, "initialize", {"processId": None, "rootUri": tmp_path.as_uri(), "capabilities": {}}, 1)
            _until(server, lambda m: m.get("id") == 1)
            _send(server, "initialized", {})
            document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
            _send(server, "textDocument/didOpen", {"textDocument": document})
            published = _until(
                server, lambda m: m.get("method") == "textDocument/publishDiagnostics" and m["params"]["diagnostics"]
            )
            said = " ".join(d["message"] for d in published["params"]["diagnostics"])
            assert "tp-sise" in said
            at = {"line": 4, "character": 13}
            _send(server, "textDocument/completion", {"textDocument": {"uri": uri}, "position": at}, 2)
            completed = _until(server, lambda m: m.get("id") == 2)["result"]
            items = completed["items"] if isinstance(completed, dict) else completed
            assert "speculative-eagle-topk" in {item["label"] for item in items}
        finally:
            server.kill()


def _send(server: subprocess.Popen[bytes], method: str, params: Any, id_: int | None = None) -> None:
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **({"id": id_} if id_ else {})}).encode()
    assert server.stdin
    server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    server.stdin.flush()


def _until(server: subprocess.Popen[bytes], wanted: Any) -> Any:
    deadline = time.monotonic() + PATIENCE
    assert server.stdout
    while time.monotonic() < deadline:
        length = 0
        while (line := server.stdout.readline().strip()) or not length:
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        message = json.loads(server.stdout.read(length))
        if wanted(message):
            return message
        if "id" in message and "method" in message:  # a question of the server's: nothing is known
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": None}).encode()
            assert server.stdin
            server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            server.stdin.flush()
    raise AssertionError("the server said nothing of the kind")


# --- the action and the templates --------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A virtual environment as the action makes it, with this very spec-lsp."""
    folder = tmp_path / "temp" / "spec-lsp-venv" / "bin"
    folder.mkdir(parents=True)
    for name, words in (("spec-lsp", "-m spec_lsp.cli"), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (folder / name).chmod(0o755)
    return tmp_path / "temp"


def step(folder: Path, installed: Path, **inputs: str) -> tuple[int, str, str, str]:
    """The action's step in a folder: exit code, what it prints, the summary, the outputs."""
    summary, outputs = folder.parent / "summary", folder.parent / "outputs"
    env = {
        **os.environ, "RUNNER_TEMP": str(installed), "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(outputs),
        "SPEC_LSP_SOURCE": str(ROOT), **{f"INPUT_{name.upper()}": value for name, value in inputs.items()},
    }  # fmt: skip
    script = ROOT / "packaging" / "github" / "check.sh"
    ran = subprocess.run(["bash", str(script)], cwd=folder, env=env, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, summary.read_text(), outputs.read_text()


def test_the_action_s_step_annotates_counts_and_fails(tmp_path: Path, installed: Path) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "a b.sh").write_text("sglang serve x --no-such-flag\n")
    code, out, summary, outputs = step(folder, installed, sarif="log.sarif", sglang="0.5.19 0.5.23", gpu="h100")
    assert code == 1
    assert out.startswith("::error file=a b.sh,line=1")
    assert "| error | `unknown-flag` (SPC001) | 1 |" in summary
    assert outputs == "errors=1\n"
    assert json.loads((folder / "log.sarif").read_text("utf-8"))["runs"][0]["results"]
    assert step(folder, installed, fail="false")[0] == 0
    assert step(folder, installed, paths="gone.sh")[0] == 2


def test_the_action_s_step_is_content_with_nothing(tmp_path: Path, installed: Path) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    code, out, summary, _ = step(folder, installed)
    assert (code, out) == (0, "")
    assert "nothing to report" in summary


def test_the_action_hands_every_input_to_its_step() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    handed = action["runs"]["steps"][0]["env"]
    assert {f"INPUT_{name.upper()}" for name in action["inputs"]} == {
        name for name in handed if name.startswith("INPUT_")
    }
    script = (ROOT / "packaging" / "github" / "check.sh").read_text("utf-8")
    assert set(re.findall(r"INPUT_[A-Z]+", script)) == {name for name in handed if name.startswith("INPUT_")}


def test_the_gitlab_job_runs(tmp_path: Path, installed: Path) -> None:
    (job,) = yaml.safe_load((ROOT / "packaging" / "gitlab" / "spec-lsp.gitlab-ci.yml").read_text("utf-8")).values()
    (tmp_path / "run.sh").write_text("sglang serve x\n")
    commands = [c for c in job["script"] if c.startswith("spec-lsp ")]
    env = {
        **os.environ,
        "PATH": f"{installed / 'spec-lsp-venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        **job["variables"],
    }
    subprocess.run(["sh", "-ec", "\n".join(commands)], cwd=tmp_path, env=env, check=True, stdout=subprocess.DEVNULL)
    assert all((tmp_path / name).exists() for name in job["artifacts"]["reports"].values())


def test_the_container_file_copies_what_is_there() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    kept = [line[1:] for line in ignored if line.startswith("!")]
    assert all((ROOT / name).exists() for name in kept)
    text = (ROOT / "packaging" / "Containerfile").read_text("utf-8")
    words = json.loads(re.search(r"ENTRYPOINT (\[.*\])", text)[1])  # type: ignore[index]
    assert main([*words[1:], "--help"]) == 0
