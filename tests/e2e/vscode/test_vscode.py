"""The extension in VS Code, as a person meets it."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.shared import CONFIG, RULE, SCRIPT
from tests.e2e.vscode.editor import Editor
from tests.e2e.vscode.tools import VSIX

expect = pytest.importorskip("playwright.sync_api", reason="no Playwright: run tests/e2e/vscode/setup").expect

Window = Callable[[Path], Editor]

UNSAID = SCRIPT.replace("# spec-lsp: sglang=0.5.23 gpu=b200\n", "")
"""The same script, whose release and GPU nothing in the file names."""


def squiggles(editor: Editor, text: str, severity: str = "error") -> None:
    """Wait for one squiggle, and for it to stand under just these characters: a lens above them may still move both."""
    expect(editor.squiggle(severity)).to_have_count(1)
    editor.until(lambda: stands_under(editor, text, severity), f"a squiggle under {text!r} alone")


def stands_under(editor: Editor, text: str, severity: str) -> bool:
    shown, box = editor.squiggle(severity).bounding_box(), editor.text_box(text)
    if shown is None:
        return False
    level = box.top <= shown["y"] + shown["height"] / 2 <= box.bottom
    return level and abs(shown["x"] - box.left) < 1.5 and abs(shown["x"] + shown["width"] - box.right) < 1.5


# --- findings and fixes ------------------------------------------------------------------------------------------------


def test_a_script_from_the_squiggle_to_the_file_on_disk(editor: Editor) -> None:
    script = editor.put(SCRIPT, "run.sh")
    squiggles(editor, "--speculative-eagle-topk $TOPK")
    editor.await_lens()  # VS Code has been seen to draw none when a panel opens just then

    editor.command("Problems: Focus on Problems View")
    expect(editor.problem("is refused with")).to_be_visible()
    expect(editor.problem("is refused with").locator("a", has_text=RULE)).to_be_visible()

    editor.hover("--speculative-eagle-topk $TOPK")
    expect(editor.hovers()).to_contain_text("is refused with")
    expect(editor.hovers()).to_contain_text("Branches the draft keeps in each step")

    editor.press("Escape")
    editor.go_to(7, 5)
    editor.press("Control+.")
    expect(editor.actions().first).to_contain_text("Set `--speculative-eagle-topk` to `1`")
    editor.press("Enter")
    expect(editor.squiggle()).to_have_count(0)
    expect(editor.line("TOPK=1")).to_be_visible()
    editor.save()
    assert script.read_text(encoding="utf-8") == SCRIPT.replace("TOPK=8", "TOPK=1")


def test_a_config_file(editor: Editor) -> None:
    config = editor.put(CONFIG, "config.yaml")
    squiggles(editor, "speculative-eagle-topk: 8", "warning")
    editor.go_to(8, 5)
    editor.press("Control+.")
    expect(editor.actions().first).to_contain_text("Set `speculative-eagle-topk` to `1`")
    editor.press("Enter")
    expect(editor.squiggle("warning")).to_have_count(0)
    editor.save()
    assert config.read_text(encoding="utf-8") == CONFIG.replace("topk: 8", "topk: 1")


def test_a_flaw_in_a_config_file_that_a_script_names(editor: Editor) -> None:
    (editor.folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    editor.put("# spec-lsp: sglang=0.5.23 gpu=b200\npython -m sglang.launch_server --config config.yaml\n", "run.sh")
    expect(editor.squiggle()).to_have_count(1)
    editor.open("config.yaml")
    squiggles(editor, "speculative-eagle-topk: 8")
    editor.go_to(8, 25)
    editor.press("End", "Backspace", "1")
    expect(editor.squiggle()).to_have_count(0)
    editor.open("run.sh")
    expect(editor.squiggle()).to_have_count(0)


def test_the_code_of_a_problem_leads_to_its_rule(editor: Editor) -> None:
    editor.put(SCRIPT, "run.sh")
    expect(editor.squiggle()).to_have_count(1)
    editor.command("Problems: Focus on Problems View")
    editor.problem("is refused with").locator("a", has_text=RULE).click()
    expect(editor.panel().locator("h1")).to_have_text(RULE)
    expect(editor.panel().locator("body")).to_contain_text("trtllm_mha verifies chains of draft tokens, not trees.")


def test_fix_all_on_save(editor: Editor) -> None:
    editor.set(**{"editor.codeActionsOnSave": {"source.fixAll.spec-lsp": "explicit"}, "spec-lsp.unsafeFixes": True})
    script = editor.put(SCRIPT, "run.sh")
    expect(editor.squiggle()).to_have_count(1)
    editor.go_to(2, 1)
    editor.type("# edited\n")
    editor.save()
    fixed = SCRIPT.replace("TOPK=8", "TOPK=1")
    assert script.read_text(encoding="utf-8") == fixed.replace("# spec-lsp", "# edited\n# spec-lsp")


def test_fix_all_says_why_it_does_nothing(editor: Editor) -> None:
    editor.put(SCRIPT, "run.sh")
    expect(editor.squiggle()).to_have_count(1)
    editor.command("spec-lsp: Fix All")
    expect(editor.notification("changes what runs")).to_be_visible()
    editor.set(**{"spec-lsp.unsafeFixes": True})
    editor.command("spec-lsp: Fix All")
    expect(editor.line("TOPK=1")).to_be_visible()


# --- what is shown beside ----------------------------------------------------------------------------------------------


def test_the_resolved_configuration_follows_what_is_typed(editor: Editor) -> None:
    editor.put(SCRIPT.replace("trtllm_mha", "flashinfer"), "run.sh")
    expect(editor.status()).to_be_visible()
    editor.command("spec-lsp: Show Resolved Configuration")
    steps = editor.panel().locator("tr", has_text="speculative-num-steps")
    expect(editor.panel().locator("h1")).to_have_text("What SGLang will run")
    expect(steps).to_contain_text("5")
    editor.go_to(6, 1)
    editor.press("End", "ArrowLeft", "ArrowLeft", "Backspace", "3")
    expect(steps).to_contain_text("3")
    expect(editor.line("--speculative-num-steps 3")).to_be_visible()


def test_the_lens_opens_the_resolved_configuration(editor: Editor) -> None:
    editor.put(SCRIPT, "run.sh")
    editor.page.locator(".codelens-decoration a", has_text="SGLang 0.5.23 · B200").click()
    expect(editor.panel().locator("h1")).to_have_text("What SGLang will run")


def test_links_of_the_resolved_configuration(editor: Editor) -> None:
    editor.put(SCRIPT, "run.sh")
    editor.command("spec-lsp: Show Resolved Configuration")
    row = editor.panel().locator("tr", has_text="speculative-num-steps")
    row.get_by_role("link", name="speculative-num-steps").click()
    words = "--speculative-num-steps 5"
    number, line = next((n, line) for n, line in enumerate(SCRIPT.split("\n"), 1) if words in line)
    at = f"Ln {number}, Col {line.index(words) + len(words) + 1} ({len(words)} selected)"
    expect(editor.page.locator(".statusbar-item", has_text=at)).to_be_visible()
    editor.panel().get_by_role("link", name=RULE).first.click()
    expect(editor.panel().locator("h1")).to_have_text(RULE)


def test_a_rule_is_picked_and_explained(editor: Editor) -> None:
    editor.put(SCRIPT, "run.sh")
    expect(editor.squiggle()).to_have_count(1)
    editor.command("spec-lsp: Explain Rule")
    editor.choose(RULE, "SPC123")
    expect(editor.panel().locator("h1")).to_have_text(RULE)


def test_cells_of_a_notebook_have_findings(editor: Editor) -> None:
    launch = "python3 -m sglang.launch_server --model-path org/m --bogus-flag 1"
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": text}
             for text in (f"import os\n!{launch}", f"%%bash\n{launch}")]  # fmt: skip
    path = editor.folder / "serve.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), "utf-8")
    editor.press("Control+p")
    editor.choose("serve.ipynb", str(path))
    expect(editor.page.locator(".notebook-editor .squiggly-error")).to_have_count(2)


# --- settings ----------------------------------------------------------------------------------------------------------


def test_settings_are_heeded_at_once(editor: Editor) -> None:
    editor.set(**{"spec-lsp.sglang": "0.5.23", "spec-lsp.gpu": "b200"})
    editor.put(UNSAID, "run.sh")
    squiggles(editor, "--speculative-eagle-topk $TOPK")
    expect(editor.status()).to_contain_text("SGLang 0.5.23 · B200")
    editor.set(**{"spec-lsp.sglang": "0.5.19", "spec-lsp.gpu": "b200", "spec-lsp.rules": {RULE: "off"}})
    expect(editor.status()).to_contain_text("SGLang 0.5.19 · B200")
    expect(editor.squiggle()).to_have_count(0)


def test_the_status_bar_changes_release_and_hardware(editor: Editor) -> None:
    editor.put(UNSAID, "run.sh")
    expect(editor.status()).to_contain_text("SGLang 0.5.23 · any")
    editor.status().click()
    expect(editor.row("As the files say")).to_contain_text("the newest where nothing names one")
    editor.choose("0.5.19")
    expect(editor.row("As the files say")).to_contain_text("any where nothing names one")
    editor.choose("gb200")
    expect(editor.status()).to_contain_text("SGLang 0.5.19 · GB200")
    written = json.loads((editor.folder / ".vscode" / "settings.json").read_text())
    assert written == {"spec-lsp.sglang": "0.5.19", "spec-lsp.gpu": "gb200"}
    editor.status().click()
    editor.choose("As the files say")
    editor.choose("As the files say")
    expect(editor.status()).to_contain_text("SGLang 0.5.23 · any")


def test_a_choice_that_the_file_overrules_is_told(editor: Editor) -> None:
    editor.put(SCRIPT, "run.sh")
    expect(editor.status()).to_contain_text("SGLang 0.5.23 · B200")
    editor.status().click()
    editor.choose("0.5.19")
    editor.choose("As the files say")
    expect(editor.notification("still checked for SGLang 0.5.23 (directive)")).to_be_visible()


def test_folders_of_one_window_have_their_own_settings(window: Window, tmp_path: Path) -> None:
    gpus = {"one": "b200", "two": "h200"}
    for name, gpu in gpus.items():
        folder = tmp_path / name
        (folder / ".vscode").mkdir(parents=True)
        (folder / ".vscode" / "settings.json").write_text(json.dumps({"spec-lsp.gpu": gpu}))
        (folder / f"{name}.sh").write_text(UNSAID, encoding="utf-8")
    workspace = tmp_path / "both.code-workspace"
    workspace.write_text(json.dumps({"folders": [{"path": name} for name in gpus]}))
    editor = window(workspace)
    editor.open("one/one.sh")
    expect(editor.status()).to_contain_text("B200")
    editor.open("two/two.sh")
    expect(editor.status()).to_contain_text("H200")


# --- the server --------------------------------------------------------------------------------------------------------


def from_path_again(editor: Editor, starts: Path) -> None:
    """Take the setting back, and wait for the server on PATH: another test counts starts."""
    before = starts.read_text()
    editor.set()
    editor.until(lambda: starts.read_text() != before, "a start")
    expect(editor.squiggle()).to_have_count(1)


def test_a_missing_server_is_told_once(editor: Editor, starts: Path) -> None:
    editor.put(SCRIPT, "run.sh")
    expect(editor.squiggle()).to_have_count(1)
    editor.set(**{"spec-lsp.path": "/nowhere/spec-lsp"})
    told = editor.notification('spec-lsp.path names "/nowhere/spec-lsp", which is not there')
    expect(told).to_be_visible()
    expect(editor.status()).to_contain_text("spec-lsp not found")
    expect(editor.squiggle()).to_have_count(0)
    editor.command("Notifications: Clear All Notifications")
    editor.put(SCRIPT, "other.sh")
    expect(editor.status()).to_contain_text("spec-lsp not found")
    expect(told).to_have_count(0)
    editor.command("spec-lsp: Fix All")  # whoever asks for what only the server can do is told again
    expect(told).to_be_visible()
    editor.set(**{"spec-lsp.path": sys.executable})
    expect(editor.squiggle()).to_have_count(1)
    from_path_again(editor, starts)


def test_a_program_that_is_no_server_is_told_once_with_why(editor: Editor, tmp_path: Path, starts: Path) -> None:
    """A Python without spec-lsp, and a program that says something else: one message, with a button that helps, no stack trace."""
    bare = tmp_path / "bare" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    other = tmp_path / "spec-lsp"
    other.write_text("#!/bin/sh\necho Traceback >&2\necho it lacks something >&2\nexit 3\n")
    other.chmod(0o755)
    messages = editor.page.locator(".notifications-toasts .notification-list-item")
    editor.put(SCRIPT, "run.sh")
    expect(editor.squiggle()).to_have_count(1)
    for program, told, button in (
        (bare, f"names the Python {bare}, which does not have spec-lsp.", "Install…"),
        (other, f"names {other}, which does not start as a spec-lsp server: it lacks something", "Choose Program…"),
    ):
        editor.set(**{"spec-lsp.path": str(program)})
        expect(editor.notification(told)).to_be_visible()
        expect(editor.notification(told).get_by_role("button", name=button)).to_be_visible()
        expect(messages).to_have_count(1)
        expect(messages).not_to_contain_text("Traceback")
        expect(editor.squiggle()).to_have_count(0)
        editor.page.wait_for_timeout(2000)  # a second message would come by now
        expect(messages).to_have_count(1)
        editor.screenshot(f"no server {program.name}")
        editor.set(**{"spec-lsp.path": sys.executable})
        expect(editor.squiggle()).to_have_count(1)
        editor.command("Notifications: Clear All Notifications")
    from_path_again(editor, starts)


def test_a_setting_that_cannot_be_used_is_told_once(editor: Editor) -> None:
    editor.set(**{"spec-lsp.gpu": "h2000", "spec-lsp.rules": {"unknwon-flag": "off"}})
    editor.put(SCRIPT, "run.sh")
    expect(editor.notification("'h2000' is not a GPU that spec-lsp knows; did you mean `h200`?")).to_have_count(1)
    expect(editor.notification("there is no rule 'unknwon-flag'")).to_have_count(1)
    editor.command("Notifications: Clear All Notifications")
    editor.open(".vscode/settings.json")
    squiggles(editor, '"unknwon-flag"', "warning")
    editor.screenshot("bad settings")


def test_restart_and_log(editor: Editor, starts: Path) -> None:
    editor.put(SCRIPT, "run.sh")
    expect(editor.squiggle()).to_have_count(1)
    before = starts.read_text()
    editor.command("spec-lsp: Restart Server")
    editor.until(lambda: starts.read_text() == f"{before}{editor.folder}\n", "a second start")
    expect(editor.squiggle()).to_have_count(1)
    editor.command("spec-lsp: Show Server Log")
    expect(editor.page.locator(".part.panel .output-view, .part.panel .monaco-editor").first).to_be_visible()


def test_the_server_starts_with_the_first_mention_of_sglang(window: Window, tmp_path: Path, starts: Path) -> None:
    (tmp_path / "run.sh").write_text("# nothing yet\n")
    before = starts.read_text()
    editor = window(tmp_path)
    editor.open("run.sh")
    editor.command("Developer: Show Running Extensions")
    running = editor.page.get_by_text("spec-lsp for SGLang").first
    expect(running).to_be_visible()
    assert starts.read_text() == before
    editor.press("Escape")
    expect(running).to_have_count(0)
    editor.go_to(2, 1)
    editor.type("sglang serve Qwen/Qwen3-8B")
    expect(editor.status()).to_contain_text("SGLang")
    assert starts.read_text() == f"{before}{tmp_path}\n"


def test_the_selected_python_environment_goes_before_path(window: Window, tmp_path: Path, starts: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT, encoding="utf-8")
    bin_ = tmp_path / ".venv" / "bin"
    bin_.mkdir(parents=True)
    (bin_ / "python").touch()
    (bin_ / "spec-lsp").write_text(f'#!/bin/sh\necho environment >>"{starts}"\nexec spec-lsp "$@"\n')
    (bin_ / "spec-lsp").chmod(0o755)
    editor = window(tmp_path)
    editor.open("run.sh")
    # Where the Python extension is slow, the one on PATH may be started first, and replaced.
    editor.until(lambda: starts.read_text().endswith(f"environment\n{tmp_path}\n"), "the environment's server")
    expect(editor.squiggle()).to_have_count(1)


# --- the package -------------------------------------------------------------------------------------------------------


def test_the_package_is_small_and_holds_what_it_needs(vscode: object) -> None:
    assert VSIX.stat().st_size < 400_000
    with zipfile.ZipFile(VSIX) as package:
        files = {name.removeprefix("extension/") for name in package.namelist() if name.startswith("extension/")}
    scripts = {"dist/extension.js", "dist/session.js"}
    assert files == {"package.json", "readme.md", "changelog.md", "LICENSE.txt", "images/icon.png"} | scripts
