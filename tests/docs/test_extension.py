"""The VS Code extension's files agree with each other and with the repository."""

from __future__ import annotations

import json
import re
from pathlib import Path

from spec_lsp import __version__
from spec_lsp.syntax.carriers import LANGUAGES
from spec_lsp.syntax.kinds import kind_of

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "editors" / "vscode"
MANIFEST = json.loads((EXTENSION / "package.json").read_text("utf-8"))
README = (EXTENSION / "README.md").read_text("utf-8")


def test_it_has_the_version_and_licence_of_the_server() -> None:
    assert MANIFEST["version"] == __version__
    assert json.loads((EXTENSION / "package-lock.json").read_text("utf-8"))["version"] == __version__
    assert f"## {__version__}\n" in (EXTENSION / "CHANGELOG.md").read_text("utf-8")
    assert (EXTENSION / "LICENSE").read_text("utf-8") == (ROOT / "LICENSE").read_text("utf-8")


def test_the_readme_lists_every_command() -> None:
    commands = MANIFEST["contributes"]["commands"]
    assert {f"{c['category']}: {c['title']}" for c in commands} == set(
        re.findall(r"^\| (spec-lsp: [^|]+?) \|", README, re.M)
    )


def test_every_picture_is_there() -> None:
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)
    assert pictures
    for picture in (*pictures, MANIFEST["icon"]):
        assert (EXTENSION / picture).read_bytes().startswith(b"\x89PNG")


def test_every_setting_that_the_readme_names_exists() -> None:
    named = set(re.findall(r"spec-lsp\.[a-z]\w*(?:\.\w+)?(?=[`\"])", README)) - {"spec-lsp.toml"}
    assert named
    assert named - {*MANIFEST["contributes"]["configuration"]["properties"]} == set()


def test_it_wakes_for_languages_that_the_server_reads() -> None:
    languages = [event.removeprefix("onLanguage:") for event in MANIFEST["activationEvents"]]
    unit = "[program:x]\n"  # what is read of an INI file its sections tell
    assert [name for name in languages if name != "plaintext" and not kind_of("file", unit, name)] == []
    read = {kind_of("file", unit, name) for name in languages if name != "plaintext"}
    assert read == {*LANGUAGES.values()} - {
        "notebook",
        "notebook-cell",
    }  # VS Code shows notebooks as cells, not as one document
