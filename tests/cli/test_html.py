"""The HTML report without a browser: whole, self-contained, and nothing in it is anybody else's markup."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from spec_lsp.cli.formats.html import _prose, _text
from tests.cli.conftest import Ran

Run = Callable[..., Ran]


class Tags(HTMLParser):
    """The tags of a page, and whether each is closed."""

    VOID = frozenset(("meta", "input", "br", "link"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_it_is_one_page_that_asks_for_nothing(run: Run, folder: Path) -> None:
    ran = run("check", "--format", "html")
    assert ran.code == 1
    tags = Tags(ran.out)
    assert tags.open == []
    assert all(address.startswith("#") for address in tags.addresses)
    assert "tree-drafting-on-trtllm-mha" in ran.out
    assert "refused" in ran.out
    assert "attention-backend" in ran.out


def test_an_upgrade_shows_what_it_changes(run: Run, folder: Path) -> None:
    (folder / "old.sh").write_text("# spec-lsp: sglang=0.5.19 gpu=h200\nsglang serve ./llama --cuda-graph-bs 8\n")
    assert "cuda-graph-bs" in run("check", "old.sh", "--upgrade", "0.5.23", "--format", "html").out


def test_a_file_that_cannot_be_read_is_in_it(run: Run, folder: Path) -> None:
    with (folder / "long.sh").open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    ran = run("check", "long.sh", "--format", "html")
    assert ran.code == 2
    assert "Not checked: is larger than" in ran.out


def test_names_and_values_are_no_markup(run: Run, folder: Path) -> None:
    (folder / "<img src=x>.sh").write_text("sglang serve '<script>alert(1)</script>' --bogus '\"><b>'\n")
    tags = Tags(run("check", "--format", "html").out)
    assert "img" not in tags.seen
    assert "b" not in tags.seen
    assert tags.seen.count("script") == 1


@given(st.text(st.characters(codec=None)))
def test_any_text_stays_text(text: str) -> None:
    for shown in (_text(text), _prose(text)):
        shown.encode("utf-8")
        assert set(Tags(shown).seen) <= {"code"}
        assert all(c == "\n" or c >= " " for c in shown)
