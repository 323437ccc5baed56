"""The pictures in the extension's README, taken of the extension itself. With SPEC_LSP_UPDATE=1 the tracked ones are renewed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.vscode.editor import Editor
from tests.e2e.vscode.tools import EXTENSION, ROOT

expect = pytest.importorskip("playwright.sync_api", reason="no Playwright: run tests/e2e/vscode/setup").expect

SETTINGS = {
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.activityBar.location": "hidden",
    "breadcrumbs.enabled": False,
    "editor.fontSize": 13,
    "editor.lineNumbersMinChars": 3,
    "editor.scrollbar.vertical": "hidden",
    "editor.overviewRulerBorder": False,
    "editor.occurrencesHighlight": "off",
    "window.title": "launch.sh",
}


def test_pictures(window: Callable[[Path], Editor], tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / ".vscode").mkdir(parents=True)
    (folder / ".vscode" / "settings.json").write_text(json.dumps(SETTINGS))
    shutil.copy(ROOT / "editors" / "demo.sh", folder / "launch.sh")
    editor = window(folder)
    editor.resize(1000, 560)
    editor.open("launch.sh")
    editor.command("View: Toggle Primary Side Bar Visibility")
    expect(editor.squiggle()).to_have_count(1)
    expect(editor.status()).to_contain_text("SGLang 0.5.23 · B200")

    flag = '--speculative-eagle-topk "$TOPK"'
    editor.hover(flag)
    expect(editor.hovers()).to_contain_text("is refused with")
    expect(editor.hovers()).to_contain_text("Branches the draft keeps in each step")
    take(editor, "hover")

    editor.page.mouse.move(5, 5)
    editor.press("Escape")
    editor.go_to(11, 5)
    editor.press("Control+.")
    expect(editor.actions().first).to_contain_text("Set `--speculative-eagle-topk` to `1`")
    take(editor, "quick-fix")
    editor.press("Enter")
    expect(editor.squiggle()).to_have_count(0)

    editor.go_to(3, 1)
    editor.press("Control+Shift+k")  # the line that names release and GPU
    expect(editor.status()).to_contain_text("SGLang 0.5.23 · any")
    expect(editor.page.locator(".codelens-decoration a").first).to_contain_text("any GPU")
    editor.status().click()
    expect(editor.row("As the files say")).to_be_visible()
    take(editor, "release")
    editor.page.mouse.move(5, 5)
    editor.press("Escape", "Control+z")
    expect(editor.status()).to_contain_text("SGLang 0.5.23 · B200")

    editor.command("spec-lsp: Show Resolved Configuration")
    expect(editor.panel().locator("h1")).to_have_text("What SGLang will run")
    take(editor, "resolved")


def take(editor: Editor, name: str) -> None:
    editor.screenshot(name)
    if os.environ.get("SPEC_LSP_UPDATE") == "1":
        shutil.copy(editor.artefacts / f"{name}.png", EXTENSION / "images" / f"{name}.png")
