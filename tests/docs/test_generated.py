"""The generated pages say what the code says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spec_lsp.analysis.rules import all_rules
from spec_lsp.cli.docs import EXAMPLES, main, pages
from spec_lsp.settings import Settings, read_settings

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["rules.md", "settings.md", "spec-lsp.schema.json"])
def test_page_is_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == pages()[name], "run `python -m spec_lsp.cli.docs`"


def test_writing_twice_writes_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(tmp_path / "docs")
    assert capsys.readouterr().out.count("wrote") == 3
    main(tmp_path / "docs")
    assert capsys.readouterr().out == ""


def test_every_rule_has_its_section_and_every_link_its_target() -> None:
    page = pages()["rules.md"]
    headings = set(re.findall(r"^### (\S+)$", page, re.MULTILINE))
    assert headings == {rule.name for rule in all_rules()}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) == headings


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_of_a_setting_is_right(name: str) -> None:
    tomllib = pytest.importorskip("tomllib")

    settings, problems = read_settings(tomllib.loads(EXAMPLES[name]))
    assert problems == []
    assert getattr(settings, name) != getattr(Settings(), name)


def test_the_schema_is_json() -> None:
    assert json.loads(pages()["spec-lsp.schema.json"])["type"] == "object"
