"""The generated pages say what the code says."""

from __future__ import annotations

import json
import re
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import pytest

from spec_lsp.analysis.rules import all_rules
from spec_lsp.cli.docs import main, pages
from spec_lsp.cli.editors import WRITERS
from spec_lsp.cli.manifest import OWN, properties
from spec_lsp.settings import Settings, read_settings

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "editors" / "vscode" / "package.json"


@pytest.mark.parametrize("name", ["rules.md", "settings.md", "spec-lsp.schema.json"])
def test_page_is_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == pages()[name], "run `python -m spec_lsp.cli.docs`"


def test_writing_twice_writes_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "docs").mkdir()
    outdated = {
        "vscode/package.json": '{"contributes": {"configuration": {"properties": {"spec-lsp.gone": {}}}}}',
        "neovim/lsp/spec_lsp.lua": 'return {\n  filetypes = {\n    "gone",\n  },\n}\n',
        "vim.md": "'allowlist': ['sh', 'gone'],",
    }
    for name, text in outdated.items():
        (tmp_path / "editors" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "editors" / name).write_text(text, "utf-8")
    main(tmp_path)
    assert capsys.readouterr().out.count("wrote") == 3 + len(outdated)
    assert [name for name in outdated if "gone" in (tmp_path / "editors" / name).read_text("utf-8")] == []
    main(tmp_path)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", WRITERS)
def test_what_editors_are_configured_with_is_up_to_date(name: str) -> None:
    text = (ROOT / "editors" / name).read_text("utf-8")
    assert text == WRITERS[name](text), "run `python -m spec_lsp.cli.docs`"


def test_every_setting_is_in_the_vscode_manifest_with_its_default() -> None:
    told = {
        name.removeprefix("spec-lsp."): about["default"]
        for name, about in properties().items()
        if name.removeprefix("spec-lsp.") not in OWN
    }
    assert len(told) == len(fields(Settings))
    assert read_settings(told) == (Settings(), [])


def test_a_folder_that_is_not_trusted_names_no_program() -> None:
    restricted = json.loads(MANIFEST.read_text("utf-8"))["capabilities"]["untrustedWorkspaces"][
        "restrictedConfigurations"
    ]
    of_the_machine = {name for name, about in properties().items() if about["scope"] == "machine-overridable"}
    assert set(restricted) == of_the_machine


def test_every_rule_has_its_section_and_every_link_its_target() -> None:
    page = pages()["rules.md"]
    headings = set(re.findall(r"^### (\S+)$", page, re.MULTILINE))
    assert headings == {rule.name for rule in all_rules()}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) == headings


@pytest.mark.parametrize("setting", fields(Settings), ids=lambda setting: setting.name)
def test_example_of_a_setting_is_right(setting: Field[Any]) -> None:
    tomllib = pytest.importorskip("tomllib")

    settings, problems = read_settings(tomllib.loads(setting.metadata["example"]))
    assert problems == []
    assert getattr(settings, setting.name) != getattr(Settings(), setting.name)


def test_the_schema_is_json() -> None:
    assert json.loads(pages()["spec-lsp.schema.json"])["type"] == "object"
