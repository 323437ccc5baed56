"""The report of a tree, opened in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spec_lsp.cli.main import main

if TYPE_CHECKING:
    from playwright.sync_api import Page

LAUNCH = "#!/bin/bash\n# spec-lsp: sglang=0.5.23 gpu={gpu}\nsglang serve Qwen/Qwen3-8B --max-running-requests {number} {more}\n"


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The report of 300 launches on three GPUs, every tenth with a flaw."""
    monkeypatch.chdir(tmp_path)
    for number in range(300):
        more = "--no-such-flag" if number % 10 == 0 else ""
        text = LAUNCH.format(gpu=("h100", "h200", "b200")[number % 3], number=number + 1, more=more)
        (tmp_path / f"job{number:03}.sh").write_text(text)
    main(["check", ".", "--format", "html", "--output", "report.html", "--exit-zero"])
    return tmp_path / "report.html"


def test_a_report_of_300_launches_is_searched(page: Page, report: Path, artefacts: Path) -> None:
    from playwright.sync_api import expect

    page.goto(report.as_uri())
    expect(page.locator(".launch")).to_have_count(300)
    page.screenshot(path=str(artefacts / "report.png"))
    page.fill("#search", "b200 job1")
    expect(page.locator("#shown")).to_contain_text("launches shown")
    visible = page.locator(".file:visible")
    assert 0 < visible.count() < 100
    page.fill("#search", "")
    page.check("#flawed")
    expect(page.locator(".file:visible")).to_have_count(30)
    page.uncheck("#flawed")
    page.locator("summary").first.click()
    expect(page.locator(".launch table").first).to_be_visible()
    page.screenshot(path=str(artefacts / "report-open.png"))
    page.click("#open-all")
    expect(page.locator("details[open]")).to_have_count(300)


def test_it_is_printed_with_everything(page: Page, report: Path, artefacts: Path) -> None:
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert page.locator(".tools").is_hidden()
