"""Jupyter notebooks: cells, magics, and places behind JSON's escapes."""

from __future__ import annotations

import json

import pytest

from spec_lsp.syntax import parse
from tests.syntax.support import argv, check_maps


def notebook(*cells: str, kind: str = "code", lines: bool = True) -> str:
    sources = [cell.splitlines(keepends=True) if lines else cell for cell in cells]
    made = [{"source": source, "metadata": {"source": ["sglang serve no"]}, "cell_type": kind} for source in sources]
    return json.dumps({"metadata": {"cells": [1]}, "cells": made}, indent=1)


def words(text: str) -> list[list[str]]:
    document = parse("a.ipynb", text)
    check_maps(document)
    return [argv(v) for launch in document.launches for v in launch.variants]


CELLS: list[tuple[str, list[list[str]]]] = [
    ("!sglang serve m --tp 2", [["m", "--tp", "2"]]),
    ("!sglang serve m \\\n  --tp 2\nx = 1", [["m", "--tp", "2"]]),
    ("!sglang serve {model} --x '{{1}}'", [["?+", "--x", "{{1}}"]]),
    ("!sglang serve m --x '{}' --y '{ }'", [["m", "--x", "{}", "--y", "{ }"]]),
    ("if True:\n    !sglang serve m", [["m"]]),
    ("%%bash\nTP=2\nsglang serve m --tp $TP", [["m", "--tp", "2"]]),
    ("%%writefile x.sh\nsglang serve m", []),
    ("%env A=1\nimport sglang as sgl\nsgl.Engine(model_path=\"é\\\"\")", [["model_path", '"é\\""']]),
    ("# sglang serve m", []),
]  # fmt: skip


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize(("cell", "expected"), CELLS, ids=range(len(CELLS)))
def test_cells(cell: str, expected: list[list[str]], lines: bool) -> None:
    assert words(notebook(cell, lines=lines)) == expected


def test_cells_are_one_program() -> None:
    assert words(notebook("import sglang as sgl\nTP = 2", "sgl.Engine(tp_size=TP)")) == [["tp_size", "2"]]


def test_pages_between() -> None:
    assert words(notebook("text\n```bash\nsglang serve m \\\n  --tp 2\n```\n", kind="markdown")) == [["m", "--tp", "2"]]
    assert words(notebook("sglang serve m", kind="raw")) == []


def test_places() -> None:
    text = notebook('import sglang as sgl\nsgl.Engine(model_path="m")')
    (launch,) = parse("a.ipynb", text).launches
    key, value = launch.variants[0].words
    assert text[key.place.start : key.place.end] == "model_path"
    assert text[value.place.start : value.place.end] == '\\"m\\"'
    assert text[launch.place.start : launch.place.end] == "sgl.Engine"


@pytest.mark.parametrize(
    "text", ["", "{", '{"cells": [{"cell_type": "code", "source": ["!sglang serve m', '{"cells": 1}', "[]]]"]
)
def test_broken_notebooks(text: str) -> None:
    assert words(text + " sglang") == []


def test_a_picture_of_half_a_million_characters_is_no_reason_to_look_away() -> None:
    cell = {
        "cell_type": "code",
        "source": ["!sglang serve m --tp 2\n"],
        "outputs": [{"data": {"image/png": "A" * 600_000}}],
    }
    document = parse("n.ipynb", json.dumps({"cells": [cell], "nbformat": 4}))
    assert [[w.text for w in v.words] for launch in document.launches for v in launch.variants] == [["m", "--tp", "2"]]
