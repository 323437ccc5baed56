"""Folding and selection ranges as the protocol has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.server.test_features import RUN, editor


def widths(answer: dict[str, Any] | None) -> list[tuple[int, int, int, int]]:
    found = []
    while answer:
        start, end = answer["range"]["start"], answer["range"]["end"]
        found.append((start["line"], start["character"], end["line"], end["character"]))
        answer = answer.get("parent")
    return found


async def test_selections_grow(tmp_path: Path) -> None:
    ed = await editor(tmp_path.resolve())
    ed.open(f"if a; then\n  {RUN} --tp ‸2\nfi\n")
    first, second = await ed.ask("selectionRange", positions=[ed.at, {"line": 2, "character": 2}])
    at, end = ed.at["character"], ed.at["character"] + 1
    assert widths(first) == [(1, at, 1, end), (1, at - 5, 1, end), (1, 2, 1, end), (0, 0, 2, 2)]
    assert widths(second) == [(0, 0, 2, 2)]


async def test_selections_in_other_files(tmp_path: Path) -> None:
    ed = await editor(tmp_path.resolve())
    ed.open(f"a: 1\nrun: {RUN} --tp ‸2\n", "c.yaml", "yaml")
    inside, outside = await ed.ask("selectionRange", positions=[ed.at, {"line": 0, "character": 1}])
    assert len(widths(inside)) == 3
    assert widths(outside) == [(0, 1, 0, 1)]


async def test_folds(tmp_path: Path) -> None:
    ed = await editor(tmp_path.resolve())
    ed.open(f"f() {{\n  {RUN} \\\n    --tp 2\n}}\nA=(\n  --x\n)\n")
    assert await ed.ask("foldingRange") == [
        {"startLine": 0, "endLine": 2},
        {"startLine": 1, "endLine": 2},
        {"startLine": 4, "endLine": 5},
    ]


async def test_files_that_others_fold(tmp_path: Path) -> None:
    ed = await editor(tmp_path.resolve())
    ed.open(f"a:\n  b: {RUN}\n", "c.yaml", "yaml")
    assert await ed.ask("foldingRange") is None
