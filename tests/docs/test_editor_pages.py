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
from spec_lsp.syntax.carriers import LANGUAGES, SETTINGS_LANGUAGE
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


UNIT = "[program:x]\n"
"""What is read of an INI file its sections tell."""

NO_NAME = {"systemd", "procfile", "supervisor"}
"""Kinds of files that many editors have no name for."""

LISTS = [
    ("neovim/lsp/spec_lsp.lua", r"(?s)filetypes = \{(.*?)\}", r'"([\w.-]+)"', set()),
    ("vim.md", r"(?s)for s:filetype in \[(.*?)\]", r"'([\w.-]+)'", set()),
    ("vim.md", r"(?s)'allowlist': \[(.*?)\]", r"'([\w.-]+)'", set()),
    ("vim.md", r"(?s)filetype: \[(.*?)\]", r"'([\w.-]+)'", set()),
    (
        "emacs.md",
        r"(?s)eglot-server-programs\s+'\(\((.*?)\)",
        r"\b(?:js-|conf-(?=t))?(\w+)(?:-\w+)*?-mode",
        {"procfile", "markdown", "python"},
    ),
    ("emacs.md", r"(?s)lsp-activate-on (.*?)\)", r'"([\w-]+)"', {"procfile"}),
    ("helix.md", r"(?s)(.*)", r'(?m)^name = "([\w-]+)"', {*NO_NAME, "markdown", "python"}),
    ("zed.md", r"(?s)language_ids\](.*?)```", r'" = "([\w-]+)"', NO_NAME),
    ("kate.md", r"(?s)(.*)", r'(?m)^    "(\w+)": \{', {*NO_NAME, "justfile", "terraform", "markdown", "python"}),
    ("sublime.md", r'"selector": "(.*)"', r"\b(?:source|text\.html)\.(\w+)", {*NO_NAME, "justfile"}),
    ("jetbrains.md", r"(?s)(.*)", r"→ `([\w-]+)`", set()),
]
"""The lists of languages in what editors are configured with: the file, which part of it, the names in that, and the kinds it leaves out."""


@pytest.mark.parametrize(
    ("file", "part", "names", "left_out"), LISTS, ids=[f"{file} {part}" for file, part, *_ in LISTS]
)
def test_editors_name_languages_that_are_read_and_settings(
    file: str, part: str, names: str, left_out: set[str]
) -> None:
    """All kinds of files have a name in an editor, but for those that it has none for or that the page says how to add."""
    found = re.search(part, (EDITORS / file).read_text("utf-8"))
    assert found, f"no list in {file}"
    languages = set(re.findall(names, found[1]))
    assert SETTINGS_LANGUAGE in languages, "what is wrong with spec-lsp.toml is told in it"
    kinds = {name: kind_of("x", UNIT, name) for name in languages - {SETTINGS_LANGUAGE}}
    assert [name for name, kind in kinds.items() if not kind] == []
    assert {*LANGUAGES.values()} - {"notebook", "notebook-cell"} - {*kinds.values()} == left_out


def test_every_page_s_list_is_held() -> None:
    assert {page.name for page in EDITORS.glob("*.md")} - {"README.md"} == {
        file for file, *_ in LISTS if "/" not in file
    }
