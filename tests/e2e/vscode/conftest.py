"""A real VS Code with the packaged extension, served to a real Chromium; one for all tests, a new window for each."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.shared import PATIENCE
from tests.e2e.vscode import tools
from tests.e2e.vscode.editor import TIDY_KEY, Editor

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LACKING = tools.lacking()

SETTINGS = {
    "chat.disableAIFeatures": True,
    "editor.minimap.enabled": False,
    "editor.parameterHints.enabled": False,
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": False,
    "extensions.ignoreRecommendations": True,
    "files.autoSave": "off",
    "git.enabled": False,
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "window.commandCenter": False,
    "workbench.enableExperiments": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
}
"""Of the person who uses it: nothing pops up, nothing is fetched."""

TIDY = {
    "key": TIDY_KEY.replace("Control", "Ctrl").lower(),
    "command": "runCommands",
    "args": {
        "commands": ["notifications.clearAll", "workbench.action.closePanel", "workbench.action.closeAllEditors"],
    },
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if LACKING and here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=LACKING))


@dataclass(frozen=True)
class Vscode:
    """A running code-server."""

    address: str
    data: Path

    def cli(self, *words: str) -> str:
        return _cli(self.data, *words)


def _options(data: Path) -> list[str]:
    folders = ["--user-data-dir", str(data / "user"), "--extensions-dir", str(data / "extensions")]
    return [str(tools.NODE), str(tools.CODE_SERVER), "--config", os.devnull, *folders]


def _cli(data: Path, *words: str) -> str:
    done = subprocess.run([*_options(data), *words], capture_output=True, text=True, timeout=4 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="package")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody's home, with `spec-lsp` in its own bin. VS Code takes PATH from what a login shell makes of it."""
    folder = tmp_path_factory.mktemp("home")
    command = folder / "bin" / "spec-lsp"
    command.parent.mkdir()
    command.write_text(
        f'#!/bin/sh\npwd >>"{folder}/starts"\nPYTHONPATH="{tools.ROOT}" exec "{sys.executable}" -m spec_lsp.cli "$@"\n'
    )
    command.chmod(0o755)
    (folder / ".profile").write_text('PATH="$HOME/bin:$PATH"\n')
    (folder / "starts").touch()
    return folder


@pytest.fixture
def starts(home: Path) -> Path:
    """A file with a line for each start of the server: the folder it was started in."""
    return home / "starts"


@pytest.fixture(scope="package")
def vscode(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Iterator[Vscode]:
    data = tmp_path_factory.mktemp("vscode")
    with _served(data, home, SETTINGS, "--disable-workspace-trust") as served:
        yield served


@pytest.fixture(scope="module")
def careful(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Iterator[Vscode]:
    """A VS Code that trusts no folder."""
    trust = {f"security.workspace.trust.{name}": value for name, value in NO_TRUST.items()}
    with _served(tmp_path_factory.mktemp("careful"), home, {**SETTINGS, **trust}) as served:
        yield served


NO_TRUST = {"enabled": True, "startupPrompt": "never", "banner": "never", "untrustedFiles": "open"}


@contextmanager
def _served(data: Path, home: Path, settings: Mapping[str, Any], *switches: str) -> Iterator[Vscode]:
    written = data / "user" / "User" / "settings.json"
    written.parent.mkdir(parents=True)
    written.write_text(json.dumps(settings))
    written.with_name("keybindings.json").write_text(json.dumps([TIDY]))
    for extension in (tools.package(), tools.python_extension(data)):
        _cli(data, "--install-extension", str(extension))
    port = _free_port()
    words = ["--auth", "none", "--bind-addr", f"127.0.0.1:{port}", "--disable-telemetry", "--disable-update-check"]
    environment = {**os.environ, "HOME": str(home), "SHELL": "/bin/sh"}
    with (data / "log").open("wb") as log:
        process = subprocess.Popen(
            [*_options(data), *words, *switches, "--disable-getting-started-override"],
            env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(f"{address}/healthz", process, data / "log")
            yield Vscode(address, data)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not _answers(address):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE):
            return True
    except OSError:
        return False


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    switches = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    switches += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=tools.CHROMIUM, args=switches, timeout=PATIENCE * 1000)
        yield found
        found.close()


@pytest.fixture(scope="package")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this run's screenshots go: `SPEC_LSP_E2E_ARTEFACTS`, else a folder that pytest forgets in time."""
    chosen = os.environ.get("SPEC_LSP_E2E_ARTEFACTS")
    found = Path(chosen) if chosen else tmp_path_factory.mktemp("screenshots")
    found.mkdir(parents=True, exist_ok=True)
    return found


@pytest.fixture(scope="package")
def shared_window(
    tmp_path_factory: pytest.TempPathFactory, vscode: Vscode, browser: Browser, artefacts: Path
) -> Iterator[Editor]:
    folder = tmp_path_factory.mktemp("project").resolve()
    editor = Editor(_page(browser), folder, artefacts)
    editor.load(vscode.address)
    yield editor
    editor.page.close()


@pytest.fixture
def editor(shared_window: Editor, vscode: Vscode, request: pytest.FixtureRequest) -> Iterator[Editor]:
    """A window with an empty folder. It is the same for all tests that ask for it, as loading one takes long."""
    yield shared_window
    if _failed(request, shared_window):
        shared_window.load(vscode.address)
    shared_window.tidy()


@pytest.fixture
def window(
    tmp_path: Path, vscode: Vscode, browser: Browser, artefacts: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Editor]]:
    """Open a folder, or a workspace of several, in a window of its own."""
    opened: list[Editor] = []

    def open_(what: Path, of: Vscode | None = None) -> Editor:
        made = Editor(_page(browser), what if what.is_dir() else what.parent, artefacts)
        opened.append(made)
        made.load((of or vscode).address, what)
        return made

    yield open_
    for made in opened:
        _failed(request, made)
        made.page.close()


def _page(browser: Browser) -> Page:
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE * 1000)
    page = browser.new_page(viewport={"width": 1200, "height": 760})
    page.set_default_timeout(PATIENCE * 1000)
    return page


def _failed(request: pytest.FixtureRequest, editor: Editor) -> bool:
    """Whether the test failed; then what was to be seen is kept."""
    failed = bool(request.node.stash.get(FAILED, False))
    if failed:
        editor.screenshot(f"failed-{request.node.name}")
    return failed


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.when == "call" and report.failed:
        item.stash[FAILED] = True
    return report
