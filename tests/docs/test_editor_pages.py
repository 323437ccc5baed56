"""The editors' pages hold configurations that can be read, of a server that starts, in languages that it reads."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.cli.arguments import parser
from spec_lsp.settings import read_settings
from spec_lsp.syntax.carriers import LANGUAGES
from spec_lsp.syntax.kinds import kind_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EDITORS = Path(__file__).parents[2] / "editors"
PAGES = sorted([*EDITORS.glob("*.md"), *EDITORS.glob("neovim/*.md")])
BLOCK = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
READERS = {"json": json.loads, "toml": tomllib.loads}


def blocks(*languages: str) -> list[Any]:
    return [
        pytest.param(language, body, id=f"{page.stem} {number}")
        for page in PAGES
        for number, (language, body) in enumerate(BLOCK.findall(page.read_text("utf-8")))
        if language in languages
    ]


def tables(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from tables(inner)


@pytest.mark.parametrize(("language", "body"), blocks("json", "toml"))
def test_blocks_are_read(language: str, body: str) -> None:
    READERS[language](body)


@pytest.mark.parametrize(("language", "body"), blocks("json", "toml"))
def test_settings_are_ours(language: str, body: str) -> None:
    """A table called spec-lsp that holds no server holds settings, and so do keys that begin with its name."""
    for table in tables(READERS[language](body)):
        given = table.get("spec-lsp")
        if isinstance(given, dict) and not {"command", "languages", "settings", "config"} & set(given):
            assert read_settings(given)[1] == []
        dotted = {key.removeprefix("spec-lsp."): v for key, v in table.items() if key.startswith("spec-lsp.")}
        assert read_settings(dotted)[1] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_start_the_server(page: Path) -> None:
    text = page.read_text("utf-8")
    commands = re.findall(r"\bserver(?:[\"'., \]({]|into\(\))+--[\w-]+", text)
    assert commands or page.parent.name == "neovim"
    for command in commands:
        words = re.findall(r"--[\w-]+", command)
        assert parser().parse_args(["server", *(w for w in words if w != "--log-file")])


def test_language_ids_of_the_pages_are_read() -> None:
    """Those that pages name behind an arrow or as an editor's id."""
    named = set()
    for page in ("jetbrains.md", "zed.md"):
        text = (EDITORS / page).read_text("utf-8")
        named |= set(re.findall(r"→ `([\w-]+)`", text)) | set(
            re.findall(r'^"[\w ]+" = "([\w-]+)"$', text, re.MULTILINE)
        )
    assert len(named) > 5
    assert [name for name in named if not kind_of("x", "", name)] == []


def test_neovim_s_filetypes_are_read_and_all_readers_have_one() -> None:
    text = (EDITORS / "neovim" / "lsp" / "spec_lsp.lua").read_text("utf-8")
    found = re.search(r"filetypes = \{(.*?)\}", text, re.DOTALL)
    assert found
    filetypes = re.findall(r'"([\w.-]+)"', found[1])
    unit = "[program:x]\n"  # what is read of an INI file its sections tell
    assert [name for name in filetypes if not kind_of("x", unit, name)] == []
    assert {kind_of("x", unit, name) for name in filetypes} == {*LANGUAGES.values(), "yaml"} - {"notebook"}
