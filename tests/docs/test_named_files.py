"""Files that pages for contributors, and modules that comments and docstrings, name by their paths exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(
    r"(?<![\w/.])(?:spec_lsp|tests|docs|editors)/(?:[\w-]+/)*[\w-]+\.(?:json\.gz|py|md|json|lua|sh|yaml)\b"
)
TEXTS = ["CONTRIBUTING.md", "README.md", "SECURITY.md"]
OURS = [
    path
    for top in ("spec_lsp", "tests")
    for path in sorted((ROOT / top).rglob("*.py"))
    if ROOT / "tests" / "corpus" not in path.parents
]
PLACEHOLDER = re.compile(r"/[A-Z]+/")


def named_and_missing(text: str) -> list[str]:
    return [path for path in NAMED.findall(text) if not (PLACEHOLDER.search(path) or (ROOT / path).exists())]


@pytest.mark.parametrize("text", TEXTS)
def test_pages_name_files_that_exist(text: str) -> None:
    assert not named_and_missing((ROOT / text).read_text("utf-8"))


def test_modules_name_modules_that_exist() -> None:
    named = {path: named_and_missing(path.read_text("utf-8")) for path in OURS if path != Path(__file__)}
    missing = {
        path.relative_to(ROOT).as_posix(): found
        for path, files in named.items()
        if (found := [f for f in files if f.endswith(".py")])
    }
    assert not missing


def test_a_missing_file_is_seen() -> None:
    assert named_and_missing("see tests/docs/test_gone.py and (`tests/docs/test_named_files.py`)") == [
        "tests/docs/test_gone.py"
    ]
