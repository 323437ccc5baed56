"""A window of VS Code as a person uses it: keys, clicks, and what is to be seen. Every step waits for what it brings about."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.e2e.shared import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import FrameLocator, Locator, Page

TIDY_KEY = "Control+Alt+F9"
"""Bound to closing all that is open."""

SQUIGGLES = {"error": "squiggly-error", "warning": "squiggly-warning", "information": "squiggly-info"}


class Box(NamedTuple):
    """Pixels of the page."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def centre(self) -> tuple[float, float]:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2


class Editor:
    def __init__(self, page: Page, folder: Path, artefacts: Path) -> None:
        self.page = page
        self.folder = folder
        self.artefacts = artefacts
        self.settings_written = 0

    def load(self, address: str, what: Path | None = None) -> None:
        """Open a folder (this one where nothing is said) or a workspace."""
        what = what or self.folder
        kind = "folder" if what.is_dir() else "workspace"
        self.page.goto(f"{address}/?{kind}={what}", wait_until="domcontentloaded")
        self.page.locator(".monaco-workbench .explorer-folders-view").wait_for()
        self.page.locator(".monaco-workbench .statusbar").wait_for()

    def resize(self, width: int, height: int) -> None:
        """Make the window another size, and wait until it has laid itself out for it."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.evaluate("dispatchEvent(new Event('resize'))")  # a busy window may have missed its own
        fits = "document.querySelector('.monaco-workbench .statusbar').getBoundingClientRect().bottom <= innerHeight"
        self.page.wait_for_function(fits)

    def tidy(self) -> None:
        """Close what is open, saved or not, and forget what was said and set."""
        self.press("Escape", "Escape", TIDY_KEY)
        unsaved = self.page.locator(".monaco-dialog-box:visible")
        unsaved.or_(self.page.locator(".editor-group-container.empty")).first.wait_for()
        if unsaved.is_visible():
            unsaved.get_by_role("button", name="Don't Save", exact=True).click()
            self.page.locator(".editor-group-container.empty").first.wait_for()
        for path in sorted(self.folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        self.page.wait_for_function("document.title.endsWith('code-server')")

    def put(self, text: str, name: str) -> Path:
        """Write a file into the folder, beside VS Code's back, and open it."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        self.open(name)
        return path

    def set(self, **settings: Any) -> None:
        """Write the settings of the folder, beside VS Code's back, and wait until it goes by them."""
        self.settings_written += 1
        title = f"settings {self.settings_written}"
        path = self.folder / ".vscode" / "settings.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**settings, "window.title": title}))
        self.page.wait_for_function("title => document.title === title", arg=title)

    # --- keys

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def command(self, title: str) -> None:
        """Run a command from the palette."""
        self.press("F1")
        self.choose(title, f">{title}")

    def choose(self, text: str, typed: str = "") -> None:
        """Type something into the list that is open, and take what is found first; it holds the text."""
        box = self.page.locator(".quick-input-widget:visible input")
        box.wait_for()
        box.fill(typed or text)
        self.page.locator(".quick-input-list .monaco-list-row.focused:visible", has_text=text).wait_for()
        self.press("Enter")

    def row(self, text: str) -> Locator:
        """A row of the list that is open in the middle of the window."""
        return self.page.locator(".quick-input-list .monaco-list-row:visible", has_text=text)

    def open(self, name: str) -> None:
        """Open a file of the folder, with the cursor at its start."""
        last = name.rpartition("/")[2]
        self.press("Control+p")
        self.choose(last, str(self.folder / name))
        self.page.locator(f'.tab.active[data-resource-name="{last}"]').wait_for()
        self.page.locator(".editor-instance .view-line").first.wait_for()
        self._in_the_text()

    def go_to(self, line: int, column: int) -> None:
        """Put the cursor somewhere; both count from 1."""
        self.press("Control+g")
        box = self.page.locator(".quick-input-widget:visible input")
        box.wait_for()
        box.fill(f":{line}:{column}")
        self.press("Enter")
        self._in_the_text()
        self.page.locator(".statusbar-item", has_text=f"Ln {line}, Col {column}").wait_for()

    def _in_the_text(self) -> None:
        """Wait until keys go to the text, no longer to the box in which it was asked for."""
        self.page.locator(".quick-input-widget:visible").wait_for(state="detached")
        self.page.locator(".editor-instance .monaco-editor.focused").first.wait_for()

    def hover(self, text: str) -> None:
        """Point at some characters of a launch, once its lens is there: it moves the lines below."""
        self.await_lens()
        self.page.mouse.move(*self.text_box(text).centre)

    def await_lens(self) -> None:
        self.page.locator(".codelens-decoration a").first.wait_for()

    def save(self) -> None:
        self.press("Control+s")
        self.page.locator(".tab.active:not(.dirty)").wait_for()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something that is not to be seen in the window."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"waited {PATIENCE:.0f} s for {what}"
            self.page.wait_for_timeout(50)

    # --- what is to be seen

    def squiggle(self, severity: str = "error") -> Locator:
        return self.page.locator(f".editor-instance .{SQUIGGLES[severity]}")

    def text_box(self, text: str) -> Box:
        """Where some characters of the open file stand."""
        found = self.page.evaluate(_BOX_OF_TEXT, text)
        assert found, f"{text!r} is not to be seen"
        return Box(**found)

    def line(self, text: str) -> Locator:
        """A line of the open file that holds these words."""
        spaced = re.compile(re.escape(text).replace(r"\ ", r"[ \u00a0]"))
        return self.page.locator(".editor-instance .view-line", has_text=spaced)

    def hovers(self) -> Locator:
        return self.page.locator(".monaco-hover:visible").first

    def actions(self) -> Locator:
        """The entries of the quick-fix menu."""
        return self.page.locator(".action-widget .monaco-list-row.action")

    def problem(self, text: str) -> Locator:
        return self.page.locator(".markers-panel .monaco-list-row", has_text=text)

    def status(self) -> Locator:
        """Our item in the status bar."""
        return self.page.locator("#spec-lsp\\.spec-lsp\\.spec-lsp\\.assumed")

    def panel(self) -> FrameLocator:
        """The document of the panel beside the editor."""
        return self.page.frame_locator("iframe.webview.ready").frame_locator("iframe#active-frame")

    def notification(self, text: str) -> Locator:
        return self.page.locator(".notifications-toasts .notification-list-item", has_text=text)

    def screenshot(self, name: str) -> None:
        self.page.screenshot(path=self.artefacts / f"{name}.png", animations="disabled")


_BOX_OF_TEXT = """
wanted => {
  for (const line of document.querySelectorAll(".editor-instance .view-line")) {
    const at = line.textContent.replaceAll("\\u00a0", " ").indexOf(wanted);
    if (at < 0) continue;
    const range = document.createRange();
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    let passed = 0;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const end = passed + node.length;
      if (passed <= at && at < end) range.setStart(node, at - passed);
      if (passed < at + wanted.length && at + wanted.length <= end) {
        range.setEnd(node, at + wanted.length - passed);
        const { left, top, right, bottom } = range.getBoundingClientRect();
        return { left, top, right, bottom };
      }
      passed = end;
    }
  }
  return null;
}
"""
"""Of the first line that holds the text."""
