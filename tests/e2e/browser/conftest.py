"""A real Chromium, for pages that are opened in one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.shared import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LACKING = (
    "no Chromium: run tests/e2e/vscode/setup"
    if CHROMIUM is None
    else "no Playwright for this Python: run tests/e2e/vscode/setup"
    if find_spec("playwright") is None
    else ""
)
SWITCHES = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if LACKING and here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=LACKING))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES, timeout=PATIENCE * 1000)
        yield found
        found.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of a desktop's width, light; what its console says of errors fails the test."""
    opened = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    opened.set_default_timeout(PATIENCE * 1000)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    yield opened
    opened.close()
    assert errors == []


@pytest.fixture(scope="package")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: `SPEC_LSP_E2E_ARTEFACTS`, else a folder that pytest forgets in time."""
    chosen = os.environ.get("SPEC_LSP_E2E_ARTEFACTS")
    found = Path(chosen) if chosen else tmp_path_factory.mktemp("screenshots")
    found.mkdir(parents=True, exist_ok=True)
    return found
