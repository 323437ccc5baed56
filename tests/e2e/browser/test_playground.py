"""The playground in a real browser, used as a person would: paste, see, repair, share, compare."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.shared import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MISSPELT = "#!/bin/bash\nsglang serve Qwen/Qwen3-8B --mem-fraction-statik 0.85 --port 30000\n"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A playground that runs in an empty folder."""
    command = [sys.executable, "-m", "spec_lsp.cli", "playground", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path_factory.mktemp("here"), text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"http://\S+", said)
        assert found, said
        yield found[0]
        process.terminate()


def opened(page: Page, address: str, text: str = "") -> Page:
    """The page, connected; with a text, that text in it as if pasted."""
    page.goto(address)
    page.wait_for_selector("#findings > li")
    if text:
        page.select_option("#sglang", "")
        page.select_option("#gpu", "")
        paste(page, text)
    return page


def paste(page: Page, text: str) -> None:
    page.click(".cm-content")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def written(page: Page) -> str:
    return "\n".join(page.locator(".cm-line").all_inner_texts()).replace("\u200b", "")


def test_paste_finding_fix_resolved(page: Page, address: str, artefacts: Path) -> None:
    from playwright.sync_api import expect

    opened(page, address, MISSPELT)
    finding = page.locator("#findings > li")
    expect(finding).to_have_count(1)
    expect(finding).to_contain_text("--mem-fraction-statik")
    fix = finding.locator(".fixes .preferred")
    expect(fix).to_contain_text("--mem-fraction-static")
    page.screenshot(path=str(artefacts / "playground-finding.png"))
    fix.click()
    expect(page.locator("#summary")).to_have_text("Nothing to report.")
    assert "--mem-fraction-static 0.85" in written(page)
    expect(page.locator("#resolved")).to_contain_text("mem-fraction-static")
    page.screenshot(path=str(artefacts / "playground-fixed.png"))


def test_all_fixes_at_once(page: Page, address: str) -> None:
    from playwright.sync_api import expect

    opened(page, address)
    page.click("#fix-all")
    expect(page.locator("#summary")).not_to_contain_text("error")
    assert "TOPK=1" in written(page)


def test_the_best_fix_by_keyboard(page: Page, address: str) -> None:
    from playwright.sync_api import expect

    opened(page, address, MISSPELT)
    expect(page.locator("#findings")).to_contain_text("statik")
    page.click(".cm-line:nth-child(2)")
    page.keyboard.press("Control+.")
    expect(page.locator("#summary")).to_have_text("Nothing to report.")


def test_a_link_holds_the_text_and_the_world(page: Page, browser: Browser, address: str) -> None:
    from playwright.sync_api import expect

    opened(page, address, MISSPELT)
    page.select_option("#sglang", "0.5.19")
    page.select_option("#gpu", "h200")
    page.click("#share")
    expect(page).to_have_url(re.compile("#.{20}"))
    asked: list[str] = []
    other = browser.new_page()
    other.on("request", lambda request: asked.append(request.url))
    other.goto(page.url)
    expect(other.locator("#findings")).to_contain_text("SGLang 0.5.19")
    assert written(other) == written(page)
    assert other.input_value("#gpu") == "h200"
    assert all("#" not in url and "statik" not in url for url in asked)
    other.close()


@pytest.mark.parametrize("fragment", ["", "bogus", "AAAA", "%00", "eNoDAAAAAAE"])
def test_a_damaged_link_opens_the_page(page: Page, address: str, fragment: str) -> None:
    from playwright.sync_api import expect

    page.goto(f"{address}#{fragment}")
    expect(page.locator("#findings > li")).to_have_count(1)


def test_two_releases_side_by_side(page: Page, address: str, artefacts: Path) -> None:
    from playwright.sync_api import expect

    opened(page, address, "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --cuda-graph-bs 8\n")
    page.select_option("#sglang", "0.5.19")
    page.select_option("#gpu", "h200")
    page.check("#comparing")
    page.select_option("#sglang-beside", "0.5.23")
    page.select_option("#gpu-beside", "b200")
    table = page.locator("#compared table")
    expect(table).to_contain_text("SGLang 0.5.19 on H200")
    expect(table).to_contain_text("SGLang 0.5.23 on B200")
    expect(table.locator("td.accepted")).to_have_count(1)
    expect(table.locator("td.bad-arguments")).to_have_count(1)
    page.locator("#compared").scroll_into_view_if_needed()
    page.screenshot(path=str(artefacts / "playground-compare.png"))


@pytest.mark.parametrize("number", range(6))
def test_examples_show_what_they_say(page: Page, address: str, number: int) -> None:
    from playwright.sync_api import expect

    opened(page, address)
    page.select_option("#example", str(number))
    expect(page.locator("#findings > li").first).to_be_visible()
    expect(page.locator("#findings .fixes button").first).to_be_visible()


def test_completion_and_hover(page: Page, address: str) -> None:
    from playwright.sync_api import expect

    opened(page, address, "sglang serve Qwen/Qwen3-8B --attention-backend fa3 ")
    page.keyboard.type("--schedule-pol", delay=40)
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("--schedule-policy")
    page.keyboard.press("Escape")
    box = page.locator(".cm-line").first.bounding_box()
    assert box
    page.mouse.move(box["x"] + 300, box["y"] + box["height"] / 2)
    expect(page.locator(".cm-lsp-hover-tooltip")).to_contain_text("attention")


LOG = """+ python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --page-siz 16
usage: launch_server.py [-h] …
launch_server.py: error: unrecognized arguments: --page-siz 16
"""


def test_a_pasted_log_is_explained_and_repaired(page: Page, address: str, artefacts: Path) -> None:
    from playwright.sync_api import expect

    opened(page, address, LOG.replace("--page-siz ", "--page-sise "))
    page.select_option("#kind", "log")
    expect(page.locator("#findings")).to_contain_text("unknown-flag")
    page.screenshot(path=str(artefacts / "playground-log.png"))
    page.get_by_role("button", name="Open the repaired launch").click()
    expect(page.locator("#summary")).to_have_text("Nothing to report.")
    assert "--page-size 16" in written(page)
    assert page.input_value("#kind") == "shell"


def test_a_rule_explains_itself(page: Page, address: str) -> None:
    from playwright.sync_api import expect

    opened(page, address)
    page.click("#findings .rule")
    expect(page.locator("#rule-text")).to_contain_text("trtllm_mha verifies chains of draft tokens")
    page.keyboard.press("Escape")
    expect(page.locator("#rule")).to_be_hidden()


def test_what_is_pasted_runs_nothing(page: Page, address: str) -> None:
    from playwright.sync_api import expect

    evil = "<img src=x onerror=document.title='ran'>"
    opened(page, address, f"sglang serve 'm{evil}' --attention-backend '{evil}' --page-size 16\n")
    expect(page.locator("#findings > li").first).to_be_visible()
    expect(page.locator("#resolved img, #findings img")).to_have_count(0)
    assert page.title() != "ran"


def test_a_screen_reader_finds_its_way(page: Page, address: str) -> None:
    from playwright.sync_api import expect

    opened(page, address)
    expect(page.get_by_role("heading", name="Will SGLang accept this launch?")).to_be_visible()
    for name in ("Example", "Read as", "SGLang", "GPU"):
        expect(page.get_by_role("combobox", name=name, exact=True)).to_be_visible()
    expect(page.get_by_role("textbox", name="The launch")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Set --speculative-eagle-topk to 1"))).to_be_visible()
    expect(page.get_by_role("button", name="line 9")).to_be_visible()
    nameless = page.evaluate(
        "[...document.querySelectorAll('header button, header select, header input, #answers button')]"
        ".filter(e => !e.textContent.trim() && !e.labels?.length && !e.getAttribute('aria-label')).length"
    )
    assert nameless == 0


def test_escape_and_tab_leave_the_editor(page: Page, address: str) -> None:
    opened(page, address)
    page.click(".cm-content")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("!document.activeElement.closest('.cm-content')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone(browser: Browser, address: str, artefacts: Path, scheme: str) -> None:
    phone = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    opened(phone, address)
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    phone.screenshot(path=str(artefacts / f"playground-phone-{scheme}.png"), full_page=True)
    phone.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(browser: Browser, address: str, artefacts: Path, scheme: str) -> None:
    """Contrast of the text as WCAG AA wants it: 4.5 to 1."""
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    opened(page, address)
    page.screenshot(path=str(artefacts / f"playground-{scheme}.png"))
    low = page.evaluate(_CONTRAST)
    page.close()
    assert low == []


_CONTRAST = """() => {
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0.99) return c; }
    return matchMedia('(prefers-color-scheme: dark)').matches ? [20, 24, 31] : [255, 255, 255]; };
  const low = [];
  for (const e of document.querySelectorAll('header *, footer *, #answers *')) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility()) continue;
    const [a, b] = [luminance(parse(getComputedStyle(e).color)), luminance(ground(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.push(e.tagName + ': ' + e.textContent.trim().slice(0, 30));
  }
  return low;
}"""


def test_it_answers_only_its_own_pages(address: str) -> None:
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    socket = address.replace("http", "ws") + "lsp"
    for origin in ("http://evil.example", "null", "https://127.0.0.1:1"):
        with pytest.raises(InvalidStatus), connect(socket, origin=origin, open_timeout=PATIENCE):  # type: ignore[arg-type]
            pass
    with connect(socket, origin=address.rstrip("/"), open_timeout=PATIENCE):  # type: ignore[arg-type]
        pass
